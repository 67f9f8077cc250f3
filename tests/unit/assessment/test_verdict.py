"""Tiers and verdict: what decides, what contests, what an answer closes; and evidence at the edges."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from certkit.assessment.answer import advice, next_command, verdict_text
from certkit.assessment.assess import assess
from certkit.assessment.assessment import (
    Answer,
    FindingState,
    Question,
    Status,
    TierStatus,
    read_assessment,
)
from certkit.assessment.catalogue import Unit
from certkit.assessment.profile_file import parse_profile
from certkit.assessment.words import threshold_text, value_text
from certkit.ground import canonical
from certkit.ground.document import to_builtins
from certkit.ground.errors import Exit, InputError, UsageError
from certkit.summary.summary import PlannedRuns, read_summary
from tests.support import build, bundles
from tests.support.degenerate import CASES
from tests.support.extremes import GOOD, failed

if TYPE_CHECKING:
    from tests.support.bundles import Run

CONTESTING: dict[str, Any] = {
    "imported": {"format": "records", "records": 1, "notes": [{"kind": "inverted", "what": "w", "count": 1}]}
}
"""The mapping reads failures as successes: serious, and nothing else differs."""
ANSWER = Answer(code="outcome-inverted", by="Ana", agreed_by="Ravi")


def changed(**fields: Any) -> list[Run]:
    return [run | fields for run in GOOD]


def unsteady() -> list[Run]:
    """A good agent whose last run fails: CSI is 0, and every other row holds at Tier 3."""
    return [*GOOD[:-1], failed(GOOD[-1])]


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [n for item in value.values() for n in numbers(item)]
    if isinstance(value, list):
        return [n for item in value for n in numbers(item)]
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize("table", ["hb-eval-2026", "hb-eval-2026-bounded", "hb-eval-2025"])
@pytest.mark.parametrize("case", CASES)
def test_little_evidence_gets_a_verdict_in_words_and_no_tier(case: str, table: str) -> None:
    found = build.judged(CASES[case], table)
    document = found.to_dict()
    assert canonical.canonical(document)
    assert all(isfinite(number) for number in numbers(document))
    assert found.assessment.verdict.tier == 0
    assert found.exit_code in {Exit.NEGATIVE, Exit.INSUFFICIENT}
    assert verdict_text(found).startswith(f"No tier of {table} is met")
    said = advice(found)
    assert len(said) == len(found.assessment.verdict.binding) > 0
    assert "nan" not in " ".join(said).lower()


def test_what_was_not_measured_is_not_zero() -> None:
    found = build.judged([])
    assert {metric.value for metric in found.metrics.values()} == {None}
    statuses = {row.status for row in found.assessment.criteria}
    assert statuses == {Status.NOT_TESTED, Status.NOT_APPLICABLE}
    assert {row.value for row in found.assessment.criteria} == {None}
    assert found.exit_code is Exit.INSUFFICIENT


def test_only_what_was_measured_fails() -> None:
    failures = build.judged(CASES["all failures"])
    assert failures.exit_code is Exit.NEGATIVE
    # A run that fails recovers nothing: its grade is 0.
    assert set(failures.assessment.tiers["1"].not_met) == {"r_op", "domain_min", "posterior", "frr"}
    successes = build.judged(CASES["all successes"], memory_observable=False)
    assert set(successes.assessment.tiers["1"].met) == {"r_op", "domain_min", "posterior"}
    assert successes.exit_code is Exit.INSUFFICIENT


def test_attestations_alone_never_attain_a_tier() -> None:
    paper = parse_profile(
        'id = "paper"\n[tiers.1]\nname = "Paper"\n[[criteria]]\nid = "edm"\nmetric = "edm_auditability"\n'
        'operator = "is"\ntiers = {1 = true}\n',
        "paper.toml",
    )
    attested = [{"id": "edm_auditability", "value": True, "evidence": "traces/edm.md"}]
    assert build.judged([], paper, attested=attested).exit_code is Exit.INSUFFICIENT
    assert build.judged(CASES["one success"], paper, attested=attested).exit_code is Exit.OK


def test_a_tier_that_the_profile_lacks_cannot_be_required() -> None:
    with pytest.raises(UsageError, match="tier 4 is not in hb-eval-2026") as caught:
        build.judged(GOOD, tier=4)
    assert caught.value.code == "usage.option"


def test_a_summary_of_other_core_conditions_than_the_profiles_is_refused() -> None:
    evidence = build.summary(GOOD, core_conditions=("x_own",))
    with pytest.raises(InputError) as caught:
        assess(evidence, build.facts(), build.profile())
    assert caught.value.code == "summary.invalid"


def test_the_exit_code_is_that_of_the_required_tier() -> None:
    second = changed(traceability=4.2)
    assert [build.judged(second, tier=tier).exit_code for tier in (1, 2, 3)] == [0, 0, 1]
    assert build.judged(second).assessment.verdict.tier == 2
    missing = [run for run in GOOD if run["condition"] != "cascade"]
    assert [build.judged(missing, tier=tier).exit_code for tier in (1, 2, 3)] == [4, 4, 4]


def test_a_failing_lower_tier_fails_the_tiers_above() -> None:
    # The 2025 profile asks for documented recovery patterns at Tier 2 only; Tier 3 rests on it all the same.
    attested = [{"id": "recovery_patterns_documented", "value": False, "evidence": "traces/a.md"}]
    tiers = build.judged(GOOD, "hb-eval-2025", attested=attested).assessment.tiers
    assert tiers["2"].not_met == ("recovery_patterns_documented",)
    assert tiers["3"].not_met == ()
    assert tiers["3"].status is TierStatus.NOT_MET


def test_binding_rows_are_those_of_the_next_tier_worst_first() -> None:
    bad = changed(traceability=2.9)
    bad = [run | {"memory_modified": False} if "memory_modified" in run else run for run in bad]
    bad = [run for run in bad if run["condition"] != "cascade"]
    found = build.judged(bad)
    assert found.assessment.verdict.binding == ("irs", "ti", "cascade_penalty")
    by_status = {row.id: row.status for row in found.assessment.criteria if row.tier == 1}
    assert [by_status[name].value for name in found.assessment.verdict.binding] == [
        "not_met",
        "not_met",
        "not_tested",
    ]


@pytest.mark.parametrize("tasks", [9, 10])
def test_every_row_of_the_packaged_table_takes_ten_tasks(tasks: int) -> None:
    found = build.judged([run | {"task_id": f"d/{i // 6 % tasks}"} for i, run in enumerate(GOOD)])
    for row in found.assessment.criteria:
        if row.tier > 1 or row.threshold is None:
            continue
        if tasks == 10:
            assert row.status is Status.MET, row
        else:
            assert row.status is Status.INSUFFICIENT
            assert row.reason is not None
            assert (row.reason.code, row.reason.counts) == ("few-tasks", {"k": 9, "needed": 10})


# --- provisional rows --------------------------------------------------------------------------------


def test_a_provisional_row_decides_nothing_unless_asked_to() -> None:
    plain, strict = build.judged(unsteady(), tier=1), build.judged(unsteady(), tier=1, strict=True)
    verdict = plain.assessment.verdict
    assert (verdict.tier, verdict.tier_strict, plain.exit_code) == (3, 0, Exit.OK)
    assert [tier.provisional for tier in plain.assessment.tiers.values()] == [("csi",)] * 3
    verdict = strict.assessment.verdict
    assert (verdict.tier, verdict.tier_strict, strict.exit_code) == (0, 0, Exit.NEGATIVE)
    assert verdict.binding == ("csi",)
    assert strict.assessment.tiers["1"].not_met == ("csi",)
    assert "csi, provisional in the paper, is not met" in verdict_text(plain)


def test_under_limits_a_provisional_row_without_one_counts_on_averages_when_asked_to() -> None:
    found = build.judged(unsteady(), "hb-eval-2026-bounded", strict=True)
    assert found.assessment.tiers["1"].not_met == ("csi",)
    assert build.row(found, "csi").bounded is None


# --- serious findings and answers --------------------------------------------------------------------


def test_an_open_serious_finding_contests_every_tier_that_would_be_met() -> None:
    found = build.judged(GOOD, tier=1, **CONTESTING)
    verdict = found.assessment.verdict
    assert {tier.status for tier in found.assessment.tiers.values()} == {TierStatus.CONTESTED}
    assert (verdict.tier, verdict.tier_strict, verdict.table.tier) == (0, 0, 3)
    assert (verdict.status, found.exit_code) == (TierStatus.CONTESTED, Exit.INSUFFICIENT)
    contested = "Tier 1 is contested: its rows are met, and outcome-inverted is open."
    assert verdict_text(found).endswith(contested)
    assert found.assessment.criteria == build.judged(GOOD).assessment.criteria


def test_a_failed_tier_fails_whatever_contests_it() -> None:
    found = build.judged(changed(traceability=4.2), tier=3, **CONTESTING)
    assert found.assessment.tiers["3"].status is TierStatus.NOT_MET
    assert found.exit_code is Exit.NEGATIVE


def test_an_answered_finding_lets_the_verdict_stand() -> None:
    found = build.judged(GOOD, tier=3, answers=[ANSWER], **CONTESTING)
    (item,) = found.assessment.serious
    assert (item.code, item.state) == ("outcome-inverted", FindingState.ANSWERED)
    assert (found.assessment.verdict.tier, found.exit_code) == (3, Exit.OK)


def test_an_answer_to_another_finding_leaves_it_open() -> None:
    other = structs.replace(ANSWER, code="trace-differs")
    found = build.judged(GOOD, answers=[other], **CONTESTING)
    assert [item.state for item in found.assessment.serious] == [FindingState.OPEN]
    assert found.exit_code is Exit.INSUFFICIENT


# --- the document ------------------------------------------------------------------------------------

DOCUMENTS: dict[str, tuple[list[Run], dict[str, Any]]] = {
    "nothing": ([], {}),
    "good": (GOOD, {}),
    "contested": (GOOD, CONTESTING),
    "unsteady": (unsteady(), {}),
    "few": (CASES["one domain"], {}),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_assessment_is_its_document_and_that_of_the_summarys_document(name: str) -> None:
    records, stated = DOCUMENTS[name]
    found = build.judged(records, **stated)
    written = canonical.loads(canonical.canonical(to_builtins(found.assessment)))
    assert read_assessment(written) == found.assessment
    summary = read_summary(canonical.loads(canonical.canonical(found.summary.to_dict())))
    assert assess(summary, found.facts, found.profile, Question()) == found.assessment


def test_what_an_assessment_does_not_hold_is_refused() -> None:
    document = to_builtins(build.judged(GOOD).assessment)
    for change in ({"colour": "red"}, {"verdict": {**document["verdict"], "tier": -1}}):
        with pytest.raises(InputError) as caught:
            read_assessment({**document, **change})
        assert caught.value.code == "assessment.invalid"


def test_the_order_of_lines_changes_no_byte() -> None:
    first, second = (canonical.canonical(build.judged(listed).to_dict()) for listed in (GOOD, GOOD[::-1]))
    assert first == second


def test_the_fixed_keys() -> None:
    # Half of one domain's runs fail: 150 of 300 in "e".
    weak = [
        run | {"domain": "e", "task_id": f"e/{i % 17}"}
        for i, run in enumerate(GOOD)
        if run["condition"] != "nominal"
    ]
    records = GOOD + [
        (failed(run) if i % 10 < 7 else run) | {"run_id": f"e{i}", "sequence": 600 + i}
        for i, run in enumerate(weak)
    ]
    document = build.judged(records, tier=2).to_dict()
    assert document["schema"] == "urn:certkit:assessment:v1"
    assert document["bundle"]["records"] == 1100
    assert (document["bundle"]["nominal_runs"], document["bundle"]["fault_runs"]) == (100, 1000)
    assert document["bundle"]["domains"] == ["d", "e"]
    rows = {(row["id"], row["tier"]): row for row in document["criteria"]}
    assert len(rows) == len(document["criteria"]) == 33
    weakest = rows["domain_min", 1]
    assert weakest["operator"] == ">="
    assert (weakest["threshold"], weakest["value"], weakest["margin"]) == (0.4, 0.3, -0.1)
    assert (weakest["status"], weakest["bounded"]["status"]) == ("not_met", "not_met")
    assert weakest["bounded"]["k"] == 17
    assert rows["adversarial_resistance", 1]["bounded"] is None
    assert rows["adversarial_resistance", 1]["threshold"] is None
    assert rows["csi", 1]["provisional"] is True
    assert document["verdict"]["status"] == "not_met"
    assert document["verdict"]["required_tier"] == 2
    assert {"message", "code", "severity", "counts"} <= document["findings"][0].keys()
    assert document["metrics"]["r_op"]["successes"] == sum(
        item["success"] for item in document["breakdown"] if item["condition"] != "nominal"
    )


# --- words -------------------------------------------------------------------------------------------


def test_the_verdict_in_words() -> None:
    assert verdict_text(build.judged(GOOD)) == "Tier 3 (Autonomous) of hb-eval-2026 is met."
    assert verdict_text(build.judged(changed(traceability=4.2))) == (
        "Tier 2 (Production + oversight) of hb-eval-2026 is met. Tier 3 misses traceability index (ti)."
    )
    mixed = verdict_text(build.judged(CASES["all failures"]))
    assert "misses" in mixed
    assert "has no evidence for" in mixed
    assert verdict_text(build.judged([])) == "No tier of hb-eval-2026 is met: the bundle holds no records."


def test_a_trial_that_is_not_finished_is_sent_back_to_the_command_that_goes_on() -> None:
    began = build.judged(structs.replace(build.summary([]), plan=PlannedRuns(planned=5)))
    assert verdict_text(began) == (
        "No tier of hb-eval-2026 is met: its trial is not finished, and the bundle holds no records."
    )
    step = next_command(began, "b", "p", {})
    assert (step.command, step.options) == ("certkit trial run PLAN --agent AGENT", "-o b")
    assert "same command" in step.when
    assert next_command(build.judged([]), "b", "p", {}).command.startswith("certkit import")


def test_what_to_do_next_is_said_row_by_row() -> None:
    def said(n: int, good: int) -> dict[str, str]:
        lines = (line.split("): ", 1) for line in advice(build.judged(build.runs(n, good))))
        return {name.rpartition("(")[2]: text for name, text in lines}

    assert "record more fault runs" in said(20, 14)["posterior"]
    assert "steps_oracle" in said(20, 14)["pei"]
    few = advice(build.judged(build.runs(20, 14, tasks=6)))
    assert few[0].endswith("(r_op): rests on 6 tasks; the profile asks for 10: add tasks.")
    assert said(10_000, 5_998)["r_op"] == "59.98 % where Tier 1 asks > 60 %."
    hopeless = said(20, 4)
    assert hopeless["r_op"] == "20.0 % where Tier 1 asks > 60 %."
    assert "more runs will not help" in hopeless["posterior"]
    assert hopeless["domain_min"].endswith("in domain a.")


def test_numbers_as_people_read_them() -> None:
    shown_as = {
        Unit.FRACTION: "67.5 %",
        Unit.PP: "0.7 points",
        Unit.INDEX: "0.675",
        Unit.PROBABILITY: "0.6750",
        Unit.BOOLEAN: "yes",
    }
    for unit, text in shown_as.items():
        assert value_text(0.675, unit) == text
    assert value_text(None, Unit.INDEX) == "not measured"
    threshold = build.profile().criteria[0].threshold(1)
    assert threshold is not None
    assert threshold_text(">", threshold, Unit.FRACTION) == "> 60 %"


def test_few_tasks_excuse_no_larger_miss_on_core_evidence_than_the_loss_that_counts_as_drift() -> None:
    """Of 15 tasks 4 are never solved: 73 %, and one standard error is 12 points."""
    hard = [run for task in range(15) for run in _of_task(task, "tool_failure", good=task < 11)]
    easy = [run for task in range(15, 18) for run in _of_task(task, "x_easy", good=True, runs=10)]
    evaluation = build.judged([*hard, *easy], tier=2)
    assert build.row(evaluation, "r_op", 2).status == "met"
    states = {(item.id, item.tier): item.state for item in evaluation.assessment.core}
    assert (states["r_op", 1], states["r_op", 2]) == ("differs", "lost")
    core = next(item for item in evaluation.assessment.core if (item.id, item.tier) == ("r_op", 2))
    assert core.value is not None
    assert core.error is not None
    assert 0.8 - core.value < core.error, "the standard error alone would excuse it"


def _of_task(task: int, condition: str, *, good: bool, runs: int = 5) -> list[Run]:
    outcome = "success" if good else "failure"
    name = f"{condition}-{task}"
    return [
        bundles.run(f"{name}-{n}", task_id=f"d/{task}", condition=condition, outcome=outcome)
        for n in range(runs)
    ]
