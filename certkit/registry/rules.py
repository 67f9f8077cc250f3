"""What a writer keeps to, asked of entries by whomever: their form, their dates, and who ends a passport.

An entry's place is the log's, its date the submitter's word. Nobody can change the place afterwards, and so
that nobody can date an entry back either, none may be dated before those above it, nor later than now; clocks
may differ by a few minutes.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from certkit import canonical
from certkit.errors import CertkitError
from certkit.passport import dsse, opening
from certkit.passport import statement as st
from certkit.passport.checks import CLOCK_SKEW, shown
from certkit.registry.entry import Claims, Revocation, Supersession, timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from certkit.passport.keys import PublicKey
    from certkit.passport.trust import Candidate, Trust
    from certkit.registry.entry import Entry, PassportFacts, UnverifiedEntry


def is_written_so(data: bytes, found: UnverifiedEntry) -> bool:
    """Tell whether an entry has the canonical form that `certkit.registry.entry.write` gives it.

    In another, the same signed statement could be logged over and over, and be padded to any length.
    """
    envelope = found.envelope
    if canonical.canonical(msgspec.to_builtins(found.entry)) != envelope.payload:
        return False
    signatures = [{"sig": dsse.encode(envelope.signature)}]
    payload = dsse.encode(envelope.payload)
    written = {"payload": payload, "payloadType": envelope.payload_type, "signatures": signatures}
    return canonical.canonical(written) == data


def is_signed(found: UnverifiedEntry, by: Mapping[str, PublicKey]) -> bool:
    """Tell whether one of some keys signed an entry; one that only names it counts for nothing."""
    key = by.get(found.entry.submitter)
    try:
        if key is not None:
            found.verify(key)
    except CertkitError:
        return False
    return key is not None


def issuer_of(passport: bytes, trust: Trust) -> str:
    """Return the policy's name for who signed a passport; raise `CertkitError` where nobody known did."""
    return opening.open_signed(passport, trust).signer.issuer


class Rest(NamedTuple):
    """What a passport rests on: the digests of its bundles, and of what it says of the runs in them.

    A bundle that is sealed again has another digest, and its runs are the same. Where they bear no times, so
    may others be that came out alike to the last integer.
    """

    bundles: frozenset[str]
    runs: str | None = None

    def repeats(self, other: Rest) -> bool:
        """Tell whether all the evidence of another passport is in that of this one."""
        return other.bundles <= self.bundles or (other.runs is not None and other.runs == self.runs)


def rest(found: st.Statement) -> Rest:
    """Return what a passport rests on."""
    evidence = found.predicate.evidence
    # Tags are left out: with another salt the same runs would seem to be others.
    table = found.predicate.profile_of_reliability
    said = table.cells, table.columns, found.predicate.scope.dates, evidence.records
    runs = canonical.digest(canonical.canonical([msgspec.to_builtins(one) for one in said]))
    return Rest(frozenset(one.digest for one in evidence.bundles or (evidence,)), runs)


def is_of(passport: bytes, found: UnverifiedEntry) -> bool:
    """Tell whether a file is the passport that an entry logs, under its own lineage; nothing is verified."""
    try:
        file = opening.parse(passport)
        lineage = file.unverified_statement().predicate.agent.lineage
    except CertkitError:
        return False
    claims = found.passport
    return claims is not None and (file.passport_id, lineage) == (claims.passport_id, found.entry.subject)


def is_before(one: str, other: str) -> bool:
    """Tell whether a time of an entry lies before another by more than clocks may differ."""
    # Times of entries are compared as text, since all have the same form and zone.
    return one < other and datetime.fromisoformat(other) - datetime.fromisoformat(one) > CLOCK_SKEW


def outside(key: Candidate, date: str) -> str | None:
    """Return in words why an entry of a date is not by a key while that was trusted, None where it is."""
    start, end = key.not_before, key.not_after
    if (start and is_before(date, timestamp(start))) or (end and is_before(timestamp(end), date)):
        return f"dated {date}, and this key of {key.issuer} is trusted {shown(start)} to {shown(end)}"
    return None


class Dates:
    """The dates of a log's entries so far; none may be later than `at`, where that is given."""

    def __init__(self, at: datetime | None) -> None:
        self._now = None if at is None else timestamp(at)
        self._newest = ""
        self._index = 0

    def follow(self, index: int, found: UnverifiedEntry, *, signed: bool) -> Iterator[str]:
        """Take the next entry; yield what its date contradicts. What is not `signed` binds none after it."""
        date, claims = found.entry.issued_at, found.passport
        if is_before(date, self._newest):
            yield f"dated {date}, and entry {self._index} above it {self._newest}"
        if self._now is not None and is_before(self._now, date):
            yield f"dated {date}, which is to come: it is {self._now}"
        elif signed and date > self._newest:
            self._newest, self._index = date, index
        if claims is not None and (date > claims.not_after or is_before(date, claims.not_before)):
            yield f"dated {date}, and the passport is valid from {claims.not_before} to {claims.not_after}"


