"""The verdict in plain sentences, and what to do next: the same on the terminal and in the report.

readings(evaluation)      "On averages: Tier 2 (this decides). With 95 % confidence: Tier 1."
verdict_text(evaluation)  "Tier 2 (Production + oversight) of hb-eval-2026 is met. …"
advice(evaluation)        one sentence for every row that keeps the next tier from being met
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import UNSET

from certkit.assessment.assessment import FindingState, Row, Severity, Status, TierStatus
from certkit.assessment.catalogue import CATALOGUE, WEAKEST, named
from certkit.assessment.metric import Reason
from certkit.assessment.raters import judge_report
from certkit.assessment.verdict import next_rows, tiers
from certkit.assessment.words import (
    finding_text,
    names,
    percent,
    reason_text,
    rounded,
    row_value,
    threshold_text,
    value_text,
)
from certkit.bundle.facts import UNVERSIONED
from certkit.ground.document import State
from certkit.ground.text import quoted
from certkit.ground.wording import listed, many, tier_name
from certkit.record.record import RunKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from certkit.assessment.assessment import Finding
    from certkit.assessment.catalogue import Unit
    from certkit.assessment.evaluation import Evaluation
    from certkit.assessment.metric import Interval, Metric
    from certkit.assessment.profile import Profile

_WHY: Final = {
    Status.NOT_MET: "misses",
    Status.INSUFFICIENT: "has too little evidence for",
    Status.NOT_TESTED: "has no evidence for",
}
"""What keeps a tier from being met, by the status of the row."""
_SUCCESSES: Final = {
    "r_op": "successful runs under faults",
    "c_nom": "successful normal runs",
    "cascade": "successful runs under cascading faults",
    "frr": "recovered runs under faults",
    "frr_2025": "recovered runs under faults",
    "irs": "recoveries guided by memory",
    "cn_frr": "runs under faults that succeeded or halted",
    "novel_fault": "successful runs under held-out faults",
    "adversarial_resistance": "successful runs under attack",
}
"""Series of `fragility.Flips` → the runs that its successes are."""
_REMEDIES: Final = {
    "few-tasks": "add tasks",
    "few-items": "add some",
    "unstated-n": "state the number",
    "harness-errors": "repair the test rig and make these runs again",
}
"""What settles a row that cannot be judged for another reason than that runs lack its fields, by reason."""
_ONE: Final = {
    TierStatus.MET: "met",
    TierStatus.NOT_MET: "not met",
    TierStatus.INSUFFICIENT: "not decided",
}
_LONE: Final = {
    TierStatus.MET: "is met",
    TierStatus.CONTESTED: "",
    TierStatus.NOT_MET: "is not met: it ",
    TierStatus.INSUFFICIENT: "is not decided: it ",
}
"""What is said of a table with one tier, before what it lacks."""
_WITHOUT: Final = {Status.NOT_TESTED, Status.NOT_APPLICABLE}
"""Statuses of a row that has no evidence."""
_LONE_WORD: Final = re.compile(r"[\w.:/@+-]+")


def agent_called(evaluation: Evaluation) -> str:
    """Return the agent with its version, in quotation marks where it is more than a word."""
    agent = evaluation.facts.agent
    name = agent.name if agent.version == UNVERSIONED else f"{agent.name} {agent.version}"
    return name if _LONE_WORD.fullmatch(name) and len(name) <= 40 else quoted(name, 40)  # noqa: PLR2004


def cannot_judge(evaluation: Evaluation) -> bool:
    """Tell whether the wanted tier cannot be judged because there are no runs under faults."""
    statuses = {row.deciding(evaluation.profile.reading) for row in open_rows(evaluation)}
    return (
        bool(evaluation.summary.records)
        and not evaluation.groups.fault["runs"]
        and Status.NOT_TESTED in statuses
        and Status.NOT_MET not in statuses
    )


def is_unfinished(evaluation: Evaluation) -> bool:
    """Tell whether the evidence is a trial that was begun: it encloses a plan, and holds no record yet."""
    return not evaluation.summary.records and evaluation.summary.plan is not UNSET


def no_faults_text(evaluation: Evaluation, source: str) -> str:
    """Return that the tiers cannot be judged without runs under faults, of a log or of evidence."""
    profile = evaluation.profile.id
    tiers = "HB-Eval tiers" if profile.startswith("hb-eval-") else f"The tiers of {quoted(profile)}"
    return f"{tiers}: cannot be judged: the {source} holds no run under faults."


def rows_by_id(evaluation: Evaluation, *, every: bool = False) -> Mapping[str, Sequence[Row]]:
    """Return the rows at every tier by their ids; those without evidence only with `every`."""
    rows: dict[str, list[Row]] = {}
    for row in evaluation.assessment.criteria:
        rows.setdefault(row.id, []).append(row)
    return {
        name: at_tiers
        for name, at_tiers in rows.items()
        if every or not {row.status for row in at_tiers} <= _WITHOUT
    }


def without_evidence(evaluation: Evaluation, rows: Mapping[str, Sequence[Row]]) -> str:
    """Return which rows of the profile are not among `rows`, since they have no evidence."""
    criteria = evaluation.profile.criteria
    hidden = [row.id for row in criteria if row.id not in rows]
    if not hidden:
        return ""
    verb = "has" if len(hidden) == 1 else "have"
    return f"{len(hidden)} of {many(len(criteria), 'row')} {verb} no evidence: {names(hidden)}."


def readings(evaluation: Evaluation) -> str:
    """Return the tier on averages and with confidence limits, and which of the two decides.

    Of a table with one tier: whether it is met.
    """
    verdict, profile = evaluation.assessment.verdict, evaluation.profile
    # The confidence at which this tier was tested: that of the lowest tier where none is met.
    sure = percent(float(profile.confidence(verdict.bounded.tier or min(profile.tier_numbers))))
    average, limits = tier_name(verdict.table.tier), tier_name(verdict.bounded.tier)
    if len(profile.tiers) == 1:
        average, limits = (_ONE[status] for status in _by_reading(evaluation))
    decides = " (this decides)"
    first = f"On averages: {average}{decides if verdict.decides == 'table' else ''}"
    return f"{first}. With {sure} confidence: {limits}{decides if verdict.decides == 'bounded' else ''}."


def _by_reading(evaluation: Evaluation) -> Iterator[TierStatus]:
    """Yield the status of a lone tier on averages and with confidence limits, findings aside."""
    rows, records = evaluation.assessment.criteria, evaluation.summary.records
    for reading in ("table", "bounded"):
        judged = tiers(evaluation.profile, rows, reading, records=records, strict=evaluation.question.strict)
        yield judged["1"].status


def success_rates(profile: Profile) -> tuple[tuple[str, str], ...]:
    """Return the success rates that an answer under a profile is about, each with the name of its runs."""
    rates = [("c_nom", "normal runs")]
    if RunKind.FAULTS in profile.needs or not profile.needs:
        rates.append(("r_op", "runs under faults"))
    elif RunKind.ATTACKS in profile.needs:
        rates.append(("adversarial_resistance", "attacked runs"))
    return tuple(rates)


def least_rate(evaluation: Evaluation, rate: str) -> Metric | None:
    """Return a success rate in its weakest domain; None where no row of the profile asks."""
    names = (name for name, series in WEAKEST.items() if series == rate and evaluation.profile.asks(name))
    return next((evaluation.metrics[name] for name in names if evaluation.metrics[name].n), None)


def interval_text(interval: Interval, unit: Unit) -> str:
    """Return a 95 % interval: ``95 %: 32.5 to 52.5 %``."""
    low, high = (value_text(end, unit) for end in (interval.low, interval.high))
    return f"{percent(interval.level)}: {low.removesuffix(' %')} to {high}"


def how_often(evaluation: Evaluation) -> str:
    """Return how often the agent succeeds: ``90.6 % of runs under faults succeed (725 of 800)``.

    A lone rate has its tasks and its interval over them: ``42.0 % of normal runs succeed (84 of 200 runs,
    50 tasks; 95 %: 32.5 to 52.5 %)``, and what the interval supposes where it is not declared. Success under
    attack and the share of attacks that succeeded are two facts, so the second is said with the first.
    """
    said, more = list[str](), []
    rates = success_rates(evaluation.profile)
    for name, of_runs in rates:
        metric = evaluation.metrics[name]
        if metric.value is None or not metric.n:
            continue
        counts = f"{metric.counts['successes']:,} of {metric.n:,}"
        alone = not any(evaluation.metrics[rate].n for rate, _ in rates if rate != name)
        if alone and (interval := evaluation.evidence.interval(metric)):
            tasks = many(evaluation.evidence.fewest(name) or 0, "task")
            counts += f" runs, {tasks}; {interval_text(interval, metric.unit)}"
            counts += " if tasks are independent" * (not evaluation.evidence.independent)
        succeed = "" if said else " succeed"
        said.append(f"{value_text(metric.value, metric.unit)} of {of_runs}{succeed} ({counts})")
    if broken := evaluation.groups.every["harness_error"]:
        more.append(f"{many(broken, 'harness error')} among the failures")
    attacks = evaluation.metrics["attack_success_rate"]
    asked = any(map(evaluation.profile.asks, ("attack_success_rate", "adversarial_resistance")))
    if asked and attacks.value is not None:
        won = f"{attacks.counts['attack_succeeded']:,} of {many(attacks.n or 0, 'attack')}"
        more.insert(0, f"{won} succeeded ({value_text(attacks.value, attacks.unit)})")
    if not said:
        return "no run counts"
    return "; ".join([" and ".join(said), *more])


def open_findings(evaluation: Evaluation) -> tuple[Finding, ...]:
    """Return the open questions: serious findings that nobody answered, and warnings, the gravest first."""
    return tuple(
        item
        for item in evaluation.assessment.findings
        if item.state is FindingState.OPEN or item.severity is Severity.WARNING
    )


def open_text(evaluation: Evaluation) -> str:
    """Return how many questions are open, how many of them are serious, and how many were answered."""
    answered = sum(not item.is_open for item in evaluation.assessment.serious)
    return questions_counted([item.severity for item in open_findings(evaluation)], answered)


def questions_counted(severities: Sequence[Severity], answered: int) -> str:
    """Count open questions: ``Open questions: 3, 1 serious; 1 serious answered``.

    Args:
        severities: of each open question.
        answered: how many serious ones were answered.
    """
    text = "Open questions: none"
    if severities:
        text = f"Open questions: {len(severities)}, {severities.count(Severity.SERIOUS) or 'none'} serious"
    return f"{text}; {answered} serious answered" if answered else text


def verdict_text(evaluation: Evaluation, *, brief: bool = False) -> str:
    """Return the verdict: the tier that stands, what contests it, and what the wanted tier lacks.

    Args:
        evaluation: what was judged.
        brief: name rows by their ids alone.
    """
    assessment, profile = evaluation.assessment, evaluation.profile
    verdict = assessment.verdict
    if not evaluation.summary.records:
        why = "its trial is not finished, and " if is_unfinished(evaluation) else ""
        return f"No tier of {profile.name} is met: {why}the bundle holds no records."
    wanted, lone = verdict.goal, len(profile.tiers) == 1
    lacks = _lacks(evaluation, wanted, brief=brief) if str(wanted) in assessment.tiers else ""
    parts = []
    if lone:
        parts.append(f"{profile.name} {_LONE[assessment.tiers['1'].status]}{lacks}.")
    elif verdict.tier:
        name = profile.tiers[str(verdict.tier)].name
        parts.append(f"Tier {verdict.tier} ({name}) of {profile.name} is met.")
    else:
        parts.append(f"No tier of {profile.name} is met.")
    if lacks and not lone:
        parts.append(f"Tier {wanted} {lacks}.")
    more = (left_out_text(evaluation), provisional_text(evaluation))
    return " ".join(filter(None, (*parts, *more)))


def left_out_text(evaluation: Evaluation) -> str:
    """Return the rows that no run is there for and that decide nothing, nothing where there are none."""
    assessment = evaluation.assessment
    wanted = str(assessment.verdict.goal)
    tier = assessment.tiers.get(wanted) or assessment.tiers[str(assessment.verdict.tier)]
    return f"Left out, since there are no such runs: {listed(tier.left_out)}." if tier.left_out else ""


def _lacks(evaluation: Evaluation, tier: int, *, brief: bool) -> str:
    assessment = evaluation.assessment
    if assessment.tiers[str(tier)].status is TierStatus.CONTESTED:
        codes = [item.code for item in assessment.serious if item.is_open and (item.tier or 1) <= tier]
        return f"is contested: its rows are met, and {listed(codes)} is open"
    return "; ".join(_missing(evaluation, brief=brief)) or f"needs Tier {tier - 1}"


def _missing(evaluation: Evaluation, *, brief: bool) -> Iterator[str]:
    """Yield what keeps the wanted tier from being met: failures first; of several rows some by id."""
    most = 3
    for status, words in _WHY.items():
        rows = [row for row in open_rows(evaluation) if row.deciding(evaluation.profile.reading) is status]
        names = [row.id if brief or len(rows) > 1 else named(row.metric) for row in rows]
        if len(rows) > most:
            names = [", ".join(names[: most - 1]), f"{len(rows) - most + 1} more"]
        if rows:
            undeclared = status is Status.INSUFFICIENT and all(map(_undeclared, rows))
            why = ", since tasks are not declared independent" if undeclared else ""
            yield f"{words} {listed(names)}{why}"
            most = 2


def _undeclared(row: Row) -> bool:
    """Tell whether a row has no confidence limit because the tasks are not declared independent."""
    return row.bounded is not None and row.bounded.reason == Reason("independence-undeclared")


def provisional_text(evaluation: Evaluation) -> str:
    """Return what provisional rows would change, nothing where they change nothing."""
    verdict = evaluation.assessment.verdict
    if verdict.tier == verdict.tier_strict or evaluation.question.strict:
        return ""
    rows = dict.fromkeys(
        row.id
        for row in evaluation.assessment.criteria
        if row.provisional and row.tier <= verdict.tier and row.status is not Status.MET
    )
    row, verb = ("row", "is") if len(rows) == 1 else ("rows", "are")
    left = tier_name(verdict.tier_strict)
    return (
        f"The {row} {listed(list(rows))}, provisional in the paper, {verb} not met;"
        f" counted, there would be {left}."
    )


def open_rows(evaluation: Evaluation) -> tuple[Row, ...]:
    """Return the rows that keep the wanted tier from being met, the worst first."""
    assessment = evaluation.assessment
    return next_rows(
        evaluation.profile,
        assessment.criteria,
        assessment.verdict.goal - 1,
        strict=evaluation.question.strict,
    )


def advice(evaluation: Evaluation) -> tuple[str, ...]:
    """Return one sentence for every open row of the wanted tier, worst first: what would settle it."""
    return tuple(f"{row_title(row)}: {row_advice(evaluation, row)}" for row in open_rows(evaluation))


def row_title(row: Row) -> str:
    """Return the full name of a row with its id."""
    name = named(row.metric) if row.id == row.metric else f"{CATALOGUE[row.metric].title} ({row.id})"
    return name[:1].upper() + name[1:]


def row_advice(evaluation: Evaluation, row: Row) -> str:
    """Return what a row lacks at its tier, and what would settle it."""
    if row.status is Status.NOT_MET:
        return _shortfall(evaluation, row)
    evidence = CATALOGUE[row.metric].evidence
    if row.status in {Status.NOT_TESTED, Status.INSUFFICIENT}:
        if row.reason is not None and row.reason.code in _REMEDIES:
            return f"{reason_text(row.reason)}: {_REMEDIES[row.reason.code]}."
        why = reason_text(row.reason)
        return f"{why}; {evidence}." if why else f"{evidence}."
    return _uncertain(row)


def _shortfall(evaluation: Evaluation, row: Row) -> str:
    unit = CATALOGUE[row.metric].unit
    wanted = threshold_text(row.operator or "", row.threshold or 0, unit)
    text = f"{row_value(row)} where Tier {row.tier} asks {wanted}"
    metric = evaluation.metrics[row.metric]
    if "domain" in metric.detail:
        return f"{text}, in domain {metric.detail['domain']}."
    if row.metric == "posterior":
        rate, tau = evaluation.metrics["r_op"].value, evaluation.profile.tau[row.tier]
        if rate is not None and rate <= tau:
            return f"success under faults is {rounded(rate, 1, scale=100)} %; more runs will not help."
        return f"{text}; record more fault runs (certkit plan --tier {row.tier} says how many)."
    return f"{text}."


def _uncertain(row: Row) -> str:
    """Return why a row that averages meet is not met with confidence limits."""
    bounded, unit = row.bounded, CATALOGUE[row.metric].unit
    if bounded is None:
        return "it has no confidence limit."
    if bounded.bound is None:
        return f"{reason_text(bounded.reason)}."
    side = "at least" if row.operator in {">", ">="} else "at most"
    limit = value_text(bounded.bound, unit, apart_from=float(row.threshold or 0))
    wanted = threshold_text(row.operator or "", row.threshold or 0, unit)
    return (
        f"{row_value(row)} on average, and with {percent(bounded.confidence)} confidence {side} {limit} where"
        f" Tier {row.tier} asks {wanted}; record more tasks (certkit plan --tier {row.tier} says how many)."
    )


def traces_text(evaluation: Evaluation) -> str:
    """Return how many runs are backed by a trace."""
    traces, records = evaluation.summary.traces, evaluation.summary.records
    if not traces.enclosed:
        return "No run is backed by an enclosed trace"
    derived = f", {traces.derived:,} of them recomputed from it" if traces.derived else ""
    return f"{traces.enclosed:,} of {many(records)} are backed by an enclosed trace{derived}"


def core_texts(evaluation: Evaluation) -> tuple[str, ...]:
    """Return one sentence for every row that is lost on core evidence."""
    rows = {(row.id, row.tier): row for row in evaluation.assessment.criteria}
    said = []
    for item in evaluation.assessment.core:
        if item.state == "lost":
            row = rows[item.id, item.tier]
            unit = CATALOGUE[row.metric].unit
            wanted = threshold_text(row.operator or "", row.threshold or 0, unit)
            said.append(
                f"{row_title(row)}: {row_value(row)} on all runs and {value_text(item.value, unit)} on the"
                f" {many(item.n, 'core run')}; Tier {item.tier} asks {wanted}."
            )
    return tuple(said)


def serious_texts(evaluation: Evaluation) -> tuple[str, ...]:
    """Return every serious finding: whether it is open, what it says, its code."""
    by = {item.code: f"{item.by}, agreed by {item.agreed_by}" for item in evaluation.question.answers}
    return tuple(
        f"serious, {item.state}{f' by {by[item.code]}' if item.code in by else ''}:"
        f" {finding_text(item)} ({item.code})"
        for item in evaluation.assessment.serious
    )


def fragility_texts(evaluation: Evaluation) -> tuple[str, ...]:
    """Return what would change the verdict, one sentence each."""
    changed = evaluation.fragility
    said = []
    if (flip := changed.flips) is not None:
        runs = f"{_SUCCESSES[flip.series]}{f' in domain {flip.domain}' if flip.domain else ''}"
        said.append(
            f"Tier {changed.tier} would be lost if {flip.needed:,} of the {flip.of:,} {runs} had failed:"
            f" {flip.criterion} fails first."
            if flip.needed <= flip.of
            else f"No number of failures in place of successes loses Tier {changed.tier}."
        )
    for tier, row in changed.posterior.items():
        if row.holds and row.specificity_falls_at is not None:
            passed = rounded(1 - row.specificity_falls_at, 1, scale=100)
            said.append(
                f"If the judge wrongly passed {passed} % of the failed runs, success under faults would miss"
                f" Tier {tier}."
            )
    for rest in changed.without_domain:
        tier = rest.table if changed.reading == "table" else rest.bounded
        if tier != changed.tier:
            said.append(f"Without domain {rest.domain} there would be {tier_name(tier)}.")
    if missing := changed.missing_runs:
        said.append(
            f"{missing.missing:,} of {missing.declared:,} planned runs are missing; had they failed under"
            f" faults, {rounded(missing.r_op, 1, scale=100)} % would succeed"
            f" ({missing.successes:,} of {missing.n:,})."
        )
    return tuple(said)


def plan_text(evaluation: Evaluation) -> str:
    """Return which plan is enclosed and how many of its runs are there; empty where none is named."""
    protocol, plan = evaluation.facts.protocol, evaluation.summary.plan
    if (digest := protocol.plan or protocol.plan_stated) is None:
        return ""
    if plan is UNSET:
        return f"A plan's digest is stated ({digest[:15]}…); the plan is not enclosed."
    said = f"A plan is enclosed ({digest[:15]}…): {plan.present:,} of its {many(plan.planned)} are there."
    return f"{said} Records that are not of it: {plan.astray:,}." if plan.astray else said


def judge_texts(evaluation: Evaluation) -> tuple[str, ...]:
    """Return what people's labels show of the judge, one sentence each; nothing without labels."""
    report = judge_report(evaluation.summary, evaluation.facts)
    said = []
    shares = (("passes true successes", report.sensitivity), ("fails true failures", report.specificity))
    for name, share in shares:
        if share is not None and share.value is not None:
            rate, low, high = (
                rounded(end or 0, 1, scale=100) for end in (share.value, share.low, share.high)
            )
            counts = f"{share.successes:,} of {share.n:,} labelled runs"
            said.append(f"The judge {name} in {rate} % ({counts}; 95 % interval {low} to {high} %).")
    if report.corrected is not None and report.raw is not None and report.low is not None:
        low, high = (rounded(end or 0, 1, scale=100) for end in (report.low, report.high))
        said.append(
            f"Without the judge's error success under faults is {rounded(report.corrected, 1, scale=100)} %"
            f" (95 % interval {low} to {high} %), not {rounded(report.raw, 1, scale=100)} %."
        )
    return tuple(said)


