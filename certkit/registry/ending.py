"""Entries that are no passports: a revocation, a supersession, a note.

    with Registry.open(folder, heads=heads) as registry:
        revoke(registry, ident, reason="key-compromise", trust=trust, submitter=key, log_key=log_key, at=now)

A passport is ended by its issuer: by any key that the policy lists under the issuer's name, which is how an
issuer delegates. Nothing is taken out of the log. The same revocation again gives the first one's index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from certkit.errors import CertkitError, MismatchError, UntrustedError, UsageError
from certkit.passport import checks, dsse, keys, sealed
from certkit.registry.admission import refuse_stranger
from certkit.registry.entry import Claims, Note, Revocation, Supersession
from certkit.registry.registry import Appended

if TYPE_CHECKING:
    from datetime import datetime

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.passport.keys import PrivateKey
    from certkit.passport.trust import Trust
    from certkit.registry.entry import AnyClaims, Reason
    from certkit.registry.registry import Registry


class Hand(Struct, frozen=True, kw_only=True):
    """Who writes an entry, with which keys and when, and whom the policy lets."""

    trust: Trust
    submitter: PrivateKey
    log_key: Ed25519PrivateKey
    at: datetime

    def write(self, registry: Registry, subject: str, claims: AnyClaims) -> Appended:
        """Log an entry; raise as `Registry.append_entry` does."""
        return registry.append_entry(
            subject, claims, submitter=self.submitter, log_key=self.log_key, at=self.at
        )


def revoke(
    registry: Registry, ident: str, *, reason: Reason, detail: str | None, hand: Hand
) -> tuple[str, Appended]:
    """Log that a passport is revoked; return its id and the entry.

    Raises `UsageError` ``registry.unknown``, `UntrustedError` ``registry.not-issuer`` where the key is not
    its issuer's, `MismatchError` ``registry.blob-missing``, and as `Registry.append_entry`.
    """
    subject, claims = _own(registry, ident, hand)
    with registry.searching() as search:
        ended, by = search.standing(claims.passport_id)
    if ended == "revoked" and by is not None:
        return claims.passport_id, Appended(index=by, new=False, proof=registry.prove(by))
    what = Revocation(passport_id=claims.passport_id, reason=reason, detail=detail)
    return claims.passport_id, hand.write(registry, subject, what)


def supersede(registry: Registry, ident: str, *, by: str, hand: Hand) -> tuple[str, Appended]:
    """Log that a passport is superseded by the latest one of its lineage; return its id and the entry.

    Raises as `revoke`, and `MismatchError` ``registry.supersedes``.
    """
    subject, claims = _own(registry, ident, hand)
    index = registry.find(by)
    later = registry.logged(index).found
    with registry.searching() as search:
        latest = search.entries.latest(subject)
        ended, known = search.standing(claims.passport_id)
    if later.passport is None or later.passport.passport_id != latest or latest == claims.passport_id:
        raise MismatchError(
            "registry.supersedes",
            f"entry {index} is not the latest passport of {subject}, or the one to supersede",
            hint="only the latest passport of a lineage takes the place of another",
        )
    if ended is not None and known is not None:
        return claims.passport_id, Appended(index=known, new=False, proof=registry.prove(known))
    what = Supersession(passport_id=claims.passport_id, by=latest)
    return claims.passport_id, hand.write(registry, subject, what)


def note(registry: Registry, subject: str | None, text: str, *, hand: Hand) -> Appended:
    """Log words about a lineage, or about the log itself; raise as `Registry.append_entry`."""
    refuse_stranger(hand.submitter, hand.trust)
    return hand.write(registry, subject or registry.origin, Note(text=text))


def _own(registry: Registry, ident: str, hand: Hand) -> tuple[str, Claims]:
    """Return lineage and claims of a logged passport that the hand may end."""
    index = registry.find(ident)
    found = registry.logged(index).found
    stored = found.entry.passport
    if found.passport is None or stored is None:
        raise UsageError("registry.unknown", f"entry {index} is no passport")
    data = registry.passport(stored.sha256)
    if data is None:
        raise MismatchError("registry.blob-missing", f"the file of entry {index} is not here, or has changed")
    issuer = issuer_of(data, hand.trust)
    name = keys.key_id(hand.submitter.public_key())
    if name not in {one.id for one in hand.trust.candidates() if one.issuer == issuer}:
        raise UntrustedError(
            "registry.not-issuer",
            f"issued by {issuer}, and key {name} is not theirs",
            hint="an issuer lets another key revoke by naming it in the policy under the same name",
        )
    return found.entry.subject, found.passport


def issuer_of(passport: bytes, trust: Trust) -> str:
    """Return the policy's name for who signed a passport; raise `CertkitError` where nobody known did."""
    file = sealed.parse(passport)
    envelope = dsse.parse(file.envelope, payload_type=sealed.PAYLOAD_TYPE)
    try:
        return checks.signature(file, envelope, trust).issuer
    except CertkitError as error:
        raise UntrustedError(error.code, error.message, hint=error.hint) from None
