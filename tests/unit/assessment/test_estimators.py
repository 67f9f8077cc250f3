"""Intervals and posteriors against closed forms and exact binomial sums."""

from __future__ import annotations

from fractions import Fraction
from math import comb, sqrt

import pytest
from scipy import stats
from scipy.special import ndtri

from certkit.assessment.statistics.estimators import (
    Z,
    clopper_pearson,
    jeffreys,
    least_failure_free,
    posterior,
    wilson,
)


def exact_tail(s: int, n: int, tau: Fraction) -> Fraction:
    """P(Bin(n + 1, τ) ≤ s), which is P(θ > τ) for Beta(1 + s, 1 + n - s), in integers."""
    p, q = tau.numerator, tau.denominator
    return Fraction(sum(comb(n + 1, k) * p**k * (q - p) ** (n + 1 - k) for k in range(s + 1)), q ** (n + 1))


def test_820_of_1000_shows_080_with_probability_0_941630() -> None:
    tau = Fraction("0.80")
    assert round(float(exact_tail(820, 1000, tau)), 6) == 0.941630
    assert posterior(820, 1000, tau) == pytest.approx(float(exact_tail(820, 1000, tau)), rel=1e-12)


@pytest.mark.parametrize(("s", "n"), [(0, 1), (1, 1), (0, 40), (40, 40), (61, 90), (17, 23)])
@pytest.mark.parametrize("tau", ["0.05", "0.60", "0.80", "0.95"])
def test_posterior_is_the_binomial_tail(s: int, n: int, tau: str) -> None:
    assert posterior(s, n, Fraction(tau)) == pytest.approx(float(exact_tail(s, n, Fraction(tau))), rel=1e-12)


def test_posterior_at_the_ends_of_the_range() -> None:
    assert posterior(10, 10, Fraction(1)) == 0.0
    assert posterior(0, 10, Fraction(0)) == 1.0


@pytest.mark.parametrize(
    ("tau", "delta", "least"),
    [("0.95", "0.99", 89), ("0.80", "0.95", 13), ("0.5", "0.5", 1), ("0", "0.9", 0)],
)
def test_least_failure_free_n(tau: str, delta: str, least: int) -> None:
    assert least_failure_free(Fraction(tau), Fraction(delta)) == least


@pytest.mark.parametrize("tau", ["0.01", "0.3", "0.60", "0.80", "0.95", "0.999", "0.9999"])
@pytest.mark.parametrize("delta", ["0", "0.5", "0.95", "0.99", "0.999999"])
def test_least_failure_free_n_is_the_first_that_suffices(tau: str, delta: str) -> None:
    t, d = Fraction(tau), Fraction(delta)
    least = least_failure_free(t, d)
    assert least is not None
    assert 1 - t ** (least + 1) > d
    assert least == 0 or 1 - t**least <= d


def test_no_number_of_successes_shows_certainty() -> None:
    assert least_failure_free(Fraction(1), Fraction("0.9")) is None
    assert least_failure_free(Fraction("0.9"), Fraction(1)) is None


@pytest.mark.parametrize(("s", "n"), [(0, 1), (1, 1), (1, 2), (61, 90), (39, 97), (995, 1000), (0, 7)])
def test_wilson_ends_solve_the_score_equation(s: int, n: int) -> None:
    # Both ends are the roots p of n (p̂ - p)² = z² p (1 - p), solved here as a quadratic.
    z, rate = float(ndtri(0.975)), s / n
    a, b, c = n + z * z, -(2 * n * rate + z * z), n * rate * rate
    root = sqrt(b * b - 4 * a * c)
    interval = wilson(s, n)
    assert pytest.approx(float(ndtri(0.975)), rel=1e-15) == Z
    assert interval.low == pytest.approx((-b - root) / (2 * a), abs=1e-12)
    assert interval.high == pytest.approx((-b + root) / (2 * a), abs=1e-12)
    assert 0 <= interval.low <= rate <= interval.high <= 1


def test_wilson_of_61_in_90_is_the_published_example() -> None:
    # The example of the documented format; computed there by hand.
    interval = wilson(61, 90)
    assert (round(interval.low, 6), round(interval.high, 6)) == (0.575668, 0.765332)
    assert (interval.level, interval.method) == (0.95, "wilson")


COUNTS = [(0, 1), (1, 1), (0, 40), (40, 40), (1, 2), (61, 90), (1, 1000), (999, 1000), (9000, 10_000)]


@pytest.mark.parametrize(("s", "n"), COUNTS)
def test_the_exact_interval_is_that_of_the_binomial_test(s: int, n: int) -> None:
    found, wanted = clopper_pearson(s, n), stats.binomtest(s, n).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), rel=1e-9, abs=1e-12)
    assert (found.method, found.level) == ("clopper-pearson", 0.95)


@pytest.mark.parametrize(("s", "n"), COUNTS)
def test_wilsons_interval_is_that_of_scipy(s: int, n: int) -> None:
    found, wanted = wilson(s, n), stats.binomtest(s, n).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("s", "n"), COUNTS)
def test_jeffreys_interval_has_the_quantiles_of_its_posterior_within_and_closed_ends(s: int, n: int) -> None:
    found, law = jeffreys(s, n), stats.beta(s + 0.5, n - s + 0.5)
    low = 0.0 if s == 0 else law.ppf(0.025)
    high = 1.0 if s == n else law.isf(0.025)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9, abs=1e-12)
    assert found.method == "jeffreys"
