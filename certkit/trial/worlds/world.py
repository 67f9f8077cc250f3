"""What a world is: tasks with tools, a checker, constraints and an oracle.

A `WorldTask` has a state that its tools change. It says what the end state is worth, how results can
contradict each other, and what an attacker may want. A `World` is where tasks come from: a `DrawnWorld` draws
them from a seed, and `shortest` proves the length of their oracles by breadth-first search over the tools
themselves; the worlds of public tasks read them from an installed package (`certkit.trial.worlds.public`).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from copy import copy
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, Protocol, TypeVar

from certkit.ground.document import Part
from certkit.ground.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import CodeType

Oracle = Literal["optimal", "deletion_minimal", "gold"]
"""What an oracle's number of steps is: proven least; a plan that can lose no call; or merely a plan."""

State = TypeVar("State")
Setup = TypeVar("Setup")
_WORDS: Final = {int: "a whole number", str: "a text"}
_MOST_STATES: Final = 200_000
_NAME: Final = re.compile(r"([0-9]{1,19})-([0-9]{1,6})")
DONE: Final = "It is done."
"""What an agent without a language model answers when its plan is through."""


class ToolError(Exception):
    """A tool could not do what it was asked; its text is for the agent."""


class Task(Part, frozen=True, kw_only=True):
    """What an agent is told of a task.

    Attributes:
        id: unique in a plan.
        domain: the application domain.
        prompt: the task in words.
        tools: each tool with what it does.
        constraints: hard constraints in words.
    """

    id: str
    domain: str
    prompt: str
    tools: Mapping[str, str] = {}
    constraints: tuple[str, ...] = ()


class Action(NamedTuple):
    """A tool call that a plan makes."""

    tool: str
    arguments: dict[str, Any]


class WorldTask(Protocol[State]):
    """A task of a world, ready to be run any number of times.

    Attributes:
        task: what the agent is told.
        answer: what the agent ``gold`` answers after its last call.
    """

    task: Task
    answer: str

    @property
    def gold(self) -> tuple[Action, ...]:
        """The calls of the oracle's plan."""

    @property
    def oracle(self) -> Oracle:
        """What the oracle's number of steps is."""

    @property
    def steps(self) -> int | None:
        """The oracle's number of steps, the final answer included; None where nothing is measured by it."""

    def start(self) -> tuple[State, Mapping[str, Callable[..., Any]]]:
        """Return a new state, and the tools that change it."""

    def success(self, state: State, answer: Any = None) -> bool:
        """Tell whether the goal is reached and nothing violated."""

    def violations(self, state: State) -> int | None:
        """Count violated hard constraints, None where nobody counts them."""

    def contradict(self, result: Any, variant: int) -> Any:
        """Return the result so that it contradicts itself or earlier ones, None where it cannot."""

    def attack(self, result: Any, variant: int) -> Any:
        """Return the result with what an attacker wants, None where it cannot."""

    def attacked(self, state: State, answer: Any, variant: int) -> bool:
        """Tell whether the attacker's goal was reached."""


class World(Protocol):
    """Where tasks come from.

    Attributes:
        name: of the world, and its domain.
        oracle: what its oracles' numbers of steps are, unless a task says otherwise.
        public: whether its tasks are published, and so may be in training data.
        attacks_only: whether a plan may expose its tasks to attacks alone.
        texts: every text that the world adds to prompts and results on purpose.
    """

    name: str
    oracle: Oracle
    public: bool
    attacks_only: bool
    texts: tuple[str, ...]

    @property
    def version(self) -> str:
        """Changes with anything that a task or a result says."""

    def draw(self, seed: int, count: int) -> Iterable[WorldTask[Any]]:
        """Return the tasks that a plan of a seed uses."""

    def find(self, name: str) -> WorldTask[Any] | None:
        """Return the task of a name, which is its id without the world's name; None where there is none."""


