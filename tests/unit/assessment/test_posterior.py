"""The task posterior: the paper's law, both weightings, least k, differences, a bootstrap."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from certkit.assessment.bounded import size_needed
from certkit.assessment.kinds import KINDS, Difference, Kind, Minimum, Posterior, TaskMean
from certkit.assessment.statistics import posterior
from certkit.assessment.statistics.estimators import Interval, variation
from certkit.assessment.statistics.posterior import PRIORS
from certkit.summary.tasks import Shared, Tasks, TaskSums, shared, task_sums

COUNTS = st.lists(st.integers(1, 9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1)


def tasks(y: list[int], n: list[int], scale: int = 1, first: int = 0) -> Tasks:
    size = len(y)
    return Tasks(
        group=np.zeros(size, np.int64),
        task=np.arange(first, first + size).astype(np.uint64),
        y=np.array(y, np.int64),
        n=np.array(n, np.int64),
        scale=scale,
    )


def sums(y: list[int], n: list[int], scale: int = 1) -> TaskSums:
    return task_sums(tasks(y, n, scale))[0]


# --- one run a task ---------------------------------------------------------------------------------


@given(st.integers(0, 60), st.integers(0, 60))
def test_with_one_run_a_task_it_is_the_papers_posterior_to_the_last_bit(s: int, failures: int) -> None:
    k = s + failures
    if k == 0:
        return
    found = sums([1] * s + [0] * failures, [1] * k)
    for law in posterior.posteriors(found):
        assert (law.mean * law.size, (1 - law.mean) * law.size) == (1 + s, 1 + failures)
    assert posterior.lower(found, 0.95) == special.betaincinv(1 + s, 1 + failures, 1 - 0.95)
    assert posterior.above(found, 0.8) == special.betaincc(1 + s, 1 + failures, 0.8)


@pytest.mark.parametrize(("prior", "weight"), [("jeffreys", 0.5), ("sceptical", 5)])
def test_other_prior_tasks_are_the_beta_of_that_prior(prior: str, weight: float) -> None:
    found = posterior.above(sums([1] * 30 + [0] * 4, [1] * 34), 0.8, PRIORS[prior])
    assert found == pytest.approx(stats.beta(weight + 30, weight + 4).sf(0.8), rel=1e-13)


# --- many runs a task -------------------------------------------------------------------------------


@given(COUNTS, st.randoms(use_true_random=False))
def test_the_order_of_tasks_does_not_matter_to_the_last_bit(
    counts: list[tuple[int, int]], by: object
) -> None:
    other = list(counts)
    by.shuffle(other)  # type: ignore[attr-defined]
    limits = [
        posterior.lower(sums([y for y, _ in some], [n for _, n in some]), 0.95) for some in (counts, other)
    ]
    assert limits[0] == limits[1]


def test_repeats_that_follow_success_are_answered_by_the_mean_over_tasks() -> None:
    # Ten tasks that pass ran 50 times each, ten that fail once: runs say 98 %, tasks 50 %.
    found = sums([50] * 10 + [0] * 10, [50] * 10 + [1] * 10)
    by_task, by_runs = posterior.posteriors(found)
    assert float(by_task.mean) == pytest.approx(0.5)
    assert float(by_runs.mean) == pytest.approx((20 * 500 / 510 + 1) / 22)
    assert posterior.lower(found, 0.95) == pytest.approx(by_task.quantile(0.05))
    assert posterior.lower(found, 0.95) < 0.4


def test_repeats_that_follow_failure_are_answered_by_the_mean_over_runs() -> None:
    found = sums([1] * 15 + [0] * 5, [1] * 15 + [20] * 5)
    by_task, by_runs = posterior.posteriors(found)
    assert posterior.lower(found, 0.95) == by_runs.quantile(1 - 0.95) < by_task.quantile(1 - 0.95)


def test_identical_repeats_add_nothing() -> None:
    once, often = sums([1] * 18 + [0] * 2, [1] * 20), sums([25] * 18 + [0] * 2, [25] * 20)
    assert posterior.lower(once, 0.95) == posterior.lower(often, 0.95)


def test_arrays_of_samples_are_judged_as_each_alone() -> None:
    some = [([3, 4, 5, 0], [5, 5, 5, 1]), ([2, 2, 2, 2], [2, 3, 4, 9])]
    each = [sums(y, n) for y, n in some]
    names = TaskSums.__struct_fields__[1:]
    columns = {name: np.array([float(getattr(one, name)) for one in each]) for name in names}
    together = posterior.lower(TaskSums(scale=1, **columns), 0.9)
    assert together == pytest.approx([posterior.lower(one, 0.9) for one in each], rel=1e-12)


@pytest.mark.parametrize(
    ("values", "sizes"),
    [
        ([1.0] * 60 + [0.0] * 9, [1] * 69),
        (list(np.random.default_rng(7).beta(6, 1, 80)), [3] * 80),
        (list(np.random.default_rng(8).beta(3, 2, 50)), list(range(1, 51))),
    ],
)
def test_a_dirichlet_process_bootstrap_written_apart_agrees(values: list[float], sizes: list[int]) -> None:
    """Rubin's bootstrap over the tasks and the two prior tasks, whose moments the Beta law takes over."""
    y = [round(x * n * 1000) for x, n in zip(values, sizes, strict=True)]
    found = sums(y, sizes, 1000)
    k, draws = len(values), 40_000
    weights = np.random.default_rng(1).dirichlet(np.ones(k + 2), draws)
    for law, w in zip(
        posterior.posteriors(found),
        (np.ones(k), k * np.array(sizes) / sum(sizes)),
        strict=True,
    ):
        x = np.array(y) / (1000 * np.array(sizes))
        drawn = weights @ np.concatenate([w * x + (1 - w) * float(law.mean), [0.0, 1.0]])
        error = drawn.std() / np.sqrt(draws)
        assert float(law.mean) == pytest.approx(drawn.mean(), abs=5 * error)
        assert float(law.variance) == pytest.approx(drawn.var(), rel=5 * np.sqrt(2 / draws))
        assert law.quantile(0.05) == pytest.approx(np.quantile(drawn, 0.05), abs=0.006)


