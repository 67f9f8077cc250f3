"""The task posterior: the paper's law, both weightings, least k, differences, a bootstrap, Wilson's ends."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtri

from certkit.assessment import beta, bounds
from certkit.assessment.bounds import Tasks, least_tasks, lower
from certkit.assessment.metric import Z, wilson
from certkit.assessment.profile import Criterion
from certkit.assessment.row import least_of
from certkit.summary.summary import PairSeries
from tests.support import bound_laws, build

TAU, DELTA = Fraction(4, 5), Fraction(19, 20)
COUNTS = st.lists(st.integers(1, 9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1)


def tasks(y: list[int], n: list[int], scale: int = 1) -> Tasks:
    """Tasks with sums y / scale over n runs."""
    found = bounds.tasks_of(
        (runs, 1, Fraction(total, scale), Fraction(total * total, scale * scale))
        for total, runs in zip(y, n, strict=True)
    )
    assert found is not None
    return found


def test_sums_over_many_odd_numbers_of_runs_have_a_denominator_of_bounded_length() -> None:
    primes = [n for n in range(2, 20_000) if all(n % d for d in range(2, int(sqrt(n)) + 1))]
    found = bounds.share_tasks((n, n // 2, 1) for n in primes)
    assert found is not None
    sums = found.alike
    assert max(item.denominator.bit_length() for item in sums) <= 2 * 1025
    means = [n // 2 / n for n in primes]
    assert float(found.mean) == pytest.approx(sum(means) / len(means), abs=1e-12)
    assert float(sums.wwxx) == pytest.approx(sum(x * x for x in means), rel=1e-12)
    assert sums.wwxx * found.k >= sums.wx**2, "rounded values are values: their variance is not negative"


def groups(y: list[int], n: list[int]) -> bound_laws.Groups:
    names = tuple(str(place) for place in range(len(y)))
    return bound_laws.Groups(names, tuple(n), tuple(map(Fraction, y)))


# --- one run a task ---------------------------------------------------------------------------------


@given(st.integers(0, 60), st.integers(0, 60))
def test_with_one_run_a_task_it_is_the_papers_posterior(s: int, failures: int) -> None:
    k = s + failures
    if k == 0:
        return
    found = tasks([1] * s + [0] * failures, [1] * k)
    for law in bounds.laws(found, TAU):
        assert law.parameters == pytest.approx((1 + s, 1 + failures), rel=1e-9)
    assert lower(found, TAU, DELTA) == pytest.approx(stats.beta(1 + s, 1 + failures).ppf(0.05), rel=1e-9)
    chance = bounds.above(found, TAU)
    assert chance == pytest.approx(stats.beta(1 + s, 1 + failures).sf(0.8), rel=1e-9, abs=1e-300)


def exact_tail(s: int, n: int, tau: Fraction) -> Fraction:
    """P(Bin(n + 1, τ) ≤ s), which is P(θ > τ) for Beta(1 + s, 1 + n - s), in integers."""
    p, q = tau.numerator, tau.denominator
    return Fraction(sum(comb(n + 1, k) * p**k * (q - p) ** (n + 1 - k) for k in range(s + 1)), q ** (n + 1))


def test_820_of_1000_shows_080_with_probability_0_941630() -> None:
    found = build.judged(build.runs(1000, 820)).metrics["posterior"].by_tier
    assert found is not None
    assert round(float(exact_tail(820, 1000, TAU)), 6) == 0.941630
    for tier, tau in ((1, "0.60"), (2, "0.80"), (3, "0.95")):
        wanted = float(exact_tail(820, 1000, Fraction(tau)))
        assert found[tier] == pytest.approx(wanted, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(("s", "n"), [(0, 1), (1, 1), (0, 40), (40, 40), (61, 90), (17, 23)])
@pytest.mark.parametrize("tau", ["0.05", "0.60", "0.80", "0.95"])
def test_the_papers_posterior_is_the_binomial_tail(s: int, n: int, tau: str) -> None:
    wanted = float(exact_tail(s, n, Fraction(tau)))
    assert beta.above(float(tau), 1 + s, 1 + n - s) == pytest.approx(wanted, rel=1e-12)


# --- many runs a task -------------------------------------------------------------------------------


@given(COUNTS, st.sampled_from([Fraction(1, 5), Fraction(2, 5), TAU, Fraction(19, 20)]))
def test_limits_are_those_of_the_formulas_written_apart(counts: list[tuple[int, int]], tau: Fraction) -> None:
    y, n = [y for y, _ in counts], [n for _, n in counts]
    wanted = bound_laws.limit(groups(y, n), 0.95, lower=True, tau=tau)
    assert lower(tasks(y, n), tau, DELTA) == pytest.approx(wanted, rel=1e-8, abs=1e-12)


def test_for_a_threshold_below_one_half_the_passed_prior_task_is_left_out() -> None:
    found = tasks([1] * 9 + [0] * 11, [1] * 20)
    low = lower(found, Fraction(2, 5), DELTA)
    # Clopper and Pearson's limit, for tasks that succeed or fail.
    exact = stats.binomtest(9, 20).proportion_ci(0.9, method="exact").low
    assert low == pytest.approx(exact, rel=1e-9)
    assert low < lower(found, Fraction(1, 2), DELTA) == lower(found, TAU, DELTA)


@given(COUNTS, st.randoms(use_true_random=False))
def test_the_order_of_tasks_does_not_matter(counts: list[tuple[int, int]], by: object) -> None:
    other = list(counts)
    by.shuffle(other)  # type: ignore[attr-defined]
    limits = [
        lower(tasks([y for y, _ in some], [n for _, n in some]), TAU, DELTA) for some in (counts, other)
    ]
    assert limits[0] == limits[1]


def test_repeats_that_follow_success_are_answered_by_the_mean_over_tasks() -> None:
    # Ten tasks that pass ran 50 times each, ten that fail once: runs say 98 %, tasks 50 %.
    found = tasks([50] * 10 + [0] * 10, [50] * 10 + [1] * 10)
    by_task, by_runs = bounds.laws(found, TAU)
    assert by_task.mean == pytest.approx(0.5)
    assert by_runs.mean == pytest.approx((20 * 500 / 510 + 1) / 22)
    assert lower(found, TAU, DELTA) == by_task.quantile(float(1 - DELTA)) < 0.4


def test_repeats_that_follow_failure_are_answered_by_the_mean_over_runs() -> None:
    found = tasks([1] * 15 + [0] * 5, [1] * 15 + [20] * 5)
    by_task, by_runs = (law.quantile(float(1 - DELTA)) for law in bounds.laws(found, TAU))
    assert lower(found, TAU, DELTA) == by_runs < by_task


def test_identical_repeats_add_nothing() -> None:
    once, often = tasks([1] * 18 + [0] * 2, [1] * 20), tasks([25] * 18 + [0] * 2, [25] * 20)
    assert lower(once, TAU, DELTA) == lower(often, TAU, DELTA)


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
    k, draws = len(values), 40_000
    random = np.random.default_rng(1).dirichlet(np.ones(k + 2), draws)
    weightings = np.ones(k), k * np.array(sizes) / sum(sizes)
    for law, w in zip(bounds.laws(tasks(y, sizes, 1000), TAU), weightings, strict=True):
        x = np.array(y) / (1000 * np.array(sizes))
        drawn = random @ np.concatenate([w * x + (1 - w) * law.mean, [0.0, 1.0]])
        error = drawn.std() / np.sqrt(draws)
        assert law.mean == pytest.approx(drawn.mean(), abs=5 * error)
        assert law.variance == pytest.approx(drawn.var(), rel=5 * np.sqrt(2 / draws))
        assert law.quantile(0.05) == pytest.approx(np.quantile(drawn, 0.05), abs=0.006)


def test_a_limit_of_violations_counts_up_to_five_a_run() -> None:
    clean = build.runs(200, 200, tasks=100, violations=0)
    limits = []
    for most in (5, 9):
        # Two of a hundred tasks break the rules in every run.
        records = [run | {"violations": most} if run["task_id"] in {"a/0", "a/1"} else run for run in clean]
        row = build.row(build.judged(records, "hb-eval-2026-bounded"), "violations")
        assert row.bounded is not None
        assert row.value == 2 * most / 100
        limits.append(row.bounded.bound)
    # A task at the end of the scale counts as failed: 98 passed and 2 failed.
    assert limits == pytest.approx([5 * stats.beta(3, 99).ppf(0.95)] * 2, abs=1e-8)


# --- least k ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "operator", "threshold", "delta", "least"),
    [
        ("r_op", ">", 0.8, ".95", 13),
        ("r_op", ">", 0.95, ".99", 89),
        ("domain_min", ">", 0.65, ".95", 6),
        ("domain_min", ">", 0.9, ".99", 43),
        ("domain_min", ">=", 0.4, ".95", 4),
        ("violations", "<", 0.3, ".95", 48),
        ("violations", "<", 0.1, ".99", 227),
        ("cascade_penalty", "<", 20, ".95", 13),
        ("cascade_penalty", "<", 10, ".99", 43),
        ("ti", ">=", 4, ".95", 10),
    ],
)
def test_the_least_number_of_tasks_is_where_flawless_ones_just_pass(
    metric: str, operator: str, threshold: float, delta: str, least: int
) -> None:
    row = Criterion(id="row", metric=metric, operator=operator, tiers={"1": threshold})  # type: ignore[arg-type]
    assert least_of(row, 1, Fraction(delta)) == least
    if metric == "r_op":
        tau = Fraction(repr(threshold))
        for k, passes in ((least - 1, False), (least, True)):
            assert (lower(tasks([1] * k, [1] * k), tau, Fraction(delta)) > tau) == passes


@pytest.mark.parametrize("tau", ["0.01", "0.3", "0.5", "0.60", "0.80", "0.95", "0.999", "0.9999"])
@pytest.mark.parametrize("delta", ["0.6", "0.95", "0.99", "0.999999"])
@pytest.mark.parametrize("both", [False, True])
def test_the_least_number_is_the_first_that_suffices(tau: str, delta: str, both: bool) -> None:  # noqa: FBT001
    t, d = Fraction(tau), Fraction(delta)
    least, prior = least_tasks(t, d, both=both), int(both or t >= Fraction(1, 2))
    assert 1 - t ** (least + prior) > d
    assert least == 1 or 1 - t ** (least - 1 + prior) <= d


# --- attempts, differences ---------------------------------------------------------------------------


def test_attempts_spend_at_most_a_fifth_more_however_many_there_are() -> None:
    spent = [1 - bounds.corrected(Fraction(95, 100), attempt) for attempt in range(1, 400)]
    assert spent[0] == Fraction(5, 100)
    assert spent[1] == Fraction(1, 10) * Fraction(5, 100)
    assert all(later < earlier for earlier, later in pairwise(spent))
    assert Fraction(119, 100) < sum(spent) / spent[0] < Fraction(12, 10)


def test_a_later_attempt_asks_for_more_confidence() -> None:
    rows = [build.row(build.judged(build.runs(200, 180), attempt=i), "r_op").bounded for i in (1, 2)]
    assert [row and row.confidence for row in rows] == [0.95, 0.995]
    assert rows[0] is not None
    assert rows[1] is not None
    assert (rows[0].bound or 0) > (rows[1].bound or 0)


def test_a_difference_of_arms_that_share_no_task_has_the_moments_of_both() -> None:
    a, b = tasks([1] * 30 + [0] * 10, [1] * 40), tasks([1] * 20 + [0] * 20, [1] * 40)
    # Prior tasks: one that passed for a, one that failed for b, so that means are 31/41 and 20/41.
    mean_a, mean_b = 31 / 41, 20 / 41
    variance = (mean_a * (1 - mean_a) + mean_b * (1 - mean_b)) / 42 / 4
    middle = (1 - mean_a + mean_b) / 2
    size = middle * (1 - middle) / variance - 1
    wanted = 1 - 2 * stats.beta(middle * size, (1 - middle) * size).ppf(0.05)
    assert bounds.upper_difference(a, b, PairSeries(), DELTA) == pytest.approx(wanted, rel=1e-10)


def test_arms_over_the_same_tasks_are_told_apart_more_surely() -> None:
    rng = np.random.default_rng(3)
    rates = rng.random(60)
    y_a, y_b = (rng.binomial(20, rates).tolist() for _ in range(2))
    both = sum(a * b for a, b in zip(y_a, y_b, strict=True))
    shared = PairSeries(rows=((20, 20, 60, sum(y_a), sum(y_b), both),))
    a, b = tasks(y_a, [20] * 60), tasks(y_b, [20] * 60)
    paired, apart = (bounds.upper_difference(a, b, pairs, DELTA) for pairs in (shared, PairSeries()))
    assert paired < apart - 0.05
    wanted = bound_laws.upper_difference(groups(y_a, [20] * 60), groups(y_b, [20] * 60), 0.95)
    assert paired == pytest.approx(wanted, rel=1e-8)


@pytest.mark.parametrize(("a", "b"), [(1, 0), (0, 1), (1, 1), (0, 0)])
def test_arms_at_the_ends_have_a_limit(a: int, b: int) -> None:
    pairs = PairSeries(rows=((1, 1, 9, 9 * a, 9 * b, 9 * a * b),))
    limit = bounds.upper_difference(tasks([a] * 9, [1] * 9), tasks([b] * 9, [1] * 9), pairs, DELTA)
    assert a - b <= limit <= 1


# --- Wilson -------------------------------------------------------------------------------------------


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
    interval = wilson(61, 90)
    assert (round(interval.low, 6), round(interval.high, 6)) == (0.575668, 0.765332)
    assert (interval.level, interval.method) == (0.95, "wilson")
