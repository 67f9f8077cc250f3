"""The store of record: one SQLite file, written durably, opened with suspicion; and the passports beside it.

Tables ``leaf`` (the entries), ``tile`` (the tree over them, rightmost tiles partial), ``checkpoint`` (the
signed head), ``cosignature`` (what witnesses signed under it) and ``meta`` (format version, origin, verifier
key). A file with any other table, index, view or trigger is refused: what others put into a database can run
on opening it. A file of another version of the format is refused too.

The passports stand outside the log and under their digest, so that each can be withdrawn. Only digests become
names, so no text from a passport is ever part of a path.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import sqlite3
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from certkit.ground import canonical, files
from certkit.ground.errors import CertkitError, InputError, MismatchError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

FILE: Final = "registry.db"
PATIENCE: Final = 60.0
"""Seconds that a writer waits for another one."""

_PAGE: Final = 16_384
_DDL: Final = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE leaf (idx INTEGER PRIMARY KEY, entry BLOB NOT NULL)",
    "CREATE TABLE tile (level INTEGER, n INTEGER, hashes BLOB NOT NULL, PRIMARY KEY (level, n))",
    "CREATE TABLE checkpoint (size INTEGER PRIMARY KEY, note BLOB NOT NULL)",
    """CREATE TABLE cosignature (size INTEGER, vkey TEXT, line BLOB NOT NULL,
    PRIMARY KEY (size, vkey)) WITHOUT ROWID""",
)
FORMAT: Final = "3"
BLOBS: Final = "blobs"
"""The folder of the passports, ``blobs/<first 2 hexadecimal digits>/<SHA-256>``."""

_NAME: Final = re.compile(r"[0-9a-f]{64}")
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
    with translated(path), closing(open_file(path, "rwc")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        with Writing(connection):
            for statement in _DDL:
                connection.execute(statement)
            connection.executemany("INSERT INTO meta VALUES (?, ?)", [*meta.items(), ("format", FORMAT)])
            yield connection


def connect(folder: Path, *, writable: bool) -> sqlite3.Connection:
    """Open the database of a registry, its format checked.

    Raises `InputError` ``registry.missing`` or ``registry.format``, `MismatchError` ``registry.damaged``,
    and what `translated` makes of SQLite's errors.
    """
    path = located(folder)
    with translated(path), ExitStack() as undo:
        connection = open_file(path, "rw") if writable else open_reading(path)
        undo.callback(connection.close)
        _check(connection, path)
        undo.pop_all()
    return connection


def located(folder: Path) -> Path:
    """Return the database of a registry; raise `InputError` ``registry.missing`` where there is none."""
    path = folder / FILE
    if not path.is_file():
        exported = (folder / "checkpoint").is_file() and (folder / "tile").is_dir()
        raise InputError(
            "registry.missing",
            f"no {FILE} here{', but an exported tree' if exported else ''}",
            where=str(folder),
            hint="'certkit registry audit', 'history' and 'list' read it"
            if exported
            else "'certkit registry init DIR --name NAME' makes a registry",
        )
    return path


def open_reading(path: Path) -> sqlite3.Connection:
    """Open a database that this program does not write; its schema is the caller's to check.

    What SQLite needs beside the file to read it is gone when the last reader has closed it.
    """
    if _is_at_rest(path):
        with suppress(sqlite3.OperationalError):
            # A connection that may not write cannot clean up behind it either, so this one only must not.
            connection = open_file(path, "rw")
            connection.execute("PRAGMA query_only = ON")
            return connection
    try:
        return open_file(path, "ro")
    except sqlite3.OperationalError as error:
        # A reader of a WAL database needs its shared memory beside it. Where the folder cannot be written
        # and no writer left a log behind, nothing can change and the file alone is all there is.
        unwritable = error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
        if not unwritable or path.with_name(f"{path.name}-wal").exists():
            raise
    return open_file(path, "ro&immutable=1")


def _is_at_rest(path: Path) -> bool:
    """Tell whether SQLite may write here and has nothing to finish: a stranger's journal is not played."""
    real = path.resolve()
    if not (os.access(real, os.W_OK) and os.access(real.parent, os.W_OK)):
        return False
    try:
        beside = {item.name: item.stat().st_size for item in real.parent.glob(f"{glob.escape(real.name)}-*")}
    except OSError:
        return False  # another program came or went meanwhile
    return f"{real.name}-journal" not in beside and not beside.get(f"{real.name}-wal")


def open_file(path: Path, mode: str) -> sqlite3.Connection:
    """Open a database in a mode of SQLite's URIs, set to write durably; its schema is not checked."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=PATIENCE
    )
    with ExitStack() as undo:
        undo.callback(connection.close)
        for statement in _SETTINGS:
            connection.execute(statement)
        connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
        undo.pop_all()
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    version = _version(connection)
    if version in {"", FORMAT} and not has_schema(connection, _DDL):
        raise MismatchError("registry.damaged", "holds other tables than a registry", where=str(path))
    if version != FORMAT:
        raise InputError(
            "registry.format",
            f"expected format {FORMAT}, found {version or 'none'}",
            where=str(path),
            hint="another version of certkit wrote it" if version else None,
        )


def _version(connection: sqlite3.Connection) -> str:
    """Return the version of the format that a database says it has, nothing where it says none."""
    try:
        return meta(connection).get("format", "")[:16]
    except sqlite3.OperationalError:
        return ""  # there is no such table


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
    if code == sqlite3.SQLITE_FULL:
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
    return damaged(f"damaged: {error}", where)


# The passports beside the database


def blob_path(registry: Path, sha256: str) -> Path:
    """Return where the passport with this digest (64 hexadecimal digits) is kept."""
    if _NAME.fullmatch(sha256) is None:
        raise ValueError("not a digest")
    return registry / BLOBS / sha256[:2] / sha256


def keep_blob(registry: Path, data: bytes) -> None:
    """Write a passport durably.

    Called by one writer at a time. A file that is there but has other bytes is replaced.
    """
    sha256 = hashlib.sha256(data).hexdigest()
    target = blob_path(registry, sha256)
    if load_blob(registry, sha256) == data:
        files.flush(target, registry / BLOBS)
    elif target.parent.is_dir():
        files.write(target, data)
    else:
        # The new folder appears with the file in it and is on the disk before this returns.
        with files.building(target.parent) as folder:
            files.write(folder / sha256, data)


def load_blob(registry: Path, sha256: str) -> bytes | None:
    """Return the bytes kept for a digest, whatever they are; None where there is no regular file."""
    target = blob_path(registry, sha256)
    if target.is_symlink() or target.parent.is_symlink() or not target.is_file():
        return None
    try:
        return files.read(target, limit=canonical.MAX_BYTES)
    except CertkitError:
        return None


def intact_blob(registry: Path, sha256: str) -> bytes | None:
    """Return the bytes kept for a digest, None where they are missing or have another one."""
    data = load_blob(registry, sha256)
    return data if data is not None and hashlib.sha256(data).hexdigest() == sha256 else None
