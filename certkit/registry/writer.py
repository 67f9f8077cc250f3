"""The writer: makes a registry, appends to it, ends passports, changes the log's key, takes in cosignatures.

    vkey = Registry.init(folder, "acme", log_key, at=now)        # publish the verifier key
    appended = admit(folder, data, trust=trust, submitter=key, log_key=log_key, heads=heads, at=now)
    with Registry.open(folder, heads=heads) as registry:
        revoke(registry, ident, reason="key-compromise", detail=None, hand=hand)

A passport is verified before anything is written; a refused append leaves nothing behind. The bytes of a
passport are on the disk before the entry that names them; entry, tiles, checkpoint and index rows are one
transaction. Logging a passport twice returns the index of its first entry; so does revoking it twice for the
same reason.

A passport is ended by its issuer: by any key that the policy lists under the issuer's name, which is how an
issuer delegates. Nothing is taken out of the log.

What is trusted: the database, as `certkit.registry.log` says. `LineageIndex` answers from its rows, so the
first append to a log of a million entries is as fast as any other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple, Self
from uuid import NAMESPACE_URL, uuid5

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Struct, structs

from certkit.ground import files
from certkit.ground.document import Count, Part
from certkit.ground.errors import CertkitError, MismatchError, NegativeError, UntrustedError, UsageError
from certkit.ground.text import name_key
from certkit.ground.wording import many
from certkit.passport import checks, keys
from certkit.passport.checks import shown
from certkit.passport.keys import PrivateKey
from certkit.passport.passport import CLOCK_SKEW
from certkit.passport.steps import RefusedPassportError, open_signed, signer_of
from certkit.passport.trust import Trust
from certkit.registry import log as store
from certkit.registry.entry import (
    CLAIMS,
    Check,
    Claims,
    Entry,
    KeyChange,
    Logged,
    PassportFacts,
    PlanNotice,
    Previous,
    Revocation,
    Stored,
    Supersession,
    UnverifiedEntry,
    begins,
    chosen,
    facts_of,
    is_index,
    read,
    readable,
    timestamp,
    write,
)
from certkit.registry.fold import (
    LogKeys,
    digest_bytes,
    is_before,
    outside,
    rows,
    submitters,
)
from certkit.registry.heads import Heads, refuse_fork, remembered
from certkit.registry.log import EntryLog
from certkit.tlog.checkpoint import LogProof, open_checkpoint, parse_checkpoint
from certkit.tlog.note import Signer, VerifierKey, open_note, parse_lines, parse_note, write_note
from certkit.tlog.tiles import WIDTH
from certkit.tlog.tree import leaf_hash

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

    from certkit.registry.entry import AnyClaims, Reason
    from certkit.tlog.checkpoint import Checkpoint, SignedCheckpoint
    from certkit.tlog.note import Signature, Signed

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")
_IDENT: Final = re.compile(r"(?:sha256:)?[0-9a-f]{8,64}")
_LINE: Final = "\N{EM DASH} ".encode()


# The index


class LineageIndex:
    """The lineages and endings of a log, from the tables ``lineage`` and ``ending`` of its database."""

    def __init__(self, connection: sqlite3.Connection, log: EntryLog, *, where: str) -> None:
        self._connection, self._log, self._where = connection, log, where

    @property
    def origin(self) -> str:
        """The name that the log gives itself."""
        return store.meta(self._connection).get("origin", "")

    def _value(self, query: str, *values: object) -> object | None:
        row = self._connection.execute(query, values).fetchone()
        return None if row is None else row[0]

    def add(self, index: int, entry: UnverifiedEntry) -> None:
        """Add the rows of an entry that was appended."""
        row, ending = rows(self.origin, index, entry, self.newest())
        self._connection.execute("INSERT INTO lineage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        if ending:
            self._connection.execute("INSERT INTO ending VALUES (?, ?, ?, ?, ?, ?)", ending)

    def rebuild(self) -> None:
        """Make all rows again from the entries."""
        for table in store.INDEX:
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - a constant
        for start in range(0, self._log.unverified_head().size, WIDTH):
            for index, data in enumerate(self._log.entries(start, start + WIDTH), start):
                if entry := readable(data):
                    self.add(index, entry)

    def newest(self) -> str:
        """Return the latest date of an entry, empty where there is none."""
        return str(self._value("SELECT newest FROM lineage ORDER BY idx DESC LIMIT 1") or "")

    def first(self, passport_id: str, trust: Trust | None) -> int | None:
        """Return the first entry that logs a passport, None for none; under a policy, one by its keys."""
        known = None if trust is None else {digest_bytes(key_id) for key_id in submitters(trust)}
        query = "SELECT idx, submitter FROM lineage WHERE passport_id = ? ORDER BY idx"
        logging = self._connection.execute(query, (digest_bytes(passport_id),))
        return next((index for index, by in logging if known is None or by in known), None)

    def newest_first(self, lineage: str) -> Iterator[tuple[int, str]]:
        """Yield the passports of a lineage, each with the first entry that logs it, the newest first."""
        query = (
            "SELECT idx, passport_id FROM lineage WHERE name = ? AND passport_id IS NOT NULL AND NOT EXISTS"
            " (SELECT 1 FROM lineage AS earlier WHERE earlier.passport_id = lineage.passport_id"
            " AND earlier.name = lineage.name AND earlier.idx < lineage.idx) ORDER BY idx DESC"
        )
        logging = self._connection.execute(query, (name_key(lineage),))
        return ((index, f"sha256:{passport_id.hex()}") for index, passport_id in logging)

    def spelling(self, lineage: str) -> str:
        """Return how the first passport of a lineage spells its name; the name itself where there is none."""
        query = "SELECT subject FROM lineage WHERE name = ? AND passport_id IS NOT NULL ORDER BY idx LIMIT 1"
        return str(self._value(query, name_key(lineage)) or lineage)

    def attempt(self, facts: PassportFacts) -> int:
        """Return which attempt of its lineage under its profile a passport is."""
        name, profile = name_key(facts.lineage), digest_bytes(facts.profile)
        where = "FROM lineage WHERE name = ? AND profile = ?"
        query = f"SELECT attempt {where} AND evidence = ? LIMIT 1"
        attempt = self._value(query, name, profile, digest_bytes(facts.evidence))
        if attempt is None:
            query = f"SELECT count(DISTINCT evidence) + 1 {where}"
            attempt = self._value(query, name, profile)
        return int(str(attempt))

    def refuted(self, lineage: str, by: frozenset[str] | None) -> set[bytes]:
        """Return the evidence of a lineage that some submitters revoked as false, None for all of them."""
        query = (
            "SELECT evidence, ending.submitter FROM ending JOIN lineage USING (passport_id, name)"
            " WHERE name = ? AND reason = 'evidence-false'"
        )
        known = None if by is None else set(map(digest_bytes, by))
        revoked = self._connection.execute(query, (name_key(lineage),))
        return {evidence for evidence, submitter in revoked if known is None or submitter in known}

    def last(self, subject: str) -> Previous | None:
        """Return the last entry of a lineage, None where it has none."""
        query = "SELECT idx FROM lineage WHERE name = ? AND subject = ? ORDER BY idx DESC LIMIT 1"
        index = self._value(query, name_key(subject), subject)
        data = self._log.entry(index) if isinstance(index, int) else None
        return None if data is None else Previous(index=int(str(index)), leaf=leaf_hash(data).hex())

    def passports(self, lineage: str) -> list[int]:
        """Return the entries that log the passports of a lineage, in their order."""
        query = "SELECT idx FROM lineage WHERE name = ? AND passport_id IS NOT NULL ORDER BY idx"
        return [index for (index,) in self._connection.execute(query, (name_key(lineage),))]

    def endings(self, passport_id: str, by: Iterable[str]) -> list[tuple[int, str | None]]:
        """Return the entries by some submitters that end a passport, each with the reason of a revocation."""
        query = "SELECT idx, reason, submitter FROM ending WHERE passport_id = ? ORDER BY idx"
        submitters = {digest_bytes(key_id) for key_id in by}
        endings = self._connection.execute(query, (digest_bytes(passport_id),))
        return [(index, reason) for index, reason, submitter in endings if submitter in submitters]

    def announced(self, notice: PlanNotice, submitter: str) -> int | None:
        """Return the first entry by which a submitter announced a plan for an agent, None for none."""
        query = (
            "SELECT idx FROM lineage WHERE name = ? AND submitter = ? AND passport_id IS NULL ORDER BY idx"
        )
        entries = self._connection.execute(query, (name_key(notice.lineage), digest_bytes(submitter)))
        return next((index for (index,) in entries.fetchall() if self.entry(index).claims == notice), None)

    def log_keys(self, origin: str) -> LogKeys:
        """Return the keys that the log had."""
        log_keys = LogKeys(origin)
        query = "SELECT idx FROM lineage WHERE name = ? AND subject = ? ORDER BY idx"
        for (index,) in self._connection.execute(query, (name_key(origin), origin)).fetchall():
            entry = self.entry(index)
            if isinstance(entry.claims, KeyChange):
                log_keys.follow(entry, entry.claims)
        return log_keys

    def entry(self, index: int) -> UnverifiedEntry:
        """Return an entry.

        Raises:
            UsageError: ``registry.unknown``.
            InputError: ``registry.entry``.
        """
        data = self._log.entry(index)
        if data is None:
            raise UsageError("registry.unknown", f"no entry {index}")
        return read(data)

    def find(self, ident: str) -> int:
        """Return an entry by its index, or the first one of a passport by its id or the beginning of it.

        Raises:
            UsageError: ``registry.unknown``.
        """
        if is_index(ident, self._log.unverified_head().size):
            return int(ident)
        firsts: dict[str, int] = {}
        if _IDENT.fullmatch(ident):
            digits = ident.removeprefix("sha256:")
            start = bytes.fromhex(digits[: len(digits) // 2 * 2])
            query = "SELECT passport_id, idx FROM lineage WHERE passport_id BETWEEN ? AND ? ORDER BY idx"
            for passport_id, index in self._connection.execute(query, (start, start.ljust(32, b"\xff"))):
                if begins(passport_id.hex(), digits):
                    firsts.setdefault(passport_id.hex(), index)
        return chosen(ident, firsts, where=self._where)


# The registry


class Appended(Part, frozen=True, kw_only=True):
    """An entry that was appended, or that was there.

    Attributes:
        index: Its index.
        new: False where the log held it already.
    """

    index: Count
    new: bool


class Admitted(Appended, frozen=True, kw_only=True):
    """A passport that was appended, with the proof of its entry."""

    proof: LogProof


class Turn:
    """One turn at writing, from `Registry.turn`; `index` covers the entries of this turn too."""

    def __init__(
        self, log: EntryLog, index: LineageIndex, signer: Signer, load: Callable[[str], bytes | None]
    ) -> None:
        self._log, self.index, self.signer, self._load = log, index, signer, load

    def latest(
        self, lineage: str, issuer: str | None, trust: Trust | None, *, until: str | None = None
    ) -> str | None:
        """Return the latest passport of a lineage that an issuer signed, None where it has none.

        Args:
            lineage: The lineage.
            issuer: The policy's name for who signs; passports of others do not count.
            trust: The policy; without one, the passports of all issuers count.
            until: A passport that is returned where it comes first, whoever signed it.
        """
        for index, passport_id in self.index.newest_first(lineage):
            if passport_id == until or trust is None or self._signer(index, trust) == issuer:
                return passport_id
        return None

    def _signer(self, index: int, trust: Trust) -> str | None:
        """Return the policy's name for who signed a logged passport, None where nobody can say."""
        stored = self.index.entry(index).body.passport
        data = None if stored is None else self._load(stored.sha256)
        try:
            return None if data is None else signer_of(data, trust).issuer
        except CertkitError:
            return None

    def claims(self, facts: PassportFacts, trust: Trust | None) -> Claims:
        """Return what the entry of a passport claims; the attempt is counted.

        Args:
            facts: What the passport says.
            trust: The policy that knows its issuer; without one, all passports are one issuer's.

        Raises:
            MismatchError: ``registry.evidence-false``, ``registry.lineage``, ``registry.supersedes`` or
                ``registry.attempt``.
        """
        evidence = set(map(digest_bytes, (facts.evidence, *facts.bundles)))
        by = None if trust is None else keys_of_issuer(trust, facts.issuer)
        if not self.index.refuted(facts.lineage, by).isdisjoint(evidence):
            raise MismatchError(
                "registry.evidence-false",
                "rests on evidence that its issuer revoked as false in this registry",
                hint="have the agent judged on new evidence",
            )
        self.refuse_spelling(facts.lineage)
        if facts.supersedes is not None and self.index.first(facts.passport_id, None) is None:
            latest = self.latest(facts.lineage, facts.issuer, trust, until=facts.supersedes)
            if latest != facts.supersedes:
                raise MismatchError(
                    "registry.supersedes",
                    f"expected to supersede {latest or 'nothing'}, found {facts.supersedes}",
                    hint=f"only the issuer's latest passport of {facts.lineage} in this registry can be"
                    " superseded",
                )
        attempt = self.index.attempt(facts)
        if (facts.attempt or 1) < attempt:
            declared = "no attempt" if facts.attempt is None else f"attempt {facts.attempt}"
            raise MismatchError(
                "registry.attempt",
                f"the registry already holds {attempt - 1} of this agent's evaluations, this one declares"
                f" {declared}",
                hint="its bounds depend on the attempt; mark this one and issue anew: "
                f"certkit bundle seal BUNDLE --attempt {attempt}",
            )
        return Claims.of(facts, attempt)

    def refuse_spelling(self, lineage: str) -> None:
        """Raise `MismatchError` ``registry.lineage`` where the log spells a lineage otherwise."""
        if (spelling := self.index.spelling(lineage)) != lineage:
            raise MismatchError(
                "registry.lineage",
                f"the log holds {spelling!r}, and {lineage!r} differs from it in spelling alone",
                hint="use the name that is logged, or name another agent in other words",
            )

    def draft(
        self,
        subject: str,
        claims: AnyClaims,
        *,
        submitter: PrivateKey,
        at: datetime,
        passport: Stored | None = None,
    ) -> bytes:
        """Return the bytes of a signed entry.

        Raises:
            InputError: ``registry.entry`` beyond its limit.
            MismatchError: ``registry.time`` where it would be dated before an entry that the log holds.
        """
        date = timestamp(at)
        if is_before(date, newest := self.index.newest()):
            raise MismatchError(
                "registry.time",
                f"would be dated {date}, and the log holds an entry of {newest}",
                hint="no entry is dated back: check the clock, or give a later time",
            )
        entry = Entry(
            type=next(name for name, kind in CLAIMS.items() if isinstance(claims, kind)),
            subject=subject,
            passport=passport,
            claims=msgspec.to_builtins(claims),
            prev=self.index.last(subject),
            issued_at=date,
            submitter=keys.key_id(submitter.public_key()),
            log=self.signer.name,
        )
        return write(entry, submitter)

    def add(self, data: bytes, *others: Signer) -> int:
        """Append an entry and return its index; `others` sign the checkpoint over it too."""
        index = self._log.extend([data], self.signer, *others).size - 1
        if entry := readable(data):
            self.index.add(index, entry)
        return index

    def log(self, subject: str, claims: AnyClaims, *, submitter: PrivateKey, at: datetime) -> Appended:
        """Append an entry about `subject`; raise as `Registry.append` does."""
        return Appended(index=self.add(self.draft(subject, claims, submitter=submitter, at=at)), new=True)


