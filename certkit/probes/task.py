"""A task: a scenario told in turns, a final question, and probes for the commitments behind its answer.

Twins are two tasks of one `cluster` that differ in nothing but their last turn: a neutral remark (clean), or
someone without authority who says otherwise (distractor). Facts are what the turns assert, by which a solver
can check every gold answer. One task is one line of ``tasks.jsonl``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from certkit.document import Count, Document, Part, Positive, Share

Text = Annotated[str, Meta(min_length=1, max_length=4_000)]
Term = Annotated[str, Meta(min_length=1, max_length=200)]
Id = Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Terms = Annotated[tuple[Term, ...], Meta(min_length=1, max_length=20)]


class Family(StrEnum):
    """The eight ways of losing a commitment ([NS] Table 1)."""

    CONSTRAINT = "constraint_persistence"
    BINDING = "entity_binding"
    CONFLICT = "conflict_resolution"
    DELAYED = "delayed_goal"
    TOOL = "tool_output"
    REPAIR = "contradiction_repair"
    PROVENANCE = "provenance_binding"
    STALE = "stale_overwrite"


LATEST: Final = frozenset({Family.TOOL, Family.REPAIR, Family.STALE})
"""Families in which the latest word of an authority is right: in a clean task the option mentioned last."""


class Variant(StrEnum):
    """Whether the last turn misleads."""

    CLEAN = "clean"
    DISTRACTOR = "distractor"


class Band(StrEnum):
    """How difficult the task was designed to be."""

    EASY = "easy"
    MEDIUM = "medium"
    HARD = "hard"


class Phase(StrEnum):
    """Which part of the task a probe is about."""

    INITIAL = "initial"
    MID = "mid"
    LATE = "late"


class Role(StrEnum):
    """What a probe asks for."""

    RULE = "rule"
    SOURCE = "source"
    STATE = "state"
    DECISION = "decision"


class Kind(StrEnum):
    """The form of an answer: a text, an integer, several texts, or a value with its source."""

    LABEL = "label"
    NUMBER = "number"
    SET = "set"
    PAIR = "pair"


class Pair(Part, frozen=True, kw_only=True):
    """A value with the source that stands behind it."""

    source: Term
    value: Term


Value = Term | Annotated[int, Meta(ge=-(2**53) + 1, le=2**53 - 1)] | Terms | Pair


class Aim(StrEnum):
    """What a solver has to look up; see `certkit.probes.lint.solve`."""

    VALUE = "value"
    HOLDER = "holder"
    SOURCE = "source"
    ELIGIBLE = "eligible"
    AUTHORITY = "authority"


class Ask(Part, frozen=True, kw_only=True):
    """A question to the facts; what an aim does not need is empty."""

    aim: Aim
    subject: Annotated[str, Meta(max_length=200)] = ""
    attribute: Annotated[str, Meta(max_length=200)] = ""
    value: Annotated[str, Meta(max_length=200)] = ""


class Question(Part, frozen=True, kw_only=True):
    """A question with its right answer; `lure` is what someone misled says.

    `state_version` is the turn that settled the answer, 0 for the instruction.
    """

    prompt: Text
    kind: Kind
    gold: Value
    lure: Value
    options: Annotated[tuple[Value, ...], Meta(min_length=2, max_length=20)]
    ask: Ask
    state_version: Count


class Probe(Question, frozen=True, kw_only=True):
    """A side question about one commitment, never part of the attempt at the task."""

    id: Id
    position: Positive
    phase: Phase
    role: Role
    weight: Annotated[float, Meta(ge=0.1, le=3)]


class Priors(Part, frozen=True, kw_only=True):
    """What the design says of the task before anyone rated it.

    `difficulty` is h and `weight` ω_design of [NS] eq. 5; `delay` counts turns from the one that settled the
    answer to the question.
    """

    turns: Positive
    options: Positive
    difficulty: Share
    weight: Annotated[float, Meta(ge=0.1, le=3)]
    near_misses: Count
    contradictions: Count
    conflicts: Count
    tool_noise: Count
    delay: Count


class Fact(Part, frozen=True, kw_only=True):
    """What a source asserts in a turn; turn 0 is the instruction."""

    turn: Count
    source: Term
    subject: Term
    attribute: Term
    value: Term | Terms


class Task(Document, frozen=True, kw_only=True, tag="urn:certkit:integrity-task:v1"):
    """One line of integrity/tasks.jsonl: a task with its probes."""

    id: Id
    cluster: Id
    family: Family
    construct: Term
    variant: Variant
    band: Band
    instance: Positive
    scenario: Text
    instruction: Text
    turns: Annotated[tuple[Text, ...], Meta(min_length=1, max_length=64)]
    final: Question
    probes: Annotated[tuple[Probe, ...], Meta(min_length=1, max_length=8)]
    priors: Priors
    authorities: Terms
    facts: Annotated[tuple[Fact, ...], Meta(max_length=256)]

    def questions(self) -> tuple[tuple[str | None, Question], ...]:
        """Return the final question, named None, and every probe by its id."""
        return ((None, self.final), *((probe.id, probe) for probe in self.probes))


def surface(value: Value | tuple[str, ...]) -> str:
    """Return how an answer is written in prose."""
    if isinstance(value, Pair):
        return f"{value.value} from {value.source}"
    return " and ".join(sorted(value)) if isinstance(value, tuple) else str(value)


def parts(value: Value) -> tuple[str, ...]:
    """Return the texts that a reply must hold to name an answer."""
    if isinstance(value, Pair):
        return (value.value, value.source)
    return value if isinstance(value, tuple) else (str(value),)
