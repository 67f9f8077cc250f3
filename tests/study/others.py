"""False pass of the other rows of the tier table, the truth at the threshold of a tier.

Every draw is judged by `bounded.Reader`; only draws that the table reading passes are asked, since no
other can pass by bounds.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy.special import betaincinv, gammaln

from certkit.assessment.bounded import Clustered, Reader, bounds
from certkit.assessment.metrics.series import Grouped, Series, every, fault
from certkit.assessment.metrics.view import look
from tests.study.draws import (
    ICCS,
    LEVELS,
    PROFILE,
    Cell,
    each,
    markdown,
    percent,
    sizes,
    successes,
    uniforms,
)
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from certkit.assessment.metrics.series import Totals
    from tests.study.draws import Floats, Integers, Truths

GRADES: Final = {
    2: ((10, 0.85), (7, 0.10), (4, 0.05)),
    3: ((10, 0.96), (7, 0.03), (4, 0.01)),
}
"""Grades of a recovery in tenths, and how often a successful run gets each, by tier."""

OTHER_DOMAINS: Final = 0.95
_PP: Final = 100
_NONE: Final = np.empty(0, np.int64)
_NOTHING: Final = Grouped(group=_NONE, cluster=_NONE.astype(np.uint64), y=_NONE, n=_NONE)

FRR: Final = Series(metric="frr", scale=10, over=fault, y=_NONE, n=_NONE)
VIOLATIONS: Final = Series(metric="violations", scale=1, over=every, y=_NONE, n=_NONE, high=None)
SINGLE: Final = Series(metric="single", scale=1, over=fault, y=_NONE, n=_NONE)


class Row(NamedTuple):
    """A row at a tier, on `runs` of `clusters` tasks in each of some domains."""

    metric: str
    tier: int
    clusters: int
    words: str
    runs: int = 1000
    domains: int = 1

    @property
    def threshold(self) -> Fraction:
        """What the tier asks, and the truth."""
        (row,) = (row for row in PROFILE.criteria if row.id == self.metric)
        return row.threshold(self.tier) or Fraction(0)

    @property
    def delta(self) -> Fraction:
        """The confidence of the tier."""
        return LEVELS[self.tier].delta

    @property
    def told(self) -> str:
        """The row as the table names it."""
        where = f"{self.tier}, {self.clusters}, {self.runs:,}"
        return f"{where}: `{self.metric}` {self.words.format(float(self.threshold))}"


_GRADED: Final = "{:g}, grades 0, .4, .7 and 1"
_POISSON: Final = "{:g} per run, Poisson"
_ALONE: Final = "{:g} in one domain, the others shown"
ROWS: Final = {
    "frr": Row("frr", 2, 40, _GRADED),
    "frr, few tasks": Row("frr", 2, 20, _GRADED),
    "frr, tier 3": Row("frr", 3, 90, _GRADED),
    "violations": Row("violations", 2, 40, _POISSON),
    "violations, few tasks": Row("violations", 2, 20, _POISSON),
    "violations, tier 3": Row("violations", 3, 90, _POISSON),
    "cascade apart": Row("cascade_penalty", 2, 40, "{:g} points, tasks apart"),
    "cascade shared": Row("cascade_penalty", 2, 40, "{:g} points, tasks shared"),
    "one weak domain": Row("domain_min", 2, 10, "{:g} in one domain, .95 in four", 200, 5),
    "weak domains": Row("domain_min", 2, 10, "{:g} in all of five domains", 200, 5),
    "domain, tier 3": Row("domain_min", 3, 10, _ALONE, 200),
    "domain, tier 3, many runs": Row("domain_min", 3, 10, _ALONE),
    "domain, tier 3, 15 tasks": Row("domain_min", 3, 15, _ALONE, 300),
    "domain, tier 3, 20 tasks": Row("domain_min", 3, 20, _ALONE, 400),
    "domain, tier 3, 20 tasks, many runs": Row("domain_min", 3, 20, _ALONE, 2000),
}


def reader() -> Reader:
    """Return a reader of the tier table; the evidence is put into it draw by draw."""
    return Reader(look(build.summary([]), build.facts().manifest, {}), PROFILE, {})


def clustered(of: Series, sums: Totals) -> Clustered:
    """Return one draw as the reader holds a series."""
    return Clustered(of=of, clusters=_NOTHING, sums=sums)


def recoveries(seed: int, draws: int, icc: float, row: Row) -> tuple[Integers, Integers]:
    """Return the summed grades of every cluster in tenths, and its runs."""
    n, grades = sizes(row.runs, row.clusters), GRADES[row.tier]
    worth = sum(grade * share for grade, share in grades) / 10
    won = successes(seed, "frr", draws, n, rate=float(row.threshold) / worth, icc=icc)
    chance = uniforms(seed, f"grades {icc}", (draws, row.clusters, int(n.max())))
    edges = np.cumsum([share for _, share in grades])[:-1]
    grade = np.array([tenths for tenths, _ in grades])[np.searchsorted(edges, chance, side="right")]
    first = np.arange(int(n.max())) < won[:, :, None]
    return (grade * first).sum(axis=2), n


def violations(seed: int, draws: int, icc: float, row: Row) -> tuple[Integers, Integers]:
    """Return the violations of every cluster and its runs: Poisson, the cluster's rate gamma-distributed."""
    n, mean = sizes(row.runs, row.clusters), float(row.threshold)
    chance = uniforms(seed, f"violations {icc}", (draws, row.clusters))
    found = np.empty(chance.shape, np.int64)
    for size in np.unique(n).tolist():
        y = np.arange(60 * size)
        if icc == 0:
            logs = y * np.log(mean * size) - mean * size - gammaln(y + 1)
        else:
            # ν² is the variance of the rate for which ν²/(ν² + mean), the correlation of two runs, is ICC.
            shape = mean * (1 - icc) / icc
            share = size / (size + shape / mean)
            logs = gammaln(y + shape) - gammaln(shape) - gammaln(y + 1)
            logs += shape * np.log1p(-share) + y * np.log(share)
        of = n == size
        found[:, of] = np.searchsorted(np.cumsum(np.exp(logs))[:-1], chance[:, of], side="right")
    return found, n


