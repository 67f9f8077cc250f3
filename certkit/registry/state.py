"""The one fold over the entries of a log: what they say of its lineages, its passports and its keys.

    policy = Policy(origin, trust, load)          # whose word counts; without trust everybody's does
    passports = Passports(policy)
    for logged in entries:
        passports.follow(logged)
    passports.ending(passport_id)                 # None, or what ended it

`Lineages` are the chains: which entry is the last of a lineage, which passport its latest, which attempt
comes next. `Passports` says which passports are logged and what ended each, `LogKeys` which keys the log had.
Writer, audit, status, history and list ask these, and differ in the `Policy` alone.

An entry ends a passport where it revokes or supersedes it by the word of the passport's issuer, or logs a
later passport that names it, if that entry counts. Of several endings a revocation comes before a
supersession, a graver reason before another, and else the first.

What a lineage drifted is `certkit.registry.drifts`; whether an entry has the form and date that it must have
is `certkit.registry.rules`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec import Struct, structs

from certkit.errors import CertkitError, MismatchError
from certkit.passport import keys
from certkit.registry.entry import (
    Claims,
    Drift,
    KeyChange,
    Logged,
    Previous,
    Reason,
    Revocation,
    Stored,
    Supersession,
    UnverifiedEntry,
    graver,
)
from certkit.registry.rules import is_of, issuer_of
from certkit.tlog.note import VerifierKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from certkit.passport.keys import PublicKey
    from certkit.passport.trust import Trust
    from certkit.registry.entry import AnyClaims
    from certkit.tlog.hashing import Hash

Standing = Literal["current", "superseded", "revoked", "expired", "upcoming"]


# What ended a passport


class Ending(Struct, frozen=True, kw_only=True):
    """What ended a passport: the entry that says so; `by` is the passport that took its place."""

    index: int
    how: Literal["superseded", "revoked"]
    reason: Reason | None = None
    by: str | None = None


def ending_of(index: int, found: UnverifiedEntry) -> tuple[str, Ending] | None:
    """Return which passport an entry ends, whoever says so, and how; None where it ends none."""
    claims = found.claims
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
    """Whose word counts for a reader of the log named `origin`.

    With a trust policy that of its keys, under the names of their issuers; without one everybody's. `load`
    returns a passport's file, None where it is not here: then it is of whoever submitted it.
    """

    def __init__(
        self,
        origin: str,
        trust: Trust | None = None,
        load: Callable[[Stored], bytes | None] = lambda _: None,
    ) -> None:
        candidates = () if trust is None else trust.candidates()
        self.origin, self._trust, self._load = origin, trust, load
        self.keys: dict[str, PublicKey] = {one.id: one.key for one in candidates}
        self._names: dict[str, str] = {one.id: one.issuer for one in candidates}

    def signed(self, logged: Logged, by: Mapping[str, PublicKey] | None = None) -> bool:
        """Tell whether one of the policy's keys, or of those in `by`, signed an entry.

        Raises `MismatchError` ``registry.entry-signature`` where one is named and did not sign.
        """
        if by is None and self._trust is None:
            return True
        return signed(logged, self.keys if by is None else by)

    def counts(self, logged: Logged) -> bool:
        """Tell whether an entry that ends nothing counts: signed by a key of the policy, for this log.

        Of a passport's, the file has to be the passport that it names, by an issuer that the policy knows.
        """
        if not self.signed(logged) or not logged.found.entry.is_for(self.origin):
            return False
        return logged.found.passport is None or self.issuer(logged) is not None

    def issuer(self, logged: Logged) -> str | None:
        """Return the policy's name for who issued a logged passport; None for nobody that it knows."""
        submitter, file = logged.found.entry.submitter, logged.found.entry.passport
        data = None if file is None else self._load(file)
        if data is None:
            return self._names.get(submitter, submitter)
        if not is_of(data, logged.found):
            return None
        try:
            return submitter if self._trust is None else issuer_of(data, self._trust)
        except CertkitError:
            return None

    def is_issuers(self, logged: Logged, issuers: Iterable[str]) -> bool:
        """Tell whether a key of one of some issuers signed an entry; without a policy, anybody may."""
        if self._trust is None:
            return True
        return self.signed(logged) and self._names[logged.found.entry.submitter] in issuers


def signed(logged: Logged, by: Mapping[str, PublicKey]) -> bool:
    """Tell whether one of some keys submitted an entry; raise `MismatchError` for a false signature."""
    key = by.get(logged.found.entry.submitter)
    if key is None:
        return False
    try:
        logged.found.verify(key)
    except CertkitError as error:
        raise MismatchError(
            "registry.entry-signature", f"entry {logged.index}: {error.message}", hint=error.hint
        ) from None
    return True


