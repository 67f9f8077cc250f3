"""The study in a small, seeded form: false passes near what is promised, far below what was before."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest

from tests.study import cells

PROMISED = {2: 0.05, 3: 0.01}


@pytest.mark.parametrize(
    "section", [cells.repeats, cells.domains, cells.differences], ids=lambda part: part.__name__
)
def test_an_agent_at_the_threshold_rarely_passes(section: object) -> None:
    draws = 400
    for cell in section(np.random.default_rng(7), draws):  # type: ignore[operator]
        allowed = PROMISED[cell.tier] * 1.4
        assert cell.passed <= allowed + 3 * np.sqrt(allowed / draws), cell


def test_every_size_and_law_at_100_tasks() -> None:
    found = [cell for cell in cells.proportions(np.random.default_rng(8), 400) if cell.tasks == 100]
    assert {cell.tier for cell in found} == {2, 3}
    for cell in found:
        allowed = PROMISED[cell.tier] * 1.4
        assert cell.passed <= allowed + 3 * np.sqrt(allowed / cell.draws), cell


def test_power_grows_with_tasks() -> None:
    found = [
        cell
        for cell in cells.proportions(np.random.default_rng(9), 300, above=0.4)
        if cell.what.startswith("beta .3") and cell.tier == 2
    ]
    assert [cell.tasks for cell in found] == [13, 40, 100, 200]
    powers = [next(group).passed for _, group in groupby(found, key=lambda cell: cell.tasks)]
    assert powers == sorted(powers)
    assert powers[-1] > 0.9


def test_who_looks_all_the_time_is_rarely_fooled_by_the_bound_for_that() -> None:
    fixed, always = cells.looking(np.random.default_rng(10), 150)
    assert always.passed <= 0.05 < fixed.passed


def test_ten_attempts_spend_no_more_than_a_fifth_above_one() -> None:
    plain, spent = cells.attempts(np.random.default_rng(11), 500)
    assert spent.passed <= 0.06 + 3 * np.sqrt(0.06 / 500) < plain.passed
