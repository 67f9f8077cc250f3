"""Claims about counts behind a rate, about the ± behind a mean, and about Welch's t of two means.

A rate of n whole things is a whole number of n (GRIM, Brown & Heathers 2017); over tasks that ran R times
each the denominator is n·R. What stands after ± may be a standard error: √(p(1 − p)/n) of a rate, s/√k of a
mean.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Literal

from pydantic import model_validator

from certkit.assessment.recheck.claim import Claim, Count, Result, Runs, State, successes_of
from certkit.assessment.recheck.printed import Number, Share, around, shown, spread
from certkit.base import Authored

if TYPE_CHECKING:
    from certkit.assessment.recheck.claim import Profiles


class CountClaim(Claim):
    """A rate of `n`: some whole number of them prints so; with `count`, that number does."""

    kind: Literal["count"]
    rate: Share
    n: Runs
    count: Count | None = None

    @property
    def whole(self) -> int:
        """The denominator."""
        return self.n

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether a whole number of the denominator gives the printed rate."""
        n, count = self.whole, self.count
        possible = successes_of(self.rate, n)
        said = self.rate.text + ("" if count is None else f" as {count:,}") + f" of {n:,}"
        if not possible:
            nearest = round(self.rate.value * n)
            words = f"no whole number gives it: {nearest:,} of {n:,} is {shown(Fraction(nearest, n))}"
            return self.found(State.IMPOSSIBLE, said, words)
        low, high = possible[0], possible[-1]
        words = f"it is {low:,}" + (f" to {high:,}" if high > low else "") + f" of {n:,}"
        between = (Fraction(low, n), Fraction(high, n))
        if count is None or count in possible:
            return self.found(State.CONSISTENT, said, words, between=between)
        words += f"; {count:,} of {n:,} is {shown(Fraction(count, n))}"
        return self.found(State.IMPOSSIBLE, said, words, between=between)


class RepeatsClaim(CountClaim):
    """A rate over `n` tasks that ran `repeats` times each: some whole number of n·R prints so."""

    kind: Literal["repeats"]  # type: ignore[assignment]
    repeats: Runs

    @property
    def whole(self) -> int:
        """The number of runs."""
        return self.n * self.repeats


class StandardErrorClaim(Claim):
    """What stands after ± read as a standard error: of a rate of `n`, or of a mean of `k` values."""

    kind: Literal["standard-error"]
    rate: Share | None = None
    n: Runs | None = None
    sd: Number | None = None
    k: Runs | None = None
    printed: Number

    @model_validator(mode="after")
    def _fits(self) -> StandardErrorClaim:
        of_rate, of_mean = (self.rate, self.n), (self.sd, self.k)
        given = [pair for pair in (of_rate, of_mean) if pair != (None, None)]
        if len(given) != 1 or None in given[0]:
            raise ValueError("give rate and n, or sd and k")
        return self

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether the standard error is what is printed."""
        if self.rate is not None and self.n is not None:
            low, high = sorted(sqrt(p * (1 - p) / self.n) for p in _ends(self.rate))
            if self.rate.low <= Fraction(1, 2) <= self.rate.high:
                high = sqrt(0.25 / self.n)
            said, formula = f"{self.rate.text} ± {self.printed.text}, n {self.n:,}", "√(p(1 − p)/n)"
        else:
            assert self.sd is not None  # noqa: S101 - either pair is given
            assert self.k is not None  # noqa: S101 - the same
            low, high = (float(end) / sqrt(self.k) for end in (self.sd.low, self.sd.high))
            said, formula = f"± {self.printed.text} of s {self.sd.text}, k {self.k:,}", "s/√k"
        between = (around(low)[0], around(high)[1])
        state = State.CONSISTENT if self.printed.admits(*between) else State.IMPOSSIBLE
        return self.found(state, said, f"{formula} = {spread(low, high)}", between=between)


def _ends(rate: Share) -> tuple[float, float]:
    return max(0.0, float(rate.low)), min(1.0, float(rate.high))


class Sample(Authored):
    """A mean with its standard deviation, of n values."""

    mean: Number
    sd: Number
    n: Runs


class TTestClaim(Claim):
    """Welch's t of `first` against `second`, from their printed means and deviations."""

    kind: Literal["t-test"]
    first: Sample
    second: Sample
    t: Number

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether some means and deviations that print so give the printed t."""
        first, second = self.first, self.second
        least, most = first.mean.low - second.mean.high, first.mean.high - second.mean.low
        errors = [
            sqrt(
                sum(
                    float(max(Fraction(0), end)) ** 2 / side.n
                    for side, end in zip((first, second), ends, strict=True)
                )
            )
            for ends in ((first.sd.low, second.sd.low), (first.sd.high, second.sd.high))
        ]
        sides = (f"{side.mean.text} ± {side.sd.text}" for side in (first, second))
        said = f"{' against '.join(sides)}: t {self.t.text}"
        if errors[0] == 0:
            return self.lacks(said, "the deviations may both be 0", "digits of sd")
        tried = [float(difference) / error for difference in (least, most) for error in errors]
        between = (around(min(tried))[0], around(max(tried))[1])
        state = State.CONSISTENT if self.t.admits(*between) else State.IMPOSSIBLE
        return self.found(state, said, f"t = {spread(min(tried), max(tried))}", between=between)
