"""The document that ``certkit compare --json`` prints, ``urn:certkit:comparison:v1``, and its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from certkit.assessment.compare.matched import Matched
from certkit.assessment.compare.paper import PaperTests
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.metrics.metric import State
from certkit.assessment.result import AgentPart, MetricId, Origin, ToolPart
from certkit.assessment.statistics.resampling import Bootstrap
from certkit.document import Count, Digest, Document, Part, Positive, Share

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


class MetricPart(Part, frozen=True, kw_only=True):
    """One metric of both sides."""

    unit: Unit
    a: Side
    b: Side
    better: Better | None
    p_holm: Share | None
    matched: Matched | None
    notes: tuple[str, ...]
    reason: str | None


class Domain(Part, frozen=True, kw_only=True):
    """The main metric in one domain; `p_holm` is adjusted for the number of domains tested."""

    domain: str
    a: Side
    b: Side
    matched: Matched | None = None
    p_holm: Share | None = None
    better: Better | None = None
    reason: str | None = None


class SharePart(Part, frozen=True, kw_only=True):
    """Successes of so many runs."""

    successes: Count
    n: Count
    value: Share | None


class MannerPart(Part, frozen=True, kw_only=True):
    """Held-out faults met by one agent: intentional responses against trial and error."""

    intentional: SharePart
    trial_and_error: SharePart
    unknown: Count
    difference: float | None


class Manners(Part, frozen=True, kw_only=True):
    """The manners of either side."""

    a: MannerPart
    b: MannerPart


class Unlike(Part, frozen=True, kw_only=True):
    """A part of the protocol that the bundles do not share; None: not stated."""

    item: str
    a: str | None
    b: str | None


class ComparisonDocument(Document, frozen=True, kw_only=True, tag="urn:certkit:comparison:v1"):
    """Two agents compared on their evidence; every difference is A less B."""

    tool: ToolPart = ToolPart()
    split: str
    a: BundlePart
    b: BundlePart
    alpha: Share
    seed: Count
    draws: Positive
    answer: Answer
    metrics: Annotated[
        Mapping[str, MetricPart], Meta(extra_json_schema={"propertyNames": {"enum": list(CATALOGUE)}})
    ]
    domains: tuple[Domain, ...]
    rates: Mapping[str, Bootstrap]
    manners: Manners | None
    paper_tests: PaperTests | UnsetType = UNSET
    not_alike: tuple[Unlike, ...]
    caveats: tuple[str, ...]
    exit_code: Count
