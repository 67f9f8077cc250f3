"""The intraclass correlation and pass^j, against worked examples and sums over single runs."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certkit.assessment.variation import Variation, icc, variation
from certkit.summary.summary import ShareSeries, Summary

if TYPE_CHECKING:
    from collections.abc import Sequence


class Histogram(Summary, frozen=True, kw_only=True):
    """A summary of which only the series are looked at."""

    def __post_init__(self) -> None:
        """Take the parts as they are."""


def summary_of(tasks: Sequence[tuple[int, int]]) -> Summary:
    """Return a summary of tasks (runs, successes)."""
    rows = tuple((n, y, tasks.count((n, y))) for n, y in sorted(set(tasks)))
    return Histogram(records=0, shares={"r_op": ShareSeries(rows=rows)} if rows else {})


def found(tasks: Sequence[tuple[int, int]]) -> Variation:
    result = variation(summary_of(tasks))
    assert result is not None
    return result


def test_donners_correlation_of_equal_tasks_equals_a_worked_example() -> None:
    # Three tasks of 4 runs with 4, 2 and 0 successes: MSB = 1, MSW = 1/9, n0 = 4, so σ_b² = 2/9, ρ = 2/3.
    result = found([(4, 4), (4, 2), (4, 0)])
    assert (result.within, result.between, result.icc) == pytest.approx((1 / 9, 2 / 9, 2 / 3))


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), min_size=2, max_size=12))
def test_the_correlation_is_that_of_an_analysis_of_variance_of_single_runs(
    drawn: list[tuple[int, int]],
) -> None:
    tasks = [(n, min(n, y)) for n, y in drawn]
    result = found(tasks)
    k, sizes = len(tasks), np.array([n for n, _ in tasks])
    if sizes.sum() == k:
        assert (result.between, result.within, result.icc) == (None, None, None)
        return
    groups = [np.r_[np.ones(y), np.zeros(n - y)] for n, y in tasks]
    mean = np.concatenate(groups).mean()
    msb = sum(len(group) * (group.mean() - mean) ** 2 for group in groups) / (k - 1)
    msw = sum(((group - group.mean()) ** 2).sum() for group in groups) / (sizes.sum() - k)
    n0 = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / (k - 1)
    between = max(0.0, (msb - msw) / n0)
    assert (result.between, result.within) == pytest.approx((between, msw), abs=1e-12)
    if between + msw < 1e-12:
        assert result.icc is None
    else:
        assert result.icc == pytest.approx(between / (between + msw), abs=1e-12)


@given(st.lists(st.tuples(st.integers(2, 5), st.integers(0, 5)), min_size=1, max_size=6))
def test_pass_j_is_the_share_of_all_choices_of_j_runs_that_succeed(drawn: list[tuple[int, int]]) -> None:
    tasks = [(n, min(n, y)) for n, y in drawn]
    result = found(tasks)
    assert list(result.all_succeed) == list(range(1, min(n for n, _ in tasks) + 1))
    for j, share in result.all_succeed.items():
        choices = [[all(runs) for runs in combinations([1] * y + [0] * (n - y), j)] for n, y in tasks]
        assert share == pytest.approx(np.mean([np.mean(runs) for runs in choices]))


def test_pass_j_ends_at_ten_runs() -> None:
    assert max(found([(40, 39), (12, 12)]).all_succeed) == 10


def test_one_run_a_task_or_one_task_shows_no_correlation() -> None:
    assert icc(summary_of([(1, 1), (1, 0), (1, 1)])) is None
    assert icc(summary_of([(9, 4)])) is None
    assert found([(1, 1), (1, 0), (1, 1)]).all_succeed == {1: pytest.approx(2 / 3)}


def test_without_a_run_under_a_fault_there_is_no_variation() -> None:
    assert variation(summary_of([])) is None
    assert icc(summary_of([])) is None
