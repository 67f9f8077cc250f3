"""``certkit assess``: a first answer from a log, on a screen that is short where there is little to say."""

from __future__ import annotations

import re
import shlex
import tempfile
from pathlib import Path
from typing import Any

import pytest

from certkit.api import judging
from certkit.ground import canonical
from tests.support import bundles
from tests.support.bundles import run
from tests.support.extremes import GOOD
from tests.support.running import certkit

DOJO = Path(__file__).parents[1] / "data" / "agentdojo" / "export.jsonl"


def table(path: Path, *left_out: str, agents: tuple[str, ...] = ("m",), **more: Any) -> Path:
    """Write a log of 40 runs of 20 tasks for each agent, of which three in four succeed."""
    rows: list[dict[str, Any]] = [
        {
            "agent": agent,
            "task_id": f"t{number % 20}",
            "domain": "shop",
            "condition": "nominal",
            "outcome": "failure" if number % 4 == 0 else "success",
            **more,
        }
        for agent in agents
        for number in range(40)
    ]
    path.write_bytes(
        b"".join(canonical.line({name: row[name] for name in row if name not in left_out}) for row in rows)
    )
    return path


def copied(path: Path) -> Path:
    """Copy the log of AgentDojo."""
    path.write_bytes(DOJO.read_bytes())
    return path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, beside a folder for temporary files."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def left_behind(place: Path) -> list[Path]:
    """What stands in the folder for temporary files."""
    return list((place.parent / "temporary").iterdir())


def commands(screen: str, lead: str) -> list[list[str]]:
    """The words of the commands that a screen prints behind a lead, without the name of the program."""
    joined = screen.replace("\\\n", "")
    return [shlex.split(line.removeprefix(lead))[1:] for line in joined.splitlines() if line.startswith(lead)]


def test_a_log_without_faults_gets_the_rate_and_what_would_judge_it(place: Path) -> None:
    done = certkit("assess", table(Path("log.jsonl")))
    assert (done.code, done.err) == (4, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("m: ")
    assert "75.0 % of normal runs" in lines[0]
    [at] = [at for at, line in enumerate(lines) if line.startswith("HB-Eval tiers: ")]
    assert lines[at] == "HB-Eval tiers: cannot be judged: the log holds no run under faults."
    command = "  What would judge it: certkit assess log.jsonl -p pass-rate"
    assert lines[at + 1] == f"{command:<59} (normal runs only)"
    assert "criterion" not in done.out
    planned = " How to get such runs: certkit trial plan -o plan.json (tests under faults)"
    assert re.sub(" +", " ", lines[at + 2]) == planned
    assert certkit("trial", "plan", "-o", "plan.json").code == 0
    assert lines[at + 4].startswith("Open questions: ")
    assert lines[-1] == "keep it: certkit import log.jsonl -o bundle"
    assert left_behind(place) == []


FEW_ROWS = {
    "no faults": lambda: table(Path("log.jsonl")),
    "no faults, a long name": lambda: table(Path(f"{'log' * 30}.jsonl"), agents=("an agent " * 9,)),
    "attacks": lambda: copied(Path("export.jsonl")),
    "steps": lambda: table(Path("log.jsonl"), steps_actual=3, steps_oracle=2, violations=1),
    "a few faults": lambda: table(Path("log.jsonl"), condition="tool_failure"),
}


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("name", FEW_ROWS)
def test_what_fills_few_rows_takes_25_lines_of_80_columns(name: str) -> None:
    done = certkit("assess", FEW_ROWS[name]())
    lines = done.out.splitlines()
    assert done.code in {1, 4}
    assert len(lines) <= 25, done.out
    assert [line for line in lines if len(line) > 80 and len(line.split()) > 2] == []


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("condition", ["nominal", "tool_failure"])
def test_a_note_of_the_import_is_whole_or_says_where_the_rest_is(condition: str) -> None:
    remedy = '`duplicates = "drop-identical"` under `[read]` in a mapping drops them'
    screens = [
        certkit("assess", table(Path("log.jsonl"), condition=condition), *v).out for v in ((), ("-v",))
    ]
    brief, verbose = (" ".join(screen.split()) for screen in screens)
    assert "…" not in brief
    assert (remedy in brief) != ("rows equal to an earlier row (-v says more)" in brief)
    assert (remedy in brief, remedy in verbose) == (condition == "nominal", True)


@pytest.mark.usefixtures("place")
def test_a_log_is_judged_as_the_bundle_that_is_kept() -> None:
    asked = ("-p", "pass-rate", "--set", "c_nom=0.9", "--attempt", "2", "--independent-tasks")
    judged = certkit("assess", table(Path("log.jsonl")), *asked, "--json")
    screen = certkit("assess", "log.jsonl", *asked).out
    [keep], [then] = commands(screen, "keep it: "), commands(screen, "then: ")
    assert certkit(*keep).code == 0
    kept = certkit("assess", "bundle", *asked[:4], "--json")
    assert (kept.code, kept.document) == (judged.code, judged.document)
    assert certkit(*then).code == 0


@pytest.mark.usefixtures("place")
def test_the_next_command_judges_the_log_again_where_that_is_enough() -> None:
    log = table(Path("log.jsonl"))
    [gate] = commands(certkit("assess", log, "--independent-tasks").out, "    certkit ")
    assert gate == ["log.jsonl", "--independent-tasks", "-p", "pass-rate"]
    assert certkit("assess", *gate).code == 1
    [attacked] = commands(certkit("assess", DOJO).out, "Next: ")
    assert attacked == ["assess", str(DOJO), "-p", "under-attack"]
    screen = certkit(*attacked).out
    assert "\nNext, if no two tasks share a template, site or document:\n  certkit " in screen
    [declared] = commands(screen, "  certkit ")
    assert declared == [str(DOJO), "--independent-tasks", "-p", "under-attack"]
    assert certkit("assess", *declared).code == 4
    [mapped] = commands(screen, "If some do, map cluster_id: ")
    assert mapped == ["import", str(DOJO), "--columns", "-o", "MAP.toml"]


@pytest.mark.usefixtures("place")
def test_who_calls_tasks_dependent_is_asked_for_their_families() -> None:
    asked = ("assess", table(Path("log.jsonl")), "-p", "pass-rate", "--dependent-tasks")
    screen = certkit(*asked).out
    assert "\nNext, say in cluster_id which tasks belong together:\n" in screen
    [mapped] = commands(screen, "  certkit ")
    assert mapped == ["log.jsonl", "--columns", "-o", "MAP.toml"]
    assert "--independent-tasks" not in screen
    assert certkit("import", *mapped).code == 0


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("command", ["assess", "import"])
def test_an_option_and_its_opposite_are_refused(command: str) -> None:
    done = certkit(command, table(Path("log.jsonl")), "--dependent-tasks", "--independent-tasks")
    said = "error: --independent-tasks and --dependent-tasks contradict each other: choose one\n"
    assert (done.code, done.out, done.err) == (2, "", said)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("outcome", "interval"), [("failure", "0.0 to"), ("success", "to 100.0 %")])
