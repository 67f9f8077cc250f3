"""What a signed statement cannot say: tiers that are none, numbers without end, rows met by no bound."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from certkit.ground import canonical
from certkit.ground.errors import NegativeError
from certkit.passport import payload, statement
from tests.support import passport_parts as maker
from tests.support.agreeing import agree
from tests.support.making import issued

if TYPE_CHECKING:
    from collections.abc import Callable


def document() -> dict[str, Any]:
    found: dict[str, Any] = canonical.loads(issued().payload)
    return found


def read(found: dict[str, Any]) -> statement.Statement:
    return payload.read(canonical.canonical(found))


def refused(found: dict[str, Any]) -> str:
    with pytest.raises(NegativeError) as caught:
        read(found)
    assert caught.value.code == "passport.statement"
    return caught.value.message


def row_of(found: dict[str, Any], metric: str = "r_op") -> dict[str, Any]:
    return next(row for row in found["predicate"]["criteria"] if row["metric"] == metric)


@pytest.mark.parametrize("key", ["09", "0", "10", "٣", "1\n", "", "9" * 5_000])
def test_a_tier_is_one_digit_from_1_to_9(key: str) -> None:
    found = document()
    tiers = row_of(found)["tiers"]
    tiers[key] = tiers.pop("3")
    refused(found)


def long_value(found: dict[str, Any], number: str) -> None:
    row_of(found)["value"] = f"{number}.000000"


def long_threshold(found: dict[str, Any], number: str) -> None:
    row_of(found)["tiers"]["1"]["threshold"] = f"{number}.000000"


@pytest.mark.parametrize("put", [long_value, long_threshold])
def test_a_number_of_thousands_of_digits_is_refused(put: Callable[[dict[str, Any], str], None]) -> None:
    found = document()
    put(found, "1" * 5_000)
    assert "matching regex" in refused(found)


@pytest.mark.parametrize(
    ("metric", "operator", "threshold", "possible"),
    [
        ("safe_halt_protocol", "is", True, True),
        ("safe_halt_on_risk", ">=", "1.000000", True),  # no bound reaches a rule asked of every run
        ("csi", ">=", "0.600000", True),  # no bound is known
        ("r_op", ">=", "0.900000", False),
        ("ti", ">=", "1.000000", False),
        ("violations", "<=", "1.000000", False),
    ],
)
def test_a_row_is_met_without_a_bound_only_where_there_is_none(
    metric: str,
    operator: Any,
    threshold: Any,
    possible: bool,  # noqa: FBT001
) -> None:
    bounded = statement.Bound(status="met", confidence="0.990000", rests_on="every run, no bound")
    row = statement.RowAtTier(operator=operator, threshold=threshold, table="met", bounded=bounded)
    assert payload.possible(criterion(metric, row, threshold), row) is possible


def criterion(metric: str, row: statement.RowAtTier, value: Any = "0.750000") -> statement.CriterionClaim:
    return statement.CriterionClaim(
        id="x",
        metric=metric,
        unit="fraction",
        state="measured",
        value=value,
        counts={},
        provisional=False,
        tiers={"1": row},
    )


def test_a_bound_that_was_taken_out_of_a_row_is_missed() -> None:
    found = document()
    rows = [row["tiers"].values() for row in found["predicate"]["criteria"] if row["metric"] == "r_op"]
    one = next(one for row in rows for one in row)
    one["bounded"] = {"status": "met", "confidence": "0.900000"}
    assert "cannot stand so with its value and bound" in refused(found)


def test_the_same_statement_untouched_is_read() -> None:
    assert read(document()).predicate.criteria


def whole(found: dict[str, Any]) -> tuple[int, int]:
    """Return the successes and runs under faults, over everything."""
    cells = found["predicate"]["profile_of_reliability"]["cells"]
    faults = [cell for cell in cells if cell["condition"] != "nominal"]
    return sum(cell["successes"] for cell in faults), sum(cell["runs"] for cell in faults)


def digit(text: str, change: int) -> str:
    """Return a decimal with its last digit so much higher."""
    return f"{Decimal(text) + change * Decimal('0.000001'):f}"


COUNTED: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a better rate than was counted": (
        lambda d: row_of(d).update(value="0.999999"),
        "criteria r_op value: claimed 0.999999, the rest gives",
    ),
    "a digit more": (
        lambda d: row_of(d).update(value=digit(row_of(d)["value"], 1)),
        "criteria r_op value: claimed 0.",
    ),
    "a digit less": (
        lambda d: row_of(d).update(value=digit(row_of(d)["value"], -1)),
        "criteria r_op value: claimed 0.",
    ),
    "a success more": (
        lambda d: row_of(d)["counts"].update(successes=whole(d)[0] + 1),
        "criteria r_op",
    ),
    "no count of successes": (lambda d: row_of(d).update(counts={}), "criteria r_op"),
    "a run more": (lambda d: row_of(d).update(n=whole(d)[1] + 1), "criteria r_op"),
    "no number of runs": (lambda d: row_of(d).pop("n"), "criterion r_op has more successes"),
    "a run more in the row and in the evidence": (
        lambda d: (
            row_of(d).update(n=whole(d)[1] + 1),
            d["predicate"]["evidence"].update(
                fault_runs=whole(d)[1] + 1, records=d["predicate"]["evidence"]["records"] + 1
            ),
        ),
        "evidence fault_runs: claimed",
    ),
    "no integers": (
        lambda d: (
            d["predicate"]["profile_of_reliability"].update(cells=[]),
            d["predicate"].update(known_failure_modes=[]),
        ),
        "its task table does not count",
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_the_rate_under_faults_is_that_of_its_integers(name: str) -> None:
    change, words = COUNTED[name]
    found = document()
    change(found)
    assert refused(found).startswith(words)


def test_a_rate_is_written_with_six_digits() -> None:
    row, total = row_of(document()), whole(document())
    exact = Fraction(*total)
    assert Fraction(row["value"]) != exact
    assert abs(Fraction(row["value"]) - exact) <= Fraction(1, 2 * 10**6)


@pytest.mark.parametrize("name", ["nominal_runs", "fault_runs"])
def test_the_runs_of_the_evidence_are_those_of_the_cells(name: str) -> None:
    found = document()
    found["predicate"]["evidence"][name] += 1
    found["predicate"]["evidence"]["records"] += 1
    for row in found["predicate"]["criteria"]:
        row["state"] = "partial" if row["metric"] == "r_op" else row["state"]  # its own counts say the same
    assert refused(found).startswith(f"evidence {name}: claimed")


@pytest.mark.parametrize(
    ("operator", "threshold", "status", "possible"),
    [
        (operator, threshold, status, possible)
        for operator, met, not_met in (
            (">", {-1, 0}, {0, 1}),
            (">=", {-1, 0}, {0, 1}),
            ("<", {0, 1}, {-1, 0}),
            ("<=", {0, 1}, {-1, 0}),
        )
        for status, good in (("met", met), ("not_met", not_met))
        for threshold in (-1, 0, 1)
        for possible in (threshold in good,)
    ],
)
def test_a_value_and_a_bound_that_are_written_like_the_threshold_may_lie_on_either_side(
    operator: Any,
    threshold: int,
    status: Any,
    possible: bool,  # noqa: FBT001
) -> None:
    asked = digit("0.750000", threshold)
    bound = statement.Bound(status=status, bound="0.750000", confidence="0.950000")
    row = statement.RowAtTier(operator=operator, threshold=asked, table=status)
    for bounded in (None, bound):
        judged = structs.replace(row, bounded=bounded)
        assert payload.possible(criterion("gap", judged), judged) is possible


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("2026-03-01T12:00:00Z", None),
        ("2026-03-01T11:59:59Z", "the validity ends before it begins, or is longer than 366 days"),
        ("2027-03-02T12:00:00Z", None),  # 366 days
        ("2027-03-02T12:00:01Z", "the validity ends before it begins, or is longer than 366 days"),
    ],
)
def test_a_validity_is_of_a_moment_at_least_and_of_366_days_at_most(end: str, words: str | None) -> None:
    found = document()
    assert found["predicate"]["validity"]["not_before"] == "2026-03-01T12:00:00Z"
    found["predicate"]["validity"]["not_after"] = end
    if words is None:
        assert read(found).predicate.validity.retest_triggers
    else:
        assert refused(found) == words


def test_no_tier_is_met_by_no_records() -> None:
    attested = {
        "id": "safe_halt",
        "metric": "safe_halt",
        "unit": "boolean",
        "state": "measured",
        "value": True,
        "counts": {},
        "provisional": False,
        "tiers": {"1": {"operator": "is", "threshold": True, "table": "met"}},
    }
    found = maker.statement(
        criteria=[attested],
        known_failure_modes=[],
        profile_of_reliability={"tasks": 0, "domains": [], "cells": [], "columns": [], "rows": []},
        scope={"domains": [], "fault_mix": {}, "dates": {}, "exclusions": []},
    )
    counts = dict.fromkeys(("records", "nominal_runs", "fault_runs", "harness_errors", "novel_fault_runs"), 0)
    found["predicate"]["evidence"] |= counts | {"records": 1, "novel_fault_runs": 1}
    found["predicate"]["assessment"]["status"] = "contested"  # no run was made under a fault
    agree(found)
    assert read(found).predicate.assessment.tier == 1
    found["predicate"]["evidence"] |= counts
    assert "of no tier" in refused(found)


def test_a_tier_is_met_only_with_all_below_it() -> None:
    found = maker.statement()
    predicate = found["predicate"]
    row = predicate["criteria"][0]["tiers"]["1"]
    predicate["criteria"][0]["tiers"] = {
        "1": {**row, "threshold": "0.800000", "table": "not_met"},
        "2": {**row, "threshold": "0.600000", "table": "met"},
    }
    predicate["assessment"] |= {"tier": 2, "table": {"tier": 2}, "required_tier": 2}
    assert "of no tier" in refused(found)
    predicate["assessment"] |= {"tier": 0, "table": {"tier": 0}, "status": "not_met", "binding": ["r_op"]}
    agree(found)
    assert read(found).predicate.assessment.status == "not_met"
