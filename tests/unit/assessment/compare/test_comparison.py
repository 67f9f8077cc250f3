"""The comparison as a whole: who is better, what is said of what is missing, and the document."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec import structs
from scipy import stats

from certkit.assessment import compare as compare_module
from certkit.assessment.compare import METRICS, compare
from certkit.assessment.compare.document import Unlike
from certkit.assessment.compare.paper import PaperTests
from certkit.assessment.drift.contrast import Panel
from certkit.ground import canonical
from certkit.record.record import Split
from certkit.summary.summary import Tally, add
from tests.support.build import facts
from tests.support.rows import Rows, evidence, tasks

if TYPE_CHECKING:
    from certkit.assessment.compare import Comparison
    from certkit.assessment.compare.document import Difference
    from certkit.bundle.manifest import Facts
    from certkit.summary.summary import Summary

STRONG = [4, 4, 3, 4, 4, 4, 3, 4, 4, 4, 4, 3]
WEAK = [2, 3, 1, 2, 2, 4, 0, 1, 3, 2, 2, 1]
DOMAINS = ("bank", "clinic", "shop")


def over_domains(successes: list[int], **names: Any) -> list[Rows]:
    return [
        row
        for place, domain in enumerate(DOMAINS)
        for row in tasks(successes, first=100 * place, domain=domain, **names)
    ]


def named(name: str, **protocol: Any) -> Facts:
    agent = {"name": name, "version": "1"}
    digest = canonical.Digest("sha256:" + name[0].encode().hex() * 32)
    return structs.replace(facts(agent=agent, **protocol), digest=digest, agent_digest=digest)


def compared(
    a: Summary, b: Summary, *, novel: bool = False, tests: bool = False, **protocol: Any
) -> Comparison:
    found = compare((a, named("alpha")), (b, named("beta", **protocol)), novel=novel, paper_tests=tests)
    canonical.pretty(found.to_dict())  # has no NaN, no infinity, nothing that JSON lacks
    return found


def better() -> Comparison:
    return compared(evidence(over_domains(STRONG)), evidence(over_domains(WEAK)))


def test_the_better_agent_is_named_with_what_it_rests_on() -> None:
    found = better()
    assert (found.answer.metric, found.main.better, found.exit_code) == ("r_op", "a", 0)
    strong, weak = ([value / 4 for value in values * 3] for values in (STRONG, WEAK))
    span = stats.ttest_rel(strong, weak).confidence_interval(0.95)
    assert found.answer.words.startswith(
        "A succeeds under faults more often than B: 93.8 % against 47.9 %, +45.8 pp "
        f"(95 % CI {100 * span.low:+.1f} to {100 * span.high:+.1f}, p < 0.0001; "
        "144 and 144 runs on the same 36 tasks)."
    )
    assert found.answer.words.endswith('A is "alpha 1", B is "beta 1".')


def test_the_other_way_round_the_other_is_better() -> None:
    found = compared(evidence(over_domains(WEAK)), evidence(over_domains(STRONG)))
    assert found.main.better == "b"
    assert found.answer.words.startswith(
        "B succeeds under faults more often than A: 47.9 % against 93.8 %, -45.8 pp"
    )


def test_the_same_bundle_twice_shows_nothing() -> None:
    same = evidence(over_domains(WEAK))
    found = compare((same, named("alpha")), (same, named("alpha")))
    assert found.main.matched is not None
    assert (found.main.matched.difference, found.main.matched.p) == (0.0, 1.0)
    assert (found.main.better, found.exit_code) == (None, 0)
    assert found.answer.words.startswith("No difference under faults is shown between A and B")
    assert "A and B are the same bundle" in found.caveats


def test_below_ten_tasks_a_side_no_agent_is_called_better() -> None:
    found = compared(evidence(tasks([4] * 8 + [3])), evidence(tasks([0] * 8 + [1])))
    assert found.main.matched is not None
    assert (found.main.matched.p < 0.0001, found.main.p_adjusted, found.main.better) == (True, None, None)
    assert "A difference is called shown from 10 tasks a side on." in found.answer.words


def test_what_is_not_measured_is_named_and_never_zero() -> None:
    found = better()
    document = found.to_dict()["metrics"]
    assert list(document) == list(METRICS)
    for name in METRICS[1:]:
        assert document[name]["matched"] is document[name]["better"] is None
        assert document[name]["a"]["value"] is None
        assert document[name]["reason"].startswith("not measured in either (")
    assert any(
        line.startswith("not compared: c_nom (not measured in either (no nominal run)); ")
        for line in found.caveats
    )


def test_what_only_some_runs_carry_is_not_compared() -> None:
    # Failures have grade 0 and successes here none: the mean of what is graded would be 0.
    whole = evidence(tasks(STRONG), frr_n=48, frr_tenths=400)
    part = evidence(tasks(STRONG), frr_n=3, frr_missing=45)
    row = compared(whole, part).metrics["frr"]
    assert (row.matched, row.b.state) == (None, "partial")
    assert row.reason == "only partly measured in B (45 of 48 eligible runs carry no recovery grade)"


def test_too_many_harness_errors_forbid_the_comparison_of_field_metrics() -> None:
    marred = evidence(tasks(STRONG), violations_n=46, harness_error=2)
    found = compared(marred, evidence(tasks(STRONG), violations_n=48))
    row = found.metrics["violations"]
    assert row.matched is None
    assert row.reason == "not fit to be judged in A (2 of 48 runs are harness errors, above 1 %)"


def test_nothing_in_common_is_exit_code_4() -> None:
    found = compared(evidence(tasks(STRONG)), evidence(tasks(WEAK, domain="elsewhere")))
    assert (found.exit_code, found.main.matched, found.domains) == (4, None, {})
    assert "no domain and condition in which each side has two tasks that carry it" in found.answer.words
    assert found.answer.words.endswith("Nothing can be compared.")


def test_an_empty_bundle_is_exit_code_4() -> None:
    found = compared(evidence([]), evidence(tasks(WEAK)))
    assert found.exit_code == 4
    assert found.main.a.value is None
    assert "not measured in A (no run under a fault)" in found.answer.words


def test_other_metrics_are_compared_where_the_main_one_is_not() -> None:
    nominal = evidence(tasks(STRONG, condition="nominal")), evidence(tasks(WEAK, condition="nominal"))
    found = compared(*nominal)
    assert found.exit_code == 0
    assert "Compared are: c_nom." in found.answer.words
    assert found.metrics["c_nom"].better == "a"


def test_domains_are_tested_and_adjusted_for_their_number() -> None:
    found = better()
    assert list(found.domains) == list(DOMAINS)
    p = [row.matched.p for row in found.domains.values() if row.matched]
    assert [row.p_adjusted for row in found.domains.values()] == pytest.approx(
        stats.false_discovery_control(p).tolist()
    )
    for row in found.domains.values():
        assert row.matched is not None
        assert (row.a.successes, row.a.n, row.matched.tasks) == (45, 48, (12, 12))
        assert row.better == "a"


def test_a_domain_of_one_bundle_is_shown_and_not_compared() -> None:
    found = compared(
        evidence([*over_domains(STRONG), *tasks([1], domain="zoo", first=900)]), evidence(over_domains(WEAK))
    )
    zoo = found.domains["zoo"]
    assert (zoo.a.value, zoo.b.value, zoo.matched, zoo.p_adjusted) == (0.25, None, None, None)
    assert zoo.reason == "not measured in B (no run under a fault)"
    assert any("4 of 148 runs of A are left out" in line for line in found.caveats)


def test_the_tests_of_papers_are_made_on_demand_and_say_what_they_ignore() -> None:
    assert "paper_tests" not in better().to_dict()
    found = compare(
        (evidence(over_domains(STRONG)), named("alpha")),
        (evidence(over_domains(WEAK)), named("beta")),
        paper_tests=True,
    )
    tests = found.to_dict()["paper_tests"]
    assert "take runs for independent" in tests["warning"]
    assert list(tests["metrics"]) == ["r_op"]
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
    found = compared(
        evidence(tasks(STRONG)),
        evidence(tasks(WEAK)),
        temperature=0.7,
        judge={"name": "j", "family": "f", "independent": False},
        methodology=None,
    )
    assert found.not_alike == (
        Unlike(item="methodology", a="trajectory", b=None),
        Unlike(item="judge", a="j, independent", b="j (f), not independent"),
        Unlike(item="temperature", a="0", b="0.7"),
    )
    assert better().not_alike == ()


def test_harness_errors_are_named() -> None:
    found = compared(evidence(tasks(STRONG), harness_error=2), evidence(tasks(WEAK)))
    assert found.main.notes == ("A: 2 of 48 runs are harness errors and count as failures",)


def with_fields(rows: list[Rows], values: list[int]) -> Summary:
    """Each row's runs have `values` as violations, in turn."""
    built = evidence(rows)
    sums = dict(built.clusters.sums)
    tallies = []
    for place, row in enumerate(rows):
        drawn = [values[(place + step) % len(values)] for step in range(row.n)]
        sums["violations_n"] = sums["violations_n"].copy()
        sums["violations"] = sums["violations"].copy()
        sums["violations_n"][place], sums["violations"][place] = row.n, sum(drawn)
        squares = sum(value * value for value in drawn)
        tallies.append(Tally(violations_n=row.n, violations=sum(drawn), violations_squares=squares))
    cell = structs.replace(built.cells[0], tally=built.cells[0].tally + add(tallies))
    clusters = structs.replace(built.clusters, sums=sums)
    return structs.replace(built, cells=(cell,), clusters=clusters)


