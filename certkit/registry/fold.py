"""The fold over the entries of a log: lineages, attempts, and what ended each passport. It reads no disk.

    passports = Passports(Policy(origin, trust, load))   # without trust, everybody's entries count
    for logged in entries:
        passports.follow(logged)
    passports.ending(passport_id)                        # None, or what ended it

Reader, status and audit use the same fold and differ in the `Policy` alone. The writer asks the log's index,
which holds the `rows` of every entry; an audit makes them again from the entries and compares.

Three kinds of entry end a passport: a revocation, a supersession, and a later passport that names it in
`supersedes`. Each counts only if the passport's issuer signed it, with a key that the policy lists under the
issuer's name: the entry of a revocation or supersession, and the file of a later passport.
`Policy.is_issuers` says who may end a passport; an audit asks its own, which has opened every file. Where
several end a passport, a revocation comes before a supersession, a graver reason before another, and else
the first.

`EntryDates`, `Lineages` and `LogKeys` are rules that every entry must satisfy. No entry may be dated before
those above it, nor later than now; clocks may differ by a few minutes.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec import Struct, structs

from certkit.ground.errors import CertkitError
from certkit.ground.text import name_key
from certkit.ground.wording import many
from certkit.passport import keys
from certkit.passport.checks import HowEnded, shown
from certkit.passport.passport import CLOCK_SKEW
from certkit.passport.steps import open_signed
from certkit.registry.entry import (
    Claims,
    KeyChange,
    Logged,
    PlanNotice,
    Previous,
    Reason,
    Revocation,
    Stored,
    Supersession,
    UnverifiedEntry,
    graver,
    moment,
    timestamp,
    unverified_facts,
)
from certkit.tlog.note import VerifierKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from certkit.passport.keys import PublicKey
    from certkit.passport.trust import Candidate, Trust

PassportStanding = Literal["current", HowEnded, "expired", "upcoming"]


# What ended a passport


class Ending(Struct, frozen=True, kw_only=True):
    """What ended a passport.

    Attributes:
        index: The entry that ends it.
        how: Revoked or superseded.
        reason: Reason of a revocation.
        by: Id of the passport that replaces a superseded one.
    """

    index: int
    how: HowEnded
    reason: Reason | None = None
    by: str | None = None


def ending_of(index: int, entry: UnverifiedEntry) -> tuple[str, Ending] | None:
    """Return the passport that an entry ends, and how, whoever signed it; None where it ends none."""
    claims = entry.claims
    if isinstance(claims, Revocation):
        return claims.passport_id, Ending(index=index, how="revoked", reason=claims.reason)
    if isinstance(claims, Supersession):
        return claims.passport_id, Ending(index=index, how="superseded", by=claims.by)
    if isinstance(claims, Claims) and claims.supersedes is not None:
        return claims.supersedes, Ending(index=index, how="superseded", by=claims.passport_id)
    return None


def outweighs(ending: Ending, before: Ending | None) -> bool:
    """Tell whether a further ending is the one to name: a revocation before all, and the gravest of them."""
    if before is None or ending.reason is None:
        return before is None
    return before.reason is None or graver(ending.reason, before.reason)


class Policy:
    """Whose entries count for a reader of a log.

    With a trust policy, the entries of its keys count, under the names of their issuers; without one,
    everybody's. A false signature counts for nothing.

    Args:
        origin: Name of the log.
        trust: The trust policy.
        load: Returns the file of a passport by its SHA-256, or None where the registry does not hold it.
            Without the file, whoever submitted the entry is taken as the passport's issuer.
    """

    def __init__(
        self,
        origin: str,
        trust: Trust | None = None,
        load: Callable[[str], bytes | None] = lambda _: None,
    ) -> None:
        candidates = () if trust is None else trust.candidates()
        self.origin, self._trust, self._load = origin, trust, load
        self._keys: dict[str, PublicKey] = {candidate.id: candidate.key for candidate in candidates}
        self._names: dict[str, str] = {candidate.id: candidate.issuer for candidate in candidates}

    def names(self, ids: Iterable[str]) -> set[str]:
        """Return the names of the issuers whose keys have some ids."""
        return {self._names[key_id] for key_id in ids if key_id in self._names}

    def signed(self, logged: Logged) -> bool:
        """Tell whether one of the policy's keys signed an entry; without a policy, anybody may have."""
        key = self._keys.get(logged.entry.body.submitter)
        if self._trust is None or key is None:
            return self._trust is None
        try:
            logged.entry.verify(key)
        except CertkitError:
            return False
        return True

    def holds(self, file: Stored) -> bool:
        """Tell whether the registry holds the file of a passport."""
        return self._load(file.sha256) is not None

    def issuer(self, logged: Logged) -> str | None:
        """Return the policy's name for who issued a logged passport, None for nobody that it knows."""
        submitter, file = logged.entry.body.submitter, logged.entry.body.passport
        data = None if file is None else self._load(file.sha256)
        if data is None:
            return self.name(logged)
        if not is_of(data, logged.entry):
            return None
        try:
            return submitter if self._trust is None else open_signed(data, self._trust).signer.issuer
        except CertkitError:
            return None

    def name(self, logged: Logged) -> str:
        """Return the policy's name for the key that an entry names as its submitter's, or the key's id."""
        submitter = logged.entry.body.submitter
        return self._names.get(submitter, submitter)

    def submitter(self, logged: Logged) -> str | None:
        """Return the policy's name for who submitted an entry, None for a stranger or a false signature."""
        return self._names.get(logged.entry.body.submitter) if self.signed(logged) else None

    def is_issuers(self, logged: Logged, issuers: Iterable[str]) -> bool:
        """Tell whether an entry may end a passport of some issuers; without a policy, anybody's may."""
        if self._trust is None:
            return True
        by = self.submitter(logged) if logged.entry.passport is None else self.issuer(logged)
        return by is not None and by in issuers


