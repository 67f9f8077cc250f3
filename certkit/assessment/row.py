"""A criterion at a tier: its value on averages, and what confidence limits show of it.

| metric | value | limit |
|---|---|---|
| a mean over runs | the mean | task posterior, worse weighting |
| weakest domain | least mean of the domains | least limit, each at the whole confidence (Berger 1982) |
| cascade penalty, gap | one mean less another, in points | Beta by moments, adverse prior tasks |
| confidence in success | P(θ > τ) over runs, [26] §3.1 | none: it is the same test as the success row |
| product (IRS 2025) | product of two means | product of two limits, each with half of the error |
| attested | as stated | Beta on the number that is stated, never printed |
| consistency | as printed | none is known |

Tasks must be declared independent, by a `cluster_id` on every record or by `protocol.tasks_independent`; with
neither, rows that rest on tasks are insufficient under limits, since no arithmetic sees families that nobody
names.
"""

from __future__ import annotations

from copy import copy
from fractions import Fraction
from functools import cache, partial
from math import sqrt
from typing import TYPE_CHECKING, Final

from msgspec import structs

from certkit.assessment import beta, bounds, raters
from certkit.assessment.assessment import Bounded, Row, Status
from certkit.assessment.bounds import MOST_VIOLATIONS, Tasks, corrected, least_tasks
from certkit.assessment.catalogue import ATTESTED, CATALOGUE, WEAKEST, Unit
from certkit.assessment.metric import LEVEL, Interval, Metric, Reason, withheld, written
from certkit.assessment.metrics import Groups, measure
from certkit.assessment.profile import Criterion, Profile, exact, margin_of, passes
from certkit.ground.document import State
from certkit.summary.summary import MEANS, PAIRS, SHARES, PairSeries, Summary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from certkit.bundle.facts import Facts

WITHOUT_LIMIT: Final = frozenset({"posterior", "csi"})
"""Metrics whose rows have no confidence limit of their own."""
_PP: Final = 100
_LEAST: Final = 2
"""Tasks below which there is no interval: one task shows nothing of how tasks differ."""
_PRODUCT: Final = ("irs", "frr_2025")


