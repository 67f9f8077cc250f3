"""What is asked, and what is kept of it: the inventory, the run, the replies and people's annotations.

Every question is asked with the whole prompt of its task, and nothing of an earlier reply. First come all
attempts, then all probes. Each type here is one file of ``integrity/``, or one line of it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType

from certkit import canonical
from certkit.document import Digest, Document, Positive, Share, schema_of
from certkit.probes.generate import GENERATOR, commitment
from certkit.probes.matching import MAX_WORDS, Mode
from certkit.probes.task import Family, Id, Question, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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

_CONTRACT: Final = {
    Mode.JSON: (
        'Reply with one JSON object and nothing else: {"answer": …, "confidence": …}. The answer is a text,'
        ' an integer, a list of texts, or {"source": …, "value": …}; the confidence is a number from 0 to 1.'
    ),
    Mode.TEXT: f"Reply with the answer alone, in one line of at most {MAX_WORDS} words.",
}


class Inventory(Document, frozen=True, kw_only=True, tag="urn:certkit:integrity-inventory:v1"):
    """Where tasks come from: the generator and its seed, or null for tasks of one's own."""

    generator: Literal["certkit-probes/1"] | None
    seed: Annotated[str, Meta(min_length=1, max_length=200, description="null: withheld")] | None
    seed_commitment: Digest | None
    instances: Positive | None
    tasks_digest: Digest

    @property
    def origin(self) -> str:
        """``public``, ``stated``, ``withheld``, or ``own`` for tasks that no seed gives."""
        if self.generator is None:
            return "own"
        return "withheld" if self.seed is None else "public" if self.seed.startswith("public-") else "stated"


class Run(Document, frozen=True, kw_only=True, tag="urn:certkit:integrity-run:v1"):
    """How an agent was asked; `inventory` is the digest of inventory.json."""

    inventory: Digest
    agent: Given
    mode: Mode
    isolation: Annotated[bool, Meta(description="true: a process of its own for every call")]
    temperature: Annotated[float | None, Meta(description="null: the agent's own")]
    version: Annotated[str, Meta(description="of certkit")]


class Status(StrEnum):
    """Whether a question got a reply."""

    ANSWERED = "answered"
    ERROR = "error"


class Answer(Document, frozen=True, kw_only=True, tag="urn:certkit:integrity-answer:v1"):
    """One line of integrity/answers.jsonl: the reply to one question, or why there is none.

    Without a `probe_id` it is the attempt at the task.
    """

    task_id: Id
    probe_id: Id | UnsetType = UNSET
    status: Status
    calls: Positive
    text: Annotated[str, Meta(max_length=MAX_REPLY)] | UnsetType = UNSET
    cut: Annotated[bool, Meta(description="true: the reply was longer")] | UnsetType = UNSET
    error: Given | UnsetType = UNSET
    confidence: Annotated[Share, Meta(description="else that of the reply")] | UnsetType = UNSET
    success_probability: Share | UnsetType = UNSET
    retrieval_risk: Share | UnsetType = UNSET
    neural_conflict: Share | UnsetType = UNSET

    @property
    def key(self) -> Key:
        """Which question this answers."""
        return Key(self.task_id, None if self.probe_id is UNSET else self.probe_id)


class Annotation(Document, frozen=True, kw_only=True, tag="urn:certkit:integrity-annotation:v1"):
    """One line of integrity/annotations.jsonl: what one person says of a task, a probe or a reply."""

    kind: Literal["difficulty", "construct", "audit"]
    task_id: Id
    probe_id: Id | UnsetType = UNSET
    rater: Rater
    rating: Annotated[int, Meta(ge=1, le=5)] | UnsetType = UNSET
    valid: bool | UnsetType = UNSET
    family: Family | UnsetType = UNSET
    verdict: Literal["match", "no", "unclear"] | UnsetType = UNSET
    adjudicated: bool | UnsetType = UNSET


class Key(NamedTuple):
    """A question: its task, and its probe or None for the attempt."""

    task: str
    probe: str | None


def inventory_of(tasks_digest: str, seed: str, instances: int, *, withhold: bool) -> Inventory:
    """Return the inventory of generated tasks; a withheld seed is committed to, and not told."""
    return Inventory(
        generator=GENERATOR,
        seed=None if withhold else seed,
        seed_commitment=commitment(seed),
        instances=instances,
        tasks_digest=tasks_digest,
    )


def document_file(document: Document) -> bytes:
    """Return the bytes of a document that is a file of its own."""
    return canonical.pretty(document.to_dict()).encode()


def asked(tasks: Sequence[Task]) -> Iterator[tuple[Key, Task, Question]]:
    """Yield every question in the order of asking: all attempts, then all probes."""
    for task in tasks:
        yield Key(task.id, None), task, task.final
    for task in tasks:
        for probe in task.probes:
            yield Key(task.id, probe.id), task, probe


def prompt(task: Task, key: Key, question: Question, mode: Mode) -> str:
    """Return the whole text that an agent gets for one question."""
    side = () if key.probe is None else (f"Do not answer that now. Answer this instead: {question.prompt}",)
    return "\n".join((told(task), *side, _CONTRACT[mode]))


def told(task: Task) -> str:
    """Return a task as it is told: scenario, instruction, numbered turns, and the final question."""
    turns = (f"{number}. {turn}" for number, turn in enumerate(task.turns, 1))
    return "\n".join((task.scenario, task.instruction, *turns, task.final.prompt))


def line_schema(kind: type[Document]) -> dict[str, Any]:
    """Return the JSON Schema of a type whose documents are lines, which do not repeat their schema."""
    body = schema_of(kind)
    del body["properties"]["schema"]
    return body | {"required": [name for name in body["required"] if name != "schema"]}


LINES: Final[tuple[type[Document], ...]] = (Task, Answer, Annotation)


def in_order(answers: Iterable[Answer], tasks: Sequence[Task]) -> list[Answer]:
    """Return answers in the order of asking."""
    places = {key: number for number, (key, _, _) in enumerate(asked(tasks))}
    return sorted(answers, key=lambda answer: places[answer.key])
