"""The two shapes that templates print: a table and a list of labelled entries.

Values are text, or markup that `certkit.report.svg` made; None prints as "not provided". At most `MOST`
rows of a table are printed, and how many were left out is said. The widths of columns are stated, so that
no cell has to be measured to lay out a table.

    table("Attached files", {"file": 20, "bytes": 10, "digest": 70}, rows, numbers=("bytes",))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

MOST: Final = 40
"""Rows of one table that are printed; the attached files hold all."""


class Column(Struct, frozen=True):
    """A column: its head, its width in percent of the table's, and its style: ``number`` or ``text``."""

    head: str
    width: int
    style: str


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
    left_out: int
    style: str


Entries = dict[str, str | None]
"""Labelled values; None where nobody provided one."""


def table(
    caption: str,
    widths: Mapping[str, int],
    rows: Iterable[tuple[Value, ...]],
    *,
    numbers: Collection[str] = (),
    style: str = "",
) -> Table:
    """Return a table of the first `MOST` rows.

    `widths` has the head of every column with its width in percent, 100 in all; `numbers` names the columns
    of numbers.
    """
    every = tuple(rows)
    columns = (Column(head, width, "number" if head in numbers else "text") for head, width in widths.items())
    return Table(
        caption=caption,
        columns=tuple(columns),
        rows=every[:MOST],
        left_out=max(0, len(every) - MOST),
        style=style,
    )


def listing(
    caption: str, items: Iterable[object] | None, widths: Mapping[str, int], numbers: Collection[str] = ()
) -> Table:
    """Return a table of things that have an attribute for each column."""
    rows = (tuple(_shown(getattr(item, head)) for head in widths) for item in items or ())
    return table(caption, widths, rows, numbers=numbers)


def _shown(value: str | int | None) -> str | None:
    return f"{value:,}" if isinstance(value, int) else value
