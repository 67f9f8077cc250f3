"""A judge that errs, alone or by task, and what labels on some of its runs mend.

The judge passes a failed run with a chance, and fails a successful one with another; by task, half of the
tasks have twice that chance and the others none. m runs are labelled, drawn without replacement, as the
bundle's hash draws them, and labels weigh by their tasks as in certkit. `irs` is taken over the recoveries
that a judge saw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import structs

from certkit.assessment.rater_error import corrected
from certkit.assessment.rater_error.corrected import Labels
from certkit.assessment.statistics import posterior
from tests.study.cells import LEVELS, Cell, chances, passes, summed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from certkit.assessment.rater_error.corrected import Both

    Counts = NDArray[np.int64]
    Floats = NDArray[np.float64]

TASKS, RUNS = 200, 5
CHUNK: Final = 250
"""Bundles whose runs are held at once."""
ERRORS: Final = ((0.1, 0.0), (0.3, 0.0), (0.1, 0.05), (0.3, 0.1))
"""Chance that a failed run passes, and that a successful one fails."""


class Error(NamedTuple):
    """The chances of a judge, which half of the tasks have doubled and the others not at all `by_task`."""

    lenient: float
    harsh: float
    by_task: bool

    @property
    def told(self) -> str:
        """The chances in words."""
        chances = f"passes {self.lenient:.0%} of failures, fails {self.harsh:.0%} of successes"
        return f"{chances}{', by task' if self.by_task else ''}"


def labelled(rng: np.random.Generator, n: Counts, counts: Counts, m: int) -> Both:
    """Draw m of the runs of every bundle, and weigh the labels as `Labelled.both` does.

    `n` holds runs by bundle and task; `counts` those passed right, passed wrong, failed wrong and failed
    right, by kind, bundle and task.
    """
    parts = [
        _labelled(rng, n[at : at + CHUNK], counts[:, at : at + CHUNK], m) for at in range(0, len(n), CHUNK)
    ]
    alike, by_runs = (np.concatenate(columns, axis=1) for columns in zip(*parts, strict=True))
    return Labels(*alike), Labels(*by_runs)


def _labelled(rng: np.random.Generator, n: Counts, counts: Counts, m: int) -> tuple[Floats, Floats]:
    bundles, tasks = n.shape
    most = int(n.max())
    # Run r of a task is of the first kind whose cumulated count exceeds r; past the last there is no run.
    ends = np.cumsum(counts, axis=0)
    kind = (np.arange(most)[:, None] >= np.moveaxis(ends, 0, -1)[:, :, None, :]).sum(axis=-1)
    order = np.where(kind < len(counts), rng.random(kind.shape), 2.0).reshape(bundles, -1)
    drawn = np.argpartition(order, m, axis=1)[:, :m]
    kinds = np.take_along_axis(kind.reshape(bundles, -1), drawn, axis=1)
    sizes = np.take_along_axis(n, drawn // most, axis=1)
    seen = np.zeros((bundles, tasks), np.bool_)
    np.put_along_axis(seen, drawn // most, values=True, axis=1)
    found = []
    for weight in (sizes.min(axis=1, keepdims=True) / sizes, np.ones(sizes.shape)):
        labels = Labels(*((weight * (kinds == which)).sum(axis=1) for which in range(len(counts))))
        found.append(np.array(structs.astuple(labels.at_most(seen.sum(axis=1)))))
    return found[0], found[1]


def judged(rng: np.random.Generator, chance: Floats, n: Counts, won: Counts, error: Error) -> Counts:
    """Return the runs passed right, passed wrong, failed wrong and failed right, by bundle and task."""
    twice = 2 * (rng.random(chance.shape) < 0.5) if error.by_task else np.ones(chance.shape)
    wrong = rng.binomial(n - won, error.lenient * twice)
    missed = rng.binomial(won, error.harsh * twice)
    return np.array((won - missed, wrong, missed, n - won - wrong))


def judge(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """An agent at the threshold under a judge that errs: as seen, and corrected; and one above it."""
    n = np.full((draws, TASKS), RUNS)
    for tier, (tau, delta) in LEVELS.items():
        for error in (Error(*pair, by_task) for by_task in (False, True) for pair in ERRORS):
            for theta in (tau, 0.85) if tier == 2 else (tau,):
                chance = chances(rng, "beta .3", theta, n.shape)
                counts = judged(rng, chance, n, rng.binomial(n, chance), error)
                sums = summed(counts[0] + counts[1], n)
                section = "judge" if theta == tau else "judge-power"
                if theta == tau:
                    share = passes(sums, tau, delta)
                    yield Cell(section, tier, f"{error.told}: uncorrected", TASKS, draws, share)
                for m in (100, 300):
                    above = corrected.chance(sums, labelled(rng, n, counts, m), tau)
                    share = float((above > delta).mean())
                    yield Cell(section, tier, f"{error.told}: {m} labels", TASKS, draws, share)


def uneven(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """A judge that passes half of the failures, where some tasks ran more often than others."""
    tau, delta = LEVELS[2]
    error = Error(0.5, 0.0, by_task=False)
    for tasks in (100, 200):
        for law in ("beta .3", "beta .7"):
            for name, (more, less) in {"all 5": (5, 5), "5 where a pilot passed, else 4": (5, 4),
                                       "9 where a pilot passed, else 1": (9, 1)}.items():  # fmt: skip
                chance = chances(rng, law, tau, (draws, tasks))
                pilot = rng.random(chance.shape) < chance
                n = np.where(pilot, more, less)
                counts = judged(rng, chance, n, pilot + rng.binomial(n - 1, chance), error)
                sums = summed(counts[0] + counts[1], n)
                for m in (100, 300):
                    above = corrected.chance(sums, labelled(rng, n, counts, m), tau)
                    share = float((above > delta).mean())
                    yield Cell("judge-uneven", 2, f"runs: {name}, {law}: {m} labels", tasks, draws, share)


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
