"""Periods in words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from certkit.passport.checks import period


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-60, "1 hour"),
        (0, "1 hour"),
        (3600, "1 hour"),
        (3601, "2 hours"),
        (23 * 3600 + 1, "24 hours"),
        (47 * 3600, "47 hours"),
        (47 * 3600 + 1, "2 days"),
        (2 * 86400, "2 days"),
        (2 * 86400 + 1, "3 days"),
        (1000 * 86400, "1,000 days"),
    ],
)
def test_a_period_is_never_said_to_be_shorter_than_it_is(seconds: int, words: str) -> None:
    assert period(timedelta(seconds=seconds)) == words
