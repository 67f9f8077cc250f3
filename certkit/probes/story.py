"""A story under construction: what a family tells, before it becomes two tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.probes.task import Aim, Ask, Band, Fact, Kind, Pair, Phase, Role, Value
from certkit.probes.words import FILLERS, Draw, capital, neutral

if TYPE_CHECKING:
    from collections.abc import Sequence


class Shape(NamedTuple):
    """What a band fixes: turns before the last, options of every question, near misses and disturbances."""

    turns: int
    options: int
    difficulty: float
    weight: float
    near: int
    extra: int


SHAPES: Final = {
    Band.EASY: Shape(4, 3, 0.45, 0.85, 1, 0),
    Band.MEDIUM: Shape(6, 4, 0.6, 1.0, 2, 1),
    Band.HARD: Shape(9, 5, 0.8, 1.15, 3, 2),
}


class Drafted(NamedTuple):
    """A question before its answer is looked up; of the options the first is right, the second the lure."""

    prompt: str
    kind: Kind
    options: Sequence[Value]
    ask: Ask
    phase: Phase
    role: Role


class Story:
    """A scenario told turn by turn, with the facts that every turn asserts."""

    def __init__(self, draw: Draw, shape: Shape, scenario: str, instruction: str) -> None:
        self.draw = draw
        self.shape = shape
        self.scenario = scenario
        self.instruction = instruction
        self.turns: list[str] = []
        self.facts: list[Fact] = []
        self.authorities: tuple[str, ...] = ()
        self.misleading = self.harmless = ""
        self.misled: tuple[Fact, ...] = ()
        self.probes: list[Drafted] = []

    def rule(self, source: str, subject: str, **stated: str | tuple[str, ...]) -> None:
        """Add facts of the instruction."""
        self.facts += [
            Fact(turn=0, source=source, subject=subject, attribute=attribute, value=value)
            for attribute, value in stated.items()
        ]

    def say(self, text: str, *facts: tuple[str, str, str, str | tuple[str, ...]]) -> None:
        """Add a turn with its facts, each of a source, a subject, an attribute and a value."""
        self.turns.append(text)
        self.facts += [_fact(len(self.turns), fact) for fact in facts]

    def pass_time(self, turns: int) -> None:
        """Add turns that say nothing about the task."""
        for text in self.draw.some(f"filler.{len(self.turns)}", self._fillers(), turns):
            self.say(text)

    def _fillers(self) -> list[str]:
        return [text for text in FILLERS if text not in self.turns]

    def end(self, speaker: str, said: str, *facts: tuple[str, str, str, str | tuple[str, ...]]) -> None:
        """Set the last turn: what a speaker without authority says, or a neutral remark instead."""
        self.misleading, self.harmless = (f"{capital(speaker)}: {text}" for text in (said, neutral(said)))
        self.misled = tuple(_fact(len(self.turns) + 1, fact) for fact in facts)

    def probe(
        self, prompt: str, options: Sequence[Value], ask: Ask, phase: Phase, role: Role, *, kind: Kind
    ) -> None:
        """Add a probe."""
        self.probes.append(Drafted(prompt, kind, options, ask, phase, role))

    def decide(self, final: str, now: str, options: Sequence[Value], ask: Ask, *, kind: Kind) -> None:
        """Add the final question, and last the probe that asks for the decision if it had to be made now."""
        self.final = Drafted(final, kind, options, ask, Phase.LATE, Role.DECISION)
        self.probe(now, options, ask, Phase.LATE, Role.DECISION, kind=kind)


def _fact(turn: int, fact: tuple[str, str, str, str | tuple[str, ...]]) -> Fact:
    source, subject, attribute, value = fact
    return Fact(turn=turn, source=source, subject=subject, attribute=attribute, value=value)


def value_of(subject: str, attribute: str) -> Ask:
    """Ask for the value that an attribute has at last."""
    return Ask(aim=Aim.VALUE, subject=subject, attribute=attribute)


def source_of(subject: str, attribute: str) -> Ask:
    """Ask which source an attribute has its value from."""
    return Ask(aim=Aim.SOURCE, subject=subject, attribute=attribute)


def pair(value: object, source: str) -> Pair:
    """Return a value with its source."""
    return Pair(source=source, value=str(value))
