"""The formats that are signed here: a verification result, a credential, an agent card.

in-toto Simple Verification Result: https://in-toto.io/attestation/svr/v0.2 of in-toto/attestation, in a DSSE
envelope. The subjects are the agent and the passport. A consumer compares properties as texts, so a specimen
has none that a real passport has. As in SLSA, a tier stands for those below it.

W3C Verifiable Credential (Data Model 2.0), secured as a JWT (VC-JOSE-COSE, ``typ: vc+jwt``). It is issued by
whoever holds the key, named by the key's thumbprint (RFC 9278); the key itself is not inside.

A2A agent card (Agent2Agent protocol 0.3 and 1.0) as it was given, with one signature more (specification 1.0,
section 8.4: detached JWS over the card without ``signatures`` in RFC 8785 form). Its protected header carries
the passport's id and claim.

JWS (RFC 7515): Ed25519 as ``EdDSA`` (RFC 8037), ECDSA P-256 as ``ES256`` (RFC 7518), by the key's type.
"""

from __future__ import annotations

import base64
import hashlib
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from jwt import PyJWS
from jwt.algorithms import ECAlgorithm, OKPAlgorithm

from certkit._version import __version__
from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.passport import dsse, keys, sealed, words
from certkit.passport.statement import PREDICATE_TYPE, STATEMENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.passport.exports import Source
    from certkit.passport.keys import PrivateKey, PublicKey

RESULT_TYPE: Final = "https://in-toto.io/attestation/svr/v0.2"
VERIFIER: Final = f"pkg:pypi/certkit@{__version__}"
"""What verified: the program, by its package URL."""


def svr(source: Source, *, key: PrivateKey, **_: Any) -> tuple[str, str]:
    """Return the media type and the envelope of the result."""
    agent, profile = source.predicate.agent, source.predicate.assessment.profile
    document = {
        "_type": STATEMENT_TYPE,
        "subject": [_resource(agent.name, agent.digest), _resource("agent passport", source.passport_id)],
        "predicateType": RESULT_TYPE,
        "predicate": {
            "verifier": {"id": VERIFIER, "policies": [_resource(f"profile {profile.id}", profile.digest)]},
            "timeCreated": words.utc(source.verification.at),
            "properties": list(_properties(source)),
        },
    }
    envelope = dsse.sign(sealed.PAYLOAD_TYPE, canonical.canonical(document), key)
    return "application/vnd.in-toto.svr+dsse", canonical.pretty(envelope)


def _resource(name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": digest.removeprefix("sha256:")}}


def _properties(source: Source) -> Iterator[str]:
    judgement = source.predicate.assessment
    prefix = "CERTKIT_SPECIMEN" if source.is_specimen else "CERTKIT"
    yield f"{prefix}_PASSPORT_VERIFIED"
    tiers = {"": judgement.tier, "TABLE_": judgement.table.tier, "BOUNDED_": judgement.bounded.tier}
    for reading, tier in tiers.items():
        if tier:
            yield f"{prefix}_{reading}TIER_{tier}"
    for step in source.verification.steps:
        if step.status == "passed":
            yield f"{prefix}_PASSED_{step.id.upper()}"
    yield f"{prefix}_VALID_UNTIL_{words.utc(source.predicate.validity.not_after)}"


def credential(source: Source, *, key: PrivateKey, **_: Any) -> tuple[str, str]:
    """Return the media type and the compact JWS."""
    public = key.public_key()
    header = {"typ": "vc+jwt", "cty": "vc", "kid": thumbprint(public)}
    return "application/vc+jwt", _jws(header, canonical.canonical(_credential(source, public)), key)


def _credential(source: Source, public: PublicKey) -> dict[str, Any]:
    predicate, at = source.predicate, source.verification.at
    return {
        # Terms that the standard does not know are read as terms of the passport's own type.
        "@context": ["https://www.w3.org/ns/credentials/v2", {"@vocab": f"{PREDICATE_TYPE}#"}],
        "id": f"urn:certkit:passport:{source.passport_id}",
        "type": ["VerifiableCredential", "AgentPassportSpecimen" if source.is_specimen else "AgentPassport"],
        "name": predicate.name,
        "description": words.NOTICE,
        "issuer": {"id": thumbprint(public), "keyId": keys.key_id(public)},
        "validFrom": words.utc(predicate.validity.not_before),
        "validUntil": words.utc(predicate.validity.not_after),
        "verifiedAsOf": words.utc(at),
        # Readers of JWTs look here alone. VC-JOSE-COSE advises against `nbf`, and does not forbid it.
        "iat": int(at.timestamp()),
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
        "passportIssuer": predicate.issuer.name,
    }


def agent_card(source: Source, *, key: PrivateKey, card: Any, **_: Any) -> tuple[str, str]:
    """Return the media type and the card; raises `InputError` ``export.card`` for no card of this agent."""
    agent = source.predicate.agent
    if (
        not isinstance(card, dict)
        or not isinstance(card.get("signatures", []), list)
        or (card.get("name"), card.get("version")) != (agent.name, agent.version)
    ):
        named = words.one_line(f"{agent.name} {agent.version}")
        raise InputError(
            "export.card",
            f"not an agent card of {named!r}, which the passport is about",
            hint="expected an object whose name and version are those of the agent in the passport",
        )
    body = {name: value for name, value in card.items() if name != "signatures"}
    about = {"passport": source.passport_id, "claim": source.predicate.claim}
    header = {"typ": "JOSE", "kid": keys.key_id(key.public_key()), PREDICATE_TYPE: about}
    protected, _body, signature = _jws(header, canonical.canonical(body), key).split(".")
    signatures = [*card.get("signatures", []), {"protected": protected, "signature": signature}]
    return "application/json", canonical.pretty({**body, "signatures": signatures})


def _jws(header: dict[str, Any], payload: bytes, key: PrivateKey) -> str:
    edwards = isinstance(key.public_key(), Ed25519PublicKey)
    return PyJWS().encode(payload, key, algorithm="EdDSA" if edwards else "ES256", headers=header)


def thumbprint(key: PublicKey) -> str:
    """Return the URI of a key's JWK thumbprint (RFC 7638, RFC 9278), which names it without holding it."""
    kind: Any = OKPAlgorithm if isinstance(key, Ed25519PublicKey) else ECAlgorithm
    required = {name: text for name, text in kind.to_jwk(key, as_dict=True).items() if name in _REQUIRED}
    digest = base64.urlsafe_b64encode(hashlib.sha256(canonical.canonical(required)).digest())
    return f"urn:ietf:params:oauth:jwk-thumbprint:sha-256:{digest.rstrip(b'=').decode()}"


_REQUIRED: Final = {"crv", "kty", "x", "y"}
"""The members of a public key's JWK that its thumbprint is taken over."""
