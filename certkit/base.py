"""The base of the documents that people write: strict, frozen, with errors that name the place.

`Authored` is a pydantic model that refuses unknown keys and cannot be changed after it was read.
`validate` turns pydantic's report into one `InputError` that lists every fault with its pointer.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from certkit import canonical
from certkit.errors import InputError


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
        faults = [_fault(item["loc"], item["msg"], item["input"]) for item in error.errors()]
        message = faults[0] if len(faults) == 1 else f"{len(faults)} faults\n  " + "\n  ".join(faults)
        raise InputError(code, message, where=where) from None


def _fault(location: tuple[int | str, ...], message: str, found: object) -> str:
    pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in location) or "/"
    shown = repr(found)
    shown = shown if len(shown) <= 60 else shown[:57] + "…"  # noqa: PLR2004 - display width
    expected = message[:1].lower() + message[1:]
    return f"{pointer}: {expected}, found {shown}"
