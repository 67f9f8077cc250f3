"""A metric on the rows of the cluster table: over which runs it is taken, and y and n of each row.

Everything that respects clusters starts here: the profile of reliability, the bounded reading, fragility.
A series gives for each row of `Summary.clusters` the runs that carry the metric and the scaled sum of
their values, so that the metric is Σy / (scale · Σn). `grouped` adds
the rows of one cluster, in all or apart by domain or condition, and `totals` sums over the clusters.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.evidence.records.record import SINGLE_FAULTS, Condition, Split
from certkit.evidence.summary.summary import PEI_SCALE, Clusters, add

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from certkit.evidence.summary.summary import Cell, Summary

    Integers = NDArray[np.int64]

MILLIONTHS: Final = 10**6
_EXACT: Final = 2**62


class Series(Struct, frozen=True, kw_only=True, eq=False):
    """A metric on the rows of the cluster table: which cells it is taken over, y and n of each row.

    `low` and `high` are the ends of one run's value, `high` None where there is none.
    """

    metric: str
    scale: int
    over: Callable[[Cell], bool]
    y: Integers
    n: Integers
    split: Split = Split.STANDARD
    low: Fraction = Fraction(0)
    high: Fraction | None = Fraction(1)

    @property
    def ends(self) -> tuple[int, int]:
        """The least y of one run, and the distance to the most (to 1 where there is no most)."""
        high = self.low + 1 if self.high is None else self.high
        return int(self.low * self.scale), int((high - self.low) * self.scale)

    def rows(self, summary: Summary) -> Integers:
        """Return the rows of the cluster table that count, as indices."""
        cells = summary.cells
        if not cells:
            return np.empty(0, np.int64)
        counted = np.array([cell.split == self.split and self.over(cell) for cell in cells], np.bool_)
        return np.flatnonzero(counted[summary.clusters.cell] & (self.n > 0))


def nominal(cell: Cell) -> bool:
    """Choose nominal runs."""
    return not cell.is_fault


def fault(cell: Cell) -> bool:
    """Choose runs under a fault."""
    return cell.is_fault


def every(_: Cell) -> bool:
    """Choose all runs."""
    return True


def single(cell: Cell) -> bool:
    """Choose runs under one fault."""
    return cell.condition in SINGLE_FAULTS


def cascade(cell: Cell) -> bool:
    """Choose runs under a cascade of faults."""
    return cell.condition == Condition.CASCADE


def adversarial(cell: Cell) -> bool:
    """Choose runs under attack."""
    return cell.condition == Condition.ADVERSARIAL


def series(summary: Summary, metric: str, *, memory_observable: bool) -> Series:
    """Return the series of one metric of `METRICS`.

    `memory_observable` tells whether a recovery without any memory field counts as not intentional, as
    it does in the metric ([26] eq. 6).
    """
    sums = summary.clusters.sums
    if metric == "adversarial_resistance":
        return _adversarial(summary)
    if metric == "irs":
        known = sums["irs_yes"] + sums["irs_no"] + (sums["irs_silent"] if memory_observable else 0)
        return _of(metric, fault, sums["irs_yes"], known)
    over, y, n, scale = _PLAIN[metric]
    split = Split.NOVEL_FAULT if metric == "novel_fault" else Split.STANDARD
    of = CATALOGUE[metric] if metric in CATALOGUE else CATALOGUE["r_op"]
    return Series(
        metric=metric,
        scale=scale,
        over=over,
        y=y(summary.clusters),
        n=sums[n],
        split=split,
        low=of.low or Fraction(0),
        high=of.high,
    )


def _of(metric: str, over: Callable[[Cell], bool], y: Integers, n: Integers) -> Series:
    return Series(metric=metric, scale=1, over=over, y=y, n=n)


def _field(name: str) -> Callable[[Clusters], Integers]:
    return lambda clusters: clusters.sums[name]


def _fixed(name: str) -> Callable[[Clusters], Integers]:
    return lambda clusters: _millionths(clusters.sums[name])


def _halted(clusters: Clusters) -> Integers:
    return clusters.sums["halt_due"] - clusters.sums["halt_missed"]


def _safe(clusters: Clusters) -> Integers:
    return clusters.sums["success"] + clusters.sums["safe_halt"]


def _against(clusters: Clusters) -> Integers:
    # In the single arm of the cascade penalty a harness error counts against the agent.
    return clusters.sums["success"] + clusters.sums["harness_error"]


_success = _field("success")
# metric → over which runs, y of each row, the field that is n, scale of y
_PLAIN: Final[dict[str, tuple[Callable[[Cell], bool], Callable[[Clusters], Integers], str, int]]] = {
    "c_nom": (nominal, _success, "runs", 1),
    "r_op": (fault, _success, "runs", 1),
    "frr": (fault, _field("frr_tenths"), "frr_n", 10),
    "pei": (every, _fixed("pei_fixed"), "pei_n", MILLIONTHS),
    "pei_fault": (fault, _fixed("pei_fixed"), "pei_n", MILLIONTHS),
    "ti": (every, _field("ti_thousandths"), "ti_n", 1000),
    "violations": (every, _field("violations"), "violations_n", 1),
    "cn_frr": (fault, _safe, "runs", 1),
    "frr_2025": (fault, _field("frr25_halves"), "frr25_n", 2),
    "pei_2025": (every, _fixed("pei25_fixed"), "pei25_n", MILLIONTHS),
    "safe_halt_on_risk": (every, _halted, "halt_due", 1),
    "novel_fault": (fault, _success, "runs", 1),
    "harness_errors": (every, _field("harness_error"), "runs", 1),
    "single": (single, _against, "runs", 1),
    "cascade": (cascade, _success, "runs", 1),
}
METRICS: Final = (*_PLAIN, "irs", "adversarial_resistance")
"""Every series there is; `single` and `cascade` are the arms of the cascade penalty."""


def _adversarial(summary: Summary) -> Series:
    """Return adversarial resistance: over the runs whose attack landed, where any run says so."""
    sums = summary.clusters.sums
    tally = add(cell.tally for cell in summary.select() if adversarial(cell))
    y, n = sums["success"], sums["runs"]
    if tally.landed + tally.not_landed:
        y, n = sums["landed_success"], sums["landed"] + sums["landed_unknown_harness"]
        if not tally.landed:
            n = np.zeros_like(n)  # a defence that was never hit has no rate
    return _of("adversarial_resistance", adversarial, y, n)


def _millionths(fixed: Integers) -> Integers:
    """Return sums of a value · 2^30 in millionths, each rounded half up, without leaving 64 bits."""
    whole, rest = np.divmod(fixed, PEI_SCALE)
    rounded: Integers = whole * MILLIONTHS + (rest * MILLIONTHS + PEI_SCALE // 2) // PEI_SCALE
    return rounded


class Grouped(Struct, frozen=True, kw_only=True, eq=False):
    """y and n of every cluster in every group, sorted by group and then by the clusters' hashes."""

    group: Integers
    cluster: NDArray[np.uint64]
    y: Integers
    n: Integers


