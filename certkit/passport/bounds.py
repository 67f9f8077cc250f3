"""Values and bounds of a claim, computed again from the integers of its task table.

A value is the mean over runs. A bound follows from the tasks alone, as in
`certkit.assessment.statistics.posterior`: a task has the mean x of its runs, 1 being best; beside the k tasks
stand one that failed and one that passed; and the limit is that of a Beta distribution with mean and variance
of both weightings, the worse of the two. This module does not solve for the limit. It evaluates the Beta
distribution at the stated bound; at the true limit, the probability below it is 1 − δ. A row
that is met or not met by bounds rests at least on the number of tasks at which flawless ones would just pass.

This is plain Python and apart from the assessment: a verifier should not load numpy and scipy, nor rely on
the code that made the claim. `unchecked` says which bounds cannot be computed again, and why.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from math import log, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.assessment.beta import Beta, by_moments
from certkit.ground.wording import UNDECLARED
from certkit.passport.statement import NOMINAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from certkit.assessment.task_table import Column, Task
    from certkit.passport.statement import Bound, CriterionClaim, Predicate, RowAtTier

SINGLE: Final = {"adversarial", "context_corruption", "tool_failure", "stochastic"}
SUCCESSES: Final[dict[str, Callable[[str], bool]]] = {
    "r_op": lambda condition: condition != NOMINAL,
    "c_nom": lambda condition: condition == NOMINAL,
    "single": lambda condition: condition in SINGLE,
    "cascade": lambda condition: condition == "cascade",
}
"""Series of successes, and the conditions whose runs they are taken over."""


class Kind(NamedTuple):
    """How a row rests on tasks: the mean of a series, the least over domains, or the first less the second.

    A mean runs from `low` over `span`, which grows with the largest task mean where it is `open_ended`, as
    counts are that traces tell. A `chance` is the probability that the mean exceeds τ. `attested` rows rest
    on stated observations, not on tasks; `outcomes` tells whether a model may have given them. `rounding` is
    that of the table.
    """

    series: tuple[str, ...] = ()
    low: float = 0
    span: float = 1
    by_domain: bool = False
    chance: bool = False
    open_ended: bool = False
    attested: bool = False
    unbounded: bool = False
    outcomes: bool = True
    rounding: float = 2e-6


KINDS: Final[dict[str, Kind]] = {
    **{name: Kind((name,)) for name in ("r_op", "c_nom", "frr", "irs", "adversarial_resistance")},
    "domain_min": Kind(("r_op",), by_domain=True),
    "posterior": Kind(("r_op",), chance=True),
    "gap": Kind(("c_nom", "r_op"), low=-100, span=200),
    "cascade_penalty": Kind(("single", "cascade"), low=-100, span=200),
    "pei": Kind(("pei",), rounding=1e-3),
    "ti": Kind(("ti",), low=1, span=4, outcomes=False),
    "violations": Kind(("violations",), span=5, open_ended=True, outcomes=False),
    "human_trust_score": Kind(low=1, span=4, attested=True),
    "transparency_index": Kind(attested=True),
    "edm_auditability": Kind(attested=True),
    "csi": Kind(unbounded=True),
    "csi_windowed": Kind(unbounded=True),
}
"""The metrics whose rows are computed again; consistency has no bound."""

LAST_DIGIT: Final = 2e-6
HALF_DIGIT: Final = 6e-7
"""By how much a confidence may differ, which is written with six digits too."""


class Tasks:
    """The tasks that carry a series: by tag, the mean of the runs in the metric's unit, and their number."""

    def __init__(self, rows: Iterable[Task], places: Sequence[tuple[int, int]]) -> None:
        sums = defaultdict[str, list[float]](lambda: [0, 0])
        for row in rows:
            for place, scale in places:
                sums[row.tag][0] += row.sums[place] / scale
                sums[row.tag][1] += row.sums[place + 1]
        self.means = {tag: (y / n, n) for tag, (y, n) in sums.items() if n}
        self.k = len(self.means)

    def weights(self) -> Iterator[dict[str, float]]:
        """Yield the weights of the tasks: all alike, and by their runs."""
        runs = sum(n for _, n in self.means.values())
        yield dict.fromkeys(self.means, 1.0)
        yield {tag: self.k * n / runs for tag, (_, n) in self.means.items()}

    def moments(
        self, weights: dict[str, float], x: Callable[[float], float], failed: int, passed: int
    ) -> tuple[float, float]:
        """Return mean and variance of the posterior; `failed` and `passed` are the prior tasks."""
        size = self.k + failed + passed
        weighed = [(x(value), weights[tag]) for tag, (value, _) in self.means.items()]
        mean = (sum(w * x for x, w in weighed) + passed) / size
        squares = sum((w * (x - mean)) ** 2 for x, w in weighed)
        squares += failed * mean**2 + passed * (1 - mean) ** 2
        return mean, squares / (size * (size + 1))