class Evidence:
    """A summary and its facts as rows read them under a profile: metrics, and the tasks that carry them."""

    def __init__(self, summary: Summary, facts: Facts, profile: Profile) -> None:
        self.summary, self.facts, self.profile = summary, facts, profile
        self.pairs: Mapping[str, PairSeries] = summary.pairs
        self.groups = Groups(summary)
        self.independent = summary.clustered or facts.protocol.tasks_independent is True
        self.by_model = raters.gives_outcomes(facts, summary)
        accepted: dict[str, Fraction] = {}
        for row in profile.criteria:
            least = exact(row.min_coverage)
            accepted[row.metric] = min(least, accepted.get(row.metric, least))
        self.metrics = {
            name: withheld(metric, accepted.get(name, Fraction(1)))
            for name, metric in measure(self.groups, facts, profile.tau).items()
        }
        self._tasks: dict[tuple[str, str | None], Tasks | None] = {}
        self._limits: dict[tuple[str, str | None, bool, bool], Callable[[Fraction], float]] = {}

    def replaced(
        self,
        metrics: Mapping[str, Metric],
        tasks: Mapping[tuple[str, str | None], Tasks | None],
        pairs: Mapping[str, PairSeries],
    ) -> Evidence:
        """Return the same evidence with other metrics, tasks and pairs; the summary stays as it is."""
        result = copy(self)
        result.metrics, result.pairs = self.metrics | dict(metrics), {**self.pairs, **pairs}
        result._tasks, result._limits = {**self._tasks, **tasks}, {}  # noqa: SLF001 - its own kind
        return result

    def tasks(self, series: str, domain: str | None = None) -> Tasks | None:
        """Return the tasks that carry a series, None where no run does."""
        key = (series, domain)
        if key not in self._tasks:
            self._tasks[key] = bounds.tasks(self.summary, series, domain)
        return self._tasks[key]

    def limit(
        self, series: str, domain: str | None, threshold: Fraction, *, more: bool
    ) -> Callable[[Fraction], float]:
        """Return what gives the limit of a series at a confidence, in 0…1; tiers share the laws behind it.

        Args:
            series: its name; some run carries it.
            domain: the only domain that counts, or None.
            threshold: in 0…1.
            more: whether more is better.
        """
        key = series, domain, more, threshold >= bounds.HALF
        if key not in self._limits:
            self._limits[key] = self._limit(series, domain, threshold, more=more)
        return self._limits[key]

    def _limit(
        self, series: str, domain: str | None, threshold: Fraction, *, more: bool
    ) -> Callable[[Fraction], float]:
        tasks = self.tasks(series, domain)
        assert tasks is not None  # noqa: S101 - rows without tasks have no limit
        on_scale = tasks.scaled(*scale(series, more=more))
        if self.by_model and series in raters.SHARES | raters.GRADED:
            return partial(
                raters.lower, raters.judged_laws(self.summary, series, domain, on_scale, threshold)
            )
        return partial(bounds.least_limit, bounds.laws(on_scale, threshold))

    def confidence(self, tier: int) -> Fraction:
        """Return the confidence that a row of `tier` must hold with, at this attempt."""
        return corrected(self.profile.confidence(tier), self.facts.protocol.attempt or 1)

    def parts(self, metric: str) -> Sequence[tuple[str, str | None]]:
        """Return the series that a metric rests on, each with its domain; nothing if it rests on no task."""
        if metric in WEAKEST:
            return [(WEAKEST[metric], name) for name in sorted(self.summary.share(WEAKEST[metric]).domains)]
        if metric in PAIRS:
            return [(name, None) for name in PAIRS[metric]]
        if metric == "irs_2025":
            return [(name, None) for name in _PRODUCT]
        if metric in {"posterior", "csi"}:
            return [("r_op" if metric == "posterior" else "pei", None)]
        return [(metric, None)] if metric in MEANS or metric in SHARES else []

    def interval(self, metric: Metric) -> Interval | None:
        """Return the 95 % interval of a metric over tasks; None where it is no mean over two tasks."""
        parts = self.parts(metric.id)
        if "domain" in metric.detail:
            parts = [part for part in parts if part[1] == metric.detail["domain"]]
        if metric.value is None or metric.id in WITHOUT_LIMIT or len(parts) != 1:
            return None
        return self.interval_of(*parts[0])

    def interval_of(self, series: str, domain: str | None = None) -> Interval | None:
        """Return the 95 % interval of a series over tasks, the wider of both weightings.

        The prior tasks pull both ends towards the middle: of 0 in 26 runs the lower end would be 0.1 %. So
        the interval is widened to the means over tasks and over runs. It then holds the value that it
        stands beside, and covers the truth no less often.

        Returns:
            The interval; None below two tasks.
        """
        tasks = self.tasks(series, domain)
        if tasks is None or tasks.k < _LEAST:
            return None
        start, slope = scale(series, more=True)
        on_scale = tasks.scaled(start, slope)
        # An interval keeps both prior tasks.
        laws, means = bounds.laws(on_scale, Fraction(1)), (float(on_scale.mean), float(on_scale.mean_by_runs))
        tail = (1 - LEVEL) / 2
        ends = (
            min(*means, *(law.quantile(tail) for law in laws)),
            max(*means, *(law.quantile(1 - tail) for law in laws)),
        )
        low, high = (round((end - float(start)) / float(slope), 9) for end in ends)
        return Interval(low=low, high=high, method="task-posterior")

    def fewest(self, metric: str) -> int | None:
        """Return how many tasks carry a metric, the fewest where it has parts; None if none can."""
        parts = self.parts(metric)
        if not parts and metric not in WEAKEST:
            return None
        counts = [0 if (tasks := self.tasks(*part)) is None else tasks.k for part in parts]
        return min(counts, default=0)


