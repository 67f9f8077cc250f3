"""What each row of the table demands of a schedule: which runs it counts, how many, and what is expected.

A row of a lower tier that the same row of a higher tier entails is left out. A row without an expectation
is not planned, but what it needs whatever the rate (clusters for a bound, ordered runs, `min_n`) counts.
"""

from __future__ import annotations

import re
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from certkit.assessment.bounded import ARMS, MEANS, bounds
from certkit.assessment.criteria import passes
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.metrics.csi_windowed import LEAST_RUNS
from certkit.assessment.metrics.metrics_2025 import ATTESTED
from certkit.assessment.plan.power import Bar, Kind, Outcome, share
from certkit.assessment.statistics.estimators import least_failure_free
from certkit.assessment.words import shown
from certkit.errors import UsageError
from certkit.evidence.records.record import SINGLE_FAULTS
from certkit.evidence.summary.summary import WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from certkit.assessment.profile import Criterion, Operator, Profile, Reading

_NUMBER: Final = r"[+-]?(?:\d{1,12}\.?\d{0,12}|\.\d{1,12})"
_EXPECTATION: Final = re.compile(rf"([a-z0-9_]{{1,40}})=({_NUMBER})(?:(?:±|:)({_NUMBER}))?")


class Of(StrEnum):
    """The runs that a row counts: its denominator."""

    FAULT = "fault runs"
    ALL = "runs"
    NOMINAL = "nominal runs"
    RECOVERIES = "recoveries"
    ADVERSARIAL = "adversarial runs"
    SINGLE = "single-fault runs"
    CASCADE = "cascade runs"
    DOMAIN = "fault runs per domain"


_OF: Final = {
    "c_nom": Of.NOMINAL,
    "r_op": Of.FAULT,
    "posterior": Of.FAULT,
    "frr": Of.FAULT,
    "pei": Of.ALL,
    "pei_fault": Of.FAULT,
    "irs": Of.RECOVERIES,
    "ti": Of.ALL,
    "csi": Of.ALL,
    "csi_windowed": Of.ALL,
    "domain_min": Of.DOMAIN,
    "violations": Of.ALL,
    "adversarial_resistance": Of.ADVERSARIAL,
    "cascade_penalty": Of.CASCADE,
    "gap": Of.NOMINAL,
    "cn_frr": Of.FAULT,
    "frr_2025": Of.FAULT,
    "pei_2025": Of.ALL,
    "harness_errors": Of.ALL,
}
_ORDERED: Final = {"csi": WINDOW, "csi_windowed": LEAST_RUNS}
_WITH_R_OP: Final = {"irs", "domain_min", "cascade_penalty", "gap"}
_UNPLANNED: Final = {
    "irs_2025": "a product of two metrics, whose chance is not computed",
    "safe_halt_on_risk": "how many runs will call for a halt is not known beforehand",
    "novel_fault": "held-out faults are no part of the schedule",
    **dict.fromkeys(
        ("rule_a_agreement", "composite_agreement", "layer_agreement"),
        "how many runs two ways of judging can be compared on is not known beforehand",
    ),
}


class Expected(Struct, frozen=True, kw_only=True):
    """The value that is expected of a metric, in its unit; `sd` that of one run, None where not stated."""

    value: Fraction
    sd: Fraction | None = None


class Arm(Struct, frozen=True, kw_only=True):
    """The runs of one side of a row, and what one of them is expected to give."""

    of: Of
    outcome: Outcome


