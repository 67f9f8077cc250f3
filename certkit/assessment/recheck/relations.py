"""Claims about printed numbers among themselves: sums, means, differences, products, and what contradicts.

A claim is impossible where no values that print as stated obey the relation. It is inconsistent where
they obey only another reading of it: other weights, the other sign, one of two statements.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from certkit.assessment.recheck.claim import Claim, Result, State, Text
from certkit.assessment.recheck.printed import Number, Operator, Printed, compare, read, shown, spread
from certkit.base import Authored

if TYPE_CHECKING:
    from certkit.assessment.recheck.claim import Profiles

Several = Annotated[tuple[Number, ...], Field(min_length=1, max_length=1000)]
Weight = Annotated[int, Field(ge=1, le=2**53 - 1)]


class AggregateClaim(Claim):
    """A mean or a sum of parts; `weights` are the numbers of runs of a weighted mean."""

    kind: Literal["aggregate"]
    parts: Several
    weights: tuple[Weight, ...] | None = None
    how: Literal["mean", "sum"] = "mean"
    printed: Number

    @model_validator(mode="after")
    def _fits(self) -> AggregateClaim:
        if self.weights is not None and len(self.weights) != len(self.parts):
            raise ValueError("weights and parts differ in number")
        if self.weights is not None and self.how == "sum":
            raise ValueError("a sum has no weights")
        return self

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether the parts give the printed aggregate."""
        weights = self.weights or (1,) * len(self.parts)
        total = sum(weights) if self.how == "mean" else 1
        pairs = list(zip(weights, self.parts, strict=True))
        low = Fraction(sum(w * part.low for w, part in pairs)) / total
        high = Fraction(sum(w * part.high for w, part in pairs)) / total
        name = "sum" if self.how == "sum" else "weighted mean" if self.weights else "mean"
        said = f"{self.printed.text} as the {name} of {len(self.parts)} parts"
        between = (low, high)
        arithmetic = f"the {name} is {spread(low, high)}"
        if self.printed.admits(low, high):
            return self.found(State.CONSISTENT, said, arithmetic, between=between)
        least, most = min(part.low for part in self.parts), max(part.high for part in self.parts)
        if name == "mean" and self.printed.admits(least, most):
            arithmetic += "; weights that are not printed could give the aggregate"
            return self.found(State.INCONSISTENT, said, arithmetic, between=between)
        if name == "mean":
            arithmetic += "; no weights could give the aggregate"
        return self.found(State.IMPOSSIBLE, said, arithmetic, between=between)


class DifferenceClaim(Claim):
    """A difference, `minuend` − `subtrahend`, such as the gap c_nom − r_op of [26] eq. 3."""

    kind: Literal["difference"]
    minuend: Number
    subtrahend: Number
    printed: Number

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether the difference is as printed, in size and sign."""
        low = self.minuend.low - self.subtrahend.high
        high = self.minuend.high - self.subtrahend.low
        said = f"{self.minuend.text} less {self.subtrahend.text} = {self.printed.text}"
        arithmetic = f"the difference is {spread(low, high)}"
        state = State.IMPOSSIBLE
        if self.printed.admits(low, high):
            state = State.CONSISTENT
        elif self.printed.admits(-high, -low):
            state = State.INCONSISTENT
            arithmetic += ": the size holds, the sign is turned round"
        return self.found(state, said, arithmetic, between=(low, high))


class ProductClaim(Claim):
    """A product of `factors`, divided by `divisors`; none of them negative."""

    kind: Literal["product"]
    factors: Several
    divisors: tuple[Number, ...] = ()
    printed: Number

    @model_validator(mode="after")
    def _fits(self) -> ProductClaim:
        if any(item.value < 0 for item in (*self.factors, *self.divisors)):
            raise ValueError("factors and divisors are not negative")
        if any(item.low <= 0 for item in self.divisors):
            raise ValueError("a divisor may stand for 0")
        return self

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether the product is as printed."""
        above, below = self.factors, self.divisors
        low = prod((max(Fraction(0), item.low) for item in above), start=Fraction(1))
        high = prod((item.high for item in above), start=Fraction(1))
        low /= prod((item.high for item in below), start=Fraction(1))
        high /= prod((item.low for item in below), start=Fraction(1))
        formula = " · ".join(item.text for item in above) + "".join(f" / {item.text}" for item in below)
        state = State.CONSISTENT if self.printed.admits(low, high) else State.IMPOSSIBLE
        words = f"{formula} = {spread(low, high)}"
        return self.found(state, f"{self.printed.text} = {formula}", words, between=(low, high))


class EveryClaim(Claim):
    """A statement about every one of several printed values, such as "all above 0"."""

    kind: Literal["every"]
    operator: Operator
    bound: Number
    values: Several

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether the statement holds of every value, naming the values that contradict it."""
        said = f"every value {self.operator} {self.bound.text}"
        bound = self.bound.value
        fit = [
            compare(item.high if self.operator[0] == ">" else item.low, self.operator, bound)
            for item in self.values
        ]
        against = [item.text for item, fits in zip(self.values, fit, strict=True) if not fits]
        between = (min(item.low for item in self.values), max(item.high for item in self.values))
        if against:
            shortened = ", ".join(against[:5]) + (" …" if len(against) > 5 else "")  # noqa: PLR2004 - one line
            words = f"against it: {shortened}"
            return self.found(State.IMPOSSIBLE, said, words, between=between)
        words = f"the values are {spread(*between)}"
        return self.found(State.CONSISTENT, said, words, between=between)


class Saying(Authored):
    """One of several statements that ought to be the same: where it stands, and what it says."""

    where: Text
    says: int | Text

    @property
    def number(self) -> Printed | None:
        """The printed number or bound that the statement is, or None where it is words."""
        try:
            return read(self.says)
        except ValueError:
            return None


class SameClaim(Claim):
    """Statements that ought to agree: thresholds, counts, definitions in words."""

    kind: Literal["same"]
    statements: Annotated[tuple[Saying, ...], Field(min_length=2, max_length=20)]

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether all agree: bounds exactly, values in their digits, words letter by letter."""
        texts = [str(item.says) for item in self.statements]
        said = " | ".join(texts)
        printed = [item.number for item in self.statements]
        numbers = [item for item in printed if item is not None]
        if len(numbers) == len(printed):
            low, high = max(item.low for item in numbers), min(item.high for item in numbers)
            bounds = {item.operator for item in numbers}
            agree = low <= high and len(bounds) == 1
            meant = (f"{item.operator} {shown(item.value)}".strip() for item in numbers)
            words = f"they mean {' and '.join(meant)}"
        else:
            agree = len({" ".join(text.casefold().split()) for text in texts}) == 1
            words = "the statements are in words"
        places = "; ".join(dict.fromkeys(item.where for item in self.statements))
        state = State.CONSISTENT if agree else State.INCONSISTENT
        return self.found(state, said, f"{words}{'' if agree else ', and differ'}: {places}")
