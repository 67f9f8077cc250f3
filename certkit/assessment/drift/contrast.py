"""The contrast of one mean over tasks between passports of a lineage: numbers in, numbers out.

Passport t has k_t tasks with values x_ct and mean x̄_t. The loss is L = Σ_t a_t·x̄_t, with a = (1, −1) for an
older and a newer passport. What a task contributes is u_c = Σ_t a_t(x_ct − x̄_t)/k_t over the passports that
have it, so that a task counts once however often it was rerun, and with k = min k_t

    V = k/(k − 1) · Σ u_c²        p = 1 − T(L/√V) with k − 1 degrees of freedom.

Where all tasks are shared this is the paired t test (R `t.test(paired = TRUE)`); where none is, tasks are
clusters of their own (Miller 2024), and with equal k_t L/√V is the t of R `t.test`, k − 1 being the fewest
degrees of freedom that two unequal variances can leave it. Where V is 0 every task lost the same, and p is
2^−k, that of a sign test.

Few tasks that all succeed have no variance, and would be taken for exact beside many. So where k_t differ,
with S_t = Σ(x_ct − x̄_t)², Σu_c² grows by Σ a_t²(s²/k_t − S_t/k_t²), if that is above 0, where s² = ΣS_t/Σk_t
is the variance within all sides: a standard error is at least the pooled one (Student 1908, R
`t.test(var.equal = TRUE)`). With equal k_t and two sides both are the same.

A task's value takes the conditions that all sides ran on it, in the proportions of its oldest side. Tasks
that not all sides have are weighted so that every domain under every condition has the share that it had on
the oldest side: a changed mix is no loss. What a side did not run at all is left out on all. Where sides
are pooled, none being older, a task's value takes all its runs, and shares are those of all sides together.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from certkit.assessment.statistics.posterior import difference
from certkit.summary.tasks import TaskSums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from certkit.assessment.task_table import Column, TaskTable
    from certkit.summary.summary import Summary
    from certkit.summary.tasks import Tasks

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Flags = NDArray[np.bool_]

LEVEL: Final = 0.95
"""Confidence of the limit of a loss."""

_ROUNDING: Final = 1e-12
Key = tuple[str, str | None]
"""Metric and condition of a column."""


class Panel(Struct, frozen=True, kw_only=True, eq=False):
    """Task tables side by side: y and n by side, row and column. A row is a task in a domain.

    `unit` numbers the tasks, `domain` the domains, per row.
    """

    columns: tuple[Key, ...]
    scale: dict[str, int]
    domains: tuple[str, ...]
    unit: Integers
    domain: Integers
    y: Integers
    n: Integers

    def chosen(
        self, columns: Sequence[int] | slice = slice(None), domain: str | None = None, *, pooled: bool = False
    ) -> Sides:
        """Return some columns of one metric, in one domain or in all."""
        rows = slice(None) if domain is None else self.domain == self.domains.index(domain)
        y, n = self.y[:, rows][:, :, columns], self.n[:, rows][:, :, columns]
        scale = self.scale[np.array(self.columns)[columns][0][0]]
        return weighed(y / scale, n, unit=self.unit[rows], domain=self.domain[rows], pooled=pooled)


class Sides(Struct, frozen=True, kw_only=True, eq=False):
    """One mean on every side: value x and weight v of every row, v being 0 where a side has none.

    `n` are the runs of every row, `k` the tasks of every side.
    """

    x: Floats
    v: Floats
    n: Integers
    unit: Integers
    k: tuple[int, ...]

    @property
    def means(self) -> Floats:
        """The weighted mean of every side."""
        means: Floats = (self.v * self.x).sum(axis=1) / self.v.sum(axis=1)
        return means

    @property
    def swapped(self) -> Sides:
        """The same sides in the opposite order."""
        return Sides(x=self.x[::-1], v=self.v[::-1], n=self.n[::-1], unit=self.unit, k=self.k[::-1])


class Contrast(Struct, frozen=True, kw_only=True):
    """The loss L with its standard error, degrees of freedom, and the one-sided p of a loss and of a gain."""

    loss: float
    se: float
    freedom: int
    p_loss: float
    p_gain: float


def panel(tables: Sequence[TaskTable]) -> Panel:
    """Lay task tables side by side; a task is the same where salt, tag and domain are."""
    columns = tuple(dict.fromkeys(_key(column) for table in tables for column in table.columns))
    domains = tuple(sorted({name for table in tables for name in table.domains}))
    rows: dict[tuple[str, str, str], int] = {}
    units: dict[tuple[str, str], int] = {}
    entries: list[tuple[int, int, dict[Key, tuple[int, int]]]] = []
    for side, table in enumerate(tables):
        keys = [_key(column) for column in table.columns]
        salt = table.salt or f"side {side}"
        for task in table.rows:
            row = rows.setdefault((salt, task.tag, table.domains[task.domain]), len(rows))
            units.setdefault((salt, task.tag), len(units))
            pairs = zip(task.sums[::2], task.sums[1::2], strict=True)
            entries.append((side, row, dict(zip(keys, pairs, strict=True))))
    y = np.zeros((len(tables), len(rows), len(columns)), np.int64)
    n = np.zeros_like(y)
    place = {key: number for number, key in enumerate(columns)}
    for side, row, sums in entries:
        for key, (total, count) in sums.items():
            y[side, row, place[key]], n[side, row, place[key]] = total, count
    return Panel(
        columns=columns,
        scale={column.metric: column.scale for table in tables for column in table.columns},
        domains=domains,
        unit=np.array([units[salt, tag] for salt, tag, _ in rows], np.int64),
        domain=np.array([domains.index(name) for *_, name in rows], np.int64),
        y=y,
        n=n,
    )


def _key(column: Column) -> Key:
    return (column.metric, column.condition)


def observed(metric: str, summaries: Sequence[Summary], sides: Sequence[Tasks]) -> Panel:
    """Lay one metric of several summaries side by side; a task is the same where its name and domain are.

    `sides` holds the metric of each by cell and task.
    """
    cells = [cell for summary in summaries for cell in summary.cells]
    domains = tuple(sorted({cell.domain for cell in cells}))
    conditions = tuple(sorted({cell.condition for cell in cells}))
    places = [
        np.array(
            [(domains.index(cell.domain), conditions.index(cell.condition)) for cell in summary.cells],
            np.int64,
        ).reshape(-1, 2)[side.group]
        for summary, side in zip(summaries, sides, strict=True)
    ]
    unit = np.unique(np.concatenate([side.task for side in sides]), return_inverse=True)[1]
    pairs, row = np.unique(unit * (len(domains) + 1) + np.concatenate(places)[:, 0], return_inverse=True)
    y = np.zeros((len(sides), len(pairs), len(conditions)), np.int64)
    n = np.zeros_like(y)
    start = 0
    for number, (place, side) in enumerate(zip(places, sides, strict=True)):
        at = row[start : start + len(place)], place[:, 1]
        np.add.at(y[number], at, side.y)
        np.add.at(n[number], at, side.n)
        start += len(place)
    return Panel(
        columns=tuple((metric, condition) for condition in conditions),
        scale={metric: sides[0].scale},
        domains=domains,
        unit=pairs // (len(domains) + 1),
        domain=pairs % (len(domains) + 1),
        y=y,
        n=n,
    )


def weighed(y: Floats, n: Integers, *, unit: Integers, domain: Integers, pooled: bool = False) -> Sides:
    """Return the value and the weight of every row on every side.

    `y` and `n` are by side, row and condition; `unit` and `domain` number the task and the domain of a row.
    `pooled` takes a row's own proportions, and the shares of all sides together, not those of the oldest.
    """
    sides, rows, _ = n.shape
    ran: Flags = n > 0
    has: Flags = np.any(ran, axis=2)
    common: Flags = np.all(ran | ~has[:, :, None], axis=0) & np.any(has, axis=0)[:, None]
    # Sides that ran it under no common condition: each keeps its own.
    apart: Flags = ~np.any(common, axis=1) | pooled
    oldest = n[has.argmax(axis=0), np.arange(rows)]
    share = np.where(apart[None, :, None], n, oldest[None]).astype(np.float64)
    share *= np.where(apart[None, :, None], ran, common[None] & has[:, :, None])
    share /= np.maximum(share.sum(axis=2, keepdims=True), _ROUNDING)
    mix = np.zeros((sides, int(domain.max(initial=-1)) + 1, n.shape[2]))
    for side in range(sides):
        np.add.at(mix[side], domain, share[side])
    if mix.any(axis=(1, 2)).all():
        whole = mix.sum(axis=0) if pooled else mix[0]
        ratio = np.divide(whole, mix, out=np.zeros_like(mix), where=np.all(mix > 0, axis=0))
        share *= ratio[:, domain]
    v = share.sum(axis=2)
    values = np.divide(y, n, out=np.zeros(n.shape), where=ran)
    x = np.divide((share * values).sum(axis=2), v, out=np.zeros_like(v), where=v > 0)
    k = tuple(len(np.unique(unit[v[side] > 0])) for side in range(sides))
    return Sides(x=x, v=v, n=np.where(share > 0, n, 0).sum(axis=2), unit=unit, k=k)


def contrast(sides: Sides, weights: Sequence[float]) -> Contrast:
    """Return the contrast with one weight per side; a higher value on a side of positive weight is a loss."""
    from scipy.special import stdtr  # noqa: PLC0415 - heavy

    means = sides.means
    loss = float(np.round(np.array(weights) @ means, 12))
    parts = sides.v * (sides.x - means[:, None]) / sides.v.sum(axis=1, keepdims=True)
    each, a, fewest = (
        np.array([np.bincount(sides.unit, part) for part in parts]),
        np.array(weights),
        min(sides.k),
    )
    squares = float(((a @ each) ** 2).sum())
    if fewest < max(sides.k):
        alone, size = (each * each).sum(axis=1), np.array(sides.k)
        squares += max(0.0, float(a * a @ (size * size @ alone / size.sum() / size - alone)))
    se = sqrt(fewest / (fewest - 1) * squares) if fewest > 1 else 0.0
    if se <= _ROUNDING:
        least = 2.0**-fewest
        p_loss, p_gain = (least if loss > 0 else 1.0), (least if loss < 0 else 1.0)
        return Contrast(loss=loss, se=0.0, freedom=fewest - 1, p_loss=p_loss, p_gain=p_gain)
    p_loss, p_gain = (float(stdtr(fewest - 1, t)) for t in (-loss / se, loss / se))
    return Contrast(loss=loss, se=se, freedom=fewest - 1, p_loss=p_loss, p_gain=p_gain)


def slopes(count: int) -> tuple[Fraction, ...]:
    """Return the weights of a trend's contrast: the fitted loss from the first of `count` sides to the last.

    a_t = −(t − t̄)(T − 1)/Σ(t − t̄)² (Frison & Pocock 1992).
    """
    middle = Fraction(count - 1, 2)
    squares = sum(((t - middle) ** 2 for t in range(count)), Fraction(0))
    return tuple(-(t - middle) * (count - 1) / squares for t in range(count))


def limit(sides: Sides, *, low: float, width: float, level: float = LEVEL) -> float:
    """Return the loss from side 0 to side 1 that is not exceeded with confidence `level`.

    Values are from `low` to `low` + `width`. It is the upper limit of a difference of two task posteriors;
    tasks weigh as the mix of domains and conditions asks, or by their runs too: the larger limit counts.
    """
    x = (sides.x - low) / width
    lowest = []
    for v in (sides.v, sides.v * sides.n):
        w = v * np.array(sides.k)[:, None] / v.sum(axis=1, keepdims=True)
        (wx_a, w_a), (wx_b, w_b) = (
            [np.bincount(sides.unit, column) for column in (w[side] * x[side], w[side])] for side in (0, 1)
        )
        a, b = (_sums(k, wx, w) for k, wx, w in zip(sides.k, (wx_a, wx_b), (w_a, w_b), strict=True))
        lowest.append(difference(a, b, (w_a @ w_b, wx_a @ wx_b, wx_a @ w_b, w_a @ wx_b)).quantile(1 - level))
    return width * float(1 - 2 * min(lowest))


def _sums(k: int, wx: NDArray[Any], w: NDArray[Any]) -> TaskSums:
    """Return the sums of k tasks whose weights, Σw = k, stand for their runs."""
    x = np.divide(wx, w, out=np.zeros(len(w)), where=w > 0)
    return TaskSums(
        scale=1, k=k, n=k, y=wx.sum(), yy=wx @ wx, yn=wx @ w, nn=w @ w, x=x.sum(), xx=x @ x, most=x.max()
    )


def adjusted(probabilities: Sequence[float]) -> list[float]:
    """Return Benjamini and Hochberg's adjusted p values (1995; R `p.adjust(method = "BH")`)."""
    count = len(probabilities)
    order = sorted(range(count), key=probabilities.__getitem__, reverse=True)
    values, least = [1.0] * count, 1.0
    for place, index in enumerate(order):
        least = min(least, probabilities[index] * count / (count - place))
        values[index] = least
    return values
