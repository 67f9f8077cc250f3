"""Agents that succeeded in every run of every task: what repeats are worth. Nothing is drawn."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import structs

from certkit.evidence.summary.summary import PEI_SCALE, STRETCHES, Stretch, Window
from tests.study.draws import LEVELS, Limit, bounded, drawn, markdown, table
from tests.study.proportion import enough
from tests.support import build

if TYPE_CHECKING:
    from certkit.evidence.summary.summary import Cell, Summary

REPEATS: Final = (
    (5, 100),
    (10, 20),
    (10, 100),
    (20, 50),
    (12, 1),
    (13, 1),
    (88, 1),
    (89, 1),
    (99, 1),
    (100, 20),
)
"""Tasks, and identical successes of each under faults."""

_CONDITIONS: Final = ("adversarial", "cascade", "context_corruption", "stochastic", "tool_failure")


def perfect(tasks: int, repeats: int) -> Summary:
    """Return flawless evidence in one domain: every task `repeats` times under faults, once without.

    Fault conditions are dealt out in turn over all runs; every row of the tier table is measured.
    """
    dealt = np.arange(tasks * repeats).reshape(tasks, repeats) % len(_CONDITIONS)
    runs = {name: (dealt == number).sum(axis=1) for number, name in enumerate(_CONDITIONS)}
    runs["nominal"] = np.ones(tasks, np.int64)
    cells: list[Cell] = []
    rows = []
    for name in sorted(runs):
        if not runs[name].any():
            continue
        number = len(cells)
        rows += [
            (number, task, task, _fields(name, count))
            for task, count in enumerate(runs[name].tolist())
            if count
        ]
        total = _fields(name, int(runs[name].sum()))
        plain = {key: total[key] for key in total if key not in {"runs", "success", "pei_fixed"}}
        tally = build.outcomes(total["runs"], total["runs"], **plain)
        cells.append(build.cell("depot", name, tally, pei_terms={10: 50 * total["runs"]}))
    return build.summary(cells, ordered=_ordered(tasks * (repeats + 1)), rows=build.clusters(rows))


def _fields(condition: str, runs: int) -> dict[str, int]:
    fields = {"runs": runs, "success": runs, "pei_n": runs, "pei_fixed": runs * PEI_SCALE}
    fields |= {"ti_n": runs, "ti_thousandths": 5000 * runs, "violations_n": runs}
    if condition != "nominal":
        fields |= {"frr_n": runs, "frr_tenths": 10 * runs, "irs_yes": runs}
    if condition == "adversarial":
        fields |= {"landed": runs, "landed_success": runs}
    return fields


def _ordered(runs: int) -> Window:
    stretches = tuple(
        Stretch(
            runs=stop - start,
            failures=0,
            pei_n=stop - start,
            pei_fixed=(stop - start) * PEI_SCALE,
            pei_squares=(stop - start) * PEI_SCALE**2,
            irs_yes=stop - start,
            irs_no=0,
            irs_silent=0,
            irs_incomplete=0,
            domains_missing=0,
        )
        for start, stop in pairwise(runs * part // STRETCHES for part in range(STRETCHES + 1))
    )
    return structs.replace(build.window(), runs=runs, stretches=stretches)


def tiers(tasks: int, repeats: int) -> tuple[int, int]:
    """Return the tier of the whole tier table, in the table and in the bounded reading."""
    verdict = build.judged(perfect(tasks, repeats), "hb-eval-2026").verdict
    return verdict.table, verdict.bounded


def identical_table() -> str:
    """Return which tiers are passed, on the two success rows and on the whole tier table."""
    rows = []
    for tasks, repeats in REPEATS:
        of = np.full(tasks, repeats, np.int64)
        found = drawn(of[None, :], of)
        row = [f"{tasks} × {repeats}"]
        for level in LEVELS.values():
            first = "yes" if table(found, level)[0] else "no"
            second = "yes" if bounded(found, level)[0] else "no"
            row.append(f"{first} / {second if enough(level, tasks) else 'too few'}")
        first_tier, second_tier = tiers(tasks, repeats)
        rows.append([*row, f"{first_tier or 'none'} / {second_tier or 'none'}"])
    head = ("tasks × successes", *(f"Tier {tier}, success rows" for tier in LEVELS), "tier, whole table")
    return markdown(head, rows)


def identical_limits() -> list[Limit]:
    """Return what was promised of repeats."""
    found = tiers(10, 20)[1]
    return [
        Limit(
            "10 tasks × 20 identical successes pass no tier by bounds",
            f"Tier {found}" if found else "none",
            found == 0,
        )
    ]
