"""The judge's error: how far it agrees with the truth and with others, and what that does to r_op.

The calibration files of a bundle hold items that several raters scored, some with a reference score, which
is taken as the truth. From them come κ and its kin (`agreement`), sensitivity and specificity, and the rate
that the runs would show under a judge without error (`correction`).

    report = judge_report(calibration, protocol, seen_by_judge(judged), profile.tau)  # block `judge`
    list(judge_findings(report, protocol, profile.tau, profile.delta, judged=True))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, structs

from certkit.assessment.findings.findings import finding, runs
from certkit.assessment.kinds import TaskMean
from certkit.assessment.metrics.metric import names
from certkit.assessment.rater_error.agreement import MAX_CATEGORIES, Agreement, Estimate, compare, fleiss, icc
from certkit.assessment.rater_error.correction import (
    FEW,
    Confusion,
    Correction,
    confusion,
    corrected,
    unknown,
)
from certkit.assessment.statistics.estimators import posterior
from certkit.assessment.statistics.posterior import posteriors
from certkit.evidence.bundle.calibration import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.evaluate import Judged
    from certkit.assessment.findings.findings import Finding
    from certkit.evidence.bundle.calibration import Calibration
    from certkit.evidence.bundle.manifest import Protocol

SCALE: Final = 10**6
"""Units of a score in `Calibration`."""
PASSES: Final = 7 * SCALE // 10
"""Success at 0.70, [26] §4.3.4."""
LOW: Final = 0.6
"""κ below which agreement is no more than moderate (J. R. Landis, G. G. Koch, Biometrics 33 (1977) 159)."""
MAX_RATERS: Final = 20
"""Raters beyond whom pairs are not listed."""
REFERENCE: Final = "reference"
_COUNTS: Final = ("true_positives", "false_negatives", "false_positives", "true_negatives")
_PLACE: Final = {(True, True): 0, (True, False): 1, (False, True): 2, (False, False): 3}
"""Truly a success, seen as one → place in `_COUNTS`."""

State = Literal["calibrated", "compared", "uncalibrated"]
Scores = Mapping[int, int]
"""Item → score, in millionths."""


class Seen(Struct, frozen=True, kw_only=True):
    """The success rate that the judge saw in `n` fault runs, which are worth `n_eff` independent ones."""

    rate: Fraction
    n: int
    n_eff: float


def seen_by_judge(judged: Judged) -> Seen | None:
    """Return the success rate of a judged summary, and what its runs are worth; None without fault runs.

    The worth is the size of the task posterior, less its two prior tasks.
    """
    metric, sums = judged.metrics["r_op"], judged.reader.sample.sums("r_op")
    if metric.value is None or sums is None:
        return None
    scale = TaskMean("r_op").scale(sums, lower=True)
    sizes = (float(part.size) for part in posteriors(sums, scale))
    return Seen(rate=Fraction(metric.value), n=sums.n, n_eff=min(sums.n, max(1.0, min(sizes) - 2)))


class RaterCount(Struct, frozen=True, kw_only=True):
    """A rater, and how many items they scored."""

    name: str
    kind: str
    items: int


class Group(Struct, frozen=True, kw_only=True):
    """How far all `raters` of a group agree; `left_out` items were not scored by all of them (icc)."""

    raters: Literal["all", "human"]
    fleiss: Estimate
    icc: Estimate
    left_out: int


class JudgeReport(Struct, frozen=True, kw_only=True):
    """What the calibration shows of the judge named `judge`.

    `state`: ``calibrated`` against reference scores; ``compared`` with other raters only, or with too few
    references to tell any judge from a coin; or ``uncalibrated``; with the `reason`. `referenced` items have
    a reference score. `against` is the judge against it, `by_domain` the four counts of `confusion` for each
    domain. `pairs` are all pairs of raters.
    """

    state: State
    reason: str | None = None
    judge: str | None = None
    items: int = 0
    referenced: int = 0
    ratings: int = 0
    raters: Sequence[RaterCount] = ()
    against: Agreement | None = None
    confusion: Confusion | None = None
    by_domain: Mapping[str, Mapping[str, int]] = {}
    pairs: Sequence[Agreement] = ()
    groups: Sequence[Group] = ()
    correction: Correction | None = None
    note: str | None = None


def judge_report(
    calibration: Calibration | None, protocol: Protocol, seen: Seen | None, tau: Mapping[int, Fraction]
) -> JudgeReport:
    """Return what the calibration shows of the judge, and the rate `seen` freed of its error.

    `tau` maps tiers to thresholds of the rate; `seen` is None where there is no fault run.
    """
    if calibration is None:
        return JudgeReport(state="uncalibrated", reason="the bundle holds no ratings under calibration/")
    scores = _by_rater(calibration)
    reference = {item: score for item, score in enumerate(calibration.reference.tolist()) if score != ABSENT}
    raters = [rater.name for rater in calibration.raters]
    name, reason = _named(calibration, protocol)
    report = JudgeReport(
        state="uncalibrated",
        reason=reason,
        judge=name,
        items=len(calibration.items),
        referenced=len(reference),
        ratings=len(calibration.score),
        raters=tuple(
            RaterCount(name=rater.name, kind=rater.kind, items=len(own))
            for rater, own in zip(calibration.raters, scores, strict=True)
        ),
        pairs=_pairs(raters, scores),
        groups=_groups(calibration, scores),
    )
    if name is None:
        return report
    own = scores[raters.index(name)]
    if not own.keys() & reference.keys():
        others = any(own.keys() & other.keys() for other in scores if other is not own)
        reason = f"no item that {name} scored has a reference score"
        return structs.replace(report, state="compared" if others else "uncalibrated", reason=reason)
    return _calibrated(report, calibration, own, reference, protocol=protocol, seen=seen, tau=tau)


def _by_rater(calibration: Calibration) -> list[Scores]:
    """Return the scores of each rater."""
    found: list[dict[int, int]] = [{} for _ in calibration.raters]
    columns = (calibration.item.tolist(), calibration.rater.tolist(), calibration.score.tolist())
    for item, rater, score in zip(*columns, strict=True):
        found[rater][item] = score
    return list(found)


def _named(calibration: Calibration, protocol: Protocol) -> tuple[str | None, str | None]:
    """Return which rater is the judge of the runs, or why that is not known."""
    judges = [rater.name for rater in calibration.raters if rater.kind == "judge"]
    stated = protocol.judge.name if protocol.judge else None
    if stated is not None:
        if stated in judges:
            return stated, None
        found = f"; the calibration is of {names(judges)}" if judges else ""
        return None, f"{stated}, the judge of the runs, is not among the judges of the calibration{found}"
    if len(judges) == 1:
        return judges[0], None
    if judges:
        return None, f"the manifest does not say which of {len(judges):,} judges judged the runs"
    return None, "no rater of the calibration is a judge"


def _pairs(raters: Sequence[str], scores: Sequence[Scores]) -> tuple[Agreement, ...]:
    if len(raters) > MAX_RATERS:
        return ()
    return tuple(
        _compare(raters[a], raters[b], scores[a], scores[b]) for a, b in combinations(range(len(raters)), 2)
    )


def _compare(a: str, b: str, x: Scores, y: Scores) -> Agreement:
    common = sorted(x.keys() & y.keys())
    mine, theirs = [x[item] for item in common], [y[item] for item in common]
    return compare(a, b, mine, theirs, passes=PASSES, scale=SCALE)


def _groups(calibration: Calibration, scores: Sequence[Scores]) -> tuple[Group, ...]:
    human = [own for rater, own in zip(calibration.raters, scores, strict=True) if rater.kind == "human"]
    groups = [_group("all", scores)]
    if 1 < len(human) < len(scores):
        groups.append(_group("human", human))
    return tuple(groups)


def _group(raters: Literal["all", "human"], scores: Sequence[Scores]) -> Group:
    ratings: dict[int, list[int]] = {}
    for own in scores:
        for item, score in own.items():
            ratings.setdefault(item, []).append(score)
    complete = [row for row in ratings.values() if len(row) == len(scores)]
    categories = sorted({score for row in ratings.values() for score in row})
    if len(categories) > MAX_CATEGORIES:
        # Too many scores to be categories: what counts is on which side of success they lie.
        ratings = {item: [int(score >= PASSES) for score in row] for item, row in ratings.items()}
        categories = [0, 1]
    counts = [[row.count(category) for category in categories] for row in ratings.values()]
    return Group(
        raters=raters, fleiss=fleiss(counts), icc=icc(complete), left_out=len(ratings) - len(complete)
    )


def _calibrated(
    report: JudgeReport,
    calibration: Calibration,
    own: Scores,
    reference: Scores,
    *,
    protocol: Protocol,
    seen: Seen | None,
    tau: Mapping[int, Fraction],
) -> JudgeReport:
    """Add what follows from the reference scores of items that the judge scored."""
    counts: dict[str | None, list[int]] = {}
    for item in own.keys() & reference.keys():
        succeeded, passed = reference[item] >= PASSES, own[item] >= PASSES
        counts.setdefault(calibration.domains[item], [0] * len(_COUNTS))[_PLACE[succeeded, passed]] += 1
    tp, fn, fp, tn = map(sum, zip(*counts.values(), strict=True))
    measured = confusion(tp, fn, fp, tn)
    by_domain = {
        domain: dict(zip(_COUNTS, of, strict=True))
        for domain, of in sorted((key, of) for key, of in counts.items() if key is not None)
    }
    note, reason = None, unknown(measured)
    if protocol.methodology == "trajectory":
        note = "methodology trajectory: where the judge did not decide success there is nothing to correct"
    return structs.replace(
        report,
        state="compared" if reason else "calibrated",
        reason=reason,
        against=_compare(report.judge or "", REFERENCE, own, reference),
        confusion=measured,
        by_domain=by_domain,
        correction=corrected(seen.rate, seen.n, seen.n_eff, measured, tau) if seen else None,
        note=note,
    )


def judge_findings(
    report: JudgeReport,
    protocol: Protocol,
    tau: Mapping[int, Fraction],
    delta: Mapping[int, Fraction],
    *,
    judged: bool,
) -> Iterator[Finding]:
    """Yield what a reader should ask about the judge; `judged`: a judge is named, or its scores are there.

    `tau` and `delta` map tiers to the threshold of r_op and to the probability asked of it.
    """
    if not judged:
        return
    if report.state != "calibrated":
        yield finding("judge-uncalibrated", f"how often the judge errs is unknown: {report.reason}")
    yield from _few(report)
    yield from _low(report)
    if report.correction is None:
        return
    if protocol.methodology == "trajectory":
        yield finding(
            "judge-correction",
            "r_op is not corrected for the judge's error: by methodology trajectory the recovery grade and"
            " the steps decide success. Where the judge decided it, state that methodology; then r_op"
            f" {_freed(report.correction)}",
        )
        return
    yield from _corrected(report.correction, tau, delta)


def _few(report: JudgeReport) -> Iterator[Finding]:
    """Report that a calibration is too small to show that the judge is mostly right."""
    if report.state != "calibrated" or report.confusion is None:
        return
    shares = {"sensitivity": report.confusion.sensitivity, "specificity": report.confusion.specificity}
    wide = [
        f"{name} {share.interval.low:.2f} to {share.interval.high:.2f} ({runs(share.n, 'item')})"
        for name, share in shares.items()
        if share.interval is not None and share.n < FEW
    ]
    if wide:
        yield finding(
            "judge-uncalibrated",
            f"how often {report.judge} errs is hardly known: {', '.join(wide)}; it takes {FEW} items of"
            " either kind to show that a judge without an error is right on nine in ten",
        )


def _freed(correction: Correction) -> str:
    if correction.value is None or correction.interval is None:
        return f"cannot be freed of the error: {correction.reason}"
    low, high = correction.interval.low, correction.interval.high
    value = f"{correction.value:.1%} (95 % interval {low:.1%} to {high:.1%})"
    return f"would be {value}, not {correction.raw:.1%}"


def _low(report: JudgeReport) -> Iterator[Finding]:
    """Report weak agreement with the reference, or, where there is none, with a human."""
    human = {rater.name for rater in report.raters if rater.kind == "human"}
    pairs = [pair for pair in report.pairs if report.judge in {pair.a, pair.b} and human & {pair.a, pair.b}]
    found = [
        (pair.success.value, pair)
        for pair in ([report.against] if report.against else pairs)
        if pair.success.value is not None and pair.success.value < LOW
    ]
    if found:
        value, pair = min(found, key=lambda item: item[0])
        other = pair.b if pair.a == report.judge else pair.a
        yield finding(
            "judge-agreement-low",
            f"{report.judge} agrees with {other} on success with κ = {value:.2f} over"
            f" {pair.success.items:,} items, below {LOW:g}",
        )


def _corrected(
    correction: Correction, tau: Mapping[int, Fraction], delta: Mapping[int, Fraction]
) -> Iterator[Finding]:
    if correction.reason is not None:
        yield finding("judge-correction", f"r_op cannot be freed of the judge's error: {correction.reason}")
        return
    value, interval = correction.value, correction.interval
    if value is None or interval is None:
        return
    lost = [tier for tier, threshold in tau.items() if correction.raw > threshold >= value]
    if lost:
        tiers = f"Tier {lost[0]}" if len(lost) == 1 else f"Tiers {', '.join(map(str, lost))}"
        yield finding(
            "judge-correction",
            f"freed of the judge's error r_op is {value:.1%} and not {correction.raw:.1%}, at or below the"
            f" threshold of {tiers} (95 % interval {interval.low:.1%} to {interval.high:.1%})",
        )
    for tier in sorted(tau.keys() - set(lost)):
        # The same runs under a judge that never errs: what is lost beside them is the judge's doing alone.
        flawless = posterior(correction.raw * correction.n_eff, correction.n_eff, tau[tier])
        freed = (correction.by_tier or {})[tier]
        if flawless > delta[tier] >= freed:
            yield finding(
                "judge-correction",
                f"what is known of the judge leaves r_op above the {float(100 * tau[tier]):g} % of Tier"
                f" {tier} with probability {freed:.3f}, where {float(delta[tier]):g} is asked: calibrate on"
                " more items",
            )
