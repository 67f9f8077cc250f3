"""The judge's error: confusion, sensitivity and specificity, the corrected rate, findings."""

from __future__ import annotations

from fractions import Fraction
from math import exp, lgamma, log
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from scipy import integrate, special, stats

from certkit.assessment import AssessmentDocument
from certkit.assessment.evaluate import judge
from certkit.assessment.findings.findings import SEVERITY
from certkit.assessment.rater_error import (
    JudgeReport,
    Seen,
    judge_findings,
    judge_report,
    seen_by_judge,
)
from certkit.assessment.rater_error.correction import Correction, confusion, corrected, share
from certkit.assessment.statistics.estimators import posterior
from certkit.document import schema_of, to_builtins
from certkit.evidence.bundle.calibration import ABSENT, Calibration, Rater, millionths
from certkit.evidence.bundle.manifest import Protocol
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TAU = {1: Fraction(60, 100), 2: Fraction(80, 100), 3: Fraction(95, 100)}
DELTA = dict.fromkeys(TAU, Fraction(95, 100))
Row = tuple[str, str, float]


def calibrated(
    rows: Sequence[Row],
    reference: Mapping[str, float] | None = None,
    *,
    judges: Sequence[str] = ("j",),
    domains: Mapping[str, str] | None = None,
) -> Calibration:
    """A calibration from (item, rater, score) rows."""
    items, raters = sorted({row[0] for row in rows}), sorted({row[1] for row in rows})
    known, named = reference or {}, domains or {}
    table = sorted((items.index(item), raters.index(rater), millionths(score)) for item, rater, score in rows)
    item, rater, score = (np.array(column, np.int64) for column in zip(*table, strict=True))
    return Calibration(
        items=tuple(items),
        domains=tuple(named.get(name) for name in items),
        reference=np.array(
            [millionths(known[name]) if name in known else ABSENT for name in items], np.int64
        ),
        raters=tuple(Rater(name=name, kind="judge" if name in judges else "human") for name in raters),
        item=item,
        rater=rater,
        score=score,
    )


def protocol(judge: str | None = "j", **facts: Any) -> Protocol:
    named = {"judge": {"name": judge, "independent": True}} if judge else {}
    return Protocol.model_validate({"origin": "measured", **named, **facts})


def counted(tp: int, fn: int, fp: int, tn: int) -> Calibration:
    """A judge j with these counts against the reference."""
    rows: list[Row] = []
    reference = {}
    for number, (seen, true) in enumerate([(1, 1)] * tp + [(0, 1)] * fn + [(1, 0)] * fp + [(0, 0)] * tn):
        rows.append((f"{number:05}", "j", seen))
        reference[f"{number:05}"] = float(true)
    return calibrated(rows, reference)


def report(calibration: Calibration | None, seen: Seen | None = None, **facts: Any) -> JudgeReport:
    return judge_report(calibration, protocol(**facts), seen, TAU)


def findings(of: JudgeReport, **facts: Any) -> dict[str, str]:
    found = list(judge_findings(of, protocol(**facts), TAU, DELTA, judged=True))
    assert all(item.severity is SEVERITY[item.code] for item in found)
    return {item.code: item.message for item in found}


def corrected_by(
    counts: tuple[int, int, int, int], y: float, n: float, tau: Sequence[Fraction]
) -> Correction:
    rate = Fraction(y) / Fraction(n)
    return corrected(rate, int(n), n, confusion(*counts), dict(enumerate(tau, 1)))


def test_posteriors_are_those_of_scipy() -> None:
    for successes, n in ((0, 7), (7, 7), (95, 100), (1, 3)):
        found, right = share(successes, n), stats.beta(1 + successes, 1 + n - successes)
        assert found.mean == pytest.approx(right.mean(), rel=1e-13)
        assert found.interval is not None
        assert (found.interval.low, found.interval.high) == pytest.approx(right.interval(0.95), rel=1e-10)
    nothing = share(0, 0)
    assert (nothing.value, nothing.mean, nothing.interval) == (None, None, None)


