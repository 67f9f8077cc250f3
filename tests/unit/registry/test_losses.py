"""What the score counts of a loss: no failure of the latest passport raises it, whatever else it hides."""

from __future__ import annotations

import itertools
from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from certkit.evidence.summary.summary import CLUSTER_FIELDS
from certkit.registry.steps import steps
from tests.support import build as assessments
from tests.support import bundles
from tests.support import drift_sides as drifts
from tests.support.lineages import issue, log, new
from tests.support.scores import asked, scored, valued

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from certkit.assessment.drift.standing import Standing
    from certkit.assessment.reliability import Moments
    from certkit.evidence.summary.summary import Summary
    from certkit.registry.score import Step

Cells = dict[tuple[str, str], dict[int, tuple[int, int]]]
"""Of every domain and condition, the (runs, good ones) of every cluster."""


def measured(cells: Cells, *, unintended: Callable[[int], int] | None = None) -> Summary:
    """The summary of such runs, whose clusters may span cells.

    Of the good ones under faults of each cluster, so many recovered without intent, and all others with it.
    """
    none = dict.fromkeys(CLUSTER_FIELDS, 0)
    order = sorted(cells)
    tallies, rows = [], []
    for at, (domain, condition) in enumerate(order):
        found = cells[domain, condition]
        runs, good = (sum(column) for column in zip(*found.values(), strict=True))
        each = [{"runs": n, "success": y, "failure": n - y} for n, y in found.values()]
        if unintended is not None and condition != "nominal":
            each = [
                one | {"irs_no": (no := unintended(one["success"])), "irs_yes": one["success"] - no}
                for one in each
            ]
        more = {name: sum(one.get(name, 0) for one in each) for name in ("irs_yes", "irs_no")}
        tallies.append(assessments.cell(domain, condition, assessments.outcomes(runs, good, **more)))
        rows += [(at, name, name, none | one) for name, one in zip(found, each, strict=True)]
    return assessments.summary(tallies, rows=assessments.clusters(rows))


def even(good: int, *, first: int = 0, count: int = 20, runs: int = 10) -> dict[int, tuple[int, int]]:
    """So many clusters, of which half have one good run more and half one fewer."""
    return {first + n: (runs, good + (1 if n % 2 else -1)) for n in range(count)}


def lineage(folder: Path, *passports: Cells) -> float:
    """Log passports on such runs, one a day; return the score on the day after."""
    new(folder)
    for number, cells in enumerate(passports, start=1):
        log(folder, issue(number, summary=measured(cells), days=number), days=number)
    return valued(folder, len(passports) + 1)


def result(folder: Path) -> str:
    return asked(folder).drift[-1].result


NOMINAL: Cells = {("bank", "nominal"): even(9, first=900), ("shop", "nominal"): even(9, first=900)}
FAULTS: Cells = {
    ("bank", "tool_failure"): even(9),
    ("bank", "latency"): even(9, first=20),
    ("shop", "tool_failure"): even(9, first=100),
    ("shop", "latency"): even(9, first=120),
}
FIRST: Cells = {**NOMINAL, **FAULTS}


def test_failures_that_hide_what_one_domain_lost_do_not_raise_the_score(tmp_path: Path) -> None:
    found = []
    for good in (48, 30, 12, 0):
        # every cluster of a domain loses a little, one of them ever more; the other domain makes up for it
        shop = {100 + n: (10, 8 if n % 2 else 7) for n in range(20)} | {100: (60, good)}
        better = {key: even(19, first=10**3, runs=20, count=30) for key in FAULTS if key[0] == "bank"}
        value = lineage(tmp_path / str(good), FIRST, {**FIRST, **better, ("shop", "tool_failure"): shop})
        found.append((result(tmp_path / str(good)), value))
    values = [value for _, value in found]
    assert values == sorted(values, reverse=True)
    assert {"DRIFTED", "UNDERPOWERED"} == {kind for kind, _ in found}, found


