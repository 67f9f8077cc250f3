"""The judge's error: what labels show of it, limits freed of it, and the rows that they leave without one."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec import structs
from scipy import integrate, stats

import certkit
from certkit.assessment import bounds
from certkit.assessment.assessment import Status
from certkit.assessment.bounds import Law
from certkit.assessment.profile import Criterion
from certkit.assessment.raters import LabelledSums, corrected, judge_report, judged_laws
from certkit.summary.ratings import LabelledItem, Ratings
from tests.study.judged import uneven
from tests.support import build, bundles
from tests.support.labelled import ONE, ratings, told

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from certkit.assessment.assessment import Bounded
    from certkit.assessment.evaluation import Evaluation
    from tests.support.bundles import Run

JUDGED: dict[str, Any] = {"methodology": "independent_judge"}


def judged(records: list[Run], truth: Mapping[str, bool] | None, **more: Any) -> Evaluation:
    """Judge records of which some have labels; None: without a rating."""
    stated = {**JUDGED, **more}
    labels = stated.pop("ratings", None) or (None if truth is None else ratings(records, truth))
    options: dict[str, Any] = {} if labels is None else {"ratings": labels}
    return build.judged(build.summary(records, **options), **stated)


def bounded(evaluation: Evaluation, name: str, tier: int = 1) -> Bounded:
    found = build.row(evaluation, name, tier).bounded
    assert found is not None
    return found


# --- the law of the true rate ------------------------------------------------------------------------

CASES = [
    ((90.0, 10.0), (85, 3, 5, 7)),
    ((400.0, 20.0), (30, 0, 0, 2)),
    ((12.0, 9.0), (3, 5, 4, 1)),
    ((50.0, 50.0), (0, 0, 0, 0)),
]


def apart(*counts: int) -> list[LabelledSums]:
    """Labels of which each lies on a task of its own, and none on a task of the judge's rate."""
    kinds = [kind for kind, n in enumerate(counts) for _ in range(n)]
    return [LabelledSums(tuple(float(kind == place) for place in range(4)), 0.0, 0.0) for kind in kinds]  # type: ignore[arg-type]


@pytest.mark.parametrize(("seen", "labels"), CASES)
def test_moments_and_limits_are_those_of_draws(
    seen: tuple[float, float], labels: tuple[int, int, int, int]
) -> None:
    rng, size = np.random.default_rng(7), 400_000
    right, wrong, missed, rightly = labels
    q = rng.beta(*seen, size)
    p = rng.beta(1 + right, 1 + wrong, size)
    f = rng.beta(1 + missed, 1 + rightly, size)
    drawn = q * p + (1 - q) * f
    mean, variance = stats.beta(*seen).stats("mv")
    law = corrected(Law(float(mean), float(variance)), apart(*labels), 0.0)
    assert law.mean == pytest.approx(drawn.mean(), abs=5 * drawn.std() / size**0.5)
    assert law.variance == pytest.approx(drawn.var(), rel=0.015)
    for probability in (0.01, 0.05):
        below = (drawn < law.quantile(probability)).mean()
        # A Beta by moments is an approximation: with 32 labels its 1 % tail holds 1.6 %.
        assert 0.6 * probability < below < 1.65 * probability


def test_the_formula_is_that_of_a_worked_example() -> None:
    # Beta(1, 1) everywhere: θ = qP + (1 − q)F; E θ² = 2·E q²·E P² + 2·E q(1 − q)·E P·E F = 2/9 + 1/12 = 11/36
    law = corrected(Law(0.5, 1 / 12), [], 0.0)
    assert law.mean == 0.5
    assert law.variance == pytest.approx(11 / 36 - 1 / 4, rel=1e-12)


def test_a_judge_known_to_be_perfect_changes_nothing() -> None:
    sure = [
        LabelledSums((1.0, 0.0, 0.0, 0.0), 0.0, 0.0, 10**6),
        LabelledSums((0.0, 0.0, 0.0, 1.0), 0.0, 0.0, 10**6),
    ]
    law = corrected(Law(0.9, 0.001), sure, 0.0)
    assert law.mean == pytest.approx(0.9, abs=1e-5)
    assert law.variance == pytest.approx(0.001, rel=1e-5)


def test_more_labels_of_the_same_judge_raise_the_limit() -> None:
    few, many = apart(80, 4, 4, 12), apart(320, 16, 16, 48)
    limits = [corrected(Law(0.84, 0.0004), labels, 0.0).quantile(0.05) for labels in (few, many)]
    assert limits[0] < limits[1] < 0.84