def _difference(first: Tasks, second: Tasks) -> Iterator[Beta]:
    """Yield the posterior of (1 − a + b)/2 under both weightings.

    The prior task of a is a success, that of b a failure.
    """
    shared = first.means.keys() & second.means.keys()
    for w_a, w_b in zip(first.weights(), second.weights(), strict=True):
        mean_a, var_a = first.moments(w_a, float, 0, 1)
        mean_b, var_b = second.moments(w_b, float, 1, 0)
        covariance = sum(
            w_a[tag] * w_b[tag] * (first.means[tag][0] - mean_a) * (second.means[tag][0] - mean_b)
            for tag in shared
        )
        covariance /= sqrt((first.k + 1) * (first.k + 2) * (second.k + 1) * (second.k + 2))
        middle = min(max((1 - mean_a + mean_b) / 2, 1e-12), 1 - 1e-12)
        variance = (var_a + var_b - 2 * covariance) / 4
        yield by_moments(middle, min(max(variance, 1e-18), middle * (1 - middle) * (1 - 1e-9)))


class Row:
    """A criterion with its kind and the tasks that carry it, and what follows from them at each tier."""

    def __init__(self, predicate: Predicate, criterion: CriterionClaim) -> None:
        self._predicate, self.criterion = predicate, criterion
        self.kind, self._table = KINDS.get(criterion.metric, Kind()), predicate.profile_of_reliability
        asked = {at.operator in {">", ">="} for at in criterion.tiers.values()}
        self.lower = asked != {False}
        self.mixed = len(asked) > 1

    @cached_property
    def parts(self) -> list[Tasks]:
        """The tasks of every series, or of every domain with runs under faults."""
        table, parts = self._table, []
        for series in self.kind.series:
            places = [
                (2 * place, column.scale)
                for place, column in enumerate(table.columns)
                if _carries(column, series)
            ]
            if not self.kind.by_domain:
                parts.append(Tasks(table.rows, places))
                continue
            for domain in sorted(
                {cell.domain for cell in table.cells if cell.condition != NOMINAL and cell.runs}
            ):
                number = table.domains.index(domain) if domain in table.domains else -1
                parts.append(Tasks((row for row in table.rows if row.domain == number), places))
        return parts

    @property
    def tasks(self) -> int | None:
        """The tasks that the row rests on; None where the task table does not tell."""
        return self.k if self.kind.series and _keeps_all(self._predicate) else None

    @property
    def k(self) -> int:
        """The tasks or observations that the row rests on, the fewest where it has parts."""
        if self.kind.attested:
            return self.criterion.n or 0
        return min((part.k for part in self.parts), default=0)

    @cached_property
    def span(self) -> float:
        """The span of its values; counts end at the largest task mean, and at `Kind.span` at least."""
        values = [value for part in self.parts for value, _ in part.means.values()]
        return max([self.kind.span, *values]) if self.kind.open_ended else self.kind.span

    def x(self, value: float) -> float:
        """Return a value between 0 and 1, 1 being best."""
        x = (value - self.kind.low) / self.span
        return x if self.lower else 1 - x

    @cached_property
    def laws(self) -> list[Beta]:
        """The posterior of every part under both weightings."""
        if self.kind.attested:
            k, x = self.k, self.x(float(self.criterion.value or 0))
            return [Beta(1 + k * x, 1 + k * (1 - x))]
        if len(self.kind.series) > 1:
            return list(_difference(*self.parts)) if self.k else []
        return [
            by_moments(*part.moments(weights, self.x, 1, 1))
            for part in self.parts
            if part.k
            for weights in part.weights()
        ]

    def value(self, tier: str) -> float | None:
        """Return the value at a tier, from totals over runs; None where they do not give it."""
        if self.kind.chance:
            return None if (tau := self.tau(tier)) is None else 1 - self._over_runs.below(tau)
        if self.unsplit:
            return None
        table, parts = self._table, []
        for series in self.kind.series:
            carrying = [column for column in table.columns if _carries(column, series)]
            parts.append([(column.y / column.scale, column.n) for column in carrying])
        if self.kind.by_domain:
            by_domain = defaultdict[str, list[tuple[float, int]]](list)
            for cell in table.cells:
                if cell.condition != NOMINAL and cell.runs:
                    by_domain[cell.domain].append((cell.successes, cell.runs))
            parts = list(by_domain.values())
        runs = [sum(n for _, n in part) for part in parts]
        if not runs or not all(runs):
            return None
        means = [sum(y for y, _ in part) / n for part, n in zip(parts, runs, strict=True)]
        return 100 * (means[0] - means[1]) if len(self.kind.series) > 1 else min(means)

    @property
    def unsplit(self) -> bool:
        """Whether it counts harness errors by condition, which a statement tells of all runs only."""
        return "cascade" in self.kind.series and self._predicate.evidence.harness_errors > 0

    @cached_property
    def _over_runs(self) -> Beta:
        faults = [cell for cell in self._table.cells if cell.condition != NOMINAL]
        successes, runs = sum(cell.successes for cell in faults), sum(cell.runs for cell in faults)
        return Beta(1 + successes, 1 + runs - successes)

    def tau(self, tier: str) -> float | None:
        """Return what a tier asks of r_op, which is the τ of its posterior."""
        asked = (row.tiers.get(tier) for row in self._predicate.criteria if row.metric == "r_op")
        return next((float(at.threshold) for at in asked if at is not None), None)

    def fault(self, tier: str, bounded: Bound) -> str | None:
        """Return what is wrong with the bound at a tier, None where the tasks give it."""
        bound = float(bounded.bound or "nan")
        limit, error = self._asked(tier, bounded)
        if self.kind.chance:
            chance = min((1 - law.below(limit) for law in (*self.laws, self._over_runs)), default=0)
            right = abs(bound - chance) <= LAST_DIGIT
        else:
            right = self._is_limit(bound, error)
        if bounded.k != self.k:
            return f"is said to rest on {bounded.k} tasks, and {self.k} carry it"
        if self.k < _least(limit, error):
            return f"rests on {self.k} tasks, and flawless ones would not pass"
        return None if right else "is not what the tasks give"

    def withheld(self, tier: str) -> bool:
        """Tell whether a tier is insufficient by bounds although its tasks give a bound."""
        at, declared = self.criterion.tiers[tier], self._predicate.protocol.tasks_independent
        if at.bounded is None or at.bounded.status != "insufficient" or at.table not in {"met", "not_met"}:
            return False
        if self.kind.attested or (at.bounded.reason == UNDECLARED and not declared):
            return False
        limit, error = self._asked(tier, at.bounded)
        return self.k >= max(1, _least(limit, error - HALF_DIGIT))

    def _asked(self, tier: str, bounded: Bound) -> tuple[float, float]:
        """Return the limit that a tier asks for on the scale 0 to 1, and how likely a bound may err."""
        threshold, asked = float(self.criterion.tiers[tier].threshold), float(bounded.confidence)
        error = max(1 - (max(asked, threshold) if self.kind.chance else asked), HALF_DIGIT)
        if self.kind.chance:
            return self.tau(tier) or 0.0, error
        limit = (threshold - self.kind.low) / self.kind.span
        limit = limit if self.lower else 1 - limit
        return 2 * limit if len(self.kind.series) > 1 else limit, error

    def _is_limit(self, bound: float, error: float) -> bool:
        """Tell whether a bound is the worst of the limits below which the probability `error` lies."""
        x, by = self.x(bound), self.kind.rounding / self.span
        below = max((law.below(x - by) for law in self.laws), default=1.0)
        above = max((law.below(x + by) for law in self.laws), default=0.0)
        return below <= error + HALF_DIGIT and above >= error - HALF_DIGIT


