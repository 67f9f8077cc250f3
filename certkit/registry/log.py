"""The log: one SQLite file, the passports beside it, and the tree over its entries.

Tables ``leaf`` (the entries), ``tile`` (the tree over them, rightmost tiles partial), ``checkpoint`` (the
signed head), ``cosignature`` (what witnesses signed under it), ``meta`` (format version, origin, verifier
key), and an index that the writer asks: ``lineage`` and ``ending`` (rows of `certkit.registry.fold`).

    with closing(connect(folder, writable=True)) as connection, Writing(connection):
        log = EntryLog(connection)
        log.extend([entry], signer)          # entry, tiles and checkpoint in one transaction

What is trusted: the writer trusts this file, and checks only that its checkpoint is signed by the log's key
and that the right edge of the tree gives the signed root. Whoever can write the file can therefore make the
writer count or supersede wrongly; `certkit.registry.audit` makes everything again from the entries and finds
it, and the remembered head (`certkit.registry.heads`) finds a file that was put back. A proof is handed out
only if it leads to the checkpoint's root.

A file with any other table, index, view or trigger is refused: what others put into a database can run on
opening it. Passports are stored under their digest, so that each can be withdrawn and no text from a
passport becomes part of a path.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import sqlite3
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from certkit.ground import canonical, files
from certkit.ground.errors import CertkitError, InputError, MismatchError, UsageError
from certkit.ground.wording import many
from certkit.tlog import tiles, tree
from certkit.tlog.checkpoint import (
    Checkpoint,
    LogProof,
    open_checkpoint,
    parse_checkpoint,
    sign_checkpoint,
    with_signatures,
)
from certkit.tlog.note import KeyType, VerifierKey, open_note, parse_lines, parse_note, write_note
from certkit.tlog.tree import EMPTY_ROOT, Frontier, Hash, leaf_hash, leaf_hashes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from certkit.tlog.note import Signer

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
    """CREATE TABLE lineage (idx INTEGER PRIMARY KEY, name TEXT NOT NULL, subject TEXT NOT NULL,
    passport_id BLOB, profile BLOB, evidence BLOB, attempt INTEGER, submitter BLOB NOT NULL,
    newest TEXT NOT NULL)""",
    "CREATE INDEX lineage_name ON lineage (name)",
    "CREATE INDEX lineage_passport ON lineage (passport_id) WHERE passport_id IS NOT NULL",
    "CREATE INDEX lineage_evidence ON lineage (name, profile, evidence) WHERE profile IS NOT NULL",
    """CREATE TABLE ending (idx INTEGER PRIMARY KEY, passport_id BLOB NOT NULL, name TEXT NOT NULL,
    how TEXT NOT NULL, reason TEXT, submitter BLOB NOT NULL)""",
    "CREATE INDEX ending_passport ON ending (passport_id)",
    "CREATE INDEX ending_false ON ending (name) WHERE reason = 'evidence-false'",
)
INDEX: Final = ("lineage", "ending")
"""The tables of the index, which follow from the entries; `idx` is the index of an entry."""
FORMAT: Final = "4"
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

    Raises:
        InputError: ``registry.missing`` or ``registry.format``.
        MismatchError: ``registry.damaged``, and what `translated` makes of SQLite's errors.
    """
    path = folder / FILE
    if not path.is_file():
        exported = (folder / "checkpoint").is_file() and (folder / "tile").is_dir()
        raise InputError(
            "registry.missing",
            f"no {FILE} here{', but an exported tree' if exported else ''}",
            where=str(folder),
            hint="'certkit registry audit' and 'certkit registry show' read it"
            if exported
            else "'certkit registry init DIR --name NAME' makes a registry",
        )
    with translated(path), ExitStack() as undo:
        connection = open_file(path, "rw") if writable else open_reading(path)
        undo.callback(connection.close)
        _check(connection, path)
        undo.pop_all()
    return connection


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
    try:
        version = meta(connection).get("format", "")[:16]
    except sqlite3.OperationalError:
        version = ""  # there is no such table
    if version in {"", FORMAT} and not has_schema(connection, _DDL):
        raise MismatchError("registry.damaged", "holds other tables than a registry", where=str(path))
    if version != FORMAT:
        raise InputError(
            "registry.format",
            f"expected format {FORMAT}, found {version or 'none'}",
            where=str(path),
            hint="another version of certkit wrote it" if version else None,
        )


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
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
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
    """Return where the passport with this digest (64 hexadecimal digits) is stored."""
    if _NAME.fullmatch(sha256) is None:
        raise ValueError("not a digest")
    return registry / BLOBS / sha256[:2] / sha256


def store_blob(registry: Path, data: bytes) -> None:
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
    """Return the bytes stored for a digest, not compared with it; None without a regular file."""
    target = blob_path(registry, sha256)
    if target.is_symlink() or target.parent.is_symlink() or not target.is_file():
        return None
    try:
        return files.read(target, limit=canonical.MAX_BYTES)
    except CertkitError:
        return None


