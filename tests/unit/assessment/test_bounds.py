"""The bounds against the distributions of scipy.stats, and what clusters are worth at the limits."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import inf, sqrt
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from certkit.assessment.bounded import bounds
from certkit.assessment.bounded.bounds import Arm, Sample

LEVELS = (0.5, 0.9, 0.95, 0.99, 0.995, 0.9999)


def sample(y: list[float], n: list[int]) -> Sample:
    """A sample from sums and runs by cluster, by the definition of the cluster-robust variance."""
    k, runs, mean = len(n), sum(n), sum(y) / sum(n)
    squares = sum((a - mean * b) ** 2 for a, b in zip(y, n, strict=True))
    mixed = sum(0 < a < b for a, b in zip(y, n, strict=True))
    equal = runs**2 / sum(b * b for b in n)
    return Sample(mean=mean, variance=k / (k - 1) * squares / runs**2, n=runs, k=equal, mixed=mixed)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n_eff", [0.3, 1.0, 13.0, 400.5, 1e6])
@pytest.mark.parametrize("mean", [0.0, 0.2, 0.8, 0.999, 1.0])
def test_the_beta_bound_and_its_tail_are_those_of_the_posterior(
    mean: float, n_eff: float, level: float
) -> None:
    law = stats.beta(1 + mean * n_eff, 1 + (1 - mean) * n_eff)
    low = bounds.beta_bound(mean, n_eff, level, lower=True)
    assert low == pytest.approx(law.isf(level), rel=1e-9)
    assert bounds.beta_bound(mean, n_eff, level, lower=False) == pytest.approx(law.ppf(level), rel=1e-9)
    for threshold in (0.05, 0.6, 0.8, 0.95):
        found = bounds.above(mean, n_eff, threshold)
        assert found == pytest.approx(law.sf(threshold), rel=1e-9, abs=1e-300)


def test_every_threshold_outside_of_the_range_is_certain() -> None:
    assert (bounds.above(0.5, 10.0, -0.1), bounds.above(0.5, 10.0, 1.5)) == (1.0, 0.0)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("k", "n"), [(2, 2), (10, 10), (40, 1000)])
def test_the_t_bound_is_the_quantile_times_the_error(k: int, n: int, level: float) -> None:
    of = Sample(mean=0.7, variance=0.0004, n=n, k=k, mixed=9)
    reach = stats.t.ppf(level, k - 1) * sqrt(0.0004)
    assert bounds.t_bound(of, level, lower=True) == pytest.approx(0.7 - reach, rel=1e-9, abs=1e-12)
    assert bounds.t_bound(of, level, lower=False) == pytest.approx(0.7 + reach, rel=1e-9)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n_eff", [0.3, 10.0, 1e6])
@pytest.mark.parametrize("mean", [0.0, 0.05, 1.0, 40.0])
def test_the_gamma_bound_is_the_quantile_of_the_posterior(mean: float, n_eff: float, level: float) -> None:
    law = stats.gamma(1 + mean * n_eff, scale=1 / n_eff)
    assert bounds.gamma_bound(mean, n_eff, level) == pytest.approx(law.ppf(level), rel=1e-9)


def test_the_gamma_bound_of_no_violation_is_the_rule_of_three() -> None:
    # exp(-n·x) = .05 at x = ln 20 / n.
    assert bounds.gamma_bound(0.0, 100.0, 0.95) == pytest.approx(np.log(20) / 100, rel=1e-12)


def by_quadrature(one: Arm, other: Arm, limit: float) -> float:
    """P(θ_one - θ_other ≤ limit) over the ranks of the second law: ∫ F_one(Q_other(u) + limit) du."""
    first, second = stats.beta(*one.beta), stats.beta(*other.beta)
    shares = [10.0**-e for e in range(1, 14)]
    cuts = {0.0, 1.0, *second.cdf(first.ppf([*shares, 0.3, 0.5, 0.7]) - limit)}
    cuts |= {*second.cdf(first.isf(shares) - limit), *shares, *(1 - s for s in shares), 0.5}
    ends = sorted(float(cut) for cut in cuts)

    def inner(u: Any, /) -> Any:
        return first.cdf(second.ppf(u) + limit)

    return sum(float(integrate.fixed_quad(inner, a, b, n=20)[0]) for a, b in pairwise(ends))


ARMS = [Arm(mean=p, n_eff=n) for n in (0.3, 12.0, 500.0, 1e6) for p in (0.0, 0.3, 0.97, 1.0)]


@pytest.mark.parametrize("limit", [-0.3, 0.0, 0.1])
@pytest.mark.parametrize("number", range(len(ARMS)))
def test_the_difference_is_the_integral_whichever_arm_is_the_sharper(number: int, limit: float) -> None:
    one = ARMS[number]
    for other in ARMS[number % 3 :: 3]:
        found = bounds.difference_below(one, other, limit)
        assert found == pytest.approx(by_quadrature(one, other, limit), abs=1e-9), other
        mirror = bounds.difference_below(other, one, -limit)
        assert found + mirror == pytest.approx(1, abs=1e-9), other


def test_the_difference_against_a_double_integral() -> None:
    one, other = Arm(mean=0.8, n_eff=20.0), Arm(mean=0.6, n_eff=9.0)
    first, second = stats.beta(*one.beta), stats.beta(*other.beta)
    found, _ = integrate.dblquad(
        lambda x, y: first.pdf(x) * second.pdf(y), 0, 1, 0, lambda y: min(1.0, y + 0.1), epsabs=1e-11
    )
    assert bounds.difference_below(one, other, 0.1) == pytest.approx(found, abs=1e-9)


def test_two_uniform_laws_have_a_difference_in_closed_form() -> None:
    # n_eff 0: for d ≥ 0 the complement is the triangle (1 - d)²/2.
    flat = Arm(mean=0.5, n_eff=0.0)
    for limit in (0.0, 0.2, 0.75, 1.0):
        expected = 1 - (1 - limit) ** 2 / 2
        assert bounds.difference_below(flat, flat, limit) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("one", "other"), [(ARMS[2], ARMS[9]), (ARMS[11], ARMS[6]), (ARMS[14], ARMS[5])])
def test_the_bound_of_a_difference_inverts_its_distribution(one: Arm, other: Arm, level: float) -> None:
    bound = bounds.difference_bound(one, other, level)
    assert bounds.difference_below(one, other, bound) == pytest.approx(level, abs=1e-9)
    assert by_quadrature(one, other, bound - 1e-4) < level < by_quadrature(one, other, bound + 1e-4)


@pytest.mark.parametrize("level", LEVELS[1:])  # at .5 both t quantiles are 0
def test_what_clusters_are_worth_is_the_written_formula(level: float) -> None:
    of = sample([9, 10, 3, 8, 7, 10, 1, 9, 6, 9, 10, 4], [10] * 12)
    deff = of.variance * 120 / (of.mean * (1 - of.mean))
    assert deff > 1
    if level > 0.95:
        deff *= 11 / stats.chi2.ppf(0.25, 11)
    ratio = stats.t.ppf(level, 119) / stats.t.ppf(level, 11)
    assert bounds.effective_runs(of, level, icc0=1.0) == pytest.approx(120 / deff * ratio**2, rel=1e-9)


def test_95_per_cent_itself_leaves_the_variance_alone() -> None:
    of = sample([1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 1, 1], [1] * 12)
    below, above = (bounds.effective_runs(of, level, icc0=1.0) for level in (0.95, 0.9500001))
    assert above / below == pytest.approx(stats.chi2.ppf(0.25, 11) / 11, rel=1e-6)


@pytest.mark.parametrize("k", [10, 13, 89, 1000])
def test_single_runs_without_a_failure_are_worth_their_number(k: int) -> None:
    of = sample([1.0] * k, [1] * k)
    assert bounds.effective_runs(of, 0.95, icc0=1.0) == pytest.approx(k, rel=1e-12)


@pytest.mark.parametrize("k", [10, 13, 1000])
def test_single_runs_of_both_kinds_lose_one_for_the_estimated_mean(k: int) -> None:
    # v·n / (p(1 - p)) is k/(k - 1) exactly.
    of = sample([float(i % 2) for i in range(k)], [1] * k)
    assert bounds.effective_runs(of, 0.95, icc0=1.0) == pytest.approx(k - 1, rel=1e-9)


@pytest.mark.parametrize("size", [2, 20, 500])
def test_identical_clusters_without_a_failure_are_worth_one_run_each(size: int) -> None:
    of = sample([float(size)] * 12, [size] * 12)
    assert bounds.effective_runs(of, 0.95, icc0=1.0) == pytest.approx(12, rel=1e-9)
    # Not alike at all: every run counts but for the uncertainty of a variance from twelve clusters.
    ratio = stats.t.ppf(0.95, 12 * size - 1) / stats.t.ppf(0.95, 11)
    assert bounds.effective_runs(of, 0.95, icc0=0.0) == pytest.approx(12 * size * ratio**2, rel=1e-9)


@pytest.mark.parametrize("few", range(7))
def test_every_cluster_with_a_failure_up_to_the_fifth_tells_a_fifth(few: int) -> None:
    of = sample([10.0] * (20 - few) + [9.0] * few, [10] * 20)
    spread = of.mean * (1 - of.mean)
    deff = max(1.0, of.variance * 200 / spread) if few else 1.0
    shown = 200 / deff * (stats.t.ppf(0.95, 199) / stats.t.ppf(0.95, 19)) ** 2
    wanted = 20 + min(few, 5) / 5 * (shown - 20)
    assert shown > 180
    assert bounds.effective_runs(of, 0.95, icc0=1.0) == pytest.approx(wanted, rel=1e-9)


def test_where_clusters_show_less_than_alike_runs_they_are_believed() -> None:
    # One cluster of twenty fails throughout and is the largest: worth less than twenty runs.
    y, n = [10.0] * 19 + [0.0], [10] * 19 + [100]
    of = sample(y, n)
    shown = 290 / (of.variance * 290 / (of.mean * (1 - of.mean)))
    equal = 290**2 / (19 * 10**2 + 100**2)
    shown *= (stats.t.ppf(0.95, 289) / stats.t.ppf(0.95, equal - 1)) ** 2
    assert shown < equal
    assert bounds.effective_runs(of, 0.95, icc0=1.0) == pytest.approx(shown, rel=1e-9)


@pytest.mark.parametrize(("k", "threshold", "level"), [(13, 0.80, 0.95), (89, 0.95, 0.99), (23, 0.80, 0.995)])
def test_the_least_number_of_clusters_without_a_failure_suffices(
    k: int, threshold: float, level: float
) -> None:
    for short in (0, 1):
        of = sample([1.0] * (k - short), [1] * (k - short))
        worth = bounds.effective_runs(of, level, icc0=1.0)
        assert (bounds.above(of.mean, worth, threshold) > level) == (short == 0)


def test_counts_compare_the_variance_with_that_of_poisson() -> None:
    y = [float(i % 5) for i in range(20)]
    mean = sum(y) / 40
    variance = 20 / 19 * sum((a - mean * 2) ** 2 for a in y) / 40**2
    of = Sample(mean=mean, variance=variance, n=40, k=20, mixed=16)
    ratio = stats.t.ppf(0.95, 39) / stats.t.ppf(0.95, 19)
    expected = 40 / max(1, variance * 40 / mean) * ratio**2
    assert bounds.effective_runs(of, 0.95, icc0=1.0, counts=True) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.995])
def test_arrays_give_what_single_samples_give(level: float) -> None:
    rng = np.random.PCG64(7).random_raw(600).astype(np.float64) / 2**64
    samples = [
        sample([float(round(10 * share)) for share in rng[20 * i : 20 * i + 20]], [10] * 20)
        for i in range(20)
    ]
    samples += [sample([10.0] * 20, [10] * 20), sample([0.0] * 20, [10] * 20)]
    together = Sample(
        **{name: np.array([getattr(of, name) for of in samples]) for name in Sample.__struct_fields__}
    )
    worth = bounds.effective_runs(together, level, icc0=0.7)
    assert worth.tolist() == [float(bounds.effective_runs(of, level, icc0=0.7)) for of in samples]
    for lower in (True, False):
        student = bounds.t_bound(together, level, lower=lower)
        assert student.tolist() == [float(bounds.t_bound(of, level, lower=lower)) for of in samples]
        shares = bounds.beta_bound(together.mean, worth, level, lower=lower)
        assert shares.tolist() == [
            float(bounds.beta_bound(of.mean, of_worth, level, lower=lower))
            for of, of_worth in zip(samples, worth, strict=True)
        ]


@pytest.mark.parametrize("alpha", ["0.05", "0.01"])
def test_any_number_of_attempts_spends_at_most_a_fifth_more(alpha: str) -> None:
    confidence = 1 - Fraction(alpha)
    assert bounds.corrected(confidence, 1) == confidence
    spent = Fraction(0)
    for attempt in range(1, 10_001):
        spent += 1 - bounds.corrected(confidence, attempt)
    # Σ 1/(i(i - 1)) from 2 to m telescopes to 1 - 1/m.
    assert spent == Fraction(alpha) * (1 + Fraction(1, 5) * (1 - Fraction(1, 10_000)))
    assert spent < Fraction("1.2") * Fraction(alpha)


def test_every_attempt_must_show_more_than_the_one_before() -> None:
    levels = [bounds.corrected(Fraction("0.95"), i) for i in range(1, 50)]
    assert levels == sorted(set(levels))
    assert levels[1] == Fraction("0.995")


@pytest.mark.parametrize(
    ("threshold", "confidence", "needed"),
    [
        ("0.80", "0.95", 13),
        ("0.95", "0.99", 89),
        ("0.60", "0.95", 10),
        ("0.05", "0.99", 10),
        ("0", "0.95", 10),
    ],
)
def test_clusters_needed(threshold: str, confidence: str, needed: int) -> None:
    assert bounds.clusters_needed(Fraction(threshold), Fraction(confidence)) == needed


def test_a_posterior_without_evidence_is_flat() -> None:
    assert bounds.beta_bound(0.3, 0.0, 0.95, lower=True) == pytest.approx(0.05, rel=1e-12)
    assert bounds.beta_bound(0.3, 0.0, 0.95, lower=False) == pytest.approx(0.95, rel=1e-12)
    assert not np.isnan(bounds.effective_runs(sample([0.0] * 10, [1] * 10), 0.99, icc0=1.0))
    assert bounds.effective_runs(sample([0.0] * 10, [1] * 10), 0.99, icc0=1.0) < inf
