"""Whether a model gave the outcomes, what a person's labels say of each series, and how far raters agree.

A series takes the labels of its own runs: those of its conditions, and in one domain those of the domain. The
judge passed what the record holds as a success, whatever the calibration says or leaves out. An item that is
no run of the bundle corrects nothing, and is a finding.

How far raters agree: Cohen's κ and its weighted forms, ICC(2,1), mean absolute difference. Scores are
integers (millionths), values exact fractions, so that the order of ratings changes nothing. An estimate
carries its number of items and raters, its method and its source; where it does not exist it says why.

- J. Cohen, Educ. Psychol. Meas. 20 (1960) 37; weighted: Psychol. Bull. 70 (1968) 213.
- J. L. Fleiss, J. Cohen, B. S. Everitt, Psychol. Bull. 72 (1969) 323: the standard error of both.
- P. E. Shrout, J. L. Fleiss, Psychol. Bull. 86 (1979) 420; K. O. McGraw, S. P. Wong, Psychol. Methods 1
  (1996) 30: ICC(2,1), two-way random effects, absolute agreement, one rater.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np
from msgspec import Struct, structs

from certkit.assessment.metrics import series as of_runs
from certkit.assessment.metrics.metric import names
from certkit.assessment.rater_error.corrected import Labels, weighed
from certkit.assessment.statistics.estimators import LEVEL, Interval, Z
from certkit.bundle.labels import ABSENT, MILLION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from certkit.assessment.kinds import Sample
    from certkit.assessment.rater_error.corrected import Both
    from certkit.bundle.labels import Calibration
    from certkit.bundle.manifest import Protocol
    from certkit.summary.tasks import TaskSums


PASSES: Final = 7 * MILLION // 10
"""Success at 0.70, [26] §4.3.4."""

SHARES: Final[dict[str, Callable[[str], bool]]] = {
    "r_op": of_runs.fault,
    "c_nom": of_runs.nominal,
    "adversarial_resistance": of_runs.adversarial,
}
"""Series whose value is the share of successes, with their conditions: they are corrected."""

GRADED: Final[dict[str, Callable[[str], bool]]] = {
    "frr": of_runs.fault,
    "frr_2025": of_runs.fault,
    "cn_frr": of_runs.fault,
    "pei": of_runs.every,
    "pei_fault": of_runs.fault,
    "pei_2025": of_runs.every,
}
"""Series in which a wrongly passed run counts for one at most: that share is taken off their limit.

