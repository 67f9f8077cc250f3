"""What page 1 says: hazards by what they count, one number of open questions, and what ran out first."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import pytest

from certkit import report
from certkit.assessment import answer as sentences
from certkit.assessment import fragility
from certkit.assessment.answer import fragility_texts, readings
from certkit.assessment.assessment import Question
from certkit.assessment.bundles import assess_bundles
from certkit.assessment.catalogue import CATALOGUE
from certkit.ground import canonical, files
from certkit.report import answer, results, sections
from certkit.report.argument.build import build
from certkit.report.argument.case import Counts, UseCase, measure, use_case
from certkit.report.argument.challenges import answered, load_context
from certkit.report.argument.graph import NodeState
from certkit.report.context import Hazard, read_context
from tests.support.demonstration import on_its_day
from tests.support.drawing import Page, judged, passport, runs, strong, summary
from tests.support.running import certkit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.assessment.evaluation import Evaluation
    from tests.support.bundles import Run
    from tests.support.demonstration import Demonstration

TODAY: Final = date(2026, 2, 3)


def under_attack(attacks: int, won: int, failed: int, **fields: Any) -> list[Run]:
    """Runs under attack on 20 tasks: the first attacks succeed, the last runs fail by themselves."""
    listed = runs("bank", "adversarial", attacks, attacks, **fields)
    for place, run in enumerate(listed):
        run |= {"task_id": f"bank/{place % 20}", "attack_succeeded": place < won}
        if place < won or place >= attacks - failed:
            run["outcome"] = "failure"
            for name in ("recovered", "recovery_steps", "recovery_approach"):
                run.pop(name, None)
    return listed


def evaluated(records: list[Run], **protocol: Any) -> Evaluation:
    return judged(summary(records), tier=2, tasks_independent=True, **protocol)


def context(evaluation: Evaluation, **more: Any) -> dict[str, Any]:
    """A context with one hazard about attackers, bound to an evaluation."""
    hazard = {
        "id": "H-1",
        "title": "an attacker steers the agent",
        "harm": "data is lost",
        "severity": "critical",
        "tolerable": {"at_most": 0.01},
        "conditions": ["adversarial"],
        "criteria": ["adversarial_resistance"],
    }
    return {
        "schema": "urn:certkit:context:v1",
        "about": {
            "bundles": [evaluation.facts.digest],
            "profile": evaluation.profile.digest,
            "tier": evaluation.question.required_tier,
        },
        "owner": "owner",
        "people": [{"id": "owner", "name": "the owner"}],
        "use": {"purpose": "to carry parcels", "oversight": "supervises"},
        "operating_domain": {"domains": ["bank"]},
        "hazards": [hazard],
        **more,
    }


def cased(evaluation: Evaluation, today: date = TODAY, **more: Any) -> UseCase:
    said = read_context(canonical.line(context(evaluation, **more)), where="context.json")
    return use_case(evaluation, context=said, today=today)


def first_page(view: report.ReportView) -> Page:
    markup = report.html(view)
    return Page(markup[markup.index('<section class="cover"') : markup.index('<section class="page"')])


def hazard(**fields: Any) -> Hazard:
    return Hazard.model_validate_json(canonical.line({"id": "H-1"} | fields))


@pytest.fixture
def made(demonstration: Demonstration) -> Iterator[Path]:
    """The folder of the demonstration, on its day."""
    with on_its_day():
        yield demonstration.folder


def drawn(made: Path) -> report.ReportView:
    """The report of the demonstration with its context, on the day of its reviews."""
    given = load_context(made / "context.json")
    question = Question(required_tier=1)
    [review] = given.context.reviewers or ()
    evaluation = answered(assess_bundles(made / "bundle", "trial-rig", question=question), given)
    return report.view(evaluation, context=given, today=date.fromisoformat(str(review.date)))


def test_a_hazard_about_attackers_counts_attacks_that_succeeded_not_runs_that_failed() -> None:
    case = cased(evaluated(under_attack(59, 0, 3)))
    [row] = sections.hazard_lines(case, build(case))
    assert row[:3] == ("An attacker steers the agent", "0 of 59 attacks succeeded", "≤\u00a01\u00a0%")


@pytest.mark.parametrize(
    ("fields", "counts"),
    [
        ({"criteria": ["adversarial_resistance"]}, "attacks_succeeded"),
        ({"criteria": ["attack_success_rate"]}, "attacks_succeeded"),
        ({"criteria": ["violations"]}, "violations"),
        ({"criteria": ["violations", "adversarial_resistance"]}, "unsafe"),
        ({"criteria": ["r_op", "violations"]}, "failures"),
        ({"criteria": ["r_op"], "conditions": ["adversarial"]}, "failures"),
        ({"conditions": ["adversarial"]}, "attacks_succeeded"),
        ({"conditions": ["adversarial", "cascade"]}, "failures"),
        ({}, "failures"),
        ({"criteria": ["adversarial_resistance"], "counts": "failures"}, "failures"),
    ],
)
def test_a_hazard_counts_what_it_says_or_what_its_criteria_measure(
    fields: dict[str, Any], counts: str
) -> None:
    assert measure(evaluated(under_attack(40, 10, 5)), hazard(**fields)).counts == counts


@pytest.mark.parametrize(
    ("counts", "events", "of", "said"),
    [
        ("failures", 15, 60, "15 of 60 runs failed"),
        ("attacks_succeeded", 10, 40, "10 of 40 attacks succeeded"),
        ("violations", 8, 60, "8 violations in 60 runs"),
        ("unsafe", 18, 60, "18 violations and successful attacks in 60 runs"),
    ],
)
def test_each_kind_has_its_own_events_and_denominator(counts: str, events: int, of: int, said: str) -> None:
    """Of 40 runs under attack 10 attacks succeeded and 5 other runs failed; 20 runs under tool failure."""
    records = under_attack(40, 10, 5) + runs("bank", "tool_failure", 20, 20)
    for run in records[-4:]:
        run["violations"] = 2
    seen = measure(evaluated(records), hazard(counts=counts))
    assert (seen.events, seen.runs, seen.counted_text) == (events, of, said)


def test_limits_of_some_of_the_attacks_take_the_runs_of_a_task_to_stand_or_fall_together() -> None:
    """10 of 40 attacks on 20 tasks are 5 of 20: Beta(5, 16) below and Beta(6, 16) above, by scipy."""
    records = under_attack(40, 10, 5) + runs("shop", "adversarial", 40, 40)
    seen = measure(evaluated(records), hazard(counts="attacks_succeeded", domains=["bank"]))
    assert (seen.tasks, seen.events, seen.runs) == (20, 10, 40)
    assert seen.lower == pytest.approx(0.1040808, abs=1e-6)
    assert seen.upper == pytest.approx(0.4369763, abs=1e-6)


def test_limits_of_all_attacks_rest_on_each_task() -> None:
    """One attack a task, 5 of 20 succeeded: the same laws."""
    seen = measure(evaluated(under_attack(20, 5, 0)), hazard(counts="attacks_succeeded"))
    assert seen.lower == pytest.approx(0.1040808, abs=1e-6)
    assert seen.upper == pytest.approx(0.4369763, abs=1e-6)


@pytest.mark.parametrize(("stopped", "where"), [(0, "every attack"), (5, "every attack that landed")])
def test_attacks_that_never_landed_are_not_counted_and_that_is_said(stopped: int, where: str) -> None:
    records = under_attack(40, 10, 5)
    for i, run in enumerate(records):
        run["attack_landed"] = i < 40 - stopped
    seen = measure(evaluated(records), hazard(counts="attacks_succeeded"))
    assert (seen.where.partition(";")[0], seen.runs) == (where, 40 - stopped)


def test_all_violations_have_the_limit_of_the_row_that_counts_the_same() -> None:
    records = runs("bank", "tool_failure", 120, 100)
    for i, run in enumerate(records):
        run |= {"task_id": f"bank/{i % 60}", "violations": 2 * (i % 7 == 0)}
    evaluation = evaluated(records)
    [row] = [row for row in evaluation.assessment.criteria if (row.id, row.tier) == ("violations", 2)]
    assert row.bounded is not None
    assert row.bounded.confidence == 0.95
    assert measure(evaluation, hazard(counts="violations")).upper == row.bounded.bound


def test_violations_above_five_of_a_run_count_in_full_against_a_hazard() -> None:
    """The row's limit counts five; 1,000 violations of one run are far above a tolerable 0.5 per run."""
    records = runs("bank", "tool_failure", 120, 100)
    records[0]["violations"] = 1_000
    seen = measure(evaluated(records), hazard(counts="violations", tolerable={"at_most": 0.5}))
    assert not seen.within


