"""From an assessment to what a passport states.

Everything here follows from the assessment and the summary, so that anybody who has the evidence computes
the same parts again; `Derived` holds the parts that a replay compares. Who signs, and for how long, is
added in `issuing`.

The claim is worded as what the evidence shows under a profile, never as safety.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN
from decimal import Decimal as Number
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from certkit import canonical
from certkit._version import __version__
from certkit.assessment.criteria import Status
from certkit.assessment.metrics.metric import State
from certkit.assessment.result import moment
from certkit.assessment.tasks import task_table
from certkit.assessment.verdict import TierStatus
from certkit.passport import statement as st
from certkit.passport import terms
from certkit.passport.agreement import sentence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from certkit.assessment.criteria import Bounded, Row
    from certkit.assessment.metrics.metric import Metric, Value
    from certkit.assessment.result import Assessment, BundleResult
    from certkit.assessment.statistics.estimators import Interval
    from certkit.evidence.bundle.manifest import Protocol
    from certkit.evidence.summary.summary import Summary

FAILURE_MODES: Final = 10
"""How many failing cells a passport names, worst first."""

INTERVENTION_RATE: Final = Fraction(5, 100)
_OPERATION: Final = ("r_op", "frr")
_UNIT: Final = Number(1).scaleb(-terms.DIGITS)


_JUDGED: Final[dict[Status, terms.Judged]] = {
    Status.MET: "met",
    Status.NOT_MET: "not_met",
    Status.INSUFFICIENT: "insufficient",
    Status.NOT_TESTED: "not_tested",
}
_TIER: Final[dict[TierStatus, terms.TierStatus]] = {
    TierStatus.MET: "met",
    TierStatus.CONTESTED: "contested",
    TierStatus.NOT_MET: "not_met",
    TierStatus.INSUFFICIENT: "insufficient",
}


class Derived(Struct, frozen=True, kw_only=True):
    """The parts of the predicate that follow from evidence, profile and program alone."""

    claim: str
    origin: terms.Origin
    agent: st.Agent
    evidence: st.Evidence
    protocol: st.Protocol
    assessment: st.Judgement
    criteria: tuple[st.CriterionClaim, ...]
    profile_of_reliability: st.TaskTable
    scope: st.Scope
    limitations: tuple[str, ...]
    known_failure_modes: tuple[st.FailureMode, ...]
    challenges: tuple[st.Challenge, ...]


def derive(assessment: Assessment, summary: Summary) -> Derived:
    """Return the derived parts of the claim that an assessment of `summary` makes."""
    protocol = assessment.facts.manifest.protocol
    return Derived(
        claim=sentence(assessment.verdict.tier, assessment.profile.id, protocol.origin),
        origin=protocol.origin,
        agent=_agent(assessment),
        evidence=_evidence(assessment),
        protocol=_protocol(protocol),
        assessment=_judgement(assessment),
        criteria=tuple(_criterion(rows) for rows in _by_criterion(assessment)),
        profile_of_reliability=_table(summary, protocol),
        scope=_scope(assessment, summary),
        limitations=_limitations(assessment),
        known_failure_modes=_failure_modes(assessment),
        challenges=tuple(
            st.Challenge(
                code=item.code,
                severity=item.severity.value,
                state=item.state.value,
                answered_by=item.answered_by or None,
                message=item.message,
            )
            for item in assessment.challenges
        ),
    )


def decimal(value: Value | None) -> str | None:
    """Return a number with six digits after the point, rounded half to even; None where there is none."""
    if value is None:
        return None
    if isinstance(value, Fraction):
        # Exact: a quotient of decimals would round twice.
        scaled = round(value * 10**terms.DIGITS)
        number = Number(scaled).scaleb(-terms.DIGITS)
    else:
        number = Number(repr(float(value)))
    return f"{number.quantize(_UNIT, rounding=ROUND_HALF_EVEN):f}".replace("-0.000000", "0.000000")


def _required(value: Value) -> str:
    text = decimal(value)
    assert text is not None  # noqa: S101 - a number has digits
    return text


def triggers(assessment: Assessment) -> tuple[st.Trigger, ...]:
    """Return what ends the claim before its date."""
    tier = assessment.verdict.tier
    beyond = (
        st.Trigger(
            event="metric_beyond_threshold",
            metric=row.metric.id,
            operator=row.operator,
            threshold=decimal(row.threshold),
        )
        for row in assessment.criteria
        if row.tier == tier and row.metric.id in _OPERATION and row.threshold is not None
    )
    return (
        st.Trigger(event="component_change"),
        *beyond,
        st.Trigger(event="intervention_rate_above", threshold=decimal(INTERVENTION_RATE)),
    )


def _agent(assessment: Assessment) -> st.Agent:
    agent = assessment.facts.manifest.agent
    return st.Agent(
        name=agent.name,
        version=agent.version,
        provider=agent.provider,
        lineage=agent.lineage,
        digest=assessment.facts.agent_digest,
        components=tuple(
            st.Component(
                role=part.role,
                name=part.name,
                version=part.version,
                digest=part.digest,
                pinned=part.digest is not None,
            )
            for part in agent.components
        ),
    )


def _evidence(assessment: Assessment) -> st.Evidence:
    counts = assessment.counts
    return st.Evidence(
        digest=assessment.facts.digest,
        records=counts.records,
        nominal_runs=counts.nominal_runs,
        fault_runs=counts.fault_runs,
        harness_errors=counts.harness_errors,
        novel_fault_runs=counts.novel_fault_runs,
        bundles=tuple(_bundle(part) for part in assessment.bundles) or None,
    )


def _bundle(bundle: BundleResult) -> st.BundleClaim:
    return st.BundleClaim(
        digest=bundle.digest,
        dates=st.Dates(
            first_run=moment(bundle.first_run),
            last_run=moment(bundle.last_run),
            declared_from=bundle.declared_from,
            declared_to=bundle.declared_to,
        ),
        records=bundle.records,
        nominal_runs=bundle.nominal_runs,
        fault_runs=bundle.fault_runs,
        successes=bundle.successes,
        by_domain={
            name: st.Successes(successes=successes, n=n) for name, (successes, n) in bundle.by_domain.items()
        },
        table=st.Attained(tier=bundle.table),
        bounded=st.Attained(tier=bundle.bounded),
    )


def _protocol(protocol: Protocol) -> st.Protocol:
    judge, evaluator = protocol.judge, protocol.evaluator
    return st.Protocol(
        methodology=protocol.methodology,
        temperature=decimal(protocol.temperature),
        success_rule=protocol.success_rule,
        cascade_definition=protocol.cascade_definition,
        memory_observable=protocol.memory_observable,
        declared_runs=protocol.declared_runs,
        attempt=protocol.attempt,
        judge=None
        if judge is None
        else st.Judge(name=judge.name, family=judge.family, independent=judge.independent),
        evaluator=None
        if evaluator is None
        else st.Evaluator(name=evaluator.name, relation=evaluator.relation),
    )


def _judgement(assessment: Assessment) -> st.Judgement:
    verdict, profile = assessment.verdict, assessment.profile
    return st.Judgement(
        digest=canonical.digest(canonical.canonical(assessment.to_dict())),
        required_tier=verdict.required_tier,
        profile=st.Profile(id=profile.id, digest=profile.digest, reading=profile.reading),
        tool=st.Tool(name="certkit", version=__version__),
        tier=verdict.tier,
        status=_TIER[verdict.status],
        table=st.Attained(tier=verdict.table),
        bounded=st.Attained(tier=verdict.bounded),
        binding=verdict.binding,
        context=assessment.context,
    )


def _by_criterion(assessment: Assessment) -> list[list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in assessment.criteria:
        groups.setdefault(row.id, []).append(row)
    return list(groups.values())


def _criterion(rows: list[Row]) -> st.CriterionClaim:
    first = rows[0]
    metric = first.metric
    return st.CriterionClaim(
        id=first.id,
        metric=metric.id,
        unit=metric.unit.value,
        state=metric.state.value,
        value=None if metric.by_tier is not None else _value(metric.value, metric),
        n=metric.n,
        counts=dict(metric.counts),
        interval=_interval(metric.interval),
        reason=metric.reason or metric.blocked,
        provisional=first.criterion.provisional,
        drift_margin=decimal(first.criterion.margin),
        tiers={str(row.tier): _at_tier(row) for row in rows if row.status is not Status.NOT_APPLICABLE},
    )


def _value(value: Value | None, metric: Metric) -> str | bool | None:
    if value is None or metric.state is State.UNMEASURED:
        return None
    return bool(value) if metric.unit.value == "boolean" else decimal(value)


def _interval(interval: Interval | None) -> st.Interval | None:
    if interval is None:
        return None
    return st.Interval(
        low=_required(interval.low),
        high=_required(interval.high),
        level=_required(interval.level),
        method=interval.method,
    )


def _at_tier(row: Row) -> st.RowAtTier:
    assert row.operator is not None  # noqa: S101 - the tier specifies the row
    assert row.bounded is not None  # noqa: S101 - every row is judged by both readings
    threshold = row.threshold or Fraction(0)
    return st.RowAtTier(
        operator=row.operator,
        threshold=True if row.operator == "is" else _required(threshold),
        table=_JUDGED[row.status],
        bounded=_bound(row.bounded, row.metric),
        value=decimal(row.metric.by_tier.get(row.tier)) if row.metric.by_tier is not None else None,
        margin=decimal(row.margin),
    )


def _bound(bounded: Bounded, metric: Metric) -> st.Bound:
    return st.Bound(
        status=_JUDGED[bounded.status],
        bound=_value(bounded.bound, metric),
        confidence=_required(bounded.confidence),
        k=bounded.k,
        rests_on=bounded.rests_on,
        reason=bounded.reason,
    )


def _table(summary: Summary, protocol: Protocol) -> st.TaskTable:
    tasks = task_table(summary, salt=protocol.salt, memory_observable=protocol.memory_observable is True)
    return msgspec.convert(tasks, st.TaskTable, from_attributes=True)


def _scope(assessment: Assessment, summary: Summary) -> st.Scope:
    mix: dict[str, int] = {}
    for cell in summary.select():
        mix[cell.condition] = mix.get(cell.condition, 0) + cell.tally.runs
    period, times = assessment.facts.manifest.protocol.period, summary.times
    return st.Scope(
        domains=assessment.counts.domains,
        fault_mix=dict(sorted(mix.items())),
        dates=st.Dates(
            first_run=moment(times.first),
            last_run=moment(times.last),
            declared_from=period.from_ if period else None,
            declared_to=period.to if period else None,
        ),
        exclusions=tuple(_exclusions(assessment)),
    )


def _exclusions(assessment: Assessment) -> Iterable[str]:
    counts = assessment.counts
    if counts.novel_fault_runs:
        yield f"{counts.novel_fault_runs} runs under held-out faults are not in the criteria"
    left_out = assessment.metrics["frr"].counts.get("left_out", 0)
    if left_out:
        yield f"{left_out} fault runs whose fault did not take hold are not graded"
    yield "agents, versions, components, domains and conditions other than those named"


def _limitations(assessment: Assessment) -> tuple[str, ...]:
    limitations = [_rests(len(assessment.bundles))]
    if assessment.profile.reading == "table":
        limitations.append(
            "the table reading decides: thresholds are compared with point estimates, not with bounds"
        )
    if not assessment.facts.manifest.agent.components:
        limitations.append("the agent's components are not listed")
    for rows in _by_criterion(assessment):
        metric = rows[0].metric
        if metric.state is not State.MEASURED or metric.blocked:
            limitations.append(f"{rows[0].id}: {metric.reason or metric.blocked or 'not fully measured'}")
    return tuple(limitations)


def _rests(bundles: int) -> str:
    if not bundles:
        return "rests on the records of one evaluation; what happens in operation is not observed"
    return (
        f"rests on the pooled records of {bundles} evaluations, which the issuer chose; what happens in"
        " operation is not observed"
    )


def _failure_modes(assessment: Assessment) -> tuple[st.FailureMode, ...]:
    cells = [
        cell
        for cell in assessment.cells
        if cell.split == "standard" and cell.is_fault and cell.tally.success < cell.tally.runs
    ]
    worst = sorted(
        cells,
        key=lambda cell: (Fraction(cell.tally.success, cell.tally.runs), cell.domain, cell.condition),
    )
    return tuple(
        st.FailureMode(
            domain=cell.domain,
            condition=cell.condition,
            failures=cell.tally.runs - cell.tally.success,
            runs=cell.tally.runs,
        )
        for cell in worst[:FAILURE_MODES]
    )
