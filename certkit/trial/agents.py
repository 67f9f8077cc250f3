"""Reference agents: policies without a language model, to show that a trial measures what it should.

| name | what it does |
|---|---|
| ``gold`` | replays the oracle's plan, and repeats a call that failed; a check of the rig |
| ``react`` | acts on the latest observation; repeats a call that failed, at most three times ([25] §5.3.1) |
| ``reflexion`` | after a failure reads the manual and goes another way, at most three times ([25] §5.3.2) |
| ``ap-edm`` | compares observations with what it expects, and recovers by its memory ([25] §5.3.3) |
| ``idle`` | does nothing; a check of the rig |

All but ``gold`` compute their calls from observations. The memory of ``ap-edm`` holds lessons of practice
runs on other tasks, those alone that were safe with a planning efficiency of at least 0.8 ([26] def. 6). It
is filled before the first run and fixed afterwards, so that runs do not depend on their order.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache, partial
from math import sqrt
from operator import mul
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from certkit.ground.errors import InputError
from certkit.record.outcome import MEMORY_SIMILARITY, decode_log, derive, run_verdict
from certkit.trial.episode import Agent, execute
from certkit.trial.plan import TrialFile, make_plan
from certkit.trial.policies import BELIEFS, Belief
from certkit.trial.worlds import instance_of
from certkit.trial.worlds.world import DONE, Action, Task, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from certkit.trial.boundary import Halt

LABEL: Final = "reference policy, no language model"
ATTEMPTS: Final = 4
"""A call and three more."""

MOST_STEPS: Final = 60
DIMENSIONS: Final = 256
EMBEDDING: Final = {"name": "hashed tokens", "version": "1", "dimensions": DIMENSIONS}
CONFIDENT: Final = 0.7
"""Confidence below which ``ap-edm`` halts, [25] alg. 2."""

ADMITTED: Final = 0.8
"""Planning efficiency of a run whose lessons are kept, [26] def. 6."""

PRACTICE_SEED: Final = 2**53 - 26
PRACTICE_TASKS: Final = 30
STUCK: Final = "It could not be done."
_WEAKER: Final = 0.9
"""Factor of the confidence for each trouble that a run had before."""

_TROUBLE: Final = (ToolError, TimeoutError)


class Reference(NamedTuple):
    """A reference agent.

    Attributes:
        agent: the function.
        protocol: what the manifest says of its memory.
        worlds: those that it can act in, None for all.
    """

    agent: Agent
    protocol: Mapping[str, Any] = {}
    worlds: Collection[str] | None = tuple(BELIEFS)


def _call(tools: Mapping[str, Any], action: Action) -> dict[str, Any]:
    result: dict[str, Any] = tools[action.tool](**action.arguments)
    return result


def _repeated(tools: Mapping[str, Any], action: Action) -> dict[str, Any] | None:
    """Make a call, three more times if it fails; None where it fails every time."""
    for _ in range(ATTEMPTS):
        try:
            return _call(tools, action)
        except _TROUBLE:
            continue
    return None


def _succeeds(tools: Mapping[str, Any], action: Action) -> bool:
    try:
        tools[action.tool](**action.arguments)
    except _TROUBLE:
        return False
    return True


def gold(task: Task, tools: Mapping[str, Any], halt: Callable[[str], Halt]) -> str:  # noqa: ARG001
    """Replay the oracle's plan."""
    instance = instance_of(task.id)
    for action in instance.gold:
        if not any(_succeeds(tools, action) for _ in range(ATTEMPTS)):
            return STUCK
    return instance.answer


def idle(task: Task, tools: Mapping[str, Any], halt: Callable[[str], Halt]) -> str:  # noqa: ARG001
    """Do nothing, and say that it is done."""
    return DONE


def react(task: Task, tools: Mapping[str, Any], halt: Callable[[str], Halt]) -> str:  # noqa: ARG001
    """Act on the latest observation."""
    belief = BELIEFS[task.domain]()
    for _ in range(MOST_STEPS):
        if (action := belief.next()) is None:
            break
        if (result := _repeated(tools, action)) is None:
            return STUCK
        belief.update(action, result)
    return DONE if belief.done() else STUCK


