"""The account of an import: what was filled, left unmeasured, found odd or left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.cli.emit import fold
from certkit.imports.drafts import OTHERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from certkit.bundle.manifest import Imported, ImportNote

_HEADING: Final = 10
_BRIEF: Final = ("inverted", "odd", "refused")
"""Kinds of notes that a first screen shows, the gravest first."""
_MOST: Final = 3
"""Notes that a first screen shows."""


def all_notes(imported: Imported, *, verbose: bool) -> Iterator[str]:
    """Yield the lines of every note; only with `verbose` the names of fields that nothing fills."""
    for item in imported.notes:
        detail = item.detail
        if item.what.endswith(OTHERS) and not verbose:
            detail = "the source has nothing that fills them (-v lists them)"
        yield from _lines(item, _text(item, detail), _widest(imported.notes))


def brief_notes(imported: Imported, room: int | None) -> list[str]:
    """Return the first of the notes that decide what the records say, and how many more there are.

    Args:
        imported: the account of the import.
        room: lines; where details do not fit, they are left out, which the line says. None for all.
    """
    notes = sorted(
        (item for item in imported.notes if item.kind in _BRIEF), key=lambda item: _BRIEF.index(item.kind)
    )
    more = [f"  and {len(notes) - _MOST} more; 'certkit import' lists them"] * (len(notes) > _MOST)
    notes, names = notes[:_MOST], _naming(imported)
    column = _widest(notes)
    folded = [_lines(item, _text(item, item.detail), column) for item in notes]
    if room is not None and len(names) + sum(map(len, folded)) + len(more) > room:
        folded = [
            _lines(item, f"{item.what} (-v says more)", column) if len(lines) > 1 else lines
            for lines, item in zip(folded, notes, strict=True)
        ]
    return [*names, *(line for lines in folded for line in lines), *more]


def _naming(imported: Imported) -> list[str]:
    """Return which column named the tasks, where its name does not say so."""
    details = [
        item.detail or "" for item in imported.notes if (item.kind, item.what) == ("filled", "task_id")
    ]
    columns = [text.removeprefix("from ") for text in details if text.startswith("from ")]
    return [
        line
        for name in columns
        if name != "'task'"
        for line in fold(f"tasks are named by the column {name}", first="  ", rest="    ")
    ]


def _widest(notes: Sequence[ImportNote]) -> int:
    return max((len(f"{item.count:,}") for item in notes), default=1)


def _text(item: ImportNote, detail: str | None) -> str:
    return f"{item.what}: {detail}" if detail else item.what


def _lines(item: ImportNote, text: str, column: int) -> list[str]:
    """Return a note as lines, its count in a column of its own."""
    lead = f"{item.heading:<{_HEADING}} {item.count:>{column},}  "
    return fold(f"{lead}{text}", first="  ", rest=" " * (_HEADING + 5 + column))