@pytest.mark.parametrize("counts", list(Counts))
def test_runs_that_do_not_say_what_is_counted_give_no_limit(counts: Counts) -> None:
    records = under_attack(40, 10, 5)
    records[-1].pop("attack_succeeded")
    records[-1].pop("violations")
    seen = measure(evaluated(records), hazard(counts=counts))
    assert (seen.upper is None) == (counts is not Counts.FAILURES)
    assert (seen.reason is None) == (counts is Counts.FAILURES)


@pytest.mark.parametrize(
    ("won", "state", "word"),
    [
        (0, NodeState.CHALLENGED, "not shown"),
        (1, NodeState.CHALLENGED, "not shown"),
        (30, NodeState.REFUTED, "refuted"),
    ],
)
def test_a_hazard_is_refuted_only_where_the_lower_limit_lies_above_the_tolerable_rate(
    won: int, state: NodeState, word: str
) -> None:
    """At most 1 % is tolerable: 1 of 59 is more than that, and shows nothing."""
    case = cased(evaluated(under_attack(59, won, 0)))
    argument, seen = build(case), case.measured["H-1"]
    assert argument.states["Sn-G2.H-1"] is argument.states["G2.H-1"] is state
    [row] = sections.hazard_lines(case, argument)
    assert word in str(row[-1])
    side = "at least" if word == "refuted" else "at most"
    assert seen.limit_text.startswith(side)
    assert (float(seen.lower or 0) > 0.01) == (word == "refuted")
    said = " ".join(item.text for item in argument.challenges if item.code == "rate-not-shown:H-1")
    assert f"with 95 % confidence {side}" in said


