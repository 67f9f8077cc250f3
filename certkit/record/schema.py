"""What each field of a record may hold, taken from the type that reads it."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from certkit.record.columns import KINDS
from certkit.record.record import GRADES, Condition, Record

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "time": (str,),
    "integer": (int,),
    "floating": (int, float),
    "ternary": (bool,),
}
_WORDS: Final = {"string": "text", "integer": "an integer", "number": "a number", "boolean": "true or false"}


@cache
def fields() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the JSON Schema of each field of a record, and the definitions that these refer to."""
    definitions = msgspec.json.schema(Record)["$defs"]
    return definitions.pop("Record")["properties"], definitions


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
    schemas, definitions = fields()
    field = schemas[name]
    for option in field.get("anyOf", [field]):
        if "$ref" in option:
            return "one of " + ", ".join(definitions[option["$ref"].rpartition("/")[2]]["enum"])
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
