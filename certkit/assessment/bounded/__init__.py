"""From a summary to judged rows: the metrics, both readings of every row, and the tier of each reading.

The table reading compares point estimates with thresholds, the bounded reading confidence limits, which the
row's kind computes. The confidence δ is the tier's own, raised for every attempt after the first. A row that
the table reading does not meet is never met here.

- Tasks must be declared independent: by a `cluster_id` on every record, or by `protocol.tasks_independent`.
  With neither, rows that rest on tasks are insufficient, since no arithmetic sees families that nobody names.
- A row is insufficient where it has so few tasks that even flawless results would not pass.
- Consistency has no known bound: it is compared as it is. Yes-or-no rows, and rows that every run must
  meet, which no bound reaches, stand as the table reads them.

Beside Wilson's interval stand Clopper and Pearson's, Jeffreys', and that of the task posterior. The first
three treat runs as independent, the last one tasks. It is computed with equal task weights and with weights
by number of runs, each limit at one-sided confidence (1 + level)/2; the wider limits are taken.

With ``stopping = "anytime"`` in the profile the bounds are the anytime ones of `statistics.posterior`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import structs

from certkit.assessment import criteria
from certkit.assessment.criteria import Bounded, Row, Status, passes
from certkit.assessment.kinds import AsItIs, Attested, Difference, Kind, TaskMean, fewest, holds, kind_of
from certkit.assessment.metrics import metrics_2025, metrics_2026
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.metrics.metric import shown
from certkit.assessment.metrics.series import COST, METRICS, View
from certkit.assessment.rater_error.labels import GRADED, SHARES, gives_outcomes, labelled, unlabelled
from certkit.assessment.statistics import posterior
from certkit.assessment.statistics.estimators import LEVEL, Interval, Z, clopper_pearson, jeffreys
from certkit.assessment.statistics.posterior import FIVE, corrected, tasks_needed
from certkit.ground import wording
from certkit.ground.wording import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.metrics.metric import Metric
    from certkit.assessment.profile import Profile, Reading
    from certkit.bundle.manifest import Manifest
    from certkit.summary.summary import Summary
    from certkit.summary.tasks import Number, TaskSums


ICC = 0.3
"""How much runs of one task are taken to correlate in rates, and where the tasks found are all alike."""


class Judged:
    """A summary as judged by a profile: every metric, and every row in both readings."""

    def __init__(self, summary: Summary, manifest: Manifest, profile: Profile) -> None:
        protocol, calibration = manifest.protocol, summary.calibration
        self.profile = profile
        self.attempt = protocol.attempt or 1
        self.families = summary.unclustered == 0
        self.independent = self.families or protocol.tasks_independent is True
        anytime = profile.stopping == "anytime"
        self.view = View(
            summary, manifest, profile.tau, anytime=anytime, labelled=labelled(calibration, protocol)
        )
        self._unlabelled = unlabelled(calibration, protocol)
        if anytime and gives_outcomes(protocol, calibration):
            self._unlabelled = "no limit is known that holds at any time where a model gave the outcomes"
        measured = (*metrics_2026.metrics(self.view), *metrics_2025.metrics(self.view))
        self.metrics = {metric.id: criteria.withheld(profile, metric) for metric in measured}
        self._table = criteria.table(profile, self.metrics, lambda metric: fewest(self.view, metric))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Every criterion at every tier, in both readings."""
        return tuple(structs.replace(row, bounded=self._read(row)) for row in self._table)

    def tier(self, reading: Reading) -> int:
        """Return the tier attained under a reading, 0 for none; no bound is taken that cannot change it."""
        attained = 0
        for number in self.profile.tier_numbers if self.view.summary.records else ():
            rows = [row for row in self._table if row.tier == number and row.threshold is not None]
            if not all(row.status is Status.MET for row in rows):
                break
            if reading == "bounded" and any(
                (self._read(row) or row).status is not Status.MET for row in rows
            ):
                break
            attained = number
        return attained

    def confidence(self, tier: int) -> Fraction:
        """Return the confidence that a row of `tier` must hold with, at this attempt."""
        return corrected(self.profile.confidence(tier), self.attempt)

    def kind(self, row: Row) -> Kind | Attested | AsItIs | None:
        """Return the kind of a row."""
        return kind_of(row.metric.id, self.profile.tau.get(row.tier))

    def _read(self, row: Row) -> Bounded | None:
        """Return the bounded reading of a row, None where the tier does not specify it."""
        if row.threshold is None or row.operator is None:
            return None
        kind, confidence = self.kind(row), float(self.confidence(row.tier))
        if isinstance(kind, AsItIs) and row.status is not Status.NOT_TESTED:
            return self._as_it_is(row, kind)
        few = row.few and not isinstance(kind, AsItIs)
        if row.status is Status.NOT_TESTED or (row.status is Status.INSUFFICIENT and not few):
            return Bounded(status=row.status, confidence=confidence, reason=row.reason)
        if row.metric.unit is Unit.BOOLEAN:
            return Bounded(status=row.status, confidence=confidence, rests_on="an attestation, no bound")
        if of_every_run(row):
            return Bounded(status=row.status, confidence=confidence, rests_on="every run, no bound")
        if isinstance(kind, Attested):
            return self._attested(row, kind)
        if kind is None or isinstance(kind, AsItIs):
            reason = f"no bound is defined for {row.metric.id}"
            return Bounded(status=Status.INSUFFICIENT, confidence=confidence, reason=reason)
        if unknown := self._uncorrected(row, kind):
            return Bounded(status=Status.INSUFFICIENT, confidence=confidence, reason=unknown)
        return self._bounded(row, kind)

    def _uncorrected(self, row: Row, kind: Kind) -> str | None:
        """Return why a row that a model's outcomes enter has no bound, None where it has one.

        Labels correct the lower limit of a series in `SHARES` or `GRADED`.
        """
        series = {part.series for part in kind.parts(self.view)}
        if not series & (COST.keys() | GRADED.keys()):
            return None
        whole = not isinstance(kind, Difference) and lower(row) and series <= GRADED.keys() | SHARES.keys()
        if self._unlabelled or self.view.labelled is None or whole:
            return self._unlabelled
        return f"a model gave the outcomes, and labels do not correct {row.metric.id}"

    def _bounded(self, row: Row, kind: Kind) -> Bounded:
        confidence = self.confidence(row.tier)
        k, rests_on = self._rests_on(kind)
        plain = Bounded(status=Status.INSUFFICIENT, confidence=float(confidence), k=k, rests_on=rests_on)
        if not self.independent:
            return structs.replace(plain, reason=wording.UNDECLARED)
        if k == 0:
            return structs.replace(plain, reason="no run that a bound could rest on")
        if few := self.few(row):
            return structs.replace(plain, reason=few)
        bound = float(kind.bound(self.view, confidence, lower=lower(row)))
        met = row.status is Status.MET and shows(row, kind, bound, confidence)
        return structs.replace(plain, status=Status.MET if met else Status.NOT_MET, bound=bound)

    def _rests_on(self, kind: Kind) -> tuple[int, str]:
        """Return the number of tasks that a row rests on, the least where it has parts, and so in words."""
        told, fewest = [], None
        for part in kind.parts(self.view):
            sums = self.view.sums(part.series, part.domain)
            k, n = (0, 0) if sums is None else (sums.k, sums.n)
            place = part.domain or ("" if isinstance(kind, TaskMean) else _PLACE.get(part.series, ""))
            words = f"{self._tasks(k)}, {many(n)}" + (f" ({place})" if place else "")
            told.append((k, n, words))
            fewest = k if fewest is None else min(fewest, k)
            if sums is not None and CATALOGUE.get(part.series, CATALOGUE["r_op"]).high is None:
                told[-1] = (k, n, words + _supposed(float(sums.most / sums.scale)))
        if len(told) > 2:  # noqa: PLR2004 - both sides of a difference are told
            smallest = min(told)[2]
            return fewest or 0, f"{len(told)} domains; fewest: {smallest}"
        return fewest or 0, " and ".join(words for *_, words in told)

    def _tasks(self, k: int) -> str:
        if self.families:
            return f"{k:,} {'family' if k == 1 else 'families'} of tasks"
        return many(k, "task")

    def few(self, row: Row) -> str | None:
        """Tell which tasks a row lacks, where it rests on so few that flawless ones would not carry it."""
        kind = self.kind(row)
        if kind is None or isinstance(kind, Attested | AsItIs) or row.threshold is None or of_every_run(row):
            return None
        confidence = None if self.view.anytime else self.confidence(row.tier)
        least = least_tasks(row, kind, confidence)
        for part in kind.parts(self.view):
            sums = part.sums(self.view)
            if sums.k < least:
                where = f"{part.domain}: " if part.domain else ""
                return f"{where}{self._tasks(sums.k)}; Tier {row.tier} takes at least {least:,}" + (
                    self._about(row, kind, part, least)
                )
        return None

    def _about(self, row: Row, kind: Kind, part: TaskMean, least: int) -> str:
        """Tell about how many tasks would show the value that was found, where there is such a number."""
        if len(kind.parts(self.view)) > 1 and part.domain is None:
            return ""  # what both sides of a difference would take together is for `plan` to say
        threshold = self.profile.tau[row.tier] if row.metric.by_tier is not None else row.threshold
        sums = part.sums(self.view)
        start, slope = part.line(sums, lower=lower(row))
        value = part.value(self.view)
        mean, unit = float(start + slope * value), CATALOGUE[part.series].unit
        # Few tasks tell little of how much rates vary; other scores are no all-or-nothing.
        varies = 0.0 if unit is Unit.FRACTION else spread(sums, float(slope))
        needed = tasks_needed(
            mean,
            float(start + slope * (threshold or 0)),
            float(self.confidence(row.tier)),
            spread=varies or mean * (1 - mean) * (ICC + (1 - ICC) * sums.k / sums.n),
        )
        return (
            ""
            if needed is None or needed <= least
            else f", and about {_round(needed):,} to show {shown(value, unit)}"
        )

    def _as_it_is(self, row: Row, kind: AsItIs) -> Bounded:
        """Judge consistency by the windowed index, which has no bound."""
        metric = self.metrics[kind.metric]
        judged = criteria.judge(row.criterion, metric, row.tier, row.k)
        value = "" if metric.value is None else f" {float(metric.value):.4f}"
        status = Status.INSUFFICIENT if judged.status is Status.NOT_TESTED else judged.status
        if status is Status.MET and row.status is not Status.MET:
            # A row that the table does not meet is never met by bounds.
            status = Status.NOT_MET if row.status is Status.NOT_MET else Status.INSUFFICIENT
        return Bounded(
            status=status,
            confidence=float(self.confidence(row.tier)),
            rests_on=f"{kind.metric}{value}, no bound",
            reason=judged.reason,
        )

    def _attested(self, row: Row, kind: Attested) -> Bounded:
        """Bound an attested mean on the number that is stated with it, taken as independent."""
        confidence, n = self.confidence(row.tier), row.metric.n
        plain = Bounded(status=Status.INSUFFICIENT, confidence=float(confidence), k=n)
        if n is None or row.threshold is None:
            return structs.replace(plain, reason="the attestation does not state on how many it rests")
        least = kind.least(row.threshold, confidence, lower=lower(row))
        if n < least:
            reason = f"{n:,} attested; Tier {row.tier} takes at least {least:,}"
            return structs.replace(plain, reason=reason)
        bound = kind.bounded(row.metric, confidence, lower=lower(row))
        met = row.status is Status.MET and row_passes(row, bound)
        return structs.replace(
            plain,
            status=Status.MET if met else Status.NOT_MET,
            bound=bound,
            rests_on=f"{n:,} attested, taken as independent",
        )


