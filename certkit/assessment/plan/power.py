"""How probably a row of the table is met, before a run is made.

The estimate that a number of runs will give is a random variable. Its distribution is a beta-binomial (a
negative binomial for counts, a Beta for means of known spread) that has the variance of runs in clusters,

    variance of one run / n · (1 + (n/k - 1)·ICC).

For every estimate that may come, the row is judged as it will be: by the threshold in the table reading, by
the functions of `certkit.assessment.bounded.bounds` in the bounded one. The design effect that will be found
varies too: as the expected one times χ² / df with k - 1 degrees of freedom, read at nine equally likely
values. The number of clusters that hold both outcomes is taken at its expectation.

    >>> runs = Runs(n=400, k=80, icc=0.1)
    >>> bar = Bar(threshold=0.8, operator=">", confidence=0.95)
    >>> round(chance(share(0.88), runs, bar), 2)
    0.9

Clusters are taken to be of one size. Nothing is drawn: the same question gets the same answer.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct, structs

from certkit.assessment.bounded import bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certkit.assessment.profile import Operator

    Floats = NDArray[np.float64]

EFFECTS: Final = 9
"""Equally likely values of the design effect that will be found."""

ESTIMATES: Final = 400
"""Values of the estimate that bounds are computed for; ten times as many where there is no bound."""

REACH: Final = 8.0
"""Standard deviations of the estimate on either side that are looked at."""


class Kind(StrEnum):
    """What one run gives: one of two ends, a value between them of known spread, or a count."""

    ENDS = "ends"
    BETWEEN = "between"
    COUNT = "count"


class Outcome(Struct, frozen=True, kw_only=True):
    """The expected mean and variance of one run's value, on the scale 0 to 1; of counts from 0 up."""

    mean: float
    variance: float
    kind: Kind


class Runs(Struct, frozen=True, kw_only=True):
    """`n` runs in `k` clusters of one size whose outcomes correlate by `icc`; n ≥ k ≥ 1."""

    n: int
    k: int
    icc: float

    @property
    def effect(self) -> float:
        """The design effect: by how much clusters enlarge the variance of a mean."""
        return 1 + (self.n / self.k - 1) * self.icc


class Bar(Struct, frozen=True, kw_only=True):
    """What a row asks, on the scale of its outcome; `confidence` None: of the estimate itself.

    With `level` the row asks for P(θ > threshold) > level. `student`: of the two bounds of a mean the worse
    counts. `every`: the row asks the best value of every run, which no bound could reach.
    """

    threshold: float
    operator: Operator
    confidence: float | None = None
    icc0: float = 1.0
    level: float | None = None
    student: bool = False
    every: bool = False

    def passed_by(self, value: bounds.Number) -> bounds.Number:
        """Tell whether estimates or bounds are on the good side."""
        limit = self.threshold
        if self.operator in {">", ">="}:
            return value > limit if self.operator == ">" else value >= limit
        return value < limit if self.operator == "<" else value <= limit


def share(mean: float) -> Outcome:
    """Return what a run of a proportion gives: also the mean of bounded values that spreads most."""
    return Outcome(mean=mean, variance=mean * (1 - mean), kind=Kind.ENDS)


def chance(of: Outcome, runs: Runs, bar: Bar) -> float:
    """Return the probability that a row on one proportion, mean or count is met."""
    if of.kind is not Kind.COUNT and bar.operator in {"<", "<="}:
        of, bar = _mirrored(of, bar)
    bounded = bar.confidence is not None and not bar.every
    means, weights = _estimates(of, runs, ESTIMATES if bounded else 10 * ESTIMATES)
    if bar.level is None:
        met = bar.passed_by(means)
    else:
        met = bounds.above(means, runs.n, bar.threshold) > bar.level
    if bounded:
        met = (met & _held(of, runs, bar, means)).mean(axis=0)
    return min(1.0, float(weights @ met))


