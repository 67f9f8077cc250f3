"""Measures of agreement against textbook values, exact fractions, and derivatives taken numerically."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs
from scipy import stats

from certkit.assessment.metrics.metrics_2026 import layer_agreement
from certkit.assessment.rater_error.labels import (
    Estimate,
    compare,
    contingency,
    icc,
    kappa,
)
from certkit.summary.summary import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from certkit.assessment.rater_error.labels import Weights

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


def slopes(of: Callable[[Any], float], at: Any) -> Any:
    """The derivatives of a function, by central differences."""
    found = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[place] = 1e-6
        found[place] = (of(at + step) - of(at - step)) / 2e-6
    return found


def test_cohens_example() -> None:
    found = kappa(COHEN, [0, 1, 2])
    assert round(found.value or 0, 3) == 0.492
    assert (found.items, found.raters, found.source) == (200, 2, "Cohen 1960")


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
        assert found.value is None
        assert found.reason
        return
    assert found.value == float(naive_kappa(pairs, weights))
    assert (found.interval is None) == (found.reason is not None)
    if found.interval is not None:
        assert -1 <= found.interval.low <= found.value <= found.interval.high <= 1


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("table", [COHEN, [[20, 5], [10, 15]], [[1, 4, 0], [0, 7, 3], [2, 0, 9]]])
def test_the_standard_error_of_kappa_is_that_of_the_delta_method(
    table: list[list[int]], weights: Weights
) -> None:
    counts = np.array(table, float)
    n, size = counts.sum(), len(table)
    w = np.array(
        [[float(WEIGHTS[weights](Fraction(abs(i - j), size - 1))) for j in range(size)] for i in range(size)]
    )

    def of(p: Any) -> float:
        chance = (w * np.outer(p.sum(1), p.sum(0))).sum() / p.sum() ** 2
        return float(((w * p).sum() / p.sum() - chance) / (1 - chance))

    p = counts / n
    slope = slopes(of, p)
    se = sqrt(((p * slope**2).sum() - (p * slope).sum() ** 2) / n)
    found = kappa(table, range(size), weights)
    assert found.se == pytest.approx(se, rel=1e-6)
    assert found.interval is not None
    assert found.interval.high - found.interval.low == pytest.approx(2 * stats.norm.ppf(0.975) * se, rel=1e-6)


def test_a_score_that_nobody_gave_changes_nothing() -> None:
    wide = kappa([[3, 0, 1], [0, 0, 0], [1, 0, 4]], [0, 1, 4], "linear")
    narrow = kappa([[3, 1], [1, 4]], [0, 4], "linear")
    assert wide.value == narrow.value


def test_where_nothing_varies_there_is_no_interval() -> None:
    for table, value in (([[5, 0], [0, 15]], 1), ([[0, 4], [0, 16]], 0)):
        found = kappa(table, [0, 1])
        assert (found.value, found.se, found.interval) == (value, None, None)
    assert kappa([[0, 0], [0, 9]], [0, 1]).value is None
    assert kappa([[0, 0], [0, 0]], [0, 1]).reason == "no item scored by both"


def test_shrout_and_fleisss_example() -> None:
    found = icc(SHROUT_FLEISS)
    assert round(found.value or 0, 2) == 0.29
    assert (found.items, found.raters) == (6, 4)
    assert found.interval is not None
    # the interval of R's psych::ICC for these data, in its documentation
    assert (round(found.interval.low, 3), round(found.interval.high, 2)) == (0.019, 0.76)


def naive_icc(rows: Any) -> tuple[float, float, float]:
    """ICC(2,1) and its interval, term by term from Shrout and Fleiss, by means and residuals."""
    x = np.array(rows, float)
    n, k = x.shape
    grand, items, raters = x.mean(), x.mean(1), x.mean(0)
    bms = k * ((items - grand) ** 2).sum() / (n - 1)
    jms = n * ((raters - grand) ** 2).sum() / (k - 1)
    ems = ((x - items[:, None] - raters + grand) ** 2).sum() / ((n - 1) * (k - 1))
    rho = (bms - ems) / (bms + (k - 1) * ems + k * (jms - ems) / n)
    fj = jms / ems
    top = (k - 1) * (n - 1) * (k * rho * fj + n * (1 + (k - 1) * rho) - k * rho) ** 2
    v = top / ((n - 1) * k**2 * rho**2 * fj**2 + (n * (1 + (k - 1) * rho) - k * rho) ** 2)
    f_low, f_high = stats.f.ppf(0.975, n - 1, v), stats.f.ppf(0.975, v, n - 1)
    low = n * (bms - f_low * ems) / (f_low * (k * jms + (k * n - k - n) * ems) + n * bms)
    high = n * (f_high * bms - ems) / (k * jms + (k * n - k - n) * ems + n * f_high * bms)
    return rho, low, high


def test_icc_is_a_two_way_analysis_of_variance() -> None:
    bits = np.random.PCG64(5).random_raw(600).reshape(-1, 3) % 97
    for rows in (SHROUT_FLEISS, bits.tolist(), [[1, 2], [2, 3], [9, 7]]):
        found = icc(rows)
        assert found.interval is not None
        assert (found.value, found.interval.low, found.interval.high) == pytest.approx(
            naive_icc(rows), rel=1e-8
        )


@settings(max_examples=200)
@given(
    st.integers(1, 4).flatmap(
        lambda k: st.lists(st.lists(st.integers(0, 3), min_size=k, max_size=k), max_size=5)
    )
)
def test_icc_is_a_number_or_says_why_not(rows: list[list[int]]) -> None:
    found = icc(rows)
    assert (found.value is None) <= (found.reason is not None)
    assert (found.interval is None) == (found.reason is not None)
    if found.interval is not None and found.value is not None:
        assert all(isfinite(end) for end in (found.interval.low, found.interval.high))
        assert -1 <= found.interval.low <= found.interval.high <= 1


def test_raters_who_differ_by_a_constant_do_not_agree_absolutely() -> None:
    found = icc([[1, 2], [2, 3], [3, 4]])
    assert found.value == float(Fraction(2, 3))  # MSR 2, MSC 1.5, MSE 0: 2 / (2 + 2·1.5/3)
    assert found.interval is None


def test_scores_that_are_too_many_for_categories_are_still_success_or_not() -> None:
    x = list(range(0, 1000, 40))
    found = compare("a", "b", x, [score + 1 for score in x], passes=700, scale=1000)
    assert found.quadratic.value is None
    assert "more than 20" in (found.quadratic.reason or "")
    assert found.success is not None
    assert found.success.value == 1
    assert found.mae == 0.001


def test_layers_are_compared_as_two_raters_of_every_run() -> None:
    raw = np.random.PCG64(11).random_raw(400)
    layer2 = (raw[:200] % 10_001).astype(int).tolist()
    layer3 = [min(10_000, (a + int(b % 6_000)) // 1) for a, b in zip(layer2, raw[200:], strict=True)]
    passes = [(a >= 7000, b >= 7000) for a, b in zip(layer2, layer3, strict=True)]
    tally = Tally(
        runs=200,
        composite_checked=200,
        layer2_passes=sum(a for a, _ in passes),
        layer3_passes=sum(b for _, b in passes),
        layers_pass=sum(a and b for a, b in passes),
    )
    found = layer_agreement(tally)
    agree = sum(a == b for a, b in passes)
    assert found.value == Fraction(agree, 200)
    assert found.counts == {
        "successes": agree,
        "both_pass": passes.count((True, True)),
        "layer2_only": passes.count((True, False)),
        "layer3_only": passes.count((False, True)),
        "neither_passes": passes.count((False, False)),
    }
    detail: dict[str, Estimate] = dict(found.detail)
    assert detail["kappa"].value == float(naive_kappa([(int(a), int(b)) for a, b in passes], "none"))
    empty = layer_agreement(structs.replace(tally, composite_checked=0))
    assert empty.value is None
    assert empty.reason == "no run carries both layer scores"
