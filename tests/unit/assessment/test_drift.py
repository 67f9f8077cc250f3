"""Drift between snapshots: arithmetic against scipy, every result, every state, every refusal."""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec import structs
from scipy import stats

from certkit.assessment.drift import drift, trend
from certkit.assessment.drift.contrast import adjusted, contrast, limit, slopes
from certkit.assessment.drift.snapshot import Part, Snapshot, Watched
from certkit.assessment.tasks import SUCCESS, task_table
from certkit.summary.reduce import tag
from tests.support import bundles
from tests.support.drift_sides import CENTS, HIGH, LOW, Cells, apart, even, laid, one, side, values

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from certkit.assessment.drift.document import Row


def test_with_all_tasks_shared_it_is_the_paired_t_test() -> None:
    random = np.random.default_rng(3)
    old, new = random.random((2, 40))
    found = contrast(laid(old.tolist(), new.tolist()), (1, -1))
    expected = stats.ttest_rel(old, new, alternative="greater")
    assert found.p_loss == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.loss / found.se == pytest.approx(expected.statistic, rel=1e-9)
    assert found.freedom == expected.df
    assert found.p_gain == pytest.approx(1 - expected.pvalue, rel=1e-9)


def test_with_no_task_shared_it_is_the_unpaired_t_test_of_equal_sides() -> None:
    # Its p takes k − 1 degrees of freedom, the fewest that Welch's formula can give.
    random = np.random.default_rng(4)
    old, new = random.random((2, 40))
    found = contrast(apart(old, new), (1, -1))
    expected = stats.ttest_ind(old, new, alternative="greater").statistic
    assert found.loss / found.se == pytest.approx(expected, rel=1e-9)
    assert found.p_loss == pytest.approx(stats.t.sf(expected, 39), rel=1e-9)


def test_a_task_on_both_sides_counts_once() -> None:
    random = np.random.default_rng(5)
    old, new = random.random(30), random.random(25)
    # Tasks 0 to 19 are on both sides, 20 to 29 on the old, 30 to 34 on the new one.
    found = contrast(laid([*old, *[None] * 5], [*new[:20], *[None] * 10, *new[20:]]), (1, -1))
    u = np.zeros(35)
    u[:30] += (old - old.mean()) / 30
    u[[*range(20), *range(30, 35)]] -= (new - new.mean()) / 25
    squares = np.array([30 * old.var(), 25 * new.var()])
    more = squares.sum() / 55 * (1 / 30 + 1 / 25) - squares @ [1 / 30**2, 1 / 25**2]
    assert found.se == pytest.approx(np.sqrt(25 / 24 * (np.sum(u * u) + max(0, more))), rel=1e-9)
    assert found.freedom == 24


