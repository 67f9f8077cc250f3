"""Claims about a proportion: whether a count gives its rate, its posterior, its interval.

Counts that are not printed are searched: a claim is impossible only where no count that prints as the rate,
for any n that the claim allows, gives what is printed.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from itertools import islice
from math import ceil, floor, sqrt
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from certkit.assessment.recheck.claim import Claim, Result, Runs, State
from certkit.assessment.recheck.printed import Number, Printed, Share, Statement, around, shown, spread
from certkit.assessment.statistics.estimators import Z, posterior, wilson

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from certkit.assessment.recheck.claim import Profiles

    Readings = Mapping[str, Sequence[tuple[Printed | None, float]]]

MOST_CASES: Final = 50_000
"""Counts that one claim may make the search try."""


def _listed(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


Count = Annotated[int, Field(ge=0, le=1_000_000)]
AnyRuns = Annotated[
    tuple[Runs, ...],
    Field(min_length=1, max_length=16),
    BeforeValidator(_listed, json_schema_input_type=Runs | tuple[Runs, ...]),
]
"""The number of runs, or the few that it may have been."""


def _successes_of(rate: Printed, n: int) -> range:
    """Return every s of n runs whose rate prints as `rate`; empty where there is none."""
    return range(max(0, ceil(rate.low * n)), min(n, floor(rate.high * n)) + 1)


class CountClaim(Claim):
    """A rate of n, or of n·`repeats`: some whole number of them prints so; with `count`, that number does.

    That a rate of n whole things is a whole number of n is GRIM (Brown & Heathers 2017).
    """

    kind: Literal["count", "repeats"]
    rate: Share
    n: Runs
    repeats: Runs = 1
    count: Count | None = None

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether a whole number of the denominator gives the printed rate."""
        n, count = self.n * self.repeats, self.count
        possible = _successes_of(self.rate, n)
        said = self.rate.text + ("" if count is None else f" as {count:,}") + f" of {n:,}"
        if not possible:
            nearest = round(self.rate.value * n)
            words = f"no whole number gives it: {nearest:,} of {n:,} is {shown(Fraction(nearest, n))}"
            return self.result(State.IMPOSSIBLE, said, words)
        low, high = Fraction(possible[0]), Fraction(possible[-1])
        words = f"it is {spread(low, high)} of {n:,}"
        fits = count is None or count in possible
        if count is not None and not fits:
            words += f"; {count:,} of {n:,} is {shown(Fraction(count, n))}"
        return self.judged(said, words, low / n, high / n, fits=fits)


