"""Claims about what a definition can give: the consistency index of [26] §3.6, and tiers of a profile.

These are proofs about formulas, so that nothing but the parameters that are printed goes into them.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.recheck.claim import Claim, Name, Result, State, Text
from certkit.assessment.recheck.printed import Number, Share, Statement, around, compare, shown

if TYPE_CHECKING:
    from certkit.assessment.profile import Criterion, Profile
    from certkit.assessment.recheck.claim import Profiles
    from certkit.assessment.recheck.printed import Printed

_HUNDRED = 100


class LargestDeviationClaim(Claim):
    """The largest standard deviation of values from `low` to `high`: half their distance."""

    kind: Literal["largest-deviation"]
    low: Number
    high: Number
    printed: Number

    @model_validator(mode="after")
    def _fits(self) -> LargestDeviationClaim:
        if self.low.value >= self.high.value:
            raise ValueError("low is not below high")
        return self

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether the printed maximum is the one that half the values at each end attain."""
        largest = (self.high.value - self.low.value) / 2
        said = f"σ is at most {self.printed.text} on [{self.low.text}, {self.high.text}]"
        state = State.CONSISTENT if self.printed.admits(largest, largest) else State.IMPOSSIBLE
        words = f"half of the values at each end have σ = {shown(largest)}"
        return self.found(state, said, words, between=(largest, largest))


class CsiFactorClaim(Claim):
    """A threshold on CSI against its IRS factor, 1 − min(1, 2σ/c), where intentionality is 0 or 1.

    One recovery among m that differs from the rest has σ = 1/√m ([26] eq. 7), so the factor, and CSI with
    it, is at most 1 − 2/(c√m) unless all recoveries of the window are alike.
    """

    kind: Literal["csi-factor"]
    recoveries: Annotated[int, Field(ge=2, le=1_000_000, description="the most that a window holds")]
    c: Share
    threshold: Statement

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether a window with one recovery that differs can reach the threshold."""
        if self.c.value == 0:
            return self.lacks(f"CSI {self.threshold.text}", "c is 0, by which σ is divided", "c")
        best = max(0.0, 1 - 2 / (float(self.c.value) * sqrt(self.recoveries)))
        said = f"CSI {self.threshold.text} from a window with one recovery unlike the rest"
        words = f"its IRS factor is at most 1 - 2/({self.c.text}·√{self.recoveries}) = {shown(best)}"
        reached = around(best)[1] >= self.threshold.low
        state = State.CONSISTENT if reached else State.IMPOSSIBLE
        return self.found(state, said, words, between=(Fraction(0), Fraction(best)))


class CsiTrendClaim(Claim):
    """A trend ρ = clip(β / max(|β|, ε), 0, 1) over `window` outcomes ([26] eq. 8) that is to be graded."""

    kind: Literal["csi-trend"]
    window: Annotated[int, Field(ge=2, le=1_000_000)]
    epsilon: Number

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether any outcomes of the window give a ρ between 0 and 1.

        Σ(i - ī)F is a multiple of 1/2 for outcomes F of 0 and 1, of 1 where the window is odd, and
        Σ(i - ī)² = M(M² - 1)/12: no slope lies between 0 and the smallest of these.
        """
        m = self.window
        step = Fraction(1) if m % 2 else Fraction(1, 2)
        smallest = step / Fraction(m * (m * m - 1), 12)
        said = f"ρ graded between 0 and 1 over {m} runs, ε = {self.epsilon.text}"
        graded = smallest < self.epsilon.high
        words = f"a slope other than 0 is at least {shown(smallest)}"
        words += "; below ε, ρ is graded" if graded else ", above ε: ρ is 0 or 1, never between"
        return self.found(State.CONSISTENT if graded else State.IMPOSSIBLE, said, words)


class TierClaim(Claim):
    """A tier of a profile, and the metrics printed for it; `attained` false claims that it is missed."""

    kind: Literal["tier"]
    profile: Annotated[str, Field(min_length=1, max_length=200)] = "hb-eval-2026"
    tier: Annotated[int, Field(ge=1, le=9)]
    attained: bool = True
    metrics: Annotated[dict[Name, Number], Field(min_length=1, max_length=100)]
    complete: Text | None = Field(default=None, description="why rows that are not printed do not count")

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
            return self.found(State.IMPOSSIBLE, said, words)
        failing, open_rows = self._rows(profile)
        if failing:
            state = State.IMPOSSIBLE if self.attained else State.CONSISTENT
            return self.found(state, said, f"not met: {'; '.join(failing)}")
        if open_rows and self.complete is None:
            names = tuple(dict.fromkeys(open_rows))
            return self.lacks(said, "every printed row is met or could be", *names)
        state = State.CONSISTENT if self.attained else State.IMPOSSIBLE
        return self.found(state, said, "every row is met")

    def _rows(self, profile: Profile) -> tuple[list[str], list[str]]:
        """Return the rows that fail for sure, in words, and those that are not printed or not decided."""
        failing: list[str] = []
        undecided: list[str] = []
        for row in profile.criteria:
            for tier in range(1, self.tier + 1):
                met = self._met(row, tier)
                if met is None:
                    undecided.append(row.id)
                elif not met:
                    value, operator = self.metrics[row.metric].text, row.operator_at(tier)
                    threshold = row.threshold(tier) or Fraction(0)
                    failing.append(f"{row.id} {value}, Tier {tier} asks {operator} {shown(threshold)}")
                    break
        return failing, undecided

    def _met(self, row: Criterion, tier: int) -> bool | None:
        threshold, printed = row.threshold(tier), self.metrics.get(row.metric)
        if threshold is None:
            return True
        operator = row.operator_at(tier)
        if printed is None or operator == "is":
            return None
        low, high = _in_unit(printed, row.metric)
        ends = {compare(low, operator, threshold), compare(high, operator, threshold)}
        return ends.pop() if len(ends) == 1 else None


def _in_unit(printed: Printed, metric: str) -> tuple[Fraction, Fraction]:
    """Return the ends of a printed metric in the unit of its thresholds; pp count as such there."""
    points = CATALOGUE[metric].unit is Unit.PP and printed.text.endswith(("pp", "%"))
    factor = _HUNDRED if points else 1
    return printed.low * factor, printed.high * factor
