"""One metric's result: value, unit, denominator, the counts it came from, interval, source and state.

Values are exact fractions until they are written, so that a value equal to a threshold is seen
to be equal; only `csi` and `posterior` are floating point numbers. A metric without evidence has state
`unmeasured`, no value and a reason, and is never 0.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.statistics.estimators import Interval, wilson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from certkit.summary.summary import Tally

Value = Fraction | float
"""An exact fraction, or a float where the metric has no exact form."""

HARNESS_LIMIT: Final = Fraction(1, 100)
"""Share of harness errors above which a field metric cannot be judged."""

SHOWN: Final = 8
"""Names listed in one message."""
MOST: Final = 12
"""Digits after which two numbers are not told apart."""
DIGITS: Final = {Unit.FRACTION: 1, Unit.PP: 1, Unit.POINTS: 2, Unit.PROBABILITY: 4}
"""Unit → decimals; 3 where none are named."""
_SUFFIX: Final = {Unit.FRACTION: " %", Unit.PP: " pp"}


class State(StrEnum):
    """How much of the evidence a metric needs was there."""

    MEASURED = "measured"
    PARTIAL = "partial"
    UNMEASURED = "unmeasured"


class Metric(Struct, frozen=True, kw_only=True):
    """The result of one metric.

    `n` is the denominator, None where an attestation does not state it. `interval` is Wilson's, `intervals`
    are further ones. `coverage` is the share of eligible runs that carry the fields. `blocked` says why the
    row cannot be judged whatever its coverage. `by_tier` holds the values of a metric that differs from tier
    to tier.
    """

    id: str
    state: State
    value: Value | None = None
    n: int | None = 0
    counts: Mapping[str, int] = {}
    interval: Interval | None = None
    intervals: tuple[Interval, ...] = ()
    reason: str | None = None
    coverage: Fraction = Fraction(1)
    blocked: str | None = None
    by_tier: Mapping[int, float] | None = None
    detail: Mapping[str, Any] = {}

    @property
    def unit(self) -> Unit:
        """The unit of the value."""
        return CATALOGUE[self.id].unit

    @property
    def source(self) -> str:
        """The equation or table that defines the metric."""
        return CATALOGUE[self.id].source

    def at(self, tier: int) -> Value | None:
        """Return the value that a criterion of `tier` compares."""
        return self.value if self.by_tier is None else self.by_tier.get(tier)


def number(value: Value | None, unit: Unit) -> float | bool | None:
    """Return a value as a JSON number, or as a boolean where the unit is one."""
    if value is None:
        return None
    return bool(value) if unit is Unit.BOOLEAN else float(value)


def names(listed: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    rest = len(listed) - SHOWN
    return ", ".join(listed[:SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")


def percent(share: float) -> str:
    """Return a confidence as people read it: ``95 %``, ``99.5 %``."""
    return f"{100 * share:.5g} %"


def shown(value: Value | None, unit: Unit, *, beside: Value | None = None) -> str:
    """Return a value as people read it, with its unit: ``67.8 %``, ``21.6 pp``, ``0.912``, ``yes``.

    `beside` is a threshold from which the value must be told apart where they differ: 79.96 % would read as
    if it were the 80 % that it misses, and gets the digits that it takes to see the difference.
    """
    if value is None:
        return "not measured"
    if unit is Unit.BOOLEAN:
        return "yes" if value else "no"
    digits = DIGITS.get(unit, 3)
    while beside is not None and beside != value and digits < MOST:
        if _number(value, unit, digits) != _number(beside, unit, digits):
            break
        digits += 1
    return _number(value, unit, digits)


def _number(value: Value, unit: Unit, digits: int) -> str:
    if unit is Unit.PROBABILITY:
        # A probability is neither 0 nor 1, whatever its last digit says.
        least = 10.0**-digits
        if value > 1 - least:
            return f"> {1 - least:.{digits}f}"
        return f"< {least:.{digits}f}" if value < least else f"{float(value):.{digits}f}"
    return rounded(value, digits, scale=100 if unit is Unit.FRACTION else 1) + _SUFFIX.get(unit, "")


def rounded(value: Value, digits: int, *, scale: int = 1) -> str:
    """Return `scale` times a number with so many decimals: a half in its decimal form goes to the even digit.

    So 726 of 800 is 0.908 and 90.8 %, whatever a double makes of 0.9075.
    """
    return f"{scale * Decimal(repr(float(value))):.{digits}f}"


def asked(operator: str, threshold: Value, unit: Unit) -> str:
    """Return a threshold as people read it: ``> 80 %``, ``>= 0.7``, ``< 30 pp``."""
    if unit is Unit.BOOLEAN:
        return "yes"
    if unit is Unit.FRACTION:
        return f"{operator} {float(100 * threshold):.10g} %"
    return f"{operator} {float(threshold):.10g}" + (" pp" if unit is Unit.PP else "")


def unmeasured(name: str, reason: str, *, n: int = 0, counts: Mapping[str, int] | None = None) -> Metric:
    """Return the result of a metric without evidence."""
    return Metric(id=name, state=State.UNMEASURED, n=n, reason=reason, counts=counts or {})


def proportion(
    name: str,
    successes: int,
    n: int,
    *,
    empty: str,
    counts: Mapping[str, int] | None = None,
    detail: Mapping[str, Any] | None = None,
) -> Metric:
    """Return `successes` of `n` with Wilson's interval; unmeasured with reason `empty` where n is 0."""
    if n == 0:
        return unmeasured(name, empty, counts=counts)
    return Metric(
        id=name,
        state=State.MEASURED,
        value=Fraction(successes, n),
        n=n,
        counts={"successes": successes, **(counts or {})},
        interval=wilson(successes, n),
        detail=detail or {},
    )


