"""Drift between two standings: arithmetic against closed forms, every result, every state, every refusal."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec import structs
from scipy import special, stats

from certkit.assessment.drift import drift
from certkit.assessment.drift.difference import difference, plain, rejected, spread, under_mix, variance
from certkit.assessment.drift.standing import Part, Standing, Watched
from certkit.assessment.reliability import CellRuns, Moments, reliability
from tests import study_drift
from tests.support import bundles
from tests.support.drift_sides import CENTS, HIGH, LOW, both, even, one, row, side

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def test_the_variance_is_that_of_the_clusters_of_the_raw_records(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    runs = [
        bundles.run(
            i,
            domain=f"d{i % 2}",
            task_id=f"t{i % 14}",
            cluster_id=f"c{i % 7}",
            condition="x_f",
            outcome="success" if random.random() < 0.7 else "failure",
            violations=int(random.integers(0, 4)),
        )
        for i in range(200)
    ]
    found = reliability(bundles.summary(bundles.of(tmp_path / "b", runs)), memory_observable=False)
    tested = 0
    for moments in found.moments:
        if moments.metric not in {"r_op", "violations"}:
            continue
        chosen = [run for run in runs if moments.domain in {None, run["domain"]}]
        groups: dict[str, list[float]] = defaultdict(list)
        for run in chosen:
            value = run["violations"] if moments.metric == "violations" else run["outcome"] == "success"
            groups[run["cluster_id"]].append(float(value))
        mean = sum(map(sum, groups.values())) / len(chosen)
        residuals = [sum(values) - mean * len(values) for values in groups.values()]
        k = len(groups)
        naive = k / (k - 1) * sum(r * r for r in residuals) / len(chosen) ** 2
        assert variance(moments) == pytest.approx(naive, rel=1e-12)
        assert float(plain(moments).value) == pytest.approx(mean, rel=1e-15)
        tested += 1
    assert (
        tested == 9
    )  # two metrics overall and in two domains; r_op also under its condition, and per domain


def test_the_variance_is_exact_where_floats_would_cancel() -> None:
    # A million clusters of a million runs each, one of which has one success less than all others.
    size = 10**6
    n, y = size * size, size * size - 1
    moments = Moments(
        metric="r_op",
        domain=None,
        condition=None,
        scale=1,
        y=y,
        n=n,
        k=size,
        yy=(size - 1) * size**2 + (size - 1) ** 2,
        yn=(size - 1) * size**2 + (size - 1) * size,
        nn=size**3,
    )
    p = Fraction(y, n)
    squares = (size - 1) * (size - p * size) ** 2 + (size - 1 - p * size) ** 2
    assert spread(moments) == squares * n * n
    assert variance(moments) == float(Fraction(size, size - 1) * squares / n**2)


def test_p_is_the_t_tail_with_the_clusters_of_both_sides() -> None:
    old, new = (
        plain(row("r_op", [(9, 10), (8, 10), (10, 10), (7, 9)])),
        plain(row("r_op", [(5, 10), (8, 9), (6, 10)])),
    )
    found = difference(old, new)
    assert found.test is not None
    assert old.variance is not None
    assert new.variance is not None
    se = sqrt(old.variance + new.variance)
    loss = 34 / 39 - 19 / 29
    assert found.loss == Fraction(34, 39) - Fraction(19, 29)
    assert found.test.se == pytest.approx(se, rel=1e-14)
    assert found.test.freedom == 5
    assert found.test.p_loss == pytest.approx(stats.t.sf(loss / se, 5), rel=1e-10)
    assert found.test.p_gain == pytest.approx(stats.t.cdf(loss / se, 5), rel=1e-10)
    # The limit of the loss takes the variances where one more cluster succeeded and one more failed.
    wide = [
        side.variance * stats.bernoulli.var((side.k * p + 1) / (side.k + 2)) / stats.bernoulli.var(p)
        for side, p in ((old, 34 / 39), (new, 19 / 29))
        if side.variance
    ]
    welch = sum(wide) ** 2 / (wide[0] ** 2 / 3 + wide[1] ** 2 / 2)
    assert found.test.worst == pytest.approx(loss + stats.t.ppf(0.95, welch) * sqrt(sum(wide)), rel=1e-10)


@pytest.mark.parametrize(("clusters", "rate"), [(5, 0.85), (10, 0.85), (20, 0.95), (100, 0.85)])
def test_a_loss_of_the_margin_is_seldom_excluded_against_few_clusters(clusters: int, rate: float) -> None:
    # The new side is worse by the margin exactly; each draw in which that is excluded is a wrong "stable".
    random = np.random.default_rng(17)

    def drawn(mean: float, k: int) -> Moments:
        chance = random.beta(9 * mean, 9 * (1 - mean), k)  # ICC .1
        return row("r_op", [(int(y), 10) for y in random.binomial(10, chance)])

    wrong = 0
    for _ in range(1500):
        test = difference(plain(drawn(rate, 100)), plain(drawn(rate - 0.05, clusters))).test
        assert test is not None
        wrong += test.worst < 0.05
    assert wrong / 1500 < 0.075  # 5 %, and 10 to 13 % with variances at the estimate


def test_with_many_clusters_the_limit_of_a_loss_is_1645_standard_errors() -> None:
    pairs = list(even(HIGH, clusters=4000).values())
    test = difference(plain(row("r_op", pairs)), plain(row("r_op", pairs))).test
    assert test is not None
    assert test.worst / test.se == pytest.approx(stats.norm.ppf(0.95), rel=5e-4)


def test_where_clusters_agree_the_posterior_counts_clusters_and_not_runs() -> None:
    for size in (1, 200):
        good, less = row("r_op", [(size, size)] * 12), row("r_op", [(size, size)] * 20)
        none = row("r_op", [(0, size)] * 9)
        # P(X₂ ≥ X₁) for Beta(13, 1) and Beta(21, 1) is 21/34; against Beta(1, 10) it is 13·B(13, 11).
        agreeing, lost = difference(plain(good), plain(less)).test, difference(plain(good), plain(none)).test
        assert agreeing is not None
        assert lost is not None
        assert agreeing.p_loss == pytest.approx(21 / 34, rel=1e-12)
        assert agreeing.p_gain == pytest.approx(13 / 34, rel=1e-12)
        assert lost.p_loss == pytest.approx(13 * special.beta(13, 11), rel=1e-10)
        assert agreeing.se == pytest.approx(sqrt(stats.beta.var(13, 1) + stats.beta.var(21, 1)), rel=1e-12)


def test_counts_that_agree_have_a_gamma_posterior() -> None:
    # All zero: exponential posteriors, P(λ₂ ≤ λ₁) = k₂ / (k₁ + k₂).
    test = difference(plain(row("violations", [(0, 5)] * 30)), plain(row("violations", [(0, 5)] * 10))).test
    assert test is not None
    assert test.p_loss == pytest.approx(10 / 40, rel=1e-12)
    assert test.se == pytest.approx(sqrt(1 / 30**2 + 1 / 10**2), rel=1e-12)
    some = difference(plain(row("violations", [(5, 5)] * 30)), plain(row("violations", [(10, 5)] * 10))).test
    assert some is not None
    x = np.linspace(0, 5, 200_001)
    density = stats.gamma.pdf(x, 31, scale=1 / 30) * stats.gamma.cdf(x, 21, scale=1 / 10)
    assert some.p_loss == pytest.approx(np.trapezoid(density, x), rel=1e-8)


def test_a_side_that_agrees_is_not_taken_for_one_without_variance() -> None:
    test = difference(plain(row("r_op", [(1, 1)] * 10)), plain(row("r_op", [(1, 1)] * 9 + [(0, 1)]))).test
    assert test is not None
    assert test.se == pytest.approx(sqrt(stats.beta.var(11, 1) + 0.01), rel=1e-12)


def test_the_traceability_scale_is_that_of_its_range() -> None:
    test = difference(plain(row("ti", [(5000, 1)] * 10, 1000)), plain(row("ti", [(5000, 1)] * 10, 1000))).test
    assert test is not None
    assert test.se == pytest.approx(4 * sqrt(2 * stats.beta.var(11, 1)), rel=1e-12)


@pytest.mark.parametrize("metric", ["r_op", "violations"])
def test_one_cluster_is_no_variance(metric: str) -> None:
    assert difference(plain(row(metric, [(9, 10)])), plain(row(metric, [(5, 10)] * 9))).test is None


def test_a_loss_of_violations_is_a_rise() -> None:
    fewer, more = plain(row("violations", [(1, 10)] * 3)), plain(row("violations", [(9, 10)] * 3))
    assert difference(fewer, more).loss == Fraction(8, 10)


def naive_bh(probabilities: list[float], q: float) -> list[bool]:
    order = sorted(range(len(probabilities)), key=lambda i: probabilities[i])
    last = 0
    for rank, i in enumerate(order, start=1):
        if probabilities[i] <= q * rank / len(order):
            last = rank
    return [i in order[:last] for i in range(len(order))]


def test_the_family_is_that_of_benjamini_and_hochberg() -> None:
    random = np.random.default_rng(11)
    for size in (1, 2, 7, 20):
        for _ in range(200):
            p = list(random.random(size) ** random.integers(1, 6))
            found = rejected(p, 0.02)
            assert found == naive_bh(p, 0.02)
            adjusted = stats.false_discovery_control(p)
            assert found == [bool(value <= 0.02) for value in adjusted]
    assert rejected([], 0.02) == []


def test_reweighting_is_the_sum_over_cells_and_its_variance_that_of_apart_clusters() -> None:
    easy, hard = [(10, 10), (9, 10), (10, 10)], [(5, 10), (3, 10), (6, 10), (5, 10)]
    whole = row("r_op", [*easy, *hard])
    cells = [row("r_op", easy, domain="a"), row("r_op", hard, domain="b")]
    found = under_mix([3, 1], cells, whole, 0)
    assert found.value == Fraction(3, 4) * Fraction(29, 30) + Fraction(1, 4) * Fraction(19, 40)
    ve, vh = (variance(cell) or 0.0 for cell in cells)
    usual = variance(whole)
    assert usual is not None
    assert found.variance == pytest.approx(max(usual, 9 / 16 * ve + vh / 16), rel=1e-12)
    same = under_mix([30, 40], cells, whole, 0)
    assert (same.value, same.variance, same.reweighted) == (Fraction(48, 70), usual, False)


def test_reweighting_is_not_too_sure_where_tasks_span_the_cells() -> None:
    # Every task is run in both cells and stands or falls in both; 4,000 draws give the true variance.
    random = np.random.default_rng(5)
    drawn, stated, apart = [], [], []
    for _ in range(4000):
        chance = random.beta(4, 1, 30)
        easy, hard = random.binomial(9, chance), random.binomial(3, chance)
        whole = row("r_op", [(int(e + h), 12) for e, h in zip(easy, hard, strict=True)])
        cells = [row("r_op", [(int(y), n) for y in column]) for column, n in ((easy, 9), (hard, 3))]
        found = under_mix([1, 1], cells, whole, 0)
        assert found.variance is not None
        drawn.append(float(found.value))
        stated.append(found.variance)
        apart.append(sum((variance(cell) or 0.0) / 4 for cell in cells))
    true = np.var(drawn)
    assert 0.95 * true < np.mean(stated) < 1.15 * true
    assert np.mean(apart) < 0.8 * true  # what strata alone would say


def test_stable() -> None:
    found = drift(one(HIGH), one(HIGH))
    assert (found.result, found.exit_code) == ("STABLE", 0)
    assert {item.state for item in found.behaviour} == {"EQUIVALENT"}
    assert "a loss of 0.05 is excluded" in found.reasons[0]


def test_a_loss_is_drift_before_a_change_of_identity() -> None:
    found = drift(one(HIGH), one(LOW, identity="two"))
    assert (found.result, found.exit_code) == ("DRIFTED", 5)
    overall = found.behaviour[0]
    assert (overall.state, overall.flagged) == ("WORSE", True)
    assert overall.found is not None
    assert overall.found.loss == Fraction(2, 10)


def test_a_gain_is_shown_and_is_no_drift() -> None:
    found = drift(one(LOW), one(HIGH))
    assert found.result == "STABLE"
    assert {item.state for item in found.behaviour} == {"BETTER"}
    assert not any(item.flagged for item in found.behaviour)


def test_a_change_of_identity_is_named_part_by_part() -> None:
    parts = (
        Part(role="model", name="m", version="2", digest="d"),
        Part(role="tools", name="t"),
        Part(role="tools", name="u"),
    )
    old = one(
        HIGH, components=(*one(HIGH).components, Part(role="tools", name="u"), Part(role="code", name="c"))
    )
    found = drift(old, one(HIGH, identity="two", components=parts, version="2", lineage="x/a"))
    assert (found.result, found.exit_code) == ("IDENTITY_CHANGED", 5)
    assert [(item.role, item.old, item.new) for item in found.identity] == [
        ("agent", "-/a 1", "x/a 2"),
        ("model", "m 1 d", "m 2 d"),
        ("tools", None, "t not pinned"),
        ("code", "c not pinned", None),
    ]
    assert "identity: tools t not pinned was added" in found.reasons
    hidden = drift(one(HIGH), one(HIGH, identity="two")).identity
    assert [(item.role, item.old, item.new) for item in hidden] == [("agent", "one", "two")]


def test_few_clusters_are_underpowered_and_one_is_too() -> None:
    few = side({("d", "x_f"): even(HIGH, clusters=4)})
    found = drift(few, few)
    assert (found.result, found.exit_code) == ("UNDERPOWERED", 4)
    lone = side({("d", "x_f"): {"a": (90, 100)}})
    found = drift(lone, one(LOW))
    assert found.result == "UNDERPOWERED"
    assert found.behaviour[0].reason == "too few clusters on the old side to tell how much runs vary"
    assert found.behaviour[0].found is not None
    assert not found.behaviour[0].flagged


def test_ten_tasks_that_always_succeed_are_not_stable_however_often_they_ran() -> None:
    often = side({("d", "x_f"): {str(i): (200, 200) for i in range(10)}})
    assert drift(often, often).result == "UNDERPOWERED"
    many = side({("d", "x_f"): {str(i): (1, 1) for i in range(200)}})
    assert drift(many, many).result == "STABLE"


def test_no_fault_runs_is_underpowered() -> None:
    empty = structs.replace(one(HIGH), runs=(CellRuns(domain="d", condition="nominal", runs=3),), moments=())
    found = drift(empty, empty)
    assert (found.result, found.behaviour[0].reason) == ("UNDERPOWERED", "neither side measured it")


def test_a_loss_below_the_margin_is_not_flagged_and_one_of_the_margin_is() -> None:
    # Twenty thousand clusters: any difference is significant, the margin decides.
    def rate(good: int) -> Standing:
        return side({("d", "x_f"): {str(i): (int(i < good), 1) for i in range(20_000)}})

    assert drift(rate(18_000), rate(17_001)).behaviour[0].state == "UNDERPOWERED"
    assert drift(rate(18_000), rate(17_000)).behaviour[0].state == "WORSE"


CHANGES: list[tuple[str, Mapping[str, Any], str]] = [
    ("profile", {"profile_digest": "sha256:q"}, "profile p (sha256:p) and p (sha256:q)"),
    ("origin", {"origin": "simulated"}, "origin measured and simulated"),
    ("methodology", {"methodology": "other"}, "methodology trajectory and other"),
    ("rule", {"success_rule": None}, "success rule rule and not stated"),
]


@pytest.mark.parametrize(
    ("changes", "words"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES]
)
def test_what_is_not_measured_alike_is_not_comparable(changes: Mapping[str, Any], words: str) -> None:
    found = drift(one(HIGH), one(LOW, **changes))
    assert (found.result, found.exit_code, found.behaviour) == ("NOT_COMPARABLE", 4, ())
    assert found.reasons[0] == f"not comparable: {words}"


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
        found = drift(old, side(other))
        assert (found.result, found.reasons[0]) == ("NOT_COMPARABLE", f"not comparable: {words}")
    assert drift(old, side(cells, nominal=0)).result == "NOT_COMPARABLE"


def test_the_judge_matters_where_rows_are_judged_and_the_cascade_where_there_is_one() -> None:
    ti = both("ti", [(4000 + i % 3, 1) for i in range(60)], 1000)
    assert drift(one(HIGH), one(HIGH, judge="k")).result == "STABLE"
    assert drift(one(HIGH, *ti), one(HIGH, *ti, judge="k")).reasons[0] == "not comparable: judge j (f) and k"
    judged = one(HIGH, methodology="independent_judge")
    assert drift(judged, structs.replace(judged, judge=None)).result == "NOT_COMPARABLE"
    assert drift(one(HIGH), one(HIGH, cascade_definition=None)).result == "STABLE"
    cascade = side({("d", "cascade"): even(HIGH)})
    assert drift(cascade, structs.replace(cascade, cascade_definition=None)).result == "NOT_COMPARABLE"


def test_a_change_of_mix_is_not_drift() -> None:
    def mixed(easy: int, hard: int) -> Standing:
        return side(
            {
                ("d", "x_easy"): even(Fraction(9, 10), clusters=easy, names="e"),
                ("d", "x_hard"): even(Fraction(5, 10), clusters=hard, names="h"),
            }
        )

    old, new = mixed(90, 30), mixed(40, 80)
    assert plain(old.moments[0]).value - plain(new.moments[0]).value > Fraction(16, 100)
    found = drift(old, new)
    assert found.result == "STABLE"
    assert found.behaviour[0].found is not None
    assert found.behaviour[0].found.loss == 0
    assert {item.found.loss for item in found.behaviour if item.found} == {0}
    assert any("mix of domains and fault conditions moved by 41.7 %" in reason for reason in found.reasons)
    # The other way round: an easier mix does not hide a loss.
    worse = side(
        {
            ("d", "x_easy"): even(Fraction(8, 10), clusters=110, names="e"),
            ("d", "x_hard"): even(Fraction(4, 10), clusters=10, names="h"),
        }
    )
    assert plain(worse.moments[0]).value > plain(new.moments[0]).value
    assert drift(new, worse).result == "DRIFTED"


def test_rows_that_do_not_know_conditions_are_not_tested_under_another_mix() -> None:
    def mixed(easy: int, hard: int, frr: int) -> Standing:
        rows = both("frr", [(frr, 1)] * 60 + [(0, 1)] * 60, 10)
        return side(
            {
                ("d", "x_easy"): even(HIGH, clusters=easy),
                ("d", "x_hard"): even(HIGH, clusters=hard, names="h"),
            },
            *rows,
        )

    same, other = drift(mixed(60, 60, 10), mixed(60, 60, 4)), drift(mixed(60, 60, 10), mixed(30, 90, 4))
    assert [item.state for item in same.behaviour if item.metric == "frr"] == ["WORSE"]
    row_ = next(item for item in other.behaviour if item.metric == "frr")
    assert (row_.state, row_.flagged) == ("UNDERPOWERED", False)
    assert row_.reason is not None
    assert row_.reason.startswith("25 % of the runs moved between conditions")
    assert f"frr was not tested: {row_.reason}" in other.reasons


def test_what_one_side_alone_measured_is_shown_and_named() -> None:
    frr = both("frr", [(8, 1), (9, 1)] * 40, 10)
    with_it = one(HIGH, *frr)
    without = structs.replace(one(HIGH), criteria=with_it.criteria)
    for old, new, words in ((with_it, without, "old"), (without, with_it, "new")):
        found = drift(old, new)
        row_ = next(item for item in found.behaviour if item.criterion == "frr")
        assert (row_.state, row_.reason) == ("UNDERPOWERED", f"only the {words} side measured it")
        assert f"frr was not tested: only the {words} side measured it" in found.reasons
        document = row_.to_dict()
        assert (document["old"] is None) == (words == "new")
        assert (document["difference"], document["probability"]) == (None, None)


def test_rows_that_cannot_be_tested_say_why() -> None:
    frr, irs = both("frr", [(8, 1), (9, 1)] * 40, 10), both("irs", [(1, 1), (0, 1)] * 40)
    old = one(HIGH, *frr, *irs)
    criteria = tuple(structs.replace(item, judged=item.id != "frr") for item in old.criteria)
    new = structs.replace(old, criteria=criteria, memory_observable=None)
    reasons = {item.criterion: item.reason for item in drift(old, new).behaviour}
    assert reasons["frr"] == "not measured well enough to be judged on the new side"
    assert reasons["irs"] == "the sides declare differently whether memory queries were observable"
    bare = tuple(structs.replace(item, margin=None) for item in old.criteria)
    found = drift(structs.replace(old, criteria=bare), structs.replace(old, criteria=bare))
    assert {item.reason for item in found.behaviour} == {"no drift margin is stated for it"}
    assert found.result == "UNDERPOWERED"
    foreign = structs.replace(
        old, criteria=(*old.criteria, Watched(id="frr_2025", metric="frr_2025", margin=CENTS, judged=True))
    )
    reasons = {item.criterion: item.reason for item in drift(foreign, foreign).behaviour}
    assert reasons["frr_2025"] == "passports carry no integers of it"


def test_the_old_margin_decides() -> None:
    lenient = tuple(structs.replace(item, margin=Fraction(1, 2)) for item in one(HIGH).criteria)
    assert drift(one(HIGH), one(LOW, criteria=lenient)).result == "DRIFTED"


def test_the_family_holds_the_other_criteria_domains_and_conditions() -> None:
    old, _ = next(study_drift.pairs(1, seed=1, icc=0.1, loss=0.0))
    names = [item.name for item in drift(old, old).behaviour]
    assert names == [
        "r_op",
        "pei",
        "irs",
        "frr",
        "ti",
        "violations",
        "adversarial_resistance",
        "c_nom",
        *(f"r_op in {domain}" for domain in study_drift.DOMAINS),
        *(f"r_op under {condition}" for condition in study_drift.CONDITIONS),
    ]


def test_flags_are_those_of_the_rule_written_out() -> None:
    flags = 0
    for old, new in study_drift.pairs(40, seed=9, icc=0.1, loss=0.06):
        rows = [item.to_dict() for item in drift(old, new).behaviour]
        reached = [item["difference"] >= item["margin"] for item in rows]
        adjusted = stats.false_discovery_control([item["probability"] for item in rows[1:]])
        expected = [rows[0]["probability"] < 0.03, *(value <= 0.02 for value in adjusted)]
        flagged = [bool(a and b) for a, b in zip(reached, expected, strict=True)]
        assert [item["flagged"] for item in rows] == flagged
        assert [item["state"] == "WORSE" for item in rows] == flagged
        flags += sum(flagged)
    assert flags > 20


def test_the_document_has_the_keys_of_the_format() -> None:
    document = drift(one(HIGH), one(LOW, tier=0)).to_dict()
    assert document["schema"] == "urn:certkit:drift:v1"
    assert document.keys() >= {"result", "identity", "behaviour", "tier", "reasons"}
    assert document["tier"] == {"old": 1, "new": 0}
    assert "tier: Tier 1 before, no tier now" in document["reasons"]
    keys = {"criterion", "domain", "old", "new", "difference", "state", "probability", "flagged"}
    assert all(item.keys() >= keys for item in document["behaviour"])


def test_what_a_reader_should_know_of_the_sides_is_said() -> None:
    bare = one(HIGH, components=(), origin="simulated", evidence="same")
    reasons = drift(bare, bare).reasons
    assert "both sides rest on the same evidence, so that nothing new was observed" in reasons
    assert "both sides are specimens from simulated evidence" in reasons
    assert any(
        reason.startswith("no components are listed on the old and the new side") for reason in reasons
    )
    loose = one(HIGH, components=(Part(role="model", name="m"),))
    assert any("pins 0 of 1 components" in reason for reason in drift(loose, loose).reasons)


def test_stable_pairs_are_seldom_flagged_and_losses_found() -> None:
    stable = study_drift.study(300, seed=21, icc=0.1)
    lost = study_drift.study(150, seed=22, icc=0.0, loss=0.1)
    assert stable.flagged <= 0.05
    assert stable.stable >= 0.6
    assert lost.overall >= 0.95
    assert lost.stable == 0
