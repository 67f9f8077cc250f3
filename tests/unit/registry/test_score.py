"""The trust score: its terms against scipy.stats, and what may never raise it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs
from scipy import stats

from certkit.assessment.reliability import Moments
from certkit.registry.score import DRIFT, REVOKED, Latest, Past, bound, effective, score

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
    drift: tuple[str, ...] = (),
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
        drift=drift,
        revocations=revocations,
        latest=latest,
    )


def valued(of: Past, at: datetime = START) -> float:
    value = score(of, at=at).value
    assert value is not None
    return value


def test_the_bound_is_a_quantile_of_the_posterior_over_the_clusters() -> None:
    row = moments([(5, 5)] * 15 + [(5, 1)] * 5)
    assert effective(row) == 20
    # p = 80/100 over 20 clusters of equal size
    assert bound(row) == pytest.approx(stats.beta(1 + 16, 1 + 4).ppf(0.05), abs=1e-12)
    # the third attempt has 0.2 · .05 / (3 · 2) to err
    assert bound(row, 3) == pytest.approx(stats.beta(17, 5).ppf(0.01 / 6), abs=1e-12)


def test_clusters_of_unequal_size_are_worth_less() -> None:
    assert effective(moments([(90, 90), *[(1, 1)] * 10])) == pytest.approx(100**2 / (90**2 + 10))


def test_a_score_is_the_product_of_the_terms_that_it_shows() -> None:
    found = score(
        past(attempt=2, drift=("DRIFTED",), revocations=("evidence-false",)), at=START + timedelta(days=45)
    )
    terms = {term.name: term.value for term in found.terms}
    assert list(terms) == ["bound", "attempts", "age", "drift", "revocations"]
    first, second = (stats.beta(21, 1).ppf(alpha) for alpha in (0.05, 0.2 * 0.05 / 2))
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


clusters = st.lists(
    st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=1, max_size=25
)
events = st.lists(st.sampled_from(sorted(DRIFT)), max_size=4).map(tuple)
reasons = st.lists(st.sampled_from(sorted(REVOKED)), max_size=4).map(tuple)


@given(clusters, st.data())
def test_a_success_that_becomes_a_failure_never_raises_it(found: list[Cluster], data: st.DataObject) -> None:
    assume(any(y for _, y in found))
    place = data.draw(st.sampled_from([number for number, (_, y) in enumerate(found) if y]))
    worse = [(n, y - (number == place)) for number, (n, y) in enumerate(found)]
    assert valued(past(worse)) < valued(past(found))


@given(clusters, events, reasons, st.integers(1, 30), st.floats(0, 89), st.floats(0, 89))
def test_time_never_raises_it(  # noqa: PLR0917 - one per thing that a score depends on
    found: list[Cluster],
    drift: tuple[str, ...],
    gone: tuple[str, ...],
    attempt: int,
    one: float,
    other: float,
) -> None:
    of = past(found, attempt=attempt, drift=drift, revocations=gone)
    sooner, later = sorted((one, other))
    assert valued(of, START + timedelta(days=later)) <= valued(of, START + timedelta(days=sooner))


@given(clusters, events, reasons, st.sampled_from(sorted(DRIFT)), st.sampled_from(sorted(REVOKED)))
def test_no_event_raises_it(
    found: list[Cluster], drift: tuple[str, ...], gone: tuple[str, ...], more: str, reason: str
) -> None:
    before = valued(past(found, drift=drift, revocations=gone))
    assert valued(past(found, drift=(*drift, more), revocations=gone)) < before
    assert valued(past(found, drift=drift, revocations=(*gone, reason))) <= before


@given(clusters, st.integers(1, 1000))
def test_no_further_attempt_raises_it(found: list[Cluster], attempt: int) -> None:
    assert valued(past(found, attempt=attempt + 1)) < valued(past(found, attempt=attempt))


@given(clusters, events, reasons, st.integers(1, 30))
def test_it_lies_between_none_and_all(
    found: list[Cluster], drift: tuple[str, ...], gone: tuple[str, ...], attempt: int
) -> None:
    assert 0 < valued(past(found, attempt=attempt, drift=drift, revocations=gone)) < 1