def test_fewer_violations_are_better() -> None:
    one, other = [0, 0, 1], [2, 0, 3, 1]
    found = compared(with_fields(tasks(STRONG), one), with_fields(tasks(STRONG), other), tests=True)
    row = found.metrics["violations"]
    drawn = [[v[(i + s) % len(v)] for i in range(12) for s in range(4)] for v in (one, other)]
    done = stats.ttest_ind(*drawn, equal_var=False)
    assert isinstance(found.paper_tests, PaperTests)
    runs = found.paper_tests.metrics["violations"]
    assert runs.welch is not None
    assert runs.welch.statistic == pytest.approx(float(done.statistic), abs=1e-9)
    assert runs.z is None
    assert row.matched is not None
    assert row.matched.difference == pytest.approx(sum(drawn[0]) / 48 - sum(drawn[1]) / 48)
    assert (row.better, row.p_adjusted) == ("a", row.matched.p)


def test_held_out_faults_are_compared_on_their_own() -> None:
    found = compared(
        evidence(tasks(STRONG), split=Split.NOVEL_FAULT),
        evidence(tasks(WEAK), split=Split.NOVEL_FAULT),
        novel=True,
    )
    assert (found.split, found.answer.metric, found.main.better) == ("novel_fault", "novel_fault", "a")
    assert found.answer.words.startswith("A succeeds under held-out faults more often than B")


