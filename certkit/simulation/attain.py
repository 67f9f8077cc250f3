"""Whether simulated runs attain the wanted tier, and no higher tier.

Thresholds are those of the packaged profile hb-eval-2026 (Table 1 of [26]). This is no assessment: it only
decides whether to draw again; the tier follows from the assessment of the records.
"""

from __future__ import annotations

import operator
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import Struct

from certkit import files, resources
from certkit.assessment.metrics.csi import ols_slope
from certkit.assessment.profile import parse
from certkit.assessment.statistics.estimators import least_failure_free
from certkit.evidence.records.record import SINGLE_FAULTS, Condition
from certkit.evidence.summary.summary import WINDOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from certkit.assessment.profile import Profile

TREND: Final = 20
"""Runs over which CSI looks at the slope of failures, [26] eq. 8."""

NORMALISER: Final = 0.5
"""The constant c of [26] eq. 9."""


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

    `pei` is the run's planning efficiency; `grade` its recovery grade in tenths; `intentional`
    matters for recoveries only, the successful fault runs whose fault took hold.
    """

    domain: NDArray[np.int64]
    condition: NDArray[np.str_]
    family: NDArray[np.int64]
    success: NDArray[np.bool_]
    held: NDArray[np.bool_]  # the fault took hold
    oracle: NDArray[np.int64]
    actual: NDArray[np.int64]
    violations: NDArray[np.int64]
    grade: NDArray[np.int64]
    intentional: NDArray[np.bool_]
    ti: NDArray[np.float64]

    @property
    def fault(self) -> NDArray[np.bool_]:
        """Which runs are fault runs."""
        return np.asarray(self.condition != Condition.NOMINAL)

    @property
    def recovery(self) -> NDArray[np.bool_]:
        """Which runs are recoveries."""
        return self.fault & self.success & self.held

    @property
    def pei(self) -> NDArray[np.float64]:
        """Planning efficiency of each run, [26] eq. 5; the simulator stops no run short."""
        return np.asarray(self.oracle / self.actual * np.maximum(0.0, 1.0 - 0.2 * self.violations))


@cache
def table() -> Profile:
    """Return the packaged profile whose tiers are simulated."""
    path = resources.path("templates", "profiles", "hb-eval-2026.toml")
    return parse(files.read(path, limit=1 << 20).decode(), path.name)


def needed(tier: int) -> int:
    """Return the least number of fault runs that could attain a tier, all of them successful."""
    return least_failure_free(table().tau[tier], table().delta[tier]) or 0


def attains(draw: Draw, tier: int) -> bool:
    """Tell whether `draw` meets every row of `tier` and misses the traceability of the next."""
    rows = {row.metric: row for row in table().criteria}
    above = rows["ti"].threshold(tier + 1)
    if above is not None and draw.ti.mean() >= above:
        return False
    for metric, value in _VALUES.items():
        threshold = rows[metric].threshold(tier)
        if threshold is not None and not _PASSES[rows[metric].operator_at(tier)](
            value(draw), float(threshold)
        ):
            return False
    return tier == 0 or _posteriors(draw, tier)


def _posteriors(draw: Draw, tier: int) -> bool:
    """Tell whether runs, and families of tasks, show r_op, so that nothing contests the verdict."""
    from scipy.special import betaincc  # noqa: PLC0415 - a second of import, for drawing only

    tau, delta = float(table().tau[tier]), float(table().delta[tier])
    fault = draw.fault
    runs = np.bincount(draw.family[fault])
    won = np.bincount(draw.family[fault], weights=draw.success[fault])[runs > 0]
    runs = runs[runs > 0]
    k, x = len(runs), won / runs
    shown = []
    for weight in (np.ones(k), k * runs / runs.sum()):
        mean = (weight @ x + 1) / (k + 2)
        spread = weight**2 @ (x - mean) ** 2 + mean**2 + (1 - mean) ** 2
        size = mean * (1 - mean) * (k + 2) * (k + 3) / spread - 1
        shown.append(betaincc(mean * size, (1 - mean) * size, tau) > delta)
    by_runs = betaincc(1 + won.sum(), 1 + runs.sum() - won.sum(), tau) > delta
    return bool(by_runs) and (k < needed(tier) or all(shown))


def _domain_min(draw: Draw) -> float:
    return float(
        min(draw.success[draw.fault & (draw.domain == domain)].mean() for domain in np.unique(draw.domain))
    )


def _resistance(draw: Draw) -> float:
    landed = (draw.condition == Condition.ADVERSARIAL) & draw.held
    return float(draw.success[landed].mean()) if landed.any() else -1.0


def _cascade_penalty(draw: Draw) -> float:
    single = np.isin(draw.condition, list(SINGLE_FAULTS))
    cascade = draw.success[draw.condition == Condition.CASCADE]
    return float(100 * (draw.success[single].mean() - cascade.mean()))


def csi(draw: Draw) -> float:
    """Return the consistency index of the latest runs, [26] eq. 7 to 9 as printed."""
    window = slice(-WINDOW, None)
    recovery = draw.recovery[window]
    if len(draw.success) < WINDOW or recovery.sum() < 2:  # noqa: PLR2004 - a deviation needs two
        return -1.0
    spread = draw.pei[window].std(ddof=1)
    intent = draw.intentional[window][recovery].astype(float).std(ddof=1)
    trend = min(1.0, max(0.0, float(ols_slope((~draw.success[-TREND:]).tolist())) / 1e-6))
    return float(
        (1 - min(1.0, 2 * spread / NORMALISER)) * (1 - min(1.0, 2 * intent / NORMALISER)) * (1 - trend)
    )


_PASSES: Final = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_VALUES: Final[dict[str, Callable[[Draw], float]]] = {
    "r_op": lambda draw: float(draw.success[draw.fault].mean()),
    "domain_min": _domain_min,
    "cascade_penalty": _cascade_penalty,
    "adversarial_resistance": _resistance,
    "pei": lambda draw: float(draw.pei.mean()),
    "irs": lambda draw: float(draw.intentional[draw.recovery].mean()),
    "frr": lambda draw: float(draw.grade[draw.fault & draw.held].mean() / 10),
    "ti": lambda draw: float(draw.ti.mean()),
    "violations": lambda draw: float(draw.violations.mean()),
    "csi": csi,
}