Efficiency is 0 where a run failed in fewer steps than the oracle.
"""


class LabelledRun(NamedTuple):
    """Where a labelled run belongs, as far as known, whether the judge passed it, and if it is a success.

    `contradicted`: the score in the calibration is not what the record holds.
    """

    domain: str | None
    condition: str | None
    task: int | None
    passed: bool
    truly: bool
    contradicted: bool = False


class Labelled(Struct, frozen=True):
    """The runs that a person labelled."""

    runs: tuple[LabelledRun, ...]

    def all(self) -> Labels:
        """Return the four counts over all runs."""
        counts = Counter((run.passed, run.truly) for run in self.runs)
        return Labels(*(counts[kind] for kind in _KINDS))

    def both(self, sample: Sample, sums: TaskSums, series: str, domain: str | None) -> tuple[TaskSums, Both]:
        """Return the `sums` of a share as labels can vouch for them, and the labels that go with them."""
        over = SHARES.get(series) or GRADED[series]
        tasks = sample.tasks(series, domain)
        place = {task: number for number, task in enumerate(tasks.task.tolist())}
        counts = np.zeros((len(_KINDS), len(place)))
        for run in self.runs:
            at = None if run.task is None else place.get(run.task)
            inside = (run.condition is None or over(run.condition)) and domain in {None, run.domain}
            if inside and at is not None:
                counts[_KINDS.index((run.passed, run.truly)), at] += 1
        return weighed(counts, tasks.y / tasks.scale, tasks.n.astype(np.float64), sums)


_KINDS: Final = ((True, True), (True, False), (False, True), (False, False))
"""Whether the judge passed a run, and whether it is a success: the order of `Labels`."""


def counted(calibration: Calibration, judge: str, *, recorded: bool) -> Labelled:
    """Return the labelled items that a rater scored; `recorded`: it gave the outcomes that records hold.

    It then scored every run, whether the calibration has a line on it or not.
    """
    number = [rater.name for rater in calibration.raters].index(judge)
    nothing = (None,) * len(calibration.items)
    conditions, tasks = calibration.conditions or nothing, calibration.tasks or nothing
    outcomes = (recorded and calibration.passed) or nothing
    chosen = calibration.rater == number
    scores = (calibration.score[chosen] >= PASSES).tolist()
    scored = dict(zip(calibration.item[chosen].tolist(), scores, strict=True))
    runs = []
    for item, reference in enumerate(calibration.reference.tolist()):
        passed = scored.get(item) if outcomes[item] is None else outcomes[item]
        if reference != ABSENT and passed is not None:
            place = calibration.domains[item], conditions[item], tasks[item]
            differs = passed != scored.get(item, passed)
            runs.append(LabelledRun(*place, passed, reference >= PASSES, differs))
    return Labelled(tuple(runs))


def labelled(calibration: Calibration | None, protocol: Protocol) -> Labelled | None:
    """Return the labels by which limits are corrected, None without labels or a judge of the outcomes."""
    if calibration is None or not gives_outcomes(protocol, calibration):
        return None
    judge, _ = judge_of(calibration, protocol)
    return None if judge is None else counted(calibration, judge, recorded=True)


def gives_outcomes(protocol: Protocol, calibration: Calibration | None) -> bool:
    """Tell whether a model gave the outcomes, as the ratings show or the protocol says.

    A judge's ratings of `outcome` show it. The protocol says so where a judge is named, and the methodology
    is not ``trajectory``.
    """
    rated = calibration is not None and any(rater.kind == "judge" for rater in calibration.raters)
    if rated or protocol.methodology == "independent_judge":
        return True
    return protocol.judge is not None and protocol.methodology != "trajectory"


def judge_of(calibration: Calibration, protocol: Protocol) -> tuple[str | None, str | None]:
    """Return which rater is the judge of the runs, or why that is not known."""
    judges = [rater.name for rater in calibration.raters if rater.kind == "judge"]
    stated = protocol.judge.name if protocol.judge else None
    if stated is not None:
        if stated in judges:
            return stated, None
        named = f"; the calibration is of {names(judges)}" if judges else ""
        return None, f"{stated}, the judge of the runs, is not among the judges of the calibration{named}"
    if len(judges) == 1:
        return judges[0], None
    if judges:
        return None, f"the manifest does not say which of {len(judges):,} judges judged the runs"
    return None, "no rater of the calibration is a judge"


def unlabelled(calibration: Calibration | None, protocol: Protocol) -> str | None:
    """Return why a model's outcomes cannot be bounded; None where they can, or where a program gave them."""
    if not gives_outcomes(protocol, calibration):
        return None
    if calibration is None:
        return "a model gave the outcomes, and how often it errs is unknown: no run is labelled by a person"
    judge, reason = judge_of(calibration, protocol)
    if judge is None:
        return f"a model gave the outcomes, and how often it errs is unknown: {reason}"
    if not counted(calibration, judge, recorded=True).runs:
        return f"how often {judge} errs is unknown: no run that it scored is labelled by a person"
    return None


MAX_CATEGORIES: Final = 20
"""Distinct scores beyond which they are measurements and not categories."""
_NO_ITEM: Final = "no item scored by both"
_ZERO: Final = 1e-12
"""A standard error below it is 0 but for rounding."""