def test_standard_runs_are_no_held_out_ones() -> None:
    found = compared(evidence(tasks(STRONG)), evidence(tasks(WEAK)), novel=True)
    assert found.exit_code == 4
    assert "not measured in either (no run of split novel_fault)" in found.answer.words


def test_the_order_of_rows_changes_nothing() -> None:
    a, b = over_domains(STRONG), over_domains(WEAK, condition="cascade")
    both = [*over_domains(WEAK), *b]
    one = compared(evidence(a), evidence(both)).to_dict()
    assert compared(evidence(a[::-1]), evidence(both[::-1])).to_dict() == one


def test_many_domains_are_compared_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certkit.assessment.compare.words.MOST_DOMAINS", 2)
    found = better()
    assert (found.main.better, found.domains) == ("a", {})
    assert any("none is tested on its own" in line for line in found.caveats)


A = [4, 3, 4, 2, 4, 1, 3, 4]
B = [3, 3, 1, 2, 4, 0, 2, 1]


def difference(a: list[Rows], b: list[Rows]) -> Difference:
    found = compared(evidence(a), evidence(b)).main.matched
    assert found is not None
    return found


def test_shared_tasks_are_paired_and_the_t_test_is_the_paired_one() -> None:
    found = difference(tasks(A), tasks(B))
    done = stats.ttest_rel(np.array(A) / 4, np.array(B) / 4)
    assert (found.tasks, found.shared, found.degrees_of_freedom) == ((8, 8), 8, 7)
    assert found.difference == pytest.approx((sum(A) - sum(B)) / 32, abs=1e-15)
    assert found.p == pytest.approx(float(done.pvalue), abs=1e-9)
    span = done.confidence_interval(0.95)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((span.low, span.high), abs=1e-9)


