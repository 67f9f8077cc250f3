"""The comparison of two agents, which is the document of ``certkit compare --json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from certkit.assessment.compare.paper import PaperTests
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.metrics.metric import State
from certkit.assessment.result import AgentPart, MetricId, Origin, ToolPart
from certkit.assessment.statistics.estimators import Interval
from certkit.ground.document import Count, Digest, Document, Part, Share

Better = Literal["a", "b"]


class BundlePart(Part, frozen=True, kw_only=True):
    """One side: a bundle and the agent that it is evidence of."""

    bundle: Digest
    sealed: bool
    origin: Origin
    records: Count
    agent: AgentPart


class Answer(Part, frozen=True, kw_only=True):
    """The result: of which metric it speaks, which side is better (null: none is shown to be), in words."""

    metric: MetricId
    better: Better | None
    words: str


class Side(Part, frozen=True, kw_only=True):
    """One metric of one bundle: all its runs, whatever the other bundle has."""

    state: State
    value: float | None
    n: Count
    successes: Count | None = None
    reason: str | None = None


class Difference(Part, frozen=True, kw_only=True):
    """The difference A - B over what both bundles cover, in the metric's unit, and what it rests on.

    `a` and `b` are the means that it is taken of; `tasks` are those of A and B, `shared` those of both. `p`
    is two-sided. `interval` is null where all tasks differ alike.
    """

    a: float
    b: float
    difference: float
    interval: Interval | None
    standard_error: float
    degrees_of_freedom: Count
    p: Share
    runs: tuple[Count, Count]
    tasks: tuple[Count, Count]
    shared: Count


class Compared(Part, frozen=True, kw_only=True):
    """One metric of both sides; `matched` is null where it cannot be compared, for the `reason`.

    `p_adjusted` takes account of the number of domains, or of metrics beside the main one; `better` is null
    unless a difference is shown.
    """

    unit: Unit
    a: Side
    b: Side
    matched: Difference | None = None
    p_adjusted: Share | None = None
    better: Better | None = None
    notes: tuple[str, ...] = ()
    reason: str | None = None


class Unlike(Part, frozen=True, kw_only=True):
    """A part of the protocol that the bundles do not share; null: not stated."""

    item: str
    a: str | None
    b: str | None


class Comparison(Document, frozen=True, kw_only=True, tag="urn:certkit:comparison:v1"):
    """Two agents compared on their evidence; every difference is A less B.

    `metrics` has the main metric first, whose domains are in `domains`.
    """

    tool: ToolPart = ToolPart()
    split: str
    a: BundlePart
    b: BundlePart
    alpha: Share
    answer: Answer
    metrics: Annotated[
        Mapping[str, Compared], Meta(extra_json_schema={"propertyNames": {"enum": list(CATALOGUE)}})
    ]
    domains: Mapping[str, Compared]
    paper_tests: PaperTests | UnsetType = UNSET
    not_alike: tuple[Unlike, ...]
    caveats: tuple[str, ...]
    exit_code: Count

    @property
    def main(self) -> Compared:
        """The metric that the answer speaks of."""
        return self.metrics[self.answer.metric]
