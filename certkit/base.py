"""The base of the documents that people write: strict, frozen, with errors that name the place.

`Authored` is a pydantic model that refuses unknown keys and cannot be changed after it was read.
`validate` turns pydantic's report into one `InputError` that lists every fault with its pointer. A pointer
holds what the author wrote and nothing else: pydantic also names the forms that a value may have, such as a
number or a list of numbers, and complains of each of them; here they are one fault, with all that would do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from certkit import canonical
from certkit.errors import InputError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    Location = tuple[int | str, ...]


class Authored(BaseModel):
    """A document, or a part of one, that a person writes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Model = TypeVar("Model", bound=Authored)


def validate(model: type[Model], value: Any, *, code: str, where: str) -> Model:
    """Return `value` as `model`; raise `InputError` with `code` naming every fault by JSON pointer."""
    try:
        # In JSON mode strictness still lets a list be a tuple and a string be an enumeration.
        return model.model_validate_json(canonical.line(value))
    except (TypeError, ValueError) as error:
        if not isinstance(error, ValidationError):
            raise InputError(code, f"holds a value that JSON has not: {error}", where=where) from None
        faults = _faults(error.errors(), value)
        message = faults[0] if len(faults) == 1 else f"{len(faults)} faults\n  " + "\n  ".join(faults)
        raise InputError(code, message, where=where) from None


def _faults(details: list[ErrorDetails], value: Any) -> list[str]:
    """Return what is wrong in each place, in the order in which it is met."""
    expected: dict[Location, list[str]] = {}
    found: dict[Location, object] = {}
    forms: set[Location] = set()
    for item in details:
        place = _written(item["loc"], value, absent=item["type"] == "missing")
        expected.setdefault(place, []).append(item["msg"])
        found.setdefault(place, item["input"])
        if place != item["loc"]:
            forms.add(place)
    # Who wrote a list meant the form that is one: what its items lack says more than that it is no number.
    inner = {place[:length] for place in forms for length in range(len(place))}
    return [
        _fault(place, words, found[place]) for place, words in expected.items() if place not in forms & inner
    ]


def _written(location: Location, value: Any, *, absent: bool) -> Location:
    """Return the parts of a location that stand in `value`, or would if what is `absent` stood there."""
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


def _fault(place: Location, words: list[str], found: object) -> str:
    pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in place) or "/"
    shown = repr(found)
    shown = shown if len(shown) <= 60 else shown[:57] + "…"  # noqa: PLR2004 - display width
    said = list(dict.fromkeys(text.removeprefix("Value error, ") for text in words))
    expected = " or ".join([said[0], *(text.removeprefix("Input should be ") for text in said[1:])])
    return f"{pointer}: {expected[:1].lower()}{expected[1:]}, found {shown}"