def rows(evidence: Evidence) -> tuple[Row, ...]:
    """Return every criterion at every tier, in the profile's order, tiers ascending."""
    return tuple(
        judge(evidence, criterion, tier)
        for criterion in evidence.profile.criteria
        for tier in evidence.profile.tier_numbers
    )


def judge(evidence: Evidence, criterion: Criterion, tier: int) -> Row:
    """Return one criterion at one tier, by averages and with confidence limits."""
    metric, threshold = evidence.metrics[criterion.metric], criterion.threshold(tier)
    k, value = evidence.fewest(metric.id), metric.at(tier)
    if threshold is None:
        return Row(
            id=criterion.id,
            metric=metric.id,
            tier=tier,
            status=Status.NOT_APPLICABLE,
            value=written(value, metric.id),
            k=k,
            provisional=criterion.provisional,
        )
    operator = criterion.operator_at(tier)
    status, reason = _unjudged(criterion, metric, tier, k)
    margin = None
    if status is None and value is not None:
        margin = margin_of(value, operator, threshold)
        status = Status.MET if passes(value, operator, threshold) else Status.NOT_MET
    status = status or Status.NOT_TESTED
    few = k is not None and k < criterion.min_n
    return Row(
        id=criterion.id,
        metric=metric.id,
        tier=tier,
        operator=operator,
        threshold=True if operator == "is" else float(threshold),
        status=status,
        value=written(value, metric.id),
        margin=None if margin is None else float(written(margin, metric.id) or 0),
        k=k,
        reason=reason,
        provisional=criterion.provisional,
        bounded=_bounded(evidence, criterion, tier, status, reason, few=few),
    )


def _unjudged(
    criterion: Criterion, metric: Metric, tier: int, k: int | None
) -> tuple[Status | None, Reason | None]:
    """Return why the row cannot be judged, or (None, None) where it can."""
    if metric.coverage < exact(criterion.min_coverage):
        return Status.INSUFFICIENT, metric.reason
    if metric.state is State.UNMEASURED or metric.at(tier) is None:
        return Status.NOT_TESTED, metric.reason
    if metric.blocked:
        return Status.INSUFFICIENT, metric.blocked
    # An attestation need not state its n; its absence fails the row only where a profile asks for a number.
    if criterion.min_n:
        count = metric.n if k is None else k
        if count is None:
            return Status.INSUFFICIENT, Reason("unstated-n", {"needed": criterion.min_n})
        if count < criterion.min_n:
            code = "few-items" if k is None else "few-tasks"
            return Status.INSUFFICIENT, Reason(code, {"k": count, "needed": criterion.min_n})
    return None, None


def hardest_rows(profile: Profile, tier: int) -> tuple[tuple[Criterion, int], ...]:
    """Return the rows of a tier and those below, with their tiers, that no higher one entails."""
    result = []
    for criterion in profile.criteria:
        taken: list[int] = []
        for number in range(tier, 0, -1):
            specified = criterion.threshold(number) is not None
            if specified and not any(_entails(profile, criterion, higher, number) for higher in taken):
                taken.append(number)
        result += [(criterion, number) for number in sorted(taken)]
    return tuple(result)


def _entails(profile: Profile, criterion: Criterion, higher: int, lower: int) -> bool:
    """Tell whether a row that is met at one tier is always met at a lower one."""
    harder, easier = criterion.threshold(higher), criterion.threshold(lower)
    operators = criterion.operator_at(higher), criterion.operator_at(lower)
    strict = harder == easier and operators[0] == operators[1]
    apart = harder is not None and easier is not None and passes(harder, operators[1], easier)
    tau = profile.tau.get(higher, 0) >= profile.tau.get(lower, 0) or criterion.metric != "posterior"
    return (strict or apart) and tau and profile.confidence(higher) >= profile.confidence(lower)


