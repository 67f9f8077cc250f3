"""The task posterior: what k tasks show of the mean over all tasks such as these.

What must generalise is tasks, not runs. A task c has the value x_c in 0…1, the mean of its n_c runs, 1 being
best, and a weight w_c with Σw_c = k. Beside the k tasks stand one prior task that failed and one that passed:

    μ = (Σ w_c·x_c + 1) / (k + 2)      V = [Σ w_c²·(x_c − μ)² + μ² + (1 − μ)²] / ((k + 2)(k + 3))
    N = μ(1 − μ)/V − 1                 θ ~ Beta(μN, (1 − μ)N)

the posterior of a mean under a Dirichlet process with that prior (Ferguson 1973; Rubin 1981, R `bayesboot`),
fitted by moments. With one run a task it is Beta(1 + s, 1 + n − s) of [26] §3.1, to the last bit. The limit
is R's `qbeta(1 − δ, μN, (1 − μ)N)`. Tasks weigh alike (w_c = 1) or by their runs (w_c = k·n_c/n); the worse
counts.

    >>> lower(sums, 0.95)                                          # doctest: +SKIP
    0.8116

Every function takes sums of x: exact ones, and then rounds once, at the end; or arrays, many samples at once.
scipy is imported where it is needed, since importing it takes longer than a whole assessment.

A limit that holds at any time is for evidence that was looked at while it grew: the largest τ with
E(τ) ≥ 1/α, where E is the e-process of task means x_c in 0…1, a beta mixture (uniform over θ from τ to 1)

    E(τ) = 1/(1 - τ) · ∫ Π_c (x_c·θ/τ + (1 - x_c)·(1 - θ)/(1 - τ)) dθ

which for single runs is the ratio of the mixed likelihood to that at τ (Waudby-Smith & Ramdas 2024). Under a
true mean of at most τ it reaches 1/α at any time with a probability of at most α (Ville), if how often a
task runs does not depend on its results.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache
from math import inf, log, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from certkit.assessment.statistics.estimators import least
from certkit.summary.tasks import TaskSums, ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    from collections.abc import Iterable, Iterator

    from certkit.summary.tasks import Number, Shared


FIVE: Final = 5
"""Violations per run at which the quality factor of [26] eq. 5 is 0: the least upper end of their scale."""

PRIORS: Final[dict[str, Fraction]] = {
    "uniform": Fraction(1),
    "jeffreys": Fraction(1, 2),
    "sceptical": Fraction(5),
}
"""Weight of the failed and of the passed prior task: [26] §3.1, Jeffreys (1946), and five tasks each."""


class Beta(NamedTuple):
    """A Beta distribution by its mean and the sum N of its two parameters, with its variance."""

    mean: Number
    size: Number
    variance: Number

    def quantile(self, probability: float) -> Number:
        """Return R's `qbeta(probability, μN, (1 − μ)N)`."""
        from scipy.special import betaincinv  # noqa: PLC0415 - heavy

        return _plain(betaincinv(*self._parameters(), probability))

    def above(self, threshold: float) -> Number:
        """Return P(θ > threshold), R's `pbeta(threshold, μN, (1 − μ)N, lower = FALSE)`."""
        from scipy.special import betaincc  # noqa: PLC0415 - heavy

        return _plain(betaincc(*self._parameters(), min(max(threshold, 0.0), 1.0)))

    def _parameters(self) -> tuple[Number, Number]:
        a, b = self.mean * self.size, (1 - self.mean) * self.size
        return (a, b) if isinstance(a, np.ndarray) else (float(a), float(b))


def moments(sums: TaskSums, failed: Number = 1, passed: Number = 1) -> tuple[Number, Number]:
    """Return mean and variance of θ where tasks weigh by their runs, w_c = k·n_c/n.

    `failed` and `passed` are the weights of the prior tasks.
    """
    # Few steps, since each one on fractions takes a common divisor.
    share, size = ratio(sums.k, sums.n * sums.scale), sums.k + failed + passed
    mean = ratio(share * sums.y + passed, size)
    unit = mean * sums.scale
    spread = share * share * (sums.yy - unit * (2 * sums.yn - unit * sums.nn))
    prior = mean * ((failed + passed) * mean - 2 * passed) + passed
    return mean, ratio(spread + prior, size * (size + 1))


