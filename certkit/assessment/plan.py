"""How many tasks a tier takes: the least with which the whole tier is met with the wanted probability.

    result = plan(profile, 2, Design(reading="bounded"))
    result.schedule.tasks, result.power, result.driver

The agent is taken to be five points better than every row asks (`margin`), at most half-way to the best
value, unless something else is expected of a metric. Bundles are drawn from that, with a seed, and the row
tests of `assess` are run on each: a row with confidence limits holds where its task posterior has
P(θ > threshold) > δ, which is one Beta tail. The power is the share of 2,000 bundles in which every planned
row holds.

What is drawn:

- Success under faults: a task has a chance from a Beta law, its runs are binomial, so that runs of one task
  correlate by the ICC ρ; all domains and conditions together. Unless something else is expected, success is
  the same everywhere, and the most that any of its rows asks for. A failed run has recovery grade 0.
- Recovery grades: some successes lose .3 (or .6) of the grade. Intentional recoveries: some of the successes.
- Scores (planning efficiency, traceability): the mean of a task has a Beta law; a run varies half as much as
  yes-or-no values with its mean would, and runs of one task correlate by ρ.
- Violations: a task has a rate from a gamma law of shape .5, its runs are Poisson.

Scores and violations are drawn apart from success, so that the power is rather too low than too high. Left
out: harness errors, missing fields, attacks that do not land, errors of a model that judges, and the core
evidence rule, since every drawn run is a core run.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, sqrt
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
from msgspec import Meta, Struct, structs

from certkit.assessment import beta, bounds
from certkit.assessment.bounds import HALF, MOST_VIOLATIONS, Both, Weighted
from certkit.assessment.catalogue import CATALOGUE, WEAKEST, Unit
from certkit.assessment.profile import Criterion, Operator, Profile, Reading, exact, margin_of, passes
from certkit.assessment.row import WITHOUT_LIMIT, hardest_rows, least_of, scale
from certkit.assessment.words import threshold_text, value_text
from certkit.ground.document import Count, Digest, Document, Part, Positive, Share, Text
from certkit.ground.errors import NegativeError, UsageError
from certkit.record.record import SINGLE_FAULTS, Condition, RunKind
from certkit.record.schedule import EVEN_MIX, MAX_DOMAINS, NOMINAL_SHARE
from certkit.summary.summary import PAIRS, WINDOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

DRAWS: Final = 2_000
"""Bundles that are drawn at the final number of tasks: a standard error of .9 points at 80 %."""
BATCH: Final = 200
"""Bundles that are drawn at once."""
SEARCH: Final = 4
"""Batches that the search draws at most for one number of tasks."""
CLEAR: Final = 2.0
"""Standard errors from the wanted power at which the search stops drawing."""
STEP: Final = 25
"""The search is exact to one in so many tasks, which is about what the draws can tell."""
PEEK: Final = 2
"""Batches that are drawn for a point of the curve."""
MOST_TASKS: Final = 5_000
"""Tasks beyond which nothing is planned: the expectation is then too close to a threshold."""
NEAREST: Final = HALF
"""How far an expectation goes at most from a threshold to the best value."""
SHAPE: Final = 0.5
"""Shape of the gamma law of violations."""
SCORE_SPREAD: Final = 0.5
"""Variance of a run's score, as a share of that of yes-or-no values with its mean."""
HAIR: Final = 1e-9
"""What rounding may add to a rate."""
CURVE: Final = (Fraction(1, 2), Fraction(3, 4), Fraction(1), Fraction(5, 4), Fraction(3, 2))

