"""From metrics to a verdict: a criterion at a tier, a tier, and what the tiers say together.

A criterion is `met` or `not_met` where its value was measured. `insufficient` says that there is evidence,
and that it cannot be judged, `not_tested` that there is no evidence, `not_applicable` that the tier does not
specify the row. The margin is signed so that positive passes; 0 under a strict operator is not met.

A tier is met when every row that it specifies is met and the tier below is met; it is not met when a
measured row of it, or of a tier below, fails; otherwise the evidence is insufficient. Without a record no
tier is met, whatever is attested. While a serious challenge is open, a tier that would be met is contested:
its criteria are met, and it is not granted.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta, Struct, structs

from certkit.assessment.findings.findings import Challenge
from certkit.assessment.metrics.catalogue import ATTESTED
from certkit.assessment.metrics.metric import Metric, State, Value
from certkit.assessment.profile import Criterion, Operator, Reading, exact
from certkit.ground import wording
from certkit.ground.document import Count, Part, Positive
from certkit.ground.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.assessment.profile import Profile
    from certkit.summary.summary import Traces


class Status(StrEnum):
    """The result of a criterion."""

    MET = "met"
    NOT_MET = "not_met"
    INSUFFICIENT = "insufficient"
    NOT_TESTED = "not_tested"
    NOT_APPLICABLE = "not_applicable"


class TierStatus(StrEnum):
    """The result of a tier."""

    MET = "met"
    CONTESTED = "contested"
    NOT_MET = "not_met"
    INSUFFICIENT = "insufficient"


_EXIT = {
    TierStatus.MET: Exit.OK,
    TierStatus.CONTESTED: Exit.INSUFFICIENT,
    TierStatus.NOT_MET: Exit.NEGATIVE,
    TierStatus.INSUFFICIENT: Exit.INSUFFICIENT,
}

TOLD_BY_TRACES: Final = {"violations"}
"""Metrics that rest on nothing but what a trace tells."""
READINGS: Final[tuple[Reading, ...]] = ("table", "bounded")

# Worst first: a failure that was measured, then what could not be judged, then what was never tested.
_SEVERITY = {Status.NOT_MET: 0, Status.INSUFFICIENT: 1, Status.NOT_TESTED: 2}


class Bounded(Part, frozen=True, kw_only=True):
    """The bounded reading of a row: the bound that must pass the threshold, at which confidence.

    `k` is the fewest where it has parts, and `rests_on` says it in words. `reason` says why the row cannot be
    judged so.
    """

    status: Status
    bound: float | None = None
    confidence: Annotated[float, Meta(description="the tier's, raised for a later attempt")]
    k: Annotated[Count | None, Meta(description="tasks, or families of tasks, that carry the row")] = None
    rests_on: str | None = None
    reason: str | None = None


class Evidence(Part, frozen=True, kw_only=True):
    """How records show what a criterion rests on; `level` is the weakest that any of them has.

    So many records are `derived`, their enclosed trace gives the values, or `traced`, it is enclosed. All
    others are asserted: the evaluator's word. An attested number rests on no record, and is asserted.
    """

    level: Literal["asserted", "traced", "derived"]
    derived: Count
    traced: Count


class Row(Struct, frozen=True, kw_only=True):
    """A criterion at a tier, judged. `status` is the table reading; `bounded` the other.

    `k` tasks carry the value, the fewest where it has parts; None where no task does, as in an attestation.
    """

    criterion: Criterion
    metric: Metric
    tier: int
    operator: Operator | None = None
    threshold: Fraction | None = None
    status: Status
    k: int | None = None
    margin: Value | None = None
    reason: str | None = None
    bounded: Bounded | None = None
    evidence: Evidence | None = None

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

    @property
    def few(self) -> bool:
        """Whether it rests on fewer tasks than the profile asks for."""
        return self.k is not None and self.k < self.criterion.min_n


class Tier(Part, frozen=True, kw_only=True):
    """One tier: its own rows by status, the status of the tier below, and the two together."""

    name: str
    status: TierStatus
    lower: Annotated[TierStatus | None, Meta(description="the status of the tier below")]
    met: tuple[str, ...]
    not_met: tuple[str, ...]
    insufficient: tuple[str, ...]
    not_tested: tuple[str, ...]
    guidance: Mapping[str, str] | None


class Attained(Part, frozen=True, kw_only=True):
    """The tier that a reading attains, 0 for none."""

    tier: Count


class Verdict(Part, frozen=True, kw_only=True):
    """The tier whose criteria are met by the deciding reading, the status of the tier asked for, and why.

    `readings` has the tier of each reading, as `table` and `bounded` have. In `binding` the worst row is
    first.
    """

    tier: Count
    required_tier: Positive
    status: TierStatus
    readings: Mapping[Reading, Count]
    decides: Reading
    challenges: Annotated[
        tuple[Challenge, ...],
        Meta(description="the serious ones contest the verdict while they are open"),
    ] = ()
    table: Attained
    bounded: Attained
    binding: Annotated[
        tuple[str, ...], Meta(description="rows of the next tier that are neither met nor not applicable")
    ]

    @property
    def goal(self) -> int:
        """The tier that advice is about: the required one while it is not attained, else the next."""
        return max(self.tier + 1, self.required_tier)

    @property
    def exit_code(self) -> Exit:
        """0: the required tier is met; 1: a measured row fails; 4: evidence is missing, or contested."""
        return _EXIT[self.status]


def evidenced(metric: str, records: int, traces: Traces) -> Evidence:
    """Return the level of evidence of a metric; traces tell only some fields, and none an outcome."""
    derived = traces.derived if metric in TOLD_BY_TRACES else 0
    traced = 0 if metric in ATTESTED else traces.enclosed - derived
    return Evidence(level=wording.weakest(derived, traced, records), derived=derived, traced=traced)


def withheld(profile: Profile, metric: Metric) -> Metric:
    """Return a metric; without a value where fewer runs carry it than a criterion of the profile accepts.

    The mean of some eligible runs would be read as that of all.
    """
    accepted = (exact(row.min_coverage) for row in profile.criteria if row.metric == metric.id)
    if metric.coverage >= min(accepted, default=1):
        return metric
    return structs.replace(metric, value=None, interval=None, intervals=())


def judge(criterion: Criterion, metric: Metric, tier: int, k: int | None = None) -> Row:
    """Return the table reading of one criterion at one tier; `k` as in `Row`."""
    threshold = criterion.threshold(tier)
    if threshold is None:
        missing, why = Status.NOT_APPLICABLE, "the tier does not specify this row"
        return Row(criterion=criterion, metric=metric, tier=tier, status=missing, k=k, reason=why)
    operator = criterion.operator_at(tier)
    status, reason = _evidence(criterion, metric, tier, k)
    margin, value = None, metric.at(tier)
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
    if metric.coverage < exact(criterion.min_coverage):
        return Status.INSUFFICIENT, metric.reason
    if metric.state is State.UNMEASURED or metric.at(tier) is None:
        return Status.NOT_TESTED, metric.reason
    if metric.blocked:
        return Status.INSUFFICIENT, metric.blocked
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
        judge(criterion, metrics[criterion.metric], tier, k)
        for criterion in profile.criteria
        for k in (tasks(criterion.metric),)
        for tier in profile.tier_numbers
    )


def tiers(profile: Profile, rows: tuple[Row, ...], reading: Reading, *, records: int) -> dict[str, Tier]:
    """Return every tier of the profile under a reading, ascending, by its number."""
    result: dict[str, Tier] = {}
    lower: TierStatus | None = None
    for number in profile.tier_numbers:
        statuses = [(row.id, row.deciding(reading)) for row in rows if row.tier == number]
        by_status = {
            status.value: tuple(name for name, decided in statuses if decided is status)
            for status in Status
            if status is not Status.NOT_APPLICABLE
        }
        status = _status({decided for _, decided in statuses}, lower)
        if records == 0 and status is TierStatus.MET:
            status = TierStatus.INSUFFICIENT
        name, told = profile.tiers[str(number)].name, guidance(profile, number)
        result[str(number)] = Tier(name=name, status=status, lower=lower, guidance=told, **by_status)
        lower = status
    return result


def _status(statuses: set[Status], lower: TierStatus | None) -> TierStatus:
    if Status.NOT_MET in statuses or lower is TierStatus.NOT_MET:
        return TierStatus.NOT_MET
    some = Status.MET in statuses or lower is TierStatus.MET
    if some and statuses <= {Status.MET, Status.NOT_APPLICABLE} and lower in {None, TierStatus.MET}:
        return TierStatus.MET
    return TierStatus.INSUFFICIENT


def attained(judged: Mapping[str, Tier]) -> int:
    """Return the highest tier whose criteria are met with all below it, 0 where those of Tier 1 are not."""
    met = {TierStatus.MET, TierStatus.CONTESTED}
    return max((int(number) for number, tier in judged.items() if tier.status in met), default=0)


def contested(status: TierStatus, *, contests: bool) -> TierStatus:
    """Return a tier's status where its criteria are what they are, and a serious challenge is open or not."""
    if status not in {TierStatus.MET, TierStatus.CONTESTED}:
        return status
    return TierStatus.CONTESTED if contests else TierStatus.MET


