"""The matched difference of a metric: A's mean less B's over the cells that both have, clusters respected.

Both means weigh a cell by its share of the runs of both bundles together, w_c = (n_Ac + n_Bc) / Σ, so that
d = Σ_c w_c (y_Ac/n_Ac - y_Bc/n_Bc) does not show a difference in mix. What a unit contributes to it, up to
first order, is u = Σ_c w_c (y_uc - n_uc·ȳ_c) / n_c; the variance of d is k/(k - 1) · Σ(u_A - u_B)² where
units are paired, with k - 1 degrees of freedom, else the sum of both sides' k/(k - 1) · Σu², with those of
Welch and Satterthwaite.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from certkit.assessment.compare.permutation import Permutation, exchange, swap
from certkit.assessment.compare.sample import added
from certkit.assessment.statistics.estimators import LEVEL, Interval
from certkit.assessment.statistics.resampling import DRAWS, SEED, Stream, percentiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.compare.sample import Floats, Integers, Sample

_NOTHING: Final = 1e-12
"""A standard error below this share of the values is rounding."""


class Robust(Struct, frozen=True, kw_only=True):
    """The cluster-robust t test; all None but `reason` where the clusters show no variance."""

    se: float | None = None
    df: float | None = None
    t: float | None = None
    p: float | None = None
    interval: Interval | None = None
    reason: str | None = None


class Matched(Struct, frozen=True, kw_only=True):
    """What was found of the difference A - B of one metric, in the metric's unit.

    `runs` are those of A and B that were compared; `clusters` and `tasks` (0 where not paired) what they
    rest on.
    """

    a: float
    b: float
    difference: float
    runs: tuple[int, int]
    cells: int
    paired: bool
    tasks: int
    clusters: tuple[int, int]
    blocked: bool
    robust: Robust
    permutation: Permutation
    bootstrap: Interval | None


class _Means(Struct, frozen=True, eq=False):
    """Weights and means of the cells, and the values' scale taken out."""

    weight: Floats
    a: Floats
    b: Floats
    a_n: Floats
    b_n: Floats


def matched(sample: Sample, *, seed: int = SEED, draws: int = DRAWS, bootstrapped: bool = True) -> Matched:
    """Return the matched difference with its test and intervals."""
    means = _means(sample)
    a, b = float(means.weight @ means.a), float(means.weight @ means.b)
    return Matched(
        a=a,
        b=b,
        difference=float(means.weight @ (means.a - means.b)),
        runs=(int(sample.a_n.sum()), int(sample.b_n.sum())),
        cells=len(sample.names),
        paired=sample.paired,
        tasks=sum(sample.tasks.values()),
        clusters=sample.size,
        blocked=sample.blocked,
        robust=_robust(sample, means),
        permutation=_permutation(sample, means, seed),
        bootstrap=_bootstrap(sample, means, seed, draws) if bootstrapped else None,
    )


def _means(sample: Sample) -> _Means:
    a, a_n, b, b_n = (added(sample.cell, x) for x in (sample.a, sample.a_n, sample.b, sample.b_n))
    runs = a_n + b_n
    return _Means(runs / runs.sum(), a / (a_n * sample.scale), b / (b_n * sample.scale), a_n, b_n)


def _contributions(sample: Sample, means: _Means, mean_a: Floats, mean_b: Floats) -> tuple[Floats, Floats]:
    """Return per unit A's and B's Σ_c w_c (y_uc - n_uc·m_c) / n_c."""
    c = sample.cell
    weight = means.weight[c]
    one = weight * (sample.a / sample.scale - sample.a_n * mean_a[c]) / means.a_n[c]
    other = weight * (sample.b / sample.scale - sample.b_n * mean_b[c]) / means.b_n[c]
    return added(sample.unit, one), added(sample.unit, other)


