"""Drift between what passports carry: arithmetic against scipy, every result, every state, every refusal."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec import convert, structs
from scipy import stats

from certkit.assessment.assess import assess
from certkit.assessment.assessment import read_assessment
from certkit.assessment.profile import read_profile
from certkit.bundle.facts import ComponentFacts, JudgeFacts, read_facts
from certkit.bundle.folder import open_bundle
from certkit.bundle.manifest_facts import facts_of
from certkit.comparison.contrast import Weighed, adjusted, contrast, limit, sides_of, slopes, weighed
from certkit.comparison.drift import Drift, drift, trend
from certkit.ground.document import to_builtins
from certkit.summary.summarise import summarise
from certkit.summary.summary import read_summary
from tests.support import bundles
from tests.support.sides import (
    AGENT,
    HIGH,
    LOW,
    RULE,
    Cells,
    apart,
    digest,
    evaluation,
    even,
    laid,
    one,
    profile,
    side,
    values,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from certkit.assessment.evaluation import Evaluation
    from certkit.comparison.contrast import Runs
    from certkit.comparison.drift import DriftRow


def test_with_all_tasks_shared_it_is_the_paired_t_test() -> None:
    random = np.random.default_rng(3)
    old, new = random.random((2, 40))
    result = contrast(laid(old.tolist(), new.tolist()), (1, -1))
    expected = stats.ttest_rel(old, new, alternative="greater")
    assert result.p_loss == pytest.approx(expected.pvalue, rel=1e-9)
    assert result.loss / result.se == pytest.approx(expected.statistic, rel=1e-9)
    assert result.freedom == expected.df
    assert result.p_gain == pytest.approx(1 - expected.pvalue, rel=1e-9)


def test_with_no_task_shared_it_is_the_unpaired_t_test_of_equal_sides() -> None:
    # Its p takes k − 1 degrees of freedom, the fewest that Welch's formula can give.
    random = np.random.default_rng(4)
    old, new = random.random((2, 40))
    result = contrast(apart(old, new), (1, -1))
    expected = stats.ttest_ind(old, new, alternative="greater").statistic
    assert result.loss / result.se == pytest.approx(expected, rel=1e-9)
    assert result.p_loss == pytest.approx(stats.t.sf(expected, 39), rel=1e-9)


def test_a_task_on_both_sides_counts_once() -> None:
    random = np.random.default_rng(5)
    old, new = random.random(30), random.random(25)
    # Tasks 0 to 19 are on both sides, 20 to 29 on the old, 30 to 34 on the new one.
    result = contrast(laid([*old, *[None] * 5], [*new[:20], *[None] * 10, *new[20:]]), (1, -1))
    u = np.zeros(35)
    u[:30] += (old - old.mean()) / 30
    u[[*range(20), *range(30, 35)]] -= (new - new.mean()) / 25
    squares = np.array([30 * old.var(), 25 * new.var()])
    more = squares.sum() / 55 * (1 / 30 + 1 / 25) - squares @ [1 / 30**2, 1 / 25**2]
    assert result.se == pytest.approx(np.sqrt(25 / 24 * (np.sum(u * u) + max(0, more))), rel=1e-9)
    assert result.freedom == 24


def test_beside_many_tasks_the_error_of_few_is_at_least_the_pooled_one() -> None:
    few, many = np.r_[np.ones(9), 0.9], (np.arange(100) >= 10).astype(float)
    result = contrast(apart(few, many), (1, -1))
    # V has k/(k − 1) of the smaller side where the pooled test has K/(K − 2).
    expected = stats.ttest_ind(few, many, equal_var=True).statistic * np.sqrt(110 / 108 / (10 / 9))
    assert result.loss / result.se == pytest.approx(expected, rel=1e-9)
    assert result.p_loss == pytest.approx(stats.t.sf(expected, 9), rel=1e-9)
    weights = [float(weight) for weight in slopes(3)]
    assert contrast(apart(few, many, many), weights).p_loss > 0.1
    # The smaller side's own error counts where it is the larger one.
    wide = np.arange(10) % 2.0
    own = np.sqrt(10 / 9 * (wide.var() / 10 + many.var() / 100))
    assert contrast(apart(wide, many), (1, -1)).se == pytest.approx(own, rel=1e-9)


def test_a_trend_is_the_least_squares_line_from_the_first_passport_to_the_last() -> None:
    random = np.random.default_rng(6)
    for count in (3, 5, 8):
        columns = random.random((count, 30))
        result = contrast(laid(*columns), [float(weight) for weight in slopes(count)])
        fitted = stats.linregress(np.arange(count), columns.mean(axis=1)).slope
        assert result.loss == pytest.approx(-fitted * (count - 1), rel=1e-9)
        # Per task the fitted loss is one number, and its mean is tested.
        each = [-stats.linregress(np.arange(count), column).slope * (count - 1) for column in columns.T]
        assert result.p_loss == pytest.approx(
            stats.ttest_1samp(each, 0, alternative="greater").pvalue, rel=1e-8
        )
    assert [float(weight) for weight in slopes(2)] == [1, -1]


def test_where_every_task_lost_the_same_p_is_that_of_the_sign_test() -> None:
    for sides in (laid([1.0] * 12, [0.0] * 12), apart([1.0] * 12, [0.0] * 12)):
        assert contrast(sides, (1, -1)).p_loss == stats.binomtest(12, 12, alternative="greater").pvalue
        assert contrast(sides, (-1, 1)).p_loss == 1
    assert contrast(laid([1.0] * 12, [1.0] * 12), (1, -1)).p_loss == 1


def test_the_adjusted_p_is_that_of_benjamini_and_hochberg() -> None:
    random = np.random.default_rng(11)
    for size in (1, 2, 7, 20):
        for _ in range(50):
            p = list(random.random(size) ** random.integers(1, 6))
            assert adjusted(p) == pytest.approx(list(stats.false_discovery_control(p)))
    assert adjusted([]) == []


@pytest.mark.parametrize("shared", [True, False])
def test_the_limit_of_a_loss_is_the_beta_quantile_written_out(shared: bool) -> None:  # noqa: FBT001
    random = np.random.default_rng(7)
    a, b = random.random((2, 25)).round(2)
    result = limit((laid if shared else apart)(a, b), "r_op")
    size = 26 * 27
    first, second = (a.sum() + 1) / 26, b.sum() / 26
    va = (np.sum((a - first) ** 2) + (1 - first) ** 2) / size
    vb = (np.sum((b - second) ** 2) + second**2) / size
    c = np.sum((a - first) * (b - second)) / size if shared else 0.0
    mean, variance = (1 - first + second) / 2, (va + vb - 2 * c) / 4
    n = mean * (1 - mean) / variance - 1
    assert result == pytest.approx(1 - 2 * stats.beta.ppf(0.05, mean * n, (1 - mean) * n), rel=1e-9)


def test_a_loss_of_the_margin_is_seldom_excluded() -> None:
    # The new side is worse by the margin exactly; each draw in which that is excluded is a wrong "stable".
    random, wrong = np.random.default_rng(17), 0
    for _ in range(700):
        chance = random.beta(9 * 0.85, 9 * 0.15, 100)
        old = random.binomial(10, chance) / 10
        new = random.binomial(10, np.maximum(chance - 0.05, 0)) / 10
        wrong += limit(laid(old, new), "r_op") < 0.05
    assert wrong / 700 < 0.075


def test_stable() -> None:
    result = drift(one(HIGH), one(HIGH))
    assert (result.result, result.exit_code) == ("STABLE", 0)
    assert {item.state for item in result.behaviour} == {"EQUIVALENT"}
    assert result.reasons[0] == (
        "operational reliability (r_op) was 80.0 % (60 tasks), is 80.0 % (60 tasks):"
        " it fell by less than 5.0 points (95 % confidence)"
    )


def test_a_loss_is_drift_before_a_change_of_identity() -> None:
    result = drift(one(HIGH), one(LOW, identity="2"))
    assert (result.result, result.exit_code) == ("DRIFTED", 5)
    overall = result.behaviour[0]
    assert (overall.state, overall.flagged) == ("WORSE", True)
    assert overall.difference == pytest.approx(0.2)


def test_a_gain_is_shown_and_is_no_drift() -> None:
    result = drift(one(LOW), one(HIGH))
    assert result.result == "STABLE"
    assert {item.state for item in result.behaviour if item.metric == "r_op"} == {"BETTER"}
    assert not any(item.flagged for item in result.behaviour)
    assert result.reasons[0] == (
        "operational reliability (r_op) rose from 60.0 % (60 tasks) to 80.0 % (60 tasks):"
        " 20.0 points better; the margin is 5.0 points"
    )


def test_a_change_of_identity_is_named_part_by_part() -> None:
    tools = [ComponentFacts(role="tools", name=name) for name in "tu"]
    model = ComponentFacts(role="model", name="m", version="2", digest="sha256:" + "e" * 64)
    code = ComponentFacts(role="code", name="c")
    before = structs.replace(AGENT, components=(*AGENT.components, tools[1], code))
    after = structs.replace(AGENT, version="2", provider="x", components=(model, *tools))
    result = drift(one(HIGH, agent=before), one(HIGH, identity="2", agent=after))
    assert (result.result, result.exit_code) == ("IDENTITY_CHANGED", 5)
    assert [(item.role, item.old, item.new) for item in result.identity] == [
        ("agent", "-/a 1", "x/a 2"),
        ("model", f"m 1 {AGENT.components[0].digest}", f"m 2 {model.digest}"),
        ("tools", None, "t not pinned"),
        ("code", "c not pinned", None),
    ]
    assert "identity: tools t not pinned was added" in result.reasons
    hidden = drift(one(HIGH), one(HIGH, identity="2")).identity
    assert [item.role for item in hidden] == ["agent"]


def test_parts_of_one_name_are_a_pair_and_a_renamed_part_is_one_change() -> None:
    def agent(*names: str) -> Any:
        parts = (ComponentFacts(role="model", name=name[0], version=name[1:]) for name in names)
        return structs.replace(AGENT, components=tuple(parts))

    result = drift(one(HIGH, agent=agent("a1", "b1", "c1")), one(HIGH, identity="2", agent=agent("d1", "b2")))
    assert [(item.old, item.new) for item in result.identity] == [
        ("b 1 not pinned", "b 2 not pinned"),
        ("a 1 not pinned", "d 1 not pinned"),
        ("c 1 not pinned", None),
    ]


def test_a_row_takes_ten_tasks_a_side() -> None:
    few = side({("d", "x_f"): even(HIGH, tasks=9)})
    result = drift(few, one(LOW))
    assert (result.result, result.exit_code) == ("UNDERPOWERED", 4)
    assert result.behaviour[0].reason == "a row takes 10 tasks a side, and the old side has 9"
    assert result.behaviour[0].difference is not None
    assert not result.behaviour[0].flagged
    assert drift(side({("d", "x_f"): even(HIGH, tasks=10)}), one(LOW)).behaviour[0].reason is None


def test_ten_tasks_that_always_succeed_are_not_stable_however_often_they_ran() -> None:
    often = side({("d", "x_f"): {str(i): (200, 200) for i in range(10)}})
    assert drift(often, often).result == "UNDERPOWERED"
    many = side({("d", "x_f"): {str(i): (1, 1) for i in range(200)}})
    assert drift(many, many).result == "STABLE"


def test_no_fault_runs_is_underpowered() -> None:
    empty = side({("d", "nominal"): even(HIGH)}, nominal=0)
    result = drift(empty, empty)
    assert (result.result, result.behaviour[0].reason) == ("UNDERPOWERED", "neither side measured it")


def test_a_loss_below_the_margin_is_not_flagged_and_one_of_the_margin_is() -> None:
    # Two thousand tasks: a difference of this size is significant, the margin decides.
    def rate(good: int) -> Evaluation:
        return side({("d", "x_f"): {str(i): (int(i < good), 1) for i in range(2_000)}})

    assert drift(rate(1_800), rate(1_701)).behaviour[0].state == "UNDERPOWERED"
    assert drift(rate(1_800), rate(1_700)).behaviour[0].state == "WORSE"


def test_few_tasks_that_all_succeed_show_no_change_against_many() -> None:
    few = {str(i): (10, 10) for i in range(10)}
    for failing, states in ((10, {"UNDERPOWERED"}), (60, {"WORSE", "BETTER"})):
        tasks = {f"new {i}": (10 * (i >= failing), 10) for i in range(100)}
        old, new = side({("d", "x_f"): few}, nominal=0), side({("d", "x_f"): tasks}, nominal=0)
        told = drift(old, new).behaviour, drift(new, old).behaviour
        assert all(row.probability is not None for row in (*told[0], *told[1]))
        assert {row.state for rows in told for row in rows} == states, failing


def flags(tasks: Weighed, domains: int) -> bool:
    """The rule over r_op in all domains and in each."""
    sides = [sides_of(tasks), *(sides_of(tasks, domain) for domain in range(domains))]
    changes = [contrast(part, (1, -1)) for part in sides]
    p = stats.false_discovery_control([change.p_loss for change in changes])
    return any(change.loss >= 0.05 and q <= 0.015 for change, q in zip(changes, p, strict=True))


@pytest.mark.parametrize(
    ("sizes", "rate", "lost", "least", "most"),
    [((10, 100), 0.95, 0.0, 0.0, 0.02), ((20, 100), 0.85, 0.1, 0.8, 1.0)],
    ids=["nothing changed", "10 points lost"],
)
def test_of_many_more_tasks_than_before_a_loss_is_flagged_and_nothing_is_not(
    sizes: tuple[int, int], rate: float, lost: float, least: float, most: float
) -> None:
    # Without the pooled error a third of the unchanged agents is flagged here.
    random, draws, hits = np.random.default_rng(21), 80, 0
    for _ in range(draws):
        rows: dict[tuple[int, int], list[list[Runs]]] = {}
        for number, (tasks, points) in enumerate(zip(sizes, (0.0, lost), strict=True)):
            chance = random.beta(rate * 7 / 3, (1 - rate) * 7 / 3, (5, tasks)) * (1 - points / rate)
            for (domain, _), y in np.ndenumerate(random.binomial(5, chance)):
                rows[len(rows), domain] = [
                    [(domain, float(y), 5)] if side == number else [] for side in (0, 1)
                ]
        hits += flags(weighed(rows, 2), 5)
    error = np.sqrt(np.array([least * (1 - least), most * (1 - most)]) / draws)
    assert least - 3 * error[0] <= hits / draws <= most + 3 * error[1]


CHANGES: list[tuple[Mapping[str, Any], str]] = [
    ({"origin": "simulated"}, "origin measured and simulated"),
    ({"methodology": "other"}, "methodology trajectory and other"),
    ({"success": "utility"}, "success strict and utility"),
    ({"success_rule": None}, f"success rule {RULE} and not stated"),
]


@pytest.mark.parametrize(("changes", "words"), CHANGES, ids=[next(iter(case[0])) for case in CHANGES])
def test_what_is_not_measured_alike_is_not_comparable(changes: Mapping[str, Any], words: str) -> None:
    result = drift(one(HIGH), one(LOW, **changes))
    assert (result.result, result.exit_code, result.behaviour) == ("NOT_COMPARABLE", 4, ())
    assert result.reasons[0] == f"not comparable: {words}"


def test_another_profile_is_not_comparable() -> None:
    new = structs.replace(one(LOW), profile=profile(margin=0.5))
    result = drift(one(HIGH), new)
    assert (result.result, result.exit_code, result.behaviour) == ("NOT_COMPARABLE", 4, ())
    assert result.reasons[0] == (
        f"not comparable: profile p ({profile().digest}) and profile p ({new.profile.digest})"
    )


def test_other_domains_conditions_or_cells_are_not_comparable() -> None:
    cells = {(d, c): even(HIGH, names=d) for d in "de" for c in ("x_f", "x_g")}
    old = side(cells)
    cases = {
        "domains of the old side alone: e": {key: cells[key] for key in cells if key[0] == "d"},
        "conditions of the old side alone: x_g": {key: cells[key] for key in cells if key[1] == "x_f"},
        "domains of the new side alone: f": cells | {("f", "x_f"): even(HIGH)},
        "conditions of the new side alone: x_h": cells | {("d", "x_h"): even(HIGH)},
        "no new run in e under x_g, where the old side has 600": {
            k: v for k, v in cells.items() if k != ("e", "x_g")
        },
    }
    for words, other in cases.items():
        result = drift(old, side(other))
        assert (result.result, result.reasons[0]) == ("NOT_COMPARABLE", f"not comparable: {words}")
    assert drift(old, side(cells, nominal=0)).result == "NOT_COMPARABLE"


def test_the_judge_matters_where_rows_are_judged_and_the_cascade_where_there_is_one() -> None:
    ti, other = {"ti": values(4000)}, JudgeFacts(name="k", independent=True)
    assert drift(one(HIGH), one(HIGH, judge=other)).result == "STABLE"
    scored = drift(one(HIGH, ti), one(HIGH, ti, judge=other))
    assert scored.reasons[0] == "not comparable: judge j (f) and k"
    judged = [one(HIGH, methodology="independent_judge", judge=judge) for judge in (other, None)]
    assert drift(*judged).result == "NOT_COMPARABLE"
    assert drift(one(HIGH), one(HIGH, cascade_definition=None)).result == "STABLE"
    cells: Cells = {("d", "cascade"): even(HIGH)}
    assert drift(side(cells), side(cells, cascade_definition=None)).result == "NOT_COMPARABLE"


def test_a_change_of_mix_is_not_drift() -> None:
    def mixed(easy: int, hard: int, rates: tuple[int, int] = (9, 5)) -> Evaluation:
        return side(
            {
                ("d", "x_easy"): even(Fraction(rates[0], 10), tasks=easy, names=f"e{easy}"),
                ("d", "x_hard"): even(Fraction(rates[1], 10), tasks=hard, names=f"h{hard}"),
            }
        )

    old, new = mixed(90, 30), mixed(40, 80)
    result = drift(old, new)
    assert result.result == "STABLE" or not any(row.flagged for row in result.behaviour)
    assert [row.difference for row in result.behaviour if row.difference is not None] == pytest.approx(
        [0] * 5, abs=1e-9
    )
    assert any("41.7 % of the fault runs moved between conditions" in reason for reason in result.reasons)
    # The other way round: an easier mix does not hide a loss.
    assert drift(new, mixed(110, 10, (8, 4))).result == "DRIFTED"


def test_a_task_that_ran_under_other_conditions_is_compared_on_those_that_both_sides_ran() -> None:
    def of(hard: int) -> Evaluation:
        tasks = {str(i): (9 + i % 2, 10) for i in range(40)}
        return side(
            {
                ("d", "x_easy"): tasks,
                ("d", "x_hard"): {str(i): (2, 10) for i in range(hard)},
            }
        )

    result = drift(of(40), of(20))
    assert result.behaviour[0].difference == pytest.approx(0, abs=0.03)
    assert not any(row.flagged for row in result.behaviour)


def test_rows_that_do_not_know_conditions_are_not_tested_under_another_mix() -> None:
    def mixed(easy: int, hard: int, frr: int) -> Evaluation:
        return side(
            {("d", "x_easy"): even(HIGH, tasks=easy), ("d", "x_hard"): even(HIGH, tasks=hard, names="h")},
            {"frr": values(frr)},
        )

    same, other = drift(mixed(60, 60, 900), mixed(60, 60, 400)), drift(mixed(60, 60, 900), mixed(30, 90, 400))
    assert [item.state for item in same.behaviour if item.metric == "frr"] == ["WORSE"]
    row_ = next(item for item in other.behaviour if item.metric == "frr")
    assert (row_.state, row_.flagged) == ("UNDERPOWERED", False)
    assert row_.reason is not None
    assert row_.reason.startswith("25 % of the runs moved between conditions")
    assert f"not tested: frr: {row_.reason}" in other.reasons


def test_what_one_side_alone_measured_is_shown_and_named() -> None:
    with_it = one(HIGH, {"frr": values(850)})
    without = structs.replace(one(HIGH), profile=with_it.profile, assessment=with_it.assessment)
    for old, new, words in ((with_it, without, "old"), (without, with_it, "new")):
        result = drift(old, new)
        row_ = next(item for item in result.behaviour if item.criterion == "frr")
        assert (row_.state, row_.reason) == ("UNDERPOWERED", f"only the {words} side measured it")
        assert f"not tested: frr: only the {words} side measured it" in result.reasons
        assert (row_.old is None) == (words == "new")
        assert (row_.difference, row_.probability) == (None, None)


def test_scales_are_those_of_the_metrics() -> None:
    old = one(HIGH, {"ti": values(4400), "violations": values(500)})
    new = one(HIGH, {"ti": values(4100), "violations": values(900)})
    rows = {row.metric: row for row in drift(old, new).behaviour}
    assert rows["ti"].difference == pytest.approx(0.3)
    assert rows["violations"].difference == pytest.approx(0.4)  # a rise is a loss
    assert rows["ti"].flagged
    assert rows["violations"].flagged
    back = {row.metric: row for row in drift(new, old).behaviour}
    assert (back["ti"].state, back["violations"].state) == ("BETTER", "BETTER")


def test_rows_that_cannot_be_tested_say_why() -> None:
    more = {"frr": values(850), "irs": values(500)}
    behaviour = drift(one(HIGH, more), one(HIGH, more, memory_observable=None, unjudged=["frr"])).behaviour
    reasons = {item.criterion: item.reason for item in behaviour}
    (frr,) = (item for item in behaviour if item.metric == "frr")
    assert (frr.old, frr.new, frr.difference, frr.tasks.new > 0) == (None, None, None, True)
    assert reasons["frr"] == "not measured well enough to be judged on the new side"
    assert reasons["irs"] == "the sides declare differently whether memory queries were observable"


def test_without_a_margin_no_row_is_tested() -> None:
    bare = [structs.replace(one(HIGH), profile=profile(margin=None)) for _ in range(2)]
    result = drift(*bare)
    assert {item.reason for item in result.behaviour} == {"no drift margin is stated for it"}
    assert result.result == "UNDERPOWERED"
    assert result.behaviour[0].difference == 0


def test_what_no_task_row_holds_is_named() -> None:
    sides = [structs.replace(one(HIGH), profile=profile(["irs_2025", "cn_frr"])) for _ in range(2)]
    rows = {item.criterion: item for item in drift(*sides).behaviour}
    assert rows["irs_2025"].reason == "passports carry no sums of it"
    assert rows["cn_frr"].reason != "passports carry no sums of it"


def test_the_rows_are_the_other_criteria_domains_and_conditions() -> None:
    cells = {(d, c): even(HIGH, names=d) for d in "de" for c in ("x_f", "x_g")}
    old = side(cells, {"pei": values(700), "ti": values(4000)})
    names = [item.name for item in drift(old, old).behaviour]
    over = ["r_op in d", "r_op in e", "r_op under x_f", "r_op under x_g"]
    assert names == ["r_op", "pei", "ti", "c_nom", *over]


def drawn(random: np.random.Generator, loss: float) -> Evaluation:
    cells: Cells = {}
    for domain in "de":
        chance = np.clip(random.beta(8, 2, 40) - loss, 0, 1)
        tasks = {f"{domain}{i}": (int(random.binomial(10, p)), 10) for i, p in enumerate(chance)}
        cells[domain, "x_f"] = tasks
    return side(cells, {"frr": values(800 - int(1000 * loss))})


def raw_p(row: DriftRow) -> float:
    loss = row.difference or 0.0
    if not row.standard_error or row.degrees_of_freedom is None:
        return 2.0 ** -min(row.tasks.old, row.tasks.new) if loss > 0 else 1.0
    return float(stats.t.sf(loss / row.standard_error, row.degrees_of_freedom))


def test_flags_are_those_of_the_rule_written_out() -> None:
    random, flags = np.random.default_rng(9), 0
    for _ in range(30):
        rows = [row for row in drift(drawn(random, 0.0), drawn(random, 0.06)).behaviour if row.reason is None]
        raw = [raw_p(row) for row in rows]
        reached = [row.difference >= row.margin - 1e-9 for row in rows]  # type: ignore[operator]
        expected = [
            a and p <= 0.015 for a, p in zip(reached, stats.false_discovery_control(raw), strict=True)
        ]
        assert [row.flagged for row in rows] == expected
        assert [row.probability for row in rows] == pytest.approx(
            list(stats.false_discovery_control(raw)), rel=1e-4, abs=1e-9
        )
        flags += sum(expected)
    assert flags > 20


def test_a_slow_decline_that_no_pair_shows_is_a_trend() -> None:
    rates = [Fraction(90 - 2 * t, 100) for t in range(5)]
    line = [
        side({("d", "x_f"): {str(i): (int(100 * rate) + (-1) ** i * (i * t % 7), 100) for i in range(80)}})
        for t, rate in enumerate(rates)
    ]
    pair, whole = drift(line[-2], line[-1]), drift(line[-2], line[-1], before=line[:-2])
    assert (pair.result, pair.trend) == ("UNDERPOWERED", None)
    assert whole.result == "DRIFTED"
    assert whole.trend is not None
    assert whole.trend.flagged
    assert whole.trend.loss == pytest.approx(0.08, abs=0.01)
    assert whole.trend.sentence in whole.reasons
    agents = [structs.replace(AGENT, digest="sha256:" + str(t) * 64) for t in range(5)]
    other = [
        structs.replace(item, facts=structs.replace(item.facts, agent=agent))
        for item, agent in zip(line, agents, strict=True)
    ]
    assert drift(other[-2], other[-1], before=other[:-2]).result == "DRIFTED"  # an identity restarts nothing


def test_a_trend_takes_three_to_eight_passports_of_other_evidence_that_can_be_compared() -> None:
    line = [one(HIGH, evidence=str(t)) for t in range(10)]
    result = trend(line)
    assert result is not None
    assert len(result.values) == 8
    assert trend(line[:2]) is None
    assert trend([line[0], line[1], line[1]]) is None
    assert trend([line[0], one(HIGH, methodology="other"), line[2]]) is None
    few = side({("d", "x_f"): even(HIGH, tasks=9)})
    assert trend([few, line[0], line[1]]) is None


def test_another_salt_shares_no_task() -> None:
    for salt in ("t", None):
        result = drift(one(HIGH), one(HIGH, salt=salt))
        assert any("share no task salt, so no tasks are paired" in reason for reason in result.reasons)
        assert result.behaviour[0].standard_error
    same = drift(one(HIGH), one(HIGH))
    assert "compared as pairs: 160 tasks that both sides ran" in same.reasons
    assert same.behaviour[0].standard_error == 0


def test_the_document_has_the_keys_of_the_format() -> None:
    document = drift(one(HIGH), one(LOW, tier=0)).to_dict()
    assert document["schema"] == "urn:certkit:drift:v1"
    assert document.keys() >= {"result", "identity", "behaviour", "tier", "reasons"}
    assert document["tier"] == {"old": 1, "new": 0}
    assert "tier: Tier 1 before, no tier now" in document["reasons"]
    keys = {"criterion", "domain", "old", "new", "difference", "state", "probability", "flagged"}
    assert all(item.keys() >= keys for item in document["behaviour"])


def test_what_a_reader_should_know_of_the_sides_is_said() -> None:
    simulated = one(HIGH, origin="simulated")
    reasons = drift(simulated, simulated).reasons
    assert "both sides are the same evidence: nothing new was observed" in reasons
    assert "both sides are simulated evidence" in reasons


def judged(root: Path, runs: list[bundles.Run], salt: str = "00" * 32) -> Evaluation:
    """A bundle from disk, as the command reads it."""
    protocol = {"origin": "measured", "task_salt": salt, "tasks_independent": True}
    bundles.write(root, {"a.jsonl": bundles.lines(runs)}, bundles.MANIFEST | {"protocol": protocol})
    bundle = open_bundle(root)
    facts = facts_of(bundle.manifest, digest=digest(root.name), agent_digest=digest("agent"), sealed=False)
    summary, table = summarise(bundle), profile(["violations", "ti"])
    return evaluation(facts, summary, table, assess(summary, facts, table))


def runs(good: int, violations: int) -> list[bundles.Run]:
    return [
        bundles.run(
            i,
            task_id=f"t{i % 60}",
            condition="tool_failure" if i % 3 else "nominal",
            outcome="success" if i % 10 < good else "failure",
            violations=violations + i // 60 % 2,
        )
        for i in range(600)
    ]


def test_two_bundles_are_compared_as_their_passports_are(tmp_path: Path) -> None:
    sides = [judged(tmp_path / name, runs(*made)) for name, made in (("old", (9, 0)), ("new", (6, 7)))]
    result = drift(*sides)
    rows = {row.name: row for row in result.behaviour}
    assert result.result == "DRIFTED"
    assert rows["r_op"].flagged
    assert rows["violations"].difference == pytest.approx(4.5)  # seven and eight count as five
    assert rows["ti"].reason == "neither side measured it"
    signed = [
        evaluation(
            read_facts(to_builtins(side.facts)),
            read_summary(side.summary.to_dict()),
            read_profile(side.profile.to_dict()),
            read_assessment(to_builtins(side.assessment)),
        )
        for side in sides
    ]
    assert drift(*signed) == result
    assert convert(result.to_dict(), Drift) == result


def test_bundles_of_one_salt_are_paired_and_of_two_are_not(tmp_path: Path) -> None:
    one_, same, other = (
        judged(tmp_path / name, runs(9, 0), salt)
        for name, salt in (("a", "00" * 32), ("b", "00" * 32), ("c", "11" * 32))
    )
    assert drift(one_, same).behaviour[0].standard_error == 0
    assert drift(one_, other).behaviour[0].standard_error != 0


def test_comparing_loads_neither_numpy_nor_scipy() -> None:
    code = (
        "import sys, certkit.comparison.drift, certkit.comparison.compare;"
        " print([name for name in ('numpy', 'scipy', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
