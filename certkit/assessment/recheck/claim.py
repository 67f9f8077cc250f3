"""What every claim has, what a check of it can find, and the counts behind a printed rate.

Counts that are not printed are searched: "impossible" is a proof only if none is left out, so the search is
over every s with s/n inside the rounding of the printed rate, for every n that the claim allows.
"""

from __future__ import annotations

from abc import abstractmethod
from enum import StrEnum
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta
from pydantic import Field, model_validator

from certkit.assessment.recheck.printed import Share  # noqa: TC001 - pydantic reads it at run time
from certkit.base import Authored
from certkit.document import Part

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.assessment.profile import Profile
    from certkit.assessment.recheck.printed import Printed

    Profiles = Callable[[str], Profile]

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Text = Annotated[str, Field(min_length=1, max_length=500)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Runs = Annotated[int, Field(ge=1, le=1_000_000)]
AnyRuns = Runs | Annotated[tuple[Runs, ...], Field(min_length=1, max_length=16)]
"""The number of runs, or the few that it may have been."""


class State(StrEnum):
    """What the arithmetic says of a claim, worst first."""

    IMPOSSIBLE = "impossible"
    INCONSISTENT = "inconsistent"
    UNDECIDABLE = "undecidable"
    CONSISTENT = "consistent"


class Computed(Part, frozen=True, kw_only=True):
    """The bounds of what the inputs give."""

    low: Fraction
    high: Fraction


class Result(Part, frozen=True, kw_only=True):
    """One checked claim: `arithmetic` is one line; `missing` names what an undecidable claim lacks."""

    id: str
    kind: str
    where: str
    printed: str
    state: State
    arithmetic: str
    computed: Annotated[Computed | None, Meta(description="null where nothing is computed")] = None
    missing: tuple[str, ...] = ()


class Claim(Authored):
    """One claim of a publication: a name, where it stands, and what it says."""

    id: Name
    kind: str
    where: Text
    note: Text | None = None

    @abstractmethod
    def check(self, profiles: Profiles) -> Result:
        """Return what the arithmetic says; `profiles` finds a tier table by its name."""

    def found(
        self,
        state: State,
        printed: str,
        arithmetic: str,
        *,
        between: tuple[Fraction, Fraction] | None = None,
        missing: tuple[str, ...] = (),
    ) -> Result:
        """Return a result of this claim; `between` bounds what the inputs give."""
        return Result(
            id=self.id,
            kind=self.kind,
            where=self.where,
            printed=printed,
            state=state,
            arithmetic=arithmetic,
            computed=between and Computed(low=between[0], high=between[1]),
            missing=missing,
        )

    def lacks(self, printed: str, arithmetic: str, *missing: str) -> Result:
        """Return that the claim cannot be decided for want of `missing`."""
        return self.found(State.UNDECIDABLE, printed, arithmetic, missing=missing)


def numbers(n: AnyRuns | None) -> tuple[int, ...]:
    """Return the numbers of runs that a claim allows; none where it prints none."""
    if n is None:
        return ()
    return n if isinstance(n, tuple) else (n,)


def successes_of(rate: Printed, n: int) -> range:
    """Return every s of n runs whose rate prints as `rate`; empty where there is none."""
    return range(max(0, ceil(rate.low * n)), min(n, floor(rate.high * n)) + 1)


def described(pairs: list[tuple[range, int]]) -> str:
    """Return the counts in words: ``s of n``, or from where to where."""
    least, most = min(counts[0] for counts, _ in pairs), max(counts[-1] for counts, _ in pairs)
    fewest, largest = min(n for _, n in pairs), max(n for _, n in pairs)
    many = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return f"{many} of {fewest:,}" + (f" to {largest:,}" if largest > fewest else "")


class Arm(Authored):
    """A proportion: a count or a printed rate, of n runs or of one of several n."""

    successes: Count | None = None
    rate: Share | None = None
    n: AnyRuns | None = None

    @model_validator(mode="after")
    def _fits(self) -> Arm:
        if self.successes is not None and self.n is not None and self.successes > min(numbers(self.n)):
            raise ValueError("more successes than runs")
        if (self.successes is None) == (self.rate is None):
            raise ValueError("give successes or rate, and not both")
        if self.successes is not None and self.n is None:
            raise ValueError("successes need their n")
        return self

    @property
    def text(self) -> str:
        """The proportion as printed."""
        return self.rate.text if self.rate is not None else f"{self.successes:,} of {numbers(self.n)[0]:,}"

    def pairs(self) -> list[tuple[range, int]]:
        """Return, for every n allowed, the range of counts that it allows; nothing for an n with none."""
        if self.rate is None:
            counts = range(self.successes or 0, (self.successes or 0) + 1)
            return [(counts, n) for n in numbers(self.n)]
        ranges = [(successes_of(self.rate, n), n) for n in numbers(self.n)]
        return [(counts, n) for counts, n in ranges if counts]
