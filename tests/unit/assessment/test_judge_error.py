"""The judge's error: confusion, sensitivity and specificity, the corrected rate, findings."""

from __future__ import annotations

from fractions import Fraction
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from msgspec import structs
from scipy import stats

import certkit
from certkit.assessment.bounded import Judged
from certkit.assessment.criteria import Status
from certkit.assessment.findings.findings import SEVERITY
from certkit.assessment.kinds import TaskMean
from certkit.assessment.rater_error import JudgeReport, judge_findings, judge_report
from certkit.assessment.rater_error.corrected import Labels, share
from certkit.assessment.result import AssessmentDocument
from certkit.assessment.words import of_judge
from certkit.bundle.labels import ABSENT, Calibration, Rater, millionths
from certkit.ground.document import to_builtins
from tests.support import build, bundles
from tests.support.schemas import schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from certkit.assessment.metrics.series import View
    from certkit.assessment.result import Assessment

Row = tuple[str, str, float]


def calibrated(
    rows: Sequence[Row],
    reference: Mapping[str, float] | None = None,
    *,
    judges: Sequence[str] = ("j",),
) -> Calibration:
    """A calibration from (item, rater, score) rows."""
    items, raters = sorted({row[0] for row in rows}), sorted({row[1] for row in rows})
    known = reference or {}
    place = {name: number for number, name in enumerate(items)}
    table = sorted((place[item], raters.index(rater), millionths(score)) for item, rater, score in rows)
    item, rater, score = (np.array(column, np.int64) for column in zip(*table, strict=True))
    return Calibration(
        items=tuple(items),
        domains=(None,) * len(items),
        reference=np.array(
            [millionths(known[name]) if name in known else ABSENT for name in items], np.int64
        ),
        raters=tuple(Rater(name=name, kind="judge" if name in judges else "human") for name in raters),
        item=item,
        rater=rater,
        score=score,
        drawn=True,
        tasks=tuple(range(len(items))),
    )


def counted(tp: int, fn: int, fp: int, tn: int) -> Calibration:
    """A judge j with these counts against the reference."""
    rows: list[Row] = []
    reference = {}
    for number, (seen, true) in enumerate([(1, 1)] * tp + [(0, 1)] * fn + [(1, 0)] * fp + [(0, 0)] * tn):
        rows.append((f"{number:05}", "j", seen))
        reference[f"{number:05}"] = float(true)
    return calibrated(rows, reference)


def seen(calibration: Calibration | None, success: int = 0, runs: int = 0, **facts: Any) -> View:
    """A bundle with so many successes of runs under faults, one run a task, and its calibration."""
    tally = [build.cell("a", "stochastic", build.outcomes(runs, success))] if runs else []
    rows = build.clusters((0, task, task, {"runs": 1, "success": task < success}) for task in range(runs))
    summary = structs.replace(build.summary(tally, rows=rows), calibration=calibration)
    facts = {"judge": {"name": "j", "independent": True}, "methodology": "independent_judge"} | facts
    return Judged(summary, build.facts(**facts).manifest, build.profile()).view


def report(calibration: Calibration | None, success: int = 0, runs: int = 0, **facts: Any) -> JudgeReport:
    return judge_report(seen(calibration, success, runs, **facts))


def by_people(calibration: Calibration) -> Calibration:
    """The same ratings, none of them by a model."""
    raters = tuple(structs.replace(rater, kind="human") for rater in calibration.raters)
    return structs.replace(calibration, raters=raters)


def findings(view: View, attained: int = 0) -> dict[str, str]:
    found = list(judge_findings(judge_report(view), view, attained))
    assert all(item.severity is SEVERITY[item.code] for item in found if item.code != "judge-correction")
    return {item.code: item.message for item in found}


def test_posteriors_are_those_of_scipy() -> None:
    for successes, n in ((0, 7), (7, 7), (95, 100), (1, 3)):
        found, right = share(successes, n), stats.beta(1 + successes, 1 + n - successes)
        assert found.interval is not None
        assert (found.interval.low, found.interval.high) == pytest.approx(right.interval(0.95), rel=1e-10)
    nothing = share(0, 0)
    assert (nothing.value, nothing.interval) == (None, None)