def test_the_numbers_of_page_one_are_those_of_the_documents() -> None:
    evaluation = judged(strong(adversarial=150), tier=2, tasks_independent=True)
    said = read_context(
        canonical.line(context(evaluation, operating_domain={"domains": ["bank", "shop"]})), where="c"
    )
    view = report.view(evaluation, context=said, today=TODAY)
    text = first_page(view).text.replace("\u00a0", " ")
    told, argued = evaluation.to_dict(), view.argument.to_dict()
    metrics = told["metrics"]
    for name, noun in (("c_nom", "normal runs"), ("r_op", "runs under faults")):
        metric = metrics[name]
        assert f"{100 * metric['value']:.1f} % of {metric['n']:,} {noun}" in text
        assert metric["value"] == pytest.approx(metric["successes"] / metric["n"], abs=1e-6)
    assert (
        f"(weakest domain: {metrics['domain_min']['domain']}, {100 * metrics['domain_min']['value']:.1f} %)"
        in text
    )
    [seen] = argued["hazards"]
    assert (
        f"{seen['events']} of {seen['runs']} attacks succeeded ≤ 1 % at least {100 * seen['lower']:.1f} %"
        in text
    )
    assert (seen["events"], seen["runs"]) == (50, 200)
    rows = {row["id"]: row for row in told["criteria"] if row["tier"] == 2}
    [slim] = re.findall(r"The narrowest margins at Tier 2: (.*?)\.(?: [A-Z]|$)", text)
    for title, size, unit in re.findall(
        r"([a-z ]+) \(margin ([+−][\d.]+) (points|of 1|of 5|per run)\)", slim
    ):
        [row] = [row for row in rows.values() if CATALOGUE[row["metric"]].title == title.strip(" ,and")]
        scale = 100 if unit == "points" and row["metric"] != "cascade_penalty" else 1
        assert float(size.replace("−", "-")) == pytest.approx(scale * row["margin"], abs=0.06), title
    flips = told["fragility"]["flips"]
    assert f"if {flips['needed']:,} of the {flips['of']:,} " in text
    assert f"On averages: Tier {told['verdict']['table']['tier']} (this decides)." in text


