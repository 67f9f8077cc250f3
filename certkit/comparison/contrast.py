"""The contrast of one mean over tasks between sides: passports of a lineage, or bundles of two agents.

    panel = Panel([old.tasks, new.tasks])
    sides = panel.sides("r_op")
    change = contrast(sides, (1, -1))
    change.loss, change.se, change.p_loss

Side t has k_t tasks with values x_ct and mean x̄_t. The loss is L = Σ_t a_t·x̄_t, with a = (1, −1) for an older
and a newer side. Task c contributes u_c = Σ_t a_t(x_ct − x̄_t)/k_t over the sides that have it, so that a task
counts once however often it was run again, and with k = min k_t

    V = k/(k − 1) · Σ u_c²        p = 1 − T(L/√V) with k − 1 degrees of freedom.

Where all tasks are shared this is the paired t test (R `t.test(paired = TRUE)`). Where none is, tasks are
clusters of their own (Miller 2024); with equal k_t L/√V is the t of R `t.test`, and k − 1 are the fewest
degrees of freedom that two unequal variances can leave. Where V is 0 every task lost the same, and p is 2^−k,
that of a sign test.

Few tasks that all succeed have no variance, and would be taken for exact beside many. So where k_t differ,
with S_t = Σ(x_ct − x̄_t)², Σu_c² grows by Σ a_t²(s²/k_t − S_t/k_t²), if that is above 0, where s² = ΣS_t/Σk_t
is the variance within all sides: a standard error is at least the pooled one (Student 1908, R
`t.test(var.equal = TRUE)`). With equal k_t and two sides both are the same.

A task's value takes the conditions that all sides ran on it, in the proportions of its oldest side. Tasks
that not all sides have are weighted so that every domain under every condition has the share that it had on
the oldest side: a changed mix is no loss. What a side did not run at all is left out on all. Where sides are
pooled, none being older, a task's value takes all its runs, and shares are those of all sides together.

Plain Python: task tables hold at most 1,000 tasks in a passport.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import sqrt
from operator import add
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from certkit.assessment import beta, bounds
from certkit.assessment.catalogue import CATALOGUE
from certkit.assessment.row import scale
from certkit.record.record import Split, is_fault
from certkit.summary.summary import SUCCESS_COLUMN

if TYPE_CHECKING:
    from certkit.summary.summary import Cell, Summary, TaskTable

LEVEL: Final = 0.95
"""Confidence of limits and intervals."""
LEAST: Final = 10
"""Tasks that each side of a tested row needs."""
MIX_LIMIT: Final = Fraction(1, 10)
"""Share of runs that may have moved between conditions where a row that does not tell them apart is tested.

