"""What a reader of a log opens: a registry's database, or the tree exported from it (C2SP tlog-tiles).

A tree is a folder of files: `checkpoint`, ``tile/<level>/<n>[.p/<width>]``,
``tile/entries/<n>[.p/<width>]``, and ``blobs/`` where the passports were exported too. The size that its
checkpoint states is where to look. Nothing that is read here is believed: whether the checkpoint was signed,
and is about these bytes, is the reader's to find out.
"""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from certkit import files
from certkit.errors import CertkitError, InputError
from certkit.registry import store
from certkit.registry.heads import read
from certkit.registry.log import Log
from certkit.tlog import bundle, tiles
from certkit.tlog.hashing import HASH_SIZE
from certkit.tlog.note import MAX_NOTE, VerifierKey
from certkit.tlog.tiles import WIDTH, Tile

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Container, Iterable, Iterator
    from pathlib import Path

    from certkit.tlog.checkpoint import Checkpoint


class Fault(NamedTuple):
    """What a source finds wrong with itself: a code, where, and in words."""

    code: str
    where: str
    message: str


CHECKPOINT: Final = "checkpoint"
_OWN: Final = {CHECKPOINT, "tile", store.BLOBS}
NO_COSIGNATURE: Final = "no cosignature by the key that it is kept for of a checkpoint that the log had"
"""What is wrong with a row of ``cosignature``."""


class Source(Protocol):
    """Bytes to audit, none of them believed."""

    passports: bool
    """Whether the passports are part of it."""

    def note(self) -> bytes:
        """Return the signed checkpoint; raise `CertkitError`."""

    def vkey(self) -> VerifierKey | None:
        """Return the verifier key that the log says is its own, None where it says none."""

    def count(self) -> int:
        """Return how many entries there seem to be."""

    def batches(self) -> Iterator[list[tuple[int, Any]]]:
        """Yield the entries in order with their indices, at most 256 together; raise `CertkitError`."""

    def entries(self, start: int, stop: int) -> Iterable[tuple[int, bytes]]:
        """Return entries ``[start, stop)``, as far as there are some, with their indices."""

    def tile(self, level: int, n: int) -> bytes:
        """Return the stored hashes of a tile, nothing where there is none."""

    def surplus(self, expected: Container[tuple[int, int]]) -> Iterator[Fault]:
        """Yield what is stored of other tiles than the expected ones, and what contradicts those."""

    def faults(self, origin: str, vkey: str) -> Iterator[Fault]:
        """Yield what else does not hold."""

    def notes(self, expected: Container[str]) -> Iterator[str]:
        """Yield what is unusual and harmless; `expected` are the digests of the passports."""


class Database:
    """The database of a registry, on one state of it."""

    passports = True

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self._folder = folder
        self._connection = connection
        self._log = Log(connection)
        self.note = self._log.cosigned
        self.tile = self._log.tile

    @classmethod
    @contextmanager
    def open(cls, folder: Path) -> Iterator[Database]:
        """Open a registry to audit it; raise as `store.connect` does."""
        with (
            closing(store.connect(folder, writable=False)) as connection,
            store.translated(folder / store.FILE),
            store.reading(connection),
        ):
            yield cls(folder, connection)

    def vkey(self) -> VerifierKey | None:
        """See `Source`."""
        return VerifierKey.parse(store.meta(self._connection).get("vkey", ""))

    def count(self) -> int:
        """See `Source`."""
        (count,) = self._connection.execute("SELECT count(*) FROM leaf").fetchone()
        return int(count)

    def batches(self) -> Iterator[list[tuple[int, Any]]]:
        """See `Source`."""
        cursor = self._connection.execute("SELECT idx, entry FROM leaf ORDER BY idx")
        while rows := cursor.fetchmany(WIDTH):
            yield rows

    def entries(self, start: int, stop: int) -> Iterable[tuple[int, bytes]]:
        """See `Source`."""
        return enumerate(self._log.entries(start, stop), start)

    def surplus(self, expected: Container[tuple[int, int]]) -> Iterator[Fault]:
        """See `Source`."""
        for level, n in self._connection.execute("SELECT level, n FROM tile ORDER BY level, n"):
            if (level, n) not in expected:
                yield Fault("registry.tile-differs", f"tile {level}/{n}", "no entries give such a tile")

    def faults(self, origin: str, vkey: str) -> Iterator[Fault]:
        """See `Source`."""
        stated = store.meta(self._connection)
        expected = {"format": store.FORMAT, "origin": origin, "vkey": vkey}
        for name in sorted(stated.keys() | expected.keys()):
            if stated.get(name) != expected.get(name):
                message = f"expected {name} {expected.get(name)}, found {stated.get(name)}"
                yield Fault("registry.checkpoint", "meta", message)
        with suppress(CertkitError):  # what cannot be read, the audit has said
            yield from self._beside(self._log.unverified_head())

    def _beside(self, head: Checkpoint) -> Iterator[Fault]:
        """Yield what is stored beside the checkpoint and not about it, or about one that the log had."""
        (size,) = self._connection.execute("SELECT size FROM checkpoint").fetchone()
        if size != head.size:
            yield Fault(
                "registry.checkpoint", "table checkpoint", f"signed for {head.size:,}, kept as {size}"
            )
        for number, kept in enumerate(self._log.cosignatures()):
            if kept is None:
                yield Fault("registry.cosignature", f"table cosignature, row {number}", NO_COSIGNATURE)

    def notes(self, expected: Container[str]) -> Iterator[str]:
        """See `Source`."""
        return stray_blobs(self._folder, expected)


class Published:
    """The files of an exported tree."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        kept = folder / store.BLOBS
        self.passports = kept.is_dir() and not kept.is_symlink()

    def note(self) -> bytes:
        """See `Source`."""
        path = self._folder / CHECKPOINT
        if path.is_symlink():
            raise InputError("file.not-regular", "is a link, not a file", where=str(path))
        return files.read(path, limit=MAX_NOTE)

    def vkey(self) -> VerifierKey | None:
        """See `Source`."""
        return None

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
        """See `Source`: files state nothing about themselves."""
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
        for part in ("tile", store.BLOBS):
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


def stray_blobs(folder: Path, expected: Container[str]) -> Iterator[str]:
    """Yield a note on each file among the passports that is none of the expected ones."""
    for name in store.blob_names(folder):
        sha256 = name[-64:]
        if name != f"{sha256[:2]}/{sha256}" or sha256 not in expected:
            yield f"{store.BLOBS}/{name} belongs to no entry"
