"""What every claim has, and what a check of it can find."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from certkit.assessment.recheck.document import Computed, Result, State
from certkit.base import Authored

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from certkit.assessment.profile import Profile

    Profiles = Callable[[str], Profile]

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Text = Annotated[str, Field(min_length=1, max_length=500)]


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
