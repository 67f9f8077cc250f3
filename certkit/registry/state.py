"""The one fold over the entries of a log: which passports they log, and what ended each.

    policy = Policy(origin, trust, load)          # whose entries count; without trust everybody's do
    passports = Passports(policy)
    for logged in entries:
        passports.follow(logged)
    passports.ending(passport_id)                 # None, or what ended it

Writer, audit, status, history and list ask this, and differ in the `Policy` alone.

Three kinds of entry end a passport: a revocation by its issuer, a supersession by its issuer, and a later
passport that names it in `supersedes` and counts itself. Of several endings a revocation comes before a
supersession, a graver reason before another, and else the first.

`Dates` and `Lineages` are rules that every entry must satisfy, used by writer and auditor: date, and place
in its lineage. The place is the log's, the date the submitter's word: so that nobody can date an entry back,
none may be dated before those above it, nor later than now; clocks may differ by a few minutes.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, structs

from certkit.ground.errors import CertkitError
from certkit.ground.text import letters
from certkit.passport import opening
from certkit.passport.checks import CLOCK_SKEW, HowEnded, shown
from certkit.registry.entry import (
    Claims,
    Drift,
    DriftResult,
    Logged,
    Previous,
    Reason,
    Revocation,
    Stored,
    Supersession,
    UnverifiedEntry,
    graver,
    timestamp,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from certkit.passport.keys import PublicKey
    from certkit.passport.trust import Candidate, Trust

PassportStanding = Literal["current", HowEnded, "expired", "upcoming"]


# What ended a passport


class Ending(Struct, frozen=True, kw_only=True):
    """What ended a passport: the entry that says so; `by` is the passport that took its place."""

    index: int
    how: HowEnded
    reason: Reason | None = None
    by: str | None = None


def ending_of(index: int, entry: UnverifiedEntry) -> tuple[str, Ending] | None:
    """Return which passport an entry ends, whoever says so, and how; None where it ends none."""
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
    """Whose entries count for a reader of the log named `origin`.

    With a trust policy those of its keys, under the names of their issuers; without one everybody's. `load`
    returns the file of a passport by its digest, or None if the registry does not hold it. Without the file,
    whoever submitted the entry is taken as the issuer. A false signature counts for nothing.
    """

    def __init__(
        self,
        origin: str,
        trust: Trust | None = None,
        load: Callable[[str], bytes | None] = lambda _: None,
    ) -> None:
        candidates = () if trust is None else trust.candidates()
        self.origin, self._trust, self._load = origin, trust, load
        self.keys: dict[str, PublicKey] = {candidate.id: candidate.key for candidate in candidates}
        self._names: dict[str, str] = {candidate.id: candidate.issuer for candidate in candidates}

    def names(self, ids: Iterable[str]) -> set[str]:
        """Return the names of the issuers whose keys have some ids."""
        return {self._names[known] for known in ids if known in self._names}

    def signed(self, logged: Logged) -> bool:
        """Tell whether one of the policy's keys signed an entry; without a policy, anybody may have."""
        key = self.keys.get(logged.found.entry.submitter)
        if self._trust is None or key is None:
            return self._trust is None
        try:
            logged.found.verify(key)
        except CertkitError:
            return False
        return True

    def counts(self, logged: Logged) -> bool:
        """Tell whether an entry that ends nothing counts: signed by a key of the policy, for this log.

        Of a passport's, the file has to be the passport that it names, by an issuer that the policy knows.
        """
        if not self.signed(logged) or logged.found.entry.log != self.origin:
            return False
        return logged.found.passport is None or self.issuer(logged) is not None

    def issuer(self, logged: Logged) -> str | None:
        """Return the policy's name for who issued a logged passport; None for nobody that it knows."""
        submitter, file = logged.found.entry.submitter, logged.found.entry.passport
        data = None if file is None else self._load(file.sha256)
        if data is None:
            return self._names.get(submitter, submitter)
        if not is_of(data, logged.found):
            return None
        try:
            return submitter if self._trust is None else opening.open_signed(data, self._trust).signer.issuer
        except CertkitError:
            return None

    def is_issuers(self, logged: Logged, issuers: Iterable[str]) -> bool:
        """Tell whether a key of one of some issuers signed an entry; without a policy, anybody may."""
        name = self._names.get(logged.found.entry.submitter)
        return self._trust is None or (self.signed(logged) and name is not None and name in issuers)


