"""The records of commitment integrity: tasks and their questions, replies, and what people say of both.

A task is a scenario told in turns, a final question, and probes for the commitments behind its answer.
Twins are two tasks of one `cluster` that differ in their last turn alone: a neutral remark (clean), or
someone without authority who says otherwise (distractor). Facts are what the turns assert, by which a solver
can check every gold answer. Each document here is one file of ``integrity/``, or one line of it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from certkit.ground import canonical
from certkit.ground.document import Count, Digest, Document, Part, Positive, Share

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

GENERATOR: Final = "certkit-probes/1"
PUBLIC: Final = "public-1"
"""The seed that everybody knows."""
MAX_SEED: Final = 200
MAX_INSTANCES: Final = 2_000
MAX_REPLY: Final = 20_000
"""Characters of a reply that are kept."""
FOLDER: Final = "integrity"
INVENTORY: Final = "inventory.json"
TASKS: Final = "tasks.jsonl"
RUN: Final = "run.json"
ANSWERS: Final = "answers.jsonl"
ANNOTATIONS: Final = "annotations.jsonl"
Given = Annotated[str, Meta(max_length=2_000)]
Rater = Annotated[str, Meta(min_length=1, max_length=200)]
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


Phase = Literal["initial", "mid", "late"]
"""Which part of the task a probe is about."""
Role = Literal["rule", "source", "state", "decision"]
"""What a probe asks for."""
Kind = Literal["label", "number", "set", "pair"]
"""The form of an answer: a text, an integer, several texts, or a value with its source."""
Aim = Literal["value", "holder", "source", "eligible", "authority"]
"""What a solver has to look up; see `certkit.probes.lint.solve`."""


class SourcedValue(Part, frozen=True, kw_only=True):
    """A value with the source that stands behind it."""

    source: Term
    value: Term


Value = Term | Annotated[int, Meta(ge=-(2**53) + 1, le=2**53 - 1)] | Terms | SourcedValue


class Ask(Part, frozen=True, kw_only=True):
    """A question to the facts; what an aim does not need is empty."""

    aim: Aim
    subject: Annotated[str, Meta(max_length=200)] = ""
    attribute: Annotated[str, Meta(max_length=200)] = ""
    value: Annotated[str, Meta(max_length=200)] = ""


class ProbeQuestion(Part, frozen=True, kw_only=True):
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


class Probe(ProbeQuestion, frozen=True, kw_only=True):
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


class ProbeTask(Document, frozen=True, kw_only=True, tag="urn:certkit:integrity-task:v1"):
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
    final: ProbeQuestion
    probes: Annotated[tuple[Probe, ...], Meta(min_length=1, max_length=8)]
    priors: Priors
    authorities: Terms
    facts: Annotated[tuple[Fact, ...], Meta(max_length=256)]


def surface(value: Value | tuple[str, ...]) -> str:
    """Return how an answer is written in prose."""
    return (
        " from ".join(parts(value)) if isinstance(value, SourcedValue) else " and ".join(sorted(parts(value)))
    )


def parts(value: Value) -> tuple[str, ...]:
    """Return the texts that a reply must hold to name an answer."""
    if isinstance(value, SourcedValue):
        return (value.value, value.source)
    return value if isinstance(value, tuple) else (str(value),)


class Mode(StrEnum):
    """The form that the contract asks a reply to have."""

    JSON = "json"
    TEXT = "text"


class QuestionKey(NamedTuple):
    """A question: its task, and its probe or None for the attempt."""

    task: str
    probe: str | None


def commitment(seed: str) -> str:
    """Return the digest that commits to a seed without telling it."""
    return canonical.digest(GENERATOR.encode() + b"\0" + seed.encode())


Origin = Literal["public", "stated", "withheld", "own"]
"""What is known of the seed that tasks are from; own: no seed gives them."""


class Inventory(Document, frozen=True, kw_only=True, tag="urn:certkit:integrity-inventory:v1"):
    """Where tasks come from: the generator and its seed, or null for tasks of one's own."""

    generator: Literal["certkit-probes/1"] | None
    seed: Annotated[str, Meta(min_length=1, max_length=MAX_SEED, description="null: withheld")] | None
    seed_commitment: Digest | None
    instances: Annotated[int, Meta(ge=1, le=MAX_INSTANCES)] | None
    tasks_digest: Digest

    def __post_init__(self) -> None:
        stated = self.generator, self.seed_commitment, self.instances
        if len({item is None for item in stated}) > 1:
            raise ValueError("seed, commitment and instances with a generator, and no other")
        if self.seed is not None and self.seed_commitment != commitment(self.seed):
            raise ValueError("the commitment of the seed")

    @property
    def origin(self) -> Origin:
        """Where the tasks are from."""
        if self.generator is None:
            return "own"
        if self.seed_commitment == commitment(PUBLIC) or (self.seed or "").startswith("public-"):
            return "public"
        return "withheld" if self.seed is None else "stated"


