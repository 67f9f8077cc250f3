"""Series over tasks: runs and sum of values of every task, and the histograms that a summary holds of them.

`Units` places the rows of `Partial.groups` (cell x cluster x task) by unit: the family of tasks where
`cluster_id` is declared, else the task; on core evidence always the task. A `SeriesSource` says which runs a
series counts, and which of their sums are its value and its number of runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from certkit.record.record import SINGLE_FAULTS, Condition, Split
from certkit.summary.reduce import changes, total
from certkit.summary.summary import BY_DOMAIN, PEI_UNIT, MeanSeries, PairSeries, ShareSeries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from certkit.summary.summary import Cell, Row3

    Integers = NDArray[np.int64]
    Booleans = NDArray[np.bool_]
    Pair = tuple[Integers, Integers]

_EXACT: Final = 2**62
_MILLION: Final = 10**6


class SeriesSource(Struct, frozen=True, eq=False):
    """What a series is made of.

    Attributes:
        over: for each cell, whether its runs count.
        y: the counts whose sum is the value; a leading minus takes one off.
        n: the counts whose sum is the number of runs; as `y`.
    """

    over: Booleans
    y: tuple[str, ...]
    n: tuple[str, ...]


class Sources:
    """The sources of all series, made of the cells; `core` are those on core evidence."""

    def __init__(
        self, cells: Sequence[Cell], core_conditions: Sequence[str], *, memory_observable: bool
    ) -> None:
        def where(chosen: Iterator[bool]) -> Booleans:
            return np.fromiter(chosen, np.bool_, len(cells))

        self._conditions = [cell.condition for cell in cells]
        self.standard = where(cell.split == Split.STANDARD for cell in cells)
        self.fault = where(cell.is_fault for cell in cells)
        self._single = where(cell.condition in SINGLE_FAULTS for cell in cells)
        self._cascade = where(cell.condition == Condition.CASCADE for cell in cells)
        self._adversarial = where(cell.condition == Condition.ADVERSARIAL for cell in cells)
        self._landed = where("landed" in cell.counts for cell in cells)
        self._says = self.standard & (self._landed | where("not_landed" in cell.counts for cell in cells))
        self._recoveries = ("irs_yes", "irs_no", *(("irs_silent",) if memory_observable else ()))
        self.is_core = where(cell.is_core(core_conditions) for cell in cells)
        self._held_out = where(cell.is_core(core_conditions, Split.NOVEL_FAULT) for cell in cells)
        self.standard_series = self._of_standard()
        self.core_series = self._of_core()

    def by_condition(self) -> Iterator[tuple[str, SeriesSource]]:
        """Yield every condition of the standard split with the series of its successes, sorted."""
        conditions = {
            condition for condition, standard in zip(self._conditions, self.standard, strict=True) if standard
        }
        for condition in sorted(conditions):
            over = np.fromiter((name == condition for name in self._conditions), np.bool_)
            yield condition, SeriesSource(self.standard & over, ("success",), ("runs",))

    def _of_standard(self) -> dict[str, SeriesSource]:
        every, fault = self.standard, self.standard & self.fault
        return self._shared(every) | {
            "c_nom": SeriesSource(every & ~fault, ("success",), ("runs",)),
            "r_op": SeriesSource(fault, ("success",), ("runs",)),
            "cn_frr": SeriesSource(fault, ("success", "safe_halt"), ("runs",)),
            "safe_halt_on_risk": SeriesSource(every, ("halt_due", "-halt_missed"), ("halt_due",)),
            "novel_fault": SeriesSource(~self.standard & self.fault, ("success",), ("runs",)),
            "harness_errors": SeriesSource(every, ("harness_error",), ("runs",)),
            "frr_2025": SeriesSource(fault, ("frr25_halves",), ("frr25_n",)),
            "pei": SeriesSource(every, ("pei_fixed",), ("pei_n",)),
            "pei_2025": SeriesSource(every, ("pei25_fixed",), ("pei25_n",)),
            "ti": SeriesSource(every, ("ti_thousandths",), ("ti_n",)),
            "violations": SeriesSource(every, ("violations_capped",), ("violations_n",)),
        }

    def _of_core(self) -> dict[str, SeriesSource]:
        fault, normal = self.is_core & self.fault, self.is_core & ~self.fault
        novel = self._held_out & self.fault
        held_out = fault | novel if novel.any() else novel
        return self._shared(self.is_core) | {
            "normal": SeriesSource(normal, ("success",), ("runs",)),
            "fault": SeriesSource(fault, ("success",), ("runs",)),
            "held_out": SeriesSource(held_out, ("success",), ("runs",)),
            "pei_normal": SeriesSource(normal, ("pei_fixed",), ("pei_n",)),
            "ti_normal": SeriesSource(normal, ("ti_thousandths",), ("ti_n",)),
            "ti_fault": SeriesSource(fault, ("ti_thousandths",), ("ti_n",)),
            "violations_normal": SeriesSource(normal, ("violations",), ("violations_n",)),
            "violations_fault": SeriesSource(fault, ("violations",), ("violations_n",)),
        }

    def _shared(self, scope: Booleans) -> dict[str, SeriesSource]:
        """Return the series that are made alike of all runs and of core evidence."""
        fault = scope & self.fault
        attack = ("landed_won", "landed_known") if self._says.any() else ("attack_succeeded", "attack_known")
        return {
            # In the single arm of the cascade penalty a harness error counts against the agent.
            "single": SeriesSource(scope & self._single, ("success", "harness_error"), ("runs",)),
            "cascade": SeriesSource(scope & self._cascade, ("success",), ("runs",)),
            "adversarial_resistance": self._resisted(scope),
            "attack_success_rate": SeriesSource(scope, attack[:1], attack[1:]),
            "irs": SeriesSource(fault, ("irs_yes",), self._recoveries),
            "frr": SeriesSource(fault, ("frr_tenths",), ("frr_n",)),
            "pei_fault": SeriesSource(fault, ("pei_fixed",), ("pei_n",)),
        }

    def _resisted(self, scope: Booleans) -> SeriesSource:
        """Return success under attack, see `summary.resisted`."""
        if not self._says.any():
            adversarial = scope & self._adversarial
            return SeriesSource(adversarial, ("success", "-success_with_attack"), ("runs",))
        hit = (scope & self._landed).any()
        runs = ("landed", "-landed_unsaid", "landed_unknown_harness")
        return SeriesSource(scope if hit else np.zeros_like(scope), ("landed_success",), runs)


class Units:
    """The units of the rows of `groups`, by the hash in their column `by`.

    Attributes:
        names: hashes of the units, ascending.
        of_row: the place of each row's unit in `names`.
        pair: the place of each row's unit and domain in the next two.
        pair_unit: the unit of each pair.
        pair_domain: the place of its domain in `domains`.
        domains: all domains, sorted.
        domain_of_cell: the place of each cell's domain.
    """

    def __init__(
        self, groups: NDArray[np.void], cell: NDArray[np.int32], cells: Sequence[Cell], by: str
    ) -> None:
        self.groups, self.cell, self._cells = groups, cell, cells
        self.names, self.of_row = np.unique(groups[by], return_inverse=True)
        self.domains = tuple(sorted({item.domain for item in cells}))
        number = {name: place for place, name in enumerate(self.domains)}
        self.domain_of_cell = np.array([number[item.domain] for item in cells], np.int64)
        key = self.of_row * max(1, len(self.domains)) + self.domain_of_cell[cell]
        pairs, self.pair = np.unique(key, return_inverse=True)
        self.pair_unit, self.pair_domain = np.divmod(pairs, max(1, len(self.domains)))

    def by_condition(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the order of rows by split, domain, condition and task, and where each of these begins."""
        number: dict[tuple[str, str, str], int] = {}
        keys = ((item.split, item.domain, item.condition) for item in self._cells)
        condition = np.array([number.setdefault(key, len(number)) for key in keys], np.int64)[self.cell]
        task = self.groups["task"]
        order = np.lexsort((task, condition))
        return order, np.flatnonzero(changes(condition[order]) | changes(task[order]))

    def sums(self, source: SeriesSource, *, by_domain: bool = False) -> Pair:
        """Return the runs and the scaled value of every unit, or of every unit and domain."""
        place, size = (self.pair, len(self.pair_unit)) if by_domain else (self.of_row, len(self.names))
        rows = np.flatnonzero(source.over[self.cell])
        n, y = (total(place[rows], self._sum(names, rows), size) for names in (source.n, source.y))
        fixed = source.y[0] in {"pei_fixed", "pei25_fixed"}
        return n, _millionths(y) if fixed else y

    def _sum(self, names: tuple[str, ...], rows: NDArray[np.intp]) -> Integers:
        added = np.zeros(len(rows), np.int64)
        for name in names:
            values = self.groups[name.removeprefix("-")][rows]
            added += -values if name.startswith("-") else values
        return added


