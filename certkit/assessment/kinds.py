"""Kinds of criteria: how a row's value, its bound and its least number of tasks follow from sums over tasks.

A kind reads a `Sample` and nothing else. The sample may be what was recorded (exact sums), the same with some
successes turned into failures, the same without each task, or evidence that was drawn (sums that are arrays,
one entry a task or a draw). So the bounded reading, fragility and `plan` are loops over kinds.

| kind | value | bound |
|---|---|---|
| `TaskMean` | mean over runs | task posterior, worse weighting |
| `Minimum` | least `TaskMean` of the domains | least bound, each at the whole confidence (Berger 1982) |
| `Difference` | one `TaskMean` less another, in points | Beta by moments, adverse prior tasks |
| `Posterior` | P(θ > τ) over runs, [26] §3.1 | P(θ > τ) over tasks, at most the value |
| `Product` | product of two `TaskMean` | product of two bounds, each with half of the error |
| `Attested` | as stated | Beta on the number that is stated |
| `AsItIs` | consistency | none is known |
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np
from msgspec import Struct

from certkit.assessment.metrics.catalogue import ATTESTED, CATALOGUE
from certkit.assessment.metrics.series import COST, METRICS
from certkit.assessment.rater_error import corrected as rater_error
from certkit.assessment.rater_error.labels import GRADED, SHARES
from certkit.assessment.statistics import estimators, posterior
from certkit.assessment.statistics.estimators import least_failure_free
from certkit.assessment.statistics.posterior import FIVE, PRIORS
from certkit.summary.tasks import ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.assessment.metrics.metric import Metric
    from certkit.assessment.rater_error.labels import Labelled
    from certkit.summary.tasks import Number, Shared, Tasks, TaskSums

_PP: Final = 100


class Sample(Protocol):
    """Evidence as kinds see it: sums over tasks by metric, in all or in one domain."""

    @property
    def domains(self) -> Sequence[str]:
        """The domains with runs under a fault."""

    @property
    def anytime(self) -> bool:
        """Whether bounds must hold although the evidence was looked at while it grew."""

    @property
    def labelled(self) -> Labelled | None:
        """What a person labelled, None where a program gave the outcomes."""

    def sums(self, series: str, domain: str | None = None) -> TaskSums | None:
        """Return the sums of a series, None where no run carries it."""

    def shared(self, first: str, second: str) -> Shared:
        """Return the products of two series over the tasks that carry both."""

    def tasks(self, series: str, domain: str | None = None) -> Tasks:
        """Return the values of every task; bounds that hold at any time need them."""


class Kind(Protocol):
    """What is known of a row's kind; values and bounds are in the metric's unit."""

    def parts(self, sample: Sample) -> Sequence[TaskMean]:
        """Return the task means that the row rests on."""

    def value(self, sample: Sample) -> Number:
        """Return what the table reading compares."""

    def bound(self, sample: Sample, confidence: Fraction, *, lower: bool) -> Number:
        """Return the bound that the truth passes with `confidence`: the lower one, or else the upper."""

    def least(self, threshold: Fraction, confidence: Fraction, *, lower: bool) -> int:
        """Return the number of tasks below which flawless tasks would not pass."""

    def falls(self, sample: Sample) -> Sequence[Fall]:
        """Return where a success turned into a failure lowers the row, nowhere where no outcome enters."""


class Fall(NamedTuple):
    """Where successes can turn into failures: the series that they lower, the domain, what is judged."""

    lowered: tuple[str, ...]
    domain: str | None
    kind: Kind


class TaskMean(Struct, frozen=True):
    """The mean of a series over runs, in all domains or in one."""

    series: str
    domain: str | None = None

    def parts(self, _: Sample) -> Sequence[TaskMean]:
        """Return itself."""
        return (self,)

    def sums(self, sample: Sample) -> TaskSums:
        """Return its sums; a row that is judged rests on runs."""
        sums = sample.sums(self.series, self.domain)
        assert sums is not None  # noqa: S101 - rows without runs are not judged
        return sums

    def value(self, sample: Sample) -> Number:
        """Return y / (scale · n), an exact fraction where the sums are exact."""
        sums = self.sums(sample)
        return ratio(sums.y, sums.n * sums.scale)

    def ends(self, sums: TaskSums | None) -> tuple[Fraction, Number]:
        """Return the least value and the span; counts end at the largest task mean, and at five at least."""
        spec = CATALOGUE.get(self.series, CATALOGUE["r_op"])
        if spec.high is not None:
            return spec.low, spec.high - spec.low
        most = Fraction(0) if sums is None else ratio(sums.most, sums.scale)
        span = np.maximum(most, FIVE) if isinstance(most, np.ndarray) else max(most, Fraction(FIVE))
        return spec.low, span

    def line(self, sums: TaskSums | None, *, lower: bool) -> tuple[Number, Number]:
        """Return intercept and slope of x in 0…1, 1 being best; `lower` where more of the value is better."""
        low, span = self.ends(sums)
        slope = ratio(1, span)
        start = -(low if isinstance(slope, Fraction) else float(low)) * slope
        return (start, slope) if lower else (1 - start, -slope)

    def back(self, x: Number, sums: TaskSums | None, *, lower: bool) -> Number:
        """Return x in the metric's unit."""
        low, span = self.ends(sums)
        span = span if isinstance(span, np.ndarray) else float(span)
        return float(low) + span * (x if lower else 1 - x)

    def shares(self, sums: TaskSums, *, lower: bool) -> TaskSums:
        """Return the sums of x."""
        return sums.on(*self.line(sums, lower=lower))

    def bound(self, sample: Sample, confidence: Fraction, *, lower: bool) -> Number:
        """Return the limit of the task posterior; at any time, at best the e-process's or the value."""
        sums, delta = self.sums(sample), float(confidence)
        shares = self.shares(sums, lower=lower)
        if sample.labelled is not None and lower and self.series in GRADED | SHARES:
            limit_of = rater_error.least if self.series in GRADED else rater_error.lower
            limit = limit_of(*sample.labelled.both(sample, shares, self.series, self.domain), delta)
        else:
            limit = self.back(posterior.lower(shares, delta), sums, lower=lower)
        if not sample.anytime:
            return limit
        always = posterior.anytime_limit(*self._values(sample, lower=lower), delta)
        worst = min if lower else max
        return worst(float(limit), self.back(always, sums, lower=lower), float(self.value(sample)))

    def chance(self, sample: Sample, threshold: Fraction, prior: Fraction | None = None) -> Number:
        """Return P(value > threshold) over tasks; at any time, and without a `prior`, at most 1 - 1/E."""
        sums = self.sums(sample)
        start, slope = self.line(sums, lower=True)
        limit, weight = float(start + slope * threshold), PRIORS["uniform"] if prior is None else prior
        if sample.labelled is not None and self.series in SHARES:
            seen = sample.labelled.both(sample, sums.on(start, slope), self.series, self.domain)
            return rater_error.chance(*seen, limit, weight)
        chance = posterior.above(sums.on(start, slope), limit, weight)
        if not sample.anytime or prior is not None:
            return chance
        evidence = posterior.anytime_evidence(*self._values(sample, lower=True), limit)
        return min(float(chance), max(0.0, -float(np.expm1(-evidence))))

    def _values(self, sample: Sample, *, lower: bool) -> tuple[posterior.Floats, posterior.Floats]:
        tasks = sample.tasks(self.series, self.domain)
        start, slope = map(float, self.line(self.sums(sample), lower=lower))
        return posterior.distinct(start + slope * (tasks.y / (tasks.scale * tasks.n)))

    def least(self, threshold: Fraction, confidence: Fraction, *, lower: bool) -> int:
        """Return the least k with 1 − τ^(k+1) > δ for the threshold τ on the scale 0 to 1."""
        start, slope = self.line(None, lower=lower)
        return least_failure_free(start + slope * threshold, confidence) or 1

    def falls(self, _: Sample) -> Sequence[Fall]:
        """Return its own series, where outcomes enter it."""
        return (Fall((self.series,), self.domain, self),) if self.series in COST else ()


