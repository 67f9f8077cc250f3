"""What the entries so far say of each lineage, and of the log's keys, to hold the next one against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from certkit.errors import CertkitError
from certkit.passport import keys
from certkit.registry.entry import Drift, KeyChange, Previous, Revocation, Supersession, UnverifiedEntry
from certkit.tlog.note import VerifierKey

if TYPE_CHECKING:
    from certkit.tlog.hashing import Hash


class Lineages:
    """The lineages of a log, entry by entry."""

    def __init__(self) -> None:
        self.passports: dict[str, str] = {}
        """The lineage of every passport so far, by its id."""
        self._last: dict[str, Previous] = {}
        self._latest: dict[str, str] = {}
        self._evidence: dict[tuple[str, str], dict[str, int]] = {}

    def follow(self, index: int, leaf: Hash, found: UnverifiedEntry) -> list[str]:
        """Take the next entry; return what in it does not follow from those before."""
        entry, claims, wrong = found.entry, found.passport, []
        if entry.prev != self._last.get(entry.subject):
            wrong.append("prev is not the entry before it in its lineage")
        self._last[entry.subject] = Previous(index=index, leaf=leaf.hex())
        if claims is None:
            return wrong + [
                f"it names passport {one}, which its lineage does not hold before it"
                for one in _named(found)
                if self.passports.get(one) != entry.subject
            ]
        if claims.passport_id in self.passports:
            wrong.append("the passport is logged a second time")
        self.passports[claims.passport_id] = entry.subject
        if claims.supersedes not in {None, self._latest.get(entry.subject)}:
            wrong.append("it supersedes another passport than the latest of its lineage")
        self._latest[entry.subject] = claims.passport_id
        seen = self._evidence.setdefault((entry.subject, claims.profile), {})
        attempt = seen.setdefault(claims.evidence or claims.passport_id, len(seen) + 1)
        if claims.attempt != attempt:
            wrong.append(f"it says attempt {claims.attempt}, this is attempt {attempt}")
        return wrong


def _named(found: UnverifiedEntry) -> list[str]:
    """Return the passports that an entry about no file names."""
    claims = found.claims
    if isinstance(claims, Supersession):
        return [claims.passport_id, claims.by]
    if isinstance(claims, Drift):
        return [claims.earlier, claims.passport_id]
    return [claims.passport_id] if isinstance(claims, Revocation) else []


class LogKeys:
    """The keys of a log, each handed over to the next by an entry that the one before signed."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
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
        return None
