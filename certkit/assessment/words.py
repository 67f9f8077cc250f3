"""How values, reasons and findings are said to people: one place for every sentence about a judgement.

A reason or a finding is a code with its numbers. Its sentence stands in ``templates/reasons.toml`` or
``templates/findings.toml``, with places such as ``{runs:run}`` that `sentence` fills:

    {n}            1,200                {runs:run}     1 run, 1,200 runs
    {share:%}      67.8 %               {names:list}   a, b and 3 more
    {value:metric} as the metric's unit has it         {metric:name}  planning efficiency (pei)
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from string import Formatter
from typing import TYPE_CHECKING, Any, Final

from certkit.assessment.assessment import Finding, Row, Status
from certkit.assessment.catalogue import CATALOGUE, Unit, named
from certkit.ground import toml
from certkit.ground.wording import many

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from certkit.assessment.metric import Reason, Value

LISTED: Final = 8
"""Names in one message."""
MOST_DIGITS: Final = 12
"""Digits after which two numbers are not told apart."""
DIGITS: Final = {Unit.FRACTION: 1, Unit.PP: 1, Unit.POINTS: 2, Unit.PROBABILITY: 4}
"""Decimals by unit; 3 where none are named."""
MARKS: Final[Mapping[str, str]] = {"met": "✓", "not_met": "✗", "insufficient": "?", "not_tested": "–"}
"""The sign of a row by its status, on screens and in notebooks."""
_SUFFIX: Final = {Unit.FRACTION: " %", Unit.PP: " points"}


@cache
def finding_words() -> Mapping[str, Mapping[str, str]]:
    """Return by code of a finding: `say`, its sentence, and `means`, what raises and what clears it.

    Where all its numbers are zero, `none` is said in place of `say`.
    """
    return toml.packaged("templates", "findings.toml")


@cache
def reason_words() -> Mapping[str, str]:
    """Return by code of a `Reason`: its sentence."""
    return toml.packaged("templates", "reasons.toml")


def names(listed: Sequence[str], total: int | None = None) -> str:
    """Return the first few names, and how many more there are of `total`."""
    rest = (len(listed) if total is None else total) - min(len(listed), LISTED)
    return ", ".join(listed[:LISTED]) + (f" and {rest:,} more" if rest > 0 else "")


def percent(share: float) -> str:
    """Return a confidence as people read it: ``95 %``, ``99.5 %``."""
    return f"{100 * share:.5g} %"


def value_text(value: Value | None, unit: Unit, *, apart_from: float | None = None) -> str:
    """Return a value with its unit: ``67.8 %``, ``21.6 points``, ``0.912``, ``yes``.

    Args:
        value: None where nothing was measured.
        unit: the metric's.
        apart_from: a threshold from which the value must be told apart: 79.96 % would read as if it were the
            80 % that it misses, and gets the digits that it takes to see the difference.
    """
    if value is None:
        return "not measured"
    if unit is Unit.BOOLEAN:
        return "yes" if value else "no"
    digits = DIGITS.get(unit, 3)
    while apart_from is not None and apart_from != value and digits < MOST_DIGITS:
        if _number(value, unit, digits) != _number(apart_from, unit, digits):
            break
        digits += 1
    return _number(value, unit, digits)


def _number(value: Value, unit: Unit, digits: int) -> str:
    if unit is Unit.PROBABILITY:
        # A probability is neither 0 nor 1, whatever its last digit says.
        least = 10.0**-digits
        if value > 1 - least:
            return f"> {1 - least:.{digits}f}"
        return f"< {least:.{digits}f}" if value < least else f"{float(value):.{digits}f}"
    return rounded(value, digits, scale=100 if unit is Unit.FRACTION else 1) + _SUFFIX.get(unit, "")


def rounded(value: Value, digits: int, *, scale: int = 1) -> str:
    """Return `scale` times a number with so many decimals: a half in its decimal form goes to the even digit.

    So 726 of 800 is 0.908 and 90.8 %, whatever a double makes of 0.9075.
    """
    return f"{scale * Decimal(repr(float(value))):.{digits}f}"


def threshold_text(operator: str, threshold: Value, unit: Unit) -> str:
    """Return what is asked: ``> 80 %``, ``>= 0.7``, ``< 30 points``, ``yes``."""
    if unit is Unit.BOOLEAN:
        return "yes"
    if unit is Unit.FRACTION:
        return f"{operator} {float(100 * threshold):.10g} %"
    return f"{operator} {float(threshold):.10g}" + (" points" if unit is Unit.PP else "")


def row_value(row: Row) -> str:
    """Return the value of a row, told apart from its threshold where it has one."""
    unit = CATALOGUE[row.metric].unit
    compared = row.threshold if row.status in {Status.MET, Status.NOT_MET} else None
    return value_text(row.value, unit, apart_from=compared)


class _Sentence(Formatter):
    """Fills the places of a sentence."""

    def __init__(self, counts: Mapping[str, Any]) -> None:
        self.counts = counts

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "list":
            return names(value, self.counts.get("count"))
        if format_spec == "%":
            return rounded(value, 1, scale=100) + " %"
        if format_spec == "metric":
            return value_text(value, CATALOGUE[str(self.counts["metric"])].unit)
        if format_spec == "name":
            return named(str(value))
        if isinstance(value, int):
            return many(value, format_spec.replace("_", " ")) if format_spec else f"{value:,}"
        return f"{value:g}" if isinstance(value, float) else str(value)


def sentence(template: str, counts: Mapping[str, Any]) -> str:
    """Return a sentence with its places filled."""
    return _Sentence(counts).vformat(template, (), counts)


def reason_text(reason: Reason | None) -> str:
    """Return the sentence of a reason, nothing where there is none."""
    return "" if reason is None else sentence(reason_words()[reason.code], reason.counts)


def finding_text(finding: Finding) -> str:
    """Return the sentence of a finding."""
    texts, counts = finding_words()[finding.code], finding.counts
    text = texts["say"] if any(counts.values()) else texts.get("none", texts["say"])
    return sentence(text, counts)


def amount_text(value: float, unit: Unit, *, sign: bool = False) -> str:
    """Return a difference of two values of a metric: ``6.1 points``, ``0.12``; with its sign ``+6.1 points``.

    What rounds to zero has no minus.
    """
    scale, digits = (100, 1) if unit is Unit.FRACTION else (1, DIGITS.get(unit, 3))
    number = round(scale * value, digits) + 0.0
    return f"{number:{'+' if sign else ''}.{digits}f}" + (
        " points" if unit in {Unit.FRACTION, Unit.PP} else ""
    )


def p_text(p: float) -> str:
    """Return a p-value with two figures that count: ``0.021``, ``< 0.0001``."""
    smallest = 0.0001
    if p < smallest:
        return f"< {smallest}"
    return f"{p:.4f}" if p < 0.01 else f"{p:.3f}"  # noqa: PLR2004 - two figures that count
