"""The document that ``certkit plan --json`` prints, ``urn:certkit:plan:v1``, and its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Final

from msgspec import Meta

from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.profile import Operator, Reading
from certkit.assessment.result import MetricId
from certkit.document import Count, Digest, Document, Part, Positive, Share, Text
from certkit.evidence.records.record import Condition

POINTS: Final = 12
"""Points of the curve, a sixth of the plan apart."""

_FAULTS: Final = [condition.value for condition in Condition if condition is not Condition.NOMINAL]


class ProfilePart(Part, frozen=True, kw_only=True):
    """The profile that is planned for."""

    id: Text
    digest: Digest


class DesignPart(Part, frozen=True, kw_only=True):
    """What the schedule is made for."""

    reading: Reading
    domains: Positive
    icc: Share
    power: Share
    joint: Annotated[bool, Meta(description="the power is wanted of all rows together")]
    attempt: Positive
    runs_per_task: Annotated[Positive, Meta(description="runs of a task under faults")]
    nominal_share: Share
    fault_mix: Annotated[Mapping[Text, Share], Meta(extra_json_schema={"propertyNames": {"enum": _FAULTS}})]
    draws: Positive
    seed: Count


class ExpectedPart(Part, frozen=True, kw_only=True):
    """The value that is expected of a metric, in its unit; `sd` that of a run, null where not stated."""

    value: Fraction
    sd: Fraction | None


class CriterionPart(Part, frozen=True, kw_only=True):
    """A row of the profile under the plan."""

    id: Text
    metric: MetricId
    tier: Positive
    operator: Operator
    threshold: float | bool
    confidence: Annotated[Share | None, Meta(description="null in the table reading")]
    expected: Fraction | None
    least_tasks: Annotated[Count | None, Meta(description="tasks at which flawless ones would just pass")]
    power: Share | None
    reason: Annotated[Text | None, Meta(description="why the row has no power")]


class SchedulePart(Part, frozen=True, kw_only=True):
    """How many tasks and runs there are, in a domain and in all."""

    domains: Positive
    tasks_per_domain: Positive
    tasks: Positive
    per_domain: Annotated[
        Mapping[Text, Count],
        Meta(
            description="runs of each condition in a domain",
            extra_json_schema={"propertyNames": {"enum": list(Condition)}},
        ),
    ]
    runs_per_domain: Positive
    runs: Positive


class PointPart(Part, frozen=True, kw_only=True):
    """A point of the curve: the power of the row that asks for most, and of all rows together."""

    tasks: Positive
    runs: Positive
    power: Share
    power_of_all: Share


class PlanDocument(Document, frozen=True, kw_only=True, tag="urn:certkit:plan:v1"):
    """How many tasks and runs a tier takes at what is expected of an agent."""

    profile: ProfilePart
    tier: Positive
    design: DesignPart
    expect: Annotated[
        Mapping[Text, ExpectedPart], Meta(extra_json_schema={"propertyNames": {"enum": list(CATALOGUE)}})
    ]
    criteria: Sequence[CriterionPart]
    schedule: SchedulePart
    driver: Annotated[Text, Meta(description="the row that asks for most")]
    runner_up: Text | None
    power_of_all: Annotated[Share, Meta(description="all rows with an expectation together")]
    curve: Annotated[Sequence[PointPart], Meta(min_length=1, max_length=POINTS)]
