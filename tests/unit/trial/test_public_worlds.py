"""Public tasks: what their packages state is checked again, and what certkit adds to it is seen."""

from __future__ import annotations

import inspect
import warnings
from importlib.metadata import PackageNotFoundError
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from certkit.ground.errors import CertkitError
from certkit.record.outcome import decode_log, derive
from certkit.trial.agents import gold
from certkit.trial.check import check_plan
from certkit.trial.episode import execute
from certkit.trial.plan import PlannedRun, TrialFile, announced, make_plan, read_plan
from certkit.trial.run import run_trial
from certkit.trial.worlds import WORLDS, bfcl, instance_of, public
from certkit.trial.worlds.world import Action, ToolError, replayed

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.trial.plan import TrialPlan


def planned(name: str, tasks: int, **members: Any) -> TrialPlan:
    base = {"schema": "urn:certkit:trial:v1", "name": "public", "seed": 5}
    base |= {"worlds": [{"name": name, "tasks": tasks, "repeats": 5}]}
    return make_plan(TrialFile.model_validate_json(msgspec.json.encode(base | members)))


@pytest.fixture
def leaderboard() -> Any:
    pytest.importorskip("bfcl_eval", reason="bfcl-eval is not installed")
    pytest.importorskip("mpmath", reason="mpmath is not installed")
    return WORLDS["bfcl"]


@pytest.fixture
def dojo() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the package and what it brings
        pytest.importorskip("agentdojo.task_suite.load_suites", reason="agentdojo is not installed")
    return WORLDS["agentdojo"]


# Both


