"""The judge's error: how far it agrees with the truth and with others, and what that does to r_op.

The judge is the model that gave the outcomes. The calibration files of a bundle hold runs that several raters
scored, some with a reference score, a person's, which is taken as the truth. From them come κ and its kin
(`agreement`), sensitivity and specificity, and the rate without the judge's error (`corrected`).

    seen = seen_by_judge(judged)
    report = judge_report(calibration, protocol, seen, profile.tau)     # block `judge`
    list(judge_findings(report, protocol, seen, profile.tau, profile.delta, judged=True))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, structs

from certkit.assessment.findings.findings import finding
from certkit.assessment.rater_error.agreement import Agreement, Estimate, compare, icc
from certkit.assessment.rater_error.corrected import Correction, Labels, Seen, Share, correction, share
from certkit.assessment.rater_error.labels import PASSES, counted, gives_outcomes, judge_of
from certkit.assessment.statistics.estimators import LEVEL
from certkit.assessment.statistics.posterior import Scale, beta, posteriors
from certkit.evidence.bundle.calibration import ABSENT
from certkit.wording import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.bounded import Judged
    from certkit.assessment.findings.findings import Finding
    from certkit.evidence.bundle.calibration import Calibration
    from certkit.evidence.bundle.manifest import Protocol

SCALE: Final = 10**6
"""Units of a score in `Calibration`."""
LOW: Final = 0.6
"""κ below which agreement is no more than moderate (J. R. Landis, G. G. Koch, Biometrics 33 (1977) 159)."""
MAX_RATERS: Final = 20
"""Raters beyond whom pairs are not listed."""
REFERENCE: Final = "reference"
State = Literal["calibrated", "compared", "uncalibrated"]
Scores = Mapping[int, int]
"""Item → score, in millionths."""


def seen_by_judge(judged: Judged) -> Seen | None:
    """Return the success rate that the runs show, with its task posterior; None without fault runs.

    Of the two weightings of tasks it is the one with the lower 95 % limit.
    """
    metric, sums = judged.metrics["r_op"], judged.view.sums("r_op")
    if metric.value is None or sums is None:
        return None
    alike, by_runs = posteriors(sums, Scale(Fraction(0), Fraction(1), lower=True))
    worse = min(alike, by_runs, key=lambda part: float(part.quantile(1 - LEVEL)))
    tasks = judged.view.tasks("r_op")
    return Seen(
        rate=Fraction(metric.value),
        n=sums.n,
        tasks=sums.k,
        mean=float(worse.mean),
        variance=float(worse.variance),
        sizes=dict(zip(tasks.task.tolist(), tasks.n.tolist(), strict=True)) if worse is alike else {},
    )


class RaterCount(Struct, frozen=True, kw_only=True):
    """A rater, and how many items they scored."""

    name: str
    kind: str
    items: int


class Variable(Struct, frozen=True, kw_only=True):
    """Agreement on a variable beside the outcome: shown, and not corrected for.

    Scores run from `low` to `high`; `mae` is a share of that range. `against` is the judge against the
    reference, None with the `reason`; `pairs` are all pairs of raters.
    """

    low: float
    high: float
    items: int
    referenced: int
    judge: str | None
    reason: str | None = None
    against: Agreement | None = None
    pairs: Sequence[Agreement] = ()


class JudgeReport(Struct, frozen=True, kw_only=True):
    """What the calibration shows of the judge named `judge`.

    `state`: ``calibrated`` against reference scores; ``compared`` with other raters only; or
    ``uncalibrated``; with the `reason`. `referenced` items have a reference score; `drawn` tells whether they
    are the runs that the hash draws, `contradicted` in how many the judge's score is not what the record
    holds. `against` is the judge against it, `confusion` counts its labels, in all
    and `by_domain`. `pairs` are all pairs of raters, `icc` is over the items that all of them scored.
    `variables` are those beside the outcome.
    """

    state: State
    reason: str | None = None
    judge: str | None = None
    items: int = 0
    referenced: int = 0
    ratings: int = 0
    raters: Sequence[RaterCount] = ()
    against: Agreement | None = None
    confusion: Labels | None = None
    sensitivity: Share | None = None
    specificity: Share | None = None
    drawn: bool | None = None
    contradicted: int = 0
    by_domain: Mapping[str, Labels] = {}
    pairs: Sequence[Agreement] = ()
    icc: Estimate | None = None
    correction: Correction | None = None
    note: str | None = None
    variables: Mapping[str, Variable] = {}


def judge_report(
    calibration: Calibration | None, protocol: Protocol, seen: Seen | None, tau: Mapping[int, Fraction]
) -> JudgeReport:
    """Return what the calibration shows of the judge, and the rate `seen` freed of its error.

    `tau` maps tiers to thresholds of the rate; `seen` is None where there is no fault run.
    """
    if calibration is None:
        return JudgeReport(state="uncalibrated", reason="the bundle holds no ratings under calibration/")
    scores, reference = _scores(calibration)
    raters = [rater.name for rater in calibration.raters]
    name, reason = judge_of(calibration, protocol)
    report = JudgeReport(
        state="uncalibrated",
        reason=reason,
        judge=name,
        items=len(calibration.items),
        referenced=len(reference),
        ratings=len(calibration.score),
        raters=tuple(
            RaterCount(name=rater.name, kind=rater.kind, items=len(scored))
            for rater, scored in zip(calibration.raters, scores, strict=True)
        ),
        pairs=_pairs(raters, scores),
        icc=_icc(scores),
        variables={name: _variable(beside, protocol) for name, beside in calibration.others.items()},
    )
    if name is None:
        return report
    scored = scores[raters.index(name)]
    if not scored.keys() & reference.keys():
        others = any(scored.keys() & beside.keys() for beside in scores if beside is not scored)
        reason = f"no item that {name} scored has a reference score"
        return structs.replace(report, state="compared" if others else "uncalibrated", reason=reason)
    return _calibrated(report, calibration, scored, reference, protocol=protocol, seen=seen, tau=tau)


def _variable(calibration: Calibration, protocol: Protocol) -> Variable:
    """Return how far raters agree on a variable beside the outcome."""
    (scores, reference), raters = _scores(calibration), [rater.name for rater in calibration.raters]
    judge, reason = judge_of(calibration, protocol)
    against = None
    if judge is not None:
        against = _compare(judge, REFERENCE, scores[raters.index(judge)], reference, passes=None)
    return Variable(
        low=calibration.scale[0],
        high=calibration.scale[1],
        items=len(calibration.items),
        referenced=len(reference),
        judge=judge,
        reason=reason,
        against=against,
        pairs=_pairs(raters, scores, passes=None),
    )


def _scores(calibration: Calibration) -> tuple[list[Scores], Scores]:
    """Return the scores of each rater, and those of the reference."""
    scores: list[dict[int, int]] = [{} for _ in calibration.raters]
    columns = (calibration.item.tolist(), calibration.rater.tolist(), calibration.score.tolist())
    for item, rater, score in zip(*columns, strict=True):
        scores[rater][item] = score
    reference = enumerate(calibration.reference.tolist())
    return list(scores), {item: score for item, score in reference if score != ABSENT}


def _pairs(
    raters: Sequence[str], scores: Sequence[Scores], *, passes: int | None = PASSES
) -> tuple[Agreement, ...]:
    if len(raters) > MAX_RATERS:
        return ()
    return tuple(
        _compare(raters[a], raters[b], scores[a], scores[b], passes=passes)
        for a, b in combinations(range(len(raters)), 2)
    )


def _compare(a: str, b: str, x: Scores, y: Scores, *, passes: int | None = PASSES) -> Agreement:
    common = sorted(x.keys() & y.keys())
    mine, theirs = [x[item] for item in common], [y[item] for item in common]
    return compare(a, b, mine, theirs, passes=passes, scale=SCALE)


def _icc(scores: Sequence[Scores]) -> Estimate:
    """Return ICC(2,1) over the items that all raters scored."""
    complete = sorted(set.intersection(*(set(scored) for scored in scores))) if scores else []
    return icc([[scored[item] for scored in scores] for item in complete])


def _calibrated(
    report: JudgeReport,
    calibration: Calibration,
    scored: Scores,
    reference: Scores,
    *,
    protocol: Protocol,
    seen: Seen | None,
    tau: Mapping[int, Fraction],
) -> JudgeReport:
    """Add what follows from the reference scores of items that the judge scored."""
    labelled, note = counted(calibration, report.judge or "", recorded=gives_outcomes(protocol)), None
    every = labelled.of(None)
    if protocol.methodology == "trajectory":
        note = "methodology trajectory: where the judge did not decide success there is nothing to correct"
    return structs.replace(
        report,
        state="calibrated",
        reason=None,
        against=_compare(report.judge or "", REFERENCE, scored, reference),
        confusion=every,
        sensitivity=share(every.true_positives, every.true_positives + every.false_negatives),
        specificity=share(every.true_negatives, every.true_negatives + every.false_positives),
        drawn=calibration.drawn,
        contradicted=sum(run.contradicted for run in labelled.runs),
        by_domain={
            domain: labelled.of(None, domain)
            for domain in sorted({run.domain for run in labelled.runs if run.domain})
        },
        correction=correction(seen, labelled.of("r_op", None, seen.sizes), tau) if seen else None,
        note=note,
    )


def judge_findings(
    report: JudgeReport,
    protocol: Protocol,
    seen: Seen | None,
    tau: Mapping[int, Fraction],
    delta: Mapping[int, Fraction],
    *,
    judged: bool,
) -> Iterator[Finding]:
    """Yield what a reader should ask about the judge; `judged`: a judge is named, or its scores are there.

    `tau` and `delta` map tiers to the threshold of r_op and to the probability required of it.
    """
    if not judged:
        return
    if report.state != "calibrated":
        yield finding("judge-uncalibrated", f"how often the judge errs is unknown: {report.reason}")
    yield from _low(report)
    if report.drawn is False and gives_outcomes(protocol):
        yield finding(
            "calibration-chosen",
            f"the {many(report.referenced, 'labelled item')} are not the runs that the hash draws: errors on"
            " items that somebody chose do not tell how it errs on others; label those that"
            " evidence.to_label names",
        )
    if report.contradicted:
        yield finding(
            "calibration-chosen",
            f"of {many(report.contradicted, 'labelled run')} the calibration says that the judge decided"
            " otherwise than the record holds; the record counts. Copy the judge's scores, not the labels",
        )
    if report.correction is None or seen is None:
        return
    if protocol.methodology == "trajectory":
        yield finding(
            "judge-correction",
            "r_op is not corrected for the judge's error: by methodology trajectory the recovery grade and"
            " the steps decide success. Where the judge decided it, state that methodology; then r_op would"
            f" be {_freed(report.correction)}",
        )
        return
    yield from _corrected(report.correction, seen, tau, delta)


def _freed(corrected: Correction) -> str:
    low, high = corrected.interval.low, corrected.interval.high
    return f"{corrected.value:.1%} (95 % interval {low:.1%} to {high:.1%}), not {corrected.raw:.1%}"


def _low(report: JudgeReport) -> Iterator[Finding]:
    """Report weak agreement with the reference, or, where there is none, with a human."""
    human = {rater.name for rater in report.raters if rater.kind == "human"}
    pairs = [pair for pair in report.pairs if report.judge in {pair.a, pair.b} and human & {pair.a, pair.b}]
    weak = [
        (pair.success.value, pair.success.items, pair)
        for pair in ([report.against] if report.against else pairs)
        if pair.success is not None and pair.success.value is not None and pair.success.value < LOW
    ]
    if weak:
        value, items, pair = min(weak, key=lambda item: item[0])
        rater = pair.b if pair.a == report.judge else pair.a
        yield finding(
            "judge-agreement-low",
            f"{report.judge} agrees with {rater} on success with κ = {value:.2f} over"
            f" {items:,} items, below {LOW:g}",
        )


def _corrected(
    freed: Correction, seen: Seen, tau: Mapping[int, Fraction], delta: Mapping[int, Fraction]
) -> Iterator[Finding]:
    lost = [tier for tier, threshold in tau.items() if freed.raw > threshold >= freed.value]
    if lost:
        tiers = f"Tier {lost[0]}" if len(lost) == 1 else f"Tiers {', '.join(map(str, lost))}"
        yield finding(
            "judge-correction",
            f"without the judge's error r_op is {_freed(freed)}: at or below the threshold of {tiers}",
        )
    for tier in sorted(tau.keys() - set(lost)):
        # The same runs under a judge that never errs: a tier lost beside them is lost to the judge alone.
        flawless = beta(seen.mean, seen.variance).above(float(tau[tier]))
        if flawless > delta[tier] >= freed.by_tier[tier]:
            yield finding(
                "judge-correction",
                f"r_op is above the {float(100 * tau[tier]):g} % of Tier {tier} with probability"
                f" {freed.by_tier[tier]:.3f}, where {float(delta[tier]):g} is asked: too few labelled runs"
                " say how often the judge errs",
            )