def test_the_published_example_of_a_flattered_or_wronged_agent() -> None:
    # sensitivity .95, specificity .90: a true .95 reads .95·.95 + .05·.10 = .9075
    found = corrected_by((950, 50, 100, 900), 9075, 10_000, TAU.values())  # type: ignore[arg-type]
    assert found.raw == 0.9075
    assert found.value == 0.95
    assert found.interval is not None
    assert found.interval.low < 0.95 < found.interval.high


CASES = [
    ((95, 5, 10, 90), 910.0, 1000.0),
    ((47, 3, 1, 9), 80.0, 90.0),
    ((50, 0, 0, 50), 900.0, 1000.0),  # perfect in the calibration
    ((20, 1, 3, 12), 45.3, 60.1),  # an effective number of runs need not be whole
    ((60, 40, 20, 80), 300.0, 500.0),
    ((40, 2, 3, 30), 9100.0, 10_000.0),  # many runs, little calibration
    ((1000, 10, 100, 900), 20.0, 20.0),
    ((30, 0, 5, 25), 0.0, 40.0),
]


def beta_density(a: float, b: float, x: float) -> float:
    return exp(lgamma(a + b) - lgamma(a) - lgamma(b) + (a - 1) * log(x) + (b - 1) * log1m(x))


def log1m(x: float) -> float:
    return float(np.log1p(-x))


def weight_above(t: float, counts: tuple[int, int, int, int], y: float, n: float) -> float:
    """∫ of the posterior density over θ > t, with θ integrated out by hand.

    For given S and F, ∫_t^1 f(θS + (1 - θ)F) dθ is (I(S) - I(tS + (1 - t)F)) / (S - F), I the distribution
    function of Beta(1 + y, 1 + n - y). What is left is a double integral of a smooth function.
    """
    tp, fn, fp, tn = counts
    hits, alarms = (1 + tp, 1 + fn), (1 + fp, 1 + tn)
    tail = 1e-13

    def integrand(f: float, s: float) -> float:
        if abs(s - f) < 1e-9:
            return 0.0
        low, high = special.betainc(1 + y, 1 + n - y, [t * s + (1 - t) * f, s])
        return float((high - low) / (s - f) * beta_density(*hits, s) * beta_density(*alarms, f))

    ends = [(special.betaincinv(*of, tail), special.betainccinv(*of, tail)) for of in (hits, alarms)]
    value, _ = integrate.dblquad(integrand, *ends[0], *ends[1], epsabs=1e-11, epsrel=1e-9)
    return float(value)


@pytest.mark.parametrize(("counts", "y", "n"), CASES)
def test_the_posterior_is_that_of_an_adaptive_double_integral(
    counts: tuple[int, int, int, int], y: float, n: float
) -> None:
    found = corrected_by(counts, y, n, [Fraction(80, 100), Fraction(95, 100)])
    assert found.by_tier is not None
    assert found.interval is not None
    total = weight_above(0.0, counts, y, n)
    right = {tier: weight_above(t, counts, y, n) / total for tier, t in ((1, 0.8), (2, 0.95))}
    assert found.by_tier == pytest.approx(right, abs=2e-8)
    assert weight_above(found.interval.low, counts, y, n) / total == pytest.approx(0.975, abs=2e-8)
    assert weight_above(found.interval.high, counts, y, n) / total == pytest.approx(0.025, abs=2e-8)


def test_the_posterior_mean_is_the_area_above_its_distribution_function() -> None:
    counts, y, n = CASES[1]
    found = corrected_by(counts, y, n, [])
    total = weight_above(0.0, counts, y, n)
    nodes, weights = np.polynomial.legendre.leggauss(24)
    area = sum(
        w / 2 * weight_above((1 + x) / 2, counts, y, n) / total for x, w in zip(nodes, weights, strict=True)
    )
    assert found.mean == pytest.approx(area, abs=1e-6)


