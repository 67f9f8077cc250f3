"""Whether a passport stands, as far as a log can tell: step 8 of a verification.

    source = FolderStatus(folder, trust=trust, at=now, seen=remembered)     # a database or an exported tree
    verify(passport, trust=trust, at=now, status=source)

Every entry up to the checkpoint is hashed and must give its root, and every one that names the passport, or
whose form leaves that open, is read; then what is said is: no entry in [0, N) ends it. The derived tables
would be faster and are not asked: whoever can write the file can leave a revocation out of them, and no proof
shows that nothing is missing.

An entry ends a passport where its issuer, or another key that the policy lists under the issuer's name,
signed it, and where a later passport that a trusted key submitted takes its place. A passport that the log
does not hold has no status here, and neither has any where an entry that may name it cannot be read: unknown
is never valid.

How old that is: a checkpoint has no time of its own. With a quorum of witnesses it is the time that they
vouch for; without one, the time of the newest entry that a trusted key signed, which whoever keeps the log
cannot write. A log in which nothing happens grows old so: its keeper logs a note, or has it witnessed.

What is not shown: that an entry was handed in and left out; and without a quorum, that others see the same,
and that the newest entry was not carried over from another log under the same key.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from certkit.errors import CertkitError, MismatchError, UnavailableError
from certkit.passport.checks import CLOCK_SKEW, Status, period
from certkit.progress import SILENT, Progress
from certkit.registry.entry import Claims, Logged, moment, read, skim, timestamp
from certkit.registry.reader import Reader, log_key, opened
from certkit.registry.state import Passports, Policy, signed
from certkit.tlog.witness import Quorum, counted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from certkit.canonical import Digest
    from certkit.passport.keys import PublicKey
    from certkit.passport.trust import Trust
    from certkit.registry.entry import Entry, Skimmed
    from certkit.registry.reader import Seen
    from certkit.tlog.checkpoint import Checkpoint, SignedCheckpoint


class Events:
    """What was found so far about one passport; `revokers` are the keys, by id, that may end it."""

    def __init__(self, policy: Policy, passport_id: Digest, revokers: Mapping[Digest, PublicKey]) -> None:
        self._policy, self._id = policy, passport_id
        self._enders = {str(name): key for name, key in revokers.items()}
        self._passports = Passports(policy)
        self._lineages: list[str] = []
        self._ignored: list[str] = []

    @property
    def ended(self) -> bool:
        """Whether something ended it."""
        return self._passports.ending(self._id, self._enders) is not None

    def take(self, logged: Logged) -> None:
        """Take an entry into account; raise `MismatchError` where it bears a false signature."""
        claims, entry = logged.found.claims, logged.found.entry
        counts = self._passports.follow(logged)
        if isinstance(claims, Claims) and claims.passport_id == self._id:
            if counts:
                self._lineages.append(entry.subject)
            elif not entry.is_for(self._policy.origin):
                self._ignored.append(f"entry {logged.index} logs it, and was signed for {entry.log}")
            else:
                self._ignored.append(f"entry {logged.index} logs it, and no trusted key signed that")
        elif isinstance(claims, Claims) and claims.supersedes == self._id and not counts:
            self._ignored.append(f"entry {logged.index} would end it, and does not count")

    def status(self, head: Checkpoint, time: datetime | None, at: datetime) -> Status:
        """Return what was found, as of a checkpoint and the time that somebody vouches for it."""
        when = f"as of checkpoint {head.size:,} of {head.origin}, {_age(time, at)}"
        foreign = self._passports.ignored(self._id, self._enders)
        ignored = [f"entry {index} would end it, and is not signed by its issuer" for index in foreign]
        more = "".join(f"; {text}" for text in (*self._ignored, *ignored))
        standing: Literal["current", "revoked", "superseded", "unknown"]
        if (ended := self._passports.ending(self._id, self._enders)) is not None:
            logged, ending = ended
            why = f": {ending.reason}" if ending.reason else f" by {ending.by}" if ending.by else ""
            standing = ending.how
            what = f"{standing} by entry {logged.index} at {logged.found.entry.issued_at}{why}"
        elif not self._lineages:
            what, standing = "no entry that counts logs it" if more else "no entry is about it", "unknown"
        else:
            what, standing = f"no entry in [0, {head.size:,}) ends it", "current"
        return Status(
            standing=standing,
            detail=f"{what}, {when}{more}",
            size=head.size,
            time=time,
            lineages=tuple(self._lineages),
        )


def _age(time: datetime | None, at: datetime) -> str:
    return "of unknown age" if time is None else f"at most {period(at - time)} old"


class FolderStatus:
    """The status in a registry's database or exported tree, as of its checkpoint.

    `seen` is the newest checkpoint that is remembered of it, None where none is; it must go on from there.
    """

    def __init__(
        self,
        folder: Path,
        *,
        trust: Trust,
        at: datetime,
        seen: Seen,
        progress: Progress = SILENT,
    ) -> None:
        self._folder, self._trust, self._at, self._seen = folder, trust, at, seen
        self._progress = progress

    def status(self, passport_id: Digest, revokers: Mapping[Digest, PublicKey]) -> Status:
        """Return the standing of a passport; `revokers` are the keys, by id, that may end it.

        Raises `UnavailableError` where it cannot be told, and `CertkitError` where the log does not hold.
        """
        named = passport_id.encode()
        quorum = Quorum.of(self._trust.witnesses.k, self._trust.witnesses.keys)
        with opened(self._folder) as source:
            log = Reader(
                self._folder,
                source,
                log_key(source.note(), self._trust),
                witnesses=quorum.keys,
                seen=self._seen,
                progress=self._progress,
            )
            head = log.head.checkpoint
            events = Events(Policy(head.origin, self._trust), passport_id, revokers)
            newest = _Newest(head.origin, self._trust, self._at)
            for index, data, leaf in log.entries():
                skimmed = skim(data)
                if skimmed is None or named in skimmed.payload:
                    logged = _readable(index, data, leaf)
                    events.take(logged)
                    newest.take(logged.found.entry, index, data, leaf)
                else:
                    newest.take(skimmed, index, data, leaf)
        time = vouched(log.head, quorum, self._at) if quorum.k else newest.time()
        return events.status(head, time, self._at)


def _readable(index: int, data: bytes, leaf: bytes) -> Logged:
    try:
        return Logged(index, leaf, read(data))  # type: ignore[arg-type]
    except CertkitError as error:
        message = f"entry {index} cannot be read, and may end it: {error.message}"
        raise UnavailableError("passport.unavailable", message) from None


class _Newest:
    """The newest time that a trusted key signed for this log in its own time, and that is not to come."""

    def __init__(self, origin: str, trust: Trust, at: datetime) -> None:
        self._origin = origin
        self._keys: dict[str, PublicKey] = {candidate.id: candidate.key for candidate in trust.candidates()}
        # Times are compared as text: all have the same form and zone.
        self._windows: dict[str, tuple[str, str]] = {
            candidate.id: (
                _text(candidate.not_before, ""),
                min(_text(candidate.not_after, "9999"), timestamp(at + CLOCK_SKEW)),
            )
            for candidate in trust.candidates()
        }
        self._time = ""
        self._found: tuple[int, bytes, bytes] | None = None

    def take(self, entry: Entry | Skimmed, index: int, data: bytes, leaf: bytes) -> None:
        start, end = self._windows.get(entry.submitter, ("9999", ""))
        if max(self._time, start) <= entry.issued_at <= end and entry.is_for(self._origin):
            self._time, self._found = entry.issued_at, (index, data, leaf)

    def time(self) -> datetime | None:
        if self._found is None:
            return None
        try:
            logged = _readable(*self._found)
        except UnavailableError:
            return None  # it is no entry, and so its date none
        return moment(logged.found.entry.issued_at) if signed(logged, self._keys) else None


def _text(time: datetime | None, otherwise: str) -> str:
    return otherwise if time is None else timestamp(time)


def vouched(head: SignedCheckpoint, quorum: Quorum, at: datetime) -> datetime | None:
    """Return the time since which a quorum vouches for a checkpoint, None where too few did by then.

    Raises `MismatchError` ``passport.witnesses`` where too few have cosigned at all.
    """
    if not quorum.is_met(head.cosigned):
        raise MismatchError(
            "passport.witnesses", f"{len(head.cosigned)} of {quorum.k} required witnesses cosigned"
        )
    since = quorum.since(counted(head.cosigned, (at + CLOCK_SKEW).timestamp()))
    return None if since is None else datetime.fromtimestamp(since, UTC)
