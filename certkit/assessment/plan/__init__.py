"""How many tasks a tier takes: the least number that shows every row with the wanted probability.

    found = plan(profile, 2, expectations(["r_op=.88"]), design("bounded"))
    found.schedule.tasks, found.driver, found.power_of_all

The rule itself is run on 2,000 bundles that are drawn from what is expected, with a fixed seed: a row's power
is the share of them that meet it, and the power of all rows together the share that meet all. The least
number of tasks is searched by halving, so that it is the least but for the noise of the draws (a standard
error of .9 points at 80 %).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from certkit.assessment.bounded import least_tasks, lower, of_every_run, shows
from certkit.assessment.criteria import Row, passes
from certkit.assessment.criteria import judge as judge_row
from certkit.assessment.kinds import AsItIs, Attested, Minimum, Posterior, kind_of
from certkit.assessment.lint import lint
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.metrics.csi import LEAST_RUNS
from certkit.assessment.metrics.metric import asked, number, shown, unmeasured
from certkit.assessment.plan.document import POINTS, Plan, Planned, Point, ProfilePart, Schedule
from certkit.assessment.plan.drawn import Drawn, Rates
from certkit.assessment.statistics.estimators import least
from certkit.assessment.statistics.posterior import corrected
from certkit.ground.errors import NegativeError, UsageError
from certkit.summary.summary import WINDOW

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction

    from numpy.typing import NDArray

    from certkit.assessment.kinds import Kind
    from certkit.assessment.plan.design import Design
    from certkit.assessment.profile import Criterion, Profile

MOST_TASKS: Final = 2000
"""Tasks beyond which nothing is planned: the expectation is then too close to the threshold."""
_SUCCESS: Final = ("r_op", "domain_min", "cascade_penalty", "gap", "c_nom", "adversarial_resistance")
_ORDERED: Final = {"csi": WINDOW, "csi_windowed": LEAST_RUNS}


def plan(profile: Profile, tier: int, expect: Mapping[str, Fraction], design: Design) -> Plan:
    """Return the least schedule that shows a tier of a profile.

    Raises `UsageError` ``usage.option`` for a tier that is not there, for expectations that cannot be and
    for bounds at any time, `NegativeError` ``plan.impossible`` where no number of tasks shows the tier.
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
    return _Search(profile, tier, design, dict(expect)).plan()


