"""The e-process over a lineage's history: its bound, what it finds, and what it leaves out."""

from __future__ import annotations

from itertools import pairwise
from math import exp, log
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec import structs
from scipy import optimize, stats

from certkit.assessment.drift import chain as module
from certkit.assessment.drift import drift
from certkit.assessment.drift.chain import chain
from tests.support.drift_sides import HIGH, LOW, even, one, side

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certkit.assessment.drift.standing import Standing

RUNS = 1000


def standing(good: int, name: str) -> Standing:
    """A standing of `RUNS` runs of as many tasks."""
    runs = {str(i): (int(i < good), 1) for i in range(RUNS)}
    return side({("d", "x_f"): runs}, evidence=name)


def history(rates: list[float], seed: int) -> list[Standing]:
    random = np.random.default_rng(seed)
    return [standing(int(random.binomial(RUNS, rate)), str(i)) for i, rate in enumerate(rates)]


def largest(samples: list[module._Sample]) -> float:
    """The largest log likelihood under the null, found by search."""
    good, bad = np.array([(one.good, one.bad) for one in samples]).T

    def loss(theta: NDArray[np.float64]) -> float:
        return -float(good @ np.log(theta) + bad @ np.log(1 - theta))

    found = optimize.minimize(
        loss,
        np.array([0.3, 0.6, 0.6, 0.6]),
        bounds=[(1e-6, 1 - 1e-6)] * 4,
        constraints=optimize.LinearConstraint([[-1, 1, 0, 0], [-1, 0, 1, 0], [-1, 0, 0, 1]], lb=0),
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return -float(found.fun)


def test_the_denominator_is_the_largest_likelihood_under_the_null() -> None:
    random = np.random.default_rng(2)
    for _ in range(20):
        samples = [module._Sample(*map(float, random.integers(1, 50, 2))) for _ in range(4)]
        assert module._log_best(samples) == pytest.approx(largest(samples), rel=1e-5)
        assert module._log_best(samples) >= largest(samples) - 1e-6


def test_the_numerator_is_one_law_over_all_outcomes() -> None:
    # Summed over every outcome of three samples of 4, 3 and 2 runs the mixture is 1.
    sizes = (4, 3, 2)
    total = 0.0
    for outcome in np.ndindex(*(size + 1 for size in sizes)):
        samples = [module._Sample(float(y), float(n - y)) for y, n in zip(outcome, sizes, strict=True)]
        ways = sum(stats.binom.logpmf(y, n, 0.5) + n * log(2) for y, n in zip(outcome, sizes, strict=True))
        total += exp(module._log_mixture(samples, 0.05) + ways)
    assert total == pytest.approx(1, rel=1e-12)


def test_a_steady_agent_is_seldom_accused_however_long_its_history() -> None:
    accused = sum(chain(history([0.85] * 8, seed))[-1].declined for seed in range(40))
    assert accused == 0


def test_a_slow_decline_is_found_that_no_neighbours_show() -> None:
    sides = [standing(900 - 12 * step, str(step)) for step in range(12)]
    assert not any(drift(*pair).behaviour[0].flagged for pair in pairwise(sides))
    links = chain(sides)
    assert links[-1].declined
    assert not links[1].declined
    # Once reached, the bound stays reached.
    assert [link.declined for link in links] == sorted(link.declined for link in links)


def test_a_new_identity_begins_a_new_chain() -> None:
    sides = [one(HIGH, evidence="a"), one(LOW, evidence="b"), one(LOW, evidence="c", identity="two")]
    sides.append(structs.replace(sides[2], evidence="d"))
    links = chain(sides)
    assert [link.base for link in links] == [0, 0, 2, 2]
    assert [link.declined for link in links] == [False, True, False, False]


def test_what_cannot_be_counted_is_left_out_and_named() -> None:
    sides = [
        side({("d", "x_f"): {"a": (9, 10)}}, evidence="0"),
        one(HIGH, evidence="1"),
        one(HIGH, evidence="1"),
        one(HIGH, evidence="2", profile_digest="sha256:q"),
        side({("d", "x_f"): even(LOW)}, evidence="3"),
    ]
    links = chain(sides)
    assert [link.reason and link.reason.split(":")[0] for link in links] == [
        "r_op was not measured, or in too few clusters",
        None,
        "rests on evidence that was counted already",
        "not comparable with the first",
        None,
    ]
    assert [link.base for link in links] == [0, 1, 1, 1, 1]
    assert [link.log_e is None for link in links] == [True, False, True, True, False]
    assert links[-1].to_dict().keys() == {"index", "base", "log_e", "declined", "reason"}
    bare = structs.replace(one(HIGH), criteria=())
    assert chain([bare])[0].reason == "no drift margin is stated for r_op"
    assert chain([]) == ()


def test_repeats_of_a_few_tasks_do_not_prove_a_decline() -> None:
    def repeats(bad: int, name: str) -> Standing:
        return side({("d", "x_f"): {str(i): (0 if i < bad else 500, 500) for i in range(8)}}, evidence=name)

    assert not chain([repeats(0, "a"), repeats(2, "b")])[-1].declined
