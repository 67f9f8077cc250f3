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
    return "".join("+" if item.success else "-" for item in found.window.latest)


LOSS = {"outcome": "failure"}


def test_sequence_comes_first_even_against_the_clock(tmp_path: Path) -> None:
    found = summary(
        tmp_path,
        {"sequence": 30, "started_at": at(1)},
        {"sequence": 10, "started_at": at(2), **LOSS},
        {"sequence": 20, "started_at": at(3)},
    )
    assert (found.window.order, wins(found)) == ("sequence", "-++")
    # By sequence the clock says 2, 3, 1: one step back.
    assert found.times.backwards == 1


def test_the_clock_orders_where_no_sequence_does_and_compares_instants(tmp_path: Path) -> None:
    found = summary(
        tmp_path,
        {"started_at": at(120, "+02:00")},  # midnight
        {"started_at": at(1), **LOSS},
        {"started_at": at(0, "-00:02")},  # two past midnight
    )
    assert (found.window.order, wins(found)) == ("started_at", "+-+")
    assert found.times.constant_interval == 60_000_000


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([{}, {}], "2 of 2 runs have neither"),
        ([{"sequence": 1}, {}], "1 of 2 runs have neither"),
        ([{"sequence": 1}, {"started_at": at(1)}], "others only a started_at"),
        ([{"started_at": at(60, "+01:00")}, {"started_at": at(0)}], "share their started_at"),
        ([], "no runs"),
    ],
)
def test_the_reason_why_there_is_no_order_is_told(
    tmp_path: Path, fields: list[dict[str, Any]], words: str
) -> None:
    window = summary(tmp_path, *fields).window
    assert window.order is None
    assert window.reason is not None
    assert words in window.reason
    assert (window.latest, window.stretches) == ((), ())


def test_held_out_runs_have_no_part_in_the_order(tmp_path: Path) -> None:
    found = summary(tmp_path, {"sequence": 1}, {"split": "novel_fault"}, {"sequence": 3, **LOSS})
    assert (found.window.order, found.window.runs, wins(found)) == ("sequence", 2, "+-")


def test_the_window_is_the_latest_hundred(tmp_path: Path) -> None:
    fields: list[Run] = [{"sequence": i} | (LOSS if i == 149 or i < 51 else {}) for i in range(150)]
    found = summary(tmp_path, *fields[::-1])
    assert wins(found) == "-" + "+" * 98 + "-"
    assert found.window.failures == 52
    assert found.window.failure_moment == sum(range(51)) + 149


def test_ten_parts_are_as_equal_as_can_be(tmp_path: Path) -> None:
    for count, sizes in ((9, ()), (10, (1,) * 10), (25, (2, 3) * 5), (109, (10,) + (11,) * 9)):
        found = summary(tmp_path / str(count), *({"sequence": i} for i in range(count)))
        assert tuple(sorted(part.runs for part in found.window.stretches)) == tuple(sorted(sizes))


def test_a_part_tells_which_domains_it_lacks(tmp_path: Path) -> None:
    fields = [{"sequence": i, "domain": f"d{i // 10}", "task_id": f"d{i // 10}/1"} for i in range(20)]
    assert [part.domains_missing for part in summary(tmp_path, *fields).window.stretches] == [1] * 10


def test_start_times_that_are_all_one_or_evenly_spaced_are_told(tmp_path: Path) -> None:
    same = summary(tmp_path / "same", *({"started_at": at(5)} for _ in range(4))).times
    assert (same.timed, same.distinct, same.constant_interval) == (4, 1, 0)
    uneven = summary(tmp_path / "uneven", *({"started_at": at(i * i)} for i in range(4))).times
    assert (uneven.distinct, uneven.constant_interval) == (4, None)
    two = summary(tmp_path / "two", {"started_at": at(0)}, {"started_at": at(1)}, {}).times
    assert (two.timed, two.constant_interval) == (2, None)
