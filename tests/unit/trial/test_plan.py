"""A plan is fixed, drawn as the papers say, and refused once it was edited."""

from __future__ import annotations

import hashlib
import json  # noqa: TID251 - a second reading, without our own door
from collections import Counter
from typing import Any

import pytest
import rfc8785

from certkit.ground.errors import InputError
from certkit.trial.faults import LENGTHS, TIMING
from certkit.trial.plan import make_plan, read_plan, read_trial
from tests.support.trials import TRIAL, own_plan, small_plan, trial


def refused(text: str) -> InputError:
    with pytest.raises(InputError) as caught:
        make_plan(read_trial(text.encode(), where="trial.toml"))
    return caught.value


def test_the_same_trial_gives_the_same_plan_and_another_seed_another() -> None:
    text = TRIAL.format(seed=3, tasks=2, more="")
    first = make_plan(read_trial(text.encode(), where="t"))
    assert first == make_plan(read_trial(text.encode(), where="t"))
    assert (
        first.digest != make_plan(read_trial(text.replace("seed = 3", "seed = 4").encode(), where="t")).digest
    )


def test_a_plan_reads_back() -> None:
    plan = small_plan(tasks=2)
    assert read_plan(plan.to_json(), where="plan.json") == plan


def test_the_digest_is_that_of_everything_else() -> None:
    plan = small_plan(tasks=1)
    document = json.loads(plan.to_json())
    stated = document.pop("digest")
    assert stated == "sha256:" + hashlib.sha256(rfc8785.dumps(document)).hexdigest()


def test_in_each_domain_a_fifth_is_normal_and_every_task_is_run_normally() -> None:
    plan = small_plan(tasks=10)
    domains = {task.id: task.domain for task in plan.tasks}
    for domain in ("robotics", "logistics"):
        runs = [run for run in plan.runs if domains[run.task] == domain]
        normal = [run for run in runs if run.condition == "nominal"]
        assert (len(runs), len(normal)) == (50, 10)
        assert {run.task for run in normal} == {task for task, name in domains.items() if name == domain}


def test_kinds_of_fault_have_equal_shares_and_are_spread_over_the_tasks() -> None:
    plan = small_plan(tasks=10)
    assert {
        name: count for name, count in plan.counts()["robotics"].items() if name != "nominal"
    } == dict.fromkeys(("adversarial", "cascade", "context_corruption", "stochastic", "tool_failure"), 8)
    per_task = Counter(run.task for run in plan.runs)
    assert set(per_task.values()) == {5}
    assert max(Counter((run.task, run.condition) for run in plan.runs).values()) == 1


def test_the_other_schedule_has_the_shares_of_the_earlier_paper() -> None:
    counts = small_plan(tasks=10, schedule="fit-v2").counts()["robotics"]
    single = counts["tool_failure"] + counts["context_corruption"] + counts["stochastic"]
    assert (single, counts["combined"] + counts["cascade"], counts["adversarial"]) == (28, 8, 4)


def test_runs_are_in_drawn_order_with_repeat_numbers() -> None:
    plan = small_plan(tasks=10)
    domains = [run.task.partition("/")[0] for run in plan.runs]
    assert domains != sorted(domains)
    assert domains != sorted(domains, reverse=True)
    more = small_plan(tasks=2, conditions=["tool_failure"])
    for key in {(run.task, run.condition) for run in more.runs}:
        numbers = [run.trial for run in more.runs if (run.task, run.condition) == key]
        assert sorted(numbers) == list(range(len(numbers)))


def test_onsets_are_early_mid_and_late_as_in_the_paper() -> None:
    plan = small_plan(tasks=60)
    steps = {task.id: task.steps or 0 for task in plan.tasks}
    long = [run.fault.onset for run in plan.runs if run.fault is not None and steps[run.task] - 1 >= 10]
    shares = [sum(first <= onset <= (last or 99) for onset in long) / len(long) for first, last, _ in TIMING]
    for share, (_, _, percent) in zip(shares, TIMING, strict=True):
        assert abs(share - percent / 100) < 0.08, shares


def test_faults_begin_within_the_calls_of_the_oracle_and_last_as_long_as_their_kind() -> None:
    plan = small_plan(tasks=20, schedule="fit-v2")
    steps = {task.id: task.steps or 0 for task in plan.tasks}
    lengths: dict[str, set[int]] = {}
    for run in plan.runs:
        if run.fault is not None:
            assert 1 <= run.fault.onset <= steps[run.task] - 1
            lengths.setdefault(run.condition, set()).add(run.fault.length)
            assert (run.condition == "stochastic") == (run.fault.blocked != ())
            assert run.fault.blocked[:1] in {(), (0,)}
    for condition, seen in lengths.items():
        low, high = LENGTHS[condition]
        assert seen == set(range(1 if condition == "stochastic" else low, high + 1)), condition