def arms(
    seed: int, draws: int, icc: float, row: Row, *, shared: bool
) -> tuple[Integers, Integers, Integers, Integers]:
    """Return successes and runs of both arms: 600 single faults and 400 cascades on the same number of tasks.

    `shared`: a task that is easy under one fault is as easy, by rank, under a cascade.
    """
    name = "cascade shared" if shared else "cascade apart"
    rank = uniforms(seed, f"{name} {icc}", (2, draws, row.clusters))
    if shared:
        rank[1] = rank[0]
    single = 0.85
    rates = single, single - float(row.threshold) / _PP
    n = sizes(600, row.clusters), sizes(400, row.clusters)
    return (
        _won(seed, f"{name} {icc} single", _chances(rank[0], rates[0], icc), n[0]),
        n[0],
        _won(seed, f"{name} {icc} cascade", _chances(rank[1], rates[1], icc), n[1]),
        n[1],
    )


def _chances(rank: Floats, rate: float, icc: float) -> Floats:
    if icc == 0:
        return np.full(rank.shape, rate)
    chances: Floats = betaincinv(rate * (1 / icc - 1), (1 - rate) * (1 / icc - 1), rank)
    return chances


def _won(seed: int, name: str, chances: Floats, n: Integers) -> Integers:
    (size,) = np.unique(n).tolist()
    runs = uniforms(seed, name, (*chances.shape, size)) < chances[:, :, None]
    won: Integers = runs.sum(axis=2)
    return won


def _cascade(seed: int, draws: int, icc: float, row: Row, *, shared: bool) -> tuple[Truths, Truths]:
    y_one, n_one, y_other, n_other = arms(seed, draws, icc, row, shared=shared)
    limit = float(row.threshold) / _PP
    points = y_one.sum(axis=1) / n_one.sum() - y_other.sum(axis=1) / n_other.sum()
    passed = points < limit - 1e-9
    one, other, proven = each(SINGLE, y_one, n_one), each(SINGLE, y_other, n_other), np.zeros(draws, np.bool_)
    for draw in np.flatnonzero(passed).tolist():
        judge = reader()
        judge._known = {"single": clustered(SINGLE, one[draw]), "cascade": clustered(SINGLE, other[draw])}
        pair = judge.arms("single", "cascade", row.delta)
        # The bound of the difference is below the limit just where this probability exceeds δ.
        proven[draw] = pair is not None and bounds.difference_below(*pair, limit) > float(row.delta)
    return passed, proven