def test_tasks_that_always_fail_pass_no_more_often_under_a_judge() -> None:
    """A fifth of the tasks always fails, and the judge passes half of the failures: 5 % are promised."""
    for cell in uneven(np.random.default_rng(27), 400, ["hopeless 20 %"]):
        assert cell.passed < 0.056 + 3 * (0.05 * 0.95 / 400) ** 0.5, cell


# --- limits of rows ----------------------------------------------------------------------------------

TWO = build.runs(200, 190, domain="bank", tasks=200) + build.runs(200, 180, domain="shop", tasks=200)
"""Two hundred tasks of one run in each of two domains."""
BANK, SHOP = (70, 2, 1, 9), (60, 6, 2, 12)
LABELS = told(TWO, BANK, "bank") | told(TWO, SHOP, "shop")


def drawn_limit(passed: int, n: int, labels: tuple[int, int, int, int]) -> float:
    """The 5 % quantile of qP + (1 − q)F by draws."""
    right, wrong, missed, rightly = labels
    rng = np.random.default_rng(3)
    pairs = (passed, n - passed), (right, wrong), (missed, rightly)
    q, p, f = (rng.beta(1 + a, 1 + b, 400_000) for a, b in pairs)
    return float(np.quantile(q * p + (1 - q) * f, 0.05))


def test_rows_of_outcomes_that_a_judge_gave_use_the_corrected_limit() -> None:
    found = judged(TWO, LABELS)
    assert bounded(found, "r_op").bound == pytest.approx(drawn_limit(370, 400, (130, 8, 3, 21)), abs=0.004)
    # Every domain on its own labels.
    shop = drawn_limit(180, 200, SHOP)
    assert shop < drawn_limit(190, 200, BANK)
    assert bounded(found, "domain_min").bound == pytest.approx(shop, abs=0.006)


def test_a_program_that_gave_the_outcomes_leaves_the_limits_as_they_are() -> None:
    plain = judged(TWO, None, methodology="trajectory")
    people = ratings(TWO, LABELS, rated=False)
    again = judged(TWO, None, methodology="trajectory", ratings=people)
    assert again.assessment.criteria == plain.assessment.criteria
    assert bounded(plain, "r_op").bound == pytest.approx(float(stats.beta(371, 31).ppf(0.05)), abs=1e-9)


def test_ratings_by_a_judge_show_that_a_model_gave_the_outcomes() -> None:
    found = judged(TWO, {}, methodology="trajectory")
    assert bounded(found, "r_op").status is Status.INSUFFICIENT


def test_labels_of_other_conditions_do_not_enter_a_series() -> None:
    nominal = build.runs(200, 190, "nominal", domain="bank", tasks=200, name="n")
    truth = {run["run_id"]: run["outcome"] == "success" for run in nominal}
    found = judged(TWO + nominal, truth)
    assert bounded(found, "r_op").bound == pytest.approx(drawn_limit(370, 400, (0, 0, 0, 0)), abs=0.02)


def test_a_graded_row_loses_the_share_that_was_wrongly_passed() -> None:
    graded = {"recovered": True, "recovery_steps": 1, "recovery_approach": "correct", "fault_step": 1}
    records = [
        run | (graded if run["outcome"] == "success" else {"recovered": False}) | {"steps_actual": 3}
        for run in build.runs(100, 90, tasks=100)
    ]
    found = bounded(judged(records, told(records, (80, 5, 5, 5))), "frr")
    plain = stats.beta(91, 11).ppf(0.025)
    share = plain - (found.bound or 0)
    # The share of wrongly passed labels, 5 of 95, at the other half of the error.
    below, _ = integrate.quad(lambda x: x**5 * (1 - x) ** 90, 0, share)
    whole, _ = integrate.quad(lambda x: x**5 * (1 - x) ** 90, 0, 1)
    assert below / whole == pytest.approx(0.975, abs=1e-6)


