"""The verdict in words, and what to measure next: plain sentences for the terminal and the report."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from certkit.assessment.bounded import TASK_INTERVAL, size_needed
from certkit.assessment.criteria import Row, Status, next_rows
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit, named
from certkit.assessment.metrics.metric import asked, percent, shown
from certkit.ground import wording

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from certkit.assessment.bounded.fragility import Flips, Fragility
    from certkit.assessment.rater_error import JudgeReport, Variable
    from certkit.assessment.rater_error.corrected import Share
    from certkit.assessment.rater_error.labels import Estimate
    from certkit.assessment.result import Assessment

ORDER = "it depends on when the runs were made"
"""Why no flip is tried on consistency."""
_LOST = {
    Status.NOT_MET: "fails on",
    Status.INSUFFICIENT: "cannot be judged on",
    Status.NOT_TESTED: "has no evidence for",
}


def sentence(assessment: Assessment, *, brief: bool = False) -> str:
    """Return the verdict in words: the tier whose criteria are met, what contests it, why not the next.

    A required tier above 1 comes first, with its status where another one is attained, and the reasons are
    those of that tier. `brief` names criteria by their ids alone.
    """
    verdict, profile = assessment.verdict, assessment.profile
    attained = "No tier is attained"
    if verdict.tier:
        name = profile.tiers[str(verdict.tier)].name
        highest = ", the highest" if verdict.tier == len(assessment.tiers) else ""
        open_codes = [item.code for item in assessment.serious if item.contests]
        answered = [item for item in assessment.serious if not item.contests]
        how = "has its criteria met" if open_codes else "is attained"
        asked = ", as required," if verdict.tier == verdict.required_tier > 1 else ""
        attained = wording.qualified(
            f"Tier {verdict.tier} ({name}){asked} {how} under {profile.id}{highest}",
            open_codes,
            len(answered),
            list(dict.fromkeys(name for item in answered for name in item.answered_by)),
        )
    required = ""
    if verdict.required_tier > 1 and verdict.required_tier != verdict.tier:
        required = f"Tier {verdict.required_tier}, as required: {verdict.status.replace('_', ' ')}"
    if assessment.counts.records == 0:
        return f"{required and f'{required}. '}{attained}: the bundle holds no records."
    missing = "; ".join(_missing(assessment, brief=brief)) or f"Tier {verdict.goal - 1} is not met"
    if required and verdict.required_tier > verdict.tier:
        return f"{required}; {missing}." + (f" {attained}." if verdict.tier else "")
    if verdict.required_tier > 1 or verdict.tier == len(assessment.tiers):
        return f"{required and f'{required}. '}{attained}."
    return f"{attained}. Tier {verdict.goal} {missing}."


def _missing(assessment: Assessment, *, brief: bool) -> Iterator[str]:
    """Yield what keeps the wanted tier from being met: failures first; of several rows some by id."""
    most = 3
    for status, words in _LOST.items():
        rows = [row for row in open_rows(assessment) if row.deciding(assessment.profile.reading) is status]
        names = [row.id if brief or len(rows) > 1 else named(row.metric.id) for row in rows]
        if len(rows) > most:
            names = [", ".join(names[: most - 1]), f"{len(rows) - most + 1} more"]
        if rows:
            yield f"{words} {wording.listed(names)}"
            most = 2


def open_rows(assessment: Assessment) -> tuple[Row, ...]:
    """Return the rows of the tier that is wanted that are neither met nor not applicable, worst first."""
    return next_rows(assessment.profile, assessment.criteria, assessment.verdict.goal - 1)


def levels(assessment: Assessment) -> str:
    """Return the weakest evidence level of criteria that rest on records; outcomes are traced at best."""
    told = [row.evidence for row in assessment.criteria if row.evidence]
    records, enclosed = assessment.counts.records, max(item.derived + item.traced for item in told)
    level = wording.weakest(0, enclosed, records)
    return f"weakest evidence level: {level} ({enclosed:,} of {records:,} records with their trace)"


def above(assessment: Assessment) -> tuple[str, ...]:
    """Return what stands above every verdict: the tier by each reading, and every serious challenge."""
    verdict = assessment.verdict
    return (
        wording.readings(verdict.table.tier, verdict.bounded.tier, decides=verdict.decides),
        *serious(assessment),
    )


def serious(assessment: Assessment) -> tuple[str, ...]:
    """Return every serious challenge in words."""
    return tuple(
        wording.challenge(item.code, item.state, item.message, item.answered_by)
        for item in assessment.serious
    )


def fragile(fragility: Fragility) -> tuple[str, ...]:
    """Return what would change the verdict, one sentence each."""
    told = []
    if fragility.tier and fragility.reason:
        told.append(f"What would lose Tier {fragility.tier} is not computed: {fragility.reason}.")
    if flip := fragility.flips:
        row = _named(flip.criterion)
        where = f"{row} in domain {flip.domain}" if flip.domain else row
        told.append(
            f"Tier {fragility.tier} would be lost if {flip.needed:,} of {flip.of:,} successes had failed:"
            f" {where} falls first{left_out(flip)}."
            if flip.needed <= flip.of
            else f"No number of failures in place of successes loses Tier {fragility.tier}."
        )
    told += [sentence for tier in fragility.posterior for sentence in _posterior_falls(fragility, tier)]
    if (without := fragility.without_task) and without.losing:
        rows = ", ".join(f"{_named(name)} {count:,}" for name, count in without.criteria.items())
        told.append(
            f"Tier {fragility.tier} depends on {without.losing:,} of {without.tasks:,} tasks: without any one"
            f" of them it is lost ({rows})."
        )
    for rest in fragility.without_domain:
        tier = rest.table if fragility.reading == "table" else rest.bounded
        if tier != fragility.tier:
            told.append(f"Without domain {rest.domain} the tier would be {tier or 'none'}.")
    if missing := fragility.missing_runs:
        rate = shown(missing.r_op, Unit.FRACTION)
        told.append(
            f"{missing.missing:,} of {missing.declared:,} declared runs are missing; had they failed under"
            f" faults, success under faults would be {rate} ({missing.successes:,} of {missing.n:,})."
        )
    return tuple(told)


def _named(row: str) -> str:
    """Return the full name of a row that is called as its metric, else its own name."""
    return named(row) if row in CATALOGUE else row


def left_out(flip: Flips) -> str:
    """Name the rows that could fall too and that no flip was tried on."""
    names = [_named(name) for name, reason in flip.left_out.items() if reason == ORDER]
    return f"; {', '.join(names)} left out, since {ORDER}" if names else ""


def _posterior_falls(fragility: Fragility, tier: int) -> Iterator[str]:
    row = fragility.posterior.get(tier)
    if row is None or not row.holds:
        return
    if row.specificity_falls_at is not None:
        passed = shown(1 - row.specificity_falls_at, Unit.FRACTION)
        yield (
            f"If the judge wrongly passed {passed} of the failed runs, the posterior would miss Tier {tier}."
        )


def of_judge(report: JudgeReport) -> tuple[str, ...]:
    """Return what the calibration shows of the judge, one sentence each; nothing without ratings."""
    told = [_of_variable(name, variable) for name, variable in report.variables.items()]
    if report.items == 0:
        return tuple(told)
    if report.reason:
        told.append(f"{report.items:,} items rated by {len(report.raters):,} raters: {report.reason}.")
    if report.against is not None:
        told.append(f"{report.judge} against the reference: {_kappa(report.against.success)}.")
        told += [
            f"{name} {_share(share)}, in {share.successes:,} of {share.n:,}."
            for name, share in (("Sensitivity", report.sensitivity), ("Specificity", report.specificity))
            if share is not None
        ]
    if (fixed := report.correction) is not None:
        rate, low, high = (
            shown(x, Unit.FRACTION) for x in (fixed.value, fixed.interval.low, fixed.interval.high)
        )
        told.append(
            f"Success under faults without the judge's error: {rate}, 95 % interval {low} to {high}, where"
            f" {shown(fixed.raw, Unit.FRACTION)} was seen."
        )
    return tuple(told)


def _of_variable(name: str, variable: Variable) -> str:
    """Tell how far the judge agrees with the reference on a variable beside the outcome."""
    if variable.against is None:
        return f"{name}, rated on {variable.items:,} items: {variable.reason}."
    return (
        f"{name}, {variable.low:g} to {variable.high:g}: {variable.judge} against the reference, quadratic"
        f" {_kappa(variable.against.quadratic)}."
    )


def _kappa(estimate: Estimate | None) -> str:
    if estimate is None or estimate.value is None:
        return "κ undefined"
    return f"κ {estimate.value:.2f} over {estimate.items:,} items"


def _share(share: Share) -> str:
    if share.value is None or share.interval is None:
        return "unknown"
    low, high = share.interval.low, share.interval.high
    return f"{share.value:.3f} ({low:.3f} to {high:.3f})"


def next_command(
    assessment: Assessment, place: str, page: str, options: Mapping[str, str]
) -> tuple[str, str]:
    """Return the command that brings most, and its options: what is challenged comes first.

    Those of `options` that the command has come first among them. No report is drawn of several bundles,
    and no runs of theirs are listed. `page` is the file that a report is written to.
    """
    verdict, pooled = assessment.verdict, bool(assessment.bundles)
    under, tier, context = (options.get(name, "") for name in ("-p", "--require-tier", "--context"))
    if not assessment.counts.records:
        return "certkit import LOG -o BUNDLE", ""
    if verdict.tier and any(item.contests for item in assessment.serious):
        return f"certkit context init {place}", f"{under}{tier}-o context.json"
    if not assessment.facts.sealed:
        return f"certkit bundle seal {'BUNDLE' if pooled else place}", ""
    if verdict.tier:
        return f"certkit issue {place}", f"{under}{tier}{context}--key KEY.pem --issuer NAME -o issued"
    rows = open_rows(assessment)
    if not pooled and any(row.deciding(assessment.profile.reading) is Status.NOT_MET for row in rows):
        return f"certkit report {place}", f"{under}{tier}{context}-o {page}"
    r_op = next((row for row in rows if row.metric.id == "r_op"), None)
    if r_op is not None and r_op.threshold is not None:
        seen, said = r_op.value, ""
        if not r_op.metric.n:
            c_nom, said = assessment.metrics["c_nom"], "  # assumed from normal runs"
            most = 1 - Fraction(1, 2 * (c_nom.n or 0) + 2)  # no plan is for one that never fails
            seen = c_nom.value and min(c_nom.value, most)
        if Fraction(rate := f"{float(seen or 0):.4g}") > r_op.threshold:
            return f"certkit plan --tier {r_op.tier}", f"{under}--expect r_op={rate}{said}"
        if said and seen is not None and not pooled:  # it fails too often even where nothing is in its way
            return f"certkit runs {place}", "--failed"
    lacking = [row.metric.id for row in rows if pooled or not row.metric.blocked]
    return (
        (f"certkit explain {lacking[0]}", under.rstrip())
        if lacking
        else (f"certkit runs {place}", "--failed")
    )


def measure_next(assessment: Assessment) -> tuple[str, ...]:
    """Return one sentence for every open row of the wanted tier, worst first: what would settle it."""
    rows = open_rows(assessment)
    names = (named(row.metric.id) for row in rows)
    told = zip(names, rows, strict=True)
    return tuple(f"{name[:1].upper()}{name[1:]}: {_advice(row, assessment)}" for name, row in told)


def _advice(row: Row, assessment: Assessment) -> str:
    if row.status is Status.NOT_MET:
        return _shortfall(row, assessment)
    if row.status is Status.NOT_TESTED:
        evidence = CATALOGUE[row.metric.id].evidence
        return f"{row.reason}; {evidence}." if row.reason else f"{evidence}."
    if row.status is Status.INSUFFICIENT:
        return f"{row.reason}; {_complete(row)}."
    return _unbounded(row)


def _unbounded(row: Row) -> str:
    """Tell why a row that the point estimate meets is not met by its bound."""
    bounded, unit = row.bounded, row.metric.unit
    if bounded is None or row.operator is None or row.threshold is None:
        return "it is not judged."
    if bounded.bound is None:
        return f"{bounded.reason or bounded.rests_on}."
    seen, sure = shown(row.value, unit, beside=row.threshold), percent(bounded.confidence)
    side = "at least" if row.operator in {">", ">="} else "at most"
    wanted = asked(row.operator, row.threshold, unit)
    bound = shown(bounded.bound, unit, beside=row.threshold)
    return (
        f"{seen} found, but {sure} sure only of {side} {bound} where Tier {row.tier} asks {wanted};"
        " record more tasks."
    )


def _complete(row: Row) -> str:
    metric = row.metric
    if row.few and row.reason not in {metric.reason, metric.blocked}:
        return "record more tasks"
    if metric.blocked and "harness" in metric.blocked and metric.coverage == 1:
        return "repair the test rig and repeat those runs"
    return CATALOGUE[metric.id].evidence


def _shortfall(row: Row, assessment: Assessment) -> str:
    unit = row.metric.unit
    if row.threshold is None or row.operator is None:
        return "the tier does not specify it."
    shortfall = shown(row.value, unit, beside=row.threshold)
    shortfall += f" where Tier {row.tier} asks {asked(row.operator, row.threshold, unit)}"
    if CATALOGUE[row.metric.id].tau_of:
        shortfall += _more_runs(row, assessment)
    elif "domain" in row.metric.detail:
        shortfall += f", in domain {row.metric.detail['domain']}"
    return f"{shortfall}."


def _more_runs(row: Row, assessment: Assessment) -> str:
    """Tell how many fault runs, or tasks under the bounded reading, would show the tier at the rate seen."""
    metric, tau = assessment.metrics["r_op"], assessment.profile.tau.get(row.tier)
    rate, threshold = metric.value, row.threshold
    if rate is None or tau is None or threshold is None or isinstance(rate, float):
        return ""
    seen, confidence = shown(rate, Unit.FRACTION), float(threshold)
    if rate <= tau:
        return f"; a success rate of {seen} is too low, however many runs"
    interval, size, noun = metric.interval, metric.n, "fault runs"
    if assessment.profile.reading == "bounded" and row.bounded:
        interval = next((item for item in metric.intervals if item.method == TASK_INTERVAL), None)
        size, noun, confidence = row.bounded.k, "tasks", max(confidence, row.bounded.confidence)
    if interval is None or not size:
        return f"; record more {noun}"
    needed = size_needed("r_op", float(rate), float(tau), interval, size=size, confidence=confidence)
    number = "more than 100,000" if needed is None else f"about {needed:,}"
    return f"; at {seen} success {number} {noun} would show it in 4 of 5 cases"
