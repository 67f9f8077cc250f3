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

Drift is tested over the 18 rows of `hb-eval-2026`. A loss of 10 points in all domains is nearly always found.
A loss of 10 points in one of five domains needs about 100 tasks of five runs in each domain to be found in
80 %; no better rule was found.

Not simulated: labelling on until a row passes, what a judge's errors cost a plan, and two agents
compared where a few tasks have most of the runs.

Where a model gave the outcomes, `irs` and differences are `insufficient` under bounds: labels do not correct
them, and a lenient judge would pass them far too often. `hb-eval-2026-bounded` asks for such rows, so that
none of its tiers can be reached by a judge's outcomes; the cells with labels hold for rows of success rates
under other profiles. With labels drawn by the hash, at most {judge} % of the bundles pass at the Tier 2
threshold, also where tasks are hopeless or repeats uneven; at Tier 3, where neither was drawn, at most
{judge3} %. 30 labels show a rate of .85 in {few} %, 100 in {some} %, 300 in {many} %; 400 labels
show .99 for Tier 3 in {most} %, 100 never.

## More often than is promised

Cells that pass too often by more than three standard errors. Bounds never believe a judge without labels
("uncorrected"), nor tasks that nobody declared independent, and take no row that labels do not correct;
`protocol.declared_runs` guards against looking, and a correction against attempts. The others are limits of
the rule: 100 tasks where one arm of a difference never or hardly ever fails at Tier 3. Violations are counted
up to five a run.

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
    "judge-power": "A judge that errs, with a true rate of .85 (Tier 2) or .99 (Tier 3): power, %",
    "judge-uneven": "A judge that passes half of the failures, and uneven repeats: false pass, %",
    "graded": "Graded rows (`frr`) under a judge: false pass, %",
    "irs": "Rows that labels do not correct, under a lenient judge: false pass, %",
    "drift": "Drift and trend, five domains: lineages that are flagged, %",
    "mix": "Drift under another mix of faults: flagged, %",
    "sample": "Drift by the 1,000 tasks that a passport keeps of 2,000: flagged, %",
    "uneven": "Drift after an older passport with other numbers of tasks, none shared: flagged, %",
    "compare": "Two agents of equal rate: one is called better, %",
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
    judged.uncorrected,
    drifting.drift,
    drifting.mixes,
    drifting.sampled,
    judged.uneven,
    cells.families,
    judged.graded,
    drifting.uneven,
    drifting.large,
    drifting.compare,
)


def study(seed: int, draws: int) -> Iterator[Cell]:
    """Yield every cell; each part draws from a generator of its own."""
    for part, child in zip(PARTS, np.random.SeedSequence(seed).spawn(len(PARTS)), strict=True):
        yield from part(np.random.Generator(np.random.PCG64(child)), draws)


def above(found: list[Cell]) -> str:
    """Return the cells that pass more often than is promised by more than three standard errors."""
    lines = []
    for cell in found:
        promised = {1: 0.05, 2: 0.05, 3: 0.01}.get(cell.tier)
        if promised is None or "power" in cell.section:
            continue
        if cell.passed > promised + 3 * sqrt(promised * (1 - promised) / cell.draws):
            share = f"{100 * cell.passed:.1f}"
            section = TITLES[cell.section].split(":")[0]
            lines.append(f"| {section} | {cell.tier} | {cell.what} | {cell.tasks} | {share} |")
    return "\n".join(lines) + "\n"


def page(found: list[Cell]) -> str:
    """Return the page: what errs more often than is promised, and by section what was drawn by tasks."""
    power, top = {}, {}
    for name, tier, m in (("few", 2, 30), ("some", 2, 100), ("many", 2, 300), ("most", 3, 400)):
        cells_of = [cell for cell in found if (cell.section, cell.tier) == ("judge-power", tier)]
        shares = [100 * cell.passed for cell in cells_of if cell.what.endswith(f": {m} labels")]
        power[name] = f"{min(shares):.0f}-{max(shares):.0f}"
    for name, tier in (("judge", 2), ("judge3", 3)):
        cells_of = [cell for cell in found if cell.section in {"judge", "judge-uneven"}]
        shares = [cell.passed for cell in cells_of if cell.tier == tier and cell.what.endswith(" labels")]
        top[name] = f"{100 * max(shares):.1f}"
    head = HEAD.format(draws=DRAWS, cells=len(found), seed=SEED, **power, **top)
    parts = [head, above(found)]
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
