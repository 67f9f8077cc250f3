"""A success rate as a fallible judge saw it, and as it is: what a sample of labelled runs says of the rest.

A person labels m runs of the bundle, drawn by a hash. Of those that the judge passed, a are right and b
wrong; of those that it failed, c should have passed and d not. With uniform priors P ~ Beta(1 + a, 1 + b) is
the chance that a passed run is a success, F ~ Beta(1 + c, 1 + d) that a failed one is. With q, the rate that
the judge gives, the rate is θ = qP + (1 − q)F (Tenenbein 1970, double sampling). As q, P and F are
independent,

    μ = μ_q·μ_P + (1 − μ_q)·μ_F
    V = (μ_P − μ_F)²·V_q + μ_q²·V_P + (1 − μ_q)²·V_F + V_q·(V_P + V_F)

θ is taken as Beta(μN, (1 − μ)N) with N = μ(1 − μ)/V − 1; its lower limit at δ is R's
``qbeta(1 - delta, mu * N, (1 - mu) * N)``.

Labels of one task stand or fall together: `labels` weighs them as no more than the tasks that they lie on.

Every function takes moments of q as numbers, or as arrays: many samples at once.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec resolves annotations at run time
from fractions import Fraction  # noqa: TC003 - the same
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
from msgspec import Meta, Struct, structs

from certkit.assessment.statistics.estimators import LEVEL, Interval
from certkit.assessment.statistics.posterior import PRIORS, beta, posteriors, worse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.statistics.posterior import Beta
    from certkit.evidence.summary.tasks import Number, TaskSums


Counted = Annotated[Any, Meta(extra_json_schema={"type": "integer", "minimum": 0})]
"""A count, or an array of those of many samples."""


class Labels(Struct, frozen=True):
    """How many labelled runs the judge passed and failed, rightly and wrongly."""

    true_positives: Counted
    false_positives: Counted
    false_negatives: Counted
    true_negatives: Counted

    def at_most(self, tasks: Number) -> Labels:
        """Return the counts weighed as no more labels than `tasks`: each of m counts min(1, tasks/m)."""
        counts = structs.astuple(self)
        weight = np.minimum(1.0, tasks / np.maximum(1, sum(counts)))
        return Labels(*(weight * count for count in counts))


Both = tuple[Labels, Labels]
"""Labels as they count where tasks weigh alike, and where tasks weigh by their runs."""
UNIFORM: Final = PRIORS["uniform"]


def corrected(mean: Number, variance: Number, labels: Labels) -> Beta:
    """Return the posterior of the success rate; `mean` and `variance` are those of the judge's rate."""
    p, var_p = _moments(1 + labels.true_positives, 1 + labels.false_positives)
    f, var_f = _moments(1 + labels.false_negatives, 1 + labels.true_negatives)
    spread = (p - f) ** 2 * variance + mean**2 * var_p + (1 - mean) ** 2 * var_f
    return beta(mean * p + (1 - mean) * f, spread + variance * (var_p + var_f))


def _moments(a: Number, b: Number) -> tuple[Number, Number]:
    """Return mean and variance of Beta(a, b)."""
    return a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))


def least_frr(limit: Number, labels: Labels, confidence: float) -> Number:
    """Return the lower limit of FRR: its own `limit` less the share of all runs that were wrongly passed.

    Both errors are shared out: `limit` must be taken at (1 + δ)/2, as the share is here:
    ``qbeta((1 + delta) / 2, 1 + b, 1 + m - b)``.
    """
    from scipy.special import betaincinv  # noqa: PLC0415 - heavy

    wrong = labels.false_positives
    rest = labels.true_positives + labels.false_negatives + labels.true_negatives
    return limit - betaincinv(1 + wrong, 1 + rest, (1 + confidence) / 2)


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
    for law, part in zip(posteriors(sums, prior), labels, strict=True):
        mean, variance = (
            value if isinstance(value, np.ndarray) else float(value) for value in (law.mean, law.variance)
        )
        yield corrected(mean, variance, part)


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
