"""τ-bench and both layouts of τ²-bench: what succeeds, what the harness broke, what stays unmeasured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from tests.support.importing import counts, imported

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-secret"


def simulation(number: int, reward: float | None, **more: Any) -> dict[str, Any]:
    return {
        "id": f"s{number}",
        "task_id": str(number),
        "trial": 0,
        "start_time": "2025-08-01T16:20:44.321269",
        "termination_reason": "user_stop",
        "reward_info": None if reward is None else {"reward": reward, "action_checks": [{}, {}]},
        "messages": [{"role": "assistant", "content": "Hi"}, {"role": "user"}, {"role": "assistant"}],
    } | more


def results(simulations: list[dict[str, Any]]) -> dict[str, Any]:
    agent = {"implementation": "llm_agent", "llm": "m-1", "llm_args": {"temperature": 0.0, "api_key": KEY}}
    info = {"num_trials": 1, "agent_info": agent, "environment_info": {"domain_name": "shop"}}
    return {
        "timestamp": "2025-08-01T16:20:43",
        "info": info,
        "tasks": [{"id": "1"}, {"id": "2"}, {"id": "3"}],
        "simulations": simulations,
    }


RUNS = [
    simulation(1, 1.0),
    simulation(2, 0.0),
    simulation(3, None, termination_reason="infrastructure_error"),
]


def test_a_results_file_and_a_folder_give_the_same_records(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_bytes(canonical.line(results(RUNS)))
    account, records = imported(None, tmp_path / "one.json", tmp_path / "a")
    assert [record["outcome"] for record in records] == ["success", "failure", "harness_error"]
    assert records[0] == {
        "trace": records[0]["trace"],
        "measured": "derived",
        "run_id": "shop/1#0",
        "task_id": "shop/1",
        "condition": "nominal",
        "trial": 0,
        "domain": "shop",
        "outcome": "success",
        "steps_actual": 2,
    }
    assert account.agent.name == "m-1"
    assert counts(account, "unmeasured")["started_at"] == 3
    assert KEY.encode() not in (tmp_path / "a" / "bundle.json").read_bytes()
    folder = tmp_path / "run"
    (folder / "simulations").mkdir(parents=True)
    (folder / "results.json").write_bytes(canonical.line(results([]) | {"simulation_index": []}))
    for run in RUNS:
        (folder / "simulations" / f"{run['id']}.json").write_bytes(canonical.line(run))
    _, again = imported(None, folder, tmp_path / "b")
    assert again == records


@pytest.mark.parametrize(("runs", "told"), [(RUNS, {}), (RUNS[:1], 1), (RUNS[:1] * 3, 1)])
def test_simulations_are_as_many_as_tasks_times_trials(tmp_path: Path, runs: list[Any], told: object) -> None:
    (tmp_path / "one.json").write_bytes(canonical.line(results(runs)))
    account, _ = imported(None, tmp_path / "one.json", tmp_path / "a")
    assert counts(account, "odd").get("simulations are not as many as tasks times trials", {}) == told


def test_the_results_of_a_folder_are_read_together(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    (folder / "b" / "simulations").mkdir(parents=True)
    (folder / "a.json").write_bytes(canonical.line(results([simulation(1, 1.0), simulation(2, 0.0)])))
    other = results([])
    other["info"]["agent_info"]["llm_args"] = {"temperature": 0.7}
    (folder / "b" / "results.json").write_bytes(canonical.line(other))
    (folder / "b" / "simulations" / "s3.json").write_bytes(canonical.line(simulation(3, 1.0)))
    (folder / "c.json").write_bytes(canonical.line(results([simulation(1, 1.0)])))  # a run of a.json again
    account, records = imported(None, folder, tmp_path / "out")
    assert [(record["task_id"], record["outcome"]) for record in records] == [
        ("shop/1", "success"),
        ("shop/2", "failure"),
        ("shop/3", "success"),
    ]
    assert counts(account, "refused") == {"simulations that the log repeats": 1}
    assert counts(account, "odd") == {
        "runs of a file with another agent_info than the first": 1,
        "simulations are not as many as tasks times trials": 1,
    }


def test_files_of_tau_bench_in_a_folder_are_further_trials(tmp_path: Path) -> None:
    policy = {"role": "system", "content": "# Retail agent policy"}
    run = {"task_id": 0, "reward": 1.0, "info": {}, "traj": [policy, {"role": "assistant"}], "trial": 0}
    (tmp_path / "logs").mkdir()
    for name in "ab":
        (tmp_path / "logs" / f"{name}.json").write_bytes(canonical.line([run]))
    account, records = imported(None, tmp_path / "logs", tmp_path / "out", agent="m")
    assert [record["run_id"] for record in records] == ["retail/0#0", "retail/0#0.1"]
    assert counts(account, "odd") == {"runs of the same task and trial, taken as further trials": 1}


def test_a_results_file_whose_simulations_lie_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_bytes(canonical.line(results([])))
    with pytest.raises(CertkitError, match="the simulations are not in this file"):
        imported(None, tmp_path / "results.json", tmp_path / "out")
    (tmp_path / "logs" / "simulations").mkdir(parents=True)
    (tmp_path / "logs" / "simulations" / "s1.json").write_bytes(canonical.line(simulation(1, 1.0)))
    with pytest.raises(CertkitError, match="no `info` before the runs names the agent"):
        imported("tau", tmp_path / "logs", tmp_path / "out")


def test_times_need_a_zone_and_gold_actions_the_users_word(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_bytes(canonical.line(results(RUNS[:1])))
    file = tmp_path / "map.toml"
    file.write_text('[columns]\nsteps_oracle = "len(reward_info.action_checks)"\n')
    _, records = imported(
        None, tmp_path / "one.json", tmp_path / "out", timezone="Europe/Berlin", mapping=file, attempt=2
    )
    assert records[0]["started_at"] == "2025-08-01T16:20:44.321269+02:00"
    assert records[0]["steps_oracle"] == 2


def test_a_run_of_tau_bench_that_raised_is_a_harness_error(tmp_path: Path) -> None:
    policy = {"role": "system", "content": "# Airline Agent Policy\n…"}
    runs = [
        {"task_id": 0, "reward": 1.0, "info": {}, "traj": [policy, {"role": "assistant"}], "trial": 0},
        {"task_id": 0, "reward": 0.0, "info": {"error": "timeout"}, "traj": [], "trial": 1},
    ]
    (tmp_path / "one.json").write_bytes(canonical.line(runs))
    with pytest.raises(CertkitError) as caught:
        imported(None, tmp_path / "one.json", tmp_path / "out")
    assert (caught.value.code, caught.value.hint) == (
        "import.choice-needed",
        f"name it: certkit import {tmp_path / 'one.json'} --agent NAME -o {tmp_path / 'out'}",
    )
    account, records = imported(None, tmp_path / "one.json", tmp_path / "out", agent="m")
    assert [(r["run_id"], r["outcome"], r["domain"]) for r in records] == [
        ("airline/0#0", "success", "airline"),
        ("airline/0#1", "harness_error", "airline"),
    ]
    assert counts(account, "odd") == {"runs that ended in an exception, taken as harness errors": 1}


@pytest.mark.parametrize(
    ("mapping", "success", "rule"),
    [
        ("", None, "a reward of 1"),
        ("", "reward_info.reward >= 0", "reward_info.reward >= 0"),
        (
            '[when.outcome]\nfailure = "trial == 1"\nsuccess = "otherwise"\n',
            None,
            "failure: trial == 1; success: otherwise",
        ),
        ('[constants]\noutcome = "success"\n', None, "success on every run"),
        (
            '[columns]\noutcome = "termination_reason"\n[values.outcome]\nuser_stop = "success"\n',
            None,
            'termination_reason, read by "user_stop" = "success"',
        ),
    ],
)
def test_the_manifest_states_the_rule_that_decided(
    tmp_path: Path, mapping: str, success: str | None, rule: str
) -> None:
    (tmp_path / "one.json").write_bytes(canonical.line(results(RUNS[:2])))
    (tmp_path / "m.toml").write_text(mapping)
    out = tmp_path / "a"
    imported(None, tmp_path / "one.json", out, mapping=tmp_path / "m.toml", success=success)
    assert canonical.loads((out / "bundle.json").read_bytes())["protocol"]["success_rule"] == rule


@pytest.mark.parametrize(
    "options", [{"success": "true"}, {"mapping": "[when.outcome]\nsuccess = '1 == 1'\n"}]
)
def test_an_expression_that_names_no_column_is_refused(tmp_path: Path, options: dict[str, str]) -> None:
    (tmp_path / "one.json").write_bytes(canonical.line(results(RUNS)))
    (tmp_path / "m.toml").write_text(options.pop("mapping", ""))
    with pytest.raises(CertkitError, match="names no column"):
        imported(None, tmp_path / "one.json", tmp_path / "a", mapping=tmp_path / "m.toml", **options)


def test_a_mapping_is_told_what_a_row_of_this_format_gives(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_bytes(canonical.line(results([run | {"seq": 1} for run in RUNS])))
    (tmp_path / "m.toml").write_text('[columns]\nsequence = "seq"\n')
    with pytest.raises(CertkitError, match=r"columns\.sequence names 'seq': no row") as caught:
        imported(None, tmp_path / "one.json", tmp_path / "a", mapping=tmp_path / "m.toml")
    assert "the columns are id, task_id, trial" in str(caught.value.hint)


def test_a_simulation_that_a_log_repeats_counts_once_and_a_reward_is_a_share(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_bytes(canonical.line(results([*RUNS, RUNS[0]])))
    account, records = imported(None, tmp_path / "one.json", tmp_path / "a")
    assert (len(records), counts(account, "refused")) == (3, {"simulations that the log repeats": 1})
    for reward in (1.5, -1, "1"):
        (tmp_path / "one.json").write_bytes(canonical.line(results([simulation(1, reward)])))  # type: ignore[arg-type]
        with pytest.raises(CertkitError, match="expected a reward from 0 to 1"):
            imported(None, tmp_path / "one.json", tmp_path / "b")
    old = {"task_id": 1, "reward": 2.0, "info": {}, "traj": [{"role": "user", "content": "Hi"}], "trial": 0}
    (tmp_path / "old.json").write_bytes(canonical.line([old]))
    with pytest.raises(CertkitError, match=r"<= 1\.0"):
        imported(None, tmp_path / "old.json", tmp_path / "b", agent="a", domain="d")


def test_what_stands_in_a_wrong_place_is_told_and_a_nan_is_no_fault(tmp_path: Path) -> None:
    path, row = tmp_path / "log.json", '[{"task_id": 1, "reward": 1.0, "trial": 0, "traj": [], "info": %s}]'
    path.write_text(row % "null")
    with pytest.raises(CertkitError, match="a run as τ-bench writes it, found null where object belongs"):
        imported("tau", path, tmp_path / "none", domain="d")
    path.write_text(row % '{"cost": NaN}')
    _, [record] = imported("tau", path, tmp_path / "out", domain="d", agent="a")
    assert record["outcome"] == "success"


def test_an_id_again_with_another_result_and_rows_of_two_models_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_bytes(canonical.line(results([simulation(1, 1.0), simulation(1, 0.0)])))
    with pytest.raises(CertkitError, match="expected the result of the earlier run of this id"):
        imported(None, path, tmp_path / "a")
    run = {"reward": 1.0, "traj": [{"role": "assistant"}], "trial": 0}
    runs = [run | {"task_id": number, "info": {"model": f"m{number}"}} for number in range(2)]
    path.write_bytes(canonical.line(runs))
    with pytest.raises(CertkitError, match="several versions: m0, m1"):
        imported(None, path, tmp_path / "b", agent="m", domain="d")