def test_an_interval_holds_its_value_and_no_limit_lies_beyond_it(outcome: str, interval: str) -> None:
    log = table(Path("log.jsonl"), outcome=outcome)
    screen = certkit("assess", log, "-p", "pass-rate", "--independent-tasks").out
    assert interval in " ".join(screen.partition("\n\n")[0].split())
    [row] = [line for line in screen.splitlines() if line.startswith("Nominal success (c_nom)")]
    value, *limits = map(float, re.findall(r" (\d\.\d{3})(?= )", row))
    assert value == float(outcome == "success")
    legend = "\nlimit: one-sided, 95 %, computed for the threshold of Tier 1\n"
    # The prior tasks lift the limit of a value of 0: it says nothing, and is left out.
    assert (len(limits), legend in screen) == ((1, True) if value else (0, False))
    assert all(limit < value for limit in limits)


@pytest.mark.usefixtures("place")
def test_the_screen_says_what_an_interval_supposes_and_why_nothing_is_decided() -> None:
    log = table(Path("log.jsonl"))
    undeclared = " ".join(certkit("assess", log, "-p", "pass-rate").out.split())
    assert " % if tasks are independent)." in undeclared
    why = "c_nom and domain_min_nominal, since tasks are not declared independent."
    assert "On averages: not met. With 95 % confidence: not decided (this decides)." in undeclared
    assert f"pass-rate is not decided: it has too little evidence for {why}" in undeclared
    declared = " ".join(certkit("assess", log, "-p", "pass-rate", "--independent-tasks").out.split())
    assert "independent" not in declared.partition(" Open questions")[0]


@pytest.mark.usefixtures("place")
def test_the_account_says_which_column_names_the_tasks() -> None:
    rows = [
        {"agent": "m", "id": f"s{number}", "domain": "shop", "condition": "nominal", "success": True}
        for number in range(20)
    ]
    Path("log.jsonl").write_bytes(b"".join(map(canonical.line, rows)))
    assert "\nThe import\n  tasks are named by the column 'id'\n" in certkit("assess", "log.jsonl").out
    named = [canonical.line({"task": row["id"], **row}) for row in rows]
    Path("named.jsonl").write_bytes(b"".join(named))
    assert "tasks are named" not in certkit("assess", "named.jsonl").out


