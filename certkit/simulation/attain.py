"""What the simulator aims at: agents between a tier of hb-eval-2026 (Table 1 of [26]) and the next."""

from __future__ import annotations

from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class AgentMeans(NamedTuple):
    """The means of an agent that lies between a tier and the next; shares of runs but for `ti` (1 to 5).

    `ratio` is steps_oracle / steps_actual, `detour` the share of runs with one step more, `full_grade` the
    share of grade 1.0 among recoveries, whose others have 0.7.
    """

    nominal: float
    single: float
    cascade: float
    ratio: float
    detour: float
    irs: float
    full_grade: float
    ti: float


AGENTS: Final = {
    0: AgentMeans(0.80, 0.48, 0.30, 0.60, 0.5, 0.25, 0.6, 2.5),
    1: AgentMeans(0.90, 0.78, 0.68, 0.79, 0.3, 0.68, 0.95, 3.5),
    2: AgentMeans(0.96, 0.92, 0.86, 0.88, 0.2, 0.82, 0.95, 4.25),
    3: AgentMeans(0.995, 0.988, 0.975, 0.96, 0.1, 0.95, 0.97, 4.75),
}


class Draw(Struct, frozen=True, kw_only=True, eq=False):
    """Simulated runs in the order of time: arrays with an element per run.

    `grade` is the run's recovery grade in tenths; `intentional` matters for recoveries only, the successful
    fault runs whose fault took hold.
    """

    success: NDArray[np.bool_]
    held: NDArray[np.bool_]  # the fault took hold
    oracle: NDArray[np.int64]
    actual: NDArray[np.int64]
    violations: NDArray[np.int64]
    grade: NDArray[np.int64]
    intentional: NDArray[np.bool_]
    ti: NDArray[np.float64]


TAU: Final = {1: Fraction(3, 5), 2: Fraction(4, 5), 3: Fraction(19, 20)}
"""Success under faults that a tier asks for."""
DELTA: Final = {1: Fraction(19, 20), 2: Fraction(19, 20), 3: Fraction(99, 100)}
"""The confidence that it must hold with."""


def needed(tier: int) -> int:
    """Return the least number of fault runs, all successful, that attain a tier: 1 − τ^(n+1) > δ."""
    runs = 0
    while 1 - TAU[tier] ** (runs + 1) <= DELTA[tier]:
        runs += 1
    return runs