def spread(sums: TaskSums, slope: float) -> float:
    """Return the variance Σ(x − x̄)²/(k − 1) of the tasks' values, 0 for one task."""
    if sums.k == 1:
        return 0.0
    squares = max(0, sums.xx - sums.x**2 / sums.k)  # the sums of quotients are rounded down
    return slope**2 * float(squares / (sums.scale**2 * (sums.k - 1)))


_PLACE = {"single": "single faults", "cascade": "cascade", "c_nom": "nominal", "r_op": "under faults"}


def _supposed(most: float) -> str:
    """Say which end of a count's scale its bound supposes, since tasks that were not seen may have more."""
    seen = ", the most seen" if most > FIVE else ""
    return f"; supposes that no task averages more than {max(most, FIVE):.3g}{seen}"


def lower(row: Row) -> bool:
    """Tell whether a row asks for much, so that the lower bound counts."""
    return row.operator in {">", ">="}


def least_tasks(row: Row, kind: Kind, confidence: Fraction | None) -> int:
    """Return the number of tasks below which a row is not judged, in every part.

    Where flawless tasks would just pass at the confidence (None: for any number of tasks), and what the
    profile asks for, if that is more.
    """
    assert row.threshold is not None  # noqa: S101 - rows without one are not judged
    least = 1 if confidence is None else kind.least(row.threshold, confidence, lower=lower(row))
    return max(least, row.criterion.min_n)