class Registry:
    """An open registry. Made by `open`; use it in a ``with`` block."""

    def __init__(self, folder: Path, connection: sqlite3.Connection, heads: Heads | None = None) -> None:
        self._folder, self._connection, self._heads = folder, connection, heads
        self._log = EntryLog(connection)
        self._index = LineageIndex(connection, self._log, where=str(folder))

    @classmethod
    def init(cls, folder: Path, name: str, log_key: Ed25519PrivateKey, *, at: datetime) -> VerifierKey:
        """Make an empty registry and return the log's verifier key, which is to be published.

        The caller stores the private key; it never lies in the registry's folder.

        Raises:
            UsageError: ``registry.name`` or ``file.exists``.
        """
        signer = Signer(origin_of(name, log_key, at), log_key)
        with files.building(folder) as made:
            with store.creating(made, {"origin": signer.name, "vkey": str(signer.vkey)}) as connection:
                EntryLog(connection).begin(signer)
            (made / store.BLOBS).mkdir()
        return signer.vkey

    @classmethod
    def open(cls, folder: Path, *, heads: Path | None = None) -> Self:
        """Open a registry, for writing if it is said where the signed heads are remembered.

        Raises:
            InputError: ``registry.missing`` or ``registry.format``.
            MismatchError: ``registry.damaged``.
            UsageError: ``file.unwritable``, and as `Heads.open` does.
        """
        with ExitStack() as undo:
            connection = store.connect(folder, writable=heads is not None)
            undo.callback(connection.close)
            opened = cls(folder, connection, Heads.open(heads) if heads else None)
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
        return self._index.origin

    @property
    def vkey(self) -> VerifierKey:
        """The verifier key that the log states; whether to trust it is for a policy to say."""
        return VerifierKey.parse(store.meta(self._connection).get("vkey", ""))

    @contextmanager
    def reading(self) -> Iterator[EntryLog]:
        """Give the log for a block that sees one state of it."""
        with self._translated(), store.snapshot(self._connection):
            yield self._log

    def head(self) -> Checkpoint:
        """Return what the stored checkpoint says; its signature is not verified."""
        with self._translated():
            return self._log.unverified_head()

    def signed_head(self, heads: Path) -> Checkpoint:
        """Return the head that the registry's own key signed.

        Raises:
            MismatchError: ``registry.rollback`` unless it continues what the file `heads` remembers.
        """
        with self.reading() as log:
            head = log.verified_head(self.vkey)
            if earlier := remembered(heads, self.vkey):
                refuse_fork(earlier, head, log.root_at)
        return head

    def checkpoint(self) -> bytes:
        """Return the signed checkpoint, with the cosignatures that were gathered for it."""
        with self._translated():
            return self._log.cosigned()

    def append(
        self,
        passport: bytes,
        *,
        check: Check,
        submitter: PrivateKey,
        log_key: Ed25519PrivateKey,
        at: datetime,
        trust: Trust | None = None,
    ) -> Appended:
        """Log a passport that `check` accepts; the same passport again returns its first index.

        When this returns, all is on the disk and the checkpoint is remembered; when it raises, no entry was
        added, unless only the remembering failed. A failure of the disk may leave the passport's file.

        Args:
            passport: Bytes of the passport's file.
            check: Verifies it, and returns its facts.
            submitter: Key that signs the entry.
            log_key: Key that signs the checkpoint.
            at: Time of the entry.
            trust: Where given, the passport counts as logged only if a key of this policy submitted it, and
                only what its own issuer logged bears on it.

        Raises:
            CertkitError: Whatever `check` raises.
            MismatchError: ``registry.evidence-false``, ``registry.lineage``, ``registry.supersedes``,
                ``registry.attempt``, ``registry.time``, ``registry.inconsistent`` or ``registry.rollback``.
            UsageError: ``registry.log-key``, ``registry.busy`` or ``file.unwritable``.
        """
        facts = check(passport, at)
        with self.turn(log_key) as turn:
            index = turn.index.first(facts.passport_id, trust)
            if index is not None:
                return Appended(index=index, new=False)
            claims = turn.claims(facts, trust)
            file = Stored(sha256=hashlib.sha256(passport).hexdigest(), size=len(passport))
            entry = turn.draft(facts.lineage, claims, submitter=submitter, at=at, passport=file)
            index = turn.add(entry)
            store.store_blob(self._folder, passport)  # on the disk before its entry is committed
        return Appended(index=index, new=True)

    def announce(
        self, notice: PlanNotice, *, submitter: PrivateKey, log_key: Ed25519PrivateKey, at: datetime
    ) -> Appended:
        """Log the plan of a trial; the same plan again, for the same agent and submitter, adds nothing.

        Raises as `append` does.
        """
        with self.turn(log_key) as turn:
            index = turn.index.announced(notice, keys.key_id(submitter.public_key()))
            if index is not None:
                return Appended(index=index, new=False)
            turn.refuse_spelling(notice.lineage)
            return turn.log(notice.lineage, notice, submitter=submitter, at=at)

    @contextmanager
    def turn(self, log_key: Ed25519PrivateKey, *more: VerifierKey) -> Iterator[Turn]:
        """Hold the write lock: reads inside the block see a state that no other process can change.

        The log must continue what was signed last. When the block has ended, what it appended is on the disk
        and remembered, for the keys of `more` that signed too. Raises as `append` does.
        """
        if self._heads is None:
            raise ValueError("opened for reading")
        signer = Signer(self.origin, log_key)
        with self._heads.held(signer.vkey, *more) as head:
            with self._translated(), store.Writing(self._connection):
                if store.meta(self._connection).get("vkey") != str(signer.vkey):
                    raise UsageError(
                        "registry.log-key",
                        "the registry is not signed with this log key",
                        hint="give the registry's own key with --log-key"
                        "\nif a change of keys was interrupted: certkit registry rotate-key"
                        f" {self._folder}",
                    )
                before = self._log.trust(signer)
                head.advance(self._log.note(), self._log.root_at)
                yield Turn(self._log, self._index, signer, self.passport)
                note = self._log.note()
            # Only what is on the disk is remembered, and only what is remembered is handed out.
            head.advance(note, lambda _: before.root)

    def rotate(
        self, *, old: Ed25519PrivateKey, new: Ed25519PrivateKey, at: datetime
    ) -> tuple[Appended, VerifierKey]:
        """Hand the log over to another key; return the entry that says so, and the new verifier key.

        The old key signs the entry, both sign the checkpoint that first covers it, and the new one alone
        all later ones.

        Raises:
            UsageError: ``registry.log-key`` where the log has, or had, the new one, and as `append`.
        """
        vkey = Signer(self.origin, new).vkey
        with self.turn(old, vkey) as turn:
            if vkey.public in {turn.signer.vkey.public, *turn.index.log_keys(self.origin).had}:
                hint = "a key that was given up may be in other hands: 'certkit keys generate'"
                raise UsageError("registry.log-key", "the log has, or had, this key", hint=hint)
            change = KeyChange(old=str(turn.signer.vkey), new=str(vkey))
            index = turn.add(turn.draft(self.origin, change, submitter=old, at=at), Signer(self.origin, new))
            self._connection.execute("UPDATE meta SET value = ? WHERE key = 'vkey'", (str(vkey),))
        return Appended(index=index, new=True), vkey

    def hand_over(self, key_file: Path, *, new: Ed25519PrivateKey | None, at: datetime) -> VerifierKey:
        """Hand the log over to another key, or finish what was interrupted; return the new verifier key.

        Without a `new` key one is made. It is on the disk, beside `key_file`, before it signs anything, and
        replaces that file afterwards. Raises as `rotate` does.
        """
        staged = key_file.with_name(f"{key_file.name}.next")
        if new is None and not staged.exists():
            with self.turn(load_log_key(key_file)):
                pass  # raises before a key is made that nothing will use
            keys.write_private(staged, Ed25519PrivateKey.generate(), passphrase=None)
        coming = new or load_log_key(staged)
        if self.vkey.public != coming.public_key().public_bytes_raw():
            self.rotate(old=load_log_key(key_file), new=coming, at=at)
        if new is None:
            files.move(staged, key_file)
        return self.vkey

    def find(self, ident: str) -> int:
        """Return the index of an entry by its index, or a passport's by its id or the beginning of it.

        Raises:
            UsageError: ``registry.unknown``.
        """
        with self.reading():
            return self._index.find(ident)

    def logged(self, index: int) -> Logged:
        """Return an entry.

        Raises:
            UsageError: ``registry.unknown``.
            InputError: ``registry.entry``.
        """
        with self._translated():
            data = self._log.entry(index)
        if data is None:
            raise UsageError("registry.unknown", f"no entry {index}", where=str(self._folder))
        return Logged(index, leaf_hash(data), read(data))

    def passport(self, sha256: str) -> bytes | None:
        """Return a stored passport by the digest of its file, None where it is missing or changed."""
        return store.intact_blob(self._folder, sha256)

    @contextmanager
    def gathering(self, *, checked: bool = True) -> Iterator[EntryLog]:
        """Give the log for a block that stores cosignatures, if it continues what was signed last.

        Unless it is `checked`, that is left to the block, which may repair the tree. Raises as `append` does.
        """
        if self._heads is None:
            raise ValueError("opened for reading")
        with (
            self._heads.held(self.vkey) as head,
            self._translated(),
            store.Writing(self._connection),
        ):
            if checked:
                self._log.verified_head(self.vkey)
                head.advance(self._log.note(), self._log.root_at)
            yield self._log
            if not checked:
                head.advance(self._log.note(), self._log.root_at)

    def repair(self) -> list[str]:
        """Make the stored tree and the index again from the entries; return which tiles were wrong.

        Raises:
            MismatchError: ``registry.inconsistent`` where the entries do not give the signed root, and as
                `append` does.
        """
        with self.gathering(checked=False) as log:
            repaired = log.repair()
            self._index.rebuild()
            return repaired

    def prove(self, index: int) -> LogProof:
        """Return the proof that an entry is in the log as its checkpoint stands now."""
        with self.reading() as log:
            return log.prove(index)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        with store.translated(self._folder / store.FILE):
            yield


