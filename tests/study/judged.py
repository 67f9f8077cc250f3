"""A judge that errs, alone or by task, and what labels on some of its runs mend.

The judge passes a failed run with a chance, and fails a successful one with another; by task, half of the
tasks have twice that chance and the others none. m runs are labelled, drawn without replacement, as the
bundle's hash draws them, and certkit weighs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tests.study import rule
from tests.study.cells import LEVELS, Cell, chances, passes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tests.study.rule import TaskLabels

    Counts = NDArray[np.int64]
    Floats = NDArray[np.float64]

TASKS, RUNS = 200, 5
CHUNK: Final = 250
"""Bundles whose runs are held at once."""
ERRORS: Final = ((0.1, 0.0), (0.3, 0.0), (0.1, 0.05), (0.3, 0.1))
"""Chance that a failed run passes, and that a successful one fails."""
LABELS: Final = {2: (30, 100, 300), 3: (100, 400)}
ABOVE: Final = {2: 0.85, 3: 0.99}
"""Tier → true rate where power is asked for."""
LAWS: Final = ("beta .3", "beta .7", "hopeless 20 %")
REPEATS: Final = {
    "all 5": (5, 5),
    "5 where a pilot passed, else 4": (5, 4),
    "9 where a pilot passed, else 1": (9, 1),
    "25 where a pilot passed, else 1": (25, 1),
    "until the judge passes one": (0, 0),
}
"""Runs of a task where its first one succeeded, and elsewhere."""


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


def labelled(
    rng: np.random.Generator, n: Counts, counts: Counts, labels: Sequence[int]
) -> Iterator[tuple[TaskLabels, TaskLabels]]:
    """Yield the labels of every bundle under each number of labels, drawn anew.

    `n` holds runs by bundle and task; `counts` those passed right, passed wrong, failed wrong and failed
    right, by kind, bundle and task.
    """
    y = (counts[0] + counts[1]).astype(np.float64)
    for m in labels:
        parts = [
            _labelled(rng, n[at : at + CHUNK], counts[:, at : at + CHUNK], m)
            for at in range(0, len(n), CHUNK)
        ]
        drawn = np.concatenate(parts, axis=1)
        yield rule.labelled(drawn, y, n.astype(np.float64))


def chance(
    rng: np.random.Generator, n: Counts, counts: Counts, labels: Sequence[int], tau: float
) -> Iterator[Floats]:
    """Yield every bundle's P(θ > τ) under each number of labels, as `labelled` draws them."""
    return (
        rule.worse(rule.corrected(part).above(tau) for part in drawn)
        for drawn in labelled(rng, n, counts, labels)
    )


def _labelled(rng: np.random.Generator, n: Counts, counts: Counts, m: int) -> Floats:
    """Draw m of the runs of every bundle; return the labels by kind, bundle and task."""
    bundles, tasks = n.shape
    most = int(n.max())
    # Run r of a task is of the first kind whose cumulated count exceeds r; past the last there is no run.
    ends = np.cumsum(counts, axis=0)
    kind = (np.arange(most)[:, None] >= np.moveaxis(ends, 0, -1)[:, :, None, :]).sum(axis=-1)
    order = np.where(kind < len(counts), rng.random(kind.shape), 2.0).reshape(bundles, -1)
    drawn = np.argpartition(order, m, axis=1)[:, :m]
    kinds = np.take_along_axis(kind.reshape(bundles, -1), drawn, axis=1)
    # Four kinds, bundles and tasks as one number, whose places are counted.
    place = (kinds * bundles + np.arange(bundles)[:, None]) * tasks + drawn // most
    number = np.bincount(place.ravel(), minlength=len(counts) * bundles * tasks)
    return number.reshape(len(counts), bundles, tasks).astype(np.float64)


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
            for theta in (tau, ABOVE[tier]):
                truly = chances(rng, "beta .3", theta, n.shape)
                counts = judged(rng, truly, n, rng.binomial(n, truly), error)
                section = "judge" if theta == tau else "judge-power"
                if theta == tau:
                    share = passes(counts[0] + counts[1], n, tau, delta)
                    yield Cell(section, tier, f"{error.told}: uncorrected", TASKS, draws, share)
                for m, above in zip(LABELS[tier], chance(rng, n, counts, LABELS[tier], tau), strict=True):
                    share = float((above > delta).mean())
                    yield Cell(section, tier, f"{error.told}: {m} labels", TASKS, draws, share)


