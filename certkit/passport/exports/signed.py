"""The formats that are signed here: a verification result, a credential, an agent card.

in-toto Simple Verification Result: https://in-toto.io/attestation/svr/v0.2 of in-toto/attestation. The
subjects are the agent and the passport. Without a key it is the bare statement, which proves nothing; with
one, a DSSE envelope. A consumer compares properties as texts, so a specimen has none that a real
passport has. As in SLSA, a tier stands for those below it.

W3C Verifiable Credential (Data Model 2.0), secured as a JWT (VC-JOSE-COSE, ``typ: vc+jwt``). The issuer is
named by the thumbprint of its key (RFC 9278); the key itself is not inside. It must be one that the trust
policy holds for the passport's issuer at the time, since a credential speaks in that issuer's name.

A2A agent card (Agent2Agent protocol 0.3 and 1.0) with the passport in an extension entry and a signature
(specification 1.0, section 8.4: detached JWS over the card without ``signatures`` in RFC 8785 form). One that
is there already stays, and so must hold over the same card. Readers differ on whether the signature covers
members that are empty or have their default: the card is signed as it stands, so leave such members out. All
values added are texts, since readers differ on numbers.

JWS (RFC 7515): Ed25519 as ``EdDSA`` (RFC 8037), ECDSA P-256 as ``ES256`` (RFC 7518), by the key's type.
"""

from __future__ import annotations

import base64
import hashlib
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from certkit import canonical
from certkit._version import __version__
from certkit.errors import InputError, UsageError
from certkit.passport import dsse, keys, sealed, words
from certkit.passport.statement import PREDICATE_TYPE, STATEMENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.passport.exports import Source
    from certkit.passport.keys import PrivateKey, PublicKey

RESULT_TYPE: Final = "https://in-toto.io/attestation/svr/v0.2"
VERIFIER: Final = f"pkg:pypi/certkit@{__version__}"
"""Who verified, where the caller does not say: the program, by its package URL."""

_STEPS: Final = {
    "registry": "REGISTERED",
    "status": "STATUS_CURRENT",
    "evidence": "EVIDENCE_UNCHANGED",
    "replay": "REPLAYED",
}
"""The steps that are made on demand, and the property of a passport that passed them."""


def svr(source: Source, *, key: PrivateKey | None, verifier: str | None, **_: Any) -> tuple[str, str]:
    """Return the media type and the text of the result; see the package for the arguments."""
    document = _result(source, verifier or VERIFIER)
    if key is None:
        return sealed.PAYLOAD_TYPE, canonical.pretty(document)
    envelope = dsse.sign(sealed.PAYLOAD_TYPE, canonical.canonical(document), key)
    return "application/vnd.in-toto.svr+dsse", canonical.pretty(envelope)


def _result(source: Source, verifier: str) -> dict[str, Any]:
    if ":" not in verifier or not verifier.isprintable() or " " in verifier:
        raise UsageError("usage.option", f"--verifier: {words.one_line(verifier)!r} is not a URI")
    agent, profile = source.predicate.agent, source.predicate.assessment.profile
    assert source.trust is not None  # noqa: S101 - only a verified passport gets here
    policy = canonical.digest(canonical.canonical(source.trust.to_dict()))
    return {
        "_type": STATEMENT_TYPE,
        "subject": [_resource(agent.name, agent.digest), _resource("agent passport", source.passport_id)],
        "predicateType": RESULT_TYPE,
        "predicate": {
            "verifier": {
                "id": verifier,
                "policies": [
                    _resource(f"profile {profile.id}", profile.digest),
                    _resource("trust policy (canonical JSON)", policy),
                ],
            },
            "timeCreated": words.utc(source.made),
            "properties": list(_properties(source)),
        },
    }