class Endings:
    """The entries that end passports so far; `issuers` are the policy's names for keys, by id."""

    def __init__(self, issuers: Mapping[str, str]) -> None:
        self._issuers = issuers
        self._issuer: dict[str, str | None] = {}
        self._submitted: dict[str, str] = {}
        self._rests: dict[str, Rest] = {}
        self._false: dict[str, list[tuple[Rest, int]]] = {}
        self._supersedes: dict[str, str] = {}
        self._ended: dict[tuple[str, str], int] = {}
        self._said: dict[tuple[str, str, str], int] = {}
        self._unclear: list[int] = []
        self._logged: dict[str, tuple[int, str]] = {}

    def verified(self, facts: PassportFacts) -> None:
        """Take what a logged passport says of itself, once its file has been verified."""
        self._issuer[facts.passport_id] = facts.issuer
        self._rests[facts.passport_id] = Rest(frozenset(facts.bundles or (facts.evidence,)), facts.runs)

    def follow(self, index: int, found: UnverifiedEntry) -> tuple[str, str] | None:
        """Take the next entry, which its submitter signed; return code and words of what does not hold."""
        claims, who = found.claims, found.entry.submitter
        name = self._issuers.get(who, who)
        if isinstance(claims, Claims):
            return self._passport(index, found.entry, claims, name)
        if not isinstance(claims, Revocation | Supersession):
            return None
        passport_id, repeats = claims.passport_id, self._repeats(claims)
        issuer = self._issuer.get(passport_id)
        if issuer is not None and who in self._issuers and issuer != name and not repeats:
            return "registry.not-issuer", f"{name} ends a passport that {issuer} issued"
        if passport_id not in self._issuer and name != self._submitted.get(passport_id, name) and not repeats:
            self._unclear.append(index)
            return None
        refutes = isinstance(claims, Revocation) and claims.reason == "evidence-false"
        if refutes and (false := self._rests.get(passport_id)) is not None:
            self._false.setdefault(found.entry.subject, []).append((false, index))
        what = claims.reason if isinstance(claims, Revocation) else claims.by
        # Said again by another key is no fault: who goes by a narrower policy may not know the first.
        before = self._said.setdefault((passport_id, what, who), index)
        ended = self._ended.setdefault((passport_id, who), index)
        if isinstance(claims, Supersession) and not repeats:
            before = ended
        return None if before == index else ("registry.chain", f"entry {before} has ended it already")

    def _passport(self, index: int, entry: Entry, claims: Claims, name: str) -> tuple[str, str] | None:
        self._submitted.setdefault(claims.passport_id, name)
        self._logged.setdefault(claims.passport_id, (index, entry.subject))
        if claims.supersedes is not None:
            self._supersedes[claims.passport_id] = claims.supersedes
            self._ended.setdefault((claims.supersedes, entry.submitter), index)
        if claims.passport_id not in self._rests:
            self._rests[claims.passport_id] = Rest(frozenset({claims.evidence}))
        own = self._rests.get(claims.passport_id)
        for false, by in self._false.get(entry.subject, ()):
            if own is not None and own.repeats(false):
                return "registry.evidence-false", f"rests on evidence that entry {by} revoked as false"
        return None

    def _repeats(self, claims: Revocation | Supersession) -> bool:
        """Tell whether a later passport says so itself, and the entry repeats it."""
        return isinstance(claims, Supersession) and self._supersedes.get(claims.by) == claims.passport_id

    def notes(self) -> Iterator[str]:
        """Yield what the entries leave open, where the passports are not there."""
        if unclear := self._unclear:
            many = f"{len(unclear):,} passports are" if len(unclear) > 1 else "1 passport is"
            yield (
                f"{many} ended by somebody else than who submitted it, the first by entry {unclear[0]}:"
                " who issued it, no file here tells"
            )
        ended = {passport_id for passport_id, _ in self._ended}
        for passport_id, (index, subject) in self._logged.items() if self._false else ():
            own = self._rests.get(passport_id)
            by = next((by for it, by in self._false.get(subject, ()) if own and own.repeats(it)), None)
            if by is not None and passport_id not in ended:
                yield f"entry {index} logs a passport on evidence that entry {by} revoked as false; it stands"
