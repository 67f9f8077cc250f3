"""The one place that reads the clock, and how a time is given on the command line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from certkit.errors import UsageError

_FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_END: Final = datetime(9999, 1, 1, tzinfo=UTC)


def now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - the command line is the clock's door


def moment(text: str, option: str) -> datetime:
    """Return an RFC 3339 time with offset, or the beginning (UTC) of a date; 1970 to 9998 alone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is not None and time.tzinfo is None and len(text) == len("2026-01-31"):
        time = time.replace(tzinfo=UTC)
    if time is None or time.tzinfo is None:
        raise UsageError(
            "usage.option",
            f"{option}: {text!r} is not a time",
            hint="a date, 2026-01-31, or a time with its offset, 2026-01-31T12:00:00Z",
        )
    # Beyond, another offset, a tolerance or a period of validity would leave the calendar.
    if not _FIRST <= time < _END:
        raise UsageError(
            "usage.option", f"{option}: {text!r} is out of range", hint="a time from 1970 to the end of 9998"
        )
    return time.astimezone(UTC)


def dated(at: str | None) -> datetime:
    """Return the date of what is signed now, or as ``--at`` says, which may not be a time to come.

    Nothing is dated before what a log holds already: an entry dated far ahead would bar all others till then.
    A status so dated would hide what is logged meanwhile.
    """
    from certkit.passport.checks import CLOCK_SKEW  # noqa: PLC0415 - keeps the help fast

    if at is None:
        return now()
    date = moment(at, "--at")
    if date > now() + CLOCK_SKEW:
        raise UsageError(
            "usage.option", f"--at: {at!r} is to come", hint="what is signed is dated now or before"
        )
    return date
