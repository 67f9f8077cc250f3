"""A judge that errs, alone or by task, and what labels on some of its runs mend.

The judge passes a failed run with a chance, and fails a successful one with another; by task, half of the
tasks have twice that chance and the others none. m runs are labelled, drawn without replacement, as the
bundle's hash draws them. `irs` is taken over the recoveries that a judge saw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from certkit.assessment.rater_error import corrected
from certkit.assessment.rater_error.corrected import Labels
from certkit.assessment.statistics import posterior
from tests.study.cells import LEVELS, Cell, chances, passes, summed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

TASKS, RUNS = 200, 5
ERRORS: Final = ((0.1, 0.0), (0.3, 0.0), (0.1, 0.05), (0.3, 0.1))
"""Chance that a failed run passes, and that a successful one fails."""


def labelled(rng: np.random.Generator, counts: NDArray[np.int64], m: int) -> Labels:
    """Draw m of the runs of every bundle; `counts` are passed right, passed wrong, failed wrong, right."""
    found: list[Any] = []
    left = np.full(counts.shape[1], m)
    for at in range(len(counts)):
        drawn = rng.hypergeometric(counts[at], counts[at + 1 :].sum(axis=0), left)
        found.append(drawn)
        left = left - drawn
    return Labels(*found)


def judge(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """An agent at the threshold under a judge that errs: as seen, and corrected; and one above it."""
    for tier, (tau, delta) in LEVELS.items():
        for by_task in (False, True):
            for lenient, harsh in ERRORS:
                for theta in (tau, 0.85) if tier == 2 else (tau,):
                    chance = chances(rng, "beta .3", theta, (draws, TASKS))
                    won = rng.binomial(RUNS, chance)
                    twice = 2 * (rng.random((draws, TASKS)) < 0.5) if by_task else np.ones((draws, TASKS))
                    wrong = rng.binomial(RUNS - won, lenient * twice)
                    missed = rng.binomial(won, harsh * twice)
                    seen = won - missed + wrong
                    columns = (won - missed, wrong, missed, RUNS - won - wrong)
                    counts = np.array([column.sum(axis=1) for column in columns])
                    name = (
                        f"passes {lenient:.0%} of failures, fails {harsh:.0%} of successes"
                        f"{', by task' if by_task else ''}"
                    )
                    sums = summed(seen, np.full(TASKS, RUNS))
                    section = "judge" if theta == tau else "judge-power"
                    if theta == tau:
                        share = passes(sums, tau, delta)
                        yield Cell(section, tier, f"{name}: uncorrected", TASKS, draws, share)
                    for m in (100, 300):
                        labels = labelled(rng, counts, m)
                        above = corrected.chance(sums, (labels, labels), tau)
                        yield Cell(
                            section, tier, f"{name}: {m} labels", TASKS, draws, float((above > delta).mean())
                        )


def recoveries(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """irs at its threshold, .75, where a judge passes 30 % of the failed runs: no label corrects this row.

    Runs that are wrongly passed count as recoveries, and are intentional more rarely or more often.
    """
    tau, delta = 0.75, 0.95
    for name, wrong in (("20 % of the wrongly passed intentional", 0.2), ("95 % of them intentional", 0.95)):
        success = chances(rng, "beta .3", 0.85, (draws, TASKS))
        intent = chances(rng, "beta .3", tau, (draws, TASKS))
        won = rng.binomial(RUNS, success)
        passed = rng.binomial(RUNS - won, 0.3)
        n = won + passed
        y = rng.binomial(won, intent) + rng.binomial(passed, wrong)
        sums = summed(y, n)
        share = float((posterior.above(sums, tau) > delta).mean())
        yield Cell("irs", 2, f"judge passes 30 % of failures, {name}", TASKS, draws, share)