def contested_tier(tier: Tier, *, contests: bool) -> Tier:
    """Return a tier, and the one below, with or without an open serious challenge."""
    lower = None if tier.lower is None else contested(tier.lower, contests=contests)
    return structs.replace(tier, status=contested(tier.status, contests=contests), lower=lower)


def verdict(
    profile: Profile, rows: tuple[Row, ...], judged: Mapping[str, Tier], *, records: int, required_tier: int
) -> Verdict:
    """Return the verdict under the profile's reading."""
    tier = attained(judged)
    table, bounded = (attained(tiers(profile, rows, name, records=records)) for name in READINGS)
    return Verdict(
        tier=tier,
        required_tier=required_tier,
        status=judged[str(required_tier)].status,
        readings={"table": table, "bounded": bounded},
        decides=profile.reading,
        table=Attained(tier=table),
        bounded=Attained(tier=bounded),
        binding=tuple(row.id for row in next_rows(profile, rows, tier)),
    )


def next_rows(profile: Profile, rows: tuple[Row, ...], tier: int) -> tuple[Row, ...]:
    """Return the rows of the tier above `tier` that are neither met nor not applicable, worst first."""
    reading = profile.reading
    settled = {Status.MET, Status.NOT_APPLICABLE}
    open_rows = [row for row in rows if row.tier == tier + 1 and row.deciding(reading) not in settled]
    return tuple(sorted(open_rows, key=lambda row: (_SEVERITY[row.deciding(reading)], _relative(row))))


