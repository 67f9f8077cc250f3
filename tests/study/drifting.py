"""Drift between passports: how often the rule flags agents that did not change, and finds those that did.

A lineage of eight passports on the same tasks, on half of them, or on none; five domains. A task succeeds
with a chance that is Beta distributed with the intraclass correlation given. The rows are r_op overall and in
every domain; the trend is that of the last passport.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from certkit.assessment.drift import TREND_LEVEL
from certkit.assessment.drift.contrast import Sides, adjusted, contrast, slopes
from certkit.assessment.drift.rows import LEVEL, reaches
from tests.study.draws import Cell, Limit, markdown, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

PASSPORTS: Final = 8
DOMAINS: Final = 5
RATE: Final = 0.85
MARGIN: Final = Fraction(5, 100)
ICCS: Final = (0.1, 0.3)


class Design(NamedTuple):
    """Tasks and runs of each of a passport, and the share of tasks that it shares with all others."""

    tasks: int
    runs: int
    shared: float

    @property
    def words(self) -> str:
        """The design as the table names it."""
        which = {1.0: "same tasks", 0.5: "half shared", 0.0: "none shared"}[self.shared]
        return f"{self.tasks} × {self.runs}, {which}"


DESIGNS: Final = (
    Design(100, 10, 1.0),
    Design(100, 10, 0.5),
    Design(100, 10, 0.0),
    Design(200, 5, 1.0),
)
LOSSES: Final[dict[str, Callable[[int, int], float]]] = {
    "nothing": lambda _t, _d: 0.0,
    "10 points in all": lambda t, _d: 0.1 * (t == 1),
    "10 points in one domain": lambda t, d: 0.1 * (t == 1 and d == 0),
    "20 points in one domain": lambda t, d: 0.2 * (t == 1 and d == 0),
    "a point a passport": lambda t, _d: 0.01 * t,
}
"""What is lost by passport t in domain d. "nothing" and "a point" are over all eight, the others over two."""


def lineage(random: np.random.Generator, design: Design, icc: float, loss: str, count: int) -> Sides:
    """Return the values of `count` passports over all tasks that any of them has."""
    kept = round(design.tasks * design.shared)
    own = design.tasks - kept
    size = kept + own * count
    scale = 1 / icc - 1
    chance = random.beta(RATE * scale, (1 - RATE) * scale, size)
    v = np.zeros((count, size))
    v[:, :kept] = 1
    for t in range(count):
        v[t, kept + own * t : kept + own * (t + 1)] = 1
    domain = np.arange(size) % DOMAINS
    lost = np.array([[LOSSES[loss](t, d) for d in range(DOMAINS)] for t in range(count)])[:, domain]
    # A task loses in proportion to its chance, so that the mean loses what is asked.
    y = random.binomial(design.runs, chance * (1 - lost / RATE))
    k = (design.tasks,) * count
    return Sides(x=y / design.runs, v=v, n=(v * design.runs).astype(np.int64), unit=np.arange(size), k=k)


def part(sides: Sides, t: Sequence[int], rows: NDArray[Any]) -> Sides:
    """Return some passports and some tasks of a lineage."""
    chosen = np.ix_(np.array(t), rows)
    v = sides.v[chosen]
    k = tuple(int(count) for count in (v > 0).sum(axis=1))
    return Sides(x=sides.x[chosen], v=v, n=sides.n[chosen], unit=np.arange(len(rows)), k=k)


def flagged(sides: Sides, at: int) -> bool:
    """Tell whether passport `at` of a lineage is flagged, against the one before it or by the trend."""
    size = sides.v.shape[1]
    groups = [np.arange(size), *(np.arange(d, size, DOMAINS) for d in range(DOMAINS))]
    found = [contrast(part(sides, (at - 1, at), rows), (1, -1)) for rows in groups]
    p = adjusted([row.p_loss for row in found])
    if any(chance <= LEVEL and reaches(row.loss, MARGIN) for chance, row in zip(p, found, strict=True)):
        return True
    if at < 2:
        return False
    slope = contrast(part(sides, range(at + 1), groups[0]), [float(weight) for weight in slopes(at + 1)])
    return slope.p_loss <= TREND_LEVEL and reaches(slope.loss, MARGIN)


def answers(seed: int, draws: int, *, design: int, icc: float, loss: str) -> Cell:
    """Return how often a design's lineages are flagged at any passport."""
    plan = DESIGNS[design]
    number = (design * len(ICCS) + ICCS.index(icc)) * len(LOSSES) + list(LOSSES).index(loss)
    random = np.random.default_rng([seed, number])
    count = PASSPORTS if loss in {"nothing", "a point a passport"} else 2
    found = 0
    for _ in range(draws):
        sides = lineage(random, plan, icc, loss, count)
        found += any(flagged(sides, at) for at in range(1, count))
    return Cell("drift", loss, design, plan.tasks, plan.tasks * plan.runs, icc, plan.shared, 1, draws, found)


def drifting(seed: int, draws: int, tick: Callable[[str], None]) -> list[Cell]:
    """Return the answers of all designs."""
    cells = []
    for number, design in enumerate(DESIGNS):
        for icc in ICCS:
            tick(f"{design.words}, ICC {icc:g}")
            cells += [answers(seed, draws, design=number, icc=icc, loss=loss) for loss in LOSSES]
    return cells


def drifting_table(cells: Sequence[Cell]) -> str:
    """Return the table of answers: the share flagged, in percent, at either ICC."""
    rows = []
    for number, design in enumerate(DESIGNS):
        shares = [
            "/".join(percent(cell.share) for cell in cells if (cell.tier, cell.reading) == (number, loss))
            for loss in LOSSES
        ]
        rows.append([design.words, *shares])
    return markdown(("flagged, ICC 0.1/0.3", *LOSSES), rows)


def drifting_limits(cells: Sequence[Cell]) -> list[Limit]:
    """Return what was promised of drift."""
    alarms = [cell.share for cell in cells if cell.reading == "nothing"]
    losses = [cell.share for cell in cells if (cell.tier, cell.reading) == (0, "10 points in all")]
    return [
        Limit(
            "drift: any flag over eight passports of an agent that did not change: at most 16 %",
            f"at most {percent(max(alarms))} %",
            max(alarms) <= 0.16,
        ),
        Limit(
            "drift: a loss of 10 points on the same 100 tasks of 10 runs is found: at least 95 %",
            f"at least {percent(min(losses))} %",
            min(losses) >= 0.95,
        ),
    ]
