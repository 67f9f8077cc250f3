"""The newest head of each log, remembered outside the registry, so that a restored backup cannot fork it.

One small SQLite file in the user's state folder holds the newest checkpoint of every log that this user
signs for or audits, by the key that signed it. The program does not sign on a registry that was put back to
an older state or replaced by another one: two different logs under one key would prove that their keeper
cheated. A log that is not in the file is believed once.

    heads = Heads.open(path)
    with heads.held(vkey) as head:             # no other process signs for this user meanwhile
        head.advance(note, root_at)            # raises unless the log continues what was signed last
        …                                      # the new checkpoint is on the registry's disk
        head.advance(newer, root_at)           # and is remembered when the block has ended

The order is: registry, then this file, then the proof is handed out. A crash in between leaves a head that
is older than the registry, which is no contradiction; the next writer catches up.
"""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing, contextmanager, suppress
from shlex import quote
from typing import TYPE_CHECKING, Final

from certkit.ground import files
from certkit.ground.errors import CertkitError, InputError, MismatchError
from certkit.ground.wording import many
from certkit.registry.log import Writing, has_schema, open_file, open_reading, translated
from certkit.tlog.checkpoint import Checkpoint, parse_checkpoint
from certkit.tlog.note import open_note, parse_note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from certkit.tlog.note import VerifierKey
    from certkit.tlog.tree import Hash

    RootAt = Callable[[int], Hash]
    """Returns the root that the registry's tree had at a size up to its own, proven by its checkpoint."""

DDL: Final = ("CREATE TABLE head (vkey TEXT PRIMARY KEY, note BLOB NOT NULL) WITHOUT ROWID",)
"""The newest signed checkpoint, by the log's verifier key."""

ASK: Final = "ask whoever keeps the log for it as it is now; it had more, or other, entries before"
BRING_BACK: Final = (
    "bring back the newest state; if that is lost, this log has ended: 'certkit registry init' anew"
)
"""What its keeper can do about a log that was put back; others can only ask."""


class Head:
    """The newest head of one log that one of its keys signed, while nobody else may change it."""

    def __init__(self, connection: sqlite3.Connection, keys: Sequence[VerifierKey]) -> None:
        self._connection, self._keys = connection, keys
        self._note = _note(connection, keys)

    def advance(self, note: bytes, root_at: RootAt) -> None:
        """Remember a signed checkpoint of the log, of each key that signed it, if it continues what is known.

        Raises:
            MismatchError: ``registry.rollback`` where the log is shorter, or another one.
        """
        if note == self._note:
            return
        if self._note is not None:
            refuse_fork(head_of(self._note), head_of(note), root_at, hint=BRING_BACK)
        signers = [key for key in self._keys if _is_by(note, key)]
        if not signers:
            raise ValueError("a checkpoint that none of the log's keys signed")
        for key in signers:
            self._connection.execute("REPLACE INTO head VALUES (?, ?)", (str(key), note))
        self._note = note


def head_of(note: bytes) -> Checkpoint:
    """Return the checkpoint in a signed note, whoever signed it."""
    return parse_checkpoint(parse_note(note).text)


def refuse_fork(
    old: Checkpoint, new: Checkpoint, root_at: RootAt, *, where: str | None = None, hint: str = ASK
) -> None:
    """Raise `MismatchError` ``registry.rollback`` unless the log of `new` goes on from `old`."""
    if new.size < old.size:
        message = f"of {many(new.size, 'entry')} now, and of {old.size:,} when it was signed before"
        raise MismatchError("registry.rollback", message, where=where, hint=hint)
    if root_at(old.size) != old.root:
        message = f"not the log that was signed before: its first {many(old.size, 'entry')} are others"
        raise MismatchError("registry.rollback", message, where=where, hint=hint)


class Heads:
    """The file of heads, open for those who sign."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> Heads:
        """Open the file, or make it.

        Raises:
            UsageError: ``registry.busy`` or ``file.unwritable``.
            InputError: ``registry.heads`` where it holds something else.
        """
        _is_there(path)
        files.make_folder(path.parent)
        with translated(path, damaged=_unreadable), ExitStack() as undo:
            connection = open_file(path, "rwc")
            undo.callback(connection.close)
            with Writing(connection):
                is_new = connection.execute("PRAGMA schema_version").fetchone() == (0,)
                for statement in DDL if is_new else ():
                    connection.execute(statement)
                _check(connection, path)
            # Where another writer is in the way, the file stays in its slower and equally safe mode.
            with suppress(sqlite3.OperationalError):
                connection.execute("PRAGMA journal_mode = WAL")
            undo.pop_all()
        return cls(path, connection)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def held(self, *keys: VerifierKey) -> Iterator[Head]:
        """Hold the head of a log, by any of its keys; what it advanced to is on the disk when the block ends.

        Nothing is remembered if the block raises. Raises as `open` does.
        """
        with translated(self._path, damaged=_unreadable), Writing(self._connection):
            yield Head(self._connection, keys)


def remembered(path: Path, *keys: VerifierKey) -> Checkpoint | None:
    """Return the newest head that one of a log's keys signed, None where there is none; nothing is written.

    Raises:
        InputError: ``registry.heads`` where the file cannot be read.
    """
    if not _is_there(path):
        return None
    with translated(path, damaged=_unreadable), closing(open_reading(path)) as connection:
        _check(connection, path)
        note = _note(connection, keys)
    return None if note is None else head_of(note)


def _is_there(path: Path) -> bool:
    """Tell whether there is a file of heads; raise `InputError` ``registry.heads`` for what is none."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _unreadable((error.strerror or type(error).__name__).lower(), str(path)) from error
    if not path.is_file():
        raise _unreadable("is no file", str(path))
    return True


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if not has_schema(connection, DDL):
        raise _unreadable("holds other tables: another version of certkit wrote it", str(path))


def _note(connection: sqlite3.Connection, keys: Sequence[VerifierKey]) -> bytes | None:
    """Return the checkpoint over the most entries that is stored for one of some keys."""
    notes: list[bytes] = []
    for key in keys:
        row = connection.execute("SELECT note FROM head WHERE vkey = ?", (str(key),)).fetchone()
        if row is not None and not (isinstance(row[0], bytes) and _is_by(row[0], key)):
            raise _unreadable("holds something else than a checkpoint by the key that it is stored under")
        notes += row or ()
    return max(notes, key=lambda note: head_of(note).size, default=None)


def _is_by(note: bytes, key: VerifierKey) -> bool:
    try:
        return parse_checkpoint(open_note(note, [key]).text).origin == key.name
    except CertkitError:
        return False


def _unreadable(message: str, where: str | None = None) -> InputError:
    # Where the file itself is at fault, what to do is the user's choice alone: only they know if a log that
    # it knew was ever put back.
    away = "move it away" if where is None else f"mv {quote(where)} {quote(f'{where}.old')}"
    return InputError(
        "registry.heads",
        message,
        where=where,
        hint=f"{away}\nthat forgets which checkpoints were seen, so that a restored backup could fork a log:"
        " first audit each registry with a checkpoint that you kept, certkit registry audit DIR --since FILE",
    )
