"""Numbers as a report prints them: with a unit, a denominator, and never rounded into a verdict."""

from __future__ import annotations

import re
from math import ceil, log10
from typing import Final

from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.metrics.metric import asked, shown
from certkit.ground.wording import listed as listed  # noqa: PLC0414 - part of these words

_RARE: Final = 1e-5
_NAME: Final = 80
_SUFFIX: Final = {Unit.FRACTION: "\u00a0%", Unit.PP: "\u00a0pp"}


def count(n: int | None) -> str:
    """Return a count with separators, or "not stated"."""
    return "not stated" if n is None else f"{n:,}"


def value(number: float | None, unit: Unit, *, beside: float | None = None) -> str:
    """Return a value on one line; `beside` is a threshold from which it must be told apart."""
    text = shown(number, unit, beside=beside)
    return text if number is None else text.replace("-", "−").replace(" ", "\u00a0")


def share(part: float, beside: float | None = None) -> str:
    """Return a share of runs in percent, told apart from a limit, or else from 0."""
    return value(part, Unit.FRACTION, beside=beside or 0)


def rate(at_most: float) -> str:
    """Return a tolerable rate of runs: ``0.1 %``, and ``1 in 10,000,000`` where it is too small for that."""
    if at_most >= _RARE:
        return f"{100 * at_most:g}\u00a0%"
    whole = 10 ** min(15, ceil(-log10(at_most)))
    return f"{at_most * whole:.3g} in {whole:,}"


def cut(text: str, most: int = 160) -> str:
    """Return prose for a cell of a table, cut where it is long."""
    return text if len(text) <= most else f"{text[:most].rstrip()}… (cut; whole in the attached files)"


def called(name: str) -> str:
    """Return a name as page 1 has room for it."""
    return name if len(name) <= _NAME else f"{name[:_NAME].rstrip()}… (cut; whole in appendix D)"


def probability(p: float) -> str:
    """Return a probability with four digits; beyond them it is said to be beyond them."""
    return value(p, Unit.PROBABILITY)


def threshold(sign: str | None, limit: float | None, unit: Unit) -> str:
    """Return what a tier asks: ``> 80 %``, ``≥ 0.7``, ``< 30 pp``, ``yes``."""
    if sign is None or limit is None:
        return "not specified"
    return asked(sign, limit, unit).replace(">=", "≥").replace("<=", "≤").replace(" ", "\u00a0")


def margin(number: float | None, unit: Unit) -> str:
    """Return a margin with its sign, positive passes; a fraction's margin is in percentage points."""
    if number is None or unit is Unit.BOOLEAN:
        return "–"
    # The size is told apart from 0, which it is not.
    size = value(abs(number), Unit.INDEX if unit is Unit.PROBABILITY else unit, beside=0)
    sign = "+" if number > 0 else "−" if number else ""
    return f"{sign}{size}".replace("%", "pp")


def interval(limits: dict[str, float] | None, unit: Unit) -> str:
    """Return an interval: ``87.5–91.7 %``; a dash where the metric has none."""
    if limits is None:
        return "–"
    scale = 100 if unit is Unit.FRACTION else 1
    digits = 1 if unit is Unit.FRACTION else 3
    return f"{scale * limits['low']:.{digits}f}–{scale * limits['high']:.{digits}f}{_SUFFIX.get(unit, '')}"


def capital(text: str) -> str:
    """Return text with its first letter as a capital."""
    return text[:1].upper() + text[1:]


_NAMES: Final = {name: spec.title for name, spec in CATALOGUE.items() if not spec.title.count(name)}
_BESIDE: Final = re.compile(rf" \(({'|'.join(CATALOGUE)})\)")
_IDS: Final = re.compile(rf"(?<![\w.-])({'|'.join(sorted(_NAMES, key=len, reverse=True))})(?![\w-])")


def plain(text: str) -> str:
    """Return text for page 1: the full name of a metric stands where its id did."""
    return _IDS.sub(lambda match: _NAMES[match.group()], _BESIDE.sub("", text))
