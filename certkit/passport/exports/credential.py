"""W3C Verifiable Credential (Data Model 2.0), secured as a JWT (VC-JOSE-COSE, ``typ: vc+jwt``).

The issuer is named by the thumbprint of its key (RFC 9278), which is the ``kid`` too; the key itself is not
inside, and comes from the reader's own trust store. The key must be one that the trust policy holds for the
passport's issuer at the time, since a credential speaks in that issuer's name. A specimen has another type.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, Final

from certkit import canonical
from certkit.errors import UsageError
from certkit.passport import keys
from certkit.passport.exports import jose, words
from certkit.passport.statement import PREDICATE_TYPE

if TYPE_CHECKING:
    from certkit.passport.exports.source import Source
    from certkit.passport.keys import PrivateKey, PublicKey

MEDIA_TYPE: Final = "application/vc+jwt"
CONTEXT: Final = "https://www.w3.org/ns/credentials/v2"


def write(source: Source, *, key: PrivateKey, **_: Any) -> tuple[str, str]:
    """Return the media type and the compact JWS; raises `UsageError` ``export.key`` for another's key."""
    public = key.public_key()
    _check_key(source, public)
    header = {"typ": "vc+jwt", "cty": "vc", "kid": jose.thumbprint(public)}
    payload = canonical.canonical(_credential(source, public))
    return MEDIA_TYPE, jose.sign(header, payload, key).compact


def _check_key(source: Source, public: PublicKey) -> None:
    claim = source.verification.claim if source.verification else None
    for known in source.trust.candidates() if source.trust else ():
        if claim is not None and known.issuer == claim.issuer.name and known.id == keys.key_id(public):
            begun = known.not_before is None or known.not_before <= source.made
            if begun and (known.not_after is None or source.made <= known.not_after):
                return
    raise UsageError(
        "export.key",
        "a credential is signed with a key that the trust policy holds for the passport's issuer at the time",
        hint="as a verifier, sign a result of your own instead: --format in-toto-svr",
    )


def _credential(source: Source, public: PublicKey) -> dict[str, Any]:
    predicate = source.predicate
    return {
        # Terms that the standard does not know are read as terms of the passport's own type.
        "@context": [CONTEXT, {"@vocab": f"{PREDICATE_TYPE}#"}],
        "id": f"urn:certkit:passport:{source.passport_id}",
        "type": ["VerifiableCredential", "AgentPassportSpecimen" if source.is_specimen else "AgentPassport"],
        "name": predicate.name,
        "description": words.NOTICE,
        "issuer": {
            "id": jose.thumbprint(public),
            "name": predicate.issuer.name,
            "keyId": keys.key_id(public),
        },
        "validFrom": words.utc(predicate.validity.not_before),
        "validUntil": words.utc(predicate.validity.not_after),
        "verifiedAsOf": words.utc(source.at),
        # Readers of JWTs look here alone. VC-JOSE-COSE advises against `nbf`, and does not forbid it.
        "iat": int(source.made.timestamp()),
        "nbf": ceil(predicate.validity.not_before.timestamp()),
        "exp": int(predicate.validity.not_after.timestamp()),
        "credentialSubject": _subject(source),
    }


def _subject(source: Source) -> dict[str, Any]:
    predicate, judgement = source.predicate, source.predicate.assessment
    return {
        "id": f"urn:certkit:agent:{predicate.agent.digest}",
        "name": predicate.agent.name,
        "version": predicate.agent.version,
        "digest": predicate.agent.digest,
        "claim": predicate.claim,
        "origin": predicate.origin,
        "tier": judgement.tier,
        "tierByTable": judgement.table.tier,
        "tierByBounds": judgement.bounded.tier,
        "profile": {
            "name": judgement.profile.id,
            "digest": judgement.profile.digest,
            "reading": judgement.profile.reading,
        },
        "domains": list(predicate.scope.domains),
        "evidenceDigest": predicate.evidence.digest,
        "passportId": source.passport_id,
    }