def _gate(evaluation: Evaluation) -> str | None:
    """Return the packaged profile that judges these runs where the table asks for runs that are not there."""
    faults = evaluation.groups.fault["runs"]
    if evaluation.assessment.verdict.tier or RunKind.FAULTS not in evaluation.profile.needs:
        return None
    if not faults:
        return "pass-rate"
    return "under-attack" if faults == evaluation.metrics["adversarial_resistance"].n else None


class NextStep(NamedTuple):
    """A command to run next.

    Attributes:
        command: its beginning.
        options: its options.
        when: what must hold for it, or what it is for; empty where it is right in any case.
        otherwise: what to do where it does not hold, by the command that writes a mapping.
    """

    command: str
    options: str
    when: str = ""
    otherwise: str = ""


def _declaring(evaluation: Evaluation, log: str | None, options: str, columns: str) -> NextStep:
    """Return how to say which tasks are independent; who said that some are not has to say which."""
    if evaluation.facts.protocol.tasks_independent is False:
        return NextStep(columns, "", "say in cluster_id which tasks belong together")
    when, otherwise = "if no two tasks share a template, site or document", "If some do, map cluster_id: "
    if log is None:
        return NextStep("certkit import LOG --independent-tasks -o BUNDLE", "", when, otherwise)
    return NextStep(f"{log} --independent-tasks", options, when, otherwise)


