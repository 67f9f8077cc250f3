"""How results are altered by those who know nothing but their form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def other_number(more: int) -> Callable[[Any], Any]:
    """Return a function that gives a number, or a text with a digit, another number, and None else."""

    def change(item: Any) -> Any:
        if isinstance(item, int | float) and not isinstance(item, bool):
            return other if (other := item + more) != item else None  # beyond 2^53 a float stays the same
        if isinstance(item, str):
            digits = next((place for place, mark in enumerate(item) if mark in "0123456789"), None)
            if digits is not None:
                return f"{item[:digits]}{(int(item[digits]) + more) % 10}{item[digits + 1 :]}"
        return None

    return change


def changed_leaf(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a JSON value with the first leaf changed that `change` has a new value for, None where none."""
    if isinstance(value, dict):
        items: Iterator[tuple[Any, Any]] = iter(value.items())
    elif isinstance(value, list):
        items = iter(enumerate(value))
    else:
        return change(value)
    for key, item in items:
        if (new := changed_leaf(item, change)) is not None:
            copy: Any = value.copy()
            copy[key] = new
            return copy
    return None
