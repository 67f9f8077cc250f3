"""False pass of the other rows of the tier table, the truth at their Tier 2 threshold.

Every draw is judged by `bounded.Reader`; only draws that the table reading passes are asked, since no
other can pass by bounds.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import betaincinv, gammaln

from certkit.assessment.bounded import Clustered, Reader, bounds
from certkit.assessment.series import Grouped, Series, every, fault
from certkit.assessment.view import look
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
from tests.unit.assessment import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from certkit.assessment.series import Totals
    from tests.study.draws import Floats, Integers, Truths

RUNS: Final = 1000
CLUSTERS: Final = 40
DELTA: Final = LEVELS[2].delta
THRESHOLD: Final = {row.id: row.threshold(2) or Fraction(0) for row in PROFILE.criteria}
GRADES: Final = ((10, 0.85), (7, 0.10), (4, 0.05))
"""Grades of a recovery in tenths, and how often a successful run gets each."""

DOMAINS: Final = 5
OTHER_DOMAINS: Final = 0.95
_PP: Final = 100
_NONE: Final = np.empty(0, np.int64)
_NOTHING: Final = Grouped(group=_NONE, cluster=_NONE.astype(np.uint64), y=_NONE, n=_NONE)

FRR: Final = Series(metric="frr", scale=10, over=fault, y=_NONE, n=_NONE)
VIOLATIONS: Final = Series(metric="violations", scale=1, over=every, y=_NONE, n=_NONE, high=None)
SINGLE: Final = Series(metric="single", scale=1, over=fault, y=_NONE, n=_NONE)

_AT: Final = {name: f"{float(value):g}" for name, value in THRESHOLD.items()}
ROWS: Final = {
    "frr": f"`frr`, grades 0, .4, .7 and 1, truth {_AT['frr']}",
    "violations": f"`violations`, Poisson, truth {_AT['violations']} per run",
    "cascade apart": f"`cascade_penalty`, truth {_AT['cascade_penalty']} points, tasks apart",
    "cascade shared": f"`cascade_penalty`, truth {_AT['cascade_penalty']} points, tasks shared",
    "one weak domain": f"`domain_min`, one domain at {_AT['domain_min']}, four at .95",
    "weak domains": f"`domain_min`, all five at {_AT['domain_min']}",
}


def reader() -> Reader:
    """Return a reader of the tier table; the evidence is put into it draw by draw."""
    return Reader(look(build.summary([]), build.facts().manifest, {}), PROFILE, {})


def clustered(of: Series, sums: Totals) -> Clustered:
    """Return one draw as the reader holds a series."""
    return Clustered(of=of, clusters=_NOTHING, sums=sums)


def recoveries(seed: int, draws: int, icc: float) -> tuple[Integers, Integers]:
    """Return the summed grades of every cluster in tenths, and its runs."""
    n = sizes(RUNS, CLUSTERS)
    worth = sum(grade * share for grade, share in GRADES) / 10
    won = successes(seed, "frr", draws, n, rate=float(THRESHOLD["frr"]) / worth, icc=icc)
    chance = uniforms(seed, f"grades {icc}", (draws, CLUSTERS, int(n.max())))
    edges = np.cumsum([share for _, share in GRADES])[:-1]
    grade = np.array([tenths for tenths, _ in GRADES])[np.searchsorted(edges, chance, side="right")]
    first = np.arange(int(n.max())) < won[:, :, None]
    return (grade * first).sum(axis=2), n


def violations(seed: int, draws: int, icc: float) -> tuple[Integers, Integers]:
    """Return the violations of every cluster and its runs: Poisson, the cluster's rate gamma-distributed."""
    n = sizes(RUNS, CLUSTERS)
    mean = float(THRESHOLD["violations"])
    (size,) = np.unique(n).tolist()
    y = np.arange(60 * size)
    if icc == 0:
        logs = y * np.log(mean * size) - mean * size - gammaln(y + 1)
    else:
        # ν² is the variance of the rate for which ν²/(ν² + mean), the correlation of two runs, is the ICC.
        shape = mean * (1 - icc) / icc
        share = size / (size + shape / mean)
        logs = gammaln(y + shape) - gammaln(shape) - gammaln(y + 1)
        logs += shape * np.log1p(-share) + y * np.log(share)
    chance = uniforms(seed, f"violations {icc}", (draws, CLUSTERS))
    return np.searchsorted(np.cumsum(np.exp(logs))[:-1], chance, side="right"), n


