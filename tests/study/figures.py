"""The figures of the study, each from the cells that stand in its table of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from certkit.assessment.statistics.estimators import LEVEL
from tests.study import coverage, drifting
from tests.study.draws import ICCS, LEVELS
from tests.study.plots import BOUNDED, FOURTH, TABLE, THIRD, Axis, Line, chart, panels
from tests.study.proportion import LIFTS, RULES
from tests.study.stopping import ORDERS, READINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.study.draws import Cell

_ICC: Final = Axis("intraclass correlation (ICC) of the runs of one task", ICCS)
_TAU: Final = float(LEVELS[2].tau)


def _chosen(cells: Sequence[Cell], section: str, reading: str, **where: float) -> Iterator[Cell]:
    for cell in cells:
        if (cell.section, cell.reading) == (section, reading) and all(
            getattr(cell, name) == value for name, value in where.items()
        ):
            yield cell


def _percent(words: str, top: int, step: int) -> Axis:
    return Axis(words, range(0, top + 1, step), "{:g} %")


def false_pass(cells: Sequence[Cell]) -> str:
    """Return false passes over ICC, both readings."""
    where = {"tier": 2, "clusters": 40, "n": 1000}
    lines = [
        Line(
            words,
            [(cell.icc, 100 * cell.share) for cell in _chosen(cells, "false pass", reading, **where)],
            style,
        )
        for reading, words, style in (
            ("table", "table reading", TABLE),
            ("bounded", "bounded reading", BOUNDED),
        )
    ]
    return chart(
        "An agent exactly at the threshold passes (Tier 2, 40 tasks, 1,000 runs)",
        _ICC,
        _percent("share that passes", 30, 5),
        lines,
        nominal=5,
        note="5 %, as asked",
    )


def power(cells: Sequence[Cell]) -> str:
    """Return power over the true rate, by ICC."""
    rates = [_TAU, *(round(_TAU + lift, 4) for lift in LIFTS[2])]
    lines = []
    for icc, style in ((0.0, TABLE), (0.1, BOUNDED), (0.3, THIRD)):
        where = {"tier": 2, "clusters": 40, "n": 1000, "icc": icc}
        found = [
            *_chosen(cells, "false pass", "bounded", **where),
            *_chosen(cells, "power", "bounded", **where),
        ]
        share = {cell.rate: 100 * cell.share for cell in found}
        lines.append(Line(f"ICC {icc:g}", [(rate, share[rate]) for rate in rates], style))
    return chart(
        "Power of the bounded reading (Tier 2, 40 tasks, 1,000 runs)",
        Axis(
            "true success under faults; the threshold is .80", (0.80, 0.82, 0.84, 0.86, 0.88, 0.90), "{:.2f}"
        ),
        _percent("share that passes", 100, 20),
        lines,
    )


def attempts(cells: Sequence[Cell]) -> str:
    """Return false passes over attempts, by rule."""
    styles = dict(zip(RULES, (TABLE, THIRD, FOURTH, BOUNDED), strict=True))
    short = ("table", "uncorrected", "α divided by i", "as corrected")
    lines = [
        Line(
            words,
            [(cell.attempts, 100 * cell.share) for cell in _chosen(cells, "attempts", rule, tier=2, icc=0.1)],
            style,
        )
        for (rule, style), words in zip(styles.items(), short, strict=True)
    ]
    return chart(
        "Passed at least once at the threshold (Tier 2, ICC 0.1)",
        Axis("attempts", range(1, 11)),
        _percent("share that has passed", 100, 20),
        lines,
        nominal=5,
        note="5 %",
    )


def stopping(cells: Sequence[Cell]) -> str:
    """Return false passes over the runs looked at, every run a task of its own."""
    section = f"stopping, {ORDERS[1].name}"
    styles = dict(zip(READINGS, (TABLE, THIRD, BOUNDED), strict=True))
    short = ("table", "bounded, fixed n", "bounded, at any time")
    lines = [
        Line(words, [(cell.n, 100 * cell.share) for cell in _chosen(cells, section, reading)], style)
        for (reading, style), words in zip(styles.items(), short, strict=True)
    ]
    return chart(
        "Passed at some look, one look every ten runs (40 tasks in turn, ICC 0.1)",
        Axis("runs so far", range(0, 1001, 200), "{:,}"),
        _percent("share that has passed", 40, 10),
        lines,
        nominal=5,
        note="5 %",
    )


def covering(_: Sequence[Cell]) -> str:
    """Return the exact coverage of the intervals over p, 20 runs."""
    p = np.arange(1, 600) / 600
    styles = {"Wilson": TABLE, "Clopper–Pearson": BOUNDED, "Jeffreys": THIRD}
    lines = [
        Line(
            method,
            list(zip(p.tolist(), (100 * coverage.at(method, 20, p)).tolist(), strict=True)),
            style._replace(dash="", mark=""),
        )
        for method, style in styles.items()
    ]
    return panels(
        "Coverage of 95 % intervals over the true rate, 20 runs (exact)",
        Axis("true rate p", (0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        Axis("intervals that hold p", range(80, 101, 5), "{:g} %"),
        lines,
        nominal=100 * LEVEL,
    )


def drift(cells: Sequence[Cell]) -> str:
    """Return how drift answers, over ICC."""
    styles = zip(drifting.LOSSES, (TABLE, BOUNDED, THIRD, THIRD, BOUNDED), strict=True)
    lines = [
        Line(
            f"{loss} lost",
            [(cell.icc, 100 * cell.share) for cell in cells if (cell.reading, cell.tier) == (loss, 0)],
            style,
        )
        for loss, style in styles
    ]
    return chart(
        "Drift flagged on the same 100 tasks of 10 runs in 5 domains",
        Axis(_ICC.words, drifting.ICCS),
        _percent("share of lineages", 100, 20),
        lines,
    )


FIGURES: Final[dict[str, Callable[[Sequence[Cell]], str]]] = {
    "false-pass": false_pass,
    "power": power,
    "attempts": attempts,
    "stopping": stopping,
    "coverage": covering,
    "drift": drift,
}