def test_counts_are_those_of_the_success_reading() -> None:
    rows = [("a", "j", 0.7), ("b", "j", 0.699999), ("c", "j", 1.0), ("d", "j", 0.2), ("e", "j", 0.9)]
    reference = {"a": 0.8, "b": 0.7, "c": 0.0, "d": 0.69}
    found = report(calibrated(rows, reference))
    assert found.state == "calibrated"
    assert (found.items, found.referenced, found.ratings) == (5, 4, 5)
    assert found.confusion == Labels(1, 1, 1, 1)


def test_pairs_and_the_icc_are_those_of_the_raters() -> None:
    rows = [
        (item, rater, float(score))
        for rater, scores in (("ann", "1101"), ("bob", "1100"), ("j", "1011"))
        for item, score in zip("abcd", scores, strict=True)
    ]
    found = report(calibrated(rows))
    assert [(pair.a, pair.b) for pair in found.pairs] == [("ann", "bob"), ("ann", "j"), ("bob", "j")]
    assert found.pairs[0].success is not None
    assert found.pairs[0].success.value == 0.5  # po 3/4; pe 3/4·2/4 + 1/4·2/4 = 1/2
    assert found.icc is not None
    assert (found.icc.raters, found.icc.items) == (3, 4)
    missing = report(calibrated(rows[:-1]))
    assert missing.icc is not None
    assert missing.icc.items == 3


@pytest.mark.parametrize(
    ("calibration", "judge", "reason"),
    [
        (None, "j", "no ratings"),
        (calibrated([("a", "ann", 1.0)]), "j", "j, the judge of the runs, is not among"),
        (calibrated([("a", "k", 1.0)], judges=("k",)), "j", "the calibration is of k"),
        (calibrated([("a", "k", 1.0), ("a", "l", 1.0)], judges=("k", "l")), None, "which of 2 judges"),
        (calibrated([("a", "ann", 1.0)]), None, "no rater of the calibration is a judge"),
        (calibrated([("a", "j", 1.0)]), "j", "no item that j scored has a reference"),
        (calibrated([("a", "j", 1.0), ("b", "ann", 1.0)], {"b": 1.0}), "j", "no item that j scored"),
    ],
)
def test_an_uncalibrated_judge_is_named_and_warned_of(
    calibration: Calibration | None, judge: str | None, reason: str
) -> None:
    named = {"name": judge, "independent": True} if judge else None
    view = seen(calibration, methodology="other", judge=named)
    found = judge_report(view)
    assert found.state == "uncalibrated"
    assert reason in (found.reason or "")
    assert found.confusion is None
    rated = calibration is not None and any(rater.kind == "judge" for rater in calibration.raters)
    assert set(findings(view)) == ({"judge-uncalibrated"} if judge or rated else set())


def test_a_judge_that_is_compared_with_humans_only_is_not_calibrated() -> None:
    view = seen(calibrated([(f"{i}", rater, float(i % 2)) for i in range(9) for rater in ("j", "ann")]))
    assert judge_report(view).state == "compared"
    assert set(findings(view)) == {"judge-uncalibrated"}


def test_one_judge_needs_no_name_in_the_manifest() -> None:
    found = report(counted(9, 1, 1, 9), judge=None)
    assert (found.state, found.judge) == ("calibrated", "j")


def test_a_tier_that_only_the_judges_error_reaches_is_found() -> None:
    # of the runs that it passed 24 in 34 are successes, of those that it failed 2 in 32:
    # .82 · 481/682 + .18 · 21/322 = .590 by the means of Beta(481, 201) and Beta(21, 301)
    view = seen(counted(480, 20, 200, 300), 820, 1000)
    found = judge_report(view)
    assert found.correction is not None
    assert found.correction.value == pytest.approx(0.590, abs=0.001)
    message = findings(view)["judge-correction"]
    assert "r_op is 59.0% (95 % interval" in message
    assert "not 82.0%: at or below the threshold of Tier 1, 2" in message


@pytest.mark.parametrize(
    ("labels", "success", "attained", "severity"),
    [
        ((480, 20, 200, 300), 820, 2, "serious"),
        ((480, 20, 200, 300), 820, 1, "warning"),  # the interval reaches above .60
        ((76, 1, 1, 22), 805, 2, "warning"),  # a judge that errs little, just above .80
        ((97, 0, 0, 3), 970, 3, None),
    ],
)
@pytest.mark.parametrize("methodology", ["trajectory", "independent_judge"])
def test_a_tier_that_labels_show_to_be_missed_is_contested_whatever_the_methodology_says(
    labels: tuple[int, int, int, int], success: int, attained: int, severity: str | None, methodology: str
) -> None:
    view = seen(counted(*labels), success, 1000, methodology=methodology)
    told = judge_findings(judge_report(view), view, attained)
    assert [item.severity for item in told] == ([] if severity is None else [severity])


