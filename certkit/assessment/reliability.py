"""The profile of reliability: the integers from which a later passport's drift is told, without raw evidence.

For each metric that is a mean over runs, overall and per domain (r_op also per condition, and per domain
and condition), six integers over the clusters c, where n_c counts the runs of c that carry the metric
and y_c is the scaled sum of their values:

    y = Σ y_c    n = Σ n_c    k = number of clusters with n_c > 0    Σ y_c²    Σ y_c·n_c    Σ n_c²

They give the mean y / (scale · n) and its cluster-robust variance. Runs of one cluster are taken together
whatever their task, domain or condition, within the row that asks. Held-out faults are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from certkit.assessment.metrics.series import series, tasks
from certkit.evidence.summary.tasks import task_sums

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from certkit.assessment.metrics.series import Series
    from certkit.evidence.summary.summary import Summary


class Moments(Struct, frozen=True, kw_only=True):
    """One row of the profile of reliability; without a domain or a condition it is over all of them.

    `yy`, `yn` and `nn` are Σ y_c², Σ y_c·n_c and Σ n_c². A value is y / `scale`.
    """

    metric: str
    domain: str | None
    condition: str | None
    scale: int
    y: int
    n: int
    k: int
    yy: int
    yn: int
    nn: int


class CellRuns(Struct, frozen=True, kw_only=True):
    """The runs of one domain under one condition."""

    domain: str
    condition: str
    runs: int


class Reliability(Struct, frozen=True, kw_only=True):
    """The profile of reliability of one bundle."""

    moments: tuple[Moments, ...]
    runs: tuple[CellRuns, ...]


METRICS: Final = ("c_nom", "r_op", "frr", "pei", "irs", "ti", "violations", "adversarial_resistance")
"""The metrics whose integers a passport carries."""


def reliability(summary: Summary, *, memory_observable: bool) -> Reliability:
    """Return the profile of reliability of a summary.

    `memory_observable` tells whether a recovery without any memory field counts as not intentional, as
    it does in the metric ([26] eq. 6).
    """
    return Reliability(
        moments=tuple(
            row for metric in METRICS for row in moments(summary, metric, memory_observable=memory_observable)
        ),
        runs=tuple(
            CellRuns(domain=cell.domain, condition=cell.condition, runs=cell.tally.runs)
            for cell in summary.select()
        ),
    )


def moments(summary: Summary, metric: str, *, memory_observable: bool) -> Iterator[Moments]:
    """Yield the rows of one metric: overall, per domain, and for r_op per condition and both."""
    of = series(summary, metric, memory_observable=memory_observable)
    cells = summary.cells
    keys: list[tuple[Sequence[str], Sequence[str]]] = [((), ()), ([c.domain for c in cells], ())]
    if metric == "r_op":
        conditions = [c.condition for c in cells]
        keys += [((), conditions), ([c.domain for c in cells], conditions)]
    for domains, conditions_ in keys:
        yield from _grouped(summary, of, domains, conditions_)


def _grouped(
    summary: Summary, of: Series, domains: Sequence[str], conditions: Sequence[str]
) -> Iterator[Moments]:
    """Yield the moments for each domain, condition or both; an empty list means all."""
    count = len(summary.cells)
    names = list(zip(domains or [""] * count, conditions or [""] * count, strict=True))
    groups = sorted(set(names))
    place = {name: number for number, name in enumerate(groups)}
    number_of = np.array([place[name] for name in names], np.int64)
    for number, sums in task_sums(tasks(summary, of, number_of)).items():
        domain, condition = groups[number]
        yield Moments(
            metric=of.metric,
            domain=domain if domains else None,
            condition=condition if conditions else None,
            scale=of.scale,
            y=sums.y,
            n=sums.n,
            k=sums.k,
            yy=sums.yy,
            yn=sums.yn,
            nn=sums.nn,
        )