Weights = Literal["none", "linear", "quadratic"]
_KAPPA: Final[dict[Weights, tuple[str, str]]] = {
    "none": ("Cohen's κ", "Cohen 1960"),
    "linear": ("weighted κ, weights 1 - |difference|/range", "Cohen 1968; Cicchetti & Allison 1971"),
    "quadratic": ("weighted κ, weights 1 - (difference/range)²", "Cohen 1968; Fleiss & Cohen 1973"),
}


class Estimate(Struct, frozen=True, kw_only=True):
    """A measure of agreement over `items` scored by `raters`; with a `reason` where part of it is null."""

    value: float | None
    items: int
    raters: int
    se: float | None = None
    interval: Interval | None = None
    method: str
    source: str
    reason: str | None = None


def kappa(table: Sequence[Sequence[int]], scores: Sequence[int], weights: Weights = "none") -> Estimate:
    """Return κ of two raters from their contingency table, with the standard error of Fleiss et al. 1969.

    table[i][j] counts the items to which one rater gave scores[i] and the other scores[j]. Weights depend on
    the distance of the scores, so that a score that nobody gave changes nothing.
    """
    counts = np.array(table, object).reshape(len(scores), len(scores))
    n = int(counts.sum())
    bare = _kappa(n, weights)
    if n == 0:
        return structs.replace(bare, reason=_NO_ITEM)
    distance = abs(np.subtract.outer(np.array(scores, object), np.array(scores, object)))
    span = max(1, int(distance.max()))
    agree, full = {
        "none": ((distance == 0).astype(object), 1),
        "linear": (span - distance, span),
        "quadratic": (span**2 - distance**2, span**2),
    }[weights]
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    observed = Fraction(int((agree * counts).sum()), full * n)
    chance = Fraction(int(rows @ agree @ columns), full * n * n)
    if chance == 1:
        reason = "one and the same score throughout: agreement by chance is certain"
        return structs.replace(bare, reason=reason)
    value = float((observed - chance) / (1 - chance))
    po, pe, w = float(observed), float(chance), agree.astype(np.float64) / full
    by_row, by_column = (total.astype(np.float64) / n for total in (rows, columns))
    lean = w * (1 - pe) - np.add.outer(w @ by_column, by_row @ w) * (1 - po)
    variance = (counts.astype(np.float64) / n * (lean - (po * pe - 2 * pe + po)) ** 2).sum() / n
    se = float(np.sqrt(variance)) / (1 - pe) ** 2
    if se < _ZERO:
        return structs.replace(
            bare, value=value, reason="no interval: the raters differ on no item, or on all"
        )
    low, high = max(-1.0, value - Z * se), min(1.0, value + Z * se)
    interval = Interval(low=low, high=high, method="fleiss-cohen-everitt")
    return structs.replace(bare, value=value, se=se, interval=interval)


def _kappa(n: int, weights: Weights, reason: str | None = None) -> Estimate:
    """Return a κ over `n` items without its value."""
    method, source = _KAPPA[weights]
    return Estimate(value=None, items=n, raters=2, method=method, source=source, reason=reason)


