"""RFC 3339 times as microseconds since 1970-01-01 UTC, many at once.

`parse_times` reads times of a common form. For all others it returns None, and the slow reader decides, which
accepts exactly what the published schema and the calendar allow.
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
_FORM: Final = b"0000-00-00T00:00:00.000000"
_SECONDS: Final = len("2026-01-31T12:00:00")
YEARS: Final = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""Microseconds from the first moment of year 1 to the last of year 9999."""

_DAY: Final = np.frombuffer(b"1970-01-01T", np.uint8)


def microseconds(time: datetime) -> int:
    """Return an aware datetime in microseconds since 1970-01-01 UTC."""
    return (time - _EPOCH) // _MICROSECOND


def parse_times(texts: Sequence[str]) -> Integers | None:
    """Return times of equal length and form, or None where any has an uncommon form."""
    length = len(texts[0])
    data = "".join(texts).upper().replace(" ", "T").encode()
    if len(data) != length * len(texts):
        return None
    marks = np.frombuffer(data, np.uint8).reshape(-1, length)
    zone = b"Z" if (marks[:, -1] == ord("Z")).all() else b"+00:00"
    end = length - len(zone)
    # Finer fractions than microseconds must be rounded; the slow reader does that.
    if not _SECONDS <= end <= len(_FORM) or end == _SECONDS + 1:
        return None
    form = np.frombuffer(_FORM[:end] + zone, np.uint8)
    # What is below the digit 0 wraps around.
    formed = np.where(form == ord("0"), marks - ord("0") <= 9, marks == form)  # noqa: PLR2004 - a digit
    formed[:, end] |= (marks[:, end] == ord("-")) & (zone != b"Z")
    if not formed.all():
        return None
    try:
        times = _moments(marks[:, :end])
        if times.min() < YEARS[0]:
            return None
        if zone != b"Z":
            clock = np.hstack([np.broadcast_to(_DAY, (len(texts), len(_DAY))), marks[:, end + 1 :]])
            times -= np.where(marks[:, end] == ord("-"), -1, 1) * _moments(clock)
    except ValueError:
        return None
    return times


def _moments(marks: NDArray[np.uint8]) -> Integers:
    """Return local times, a row of characters each, in microseconds; raise `ValueError` where one is none."""
    texts = np.ascontiguousarray(marks).view(f"S{marks.shape[1]}")[:, 0]
    return texts.astype("datetime64[us]").astype(np.int64)
