"""The rule of `certkit.assessment.bounds` and `raters` over many bundles at once, in floating point.

Bundles are rows of arrays, tasks their last axis: y successes (or sums of values in 0…1) of n runs. A task
without a run counts for nothing. `tests/unit/assessment/test_study.py` holds every function against the
program's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import betaincc, betaincinv

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class BetaLaw(NamedTuple):
    """Beta distributions by mean and variance."""

    mean: Floats
    variance: Floats

    @property
    def parameters(self) -> tuple[Floats, Floats]:
        size = self.mean * (1 - self.mean) / np.maximum(self.variance, 1e-300) - 1
        return self.mean * size, (1 - self.mean) * size

    def quantile(self, probability: float) -> Floats:
        return np.asarray(betaincinv(*self.parameters, probability), np.float64)

    def above(self, threshold: float) -> Floats:
        return np.asarray(betaincc(*self.parameters, threshold), np.float64)


def weights(n: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the weights of tasks where they count alike, and where they count by their runs."""
    alike = (n > 0).astype(np.float64)
    return alike, n * (alike.sum(axis=-1) / n.sum(axis=-1))[..., None]


def posterior(x: Floats, w: Floats, failed: int = 1, passed: int = 1) -> BetaLaw:
    """Return the task posterior of tasks with means x and weights w, beside prior tasks."""
    size = w.sum(axis=-1) + failed + passed
    mean = ((w * x).sum(axis=-1) + passed) / size
    spread = ((w * (x - mean[..., None])) ** 2).sum(axis=-1) + failed * mean**2 + passed * (1 - mean) ** 2
    return BetaLaw(mean, spread / (size * (size + 1)))


def means(y: NDArray[Any], n: NDArray[Any]) -> Floats:
    """Return every task's mean, 0 where it has no run."""
    return np.asarray(np.divide(y, n, out=np.zeros(np.shape(y)), where=n > 0), np.float64)


def both(y: NDArray[Any], n: NDArray[Any], tau: float) -> Iterator[BetaLaw]:
    """Yield the posterior in both weightings; a threshold below one half leaves out the passed prior task."""
    n = np.broadcast_to(n, np.shape(y))
    return (posterior(means(y, n), w, passed=int(tau >= 0.5)) for w in weights(n))


def worse(values: Iterable[Floats]) -> Floats:
    """Return the least of several arrays, place by place."""
    result: Floats = np.minimum.reduce(list(values))
    return result


def above(y: NDArray[Any], n: NDArray[Any], tau: float) -> Floats:
    """Return P(θ > τ), the worse of both weightings."""
    return worse(law.above(tau) for law in both(y, n, tau))


def lower(y: NDArray[Any], n: NDArray[Any], tau: float, delta: float) -> Floats:
    """Return the lower limit of the mean, the worse of both weightings."""
    return worse(law.quantile(1 - delta) for law in both(y, n, tau))


def upper_difference(
    a: tuple[NDArray[Any], NDArray[Any]], b: tuple[NDArray[Any], NDArray[Any]], delta: float, *, shared: bool
) -> Floats:
    """Return the upper limit of the mean of a less that of b, each y and n; `shared`: of the same tasks."""
    sides = [(means(y, n), n) for y, n in ((y, np.broadcast_to(n, np.shape(y))) for y, n in (a, b))]
    limits = []
    for w_a, w_b in zip(weights(sides[0][1]), weights(sides[1][1]), strict=True):
        first, second = posterior(sides[0][0], w_a, 0, 1), posterior(sides[1][0], w_b, 1, 0)
        spread = first.variance + second.variance
        if shared:
            apart = [
                w * (x - law.mean[:, None])
                for (x, _), w, law in zip(sides, (w_a, w_b), (first, second), strict=True)
            ]
            k_a, k_b = w_a.sum(axis=-1), w_b.sum(axis=-1)
            divisor = np.sqrt((k_a + 1) * (k_a + 2) * (k_b + 1) * (k_b + 2))
            spread = spread - 2 * (apart[0] * apart[1]).sum(axis=-1) / divisor
        middle = np.clip((1 - first.mean + second.mean) / 2, 1e-12, 1 - 1e-12)
        law = BetaLaw(middle, np.clip(spread / 4, 1e-18, middle * (1 - middle) * (1 - 1e-9)))
        limits.append(law.quantile(1 - delta))
    return 1 - 2 * worse(limits)


