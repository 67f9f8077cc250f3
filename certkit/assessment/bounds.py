"""What tasks show of a mean: sums over tasks, the task posterior and its limits.

What must generalise is tasks, not runs. A task c has the value x_c in 0…1, the mean of its n_c runs, 1 being
best, and a weight w_c with Σw_c = k: w_c = 1 where tasks weigh alike, w_c = k·n_c/n where they weigh by their
runs. Beside the k tasks stand one prior task that failed and one that passed:

    μ = (Σ w_c·x_c + 1) / (k + 2)      V = [Σ w_c²·(x_c − μ)² + μ² + (1 − μ)²] / ((k + 2)(k + 3))
    N = μ(1 − μ)/V − 1                 θ ~ Beta(μN, (1 − μ)N)

the posterior of a mean under a Dirichlet process with that prior (Ferguson 1973; Rubin 1981, R `bayesboot`),
fitted by moments. With one run a task it is Beta(1 + s, 1 + n − s) of [26] §3.1. The worse of both weightings
counts. For a threshold below one half the passed prior task is left out, since it would pull up.

The mean that is estimated is that over tasks such as these, and that over runs. The rule is an approximation;
docs/explanation/simulation-study.md shows how often it errs. Sums are exact, and are divided once.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, lcm, log, log1p, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.assessment import beta
from certkit.summary.summary import SCALE, MeanSeries, PairSeries, Summary

if TYPE_CHECKING:
    from collections.abc import Iterable

HALF: Final = Fraction(1, 2)
MOST_VIOLATIONS: Final = 5
"""Violations per run at which the quality factor of [26] eq. 5 is 0; a bound counts no more of a run."""
_LARGEST_COMMON: Final = 2**1024


class Weighted(NamedTuple):
    """Sums over k tasks with weights w, Σw = k: Σwx, Σw²x², Σw²x, Σw²."""

    k: Fraction
    wx: Fraction
    wwxx: Fraction
    wwx: Fraction
    ww: Fraction

    def scaled(self, start: Fraction, slope: Fraction) -> Weighted:
        """Return the sums of start + slope·x."""
        if start == 0 and slope == 1:
            return self
        return Weighted(
            self.k,
            start * self.k + slope * self.wx,
            start * start * self.ww + 2 * start * slope * self.wwx + slope * slope * self.wwxx,
            start * self.ww + slope * self.wwx,
            self.ww,
        )

    def over_one_unit(self) -> tuple[Weighted, int]:
        """Return the sums as integers, and what they are over."""
        unit = lcm(*(item.denominator for item in self))
        return Weighted._make(item.numerator * (unit // item.denominator) for item in self), unit


class Tasks(NamedTuple):
    """The tasks that carry a metric: how many, their runs, and their sums in either weighting."""

    k: int
    n: int
    alike: Weighted
    by_runs: Weighted

    def scaled(self, start: Fraction, slope: Fraction) -> Tasks:
        """Return the tasks with values start + slope·x."""
        return Tasks(self.k, self.n, self.alike.scaled(start, slope), self.by_runs.scaled(start, slope))

    @property
    def mean(self) -> Fraction:
        """The mean over tasks, each counting once."""
        return self.alike.wx / self.k

    @property
    def mean_by_runs(self) -> Fraction:
        """The mean over runs."""
        return self.by_runs.wx / self.k

    def worst(self, *, high: bool) -> Fraction:
        """Return the worse of the means over tasks and over runs; `high`: the greater is worse."""
        return (max if high else min)(self.mean, self.mean_by_runs)

    @property
    def squared_error(self) -> Fraction | None:
        """The squared standard error of the mean over tasks, Σ(x − x̄)²/(k(k − 1)); None below two tasks."""
        if self.k < 2:  # noqa: PLR2004 - one task shows no variance
            return None
        return (self.alike.wwxx - self.alike.wx**2 / self.k) / (self.k * (self.k - 1))


def tasks_of(rows: Iterable[tuple[int, int, int | Fraction, int | Fraction]], unit: int = 1) -> Tasks | None:
    """Return the sums of rows (runs, tasks, Σy, Σy²), y being the sum of a task's runs; None without rows.

    Args:
        rows: one for each number of runs.
        unit: what y is divided by.
    """
    rows = list(rows)
    k = sum(tasks for _, tasks, _, _ in rows)
    if not k:
        return None
    # Sums of integers over one denominator: fractions that are added one by one take several times as long.
    n = sum(runs * tasks for runs, tasks, _, _ in rows)
    common = _common(runs for runs, *_ in rows)
    x = Fraction(sum(y * (common // runs) for runs, _, y, _ in rows), common * unit)
    xx = Fraction(sum(yy * (common // runs) ** 2 for runs, _, _, yy in rows), (common * unit) ** 2)
    by_runs = Weighted(
        Fraction(k),
        Fraction(k * sum(y for _, _, y, _ in rows), n * unit),
        Fraction(k * k * sum(yy for _, _, _, yy in rows), (n * unit) ** 2),
        Fraction(k * k * sum(runs * y for runs, _, y, _ in rows), n * n * unit),
        Fraction(k * k * sum(runs * runs * tasks for runs, tasks, _, _ in rows), n * n),
    )
    return Tasks(k, n, Weighted(Fraction(k), x, xx, x, Fraction(k)), by_runs)


def _common(runs: Iterable[int]) -> int:
    """Return the least common denominator of numbers of runs, or 2^1024 where it is longer.

    A signed summary may hold any numbers of runs, and judging it must not take longer for that. Where the
    denominator is cut, values of tasks are rounded down, by less than 2^-900.
    """
    common = 1
    for number in runs:
        if (common := lcm(common, number)) > _LARGEST_COMMON:
            return _LARGEST_COMMON
    return common


def share_tasks(rows: Iterable[tuple[int, int, int]]) -> Tasks | None:
    """Return the tasks of rows ``[runs, successes, tasks]``."""
    groups: dict[int, list[int]] = {}
    for runs, successes, tasks in rows:
        sums = groups.setdefault(runs, [0, 0, 0])
        sums[0] += tasks
        sums[1] += successes * tasks
        sums[2] += successes * successes * tasks
    return tasks_of((runs, k, y, yy) for runs, (k, y, yy) in groups.items())


def mean_tasks(series: MeanSeries, name: str) -> Tasks | None:
    """Return the tasks of a series of scores, in the metric's unit."""
    return tasks_of(((runs, tasks, int(y), int(yy)) for runs, tasks, y, yy in series.rows), SCALE[name])


