"""The account of an import: what was filled, left unmeasured, found odd or left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.cli.emit import cut, fold, width
from certkit.ground.text import visible
from certkit.imports.drafts import OTHERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.bundle.manifest import Imported, ImportNote

_HEADING: Final = 10
_BRIEF: Final = ("inverted", "odd", "refused")
"""Kinds of notes that a first screen shows, the gravest first."""
_MOST: Final = 3
"""Notes that a first screen shows."""


def all_notes(imported: Imported, *, verbose: bool) -> Iterator[str]:
    """Yield the lines of every note; only with `verbose` the names of fields that nothing fills."""
    column = max((len(f"{item.count:,}") for item in imported.notes), default=1)
    for item in imported.notes:
        detail = f": {item.detail}" if item.detail else ""
        if item.what.endswith(OTHERS) and not verbose:
            detail = ": the source has nothing that fills them (-v lists them)"
        text = f"{_lead(item, column)}{item.what}{detail}"
        yield from fold(text, first="  ", rest=" " * (_HEADING + 5 + column))


def brief_notes(imported: Imported) -> list[str]:
    """Return a line for each of the notes that decide what the records say, and how many more there are."""
    notes = sorted(
        (item for item in imported.notes if item.kind in _BRIEF), key=lambda item: _BRIEF.index(item.kind)
    )
    column = max((len(f"{item.count:,}") for item in notes[:_MOST]), default=1)
    lines = _naming(imported)
    for item in notes[:_MOST]:
        detail = f": {item.detail}" if item.detail else ""
        lines.append(cut(f"  {_lead(item, column)}{item.what}{detail}", width()))
    return lines + [f"  and {len(notes) - _MOST} more; 'certkit import' lists them"] * (len(notes) > _MOST)


def _naming(imported: Imported) -> list[str]:
    """Return which column named the tasks, where its name does not say so."""
    details = [
        item.detail or "" for item in imported.notes if (item.kind, item.what) == ("filled", "task_id")
    ]
    columns = [text.removeprefix("from ") for text in details if text.startswith("from ")]
    return [
        cut(f"  tasks are named by the column {visible(name)}", width())
        for name in columns
        if name != "'task'"
    ]


def _lead(item: ImportNote, column: int) -> str:
    return f"{item.heading:<{_HEADING}} {item.count:>{column},}  "
