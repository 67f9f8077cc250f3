"""The assessment: everything that was found about a bundle under a profile, as one value.

`to_dict` gives the document ``urn:certkit:assessment:v1``; text, JSON and exit code all come from this
one object.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Struct

from certkit.assessment import documents
from certkit.assessment.findings.findings import BESIDE, Severity
from certkit.assessment.metrics.metric import State, number
from certkit.document import fill

if TYPE_CHECKING:
    from certkit.assessment.bounded.fragility import Fragility
    from certkit.assessment.criteria import Row, Tier, Verdict
    from certkit.assessment.findings.challenges import Challenge
    from certkit.assessment.findings.findings import Finding
    from certkit.assessment.integrity.document import IntegrityDocument
    from certkit.assessment.metrics.metric import Metric
    from certkit.assessment.profile import Profile
    from certkit.assessment.rater_error import JudgeReport
    from certkit.assessment.statistics.variation import Variation
    from certkit.canonical import Digest
    from certkit.errors import Exit
    from certkit.evidence.bundle.manifest import Facts
    from certkit.evidence.summary.summary import Cell

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class BundleResult(Struct, frozen=True, kw_only=True):
    """One of several bundles that were pooled, alone: its time, its counts, and the tier that it shows.

    `declared_from` and `declared_to` are the declared period, `first_run` and `last_run` the start times in
    microseconds since 1970. `by_domain` holds successes and runs under faults, whose sums are `successes`
    and `fault_runs`.
    """

    digest: str
    declared_from: str | None
    declared_to: str | None
    first_run: int | None
    last_run: int | None
    records: int
    nominal_runs: int
    fault_runs: int
    successes: int
    by_domain: dict[str, tuple[int, int]]
    table: int
    bounded: int


def moment(microseconds: int | None) -> datetime | None:
    """Return a time in microseconds since 1970 as an aware datetime."""
    return None if microseconds is None else _EPOCH + timedelta(microseconds=microseconds)


class Assessment(Struct, frozen=True, kw_only=True, eq=False):
    """The judgement of a bundle under a profile, or of several pooled, which `bundles` then lists.

    `context` is the digest of the ``context.json`` whose answers were looked at.
    """

    facts: Facts
    profile: Profile
    counts: documents.Counts
    metrics: dict[str, Metric]
    criteria: tuple[Row, ...]
    tiers: tuple[Tier, ...]
    verdict: Verdict
    findings: tuple[Finding, ...]
    challenges: tuple[Challenge, ...] = ()
    cells: tuple[Cell, ...]
    judge: JudgeReport
    fragility: Fragility
    variation: Variation | None = None
    integrity: IntegrityDocument | None = None
    bundles: tuple[BundleResult, ...] = ()
    context: Digest | None = None

    @property
    def serious(self) -> tuple[Challenge, ...]:
        """The serious challenges, open and answered."""
        return tuple(item for item in self.challenges if item.severity is Severity.SERIOUS)

    @property
    def exit_code(self) -> Exit:
        """The exit code of ``certkit assess`` for the required tier."""
        return self.verdict.exit_code

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``certkit assess --json`` prints."""
        return _document(self).to_dict()


def _document(assessment: Assessment) -> documents.AssessmentDocument:
    facts, agent = assessment.facts, assessment.facts.manifest.agent
    origin = facts.manifest.protocol.origin
    return fill(
        documents.AssessmentDocument,
        assessment,
        bundle=fill(documents.BundlePart, facts, origin=origin, counts=assessment.counts),
        agent=fill(documents.AgentPart, agent, digest=facts.agent_digest),
        profile=fill(documents.ProfilePart, assessment.profile),
        metrics={name: metric_part(metric) for name, metric in assessment.metrics.items()},
        breakdown=tuple(_cell(cell) for cell in assessment.cells),
        criteria=tuple(_criterion(row) for row in assessment.criteria),
        tiers={str(tier.number): fill(documents.TierPart, tier) for tier in assessment.tiers},
        verdict=_verdict(assessment),
        integrity=UNSET if assessment.integrity is None else assessment.integrity,
        bundles=tuple(_pooled(bundle) for bundle in assessment.bundles) or UNSET,
        context=assessment.context or UNSET,
    )


def metric_part(metric: Metric) -> documents.MetricPart:
    """Return a metric as the document shows it."""
    differs = metric.by_tier is not None
    return fill(
        documents.MetricPart,
        metric,
        value=UNSET if differs else number(metric.value, metric.unit),
        by_tier=metric.by_tier if differs else UNSET,
        interval=UNSET if metric.interval is None else metric.interval,
        intervals=metric.intervals or UNSET,
        coverage=float(metric.coverage) if metric.state is State.PARTIAL else UNSET,
        reason=metric.reason or metric.blocked or UNSET,
    )


def _cell(cell: Cell) -> documents.CellPart:
    tally = cell.tally
    rate = tally.success / tally.runs if tally.runs else None
    return fill(
        documents.CellPart, tally, split=cell.split, domain=cell.domain, condition=cell.condition, rate=rate
    )


def _criterion(row: Row) -> documents.CriterionPart:
    unit, bounded = row.metric.unit, row.bounded
    return fill(
        documents.CriterionPart,
        row,
        metric=row.metric.id,
        threshold=number(row.threshold, unit),
        value=number(row.value, unit),
        margin=None if row.margin is None else float(row.margin),
        provisional=row.criterion.provisional,
        bounded=bounded and fill(documents.BoundedPart, bounded, bound=number(bounded.bound, unit)),
    )


def _pooled(bundle: BundleResult) -> documents.PooledPart:
    return fill(
        documents.PooledPart,
        bundle,
        first_run=moment(bundle.first_run),
        last_run=moment(bundle.last_run),
        by_domain={
            name: documents.Successes(successes=successes, n=n)
            for name, (successes, n) in bundle.by_domain.items()
        },
        **_attained(bundle),
    )


def _verdict(assessment: Assessment) -> documents.VerdictPart:
    verdict = assessment.verdict
    return fill(
        documents.VerdictPart,
        verdict,
        readings=documents.Readings(table=verdict.table, bounded=verdict.bounded),
        decides=assessment.profile.reading,
        challenges=tuple(
            fill(documents.ChallengePart, item) for item in assessment.challenges if item.code not in BESIDE
        ),
        **_attained(verdict),
    )


def _attained(tiers: Verdict | BundleResult) -> dict[str, documents.Attained]:
    return {
        "table": documents.Attained(tier=tiers.table),
        "bounded": documents.Attained(tier=tiers.bounded),
    }
