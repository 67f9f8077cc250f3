"""The plan, which is the document of ``certkit plan --json``, and its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Final

from msgspec import Meta

from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.plan.design import Design
from certkit.assessment.profile import Operator
from certkit.assessment.result import MetricId
from certkit.ground.document import Count, Digest, Document, Part, Positive, Share, Text
from certkit.record.record import Condition

POINTS: Final = 12
"""Points of the curve, a sixth of the plan apart."""


class ProfilePart(Part, frozen=True, kw_only=True):
    """The profile that is planned for."""

    id: Text
    digest: Digest


class Planned(Part, frozen=True, kw_only=True):
    """A row: the tasks it takes whatever is expected, and its probability under the plan.

    In a domain's row the tasks are those of every domain.
    """

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


class Schedule(Part, frozen=True, kw_only=True):
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


class Point(Part, frozen=True, kw_only=True):
    """A point of the curve: the power of the row that is met least often, and of all rows together."""

    tasks: Positive
    runs: Positive
    power: Share
    power_of_all: Share


class Plan(Document, frozen=True, kw_only=True, tag="urn:certkit:plan:v1"):
    """How many tasks and runs a tier takes at what is expected of an agent."""

    profile: ProfilePart
    tier: Positive
    design: Design
    expect: Annotated[
        Mapping[Text, Fraction], Meta(extra_json_schema={"propertyNames": {"enum": list(CATALOGUE)}})
    ]
    criteria: Sequence[Planned]
    schedule: Schedule
    driver: Annotated[Text, Meta(description="the row that asks for most")]
    power_of_all: Annotated[Share, Meta(description="all rows with an expectation together")]
    curve: Annotated[Sequence[Point], Meta(min_length=1, max_length=POINTS)]
