"""The words of a statement: texts, numbers, digests and choices as they are signed, each with its bounds."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from typing import Annotated, Final, Literal

from msgspec import Meta

from certkit import canonical

DIGITS: Final = 6
"""Digits after the point of every decimal."""

END: Final = r"$(?!\n)"  # in Python a bare $ also matches before a final newline

Digest = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}" + END)]
Hex = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}" + END)]
Decimal = Annotated[str, Meta(pattern=r"^-?[0-9]{1,20}\.[0-9]{6}" + END)]
Tag = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{12}" + END)]
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


def millionths(decimal: str) -> int:
    """Return a `Decimal` as the integer of its digits."""
    return int(decimal.replace(".", ""))


def rate(successes: int, n: int) -> str | None:
    """Return successes / n as a `Decimal`, rounded half to even; None where n is 0."""
    if n == 0:
        return None
    whole, digits = divmod(round(Fraction(successes * 10**DIGITS, n)), 10**DIGITS)
    return f"{whole}.{digits:0{DIGITS}}"