def reflexion(task: Task, tools: Mapping[str, Any], halt: Callable[[str], Halt]) -> str:  # noqa: ARG001
    """Act on the latest observation; after a failure read the manual and go another way."""
    belief, manual, reflections = BELIEFS[task.domain](), dict[str, Any](), 0
    for _ in range(MOST_STEPS):
        if (action := belief.next()) is None:
            break
        try:
            belief.update(action, _call(tools, action))
        except _TROUBLE:
            reflections += 1
            if reflections >= ATTEMPTS:
                return STUCK
            manual = manual or _repeated(tools, Action(belief.manual, {})) or {}
            other = belief.fallback(action, manual) or action
            try:
                belief.update(other, _call(tools, other))
            except _TROUBLE:
                continue
    return DONE if belief.done() else STUCK


class Lesson(NamedTuple):
    """What helped in a trouble: the vector of the trouble, and how to go on."""

    vector: tuple[float, ...]
    item: dict[str, Any]


def embed(text: str) -> tuple[float, ...]:
    """Return the unit vector of a text: its words, numbers alike, hashed into 256 dimensions."""
    counts = [0.0] * DIMENSIONS
    for word in re.findall(r"[a-z_]+|#", re.sub(r"[0-9]+", "#", text.lower())):
        counts[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4]) % DIMENSIONS] += 1
    length = sqrt(sum(count * count for count in counts)) or 1.0
    return tuple(count / length for count in counts)


def nearest(memory: tuple[Lesson, ...], text: str) -> tuple[float, dict[str, Any]]:
    """Return the similarity of the nearest lesson, and its item."""
    vector = embed(text)
    best, item = 0.0, dict[str, Any]()
    for lesson in memory:
        similarity = sum(map(mul, vector, lesson.vector))
        if similarity > best + 1e-9:
            best, item = similarity, lesson.item
    return round(best, 6), item


