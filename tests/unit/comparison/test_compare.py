"""The comparison as a whole: who is better, what is said of what is missing, and the document."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec import convert, structs
from scipy import stats

from certkit.bundle.facts import JudgeFacts
from certkit.comparison import compare as module
from certkit.comparison.compare import METRICS, SALT, Comparison, Unlike, compare
from certkit.comparison.contrast import (
    contrast,
    student_limit,
    with_priors,
)
from certkit.comparison.paper import PaperTests
from certkit.ground import canonical
from certkit.record.record import Outcome
from tests.support.sides import PROTOCOL, attempts, digest, facts, laid, summarised

if TYPE_CHECKING:
    from certkit.bundle.facts import Facts
    from certkit.comparison.compare import Difference
    from certkit.record.record import Record

STRONG = [4, 4, 3, 4, 4, 4, 3, 4, 4, 4, 4, 3]
WEAK = [2, 3, 1, 2, 2, 4, 0, 1, 3, 2, 2, 1]
DOMAINS = ("bank", "clinic", "shop")
A = [4, 3, 4, 2, 4, 1, 3, 4]
B = [3, 3, 1, 2, 4, 0, 2, 1]


def over_domains(successes: list[int], **fields: Any) -> list[Record]:
    return [
        record
        for place, domain in enumerate(DOMAINS)
        for record in attempts(successes, first=100 * place, domain=domain, **fields)
    ]


def named(name: str, **protocol: Any) -> Facts:
    stated = structs.replace(PROTOCOL, **protocol)
    made = facts(name, stated)
    agent = structs.replace(made.agent, name=name, digest=digest(name))
    return structs.replace(made, agent=agent)


def compared(
    a: list[Record], b: list[Record], *, novel: bool = False, tests: bool = False, **protocol: Any
) -> Comparison:
    sides = [
        (summarised(records, salt=SALT), named(name, **changes))
        for records, name, changes in ((a, "alpha", {}), (b, "beta", protocol))
    ]
    comparison = compare(sides[0], sides[1], novel=novel, paper_tests=tests)
    canonical.pretty(comparison.to_dict())  # has no NaN, no infinity, nothing that JSON lacks
    assert convert(comparison.to_dict(), Comparison) == comparison
    return comparison


def difference(a: list[Record], b: list[Record]) -> Difference:
    matched = compared(a, b).main.matched
    assert matched is not None
    return matched


def better() -> Comparison:
    return compared(over_domains(STRONG), over_domains(WEAK))


def paired(x: list[float], y: list[float]) -> tuple[float, float]:
    """Mean and standard error of x - y over shared tasks, each side with its two prior tasks."""
    k = len(x) + 2
    a, b = np.array([*x, 0, 1, 0, 0]), np.array([*y, 0, 0, 0, 1])
    own = np.r_[np.ones(len(x)), 1, 1, 0, 0], np.r_[np.ones(len(x)), 0, 0, 1, 1]
    means = [(side @ has) / k for side, has in zip((a, b), own, strict=True)]
    u = own[0] * (a - means[0]) / k - own[1] * (b - means[1]) / k
    return means[0] - means[1], sqrt(k / (k - 1) * (u @ u))


def test_the_better_agent_is_named_with_what_it_rests_on() -> None:
    comparison = better()
    assert (comparison.answer.metric, comparison.main.better, comparison.exit_code) == ("r_op", "a", 0)
    strong, weak = ([value / 4 for value in values * 3] for values in (STRONG, WEAK))
    middle, error = paired(strong, weak)
    low, high = stats.t.interval(0.95, 37, loc=middle, scale=error)
    assert comparison.answer.words == (
        "A succeeds under faults more often than B: 93.8 % against 47.9 %, +45.8 points "
        f"(95 % confidence: {100 * low:+.1f} points to {100 * high:+.1f} points, p < 0.0001; "
        '144 and 144 runs on the same 36 tasks). A is "alpha 1", B is "beta 1".'
    )


def test_the_other_way_round_the_other_is_better() -> None:
    comparison = compared(over_domains(WEAK), over_domains(STRONG))
    assert comparison.main.better == "b"
    assert comparison.answer.words.startswith(
        "B succeeds under faults more often than A: 93.8 % against 47.9 %, +45.8 points"
    )


def test_the_same_bundle_twice_shows_nothing() -> None:
    same = summarised(over_domains(WEAK), salt=SALT), named("alpha")
    comparison = compare(same, same)
    assert comparison.main.matched is not None
    assert (comparison.main.matched.difference, comparison.main.matched.p) == (0.0, 1.0)
    assert (comparison.main.better, comparison.exit_code) == (None, 0)
    assert comparison.answer.words.startswith("No difference under faults is shown between A and B")
    assert "A and B are the same bundle" in comparison.caveats


def test_below_ten_tasks_a_side_no_agent_is_called_better() -> None:
    main = compared(attempts([4] * 8 + [3]), attempts([0] * 8 + [1])).main
    assert main.matched is not None
    assert (main.matched.p < 0.001, main.p_adjusted, main.better) == (True, None, None)
    words = compared(attempts([4] * 8 + [3]), attempts([0] * 8 + [1])).answer.words
    assert "It takes 10 tasks a side to show a difference." in words


def test_what_is_not_measured_is_named_and_never_zero() -> None:
    document = better().to_dict()["metrics"]
    assert list(document) == list(METRICS)
    for name in ("c_nom", "pei", "ti", "violations", "adversarial_resistance"):
        assert document[name]["matched"] is document[name]["better"] is None
        assert document[name]["a"]["value"] is None
        assert document[name]["reason"] == document[name]["a"]["reason"]
    reason = "c_nom (there are no normal runs)"
    assert any(line.startswith(f"not compared: {reason}; ") for line in better().caveats)


def test_what_only_some_runs_carry_is_not_compared() -> None:
    complete = attempts(STRONG, traceability=4.0)
    part = attempts(STRONG, traceability=[4.0, None, None, None])
    row = compared(complete, part).metrics["ti"]
    assert (row.matched, row.b.state, row.b.value) == (None, "partial", None)
    assert row.reason == "B: 36 of 48 eligible runs carry no traceability score"


def test_too_many_harness_errors_forbid_the_comparison_of_field_metrics() -> None:
    good = attempts(STRONG, violations=0)
    marred = [
        structs.replace(record, outcome=Outcome.HARNESS_ERROR, violations=None) if i < 2 else record
        for i, record in enumerate(good)
    ]
    comparison = compared(marred, good)
    row = comparison.metrics["violations"]
    assert row.matched is None
    assert row.reason == "A: 2 of 48 runs are harness errors, more than 1 %"
    assert "r_op: A: 2 of 48 runs are harness errors and count as failures" in comparison.caveats


def test_nothing_in_common_is_exit_code_4() -> None:
    comparison = compared(attempts(STRONG), attempts(WEAK, domain="elsewhere"))
    assert (comparison.exit_code, comparison.main.matched, comparison.domains) == (4, None, {})
    words = comparison.answer.words
    assert "no domain and condition in which each side has two tasks that carry it" in words
    assert words.endswith("Nothing can be compared.")


def test_an_empty_bundle_is_exit_code_4() -> None:
    comparison = compared([], attempts(WEAK))
    assert (comparison.exit_code, comparison.main.a.value) == (4, None)
    assert "A: there are no runs under faults" in comparison.answer.words


def test_other_metrics_are_compared_where_the_main_one_is_not() -> None:
    comparison = compared(attempts(STRONG, condition="nominal"), attempts(WEAK, condition="nominal"))
    assert comparison.exit_code == 0
    assert "Compared are: c_nom." in comparison.answer.words
    assert comparison.metrics["c_nom"].better == "a"


def test_domains_are_tested_and_adjusted_for_their_number() -> None:
    comparison = better()
    assert list(comparison.domains) == list(DOMAINS)
    rows = list(comparison.domains.values())
    p = [row.matched.p for row in rows if row.matched]
    assert [row.p_adjusted for row in rows] == pytest.approx(stats.false_discovery_control(p).tolist())
    for row in rows:
        assert row.matched is not None
        assert (row.a.successes, row.a.n, row.matched.tasks) == (45, 48, (12, 12))
        assert row.better == "a"


def test_a_domain_of_one_bundle_is_shown_and_not_compared() -> None:
    comparison = compared(
        [*over_domains(STRONG), *attempts([1], domain="zoo", first=900)], over_domains(WEAK)
    )
    zoo = comparison.domains["zoo"]
    assert (zoo.a.value, zoo.b.value, zoo.matched, zoo.p_adjusted) == (0.25, None, None, None)
    assert zoo.reason == "B: there are no runs under faults"
    assert any("4 of 148 runs of A are left out" in line for line in comparison.caveats)


def test_the_tests_of_papers_are_made_on_demand_and_say_what_they_ignore() -> None:
    assert "paper_tests" not in better().to_dict()
    tests = compared(over_domains(STRONG), over_domains(WEAK), tests=True).to_dict()["paper_tests"]
    assert "independent" in tests["warning"]
    runs, table = tests["metrics"]["r_op"], [[135, 9], [69, 75]]
    chi = stats.chi2_contingency(table, correction=False).statistic
    assert runs["z"]["statistic"] ** 2 == pytest.approx(float(chi), abs=1e-9)
    done = stats.ttest_ind([1] * 135 + [0] * 9, [1] * 69 + [0] * 75, equal_var=False)
    assert runs["welch"]["statistic"] == pytest.approx(float(done.statistic), abs=1e-9)
    assert (tests["anova"]["observations"], tests["anova"]["error_df"]) == (72, 66)
    assert tests["anova"]["agent"]["p"] < 1e-9
    assert tests["anova"]["interaction"]["ss"] == pytest.approx(0.0, abs=1e-12)
    assert "no order" in tests["spearman"]["reason"]


def test_protocols_that_are_not_alike_are_listed() -> None:
    judge = JudgeFacts(name="j", family="f", independent=False)
    comparison = compared(
        attempts(STRONG), attempts(WEAK), temperature=0.7, judge=judge, methodology=None, success="utility"
    )
    assert comparison.not_alike == (
        Unlike(item="methodology", a="trajectory", b=None),
        Unlike(item="success", a=None, b="utility"),
        Unlike(item="judge", a="j (f), independent", b="j (f), not independent"),
        Unlike(item="temperature", a=None, b="0.7"),
    )
    assert better().not_alike == ()


def test_fewer_violations_are_better_and_the_tests_of_papers_take_the_runs() -> None:
    few, many = [0, 0, 1, 0], [2, 0, 3, 9]
    comparison = compared(attempts(STRONG, violations=few), attempts(STRONG, violations=many), tests=True)
    row = comparison.metrics["violations"]
    assert isinstance(comparison.paper_tests, PaperTests)
    runs = comparison.paper_tests.metrics["violations"]
    done = stats.ttest_ind(few * 12, many * 12, equal_var=False)
    assert runs.welch is not None
    assert runs.welch.statistic == pytest.approx(float(done.statistic), abs=1e-9)
    assert runs.z is None
    assert row.matched is not None
    assert (row.a.value, row.b.value) == (0.25, 3.5)
    assert row.matched.difference == pytest.approx(0.25 - 2.5)  # nine count as five
    assert row.better == "a"
    assert "violations: at most five violations of a run count in the difference" in comparison.caveats


def test_held_out_faults_are_compared_on_their_own() -> None:
    held_out = [attempts(successes, split="novel_fault") for successes in (STRONG, WEAK)]
    comparison = compared(*held_out, novel=True)
    assert comparison.split == "novel_fault"
    assert (comparison.answer.metric, comparison.main.better) == ("novel_fault", "a")
    assert list(comparison.domains) == ["bank"]
    assert comparison.answer.words.startswith("A succeeds under held-out faults more often than B")


def test_standard_runs_are_no_held_out_ones() -> None:
    comparison = compared(attempts(STRONG), attempts(WEAK), novel=True)
    assert comparison.exit_code == 4
    assert "cannot be compared: there are no held-out runs." in comparison.answer.words


def test_the_order_of_records_changes_nothing() -> None:
    a, b = over_domains(STRONG), [*over_domains(WEAK), *over_domains(WEAK, condition="cascade")]
    assert compared(a[::-1], b[::-1]).to_dict() == compared(a, b).to_dict()


def test_many_domains_are_compared_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_DOMAINS", 2)
    comparison = better()
    assert (comparison.main.better, comparison.domains) == ("a", {})
    assert any("none is tested on its own" in line for line in comparison.caveats)


def test_shared_tasks_are_paired_and_each_side_has_two_prior_tasks() -> None:
    matched = difference(attempts(A), attempts(B))
    middle, error = paired([y / 4 for y in A], [y / 4 for y in B])
    assert (matched.tasks, matched.shared, matched.degrees_of_freedom) == ((8, 8), 8, 9)
    assert matched.difference == pytest.approx((sum(A) - sum(B)) / 32, abs=1e-12)
    assert matched.standard_error == pytest.approx(error, abs=2e-9)
    assert matched.p == pytest.approx(2 * stats.t.sf(middle / error, 9), abs=2e-9)
    span = stats.t.interval(0.95, 9, loc=middle, scale=error)
    assert (matched.interval.low, matched.interval.high) == pytest.approx(span, abs=2e-9)


def test_other_tasks_are_not_paired() -> None:
    matched = difference(attempts(A), attempts([*B, 2, 1], first=100))
    a, b = np.array([*A, 0, 4]) / 4, np.array([*B, 2, 1, 0, 4]) / 4
    squares = np.sum((a - a.mean()) ** 2), np.sum((b - b.mean()) ** 2)
    pooled = sum(squares) / 22 * (1 / 10 + 1 / 12)
    error = sqrt(10 / 9 * max(squares[0] / 100 + squares[1] / 144, pooled))
    assert (matched.tasks, matched.shared, matched.degrees_of_freedom) == ((8, 10), 0, 9)
    assert matched.standard_error == pytest.approx(error)
    assert matched.p == pytest.approx(2 * stats.t.sf((a.mean() - b.mean()) / error, 9))


@pytest.mark.parametrize("freedom", [1, 2, 9, 38, 1001])
def test_the_ends_of_intervals_are_quantiles_of_students_t(freedom: int) -> None:
    assert student_limit(0.025, freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)


def test_few_tasks_that_all_succeed_are_not_better_than_many() -> None:
    few, many = attempts([4] * 20), attempts([0] * 10 + [4] * 190, first=100)
    for a, b in ((few, many), (many, few)):
        comparison = compared(a, b)
        assert comparison.main.matched is not None
        assert comparison.main.matched.interval.low < 0 < comparison.main.matched.interval.high
        assert (comparison.answer.better, sorted(comparison.main.matched.tasks)) == (None, [20, 200])


def test_tasks_of_one_family_count_once() -> None:
    matched = difference(attempts(A, family=2), attempts(B, family=2))
    middle, error = paired(*([(x + y) / 8 for x, y in zip(s[::2], s[1::2], strict=True)] for s in (A, B)))
    assert (matched.tasks, matched.shared) == ((4, 4), 4)
    assert matched.p == pytest.approx(2 * stats.t.sf(middle / error, 5), abs=2e-9)


def test_a_different_mix_is_no_difference() -> None:
    # Both do 3/4 of the easy and 1/4 of the hard ones; A has met mostly easy ones.
    a = [*attempts([9] * 6, 12, domain="easy"), *attempts([1] * 6, domain="hard", first=20)]
    b = [*attempts([3] * 6, domain="easy"), *attempts([3] * 6, 12, domain="hard", first=20)]
    matched = difference(a, b)
    assert (matched.a, matched.b, matched.p) == pytest.approx((0.5, 0.5, 1.0))


def test_both_weigh_a_cell_by_its_share_of_all_tasks() -> None:
    a = [*attempts([4, 3], 5, domain="x"), *attempts([2, 2], 3, domain="y", first=10)]
    b = [*attempts([2, 1], 4, domain="x", first=20), *attempts([5, 1, 3, 6], 6, domain="y", first=30)]
    matched = difference(a, b)
    w_x, w_y = Fraction(4, 10), Fraction(6, 10)
    assert matched.a == pytest.approx(float(w_x * Fraction(7, 10) + w_y * Fraction(4, 6)), abs=1e-12)
    assert matched.b == pytest.approx(float(w_x * Fraction(3, 8) + w_y * Fraction(15, 24)), abs=1e-12)


@pytest.mark.parametrize("width", [1, 2, 4])
def test_with_all_tasks_shared_it_is_one_test_in_however_many_domains(width: int) -> None:
    def spread(successes: list[int], n: int) -> list[Record]:
        return [
            record
            for at in range(0, 8, width)
            for record in attempts(successes[at : at + width], n + at, first=at, domain=f"domain {at}")
        ]

    def means(successes: list[int], n: int) -> list[float]:
        return [y / (n + at - at % width) for at, y in enumerate(successes)]

    matched = difference(spread(A, 4), spread(B, 5))
    middle, error = paired(means(A, 4), means(B, 5))
    assert matched.p == pytest.approx(2 * stats.t.sf(abs(middle) / error, 9), abs=2e-9)


def test_only_what_both_have_is_compared() -> None:
    a = [*attempts(A), *attempts([0, 0], domain="a-only", first=50)]
    b = [*attempts(B), *attempts([0, 0], condition="cascade", first=60)]
    assert difference(a, b) == difference(attempts(A), attempts(B))


def test_a_task_of_another_domain_is_another_task() -> None:
    a = [*attempts(A, domain="x"), *attempts(A, domain="y", first=8)]
    b = [*attempts(B, domain="y"), *attempts(B, domain="x", first=8)]
    assert difference(a, b).standard_error > difference(a, a).standard_error


def test_one_task_shows_no_difference() -> None:
    assert compared(attempts([3]), attempts([1])).exit_code == 4


def test_swapping_the_bundles_turns_the_sign_and_nothing_else() -> None:
    there, back = difference(attempts(A), attempts(B)), difference(attempts(B), attempts(A))
    assert (there.difference, there.p) == pytest.approx((-back.difference, back.p))
    assert there.interval.low == pytest.approx(-back.interval.high)


def test_a_metric_that_does_not_tell_conditions_apart_is_not_compared_under_another_mix() -> None:
    def mixed(cascades: int) -> list[Record]:
        tools = attempts(STRONG, 20 - cascades, violations=0)
        return [*tools, *attempts(STRONG, cascades, condition="cascade", violations=0)]

    for first, second in ((4, 8), (8, 4)):
        row = compared(mixed(first), mixed(second)).metrics["violations"]
        assert row.matched is None
        assert row.reason == "20 % of the runs moved between conditions, and its sums do not tell them apart"
    near = compared(mixed(4), mixed(6))
    assert near.metrics["violations"].matched is not None
    assert compared(mixed(4), mixed(8)).main.matched is not None


def errs(shared: bool, tasks: tuple[int, int], chances: list[Any], runs: tuple[int, int]) -> float:  # noqa: FBT001
    """The share of draws in which one of two agents of equal rate is called different."""
    random, draws, hits = np.random.default_rng(5), 300, 0
    for _ in range(draws):
        columns = []
        for k, law, n in zip(tasks, chances, runs, strict=True):
            columns.append((random.binomial(n, law(random, k)) / n).tolist())
        gap = [[None] * len(column) for column in columns]
        sides = laid(*columns) if shared else laid([*columns[0], *gap[1]], [*gap[0], *columns[1]])
        change = contrast(with_priors(sides, 0.0, 1.0), (1, -1))
        hits += 2 * min(change.p_loss, change.p_gain) < 0.05
    return hits / draws


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("rate", "k"), [(0.85, 10), (0.85, 50), (0.95, 20), (0.99, 100)])
def test_a_deterministic_agent_is_seldom_called_different_from_a_sampled_one(
    *, shared: bool, rate: float, k: int
) -> None:
    # One run shows all of a deterministic agent's task. Without prior tasks: 19, 7, 35 and 36 %.
    laws = [lambda _, size: np.full(size, rate)] * 2
    assert errs(shared, (k, k), laws, (1, 10)) <= 0.05 + 2.3 * sqrt(0.05 * 0.95 / 300)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("k", [20, 100])
def test_agents_that_are_alike_seldom_differ(*, shared: bool, k: int) -> None:
    def law(random: np.random.Generator, size: int) -> Any:
        if size not in drawn or not shared:
            drawn[size] = random.beta(0.8 / 0.3 * 0.7, 0.2 / 0.3 * 0.7, size)
        return drawn[size]

    drawn: dict[int, Any] = {}
    assert errs(shared, (k, k), [law, law], (4, 4)) <= 0.05 + 2.3 * sqrt(0.05 * 0.95 / 300)
