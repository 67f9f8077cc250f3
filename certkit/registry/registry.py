"""The operations on a registry: make, append, look up, prove.

with Registry.open(folder, writable=True) as registry:
appended = registry.append(passport, check=check, submitter=key, log_key=log_key, at=now)
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Self
from uuid import NAMESPACE_URL, uuid5

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Struct

from certkit import files
from certkit.errors import MismatchError, UsageError
from certkit.passport import keys
from certkit.registry import blobs, store
from certkit.registry.entry import Claims, Entry, Previous, Stored, UnverifiedEntry, read, timestamp, write
from certkit.registry.log import Log
from certkit.tlog.hashing import Hash, leaf_hash
from certkit.tlog.note import Signer, VerifierKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from certkit.passport.keys import PrivateKey
    from certkit.registry.entry import Check, PassportFacts
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.proof import LogProof

KEY_FILE: Final = "log-key.pem"

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")
_IDENT: Final = re.compile(r"(?:sha256:)?([0-9a-f]{8,64})")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,15}")
_HEX: Final = 64


class Appended(Struct, frozen=True, kw_only=True):
    """What became of an append: the index, whether it is a new one, and the proof to hand out."""

    index: int
    new: bool
    proof: LogProof


class Logged(Struct, frozen=True):
    """An entry with its place. Its signature is not verified; its place in the tree is by `prove`."""

    index: int
    leaf: Hash
    found: UnverifiedEntry


def load_log_key(path: Path) -> Ed25519PrivateKey:
    """Return the log's private key from a PEM file; raise `UsageError` ``registry.log-key``."""
    key = keys.load_private(path)
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(
            "registry.log-key",
            "not an Ed25519 key",
            where=str(path),
            hint="logs are signed with Ed25519; 'certkit keys generate' makes such a key",
        )
    return key


def make_log_key() -> Ed25519PrivateKey:
    """Return a new key to sign a log with, from the operating system's randomness."""
    return Ed25519PrivateKey.generate()