def test_beside_many_tasks_the_error_of_few_is_at_least_the_pooled_one() -> None:
    few, many = np.r_[np.ones(9), 0.9], (np.arange(100) >= 10).astype(float)
    found = contrast(apart(few, many), (1, -1))
    # V has k/(k − 1) of the smaller side where the pooled test has K/(K − 2).
    expected = stats.ttest_ind(few, many, equal_var=True).statistic * np.sqrt(110 / 108 / (10 / 9))
    assert found.loss / found.se == pytest.approx(expected, rel=1e-9)
    assert found.p_loss == pytest.approx(stats.t.sf(expected, 9), rel=1e-9)
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
        found = contrast(laid(*columns), [float(weight) for weight in slopes(count)])
        fitted = stats.linregress(np.arange(count), columns.mean(axis=1)).slope
        assert found.loss == pytest.approx(-fitted * (count - 1), rel=1e-9)
        # Per task the fitted loss is one number, and its mean is tested.
        each = [-stats.linregress(np.arange(count), column).slope * (count - 1) for column in columns.T]
        assert found.p_loss == pytest.approx(
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
    found = limit((laid if shared else apart)(a, b), low=0.0, width=1.0)
    size = 26 * 27
    first, second = (a.sum() + 1) / 26, b.sum() / 26
    va = (np.sum((a - first) ** 2) + (1 - first) ** 2) / size
    vb = (np.sum((b - second) ** 2) + second**2) / size
    c = np.sum((a - first) * (b - second)) / size if shared else 0.0
    mean, variance = (1 - first + second) / 2, (va + vb - 2 * c) / 4
    n = mean * (1 - mean) / variance - 1
    assert found == pytest.approx(1 - 2 * stats.beta.ppf(0.05, mean * n, (1 - mean) * n), rel=1e-9)


def test_a_loss_of_the_margin_is_seldom_excluded() -> None:
    # The new side is worse by the margin exactly; each draw in which that is excluded is a wrong "stable".
    random, wrong = np.random.default_rng(17), 0
    for _ in range(1500):
        chance = random.beta(9 * 0.85, 9 * 0.15, 100)
        old = random.binomial(10, chance) / 10
        new = random.binomial(10, np.maximum(chance - 0.05, 0)) / 10
        wrong += limit(laid(old, new), low=0.0, width=1.0) < old.mean() - old.mean() + 0.05
    assert wrong / 1500 < 0.065


def salted(root: Path, runs: list[bundles.Run], salt: bytes) -> Path:
    protocol = {"origin": "measured", "task_salt": salt.hex()}
    return bundles.write(root, {"a.jsonl": bundles.lines(runs)}, bundles.MANIFEST | {"protocol": protocol})


def test_a_tag_is_the_keyed_hash_of_the_task(tmp_path: Path) -> None:
    salt = bytes(range(32))
    expected = hmac.new(salt, b"task 1", hashlib.sha256).digest()[:9]
    assert tag(salt, "task 1") == expected
    runs = [bundles.run(i, task_id=f"task {i % 3}", condition="x_f") for i in range(12)]
    runs += [bundles.run(i, task_id=f"own {i}", cluster_id="family", condition="x_f") for i in range(12, 15)]
    summary = bundles.summary(salted(tmp_path / "b", runs, salt))
    found = task_table(summary, salt=salt, memory_observable=False)
    names = ["task 0", "task 1", "task 2", "family"]
    by_hand = {
        urlsafe_b64encode(hmac.new(salt, x.encode(), "sha256").digest()[:9]).decode(): x for x in names
    }
    assert {by_hand[row.tag]: row.sums[1] for row in found.rows} == {
        "task 0": 4,
        "task 1": 4,
        "task 2": 4,
        "family": 3,
    }
    assert found.salt == hashlib.sha256(salt).hexdigest()[:16]
    assert list(found.rows) == sorted(found.rows, key=lambda row: (row.tag, row.domain))


def test_the_table_holds_the_sums_of_the_raw_records(tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    runs = [
        bundles.run(
            i,
            task_id=f"t{i % 7}",
            domain=f"d{i % 7 % 2}",
            condition=["nominal", "x_f", "x_g"][i % 3],
            outcome="success" if random.random() < 0.6 else "failure",
            violations=int(random.integers(0, 4)),
        )
        for i in range(150)
    ]
    found = task_table(bundles.summary(bundles.of(tmp_path / "b", runs)), salt=None, memory_observable=False)
    assert (found.salt, found.tasks, found.domains) == (None, 7, ("d0", "d1"))
    expected = []
    for task in range(7):
        its = [run for run in runs if run["task_id"] == f"t{task}"]
        sums: dict[tuple[str, str | None], tuple[int, int]] = {}
        for condition in ("nominal", "x_f", "x_g"):
            cell = [run["outcome"] == "success" for run in its if run["condition"] == condition]
            sums[SUCCESS, condition] = (sum(cell), len(cell))
        sums["violations", None] = (sum(run["violations"] for run in its), len(its))
        expected.append((f"d{task % 2}", sums))
    told = []
    for row in found.rows:
        pairs = zip(row.sums[::2], row.sums[1::2], strict=True)
        sums = dict(zip([(c.metric, c.condition) for c in found.columns], pairs, strict=True))
        told.append((found.domains[row.domain], {key: sums[key] for key in expected[0][1]}))
    assert sorted(told, key=str) == sorted(expected, key=str)


def test_of_many_tasks_the_smallest_tags_are_kept_and_the_totals_are_over_all(tmp_path: Path) -> None:
    salt = b"s" * 32
    tables = []
    for name, start in (("a", 0), ("b", 100)):
        runs = [bundles.run(i, task_id=f"t{start + i}", condition="x_f") for i in range(1100)]
        bundle = salted(tmp_path / name, runs, salt)
        tables.append(task_table(bundles.summary(bundle), salt=salt, memory_observable=False))
    first, second = ({row.tag for row in found.rows} for found in tables)
    assert [(found.tasks, len(found.rows)) for found in tables] == [(1100, 1000)] * 2
    assert tables[0].columns[0].n == 1100
    tags = sorted(tag(salt, f"t{i}") for i in range(1100))
    assert first == {urlsafe_b64encode(value).decode() for value in tags[:1000]}
    assert len(first & second) > 800  # as of 1,000 shared tasks, were each drawn with 10 in 11


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
    assert overall.difference == pytest.approx(0.2)


def test_a_gain_is_shown_and_is_no_drift() -> None:
    found = drift(one(LOW), one(HIGH))
    assert found.result == "STABLE"
    assert {item.state for item in found.behaviour if item.metric == "r_op"} == {"BETTER"}
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


def test_a_row_takes_ten_tasks_a_side() -> None:
    few = side({("d", "x_f"): even(HIGH, tasks=9)})
    found = drift(few, one(LOW))
    assert (found.result, found.exit_code) == ("UNDERPOWERED", 4)
    assert found.behaviour[0].reason == "a row takes 10 tasks a side, and there are 9 on the old side"
    assert found.behaviour[0].difference is not None
    assert not found.behaviour[0].flagged
    assert drift(side({("d", "x_f"): even(HIGH, tasks=10)}), one(LOW)).behaviour[0].reason is None


def test_ten_tasks_that_always_succeed_are_not_stable_however_often_they_ran() -> None:
    often = side({("d", "x_f"): {str(i): (200, 200) for i in range(10)}})
    assert drift(often, often).result == "UNDERPOWERED"
    many = side({("d", "x_f"): {str(i): (1, 1) for i in range(200)}})
    assert drift(many, many).result == "STABLE"


def test_no_fault_runs_is_underpowered() -> None:
    empty = side({("d", "nominal"): even(HIGH)}, nominal=0)
    found = drift(empty, empty)
    assert (found.result, found.behaviour[0].reason) == ("UNDERPOWERED", "neither side measured it")


def test_a_loss_below_the_margin_is_not_flagged_and_one_of_the_margin_is() -> None:
    # Two thousand tasks: a difference of this size is significant, the margin decides.
    def rate(good: int) -> Snapshot:
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


@pytest.mark.parametrize(
    ("sizes", "rate", "lost", "draws", "least", "most"),
    [((10, 100), 0.95, 0.0, 80, 0.0, 0.02), ((20, 100), 0.85, 0.1, 40, 0.8, 1.0)],
    ids=["nothing changed", "10 points lost"],
)
def test_of_many_more_tasks_than_before_a_loss_is_flagged_and_nothing_is_not(  # noqa: PLR0917 - a table
    sizes: tuple[int, int], rate: float, lost: float, draws: int, least: float, most: float
) -> None:
    # Without the pooled error a third of the unchanged agents is flagged here.
    random, hits = np.random.default_rng(21), 0
    for _ in range(draws):
        sides = []
        for number, (tasks, points) in enumerate(zip(sizes, (0.0, lost), strict=True)):
            chance = random.beta(rate * 7 / 3, (1 - rate) * 7 / 3, (5, tasks)) * (1 - points / rate)
            y = random.binomial(5, chance).tolist()
            cells: Cells = {
                (f"d{domain}", "x_f"): {f"{number} {domain} {i}": (total, 5) for i, total in enumerate(row)}
                for domain, row in enumerate(y)
            }
            sides.append(side(cells, nominal=0))
        hits += drift(*sides).result == "DRIFTED"
    error = np.sqrt(np.array([least * (1 - least), most * (1 - most)]) / draws)
    assert least - 3 * error[0] <= hits / draws <= most + 3 * error[1]


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
    ti = {"ti": values(4000)}
    assert drift(one(HIGH), one(HIGH, judge="k")).result == "STABLE"
    assert drift(one(HIGH, ti), one(HIGH, ti, judge="k")).reasons[0] == "not comparable: judge j (f) and k"
    judged = one(HIGH, methodology="independent_judge")
    assert drift(judged, structs.replace(judged, judge=None)).result == "NOT_COMPARABLE"
    assert drift(one(HIGH), one(HIGH, cascade_definition=None)).result == "STABLE"
    cascade = side({("d", "cascade"): even(HIGH)})
    assert drift(cascade, structs.replace(cascade, cascade_definition=None)).result == "NOT_COMPARABLE"


def test_a_change_of_mix_is_not_drift() -> None:
    def mixed(easy: int, hard: int, rates: tuple[int, int] = (9, 5)) -> Snapshot:
        return side(
            {
                ("d", "x_easy"): even(Fraction(rates[0], 10), tasks=easy, names=f"e{easy}"),
                ("d", "x_hard"): even(Fraction(rates[1], 10), tasks=hard, names=f"h{hard}"),
            }
        )

    old, new = mixed(90, 30), mixed(40, 80)
    found = drift(old, new)
    assert found.result == "STABLE" or not any(row.flagged for row in found.behaviour)
    assert [row.difference for row in found.behaviour if row.difference is not None] == pytest.approx(
        [0] * 5, abs=1e-9
    )
    assert any("41.7 % of the fault runs moved between conditions" in reason for reason in found.reasons)
    # The other way round: an easier mix does not hide a loss.
    assert drift(new, mixed(110, 10, (8, 4))).result == "DRIFTED"


def test_a_task_that_ran_under_other_conditions_is_compared_on_those_that_both_sides_ran() -> None:
    def of(hard: int) -> Snapshot:
        tasks = {str(i): (9 + i % 2, 10) for i in range(40)}
        return side(
            {
                ("d", "x_easy"): tasks,
                ("d", "x_hard"): {str(i): (2, 10) for i in range(hard)},
            }
        )

    found = drift(of(40), of(20))
    assert found.behaviour[0].difference == pytest.approx(0, abs=0.03)
    assert not any(row.flagged for row in found.behaviour)


def test_rows_that_do_not_know_conditions_are_not_tested_under_another_mix() -> None:
    def mixed(easy: int, hard: int, frr: int) -> Snapshot:
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
    assert f"frr was not tested: {row_.reason}" in other.reasons


def test_what_one_side_alone_measured_is_shown_and_named() -> None:
    with_it = one(HIGH, {"frr": values(850)})
    without = structs.replace(one(HIGH), criteria=with_it.criteria)
    for old, new, words in ((with_it, without, "old"), (without, with_it, "new")):
        found = drift(old, new)
        row_ = next(item for item in found.behaviour if item.criterion == "frr")
        assert (row_.state, row_.reason) == ("UNDERPOWERED", f"only the {words} side measured it")
        assert f"frr was not tested: only the {words} side measured it" in found.reasons
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
    old = one(HIGH, {"frr": values(850), "irs": values(500)})
    criteria = tuple(structs.replace(item, judged=item.id != "frr") for item in old.criteria)
    new = structs.replace(old, criteria=criteria, memory_observable=None)
    behaviour = drift(old, new).behaviour
    reasons = {item.criterion: item.reason for item in behaviour}
    (frr,) = (item for item in behaviour if item.metric == "frr")
    assert (frr.old, frr.new, frr.difference, frr.tasks.new > 0) == (None, None, None, True)
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
    assert reasons["frr_2025"] == "passports carry no sums of it"


def test_the_old_margin_decides() -> None:
    lenient = tuple(structs.replace(item, margin=Fraction(1, 2)) for item in one(HIGH).criteria)
    assert drift(one(HIGH), one(LOW, criteria=lenient)).result == "DRIFTED"


def test_the_rows_are_the_other_criteria_domains_and_conditions() -> None:
    cells = {(d, c): even(HIGH, names=d) for d in "de" for c in ("x_f", "x_g")}
    old = side(cells, {"pei": values(700), "ti": values(4000)})
    names = [item.name for item in drift(old, old).behaviour]
    over = ["r_op in d", "r_op in e", "r_op under x_f", "r_op under x_g"]
    assert names == ["r_op", "pei", "ti", "c_nom", *over]


def drawn(random: np.random.Generator, loss: float) -> Snapshot:
    cells: Cells = {}
    for domain in "de":
        chance = np.clip(random.beta(8, 2, 40) - loss, 0, 1)
        tasks = {f"{domain}{i}": (int(random.binomial(10, p)), 10) for i, p in enumerate(chance)}
        cells[domain, "x_f"] = tasks
    return side(cells, {"frr": values(800 - int(1000 * loss))})


def raw_p(row: Row) -> float:
    loss = row.difference or 0.0
    if not row.standard_error or row.degrees_of_freedom is None:
        return 2.0 ** -min(row.tasks.old, row.tasks.new) if loss > 0 else 1.0
    return float(stats.t.sf(loss / row.standard_error, row.degrees_of_freedom))


def test_flags_are_those_of_the_rule_written_out() -> None:
    random, flags = np.random.default_rng(9), 0
    for _ in range(30):
        rows = [row for row in drift(drawn(random, 0.0), drawn(random, 0.06)).behaviour if row.is_tested]
        raw = [raw_p(row) for row in rows]
        reached = [row.difference >= row.margin - 1e-9 for row in rows]  # type: ignore[operator]
        expected = [
            a and p <= 0.015 for a, p in zip(reached, stats.false_discovery_control(raw), strict=True)
        ]
        assert [row.flagged for row in rows] == expected
        assert [row.probability for row in rows] == pytest.approx(list(stats.false_discovery_control(raw)))
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
    other = [structs.replace(item, identity=str(t)) for t, item in enumerate(line)]
    assert drift(other[-2], other[-1], before=other[:-2]).result == "DRIFTED"  # an identity restarts nothing


def test_a_trend_takes_three_to_eight_passports_of_other_evidence_that_can_be_compared() -> None:
    line = [one(HIGH, evidence=str(t)) for t in range(10)]
    found = trend(line)
    assert found is not None
    assert len(found.values) == 8
    assert trend(line[:2]) is None
    assert trend([line[0], line[1], structs.replace(line[1], version="2")]) is None
    foreign = structs.replace(line[1], methodology="other")
    assert trend([line[0], foreign, line[2]]) is None
    few = side({("d", "x_f"): even(HIGH, tasks=9)})
    assert trend([few, line[0], line[1]]) is None


def test_another_salt_shares_no_task() -> None:
    for salt in ("t", None):
        found = drift(one(HIGH), one(HIGH, salt=salt))
        assert any("share no task salt, so no tasks are paired" in reason for reason in found.reasons)
        assert found.behaviour[0].standard_error
    same = drift(one(HIGH), one(HIGH))
    assert "160 tasks are on both sides and are compared as pairs" in same.reasons
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
    bare = one(HIGH, components=(), origin="simulated", evidence="same")
    reasons = drift(bare, bare).reasons
    assert "both sides rest on the same evidence, so that nothing new was observed" in reasons
    assert "both sides are specimens from simulated evidence" in reasons
