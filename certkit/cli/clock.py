"""The one place that reads the clock, and how a time is given on the command line."""

from __future__ import annotations

from datetime import UTC, datetime

from certkit.errors import UsageError


def now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - the command line is the clock's door


def moment(text: str, option: str) -> datetime:
    """Return an RFC 3339 time with offset, or the beginning (UTC) of a date."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is not None and time.tzinfo is None and len(text) == len("2026-01-31"):
        return time.replace(tzinfo=UTC)
    if time is None or time.tzinfo is None:
        raise UsageError(
            "usage.option",
            f"{option}: {text!r} is not a time",
            hint="a date, 2026-01-31, or a time with its offset, 2026-01-31T12:00:00Z",
        )
    return time.astimezone(UTC)
