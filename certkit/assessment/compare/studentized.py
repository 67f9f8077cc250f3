"""The distribution of the studentized range, by quadrature: deterministic, on `scipy.special` alone.

For k means and ν degrees of freedom P(Q ≤ q) = ∫ W(q·s) f_ν(s) ds, where s² = χ²_ν/ν and

    W(w) = k ∫ φ(z) (Φ(z) - Φ(z - w))^(k-1) dz

is the distribution of the range of k standard normals. In z, and in t = log s, both integrands are analytic
and fall off at least exponentially, so that the trapezoidal rule on the line converges faster than any power
of its step.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_STEP: Final = 0.125
_REACH: Final = 9.0
_LOG_TINY: Final = -40.0
_ROWS: Final = 1 << 12


def survival(q: Floats, k: int, freedom: float) -> Floats:
    """Return P(Q > q) for each q ≥ 0, k ≥ 2 means and `freedom` > 0; absolute error below 1e-12."""
    s, weight = _scales(freedom)
    unique, place = np.unique(q, return_inverse=True)
    below = np.empty(len(unique))
    for start in range(0, len(unique), max(1, _ROWS // len(s))):
        part = slice(start, start + max(1, _ROWS // len(s)))
        ranges = np.outer(unique[part], s)
        below[part] = _range(ranges.ravel(), k).reshape(ranges.shape) @ weight
    found: Floats = np.clip(1 - below, 0.0, 1.0)[place]
    return found


def critical(level: float, k: int, freedom: float) -> float:
    """Return q with P(Q ≤ q) = `level`, 0 < `level` < 1, by bisection to the last bits."""
    low, high = 0.0, 1.0
    while float(survival(np.array([high]), k, freedom)[0]) > 1 - level:
        low, high = high, 2 * high
    for _ in range(48):
        middle = (low + high) / 2
        above = float(survival(np.array([middle]), k, freedom)[0]) > 1 - level
        low, high = (middle, high) if above else (low, middle)
    return (low + high) / 2


def _scales(freedom: float) -> tuple[Floats, Floats]:
    """Return nodes of s and weights that sum to 1."""
    step = min(_STEP, 0.7 / sqrt(2 * freedom))
    left = 1 - _LOG_TINY / freedom
    t = np.arange(-np.ceil(left / step), np.ceil(3 / step)) * step
    log_density = freedom * (t - np.expm1(2 * t) / 2)
    near = log_density > _LOG_TINY
    density = np.exp(log_density[near])
    return np.exp(t[near]), density / density.sum()


def _range(w: Floats, k: int) -> Floats:
    """Return the distribution function of the range of k standard normals."""
    from scipy.special import ndtr  # noqa: PLC0415 - heavy

    z = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
    density = np.exp(-z * z / 2)
    inside = ndtr(z) - ndtr(z - w[:, None])
    found: Floats = (inside ** (k - 1)) @ (k * density / sqrt(2 * np.pi) * _STEP)
    return found