def rate(name: str, tally: Tally, *, empty: str) -> Metric:
    """Return the success rate of a group of runs; the rate without harness errors is shown beside it."""
    eligible = tally.runs - tally.harness_error
    return proportion(
        name,
        tally.success,
        tally.runs,
        empty=empty,
        counts={"harness_errors": tally.harness_error},
        detail={
            "without_harness_errors": {
                "successes": tally.success,
                "n": eligible,
                "value": Fraction(tally.success, eligible) if eligible else None,
            }
        },
    )


def mean(
    name: str,
    total: Fraction,
    n: int,
    *,
    missing: int,
    scope: Tally,
    field: str,
    counts: Mapping[str, int] | None = None,
    detail: Mapping[str, Any] | None = None,
) -> Metric:
    """Return the mean of a field metric: `total` over `n` runs that carry `field`, of n + `missing`.

    Too many harness errors in `scope` block the row.
    """
    shown = {"missing": missing, "harness_errors": scope.harness_error, **(counts or {})}
    if n == 0:
        return unmeasured(name, nothing(scope, missing, field), counts=shown)
    return Metric(
        id=name,
        state=State.PARTIAL if missing else State.MEASURED,
        value=total / n,
        n=n,
        counts=shown,
        coverage=Fraction(n, n + missing),
        reason=f"{missing:,} of {n + missing:,} eligible runs carry no {field}" if missing else None,
        blocked=too_many_harness_errors(scope),
        detail=detail or {},
    )


def nothing(scope: Tally, missing: int, field: str) -> str:
    """Return why a field metric has no run to rest on."""
    if scope.runs == 0:
        return "no run of the kind that it is measured on"
    if missing == 0:
        return "every run of the kind that it is measured on is a harness error or is left out"
    return f"the runs carry no {field}"


def too_many_harness_errors(scope: Tally) -> str | None:
    """Return why a field metric over `scope` is blocked, or None where harness errors are few enough."""
    if scope.runs == 0 or Fraction(scope.harness_error, scope.runs) <= HARNESS_LIMIT:
        return None
    return f"{scope.harness_error:,} of {scope.runs:,} runs are harness errors, above 1 %"
