"""The bounds of the bounded reading's oracle: values and runs by task in, numbers out.

Written from the design (statistics, "One rule for every row") straight from its formulas, in fractions and
with scipy.stats for the distributions; imports nothing of certkit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import sqrt
from typing import TYPE_CHECKING, Any

from scipy import stats

from tests.support.oracle import total

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
    high: Fraction = Fraction(1)

    @property
    def k(self) -> int:
        return len(self.runs)

    @property
    def span(self) -> Fraction:
        return self.high - self.low

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
    mu = (total(w[c] * x[c] for c in x) + passed) / size
    # Σ w²(x − μ)², written out so that fractions of one denominator are added as integers
    square, mixed, plain = (total(w[c] ** 2 * x[c] ** power for c in x) for power in (2, 1, 0))
    squares = square - 2 * mu * mixed + mu**2 * plain
    return mu, (squares + failed * mu**2 + passed * (1 - mu) ** 2) / (size * (size + 1))


def parameters(mean: float, variance: float) -> tuple[float, float]:
    """Return α and β of the Beta law with these moments."""
    n = mean * (1 - mean) / variance - 1
    return mean * n, (1 - mean) * n


def posteriors(groups: Groups, *, lower: bool, prior: Fraction = ONE) -> list[Any]:
    """Return the law of the mean over tasks, then of that over runs, with both prior tasks."""
    x = groups.best(lower=lower)
    return [stats.beta(*parameters(*map(float, moments(x, w, prior, prior)))) for w in groups.weightings()]


def limit(groups: Groups, level: float, *, lower: bool, tau: Fraction = ONE) -> float:
    """Return the bound in the metric's unit, the worse weighting's.

    Below one half (`tau`: the threshold in 0…1, 1 best) a passed prior task would pull upwards: only the
    failed one is left then.
    """
    x = groups.best(lower=lower)
    passed = ONE if tau >= Fraction(1, 2) else Fraction(0)
    worst = min(quantile(*moments(x, w, ONE, passed), 1 - level) for w in groups.weightings())
    return groups.unscaled(worst, lower=lower)


def quantile(mean: Fraction, variance: Fraction, share: float) -> float:
    """Return a quantile of the fitted law; a mean of 0 leaves nothing but 0."""
    return float(stats.beta.ppf(share, *parameters(float(mean), float(variance)))) if mean else 0.0


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
            found.append(1 - 2 * float(stats.beta.ppf(1 - level, *parameters(middle, variance))))
    return max(found)


@cache
def failure_free(threshold: Fraction, confidence: Fraction, *, single: bool = True) -> int:
    """Return the least number of tasks at which flawless ones would pass, one at least.

    `single`: the row is one mean, whose passed prior task goes where the threshold is below one half.
    """
    passed = 0 if single and threshold < Fraction(1, 2) else 1
    k = 1
    while 1 - max(threshold, Fraction(0)) ** (k + passed) <= confidence:
        k += 1
    return k


def corrected(confidence: Fraction, attempt: int) -> Fraction:
    """Return the confidence that an attempt asks for."""
    if attempt == 1:
        return confidence
    return 1 - (1 - confidence) * Fraction(1, 5) / (attempt * (attempt - 1))
