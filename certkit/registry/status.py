"""Whether a passport stands, as far as a log can tell: step 8 of a verification; and the status as a file.

    source = FolderStatus(folder, trust=trust, at=now, seen=remembered)     # a database or an exported tree
    verify(passport, trust=trust, at=now, status=source)

    data = write(folder, index, key=log_key, heads=heads, at=now)           # passport.json.status
    FileStatus(data, trust=trust, at=now, seen=remembered)

All entries up to the checkpoint are hashed and must give its root, and those that name the passport are read.
The answer for N entries is: no entry in [0, N) ends it. Where an entry cannot be read the status is unknown.

How old that is: with a quorum of witnesses the time that they vouch for; without one, that of the newest
entry that a trusted key signed.

A status file, for those who verify offline, holds the signed checkpoint, every entry of the log that names
the passport, and the log's word that there is no other: a signed note of the log's key over

    certkit.status/v1
    origin of the log, its size and its root, each on a line
    the passport's id
    SHA-256 of the entries: the place and leaf hash of each on a line
    time

Not shown: whether the log left out an entry that was handed in; without a quorum, whether others see the
same log. That a status file names every entry, and goes on from what is remembered, is the log key's claim.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from certkit.ground import canonical
from certkit.ground.document import Count, Document, Part
from certkit.ground.errors import CertkitError, InputError, MismatchError, UnavailableError, UsageError
from certkit.ground.progress import SILENT, Progress
from certkit.ground.text import name_key
from certkit.ground.wording import many
from certkit.passport.checks import LoggedStanding, LoggedStatus, period
from certkit.passport.passport import CLOCK_SKEW
from certkit.registry.entry import Logged, moment, read, readable, timestamp
from certkit.registry.fold import Passports, Plans, Policy, outside, submitters
from certkit.registry.heads import head_of, refuse_fork, remembered
from certkit.registry.reader import LogReader, log_key, opened
from certkit.tlog.checkpoint import Quorum, counted, open_checkpoint
from certkit.tlog.note import Signer, decode64, encode64, open_note, write_note
from certkit.tlog.tree import leaf_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.bundle.facts import Facts
    from certkit.ground.canonical import Digest
    from certkit.passport.keys import PublicKey
    from certkit.passport.trust import Trust
    from certkit.registry.reader import Seen
    from certkit.tlog.checkpoint import Checkpoint, SignedCheckpoint
    from certkit.tlog.note import VerifierKey

MAX_SIZE: Final = canonical.MAX_BYTES
SAYS: Final = (
    "that no other entry of the log names the passport is the word of the log's key; no proof shows it"
)

_FIRST: Final = "certkit.status/v1"
_Text = Annotated[str, Meta(max_length=512 * 1024)]


class _Events:
    """What entries say about one passport; `revokers` are the keys, by id, that may end it."""

    def __init__(
        self,
        policy: Policy,
        passport_id: Digest,
        revokers: Mapping[Digest, PublicKey],
        plan_of: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._policy, self._id = policy, passport_id
        self._passports = Passports(policy)
        self._plans = Plans(policy, plan_of)
        self._passports.issued_by(passport_id, policy.names(revokers))
        self._lineages: list[str] = []
        self._ignored: list[int] = []

    @property
    def ended(self) -> bool:
        """Whether something ended it."""
        return self._passports.ending(self._id) is not None

    def take(self, logged: Logged) -> None:
        """Take an entry into account."""
        claims = logged.entry.passport
        if not self._passports.follow(logged):
            self._ignored.append(logged.index)
            return
        if claims and claims.passport_id == self._id:
            self._lineages.append(logged.entry.body.subject)

    def take_plan(self, logged: Logged) -> None:
        """Take an entry of the passport's lineage into account for what is said of plans."""
        if logged.entry.body.log == self._policy.origin and self._policy.signed(logged):
            self._plans.follow(logged)

    def status(
        self, head: Checkpoint, time: datetime | None, at: datetime, facts: Facts | None = None
    ) -> LoggedStatus:
        """Return what was found, as of a checkpoint and the time that somebody vouches for it.

        With `facts` that name a plan, all entries of the lineage were taken for what is said of plans.
        """
        age = "of unknown age" if time is None else f"at most {period(at - time)} old"
        ignored = sorted({*self._ignored, *self._passports.ignored(self._id)})
        more = f"; does not count: {', '.join(f'entry {index}' for index in ignored)}" if ignored else ""
        standing: LoggedStanding
        if (ended := self._passports.ending(self._id)) is not None:
            logged, ending = ended
            why = f": {ending.reason}" if ending.reason else f" by {ending.by}" if ending.by else ""
            standing = ending.how
            what = f"{standing} by entry {logged.index} at {logged.entry.body.issued_at}{why}"
        elif not self._lineages:
            what, standing = "no entry that counts logs it" if more else "no entry is about it", "unknown"
        else:
            what, standing = f"no entry in [0, {head.size:,}) ends it", "current"
        announced = facts and self._plans.text(
            facts.agent.lineage,
            facts.protocol.plan,
            self._passports.logged(self._id),
            self._passports.issuers(self._id),
        )
        plan = f"; {announced}" if announced else ""
        return LoggedStatus(
            standing=standing,
            detail=f"{what}, as of checkpoint {head.size:,} of {head.origin}, {age}{more}{plan}",
            time=time,
            lineages=tuple(self._lineages),
        )


