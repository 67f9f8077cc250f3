"""Rank correlations against scipy and against every order tried one by one."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pytest
from scipy import stats

from certkit.assessment.compare.orders import ENUMERATED, Rank, kendall, spearman

Rates = list[Fraction]


def rates(*percent: int) -> Rates:
    return [Fraction(value, 100) for value in percent]


FEW = [
    (rates(90, 80, 70, 60, 50), rates(85, 88, 60, 61, 40)),
    (rates(90, 80, 80, 60, 50, 50), rates(85, 85, 60, 61, 40, 40)),
    (rates(10, 20, 30, 40, 50, 60, 70), rates(70, 60, 50, 40, 30, 20, 10)),
    (rates(1, 2, 3), rates(3, 1, 2)),
]
MANY = [
    (rates(*range(12)), rates(3, 1, 4, 15, 9, 2, 6, 5, 35, 8, 97, 93)),
    (rates(1, 1, 2, 3, 3, 3, 4, 5, 6, 6), rates(2, 1, 1, 4, 4, 3, 5, 5, 5, 9)),
]


def rho(x: Rates, y: Rates) -> float:
    return float(stats.spearmanr([float(v) for v in x], [float(v) for v in y]).statistic)


def tau(x: Rates, y: Rates) -> float:
    return float(stats.kendalltau([float(v) for v in x], [float(v) for v in y]).statistic)


@pytest.mark.parametrize(("x", "y"), FEW + MANY)
def test_the_coefficients_are_scipys(x: Rates, y: Rates) -> None:
    assert spearman(x, y).value == pytest.approx(rho(x, y), abs=1e-9)
    assert kendall(x, y).value == pytest.approx(tau(x, y), abs=1e-9)


@pytest.mark.parametrize(("x", "y"), [pair for pair in FEW if len(pair[0]) <= 6])
def test_p_of_few_domains_counts_all_orders(x: Rates, y: Rates) -> None:
    orders = [[y[place] for place in order] for order in permutations(range(len(y)))]
    for test, coefficient in ((spearman, rho), (kendall, tau)):
        observed = abs(coefficient(x, y))
        hits = sum(abs(coefficient(x, order)) >= observed - 1e-12 for order in orders)
        found = test(x, y)
        assert (found.p, found.method) == (hits / len(orders), "exact")


def test_an_exact_p_without_ties_is_scipys() -> None:
    x, y = rates(1, 2, 3, 4, 5, 6, 7, 8), rates(2, 1, 4, 3, 7, 5, 8, 6)
    done = stats.kendalltau([float(v) for v in x], [float(v) for v in y], method="exact")
    assert len(x) == ENUMERATED
    assert kendall(x, y).p == pytest.approx(float(done.pvalue), abs=1e-9)


@pytest.mark.parametrize(("x", "y"), MANY)
def test_p_of_many_domains_is_scipys_approximation(x: Rates, y: Rates) -> None:
    one, other = [float(v) for v in x], [float(v) for v in y]
    found = spearman(x, y)
    assert found.p == pytest.approx(float(stats.spearmanr(one, other).pvalue), abs=1e-9)
    assert found.method == "asymptotic"
    done = stats.kendalltau(one, other, method="asymptotic")
    assert kendall(x, y).p == pytest.approx(float(done.pvalue), abs=1e-9)


def test_a_perfect_order_of_many_domains() -> None:
    x = rates(*range(12))
    assert spearman(x, x).value == kendall(x, x).value == 1.0
    assert spearman(x, x).p == 0.0


def test_few_domains_say_so() -> None:
    found = spearman(rates(1, 2, 3, 4), rates(1, 2, 3, 4))
    assert (found.n, found.value, found.p) == (4, 1.0, 2 / 24)
    assert found.reason == "4 domains are too few to say"
    assert kendall(rates(1, 2, 3, 4, 5), rates(1, 2, 3, 4, 5)).reason is None


def test_what_has_no_order_has_no_correlation() -> None:
    for test in (spearman, kendall):
        assert test(rates(1), rates(2)) == Rank(n=1, reason="fewer than two domains have no order")
        found = test(rates(1, 1, 1), rates(1, 2, 3))
        assert (found.value, found.p) == (None, None)
        assert found.reason == "an agent does equally well in every domain, which is no order"