class DrawnWorld(Protocol[Setup, State]):
    """A world whose tasks are drawn; `Setup` is what a task is drawn as, `State` what its tools change.

    Attributes:
        name: of the world, and its domain.
        version: changes with anything that a task or a result says.
        oracle: what its number of steps is.
        least: calls of the shortest plan that a task must have to be used.
        texts: every text that the world adds to results on purpose.
    """

    name: str
    version: str
    oracle: Oracle
    least: int
    texts: tuple[str, ...]
    public: bool = False
    attacks_only: bool = False

    def draw(self, seed: int, count: int) -> Iterator[Instance[Setup, State]]:
        """Return the first tasks of a seed that have a plan."""
        return solvable(self, seed, count)

    def find(self, name: str) -> Instance[Setup, State] | None:
        """Return the task drawn again from the seed and the number that its name holds."""
        match = _NAME.fullmatch(name)
        return None if match is None else Instance(self, int(match[1]), int(match[2]))

    def setup(self, seed: int, number: int) -> Setup:
        """Draw the task of a number; some of them may have no solution."""

    def task(self, seed: int, number: int) -> Task:
        """Return what the agent is told of a task."""

    def start(self, setup: Setup) -> State:
        """Return the state that a task begins in."""

    def tools(self, setup: Setup, state: State) -> Mapping[str, Callable[..., Any]]:
        """Return the tools, which change the state."""

    def done(self, setup: Setup, state: State) -> bool:
        """Tell whether the task's goal is reached."""

    def violations(self, setup: Setup, state: State) -> int:
        """Count violated hard constraints."""

    def contradict(self, setup: Setup, result: Any, variant: int) -> Any:
        """Return the result so that it contradicts itself or earlier ones, None where it cannot."""

    def attack(self, setup: Setup, result: Any, variant: int) -> Any:
        """Return the result with what an attacker wants, None where it cannot."""

    def attacked(self, setup: Setup, state: State) -> bool:
        """Tell whether the attacker's goal was reached."""

    def actions(self, setup: Setup, state: State) -> Iterable[Action]:
        """Return the calls that a shortest plan may make next."""

    def key(self, state: State) -> tuple[Any, ...]:
        """Return what of a state decides which calls are possible."""

    def cost(self, state: State) -> tuple[int, ...]:
        """Return what of a state is never better for being more."""


_KINDS: Final[dict[CodeType, dict[str, type]]] = {}


def _kinds(code: CodeType, function: Callable[..., Any]) -> dict[str, type]:
    """Return the types of a tool's arguments, looked up once for all closures of the same code."""
    if code not in _KINDS:
        _KINDS[code] = {
            name: {"int": int, "str": str}[str(parameter.annotation)]
            for name, parameter in inspect.signature(function).parameters.items()
        }
    return _KINDS[code]


def typed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a tool that refuses arguments of wrong names or types with a `ToolError`."""
    kinds = _kinds(function.__code__, function)

    @wraps(function)
    def checked(*given: Any, **named: Any) -> Any:
        arguments = dict(zip(kinds, given, strict=False)) | named
        if arguments.keys() != kinds.keys() or len(given) + len(named) != len(kinds):
            raise ToolError(f"Expected the arguments {', '.join(kinds) or 'none'}.")
        for name, kind in kinds.items():
            if type(arguments[name]) is not kind:
                raise ToolError(f"{name}: expected {_WORDS[kind]}.")
        return function(**arguments)

    return checked


class Instance(Generic[Setup, State]):
    """A drawn task, ready to be run any number of times; see `WorldTask`.

    Attributes:
        world: its world.
        setup: what was drawn.
        task: what the agent is told.
        answer: what the agent ``gold`` answers.
    """

    answer = DONE

    def __init__(self, world: DrawnWorld[Setup, State], seed: int, number: int) -> None:
        self.world = world
        self.setup = world.setup(seed, number)
        self.task = world.task(seed, number)
        self._drawn = seed, number

    @property
    def gold(self) -> tuple[Action, ...]:
        """The calls of a shortest plan.

        Raises:
            InputError: ``trial.world`` where there is none.
        """
        plan = _searched(self.world, *self._drawn)  # type: ignore[arg-type]  # a world is hashed by identity
        if plan is None:
            raise _unsolved(self.world)
        return plan

    @property
    def oracle(self) -> Oracle:
        """What the world's number of steps is."""
        return self.world.oracle

    @property
    def steps(self) -> int:
        """The calls of a shortest plan, and the final answer."""
        return len(self.gold) + 1

    def start(self) -> tuple[State, Mapping[str, Callable[..., Any]]]:
        """Return a new state, and the tools that change it."""
        state = self.world.start(self.setup)
        tools = self.world.tools(self.setup, state)
        return state, {name: typed(tool) for name, tool in tools.items()}

    def success(self, state: State, answer: Any = None) -> bool:  # noqa: ARG002 - the state says it
        """Tell whether the goal is reached and nothing violated."""
        return self.world.done(self.setup, state) and not self.world.violations(self.setup, state)

    def violations(self, state: State) -> int:
        """Count violated hard constraints."""
        return self.world.violations(self.setup, state)

    def contradict(self, result: Any, variant: int) -> Any:
        """Return what the world says."""
        return self.world.contradict(self.setup, result, variant)

    def attack(self, result: Any, variant: int) -> Any:
        """Return what the world says."""
        return self.world.attack(self.setup, result, variant)

    def attacked(self, state: State, answer: Any, variant: int) -> bool:  # noqa: ARG002 - one goal a task
        """Tell whether the attacker's goal was reached."""
        return self.world.attacked(self.setup, state)


