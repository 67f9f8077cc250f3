"""Every edit of a document in JSON values."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Path = tuple[str | int, ...]

NOT_COMPARED = {("assessment", "tool", "version")}


def put(value: Any) -> Callable[[Any, Any], None]:
    def change(parent: Any, key: Any) -> None:
        parent[key] = value

    return change


def remove(parent: Any, key: Any) -> None:
    del parent[key]


def edits(value: Any, path: Path) -> Iterator[tuple[Path, Callable[[Any, Any], None]]]:
    """Yield every edit of a value: each leaf changed, each item and member removed."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield (*path, key), remove
            yield from edits(item, (*path, key))
    elif path not in NOT_COMPARED:
        for other in others(value):
            yield path, put(other)


def others(value: Any) -> tuple[Any, ...]:
    """Return other leaves than a value: greater, smaller, hardly greater, and of another type."""
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        return value + 1, value - 1, value + 4e-9, bool(value)
    if isinstance(value, float):
        return value + 0.1, value - 0.1, bool(value)
    return (1,) if value is None else (value + "x",)


def objects(value: Any, path: Path) -> Iterator[Path]:
    """Yield the path of every object in a value."""
    if isinstance(value, dict):
        yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from objects(item, (*path, key))


def changed(value: Any, path: Path, change: Callable[[Any, Any], None]) -> Any:
    """Return a document with one edit; what is not on the way to it is shared with the original."""
    result = copy(value)
    if len(path) == 1:
        change(result, path[0])
    else:
        result[path[0]] = changed(value[path[0]], path[1:], change)
    return result


def at(document: Any, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document
