"""One metric of two bundles, laid side by side: what they share, what is paired, which runs are correlated.

Only cells (domain × condition) that both bundles have are compared, so that a different mix does not read
as a difference. Where the tasks that both have carry at least half of each bundle's runs in those cells,
the comparison is paired: it keeps those tasks alone, and a *unit* is all runs that a task or a cluster of
either bundle connects. Otherwise a unit is a cluster of one bundle. A *stratum* is a domain, or domains
that a unit spans. Tasks and clusters are known by the hashes of their names, which are the same function
in every bundle; a task of another domain is another task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certkit.assessment.metrics.series import Series
    from certkit.evidence.summary.summary import Summary

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Hashes = NDArray[np.uint64]

MOST_UNITS: Final = 512
"""Units above which they are put together into blocks, in the order of their hashes, so that time and memory
stay bounded. Blocks are as independent as their units, so whatever respects units may take blocks."""

_SPREAD: Final = 0x9E3779B97F4A7C15


class Arm(Struct, frozen=True, kw_only=True, eq=False):
    """The runs of one bundle that carry a metric: one row per cell × cluster × task."""

    names: tuple[tuple[str, str], ...]
    cell: Integers
    cluster: Hashes
    task: Hashes
    y: Integers
    n: Integers

    def kept(self, rows: NDArray[np.bool_]) -> Arm:
        """Return the arm with some of its rows."""
        columns = {name: getattr(self, name)[rows] for name in self.__struct_fields__[1:]}
        return Arm(names=self.names, **columns)


class Sample(Struct, frozen=True, kw_only=True, eq=False):
    """Two arms side by side.

    One entry per unit × cell: `unit` and `cell` are indices, and sums and runs of A and B are whole numbers;
    an entry that is not paired has runs of one side only. `stratum` and `first` (the unit is A's; not read
    where it is paired) are per unit. `tasks` counts the shared tasks of each domain, `size` the units of A
    and B before they were put into blocks.
    """

    scale: int
    paired: bool
    tasks: dict[str, int]
    size: tuple[int, int]
    names: tuple[tuple[str, str], ...]
    unit: Integers
    cell: Integers
    a: Floats
    a_n: Floats
    b: Floats
    b_n: Floats
    stratum: Integers
    first: NDArray[np.bool_]

    @property
    def blocked(self) -> bool:
        """Whether units were put together into blocks."""
        return len(self.stratum) < (self.size[0] if self.paired else sum(self.size))

    def of_domain(self, domain: str) -> Sample:
        """Return what the sample holds of one domain."""
        chosen = np.array([name[0] == domain for name in self.names], np.bool_)[self.cell]
        units, unit = np.unique(self.unit[chosen], return_inverse=True)
        cells, cell = np.unique(self.cell[chosen], return_inverse=True)
        first = self.first[units]
        size = (len(units), len(units)) if self.paired else (int(first.sum()), int((~first).sum()))
        return Sample(
            scale=self.scale,
            paired=self.paired,
            tasks={name: count for name, count in self.tasks.items() if name == domain},
            size=size,
            names=tuple(self.names[place] for place in cells),
            unit=unit,
            cell=cell,
            a=self.a[chosen],
            a_n=self.a_n[chosen],
            b=self.b[chosen],
            b_n=self.b_n[chosen],
            stratum=np.zeros(len(units), np.int64),
            first=first,
        )


def arm(summary: Summary, of: Series) -> Arm:
    """Return the rows of a bundle that carry a metric."""
    rows = of.rows(summary)
    clusters = summary.clusters
    return Arm(
        names=tuple((cell.domain, cell.condition) for cell in summary.cells),
        cell=clusters.cell[rows].astype(np.int64),
        cluster=clusters.cluster[rows],
        task=clusters.task[rows],
        y=of.y[rows],
        n=of.n[rows],
    )


def match(a: Arm, b: Arm, *, scale: int) -> Sample | None:
    """Return two arms side by side, or None where they share no cell."""
    names, a, b = _shared_cells(a, b)
    if not names:
        return None
    one, other = _by_task(a, b)
    tasks: dict[str, int] = {}
    if paired := 2 * one.n.sum() >= a.n.sum() and 2 * other.n.sum() >= b.n.sum():
        names, a, b = _shared_cells(one, other)
        tasks = _tasks_by_domain(a)
    unit_a, unit_b = _paired_units(a, b) if paired else _own_units(a, b)
    unit, cell = np.concatenate((unit_a, unit_b)), np.concatenate((a.cell, b.cell))
    domains = np.unique([domain for domain, _ in names], return_inverse=True)[1]
    stratum = np.zeros(unit.max() + 1, np.int64)
    stratum[unit] = components(unit, domains[cell])
    first = np.zeros(len(stratum), np.bool_)
    first[unit_a] = True
    size = (len(stratum), len(stratum)) if paired else (int(first.sum()), int((~first).sum()))
    block, stratum, first = _blocks(stratum, first if not paired else np.zeros_like(first))
    columns = [
        np.concatenate(parts) for parts in ((a.y, 0 * b.y), (a.n, 0 * b.n), (0 * a.y, b.y), (0 * a.n, b.n))
    ]
    entries, place = np.unique(block[unit] * len(names) + cell, return_inverse=True)
    sums = [added(place, column) for column in columns]
    return Sample(
        scale=scale,
        paired=bool(paired),
        tasks=tasks,
        size=size,
        names=names,
        unit=entries // len(names),
        cell=entries % len(names),
        a=sums[0],
        a_n=sums[1],
        b=sums[2],
        b_n=sums[3],
        stratum=stratum,
        first=first,
    )


def _shared_cells(a: Arm, b: Arm) -> tuple[tuple[tuple[str, str], ...], Arm, Arm]:
    """Return the cells that both have runs in, sorted, and the arms with these alone, numbered alike.

    The tasks of the result know their domain.
    """
    present = [{side.names[place] for place in np.unique(side.cell)} for side in (a, b)]
    names = tuple(sorted(present[0] & present[1]))
    place = {name: number for number, name in enumerate(names)}
    return names, _numbered(a, names, place), _numbered(b, names, place)


def _numbered(side: Arm, names: tuple[tuple[str, str], ...], place: dict[tuple[str, str], int]) -> Arm:
    number = np.array([place.get(name, -1) for name in side.names], np.int64)
    cell = number[side.cell]
    kept = side.kept(cell >= 0)
    return Arm(names=names, cell=cell[cell >= 0], cluster=kept.cluster, task=kept.task, y=kept.y, n=kept.n)


def _by_task(a: Arm, b: Arm) -> tuple[Arm, Arm]:
    """Return the arms with the tasks that both have, in cells that both still have runs in."""
    while True:
        keys = _task_keys(a), _task_keys(b)
        shared = np.intersect1d(*keys)
        rows = np.isin(keys[0], shared), np.isin(keys[1], shared)
        if rows[0].all() and rows[1].all():
            return a, b
        _, a, b = _shared_cells(a.kept(rows[0]), b.kept(rows[1]))


def _task_keys(side: Arm) -> Hashes:
    """Return the tasks' hashes, changed by their domain: a name used in two domains is two tasks."""
    domains = sorted({domain for domain, _ in side.names})
    place = {domain: number for number, domain in enumerate(domains)}
    number = np.array([place[domain] for domain, _ in side.names], np.uint64)
    keys: Hashes = side.task ^ ((number[side.cell] + np.uint64(1)) * np.uint64(_SPREAD))
    return keys