def test_where_the_judge_does_not_decide_success_nothing_is_corrected() -> None:
    labels = by_people(counted(480, 20, 200, 300))
    view = seen(labels, 820, 1000, methodology="trajectory", judge=None)
    assert judge_report(view).correction is None
    assert findings(view) == {}


def test_a_correction_that_changes_no_tier_is_no_finding() -> None:
    assert findings(seen(counted(700, 10, 10, 300), 700, 1000)) == {}


def test_labels_of_chosen_items_are_a_serious_finding_where_the_judge_gave_the_outcomes() -> None:
    chosen = structs.replace(counted(90, 2, 2, 6), drawn=False)
    assert list(findings(seen(chosen))) == ["calibration-chosen"]
    assert SEVERITY["calibration-chosen"] == "serious"
    assert findings(seen(by_people(chosen), methodology="trajectory", judge=None)) == {}


@pytest.mark.parametrize(
    ("methodology", "named", "calibration", "bounded"),
    [
        ("independent_judge", "j", None, False),
        ("independent_judge", None, None, False),
        ("other", "j", None, False),
        ("other", None, None, True),
        ("trajectory", "j", None, True),
        ("independent_judge", "j", counted(90, 2, 2, 6), True),
        ("independent_judge", "j", calibrated([("a", "j", 1.0)]), False),
        ("independent_judge", "k", counted(90, 2, 2, 6), False),
    ],
)
def test_outcomes_of_a_model_are_bounded_only_where_a_person_labelled_some(
    methodology: str,
    named: str | None,
    calibration: Calibration | None,
    bounded: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    summary = structs.replace(build.strong(), calibration=calibration)
    judge_named = {"name": named, "independent": True} if named else None
    manifest = build.facts(methodology=methodology, judge=judge_named).manifest
    rows = {(row.id, row.tier): row.bounded for row in Judged(summary, manifest, build.profile()).rows}
    found, untouched = rows["r_op", 1], rows["ti", 1]
    assert found is not None
    assert untouched is not None
    assert ("unknown: " in (found.reason or "")) is not bounded
    assert "unknown: " not in (untouched.reason or "")
    if not bounded:
        assert (found.status, found.bound) == (Status.INSUFFICIENT, None)


@pytest.mark.parametrize("metric", ["pei", "pei_fault"])
def test_efficiency_counts_as_an_outcome_since_short_failures_are_worth_nothing(metric: str) -> None:
    profile = build.profile()
    criteria = tuple(
        row.model_copy(update={"metric": metric}) if row.id == "pei" else row for row in profile.criteria
    )
    manifest = build.facts(methodology="independent_judge").manifest
    rows = Judged(build.strong(), manifest, profile.model_copy(update={"criteria": criteria})).rows
    told = [row.bounded.reason or "" for row in rows if row.bounded and row.metric.id == metric]
    assert len(told) == 3
    assert all("a model gave the outcomes" in why for why in told)


def test_what_labels_do_not_correct_has_no_bound_under_a_judge() -> None:
    labels, told = counted(90, 2, 2, 6), {}
    for methodology, rated in (("independent_judge", labels), ("trajectory", by_people(labels))):
        summary = structs.replace(build.strong(), calibration=rated)
        rows = Judged(summary, build.facts(methodology=methodology).manifest, build.profile()).rows
        told[methodology] = {row.id: (row.bounded.reason or "") for row in rows if row.bounded}
    refused = {name for name, why in told["independent_judge"].items() if "labels do not correct" in why}
    assert refused == {"cascade_penalty", "irs"}
    assert not any("labels do not correct" in why for why in told["trajectory"].values())


def test_tasks_that_are_smaller_than_any_labelled_win_nothing() -> None:
    """25 runs where a pilot passed, else 1, at .80; a judge that passes all, 100 labels: 5 % may pass."""
    rng, met = np.random.default_rng(4), 0
    facts = build.facts(methodology="independent_judge", tasks_independent=True).manifest
    for _ in range(40):
        chance = rng.beta(0.8 * 3 / 7, 0.2 * 3 / 7, 200)
        pilot = rng.random(200) < chance
        n = np.where(pilot, 25, 1)
        task = np.repeat(np.arange(200), n)
        true = rng.random(len(task)) < chance[task]
        true[np.cumsum(n) - n] = pilot
        drawn = rng.permutation(len(task))[:100]
        won = int(true[drawn].sum())
        places = np.concatenate([task[drawn][true[drawn]], task[drawn][~true[drawn]]])
        labels = structs.replace(counted(won, 0, 100 - won, 0), tasks=tuple(places.tolist()))
        rows = build.clusters((0, at, at, {"runs": k, "success": k}) for at, k in enumerate(n.tolist()))
        tally = build.outcomes(len(task), len(task))
        summary = build.summary([build.cell("a", "stochastic", tally)], rows=rows)
        judged = Judged(structs.replace(summary, calibration=labels), facts, build.profile())
        met += TaskMean("r_op").bound(judged.view, Fraction(95, 100), lower=True) > 0.8
    assert met <= 4  # 11 where such tasks count as the judge saw them


def test_the_order_of_ratings_changes_nothing() -> None:
    rows = [
        (f"{i}", rater, (i * k % 5) / 4) for i in range(30) for k, rater in enumerate(("j", "ann", "bob"), 1)
    ]
    reference = {f"{i}": float(i % 2) for i in range(0, 30, 2)} | {"1": 0.0, "3": 0.0}
    assert report(calibrated(rows, reference)) == report(calibrated(rows[::-1], reference))


def test_the_published_schema_holds_for_every_report() -> None:
    definitions = schema_of(AssessmentDocument)["$defs"]
    whole = {**definitions["JudgeReport"], "$defs": definitions}
    Draft202012Validator.check_schema(whole)
    validator = Draft202012Validator(whole)
    reports = [
        report(None),
        report(counted(50, 3, 4, 50), 82, 100),
        report(calibrated([("a", "j", 1.0), ("a", "ann", 0.3)])),
    ]
    for one in reports:
        validator.validate(to_builtins(one))
    assert not validator.is_valid({**to_builtins(reports[0]), "more": 1})


def test_runs_inform_as_their_tasks_do() -> None:
    """The correction rests on the task posterior: 20 tasks of ten runs say no more than 20 runs."""
    labels = counted(160, 0, 0, 40)
    apart = report(labels, 160, 200).correction
    labels = structs.replace(labels, tasks=tuple(number // 10 for number in range(200)))
    tally = build.outcomes(200, 160)
    rows = build.clusters((0, task, task, {"runs": 10, "success": 10 * (task < 16)}) for task in range(20))
    summary = build.summary([build.cell("a", "stochastic", tally)], rows=rows)
    facts = build.facts(methodology="independent_judge").manifest
    view = Judged(structs.replace(summary, calibration=labels), facts, build.profile()).view
    together = judge_report(view).correction
    assert apart is not None
    assert together is not None
    assert (apart.raw, together.raw) == (0.8, 0.8)
    for found, law in ((apart, stats.beta(161, 41)), (together, stats.beta(17, 5))):
        # The labels weigh as no more than there are tasks, so that a judge without fault costs a little.
        assert found.interval.low < law.ppf(0.025)
        assert found.interval.low == pytest.approx(law.ppf(0.025), abs=0.07)


def test_labels_weigh_as_no_more_than_the_tasks_that_they_lie_on() -> None:
    once = counted(60, 4, 4, 12)
    twice = counted(120, 8, 8, 24)
    paired = structs.replace(twice, tasks=tuple(number // 2 for number in range(160)))
    limits = {
        name: report(labels, 160, 200).correction.interval.low  # type: ignore[union-attr]
        for name, labels in {"once": once, "paired": paired, "twice": twice}.items()
    }
    assert limits["once"] == pytest.approx(limits["paired"], rel=1e-12)
    assert limits["once"] < limits["twice"]


def test_items_that_are_no_runs_of_the_bundle_correct_nothing() -> None:
    few, many = counted(60, 4, 4, 12), counted(960, 4, 4, 12)
    outside = structs.replace(many, tasks=(*range(60), *(None,) * 900, *range(60, 80)))
    assert report(outside, 160, 200).correction == report(few, 160, 200).correction


def test_what_the_judge_decided_is_known_without_its_lines() -> None:
    """The lines of the judge on the 20 runs that it passed wrongly are left out; the records hold them."""
    whole = counted(60, 0, 20, 20)
    whole = structs.replace(whole, passed=(True,) * 80 + (False,) * 20)
    kept = ~np.isin(whole.item, range(60, 80))
    columns = {name: getattr(whole, name)[kept] for name in ("item", "rater", "score")}
    omitted = report(structs.replace(whole, **columns), 160, 200)
    assert omitted.correction == report(whole, 160, 200).correction
    assert (omitted.confusion, omitted.contradicted) == (Labels(60, 20, 0, 20), 0)


@pytest.mark.parametrize("more", ["passed", "failed"])
def test_the_correction_is_that_of_the_rows_whichever_weighting_is_worse(more: str) -> None:
    """Half of 100 tasks ran nine times: those that passed, or those that failed."""
    sizes = [9 if (task < 80) == (more == "passed") else 1 for task in range(100)]
    rows = build.clusters(
        (0, task, task, {"runs": n, "success": n * (task < 80)}) for task, n in enumerate(sizes)
    )
    tally = build.outcomes(sum(sizes), sum(sizes[:80]))
    labels = structs.replace(counted(78, 0, 2, 20), tasks=tuple(range(100)))
    summary = build.summary([build.cell("a", "stochastic", tally)], rows=rows)
    facts = build.facts(methodology="independent_judge", tasks_independent=True).manifest
    judged = Judged(structs.replace(summary, calibration=labels), facts, build.profile())
    found = judge_report(judged.view).correction
    assert found is not None
    mean = TaskMean("r_op")
    for tier, chance in found.by_tier.items():
        assert chance == mean.chance(judged.view, judged.view.tau[tier])
    level = Fraction(975, 1000)
    assert found.interval.low == pytest.approx(mean.bound(judged.view, level, lower=True), rel=1e-12)
    assert found.interval.low < found.value < found.interval.high


def one_run_a_task(calibration: Calibration | None, methodology: str) -> dict[tuple[str, int], Any]:
    """Rows of 200 tasks of one run in each of two domains, 190 and 180 of which the judge passed."""
    passed = {"bank": 190, "shop": 180}
    summary = build.summary(
        [build.cell(domain, "stochastic", build.outcomes(200, passed[domain])) for domain in passed],
        rows=build.clusters(
            [
                (place, 200 * place + number, 200 * place + number, {"runs": 1, "success": number < most})
                for place, most in enumerate(passed.values())
                for number in range(200)
            ]
        ),
    )
    summary = structs.replace(summary, calibration=calibration)
    manifest = build.facts(methodology=methodology, tasks_independent=True).manifest
    return {(row.id, row.tier): row.bounded for row in Judged(summary, manifest, build.profile()).rows}


def by_domain(bank: tuple[int, int, int, int], shop: tuple[int, int, int, int]) -> Calibration:
    """Labels of runs under faults: true positives, false negatives, false positives, true negatives."""
    found = counted(*(a + b for a, b in zip(bank, shop, strict=True)))
    places = [place for kind in range(4) for place in ["bank"] * bank[kind] + ["shop"] * shop[kind]]
    # Tasks of `one_run_a_task`: those that the judge passed, 190 and 180 of 200, come first.
    free = {
        ("bank", True): count(0), ("bank", False): count(190),
        ("shop", True): count(200), ("shop", False): count(380),
    }  # fmt: skip
    kinds = [kind in {0, 2} for kind in range(4) for _ in range(bank[kind] + shop[kind])]
    tasks = tuple(next(free[where]) for where in zip(places, kinds, strict=True))
    conditions = ("stochastic",) * len(places)
    return structs.replace(found, domains=tuple(places), conditions=conditions, tasks=tasks)


def drawn_limit(passed: int, n: int, labels: tuple[int, int, int, int]) -> float:
    """The 5 % quantile of qP + (1 − q)F by draws."""
    tp, fn, fp, tn = labels
    rng = np.random.default_rng(3)
    q, p, f = (rng.beta(1 + a, 1 + b, 400_000) for a, b in ((passed, n - passed), (tp, fp), (fn, tn)))
    return float(np.quantile(q * p + (1 - q) * f, 0.05))


BANK, SHOP = (70, 1, 2, 9), (60, 2, 6, 12)


def test_rows_of_outcomes_that_a_judge_gave_use_the_corrected_limit() -> None:
    rows = one_run_a_task(by_domain(BANK, SHOP), "independent_judge")
    assert rows["r_op", 1].bound == pytest.approx(drawn_limit(370, 400, (130, 3, 8, 21)), abs=0.004)
    shop = drawn_limit(180, 200, SHOP)
    assert shop < drawn_limit(190, 200, BANK)
    assert rows["domain_min", 1].bound == pytest.approx(shop, abs=0.006)


def test_a_program_that_gave_the_outcomes_leaves_the_limits_as_they_are() -> None:
    plain = one_run_a_task(None, "trajectory")
    assert one_run_a_task(by_people(by_domain(BANK, SHOP)), "trajectory") == plain
    assert plain["r_op", 1].bound == pytest.approx(float(stats.beta(371, 31).ppf(0.05)), abs=1e-9)


def test_labels_of_other_conditions_do_not_enter_a_series() -> None:
    faults = by_domain(BANK, SHOP)
    nominal = structs.replace(faults, conditions=("nominal",) * len(faults.items))
    rows = one_run_a_task(nominal, "independent_judge")
    assert rows["r_op", 1].bound == pytest.approx(drawn_limit(370, 400, (0, 0, 0, 0)), abs=0.02)


def labelled_bundle(root: Path, *, honest: bool) -> Assessment:
    """Twenty tasks of ten runs that are right and twenty of one run that are wrong; the judge passes all."""
    names = [f"right-{task}" for task in range(20) for _ in range(10)] + [
        f"wrong-{task}" for task in range(20)
    ]
    runs = [bundles.run(number, task_id=name, condition="stochastic") for number, name in enumerate(names)]
    judge = {"name": "j", "independent": True}
    about = {"methodology": "independent_judge", "judge": judge, "tasks_independent": True}
    lines = [
        {
            "item": run["run_id"],
            "rater": rater,
            "score": (rater == "j" and honest) or name.startswith("right"),
            "reference": name.startswith("right"),
        }
        for run, name in zip(runs, names, strict=True)
        for rater in ("j", "ann")
    ]
    manifest = {**bundles.MANIFEST, "protocol": {"origin": "measured", **about}}
    bundles.write(root, {"a.jsonl": bundles.lines(runs)}, manifest)
    (root / "calibration").mkdir()
    (root / "calibration" / "a.jsonl").write_bytes(bundles.lines(lines))
    return certkit.assess(root, profile="hb-eval-2026-bounded")


def test_labels_of_a_bundle_count_by_task_and_by_what_its_records_hold(tmp_path: Path) -> None:
    honest = labelled_bundle(tmp_path / "honest", honest=True)
    copied = labelled_bundle(tmp_path / "copied", honest=False)
    bound = next(row.bounded for row in honest.criteria if (row.id, row.tier) == ("r_op", 1))
    assert bound is not None
    assert bound.bound is not None
    # Ten labels of a right task weigh as the one of a wrong task: half of what the judge passed is right.
    assert bound.bound < 0.5
    assert copied.criteria == honest.criteria
    assert (honest.judge.contradicted, copied.judge.contradicted) == (0, 20)
    codes = [[item.code for item in found.findings] for found in (honest, copied)]
    assert ["calibration-chosen" in found for found in codes] == [False, True]
    told = honest.to_dict()["fragility"]["posterior"]["1"]
    assert told["holds"] is False
    assert told["priors"]["uniform"] < 0.5


def test_a_variable_beside_the_outcome_is_shown_and_corrects_nothing() -> None:
    outcome = counted(9, 1, 1, 9)
    scores = {"a": 0.25, "b": 0.5, "c": 1.0}
    other = structs.replace(
        calibrated([(item, "j", score) for item, score in scores.items()], {"a": 0.25, "b": 0.75, "c": 1.0}),
        scale=(1.0, 5.0),
    )
    plain, both = report(outcome), report(structs.replace(outcome, others={"traceability": other}))
    found = both.variables["traceability"]
    assert structs.replace(both, variables={}) == plain
    assert (found.low, found.high, found.items, found.referenced) == (1.0, 5.0, 3, 3)
    assert found.against is not None
    assert found.against.success is None
    assert found.against.mae == pytest.approx(0.25 / 3, abs=1e-6)
    # Categories .25, .5, .75, 1; weights 1 - (distance / .75)²: observed 1 - (1/9)/3, by chance below.
    chance = np.mean([[((a - b) / 0.75) ** 2 for b in (0.25, 0.75, 1)] for a in scores.values()])
    assert found.against.quadratic.value == pytest.approx(1 - (1 / 27) / chance, abs=1e-6)
    (sentence,) = [line for line in of_judge(both) if line.startswith("traceability, 1 to 5: j against")]
    assert "over 3 items" in sentence
