"""The two shapes that templates print: a table and a list of labelled entries.

Values are text, or markup that `certkit.report.svg` made; None prints as "not provided". At most `MOST`
rows of a table are printed, and how many were left out is said. The widths of columns are stated, so that
no cell has to be measured to lay out a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST: Final = 40
"""Rows of one table that are printed; the attached files hold all."""


class Column(Struct, frozen=True):
    """A column: its head, its width in percent of the table's, and the style of its cells.

    The widths of a table add up to 100; ``number`` sets cells to the right.
    """

    head: str
    width: int
    style: str = "text"


class Cell(Struct, frozen=True):
    """A cell with a style of its own, such as a shade of the coverage map."""

    text: str
    style: str


Value = str | Cell | None


class Table(Struct, frozen=True, kw_only=True):
    """A table; the first cell of a row is its head. `left_out` rows are not printed."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    left_out: int = 0
    style: str = ""


class Entry(Struct, frozen=True):
    """A labelled value; None where nobody provided it."""

    label: str
    value: str | None


def table(
    caption: str, columns: Iterable[Column], rows: Iterable[tuple[Value, ...]], *, style: str = ""
) -> Table:
    """Return a table of the first `MOST` rows."""
    every = tuple(rows)
    return Table(
        caption=caption,
        columns=tuple(columns),
        rows=every[:MOST],
        left_out=max(0, len(every) - MOST),
        style=style,
    )