def beta(mean: Number, variance: Number) -> Beta:
    """Return the Beta distribution with these moments."""
    if isinstance(variance, np.ndarray):
        variance = np.maximum(variance, 1e-300)
    return Beta(mean, mean * (1 - mean) / variance - 1, variance)


def posteriors(sums: TaskSums, prior: Fraction = PRIORS["uniform"]) -> Iterator[Beta]:
    """Yield the posterior of both weightings; `prior` is the weight of the two prior tasks."""
    if not isinstance(sums.y, np.ndarray):
        return iter(_of_exact(sums, prior))
    return (beta(*moments(part, float(prior), float(prior))) for part in (sums.alike, sums))


@lru_cache(maxsize=64)  # every tier and both readings ask the same of one object
def _of_exact(sums: TaskSums, prior: Fraction) -> tuple[Beta, ...]:
    return tuple(beta(*moments(part, prior, prior)) for part in (sums.alike, sums))


def lower(sums: TaskSums, confidence: float) -> Number:
    """Return the lower limit of x, the worse of both weightings."""
    return worse(part.quantile(1 - confidence) for part in posteriors(sums))


def above(sums: TaskSums, threshold: float, prior: Fraction = PRIORS["uniform"]) -> Number:
    """Return P(x > threshold), the worse of both weightings."""
    return worse(part.above(threshold) for part in posteriors(sums, prior))


def difference(a: TaskSums, b: TaskSums, across: tuple[Number, ...]) -> Beta:
    """Return the posterior of (1 − a + b)/2 where tasks weigh by their runs: Beta by moments.

    Prior tasks are adverse: one passed of a, one failed of b. C = Σ_shared w_a·w_b·(x_a − μ_a)(x_b − μ_b)
    over the geometric mean of (k + 1)(k + 2) of both sides is the covariance that shared tasks give.
    `across` are Σw_a·w_b, Σw_a·x_a·w_b·x_b, Σw_a·x_a·w_b, Σw_a·w_b·x_b.
    """
    mean_a, var_a = moments(a, 0, 1)
    mean_b, var_b = moments(b, 1, 0)
    ww, xx, x_a, x_b = across
    covariance = xx - mean_b * x_a - mean_a * x_b + mean_a * mean_b * ww
    sizes = (a.k + 1) * (a.k + 2) * (b.k + 1) * (b.k + 2)
    covariance = _float(covariance) / (np.sqrt(sizes) if isinstance(sizes, np.ndarray) else sqrt(sizes))
    variance = _float(var_a) + _float(var_b) - 2 * covariance
    # Where neither side spreads at all the law is a point; a hair of spread keeps the Beta defined.
    middle = np.clip((1 - _float(mean_a - mean_b)) / 2, 1e-12, 1 - 1e-12)
    return beta(middle, np.clip(variance / 4, 1e-18, middle * (1 - middle) * (1 - 1e-9)))


def _by_runs(a: TaskSums, b: TaskSums, both: Shared) -> tuple[Number, ...]:
    first, second = ratio(a.k, a.n * a.scale), ratio(b.k, b.n * b.scale)
    plain_a, plain_b = ratio(a.k, a.n), ratio(b.k, b.n)
    return (
        plain_a * plain_b * both.nn,
        first * second * both.yy,
        first * plain_b * both.yn,
        plain_a * second * both.ny,
    )


def worst_difference(a: TaskSums, b: TaskSums, both: Shared, confidence: float) -> Number:
    """Return the upper limit of a − b, the worse of both weightings."""
    alike = (
        both.k,
        ratio(both.xx, a.scale * b.scale),
        ratio(both.x_a, a.scale),
        ratio(both.x_b, b.scale),
    )
    laws = difference(a.alike, b.alike, alike), difference(a, b, _by_runs(a, b, both))
    return 1 - 2 * worse(law.quantile(1 - confidence) for law in laws)


