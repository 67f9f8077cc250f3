"""The document that ``certkit recheck --json`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from fractions import Fraction
from typing import Annotated

from msgspec import Meta

from certkit.document import Count, Document, Part, Text


class State(StrEnum):
    """What the arithmetic says of a claim, worst first."""

    IMPOSSIBLE = "impossible"
    INCONSISTENT = "inconsistent"
    UNDECIDABLE = "undecidable"
    CONSISTENT = "consistent"


class Computed(Part, frozen=True, kw_only=True):
    """The bounds of what the inputs give."""

    low: Fraction
    high: Fraction


class Result(Part, frozen=True, kw_only=True):
    """One checked claim: `arithmetic` is one line; `missing` names what an undecidable claim lacks."""

    id: Text
    kind: Text
    where: Text
    printed: Text
    state: State
    arithmetic: Text
    computed: Annotated[Computed | None, Meta(description="null where nothing is computed")] = None
    missing: tuple[Text, ...] = ()


class RecheckDocument(Document, frozen=True, kw_only=True, tag="urn:certkit:recheck:v1"):
    """What arithmetic says of published claims; the worst first."""

    id: Text
    title: Text | None
    sources: tuple[Text, ...]
    counts: Annotated[
        Mapping[State, Count],
        Meta(extra_json_schema={"propertyNames": {"enum": list(State)}, "required": list(State)}),
    ]
    exit_code: Count
    claims: tuple[Result, ...]
