"""Numbers and names as a report prints them: with a unit, on one line, and never rounded into a verdict."""

from __future__ import annotations

import re
from math import ceil, log10
from typing import TYPE_CHECKING, Final

from certkit.assessment.catalogue import CATALOGUE, Unit
from certkit.assessment.words import threshold_text, value_text

if TYPE_CHECKING:
    from certkit.assessment.metric import Interval, Value

_RARE: Final = 1e-5
_NAME: Final = 80
_BRIEF: Final = 40
_PROSE: Final = 160


def count(n: int | None) -> str:
    """Return a count with separators, or "not stated"."""
    return "not stated" if n is None else f"{n:,}"


def value(number: Value | None, unit: Unit, *, apart_from: float | None = None) -> str:
    """Return a value on one line, told apart from a threshold."""
    text = value_text(number, unit, apart_from=apart_from)
    return text if number is None else _one_line(text).replace("-", "−")


def _one_line(text: str) -> str:
    return text.replace(" ", "\u00a0")


def share(part: float, apart_from: float | None = None) -> str:
    """Return a share of runs in percent, told apart from a limit, or else from 0."""
    return value(part, Unit.FRACTION, apart_from=apart_from or 0)


def rate(at_most: float) -> str:
    """Return a tolerable rate of runs: ``0.1 %``, and ``1 in 10,000,000`` where it is too small for that."""
    if at_most >= _RARE:
        return f"{100 * at_most:g}\u00a0%"
    runs = 10 ** min(15, ceil(-log10(at_most)))
    return f"{at_most * runs:.3g} in {runs:,}"


def cut(text: str, most: int = _PROSE) -> str:
    """Return prose for a cell of a table, cut where it is long."""
    return text if len(text) <= most else f"{text[:most].rstrip()}… (cut; whole in the attached files)"


def called(name: str) -> str:
    """Return a name as page 1 has room for it."""
    return name if len(name) <= _NAME else f"{name[:_NAME].rstrip()}… (cut; whole in appendix D)"


def brief(name: str) -> str:
    """Return a name for a narrow box or column of page 1."""
    return name if len(name) <= _BRIEF else f"{name[:_BRIEF].rstrip()}…"


def threshold(sign: str | None, limit: float | None, unit: Unit) -> str:
    """Return what a tier asks: ``> 80 %``, ``≥ 0.7``, ``< 30 points``, ``yes``."""
    if sign is None or limit is None:
        return "not specified"
    return _one_line(threshold_text(sign, limit, unit).replace(">=", "≥").replace("<=", "≤"))


_OF: Final = {Unit.INDEX: "of 1", Unit.PROBABILITY: "of 1", Unit.POINTS: "of 5", Unit.PER_RUN: "per run"}
"""What a difference is measured in, where its number does not say that."""


def margin(number: float | None, unit: Unit) -> str:
    """Return a margin with sign and unit, positive passes: ``+4.2 points``, ``−0.052 of 1``."""
    if number is None or unit is Unit.BOOLEAN:
        return "–"
    # The size is told apart from 0, which it is not.
    size = value(abs(number), Unit.INDEX if unit is Unit.PROBABILITY else unit, apart_from=0)
    sign = "+" if number > 0 else "−" if number else ""
    return _one_line(f"{sign}{size} {_OF.get(unit, '')}".rstrip()).replace("%", "points")


def interval(limits: Interval | None, unit: Unit) -> str:
    """Return an interval: ``87.5–91.7 %``; a dash where the metric has none."""
    if limits is None:
        return "–"
    scale, digits = (100, 1) if unit is Unit.FRACTION else (1, 3)
    suffix = {Unit.FRACTION: "\u00a0%", Unit.PP: "\u00a0points"}.get(unit, "")
    return f"{scale * limits.low:.{digits}f}–{scale * limits.high:.{digits}f}{suffix}"


def capital(text: str) -> str:
    """Return text with its first letter as a capital."""
    return text[:1].upper() + text[1:]


_NAMES: Final = {name: spec.title for name, spec in CATALOGUE.items() if not spec.title.count(name)}
_AFTER_TITLE: Final = re.compile(rf" \(({'|'.join(CATALOGUE)})\)")
_IDS: Final = re.compile(rf"(?<![\w.-])({'|'.join(sorted(_NAMES, key=len, reverse=True))})(?![\w-])")


def plain(text: str) -> str:
    """Return text for page 1: the full name of a metric stands where its id did."""
    return _IDS.sub(lambda match: _NAMES[match.group()], _AFTER_TITLE.sub("", text))