class Law(NamedTuple):
    """A Beta distribution by its mean and variance."""

    mean: float
    variance: float

    @property
    def parameters(self) -> tuple[float, float]:
        """The parameters a and b."""
        size = self.mean * (1 - self.mean) / max(self.variance, 1e-300) - 1
        return self.mean * size, (1 - self.mean) * size

    def quantile(self, probability: float) -> float:
        """Return R's ``qbeta(probability, a, b)``; the mean itself where it is 0 or 1."""
        if not 0 < self.mean < 1:
            return self.mean
        return beta.quantile(probability, *self.parameters)

    def above(self, threshold: float) -> float:
        """Return P(θ > threshold)."""
        if not 0 < self.mean < 1:
            return float(self.mean > threshold)
        return beta.above(threshold, *self.parameters)

    def exceeds(self, threshold: float, confidence: float) -> bool:
        """Tell whether P(θ > threshold) > confidence, in most cases without the tail.

        P(θ ≤ threshold) is at most V/(V + (μ − threshold)²) for a threshold below the mean (Cantelli).
        """
        distance = max(0.0, self.mean - threshold)
        if self.variance < (1 - confidence) * (self.variance + distance * distance):
            return True
        return self.above(threshold) > confidence


def law(sums: Weighted, failed: int = 1, passed: int = 1, *, unit: int = 1) -> Law:
    """Return the task posterior.

    Args:
        sums: of values in 0…1, 1 being best.
        failed: prior tasks that failed.
        passed: prior tasks that passed.
        unit: what the sums are over; with `Weighted.over_one_unit` all is integers, ten times as fast.
    """
    k, wx, wwxx, wwx, ww = sums
    size, good = k + unit * (failed + passed), wx + unit * passed
    spread = wwxx * size * size - good * (2 * wwx * size - good * ww)
    prior = unit * (failed * good * good + passed * (size - good) ** 2)
    return Law(float(good / size), float(unit * (spread + prior) / (size**3 * (size + unit))))


def laws(tasks: Tasks, threshold: Fraction) -> tuple[Law, Law]:
    """Return the posterior of either weighting; `threshold`, on the same scale, decides on priors."""
    passed = int(threshold >= HALF)
    (alike, unit), (by_runs, unit_by_runs) = tasks.alike.over_one_unit(), tasks.by_runs.over_one_unit()
    return law(alike, passed=passed, unit=unit), law(by_runs, passed=passed, unit=unit_by_runs)


def lower(tasks: Tasks, threshold: Fraction, confidence: Fraction) -> float:
    """Return the lower confidence limit of the mean of values in 0…1, the worse of both weightings."""
    return least_limit(laws(tasks, threshold), confidence)


def least_limit(posteriors: Iterable[Law], confidence: Fraction) -> float:
    """Return the lower confidence limit of a mean of values in 0…1: the least that any of its laws gives.

    A law is passed over where it lies above the least so far with more than the confidence.
    """
    tail = float(1 - confidence)
    first, *others = sorted(posteriors, key=lambda item: item.mean - 2 * sqrt(item.variance))
    least = first.quantile(tail)
    for item in others:
        if not item.exceeds(least, 1 - tail):
            least = min(least, item.quantile(tail))
    return least


