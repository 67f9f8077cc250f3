"""What a reader of a log opens: a registry's database, or the tree exported from it (C2SP tlog-tiles).

A tree is a folder of files: `checkpoint`, ``tile/<level>/<n>[.p/<width>]``,
``tile/entries/<n>[.p/<width>]``, and ``blobs/`` where the passports were exported too. The size that its
checkpoint states is where to look. Nothing that is read here is believed: whether the checkpoint was signed,
and is about these bytes, is the reader's to find out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from certkit import files
from certkit.errors import CertkitError, InputError
from certkit.registry import store
from certkit.registry.heads import read
from certkit.registry.log import Log
from certkit.tlog import bundle, tiles
from certkit.tlog.note import MAX_NOTE, VerifierKey
from certkit.tlog.tiles import WIDTH, Tile
from certkit.tlog.tree import HASH_SIZE

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Container, Iterator
    from pathlib import Path


class Fault(NamedTuple):
    """What a source finds wrong with itself: a code, where, and in words."""

    code: str
    where: str
    message: str


CHECKPOINT: Final = "checkpoint"


class Source(ABC):
    """Bytes to audit, none of them believed."""

    passports = True
    """Whether the passports are part of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @abstractmethod
    def note(self) -> bytes:
        """Return the signed checkpoint; raise `CertkitError`."""

    def vkey(self) -> VerifierKey | None:
        """Return the verifier key that the log says is its own, None where it says none."""
        return None

    @abstractmethod
    def count(self) -> int:
        """Return how many entries there seem to be."""

    @abstractmethod
    def batches(self) -> Iterator[list[tuple[int, Any]]]:
        """Yield the entries in order with their indices, at most 256 together; raise `CertkitError`."""

    @abstractmethod
    def entry(self, index: int) -> bytes | None:
        """Return an entry, None where there is none."""

    @abstractmethod
    def tile(self, level: int, n: int) -> bytes:
        """Return the stored hashes of a tile, nothing where there is none."""

    def faults(self, expected: Container[tuple[int, int]], log: VerifierKey) -> Iterator[Fault]:
        """Yield what else does not hold of a log with these tiles and this key."""
        _ = expected, log
        return iter(())

    def notes(self, expected: Container[str]) -> Iterator[str]:
        """Yield what is unusual and harmless; `expected` are the digests of the passports."""
        for name in store.blob_names(self._folder) if self.passports else ():
            sha256 = name[-64:]
            if name != f"{sha256[:2]}/{sha256}" or sha256 not in expected:
                yield f"{store.BLOBS}/{name} belongs to no entry"


class Database(Source):
    """The database of a registry, on one state of it."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        super().__init__(folder)
        self._connection, self._log = connection, Log(connection)

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

    def note(self) -> bytes:
        """See `Source`."""
        return self._log.cosigned()

    def entry(self, index: int) -> bytes | None:
        """See `Source`."""
        return self._log.entry(index)

    def tile(self, level: int, n: int) -> bytes:
        """See `Source`."""
        return self._log.tile(level, n)

    def count(self) -> int:
        """See `Source`."""
        (count,) = self._connection.execute("SELECT count(*) FROM leaf").fetchone()
        return int(count)

    def batches(self) -> Iterator[list[tuple[int, Any]]]:
        """See `Source`."""
        cursor = self._connection.execute("SELECT idx, entry FROM leaf ORDER BY idx")
        while rows := cursor.fetchmany(WIDTH):
            yield rows

    def faults(self, expected: Container[tuple[int, int]], log: VerifierKey) -> Iterator[Fault]:
        """See `Source`."""
        for level, n in self._connection.execute("SELECT level, n FROM tile ORDER BY level, n"):
            if (level, n) not in expected:
                yield Fault("registry.tile-differs", f"tile {level}/{n}", "no entries give such a tile")
        stated = store.meta(self._connection)
        right = {"format": store.FORMAT, "origin": log.name, "vkey": str(log)}
        for name in sorted(stated.keys() | right.keys()):
            if stated.get(name) != right.get(name):
                message = f"expected {name} {right.get(name)}, found {stated.get(name)}"
                yield Fault("registry.checkpoint", "meta", message)


class Published(Source):
    """The files of an exported tree; of a tile, narrower forms are not looked at."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        kept = folder / store.BLOBS
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
        for n in range(-(-self._size // WIDTH)):
            yield list(enumerate(self._entries(n), n * WIDTH))

    def entry(self, index: int) -> bytes | None:
        """See `Source`."""
        n, place = divmod(index, WIDTH)
        return self._entries(n)[place] if 0 <= index < self._size else None

    def _entries(self, n: int) -> list[bytes]:
        width, data = self._tile(tiles.BUNDLES, n)
        if data is None:
            raise InputError("tlog.tile", f"bundle {n} is missing, too long or a link")
        return bundle.decode(data, width)[: tiles.width(tiles.BUNDLES, n, self._size)]

    def tile(self, level: int, n: int) -> bytes:
        """See `Source`."""
        width, data = self._tile(level, n)
        if data is None or len(data) != width * HASH_SIZE:
            return b""
        return data[: tiles.width(level, n, self._size) * HASH_SIZE]

    def _tile(self, level: int, n: int) -> tuple[int, bytes | None]:
        """Return a tile or bundle, and its width: that of the log's size, or full.

        Once a tile is full, its narrower forms may go, and a reader takes them from it.
        """
        width = tiles.width(level, n, self._size)
        for at_hand in (width, WIDTH) if width else ():
            data = self._read(Tile(level, n, at_hand))
            if data is not None:
                return at_hand, data
        return width, None

    def notes(self, expected: Container[str]) -> Iterator[str]:
        """See `Source`."""
        for path, is_link in sorted(files.inside(self._folder)):
            name = path.relative_to(self._folder).as_posix()
            if is_link:
                yield f"{name} is a link, and not followed"
            elif name != CHECKPOINT and not name.startswith(f"{store.BLOBS}/") and not self._covers(name):
                yield f"{name} is no part of the log"
        yield from super().notes(expected)

    def _covers(self, name: str) -> bool:
        """Tell whether a file is a tile of the log as it is, or a narrower form of one."""
        try:
            tile = tiles.parse_path(name)
        except CertkitError:
            return False
        return tile.width <= tiles.width(tile.level, tile.n, self._size)

    def _read(self, tile: Tile) -> bytes | None:
        limit = bundle.MAX_BUNDLE if tile.level == tiles.BUNDLES else tiles.FULL
        path = self._folder
        for part in tile.path.split("/"):
            path /= part
            if path.is_symlink():  # what lies behind it is no part of the tree
                return None
        try:
            return files.read(path, limit=limit)
        except CertkitError:
            return None