def difference_chance(one: tuple[Outcome, Runs], other: tuple[Outcome, Runs], bar: Bar) -> float:
    """Return the probability that one proportion minus another stays below a threshold.

    The difference is taken as normal, arms as independent; an estimate z standard errors from what is
    expected is shared between the arms in proportion to their variances.
    """
    from scipy.special import ndtr  # noqa: PLC0415 - heavy

    variances = [of.variance / runs.n * runs.effect for of, runs in (one, other)]
    error = float(np.sqrt(sum(variances)))
    if error == 0:
        return float(_below(one, other, bar, one[0].mean, other[0].mean))
    low, high = -REACH, REACH
    for _ in range(20):
        z = (low + high) / 2
        ends = one[0].mean + z * variances[0] / error, other[0].mean - z * variances[1] / error
        first, second = (min(max(end, 0.0), 1.0) for end in ends)
        low, high = (z, high) if _below(one, other, bar, first, second) else (low, z)
    return float(ndtr(low))


def _below(
    one: tuple[Outcome, Runs], other: tuple[Outcome, Runs], bar: Bar, first: float, second: float
) -> bool:
    """Tell whether the row is met where the arms come out at `first` and `second`."""
    if not bar.passed_by(first - second):
        return False
    if bar.confidence is None:
        return True
    arms = []
    for (of, runs), mean in ((one, first), (other, second)):
        found = _sample(of, runs, np.array([mean]), np.maximum(1.0, runs.effect * _factors(runs.k)).mean())
        n_eff = bounds.effective_runs(found, bar.confidence, icc0=bar.icc0)
        arms.append(bounds.Arm(mean=mean, n_eff=float(n_eff[0])))
    return bounds.difference_below(arms[0], arms[1], bar.threshold) > bar.confidence


def _mirrored(of: Outcome, bar: Bar) -> tuple[Outcome, Bar]:
    """Return a row that asks for little as one that asks for much."""
    operator: Operator = ">" if bar.operator == "<" else ">="
    turned = structs.replace(bar, threshold=1 - bar.threshold, operator=operator)
    return structs.replace(of, mean=1 - of.mean), turned


def _held(of: Outcome, runs: Runs, bar: Bar, means: Floats) -> bounds.Number:
    """Tell for every design effect (rows) and estimate (columns) whether the bound passes."""
    confidence = bar.confidence or 0.0
    found = _sample(of, runs, means, (runs.effect * _factors(runs.k))[:, None])
    count = of.kind is Kind.COUNT
    n_eff = bounds.effective_runs(found, confidence, icc0=bar.icc0, counts=count)
    if bar.level is not None:
        return bounds.above(means, n_eff, bar.threshold) > max(bar.level, confidence)
    if count:
        gamma = bounds.gamma_bound(means, n_eff, confidence)
        return bar.passed_by(np.maximum(gamma, bounds.t_bound(found, confidence, lower=False)))
    bound = bounds.beta_bound(means, n_eff, confidence, lower=True)
    if bar.student:
        bound = np.minimum(bound, bounds.t_bound(found, confidence, lower=True))
    return bar.passed_by(bound)


def _factors(k: int) -> Floats:
    """Return equally likely values of χ² / df with k - 1 degrees of freedom."""
    from scipy.special import chdtri  # noqa: PLC0415 - heavy

    places = (np.arange(EFFECTS) + 0.5) / EFFECTS
    factors: Floats = chdtri(k - 1, places) / (k - 1)
    return factors


def _sample(of: Outcome, runs: Runs, means: Floats, effect: bounds.Number) -> bounds.Sample:
    """Return what the runs will be summed up as where the estimate is one of `means`."""
    if of.kind is Kind.COUNT:
        one = means * (of.variance / of.mean if of.mean else 1.0)
        mixed = runs.k * (1 - _none(runs, means, one))
    else:
        most = of.mean * (1 - of.mean)
        one = means * (1 - means) * (of.variance / most if most else 1.0)
        mixed = np.full_like(means, runs.k)
        if of.kind is Kind.ENDS:
            mixed = runs.k * np.maximum(0.0, 1 - _alike(runs, means) - _alike(runs, 1 - means))
    return bounds.Sample(mean=means, variance=one / runs.n * effect, n=runs.n, k=runs.k, mixed=mixed)