def shows(row: Row, kind: Kind, bound: Number, confidence: Fraction) -> Number:
    """Tell whether a bound, or each of many, carries a row."""
    return row_passes(row, bound) & holds(kind, bound, confidence)


def row_passes(row: Row, value: Number) -> Number:
    """Tell whether a value passes a row that is judged."""
    assert row.operator is not None  # noqa: S101 - rows without one are not judged
    assert row.threshold is not None  # noqa: S101 - the same
    return passes(value, row.operator, row.threshold)


def of_every_run(row: Row) -> bool:
    """Tell whether a row asks for the most that its metric can be, which no bound ever reaches."""
    return (
        row.operator == ">=" and row.threshold is not None and row.threshold == CATALOGUE[row.metric.id].high
    )


def size_needed(
    metric: str, value: float, threshold: float, interval: Interval, *, size: int, confidence: float
) -> int | None:
    """Return about how many tasks, or runs, tell a value from a threshold four times out of five.

    `interval` is what `size` of them gave, and the value stays. None beyond 100,000.
    """
    start, slope = map(float, TaskMean(metric).line(None, lower=value > threshold))
    error = slope * (interval.high - interval.low) / 2 / Z
    rate, limit = start + slope * value, start + slope * threshold
    # The interval's variance holds the two prior tasks, which `tasks_needed` adds itself.
    varies = ((size + 2) * (size + 3) * error**2 - rate**2 - (1 - rate) ** 2) / size
    needed = tasks_needed(rate, limit, confidence, spread=max(0.0, varies))
    return None if needed is None else _round(needed)


