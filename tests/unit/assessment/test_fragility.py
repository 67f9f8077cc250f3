"""What would change the tier, against really changing the records and judging again."""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scipy import stats

from certkit.assessment.assessment import Question, Status
from certkit.assessment.evaluation import Evaluation, evaluate
from certkit.assessment.fragility import Fragility, failed_rows, fragility
from certkit.bundle.folder import open_bundle
from certkit.bundle.manifest_facts import facts_of
from certkit.ground.document import to_builtins
from certkit.summary.summarise import summarise
from tests.support import clustered, oracle
from tests.support.clustered import Design
from tests.support.hb_table import ROWS, table_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.profile import Profile
    from tests.support.strategies import Run

DESIGNS = {
    "recovery": Design(seed=9, tasks=90, runs=3, domains=2, family=0, success=0.75, guided=0.8, good=0.8),
    "memory": Design(seed=12, tasks=30, runs=6, domains=2, family=1, success=0.9, spread=0.05, guided=0.8),
    "perfect": Design(seed=3, tasks=40, runs=5, domains=2, family=0, success=1.0, good=1.0, guided=1.0),
    "weak": Design(seed=4, tasks=60, runs=9, domains=1, family=0, success=0.7),
}
DIGEST = "sha256:" + "0" * 64
RECOVERY = ("recovery_steps", "recovery_approach", "recovery_grade")


def profile(*names: str, reading: str = "table", **rows: tuple[str, dict[str, float]]) -> Profile:
    """Return some rows of Table 1 (all but CSI by default), and rows of its own."""
    chosen = {name: ROWS[name] for name in names} | rows
    return table_of(chosen or {name: row for name, row in ROWS.items() if name != "csi"}, reading=reading)


def evaluation(records: list[Run], table: Profile, **protocol: Any) -> Evaluation:
    contents = clustered.bundle(records, clustered.manifest(**protocol))
    with tempfile.TemporaryDirectory() as folder:
        bundle = open_bundle(contents.write(Path(folder) / "bundle"))
        facts = facts_of(bundle.manifest, agent_digest=DIGEST, digest=DIGEST, sealed=False)
        return evaluate(summarise(bundle), facts, table)


def found(records: list[Run], table: Profile, **protocol: Any) -> Fragility:
    result = evaluation(records, table, **protocol)
    return fragility(result.evidence, result.assessment, Question())


@cache
def records_of(name: str) -> list[Run]:
    return clustered.made(DESIGNS[name])


def flipped(records: list[Run], chosen: set[str]) -> list[Run]:
    """Turn the chosen runs into failures that did not recover; everything else stays."""
    return [
        {name: value for name, value in run.items() if name not in RECOVERY}
        | {"outcome": "failure"}
        | ({"recovered": False} if "recovered" in run else {})
        if run["run_id"] in chosen
        else run
        for run in records
    ]


def groups(records: list[Run]) -> Iterator[tuple[str, str | None, list[Run]]]:
    """Yield for every row (and domain) the successes that it loses most by, worst first."""
    won = [run for run in records if run["condition"] != "nominal" and run["outcome"] == "success"]
    graded = [run for run in won if run.get("fault_took_hold") is not False]
    yield "r_op", None, won
    yield "frr", None, sorted(graded, key=lambda run: -(oracle.grade(run) or 0))
    yield "irs", None, [run for run in won if oracle.is_recovery(run) and run.get("memory_modified")]
    yield "cascade_penalty", None, [run for run in won if run["condition"] == "cascade"]
    yield (
        "adversarial_resistance",
        None,
        [run for run in won if run["condition"] == "adversarial" and run.get("attack_landed")],
    )
    for domain in sorted({run["domain"] for run in records}):
        yield "domain_min", domain, [run for run in won if run["domain"] == domain]


def lost(records: list[Run], table: Profile, tier: int, chosen: list[Run]) -> set[str]:
    """Return the rows of a tier that fail when the chosen runs are flipped."""
    judged = evaluation(flipped(records, {run["run_id"] for run in chosen}), table).assessment
    return {
        row.id
        for row in judged.criteria
        if row.tier <= tier and row.deciding(table.reading) is Status.NOT_MET
    }


