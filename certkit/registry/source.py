"""What an audit reads: a registry's database (here), or the tree that was exported (`published`)."""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from certkit.errors import CertkitError
from certkit.registry import blobs, store
from certkit.registry.log import Log
from certkit.tlog.tiles import WIDTH

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


NO_COSIGNATURE: Final = "no cosignature by the key that it is kept for of a checkpoint that the log had"
"""What is wrong with a row of ``cosignature``."""


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

    def count(self, table: str = "leaf") -> int:
        """Return how many rows a table has."""
        (count,) = self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - ours
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


def stray_blobs(folder: Path, expected: Container[str]) -> Iterator[str]:
    """Yield a note on each file among the passports that is none of the expected ones."""
    for name in blobs.names(folder):
        sha256 = name[-64:]
        if name != f"{sha256[:2]}/{sha256}" or sha256 not in expected:
            yield f"{blobs.FOLDER}/{name} belongs to no entry"
