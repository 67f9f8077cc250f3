"""The operations on a registry: make, append, look up, prove, change the log's key.

    with Registry.open(folder, heads=path) as registry:
        appended = registry.append(passport, check=check, submitter=key, log_key=log_key, at=now)

Whoever opens one for writing says where the heads are remembered that were signed (`certkit.registry.heads`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Self
from uuid import NAMESPACE_URL, uuid5

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit.ground import files
from certkit.ground.errors import CertkitError, UsageError
from certkit.ground.progress import SILENT, Progress
from certkit.passport import keys
from certkit.registry import store
from certkit.registry.drifts import Line, logged
from certkit.registry.entry import KeyChange, Logged, Stored, is_index, read
from certkit.registry.heads import Heads, refuse_fork, remembered
from certkit.registry.ledger import Ledger, Warn
from certkit.registry.log import KEY_FILE, NEXT_KEY, Log, load_log_key
from certkit.registry.writing import Appended, Turn
from certkit.tlog.note import Signer, VerifierKey
from certkit.tlog.tree import leaf_hash

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from certkit.passport.keys import PrivateKey
    from certkit.passport.trust import Trust
    from certkit.registry.drifts import Compared
    from certkit.registry.entry import Check, PassportFacts
    from certkit.registry.heads import Head
    from certkit.tlog.checkpoint import Checkpoint, LogProof

Compare = Callable[[Iterable[bytes | None]], "Compared | None"]
"""Compares the last of some passports with those before it; see `certkit.registry.drifts.compared`."""

SPARED: Final = 5_000
"""How many entries the next one who writes would have to read before a snapshot of them is kept."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")


