"""One metric's result: value, unit, denominator, the counts it came from, interval, source and state.

Values are exact fractions until they are written, so that a value equal to a threshold is seen to be equal;
only `csi` and `posterior` are floating point numbers. A metric without evidence has state `unmeasured`, no
value and a reason, and is never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from certkit.assessment.catalogue import CATALOGUE, Unit
from certkit.ground.document import Part, State

if TYPE_CHECKING:
    from certkit.summary.summary import Tally

Value = Fraction | float
"""An exact fraction, or a float where the metric has no exact form."""

HARNESS_LIMIT: Final = Fraction(1, 100)
"""Share of harness errors above which a field metric cannot be judged."""
LEVEL: Final = 0.95
Z: Final = 1.959963984540054
"""Standard normal quantile at (1 + LEVEL) / 2."""
INEXACT: Final = frozenset({"csi", "posterior"})
"""Metrics without an exact value."""


class Reason(Part, frozen=True):
    """Why something is not as it could be: a code of ``templates/reasons.toml`` and its numbers."""

    code: str
    counts: Mapping[str, int | float | str] = {}


class Interval(Part, frozen=True, kw_only=True):
    """A confidence interval, with its level and method."""

    low: float
    high: float
    level: float = LEVEL
    method: str


class Metric(Struct, frozen=True, kw_only=True):
    """The result of one metric.

    Attributes:
        id: its name in the catalogue.
        state: how much of the evidence was there.
        value: None where nothing was measured, or where it differs by tier.
        n: the denominator, None where an attestation does not state it.
        counts: what the value came from.
        interval_by_runs: Wilson's, which takes runs as independent; `Evidence.interval` respects tasks.
        reason: why the metric is not measured, or only in part.
        coverage: the share of eligible runs that carry the fields.
        blocked: why the row cannot be judged whatever its coverage.
        by_tier: the values of a metric that differs from tier to tier.
        detail: further figures, by name.
    """

    id: str
    state: State
    value: Value | None = None
    n: int | None = 0
    counts: Mapping[str, int] = {}
    interval_by_runs: Interval | None = None
    reason: Reason | None = None
    coverage: Fraction = Fraction(1)
    blocked: Reason | None = None
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


def written(value: Value | None, metric: str) -> float | bool | None:
    """Return a value as a document holds it: six decimals where it is exact, nine where it is not."""
    if value is None:
        return None
    if CATALOGUE[metric].unit is Unit.BOOLEAN:
        return bool(value)
    digits = 9 if metric in INEXACT else 6
    return float(round(value, digits)) if isinstance(value, Fraction) else round(value, digits)


def wilson(successes: int, n: int) -> Interval:
    """Return Wilson's score interval for `successes` of `n` runs, n ≥ 1, at level `LEVEL`."""
    rate = successes / n
    shrink = 1 + Z * Z / n
    centre = (rate + Z * Z / (2 * n)) / shrink
    half = Z / shrink * sqrt(rate * (1 - rate) / n + Z * Z / (4 * n * n))
    # At the ends the closed form is 0 or 1 exactly; rounding must not take it beyond.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(low=low, high=high, method="wilson")


def unmeasured(
    name: str, reason: str, *, n: int = 0, counts: Mapping[str, int] | None = None, **numbers: int | str
) -> Metric:
    """Return the result of a metric without evidence; `numbers` belong to the sentence of `reason`."""
    return Metric(id=name, state=State.UNMEASURED, n=n, reason=Reason(reason, numbers), counts=counts or {})


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
        interval_by_runs=wilson(successes, n),
        detail=detail or {},
    )


def rate(name: str, tally: Tally, *, empty: str) -> Metric:
    """Return the success rate of a group of runs, with the rate without harness errors beside it."""
    successes, eligible = tally["success"], tally["runs"] - tally["harness_error"]
    without = {
        "successes": successes,
        "n": eligible,
        "value": Fraction(successes, eligible) if eligible else None,
    }
    return proportion(
        name,
        successes,
        tally["runs"],
        empty=empty,
        counts={"harness_errors": tally["harness_error"]},
        detail={"without_harness_errors": without},
    )


def mean(
    name: str,
    total: Fraction,
    scope: Tally,
    term: str,
    *,
    field: str,
    counts: Mapping[str, int] | None = None,
    detail: Mapping[str, Any] | None = None,
) -> Metric:
    """Return the mean of a field metric.

    Args:
        name: the metric.
        total: the sum over the runs that carry the field.
        scope: the runs of the kind that it is measured on; too many harness errors among them block the row.
        term: begins the names of two counts: runs that carry the field (`_n`), eligible ones that do not
            (`_missing`).
        field: what the runs carry, for people.
        counts: further counts.
        detail: further figures.
    """
    n, missing = scope[f"{term}_n"], scope[f"{term}_missing"]
    counted = {"missing": missing, "harness_errors": scope["harness_error"], **(counts or {})}
    if n == 0:
        return unmeasured(name, _nothing(scope, missing), counts=counted, field=field)
    return Metric(
        id=name,
        state=State.PARTIAL if missing else State.MEASURED,
        value=total / n,
        n=n,
        counts=counted,
        coverage=Fraction(n, n + missing),
        reason=Reason("partial", {"missing": missing, "eligible": n + missing, "field": field})
        if missing
        else None,
        blocked=too_many_harness_errors(scope),
        detail=detail or {},
    )


def _nothing(scope: Tally, missing: int) -> str:
    if not scope["runs"]:
        return "no-such-run"
    return "no-field" if missing else "only-harness-errors"


def too_many_harness_errors(scope: Tally) -> Reason | None:
    """Return why a field metric over `scope` is blocked, or None where harness errors are few enough."""
    runs, broken = scope["runs"], scope["harness_error"]
    if runs == 0 or Fraction(broken, runs) <= HARNESS_LIMIT:
        return None
    return Reason("harness-errors", {"broken": broken, "runs": runs})


def withheld(metric: Metric, accepted: Fraction) -> Metric:
    """Return a metric without its value where fewer runs carry it than `accepted`.

    The mean of some eligible runs would be read as that of all.
    """
    if metric.coverage >= accepted:
        return metric
    return structs.replace(metric, value=None, interval_by_runs=None)
