"""What a signed statement cannot say: tiers that are none, numbers without end, rows met by no bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from certkit import canonical
from certkit.assessment.catalogue import CATALOGUE
from certkit.errors import NegativeError
from certkit.passport import agreement, claim, statement
from tests.unit.passport.making import issued

if TYPE_CHECKING:
    from collections.abc import Callable


def document() -> dict[str, Any]:
    found: dict[str, Any] = canonical.loads(issued().payload)
    return found


def read(found: dict[str, Any]) -> statement.Statement:
    return statement.read(canonical.canonical(found))


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


def long_n_eff(found: dict[str, Any], number: str) -> None:
    row_of(found)["tiers"]["1"]["bounded"]["n_eff"] = f"{number}.000000"


def long_sum(found: dict[str, Any], number: str) -> None:
    found["predicate"]["profile_of_reliability"]["sums"][0]["yy"] = number


@pytest.mark.parametrize("put", [long_value, long_threshold, long_n_eff, long_sum])
def test_a_number_of_thousands_of_digits_is_refused(put: Callable[[dict[str, Any], str], None]) -> None:
    found = document()
    put(found, "1" * 5_000)
    assert "matching regex" in refused(found)


def met_without_bound(metric: str, **row: Any) -> bool:
    """Tell whether a row may be met by bounds without one."""
    method = row.pop("method", None)
    told = statement.Bound(status="met", confidence="0.950000", method=method)
    given = {"operator": ">=", "threshold": "1.000000", "table": "met", **row}
    return agreement.carried(metric, statement.RowAtTier(bounded=told, **given))


def test_only_rows_that_have_no_bound_are_met_without_one() -> None:
    every = agreement.EVERY_RUN
    assert met_without_bound("csi", threshold="0.700000")
    assert met_without_bound("csi_windowed", threshold="0.700000")
    assert met_without_bound("r_op", method=every)
    assert met_without_bound("ti", threshold="5.000000", method=every)
    assert met_without_bound("frr", operator="is", threshold=True)
    assert not met_without_bound("r_op", threshold="0.850000")
    assert not met_without_bound("r_op", threshold="0.850000", method=every)
    assert not met_without_bound("r_op", method="beta")
    assert not met_without_bound("r_op", operator="<=", method=every)
    assert not met_without_bound("r_op", table="not_met", method=every)
    assert not met_without_bound("ti", method=every)


def test_what_is_said_of_metrics_here_is_what_the_catalogue_says() -> None:
    most = {name: claim.decimal(metric.high) for name, metric in CATALOGUE.items()}
    assert {name: high for name, high in most.items() if high not in {None, "1.000000"}} == agreement.MOST
    assert CATALOGUE.keys() >= agreement.POINTS


def test_a_bound_that_was_taken_out_of_a_row_is_missed() -> None:
    found = document()
    rows = [row["tiers"].values() for row in found["predicate"]["criteria"] if row["metric"] == "r_op"]
    one = next(one for row in rows for one in row)
    one["bounded"] = {"status": "met", "confidence": "0.900000"}
    assert "is met by bounds, which its bound is not" in refused(found)


def test_the_same_statement_untouched_is_read() -> None:
    assert read(document()).predicate.criteria