def _carries(column: Column, series: str) -> bool:
    """Tell whether a column holds runs of a series."""
    over = SUCCESSES.get(series)
    if over is None:
        return column.metric == series
    return column.metric == "success" and column.condition is not None and over(column.condition)


def _least(threshold: float, error: float) -> float:
    """Return the k from which on 1 − τ^(k+1) > δ, for the threshold τ on the scale 0 to 1."""
    if threshold <= 0:
        return 0
    return log(error) / log(threshold) - 1 if threshold < 1 and error > 0 else float("inf")


def _keeps_all(predicate: Predicate) -> bool:
    table = predicate.profile_of_reliability
    return len({row.tag for row in table.rows}) == table.tasks


def _unchecked(predicate: Predicate, row: Row) -> str | None:
    """Return why the bounds of a criterion cannot be computed again, None where they can."""
    kind = row.kind
    if predicate.assessment.profile.stopping == "anytime":
        return "bounds that hold at any time need the order of the runs"
    if kind.attested:
        return None
    if kind.outcomes and predicate.evidence.judged:
        return "a model gave the outcomes, and only the evidence holds the labels that tell its errors"
    if not _keeps_all(predicate):
        return f"the task table keeps some of {predicate.profile_of_reliability.tasks:,} tasks"
    if row.unsplit:
        return "harness errors are not told apart by condition"
    if row.mixed or (len(kind.series) > 1 and row.lower):
        return "a difference that shall be large is not computed again"
    if kind.chance and any(row.tau(tier) is None for tier in row.criterion.tiers):
        return "no row of r_op says what it must exceed"
    return None if kind.series else "the task table does not hold this metric"