class LoggedPassport(Struct, frozen=True, kw_only=True):
    """A passport as the log has it.

    Attributes:
        index: The entry that logs it.
        issued_at: Time of that entry.
        lineage: The agent's lineage.
        claims: What the entry says of it.
        file: The passport's file.
        ending: What ended it, None where nothing did.
    """

    index: int
    issued_at: str
    lineage: str
    claims: Claims
    file: Stored
    ending: Ending | None = None

    def standing(self, now: str) -> PassportStanding:
        """Return its status at a time, given as entries write times."""
        if self.ending is not None:
            return self.ending.how
        if now < self.claims.not_before:
            return "upcoming"
        return "expired" if self.claims.not_after < now else "current"


class Passports:
    """The passports that entries log, and what ended each; entries that do not count end none."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._issued: dict[str, LoggedPassport] = {}
        self._issuers: dict[str, set[str]] = {}
        self._submitters: dict[str, set[str]] = {}
        self._endings: dict[str, list[tuple[Logged, Ending]]] = {}
        self._false: dict[str, list[Logged]] = {}

    def follow(self, logged: Logged) -> bool:
        """Take the next entry; return whether its submitter's word counts in this log."""
        claims = logged.entry.claims
        if isinstance(claims, Claims):
            counts = self._log(logged, claims)
        elif isinstance(claims, Revocation | Supersession):
            counts = True  # whether it ends the passport depends on who issued that
        else:
            counts = self._policy.signed(logged) and logged.entry.body.log == self._policy.origin
        if counts and (ended := ending_of(logged.index, logged.entry)):
            self._endings.setdefault(ended[0], []).append((logged, ended[1]))
            if ended[1].reason == "evidence-false":
                self._false.setdefault(name_key(logged.entry.body.subject), []).append(logged)
        return counts

    def _log(self, logged: Logged, claims: Claims) -> bool:
        """Take the entry of a passport; tell whether it counts."""
        body = logged.entry.body
        issuer = self._policy.issuer(logged) if self._policy.signed(logged) else None
        if issuer is None or body.passport is None:
            return False
        # An issuer may end a passport that was logged for another log too. Without the file nobody knows the
        # issuer: anyone whom the policy knows may log a passport of others, and must not end it by that.
        known = self._issuers if self._policy.holds(body.passport) else self._submitters
        known.setdefault(claims.passport_id, set()).add(issuer)
        if body.log != self._policy.origin:
            return False
        self._issued.setdefault(
            claims.passport_id,
            LoggedPassport(
                index=logged.index,
                issued_at=body.issued_at,
                lineage=body.subject,
                claims=claims,
                file=body.passport,
            ),
        )
        return True

    def issued_by(self, passport_id: str, issuers: Iterable[str]) -> None:
        """Add who issued a passport, where its verification says so and not the log."""
        self._issuers.setdefault(passport_id, set()).update(issuers)

    def ends(self, logged: Logged) -> bool:
        """Tell whether an entry that was followed ends the passport that it names, or names none."""
        ended = ending_of(logged.index, logged.entry)
        if ended is None:
            return True
        return self._policy.is_issuers(logged, self.issuers(ended[0]))

    def issuers(self, passport_id: str) -> set[str]:
        """Return who issued a passport, or else who submitted it."""
        return self._issuers.get(passport_id) or self._submitters.get(passport_id, set())

    def endings(self, passport_id: str) -> Iterator[tuple[Logged, Ending]]:
        """Yield the entries that end a passport, in their order."""
        for logged, ending in self._endings.get(passport_id, ()):
            if self.ends(logged):
                yield logged, ending

    def refuted(self, lineage: str, issuer: str | None) -> set[str]:
        """Return the evidence of a lineage that an issuer revoked as false, by its passports on it."""
        false = self._false.get(name_key(lineage), ())
        ids = (str(logged.entry.passport_id) for logged in false if self.ends(logged))
        named = (self._issued.get(ident) for ident in ids if issuer in self.issuers(ident))
        return {issued.claims.evidence for issued in named if issued and issued.lineage == lineage}

    def ignored(self, passport_id: str) -> Iterator[int]:
        """Yield the indices of entries that name a passport's end and do not count."""
        for logged, _ in self._endings.get(passport_id, ()):
            if not self.ends(logged):
                yield logged.index

    def ending(self, passport_id: str) -> tuple[Logged, Ending] | None:
        """Return what ended a passport, with its entry; None where nothing did."""
        weightiest: tuple[Logged, Ending] | None = None
        for logged, ending in self.endings(passport_id):
            if outweighs(ending, weightiest[1] if weightiest else None):
                weightiest = logged, ending
        return weightiest

    def logged(self, passport_id: str) -> LoggedPassport | None:
        """Return the first entry that logs a passport, None where none does."""
        return self._issued.get(passport_id)

    def issued(self) -> Iterator[LoggedPassport]:
        """Yield the passports in the order of their entries, each with what ended it."""
        for passport_id, issued in self._issued.items():
            ended = self.ending(passport_id)
            yield structs.replace(issued, ending=ended[1] if ended else None)


