"""The Beta and t distributions against scipy, closed forms, and sums of binomials in forty digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from math import atan, isclose, pi, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from certkit.assessment import beta

ORDINARY = (0.5, 0.7, 1.0, 1.5, 2.0, 5.0, 20.0, 71.0, 300.0, 2_999.0, 3_001.0, 1e4, 1e5, 1e6)
EXTREME = (1e-3, 0.01, 0.3, 1.0, 1.0001, 50.0, 3_000.0, 1e5, 1e8, 1e15)
PROBABILITIES = (0.01, 0.025, 0.05, 0.5, 0.95, 0.99)

parameters = st.floats(0.01, 1e6)
# 1 - p has every digit of these.
shares = st.integers(1, 2**20 - 1).map(lambda n: n / 2**20)


def close(value: float, expected: float, relative: float) -> bool:
    return isclose(value, expected, rel_tol=relative, abs_tol=1e-300)


def binomial_tail(x: float, a: int, n: int) -> Decimal:
    """Return P(θ > x) for Beta(a, n + 1 - a): the chance of fewer than `a` successes in n trials."""
    with localcontext(prec=40):
        odds = Decimal(x) / (1 - Decimal(x))
        term = total = (1 - Decimal(x)) ** n
        for i in range(1, a):
            term *= odds * (n + 1 - i) / i
            total += term
        return total


@pytest.mark.parametrize("a", ORDINARY)
@pytest.mark.parametrize("b", ORDINARY)
def test_tails_agree_with_scipy(a: float, b: float) -> None:
    for p in PROBABILITIES:
        x = float(special.betaincinv(a, b, p))
        # A double x cannot say more than this of a probability.
        limit = 1e-12 + 4e-16 * max(a, b)
        assert close(beta.below(x, a, b), float(special.betainc(a, b, x)), limit)
        assert close(beta.above(x, a, b), float(special.betaincc(a, b, x)), limit)


@pytest.mark.parametrize("a", ORDINARY)
@pytest.mark.parametrize("b", ORDINARY)
def test_quantiles_agree_with_scipy(a: float, b: float) -> None:
    for p in PROBABILITIES:
        expected = float(special.betaincinv(a, b, p))
        # Where scipy itself is wrong by more than that, as at (2, 10⁶), sums of binomials decide below.
        wrong = abs(float(special.betainc(a, b, expected)) - p) > 1e-12 * min(p, 1 - p) * sqrt(1 + min(a, b))
        assert wrong or close(beta.quantile(p, a, b), expected, 1e-12), p


@pytest.mark.parametrize(
    ("a", "b"), [(1_000, 1_000_000), (2, 1_000_000), (5, 1_000_000), (71, 31), (4_000, 9_000)]
)
@pytest.mark.parametrize("p", PROBABILITIES)
def test_quantiles_agree_with_sums_of_binomials(a: int, b: int, p: float) -> None:
    x = beta.quantile(p, a, b)
    exact = 1 - binomial_tail(x, a, a + b - 1)
    assert isclose(exact, p, rel_tol=1e-12 * sqrt(a))
    assert isclose(beta.above(x, a, b), float(1 - exact), rel_tol=1e-12)


@pytest.mark.parametrize(
    ("x", "a", "n"), [(0.9, 70, 100), (0.6, 70, 100), (0.501, 5_000, 10_000), (0.53, 5_000, 10_000)]
)
def test_far_tails_keep_their_digits(x: float, a: int, n: int) -> None:
    exact = binomial_tail(x, a, n)
    assert isclose(beta.above(x, a, n + 1 - a), float(exact), rel_tol=2e-13)
    assert isclose(beta.below(1 - x, n + 1 - a, a), float(binomial_tail(1 - (1 - x), a, n)), rel_tol=2e-13)


@given(st.floats(1e-9, 1, exclude_max=True), st.floats(1e-3, 1e9))
def test_powers(x: float, a: float) -> None:
    assert close(beta.below(x, a, 1), x**a, 1e-12)
    assert close(beta.above(1 - x, 1, a), (1 - (1 - x)) ** a, 1e-12)


@given(st.floats(1e-3, 1e15))
def test_a_symmetric_distribution_has_its_median_in_the_middle(a: float) -> None:
    assert beta.below(0.5, a, a) == pytest.approx(0.5, abs=1e-12)
    assert beta.quantile(0.5, a, a) == pytest.approx(0.5, abs=1e-12)


@given(shares, parameters, parameters)
def test_the_two_tails_add_up(x: float, a: float, b: float) -> None:
    assert beta.below(x, a, b) + beta.above(x, a, b) == pytest.approx(1, abs=1e-12)
    assert beta.below(x, a, b) == pytest.approx(beta.above(1 - x, b, a), rel=1e-12)


@given(shares, shares, parameters, parameters)
def test_a_larger_value_has_no_smaller_probability(x: float, y: float, a: float, b: float) -> None:
    low, high = sorted((x, y))
    assert beta.below(low, a, b) <= beta.below(high, a, b) * (1 + 1e-12)
    assert beta.quantile(low, a, b) <= beta.quantile(high, a, b) * (1 + 1e-12)


@given(shares, parameters, parameters)
def test_a_quantile_has_its_probability(p: float, a: float, b: float) -> None:
    x = beta.quantile(p, a, b)
    # Neighbouring doubles hold it between them.
    assert beta.below(x * (1 - 4e-16), a, b) <= p * (1 + 1e-9) or x < 1e-300
    assert beta.below(x * (1 + 4e-16), a, b) >= p * (1 - 1e-9)


@pytest.mark.parametrize("a", EXTREME)
@pytest.mark.parametrize("b", EXTREME)
def test_extreme_parameters_and_probabilities_end(a: float, b: float) -> None:
    for p in (1e-300, 1e-20, 1e-5, 0.1, 0.49, 0.5, 0.51, 0.9, 1 - 2**-53):
        x = beta.quantile(p, a, b)
        assert 0 <= x <= 1
        if 1e-300 < x < 1:
            assert beta.below(x * (1 - 4e-16), a, b) <= p * (1 + 1e-9)
            assert beta.above(min(1, x * (1 + 4e-16)), a, b) <= (1 - p) * (1 + 1e-9)


@pytest.mark.parametrize("a", EXTREME)
@pytest.mark.parametrize("b", EXTREME)
def test_no_parameters_take_many_terms(a: float, b: float, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [beta.quantile(p, a, b) for p in (1e-12, 0.01, 0.3, 0.5, 0.7, 0.99)]
    before = [beta.below(x, a, b) for x in points]
    monkeypatch.setattr(beta, "MOST_TERMS", 150)
    assert [beta.below(x, a, b) for x in points] == before


def test_an_ordinary_quantile_takes_few_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {(a, b, p): beta.quantile(p, a, b) for a in ORDINARY for b in ORDINARY for p in PROBABILITIES}
    monkeypatch.setattr(beta, "MOST_STEPS", 8)
    assert all(beta.quantile(p, a, b) == x for (a, b, p), x in expected.items())


@pytest.mark.parametrize("df", [0.5, 1.0, 2.0, 3.7, 30.0, 1_000.0, 1e6])
@pytest.mark.parametrize("t", [-40.0, -2.0, -1e-3, 0.0, 0.5, 1.6, 3.0, 12.0])
def test_students_t_agrees_with_scipy(t: float, df: float) -> None:
    assert beta.student_above(t, df) == pytest.approx(float(stats.t.sf(t, df)), rel=1e-11, abs=1e-300)


def test_students_t_with_one_degree_of_freedom_is_cauchys() -> None:
    # scipy 1.17 says 1/2 for the first.
    assert 0.5 - beta.student_above(1e-6, 1) == pytest.approx(1e-6 / pi, rel=1e-9)
    assert beta.student_above(5, 1) == pytest.approx(0.5 - atan(5) / pi, rel=1e-13)
    assert beta.student_above(float("inf"), 3) == 0


@pytest.mark.parametrize("x", [-1.0, 0.0, 1.0, 2.0])
def test_outside_of_its_range_the_probability_is_zero_or_one(x: float) -> None:
    assert (beta.below(x, 2, 3), beta.above(x, 2, 3)) == ((0, 1) if x <= 0 else (1, 0))


@pytest.mark.parametrize(("a", "b"), [(0.0, 1.0), (1.0, -1.0), (float("nan"), 1.0), (1.0, float("inf"))])
def test_what_is_no_parameter_is_refused(a: float, b: float) -> None:
    with pytest.raises(ValueError, match="positive, finite parameters"):
        beta.below(0.5, a, b)


@pytest.mark.parametrize("p", [0.0, 1.0, float("nan")])
def test_what_has_no_quantile_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="within"):
        beta.quantile(p, 2, 3)
