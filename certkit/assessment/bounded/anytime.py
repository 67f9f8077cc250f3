"""Bounds that hold at any time: for evidence that was looked at while it grew.

A fixed-n bound is true for a number of runs that was settled beforehand. Who looks every ten runs and
stops at the first pass errs far more often. The e-process here may be looked at as often as one likes:
under a true mean of at most τ it reaches 1/α at any time with a probability of at most α (Ville).

For cluster means x_c in 0…1 the process is the beta mixture (uniform over θ from τ to 1)

    E(τ) = 1/(1 - τ) · ∫ Π_c (x_c·θ/τ + (1 - x_c)·(1 - θ)/(1 - τ)) dθ

which for single runs is the ratio of the mixed likelihood to that at τ. Each factor has an expectation of
at most 1 where the mean of a cluster is at most τ, whatever its runs have in common; so clusters are
respected, each counted once whatever its size. The lower bound is the largest τ with E(τ) ≥ 1/α.

Counts have no upper end; for them a Poisson law is assumed with runs scaled to the effective number, and
the mixture is uniform over rates from 0 to τ.
"""

from __future__ import annotations

from math import inf, log
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_PANELS: Final = 64
_NODES: Final = 12
_HALVINGS: Final = 50


def distinct(y: NDArray[np.int64], n: NDArray[np.int64], low: int, span: int) -> tuple[Floats, Floats]:
    """Return the distinct cluster means on the scale 0 to 1, ascending, and how many clusters have each.

    A value is (y - low·n) / (span·n); equal fractions are one value.
    """
    top, bottom = y - low * n, span * n
    common = np.gcd(top, bottom)
    pairs, counts = np.unique(np.stack([top // common, bottom // common], axis=1), axis=0, return_counts=True)
    means = pairs[:, 0] / pairs[:, 1]
    order = np.argsort(means, kind="stable")
    return means[order], counts[order].astype(np.float64)


def log_evidence(means: Floats, counts: Floats, threshold: float) -> float:
    """Return log E(τ) that the mean of clusters is above `threshold`; +inf at 0, -inf at 1 or above."""
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


def _grid(threshold: float) -> tuple[Floats, Floats]:
    """Return nodes and weights of Gauss-Legendre on equal panels from τ to 1."""
    x, w = np.polynomial.legendre.leggauss(_NODES)
    width = (1 - threshold) / _PANELS
    starts = threshold + width * np.arange(_PANELS)
    return (starts[:, None] + width * (x + 1) / 2).ravel(), np.tile(w * width / 2, _PANELS)


def lower_bound(means: Floats, counts: Floats, confidence: float) -> float:
    """Return the lower bound of the mean that holds at any time, on the scale 0 to 1."""
    average = float(means @ counts / counts.sum())
    return _last(lambda tau: log_evidence(means, counts, tau), 0.0, average, confidence)


def upper_bound(means: Floats, counts: Floats, confidence: float) -> float:
    """Return the upper bound of the mean that holds at any time, on the scale 0 to 1."""
    return 1 - lower_bound(1 - means[::-1], counts[::-1], confidence)


def log_evidence_rate(mean: float, runs: float, threshold: float) -> float:
    """Return log E(τ) that a Poisson rate is below `threshold`, from `mean` per run over `runs` runs.

    E(τ) = 1/τ · ∫ (μ/τ)^y · exp(-(μ - τ)·n) dμ from 0 to τ, an incomplete gamma function.
    """
    from scipy.special import gammainc, gammaln  # noqa: PLC0415 - heavy

    y = mean * runs
    share = float(gammainc(y + 1, runs * threshold))
    if share == 0:
        return -inf
    return float(
        runs * threshold - (y + 1) * log(threshold) + gammaln(y + 1) + log(share) - (y + 1) * log(runs)
    )


def upper_rate(mean: float, runs: float, confidence: float) -> float:
    """Return the upper bound of a Poisson rate that holds at any time."""
    high = max(2 * mean, 1 / runs)
    while log_evidence_rate(mean, runs, high) < -log(1 - confidence):
        high *= 2
    return _last(lambda rate: -log_evidence_rate(mean, runs, rate), mean, high, confidence, rising=True)


def _last(
    log_e: Callable[[float], float], low: float, high: float, confidence: float, *, rising: bool = False
) -> float:
    """Return where log E crosses log 1/α between `low` and `high`, from the side that is safe to claim."""
    limit = -log(1 - confidence)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        holds = -log_e(middle) < limit if rising else log_e(middle) >= limit
        low, high = (middle, high) if holds else (low, middle)
    return high if rising else low