def test_a_judge_without_error_leaves_the_posterior_as_it_is() -> None:
    found = corrected_by((10**7, 0, 0, 10**7), 88, 100, TAU.values())  # type: ignore[arg-type]
    assert found.by_tier == pytest.approx(
        {tier: posterior(88, 100, threshold) for tier, threshold in TAU.items()}, abs=1e-5
    )
    assert found.value == 0.88


def test_uncertainty_of_the_judge_widens_the_interval() -> None:
    def width(scale: int) -> float:
        interval = corrected_by((19 * scale, scale, 2 * scale, 18 * scale), 850, 1000, []).interval
        assert interval is not None
        return interval.high - interval.low

    assert width(1) > width(4) > width(100)


def test_a_judge_that_may_be_a_coin_corrects_nothing() -> None:
    found = corrected_by((6, 4, 5, 5), 80, 100, [])
    hits, alarms = stats.beta(7, 5), stats.beta(6, 6)
    right, _ = integrate.quad(lambda x: hits.cdf(x) * alarms.pdf(x), 0, 1)
    assert found.uninformative == pytest.approx(right, abs=1e-9)
    assert (found.value, found.mean, found.interval, found.by_tier) == (None, None, None, None)
    assert "may well be 1 or less (probability 0.33" in (found.reason or "")


def test_a_judge_that_is_worse_than_a_coin_corrects_nothing() -> None:
    assert corrected_by((5, 95, 95, 5), 80, 100, []).value is None


@pytest.mark.parametrize(("counts", "what"), [((0, 0, 5, 50), "success"), ((50, 5, 0, 0), "failure")])
def test_one_kind_of_item_is_no_calibration(counts: tuple[int, int, int, int], what: str) -> None:
    found = corrected_by(counts, 80, 100, [])
    assert found.value is None
    assert found.reason == f"no calibrated item is a true {what}"


def test_a_rate_that_the_judge_cannot_show_contradicts_the_calibration() -> None:
    found = corrected_by((500, 500, 10, 990), 9500, 10_000, [])
    assert found.value is None
    assert "contradicts" in (found.reason or "")


def test_counts_are_those_of_the_success_reading() -> None:
    rows = [("a", "j", 0.7), ("b", "j", 0.699999), ("c", "j", 1.0), ("d", "j", 0.2), ("e", "j", 0.9)]
    reference = {"a": 0.8, "b": 0.7, "c": 0.0, "d": 0.69}
    found = report(calibrated(rows, reference, domains={"a": "bank", "c": "bank", "d": "shop"}))
    assert found.state == "compared"  # two items of either kind show nothing of any judge
    assert (found.items, found.referenced, found.ratings) == (5, 4, 5)
    error = found.confusion
    assert error is not None
    counts = (error.true_positives, error.false_negatives, error.false_positives, error.true_negatives)
    assert counts == (1, 1, 1, 1)
    assert error.base_rate.value == 0.5
    empty = dict.fromkeys(("true_positives", "false_negatives", "false_positives", "true_negatives"), 0)
    assert found.by_domain == {
        "bank": {**empty, "true_positives": 1, "false_positives": 1},
        "shop": {**empty, "true_negatives": 1},
    }


def test_pairs_and_groups_are_those_of_the_raters() -> None:
    rows = [
        (item, rater, float(score))
        for rater, scores in (("ann", "1101"), ("bob", "1100"), ("j", "1011"))
        for item, score in zip("abcd", scores, strict=True)
    ]
    found = report(calibrated(rows))
    assert [(pair.a, pair.b) for pair in found.pairs] == [("ann", "bob"), ("ann", "j"), ("bob", "j")]
    assert found.pairs[0].kappa.value == 0.5  # po 3/4; pe 3/4·2/4 + 1/4·2/4 = 1/2
    assert [group.raters for group in found.groups] == ["all", "human"]
    assert found.groups[0].fleiss.raters == 3
    assert found.groups[1].icc.raters == 2
    missing = report(calibrated(rows[:-1]))
    assert missing.groups[0].left_out == 1
    assert missing.groups[0].icc.items == 3
    assert "different numbers" in (missing.groups[0].fleiss.reason or "")


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
    found = judge_report(calibration, protocol(judge), None, TAU)
    assert found.state == "uncalibrated"
    assert reason in (found.reason or "")
    assert found.confusion is None
    assert set(findings(found)) == {"judge-uncalibrated"}
    assert list(judge_findings(found, protocol(judge), TAU, DELTA, judged=False)) == []