class ProbeRun(Document, frozen=True, kw_only=True, tag="urn:certkit:integrity-run:v1"):
    """How an agent was asked; `inventory` is the digest of inventory.json."""

    inventory: Digest
    agent: Given
    model: Annotated[Given | None, Meta(description="that an HTTP endpoint was asked for")]
    name: Given
    agent_version: Given
    mode: Mode
    isolation: Annotated[bool, Meta(description="true: a process of its own for every call")]
    temperature: Annotated[float | None, Meta(description="null: the agent's own")]
    version: Annotated[str, Meta(description="of certkit")]


class QuestionLine(Part, frozen=True, kw_only=True):
    """A line about one question: a probe, or without a `probe_id` the attempt or the whole task."""

    task_id: Id
    probe_id: Id | UnsetType = UNSET

    @property
    def key(self) -> QuestionKey:
        """Return the question."""
        return QuestionKey(self.task_id, None if self.probe_id is UNSET else self.probe_id)


class ProbeAnswer(QuestionLine, Document, frozen=True, kw_only=True, tag="urn:certkit:integrity-answer:v1"):
    """One line of integrity/answers.jsonl: the reply to one question, or why there is none."""

    status: Literal["answered", "error"]
    calls: Positive
    text: Annotated[str, Meta(max_length=MAX_REPLY)] | UnsetType = UNSET
    cut: Annotated[bool, Meta(description="true: the reply was longer")] | UnsetType = UNSET
    error: Given | UnsetType = UNSET
    confidence: Annotated[Share, Meta(description="else that of the reply")] | UnsetType = UNSET
    success_probability: Share | UnsetType = UNSET
    retrieval_risk: Share | UnsetType = UNSET
    neural_conflict: Share | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.status == "answered") != (self.text is not UNSET):
            raise ValueError("text exactly where the status is answered")


SAYS: Final = {"difficulty": "rating", "construct": "family", "audit": "verdict"}
"""The field that a line of each kind is for."""


class Annotation(
    QuestionLine, Document, frozen=True, kw_only=True, tag="urn:certkit:integrity-annotation:v1"
):
    """One line of integrity/annotations.jsonl: what one person says of a task, a probe or a reply."""

    kind: Literal["difficulty", "construct", "audit"]
    rater: Rater
    rating: Annotated[int, Meta(ge=1, le=5)] | UnsetType = UNSET
    valid: bool | UnsetType = UNSET
    family: Family | UnsetType = UNSET
    verdict: Literal["match", "no", "unclear"] | UnsetType = UNSET
    adjudicated: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        need = SAYS[self.kind]
        if getattr(self, need) is UNSET and (need != "rating" or self.valid is UNSET):
            raise ValueError(f"Object missing required field `{need}`")  # as msgspec says it


def lines(items: Iterable[Document]) -> bytes:
    """Return documents as lines of JSON that do not repeat which schema they have."""
    made: list[dict[str, Any]] = [msgspec.to_builtins(item) for item in items]
    return b"".join(canonical.line({k: v for k, v in item.items() if k != "schema"}) for item in made)


Asked = tuple[QuestionKey, ProbeTask, ProbeQuestion]


def asked(tasks: Sequence[ProbeTask]) -> Iterator[Asked]:
    """Yield every question in the order of asking: all attempts, then all probes."""
    for task in tasks:
        yield QuestionKey(task.id, None), task, task.final
    for task in tasks:
        for probe in task.probes:
            yield QuestionKey(task.id, probe.id), task, probe