def _tasks_by_domain(side: Arm) -> dict[str, int]:
    _, rows = np.unique(_task_keys(side), return_index=True)
    domains, counts = np.unique([side.names[cell][0] for cell in side.cell[rows]], return_counts=True)
    return dict(zip(domains.tolist(), counts.tolist(), strict=True))


def _paired_units(a: Arm, b: Arm) -> tuple[Integers, Integers]:
    label = components(np.concatenate((_task_keys(a), _task_keys(b))), np.concatenate((a.cluster, b.cluster)))
    return label[: len(a.n)], label[len(a.n) :]


def _own_units(a: Arm, b: Arm) -> tuple[Integers, Integers]:
    units_a, one = np.unique(a.cluster, return_inverse=True)
    _, other = np.unique(b.cluster, return_inverse=True)
    return one, other + len(units_a)


def components(left: NDArray[np.generic], right: NDArray[np.generic]) -> Integers:
    """Return for each edge between a left and a right node the number of its connected component.

    Components are numbered from 0 in the order of their least left node.
    """
    lefts, one = np.unique(left, return_inverse=True)
    other = np.unique(right, return_inverse=True)[1] + len(lefts)
    parent = list(range(int(other.max(initial=-1)) + 1))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    for edge in np.unique(np.column_stack((one, other)), axis=0).tolist():
        ends = root(edge[0]), root(edge[1])
        parent[max(ends)] = min(ends)
    roots = np.array([root(node) for node in range(len(lefts))], np.int64)
    number: Integers = np.unique(roots, return_inverse=True)[1][one]
    return number


def added(place: Integers, values: NDArray[np.generic]) -> Floats:
    """Return the sum of the values of every place, 0 up to the last."""
    sums: Floats = np.bincount(place, values.astype(np.float64)).astype(np.float64)
    return sums


def _blocks(stratum: Integers, first: NDArray[np.bool_]) -> tuple[Integers, Integers, NDArray[np.bool_]]:
    """Return each unit's block, and each block's stratum and side; few units are blocks of their own."""
    if len(stratum) <= MOST_UNITS:
        return np.arange(len(stratum)), stratum, first
    block = np.zeros(len(stratum), np.int64)
    strata: list[int] = []
    sides: list[bool] = []
    for number, side in sorted(set(zip(stratum.tolist(), first.tolist(), strict=True))):
        units = np.flatnonzero((stratum == number) & (first == side))
        count = min(len(units), max(2, MOST_UNITS * len(units) // len(stratum)))
        block[units] = np.arange(len(units)) % count + len(strata)
        strata += [number] * count
        sides += [side] * count
    return block, np.array(strata, np.int64), np.array(sides, np.bool_)
