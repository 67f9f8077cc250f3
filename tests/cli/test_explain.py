"""``certkit explain`` and ``assess --baseline``: what stands behind a screen."""

from __future__ import annotations

import ast
import base64
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from certkit.assessment.bundles import attains_tier
from certkit.assessment.catalogue import CATALOGUE
from certkit.assessment.findings import FINDINGS
from certkit.cli.commands.explain import known
from certkit.ground import canonical
from certkit.ground.errors import CODES, CertkitError
from certkit.record.record import FIELDS
from certkit.report.argument.challenges import STANDING
from certkit.simulation.simulate import simulate
from tests.generate import ROOT, exits
from tests.support import bundles
from tests.support.bundles import run
from tests.support.passports import of_bundle
from tests.support.running import certkit


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("r_op", ("criterion", "[26] eq. 2", "over fault runs", "Tier 2 of hb-eval-2026  > 80 %")),
        ("gap", ("metric", "record both nominal runs and runs under faults")),
        ("unsealed", ("finding", "warning\n")),
        ("record.success-not-recovered", ("code", "although the fault took hold")),
        ("/recovered: expected nothing [record.nominal-with-fault]", ("code",)),
        ("fragile:x", ("challenge",)),
        (
            "Who owns it, and with what rationale? [assumption-unowned:G4, against G4]",
            ("challenge", "Who owns …, and with what rationale?", "context.json"),
        ),
        ("core-evidence", ("core-evidence is a finding", "severity  serious")),
        ("Bounded reading", ("word", "bound")),
        ("partial", ("word", "no value is shown")),
        ("fault_step", ("column",)),
        *((head, ("is a word",)) for head in ("criterion", "value", "bound", "n", "Tier 3")),
        ("Confidence in success (posterior)", ("posterior is a criterion", "1 - 0.6 ** 8 = 0.983")),
        ("Operational reliability", ("r_op is a criterion",)),
        ("Violations", ("violations is a criterion",)),
        ("csi", ("decides                 nothing: it is provisional", "CSI 0 in 43 %")),
    ],
)
def test_a_name_on_the_screen_is_explained(name: str, said: tuple[str, ...]) -> None:
    done = certkit("explain", name)
    assert (done.code, done.err) == (0, "")
    for text in said:
        assert text in done.out


def test_everything_with_a_name_is_known() -> None:
    names = known("hb-eval-2026")
    assert {*CATALOGUE, *(row.code for row in FINDINGS), *FIELDS, *CODES, *STANDING} - set(names) == set()
    assert [name for name, told in names.items() if not told.text] == []


def test_the_arithmetic_of_every_example_holds() -> None:
    told = known("hb-eval-2026")
    sums = re.findall(
        r"([\d(][\d.,() */+-]*) = ([\d.]+)",
        "\n".join(told[name].facts.get("example", "") for name in CATALOGUE),
    )
    assert len(sums) == sum("example" in told[name].facts for name in CATALOGUE)
    for term, result in sums:
        places = len(result.partition(".")[2])
        assert round(eval(term, {}), places) == float(result)  # noqa: S307 - arithmetic of our own file


def test_every_error_exits_as_its_page_says() -> None:
    kinds = {kind.__name__: kind for kind in CertkitError.__subclasses__()}
    for path in (ROOT / "certkit").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds:
                code = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
                text = exits()[str(code)] if code in CODES else "of the verification"
                if "of the" not in text:
                    assert str(int(kinds[node.func.id].exit_code)) in text, (code, path)


def test_an_unknown_name_brings_the_nearest() -> None:
    done = certkit("explain", "rop")
    assert (done.code, "hint: certkit explain r_op\n" in done.err) == (2, True)
    assert "hint: certkit explain " not in certkit("explain", "weather").err  # nothing is near


def test_a_drift_against_the_baseline_fails_what_meets_its_tier(tmp_path: Path) -> None:
    simulate(tmp_path / "strong", seed=1, runs=600, tier_target=2, attains=attains_tier)
    simulate(tmp_path / "weak", seed=2, runs=600, tier_target=1, attains=attains_tier)
    baseline = tmp_path / "passport.json"
    baseline.write_bytes(of_bundle(tmp_path / "strong").to_json())
    before = baseline.read_bytes()
    for bundle, code, said in (("strong", 0, "STABLE"), ("weak", 5, "DRIFTED: the agent behaves worse: ")):
        done = certkit("assess", tmp_path / bundle, "--baseline", baseline)
        assert done.code == code
        assert f"Baseline {baseline} (signature not checked): {said}" in " ".join(done.out.split())
        told = certkit("assess", tmp_path / bundle, "--baseline", baseline, "--json").document["baseline"]
        assert (told["result"], any(row["flagged"] for row in told["behaviour"])) == (
            said.partition(":")[0],
            code == 5,
        )
    other = certkit("simulate", "-o", tmp_path / "other", "--runs", 300, "--agent", "courier", "-q")
    assert other.code == 0
    told = certkit("assess", tmp_path / "other", "--baseline", baseline, "--json").document["baseline"]
    assert told["identity"]
    fewer = certkit("simulate", "-o", tmp_path / "fewer", "--runs", 600, "--domains", 4, "-q")
    assert fewer.code == 0
    done = certkit("assess", tmp_path / "fewer", "--baseline", tmp_path / "strong", "-q")
    assert (done.code, done.out, "NOT_COMPARABLE" in done.err) == (4, "", True)
    few = bundles.of(tmp_path / "few", [run(0, condition="stochastic")])
    done = certkit("assess", few, "--baseline", tmp_path / "strong")
    reasons = certkit("assess", few, "--baseline", tmp_path / "strong", "--json").document["baseline"][
        "reasons"
    ]
    assert len(reasons) > 1
    said = "NOT_COMPARABLE: the two sides measure different things"
    assert f" Baseline {tmp_path / 'strong'}: {said}: {reasons[0]} " in " ".join(done.out.split())
    assert max(map(len, done.out.replace(str(tmp_path), "").splitlines())) <= 80
    assert baseline.read_bytes() == before
    document = canonical.loads(before)
    payload = canonical.loads(base64.b64decode(document["dsseEnvelope"]["payload"]))
    payload["predicate"]["summary"]["cells"][0]["counts"]["success"] -= 1
    document["dsseEnvelope"]["payload"] = base64.b64encode(canonical.canonical(payload)).decode()
    baseline.write_bytes(canonical.canonical(document))
    assert certkit("assess", tmp_path / "strong", "--baseline", baseline, "-q").code == 3
    two = certkit("assess", tmp_path / "strong", tmp_path / "weak", "--baseline", baseline, "--json")
    assert two.document["error"]["code"] in {"usage.option", "bundle.different"}


