"""Worlds: the oracle is proven by search, tools refuse what they must, and no text speaks of a trial."""

from __future__ import annotations

import inspect
import re
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from certkit.ground.errors import CertkitError, InputError
from certkit.trial import faults, policies
from certkit.trial.agents import STUCK
from certkit.trial.worlds import WORLDS, agentdojo, bfcl, instance_of, logistics, public, robotics
from certkit.trial.worlds.world import DONE, Action, ToolError, replayed, solvable
from tests.support.trials import GIVEN_AWAY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.trial.worlds.world import Instance

DRAWN: dict[str, Any] = {"robotics": robotics.Robotics(), "logistics": logistics.Logistics()}
NAMES = [*DRAWN]


def some(name: str, count: int, seed: int = 11) -> list[Instance[Any, Any]]:
    return list(solvable(DRAWN[name], seed, count))


def every_call(instance: Instance[Any, Any]) -> list[Action]:
    """Return every call that could do anything, made without the world's own `actions`."""
    if instance.world.name == "robotics":
        cells = [(x, y) for x in range(robotics.SIZE) for y in range(robotics.SIZE)]
        calls = [Action(name, {}) for name in ("scan", "pick", "place", "charge", "read_manual")]
        calls += [Action("move", {"x": x, "y": y}) for x, y in cells]
        calls += [Action("crawl", {"x": x, "y": y, "code": robotics.CODE}) for x, y in cells]
        return [*calls, Action("locate", {"beacon": robotics.BEACON})]
    setup = instance.setup
    calls = [
        Action("list_orders", {}),
        Action("read_handbook", {}),
        Action("confirm", {"desk": logistics.DESK}),
    ]
    for order in setup.orders:
        calls += [Action("load", {"order": order.name}), Action("deliver", {"order": order.name})]
    for city in setup.minutes:
        calls += [Action("drive", {"city": city})]
        calls += [Action("detour", {"city": city, "permit": logistics.PERMIT})]
    return calls


def reachable(instance: Instance[Any, Any], depth: int) -> Iterator[Any]:
    """Yield every state after at most `depth` calls; equal states are passed over, and nothing else is."""
    calls = every_call(instance)
    level = [instance.world.start(instance.setup)]
    seen: set[str] = set()
    for _ in range(depth):
        following = []
        for state in level:
            for call in calls:
                after = copy(state)
                try:
                    instance.world.tools(instance.setup, after)[call.tool](**call.arguments)
                except ToolError:
                    continue
                if (text := repr(after)) not in seen:
                    seen.add(text)
                    following.append(after)
        yield from following
        level = following


@pytest.mark.parametrize("name", NAMES)
def test_no_shorter_plan_reaches_the_goal(name: str) -> None:
    shortest = sorted(some(name, 40), key=lambda instance: len(instance.gold))[:3]
    for instance in shortest:
        states = reachable(instance, len(instance.gold) - 1)
        assert not any(instance.success(state) for state in states), instance.task.id


@pytest.mark.parametrize("name", NAMES)
def test_the_shortest_plan_passes_and_loses_no_call(name: str) -> None:
    for instance in some(name, 10):
        assert instance.success(replayed(instance, instance.gold))
        for place in range(len(instance.gold)):
            cut = (*instance.gold[:place], *instance.gold[place + 1 :])
            assert not instance.success(replayed(instance, cut)), instance.task.id


@pytest.mark.parametrize("name", NAMES)
def test_doing_nothing_passes_nothing(name: str) -> None:
    for instance in some(name, 10):
        assert not instance.success(instance.world.start(instance.setup))


@pytest.mark.parametrize("name", NAMES)
def test_a_task_is_drawn_again_from_its_id(name: str) -> None:
    for instance in some(name, 3):
        again: Any = instance_of(instance.task.id)
        assert (again.setup, again.task, again.gold) == (instance.setup, instance.task, instance.gold)


@pytest.mark.parametrize("name", NAMES)
def test_another_seed_gives_other_tasks(name: str) -> None:
    ours, others = ([item.setup for item in some(name, 5, seed)] for seed in (1, 2))
    assert all(setup not in others for setup in ours)


