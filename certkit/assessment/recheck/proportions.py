"""Claims about proportions: a posterior, an interval, a test of two; and integrity levels from a rate.

Counts that are not printed are searched (`claim`): a claim is impossible only when no count that agrees
with the printed digits gives what is printed.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from functools import partial
from itertools import product
from math import erfc, inf, sqrt
from typing import TYPE_CHECKING, Annotated, Final, Literal, get_args

from pydantic import Field, model_validator

from certkit.assessment.recheck.claim import Arm, Claim, Result, State, described, numbers
from certkit.assessment.recheck.printed import Number, Share, Statement, around, shown, spread
from certkit.assessment.statistics.estimators import Z, clopper_pearson, jeffreys, posterior, wilson

if TYPE_CHECKING:
    from certkit.assessment.recheck.claim import Profiles
    from certkit.assessment.recheck.printed import Printed

MOST_CASES: Final = 200_000
"""Counts that one claim may make the search try."""

HALF: Final = Fraction(1, 2)
Method = Literal["wilson", "wald", "clopper-pearson", "jeffreys"]
_NAMES: Final = {"clopper-pearson": "Clopper and Pearson"}
_NO_COUNT: Final = "no whole number of successes gives the printed rate at the stated n"


def _size(pairs: list[tuple[range, int]]) -> int:
    return sum(len(counts) for counts, _ in pairs)


def _highest(s: int, *, n: int, tau: Fraction) -> Fraction:
    return around(posterior(s, n, tau))[1]


class PosteriorClaim(Claim, Arm):
    """P(θ > τ) for θ ~ Beta(1 + s, 1 + n - s), [26] §3.1; `tau` may list the thresholds that it may mean."""

    kind: Literal["posterior"]
    tau: Share | Annotated[tuple[Share, ...], Field(min_length=1, max_length=8)]
    printed: Statement

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether some count allowed gives the printed probability at some τ."""
        taus = self.tau if isinstance(self.tau, tuple) else (self.tau,)
        said = f"P(θ > {' or '.join(tau.text for tau in taus)}) = {self.printed.text}, {self.text}"
        if self.n is None:
            return self._without_n(said, taus)
        pairs = self.pairs()
        if not pairs:
            return self.found(State.IMPOSSIBLE, said, _NO_COUNT)
        words, ends, fits = [], [], False
        for tau in taus:
            low, high, hit = self._at(tau.value, pairs)
            words.append(f"P(θ > {shown(tau.value)}) = {spread(low, high)}")
            ends += [low, high]
            fits = fits or hit
        state = State.CONSISTENT if fits else State.IMPOSSIBLE
        arithmetic = f"{'; '.join(words)} at {described(pairs)}"
        between = (Fraction(min(ends)), Fraction(max(ends)))
        return self.found(state, said, arithmetic, between=between)

    def _at(self, tau: Fraction, pairs: list[tuple[range, int]]) -> tuple[float, float, bool]:
        """Return the least and the greatest posterior, and whether some count gives the printed one.

        It grows with s, so that bisection finds the only counts that can.
        """
        low, high, hit = inf, -inf, False
        for counts, n in pairs:
            low = min(low, posterior(counts[0], n, tau))
            high = max(high, posterior(counts[-1], n, tau))
            if self.printed.operator:
                ends = (posterior(s, n, tau) for s in (counts[0], counts[-1]))
                hit = hit or any(self.printed.admits(*around(value)) for value in ends)
                continue
            at = bisect_left(counts, self.printed.low, key=partial(_highest, n=n, tau=tau))
            hit = hit or (at < len(counts) and self.printed.admits(*around(posterior(counts[at], n, tau))))
        return low, high, hit

    def _without_n(self, said: str, taus: tuple[Printed, ...]) -> Result:
        """Use what holds for every n: with s/n ≤ τ and τ ≥ 1/2, mean and mode, and the median, are ≤ τ."""
        rate = self.rate
        if rate is not None and all(rate.high <= tau.value and tau.value >= HALF for tau in taus):
            words = "the rate is not above τ ≥ 1/2, so that P(θ > τ) ≤ 1/2 whatever n is"
            if not self.printed.admits(Fraction(0), HALF):
                return self.found(State.IMPOSSIBLE, said, words, between=(Fraction(0), HALF))
        return self.lacks(said, "the posterior depends on the number of runs", "n")


