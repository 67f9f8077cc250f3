"""The table of criteria as assessments and passports show it: a row for each, a column for each tier.

A tier's column holds what it asks of a row and two marks: on averages, and with confidence limits. Colour
only repeats them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rich.text import Text

from certkit.assessment.catalogue import CATALOGUE
from certkit.assessment.words import MARKS, percent, rounded
from certkit.cli.emit import cut, fold, width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from certkit.assessment.metric import Value
    from certkit.cli.emit import Line

_STYLES: Final = {"met": "green", "not_met": "bold red", "insufficient": "yellow", "not_tested": "dim"}
_LEGEND: Final = "{} met, {} not met, {} too little evidence, {} not measured; a: averages, c: limits"
_SIGNS: Final = {">=": "≥", "<=": "≤", "is": ""}
_VALUE, _LIMIT, _COUNT, _TIER = 8, 8, 6, 6
_MARKED: Final = 4
"""Columns of the two marks of a tier."""
_MOST: Final = 5
"""Decimals that fit."""
_THOUSANDS: Final = 10_000


class Asked(NamedTuple):
    """What a tier asks of a row, and how either reading judges it; no operator: the tier does not ask."""

    operator: str | None
    threshold: float | bool | None
    table: str
    bounded: str | None


class Cells(NamedTuple):
    """A criterion: its id and metric, its value and limit in digits, its runs, and what each tier asks."""

    id: str
    metric: str
    value: str
    limit: str
    n: int | None
    tiers: Sequence[Asked]


def table(
    rows: Sequence[Cells], tiers: Sequence[int], *, reading: str, limit_tier: int, confidence: float
) -> Iterator[Line]:
    """Print the table.

    Args:
        rows: the criteria.
        tiers: the numbers of the tiers.
        reading: the reading that decides. A cell has the colour of its mark, but is green only where both
            readings say met.
        limit_tier: the tier whose limits are printed.
        confidence: that of the limits.
    """
    asked = [[_asked(cell) for cell in row.tiers] for row in rows]
    tier_width = max(_TIER, *(len(text) + 1 for texts in asked for text in texts)) + _MARKED  # never touch
    limit_width = _LIMIT if any(row.limit for row in rows) else 0
    room = width() - _VALUE - limit_width - _COUNT - tier_width * len(tiers)
    names = [_name(row, room - 1) for row in rows]
    name = min(room, max(len("criterion"), *map(len, names)) + 2)
    marks = f"{'a c':>{_MARKED}}"
    heads = "".join(f"{f'Tier {tier}':>{tier_width}}" for tier in tiers)
    yield Text(" " * (name + _VALUE + limit_width + _COUNT) + heads, style="dim")
    limit_head = "limit" if limit_width else ""
    head = f"{'criterion':<{name}}{'value':>{_VALUE}}{limit_head:>{limit_width}}{'n':>{_COUNT}}"
    yield Text(head + f"{'asks':>{tier_width - _MARKED}}{marks}" * len(tiers), style="dim")
    for row, title, texts in zip(rows, names, asked, strict=True):
        line = Text(f"{title:<{name}}{row.value:>{_VALUE}}")
        line.append(f"{row.limit:>{limit_width}}").append(f"{_count(row.n):>{_COUNT}}", style="dim")
        for cell, text in zip(row.tiers, texts, strict=True):
            mark = f" {_mark(cell.table)} {_mark(cell.bounded)}" if text else ""
            line.append(f"{text:>{tier_width - _MARKED}}{mark:<{_MARKED}}", style=_style(cell, reading))
        line.rstrip()
        yield line
    legend = _LEGEND.format(*MARKS.values())
    yield from (Text(line, style="dim") for line in fold(legend))
    if limit_width:
        text = f"limit: one-sided, {percent(confidence)}, computed for the threshold of Tier {limit_tier}"
        yield Text(text, style="dim")


def _style(asked: Asked, reading: str) -> str:
    status, beside = (asked.table, asked.bounded)[:: -1 if reading == "bounded" else 1]
    style = _STYLES.get(status or "", "")
    return "yellow" if status == "met" and beside not in {None, "met"} else style


def _name(row: Cells, most: int) -> str:
    """Return the longest name of a criterion that fits: the full or the short one, with its id or without."""
    spec = CATALOGUE.get(row.metric)
    titles = [row.id] if spec is None else [spec.title, spec.short]
    capitals = [f"{title[:1].upper()}{title[1:]}" for title in titles]
    names = [f"{title} ({row.id})" for title in capitals] + capitals + [row.id]
    if titles[0].lower().replace(" ", "_").startswith(row.id):
        names = capitals
    return cut(next((name for name in names if len(name) <= most), names[-1]), most)


def digits(value: Value | bool | None, *, probability: bool = False, beside: Sequence[Value] = ()) -> str:
    """Return a value as a cell shows it, a dash for none; a probability is neither 0 nor 1.

    It has the digits that tell it apart from the thresholds `beside` it, as far as they fit.
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if probability:
        four = rounded(value, 4)
        return {"0.0000": "<.0001", "1.0000": ">.9999"}.get(four, four)
    places = 3 if abs(float(value)) < 10 else 1  # noqa: PLR2004 - four figures fit
    others = {float(item) for item in beside} - {float(value)}
    while places < _MOST and rounded(value, places) in {rounded(item, places) for item in others}:
        places += 1
    return rounded(value, places)


def _asked(asked: Asked) -> str:
    """Return what a tier asks, nothing where it does not ask."""
    if asked.operator is None or asked.threshold is None:
        return ""
    number = (
        "yes" if asked.threshold is True else "no" if asked.threshold is False else f"{asked.threshold:g}"
    )
    number = number.removeprefix("0") if number.startswith("0.") else number
    return f"{_SIGNS.get(asked.operator, asked.operator)}{number}"


def _mark(status: str | None) -> str:
    return MARKS.get(status or "", " ")


def _count(n: int | None) -> str:
    if n is None:
        return ""
    return f"{n:,}" if n < _THOUSANDS else f"{n // 1000:,}k"
