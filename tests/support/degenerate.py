"""Evidence at the edges: no runs, one run, all good, all bad."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.build import runs

if TYPE_CHECKING:
    from tests.support.bundles import Run

CASES: dict[str, list[Run]] = {
    "zero records": [],
    "zero fault runs": runs(50, 50, "nominal"),
    "one domain": runs(10, 9, "nominal") + runs(40, 39),
    "nominal-only domain": runs(40, 39) + runs(10, 10, "nominal", domain="b"),
    "all failures": runs(30, 0, "tool_failure"),
    "all successes": runs(300, 300, "tool_failure"),
    "one success": runs(1, 1),
    "one failure": runs(1, 0),
    "one harness error": [run | {"outcome": "harness_error"} for run in runs(1, 0)],
    "held-out faults only": runs(30, 30, split="novel_fault"),
    "unknown condition only": runs(30, 30, "x_flood"),
}
