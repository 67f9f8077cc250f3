"""Bounds that hold at any time: for evidence that was looked at while it grew.

A fixed-n bound is true for a number of runs that was settled beforehand. Who looks every ten runs and
stops at the first pass errs far more often. The e-process here may be looked at as often as one likes:
under a true mean of at most τ it reaches 1/α at any time with a probability of at most α (Ville).

For task means x_c in 0…1 the process is the beta mixture (uniform over θ from τ to 1)

    E(τ) = 1/(1 - τ) · ∫ Π_c (x_c·θ/τ + (1 - x_c)·(1 - θ)/(1 - τ)) dθ

which for single runs is the ratio of the mixed likelihood to that at τ (Waudby-Smith & Ramdas 2024). Each
factor has an expectation of at most 1 where the mean of a task is at most τ, whatever its runs have in
common: a task counts once, whatever its size. The lower limit is the largest τ with E(τ) ≥ 1/α.
"""

from __future__ import annotations

from math import inf, log
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_PANELS: Final = 64
_NODES: Final = 12
_HALVINGS: Final = 50


def distinct(x: Floats) -> tuple[Floats, Floats]:
    """Return the distinct task means, ascending, and how many tasks have each."""
    means, counts = np.unique(np.clip(x, 0.0, 1.0), return_counts=True)
    return means, counts.astype(np.float64)


def log_evidence(means: Floats, counts: Floats, threshold: float) -> float:
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


def _grid(threshold: float) -> tuple[Floats, Floats]:
    """Return nodes and weights of Gauss-Legendre on equal panels from τ to 1."""
    x, w = np.polynomial.legendre.leggauss(_NODES)
    width = (1 - threshold) / _PANELS
    starts = threshold + width * np.arange(_PANELS)
    return (starts[:, None] + width * (x + 1) / 2).ravel(), np.tile(w * width / 2, _PANELS)


def lower_bound(means: Floats, counts: Floats, confidence: float) -> float:
    """Return the lower bound of the mean that holds at any time, on the scale 0 to 1."""
    average = float(means @ counts / counts.sum())
    low, high, limit = 0.0, average, -log(1 - confidence)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if log_evidence(means, counts, middle) >= limit else (low, middle)
    return low
