"""Permutation tests of a difference between two agents, by whole clusters.

Paired: under the null hypothesis it is a toss of a coin which agent's runs of a cluster are whose, so the
signs of the clusters' contributions to the difference are flipped (`swap`). Not paired: whole clusters
change hands within a stratum (`exchange`), and the statistic is studentised, so that clusters of unequal
size or spread do not pass for a difference (Janssen 1997).

All arrangements are tried where there are at most `EXACT`; otherwise `PERMUTATIONS` are drawn, and the
observed one counts as one more, p = (b + 1) / (m + 1), which is never 0. Both tests are two-sided.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb, prod
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import numpy as np
from msgspec import Struct

from certkit.assessment.statistics.resampling import SEED, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

EXACT: Final = 2**14
"""Arrangements up to which all of them are tried."""

PERMUTATIONS: Final = 4999
"""Arrangements that are drawn where there are more."""

_TIE: Final = 1e-9
"""Relative difference below which two statistics are equal; rounding is far smaller, data are coarser."""

_CHUNK: Final = 1 << 21
_Arrangement = TypeVar("_Arrangement")


class Permutation(Struct, frozen=True, kw_only=True):
    """A p-value, how it was found, and the smallest one that these clusters could have given.

    `arrangements` counts those tried, all or drawn; `seed` is None where nothing was drawn.
    """

    p: float
    method: Literal["exact", "monte-carlo"]
    arrangements: int
    least: float
    seed: int | None


def swap(parts: Floats, *, seed: int = SEED) -> Permutation:
    """Test Σ`parts` against all or many flips of their signs.

    `parts` holds each cluster's contribution to the difference. Clusters that contribute nothing leave the
    statistic as it is and are not arranged.
    """
    size = float(np.abs(parts).sum())
    parts = parts[np.abs(parts) > _TIE * 1e-3 * size]
    observed = abs(float(parts.sum()))

    def statistic(signs: Floats) -> Floats:
        return np.abs(signs @ parts)

    k = len(parts)
    if 2**k <= EXACT:
        codes = np.arange(2**k)[:, None] >> np.arange(k) & 1
        return _exact(statistic(codes.astype(np.float64) * 2 - 1), observed - _TIE * size, _TIE * size)
    return _drawn(statistic, lambda: _signs(Stream(seed), k), observed - _TIE * size, seed)


def _signs(stream: Stream, k: int) -> Iterator[Floats]:
    words = -(-k // 64)
    most = max(1, _CHUNK // (64 * words))
    for start in range(0, PERMUTATIONS, most):
        rows = min(most, PERMUTATIONS - start)
        octets = stream.words(rows * words).view(np.uint8).reshape(rows, 8 * words)
        yield np.unpackbits(octets, axis=1, count=k).astype(np.float64) * 2 - 1


def exchange(
    rest: Floats, runs: Floats, first: NDArray[np.bool_], stratum: Integers, *, seed: int = SEED
) -> Permutation:
    """Test whether the clusters of the `first` agent do better, by exchanging clusters within strata.

    One entry per cluster: `rest` is the sum of its runs' values above the mean that both agents together
    have in the runs' cells, `runs` their number. The statistic is t = Σ_s w_s (r̄_1s - r̄_2s) / SE, w_s the
    stratum's share of the runs and SE by the clusters' residuals. Each stratum has clusters of both agents.
    """
    columns = np.column_stack((rest, runs, rest * rest, rest * runs, runs * runs))
    order = np.argsort(stratum, kind="stable")
    bounds = np.flatnonzero(np.diff(stratum[order], prepend=-1))
    groups = np.split(order, bounds[1:])
    taken = [int(first[group].sum()) for group in groups]

    def statistic(sides: list[NDArray[np.bool_]]) -> Floats:
        return _studentised([columns[group] for group in groups], sides, int(first.sum()))

    observed = float(statistic([first[group][None] for group in groups])[0])
    arrangements = prod(comb(len(group), k) for group, k in zip(groups, taken, strict=True))
    sizes = [(len(group), k) for group, k in zip(groups, taken, strict=True)]
    if arrangements <= EXACT:
        return _exact(statistic(_all_sides(sizes)), observed * (1 - _TIE), 0.0)
    return _drawn(statistic, lambda: _some_sides(Stream(seed), sizes), observed * (1 - _TIE), seed)


def _studentised(columns: list[Floats], sides: list[NDArray[np.bool_]], firsts: int) -> Floats:
    """Return |t| of every arrangement; infinite where clusters differ between the agents only."""
    k = np.array([firsts, sum(map(len, columns)) - firsts])
    total = sum(float(part[:, 1].sum()) for part in columns)
    difference, variance = np.zeros(len(sides[0])), np.zeros(len(sides[0]))
    scale = max(float(np.abs(part[:, 0]).max()) for part in columns) / total
    for part, side in zip(columns, sides, strict=True):
        weight = float(part[:, 1].sum()) / total
        one = part.T @ side.T.astype(np.float64)
        for sums, number, sign in ((one, k[0], 1.0), (part.sum(axis=0)[:, None] - one, k[1], -1.0)):
            r, n, rr, rn, nn = sums
            mean = r / n
            inflation = number / (number - 1) if number > 1 else 1.0
            variance += inflation * weight**2 * np.maximum(0.0, rr - 2 * mean * rn + mean**2 * nn) / n**2
            difference += sign * weight * mean
    # Squares lose half the digits to cancellation, so what is below 1e-7 of the scale is nothing.
    error = np.sqrt(np.where(variance > (1e-7 * scale) ** 2, variance, 0.0))
    difference = np.where(np.abs(difference) > 1e-12 * scale, np.abs(difference), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference > 0, difference / error, 0.0)


def _all_sides(sizes: list[tuple[int, int]]) -> list[NDArray[np.bool_]]:
    choices = [list(combinations(range(n), k)) for n, k in sizes]
    whole = list(product(*choices))
    sides = []
    for place, (n, _) in enumerate(sizes):
        side = np.zeros((len(whole), n), np.bool_)
        for row, chosen in enumerate(whole):
            side[row, list(chosen[place])] = True
        sides.append(side)
    return sides


def _some_sides(stream: Stream, sizes: list[tuple[int, int]]) -> Iterator[list[NDArray[np.bool_]]]:
    total = sum(n for n, _ in sizes)
    most = max(1, _CHUNK // total)
    ends = np.cumsum([n for n, _ in sizes])[:-1]
    for start in range(0, PERMUTATIONS, most):
        rows = min(most, PERMUTATIONS - start)
        sides = []
        drawn = np.split(stream.words(rows * total).reshape(rows, total), ends, axis=1)
        for keys, (_, k) in zip(drawn, sizes, strict=True):
            bar = np.partition(keys, k - 1, axis=1)[:, k - 1, None]
            sides.append(keys <= bar)
        yield sides


def _exact(statistics: Floats, bar: float, slack: float) -> Permutation:
    count = len(statistics)
    top = float(statistics.max())
    most = statistics >= (top - slack if slack else top * (1 - _TIE))
    return Permutation(
        p=int((statistics >= bar).sum()) / count,
        method="exact",
        arrangements=count,
        least=int(most.sum()) / count,
        seed=None,
    )


def _drawn(
    statistic: Callable[[_Arrangement], Floats],
    draw: Callable[[], Iterator[_Arrangement]],
    bar: float,
    seed: int,
) -> Permutation:
    reached = sum(int((statistic(arrangement) >= bar).sum()) for arrangement in draw())
    return Permutation(
        p=(reached + 1) / (PERMUTATIONS + 1),
        method="monte-carlo",
        arrangements=PERMUTATIONS,
        least=1 / (PERMUTATIONS + 1),
        seed=seed,
    )
