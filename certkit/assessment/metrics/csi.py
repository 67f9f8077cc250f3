"""The consistency stability index exactly as printed, [26] eq. 7-9, over the latest ordered runs.

The printed formula is degenerate: its trend term is 0 or 1 for any slope above 1e-6, and one recovery
that differs from the others in intentionality pulls the middle factor to .60 or less. It is computed as
printed all the same, and the findings say where it bites.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Final

from msgspec import structs

from certkit.assessment.metrics.metric import Metric, State, unmeasured
from certkit.evidence.summary.summary import WINDOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.assessment.metrics.view import View

TREND: Final = 20
"""M: runs over which the slope of failures is taken, [26] eq. 8."""

SPREAD: Final = 0.5
"""c: normalisation of a standard deviation, [26] eq. 9."""

EPSILON: Final = Fraction(1, 10**6)

SILENT: Final = -1
"""How `WindowRun.irs` marks a recovery without any memory field."""


def csi(view: View) -> Metric:
    """Return CSI over the `WINDOW` latest runs, or why it cannot be had."""
    window = view.summary.window
    runs = window.latest[-WINDOW:]
    if window.order is None:
        return unmeasured("csi", window.reason or "the runs have no order", n=len(runs))
    if len(runs) < WINDOW:
        return unmeasured("csi", f"{len(runs)} ordered runs, {WINDOW} needed", n=len(runs))
    pei = [Fraction(*run.pei) for run in runs if run.pei is not None]
    if len(pei) < len(runs):
        return unmeasured(
            "csi", f"{len(runs) - len(pei)} of the latest {WINDOW} runs carry no PEI", n=len(runs)
        )
    recoveries = [run.irs for run in runs if run.irs is not None]
    observable = view.observable
    irs = [
        Fraction(max(recovery, 0))
        for recovery in recoveries
        if recovery >= 0 or (recovery == SILENT and observable)
    ]
    if len(irs) < 2:  # noqa: PLR2004 - a standard deviation needs two
        reason = f"{len(irs)} recoveries of known intentionality in the latest {WINDOW} runs, 2 needed"
        return unmeasured("csi", reason, n=len(runs))
    metric = _product(pei, irs, [not run.success for run in runs[-TREND:]], window.order)
    if unknown := len(recoveries) - len(irs):
        return structs.replace(
            metric,
            state=State.PARTIAL,
            coverage=Fraction(len(irs), len(recoveries)),
            reason=f"{unknown} of {len(recoveries)} recoveries in the window have unknown intentionality",
        )
    return metric


def _product(pei: list[Fraction], irs: list[Fraction], failures: list[bool], order: str) -> Metric:
    sigma_pei, sigma_irs = deviation(pei), deviation(irs)
    slope = ols_slope(failures)
    rho = min(max(slope / max(abs(slope), EPSILON), Fraction(0)), Fraction(1))
    stable_pei, stable_irs = stability(sigma_pei), stability(sigma_irs)
    return Metric(
        id="csi",
        state=State.MEASURED,
        value=stable_pei * stable_irs * float(1 - rho),
        n=len(pei),
        counts={"recoveries": len(irs), "intentional": int(sum(irs))},
        detail={
            "order": order,
            "sigma_pei": sigma_pei,
            "sigma_irs": sigma_irs,
            "slope": slope,
            "pei_stability": stable_pei,
            "irs_stability": stable_irs,
            "trend": 1 - rho,
        },
    )


def deviation(values: Sequence[Fraction]) -> float:
    """Return the sample standard deviation of two or more values, [26] eq. 7, rounded once."""
    centre = sum(values, Fraction(0)) / len(values)
    return sqrt(sum(((value - centre) ** 2 for value in values), Fraction(0)) / (len(values) - 1))


def stability(sigma: float) -> float:
    """Return one stability factor of [26] eq. 9, in 0…1."""
    return 1 - min(1.0, 2 * sigma / SPREAD)


def ols_slope(failures: Sequence[bool]) -> Fraction:
    """Return the least-squares slope of the failure indicator per run, [26] eq. 8."""
    n = len(failures)
    centre = Fraction(n - 1, 2)
    spread = sum(((i - centre) ** 2 for i in range(n)), Fraction(0))
    return sum(((i - centre) * failed for i, failed in enumerate(failures)), Fraction(0)) / spread
