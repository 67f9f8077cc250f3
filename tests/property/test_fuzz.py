from __future__ import annotations

import pytest

from tests import fuzz


@pytest.mark.parametrize("seed", [1])
def test_damaged_evidence_is_answered_in_documented_words_and_by_both_readers_alike(seed: int) -> None:
    counts = fuzz.run(seed=seed, rounds=150)
    # Both answers must have been met, or the damage is too light or too heavy to test anything.
    assert counts["lines accepted"] > 10
    assert counts["lines refused"] > 50
    assert sum(count for outcome, count in counts.items() if "." in outcome) > 20


def test_the_same_seed_gives_the_same_rounds() -> None:
    assert fuzz.run(seed=4, rounds=15) == fuzz.run(seed=4, rounds=15)


def test_a_difference_between_the_readers_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "check_lines", lambda _, limit: [][:limit])
    with pytest.raises(fuzz.FindingError, match="the readers differ"):
        fuzz.run(seed=1, rounds=300)


def test_a_foreign_exception_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(fuzz, "summarise", broken)
    with pytest.raises(fuzz.FindingError, match="ZeroDivisionError"):
        fuzz.run(seed=1, rounds=300)
