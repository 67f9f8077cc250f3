"""What the score counts of a loss: no failure of the latest passport raises it, whatever else it hides."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from certkit.evidence.summary import CLUSTER_FIELDS
from certkit.registry.steps import steps
from tests.unit.assessment import build as assessments
from tests.unit.assessment import test_drift as drifts
from tests.unit.registry.lineages import issue, log, new
from tests.unit.registry.test_past import asked, scored, valued

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.assessment.drift.standing import Standing
    from certkit.evidence.summary import Summary
    from certkit.registry.score import Step

Cells = dict[tuple[str, str], dict[int, tuple[int, int]]]
"""Of every domain and condition, the (runs, good ones) of every cluster."""


def measured(cells: Cells) -> Summary:
    """The summary of such runs, whose clusters may span cells."""
    none = dict.fromkeys(CLUSTER_FIELDS, 0)
    order = sorted(cells)
    tallies, rows = [], []
    for at, (domain, condition) in enumerate(order):
        found = cells[domain, condition]
        runs, good = (sum(column) for column in zip(*found.values(), strict=True))
        tallies.append(assessments.cell(domain, condition, assessments.outcomes(runs, good)))
        rows += [
            (at, name, name, none | {"runs": n, "success": y, "failure": n - y})
            for name, (n, y) in found.items()
        ]
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


def at(rate: Fraction, **changes: Any) -> Standing:
    """A standing of so many runs that any loss of the margin shows."""
    return drifts.side({("bank", "latency"): drifts.even(rate, clusters=1000, size=100)}, **changes)


def test_steps_that_are_each_too_small_add_up_since_the_highest() -> None:
    slowly = [at(Fraction(percent, 100)) for percent in (88, 90, 88, 86, 84, 83)]
    found = told(*slowly)
    assert {one.result for one in found} == {"STABLE"}
    assert [one.margins for one in found[:-1]] == [0] * 4
    assert found[-1].margins == pytest.approx((0.90 - 0.83) / 0.05, abs=0.02)
    assert (found[-1].left, found[-1].row) == (0.8, "r_op since the highest")
    # once a drift was told, they are counted from there
    fallen = told(*slowly, at(Fraction(75, 100)), at(Fraction(74, 100)))
    assert [one.result for one in fallen[-2:]] == ["DRIFTED", "STABLE"]
    assert fallen[-1].margins == pytest.approx(0.01 / 0.05, abs=0.02)


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


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(drawn | st.just(FIRST), min_size=1, max_size=2), drawn, st.data())
def test_no_failure_of_the_latest_passport_raises_the_score_of_its_lineage(
    tmp_path_factory: pytest.TempPathFactory, earlier: list[Cells], latest: Cells, data: st.DataObject
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
    folder = tmp_path_factory.mktemp("r")
    before, after = (lineage(folder / name, *earlier, one) for name, one in (("a", latest), ("b", worse)))
    assert after <= before * (1 + 1e-9)