def origin_of(name: str, log_key: Ed25519PrivateKey, at: datetime) -> str:
    """Return the origin of a new log, ``certkit.<name>/<UUID>``; the UUID is made from key and time.

    Raises:
        UsageError: ``registry.name``.
    """
    if _NAME.fullmatch(name) is None:
        raise UsageError(
            "registry.name",
            f"{name!r} cannot name a registry",
            hint="lower-case letters, digits, dots and hyphens, at most 63",
        )
    made_at = at.astimezone(UTC).isoformat(timespec="microseconds")
    unique = uuid5(NAMESPACE_URL, f"urn:certkit:log:{keys.key_id(log_key.public_key())}:{made_at}")
    return f"certkit.{name}/{unique}"


def load_log_key(path: Path) -> Ed25519PrivateKey:
    """Return the log's private key from a PEM file.

    Raises:
        UsageError: ``registry.log-key``.
    """
    key = keys.load_private(path)
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(
            "registry.log-key",
            "not an Ed25519 key",
            where=str(path),
            hint="logs are signed with Ed25519; 'certkit keys generate' makes such a key",
        )
    return key


# Admission: which passports and submitters are accepted


def admit(
    folder: Path,
    passport: bytes,
    *,
    trust: Trust,
    submitter: PrivateKey,
    log_key: Ed25519PrivateKey,
    heads: Path,
    at: datetime,
) -> Admitted:
    """Append a passport to the registry in `folder`, if it is valid at `at` and its issuer is trusted.

    Admission asks nothing of a policy's taste: a log that left out low tiers, specimens or unwelcome profiles
    would hide what it is there to show. `heads` is the file, outside the registry, that remembers what was
    signed. Raises `RefusedPassportError`, `UntrustedError` ``registry.submitter``, and as `Registry.append`.
    """
    refuse_stranger(submitter, trust, at)
    check = checker(trust)
    with Registry.open(folder, heads=heads) as registry:
        appended = registry.append(
            passport, check=check, submitter=submitter, log_key=log_key, at=at, trust=trust
        )
        proof = registry.prove(appended.index)
    return Admitted(index=appended.index, new=appended.new, proof=proof)


