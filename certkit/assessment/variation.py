"""How success under faults varies between tasks and within them.

With k tasks, n_c runs and y_c successes of task c, n runs in all (Donner 1986; R `ICCest`):

    n₀ = (n − Σn_c²/n)/(k − 1)     σ_b² = max(0, (MSB − MSW)/n₀)     ρ = σ_b²/(σ_b² + MSW)

pass^j is the mean over tasks of C(y_c, j)/C(n_c, j): the chance that j runs of one task all succeed (Yao
2024). Sums are exact and are divided once. The tier does not depend on any of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, Final

from certkit.ground.document import Count, Part

if TYPE_CHECKING:
    from certkit.summary.summary import Summary

MOST_RUNS: Final = 10
"""Runs of one task that pass^j looks at."""


class Variation(Part, frozen=True, kw_only=True):
    """How the success of runs under faults varies.

    Attributes:
        tasks: tasks with a run under a fault.
        runs: their runs.
        between: σ_b², the variance between tasks; null where one task, or one run a task, shows none.
        within: MSW, the variance within tasks; null likewise.
        icc: ρ, the share of the variance that lies between tasks; null likewise, and where nothing varies.
        all_succeed: pass^j by j, as far as every task has j runs.
    """

    tasks: Count
    runs: Count
    between: float | None = None
    within: float | None = None
    icc: float | None = None
    all_succeed: Mapping[int, float] = {}


def variation(summary: Summary) -> Variation | None:
    """Return the variation of success under faults, None where there is no such run."""
    rows = summary.share("r_op").rows
    if not rows:
        return None
    k = sum(tasks for _, _, tasks in rows)
    runs = sum(n * tasks for n, _, tasks in rows)
    all_succeed = {
        j: float(sum(tasks * Fraction(comb(y, j), comb(n, j)) for n, y, tasks in rows) / k)
        for j in range(1, min(MOST_RUNS, *(n for n, _, _ in rows)) + 1)
    }
    if k in {1, runs}:
        return Variation(tasks=k, runs=runs, all_succeed=all_succeed)
    successes = sum(y * tasks for _, y, tasks in rows)
    squares = sum((tasks * Fraction(y * y, n) for n, y, tasks in rows), Fraction(0))
    within = (successes - squares) / (runs - k)
    between_squares = (squares - Fraction(successes * successes, runs)) / (k - 1)
    usual_size = (runs - Fraction(sum(tasks * n * n for n, _, tasks in rows), runs)) / (k - 1)
    between = max(Fraction(0), (between_squares - within) / usual_size)
    return Variation(
        tasks=k,
        runs=runs,
        between=float(between),
        within=float(within),
        icc=float(between / (between + within)) if between + within else None,
        all_succeed=all_succeed,
    )


def icc(summary: Summary) -> float | None:
    """Return the intraclass correlation ρ of success under faults, None where the runs do not show it."""
    result = variation(summary)
    return None if result is None else result.icc
