"""Coverage of the intervals of a proportion, exactly: no draws, no grid.

Between two ends of intervals the same counts s cover p, so that coverage is P(a ≤ S ≤ b), which has its
minimum over the piece at one of its ends. Its mean over p uniform in 0…1 is the mean over s of the share
of Beta(s + 1, n - s + 1) that lies within the interval of s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy.special import bdtr, betainc

from certkit.assessment.statistics.estimators import LEVEL, clopper_pearson, jeffreys, wilson
from tests.study.draws import Limit, markdown, percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.assessment.statistics.estimators import Interval
    from tests.study.draws import Floats, Integers

METHODS: Final[dict[str, Callable[[int, int], Interval]]] = {
    "Wilson": wilson,
    "Clopper–Pearson": clopper_pearson,
    "Jeffreys": jeffreys,
}
RUNS: Final = (10, 20, 40, 100, 1000)
SLACK: Final = 1e-12
"""Rounding of a sum that is .95 exactly at the ends of Clopper and Pearson's intervals."""


class Coverage(NamedTuple):
    """The least coverage over all p, and the mean over p uniform in 0…1."""

    least: float
    mean: float


def ends(method: str, n: int) -> tuple[Floats, Floats]:
    """Return the lower and upper ends of the intervals of 0 … n successes."""
    found = [METHODS[method](s, n) for s in range(n + 1)]
    return np.array([one.low for one in found]), np.array([one.high for one in found])


def at(method: str, n: int, p: Floats) -> Floats:
    """Return the coverage at each p."""
    low, high = ends(method, n)
    return _between(np.searchsorted(high, p), np.searchsorted(low, p, side="right") - 1, n, p)


def coverage(method: str, n: int) -> Coverage:
    """Return the coverage of a method at n runs."""
    low, high = ends(method, n)
    cuts = np.unique(np.concatenate([low, high, [0.0, 1.0]]))
    middle = (cuts[:-1] + cuts[1:]) / 2
    # Ends rise with s, so that the counts which cover the middle of a piece are a run of them.
    first, last = np.searchsorted(high, middle), np.searchsorted(low, middle, side="right") - 1
    least = min(float(_between(first, last, n, edge).min()) for edge in (cuts[:-1], cuts[1:]))
    s = np.arange(n + 1)
    within = betainc(s + 1, n - s + 1, high) - betainc(s + 1, n - s + 1, low)
    return Coverage(least, float(within.mean()))


def _between(first: Integers, last: Integers, n: int, p: Floats) -> Floats:
    """Return P(first ≤ S ≤ last)."""
    below = np.where(first > 0, bdtr(np.maximum(first - 1, 0), n, p), 0.0)
    return np.asarray(bdtr(last, n, p) - below, np.float64)


def coverage_table() -> str:
    """Return least and mean coverage of every method."""
    rows = []
    for n in RUNS:
        row = [f"{n:,}"]
        for method in METHODS:
            found = coverage(method, n)
            row += [percent(found.least, 2), percent(found.mean, 2)]
        rows.append(row)
    head = [f"{method}, {what}" for method in METHODS for what in ("least", "mean")]
    return markdown(("runs", *head), rows)


def coverage_limits() -> list[Limit]:
    """Return what was promised of intervals."""
    least = min(coverage("Clopper–Pearson", n).least for n in RUNS)
    away = {
        method: max(abs(coverage(method, n).mean - LEVEL) for n in RUNS) for method in ("Wilson", "Jeffreys")
    }
    limits = [
        Limit(
            "Clopper–Pearson never covers less often than 95 %",
            f"least {percent(least, 3)} %",
            least >= LEVEL - SLACK,
        )
    ]
    limits += [
        Limit(
            f"{method}: mean coverage within 1.5 points of 95 %",
            f"at most {percent(most, 2)} points away",
            most <= 0.015,
        )
        for method, most in away.items()
    ]
    return limits
