"""An exported tree (C2SP tlog-tiles) as an audit reads it: a folder of files, with no database.

`checkpoint`, ``tile/<level>/<n>[.p/<width>]``, ``tile/entries/<n>[.p/<width>]``, and ``blobs/`` where the
passports were exported too. The size that the checkpoint states is where to look; whether it was signed,
and is about these files, is the audit's to find out.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from certkit import files
from certkit.errors import CertkitError, InputError
from certkit.registry import blobs
from certkit.registry.heads import read
from certkit.registry.source import Fault, stray_blobs
from certkit.tlog import bundle, tiles
from certkit.tlog.hashing import HASH_SIZE
from certkit.tlog.note import MAX_NOTE
from certkit.tlog.tiles import Tile

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from pathlib import Path


CHECKPOINT: Final = "checkpoint"
_OWN: Final = {CHECKPOINT, "tile", blobs.FOLDER}


class Published:
    """The files of an exported tree."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        kept = folder / blobs.FOLDER
        self.passports = kept.is_dir() and not kept.is_symlink()

    def note(self) -> bytes:
        """See `Source`."""
        path = self._folder / CHECKPOINT
        if path.is_symlink():
            raise InputError("file.not-regular", "is a link, not a file", where=str(path))
        return files.read(path, limit=MAX_NOTE)

    def count(self) -> int:
        """See `Source`."""
        return self._size

    @cached_property
    def _size(self) -> int:
        try:
            return read(self.note()).size
        except CertkitError:
            return 0  # the audit reads the checkpoint itself, and says what is wrong

    def batches(self) -> Iterator[list[tuple[int, Any]]]:
        """See `Source`."""
        for n in range(-(-self._size // tiles.WIDTH)):
            yield list(enumerate(self._entries(n), n * tiles.WIDTH))

    def entries(self, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """See `Source`."""
        for n in range(start // tiles.WIDTH, -(-min(stop, self._size) // tiles.WIDTH)):
            for index, data in enumerate(self._entries(n), n * tiles.WIDTH):
                if start <= index < stop:
                    yield index, data

    def _entries(self, n: int) -> list[bytes]:
        width = tiles.width(tiles.BUNDLES, n, self._size)
        # Once a tile or bundle is full, its narrower forms may go, and a reader takes them from it.
        for at_hand in (width, tiles.WIDTH):
            data = self._read(Tile(tiles.BUNDLES, n, at_hand))
            if data is not None:
                return bundle.decode(data, at_hand)[:width]
        raise InputError("tlog.tile", f"bundle {n} is missing, too long or a link")

    def tile(self, level: int, n: int) -> bytes:
        """See `Source`."""
        width = tiles.width(level, n, self._size)
        for at_hand in (width, tiles.WIDTH) if width else ():
            data = self._read(Tile(level, n, at_hand))
            if data is not None:
                return data if at_hand == width else data[: width * HASH_SIZE]
        return b""

    def surplus(self, expected: Container[tuple[int, int]]) -> Iterator[Fault]:
        """See `Source`: a narrower form of a tile must be its beginning; what is wider is in `notes`."""
        _ = expected
        for name in self._names():
            tile = _tile(name)
            width = tiles.width(tile.level, tile.n, self._size) if tile else 0
            if tile is None or tile.width >= width:
                continue
            whole = self._read(Tile(tile.level, tile.n, width)) or b""
            data = self._read(tile)
            if data is None or not whole.startswith(data) or not has_width(tile, data):
                yield Fault("registry.tile-differs", name, "not the beginning of the tile as it is now")

    def faults(self, origin: str, vkey: str) -> Iterator[Fault]:
        """See `Source`: files say nothing of themselves."""
        _ = origin, vkey
        return iter(())

    def notes(self, expected: Container[str]) -> Iterator[str]:
        """See `Source`."""
        for name in self._names():
            tile = _tile(name)
            if tile is None:
                yield f"{name} is no tile"
            elif tile.width > tiles.width(tile.level, tile.n, self._size):
                yield f"{name} is beyond the checkpoint"
        for item in sorted(self._folder.iterdir()):
            if item.name not in _OWN:
                yield f"{item.name} is no part of a log"
        for part in ("tile", blobs.FOLDER):
            for item in sorted(path for path, is_link in files.inside(self._folder / part) if is_link):
                yield f"{item.relative_to(self._folder).as_posix()} is a link, and not followed"
        if self.passports:
            yield from stray_blobs(self._folder, expected)

    def _names(self) -> Iterator[str]:
        for item in sorted(path for path, is_link in files.inside(self._folder / "tile") if not is_link):
            yield item.relative_to(self._folder).as_posix()

    def _read(self, tile: Tile) -> bytes | None:
        limit = bundle.MAX_BUNDLE if tile.level == tiles.BUNDLES else tiles.WIDTH * HASH_SIZE
        path = self._folder
        for part in tile.path.split("/"):
            path /= part
            if path.is_symlink():  # what lies behind it is no part of the tree
                return None
        try:
            return files.read(path, limit=limit)
        except CertkitError:
            return None


def _tile(name: str) -> Tile | None:
    try:
        return tiles.parse_path(name)
    except CertkitError:
        return None


def has_width(tile: Tile, data: bytes) -> bool:
    """Tell whether the bytes of a tile or bundle are as many hashes, or entries, as its name says."""
    if tile.level != tiles.BUNDLES:
        return len(data) == tile.width * HASH_SIZE
    try:
        bundle.decode(data, tile.width)
    except CertkitError:
        return False
    return True
