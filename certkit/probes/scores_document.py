"""The document ``urn:certkit:integrity:v1``: success and commitments side by side."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated

from msgspec import Meta

from certkit.ground.document import Count, Document, Part, State, Text
from certkit.probes.records import Band, Family, Origin, Variant

Maybe = Annotated[Fraction | None, Meta(description="null where a reply is missing")]
Ratio = Annotated[float | None, Meta(description="null where nothing was rated by two people")]


class Success(Part, frozen=True, kw_only=True):
    """Attempts that give the right final answer; `weighted` by ω."""

    successes: Count
    n: Count
    unanswered: Count
    weighted: Maybe


class Accuracy(Part, frozen=True, kw_only=True):
    """Probes whose commitment was held; accuracy and drift are complements."""

    matched: Count
    n: Count
    unanswered: Count
    unclear: Count


class ScoreCore(Part, frozen=True, kw_only=True):
    """HCCIS-CORE with its least and largest value, what any agent can reach, and a 95 % interval."""

    value: Maybe
    low: Fraction
    high: Fraction
    floor: Fraction
    ceiling: Fraction
    interval: tuple[float, float] | None


class Valued(Part, frozen=True, kw_only=True):
    """One number."""

    value: Annotated[Fraction | None, Meta(description="null: unmeasured")]


class Gap(Part, frozen=True, kw_only=True):
    """Core of clean tasks less that of distractor tasks."""

    value: Maybe
    by_family: Mapping[Family, Fraction | None]


class Hollow(Part, frozen=True, kw_only=True):
    """Successes with fewer than half of their probes held."""

    tasks: tuple[Text, ...]


class ScoreCell(Part, frozen=True, kw_only=True):
    """The tasks of one family, variant and band."""

    family: Family
    variant: Variant
    band: Band
    tasks: Count
    successes: Count
    probes: Count
    matched: Count
    core: Maybe


class RaterPair(Part, frozen=True, kw_only=True):
    """How far two people agree on what both rated."""

    a: Text
    b: Text
    n: Count
    kappa: Ratio
    linear: Ratio
    quadratic: Ratio


class Difficulty(Part, frozen=True, kw_only=True):
    """How difficult people found the tasks, from 0.2 to 1; by band null with fewer than five rated tasks."""

    tasks: Count
    ratings: Count
    pairs: tuple[RaterPair, ...]
    icc: Ratio
    bands: Mapping[Band, Fraction | None]
    rising: Annotated[
        bool | None, Meta(description="whether each band is more difficult than the one before")
    ]


class Assigner(Part, frozen=True, kw_only=True):
    """How many probes one person assigned to the right family; `macro` is the mean over families."""

    rater: Text
    n: Count
    accuracy: Fraction
    macro: Fraction


class Construct(Part, frozen=True, kw_only=True):
    """Whether people recognise the families without being told."""

    raters: tuple[Assigner, ...]
    pairs: tuple[RaterPair, ...]
    confusions: Annotated[
        tuple[tuple[Family, Family, Count], ...],
        Meta(description="families, what they were taken for, and how often"),
    ]


class Raters(Part, frozen=True, kw_only=True):
    """What people said of the tasks, on which the scores rest; `people` counts who said anything."""

    people: Count
    difficulty: Difficulty
    construct: Construct


class Audit(Part, frozen=True, kw_only=True):
    """How people judge the matcher's verdicts on replies that were drawn from all.

    `false_negative` is the share of replies read as no or unclear that are right, `false_positive` that of
    matches that are wrong; `core` is the value with these errors mended.
    """

    replies: Count
    pairs: tuple[RaterPair, ...]
    confirmed: Count
    overturned: Count
    unclear: Count
    false_negative: Annotated[Fraction | None, Meta(description="null: none was audited")]
    false_positive: Annotated[Fraction | None, Meta(description="null: none was audited")]
    core: Maybe


class IntegrityDocument(Document, frozen=True, kw_only=True, tag="urn:certkit:integrity:v1"):
    """Success and commitment integrity of one agent; it moves no tier and is no gate."""

    state: State
    seed: Annotated[Origin, Meta(description="of the tasks; own: no seed gave them")]
    success: Success
    accuracy: Accuracy
    core: ScoreCore
    full: Valued
    neural: Valued
    distractor_gap: Gap
    repair_precision: Valued
    hollow: Hollow
    by_cell: tuple[ScoreCell, ...]
    raters: Raters
    audit: Audit | None
