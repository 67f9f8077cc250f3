"""The judge's error: how far it agrees with the truth and with others, and what that does to r_op.

The judge is the model that gave the outcomes. The calibration files of a bundle hold runs that several raters
scored, some with a reference score, a person's, which is taken as the truth. From them come κ and its kin
(`agreement`), sensitivity and specificity, and the rate without the judge's error (`corrected`).

    report = judge_report(view)                               # block `judge`
    list(judge_findings(report, view, attained=2))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, structs

from certkit.assessment.findings.findings import Severity, finding
from certkit.assessment.rater_error.corrected import Correction, Labels, Share, correction, share
from certkit.assessment.rater_error.labels import (
    PASSES,
    Agreement,
    Estimate,
    compare,
    counted,
    gives_outcomes,
    icc,
    judge_of,
)
from certkit.bundle.labels import ABSENT
from certkit.ground.wording import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.findings.findings import Finding
    from certkit.assessment.metrics.series import View
    from certkit.bundle.labels import Calibration
    from certkit.bundle.manifest import Protocol

SCALE: Final = 10**6
"""Units of a score in `Calibration`."""
MAX_RATERS: Final = 20
"""Raters beyond whom pairs are not listed."""
REFERENCE: Final = "reference"
State = Literal["calibrated", "compared", "uncalibrated"]
Scores = Mapping[int, int]
"""Item → score, in millionths."""


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
    holds. `against` is the judge against it, `confusion` counts its labels. `pairs` are all pairs of raters,
    `icc` is over the items that all of them scored. `correction` is None where no model gave the outcomes.
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
    pairs: Sequence[Agreement] = ()
    icc: Estimate | None = None
    correction: Correction | None = None
    variables: Mapping[str, Variable] = {}


def judge_report(view: View) -> JudgeReport:
    """Return what the calibration shows of the judge, and r_op freed of its error where it gave outcomes."""
    calibration, protocol = view.summary.calibration, view.manifest.protocol
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
        reason = f"no item that {name} scored has a reference score that a person gave it"
        return structs.replace(report, state="compared" if others else "uncalibrated", reason=reason)
    labelled = view.labelled or counted(calibration, name, recorded=False)
    labels, sums = labelled.all(), view.sums("r_op")
    return structs.replace(
        report,
        state="calibrated",
        against=_compare(name, REFERENCE, scored, reference),
        confusion=labels,
        sensitivity=share(labels.true_positives, labels.true_positives + labels.false_negatives),
        specificity=share(labels.true_negatives, labels.true_negatives + labels.false_positives),
        drawn=calibration.drawn,
        contradicted=sum(run.contradicted for run in labelled.runs),
        correction=correction(*view.labelled.both(view, sums, "r_op", None), view.tau)
        if view.labelled and sums
        else None,
    )


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


def judge_findings(report: JudgeReport, view: View, attained: int) -> Iterator[Finding]:
    """Yield what a reader should ask about the judge; nothing where none is named and none gave a score.

    `attained` is the tier that the deciding reading gives, 0 for none.
    """
    protocol, total = view.manifest.protocol, view.total
    model = gives_outcomes(protocol, view.summary.calibration)
    if protocol.judge is None and not (model or total.ti_n or total.composite_checked):
        return
    if report.state != "calibrated":
        yield finding("judge-uncalibrated", f"how often the judge errs is unknown: {report.reason}")
    if report.drawn is False and model:
        yield finding(
            "calibration-chosen",
            f"the {many(report.referenced, 'labelled item')} are not the runs that the hash draws: errors on"
            " items that somebody chose do not tell how it errs on others; label those that"
            " certkit.to_label(m, *bundles) names, of all bundles that are judged together",
        )
    if report.contradicted:
        yield finding(
            "calibration-chosen",
            f"of {many(report.contradicted, 'labelled run')} the calibration says that the judge decided"
            " otherwise than the record holds; the record counts. Copy the judge's scores, not the labels",
        )
    freed = report.correction
    lost = [tier for tier, tau in view.tau.items() if freed and freed.raw > tau >= freed.value]
    if freed and lost:
        low, high = freed.interval.low, freed.interval.high
        shown = any(tier <= attained and high <= view.tau[tier] for tier in lost)
        yield finding(
            "judge-correction",
            f"without the judge's error r_op is {freed.value:.1%} (95 % interval {low:.1%} to {high:.1%}),"
            f" not {freed.raw:.1%}: at or below the threshold of Tier {', '.join(map(str, lost))}",
            Severity.SERIOUS if shown else Severity.WARNING,
        )
