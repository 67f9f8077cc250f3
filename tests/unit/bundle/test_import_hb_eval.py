"""HB-Eval's published records: one bundle per model, nothing repaired, everything odd said."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from certkit.bundle.folder import open_bundle
from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from certkit.ground.progress import SILENT
from certkit.imports import ImportFaultsError, ImportOptions, run
from tests.support.importing import DATA, SHARED, counts, written

if TYPE_CHECKING:
    from pathlib import Path

B = DATA / "hb-eval" / "methodology_b.json"
C = DATA / "hb-eval" / "methodology_c.json"


def campaign(source: Path, out: Path, **options: Any) -> dict[str, Any]:
    accounts = run(
        source, out, ImportOptions(**({"format": "hb-eval", "split_by": "agent"} | options)), SILENT
    )
    assert {account.out.parent for account in accounts} == {out}
    return {account.agent.name: account for account in accounts}


def rows(source: Path) -> list[dict[str, Any]]:
    value = canonical.loads(source.read_bytes())
    assert isinstance(value, list)
    return value


def store(path: Path, value: object) -> Path:
    path.write_text(canonical.pretty(value))
    return path


def test_one_bundle_per_model(tmp_path: Path) -> None:
    accounts = campaign(B, tmp_path / "out")
    assert {name: account.out.name for name, account in accounts.items()} == {
        "north/alpha-7b": "north-alpha-7b",
        "Beta 9": "beta-9",
    }
    assert {name: len(written(account)) for name, account in accounts.items()} == {
        "north/alpha-7b": 6,
        "Beta 9": 2,
    }


def test_records_say_what_the_rows_say(tmp_path: Path) -> None:
    by_id = {record["run_id"]: record for record in written(campaign(B, tmp_path / "out")["north/alpha-7b"])}
    assert by_id["orchard/3"] == {
        "run_id": "orchard/3",
        "domain": "orchard",
        "task_id": "orchard/3",
        "condition": "cascade",
        "outcome": "failure",
        "violations": 3,
        "layer2_score": 0.25,
        "attack_attempted": True,
    }
    assert by_id["harbour/1"]["condition"] == "nominal"
    assert by_id["harbour/1"]["layer3_score"] == 1.0
    assert "attack_attempted" not in by_id["harbour/1"]


def test_oddities_are_counted(tmp_path: Path) -> None:
    accounts = campaign(B, tmp_path / "out")
    assert counts(accounts["north/alpha-7b"], "odd") == {
        "layer3_score without a judgement": 3,
        "success although the judge failed": 1,
        "empty responses": 1,
        "empty responses scored as failures with violations": 1,
        "failure at or above the paper's composite of 0.70": 1,
    }
    unmeasured = counts(accounts["north/alpha-7b"], "unmeasured")
    assert unmeasured["layer3_score"] == 2
    assert unmeasured["started_at"] == unmeasured["sequence"] == 6
    assert counts(accounts["Beta 9"], "odd")["timestamps that go backwards in the file"] == 1


def test_methodologies_are_told_apart_by_their_judge(tmp_path: Path) -> None:
    for source, name, methodology, independent in (
        (B, "Beta 9", "constraint_verification", False),
        (C, "Gamma-Pro", "independent_judge", True),
    ):
        account = campaign(source, tmp_path / source.stem)[name]
        protocol = open_bundle(account.out).manifest.protocol
        assert protocol.methodology == methodology
        assert protocol.judge is not None
        assert protocol.judge.independent is independent
        assert (protocol.judge.name == name) is not independent
        assert protocol.cascade_definition == "simultaneous"


def test_mixed_methodologies_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CertkitError) as caught:
        campaign(store(tmp_path / "mixed.json", rows(B) + rows(C)), tmp_path / "out")
    assert caught.value.code == "import.source"
    assert not (tmp_path / "out").exists()


def test_a_run_id_repeated_within_a_model_is_kept_apart_and_said(tmp_path: Path) -> None:
    account = campaign(store(tmp_path / "twice.json", rows(C) + rows(C)[:1]), tmp_path / "out")["Gamma-Pro"]
    assert [record["run_id"] for record in written(account)] == ["harbour/0", "orchard/1", "harbour/0#2"]
    assert counts(account, "odd")["run_id repeated within the model"] == 1


def test_one_model_can_be_chosen_and_renamed_versions_fit_one_only(tmp_path: Path) -> None:
    assert list(campaign(B, tmp_path / "b", agent="Beta 9", agent_version="9")) == ["Beta 9"]
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["beta-9"]
    for options in ({"agent": "gamma"}, {"agent_version": "2"}, {"split_by": None}):
        with pytest.raises(CertkitError) as caught:
            campaign(B, tmp_path / "c", **options)
        assert caught.value.code == "import.choice-needed"


def test_models_whose_names_meet_get_folders_of_their_own(tmp_path: Path) -> None:
    value = [row | {"model": model} for row in rows(C) for model in ("A/b", "a b", "..", "con", "\u2603")]
    accounts = campaign(store(tmp_path / "names.json", value), tmp_path / "out")
    folders = [account.out.name for account in accounts.values()]
    assert len(set(folders)) == 5
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(folders)


def test_a_session_of_the_sdk_needs_to_be_told_the_domain_and_the_outcome(tmp_path: Path) -> None:
    session = DATA / "hb-eval" / "sdk-session.json"
    with pytest.raises(ImportFaultsError) as caught:
        campaign(session, tmp_path / "out")
    options = "--domain NAME --condition nominal --success EXPRESSION"
    assert f"certkit import hb-eval {session} --split-by agent {options}" in " ".join(
        str(caught.value.hint).split()
    )
    (account,) = campaign(
        session,
        tmp_path / "out",
        domain="d",
        condition="nominal",
        success="status == 'completed'",
    ).values()
    [record] = written(account)
    value = canonical.loads(session.read_bytes())
    assert record["steps_actual"] == value["step_count"]
    assert (record["outcome"], record["run_id"]) == ("success", value["session_id"])
    assert record["task_id"] == value["session_id"]
    ours = {name for name in record if not name.startswith("x_")}
    assert ours == {"run_id", "task_id", "domain", "condition", "outcome", "steps_actual"}
    named = {name: held for name, held in record.items() if name.startswith("x_")}
    assert named == {"x_hbsdk_pei": 1.0, "x_hbsdk_frr": 0.5}  # which mean other things than ours
    (tmp_path / "session.json").write_bytes(canonical.line(value | {"faults_injected": 2}))
    with pytest.raises(ImportFaultsError, match="/faults_injected: expected no fault in a nominal run"):
        campaign(tmp_path / "session.json", tmp_path / "b", domain="d", condition="nominal")


def test_methodology_a_says_what_it_says(tmp_path: Path) -> None:
    first = {"model": "M", "domain": "d", "success": 1, "response": "API_ERROR"}
    value = [first | {"run": 1, "fault_injected": True}, first | {"run": 1, "fault_injected": False}]
    (account,) = campaign(store(tmp_path / "a.json", value), tmp_path / "out").values()
    found = [(record["run_id"], record["condition"], record["outcome"]) for record in written(account)]
    assert found == [("d/1", "x_fault", "success"), ("d/1#2", "nominal", "success")]
    assert counts(account, "odd")["responses that are API_ERROR"] == 2
    assert account.agent.components[0].name == "M"


@pytest.mark.parametrize(
    "more",
    [
        {"fault_injected": False, "fault_type": "adversarial"},
        {"fault_injected": True, "fault_type": "none"},
        {"fault_injected": True, "binary_success": 0},
    ],
)
def test_a_row_of_methodology_a_that_contradicts_itself_is_refused(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    row = {"model": "M", "domain": "d", "success": 1, "response": "", "run": 1}
    with pytest.raises(ImportFaultsError, match="members that contradict each other"):
        campaign(store(tmp_path / "a.json", [row | more]), tmp_path / "out")


def test_every_bad_row_is_named_with_its_line(tmp_path: Path) -> None:
    source = tmp_path / "bad.json"
    source.write_bytes(
        b'[\n{"run_id": 1},\n"text",\n\n{"run_id": 2, "run_id": 3},\n' + canonical.line(rows(C)[0]) + b"]\n"
    )
    with pytest.raises(ImportFaultsError) as caught:
        campaign(source, tmp_path / "out")
    assert [fault.line for fault in caught.value.faults] == [2, 3, 5]
    assert caught.value.faults[2].code == "json.duplicate-key"
    assert caught.value.to_dict()["total"] == 3


@pytest.mark.skipif(
    not (SHARED / "hb-eval").is_dir(), reason="the real HB-Eval records are not beside this checkout"
)
@pytest.mark.parametrize("letter", ["b", "c"])
def test_real_samples_keep_every_row(tmp_path: Path, letter: str) -> None:
    source = SHARED / "hb-eval" / f"methodology_{letter}_sample.json"
    expected = canonical.loads((SHARED / "expected.json").read_bytes())["hb-eval"][source.name]["rows"]
    accounts = campaign(source, tmp_path / "out")
    assert sum(account.imported.records for account in accounts.values()) == expected == len(rows(source))
    for name, account in accounts.items():
        mine = [row for row in rows(source) if row["model"] == name]
        found = Counter(
            (record["condition"], record["outcome"], record["violations"]) for record in written(account)
        )
        assert found == Counter(
            (
                {"none": "nominal", "cascade_failure": "cascade"}.get(row["fault_type"], row["fault_type"]),
                "success" if row["success"] else "failure",
                row["violation_count"],
            )
            for row in mine
        )
        failed = sum(row["judge_reason"] == "judge_failed" for row in mine)
        assert counts(account, "unmeasured").get("layer3_score", 0) == failed
        empty = sum(row["response_length"] == 0 for row in mine)
        assert counts(account, "odd").get("empty responses", 0) == empty
