"""Tiles: the tree stored as rows of up to 256 hashes (C2SP tlog-tiles, height 8).

Tile `n` of level 0 holds leaf hashes ``[256n, 256n + 256)``; tile `n` of level L holds the roots of full
tiles ``[256n, 256n + 256)`` of level L − 1. The rightmost tile of a level may be partial. Beside tile `n` of
level 0 lies bundle `n`, its entries, each after its length in two bytes, big-endian.

    changed = grow(size, [leaf_hash(entry)], read)      # what to store now, (level, n) -> bytes
    root(size + 1, node_reader(read))                   # with `read` seeing what was stored
    trusted = verified(size, root, read)                # returns only hashes that lead to the root
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.ground.errors import InputError, MismatchError
from certkit.ground.wording import many
from certkit.tlog import tree
from certkit.tlog.tree import HASH_SIZE, Hash, row_above

if TYPE_CHECKING:
    from certkit.tlog.tree import Node

HEIGHT: Final = 8
WIDTH: Final = 1 << HEIGHT
FULL: Final = WIDTH * HASH_SIZE
"""Bytes of the hashes of a tile that is not partial."""

Read = Callable[[int, int], bytes]
"""Returns the stored hashes of tile ``(level, n)``, one after the other; empty where there is none."""

MAX_ENTRY: Final = 65_535
MAX_BUNDLE: Final = WIDTH * (MAX_ENTRY + 2)
BUNDLES: Final = -1
"""Stands as the level of a bundle of entries, whose path has ``entries`` there."""


class Tile(NamedTuple):
    """A tile, or a bundle of entries, by its place, with how many hashes or entries it holds (1 to 256)."""

    level: int
    n: int
    width: int

    @property
    def path(self) -> str:
        """The tile's path below a log's prefix, such as ``tile/0/x001/x234/067`` or ``…/067.p/9``."""
        kind = "entries" if self.level == BUNDLES else self.level
        digits = f"{self.n:d}"
        digits = digits.zfill(-(-len(digits) // 3) * 3)
        groups = [digits[at : at + 3] for at in range(0, len(digits), 3)]
        place = "/".join([*(f"x{group}" for group in groups[:-1]), groups[-1]])
        partial = "" if self.width == WIDTH else f".p/{self.width}"
        return f"tile/{kind}/{place}{partial}"


def width(level: int, n: int, size: int) -> int:
    """Return how many hashes a tile has in a tree of `size` leaves, 0 for a tile beyond its edge.

    Level `BUNDLES` stands for the bundles of entries, which are as wide as the tiles of level 0.
    """
    return max(0, min(WIDTH, (size >> (HEIGHT * max(level, 0))) - n * WIDTH))


def tiles(size: int) -> Iterator[Tile]:
    """Yield every tile of a tree of `size` leaves, level by level, from the left."""
    level = 0
    while count := size >> (HEIGHT * level):
        for n in range(-(-count // WIDTH)):
            yield Tile(level, n, width(level, n, size))
        level += 1


def subtree(hashes: bytes) -> Hash:
    """Return the root over a power of two of concatenated hashes."""
    while len(hashes) > HASH_SIZE:
        hashes = row_above(hashes)
    return Hash(hashes)


def node_reader(read: Read) -> Node:
    """Return a function that looks up the hash of a complete subtree in tiles.

    The function raises `MismatchError` ``tlog.tile`` where a tile has too few hashes.
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