@pytest.mark.parametrize("name", ["recovery", "memory", "perfect"])
def test_the_least_number_of_flips_loses_the_tier_and_no_smaller_one_does(name: str) -> None:
    records, table = records_of(name), profile()
    result = found(records, table)
    assert result.tier > 0
    assert result.flips is not None
    assert 0 < result.flips.needed <= result.flips.of
    named = {(row, domain): runs for row, domain, runs in groups(records)}
    row = "r_op" if result.flips.criterion == "posterior" else result.flips.criterion
    runs = named[row, result.flips.domain]
    if row != "frr":  # of graded runs the sum of grades is known, rounded up
        assert result.flips.of == len(runs)
    assert result.flips.criterion in lost(records, table, result.tier, runs[: result.flips.needed])
    for runs in named.values():
        assert not lost(records, table, result.tier, runs[: result.flips.needed - 1])


def whole_tasks(won: list[Run], carrying: list[Run]) -> list[Run]:
    """Return successes task by task: those with the fewest runs that carry the row first, then the best."""
    size, good = (Counter(run["task_id"] for run in runs) for runs in (carrying, won))
    return sorted(
        won,
        key=lambda run: (size[run["task_id"]], -good[run["task_id"]] / size[run["task_id"]], run["task_id"]),
    )


@pytest.mark.parametrize("name", ["perfect", "memory"])
def test_a_confidence_limit_falls_at_the_flip_at_which_whole_tasks_lose_it(name: str) -> None:
    table = profile(reading="bounded", r_op=(">", {"1": 0.5, "2": 0.6}))
    records = records_of(name)
    result = found(records, table)
    assert result.flips is not None
    faults = [run for run in records if run["condition"] != "nominal"]
    runs = whole_tasks([run for run in faults if run["outcome"] == "success"], faults)
    truth = bisect_left(range(len(runs)), 1, key=lambda j: bool(lost(records, table, 2, runs[:j])))
    assert (result.tier, result.flips.needed, result.flips.series) == (2, truth, "r_op")


@pytest.mark.parametrize("reading", ["table", "bounded"])
def test_a_difference_falls_by_the_failures_of_its_second_arm(reading: str) -> None:
    table = profile(reading=reading, r_op=(">=", {"1": 0.1}), cascade_penalty=("<", {"1": 40}))
    design = Design(seed=3, tasks=120, runs=5, domains=1, family=0, success=1.0, good=1.0, guided=1.0)
    records = clustered.made(design)
    result = found(records, table)
    assert result.flips is not None
    assert (result.flips.criterion, result.flips.series) == ("cascade_penalty", "cascade")
    cascades = [run for run in records if run["condition"] == "cascade"]
    runs = whole_tasks([run for run in cascades if run["outcome"] == "success"], cascades)
    truth = bisect_left(range(len(runs)), 1, key=lambda j: bool(lost(records, table, 1, runs[:j])))
    # What the tasks of both arms share is lowered in proportion: limits are near the truth.
    assert result.flips.needed == truth if reading == "table" else abs(result.flips.needed - truth) <= 1


def test_whole_tasks_of_few_runs_fail_first() -> None:
    rows = ((1, 1, 2), (3, 2, 1), (3, 3, 1), (9, 9, 1))
    assert Counter(failed_rows(rows, 6)) == Counter({(1, 0, 2): 1, (3, 0, 1): 1, (3, 1, 1): 1, (9, 9, 1): 1})
    assert sorted(failed_rows(rows, 4, leaves=True)) == [(1, 1, 1), (3, 2, 1), (9, 9, 1)]


def test_rows_on_which_no_flip_is_tried_are_named() -> None:
    result = found(records_of("perfect"), profile())
    assert result.flips is not None
    assert result.flips.left_out == dict.fromkeys(("pei", "ti", "violations"), "no-outcome")


