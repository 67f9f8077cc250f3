"""From replies to the document: `score_integrity`."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from certkit.assessment.integrity.document import (
    Accuracy,
    Cell,
    Core,
    Gap,
    Hollow,
    IntegrityDocument,
    Origin,
    Raters,
    Repair,
    State,
    Success,
    Valued,
)
from certkit.assessment.integrity.raters import audit_of, construct_of, difficulty_of
from certkit.assessment.integrity.scores import (
    Weighed,
    difficulty,
    full_integrity,
    interval,
    legacy,
    limits,
    neural_integrity,
    total,
    weigh,
)
from certkit.evidence.integrity.summary import commitments
from certkit.probes.matching import Verdict
from certkit.probes.task import Family, Variant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from certkit.evidence.integrity.summary import Commitments, Reply, TaskRead

_REPAIRS: Final = (Family.REPAIR, Family.STALE)


def score_integrity(bundle: Path) -> IntegrityDocument:
    """Return success and commitment integrity from the folder of a bundle; raises as `read` does."""
    return score(commitments(bundle))


def score(data: Commitments) -> IntegrityDocument:
    """Return success and commitment integrity of an agent."""
    weighed = [weigh(task) for task in data.tasks]
    run = data.run
    return IntegrityDocument(
        state=_state(data.tasks),
        origin=Origin(
            seed=data.inventory.origin,
            tasks_digest=data.inventory.tasks_digest,
            agent=None if run is None else run.agent,
            mode=None if run is None else run.mode,
        ),
        success=_success(weighed),
        accuracy=_accuracy(data.tasks),
        core=_core(weighed),
        full=Valued(value=legacy(weighed, lambda _, reply, d, x: full_integrity(d, reply, x))),
        neural=Valued(
            value=legacy(weighed, lambda task, reply, d, x: neural_integrity(d, reply, x, difficulty(task)))
        ),
        distractor_gap=Gap(
            value=_gap(weighed),
            by_family={
                family: _gap([item for item in weighed if item.task.family is family]) for family in Family
            },
        ),
        repair_precision=_repair(data.tasks),
        hollow=Hollow(tasks=tuple(task.id for task in data.tasks if _is_hollow(task))),
        by_cell=_cells(weighed),
        raters=Raters(difficulty=difficulty_of(data), construct=construct_of(data)),
        audit=audit_of(data),
    )


def _replies(tasks: Sequence[TaskRead]) -> list[Reply | None]:
    return [probe.reply for task in tasks for probe in task.probes]


def _state(tasks: Sequence[TaskRead]) -> State:
    replies = [*_replies(tasks), *(task.attempt for task in tasks)]
    if None not in replies:
        return State.MEASURED
    return State.PARTIAL if any(reply is not None for reply in replies) else State.UNMEASURED


def _matched(reply: Reply | None) -> bool:
    return reply is not None and reply.verdict is Verdict.MATCH


def _success(weighed: Sequence[Weighed]) -> Success:
    attempts = [item.task.attempt for item in weighed]
    shares = [None if reply is None else Fraction(_matched(reply)) for reply in attempts]
    return Success(
        successes=sum(map(_matched, attempts)),
        n=len(attempts),
        unanswered=attempts.count(None),
        weighted=total((item.weight, share) for item, share in zip(weighed, shares, strict=True)),
    )


def _accuracy(tasks: Sequence[TaskRead]) -> Accuracy:
    replies = _replies(tasks)
    return Accuracy(
        matched=sum(map(_matched, replies)),
        n=len(replies),
        unanswered=replies.count(None),
        unclear=sum(reply is not None and reply.verdict is Verdict.UNCLEAR for reply in replies),
    )


def _core(weighed: Sequence[Weighed]) -> Core:
    floor, ceiling = limits(weighed)
    return Core(
        value=total((item.weight, item.core.value) for item in weighed),
        low=total((item.weight, item.core.low) for item in weighed) or floor,
        high=total((item.weight, item.core.high) for item in weighed) or floor,
        floor=floor,
        ceiling=ceiling,
        interval=interval(weighed),
    )


def _gap(weighed: Sequence[Weighed]) -> Fraction | None:
    clean, misled = (
        total((item.weight, item.core.value) for item in weighed if item.task.variant is variant)
        for variant in (Variant.CLEAN, Variant.DISTRACTOR)
    )
    return None if clean is None or misled is None else clean - misled


def _repair(tasks: Sequence[TaskRead]) -> Repair:
    replies = [reply for reply in _replies([task for task in tasks if task.family in _REPAIRS]) if reply]
    matched, lured = sum(map(_matched, replies)), sum(reply.lured for reply in replies)
    share = Fraction(matched, matched + lured) if matched + lured else None
    return Repair(value=share, matched=matched, lured=lured)


def _is_hollow(task: TaskRead) -> bool:
    """Tell whether a success rests on fewer than half of its probes, whatever missing replies would be."""
    held = sum(probe.reply is None or _matched(probe.reply) for probe in task.probes)
    return _matched(task.attempt) and 2 * held < len(task.probes)


def _cells(weighed: Sequence[Weighed]) -> tuple[Cell, ...]:
    cells: dict[tuple[str, str, str], list[Weighed]] = defaultdict(list)
    for item in weighed:
        cells[item.task.family, item.task.variant, item.task.band].append(item)
    return tuple(
        Cell(
            family=items[0].task.family,
            variant=items[0].task.variant,
            band=items[0].task.band,
            tasks=len(items),
            successes=sum(_matched(item.task.attempt) for item in items),
            probes=sum(len(item.task.probes) for item in items),
            matched=sum(map(_matched, _replies([item.task for item in items]))),
            core=total((item.weight, item.core.value) for item in items),
        )
        for items in cells.values()
    )
