"""The command: see the package."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.study.cells import Cell, study

DOCS = Path(__file__).parents[2] / "docs" / "explanation"
SEED, DRAWS = 2026, 2000
HEAD = """# The simulation study

How often does the bounded reading pass an agent that is exactly at the threshold ("false pass"; 5 % are
promised at Tier 2, 1 % at Tier 3), and how often one that is above it? `make study` draws {draws:,} bundles
for each of {cells} cells with a generator of its own (seed {seed}) and asks the rule. A cell's standard error
is .5 points at 5 %, .2 at 1 %. All cells are in [simulation-study.csv](simulation-study.csv).

Tasks differ by a Beta law with the intraclass correlation named, by two points, or in that some always fail
(*hopeless*). Sizes: five runs a task on average, all equal, or in proportion to rank^-.7 or 1/rank.

Not simulated here: a judge's error, drift and trend, `irs` under a lenient judge, undeclared families.
"""
TITLES = {
    "shares": "Shares at the threshold: false pass, %",
    "repeats": "Runs that depend on results: false pass, %",
    "domains": "The weakest domain: false pass, %",
    "cascade": "Differences at the limit: false pass, %",
    "violations": "Violations at the limit: false pass, %",
    "looking": "Looking while the evidence grows: false pass, %",
    "attempts": "Ten attempts: false pass, %",
    "power": "Power: two fifths of the way from the threshold to 1, %",
}


def page(cells: list[Cell]) -> str:
    """Return the page: by section a table of what was drawn by tasks."""
    parts = [HEAD.format(draws=DRAWS, cells=len(cells), seed=SEED)]
    for section, title in TITLES.items():
        own = [cell for cell in cells if cell.section == section]
        tasks = sorted({cell.tasks for cell in own})
        found = {(cell.tier, cell.what, cell.tasks): cell.passed for cell in own}
        rows = list(dict.fromkeys((cell.tier, cell.what) for cell in own))
        lines = [
            f"| Tier | drawn | {' | '.join(f'{k} tasks' for k in tasks)} |",
            f"|---|---|{'---|' * len(tasks)}",
        ]
        for tier, what in rows:
            shown = (f"{100 * found[tier, what, k]:.1f}" if (tier, what, k) in found else "–" for k in tasks)
            lines.append(f"| {tier} | {what} | {' | '.join(shown)} |")
        parts.append(f"\n## {title}\n\n" + "\n".join(lines) + "\n")
    return "".join(parts)


def main(arguments: list[str]) -> int:
    """Run the study."""
    parser = argparse.ArgumentParser(prog="python -m tests.study", description="The simulation study.")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--write", action="store_true", help="write the page and its results")
    options = parser.parse_args(arguments)
    if options.write and (options.draws, options.seed) != (DRAWS, SEED):
        parser.error("--write takes the whole study with its own seed")
    cells = []
    for cell in study(options.seed, options.draws):
        cells.append(cell)
        print(f"{cell.section},{cell.tier},{cell.what},{cell.tasks},{100 * cell.passed:.2f}", flush=True)
    if options.write:
        (DOCS / "simulation-study.md").write_text(page(cells), encoding="utf-8")
        rows = ["section,tier,drawn,tasks,draws,passed"]
        rows += [f'{c.section},{c.tier},"{c.what}",{c.tasks},{c.draws},{c.passed}' for c in cells]
        (DOCS / "simulation-study.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