def corrected(confidence: Fraction, attempt: int) -> Fraction:
    """Return the confidence that attempt number `attempt` at one profile must reach.

    The first keeps α = 1 - δ; attempt i ≥ 2 gets 0.2·α / (i(i - 1)), which sums to at most 1.2·α however
    many there are (alpha spending, Lan & DeMets 1983).
    """
    alpha = 1 - confidence
    if attempt > 1:
        alpha *= Fraction(2, 10) / (attempt * (attempt - 1))
    return 1 - alpha


@lru_cache  # a row is asked again by every sample that leaves something out
def tasks_needed(
    rate: float, threshold: float, confidence: float, *, spread: float, power: float = 0.8416
) -> int | None:
    """Return about how many tasks show a mean of `rate` to be above `threshold` four times out of five.

    Values of tasks have the variance `spread` at that mean, and one in proportion to μ(1 − μ) at another. The
    limit is taken where the mean comes out `power` standard errors low. None beyond 100,000 tasks.
    """
    if rate <= threshold:
        return None

    def enough(k: int) -> bool:
        seen = rate - power * sqrt(spread / k)
        if seen <= threshold:
            return False
        x, wider = k * seen, seen * (1 - seen) / (rate * (1 - rate)) if 0 < rate < 1 else 1.0
        xx = k * (wider * spread + seen * seen)
        once = TaskSums(scale=1, k=k, n=k, y=x, yy=xx, yn=x, nn=k, x=x, xx=xx, most=1)
        mean, variance = moments(once)
        return bool(beta(mean, variance).quantile(1 - confidence) > threshold)

    return least(enough, 100_000)


def _float(value: Number) -> Number:
    return float(value) if isinstance(value, Fraction | int) else value


def _plain(value: Number) -> Number:
    return value if isinstance(value, np.ndarray) and value.ndim else float(value)


def worse(values: Iterable[Number]) -> Number:
    """Return the least value, or array of least values."""
    values = list(values)
    return np.minimum.reduce(values) if isinstance(values[0], np.ndarray) else min(values)


_PANELS: Final = 64
_NODES: Final = 12
_HALVINGS: Final = 50


def distinct(x: Floats) -> tuple[Floats, Floats]:
    """Return the distinct task means, ascending, and how many tasks have each."""
    means, counts = np.unique(np.clip(x, 0.0, 1.0), return_counts=True)
    return means, counts.astype(np.float64)


def anytime_evidence(means: Floats, counts: Floats, threshold: float) -> float:
    """Return log E(τ) that the mean of tasks is above `threshold`; +inf at 0, -inf at 1 or above."""
    if threshold <= 0:
        return inf
    if threshold >= 1:
        return -inf
    theta, weight = _grid(threshold)
    up, down = theta / threshold, (1 - theta) / (1 - threshold)
    with np.errstate(divide="ignore"):
        logs = np.log(np.outer(up, means) + np.outer(down, 1 - means)) @ counts
    most = float(logs.max())
    return most + log(float(np.sum(weight * np.exp(logs - most))) / (1 - threshold))


@cache
def _rule() -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(_NODES)


def _grid(threshold: float) -> tuple[Floats, Floats]:
    """Return nodes and weights of Gauss-Legendre on equal panels from τ to 1."""
    x, w = _rule()
    width = (1 - threshold) / _PANELS
    starts = threshold + width * np.arange(_PANELS)
    return (starts[:, None] + width * (x + 1) / 2).ravel(), np.tile(w * width / 2, _PANELS)


def anytime_limit(means: Floats, counts: Floats, confidence: float) -> float:
    """Return the lower bound of the mean that holds at any time, on the scale 0 to 1."""
    average = float(means @ counts / counts.sum())
    low, high, limit = 0.0, average, -log(1 - confidence)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if anytime_evidence(means, counts, middle) >= limit else (low, middle)
    return low
