"""The documents that certkit prints: frozen structs, from which their JSON and their schemas are made.

    class BundleSeal(Document, frozen=True, kw_only=True, tag="urn:certkit:bundle-seal:v1"):
        "What certkit bundle seal prints."           # becomes the schema's description

        digest: Digest                               # aliases below carry the constraints
        files: Annotated[Count, Meta(description="those that are listed in the manifest")]
        signer: Text | None                          # a key that is always there and may be null
        reason: Text | UnsetType = UNSET             # a key that may be absent
        counts: Annotated[Mapping[str, int], BESIDE] # keys that stand in the object itself

    BundleSeal(digest=…, files=3, signer=None, counts={}).to_dict()
    fill(BundleSeal, bundle, files=3)                # the other fields are attributes of `bundle`
    schema_of(BundleSeal)                            # JSON Schema 2020-12, closed

The key ``schema`` comes first and holds the tag; the other keys follow in the order of the fields, those of
bases first. Parts are `Part`s or any other msgspec Struct, StrEnum and Literal where values are listed,
dictionaries with text, enumerations or integers for keys, and the pydantic models that people write. What
annotations name is imported at run time. `to_builtins` alone decides how a value is written: a fraction as
the nearest double, a time in UTC as RFC 3339, a path as text. `tests/generate.py` lists every document.

This module reads no JSON and writes no bytes (`certkit.canonical`), and does not load pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from fractions import Fraction
from functools import cache
from inspect import cleandoc
from pathlib import Path, PurePath
from typing import Annotated, Any, Final, TypeVar, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct

from certkit.errors import CODES

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
URN: Final = "urn:certkit:"

Text = str
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Tier = Annotated[int, Meta(ge=0, le=9)]
TierKey = Annotated[str, Meta(pattern="^[1-9]$")]
Digest = Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Time = Annotated[datetime, Meta(tz=True)]
ErrorCode = Annotated[str, Meta(extra_json_schema={"enum": list(CODES)})]
GivenPath = Annotated[Path, Meta(description="a path as it was given")]

_BESIDE: Final = "beside"
BESIDE: Final = Meta(extra_json_schema={_BESIDE: True})
"""Marks a field whose keys stand in the object itself, which keeps its own keys; a mapping leaves it open."""


def any_of(*kinds: type[Struct]) -> Meta:
    """Return the annotation of an object that fits one of these types, none of which refers to another."""
    return Meta(
        extra_json_schema={"anyOf": [msgspec.json.schema(kind)["$defs"][kind.__name__] for kind in kinds]}
    )


AnyPart = TypeVar("AnyPart", bound=Struct)


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object inside a document."""


class Document(Part, frozen=True, kw_only=True, tag_field="schema"):
    """A document that names its schema; every subclass gives its URN as `tag`."""

    def to_dict(self) -> dict[str, Any]:
        """Return the document as JSON values."""
        return _object(self)


def fill(kind: type[AnyPart], source: object, **given: Any) -> AnyPart:
    """Return a part with the fields `given`, the others as the attributes of `source`, else by default."""
    others = (name for name in kind.__struct_fields__ if name not in given and hasattr(source, name))
    return kind(**given, **{name: getattr(source, name) for name in others})


