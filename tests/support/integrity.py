"""Replies and annotations for tests, without a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from certkit._version import __version__
from certkit.ground import canonical
from certkit.probes.generate import generate
from certkit.probes.reading import Kept
from certkit.probes.records import (
    GENERATOR,
    Annotation,
    Inventory,
    Mode,
    ProbeAnswer,
    ProbeRun,
    QuestionKey,
    asked,
    commitment,
    lines,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from certkit.probes.records import ProbeQuestion, ProbeTask


def answer(key: QuestionKey, text: str, **more: Any) -> ProbeAnswer:
    """An answer as a line of the file would give it."""
    probe = {} if key.probe is None else {"probe_id": key.probe}
    document = {"task_id": key.task, "status": "answered", "calls": 1, "text": text, **probe, **more}
    return msgspec.convert(document, ProbeAnswer, strict=True)


def kept(
    tasks: Sequence[ProbeTask] = (),
    *,
    seed: str = "public-1",
    say: Callable[[QuestionKey, ProbeTask, ProbeQuestion], ProbeAnswer | None],
    notes: Iterable[dict[str, Any]] = (),
    mode: Mode = Mode.JSON,
) -> Kept:
    """What a bundle holds whose agent says what `say` returns."""
    tasks = tuple(tasks) or generate(seed=seed)
    inventory = Inventory(
        generator=GENERATOR,
        seed=seed,
        seed_commitment=commitment(seed),
        instances=3,
        tasks_digest=canonical.digest(lines(tasks)),
    )
    digest = canonical.digest(canonical.pretty(inventory.to_dict()).encode())
    answers = [
        given for key, task, question in asked(tasks) if (given := say(key, task, question)) is not None
    ]
    return Kept(
        inventory=inventory,
        tasks=tasks,
        run=ProbeRun(
            inventory=digest,
            agent="test",
            mode=mode,
            model=None,
            name="agent",
            agent_version="1",
            isolation=False,
            temperature=None,
            version=__version__,
        ),
        answers={item.key: item for item in answers},
        annotations=tuple(msgspec.convert(note, Annotation, strict=True) for note in notes),
    )