def test_a_row_that_no_failure_can_lose_needs_more_than_there_are() -> None:
    conditions = ("tool_failure", "cascade")
    design = Design(seed=1, tasks=40, runs=9, domains=1, family=0, conditions=conditions, success=1.0)
    records = clustered.made(design)
    for condition in conditions:
        won = [run["run_id"] for run in records if run["condition"] == condition]
        records = flipped(records, set(won[1:]))
    result = found(records, profile("cascade_penalty"))
    assert result.flips is not None
    assert (result.flips.needed, result.flips.of) == (2, 1)


def test_without_a_tier_nothing_is_flipped() -> None:
    result = found(records_of("weak"), profile(r_op=(">", {"1": 0.9})))
    assert (result.tier, result.flips) == (0, None)


def test_the_tier_without_each_domain_is_that_of_the_other_runs() -> None:
    records, table = records_of("recovery"), profile()
    result = found(records, table)
    assert [item.domain for item in result.without_domain] == ["d0", "d1"]
    for item in result.without_domain:
        rest = [run for run in records if run["domain"] != item.domain]
        assert item.table == evaluation(rest, table).assessment.verdict.table.tier


def test_limits_on_success_are_taken_again_without_each_domain() -> None:
    records, table = records_of("memory"), profile("r_op", "domain_min", reading="bounded")
    for item in found(records, table).without_domain:
        rest = [run for run in records if run["domain"] != item.domain]
        assert item.bounded == evaluation(rest, table).assessment.verdict.bounded.tier


def test_one_domain_is_not_left_out() -> None:
    assert found(records_of("weak"), profile()).without_domain == ()


@pytest.mark.parametrize("name", ["memory", "perfect", "weak"])
def test_the_posterior_falls_on_the_far_side_of_the_specificity(name: str) -> None:
    records = records_of(name)
    faults = [run for run in records if run["condition"] != "nominal"]
    s, n = sum(run["outcome"] == "success" for run in faults), len(faults)
    judge = {"name": "j", "independent": True}
    result = found(records, profile(), judge=judge, methodology="independent_judge")
    for tier, row in result.posterior.items():
        tau, asked = ROWS["r_op"][1][str(tier)], ROWS["posterior"][1][str(tier)]
        law = stats.beta(1 + s, 1 + n - s)
        assert row.holds == (law.sf(tau) > asked)
        if row.holds:
            assert row.specificity_falls_at is not None
            for step, holds in ((1e-6, True), (-1e-6, False)):
                specificity = row.specificity_falls_at + step
                # A true rate of τ looks like τ + (1 − τ)(1 − Sp) to a judge who misses no success.
                assert (law.sf(tau + (1 - tau) * (1 - specificity)) > asked) == holds


def test_where_no_model_gave_the_outcomes_no_error_of_a_judge_is_named() -> None:
    result = found(records_of("perfect"), profile(), methodology="trajectory")
    assert all(row.specificity_falls_at is None for row in result.posterior.values())


def test_missing_runs_count_as_failures_under_faults() -> None:
    records = records_of("memory")
    faults = [run for run in records if run["condition"] != "nominal"]
    successes = sum(run["outcome"] == "success" for run in faults)
    missing = found(records, profile(), declared_runs=len(records) + 100).missing_runs
    assert missing is not None
    assert (missing.missing, missing.successes, missing.n) == (100, successes, len(faults) + 100)
    assert missing.r_op == pytest.approx(successes / (len(faults) + 100), abs=1e-6)
    assert found(records, profile(), declared_runs=len(records)).missing_runs is None


def test_its_document_has_the_keys_that_programs_read() -> None:
    value = to_builtins(found(records_of("memory"), profile()))
    assert value.keys() == {"reading", "tier", "flips", "posterior", "without_domain", "missing_runs"}
    assert value["flips"].keys() == {"needed", "of", "criterion", "series", "domain", "left_out"}
    assert value["without_domain"][0].keys() == {"domain", "table", "bounded"}
