"""Whether a passport's task table is one that some runs give, and adds up to what the passport says of them.

A signature says who wrote the integers, not that tasks can have such integers. A table that is impossible for
any evidence is refused, so that no impossible table decides about drift.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.passport.agreement import Compared
    from certkit.passport.statement import Column, TaskTable

SUCCESS: Final = "success"
TASKS: Final = 1_000
"""Tasks that a task table keeps."""

RANGES: Final[dict[str, tuple[int, int | None]]] = {
    **dict.fromkeys((SUCCESS, "frr", "pei", "irs", "adversarial_resistance"), (0, 1)),
    "ti": (1, 5),
    "violations": (0, None),
}
"""The least and the most that one run can add to a column."""


def sums(table: TaskTable) -> Iterator[Compared]:
    """Yield the totals that a table states, and those that its cells and tasks give."""
    successes, runs = Counter[str](), Counter[str]()
    for cell in table.cells:
        successes[cell.condition] += cell.successes
        runs[cell.condition] += cell.runs
    stated = {str(column.condition): (column.y, column.n) for column in table.columns if _counts(column)}
    computed = {name: (successes[name], count) for name, count in runs.items() if count}
    yield "successes and runs of its task table", stated, computed
    kept = len({row.tag for row in table.rows})
    yield "tasks in its task table", kept, min(table.tasks, TASKS)
    if kept < table.tasks or not _fits(table):
        return
    for place, column in enumerate(table.columns):
        total = [sum(row.sums[2 * place + part] for row in table.rows) for part in (0, 1)]
        yield f"integers of {column.metric} in its task table", [column.y, column.n], total


def impossible(table: TaskTable) -> Iterator[str]:
    """Yield every statement of the table that is impossible for any runs."""
    keys = [(column.metric, column.condition) for column in table.columns]
    if len(set(keys)) != len(keys) or len(set(table.domains)) != len(table.domains):
        yield "a column or a domain of its task table occurs twice"
    if any((column.condition is None) == _counts(column) for column in table.columns):
        yield "its task table tells conditions apart for other than successes"
    order = [(urlsafe_b64decode(row.tag), row.domain) for row in table.rows]
    if order != sorted(set(order)):
        yield "the rows of its task table are not sorted, or one occurs twice"
    if any(cell.successes > cell.runs for cell in table.cells):
        yield "a cell of its task table has more successes than runs"
    if not _fits(table):
        yield "a row of its task table does not fit the columns and domains"
        return
    for place, column in enumerate(table.columns):
        pairs = [(row.sums[2 * place], row.sums[2 * place + 1]) for row in table.rows]
        if not all(_of_runs(column, y, n) for y, n in (*pairs, (column.y, column.n))):
            yield f"no runs give the integers of {column.metric} in its task table"


def _counts(column: Column) -> bool:
    return column.metric == SUCCESS


def _fits(table: TaskTable) -> bool:
    width = 2 * len(table.columns)
    return all(len(row.sums) == width and row.domain < len(table.domains) for row in table.rows)


def _of_runs(column: Column, y: int, n: int) -> bool:
    """Tell whether y can be the sum of n values of a column's metric, scaled and rounded."""
    low, high = RANGES.get(column.metric, (0, None))  # a later writer may carry more
    least, most = low * column.scale * n, None if high is None else high * column.scale * n
    return y >= least and (most is None or y <= most) and (n > 0 or y == 0)
