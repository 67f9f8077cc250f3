"""Summaries at the edges: no runs, one run, all good, all bad."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.record.record import Split
from tests.support import build

if TYPE_CHECKING:
    from certkit.summary.summary import Cell


CASES: dict[str, list[Cell]] = {
    "zero records": [],
    "zero fault runs": [build.cell("a", "nominal", build.outcomes(50, 50))],
    "one domain": [
        build.cell("a", "nominal", build.outcomes(10, 9)),
        build.cell("a", "stochastic", build.outcomes(40, 39)),
    ],
    "nominal-only domain": [
        build.cell("a", "stochastic", build.outcomes(40, 39)),
        build.cell("b", "nominal", build.outcomes(10, 10)),
    ],
    "all failures": [build.cell("a", "tool_failure", build.outcomes(30, 0))],
    "all successes": [build.cell("a", "tool_failure", build.outcomes(300, 300))],
    "one success": [build.cell("a", "tool_failure", build.outcomes(1, 1))],
    "one failure": [build.cell("a", "tool_failure", build.outcomes(1, 0))],
    "one harness error": [build.cell("a", "tool_failure", build.outcomes(1, 0, harness_error=1))],
    "held-out faults only": [
        build.cell("a", "tool_failure", build.outcomes(30, 30), split=Split.NOVEL_FAULT)
    ],
    "unknown condition only": [build.cell("a", "x_flood", build.outcomes(30, 30))],
}
