"""Values and bounds of a claim, computed again from the integers of its task table.

A value is the mean over runs. A bound follows from the tasks alone, as in
`certkit.assessment.statistics.posterior`: a task has the mean x of its runs, 1 being best; beside the k tasks
stand one that failed and one that passed; and the limit is that of a Beta distribution with mean and variance
of both weightings, the worse of the two. Here it is not sought but tried: below the true limit lies the
probability 1 − δ. A row that is met or not met by bounds rests at least on the number of tasks at which
flawless ones would just pass.

This is plain Python and apart from the assessment: a verifier should not load numpy and scipy, nor rely on
the code that made the claim. `unchecked` says which bounds cannot be computed again, and why.
"""

from __future__ import annotations

from collections import defaultdict
from math import exp, lgamma, log, log1p, sqrt
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from certkit.passport.implied import NOMINAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from certkit.passport.statement import (
        Bound,
        Column,
        CriterionClaim,
        Predicate,
        RowAtTier,
        Task,
        TaskTable,
    )

SINGLE: Final = {"adversarial", "context_corruption", "tool_failure", "stochastic"}
SUCCESSES: Final[dict[str, Callable[[str], bool]]] = {
    "r_op": lambda condition: condition != NOMINAL,
    "c_nom": lambda condition: condition == NOMINAL,
    "single": lambda condition: condition in SINGLE,
    "cascade": lambda condition: condition == "cascade",
}
"""Series of successes, and the conditions whose runs they are taken over."""

MEANS: Final = {"r_op", "c_nom", "frr", "pei", "irs", "ti", "violations", "adversarial_resistance"}
DIFFERENCES: Final = {"gap": ("c_nom", "r_op"), "cascade_penalty": ("single", "cascade")}
ATTESTED: Final = {"transparency_index", "human_trust_score", "edm_auditability"}
LIKERT: Final = {"ti", "human_trust_score"}
WITHOUT_BOUND: Final = {"csi", "csi_windowed"}
"""Consistency, for which no bound is known."""
OF_SUCCESS: Final = {*MEANS, *DIFFERENCES, "domain_min", "posterior"} - {"pei", "ti", "violations"}

FIVE: Final = 5
"""Violations per run that the scale of counts reaches at least."""
ROUNDING: Final = {"pei": 1e-3}
"""By how much a bound may differ where the table rounds its sums to thousandths; else by `LAST_DIGIT`."""
LAST_DIGIT: Final = 2e-6
MOST_TERMS: Final = 5_000
"""Of the continued fraction: enough for 10⁷ runs, and what keeps a hostile statement from taking long."""
HALF_DIGIT: Final = 6e-7
"""By how much a confidence may differ, which is written with six digits too."""


class Beta(NamedTuple):
    """A Beta distribution."""

    a: float
    b: float

    def below(self, x: float) -> float:
        """Return P(θ ≤ x)."""
        if not 0 < x < 1:
            return float(x >= 1)
        # The continued fraction converges fast on one side of the mean only.
        if x < (self.a + 1) / (self.a + self.b + 2):
            return _tail(self.a, self.b, x)
        return 1 - _tail(self.b, self.a, 1 - x)


