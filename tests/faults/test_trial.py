"""A trial that is killed makes every planned run once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.trial_kills import kill

if TYPE_CHECKING:
    from pathlib import Path

KILLS = 4  # `python -m tests.faults.trial_kills` does 50


def test_a_killed_trial_ends_with_the_bytes_of_one_that_was_not(tmp_path: Path) -> None:
    survived = kill(tmp_path, KILLS)
    assert survived.differ == 0
    assert survived.killed >= KILLS - 1  # the last may have ended by itself
