"""``certkit plan`` on the command line: the screen, the document, the drawing, the refusals."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from certkit.assessment.plan.document import Plan
from certkit.ground.errors import Exit
from tests.support.running import certkit, program
from tests.support.schemas import schema_of

if TYPE_CHECKING:
    from pathlib import Path

SHORT = ("plan", "--tier", "2", "--expect", "r_op=.88", "--icc", ".1", "--domains", "5")
FULL = (
    *("plan", "--tier", "2", "-p", "hb-eval-2026-bounded", "--expect", "r_op=.95,frr=.95,pei=.92"),
    *("--expect", "ti=4.5,adversarial_resistance=.95", "--expect", "cascade_penalty=4"),
)


def test_the_screen_says_what_to_run_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    captured: list[tuple[Any, list[str]]] = []
    monkeypatch.setattr(
        "certkit.cli.commands.plan.emit", lambda made, screen: captured.append((made.to_dict(), list(screen)))
    )
    done = certkit(*FULL)  # one plan takes seconds: its document and its screen are taken from the same
    assert (done.code, done.err) == (0, "")
    ((document, lines),) = captured
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line != line.rstrip()] == []
    jsonschema.Draft202012Validator(schema_of(Plan)).validate(document)
    answer = " ".join(lines[: lines.index("")])
    schedule = document["schedule"]
    assert f"bounded reading: {schedule['tasks']} tasks, {schedule['runs']:,} runs." in answer
    assert f"({document['driver']}) needs most." in answer
    start = next(number for number, line in enumerate(lines) if line.startswith("criterion"))
    assert lines[start].split() == ["criterion", "asked", "expected", "least", "tasks", "power"]
    rows = [line for line in lines[start + 1 : lines.index("", start)] if line.endswith("%")]
    powers = [int(row.split()[-2]) for row in rows]
    assert powers == sorted(powers)
    assert min(powers) >= 80
    assert document["schedule"]["runs"] == 5 * sum(schedule["per_domain"].values())
    assert "csi_windowed: 500 ordered runs at least; no power is known of it" in "\n".join(lines)
    assert "adversarial_resistance: every attack is taken to land" in "\n".join(lines)
    assert "outcomes: taken as free of error" in "\n".join(lines)


def test_the_correlation_is_measured_in_a_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = tmp_path / "bundle"
    assert (
        certkit(
            "simulate", "-o", evidence, "--seed", 1, "--runs", 1000, "--domains", 5, "--tier-target", 2
        ).code
        == 0
    )
    measured = certkit("assess", evidence, "--json").document["variation"]
    captured: list[tuple[Any, str]] = []
    monkeypatch.setattr(
        "certkit.cli.commands.plan.emit",
        lambda made, screen: captured.append((made.to_dict(), " ".join(screen))),
    )
    short = [part for part in SHORT if part not in {"--icc", ".1"}]
    assert certkit(*short, "--like", evidence).code == 0
    ((document, screen),) = captured
    assert document["design"]["icc"] == measured["icc"]
    assert f"correlate by {measured['icc']:.2f}, measured in {measured['tasks']} tasks;" in screen


def test_a_terminal_without_blocks_gets_letters() -> None:
    done = program(*SHORT, PYTHONIOENCODING="ascii")
    assert (done.code, done.err) == (0, "")
    assert "Power by tasks: # all rows together; . posterior" in done.out
    assert re.search(r"^ +\d+ +\d+ % +\d+ %  #+\.*$", done.out, re.MULTILINE)


def test_no_number_of_runs_is_a_negative_answer() -> None:
    done = certkit("plan", "--tier", 2, "--expect", "r_op=.78,frr=.9")
    assert (done.code, done.out) == (Exit.NEGATIVE, "")
    assert done.err == (
        "error: no number of tasks shows r_op at Tier 2: 78.0 % expected, > 80 % asked; "
        "posterior at Tier 2: 78.0 % expected, > 80 % asked\n"
    )
    as_json = certkit("plan", "--tier", 2, "--expect", "r_op=.78", "--json")
    assert (as_json.code, as_json.document["error"]["code"]) == (Exit.NEGATIVE, "plan.impossible")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tier", 2, "--expect", "rop=.9"), "'rop' is no metric whose value is expected for Tier 2"),
        (("--tier", 2, "--expect", "r_op"), "expectation 'r_op' is not METRIC=VALUE"),
        (("--tier", 2), "Missing option '--expect'"),
        (("--expect", "r_op=.9"), "Missing option '--tier'"),
        (("--tier", 4, "--expect", "r_op=.9"), "tier 4 is not in profile hb-eval-2026, which has 1 to 3"),
        (("--tier", 2, "--expect", "r_op=.9", "--icc", 1), "'--icc'"),
        (("--tier", 2, "--expect", "r_op=.9", "--reading", "tea"), "'--reading'"),
        (("--tier", 2, "--expect", "r_op=.9", "--fault-mix", "cascade"), "'cascade' is not CONDITION=SHARE"),
        (("--tier", 2, "--expect", "r_op=.9", "--fault-mix", "cascade=2"), "that sum to 1"),
        (("--tier", 2, "--expect", "r_op=.9", "-p", "nonsense"), "nonsense"),
    ],
)
def test_a_wrong_command_line(arguments: tuple[object, ...], message: str) -> None:
    done = certkit("plan", *arguments)
    assert (done.code, done.out) == (Exit.USAGE, "")
    assert message in done.err


def test_an_unknown_metric_is_answered_with_those_that_there_are() -> None:
    done = certkit("plan", "--tier", 1, "--expect", "rop=.9")
    known = "cascade_penalty, domain_min, frr, irs, pei, r_op, ti, violations"
    assert done.err.splitlines()[1] == f"hint: known: {known}"
