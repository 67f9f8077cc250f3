"""What an audit reads: a registry's database (here), or the tree that was exported (`published`)."""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from certkit.errors import CertkitError
from certkit.registry import blobs, store
from certkit.registry.index import Index, row
from certkit.registry.log import Log
from certkit.registry.search import NO_COSIGNATURE, ending, passport_row
from certkit.tlog.tiles import WIDTH

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Container, Iterator
    from pathlib import Path

    from certkit.registry.entry import UnverifiedEntry
    from certkit.tlog.checkpoint import Checkpoint
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

    indexed: bool
    """Whether there are derived tables."""

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

    passports = indexed = True

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self._folder = folder
        self._connection = connection
        self._passports = 0
        self._ended: dict[str, tuple[str, int]] = {}
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
        if claims := found.passport:
            self._passports += 1
            there = execute("SELECT * FROM passport_index WHERE idx = ?", (index,)).fetchone()
            if there is None or there[:-2] != passport_row(index, found.entry.subject, claims):
                yield Fault("registry.index-differs", where, "table passport_index says otherwise")
        if ended := ending(found):
            passport_id, how = ended
            before, _ = self._ended.get(passport_id, (None, index))
            if before is None or (before, how) == ("superseded", "revoked"):
                self._ended[passport_id] = how, index

    def faults(self, origin: str, vkey: str) -> Iterator[Fault]:
        """See `Source`."""
        entries = self.count()
        for table, rows in (("seen", entries), ("entry_index", entries), ("passport_index", self._passports)):
            if (count := self.count(table)) != rows:
                yield Fault("registry.index-differs", f"table {table}", f"has {count:,} rows")
        for index in self._odd_endings():
            message = "table passport_index says otherwise what became of it"
            yield Fault("registry.index-differs", f"entry {index}", message)
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

    def _odd_endings(self) -> list[int]:
        """Return the passports of which the index says another ending than the entries."""
        index = Index(self._connection)
        given = {index.first(passport_id): ended for passport_id, ended in self._ended.items()}
        rows = self._connection.execute(
            "SELECT idx, ended, ended_by FROM passport_index WHERE ended NOTNULL OR ended_by NOTNULL"
        )
        there = {idx: ended for idx, *ended in rows}
        odd = {idx for idx, ended in given.items() if tuple(there.pop(idx, ())) != ended}
        return sorted({idx for idx in odd if idx is not None} | there.keys())

    def notes(self, expected: Container[str]) -> Iterator[str]:
        """See `Source`."""
        return stray_blobs(self._folder, expected)


def stray_blobs(folder: Path, expected: Container[str]) -> Iterator[str]:
    """Yield a note on each file among the passports that is none of the expected ones."""
    for name in blobs.names(folder):
        sha256 = name[-64:]
        if name != f"{sha256[:2]}/{sha256}" or sha256 not in expected:
            yield f"{blobs.FOLDER}/{name} belongs to no entry"