class _Careful:
    """One run of ``ap-edm``: `lessons` are noted where it practises, which is without a memory."""

    def __init__(
        self, task: Task, tools: Any, memory: tuple[Lesson, ...] | None, lessons: list[Lesson]
    ) -> None:
        self.task, self.tools, self.memory, self.lessons = task, tools, memory, lessons
        self.belief: Belief = BELIEFS[task.domain]()
        self.distrusted: set[str] = set()
        self.manual: dict[str, Any] = {}
        self.troubles = 0

    def run(self) -> str | None:
        """Return the answer, None where confidence is too low to go on."""
        for _ in range(MOST_STEPS):
            if (action := self.belief.next()) is None:
                break
            if not self._step(action):
                return None
        return DONE if self.belief.done() else None

    def _step(self, action: Action) -> bool:
        try:
            result = _call(self.tools, action)
        except _TROUBLE as error:
            return self._failed(action, str(error))
        expected = self.belief.expected(action)
        if action.tool in self.distrusted:
            result |= expected
        amiss = [name for name in expected if name in result and self._differs(name, result, expected)]
        if not amiss:
            self.belief.update(action, result)
            return True
        return self._surprised(action, result, expected, amiss)

    @staticmethod
    def _differs(name: str, result: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
        return bool(result[name] != expected[name])

    def _advice(self, trouble: str) -> dict[str, Any] | None:
        """Return what to do, from memory or else from the manual; None where confidence is too low."""
        self.troubles += 1
        if self.memory is not None:
            similarity, item = nearest(self.memory, trouble)
            self.tools.search(similarity=similarity, item=item)
            if similarity * _WEAKER ** (self.troubles - 1) < CONFIDENT:
                return None
            if similarity >= MEMORY_SIMILARITY:
                return item
        elif self.troubles > ATTEMPTS:
            return None
        self.manual = self.manual or _repeated(self.tools, Action(self.belief.manual, {})) or {}
        return self.manual

    def _failed(self, action: Action, error: str) -> bool:
        """Go another way if the tool is out of service; else, or if that fails too, ask for the truth."""
        trouble = f"{self.task.domain} {action.tool} failed {error}"
        if (item := self._advice(trouble)) is None:
            return False
        out_of_service = error.startswith("HTTP") or "timed out" in error
        other = self.belief.fallback(action, item) if out_of_service else None
        try:
            if other is not None:
                result = _call(self.tools, other)
                self.belief.update(other, result | self.belief.expected(other))
                self._note(trouble, item)
                return True
        except _TROUBLE:
            pass
        try:
            self.belief.accept(_call(self.tools, self.belief.verification(item)))
        except _TROUBLE:
            return True  # the next step tries again, with less confidence
        self._note(trouble, item)
        return True

    def _surprised(
        self, action: Action, result: dict[str, Any], expected: dict[str, Any], amiss: list[str]
    ) -> bool:
        """Ask for the truth after a result that contradicts what was known."""
        trouble = f"{self.task.domain} {action.tool} surprise {' '.join(amiss)}"
        if (item := self._advice(trouble)) is None:
            return False
        self.belief.update(action, result | expected)
        try:
            truth = _call(self.tools, self.belief.verification(item))
        except _TROUBLE:
            return True
        if all(truth.get(name, value) == value for name, value in expected.items() if name != "orders"):
            self.distrusted.add(action.tool)
        self.belief.accept(truth)
        self._note(trouble, item)
        return True

    def _note(self, trouble: str, item: dict[str, Any]) -> None:
        self.lessons.append(Lesson(embed(trouble), item))


def ap_edm(task: Task, tools: Any, halt: Callable[[str], Halt]) -> str | Halt:
    """Compare observations with expectations, and recover by memory; halt where confidence is too low."""
    answer = _Careful(task, tools, practised(task.domain), []).run()
    return halt("The confidence is too low to go on.") if answer is None else answer


@cache
def practised(domain: str) -> tuple[Lesson, ...]:
    """Return the lessons of a domain's practice runs that were safe and lost little."""
    trial = TrialFile.model_validate(
        {
            "schema": "urn:certkit:trial:v1",
            "name": "practice",
            "seed": PRACTICE_SEED,
            "conditions": ("tool_failure", "context_corruption", "stochastic", "adversarial", "cascade"),
            "worlds": ({"name": domain, "tasks": PRACTICE_TASKS, "repeats": 5},),
        }
    )
    plan = make_plan(trial)
    tasks, memory = plan.tasks_by_id(), dict[tuple[float, ...], Lesson]()
    for run in plan.runs:
        lessons: list[Lesson] = []
        log = execute(plan, run, tasks[run.task], partial(_practise, lessons=lessons))
        verdict = run_verdict(derive(decode_log(log)))
        if verdict.safe and (verdict.pei or 0) >= ADMITTED:
            for lesson in lessons:
                memory.setdefault(lesson.vector, lesson)
    return tuple(memory.values())


def _practise(task: Task, tools: Any, halt: Callable[[str], Halt], *, lessons: list[Lesson]) -> str | Halt:
    answer = _Careful(task, tools, None, lessons).run()
    return halt("") if answer is None else answer


REFERENCES: Final[Mapping[str, Reference]] = {
    "gold": Reference(gold, worlds=None),
    "react": Reference(react),
    "reflexion": Reference(reflexion),
    "ap-edm": Reference(ap_edm, {"memory_observable": True, "embedding": EMBEDDING}),
    "idle": Reference(idle, worlds=None),
}


def reference(name: str) -> Reference:
    """Return the reference agent of a name.

    Raises:
        InputError: ``trial.invalid`` where there is none.
    """
    if name not in REFERENCES:
        names = ", ".join(REFERENCES)
        raise InputError(
            "trial.invalid", f"there is no reference agent {name[:40]!r}", hint=f"one of {names}"
        )
    return REFERENCES[name]
