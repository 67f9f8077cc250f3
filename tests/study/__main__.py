"""The command: see the package."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.study import cells, drifting, judged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.study.cells import Cell

DOCS = Path(__file__).parents[2] / "docs" / "explanation"
SEED, DRAWS = 2026, 2000
HEAD = """# The simulation study

How often does the bounded reading pass an agent that is exactly at the threshold ("false pass"; 5 % are
promised at Tier 2, 1 % at Tier 3), and how often one that is above it? `make study` draws {draws:,} bundles
for each of {cells} cells with a generator of its own (seed {seed}) and asks the rule. A cell's standard error
is .5 points at 5 %, .2 at 1 %. All cells are in [simulation-study.csv](simulation-study.csv).

Tasks differ by a Beta law with the intraclass correlation named, by two points, or in that some always fail
(*hopeless*). Sizes: five runs a task on average, all equal, or in proportion to rank^-.7 or 1/rank.

Not simulated: a judge beside repeats until a success; fewer than 100 labels; a Tier 3 judge with 400 labels;
drift where passports have other numbers of tasks. Differences and `irs` have no bound where a model gave the
outcomes: uncorrected, the cascade penalty passed at its limit in 35-71 %. Where no small task is labelled,
cells with a judge take tasks smaller than any labelled one as the judge saw them; certkit counts them as
failed, which passes less often.

Two measurements differ from what was expected when the rule was chosen. With 100 tasks of 10 runs, all
shared, a loss of 10 points in one domain is found more often (expected 23 % at ICC .1 and 18 % at .3,
measured 35.1 % and 43.4 %), and so is a loss of 20 points (expected 84 % and 69 %, measured 93.0 % and
93.8 %). More runs where a pilot failed pass at the Tier 2 threshold more often (expected at most 0.4 %,
measured up to 3.0 %, at 200 tasks), which is below the 5 % promised.

## More often than is promised

Cells that pass too often by more than three standard errors. Bounds never believe a judge without labels
("uncorrected"), nor tasks that nobody declared independent; certkit guards against looking at a fixed bound
and against attempts without a correction. The others are limits of the rule. So is another, measured apart:
with hopeless tasks under a judge that passes half of the failures, 6.3-8.0 % pass at Tier 2 (200 tasks of
five runs, or of five and four; 100 and 300 labels; a fifth of the tasks hopeless).

| section | tier | drawn | tasks | % |
|---|---|---|---|---|
"""
TITLES = {
    "shares": "Shares at the threshold: false pass, %",
    "repeats": "Runs that depend on results: false pass, %",
    "domains": "The weakest domain: false pass, %",
    "cascade": "Differences at the limit: false pass, %",
    "violations": "Violations at the limit: false pass, %",
    "looking": "Looking while the evidence grows: false pass, %",
    "families": "Families that nobody declares: false pass, %",
    "attempts": "Ten attempts: false pass, %",
    "power": "Power: two fifths of the way from the threshold to 1, %",
    "judge": "A judge that errs, at the threshold: false pass, %",
    "judge-power": "A judge that errs, with a true rate of .85: power, %",
    "judge-uneven": "A judge that passes half of the failures, and uneven repeats: false pass, %",
    "irs": "Memory use (`irs`) under a lenient judge: false pass, %",
    "drift": "Drift and trend, five domains: lineages that are flagged, %",
    "mix": "Drift under another mix of faults: flagged, %",
    "sample": "Drift by the 1,000 tasks that a passport keeps of 2,000: flagged, %",
}


PARTS: tuple[Callable[[np.random.Generator, int], Iterator[Cell]], ...] = (
    cells.proportions,
    partial(cells.proportions, above=0.4),
    cells.repeats,
    cells.domains,
    cells.differences,
    cells.counts,
    cells.looking,
    cells.attempts,
    judged.judge,
    judged.recoveries,
    drifting.drift,
    drifting.mixes,
    drifting.sampled,
    judged.uneven,
    cells.families,
)


def study(seed: int, draws: int) -> Iterator[Cell]:
    """Yield every cell; each part draws from a generator of its own."""
    for part, child in zip(PARTS, np.random.SeedSequence(seed).spawn(len(PARTS)), strict=True):
        yield from part(np.random.Generator(np.random.PCG64(child)), draws)


def above(found: list[Cell]) -> str:
    """Return the cells that pass more often than is promised by more than three standard errors."""
    lines = []
    for cell in found:
        promised = {2: 0.05, 3: 0.01}.get(cell.tier)
        if promised is None or "power" in cell.section:
            continue
        if cell.passed > promised + 3 * sqrt(promised * (1 - promised) / cell.draws):
            share = f"{100 * cell.passed:.1f}"
            section = TITLES[cell.section].split(":")[0]
            lines.append(f"| {section} | {cell.tier} | {cell.what} | {cell.tasks} | {share} |")
    return "\n".join(lines) + "\n"


def page(found: list[Cell]) -> str:
    """Return the page: what errs more often than is promised, and by section what was drawn by tasks."""
    parts = [HEAD.format(draws=DRAWS, cells=len(found), seed=SEED), above(found)]
    for section, title in TITLES.items():
        here = [cell for cell in found if cell.section == section]
        tasks = sorted({cell.tasks for cell in here})
        passed = {(cell.tier, cell.what, cell.tasks): cell.passed for cell in here}
        rows = list(dict.fromkeys((cell.tier, cell.what) for cell in here))
        lines = [
            f"| Tier | drawn | {' | '.join(f'{k} tasks' for k in tasks)} |",
            f"|---|---|{'---|' * len(tasks)}",
        ]
        for tier, what in rows:
            shown = (
                f"{100 * passed[tier, what, k]:.1f}" if (tier, what, k) in passed else "–" for k in tasks
            )
            lines.append(f"| {tier or '–'} | {what} | {' | '.join(shown)} |")
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
    found = []
    for cell in study(options.seed, options.draws):
        found.append(cell)
        print(f"{cell.section},{cell.tier},{cell.what},{cell.tasks},{100 * cell.passed:.2f}", flush=True)
    if options.write:
        (DOCS / "simulation-study.md").write_text(page(found), encoding="utf-8")
        rows = ["section,tier,drawn,tasks,draws,passed"]
        rows += [f'{c.section},{c.tier},"{c.what}",{c.tasks},{c.draws},{c.passed}' for c in found]
        (DOCS / "simulation-study.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
