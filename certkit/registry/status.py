"""Whether a passport stands, as far as a log can tell: step 8 of a verification.

    source = FolderStatus(folder, trust=trust, at=now, seen=remembered)     # a database or an exported tree
    verify(passport, trust=trust, at=now, status=source)

Every entry up to the checkpoint is read and must give its root; then what is said is: no entry in [0, N) ends
it. An entry ends a passport where its issuer, or another key that the policy lists under the issuer's name,
signed it, and where a later passport that a trusted key submitted takes its place. A passport that the log
does not hold has no status here, and one of which an entry cannot be read neither: unknown is never valid.

How old that is: a checkpoint has no time of its own. With a quorum of witnesses it is the time that they
vouch for; without one, the time of the newest entry that a trusted key signed, which whoever keeps the log
cannot write. A log in which nothing happens grows old so: its keeper logs a note, or has it witnessed.

What is not shown: that an entry was handed in and left out; and without a quorum, that others see the same.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from certkit.errors import CertkitError, MismatchError, UnavailableError
from certkit.passport.checks import CLOCK_SKEW, Status
from certkit.registry.auditing import opened
from certkit.registry.entry import Claims, read
from certkit.registry.heads import read as read_head
from certkit.registry.history import Log, ending_of, moment
from certkit.registry.registry import Logged
from certkit.tlog.note import VerifierKey, parse_note
from certkit.tlog.witness import Quorum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from certkit.canonical import Digest
    from certkit.passport.keys import PublicKey
    from certkit.passport.trust import Trust
    from certkit.tlog.checkpoint import Checkpoint, SignedCheckpoint


class Events:
    """What was found so far about one passport."""

    def __init__(
        self, passport_id: Digest, revokers: Mapping[Digest, PublicKey], trusted: Mapping[Digest, PublicKey]
    ) -> None:
        self._id, self._revokers, self._trusted = passport_id, revokers, trusted
        self.logged: int | None = None
        self.ended: tuple[str, str] | None = None
        self.ignored: list[int] = []

    def take(self, one: Logged) -> None:
        """Take an entry into account; raise `MismatchError` where it bears a false signature."""
        claims = one.found.claims
        if isinstance(claims, Claims) and claims.passport_id == self._id and self.logged is None:
            self.logged = one.index
        ended, ending = ending_of(one)
        if ended != self._id or ending is None:
            return
        # Another passport takes its place by its own issuer's word; all else is for its own issuer to say.
        who = self._trusted if isinstance(claims, Claims) else self._revokers
        if not signed(one, who):
            self.ignored.append(one.index)
        elif self.ended is None or (ending.how == "revoked" and self.ended[0] != "revoked"):
            why = f": {ending.reason}" if ending.reason else f" by {ending.by}" if ending.by else ""
            time = one.found.entry.issued_at
            self.ended = (ending.how, f"{ending.how} by entry {one.index} at {time}{why}")

    def status(self, head: Checkpoint, time: datetime | None, at: datetime) -> Status:
        """Return what was found, as of a checkpoint and the time that somebody vouches for it."""
        of = f"as of checkpoint {head.size:,} of {head.origin}, {_age(time, at)}"
        more = "".join(
            f"; entry {index} would end it, and is not signed by its issuer" for index in self.ignored
        )
        if self.ended is not None:
            standing, what = self.ended
        elif self.logged is None:
            standing, what = "unknown", "no entry is about it"
        else:
            standing, what = "current", f"no entry in [0, {head.size:,}) ends it"
        return Status(standing=standing, detail=f"{what}, {of}{more}", size=head.size, time=time)  # type: ignore[arg-type]


def _age(time: datetime | None, at: datetime) -> str:
    if time is None:
        return "of unknown age"
    days = max(0, (at - time).days)
    return f"at most {days:,} days old" if days != 1 else "at most 1 day old"


def signed(one: Logged, keys: Mapping[Digest, PublicKey]) -> bool:
    """Tell whether one of `keys` submitted an entry; raise `MismatchError` where its signature is false."""
    key = next((key for name, key in keys.items() if name == one.found.entry.submitter), None)
    if key is None:
        return False
    try:
        one.found.verify(key)
    except CertkitError as error:
        raise MismatchError(
            "registry.entry-signature", f"entry {one.index}: {error.message}", hint=error.hint
        ) from None
    return True


class FolderStatus:
    """The status in a registry's database or exported tree, as of its checkpoint.

    `seen` is the newest checkpoint that is remembered of it, None where none is; it must go on from there.
    """

    def __init__(
        self, folder: Path, *, trust: Trust, at: datetime, seen: Callable[[str], Checkpoint | None]
    ) -> None:
        self._folder, self._trust, self._at, self._seen = folder, trust, at, seen

    def status(self, passport_id: Digest, revokers: Mapping[Digest, PublicKey]) -> Status:
        """Return the standing of a passport; `revokers` are the keys, by id, that may end it.

        Raises `UnavailableError` where it cannot be told, and `CertkitError` where the log does not hold.
        """
        trusted = {one.id: one.key for one in self._trust.candidates()}
        quorum = Quorum.of(self._trust.witnesses.k, self._trust.witnesses.keys)
        events, newest = Events(passport_id, revokers, trusted), _Newest(trusted, self._at)
        with opened(self._folder) as source:
            log = Log(self._folder, source, log_key(source.note(), self._trust), quorum.keys)
            head = log.head.checkpoint
            for index, data, leaf in log.entries(self._seen(head.origin)):
                one = _readable(index, data, leaf)
                events.take(one)
                newest.take(one)
        time = vouched(log.head, quorum, self._at) if quorum.k else newest.time()
        return events.status(head, time, self._at)


def _readable(index: int, data: bytes, leaf: bytes) -> Logged:
    try:
        return Logged(index, leaf, read(data))  # type: ignore[arg-type]
    except CertkitError as error:
        message = f"entry {index} cannot be read, and may end it: {error.message}"
        raise UnavailableError("passport.unavailable", message) from None


class _Newest:
    """The newest time that a trusted key signed, and that is not to come."""

    def __init__(self, trusted: Mapping[Digest, PublicKey], at: datetime) -> None:
        self._trusted, self._limit = trusted, at + CLOCK_SKEW
        self._found: tuple[datetime, Logged] | None = None

    def take(self, one: Logged) -> None:
        time = moment(one.found.entry.issued_at)
        newer = self._found is None or time > self._found[0]
        if newer and time <= self._limit and one.found.entry.submitter in self._trusted:
            self._found = time, one

    def time(self) -> datetime | None:
        return self._found[0] if self._found and signed(self._found[1], self._trusted) else None


def vouched(head: SignedCheckpoint, quorum: Quorum, at: datetime) -> datetime | None:
    """Return the time that a quorum vouches for a checkpoint, None where it is to come.

    Raises `MismatchError` ``passport.witnesses`` where too few have cosigned.
    """
    since = quorum.since(head.cosigned)
    if since is None:
        raise MismatchError(
            "passport.witnesses", f"{len(head.cosigned)} of {quorum.k} required witnesses cosigned"
        )
    latest = (at + CLOCK_SKEW).timestamp()
    return datetime.fromtimestamp(since, UTC) if since <= latest else None


def log_key(note: bytes, trust: Trust) -> VerifierKey:
    """Return the policy's key that a checkpoint is signed with.

    Raises `UnavailableError` ``registry.untrusted-log`` where there is none.
    """
    keys = {(key.name, key.key_id): key for key in _parsed(trust.logs)}
    for one in parse_note(note).signatures:
        if found := keys.get((one.name, one.key_id)):
            return found
    raise UnavailableError(
        "registry.untrusted-log",
        f"no trusted verifier key signed the checkpoint of {read_head(note).origin}",
        hint="certkit trust add --log VKEY, with the key that 'certkit registry init' printed",
    )


def _parsed(vkeys: Iterable[str]) -> list[VerifierKey]:
    return [VerifierKey.parse(text) for text in vkeys]