# Which plans were announced

NOT_ANNOUNCED: Final = "its plan is not announced here"


class Plans:
    """The plans that entries announce, each for an agent; the caller says which entries count.

    Args:
        policy: Names who submitted an entry.
        plan_of: Returns the plan that a passport names, by the SHA-256 of its file: empty where it names
            none, None where the file is not here.
    """

    def __init__(self, policy: Policy, plan_of: Callable[[str], str | None]) -> None:
        self._policy, self.plan_of = policy, cache(plan_of)
        self._first: dict[str, dict[str, Logged]] = {}
        self._files: dict[str, dict[str, None]] = {}

    def follow(self, logged: Logged) -> None:
        """Take the next entry that counts."""
        body, claims = logged.entry.body, logged.entry.claims
        if isinstance(claims, PlanNotice):
            self._first.setdefault(name_key(claims.lineage), {}).setdefault(claims.plan, logged)
        elif isinstance(claims, Claims) and body.passport is not None:
            self._files.setdefault(name_key(body.subject), {})[body.passport.sha256] = None

    def text(
        self, lineage: str, plan: str | None, passport: LoggedPassport | None, issuers: Iterable[str]
    ) -> str | None:
        """Return in words whether, by whom and how long before a passport its plan was announced.

        The log shows no time of a run, so it is said how long the plan lay in the log before the passport,
        and how many plans are announced for the same agent.

        Args:
            lineage: The agent.
            plan: Digest of the plan that the passport names.
            passport: The passport as it is logged, None where it is not.
            issuers: The names of its issuer.

        Returns:
            None where the passport names no plan.
        """
        if not plan:
            return None
        plans = self._first.get(name_key(lineage), {})
        said = self._announced(plans[plan], passport, issuers) if plan in plans else NOT_ANNOUNCED
        if plans.keys() <= {plan}:
            return said
        count = f"1 of {many(len(plans), 'plan')}" if plan in plans else many(len(plans), "plan")
        return f"{said}; {count} announced for this agent{self._unused(lineage, set(plans) - {plan})}"

    def _announced(self, first: Logged, passport: LoggedPassport | None, issuers: Iterable[str]) -> str:
        """Return in words who announced a plan, and when."""
        submitter, name = first.entry.body.submitter, self._policy.name(first)
        by = f"key {submitter.removeprefix('sha256:')[:8]}" if name == submitter else name
        who = by if name in issuers else f"{by}, another submitter than the issuer"
        entry = f"its plan is announced by {who}: entry {first.index}"
        if passport is None:
            return f"{entry} at {first.entry.body.issued_at}"
        if first.index > passport.index:
            return f"{entry}, after the passport's entry {passport.index}, and so not beforehand"
        lead = _lead(moment(passport.issued_at) - moment(first.entry.body.issued_at))
        return f"{entry}, {lead} before the passport's entry {passport.index}"

    def _unused(self, lineage: str, plans: set[str]) -> str:
        """Return in words how many of some plans no passport of the agent names."""
        named = {self.plan_of(file) for file in self._files.get(name_key(lineage), ())}
        if None in named:
            return "; which of them have a passport is not known here"
        count = len(plans - named)
        return (
            f"; {count} {'has' if count == 1 else 'have'} no passport" if count else "; each has a passport"
        )