def _robust(sample: Sample, means: _Means) -> Robust:
    from scipy.special import stdtr, stdtrit  # noqa: PLC0415 - heavy

    one, other = _contributions(sample, means, means.a, means.b)
    parts = [one - other] if sample.paired else [one[sample.first], other[~sample.first]]
    if min(map(len, parts)) < 2:  # noqa: PLR2004 - a variance needs two
        return Robust(reason="one cluster shows no variance")
    variances = [len(part) / (len(part) - 1) * float(part @ part) for part in parts]
    se = sqrt(sum(variances))
    size = max(float(np.abs(means.a).max()), float(np.abs(means.b).max()), _NOTHING)
    if se < _NOTHING * size:
        return Robust(reason="the clusters show no variance: all of them say the same")
    df = sum(variances) ** 2 / sum(v * v / (len(u) - 1) for v, u in zip(variances, parts, strict=True))
    difference = float(means.weight @ (means.a - means.b))
    half = float(stdtrit(df, (1 + LEVEL) / 2)) * se
    return Robust(
        se=se,
        df=df,
        t=difference / se,
        p=2 * float(stdtr(df, -abs(difference) / se)),
        interval=Interval(low=difference - half, high=difference + half, method="cluster-robust t"),
    )


def _permutation(sample: Sample, means: _Means, seed: int) -> Permutation:
    """Test the difference; the mean of both agents is taken out, which moves no difference of theirs."""
    both = (means.a * means.a_n + means.b * means.b_n) / (means.a_n + means.b_n)
    if sample.paired:
        one, other = _contributions(sample, means, both, both)
        return swap(one - other, seed=seed)
    runs = sample.a_n + sample.b_n
    rest = (sample.a + sample.b) / sample.scale - runs * both[sample.cell]
    return exchange(
        added(sample.unit, rest),
        added(sample.unit, runs),
        sample.first,
        sample.stratum,
        seed=seed,
    )


def _bootstrap(sample: Sample, means: _Means, seed: int, draws: int) -> Interval | None:
    """Return the percentile interval of d when units are drawn with replacement.

    A's and B's are drawn apart unless they are paired. A cell without runs of both is left out of a draw.
    """
    units = len(sample.stratum)
    sides = (
        [np.arange(units)] if sample.paired else [np.flatnonzero(f) for f in (sample.first, ~sample.first)]
    )
    if min(map(len, sides)) < 2:  # noqa: PLR2004 - one unit shows no spread
        return None
    stream = Stream(seed)
    counts = np.empty((draws, units))
    for side in sides:
        counts[:, side] = np.concatenate(list(stream.resampled(draws, len(side))))
    over, under = np.zeros(draws), np.zeros(draws)
    for local, first_cell, width, entries in _by_domain(sample):
        cell = sample.cell[entries] - first_cell
        chosen, unit = np.unique(local, return_inverse=True)
        drawn = counts[:, chosen]
        a, a_n, b, b_n = (
            drawn
            @ np.bincount(unit * width + cell, x[entries], minlength=len(chosen) * width).reshape(-1, width)
            for x in (sample.a, sample.a_n, sample.b, sample.b_n)
        )
        there = (a_n > 0) & (b_n > 0)
        weight = np.where(there, means.weight[first_cell : first_cell + width], 0.0)
        d = a / np.where(there, a_n, 1.0) - b / np.where(there, b_n, 1.0)
        over += (weight * d).sum(axis=1)
        under += weight.sum(axis=1)
    drawn_any = under > 0
    if not drawn_any.any():
        return None
    low, high = percentiles(over[drawn_any] / under[drawn_any] / sample.scale, LEVEL)
    return Interval(low=low, high=high, method="cluster bootstrap, percentile")


def _by_domain(sample: Sample) -> Iterator[tuple[Integers, int, int, Integers]]:
    """Yield per domain its entries' units, its first cell, the number of its cells, and its entries.

    Cells are sorted by domain, and a unit is seldom in two, so that each part is a small full table.
    """
    domains = [domain for domain, _ in sample.names]
    starts = [place for place, domain in enumerate(domains) if not place or domains[place - 1] != domain]
    order = np.argsort(sample.cell, kind="stable")
    edges = np.searchsorted(sample.cell[order], [*starts, len(domains)])
    for place, start in enumerate(starts):
        entries = order[edges[place] : edges[place + 1]]
        width = (starts[place + 1] if place + 1 < len(starts) else len(domains)) - start
        yield sample.unit[entries], start, width, entries