@cache
def scale(metric: str, *, more: bool) -> tuple[Fraction, Fraction]:
    """Return intercept and slope of the metric's value in 0…1, 1 being best; `more`: more of it is better."""
    spec = CATALOGUE[metric if metric in CATALOGUE else "r_op"]
    high = Fraction(MOST_VIOLATIONS) if spec.high is None else spec.high
    slope = 1 / (high - spec.low)
    start = -spec.low * slope
    return (start, slope) if more else (1 - start, -slope)


def _bounded(
    evidence: Evidence, criterion: Criterion, tier: int, status: Status, reason: Reason | None, *, few: bool
) -> Bounded | None:
    """Return a row that the tier specifies with confidence limits, None where it has none of its own."""
    metric = evidence.metrics[criterion.metric]
    if metric.id in WITHOUT_LIMIT:
        return None
    confidence = evidence.confidence(tier)
    plain = Bounded(status=Status.INSUFFICIENT, confidence=float(round(confidence, 9)))
    if status is Status.NOT_TESTED or (status is Status.INSUFFICIENT and not few):
        return structs.replace(plain, status=status, reason=reason)
    threshold, operator = criterion.threshold(tier) or Fraction(0), criterion.operator_at(tier)
    if metric.unit is Unit.BOOLEAN:
        return structs.replace(plain, status=status, reason=Reason("attested"))
    if operator == ">=" and threshold == CATALOGUE[metric.id].high:
        return structs.replace(plain, status=status, reason=Reason("every-run"))
    if metric.id in ATTESTED:
        return _attested(evidence, criterion, tier, status)
    parts = [(part, evidence.tasks(*part)) for part in evidence.parts(metric.id)]
    missing = _unbounded(evidence, metric.id, [part for part, _ in parts], more=operator in {">", ">="})
    if not parts:
        return structs.replace(plain, reason=missing)
    k = min(tasks.k if tasks else 0 for _, tasks in parts)
    n = sum(tasks.n for _, tasks in parts if tasks)
    if missing is None and k == 0:
        missing = Reason("no-task")
    if missing is None:
        missing = _too_few(criterion, tier, confidence, parts)
    if missing is not None:
        return structs.replace(plain, k=k, n=n, reason=missing)
    more = operator in {">", ">="}
    bound = _limit(evidence, metric.id, threshold, confidence, more=more)
    met = status is Status.MET and passes(bound, operator, threshold)
    status = Status.MET if met else Status.NOT_MET
    return structs.replace(plain, status=status, bound=round(bound, 9), k=k, n=n)


def _unbounded(
    evidence: Evidence, metric: str, parts: Sequence[tuple[str, str | None]], *, more: bool
) -> Reason | None:
    """Return why no limit of a row can be taken, None where it can."""
    if not parts:
        return Reason("no-limit-known", {"metric": metric})
    series = {name for name, _ in parts}
    if evidence.by_model and series & raters.COUNT_SUCCESS:
        state = evidence.summary.labels.state
        if state != "labelled":
            return Reason(f"labels-{state}")
        if metric in PAIRS or not more or not series <= raters.SHARES | raters.GRADED:
            return Reason("labels-do-not-correct", {"metric": metric})
    return None if evidence.independent else Reason("independence-undeclared")


def least_of(criterion: Criterion, tier: int, confidence: Fraction) -> int:
    """Return the tasks that a row takes in each part: where flawless ones just pass, or its `min_n`."""
    threshold, more = criterion.threshold(tier) or Fraction(0), criterion.operator_at(tier) in {">", ">="}
    if criterion.metric in PAIRS:
        limit = threshold / _PP
        needed = least_tasks(1 + limit if more else 1 - limit, confidence, both=True)
    elif criterion.metric == "irs_2025":
        root = Fraction(sqrt(max(threshold, Fraction(0))))
        needed = least_tasks(root, (1 + confidence) / 2, both=True)
    else:
        start, slope = scale(criterion.metric, more=more)
        needed = least_tasks(start + slope * threshold, confidence)
    return max(needed, criterion.min_n)