def _stated(criterion: CriterionClaim) -> list[tuple[str, Bound]]:
    """Return the tiers of a criterion that state a bound, or that are met by bounds and need one."""
    return [
        (tier, at.bounded)
        for tier, at in criterion.tiers.items()
        if at.bounded is not None
        and not needs_none(criterion, at)
        and (at.bounded.status == "met" or at.bounded.bound is not None)
    ]


def needs_none(criterion: CriterionClaim, at: RowAtTier) -> bool:
    """Tell whether a row stands by bounds as the table reads it: no bound is defined or could reach it."""
    kind = KINDS.get(criterion.metric, Kind())
    highest = at.operator == ">=" and len(kind.series) < 2  # noqa: PLR2004 - a difference has no highest
    return (
        isinstance(at.threshold, bool)
        or kind.unbounded
        or (highest and float(at.threshold) == kind.low + kind.span)
    )


def disagreements(predicate: Predicate, criteria: Sequence[Row]) -> Iterator[str]:
    """Yield the values and bounds that the integers of a statement do not give."""
    for row in criteria:
        for tier, at in row.criterion.tiers.items():
            claimed, expected = at.value or row.criterion.value, row.value(tier)
            if not isinstance(claimed, str) or expected is None:
                continue
            if abs(float(claimed) - expected) > row.kind.rounding:
                yield f"value of {row.criterion.id}: stated {claimed}, expected {expected:.6f}"
        if _unchecked(predicate, row) is None:
            for tier, bounded in _stated(row.criterion):
                if fault := row.fault(tier, bounded):
                    yield f"the bound of criterion {row.criterion.id} at Tier {tier} {fault}"
            for tier in filter(row.withheld, row.criterion.tiers):
                yield f"the bound of criterion {row.criterion.id} at Tier {tier} is kept back"


def unchecked(predicate: Predicate) -> dict[str, list[str]]:
    """Return the criteria whose bounds cannot be computed again, by the reason."""
    reasons = defaultdict[str, list[str]](list)
    for criterion in predicate.criteria:
        if _stated(criterion) and (reason := _unchecked(predicate, Row(predicate, criterion))):
            reasons[reason].append(criterion.id)
    return dict(reasons)
