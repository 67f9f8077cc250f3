"""What the entries so far say of each lineage, its drift and the log's keys, to hold the next one against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from certkit.errors import CertkitError, MismatchError
from certkit.passport import keys
from certkit.registry.consequences import agree, logged, snapshot
from certkit.registry.course import Course
from certkit.registry.entry import Drift, KeyChange, Previous, Revocation, Supersession, UnverifiedEntry
from certkit.tlog.note import VerifierKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from certkit.assessment.drift.snapshot import Snapshot
    from certkit.registry.entry import AnyClaims, Claims
    from certkit.tlog.hashing import Hash


class Lineages:
    """The lineages of a log, entry by entry."""

    def __init__(self) -> None:
        self.passports: dict[str, set[str]] = {}
        """The lineages that every passport so far was logged under, by its id; more than one is rare."""
        self._submitted: set[tuple[str, str]] = set()
        self._last: dict[str, Previous] = {}
        self._latest: dict[str, str] = {}
        self._evidence: dict[tuple[str, str], dict[str, int]] = {}

    def last(self, lineage: str) -> Previous | None:
        """Return the last entry of a lineage, None where it has none."""
        return self._last.get(lineage)

    def latest(self, lineage: str) -> str | None:
        """Return the id of the latest passport of a lineage, None where it has none."""
        return self._latest.get(lineage)

    def attempt(self, lineage: str, profile: str, evidence: str) -> int:
        """Return which attempt of a lineage under a profile a passport on this evidence is."""
        seen = self._evidence.get((lineage, profile), {})
        return seen.get(evidence, len(seen) + 1)

    def follow(self, index: int, leaf: Hash, found: UnverifiedEntry) -> list[str]:
        """Take the next entry; return what in it does not follow from those before."""
        entry, claims, wrong = found.entry, found.passport, []
        if entry.prev != self.last(entry.subject):
            wrong.append("prev is not the entry before it in its lineage")
        self._last[entry.subject] = Previous(index=index, leaf=leaf.hex())
        if claims is None:
            strange = [
                f"it names passport {one}, which its lineage does not hold before it"
                for one in _named(found)
                if entry.subject not in self.passports.get(one, ())
            ]
            if not strange and not self._replaces(entry.subject, found.claims):
                wrong.append("what takes the place is not the latest passport of its lineage")
            return wrong + strange
        # Who goes by a narrower policy than another may log what for them nobody has logged yet.
        if (claims.passport_id, entry.submitter) in self._submitted:
            wrong.append("the passport is logged a second time by the same key")
        self._submitted.add((claims.passport_id, entry.submitter))
        self.passports.setdefault(claims.passport_id, set()).add(entry.subject)
        if claims.supersedes not in {None, self.latest(entry.subject)}:
            wrong.append("it supersedes another passport than the latest of its lineage")
        self._latest[entry.subject] = claims.passport_id
        evidence = claims.evidence or claims.passport_id
        attempt = self.attempt(entry.subject, claims.profile, evidence)
        self._evidence.setdefault((entry.subject, claims.profile), {})[evidence] = attempt
        if claims.attempt != attempt:
            wrong.append(f"it says attempt {claims.attempt}, this is attempt {attempt}")
        return wrong

    def _replaces(self, lineage: str, claims: AnyClaims) -> bool:
        if not isinstance(claims, Supersession):
            return True
        return claims.by == self.latest(lineage) and claims.by != claims.passport_id


def _named(found: UnverifiedEntry) -> list[str]:
    """Return the passports that an entry about no file names."""
    claims = found.claims
    if isinstance(claims, Supersession):
        return [claims.passport_id, claims.by]
    if isinstance(claims, Drift):
        return [claims.earlier, claims.passport_id]
    return [claims.passport_id] if isinstance(claims, Revocation) else []


class Drifts:
    """The drift entries of a log, held against the passports that they compare.

    `load` returns the file of a passport by its digest, None where it cannot be had. Of a passport only the
    digest is kept, and of those alone that later ones are compared with.
    """

    def __init__(self, load: Callable[[str], bytes | None]) -> None:
        self._load = load
        self._courses: dict[str, Course | None] = {}
        self._due: dict[str, tuple[str, Drift, bool]] = {}
        self._unknown: set[str] = set()
        self.notes: list[str] = []
        """On entries whose comparison reads otherwise today, though it says the same."""

    def passport(self, where: str, lineage: str, claims: Claims, sha256: str | None) -> None:
        """Take the next passport of a lineage; `sha256` of its file is None where that cannot be had."""
        course = self._courses.setdefault(lineage, Course(lambda one: self._snapshot(one)[1]))
        if sha256 is None or course is None:
            # Whoever wrote had the file, and what they compared later passports with cannot be told any more.
            self._courses[lineage] = None
            self._unknown.add(claims.passport_id)
            return
        try:
            step = course.follow(sha256)
        except CertkitError:
            return  # it contradicts itself, which keeps nobody from logging it, and is compared with nothing
        if step is None:
            return
        earlier = self._snapshot(step.told.earlier)[0]
        if due := logged(step.told.drift, claims.passport_id, earlier):
            # A registry of format 1, whose entries do not name the evidence, logged no drift.
            self._due[claims.passport_id] = where, due, claims.evidence is not None

    def _snapshot(self, sha256: str) -> tuple[str, Snapshot]:
        data = self._load(sha256)
        if data is None:
            raise MismatchError("registry.blob-missing", "it was there a moment ago")
        return snapshot(data)

    def follow(self, where: str, said: Drift) -> str | None:
        """Take the next drift entry; return what does not hold of it."""
        if said.passport_id in self._unknown:
            return None
        _, due, _ = self._due.pop(said.passport_id, ("", None, False))
        if due is None:
            return f"it says {said.result}, and the passports do not show it, or it was said before"
        if not agree(said, due):
            return f"it says {_worded(said)}, and the passports give {_worded(due)}"
        if said.document != due.document:
            self.notes.append(f"{where}: the comparison that it names reads otherwise in this version")
        return None

    def left_out(self) -> Iterator[tuple[str, str]]:
        """Yield the drifts that no entry tells, each with the entry of its passport."""
        for where, due, required in self._due.values():
            if required:
                yield where, f"{_worded(due)}, and no entry says so"


def _worded(claims: Drift) -> str:
    rows = f" ({', '.join(claims.rows)})" if claims.rows else ""
    return f"{claims.result} against {claims.earlier[:19]}{rows}"


class LogKeys:
    """The keys of a log, each handed over to the next by an entry that the one before signed."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self.had: set[bytes] = set()
        """Every key so far, once one was changed."""
        self.last: str | None = None
        """The newest key as the entries name it, None where none was ever changed."""

    def follow(self, found: UnverifiedEntry, change: KeyChange) -> str | None:
        """Take the next change of keys; return what does not hold of it."""
        before, self.last = self.last, change.new
        if before not in {None, change.old}:
            return f"it hands over from {change.old}, and the key before it is {before}"
        try:
            old, new = VerifierKey.parse(change.old), VerifierKey.parse(change.new)
            public = Ed25519PublicKey.from_public_bytes(old.public)
            if {old.name, new.name, found.entry.subject} != {self._origin}:
                return "its keys are another log's"
            if found.entry.submitter != keys.key_id(public):
                return "not submitted by the key that it hands over from"
            found.verify(public)
        except (CertkitError, ValueError) as error:
            return str(error)
        # What was given up may be in other hands, and a copy of the log from then would be the present one.
        again = new.public in {old.public, *self.had}
        self.had |= {old.public, new.public}
        return "it hands over to a key that the log had before" if again else None
