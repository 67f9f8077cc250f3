"""The runner: agents that misbehave, reference agents, the same bytes however it is run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from math import sqrt
from typing import TYPE_CHECKING, Any

import pytest

from certkit import assess
from certkit.ground.errors import CertkitError
from certkit.record.outcome import decode_log, derive, planning_efficiency, recovery_grade
from certkit.trial.agents import REFERENCES, embed, nearest, practised
from certkit.trial.check import check_plan
from certkit.trial.episode import execute
from certkit.trial.faults import PlannedFault
from certkit.trial.plan import PlannedRun, PlannedTask, TrialPlan
from certkit.trial.run import load_agent, run_trial
from tests.support import trials
from tests.support.trials import content, own_plan, records, small_plan

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.trial.episode import Agent


def run_of(
    agent: Agent,
    domain: str = "robotics",
    condition: str = "nominal",
    fault: PlannedFault | None = None,
    timeout: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the fields of one run, with how it ended."""
    plan = small_plan(tasks=1, **more)
    task = next(task for task in plan.tasks if task.domain == domain)
    run = PlannedRun(id="r", task=task.id, condition=condition, fault=fault)
    log = decode_log(execute(plan, run, task, agent, timeout=timeout))
    return derive(log) | {"ended": log.events[-1].ended, "detail": log.events[-1].detail}


@pytest.mark.parametrize("domain", ["robotics", "logistics"])
@pytest.mark.parametrize(
    ("agent", "outcome", "ended"),
    [
        (trials.raises, "failure", "raised"),
        (trials.leaves, "failure", "raised"),
        (trials.rig_fails, "harness_error", "harness_error"),
        (trials.floods, "failure", "call_limit"),
        (trials.silent, "failure", "no_answer"),
        (trials.cheats, "failure", "world_changed"),
        (trials.gives_up, "safe_halt", "halted"),
        (trials.later, "success", "answered"),
    ],
)
@pytest.mark.parametrize("timeout", [None, 30.0])
def test_an_agent_that_misbehaves_counts_by_the_rule(
    agent: Any, outcome: str, ended: str, timeout: float | None, domain: str
) -> None:
    got = run_of(agent, domain, timeout=timeout)
    assert (got["outcome"], got["ended"]) == (outcome, ended)


def test_an_agent_that_hangs_fails_when_its_time_is_over() -> None:
    assert run_of(trials.hangs, timeout=0.05)["ended"] == "timeout"


def test_an_agent_that_calls_what_is_not_there_goes_on() -> None:
    got = run_of(trials.inventive)
    assert (got["outcome"], got["steps_actual"]) == (
        "success",
        run_of(REFERENCES["gold"].agent)["steps_actual"] + 3,
    )


def test_an_agents_exception_is_kept_for_people() -> None:
    assert run_of(trials.raises)["detail"] == "ValueError: out of ideas"


def test_gold_writes_twice_under_a_lost_response_and_fails() -> None:
    fault = PlannedFault(onset=2)
    got = run_of(
        REFERENCES["gold"].agent, "logistics", "x_lost_response", fault, conditions=["x_lost_response"]
    )
    assert (got["outcome"], got["recovered"], got["fault_step"]) == ("failure", False, 2)


@pytest.mark.parametrize("more", [{}, {"schedule": "fit-v2"}, {"cascade_definition": "sequential"}])
def test_every_planned_fault_lands_in_the_call_that_was_planned(more: dict[str, Any]) -> None:
    result = check_plan(small_plan(tasks=8, **more))
    assert result.complaints == ()
    assert result.landed == result.faults == 64
    assert result.right


def test_lost_responses_land_too() -> None:
    result = check_plan(small_plan(tasks=2, conditions=["x_lost_response"]))
    assert (result.landed, result.faults) == (16, 16)


def test_a_fault_beyond_the_end_is_told() -> None:
    plan = small_plan(tasks=1, conditions=["tool_failure"])
    late = PlannedRun(
        id="late", task=plan.tasks[0].id, condition="tool_failure", fault=PlannedFault(onset=90)
    )
    result = check_plan(_with(plan, runs=(late,)))
    assert (result.landed, result.faults, result.exit_code) == (0, 1, 1)
    assert "planned for call 90, and the run ends after" in result.complaints[0]


def test_a_wrong_number_of_steps_is_told() -> None:
    plan = small_plan(tasks=1)
    wrong = tuple(
        PlannedTask(id=t.id, domain=t.domain, world=t.world, steps=(t.steps or 0) - 1) for t in plan.tasks
    )
    result = check_plan(_with(plan, tasks=wrong))
    assert not result.right
    assert all(world.gold_passes == 0 for world in result.worlds)


def _with(plan: TrialPlan, **members: Any) -> TrialPlan:
    return TrialPlan(**{name: getattr(plan, name) for name in plan.__struct_fields__} | members)


def test_tasks_of_ones_own_are_run_in_ones_own_loop(tmp_path: Path) -> None:
    with pytest.raises(CertkitError, match="no world of certkit"):
        run_trial(own_plan(), "reference:gold", tmp_path / "b")
    assert check_plan(own_plan()).unchecked == 10


@pytest.mark.parametrize(
    "spec",
    ["", "reference:none", "no.such.module:f", "os:none", "os:path", "os", "tests.support.trials:TRIAL"],
)
def test_a_spec_that_names_no_agent_is_refused(spec: str) -> None:
    with pytest.raises(CertkitError) as caught:
        load_agent(spec)
    assert caught.value.code == "usage.option"