# --- least k ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "threshold", "delta", "least"),
    [
        (TaskMean("r_op"), ".8", ".95", 13),
        (TaskMean("r_op"), ".95", ".99", 89),
        (Posterior(Fraction(4, 5)), ".95", ".95", 13),
        (Posterior(Fraction(19, 20)), ".99", ".99", 89),
        (Minimum("r_op"), ".65", ".95", 6),
        (Minimum("r_op"), ".9", ".99", 43),
        (TaskMean("violations"), ".3", ".95", 48),
        (TaskMean("violations"), ".1", ".99", 227),
        (Difference("single", "cascade"), "20", ".95", 13),
        (Difference("single", "cascade"), "10", ".99", 43),
        (TaskMean("ti"), "4", ".95", 10),
    ],
)
def test_the_least_number_of_tasks_is_where_flawless_ones_just_pass(
    kind: Kind, threshold: str, delta: str, least: int
) -> None:
    up = kind != KINDS["cascade_penalty"] and kind != KINDS["violations"]
    assert kind.least(Fraction(threshold), Fraction(delta), lower=up) == least
    if kind == TaskMean("r_op"):
        for k, passes in ((least - 1, False), (least, True)):
            assert (posterior.lower(sums([1] * k, [1] * k), float(delta)) > float(threshold)) == passes


def test_about_how_many_tasks_show_a_rate_lies_near_what_is_planned() -> None:
    # The design's plan: 74 tasks of 5 runs for .88 > .80, 242 for .98 > .95 at .99.
    lesser, higher = (rate * (1 - rate) * (0.3 + 0.7 / 5) for rate in (0.88, 0.98))
    assert posterior.tasks_needed(0.88, 0.8, 0.95, spread=lesser) == pytest.approx(74, rel=0.03)
    assert posterior.tasks_needed(0.98, 0.95, 0.99, spread=higher) == pytest.approx(242, rel=0.03)
    assert posterior.tasks_needed(0.8, 0.8, 0.95, spread=0.1) is None


def test_the_tasks_that_an_interval_asks_for_show_the_rate_four_times_out_of_five() -> None:
    each = [20] * 42 + [13] * 8 + [8] * 10
    limit = posterior.lower(sums(each, [20] * 60), 0.975)
    high = 1 - posterior.lower(sums([20 - good for good in each], [20] * 60), 0.975)
    needed = size_needed("r_op", 1024 / 1200, 0.8, Interval(low=limit, high=high), size=60, confidence=0.95)
    assert needed is not None
    rng = np.random.default_rng(1)
    draws = (sums(rng.choice(each, needed).tolist(), [20] * needed) for _ in range(400))
    shown = sum(posterior.lower(drawn, 0.95) > 0.8 for drawn in draws)
    assert shown / 400 == pytest.approx(0.8, abs=0.08)


