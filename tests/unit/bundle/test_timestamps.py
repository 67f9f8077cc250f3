"""RFC 3339 times, many at once, against the standard library's one at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certkit.record.faults import Faults
from certkit.record.reader import RecordReader, check_line
from certkit.record.times import microseconds as from_datetime
from certkit.record.times import parse_times
from tests.support import bundles

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


offsets = st.integers(-(23 * 60 + 59), 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.datetimes(), offsets), min_size=1, max_size=20), st.sampled_from([0, 1, 3, 6]))
def test_times_are_those_of_the_standard_library(
    moments: list[tuple[datetime, timezone]], places: int
) -> None:
    unit = 10 ** (6 - places)
    times = [
        time.replace(tzinfo=zone, microsecond=time.microsecond // unit * unit if places else 0)
        for time, zone in moments
    ]
    texts = [_written(time, places) for time in times]
    found = parse_times(texts)
    assert found is not None
    assert found.tolist() == [microseconds(time) for time in times]
    assert [from_datetime(datetime.fromisoformat(text)) for text in texts] == found.tolist()


def _written(time: datetime, places: int) -> str:
    zone = time.strftime("%z")
    fraction = f".{time.microsecond:06}"[: places + 1] if places else ""
    return time.replace(tzinfo=None, microsecond=0).isoformat() + fraction + f"{zone[:3]}:{zone[3:]}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.000001Z", 1),
        ("1969-12-31T23:59:59.5z", -500_000),
        ("1970-01-01t01:00:00+01:00", 0),
        ("1970-01-01 00:00:00-00:01", 60_000_000),
        ("2000-02-29T00:00:00Z", 951_782_400_000_000),
        ("2024-12-31T23:59:59-23:59", 1_735_775_939_000_000),
    ],
)
def test_times_by_the_calendar(text: str, expected: int) -> None:
    found = parse_times([text])
    assert found is not None
    assert found.tolist() == [expected]


REFUSED = [
    "2026-01-01T00:00:00",
    "2026-01-01",
    "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-01-00T00:00:00Z",
    "2026-02-29T00:00:00Z",
    "1900-02-29T00:00:00Z",
    "2026-04-31T00:00:00Z",
    "2026-01-01T24:00:00Z",
    "2026-01-01T00:60:00Z",
    "2026-01-01T00:00:60Z",
    "0000-01-01T00:00:00Z",
    "2026-01-01T00:00:00+24:00",
    "2026-01-01T00:00:00+01:60",
    "2026-01-01T00:00:00.Z",
    "2026-01-01T00:00:00,5Z",
    "2026-1-01T00:00:00Z0",
    "2026/01/01T00:00:00Z",
    "2026-01-01_00:00:00Z",
    "2026-01-01T00:00:00 Z",
    "+026-01-01T00:00:00Z",
    "2026-01-01T00:00:00+1:000",
    "\uff12026-01-01T00:00:00Z",
    "not a time, but as long",
    "2026-01-01T00:00:00Z\n2026-01-01T00:00:00Z",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_time_is_left_to_the_careful_reader_which_refuses_it(text: str) -> None:
    assert parse_times([text]) is None
    result = check_line(bundles.line(bundles.run(1, started_at=text)))
    assert isinstance(result, list)
    assert [fault.pointer for fault in result] == ["/started_at"]


def test_one_odd_time_among_many_is_noticed() -> None:
    good = "2026-01-01T00:00:00Z"
    assert parse_times([good] * 3) is not None
    assert parse_times([good, "2026-01-32T00:00:00Z", good]) is None
    # The same length, but an offset of another form.
    assert parse_times(["2026-01-01T00:00:00+01:00", "2026-01-01T00:00:00.1234Z"]) is None


def test_lengths_may_differ_from_line_to_line() -> None:
    texts = ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00.25+01:00", "2026-01-01T00:00:00.500000Z"]
    found = RecordReader().read(
        bundles.lines(bundles.run(i, started_at=text) for i, text in enumerate(texts))
    )
    assert not isinstance(found, list)
    start = microseconds(datetime(2026, 1, 1, tzinfo=UTC))
    np.testing.assert_array_equal(found.microseconds(), [start, start + 250_000, start + 500_000])


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999-23:59"])
def test_a_time_that_no_calendar_has_in_utc_is_refused(text: str) -> None:
    rows = bundles.lines(bundles.run(i, started_at=text) for i in range(3))
    alone = check_line(rows.splitlines()[0])
    told = RecordReader().read(rows)
    assert isinstance(told, Faults)
    assert isinstance(alone, list)
    assert {(fault.pointer, fault.code) for fault in (*told, *alone)} == {("/started_at", "record.value")}
    assert told.total == 3