class Searched(Claim):
    """What is printed of a proportion: a count, or a rate, of n runs or of one of several n."""

    successes: Count | None = None
    rate: Share | None = None
    n: AnyRuns = ()

    @model_validator(mode="after")
    def _of_runs(self) -> Searched:
        if (self.successes is None) == (self.rate is None):
            raise ValueError("give successes or rate, and not both")
        if self.successes is not None and self.successes > min(self.n, default=-1):
            raise ValueError("successes need an n, which is at least as many")
        return self

    @abstractmethod
    def said(self) -> str:
        """Return the statement about the proportion."""

    @abstractmethod
    def readings(self, s: int, n: int) -> Readings:
        """Return what s of n give, for every reading by name: pairs of a printed number and the computed."""

    def cases(self) -> Iterator[tuple[int, int]]:
        """Yield every count of successes that is printed so, with its number of runs."""
        for n in self.n:
            counts = [self.successes or 0] if self.rate is None else _successes_of(self.rate, n)
            yield from ((s, n) for s in counts)

    def without_n(self, said: str) -> Result:
        """Return what can be said where no number of runs is printed."""
        return self.lacks(said, "it depends on the number of runs", "n")

    def fits(self) -> bool:
        """Tell whether some case gives all that is printed, under one reading."""
        return any(
            all(printed is None or printed.admits(*around(value, value)) for printed, value in reading)
            for case in self.cases()
            for reading in self.readings(*case).values()
        )

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether some count that the rate allows gives what is printed."""
        whole = f"{self.successes or 0:,} of {self.n[0]:,}" if self.n else ""
        said = f"{self.said()}, {self.rate.text if self.rate else whole}"
        if not self.n:
            return self.without_n(said)
        cases = list(islice(self.cases(), MOST_CASES + 1))
        if len(cases) > MOST_CASES:
            return self.lacks(said, f"more than {MOST_CASES:,} counts agree with the rate", "digits of rate")
        if not cases:
            words = "no whole number of successes gives the printed rate at the stated n"
            return self.result(State.IMPOSSIBLE, said, words)
        tried = [self.readings(*case) for case in cases]
        values = {name: [readings[name][0][1] for readings in tried] for name in tried[0]}
        of_runs = " of ".join(
            spread(Fraction(min(sides)), Fraction(max(sides))) for sides in zip(*cases, strict=True)
        )
        words = "; ".join(f"{name} = {spread(min(items), max(items))}" for name, items in values.items())
        words += f" at {of_runs}"
        every = [Fraction(value) for items in values.values() for value in items]
        return self.judged(said, words, min(every), max(every), fits=self.fits())


class PosteriorClaim(Searched):
    """P(θ > τ) for θ ~ Beta(1 + s, 1 + n - s), [26] §3.1; `tau` may list the thresholds that it may mean."""

    kind: Literal["posterior"]
    tau: Annotated[
        tuple[Share, ...],
        Field(min_length=1, max_length=8),
        BeforeValidator(_listed, json_schema_input_type=Share | tuple[Share, ...]),
    ]
    printed: Statement

    def said(self) -> str:
        """Return the posterior as printed."""
        return f"P(θ > {' or '.join(tau.text for tau in self.tau)}) = {self.printed.text}"

    def readings(self, s: int, n: int) -> Readings:
        """Return the posterior at every threshold."""
        return {
            f"P(θ > {shown(tau.value)})": [(self.printed, posterior(s, n, tau.value))] for tau in self.tau
        }

    def without_n(self, said: str) -> Result:
        """Use what holds for every n: with s/n ≤ τ and τ ≥ 1/2, mean and mode, and the median, are ≤ τ."""
        rate, half = self.rate, Fraction(1, 2)
        if rate is not None and all(rate.high <= tau.value and tau.value >= half for tau in self.tau):
            words = "the rate is not above τ ≥ 1/2, so that P(θ > τ) ≤ 1/2 whatever n is"
            if not self.printed.admits(Fraction(0), half):
                return self.judged(said, words, Fraction(0), half, fits=False)
        return super().without_n(said)


class IntervalClaim(Searched):
    """A 95 % interval of a proportion, Wilson's unless told, as ± `half` or as `low` and `high`.

    A claim of Wilson's that only Wald's fits is inconsistent.
    """

    kind: Literal["interval"]
    method: Literal["wilson", "wald"] = "wilson"
    half: Number | None = None
    low: Share | None = None
    high: Share | None = None

    @model_validator(mode="after")
    def _says_something(self) -> IntervalClaim:
        if self.half is None and self.low is None and self.high is None:
            raise ValueError("give half, or low and high")
        return self

    def said(self) -> str:
        """Return the interval as printed."""
        ends = " to ".join(end.text for end in (self.low, self.high) if end is not None)
        return " ".join(text for text in (self.half and f"±{self.half.text.lstrip('±')}", ends) if text)

    def readings(self, s: int, n: int) -> Readings:
        """Return half-width and ends by the method."""
        if self.method == "wilson":
            interval = wilson(s, n)
            low, high = interval.low, interval.high
        else:
            half = Z * sqrt(s / n * (1 - s / n) / n)
            low, high = s / n - half, s / n + half
        name = f"{self.method.capitalize()}'s half-width"
        return {name: [(self.half, (high - low) / 2), (self.low, low), (self.high, high)]}

    def otherwise(self) -> str:
        """Return whether the interval is Wald's."""
        is_wald = self.method == "wilson" and self.model_copy(update={"method": "wald"}).fits()
        return "; what is printed is Wald's interval" if is_wald else ""