@pytest.mark.parametrize(("threshold", "passed"), [(Fraction(2, 5), 0), (Fraction(1, 2), 1)])
def test_below_one_half_no_prior_task_of_the_judges_rate_passed(threshold: Fraction, passed: int) -> None:
    """90 of 100 tasks pass; 80 of 85 labels on passed ones are right, and 5 of 10 on failed ones."""
    graded = {"recovered": True, "recovery_steps": 1, "recovery_approach": "correct", "fault_step": 1}
    records = [
        run | (graded if run["outcome"] == "success" else {"recovered": False}) | {"steps_actual": 3}
        for run in build.runs(100, 90, tasks=100)
    ]
    summary = judged(records, told(records, (80, 5, 5, 5))).summary

    def mean_of(series: str) -> float:
        tasks = bounds.tasks(summary, series)
        assert tasks is not None
        return judged_laws(summary, series, None, tasks, threshold)[0].rate.mean

    rate = (90 + passed) / (101 + passed)
    assert mean_of("frr") == pytest.approx(rate, abs=1e-12)
    assert mean_of("r_op") == pytest.approx(rate * 81 / 87 + (1 - rate) * 6 / 12, abs=1e-12)


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        (None, "labels-none"),
        (Ratings(state="no-judge", rated=True), "labels-no-judge"),
        (Ratings(state="unlabelled", rated=True), "labels-unlabelled"),
    ],
)
def test_without_labels_no_row_of_outcomes_has_a_limit(labels: Ratings | None, code: str) -> None:
    found = judged(build.GOOD, None, ratings=labels)
    without = {
        row.metric: row.bounded.reason.code
        for row in found.assessment.criteria
        if row.bounded is not None and row.bounded.reason is not None and row.bounded.reason.code == code
    }
    # Planning counts as an outcome, since a failure that stops short is worth nothing.
    assert without.keys() == {
        "r_op",
        "pei",
        "irs",
        "frr",
        "domain_min",
        "adversarial_resistance",
        "cascade_penalty",
    }
    assert bounded(found, "ti").bound is not None
    assert bounded(found, "r_op").k == 17


def test_what_labels_do_not_correct_has_no_limit_under_a_judge() -> None:
    truth = {run["run_id"]: True for run in build.GOOD[:100]}
    found = judged(build.GOOD, truth)
    refused = {
        row.metric
        for row in found.assessment.criteria
        if row.bounded and row.bounded.reason and row.bounded.reason.code == "labels-do-not-correct"
    }
    assert refused == {"cascade_penalty", "irs"}
    profile = build.profile()
    gap = Criterion(id="gap", metric="gap", operator="<", tiers={"1": 30})
    table = structs.replace(profile, criteria=(*profile.criteria, gap))
    evidence = build.summary(build.GOOD, ratings=ratings(build.GOOD, truth))
    assert bounded(build.judged(evidence, table, **JUDGED), "gap").status is Status.INSUFFICIENT


# --- what is reported of the judge -------------------------------------------------------------------


def report(records: list[Run], truth: Mapping[str, bool] | None, **more: Any) -> Any:
    found = judged(records, truth, **more)
    return judge_report(found.summary, found.facts)


def test_counts_and_shares_are_those_of_the_labels() -> None:
    found = report(ONE, told(ONE, (60, 4, 2, 12)))
    assert (found.state, found.judge, found.referenced, found.counts) == ("labelled", "j", 78, (60, 4, 2, 12))
    assert (found.sensitivity.successes, found.sensitivity.n) == (60, 62)
    assert (found.specificity.successes, found.specificity.n) == (12, 16)
    law = stats.beta(61, 3)
    assert (found.sensitivity.low, found.sensitivity.high) == pytest.approx(law.interval(0.95), rel=1e-9)
    observed, chance = Fraction(72, 78), Fraction(64 * 62 + 14 * 16, 78 * 78)
    assert found.kappa == pytest.approx(float((observed - chance) / (1 - chance)))


def test_where_no_failure_is_labelled_nothing_is_known_of_failures() -> None:
    found = report(ONE, told(ONE, (60, 0, 0, 0)))
    assert (found.specificity.n, found.specificity.value, found.kappa) == (0, None, None)


def test_the_correction_has_the_limits_of_the_row() -> None:
    found = judged(ONE, told(ONE, (60, 4, 2, 12)))
    freed = judge_report(found.summary, found.facts)
    assert freed.raw == 0.8
    assert (freed.low or 1) < (freed.corrected or 0) < (freed.high or 0)
    profile = build.profile()
    tiers = {"1": structs.replace(profile.tiers["1"], confidence=0.975)} | {
        name: profile.tiers[name] for name in ("2", "3")
    }
    table = structs.replace(profile, tiers=tiers)
    row = build.row(build.judged(found.summary, table, **JUDGED), "r_op").bounded
    assert row is not None
    assert row.bound == pytest.approx(freed.low, abs=1e-9)


@pytest.mark.parametrize("more", ["passed", "failed"])
def test_the_worse_weighting_of_tasks_counts(more: str) -> None:
    """Half of 100 tasks ran nine times: those that passed, or those that failed."""
    sizes = [9 if (task < 80) == (more == "passed") else 1 for task in range(100)]
    records = [
        bundles.run(
            f"{task}-{i}",
            task_id=f"d/{task}",
            condition="stochastic",
            outcome="success" if task < 80 else "failure",
        )
        for task, n in enumerate(sizes)
        for i in range(n)
    ]
    first = {run["task_id"]: run["run_id"] for run in reversed(records)}
    truth = {name: int(task.partition("/")[2]) < 78 for task, name in first.items()}
    found = report(records, truth)
    by_task, by_runs = 0.8, sum(sizes[:80]) / sum(sizes)
    assert found.raw == pytest.approx(by_runs)
    assert found.corrected < min(by_task, by_runs) + 0.03