_FAULTS: Final = tuple(EVEN_MIX)
_SINGLE: Final = tuple(name for name in _FAULTS if name in SINGLE_FAULTS)
_EVERY: Final = (Condition.NOMINAL.value, *_FAULTS)
_SUCCESS: Final = {"r_op", "c_nom", "single", "cascade", "adversarial_resistance"}
_GRADED: Final = ("frr", "frr_2025")
"""Recovery grades: no more than success."""
_RUNS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("r_op", "cn_frr", "pei_fault", "irs", *_GRADED), _FAULTS),
    **dict.fromkeys(("pei", "ti", "pei_2025", "violations", "harness_errors"), _EVERY),
    **dict.fromkeys(("adversarial_resistance", "attack_success_rate"), (Condition.ADVERSARIAL.value,)),
    "c_nom": (Condition.NOMINAL.value,),
    "single": _SINGLE,
    "cascade": (Condition.CASCADE.value,),
}
"""The series that are drawn, with the conditions whose runs carry them."""
_OF_SUCCESS: Final = ("r_op", "posterior", "domain_min", "adversarial_resistance", *_GRADED)
"""Metrics that success under faults has to satisfy."""


Unplanned = Literal["attested", "ordered-runs", "provisional", "every-run", "not-drawn"]


class Design(Part, frozen=True, kw_only=True):
    """What a schedule is made for.

    Attributes:
        reading: averages or confidence limits.
        strict: whether provisional rows count.
        domains: domains of equal size.
        runs_per_task: runs of a task under faults, dealt to the five conditions in turn.
        icc: how much runs of one task correlate.
        icc_tasks: the tasks in which that was measured; 0 where it was stated.
        power: the wanted probability.
        margin: by how much the agent is better than every row asks: .05 is 5 points, .25 of a traceability
            score (1 to 5) or of the violations per run (0 to 5).
        seed: of every draw.
        draws: bundles that are drawn at the final number of tasks.
        nominal_share: share of normal runs among all.
        conditions: those that are run; all of them, or the few that a profile without faults needs, each with
            `runs_per_task`.
    """

    reading: Reading
    strict: bool = False
    domains: Annotated[int, Meta(ge=1, le=MAX_DOMAINS)] = 5
    runs_per_task: Annotated[int, Meta(ge=1, le=1_000)] = 5
    icc: Annotated[float, Meta(ge=0, le=0.99)] = 0.3
    icc_tasks: Count = 0
    power: Share = 0.8
    margin: Share = 0.05
    seed: Count = 26
    draws: Positive = DRAWS
    nominal_share: Share = NOMINAL_SHARE
    conditions: tuple[Text, ...] = _EVERY


class PlannedRow(Part, frozen=True, kw_only=True):
    """A row that the tier asks for.

    Attributes:
        id: the row.
        metric: what it compares.
        tier: at which tier; rows that a harder one of the same criterion entails are left out.
        operator: how.
        threshold: with what.
        expected: what the agent is taken to have; null where nothing is.
        least_tasks: tasks below which not even flawless ones pass, in each domain for a row on domains.
        power: the share of bundles in which the row holds; null where it is not planned.
        reason: why it is not planned.
    """

    id: Text
    metric: Text
    tier: Positive
    operator: Operator
    threshold: float | bool
    expected: float | None = None
    least_tasks: Count | None = None
    power: Share | None = None
    reason: Unplanned | None = None


class Schedule(Part, frozen=True, kw_only=True):
    """How many tasks and runs there are; `per_domain` has the runs of each condition in one domain."""

    domains: Positive
    tasks_per_domain: Positive
    tasks: Positive
    per_domain: Mapping[Text, Count]
    runs_per_domain: Positive
    runs: Positive


class Point(Part, frozen=True, kw_only=True):
    """The probability that the tier is met with another number of tasks."""

    tasks: Positive
    power: Share


