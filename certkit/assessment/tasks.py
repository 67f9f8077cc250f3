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
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from certkit.assessment.metrics.series import series
from certkit.assessment.task_table import Cell, Column, Task, TaskTable
from certkit.evidence.records.record import Split
from certkit.evidence.summary.tasks import TAG_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from certkit.evidence.summary.summary import Cell as SummaryCell
    from certkit.evidence.summary.summary import Summary

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
    cells, clusters = summary.cells, summary.clusters
    domains = summary.domains
    place = np.array([domains.index(cell.domain) if _counts(cell) else -1 for cell in cells], np.int64)
    domain = place[clusters.cell] if cells else np.empty(0, np.int64)
    names, number = np.unique(clusters.cluster, return_inverse=True)
    units, unit = np.unique(number * (len(domains) + 1) + domain + 1, return_inverse=True)
    owner, own_domain = units // (len(domains) + 1), units % (len(domains) + 1) - 1
    kept = own_domain >= 0
    columns, sums = _columns(_all_sums(summary, memory_observable=memory_observable), unit, len(units))
    first = np.unique(clusters.cluster, return_index=True)[1]
    tags = (
        [index.to_bytes(TAG_BYTES) for index in range(len(names))]
        if salt is None
        else [clusters.tag[row].tobytes() for row in first.tolist()]
    )
    rows = sorted(
        (tags[owner[row]], int(own_domain[row]), tuple(sums[row].tolist()))
        for row in np.flatnonzero(kept).tolist()
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


class _Sums(NamedTuple):
    """y and n of some rows of the cluster table, and what they are of."""

    metric: str
    condition: str | None
    scale: int
    rows: Integers
    y: Integers
    n: Integers


def _all_sums(summary: Summary, *, memory_observable: bool) -> Iterator[_Sums]:
    condition_of = np.array([cell.condition if _counts(cell) else "" for cell in summary.cells])
    of_row = condition_of[summary.clusters.cell] if summary.cells else np.empty(0, np.str_)
    success, runs = summary.clusters.sums["success"], summary.clusters.sums["runs"]
    for condition in sorted({cell.condition for cell in summary.select()}):
        yield _Sums(SUCCESS, condition, 1, np.flatnonzero(of_row == condition), success, runs)
    for metric in METRICS:
        rows = series(summary, metric, memory_observable=memory_observable)
        yield _Sums(metric, None, rows.scale, rows.rows(summary), rows.y, rows.n)


def _columns(parts: Iterable[_Sums], unit: Integers, count: int) -> tuple[tuple[Column, ...], Integers]:
    """Return the columns that any run carries, and their y and n per unit, one row each."""
    columns: list[Column] = []
    sums: list[Integers] = []
    for part in parts:
        y, n = np.zeros(count, np.int64), np.zeros(count, np.int64)
        np.add.at(y, unit[part.rows], part.y[part.rows])
        np.add.at(n, unit[part.rows], part.n[part.rows])
        scale = min(part.scale, _THOUSANDTHS)
        step = part.scale // scale
        if step > 1:
            # Thousandths say enough of one task, and a passport has room for many.
            y = (y + step // 2) // step
        if n.any():
            totals = int(y.sum()), int(n.sum())
            columns.append(
                Column(metric=part.metric, condition=part.condition, scale=scale, y=totals[0], n=totals[1])
            )
            sums += [y, n]
    return tuple(columns), np.array(sums, np.int64).reshape(len(sums), count).T
