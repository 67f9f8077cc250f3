"""Entries that are no passports: a revocation, a supersession, a note.

    with Registry.open(folder, heads=heads) as registry:
        revoke(registry, ident, reason="key-compromise", trust=trust, submitter=key, log_key=log_key, at=now)

A passport is ended by its issuer: by any key that the policy lists under the issuer's name, which is how an
issuer delegates. Nothing is taken out of the log. The same revocation again gives the first one's index.
What is ended, and whether it was before, is read from the entries in the transaction that logs it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from certkit.errors import CertkitError, MismatchError, UntrustedError, UsageError
from certkit.passport import keys, opening
from certkit.registry.admission import refuse_stranger
from certkit.registry.entry import Note, Revocation, Supersession
from certkit.registry.rules import Rest, issuer_of, rest

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import datetime

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.passport.keys import PrivateKey, PublicKey
    from certkit.passport.trust import Trust
    from certkit.registry.drafting import Appended, Turn
    from certkit.registry.entry import AnyClaims, Reason
    from certkit.registry.ledger import Ledger
    from certkit.registry.registry import Registry


class Hand(Struct, frozen=True, kw_only=True):
    """Who writes an entry, with which keys and when, and whom the policy lets."""

    trust: Trust
    submitter: PrivateKey
    log_key: Ed25519PrivateKey
    at: datetime

    def turn(self, registry: Registry) -> AbstractContextManager[Turn]:
        """Return a turn at writing; raise as `Registry.turn` does."""
        return registry.turn(self.log_key, self.trust)

    def log(self, turn: Turn, subject: str, claims: AnyClaims) -> Appended:
        """Log an entry; raise as `Registry.append_entry` does."""
        return turn.log(subject, claims, submitter=self.submitter, at=self.at)


class _Own(NamedTuple):
    """A logged passport that a hand may end: `keys` are its issuer's, by id."""

    passport_id: str
    lineage: str
    rest: Rest
    keys: dict[str, PublicKey]


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
    `Registry.append_entry`.
    """
    with hand.turn(registry) as turn:
        own = _own(registry, turn.known, turn.known.find(ident), hand)
        index, new = _revoke(turn, own, reason, detail, hand)
        also = []
        for other in _on_its_evidence(registry, turn.known, own, hand) if reason == "evidence-false" else ():
            entry, is_new = _revoke(turn, other, reason, detail, hand)
            also += [(other.passport_id, entry)] * is_new
        return Revoked(own.passport_id, turn.appended(index, new=new), tuple(also))


def _revoke(turn: Turn, own: _Own, reason: Reason, detail: str | None, hand: Hand) -> tuple[int, bool]:
    """Return the entry that revokes a passport for a reason, and whether it is a new one."""
    for logged, ending in turn.known.ended(own.lineage, own.passport_id).endings(own.passport_id, own.keys):
        if ending.reason == reason:
            return logged.index, False
    what = Revocation(passport_id=own.passport_id, reason=reason, detail=detail)
    return hand.log(turn, own.lineage, what).index, True


def _on_its_evidence(registry: Registry, known: Ledger, own: _Own, hand: Hand) -> list[_Own]:
    """Return the passports of a lineage that rest on one's evidence and that the hand may end, itself too.

    What is not here or is another issuer's stays as it is; an audit names it.
    """
    found = dict[str, _Own]()
    for index, _ in list(known.passports(own.lineage)):
        with suppress(CertkitError):
            other = _own(registry, known, index, hand)
            if other.rest.repeats(own.rest):
                found.setdefault(other.passport_id, other)
    return list(found.values())


def supersede(registry: Registry, ident: str, *, by: str, hand: Hand) -> tuple[str, Appended]:
    """Log that a passport is superseded by the latest one of its lineage; return its id and the entry.

    Where it has ended before, the entry that says so is returned. Raises as `revoke`, and `MismatchError`
    ``registry.supersedes``.
    """
    with hand.turn(registry) as turn:
        own = _own(registry, turn.known, turn.known.find(ident), hand)
        later = turn.known.find(by)
        latest = turn.known.latest(own.lineage)
        if latest in {None, own.passport_id} or latest != _logs(turn.known, later):
            raise MismatchError(
                "registry.supersedes",
                f"entry {later} is not the latest passport of {own.lineage}, or the one to supersede",
                hint="only the latest passport of a lineage takes the place of another",
            )
        known = turn.known.ended(own.lineage, own.passport_id)
        for ended, _ in known.endings(own.passport_id, own.keys):
            return own.passport_id, turn.appended(ended.index, new=False)
        what = Supersession(passport_id=own.passport_id, by=str(latest))
        return own.passport_id, hand.log(turn, own.lineage, what)


def note(registry: Registry, subject: str | None, text: str, *, hand: Hand) -> Appended:
    """Log words about a lineage, or about the log itself; raise as `Registry.append_entry`."""
    refuse_stranger(hand.submitter, hand.trust, hand.at)
    with hand.turn(registry) as turn:
        return hand.log(turn, subject or registry.origin, Note(text=text))


def _logs(known: Ledger, index: int) -> str | None:
    """Return the id of the passport that an entry logs, None for one of another type."""
    claims = known.entry(index).passport
    return None if claims is None else claims.passport_id


def _own(registry: Registry, known: Ledger, index: int, hand: Hand) -> _Own:
    """Return a logged passport that the hand may end; its lineage is what its file says."""
    found = known.entry(index)
    stored = found.entry.passport
    if found.passport is None or stored is None:
        raise UsageError("registry.unknown", f"entry {index} is no passport")
    data = registry.passport(stored.sha256)
    if data is None:
        raise MismatchError("registry.blob-missing", f"the file of entry {index} is not here, or has changed")
    file = opening.parse(data)
    if file.passport_id != found.passport.passport_id:
        raise MismatchError("registry.inconsistent", f"the file of entry {index} is another passport")
    issuer = issuer_of(data, hand.trust)
    name = keys.key_id(hand.submitter.public_key())
    theirs: dict[str, PublicKey] = {
        one.id: one.key for one in hand.trust.candidates() if one.issuer == issuer
    }
    if name not in theirs:
        raise UntrustedError(
            "registry.not-issuer",
            f"issued by {issuer}, and key {name} is not theirs",
            hint="an issuer lets another key revoke by naming it in the policy under the same name",
        )
    # When the policy trusts the key is not asked: too late a word against a passport is still heard.
    predicate = (stated := file.unverified_statement()).predicate
    on = rest(stated)
    if predicate.scope.dates.first_run is None:
        on = on._replace(runs=None)  # without times, other runs may have come out alike
    return _Own(file.passport_id, predicate.agent.lineage, on, theirs)
