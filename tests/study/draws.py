"""What is drawn, and how the code is asked for its two readings of it.

Draws are made from the raw words of PCG64 alone, whose stream never changes, by inverse distribution
functions. Every cell of the study has a stream of its own, named by its seed and its setting.
"""

from __future__ import annotations

from functools import cache
from math import sqrt
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

import numpy as np
from scipy.special import betaln, gammaln

from certkit import workflow
from certkit.assessment.bounded import bounds
from certkit.assessment.metrics.series import Grouped, Series, Totals, fault, totals
from certkit.assessment.statistics.estimators import posterior

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Truths = NDArray[np.bool_]

ICCS: Final = (0.0, 0.05, 0.1, 0.2, 0.3)
PROFILE: Final = workflow.load_profile("hb-eval-2026-bounded")
_NONE: Final = np.empty(0, np.int64)
R_OP: Final = Series(metric="r_op", scale=1, over=fault, y=_NONE, n=_NONE)


class Level(NamedTuple):
    """A tier as far as the success under faults is concerned."""

    tier: int
    tau: Fraction
    delta: Fraction


LEVELS: Final = {tier: Level(tier, PROFILE.tau[tier], PROFILE.confidence(tier)) for tier in (1, 2, 3)}


class Cell(NamedTuple):
    """One number of the study: of `draws` agents, `hits` passed."""

    section: str
    reading: str
    tier: int
    clusters: int
    n: int
    icc: float
    rate: float
    attempts: int
    draws: int
    hits: int

    @property
    def share(self) -> float:
        """The share that passed."""
        return self.hits / self.draws

    @property
    def error(self) -> float:
        """The Monte Carlo standard error of the share."""
        return sqrt(self.share * (1 - self.share) / self.draws)


class Limit(NamedTuple):
    """A promise of the project, what was found, and whether it holds."""

    promise: str
    found: str
    holds: bool


def uniforms(seed: int, name: str, shape: tuple[int, ...]) -> Floats:
    """Return numbers from 0 to below 1, 53 bits each."""
    raw = np.random.PCG64([seed, crc32(name.encode())]).random_raw(int(np.prod(shape)))
    numbers: Floats = (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers.reshape(shape)


def sizes(n: int, k: int) -> Integers:
    """Return the runs of `k` clusters, as even as `n` allows."""
    return n // k + (np.arange(k) < n % k).astype(np.int64)


@cache
def _cumulative(size: int, rate: float, icc: float) -> Floats:
    """Return P(successes ≤ y), y below `size`, of a cluster whose chance is beta-distributed."""
    y = np.arange(size + 1)
    ways = gammaln(size + 1) - gammaln(y + 1) - gammaln(size - y + 1)
    if icc == 0:
        logs = ways + y * np.log(rate) + (size - y) * np.log1p(-rate)
    else:
        a, b = rate * (1 / icc - 1), (1 - rate) * (1 / icc - 1)
        logs = ways + betaln(a + y, b + size - y) - betaln(a, b)
    cumulative: Floats = np.cumsum(np.exp(logs))
    return cumulative[:-1]


def successes(seed: int, name: str, draws: int, n: Integers, *, rate: float, icc: float) -> Integers:
    """Return the successes of every cluster, draws × clusters: beta-binomial, or binomial at ICC 0."""
    chance = uniforms(seed, f"{name} {rate:.4f} {icc}", (draws, len(n)))
    y = np.empty(chance.shape, np.int64)
    for size in np.unique(n).tolist():
        of = n == size
        y[:, of] = np.searchsorted(_cumulative(size, rate, icc), chance[:, of], side="right")
    return y


def each(of: Series, y: Integers, n: Integers) -> list[Totals]:
    """Return the sums of every draw over its clusters."""
    draws, k = y.shape
    clusters = Grouped(
        group=np.repeat(np.arange(draws), k),
        cluster=np.tile(np.arange(k, dtype=np.uint64), draws),
        y=y.ravel(),
        n=np.broadcast_to(n, y.shape).ravel(),
    )
    return list(totals(of, clusters).values())


class Drawn(NamedTuple):
    """The successes of every draw, of `n` runs each, and what the bounds start from."""

    y: Integers
    n: int
    k: int
    sample: bounds.Sample


def drawn(y: Integers, n: Integers) -> Drawn:
    """Return the draws as arrays; `y` is draws × clusters, `n` the runs of each cluster."""
    runs, won = int(n.sum()), y.sum(axis=1)
    # Arrays over the draws stand where the sums of one draw would: 64 bits hold their products exactly.
    over: dict[str, Any] = {"y": won, "yy": (y * y).sum(axis=1), "yn": y @ n}
    mixed: Any = ((y > 0) & (y < n)).sum(axis=1)
    sums = Totals(n=runs, k=len(n), nn=int((n * n).sum()), mixed=mixed, **over)
    return Drawn(won, runs, len(n), bounds.sample(R_OP, sums))


@cache
def least_pass(n: int, tau: Fraction, delta: Fraction) -> int:
    """Return the fewest successes in `n` runs whose rate is above τ with P(θ > τ) above δ."""
    low, high = int(tau * n), n + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if posterior(middle, n, tau) > float(delta) else (middle, high)
    return high


def table(of: Drawn, level: Level) -> Truths:
    """Return which draws pass `r_op` and `posterior` in the table reading."""
    return of.y >= least_pass(of.n, level.tau, level.delta)


def bounded(of: Drawn, level: Level, confidence: Fraction | None = None) -> Truths:
    """Return which draws pass both rows in the bounded reading, at the tier's confidence or another."""
    delta = level.delta if confidence is None else confidence
    if of.k < bounds.clusters_needed(level.tau, delta):
        return np.zeros(of.y.shape, np.bool_)
    n_eff = bounds.effective_runs(of.sample, float(delta), icc0=PROFILE.icc0)
    proven = bounds.above(of.sample.mean, n_eff, float(level.tau)) > float(delta)
    passed: Truths = table(of, level) & proven
    return passed


def percent(share: float, digits: int = 1) -> str:
    """Return a share in percent, without the sign."""
    return f"{100 * share:.{digits}f}"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, numbers to the right."""
    cells = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "".join("| " + " | ".join(row) + " |\n" for row in cells)
