"""One metric's values per task, and their sums: all that a judgement learns of tasks.

The unit is the task, or the family of tasks where `cluster_id` is declared: runs of one unit stand or fall
together. A task's value is y / (scale · n), the mean of the n runs that carry the metric.

- `Tasks` holds y and n of every task: `per_cell` takes them from `Summary.clusters`, apart by cell, and
  `merged` adds what a task ran in the cells of one group.
- `TaskSums` are their sums, exact, and the same in whatever order the tasks come; `task_sums` gives those of
  every group. They add field by field, so that the sums without a task are a difference.
- `Shared` are the products of two metrics over the tasks that carry both.

Nothing here knows a metric, a threshold or a bound.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct, structs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from certkit.summary.summary import Clusters

    Integers = NDArray[np.int64]

TAG_BYTES: Final = 9
"""Of the tag by which a passport names a task."""

FINE: Final = 2**256
"""Sums of quotients are taken in steps of 1/FINE: exact for powers of 2, else far below any double."""

_EXACT: Final = 2**62

Number = Any
"""An exact number (int or Fraction), or an array of floats: the sums of one sample, or of many at once."""


def ratio(a: Number, b: Number) -> Number:
    """Return a / b, exact where both are."""
    return Fraction(a) / b if isinstance(a, int | Fraction) and isinstance(b, int | Fraction) else a / b


class Tasks(Struct, frozen=True, kw_only=True, eq=False):
    """y and n of every task in every group, sorted by group and then by the hash of the task.

    As `per_cell` gives them, groups are the cells of the summary, and a task may have several rows in one.
    """

    group: Integers
    task: NDArray[np.uint64]
    y: Integers
    n: Integers
    scale: int

    def only(self, group: int) -> Tasks:
        """Return the tasks of one group."""
        start, stop = np.searchsorted(self.group, [group, group + 1]).tolist()
        part = slice(start, stop)
        return Tasks(
            group=self.group[part], task=self.task[part], y=self.y[part], n=self.n[part], scale=self.scale
        )


class TaskSums(Struct, frozen=True, kw_only=True, eq=False):
    """Sums over the k tasks c of a metric, each with n_c runs, y_c and the mean x_c = y_c / n_c.

    n = Σn_c, y = Σy_c, yy = Σy_c², yn = Σy_c·n_c, nn = Σn_c², x = Σx_c, xx = Σx_c²; `most` is
    the largest x_c.
    Values are in units of 1/`scale`. `yy`, `yn`, `nn` weigh tasks by their runs, `x` and `xx` weigh all
    alike.
    """

    scale: int
    k: Number
    n: Number
    y: Number
    yy: Number
    yn: Number
    nn: Number
    x: Number
    xx: Number
    most: Number

    @property
    def alike(self) -> TaskSums:
        """The sums where every task weighs alike: as if each had run once, with its mean."""
        n = np.maximum(self.k, 1) if isinstance(self.k, np.ndarray) else self.k
        return structs.replace(self, n=n, y=self.x, yy=self.xx, yn=self.x, nn=self.k)

    def on(self, start: Number, slope: Number) -> TaskSums:
        """Return the sums of start + slope·v, v being the values here; `most` is that of the largest v."""
        if isinstance(self.y, np.ndarray):
            start, slope = (v if isinstance(v, np.ndarray) else float(v) for v in (start, slope))
        elif (start, slope) == (0, 1):
            return self
        slope = ratio(slope, self.scale)
        return TaskSums(
            scale=1,
            k=self.k,
            n=self.n,
            y=start * self.n + slope * self.y,
            yy=start * start * self.nn + 2 * start * slope * self.yn + slope * slope * self.yy,
            yn=start * self.nn + slope * self.yn,
            nn=self.nn,
            x=start * self.k + slope * self.x,
            xx=start * start * self.k + 2 * start * slope * self.x + slope * slope * self.xx,
            most=start + slope * self.most,
        )


class Shared(Struct, frozen=True, kw_only=True, eq=False):
    """Products over the tasks c that carry both of two metrics a and b; names as in `TaskSums`.

    `k` tasks; xx = Σx_a·x_b, x_a = Σx_a, x_b = Σx_b; yy = Σy_a·y_b, yn = Σy_a·n_b, ny = Σn_a·y_b, and
    nn = Σn_a·n_b.
    """

    k: Number
    xx: Number
    x_a: Number
    x_b: Number
    yy: Number
    yn: Number
    ny: Number
    nn: Number


def per_cell(clusters: Clusters, cells: Sequence[bool], y: Integers, n: Integers, *, scale: int = 1) -> Tasks:
    """Return y and n, given by row of the cluster table, of the `cells` that count, where n is above 0."""
    rows = np.flatnonzero(np.array(cells, np.bool_)[clusters.cell] & (n > 0))
    return Tasks(
        group=clusters.cell[rows].astype(np.int64),
        task=clusters.cluster[rows],
        y=y[rows],
        n=n[rows],
        scale=scale,
    )


def merged(tasks: Tasks, group: Integers | None = None) -> Tasks:
    """Return tasks with all rows of one group and task added; `group` numbers groups anew (None: all 0)."""
    if not len(tasks.task):
        return tasks
    number = np.zeros(len(tasks.task), np.int64) if group is None else group[tasks.group]
    order = np.lexsort((tasks.task, number))
    number, task = number[order], tasks.task[order]
    starts = np.flatnonzero(_changes(number) | _changes(task))
    return Tasks(
        group=number[starts],
        task=task[starts],
        y=np.add.reduceat(tasks.y[order], starts),
        n=np.add.reduceat(tasks.n[order], starts),
        scale=tasks.scale,
    )


def task_sums(tasks: Tasks) -> dict[int, TaskSums]:
    """Return the sums of every group, by its number, ascending."""
    if not len(tasks.group):
        return {}
    y, n = tasks.y, tasks.n
    first = np.flatnonzero(_changes(tasks.group))
    numbers = tasks.group[first].tolist()
    columns = (np.ones_like(n), n, y, _product(y, y), _product(y, n), _product(n, n))
    sums = [np.add.reduceat(column, first).tolist() for column in columns]
    place = np.cumsum(_changes(tasks.group)) - 1
    x = _quotients(place, y, n, len(first))
    xx = _quotients(place, _product(y, y), _product(n, n), len(first))
    most = _largest(tasks, first)
    return {
        number: TaskSums(
            scale=tasks.scale, k=k, n=runs, y=total, yy=yy, yn=yn, nn=nn, x=x[at], xx=xx[at], most=most[at]
        )
        for at, (number, k, runs, total, yy, yn, nn) in enumerate(zip(numbers, *sums, strict=True))
    }


def shared(a: Tasks, b: Tasks) -> Shared:
    """Return the products of two metrics over the tasks that carry both; each has one group."""
    _, in_a, in_b = np.intersect1d(a.task, b.task, assume_unique=True, return_indices=True)
    if not len(in_a):
        return Shared(k=0, xx=0, x_a=0, x_b=0, yy=0, yn=0, ny=0, nn=0)
    ya, na, yb, nb = a.y[in_a], a.n[in_a], b.y[in_b], b.n[in_b]
    place = np.zeros(len(in_a), np.int64)
    (xx,) = _quotients(place, _product(ya, yb), _product(na, nb), 1)
    (x_a,) = _quotients(place, ya, na, 1)
    (x_b,) = _quotients(place, yb, nb, 1)
    yy, yn, ny, nn = (int(_product(p, q).sum()) for p, q in ((ya, yb), (ya, nb), (na, yb), (na, nb)))
    return Shared(k=len(in_a), xx=xx, x_a=x_a, x_b=x_b, yy=yy, yn=yn, ny=ny, nn=nn)


def _quotients(place: Integers, top: Any, bottom: Any, count: int) -> list[Fraction]:
    """Return Σ top/bottom of every place: equal denominators are added first, then divided once."""
    order = np.lexsort((bottom.astype(np.float64), place))
    place, top, bottom = place[order], top[order], bottom[order]
    starts = np.flatnonzero(_changes(place) | _changes(bottom))
    totals = [0] * count
    rows = (place[starts].tolist(), np.add.reduceat(top, starts).tolist(), bottom[starts].tolist())
    for at, numerator, denominator in zip(*rows, strict=True):
        totals[at] += int(numerator) * FINE // int(denominator)
    return [Fraction(total, FINE) for total in totals]


def _largest(tasks: Tasks, first: Integers) -> list[Fraction]:
    """Return the largest task mean of every group; the double picks the task, the fraction is exact."""
    means = tasks.y / tasks.n
    top = np.maximum.reduceat(means, first)
    edges = [*first.tolist(), len(means)]
    largest = []
    for at, most in enumerate(top.tolist()):
        index = edges[at] + int(np.flatnonzero(means[edges[at] : edges[at + 1]] == most)[0])
        largest.append(Fraction(int(tasks.y[index]), int(tasks.n[index])))
    return largest


def _changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell at each place whether the value differs from the one before; the first does."""
    new = np.ones(len(values), np.bool_)
    new[1:] = values[1:] != values[:-1]
    return new


def _product(a: Integers, b: Integers) -> NDArray[Any]:
    """Return a · b whose sum is exact: as Python integers where 64 bits might not do."""
    if int(a.max()) * int(b.max()) * len(a) < _EXACT:
        return a * b
    product: NDArray[Any] = a.astype(object) * b.astype(object)
    return product
