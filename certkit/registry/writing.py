"""Writing entries: what the next one says, and those that are no passports (revocation, supersession, note).

    with Registry.open(folder, heads=heads) as registry:
        revoke(registry, ident, reason="key-compromise", detail=None, hand=hand)

An entry is signed by who submits it and chained to the one before it in its lineage. A passport is ended by
its issuer: by any key that the policy lists under the issuer's name, which is how an issuer delegates.
Nothing is taken out of the log. The same revocation again gives the first one's index.

All of it is used inside the transaction that logs the entry, which the ledger has followed to the log's end:
what is ended, and whether it was before, is read from the entries there.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from certkit.ground.errors import CertkitError, MismatchError, UntrustedError, UsageError
from certkit.passport import keys, opening
from certkit.registry.entry import CLAIMS, Claims, Entry, Note, Revocation, Supersession, timestamp, write
from certkit.registry.state import is_before, outside, submitters

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.passport.keys import PrivateKey
    from certkit.passport.trust import Trust
    from certkit.registry.drifts import Compared
    from certkit.registry.entry import AnyClaims, Logged, PassportFacts, Reason, Stored
    from certkit.registry.ledger import Ledger
    from certkit.registry.log import Log
    from certkit.registry.registry import Registry
    from certkit.registry.state import Ending
    from certkit.tlog.note import Signer


def refuse_stranger(submitter: PrivateKey, trust: Trust, at: datetime) -> None:
    """Raise `UntrustedError` ``registry.submitter`` unless the policy knows the key, and trusts it then."""
    name = keys.key_id(submitter.public_key())
    known = submitters(trust).get(name)
    if known is None:
        raise UntrustedError(
            "registry.submitter",
            f"the trust policy does not know key {name}, and no auditor with it would accept its entry",
            hint="submit with an issuer's key, or add the submitter to the policy: certkit trust add",
        )
    if message := outside(known, timestamp(at)):
        raise UntrustedError(
            "registry.submitter",
            f"the entry would be {message}",
            hint="submit with a key that the policy trusts now: certkit trust show",
        )


class Appended(Struct, frozen=True, kw_only=True):
    """What became of an append: the index, whether it is a new one, and the comparison that was made."""

    index: int
    new: bool
    compared: Compared | None = None


class Turn:
    """One turn at writing, from `Registry.turn`; `known` is what the entries say, those of this turn too."""

    def __init__(self, log: Log, known: Ledger, signer: Signer) -> None:
        self._log, self.known, self.signer = log, known, signer

    def claims(self, facts: PassportFacts) -> Claims:
        """Return what the entry of a passport says; the attempt is counted.

        Raises `MismatchError` ``registry.evidence-false``, ``registry.lineage``, ``registry.supersedes`` or
        ``registry.attempt``.
        """
        if not self.known.refuted(facts.lineage).isdisjoint({facts.evidence, *facts.bundles}):
            raise MismatchError(
                "registry.evidence-false",
                "rests on evidence that was revoked as false in this registry",
                hint="have the agent judged on new evidence",
            )
        latest = self.known.latest(facts.lineage)
        if latest is None and (logged := self.known.alike(facts.lineage)):
            raise MismatchError(
                "registry.lineage",
                f"the log holds {logged!r}, and {facts.lineage!r} differs from it in spelling alone",
                hint="issue it under the name that is logged, or name another agent in other words",
            )
        if facts.supersedes not in {None, latest}:
            raise MismatchError(
                "registry.supersedes",
                f"expected to supersede {latest or 'nothing'}, found {facts.supersedes}",
                hint=f"the latest passport of {facts.lineage} in this registry is what can be superseded",
            )
        attempt = self.known.attempt(facts.lineage, facts.profile, facts.evidence)
        if (facts.attempt or 1) < attempt:
            declared = "no attempt" if facts.attempt is None else f"attempt {facts.attempt}"
            raise MismatchError(
                "registry.attempt",
                f"the registry already holds {attempt - 1} of this agent's evaluations, this one declares"
                f" {declared}",
                hint="its bounds depend on the attempt; mark this one and issue anew: "
                f"certkit bundle seal BUNDLE --attempt {attempt}",
            )
        return Claims.of(facts, attempt)

    def draft(
        self,
        subject: str,
        claims: AnyClaims,
        *,
        submitter: PrivateKey,
        at: datetime,
        passport: Stored | None = None,
    ) -> bytes:
        """Return the bytes of a signed entry.

        Raises `InputError` ``registry.entry`` beyond its limit, `MismatchError` ``registry.time`` where it
        would be dated back.
        """
        date = timestamp(at)
        if (newest := self.known.newest(date)) and is_before(date, newest):
            whose = "" if self.known.trust else "; by a trust policy, what its keys signed counts alone"
            raise MismatchError(
                "registry.time",
                f"would be dated {date}, and the log holds an entry of {newest}",
                hint=f"nothing is dated back: check the clock, or give a later time{whose}",
            )
        entry = Entry(
            type=next(name for name, kind in CLAIMS.items() if isinstance(claims, kind)),
            subject=subject,
            passport=passport,
            claims=msgspec.to_builtins(claims),
            prev=self.known.last(subject),
            issued_at=date,
            submitter=keys.key_id(submitter.public_key()),
            log=self.known.origin,
        )
        return write(entry, submitter)

    def add(self, entry: bytes, *others: Signer) -> int:
        """Log an entry and return its index; `others` sign the checkpoint over it too."""
        index = self._log.extend([entry], self.signer, *others).size - 1
        self.known.add(entry)
        return index

    def log(self, subject: str, claims: AnyClaims, *, submitter: PrivateKey, at: datetime) -> Appended:
        """Log an entry about `subject`; raise as `Registry.append` does."""
        index = self.add(self.draft(subject, claims, submitter=submitter, at=at))
        return Appended(index=index, new=True)


class Hand(Struct, frozen=True, kw_only=True):
    """Who writes an entry, with which keys and when, and whom the policy lets."""

    trust: Trust
    submitter: PrivateKey
    log_key: Ed25519PrivateKey
    at: datetime


class _Own(NamedTuple):
    """A logged passport that a hand may end, with its issuer's name in the policy."""

    passport_id: str
    lineage: str
    evidence: tuple[str, ...]
    """The digest of its evidence, and of the bundles that this pools."""
    issuer: str

    def ended(self, known: Ledger) -> Iterator[tuple[Logged, Ending]]:
        """Yield the entries that end it already."""
        passports = known.ended(self.lineage, self.passport_id)
        passports.issued_by(self.passport_id, {self.issuer})
        return passports.endings(self.passport_id)