class Plan(Document, frozen=True, kw_only=True, tag="urn:certkit:plan:v1"):
    """How many tasks and runs a tier takes.

    Attributes:
        profile: the id of the tier table.
        profile_digest: its digest.
        tier: the tier that is to be met, with those below it.
        design: what the schedule is made for.
        expect: what the agent is taken to have, by metric.
        stated: the metrics of `expect` that the user stated.
        schedule: the answer.
        power: the probability that all planned rows are met.
        driver: the row that asks for most.
        criteria: the rows.
        curve: the probability with fewer and with more tasks.
    """

    profile: Text
    profile_digest: Digest
    tier: Positive
    design: Design
    expect: Mapping[Text, float]
    stated: tuple[Text, ...] = ()
    schedule: Schedule
    power: Share
    driver: Text
    criteria: tuple[PlannedRow, ...]
    curve: tuple[Point, ...]


class RowTest(Struct, frozen=True, eq=False):
    """A row as it is tested on drawn sums.

    Attributes:
        criterion: the row.
        tier: at which tier.
        operator: how the metric is compared.
        threshold: with what.
        confidence: δ of its limit; None where averages are compared.
        least: tasks below which it is insufficient.
        unplanned: why nothing is drawn for it.
    """

    criterion: Criterion
    tier: int
    operator: Operator
    threshold: Fraction
    confidence: float | None
    least: int
    unplanned: Unplanned | None

    @property
    def more(self) -> bool:
        """Whether more of the metric is better."""
        return self.operator in {">", ">="}


def plan(profile: Profile, tier: int, design: Design, stated: Mapping[str, float] | None = None) -> Plan:
    """Return the least schedule with which a tier is met with the wanted probability.

    Args:
        profile: the tier table.
        tier: the tier that is to be met.
        design: what the schedule is made for.
        stated: what is expected of metrics, in their units; others are better than their rows by the margin.

    Raises:
        UsageError: ``usage.option`` for a tier that is not there, or expectations that cannot be.
        NegativeError: ``plan.impossible`` where no number of tasks is enough.
    """
    if tier not in profile.tier_numbers:
        known = f"tier {tier} is not in profile {profile.id}, which has 1 to {len(profile.tiers)}"
        raise UsageError("usage.option", known)
    if profile.needs and RunKind.FAULTS not in profile.needs:
        normal, attacks = _EVERY[0] * (RunKind.NORMAL in profile.needs), str(Condition.ADVERSARIAL)
        conditions = filter(None, (normal, attacks * (RunKind.ATTACKS in profile.needs)))
        design = structs.replace(design, conditions=tuple(conditions))
    search = _Search(profile, tier, design, stated or {})
    tasks = search.least()
    power, powers = search.powers(tasks)
    while power < design.power:
        tasks = search.more(tasks)
        power, powers = search.powers(tasks)
    runs = {name: int(column.sum()) for name, column in dealt(design, tasks).items()}
    sizes = dict.fromkeys(max(search.floor, ceil(tasks * part)) for part in CURVE)
    every, domains = sum(runs.values()), design.domains
    return Plan(
        profile=profile.id,
        profile_digest=profile.digest,
        tier=tier,
        design=design,
        expect={name: round(value, 6) for name, value in search.expect.items()},
        stated=tuple(sorted(stated or {})),
        schedule=Schedule(
            domains=domains,
            tasks_per_domain=tasks,
            tasks=domains * tasks,
            per_domain={name: number for name, number in runs.items() if number},
            runs_per_domain=every,
            runs=domains * every,
        ),
        power=power,
        driver=search.driver(tasks, powers),
        criteria=tuple(search.planned(test, powers.get(test)) for test in search.rows),
        curve=tuple(
            Point(tasks=size * domains, power=power if size == tasks else search.share(size))
            for size in sizes
        ),
    )


