"""The order of the runs in time, and why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support import bundles
from tests.support.bundles import Run, run

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.summary.summary import Summary


def at(minute: int, offset: str = "Z") -> str:
    return f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00{offset}"


def summary(root: Path, *fields: dict[str, Any]) -> Summary:
    return bundles.summary(bundles.of(root / "b", [run(i, **item) for i, item in enumerate(fields)]))


def wins(found: Summary) -> str:
    return "".join("+" if item.success else "-" for item in found.order.latest)


LOSS = {"outcome": "failure"}


def test_sequence_comes_first_even_against_the_clock(tmp_path: Path) -> None:
    found = summary(
        tmp_path,
        {"sequence": 30, "started_at": at(1)},
        {"sequence": 10, "started_at": at(2), **LOSS},
        {"sequence": 20, "started_at": at(3)},
    )
    assert (found.order.by, wins(found)) == ("sequence", "-++")
    # By sequence the clock says 2, 3, 1: one step back.
    assert found.times.backwards == 1


def test_the_clock_orders_where_no_sequence_does_and_compares_instants(tmp_path: Path) -> None:
    found = summary(
        tmp_path,
        {"started_at": at(120, "+02:00")},  # midnight
        {"started_at": at(1), **LOSS},
        {"started_at": at(0, "-00:02")},  # two past midnight
    )
    assert (found.order.by, wins(found)) == ("started_at", "+-+")


@pytest.mark.parametrize(
    ("fields", "reason", "counts"),
    [
        ([{}, {}], "unordered", {"missing": 2, "runs": 2}),
        ([{"sequence": 1}, {}], "unordered", {"missing": 1, "runs": 2}),
        ([{"sequence": 1}, {"started_at": at(1)}], "mixed", {"sequence": 1, "runs": 2}),
        ([{"started_at": at(60, "+01:00")}, {"started_at": at(0)}], "shared-times", {"shared": 1, "runs": 2}),
        ([], "no-runs", {}),
    ],
)
def test_the_reason_why_there_is_no_order_is_told(
    tmp_path: Path, fields: list[dict[str, Any]], reason: str, counts: dict[str, int]
) -> None:
    order = summary(tmp_path, *fields).order
    assert (order.by, order.reason, dict(order.counts), order.latest) == (None, reason, counts, ())


def test_held_out_runs_have_no_part_in_the_order(tmp_path: Path) -> None:
    found = summary(tmp_path, {"sequence": 1}, {"split": "novel_fault"}, {"sequence": 3, **LOSS})
    assert (found.order.by, found.order.runs, wins(found)) == ("sequence", 2, "+-")


def test_the_latest_are_the_last_hundred(tmp_path: Path) -> None:
    fields: list[Run] = [{"sequence": i} | (LOSS if i == 149 or i < 51 else {}) for i in range(150)]
    found = summary(tmp_path, *fields[::-1])
    assert wins(found) == "-" + "+" * 98 + "-"
