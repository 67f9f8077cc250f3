"""Sides of a drift comparison, from tallies of tasks in cells."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from certkit.assessment.drift.contrast import Sides, weighed
from certkit.assessment.drift.snapshot import Part, Snapshot, Watched
from certkit.assessment.task_table import Cell, Column, Task, TaskTable
from certkit.assessment.tasks import SUCCESS

if TYPE_CHECKING:
    from collections.abc import Iterable

Cells = dict[tuple[str, str], dict[str, tuple[int, int]]]
Sums = dict[str, dict[str, tuple[int, int]]]
"""Metric → task → (sum in thousandths, number of values), in domain d."""

CENTS = Fraction(5, 100)
HIGH, LOW = Fraction(8, 10), Fraction(6, 10)


def named(task: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(task.encode()).digest()[:9]).decode()


def table(cells: Cells, more: Sums, salt: str | None) -> TaskTable:
    """The table of tasks given as (successes, runs) by domain, condition and name."""
    domains = sorted({domain for domain, _ in cells})
    keys: list[tuple[str, str | None]] = [
        (SUCCESS, condition) for condition in sorted({condition for _, condition in cells})
    ]
    keys += [(metric, None) for metric in more]

    def pair(task: str, domain: str, key: tuple[str, str | None]) -> tuple[int, int]:
        if key[1] is None:
            return more[key[0]].get(task, (0, 0)) if domain == "d" else (0, 0)
        return cells.get((domain, key[1]), {}).get(task, (0, 0))

    names = {(task, domain) for (domain, _), tasks in cells.items() for task in tasks}
    names |= {(task, "d") for tasks in more.values() for task in tasks}
    rows = [
        Task(named(task), domains.index(domain), tuple(x for key in keys for x in pair(task, domain, key)))
        for task, domain in names
    ]
    totals = {
        key: [sum(sums) for sums in zip(*(pair(*name, key) for name in names), strict=True)] for key in keys
    }
    return TaskTable(
        salt=salt,
        tasks=len({task for task, _ in names}),
        domains=tuple(domains),
        cells=tuple(
            Cell(
                domain=domain,
                condition=condition,
                runs=sum(n for _, n in tasks.values()),
                successes=sum(y for y, _ in tasks.values()),
            )
            for (domain, condition), tasks in cells.items()
        ),
        columns=tuple(
            Column(
                metric=key[0],
                condition=key[1],
                scale=1 if key[1] else 1000,
                y=totals[key][0],
                n=totals[key][1],
            )
            for key in keys
        ),
        rows=tuple(sorted(rows, key=lambda row: (row.tag, row.domain))),
    )


def side(
    cells: Cells, more: Sums | None = None, *, nominal: int = 100, salt: str | None = "s", **changes: Any
) -> Snapshot:
    """A snapshot whose fault runs are `cells`; `more` are the sums of other metrics."""
    every = dict(cells)
    for domain in {domain for domain, _ in cells} if nominal else ():
        every[domain, "nominal"] = {f"nominal {domain} {i}": (1, 1) for i in range(nominal)}
    base = Snapshot(
        lineage="-/a",
        version="1",
        identity="one",
        components=(Part(role="model", name="m", version="1", digest="d"),),
        evidence=str(changes.pop("evidence", id(every))),
        origin="measured",
        tier=1,
        profile_id="p",
        profile_digest="sha256:p",
        criteria=(
            Watched(id="r_op", metric="r_op", margin=CENTS, judged=True),
            *(
                Watched(id=name, metric=name, margin=Fraction(1, 4) if name == "ti" else CENTS, judged=True)
                for name in more or {}
            ),
        ),
        methodology="trajectory",
        success_rule="rule",
        judge="j (f)",
        cascade_definition="simultaneous",
        memory_observable=True,
        table=table(every, more or {}, salt),
    )
    return structs.replace(base, **changes)


def even(rate: Fraction, *, tasks: int = 60, size: int = 10, names: str = "") -> dict[str, tuple[int, int]]:
    """Tasks around a mean rate: half of them one success above it, half one below."""
    middle = int(rate * size)
    return {f"{names}{i}": (middle + (1 if i % 2 else -1), size) for i in range(tasks)}


def one(rate: Fraction, more: Sums | None = None, **changes: Any) -> Snapshot:
    return side({("d", "x_f"): even(rate)}, more, **changes)


def values(value: int, tasks: int = 60) -> dict[str, tuple[int, int]]:
    """One value per task, in thousandths, half of them a little more and half a little less."""
    return {str(i): (value + (20 if i % 2 else -20), 1) for i in range(tasks)}


def laid(*columns: Iterable[float | None]) -> Sides:
    """One condition, one domain, one run a task; None where a side lacks the task."""
    columns = tuple(list(column) for column in columns)
    y = np.array([[0.0 if x is None else x for x in column] for column in columns])[:, :, None]
    n = np.array([[x is not None for x in column] for column in columns], np.int64)[:, :, None]
    rows = y.shape[1]
    return weighed(y, n, unit=np.arange(rows), domain=np.zeros(rows, np.int64))


def apart(*columns: Iterable[float]) -> Sides:
    """Sides that share no task."""
    return laid(
        *(
            [x if other == place else None for other, column in enumerate(columns) for x in column]
            for place in range(len(columns))
        )
    )