def verified(size: int, root: Hash, read: Read) -> Read:
    """Return `read` for a tree with this root, refusing every tile that does not lead to it.

    The rightmost tiles give the root; a full tile gives a hash of the verified tile above it. Raises
    `MismatchError` ``tlog.tile``, at once where the rightmost tiles do not give the root.
    """
    kept: dict[tuple[int, int], bytes] = {}

    def edge(level: int, n: int) -> bytes:
        return kept.setdefault((level, n), read(level, n)[: width(level, n, size) * HASH_SIZE])

    if tree.root(size, node_reader(edge)) != root:
        raise MismatchError("tlog.tile", "the tiles do not have the root that was signed")

    def checked(level: int, n: int) -> bytes:
        if (level, n) in kept:
            return kept[level, n]
        if width(level, n, size) < WIDTH:
            raise MismatchError("tlog.tile", f"a log of {many(size, 'entry')} has no tile {level}/{n}")
        hashes = read(level, n)
        above, place = divmod(n, WIDTH)
        expected = checked(level + 1, above)[place * HASH_SIZE : (place + 1) * HASH_SIZE]
        if len(hashes) != FULL or subtree(hashes) != expected:
            raise MismatchError("tlog.tile", f"tile {level}/{n} does not lead to the root that was signed")
        if level:
            kept[level, n] = hashes
        return hashes

    return checked


def grow(size: int, leaves: Sequence[Hash], read: Read) -> dict[tuple[int, int], bytes]:
    """Return the tiles that change when `leaves` are added to a tree of `size`, each in full.

    Only the rightmost tile of each level is read.

    Raises:
        MismatchError: ``tlog.tile`` unless its width is that which `size` implies, since new hashes would
            get wrong places.
    """
    changed: dict[tuple[int, int], bytes] = {}
    level, new = 0, b"".join(leaves)
    while new:
        n, width = divmod(size >> (HEIGHT * level), WIDTH)
        hashes = read(level, n) if width else b""
        if len(hashes) != width * HASH_SIZE:
            raise MismatchError("tlog.tile", f"tile {level}/{n} does not have {width} hashes")
        row = hashes + new
        above: list[Hash] = []
        for at in range(0, len(row), FULL):
            piece = row[at : at + FULL]
            changed[level, n] = piece
            if len(piece) == FULL:
                above.append(subtree(piece))
            n += 1
        level, new = level + 1, b"".join(above)
    return changed


class Rebuild:
    """A tree made again from its leaves; calls `differs` with every stored tile that is another, and its row.

    It keeps the rightmost tile of each level and nothing else. Whether the root is one that somebody signed
    is the caller's question.
    """

    def __init__(self, stored: Read, differs: Callable[[int, int, bytes], None]) -> None:
        self._stored, self._differs = stored, differs
        self._edge: dict[int, bytes] = {}
        self.size = 0
        """How many leaves there are."""

    def add(self, leaves: Sequence[Hash]) -> None:
        """Add the next leaves."""
        changed = grow(self.size, leaves, lambda level, _n: self._edge.get(level, b""))
        for (level, n), row in changed.items():
            self._edge[level] = row
            if len(row) == FULL:
                self._compare(level, n)
        self.size += len(leaves)

    def finish(self) -> None:
        """Compare the tiles that are not full; to be called when there are no more leaves."""
        for level, row in self._edge.items():
            if len(row) < FULL:
                self._compare(level, (self.size >> (HEIGHT * level)) // WIDTH)

    @property
    def root(self) -> Hash:
        """The root over the leaves."""
        # It rests on the rightmost tile of each level alone.
        return tree.root(self.size, node_reader(lambda level, _n: self._edge[level]))

    def _compare(self, level: int, n: int) -> None:
        if self._stored(level, n) != self._edge[level]:
            self._differs(level, n, self._edge[level])


def encode_bundle(entries: Iterable[bytes]) -> bytes:
    """Return the bundle of at most 256 entries of at most 65,535 bytes."""
    return b"".join(part for entry in entries for part in (len(entry).to_bytes(2), entry))


def decode_bundle(data: bytes, count: int) -> list[bytes]:
    """Return the `count` entries of a bundle.

    Raises:
        InputError: ``tlog.tile`` unless it holds just those.
    """
    entries: list[bytes] = []
    at = 0
    while at + 2 <= len(data):
        stop = at + 2 + int.from_bytes(data[at : at + 2])
        entries.append(data[at + 2 : stop])
        at = stop
    if at != len(data) or len(entries) != count:
        raise InputError("tlog.tile", f"not a bundle of {many(count, 'entry')}")
    return entries
