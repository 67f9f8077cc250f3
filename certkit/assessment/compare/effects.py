"""Closed forms on runs as if each were an observation of its own, and the sizes of effects.

`z`, `newcombe` and `welch` ignore that runs of a cluster hang together: they are given beside the tests that
do not, because readers look for them, and are to be read as too sure of themselves.
"""

from __future__ import annotations

from fractions import Fraction
from math import asin, erfc, exp, inf, lgamma, log, sqrt
from typing import TYPE_CHECKING

from msgspec import Struct

from certkit.assessment.statistics.estimators import LEVEL, Interval, wilson

if TYPE_CHECKING:
    from collections.abc import Sequence

PER_RUN = "ignores clusters"


class Moments(Struct, frozen=True):
    """Runs, their mean and their sample variance (n - 1; None below two runs)."""

    n: int
    mean: Fraction
    variance: float | None


class Test(Struct, frozen=True, kw_only=True):
    """A statistic with its two-sided p-value; `df` where it has one."""

    statistic: float
    p: float
    df: float | None = None


def moments(n: int, total: Fraction, squares: Fraction, *, resolution: float = 0.0) -> Moments:
    """Return the moments of `n` ≥ 1 values from their sum and the sum of their squares, exactly.

    A variance below `resolution` is 0: the sums were rounded, and no more can be told from them.
    """
    if n < 2:  # noqa: PLR2004 - a variance needs two
        return Moments(n, total / n, None)
    variance = float((squares - total * total / n) / (n - 1))
    return Moments(n, total / n, variance if variance > resolution else 0.0)


def two_proportions(s: int, n: int, t: int, m: int) -> Test:
    """Return the pooled two-proportion z test of s of n against t of m; z is 0 where nothing varies."""
    pooled = (s + t) / (n + m)
    variance = pooled * (1 - pooled) * (1 / n + 1 / m)
    z = float(Fraction(s, n) - Fraction(t, m)) / sqrt(variance) if variance > 0 else 0.0
    return Test(statistic=z, p=erfc(abs(z) / sqrt(2)))


def newcombe(s: int, n: int, t: int, m: int) -> Interval:
    """Return Newcombe's interval (1998, method 10) of s/n - t/m from the two Wilson intervals."""
    one, other = wilson(s, n), wilson(t, m)
    p, q = s / n, t / m
    difference = float(Fraction(s, n) - Fraction(t, m))
    low = difference - sqrt((p - one.low) ** 2 + (other.high - q) ** 2)
    high = difference + sqrt((one.high - p) ** 2 + (q - other.low) ** 2)
    return Interval(low=max(-1.0, low), high=min(1.0, high), level=LEVEL, method="newcombe")


def cohen_h(p: float, q: float) -> float:
    """Return Cohen's h = 2 asin √p - 2 asin √q."""
    return 2 * asin(sqrt(p)) - 2 * asin(sqrt(q))


def cohen_d(one: Moments, other: Moments) -> float | None:
    """Return Cohen's d, the difference over the pooled standard deviation; None without one."""
    if one.variance is None or other.variance is None:
        return None
    freedom = one.n + other.n - 2
    pooled = ((one.n - 1) * one.variance + (other.n - 1) * other.variance) / freedom
    return float(one.mean - other.mean) / sqrt(pooled) if pooled > 0 else None


def hedges(freedom: int) -> float:
    """Return the factor that takes the bias out of Cohen's d (Hedges 1981), 2 or more degrees of freedom."""
    return exp(lgamma(freedom / 2) - lgamma((freedom - 1) / 2) - log(freedom / 2) / 2)


def welch(one: Moments, other: Moments) -> Test | None:
    """Return Welch's t test with Satterthwaite's degrees of freedom, or None where nothing varies."""
    from scipy.special import stdtr  # noqa: PLC0415 - heavy

    if one.variance is None or other.variance is None:
        return None
    v, w = one.variance / one.n, other.variance / other.n
    if v + w == 0:
        return None
    df = (v + w) ** 2 / (v * v / (one.n - 1) + w * w / (other.n - 1))
    t = float(one.mean - other.mean) / sqrt(v + w)
    return Test(statistic=t, p=2 * float(stdtr(df, -abs(t))), df=df)


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Return Holm's adjusted p-values, in the order given; what was not tested stays None."""
    tested = sorted((value, place) for place, value in enumerate(p) if value is not None)
    adjusted: list[float | None] = [None] * len(p)
    reached = -inf
    for rank, (value, place) in enumerate(tested):
        reached = max(reached, min(1.0, (len(tested) - rank) * value))
        adjusted[place] = reached
    return adjusted