def to_builtins(value: Any) -> Any:
    """Return `value` as JSON values: dict, list, str, int, float, bool and None.

    Raises TypeError where JSON has no such value and no rule is stated above.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Struct):
        return _object(value)
    if isinstance(value, Mapping):
        return {str(to_builtins(key)): to_builtins(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [to_builtins(item) for item in value]
    return _scalar(value)


def _object(struct: Struct) -> dict[str, Any]:
    kind, made = type(struct), dict[str, Any]()
    if kind.__struct_config__.tag_field is not None:
        made[kind.__struct_config__.tag_field] = kind.__struct_config__.tag
    beside = _beside(kind) if isinstance(struct, Part) else frozenset[str]()
    for name, key in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        value = getattr(struct, name)
        if value is UNSET:
            continue
        if name in beside:
            made |= {inner: item for inner, item in to_builtins(value).items() if inner not in made}
        else:
            made[key] = to_builtins(value)
    return made


def _scalar(value: Any) -> Any:
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "model_dump"):  # what a person wrote, as its type says or else whole
        written = getattr(value, "to_dict", None)
        return value.model_dump(mode="json", by_alias=True) if written is None else written()
    raise TypeError(f"no rule says how {type(value).__name__} is written")


@cache
def _beside(kind: type[Part]) -> frozenset[str]:
    hints = get_type_hints(kind, include_extras=True)
    return frozenset(name for name, hint in hints.items() if BESIDE in getattr(hint, "__metadata__", ()))


def name_of(kind: type[Document]) -> str:
    """Return the name of a document with its version: ``bundle-seal.v1``."""
    tag = kind.__struct_config__.tag
    if not (isinstance(tag, str) and tag.startswith(URN)):
        raise TypeError(f"{kind.__name__} names no schema: class {kind.__name__}(Document, tag='{URN}…:v1')")
    return tag.removeprefix(URN).replace(":", ".")


def schema_of(kind: type[Document]) -> dict[str, Any]:
    """Return the published JSON Schema (2020-12) of a document.

    Every object is closed, and a key is required unless its field may be `UNSET`; a default in Python says
    nothing about the JSON. Descriptions are the docstrings' first paragraphs, and `Meta(description=…)`.
    """
    title = f"certkit {name_of(kind).partition('.')[0]}"
    foreign: dict[str, Any] = {}
    made = msgspec.json.schema(kind, schema_hook=lambda unknown: _foreign(unknown, foreign))
    root = made["$defs"].pop(made["$ref"].rpartition("/")[2])
    structs = made["$defs"]
    for body in (root, *structs.values()):
        _close(body, structs, foreign)
    root["properties"]["schema"] = {"const": kind.__struct_config__.tag}
    head = {"$schema": DIALECT, "$id": kind.__struct_config__.tag, **root, "title": title}
    definitions = foreign | structs
    used = _used(root, definitions)
    return head | ({"$defs": {name: definitions[name] for name in sorted(used)}} if used else {})


def _foreign(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type that msgspec does not know; what it refers to joins `definitions`."""
    if kind is Fraction:
        return {"type": "number"}
    if issubclass(kind, PurePath):
        return {"type": "string"}
    if hasattr(kind, "model_json_schema"):
        body = kind.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
        definitions |= body.pop("$defs", {}) | {kind.__name__: body}
        return {"$ref": f"#/$defs/{kind.__name__}"}
    raise TypeError(f"no rule says what the schema of {kind.__name__} is")


def _close(body: dict[str, Any], structs: dict[str, Any], foreign: dict[str, Any]) -> None:
    """Change the schema of a struct into the schema of the JSON that is printed of it."""
    if "description" in body:
        body["description"] = " ".join(cleandoc(body["description"]).split("\n\n")[0].split())
    if "properties" not in body:
        return
    body.setdefault("additionalProperties", False)
    required = set(body.get("required", ()))
    for key, field in list(body["properties"].items()):
        if "default" in field:
            required.add(key)
            del field["default"]
        if field.pop(_BESIDE, False):
            required.discard(key)
            del body["properties"][key]
            required |= _spread(body, field, structs, foreign)
    body["required"] = [key for key in body["properties"] if key in required]


def _spread(
    body: dict[str, Any], field: dict[str, Any], structs: dict[str, Any], foreign: dict[str, Any]
) -> set[str]:
    """Add the keys of a field to its object, and return those that are required."""
    name = field.get("$ref", "").rpartition("/")[2]
    if name in structs:
        _close(structs[name], structs, foreign)
    field = structs.get(name) or foreign.get(name) or field
    if "properties" not in field or field["additionalProperties"] is not False:
        body["additionalProperties"] = True
    body["properties"] |= field.get("properties", {})
    return set(field.get("required", ()))


def _used(body: Any, definitions: dict[str, Any]) -> set[str]:
    """Return the names of all definitions that `body` refers to, directly or not."""
    used: set[str] = set()
    waiting = [body]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            name = value.get("$ref", "").rpartition("/")[2] if isinstance(value.get("$ref"), str) else ""
            if name and name not in used:
                used.add(name)
                waiting.append(definitions[name])
            waiting += value.values()
    return used
