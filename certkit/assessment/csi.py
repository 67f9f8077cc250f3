"""The consistency stability index exactly as printed, [26] eq. 7-9, over the latest 100 ordered runs.

The printed formula is degenerate: its trend term is 0 or 1 for any slope above 1e-6, and one recovery that
differs from the others in intentionality pulls the middle factor to .60 or less. certkit computes it as
printed all the same. It is provisional in its paper, and decides no tier unless asked to.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm, sqrt
from typing import TYPE_CHECKING, Final

from msgspec import structs

from certkit.assessment.metric import Metric, Reason, unmeasured
from certkit.ground.document import State
from certkit.summary.summary import WINDOW, Summary

if TYPE_CHECKING:
    from collections.abc import Sequence

TREND: Final = 20
"""M: runs over which the slope of failures is taken, [26] eq. 8."""
SPREAD: Final = 0.5
"""c: normalisation of a standard deviation, [26] eq. 9."""
EPSILON: Final = Fraction(1, 10**6)
SILENT: Final = -1
"""How `LatestRun.irs` marks a recovery without any memory field."""


def csi(summary: Summary) -> Metric:
    """Return CSI over the `WINDOW` latest runs, or why it cannot be had."""
    order, runs = summary.order, summary.order.latest
    if order.by is None:
        reason = Reason(order.reason or "no-runs", dict(order.counts))
        return Metric(id="csi", state=State.UNMEASURED, n=len(runs), reason=reason)
    if len(runs) < WINDOW:
        return unmeasured("csi", "few-ordered-runs", n=len(runs), runs=len(runs), needed=WINDOW)
    pei = [Fraction(run.numerator, run.denominator) for run in runs if run.numerator is not None]
    if len(pei) < len(runs):
        return unmeasured("csi", "csi-without-pei", n=len(runs), missing=len(runs) - len(pei), needed=WINDOW)
    recoveries = [run.irs for run in runs if run.irs is not None]
    known = [
        Fraction(max(recovery, 0))
        for recovery in recoveries
        if recovery >= 0 or (recovery == SILENT and summary.memory_observable)
    ]
    if len(known) < 2:  # noqa: PLR2004 - a standard deviation needs two
        return unmeasured("csi", "csi-few-recoveries", n=len(runs), recoveries=len(known), needed=2)
    metric = _product(pei, known, [not run.success for run in runs[-TREND:]], order.by)
    if unknown := len(recoveries) - len(known):
        return structs.replace(
            metric,
            state=State.PARTIAL,
            coverage=Fraction(len(known), len(recoveries)),
            reason=Reason("partial-irs", {"missing": unknown, "recoveries": len(recoveries)}),
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
    n, unit = len(values), lcm(*(value.denominator for value in values))
    units = [value.numerator * (unit // value.denominator) for value in values]
    squares = n * sum(value * value for value in units) - sum(units) ** 2
    return sqrt(Fraction(squares, n * (n - 1) * unit * unit))


def stability(sigma: float) -> float:
    """Return one stability factor of [26] eq. 9, in 0…1."""
    return 1 - min(1.0, 2 * sigma / SPREAD)


def ols_slope(failures: Sequence[bool]) -> Fraction:
    """Return the least-squares slope of the failure indicator per run, [26] eq. 8."""
    n = len(failures)
    # Σ(i − ī)² = n(n² − 1)/12, and twice i − ī is an integer.
    return Fraction(6 * sum(2 * i - (n - 1) for i, failed in enumerate(failures) if failed), n * (n * n - 1))
