"""The document that ``certkit assess --json`` prints, ``urn:certkit:assessment:v1``, as a struct.

Each part is filled from the value that it shows (`certkit.assessment.result`); parts that are shown as they
are, such as findings, the judge's report and the fragility, are those values themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from certkit._version import __version__
from certkit.assessment.bounded.fragility import Fragility
from certkit.assessment.criteria import Status, TierStatus
from certkit.assessment.findings.findings import Code, Finding, Severity
from certkit.assessment.findings.findings import State as Answered
from certkit.assessment.integrity.document import IntegrityDocument
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.metrics.metric import State
from certkit.assessment.profile import Operator, Reading
from certkit.assessment.rater_error import JudgeReport
from certkit.assessment.statistics.estimators import Interval
from certkit.assessment.statistics.variation import Variation
from certkit.document import BESIDE, Count, Digest, Document, Part, Positive, Share, TierKey, Time
from certkit.evidence.records.record import Split

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
        "else": {"properties": {"value": {"type": ["number", "boolean"]}}},
    }
)
"""A metric has no value, and a reason, exactly where it was not measured."""


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


class BoundedPart(Part, frozen=True, kw_only=True):
    """The bounded reading of a row."""

    status: Status
    bound: Number
    confidence: Annotated[float, Meta(description="the tier's, raised for a later attempt")]
    k: Annotated[Count | None, Meta(description="tasks, or families of tasks, that carry the row")]
    rests_on: str | None
    reason: str | None


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
    bounded: BoundedPart | None


class TierPart(Part, frozen=True, kw_only=True):
    """A tier: its own rows by status, the status of the tier below, and the two together."""

    name: str
    status: TierStatus
    lower: Annotated[TierStatus | None, Meta(description="the status of the tier below")]
    met: tuple[str, ...]
    not_met: tuple[str, ...]
    insufficient: tuple[str, ...]
    not_tested: tuple[str, ...]
    guidance: Mapping[str, str] | None


class Attained(Part, frozen=True, kw_only=True):
    """The tier that a reading attains, 0 for none."""

    tier: Count


class Readings(Part, frozen=True, kw_only=True):
    """The tier by each reading, 0 for none."""

    table: Count
    bounded: Count


class ChallengePart(Part, frozen=True, kw_only=True):
    """What all findings of one code ask; `answered_by` names the authors of the answers that count."""

    code: Code
    severity: Severity
    state: Answered
    answered_by: tuple[str, ...]


class VerdictPart(Part, frozen=True, kw_only=True):
    """The tier whose criteria are met by the deciding reading, the status of the tier asked for, and why."""

    tier: Count
    required_tier: Positive
    status: TierStatus
    readings: Readings
    decides: Reading
    challenges: Annotated[
        tuple[ChallengePart, ...],
        Meta(description="the serious ones contest the verdict while they are open"),
    ]
    table: Attained
    bounded: Attained
    binding: Annotated[
        tuple[str, ...], Meta(description="rows of the next tier that are neither met nor not applicable")
    ]


class Successes(Part, frozen=True, kw_only=True):
    """Successes and runs under faults."""

    successes: Count
    n: Count


class PooledPart(Part, frozen=True, kw_only=True):
    """One of several bundles that were pooled, alone."""

    digest: Digest
    declared_from: str | None
    declared_to: str | None
    first_run: Time | None
    last_run: Time | None
    records: Count
    nominal_runs: Count
    fault_runs: Count
    successes: Count
    by_domain: Mapping[str, Successes]
    table: Attained
    bounded: Attained


Pooled = Annotated[
    tuple[PooledPart, ...],
    Meta(min_length=2, description="each of several bundles that were pooled, in the order of time"),
]


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
    tiers: Mapping[TierKey, TierPart]
    verdict: VerdictPart
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