def _domains(seed: int, draws: int, icc: float, row: Row, name: str) -> tuple[Truths, Truths]:
    least = float(row.threshold)
    others = least if name == "weak domains" else OTHER_DOMAINS
    n = sizes(row.runs, row.clusters)
    passed, proven = np.ones(draws, np.bool_), np.ones(draws, np.bool_)
    judge = reader()
    for domain in range(row.domains):
        rate = others if domain else least
        y = successes(seed, f"{name} {domain}", draws, n, rate=rate, icc=icc)
        passed &= y.sum(axis=1) > least * n.sum() + 1e-9
        proven &= passed
        sums = each(SINGLE, y, n)
        for draw in np.flatnonzero(proven).tolist():
            found = judge._share(clustered(SINGLE, sums[draw]), None, row.delta, lower=True)
            proven[draw] = found.bound is not None and found.bound > least
    return passed, proven & passed


def _mean(seed: int, draws: int, icc: float, row: Row) -> tuple[Truths, Truths]:
    y, n = recoveries(seed, draws, icc, row)
    passed = y.sum(axis=1) >= float(row.threshold) * 10 * n.sum() - 1e-9
    sums, judge, proven = each(FRR, y, n), reader(), np.zeros(draws, np.bool_)
    for draw in np.flatnonzero(passed).tolist():
        found = judge._share(clustered(FRR, sums[draw]), row.threshold, row.delta, lower=True, mean=True)
        proven[draw] = found.bound is not None and found.bound >= float(row.threshold)
    return passed, proven


def _counts(seed: int, draws: int, icc: float, row: Row) -> tuple[Truths, Truths]:
    y, n = violations(seed, draws, icc, row)
    passed = y.sum(axis=1) < float(row.threshold) * n.sum() - 1e-9
    sums, judge, proven = each(VIOLATIONS, y, n), reader(), np.zeros(draws, np.bool_)
    for draw in np.flatnonzero(passed).tolist():
        found = judge._rate(clustered(VIOLATIONS, sums[draw]), row.delta)
        proven[draw] = found.bound is not None and found.bound < float(row.threshold)
    return passed, proven


def _judged(seed: int, draws: int, icc: float, name: str) -> tuple[Truths, Truths]:
    row = ROWS[name]
    if row.metric == "frr":
        return _mean(seed, draws, icc, row)
    if row.metric == "violations":
        return _counts(seed, draws, icc, row)
    if row.metric == "cascade_penalty":
        return _cascade(seed, draws, icc, row, shared=name == "cascade shared")
    return _domains(seed, draws, icc, row, name)


def others(seed: int, draws: int, tick: Callable[[str], None]) -> list[Cell]:
    """Return false passes of the other rows."""
    return [cell for name in ROWS for cell in _cells(seed, draws, name, tick)]


def _cells(seed: int, draws: int, name: str, tick: Callable[[str], None]) -> Iterator[Cell]:
    row = ROWS[name]
    k, n, truth = row.clusters * row.domains, row.runs * row.domains, float(row.threshold)
    for icc in ICCS:
        tick(f"{name}, ICC {icc:g}")
        for reading, passed in zip(("table", "bounded"), _judged(seed, draws, icc, name), strict=True):
            yield Cell(name, reading, row.tier, k, n, icc, truth, 1, draws, int(passed.sum()))


def others_table(cells: Sequence[Cell]) -> str:
    """Return the table of false passes of the other rows."""
    rows = []
    for name, row in ROWS.items():
        shown = [row.told]
        for icc in ICCS:
            first, second = (cell for cell in cells if (cell.section, cell.icc) == (name, icc))
            shown.append(f"{percent(first.share)} / {percent(second.share)} ({percent(second.error)})")
        rows.append(shown)
    return markdown(("tier, tasks, runs: row, truth", *(f"ICC {icc:g}" for icc in ICCS)), rows)