class Demand(Struct, frozen=True, kw_only=True):
    """One row of a tier.

    `confidence` is None in the table reading. `clusters` and `runs` are what the row needs whatever is
    expected, `failure_free` the least number of runs that could show it if all of them came out at their
    best. `arms` is empty where nothing is expected, and `reason` says what is missing.
    """

    criterion: Criterion
    tier: int
    operator: Operator
    threshold: Fraction
    confidence: Fraction | None
    of: Of | None
    clusters: int = 0
    runs: int = 0
    failure_free: int | None = None
    expected: Expected | None = None
    arms: tuple[Arm, ...] = ()
    reason: str | None = None

    @property
    def metric(self) -> str:
        """The metric that the row judges."""
        return self.criterion.metric

    @property
    def counted(self) -> tuple[Of, ...]:
        """Every kind of run that the row counts."""
        if self.metric == "cascade_penalty":
            return Of.CASCADE, Of.SINGLE
        if self.metric == "gap":
            return Of.NOMINAL, Of.FAULT
        return () if self.of is None else (self.of,)

    def bar(self, profile: Profile) -> Bar:
        """Return what the row asks, on the scale of its outcome."""
        posterior = self.metric == "posterior"
        high = CATALOGUE[self.metric].high
        span = Fraction(100) if self.metric in ARMS else None
        scaled = self.threshold / span if span else _scaled(self.metric, self.threshold)
        return Bar(
            threshold=float(profile.tau[self.tier] if posterior else scaled),
            operator=self.operator,
            confidence=None if self.confidence is None else float(self.confidence),
            icc0=profile.icc0,
            level=float(self.threshold) if posterior else None,
            student=self.metric in MEANS,
            every=self.operator == ">=" and self.threshold == high,
        )


def expectations(texts: Iterable[str]) -> dict[str, Expected]:
    """Return what is expected of each metric, from texts like ``r_op=.88,frr=.9:.2`` (or ``frr=.9±.2``).

    Raises `UsageError` ``usage.option`` for anything else, and for a metric that is named twice.
    """
    found: dict[str, Expected] = {}
    for text in ",".join(texts).split(","):
        match = _EXPECTATION.fullmatch(text.strip())
        if match is None:
            raise UsageError(
                "usage.option",
                f"expectation {text.strip()[:40]!r} is not METRIC=VALUE",
                hint="r_op=.88, or frr=.9:.2 with the standard deviation of one run",
            )
        metric, value, sd = match.groups()
        if metric in found:
            raise UsageError("usage.option", f"two expectations of {metric}")
        found[metric] = Expected(value=Fraction(value), sd=None if sd is None else Fraction(sd))
    return found


def demands(
    profile: Profile,
    tier: int,
    *,
    reading: Reading,
    attempt: int,
    domains: int,
    mix: Mapping[str, Fraction],
    expect: Mapping[str, Expected],
) -> tuple[Demand, ...]:
    """Return the rows of a tier and of those below it that none above entails, in the profile's order.

    Raises `UsageError` ``usage.option`` for an expectation that is none of the rows', cannot be the value
    of its metric, or contradicts another.
    """
    rows = [
        _row(profile, row, number, reading, attempt)
        for row in profile.criteria
        for number in range(1, tier + 1)
        if row.threshold(number) is not None
    ]
    kept = [row for row in rows if not any(_entails(profile, other, row) for other in rows)]
    _check(kept, expect, profile, tier)
    return tuple(_with_arms(row, expect, domains, mix) for row in kept)


def _row(profile: Profile, row: Criterion, tier: int, reading: Reading, attempt: int) -> Demand:
    threshold, metric = row.threshold(tier) or Fraction(0), row.metric
    delta = bounds.corrected(profile.confidence(tier), attempt)
    demand = Demand(
        criterion=row,
        tier=tier,
        operator=row.operator_at(tier),
        threshold=threshold,
        confidence=delta if reading == "bounded" else None,
        of=_OF.get(metric),
        runs=row.min_n,
        reason=_unplannable(metric),
    )
    if metric in _ORDERED:
        name = "csi_windowed" if reading == "bounded" else metric
        reason = f"{_ORDERED[name]} ordered runs at least; no power is known of it"
        return structs.replace(demand, runs=max(row.min_n, _ORDERED[name]), reason=reason)
    if demand.of is None:
        return demand
    if metric == "posterior":
        level = max(threshold, delta) if reading == "bounded" else threshold
        demand = structs.replace(demand, failure_free=least_failure_free(profile.tau[tier], level))
        edge = profile.tau[tier]
    else:
        scaled = _scaled(metric, threshold)
        edge = scaled if demand.operator in {">", ">="} else 1 - scaled
    if reading == "table":
        return demand
    plain = metric in ARMS or metric in {"domain_min", "violations"}
    if not plain and metric != "posterior":
        demand = structs.replace(demand, failure_free=least_failure_free(edge, delta))
    needed = bounds.LEAST_CLUSTERS if plain else bounds.clusters_needed(edge, delta)
    return structs.replace(demand, clusters=needed)


