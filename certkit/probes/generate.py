"""The generator ``certkit-probes/1``: 8 families × 2 variants × 3 bands × N instances, all from one seed.

    tasks = generate(seed="public-1")      # 144 tasks with 306 probes; the same for a seed on every machine
    tasks_file(tasks)                      # the bytes of integrity/tasks.jsonl

The variant is no part of any draw, so that twins share everything but their last turn. The numbers of the
bands and all weights are ours where [NS] is silent. What is generated passes the linter; tests show it.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, Final

import msgspec

from certkit import canonical
from certkit.probes.lint import solve
from certkit.probes.story import SHAPES, Drafted, Draw, Shape, Story
from certkit.probes.task import Band, Family, Phase, Priors, Probe, Question, Role, Task, Variant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

GENERATOR: Final = "certkit-probes/1"
PUBLIC: Final = "public-1"
"""The seed that everybody knows."""
INSTANCES: Final = 3
_DECISION_WEIGHT: Final = 0.8
"""The decision probe nearly repeats the final question."""


def generate(*, seed: str, instances: int = INSTANCES) -> tuple[Task, ...]:
    """Return the tasks of a seed, `instances` in every cell of family, variant and band."""
    return tuple(
        task
        for family in Family
        for band in Band
        for instance in range(1, instances + 1)
        for task in _twins(seed, family, band, instance)
    )


def tasks_file(tasks: Iterable[Task]) -> bytes:
    """Return tasks as the bytes of ``tasks.jsonl``."""
    return b"".join(map(line, tasks))


def line(item: msgspec.Struct) -> bytes:
    """Return a document as one line of JSON that does not repeat which schema it has."""
    document: dict[str, Any] = msgspec.to_builtins(item)
    document.pop("schema", None)
    return canonical.line(document)


def commitment(seed: str) -> str:
    """Return the digest that commits to a seed without telling it."""
    return canonical.digest(GENERATOR.encode() + b"\0" + seed.encode())


def _twins(seed: str, family: Family, band: Band, instance: int) -> Iterator[Task]:
    shape, draw = SHAPES[band], Draw(seed, f"{family}/{band}/{instance}")
    story = Story(family, draw, shape)
    told = (story.instruction, *story.turns)
    facts = tuple(fact for turn, sentence in enumerate(told) for fact in sentence.facts_at(turn))

    def looked_up(drafted: Drafted) -> dict[str, Any]:
        """Return the fields of a question, its options in drawn order."""
        options = drafted.options
        solved = solve(facts, story.authorities, drafted.ask, options)
        assert solved is not None, drafted.prompt  # noqa: S101 - a story that no facts settle is a fault of ours
        return {
            "prompt": drafted.prompt,
            "kind": drafted.kind,
            "gold": options[0],
            "lure": options[1],
            "options": tuple(draw.some(f"options.{drafted.prompt}", options, len(options))),
            "ask": drafted.ask,
            "state_version": solved[1],
        }

    final = Question(**looked_up(story.final))
    positions = {Phase.INITIAL: 1, Phase.MID: ceil(shape.turns / 2), Phase.LATE: shape.turns + 2}
    probes = tuple(
        Probe(
            **looked_up(drafted),
            id=f"p{number}",
            position=positions[drafted.phase],
            phase=drafted.phase,
            role=drafted.role,
            weight=_DECISION_WEIGHT if drafted.role is Role.DECISION else 1.0,
        )
        for number, drafted in enumerate(story.probes, 1)
    )
    for variant in Variant:
        misled = variant is Variant.DISTRACTOR
        yield Task(
            id=f"{family}-{band}-{instance}-{variant}",
            cluster=f"{family}-{band}-{instance}",
            family=family,
            construct=story.construct,
            variant=variant,
            band=band,
            instance=instance,
            scenario=story.scenario,
            instruction=story.instruction.text,
            turns=(*(turn.text for turn in story.turns), story.misleading.text if misled else story.harmless),
            final=final,
            probes=probes,
            priors=_priors(shape, final.state_version),
            authorities=story.authorities,
            facts=(*facts, *(story.misleading.facts_at(shape.turns + 1) if misled else ())),
        )


def _priors(shape: Shape, settled: int) -> Priors:
    return Priors(
        turns=shape.turns,
        options=shape.options,
        difficulty=shape.difficulty,
        weight=shape.weight,
        near_misses=shape.near,
        contradictions=shape.extra,
        conflicts=shape.extra,
        tool_noise=shape.extra,
        delay=shape.turns + 1 - settled,
    )
