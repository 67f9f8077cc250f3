"""The verdict without each cluster: how many families of tasks carry the tier on their own.

Every row that rests on runs is judged again without each cluster, all clusters at once. Rows on the order
of single runs (consistency), on products of metrics, and attested rows stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from certkit.assessment.bounded import ARMS, HALF, MEANS, bounds, of_every_run
from certkit.assessment.criteria import Row, Status
from certkit.assessment.metrics.series import METRICS, Series, grouped, totals

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from certkit.assessment.evaluate import Judged
    from certkit.assessment.metrics.series import Totals
    from certkit.assessment.profile import Reading

    Booleans = NDArray[np.bool_]


DOMAINS: Final = 50
"""Domains above which the verdict is not computed again without each of them, or their clusters."""


class WithoutCluster(Struct, frozen=True, kw_only=True):
    """Of how many clusters the tier is lost without any one of `losing`, by the rows that then fail."""

    clusters: int
    losing: int
    criteria: dict[str, int]


def without_each_cluster(judged: Judged, tier: int, reading: Reading) -> WithoutCluster:
    """Return how many clusters, left out alone, lose `tier` under a reading."""
    jackknife = _Jackknife(judged, reading)
    lost: dict[str, Booleans] = {}
    for row in judged.rows:
        if row.tier <= tier and row.deciding(reading) is Status.MET:
            fails = jackknife.fails(row)
            if fails is not None:
                lost[row.id] = lost.get(row.id, np.zeros_like(fails)) | fails
    together = np.any(list(lost.values()), axis=0) if lost else np.zeros(0, np.bool_)
    return WithoutCluster(
        clusters=len(jackknife.names),
        losing=int(np.count_nonzero(together)),
        criteria={name: int(np.count_nonzero(fails)) for name, fails in lost.items() if fails.any()},
    )


class _Left(Struct, frozen=True, kw_only=True, eq=False):
    """A series without each cluster in turn: y and n that are left, and the mean with its variance."""

    y: NDArray[np.int64]
    n: NDArray[np.int64]
    sample: bounds.Sample


class _Jackknife:
    def __init__(self, judged: Judged, reading: Reading) -> None:
        self._judged, self._bounded = judged, reading == "bounded"
        summary = judged.view.summary
        standard = np.array([cell.split == "standard" for cell in summary.cells], np.bool_)
        self.names = np.unique(summary.clusters.cluster[standard[summary.clusters.cell]])

    def fails(self, row: Row) -> Booleans | None:
        """Tell for each cluster whether a row fails without it; None where the row does not see clusters."""
        name = row.metric.id
        if name == "domain_min":
            return self._domains(row)
        if name == "posterior":
            return self._posterior(row)
        if name in ARMS:
            return self._difference(row, *ARMS[name])
        if name not in METRICS or of_every_run(row):
            return None  # a rule that no run broke is kept by those that are left
        of, sums = self._series(name)
        return self._share(row, of, self._left(of, sums, *self._own(of)))

    def _series(self, name: str) -> tuple[Series, Totals]:
        data = self._judged.reader.clustered(name)
        assert data.sums is not None  # noqa: S101 - a row that is met rests on runs
        return data.of, data.sums

    def _own(self, of: Series, only: NDArray[np.int64] | None = None) -> tuple[Any, Any]:
        """Return y and n of every cluster, 0 where it does not carry the series; `only` some cells."""
        summary = self._judged.view.summary
        rows = of.rows(summary)
        if only is not None:
            rows = rows[np.isin(summary.clusters.cell[rows], only)]
        place = np.searchsorted(self.names, summary.clusters.cluster[rows])
        y, n = np.zeros(len(self.names), np.int64), np.zeros(len(self.names), np.int64)
        np.add.at(y, place, of.y[rows])
        np.add.at(n, place, of.n[rows])
        return y, n

    def _left(self, of: Series, sums: Totals, y: Any, n: Any) -> _Left:
        low, span = of.ends
        carried = n > 0
        left_y, left_n = sums.y - y, sums.n - n
        runs = np.maximum(left_n, 1).astype(np.float64)
        k = sums.k - carried
        mean = left_y / runs
        real_y, real_n = y.astype(np.float64), n.astype(np.float64)
        yy, yn, nn = sums.yy - real_y**2, sums.yn - real_y * real_n, sums.nn - real_n**2
        squares = np.maximum(0.0, yy - 2 * mean * yn + mean * mean * nn)
        differ = y > low * n
        if of.high is not None:
            differ &= y < (low + span) * n
        return _Left(
            y=left_y,
            n=left_n,
            sample=bounds.Sample(
                mean=(mean - low) / span,
                variance=k * squares / (np.maximum(k - 1, 1) * runs**2 * span**2),
                n=runs,
                k=runs**2 / np.maximum(nn, 1.0),
                mixed=sums.mixed - differ,
            ),
        )

    def _share(self, row: Row, of: Series, left: _Left) -> Booleans:
        """Judge a share, a mean or a rate: fewer runs than a bound needs fail too."""
        threshold = _threshold(row)
        lower = row.operator in {">", ">="}
        # Exact: y / (scale · n) against a / b.
        margin = left.y * threshold.denominator - threshold.numerator * of.scale * left.n
        fails: Booleans = _fails(margin if lower else -margin, row) | (left.n == 0)
        if not self._bounded:
            return fails
        found, sample = row.bounded, left.sample
        assert found is not None  # noqa: S101 - both readings are there
        delta, low, span = found.confidence, float(of.low), float((of.high or of.low + 1) - of.low)
        n_eff = bounds.effective_runs(sample, delta, icc0=self._judged.profile.icc0, counts=of.high is None)
        if of.high is None:
            gamma = bounds.gamma_bound(sample.mean, n_eff, delta)
            bound = np.maximum(gamma, bounds.t_bound(sample, delta, lower=False))
        else:
            bound = low + span * bounds.beta_bound(sample.mean, n_eff, delta, lower=lower)
            if row.metric.id in MEANS:
                worse = low + span * bounds.t_bound(sample, delta, lower=lower)
                bound = np.minimum(bound, worse) if lower else np.maximum(bound, worse)
        distance = bound - float(threshold)
        fails |= _fails(distance if lower else -distance, row) | (sample.k < self._needed(row, of) - HALF)
        return fails

    def _needed(self, row: Row, of: Series) -> int:
        if of.high is None or row.metric.id == "domain_min":
            return bounds.LEAST_CLUSTERS
        scaled = (_threshold(row) - of.low) / (of.high - of.low)
        lower = row.operator in {">", ">="}
        return bounds.clusters_needed(
            scaled if lower else 1 - scaled, self._judged.reader.confidence(row.tier)
        )

    def _posterior(self, row: Row) -> Booleans:
        of, sums = self._series("r_op")
        left = self._left(of, sums, *self._own(of))
        tau, asked = self._judged.profile.tau[row.tier], float(_threshold(row))
        fails: Booleans = bounds.above(left.y / np.maximum(left.n, 1), left.n, float(tau)) <= asked
        if not self._bounded or row.bounded is None:
            return fails
        delta, sample = row.bounded.confidence, left.sample
        n_eff = bounds.effective_runs(sample, delta, icc0=self._judged.profile.icc0)
        needed = bounds.clusters_needed(tau, self._judged.reader.confidence(row.tier))
        fails |= (bounds.above(sample.mean, n_eff, float(tau)) <= max(asked, delta)) | (
            sample.k < needed - HALF
        )
        return fails

    def _domains(self, row: Row) -> Booleans | None:
        of, _ = self._series("r_op")
        fails = np.zeros(len(self.names), np.bool_)
        cells = self._judged.view.summary.cells
        if len(self._judged.view.domains) > DOMAINS:
            return None
        for domain in self._judged.view.domains:
            only = np.array([number for number, cell in enumerate(cells) if cell.domain == domain], np.int64)
            y, n = self._own(of, only)
            number = np.array([0 if cell.domain == domain else 1 for cell in cells], np.int64)
            sums = totals(of, grouped(self._judged.view.summary, of, number))[0]
            # A domain without this cluster is judged as it was, and was met.
            fails |= self._share(row, of, self._left(of, sums, y, n)) & (n > 0)
        return fails

    def _difference(self, row: Row, one: str, other: str) -> Booleans:
        arms = []
        for name in (one, other):
            of, sums = self._series(name)
            arms.append(self._left(of, sums, *self._own(of)))
        first, second = arms
        empty = (first.n == 0) | (second.n == 0)
        # Exact, as in `_share`: 100 · (y1/n1 - y2/n2) against a / b.
        threshold = _threshold(row)
        points = 100 * threshold.denominator * (first.y * second.n - second.y * first.n)
        fails: Booleans = empty | _fails(threshold.numerator * first.n * second.n - points, row)
        if not self._bounded or row.bounded is None:
            return fails
        delta, icc0 = row.bounded.confidence, self._judged.profile.icc0
        worth = [bounds.effective_runs(arm.sample, delta, icc0=icc0) for arm in arms]
        limit = float(threshold / 100)
        columns = np.stack([first.sample.mean, worth[0], second.sample.mean, worth[1]], axis=1)
        distinct, place = np.unique(columns, axis=0, return_inverse=True)
        shown = [
            bounds.difference_below(bounds.Arm(mean=a, n_eff=b), bounds.Arm(mean=c, n_eff=d), limit)
            for a, b, c, d in distinct.tolist()
        ]
        few = np.minimum(first.sample.k, second.sample.k) < bounds.LEAST_CLUSTERS - HALF
        fails |= (np.array(shown)[place.ravel()] < delta) | few
        return fails


def _threshold(row: Row) -> Fraction:
    assert row.threshold is not None  # noqa: S101 - a row that is met is specified
    return row.threshold


def _fails(margin: Any, row: Row) -> Booleans:
    strict = row.operator in {">", "<"}
    fails: Booleans = margin <= 0 if strict else margin < 0
    return fails
