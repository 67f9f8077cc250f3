"""The task table: what a passport tells of every task in integers, so that drift needs no raw evidence.

Per task (or family of tasks, where `cluster_id` is declared) and domain: successes and runs under every
condition, and sum and number of every other metric's values. A task is named by its tag, the first 9 bytes
of HMAC-SHA-256(salt, task) in base64; only who has the salt can tell the name. Without a salt tasks are
numbered, and no other table shares them.

A table of more than `MOST` tasks keeps those with the smallest tags, which two tables of one salt choose
alike (coordinated sample, Cohen & Kaplan 2007); totals are over all tasks. Held-out faults are left out.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Final

import numpy as np

from certkit.assessment.metrics.series import series
from certkit.assessment.task_table import Cell, Column, Task, TaskTable
from certkit.record.record import Split
from certkit.summary.tasks import TAG_BYTES, per_cell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from certkit.summary.summary import Cell as SummaryCell
    from certkit.summary.summary import Summary
    from certkit.summary.tasks import Tasks

    Integers = NDArray[np.int64]

MOST: Final = 1_000
"""Tasks that a table keeps."""

SUCCESS: Final = "success"
METRICS: Final = ("frr", "pei", "irs", "ti", "violations", "adversarial_resistance")
"""The metrics whose sums stand beside successes; they are not told apart by condition."""

SALT_NAME: Final = 8
_THOUSANDTHS: Final = 1_000


def task_table(summary: Summary, *, salt: bytes | None, memory_observable: bool) -> TaskTable:
    """Return the task table of a summary that was read with `salt`.

    `memory_observable` tells whether a recovery without any memory field counts as not intentional, as
    it does in the metric ([26] eq. 6).
    """
    clusters, domains = summary.clusters, summary.domains
    place = np.array(
        [domains.index(cell.domain) if _counts(cell) else -1 for cell in summary.cells], np.int64
    )
    names, first = np.unique(clusters.cluster, return_index=True)
    tags = (
        [index.to_bytes(TAG_BYTES) for index in range(len(names))]
        if salt is None
        else [clusters.tag[row].tobytes() for row in first.tolist()]
    )

    def unit(tasks: Tasks) -> Integers:
        """Return the number of each row's task in its domain."""
        return np.searchsorted(names, tasks.task) * len(domains) + place[tasks.group]

    units = np.unique(unit(_successes(summary)))
    columns, sums = _columns(
        _all(summary, memory_observable=memory_observable),
        lambda tasks: np.searchsorted(units, unit(tasks)),
        len(units),
    )
    rows = sorted(
        (tags[number // len(domains)], number % len(domains), tuple(values))
        for number, values in zip(units.tolist(), sums.tolist(), strict=True)
    )
    every = sorted({tag for tag, _, _ in rows})
    chosen = set(every[:MOST])
    return TaskTable(
        salt=None if salt is None else hashlib.sha256(salt).digest()[:SALT_NAME].hex(),
        tasks=len(every),
        domains=domains,
        cells=tuple(
            Cell(
                domain=cell.domain,
                condition=cell.condition,
                runs=cell.tally.runs,
                successes=cell.tally.success,
            )
            for cell in summary.select()
            if cell.tally.runs
        ),
        columns=columns,
        rows=tuple(
            Task(urlsafe_b64encode(tag).decode(), domain, values)
            for tag, domain, values in rows
            if tag in chosen
        ),
    )


def _counts(cell: SummaryCell) -> bool:
    return cell.split is Split.STANDARD


def _successes(summary: Summary, condition: str | None = None) -> Tasks:
    """Return successes and runs by cell and task, under one condition or under all."""
    cells = [_counts(cell) and condition in {None, cell.condition} for cell in summary.cells]
    sums = summary.clusters.sums
    return per_cell(summary.clusters, cells, sums["success"], sums["runs"])


def _all(summary: Summary, *, memory_observable: bool) -> Iterator[tuple[str, str | None, Tasks]]:
    """Yield metric, condition, and values by cell and task, of all that a table tells."""
    for condition in sorted({cell.condition for cell in summary.select()}):
        yield SUCCESS, condition, _successes(summary, condition)
    for metric in METRICS:
        yield metric, None, series(summary, metric, memory_observable=memory_observable)


def _columns(
    parts: Iterable[tuple[str, str | None, Tasks]], place: Callable[[Tasks], Integers], count: int
) -> tuple[tuple[Column, ...], Integers]:
    """Return the columns that any run carries, and their y and n per unit; `place` gives the unit of rows."""
    columns: list[Column] = []
    sums: list[Integers] = []
    for metric, condition, tasks in parts:
        y, n, unit = np.zeros(count, np.int64), np.zeros(count, np.int64), place(tasks)
        np.add.at(y, unit, tasks.y)
        np.add.at(n, unit, tasks.n)
        scale = min(tasks.scale, _THOUSANDTHS)
        step = tasks.scale // scale
        if step > 1:
            # Thousandths say enough of one task, and a passport has room for many.
            y = (y + step // 2) // step
        if n.any():
            totals = int(y.sum()), int(n.sum())
            columns.append(Column(metric=metric, condition=condition, scale=scale, y=totals[0], n=totals[1]))
            sums += [y, n]
    return tuple(columns), np.array(sums, np.int64).reshape(len(sums), count).T