class Issued(Struct, frozen=True, kw_only=True):
    """A passport as the log has it; `ending` is what ended it, None where nothing did.

    `reasons` are those of every revocation, `drift` the result that the log says of it.
    """

    index: int
    issued_at: str
    lineage: str
    claims: Claims
    file: Stored
    ending: Ending | None = None
    reasons: tuple[str, ...] = ()
    drift: DriftResult | None = None

    def standing(self, now: str) -> PassportStanding:
        """Return how it stands at a time; times are as entries write them."""
        if self.ending is not None:
            return self.ending.how
        if now < self.claims.not_before:
            return "upcoming"
        return "expired" if self.claims.not_after < now else "current"


class Passports:
    """The passports that entries log, and what ended each; entries that do not count end none."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._issued: dict[str, Issued] = {}
        self._issuers: dict[str, set[str]] = {}
        self._endings: dict[str, list[tuple[Logged, Ending]]] = {}
        self._false: dict[str, list[Logged]] = {}
        self._drifts: dict[str, DriftResult] = {}

    def follow(self, logged: Logged) -> bool:
        """Take the next entry; return whether it counts; later entries may still change that."""
        claims, counts = logged.found.claims, True
        if isinstance(claims, Claims):
            counts = self._logs(logged, claims)
        elif not isinstance(claims, Revocation | Supersession):
            counts = self._policy.counts(logged)
            if counts and isinstance(claims, Drift):
                self._drifts[claims.passport_id] = claims.result
        if counts and (ended := ending_of(logged.index, logged.found)):
            self._endings.setdefault(ended[0], []).append((logged, ended[1]))
            if ended[1].reason == "evidence-false":
                self._false.setdefault(logged.found.entry.subject, []).append(logged)
        return counts

    def _logs(self, logged: Logged, claims: Claims) -> bool:
        """Take the entry of a passport; tell whether it counts."""
        entry = logged.found.entry
        issuer = self._policy.issuer(logged) if self._policy.signed(logged) else None
        if issuer is None or entry.passport is None:
            return False
        # An issuer may end a passport that was logged for another log too.
        self._issuers.setdefault(claims.passport_id, set()).add(issuer)
        if entry.log != self._policy.origin:
            return False
        self._issued.setdefault(
            claims.passport_id,
            Issued(
                index=logged.index,
                issued_at=entry.issued_at,
                lineage=entry.subject,
                claims=claims,
                file=entry.passport,
            ),
        )
        return True

    def issued_by(self, passport_id: str, issuers: Iterable[str]) -> None:
        """Take in who issued a passport, where its verification tells that and not the log."""
        self._issuers.setdefault(passport_id, set()).update(issuers)

    def ends(self, logged: Logged) -> bool:
        """Tell whether an entry that was followed may say what it says: only its issuer ends a passport."""
        if isinstance(logged.found.claims, Claims):
            return True  # a later passport, which counts
        ended = ending_of(logged.index, logged.found)
        return ended is None or self._policy.is_issuers(logged, self._issuers.get(ended[0], ()))

    def endings(self, passport_id: str) -> Iterator[tuple[Logged, Ending]]:
        """Yield the entries that end a passport, in their order."""
        for logged, ending in self._endings.get(passport_id, ()):
            if self.ends(logged):
                yield logged, ending

    def refuted(self, lineage: str) -> set[str]:
        """Return the evidence of a lineage that issuers revoked as false, by their passports on it."""
        false = self._false.get(lineage, ())
        named = (self._issued.get(str(logged.found.passport_id)) for logged in false if self.ends(logged))
        return {issued.claims.evidence for issued in named if issued and issued.lineage == lineage}

    def ignored(self, passport_id: str) -> Iterator[int]:
        """Yield the places of entries that would end a passport and do not count."""
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

    def issued(self) -> Iterator[Issued]:
        """Yield the passports in the order of their entries, each with what ended it."""
        for passport_id, issued in self._issued.items():
            ended = self.ending(passport_id)
            reasons = (ending.reason for _, ending in self.endings(passport_id))
            yield structs.replace(
                issued,
                ending=ended[1] if ended else None,
                reasons=tuple(reason for reason in reasons if reason is not None),
                drift=self._drifts.get(passport_id),
            )


# The rules that every entry must satisfy


def is_of(passport: bytes, entry: UnverifiedEntry) -> bool:
    """Tell whether a file is the passport that an entry logs, under its own lineage; nothing is verified."""
    try:
        file = opening.parse(passport)
        lineage = file.unverified_statement().predicate.agent.lineage
    except CertkitError:
        return False
    claims = entry.passport
    return claims is not None and (file.passport_id, lineage) == (claims.passport_id, entry.entry.subject)


@lru_cache(maxsize=4096)  # entries of few lineages follow one another
def spelling(lineage: str) -> str:
    """Return what lineages have in common whose provider and name differ in spelling alone."""
    return "/".join(map(letters, lineage.split("/")))


def is_before(time: str, later: str) -> bool:
    """Tell whether a time of an entry lies before another by more than clocks may differ."""
    # Times of entries are compared as text, since all have the same form and zone.
    return time < later and datetime.fromisoformat(later) - datetime.fromisoformat(time) > CLOCK_SKEW


def outside(key: Candidate, date: str) -> str | None:
    """Return in words why an entry of a date is not by a key while that was trusted, None where it is."""
    start, end = key.not_before, key.not_after
    if (start and is_before(date, timestamp(start))) or (end and is_before(timestamp(end), date)):
        return f"dated {date}, and this key of {key.issuer} is trusted {shown(start)} to {shown(end)}"
    return None


def submitters(trust: Trust) -> dict[str, Candidate]:
    """Return the keys that may submit entries, by id: those of the trusted issuers."""
    return {candidate.id: candidate for candidate in trust.candidates()}


class Dates:
    """The dates of a log's entries so far; none may be later than `at`, where that is given."""

    def __init__(self, at: datetime | None) -> None:
        self._now = None if at is None else timestamp(at)
        self._newest = ""
        self._index = 0

    def follow(self, index: int, entry: UnverifiedEntry, *, signed: bool) -> Iterator[str]:
        """Take the next entry; yield what its date contradicts. What is not `signed` binds none after it."""
        date = entry.entry.issued_at
        if is_before(date, self._newest):
            yield f"dated {date}, and entry {self._index} above it {self._newest}"
        if self._now is not None and is_before(self._now, date):
            yield f"dated {date}, which is to come: it is {self._now}"
        elif signed and date > self._newest:
            self._newest, self._index = date, index