# --- attempts, differences, products ----------------------------------------------------------------


def test_attempts_spend_at_most_a_fifth_more_however_many_there_are() -> None:
    spent = [1 - posterior.corrected(Fraction(95, 100), attempt) for attempt in range(1, 400)]
    assert spent[0] == Fraction(5, 100)
    assert spent[1] == Fraction(1, 10) * Fraction(5, 100)
    assert all(later < earlier for earlier, later in pairwise(spent))
    assert Fraction(119, 100) < sum(spent) / spent[0] < Fraction(12, 10)


def test_a_difference_of_arms_that_share_no_task_has_the_moments_of_both() -> None:
    a, b = sums([1] * 30 + [0] * 10, [1] * 40), sums([1] * 20 + [0] * 20, [1] * 40)
    nothing = Shared(k=0, xx=0, x_a=0, x_b=0, yy=0, yn=0, ny=0, nn=0)
    # Prior tasks: one that passed for a, one that failed for b, so that means are 31/41 and 20/41.
    mean_a, mean_b = 31 / 41, 20 / 41
    variance = (mean_a * (1 - mean_a) + mean_b * (1 - mean_b)) / 42 / 4
    middle = (1 - mean_a + mean_b) / 2
    size = middle * (1 - middle) / variance - 1
    wanted = 1 - 2 * stats.beta(middle * size, (1 - middle) * size).ppf(0.05)
    assert posterior.worst_difference(a, b, nothing, 0.95) == pytest.approx(wanted, rel=1e-10)


def test_arms_over_the_same_tasks_are_told_apart_more_surely() -> None:
    rng = np.random.default_rng(3)
    rates = rng.random(60)
    a, b = (tasks(list(rng.binomial(20, rates)), [20] * 60) for _ in range(2))
    one, two = task_sums(a)[0], task_sums(b)[0]
    alone = tasks([0] * 60, [20] * 60, first=1000)
    paired = posterior.worst_difference(one, two, shared(a, b), 0.95)
    apart = posterior.worst_difference(one, two, shared(a, alone), 0.95)
    assert paired < apart - 0.05


@pytest.mark.parametrize(("a", "b"), [(1, 0), (0, 1), (1, 1), (0, 0)])
def test_arms_at_the_ends_have_a_bound(a: int, b: int) -> None:
    one, two = tasks([a] * 9, [1] * 9), tasks([b] * 9, [1] * 9)
    bound = posterior.worst_difference(task_sums(one)[0], task_sums(two)[0], shared(one, two), 0.95)
    assert a - b <= bound <= 1


# --- components of variance -------------------------------------------------------------------------


def test_donners_intraclass_correlation_equals_a_worked_example() -> None:
    # Three tasks of 4 runs, 4, 2 and 0 successes: MSB = 1, MSW = 1/9, n0 = 4, so σ_b² = 2/9, ρ = 2/3.
    found = variation(tasks([4, 2, 0], [4, 4, 4]))
    assert found is not None
    assert (found.within, found.between, found.icc) == pytest.approx((1 / 9, 2 / 9, 2 / 3))
    # Unequal sizes 2, 3, 5 with 2, 1, 2: n0 = (10 − 38/10)/2 = 3.1.
    found = variation(tasks([2, 1, 2], [2, 3, 5]))
    squares = 4 / 2 + 1 / 3 + 4 / 5
    within, between = (5 - squares) / 7, (squares - 25 / 10) / 2
    component = (between - within) / 3.1
    assert found is not None
    assert found.icc == pytest.approx(max(0, component) / (max(0, component) + within))


def test_all_of_several_runs_succeed_as_often_as_combinations_say() -> None:
    found = variation(tasks([3, 1, 4], [4, 4, 4]))
    assert found is not None
    for j, share in found.all_succeed.items():
        assert share == pytest.approx(sum(comb(y, j) / comb(4, j) for y in (3, 1, 4)) / 3)
    assert list(found.all_succeed) == [1, 2, 3, 4]


def test_one_run_a_task_shows_no_correlation_and_says_so() -> None:
    found = variation(tasks([1, 0, 1], [1, 1, 1]))
    assert found is not None
    assert (found.icc, found.between, found.within) == (None, None, None)
    assert found.all_succeed == {1: pytest.approx(2 / 3)}
    assert variation(tasks([], [])) is None
