"""The published JSON Schemas of bundle and record, generated from the types that read them."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from certkit.document import DIALECT
from certkit.evidence.reading.columns import KINDS
from certkit.evidence.records.record import (
    GRADES,
    MAX_LINE,
    RECORD_SCHEMA,
    TIMESTAMP_PATTERN,
    USER_FIELD_PATTERN,
    Condition,
    Record,
)

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "time": (str,),
    "integer": (int,),
    "floating": (int, float),
    "ternary": (bool,),
}
_WORDS: Final = {"string": "text", "integer": "an integer", "number": "a number", "boolean": "true or false"}


@cache
def record_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a record.

    It says what each field may hold. A schema cannot compare two numbers, so contradictions between fields
    and between records are listed on the reference page instead.
    """
    document = line_schema(
        Record,
        RECORD_SCHEMA,
        "certkit evaluation record",
        "One line of records/*.jsonl. Null and absent mean the same: not measured. A line is at most "
        f"{MAX_LINE:,} bytes; keys occur once.",
    )
    for field in document["properties"].values():
        for option in field.get("anyOf", ()):
            if option.get("format") == "date-time":
                option["pattern"] = TIMESTAMP_PATTERN
    return document


def line_schema(kind: type[Struct], identity: str, title: str, description: str) -> dict[str, Any]:
    """Return the JSON Schema of a line: the fields of a struct, and the user's own."""
    definitions = msgspec.json.schema(kind)["$defs"]
    body = definitions.pop(kind.__name__)
    for field in body["properties"].values():
        field.pop("default", None)
    return {
        "$schema": DIALECT,
        "$id": identity,
        "title": title,
        "description": description,
        "type": "object",
        "properties": body["properties"],
        "patternProperties": {USER_FIELD_PATTERN: {"description": "the user's own; carried, not read"}},
        "required": body["required"],
        "additionalProperties": False,
    } | ({"$defs": definitions} if definitions else {})


@cache
def manifest_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of ``bundle.json``."""
    from certkit.evidence.bundle.manifest import MANIFEST_SCHEMA, Manifest  # noqa: PLC0415 - readers need no pydantic

    document = Manifest.model_json_schema(by_alias=True)
    return {"$schema": DIALECT, "$id": MANIFEST_SCHEMA, **document, "title": "certkit evidence bundle"}


def has_type(name: str, value: Any) -> bool:
    """Tell whether `value` has the JSON type of record field `name`, whatever its range."""
    kind = KINDS[name]
    return isinstance(value, _TYPES[kind]) and (kind == "ternary" or not isinstance(value, bool))


def expected(name: str) -> str:
    """Return in words what record field `name` may hold."""
    if name == "started_at":
        return "a time with offset, such as 2026-01-31T12:00:00Z"
    if name == "condition":
        return ", ".join(Condition) + " or x_…"
    if name == "recovery_grade":
        return ", ".join(f"{grade:g}" for grade in GRADES)
    if name == "trace":
        return "sha256: and 64 hexadecimal digits"
    schema = record_schema()
    field = schema["properties"][name]
    for option in field.get("anyOf", [field]):
        if "$ref" in option:
            return "one of " + ", ".join(schema["$defs"][option["$ref"].rpartition("/")[2]]["enum"])
        if option.get("type") != "null":
            return _words(option)
    raise AssertionError(name)


def _words(option: dict[str, Any]) -> str:
    kind = _WORDS[option["type"]]
    if "maxLength" in option:
        return f"{kind} of {option['minLength']} to {option['maxLength']} characters"
    if "minimum" in option:
        return f"{kind} from {option['minimum']:,} to {option['maximum']:,}"
    return kind