def test_runs_inform_as_their_tasks_do() -> None:
    """20 tasks of ten runs say no more than 20 runs."""
    records = build.runs(200, 160, tasks=200)
    apart_ = report(records, told(records, (160, 0, 0, 40)))
    joined = [run | {"task_id": f"a/{i // 10}"} for i, run in enumerate(records)]
    together = report(joined, told(joined, (160, 0, 0, 40)))
    for found, law in ((apart_, stats.beta(161, 41)), (together, stats.beta(17, 5))):
        # The labels weigh as no more than there are tasks, so that a judge without fault costs a little.
        assert found.low < law.ppf(0.025)
        assert found.low == pytest.approx(law.ppf(0.025), abs=0.07)


def test_labels_weigh_as_no_more_than_the_tasks_that_they_lie_on() -> None:
    """Twice as many labels on the same tasks tell no more; on as many more tasks they do."""
    single = build.runs(400, 320, tasks=400)
    pairs = [run | {"task_id": f"a/{i // 2}"} for i, run in enumerate(single)]
    once = {f"a-stochastic-{2 * i}": i < 60 for i in range(64)} | {
        f"a-stochastic-{320 + 2 * i}": i < 4 for i in range(16)
    }
    twice = once | {f"a-stochastic-{int(name.rpartition('-')[2]) + 1}": truly for name, truly in once.items()}
    low = {name: report(pairs, truth).low for name, truth in (("once", once), ("twice", twice))}
    assert low["once"] == pytest.approx(low["twice"], abs=0.01)
    assert report(single, twice).low > report(single, once).low + 0.005


# --- labels in a bundle ------------------------------------------------------------------------------


def labelled_bundle(root: Path, *, honest: bool) -> Evaluation:
    """Twenty tasks of ten runs that are right and twenty of one run that are wrong; the judge passes all."""
    names = [f"right-{task}" for task in range(20) for _ in range(10)] + [
        f"wrong-{task}" for task in range(20)
    ]
    records = [bundles.run(number, task_id=name, condition="stochastic") for number, name in enumerate(names)]
    judge = {"name": "j", "independent": True}
    about = {"methodology": "independent_judge", "judge": judge, "tasks_independent": True}
    lines = [
        {
            "item": run["run_id"],
            "rater": rater,
            "score": (rater == "j" and honest) or name.startswith("right"),
            "reference": name.startswith("right"),
        }
        for run, name in zip(records, names, strict=True)
        for rater in ("j", "ann")
    ]
    manifest = {**bundles.MANIFEST, "protocol": {"origin": "measured", **about}}
    bundles.write(root, {"a.jsonl": bundles.lines(records)}, manifest)
    (root / "calibration").mkdir()
    (root / "calibration" / "a.jsonl").write_bytes(bundles.lines(lines))
    return certkit.assess(root, profile="hb-eval-2026-bounded")


def test_labels_of_a_bundle_count_by_task_and_by_what_its_records_hold(tmp_path: Path) -> None:
    honest = labelled_bundle(tmp_path / "honest", honest=True)
    copied = labelled_bundle(tmp_path / "copied", honest=False)
    # Ten labels of a right task weigh as the one of a wrong task: half of what the judge passed is right.
    assert (bounded(honest, "r_op").bound or 1) < 0.5
    assert copied.assessment.criteria == honest.assessment.criteria
    reports = [judge_report(found.summary, found.facts) for found in (honest, copied)]
    assert [item.contradicted for item in reports] == [0, 20]
    assert ["calibration-chosen" in build.codes(found) for found in (honest, copied)] == [False, True]
    told_of = honest.to_dict()["fragility"]["posterior"]["1"]
    assert told_of["holds"] is False


def test_items_that_are_no_runs_of_the_bundle_correct_nothing() -> None:
    truth = told(ONE, (60, 4, 2, 12))
    inside = ratings(ONE, truth)
    foreign = LabelledItem(run=None, passed=True, truly=True, contradicted=False)
    outside = structs.replace(
        inside, referenced=inside.referenced + 900, items=(*inside.items, *[foreign] * 900)
    )
    first, second = (report(ONE, None, ratings=labels) for labels in (inside, outside))
    assert (first.corrected, first.low, first.high) == (second.corrected, second.low, second.high)
