"""Reference agents: how well doing one simple thing scores, on every seed alike.

They know the tasks and answer without a model; a run of one is simulated, never evidence. *oracle* is always
right, *prose* the same without JSON, *distractor* follows whoever misleads, *recency* repeats the option
mentioned last, *no-memory* has seen the question alone, and *random* draws an option.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from certkit import canonical
from certkit.probes.lint import mentioned_last, mentions
from certkit.probes.matching import Mode
from certkit.probes.story import Draw
from certkit.probes.task import Question, Task, Value, Variant, surface

if TYPE_CHECKING:
    from certkit.probes.answer import Key


class Reference(StrEnum):
    """The reference agents."""

    ORACLE = "oracle"
    PROSE = "prose"
    DISTRACTOR = "distractor"
    RECENCY = "recency"
    NO_MEMORY = "no-memory"
    RANDOM = "random"


def reply(agent: Reference, key: Key, task: Task, question: Question, *, mode: Mode) -> str:
    """Return what a reference agent says to one question."""
    chosen = _chosen(agent, key, task, question)
    if agent is Reference.PROSE:
        return f"I have thought about it, and the right thing to say here is: {surface(chosen)}."
    if mode is Mode.TEXT:
        return surface(chosen)
    return canonical.line({"answer": msgspec.to_builtins(chosen)}).decode().rstrip("\n")


def _chosen(agent: Reference, key: Key, task: Task, question: Question) -> Value:
    match agent:
        case Reference.DISTRACTOR if task.variant is Variant.DISTRACTOR:
            return question.lure
        case Reference.RECENCY:
            return mentioned_last(question, mentions(task))
        case Reference.NO_MEMORY:
            return "unknown"
        case Reference.RANDOM:
            return Draw("reference:random", task.id).pick(key.probe or "attempt", question.options)
        case _:
            return question.gold
