"""The assessment: everything that was found about a bundle under a profile, as one value.

`to_dict` gives the document ``urn:certkit:assessment:v1``; text, JSON and exit code all come from this one
object. Rows, tiers, verdict, findings, the judge's report and the fragility are shown as the values that they
are; metrics and cells are made into parts here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from certkit._version import __version__
from certkit.assessment.bounded.fragility import Fragility
from certkit.assessment.criteria import Attained, Bounded, Evidence, Status, Tier, Verdict
from certkit.assessment.findings.findings import Finding, Severity
from certkit.assessment.integrity.document import IntegrityDocument
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.metrics.metric import State, number
from certkit.assessment.profile import Operator, Reading
from certkit.assessment.rater_error import JudgeReport
from certkit.assessment.statistics.estimators import Interval, Variation
from certkit.ground.document import (
    BESIDE,
    Count,
    Digest,
    Document,
    Part,
    Positive,
    Share,
    Text,
    TierKey,
    Time,
    fill,
)
from certkit.record.record import Split

if TYPE_CHECKING:
    from certkit.assessment.criteria import Row
    from certkit.assessment.findings.findings import Challenge
    from certkit.assessment.metrics.metric import Metric
    from certkit.assessment.profile import Profile
    from certkit.bundle.manifest import Facts
    from certkit.ground.errors import Exit
    from certkit.summary.summary import Cell, Times

Number = float | bool | None
MetricId = Annotated[str, Meta(extra_json_schema={"enum": list(CATALOGUE)})]
Origin = Literal["measured", "simulated"]


class ToolPart(Part, frozen=True, kw_only=True):
    """The program that made the document."""

    name: Literal["certkit"] = "certkit"
    version: str = __version__


class AgentPart(Part, frozen=True, kw_only=True):
    """The agent that was evaluated, and the digest of its canonical description."""

    name: str
    version: str
    digest: Digest


class Counts(Part, frozen=True, kw_only=True):
    """What was assessed: all records, and of the standard split nominal and fault runs."""

    records: Count
    nominal_runs: Count
    fault_runs: Count
    harness_errors: Count
    novel_fault_runs: Count
    domains: tuple[str, ...]


class BundlePart(Part, frozen=True, kw_only=True):
    """The bundle that was assessed."""

    digest: Digest
    sealed: bool
    origin: Origin
    counts: Annotated[Counts, BESIDE]


class ProfilePart(Part, frozen=True, kw_only=True):
    """The profile that the bundle was judged under, and the reading that decides."""

    id: str
    digest: Digest
    reading: Reading


class MetricPart(Part, frozen=True, kw_only=True):
    """A metric: common keys are fixed, its own counts and details stand beside them."""

    state: State
    value: Number | UnsetType = UNSET
    unit: Unit
    n: Annotated[Count | None, Meta(description="the denominator")]
    counts: Annotated[Mapping[str, int], BESIDE]
    by_tier: Mapping[TierKey, float] | UnsetType = UNSET
    interval: Interval | UnsetType = UNSET
    intervals: tuple[Interval, ...] | UnsetType = UNSET
    coverage: Share | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    detail: Annotated[Mapping[str, Any], BESIDE]
    source: str


MEASURED: Final = Meta(
    extra_json_schema={
        "anyOf": [{"required": ["value"]}, {"required": ["by_tier"]}],
        "if": {"properties": {"state": {"const": "unmeasured"}}},
        "then": {"properties": {"value": {"type": "null"}}, "required": ["value", "reason"]},
        "else": {
            "if": {"properties": {"state": {"const": "measured"}}},
            "then": {"properties": {"value": {"type": ["number", "boolean"]}}},
            "else": {"properties": {"value": {"type": ["number", "null"]}}, "required": ["reason"]},
        },
    }
)
"""A metric that was measured has a value, one that was not has none; both others state a reason."""


class CellPart(Part, frozen=True, kw_only=True):
    """All runs of one split, domain and condition."""

    split: Split
    domain: str
    condition: str
    runs: Count
    success: Count
    failure: Count
    safe_halt: Count
    harness_error: Count
    rate: float | None


class CriterionPart(Part, frozen=True, kw_only=True):
    """A criterion at a tier; `status` is the table reading, `bounded` the other."""

    id: str
    metric: MetricId
    tier: Positive
    operator: Operator | None
    threshold: Number
    value: Number
    status: Status
    margin: Annotated[float | None, Meta(description="signed so that positive passes")]
    reason: str | None
    provisional: bool
    bounded: Bounded | None
    evidence: Evidence


class BundleResult(Part, frozen=True, kw_only=True):
    """One of several bundles that were pooled, alone: its period, its runs, and the tier that it shows."""

    digest: Digest
    declared_from: str | None
    declared_to: str | None
    first_run: Time | None
    last_run: Time | None
    records: Count
    fault_runs: Count
    successes: Annotated[Count, Meta(description="of the runs under faults")]
    table: Attained
    bounded: Attained


Pooled = Annotated[
    tuple[BundleResult, ...],
    Meta(min_length=2, description="each of several bundles that were pooled, in the order of time"),
]


class Baseline(Part, frozen=True, kw_only=True):
    """An earlier passport or bundle, what the comparison with it gave, and the rows that got worse."""

    passport: Text
    signature: Annotated[Text, Meta(description="not_checked, or none of a bundle")]
    result: Annotated[Text, Meta(description="as certkit drift says it")]
    worse: tuple[Text, ...]
    agents: Annotated[
        tuple[Text, ...], Meta(description="of the passport and of the bundle, where they are two")
    ] = ()
    not_comparable: Annotated[tuple[Text, ...], Meta(description="why the two cannot be compared")] = ()


class AssessmentDocument(Document, frozen=True, kw_only=True, tag="urn:certkit:assessment:v1"):
    """The judgement of an evidence bundle under a profile."""

    tool: ToolPart = ToolPart()
    bundle: BundlePart
    agent: AgentPart
    profile: ProfilePart
    metrics: Annotated[
        Mapping[str, Annotated[MetricPart, MEASURED]],
        Meta(extra_json_schema={"propertyNames": {"enum": list(CATALOGUE)}, "required": list(CATALOGUE)}),
    ]
    breakdown: tuple[CellPart, ...]
    criteria: tuple[CriterionPart, ...]
    tiers: Mapping[TierKey, Tier]
    verdict: Verdict
    findings: tuple[Finding, ...]
    judge: JudgeReport
    fragility: Fragility
    variation: Variation | None
    integrity: Annotated[
        IntegrityDocument | UnsetType, Meta(description="commitment integrity, which moves no tier")
    ] = UNSET
    bundles: Pooled | UnsetType = UNSET
    context: Annotated[
        Digest | UnsetType, Meta(description="the context.json whose answers were looked at")
    ] = UNSET
    baseline: Annotated[
        Baseline | UnsetType, Meta(description="of --baseline; its signature is not checked")
    ] = UNSET


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def moment(microseconds: int | None) -> datetime | None:
    """Return a time in microseconds since 1970 as an aware datetime."""
    return None if microseconds is None else _EPOCH + timedelta(microseconds=microseconds)


class Assessment(Struct, frozen=True, kw_only=True, eq=False):
    """The judgement of a bundle under a profile, or of several pooled, which `bundles` then lists.

    `context` is the digest of the ``context.json`` whose answers were looked at. No document has `times`.
    """

    facts: Facts
    times: Times
    profile: Profile
    counts: Counts
    metrics: dict[str, Metric]
    criteria: tuple[Row, ...]
    tiers: Mapping[TierKey, Tier]
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
    def about(self) -> dict[str, Any]:
        """What answers are bound to: bundles and profile by digest, and the tier that was asked for."""
        bundles = tuple(part.digest for part in self.bundles) or (self.facts.digest,)
        return {"bundles": bundles, "profile": self.profile.digest, "tier": self.verdict.required_tier}

    @property
    def exit_code(self) -> Exit:
        """The exit code of ``certkit assess`` for the required tier."""
        return self.verdict.exit_code

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``certkit assess --json`` prints."""
        return _document(self).to_dict()