def test_other_tasks_are_not_paired() -> None:
    found = difference(tasks(A), tasks([*B, 2, 1], first=100))
    a, b = np.array(A) / 4, np.array([*B, 2, 1]) / 4
    squares = np.sum((a - a.mean()) ** 2), np.sum((b - b.mean()) ** 2)
    error = np.sqrt(8 / 7 * max(squares[0] / 64 + squares[1] / 100, sum(squares) / 18 * (1 / 8 + 1 / 10)))
    assert (found.tasks, found.shared, found.degrees_of_freedom) == ((8, 10), 0, 7)
    assert found.standard_error == pytest.approx(error)
    assert found.p == pytest.approx(2 * stats.t.sf((a.mean() - b.mean()) / error, 7))


def test_few_tasks_that_all_succeed_are_not_better_than_many() -> None:
    few, many = tasks([4] * 20), tasks([0] * 10 + [4] * 190, first=100)
    for a, b in ((few, many), (many, few)):
        found = difference(a, b)
        assert found.interval is not None
        assert found.interval.low < 0 < found.interval.high
        assert (compared(evidence(a), evidence(b)).answer.better, sorted(found.tasks)) == (None, [20, 200])


def test_tasks_of_one_family_count_once() -> None:
    def family(rows: list[Rows]) -> list[Rows]:
        return [Rows(cluster=1000 + row.task // 2, task=row.task, y=row.y, n=row.n) for row in rows]

    found = difference(family(tasks(A)), family(tasks(B)))
    pairs = np.array(A).reshape(4, 2).sum(axis=1) / 8, np.array(B).reshape(4, 2).sum(axis=1) / 8
    assert (found.tasks, found.shared) == ((4, 4), 4)
    assert found.p == pytest.approx(float(stats.ttest_rel(*pairs).pvalue), abs=1e-9)


def test_a_different_mix_is_no_difference() -> None:
    # Both do 3/4 of the easy and 1/4 of the hard ones; A has met mostly easy ones.
    a = [*tasks([9] * 6, 12, domain="easy"), *tasks([1] * 6, domain="hard", first=20)]
    b = [*tasks([3] * 6, domain="easy"), *tasks([3] * 6, 12, domain="hard", first=20)]
    found = difference(a, b)
    assert (found.a, found.b, found.p) == pytest.approx((0.5, 0.5, 1.0))


def test_both_weigh_a_cell_by_its_share_of_all_tasks() -> None:
    a = [*tasks([4, 3], 5, domain="x"), *tasks([2, 2], 3, domain="y", first=10)]
    b = [*tasks([2, 1], 4, domain="x", first=20), *tasks([5, 1, 3, 6], 6, domain="y", first=30)]
    found = difference(a, b)
    w_x, w_y = Fraction(4, 10), Fraction(6, 10)
    assert found.a == pytest.approx(float(w_x * Fraction(7, 10) + w_y * Fraction(4, 6)), abs=1e-15)
    assert found.b == pytest.approx(float(w_x * Fraction(3, 8) + w_y * Fraction(15, 24)), abs=1e-15)


@pytest.mark.parametrize("width", [1, 2, 4])
def test_with_all_tasks_shared_it_is_the_paired_t_test_in_however_many_domains(width: int) -> None:
    def laid(successes: list[int], n: int) -> list[Rows]:
        places = range(0, 8, width)
        return [
            row
            for at in places
            for row in tasks(successes[at : at + width], n + at, first=at, domain=f"domain {at}")
        ]

    def means(successes: list[int], n: int) -> np.ndarray[Any, Any]:
        return np.array([s / (n + at - at % width) for at, s in enumerate(successes)])

    found = difference(laid(A, 4), laid(B, 5))
    done = stats.ttest_rel(means(A, 4), means(B, 5))
    assert found.degrees_of_freedom == 7
    assert found.p == pytest.approx(float(done.pvalue), abs=1e-9)


@pytest.mark.parametrize(("domains", "each", "conditions"), [(40, 1, 1), (20, 2, 1), (5, 8, 5), (1, 40, 1)])
@pytest.mark.parametrize("shared", [True, False])
def test_agents_that_are_alike_seldom_differ(
    *, domains: int, each: int, conditions: int, shared: bool
) -> None:
    rng, k, draws, runs = np.random.default_rng(5), domains * each, 400, 4
    domain, unit = np.arange(k) % domains, np.arange(2 * k) if not shared else np.tile(np.arange(k), 2)
    hits = 0
    for _ in range(draws):
        chance = rng.beta(0.8 / 0.3 * 0.7, 0.2 / 0.3 * 0.7, (2, k))
        n, y = np.zeros((2, 2, 2 * k, conditions), np.int64)
        for side in (0, 1):
            at = np.arange(k) + (0 if shared else side * k), np.arange(k) // domains % conditions
            n[side][at], y[side][at] = runs, rng.binomial(runs, chance[0 if shared else side])
        names = tuple(f"{number:02}" for number in range(domains))
        panel = Panel(
            columns=tuple(("r_op", str(number)) for number in range(conditions)),
            scale={"r_op": 1},
            domains=names,
            unit=unit,
            domain=np.tile(domain, 2),
            y=y,
            n=n,
        )
        found = compare_module._difference(panel)
        hits += found is not None and found.p < 0.05
    assert hits / draws <= 0.075  # 5 %, and 2.3 standard errors of 400 draws


def test_only_what_both_have_is_compared() -> None:
    a = [*tasks(A), *tasks([0, 0], domain="a-only", first=50)]
    b = [*tasks(B), *tasks([0, 0], condition="cascade", first=60)]
    assert difference(a, b) == difference(tasks(A), tasks(B))


def test_a_task_of_another_domain_is_another_task() -> None:
    a = [*tasks(A, domain="x"), *tasks(A, domain="y", first=8)]
    b = [*tasks(B, domain="y"), *tasks(B, domain="x", first=8)]
    same = difference([*tasks(A, domain="x"), *tasks(A, domain="y", first=8)], a)
    assert difference(a, b).standard_error > same.standard_error == 0


def test_where_all_tasks_differ_alike_there_is_no_interval_and_p_is_the_sign_tests() -> None:
    found = difference(tasks([4] * 12), tasks([2] * 12))
    assert (found.difference, found.interval, found.p) == (0.5, None, 2 * 2**-12)


def test_one_task_shows_no_difference() -> None:
    assert compared(evidence(tasks([3])), evidence(tasks([1]))).exit_code == 4


def test_swapping_the_bundles_turns_the_sign_and_nothing_else() -> None:
    there, back = difference(tasks(A), tasks(B)), difference(tasks(B), tasks(A))
    assert (there.difference, there.p) == pytest.approx((-back.difference, back.p))
