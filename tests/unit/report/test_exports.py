"""What other programs read: no criterion without evidence passes, no contested verdict is green."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from certkit import report
from certkit.assessment.words import measure_next
from certkit.ground import canonical
from certkit.ground.text import visible
from certkit.report.results import judged_rows
from certkit.report.words import called
from tests.support.build import cell, outcomes, summary
from tests.support.drawing import judged, strong

HOSTILE = summary([cell("<script>\u202e|", "adversarial", outcomes(20, 3))])
PARTLY = summary([cell("d", "adversarial", outcomes(100, 60, frr_n=50, frr_missing=48, frr_left_out=2))])
VIEWS = {
    "strong": report.view(judged(strong(), tier=2)),
    "weak": report.view(judged(strong(adversarial=500), tier=3, origin="simulated")),
    "partly": report.view(judged(PARTLY)),
    "empty": report.view(judged(summary([]))),
    "hostile": report.view(judged(HOSTILE, agent={"name": "a|b\x1b<b>", "version": "\u202e"})),
}


def statuses(view: report.View) -> Counter[str]:
    document, tier = view.case.document, view.case.tier
    return Counter(status.value for _, status in judged_rows(document, tier))


@pytest.mark.parametrize("name", VIEWS)
def test_junit_fails_what_is_not_met_and_skips_what_was_not_tested(name: str) -> None:
    view = VIEWS[name]
    (suite,) = ET.fromstring(view.export("junit"))  # noqa: S314 - our own file
    criteria = [case for case in suite if case.attrib["classname"] != "challenges"]
    told, name = statuses(view), suite.attrib["name"]
    assert (visible(called(view.case.agent)) in name, "SPECIMEN" in name) == (True, view.case.specimen)
    assert len(criteria) == told.total()
    assert sum(case.find("failure") is not None for case in criteria) == told["not_met"]
    assert (
        sum(case.find("skipped") is not None for case in criteria)
        == told.total() - told["not_met"] - told["met"]
    )
    (challenges,) = (case for case in suite if case.attrib["classname"] == "challenges")
    failed = [case.attrib["message"] for case in challenges]
    serious = view.case.assessment.serious
    assert len(failed) == bool(serious)
    assert all(f"{item.code}: " in failed[0] for item in serious)
    assert (suite.attrib["tests"], suite.attrib["failures"]) == (
        str(len(suite)),
        str(len(suite.findall("*/failure"))),
    )


def test_the_summary_counts_harness_errors() -> None:
    tally = outcomes(100, 60, harness_error=7)
    text = report.view(judged(summary([cell("d", "adversarial", tally)]))).export("summary").decode()
    assert "7 harness errors counted among the failures." in text


def test_the_summary_counts_challenges_by_the_classes_of_the_register() -> None:
    view = VIEWS["partly"]
    text = view.export("summary").decode()
    assert "- Furthest from Tier 1: Confidence in success under faults: 0.4892 where Tier 1 asks" in text
    *_, rows = view.export("register").decode().partition("---|\n")
    register = Counter(line.split(" | ")[1] for line in rows.splitlines())
    classes = [kind for kind in ("serious", "evidence", "judgement", "blank") if register[kind]]
    said = ", ".join(f"{register[kind]} {kind}" for kind in classes)
    assert f"| {register.total()} open | {said}; 0 sustained" in text


@pytest.mark.parametrize("name", VIEWS)
def test_sarif_has_a_result_for_each_criterion_not_met_and_each_open_challenge(name: str) -> None:
    view = VIEWS[name]
    log = canonical.loads(view.export("sarif"))
    (run,) = log["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    told = statuses(view)
    assert log["version"] == "2.1.0"
    assert len(run["results"]) == told.total() - told["met"] + len(view.argument.opened)
    assert {result["ruleId"] for result in run["results"]} == rules
    assert {result["level"] for result in run["results"]} <= {"error", "warning", "note"}
    assert all(result["message"]["text"] and result["locations"] for result in run["results"])


@pytest.mark.parametrize("name", VIEWS)
def test_the_summary_is_short_and_the_table_of_criteria_is_whole(name: str) -> None:
    view = VIEWS[name]
    lines = view.export("summary").decode().splitlines()
    assert len(lines) <= 40
    assert all("<" not in line and "\x1b" not in line and "\u202e" not in line for line in lines)
    assert any("SPECIMEN" in line for line in lines) == view.case.specimen
    changes = lines[lines.index("What would change it:") :]
    lacking = measure_next(view.case.assessment)
    assert any(line.startswith("- Furthest from Tier ") for line in changes) == bool(lacking)
    rows = list(csv.DictReader(view.export("csv").decode().splitlines()))
    assert len(rows) == len(view.case.document["criteria"])
    assert [row["table"] for row in rows] == [row["status"] for row in view.case.document["criteria"]]


def test_a_value_of_some_runs_is_partial_and_little_left_out_fails_nothing() -> None:
    view = VIEWS["partly"]
    assert [
        (item.code, item.severity) for item in view.case.assessment.challenges if "left" in item.code
    ] == [("faults-left-out", "info")]
    junit = view.export("junit").decode()
    assert "faults-left-out" not in junit
    assert "found partial" in junit
    values = {
        row["criterion"]: row["value"] for row in csv.DictReader(view.export("csv").decode().splitlines())
    }
    assert (values["frr"], values["pei"], values["r_op"]) == ("partial", "", "0.6")