class TaskLabels(NamedTuple):
    """Labels of one weighting, by bundle and task: the law of the judge's rate, its tasks, and the counts.

    `counts` are those passed rightly, passed wrongly, failed wrongly and failed rightly; a task adds
    (y − n·μ)·unit to the judge's rate, in units of the standard error.
    """

    law: BetaLaw
    counts: Floats
    y: Floats
    n: Floats
    unit: Floats


def labelled(counts: Floats, y: NDArray[Any], n: NDArray[Any]) -> tuple[TaskLabels, TaskLabels]:
    """Return the labels as they count where tasks weigh alike, and where they weigh by their runs."""
    bears = counts.sum(axis=0) > 0
    fewest = np.where(bears & (n > 0), n, np.inf).min(axis=-1, keepdims=True)
    small = (n > 0) & (n < fewest)
    x = np.where(small, 0.0, means(y, n))
    alike, by_runs = weights(n)
    k = alike.sum(axis=-1)
    root = np.sqrt((k + 2) * (k + 3))
    factor = np.divide(fewest, n, out=np.ones(n.shape), where=(n > 0) & np.isfinite(fewest))
    weighed = counts * factor
    weighed[3] += small
    return (
        TaskLabels(posterior(x, alike), _at_most(weighed, bears | small), x, alike, 1 / root),
        TaskLabels(posterior(means(y, n), by_runs), _at_most(counts, bears), y, n, k / n.sum(axis=-1) / root),
    )


def _at_most(counts: Floats, tasks: NDArray[np.bool_]) -> Floats:
    share = np.minimum(1, tasks.sum(axis=-1) / np.maximum(1, counts.sum(axis=(0, -1))))
    scaled: Floats = counts * share[..., None]
    return scaled


def _share(right: Floats, wrong: Floats) -> tuple[Floats, Floats, Floats]:
    """Return mean and variance of the share of `right` labels, and what each task adds to it."""
    every = right + wrong
    k = every.sum(axis=-1)
    mean, size = (1 + right.sum(axis=-1)) / (k + 2), (k + 2) * (k + 3)
    apart = right - mean[..., None] * every
    variance = ((apart * apart).sum(axis=-1) + mean**2 + (1 - mean) ** 2) / size
    return mean, variance, apart / np.sqrt(size)[..., None]


def corrected(labels: TaskLabels) -> BetaLaw:
    """Return the law of the true rate."""
    (q, var_q), counts = labels.law, labels.counts
    p, var_p, of_p = _share(counts[0], counts[1])
    f, var_f, of_f = _share(counts[2], counts[3])
    added = (labels.y - q[..., None] * labels.n) * labels.unit[..., None]
    least = (p - f) ** 2 * var_q
    spread = least + q**2 * var_p + (1 - q) ** 2 * var_f + var_q * (var_p + var_f)
    spread += 2 * q * (1 - q) * (of_p * of_f).sum(axis=-1)
    spread += 2 * (p - f) * (q * (added * of_p).sum(axis=-1) + (1 - q) * (added * of_f).sum(axis=-1))
    middle = q * p + (1 - q) * f
    return BetaLaw(middle, np.clip(spread, least, middle * (1 - middle) * (1 - 1e-9)))


def least_graded(pair: tuple[TaskLabels, TaskLabels], delta: float) -> Floats:
    """Return the lower limit of a series in which a wrongly passed run counts for one at most."""
    half, limits = (1 + delta) / 2, []
    for labels in pair:
        wrong = labels.counts[1]
        mean, variance, _ = _share(wrong, labels.counts.sum(axis=0) - wrong)
        limits.append(labels.law.quantile(1 - half) - BetaLaw(mean, variance).quantile(half))
    return worse(limits).clip(0)
