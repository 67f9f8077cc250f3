"""How much tasks differ: variance components of a success rate, and how often all of several runs succeed.

    σ_b² = max(0, (MSB − MSW)/n₀)      n₀ = (n − Σn_c²/n)/(k − 1)      ρ = σ_b²/(σ_b² + MSW)

for k tasks c with n_c runs each, n in all: the intraclass correlation by analysis of variance (Donner 1986, R
`ICCest`). pass^j is the mean over tasks of C(y, j)/C(n, j), the chance that j runs of one task all succeed
(Yao 2024). Shares only: a run is a success or not.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from certkit.evidence.summary.tasks import Tasks

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