def intact_blob(registry: Path, sha256: str) -> bytes | None:
    """Return the bytes stored for a digest, None where they are missing or have another digest."""
    data = load_blob(registry, sha256)
    return data if data is not None and hashlib.sha256(data).hexdigest() == sha256 else None


# The tree over the entries

_AUDIT: Final = "'certkit registry audit' says what is wrong"


@dataclass(slots=True)
class _State:
    """A head that was verified, with the right edge of its tree, which grows with it."""

    key: VerifierKey
    note: bytes
    head: Checkpoint
    frontier: Frontier
    edge: dict[tuple[int, int], bytes]


class EntryLog:
    """The log in an open database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._state: _State | None = None
        self._checked: tuple[bytes, tiles.Read] | None = None

    def begin(self, signer: Signer) -> None:
        """Sign the checkpoint of a log without entries."""
        note = sign_checkpoint(Checkpoint(signer.name, 0, EMPTY_ROOT), signer)
        self._connection.execute("INSERT INTO checkpoint VALUES (0, ?)", (note,))

    def note(self) -> bytes:
        """Return the signed checkpoint as it is stored."""
        rows = self._connection.execute("SELECT note FROM checkpoint").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], bytes):
            raise MismatchError("registry.inconsistent", "the log has not exactly one checkpoint")
        return rows[0][0]

    def cosigned(self) -> bytes:
        """Return the signed checkpoint with the lines of the witnesses that have cosigned it.

        Whatever else the table holds is passed over.
        """
        note, head = self.note(), self.unverified_head()
        rows = self._connection.execute(
            "SELECT CAST(vkey AS BLOB), CAST(line AS BLOB) FROM cosignature WHERE size = ? ORDER BY vkey",
            (head.size,),
        )
        for vkey, line in rows:
            with suppress(CertkitError, UnicodeDecodeError):
                key, lines = VerifierKey.parse(vkey.decode()), parse_lines(line)
                open_note(write_note(head.text, lines), [key])
                if key.type is KeyType.COSIGNATURE:
                    note = with_signatures(note, lines[:1])
        return note

    def cosign(self, size: int, key: VerifierKey, line: str) -> None:
        """Store a cosignature of the checkpoint over `size` entries, the only one of its key."""
        # What is about an older checkpoint is of no use without it; another name makes no other witness.
        _, _, material = str(key).split("+", 2)
        self._connection.execute(
            "DELETE FROM cosignature WHERE size <> ? OR substr(vkey, ?) = ?", (size, -len(material), material)
        )
        self._connection.execute("INSERT INTO cosignature VALUES (?, ?, ?)", (size, str(key), line.encode()))

    def unverified_head(self) -> Checkpoint:
        """Return what the stored checkpoint says, whoever signed it."""
        return parse_checkpoint(parse_note(self.note()).text)

    def tile(self, level: int, n: int) -> bytes:
        """Return the stored hashes of a tile, nothing where there is none."""
        row = self._connection.execute(
            "SELECT hashes FROM tile WHERE level = ? AND n = ?", (level, n)
        ).fetchone()
        return row[0] if row is not None and isinstance(row[0], bytes) else b""

    def entry(self, index: int) -> bytes | None:
        """Return the bytes of an entry, None where the log has no such entry."""
        row = self._connection.execute("SELECT entry FROM leaf WHERE idx = ?", (index,)).fetchone()
        return row[0] if row is not None and isinstance(row[0], bytes) else None

    def entries(self, start: int, stop: int) -> list[bytes]:
        """Return the bytes of entries ``[start, stop)``, as far as the log has them."""
        rows = self._connection.execute(
            "SELECT entry FROM leaf WHERE idx >= ? AND idx < ? ORDER BY idx", (start, stop)
        )
        return [entry for (entry,) in rows if isinstance(entry, bytes)]

    def verified_head(self, vkey: VerifierKey) -> Checkpoint:
        """Return the head, once it is shown to be signed by a key and to be that of the stored tiles.

        Raises:
            MismatchError: ``registry.inconsistent``.
        """
        try:
            head = open_checkpoint(self.note(), vkey).checkpoint
            tiles.verified(head.size, head.root, self.tile)
        except CertkitError as error:
            raise MismatchError("registry.inconsistent", error.message) from None
        return head

    def prove(self, index: int) -> LogProof:
        """Return the proof that an entry is in the log, the entry itself in its extra data.

        Raises:
            UsageError: ``registry.unknown``.
            MismatchError: where the log contradicts itself.
        """
        note = self.cosigned()
        head = self.unverified_head()
        entry = self.entry(index)
        if entry is None or not 0 <= index < head.size:
            raise UsageError("registry.unknown", f"no entry {index} in a log of {head.size:,}")
        hashes = tree.inclusion_proof(index, head.size, tiles.node_reader(self.tile))
        tree.verify_inclusion(leaf_hash(entry), index, head.size, hashes, head.root)
        return LogProof(index, tuple(hashes), note, entry)

    def _proven(self) -> tiles.Read:
        """Return what reads tiles, every hash proven by the checkpoint as it stands."""
        note = self.note()
        if self._checked is None or self._checked[0] != note:
            head = self.unverified_head()
            self._checked = note, tiles.verified(head.size, head.root, self.tile)
        return self._checked[1]

    def repair(self) -> list[str]:
        """Make the tiles again from the entries; return which were wrong.

        Raises:
            MismatchError: ``registry.inconsistent`` where the entries are not the checkpoint's: what was
                signed cannot be made again.
        """
        head, right = self.unverified_head(), list[tuple[int, int, bytes]]()
        made = tiles.Rebuild(self.tile, lambda level, n, row: right.append((level, n, row)))
        stored = self._connection.execute("SELECT entry FROM leaf ORDER BY idx")
        while batch := stored.fetchmany(tiles.WIDTH):
            made.add(leaf_hashes(entry for (entry,) in batch if isinstance(entry, bytes)))
        made.finish()
        if (made.size, made.root) != (head.size, head.root):
            message = f"the entries are not those of the checkpoint over {head.size:,}, nothing was repaired"
            raise MismatchError("registry.inconsistent", message)
        self._connection.executemany("REPLACE INTO tile VALUES (?, ?, ?)", right)
        self._state = self._checked = None
        return [f"tile {level}/{n}" for level, n, _ in sorted(right)]

    def root_at(self, size: int) -> Hash:
        """Return the root that the tree had at a size up to its own, every hash proven by the checkpoint.

        Raises:
            MismatchError: ``tlog.tile``.
        """
        return tree.root(size, tiles.node_reader(self._proven()))

    def trust(self, signer: Signer) -> Checkpoint:
        """Return the head, once it is shown to be `signer`'s and about what is stored.

        Raises:
            UsageError: ``registry.log-key``.
            MismatchError: ``registry.inconsistent``.
        """
        return self._trusted(signer).head

    def extend(self, entries: Sequence[bytes], signer: Signer, *others: Signer) -> Checkpoint:
        """Add entries, whose bytes are new to the log, and sign the checkpoint over all; `others` sign too.

        Raises as `trust` does.
        """
        # The edge grows in its place: what fails half-way is forgotten.
        state, self._state = self._trusted(signer), None
        size = state.head.size
        hashes = leaf_hashes(entries)
        changed = tiles.grow(size, hashes, lambda level, n: state.edge.get((level, n), b""))
        for place, row in changed.items():
            if len(row) < tiles.FULL:
                state.edge[place] = row
            else:
                state.edge.pop(place, None)
        for leaf in hashes:
            state.frontier.add(leaf)
        state.head = Checkpoint(signer.name, state.frontier.size, state.frontier.root)
        state.note = sign_checkpoint(state.head, signer, *others)
        many = self._connection.executemany
        many("INSERT INTO leaf VALUES (?, ?)", enumerate(entries, size))
        many("REPLACE INTO tile VALUES (?, ?, ?)", [(*place, row) for place, row in changed.items()])
        self._connection.execute("UPDATE checkpoint SET size = ?, note = ?", (state.head.size, state.note))
        self._state = state
        return state.head

    def _trusted(self, signer: Signer) -> _State:
        # A transaction that was rolled back leaves another checkpoint than the one in memory.
        note, state = self.note(), self._state
        if state is None or state.note != note or state.key != signer.vkey:
            state = self._state = self._verified(signer.vkey, note)
        return state

    def _verified(self, key: VerifierKey, note: bytes) -> _State:
        try:
            size = parse_checkpoint(parse_note(note).text).size
        except CertkitError as error:
            raise MismatchError("registry.inconsistent", error.message) from None
        (last,) = self._connection.execute("SELECT max(idx) FROM leaf").fetchone()
        if (-1 if last is None else last) != size - 1:
            message = f"the checkpoint speaks of {many(size, 'entry')}, the last one stored is {last}"
            raise MismatchError("registry.inconsistent", message, hint=_AUDIT)
        try:
            head = open_checkpoint(note, key).checkpoint
        except MismatchError:
            raise UsageError(
                "registry.log-key",
                "the registry's checkpoint was not signed with this log key",
                hint="give the registry's own key with --log-key",
            ) from None
        edge = {place: self.tile(*place) for place in _edge(size)}
        try:
            frontier = Frontier.of(size, tiles.node_reader(lambda level, n: edge.get((level, n), b"")))
        except CertkitError as error:
            raise MismatchError("registry.inconsistent", error.message) from None
        if frontier.root != head.root:
            message = "the stored tree does not have the root that was signed"
            raise MismatchError("registry.inconsistent", message, hint=_AUDIT)
        return _State(key, note, head, frontier, edge)


def _edge(size: int) -> list[tuple[int, int]]:
    """Return the places of the tiles that are not full, on which alone the root of a tree rests."""
    edge, level = [], 0
    while count := size >> (tiles.HEIGHT * level):
        if count % tiles.WIDTH:
            edge.append((level, count // tiles.WIDTH))
        level += 1
    return edge
