"""Closed forms against scipy.stats and published values."""

from __future__ import annotations

from fractions import Fraction
from math import asin, sqrt

import numpy as np
import pytest
from scipy import special, stats

from certkit.assessment.compare.effects import (
    Moments,
    cohen_d,
    cohen_h,
    hedges,
    holm,
    moments,
    newcombe,
    two_proportions,
    welch,
)

X = [Fraction(value, 10) for value in (4, 7, 7, 10, 0, 4, 10, 10)]
Y = [Fraction(value, 10) for value in (0, 0, 4, 7, 4, 10)]


def of(values: list[Fraction]) -> Moments:
    return moments(len(values), sum(values, Fraction(0)), sum((v * v for v in values), Fraction(0)))


def test_z_is_the_root_of_pearsons_chi_squared() -> None:
    for s, n, t, m in ((61, 90, 40, 88), (5, 1000, 9, 30), (1, 2, 1, 3)):
        done = stats.chi2_contingency([[s, n - s], [t, m - t]], correction=False)
        found = two_proportions(s, n, t, m)
        assert found.statistic**2 == pytest.approx(float(done.statistic), abs=1e-9)
        assert found.p == pytest.approx(float(done.pvalue), abs=1e-12)
        assert found.p == pytest.approx(2 * float(stats.norm.sf(abs(found.statistic))), abs=1e-15)
        assert two_proportions(t, m, s, n).statistic == -found.statistic


def test_what_does_not_vary_has_no_z() -> None:
    for s, t in ((0, 0), (7, 9)):
        found = two_proportions(s, 7, t, 9)
        assert (found.statistic, found.p) == (0.0, 1.0)


def test_newcombe_gives_what_newcombe_printed() -> None:
    # Newcombe, Statistics in Medicine 17 (1998) 873-890, Table II, method 10.
    for counts, low, high in (
        ((56, 70, 48, 80), 0.0524, 0.3339),
        ((9, 10, 3, 10), 0.1705, 0.8090),
        ((10, 10, 0, 20), 0.6791, 1.0),
        ((0, 10, 0, 20), -0.1611, 0.2775),
    ):
        found = newcombe(*counts)
        assert found.low == pytest.approx(low, abs=5e-5)
        assert found.high == pytest.approx(high, abs=5e-5)
        assert found.method == "newcombe"


def test_h_is_a_difference_of_angles() -> None:
    assert cohen_h(0.9, 0.6) == pytest.approx(2 * asin(sqrt(0.9)) - 2 * asin(sqrt(0.6)), abs=1e-15)
    assert cohen_h(1.0, 0.0) == pytest.approx(np.pi, abs=1e-12)


def test_moments_are_exact() -> None:
    found = of(X)
    assert found.mean == Fraction(13, 20)
    assert found.variance == pytest.approx(float(np.var([float(v) for v in X], ddof=1)), abs=1e-15)
    assert moments(1, Fraction(3), Fraction(9)).variance is None
    assert moments(2, Fraction(1), Fraction(1, 2) + Fraction(1, 10**9), resolution=1e-8).variance == 0.0


def test_welch_is_scipys() -> None:
    found = welch(of(X), of(Y))
    done = stats.ttest_ind([float(v) for v in X], [float(v) for v in Y], equal_var=False)
    assert found is not None
    assert found.statistic == pytest.approx(float(done.statistic), abs=1e-9)
    assert found.df == pytest.approx(float(done.df), abs=1e-9)
    assert found.p == pytest.approx(float(done.pvalue), abs=1e-9)


def test_d_is_students_t_without_the_sample_sizes() -> None:
    t = float(stats.ttest_ind([float(v) for v in X], [float(v) for v in Y]).statistic)
    assert cohen_d(of(X), of(Y)) == pytest.approx(t * sqrt(1 / 8 + 1 / 6), abs=1e-12)


def test_hedges_factor_is_a_ratio_of_gammas() -> None:
    for m in (2, 5, 12, 100):
        ratio = special.gamma(m / 2) / (sqrt(m / 2) * special.gamma((m - 1) / 2))
        assert hedges(m) == pytest.approx(float(ratio), rel=1e-12)


def test_without_variance_there_is_no_t_and_no_d() -> None:
    same = [Fraction(1)] * 3
    assert welch(of(same), of(same)) is None
    assert cohen_d(of(same), of(same)) is None
    assert welch(of(same), of([Fraction(1)])) is None
    assert cohen_d(of([Fraction(1)]), of(same)) is None


def test_holm_is_rs_p_adjust() -> None:
    # R 4: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") gives 0.03 0.06 0.06 0.02
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, None, 0.5]) == [1.0, None, 1.0]
    assert holm([]) == []
