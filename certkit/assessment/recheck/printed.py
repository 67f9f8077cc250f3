"""Numbers as they are printed, and all the values that they can stand for.

A printed number is a rounded one: 0.89 stands for every value from 0.885 to 0.895, and 79.5 % for every
value from 0.7945 to 0.7955. The tolerance comes from the digits and from nothing else. ``%`` and ``pp``
divide by 100; ``<``, ``>``, ``<=``, ``>=`` print a bound instead of a value, and bounds are exact.

    >>> printed = read("79.5 %")
    >>> printed.low, printed.high
    (Fraction(1589, 2000), Fraction(1591, 2000))

A whole number that TOML holds as one, without quotes, is an exact count.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Struct
from pydantic import PlainValidator

if TYPE_CHECKING:
    from collections.abc import Callable

_FORM: Final = re.compile(
    r"(?P<operator><=|>=|[<>≤≥])?\s*+(?P<sign>[-+−±])?\s*+"
    r"(?P<digits>(?:[0-9]{1,3}(?:,[0-9]{3}){1,5}|[0-9]{1,15})?(?:\.[0-9]{1,15})?)"
    r"(?:e(?P<exponent>[-+]?[0-9]{1,2}))?\s*+(?P<unit>%|pp)?",
    re.ASCII,
)
_OPERATORS: Final = {"≤": "<=", "≥": ">="}
_LARGEST: Final = 2**53 - 1

Operator = Literal["<", "<=", ">", ">="]


class Printed(Struct, frozen=True):
    """A printed number: its text, its value, and the least and greatest value that print so (inclusive)."""

    text: str
    value: Fraction
    low: Fraction
    high: Fraction
    operator: str = ""

    def admits(self, low: Fraction, high: Fraction) -> bool:
        """Tell whether some value from `low` to `high` agrees with what is printed."""
        if self.operator:
            lowest = self.operator in {"<", "<="}
            return compare(low if lowest else high, self.operator, self.value)
        return low <= self.high and self.low <= high


def compare(value: Fraction, operator: str, bound: Fraction) -> bool:
    """Tell whether ``value operator bound`` holds, exactly."""
    if operator == ">":
        return value > bound
    if operator == ">=":
        return value >= bound
    return value < bound if operator == "<" else value <= bound


def read(value: object) -> Printed:
    """Return what a printed number says; raise `ValueError` where it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > _LARGEST:
            raise ValueError("a whole number is at most 2^53 - 1")
        exact = Fraction(value)
        return Printed(f"{value:,}", exact, exact, exact)
    match = _FORM.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or not match["digits"]:
        raise ValueError('a number as printed, such as "79.5 %", "0.20", "−4.0 pp" or "< 0.001"')
    digits = match["digits"].replace(",", "")
    scale = Fraction(10) ** int(match["exponent"] or 0) / (100 if match["unit"] else 1)
    magnitude = Fraction(digits if digits[0] != "." else f"0{digits}") * scale
    signed = -magnitude if match["sign"] in {"-", "−"} else magnitude
    operator = match["operator"] or ""
    decimals = len(digits.partition(".")[2])
    half = Fraction(0) if operator else scale / (2 * 10**decimals)
    return Printed(
        str(value).strip(), signed, signed - half, signed + half, _OPERATORS.get(operator, operator)
    )


def _without_operator(value: object) -> Printed:
    number = read(value)
    if number.operator:
        raise ValueError("a value, not a bound")
    return number


def _share(value: object) -> Printed:
    number = _without_operator(value)
    if not 0 <= number.value <= 1:
        raise ValueError('a share from 0 to 1, or a percentage from "0 %" to "100 %"')
    return number


def _validator(check: Callable[[object], Printed]) -> Any:
    return PlainValidator(check, json_schema_input_type=str | int)


Number = Annotated[Printed, _validator(_without_operator)]
"""A printed value."""
Share = Annotated[Printed, _validator(_share)]
"""A printed value from 0 to 1."""
Statement = Annotated[Printed, _validator(read)]
"""A printed value or a printed bound."""


def around(low: Fraction | float, high: Fraction | float) -> tuple[Fraction, Fraction]:
    """Return bounds that hold for certain: fractions as they are, doubles with what they may be off.

    Beta tails and square roots are computed to about 1e-14; 1e-10 is given, in favour of the claim.
    """
    slack = Fraction(0) if isinstance(low, Fraction) else Fraction(1, 10**10)
    return Fraction(low) - slack, Fraction(high) + slack


def shown(value: Fraction | float) -> str:
    """Return a computed number: a whole one as it is, any other with four significant digits."""
    if isinstance(value, Fraction) and value.denominator == 1:
        return f"{value.numerator:,}"
    return f"{float(value):.4g}"


def spread(low: Fraction | float, high: Fraction | float) -> str:
    """Return a computed range as one number where its ends look alike, else as ``a to b``."""
    first, last = shown(low), shown(high)
    return first if first == last else f"{first} to {last}"
