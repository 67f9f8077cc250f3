"""Claims about printed numbers among themselves: formulas, statements that ought to agree, and tiers.

A `Computed` claim prints the result of a formula. It is impossible where no inputs that print as stated give
it, and inconsistent where they give it under another reading of the formula only: other weights, the other
sign.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from math import prod, sqrt
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.recheck.claim import Claim, Name, Range, Result, Runs, State, Text
from certkit.assessment.recheck.printed import (
    Number,
    Operator,
    Printed,
    Share,
    Statement,
    around,
    compare,
    read,
    shown,
    spread,
)
from certkit.ground.base import Authored

if TYPE_CHECKING:
    from certkit.assessment.recheck.claim import Profiles

Several = Annotated[tuple[Number, ...], Field(min_length=1, max_length=1000)]


class Computed(Claim):
    """A printed number, and what a formula gives for the inputs that are printed beside it."""

    printed: Statement

    @abstractmethod
    def values(self) -> tuple[str, Fraction | float, Fraction | float]:
        """Return the formula in words, and the least and the largest value that it gives."""

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether the formula gives what is printed."""
        formula, low, high = self.values()
        least, most = around(low, high)
        fits = self.printed.admits(least, most)
        words = f"it is {spread(low, high)}"
        return self.judged(f"{self.printed.text} as {formula}", words, least, most, fits=fits)


class AggregateClaim(Computed):
    """A mean or a sum of parts; `weights` are the numbers of runs of a weighted mean."""

    kind: Literal["aggregate"]
    parts: Several
    weights: tuple[Annotated[int, Field(ge=1, le=2**53 - 1)], ...] | None = None
    how: Literal["mean", "sum"] = "mean"

    @model_validator(mode="after")
    def _fits(self) -> AggregateClaim:
        if self.weights is not None and (len(self.weights) != len(self.parts) or self.how == "sum"):
            raise ValueError("weights are those of a mean, one for each part")
        return self

    def values(self) -> tuple[str, Fraction, Fraction]:
        """Return the aggregate of the parts."""
        weights = self.weights or (1,) * len(self.parts)
        total = sum(weights) if self.how == "mean" else 1
        low, high = (
            Fraction(sum(weight * end for weight, end in zip(weights, ends, strict=True))) / total
            for ends in ([part.low for part in self.parts], [part.high for part in self.parts])
        )
        weighted = "weighted " if self.weights else ""
        return f"the {weighted}{self.how} of {len(self.parts)} parts", low, high

    def otherwise(self) -> str:
        """Return whether a mean with other weights gives what is printed."""
        least, most = min(part.low for part in self.parts), max(part.high for part in self.parts)
        fits = self.how == "mean" and not self.weights and self.printed.admits(least, most)
        return "; other weights, which are not printed, could give it" if fits else ""


class DifferenceClaim(Computed):
    """A difference, `minuend` − `subtrahend`, such as the gap c_nom − r_op of [26] eq. 3."""

    kind: Literal["difference"]
    minuend: Number
    subtrahend: Number

    def values(self) -> tuple[str, Fraction, Fraction]:
        """Return the difference with its sign."""
        first, second = self.minuend, self.subtrahend
        return f"{first.text} less {second.text}", first.low - second.high, first.high - second.low

    def otherwise(self) -> str:
        """Return whether the other sign gives what is printed."""
        _, low, high = self.values()
        turned = self.printed.admits(-high, -low)
        return ": the size holds, the sign is turned round" if turned else ""