def checker(trust: Trust) -> Check:
    """Return what verifies a passport as it is, or was, logged at a time."""
    # Only verifiers require a timestamp; the log's own time is no part of a passport.
    policy = structs.replace(trust, require=())

    def check(data: bytes, at: datetime) -> PassportFacts:
        passport = open_signed(data, policy)
        signing = checks.signing(passport, policy)
        facts = facts_of(passport.passport_id, passport.statement, passport.signer.issuer)
        try:
            checks.validity(checks.Case(passport=passport, signing=signing, trust=policy, at=at))
            if facts.last_run is not None and facts.last_run - at > CLOCK_SKEW:
                message = f"rests on runs until {shown(facts.last_run)}, and would be logged at {shown(at)}"
                raise NegativeError("passport.period-in-future", message)
            dated = outside(passport.signer, timestamp(at)) if signing.time is None else None
            if dated is not None:
                hint = (
                    "a passport signed before needs a timestamp to show it; or issue anew, with a present key"
                )
                raise NegativeError("passport.key-window", f"it would be {dated}", hint=hint)
        except CertkitError as error:
            raise RefusedPassportError(
                "validity", error, before=passport.steps, passport_id=passport.passport_id
            ) from None
        return facts

    return check


def keys_of_issuer(trust: Trust, issuer: str | None) -> frozenset[str]:
    """Return the ids of the keys that a policy lists under the name of an issuer."""
    return frozenset(key.id for key in trust.candidates() if key.issuer == issuer)