def _resource(name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": digest.removeprefix("sha256:")}}


def _properties(source: Source) -> Iterator[str]:
    judgement = source.predicate.assessment
    prefix = "CERTKIT_SPECIMEN" if source.is_specimen else "CERTKIT"
    yield f"{prefix}_PASSPORT_VERIFIED"
    if judgement.tier:
        yield f"{prefix}_TIER_{judgement.tier}"
    for name, attained in (("TABLE", judgement.table), ("BOUNDED", judgement.bounded)):
        if attained.tier:
            yield f"{prefix}_{name}_TIER_{attained.tier}"
    for step in source.verification.steps if source.verification else ():
        if step.status == "passed" and step.id in _STEPS:
            yield f"{prefix}_{_STEPS[step.id]}"
    if source.at != source.made:
        yield f"{prefix}_VERIFIED_AS_OF_{words.utc(source.at)}"
    yield f"{prefix}_VALID_UNTIL_{words.utc(source.predicate.validity.not_after)}"


def credential(source: Source, *, key: PrivateKey, **_: Any) -> tuple[str, str]:
    """Return the media type and the compact JWS; raises `UsageError` ``export.key`` for another's key."""
    public = key.public_key()
    _check_key(source, public)
    header = {"typ": "vc+jwt", "cty": "vc", "kid": thumbprint(public)}
    payload = canonical.canonical(_credential(source, public))
    return "application/vc+jwt", ".".join(_jws(header, payload, key))


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
        "@context": ["https://www.w3.org/ns/credentials/v2", {"@vocab": f"{PREDICATE_TYPE}#"}],
        "id": f"urn:certkit:passport:{source.passport_id}",
        "type": ["VerifiableCredential", "AgentPassportSpecimen" if source.is_specimen else "AgentPassport"],
        "name": predicate.name,
        "description": words.NOTICE,
        "issuer": {
            "id": thumbprint(public),
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


def agent_card(source: Source, *, key: PrivateKey, card: Any, **_: Any) -> tuple[str, str]:
    """Return the media type and the card; raises `InputError` ``export.card``."""
    _check(card, source)
    entry, capabilities = _extension(source), card["capabilities"]
    extensions = capabilities.get("extensions", [])
    others = [
        item for item in extensions if not (isinstance(item, dict) and item.get("uri") == PREDICATE_TYPE)
    ]
    body = {name: value for name, value in card.items() if name != "signatures"}
    if extensions != [*others, entry]:
        if card.get("signatures"):
            raise InputError(
                "export.card",
                "the card is signed already, and naming the passport in it would break that",
                where="signatures",
                hint="take 'signatures' out, and have the card signed again with the passport in it",
            )
        body["capabilities"] = {**capabilities, "extensions": [*others, entry]}
    header = {"typ": "JOSE", "kid": keys.key_id(key.public_key()), PREDICATE_TYPE: source.passport_id}
    protected, _body, signed = _jws(header, canonical.canonical(body), key)
    signatures = [*card.get("signatures", []), {"protected": protected, "signature": signed}]
    return "application/json", canonical.pretty({**body, "signatures": signatures})


def _check(card: Any, source: Source) -> None:
    """Refuse what is no card, or not this agent's."""
    agent = source.predicate.agent
    whole = isinstance(card, dict) and isinstance(card.get("capabilities"), dict)
    lists = (card.get("signatures", []), card["capabilities"].get("extensions", [])) if whole else (None,)
    if not all(isinstance(part, list) for part in lists):
        hint = "expected an object with name, version and capabilities; signatures and extensions are lists"
        raise InputError("export.card", "not an agent card", hint=hint)
    if (card.get("name"), card.get("version")) != (agent.name, agent.version):
        named = words.one_line(f"{card.get('name')} {card.get('version')}")
        raise InputError(
            "export.card",
            f"the card is of {named!r}, the passport of {words.one_line(f'{agent.name} {agent.version}')!r}",
            hint="the card's name and version are those of the agent in the passport",
        )


def _extension(source: Source) -> dict[str, Any]:
    predicate, judgement = source.predicate, source.predicate.assessment
    return {
        "uri": PREDICATE_TYPE,
        "description": words.NOTICE,
        "params": {
            "passport_id": source.passport_id,
            "agent_digest": predicate.agent.digest,
            "claim": predicate.claim,
            "origin": predicate.origin,
            "profile_digest": judgement.profile.digest,
            "not_before": words.utc(predicate.validity.not_before),
            "not_after": words.utc(predicate.validity.not_after),
        },
    }


def _jws(header: dict[str, Any], payload: bytes, key: PrivateKey) -> tuple[str, str, str]:
    """Return header, payload and signature in base64url; ``alg`` is added to the header."""
    public = key.public_key()
    edwards = isinstance(public, Ed25519PublicKey)
    protected = _encode(canonical.canonical({"alg": "EdDSA" if edwards else "ES256", **header}))
    body = _encode(payload)
    signature = dsse.sign_bytes(f"{protected}.{body}".encode("ascii"), key)
    if not edwards:
        r, s = decode_dss_signature(signature)  # JWS wants the two numbers, 32 bytes each (RFC 7518, 3.4)
        signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    return protected, body, _encode(signature)


def thumbprint(key: PublicKey) -> str:
    """Return the URI of a key's JWK thumbprint (RFC 7638, RFC 9278), which names it without holding it."""
    raw = canonical.canonical(jwk(key))
    return f"urn:ietf:params:oauth:jwk-thumbprint:sha-256:{_encode(hashlib.sha256(raw).digest())}"


def jwk(key: PublicKey) -> dict[str, str]:
    """Return the members of a public key's JWK that its thumbprint is taken over.

    Raises `UsageError` ``key.unsupported`` for a key that signs nothing here.
    """
    if isinstance(key, Ed25519PublicKey):
        raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return {"crv": "Ed25519", "kty": "OKP", "x": _encode(raw)}
    if key.curve.name != "secp256r1":
        raise UsageError("key.unsupported", "only Ed25519 and ECDSA P-256 keys sign")
    point = key.public_numbers()
    x, y = (_encode(number.to_bytes(32, "big")) for number in (point.x, point.y))
    return {"crv": "P-256", "kty": "EC", "x": x, "y": y}


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
