"""Plans: the design's numbers, monotony, refusals, and what the real reading makes of drawn evidence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pytest
from msgspec import structs

from certkit.assessment.bounded import Judged, spread
from certkit.assessment.kinds import KINDS, TaskMean
from certkit.assessment.plan import drawn, plan
from certkit.assessment.plan.design import design, expectations
from certkit.assessment.plan.document import Plan
from certkit.assessment.profile import parse
from certkit.ground.errors import NegativeError, UsageError
from certkit.summary.tasks import Tasks, task_sums
from tests.support import build
from tests.support.rows import Rows, evidence
from tests.support.schemas import schema_of

if TYPE_CHECKING:
    from certkit.assessment.plan.document import Planned
    from certkit.assessment.profile import Profile

BOUNDED = "hb-eval-2026-bounded"
TIERS = '[tiers.1]\nname = "A"\n[tiers.2]\nname = "B"\n[tiers.3]\nname = "C"\nconfidence = 0.99\n'


def one_row(metric: str, operator: str, tiers: str) -> Profile:
    return parse(
        f'id = "own"\nreading = "bounded"\n{TIERS}[[criteria]]\nid = "{metric}"\nmetric = "{metric}"\n'
        f'operator = "{operator}"\ntiers = {{{tiers}}}\n',
        "own.toml",
    )


R_OP = one_row("r_op", ">", "1 = 0.6, 2 = 0.8, 3 = 0.95")
VIOLATIONS = one_row("violations", "<", "1 = 1.0, 2 = 0.3, 3 = 0.1")


def planned(expect: str, tier: int = 2, table: Profile = R_OP, **options: Any) -> Plan:
    reading = options.pop("reading", table.reading)
    return plan(table, tier, expectations([expect]), design(reading, **({"domains": 1} | options)))


def row(made: Plan, name: str) -> Planned:
    return next(item for item in made.criteria if item.id == name)


# --- numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expect", "tier", "table", "tasks"),
    [
        ("r_op=.88", 2, R_OP, 74),
        ("violations=.15", 2, VIOLATIONS, 106),
        ("violations=.02", 3, VIOLATIONS, 264),
    ],
)
def test_the_plan_is_the_designs_but_for_the_noise_of_the_draws(
    expect: str, tier: int, table: Profile, tasks: int
) -> None:
    found = planned(expect, tier, table)
    assert found.schedule.tasks == pytest.approx(tasks, rel=0.08)
    assert 0.8 <= found.power_of_all < 0.84


@pytest.mark.parametrize(("tier", "least"), [(2, 13), (3, 89)])
def test_a_perfect_agent_takes_the_least_number_of_tasks(tier: int, least: int) -> None:
    found = planned("r_op=1", tier)
    assert (found.schedule.tasks, row(found, "r_op").least_tasks, found.power_of_all) == (least, least, 1.0)


def test_the_table_reading_takes_runs_for_independent_and_so_fewer_tasks() -> None:
    table = build.profile()
    of_table, of_bounds = (
        planned("r_op=.9", 2, table, reading=reading, domains=2) for reading in ("table", "bounded")
    )
    assert of_table.schedule.tasks < of_bounds.schedule.tasks
    assert {item.least_tasks for item in of_table.criteria} == {None, 10}


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ({"icc": 0.1}, {"icc": 0.6}),
        ({"power": 0.5}, {"power": 0.95}),
        ({"runs_per_task": 20}, {"runs_per_task": 1}),
        ({"attempt": 1}, {"attempt": 3}),
    ],
)
def test_harder_conditions_take_more_tasks(less: dict[str, Any], more: dict[str, Any]) -> None:
    assert planned("r_op=.9", **less).schedule.tasks < planned("r_op=.9", **more).schedule.tasks


def test_an_insufficient_row_names_the_missing_tasks_and_about_how_many_the_plan_takes() -> None:
    runs, won = [4, 3, 3, 3, 3, 3, 3, 3], [3, 3, 3, 3, 3, 3, 2, 2]  # 22 of 25
    drawn_up = evidence(
        Rows(cluster=c, task=c, y=y, n=n) for c, (n, y) in enumerate(zip(runs, won, strict=True))
    )
    summary = structs.replace(drawn_up, unclustered=drawn_up.records)
    rows = Judged(summary, build.facts(tasks_independent=True).manifest, R_OP).rows
    (bounded,) = (row.bounded for row in rows if row.tier == 2)
    assert bounded is not None
    words = r"8 tasks; Tier 2 takes at least 13, and about (\d+) to show 88\.0 %"
    told = re.fullmatch(words, str(bounded.reason))
    assert told is not None
    assert int(told[1]) == pytest.approx(planned("r_op=.88", runs_per_task=3).schedule.tasks, rel=0.15)
    assert 70 <= int(told[1]) <= 100


def test_about_how_many_tasks_scores_take_rests_on_how_they_vary() -> None:
    y, n = np.array([0, 6, 2, 1, 9]), np.array([2, 3, 4, 1, 3])
    tasks = Tasks(group=np.zeros(5, np.int64), task=np.arange(5, dtype=np.uint64), y=y, n=n, scale=1)
    assert spread(task_sums(tasks)[0], -0.2) == pytest.approx(np.var(-0.2 * y / n, ddof=1), rel=1e-12)
    alike = structs.replace(tasks, y=np.ones(5, np.int64), n=np.full(5, 3))
    assert spread(task_sums(alike)[0], 1.0) == 0


def test_the_schedule_follows_the_mix_and_a_fifth_is_nominal() -> None:
    found = planned("r_op=.9", fault_mix={"adversarial": 0.5, "tool_failure": 0.25, "cascade": 0.25})
    cells = found.schedule.per_domain
    faults = sum(cells.values()) - cells["nominal"]
    assert cells["adversarial"] == pytest.approx(faults / 2, abs=2)
    assert cells["nominal"] == pytest.approx(found.schedule.runs / 5, abs=2)
    assert faults == pytest.approx(5 * found.schedule.tasks, abs=3)


def test_rows_with_no_expectation_count_with_the_tasks_they_take_at_least() -> None:
    found = planned("r_op=1", 2, build.profile(BOUNDED), domains=1)
    assert found.schedule.tasks >= 48  # violations
    assert row(found, "violations").power is None
    assert row(found, "violations").reason == "no expectation is given"
    assert row(found, "csi_windowed").reason == "500 ordered runs at least; no power is known of it"
    assert found.schedule.runs >= 500
    assert found.driver == "csi_windowed"


def test_all_rows_together_are_met_no_more_often_than_each() -> None:
    frr = '[[criteria]]\nid = "frr"\nmetric = "frr"\noperator = ">="\ntiers = {1 = 0.5, 2 = 0.8, 3 = 0.9}\n'
    r_op = '[[criteria]]\nid = "r_op"\nmetric = "r_op"\noperator = ">"\ntiers = {1 = 0.5, 2 = 0.8, 3 = 0.9}\n'
    table = parse(f'id = "own"\nreading = "bounded"\n{TIERS}{frr}{r_op}', "own.toml")
    each = planned("r_op=.9,frr=.9", 2, table)
    powers = [item.power for item in each.criteria if item.power is not None]
    assert row(each, each.driver).power == min(powers)
    assert each.power_of_all <= min(powers)


# --- what is drawn ----------------------------------------------------------------------------------


def test_what_is_drawn_has_the_mean_and_the_correlation_that_are_stated() -> None:
    made = design("bounded", domains=1, icc=0.3)
    expect = expectations(["r_op=.8,cascade_penalty=10,adversarial_resistance=.7,frr=.85,ti=4.2"])
    sample = drawn.Drawn(made, expect, drawn.Rates(made, expect), 100)
    for series, mean in (
        ("r_op", 0.8), ("adversarial_resistance", 0.7), ("frr", 0.85), ("ti", 4.2),
    ):  # fmt: skip
        assert float(np.mean(TaskMean(series).value(sample))) == pytest.approx(mean, abs=0.01)
    assert float(np.mean(KINDS["cascade_penalty"].value(sample))) == pytest.approx(10, abs=0.6)  # type: ignore[union-attr]
    plain = expectations(["r_op=.8"])
    sums = drawn.Drawn(made, plain, drawn.Rates(made, plain), 100).sums("r_op")
    assert sums is not None
    spread = float(np.mean(sums.xx / sums.k - (sums.x / sums.k) ** 2))
    assert spread == pytest.approx(0.16 * (0.3 + 0.7 / 5), rel=0.05)


def test_domains_make_up_the_mean_around_the_weakest() -> None:
    made = design("bounded", domains=4)
    expect = expectations(["r_op=.9,domain_min=.75"])
    sample = drawn.Drawn(made, expect, drawn.Rates(made, expect), 50)
    rates = [float(np.mean(TaskMean("r_op", name).value(sample))) for name in sample.domains]
    assert rates == pytest.approx([0.75, 0.95, 0.95, 0.95], abs=0.01)


@pytest.mark.parametrize(("share", "tasks"), [(1.0, 7), (0.25, 8), (1.25, 21), (0.2, 3)])
def test_runs_are_dealt_evenly(share: float, tasks: int) -> None:
    runs = drawn.dealt(share, tasks)
    assert max(runs) - min(runs) <= 1
    assert share * tasks <= sum(runs) < share * tasks + 1


# --- document, refusals -----------------------------------------------------------------------------


def test_the_document_has_its_published_form_and_is_always_the_same() -> None:
    document = planned("r_op=.93", 2, build.profile(), domains=2).to_dict()
    jsonschema.validate(document, schema_of(Plan))
    assert document == planned("r_op=.93", 2, build.profile(), domains=2).to_dict()
    assert document["curve"][-1]["tasks"] > document["schedule"]["tasks"]


def test_an_expectation_at_or_beyond_the_threshold_is_refused_by_name() -> None:
    with pytest.raises(NegativeError) as caught:
        planned("r_op=.8")
    assert caught.value.message == "no number of tasks shows r_op at Tier 2: 80.0 % expected, > 80 % asked"


def test_too_close_to_the_threshold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certkit.assessment.plan.MOST_TASKS", 200)
    with pytest.raises(NegativeError) as caught:
        planned("r_op=.805")
    assert "too close to the threshold, more than 200 tasks" in caught.value.message


@pytest.mark.parametrize(
    ("expect", "options", "message"),
    [
        ("r_op", {}, "expectation 'r_op' is not METRIC=VALUE"),
        ("r_op=.9,r_op=.8", {}, "two expectations of r_op"),
        ("r_op=1.2", {}, "r_op: expected values are 0 to 1, found 1.2"),
        ("frr=.9:.1", {}, "expectation 'frr=.9:.1' is not METRIC=VALUE"),
        ("nonsense=.9", {}, "'nonsense' is no metric"),
        ("frr=.9", {}, "'frr' is no metric whose value is expected for Tier 2 of own"),
        ("r_op=.9", {"icc": 1.0}, "icc: expected 0 to below 1, found 1"),
        ("r_op=.9", {"domains": 0}, "domains: expected 1 to 100, found 0"),
        ("r_op=.9", {"power": 1.0}, "power: expected more than 0 and less than 1, found 1"),
        ("r_op=.9", {"runs_per_task": 0}, "runs_per_task: expected 1 to 1,000, found 0"),
        ("r_op=.9", {"fault_mix": {"rain": 1.0}}, "fault_mix: 'rain' is none of"),
        (
            "r_op=.9",
            {"fault_mix": {"cascade": 0.5}},
            "fault_mix: expected shares of at least 0 that sum to 1",
        ),
    ],
)
def test_what_cannot_be_is_a_wrong_use(expect: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        planned(expect, **options)
    assert caught.value.message.startswith(message)


def test_expectations_that_contradict_each_other_are_a_wrong_use() -> None:
    table = build.profile()
    for expect, message in (
        ("r_op=.9,domain_min=.95", "domain_min: a weakest of 5 at 0.95 does not fit r_op 0.9 over all"),
        ("r_op=.98,cascade_penalty=19", "the expectations would need a success of"),
        ("cascade_penalty=8", "cascade_penalty is planned together with an expectation of r_op"),
    ):
        with pytest.raises(UsageError) as caught:
            planned(expect, 2, table, domains=5)
        assert caught.value.message.startswith(message)