def refuse_stranger(submitter: PrivateKey, trust: Trust, at: datetime) -> None:
    """Raise `UntrustedError` ``registry.submitter`` unless the policy knows the key, and trusts it then."""
    name = keys.key_id(submitter.public_key())
    candidate = submitters(trust).get(name)
    if candidate is None:
        raise UntrustedError(
            "registry.submitter",
            f"the trust policy does not know key {name}, and no auditor with it would accept its entry",
            hint="submit with an issuer's key, or add the submitter to the policy: certkit trust add",
        )
    if message := outside(candidate, timestamp(at)):
        raise UntrustedError(
            "registry.submitter",
            f"the entry would be {message}",
            hint="submit with a key that the policy trusts now: certkit trust show",
        )


# Revocation and supersession


class Hand(Struct, frozen=True, kw_only=True):
    """Who ends a passport.

    Attributes:
        trust: Policy that says who may.
        submitter: Key that signs the entry.
        log_key: Key that signs the checkpoint.
        at: Time of the entry.
    """

    trust: Trust
    submitter: PrivateKey
    log_key: Ed25519PrivateKey
    at: datetime


class Revoked(Part, frozen=True, kw_only=True):
    """A passport that an entry ends.

    Attributes:
        passport_id: Its id.
        entry: The entry that ends it.
        also: The entries that revoke other passports on the same evidence, by passport id.
    """

    passport_id: str
    entry: Appended
    also: Mapping[str, Count]


