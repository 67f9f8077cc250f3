"""The studentized range against scipy's quadrature, closed forms and the printed table."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from certkit.assessment.compare.studentized import critical, survival


@pytest.mark.parametrize(("k", "freedom"), [(2, 3), (3, 10), (5, 2), (10, 40), (12, 7), (40, 400)])
def test_the_distribution_is_scipys(k: int, freedom: int) -> None:
    q = np.array([0.5, 2.0, 3.5, 5.0, 9.0])
    assert survival(q, k, freedom) == pytest.approx(stats.studentized_range.sf(q, k, freedom), abs=1e-7)


@pytest.mark.parametrize("freedom", [1, 2, 3, 8, 50, 5000])
def test_two_means_are_students_t(freedom: int) -> None:
    # The range of two means is √2 |t|.
    q = np.array([0.0, 0.1, 1.0, 2.5, 4.0, 12.0, 60.0])
    assert survival(q, 2, freedom) == pytest.approx(2 * stats.t.sf(q / sqrt(2), freedom), abs=1e-12)


def test_many_degrees_of_freedom_are_the_range_of_normals() -> None:
    # For three normals P(range ≤ w) = 6 ∫ φ(z) (Φ(z + w) - Φ(z)) … has mean 3/√π (David and Nagaraja 2003).
    w = np.linspace(0.0, 12.0, 2401)
    mean = float(np.trapezoid(survival(w, 3, 1e8), w))
    assert mean == pytest.approx(3 / sqrt(np.pi), abs=1e-5)


@pytest.mark.parametrize(
    ("k", "freedom", "q"), [(2, 5, 3.635), (3, 10, 3.877), (5, 20, 4.232), (10, 60, 4.646), (4, 2, 9.798)]
)
def test_critical_values_are_the_printed_ones(k: int, freedom: int, q: float) -> None:
    # Upper 5 % points, Harter 1960, as in the tables of textbooks.
    assert critical(0.95, k, freedom) == pytest.approx(q, abs=6e-4)


def test_the_order_of_arguments_and_their_repeats_change_nothing() -> None:
    q = np.array([3.0, 1.0, 3.0, 0.0])
    found = survival(q, 6, 12)
    assert found[0] == found[2]
    assert found[3] == 1.0
    assert survival(q[::-1], 6, 12).tolist() == found[::-1].tolist()
