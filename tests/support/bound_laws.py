"""The bounds of the bounded reading's oracle: values and runs by task in, numbers out.

Written from the design (statistics, "One rule for every row") straight from its formulas, in fractions and
with scipy.stats for the distributions; imports nothing of certkit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import exp, log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import integrate, optimize, stats

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ONE = Fraction(1)


@dataclass(frozen=True)
class Groups:
    """Sums of values and numbers of runs by task, the values lying from `low` to `high` a run."""

    names: tuple[str, ...]
    runs: tuple[int, ...]
    sums: tuple[Fraction, ...]
    low: Fraction = Fraction(0)
    high: Fraction | None = Fraction(1)

    @property
    def k(self) -> int:
        return len(self.runs)

    @property
    def span(self) -> Fraction:
        """The width of the scale; counts end at the largest task mean, and at five at least."""
        if self.high is not None:
            return self.high - self.low
        return max([Fraction(5), *(y / n for n, y in zip(self.runs, self.sums, strict=True))])

    def best(self, *, lower: bool) -> dict[str, Fraction]:
        """Return every task's value in 0…1, 1 best: the most where much is asked, else the least."""
        up = {
            name: (y / n - self.low) / self.span
            for name, n, y in zip(self.names, self.runs, self.sums, strict=True)
        }
        return up if lower else {name: 1 - x for name, x in up.items()}

    def weightings(self) -> Iterator[dict[str, Fraction]]:
        """Yield the weights of the mean over tasks, then of the mean over runs."""
        n = sum(self.runs)
        yield dict.fromkeys(self.names, ONE)
        yield {name: Fraction(self.k * size, n) for name, size in zip(self.names, self.runs, strict=True)}

    def unscaled(self, x: float, *, lower: bool) -> float:
        return float(self.low) + float(self.span) * (x if lower else 1 - x)


def moments(
    x: Mapping[str, Fraction], w: Mapping[str, Fraction], failed: Fraction = ONE, passed: Fraction = ONE
) -> tuple[Fraction, Fraction]:
    """Return μ and V."""
    size = len(x) + failed + passed
    mu = (sum((w[c] * x[c] for c in x), Fraction(0)) + passed) / size
    squares = sum((w[c] ** 2 * (x[c] - mu) ** 2 for c in x), Fraction(0))
    return mu, (squares + failed * mu**2 + passed * (1 - mu) ** 2) / (size * (size + 1))


def fitted(mean: float, variance: float) -> Any:
    n = mean * (1 - mean) / variance - 1
    return stats.beta(mean * n, (1 - mean) * n)


def posteriors(groups: Groups, *, lower: bool, prior: Fraction = ONE) -> list[Any]:
    x = groups.best(lower=lower)
    return [fitted(*map(float, moments(x, w, prior, prior))) for w in groups.weightings()]


def limit(groups: Groups, level: float, *, lower: bool) -> float:
    """Return the bound in the metric's unit, the worse weighting's."""
    worst = min(float(law.ppf(1 - level)) for law in posteriors(groups, lower=lower))
    return groups.unscaled(worst, lower=lower)


def above(groups: Groups, tau: float) -> float:
    return min(float(law.sf(tau)) for law in posteriors(groups, lower=True))


def upper_difference(a: Groups, b: Groups, level: float) -> float:
    """Return the upper limit of a − b, with prior tasks that speak for a large difference."""
    x_a, x_b = a.best(lower=True), b.best(lower=True)
    both = set(x_a) & set(x_b)
    found = []
    for w_a, w_b in zip(a.weightings(), b.weightings(), strict=True):
        mu_a, v_a = moments(x_a, w_a, Fraction(0), ONE)
        mu_b, v_b = moments(x_b, w_b, ONE, Fraction(0))
        c = sum((w_a[t] * w_b[t] * (x_a[t] - mu_a) * (x_b[t] - mu_b) for t in both), Fraction(0))
        covariance = float(c) / sqrt((a.k + 1) * (a.k + 2) * (b.k + 1) * (b.k + 2))
        middle = float((1 - mu_a + mu_b) / 2)
        variance = (float(v_a + v_b) - 2 * covariance) / 4
        if middle <= 0 or middle >= 1 or variance <= 0:
            found.append(1 - 2 * middle)
        else:
            found.append(1 - 2 * float(fitted(middle, variance).ppf(1 - level)))
    return max(found)


@cache
def failure_free(threshold: Fraction, confidence: Fraction) -> int:
    """Return the least number of tasks at which flawless ones would pass, one at least."""
    k = 0
    while 1 - max(threshold, Fraction(0)) ** (k + 1) <= confidence:
        k += 1
    return max(k, 1)


def corrected(confidence: Fraction, attempt: int) -> Fraction:
    """Return the confidence that an attempt asks for."""
    if attempt == 1:
        return confidence
    return 1 - (1 - confidence) * Fraction(1, 5) / (attempt * (attempt - 1))


def log_evidence(x: Mapping[str, Fraction], tau: float) -> float:
    """Return log E(τ) by adaptive integration."""
    if tau <= 0:
        return float("inf")
    if tau >= 1:
        return float("-inf")
    values = np.array([float(v) for v in x.values()])

    def logs(theta: float) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log(values * theta / tau + (1 - values) * (1 - theta) / (1 - tau)).sum())

    best = optimize.minimize_scalar(lambda t: -logs(t), bounds=(tau, 1 - 1e-12), method="bounded")
    peak = max(logs(float(best.x)), logs(1.0), logs(tau))
    points = sorted({min(max(float(best.x) + d, tau), 1.0) for d in (-0.1, -0.03, -0.01, 0, 0.01, 0.03, 0.1)})
    area, _ = integrate.quad(lambda t: exp(logs(t) - peak), tau, 1, points=points, limit=500)
    return peak + log(area / (1 - tau)) if area > 0 else float("-inf")


def at_any_time(groups: Groups, level: float, *, lower: bool) -> float:
    """Return the bound at any time in the metric's unit, at best the ordinary one and the mean over runs."""
    x = groups.best(lower=lower)
    mean = float(sum(x.values()) / len(x))

    def lacking(tau: float) -> float:
        return float(np.clip(-log(1 - level) - log_evidence(x, tau), -1e3, 1e3))

    found = groups.unscaled(optimize.brentq(lacking, 0.0, mean, xtol=1e-14) if mean else 0.0, lower=lower)
    worst = min if lower else max
    return worst(found, limit(groups, level, lower=lower), float(sum(groups.sums) / sum(groups.runs)))