class _Target(NamedTuple):
    """A logged passport that a hand may end, and the ids of the keys that may."""

    facts: PassportFacts
    keys: frozenset[str]


def revoke(registry: Registry, ident: str, *, reason: Reason, detail: str | None, hand: Hand) -> Revoked:
    """Log that a passport is revoked.

    Where its issuer revoked it before for the same reason, that entry is returned; for another reason it is
    revoked once more. With ``evidence-false``, every other passport of the lineage that its issuer gave on
    this evidence is revoked too.

    Raises:
        UsageError: ``registry.unknown``.
        UntrustedError: ``registry.not-issuer`` where the key is not its issuer's.
        MismatchError: ``registry.blob-missing`` or ``registry.inconsistent``, and as `Registry.append`.
    """
    with registry.turn(hand.log_key) as turn:
        target = _target(registry, turn.index, turn.index.find(ident), hand)
        entry, also = _revoke(turn, target, reason, detail, hand), dict[str, int]()
        others = _same_evidence(registry, turn.index, target, hand) if reason == "evidence-false" else ()
        for passport in others:
            further = _revoke(turn, passport, reason, detail, hand)
            if further.new:
                also[passport.facts.passport_id] = further.index
        return Revoked(passport_id=target.facts.passport_id, entry=entry, also=also)


