"""What the simulator aims at, and whether simulated runs attain the wanted tier and no higher one.

The assessment itself decides, by the table reading of the packaged profile hb-eval-2026 (Table 1 of [26]), so
that nothing about a metric stands here.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from certkit.assessment.bounded import Judged
from certkit.assessment.findings.contradictions import contradictions
from certkit.assessment.findings.findings import Severity
from certkit.assessment.profile import parse
from certkit.assessment.statistics.estimators import least_failure_free
from certkit.bundle.folder import open_bundle
from certkit.ground import files
from certkit.summary.summarise import summarise

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from certkit.assessment.profile import Profile


class Agent(NamedTuple):
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
    0: Agent(0.80, 0.48, 0.30, 0.60, 0.5, 0.25, 0.6, 2.5),
    1: Agent(0.90, 0.78, 0.68, 0.79, 0.3, 0.68, 0.95, 3.5),
    2: Agent(0.96, 0.92, 0.86, 0.88, 0.2, 0.82, 0.95, 4.25),
    3: Agent(0.995, 0.988, 0.975, 0.96, 0.1, 0.95, 0.97, 4.75),
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


@cache
def table() -> Profile:
    """Return the packaged profile whose tiers are simulated."""
    path = files.packaged("templates", "profiles", "hb-eval-2026.toml")
    return parse(files.read(path, limit=1 << 20).decode(), path.name)


def needed(tier: int) -> int:
    """Return the least number of fault runs that could attain a tier, all of them successful."""
    return least_failure_free(table().tau[tier], table().delta[tier]) or 0


def attains(folder: Path, tier: int) -> bool:
    """Tell whether the runs of a bundle attain `tier`, no higher one, and nothing in them contests it."""
    opened = open_bundle(folder)
    judged = Judged(summarise(opened), opened.manifest, table())
    if judged.tier("table") != tier:
        return False
    return tier == 0 or not any(item.severity is Severity.SERIOUS for item in contradictions(judged))