class ProductClaim(Computed):
    """A product of `factors`, divided by `divisors`; none of them negative."""

    kind: Literal["product"]
    factors: Several
    divisors: tuple[Number, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> ProductClaim:
        if any(item.value < 0 for item in self.factors) or any(item.low <= 0 for item in self.divisors):
            raise ValueError("no factor is negative, and no divisor may stand for 0")
        return self

    def values(self) -> tuple[str, Fraction, Fraction]:
        """Return the product."""
        above, below = self.factors, self.divisors
        low = prod((max(Fraction(0), item.low) for item in above), start=Fraction(1))
        high = prod((item.high for item in above), start=Fraction(1))
        low /= prod((item.high for item in below), start=Fraction(1))
        high /= prod((item.low for item in below), start=Fraction(1))
        formula = " · ".join(item.text for item in above) + "".join(f" / {item.text}" for item in below)
        return formula, low, high


class StandardErrorClaim(Computed):
    """What stands after ±, as a standard error: of a `rate` of n runs, or of a mean of n values with `sd`."""

    kind: Literal["standard-error"]
    rate: Share | None = None
    sd: Number | None = None
    n: Runs

    @model_validator(mode="after")
    def _fits(self) -> StandardErrorClaim:
        if (self.rate is None) == (self.sd is None):
            raise ValueError("give rate or sd, and not both")
        return self

    def values(self) -> tuple[str, float, float]:
        """Return √(p(1 − p)/n) or s/√n."""
        if self.sd is not None:
            low, high = (float(end) / sqrt(self.n) for end in (self.sd.low, self.sd.high))
            return f"s/√n for s = {self.sd.text}, n = {self.n:,}", low, high
        assert self.rate is not None  # noqa: S101 - either is given
        least, most = max(0.0, float(self.rate.low)), min(1.0, float(self.rate.high))
        widest = min(max(least, 0.5), most)
        errors = [sqrt(p * (1 - p) / self.n) for p in (least, widest, most)]
        return f"√(p(1 − p)/n) for p = {self.rate.text}, n = {self.n:,}", min(errors), max(errors)


class Sample(Authored):
    """A mean with its standard deviation, of n values."""

    mean: Number
    sd: Number
    n: Runs

    @model_validator(mode="after")
    def _fits(self) -> Sample:
        if self.sd.low <= 0:
            raise ValueError("sd may stand for 0")
        return self


class TTestClaim(Computed):
    """Welch's t of `first` against `second`, from their printed means and deviations."""

    kind: Literal["t-test"]
    first: Sample
    second: Sample

    def values(self) -> tuple[str, float, float]:
        """Return the least and the largest t of means and deviations that print so."""
        first, second = self.first, self.second
        errors = [
            sqrt(float(a) ** 2 / first.n + float(b) ** 2 / second.n)
            for a, b in ((first.sd.low, second.sd.low), (first.sd.high, second.sd.high))
        ]
        differences = first.mean.low - second.mean.high, first.mean.high - second.mean.low
        tried = [float(difference) / error for difference in differences for error in errors]
        sides = (f"{side.mean.text} ± {side.sd.text}" for side in (first, second))
        return f"t of {' against '.join(sides)}", min(tried), max(tried)


class EveryClaim(Claim):
    """A statement about every one of several printed values, such as "all above 0"."""

    kind: Literal["every"]
    operator: Operator
    bound: Number
    values: Annotated[tuple[Statement, ...], Field(min_length=1, max_length=1000)]

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether the statement can hold of every value, naming the values that contradict it."""
        states = {item.text: self._stands(item) for item in self.values}
        against = [text for text, state in states.items() if state is not State.CONSISTENT]
        low, high = min(item.low for item in self.values), max(item.high for item in self.values)
        words = f"against it: {', '.join(against)}" if against else f"the values are {spread(low, high)}"
        worst = min(states.values(), key=list(State).index)
        meets = "; some value meets both" if worst is State.INCONSISTENT else ""
        said = f"every value {self.operator} {self.bound.text}"
        return self.result(worst, said, words + meets, computed=Range(low=low, high=high))

    def _stands(self, item: Printed) -> State:
        """Return how a value stands to the statement; a bound is inconsistent with it where both can hold."""
        sign, bound = self.operator, self.bound.value
        if not item.operator:
            holds = compare(item.high if sign[0] == ">" else item.low, sign, bound)
            return State.CONSISTENT if holds else State.IMPOSSIBLE
        holds = compare(item.value, sign, bound)
        if item.operator[0] == sign[0]:
            given = holds or (item.operator, item.value) == (sign, bound)
            return State.CONSISTENT if given else State.INCONSISTENT
        both = holds and compare(bound, item.operator, item.value)
        return State.INCONSISTENT if both else State.IMPOSSIBLE


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
        numbers = [number for item in self.statements if (number := item.number) is not None]
        if len(numbers) == len(texts):
            overlap = max(item.low for item in numbers) <= min(item.high for item in numbers)
            agree = overlap and len({item.operator for item in numbers}) == 1
        else:
            agree = len({" ".join(text.casefold().split()) for text in texts}) == 1
        places = "; ".join(dict.fromkeys(item.where for item in self.statements))
        state, words = (State.CONSISTENT, "agree") if agree else (State.INCONSISTENT, "differ")
        return self.result(state, " | ".join(texts), f"the statements {words}: {places}")


class TierClaim(Claim):
    """A tier of a profile, and the metrics printed for it; `attained` false claims that it is missed."""

    kind: Literal["tier"]
    profile: Annotated[str, Field(min_length=1, max_length=200)] = "hb-eval-2026"
    tier: Annotated[int, Field(ge=1, le=9)]
    attained: bool = True
    metrics: Annotated[dict[Name, Number], Field(min_length=1, max_length=100)]

    @model_validator(mode="after")
    def _known(self) -> TierClaim:
        if unknown := sorted(self.metrics.keys() - CATALOGUE.keys()):
            raise ValueError(f"unknown metric {unknown[0]!r}; known: {', '.join(CATALOGUE)}")
        return self

    def check(self, profiles: Profiles) -> Result:
        """Return which rows fail, at this tier and below, with every value that prints so."""
        profile = profiles(self.profile)
        said = f"Tier {self.tier} {'attained' if self.attained else 'missed'} under {profile.id}"
        if self.tier not in profile.tier_numbers:
            words = f"the profile has tiers 1 to {len(profile.tiers)}"
            return self.result(State.IMPOSSIBLE, said, words)
        failing, undecided = [], []
        for row in profile.criteria:
            for tier in range(1, self.tier + 1):
                if (threshold := row.threshold(tier)) is None:
                    continue
                operator = row.operator_at(tier)
                ends = self._in_unit(row.metric) if operator != "is" else ()
                met = {compare(end, operator, threshold) for end in ends}
                if met == {False}:
                    printed = self.metrics[row.metric].text
                    failing.append(f"{row.id} {printed}, Tier {tier} asks {operator} {shown(threshold)}")
                    break
                if met != {True}:
                    undecided.append(row.id)
        if failing:
            state = State.IMPOSSIBLE if self.attained else State.CONSISTENT
            return self.result(state, said, f"not met: {'; '.join(failing)}")
        if undecided:
            return self.lacks(said, "every printed row is met or could be", *dict.fromkeys(undecided))
        state = State.CONSISTENT if self.attained else State.IMPOSSIBLE
        return self.result(state, said, "every row is met")

    def _in_unit(self, metric: str) -> tuple[Fraction, ...]:
        """Return the ends of a printed metric in the unit of its thresholds, none where it is not printed."""
        printed = self.metrics.get(metric)
        if printed is None:
            return ()
        factor = 100 if CATALOGUE[metric].unit is Unit.PP and printed.text.endswith(("pp", "%")) else 1
        return printed.low * factor, printed.high * factor
