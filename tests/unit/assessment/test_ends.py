"""Bounds at the ends of their scales: counts that have no end, and a chance above the table's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from msgspec import structs
from scipy import stats

from certkit.assessment.kinds import Posterior, TaskMean
from certkit.assessment.metrics.series import View
from tests.support import build
from tests.support.rows import evidence, tasks


def violating(most: int) -> dict[int, tuple[float | None, str | None]]:
    """Return bound and grounds of the row by tier: 100 tasks, of which two have `most` violations a run."""
    flawless = build.perfect(100, 2)
    table = flawless.clusters
    wrong = np.isin(table.task, np.unique(table.task)[:2])
    sums = {**table.sums, "violations": np.where(wrong, most * table.sums["violations_n"], 0)}
    cells = [
        structs.replace(
            cell,
            tally=structs.replace(cell.tally, violations=int(sums["violations"][table.cell == number].sum())),
        )
        for number, cell in enumerate(flawless.cells)
    ]
    found = structs.replace(flawless, cells=tuple(cells), clusters=structs.replace(table, sums=sums))
    rows = build.judged(found, "hb-eval-2026-bounded", tasks_independent=True).to_dict()["criteria"]
    return {
        row["tier"]: (row["bounded"]["bound"], row["bounded"]["rests_on"])
        for row in rows
        if row["id"] == "violations"
    }


@pytest.mark.parametrize(("most", "end"), [(9, 9), (4, 5)])
def test_violations_end_at_the_most_of_a_task_and_at_five_at_least(most: int, end: int) -> None:
    # At the end of the scale a task counts as failed, so that the law is Beta(1 + 98, 1 + 2) itself.
    x = np.array([1 - most / end] * 2 + [1.0] * 98)
    mean = (x.sum() + 1) / 102
    spread = (((x - mean) ** 2).sum() + mean**2 + (1 - mean) ** 2) / (102 * 103)
    size = mean * (1 - mean) / spread - 1
    limit = end * (1 - stats.beta(mean * size, (1 - mean) * size).ppf(0.05))
    if most == end:
        assert limit == pytest.approx(9 * stats.beta(3, 99).ppf(0.95)) == pytest.approx(0.549, abs=5e-4)
    bound, _ = violating(most)[2]
    assert bound == pytest.approx(limit, rel=1e-9)


@pytest.mark.parametrize(
    ("most", "told"), [(0, "more than 5"), (4, "more than 5"), (9, "more than 9, the most seen")]
)
def test_a_bound_of_violations_says_what_it_supposes(most: int, told: str) -> None:
    for bound, grounds in violating(most).values():
        assert grounds is not None
        assert grounds.endswith(f"; supposes that no task averages {told}"), bound


def test_where_tasks_are_more_alike_than_chance_makes_runs_the_chance_is_the_tables() -> None:
    view = View(evidence(tasks([4] * 190 + [5] * 10, 5)), build.facts().manifest, {})
    tau = Fraction("0.8")
    over_tasks, found = (
        TaskMean("r_op").chance(view, tau),
        Posterior(tau).bound(view, Fraction("0.95"), lower=True),
    )
    assert over_tasks > found + 0.1
    assert (
        found
        == pytest.approx(float(stats.beta(811, 191).sf(0.8)), rel=1e-9)
        == pytest.approx(0.777, abs=1e-3)
    )
