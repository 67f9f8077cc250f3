"""What an audit reads: a registry's database (here), or the tree that was exported (`published`)."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from certkit.registry import blobs, store
from certkit.registry.index import row
from certkit.registry.log import Log
from certkit.tlog.tiles import WIDTH

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Container, Iterator
    from pathlib import Path

    from certkit.registry.entry import UnverifiedEntry
    from certkit.tlog.hashing import Hash


class Fault(NamedTuple):
    """What a source finds wrong with itself: a code, where, and in words."""

    code: str
    where: str
    message: str


class Source(Protocol):
    """Bytes to audit, none of them believed."""

    passports: bool
    """Whether the passports are part of it."""

    def note(self) -> bytes:
        """Return the signed checkpoint; raise `CertkitError`."""

    def count(self) -> int:
        """Return how many entries there seem to be."""

    def batches(self) -> Iterator[list[tuple[int, Any]]]:
        """Yield the entries in order with their indices, at most 256 together; raise `CertkitError`."""

    def tile(self, level: int, n: int) -> bytes:
        """Return the stored hashes of a tile, nothing where there is none."""

    def surplus(self, expected: Container[tuple[int, int]]) -> Iterator[Fault]:
        """Yield what is stored of other tiles than the expected ones, and what contradicts those."""

    def entry_faults(self, index: int, leaf: Hash, found: UnverifiedEntry) -> Iterator[Fault]:
        """Yield what else the source says of an entry and should not."""

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
        self.note = self._log.note
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

    def count(self, table: str = "leaf") -> int:
        """Return how many rows a table has."""
        (count,) = self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - ours
        return int(count)

    def batches(self) -> Iterator[list[tuple[int, Any]]]:
        """See `Source`."""
        cursor = self._connection.execute("SELECT idx, entry FROM leaf ORDER BY idx")
        while rows := cursor.fetchmany(WIDTH):
            yield rows

    def surplus(self, expected: Container[tuple[int, int]]) -> Iterator[Fault]:
        """See `Source`."""
        for level, n in self._connection.execute("SELECT level, n FROM tile ORDER BY level, n"):
            if (level, n) not in expected:
                yield Fault("registry.tile-differs", f"tile {level}/{n}", "no entries give such a tile")

    def entry_faults(self, index: int, leaf: Hash, found: UnverifiedEntry) -> Iterator[Fault]:
        """See `Source`."""
        execute, where = self._connection.execute, f"entry {index}"
        if execute("SELECT idx FROM seen WHERE leaf = ?", (leaf,)).fetchone() != (index,):
            yield Fault("registry.index-differs", where, "table seen does not know it")
        if execute("SELECT * FROM entry_index WHERE idx = ?", (index,)).fetchone() != row(index, found):
            yield Fault("registry.index-differs", where, "table entry_index says otherwise")

    def faults(self, origin: str, vkey: str) -> Iterator[Fault]:
        """See `Source`."""
        for table in ("seen", "entry_index"):
            if (count := self.count(table)) != self.count():
                yield Fault("registry.index-differs", f"table {table}", f"has {count:,} rows")
        stated = store.meta(self._connection)
        expected = {"format": store.FORMAT, "origin": origin, "vkey": vkey}
        for name in sorted(stated.keys() | expected.keys()):
            if stated.get(name) != expected.get(name):
                message = f"expected {name} {expected.get(name)}, found {stated.get(name)}"
                yield Fault("registry.checkpoint", "meta", message)

    def notes(self, expected: Container[str]) -> Iterator[str]:
        """See `Source`."""
        return stray_blobs(self._folder, expected)


def stray_blobs(folder: Path, expected: Container[str]) -> Iterator[str]:
    """Yield a note on each file among the passports that is none of the expected ones."""
    for name in blobs.names(folder):
        sha256 = name[-64:]
        if name != f"{sha256[:2]}/{sha256}" or sha256 not in expected:
            yield f"{blobs.FOLDER}/{name} belongs to no entry"