def uneven(rng: np.random.Generator, draws: int, laws: Sequence[str] = LAWS) -> Iterator[Cell]:
    """A judge that passes half of the failures, where some tasks ran more often than others."""
    tau, delta = LEVELS[2]
    for tasks in (100, 200):
        for law in laws:
            truly = chances(rng, law, tau, (draws, tasks))
            for name, (more, less) in REPEATS.items():
                labels = LABELS[2] if more else LABELS[2][:2]  # so many runs there are
                if more:
                    pilot = rng.random(truly.shape) < truly
                    n = np.where(pilot, more, less)
                    won = pilot + rng.binomial(n - 1, truly)
                    counts = judged(rng, truly, n, won, Error(0.5, 0.0, by_task=False))
                else:
                    n, counts = _until_passed(rng, truly)
                for m, above in zip(labels, chance(rng, n, counts, labels, tau), strict=True):
                    share = float((above > delta).mean())
                    yield Cell("judge-uneven", 2, f"runs: {name}, {law}: {m} labels", tasks, draws, share)


def graded(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """A graded row at a threshold of .80, where a passed run counts in full: frr at its most exposed."""
    tau, delta = LEVELS[2]
    n = np.full((draws, TASKS), RUNS)
    for law in ("beta .3", "hopeless 20 %"):
        for lenient in (0.3, 0.5):
            truly = chances(rng, law, tau, n.shape)
            counts = judged(rng, truly, n, rng.binomial(n, truly), Error(lenient, 0.0, by_task=False))
            for m, drawn in zip(LABELS[2], labelled(rng, n, counts, LABELS[2]), strict=True):
                share = float((rule.least_graded(drawn, delta) > tau).mean())
                told = f"judge passes {lenient:.0%} of failures, {law}: {m} labels"
                yield Cell("graded", 2, told, TASKS, draws, share)


def _until_passed(rng: np.random.Generator, truly: Floats) -> tuple[Counts, Counts]:
    """Return runs and counts where a task is repeated until the judge passes it, ten times at most."""
    most, passing = 10, truly + 0.5 * (1 - truly)
    tries = rng.geometric(passing)
    passed = tries <= most
    n = np.minimum(tries, most)
    right = passed & (rng.random(truly.shape) < truly / passing)
    return n, np.array((right, passed & ~right, 0 * n, n - passed))


def uncorrected(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """Rows that labels do not correct, at their limits, where a judge passes some of the failed runs.

    irs at .75: runs that are wrongly passed count as recoveries, and are intentional more rarely or more
    often. The cascade penalty at 20 points: failures that are wrongly passed hide a part of it.
    """
    delta = LEVELS[2][1]
    for name, wrong in (("20 % of the wrongly passed intentional", 0.2), ("95 % of them intentional", 0.95)):
        success = chances(rng, "beta .3", 0.85, (draws, TASKS))
        intent = chances(rng, "beta .3", 0.75, (draws, TASKS))
        won = rng.binomial(RUNS, success)
        passed = rng.binomial(RUNS - won, 0.3)
        n = won + passed
        y = rng.binomial(won, intent) + rng.binomial(passed, wrong)
        share = passes(y, n, 0.75, delta)
        yield Cell("irs", 2, f"irs: judge passes 30 % of failures, {name}", TASKS, draws, share)
    for lenient in (0.3, 0.5):
        arms = []
        for rate in (0.9, 0.7):
            n = np.full((draws, TASKS), RUNS)
            won = rng.binomial(n, chances(rng, "beta .3", rate, n.shape))
            arms.append((won + rng.binomial(n - won, lenient), n))
        upper = rule.upper_difference(arms[0], arms[1], delta, shared=False)
        told = f"cascade penalty: judge passes {lenient:.0%} of failures"
        yield Cell("irs", 2, told, TASKS, draws, float((upper < 0.2).mean()))