def above(tasks: Tasks, threshold: Fraction) -> float:
    """Return P(θ > threshold) over tasks, the worse of both weightings."""
    return min(item.above(float(threshold)) for item in laws(tasks, threshold))


@lru_cache(1024)  # every tier asks, and so do rows of one threshold
def least_tasks(threshold: Fraction, confidence: Fraction, *, both: bool = False) -> int:
    """Return the number of tasks below which flawless tasks would not pass: 1 − τ^(k + 1) > δ.

    For a threshold below one half it is 1 − τ^k > δ, unless `both` prior tasks stay (differences, products).
    """
    if threshold >= 1 or confidence >= 1 or threshold <= 0:
        return 1
    left = 1 - confidence
    # The logarithm may be off by one near a boundary, exact powers settle it.
    shrinks = log1p(-float(1 - threshold)) if threshold >= HALF else log(threshold)
    power = max(0, ceil(log(left) / shrinks) - 3)
    over, under = threshold.numerator, threshold.denominator
    while over**power * left.denominator >= left.numerator * under**power:
        power += 1
    return max(1, power - int(both or threshold >= HALF))


class Both(NamedTuple):
    """Sums over the tasks that carry two metrics: Σw_a·w_b, and that of x_a·x_b, x_a and x_b."""

    ww: Fraction
    xx: Fraction
    x_a: Fraction
    x_b: Fraction


def _shared(pairs: PairSeries, a: Tasks, b: Tasks) -> tuple[Both, Both]:
    """Return the sums over shared tasks, alike and by runs."""
    k = nn = yy = yn = ny = 0
    xx = x_a = x_b = Fraction(0)
    for runs_a, runs_b, tasks, y_a, y_b, product in pairs.rows:
        k += tasks
        xx += Fraction(int(product), runs_a * runs_b)
        x_a += Fraction(int(y_a), runs_a)
        x_b += Fraction(int(y_b), runs_b)
        nn += runs_a * runs_b * tasks
        yy += int(product)
        yn += runs_b * int(y_a)
        ny += runs_a * int(y_b)
    share = Fraction(a.k * b.k, a.n * b.n)
    return Both(Fraction(k), xx, x_a, x_b), Both(share * nn, share * yy, share * yn, share * ny)


def upper_difference(a: Tasks, b: Tasks, pairs: PairSeries, confidence: Fraction) -> float:
    """Return the upper confidence limit of the mean of a less that of b, the worse of both weightings.

    (1 − a + b)/2 is taken as a Beta law by moments. Prior tasks are adverse: one passed of a, one failed of
    b, so that the divisors of the variances are (k + 1)(k + 2). Tasks that both carry lower the variance by
    their covariance, over the geometric mean of both divisors.
    """
    alike, by_runs = _shared(pairs, a, b)
    sides = ((a.alike, b.alike, alike), (a.by_runs, b.by_runs, by_runs))
    tail = float(1 - confidence)
    return 1 - 2 * min(difference(*side).quantile(tail) for side in sides)


def difference(a: Weighted, b: Weighted, both: Both) -> Law:
    """Return the law of (1 − a + b)/2."""
    mean_a, mean_b = ((side.wx + passed) / (side.k + 1) for side, passed in ((a, 1), (b, 0)))
    var_a, var_b = law(a, 0, 1).variance, law(b, 1, 0).variance
    covariance = both.xx - mean_b * both.x_a - mean_a * both.x_b + mean_a * mean_b * both.ww
    divisor = sqrt((a.k + 1) * (a.k + 2) * (b.k + 1) * (b.k + 2))
    variance = (var_a + var_b - 2 * float(covariance) / divisor) / 4
    # Where neither side spreads at all the law is a point; a hair of spread keeps the Beta defined.
    middle = min(max(float(1 - mean_a + mean_b) / 2, 1e-12), 1 - 1e-12)
    return Law(middle, min(max(variance, 1e-18), middle * (1 - middle) * (1 - 1e-9)))


def corrected(confidence: Fraction, attempt: int) -> Fraction:
    """Return the confidence that attempt number `attempt` at one profile must reach.

    The first keeps α = 1 − δ; attempt i ≥ 2 gets 0.2·α/(i(i − 1)), which sums to at most 1.2·α however many
    there are (alpha spending, Lan & DeMets 1983).
    """
    alpha = 1 - confidence
    if attempt > 1:
        alpha *= Fraction(2, 10) / (attempt * (attempt - 1))
    return 1 - alpha


def tasks(summary: Summary, name: str, domain: str | None = None) -> Tasks | None:
    """Return the tasks that carry a series, in all domains or in one; None where no run does."""
    if name in summary.means:
        return mean_tasks(summary.means[name], name)
    series = summary.share(name)
    return share_tasks(series.rows if domain is None else series.domains.get(domain, ()))