class Lineages:
    """The lineages of a log, entry by entry."""

    def __init__(self) -> None:
        self._submitted: set[tuple[str, str]] = set()
        self._last: dict[str, Previous] = {}
        self._latest: dict[str, str] = {}
        self._evidence: dict[tuple[str, str], dict[str, int]] = {}

    @property
    def passports(self) -> int:
        """How many passports were logged."""
        return len({passport_id for passport_id, _ in self._submitted})

    def last(self, lineage: str) -> Previous | None:
        """Return the last entry of a lineage, None where it has none."""
        return self._last.get(lineage)

    def latest(self, lineage: str) -> str | None:
        """Return the id of the latest passport of a lineage, None where it has none."""
        return self._latest.get(lineage)

    def attempt(self, lineage: str, profile: str, evidence: str) -> int:
        """Return which attempt of a lineage under a profile a passport on this evidence is."""
        attempts = self._evidence.get((lineage, profile), {})
        return attempts.get(evidence, len(attempts) + 1)

    def alike(self) -> Iterator[tuple[str, ...]]:
        """Yield the lineages with passports that differ from each other in spelling alone."""
        spelled: dict[str, list[str]] = {}
        for lineage in self._latest:
            spelled.setdefault(spelling(lineage), []).append(lineage)
        yield from (tuple(names) for names in spelled.values() if len(names) > 1)

    def follow(self, logged: Logged) -> list[str]:
        """Take the next entry; return what in it does not follow from those before."""
        entry, claims, wrong = logged.found.entry, logged.found.claims, []
        if entry.prev != self.last(entry.subject):
            wrong.append("prev is not the entry before it in its lineage")
        self._last[entry.subject] = Previous(index=logged.index, leaf=logged.leaf.hex())
        if not isinstance(claims, Claims):
            return wrong
        # Under a narrower policy a passport may seem not to be logged yet.
        if (claims.passport_id, entry.submitter) in self._submitted:
            wrong.append("the passport is logged a second time by the same key")
        self._submitted.add((claims.passport_id, entry.submitter))
        if claims.supersedes not in {None, self.latest(entry.subject)}:
            wrong.append("it supersedes another passport than the latest of its lineage")
        self._latest[entry.subject] = claims.passport_id
        attempt = self.attempt(entry.subject, claims.profile, claims.evidence)
        self._evidence.setdefault((entry.subject, claims.profile), {})[claims.evidence] = attempt
        if claims.attempt != attempt:
            wrong.append(f"it says attempt {claims.attempt}, this is attempt {attempt}")
        return wrong