def test_a_task_whose_steps_nobody_stated_is_hit_in_its_first_three_calls() -> None:
    tasks = [{"id": f"t{number}"} for number in range(10)]
    plan = own_plan(domains=[{"name": "d", "tasks": tasks, "runs": 60, "attack": "x"}])
    assert {run.fault.onset for run in plan.runs if run.fault is not None} == {1, 2, 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("repeats = 5", "repeats = 2"), "every task is to run normally"),
        (("repeats = 5", "runs = 3"), "every task is to run normally"),
        (("repeats = 5", ""), "either repeats"),
        (("repeats = 5", "repeats = 5\nruns = 10"), "either repeats"),
        (('"robotics"', '"chess"'), "/worlds/0/name"),
        (('"robotics"', '"logistics"'), "one name"),
        (("seed = 3", "seed = -1"), "/seed"),
        (("seed = 3", "seed = 3\nfoo = 1"), "/foo"),
        (("seed = 3", 'seed = 3\nconditions = ["nominal"]'), "/conditions/0"),
        (
            ("seed = 3", 'seed = 3\nschedule = "fit-v2"\nconditions = ["cascade"]'),
            "belong to the even schedule",
        ),
        (('name = "small"', 'name = "Not this"'), "/name"),
        (('schema = "urn:certkit:trial:v1"', ""), "/schema"),
        (("[[worlds]]", "[[worlds]"), "not TOML"),
    ],
)
def test_a_trial_that_cannot_be_is_refused(change: tuple[str, str], message: str) -> None:
    error = refused(TRIAL.format(seed=3, tasks=2, more="").replace(*change, 1))
    assert error.code == "trial.invalid"
    assert message in str(error)


OWN = """
schema = "urn:certkit:trial:v1"
name = "own"
seed = 1
[[domains]]
name = "support"
repeats = 5
attack = "Do this."
tasks = [{ id = "a", steps = 4 }]
"""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('attack = "Do this."', ""), "need an attack"),
        (("steps = 4", "steps = 1"), "no fault can hit"),
        (('{ id = "a", steps = 4 }', '{ id = "a" }, { id = "a" }'), "one id"),
        (("tasks = [{", "tasks = [] # {"), "/domains/0/tasks"),
    ],
)
def test_tasks_of_ones_own_that_cannot_be_run_are_refused(change: tuple[str, str], message: str) -> None:
    error = refused(OWN.replace(*change, 1))
    assert error.code == "trial.invalid"
    assert message in str(error)


def test_no_attack_is_needed_where_no_condition_has_one() -> None:
    text = OWN.replace('attack = "Do this."', "").replace(
        "seed = 1", 'seed = 1\nconditions = ["tool_failure"]'
    )
    assert len(make_plan(read_trial(text.encode(), where="t")).runs) == 5


def edited(**members: Any) -> bytes:
    """Return a plan with other members and the digest that it had."""
    return json.dumps(json.loads(small_plan(tasks=1).to_json()) | members).encode()


def redigested(document: dict[str, Any]) -> bytes:
    """Return a plan whose digest holds."""
    body = {key: value for key, value in document.items() if key != "digest"}
    digest = "sha256:" + hashlib.sha256(rfc8785.dumps(body)).hexdigest()
    return json.dumps(document | {"digest": digest}).encode()


def code(data: bytes) -> str:
    with pytest.raises(InputError) as caught:
        read_plan(data, where="plan.json")
    return caught.value.code


def test_a_plan_that_was_edited_is_refused() -> None:
    plan = json.loads(small_plan(tasks=1).to_json())
    assert code(edited(seed=4)) == "trial.plan-changed"
    assert code(edited(runs=plan["runs"][1:])) == "trial.plan-changed"
    plan["runs"][0]["condition"] = "nominal"
    assert code(json.dumps(plan).encode()) == "trial.plan-changed"


def test_what_is_no_plan_is_refused() -> None:
    assert code(b"{}") == "trial.invalid"
    assert code(b"[]") == "trial.invalid"
    assert code(b"{") == "json.syntax"
    assert code(edited(extra=1)) == "trial.invalid"


def test_a_plan_that_contradicts_itself_is_refused() -> None:
    plan = json.loads(small_plan(tasks=1).to_json())
    assert read_plan(redigested(plan), where="p").seed == plan["seed"]
    twice = plan | {"runs": [plan["runs"][0], *plan["runs"][:1]]}
    assert code(redigested(twice)) == "trial.invalid"
    unknown = plan | {"runs": [plan["runs"][0] | {"task": "robotics/1-1"}]}
    assert code(redigested(unknown)) == "trial.invalid"


def test_a_world_of_another_version_is_refused() -> None:
    plan = json.loads(small_plan(tasks=1).to_json())
    plan["worlds"][0]["version"] = "0"
    assert code(redigested(plan)) == "trial.world"


def test_a_world_gives_only_so_many_tasks_of_an_even_trial() -> None:
    assert len(make_plan(trial(tasks=3)).tasks) == 6
