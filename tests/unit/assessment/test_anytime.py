"""Bounds that hold at any time: closed forms, and the promise that a fair process rarely pays."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product
from math import comb, exp, inf, log

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats
from scipy.special import betaln

from certkit.assessment.kinds import Difference, Kind, Minimum, Posterior, TaskMean
from certkit.assessment.metrics.series import View
from certkit.assessment.statistics import estimators, posterior
from tests.support.build import facts
from tests.support.rows import evidence, tasks

Floats = NDArray[np.float64]
TAUS = (0.05, 0.5, 0.8, 0.95)


def runs(successes: float, failures: float) -> tuple[Floats, Floats]:
    """Single runs as distinct means and how many clusters have each."""
    return np.array([0.0, 1.0]), np.array([float(failures), float(successes)])


def closed_form(s: int, f: int, tau: float) -> float:
    """log of B(s + 1, f + 1)·(1 - I_τ(s + 1, f + 1)) / ((1 - τ)·τ^s·(1 - τ)^f)."""
    tail = float(stats.beta(s + 1, f + 1).logsf(tau))
    return float(betaln(s + 1, f + 1)) + tail - (f + 1) * log(1 - tau) - s * log(tau)


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize(
    ("s", "f"),
    [(0, 0), (1, 0), (0, 1), (13, 0), (8, 2), (90, 10), (0, 30), (1000, 0), (850, 150), (9000, 900)],
)
def test_single_runs_have_the_closed_form(s: int, f: int, tau: float) -> None:
    wanted = closed_form(s, f, tau)
    found = posterior.anytime_evidence(*runs(s, f), tau)
    if np.isfinite(wanted):
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    else:
        assert found < 0  # the tail is below the least number there is


def test_nothing_is_evidence_for_certainty_and_anything_for_a_threshold_of_zero() -> None:
    assert posterior.anytime_evidence(*runs(5, 0), 1.0) == -inf
    assert posterior.anytime_evidence(*runs(0, 5), 0.0) == inf


@pytest.mark.parametrize("tau", TAUS)
def test_the_process_is_fair_at_the_threshold_and_loses_below(tau: float) -> None:
    # Over all outcomes of eight runs, exactly; a Bernoulli(τ) run multiplies E by 1 in expectation.
    def expectation(theta: float) -> float:
        return sum(
            comb(8, s)
            * theta**s
            * (1 - theta) ** (8 - s)
            * exp(posterior.anytime_evidence(*runs(s, 8 - s), tau))
            for s in range(9)
        )

    assert expectation(tau) == pytest.approx(1, rel=1e-12)
    below = [expectation(share * tau) for share in (0.9, 0.5, 0.0)]
    assert below == sorted(below, reverse=True)
    assert below[0] < 1


LAWS: dict[str, dict[tuple[int, ...], float]] = {
    # Joint laws of the three runs of one cluster, all with a mean success of .8.
    "identical": {(1, 1, 1): 0.8, (0, 0, 0): 0.2},
    "one always fails half": {(1, 1, 1): 0.4, (1, 1, 0): 0.6},
    "opposed": {(1, 1, 0): 0.3, (1, 0, 1): 0.3, (1, 1, 1): 0.4},
    "rarely hopeless": {
        (1, 1, 1): 0.7,
        (0, 1, 1): 0.1,
        (1, 0, 0): 0.1,
        (0, 0, 0): 0.1 / 3,
        (1, 1, 0): 0.2 / 3,
    },
}


@pytest.mark.parametrize("name", LAWS)
def test_whatever_runs_of_a_cluster_have_in_common_the_process_stays_fair(name: str) -> None:
    law = LAWS[name]
    assert sum(law.values()) == pytest.approx(1)
    mean = sum(p * sum(outcome) / 3 for outcome, p in law.items())

    def expectation(tau: float) -> float:
        total = 0.0
        for drawn in product(law.items(), repeat=3):
            y = np.array([sum(outcome) for outcome, _ in drawn])
            n = np.full(3, 3)
            total += float(np.prod([p for _, p in drawn])) * exp(
                posterior.anytime_evidence(*posterior.distinct(y / n), tau)
            )
        return total

    assert expectation(mean) == pytest.approx(1, rel=1e-9)
    assert expectation(mean + 0.1) < 1
    assert expectation(mean - 0.1) > 1


def test_clusters_of_unequal_size_count_once_each() -> None:
    means, counts = posterior.distinct(np.array([3, 1, 8, 0]) / np.array([4, 2, 16, 5]))
    assert means.tolist() == [0.0, 0.5, 0.75]
    assert counts.tolist() == [1.0, 2.0, 1.0]


@pytest.mark.parametrize("confidence", [0.95, 0.99, 0.9999])
@pytest.mark.parametrize(("s", "f"), [(1, 0), (20, 0), (90, 10), (450, 50), (5, 95)])
def test_the_lower_bound_is_where_the_evidence_reaches_one_over_alpha(
    s: int, f: int, confidence: float
) -> None:
    bound = posterior.anytime_limit(*runs(s, f), confidence)
    limit = -log(1 - confidence)
    wanted = optimize.brentq(lambda tau: closed_form(s, f, tau) - limit, 1e-12, s / (s + f) - 1e-12)
    assert bound == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_no_success_bounds_nothing_from_below() -> None:
    assert posterior.anytime_limit(*runs(0, 50), 0.95) == 0.0


def test_bounds_move_with_evidence_and_confidence() -> None:
    more = [posterior.anytime_limit(*runs(9 * m, m), 0.95) for m in (1, 3, 10, 100)]
    better = [posterior.anytime_limit(*runs(100 - f, f), 0.95) for f in (40, 20, 5, 0)]
    surer = [posterior.anytime_limit(*runs(90, 10), level) for level in (0.9999, 0.99, 0.95, 0.5)]
    for row in (more, better, surer):
        assert row == sorted(set(row))
    at_once = float(stats.beta(91, 11).isf(0.95))
    assert posterior.anytime_limit(*runs(90, 10), 0.95) < at_once  # looking at any time has its price


def test_who_looks_all_the_time_is_rarely_fooled() -> None:
    # 2,000 histories of 40 clusters at θ = τ = .8, looked at after every cluster of five identical runs.
    words = np.random.PCG64(2026).random_raw(2000 * 40).astype(np.float64) / 2**64
    fooled = naive = 0
    for history in (words < 0.8).reshape(2000, 40):
        seen = list(enumerate(np.cumsum(history).tolist(), 1))
        fooled += any(evidence_of(s, k) >= log(20) for k, s in seen)
        naive += any(naive_posterior(5 * s, 5 * k) > 0.95 for k, s in seen)
    assert 0 < fooled <= 0.05 * 2000
    assert naive > 0.5 * 2000


GAP = Difference("c_nom", "r_op")
AGAINST: list[tuple[Kind, bool]] = [
    (TaskMean("r_op"), True),
    (Minimum("r_op"), True),
    (Posterior(Fraction("0.6")), True),
    (TaskMean("r_op"), False),
    (GAP, False),
    (GAP, True),
]


@pytest.mark.parametrize("level", [Fraction("0.95"), Fraction("0.99")])
@pytest.mark.parametrize(("kind", "lower"), AGAINST)
@pytest.mark.parametrize(("failed", "runs_of_failed"), [(1, 50), (60, 5), (200, 1)])
def test_the_bound_at_any_time_is_never_better_than_the_ordinary_one_or_the_value(
    kind: Kind, level: Fraction, failed: int, runs_of_failed: int, *, lower: bool
) -> None:
    # Every failure was retried until it succeeded, so that most tasks have a mean of 1 and few have all runs.
    rows = [
        *tasks([1] * 100, 1),
        *tasks([1] * failed, 1 + runs_of_failed, first=100),
        *tasks([0, *[1] * 100], 1, condition="nominal"),
    ]
    settled, always = (View(evidence(rows), facts().manifest, {}, anytime=given) for given in (False, True))
    worst = min if lower else max
    ordinary, value = float(kind.bound(settled, level, lower=lower)), float(kind.value(settled))
    found = float(kind.bound(always, level, lower=lower))
    assert found == worst(found, ordinary, value)


@cache
def evidence_of(s: int, k: int) -> float:
    return posterior.anytime_evidence(*runs(s, k - s), 0.8)


@cache
def naive_posterior(s: int, n: int) -> float:
    return float(estimators.posterior(s, n, Fraction("0.8")))
