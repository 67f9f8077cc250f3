"""The base of the documents that people write: strict, frozen, with errors that name the place.

`Authored` is a frozen pydantic model that refuses unknown keys. `validate` turns pydantic's report into an
`InputError` that lists every fault with its JSON pointer. Where a value may have several forms, such as a
number or a list of numbers, pydantic reports a fault for each form; here they become a single fault that
names all permitted forms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from certkit.ground import canonical
from certkit.ground.errors import InputError

if TYPE_CHECKING:
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


def validate(model: type[Model], value: Any, *, code: str, where: str) -> Model:
    """Return `value` as `model`; raise `InputError` with `code` naming every fault by JSON pointer."""
    try:
        # In JSON mode strictness still lets a list be a tuple and a string be an enumeration.
        return model.model_validate_json(canonical.line(value))
    except (TypeError, ValueError) as error:
        if not isinstance(error, ValidationError):
            raise InputError(code, f"holds a value that JSON cannot hold: {error}", where=where) from None
        faults = _faults(error.errors(), value)
        message = faults[0] if len(faults) == 1 else f"{len(faults)} faults\n  " + "\n  ".join(faults)
        raise InputError(code, message, where=where) from None


def _faults(details: list[ErrorDetails], value: Any) -> list[str]:
    """Return a message for each faulty place, in the order of the report."""
    expected: dict[Location, list[str]] = {}
    actual: dict[Location, object] = {}
    forms: set[Location] = set()
    for item in details:
        place = _written(item["loc"], value, absent=item["type"] == "missing")
        expected.setdefault(place, []).append(item["msg"])
        actual.setdefault(place, item["input"])
        if place != item["loc"]:
            forms.add(place)
    # An author who wrote a list meant a list: report the faults of its items, not that it is no number.
    inner = {place[:length] for place in forms for length in range(len(place))}
    return [
        _fault(place, words, actual[place]) for place, words in expected.items() if place not in forms & inner
    ]


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
