"""The base of the documents that people write: strict, frozen, with errors that name the place.

`Authored` is a frozen pydantic model that refuses unknown keys. `validate` turns pydantic's report into an
`InputError` that lists every fault with its JSON pointer. Where a value may have several forms, such as a
number or a list of numbers, pydantic reports a fault for each form; here they become a single fault that
names all permitted forms.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from certkit.ground import canonical
from certkit.ground.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

    Location = tuple[int | str, ...]


class Authored(BaseModel):
    """A document, or a part of one, that a person writes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


EditorSchema = Annotated[
    str | None,
    Field(alias="$schema", max_length=2048, description="the schema for editors; certkit does not read it"),
]
"""The key ``$schema`` of a JSON document that people write."""

Model = TypeVar("Model", bound=Authored)
_MOST_HINTED: Final = 100
"""Faults above which no key is compared with those that it may be a misspelling of: that takes time."""


def validate(model: type[Model], value: Any, *, code: str, where: str) -> Model:
    """Return `value` as `model`.

    Raises:
        InputError: with `code` naming every fault by JSON pointer.
    """
    try:
        # In JSON mode strictness still lets a list be a tuple and a string be an enumeration.
        return model.model_validate_json(canonical.line(value))
    except (TypeError, ValueError) as error:
        if not isinstance(error, ValidationError):
            raise InputError(code, f"holds a value that JSON cannot hold: {error}", where=where) from None
        faults = _faults(model, error.errors(), value)
        message = faults[0] if len(faults) == 1 else f"{len(faults)} faults\n  " + "\n  ".join(faults)
        raise InputError(code, message, where=where) from None


def _faults(model: type[Authored], details: list[ErrorDetails], value: Any) -> list[str]:
    """Return a message for each faulty place, in the order of the report."""
    expected: dict[Location, list[str]] = {}
    actual: dict[Location, object] = {}
    forms: set[Location] = set()
    hinted = len(details) <= _MOST_HINTED
    for item in details:
        place = _written(item["loc"], value, absent=item["type"] == "missing")
        meant = _meant(model, place) if hinted and item["type"] == "extra_forbidden" else ""
        expected.setdefault(place, []).append(f"{item['msg']}{meant}")
        actual.setdefault(place, item["input"])
        if place != item["loc"]:
            forms.add(place)
    # An author who wrote a list meant a list: report the faults of its items, not that it is no number.
    inner = {place[:length] for place in forms for length in range(len(place))}
    return [
        _fault(place, words, actual[place]) for place, words in expected.items() if place not in forms & inner
    ]


def _meant(model: type[Authored], place: Location) -> str:
    """Return which key of the model an unknown one is a misspelling of, in words; nothing for none."""
    models = [model]
    for part in place[:-1]:  # numbers and keys of mappings are no fields, and lead to the same models
        fields = [field for each in models for name, field in _fields(each) if name == part]
        models = [inner for field in fields for inner in _models(field.annotation)] or models
    near = get_close_matches(str(place[-1]), [name for each in models for name, _ in _fields(each)], n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _fields(model: type[Authored]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield the fields of a model by their names in a document."""
    for name, field in model.model_fields.items():
        yield field.alias or name, field


def _models(annotation: Any) -> Iterator[type[Authored]]:
    """Yield the models inside an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, Authored):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def _written(location: Location, value: Any, *, absent: bool) -> Location:
    """Return the parts of a location that exist in `value`; of an `absent` key, its last part too."""
    parts: list[int | str] = []
    for part in location:
        if _holds(value, part):
            value = value[part]
            parts.append(part)
    return (*parts, location[-1]) if absent else tuple(parts)


def _holds(value: Any, part: int | str) -> bool:
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list | tuple) and isinstance(part, int) and part < len(value)


def _fault(place: Location, words: list[str], actual: object) -> str:
    pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in place) or "/"
    shown = repr(actual)
    shown = shown if len(shown) <= 60 else shown[:57] + "…"  # noqa: PLR2004 - display width
    forms = list(dict.fromkeys(text.removeprefix("Value error, ") for text in words))
    expected = " or ".join([forms[0], *(text.removeprefix("Input should be ") for text in forms[1:])])
    actually = f", found {shown}" if place or not isinstance(actual, dict) else ""  # not the whole document
    return f"{pointer}: {expected[:1].lower()}{expected[1:]}{actually}"