With conditions whose means differ by up to half of the range, a smaller move changes a mean by less than a
margin of .05.
"""
ON_FAULTS: Final = frozenset({"frr", "irs", "cn_frr", "frr_2025"})
"""Metrics of task columns that count fault runs alone."""
_ROUNDING: Final = 1e-12

Runs = tuple[int, float, int]
"""Place of a domain and condition, sum of values, number of runs."""
Rows = Mapping[tuple[int, int], Sequence[Sequence[Runs]]]
"""By number of a task and place of a domain, for each side the runs by condition."""


class UnitSums(NamedTuple):
    """A task on one side, in all its domains, each with its value x, its weight v and its runs n.

    Attributes:
        v: Σ v.
        vx: Σ v·x.
        vn: Σ v·n.
        vnx: Σ v·n·x.
        n: Σ n.
    """

    v: float
    vx: float
    vn: float
    vnx: float
    n: int


Weighed = Sequence[Sequence[tuple[int, int, UnitSums]]]
"""By side, for each task in a domain its number, the place of the domain, and its sums."""


class Sides(Struct, frozen=True):
    """One mean on every side.

    Attributes:
        units: by side, its tasks by number; none has weight 0.
    """

    units: tuple[Mapping[int, UnitSums], ...]

    @property
    def k(self) -> tuple[int, ...]:
        """The tasks of every side."""
        return tuple(map(len, self.units))

    @property
    def means(self) -> tuple[float, ...]:
        """The weighted mean of every side; each must have a task."""
        return tuple(map(mean, self.units))

    @property
    def runs(self) -> tuple[int, ...]:
        """The runs of every side."""
        return tuple(sum(task.n for task in side.values()) for side in self.units)

    @property
    def shared(self) -> int:
        """Tasks that all sides have."""
        return len(set.intersection(*map(set, self.units)))

    @property
    def swapped(self) -> Sides:
        """The sides in the opposite order."""
        return Sides(self.units[::-1])


def mean(units: Mapping[int, UnitSums]) -> float:
    """Return the weighted mean of tasks, of which there must be one."""
    return sum(task.vx for task in units.values()) / sum(task.v for task in units.values())


class Panel:
    """Task tables side by side: a task is the same where salt and tag are."""

    def __init__(self, tables: Sequence[TaskTable], *, pooled: bool = False) -> None:
        self.tables, self.pooled = tables, pooled
        self.domains = sorted({name for table in tables for name in table.domains})
        self.conditions = sorted({str(column.condition) for table in tables for column in table.columns})
        units: dict[tuple[str, str], int] = {}
        self._keys = []
        for side, table in enumerate(tables):
            salt, places = table.salt or f"side {side}", [self.domains.index(name) for name in table.domains]
            numbers = [units.setdefault((salt, row.tag), len(units)) for row in table.rows]
            self._keys.append(
                [(unit, places[row.domain]) for unit, row in zip(numbers, table.rows, strict=True)]
            )
        self._weighed: dict[tuple[str, str | None], Weighed] = {}

    def rows(self, metric: str, condition: str | None = None) -> Rows:
        """Return the runs of a metric, all that it counts or those under one condition."""
        name, wanted = (SUCCESS_COLUMN, metric) if metric in {"r_op", "c_nom"} else (metric, None)
        rows: dict[tuple[int, int], list[list[Runs]]] = {}
        for side, (table, keys) in enumerate(zip(self.tables, self._keys, strict=True)):
            columns = [
                (self.conditions.index(str(column.condition)), 2 * number, column.scale)
                for number, column in enumerate(table.columns)
                if column.metric == name
                and (wanted is None or is_fault(str(column.condition)) == (wanted == "r_op"))
                and condition in {None, column.condition}
            ]
            for key, row in zip(keys, table.rows, strict=True):
                sums, cell = row.sums, key[1] * len(self.conditions)
                runs = [(cell + c, sums[at] / scale, n) for c, at, scale in columns if (n := sums[at + 1])]
                if runs:
                    rows.setdefault(key, [[] for _ in self.tables])[side] = runs
        return rows

    def sides(self, metric: str, condition: str | None = None, domain: str | None = None) -> Sides:
        """Return a metric on every side: under all its conditions or one, in all domains or one."""
        key = (metric, condition)
        if key not in self._weighed:  # all domains share one pass over the tasks
            rows = self.rows(metric, condition)
            self._weighed[key] = weighed(rows, len(self.tables), pooled=self.pooled)
        place = self.domains.index(domain) if domain in self.domains else -1
        return sides_of(self._weighed[key], None if domain is None else place)


def sides_of(tasks: Weighed, place: int | None = None) -> Sides:
    """Return the tasks of all domains, or of that at `place`."""
    sides: list[dict[int, UnitSums]] = []
    for side in tasks:
        units: dict[int, UnitSums] = {}
        for unit, domain, sums in side:
            if place is None or domain == place:
                units[unit] = UnitSums(*map(add, units[unit], sums)) if unit in units else sums
        sides.append(units)
    return Sides(tuple(sides))


def weighed(rows: Rows, count: int, *, pooled: bool = False) -> Weighed:
    """Return, by side, every task in a domain with its value and its weight.

    Args:
        rows: the runs.
        count: how many sides there are.
        pooled: no side is older than another.
    """
    shares = {key: _shares(sides, pooled=pooled) for key, sides in rows.items()}
    mixes: list[dict[int, float]] = [defaultdict(float) for _ in range(count)]
    for key, sides in rows.items():
        for mix, runs, parts in zip(mixes, sides, shares[key], strict=True):
            for (cell, _, _), share in zip(runs, parts, strict=True):
                mix[cell] += share
    factors: list[Mapping[int, float]] = [dict.fromkeys(mix, 1.0) for mix in mixes]
    if all(mixes):
        cells = set.intersection(*({cell for cell, share in mix.items() if share > 0} for mix in mixes))
        wanted = {cell: sum(mix[cell] for mix in mixes) if pooled else mixes[0][cell] for cell in cells}
        factors = [{cell: share / mix[cell] for cell, share in wanted.items()} for mix in mixes]
    tasks: list[list[tuple[int, int, UnitSums]]] = [[] for _ in range(count)]
    for (unit, domain), sides in rows.items():
        for into, factor, runs, parts in zip(tasks, factors, sides, shares[unit, domain], strict=True):
            v = vx = 0.0
            total = 0
            for (cell, y, n), share in zip(runs, parts, strict=True):
                if share and cell in factor:
                    weight = share * factor[cell]
                    v, vx, total = v + weight, vx + weight * y / n, total + n
            if v:
                into.append((unit, domain, UnitSums(v, vx, v * total, vx * total, total)))
    return tasks


def _shares(sides: Sequence[Sequence[Runs]], *, pooled: bool) -> Sequence[Sequence[float]]:
    """Return, by side, the share of each of a task's conditions in its value; each side's add up to 1."""
    present = [runs for runs in sides if runs]
    cell = present[0][0][0]
    if all(len(runs) == 1 and runs[0][0] == cell for runs in present):
        return [_ALONE if runs else () for runs in sides]
    common = set.intersection(*({part[0] for part in runs} for runs in present))
    if pooled or not common:  # sides that ran it under no common condition: each keeps its own
        return [[n / sum(n for *_, n in runs) for *_, n in runs] for runs in sides]
    oldest = {cell: n for cell, _, n in present[0] if cell in common}
    total = sum(oldest.values())
    return [[oldest.get(cell, 0) / total for cell, *_ in runs] for runs in sides]


_ALONE: Final = (1.0,)


class Contrast(NamedTuple):
    """The loss L, its standard error, its degrees of freedom, and the one-sided p of a loss and of a gain."""

    loss: float
    se: float
    freedom: int
    p_loss: float
    p_gain: float


def contrast(sides: Sides, weights: Sequence[float]) -> Contrast:
    """Return the contrast with one weight per side; a higher value on a side of positive weight is a loss.

    Every side must have a task.
    """
    means, sizes, fewest = sides.means, sides.k, min(sides.k)
    loss = round(sum(a * value for a, value in zip(weights, means, strict=True)), 12)
    each: dict[int, float] = defaultdict(float)
    alone = []
    for units, value, a in zip(sides.units, means, weights, strict=True):
        total = sum(task.v for task in units.values())
        part = {unit: (task.vx - task.v * value) / total for unit, task in units.items()}
        for unit, u in part.items():
            each[unit] += a * u
        alone.append(sum(u * u for u in part.values()))
    squares = sum(u * u for u in each.values())
    if fewest < max(sizes):
        within = sum(k * k * square for k, square in zip(sizes, alone, strict=True)) / sum(sizes)
        more = sum(a * a * (within / k - square) for a, k, square in zip(weights, sizes, alone, strict=True))
        squares += max(0.0, more)
    se = sqrt(fewest / (fewest - 1) * squares) if fewest > 1 else 0.0
    if se <= _ROUNDING:
        least = 2.0**-fewest
        return Contrast(loss, 0.0, fewest - 1, least if loss > 0 else 1.0, least if loss < 0 else 1.0)
    p_loss, p_gain = (beta.student_above(t, fewest - 1) for t in (loss / se, -loss / se))
    return Contrast(loss, se, fewest - 1, p_loss, p_gain)


def with_priors(sides: Sides, low: float, width: float) -> Sides:
    """Return the sides with the two prior tasks of confidence limits on each: the worst value and the best.

    They are tasks of that side alone and weigh as much as its average task, so that with weights w, Σw = k,

        μ = (Σ w·x + low + high)/(k + 2)      V = K/(K − 1) · Σ u²,  K = k + 2

    and the sum has the terms of both prior tasks. Without them a side whose tasks all succeed would be taken
    for exact.

    Args:
        sides: each has a task.
        low: the least value that there can be.
        width: from there to the largest.
    """
    units: list[Mapping[int, UnitSums]] = []
    for side in sides.units:
        v, number = sum(task.v for task in side.values()) / len(side), -2 * len(units) - 1
        prior = {number - i: UnitSums(v, v * x, 0.0, 0.0, 0) for i, x in enumerate((low, low + width))}
        units.append({**side, **prior})
    return Sides(tuple(units))


def student_limit(tail: float, freedom: int) -> float:
    """Return the t > 0 with P(T > t) = `tail` < 1/2 for Student's t with `freedom` degrees of freedom."""
    x = beta.quantile(2 * tail, freedom / 2, 0.5)
    return sqrt(freedom * (1 - x) / x)


