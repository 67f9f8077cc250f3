"""JSON Schema (2020-12) in few words, for the documents whose types do not make their schema themselves.

    document("urn:certkit:bundle-seal:v1", "what it is", digest=DIGEST, files=COUNT)

An object is closed: it holds exactly the keys that are named, and `or_null` says which of them may be empty.
"""

from __future__ import annotations

from typing import Any, Final

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
FLAG: Final[Schema] = {"type": "boolean"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
SOME: Final[Schema] = {"type": "integer", "minimum": 1}
NUMBER: Final[Schema] = {"type": "number"}
SHARE: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 1}
DIGEST: Final[Schema] = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
HASH: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
TIME: Final[Schema] = {"type": "string", "format": "date-time"}
TIER: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 9}


def closed(**properties: Schema) -> Schema:
    """Return an object that holds exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def optional(body: Schema, **properties: Schema) -> Schema:
    """Return a closed object that may hold these keys as well."""
    return {**body, "properties": {**body["properties"], **properties}}


def or_null(schema: Schema) -> Schema:
    """Return what may be null."""
    return {"anyOf": [schema, {"type": "null"}]}


def listed(items: Schema) -> Schema:
    """Return a list."""
    return {"type": "array", "items": items}


def by_name(values: Schema, names: list[str] | None = None) -> Schema:
    """Return an object with any keys, or some of `names`, and one kind of value."""
    keys = {} if names is None else {"propertyNames": {"enum": names}}
    return {"type": "object", **keys, "additionalProperties": values}


def document(urn: str, about: str, **properties: Schema) -> Schema:
    """Return the published schema of a document that names itself `urn`."""
    return {
        "$schema": DIALECT,
        "$id": urn,
        "title": f"certkit {urn.split(':')[2]}",
        "description": about,
        **closed(schema={"const": urn}, **properties),
    }