class Minimum(Struct, frozen=True):
    """The least of a series over the domains."""

    series: str

    def parts(self, sample: Sample) -> Sequence[TaskMean]:
        """Return the mean in every domain."""
        return tuple(TaskMean(self.series, domain) for domain in sample.domains)

    def value(self, sample: Sample) -> Number:
        """Return the least mean."""
        return posterior.worse(part.value(sample) for part in self.parts(sample))

    def bound(self, sample: Sample, confidence: Fraction, *, lower: bool) -> Number:
        """Return the least bound; every domain must hold, so that no error is shared out."""
        return posterior.worse(part.bound(sample, confidence, lower=lower) for part in self.parts(sample))

    def least(self, threshold: Fraction, confidence: Fraction, *, lower: bool) -> int:
        """Return what every domain takes."""
        return TaskMean(self.series).least(threshold, confidence, lower=lower)

    def falls(self, sample: Sample) -> Sequence[Fall]:
        """Return every domain; the others stand as they are."""
        return tuple(Fall((self.series,), part.domain, part) for part in self.parts(sample))


class Difference(Struct, frozen=True):
    """The mean of one series less that of another, in percentage points; less is better."""

    first: str
    second: str

    def parts(self, _: Sample) -> Sequence[TaskMean]:
        """Return both sides."""
        return TaskMean(self.first), TaskMean(self.second)

    def value(self, sample: Sample) -> Number:
        """Return 100·(a − b), with one division, so that equality with a threshold is seen."""
        a, b = (part.sums(sample) for part in self.parts(sample))
        return ratio(_PP * (a.y * b.n * b.scale - b.y * a.n * a.scale), a.n * b.n * a.scale * b.scale)

    def bound(self, sample: Sample, confidence: Fraction, *, lower: bool) -> Number:
        """Return the upper limit of a − b, or the lower one, which is that of b − a upside down."""
        if lower:
            return -Difference(self.second, self.first).bound(sample, confidence, lower=False)
        a, b = self.parts(sample)
        both = sample.shared(self.first, self.second)
        limit = posterior.worst_difference(a.sums(sample), b.sums(sample), both, float(confidence))
        if sample.anytime:
            half = (1 + confidence) / 2
            limit = max(float(limit), a.bound(sample, half, lower=False) - b.bound(sample, half, lower=True))
        return _PP * limit

    def least(self, threshold: Fraction, confidence: Fraction, *, lower: bool) -> int:
        """Return what either side takes."""
        limit = threshold / _PP
        return least_failure_free(1 + limit if lower else 1 - limit, confidence) or 1

    def falls(self, _: Sample) -> Sequence[Fall]:
        """Return the side whose failures enlarge the difference."""
        return (Fall((self.second,), None, self),)


