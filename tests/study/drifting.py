"""Drift between two passports: what `tests.study_drift` simulates, as tables and promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.study.draws import Cell, Limit, markdown, percent
from tests.study_drift import study

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ICCS: Final = (0.0, 0.1, 0.2)
LOSSES: Final = (0.0, 0.1)
ANSWERS: Final = {"flagged": "any row flagged", "overall": "`r_op` flagged", "stable": "STABLE"}


def answers(seed: int, pairs: int, *, loss: float, icc: float) -> list[Cell]:
    """Return how `drift` answers pairs of which the new side has lost `loss`."""
    number = LOSSES.index(loss) * len(ICCS) + ICCS.index(icc)
    found = study(pairs, seed=100 * seed + number, icc=icc, loss=loss)._asdict()
    return [
        Cell("drift", answer, 0, 100, 1000, icc, loss, 1, pairs, round(found[answer] * pairs))
        for answer in ANSWERS
    ]


def drifting(seed: int, pairs: int, tick: Callable[[str], None]) -> list[Cell]:
    """Return the answers to pairs that are stable, and to pairs of which the new side lost 10 points."""
    cells = []
    for loss in LOSSES:
        for icc in ICCS:
            tick(f"loss {loss:g}, ICC {icc:g}")
            cells += answers(seed, pairs, loss=loss, icc=icc)
    return cells


def drifting_table(cells: Sequence[Cell]) -> str:
    """Return the table of answers."""
    rows = [
        [
            f"{'a loss of 10 points' if loss else 'stable'}, ICC {icc:g}",
            *(
                f"{percent(cell.share)} ({percent(cell.error)})"
                for cell in cells
                if (cell.rate, cell.icc) == (loss, icc)
            ),
        ]
        for loss in LOSSES
        for icc in ICCS
    ]
    return markdown(("pairs", *ANSWERS.values()), rows)


def drifting_limits(cells: Sequence[Cell]) -> list[Limit]:
    """Return what was promised of drift."""
    found = {(cell.rate, cell.icc): cell.share for cell in cells if cell.reading == "flagged"}
    alarms = [found[0.0, icc] for icc in ICCS]
    return [
        Limit(
            "drift: any flag on stable pairs at ICC 0, 0.1, 0.2: each at most 5 %",
            " / ".join(map(percent, alarms)) + " %",
            max(alarms) <= 0.05,
        ),
        Limit(
            "drift: a loss of 10 points at 1,000 fault runs is found, ICC 0: at least 95 %",
            f"{percent(found[0.1, 0.0])} %",
            found[0.1, 0.0] >= 0.95,
        ),
    ]
