"""``certkit plan`` on the command line: the screen, the document, the drawing, the refusals."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from certkit.assessment.plan.schema import plan_schema
from certkit.errors import Exit
from tests.support.running import certkit, program

if TYPE_CHECKING:
    from pathlib import Path

SHORT = ("plan", "--tier", "2", "--expect", "r_op=.88", "--icc", ".1", "--domains", "5")
FULL = (
    *("plan", "--tier", "2", "-p", "hb-eval-2026-bounded", "--expect", "r_op=.88,frr=.9,pei=.86,irs=.85"),
    *("--expect", "ti=4.3:.5,violations=.15,adversarial_resistance=.85", "--expect", "cascade_penalty=8"),
)


def test_the_screen_says_what_to_run_and_why() -> None:
    done = certkit(*FULL, "--expect", "domain_min=.8")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line != line.rstrip()] == []
    assert lines[:2] == [
        "Tier 2 (Production + oversight) of hb-eval-2026-bounded, bounded reading",
        "power 80 % for every row, ICC 0.1, 5 domains, clusters of 5 runs under faults",
    ]
    assert lines[3].split() == ["criterion", "asked", "expected", "n", "of", "runs", "power"]
    rows = lines[4 : lines.index("", 4)]
    assert [row.split()[0] for row in rows[:3]] == ["cascade_penalty", "domain_min", "frr"]
    totals = [int(re.findall(r"([\d,]+)(?:  +\d+ %)?$", row)[0].replace(",", "")) for row in rows]
    assert totals == sorted(totals, reverse=True)
    assert len(rows) == 11
    assert f"cascade_penalty drives the cost: {totals[0]} runs; next is domain_min with {totals[1]}." in lines
    assert f"{totals[0]} runs: " in done.out
    assert "Without one failure Tier 2 takes 13 runs under faults." in lines
    assert "csi_windowed: 500 ordered runs at least; no power is known of it" in done.out
    assert "adversarial_resistance: every attack is taken to land" in done.out
    nominal = next(line.split() for line in lines if line.startswith("  nominal"))
    assert 5 * int(nominal[1]) == int(nominal[2])


def test_tier_3_takes_89_runs_without_a_failure_in_both_readings() -> None:
    table = certkit("plan", "--tier", 3, "--expect", "r_op=.99")
    assert "Without one failure Tier 3 takes 89 runs under faults." in table.out.splitlines()
    bounded = certkit("plan", "--tier", 3, "--expect", "r_op=.99", "--reading", "bounded")
    assert "Without one failure Tier 3 takes 89 runs under faults." in bounded.out.splitlines()


def test_the_document_says_the_same_and_twice_the_same() -> None:
    done = certkit(*FULL, "--json")
    assert (done.code, done.err) == (0, "")
    document = done.document
    jsonschema.Draft202012Validator(plan_schema()).validate(document)
    assert document["design"]["reading"] == "bounded"
    assert document["schedule"]["runs"] == sum(document["schedule"]["total"].values())
    points = document["curve"]["points"]
    assert len(points) == 20
    assert document["schedule"]["runs"] in {point["runs"] for point in points}
    screen = certkit(*FULL).out
    assert f"{document['driver']} drives the cost" in screen
    assert certkit(*FULL, "--json") == done
    assert certkit(*FULL, "--quiet") == type(done)(0, "", "")


def test_the_curve_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "curve.svg"
    done = certkit(*SHORT, "--svg", path)
    assert (done.code, done.err) == (0, f"written to {path}\n")
    drawing = ET.parse(path).getroot()  # noqa: S314 - our own file
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert drawing[0].text == "Power by number of runs, Tier 2 of hb-eval-2026"
    texts = [item.text for item in drawing.iter("{http://www.w3.org/2000/svg}text")]
    planned = certkit(*SHORT, "--json").document["schedule"]["runs"]
    assert f"planned: {planned:,}" in texts
    assert {"posterior", "expected rows together, at least"} <= set(texts)
    before = path.read_bytes()
    assert certkit(*SHORT, "--svg", path, "--force", "--json").code == 0
    assert path.read_bytes() == before


def test_a_terminal_without_blocks_gets_letters() -> None:
    done = program(*SHORT, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.code, done.err) == (0, "")
    assert "Power by runs: # all expected rows, at least; . posterior" in done.out
    assert re.search(r"^ +\d+ +\d+ % +\d+ %  #+\.+$", done.out, re.MULTILINE)


def test_no_number_of_runs_is_a_negative_answer_and_draws_nothing(tmp_path: Path) -> None:
    path = tmp_path / "curve.svg"
    done = certkit("plan", "--tier", 2, "--expect", "r_op=.78,frr=.9", "--svg", path)
    assert (done.code, done.out, list(tmp_path.iterdir())) == (Exit.NEGATIVE, "", [])
    assert done.err == (
        "error: no number of runs shows r_op at Tier 2: 78.0 % expected, > 80 % asked; "
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