def _unplannable(metric: str) -> str | None:
    if metric in ATTESTED:
        return "attested: state it in the manifest, with its evidence and the n it rests on"
    return None if metric in _OF else _UNPLANNED[metric]


def _entails(profile: Profile, above: Demand, below: Demand) -> bool:
    """Tell whether a row of a higher tier cannot be met without the same row of a lower one."""
    if above.criterion.id != below.criterion.id or above.tier <= below.tier:
        return False
    spare = above.threshold - below.threshold
    if above.operator in {"<", "<="}:
        spare = -spare
    if above.metric == "posterior" and profile.tau[above.tier] < profile.tau[below.tier]:
        return False
    strict = above.operator == below.operator or above.operator in {"<", ">"}
    sure = above.confidence is None or above.confidence >= (below.confidence or 0)
    return sure and (spare > 0 or (spare == 0 and strict))


def _check(rows: list[Demand], expect: Mapping[str, Expected], profile: Profile, tier: int) -> None:
    """Refuse expectations that no row of the tier uses or that cannot be."""
    metrics = {row.metric for row in rows if row.of is not None and row.metric not in _ORDERED}
    if metrics & {"posterior", *_WITH_R_OP}:
        metrics.add("r_op")
    metrics.discard("posterior")
    known = ", ".join(sorted(metrics))
    for metric, expected in expect.items():
        if metric not in metrics:
            raise UsageError(
                "usage.option",
                f"{metric!r} is no metric whose value is expected for Tier {tier} of {profile.id}",
                hint=f"known: {known}",
            )
        if metric in _WITH_R_OP and metric != "domain_min" and "r_op" not in expect:
            raise UsageError("usage.option", f"{metric} is planned together with an expectation of r_op")
        _check_value(metric, expected)
    if not metrics & expect.keys() - {"r_op"} and not any(_rates(row) for row in rows if "r_op" in expect):
        raise UsageError("usage.option", "nothing is expected of any row", hint=f"known: {known}")


def _rates(row: Demand) -> bool:
    """Tell whether an expectation of r_op alone is one of the row."""
    return row.metric in {"r_op", "posterior", "domain_min"}


def _check_value(metric: str, expected: Expected) -> None:
    spec = CATALOGUE[metric]
    low, high = spec.low or Fraction(0), spec.high
    complaint = None
    if expected.value < low or (high is not None and expected.value > high):
        ends = f"{float(low):g} or more" if high is None else f"{float(low):g} to {float(high):g}"
        complaint = f"{metric}: expected values are {ends}, found {float(expected.value):g}"
    elif expected.sd is not None and metric not in {*MEANS, "violations"}:
        complaint = f"{metric}: the standard deviation of a proportion follows from its value"
    elif expected.sd is not None and (
        expected.sd < 0
        or (high is not None and expected.sd**2 > (expected.value - low) * (high - expected.value))
        or (expected.value == low and expected.sd > 0)
    ):
        complaint = f"{metric}: no values with mean {float(expected.value):g} have a standard deviation of "
        complaint += f"{float(expected.sd):g}"
    if complaint:
        raise UsageError("usage.option", complaint)


def _scaled(metric: str, value: Fraction) -> Fraction:
    spec = CATALOGUE[metric]
    low = spec.low or Fraction(0)
    return value - low if spec.high is None else (value - low) / (spec.high - low)