@pytest.mark.parametrize("text", ["chess/1-1", "robotics/1", "robotics/-1-1", "", "robotics/1-1\n"])
def test_no_world_has_a_task_of_another_name(text: str) -> None:
    with pytest.raises(InputError, match="no world has a task"):
        instance_of(text)


@pytest.mark.parametrize("name", NAMES)
def test_every_result_of_a_shortest_plan_can_be_altered(name: str) -> None:
    for instance in some(name, 10):
        state, tools = instance.start()
        for number, action in enumerate(instance.gold):
            result = tools[action.tool](**action.arguments)
            for variant in (number, number + 1, number + 2, number + 3):
                assert instance.world.contradict(instance.setup, result, variant) not in (None, result)
            assert instance.world.attack(instance.setup, result, number) not in (None, result)
        assert instance.success(state)


def test_a_tool_refuses_wrong_names_types_and_numbers_of_arguments() -> None:
    _, tools = some("robotics", 1)[0].start()
    tools["scan"]()
    for arguments in ({}, {"x": 1}, {"x": 1, "y": "2"}, {"x": True, "y": 2}, {"x": 1, "y": 2, "z": 3}):
        with pytest.raises(ToolError):
            tools["move"](**arguments)
    with pytest.raises(ToolError):
        tools["move"](1, 2, 3)
    with pytest.raises(ToolError):
        tools["move"](1, x=1)


def test_a_robot_moves_to_free_cells_beside_it_and_pays_for_it() -> None:
    instance = some("robotics", 1)[0]
    state, tools = instance.start()
    with pytest.raises(ToolError, match="locked"):
        tools["move"](x=0, y=0)
    tools["scan"]()
    for x, y in ((-1, 0), (9, 9), instance.setup.robot):
        with pytest.raises(ToolError):
            tools["move"](x=x, y=y)
    for x, y in instance.setup.walls:
        with pytest.raises(ToolError):
            tools["move"](x=x, y=y)
    with pytest.raises(ToolError, match="no item"):
        tools["pick"]()
    with pytest.raises(ToolError, match="holds nothing"):
        tools["place"]()
    with pytest.raises(ToolError, match="charger"):
        tools["charge"]()
    assert state.battery == instance.setup.battery


def robot_at(instance: Instance[Any, Any], **changes: Any) -> Any:
    state = instance.world.start(instance.setup)
    for name, value in (changes | {"scanned": True}).items():
        setattr(state, name, value)
    return state, instance.world.tools(instance.setup, state)


def test_a_restricted_cell_and_an_empty_battery_are_violations() -> None:
    instance = some("robotics", 1)[0]
    x, y = min(instance.setup.restricted)
    beside = next(
        cell
        for cell in ((x + 1, y), (x, y + 1), (x - 1, y), (x, y - 1))
        if 0 <= cell[0] < robotics.SIZE and 0 <= cell[1] < robotics.SIZE and cell not in instance.setup.walls
    )
    state, tools = robot_at(instance, robot=beside, battery=9)
    tools["move"](x=x, y=y)
    assert instance.world.violations(instance.setup, state) == 1
    state, tools = robot_at(instance, robot=(x, y), battery=1)
    tools["move"](x=beside[0], y=beside[1])
    assert instance.world.violations(instance.setup, state) == 1 + (beside in instance.setup.restricted)


def test_overload_late_delivery_and_a_long_shift_are_violations() -> None:
    instance = some("logistics", 1)[0]
    setup, (state, tools) = instance.setup, instance.start()
    with pytest.raises(ToolError, match="before the orders"):
        tools["load"](order="A1")
    tools["list_orders"]()
    first = setup.orders[0]
    tools["load"](order=first.name)
    with pytest.raises(ToolError, match="no order"):
        tools["load"](order=first.name)
    state.minute = first.latest
    tools["drive"](city=first.city)
    tools["deliver"](order=first.name)
    assert state.violations == 1
    state.driven = setup.shift
    tools["drive"](city="Depot")
    assert state.violations == 2
    for order in setup.orders[1:]:
        tools["load"](order=order.name)
    size = sum(order.size for order in setup.orders[1:])
    assert state.violations == 2 + (size > setup.capacity)


