"""What other programs read: no criterion without evidence passes, no contested verdict is green."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from certkit import report
from certkit.assessment.answer import advice, open_findings
from certkit.ground import canonical
from certkit.ground.text import visible
from certkit.record.record import Record
from certkit.report.results import judged_rows
from certkit.report.words import called
from tests.support.bundles import run
from tests.support.drawing import judged, runs, strong, summary

HOSTILE = summary(runs("<script>\u202e|", "adversarial", 20, 3))
PARTLY = summary(
    [
        run if i % 2 else {name: value for name, value in run.items() if name != "recovery_steps"}
        for i, run in enumerate(runs("d", "adversarial", 98, 60))
    ]
    + runs("d", "adversarial", 2, 0, fault_took_hold=False)
)
VIEWS = {
    "strong": report.view(judged(strong(), tier=2)),
    "weak": report.view(judged(strong(adversarial=100), tier=3, origin="simulated")),
    "partly": report.view(judged(PARTLY)),
    "empty": report.view(judged(summary([]))),
    "hostile": report.view(judged(HOSTILE, agent={"name": "a|b\x1b<b>", "version": "\u202e"})),
}


def statuses(view: report.ReportView) -> Counter[str]:
    return Counter(status.value for _, status in judged_rows(view.case.evaluation, view.case.tier))


@pytest.mark.parametrize("name", VIEWS)
def test_junit_fails_what_is_not_met_and_skips_what_was_not_tested(name: str) -> None:
    view = VIEWS[name]
    (suite,) = ET.fromstring(report.export(view, "junit"))  # noqa: S314 - our own file
    criteria = [case for case in suite if case.attrib["classname"] != "questions"]
    told, name = statuses(view), suite.attrib["name"]
    assert (visible(called(view.case.agent)) in name, "SPECIMEN" in name) == (True, view.case.specimen)
    assert len(criteria) == told.total()
    assert sum(case.find("failure") is not None for case in criteria) == told["not_met"]
    assert (
        sum(case.find("skipped") is not None for case in criteria)
        == told.total() - told["not_met"] - told["met"]
    )
    (challenges,) = (case for case in suite if case.attrib["classname"] == "questions")
    failed = [case.attrib["message"] for case in challenges]
    serious = view.case.evaluation.assessment.serious
    assert len(failed) == bool(serious)
    assert all(f"{item.code}: " in failed[0] for item in serious)
    assert (suite.attrib["tests"], suite.attrib["failures"]) == (
        str(len(suite)),
        str(len(suite.findall("*/failure"))),
    )


def test_the_summary_counts_harness_errors() -> None:
    records = runs("d", "adversarial", 93, 60) + [
        run(i, domain="d", condition="adversarial", outcome="harness_error") for i in range(7)
    ]
    text = report.export(report.view(judged(summary(records))), "summary").decode()
    assert "7 harness errors counted among the failures." in text


def test_the_weakest_domain_is_that_of_the_runs_that_the_profile_judges() -> None:
    records = [
        record
        for domain, normal, fault in (("a", 20, 4), ("b", 12, 16))
        for record in (*runs(domain, "nominal", 20, normal), *runs(domain, "tool_failure", 20, fault))
    ]
    said = {
        name: report.export(report.view(judged(summary(records), name)), "summary").decode()
        for name in ("pass-rate", "hb-eval-2026", "hb-eval-2025")
    }
    assert "in 80.0 % of 40 normal runs (weakest domain: b, 60.0 %). " in said["pass-rate"]
    assert (
        "in 80.0 % of 40 normal runs and in 50.0 % of 40 runs under faults (weakest domain: a, 20.0 %). "
        in said["hb-eval-2026"]
    )
    assert "weakest domain" not in said["hb-eval-2025"]


def test_the_summary_counts_open_questions_about_evidence_and_use() -> None:
    view = VIEWS["partly"]
    text = report.export(view, "summary").decode()
    assert (
        "- Biggest gap to Tier 1: Confidence in success under faults: success under faults is 60.0 %;" in text
    )
    evidence = len(open_findings(view.case.evaluation))
    use = len(view.argument.challenges) - evidence
    assert f"| {evidence} about the evidence, {use} about the use | none serious; 0 upheld" in text


@pytest.mark.parametrize("name", VIEWS)
def test_sarif_has_a_result_for_each_criterion_not_met_and_each_open_challenge(name: str) -> None:
    view = VIEWS[name]
    log = canonical.loads(report.export(view, "sarif"))
    (run,) = log["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    told = statuses(view)
    assert log["version"] == "2.1.0"
    assert len(run["results"]) == told.total() - told["met"] + len(view.argument.opened)
    assert {result["ruleId"] for result in run["results"]} == rules
    assert {result["level"] for result in run["results"]} <= {"error", "warning", "note"}
    assert all(result["message"]["text"] and result["locations"] for result in run["results"])


@pytest.mark.parametrize("name", VIEWS)
def test_the_summary_is_short(name: str) -> None:
    view = VIEWS[name]
    lines = report.export(view, "summary").decode().splitlines()
    assert len(lines) <= 60
    assert all("<" not in line and "\x1b" not in line and "\u202e" not in line for line in lines)
    assert any("SPECIMEN" in line for line in lines) == view.case.specimen
    changes = lines[lines.index("What would change it:") :]
    lacking = advice(view.case.evaluation)
    assert any(line.startswith("- Biggest gap to Tier ") for line in changes) == bool(lacking)


def test_the_summary_holds_the_criteria_that_have_evidence_and_names_the_others() -> None:
    lines = report.export(VIEWS["partly"], "summary").decode().splitlines()
    at = lines.index("| criterion | value | asked for Tier 1 | on averages | with confidence limits |")
    rows = [line.strip("| ").split(" | ") for line in lines[at + 2 : lines.index("", at)]]
    tier = [row for row in VIEWS["partly"].case.evaluation.assessment.criteria if row.tier == 1]
    measured = {row.id for row in tier if row.status not in {"not_tested", "not_applicable"}}
    named = {cells[0].rpartition("(")[2].rstrip(")") for cells in rows if len(cells) == 5}
    assert named == measured
    assert "| Operational reliability (r_op) | 60.0 % | > 60 % | not met |" in "\n".join(lines)
    [missing] = [line for line in lines if line.startswith("No evidence: ")]
    hidden = {row.id for row in tier if row.status == "not_tested"}
    assert set(missing.removeprefix("No evidence: ").rstrip(".").split(", ")) == hidden


def test_the_summary_names_the_first_failing_runs_and_no_more() -> None:
    records = [
        Record(**run(f"<b>|\x1b{number:03}", condition="tool_failure", outcome="failure"))
        for number in range(30)
    ]
    view = report.view(judged(strong()), failed=tuple(records))
    text = report.export(view, "summary").decode()
    [_, listed] = text.split(
        "First failing runs (`certkit runs BUNDLE RUN` prints one with its transcript):\n\n"
    )
    named = listed.partition("\n\n")[0].splitlines()
    assert len(named) == 10
    assert named[0] == r"- &lt;b>\|\\u001b000: failure, tool failure"


def test_a_message_for_a_test_report_is_cut() -> None:
    domain = "d" * 400
    records = [run(i, domain=f"{i}{domain}", task_id=f"t{i}", condition="adversarial") for i in range(60)]
    junit = report.export(report.view(judged(summary(records))), "junit").decode()
    assert max(map(len, junit.splitlines())) < 2500


def test_a_value_of_some_runs_is_partial() -> None:
    junit = report.export(VIEWS["partly"], "junit").decode()
    assert "found partial" in junit
