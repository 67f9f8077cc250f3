"""The words of a statement: texts, numbers, digests and choices as they are signed, each with its bounds."""

from __future__ import annotations

from datetime import datetime, timedelta
from fractions import Fraction
from typing import Annotated, Final, Literal, overload

from msgspec import Meta

from certkit import canonical

CLOCK_SKEW: Final = timedelta(minutes=5)
"""How far two clocks may differ. An end of validity is not stretched."""

MAX_VALIDITY: Final = timedelta(days=366)

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


@overload
def decimal(value: Fraction | float) -> str: ...


@overload
def decimal(value: Fraction | float | None) -> str | None: ...


def decimal(value: Fraction | float | None) -> str | None:
    """Return a number as a `Decimal`, rounded half to even; None where there is none."""
    if value is None:
        return None
    # Fractions round half to even, and exactly: a quotient of decimals would round twice.
    number = round((value if isinstance(value, Fraction) else Fraction(repr(float(value)))) * 10**DIGITS)
    whole, digits = divmod(abs(number), 10**DIGITS)
    return f"{'-' if number < 0 else ''}{whole}.{digits:0{DIGITS}}"


def millionths(decimal: str) -> int:
    """Return a `Decimal` as the integer of its digits."""
    return int(decimal.replace(".", ""))