def _document(assessment: Assessment) -> AssessmentDocument:
    facts, agent = assessment.facts, assessment.facts.manifest.agent
    origin = facts.manifest.protocol.origin
    return fill(
        AssessmentDocument,
        assessment,
        bundle=fill(BundlePart, facts, origin=origin, counts=assessment.counts),
        agent=fill(AgentPart, agent, digest=facts.agent_digest),
        profile=fill(ProfilePart, assessment.profile),
        metrics={name: metric_part(metric) for name, metric in assessment.metrics.items()},
        breakdown=tuple(_cell(cell) for cell in assessment.cells),
        criteria=tuple(_criterion(row) for row in assessment.criteria),
        integrity=UNSET if assessment.integrity is None else assessment.integrity,
        bundles=assessment.bundles or UNSET,
        context=assessment.context or UNSET,
    )


def metric_part(metric: Metric) -> MetricPart:
    """Return a metric as the document shows it."""
    differs = metric.by_tier is not None
    return fill(
        MetricPart,
        metric,
        value=UNSET if differs else number(metric.value, metric.unit),
        by_tier=metric.by_tier if differs else UNSET,
        interval=UNSET if metric.interval is None else metric.interval,
        intervals=metric.intervals or UNSET,
        coverage=float(metric.coverage) if metric.state is State.PARTIAL else UNSET,
        reason=metric.reason or metric.blocked or UNSET,
    )


def _cell(cell: Cell) -> CellPart:
    tally = cell.tally
    rate = tally.success / tally.runs if tally.runs else None
    return fill(CellPart, tally, split=cell.split, domain=cell.domain, condition=cell.condition, rate=rate)


def _criterion(row: Row) -> CriterionPart:
    unit = row.metric.unit
    return fill(
        CriterionPart,
        row,
        metric=row.metric.id,
        threshold=number(row.threshold, unit),
        value=number(row.value, unit),
        margin=None if row.margin is None else float(row.margin),
        provisional=row.criterion.provisional,
    )