def expectations(
    tests: Iterable[RowTest], profile: Profile, margin: float, stated: Mapping[str, float]
) -> dict[str, float]:
    """Return what the agent is taken to have, by metric, in the metric's unit.

    Args:
        tests: the planned rows.
        profile: whose τ the posterior rows have.
        margin: by how much the agent is better than every row.
        stated: what the user expects.

    Raises:
        UsageError: ``usage.option`` for metrics that no row uses, and values that cannot be.
    """
    wanted: dict[str, float] = {}
    for test in sorted(tests, key=lambda test: test.tier):
        metric = test.criterion.metric
        limit = profile.tau[test.tier] if metric == "posterior" else test.threshold
        wanted[metric] = _better(metric, limit, exact(margin), more=test.more)
    known = ({*wanted} - {"posterior"}) | {"r_op", "c_nom"}
    for metric, value in stated.items():
        if metric not in known:
            message = f"nothing can be expected of {metric!r} here"
            raise UsageError("usage.option", message, hint=f"known: {', '.join(sorted(known))}")
        low, high = CATALOGUE[metric].low, CATALOGUE[metric].high or MOST_VIOLATIONS
        if not low <= value <= high:
            message = f"{metric}: expected values are {float(low):g} to {float(high):g}, not {value:g}"
            raise UsageError("usage.option", message)
    success = stated.get("r_op", max((wanted.get(name, 0.0) for name in _OF_SUCCESS), default=0.0))
    normal = max(success, *(wanted.get(name, 0.0) for name in ("c_nom", "domain_min_nominal")))
    normal = stated.get("c_nom", success + stated["gap"] / 100 if "gap" in stated else normal)
    if not {*_OF_SUCCESS, "gap"} & {*wanted, *stated}:
        success = normal  # nothing is asked under faults: tasks are as hard as normal runs show
    same = dict.fromkeys(("r_op", "adversarial_resistance", "domain_min"), success)
    same |= {
        "c_nom": normal,
        "domain_min_nominal": normal,
        "gap": 100 * (normal - success),
        "cascade_penalty": 0.0,
    }
    same |= {name: min(success, wanted[name]) for name in _GRADED if name in wanted}
    return {name: stated.get(name, same.get(name, wanted.get(name, 0.0))) for name in sorted(known)}


def _better(metric: str, limit: Fraction, margin: Fraction, *, more: bool) -> float:
    """Return a value that is better than a threshold by the margin."""
    spec = CATALOGUE["r_op" if metric == "posterior" else metric]
    size = {Unit.PP: 100, Unit.POINTS: 5, Unit.PER_RUN: MOST_VIOLATIONS}.get(spec.unit, 1) * margin
    best = (spec.high or Fraction(MOST_VIOLATIONS)) if more else spec.low
    size = min(size, abs(best - limit) * NEAREST)
    return float(limit + size if more else limit - size)


