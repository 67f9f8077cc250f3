"""The published JSON Schemas of the documents that commands make themselves, one row each.

    schemas()["bundle-seal"]              # the schema of ``urn:certkit:bundle-seal:v1``

A command that prints a new document gets a row in one of the tables; the test of documents demands it.
Larger documents have their schema beside the type that makes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from certkit.assessment.profile import Profile
from certkit.cli import schemas_registry
from certkit.evidence.bundle.manifest import Agent, Imported
from certkit.evidence.records.record import Condition, Split
from certkit.passport.exports import FORMATS
from certkit.passport.statement import Statement
from certkit.schema import (
    COUNT,
    DIGEST,
    FLAG,
    TEXT,
    TIER,
    TIME,
    Schema,
    closed,
    document,
    listed,
    optional,
    or_null,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATH: Final[Schema] = {**TEXT, "description": "a path as it was given"}
_KEY: Final[dict[str, Schema]] = {
    "id": {**DIGEST, "description": "SHA-256 of the public key, SPKI in DER"},
    "algorithm": TEXT,
    "pem": {**TEXT, "description": "the public key"},
}
_BUNDLE: Final[dict[str, Schema]] = {"digest": DIGEST, "files": COUNT}
_OF_BUNDLES: Final[dict[str, tuple[str, dict[str, Schema]]]] = {
    "bundle-init": ("What certkit bundle init prints.", {"bundle": _PATH}),
    "bundle-seal": ("What certkit bundle seal prints.", _BUNDLE),
    "bundle-check": (
        "What certkit bundle check prints of a bundle that it does not refuse.",
        {
            **_BUNDLE,
            "sealed": FLAG,
            "manifest": {"type": "object", "description": "as urn:certkit:bundle:v1, without its files"},
            "records": COUNT,
            "coverage": listed(
                closed(
                    split={"enum": [split.value for split in Split]},
                    domain=TEXT,
                    condition={
                        "anyOf": [{"enum": [item.value for item in Condition]}, {"pattern": "^x_"}],
                        "type": "string",
                    },
                    runs=COUNT,
                    success=COUNT,
                    harness_error=COUNT,
                )
            ),
        },
    ),
    "simulation": ("What certkit simulate prints.", {"bundle": _PATH, "seed": COUNT, "records": COUNT}),
    "profiles": (
        "The packaged profiles.",
        {
            "profiles": listed(
                closed(id=TEXT, title=or_null(TEXT), reading={"enum": ["table", "bounded"]}, digest=DIGEST)
            )
        },
    ),
    "profile-lint": ("Faults of a profile; none: an empty list.", {"profile": TEXT, "faults": listed(TEXT)}),
}

_OF_PASSPORTS: Final[dict[str, tuple[str, dict[str, Schema]]]] = {
    "issued": (
        "What certkit issue and certkit demo print.",
        {
            "passport": _PATH,
            "passport_id": DIGEST,
            "tier": TIER,
            "index": {**or_null(COUNT), "description": "the entry in the registry, null where not logged"},
            **schemas_registry.FOLLOWING,
            "pdf_missing": {**or_null(TEXT), "description": "why there is no PDF"},
        },
    ),
    "export": (
        "A passport's claim in a format of others.",
        {"format": {"enum": list(FORMATS)}, "passport_id": DIGEST, "media_type": TEXT, "content": TEXT},
    ),
    "report": (
        "What certkit report wrote.",
        {"html": _PATH, "pdf": or_null(_PATH), "pdf_missing": or_null(TEXT)},
    ),
    "trust-show": (
        "A trust policy, and what is odd about it; an empty list where nothing is.",
        {
            "path": _PATH,
            "policy": {"type": "object", "description": "as urn:certkit:trust:v1"},
            "odd": listed(TEXT),
            "cautions": {
                **listed(TEXT),
                "description": "what the policy lets pass that a careful verifier would not",
            },
        },
    ),
    "rotation": (
        "A key that takes over from another.",
        {
            **_KEY,
            "encrypted": FLAG,
            "old": DIGEST,
            "at": TIME,
            "trust": {**or_null(_PATH), "description": "the policy that was changed"},
        },
    ),
    "doctor": (
        "What this machine has and lacks.",
        {
            "certkit": TEXT,
            "ok": FLAG,
            "checks": listed(
                closed(name=TEXT, state={"enum": ["ok", "missing", "failed"]}, found=TEXT, hint=listed(TEXT))
            ),
            "settings": {
                **listed(closed(name=TEXT, value={"type": ["string", "integer", "null"]}, source=TEXT)),
                "description": "every setting, with where its value comes from",
            },
        },
    ),
}

_ROWS: Final = {**_OF_BUNDLES, **_OF_PASSPORTS, **schemas_registry.ROWS}


def schemas() -> dict[str, Schema]:
    """Return the schemas by name, the part between ``urn:certkit:`` and ``:v1``."""
    made = {
        name: document(f"urn:certkit:{name}:v1", about, **properties)
        for name, (about, properties) in _ROWS.items()
    }
    return made | dict(_larger())


def _larger() -> Iterator[tuple[str, Schema]]:
    about = "A public key, and of one that was made whether its private key is encrypted."
    yield "key", optional(document("urn:certkit:key:v1", about, **_KEY), encrypted=FLAG)
    yield "show", _show()
    yield "import", _import()
    yield "profile-show", _profile()
    yield from schemas_registry.larger()


def _of(kind: type) -> tuple[Schema, dict[str, Schema]]:
    """Return the schema of a msgspec type, and the definitions that it refers to."""
    (schema,), definitions = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    return schema, definitions


def _show() -> Schema:
    statement, definitions = _of(Statement)
    made = document(
        "urn:certkit:show:v1",
        "What a passport says; without a trust policy its signature is not checked.",
        at=or_null(TIME),
        passport_id=or_null(DIGEST),
        signature_checked=FLAG,
        verdict={"enum": ["verified", "rejected", "unverifiable", None]},
        statement=or_null(statement),
    )
    return {**made, "$defs": definitions}


def _import() -> Schema:
    forms = {
        model.__name__: model.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
        for model in (Agent, Imported)
    }
    definitions: dict[str, Schema] = {}
    for form in forms.values():
        definitions |= form.pop("$defs", {})
    made = document(
        "urn:certkit:import:v1",
        "The bundles that an import wrote.",
        bundles=listed(
            closed(
                bundle=_PATH,
                digest={**or_null(DIGEST), "description": "null where it was not sealed"},
                agent={"$ref": "#/$defs/Agent"},
                imported={"$ref": "#/$defs/Imported"},
            )
        ),
    )
    return {**made, "$defs": dict(sorted({**definitions, **forms}.items()))}


def _profile() -> Schema:
    body = Profile.model_json_schema(by_alias=True)
    urn = "urn:certkit:profile-show:v1"
    made = document(urn, "A profile with its digest.", digest=DIGEST)
    properties = {**body["properties"], **made["properties"]}
    required = [*made["required"], *body["required"]]
    return {**made, "properties": properties, "required": required, "$defs": body.get("$defs", {})}
