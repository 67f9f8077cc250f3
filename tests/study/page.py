"""From cells to the page: its tables, its figures and the file of all results.

Everything on the page that was found is a function of the cells, so that page, figures and file can be
checked against each other without a draw.
"""

from __future__ import annotations

import csv
import re
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, get_type_hints

from tests.study import consistency, coverage, drifting, identical, others, proportion, stopping
from tests.study.draws import Cell, Limit, markdown
from tests.study.figures import FIGURES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FOLDER: Final = Path(__file__).parents[2] / "docs" / "explanation"
PAGE: Final = FOLDER / "simulation-study.md"
RESULTS: Final = FOLDER / "simulation-study.csv"
REGION: Final = re.compile(r"(<!-- study: ([a-z0-9-]+) -->\n).*?(<!-- end of study -->\n)", re.DOTALL)
SEED: Final = 1


class Section(NamedTuple):
    """A part of the study: what it draws, how often, and the tables and promises that rest on it."""

    run: Callable[[int, int, Callable[[str], None]], list[Cell]]
    draws: int
    tables: dict[str, Callable[[Sequence[Cell]], str]]
    limits: Callable[[Sequence[Cell]], list[Limit]] = lambda _: []


def _nothing(_seed: int, _draws: int, _tick: Callable[[str], None]) -> list[Cell]:
    return []


SECTIONS: Final[dict[str, Section]] = {
    "false-pass": Section(
        proportion.false_pass,
        4000,
        {"false-pass": proportion.false_pass_table},
        proportion.false_pass_limits,
    ),
    "power": Section(
        proportion.power,
        4000,
        {f"power-{tier}": (partial(proportion.power_table, tier=tier)) for tier in (1, 2, 3)},
    ),
    "attempts": Section(
        proportion.attempts,
        4000,
        {"attempts": proportion.attempts_table, "late": proportion.late_table},
        proportion.attempts_limits,
    ),
    "stopping": Section(stopping.stopping, 2000, {"stopping": stopping.stopping_table}),
    "identical": Section(
        _nothing,
        0,
        {"identical": lambda _: identical.identical_table()},
        lambda _: identical.identical_limits(),
    ),
    "coverage": Section(
        _nothing, 0, {"coverage": lambda _: coverage.coverage_table()}, lambda _: coverage.coverage_limits()
    ),
    "rows": Section(others.others, 4000, {"rows": others.others_table}),
    "consistency": Section(consistency.consistency, 1000, {"consistency": consistency.consistency_table}),
    "drift": Section(drifting.drifting, 2000, {"drift": drifting.drifting_table}, drifting.drifting_limits),
}
QUICK: Final = 10
"""By how much fewer the draws of a quick run are."""


def limits_table(cells: dict[str, list[Cell]]) -> str:
    """Return every promise with what was found."""
    found = [
        limit for name, section in SECTIONS.items() if name in cells for limit in section.limits(cells[name])
    ]
    rows = [[limit.promise, limit.found, "yes" if limit.holds else "**no**"] for limit in found]
    return markdown(("promise", "found", "holds"), rows)


def blocks(cells: dict[str, list[Cell]]) -> dict[str, str]:
    """Return every table, by its name on the page."""
    tables = {
        block: make(cells[name])
        for name, section in SECTIONS.items()
        if name in cells
        for block, make in section.tables.items()
    }
    return {"limits": limits_table(cells), **tables}


def outputs(cells: dict[str, list[Cell]]) -> dict[Path, str]:
    """Return every file that a whole study writes, with its content."""
    tables = blocks(cells)
    page = REGION.sub(lambda match: f"{match[1]}\n{tables[match[2]]}\n{match[3]}", PAGE.read_text("utf-8"))
    together = [cell for found in cells.values() for cell in found]
    figures = {FOLDER / f"simulation-study-{name}.svg": make(together) for name, make in FIGURES.items()}
    return {PAGE: page, RESULTS: _written(cells), **figures}


def _written(cells: dict[str, list[Cell]]) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("part", *Cell._fields, "share", "standard_error"))
    for name, found in cells.items():
        writer.writerows((name, *cell, f"{cell.share:.5f}", f"{cell.error:.5f}") for cell in found)
    return text.getvalue()


def read() -> dict[str, list[Cell]]:
    """Return the cells that stand in the file of results."""
    cells: dict[str, list[Cell]] = {name: [] for name in SECTIONS}
    kinds = get_type_hints(Cell)
    with RESULTS.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            cells[row["part"]].append(Cell(**{name: kinds[name](row[name]) for name in Cell._fields}))
    return cells
