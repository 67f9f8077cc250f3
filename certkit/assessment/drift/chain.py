"""Slow decline over a lineage's history, which no two neighbours show: an e-process on r_op.

The first standing of the current identity is the base, with success rate θ₀; a later one has a rate θ_t. Null
hypothesis: θ_t ≥ θ₀ for all t. After each standing

    E = Σ_θ π(θ) · L(data | θ₀ = θ, losses grow) / max L(data | θ_t ≥ θ₀ for all t)

π(θ) is even over `POINTS` values from 0 to 1. "Losses grow" is one fixed law: θ_t = θ₀ − δ_t, with δ = 0 at
the base; before each standing δ stays with a chance of `STAYS`, or else rises to one of the higher `LEVELS`
of the margin, all alike. Such a law explains a sudden loss of the margin and a slow one. The denominator is
at least the likelihood under the truth, so that E reaches 1/α at any time with a probability of at most α
where there is no loss (Ville; universal inference). It may be looked at after every passport, for ever.

What it assumes: binomial likelihoods, where runs of one cluster are not independent, with numbers of runs
divided by the design effect that the integers show (where all clusters agree, k clusters count as k runs);
standings that rest on separate runs; and rates under the base's mix of domains and fault conditions. The
design effect is an estimate, and to that extent the bound is one too. A standing that cannot be compared
with the base is left out and named, and so is one that rests on evidence that was counted already.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from certkit.assessment.drift import differences
from certkit.assessment.drift.rows import overall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.assessment.drift.difference import Mean
    from certkit.assessment.drift.standing import Standing

ALPHA: Final = 0.01
POINTS: Final = 4096
"""Values of θ₀ in the mixture: a choice of prior, so that no error of quadrature enters."""

LEVELS: Final = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
STAYS: Final = 0.75


class Link(Struct, frozen=True, kw_only=True):
    """One standing of a history, by its `index` from 0; `base` is that of the identity's first standing.

    `log_e` is the natural logarithm of E after it, None where it was left out for `reason`; `declined` tells
    that E has reached 1/α at it or before it, since the base.
    """

    index: int
    base: int
    log_e: float | None
    declined: bool
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the link as JSON values."""
        return structs.asdict(self)


class _Sample(Struct, frozen=True):
    """Successes and failures of so many independent runs as the clusters are worth."""

    good: float
    bad: float

    @property
    def rate(self) -> float:
        return self.good / (self.good + self.bad)


def chain(standings: Sequence[Standing]) -> tuple[Link, ...]:
    """Return what a lineage's standings, oldest first, show of a slow decline of r_op."""
    links: list[Link] = []
    samples: list[_Sample] = []
    base, declined, seen = 0, False, set[str]()
    for index, side in enumerate(standings):
        if not index or side.identity != standings[index - 1].identity:
            declined, seen, samples = False, set(), []
        base = base if samples else index
        counted = "rests on evidence that was counted already"
        found = counted if side.evidence in seen else _sample(standings[base], side)
        if isinstance(found, str):
            links.append(Link(index=index, base=base, log_e=None, declined=declined, reason=found))
            continue
        seen.add(side.evidence)
        samples.append(found)
        log_e = _log_mixture(samples, _margin(standings[base])) - _log_best(samples)
        declined = declined or log_e >= -log(ALPHA)
        links.append(Link(index=index, base=base, log_e=log_e, declined=declined))
    return tuple(links)


def _margin(base: Standing) -> float:
    return float(next(row.margin or 0 for row in base.criteria if row.metric == "r_op"))


def _sample(base: Standing, side: Standing) -> _Sample | str:
    """Return what a standing adds, or why it adds nothing."""
    if not any(row.metric == "r_op" and row.margin for row in base.criteria):
        return "no drift margin is stated for r_op"
    if apart := differences(base, side):
        return f"not comparable with the first: {apart[0]}"
    mean = overall(base, side)
    if mean is None or mean.variance is None:
        return "r_op was not measured, or in too few clusters"
    return _effective(mean, mean.variance)


def _effective(mean: Mean, variance: float) -> _Sample:
    rate = float(mean.value)
    runs = min(float(mean.n), rate * (1 - rate) / variance) if variance else float(mean.k)
    return _Sample(good=rate * runs, bad=(1 - rate) * runs)


def _log_mixture(samples: list[_Sample], margin: float) -> float:
    """Return the log likelihood under the law of the numerator, the base's sample first."""
    import numpy as np  # noqa: PLC0415 - heavy
    from scipy.special import logsumexp, xlog1py, xlogy  # noqa: PLC0415 - the same

    count = len(LEVELS)
    theta = (np.arange(POINTS) + 0.5) / POINTS
    rates = np.maximum(theta - margin * np.array(LEVELS)[:, None], 0)
    moves = np.diag(np.append(np.full(count - 1, STAYS), 1.0))
    for level in range(count - 1):
        moves[level, level + 1 :] = (1 - STAYS) / (count - 1 - level)
    # log of the weight of every level of loss and θ₀, given the samples so far
    weight = np.full((count, POINTS), -np.inf)
    weight[0] = -log(POINTS)
    for number, one in enumerate(samples):
        if number:
            most = weight.max()
            with np.errstate(divide="ignore"):
                weight = np.log(moves.T @ np.exp(weight - most)) + most
        weight = weight + xlogy(one.good, rates) + xlog1py(one.bad, -rates)
    return float(logsumexp(weight))


def _log_best(samples: list[_Sample]) -> float:
    """Return the largest log likelihood with every later rate at least the base's.

    The base is pooled with the later samples of the lowest rates as long as these are below the pool.
    """
    base, *later = samples
    good, bad = base.good, base.bad
    waiting = sorted(later, key=lambda one: one.rate)
    while waiting and waiting[0].rate < good / (good + bad):
        one = waiting.pop(0)
        good, bad = good + one.good, bad + one.bad
    return sum(_log_likelihood(one) for one in (_Sample(good, bad), *waiting))


def _log_likelihood(one: _Sample) -> float:
    """Return the log likelihood of a sample at its own rate."""
    total = one.good + one.bad
    return sum(count * log(count / total) if count > 0 else 0.0 for count in (one.good, one.bad))
