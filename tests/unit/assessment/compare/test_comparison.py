"""The comparison as a whole: who is better, what is said of what is missing, and the document."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs
from scipy import stats

from certkit import canonical
from certkit.assessment.compare import METRICS, SEED, compare
from certkit.assessment.compare.assemble import holm
from certkit.assessment.compare.document import Unlike
from certkit.evidence.records.record import Split
from certkit.evidence.summary.summary import Tally, add
from tests.support.build import facts
from tests.support.rows import Rows, evidence, tasks

if TYPE_CHECKING:
    from certkit.assessment.compare.comparison import Comparison
    from certkit.evidence.bundle.manifest import Facts
    from certkit.evidence.summary.summary import Summary

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
    assert (found.main.metric, found.main.better, found.exit_code) == ("r_op", "a", 0)
    strong, weak = ([value / 4 for value in values * 3] for values in (STRONG, WEAK))
    span = stats.ttest_rel(strong, weak).confidence_interval(0.95)
    assert found.answer.startswith(
        "A succeeds under faults more often than B: 93.8 % against 47.9 %, +45.8 pp "
        f"(95 % CI {100 * span.low:+.1f} to {100 * span.high:+.1f}, p = 0.0002; "
        "144 and 144 runs, paired on 36 tasks in 36 clusters)."
    )
    assert found.answer.endswith("A is alpha 1, B is beta 1.")


def test_the_other_way_round_the_other_is_better() -> None:
    found = compared(evidence(over_domains(WEAK)), evidence(over_domains(STRONG)))
    assert found.main.better == "b"
    assert found.answer.startswith(
        "B succeeds under faults more often than A: 47.9 % against 93.8 %, -45.8 pp"
    )


def test_the_same_bundle_twice_shows_nothing() -> None:
    same = evidence(over_domains(WEAK))
    found = compare((same, named("alpha")), (same, named("alpha")))
    assert found.main.matched is not None
    assert (found.main.matched.difference, found.main.matched.permutation.p) == (0.0, 1.0)
    assert (found.main.better, found.exit_code) == (None, 0)
    assert found.answer.startswith("No difference under faults is shown between A and B")
    assert "A and B are the same bundle" in found.caveats


def test_too_few_clusters_say_so() -> None:
    found = compared(evidence(tasks([4, 4, 4])), evidence(tasks([0, 1, 0])))
    assert found.main.better is None
    assert "The clusters are too few to show any: p cannot be below 0.250." in found.answer
    assert "fewer than 10 clusters: the interval is rough" in found.caveats


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
    row = next(row for row in compared(whole, part).metrics if row.metric == "frr")
    assert (row.matched, row.b.state) == (None, "partial")
    assert row.reason == "only partly measured in B (45 of 48 eligible runs carry no recovery grade)"


def test_too_many_harness_errors_forbid_the_comparison_of_field_metrics() -> None:
    marred = evidence(tasks(STRONG), violations_n=46, harness_error=2)
    found = compared(marred, evidence(tasks(STRONG), violations_n=48))
    row = next(row for row in found.metrics if row.metric == "violations")
    assert row.matched is None
    assert row.reason == "not fit to be judged in A (2 of 48 runs are harness errors, above 1 %)"


def test_nothing_in_common_is_exit_code_4() -> None:
    found = compared(evidence(tasks(STRONG)), evidence(tasks(WEAK, domain="elsewhere")))
    assert (found.exit_code, found.main.matched, found.domains, found.rates) == (4, None, (), {})
    assert "the bundles share no domain and condition with runs that carry it" in found.answer
    assert found.answer.endswith("Nothing can be compared.")


def test_an_empty_bundle_is_exit_code_4() -> None:
    found = compared(evidence([]), evidence(tasks(WEAK)))
    assert found.exit_code == 4
    assert found.main.a.value is None
    assert "not measured in A (no run under a fault)" in found.answer


def test_other_metrics_are_compared_where_the_main_one_is_not() -> None:
    nominal = evidence(tasks(STRONG, condition="nominal")), evidence(tasks(WEAK, condition="nominal"))
    found = compared(*nominal)
    assert found.exit_code == 0
    assert "Compared are: c_nom." in found.answer
    row = found.metrics[1]
    assert (row.metric, row.better) == ("c_nom", "a")


def test_domains_are_tested_and_adjusted_for_their_number() -> None:
    found = better()
    assert [row.domain for row in found.domains] == list(DOMAINS)
    for row in found.domains:
        assert row.matched is not None
        assert (row.a.successes, row.a.n, row.matched.tasks) == (45, 48, 12)
        assert row.p_holm == pytest.approx(min(1.0, 3 * row.matched.permutation.p))
        assert row.better == "a"


def test_a_domain_of_one_bundle_is_shown_and_not_compared() -> None:
    found = compared(
        evidence([*over_domains(STRONG), *tasks([1], domain="zoo", first=900)]), evidence(over_domains(WEAK))
    )
    zoo = found.domains[-1]
    assert (zoo.domain, zoo.a.value, zoo.b.value, zoo.matched, zoo.p_holm) == ("zoo", 0.25, None, None, None)
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


def test_rates_have_intervals_by_task_agent_and_both() -> None:
    found = better()
    assert set(found.rates) == {"a", "b", "together_by_task", "together_by_agent", "together_by_both"}
    agent = found.rates["together_by_agent"]
    assert (agent.low, agent.high, agent.blocks) == (69 / 144, 135 / 144, (36, 2))
    assert {row.seed for row in found.rates.values()} == {SEED}


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
    row = next(row for row in found.metrics if row.metric == "violations")
    drawn = [[v[(i + s) % len(v)] for i in range(12) for s in range(4)] for v in (one, other)]
    done = stats.ttest_ind(*drawn, equal_var=False)
    assert found.paper_tests is not None
    runs = found.paper_tests.metrics["violations"]
    assert runs.welch is not None
    assert runs.welch.statistic == pytest.approx(float(done.statistic), abs=1e-9)
    assert (runs.z, runs.newcombe, runs.cohen_h) == (None, None, None)
    assert row.matched is not None
    assert row.matched.difference == pytest.approx(sum(drawn[0]) / 48 - sum(drawn[1]) / 48)
    assert (row.better, row.p_holm) == ("a", row.matched.permutation.p)


def test_held_out_faults_are_compared_on_their_own() -> None:
    manner = {"guided": 20, "guided_success": 18, "unguided": 25, "unguided_success": 15}
    found = compared(
        evidence(tasks(STRONG), split=Split.NOVEL_FAULT, **manner),
        evidence(tasks(WEAK), split=Split.NOVEL_FAULT, unguided=40, unguided_success=20),
        novel=True,
        tests=True,
    )
    assert (found.split, found.main.metric, found.main.better) == ("novel_fault", "novel_fault", "a")
    assert found.answer.startswith("A succeeds under held-out faults more often than B")
    assert found.manners is not None
    one, other = found.manners
    assert (one.intentional, one.trial_and_error, one.unknown) == ((18, 20), (15, 25), 3)
    assert one.difference == pytest.approx(float(Fraction(18, 20) - Fraction(15, 25)))
    chi = stats.chi2_contingency([[18, 2], [15, 10]], correction=False)
    assert found.paper_tests is not None
    assert list(found.paper_tests.manners) == ["a"]
    z = found.paper_tests.manners["a"].z
    assert z is not None
    assert z.statistic**2 == pytest.approx(float(chi.statistic), abs=1e-9)
    assert (other.intentional, other.difference) == ((0, 0), None)
    document = found.to_dict()["manners"]
    assert document["b"]["intentional"] == {"successes": 0, "n": 0, "value": None}


def test_standard_runs_are_no_held_out_ones() -> None:
    found = compared(evidence(tasks(STRONG)), evidence(tasks(WEAK)), novel=True)
    assert (found.exit_code, found.manners) == (4, None)
    assert "not measured in either (no run of split novel_fault)" in found.answer


def test_the_order_of_rows_changes_nothing() -> None:
    a, b = over_domains(STRONG), over_domains(WEAK, condition="cascade")
    both = [*over_domains(WEAK), *b]
    one = compared(evidence(a), evidence(both)).to_dict()
    assert compared(evidence(a[::-1]), evidence(both[::-1])).to_dict() == one


def test_the_seed_is_in_the_document_and_decides_the_draws() -> None:
    pair = (evidence(over_domains(STRONG)), named("a")), (evidence(over_domains(WEAK)), named("b"))
    one, again = (compare(*pair, seed=3, draws=500).to_dict() for _ in range(2))
    other = compare(*pair, seed=4, draws=500).to_dict()
    assert one == again
    assert (one["seed"], one["draws"], one["rates"]["a"]["seed"]) == (3, 500, 3)
    spans = [[(rate["low"], rate["high"]) for rate in found["rates"].values()] for found in (one, other)]
    assert spans[0] != spans[1]
    assert one["metrics"]["r_op"]["matched"]["robust"] == other["metrics"]["r_op"]["matched"]["robust"]


def test_many_domains_are_compared_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certkit.assessment.compare.assemble.MOST_DOMAINS", 2)
    found = better()
    assert (found.main.better, found.domains) == ("a", ())
    assert any("none is tested on its own" in line for line in found.caveats)


def test_holm_is_rs_p_adjust() -> None:
    # R 4: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") gives 0.03 0.06 0.06 0.02
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, None, 0.5]) == [1.0, None, 1.0]
    assert holm([]) == []
