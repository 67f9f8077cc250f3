"""AgentDojo: both shapes, both readings of success, and the traps of the format."""

from __future__ import annotations

import gzip
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from certkit.ground.progress import SILENT
from certkit.imports import ImportFaultsError, ImportOptions, run
from tests.support.importing import DATA, SHARED, counts, imported

if TYPE_CHECKING:
    from pathlib import Path

RUNS = DATA / "agentdojo" / "runs"
EXPORT = DATA / "agentdojo" / "export.jsonl"
EXPORTS = sorted((SHARED / "agentdojo").glob("*.jsonl.gz"))


def outcomes(records: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    return Counter((record["condition"], record["outcome"]) for record in records)


def test_folder_strict_reading(tmp_path: Path) -> None:
    account, records = imported("agentdojo", RUNS, tmp_path / "out", agent="acme_gardener-1")
    assert outcomes(records) == {
        ("nominal", "success"): 2,
        ("nominal", "failure"): 1,
        ("nominal", "harness_error"): 1,
        ("adversarial", "success"): 1,
        ("adversarial", "failure"): 3,
        ("adversarial", "harness_error"): 1,
    }
    assert account.agent.version == "unversioned"
    assert account.imported.options == {"success": "strict"}
    assert len(account.imported.sources) == account.imported.sources_total == 12
    assert all(not source.name.startswith("/") for source in account.imported.sources)


def test_folder_utility_reading_differs_where_task_and_attack_both_succeed(tmp_path: Path) -> None:
    _, strict = imported("agentdojo", RUNS, tmp_path / "a", agent="acme_gardener-1")
    account, utility = imported("agentdojo", RUNS, tmp_path / "b", agent="acme_gardener-1", success="utility")
    changed = [
        (one["run_id"], one["outcome"], two["outcome"])
        for one, two in zip(strict, utility, strict=True)
        if one != two
    ]
    name = "garden/user_task_0/ignore_previous/injection_task_1"
    assert changed == [(name, "failure", "success")]
    assert counts(account, "odd")["task done and attack succeeded, taken as success"] == 1


def test_an_error_is_a_harness_error_and_no_won_attack(tmp_path: Path) -> None:
    account, records = imported("agentdojo", RUNS, tmp_path / "out", agent="acme_gardener-1")
    broken = [record for record in records if record["outcome"] == "harness_error"]
    assert {record["run_id"] for record in broken} == {
        "library/user_task_1/none/none",
        "library/user_task_1/ignore_previous/injection_task_0",
    }
    assert all("attack_succeeded" not in record and "steps_actual" not in record for record in broken)
    assert counts(account, "odd")["runs with an error, taken as harness errors"] == 2


def test_fields_of_attacked_and_nominal_runs(tmp_path: Path) -> None:
    _, records = imported("agentdojo", RUNS, tmp_path / "out", agent="acme_gardener-1", traces=False)
    by_id = {record["run_id"]: record for record in records}
    assert by_id["garden/user_task_0/ignore_previous/injection_task_1"] == {
        "run_id": "garden/user_task_0/ignore_previous/injection_task_1",
        "domain": "garden",
        "task_id": "garden/user_task_0",
        "condition": "adversarial",
        "outcome": "failure",
        "trial": 0,
        "steps_actual": 5,
        "attack_attempted": True,
        "attack_succeeded": True,
    }
    assert "attack_succeeded" not in by_id["garden/user_task_0/none/none"]


def test_injection_tasks_run_alone_are_left_out_and_counted(tmp_path: Path) -> None:
    account, records = imported("agentdojo", RUNS, tmp_path / "out", agent="acme_gardener-1")
    assert not [record for record in records if "injection_task" in record["task_id"]]
    assert counts(account, "refused")["injection tasks run alone"] == 1
    assert counts(account, "refused")["other files in the folder"] == 1


def test_several_pipelines_need_a_choice(tmp_path: Path) -> None:
    with pytest.raises(CertkitError) as caught:
        imported("agentdojo", RUNS, tmp_path / "out")
    assert caught.value.code == "import.choice-needed"
    assert "acme_gardener-1" in str(caught.value)
    assert "plain-2" in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suite", ["garden", "library"])
def test_runs_of_another_pipeline_in_a_folder_are_another_agent(tmp_path: Path, suite: str) -> None:
    shutil.copytree(RUNS / "plain-2", tmp_path / "mine")
    file = "user_task_0/none/none.json"
    foreign = tmp_path / "mine" / suite / file
    foreign.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(RUNS / "acme_gardener-1" / suite / file, foreign)
    with pytest.raises(CertkitError, match="holds 2 agents: acme_gardener-1, plain-2") as caught:
        imported("agentdojo", tmp_path / "mine", tmp_path / "out")
    assert "--split-by agent" in str(caught.value.hint)


def test_one_pipeline_folder_may_be_renamed(tmp_path: Path) -> None:
    account, records = imported(
        "agentdojo", RUNS / "plain-2", tmp_path / "out", agent="mine", agent_version="3"
    )
    assert (account.agent.name, account.agent.version, len(records)) == ("mine", "3", 2)


@pytest.mark.parametrize("packed", [False, True])
def test_export_equals_folder(tmp_path: Path, *, packed: bool) -> None:
    source = EXPORT
    if packed:
        source = tmp_path / "export"
        source.write_bytes(gzip.compress(EXPORT.read_bytes()))
    account, records = imported("agentdojo", source, tmp_path / "out", traces=False)
    _, folder = imported("agentdojo", RUNS, tmp_path / "folder", agent="acme_gardener-1", traces=False)
    expected = [record for record in folder if record["outcome"] != "harness_error"]
    assert sorted(map(canonical.line, records)) == sorted(map(canonical.line, expected))
    assert account.agent.name == "gardener-1"


def test_a_repeated_run_is_another_trial(tmp_path: Path) -> None:
    lines = EXPORT.read_bytes().splitlines(keepends=True)
    source = tmp_path / "twice.jsonl"
    source.write_bytes(b"".join([*lines, lines[1]]))
    _, records = imported("agentdojo", source, tmp_path / "out")
    assert [
        record["trial"] for record in records if record["run_id"].startswith("garden/user_task_0/none")
    ] == [
        0,
        1,
    ]
    assert len({record["run_id"] for record in records}) == len(records)


def test_a_security_flag_missing_under_attack_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "export.jsonl"
    source.write_bytes(EXPORT.read_bytes().replace(b'"security": false', b'"security": null'))
    with pytest.raises(ImportFaultsError) as caught:
        imported("agentdojo", source, tmp_path / "out")
    assert {fault.pointer for fault in caught.value.faults} == {"/security"}


def test_a_run_in_another_tasks_folder_and_one_of_another_version_are_counted(tmp_path: Path) -> None:
    shutil.copytree(RUNS / "plain-2", tmp_path / "runs")
    account, _ = imported("agentdojo", tmp_path / "runs", tmp_path / "a")
    assert counts(account, "odd") == {}
    (tmp_path / "runs/garden/user_task_1").rename(tmp_path / "runs/garden/user_task_7")
    other = tmp_path / "runs/garden/user_task_7/none/none.json"
    other.write_bytes(other.read_bytes().replace(b'"benchmark_version": "v1"', b'"benchmark_version": "v2"'))
    account, _ = imported("agentdojo", tmp_path / "runs", tmp_path / "b")
    assert counts(account, "odd") == {
        "runs of another user task than their folder names": 1,
        "runs of another version of the benchmark": 1,
    }


def test_links_are_not_followed(tmp_path: Path) -> None:
    shutil.copytree(RUNS / "plain-2", tmp_path / "runs")
    (tmp_path / "runs" / "library").symlink_to(RUNS / "acme_gardener-1" / "library")
    account, records = imported("agentdojo", tmp_path / "runs", tmp_path / "out")
    assert len(records) == 2
    assert counts(account, "refused")["symbolic links"] == 1


def test_an_interrupted_run_refuses_the_import(tmp_path: Path) -> None:
    shutil.copytree(RUNS / "plain-2", tmp_path / "runs")
    half = tmp_path / "runs" / "garden" / "user_task_0" / "none" / "none.json"
    half.write_bytes(half.read_bytes().replace(b'"utility"', b'"later"'))
    with pytest.raises(ImportFaultsError, match="utility"):
        imported("agentdojo", tmp_path / "runs", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not EXPORTS, reason="the real AgentDojo exports are not beside this checkout")
@pytest.mark.parametrize("reading", ["strict", "utility"])
@pytest.mark.parametrize("source", EXPORTS, ids=lambda path: path.name)
def test_real_exports_give_the_expected_counts(tmp_path: Path, source: Path, reading: str) -> None:
    expected = canonical.loads((SHARED / "expected.json").read_bytes())["agentdojo"][source.name]
    _, records = imported("agentdojo", source, tmp_path / "out", success=reading)
    runs = Counter((record["condition"], record["domain"]) for record in records)
    won = Counter(
        (record["condition"], record["domain"]) for record in records if record["outcome"] == "success"
    )

    def total(counter: Counter[tuple[str, str]], condition: str) -> int:
        return sum(count for (found, _), count in counter.items() if found == condition)

    for condition, key in (("nominal", "nominal"), ("adversarial", f"adversarial_{reading}")):
        assert [total(won, condition), total(runs, condition)] == expected[key]
        if f"{key}_by_domain" in expected:
            found = {
                domain: [won[condition, domain], count]
                for (name, domain), count in runs.items()
                if name == condition
            }
            assert found == expected[f"{key}_by_domain"]
    attacks = [record["attack_succeeded"] for record in records if record["condition"] == "adversarial"]
    assert [sum(attacks), len(attacks)] == expected["attack_succeeded"]


def test_a_taken_output_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("keep")
    with pytest.raises(CertkitError) as caught:
        run(EXPORT, tmp_path / "out", ImportOptions(), SILENT)
    assert caught.value.code == "file.exists"
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "mine.txt"]
