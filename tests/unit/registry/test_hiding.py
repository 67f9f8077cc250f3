"""Bad news stays: no passport that is brought after it makes the score forget what the log holds."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import permutations
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from certkit.registry.admission import inspect
from certkit.registry.ending import revoke
from certkit.registry.history import reading
from certkit.registry.past import _age, _attempt, _Bundle, _is_recent, _Side
from certkit.registry.registry import Registry
from certkit.registry.score import REVOKED, bound, score
from tests.support.lineages import NOW, clustered, hand, heads, issue, log, new, policy
from tests.support.scores import LINEAGE, asked, scored, valued
from tests.support.standings import DAY, TINY, begun

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def terms(folder: Path, days: float) -> dict[str, tuple[float, str]]:
    return {one.name: (one.value, one.detail) for one in scored(folder, days).terms}


def test_bad_evidence_is_not_forgotten_when_the_first_bundle_is_issued_again(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, issue(1, summary=clustered(950)))
    log(folder, issue(2, summary=clustered(600), days=5), days=5)
    before = valued(folder, 6)
    log(folder, issue(1, summary=clustered(950), days=6), days=6)
    assert valued(folder, 6) <= before
    found = asked(folder)
    assert found.latest.attempt == 2, "the log holds two, whatever the number of that bundle was"
    assert found.latest.r_op is not None
    kept = next(one for one in found.later if one.index == 1)
    shown = terms(folder, 6)
    assert shown["attempts"][1] == "attempt 2"
    assert shown["later"][0] == pytest.approx(bound(kept.r_op, 2) / bound(found.latest.r_op, 2))
    assert shown["later"][1] == "entry 1 shows less: 600 of 1,000 fault runs, attempt 2"
    assert inspect(folder, trust=trust).findings == ()


def test_nor_when_its_runs_are_sealed_again_under_another_digest(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    good, bad = begun(clustered(950), -20), begun(clustered(600), -1)
    log(folder, issue(1, summary=good))
    log(folder, issue(2, summary=bad, days=5), days=5)
    before = valued(folder, 6)
    log(folder, issue(3, summary=good, days=6), days=6)
    assert valued(folder, 6) < before
    assert terms(folder, 6)["later"][1].startswith("entry 1 shows less: 600 of 1,000")


@pytest.mark.parametrize("number", [1, 2])
def test_the_same_runs_are_as_old_as_before_however_they_are_sealed(tmp_path: Path, number: int) -> None:
    folder = tmp_path / "r"
    new(folder)
    runs = begun(clustered(950), -10)
    log(folder, issue(1, summary=runs))
    assert asked(folder).appeared == NOW - 10 * DAY, "not when they were first submitted"
    log(folder, issue(number, summary=runs, days=120), days=120)
    assert asked(folder).appeared == NOW - 10 * DAY
    assert terms(folder, 120)["age"][1] == "130.0 days"


def test_failing_runs_that_were_added_later_do_not_make_evidence_younger(tmp_path: Path) -> None:
    values = []
    for name, summary in (
        ("before", begun(clustered(950), -60, -50)),
        ("later", begun(clustered(950), -60, -1)),
        ("earlier", begun(clustered(950), -70, -50)),
    ):
        new(tmp_path / name)
        log(tmp_path / name, issue(1, summary=summary))
        values.append(valued(tmp_path / name, 1))
    assert values[1] == values[0] > values[2]


def test_runs_that_are_dated_after_their_passport_are_as_old_as_that(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1, summary=begun(clustered(950), 60)))
    assert asked(folder).appeared == NOW


def test_evidence_that_came_before_is_not_later(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1, summary=clustered(600)))
    log(folder, issue(2, summary=clustered(950), days=1), days=1)
    assert asked(folder).later == ()
    assert terms(folder, 2)["later"] == (1.0, "no evidence since then shows less")


def test_what_was_revoked_or_superseded_since_still_counts_and_without_its_file_there_is_no_score(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1, summary=clustered(950)))
    log(folder, bad := issue(2, summary=clustered(600), days=1), days=1)
    with Registry.open(folder, heads=heads(folder)) as registry:
        revoke(registry, "1", reason="agent-withdrawn", detail=None, hand=hand(days=1))
    log(folder, issue(1, summary=clustered(950), days=2, supersedes=bad.passport_id), days=2)
    assert terms(folder, 3)["later"][1].startswith("entry 1 shows less")
    with reading(folder) as whole:
        gone = whole.history(LINEAGE).passports[1].file.sha256
    (folder / "blobs" / gone[:2] / gone).unlink()
    found = scored(folder, 3)
    assert found.value is None
    assert "entries 1 rest on" in (found.reason or "")


# Draws of whole lineages

KINDS = {
    "good": clustered(950),
    "worse": clustered(800),
    "bad": clustered(600),
    "few": TINY,
}
brought = st.lists(st.tuples(st.sampled_from(sorted(KINDS)), st.integers(1, 9)), min_size=1, max_size=4)
slow = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def lineage(folder: Path, found: list[tuple[str, int]]) -> int:
    """Log evidence 1, 2, … of these kinds, each so many days after the one before; return the last day."""
    new(folder)
    day = 0
    for number, (kind, days) in enumerate(found, start=1):
        day += days
        log(folder, issue(number, summary=KINDS[kind], days=day), days=day)
    return day


@slow
@given(brought, st.data())
def test_no_evidence_of_the_lineage_raises_it_when_it_is_brought_again(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[str, int]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("again") / "r"
    day = lineage(folder, found) + 1
    before = valued(folder, day)
    again = data.draw(st.integers(1, len(found)))
    profile = data.draw(st.sampled_from(["hb-eval-2026", "hb-eval-2025"]))
    one = issue(again, summary=KINDS[found[again - 1][0]], days=day, attempt=9, name=profile)
    log(folder, one, days=day)
    assert valued(folder, day) <= before * (1 + 1e-12), (found, again, profile)


@slow
@given(brought, st.data())
def test_no_passport_on_few_runs_in_between_raises_it(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[str, int]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("few")
    place = data.draw(st.integers(0, len(found) - 1))
    day = lineage(folder / "without", found)
    lineage(folder / "with", [*found[:place], ("few", 0), *found[place:]])
    without, with_ = (valued(folder / name, day + 1) for name in ("without", "with"))
    assert with_ <= without * (1 + 1e-12), (found, place)


@slow
@given(brought, st.sampled_from(sorted(REVOKED)), st.data())
def test_no_revocation_of_an_earlier_passport_raises_it(
    tmp_path_factory: pytest.TempPathFactory,
    found: list[tuple[str, int]],
    reason: str,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("revoked") / "r"
    found = [*found, ("good", 1)]
    day = lineage(folder, found) + 1
    before = valued(folder, day)
    with Registry.open(folder, heads=heads(folder)) as registry:
        entries = [one.index for one in registry.entries() if one.found.passport is not None]
        index = data.draw(st.sampled_from(entries[:-1]))
        revoke(registry, str(index), reason=reason, detail=None, hand=hand(days=day))  # type: ignore[arg-type]
    assert valued(folder, day) <= before


@slow
@given(brought, st.integers(0, 60), st.integers(0, 60))
def test_no_time_raises_it(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[str, int]], one: int, other: int
) -> None:
    folder = tmp_path_factory.mktemp("time") / "r"
    day = lineage(folder, found)
    of = asked(folder)
    sooner, later = (score(of, at=NOW + (day + days) * DAY).value for days in sorted((one, other)))
    assert sooner is not None
    assert later is not None
    assert later <= sooner


# How old several bundles are

times = st.integers(0, 400)
bundles = st.lists(
    st.tuples(times, st.integers(1, 50).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))),
    min_size=1,
    max_size=6,
)


def aged(found: list[tuple[int, tuple[int, int]]]) -> float:
    """How old evidence is, in days at day 400, by (day, (runs, good ones)) of its bundles."""
    parts = {str(n): _Bundle(runs, good, None) for n, (_, (runs, good)) in enumerate(found)}
    appeared: Mapping[str, datetime] = {str(n): NOW + day * DAY for n, (day, _) in enumerate(found)}
    side = _Side(None, "x", parts, None, None)  # type: ignore[arg-type]
    return (NOW + 400 * DAY - _age(side, appeared)) / timedelta(days=1)


@given(bundles, st.data())
def test_no_failure_makes_evidence_younger_in_whatever_bundle(
    found: list[tuple[int, tuple[int, int]]], data: st.DataObject
) -> None:
    before = aged(found)
    kind = data.draw(st.sampled_from(["lost", "failing", "fresh"]))
    place = data.draw(st.integers(0, len(found) - 1))
    day, (runs, good) = found[place]
    more = data.draw(st.integers(1, 100))
    if kind == "fresh":
        worse = [*found, (data.draw(times), (more, 0))]
    elif kind == "failing":
        worse = [*found[:place], (day, (runs + more, good)), *found[place + 1 :]]
    else:
        worse = [*found[:place], (day, (runs, good - min(good, more))), *found[place + 1 :]]
    assert aged(worse) >= before - 1e-6, (kind, place, more)


@given(bundles)
def test_it_is_the_earliest_mean_that_its_good_runs_can_have(
    found: list[tuple[int, tuple[int, int]]],
) -> None:
    total = sum(good for _, (_, good) in found)
    days = sorted(day for day, (runs, _) in found for _ in range(runs))
    mean = sum(days[:total]) / total if total else days[0]
    assert aged(found) == pytest.approx(400 - mean, abs=1e-6)
    for order in list(permutations(found))[:6]:
        assert aged(list(order)) == pytest.approx(aged(found), abs=1e-6)


def test_fresh_runs_that_all_fail_do_not_make_it_younger() -> None:
    assert aged([(0, (1000, 950)), (300, (400, 0))]) == aged([(0, (1000, 950))]) == 400
    assert aged([(0, (1000, 950)), (300, (400, 400))]) == pytest.approx(400 - 300 * 350 / 1350)


def test_what_was_pooled_is_no_later_evidence_and_what_is_of_one_time_is() -> None:
    appeared = {"a": NOW, "b": NOW, "c": NOW + DAY}

    def on(*names: str) -> _Side:
        return _Side(None, "+".join(names), {name: _Bundle(1, 1, None) for name in names}, None, None)  # type: ignore[arg-type]

    assert not _is_recent(on("b"), on("a", "b"), appeared)
    assert _is_recent(on("c"), on("a", "b"), appeared)
    assert _is_recent(on("b"), on("a"), appeared)
    assert _is_recent(on("a"), on("b"), appeared)
    assert not _is_recent(on("a"), on("c"), appeared)


def test_one_more_failing_run_does_not_let_worse_evidence_be_forgotten(tmp_path: Path) -> None:
    values = []
    for name, last in (("again", 1), ("and a failing run", 3)):
        new(tmp_path / name)
        good, bad = begun(clustered(950), -9), begun(clustered(600), -9)
        log(tmp_path / name, issue(1, summary=good))
        log(tmp_path / name, issue(2, summary=bad, days=1), days=1)
        worse = good if last == 1 else begun(clustered(949), -9)
        log(tmp_path / name, issue(last, summary=worse, days=2), days=2)
        values.append(valued(tmp_path / name, 3))
    assert values[1] <= values[0]


def test_an_attempt_counts_different_evidence_under_its_own_profile() -> None:
    def under(profile: str, evidence: str) -> _Side:
        issued = SimpleNamespace(claims=SimpleNamespace(profile=profile))
        return _Side(issued, evidence, {}, None, None)  # type: ignore[arg-type]

    sides = [under("p", "a"), under("q", "b"), under("p", "c"), under("p", "a"), under("q", "a")]
    assert [_attempt(one, sides) for one in sides] == [2, 2, 2, 2, 2]
    assert [_attempt(one, sides[:2]) for one in sides[:2]] == [1, 1]


def test_a_loss_in_small_steps_is_a_loss(tmp_path: Path) -> None:
    for folder, counts in ((tmp_path / "r", range(970, 865, -15)), (tmp_path / "at once", (970, 880))):
        new(folder)
        for number, successes in enumerate(counts, 1):
            log(folder, issue(number, summary=clustered(successes), days=number), days=number)
    assert terms(tmp_path / "r", 8)["drift"][1].startswith("6 comparisons: 1 DRIFTED, 1 LOWER; ")
    assert valued(tmp_path / "r", 8) <= valued(tmp_path / "at once", 8)
