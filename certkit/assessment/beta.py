"""The Beta distribution in plain Python, for a verifier that shall load neither numpy nor scipy."""

from __future__ import annotations

from math import exp, lgamma, log, log1p
from typing import Final, NamedTuple

MOST_TERMS: Final = 5_000
"""Of the continued fraction: enough for 10⁷ runs, and what keeps a hostile statement from taking long."""


class Beta(NamedTuple):
    """A Beta distribution."""

    a: float
    b: float

    def below(self, x: float) -> float:
        """Return P(θ ≤ x)."""
        if not 0 < x < 1:
            return float(x >= 1)
        # The continued fraction converges fast on one side of the mean only.
        if x < (self.a + 1) / (self.a + self.b + 2):
            return _tail(self.a, self.b, x)
        return 1 - _tail(self.b, self.a, 1 - x)


def _tail(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function (DLMF 8.17.22, by Lentz's method)."""
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    tiny, c = 1e-300, 1.0
    d = 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    total = d
    for m in range(1, MOST_TERMS):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / ((1 + step * d) or tiny)
            c = (1 + step / c) or tiny
            total *= c * d
        if abs(c * d - 1) < 1e-12:  # noqa: PLR2004 - far below what is compared
            break
    return front * total


def by_moments(mean: float, variance: float) -> Beta:
    """Return the Beta distribution with these moments."""
    size = mean * (1 - mean) / max(variance, 1e-300) - 1
    return Beta(mean * size, (1 - mean) * size)