class _Search:
    """Finds the least number of tasks per domain for the rows of a tier and those below it."""

    def __init__(self, profile: Profile, tier: int, design: Design, expect: dict[str, Fraction]) -> None:
        self._profile, self._tier, self._design, self._expect = profile, tier, design, expect
        self._rows = [
            judge_row(criterion, unmeasured(criterion.metric, "planned"), number)
            for criterion in profile.criteria
            for number in _highest(profile, criterion, tier)
        ]
        self._check_named()
        self._rates = Rates(design, expect)
        self._known: dict[int, tuple[Drawn, dict[int, NDArray[np.bool_] | None]]] = {}

    def plan(self) -> Plan:
        """Return the plan, or refuse."""
        self._refuse(self._hopeless)
        most = MOST_TASKS // self._design.domains
        self._refuse(lambda row: None if self._floor(row) <= most else f"{_named(row)}: too many tasks")
        floors = [self._floor(row) for row in self._rows]
        start = max(1, *floors)
        if all(draws is None for draws in self._drawn(start)[1].values()):
            raise UsageError(
                "usage.option", "nothing is expected of any row", hint=f"known: {self._metrics()}"
            )
        tasks = self._first(start, most)
        sample, met = self._drawn(tasks)
        ranked = sorted(
            (index for index, draws in met.items() if draws is not None),
            key=lambda index: (self._power(met[index]), -self._rows[index].tier),
        )
        # Where the least number of tasks or runs of a row decides, that row drives, whatever its power.
        least = [index for index, floor in enumerate(floors) if floor == tasks]
        first = least[:1] if ranked[0] not in least else []
        per_domain = {name: int(runs.sum()) for name, runs in sample.runs.items()}
        each, domains = sum(per_domain.values()), self._design.domains
        return Plan(
            profile=ProfilePart(id=self._profile.id, digest=self._profile.digest),
            tier=self._tier,
            design=self._design,
            expect=self._expect,
            criteria=[self._planned(row, met[index]) for index, row in enumerate(self._rows)],
            schedule=Schedule(
                domains=domains,
                tasks_per_domain=tasks,
                tasks=domains * tasks,
                per_domain=per_domain,
                runs_per_domain=each,
                runs=domains * each,
            ),
            driver=self._rows[(*first, *ranked)[0]].id,
            power_of_all=_together(met),
            curve=self._curve(tasks, ranked[0]),
        )

    def _drawn(self, tasks: int) -> tuple[Drawn, dict[int, NDArray[np.bool_] | None]]:
        """Return the draws with so many tasks a domain, and for every row which of them meet it."""
        if tasks not in self._known:
            sample = Drawn(self._design, self._expect, self._rates, tasks)
            met = {index: self._met(row, sample) for index, row in enumerate(self._rows)}
            sample.forget()
            self._known[tasks] = sample, met
        return self._known[tasks]

    def _kind(self, row: Row) -> Kind | None:
        kind = kind_of(row.metric.id, self._profile.tau.get(row.tier))
        return None if isinstance(kind, AsItIs | Attested) else kind

    def _met(self, row: Row, sample: Drawn) -> NDArray[np.bool_] | None:
        """Tell for every draw whether a row is met, None where nothing is expected of it."""
        kind = self._kind(row)
        if kind is None or row.operator is None or row.threshold is None:
            return None
        sums = [sample.sums(part.series, part.domain) for part in kind.parts(sample)]
        if not sums or None in sums:
            return None
        met = np.asarray(passes(kind.value(sample), row.operator, row.threshold))
        confidence = self._confidence(row)
        least = least_tasks(row, kind, confidence)
        met = met & np.all([part.k >= least for part in sums if part is not None], axis=0)
        if confidence is not None:
            bound = kind.bound(sample, confidence, lower=lower(row))
            met = met & np.asarray(shows(row, kind, bound, confidence))
        return np.asarray(met, np.bool_)

    def _confidence(self, row: Row) -> Fraction | None:
        """Return the confidence that a row's bound must reach, None where the value alone is compared."""
        if self._design.reading == "table" or of_every_run(row):
            return None
        return corrected(self._profile.confidence(row.tier), self._design.attempt)

    def _floor(self, row: Row) -> int:
        """Return the tasks per domain that a row takes whatever is expected."""
        domains = self._design.domains
        needed = -(-_ORDERED.get(row.metric.id, 0) * 4 // (5 * self._design.runs_per_task * domains))
        kind = self._kind(row)
        if kind is not None and row.threshold is not None:
            least = least_tasks(row, kind, self._confidence(row))
            needed = max(needed, least if isinstance(kind, Minimum) else -(-least // domains))
        return needed

    def _first(self, start: int, most: int) -> int:
        """Return the least tasks per domain that are enough."""
        tasks = least(lambda number: number >= start and self._enough(number), most)
        if tasks is None:
            self._refuse(lambda row: self._endless(row, most))
            raise NegativeError("plan.impossible", f"no {MOST_TASKS:,} tasks show all rows together")
        return tasks

    def _enough(self, tasks: int) -> bool:
        _, met = self._drawn(tasks)
        return all(self._power(draws) >= self._design.power for draws in met.values() if draws is not None)

    @staticmethod
    def _power(met: NDArray[np.bool_] | None) -> float:
        return 1.0 if met is None else float(met.mean())

    def _planned(self, row: Row, met: NDArray[np.bool_] | None) -> Planned:
        kind = self._kind(row)
        expected = self._expect.get(row.metric.id)
        if expected is None and isinstance(kind, Posterior | Minimum):
            expected = self._expect.get(kind.series)
        criterion, unit, confidence = row.criterion, row.metric.unit, self._confidence(row)
        threshold = number(criterion.threshold(row.tier), unit)
        assert threshold is not None  # noqa: S101 - a row that is planned is specified
        return Planned(
            id=criterion.id,
            metric=criterion.metric,
            tier=row.tier,
            operator=criterion.operator_at(row.tier),
            threshold=threshold,
            confidence=None if confidence is None else float(confidence),
            expected=None if unit is Unit.BOOLEAN else expected,
            least_tasks=None if kind is None else least_tasks(row, kind, confidence),
            power=None if met is None else float(met.mean()),
            reason=None if met is not None else _unplanned(row),
        )

    def _curve(self, tasks: int, driver: int) -> list[Point]:
        half = POINTS // 2
        most = MOST_TASKS // self._design.domains
        steps = dict.fromkeys(min(most, -(-tasks * step // half)) for step in range(1, POINTS + 1))
        points = []
        for step in steps:
            sample, met = self._drawn(step)
            points.append(
                Point(
                    tasks=step * self._design.domains,
                    runs=sample.total,
                    power=self._power(met[driver]),
                    power_of_all=_together(met),
                )
            )
        return points

    def _metrics(self) -> str:
        kinds = [(row.metric.id, self._kind(row)) for row in self._rows]
        names = {name for name, kind in kinds if not isinstance(kind, Posterior | None)}
        if any(isinstance(kind, Posterior) or name in _SUCCESS for name, kind in kinds):
            names.add("r_op")
        return ", ".join(sorted(names))

    def _check_named(self) -> None:
        """Refuse expectations that no row of the tier uses, or that need one of r_op beside them."""
        known = self._metrics()
        for metric in self._expect:
            if metric not in known.split(", "):
                raise UsageError(
                    "usage.option",
                    f"{metric!r} is no metric whose value is expected for Tier {self._tier} of"
                    f" {self._profile.id}",
                    hint=f"known: {known}",
                )
            if metric in {*_SUCCESS, "irs"} and "r_op" not in self._expect:
                raise UsageError("usage.option", f"{metric} is planned together with an expectation of r_op")

    def _hopeless(self, row: Row) -> str | None:
        """Tell why no number of tasks shows a row, None where enough may."""
        kind = self._kind(row)
        metric = kind.series if isinstance(kind, Posterior) else row.metric.id
        expected = self._expect.get(metric)
        if expected is None or row.operator is None or row.threshold is None:
            return None
        limit = kind.tau if isinstance(kind, Posterior) else row.threshold
        spec = CATALOGUE[metric]
        ends = {spec.low, spec.high}
        strict = {">=": ">", "<=": "<"}.get(row.operator, row.operator)
        if expected in ends and passes(expected, row.operator, limit):
            return None  # every run at its best: there is nothing to be unlucky with
        if passes(expected, strict, limit):  # type: ignore[arg-type]
            return None
        value = shown(expected, spec.unit)
        return f"{_named(row)}: {value} expected, {asked(row.operator, limit, spec.unit)} asked"

    def _endless(self, row: Row, most: int) -> str | None:
        met = self._drawn(most)[1][self._rows.index(row)]
        if self._power(met) >= self._design.power:
            return None
        return f"{_named(row)}: too close to the threshold, more than {MOST_TASKS:,} tasks"

    def _refuse(self, complaint: Callable[[Row], str | None]) -> None:
        if complaints := [text for row in self._rows if (text := complaint(row))]:
            raise NegativeError("plan.impossible", "no number of tasks shows " + "; ".join(complaints))


def _highest(profile: Profile, criterion: Criterion, tier: int) -> list[int]:
    """Return the tiers up to `tier` whose row no higher one entails; thresholds never fall."""
    kept: list[int] = []
    for lesser in range(tier, 0, -1):
        sure = all(profile.confidence(lesser) > profile.confidence(higher) for higher in kept)
        if criterion.threshold(lesser) is not None and sure:
            kept.append(lesser)
    return sorted(kept)


def _together(met: Mapping[int, NDArray[np.bool_] | None]) -> float:
    return float(np.all([draws for draws in met.values() if draws is not None], axis=0).mean())


def _named(row: Row) -> str:
    return f"{row.id} at Tier {row.tier}"


def _unplanned(row: Row) -> str:
    """Tell why a row has no power."""
    metric = row.metric.id
    kind = kind_of(metric, None)
    if isinstance(kind, Attested):
        return "attested: state it in the manifest, with its evidence and the n it rests on"
    if isinstance(kind, AsItIs):
        return f"{_ORDERED[metric]} ordered runs at least; no power is known of it"
    return "no expectation is given"
