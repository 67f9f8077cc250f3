"""What every claim has, and what a check of it can find."""

from __future__ import annotations

from abc import abstractmethod
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct
from pydantic import Field

from certkit.base import Authored

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from certkit.assessment.profile import Profile

    Profiles = Callable[[str], Profile]

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Text = Annotated[str, Field(min_length=1, max_length=500)]


class State(StrEnum):
    """What the arithmetic says of a claim, worst first."""

    IMPOSSIBLE = "impossible"
    INCONSISTENT = "inconsistent"
    UNDECIDABLE = "undecidable"
    CONSISTENT = "consistent"


class Result(Struct, frozen=True, kw_only=True):
    """One checked claim: `arithmetic` is one line; `low` and `high` bound what the inputs give.

    Both are None where nothing is computed. `missing` names what an undecidable claim lacks.
    """

    id: str
    kind: str
    where: str
    printed: str
    state: State
    arithmetic: str
    low: Fraction | None = None
    high: Fraction | None = None
    missing: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the result in JSON values."""
        return {
            "id": self.id,
            "kind": self.kind,
            "where": self.where,
            "printed": self.printed,
            "state": str(self.state),
            "arithmetic": self.arithmetic,
            "computed": None
            if self.low is None or self.high is None
            else {"low": float(self.low), "high": float(self.high)},
            "missing": list(self.missing),
        }


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
        low, high = between or (None, None)
        return Result(
            id=self.id,
            kind=self.kind,
            where=self.where,
            printed=printed,
            state=state,
            arithmetic=arithmetic,
            low=low,
            high=high,
            missing=missing,
        )

    def lacks(self, printed: str, arithmetic: str, *missing: str) -> Result:
        """Return that the claim cannot be decided for want of `missing`."""
        return self.found(State.UNDECIDABLE, printed, arithmetic, missing=missing)
