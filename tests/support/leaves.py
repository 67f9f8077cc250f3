"""Every edit of a document in JSON values."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from msgspec import inspect

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


def edits(
    value: Any, path: Path, kind: inspect.Type | None = None
) -> Iterator[tuple[Path, Callable[[Any, Any], None]]]:
    """Yield every edit of a value: each leaf changed, each item and member removed.

    Args:
        value: the JSON values.
        path: where they are.
        kind: their type, where it is known: a word of a list becomes another word of that list.
    """
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield (*path, key), remove
            yield from edits(item, (*path, key), inner(kind, key))
    elif path not in NOT_COMPARED:
        for other in others(value, words(kind)):
            yield path, put(other)


def inner(kind: inspect.Type | None, key: str | int) -> inspect.Type | None:
    """Return the type of what lies under a key, None where it is not known."""
    if isinstance(kind, inspect.Metadata):
        return inner(kind.type, key)
    if isinstance(kind, inspect.UnionType):
        return next(filter(None, (inner(item, key) for item in kind.types)), None)
    if isinstance(kind, inspect.StructType):
        fields = (
            enumerate(kind.fields) if kind.array_like else ((each.encode_name, each) for each in kind.fields)
        )
        return next((each.type for name, each in fields if name == key), None)
    if isinstance(kind, inspect.DictType):
        return kind.value_type
    return kind.item_type if isinstance(kind, inspect.VarTupleType) else None


def words(kind: inspect.Type | None) -> tuple[str, ...]:
    """Return the words of which a text of some type is one; nothing where it is any text."""
    if isinstance(kind, inspect.Metadata):
        return words(kind.type)
    if isinstance(kind, inspect.UnionType):
        return tuple(word for item in kind.types for word in words(item))
    if isinstance(kind, inspect.EnumType):
        return tuple(item.value for item in kind.cls)
    return tuple(map(str, kind.values)) if isinstance(kind, inspect.LiteralType) else ()


def others(value: Any, listed: tuple[str, ...] = ()) -> tuple[Any, ...]:
    """Return other leaves than a value: greater, smaller, hardly greater, and of another type.

    A word is followed by the next one of those that are `listed`.
    """
    if isinstance(value, str) and len(listed) > 1:
        return (listed[(listed.index(value) + 1) % len(listed)],)
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