class FolderStatus:
    """The status in a registry's database or exported tree, as of its checkpoint.

    `seen` is the newest checkpoint that is remembered of it, None where none is; it must go on from there.
    """

    def __init__(
        self, folder: Path, *, trust: Trust, at: datetime, seen: Seen, progress: Progress = SILENT
    ) -> None:
        self._folder, self._trust, self._at, self._seen = folder, trust, at, seen
        self._progress = progress

    def status(
        self, passport_id: Digest, revokers: Mapping[Digest, PublicKey], facts: Facts | None = None
    ) -> LoggedStatus:
        """Return the standing of a passport; `revokers` are the keys, by id, that may end it.

        With `facts` that name a plan it says whether the log announced that for the passport's agent.

        Raises:
            UnavailableError: where it cannot be told.
            CertkitError: where the log does not hold.
        """
        quorum = Quorum.of(self._trust.witnesses.k, self._trust.witnesses.keys)
        with opened(self._folder) as source:
            key = log_key(source.note(), self._trust)
            log = LogReader(
                self._folder, source, key, witnesses=quorum.keys, seen=self._seen, progress=self._progress
            )
            policy = log.policy(self._trust)
            events = _Events(policy, passport_id, revokers, log.plan_of)
            lineage = facts.agent.lineage if facts and facts.protocol.plan else None
            newest = self._read(log, passport_id.encode(), lineage, events)
        if quorum.k:
            time = _vouched(log.head, quorum, self._at)
        else:
            time = moment(newest.entry.body.issued_at) if newest and policy.signed(newest) else None
        return events.status(log.head.checkpoint, time, self._at, facts)

    def _read(self, log: LogReader, digest: bytes, lineage: str | None, events: _Events) -> Logged | None:
        """Take every entry that names a digest; return the newest that a trusted key may have signed.

        Of a lineage, where one is given, every entry is taken for what is said of plans.

        It is for this log, dated while its key was trusted, and not to come.
        """
        latest, key_of_lineage = timestamp(self._at + CLOCK_SKEW), lineage and name_key(lineage)
        known = submitters(self._trust)
        newest, date = None, ""
        for index, data, leaf in log.entries():
            entry = readable(data)
            if entry is None:
                message = f"entry {index} cannot be read, and may end it"
                raise UnavailableError("passport.unavailable", message)
            said, key = entry.body, known.get(entry.body.submitter)
            if digest in entry.envelope.payload:
                events.take(Logged(index, leaf, entry))
            if key_of_lineage and name_key(said.subject) == key_of_lineage:
                events.take_plan(Logged(index, leaf, entry))
            is_newer = date <= said.issued_at <= latest and said.log == log.head.checkpoint.origin
            if is_newer and key is not None and outside(key, said.issued_at) is None:
                newest, date = Logged(index, leaf, entry), said.issued_at
        return newest


def _vouched(head: SignedCheckpoint, quorum: Quorum, at: datetime) -> datetime | None:
    """Return the time since which a quorum vouches for a checkpoint, None where too few did by then.

    Raises `MismatchError` ``passport.witnesses`` where too few have cosigned at all.
    """
    if not quorum.is_met(head.cosigned):
        raise MismatchError(
            "passport.witnesses", f"{len(head.cosigned)} of {quorum.k} required witnesses cosigned"
        )
    since = quorum.since(counted(head.cosigned, (at + CLOCK_SKEW).timestamp()))
    return None if since is None else datetime.fromtimestamp(since, UTC)


# The status file


class Held(Part, frozen=True, kw_only=True):
    """An entry that names the passport, in base64."""

    index: Count
    entry: _Text


class StatusDocument(Document, frozen=True, kw_only=True, tag="urn:certkit:status:v1"):
    """A passport's status for offline use, with the log's signed word on it.

    Checkpoint and word are notes as text, entries stand oldest first; `says` is a sentence for people.
    """

    says: _Text = SAYS
    checkpoint: _Text
    word: _Text
    entries: tuple[Held, ...]