class Bundles:
    """A batch of drawn bundles: for each series the tasks' means and runs, draws × (domains · tasks)."""

    def __init__(self, design: Design, expect: Mapping[str, float], tasks: int, batch: int) -> None:
        self.design, self.expect, self._seed = design, expect, (design.seed, tasks, batch)
        self._random = np.random.Generator(np.random.PCG64(self._seed))
        self._shape = (BATCH, design.domains * tasks)
        self._runs = {name: np.tile(runs, design.domains) for name, runs in dealt(design, tasks).items()}
        means = np.repeat(domain_rates(expect, design.domains), tasks)
        chance = self._chances(means)
        self._successes: dict[str, Integers] = {}
        for name, rates in condition_rates(expect, design.domains).items():
            # A harder condition takes away successes in proportion, an easier one failures.
            rate, inner = np.repeat(rates, tasks), np.clip(means, HAIR, 1 - HAIR)
            easier = 1 - (1 - chance) * (1 - rate) / (1 - inner)
            under = np.where(rate > means, easier, chance * rate / inner)
            self._successes[name] = self._random.binomial(self._runs[name], np.clip(under, 0, 1))
        self._values: dict[str, tuple[Floats, Integers]] = {}

    def _chances(self, mean: float | Floats) -> Floats:
        """Return a chance of each task from a Beta law with this mean and the ICC as its correlation."""
        icc = max(self.design.icc, HAIR)
        return self._beta(mean, (1 - icc) / icc)

    def _beta(self, mean: float | Floats, size: float | Floats) -> Floats:
        inner = np.clip(mean, HAIR, 1 - HAIR)
        return self._random.beta(inner * size, (1 - inner) * size, self._shape)

    def values(self, series: str, domain: int | None = None) -> tuple[Floats, Integers]:
        """Return the mean of each task in the metric's unit, 0 where no run carries it, and its runs."""
        if series not in self._values:
            # A stream of its own: what is drawn does not depend on the order in which rows are tested.
            stream = (*self._seed, list(_RUNS).index(series))
            self._random = np.random.Generator(np.random.PCG64(stream))
            y, n = self._drawn(series)
            x = np.divide(y, n, out=np.zeros(self._shape), where=np.broadcast_to(n > 0, self._shape))
            self._values[series] = x, np.broadcast_to(n, self._shape)
        x, n = self._values[series]
        if domain is None:
            return x, n
        width = x.shape[1] // self.design.domains
        place = slice(domain * width, (domain + 1) * width)
        return x[:, place], n[:, place]

    def _drawn(self, series: str) -> tuple[NDArray[Any], Integers]:
        """Return the sum over the runs of each task, and its runs."""
        n: Integers = np.sum([self._runs[name] for name in _RUNS[series]], axis=0)
        won: Integers = np.sum([self._successes[name] for name in _RUNS[series]], axis=0)
        if series in _SUCCESS:
            return won, n
        mean, spec = self.expect[series], CATALOGUE[series]
        if series in _GRADED:
            grade = mean / self.expect["r_op"] if self.expect["r_op"] else 1.0
            loss = 0.3 if grade >= 0.7 else 0.6  # noqa: PLR2004 - grades are 1, .7 and .4
            return won - loss * self._random.binomial(won, min(1.0, (1 - grade) / loss)), n
        if series == "irs":
            return self._random.binomial(won, self._chances(mean)), won
        if series == "violations":
            rate = self._random.gamma(SHAPE, mean / SHAPE, self._shape)
            most = MOST_VIOLATIONS if self.design.reading == "bounded" else np.inf
            each = [np.minimum(self._random.poisson(rate), most) * (run < n) for run in range(n.max())]
            return np.sum(each, axis=0), n
        if spec.unit is Unit.FRACTION:
            return self._random.binomial(n, self._chances(mean)), n
        low, span = float(spec.low), float((spec.high or 1) - spec.low)
        icc = self.design.icc
        spread = SCORE_SPREAD * (icc + (1 - icc) / np.maximum(n, 1))
        return (low + span * self._beta((mean - low) / span, 1 / spread - 1)) * n, n


def dealt(design: Design, tasks: int) -> dict[str, Integers]:
    """Return the runs of each task of a domain by condition, dealt so that no two tasks differ by two."""
    shares = {_EVERY[0]: NOMINAL_SHARE / (1 - NOMINAL_SHARE), **EVEN_MIX}
    if design.conditions != _EVERY:
        shares = {name: float(name in design.conditions) for name in _EVERY}
    first, result = 0, {}
    for name, share in shares.items():
        runs = ceil(round(share * design.runs_per_task * tasks, 9))
        more = np.isin(np.arange(tasks), (first + np.arange(runs % tasks)) % tasks)
        result[name] = runs // tasks + more.astype(np.int64)
        first = first + runs if name in _FAULTS else 0
    return result


def condition_rates(expect: Mapping[str, float], domains: int) -> dict[str, Floats]:
    """Return the success under each condition in each domain.

    Raises:
        UsageError: ``usage.option`` where one would need a success outside 0 to 1.
    """
    penalty = expect.get("cascade_penalty", 0.0) / 100
    single = expect["r_op"] + penalty / len(_FAULTS)
    attacked = expect.get("adversarial_resistance", single)
    rates = dict.fromkeys(_FAULTS, (len(_SINGLE) * single - attacked) / (len(_SINGLE) - 1))
    rates |= {"nominal": expect["c_nom"], "adversarial": attacked, "cascade": single - penalty}
    apart = domain_rates(expect, domains) - expect["r_op"]
    for name, value in rates.items():
        for rate in (value + apart).tolist():
            if abs(rate - 0.5) > 0.5 + HAIR:
                message = f"the expectations would need a success of {100 * rate:.1f} % under {name}"
                raise UsageError("usage.option", message)
    return {name: np.clip(value + apart, 0.0, 1.0) for name, value in rates.items()}


