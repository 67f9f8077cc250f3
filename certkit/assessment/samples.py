"""Evidence as the kinds of criteria see it, had little of what was recorded (`View`) been otherwise.

- `Changed`: the exact sums where some successes of one series had been failures.
- `LeftOut`: the same without each task in turn, as arrays with one entry a task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from certkit.assessment.metrics.series import COST, LEAVES
from certkit.summary.tasks import Shared, TaskSums, shared, task_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from certkit.assessment.metrics.series import View
    from certkit.summary.tasks import Integers, Tasks

    Floats = NDArray[np.float64]


class Changed:
    """What was recorded, had `flips` successes of the series `lowered` been failures (in `domain` only).

    Whole tasks fail first, those with the fewest runs before others, since a task counts once whatever its
    size: the fewest flips that were found, which is not proved to be the fewest there are.
    """

    def __init__(self, base: View, lowered: Sequence[str], flips: int, domain: str | None = None) -> None:
        self.domains, self.anytime, self.labelled = base.domains, base.anytime, base.labelled
        self._base, self._flips, self._domain = base, flips, domain
        self._lowered = frozenset(lowered)
        self._after: dict[str, TaskSums | None] = {}

    def tasks(self, series: str, domain: str | None = None) -> Tasks:
        """Return the tasks after the flips."""
        gathered = self._base.tasks(series, domain)
        if series not in self._lowered or domain != self._domain:
            return gathered
        return _flipped(gathered, self._flips, COST[series], leaves=series in LEAVES)

    def sums(self, series: str, domain: str | None = None) -> TaskSums | None:
        """Return the sums after the flips."""
        if series not in self._lowered or domain != self._domain:
            return self._base.sums(series, domain)
        if series not in self._after:  # a row asks some times for each
            self._after[series] = next(iter(task_sums(self.tasks(series, domain)).values()), None)
        return self._after[series]

    def shared(self, first: str, second: str) -> Shared:
        """Return the products after the flips."""
        return shared(self.tasks(first), self.tasks(second))


def successes(gathered: Tasks, cost: int) -> Integers:
    """Return how many runs of each task can be turned into failures."""
    return -(-gathered.y // cost)


def _flipped(gathered: Tasks, flips: int, cost: int, *, leaves: bool) -> Tasks:
    can = successes(gathered, cost)
    order = np.lexsort((-gathered.y / gathered.n, gathered.n))
    before = np.cumsum(can[order]) - can[order]
    taken = np.zeros_like(can)
    taken[order] = np.clip(flips - before, 0, can[order])
    y, n = gathered.y - np.minimum(gathered.y, cost * taken), gathered.n - taken * leaves
    kept = n > 0
    return structs.replace(
        gathered, group=gathered.group[kept], task=gathered.task[kept], y=y[kept], n=n[kept]
    )


class LeftOut:
    """What was recorded without each task of `names`, sorted hashes, in turn: sums are arrays."""

    anytime = False

    def __init__(self, base: View, names: NDArray[np.uint64]) -> None:
        self.names, self.domains, self.labelled = names, base.domains, base.labelled
        self._base = base

    def own(self, series: str, domain: str | None = None) -> tuple[Integers, Integers]:
        """Return y and n of every task, 0 where it does not carry the series."""
        gathered = self._base.tasks(series, domain)
        known = np.isin(gathered.task, self.names)
        place = np.searchsorted(self.names, gathered.task[known])
        y, n = np.zeros(len(self.names), np.int64), np.zeros(len(self.names), np.int64)
        y[place], n[place] = gathered.y[known], gathered.n[known]
        return y, n

    def tasks(self, series: str, domain: str | None = None) -> Tasks:
        """Return all tasks, whose sizes the labels weigh by, whichever is left out."""
        return self._base.tasks(series, domain)

    def sums(self, series: str, domain: str | None = None) -> TaskSums | None:
        """Return the sums without each task; n is 1 where nothing is left, and k is then 0."""
        whole = self._base.sums(series, domain)
        if whole is None:
            return None
        y, n = self.own(series, domain)
        x = np.divide(y, n, out=np.zeros(len(n)), where=n > 0)
        every = self._base.tasks(series, domain)
        most, second = _two_largest(every.y / every.n)
        return TaskSums(
            scale=whole.scale,
            k=whole.k - (n > 0),
            n=np.maximum(whole.n - n, 1),
            y=whole.y - y,
            yy=float(whole.yy) - y.astype(np.float64) ** 2,
            yn=float(whole.yn) - y.astype(np.float64) * n,
            nn=float(whole.nn) - n.astype(np.float64) ** 2,
            x=float(whole.x) - x,
            xx=float(whole.xx) - x * x,
            most=np.where(x == most, second, most),
        )

    def shared(self, first: str, second: str) -> Shared:
        """Return the products without each task."""
        whole = self._base.shared(first, second)
        (ya, na), (yb, nb) = self.own(first), self.own(second)
        both = (na > 0) & (nb > 0)
        xa, xb = (np.divide(y, n, out=np.zeros(len(n)), where=both) for y, n in ((ya, na), (yb, nb)))
        pa, qa, pb, qb = (np.where(both, column, 0).astype(np.float64) for column in (ya, na, yb, nb))
        return Shared(
            k=whole.k - both,
            xx=float(whole.xx) - xa * xb,
            x_a=float(whole.x_a) - xa,
            x_b=float(whole.x_b) - xb,
            yy=float(whole.yy) - pa * pb,
            yn=float(whole.yn) - pa * qb,
            ny=float(whole.ny) - qa * pb,
            nn=float(whole.nn) - qa * qb,
        )


def _two_largest(values: Floats) -> tuple[float, float]:
    ordered = np.sort(values)[-2:].tolist()
    return (ordered[-1], ordered[0]) if len(ordered) > 1 else (ordered[0] if ordered else 0.0, 0.0)
