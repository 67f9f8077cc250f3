"""Replies and annotations reduced once to integers, of which every score is made.

Shares are in thousandths. What is here does not depend on the order of any line.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, Struct, UnsetType

from certkit.evidence.integrity.reading import key_of, read
from certkit.probes.answer import Annotation, Answer, Inventory, Key, Run, Status
from certkit.probes.matching import MAX_WORDS, Mode, Verdict, judge, thousandths

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.evidence.integrity.reading import Kept
    from certkit.probes.task import Band, Family, Phase, Probe, Question, Task, Variant

_RATERS: Final = 2
"""Blinded raters who must all be right, so that a probe counts as validated."""


class Validity(IntEnum):
    """ν in thousandths: how far people have looked at a probe ([NS] after eq. 11)."""

    NEEDS_REVIEW = 750
    DESIGN = 900
    SAMPLED = 950
    VALIDATED = 1000
    ADJUDICATED = 1100


class Reply(Struct, frozen=True, kw_only=True):
    """How a reply reads; `lured`: it names the lure alone; `verbose`: more than twelve words."""

    verdict: Verdict
    breach: bool
    competing: bool
    lured: bool
    verbose: bool
    confidence: int | None
    success_probability: int | None
    retrieval_risk: int | None
    neural_conflict: int | None


class ProbeRead(Struct, frozen=True, kw_only=True):
    """A probe with its reply, None where there is none; `weight` is α in thousandths."""

    id: str
    position: int
    phase: Phase
    weight: int
    validity: Validity
    reply: Reply | None


class TaskRead(Struct, frozen=True, kw_only=True):
    """A task with the replies to it.

    `design` is ω_design and `prior` the difficulty before rating, in thousandths; `ratings` are the sum and
    the number of the ratings that count.
    """

    id: str
    cluster: str
    family: Family
    variant: Variant
    band: Band
    design: int
    prior: int
    ratings: tuple[int, int]
    attempt: Reply | None
    probes: tuple[ProbeRead, ...]


class Commitments(Struct, frozen=True, kw_only=True):
    """All tasks of a bundle with the replies to them, and what people say of both."""

    inventory: Inventory
    run: Run | None
    tasks: tuple[TaskRead, ...]
    annotations: tuple[Annotation, ...]


def commitments(root: Path) -> Commitments:
    """Return what lies under ``integrity/`` in a bundle's folder, reduced; raises as `read`."""
    return reduce(read(root))


def reduce(kept: Kept) -> Commitments:
    """Return replies and annotations as integers."""
    mode = Mode.JSON if kept.run is None else kept.run.mode
    about: dict[str, list[Annotation]] = {}
    for item in kept.annotations:
        about.setdefault(item.task_id, []).append(item)
    return Commitments(
        inventory=kept.inventory,
        run=kept.run,
        tasks=tuple(_task(task, kept.answers, about.get(task.id, []), mode) for task in kept.tasks),
        annotations=kept.annotations,
    )


def _task(task: Task, answers: dict[Key, Answer], said: list[Annotation], mode: Mode) -> TaskRead:
    def probe(item: Probe) -> ProbeRead:
        return ProbeRead(
            id=item.id,
            position=item.position,
            phase=item.phase,
            weight=round(item.weight * 1000),
            validity=_validity(item.id, task.family, said),
            reply=_reply(item, answers.get(Key(task.id, item.id)), mode),
        )

    return TaskRead(
        id=task.id,
        cluster=task.cluster,
        family=task.family,
        variant=task.variant,
        band=task.band,
        design=round(task.priors.weight * 1000),
        prior=round(task.priors.difficulty * 1000),
        ratings=_ratings(said),
        attempt=_reply(task.final, answers.get(Key(task.id, None)), mode),
        probes=tuple(probe(item) for item in task.probes),
    )


def _ratings(said: list[Annotation]) -> tuple[int, int]:
    """Return the sum and the number of difficulty ratings; adjudicated ones alone where there are any."""
    rated = [item for item in said if item.kind == "difficulty" and item.rating is not UNSET]
    rated = [item for item in rated if item.adjudicated is True] or rated
    return sum(item.rating for item in rated if item.rating is not UNSET), len(rated)


def _validity(probe: str, family: Family, said: list[Annotation]) -> Validity:
    """Return the validity of a probe from annotations of it or of its whole task."""
    about = [item for item in said if key_of(item).probe in {None, probe} and item.kind != "audit"]
    if any(item.valid is False for item in about):
        return Validity.NEEDS_REVIEW
    if any(item.adjudicated is True for item in about):
        return Validity.ADJUDICATED
    assigned = [item for item in about if item.kind == "construct"]
    if len({item.rater for item in assigned}) >= _RATERS and all(item.family == family for item in assigned):
        return Validity.VALIDATED
    rated = any(item.rating is not UNSET for item in about)
    return Validity.SAMPLED if rated else Validity.DESIGN


def _reply(question: Question, answer: Answer | None, mode: Mode) -> Reply | None:
    if answer is None or answer.status is Status.ERROR or answer.text is UNSET:
        return None
    reading = judge(question, answer.text, mode=mode)
    stated = thousandths(answer.confidence)
    return Reply(
        verdict=reading.verdict,
        breach=reading.breach,
        competing=len(reading.named) > 1,
        lured=reading.named == (question.options.index(question.lure),),
        verbose=len(answer.text.split()) > MAX_WORDS,
        confidence=reading.confidence if stated is None else stated,
        success_probability=_supplied(answer.success_probability),
        retrieval_risk=_supplied(answer.retrieval_risk),
        neural_conflict=_supplied(answer.neural_conflict),
    )


def _supplied(value: float | UnsetType) -> int | None:
    return thousandths(value)
