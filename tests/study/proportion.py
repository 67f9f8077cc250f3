"""Success under faults, the rows `r_op` and `posterior`: false pass, power, attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from certkit.assessment.bounded import bounds
from tests.study.draws import (
    ICCS,
    LEVELS,
    Cell,
    Level,
    Limit,
    bounded,
    drawn,
    markdown,
    percent,
    sizes,
    successes,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from fractions import Fraction

    from tests.study.draws import Truths

CLUSTERS: Final = (20, 40, 100)
RUNS: Final = (200, 1000, 5000)
LIFTS: Final = {1: (0.02, 0.05, 0.08, 0.10), 2: (0.02, 0.05, 0.08, 0.10), 3: (0.01, 0.02, 0.03, 0.04)}
"""How far the truth lies above τ. Tier 3 has no room for more than .05."""

ATTEMPTS: Final = 10
ATTEMPT_CLUSTERS: Final = {1: 40, 2: 40, 3: 250}
"""Tier 3 asks the tenth attempt for 209 clusters."""

ATTEMPT_DRAWS: Final = {1: 1, 2: 25, 3: 1}
"""Times the draws: the promise for Tier 2 lies too near what is found for fewer."""

SHOWN_ATTEMPTS: Final = (1, 3, 5, 10)
BOUNDED_LIMIT: Final = {2: 0.065, 3: 0.02}


def settings() -> Iterator[tuple[Level, int, int]]:
    """Yield tier, clusters and runs of every setting."""
    for level in LEVELS.values():
        ks = (20, 40, 90, 100) if level.tier == 3 else CLUSTERS
        for k in ks:
            yield from ((level, k, n) for n in RUNS)


def both(
    seed: int, draws: int, level: Level, k: int, n: int, *, icc: float, rate: float
) -> tuple[Cell, Cell]:
    """Return the shares of agents of a true `rate` that pass, in the table and in the bounded reading."""
    of = sizes(n, k)
    found = drawn(successes(seed, f"pass {level.tier} {k} {n}", draws, of, rate=rate, icc=icc), of)

    def cell(reading: str, passed: Truths) -> Cell:
        section = "false pass" if rate == float(level.tau) else "power"
        return Cell(section, reading, level.tier, k, n, icc, rate, 1, draws, int(passed.sum()))

    return cell("table", table(found, level)), cell("bounded", bounded(found, level))


def grid(
    seed: int, draws: int, lifts: Callable[[int], Sequence[float]], tick: Callable[[str], None]
) -> list[Cell]:
    """Return the cells of all settings, each at the true rates τ + lift."""
    cells: list[Cell] = []
    for level, k, n in settings():
        tick(f"tier {level.tier}, {k} clusters, {n:,} runs")
        for lift in lifts(level.tier):
            rate = round(float(level.tau) + lift, 4)
            for icc in ICCS:
                cells += both(seed, draws, level, k, n, icc=icc, rate=rate)
    return cells


def false_pass(seed: int, draws: int, tick: Callable[[str], None]) -> list[Cell]:
    """Return the shares that pass with a true rate at the threshold."""
    return grid(seed, draws, lambda _: (0.0,), tick)


def power(seed: int, draws: int, tick: Callable[[str], None]) -> list[Cell]:
    """Return the shares that pass with a true rate above the threshold."""
    return grid(seed, draws, LIFTS.__getitem__, tick)


def enough(level: Level, k: int) -> bool:
    """Tell whether `k` clusters are enough for a bound."""
    return k >= bounds.clusters_needed(level.tau, level.delta)


def false_pass_table(cells: Sequence[Cell]) -> str:
    """Return the table of false passes, each with its Monte Carlo standard error."""
    rows = []
    for level, k, n in settings():
        required = n == 1000 and (level.tier, k) in {(2, 40), (3, 90)}
        row = [f"{level.tier}, {k}, {n:,}" + (" ★" if required else "")]
        for icc in ICCS:
            first, second = _pair(cells, level, k, n, icc=icc, rate=float(level.tau))
            shown = f"{percent(second.share)} ({percent(second.error)})" if enough(level, k) else "–"
            row.append(f"{percent(first.share)} ({percent(first.error)}) / {shown}")
        rows.append(row)
    return markdown(("tier, clusters, runs", *(f"ICC {icc:g}" for icc in ICCS)), rows)


def power_table(cells: Sequence[Cell], tier: int) -> str:
    """Return the table of power at one tier."""
    rows = []
    for level, k, n in settings():
        if level.tier != tier:
            continue
        for lift in LIFTS[tier]:
            rate = round(float(level.tau) + lift, 4)
            row = [f"{k}, {n:,}, {rate:.2f}"]
            for icc in ICCS:
                first, second = _pair(cells, level, k, n, icc=icc, rate=rate)
                shown = percent(second.share) if enough(level, k) else "–"
                row.append(f"{percent(first.share)} / {shown}")
            rows.append(row)
    return markdown(("clusters, runs, truth", *(f"ICC {icc:g}" for icc in ICCS)), rows)


def _pair(
    cells: Sequence[Cell], level: Level, k: int, n: int, *, icc: float, rate: float
) -> tuple[Cell, Cell]:
    first, second = (
        cell
        for cell in cells
        if (cell.tier, cell.clusters, cell.n, cell.icc, cell.rate) == (level.tier, k, n, icc, rate)
    )
    return first, second


def false_pass_limits(cells: Sequence[Cell]) -> list[Limit]:
    """Return what was promised of false passes."""
    limits = []
    for tier, k in ((2, 40), (3, 90)):
        level, most = LEVELS[tier], BOUNDED_LIMIT[tier]
        found = [_pair(cells, level, k, 1000, icc=icc, rate=float(level.tau))[1].share for icc in ICCS]
        limits.append(
            Limit(
                f"bounded false pass, Tier {tier} (τ {float(level.tau):.2f}, δ {float(level.delta):.2f}),"
                f" 1,000 runs, {k} clusters, at ICC {', '.join(f'{icc:g}' for icc in ICCS)}: each at most"
                f" {percent(most)} %",
                " / ".join(percent(share) for share in found) + " %",
                max(found) <= most,
            )
        )
    return limits


RULES: Final[dict[str, tuple[str, Callable[[Fraction, int], Fraction]]]] = {
    "table": ("table reading", lambda delta, _: delta),
    "bounded, uncorrected": ("bounded, uncorrected", lambda delta, _: delta),
    "bounded, α/i": ("bounded, α divided by i", lambda delta, i: 1 - (1 - delta) / i),
    "bounded": ("bounded, as certkit corrects", bounds.corrected),
}
"""How attempt i is judged: the confidence that it must reach."""


def ever(seed: int, draws: int, level: Level, *, icc: float, n: int = 1000) -> list[Cell]:
    """Return the shares that have passed by each attempt, a fresh evaluation at the threshold each time."""
    k, tau = ATTEMPT_CLUSTERS[level.tier], float(level.tau)
    of = sizes(n, k)
    passed = {name: np.zeros(draws, np.bool_) for name in RULES}
    cells = []
    for attempt in range(1, ATTEMPTS + 1):
        name = f"attempt {attempt} {level.tier}"
        found = drawn(successes(seed, name, draws, of, rate=tau, icc=icc), of)
        for rule, (_, confidence) in RULES.items():
            asked = confidence(level.delta, attempt)
            passed[rule] |= table(found, level) if rule == "table" else bounded(found, level, asked)
            hits = int(passed[rule].sum())
            cells.append(Cell("attempts", rule, level.tier, k, n, icc, tau, attempt, draws, hits))
    return cells


def attempts(seed: int, draws: int, tick: Callable[[str], None]) -> list[Cell]:
    """Return false passes over attempts, and the power of a single late attempt."""
    cells = []
    for level in LEVELS.values():
        for icc in ICCS:
            tick(f"tier {level.tier}, ICC {icc:g}")
            cells += ever(seed, ATTEMPT_DRAWS[level.tier] * draws, level, icc=icc)
            cells += late(seed, draws, level, icc=icc)
    return cells


def late(seed: int, draws: int, level: Level, *, icc: float, n: int = 1000) -> Iterator[Cell]:
    """Yield the power of attempt 1, 3, 5 and 10 alone, at a true rate well above the threshold."""
    k = ATTEMPT_CLUSTERS[level.tier]
    of, rate = sizes(n, k), round(float(level.tau) + LIFTS[level.tier][2], 4)
    found = drawn(successes(seed, f"late {level.tier}", draws, of, rate=rate, icc=icc), of)
    for attempt in SHOWN_ATTEMPTS:
        passed = bounded(found, level, bounds.corrected(level.delta, attempt))
        yield Cell("late", "bounded", level.tier, k, n, icc, rate, attempt, draws, int(passed.sum()))


def attempts_table(cells: Sequence[Cell]) -> str:
    """Return the table of false passes over attempts."""
    rows = []
    for level in LEVELS.values():
        for rule, (words, _) in RULES.items():
            for count in SHOWN_ATTEMPTS if level.tier == 2 else (ATTEMPTS,):
                found = [
                    cell
                    for cell in cells
                    if (cell.section, cell.tier, cell.reading, cell.attempts)
                    == ("attempts", level.tier, rule, count)
                ]
                rows.append(
                    [
                        f"{level.tier}, {words}, {count}",
                        *(f"{percent(cell.share)} ({percent(cell.error)})" for cell in found),
                    ]
                )
    return markdown(("tier, rule, attempts", *(f"ICC {icc:g}" for icc in ICCS)), rows)


def late_table(cells: Sequence[Cell]) -> str:
    """Return the table of what a late attempt can still show."""
    found = [cell for cell in cells if cell.section == "late"]
    rows = [
        [
            f"{tier}, {rate:.2f}, {attempt}",
            *(percent(cell.share) for cell in found if (cell.tier, cell.attempts) == (tier, attempt)),
        ]
        for tier, rate in dict.fromkeys((cell.tier, cell.rate) for cell in found)
        for attempt in SHOWN_ATTEMPTS
    ]
    return markdown(("tier, truth, attempt", *(f"ICC {icc:g}" for icc in ICCS)), rows)


def attempts_limits(cells: Sequence[Cell]) -> list[Limit]:
    """Return what was promised of attempts."""
    found = [
        cell.share
        for cell in cells
        if (cell.section, cell.tier, cell.reading, cell.attempts) == ("attempts", 2, "bounded", ATTEMPTS)
    ]
    return [
        Limit(
            f"up to {ATTEMPTS} attempts, Tier 2, 1,000 runs, 40 clusters, at each ICC: at most 6.5 %",
            " / ".join(map(percent, found)) + " %",
            max(found) <= 0.065,
        )
    ]