class Registry:
    """An open registry. Made by `open`; use it in a ``with`` block."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self._folder = folder
        self._connection = connection
        self._log = Log(connection)

    @classmethod
    def init(
        cls, folder: Path, name: str, log_key: Ed25519PrivateKey, *, at: datetime, keep_key: bool = True
    ) -> VerifierKey:
        """Make an empty registry and return the log's verifier key, which is to be published.

        The origin is ``certkit.<name>/<UUID>``, the UUID made from the key and the time `at`, so that a
        key that is used again does not speak for two logs of one name. With `keep_key` the private key is
        kept in the folder (``log-key.pem``, 0600). Raises `UsageError` ``registry.name`` or
        ``file.exists``.
        """
        if _NAME.fullmatch(name) is None:
            raise UsageError(
                "registry.name",
                f"{name!r} cannot name a registry",
                hint="lower-case letters, digits, dots and hyphens, at most 63",
            )
        made_at = at.astimezone(UTC).isoformat(timespec="microseconds")
        unique = uuid5(NAMESPACE_URL, f"urn:certkit:log:{keys.key_id(log_key.public_key())}:{made_at}")
        signer = Signer(f"certkit.{name}/{unique}", log_key)
        with files.building(folder) as made:
            with store.creating(made, {"origin": signer.name, "vkey": str(signer.vkey)}) as connection:
                Log(connection).begin(signer)
            (made / blobs.FOLDER).mkdir()
            if keep_key:
                keys.write_private(made / KEY_FILE, log_key, passphrase=None)
        return signer.vkey

    @classmethod
    def open(cls, folder: Path, *, writable: bool = False, patience: float = store.PATIENCE) -> Self:
        """Open a registry; `patience` is how many seconds to wait for another writer.

        Raises `InputError` ``registry.missing`` or ``registry.format``, `MismatchError`
        ``registry.damaged``, `UsageError` ``file.unwritable``.
        """
        return cls(folder, store.connect(folder, writable=writable, patience=patience))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    @property
    def origin(self) -> str:
        """The name that the log gives itself."""
        return store.meta(self._connection).get("origin", "")

    def head(self) -> Checkpoint:
        """Return what the stored checkpoint says; its signature is not verified."""
        with store.translated(self._path):
            return self._log.unverified_head()

    def checkpoint(self) -> bytes:
        """Return the signed checkpoint."""
        with store.translated(self._path):
            return self._log.note()

    def append(
        self,
        passport: bytes,
        *,
        check: Check,
        submitter: PrivateKey,
        log_key: Ed25519PrivateKey,
        at: datetime,
    ) -> Appended:
        """Log a passport that `check` accepts; the same passport again is its first index.

        `submitter` signs the entry, `log_key` the checkpoint; `at` is the time of the entry, with a zone.
        When this returns, the passport, its entry and the checkpoint are on the disk. When it raises,
        nothing was added. Raises whatever `check` raises; `MismatchError` ``registry.supersedes`` or
        ``registry.inconsistent``; `UsageError` ``registry.log-key``, ``registry.busy`` or
        ``file.unwritable``.
        """
        facts = check(passport)
        signer = Signer(self.origin, log_key)
        stored = None
        try:
            with store.translated(self._path), store.writing(self._connection):
                index = self._first(facts.passport_id)
                if index is not None:
                    return Appended(index=index, new=False, proof=self._log.prove(index))
                entry = self._entry(facts, passport, submitter, at)
                stored = blobs.store(self._folder, passport)
                size = self._log.extend([entry], signer).size
                self._index(size - 1, read(entry))
                appended = Appended(index=size - 1, new=True, proof=self._log.prove(size - 1))
        except BaseException:
            if stored is not None:
                self._discard(stored, facts.passport_id)
            raise
        return appended

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[Logged]:
        """Yield entries ``[start, stop)`` in order, on one state of the log.

        Raises `InputError` ``registry.entry`` for what is none.
        """
        with store.translated(self._path), store.reading(self._connection):
            rows = self._connection.execute(
                "SELECT idx, entry FROM leaf WHERE idx >= ? AND idx < ? ORDER BY idx",
                (start, self._log.unverified_head().size if stop is None else stop),
            )
            for index, data in rows:
                yield Logged(index, leaf_hash(data), read(data))

    def find(self, ident: str) -> int:
        """Return the index of an entry by its index, or a passport's by its id or the beginning of it.

        Raises `UsageError` ``registry.unknown``.
        """
        if _INDEX.fullmatch(ident):
            with store.translated(self._path):
                if self._log.entry(int(ident)) is not None:
                    return int(ident)
        if match := _IDENT.fullmatch(ident):
            low = f"sha256:{match[1]}"
            with store.translated(self._path):
                found = self._connection.execute(
                    "SELECT passport_id, min(idx) FROM entry_index WHERE passport_id >= ? AND passport_id < ?"
                    " AND type = 'passport' GROUP BY passport_id LIMIT 2",
                    (low, low + "g"),
                ).fetchall()
            if len(found) == 1:
                return int(found[0][1])
            if found:
                raise UsageError("registry.unknown", f"several passports begin with {ident}")
        raise UsageError(
            "registry.unknown",
            f"no entry {ident[:80]!r}",
            where=str(self._folder),
            hint="give an index, a passport id, or at least the first 8 digits of one",
        )

    def logged(self, index: int) -> Logged:
        """Return an entry; raise `UsageError` ``registry.unknown``, `InputError` ``registry.entry``."""
        with store.translated(self._path):
            data = self._log.entry(index)
        if data is None:
            raise UsageError("registry.unknown", f"no entry {index}", where=str(self._folder))
        return Logged(index, leaf_hash(data), read(data))

    def passport(self, sha256: str) -> bytes | None:
        """Return a stored passport by the digest of its file, None where it is missing or changed."""
        data = blobs.load(self._folder, sha256)
        return data if data is not None and hashlib.sha256(data).hexdigest() == sha256 else None

    def prove(self, index: int) -> LogProof:
        """Return the proof that an entry is in the log as its checkpoint stands now."""
        with store.translated(self._path), store.reading(self._connection):
            return self._log.prove(index)

    @property
    def _path(self) -> Path:
        return self._folder / store.FILE

    def _first(self, passport_id: str) -> int | None:
        (index,) = self._connection.execute(
            "SELECT min(idx) FROM entry_index WHERE passport_id = ? AND type = 'passport'", (passport_id,)
        ).fetchone()
        return None if index is None else int(index)

    def _entry(self, facts: PassportFacts, passport: bytes, submitter: PrivateKey, at: datetime) -> bytes:
        execute = self._connection.execute
        (last,) = execute("SELECT max(idx) FROM entry_index").fetchone()
        if (-1 if last is None else last) != self._log.unverified_head().size - 1:
            raise MismatchError("registry.inconsistent", "the derived tables are not those of this log")
        latest = execute(
            "SELECT passport_id FROM entry_index WHERE lineage = ? AND type = 'passport'"
            " ORDER BY idx DESC LIMIT 1",
            (facts.lineage,),
        ).fetchone()
        if facts.supersedes is not None and facts.supersedes != (latest[0] if latest else None):
            raise MismatchError(
                "registry.supersedes",
                f"expected to supersede {latest[0] if latest else 'nothing'}, found {facts.supersedes}",
                hint=f"the latest passport of {facts.lineage} in this registry is what can be superseded",
            )
        (earlier,) = execute(
            "SELECT count(*) FROM entry_index WHERE lineage = ? AND profile = ? AND type = 'passport'",
            (facts.lineage, facts.profile),
        ).fetchone()
        entry = Entry(
            type="passport",
            subject=facts.lineage,
            passport=Stored(sha256=hashlib.sha256(passport).hexdigest(), size=len(passport)),
            claims=msgspec.to_builtins(Claims.of(facts, earlier + 1)),
            prev=self._previous(facts.lineage),
            issued_at=timestamp(at),
            submitter=keys.key_id(submitter.public_key()),
        )
        return write(entry, submitter)

    def _previous(self, lineage: str) -> Previous | None:
        (index,) = self._connection.execute(
            "SELECT max(idx) FROM entry_index WHERE lineage = ?", (lineage,)
        ).fetchone()
        data = None if index is None else self._log.entry(index)
        return None if data is None else Previous(index=index, leaf=leaf_hash(data).hex())

    def _discard(self, stored: Path, passport_id: str) -> None:
        """Remove a passport whose append failed, unless an entry came to need it."""
        # Under the lock, since another writer may be logging the same passport; and a failure may come
        # after the commit, when the passport must stay.
        with suppress(sqlite3.Error, OSError):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                if self._first(passport_id) is None:
                    stored.unlink(missing_ok=True)
            finally:
                self._connection.execute("ROLLBACK")

    def _index(self, index: int, found: UnverifiedEntry) -> None:
        self._connection.execute("INSERT INTO entry_index VALUES (?, ?, ?, ?, ?)", index_row(index, found))


def index_row(index: int, found: UnverifiedEntry) -> tuple[int, str, str, str | None, str | None]:
    """Return the row of the derived table for an entry."""
    claims = found.claims
    return (
        index,
        found.entry.type,
        found.entry.subject,
        claims.passport_id if claims else None,
        claims.profile if claims else None,
    )
