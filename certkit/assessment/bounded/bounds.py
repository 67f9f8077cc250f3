"""Confidence bounds that respect clusters: numbers in, numbers out.

Runs of one cluster stand or fall together, so that n runs in k clusters say less than n independent ones.
The variance of a mean is taken over the clusters, turned into an effective number of runs, and the bound
is that of a Beta posterior on so many runs (a Gamma for counts, which have no upper end).

    >>> sample = Sample(mean=0.9, variance=0.9 * 0.1 / 200, n=200, k=200, mixed=20)
    >>> n_eff = effective_runs(sample, 0.95, icc0=1.0)
    >>> round(n_eff), round(beta_bound(sample.mean, n_eff, 0.95, lower=True), 4)
    (200, 0.8587)

The rules are those of the project's own statistics; `docs/explanation/bounded-reading.md` derives them, and
the simulation study shows their error rates.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import pi
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from certkit.assessment.statistics.estimators import least_failure_free

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certkit.assessment.metrics.series import Series, Totals

LEAST_CLUSTERS: Final = 10
"""Clusters below which no bound is given."""

MIXED: Final = 5
"""Clusters with both outcomes from which on their spread says how alike runs of one cluster are."""

HIGH: Final = Fraction(95, 100)
"""Confidence above which the uncertainty of the variance itself is allowed for."""


Number = Any
"""A float, or an array of them: the bounds of one sample, or of many at once."""


class Sample(Struct, frozen=True, kw_only=True, eq=False):
    """A mean over clusters, on the scale 0 to 1 (or of counts from 0 up); or arrays of many such means.

    `variance` is that of the mean, over clusters of `n` runs in all that are worth `k` of equal size;
    `mixed` is the number of clusters whose runs differ.
    """

    mean: Number
    variance: Number
    n: Number
    k: Number
    mixed: Number


def sample(of: Series, sums: Totals) -> Sample:
    """Return the mean of a series on the scale 0 to 1 and its cluster-robust variance.

    v = k/(k - 1) · Σ(y_c - p·n_c)² / n², exact until the last division; 0 where there is one cluster.
    """
    low, span = of.ends
    n, k = sums.n, sums.k
    squares = sums.yy * n * n - 2 * sums.y * sums.yn * n + sums.y * sums.y * sums.nn
    return Sample(
        mean=(sums.y - low * n) / (span * n),
        variance=k * squares / ((k - 1) * n**4 * span * span) if k > 1 else 0.0,
        n=n,
        k=sums.worth,
        mixed=sums.mixed,
    )


def clusters_needed(threshold: Fraction, confidence: Fraction) -> int:
    """Return the least number of clusters for a bound: 10, or the least failure-free n where that is more.

    `threshold` is on the scale 0 to 1, seen from the bad side.
    """
    return max(LEAST_CLUSTERS, least_failure_free(threshold, confidence) or 0)


def effective_runs(of: Sample, confidence: float, *, icc0: float, counts: bool = False) -> Number:
    """Return the number of independent runs that the clusters are worth at a confidence.

    n / deff · (t_{n-1} / t_{k-1})² with deff = max(1, v·n / (p(1 - p))), or v·n / mean for counts. Above
    .95, v is multiplied by (k - 1) / χ²_{k-1; .25}. With r < `MIXED` clusters that hold both outcomes,
    r/`MIXED` of the way to it from n / (1 + (n/k - 1)·icc0), where that is less. k is the number of
    clusters of equal size that say as much.
    """
    from scipy.special import chdtri, stdtrit  # noqa: PLC0415 - heavy

    spread = of.mean if counts else of.mean * (1 - of.mean)
    varies = spread > 0
    deff = np.where(varies, of.variance * of.n / np.where(varies, spread, 1.0), 0.0)
    if confidence > HIGH:
        deff = deff * (of.k - 1) / chdtri(of.k - 1, 0.75)  # chdtri takes the upper tail
    ratio = stdtrit(of.n - 1, confidence) / stdtrit(of.k - 1, confidence)
    runs = of.n / np.maximum(1.0, deff) * ratio * ratio
    alike = of.n / (1 + (of.n / of.k - 1) * icc0)
    told = np.minimum(1.0, of.mixed / MIXED)
    return np.where(runs > alike, alike + told * (runs - alike), runs)[()]


def above(mean: Number, n_eff: Number, threshold: float) -> Number:
    """Return P(θ > threshold) for θ ~ Beta(1 + p·n_eff, 1 + (1 - p)·n_eff)."""
    from scipy.special import betaincc  # noqa: PLC0415 - heavy

    return betaincc(1 + mean * n_eff, 1 + (1 - mean) * n_eff, min(max(threshold, 0.0), 1.0))


def beta_bound(mean: Number, n_eff: Number, confidence: float, *, lower: bool) -> Number:
    """Return the bound that θ ~ Beta(1 + p·n_eff, 1 + (1 - p)·n_eff) passes with `confidence`."""
    from scipy.special import betaincinv  # noqa: PLC0415 - heavy

    a, b = 1 + mean * n_eff, 1 + (1 - mean) * n_eff
    # The upper bound of θ is one minus the lower bound of 1 - θ, which keeps the digits near 1.
    return betaincinv(a, b, 1 - confidence) if lower else 1 - betaincinv(b, a, 1 - confidence)


def t_bound(of: Sample, confidence: float, *, lower: bool) -> Number:
    """Return the cluster-robust t bound of a mean, k - 1 degrees of freedom."""
    from scipy.special import stdtrit  # noqa: PLC0415 - heavy

    reach = stdtrit(of.k - 1, confidence) * np.sqrt(of.variance)
    return of.mean - reach if lower else of.mean + reach


def gamma_bound(mean: Number, n_eff: Number, confidence: float) -> Number:
    """Return the upper bound of a rate per run from a Gamma(1 + mean·n_eff, n_eff) posterior."""
    from scipy.special import gammaincinv  # noqa: PLC0415 - heavy

    return gammaincinv(1 + mean * n_eff, confidence) / n_eff


class Arm(Struct, frozen=True, kw_only=True):
    """One side of a difference: a proportion and what its runs are worth."""

    mean: float
    n_eff: float

    @property
    def beta(self) -> tuple[float, float]:
        """The parameters of its posterior."""
        return 1 + self.mean * self.n_eff, 1 + (1 - self.mean) * self.n_eff

    @property
    def variance(self) -> float:
        """The variance of its posterior."""
        a, b = self.beta
        return a * b / ((a + b) ** 2 * (a + b + 1))

    @property
    def mirrored(self) -> Arm:
        """The same of failures."""
        return Arm(mean=1 - self.mean, n_eff=self.n_eff)


def difference_below(one: Arm, other: Arm, limit: float) -> float:
    """Return P(θ_one - θ_other ≤ limit) for independent posteriors, by quadrature.

    ∫ f_other(x) F_one(x + limit) dx, tanh-sinh on every piece between the points where a factor bends.
    """
    from scipy.special import betainc, betaincinv, betaln, xlog1py, xlogy  # noqa: PLC0415 - heavy

    if one.variance < other.variance:  # across the wider law the narrower is a step between two nodes
        one, other = other.mirrored, one.mirrored
    (a, b), (c, d) = one.beta, other.beta
    tail = 1e-15
    low, high = float(betaincinv(c, d, tail)), 1 - float(betaincinv(d, c, tail))
    ends = sorted({low, high, *(point for point in (-limit, 1 - limit) if low < point < high)})
    total = mass = 0.0
    for start, stop in pairwise(ends):
        x, weight = _nodes(start, stop)
        density = weight * np.exp(xlogy(c - 1, x) + xlog1py(d - 1, -x) - betaln(c, d))
        mass += float(np.sum(density))
        total += float(np.sum(density * betainc(a, b, np.clip(x + limit, 0.0, 1.0))))
    return total / mass  # the logarithm of a large Beta function is good to nine digits only


def difference_bound(one: Arm, other: Arm, confidence: float) -> float:
    """Return the upper bound of θ_one - θ_other at a confidence."""
    low, high = -1.0, 1.0
    for _ in range(50):  # halves 2 to below 2e-15
        middle = (low + high) / 2
        low, high = (middle, high) if difference_below(one, other, middle) < confidence else (low, middle)
    return high


def _nodes(start: float, stop: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the nodes and weights of the tanh-sinh rule on an interval."""
    step = 1 / 24
    t = np.arange(-76, 77) * step
    inner = pi / 2 * np.sinh(t)
    half = (stop - start) / 2
    x = start + half + half * np.tanh(inner)
    weight = half * step * pi / 2 * np.cosh(t) / np.cosh(inner) ** 2
    return np.clip(x, start, stop), weight


def corrected(confidence: Fraction, attempt: int) -> Fraction:
    """Return the confidence that attempt number `attempt` at one profile must reach.

    The first keeps α = 1 - δ; attempt i ≥ 2 gets 0.2·α / (i(i - 1)), which sums to at most 1.2·α however
    many there are.
    """
    alpha = 1 - confidence
    if attempt > 1:
        alpha *= Fraction(2, 10) / (attempt * (attempt - 1))
    return 1 - alpha