def icc(rows: Sequence[Sequence[int]]) -> Estimate:
    """Return ICC(2,1) of a complete table of items × raters, with the F interval of Shrout & Fleiss 1979."""
    n, k = len(rows), len(rows[0]) if rows else 0
    bare = Estimate(
        value=None,
        items=n,
        raters=k,
        method="ICC(2,1), two-way random, absolute agreement",
        source="Shrout & Fleiss 1979; McGraw & Wong 1996",
    )
    if n < 2 or k < 2:  # noqa: PLR2004 - a variance needs two
        few = "fewer than two raters" if k == 1 else "fewer than two items scored by all raters"
        return structs.replace(bare, reason=few)
    by_item = [sum(row) for row in rows]
    by_rater = [sum(column) for column in zip(*rows, strict=True)]
    square = sum(by_item) ** 2
    # Sums of squares, n·k times each, as integers.
    of_items = n * sum(total * total for total in by_item) - square
    of_raters = k * sum(total * total for total in by_rater) - square
    rest = n * k * sum(x * x for row in rows for x in row) - square - of_items - of_raters
    msr = Fraction(of_items, n - 1)
    msc = Fraction(of_raters, k - 1)
    mse = Fraction(rest, (n - 1) * (k - 1))
    whole = msr + (k - 1) * mse + k * (msc - mse) / n
    if whole == 0:
        return structs.replace(bare, reason="neither the items nor the raters differ")
    value = float((msr - mse) / whole)
    if not (msr and mse):
        what = "the raters differ by nothing but constants" if msr else "the items do not differ"
        return structs.replace(bare, value=value, reason=f"no interval: {what}")
    return structs.replace(bare, value=value, interval=_icc_interval(value, msr / mse, msc / mse, n, k))


def _icc_interval(value: float, f_items: Fraction, f_raters: Fraction, n: int, k: int) -> Interval:
    """Return the interval of ICC(2,1) from its two F ratios; Satterthwaite degrees of freedom."""
    from scipy.special import fdtri  # noqa: PLC0415 - heavy

    fr, fc = float(f_items), float(f_raters)
    a, b = k * value * fc, n * (1 + (k - 1) * value) - k * value
    v = (n - 1) * (k - 1) * (a + b) ** 2 / ((n - 1) * a * a + b * b)
    upper = (1 + LEVEL) / 2
    lower_f, upper_f = float(fdtri(n - 1, v, upper)), float(fdtri(v, n - 1, upper))
    shift = k * fc + k * n - k - n
    low = n * (fr - lower_f) / (lower_f * shift + n * fr)
    high = n * (upper_f * fr - 1) / (shift + n * upper_f * fr)
    # Degrees of freedom near 0 leave an end open.
    low, high = (low if isfinite(low) else -1.0), (high if isfinite(high) else 1.0)
    return Interval(low=max(-1.0, low), high=min(1.0, high), method="shrout-fleiss")


class Agreement(Struct, frozen=True, kw_only=True):
    """Two raters (or one and the reference) over the items that both scored.

    `success` is κ of the scores read as success and failure, null for a variable that is no outcome;
    `quadratic` takes the distinct scores as categories in their order, and `mae` is the mean absolute
    difference.
    """

    a: str
    b: str
    items: int
    success: Estimate | None
    quadratic: Estimate
    mae: float | None


def compare(
    a: str, b: str, x: Sequence[int], y: Sequence[int], *, passes: int | None, scale: int
) -> Agreement:
    """Return how far scores `x` of a and `y` of b agree, in units of 1/`scale`; success at `passes`."""
    success = None
    if passes is not None:
        success = kappa(contingency([i >= passes for i in x], [j >= passes for j in y], [0, 1]), [0, 1])
    scores = sorted({*x, *y})
    if len(scores) <= MAX_CATEGORIES:
        quadratic = kappa(contingency(x, y, scores), scores, "quadratic")
    else:
        quadratic = _kappa(len(x), "quadratic", f"more than {MAX_CATEGORIES} distinct scores: no categories")
    apart = sum(abs(i - j) for i, j in zip(x, y, strict=True))
    return Agreement(
        a=a,
        b=b,
        items=len(x),
        success=success,
        quadratic=quadratic,
        mae=float(Fraction(apart, len(x) * scale)) if x else None,
    )


def contingency(x: Sequence[int], y: Sequence[int], scores: Sequence[int]) -> list[list[int]]:
    """Return how often each pair of `scores` occurs."""
    place = {score: number for number, score in enumerate(scores)}
    table = [[0] * len(scores) for _ in scores]
    for i, j in zip(x, y, strict=True):
        table[place[i]][place[j]] += 1
    return table