class Revoked(NamedTuple):
    """A passport that was revoked, by which entry, and what else was since it is on the same evidence."""

    passport_id: str
    entry: Appended
    also: tuple[tuple[str, int], ...] = ()
    """Ids of passports, each with the entry that revokes it."""


def revoke(registry: Registry, ident: str, *, reason: Reason, detail: str | None, hand: Hand) -> Revoked:
    """Log that a passport is revoked.

    Where its issuer revoked it before for the same reason, that entry is returned; for another reason it is
    revoked once more. With its evidence, every other passport of the lineage that its issuer gave on it falls
    too. Raises `UsageError` ``registry.unknown``, `UntrustedError` ``registry.not-issuer`` where the key is
    not its issuer's, `MismatchError` ``registry.blob-missing`` or ``registry.inconsistent``, and as
    `Registry.append`.
    """
    with registry.turn(hand.log_key, hand.trust) as turn:
        target = _own(registry, turn.known, turn.known.find(ident), hand)
        entry, also = _revoke(turn, target, reason, detail, hand), []
        others = _on_its_evidence(registry, turn.known, target, hand) if reason == "evidence-false" else ()
        for passport in others:
            further = _revoke(turn, passport, reason, detail, hand)
            also += [(passport.passport_id, further.index)] * further.new
        return Revoked(target.passport_id, entry, tuple(also))