class Posterior(Struct, frozen=True):
    """The probability that the success rate under faults exceeds τ."""

    tau: Fraction
    series: str = "r_op"

    def parts(self, _: Sample) -> Sequence[TaskMean]:
        """Return the success rate."""
        return (TaskMean(self.series),)

    def value(self, sample: Sample) -> Number:
        """Return P(θ > τ) for runs that count as independent."""
        sums = TaskMean(self.series).sums(sample)
        return estimators.posterior(sums.y, sums.n, self.tau)

    def bound(self, sample: Sample, confidence: Fraction, *, lower: bool) -> Number:  # noqa: ARG002 - a Kind's
        """Return P(θ > τ) over tasks, at most the value over runs."""
        return posterior.worse((TaskMean(self.series).chance(sample, self.tau), self.value(sample)))

    def least(self, threshold: Fraction, confidence: Fraction, *, lower: bool) -> int:  # noqa: ARG002 - a Kind's
        """Return what τ takes at the confidence, or at the row's threshold where that is more."""
        return least_failure_free(self.tau, max(threshold, confidence)) or 1

    def falls(self, _: Sample) -> Sequence[Fall]:
        """Return the success rate."""
        return (Fall((self.series,), None, self),)


class Product(Struct, frozen=True):
    """The product of two means."""

    first: str
    second: str

    def parts(self, _: Sample) -> Sequence[TaskMean]:
        """Return both factors."""
        return TaskMean(self.first), TaskMean(self.second)

    def value(self, sample: Sample) -> Number:
        """Return the product of the values."""
        a, b = self.parts(sample)
        return a.value(sample) * b.value(sample)

    def bound(self, sample: Sample, confidence: Fraction, *, lower: bool) -> Number:
        """Return the product of two bounds at (1 + δ)/2 each."""
        half = (1 + confidence) / 2
        a, b = (part.bound(sample, half, lower=lower) for part in self.parts(sample))
        return a * b

    def least(self, threshold: Fraction, confidence: Fraction, *, lower: bool) -> int:
        """Return what either factor takes where both are alike."""
        root = Fraction(sqrt(max(threshold, Fraction(0))))
        return TaskMean(self.first).least(root, (1 + confidence) / 2, lower=lower)

    def falls(self, _: Sample) -> Sequence[Fall]:
        """Return both factors: a flipped run lowers both."""
        return (Fall((self.first, self.second), None, self),)