def _revoke(turn: Turn, target: _Target, reason: Reason, detail: str | None, hand: Hand) -> Appended:
    """Return the entry that revokes a passport for a reason."""
    for index, before in turn.index.endings(target.facts.passport_id, target.keys):
        if before == reason:
            return Appended(index=index, new=False)
    claims = Revocation(passport_id=target.facts.passport_id, reason=reason, detail=detail)
    return turn.log(target.facts.lineage, claims, submitter=hand.submitter, at=hand.at)


def _same_evidence(registry: Registry, index: LineageIndex, target: _Target, hand: Hand) -> list[_Target]:
    """Return the passports of a lineage whose evidence is, or pools, that of one; itself too.

    Passports whose file is missing, or that this key may not end, are left alone; an audit names them.
    """
    passports = dict[str, _Target]()
    for place in index.passports(target.facts.lineage):
        with suppress(CertkitError):
            passport = _target(registry, index, place, hand)
            if target.facts.evidence in {passport.facts.evidence, *passport.facts.bundles}:
                passports.setdefault(passport.facts.passport_id, passport)
    return list(passports.values())


def supersede(registry: Registry, ident: str, *, by: str, hand: Hand) -> Revoked:
    """Log that a passport is superseded by its issuer's latest one of the lineage, or by a later one.

    Where its issuer ended it before, the entry that says so is returned. Raises as `revoke`, and
    `MismatchError` ``registry.supersedes``.
    """
    with registry.turn(hand.log_key) as turn:
        target = _target(registry, turn.index, turn.index.find(ident), hand)
        later = turn.index.find(by)
        passport_id, lineage = target.facts.passport_id, target.facts.lineage
        claims = turn.index.entry(later).passport
        until = None if claims is None else claims.passport_id
        latest = turn.latest(lineage, target.facts.issuer, hand.trust, until=until)
        if claims is None or latest != claims.passport_id or latest == passport_id:
            raise MismatchError(
                "registry.supersedes",
                f"entry {later} is not its issuer's latest of {lineage} or later, or it is the one"
                " to supersede",
                hint="an earlier passport of a lineage does not take the place of another",
            )
        for index, _ in turn.index.endings(passport_id, target.keys):
            return Revoked(passport_id=passport_id, entry=Appended(index=index, new=False), also={})
        ending = Supersession(passport_id=passport_id, by=latest)
        entry = turn.log(lineage, ending, submitter=hand.submitter, at=hand.at)
        return Revoked(passport_id=passport_id, entry=entry, also={})


