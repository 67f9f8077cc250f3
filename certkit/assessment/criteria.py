"""One criterion at one tier: status, margin, reason.

`met` and `not_met` are judgements on a measured value. `insufficient` says that a value exists and cannot
be judged, `not_tested` that there is no evidence, `not_applicable` that the tier does not specify the row.
The margin is signed so that positive passes; 0 under a strict operator is not met.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from certkit.assessment.metrics.metric import Metric, State, Value
from certkit.assessment.profile import Criterion, Operator, Reading, exact

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.assessment.profile import Profile


class Status(StrEnum):
    """The result of a criterion."""

    MET = "met"
    NOT_MET = "not_met"
    INSUFFICIENT = "insufficient"
    NOT_TESTED = "not_tested"
    NOT_APPLICABLE = "not_applicable"


class Bounded(Struct, frozen=True, kw_only=True):
    """The bounded reading of a row: the bound that must pass the threshold, at which confidence.

    `k` tasks (or families of tasks) carry it, the fewest where it has parts; `rests_on` says so in words;
    `reason` says why the row cannot be judged so.
    """

    status: Status
    bound: Value | None = None
    confidence: float
    k: int | None = None
    rests_on: str | None = None
    reason: str | None = None


class Row(Struct, frozen=True, kw_only=True):
    """A criterion at a tier, judged. `status` is the table reading; `bounded` the other.

    `k` tasks carry the value, the fewest where it has parts; None where no task does, as in an attestation.
    """

    criterion: Criterion
    metric: Metric
    tier: int
    operator: Operator | None
    threshold: Fraction | None
    status: Status
    k: int | None = None
    margin: Value | None = None
    reason: str | None = None
    bounded: Bounded | None = None

    @property
    def id(self) -> str:
        """The criterion's identifier."""
        return self.criterion.id

    @property
    def value(self) -> Value | None:
        """The value that was compared, or that could not be judged."""
        return self.metric.at(self.tier)

    def deciding(self, reading: Reading) -> Status:
        """Return the status under a reading."""
        return self.status if reading == "table" or self.bounded is None else self.bounded.status

    def judged_by(self, metric: Metric) -> Row:
        """Return the same criterion at the same tier, judged by another metric."""
        return judge(self.criterion, metric, self.tier, self.k)

    @property
    def few(self) -> bool:
        """Whether it rests on fewer tasks than the profile asks for."""
        return self.k is not None and self.k < self.criterion.min_n


def judge(criterion: Criterion, metric: Metric, tier: int, k: int | None = None) -> Row:
    """Return the table reading of one criterion at one tier; `k` as in `Row`."""
    threshold = criterion.threshold(tier)
    if threshold is None:
        return Row(
            criterion=criterion,
            metric=metric,
            tier=tier,
            operator=None,
            threshold=None,
            status=Status.NOT_APPLICABLE,
            k=k,
            reason="the tier does not specify this row",
        )
    operator = criterion.operator_at(tier)
    status, reason = _evidence(criterion, metric, tier, k)
    margin = None
    value = metric.at(tier)
    if status is None and value is not None:
        margin = _margin(value, operator, threshold)
        status = Status.MET if passes(value, operator, threshold) else Status.NOT_MET
    return Row(
        criterion=criterion,
        metric=metric,
        tier=tier,
        operator=operator,
        threshold=threshold,
        status=status or Status.NOT_TESTED,
        k=k,
        margin=margin,
        reason=reason,
    )


def _evidence(
    criterion: Criterion, metric: Metric, tier: int, k: int | None
) -> tuple[Status | None, str | None]:
    """Return why the row cannot be judged, or (None, None) where it can."""
    if metric.state is State.UNMEASURED or metric.at(tier) is None:
        return Status.NOT_TESTED, metric.reason
    if metric.blocked:
        return Status.INSUFFICIENT, metric.blocked
    if metric.coverage < exact(criterion.min_coverage):
        return Status.INSUFFICIENT, metric.reason
    # An attestation need not state its n; its absence fails the row only where a profile asks for a number.
    count, noun = (metric.n, "items") if k is None else (k, "task" if k == 1 else "tasks")
    if criterion.min_n and (count is None or count < criterion.min_n):
        stated = "an unstated number of" if count is None else f"{count:,}"
        return Status.INSUFFICIENT, f"rests on {stated} {noun}, the profile asks for {criterion.min_n:,}"
    return None, None


def _margin(value: Value, operator: Operator, threshold: Fraction) -> Value:
    """Return by how much the value passes; a float is compared with the double nearest the threshold."""
    difference = value - (threshold if isinstance(value, Fraction) else float(threshold))
    return -difference if operator in {"<", "<="} else difference


def passes(value: Any, operator: Operator, threshold: Fraction) -> Any:
    """Tell whether a value is on the good side of a threshold, or on one that is not strict.

    Many values at once, as an array, give an array of truth values.
    """
    margin: Any = _margin(value, operator, threshold)
    return margin > 0 if operator in {">", "<"} else margin >= 0


def table(
    profile: Profile, metrics: dict[str, Metric], tasks: Callable[[str], int | None]
) -> tuple[Row, ...]:
    """Return every criterion at every tier, in the profile's order, tiers ascending.

    `tasks` tells by metric how many tasks carry it: `k` of a `Row`.
    """
    return tuple(
        judge(criterion, metrics[criterion.metric], tier, tasks(criterion.metric))
        for criterion in profile.criteria
        for tier in profile.tier_numbers
    )