def _alike(runs: Runs, rate: Floats) -> Floats:
    """Return the probability that all runs of a cluster come out as `rate` has it."""
    from scipy.special import betaln  # noqa: PLC0415 - heavy

    size = runs.n / runs.k
    if runs.icc == 0:
        return np.asarray(rate**size)
    inner = np.clip(rate, 1e-12, 1 - 1e-12)
    a, b = inner * (1 - runs.icc) / runs.icc, (1 - inner) * (1 - runs.icc) / runs.icc
    return np.asarray(np.exp(betaln(a + size, b) - betaln(a, b)))


def _none(runs: Runs, mean: Floats, variance: Floats) -> Floats:
    """Return the probability that a cluster counts nothing: negative binomial, at least Poisson."""
    size = runs.n / runs.k
    expected = size * mean
    extra = np.maximum(size * variance * runs.effect - expected, 1e-9 * (expected + 1e-300))
    shape = expected * expected / extra
    return np.asarray(np.exp(-shape * np.log1p(np.divide(expected, shape, where=shape > 0, out=0 * shape))))


def _estimates(of: Outcome, runs: Runs, most: int) -> tuple[Floats, Floats]:
    """Return at most about `most` values that the estimate may take, and their probabilities."""
    variance = of.variance / runs.n * runs.effect
    if variance == 0:
        return np.array([of.mean]), np.ones(1)
    reach = REACH * np.sqrt(max(variance, of.mean / runs.n if of.kind is Kind.COUNT else 0.0))
    low, high = max(0.0, of.mean - reach), of.mean + reach
    if of.kind is not Kind.COUNT:
        high = min(1.0, high)
    if of.kind is Kind.BETWEEN:
        return _beta(of.mean, variance, np.linspace(low, high, most + 1))
    first, last = int(low * runs.n), int(np.ceil(high * runs.n))
    y = np.arange(first, last + 1, max(1, (last - first) // most), dtype=np.float64)
    weights = np.exp(_counts(of, runs, y) if of.kind is Kind.COUNT else _ends(of, runs, y))
    return y / runs.n, weights / weights.sum()


def _beta(mean: float, variance: float, edges: Floats) -> tuple[Floats, Floats]:
    from scipy.special import betainc  # noqa: PLC0415 - heavy

    size = mean * (1 - mean) / variance - 1
    weights = np.diff(betainc(mean * size, (1 - mean) * size, edges))
    return (edges[1:] + edges[:-1]) / 2, weights / weights.sum()


def _ends(of: Outcome, runs: Runs, y: Floats) -> Floats:
    """Return log P(y of n), beta-binomial with the variance of the clusters; binomial at ICC 0."""
    from scipy.special import betaln, xlog1py, xlogy  # noqa: PLC0415 - heavy

    ways = -np.log1p(runs.n) - betaln(runs.n - y + 1, y + 1)
    correlation = (runs.effect - 1) / (runs.n - 1) if runs.n > 1 else 0.0
    if correlation == 0:
        return np.asarray(ways + xlogy(y, of.mean) + xlog1py(runs.n - y, -of.mean))
    size = (1 - correlation) / correlation
    a, b = of.mean * size, (1 - of.mean) * size
    return np.asarray(ways + betaln(y + a, runs.n - y + b) - betaln(a, b))


def _counts(of: Outcome, runs: Runs, y: Floats) -> Floats:
    """Return log P(y in all), negative binomial with the variance of the clusters; never below Poisson's."""
    from scipy.special import gammaln, xlogy  # noqa: PLC0415 - heavy

    mean, variance = runs.n * of.mean, runs.n * of.variance * runs.effect
    if variance <= mean:
        return np.asarray(xlogy(y, mean) - mean - gammaln(y + 1))
    shape = mean * mean / (variance - mean)
    odds = mean / (shape + mean)
    return np.asarray(
        gammaln(y + shape) - gammaln(shape) - gammaln(y + 1) + shape * np.log1p(-odds) + xlogy(y, odds)
    )