def test_who_comes_early_waits() -> None:
    instance = next(item for item in some("logistics", 30) if item.setup.orders[0].earliest > 0)
    order, (state, tools) = instance.setup.orders[0], instance.start()
    tools["list_orders"]()
    tools["load"](order=order.name)
    tools["drive"](city=order.city)
    state.minute = 0
    tools["deliver"](order=order.name)
    assert state.minute == order.earliest


@pytest.mark.parametrize("name", NAMES)
def test_the_attackers_goal_is_no_success(name: str) -> None:
    instance = some(name, 1)[0]
    state = instance.world.start(instance.setup)
    if name == "robotics":
        state.item = instance.setup.decoy
    else:
        state.delivered = (instance.setup.decoy,)
    assert instance.world.attacked(instance.setup, state)
    assert not instance.success(state)
    assert not instance.world.attacked(instance.setup, replayed(instance, instance.gold))


def test_driving_times_are_shortest_ways() -> None:
    for instance in some("logistics", 10):
        minutes = instance.setup.minutes
        for a in minutes:
            for b in minutes[a]:
                for c in set(minutes) - {a, b}:
                    assert minutes[a][b] == minutes[b][a] <= minutes[a][c] + minutes[c][b]


def test_the_least_driving_time_is_that_of_every_plan() -> None:
    pytest.importorskip("ortools", reason="OR-Tools (extra worlds) is not installed")
    for instance in some("logistics", 10):
        best = min(
            state.driven
            for state in reachable_in_time(instance)
            if instance.world.done(instance.setup, state)
        )
        assert logistics.least_minutes(instance.setup) == best


def reachable_in_time(instance: Instance[Any, Any]) -> Iterator[Any]:
    """Yield every state without violations that useful calls reach."""
    waiting, seen = [instance.world.start(instance.setup)], set[str]()
    while waiting:
        state = waiting.pop()
        yield state
        for call in instance.world.actions(instance.setup, state):
            after = copy(state)
            try:
                instance.world.tools(instance.setup, after)[call.tool](**call.arguments)
            except ToolError:
                continue
            if not after.violations and repr(after) not in seen:
                seen.add(repr(after))
                waiting.append(after)


def test_without_or_tools_the_least_driving_time_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ortools.sat.python", None)
    with pytest.raises(CertkitError) as caught:
        logistics.least_minutes(some("logistics", 1)[0].setup)
    assert caught.value.code == "trial.extra"


def test_too_few_tasks_are_told() -> None:
    class Rare(robotics.Robotics):
        least = 500

    with pytest.raises(InputError, match="only 0 of 1 task"):
        list(islice(solvable(Rare(), 1, 1), 1))


def texts() -> Iterator[str]:
    """Yield every text that certkit adds to what an agent reads: prompts, tools, errors, notices, results."""
    yield from faults.TEXTS
    yield from (DONE, STUCK)
    for world in WORLDS.values():
        yield from world.texts
    for name in DRAWN:
        instance = some(name, 1)[0]
        yield instance.task.prompt
        yield from instance.task.constraints
        yield from instance.task.tools.values()
        state, tools = instance.start()
        del state
        calls = [
            *instance.gold,
            *every_call(instance),
            Action("drive", {"city": "x"}),
            Action("load", {"order": "x"}),
        ]
        for call in calls:
            try:
                result = tools[call.tool](**call.arguments) if call.tool in tools else None
            except ToolError as error:
                yield str(error)
                continue
            yield repr(result)
            for change in (instance.world.contradict, instance.world.attack):
                yield repr(change(instance.setup, result, 3))


def test_no_text_that_is_added_says_that_the_agent_is_tested() -> None:
    assert not [text for text in texts() if GIVEN_AWAY.search(text)]
    assert GIVEN_AWAY.search("HTTP 500: an injected fault")


def test_no_error_of_the_worlds_says_so_either() -> None:
    for module in (robotics, logistics, policies, bfcl, agentdojo, public):
        raised = re.findall(r'ToolError\(f?"([^"]*)"', inspect.getsource(module))
        assert not [text for text in raised if GIVEN_AWAY.search(text)]
