"""From an assessment to what a passport states.

Everything here follows from the assessment and the summary, so that anybody who has the evidence computes
the same parts again; `Derived` holds the parts that a replay compares. What the manifest declares is stated
by `declared`, what follows from other parts by `implied`; who signs, and for how long, is added in `issuing`.

The claim is worded as what the evidence shows under a profile, never as safety.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, structs

from certkit import canonical
from certkit._version import __version__
from certkit.assessment.criteria import Status, TierStatus
from certkit.assessment.metrics.metric import State
from certkit.assessment.result import moment
from certkit.assessment.tasks import task_table
from certkit.document import fill
from certkit.passport import declared, implied, terms
from certkit.passport import statement as st
from certkit.passport.terms import decimal

if TYPE_CHECKING:
    from certkit.assessment.criteria import Bounded, Row
    from certkit.assessment.integrity.document import IntegrityDocument
    from certkit.assessment.metrics.metric import Metric, Value
    from certkit.assessment.result import Assessment, BundleResult
    from certkit.assessment.statistics.estimators import Interval
    from certkit.evidence.bundle.manifest import Protocol
    from certkit.evidence.summary.summary import Summary

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
    integrity: st.Commitments | None


def derive(assessment: Assessment, summary: Summary) -> Derived:
    """Return the derived parts of the claim that an assessment of `summary` makes."""
    manifest = assessment.facts.manifest
    protocol = manifest.protocol
    agent, evidence = declared.agent(assessment.facts), _evidence(assessment)
    judgement, table = _judgement(assessment), _table(summary, protocol)
    criteria = tuple(_criterion(rows) for rows in _by_criterion(assessment))
    challenges = tuple(
        fill(
            st.Challenge,
            challenge,
            severity=challenge.severity.value,
            state=challenge.state.value,
            answered_by=challenge.answered_by or None,
        )
        for challenge in assessment.challenges
    )
    return Derived(
        claim=implied.sentence(judgement.tier, judgement.profile.id, protocol.origin, challenges),
        origin=protocol.origin,
        agent=agent,
        evidence=evidence,
        protocol=declared.protocol(manifest),
        assessment=judgement,
        criteria=criteria,
        profile_of_reliability=table,
        scope=_scope(assessment, summary, implied.exclusions(evidence, criteria)),
        limitations=implied.limitations(agent, evidence, judgement.profile, criteria),
        known_failure_modes=implied.failure_modes(table.cells),
        challenges=challenges,
        integrity=None if assessment.integrity is None else _commitments(assessment.integrity),
    )


def _commitments(scored: IntegrityDocument) -> st.Commitments:
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for cell in scored.by_cell:
        told = {name: getattr(cell, name) for name in ("tasks", "successes", "probes", "matched")}
        counts[cell.family.value, cell.variant.value].update(told)
    return st.Commitments(
        digest=canonical.digest(canonical.canonical(scored.to_dict())),
        seed=scored.origin.seed,
        cells=tuple(
            st.CommitmentCell(family=family, variant=variant, **told)
            for (family, variant), told in sorted(counts.items())
        ),
        core=decimal(scored.core.value),
    )


def _evidence(assessment: Assessment) -> st.Evidence:
    return fill(
        st.Evidence,
        assessment.counts,
        digest=assessment.facts.digest,
        bundles=tuple(_bundle(part) for part in assessment.bundles) or None,
    )


def _bundle(bundle: BundleResult) -> st.BundleClaim:
    return fill(
        st.BundleClaim,
        bundle,
        dates=fill(st.Dates, bundle),
        by_domain={name: fill(st.Successes, row) for name, row in bundle.by_domain.items()},
        table=fill(st.Attained, bundle.table),
        bounded=fill(st.Attained, bundle.bounded),
    )


def _judgement(assessment: Assessment) -> st.Judgement:
    verdict, profile = assessment.verdict, assessment.profile
    return st.Judgement(
        digest=canonical.digest(canonical.canonical(assessment.to_dict())),
        required_tier=verdict.required_tier,
        profile=fill(st.Profile, profile, stopping="anytime" if profile.stopping == "anytime" else None),
        tool=st.Tool(name="certkit", version=__version__),
        tier=verdict.tier,
        status=_TIER[verdict.status],
        table=fill(st.Attained, verdict.table),
        bounded=fill(st.Attained, verdict.bounded),
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
        reason=metric.reason or metric.blocked or _unjudged(rows),
        provisional=first.criterion.provisional,
        drift_margin=decimal(first.criterion.margin),
        tiers={str(row.tier): _at_tier(row) for row in rows if row.status is not Status.NOT_APPLICABLE},
    )


def _unjudged(rows: list[Row]) -> str | None:
    """Return why a row could not be judged although its metric was measured, None where all were."""
    return next((row.reason for row in rows if row.status is Status.INSUFFICIENT), None)


def _value(value: Value | None, metric: Metric) -> str | bool | None:
    if value is None or metric.state is State.UNMEASURED:
        return None
    return bool(value) if metric.unit.value == "boolean" else decimal(value)


def _interval(interval: Interval | None) -> st.Interval | None:
    if interval is None:
        return None
    low, high, level = map(decimal, (interval.low, interval.high, interval.level))
    return st.Interval(low=low, high=high, level=level, method=interval.method)


def _at_tier(row: Row) -> st.RowAtTier:
    assert row.operator is not None  # noqa: S101 - the tier specifies the row
    assert row.bounded is not None  # noqa: S101 - every row is judged by both readings
    threshold = row.threshold or Fraction(0)
    return st.RowAtTier(
        operator=row.operator,
        threshold=True if row.operator == "is" else decimal(threshold),
        table=_JUDGED[row.status],
        bounded=_bound(row.bounded, row.metric),
        value=decimal(row.metric.by_tier.get(row.tier)) if row.metric.by_tier is not None else None,
        margin=decimal(row.margin),
    )


def _bound(bounded: Bounded, metric: Metric) -> st.Bound:
    return st.Bound(
        status=_JUDGED[bounded.status],
        bound=_value(bounded.bound, metric),
        confidence=decimal(bounded.confidence),
        k=bounded.k,
        rests_on=bounded.rests_on,
        reason=bounded.reason,
    )


def _table(summary: Summary, protocol: Protocol) -> st.TaskTable:
    tasks = task_table(summary, salt=protocol.salt, memory_observable=protocol.memory_observable is True)
    return msgspec.convert(tasks, st.TaskTable, from_attributes=True)


def _scope(assessment: Assessment, summary: Summary, exclusions: tuple[str, ...]) -> st.Scope:
    mix: dict[str, int] = {}
    for cell in summary.select():
        mix[cell.condition] = mix.get(cell.condition, 0) + cell.tally.runs
    times, period = summary.times, declared.period(assessment.facts.manifest)
    return st.Scope(
        domains=assessment.counts.domains,
        fault_mix=dict(sorted(mix.items())),
        dates=structs.replace(period, first_run=moment(times.first), last_run=moment(times.last)),
        exclusions=exclusions,
    )
