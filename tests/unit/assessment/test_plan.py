"""Plans: what is drawn, the sizes that come of it, monotony, refusals, and the row tests."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from certkit.assessment import bounds
from certkit.assessment import plan as room
from certkit.assessment.plan import (
    BATCH,
    Bundles,
    Design,
    Plan,
    PlannedRow,
    condition_rates,
    dealt,
    domain_rates,
    plan,
    row_check,
)
from certkit.assessment.profile import Profile, read_profile
from certkit.assessment.row import hardest_rows
from certkit.ground.document import to_builtins
from certkit.ground.errors import NegativeError, UsageError
from tests.support.hb_table import ROWS, table_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from certkit.assessment.plan import RowTest


def table(*names: str, more: Iterable[Mapping[str, Any]] = ()) -> Profile:
    """Return a profile with some rows of Table 1, all by default."""
    rows = {name: ROWS[name] for name in names or ROWS}
    return table_of(rows, reading="bounded", min_n=10, more=more)


FULL = table()


@cache
def full(tier: int, margin: float) -> Plan:
    return plan(FULL, tier, Design(reading="bounded", margin=margin))


def r_op(stated: Mapping[str, float] | None = None, tier: int = 2, **options: Any) -> Plan:
    """Return a plan of the success row alone."""
    settings: dict[str, Any] = {"reading": "bounded", "domains": 1} | options
    return plan(table("r_op"), tier, Design(**settings), stated or {"r_op": 0.88})


def row(result: Plan, name: str) -> PlannedRow:
    return next(item for item in result.criteria if item.id == name)


# --- sizes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tier", "margin", "low", "high"),
    [(2, 0.05, 240, 330), (2, 0.1, 100, 165), (3, 0.025, 500, 800)],
)
def test_a_whole_tier_takes_hundreds_of_tasks(tier: int, margin: float, low: int, high: int) -> None:
    result = full(tier, margin)
    assert low <= result.schedule.tasks <= high
    assert 0.8 <= result.power < 0.87


def test_the_plan_is_for_the_tier_and_not_for_a_row() -> None:
    result = full(2, 0.05)
    powers = {item.id: item.power for item in result.criteria if item.power is not None}
    assert result.power <= min(powers.values())
    assert powers[result.driver] == min(powers.values())
    assert row(result, "csi").reason == "provisional"
    assert row(result, "csi").power is None


def test_one_row_takes_as_many_tasks_as_the_normal_law_of_its_mean_says() -> None:
    # x̄ has the variance θ(1 − θ)(ρ + (1 − ρ)/5)/k; its posterior has one failed and one passed task more.
    theta, tau = 0.88, 0.80

    def power(k: int) -> float:
        spread = theta * (1 - theta) * (0.3 + 0.7 / 5)
        middle, error = (k * theta + 1) / (k + 2), np.sqrt(k * spread + theta**2 + (1 - theta) ** 2) / (k + 2)
        return float(
            stats.norm.sf((tau - middle + stats.norm.isf(0.05) * error) * (k + 2) / np.sqrt(k * spread))
        )

    expected = next(k for k in range(10, 500) if power(k) >= 0.8)
    assert r_op().schedule.tasks == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize(("tier", "least"), [(2, 13), (3, 89)])
def test_a_perfect_agent_takes_the_least_number_of_tasks(tier: int, least: int) -> None:
    result = r_op({"r_op": 1.0}, tier)
    assert (result.schedule.tasks, row(result, "r_op").least_tasks, result.driver) == (least, least, "r_op")
    assert result.power == 1


@pytest.mark.parametrize(
    ("fewer", "more"),
    [
        ({"icc": 0.1}, {"icc": 0.6}),
        ({"power": 0.5}, {"power": 0.95}),
        ({"runs_per_task": 20}, {"runs_per_task": 1}),
    ],
)
def test_harder_conditions_take_more_tasks(fewer: dict[str, Any], more: dict[str, Any]) -> None:
    assert r_op(**fewer).schedule.tasks < r_op(**more).schedule.tasks


def test_a_better_agent_takes_fewer_tasks_and_averages_fewer_than_limits() -> None:
    sizes = [r_op({"r_op": rate}).schedule.tasks for rate in (0.86, 0.9, 0.95)]
    assert sizes == sorted(sizes, reverse=True)
    assert plan(FULL, 2, Design(reading="table")).schedule.tasks < full(2, 0.05).schedule.tasks / 3


def test_the_curve_rises_and_meets_the_plan() -> None:
    result = full(2, 0.05)
    powers = [point.power for point in result.curve]
    assert powers == sorted(powers)
    assert (result.schedule.tasks, result.power) in [(point.tasks, point.power) for point in result.curve]


def test_the_same_seed_gives_the_same_plan_and_another_one_nearly() -> None:
    one, again, other = r_op(), r_op(), r_op(seed=7)
    assert to_builtins(one) == to_builtins(again)
    assert other.power != one.power
    assert other.schedule.tasks == pytest.approx(one.schedule.tasks, rel=0.15)


# --- what is drawn ------------------------------------------------------------------------------------


def drawn(expect: dict[str, float], tasks: int = 100, **options: Any) -> Bundles:
    base = {"r_op": 0.8, "c_nom": 0.9, "irs": 0.7, "frr": 0.7, "ti": 4.2, "pei": 0.85, "violations": 0.4}
    settings: dict[str, Any] = {"reading": "table", "domains": 1} | options
    return Bundles(Design(**settings), base | expect, tasks, 0)


@pytest.mark.parametrize(
    ("series", "mean", "tolerance"),
    [
        ("r_op", 0.8, 0.006), ("c_nom", 0.9, 0.006), ("irs", 0.7, 0.006), ("frr", 0.7, 0.006),
        ("ti", 4.2, 0.02), ("pei", 0.85, 0.004), ("violations", 0.4, 0.015),
    ],
)  # fmt: skip
def test_what_is_drawn_has_the_mean_that_is_expected(series: str, mean: float, tolerance: float) -> None:
    x, n = drawn({}).values(series)
    assert float((x * n).sum() / n.sum()) == pytest.approx(mean, abs=tolerance)


@pytest.mark.parametrize("icc", [0.0, 0.3, 0.7])
def test_the_means_of_tasks_vary_as_a_beta_binomial_law_has_it(icc: float) -> None:
    x, _ = drawn({}, tasks=200, icc=icc).values("r_op")
    assert float(x.var()) == pytest.approx(0.16 * (icc + (1 - icc) / 5), rel=0.03)


def test_the_successes_of_a_task_follow_the_beta_binomial_law() -> None:
    x, _ = drawn({}, tasks=200).values("r_op")
    size = 0.7 / 0.3
    counts = np.bincount(np.rint(5 * x).astype(int).ravel(), minlength=6) / x.size
    expected = stats.betabinom(5, 0.8 * size, 0.2 * size).pmf(range(6))
    assert counts == pytest.approx(expected, abs=0.006)


def test_violations_follow_a_gamma_poisson_law_of_shape_one_half() -> None:
    # With 6.25 runs a task the sum is negative binomial: variance of the mean m/n + m²/.5.
    x, n = drawn({}, tasks=200).values("violations")
    assert float(x.var()) == pytest.approx(0.4 * np.mean(1 / n) + 0.4**2 / 0.5, rel=0.05)
    sums = np.rint(x * n)[n == 6].astype(int)
    law = stats.nbinom(0.5, 0.5 / (0.5 + 6 * 0.4))
    assert np.bincount(sums)[:4] / len(sums) == pytest.approx(law.pmf(range(4)), abs=0.01)


def test_limits_count_no_more_than_five_violations_of_a_run() -> None:
    heavy = {"violations": 4.0}
    capped, _ = drawn(heavy, reading="bounded").values("violations")
    plain, _ = drawn(heavy, reading="table").values("violations")
    assert capped.max() <= 5 < plain.max()


def test_conditions_and_domains_have_the_success_that_is_expected_of_them() -> None:
    expect = {"r_op": 0.85, "c_nom": 0.9, "cascade_penalty": 15.0, "adversarial_resistance": 0.75}
    rates = {name: float(rate) for name, (rate,) in condition_rates(expect, 1).items()}
    single = (
        sum(rates[name] for name in ("adversarial", "context_corruption", "tool_failure", "stochastic")) / 4
    )
    assert single - rates["cascade"] == pytest.approx(0.15)
    assert (4 * single + rates["cascade"]) / 5 == pytest.approx(0.85)
    bundles = drawn(expect | {"domain_min": 0.79}, domains=4, tasks=100)
    means = {name: bundles.values(name)[0].mean() for name in ("single", "cascade", "adversarial_resistance")}
    assert means == {
        "single": pytest.approx(0.88, abs=0.01),
        "cascade": pytest.approx(0.73, abs=0.01),
        "adversarial_resistance": pytest.approx(0.75, abs=0.01),
    }
    weakest = [bundles.values("r_op", number)[0].mean() for number in range(4)]
    assert weakest == pytest.approx([0.79, 0.87, 0.87, 0.87], abs=0.01)


@pytest.mark.parametrize(("runs_per_task", "tasks"), [(5, 40), (1, 10), (7, 12), (3, 1)])
def test_runs_are_dealt_evenly_and_a_fifth_is_normal(runs_per_task: int, tasks: int) -> None:
    runs = dealt(Design(reading="table", runs_per_task=runs_per_task), tasks)
    faults = np.sum([column for name, column in runs.items() if name != "nominal"], axis=0)
    assert all(column.max() - column.min() <= 1 for column in runs.values())
    assert faults.sum() == pytest.approx(runs_per_task * tasks, abs=5)
    assert runs["nominal"].sum() == -(-runs_per_task * tasks // 4)
    assert faults.max() - faults.min() <= 1


# --- the tests that rows share with an assessment -----------------------------------------------------


@pytest.mark.parametrize(
    "name", ["r_op", "frr", "irs", "pei", "ti", "violations", "domain_min", "cascade_penalty"]
)
def test_a_row_holds_where_its_confidence_limit_keeps_the_threshold(name: str) -> None:
    profile = table("r_op", name)
    design = Design(reading="bounded", domains=2, runs_per_task=7)
    search = room._Search(profile, 2, design, {"cascade_penalty": 14.0} if name == "cascade_penalty" else {})
    (test,) = (test for test in search.rows if test.criterion.id == name)
    bundles = Bundles(design, search.expect, 60, 0)
    holds = row_check(test, profile, bundles)
    found = [holds(draw) for draw in range(BATCH)]
    assert 0.1 < np.mean(found) <= 1
    some = range(0, BATCH, 4)  # exact sums and quantiles take long
    assert [found[draw] for draw in some] == [_limit_keeps(test, bundles, draw) for draw in some]


def _limit_keeps(test: RowTest, bundles: Bundles, draw: int) -> bool:
    """Tell by quantiles on exact sums what `row_check` tells by one tail."""
    delta, name = Fraction(95, 100), test.criterion.id

    def tasks(series: str, domain: int | None = None) -> bounds.Tasks:
        x, n = (column[draw].tolist() for column in bundles.values(series, domain))
        found = bounds.tasks_of(
            (r, 1, Fraction(v) * r, (Fraction(v) * r) ** 2) for v, r in zip(x, n, strict=True) if r
        )
        assert found is not None
        return found

    if name == "cascade_penalty":
        a, b = (bundles.values(series) for series in ("single", "cascade"))
        limits = []
        sides = [tasks("single"), tasks("cascade")]
        for kind in ("alike", "by_runs"):
            w_a, w_b = (
                (column[1][draw] > 0) * 1.0 if kind == "alike" else column[1][draw] * side.k / side.n
                for column, side in zip((a, b), sides, strict=True)
            )
            w, x_a, x_b = w_a * w_b, a[0][draw], b[0][draw]
            both = bounds.Both._make(float(np.sum(w * part)) for part in (1.0, x_a * x_b, x_a, x_b))
            law = bounds.difference(getattr(sides[0], kind), getattr(sides[1], kind), both)
            limits.append(1 - 2 * law.quantile(0.05))
        return max(limits) < 0.20
    if name == "domain_min":
        return all(bounds.lower(tasks("r_op", number), test.threshold, delta) > 0.65 for number in (0, 1))
    start, slope = {
        "ti": (Fraction(-1, 4), Fraction(1, 4)),
        "violations": (Fraction(1), Fraction(-1, 5)),
    }.get(name, (Fraction(0), Fraction(1)))
    limit = start + slope * test.threshold
    return bounds.lower(tasks(name).scaled(start, slope), limit, delta) > limit


def test_a_tail_that_is_not_computed_would_have_said_the_same() -> None:
    for mean in (0.55, 0.8, 0.93, 0.999):
        for variance in (1e-6, 1e-4, 4e-4):
            law = bounds.Law(mean, variance)
            for threshold in np.linspace(mean - 0.2, mean + 0.001, 40):
                assert law.exceeds(float(threshold), 0.95) == (law.above(float(threshold)) > 0.95)


def test_a_row_that_a_harder_one_entails_is_left_out() -> None:
    assert [(criterion.id, tier) for criterion, tier in hardest_rows(table("r_op", "posterior"), 3)] == [
        ("r_op", 3),
        ("posterior", 3),
    ]
    loose = table(
        more=[{"id": "c_nom", "metric": "c_nom", "operator": ">", "tiers": {"1": 0.9, "2": 0.8, "3": 0.85}}]
    )
    assert [tier for criterion, tier in hardest_rows(loose, 3) if criterion.id == "c_nom"] == [1, 3]


def test_a_lower_tier_that_asks_for_more_confidence_is_planned_too() -> None:
    value = {
        "id": "own",
        "tiers": {"1": {"name": "A", "confidence": 0.999}, "2": {"name": "B"}},
        "criteria": [{"id": "r_op", "metric": "r_op", "operator": ">", "tiers": {"1": 0.6, "2": 0.8}}],
    }
    assert [tier for _, tier in hardest_rows(read_profile(value), 2)] == [1, 2]


# --- expectations and refusals ------------------------------------------------------------------------


def test_the_agent_is_better_than_every_row_by_the_margin_at_most_half_way() -> None:
    result = full(2, 0.05)
    assert result.expect == {
        "adversarial_resistance": 0.9, "c_nom": 0.9, "cascade_penalty": 0, "domain_min": 0.9, "frr": 0.9,
        "irs": 0.8, "pei": 0.85, "r_op": 0.9, "ti": 4.25, "violations": 0.15,
    }  # fmt: skip
    assert full(3, 0.025).expect["violations"] == 0.05
    assert full(3, 0.025).expect["r_op"] == 0.975


def test_what_is_stated_is_expected() -> None:
    result = plan(
        table("r_op", "frr", "cascade_penalty"), 2, Design(reading="table"), {"cascade_penalty": 12.0}
    )
    assert (result.expect["cascade_penalty"], result.stated) == (12, ("cascade_penalty",))
    assert result.expect["frr"] <= result.expect["r_op"]


def test_attested_rows_are_listed_and_provisional_ones_count_where_asked() -> None:
    attested = {"id": "trust", "metric": "human_trust_score", "operator": ">=", "tiers": {"3": 4.5}}
    profile = table("r_op", "csi", more=[attested])
    plain = plan(profile, 3, Design(reading="table"))
    strict = plan(profile, 3, Design(reading="table", strict=True))
    assert {item.id: item.reason for item in plain.criteria} == {
        "r_op": None, "csi": "provisional", "trust": "attested",
    }  # fmt: skip
    assert row(strict, "csi").reason == "ordered-runs"
    assert (
        plan(table("r_op", "csi"), 1, Design(reading="table", strict=True), {"r_op": 1.0}).schedule.runs
        >= 100
    )


def test_an_expectation_at_or_beyond_the_threshold_is_refused_by_name() -> None:
    with pytest.raises(NegativeError) as caught:
        r_op({"r_op": 0.8})
    assert caught.value.code == "plan.impossible"
    assert (
        caught.value.message == "no number of tasks is enough: r_op at Tier 2: 80.0 % expected, > 80 % asked"
    )


def test_too_close_to_the_threshold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certkit.assessment.plan.MOST_TASKS", 200)
    with pytest.raises(NegativeError) as caught:
        r_op({"r_op": 0.805})
    assert caught.value.message.startswith("more than 200 tasks are needed")


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"nonsense": 0.9}, "nothing can be expected of 'nonsense' here"),
        ({"posterior": 0.9}, "nothing can be expected of 'posterior' here"),
        ({"r_op": 1.2}, "r_op: expected values are 0 to 1, not 1.2"),
        ({"ti": 6.0}, "ti: expected values are 1 to 5, not 6"),
        ({"r_op": 0.9, "domain_min": 0.95}, "domain_min: a weakest of 5 at 0.95 does not fit r_op 0.9"),
        ({"r_op": 0.98, "cascade_penalty": 19.0}, "the expectations would need a success of"),
    ],
)
def test_expectations_that_cannot_be_are_a_wrong_use(stated: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(FULL, 2, Design(reading="bounded"), stated)
    assert caught.value.message.startswith(message)


def test_a_tier_that_is_not_there_is_a_wrong_use() -> None:
    with pytest.raises(UsageError):
        plan(FULL, 4, Design(reading="bounded"))


def test_domains_make_up_the_mean_around_the_weakest() -> None:
    assert domain_rates({"r_op": 0.9, "domain_min": 0.75}, 4).tolist() == pytest.approx(
        [0.75, 0.95, 0.95, 0.95]
    )
