"""A pipeline that is gated on a pass rate: thresholds of its own, exit codes, what names the failing row."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from scipy import stats

from certkit.bundle.writer import seal
from tests.support import bundles
from tests.support.running import certkit

TAU = Path(__file__).resolve().parents[3] / "shared" / "evidence" / "tau" / "tau1-gpt-4o-airline.json.gz"
THIRTY = ("-p", "pass-rate", "--set", "c_nom=0.3", "--set", "domain_min_nominal=0.3")
FIFTY = ("-p", "pass-rate", "--set", "c_nom=0.5", "--set", "domain_min_nominal=0.5")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eighty normal runs of as many tasks, of which sixty succeed."""
    root = tmp_path_factory.mktemp("gate") / "bundle"
    records = [
        bundles.run(
            number,
            task_id=f"d/{number}",
            condition="nominal",
            cluster_id=f"t{number}",
            outcome="success" if number % 4 else "failure",
        )
        for number in range(80)
    ]
    bundles.of(root, records)
    seal(root)
    return root


@pytest.mark.skipif(not TAU.is_file(), reason="the shared evidence is not beside this checkout")
def test_a_tau_bench_log_is_gated_on_its_pass_rate(tmp_path: Path) -> None:
    declared, silent = tmp_path / "declared", tmp_path / "silent"
    assert certkit("import", TAU, "--agent", "x", "--independent-tasks", "-o", declared).code == 0
    assert certkit("import", TAU, "--agent", "x", "-o", silent).code == 0
    met = certkit("assess", declared, *THIRTY, "--json")
    assert met.code == 0
    assert met.document["metrics"]["c_nom"]["interval"]["low"] == pytest.approx(0.325, abs=0.001)
    assert met.document["metrics"]["c_nom"]["interval"]["high"] == pytest.approx(0.525, abs=0.001)
    [limit] = {row["bounded"]["bound"] for row in met.document["criteria"]}
    assert limit == pytest.approx(0.33, abs=0.005)
    failed = certkit("assess", declared, *FIFTY)
    assert failed.code == 1
    assert "misses\nc_nom" in failed.out or "misses c_nom" in failed.out
    undecided = certkit("assess", silent, *THIRTY)
    assert undecided.code == 4
    assert "--independent-tasks" in undecided.out


def test_reports_for_a_pipeline_name_the_row_that_failed(bundle: Path) -> None:
    asked = ("-p", "pass-rate", "--set", "domain_min_nominal=0.3")
    assert certkit("assess", bundle, *asked).code == 1
    suite = ET.fromstring(certkit("report", bundle, *asked, "--format", "junit").out)  # noqa: S314 - our own
    cases = {case.get("name"): case.find("failure") for case in suite.iter("testcase")}
    failure = cases["Nominal success (c_nom)"]
    assert failure is not None
    message = " ".join((failure.get("message") or "").split())
    limit = 100 * stats.beta(61, 21).ppf(0.05)  # one run a task
    assert message == f"asked ≥ 80 %, found 75.0 %; confidence limit {limit:.1f} %"
    assert cases["Weakest domain without faults (domain_min_nominal)"] is None
    summary = certkit("report", bundle, *asked, "--format", "summary").out
    assert "Tier 1 fails on nominal success." in summary
    assert "By profile pass-rate with domain_min_nominal ≥ 0.3." in summary


def test_a_row_without_runs_is_named_wherever_the_verdict_is(bundle: Path) -> None:
    screen = " ".join(certkit("assess", bundle, "-p", "under-attack").out.split())
    lead = "Left out, since there are no such runs:"
    assert f"{lead} adversarial_resistance and attack_success_rate." in screen
    summary = certkit("report", bundle, "-p", "under-attack", "--format", "summary").out
    assert f"{lead} success under attack and attack success rate." in summary
    suite = ET.fromstring(certkit("report", bundle, "-p", "under-attack", "--format", "junit").out)  # noqa: S314
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert cases["Success under attack (adversarial_resistance)"].find("skipped") is not None
    assert cases["Nominal success (c_nom)"].find("skipped") is None


def test_the_assessment_carries_the_changed_table(bundle: Path) -> None:
    plain = certkit("assess", bundle, "-p", "pass-rate", "--json").document
    found = certkit("assess", bundle, "-p", "pass-rate", "--set", "c_nom=0.6", "--json")
    profile = found.document["profile"]
    assert (found.code, profile["id"], profile["changed"]) == (0, "pass-rate+set", {"c_nom": {"1": 0.8}})
    assert profile["digest"] != plain["profile"]["digest"]
    assert "changed" not in plain["profile"]
    shown = certkit("profile", "show", "pass-rate", "--set", "c_nom=0.6", "--json").document
    assert shown["digest"] == profile["digest"]


def test_the_next_command_keeps_the_thresholds_that_were_set(bundle: Path) -> None:
    screen = certkit("assess", bundle, "-p", "pass-rate", "--set", "c_nom=0.6").out
    command = " ".join(screen.partition("Next: ")[2].partition("\n\n")[0].replace("\\\n", "").split())
    assert "-p pass-rate --set c_nom=0.6" in command


@pytest.mark.parametrize(
    ("change", "said"), [("c_nm=0.9", "--set c_nom=0.9"), ("c_nom=1.5", "its range is 0 to 1")]
)
def test_a_row_or_a_threshold_that_cannot_be_is_refused(bundle: Path, change: str, said: str) -> None:
    for command in ("assess", "report"):
        out = ("--format", "junit") if command == "report" else ()
        refused = certkit(command, bundle, "-p", "pass-rate", "--set", change, *out)
        assert (refused.code, refused.out) == (2, "")
        assert said in refused.err
    assert certkit("plan", "--tier", "1", "-p", "pass-rate", "--set", change).code == 2


def test_a_plan_for_a_gate_on_normal_runs_plans_normal_runs() -> None:
    planned = certkit("plan", "--tier", "1", "-p", "pass-rate", "--domains", "1", "--json").document
    assert list(planned["schedule"]["per_domain"]) == ["nominal"]
    assert planned["driver"] == "c_nom"
    assert planned["power"] >= 0.8
    attacked = certkit("plan", "--tier", "1", "-p", "under-attack", "--domains", "1", "--json").document
    assert list(attacked["schedule"]["per_domain"]) == ["nominal", "adversarial"]
