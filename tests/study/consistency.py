"""The consistency index as printed and over windows: steady agents, and agents that decline."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from certkit.assessment.metrics.csi import csi
from certkit.assessment.metrics.csi_windowed import csi_windowed
from certkit.evidence.reading.columns import ABSENT
from certkit.evidence.records.record import Split
from certkit.evidence.summary.ordering import order
from certkit.evidence.summary.summary import Tally
from certkit.evidence.summary.terms import GAMMA_FIFTHS, NOT_A_RECOVERY
from tests.study.draws import PROFILE, Cell, markdown, percent, uniforms
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.study.draws import Floats

RUNS: Final = 1000
LEAST: Final = next(float(row.threshold(2) or 0) for row in PROFILE.criteria if row.metric == "csi_windowed")
ORACLE: Final = 10


class Kind(NamedTuple):
    """An agent: how many plans take 0, 1, 2 … steps too many, and recoveries are intentional."""

    words: str
    extra: tuple[float, ...]
    intentional: float


KINDS: Final = (
    Kind("even", (0.8, 0.2), 1.0),
    Kind("usual", (0.3, 0.2, 0.2, 0.1, 0.1, 0.1), 0.9),
)
"""An even agent is what the printed index favours most: hardly any scatter, every recovery intentional."""

COURSES: Final = {
    "fails 5 %": (0.95, 0.95),
    "fails 10 %": (0.90, 0.90),
    "fails 20 %": (0.80, 0.80),
    "falls from .90 to .60": (0.90, 0.60),
}
"""Success at the first run and at the last; in between it changes evenly."""

_CELLS: Final = [build.cell("depot", "tool_failure", build.outcomes(RUNS, RUNS), split=Split.STANDARD)]


def view(chance: Floats, kind: Kind, course: tuple[float, float]) -> Any:
    """Return one agent's ordered runs as the metrics see them; `chance` is 3 × runs."""
    rate = np.linspace(*course, RUNS)
    success = chance[0] < rate
    steps = ORACLE + np.searchsorted(np.cumsum(kind.extra)[:-1], chance[1], side="right")
    runs = {
        "cell": np.zeros(RUNS, np.int64),
        "sequence": np.arange(RUNS),
        "started": np.full(RUNS, ABSENT),
        "success": success,
        "harness": np.zeros(len(success), np.bool_),
        "numerator": np.full(RUNS, GAMMA_FIFTHS * ORACLE, np.int64),
        "steps": steps,
        "irs": np.where(success, chance[2] < kind.intentional, NOT_A_RECOVERY).astype(np.int64),
    }
    window, _ = order(runs, _CELLS)
    summary = SimpleNamespace(window=window)
    return SimpleNamespace(summary=summary, manifest=build.facts().manifest, total=Tally(runs=RUNS))


def consistency(seed: int, draws: int, tick: Callable[[str], None]) -> list[Cell]:
    """Return the shares of agents whose index reaches the Tier 2 threshold, and is 0."""
    cells = []
    for kind in KINDS:
        for course, ends in COURSES.items():
            tick(f"{kind.words}, {course}")
            name = f"csi {kind.words} {course}"
            chance = uniforms(seed, name, (draws, 3, RUNS))
            views = [view(chance[draw], kind, ends) for draw in range(draws)]
            printed = [float(csi(one).value or 0) for one in views]
            windowed = [float(csi_windowed(one).value or 0) for one in views]
            counts = {
                "printed, 0": sum(value == 0 for value in printed),
                "printed": sum(value >= LEAST for value in printed),
                "windowed": sum(value >= LEAST for value in windowed),
            }
            cells += [
                Cell(name, reading, 2, RUNS, RUNS, 0.0, ends[1], 1, draws, hits)
                for reading, hits in counts.items()
            ]
    return cells


def consistency_table(cells: Sequence[Cell]) -> str:
    """Return the table of both indices."""
    rows = [
        [
            f"{kind.words}, {course}",
            *(
                f"{percent(cell.share)} ({percent(cell.error)})"
                for cell in cells
                if cell.section == f"csi {kind.words} {course}"
            ),
        ]
        for kind in KINDS
        for course in COURSES
    ]
    head = ("agent", "printed is 0", f"printed ≥ {LEAST:g}", f"windowed ≥ {LEAST:g}")
    return markdown(head, rows)
