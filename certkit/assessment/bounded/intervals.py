"""Intervals beside Wilson's: Clopper and Pearson's, Jeffreys', and that of the task posterior.

Wilson's, the exact and Jeffreys' interval treat runs as independent. The task-posterior interval treats
tasks, not runs, as independent. It is computed with equal task weights and with weights by number of runs,
each limit at one-sided confidence (1 + level)/2; the lower of the two lower limits and the higher of the two
upper limits are taken.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from msgspec import structs

from certkit.assessment.kinds import TaskMean
from certkit.assessment.metrics.metric import State
from certkit.assessment.metrics.series import METRICS
from certkit.assessment.statistics import posterior
from certkit.assessment.statistics.estimators import LEVEL, Interval, clopper_pearson, jeffreys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.metrics.metric import Metric
    from certkit.assessment.metrics.view import View

LEAST: Final = 2
"""Tasks below which there is no interval: one task shows nothing of how tasks differ."""

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


def with_intervals(metrics: dict[str, Metric], view: View) -> dict[str, Metric]:
    """Return the metrics with their further intervals; those without evidence as they are."""
    result = {}
    for name, metric in metrics.items():
        further = [*_binomial(metric), *_of_tasks(metric, view)]
        result[name] = structs.replace(metric, intervals=tuple(further)) if further else metric
    return result


def _binomial(metric: Metric) -> tuple[Interval, ...]:
    if metric.id not in _BINOMIAL or not metric.n or not isinstance(metric.value, Fraction):
        return ()
    successes = int(metric.value * metric.n)
    return clopper_pearson(successes, metric.n), jeffreys(successes, metric.n)


def _of_tasks(metric: Metric, view: View) -> Iterator[Interval]:
    if metric.id not in METRICS or metric.state is State.UNMEASURED:
        return
    kind = TaskMean(metric.id)
    sums = view.sums(metric.id)
    if sums is not None and sums.k >= LEAST:
        low, high = (
            float(scale.back(posterior.lower(sums, scale, (1 + LEVEL) / 2)))
            for scale in (kind.scale(sums, lower=lower) for lower in (True, False))
        )
        yield Interval(low=low, high=high, method="task-posterior")
