"""The store of record: one SQLite file, written durably, opened with suspicion.

Tables ``leaf`` (the entries), ``tile`` (the tree over them, rightmost tiles partial), ``checkpoint`` (the
signed head), ``cosignature`` (what witnesses signed under it), ``seen`` (leaf hash to first index),
``entry_index`` (derived, can be rebuilt) and ``meta`` (format version, origin, verifier key). A file with
any other table, index, view or trigger is refused: what others put into a database can run on opening it.

The format has a version. An older one is brought up to date when it is opened for writing, in one
transaction, and is not read before: so there is one form that the rest of the program knows.
"""

from __future__ import annotations

import glob
import os
import shutil
import sqlite3
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from certkit.errors import CertkitError, InputError, MismatchError, UsageError
from certkit.registry.index import REINDEX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

FILE: Final = "registry.db"
PATIENCE: Final = 60.0
"""Seconds that a writer waits for another one."""

_PAGE: Final = 16_384
# What each version of the format adds to the one before. A statement that was released is never edited.
_VERSIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE leaf (idx INTEGER PRIMARY KEY, entry BLOB NOT NULL)",
        "CREATE TABLE tile (level INTEGER, n INTEGER, hashes BLOB NOT NULL, PRIMARY KEY (level, n))",
        "CREATE TABLE checkpoint (size INTEGER PRIMARY KEY, note BLOB NOT NULL)",
        "CREATE TABLE seen (leaf BLOB PRIMARY KEY, idx INTEGER NOT NULL) WITHOUT ROWID",
        """CREATE TABLE entry_index (idx INTEGER PRIMARY KEY, type TEXT NOT NULL, lineage TEXT NOT NULL,
    passport_id TEXT, profile TEXT)""",
        "CREATE INDEX entry_lineage ON entry_index (lineage, idx)",
        "CREATE INDEX entry_passport ON entry_index (passport_id, idx)",
    ),
    (
        """CREATE TABLE cosignature (size INTEGER, vkey TEXT, line BLOB NOT NULL,
    PRIMARY KEY (size, vkey)) WITHOUT ROWID""",
        """CREATE TABLE passport_index (idx INTEGER PRIMARY KEY, passport_id TEXT NOT NULL,
    lineage TEXT NOT NULL, agent TEXT NOT NULL, profile TEXT NOT NULL, tier INTEGER NOT NULL,
    not_before TEXT NOT NULL, not_after TEXT NOT NULL, attempt INTEGER NOT NULL, evidence TEXT,
    ended TEXT, ended_by INTEGER)""",
        "CREATE INDEX passport_attempt ON passport_index (lineage, profile, attempt)",
        "CREATE INDEX passport_evidence ON passport_index (evidence)",
    ),
)
FORMAT: Final = str(len(_VERSIONS))
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
    with translated(path), closing(open_file(path, "rwc", PATIENCE)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        with writing(connection):
            for statement in _ddl(len(_VERSIONS)):
                connection.execute(statement)
            connection.executemany("INSERT INTO meta VALUES (?, ?)", [*meta.items(), ("format", FORMAT)])
            yield connection


def connect(folder: Path, *, writable: bool, patience: float = PATIENCE) -> sqlite3.Connection:
    """Open the database of a registry, its format checked; an older format is migrated if `writable`.

    Raises `InputError` ``registry.missing`` or ``registry.format``, `MismatchError` ``registry.damaged``,
    and what `translated` makes of SQLite's errors.
    """
    path = located(folder)
    with translated(path), ExitStack() as undo:
        connection = open_file(path, "rw", patience) if writable else open_reading(path, patience)
        undo.callback(connection.close)
        if writable:
            _migrate(connection, path)
        _check(connection, path)
        undo.pop_all()
    return connection


def version(folder: Path) -> int:
    """Return the version of the format that a registry is in, 0 where it is none; raise as `connect` does."""
    with closing(open_reading(located(folder))) as connection:
        return _version(connection)


def located(folder: Path) -> Path:
    """Return the database of a registry; raise `InputError` ``registry.missing`` where there is none."""
    path = folder / FILE
    if not path.is_file():
        exported = (folder / "checkpoint").is_file() and (folder / "tile").is_dir()
        raise InputError(
            "registry.missing",
            f"no {FILE} here{', but an exported tree' if exported else ''}",
            where=str(folder),
            hint="'certkit registry audit', 'history', 'drift' and, without a search, 'list' read it"
            if exported
            else "'certkit registry init DIR --name NAME' makes a registry",
        )
    return path


def open_reading(path: Path, patience: float = PATIENCE) -> sqlite3.Connection:
    """Open a database that this program does not write; its schema is the caller's to check.

    What SQLite needs beside the file to read it is gone when the last reader has closed it.
    """
    if _is_at_rest(path):
        with suppress(sqlite3.OperationalError):
            # A connection that may not write cannot clean up behind it either, so this one only must not.
            connection = open_file(path, "rw", patience)
            connection.execute("PRAGMA query_only = ON")
            return connection
    try:
        return open_file(path, "ro", patience)
    except sqlite3.OperationalError as error:
        # A reader of a WAL database needs its shared memory beside it. Where the folder cannot be written
        # and no writer left a log behind, nothing can change and the file alone is all there is.
        unwritable = error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
        if not unwritable or path.with_name(f"{path.name}-wal").exists():
            raise
    return open_file(path, "ro&immutable=1", patience)


def _is_at_rest(path: Path) -> bool:
    """Tell whether SQLite may write here and has nothing to finish: a stranger's journal is not played."""
    real = path.resolve()
    if not (os.access(real, os.W_OK) and os.access(real.parent, os.W_OK)):
        return False
    try:
        found = {item.name: item.stat().st_size for item in real.parent.glob(f"{glob.escape(real.name)}-*")}
    except OSError:
        return False  # another program came or went meanwhile
    return f"{real.name}-journal" not in found and not found.get(f"{real.name}-wal")


def open_file(path: Path, mode: str, patience: float) -> sqlite3.Connection:
    """Open a database in a mode of SQLite's URIs, set to write durably; its schema is not checked."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=patience
    )
    with ExitStack() as undo:
        undo.callback(connection.close)
        for statement in _SETTINGS:
            connection.execute(statement)
        connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
        undo.pop_all()
    return connection


def _ddl(version: int) -> list[str]:
    return [statement for added in _VERSIONS[:version] for statement in added]


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring a database of an older format up to date, in one transaction."""
    if not 0 < _version(connection) < len(_VERSIONS):
        return
    with writing(connection):
        version = _version(connection)  # another writer may have been faster
        if 0 < version < len(_VERSIONS):
            _check_tables(connection, version, path)
            for added in _VERSIONS[version:]:
                for statement in added:
                    connection.execute(statement)
            from certkit.registry.search import Search  # noqa: PLC0415 - it reads what this room stores

            Search(connection).rebuild()
            connection.execute("UPDATE meta SET value = ? WHERE key = 'format'", (FORMAT,))


def _version(connection: sqlite3.Connection) -> int:
    """Return the version that a database says it has, 0 where it says nothing that could be one."""
    try:
        text = meta(connection).get("format", "")
    except sqlite3.OperationalError:
        return 0  # there is no such table
    return int(text) if text.isascii() and text.isdigit() and len(text) < len(str(_PAGE)) else 0


def _check(connection: sqlite3.Connection, path: Path) -> None:
    version = _version(connection)
    if 0 < version < len(_VERSIONS):
        raise InputError(
            "registry.format",
            f"expected format {FORMAT}, found {version}",
            where=str(path),
            hint="an older certkit wrote it; the next entry that is logged brings it into the present format",
        )
    if version <= len(_VERSIONS):
        _check_tables(connection, len(_VERSIONS), path)
    if version != len(_VERSIONS):
        raise InputError(
            "registry.format",
            f"expected format {FORMAT}, found {version or 'none'}",
            where=str(path),
            hint="a newer certkit wrote it" if version else None,
        )


def _check_tables(connection: sqlite3.Connection, version: int, path: Path) -> None:
    if not has_schema(connection, _ddl(version)):
        raise MismatchError("registry.damaged", "holds other tables than a registry", where=str(path))


def has_schema(connection: sqlite3.Connection, ddl: Iterable[str]) -> bool:
    """Tell whether a database holds what `ddl` makes and nothing else."""
    with closing(sqlite3.connect(":memory:")) as pattern:
        for statement in ddl:
            pattern.execute(statement)
        return _schema(connection) == _schema(pattern)


def _schema(connection: sqlite3.Connection) -> set[tuple[object, ...]]:
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"))


def meta(connection: sqlite3.Connection) -> dict[str, str]:
    """Return what the database says of itself; nothing of it is verified."""
    return {str(key): str(value) for key, value in connection.execute("SELECT key, value FROM meta")}


class Writing:
    """Runs a block as one write transaction that is on the disk when the block has ended.

    A class, since a log that is written to for every entry would feel the generator of a `contextmanager`.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            # A full disk makes SQLite roll back by itself; a second ROLLBACK would then hide the cause.
            if self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")


def writing(connection: sqlite3.Connection) -> Writing:
    """Return what runs a block as one write transaction."""
    return Writing(connection)


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
def translated(path: Path, *, damaged: Callable[[str, str], CertkitError] | None = None) -> Iterator[None]:
    """Turn SQLite's errors into certkit's.

    `UsageError` ``registry.busy`` or ``file.unwritable`` (a full disk, a folder that cannot be written),
    and for everything else what `damaged` makes of it, by default `MismatchError` ``registry.damaged``.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _translate(error, str(path), damaged or _damaged) from error


def _is_full(path: str) -> bool:
    """Tell whether there is no room for a page, which SQLite says of its own files alone."""
    try:
        return shutil.disk_usage(os.path.dirname(path)).free < _PAGE  # noqa: PTH120 - as it was opened
    except OSError:
        return False


def _damaged(message: str, where: str) -> CertkitError:
    return MismatchError("registry.damaged", message, where=where)


def _translate(
    error: sqlite3.DatabaseError, where: str, damaged: Callable[[str, str], CertkitError]
) -> CertkitError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in _BUSY:
        return UsageError(
            "registry.busy", "another program is writing for too long", where=where, hint="try again later"
        )
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _is_full(where)):
        return UsageError(
            "file.unwritable",
            "no space left on device",
            where=where,
            hint="what is on the disk is sound; make room and try again",
        )
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}:
        return UsageError("file.unwritable", "the registry cannot be opened or written here", where=where)
    if code == sqlite3.SQLITE_IOERR:
        return UsageError("file.unwritable", "the disk refused to read or write", where=where)
    if code == sqlite3.SQLITE_CONSTRAINT and damaged is _damaged:
        # Only what follows from the entries is written without having been looked at before.
        message = f"a derived table holds a row of an entry to come: {error}"
        return MismatchError("registry.inconsistent", message, where=where, hint=REINDEX)
    return damaged(f"damaged: {error}", where)
