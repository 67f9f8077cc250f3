"""A success rate as a fallible judge saw it, and as it is: sensitivity, specificity, Rogan-Gladen.

A judge of sensitivity Se and specificity Sp sees a true rate θ as p = θ·Se + (1 - θ)(1 - Sp). The point
estimate turns this around (W. J. Rogan, B. Gladen, Am. J. Epidemiol. 107 (1978) 71). The posterior takes
nothing as known: θ, Se and Sp have uniform priors, the calibration tells of Se and Sp, the runs of p. With
S = Se and F = 1 - Sp its density is

    π(θ) ∝ ∫∫ Beta(S) Beta(F) p^y (1 - p)^(n - y) dS dF,    p = θ·S + (1 - θ)·F,

computed by quadrature: no draws, no seed. It rests on two assumptions: the calibrated items are like the
runs, and errors do not depend on anything but success.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec resolves annotations at run time
from fractions import Fraction
from math import comb
from typing import Final

from msgspec import Struct, structs

from certkit.assessment.statistics.estimators import LEVEL, Interval

PLAUSIBLE: Final = (1 - LEVEL) / 2
"""Probability of Se + Sp ≤ 1 beyond which the judge cannot be told from a coin."""
FEW: Final = 28
"""Least number of items without an error that shows, with 95 %, more than nine in ten right: .9²⁹ < .05."""


class Share(Struct, frozen=True, kw_only=True):
    """A share of `n` items with its posterior under a uniform prior; nothing is known where n is 0."""

    successes: int
    n: int
    value: float | None
    mean: float | None
    interval: Interval | None


def share(successes: int, n: int) -> Share:
    """Return `successes` of `n` with the posterior Beta(1 + s, 1 + n - s)."""
    if n == 0:
        return Share(successes=0, n=0, value=None, mean=None, interval=None)
    from scipy.special import betaincinv  # noqa: PLC0415 - heavy

    tails = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    low, high = (float(betaincinv(1 + successes, 1 + n - successes, tail)) for tail in tails)
    return Share(
        successes=successes,
        n=n,
        value=successes / n,
        mean=(1 + successes) / (2 + n),
        interval=Interval(low=low, high=high, method="beta posterior, uniform prior"),
    )


class Confusion(Struct, frozen=True, kw_only=True):
    """What the judge said of items whose true outcome is known."""

    true_positives: int
    false_negatives: int
    false_positives: int
    true_negatives: int
    sensitivity: Share
    specificity: Share
    base_rate: Share


def confusion(tp: int, fn: int, fp: int, tn: int) -> Confusion:
    """Return sensitivity, specificity and the base rate of success from the four counts."""
    return Confusion(
        true_positives=tp,
        false_negatives=fn,
        false_positives=fp,
        true_negatives=tn,
        sensitivity=share(tp, tp + fn),
        specificity=share(tn, tn + fp),
        base_rate=share(tp + fn, tp + fn + fp + tn),
    )


def unknown(judge: Confusion) -> str | None:
    """Tell why the items show nothing of any judge, None where they can.

    Without an error on a true successes and b true failures P(Se + Sp ≤ 1) is still 1 / C(a + b + 2, a + 1).
    """
    a, b = judge.sensitivity.n, judge.specificity.n
    if min(a, b) > 0 and 1 / comb(a + b + 2, a + 1) <= PLAUSIBLE:
        return None
    return f"{a:,} items of true success and {b:,} of true failure cannot tell any judge from a coin"


class Correction(Struct, frozen=True, kw_only=True):
    """A success rate freed of the judge's error.

    `raw` is the rate that was seen in `n` runs, which count as `n_eff` independent ones. `value` is the
    Rogan-Gladen estimate, cut to 0-1; `mean`, `interval` and `by_tier`, P(θ > τ), are of the posterior.
    `uninformative` is P(Se + Sp ≤ 1). All but it and the raw rate are null where a `reason` says why the
    rate cannot be corrected.
    """

    raw: float
    n: int
    n_eff: float
    value: float | None = None
    mean: float | None = None
    interval: Interval | None = None
    by_tier: Mapping[int, float] | None = None
    uninformative: float | None = None
    reason: str | None = None
    method: str = "Rogan-Gladen; posterior by quadrature, uniform priors"
    source: str = "Rogan & Gladen 1978"


def corrected(
    rate: Fraction, n: int, n_eff: float, judge: Confusion, tau: Mapping[int, Fraction]
) -> Correction:
    """Return the success `rate` of `n` runs, worth `n_eff` independent ones, freed of the judge's error.

    `tau` maps tiers to thresholds. The rate is not corrected where the calibration lacks true successes or
    true failures, where the judge may be no better than a coin, or where calibration and runs contradict.
    """
    from certkit.assessment.rater_error.quadrature import Beta, not_above, posterior  # noqa: PLC0415 - heavy

    bare = Correction(raw=float(rate), n=n, n_eff=n_eff)
    sensitivity, specificity = judge.sensitivity, judge.specificity
    if not (sensitivity.n and specificity.n):
        what = "failure" if sensitivity.n else "success"
        return structs.replace(bare, reason=f"no calibrated item is a true {what}")
    hits = Beta(1 + judge.true_positives, 1 + judge.false_negatives)
    alarms = Beta(1 + judge.false_positives, 1 + judge.true_negatives)
    uninformative = not_above(hits, alarms)
    bare = structs.replace(bare, uninformative=uninformative)
    false = Fraction(judge.false_positives, specificity.n)
    gain = Fraction(judge.true_positives, sensitivity.n) - false
    if uninformative > PLAUSIBLE or gain <= 0:
        reason = f"sensitivity + specificity may well be 1 or less (probability {uninformative:.3f})"
        return structs.replace(bare, reason=reason)
    seen = Beta(1 + float(rate) * n_eff, 1 + float(1 - rate) * n_eff)
    found = posterior(seen, hits, alarms, [float(threshold) for threshold in tau.values()])
    if found is None:
        reason = "the calibration contradicts the runs: with such a judge no true rate looks like this one"
        return structs.replace(bare, reason=reason)
    mean, low, high, above = found
    return structs.replace(
        bare,
        value=float(min(Fraction(1), max(Fraction(0), (rate - false) / gain))),
        mean=mean,
        interval=Interval(low=low, high=high, method="posterior by quadrature"),
        by_tier=dict(zip(tau, above, strict=True)),
    )