class Totals(Struct, frozen=True, kw_only=True):
    """The sums of one group over its clusters c: Σy_c, Σn_c, their number, Σy_c², Σy_c·n_c, Σn_c².

    `mixed` counts the clusters whose runs are known to differ: their sum is more than the least and less
    than the most that it can be. Where there is no most, those above the least.
    """

    y: int
    n: int
    k: int
    yy: int
    yn: int
    nn: int
    mixed: int

    @property
    def worth(self) -> float:
        """How many clusters of equal size say as much: (Σn_c)² / Σn_c², k where all are equal."""
        return self.n * self.n / self.nn


def grouped(summary: Summary, of: Series, group: Integers | None = None) -> Grouped:
    """Return a series per cluster.

    `group` numbers the cells (None: all are one group, numbered 0); rows of one group and cluster are added.
    """
    chosen = of.rows(summary)
    cluster = summary.clusters.cluster[chosen]
    number = np.zeros(len(chosen), np.int64) if group is None else group[summary.clusters.cell[chosen]]
    order = np.lexsort((cluster, number))
    number, cluster = number[order], cluster[order]
    starts = np.flatnonzero(_changes(number) | _changes(cluster))
    if not len(starts):
        return Grouped(group=number, cluster=cluster, y=of.y[:0], n=of.n[:0])
    return Grouped(
        group=number[starts],
        cluster=cluster[starts],
        y=np.add.reduceat(of.y[chosen][order], starts),
        n=np.add.reduceat(of.n[chosen][order], starts),
    )


def totals(of: Series, clusters: Grouped) -> dict[int, Totals]:
    """Return the sums of every group, by its number, ascending."""
    if not len(clusters.group):
        return {}
    y, n = clusters.y, clusters.n
    first = np.flatnonzero(_changes(clusters.group))
    least = int(of.low * of.scale) * n
    mixed = y > least
    if of.high is not None:
        mixed &= y < int(of.high * of.scale) * n
    columns = (y, n, np.ones_like(n), _product(y, y), _product(y, n), _product(n, n), mixed)
    sums = [
        np.add.reduceat(column.astype(np.int64) if column.dtype == np.bool_ else column, first)
        for column in columns
    ]
    names = Totals.__struct_fields__
    return {
        number: Totals(**dict(zip(names, row, strict=True)))
        for number, *row in zip(
            clusters.group[first].tolist(), *(column.tolist() for column in sums), strict=True
        )
    }


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
