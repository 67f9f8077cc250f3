"""The table of criteria as assessments and passports show it: a row for each, a column for each tier.

A cell holds what the tier asks and two marks: that of the table reading (point estimates), then that of the
bounded reading; colour only repeats them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rich.text import Text

from certkit.assessment.catalogue import CATALOGUE
from certkit.assessment.words import rounded
from certkit.cli.emit import WIDTH, cut, fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from certkit.assessment.metric import Value
    from certkit.cli.emit import Line

_MARKS: Final = {
    "met": ("✓", "green"),
    "not_met": ("✗", "bold red"),
    "insufficient": ("?", "yellow"),
    "not_tested": ("–", "dim"),
}
_LEGEND: Final = "{} met, {} not met, {} insufficient evidence, {} not tested"
_SIGNS: Final = {">=": "≥", "<=": "≤", "is": ""}
_VALUE, _BOUND, _COUNT, _TIER = 8, 8, 6, 8
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
    """A criterion: its id and metric, its value and bound in digits, its runs, and what each tier asks.

    Where the value differs from tier to tier, `by_tier` holds those of all tiers, shown below the table.
    """

    id: str
    metric: str
    value: str
    bound: str
    n: int | None
    tiers: Sequence[Asked]
    by_tier: Sequence[str] = ()


def table(
    rows: Sequence[Cells], tiers: Sequence[object], *, reading: str, bound_tier: object
) -> Iterator[Line]:
    """Print the table, whose bounds are those for `bound_tier`.

    A cell has the colour of the `reading` that decides, but is green only where both readings say met.
    """
    cells = [[_cell(asked) for asked in row.tiers] for row in rows]
    wide = max(_TIER, *(len(text) + 1 for line in cells for text in line))  # columns never touch
    name = WIDTH - _VALUE - _BOUND - _COUNT - wide * len(tiers)
    heads = "".join(f"{f'Tier {tier}':>{wide}}" for tier in tiers)
    head = f"{'criterion':<{name}}{'value':>{_VALUE}}{'limit':>{_BOUND}}{'n':>{_COUNT}}{heads}"
    yield Text(head, style="dim")
    for row, texts in zip(rows, cells, strict=True):
        value = "by tier" if row.by_tier else row.value
        line = Text(f"{_name(row, name - 1):<{name}}{value:>{_VALUE}}")
        line.append(f"{row.bound:>{_BOUND}}").append(f"{_count(row.n):>{_COUNT}}", style="dim")
        for asked, text in zip(row.tiers, texts, strict=True):
            line.append(f"{text:>{wide}}", style=_style(asked, reading))
        line.rstrip()
        yield line
    legend = _LEGEND.format(*(_mark(status) for status in _MARKS))
    told = fold(
        f"{legend}: first on averages, then with confidence limits; the limits are those for"
        f" Tier {bound_tier}"
    )
    for row in rows:
        if row.by_tier:
            told += fold(f"{row.id} by tier: {', '.join(row.by_tier)}")
    yield from (Text(line, style="dim") for line in told)


def _style(asked: Asked, reading: str) -> str:
    status, beside = (asked.table, asked.bounded)[:: -1 if reading == "bounded" else 1]
    style = _MARKS.get(status or "", ("", ""))[1]
    return "yellow" if status == "met" and beside not in {None, "met"} else style


def _name(row: Cells, width: int) -> str:
    """Return a criterion's full name with its id, or its short name where that is too long."""
    spec = CATALOGUE.get(row.metric)
    titles = [row.id] if spec is None else [spec.title, spec.short]
    names = [f"{title[:1].upper()}{title[1:]} ({row.id})" for title in titles]
    if titles[0].lower().replace(" ", "_").startswith(row.id):
        names = [names[0].removesuffix(f" ({row.id})")]
    return cut(next((name for name in names if len(name) <= width), names[-1]), width)


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


def _cell(asked: Asked) -> str:
    if asked.operator is None or asked.threshold is None:
        return ""
    number = (
        "yes" if asked.threshold is True else "no" if asked.threshold is False else f"{asked.threshold:g}"
    )
    number = number.removeprefix("0") if number.startswith("0.") else number
    sign = _SIGNS.get(asked.operator, asked.operator)
    return f"{sign}{number} {_mark(asked.table)}{_mark(asked.bounded)}"


def _mark(status: str | None) -> str:
    return _MARKS.get(status or "", (" ", ""))[0]


def _count(n: int | None) -> str:
    if n is None:
        return ""
    return f"{n:,}" if n < _THOUSANDS else f"{n // 1000:,}k"