class Registry:
    """An open registry. Made by `open`; use it in a ``with`` block."""

    def __init__(
        self,
        folder: Path,
        connection: sqlite3.Connection,
        heads: Heads | None = None,
        *,
        progress: Progress = SILENT,
        warn: Warn = lambda _: None,
    ) -> None:
        self._folder, self._connection, self._heads = folder, connection, heads
        self._log = Log(connection)
        self._saved = 0
        self._known = Ledger(
            self._log,
            where=str(folder),
            progress=progress,
            warn=warn,
            load=self.passport,
        )

    @classmethod
    def init(
        cls, folder: Path, name: str, log_key: Ed25519PrivateKey, *, at: datetime, keep_key: bool = True
    ) -> VerifierKey:
        """Make an empty registry and return the log's verifier key, which is to be published.

        The origin is ``certkit.<name>/<UUID>``, the UUID made from the key and the time `at`. With `keep_key`
        the private key is kept in the folder (``log-key.pem``, 0600). Raises `UsageError` ``registry.name``
        or ``file.exists``.
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
            (made / store.BLOBS).mkdir()
            if keep_key:
                keys.write_private(made / KEY_FILE, log_key, passphrase=None)
        return signer.vkey

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        heads: Path | None = None,
        progress: Progress = SILENT,
        warn: Warn = lambda _: None,
    ) -> Self:
        """Open a registry, for writing if it is said where the signed heads are remembered.

        `progress` is told how far the entries are read, which the first to write does, and `warn` receives
        the complaint about a snapshot of them that is false. Raises `InputError` ``registry.missing`` or
        ``registry.format``, `MismatchError` ``registry.damaged``, `UsageError` ``file.unwritable``, and what
        `Heads.open` does.
        """
        with ExitStack() as undo:
            connection = store.connect(folder, writable=heads is not None)
            undo.callback(connection.close)
            remembered = Heads.open(heads) if heads else None
            opened = cls(folder, connection, remembered, progress=progress, warn=warn)
            undo.pop_all()
        return opened

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        if self._heads:
            self._heads.close()

    @property
    def origin(self) -> str:
        """The name that the log gives itself."""
        return store.meta(self._connection).get("origin", "")

    @property
    def vkey(self) -> VerifierKey:
        """The verifier key that the log says it has; whether to trust it is not the log's to say."""
        return VerifierKey.parse(store.meta(self._connection).get("vkey", ""))

    @contextmanager
    def reading(self) -> Iterator[Log]:
        """Give the log for a block that sees one state of it."""
        with store.translated(self._path), store.reading(self._connection):
            yield self._log

    def head(self) -> Checkpoint:
        """Return what the stored checkpoint says; its signature is not verified."""
        with store.translated(self._path):
            return self._log.unverified_head()

    def signed_head(self, heads: Path) -> Checkpoint:
        """Return the head that the registry's own key signed.

        Raises `MismatchError` ``registry.rollback`` unless it goes on from what the file `heads` remembers.
        """
        with self.reading() as log:
            head = log.verified_head(self.vkey)
            if earlier := remembered(heads, self.vkey):
                refuse_fork(earlier, head, log.root_at)
        return head

    def checkpoint(self) -> bytes:
        """Return the signed checkpoint, with the cosignatures that were gathered for it."""
        with store.translated(self._path):
            return self._log.cosigned()

    def append(
        self,
        passport: bytes,
        *,
        check: Check,
        submitter: PrivateKey,
        log_key: Ed25519PrivateKey,
        at: datetime,
        compare: Compare = lambda _: None,
        trust: Trust | None = None,
    ) -> Appended:
        """Log a passport that `check` accepts; the same passport again is its first index.

        With a policy, nothing but what its keys signed for this log dates it, or has logged it already. A
        drift that `compare` finds is logged after it, in one with it. `submitter` signs the entries,
        `log_key` the checkpoint; `at` is their time. When this returns, all is on the disk and the
        checkpoint is remembered; when it raises, no entry was added, unless it is the remembering that
        failed. A failure of the disk may leave the passport's file. Raises whatever `check` raises;
        `MismatchError` ``registry.evidence-false``, ``registry.lineage``, ``registry.supersedes``,
        ``registry.attempt``, ``registry.time``, ``registry.inconsistent`` or ``registry.rollback``;
        `UsageError` ``registry.log-key``, ``registry.busy`` or ``file.unwritable``.
        """
        facts = check(passport, at)
        with self.turn(log_key, trust) as turn:
            index, compared = self._known.first(facts.passport_id), None
            new = index is None
            if index is None:
                claims = turn.claims(facts)
                file = Stored(sha256=hashlib.sha256(passport).hexdigest(), size=len(passport))
                compared = compare(self._line(facts, passport))
                entry = turn.draft(facts.lineage, claims, submitter=submitter, at=at, passport=file)
                index = turn.add(entry)
                if compared and (drift := logged(facts.passport_id, compared)):
                    turn.log(facts.lineage, drift, submitter=submitter, at=at)
                store.keep_blob(self._folder, passport)  # on the disk before its entry is committed
        return Appended(index=index, new=new, compared=compared)

    @contextmanager
    def turn(
        self, log_key: Ed25519PrivateKey, trust: Trust | None = None, *more: VerifierKey
    ) -> Iterator[Turn]:
        """Hold the write lock: reads inside the block see a state that no other process can change.

        The log must go on from what was signed last. What was logged is on the disk and remembered when the
        block has ended, what a key of `more` signed too of that key as well. Who may say what is for the
        caller to decide. Raises as `append` does.
        """
        if self._heads is None:
            raise ValueError("opened for reading")
        signer = Signer(self.origin, log_key)
        with self._heads.held(signer.vkey, *more) as remembered:
            with store.translated(self._path), store.Writing(self._connection):
                if store.meta(self._connection).get("vkey") != str(signer.vkey):
                    raise UsageError(
                        "registry.log-key",
                        "the registry is not signed with this log key",
                        hint=f"finish the change of keys: certkit registry rotate-key {self._folder}"
                        if (self._folder / NEXT_KEY).exists()
                        else "give the registry's own key with --log-key",
                    )
                before = self._log.trust(signer)
                remembered.advance(self._log.note(), self._log.root_at)
                self._known.follow(before, trust, remembered.kept)
                self._saved = max(self._saved, self._known.began)
                yield Turn(self._log, self._known, signer)
                note = self._log.note()
            # Only what is on the disk is remembered, and only what is remembered is handed out.
            remembered.advance(note, lambda _: before.root)
            self._keep(remembered)

    def rotate(
        self, *, old: Ed25519PrivateKey, new: Ed25519PrivateKey, at: datetime, trust: Trust | None = None
    ) -> tuple[Appended, VerifierKey]:
        """Hand the log over to another key; return the entry that says so, and the new verifier key.

        The old key signs the entry, both sign the checkpoint that first covers it, and the new one alone
        all later ones. Raises `UsageError` ``registry.log-key`` where the log has, or had, the new one, and
        as `append`.
        """
        vkey = Signer(self.origin, new).vkey
        with self.turn(old, trust, vkey) as turn:
            if vkey.public in {turn.signer.vkey.public, *self._known.log_keys.had}:
                hint = "a key that was given up may be in other hands: 'certkit keys generate'"
                raise UsageError("registry.log-key", "the log has, or had, this key", hint=hint)
            change = KeyChange(old=str(turn.signer.vkey), new=str(vkey))
            index = turn.add(turn.draft(self.origin, change, submitter=old, at=at), Signer(self.origin, new))
            self._connection.execute("UPDATE meta SET value = ? WHERE key = 'vkey'", (str(vkey),))
        return Appended(index=index, new=True), vkey

    def hand_over(
        self,
        *,
        new: Ed25519PrivateKey | None,
        old: Callable[[], Ed25519PrivateKey],
        at: datetime,
        trust: Trust | None,
    ) -> VerifierKey:
        """Hand the log over to another key, or finish what was interrupted; return the new verifier key.

        Without a `new` key one is made, on the disk before it signs anything, and then takes the place of the
        key in the registry's folder. `old` is asked only where the old key still has to sign. Raises as
        `rotate` does.
        """
        kept = self._folder / NEXT_KEY
        if new is None and not kept.exists():
            with self.turn(old()):
                pass  # what is refused is refused before there is a key that nothing will use
            keys.write_private(kept, Ed25519PrivateKey.generate(), passphrase=None)
        coming = new or load_log_key(kept)
        if self.vkey.public != coming.public_key().public_bytes_raw():
            self.rotate(old=old(), new=coming, at=at, trust=trust)
        if new is None:
            files.move(kept, self._folder / KEY_FILE)
        return self.vkey

    def find(self, ident: str) -> int:
        """Return the index of an entry by its index, or a passport's by its id or the beginning of it.

        By an id, all entries are read. Raises `UsageError` ``registry.unknown``, `MismatchError`
        ``registry.inconsistent``.
        """
        with self.reading() as log:
            head = log.unverified_head()
            if is_index(ident, head.size):
                return int(ident)
            known = Ledger(log, where=str(self._folder))
            known.follow(head)
            return known.find(ident)

    def logged(self, index: int) -> Logged:
        """Return an entry; raise `UsageError` ``registry.unknown``, `InputError` ``registry.entry``."""
        with store.translated(self._path):
            data = self._log.entry(index)
        if data is None:
            raise UsageError("registry.unknown", f"no entry {index}", where=str(self._folder))
        return Logged(index, leaf_hash(data), read(data))

    def passport(self, sha256: str) -> bytes | None:
        """Return a stored passport by the digest of its file, None where it is missing or changed."""
        return store.intact_blob(self._folder, sha256)

    @contextmanager
    def gathering(self, *, checked: bool = True) -> Iterator[Log]:
        """Give the log for a block that stores cosignatures, if it goes on from what was signed last.

        Unless it is `checked`, that is left to the block, which may repair the tree. Raises as `append` does.
        """
        if self._heads is None:
            raise ValueError("opened for reading")
        with (
            self._heads.held(self.vkey) as remembered,
            store.translated(self._path),
            store.Writing(self._connection),
        ):
            if checked:
                self._log.verified_head(self.vkey)
                remembered.advance(self._log.note(), self._log.root_at)
            yield self._log
            if not checked:
                remembered.advance(self._log.note(), self._log.root_at)

    def repair(self) -> list[str]:
        """Make the stored tree again from the entries, if they give the signed root; return what was wrong.

        Raises `MismatchError` ``registry.inconsistent`` where they do not, and as `append` does.
        """
        with self.gathering(checked=False) as log:
            return log.repair()

    def prove(self, index: int) -> LogProof:
        """Return the proof that an entry is in the log as its checkpoint stands now."""
        with store.translated(self._path), store.reading(self._connection):
            return self._log.prove(index)

    @property
    def _path(self) -> Path:
        return self._folder / store.FILE

    def _keep(self, remembered: Head) -> None:
        """Keep a snapshot where the next one who writes would else read many entries."""
        size = self._known.size
        if size - self._saved >= max(SPARED, self._saved // 8):
            with suppress(CertkitError):  # without it, the next one reads the entries
                remembered.keep(self._known.snapshot())
            self._saved = size

    def _line(self, facts: PassportFacts, passport: bytes) -> Iterator[bytes | None]:
        """Yield the passports that a new one is compared with, None for one that is not here, and itself."""
        line = Line()
        for earlier in self._known.passports(facts.lineage):
            if (claims := earlier.found.passport) and (file := earlier.found.entry.passport):
                line.add(claims.evidence, file.sha256)
        yield from (self.passport(file) for file in line.before(facts.evidence) if file)
        yield passport
