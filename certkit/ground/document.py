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

The key ``schema`` comes first and holds the tag; the other keys follow in the order of the fields, those of
bases first. Parts are `Part`s or any other msgspec Struct, StrEnum and Literal where values are listed,
dictionaries with text, enumerations or integers for keys, and the pydantic models that people write. What
annotations name is imported at run time. `to_builtins` alone decides how a value is written: a fraction as
the nearest double, an integer beyond ±(2^53 − 1) as text, a time in UTC as RFC 3339, a path as text.
`tests/generate.py` lists every document.

This module reads no JSON and writes no bytes (`certkit.ground.canonical`), and does not load pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum, StrEnum
from fractions import Fraction
from functools import cache
from pathlib import Path, PurePath
from typing import Annotated, Any, Final, TypeVar, get_type_hints

from msgspec import NODEFAULT, UNSET, Meta, Struct, ValidationError, convert
from msgspec.structs import fields

from certkit.ground.canonical import MAX_INTEGER
from certkit.ground.errors import CODES, InputError

Text = str
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Tier = Annotated[int, Meta(ge=0, le=9)]
TierKey = Annotated[str, Meta(pattern="^[1-9]$")]
END: Final = r"$(?!\n)"
"""Ends a pattern: in Python a bare $ also matches before a final newline."""
Digest = Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}" + END)]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}" + END)]
Time = Annotated[datetime, Meta(tz=True)]
ErrorCode = Annotated[str, Meta(extra_json_schema={"enum": list(CODES)})]
GivenPath = Annotated[Path, Meta(description="a path as it was given")]

BESIDE: Final = Meta(extra_json_schema={"beside": True})
"""Marks a field whose keys stand in the object itself, which keeps its own keys; a mapping leaves it open."""
_PLAIN: Final = {str, float, bool, type(None)}
"""The types of most values, which are JSON values already."""

AnyPart = TypeVar("AnyPart", bound=Struct)


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object inside a document."""


class State(StrEnum):
    """How much of the evidence that a metric needs was there."""

    MEASURED = "measured"
    PARTIAL = "partial"
    UNMEASURED = "unmeasured"


class Document(Part, frozen=True, kw_only=True, tag_field="schema"):
    """A document that names its schema; every subclass gives its URN as `tag`."""

    def to_dict(self) -> dict[str, Any]:
        """Return the document as JSON values."""
        return _object(self)


def fill(kind: type[AnyPart], source: object, **given: Any) -> AnyPart:
    """Return a part with the fields `given`, the others as the attributes of `source`, else by default."""
    others = {name: getattr(source, name, UNSET) for name in kind.__struct_fields__ if name not in given}
    return kind(**given, **{name: value for name, value in others.items() if value is not UNSET})


def read_part(kind: type[AnyPart], value: Any, code: str, where: str | None) -> AnyPart:
    """Return the part in JSON values.

    Args:
        kind: what it is.
        value: the JSON values.
        code: of the error where they are something else.
        where: the file that the error names.

    Raises:
        InputError: `code`, naming the first fault.
    """
    try:
        return convert(value, kind)
    except (ValidationError, RecursionError) as error:
        raise InputError(code, str(error), where=where) from None


def to_builtins(value: Any) -> Any:
    """Return `value` as JSON values: dict, list, str, int, float, bool and None.

    Raises TypeError where JSON has no such value and no rule is stated above.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Struct):
        if value.__struct_config__.array_like:
            return [to_builtins(getattr(value, name)) for name in value.__struct_fields__]
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
    left_out = _defaults(kind) if kind.__struct_config__.omit_defaults else {}
    for name, key in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        value = getattr(struct, name)
        if value is UNSET or (name in left_out and value == left_out[name]):
            continue
        if name in beside:
            made |= {inner: item for inner, item in to_builtins(value).items() if inner not in made}
        else:
            made[key] = to_builtins(value)
    return made


@cache
def _defaults(kind: type[Struct]) -> dict[str, Any]:
    return {
        field.name: field.default if field.default_factory is NODEFAULT else field.default_factory()
        for field in fields(kind)
        if not field.required
    }


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
