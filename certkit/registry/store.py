"""The store of record: one SQLite file, written durably, opened with suspicion.

Tables ``leaf`` (the entries), ``tile`` (the tree over them, rightmost tiles partial), ``checkpoint`` (the
signed head), ``seen`` (leaf hash to first index), ``entry_index`` (derived, can be rebuilt) and ``meta``
(format version, origin, verifier key). A file with any other table, index, view or trigger is refused:
what others put into a database can run on opening it.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from certkit.errors import CertkitError, InputError, MismatchError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE: Final = "registry.db"
FORMAT: Final = "1"
PATIENCE: Final = 60.0
"""Seconds that a writer waits for another one."""

_PAGE: Final = 16_384
_DDL: Final = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE leaf (idx INTEGER PRIMARY KEY, entry BLOB NOT NULL)",
    "CREATE TABLE tile (level INTEGER, n INTEGER, hashes BLOB NOT NULL, PRIMARY KEY (level, n))",
    "CREATE TABLE checkpoint (size INTEGER PRIMARY KEY, note BLOB NOT NULL)",
    "CREATE TABLE seen (leaf BLOB PRIMARY KEY, idx INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE entry_index (idx INTEGER PRIMARY KEY, type TEXT NOT NULL, lineage TEXT NOT NULL,
    passport_id TEXT, profile TEXT)""",
    "CREATE INDEX entry_lineage ON entry_index (lineage, idx)",
    "CREATE INDEX entry_passport ON entry_index (passport_id, idx)",
)
_SETTINGS: Final = (
    f"PRAGMA page_size = {_PAGE}",  # counts for a file that is made
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # without this and the next, macOS leaves the data in the drive's cache
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
)
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


@contextmanager
def creating(folder: Path, meta: dict[str, str]) -> Iterator[sqlite3.Connection]:
    """Make a new database in `folder`; what the block writes is part of its first transaction."""
    path = folder / FILE
    with translated(path), closing(_connect(path, "rwc", PATIENCE)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        with writing(connection):
            for statement in _DDL:
                connection.execute(statement)
            connection.executemany("INSERT INTO meta VALUES (?, ?)", [*meta.items(), ("format", FORMAT)])
            yield connection


def connect(folder: Path, *, writable: bool, patience: float = PATIENCE) -> sqlite3.Connection:
    """Open the database of a registry, its format checked.

    Raises `InputError` ``registry.missing`` or ``registry.format``, `MismatchError` ``registry.damaged``,
    and what `translated` makes of SQLite's errors.
    """
    path = folder / FILE
    if not path.is_file():
        raise InputError(
            "registry.missing",
            f"no {FILE} here",
            where=str(folder),
            hint="'certkit registry init DIR --name NAME' makes a registry",
        )
    with translated(path):
        connection = _open(path, writable=writable, patience=patience)
        try:
            _check(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


def _open(path: Path, *, writable: bool, patience: float) -> sqlite3.Connection:
    if writable:
        return _connect(path, "rw", patience)
    try:
        return _connect(path, "ro", patience)
    except sqlite3.OperationalError as error:
        # A reader of a WAL database needs its shared memory beside it. Where the folder cannot be written
        # and no writer left a log behind, nothing can change and the file alone is all there is.
        unwritable = error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
        if not unwritable or path.with_name(f"{FILE}-wal").exists():
            raise
    return _connect(path, "ro&immutable=1", patience)


def _connect(path: Path, mode: str, patience: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=patience
    )
    try:
        for statement in _SETTINGS:
            connection.execute(statement)
        connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    with closing(sqlite3.connect(":memory:")) as pattern:
        for statement in _DDL:
            pattern.execute(statement)
        expected = _schema(pattern)
    if _schema(connection) != expected:
        raise MismatchError("registry.damaged", "holds other tables than a registry", where=str(path))
    version = meta(connection).get("format")
    if version != FORMAT:
        raise InputError(
            "registry.format",
            f"expected format {FORMAT}, found {version}",
            where=str(path),
            hint="a newer certkit wrote it" if (version or "").isdigit() else None,
        )


def _schema(connection: sqlite3.Connection) -> set[tuple[object, ...]]:
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"))


def meta(connection: sqlite3.Connection) -> dict[str, str]:
    """Return what the database says of itself; nothing of it is verified."""
    return {str(key): str(value) for key, value in connection.execute("SELECT key, value FROM meta")}


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a block as one write transaction that is on the disk when the block has ended."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk makes SQLite roll back by itself; a second ROLLBACK would then hide the cause.
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise


@contextmanager
def reading(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a block on one state of the database, whatever writers do meanwhile."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into certkit's.

    `UsageError` ``registry.busy`` or ``file.unwritable`` (a full disk, a folder that cannot be written),
    `MismatchError` ``registry.damaged``.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _translate(error, str(path)) from error


def _translate(error: sqlite3.DatabaseError, where: str) -> CertkitError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in _BUSY:
        return UsageError(
            "registry.busy", "another program is writing for too long", where=where, hint="try again later"
        )
    if code == sqlite3.SQLITE_FULL:
        return UsageError(
            "file.unwritable",
            "no space left on device",
            where=where,
            hint="nothing was appended and the log is sound; make room and try again",
        )
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}:
        return UsageError("file.unwritable", "the registry cannot be opened or written here", where=where)
    if code == sqlite3.SQLITE_IOERR:
        return UsageError("file.unwritable", "the disk refused to read or write", where=where)
    return MismatchError("registry.damaged", f"damaged: {error}", where=where)