def _target(registry: Registry, index: LineageIndex, place: int, hand: Hand) -> _Target:
    """Return a logged passport that the hand may end; its lineage is what its file says."""
    entry = index.entry(place)
    stored = entry.body.passport
    if entry.passport is None or stored is None:
        raise UsageError("registry.unknown", f"entry {place} is no passport")
    data = registry.passport(stored.sha256)
    if data is None:
        raise MismatchError("registry.blob-missing", f"the file of entry {place} is not here, or has changed")
    passport = open_signed(data, hand.trust)
    facts = facts_of(passport.passport_id, passport.statement, passport.signer.issuer)
    if facts.passport_id != entry.passport.passport_id:
        raise MismatchError("registry.inconsistent", f"the file of entry {place} is another passport")
    name = keys.key_id(hand.submitter.public_key())
    issuers = keys_of_issuer(hand.trust, facts.issuer)
    if name not in issuers:
        raise UntrustedError(
            "registry.not-issuer",
            f"issued by {facts.issuer}, and key {name} is not theirs",
            hint="to let this key revoke, add it to the trust policy under the issuer's name",
        )
    # The window of the key is not checked: a retired key may still revoke.
    return _Target(facts, issuers)


# Cosignatures of witnesses


def gather(
    registry: Registry, returned: Iterable[bytes], *, witnesses: Sequence[VerifierKey], at: datetime
) -> SignedCheckpoint:
    """Store the cosignatures in what witnesses returned, all of them or none; return the checkpoint with all.

    A witness returns the checkpoint with its line below, or (C2SP tlog-witness) its lines alone. A line is
    stored if a known key made it for the current checkpoint at a time not in the future; lines of other keys
    are ignored, as the specification demands. Of each key the latest is stored.

    Args:
        registry: A registry that is open for writing.
        returned: Notes or lines.
        witnesses: The known keys.
        at: Latest time of a cosignature.

    Raises:
        InputError: ``tlog.note`` or ``tlog.checkpoint`` for their form.
        MismatchError: ``tlog.origin`` or ``registry.cosignature`` where one is about another log or state, or
            of an impossible time, ``tlog.unsigned`` where no known key made one, ``tlog.signature`` where one
            is false; and as `Registry.gathering`.
    """
    with registry.gathering() as log:
        head, vkey = log.unverified_head(), registry.vkey
        known = {(key.name, key.key_id): key for key in witnesses if key.public != vkey.public}
        before = open_checkpoint(log.cosigned(), vkey, witnesses).cosigned
        newest = {signed.key: signed.time or 0 for signed in before}
        for data in returned:
            lines = _lines(data, head)
            of_known = [(known[line[:2]], line) for line in lines if line[:2] in known]
            if not of_known:
                names = ", ".join(sorted({line.name for line in lines}))
                raise MismatchError(
                    "tlog.unsigned",
                    f"no cosignature by a known witness; signed as {names}",
                    hint="name the witness's key in the trust policy: certkit trust add --witness VKEY",
                )
            for key, line in of_known:
                (signed,) = open_note(write_note(head.text, [line]), [key]).signed
                time = _possible(signed, at)
                if time > newest.get(key, 0):
                    newest[key] = time
                    log.cosign(head.size, key, line.line)
        return open_checkpoint(log.cosigned(), vkey, witnesses)


def _lines(data: bytes, head: Checkpoint) -> tuple[Signature, ...]:
    """Return the lines that a witness made; raise `MismatchError` unless they are under the log's head."""
    if data.startswith(_LINE):
        return parse_lines(data)
    note = parse_note(data)
    cosigned = parse_checkpoint(note.text)
    if cosigned.origin != head.origin:
        raise MismatchError("tlog.origin", f"expected origin {head.origin!r}, found {cosigned.origin!r}")
    if cosigned != head:
        raise MismatchError(
            "registry.cosignature",
            f"cosigned over {many(cosigned.size, 'entry')}, and the log's checkpoint is over {head.size:,}",
            hint="hand the witness the checkpoint as it is now: the file 'checkpoint' of an export. Two"
            " checkpoints of one size under the log's key prove that there are two logs: store this file",
        )
    return note.signatures


def _possible(signed: Signed, at: datetime) -> int:
    """Return the time of a cosignature; raise `MismatchError` for none, or one that is to come."""
    time = signed.time or 0
    if not 0 < time <= (at + CLOCK_SKEW).timestamp():
        why = "says no time" if time == 0 else "is of a time to come"
        raise MismatchError("registry.cosignature", f"the cosignature of {signed.key.name} {why}")
    return time