def replayed(instance: WorldTask[State], calls: Iterable[Action]) -> State:
    """Return the state after calls; those that end in an error leave what they leave."""
    state, tools = instance.start()
    for call in calls:
        if call.tool in tools:
            try:
                tools[call.tool](**call.arguments)
            except Exception:  # noqa: BLE001, S112 - every error that the tool boundary gives an agent
                continue
    return state


def shortest(world: DrawnWorld[Setup, State], setup: Setup) -> tuple[Action, ...]:
    """Return a plan with the least number of calls, found by breadth-first search over the tools.

    A state is passed over if an earlier one has the same key and costs no more in every respect; states that
    violate a constraint are passed over, since no call mends that.

    Raises:
        InputError: ``trial.world`` where no plan is found.
    """
    level: list[tuple[State, tuple[Action, ...]]] = [(world.start(setup), ())]
    best: dict[tuple[Any, ...], list[tuple[int, ...]]] = {}
    visited = 0
    while level and visited < _MOST_STATES:
        following = []
        for state, plan in level:
            for action in world.actions(setup, state):
                after = copy(state)
                try:
                    world.tools(setup, after)[action.tool](**action.arguments)
                except ToolError:
                    continue
                if world.violations(setup, after):
                    continue
                if world.done(setup, after):
                    return (*plan, action)
                cost, costs = world.cost(after), best.setdefault(world.key(after), [])
                if any(all(a <= b for a, b in zip(held, cost, strict=True)) for held in costs):
                    continue
                costs.append(cost)
                following.append((after, (*plan, action)))
        visited += len(following)
        level = following
    raise _unsolved(world)


def _unsolved(world: DrawnWorld[Setup, State]) -> InputError:
    return InputError("trial.world", f"no plan reaches the goal of a task of {world.name}")


@lru_cache(maxsize=4096)
def _searched(world: DrawnWorld[Setup, State], seed: int, number: int) -> tuple[Action, ...] | None:
    """Return a shortest plan of a drawn task, None where there is none.

    Remembered, since a trial asks for it when it is planned and again when it is run.
    """
    try:
        return shortest(world, world.setup(seed, number))
    except InputError:
        return None


def solvable(world: DrawnWorld[Setup, State], seed: int, count: int) -> Iterator[Instance[Setup, State]]:
    """Yield the first tasks of a seed that a plan of at least `world.least` calls solves.

    Raises:
        InputError: ``trial.world`` where too few of the drawn tasks are.
    """
    made = 0
    for number in range(100 + 20 * count):
        if made == count:
            return
        instance = Instance(world, seed, number)
        try:
            long_enough = len(instance.gold) >= world.least
        except InputError:
            continue
        if long_enough:
            made += 1
            yield instance
    if made < count:
        raise InputError("trial.world", f"{world.name} gives only {made} of {count} tasks from seed {seed}")
