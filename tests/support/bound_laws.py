"""The bounds of the bounded reading's oracle: sums by cluster in, numbers out.

Written from the design (statistics, "The bounded reading", and decision 25) with scipy.stats for the
distributions and numerical integration for differences and mixtures; imports nothing of certkit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise
from math import log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import integrate, optimize, stats

if TYPE_CHECKING:
    from collections.abc import Callable

FEW = 5
"""Clusters with both outcomes below which their spread is not trusted."""


@dataclass(frozen=True)
class Groups:
    """Sums of values and numbers of runs by cluster, the values lying from `low` to `high` a run."""

    runs: tuple[int, ...]
    sums: tuple[Fraction, ...]
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)

    @property
    def k(self) -> int:
        return len(self.runs)

    @property
    def equal(self) -> float:
        """How many clusters of one size say as much."""
        return sum(self.runs) ** 2 / sum(n * n for n in self.runs)

    @property
    def n(self) -> int:
        return sum(self.runs)

    @cached_property
    def mean(self) -> Fraction:
        return sum(self.sums, Fraction(0)) / self.n

    @cached_property
    def variance(self) -> Fraction:
        """The cluster-robust variance of the mean."""
        squares = sum(
            ((y - self.mean * n) ** 2 for n, y in zip(self.runs, self.sums, strict=True)), Fraction(0)
        )
        return Fraction(self.k, self.k - 1) * squares / self.n**2


def corrected(confidence: Fraction, attempt: int) -> Fraction:
    """Return the confidence that the i-th attempt has to hold."""
    if attempt == 1:
        return confidence
    return 1 - (1 - confidence) / 5 / (attempt * (attempt - 1))


@cache
def failure_free(threshold: Fraction, confidence: Fraction) -> int:
    """Return the least number of successes without a failure that show more than `threshold`."""
    if threshold <= 0:
        return 0
    n = 0
    while 1 - threshold ** (n + 1) <= confidence:
        n += 1
    return n


def worth(groups: Groups, confidence: float, spread: Fraction, few: int, icc0: float) -> float:
    """Return n_eff; `spread` is the variance of one run, `few` the clusters with both outcomes.

    Up to five such clusters it is graded between runs that are alike and what the clusters show.
    """
    n, k = groups.n, groups.equal
    effect = float(groups.variance * n / spread) if spread else 0.0
    if confidence > 0.95:
        effect *= (k - 1) / stats.chi2.ppf(0.25, k - 1)
    ratio = float(stats.t.ppf(confidence, n - 1) / stats.t.ppf(confidence, k - 1))
    shown = n / max(1.0, effect) * ratio**2
    alike = n / (1 + (n / k - 1) * icc0)
    if few >= FEW or shown <= alike:
        return shown
    return few / FEW * shown + (1 - few / FEW) * alike


def bernoulli_worth(groups: Groups, confidence: float, icc0: float) -> tuple[float, float]:
    """Return (p, n_eff) of a mean scaled to 0…1."""
    width = groups.high - groups.low
    p = (groups.mean - groups.low) / width
    pairs = list(zip(groups.runs, groups.sums, strict=True))
    mixed = sum(1 for n, y in pairs if n * groups.low < y < n * groups.high)
    return float(p), worth(groups, confidence, p * (1 - p) * width**2, mixed, icc0)


def beta(p: float, n_eff: float) -> Any:
    return stats.beta(1 + p * n_eff, 1 + (1 - p) * n_eff)


def lower_proportion(groups: Groups, confidence: float, icc0: float) -> tuple[float, float]:
    p, n_eff = bernoulli_worth(groups, confidence, icc0)
    return float(beta(p, n_eff).isf(confidence)), n_eff


def lower_mean(groups: Groups, confidence: float, icc0: float) -> tuple[float, float]:
    """Return the worse of the t bound and the Beta bound, and n_eff."""
    p, n_eff = bernoulli_worth(groups, confidence, icc0)
    scaled = float(groups.low) + float(groups.high - groups.low) * float(beta(p, n_eff).isf(confidence))
    error = sqrt(groups.variance) * float(stats.t.ppf(confidence, groups.equal - 1))
    return min(scaled, float(groups.mean) - error), n_eff


def upper_rate(groups: Groups, confidence: float, icc0: float) -> tuple[float, float]:
    """Return the worse of the t bound and the Gamma bound on a count per run, and n_eff."""
    few = sum(1 for y in groups.sums if y)
    n_eff = worth(groups, confidence, groups.mean, few, icc0)
    gamma = float(stats.gamma(1 + float(groups.mean) * n_eff, scale=1 / n_eff).ppf(confidence))
    error = sqrt(groups.variance) * float(stats.t.ppf(confidence, groups.equal - 1))
    return max(gamma, float(groups.mean) + error), n_eff


def difference_cdf(d: float, left: Any, right: Any) -> float:
    """Return P(left - right < d) of two independent Beta laws by numerical integration."""
    shares = (1e-15, 1e-9, 1e-6, 1e-4, 1e-2, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-4, 1 - 1e-6, 1 - 1e-9)
    cuts = {
        0.0,
        1.0,
        *right.ppf(shares),
        *right.isf(shares),
        *(left.ppf(shares) - d),
        *(left.isf(shares) - d),
    }
    points = sorted(float(cut) for cut in cuts if 0 <= cut <= 1)

    def density(x: Any, /) -> Any:
        return right.pdf(x) * left.cdf(x + d)

    return sum(float(integrate.fixed_quad(density, a, b, n=40)[0]) for a, b in pairwise(points))


def upper_difference(left: Groups, right: Groups, confidence: float, icc0: float) -> tuple[float, float]:
    """Return the upper bound on the difference of two rates, and the smaller n_eff."""
    one, two = (bernoulli_worth(arm, confidence, icc0) for arm in (left, right))
    laws = beta(*one), beta(*two)
    bound = optimize.brentq(lambda d: difference_cdf(d, *laws) - confidence, -1, 1, xtol=1e-13, rtol=1e-13)
    return float(bound), min(one[1], two[1])


# --- bounds that hold at any time ---------------------------------------------------------------------


def log_mixture(factors: Callable[[float], float], low: float, high: float, samples: int = 400) -> float:
    """Return the logarithm of the mean of exp(factors) between two ends, by adaptive quadrature."""
    grid = np.linspace(low, high, samples + 1)[1:-1]
    logs = np.array([factors(float(x)) for x in grid])
    most = float(logs.max())
    top = float(grid[int(logs.argmax())])
    near = (high - low) / samples
    cuts = sorted({low, max(low, top - 5 * near), top, min(high, top + 5 * near), high})
    area = sum(
        integrate.quad(lambda x: np.exp(factors(x) - most), a, b, epsabs=0, epsrel=1e-11, limit=200)[0]
        for a, b in pairwise(cuts)
    )
    return most + log(area / (high - low))


def log_evidence(groups: Groups, threshold: float, *, mirrored: bool = False) -> float:
    """Return log E(τ) of the cluster means on the scale 0 to 1."""
    width = groups.high - groups.low
    exact = [(y / n - groups.low) / width for n, y in zip(groups.runs, groups.sums, strict=True)]
    means = np.array([float(1 - x if mirrored else x) for x in exact])

    def factors(theta: float) -> float:
        up, down = theta / threshold, (1 - theta) / (1 - threshold)
        with np.errstate(divide="ignore"):
            return float(np.log(means * up + (1 - means) * down).sum())

    return log_mixture(factors, threshold, 1.0)


def lower_at_any_time(groups: Groups, confidence: float, *, mirrored: bool = False) -> float:
    """Return the largest τ whose evidence reaches 1/α, on the scale 0 to 1."""
    width = groups.high - groups.low
    average = (
        sum((float((y / n - groups.low) / width) for n, y in zip(groups.runs, groups.sums, strict=True)), 0.0)
        / groups.k
    )
    average = 1 - average if mirrored else average
    limit = -log(1 - confidence)
    if average < 1e-12:
        return 0.0

    def short(tau: float) -> float:
        return log_evidence(groups, tau, mirrored=mirrored) - limit

    return float(optimize.brentq(short, 1e-9, min(average, 1 - 1e-9), xtol=1e-13, rtol=1e-13))


def log_evidence_rate(mean: float, runs: float, threshold: float) -> float:
    """Return log E(τ) that a Poisson rate is below τ."""
    count = mean * runs

    def factors(rate: float) -> float:
        ratio = count * log(rate / threshold) if count else 0.0
        return ratio - (rate - threshold) * runs

    return log_mixture(factors, 0.0, threshold)


def upper_rate_at_any_time(groups: Groups, confidence: float, icc0: float) -> tuple[float, float]:
    few = sum(1 for y in groups.sums if y)
    n_eff, mean = worth(groups, confidence, groups.mean, few, icc0), float(groups.mean)
    limit = -log(1 - confidence)
    low = max(mean, 1e-9)
    high = 2 * low + 1 / n_eff
    while log_evidence_rate(mean, n_eff, high) < limit:
        high *= 2
    bound = optimize.brentq(
        lambda rate: log_evidence_rate(mean, n_eff, rate) - limit, low, high, xtol=1e-13, rtol=1e-13
    )
    return float(bound), n_eff
