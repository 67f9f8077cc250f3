"""The trust score: its terms against scipy.stats, and what may never raise it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import inf
from typing import get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs
from scipy import stats

from certkit.assessment.reliability import Moments
from certkit.registry.entry import Reason
from certkit.registry.score import (
    REVOKED,
    Latest,
    Measured,
    Past,
    Step,
    bound,
    effective,
    graver,
    gravest,
    score,
)

START = datetime(2026, 3, 1, tzinfo=UTC)
Cluster = tuple[int, int]


def moments(clusters: list[Cluster]) -> Moments:
    """The integers of clusters of (runs, successes)."""
    return Moments(
        metric="r_op",
        domain=None,
        condition=None,
        scale=1,
        y=sum(y for _, y in clusters),
        n=sum(n for n, _ in clusters),
        k=len(clusters),
        yy=sum(y * y for _, y in clusters),
        yn=sum(y * n for n, y in clusters),
        nn=sum(n * n for n, _ in clusters),
    )


def past(
    clusters: list[Cluster] | None = None,
    *,
    attempt: int = 1,
    drift: tuple[Step, ...] = (),
    revocations: tuple[str, ...] = (),
) -> Past:
    latest = Latest(
        passport_id="sha256:" + "1" * 64,
        index=4,
        not_before=START,
        not_after=START + timedelta(days=90),
        origin="measured",
        attempt=attempt,
        revoked=None,
        r_op=moments(clusters or [(5, 5)] * 20),
    )
    return Past(
        lineage="lab/agent",
        passports=3,
        since=START - timedelta(days=200),
        appeared=START,
        drift=drift,
        revocations=revocations,
        latest=latest,
    )


def valued(of: Past, at: datetime = START) -> float:
    value = score(of, at=at).value
    assert value is not None
    return value


def test_the_bound_is_clopper_and_pearsons_for_as_many_runs_as_the_successes_are_worth() -> None:
    row = moments([(5, 5)] * 15 + [(5, 1)] * 5)
    assert effective(row) == 80**2 / 500
    # p = 80/100 of 12.8 runs
    assert bound(row) == pytest.approx(stats.beta(0.8 * 12.8, 1 + 0.2 * 12.8).ppf(0.05), abs=1e-12)
    # the third attempt has 0.2 · .05 / (3 · 2) to err
    assert bound(row, 3) == pytest.approx(stats.beta(0.8 * 12.8, 1 + 0.2 * 12.8).ppf(0.01 / 6), abs=1e-12)
    # 18 of 20 independent runs and none of them alike: the published interval's lower end, on 0.9² · 20 runs
    exact = stats.binomtest(18, 20).proportion_ci(0.9, "exact").low
    assert bound(moments([(1, 1)] * 18 + [(1, 0)] * 2)) < exact
    assert bound(moments([(1, 1)] * 20)) == pytest.approx(
        stats.binomtest(20, 20).proportion_ci(0.9, "exact").low, abs=1e-12
    )


def test_the_bound_of_a_late_attempt_keeps_its_digits() -> None:
    # nothing failed in 20 runs: the quantile of Beta(20, 1) is α^(1/20), here for α = .01 / (10⁹ · (10⁹ - 1))
    row = moments([(1, 1)] * 20)
    assert bound(row, 10**9) == pytest.approx((0.01 / (10**9 * (10**9 - 1))) ** (1 / 20), rel=1e-12)


def test_what_always_failed_scores_nothing() -> None:
    row = moments([(5, 0)] * 20)
    assert (effective(row), bound(row), bound(row, 7)) == (0, 0, 0)
    assert valued(past([(5, 0)] * 20, attempt=3)) == 0


def test_a_bound_that_no_number_can_hold_is_none() -> None:
    # near 10^-308 the quantile keeps no order, and its digits are none
    assert [bound(moments([(1, 1)] + [(1, 0)] * count)) for count in (100, 400, 1000)] == [0, 0, 0]


def test_clusters_of_unequal_size_are_worth_less() -> None:
    assert effective(moments([(90, 90), *[(1, 1)] * 10])) == pytest.approx(100**2 / (90**2 + 10))


def test_a_scaled_value_is_worth_what_its_successes_are() -> None:
    whole = moments([(5, 4)] * 20)
    scaled = structs.replace(whole, scale=10, y=10 * whole.y, yy=100 * whole.yy, yn=10 * whole.yn)
    assert effective(scaled) == effective(whole)
    assert bound(scaled) == bound(whole)


def test_a_score_is_the_product_of_the_terms_that_it_shows() -> None:
    found = score(
        past(attempt=2, drift=(Step("DRIFTED", 3.0),), revocations=("evidence-false",)),
        at=START + timedelta(days=45),
    )
    terms = {term.name: term.value for term in found.terms}
    assert list(terms) == ["bound", "attempts", "later", "age", "drift", "revocations"]
    first, second = (stats.beta(20, 1).ppf(alpha) for alpha in (0.05, 0.2 * 0.05 / 2))
    assert terms["bound"] == pytest.approx(first)
    assert terms["attempts"] == pytest.approx(second / first)
    assert terms["age"] == pytest.approx(2**-0.5)
    assert (terms["drift"], terms["revocations"]) == (0.8, 0.5)
    assert found.value == pytest.approx(second * 2**-0.5 * 0.4)
    document = found.to_dict()
    assert document["value"] == found.value
    assert [term["name"] for term in document["terms"]] == list(terms)


@pytest.mark.parametrize(
    ("change", "days", "words"),
    [
        ({"revoked": "key-compromise"}, 1, "revoked: key-compromise"),
        ({}, 91, "expired at 2026-05-30T00:00:00Z"),
        ({}, -1, "valid from 2026-03-01T00:00:00Z"),
        ({"r_op": None}, 1, "measured no r_op"),
    ],
)
def test_what_is_not_known_is_no_score(change: dict[str, object], days: int, words: str) -> None:
    one = past()
    one = structs.replace(one, latest=structs.replace(one.latest, **change))
    found = score(one, at=START + timedelta(days=days))
    assert (found.value, found.terms) == (None, ())
    assert words in (found.reason or "")
    assert found.to_dict()["value"] is None


def test_there_is_none_where_earlier_passports_are_not_here() -> None:
    found = score(structs.replace(past(), missing=(1, 3)), at=START)
    assert (found.value, found.terms) == (None, ())
    assert "entries 1, 3 rest on" in (found.reason or "")
    many = score(structs.replace(past(), missing=(1, 3, 5, 7)), at=START).reason or ""
    assert "entries 1, 3, 5 and others rest on" in many


def test_every_reason_has_its_weight_and_the_gravest_counts() -> None:
    assert set(REVOKED) == set(get_args(Reason))
    assert gravest(("agent-withdrawn", "evidence-false", "key-compromise")) == "evidence-false"
    assert graver("evidence-false", "agent-withdrawn")
    assert not graver("evidence-false", "operation-below-threshold")
    assert not graver("agent-withdrawn", "key-compromise")


@pytest.mark.parametrize("result", ["STABLE", "UNDERPOWERED"])
def test_a_comparison_that_shows_no_loss_leaves_all(result: str) -> None:
    assert valued(past(drift=(Step(result),))) == valued(past())
    (term,) = (one for one in score(past(drift=(Step(result),)), at=START).terms if one.name == "drift")
    assert (term.value, term.detail) == (1.0, "1 comparison")


def test_a_loss_counts_by_its_margins_up_to_one_and_another_agent_besides() -> None:
    shown = [
        (one.shown, one.left)
        for one in (
            Step("STABLE", 0.5),
            Step("DRIFTED", 0.25),
            Step("DRIFTED", 7.0),
            Step("UNDERPOWERED", inf),
            Step("IDENTITY_CHANGED", 0.0, is_changed=True),
            Step("IDENTITY_CHANGED", 0.1, is_changed=True),
            Step("IDENTITY_CHANGED", 1.0, is_changed=True),
            Step("STABLE"),
        )
    ]
    assert shown == [
        ("LOWER", 0.8**0.5),
        ("DRIFTED", 0.8**0.25),
        ("DRIFTED", 0.8),
        ("LOWER", 0.8),
        ("IDENTITY_CHANGED", 0.95),
        ("LOWER", 0.8**0.1 * 0.95),
        ("LOWER", 0.8 * 0.95),
        ("STABLE", 1.0),
    ]
    several = past(drift=(Step("STABLE", 0.5), Step("STABLE"), Step("DRIFTED", 2.0), Step("STABLE", 0.1)))
    (term,) = (one for one in score(several, at=START).terms if one.name == "drift")
    assert term.detail == "4 comparisons: 1 DRIFTED, 2 LOWER"
    assert term.value == pytest.approx(0.8**1.6)


def test_the_age_counts_from_when_the_evidence_appeared() -> None:
    older = structs.replace(past(), appeared=START - timedelta(days=80))
    assert valued(older) == pytest.approx(valued(past()) * 2 ** (-80 / 90))


clusters = st.lists(
    st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=1, max_size=25
)
results = st.sampled_from(["DRIFTED", "NOT_COMPARABLE", "IDENTITY_CHANGED", "STABLE", "UNDERPOWERED"])
event = st.builds(Step, results, st.floats(0, 3), st.booleans())
events = st.lists(event, max_size=4).map(tuple)
reasons = st.lists(st.sampled_from(sorted(REVOKED)), max_size=4).map(tuple)


uneven = st.lists(
    st.sampled_from([1, 1, 2, 5, 10, 40, 200, 5000]).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, n) | st.just(n))
    ),
    min_size=1,
    max_size=8,
)


@given(clusters | uneven, st.integers(1, 30), st.data())
def test_no_further_failure_raises_it(found: list[Cluster], attempt: int, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(found)))
    kinds = (
        ["a failing run"]
        if place == len(found) or not found[place][1]
        else ["a failing run", "a success lost"]
    )
    kind, count = data.draw(st.sampled_from(kinds)), data.draw(st.integers(1, 300))
    if kind == "a success lost":
        n, y = found[place]
        worse = [*found[:place], (n, y - min(y, count)), *found[place + 1 :]]
    elif place == len(found):
        worse = [*found, *data.draw(st.sampled_from([[(count, 0)], [(1, 0)] * count]))]
    else:
        worse = [*found[:place], (found[place][0] + count, found[place][1]), *found[place + 1 :]]
    better, value = valued(past(found, attempt=attempt)), valued(past(worse, attempt=attempt))
    assert value <= better * (1 + 1e-9), (kind, place, worse)


def test_failing_runs_in_further_clusters_do_not_raise_it() -> None:
    # One cluster of 200 good runs is worth one run; a bound on n² / Σ n_c² runs rises with five bad ones.
    values = [valued(past([(200, 200), *[(1, 0)] * count])) for count in range(8)]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == 8


@given(st.floats(0.001, 1), st.floats(0.001, 200), st.floats(1, 3), st.sampled_from([0.05, 0.005, 1e-6]))
def test_the_bound_of_a_proportion_rises_with_the_runs_it_is_of(
    p: float, runs: float, more: float, alpha: float
) -> None:
    fewer, enough = (stats.beta(p * m, 1 + (1 - p) * m).ppf(alpha) for m in (runs, runs * more))
    assert enough >= fewer * (1 - 1e-7) or fewer < 1e-300  # beyond the range of a double both are 0


@given(clusters, st.data())
def test_a_success_that_becomes_a_failure_lowers_it(found: list[Cluster], data: st.DataObject) -> None:
    assume(any(y for _, y in found))
    place = data.draw(st.sampled_from([number for number, (_, y) in enumerate(found) if y]))
    worse = [(n, y - (number == place)) for number, (n, y) in enumerate(found)]
    assert valued(past(worse)) <= valued(past(found))
    # beyond the range of a double both are 0
    assert valued(past(worse)) < valued(past(found)) or valued(past(found)) < 1e-300


@given(clusters, events, reasons, st.integers(1, 30), st.floats(0, 89), st.floats(0, 89))
def test_time_never_raises_it(  # noqa: PLR0917 - one per thing that a score depends on
    found: list[Cluster],
    drift: tuple[Step, ...],
    gone: tuple[str, ...],
    attempt: int,
    one: float,
    other: float,
) -> None:
    of = past(found, attempt=attempt, drift=drift, revocations=gone)
    sooner, later = sorted((one, other))
    assert valued(of, START + timedelta(days=later)) <= valued(of, START + timedelta(days=sooner))


@given(clusters, events, reasons, event, st.sampled_from(sorted(REVOKED)))
def test_no_event_raises_it(
    found: list[Cluster], drift: tuple[Step, ...], gone: tuple[str, ...], more: Step, reason: str
) -> None:
    before = valued(past(found, drift=drift, revocations=gone))
    assert valued(past(found, drift=(*drift, more), revocations=gone)) <= before
    assert valued(past(found, drift=drift, revocations=(*gone, reason))) <= before


@given(clusters, st.lists(st.tuples(clusters, st.integers(1, 30)), max_size=4), st.integers(1, 30))
def test_later_evidence_bounds_it_and_never_raises_it(
    found: list[Cluster], later: list[tuple[list[Cluster], int]], attempt: int
) -> None:
    rows = [
        Measured(index=number, attempt=i, r_op=moments(of)) for number, (of, i) in enumerate(later, start=5)
    ]
    alone = past(found, attempt=attempt)
    values = [valued(structs.replace(alone, later=tuple(rows[:count]))) for count in range(len(rows) + 1)]
    each = [valued(past(of, attempt=i)) for of, i in later]
    assert values[0] == valued(alone)
    assert values[-1] == pytest.approx(min([valued(alone), *each]), rel=1e-9, abs=1e-300)
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(values))


@given(clusters, st.integers(1, 1000))
def test_no_further_attempt_raises_it(found: list[Cluster], attempt: int) -> None:
    assert valued(past(found, attempt=attempt + 1)) <= valued(past(found, attempt=attempt))


@given(clusters, events, reasons, st.integers(1, 30))
def test_it_lies_between_none_and_all(
    found: list[Cluster], drift: tuple[Step, ...], gone: tuple[str, ...], attempt: int
) -> None:
    assert 0 <= valued(past(found, attempt=attempt, drift=drift, revocations=gone)) < 1