def _too_few(
    criterion: Criterion,
    tier: int,
    confidence: Fraction,
    parts: Sequence[tuple[tuple[str, str | None], Tasks | None]],
) -> Reason | None:
    needed = least_of(criterion, tier, confidence)
    for (_, domain), tasks in parts:
        k = 0 if tasks is None else tasks.k
        if k < needed:
            numbers = {"k": k, "needed": needed, "tier": tier}
            return (
                Reason("few-tasks-domain", {**numbers, "domain": domain})
                if domain
                else Reason("few-tasks-limit", numbers)
            )
    return None


def _limit(
    evidence: Evidence, metric: str, threshold: Fraction, confidence: Fraction, *, more: bool
) -> float:
    """Return the confidence limit of a row in the metric's unit: the lower one where more is better."""
    parts = evidence.parts(metric)
    if metric in PAIRS:
        (first, _), (second, _) = parts
        a, b = (first, second) if not more else (second, first)
        limit = _difference(evidence, metric, a, b, confidence)
        return limit if not more else -limit
    if metric == "irs_2025":
        half = (1 + confidence) / 2
        first_limit, second_limit = (
            _mean_limit(evidence, part, Fraction(1), half, more=more) for part in parts
        )
        return first_limit * second_limit
    limits = [_mean_limit(evidence, part, threshold, confidence, more=more) for part in parts]
    return min(limits) if more else max(limits)


def _mean_limit(
    evidence: Evidence, part: tuple[str, str | None], threshold: Fraction, confidence: Fraction, *, more: bool
) -> float:
    start, slope = scale(part[0], more=more)
    limit = evidence.limit(*part, start + slope * threshold, more=more)(confidence)
    return (limit - float(start)) / float(slope)


def _difference(evidence: Evidence, metric: str, first: str, second: str, confidence: Fraction) -> float:
    a, b = evidence.tasks(first), evidence.tasks(second)
    assert a is not None  # noqa: S101 - rows without tasks have no limit
    assert b is not None  # noqa: S101 - the same
    pairs = evidence.pairs.get(metric, PairSeries())
    if (first, second) != PAIRS[metric]:
        pairs = PairSeries(
            rows=tuple(sorted((b_, a_, t, yb, ya, yy) for a_, b_, t, ya, yb, yy in pairs.rows))
        )
    return _PP * bounds.upper_difference(a, b, pairs, confidence)


def _attested(evidence: Evidence, criterion: Criterion, tier: int, status: Status) -> Bounded:
    """Judge an attested mean by Beta(1 + n·x, 1 + n·(1 − x)), n being the number that is stated with it."""
    metric, confidence = evidence.metrics[criterion.metric], evidence.confidence(tier)
    threshold, operator = criterion.threshold(tier) or Fraction(0), criterion.operator_at(tier)
    plain = Bounded(status=Status.INSUFFICIENT, confidence=float(round(confidence, 9)), k=metric.n)
    if metric.n is None:
        return structs.replace(plain, reason=Reason("unstated-n", {"needed": 1}))
    more = operator in {">", ">="}
    start, slope = scale(metric.id, more=more)
    needed = least_tasks(start + slope * threshold, confidence, both=True)
    if metric.n < needed:
        return structs.replace(plain, reason=Reason("few-items", {"k": metric.n, "needed": needed}))
    x = float(start + slope * Fraction(metric.value or 0))
    limit = beta.quantile(float(1 - confidence), 1 + metric.n * x, 1 + metric.n * (1 - x))
    met = status is Status.MET and passes((limit - float(start)) / float(slope), operator, threshold)
    status = Status.MET if met else Status.NOT_MET
    return structs.replace(plain, status=status, reason=Reason("attested"))