def _tail(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function (DLMF 8.17.22, by Lentz's method)."""
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    tiny, c = 1e-300, 1.0
    d = 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    total = d
    for m in range(1, MOST_TERMS):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / ((1 + step * d) or tiny)
            c = (1 + step / c) or tiny
            total *= c * d
        if abs(c * d - 1) < 1e-12:  # noqa: PLR2004 - far below what is compared
            break
    return front * total


def by_moments(mean: float, variance: float) -> Beta:
    """Return the Beta distribution with these moments."""
    size = mean * (1 - mean) / max(variance, 1e-300) - 1
    return Beta(mean * size, (1 - mean) * size)


class Scale(NamedTuple):
    """How a value becomes x in 0…1, 1 being best: (value − low)/span, or 1 less that where less is better."""

    low: float
    span: float
    lower: bool

    def x(self, value: float) -> float:
        """Return a value on the scale."""
        x = (value - self.low) / self.span
        return x if self.lower else 1 - x


class Tasks:
    """The tasks that carry a series: by tag, the mean of the runs in the metric's unit, and their number."""

    def __init__(self, rows: Iterable[Task], places: Sequence[tuple[int, int]]) -> None:
        sums = defaultdict[str, list[float]](lambda: [0, 0])
        for row in rows:
            for place, scale in places:
                sums[row.tag][0] += row.sums[place] / scale
                sums[row.tag][1] += row.sums[place + 1]
        self.of = {tag: (y / n, n) for tag, (y, n) in sums.items() if n}
        self.k = len(self.of)

    def weights(self) -> Iterator[dict[str, float]]:
        """Yield the weights of the tasks: all alike, and by their runs."""
        runs = sum(n for _, n in self.of.values())
        yield dict.fromkeys(self.of, 1.0)
        yield {tag: self.k * n / runs for tag, (_, n) in self.of.items()}

    def moments(
        self, weights: dict[str, float], scale: Scale, failed: int, passed: int
    ) -> tuple[float, float]:
        """Return mean and variance of the posterior; `failed` and `passed` are the prior tasks."""
        size = self.k + failed + passed
        weighed = [(scale.x(value), weights[tag]) for tag, (value, _) in self.of.items()]
        mean = (sum(w * x for x, w in weighed) + passed) / size
        squares = sum((w * (x - mean)) ** 2 for x, w in weighed)
        squares += failed * mean**2 + passed * (1 - mean) ** 2
        return mean, squares / (size * (size + 1))

    def posteriors(self, scale: Scale) -> list[Beta]:
        """Return the posterior of the mean under both weightings."""
        return [by_moments(*self.moments(weights, scale, 1, 1)) for weights in self.weights()]


def _is_of(column: Column, series: str) -> bool:
    if column.metric != "success":
        return column.metric == series
    over = SUCCESSES.get(series)
    return over is not None and column.condition is not None and over(column.condition)


def differences(first: Tasks, second: Tasks) -> Iterator[Beta]:
    """Yield the posterior of (1 − a + b)/2 under both weightings; prior tasks speak for a and against b."""
    scale = Scale(0, 1, lower=True)
    shared = first.of.keys() & second.of.keys()
    for one, two in zip(first.weights(), second.weights(), strict=True):
        mean_a, var_a = first.moments(one, scale, 0, 1)
        mean_b, var_b = second.moments(two, scale, 1, 0)
        covariance = sum(
            one[tag] * two[tag] * (first.of[tag][0] - mean_a) * (second.of[tag][0] - mean_b) for tag in shared
        )
        covariance /= sqrt((first.k + 1) * (first.k + 2) * (second.k + 1) * (second.k + 2))
        middle = min(max((1 - mean_a + mean_b) / 2, 1e-12), 1 - 1e-12)
        variance = (var_a + var_b - 2 * covariance) / 4
        yield by_moments(middle, min(max(variance, 1e-18), middle * (1 - middle) * (1 - 1e-9)))


def value(predicate: Predicate, criterion: CriterionClaim, tier: str) -> float | None:
    """Return the value of a criterion at a tier, from totals over runs; None where they do not give it."""
    table, metric = predicate.profile_of_reliability, criterion.metric
    if metric == "domain_min":
        domains = {cell.domain for cell in table.cells if cell.condition != NOMINAL}
        rates = [_rate(table, "r_op", domain) for domain in domains]
        return min((rate for rate in rates if rate is not None), default=None)
    if metric == "gap":
        nominal, faults = (_rate(table, series) for series in DIFFERENCES[metric])
        return None if nominal is None or faults is None else 100 * (nominal - faults)
    if metric == "posterior":
        tau = _tau(predicate, tier)
        return None if tau is None else 1 - _over_runs(table).below(tau)
    if metric in SUCCESSES:
        return _rate(table, metric)
    columns = (column for column in table.columns if column.metric == metric and column.n)
    return next((column.y / (column.scale * column.n) for column in columns), None)


def _rate(table: TaskTable, series: str, domain: str | None = None) -> float | None:
    successes, runs = _totals(table, series, domain)
    return successes / runs if runs else None


def _totals(table: TaskTable, series: str, domain: str | None = None) -> tuple[int, int]:
    over = SUCCESSES[series]
    cells = [cell for cell in table.cells if over(cell.condition) and domain in {None, cell.domain}]
    return sum(cell.successes for cell in cells), sum(cell.runs for cell in cells)


def _tau(predicate: Predicate, tier: str) -> float | None:
    """Return what a tier asks of r_op, which is the τ of its posterior."""
    asked = (row.tiers.get(tier) for row in predicate.criteria if row.metric == "r_op")
    return next((float(at.threshold) for at in asked if at is not None), None)


def _over_runs(table: TaskTable) -> Beta:
    successes, runs = _totals(table, "r_op")
    return Beta(1 + successes, 1 + runs - successes)


_LAST: Final[dict[str, Any]] = {}
"""The parts of the table that was looked at last, by metric: rows of one metric share them."""


class Again(NamedTuple):
    """A bound computed again: the tasks k that it rests on, the least k, and whether the bound is right."""

    k: int
    least: float
    right: bool


def again(predicate: Predicate, criterion: CriterionClaim, tier: str) -> Again | str:
    """Return the bound of a criterion at a tier computed again, or why it cannot be."""
    at = criterion.tiers[tier]
    bounded, metric = at.bounded, criterion.metric
    assert bounded is not None  # noqa: S101 - the caller asks for rows with a bound
    if reason := _unchecked(predicate, criterion):
        return reason
    threshold, bound = float(at.threshold), float(bounded.bound or "nan")
    table, error = predicate.profile_of_reliability, max(1 - float(bounded.confidence), HALF_DIGIT)
    if metric == "posterior":
        return _posterior(predicate, criterion, tier)
    if metric in DIFFERENCES:
        first, second = _parts(table, metric)
        laws = list(differences(first, second)) if min(first.k, second.k) else []
        half = Scale(-100, 200, lower=False)
        least = _least(1 - threshold / 100, error)
        return Again(min(first.k, second.k), least, _is_limit(laws, half, bound, error, LAST_DIGIT))
    if metric in ATTESTED:
        scale, k = _scale(metric, [], lower=_lower(at)), criterion.n or 0
        x = scale.x(float(criterion.value or 0))
        law = [Beta(1 + k * x, 1 + k * (1 - x))]
        return Again(k, _least(scale.x(threshold), error), _is_limit(law, scale, bound, error, LAST_DIGIT))
    parts = _parts(table, metric)
    scale = _scale(metric, parts, lower=_lower(at))
    laws = [law for part in parts if part.k for law in part.posteriors(scale)]
    least = _least(_scale(metric, [], lower=_lower(at)).x(threshold), error)
    k = min((part.k for part in parts), default=0)
    return Again(k, least, _is_limit(laws, scale, bound, error, ROUNDING.get(metric, LAST_DIGIT)))


def _parts(table: TaskTable, metric: str) -> list[Tasks]:
    """Return the tasks that a row rests on, in parts where it has such; remembered for the last table."""
    if _LAST.get("table") is not table:
        _LAST.clear()
        _LAST["table"] = table
    if metric not in _LAST:
        _LAST[metric] = list(_gathered(table, metric))
    parts: list[Tasks] = _LAST[metric]
    return parts


def _gathered(table: TaskTable, metric: str) -> Iterator[Tasks]:
    names = DIFFERENCES.get(metric, ("r_op",) if metric in {"posterior", "domain_min"} else (metric,))
    for series in names:
        places = [(2 * n, column.scale) for n, column in enumerate(table.columns) if _is_of(column, series)]
        if metric != "domain_min":
            yield Tasks(table.rows, places)
            continue
        by_domain: defaultdict[int, list[Task]] = defaultdict(list)
        for row in table.rows:
            by_domain[row.domain].append(row)
        faults = {cell.domain for cell in table.cells if cell.condition != NOMINAL and cell.runs}
        for domain in sorted(faults):
            place = table.domains.index(domain) if domain in table.domains else -1
            yield Tasks(by_domain[place], places)


def tasks_of(table: TaskTable, metric: str) -> int | None:
    """Return the number of tasks that a row rests on, the least of its parts; None where it is not known."""
    if metric not in OF_SUCCESS | MEANS or len({row.tag for row in table.rows}) != table.tasks:
        return None
    return min((part.k for part in _parts(table, metric)), default=0)


def _posterior(predicate: Predicate, criterion: CriterionClaim, tier: str) -> Again | str:
    """Compute P(θ > τ) again, over tasks and at most as it is over runs."""
    at, table, tau = criterion.tiers[tier], predicate.profile_of_reliability, _tau(predicate, tier)
    bounded, (tasks,) = at.bounded, _parts(table, "posterior")
    if tau is None or bounded is None or not tasks.k:
        return "no row of r_op says what it must exceed"
    laws = [*tasks.posteriors(Scale(0, 1, lower=True)), _over_runs(table)]
    chance = min(1 - law.below(tau) for law in laws)
    error = max(1 - max(float(bounded.confidence), float(at.threshold)), HALF_DIGIT)
    right = bounded.bound is not None and abs(float(bounded.bound) - chance) <= LAST_DIGIT
    return Again(tasks.k, _least(tau, error), right)


def _is_limit(laws: Sequence[Beta], scale: Scale, bound: float, error: float, tolerance: float) -> bool:
    """Tell whether a bound is the worst of the limits below which the probability `error` lies."""
    x, by = scale.x(bound), tolerance / scale.span
    below = max((law.below(x - by) for law in laws), default=1.0)
    above = max((law.below(x + by) for law in laws), default=0.0)
    return below <= error + HALF_DIGIT and above >= error - HALF_DIGIT


def _scale(metric: str, parts: Sequence[Tasks], *, lower: bool) -> Scale:
    if metric in LIKERT:
        return Scale(1, 4, lower)
    if metric == "violations":
        return Scale(0, max([FIVE, *(value for part in parts for value, _ in part.of.values())]), lower)
    return Scale(0, 1, lower)


def _lower(at: RowAtTier) -> bool:
    """Tell whether a row asks for much, so that its bound is a lower one."""
    return at.operator in {">", ">="}


def _least(threshold: float, error: float) -> float:
    """Return the k from which on 1 − τ^(k+1) > δ, for the threshold τ on the scale 0 to 1."""
    if threshold <= 0:
        return 0
    return log(error) / log(threshold) - 1 if threshold < 1 and error > 0 else float("inf")


def _unchecked(predicate: Predicate, criterion: CriterionClaim) -> str | None:
    protocol, metric, table = predicate.protocol, criterion.metric, predicate.profile_of_reliability
    if predicate.assessment.profile.stopping == "anytime":
        return "bounds that hold at any time need the order of the runs"
    if metric in ATTESTED:
        return None
    by_judge = protocol.judge is not None and protocol.methodology != "trajectory"
    if metric in OF_SUCCESS and (by_judge or protocol.methodology == "independent_judge"):
        return "a model gave the outcomes, and only the evidence holds the labels that tell its errors"
    if len({row.tag for row in table.rows}) != table.tasks:
        return f"the task table keeps some of {table.tasks:,} tasks"
    if metric == "cascade_penalty" and predicate.evidence.harness_errors:
        return "harness errors are not told apart by condition"
    if metric not in OF_SUCCESS | MEANS:
        return "the task table does not hold this metric"
    if metric in DIFFERENCES and any(_lower(at) for at in criterion.tiers.values()):
        return "a difference that shall be large is not computed again"
    return None


def bounded_rows(predicate: Predicate) -> Iterator[tuple[CriterionClaim, str, Bound]]:
    """Yield the rows that state a bound, or that are met by bounds and need one."""
    for criterion in predicate.criteria:
        for tier, at in criterion.tiers.items():
            bounded = at.bounded
            if bounded is None or needs_none(criterion, at):
                continue
            if bounded.status == "met" or bounded.bound is not None:
                yield criterion, tier, bounded


def needs_none(criterion: CriterionClaim, at: RowAtTier) -> bool:
    """Tell whether a row stands by bounds as the table reads it: no bound is defined or could reach it."""
    highest = 5 if criterion.metric in LIKERT else 1
    return (
        isinstance(at.threshold, bool)
        or criterion.metric in WITHOUT_BOUND
        or (at.operator == ">=" and criterion.unit != "pp" and float(at.threshold) == highest)
    )


def disagreements(predicate: Predicate) -> Iterator[str]:
    """Yield the values and bounds that the integers of a statement do not give."""
    for criterion in predicate.criteria:
        for tier, at in criterion.tiers.items():
            stated = criterion.value if at.value is None else at.value
            expected = value(predicate, criterion, tier)
            near = ROUNDING.get(criterion.metric, LAST_DIGIT)
            if isinstance(stated, str) and expected is not None and abs(float(stated) - expected) > near:
                yield f"value of {criterion.id}: stated {stated}, expected {expected:.6f}"
    for criterion, tier, bounded in bounded_rows(predicate):
        name = f"the bound of criterion {criterion.id} at Tier {tier}"
        computed = again(predicate, criterion, tier)
        if isinstance(computed, str):
            continue
        if bounded.k != computed.k:
            yield f"{name} is said to rest on {bounded.k} tasks, and {computed.k} carry it"
        elif computed.k < computed.least:
            yield f"{name} rests on {computed.k} tasks, and flawless ones would not pass"
        elif not computed.right:
            yield f"{name} is not what the tasks give"


def unchecked(predicate: Predicate) -> dict[str, list[str]]:
    """Return the criteria whose bounds cannot be computed again, by the reason."""
    reasons = defaultdict[str, list[str]](list)
    for criterion, tier, _ in bounded_rows(predicate):
        computed = again(predicate, criterion, tier)
        if isinstance(computed, str) and criterion.id not in reasons[computed]:
            reasons[computed].append(criterion.id)
    return dict(reasons)