def test_missing_evidence_does_not_hide_a_drift(tmp_path: Path) -> None:
    for name, every in (("good", 20), ("worse", 4)):
        outcomes = ("success" if i % every else "failure" for i in range(400))
        runs = [
            run(i, task_id=f"t{i}", condition="stochastic", outcome=told) for i, told in enumerate(outcomes)
        ]
        bundles.of(tmp_path / name, runs)
    worse = ("assess", tmp_path / "worse", "-q")
    assert (certkit(*worse).code, certkit(*worse, "--baseline", tmp_path / "good").code) == (4, 5)


def test_a_simulated_agent_has_the_name_that_it_is_given(tmp_path: Path) -> None:
    done = certkit(
        *("simulate", "-o", tmp_path / "b", "--runs", 300, "--agent", "courier"),
        *("--agent-version", "2", "-q"),
    )
    assert done.code == 0
    manifest = canonical.loads((tmp_path / "b" / "bundle.json").read_bytes())
    assert manifest["agent"] == {"name": "courier", "version": "2"}


def test_the_action_fails_as_the_verdict_does_and_says_why(tmp_path: Path) -> None:
    text = (ROOT / "docs/how-to/action/action.yml").read_text(encoding="utf-8")
    script = textwrap.dedent(text.partition("run: |\n")[2])
    for name, tier in (("good", 1), ("best", 3)):
        simulate(tmp_path / name, seed=1, runs=300, tier_target=tier, attains=attains_tier)
    told = {"PROFILE": "hb-eval-2026", "GITHUB_STEP_SUMMARY": "summary", "REQUIRE_TIER": "1"}
    told |= {"THRESHOLDS": "", "IMPORT": ""}
    told["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def run_script(bundle: str, baseline: str) -> tuple[int, str, set[str]]:
        (tmp_path / "summary").write_text("")
        environment = os.environ | told | {"BUNDLE": bundle, "BASELINE": baseline}
        command = ["bash", "-eo", "pipefail", "-c", script]  # as the service calls it
        done = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True)
        written = {path.name for path in tmp_path.glob("certkit-*")}
        return done.returncode, (tmp_path / "summary").read_text(encoding="utf-8"), written

    files = {"certkit-assessment.json", "certkit-junit.xml", "certkit-summary.md"}
    code, summary, written = run_script("good", "best")
    assert (code, written) == (5, files)
    assert "\n    Baseline best: DRIFTED" in summary
    told |= {"PROFILE": "pass-rate", "THRESHOLDS": "c_nom=0.9 domain_min_nominal=0.5"}
    code, summary, written = run_script("good", "")
    assert (code, written) == (1, files)
    assert '    "simulated-agent 1.0.0"' in summary
    assert "sections 8 and 9." in summary
    assert "Sections are those of the report" in summary
    assert "Biggest gap: Nominal success (c_nom)" in summary
    assert "Tier 1 fails on nominal success." in summary
    told |= {"PROFILE": "hb-eval-2026", "THRESHOLDS": "", "IMPORT": "--agent\nmy agent\n"}
    (tmp_path / "log.jsonl").write_bytes(bundles.lines([run(i, outcome="failure") for i in range(3)]))
    code, summary, written = run_script("log.jsonl", "")
    assert (code, written) == (4, files)
    assert '    "my agent": 0.0 % of normal runs succeed (0 of 3)' in summary
    assert "\n- 0: failure, nominal\n" in summary
    code, summary, written = run_script("nowhere", "")  # nothing of the bundle before is left to be shown
    assert (code, written) == (3, set())
    assert summary == "    error: nowhere: not found\n    hint: a bundle is a folder with a bundle.json\n"


def test_the_hook_refuses_a_bundle_that_does_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs/how-to/pre-commit-config.yaml").read_text(encoding="utf-8")
    entry = text.partition("entry: certkit ")[2].partition("\n")[0].split()
    arguments = text.partition("args: [")[2].partition("]")[0].split(", ")
    monkeypatch.chdir(tmp_path)
    bundles.of(tmp_path / "bundle", [run(0)])
    assert certkit("bundle", "seal", "bundle").code == 0
    assert certkit(*entry, *arguments).code == 0
    (tmp_path / "bundle" / "records" / "a.jsonl").write_bytes(b"")
    assert certkit(*entry, *arguments).code == 3