class Attested(Struct, frozen=True):
    """A number that the manifest states, with the number of observations it rests on."""

    metric: str

    def bounded(self, metric: Metric, confidence: Fraction, *, lower: bool) -> float:
        """Return the limit of Beta(1 + n·x, 1 + n·(1 − x)), x the stated value on the scale 0 to 1."""
        from scipy.special import betaincinv  # noqa: PLC0415 - heavy

        mean = TaskMean(self.metric)
        start, slope = mean.line(None, lower=lower)
        x = float(start + slope * Fraction(metric.value or 0))
        n = metric.n or 0
        limit = float(betaincinv(1 + n * x, 1 + n * (1 - x), 1 - float(confidence)))
        return float(mean.back(limit, None, lower=lower))

    def least(self, threshold: Fraction, confidence: Fraction, *, lower: bool) -> int:
        """Return the least n at which a flawless statement would pass."""
        return TaskMean(self.metric).least(threshold, confidence, lower=lower)


class AsItIs(Struct, frozen=True):
    """A row without a bound: consistency, compared by its windowed index."""

    metric: str

    def parts(self, _: Sample) -> Sequence[TaskMean]:
        """Return the efficiency of every run, whose scatter the index is of."""
        return (TaskMean("pei"),)


CASCADE: Final = Difference("single", "cascade")
KINDS: Final[dict[str, Kind | Attested | AsItIs]] = {
    **{name: TaskMean(name) for name in METRICS},
    "domain_min": Minimum("r_op"),
    "cascade_penalty": CASCADE,
    "gap": Difference("c_nom", "r_op"),
    "irs_2025": Product("irs", "frr_2025"),
    **{name: Attested(name) for name in ATTESTED},
    "csi": AsItIs("csi_windowed"),
    "csi_windowed": AsItIs("csi_windowed"),
}
"""The kind of every metric that has one; `posterior` has one for every τ, and three agreements have none."""


def kind_of(metric: str, tau: Fraction | None) -> Kind | Attested | AsItIs | None:
    """Return the kind of a row; `tau` is the aggregate threshold of its tier."""
    if metric == "posterior" and tau is not None:
        return Posterior(tau)
    return KINDS.get(metric)


def fewest(sample: Sample, metric: str) -> int | None:
    """Return how many tasks carry a metric, the fewest where it has parts; None where tasks carry none."""
    kind = kind_of(metric, Fraction(0))
    if kind is None or isinstance(kind, Attested):
        return None
    sums = [sample.sums(part.series, part.domain) for part in kind.parts(sample)]
    return min((0 if part is None else int(part.k) for part in sums), default=0)


def holds(kind: Kind, bound: Number, confidence: Fraction) -> Number:
    """Tell whether a bound is high enough beside its threshold: a posterior must exceed its confidence."""
    return bound > float(confidence) if isinstance(kind, Posterior) else True
