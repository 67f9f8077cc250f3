"""How many runs a tier takes: the least schedule that shows every row with the wanted probability.

    plan = plan(profile, 2, {"r_op": Expected(value=Fraction("0.88"))}, design("bounded", icc=0.1))
    plan.schedule.runs, plan.driver.demand.criterion.id, plan.together

For every row the least schedule is searched under which `certkit.assessment.plan.power.chance` reaches the
power; the largest of them is the plan, so that rows other than its driver have power to spare. The rows
together are met at least with the probability that Bonferroni's inequality leaves: 1 less the sum of what
each may fail by. Nothing is drawn.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit.assessment.bounded import ARMS
from certkit.assessment.lint import lint
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.metrics.metric import number
from certkit.assessment.plan.demand import Demand, Expected, Of, beyond, demands
from certkit.assessment.plan.power import Runs, chance, difference_chance, share
from certkit.assessment.plan.schedule import Design, Schedule, scheduled
from certkit.assessment.words import asked, shown
from certkit.errors import NegativeError, UsageError
from certkit.evidence.records.schedule import MAX_RUNS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction

    from certkit.assessment.profile import Profile

PLAN_SCHEMA: Final = "urn:certkit:plan:v1"
POINTS: Final = 20
"""Points of the curve; half of them up to the plan, half beyond."""

_HALF: Final = 0.5


class Planned(Struct, frozen=True, kw_only=True):
    """A row: the least schedule that shows it, and its probability under the plan (None: not expected).

    `least` is None where nothing is expected and the row needs no least number.
    """

    demand: Demand
    least: Schedule | None
    power: float | None

    @property
    def runs(self) -> int:
        """Runs in all of the least schedule."""
        return 0 if self.least is None else self.least.runs


class Point(Struct, frozen=True, kw_only=True):
    """One point of the curve: runs in all, probability of the row that drives, lower bound for all rows."""

    runs: int
    driver: float
    together: float


class FailureFree(Struct, frozen=True, kw_only=True):
    """Runs without a failure that show a tier's r_op: `least` for a uniform prior, `bounded` by bounds.

    Bounds at a confidence above .95 allow for the uncertainty of the variance, and so ask for more.
    """

    tier: int
    least: int
    bounded: int | None


class Plan(Struct, frozen=True, kw_only=True):
    """A schedule, why it must be so large, and what it gives."""

    profile: Profile
    tier: int
    design: Design
    expect: dict[str, Expected]
    schedule: Schedule
    rows: tuple[Planned, ...]
    driver: Planned
    runner_up: Planned | None
    together: float
    failure_free: tuple[FailureFree, ...]
    curve_of: Planned
    curve: tuple[Point, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "schema": PLAN_SCHEMA,
            "profile": {"id": self.profile.id, "digest": self.profile.digest},
            "tier": self.tier,
            "design": self.design.to_dict(),
            "expect": {
                metric: {
                    "value": float(expected.value),
                    "sd": None if expected.sd is None else float(expected.sd),
                }
                for metric, expected in self.expect.items()
            },
            "criteria": [_row_dict(row, self.schedule) for row in self.rows],
            "schedule": self.schedule.to_dict(),
            "driver": self.driver.demand.criterion.id,
            "runner_up": None if self.runner_up is None else self.runner_up.demand.criterion.id,
            "power_of_all_at_least": self.together,
            "failure_free": {
                str(item.tier): {"least": item.least, "bounded": item.bounded} for item in self.failure_free
            },
            "curve": {
                "criterion": self.curve_of.demand.criterion.id,
                "points": [
                    {"runs": point.runs, "power": point.driver, "power_of_all_at_least": point.together}
                    for point in self.curve
                ],
            },
        }


def plan(profile: Profile, tier: int, expect: Mapping[str, Expected], design: Design) -> Plan:
    """Return the least schedule that shows a tier of a profile.

    Raises `UsageError` ``usage.option`` for a tier that is not there, for expectations that cannot be and
    for bounds at any time, `NegativeError` ``plan.impossible`` where no number of runs shows the tier.
    """
    if tier not in profile.tier_numbers:
        raise UsageError(
            "usage.option",
            f"tier {tier} is not in profile {profile.id}, which has 1 to {len(profile.tiers)}",
        )
    if design.reading == "bounded" and profile.stopping == "anytime":
        raise UsageError(
            "usage.option",
            f"{profile.id} bounds at any time: the number of its runs is not fixed beforehand",
            hint='plan for the same table with stopping = "declared", or with --reading table',
        )
    if faults := lint(profile):
        raise NegativeError(
            "plan.impossible", faults[0], where=profile.id, hint="'certkit profile lint' lists what is wrong"
        )
    rows = demands(
        profile,
        tier,
        reading=design.reading,
        attempt=design.attempt,
        domains=design.domains,
        mix=design.mix,
        expect=expect,
    )
    rate = expect.get("r_op")
    return _Search(profile, design, None if rate is None else rate.value, rows).plan(tier, dict(expect))


class _Search:
    """Finds the least schedule for rows."""

    def __init__(
        self, profile: Profile, design: Design, success: Fraction | None, rows: tuple[Demand, ...]
    ) -> None:
        self._profile, self._design, self._success, self._rows = profile, design, success, rows

    def plan(self, tier: int, expect: dict[str, Expected]) -> Plan:
        """Return the plan, or refuse."""
        self._refuse([self._hopeless(row) for row in self._rows])
        faults = [self._first(partial(self._enough, row)) for row in self._rows]
        self._refuse(
            [self._endless(_named(row)) for row, number in zip(self._rows, faults, strict=True) if not number]
        )
        found = [number for number in faults if number is not None]
        most = max(found)
        if self._design.joint:
            together = self._first(self._joint, most)
            self._refuse([None if together else self._endless("all rows together")])
            most = together or most
        # Counts come in steps, so that a few runs more can be a little worse.
        while not all(self._enough(row, most) for row in self._rows) or not self._joint(most):
            most += 1
        schedule = self._schedule(most)
        planned = tuple(
            Planned(
                demand=row,
                least=self._schedule(number) if self._needs(row) else None,
                power=self._power(row, schedule),
            )
            for row, number in zip(self._rows, found, strict=True)
        )
        own = [row for row in planned if row.least is not None and not self._follows(row.demand)]
        ranked = sorted(own, key=lambda row: -row.runs)
        steepest = next(row for row in ranked if row.power is not None)
        return Plan(
            profile=self._profile,
            tier=tier,
            design=self._design,
            expect=expect,
            schedule=schedule,
            rows=planned,
            driver=ranked[0],
            runner_up=ranked[1] if len(ranked) > 1 else None,
            together=self._together(schedule),
            failure_free=self._failure_free(tier),
            curve_of=steepest,
            curve=self._curve(steepest.demand, most),
        )

    def _schedule(self, faults: int) -> Schedule:
        return scheduled(self._design, faults, self._success)

    def _needs(self, row: Demand) -> bool:
        """Tell whether a row needs a least number of runs that can be counted."""
        if row.of is None or (row.of is Of.RECOVERIES and self._success is None):
            return False
        return bool(row.arms or row.clusters or row.runs)

    def _lacks(self, row: Demand, schedule: Schedule) -> bool:
        """Tell whether a row has too few runs or clusters to be judged, whatever they show."""
        for of in row.counted:
            runs = schedule.counted(of)
            if of is Of.RECOVERIES and self._success is None:
                continue  # how many there will be is not expected
            if runs is None or runs.k < row.clusters or runs.n < row.runs:
                return True
        return False

    def _power(self, row: Demand, schedule: Schedule) -> float | None:
        """Return the probability that a row is met, None where nothing is expected of it."""
        if not row.arms:
            return None
        if self._lacks(row, schedule):
            return 0.0
        bar = row.bar(self._profile)
        arms = [(arm.outcome, schedule.counted(arm.of)) for arm in row.arms]
        full = [(outcome, runs) for outcome, runs in arms if runs is not None]
        if row.metric in ARMS:
            return difference_chance(full[0], full[1], bar)
        known: dict[float, float] = {}
        for outcome, runs in full:  # domains that are expected to be alike are computed once
            if outcome.mean not in known:
                known[outcome.mean] = chance(outcome, runs, bar)
        return prod(known[outcome.mean] for outcome, _ in full)

    def _enough(self, row: Demand, faults: int) -> bool:
        schedule = self._schedule(faults)
        power = self._power(row, schedule)
        return not self._lacks(row, schedule) and (power is None or power >= self._design.power)

    def _joint(self, faults: int) -> bool:
        return not self._design.joint or self._together(self._schedule(faults)) >= self._design.power

    def _first(self, enough: Callable[[int], bool], start: int = 1) -> int | None:
        """Return the least fault runs per domain that are enough, None beyond `MAX_RUNS` runs in all."""
        low, high = start - 1, start
        while not enough(high):
            low, high = high, 2 * high
            if self._schedule(high).runs > MAX_RUNS:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high

    def _follows(self, row: Demand) -> bool:
        """Tell whether a row cannot fail where the posterior is met: one above ½ takes p > τ with it."""
        return (
            row.metric == "r_op"
            and row.threshold >= _HALF
            and any(
                other.metric == "posterior" and other.tier == row.tier and other.threshold >= _HALF
                for other in self._rows
            )
        )

    def _together(self, schedule: Schedule) -> float:
        fails = [
            1 - power
            for row in self._rows
            if not self._follows(row) and (power := self._power(row, schedule)) is not None
        ]
        return max(0.0, 1 - sum(fails))

    def _curve(self, row: Demand, faults: int) -> tuple[Point, ...]:
        half = POINTS // 2
        steps = dict.fromkeys(-(-faults * step // half) for step in range(1, POINTS + 1))
        schedules = [self._schedule(step) for step in steps]
        return tuple(
            Point(
                runs=schedule.runs,
                driver=self._power(row, schedule) or 0.0,
                together=self._together(schedule),
            )
            for schedule in schedules
        )

    def _failure_free(self, tier: int) -> tuple[FailureFree, ...]:
        found = []
        for row in self._rows:
            if row.metric != "posterior" or row.failure_free is None or row.tier > tier:
                continue
            n = row.failure_free
            bar = row.bar(self._profile)
            if row.confidence is not None:
                n = max(n, row.clusters)
                while chance(share(1.0), Runs(n=n, k=n, icc=0.0), bar) < 1:
                    n += 1
            bounded = None if row.confidence is None else n
            found.append(FailureFree(tier=row.tier, least=row.failure_free, bounded=bounded))
        return tuple(found)

    def _hopeless(self, row: Demand) -> str | None:
        """Tell why no number of runs shows a row, None where enough may."""
        largest = self._schedule(MAX_RUNS)
        for of in row.counted:
            if largest.counted(of) is None and of is not Of.RECOVERIES:
                return f"{_named(row)}: the fault mix has no {of}"
            runs = largest.counted(of)
            if runs is not None and runs.k < row.clusters:
                return f"{_named(row)}: its bound takes {row.clusters:,} clusters, the plan has {runs.k:,}"
        if not beyond(row, self._profile) or row.expected is None:
            return None
        spec = CATALOGUE["r_op" if row.metric == "posterior" else row.metric]
        limit = self._profile.tau[row.tier] if row.metric == "posterior" else row.threshold
        value = shown(row.expected.value, spec.unit)
        return f"{_named(row)}: {value} expected, {asked(row.operator, limit, spec.unit)} asked"

    def _endless(self, what: str) -> str:
        if self._design.clusters is not None:
            return f"{what}: {self._design.clusters:,} clusters are too few at ICC {self._design.icc:g}"
        return f"{what}: too close to the threshold, more than {MAX_RUNS:,} runs"

    def _refuse(self, complaints: list[str | None]) -> None:
        found = [complaint for complaint in complaints if complaint]
        if found:
            raise NegativeError("plan.impossible", "no number of runs shows " + "; ".join(found))


def _named(row: Demand) -> str:
    return f"{row.criterion.id} at Tier {row.tier}"


def _row_dict(row: Planned, schedule: Schedule) -> dict[str, Any]:
    demand, unit = row.demand, CATALOGUE[row.demand.metric].unit
    return {
        "id": demand.criterion.id,
        "metric": demand.metric,
        "tier": demand.tier,
        "operator": demand.operator,
        "threshold": number(demand.threshold, unit),
        "confidence": None if demand.confidence is None else float(demand.confidence),
        "expected": None if demand.expected is None or unit is Unit.BOOLEAN else float(demand.expected.value),
        "counts": None if demand.of is None else demand.of.value,
        "least": None if row.least is None else {**_counts(demand, row.least), "total_runs": row.runs},
        "planned": {**_counts(demand, schedule), "power": row.power},
        "clusters_needed": demand.clusters,
        "failure_free": demand.failure_free,
        "reason": demand.reason,
    }


def _counts(demand: Demand, schedule: Schedule) -> dict[str, int | None]:
    if demand.of is None or (demand.of is Of.RECOVERIES and schedule.success is None):
        return {"n": None, "clusters": None}
    runs = schedule.counted(demand.of)
    return {"n": 0 if runs is None else runs.n, "clusters": 0 if runs is None else runs.k}
