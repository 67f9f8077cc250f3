"""RFC 3339 times, many at once, as microseconds since 1970-01-01 UTC.

`parse` reads times of a common form; for all others it returns None, and the slow reader decides, which
accepts exactly what `record.TIMESTAMP_PATTERN` and the calendar allow.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SECONDS: Final = len("2026-01-31T12:00:00")
_T: Final = len("2026-01-31")
_MICROSECONDS: Final = 6
_MARKS: Final = {4: "-", 7: "-", 13: ":", 16: ":", 19: "."}


def of(time: datetime) -> int:
    """Return an aware datetime in microseconds since 1970-01-01 UTC."""
    return (time - _EPOCH) // _MICROSECOND


def parse(texts: Sequence[str]) -> Integers | None:
    """Return times of equal length and form, or None where any has an uncommon form."""
    length = len(texts[0])
    data = "".join(texts).encode()
    if len(data) != length * len(texts):
        return None
    marks = np.ascontiguousarray(np.frombuffer(data, np.uint8).reshape(-1, length).T)
    in_utc = bool(np.isin(marks[-1], tuple(b"Zz")).all())
    end = length - (1 if in_utc else len("+00:00"))
    fraction = end - len(".") - _SECONDS
    # Finer fractions than microseconds must be rounded; the slow reader does that.
    if end < _SECONDS or end == _SECONDS + 1 or fraction > _MICROSECONDS:
        return None
    places = [place for place in range(length) if place not in {*_MARKS, _T, end, end + 3}]
    digits = (marks - ord("0")).astype(np.int64)  # what is below 0 wraps around
    formed = [
        digits[places].max() <= 9,  # noqa: PLR2004 - a digit
        np.isin(marks[_T], tuple(b"Tt ")).all(),
        *((marks[place] == ord(mark)).all() for place, mark in _MARKS.items() if place < end),
        in_utc or (np.isin(marks[end], tuple(b"+-")).all() and (marks[end + 3] == ord(":")).all()),
    ]
    if not all(formed):
        return None

    def number(start: int, stop: int) -> Integers:
        return np.asarray(10 ** np.arange(stop - start)[::-1] @ digits[start:stop])

    year, month, day = number(0, 4), number(5, 7), number(8, 10)
    hour, minute, second = number(11, 13), number(14, 16), number(17, 19)
    months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    first, following = (date.astype("datetime64[D]").astype(np.int64) for date in (months, months + 1))
    right = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= following - first)  # noqa: PLR2004
    right &= (hour <= 23) & (minute <= 59) & (second <= 59)  # noqa: PLR2004 - the clock
    seconds = (first + day - 1) * 86_400 + hour * 3_600 + minute * 60 + second
    if not in_utc:
        east, less = number(end + 1, end + 3), number(end + 4, end + 6)
        right &= (east <= 23) & (less <= 59)  # noqa: PLR2004 - the clock
        seconds -= np.where(marks[end] == ord("-"), -1, 1) * (east * 3_600 + less * 60)
    if not right.all():
        return None
    finer = number(_SECONDS + 1, end) * 10 ** (_MICROSECONDS - fraction) if fraction > 0 else 0
    return seconds * 1_000_000 + finer
