"""Intervals beside Wilson's: Clopper and Pearson's, Jeffreys', and those that respect clusters.

Wilson's, the exact and Jeffreys' interval take runs as independent. The two others take whole clusters: a
t interval on the cluster-robust variance, and the percentile bootstrap of clusters, whose seed and draws
stand with it. All series are resampled with the same draws.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import structs

from certkit.assessment.bounded import bounds
from certkit.assessment.metrics.metric import State
from certkit.assessment.metrics.series import METRICS
from certkit.assessment.statistics.estimators import LEVEL, Interval, clopper_pearson, jeffreys
from certkit.assessment.statistics.resampling import SEED, Stream, percentiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certkit.assessment.bounded import Clustered, Reader
    from certkit.assessment.metrics.metric import Metric

DRAWS: Final = 1000
MOST_CLUSTERS: Final = 20_000
"""Clusters above which nothing is resampled; the t interval says the same there."""

_BINOMIAL: Final = {
    "c_nom",
    "r_op",
    "irs",
    "domain_min",
    "adversarial_resistance",
    "cn_frr",
    "novel_fault",
    "harness_errors",
}


def with_intervals(metrics: dict[str, Metric], reader: Reader) -> dict[str, Metric]:
    """Return the metrics with their further intervals; those without evidence as they are."""
    clustered = {
        name: reader.clustered(name)
        for name, metric in metrics.items()
        if name in METRICS and metric.state is not State.UNMEASURED
    }
    drawn = _bootstrap({name: data for name, data in clustered.items() if data.sums is not None})
    result = {}
    for name, metric in metrics.items():
        found = [*_binomial(metric), *_student(clustered.get(name)), *drawn.get(name, ())]
        result[name] = structs.replace(metric, intervals=tuple(found)) if found else metric
    return result


def _binomial(metric: Metric) -> tuple[Interval, ...]:
    if metric.id not in _BINOMIAL or not metric.n or not isinstance(metric.value, Fraction):
        return ()
    successes = int(metric.value * metric.n)
    return clopper_pearson(successes, metric.n), jeffreys(successes, metric.n)


def _student(data: Clustered | None) -> tuple[Interval, ...]:
    """Return the t interval on k - 1 degrees of freedom, cut to what the metric can be."""
    if data is None or data.sums is None or data.sums.k < 2:  # noqa: PLR2004 - one cluster shows no spread
        return ()
    sample = bounds.sample(data.of, data.sums)
    if sample.variance == 0:  # all clusters are alike, which says nothing of how others would differ
        return ()
    side = (1 + LEVEL) / 2
    low = max(0.0, float(bounds.t_bound(sample, side, lower=True)))
    high = float(bounds.t_bound(sample, side, lower=False))
    if data.of.high is not None:
        high = min(1.0, high)
    return (Interval(low=data.unscaled(low), high=data.unscaled(high), method="cluster-t"),)


def _bootstrap(known: dict[str, Clustered]) -> dict[str, tuple[Interval, ...]]:
    """Return the percentile interval of every series that has at least two clusters."""
    if not known:
        return {}
    universe = np.unique(np.concatenate([data.clusters.cluster for data in known.values()]))
    if not 1 < len(universe) <= MOST_CLUSTERS:
        return {}
    table = np.zeros((len(universe), 2 * len(known)))
    for column, data in enumerate(known.values()):
        place = np.searchsorted(universe, data.clusters.cluster)
        table[place, 2 * column] = data.clusters.y
        table[place, 2 * column + 1] = data.clusters.n
    sums = np.concatenate([counts @ table for counts in Stream(SEED).resampled(DRAWS, len(universe))])
    return {
        name: (_percentile(data, sums[:, 2 * column], sums[:, 2 * column + 1]),)
        for column, (name, data) in enumerate(known.items())
        if data.sums is not None and data.sums.k > 1 and bounds.sample(data.of, data.sums).variance > 0
    }


def _percentile(data: Clustered, y: NDArray[np.float64], n: NDArray[np.float64]) -> Interval:
    # A draw may hold none of the clusters that carry the series.
    drawn = n > 0
    low, high = percentiles(y[drawn] / (data.of.scale * n[drawn]), LEVEL)
    return Interval(
        low=low, high=high, method="cluster-bootstrap", seed=SEED, draws=int(np.count_nonzero(drawn))
    )
