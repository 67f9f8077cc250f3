"""The profile of reliability: the integers from which a later passport's drift is told, without raw evidence.

For each metric that is a mean over runs, overall and per domain (r_op also per condition, and per domain
and condition), six integers over the clusters c, where n_c counts the runs of c that carry the metric
and y_c is the scaled sum of their values:

    y = Σ y_c    n = Σ n_c    k = number of clusters with n_c > 0    Σ y_c²    Σ y_c·n_c    Σ n_c²

They give the mean y / (scale · n) and its cluster-robust variance. Runs of one cluster are taken together
whatever their task, domain or condition, within the row that asks. Held-out faults are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from certkit.evidence.record import Condition, Split
from certkit.evidence.summary import PEI_SCALE, add

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from certkit.evidence.summary import Cell, Summary

    Integers = NDArray[np.int64]

MILLIONTHS: Final = 10**6
_EXACT: Final = 2**62


class Moments(Struct, frozen=True, kw_only=True):
    """One row of the profile of reliability; without a domain or a condition it is over all of them.

    `yy`, `yn` and `nn` are Σ y_c², Σ y_c·n_c and Σ n_c². A value is y / `scale`.
    """

    metric: str
    domain: str | None
    condition: str | None
    scale: int
    y: int
    n: int
    k: int
    yy: int
    yn: int
    nn: int


class CellRuns(Struct, frozen=True, kw_only=True):
    """The runs of one domain under one condition."""

    domain: str
    condition: str
    runs: int


class Reliability(Struct, frozen=True, kw_only=True):
    """The profile of reliability of one bundle."""

    moments: tuple[Moments, ...]
    runs: tuple[CellRuns, ...]


class _Series(Struct, frozen=True, kw_only=True, eq=False):
    """A metric on the rows of the cluster table: which cells it is taken over, y and n of each row."""

    metric: str
    scale: int
    over: Callable[[Cell], bool]
    y: Integers
    n: Integers


def reliability(summary: Summary, *, memory_observable: bool) -> Reliability:
    """Return the profile of reliability of a summary.

    `memory_observable` tells whether a recovery without any memory field counts as not intentional, as
    it does in the metric ([26] eq. 6).
    """
    moments: list[Moments] = []
    for series in _series(summary, memory_observable=memory_observable):
        moments += _rows(summary, series)
    return Reliability(
        moments=tuple(moments),
        runs=tuple(
            CellRuns(domain=cell.domain, condition=cell.condition, runs=cell.tally.runs)
            for cell in summary.select()
        ),
    )


def _series(summary: Summary, *, memory_observable: bool) -> Iterator[_Series]:
    sums = summary.clusters.sums
    silent = sums["irs_silent"] if memory_observable else np.zeros_like(sums["irs_silent"])

    def nominal(cell: Cell) -> bool:
        return not cell.is_fault

    def fault(cell: Cell) -> bool:
        return cell.is_fault

    def every(_: Cell) -> bool:
        return True

    def series(
        metric: str, over: Callable[[Cell], bool], y: Integers, n: Integers, scale: int = 1
    ) -> _Series:
        return _Series(metric=metric, scale=scale, over=over, y=y, n=n)

    yield series("c_nom", nominal, sums["success"], sums["runs"])
    yield series("r_op", fault, sums["success"], sums["runs"])
    yield series("frr", fault, sums["frr_tenths"], sums["frr_n"], 10)
    yield series("pei", every, _millionths(sums["pei_fixed"]), sums["pei_n"], MILLIONTHS)
    yield series("irs", fault, sums["irs_yes"], sums["irs_yes"] + sums["irs_no"] + silent)
    yield series("ti", every, sums["ti_thousandths"], sums["ti_n"], 1000)
    yield series("violations", every, sums["violations"], sums["violations_n"])
    yield _adversarial(summary)


def _adversarial(summary: Summary) -> _Series:
    """Return adversarial resistance: over the runs whose attack landed, where any run says so."""
    sums = summary.clusters.sums

    def over(cell: Cell) -> bool:
        return cell.condition == Condition.ADVERSARIAL

    tally = add(cell.tally for cell in summary.select() if over(cell))
    y, n = sums["success"], sums["runs"]
    if tally.landed + tally.not_landed:
        y, n = sums["landed_success"], sums["landed"] + sums["landed_unknown_harness"]
        if not tally.landed:
            n = np.zeros_like(n)  # a defence that was never hit has no rate
    return _Series(metric="adversarial_resistance", scale=1, over=over, y=y, n=n)


def _millionths(fixed: Integers) -> Integers:
    """Return sums of PEI · 2^30 in millionths, each rounded half up, without leaving 64 bits."""
    whole, rest = np.divmod(fixed, PEI_SCALE)
    rounded: Integers = whole * MILLIONTHS + (rest * MILLIONTHS + PEI_SCALE // 2) // PEI_SCALE
    return rounded


def _rows(summary: Summary, series: _Series) -> Iterator[Moments]:
    cells = summary.cells
    counted = [cell.split == Split.STANDARD and series.over(cell) for cell in cells]
    cell = summary.clusters.cell
    chosen = np.flatnonzero(np.array(counted, np.bool_)[cell] & (series.n > 0)) if cells else np.empty(0, int)
    if not len(chosen):
        return
    keys: list[tuple[Sequence[str], Sequence[str]]] = [((), ()), ([c.domain for c in cells], ())]
    if series.metric == "r_op":
        conditions = [c.condition for c in cells]
        keys += [((), conditions), ([c.domain for c in cells], conditions)]
    for domains, conditions_ in keys:
        yield from _grouped(summary, series, chosen, domains, conditions_)


def _grouped(
    summary: Summary, series: _Series, chosen: Integers, domains: Sequence[str], conditions: Sequence[str]
) -> Iterator[Moments]:
    """Yield the moments of the chosen rows for each domain, condition or both; an empty list means all."""
    count = len(summary.cells)
    names = list(zip(domains or [""] * count, conditions or [""] * count, strict=True))
    groups = sorted(set(names))
    place = {name: number for number, name in enumerate(groups)}
    group = np.array([place[name] for name in names], np.int64)[summary.clusters.cell[chosen]]
    cluster = summary.clusters.cluster[chosen]
    order = np.lexsort((cluster, group))
    group, cluster = group[order], cluster[order]
    starts = np.flatnonzero(_changes(group) | _changes(cluster))
    y = np.add.reduceat(series.y[chosen][order], starts)
    n = np.add.reduceat(series.n[chosen][order], starts)
    group = group[starts]
    first = np.flatnonzero(_changes(group))
    columns = [
        np.add.reduceat(column, first).tolist()
        for column in (y, n, np.ones_like(n), _product(y, y), _product(y, n), _product(n, n))
    ]
    for number, values in zip(group[first].tolist(), zip(*columns, strict=True), strict=True):
        domain, condition = groups[number]
        sums = dict(zip(("y", "n", "k", "yy", "yn", "nn"), values, strict=True))
        yield Moments(
            metric=series.metric,
            domain=domain if domains else None,
            condition=condition if conditions else None,
            scale=series.scale,
            **sums,
        )


def _changes(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Tell at each place whether the value differs from the one before; the first does."""
    new = np.ones(len(values), np.bool_)
    new[1:] = values[1:] != values[:-1]
    return new


def _product(a: Integers, b: Integers) -> NDArray[np.generic]:
    """Return a · b whose sum is exact: as Python integers where 64 bits might not do."""
    if int(a.max()) * int(b.max()) * len(a) < _EXACT:
        return a * b
    product: NDArray[np.generic] = a.astype(object) * b.astype(object)
    return product