@pytest.mark.usefixtures("place")
def test_what_an_import_asks_is_asked_with_the_command_that_was_typed() -> None:
    log = table(Path("log.jsonl"), "agent", "condition")
    asked = certkit("assess", log, "--require-tier", "2")
    assert (asked.code, asked.out) == (3, "")
    assert "certkit assess log.jsonl --agent NAME --condition nominal --require-tier 2\n" in asked.err
    told = certkit("assess", log, "--agent", "mine", "--condition", "nominal", "--require-tier", "2")
    assert (told.code, told.out[:6]) == (4, "mine: ")
    keep = "keep it: certkit import log.jsonl --agent mine --condition nominal -o bundle"
    assert told.out.splitlines()[-1] == keep


@pytest.mark.usefixtures("place")
def test_of_several_agents_one_is_chosen_or_each_imported() -> None:
    log = table(Path("log.jsonl"), agents=("a", "b"))
    done = certkit("assess", log)
    assert done.code == 3
    assert "hint: a bundle of each: certkit import log.jsonl --split-by agent -o bundle\n" in done.err
    assert "hint: or one of them, for instance: certkit assess log.jsonl --agent a\n" in done.err
    assert certkit("assess", log, "--agent", "b").out.startswith("b: ")


def test_nothing_is_left_behind_by_a_refusal_or_an_interruption(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("bad.jsonl").write_text("{}\nnot json\n", encoding="utf-8")
    assert certkit("assess", "bad.jsonl").code == 3
    assert left_behind(place) == []

    def interrupted(*_: object, **__: object) -> None:
        assert left_behind(place)
        raise KeyboardInterrupt

    monkeypatch.setattr(judging, "judge", interrupted)
    done = certkit("assess", table(Path("log.jsonl")))
    assert (done.code, done.out, left_behind(place)) == (130, "", [])
    assert [path.name for path in place.iterdir()] == ["bad.jsonl", "log.jsonl"]


@pytest.mark.usefixtures("place")
def test_a_folder_without_a_manifest_is_a_log_and_several_sources_are_bundles() -> None:
    runs = DOJO.parent / "runs"
    assert certkit("assess", runs, "--agent", "plain-2").out.startswith("plain-2: ")
    several = certkit("assess", runs, DOJO)
    hint = f"hint: if it is a log, this judges it and says how to import it: certkit assess {runs}\n"
    assert (several.code, hint in several.err) == (3, True)


def test_options_of_an_import_are_refused_for_a_bundle(tmp_path: Path) -> None:
    root = bundles.of(tmp_path / "b", [run(0)])
    for words in (("--agent", "a"), ("--map", "m.toml"), ("--independent-tasks",), ("--success", "x > 1")):
        done = certkit("assess", root, *words)
        assert (done.code, done.err) == (2, f"error: {words[0]} is for a log, and this is a bundle\n")


@pytest.mark.usefixtures("place")
def test_the_account_of_the_import_names_what_is_odd_and_left_out() -> None:
    account = certkit("assess", DOJO).out.partition("\nThe import\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in account] == ["odd", "left"]
    everything = certkit("assess", DOJO, "-v").out.partition("\nThe import\n")[2].partition("\n\n")[0]
    assert "\n  filled     7  task_id\n" in everything


def test_rows_without_evidence_are_named_in_a_sentence_and_shown_with_v(tmp_path: Path) -> None:
    root = bundles.of(tmp_path / "b", [run(i, condition="stochastic", task_id=f"t{i}") for i in range(30)])
    done = certkit("assess", root)
    told = "8 of 11 rows have no evidence: pei, irs, frr, ti, csi, violations,"
    assert told in " ".join(done.out.split())
    assert ("(pei)" in done.out, "(pei)" in certkit("assess", root, "-v").out) == (False, True)


def test_simulated_evidence_is_marked_and_both_rates_stay(tmp_path: Path) -> None:
    assert certkit("simulate", "-o", tmp_path / "b", "--runs", "300", "-q").code == 0
    lines = certkit("assess", tmp_path / "b").out.splitlines()
    assert "SIMULATED: this evidence says nothing about a real agent." in lines[:4]
    first = " ".join(lines[:3])
    assert "of normal runs" in first
    assert "of runs under faults" in first


def test_a_row_that_the_wanted_tier_does_not_ask_has_the_limit_of_the_next(tmp_path: Path) -> None:
    """Success under attack is asked from Tier 2 on; nothing is met, so that Tier 1 is wanted."""
    records = [
        {**record, "task_id": f"d/{number}", "traceability": 1, "cluster_id": f"c{number}"}
        for number, record in enumerate(GOOD)
    ]
    lines = certkit("assess", bundles.of(tmp_path / "b", records)).out.splitlines()
    [row] = [line for line in lines if line.startswith("Success under attack")]
    value, limit = (
        row.removeprefix("Success under attack").replace("(adversarial_resistance)", "").split()[:2]
    )
    assert value == "1.000"
    assert 0.9 < float(limit) < 1
