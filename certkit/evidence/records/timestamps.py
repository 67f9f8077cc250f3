"""RFC 3339 times, many at once, as microseconds since 1970-01-01 UTC.

`parse` reads times of a common form; for all others it returns None, and the slow reader decides, which
accepts exactly what `record.TIMESTAMP_PATTERN` and the calendar allow.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MINUTE: Final = 60_000_000
# Finer fractions than microseconds must be rounded; the slow reader does that.
_LINES: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
    r"([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])\n)*+"
)


def of(time: datetime) -> int:
    """Return an aware datetime in microseconds since 1970-01-01 UTC."""
    return (time - _EPOCH) // _MICROSECOND


def parse(texts: Sequence[str]) -> NDArray[np.int64] | None:
    """Return times of equal length and form, or None where any has an uncommon form."""
    lines, length = "\n".join(texts) + "\n", len(texts[0])
    if lines.count("\n") != len(texts) or not _LINES.fullmatch(lines):
        return None
    table = np.frombuffer(lines.encode(), np.uint8).reshape(len(texts), length + 1).copy()
    in_utc = np.isin(table[:, -2], np.frombuffer(b"Zz", np.uint8))
    if in_utc.any() != in_utc.all():
        return None
    end = length - (1 if in_utc.all() else len("+00:00"))
    table[:, len("2026-01-31")] = ord("T")
    try:
        times = _texts(table[:, :end]).astype("datetime64[us]")
    except ValueError:  # not in the calendar
        return None
    if (times < np.datetime64("0001-01-01")).any():
        return None
    zones, place = np.unique(_texts(table[:, end:length]), return_inverse=True)
    minutes = [0 if in_utc.all() else _minutes(zone.decode()) for zone in zones.tolist()]
    return np.asarray(times.astype(np.int64) - np.array(minutes, np.int64)[place] * _MINUTE)


def _texts(table: NDArray[np.uint8]) -> NDArray[np.bytes_]:
    return np.ascontiguousarray(table).view(f"S{table.shape[1]}")[:, 0]


def _minutes(zone: str) -> int:
    """Return an offset such as +05:30 in minutes east of UTC."""
    return int(zone[0] + "1") * (int(zone[1:3]) * 60 + int(zone[4:]))
