"""Tiles: the tree stored as rows of up to 256 hashes (C2SP tlog-tiles, height 8).

Tile `n` of level 0 holds leaf hashes ``[256n, 256n + 256)``; tile `n` of level L holds the roots of full
tiles ``[256n, 256n + 256)`` of level L − 1. The rightmost tile of a level may be partial.

    changed = grow(size, [leaf_hash(entry)], read)      # what to store now, (level, n) -> bytes
    root(size + 1, node_reader(read))                   # with `read` seeing what was stored
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.errors import InputError, MismatchError
from certkit.tlog.hashing import HASH_SIZE, Hash, node_hash

if TYPE_CHECKING:
    from certkit.tlog.tree import Node

HEIGHT: Final = 8
WIDTH: Final = 1 << HEIGHT
MAX_LEVEL: Final = 63

Read = Callable[[int, int], bytes]
"""Returns the stored hashes of tile ``(level, n)``, one after the other; empty where there is none."""

_PATH: Final = re.compile(r"tile/(0|[1-9][0-9]?)/((?:x[0-9]{3}/)*)([0-9]{3})(?:\.p/([1-9][0-9]{0,2}))?")


class Tile(NamedTuple):
    """A tile by its place, with how many hashes it holds (1 to 256)."""

    level: int
    n: int
    width: int

    @property
    def path(self) -> str:
        """The tile's path below a log's prefix, such as ``tile/0/x001/x234/067`` or ``…/067.p/9``."""
        digits = f"{self.n:d}"
        digits = digits.zfill(-(-len(digits) // 3) * 3)
        groups = [digits[at : at + 3] for at in range(0, len(digits), 3)]
        place = "/".join([*(f"x{group}" for group in groups[:-1]), groups[-1]])
        partial = "" if self.width == WIDTH else f".p/{self.width}"
        return f"tile/{self.level}/{place}{partial}"


def parse_path(text: str) -> Tile:
    """Read a tile's path; raise `InputError` ``tlog.tile`` unless it is the one way to write it."""
    if match := _PATH.fullmatch(text):
        level, high, low, width = match.groups()
        tile = Tile(int(level), int(high.replace("x", "").replace("/", "") + low), int(width or WIDTH))
        if tile.level <= MAX_LEVEL and tile.path == text:
            return tile
    raise InputError("tlog.tile", f"{text!r} is not the path of a tile")


def tiles(size: int) -> Iterator[Tile]:
    """Yield every tile of a tree of `size` leaves, level by level, from the left."""
    level = 0
    while count := size >> (HEIGHT * level):
        full, partial = divmod(count, WIDTH)
        for n in range(full):
            yield Tile(level, n, WIDTH)
        if partial:
            yield Tile(level, full, partial)
        level += 1


def subtree(hashes: bytes) -> Hash:
    """Return the root over a power of two of concatenated hashes."""
    row = [Hash(hashes[at : at + HASH_SIZE]) for at in range(0, len(hashes), HASH_SIZE)]
    while len(row) > 1:
        row = [node_hash(row[at], row[at + 1]) for at in range(0, len(row), 2)]
    return row[0]


def node_reader(read: Read) -> Node:
    """Return what looks the hash of a complete subtree up in tiles.

    It raises `MismatchError` ``tlog.tile`` where a tile is too short to hold what its place demands.
    """

    def node(level: int, index: int) -> Hash:
        row, below = divmod(level, HEIGHT)
        n, first = divmod(index << below, WIDTH)
        start, stop = first * HASH_SIZE, (first + (1 << below)) * HASH_SIZE
        hashes = read(row, n)
        if len(hashes) < stop:
            raise MismatchError("tlog.tile", f"tile {row}/{n} lacks hashes that the tree needs")
        return subtree(hashes[start:stop])

    return node


def grow(size: int, leaves: Sequence[Hash], read: Read) -> dict[tuple[int, int], bytes]:
    """Return the tiles that change when `leaves` are added to a tree of `size`, each in full.

    Only the rightmost tile of each level is read. Raises `MismatchError` ``tlog.tile`` where it has not
    the width that `size` demands, since the new hashes would then stand in a wrong place.
    """
    changed: dict[tuple[int, int], bytes] = {}
    level, new = 0, list(leaves)
    while new:
        n, width = divmod(size >> (HEIGHT * level), WIDTH)
        hashes = read(level, n) if width else b""
        if len(hashes) != width * HASH_SIZE:
            raise MismatchError("tlog.tile", f"tile {level}/{n} has not {width} hashes")
        row = hashes + b"".join(new)
        above: list[Hash] = []
        for at in range(0, len(row), WIDTH * HASH_SIZE):
            piece = row[at : at + WIDTH * HASH_SIZE]
            changed[level, n] = piece
            if len(piece) == WIDTH * HASH_SIZE:
                above.append(subtree(piece))
            n += 1
        level, new = level + 1, above
    return changed