def domain_rates(expect: Mapping[str, float], domains: int) -> Floats:
    """Return the success of each domain: the weakest, then others that make up the mean.

    Raises:
        UsageError: ``usage.option`` where they cannot.
    """
    rate, weakest = expect["r_op"], expect.get("domain_min", expect["r_op"])
    others = (domains * rate - weakest) / (domains - 1) if domains > 1 else rate
    if weakest > rate or others > 1 + HAIR or (domains == 1 and weakest < rate):
        message = f"domain_min: a weakest of {domains} at {weakest:g} does not fit r_op {rate:g} over all"
        raise UsageError("usage.option", message)
    return np.array([weakest, *[min(others, 1.0)] * (domains - 1)])


def row_check(test: RowTest, profile: Profile, bundles: Bundles) -> Callable[[int], bool]:
    """Return the function that tells whether a row holds in a drawn bundle, by its number in the batch."""
    metric, threshold = test.criterion.metric, test.threshold
    if metric in PAIRS:
        parts: list[tuple[str, int | None]] = [(name, None) for name in PAIRS[metric]]
    elif metric in WEAKEST:
        parts = [(WEAKEST[metric], number) for number in range(bundles.design.domains)]
    else:
        parts = [("r_op" if metric == "posterior" else metric, None)]
    columns = [bundles.values(*part) for part in parts]
    enough = np.all([(n > 0).sum(axis=1) >= test.least for _, n in columns], axis=0).tolist()
    if test.confidence is None:
        means = [(x * n).sum(axis=1) / np.maximum(n.sum(axis=1), 1) for x, n in columns]
        if metric == "posterior":
            runs, tau = columns[0][1].sum(axis=1), float(profile.tau[test.tier])
            won = np.round(means[0] * runs).tolist()
            chance = [beta.above(tau, 1 + y, 1 + n - y) for y, n in zip(won, runs.tolist(), strict=True)]
        elif metric in PAIRS:
            chance = (100 * (means[0] - means[1])).tolist()
        else:
            chance = (np.min if test.more else np.max)(means, axis=0).tolist()
        return lambda draw: enough[draw] and passes(chance[draw], test.operator, threshold)
    confidence = test.confidence
    if metric in PAIRS:
        limit = float(1 - (threshold if not test.more else -threshold) / 100) / 2
        first, second = columns if not test.more else reversed(columns)
        sides = [_difference(first, second, weights) for weights in _weightings(first[1], second[1])]
        return lambda draw: (
            enough[draw] and all(bounds.difference(*side[draw]).exceeds(limit, confidence) for side in sides)
        )
    start, slope = scale(parts[0][0], more=test.more)
    limit, passed = float(start + slope * threshold), int(start + slope * threshold >= HALF)
    weighed = [
        _weighted(float(start) + float(slope) * x, weights[0])
        for x, n in columns
        for weights in _weightings(n)
    ]
    return lambda draw: (
        enough[draw]
        and all(bounds.law(sums[draw], passed=passed).exceeds(limit, confidence) for sums in weighed)
    )


def _weightings(*runs: Integers) -> list[list[Floats]]:
    """Return the weights of tasks, alike and by their runs, of each series; once where both are the same."""
    alike = [(n > 0).astype(np.float64) for n in runs]
    sizes = [np.maximum(n.sum(axis=1, keepdims=True), 1) for n in runs]
    by_runs = [n * w.sum(axis=1, keepdims=True) / size for n, w, size in zip(runs, alike, sizes, strict=True)]
    return [alike] if np.allclose(alike, by_runs) else [alike, by_runs]


