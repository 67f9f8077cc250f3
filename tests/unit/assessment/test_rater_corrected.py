"""The corrected limit: against draws of q, P and F, and by how often it passes what should fail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from certkit.assessment.rater_error.corrected import TaskLabels, corrected, least_frr, lower, weighed
from certkit.assessment.statistics.posterior import beta, posteriors
from tests.study.cells import summed
from tests.study.judged import uneven

CASES = [
    ((90.0, 10.0), (85, 5, 3, 7)),
    ((400.0, 20.0), (30, 0, 0, 2)),
    ((12.0, 9.0), (3, 4, 5, 1)),
    ((50.0, 50.0), (0, 0, 0, 0)),
]


def apart(*counts: int) -> TaskLabels:
    """Return labels of which each lies on a task of its own, and none on a task of the judge's rate."""
    kinds = np.repeat(np.arange(4), counts)
    nothing = np.zeros(len(kinds))
    return TaskLabels((kinds == np.arange(4)[:, None]).astype(float), nothing, nothing)


@pytest.mark.parametrize(("seen", "labels"), CASES)
def test_moments_and_limits_are_those_of_draws(
    seen: tuple[float, float], labels: tuple[int, int, int, int]
) -> None:
    rng = np.random.default_rng(7)
    size = 400_000
    right, wrong, missed, rightly = labels
    q = rng.beta(*seen, size)
    p = rng.beta(1 + right, 1 + wrong, size)
    f = rng.beta(1 + missed, 1 + rightly, size)
    drawn = q * p + (1 - q) * f
    law = corrected(*stats.beta(*seen).stats("mv"), apart(*labels))
    assert law.mean == pytest.approx(drawn.mean(), abs=5 * drawn.std() / size**0.5)
    assert law.variance == pytest.approx(drawn.var(), rel=0.015)
    for probability in (0.01, 0.05):
        below = (drawn < law.quantile(probability)).mean()
        # A Beta by moments is an approximation: with 32 labels its 1 % tail holds 1.6 %.
        assert 0.6 * probability < below < 1.65 * probability
    low = float(np.quantile(drawn, 0.05))
    assert law.above(low) == pytest.approx(0.95, abs=0.02)


def test_the_formula_is_that_of_a_worked_example() -> None:
    # Beta(1, 1) everywhere: θ = qP + (1 − q)F; E θ² = 2·E q²·E P² + 2·E q(1 − q)·E P·E F = 2/9 + 1/12 = 11/36
    law = corrected(0.5, 1 / 12, apart(0, 0, 0, 0))
    assert law.mean == 0.5
    assert law.variance == pytest.approx(11 / 36 - 1 / 4, rel=1e-12)


def test_a_judge_known_to_be_perfect_changes_nothing() -> None:
    law = corrected(0.9, 0.001, apart(10**6, 0, 0, 10**6))
    assert law.mean == pytest.approx(0.9, abs=1e-5)
    assert law.variance == pytest.approx(0.001, rel=1e-5)


def test_more_labels_of_the_same_judge_raise_the_limit() -> None:
    few, many = apart(80, 4, 4, 12), apart(320, 16, 16, 48)
    limits = [corrected(0.84, 0.0004, labels).quantile(0.05) for labels in (few, many)]
    assert limits[0] < limits[1] < 0.84


def test_frr_loses_the_share_that_was_wrongly_passed() -> None:
    share = 0.9 - least_frr(0.9, apart(80, 5, 5, 10), 0.95)
    below, _ = integrate.quad(lambda x: x**5 * (1 - x) ** 95, 0, share)
    whole, _ = integrate.quad(lambda x: x**5 * (1 - x) ** 95, 0, 1)
    assert below / whole == pytest.approx(0.975, abs=1e-6)


def test_the_variance_is_that_of_a_bootstrap_over_tasks() -> None:
    """1,000 tasks of up to six runs, a fifth always fails, half of the runs are labelled.

    The Bayesian bootstrap (Rubin 1981), written apart, draws q, P and F by the same weights of tasks. So many
    tasks hide the prior ones.
    """
    rng, k = np.random.default_rng(5), 1000
    n = rng.integers(1, 7, k)
    truly = rng.binomial(n, np.where(rng.random(k) < 0.2, 0, 0.98))
    passed, missed = rng.binomial(n - truly, 0.5), rng.binomial(truly, 0.05)
    kinds = np.array([truly - missed, passed, missed, n - truly - passed])
    runs = np.repeat(np.arange(4 * k), kinds.ravel())
    chosen = rng.permutation(runs)[: len(runs) // 2]
    counts = np.bincount(chosen, minlength=4 * k).reshape(4, k).astype(float)
    y = (kinds[0] + kinds[1]).astype(float)
    sums, labels = weighed(counts, y, n.astype(float), summed(y[None], n[None]))
    weight = rng.dirichlet(np.ones(k), 4000)
    for part, law, (seen, size) in zip(labels, posteriors(sums), ((y / n, n / n), (y, n)), strict=True):
        rate = (weight @ seen) / (weight @ size)
        a, b, c, d = part.counts @ weight.T
        drawn = rate * a / (a + b) + (1 - rate) * c / (c + d)
        told = corrected(law.mean, law.variance, part, k / size.sum() / np.sqrt((k + 2) * (k + 3)))
        assert float(np.sqrt(told.variance[0])) == pytest.approx(drawn.std(), rel=0.035)
        alone = corrected(law.mean, law.variance, TaskLabels(part.counts, 0 * y, 0 * y))
        assert float(np.sqrt(alone.variance[0])) < 0.93 * drawn.std()


@pytest.mark.parametrize(
    ("hits", "alarms"), [(1.0, 0.25), (0.95, 0.15), (0.7, 0.0), (0.5, 0.5)], ids=lambda rate: f"{rate:g}"
)
def test_at_the_threshold_about_one_in_twenty_passes_whatever_the_judge(hits: float, alarms: float) -> None:
    """200 tasks of one run, success .80, 100 of them labelled: the share that shows > .80 with δ = .95."""
    rng, draws, k, m, tau = np.random.default_rng(26), 4000, 200, 100, 0.80
    true = rng.random((draws, k)) < tau
    passed = rng.random((draws, k)) < np.where(true, hits, alarms)
    some, seen = true[:, :m], passed[:, :m]
    counts = np.array([some & seen, ~some & seen, some & ~seen, ~some & ~seen], float)
    counts = np.concatenate([counts, np.zeros((4, draws, k - m))], axis=2)
    y, n = passed.astype(float), np.ones((draws, k))
    sums, labels = weighed(counts, y, n, summed(y, n))
    limit = lower(sums, labels, 0.95)
    noise = 3 * (0.05 * 0.95 / draws) ** 0.5
    assert (limit > tau).mean() < 0.056 + noise


def test_without_the_correction_a_lenient_judge_passes_nearly_every_time() -> None:
    rng, k = np.random.default_rng(26), 200
    true = rng.random((500, k)) < 0.80
    successes = (true | (rng.random((500, k)) < 0.5)).sum(1)
    mean = (1 + successes) / (k + 2)
    limit = beta(mean, mean * (1 - mean) / (k + 3)).quantile(0.05)
    assert (limit > 0.80).mean() > 0.95


def test_tasks_that_always_fail_pass_no_more_often_under_a_judge() -> None:
    """A fifth of the tasks always fails, and the judge passes half of the failures: 5 % are promised."""
    for cell in uneven(np.random.default_rng(27), 400, ["hopeless 20 %"]):
        assert cell.passed < 0.056 + 3 * (0.05 * 0.95 / 400) ** 0.5, cell
