"""The words of a statement: texts, numbers, digests and choices as they are signed, each with its bounds."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN
from decimal import Decimal as Number
from fractions import Fraction
from typing import Annotated, Final, Literal, overload

from msgspec import Meta

from certkit import canonical

CLOCK_SKEW: Final = timedelta(minutes=5)
"""How far two clocks may differ. An end of validity is not stretched."""

DIGITS: Final = 6
"""Digits after the point of every decimal."""

NOMINAL: Final = "nominal"
"""The condition of runs without a fault."""

END: Final = r"$(?!\n)"  # in Python a bare $ also matches before a final newline

Digest = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}" + END)]
Hex = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}" + END)]
Decimal = Annotated[str, Meta(pattern=r"^-?[0-9]{1,20}\.[0-9]{6}" + END)]
Count = Annotated[int, Meta(ge=0, le=canonical.MAX_INTEGER)]
Tier = Annotated[int, Meta(ge=0, le=9)]
TierKey = Annotated[str, Meta(pattern=r"^[1-9]" + END)]
Time = Annotated[datetime, Meta(tz=True)]
Text = Annotated[str, Meta(min_length=1, max_length=20_000)]

Relation = Literal["same", "affiliated", "independent"]
Origin = Literal["measured", "simulated"]
Reading = Literal["table", "bounded"]
TierStatus = Literal["met", "contested", "not_met", "insufficient"]
Judged = Literal["met", "not_met", "insufficient", "not_tested"]


_UNIT: Final = Number(1).scaleb(-DIGITS)


@overload
def decimal(value: Fraction | float) -> str: ...


@overload
def decimal(value: Fraction | float | None) -> str | None: ...


def decimal(value: Fraction | float | None) -> str | None:
    """Return a number as a `Decimal`, rounded half to even; None where there is none."""
    if value is None:
        return None
    if isinstance(value, Fraction):
        # Exact: a quotient of decimals would round twice.
        number = Number(round(value * 10**DIGITS)).scaleb(-DIGITS)
    else:
        number = Number(repr(float(value)))
    return f"{number.quantize(_UNIT, rounding=ROUND_HALF_EVEN):f}".replace("-0.000000", "0.000000")


def millionths(decimal: str) -> int:
    """Return a `Decimal` as the integer of its digits."""
    return int(decimal.replace(".", ""))


def rate(successes: int, n: int) -> str | None:
    """Return successes / n as a `Decimal`, rounded half to even; None where n is 0."""
    return None if n == 0 else decimal(Fraction(successes, n))