def _lead(time: timedelta) -> str:
    """Return in words how long one entry lies before another, rounded down."""
    for unit, word, least in ((86400, "day", 2), (3600, "hour", 2), (60, "minute", 1)):
        if (count := int(time.total_seconds()) // unit) >= least:
            return many(count, word)
    return "less than a minute"


# The rules that every entry must satisfy


def is_of(passport: bytes, entry: UnverifiedEntry) -> bool:
    """Tell whether a file is the passport that an entry logs, and says all that the entry claims of it.

    Nothing is verified.
    """
    facts, claims = unverified_facts(passport), entry.passport
    if facts is None or claims is None:
        return False
    return facts.lineage == entry.body.subject and Claims.of(facts, claims.attempt) == claims


@lru_cache(maxsize=4096)  # entries of few lineages follow one another
def is_before(time: str, later: str) -> bool:
    """Tell whether a time of an entry lies before another by more than clocks may differ."""
    # Times of entries are compared as text, since all have the same form and zone.
    return time < later and datetime.fromisoformat(later) - datetime.fromisoformat(time) > CLOCK_SKEW


def outside(key: Candidate, date: str) -> str | None:
    """Return in words why a key was not trusted at the date of an entry, None where it was."""
    start, end = key.not_before, key.not_after
    if (start and is_before(date, timestamp(start))) or (end and is_before(timestamp(end), date)):
        return f"dated {date}, and this key of {key.issuer} is trusted {shown(start)} to {shown(end)}"
    return None


def submitters(trust: Trust) -> dict[str, Candidate]:
    """Return the keys that may submit entries, by id: those of the trusted issuers."""
    return {candidate.id: candidate for candidate in trust.candidates()}


class EntryDates:
    """The dates of a log's entries so far; none may be later than `at`, where that is given."""

    def __init__(self, at: datetime | None) -> None:
        self._now = None if at is None else timestamp(at)
        self._newest = ""
        self._index = 0

    def follow(self, index: int, entry: UnverifiedEntry, *, signed: bool) -> Iterator[str]:
        """Take the next entry; yield what its date contradicts. An unsigned date binds no later entry."""
        date = entry.body.issued_at
        if is_before(date, self._newest):
            yield f"dated {date}, and entry {self._index} above it {self._newest}"
        if self._now is not None and is_before(self._now, date):
            yield f"dated {date}, which is to come: it is {self._now}"
        elif signed and date > self._newest:
            self._newest, self._index = date, index


class Lineages:
    """The lineages of a log, entry by entry. Each issuer has a chain of its own in a lineage."""

    def __init__(self) -> None:
        self._submitted: set[tuple[str, str]] = set()
        self._last: dict[str, Previous] = {}
        self._places: dict[tuple[str, str], int] = {}
        self._latest: dict[tuple[str, str | None], int] = {}
        self._evidence: dict[tuple[str, str], dict[str, int]] = {}
        self._spelling: dict[str, str] = {}

    @property
    def passports(self) -> int:
        """How many passports were logged."""
        return len({passport_id for passport_id, _ in self._submitted})

    def follow(self, logged: Logged) -> Iterator[str]:
        """Take the next entry; yield what in it does not follow from those before."""
        body, claims = logged.entry.body, logged.entry.claims
        if body.prev != self._last.get(body.subject):
            yield "prev is not the entry before it in its lineage"
        self._last[body.subject] = Previous(index=logged.index, leaf=logged.leaf.hex())
        if not isinstance(claims, Claims):
            return
        # A writer whose policy does not know the first submitter may log a passport once more.
        if (claims.passport_id, body.submitter) in self._submitted:
            yield "the passport is logged a second time by the same key"
        self._submitted.add((claims.passport_id, body.submitter))
        name = name_key(body.subject)
        if (spelling := self._spelling.setdefault(name, body.subject)) != body.subject:
            yield f"the lineage differs from {spelling!r} in spelling alone"
        self._places.setdefault((name, claims.passport_id), logged.index)
        attempts = self._evidence.setdefault((name, claims.profile), {})
        attempt = attempts.setdefault(claims.evidence, len(attempts) + 1)
        if claims.attempt != attempt:
            yield f"it says attempt {claims.attempt}, this is attempt {attempt}"

    def replaces(self, logged: Logged, claims: Claims, issuer: str | None) -> str | None:
        """Take who issued the passport of an entry; return in words what its `supersedes` contradicts.

        A passport may supersede one of its lineage, unless the issuer logged another in between. Only the
        first entry of a passport is asked.

        Args:
            logged: The entry, which was followed.
            claims: What it claims.
            issuer: Who issued the passport, by its signature.
        """
        name = name_key(logged.entry.body.subject)
        if self._places[name, claims.passport_id] != logged.index:
            return None
        latest = self._latest.get((name, issuer), 0)
        self._latest[name, issuer] = logged.index
        if claims.supersedes is None or self._places.get((name, claims.supersedes), -1) >= latest:
            return None
        return "it supersedes another passport than its issuer's latest of the lineage"


class LogKeys:
    """The keys of a log, each handed over to the next by an entry that the one before signed.

    Attributes:
        had: Every key so far (raw public keys), once one was changed.
        last: The newest verifier key that the entries name, None where none was ever changed.
    """

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self.had: set[bytes] = set()
        self.last: str | None = None

    def follow(self, entry: UnverifiedEntry, change: KeyChange) -> str | None:
        """Take the next change of keys; return what does not hold of it, None where it holds."""
        before, self.last = self.last, change.new
        if before not in {None, change.old}:
            return f"it hands over from {change.old}, and the key before it is {before}"
        try:
            old, new = VerifierKey.parse(change.old), VerifierKey.parse(change.new)
            public = Ed25519PublicKey.from_public_bytes(old.public)
            if {old.name, new.name, entry.body.subject} != {self._origin}:
                return "its keys are another log's"
            if entry.body.submitter != keys.key_id(public):
                return "not submitted by the key that it hands over from"
            entry.verify(public)
        except (CertkitError, ValueError) as error:
            return str(error)
        # Whoever holds a key that was given up could present an old copy of the log as the present one.
        again = new.public in {old.public, *self.had}
        self.had |= {old.public, new.public}
        return "it hands over to a key that the log had before" if again else None


# The index that a writer asks


class LineageRow(NamedTuple):
    """The row of an entry in the table ``lineage``; digests are 32 bytes, null but for ``passport`` entries.

    `name` is the lineage as names are compared, `newest` the latest date of an entry up to this one.
    """

    idx: int
    name: str
    subject: str
    passport_id: bytes | None
    profile: bytes | None
    evidence: bytes | None
    attempt: int | None
    submitter: bytes
    newest: str


class EndingRow(NamedTuple):
    """The row in the table ``ending`` of an entry that ends a passport, whoever signed it."""

    idx: int
    passport_id: bytes
    name: str
    how: str
    reason: str | None
    submitter: bytes


def rows(origin: str, index: int, entry: UnverifiedEntry, newest: str) -> tuple[LineageRow, EndingRow | None]:
    """Return the rows of an entry in the index.

    Args:
        origin: Name of the log; an entry that was signed for another log logs and ends no passport.
        index: Its place in the log.
        entry: The entry; what it says is believed.
        newest: The latest date of the entries before it, empty for none.
    """
    body, is_here = entry.body, entry.body.log == origin
    claims = entry.passport if is_here else None
    name, submitter = name_key(body.subject), digest_bytes(body.submitter)
    row = LineageRow(
        idx=index,
        name=name,
        subject=body.subject,
        passport_id=digest_bytes(claims.passport_id) if claims else None,
        profile=digest_bytes(claims.profile) if claims else None,
        evidence=digest_bytes(claims.evidence) if claims else None,
        attempt=claims.attempt if claims else None,
        submitter=submitter,
        newest=max(newest, body.issued_at),
    )
    ended = ending_of(index, entry) if is_here else None
    if ended is None:
        return row, None
    passport_id, ending = ended
    return row, EndingRow(index, digest_bytes(passport_id), name, ending.how, ending.reason, submitter)


def digest_bytes(digest: str) -> bytes:
    """Return the 32 bytes of a digest in the form ``sha256:…``."""
    return bytes.fromhex(digest.removeprefix("sha256:"))