def _round(number: int) -> int:
    """Return a number to two digits, rounded up: it is an estimate and shall look like one."""
    step: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // step) * step


LEAST: Final = 2
"""Tasks below which there is no interval: one task shows nothing of how tasks differ."""

TASK_INTERVAL: Final = "task-posterior"
"""The method of the interval that takes tasks, not runs, as independent."""

_BINOMIAL: Final = {
    "c_nom",
    "r_op",
    "irs",
    "domain_min",
    "adversarial_resistance",
    "cn_frr",
    "novel_fault",
    "harness_errors",
}


def with_intervals(metrics: dict[str, Metric], view: View) -> dict[str, Metric]:
    """Return the metrics with their further intervals; those without evidence as they are."""
    result = {}
    for name, metric in metrics.items():
        further = [*_binomial(metric), *_of_tasks(metric, view)]
        result[name] = structs.replace(metric, intervals=tuple(further)) if further else metric
    return result


def _binomial(metric: Metric) -> tuple[Interval, ...]:
    if metric.id not in _BINOMIAL or not metric.n or not isinstance(metric.value, Fraction):
        return ()
    successes = int(metric.value * metric.n)
    return clopper_pearson(successes, metric.n), jeffreys(successes, metric.n)


def _of_tasks(metric: Metric, view: View) -> Iterator[Interval]:
    if metric.id not in METRICS or metric.value is None:
        return
    kind = TaskMean(metric.id)
    sums = view.sums(metric.id)
    if sums is not None and sums.k >= LEAST:
        low, high = (
            float(kind.back(posterior.lower(kind.shares(sums, lower=end), (1 + LEVEL) / 2), sums, lower=end))
            for end in (True, False)
        )
        yield Interval(low=low, high=high, method=TASK_INTERVAL)