def slopes(count: int) -> tuple[Fraction, ...]:
    """Return the weights of a trend's contrast: the fitted loss from the first of `count` sides to the last.

    a_t = −(t − t̄)(T − 1)/Σ(t − t̄)² (Frison & Pocock 1992).
    """
    middle = Fraction(count - 1, 2)
    squares = sum(((t - middle) ** 2 for t in range(count)), Fraction(0))
    return tuple(-(t - middle) * (count - 1) / squares for t in range(count))


def limit(sides: Sides, metric: str) -> float:
    """Return the upper confidence limit, at `LEVEL`, of the change for the worse from the first of two sides.

    It is that of the difference of two task posteriors (`bounds.difference`). Tasks weigh as the mix of
    domains and conditions asks, or by their runs too; the larger limit counts.
    """
    start, slope = map(float, scale(metric, more=CATALOGUE[metric].higher))
    (a, k), (b, m) = zip(sides.units, sides.k, strict=True)
    weights = [
        tuple({unit: (t.v, start * t.v + slope * t.vx) for unit, t in side.items()} for side in (a, b)),
        tuple({unit: (t.vn, start * t.vn + slope * t.vnx) for unit, t in side.items()} for side in (a, b)),
    ]
    laws = []
    for first, second in weights:
        pairs = [(*first[unit], *second[unit]) for unit in first.keys() & second.keys()]
        factor = _factor(first, k) * _factor(second, m)
        both = bounds.Both(
            _exact(factor * sum([w_a * w_b for w_a, _, w_b, _ in pairs])),
            _exact(factor * sum([x_a * x_b for _, x_a, _, x_b in pairs])),
            _exact(factor * sum([x_a * w_b for _, x_a, w_b, _ in pairs])),
            _exact(factor * sum([w_a * x_b for w_a, _, _, x_b in pairs])),
        )
        laws.append(bounds.difference(_weighted(first, k), _weighted(second, m), both))
    return span(metric)[1] * (1 - 2 * min(law.quantile(1 - LEVEL) for law in laws))


