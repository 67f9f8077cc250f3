"""The corrected limit: against draws of q, P and F, and by how often it passes what should fail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from certkit.assessment.rater_error.corrected import Labels, corrected, least_frr
from certkit.assessment.statistics.posterior import beta

CASES = [
    ((90.0, 10.0), Labels(85, 5, 3, 7)),
    ((400.0, 20.0), Labels(30, 0, 0, 2)),
    ((12.0, 9.0), Labels(3, 4, 5, 1)),
    ((50.0, 50.0), Labels(0, 0, 0, 0)),
]


@pytest.mark.parametrize(("seen", "labels"), CASES)
def test_moments_and_limits_are_those_of_draws(seen: tuple[float, float], labels: Labels) -> None:
    rng = np.random.default_rng(7)
    size = 400_000
    q = rng.beta(*seen, size)
    p = rng.beta(1 + labels.true_positives, 1 + labels.false_positives, size)
    f = rng.beta(1 + labels.false_negatives, 1 + labels.true_negatives, size)
    drawn = q * p + (1 - q) * f
    law = corrected(*stats.beta(*seen).stats("mv"), labels)
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
    law = corrected(0.5, 1 / 12, Labels(0, 0, 0, 0))
    assert law.mean == 0.5
    assert law.variance == pytest.approx(11 / 36 - 1 / 4, rel=1e-12)


def test_a_judge_known_to_be_perfect_changes_nothing() -> None:
    sure = Labels(10**12, 0, 0, 10**12)
    law = corrected(0.9, 0.001, sure)
    assert law.mean == pytest.approx(0.9, abs=1e-9)
    assert law.variance == pytest.approx(0.001, rel=1e-6)


def test_more_labels_of_the_same_judge_raise_the_limit() -> None:
    few, many = Labels(80, 4, 4, 12), Labels(320, 16, 16, 48)
    limits = [corrected(0.84, 0.0004, labels).quantile(0.05) for labels in (few, many)]
    assert limits[0] < limits[1] < 0.84


def test_frr_loses_the_share_that_was_wrongly_passed() -> None:
    share = 0.9 - least_frr(0.9, Labels(80, 5, 5, 10), 0.95)
    below, _ = integrate.quad(lambda x: x**5 * (1 - x) ** 95, 0, share)
    whole, _ = integrate.quad(lambda x: x**5 * (1 - x) ** 95, 0, 1)
    assert below / whole == pytest.approx(0.975, abs=1e-6)


@pytest.mark.parametrize(
    ("hits", "alarms"), [(1.0, 0.25), (0.95, 0.15), (0.7, 0.0), (0.5, 0.5)], ids=lambda rate: f"{rate:g}"
)
def test_at_the_threshold_about_one_in_twenty_passes_whatever_the_judge(hits: float, alarms: float) -> None:
    """200 tasks of one run, success .80, 100 of them labelled: the share that shows > .80 with δ = .95."""
    rng, draws, k, m, tau = np.random.default_rng(26), 4000, 200, 100, 0.80
    true = rng.random((draws, k)) < tau
    passed = rng.random((draws, k)) < np.where(true, hits, alarms)
    some, seen = true[:, :m], passed[:, :m]
    labels = Labels(
        true_positives=(some & seen).sum(1),
        false_positives=(~some & seen).sum(1),
        false_negatives=(some & ~seen).sum(1),
        true_negatives=(~some & ~seen).sum(1),
    )
    successes = passed.sum(1)
    mean = (1 + successes) / (k + 2)
    variance = mean * (1 - mean) / (k + 3)
    limit = corrected(mean, variance, labels).quantile(0.05)
    noise = 3 * (0.05 * 0.95 / draws) ** 0.5
    assert (limit > tau).mean() < 0.056 + noise


def test_without_the_correction_a_lenient_judge_passes_nearly_every_time() -> None:
    rng, k = np.random.default_rng(26), 200
    true = rng.random((500, k)) < 0.80
    successes = (true | (rng.random((500, k)) < 0.5)).sum(1)
    mean = (1 + successes) / (k + 2)
    limit = beta(mean, mean * (1 - mean) / (k + 3)).quantile(0.05)
    assert (limit > 0.80).mean() > 0.95
