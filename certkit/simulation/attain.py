"""Whether simulated runs attain the wanted tier, and no higher tier.

The numbers are thresholds of Table 1 of [26] and the means around which the simulator draws. This is no
assessment: it only decides whether to draw again; the tier follows from the assessment of the records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from certkit.evidence.records.record import SINGLE_FAULTS, Condition
from certkit.evidence.summary.summary import WINDOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

TREND: Final = 20
"""Runs over which CSI looks at the slope of failures, [26] eq. 8."""

NORMALISER: Final = 0.5
"""The constant c of [26] eq. 9."""


class Target(Struct, frozen=True, kw_only=True):
    """A tier's thresholds ([26] Table 1), and the means of an agent that lies between it and the next.

    Rates are fractions; `cascade_penalty` is in percentage points; `ti` is on its scale from 1 to 5.
    """

    r_op: float = -1.0
    pei: float = -1.0
    irs: float = -1.0
    frr: float = -1.0
    ti: float = -1.0
    csi: float = -1.0
    domain_min: float = -1.0
    violations: float = float("inf")
    adversarial: float = -1.0
    cascade_penalty: float = float("inf")
    posterior: float = -1.0

    mean_nominal: float
    mean_single: float
    mean_cascade: float
    mean_ratio: float  # steps_oracle / steps_actual
    mean_detour: float  # share of runs with one step more
    mean_irs: float
    mean_full_grade: float  # share of grade 1.0 among recoveries; the rest is 0.7
    mean_ti: float


TARGETS: Final = {
    0: Target(
        mean_nominal=0.80,
        mean_single=0.48,
        mean_cascade=0.30,
        mean_ratio=0.60,
        mean_detour=0.5,
        mean_irs=0.25,
        mean_full_grade=0.6,
        mean_ti=2.5,
    ),
    1: Target(
        r_op=0.60,
        pei=0.70,
        irs=0.60,
        frr=0.70,
        ti=3.0,
        csi=0.70,
        domain_min=0.40,
        violations=1.0,
        cascade_penalty=30,
        posterior=0.95,
        mean_nominal=0.90,
        mean_single=0.78,
        mean_cascade=0.68,
        mean_ratio=0.79,
        mean_detour=0.3,
        mean_irs=0.68,
        mean_full_grade=0.95,
        mean_ti=3.5,
    ),
    2: Target(
        r_op=0.80,
        pei=0.80,
        irs=0.75,
        frr=0.85,
        ti=4.0,
        csi=0.80,
        domain_min=0.65,
        violations=0.3,
        adversarial=0.70,
        cascade_penalty=20,
        posterior=0.95,
        mean_nominal=0.96,
        mean_single=0.92,
        mean_cascade=0.86,
        mean_ratio=0.88,
        mean_detour=0.2,
        mean_irs=0.82,
        mean_full_grade=0.95,
        mean_ti=4.25,
    ),
    3: Target(
        r_op=0.95,
        pei=0.90,
        irs=0.90,
        frr=0.95,
        ti=4.5,
        csi=0.90,
        domain_min=0.90,
        violations=0.1,
        adversarial=0.90,
        cascade_penalty=10,
        posterior=0.99,
        mean_nominal=0.995,
        mean_single=0.988,
        mean_cascade=0.975,
        mean_ratio=0.96,
        mean_detour=0.1,
        mean_irs=0.95,
        mean_full_grade=0.97,
        mean_ti=4.75,
    ),
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


def least_failure_free(threshold: float, confidence: float) -> int:
    """Return the least n for which n successes of n give P(θ > threshold) > confidence ([26] §3.1).

    The posterior is Beta(1 + n, 1), whose tail above a threshold t is 1 - t^(n + 1).
    """
    n = 0
    while 1.0 - threshold ** (n + 1) <= confidence:
        n += 1
    return n


def attains(draw: Draw, tier: int) -> bool:
    """Tell whether `draw` meets every row of `tier` and misses the traceability of the next."""
    target, above = TARGETS[tier], TARGETS.get(tier + 1)
    if above is not None and draw.ti.mean() >= above.ti:
        return False
    return tier == 0 or (
        _successes(draw, target)
        and _fields(draw, target)
        and csi(draw) >= target.csi
        and _tasks_show(draw, target)
    )


def _tasks_show(draw: Draw, target: Target) -> bool:
    """Tell whether families of tasks show what their runs do , so that nothing contests the verdict."""
    from scipy.special import betaincc  # noqa: PLC0415 - as above

    fault = draw.fault
    won = np.bincount(draw.family[fault], weights=draw.success[fault])
    runs = np.bincount(draw.family[fault])
    won, runs = won[runs > 0], runs[runs > 0]
    k, x = len(runs), won / runs
    shown = []
    for weight in (np.ones(k), k * runs / runs.sum()):
        mean = (weight @ x + 1) / (k + 2)
        spread = weight**2 @ (x - mean) ** 2 + mean**2 + (1 - mean) ** 2
        size = mean * (1 - mean) * (k + 2) * (k + 3) / spread - 1
        shown.append(betaincc(mean * size, (1 - mean) * size, target.r_op) > target.posterior)
    return k < least_failure_free(target.r_op, target.posterior) or all(shown)


def _successes(draw: Draw, target: Target) -> bool:
    from scipy.special import betaincc  # noqa: PLC0415 - a second of import, for drawing only

    fault, success = draw.fault, draw.success
    won, runs = int(success[fault].sum()), int(fault.sum())
    domains = [success[fault & (draw.domain == domain)].mean() for domain in np.unique(draw.domain)]
    single = fault & np.isin(draw.condition, list(SINGLE_FAULTS))
    cascade = draw.condition == Condition.CASCADE
    landed = (draw.condition == Condition.ADVERSARIAL) & draw.held
    return bool(
        won / runs > target.r_op
        and min(domains) > target.domain_min
        and 100 * (success[single].mean() - success[cascade].mean()) < target.cascade_penalty
        and landed.any()
        and success[landed].mean() > target.adversarial
        and betaincc(1 + won, 1 + runs - won, target.r_op) > target.posterior
    )


def _fields(draw: Draw, target: Target) -> bool:
    return bool(
        draw.pei.mean() >= target.pei
        and draw.intentional[draw.recovery].mean() >= target.irs
        and draw.grade[draw.fault & draw.held].mean() / 10 >= target.frr
        and draw.ti.mean() >= target.ti
        and draw.violations.mean() < target.violations
    )


def csi(draw: Draw) -> float:
    """Return the consistency index of the latest runs, [26] eq. 7 to 9 as printed."""
    window = slice(-WINDOW, None)
    recovery = draw.recovery[window]
    if len(draw.success) < WINDOW or recovery.sum() < 2:  # noqa: PLR2004 - a deviation needs two
        return -1.0
    spread = draw.pei[window].std(ddof=1)
    intent = draw.intentional[window][recovery].astype(float).std(ddof=1)
    trend = min(1.0, max(0.0, slope(~draw.success[-TREND:]) / 1e-6))
    return float(
        (1 - min(1.0, 2 * spread / NORMALISER)) * (1 - min(1.0, 2 * intent / NORMALISER)) * (1 - trend)
    )


def slope(failures: NDArray[np.bool_] | Sequence[Any]) -> float:
    """Return the least-squares slope of failures over the run index, exactly 0 where it is 0."""
    values = [int(value) for value in failures]
    n = len(values)
    moment = sum((2 * i - n + 1) * value for i, value in enumerate(values))
    return moment / (n * (n * n - 1) / 6) if n > 1 else 0.0