def write(folder: Path, index: int, *, key: Ed25519PrivateKey, heads: Path, at: datetime) -> bytes:
    """Return the status file of the passport that entry `index` logs; the log's key signs its word.

    Every entry is read first, since the word must be true.

    Raises:
        UsageError: ``registry.log-key``, or ``registry.unknown`` where the entry is no passport.
        InputError: ``registry.entry`` where bytes in the log are no entry, and may name the passport.
        MismatchError: ``registry.inconsistent``, and ``registry.rollback`` where the log is older than
            what was signed for it before.
    """
    with opened(folder) as source:
        signer = Signer(head_of(source.note()).origin, key)
        try:
            log = LogReader(folder, source, signer.vkey, seen=lambda _: remembered(heads, signer.vkey))
        except MismatchError as error:
            raise UsageError("registry.log-key", error.message, where=str(folder)) from None
        note, head = source.note(), log.head.checkpoint
        data = source.entry(index)
        passport = None if data is None else read(data).passport
        if passport is None:
            raise UsageError("registry.unknown", f"entry {index} is no passport", where=str(folder))
        named = passport.passport_id.encode()
        naming_it = [
            (Logged(place, leaf, entry), data)
            for place, data, leaf in log.entries()
            if named in (entry := read(data)).envelope.payload
        ]
    text = _word(head, passport.passport_id, [logged for logged, _ in naming_it], timestamp(at))
    document = StatusDocument(
        checkpoint=note.decode(),
        word=write_note(text, [signer.sign(text)]).decode(),
        entries=tuple(Held(index=logged.index, entry=encode64(data)) for logged, data in naming_it),
    )
    return canonical.pretty(document.to_dict()).encode()


def _word(head: Checkpoint, passport_id: str, entries: Iterable[Logged], time: str) -> str:
    listed = "".join(f"{logged.index} {logged.leaf.hex()}\n" for logged in entries)
    digest = hashlib.sha256(listed.encode()).hexdigest()
    lines = (_FIRST, head.origin, str(head.size), encode64(head.root), passport_id, digest, time)
    return "".join(f"{line}\n" for line in lines)


class FileStatus:
    """The status that a file tells, as of its checkpoint; `seen` is as for `FolderStatus`.

    It is refused where it is older than what is remembered, unless it ends the passport.
    """

    def __init__(self, data: bytes, *, trust: Trust, at: datetime, seen: Seen) -> None:
        self._data, self._trust, self._at, self._seen = data, trust, at, seen

    def status(
        self,
        passport_id: Digest,
        revokers: Mapping[Digest, PublicKey],
        facts: Facts | None = None,  # noqa: ARG002 - the file holds no plan
    ) -> LoggedStatus:
        """Return the standing of the passport, as `FolderStatus.status` does, but nothing of a plan.

        Raises:
            InputError: for the form of the file.
            MismatchError: where it does not hold together.
            UnavailableError: where it is older than what is remembered.
        """
        try:
            file = msgspec.convert(canonical.loads(self._data), StatusDocument)
        except (CertkitError, msgspec.ValidationError) as error:
            raise InputError("registry.status", f"not a status file: {error}") from None
        key = log_key(file.checkpoint.encode(), self._trust)
        quorum = Quorum.of(self._trust.witnesses.k, self._trust.witnesses.keys)
        signed = open_checkpoint(file.checkpoint.encode(), key, quorum.keys)
        head, entries = signed.checkpoint, [_entry(held) for held in file.entries]
        time = _check_word(file.word.encode(), key, head, passport_id, entries)
        events = _Events(Policy(head.origin, self._trust), passport_id, revokers)
        for logged in entries:
            events.take(logged)
        seen = self._seen(head.origin)
        if not events.ended and seen is not None and head.size < seen.size:
            raise UnavailableError(
                "registry.rollback",
                f"the status is as of {many(head.size, 'entry')}, and {seen.size:,} are known to be logged",
                hint="ask whoever keeps the log for a newer one",
            )
        if not events.ended and seen is not None and head.size == seen.size:
            refuse_fork(seen, head, lambda _: head.root)
        known = time if time <= self._at + CLOCK_SKEW else None
        return events.status(head, _vouched(signed, quorum, self._at) if quorum.k else known, self._at)


def _entry(held: Held) -> Logged:
    data = decode64(held.entry)
    if data is None:
        raise InputError("registry.status", f"not a status file: entry {held.index} is not base64")
    return Logged(held.index, leaf_hash(data), read(data))


def _check_word(
    word: bytes, key: VerifierKey, head: Checkpoint, passport_id: str, entries: list[Logged]
) -> datetime:
    """Return the time of the log's word, which must be about this checkpoint, passport and entries."""
    text = open_note(word, [key]).text
    time = text.removesuffix("\n").rpartition("\n")[2]
    if text != _word(head, passport_id, entries, time):
        message = "the log's word is about another passport, checkpoint or list of entries than this file"
        raise MismatchError("registry.status", message)
    try:
        return moment(time)
    except ValueError:
        raise InputError("registry.status", "not a status file: its word has no time") from None
