"""Every command: what it prints where, its exit code, and what it leaves on the disk."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from certkit.assessment.bundles import assess_bundles
from certkit.assessment.profile_file import packaged_profiles
from certkit.ground import canonical
from certkit.ground.errors import CODES
from tests.support import bundles
from tests.support.bundles import run
from tests.support.demonstration import on_its_day
from tests.support.running import certkit

if TYPE_CHECKING:
    from tests.support.demonstration import Demonstration

DATA = Path(__file__).parents[1] / "data"


def listing(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


# --- bundle


def test_init_writes_a_manifest_and_tells_what_is_next(tmp_path: Path) -> None:
    root = tmp_path / "new"
    done = certkit("bundle", "init", root, "--agent", "triage", "--version", "1.4.0")
    assert done.code == 0
    assert done.out == f"{root}/bundle.json written\n"
    assert done.err.startswith("hint: ")
    written = canonical.loads((root / "bundle.json").read_bytes())
    assert re.fullmatch("[0-9a-f]{64}", written["protocol"]["task_salt"])
    assert written == {
        "$schema": "urn:certkit:bundle:v1",
        "schema": "urn:certkit:bundle:v1",
        "agent": {"name": "triage", "version": "1.4.0"},
        "protocol": {"origin": "measured", "task_salt": written["protocol"]["task_salt"]},
    }
    assert [path.name for path in root.iterdir() if path.is_dir()] == ["records"]


def test_init_does_not_overwrite(bundle: Path) -> None:
    before = listing(bundle)
    done = certkit("bundle", "init", bundle, "--agent", "a", "--version", "1")
    assert (done.code, done.out) == (2, "")
    assert "exists" in done.err
    assert listing(bundle) == before


@pytest.mark.parametrize(
    "arguments", [("--agent", "", "--version", "1"), ("--agent", "a", "--version", "v" * 513)]
)
def test_init_refuses_names_that_the_manifest_cannot_hold(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = certkit("bundle", "init", tmp_path / "b", *arguments)
    assert (done.code, done.out) == (3, "")
    assert not (tmp_path / "b").exists()


def test_sealing_tells_the_digest_that_opening_finds(bundle: Path) -> None:
    before = certkit("bundle", "check", bundle, "--json").document
    sealed = certkit("bundle", "seal", bundle)
    assert sealed.code == 0
    assert sealed.err == ""
    assert before["digest"] in sealed.out
    after = certkit("bundle", "check", bundle, "--json").document
    assert (before["sealed"], after["sealed"]) == (False, True)
    assert after["digest"] == before["digest"]
    again = certkit("bundle", "seal", bundle, "--json").document
    assert again == {"schema": "urn:certkit:bundle-seal:v1", "digest": before["digest"], "files": 1}


def test_a_changed_file_is_named_with_both_digests(bundle: Path) -> None:
    certkit("bundle", "seal", bundle)
    with (bundle / "records" / "a.jsonl").open("ab") as stream:
        stream.write(bundles.line(run(9)))
    done = certkit("assess", bundle, "-o", bundle.parent / "never.json")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: records/a.jsonl: changed after sealing; expected sha256 ")
    assert len(set(re.findall(r"\b[0-9a-f]{64}\b", done.err))) == 2
    assert not (bundle.parent / "never.json").exists()


def test_validate_counts_what_is_there(bundle: Path) -> None:
    done = certkit("bundle", "check", bundle)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("valid: 3 records")
    assert "not sealed" in done.out
    assert certkit("bundle", "check", bundle, "--json").document["records"] == 3


def test_validate_lists_all_faults(bad: Path) -> None:
    done = certkit("bundle", "check", bad)
    assert (done.code, done.out) == (3, "")
    assert [line for line in done.err.splitlines() if "records/a.jsonl:" in line] == [
        (
            "  records/a.jsonl:2 /trial: expected an integer from 0 to 9,007,199,254,740,991, found -1"
            " [record.value]"
        ),
        (
            "  records/a.jsonl:3 /surprise: expected a field of the record format, or an x_ prefix, found 1 "
            "[record.unknown-field]"
        ),
    ]
    assert done.err.splitlines()[0] == "error: 2 problems in the records"
    assert done.err.splitlines()[-1].startswith("hint: ")


def test_show_tells_what_the_records_cover(bundle: Path) -> None:
    done = certkit("bundle", "check", bundle)
    assert (done.code, done.err) == (0, "")
    rows = [line.split() for line in done.out.splitlines()]
    assert ["domain", "condition", "successes/runs"] in rows
    assert ["d", "nominal", "1/2"] in rows
    assert ["e", "adversarial", "1/1"] in rows
    document = certkit("bundle", "check", bundle, "--json").document
    assert document["coverage"][0] == {
        "split": "standard",
        "domain": "d",
        "condition": "nominal",
        "runs": 2,
        "success": 1,
        "harness_error": 0,
    }
    assert "files" not in document["manifest"]


# --- assess


def test_assess_prints_a_table_and_a_verdict_in_words(bundle: Path) -> None:
    done = certkit("assess", bundle)
    assert (done.code, done.err) == (4, "")
    assert "No tier of hb-eval-2026 is met. Tier 1 " in done.out.replace("\n", " ")
    rows = ("r_op", "domain_min", "posterior"), ("frr", "pei", "irs", "ti", "csi", "violations")
    everything = certkit("assess", bundle, "-v").out
    assert ("For Tier 1:" in done.out, "For Tier 1:" in everything) == (False, True)
    for evidence, names in zip((True, False), rows, strict=True):
        for name in names:
            row = re.compile(rf"^{name.title()} |\({name}\) ", re.MULTILINE)
            assert (bool(row.search(done.out)), bool(row.search(everything))) == (evidence, True), name


def test_assess_gives_the_same_document_on_stdout_in_a_file_and_as_an_object(
    bundle: Path, tmp_path: Path
) -> None:
    printed = certkit("assess", bundle, "--json")
    written = certkit("assess", bundle, "-o", tmp_path / "deep" / "out.json")
    assert printed.code == written.code == 4
    assert written.out.endswith("/deep/out.json\n")
    assert printed.out.encode() == (tmp_path / "deep" / "out.json").read_bytes()
    assert printed.document == assess_bundles(bundle).to_dict()
    assert printed.document["schema"] == "urn:certkit:assessment:v1"


def test_quiet_says_nothing_and_the_code_tells(bundle: Path, tmp_path: Path) -> None:
    done = certkit("assess", bundle, "-q", "-o", tmp_path / "out.json")
    assert (done.code, done.out, done.err) == (4, "", "")
    assert (tmp_path / "out.json").is_file()


def test_exit_zero_hides_verdicts_and_no_errors(bundle: Path, bad: Path, tmp_path: Path) -> None:
    assert certkit("assess", bundle, "--exit-zero").code == 0
    assert certkit("assess", bad, "--exit-zero").code == 3
    assert certkit("assess", tmp_path / "none", "--exit-zero").code == 3
    assert certkit("assess", bundle, "--exit-zero", "-p", "none").code == 2


def test_a_refused_bundle_leaves_no_output(bad: Path, tmp_path: Path) -> None:
    done = certkit("assess", bad, "-o", tmp_path / "out.json")
    assert (done.code, done.out) == (3, "")
    assert not (tmp_path / "out.json").exists()


def test_the_required_tier_decides_the_code(tmp_path: Path) -> None:
    root = tmp_path / "b"
    assert certkit("simulate", "-o", root, "--tier-target", "1", "--runs", "300").code == 0
    codes = [certkit("assess", root, "--require-tier", tier, "-q").code for tier in (1, 2, 3)]
    assert codes == [0, 1, 1]
    document = certkit("assess", root, "--require-tier", 2, "--json").document
    assert (document["verdict"]["tier"], document["verdict"]["status"]) == (1, "not_met")


@pytest.mark.parametrize("tier", ["0", "4", "10", "x", "1.5"])
def test_a_tier_that_is_none_is_a_usage_error(bundle: Path, tier: str) -> None:
    done = certkit("assess", bundle, "--require-tier", tier, "--json")
    assert done.code == 2
    assert done.document["error"]["code"] == "usage.option"


def test_verbose_adds_findings_for_information(bundle: Path) -> None:
    short, long = certkit("assess", bundle).out, certkit("assess", bundle, "-v").out
    assert "nominal-share" not in short
    assert "nominal-share" in long


def test_another_profile_gives_other_rows(bundle: Path, tmp_path: Path) -> None:
    rows = {
        row["id"] for row in certkit("assess", bundle, "-p", "hb-eval-2025", "--json").document["criteria"]
    }
    assert "transparency_index" in rows
    copy = tmp_path / "mine.toml"
    copy.write_text(certkit("profile", "show", "hb-eval-2025", "--toml").out, encoding="utf-8")
    same = certkit("assess", bundle, "-p", copy, "--json").document
    assert {row["id"] for row in same["criteria"]} == rows


def test_settings_come_from_the_environment_and_flags_win(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CERTKIT_PROFILE", "hb-eval-2025")
    assert certkit("assess", bundle, "--json").document["profile"]["id"] == "hb-eval-2025"
    given = certkit("assess", bundle, "--json", "-p", "hb-eval-2026")
    assert given.document["profile"]["id"] == "hb-eval-2026"


# --- profile


def test_profiles_are_listed_with_their_digests() -> None:
    listed = certkit("profile", "show", "--json").document["profiles"]
    assert [item["id"] for item in listed] == [
        "hb-eval-2025",
        "hb-eval-2026",
        "hb-eval-2026-bounded",
        "pass-rate",
        "trial-rig",
        "under-attack",
    ]
    text = certkit("profile", "show")
    assert (text.code, text.err) == (0, "")
    for item in listed:
        assert canonical.is_digest(item["digest"])
        assert item["id"] in text.out
        assert item["digest"] in text.out


@pytest.mark.parametrize("name", ["hb-eval-2025", "hb-eval-2026"])
def test_a_profile_is_shown_and_its_text_is_itself(name: str, tmp_path: Path) -> None:
    shown = certkit("profile", "show", name)
    document = certkit("profile", "show", name, "--json").document
    assert shown.code == 0
    assert document["digest"] in shown.out
    for row in document["criteria"]:
        assert re.search(rf"^{row['id']}\b", shown.out, re.MULTILINE), row["id"]
    (tmp_path / "copy.toml").write_text(certkit("profile", "show", name, "--toml").out, encoding="utf-8")
    copy = certkit("profile", "show", tmp_path / "copy.toml", "--json").document
    assert copy["digest"] == document["digest"]


def test_packaged_profiles_are_in_order() -> None:
    for name in packaged_profiles():
        done = certkit("profile", "show", name, "--json")
        assert (done.code, done.document["faults"]) == (0, [])


def test_what_is_wrong_with_a_profile_stands_below_its_table(tmp_path: Path) -> None:
    table = certkit("profile", "show", "hb-eval-2026", "--toml").out
    falling = table.replace('id = "hb-eval-2026"', 'id = "own"').replace("2 = 0.80", "2 = 0.50", 1)
    path = tmp_path / "own.toml"
    path.write_text(falling, encoding="utf-8")
    done = certkit("profile", "show", path)
    assert done.code == 1
    assert (
        "r_op: tier 2 asks > 0.5, less than tier 1: > 0.6" in done.out.partition("What is wrong with it:")[2]
    )
    [fault] = certkit("profile", "show", path, "--json").document["faults"]
    refused = certkit("assess", tmp_path, "-p", path, "--json").document["error"]
    assert (refused["code"], refused["message"]) == ("profile.invalid", fault)


def test_a_row_that_planned_runs_can_never_meet_is_wrong() -> None:
    assert certkit("profile", "show", "hb-eval-2026", "--runs", 1000).code == 0
    done = certkit("profile", "show", "hb-eval-2026", "--runs", 5)
    assert (done.code, "needs 13 runs, all successful" in done.out) == (1, True)


@pytest.mark.parametrize(
    ("content", "code"), [(b"", 3), (b"id = ", 3), (b"\xff", 3), (b'id = "a"\nsurprise = 1\n', 3), (None, 3)]
)
def test_what_is_no_profile_is_refused(tmp_path: Path, content: bytes | None, code: int) -> None:
    path = tmp_path / "p.toml"
    if content is not None:
        path.write_bytes(content)
    done = certkit("profile", "show", path, "--json")
    assert done.code == code
    assert done.document["error"]["code"] == ("file.missing" if content is None else "profile.invalid")


# --- import, simulate, demo


def test_import_makes_a_bundle_and_gives_its_account(tmp_path: Path) -> None:
    source, out = DATA / "agentdojo" / "export.jsonl", tmp_path / "b"
    done = certkit("import", "agentdojo", source, "-o", out)
    assert done.code == 0
    assert done.out.startswith(f"{out}: ")
    listed = certkit("import", source, "-o", tmp_path / "v", "-v")
    assert ["steps_oracle" in shown.out for shown in (done, listed)] == [False, True]
    assert done.err == f"hint: certkit assess {out}\n"
    spaced = certkit("import", source, "-o", tmp_path / "of mine")
    assert spaced.err == f'hint: certkit assess "{tmp_path}/of mine"\n'
    document = certkit("import", "agentdojo", source, "-o", tmp_path / "c", "--json").document
    assert document["schema"] == "urn:certkit:import:v1"
    [item] = document["bundles"]
    validated = certkit("bundle", "check", out, "--json").document
    assert validated["sealed"]
    assert (validated["digest"], validated["records"]) == (item["digest"], item["imported"]["records"])
    assert certkit("assess", out).code in {1, 4}


def test_imports_that_keep_one_salt_share_their_tasks(tmp_path: Path) -> None:
    source, old = DATA / "agentdojo" / "export.jsonl", tmp_path / "old"
    assert certkit("bundle", "init", old, "--agent", "a", "--version", "1").code == 0
    for name, like in (("b", ["--like", old]), ("c", ["--like", tmp_path / "b"]), ("plain", [])):
        assert certkit("import", "agentdojo", source, "-o", tmp_path / name, *like).code == 0
    salts = [
        canonical.loads((tmp_path / name / "bundle.json").read_bytes())["protocol"].get("task_salt")
        for name in ("old", "b", "c", "plain")
    ]
    assert salts[0] == salts[1] == salts[2]
    assert salts[3] is None
    paired = certkit("drift", tmp_path / "b", tmp_path / "c", "--json").document["reasons"]
    apart = certkit("drift", tmp_path / "b", tmp_path / "plain", "--json").document["reasons"]
    assert any("compared as pairs: " in reason for reason in paired)
    assert any("no tasks are paired" in reason for reason in apart)
    again = certkit("import", "agentdojo", source, "-o", tmp_path / "d", "--like", tmp_path / "plain")
    assert "drift will not pair tasks" in again.err


def test_a_refused_import_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "log.jsonl"
    source.write_bytes(b"{}\nnot json\n")
    done = certkit("import", "agentdojo", source, "-o", tmp_path / "b", "--json")
    assert done.code == 3
    assert done.document["error"]["code"].startswith(("import.", "json."))
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("import", "nonsense", str(DATA), "-o", "OUT"),
        ("import", "agentdojo", str(DATA / "agentdojo" / "export.jsonl"), "-o", "OUT", "--attempt", "0"),
        ("simulate", "-o", "OUT", "--fault-mix", "adversarial"),
        ("simulate", "-o", "OUT", "--fault-mix", "adversarial=2,cascade=-1"),
        ("simulate", "-o", "OUT", "--tier-target", "4"),
        ("simulate", "-o", "OUT", "--runs", "0"),
        ("simulate", "-o", "OUT", "--icc", "1"),
        ("bundle", "init", "OUT", "--agent", "a"),
        ("assess",),
        ("assess", "OUT", "--surprise"),
        ("nonsense",),
        ("bundle", "nonsense"),
        ("profile", "show", "nonsense"),
    ],
)
def test_a_wrong_command_line_is_two_with_one_document_and_no_files(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    given = [str(tmp_path / "out") if argument == "OUT" else argument for argument in arguments]
    done = certkit(*given)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    as_json = certkit(*given, "--json")
    assert (as_json.code, as_json.err) == (2, "")
    assert as_json.document["schema"] == "urn:certkit:error:v1"
    assert as_json.document["error"]["code"] in CODES
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("issue b -o out --issuer I -k k.pem --trust t", "--trust is for --registry"),
        ("issue b -o out --issuer I -k k.pem --log-key l", "--log-key is for --registry"),
        ("issue b -o out --issuer I --keyless -r reg", "--registry is for --key"),
        ("issue b -o out --issuer I -k k.pem --trust-config t", "--trust-config is for --keyless"),
        ("verify p --replay", "--replay needs the evidence"),
        ("verify p --context c", "--context is for --replay"),
        ("plan --tier 2 --bundle b --icc .9", "--icc cannot be used together with --bundle"),
        ("profile show hb-eval-2026 --toml --json", "--json is not what --toml prints"),
    ],
)
def test_an_option_that_would_be_passed_over_is_refused(
    arguments: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = certkit(*arguments.split())
    assert (done.code, said in done.out + done.err) == (2, True)


def test_a_policy_that_a_variable_names_is_no_option_of_the_command_line(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CERTKIT_TRUST", str(tmp_path / "trust.json"))
    done = certkit("issue", bundle, "-o", tmp_path / "out", "--issuer", "I", "-k", tmp_path / "nokey.pem")
    assert done.err.startswith(f"error: {tmp_path}/nokey.pem: not found\nhint: certkit keys generate -o ")


def test_simulating_twice_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        done = certkit("simulate", "-o", tmp_path / name, "--seed", seed, "--runs", 200)
        assert done.code == 0
        assert "200 simulated records" in done.out
    assert listing(tmp_path / "a") == listing(tmp_path / "b")
    assert listing(tmp_path / "a") != listing(tmp_path / "c")


@pytest.mark.parametrize("command", ["simulate", "demo"])
def test_what_is_there_is_not_overwritten(tmp_path: Path, command: str) -> None:
    in_the_way = tmp_path / ("bundle" if command == "demo" else "")
    in_the_way.mkdir(exist_ok=True)
    (in_the_way / "mine").write_bytes(b"mine")
    done = certkit(command, "-o", tmp_path, "--json")
    assert done.code == 2
    assert done.document["error"]["code"] == "file.exists"
    assert listing(tmp_path) == {str((in_the_way / "mine").relative_to(tmp_path)): b"mine"}


def test_the_demo_is_a_trial_that_attains_its_tier_and_says_what_to_try(
    demonstration: Demonstration, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, done, _ = demonstration
    assert done.code == 0
    # Without Pango the chain runs all the same, and says so.
    pdf = (folder / "safety-case.pdf").exists()
    assert done.err == "" if pdf else done.err.startswith("hint: PDF not made")
    commands = [line.strip() for line in done.out.splitlines() if line.startswith("  certkit ")]
    assert len(commands) == 6
    written = canonical.loads((folder / "assessment.json").read_bytes())
    assert written["verdict"]["tier"] == 1
    assert written["bundle"]["origin"] == "measured"
    screen = " ".join(done.out.split())
    assert "ap-edm is a reference policy, no language model: the evidence is measured" in screen
    assert "No tier of hb-eval-2026 is met" in screen
    assert "has no evidence for traceability index (ti)" in screen
    assert "✓ VERIFIED" in screen
    assert (
        "its plan is announced by certkit demo: entry 0, less than a minute before the passport's entry 1"
        in screen
    )
    again = ("assess", folder / "bundle", "--context", folder / "context.json")
    verify, audit = commands[0], commands[1]
    verify = verify.removesuffix("\\") + done.out.partition(commands[0])[2].split("\n")[1]
    monkeypatch.chdir(folder.parent)
    with on_its_day():
        assert written == certkit(*again, "-p", "trial-rig", "--json").document
        assert certkit(*verify.split()[1:]).code == 0
        assert certkit(*audit.split()[1:]).code == 0


def test_columns_are_listed_and_a_mapping_goes_to_a_file_that_is_never_replaced(tmp_path: Path) -> None:
    source, out = DATA / "records" / "runs.csv", tmp_path / "map.toml"
    shown = certkit("import", source, "--columns")
    assert (shown.code, shown.out.splitlines()[0]) == (0, "5 rows, 10 columns")
    assert certkit("import", source, "--columns", "-o", out).code == 0
    assert "[columns]" in out.read_text().splitlines()
    assert certkit("import", source, "--columns", "-o", out).code == 2
    tried = certkit("import", DATA / "agentdojo" / "export.jsonl", "--dry-run")
    assert (tried.code, tried.out.count("run_id")) == (0, 7)
    assert tried.out.splitlines()[-1] == "all rows can be imported"
    assert [certkit("import", *names).code for names in (["-"], [source, "-o", "-"])] == [2, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["map.toml"]
