"""Estimates from counts: intervals and posteriors of a proportion, and the least failure-free n.

Integers and exact thresholds in, numbers out. scipy is imported where a Beta tail is asked for, since
importing it takes longer than a whole assessment.

How much tasks differ: variance components of a success rate, and how often all of several runs succeed.

    σ_b² = max(0, (MSB − MSW)/n₀)      n₀ = (n − Σn_c²/n)/(k − 1)      ρ = σ_b²/(σ_b² + MSW)

for k tasks c with n_c runs each, n in all: the intraclass correlation by analysis of variance (Donner 1986, R
`ICCest`). pass^j is the mean over tasks of C(y, j)/C(n, j), the chance that j runs of one task all succeed
(Yao 2024). Shares only: a run is a success or not.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import lru_cache
from math import ceil, comb, log, log1p, sqrt
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.summary.tasks import Number, Tasks


LEVEL: Final = 0.95
Z: Final = 1.959963984540054
"""Standard normal quantile at (1 + LEVEL) / 2."""


class Interval(Struct, frozen=True, kw_only=True):
    """A confidence interval, with its level and method."""

    low: float
    high: float
    level: float = LEVEL
    method: str = "wilson"


def wilson(successes: int, n: int) -> Interval:
    """Return Wilson's score interval for `successes` of `n` runs, n ≥ 1, at level `LEVEL`."""
    rate = successes / n
    shrink = 1 + Z * Z / n
    centre = (rate + Z * Z / (2 * n)) / shrink
    half = Z / shrink * sqrt(rate * (1 - rate) / n + Z * Z / (4 * n * n))
    # At the ends the closed form is 0 or 1 exactly; rounding must not take it beyond.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(low=low, high=high)


def clopper_pearson(successes: int, n: int) -> Interval:
    """Return the exact interval of Clopper and Pearson (1934): never covers less often than `LEVEL`."""
    from scipy.special import betaincinv  # noqa: PLC0415 - heavy

    tail = (1 - LEVEL) / 2
    failures = n - successes
    low = 0.0 if successes == 0 else float(betaincinv(successes, failures + 1, tail))
    high = 1.0 if failures == 0 else 1 - float(betaincinv(failures, successes + 1, tail))
    return Interval(low=low, high=high, method="clopper-pearson")


def jeffreys(successes: int, n: int) -> Interval:
    """Return the equal-tailed interval of the Beta(½ + s, ½ + n - s) posterior; 0 and 1 at the ends.

    The ends are those of Brown, Cai and DasGupta (2001), without which coverage near them falls to 0.
    """
    from scipy.special import betaincinv  # noqa: PLC0415 - heavy

    tail = (1 - LEVEL) / 2
    failures = n - successes
    low = 0.0 if successes == 0 else float(betaincinv(successes + 0.5, failures + 0.5, tail))
    high = 1.0 if failures == 0 else 1 - float(betaincinv(failures + 0.5, successes + 0.5, tail))
    return Interval(low=low, high=high, method="jeffreys")


def posterior(successes: Number, n: Number, threshold: Fraction) -> Number:
    """Return P(θ > threshold) for θ ~ Beta(1 + s, 1 + n - s), [26] §3.1."""
    from scipy.special import betaincc  # noqa: PLC0415 - heavy

    chance = betaincc(1.0 + successes, 1.0 + n - successes, min(max(float(threshold), 0.0), 1.0))
    return chance if getattr(chance, "ndim", 0) else float(chance)


@lru_cache  # every row of a tier asks the same
def least_failure_free(threshold: Fraction, confidence: Fraction) -> int | None:
    """Return the least n for which n successes in n runs give P(θ > threshold) > confidence.

    That is 1 - τ^(n+1) > δ. None where no n does (τ ≥ 1 or δ ≥ 1).
    """
    if threshold >= 1 or confidence >= 1:
        return None
    if threshold <= 0 or confidence < 0:
        return 0
    left = 1 - confidence
    # The logarithm may be off by one near a boundary, exact powers settle it.
    n = max(0, ceil(log(left) / log1p(-float(1 - threshold))) - 3)
    while threshold ** (n + 1) >= left:
        n += 1
    return n


def least(enough: Callable[[int], bool], most: int) -> int | None:
    """Return the least n of 1 … `most` with enough(n), which is false and then true; None where none is."""
    low, high = 0, 1
    while not enough(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


MOST_RUNS: Final = 10
"""Runs of one task that pass^j looks at."""


class Variation(Struct, frozen=True, kw_only=True):
    """How the success of `runs` runs under faults varies between `tasks` tasks and within them.

    `between` is σ_b², `within` MSW, `icc` ρ; None where one task, or one run a task, shows nothing of them.
    `all_succeed` is pass^j by j, as far as every task has j runs.
    """

    tasks: int
    runs: int
    between: float | None
    within: float | None
    icc: float | None
    all_succeed: dict[int, float]


def variation(tasks: Tasks) -> Variation | None:
    """Return the variation of a share over tasks, None where no run carries it."""
    k = len(tasks.n)
    if not k:
        return None
    # Tasks with equal counts are many, so that exact fractions are added once for each kind.
    kinds = Counter(zip(tasks.y.tolist(), tasks.n.tolist(), strict=True))
    total = sum(n * times for (_, n), times in kinds.items())
    succeeded = sum(y * times for (y, _), times in kinds.items())
    passed = {
        j: float(sum(times * Fraction(comb(y, j), comb(n, j)) for (y, n), times in kinds.items()) / k)
        for j in range(1, min(*(n for _, n in kinds), MOST_RUNS) + 1)
    }
    if k < 2 or total == k:  # noqa: PLR2004 - one task shows nothing of how tasks differ
        return Variation(tasks=k, runs=total, between=None, within=None, icc=None, all_succeed=passed)
    squares = sum(times * Fraction(y * y, n) for (y, n), times in kinds.items())
    within = (succeeded - squares) / (total - k)
    spread = (squares - Fraction(succeeded**2, total)) / (k - 1)
    usual = (total - Fraction(sum(times * n * n for (_, n), times in kinds.items()), total)) / (k - 1)
    between = max(Fraction(0), (spread - within) / usual)
    whole = between + within
    return Variation(
        tasks=k,
        runs=total,
        between=float(between),
        within=float(within),
        icc=float(between / whole) if whole else None,
        all_succeed=passed,
    )
