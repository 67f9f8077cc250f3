"""A success rate as a fallible judge saw it, and as it is: what a sample of labelled runs says of the rest.

A person labels m runs of the bundle, drawn by a hash. With q, the rate that the judge gives, P, the chance
that a run it passed is a success, and F, the chance that a run it failed is one, the success rate is
θ = qP + (1 − q)F (Tenenbein 1970, double sampling). P and F are task posteriors, as q is; their tasks are
those that bear labels. All three rest on the same tasks, so that what a task adds to each is summed before it
is squared (linearisation; Binder 1983, R `survey::svyratio`):

    μ = μ_q·μ_P + (1 − μ_q)·μ_F
    V = (μ_P − μ_F)²·V_q + μ_q²·V_P + (1 − μ_q)²·V_F + V_q·(V_P + V_F)
        + 2μ_q(1 − μ_q)·C_PF + 2(μ_P − μ_F)·(μ_q·C_qP + (1 − μ_q)·C_qF)

V_P is that of the task posterior, Σ_c e_c² and its prior tasks over (k + 2)(k + 3); C_PF is Σ_c e_c·e'_c over
the geometric mean of both denominators, likewise C_qP and C_qF. With one label a task C_PF is 0, C_qP and
C_qF are not. V is no less than (μ_P − μ_F)²·V_q. θ is taken as Beta(μN, (1 − μ)N) with N = μ(1 − μ)/V − 1;
its lower limit at δ is R's
``qbeta(1 - delta, mu * N, (1 - mu) * N)``.

Every function takes one sample, or many at once: tasks are then the last axis of arrays.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec resolves annotations at run time
from fractions import Fraction  # noqa: TC003 - the same
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct, structs

from certkit.assessment.statistics.estimators import LEVEL, Interval
from certkit.assessment.statistics.posterior import PRIORS, beta, posteriors, worse
from certkit.ground.document import Count  # noqa: TC001 - the same
from certkit.summary.tasks import ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from certkit.assessment.statistics.posterior import Beta
    from certkit.summary.tasks import Number, TaskSums

    Floats = NDArray[np.float64]


class Labels(Struct, frozen=True):
    """How many labelled runs the judge passed and failed, rightly and wrongly."""

    true_positives: Count
    false_positives: Count
    false_negatives: Count
    true_negatives: Count


class TaskLabels(Struct, frozen=True, eq=False):
    """Labels by task, weighed for one weighting of tasks.

    `counts` are those passed rightly, passed wrongly, failed wrongly and failed rightly, 4 × … × tasks; `y`
    and `n` are the tasks' successes, as the judge saw them, and runs (a mean and 1 where tasks weigh alike).
    """

    counts: Floats
    y: Floats
    n: Floats


Both = tuple[TaskLabels, TaskLabels]
"""Labels as they count where tasks weigh alike, and where tasks weigh by their runs."""
UNIFORM: Final = PRIORS["uniform"]


def weighed(counts: Floats, y: Floats, n: Floats, sums: TaskSums) -> tuple[TaskSums, Both]:
    """Return the `sums` of a share as labels can vouch for them, and the labels of either weighting.

    `counts` are 4 × … × tasks, `y` and `n` … × tasks. Where tasks weigh alike, a label of a task with n runs
    counts n_min/n, n_min being the runs of the smallest labelled task; tasks with fewer runs, whose likes
    nobody looked at, then count as failed, and as labelled so.
    Labels count as no more than the tasks that they lie on.
    """
    labelled = counts.sum(axis=0) > 0
    fewest = np.where(labelled & (n > 0), n, np.inf).min(axis=-1, keepdims=True, initial=np.inf)
    x = np.divide(y, n, out=np.zeros(np.shape(n)), where=n > 0)
    known = (n > 0) & np.isfinite(fewest)
    small = known & (n < fewest)
    alike = counts * np.divide(fewest, n, out=np.ones(np.shape(n)), where=known)
    if small.any():  # a sample that leaves out such a task takes it off twice, and so is lower
        off = np.where(small, x, 0.0)
        sums = structs.replace(sums, x=_less(sums.x, off), xx=_less(sums.xx, off * off))
        alike[3] += small
        x = x - off
    return sums, (
        TaskLabels(_at_most(alike, labelled | small), x, np.where(n > 0, 1.0, 0.0)),
        TaskLabels(_at_most(counts, labelled), y, n),
    )


def _at_most(counts: Floats, tasks: NDArray[np.bool_]) -> Floats:
    scaled: Floats = np.minimum(1, tasks.sum(axis=-1) / np.maximum(1, counts.sum(axis=(0, -1))))
    return counts * scaled[..., None]


def _less(total: Number, parts: Floats) -> Number:
    off = parts.sum(axis=-1)
    return total - (off if off.ndim else float(off))


def corrected(mean: Number, variance: Number, labels: TaskLabels, unit: Number = 0.0) -> Beta:
    """Return the posterior of the success rate; `mean` and `variance` are those of the judge's rate q.

    A task adds `unit`·(y − n·μ_q) to q, in units of the standard error.
    """
    p, var_p, of_p = _share(labels.counts[0], labels.counts[1])
    f, var_f, of_f = _share(labels.counts[2], labels.counts[3])
    with_p, with_f = (
        unit * ((labels.y * part).sum(axis=-1) - mean * (labels.n * part).sum(axis=-1))
        for part in (of_p, of_f)
    )
    least = (p - f) ** 2 * variance
    spread = least + mean**2 * var_p + (1 - mean) ** 2 * var_f + variance * (var_p + var_f)
    spread = spread + 2 * mean * (1 - mean) * (of_p * of_f).sum(axis=-1)
    spread = spread + 2 * (p - f) * (mean * with_p + (1 - mean) * with_f)
    middle = mean * p + (1 - mean) * f
    # Few tasks may overstate what they share: V is no less than under certain labels, and a Beta law's.
    return beta(middle, np.clip(spread, least, middle * (1 - middle) * (1 - 1e-9)))


def _share(right: Floats, wrong: Floats) -> tuple[Number, Number, Floats]:
    """Return mean and variance of the task posterior of `right` labels, and what each task adds to it."""
    both = right + wrong
    k = both.sum(axis=-1)
    mean, size = (1 + right.sum(axis=-1)) / (k + 2), (k + 2) * (k + 3)
    apart = right - mean[..., None] * both
    variance = ((apart * apart).sum(axis=-1) + mean**2 + (1 - mean) ** 2) / size
    return mean, variance, apart / np.sqrt(size)[..., None]


def least_frr(limit: Number, labels: TaskLabels, confidence: float) -> Number:
    """Return the lower limit of FRR: its own `limit` less the share of all runs that were wrongly passed.

    Both errors are shared out: `limit` must be taken at (1 + δ)/2, as the share is here: the task posterior's
    ``qbeta((1 + delta) / 2, mu * N, (1 - mu) * N)``.
    """
    wrong = labels.counts[1]
    mean, variance, _ = _share(wrong, labels.counts.sum(axis=0) - wrong)
    return limit - beta(mean, variance).quantile((1 + confidence) / 2)


def lower(sums: TaskSums, labels: Both, confidence: float) -> Number:
    """Return the lower limit of a share of successes, the worse of both weightings of tasks."""
    return worse(law.quantile(1 - confidence) for law in _both(sums, labels, UNIFORM))


def chance(sums: TaskSums, labels: Both, threshold: float, prior: Fraction = UNIFORM) -> Number:
    """Return P(θ > threshold) of a share of successes, the worse of both weightings of tasks."""
    return worse(law.above(threshold) for law in _both(sums, labels, prior))


def least(sums: TaskSums, labels: Both, confidence: float) -> Number:
    """Return the lower limit of a series in which a wrongly passed run counts for one at most."""
    half = (1 + confidence) / 2
    limits = (law.quantile(1 - half) for law in posteriors(sums))
    pairs = zip(limits, labels, strict=True)
    limit = worse(least_frr(limit, part, confidence) for limit, part in pairs)
    return limit.clip(0) if isinstance(limit, np.ndarray) else max(float(limit), 0.0)


def _both(sums: TaskSums, labels: Both, prior: Fraction) -> Iterator[Beta]:
    size = sums.k + 2 * float(prior)
    root = np.sqrt(size * (size + 1))
    units = 1 / root, _float(ratio(sums.k, sums.n)) / root
    for law, part, unit in zip(posteriors(sums, prior), labels, units, strict=True):
        yield corrected(_float(law.mean), _float(law.variance), part, unit)


def _float(value: Number) -> Number:
    return value if isinstance(value, np.ndarray) else float(value)


class Share(Struct, frozen=True, kw_only=True):
    """A share of `n` items with its posterior Beta(1 + s, 1 + n - s); nothing is known where n is 0."""

    successes: int
    n: int
    value: float | None = None
    interval: Interval | None = None


def share(successes: int, n: int) -> Share:
    """Return `successes` of `n` with the 95 % interval of their posterior."""
    if n == 0:
        return Share(successes=0, n=0)
    from scipy.special import betaincinv  # noqa: PLC0415 - heavy

    tails = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    low, high = (float(betaincinv(1 + successes, 1 + n - successes, tail)) for tail in tails)
    interval = Interval(low=low, high=high, method="beta posterior, uniform prior")
    return Share(successes=successes, n=n, value=successes / n, interval=interval)


class Correction(Struct, frozen=True, kw_only=True):
    """A success rate freed of the judge's error by double sampling (Tenenbein 1970).

    `raw` is the rate that the judge gave in `n` runs; `value`, `interval` and `by_tier`, P(θ > τ), are of the
    posterior of the true rate, each the worse of both weightings of tasks, as in the rows.
    """

    raw: float
    n: int
    value: float
    interval: Interval
    by_tier: Mapping[int, float]


def correction(sums: TaskSums, labels: Both, tau: Mapping[int, Fraction]) -> Correction:
    """Return the rate freed of the judge's error; `tau` maps tiers to thresholds."""
    laws = tuple(_both(sums, labels, UNIFORM))
    low = float(worse(law.quantile((1 - LEVEL) / 2) for law in laws))
    high = max(float(law.quantile((1 + LEVEL) / 2)) for law in laws)
    return Correction(
        raw=float(sums.y / sums.n),
        n=sums.n,
        value=float(worse(law.mean for law in laws)),
        interval=Interval(low=low, high=high, method="Beta by moments"),
        by_tier={tier: float(chance(sums, labels, float(rate))) for tier, rate in tau.items()},
    )