def test_a_judge_that_is_compared_with_humans_only_is_not_calibrated() -> None:
    found = report(calibrated([(f"{i}", rater, float(i % 2)) for i in range(9) for rater in ("j", "ann")]))
    assert found.state == "compared"
    assert set(findings(found)) == {"judge-uncalibrated"}


def test_one_judge_needs_no_name_in_the_manifest() -> None:
    found = judge_report(counted(9, 1, 1, 9), protocol(None), None, TAU)
    assert (found.state, found.judge) == ("calibrated", "j")


def test_weak_agreement_is_found_below_and_not_at_the_limit() -> None:
    at = report(counted(80, 20, 20, 80))  # κ = .6
    assert at.against is not None
    assert at.against.success.value == 0.6
    assert findings(at) == {}
    below = findings(report(counted(80, 20, 30, 80)))
    assert list(below) == ["judge-agreement-low"]
    assert "j agrees with reference on success with κ = 0.5" in below["judge-agreement-low"]


def test_weak_agreement_with_a_human_is_found_where_there_is_no_reference() -> None:
    rows = [(f"{i:02}", "j", float(i % 2)) for i in range(20)] + [
        (f"{i:02}", "ann", float(i % 3 > 0)) for i in range(20)
    ]
    found = findings(report(calibrated(rows)))
    assert "j agrees with ann" in found["judge-agreement-low"]


def test_a_tier_that_only_the_judges_error_reaches_is_found() -> None:
    # specificity .6: a true .75 reads .75·.96 + .25·.4 = .82, above Tier 2's .80
    seen = Seen(rate=Fraction(82, 100), n=1000, n_eff=800.0)
    found = report(counted(480, 20, 200, 300), seen)
    assert found.correction is not None
    assert found.correction.value == 0.75
    message = findings(found)["judge-correction"]
    assert "r_op is 75.0% and not 82.0%" in message
    assert "of Tier 2 " in message


def test_where_the_judge_does_not_decide_success_it_is_said_what_the_correction_would_take() -> None:
    seen = Seen(rate=Fraction(82, 100), n=1000, n_eff=800.0)
    ignored = report(counted(480, 20, 200, 300), seen, methodology="trajectory")
    assert ignored.note is not None
    message = findings(ignored, methodology="trajectory")["judge-correction"]
    assert "not corrected" in message
    assert "state that methodology; then r_op would be 75.0% (95 % interval" in message
    assert "not 82.0%" in message
    hopeless = report(counted(50, 0, 0, 0), seen, methodology="trajectory")
    message = findings(hopeless, methodology="trajectory")["judge-correction"]
    assert "cannot be freed of the error: no calibrated item is a true failure" in message
    assert findings(report(None, seen, methodology="trajectory"), methodology="trajectory").keys() == {
        "judge-uncalibrated"
    }


def flawless(a: int, b: int) -> float:
    """P(Se + Sp ≤ 1) of a judge without an error: S ~ Beta(1 + a, 1) is at most F ~ Beta(1, 1 + b)."""
    found, _ = integrate.quad(lambda x: stats.beta(1 + a, 1).cdf(x) * stats.beta(1, 1 + b).pdf(x), 0, 1)
    return float(found)


