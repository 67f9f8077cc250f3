"""The consistency stability index: exactly as printed, [26] eq. 7-9, and over ten windows.

The printed formula, over the latest ordered runs, is degenerate: its trend term is 0 or 1 for any slope above
1e-6, and one recovery that differs from the others in intentionality pulls the middle factor to .60 or less.
It is computed as printed all the same, and the findings say where it bites.

`csi_windowed` is certkit's alternative. The product is that of eq. 9, (1 - min(1, 2σ_PEI/c)) ·
(1 - min(1, 2σ_IRS/c)) · (1 - ρ) with c = 0.5, but its terms measure drift between windows instead of the
scatter of single runs, over all ordered runs, at least 500, in ten equal consecutive windows.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm, sqrt
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from certkit.assessment.metrics.metric import Metric, State, too_many_harness_errors, unmeasured
from certkit.summary.summary import PEI_SCALE, STRETCHES, WINDOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.assessment.metrics.series import View
    from certkit.summary.summary import Stretch, Window

TREND: Final = 20
"""M: runs over which the slope of failures is taken, [26] eq. 8."""

SPREAD: Final = 0.5
"""c: normalisation of a standard deviation, [26] eq. 9."""

EPSILON: Final = Fraction(1, 10**6)

SILENT: Final = -1
"""How `WindowRun.irs` marks a recovery without any memory field."""

LEAST_RUNS: Final = 500
LEAST_RECOVERIES: Final = 5
LEVEL: Final = 0.05


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
    # Σ(i − ī)² = n(n² − 1)/12, and twice i − ī is whole.
    return Fraction(6 * sum(2 * i - (n - 1) for i, failed in enumerate(failures) if failed), n * (n * n - 1))


class Spread(Struct, frozen=True, kw_only=True):
    """How far window means lie apart: σ beyond what scatter explains, and p of the test for homogeneity."""

    sigma: float
    p: float


def csi_windowed(view: View) -> Metric:
    """Return the windowed index over all ordered runs, or why it cannot be had."""
    window = view.summary.window
    if window.order is None:
        return unmeasured("csi_windowed", window.reason or "the runs have no order", n=window.runs)
    if window.runs < LEAST_RUNS or len(window.stretches) < STRETCHES:
        return unmeasured("csi_windowed", f"{window.runs} ordered runs, {LEAST_RUNS} needed", n=window.runs)
    observable = view.observable
    recoveries = [_recoveries(stretch, observable=observable) for stretch in window.stretches]
    if min(m for _, m in recoveries) < LEAST_RECOVERIES:
        least = min(m for _, m in recoveries)
        reason = (
            f"{least} recoveries of known intentionality in one window, {LEAST_RECOVERIES} needed in each"
        )
        return unmeasured("csi_windowed", reason, n=window.runs)
    if min(stretch.pei_n for stretch in window.stretches) < 2:  # noqa: PLR2004 - a variance needs two
        return unmeasured("csi_windowed", "the runs of a window carry no PEI", n=window.runs)
    return structs.replace(_metric(window, recoveries), blocked=too_many_harness_errors(view.total))


def _metric(window: Window, recoveries: list[tuple[int, int]]) -> Metric:
    pei, irs = pei_spread(window.stretches), irs_spread(recoveries)
    slope, slope_p = trend(window.runs, window.failures, window.failure_moment)
    rho = min(1.0, (window.runs - 1) * max(0.0, slope)) if slope_p < LEVEL else 0.0
    # Harness errors are not eligible, as in every field metric; too many of them block the row.
    missing = window.runs - sum(stretch.pei_n + stretch.harness_errors for stretch in window.stretches)
    unknown = sum(stretch.irs_silent + stretch.irs_incomplete for stretch in window.stretches)
    known = sum(m for _, m in recoveries)
    unknown -= known - sum(stretch.irs_yes + stretch.irs_no for stretch in window.stretches)
    return Metric(
        id="csi_windowed",
        state=State.PARTIAL if missing or unknown else State.MEASURED,
        value=stability(pei.sigma) * stability(irs.sigma) * (1 - rho),
        n=window.runs,
        counts={"recoveries": known, "intentional": sum(yes for yes, _ in recoveries)},
        coverage=min(Fraction(window.runs - missing, window.runs), Fraction(known, known + unknown)),
        reason=_reason(missing, unknown, window.runs),
        detail={
            "order": window.order,
            "sigma_pei": pei.sigma,
            "p_pei": pei.p,
            "sigma_irs": irs.sigma,
            "p_irs": irs.p,
            "slope": slope,
            "p_slope": slope_p,
            "trend": 1 - rho,
        },
    )


def _reason(missing: int, unknown: int, runs: int) -> str | None:
    parts = []
    if missing:
        parts.append(f"{missing:,} of {runs:,} ordered runs carry no PEI")
    if unknown:
        parts.append(f"{unknown:,} recoveries have unknown intentionality")
    return "; ".join(parts) or None


def _recoveries(stretch: Stretch, *, observable: bool) -> tuple[int, int]:
    """Return the intentional recoveries of a window, and all of known intentionality."""
    silent = stretch.irs_silent if observable else 0
    return stretch.irs_yes, stretch.irs_yes + stretch.irs_no + silent


def pei_spread(stretches: Sequence[Stretch]) -> Spread:
    """Return how far the mean PEI of windows lie apart, by one-way analysis of variance."""
    from scipy.special import fdtrc  # noqa: PLC0415 - heavy

    groups = [
        (s.pei_n, Fraction(s.pei_fixed, PEI_SCALE), Fraction(s.pei_squares, PEI_SCALE**2)) for s in stretches
    ]
    total = sum(n for n, _, _ in groups)
    means = [summed / n for n, summed, _ in groups]
    grand = sum((summed for _, summed, _ in groups), Fraction(0)) / total
    inner = [squares - summed * summed / n for n, summed, squares in groups]
    between = sum((n * (m - grand) ** 2 for (n, _, _), m in zip(groups, means, strict=True)), Fraction(0))
    free = total - len(groups)
    within = sum(inner, Fraction(0)) / free
    scatter = [squared / (n - 1) / n for squared, (n, _, _) in zip(inner, groups, strict=True)]
    if within == 0:
        return Spread(sigma=_sigma(means, [Fraction(0)]), p=0.0 if between else 1.0)
    p = float(fdtrc(len(groups) - 1, free, float(between / (len(groups) - 1) / within)))
    return Spread(sigma=_sigma(means, scatter) if p < LEVEL else 0.0, p=p)


def irs_spread(recoveries: Sequence[tuple[int, int]]) -> Spread:
    """Return how far the intentional shares of windows lie apart, by the χ² test; (yes, of) per window."""
    from scipy.special import chdtrc  # noqa: PLC0415 - heavy

    total = Fraction(sum(yes for yes, _ in recoveries), sum(m for _, m in recoveries))
    if total in {0, 1}:
        return Spread(sigma=0.0, p=1.0)
    shares = [Fraction(yes, m) for yes, m in recoveries]
    statistic = sum(
        (m * (share - total) ** 2 for share, (_, m) in zip(shares, recoveries, strict=True)), Fraction(0)
    ) / (total * (1 - total))
    p = float(chdtrc(len(recoveries) - 1, float(statistic)))
    scatter = [share * (1 - share) / (m - 1) for share, (_, m) in zip(shares, recoveries, strict=True)]
    return Spread(sigma=_sigma(shares, scatter) if p < LEVEL else 0.0, p=p)


def _sigma(means: Sequence[Fraction], scatter: Sequence[Fraction]) -> float:
    """Return √max(0, sample variance of the means - mean of the scatter of each)."""
    centre = sum(means, Fraction(0)) / len(means)
    between = sum(((mean - centre) ** 2 for mean in means), Fraction(0)) / (len(means) - 1)
    return sqrt(max(Fraction(0), between - sum(scatter, Fraction(0)) / len(scatter)))


def trend(runs: int, failures: int, moment: int) -> tuple[float, float]:
    """Return the slope of the failure indicator per run, and p of the one-sided test that it rises.

    `failures` is ΣF over runs i = 0 … runs - 1, `moment` Σi·F.
    """
    from scipy.special import stdtr  # noqa: PLC0415 - heavy

    across = Fraction(runs * (runs * runs - 1), 12)
    together = moment - Fraction((runs - 1) * failures, 2)
    slope = together / across
    residual = failures - Fraction(failures * failures, runs) - slope * together
    if residual == 0:
        return float(slope), 1.0 if slope <= 0 else 0.0
    t = float(slope) / sqrt(residual / (runs - 2) / across)
    return float(slope), float(stdtr(runs - 2, -t))