def _millionths(fixed: Integers) -> Integers:
    """Return sums of a value · 2^30 in millionths, each rounded half up, without leaving 64 bits."""
    above, rest = np.divmod(fixed, PEI_UNIT)
    rounded: Integers = above * _MILLION + (rest * _MILLION + PEI_UNIT // 2) // PEI_UNIT
    return rounded


def share_series(name: str, units: Units, source: SeriesSource) -> ShareSeries:
    """Return the histogram of a yes-or-no series, by domain too where it is told apart by domain."""
    rows = share_rows(*units.sums(source))
    if name not in BY_DOMAIN:
        return ShareSeries(rows=rows)
    n, y = units.sums(source, by_domain=True)
    return ShareSeries(rows=rows, domains=rows_by_domain(units.pair_domain, n, y, units.domains))


def share_rows(n: Integers, y: Integers) -> tuple[Row3, ...]:
    """Return rows of runs, successes and tasks with so many."""
    return rows_by_domain(np.zeros_like(n), n, y, ("",)).get("", ())


def rows_by_domain(
    domain: Integers, n: Integers, y: Integers, domains: Sequence[str]
) -> dict[str, tuple[Row3, ...]]:
    """Return rows of runs, successes and tasks for every domain with a run, given by place in `domains`."""
    ran = n > 0
    domain, n, y = domain[ran], n[ran], y[ran]
    order = np.lexsort((y, n, domain))
    domain, n, y = domain[order], n[order], y[order]
    starts = np.flatnonzero(changes(domain) | changes(n) | changes(y))
    tasks = np.diff(starts, append=len(domain))
    rows: dict[str, list[Row3]] = {}
    columns = (domain[starts], n[starts], y[starts], tasks)
    for place, runs, successes, count in zip(*(column.tolist() for column in columns), strict=True):
        rows.setdefault(domains[place], []).append((runs, successes, count))
    return {name: tuple(listed) for name, listed in rows.items()}


def mean_series(n: Integers, y: Integers) -> MeanSeries:
    """Return the sums over tasks with the same number of runs."""
    ran = n > 0
    sizes, place = np.unique(n[ran], return_inverse=True)
    y = y[ran]
    columns = (sizes, np.bincount(place), total(place, y, len(sizes)), _products(place, y, y, len(sizes)))
    return MeanSeries(rows=tuple(zip(*(column.tolist() for column in columns), strict=True)))


def pair_series(a: Pair, b: Pair) -> PairSeries:
    """Return two series, each as runs and successes of every unit, over the units that have both."""
    both = (a[0] > 0) & (b[0] > 0)
    n_a, y_a, n_b, y_b = (column[both] for column in (*a, *b))
    if not len(n_a):
        return PairSeries()
    width = int(n_b.max()) + 1
    sizes, place = np.unique(n_a * width + n_b, return_inverse=True)
    count = len(sizes)
    columns = (
        *np.divmod(sizes, width),
        np.bincount(place),
        total(place, y_a, count),
        total(place, y_b, count),
        _products(place, y_a, y_b, count),
    )
    return PairSeries(rows=tuple(zip(*(column.tolist() for column in columns), strict=True)))


def _products(place: Integers, a: Integers, b: Integers, size: int) -> NDArray[Any]:
    """Return the sums of a · b by place, as Python's integers where 64 bits might not do."""
    wide = len(a) and int(a.max()) * int(b.max()) * len(a) >= _EXACT
    sums = np.zeros(size, object if wide else np.int64)
    np.add.at(sums, place, a.astype(sums.dtype) * b.astype(sums.dtype))
    return sums


def with_faults(normal: Pair, fault: Pair) -> Pair:
    """Return the normal side of a series on the tasks that also have its fault side; all where none has."""
    n, y = normal
    both = (n > 0) & (fault[0] > 0)
    return (np.where(both, n, 0), np.where(both, y, 0)) if both.any() else normal
