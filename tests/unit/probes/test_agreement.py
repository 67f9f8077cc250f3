"""Measures of agreement against textbook values and their definitions in exact fractions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from certkit.probes.agreement import contingency, icc, kappa

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from certkit.probes.agreement import Weights

# J. Cohen, Educ. Psychol. Meas. 20 (1960), p. 45: κ = .492 for 200 cases
COHEN = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]

# P. E. Shrout, J. L. Fleiss, Psychol. Bull. 86 (1979), Table 2: 6 targets, 4 judges; Table 4: ICC(2,1) = .29
SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]

WEIGHTS: dict[Weights, Callable[[Fraction], Fraction]] = {
    "none": lambda distance: Fraction(distance == 0),
    "linear": lambda distance: 1 - distance,
    "quadratic": lambda distance: 1 - distance**2,
}


def naive_kappa(pairs: Sequence[tuple[int, int]], weights: Weights) -> Fraction:
    """κ by its definition: every pair that was seen against every pair that chance could make."""
    seen = [score for pair in pairs for score in pair]
    span = (max(seen) - min(seen)) or 1

    def weight(a: int, b: int) -> Fraction:
        return WEIGHTS[weights](Fraction(abs(a - b), span))

    observed = sum((weight(a, b) for a, b in pairs), Fraction(0)) / len(pairs)
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum((weight(a, b) * left[a] * right[b] for a, b in product(left, right)), Fraction(0))
    chance /= len(pairs) ** 2
    return (observed - chance) / (1 - chance)


def test_cohens_example() -> None:
    assert kappa(COHEN, [0, 1, 2]) == pytest.approx(0.492, abs=5e-4)


pairs_of_scores = st.lists(
    st.tuples(st.sampled_from([0, 1, 2, 5]), st.sampled_from([0, 1, 2, 5])), min_size=2
)


@settings(max_examples=150)
@example([(0, 0), (1, 1), (1, 1), (1, 1), (1, 1)], "none")
@given(pairs_of_scores, st.sampled_from(["none", "linear", "quadratic"]))
def test_kappa_is_its_definition_in_exact_fractions(pairs: list[tuple[int, int]], weights: Weights) -> None:
    left, right = zip(*pairs, strict=True)
    scores = sorted({*left, *right})
    found = kappa(contingency(left, right, scores), scores, weights)
    if len(scores) == 1:
        assert found is None
    else:
        assert found == float(naive_kappa(pairs, weights))


def test_a_score_that_nobody_gave_changes_nothing() -> None:
    wide = kappa([[3, 0, 1], [0, 0, 0], [1, 0, 4]], [0, 1, 4], "linear")
    assert wide == kappa([[3, 1], [1, 4]], [0, 4], "linear")


def test_without_an_item_or_a_difference_there_is_no_kappa() -> None:
    assert kappa([[0, 0], [0, 9]], [0, 1]) is None
    assert kappa([[0, 0], [0, 0]], [0, 1]) is None


def test_shrout_and_fleisss_example() -> None:
    assert icc(SHROUT_FLEISS) == pytest.approx(0.29, abs=5e-3)


def naive_icc(rows: Any) -> float:
    """ICC(2,1), term by term from Shrout and Fleiss, by means and residuals."""
    x = np.array(rows, float)
    n, k = x.shape
    grand, items, raters = x.mean(), x.mean(1), x.mean(0)
    bms = k * ((items - grand) ** 2).sum() / (n - 1)
    jms = n * ((raters - grand) ** 2).sum() / (k - 1)
    ems = ((x - items[:, None] - raters + grand) ** 2).sum() / ((n - 1) * (k - 1))
    return float((bms - ems) / (bms + (k - 1) * ems + k * (jms - ems) / n))


def test_icc_is_a_two_way_analysis_of_variance() -> None:
    bits = np.random.PCG64(5).random_raw(600).reshape(-1, 3) % 97
    for rows in (SHROUT_FLEISS, bits.tolist(), [[1, 2], [2, 3], [9, 7]]):
        assert icc(rows) == pytest.approx(naive_icc(rows), rel=1e-8)


@settings(max_examples=200)
@given(
    st.integers(1, 4).flatmap(
        lambda k: st.lists(st.lists(st.integers(0, 3), min_size=k, max_size=k), max_size=5)
    )
)
def test_icc_is_a_number_where_two_items_and_two_raters_vary(rows: list[list[int]]) -> None:
    found = icc(rows)
    few = len(rows) < 2 or len(rows[0]) < 2 or len({score for row in rows for score in row}) == 1
    assert (found is None) >= few
    assert found is None or found <= 1


def test_raters_who_differ_by_a_constant_do_not_agree_absolutely() -> None:
    assert icc([[1, 2], [2, 3], [3, 4]]) == float(Fraction(2, 3))  # MSR 2, MSC 1.5, MSE 0: 2 / (2 + 2·1.5/3)