Weights = Mapping[int, tuple[float, float]]
"""By number of a task, its weight w and w·x."""


def _factor(tasks: Weights, k: int) -> float:
    """Return by how much weights are multiplied so that they add up to k."""
    return k / sum([w for w, _ in tasks.values()])


def _weighted(tasks: Weights, k: int) -> bounds.Weighted:
    """Return the sums of k tasks whose weights add up to k."""
    factor, pairs = _factor(tasks, k), tasks.values()
    return bounds.Weighted(
        Fraction(k),
        _exact(factor * sum([wx for _, wx in pairs])),
        _exact(factor * factor * sum([wx * wx for _, wx in pairs])),
        _exact(factor * factor * sum([w * wx for w, wx in pairs])),
        _exact(factor * factor * sum([w * w for w, _ in pairs])),
    )


_exact = Fraction.from_float


def adjusted(probabilities: Sequence[float]) -> list[float]:
    """Return Benjamini and Hochberg's adjusted p values (1995; R `p.adjust(method = "BH")`)."""
    count = len(probabilities)
    order = sorted(range(count), key=probabilities.__getitem__, reverse=True)
    values, least = [1.0] * count, 1.0
    for place, index in enumerate(order):
        least = min(least, probabilities[index] * count / (count - place))
        values[index] = least
    return values


def span(metric: str) -> tuple[float, float]:
    """Return the least value of a metric in task rows, and the width from there to the largest."""
    spec = CATALOGUE[metric]
    high = bounds.MOST_VIOLATIONS if spec.high is None else spec.high
    return float(spec.low), float(high - spec.low)


def mixed(metric: str, old: Summary, new: Summary) -> str | None:
    """Return why a metric whose sums do not tell conditions apart cannot be compared under another mix."""
    if metric in {"r_op", "c_nom", "adversarial_resistance"}:
        return None
    split = Split.NOVEL_FAULT if metric == "novel_fault" else Split.STANDARD
    share = moved(old.select(split), new.select(split), faults_only=metric in ON_FAULTS)
    if share <= MIX_LIMIT:
        return None
    percent = f"{float(100 * share):.0f} %"
    return f"{percent} of the runs moved between conditions, and its sums do not tell them apart"


def moved(old: Iterable[Cell], new: Iterable[Cell], *, faults_only: bool) -> Fraction:
    """Return the share of runs that moved between conditions within a domain, domains weighted as before."""
    before, now = (_by_domain(side, faults_only=faults_only) for side in (old, new))
    total = sum(sum(runs.values()) for runs in before.values())
    share = Fraction(0)
    for domain in before.keys() & now.keys():
        first, second = before[domain], now[domain]
        n, m = sum(first.values()), sum(second.values())
        apart = sum(abs(first.get(name, 0) * m - second.get(name, 0) * n) for name in {*first, *second})
        share += Fraction(apart, 2 * m)
    return share / total if total else share


def _by_domain(cells: Iterable[Cell], *, faults_only: bool) -> dict[str, dict[str, int]]:
    runs: dict[str, dict[str, int]] = {}
    for cell in cells:
        if cell.is_fault or not faults_only:
            by_condition = runs.setdefault(cell.domain, {})
            by_condition[cell.condition] = by_condition.get(cell.condition, 0) + int(cell.counts["runs"])
    return runs
