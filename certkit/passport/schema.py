"""The published JSON Schemas (2020-12) of passport and trust policy, made from the types that read them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from certkit.document import DIALECT
from certkit.passport.sealed import PAYLOAD_TYPE, SIGNERS, PassportFile
from certkit.passport.statement import Statement
from certkit.passport.trust import TRUST_SCHEMA, Trust

PASSPORT_SCHEMA: Final = "urn:certkit:passport:v1"
_TEXT: Final = {"type": "string"}
_BASE64: Final = {"type": "string", "contentEncoding": "base64"}


def passport_schema() -> dict[str, Any]:
    """Return the schema of ``passport.json``; that of the signed statement stands at its payload."""
    statement = msgspec.json.schema(Statement)
    definitions = statement.pop("$defs")
    made = msgspec.json.schema(PassportFile)["$defs"]
    file = made.pop("PassportFile")
    file["properties"]["dsseEnvelope"] = _envelope(statement)
    made["VerificationMaterial"]["oneOf"] = [{"required": [name]} for name in SIGNERS]
    return {
        "$schema": DIALECT,
        "$id": PASSPORT_SCHEMA,
        **file,
        "title": "certkit agent passport",
        "description": (
            "A Sigstore bundle v0.3 around a DSSE envelope over an in-toto Statement v1. What is signed is "
            "the payload's bytes; the passport's id is their SHA-256."
        ),
        "$defs": made | definitions,
    }


def _envelope(statement: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the envelope, whose form `dsse.parse` checks with an error code for each fault."""
    keyid = {**_TEXT, "description": "never written, ignored where met"}
    signature = _closed({"sig": _BASE64, "keyid": keyid}, required=["sig"])
    fields = {
        "payload": {**_BASE64, "contentMediaType": PAYLOAD_TYPE, "contentSchema": statement},
        "payloadType": {"const": PAYLOAD_TYPE},
        "signatures": {"type": "array", "items": signature, "minItems": 1, "maxItems": 1},
    }
    return _closed(fields, required=list(fields))


def _closed(properties: dict[str, Any], *, required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


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