class IntervalClaim(Claim, Arm):
    """A 95 % interval of a proportion, Wilson's unless told, as ± `half` or as `low` and `high`.

    A claim of Wilson's that only another method fits (Wald's, Clopper and Pearson's, Jeffreys') is
    inconsistent, and the other is named.
    """

    kind: Literal["interval"]
    method: Method = "wilson"
    half: Number | None = None
    low: Share | None = None
    high: Share | None = None

    @model_validator(mode="after")
    def _says_something(self) -> IntervalClaim:
        if self.half is None and self.low is None and self.high is None:
            raise ValueError("give half, or low and high")
        return self

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether some count allowed has the printed interval."""
        ends = " to ".join(end.text for end in (self.low, self.high) if end is not None)
        width = f"±{self.half.text.lstrip('±')}" if self.half is not None else ""
        said = " ".join(part for part in (self.text, width, ends) if part)
        if self.n is None:
            return self.lacks(said, "the interval depends on the number of runs", "n")
        pairs = self.pairs()
        if not pairs:
            return self.found(State.IMPOSSIBLE, said, _NO_COUNT)
        if _size(pairs) > MOST_CASES:
            return self.lacks(said, f"more than {MOST_CASES:,} counts agree with the rate", "digits of rate")
        least, most, hit = self._search(pairs, self.method)
        name = _NAMES.get(self.method, self.method.capitalize())
        arithmetic = f"{name}'s half-width is {spread(least, most)} at {described(pairs)}"
        between = (Fraction(least), Fraction(most))
        if hit:
            return self.found(State.CONSISTENT, said, arithmetic, between=between)
        if self.method == "wilson":
            for method in get_args(Method)[1:]:
                if self._search(pairs, method)[2]:
                    arithmetic += f"; what is printed is {_NAMES.get(method, method.capitalize())}'s interval"
                    return self.found(State.INCONSISTENT, said, arithmetic, between=between)
        return self.found(State.IMPOSSIBLE, said, arithmetic, between=between)

    def _search(self, pairs: list[tuple[range, int]], method: Method) -> tuple[float, float, bool]:
        """Return the least and the greatest half-width, and whether some count has what is printed."""
        wanted = (self.half, self.low, self.high)
        least, most, hit = inf, -inf, False
        for counts, n in pairs:
            for s in counts:
                low, high = _ends(s, n, method)
                half = (high - low) / 2
                least, most = min(least, half), max(most, half)
                values = zip(wanted, (half, low, high), strict=True)
                hit = hit or all(item is None or item.admits(*around(value)) for item, value in values)
        return least, most, hit


def _ends(s: int, n: int, method: Method) -> tuple[float, float]:
    if method != "wald":
        interval = {"wilson": wilson, "clopper-pearson": clopper_pearson, "jeffreys": jeffreys}[method](s, n)
        return interval.low, interval.high
    rate = s / n
    half = Z * sqrt(rate * (1 - rate) / n)
    return rate - half, rate + half


class Proportion(Arm):
    """One arm of a test."""

    def successes_at(self, n: int) -> float:
        """Return the successes in n runs if the printed rate were exact, whole or not."""
        return float(self.rate.value * n) if self.rate is not None else float(self.successes or 0)


class ZTestClaim(Claim):
    """The pooled two-proportion z-test of `first` against `second`; `p` is two-sided."""

    kind: Literal["z-test"]
    first: Proportion
    second: Proportion
    z: Number | None = None
    p: Statement | None = None

    @model_validator(mode="after")
    def _says_something(self) -> ZTestClaim:
        if self.z is None and self.p is None:
            raise ValueError("give z, p or both")
        return self

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether some pair of counts gives the printed z and p."""
        parts = [f"{name} {item.text}" for name, item in (("z", self.z), ("p", self.p)) if item]
        said = f"{self.first.text} against {self.second.text}: {', '.join(parts)}"
        arms = (("first.n", self.first), ("second.n", self.second))
        if missing := tuple(name for name, arm in arms if arm.n is None):
            return self.lacks(said, "the test depends on both numbers of runs", *missing)
        first, second = self.first.pairs(), self.second.pairs()
        if not first or not second:
            return self.found(State.IMPOSSIBLE, said, _NO_COUNT)
        if _size(first) * _size(second) > MOST_CASES:
            return self.lacks(said, f"more than {MOST_CASES:,} pairs agree with the rates", "digits of rate")
        tried = [_z(s, n, t, m) for (ss, n), (ts, m) in product(first, second) for s, t in product(ss, ts)]
        hit = any(self._agrees(z) for z in tried)
        low, high = min(tried), max(tried)
        p = spread(*sorted(erfc(abs(z) / sqrt(2)) for z in (low, high)))
        arithmetic = f"z = {spread(low, high)}, p = {p} at {described(first)} and {described(second)}"
        state = State.CONSISTENT if hit else State.IMPOSSIBLE
        if not hit and self._from_rounded():
            state = State.INCONSISTENT
            arithmetic += "; it is computed from the rounded rates, no counts give it"
        return self.found(state, said, arithmetic, between=(Fraction(low), Fraction(high)))

    def _from_rounded(self) -> bool:
        """Tell whether the rates, taken as if they were exact, give what is printed."""
        arms = (self.first, self.second)
        cases = product(*(numbers(arm.n) for arm in arms))
        return any(
            self._agrees(_z(self.first.successes_at(n), n, self.second.successes_at(m), m)) for n, m in cases
        )

    def _agrees(self, z: float) -> bool:
        fits = self.z is None or self.z.admits(*around(z))
        return fits and (self.p is None or self.p.admits(*around(erfc(abs(z) / sqrt(2)))))


def _z(s: float, n: int, t: float, m: int) -> float:
    """Return the pooled z; 0 where both proportions are 0 or both are 1, which do not differ."""
    pooled = (s + t) / (n + m)
    variance = pooled * (1 - pooled) * (1 / n + 1 / m)
    return (s / n - t / m) / sqrt(variance) if variance else 0.0


class SilClaim(Claim):
    """A rate of success under demand against the IEC 61508 low-demand band that a SIL needs."""

    kind: Literal["sil"]
    success_above: Share
    sil: Annotated[int, Field(ge=1, le=4, description="the highest level that is claimed")]

    def check(self, profiles: Profiles) -> Result:  # noqa: ARG002 - the same door for all claims
        """Return whether the bound on failure lies inside the band of the claimed level."""
        failure = 1 - self.success_above.value
        best = max((level for level in (1, 2, 3, 4) if failure * 10**level <= 1), default=0)
        said = f"success above {self.success_above.text} for SIL {self.sil}"
        band = f"at best SIL {best}" if best else "above the SIL 1 band, which ends at 0.1"
        needed = shown(Fraction(1, 10**self.sil))
        arithmetic = f"failure per demand is only bounded by {shown(failure)}: {band}; needed ≤ {needed}"
        state = State.CONSISTENT if best >= self.sil else State.INCONSISTENT
        return self.found(state, said, arithmetic, between=(Fraction(0), failure))
