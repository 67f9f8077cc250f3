"""Seeded resampling: draws that are the same for ever, and cluster bootstrap intervals of a ratio mean.

Every draw comes from `np.random.PCG64(seed).random_raw`, whose stream NumPy promises never to change; its
32-bit halves are mapped to indices by multiply and shift (the bias is below k/2³²). Nothing here knows what
is resampled: "task" and "agent" are two ways in which observations are correlated, and may be item and rater,
or cluster and bundle.

    interval = bootstrap(y, n, task, agent, by="both")
    interval.low, interval.high, interval.seed, interval.draws
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from msgspec import Struct

from certkit.assessment.statistics.estimators import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

By = Literal["task", "agent", "both"]

SEED: Final = 26
"""The seed of every resampling unless another is asked for; any number would do, so long as it is fixed."""

DRAWS: Final = 2000
"""Bootstrap draws unless another number is asked for."""

_CHUNK: Final = 1 << 17
"""Numbers that are held at once."""


class Bootstrap(Struct, frozen=True, kw_only=True):
    """A percentile interval; `low` and `high` are None where there is one block only, which shows no spread.

    `blocks` are the numbers of tasks and agents that were there; `draws` those in which anything was drawn.
    """

    value: float
    low: float | None
    high: float | None
    by: By
    blocks: tuple[int, int]
    level: float
    draws: int
    seed: int
    method: str = "cluster bootstrap, percentile"


class Stream:
    """The raw numbers of one seed, in order."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` 64-bit numbers."""
        words: NDArray[np.uint64] = np.asarray(self._bits.random_raw(count), "<u8")
        return words

    def below(self, bound: int, count: int) -> NDArray[np.uint64]:
        """Return `count` indices from 0 to `bound` - 1; `bound` is at most 2³²."""
        halves = self.words((count + 1) // 2).view("<u4")[:count].astype(np.uint64)
        halves *= np.uint64(bound)
        halves >>= np.uint64(32)
        return halves

    def resampled(self, draws: int, size: int) -> Iterator[Floats]:
        """Yield how often each of `size` blocks is drawn in `size` draws with replacement.

        The parts have `size` columns and together `draws` rows.
        """
        most = max(1, _CHUNK // (2 * size)) * 2  # even, so that no half of a word is lost between parts
        for start in range(0, draws, most):
            rows = min(most, draws - start)
            drawn = self.below(size, rows * size).view(np.int64).reshape(rows, size)
            drawn += np.arange(rows, dtype=np.int64)[:, None] * size
            counts = np.bincount(drawn.ravel(), minlength=rows * size).astype(np.float64)
            yield counts.reshape(rows, size)


def percentiles(values: Floats, level: float) -> tuple[float, float]:
    """Return the order statistics of rank ⌊(m + 1)(1 - level)/2⌋ from either end, at least the outermost."""
    ordered = np.sort(values)
    rank = max(1, int((len(ordered) + 1) * (1 - level) / 2 + 1e-9))
    return float(ordered[rank - 1]), float(ordered[-rank])


def bootstrap(
    y: ArrayLike,
    n: ArrayLike,
    task: ArrayLike,
    agent: ArrayLike,
    *,
    by: By = "task",
    seed: int = SEED,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Bootstrap:
    """Return an interval of Σy / Σn for observations that are correlated.

    The four are of one length: sums and denominators of each observation (n ≥ 0, Σn > 0) and the labels of
    its task and agent, which can be anything that sorts. `by` says what is drawn with replacement: whole
    tasks, whole agents, or both independently, an observation then weighing the product of both counts (the
    pigeonhole bootstrap, which errs to the wide side); that takes a table of tasks × agents. The order of
    the observations does not matter.
    """
    tasks, t = np.unique(np.asarray(task), return_inverse=True)
    agents, a = np.unique(np.asarray(agent), return_inverse=True)
    values = np.column_stack((np.asarray(y, np.float64), np.asarray(n, np.float64)))
    order = np.lexsort((values[:, 1], values[:, 0], a, t))
    t, a, values = t[order], a[order], values[order]
    stream = Stream(seed)
    if by == "both":
        sums = _both(stream, draws, (t, a), (len(tasks), len(agents)), values)
    else:
        label, size = (t, len(tasks)) if by == "task" else (a, len(agents))
        blocks = _per_block(label, size, values)
        sums = np.concatenate([counts @ blocks for counts in stream.resampled(draws, size)])
    ratios = sums[sums[:, 1] > 0]
    enough = {"task": len(tasks), "agent": len(agents), "both": min(len(tasks), len(agents))}[by] > 1
    low, high = percentiles(ratios[:, 0] / ratios[:, 1], level) if enough and len(ratios) else (None, None)
    total = values.sum(axis=0)
    return Bootstrap(
        value=float(total[0] / total[1]),
        low=low,
        high=high,
        by=by,
        blocks=(len(tasks), len(agents)),
        level=level,
        draws=len(ratios),
        seed=seed,
    )


def _per_block(label: Integers, size: int, values: Floats) -> Floats:
    return np.column_stack([np.bincount(label, column, minlength=size) for column in values.T])


def _both(
    stream: Stream, draws: int, labels: tuple[Integers, Integers], sizes: tuple[int, int], values: Floats
) -> Floats:
    """Return Σy and Σn of every draw of tasks and agents, by a table of the larger side × the smaller."""
    small = int(sizes[1] < sizes[0])
    few, many = sizes[small], sizes[1 - small]
    weights = np.concatenate(list(stream.resampled(draws, few)))
    place = labels[1 - small] * few + labels[small]
    table = _per_block(place, many * few, values).reshape(many, few * 2)
    parts, start = [], 0
    for counts in stream.resampled(draws, many):
        sums = (counts @ table).reshape(len(counts), few, 2)
        parts.append((sums * weights[start : start + len(counts), :, None]).sum(axis=1))
        start += len(counts)
    return np.concatenate(parts)
