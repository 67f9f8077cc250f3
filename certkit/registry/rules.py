"""Rules that every log entry must satisfy, used by writer and auditor: form, date, place in a chain, keys.

An entry's place is the log's, its date the submitter's word. Nobody can change the place afterwards, and so
that nobody can date an entry back either, none may be dated before those above it, nor later than now; clocks
may differ by a few minutes.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from certkit.errors import CertkitError
from certkit.passport import keys, opening
from certkit.passport.checks import CLOCK_SKEW, shown
from certkit.registry.entry import Previous, timestamp
from certkit.text import skeleton
from certkit.tlog.note import VerifierKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.passport.trust import Candidate
    from certkit.registry.entry import KeyChange, Logged, UnverifiedEntry


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
    return "/".join(map(skeleton, lineage.split("/")))


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


class Dates:
    """The dates of a log's entries so far; none may be later than `at`, where that is given."""

    def __init__(self, at: datetime | None) -> None:
        self._now = None if at is None else timestamp(at)
        self._newest = ""
        self._index = 0

    def follow(self, index: int, entry: UnverifiedEntry, *, signed: bool) -> Iterator[str]:
        """Take the next entry; yield what its date contradicts. What is not `signed` binds none after it."""
        date, claims = entry.entry.issued_at, entry.passport
        if is_before(date, self._newest):
            yield f"dated {date}, and entry {self._index} above it {self._newest}"
        if self._now is not None and is_before(self._now, date):
            yield f"dated {date}, which is to come: it is {self._now}"
        elif signed and date > self._newest:
            self._newest, self._index = date, index
        if claims is not None and (date > claims.not_after or is_before(date, claims.not_before)):
            yield f"dated {date}, and the passport is valid from {claims.not_before} to {claims.not_after}"


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
        entry, claims, wrong = logged.found.entry, logged.found.passport, []
        if entry.prev != self.last(entry.subject):
            wrong.append("prev is not the entry before it in its lineage")
        self._last[entry.subject] = Previous(index=logged.index, leaf=logged.leaf.hex())
        if claims is None:
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


class LogKeys:
    """The keys of a log, each handed over to the next by an entry that the one before signed."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self.had: set[bytes] = set()
        """Every key so far, once one was changed."""
        self.last: str | None = None
        """The newest key as the entries name it, None where none was ever changed."""

    def follow(self, entry: UnverifiedEntry, change: KeyChange) -> str | None:
        """Take the next change of keys; return what does not hold of it."""
        before, self.last = self.last, change.new
        if before not in {None, change.old}:
            return f"it hands over from {change.old}, and the key before it is {before}"
        try:
            old, new = VerifierKey.parse(change.old), VerifierKey.parse(change.new)
            public = Ed25519PublicKey.from_public_bytes(old.public)
            if {old.name, new.name, entry.entry.subject} != {self._origin}:
                return "its keys are another log's"
            if entry.entry.submitter != keys.key_id(public):
                return "not submitted by the key that it hands over from"
            entry.verify(public)
        except (CertkitError, ValueError) as error:
            return str(error)
        # What was given up may be in other hands, and a copy of the log from then would be the present one.
        again = new.public in {old.public, *self.had}
        self.had |= {old.public, new.public}
        return "it hands over to a key that the log had before" if again else None