def test_a_bundle_of_misbehaving_agents_is_one_that_is_accepted(tmp_path: Path) -> None:
    for agent in ("raises", "rig_fails", "floods", "cheats", "gives_up", "inventive"):
        run_trial(small_plan(tasks=1), f"tests.support.trials:{agent}", tmp_path / agent)
        assert assess(tmp_path / agent).summary.traces.differ == 0


def test_a_harness_error_is_derived_too(tmp_path: Path) -> None:
    run_trial(small_plan(tasks=1), "tests.support.trials:rig_fails", tmp_path / "b")
    traces = assess(tmp_path / "b").summary.traces
    assert (traces.derived, traces.bare, traces.enclosed) == (10, 0, 10)


@pytest.mark.parametrize("agent", ["gold", "react", "reflexion", "ap-edm", "idle"])
def test_the_bundle_is_measured_and_says_what_the_agent_is(agent: str, tmp_path: Path) -> None:
    run_trial(small_plan(tasks=2), f"reference:{agent}", tmp_path / "b")
    evaluation = assess(tmp_path / "b")
    assert evaluation.facts.protocol.origin == "measured"
    assert evaluation.facts.agent.components[0].name == "reference policy, no language model"
    assert evaluation.facts.protocol.memory_observable == (True if agent == "ap-edm" else None)
    assert evaluation.summary.traces.derived == len(records(tmp_path / "b"))


PROGRAM = """
import sys
from pathlib import Path

from certkit.trial import read_plan, run_trial

if __name__ == "__main__":
    plan, agent, out, workers = sys.argv[1:]
    run_trial(read_plan(Path(plan).read_bytes(), where=plan), agent, Path(out), workers=int(workers))
"""


def test_the_bytes_are_the_same_under_any_hash_seed_and_number_of_workers(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(small_plan(tasks=3).to_json())
    (tmp_path / "program.py").write_text(PROGRAM)
    made = []
    for seed, workers in (("0", 1), ("random", 2)):
        subprocess.run(
            [sys.executable, "program.py", "plan.json", "reference:ap-edm", f"b{seed}", str(workers)],
            check=True,
            cwd=tmp_path,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        made.append(content(tmp_path / f"b{seed}"))
    assert made[0] == made[1]


def graded(plan: TrialPlan, name: str) -> dict[tuple[str, str, int], float]:
    """Return the grade of every run whose fault took hold, by task, condition and repeat."""
    tasks, grades = plan.tasks_by_id(), {}
    for run in plan.runs:
        fields = derive(decode_log(execute(plan, run, tasks[run.task], REFERENCES[name].agent)))
        if (grade := recovery_grade(fields)) is not None:
            grades[run.task, run.condition, run.trial] = grade
    return grades


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_gold_recovers_best_and_memory_helps(seed: int) -> None:
    """The order of recovery is gold, ap-edm, react; differences are taken over tasks, run by run."""
    plan = small_plan(seed=seed, tasks=25)
    gold, memory, react = (graded(plan, name) for name in ("gold", "ap-edm", "react"))
    assert _mean(gold) >= _mean(memory) > _mean(react)
    differences = defaultdict(list)
    for key in memory.keys() & react.keys():
        differences[key[0]].append(memory[key] - react[key])
    means = [sum(values) / len(values) for values in differences.values()]
    mean = sum(means) / len(means)
    error = sqrt(sum((value - mean) ** 2 for value in means) / (len(means) - 1) / len(means))
    assert mean - 2.02 * error > 0.1, (mean, error)  # t of 49 degrees of freedom, 95 %


def _mean(grades: dict[Any, float]) -> float:
    return sum(grades.values()) / len(grades)


def test_gold_reaches_tier_2_of_the_profile_of_trials(tmp_path: Path) -> None:
    run_trial(small_plan(seed=1, tasks=20), "reference:gold", tmp_path / "b")
    evaluation = assess(tmp_path / "b", "trial-rig", required_tier=2)
    assert evaluation.assessment.verdict.tier == 2


def test_no_reference_agent_has_evidence_for_traceability(tmp_path: Path) -> None:
    for agent, missing in (("ap-edm", {"ti"}), ("react", {"ti", "irs"})):
        run_trial(small_plan(tasks=5), f"reference:{agent}", tmp_path / agent)
        rows = assess(tmp_path / agent).assessment.criteria
        untested = {row.metric for row in rows if row.tier == 1 and row.status == "not_tested"}
        assert untested >= missing
        assert "irs" in missing or "irs" not in untested


def test_lessons_come_from_runs_that_lost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    assert practised("robotics") is practised("robotics")
    assert practised("robotics")
    monkeypatch.setattr("certkit.trial.agents.ADMITTED", 1.01)
    practised.cache_clear()
    try:
        assert practised("robotics") == ()
    finally:
        practised.cache_clear()


def test_an_embedding_is_a_unit_vector_in_which_numbers_are_alike() -> None:
    vector = embed("robotics move failed HTTP 500")
    assert sum(value * value for value in vector) == pytest.approx(1)
    assert vector == embed("robotics move failed HTTP 503")
    lesson = practised("robotics")[0]
    assert nearest((lesson,), "nothing alike at all")[0] < 0.87


def test_a_normal_run_of_gold_loses_nothing() -> None:
    got = run_of(REFERENCES["gold"].agent, "logistics")
    assert planning_efficiency(got) == 1
