"""What every claim has, and what a check of it can find."""

from __future__ import annotations

from abc import abstractmethod
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta
from pydantic import Field

from certkit.ground.base import Authored
from certkit.ground.document import Part, fill

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.assessment.profile import Profile

    Profiles = Callable[[str], Profile]

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Text = Annotated[str, Field(min_length=1, max_length=500)]
Runs = Annotated[int, Field(ge=1, le=1_000_000)]


class State(StrEnum):
    """What the arithmetic says of a claim, worst first."""

    IMPOSSIBLE = "impossible"
    INCONSISTENT = "inconsistent"
    UNDECIDABLE = "undecidable"
    CONSISTENT = "consistent"


class Range(Part, frozen=True, kw_only=True):
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
    computed: Annotated[Range | None, Meta(description="null where nothing is computed")] = None
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

    def result(self, state: State, printed: str, arithmetic: str, **more: Any) -> Result:
        """Return a result of this claim."""
        return fill(Result, self, printed=printed, state=state, arithmetic=arithmetic, **more)

    def otherwise(self) -> str:
        """Return which other reading of the claim gives what is printed; empty where none does."""
        return ""

    def judged(self, printed: str, arithmetic: str, low: Fraction, high: Fraction, *, fits: bool) -> Result:
        """Return whether what is printed fits what the inputs give, from `low` to `high`."""
        reading = "" if fits else self.otherwise()
        state = State.CONSISTENT if fits else State.INCONSISTENT if reading else State.IMPOSSIBLE
        return self.result(state, printed, arithmetic + reading, computed=Range(low=low, high=high))

    def lacks(self, printed: str, arithmetic: str, *missing: str) -> Result:
        """Return that the claim cannot be decided for want of `missing`."""
        return self.result(State.UNDECIDABLE, printed, arithmetic, missing=missing)