def next_command(
    evaluation: Evaluation,
    place: str,
    page: str,
    options: Mapping[str, str],
    log: str | None = None,
    *,
    columns: str = "certkit import LOG --columns -o MAP.toml",
) -> NextStep:
    """Return the command that brings most, and its options: open serious findings come first.

    Args:
        evaluation: what was judged.
        place: the bundles, as a command names them.
        page: the file that a report is written to.
        options: those under which it was judged, by name (``{"-p": "-p other "}``).
        log: the command that judges the log again, where a log was judged, without options of a profile.
        columns: the command that writes a mapping of the log to fill in.
    """
    verdict, pooled = evaluation.assessment.verdict, bool(evaluation.facts.bundles)
    under, tier, context = (options.get(name, "") for name in ("-p", "--require-tier", "--context"))
    if is_unfinished(evaluation):
        when = "as before, since the same command goes on with the trial"
        return NextStep("certkit trial run PLAN --agent AGENT", f"-o {place}", when)
    if not evaluation.summary.records:
        return NextStep("certkit import LOG -o BUNDLE", "")
    if gate := _gate(evaluation):
        return NextStep(log or f"certkit assess {place}", f"-p {gate}")
    if verdict.status is TierStatus.CONTESTED:
        return NextStep(f"certkit context init {place}", f"{under}{tier}-o context.json")
    if not evaluation.facts.sealed:
        return NextStep(f"certkit bundle seal {'BUNDLE' if pooled else place}", "")
    if verdict.tier:
        return NextStep(
            f"certkit issue {place}", f"{under}{tier}{context}--key KEY.pem --issuer NAME -o issued"
        )
    rows = open_rows(evaluation)
    if evaluation.profile.reading == "bounded" and any(map(_undeclared, rows)):
        return _declaring(evaluation, log, f"{under}{tier}".rstrip(), columns)
    failing = [row for row in rows if row.deciding(evaluation.profile.reading) is Status.NOT_MET]
    more = NextStep(f"certkit plan --tier {verdict.goal}", under.rstrip())
    if failing and not pooled:
        only_limits = all(row.status is Status.MET for row in failing)
        report = NextStep(f"certkit report {place}", f"{under}{tier}{context}-o {page}")
        return more if only_limits else report
    lacking = [row.metric for row in rows if evaluation.metrics[row.metric].state is State.UNMEASURED]
    if lacking:
        return NextStep(f"certkit explain {lacking[0]}", under.rstrip())
    every = evaluation.groups.every
    return more if every["success"] == every["runs"] else NextStep(f"certkit runs {place}", "--failed")