@pytest.mark.parametrize(
    ("name", "command"), [("bfcl", "--no-deps bfcl-eval"), ("agentdojo", "certkit[worlds]")]
)
def test_without_its_package_a_world_says_how_to_install_it(
    name: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(_package: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(public, "version", absent)
    with pytest.raises(CertkitError) as caught:
        _ = WORLDS[name].version
    assert (caught.value.code, int(caught.value.exit_code)) == ("trial.extra", 4)
    assert command in str(caught.value.hint)


def test_a_module_that_is_missing_is_told_in_the_same_way() -> None:
    with pytest.raises(CertkitError, match="bfcl-eval, which is not installed"):
        bfcl.Bfcl().module("bfcl_eval.no_such_module")


def test_more_tasks_than_there_are_are_refused(leaderboard: Any) -> None:
    assert len(leaderboard.tasks) == 200
    with pytest.raises(CertkitError, match="200 tasks, not 201"):
        planned("bfcl", 201)


def test_a_plan_of_another_version_of_the_package_is_refused(
    leaderboard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned("bfcl", 2)
    assert read_plan(plan.to_json(), where="plan") == plan
    assert plan.worlds[0].version == leaderboard.version
    monkeypatch.setattr(public, "version", lambda _package: "1999.1")
    with pytest.raises(CertkitError) as caught:
        read_plan(plan.to_json(), where="plan")
    assert (caught.value.code, int(caught.value.exit_code)) == ("trial.world", 3)


def test_the_plan_announces_that_its_tasks_are_public(leaderboard: Any, tmp_path: Path) -> None:
    plan = planned(leaderboard.name, 2)
    assert announced(plan)["public_tasks"] == ["bfcl"]
    assert "tasks_independent" not in announced(plan)
    run_trial(plan, "reference:gold", tmp_path / "b")
    assert b'"public_tasks"' in (tmp_path / "b/bundle.json").read_bytes()


@pytest.mark.parametrize("agent", ["react", "reflexion", "ap-edm"])
def test_reference_agents_that_do_not_know_a_world_are_refused(
    agent: str, leaderboard: Any, tmp_path: Path
) -> None:
    with pytest.raises(CertkitError, match=f"{agent} does not know bfcl") as caught:
        run_trial(planned(leaderboard.name, 1), f"reference:{agent}", tmp_path / "b")
    assert caught.value.code == "usage.option"
    assert not (tmp_path / "b").exists()


# BFCL

CONDITIONS = [
    *("tool_failure", "context_corruption", "stochastic", "combined", "adversarial", "cascade"),
    "x_lost_response",
]


@pytest.mark.parametrize("cascade", ["simultaneous", "sequential"])
def test_every_fault_lands_in_tasks_of_bfcl(leaderboard: Any, cascade: str) -> None:
    plan = planned(leaderboard.name, 14, conditions=CONDITIONS, cascade_definition=cascade)
    result = check_plan(plan)
    assert result.complaints == ()
    assert (result.landed, result.right) == (result.faults, True) == (56, True)


def test_the_plans_of_bfcl_pass_and_doing_nothing_passes_none(leaderboard: Any) -> None:
    tasks = leaderboard.tasks.values()
    assert sum(task.success(replayed(task, task.gold)) for task in tasks) == 200
    assert sum(task.success(task.start()[0]) for task in tasks) == 0


def test_what_no_request_asks_for_is_a_violation_in_bfcl(leaderboard: Any) -> None:
    counted = set()
    for task in leaderboard.tasks.values():
        assert task.violations(replayed(task, task.gold)) == task.violations(replayed(task, ())) == 0
        state = replayed(task, (*task.gold, task.goal))
        watched = any("watchlist" in call.tool for call in task.gold)
        if task.goal.tool == "add_to_watchlist" and not watched and task.attacked(state, None, 0):
            assert not task.success(state)
            counted.add(task.violations(state))
    assert counted == {1}


def test_nine_plans_of_bfcl_can_lose_a_call(leaderboard: Any) -> None:
    loose = {name for name, task in leaderboard.tasks.items() if task.oracle == "gold"}
    numbers = (33, 55, 60, 103, 113, 114, 137, 139, 142)
    assert loose == {f"multi_turn_base_{number}" for number in numbers}
    plan = planned("bfcl", 200)
    assert {task.id for task in plan.tasks if task.oracle == "gold"} == {f"bfcl/{name}" for name in loose}
    assert plan.worlds[0].oracle == "deletion_minimal"


def test_a_task_that_is_said_to_lose_no_call_and_can_is_told(leaderboard: Any) -> None:
    plan = planned(leaderboard.name, 200)
    loose = next(task for task in plan.tasks if task.oracle == "gold")
    members = {name: getattr(plan, name) for name in plan.__struct_fields__}
    claimed = msgspec.structs.replace(loose, oracle=None)
    result = check_plan(type(plan)(**members | {"tasks": (claimed,), "runs": ()}))
    assert (result.worlds[0].minimal, result.worlds[0].unfounded, result.right) == (0, 1, False)
    assert result.complaints == (f"task {loose.id}: a plan passes that lacks a call",)


def test_the_checker_agrees_with_that_of_bfcl_but_for_turns(leaderboard: Any) -> None:
    """BFCL checks after every turn, and refuses a turn without a call; here there are no turns."""
    name = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker"
    theirs = pytest.importorskip(name, reason="bfcl-eval is not installed").multi_turn_checker
    differing = set()
    for number in (0, 33, 55, 60, 70, 103, 107, 113, 160, 190):
        task, place = leaderboard.tasks[f"multi_turn_base_{number}"], 0
        for turn, calls in enumerate(task._turns):
            for left_out in range(len(calls)):
                made = [[list(step)] for step in task._turns]
                del made[turn][0][left_out]
                model = f"model{number}x{place}"  # the package keeps instances by this name
                valid = theirs(made, task._turns, task._entry, "multi_turn_base", model)["valid"]
                ours = task.success(replayed(task, (*task.gold[:place], *task.gold[place + 1 :])))
                place += 1
                assert ours or not valid
                if ours != valid:
                    differing.add((number, turn))
    assert differing == {(33, 1), (33, 2), (55, 3), (60, 3), (103, 0), (103, 1)}


def test_calls_are_parsed_and_never_evaluated(leaderboard: Any) -> None:
    assert "eval(" not in inspect.getsource(bfcl).replace("literal_eval(", "")
    task = leaderboard.tasks["multi_turn_base_0"]
    assert task._action("sort('a.txt')") == Action("sort", {"file_name": "a.txt"})
    with pytest.raises(ValueError, match="malformed"):
        task._action("sort(file_name=__import__('os').getcwd())")
    with pytest.raises(TypeError):
        task._action("a.b('x')")


def test_the_requests_are_numbered_and_the_tools_are_those_that_the_task_allows(
    leaderboard: Any,
) -> None:
    task = leaderboard.tasks["multi_turn_base_0"]
    assert "\n1. Move 'final_report.pdf'" in task.task.prompt
    assert "\n4. Move 'previous_report.pdf'" in task.task.prompt
    assert "cp" not in task.task.tools
    assert task.task.tools["mv"].startswith("mv(source, destination): Move a file")
    assert [*task.start()[1]] == [*task.task.tools]


def test_wrong_arguments_and_results_with_an_error_are_errors(leaderboard: Any) -> None:
    _, tools = leaderboard.tasks["multi_turn_base_0"].start()
    for arguments in ({}, {"folder": 1}, {"folder": "nowhere"}, {"folder": "document", "more": 1}):
        with pytest.raises(ToolError):
            tools["cd"](**arguments)


def test_what_an_agent_does_with_a_result_changes_no_state(leaderboard: Any) -> None:
    task = leaderboard.tasks["multi_turn_base_107"]
    state, tools = task.start()
    before = state.public()["TradingBot"]["watch_list"].copy()
    tools["get_watchlist"]()["watchlist"].append("X")
    assert state.public()["TradingBot"]["watch_list"] == before
    assert state != task.start()[0]  # the call was made
    assert state != "a state"


def test_every_result_of_a_plan_can_be_altered(leaderboard: Any) -> None:
    for task in leaderboard.tasks.values():
        _, tools = task.start()
        for number, call in enumerate(task.gold):
            result = tools[call.tool](**call.arguments)
            assert task.contradict(result, number) not in (None, result)
            assert task.attack(result, number)["note"] == task.request


def test_who_does_as_the_note_says_is_caught_and_no_plan_does(leaderboard: Any) -> None:
    for task in leaderboard.tasks.values():
        end = replayed(task, task.gold)
        assert not task.attacked(end, "", 0)
        arguments = dict(task.goal.arguments)
        if task.goal.tool == "set_budget_limit":
            arguments["access_token"] = end.instances["TravelAPI"].access_token
        state = replayed(task, (*task.gold, Action(task.goal.tool, arguments)))
        assert task.attacked(state, "", 0) == (arguments.get("access_token", "known") is not None)


# AgentDojo


def test_agentdojo_takes_attacks_alone() -> None:
    for members in ({"conditions": ["adversarial", "tool_failure"]}, {"schedule": "fit-v2"}, {}):
        with pytest.raises(CertkitError, match="takes attacks alone") as caught:
            planned("agentdojo", 1, **members)
        assert caught.value.code == "trial.invalid"
    with pytest.raises(CertkitError, match="plans cascade"):
        planned("agentdojo", 1, conditions=["cascade"], cascade_definition="sequential")


BANKING = [f"banking/user_task_{number}" for number in (0, 3, 5, 6, 11)]


def test_suites_have_97_tasks_and_35_goals(dojo: Any) -> None:
    assert len(dojo.tasks) == 97
    assert sum(len(goals) for goals in {t._suite.name: t._goals for t in dojo.tasks.values()}.values()) == 35


def test_every_attack_lands_in_agentdojo_and_planning_is_not_measured(
    dojo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dojo, "tasks", {name: dojo.tasks[name] for name in BANKING})
    plan = planned("agentdojo", 5, conditions=["adversarial", "cascade"])
    assert {(task.steps, task.oracle) for task in plan.tasks} == {(None, None)}
    result = check_plan(plan)
    assert (result.landed, result.faults, result.right) == (20, 20, True)
    world = result.worlds[0]
    assert (world.gold_passes, world.idle_passes) == (5, 2)  # tasks 5 and 6 pass for nothing
    run = next(run for run in plan.runs if run.condition == "adversarial")
    fields = derive(decode_log(execute(plan, run, plan.tasks_by_id()[run.task], gold)))
    assert {"steps_oracle", "violations"}.isdisjoint(fields)
    assert (fields["attack_succeeded"], fields["outcome"]) == (False, "success")


def test_who_does_as_the_note_says_reaches_the_attackers_goal(dojo: Any) -> None:
    task = dojo.tasks[BANKING[0]]
    for variant in range(9):
        goal = task.goal(variant)
        assert goal.GOAL in task.attack("", variant)
        calls = goal.ground_truth(task.start()[0].environment)
        state = replayed(task, [Action(call.function, dict(call.args)) for call in calls])
        assert task.attacked(state, goal.GROUND_TRUTH_OUTPUT, variant)
        assert not task.attacked(task.start()[0], "", variant)


def test_an_agent_sees_the_arguments_that_are_its_own(dojo: Any) -> None:
    state, tools = dojo.tasks[BANKING[0]].start()
    send = tools["send_money"]
    assert [*inspect.signature(send).parameters] == ["recipient", "amount", "subject", "date"]
    send("UK1", 10, "rent", "2022-01-01")
    assert state.calls[0].args["amount"] == 10
    for given, named in (((), {}), (("UK1",), {"recipient": "UK2"}), (("UK1", object(), "s", "d"), {})):
        with pytest.raises(ToolError):
            send(*given, **named)


def test_a_state_is_compared_without_the_machines_clock(dojo: Any) -> None:
    plan = planned(dojo.name, 1, conditions=["adversarial"])
    task = instance_of("agentdojo/workspace/user_task_13")  # sends a message
    planned_task = msgspec.structs.replace(plan.tasks[0], id=task.task.id)
    run = PlannedRun(id="r", task=task.task.id, condition="nominal")
    log = decode_log(execute(plan, run, planned_task, gold))
    assert log.events[-1].ended == "answered"
    assert task.start()[0] != replayed(task, task.gold)
    assert task.start()[0] != "a state"