def _relative(row: Row) -> float:
    """Return the margin against the threshold's size, so that rows of different units can be ordered."""
    if row.margin is None:
        return 0.0
    return float(row.margin) / (abs(float(row.threshold or 0)) or 1.0)


def guidance(profile: Profile, tier: int) -> dict[str, str] | None:
    """Return the source's SIL and ASIL text for a tier with the arithmetic that it must stand beside."""
    info = profile.tiers[str(tier)]
    texts = {name: text for name, text in (("sil", info.sil), ("asil", info.asil)) if text}
    if not texts:
        return None
    tau = profile.tau.get(tier)
    if tau is not None:
        failure = 1 - tau
        texts["arithmetic"] = (
            f"success above {float(tau):g} bounds the failure probability per demand by {float(failure):g};"
            f" IEC 61508 low-demand mode: {low_demand_band(float(failure))}"
        )
    texts["note"] = "the source offers this mapping as guidance on evidence, not as certification"
    return texts


def low_demand_band(failure: float) -> str:
    """Return the IEC 61508 low-demand band of an average probability of failure on demand."""
    for level in (4, 3, 2, 1):
        if failure <= 10.0**-level:
            return f"at best the SIL {level} band (10^-{level + 1} to 10^-{level})"
    return "no SIL band (SIL 1 ends at 10^-1)"
