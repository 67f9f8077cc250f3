"""RFC 3339 times, many at once, as microseconds since 1970-01-01 UTC.

`parse` reads times of a common form; for all others it returns None, and the slow reader decides, which
accepts exactly what `record.TIMESTAMP_PATTERN` and the calendar allow.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_BASIC: Final = len("2026-01-31T12:00:00")
_DIGITS: Final = [0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18]
_MARKS: Final = [(4, b"-"), (7, b"-"), (10, b"Tt "), (13, b":"), (16, b":")]
_DAYS: Final = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_SECOND: Final = 1_000_000


def of(time: datetime) -> int:
    """Return an aware datetime in microseconds since 1970-01-01 UTC."""
    return (time - _EPOCH) // _MICROSECOND


def parse(joined: str, count: int) -> Integers | None:
    """Return `count` concatenated times of equal length, or None where any has an uncommon form."""
    data = np.frombuffer(joined.encode("utf-8", "replace"), np.uint8)
    length = len(joined) // count
    if length <= _BASIC or len(data) != length * count:
        return None
    table = data.reshape(count, length)
    for place, marks in _MARKS:
        column = table[:, place]
        if not np.logical_or.reduce([column == mark for mark in marks]).all():
            return None
    digits = _read_digits(table[:, _DIGITS])
    tail = _tail(table[:, _BASIC:])
    if digits is None or tail is None:
        return None
    year, month, day = _number(digits[:, 0:4]), _number(digits[:, 4:6]), _number(digits[:, 6:8])
    hour, minute, second = _number(digits[:, 8:10]), _number(digits[:, 10:12]), _number(digits[:, 12:14])
    if ((year < 1) | (month < 1) | (month > 12) | (day < 1)).any():  # noqa: PLR2004 - the calendar
        return None
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    if (day > _DAYS[month] + (leap & (month == 2))).any():  # noqa: PLR2004 - the calendar
        return None
    if ((hour > 23) | (minute > 59) | (second > 59)).any():  # noqa: PLR2004 - the clock
        return None
    seconds = ((_days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
    return seconds * _SECOND + tail


def _read_digits(columns: NDArray[np.uint8]) -> Integers | None:
    digits = columns - np.uint8(ord("0"))  # characters below "0" wrap to far above 9
    return digits.astype(np.int64) if (digits <= 9).all() else None  # noqa: PLR2004 - decimal


def _number(digits: Integers) -> Integers:
    value = np.zeros(len(digits), np.int64)
    for place in range(digits.shape[1]):
        value = value * 10 + digits[:, place]
    return value


def _tail(table: NDArray[np.uint8]) -> Integers | None:
    """Return fraction minus offset in microseconds for tails of equal form, ``.123+02:00`` or ``Z``."""
    form = bytes(table[0])
    width = 1 if form[-1:] in {b"Z", b"z"} else 6 if form[-6:-5] in {b"+", b"-"} else 0
    if not width:
        return None
    fraction, zone = table[:, : table.shape[1] - width], table[:, -width:]
    micro = _fraction(fraction)
    offset = _offset(zone)
    return None if micro is None or offset is None else micro - offset * _SECOND


def _fraction(table: NDArray[np.uint8]) -> Integers | None:
    places = table.shape[1] - 1
    if places < 0:
        return np.zeros(len(table), np.int64)
    # Finer fractions must be rounded; the slow reader does that.
    if not 1 <= places <= 6 or (table[:, 0] != ord(".")).any():  # noqa: PLR2004 - microseconds
        return None
    digits = _read_digits(table[:, 1:])
    return None if digits is None else _number(digits) * 10 ** (6 - places)


def _offset(table: NDArray[np.uint8]) -> Integers | None:
    """Return the offset east of UTC in seconds."""
    if table.shape[1] == 1:
        known = np.isin(table[:, 0], np.frombuffer(b"Zz", np.uint8)).all()
        return np.zeros(len(table), np.int64) if known else None
    sign = np.where(table[:, 0] == ord("-"), -1, 1)
    if not np.isin(table[:, 0], np.frombuffer(b"+-", np.uint8)).all() or (table[:, 3] != ord(":")).any():
        return None
    digits = _read_digits(table[:, [1, 2, 4, 5]])
    if digits is None:
        return None
    hours, minutes = _number(digits[:, :2]), _number(digits[:, 2:])
    if ((hours > 23) | (minutes > 59)).any():  # noqa: PLR2004 - the clock
        return None
    return np.asarray(sign * (hours * 60 + minutes) * 60)


def _days(year: Integers, month: Integers, day: Integers) -> Integers:
    """Return the days since 1970-01-01 in the proleptic Gregorian calendar."""
    months = (year - 1970) * 12 + (month - 1)
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + day - 1
