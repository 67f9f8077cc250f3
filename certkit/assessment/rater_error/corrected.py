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

Every function takes moments of q as numbers, or as arrays: many samples at once.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec resolves annotations at run time
from fractions import Fraction  # noqa: TC003 - the same
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from certkit.assessment.statistics import posterior
from certkit.assessment.statistics.estimators import LEVEL, Interval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.statistics.posterior import Scale
    from certkit.evidence.summary.tasks import TaskSums

Number = Any
"""A float, or an array of floats."""


class Labels(Struct, frozen=True):
    """How many labelled runs the judge passed (`right`, `wrong`) and failed (`missed`, `rejected`).

    Of those that it passed, `right` are successes; of those that it failed, `missed` are.
    """

    right: Number
    wrong: Number
    missed: Number
    rejected: Number

    @property
    def m(self) -> Number:
        """The number of labelled runs."""
        return self.right + self.wrong + self.missed + self.rejected


def corrected(mean: Number, variance: Number, labels: Labels) -> tuple[Number, Number]:
    """Return mean and variance of the success rate; `mean` and `variance` are those of the judge's rate."""
    p, var_p = _moments(1 + labels.right, 1 + labels.wrong)
    f, var_f = _moments(1 + labels.missed, 1 + labels.rejected)
    spread = (p - f) ** 2 * variance + mean**2 * var_p + (1 - mean) ** 2 * var_f
    return mean * p + (1 - mean) * f, spread + variance * (var_p + var_f)


def quantile(mean: Number, variance: Number, probability: float) -> Number:
    """Return a quantile of the Beta distribution with these moments; ``1 - δ`` gives the lower limit at δ."""
    from scipy.special import betaincinv  # noqa: PLC0415 - heavy

    size = mean * (1 - mean) / variance - 1
    return betaincinv(mean * size, (1 - mean) * size, probability)


def above(mean: Number, variance: Number, threshold: float) -> Number:
    """Return P(θ > threshold) under the Beta distribution with these moments."""
    from scipy.special import betaincc  # noqa: PLC0415 - heavy

    size = mean * (1 - mean) / variance - 1
    return betaincc(mean * size, (1 - mean) * size, threshold)


def least_frr(limit: Number, labels: Labels, confidence: float) -> Number:
    """Return the lower limit of FRR: its own `limit` less the share of all runs that were wrongly passed.

    Both errors are shared out: `limit` must be taken at (1 + δ)/2, as the share is here:
    ``qbeta((1 + delta) / 2, 1 + b, 1 + m - b)``.
    """
    from scipy.special import betaincinv  # noqa: PLC0415 - heavy

    return limit - betaincinv(1 + labels.wrong, 1 + labels.m - labels.wrong, (1 + confidence) / 2)


def lower(sums: TaskSums, scale: Scale, labels: Labels, confidence: float) -> Number:
    """Return the lower limit of a share of successes, the worse of both weightings of tasks."""
    one, two = (quantile(*moments, 1 - confidence) for moments in _both(sums, scale, labels))
    return np.minimum(one, two)


def chance(sums: TaskSums, scale: Scale, labels: Labels, threshold: float) -> Number:
    """Return P(θ > threshold) of a share of successes, the worse of both weightings of tasks."""
    one, two = (above(*moments, threshold) for moments in _both(sums, scale, labels))
    return np.minimum(one, two)


def least(sums: TaskSums, scale: Scale, labels: Labels, confidence: float) -> Number:
    """Return the lower limit of a series in which a wrongly passed run counts for one at most."""
    limit = scale.back(posterior.lower(sums, scale, (1 + confidence) / 2))
    return np.maximum(least_frr(limit, labels, confidence), 0.0)


def _both(sums: TaskSums, scale: Scale, labels: Labels) -> Iterator[tuple[Number, Number]]:
    for part in posterior.posteriors(sums, scale):
        mean, variance = (
            value if isinstance(value, np.ndarray) else float(value) for value in (part.mean, part.variance)
        )
        yield corrected(mean, variance, labels)


def _moments(a: Number, b: Number) -> tuple[Number, Number]:
    """Return mean and variance of Beta(a, b)."""
    return a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))


class Share(Struct, frozen=True, kw_only=True):
    """A share of `n` items with its posterior under a uniform prior; nothing is known where n is 0."""

    successes: int
    n: int
    value: float | None
    mean: float | None
    interval: Interval | None


def share(successes: int, n: int) -> Share:
    """Return `successes` of `n` with the posterior Beta(1 + s, 1 + n - s)."""
    if n == 0:
        return Share(successes=0, n=0, value=None, mean=None, interval=None)
    from scipy.special import betaincinv  # noqa: PLC0415 - heavy

    tails = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    low, high = (float(betaincinv(1 + successes, 1 + n - successes, tail)) for tail in tails)
    return Share(
        successes=successes,
        n=n,
        value=successes / n,
        mean=(1 + successes) / (2 + n),
        interval=Interval(low=low, high=high, method="beta posterior, uniform prior"),
    )


class Confusion(Struct, frozen=True, kw_only=True):
    """What the judge said of items whose true outcome is known."""

    true_positives: int
    false_negatives: int
    false_positives: int
    true_negatives: int
    sensitivity: Share
    specificity: Share
    base_rate: Share


def confusion(tp: int, fn: int, fp: int, tn: int) -> Confusion:
    """Return sensitivity, specificity and the base rate of success from the four counts."""
    return Confusion(
        true_positives=tp,
        false_negatives=fn,
        false_positives=fp,
        true_negatives=tn,
        sensitivity=share(tp, tp + fn),
        specificity=share(tn, tn + fp),
        base_rate=share(tp + fn, tp + fn + fp + tn),
    )


class Correction(Struct, frozen=True, kw_only=True):
    """A success rate freed of the judge's error.

    `raw` is the rate that the judge gave in `n` runs; `value`, `interval` and `by_tier`, P(θ > τ), are of the
    posterior of the true rate.
    """

    raw: float
    n: int
    value: float
    interval: Interval
    by_tier: Mapping[int, float]
    method: str = "double sampling; Beta by moments"
    source: str = "Tenenbein 1970"


class Seen(Struct, frozen=True, kw_only=True):
    """The success rate that the judge gave in `n` fault runs, with mean and variance of its posterior."""

    rate: Fraction
    n: int
    mean: float
    variance: float

    @property
    def n_eff(self) -> float:
        """How many independent runs have this posterior under a uniform prior."""
        return self.mean * (1 - self.mean) / self.variance - 3


def correction(seen: Seen, labels: Labels, tau: Mapping[int, Fraction]) -> Correction:
    """Return the rate freed of the judge's error; `tau` maps tiers to thresholds."""
    mean, variance = corrected(seen.mean, seen.variance, labels)
    low, high = (float(quantile(mean, variance, tail)) for tail in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Correction(
        raw=float(seen.rate),
        n=seen.n,
        value=float(mean),
        interval=Interval(low=low, high=high, method="Beta by moments"),
        by_tier={tier: float(above(mean, variance, float(threshold))) for tier, threshold in tau.items()},
    )