def _revoke(turn: Turn, target: _Own, reason: Reason, detail: str | None, hand: Hand) -> Appended:
    """Return the entry that revokes a passport for a reason."""
    for logged, ending in target.ended(turn.known):
        if ending.reason == reason:
            return Appended(index=logged.index, new=False)
    what = Revocation(passport_id=target.passport_id, reason=reason, detail=detail)
    return turn.log(target.lineage, what, submitter=hand.submitter, at=hand.at)


def _on_its_evidence(registry: Registry, known: Ledger, target: _Own, hand: Hand) -> list[_Own]:
    """Return the passports of a lineage whose evidence is, or pools, that of one; itself too.

    Passports whose file is missing, or that this key may not end, are left alone; an audit names them.
    """
    passports = dict[str, _Own]()
    for logged in list(known.passports(target.lineage)):
        with suppress(CertkitError):
            passport = _own(registry, known, logged.index, hand)
            if target.evidence[0] in passport.evidence:
                passports.setdefault(passport.passport_id, passport)
    return list(passports.values())


def supersede(registry: Registry, ident: str, *, by: str, hand: Hand) -> tuple[str, Appended]:
    """Log that a passport is superseded by the latest one of its lineage; return its id and the entry.

    Where it has ended before, the entry that says so is returned. Raises as `revoke`, and `MismatchError`
    ``registry.supersedes``.
    """
    with registry.turn(hand.log_key, hand.trust) as turn:
        target = _own(registry, turn.known, turn.known.find(ident), hand)
        later = turn.known.find(by)
        latest = turn.known.latest(target.lineage)
        claims = turn.known.entry(later).passport
        if claims is None or latest != claims.passport_id or latest == target.passport_id:
            raise MismatchError(
                "registry.supersedes",
                f"entry {later} is not the latest passport of {target.lineage}, or the one to supersede",
                hint="only the latest passport of a lineage takes the place of another",
            )
        for ended, _ in target.ended(turn.known):
            return target.passport_id, Appended(index=ended.index, new=False)
        what = Supersession(passport_id=target.passport_id, by=latest)
        return target.passport_id, turn.log(target.lineage, what, submitter=hand.submitter, at=hand.at)


def note(registry: Registry, subject: str | None, text: str, *, hand: Hand) -> Appended:
    """Log words about a lineage, or about the log itself; raise as `Registry.append`."""
    refuse_stranger(hand.submitter, hand.trust, hand.at)
    with registry.turn(hand.log_key, hand.trust) as turn:
        return turn.log(subject or registry.origin, Note(text=text), submitter=hand.submitter, at=hand.at)


def _own(registry: Registry, known: Ledger, index: int, hand: Hand) -> _Own:
    """Return a logged passport that the hand may end; its lineage is what its file says."""
    logged = known.entry(index)
    stored = logged.entry.passport
    if logged.passport is None or stored is None:
        raise UsageError("registry.unknown", f"entry {index} is no passport")
    data = registry.passport(stored.sha256)
    if data is None:
        raise MismatchError("registry.blob-missing", f"the file of entry {index} is not here, or has changed")
    passport = opening.open_signed(data, hand.trust)
    if passport.passport_id != logged.passport.passport_id:
        raise MismatchError("registry.inconsistent", f"the file of entry {index} is another passport")
    issuer = passport.signer.issuer
    name = keys.key_id(hand.submitter.public_key())
    if all((candidate.id, candidate.issuer) != (name, issuer) for candidate in hand.trust.candidates()):
        raise UntrustedError(
            "registry.not-issuer",
            f"issued by {issuer}, and key {name} is not theirs",
            hint="to let this key revoke, add it to the trust policy under the issuer's name",
        )
    # The window of the key is not checked: a retired key may still revoke.
    predicate = passport.statement.predicate
    bundles = (bundle.digest for bundle in predicate.evidence.bundles or ())
    evidence = (predicate.evidence.digest, *bundles)
    return _Own(passport.passport_id, predicate.agent.lineage, evidence, issuer)