def arms(seed: int, draws: int, icc: float, *, shared: bool) -> tuple[Integers, Integers, Integers, Integers]:
    """Return successes and runs of both arms: 600 single faults and 400 cascades on 40 tasks each.

    `shared`: a task that is easy under one fault is as easy, by rank, under a cascade.
    """
    name = "cascade shared" if shared else "cascade apart"
    rank = uniforms(seed, f"{name} {icc}", (2, draws, CLUSTERS))
    if shared:
        rank[1] = rank[0]
    rate = 0.85
    n = sizes(600, CLUSTERS), sizes(400, CLUSTERS)
    return (
        _won(seed, f"{name} {icc} single", _chances(rank[0], rate, icc), n[0]),
        n[0],
        _won(
            seed,
            f"{name} {icc} cascade",
            _chances(rank[1], rate - float(THRESHOLD["cascade_penalty"]) / _PP, icc),
            n[1],
        ),
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


def _cascade(seed: int, draws: int, icc: float, *, shared: bool) -> tuple[Truths, Truths]:
    y_one, n_one, y_other, n_other = arms(seed, draws, icc, shared=shared)
    limit = float(THRESHOLD["cascade_penalty"]) / _PP
    points = y_one.sum(axis=1) / n_one.sum() - y_other.sum(axis=1) / n_other.sum()
    passed = points < limit - 1e-9
    one, other, proven = each(SINGLE, y_one, n_one), each(SINGLE, y_other, n_other), np.zeros(draws, np.bool_)
    for draw in np.flatnonzero(passed).tolist():
        judge = reader()
        judge._known = {"single": clustered(SINGLE, one[draw]), "cascade": clustered(SINGLE, other[draw])}
        pair = judge.arms("single", "cascade", DELTA)
        # The bound of the difference is below the limit just where this probability exceeds δ.
        proven[draw] = pair is not None and bounds.difference_below(*pair, limit) > float(DELTA)
    return passed, proven


def _domains(seed: int, draws: int, icc: float, *, others: float, name: str) -> tuple[Truths, Truths]:
    least = THRESHOLD["domain_min"]
    n = sizes(RUNS // DOMAINS, 10)
    passed, proven = np.ones(draws, np.bool_), np.ones(draws, np.bool_)
    judge = reader()
    for domain in range(DOMAINS):
        rate = others if domain else float(least)
        y = successes(seed, f"{name} {domain}", draws, n, rate=rate, icc=icc)
        passed &= y.sum(axis=1) > float(least) * n.sum() + 1e-9
        proven &= passed
        sums = each(SINGLE, y, n)
        for draw in np.flatnonzero(proven).tolist():
            found = judge._share(clustered(SINGLE, sums[draw]), None, DELTA, lower=True)
            proven[draw] = found.bound is not None and found.bound > float(least)
    return passed, proven & passed


def _mean(seed: int, draws: int, icc: float) -> tuple[Truths, Truths]:
    y, n = recoveries(seed, draws, icc)
    passed = y.sum(axis=1) >= float(THRESHOLD["frr"]) * 10 * n.sum() - 1e-9
    sums, judge, proven = each(FRR, y, n), reader(), np.zeros(draws, np.bool_)
    for draw in np.flatnonzero(passed).tolist():
        found = judge._share(clustered(FRR, sums[draw]), THRESHOLD["frr"], DELTA, lower=True, mean=True)
        proven[draw] = found.bound is not None and found.bound >= float(THRESHOLD["frr"])
    return passed, proven


def _counts(seed: int, draws: int, icc: float) -> tuple[Truths, Truths]:
    y, n = violations(seed, draws, icc)
    passed = y.sum(axis=1) < float(THRESHOLD["violations"]) * n.sum() - 1e-9
    sums, judge, proven = each(VIOLATIONS, y, n), reader(), np.zeros(draws, np.bool_)
    for draw in np.flatnonzero(passed).tolist():
        found = judge._rate(clustered(VIOLATIONS, sums[draw]), DELTA)
        proven[draw] = found.bound is not None and found.bound < float(THRESHOLD["violations"])
    return passed, proven


def _judged(seed: int, draws: int, icc: float, row: str) -> tuple[Truths, Truths]:
    if row == "frr":
        return _mean(seed, draws, icc)
    if row == "violations":
        return _counts(seed, draws, icc)
    if row.startswith("cascade"):
        return _cascade(seed, draws, icc, shared=row == "cascade shared")
    others = OTHER_DOMAINS if row == "one weak domain" else float(THRESHOLD["domain_min"])
    return _domains(seed, draws, icc, others=others, name=row)


def others(seed: int, draws: int, tick: Callable[[str], None]) -> list[Cell]:
    """Return false passes of the other rows."""
    return [cell for row in ROWS for cell in _cells(seed, draws, row, tick)]


def _cells(seed: int, draws: int, row: str, tick: Callable[[str], None]) -> Iterator[Cell]:
    k = 10 * DOMAINS if row.endswith(("domain", "domains")) else CLUSTERS
    truth = float(THRESHOLD[{"c": "cascade_penalty", "o": "domain_min", "w": "domain_min"}.get(row[0], row)])
    for icc in ICCS:
        tick(f"{row}, ICC {icc:g}")
        for reading, passed in zip(("table", "bounded"), _judged(seed, draws, icc, row), strict=True):
            yield Cell(row, reading, 2, k, RUNS, icc, truth, 1, draws, int(passed.sum()))


def others_table(cells: Sequence[Cell]) -> str:
    """Return the table of false passes of the other rows."""
    rows = []
    for row, words in ROWS.items():
        shown = [words]
        for icc in ICCS:
            first, second = (cell for cell in cells if (cell.section, cell.icc) == (row, icc))
            shown.append(f"{percent(first.share)} / {percent(second.share)} ({percent(second.error)})")
        rows.append(shown)
    return markdown(("row", *(f"ICC {icc:g}" for icc in ICCS)), rows)