def test_failing_runs_where_there_were_none_do_not_end_what_could_not_be_compared(tmp_path: Path) -> None:
    # few runs of a condition, so that their loss is within the noise of every other row
    few = {**FIRST, ("shop", "outage"): {500: (2, 2)}, ("bank", "outage"): even(9, first=600)}
    lacking = {key: of for key, of in few.items() if key != ("shop", "outage")}
    values = [
        lineage(tmp_path / "lacking", few, lacking),
        lineage(tmp_path / "failing", few, {**lacking, ("shop", "outage"): {500: (2, 0)}}),
        lineage(tmp_path / "more", few, {**lacking, ("shop", "outage"): {500: (300, 0)}}),
    ]
    assert [result(tmp_path / name) for name in ("lacking", "failing")] == ["NOT_COMPARABLE", "STABLE"]
    assert values == sorted(values, reverse=True)
    # where a whole domain is lacking, it is as bad as if all of it had failed
    alone = {key: of for key, of in FIRST.items() if key[0] == "bank"}
    assert lineage(tmp_path / "alone", FIRST, alone) <= 0.8 * lineage(tmp_path / "both", FIRST, FIRST)


def test_successes_without_intent_that_become_failures_hide_no_loss_of_intent(tmp_path: Path) -> None:
    """The criterion is over successes alone, and rises with such failures."""
    values = []
    for good in (9, 7, 6):
        folder = tmp_path / str(good)
        new(folder)
        later = {**NOMINAL, **{place: even(good, first=100 * n) for n, place in enumerate(FAULTS)}}
        log(folder, issue(1, summary=measured(FIRST, unintended=lambda good: good // 8)))
        worse = measured(later, unintended=lambda good: max(0, good - 6))
        log(folder, issue(2, summary=worse, days=1), days=1)
        values.append(valued(folder, 2))
    assert values == sorted(values, reverse=True)


def test_one_failing_run_where_nothing_was_shown_raises_nothing(tmp_path: Path) -> None:
    """Of runs under attack, of a domain's recoveries, and where harness errors were too many to judge."""

    def runs(attacked: int = 4, shop: int = 4, harness: int = 0, failing: str | None = None) -> Summary:
        def run(name: str, **more: Any) -> dict[str, Any]:
            domain = more.get("domain", "bank")
            return bundles.run(name, **({"domain": domain, "task_id": f"{domain}-{name[-2:]}"} | more))

        bank = {"condition": "tool_failure", "recovered": True}
        intent = {"memory_query_offset": 1, "memory_similarity": 0.95, "memory_modified": True}
        found = [run(f"n{n:03}", condition="nominal") for n in range(40)]
        found += [run(f"f{n:03}", **bank, **intent) for n in range(150)]
        found += [run(f"h{n:03}", condition="tool_failure", outcome="harness_error") for n in range(harness)]
        found += [run(f"a{n:03}", condition="adversarial") for n in range(attacked)]
        found += [run(f"s{n:03}", **bank, domain="shop") for n in range(shop)]
        if failing is not None:
            domain, condition = failing.split()
            found.append(run("x000", domain=domain, condition=condition, outcome="failure"))
        return bundles.summary(bundles.of(tmp_path / f"bundle{next(count)}", found))

    count = itertools.count()
    first = runs()
    for name, more, failing in (
        ("attacked", {"attacked": 0}, "bank adversarial"),
        ("domain", {"shop": 0}, "shop tool_failure"),
        ("harness", {"harness": 2}, "bank tool_failure"),
    ):
        values = []
        for kind in (None, failing):
            folder = tmp_path / f"{name} {kind}"
            new(folder)
            log(folder, issue(1, summary=first))
            log(folder, issue(2, summary=runs(**more, failing=kind), days=1), days=1)
            values.append(valued(folder, 2))
        assert values[1] <= values[0], name


def test_failing_runs_under_something_new_do_not_hide_a_loss_before_it(tmp_path: Path) -> None:
    bad = {**FIRST, ("shop", "latency"): even(3, first=120)}
    values = [
        lineage(tmp_path / "bad", FIRST, bad),
        lineage(tmp_path / "new", FIRST, {**bad, ("shop", "outage"): {500: (5, 0)}}),
        lineage(tmp_path / "newer", FIRST, {**bad, ("home", "outage"): {500: (5, 0)}}),
    ]
    kinds = [result(tmp_path / name) for name in ("bad", "new", "newer")]
    assert kinds == ["DRIFTED", "NOT_COMPARABLE", "NOT_COMPARABLE"]
    assert values[0] > values[1] >= values[2]
    more = lineage(tmp_path / "more", FIRST, {**FIRST, ("home", "outage"): {500: (5, 5)}})
    assert more < 0.81 * lineage(tmp_path / "same", FIRST, FIRST), "good ones are not known to be no worse"


def drift_term(folder: Path, days: float) -> tuple[float, str]:
    (term,) = (one for one in scored(folder, days).terms if one.name == "drift")
    return term.value, term.detail


def test_what_no_test_showed_is_forgotten_with_what_follows_and_a_drift_is_not(tmp_path: Path) -> None:
    for name, good, kind in (("chance", 8, "LOWER"), ("drift", 5, "DRIFTED")):
        folder = tmp_path / name
        lineage(folder, FIRST, {**FIRST, ("shop", "latency"): even(good, first=120)})
        value, detail = drift_term(folder, 3)
        margins = asked(folder).drift[0].margins
        assert detail == f"1 comparison: 1 {kind}; entry 1 lost {margins:.2f} margins of r_op in shop"
        assert 0.8 <= value < 1
        log(folder, issue(3, summary=measured(FIRST), days=3), days=3)
        told = detail.replace("1 comparison", "2 comparisons")
        assert drift_term(folder, 4) == ((value, told) if kind == "DRIFTED" else (1.0, "2 comparisons"))
        log(folder, issue(1, summary=measured(FIRST), days=4), days=4)
        # with older evidence again, all since then is recent
        assert drift_term(folder, 5) == (value, detail.replace("1 comparison", "3 comparisons"))


def test_a_loss_is_charged_once_however_often_its_evidence_is_issued(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    worse = {**FIRST, ("shop", "latency"): even(8, first=120)}
    lineage(folder, FIRST, worse)
    before, _ = drift_term(folder, 3)
    for day in (3, 4):
        log(folder, issue(2, summary=measured(worse), days=day), days=day)
    value, detail = drift_term(folder, 5)
    assert (value, detail.partition(";")[0]) == (before, "3 comparisons: 1 LOWER")
    assert 0.8 < value < 1


def test_whoever_began_low_has_lost_less(tmp_path: Path) -> None:
    """No score that a loss lowers could do without: what was lost is less where less was there."""
    fell = lineage(tmp_path / "fell", FIRST, {**NOMINAL, **dict.fromkeys(FAULTS, even(6))})
    low = {**NOMINAL, **dict.fromkeys(FAULTS, even(6))}
    assert fell < lineage(tmp_path / "low", low, low)


def told(*standings: Standing) -> list[Step]:
    """The steps of a lineage of which the last passport is the only recent one."""
    claims = [SimpleNamespace(passport_id=f"sha256:{number}") for number in range(len(standings))]
    passports = [SimpleNamespace(index=number, claims=one) for number, one in enumerate(claims)]
    history: Any = SimpleNamespace(passports=passports, drifts=())
    return list(steps(history, standings, {len(standings) - 1}))


def at(rate: Fraction, *more: Moments, **changes: Any) -> Standing:
    """A standing of so many runs that any loss of the margin shows."""
    return drifts.side({("d", "latency"): drifts.even(rate, clusters=1000, size=100)}, *more, **changes)


def test_steps_that_are_each_too_small_add_up_since_the_highest() -> None:
    slowly = [at(Fraction(percent, 100)) for percent in (88, 90, 88, 86, 84, 83)]
    found = told(*slowly)
    assert {one.result for one in found} == {"STABLE"}
    assert [one.margins for one in found[:-1]] == [0] * 4
    assert found[-1].margins == pytest.approx((0.90 - 0.83) / 0.05, abs=0.02)
    assert (found[-1].left, found[-1].row) == (0.8, "r_op, since the highest")
    # once a drift was told, they are counted from there
    fallen = told(*slowly, at(Fraction(75, 100)), at(Fraction(74, 100)))
    assert [one.result for one in fallen[-2:]] == ["DRIFTED", "STABLE"]
    assert fallen[-1].margins == pytest.approx(0.01 / 0.05, abs=0.02)


def test_a_drift_of_another_criterion_is_charged_once_it_has_been_followed() -> None:
    """Failures of the latest passport could take it away: a run that fails may show few violations."""
    steady, worse = (
        at(Fraction(9, 10), *drifts.both("violations", [(n + i % 2, 10) for i in range(60)])) for n in (1, 4)
    )
    assert [(one.result, one.left) for one in told(steady, worse)] == [("DRIFTED", 1)]
    assert [(one.result, one.left) for one in told(steady, worse, worse)] == [("DRIFTED", 0.8), ("STABLE", 1)]


def test_another_agent_and_what_cannot_be_compared_cost_whatever_was_measured() -> None:
    same = at(Fraction(9, 10))
    other = structs.replace(same, identity="two")
    assert [(one.result, one.left) for one in told(same, other, other)] == [
        ("IDENTITY_CHANGED", 0.95),
        ("STABLE", 1),
    ]
    assert [(one.result, one.left) for one in told(same, structs.replace(same, success_rule="other"))] == [
        ("NOT_COMPARABLE", 0.8)
    ]
    # beside the one before, only what can be compared counts
    assert [one.left for one in told(structs.replace(same, success_rule="other"), same, same)] == [0.8, 1]


# Draws

PLACES = [
    (domain, condition) for domain in ("bank", "shop") for condition in ("latency", "nominal", "outage")
]
cluster = st.sampled_from([1, 2, 10, 40]).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n) | st.just(n))
)
clusters = st.dictionaries(st.integers(0, 9), cluster, min_size=1, max_size=6)
drawn = st.dictionaries(st.sampled_from(PLACES), clusters, min_size=1, max_size=6).map(
    lambda cells: {("bank", "latency"): {0: (10, 9), 1: (10, 8)}, **cells}
)


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(drawn | st.just(FIRST), min_size=1, max_size=2), drawn, st.none() | st.integers(0, 12), st.data()
)
def test_no_failure_of_the_latest_passport_raises_the_score_of_its_lineage(
    tmp_path_factory: pytest.TempPathFactory,
    earlier: list[Cells],
    latest: Cells,
    no: int | None,
    data: st.DataObject,
) -> None:
    worse = {place: dict(found) for place, found in latest.items()}
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from([*PLACES, ("home", "latency"), ("bank", "overload")]))
        name, count = data.draw(st.integers(0, 11)), data.draw(st.integers(1, 60))
        runs, good = worse.setdefault(place, {}).get(name, (0, 0))
        if good and data.draw(st.booleans()):
            worse[place][name] = (runs, good - min(good, count))
        else:
            worse[place][name] = (runs + count, good)
    # those without intent are the first to fail
    unintended = None if no is None else (lambda good: max(0, good - no))
    values = []
    for cells in (latest, worse):
        folder = tmp_path_factory.mktemp("r") / "r"
        new(folder)
        for number, one in enumerate((*earlier, cells), start=1):
            summary = measured(one, unintended=unintended)
            log(folder, issue(number, summary=summary, days=number), days=number)
        values.append(valued(folder, len(earlier) + 2))
    assert values[1] <= values[0] * (1 + 1e-9)
