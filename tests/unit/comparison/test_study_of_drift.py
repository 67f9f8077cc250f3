"""The study of drift in a small, seeded form: it tests what the program tests."""

from __future__ import annotations

import numpy as np
import pytest

from certkit.comparison.contrast import adjusted, contrast, with_priors
from certkit.comparison.drift import drift
from tests.study import drifting
from tests.support.sides import HIGH, apart, even, laid, side, values


@pytest.mark.parametrize("shared", [1.0, 0.5, 0.0])
def test_the_study_of_drift_asks_what_the_program_asks(shared: float) -> None:
    k, number = 100, round(100 * shared)
    design = drifting.Design(k, 10, shared, "beta .3")
    x = drifting.lineages(np.random.default_rng(12), 6, design, [drifting.NONE, [0.1] * drifting.DOMAINS])
    chosen = drifting.halves(x.mean(axis=-1), shared)
    losses, p = drifting.contrast(chosen, (1, -1), number)
    gap = [None] * (k - number)
    for place in range(x.shape[1]):
        old, new = chosen[:, place].tolist()
        change = contrast(laid([*old, *gap], [*new[:number], *gap, *new[number:]]), (1, -1))
        assert (losses[place], p[place]) == pytest.approx((change.loss, change.p_loss), abs=1e-9)
    alike = np.array([adjusted(column) for column in np.random.default_rng(1).random((9, 6))])
    assert pytest.approx(alike) == drifting.adjusted(np.random.default_rng(1).random((9, 6)).T).T


def test_the_study_tests_the_rows_that_the_program_tests() -> None:
    conditions = ("adversarial", "cascade", "context_corruption", "stochastic", "tool_failure")
    cells = {(f"d{i}", name): even(HIGH, names=f"{i}{name}") for i in range(5) for name in conditions}
    more = ("frr", "pei", "irs", "ti", "violations", "adversarial_resistance")
    old = side(cells, {name: values(900) for name in more})
    rows = drift(old, side(cells, {name: values(900) for name in more})).behaviour
    x = np.zeros((2, 3, 25, drifting.CONDITIONS))
    assert len(drifting.rows(x, np.zeros((drifting.OTHERS, 2, 3, 25)))) == len(rows) == 18
    assert not any(row.reason for row in rows)


def test_the_study_gives_agents_the_prior_tasks_that_the_program_gives() -> None:
    random = np.random.default_rng(19)
    for shared in (0, 30):
        x = [random.binomial(n, 0.9, (40, 30)) / n for n in (1, 10)]
        hits = 0
        for a, b in zip(*(agent.tolist() for agent in x), strict=True):
            sides = laid(a, b) if shared else apart(a, b)
            change = contrast(with_priors(sides, 0.0, 1.0), (1, -1))
            hits += 2 * min(change.p_loss, change.p_gain) < 0.05
        assert drifting.called_different(x, shared) == hits / 40


def test_the_study_of_uneven_sides_asks_what_the_program_asks() -> None:
    random = np.random.default_rng(16)
    x = [random.random((4, k)) ** power for k, power in ((12, 0.1), (60, 1), (30, 2))]
    losses, p = drifting.contrast(x, weights := drifting.slopes(3).tolist(), 0)
    for place in range(4):
        change = contrast(apart(*(side[place].tolist() for side in x)), weights)
        assert (losses[place], p[place]) == pytest.approx((change.loss, change.p_loss), abs=1e-9)


def test_uneven_sides_err_no_more_than_even_ones() -> None:
    for cell in drifting.uneven(np.random.default_rng(18), 30):
        if cell.what.startswith("nothing"):
            assert cell.passed <= 0.05 + 3 * np.sqrt(0.05 / 30), cell
        if cell.what.startswith("-10 in all, then 1000"):
            assert cell.passed > 0.5, cell


def test_agents_of_equal_rate_are_seldom_called_different() -> None:
    for cell in drifting.compare(np.random.default_rng(20), 300):
        assert cell.passed <= 0.05 + 3 * np.sqrt(0.05 / 300), cell


def test_drift_is_found_and_nothing_is_not() -> None:
    cells_of = {cell.what: cell.passed for cell in drifting.drift(np.random.default_rng(13), 30)}
    for what, passed in cells_of.items():
        if what.startswith("nothing"):
            assert passed <= 0.16 + 3 * np.sqrt(0.16 * 0.84 / 30), what
        if what.startswith("-10 in all") and "all tasks shared" in what:
            assert passed > 0.95, what


def test_another_mix_is_no_drift_and_a_sample_of_tasks_shows_it() -> None:
    rng = np.random.default_rng(15)
    for cell in (*drifting.mixes(rng, 60), *drifting.sampled(rng, 60)):
        assert cell.passed <= 0.1 if cell.what.startswith("nothing") else cell.passed > 0.7, cell