class Issued(Struct, frozen=True, kw_only=True):
    """A passport as the log has it; `ending` is what ended it, None where nothing did.

    `reasons` are those of every revocation.
    """

    index: int
    issued_at: str
    lineage: str
    claims: Claims
    file: Stored
    ending: Ending | None = None
    reasons: tuple[str, ...] = ()

    def standing(self, now: str) -> Standing:
        """Return how it stands at a time; times are as entries write them."""
        if self.ending is not None:
            return self.ending.how
        if now < self.claims.not_before:
            return "upcoming"
        return "expired" if self.claims.not_after < now else "current"


class Passports:
    """The passports that entries log, and what ended each, by the word of those who count."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._issued: dict[str, Issued] = {}
        self._issuers: dict[str, set[str]] = {}
        self._endings: dict[str, list[tuple[Logged, Ending]]] = {}

    def follow(self, logged: Logged) -> bool:
        """Take the next entry; tell whether it counts, so far as that does not hang on later entries."""
        entry, claims, counts = logged.found.entry, logged.found.passport, True
        if not isinstance(logged.found.claims, Revocation | Supersession):
            counts = self._policy.counts(logged)
        if counts and claims is not None and entry.passport is not None:
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
        if claims is not None and self._policy.signed(logged) and (issuer := self._policy.issuer(logged)):
            self._issuers.setdefault(claims.passport_id, set()).add(issuer)
        if counts and (ended := ending_of(logged.index, logged.found)):
            self._endings.setdefault(ended[0], []).append((logged, ended[1]))
        return counts

    def ends(self, logged: Logged, enders: Mapping[str, PublicKey] | None = None) -> bool:
        """Tell whether an entry that was followed ends a passport by the word of who may say so.

        These are the keys of the passport's issuers, or `enders` where those are known.
        """
        claims = logged.found.claims
        if not isinstance(claims, Revocation | Supersession):
            return True  # a later passport, which counts
        if enders is not None:
            return self._policy.signed(logged, enders)
        return self._policy.is_issuers(logged, self._issuers.get(claims.passport_id, ()))

    def endings(
        self, passport_id: str, enders: Mapping[str, PublicKey] | None = None
    ) -> Iterator[tuple[Logged, Ending]]:
        """Yield the entries that end a passport, in their order; `enders` as for `ends`."""
        for logged, ending in self._endings.get(passport_id, ()):
            if self.ends(logged, enders):
                yield logged, ending

    def ignored(self, passport_id: str, enders: Mapping[str, PublicKey]) -> Iterator[int]:
        """Yield the places of entries that would end a passport and do not count."""
        for logged, _ in self._endings.get(passport_id, ()):
            if not self.ends(logged, enders):
                yield logged.index

    def ending(
        self, passport_id: str, enders: Mapping[str, PublicKey] | None = None
    ) -> tuple[Logged, Ending] | None:
        """Return what ended a passport, with its entry; None where nothing did. `enders` as for `ends`."""
        weightiest: tuple[Logged, Ending] | None = None
        for logged, ending in self.endings(passport_id, enders):
            if outweighs(ending, weightiest[1] if weightiest else None):
                weightiest = logged, ending
        return weightiest

    def issued(self) -> Iterator[Issued]:
        """Yield the passports in the order of their entries, each with what ended it."""
        for passport_id, one in self._issued.items():
            ended = self.ending(passport_id)
            reasons = (ending.reason for _, ending in self.endings(passport_id))
            yield structs.replace(
                one,
                ending=ended[1] if ended else None,
                reasons=tuple(reason for reason in reasons if reason is not None),
            )


class History(Struct, frozen=True, kw_only=True):
    """A lineage as of a checkpoint: its passports, oldest first, and every entry about it that counts.

    `left_out` are the places of those that do not.
    """

    lineage: str
    passports: tuple[Issued, ...]
    entries: tuple[Logged, ...]
    left_out: tuple[int, ...] = ()

    @property
    def drifts(self) -> tuple[tuple[int, Drift], ...]:
        """The drift entries, with their places."""
        return tuple(
            (one.index, one.found.claims) for one in self.entries if isinstance(one.found.claims, Drift)
        )


def history(lineage: str, entries: Iterable[Logged], policy: Policy) -> History:
    """Return the history that the entries about a lineage tell, in their order, under a policy.

    Raises `MismatchError` ``registry.entry-signature`` where a key of the policy is named and did not sign.
    """
    passports, about = Passports(policy), list(entries)
    counted = [(one, passports.follow(one)) for one in about]
    kept = tuple(one for one, counts in counted if counts and passports.ends(one))
    places = {one.index for one in kept}
    return History(
        lineage=lineage,
        passports=tuple(passports.issued()),
        entries=kept,
        left_out=tuple(one.index for one in about if one.index not in places),
    )


# The chains, and the keys of the log


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
        attempt = self.attempt(entry.subject, claims.profile, claims.evidence)
        self._evidence.setdefault((entry.subject, claims.profile), {})[claims.evidence] = attempt
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