def _weighted(x: Floats, w: Floats) -> list[Weighted]:
    return [Weighted._make(sums) for sums in _sums(w, w * x, w * w * x * x, w * w * x, w * w)]


def _difference(
    first: tuple[Floats, Integers], second: tuple[Floats, Integers], weights: list[Floats]
) -> list[tuple[Weighted, Weighted, Both]]:
    (a, _), (b, _), (w_a, w_b) = first, second, weights
    w = w_a * w_b
    both = (Both._make(sums) for sums in _sums(w, w * a * b, w * a, w * b))
    return list(zip(_weighted(a, w_a), _weighted(b, w_b), both, strict=True))


def _sums(*parts: Floats) -> list[list[float]]:
    """Return sums over tasks, a list for each draw: plain numbers, as `bounds` takes them."""
    listed: list[list[float]] = np.stack([part.sum(axis=1) for part in parts], axis=1).tolist()
    return listed


class _Search:
    """Finds the least number of tasks per domain."""

    def __init__(self, profile: Profile, tier: int, design: Design, stated: Mapping[str, float]) -> None:
        self.profile, self.design = profile, design
        bounded = design.reading == "bounded"
        self.rows = [
            self._test(*row)
            for row in hardest_rows(profile, tier)
            if not (bounded and row[0].metric == "posterior")
        ]
        self.drawn = [test for test in self.rows if test.unplanned is None]
        if not self.drawn:
            raise NegativeError("plan.impossible", f"no row of Tier {tier} of {profile.id} rests on tasks")
        self.expect = expectations(self.drawn, profile, design.margin, stated)
        condition_rates(self.expect, design.domains)
        if hopeless := [text for test in self.drawn if (text := self._hopeless(test))]:
            raise NegativeError("plan.impossible", "no number of tasks is enough: " + "; ".join(hopeless))
        self.floor = max(1, *(self._floor(test) for test in self.rows))
        self.most = max(self.floor, MOST_TASKS // design.domains)
        self._failures = dict.fromkeys(self.drawn, 0)

    def _test(self, criterion: Criterion, tier: int) -> RowTest:
        confidence, operator = self.profile.confidence(tier), criterion.operator_at(tier)
        bounded = self.design.reading == "bounded" and criterion.metric not in WITHOUT_LIMIT
        least = least_of(criterion, tier, confidence) if bounded and operator != "is" else criterion.min_n
        threshold = criterion.threshold(tier) or Fraction(0)
        reason = self._unplanned(criterion, tier)
        return RowTest(
            criterion, tier, operator, threshold, float(confidence) if bounded else None, least, reason
        )

    def _unplanned(self, criterion: Criterion, tier: int) -> Unplanned | None:
        """Return why nothing is drawn for a row, None where it is planned."""
        metric, spec = criterion.metric, CATALOGUE[criterion.metric]
        if criterion.provisional and not self.design.strict:
            return "provisional"
        if spec.attested:
            return "attested"
        if metric == "csi":
            return "ordered-runs"
        if metric not in {*_RUNS, *WEAKEST, *PAIRS, "posterior"}:
            return "not-drawn"
        every = criterion.operator_at(tier) == ">=" and criterion.threshold(tier) == spec.high
        return "every-run" if every else None

    def _hopeless(self, test: RowTest) -> str | None:
        """Return why no number of tasks shows a row, None where enough may."""
        metric, operator, limit = test.criterion.metric, test.operator, test.threshold
        if metric == "posterior":
            metric, limit = "r_op", self.profile.tau[test.tier]
        value, unit = exact(self.expect[metric]), CATALOGUE[metric].unit
        if margin_of(value, operator, limit) > 0:
            return None
        asked = threshold_text(operator, limit, unit)
        return f"{test.criterion.id} at Tier {test.tier}: {value_text(value, unit)} expected, {asked} asked"

    def _floor(self, test: RowTest) -> int:
        """Return the tasks per domain below which a row is insufficient, whatever the agent does."""
        domains = self.design.domains
        if test.unplanned == "ordered-runs":
            return ceil(WINDOW * (1 - NOMINAL_SHARE) / (self.design.runs_per_task * domains))
        least = 1 if test.unplanned else max(1, test.least)
        return least if test.criterion.metric in WEAKEST else -(-least // domains)

    def more(self, tasks: int, times: float = 1 + 1 / STEP) -> int:
        """Return a larger number of tasks per domain, or refuse."""
        if tasks >= self.most:
            message = f"more than {MOST_TASKS:,} tasks are needed: an expectation is too close to a threshold"
            raise NegativeError("plan.impossible", message, hint="expect more with --margin or --expect")
        return min(self.most, max(tasks + 1, int(tasks * times)))

    def least(self) -> int:
        """Return about the least tasks per domain that are enough: by doubling, then by halving."""
        low, high = self.floor - 1, self.floor
        while not self._enough(high):
            low, high = high, self.more(high, 2)
        while high - low > max(1, high // STEP):
            middle = (low + high) // 2
            low, high = (low, middle) if self._enough(middle) else (middle, high)
        return high

    def _enough(self, tasks: int) -> bool:
        """Tell whether the tier is met often enough; few draws decide where it is clear."""
        wanted, met = self.design.power, 0
        for batch in range(SEARCH):
            met += self._met(tasks, batch)
            drawn = (batch + 1) * BATCH
            if abs(met / drawn - wanted) > CLEAR * sqrt(wanted * (1 - wanted) / drawn):
                break
        return met / drawn >= wanted

    def share(self, tasks: int) -> float:
        """Return the share of some drawn bundles in which every planned row holds."""
        return sum(self._met(tasks, batch) for batch in range(PEEK)) / (PEEK * BATCH)

    def _met(self, tasks: int, batch: int) -> int:
        """Return in how many bundles every row holds; rows that failed most often are tested first."""
        bundles, left = Bundles(self.design, self.expect, tasks, batch), list(range(BATCH))
        for test in sorted(self.drawn, key=lambda test: -self._failures[test]):
            holds = row_check(test, self.profile, bundles)
            holding = [draw for draw in left if holds(draw)]
            self._failures[test] += len(left) - len(holding)
            left = holding
        return len(left)

    def powers(self, tasks: int) -> tuple[float, dict[RowTest, float]]:
        """Return the share of all draws in which every row holds, and that of each row."""
        met, each = 0, dict.fromkeys(self.drawn, 0)
        for batch in range(DRAWS // BATCH):
            bundles, left = Bundles(self.design, self.expect, tasks, batch), set(range(BATCH))
            for test in self.drawn:
                holds = row_check(test, self.profile, bundles)
                holding = [draw for draw in range(BATCH) if holds(draw)]
                each[test] += len(holding)
                left.intersection_update(holding)
            met += len(left)
        return met / DRAWS, {test: count / DRAWS for test, count in each.items()}

    def driver(self, tasks: int, powers: Mapping[RowTest, float]) -> str:
        """Return the row that asks for most: where its least tasks decide, or else the one of least power."""
        if tasks == self.floor:
            return next(test for test in self.rows if self._floor(test) == tasks).criterion.id
        return min(powers, key=lambda test: (powers[test], -test.tier)).criterion.id

    def planned(self, test: RowTest, power: float | None) -> PlannedRow:
        """Return a row as the plan shows it."""
        metric, drawn = test.criterion.metric, test.unplanned is None
        return PlannedRow(
            id=test.criterion.id,
            metric=metric,
            tier=test.tier,
            operator=test.operator,
            threshold=True if test.operator == "is" else float(test.threshold),
            expected=round(self.expect["r_op" if metric == "posterior" else metric], 6) if drawn else None,
            least_tasks=test.least if drawn else None,
            power=power,
            reason=test.unplanned,
        )