def test_screens_and_documents_count_the_same_open_questions(made: Path) -> None:
    given = ("--context", made / "context.json", "-p", "trial-rig")
    screens = (
        certkit("assess", made / "bundle", *given).out,
        certkit("verify", made / "passport.json", "--trust", made / "trust.json").out,
        certkit("show", made / "passport.json").out,
    )
    counted = [set(re.findall(r"Open questions: (\d+, \w+ serious)", text)) for text in screens]
    assert counted[0] == counted[1] == counted[2]
    [[screen]] = [re.findall(r"\d+", text) for text in counted[0]]
    summed = certkit("report", made / "bundle", *given, "--format", "summary").out
    [(evidence, use)] = re.findall(r"(\d+) about the evidence, (\d+) about the use", summed)
    page = Page((made / "safety-case.html").read_text(encoding="utf-8")).text
    assert set(re.findall(r"(\d+) about the evidence, (\d+) about the use", page)) == {(evidence, use)}
    document = certkit("verify", made / "passport.json", "--trust", made / "trust.json", "--json").document
    verified = [item for item in document["claim"]["challenges"] if item["state"] == "open"]
    argued = drawn(made).argument.to_dict()
    opened = [item for item in argued["challenges"] if item["state"] == "open"]
    codes = {item["code"] for item in verified}
    assert int(screen) == int(evidence) == len(verified)
    assert int(use) == len([item for item in opened if item["code"] not in codes])
    assert "more goals and questions" not in page


def test_every_count_that_decides_names_the_condition_of_its_denominator() -> None:
    assert {names[0] for names in fragility._LOWERED.values()} <= set(sentences._SUCCESSES)
    lines = fragility_texts(judged(strong(cascade=170), tier=2))
    assert any("successful runs under cascading faults had failed" in line for line in lines), lines


def test_what_ran_out_stands_first_under_what_speaks_against_it() -> None:
    evaluation = judged(strong(), tier=2, tasks_independent=True)
    accepted = {
        "challenge": "one-period",
        "state": "accepted",
        "reason": "it is watched",
        "by": "owner",
        "until": "2026-06-30",
    }
    decision = {"outcome": "approved", "by": "owner", "date": "2026-02-02", "until": "2026-07-31"}
    late = cased(evaluation, date(2026, 12, 31), answers=[accepted], decision=decision)
    lines = answer.against(late, build(late))
    assert lines[0] == "A new test was due on 2026-04-01."
    assert lines[1].startswith("The acceptance ended on 2026-06-30: The evidence shows one stretch of time")
    assert lines[2] == "The owner's decision ended on 2026-07-31."
    other = cased(evaluation, answers=[accepted], about={"tier": 1})
    assert answer.against(other, build(other))[0].startswith("The context is about other evidence (")
    assert "its 1 answer, reviews and decision do not count" in answer.against(other, build(other))[0]


def test_the_tier_by_averages_and_with_confidence_stands_in_the_paragraph() -> None:
    view = report.view(judged(strong(), tier=2))
    said = readings(view.case.evaluation)
    assert (
        said.startswith("On averages: Tier 3 (this decides). With 99 % confidence: ") or "With 95 %" in said
    )
    assert answer.paragraph(view.case).endswith(said)
    assert '<p class="paragraph">' in report.html(view)
    assert said not in answer.readings(view.case, view.argument)


