"""The published JSON Schemas (2020-12) of the passport and the trust policy."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from certkit.document import DIALECT
from certkit.passport.sealed import MEDIA_TYPE, PAYLOAD_TYPE
from certkit.passport.statement import Statement
from certkit.passport.trust import TRUST_SCHEMA, Trust

PASSPORT_SCHEMA: Final = "urn:certkit:passport:v1"
_TEXT: Final = {"type": "string"}
_BASE64: Final = {"type": "string", "contentEncoding": "base64"}


def passport_schema() -> dict[str, Any]:
    """Return the schema of ``passport.json``; that of the signed statement stands at its payload."""
    statement = msgspec.json.schema(Statement)
    definitions = statement.pop("$defs")
    envelope = _closed(
        payload={**_BASE64, "contentMediaType": PAYLOAD_TYPE, "contentSchema": statement},
        payloadType={"const": PAYLOAD_TYPE},
        signatures={"type": "array", "items": _signature(), "minItems": 1, "maxItems": 1},
    )
    return {
        "$schema": DIALECT,
        "$id": PASSPORT_SCHEMA,
        "title": "certkit agent passport",
        "description": (
            "A Sigstore bundle v0.3 around a DSSE envelope over an in-toto Statement v1. What is signed is "
            "the payload's bytes; the passport's id is their SHA-256."
        ),
        **_closed(mediaType={"const": MEDIA_TYPE}, verificationMaterial=_material(), dsseEnvelope=envelope),
        "$defs": definitions,
    }


def trust_schema() -> dict[str, Any]:
    """Return the schema of ``trust.json``."""
    document = msgspec.json.schema(Trust)
    definitions = document["$defs"]
    body = definitions.pop("Trust")
    body["required"] = ["schema"]
    return {
        "$schema": DIALECT,
        "$id": TRUST_SCHEMA,
        **body,
        "title": "certkit trust policy",
        "$defs": definitions,
    }


def _closed(**properties: Any) -> dict[str, Any]:
    """Return an object that holds exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _signature() -> dict[str, Any]:
    body = _closed(sig=_BASE64)
    body["properties"]["keyid"] = {**_TEXT, "description": "never written, ignored where met"}
    return body


def _material() -> dict[str, Any]:
    """Return the schema of what a reader may use to choose a key; none of it is trusted."""
    timestamps = {"type": "array", "items": _closed(signedTimestamp=_BASE64)}
    hint = {**_TEXT, "description": "base64 of the SHA-256 of the signer's public key (SPKI DER)"}
    return {
        "type": "object",
        "properties": {
            "publicKey": {"type": "object", "properties": {"hint": hint}, "additionalProperties": False},
            "certificate": _closed(rawBytes=_BASE64),
            "x509CertificateChain": {"type": "object"},
            "tlogEntries": {"type": "array", "items": {"type": "object"}},
            "timestampVerificationData": {
                "type": "object",
                "properties": {"rfc3161Timestamps": timestamps},
                "additionalProperties": False,
            },
        },
        "oneOf": [
            {"required": ["publicKey"]},
            {"required": ["certificate"]},
            {"required": ["x509CertificateChain"]},
        ],
        "additionalProperties": False,
    }