def _outcome(metric: str, expected: Expected) -> Outcome:
    """Return what one run gives; where no deviation is stated, the largest (for counts, Poisson's)."""
    mean = float(_scaled(metric, expected.value))
    if metric == "violations":
        variance = mean if expected.sd is None else float(expected.sd**2)
        return Outcome(mean=mean, variance=variance, kind=Kind.COUNT)
    if expected.sd is None:
        return share(mean)
    span = (CATALOGUE[metric].high or 1) - (CATALOGUE[metric].low or 0)
    return Outcome(mean=mean, variance=float((expected.sd / span) ** 2), kind=Kind.BETWEEN)


def _with_arms(
    row: Demand, expect: Mapping[str, Expected], domains: int, mix: Mapping[str, Fraction]
) -> Demand:
    """Return a row with what is expected of it, or with the reason why nothing is."""
    if row.reason is not None or row.of is None:
        return row
    metric = "r_op" if row.metric == "posterior" else row.metric
    own, rate = expect.get(metric), expect.get("r_op")
    if row.metric == "domain_min":
        own = own or rate
    if own is None:
        return structs.replace(row, reason="no expectation is given")
    if row.metric == "domain_min":
        arms = _domains(own.value, rate, domains)
    elif row.metric in ARMS and rate is not None:
        arms = _difference(row.metric, own.value / 100, rate.value, mix)
    else:
        arms = (Arm(of=row.of, outcome=_outcome(metric, own)),)
    return structs.replace(row, expected=own, arms=arms)


def _domains(weakest: Fraction, rate: Expected | None, domains: int) -> tuple[Arm, ...]:
    """Return the weakest domain, then the others, which are as good as makes up the mean."""
    total = weakest if rate is None else rate.value
    others = (domains * total - weakest) / (domains - 1) if domains > 1 else total
    if not weakest <= others <= 1 or (domains == 1 and weakest != total):
        raise UsageError(
            "usage.option",
            f"domain_min: a weakest of {domains} at {float(weakest):g} does not fit r_op"
            f" {float(total):g} over all",
        )
    return tuple(
        Arm(of=Of.DOMAIN, outcome=share(float(value))) for value in (weakest, *[others] * (domains - 1))
    )


def _difference(metric: str, gap: Fraction, rate: Fraction, mix: Mapping[str, Fraction]) -> tuple[Arm, ...]:
    """Return the two arms of a difference, with the rates that r_op and the difference give them."""
    if metric == "gap":
        rates = {Of.NOMINAL: rate + gap, Of.FAULT: rate}
    else:
        cascade = mix.get("cascade", Fraction(0))
        both = cascade + sum(mix.get(name, Fraction(0)) for name in map(str, SINGLE_FAULTS))
        single = rate + gap * (cascade / both if both else 0)
        rates = {Of.SINGLE: single, Of.CASCADE: single - gap}
    for of, value in rates.items():
        if not 0 <= value <= 1:
            raise UsageError(
                "usage.option",
                f"{metric}: {float(100 * gap):g} pp with r_op {float(rate):g} would be a success of"
                f" {shown(value, Unit.FRACTION)} in {of}",
            )
    return tuple(Arm(of=of, outcome=share(float(value))) for of, value in rates.items())


def beyond(row: Demand, profile: Profile) -> bool:
    """Tell whether what is expected is at the threshold or on its wrong side, so that no n shows the row."""
    if row.expected is None:
        return False
    if row.metric == "posterior":
        return row.expected.value <= profile.tau[row.tier]
    operator = {">=": ">", "<=": "<"}.get(row.operator, row.operator)
    ends = {CATALOGUE[row.metric].low, CATALOGUE[row.metric].high}
    if row.expected.value in ends and passes(row.expected.value, row.operator, row.threshold):
        return False  # every run at its best: there is nothing to be unlucky with
    return not passes(row.expected.value, operator, row.threshold)  # type: ignore[arg-type]