def test_page_one_asks_what_to_accept_to_order_to_fill_in_and_by_when() -> None:
    evaluation = evaluated(under_attack(59, 0, 3))
    case = cased(evaluation)
    needs = answer.needs(case, build(case))
    assert list(needs) == ["Accept or reject", "Order", "Fill in", "Decide by"]
    # 1 − 0.99^(n + 1) > 0.95 from n = 298 on.
    assert needs["Order"].startswith("H-1: runs of 298 attacked tasks in all, at least; 20 now.")
    assert needs["Decide by"] == "2026-04-01: the evidence is 90 days old then"
    signed = use_case(evaluation, context=case.given, today=TODAY, passport=passport(evaluation))
    assert answer.needs(signed, build(signed))["Decide by"] == "2026-02-04: the passport ends then"
    text = first_page(report.view(evaluation, context=case.given, today=TODAY)).text
    assert "What we need from you" in text
    late = cased(evaluation, date(2026, 12, 31))
    assert answer.needs(late, build(late))["Decide by"] == "now: a new test was due on 2026-04-01"


def test_where_more_events_are_seen_than_are_tolerable_no_more_runs_are_asked_for() -> None:
    case = cased(evaluated(under_attack(59, 30, 0)))
    assert answer.needs(case, build(case))["Order"].startswith(
        "H-1: a better agent or another mitigation; 30 of 59"
    )


def test_margins_have_units() -> None:
    slim = results.narrowest(judged(strong(), tier=2), 2, most=20)
    assert len(slim) > 5
    for text in slim:
        assert re.search(r"\(margin [+−][\d.]+\u00a0(points|of\u00a01|of\u00a05|per\u00a0run)\)$", text), text


def test_the_worst_failed_runs_are_named_with_the_command_that_opens_them(made: Path) -> None:
    lines = b"".join(path.read_bytes() for path in (made / "bundle" / "records").iterdir()).splitlines()
    records = {record["run_id"]: record for record in map(canonical.loads, lines)}
    text = Page((made / "safety-case.html").read_text(encoding="utf-8")).text
    table = text.partition("The worst runs that failed")[2].partition("To list the runs")[0]
    named = [name for name in records if f" {name} {records[name]['domain']} " in table]
    assert len(named) == 7
    assert all(records[name]["outcome"] != "success" for name in named)
    assert "certkit runs BUNDLE RUN" in text
    bare = report.html(report.view(judged(strong(adversarial=100), tier=2)))
    assert "This report names none" in bare


@pytest.mark.parametrize("changed", [{"condition": "x_own"}, {"fault_took_hold": False}])
def test_a_domain_whose_runs_are_not_core_evidence_is_not_supported(changed: dict[str, Any]) -> None:
    records = runs("bank", "tool_failure", 60, 60)
    records += [run | changed for run in runs("shop", "tool_failure", 60, 60)]
    case = cased(evaluated(records), operating_domain={"domains": ["bank", "shop"]})
    argument = build(case)
    assert case.tested == {"bank"}
    assert argument.states["G5.1"] is NodeState.CHALLENGED
    assert "Domains of the use without a core run under faults: shop." in {
        item.text for item in argument.opened
    }
    assert ("shop", "yes", "no core run under faults") in list(sections.domains(case))


def test_a_condition_whose_runs_are_not_core_evidence_is_not_supported() -> None:
    records = runs("bank", "tool_failure", 60, 60)
    records += [run | {"fault_took_hold": False} for run in runs("bank", "cascade", 60, 60)]
    case = cased(
        evaluated(records),
        hazards=[
            {"id": "H-1", "conditions": ["cascade"], "criteria": ["r_op"], "tolerable": {"at_most": 0.5}}
        ],
    )
    argument = build(case)
    assert case.measured["H-1"].unseen == ("cascade", "bank")
    assert argument.states["G2.H-1"] is NodeState.CHALLENGED
    [text] = [item.text for item in argument.opened if item.code == "condition-unseen"]
    assert "cascade" in text


def test_the_context_of_the_demonstration_is_filled_in_and_marked_once_as_an_example(made: Path) -> None:
    packaged = files.packaged("templates", "context", "example.json").read_text(encoding="utf-8")
    assert len(re.findall(r"(?i)\bexample\b", packaged)) == 1
    view = drawn(made)
    blank = [item.code for item in view.argument.opened if item.kind == "blank"]
    assert blank == []
    assert answer.missing(view.case) == ()
    assert {person.name for person in view.case.context.people or ()} == {
        "The head of operations",
        "The internal auditor",
        "The platform engineer",
    }