@pytest.mark.parametrize("a", range(8))
@pytest.mark.parametrize("b", range(8))
def test_a_judge_is_not_calibrated_on_items_that_could_not_tell_it_from_a_coin(a: int, b: int) -> None:
    if a + b == 0:
        return
    found = report(counted(a, 0, 0, b))
    tells = min(a, b) > 0 and flawless(a, b) <= 0.025
    assert found.state == ("calibrated" if tells else "compared")
    assert ("cannot tell any judge from a coin" in (found.reason or "")) is not tells
    assert "judge-uncalibrated" in findings(found)
    assert found.confusion is not None


def test_what_few_items_leave_open_is_said_until_they_could_show_nine_in_ten() -> None:
    least = next(n for n in range(1, 100) if stats.beta(1 + n, 1).sf(0.9) > 0.95)
    assert least == 28
    message = findings(report(counted(100, 0, 0, 27)))["judge-uncalibrated"]
    law = stats.beta(28, 1)
    assert f"specificity {law.ppf(0.025):.2f} to {law.ppf(0.975):.2f} (27 items);" in message
    assert "sensitivity" not in message
    assert findings(report(counted(28, 0, 0, 28))) == {}


def test_a_tier_that_a_badly_known_judge_leaves_in_doubt_is_found() -> None:
    # Seen at .83 in 1,000 runs Tier 2's .80 is all but certain; 20 items say little of the judge who saw it.
    seen = Seen(rate=Fraction(83, 100), n=1000, n_eff=1000.0)
    few, many = counted(10, 0, 0, 10), counted(10_000, 0, 0, 10_000)
    known = stats.beta(1 + 830, 1 + 170).sf(0.8)
    assert known > 0.95
    message = findings(report(few, seen))["judge-correction"]
    assert "above the 80 % of Tier 2 with probability 0." in message
    assert findings(report(many, seen)) == {}


def test_a_correction_that_changes_no_tier_is_no_finding() -> None:
    seen = Seen(rate=Fraction(70, 100), n=1000, n_eff=1000.0)
    assert findings(report(counted(480, 20, 20, 480), seen)) == {}


def test_a_rate_that_cannot_be_corrected_is_found() -> None:
    seen = Seen(rate=Fraction(82, 100), n=100, n_eff=100.0)
    assert "cannot be freed" in findings(report(counted(50, 0, 0, 0), seen))["judge-correction"]


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
    seen = Seen(rate=Fraction(82, 100), n=100, n_eff=100.0)
    reports = [
        report(None),
        report(counted(50, 3, 4, 50), seen),
        report(counted(50, 0, 0, 0), seen),
        report(calibrated([("a", "j", 1.0), ("a", "ann", 0.3)])),
    ]
    for one in reports:
        validator.validate(to_builtins(one))
    assert not validator.is_valid({**to_builtins(reports[0]), "more": 1})


def worth(rows: Sequence[tuple[int, int]]) -> Seen | None:
    """Fault runs in clusters of (runs, successes)."""
    tally = build.outcomes(sum(n for n, _ in rows), sum(y for _, y in rows))
    clusters = [(0, number, number, {"runs": n, "success": y}) for number, (n, y) in enumerate(rows)]
    summary = build.summary(
        [build.cell("a", "stochastic", tally)] if rows else [], rows=build.clusters(clusters)
    )
    return seen_by_judge(judge(summary, build.facts().manifest, build.profile()))


def test_runs_are_worth_what_their_clusters_are_worth() -> None:
    apart = worth([(1, number % 5 > 0) for number in range(200)])
    assert apart is not None
    assert (apart.rate, apart.n) == (Fraction(4, 5), 200)
    assert apart.n_eff == pytest.approx(200)
    together = worth([(10, 10 * (number % 5 > 0)) for number in range(20)])
    assert together is not None
    assert (together.rate, together.n) == (Fraction(4, 5), 200)
    assert together.n_eff == pytest.approx(20)
    one = worth([(50, 45)])
    assert one is not None
    assert (one.rate, one.n) == (Fraction(9, 10), 50)
    assert 1 <= one.n_eff < 2
    assert worth([]) is None
