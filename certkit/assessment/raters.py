"""A success rate as a fallible judge saw it, and as it is: what people's labels say of the rest.

A person labels m runs of the bundle, drawn by a hash. With q, the rate that the judge gives, P, the chance
that a run it passed is a success, and F, the chance that a run it failed is one, the success rate is θ = qP +
(1 − q)F (Tenenbein 1970, double sampling). P and F are task posteriors, as q is; their tasks are those that
bear labels. All three rest on the same tasks, so that what a task adds to each is summed before it is squared
(linearisation; Binder 1983, R `survey::svyratio`):

    μ = μ_q·μ_P + (1 − μ_q)·μ_F
    V = (μ_P − μ_F)²·V_q + μ_q²·V_P + (1 − μ_q)²·V_F + V_q·(V_P + V_F)
        + 2μ_q(1 − μ_q)·C_PF + 2(μ_P − μ_F)·(μ_q·C_qP + (1 − μ_q)·C_qF)

V is no less than (μ_P − μ_F)²·V_q. θ is taken as a Beta law by moments. Below a
threshold of one half q has the failed prior task alone, as everywhere (`bounds.laws`); P and F keep both.
Labels are not used on core evidence.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from certkit.assessment import beta, bounds
from certkit.assessment.bounds import Law, Tasks, law
from certkit.assessment.metric import LEVEL
from certkit.ground.document import Part
from certkit.probes.agreement import kappa
from certkit.summary.summary import LABELLED_SERIES, SCALE, MeanSeries, Summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from fractions import Fraction

    from certkit.bundle.facts import Facts

SHARES: Final = frozenset({"r_op", "c_nom", "adversarial_resistance"})
"""Series whose value is the share of successes: labels correct it."""
GRADED: Final = LABELLED_SERIES.keys() - SHARES
"""Series in which a wrongly passed run counts for one at most: that share is taken off their limit."""
COUNT_SUCCESS: Final = LABELLED_SERIES.keys() | {"single", "cascade", "irs", "novel_fault"}
"""Series that a wrong outcome changes."""


class LabelledSums(NamedTuple):
    """A task with labels, weighed for one weighting of tasks.

    Attributes:
        counts: labelled runs passed rightly, passed wrongly, failed wrongly and failed rightly.
        y: the task's successes, as the judge saw them.
        n: its runs; 1 where tasks weigh alike.
        times: how many tasks are so.
    """

    counts: tuple[float, float, float, float]
    y: float
    n: float
    times: int = 1


class Weighing(NamedTuple):
    """A series as labels can vouch for it: its tasks, and the labels of either weighting."""

    tasks: Tasks
    alike: tuple[LabelledSums, ...]
    by_runs: tuple[LabelledSums, ...]


class JudgedLaw(NamedTuple):
    """The law of a series whose outcomes a model gave, and of the share that it passed wrongly.

    A rate (`wrong` is None) is corrected by the labels; from a mean of scores the wrong share is taken off.
    """

    rate: Law
    wrong: Law | None = None


class LabelledShare(Part, frozen=True, kw_only=True):
    """A share of labelled runs with its 95 % interval, of the posterior Beta(1 + s, 1 + n − s).

    Attributes:
        successes: how many.
        n: of how many.
        value: the share, null where n is 0.
        low: lower end of the interval.
        high: upper end of the interval.
    """

    successes: int
    n: int
    value: float | None = None
    low: float | None = None
    high: float | None = None


class JudgeReport(Part, frozen=True, kw_only=True):
    """What people's labels show of the judge.

    Attributes:
        state: as in `Labels`.
        judge: its name, null where the manifest names none.
        referenced: items with a label by a person.
        drawn: whether these are the runs that the hash draws.
        contradicted: labelled runs whose rating by the judge is not what the record holds.
        counts: runs passed rightly, passed wrongly, failed wrongly and failed rightly.
        sensitivity: share of true successes that the judge passed.
        specificity: share of true failures that it failed.
        kappa: Cohen's κ of the judge and the labels, null where it is not defined.
        raw: r_op as the judge saw it.
        corrected: r_op freed of the judge's error.
        low: lower end of its 95 % interval.
        high: upper end of its 95 % interval.
    """

    state: str
    judge: str | None = None
    referenced: int = 0
    drawn: bool = False
    contradicted: int = 0
    counts: tuple[int, int, int, int] = (0, 0, 0, 0)
    sensitivity: LabelledShare | None = None
    specificity: LabelledShare | None = None
    kappa: float | None = None
    raw: float | None = None
    corrected: float | None = None
    low: float | None = None
    high: float | None = None


class Correction(NamedTuple):
    """A success rate freed of the judge's error: its mean and 95 % interval, the worse of both weightings."""

    value: float
    low: float
    high: float


def gives_outcomes(facts: Facts, summary: Summary) -> bool:
    """Tell whether a model gave the outcomes, as the ratings show or the protocol says.

    A judge's ratings of outcomes show it. The protocol says so where a judge is named and the methodology is
    not ``trajectory``.
    """
    protocol = facts.protocol
    if summary.labels.rated or protocol.methodology == "independent_judge":
        return True
    return protocol.judge is not None and protocol.methodology != "trajectory"


def weigh(summary: Summary, series: str, domain: str | None, tasks: Tasks) -> Weighing:
    """Return a series as labels can vouch for it.

    Where tasks weigh alike, a label of a task with n runs counts n_min/n, n_min being the runs of the
    smallest labelled task; tasks with fewer runs, whose likes nobody looked at, then count as failed, and as
    labelled so. Labels count as no more than the tasks that they lie on.

    Args:
        summary: whose labels count.
        series: a name of `LABELLED_SERIES`.
        domain: the only domain that counts, or None.
        tasks: the series, with values in 0…1.
    """
    labelled = [item for item in _by_task(summary, series, domain) if item.n]
    fewest = min((item.n for item in labelled if sum(item.counts)), default=0.0)
    labelled = [item for item in labelled if sum(item.counts)]
    few = _smaller(summary, series, domain, fewest)
    alike = [
        LabelledSums(_times(item.counts, fewest / item.n), item.y / item.n, 1.0)  # type: ignore[arg-type]
        for item in labelled
    ]
    if few is not None:
        off = few.alike
        tasks = tasks._replace(
            alike=tasks.alike._replace(
                wx=tasks.alike.wx - off.wx, wwxx=tasks.alike.wwxx - off.wwxx, wwx=tasks.alike.wwx - off.wwx
            )
        )
        alike.append(LabelledSums((0.0, 0.0, 0.0, 1.0), 0.0, 1.0, few.k))
    return Weighing(tasks, _at_most(alike), _at_most(labelled))


def _times(counts: Sequence[float], factor: float) -> tuple[float, ...]:
    return tuple(count * factor for count in counts)


def _by_task(summary: Summary, series: str, domain: str | None) -> list[LabelledSums]:
    sums: dict[int, tuple[list[float], list[float]]] = {}
    labels = summary.labels
    for item in labels.tasks if domain is None else labels.by_domain.get(domain, ()):
        counts, totals = sums.setdefault(item.task, ([0.0] * 4, [0.0, 0.0]))
        n, y = item.series.get(series, (0, 0))
        totals[0] += n
        totals[1] += y
        for group in LABELLED_SERIES[series]:
            for place, count in enumerate(item.labels.get(group, ())):
                counts[place] += count
    return [LabelledSums((a, b, c, d), totals[1], totals[0]) for (a, b, c, d), totals in sums.values()]


def _smaller(summary: Summary, series: str, domain: str | None, fewest: float) -> Tasks | None:
    """Return the tasks of a series that have fewer runs than the smallest labelled one."""
    held = summary.means.get(series)
    if isinstance(held, MeanSeries):
        rows = tuple(row for row in held.rows if row[0] < fewest)
        return bounds.mean_tasks(MeanSeries(rows=rows), series) if series in SCALE else None
    share = summary.share(series)
    of_domain = share.rows if domain is None else share.domains.get(domain, ())
    return bounds.share_tasks(row for row in of_domain if row[0] < fewest)


def _at_most(labelled: Sequence[LabelledSums]) -> tuple[LabelledSums, ...]:
    tasks = sum(item.times for item in labelled)
    labels = sum(sum(item.counts) * item.times for item in labelled)
    factor = min(1.0, tasks / max(1.0, labels))
    return tuple(item._replace(counts=_times(item.counts, factor)) for item in labelled)  # type: ignore[arg-type]


def _share(
    labelled: Sequence[LabelledSums], right: Sequence[int], wrong: Sequence[int]
) -> tuple[float, float, list[float]]:
    """Return mean and variance of the task posterior of `right` labels, and what each task adds to it."""
    rights = [sum(item.counts[place] for place in right) for item in labelled]
    both = [
        first + sum(item.counts[place] for place in wrong)
        for first, item in zip(rights, labelled, strict=True)
    ]
    k = sum(n * item.times for n, item in zip(both, labelled, strict=True))
    total = sum(n * item.times for n, item in zip(rights, labelled, strict=True))
    mean, size = (1 + total) / (k + 2), (k + 2) * (k + 3)
    apart = [first - mean * n for first, n in zip(rights, both, strict=True)]
    squares = sum(part * part * item.times for part, item in zip(apart, labelled, strict=True))
    return mean, (squares + mean**2 + (1 - mean) ** 2) / size, [part / sqrt(size) for part in apart]


def corrected(rate: Law, labelled: Sequence[LabelledSums], unit: float) -> Law:
    """Return the posterior of the true rate.

    Args:
        rate: the posterior of the judge's rate q.
        labelled: the labels of the same weighting.
        unit: a task adds `unit`·(y − n·μ_q) to q, in units of the standard error.
    """
    p, var_p, of_p = _share(labelled, (0,), (1,))
    f, var_f, of_f = _share(labelled, (2,), (3,))
    q, var_q = rate
    with_p, with_f = (
        unit
        * sum((item.y - q * item.n) * part * item.times for item, part in zip(labelled, parts, strict=True))
        for parts in (of_p, of_f)
    )
    with_each = sum(a * b * item.times for a, b, item in zip(of_p, of_f, labelled, strict=True))
    least = (p - f) ** 2 * var_q
    spread = least + q**2 * var_p + (1 - q) ** 2 * var_f + var_q * (var_p + var_f)
    spread += 2 * q * (1 - q) * with_each + 2 * (p - f) * (q * with_p + (1 - q) * with_f)
    middle = q * p + (1 - q) * f
    # Few tasks may overstate what they share: V is no less than under certain labels, and a Beta law's.
    return Law(middle, max(least, min(spread, middle * (1 - middle) * (1 - 1e-9))))


def _laws(weighing: Weighing, passed: int = 1) -> tuple[Law, Law]:
    """Return the law of the true rate by either weighting; `passed` is how many prior tasks of q passed."""
    tasks = weighing.tasks
    size = tasks.k + 1 + passed
    root = sqrt(size * (size + 1))
    return (
        corrected(law(tasks.alike, passed=passed), weighing.alike, 1 / root),
        corrected(law(tasks.by_runs, passed=passed), weighing.by_runs, tasks.k / tasks.n / root),
    )


def judged_laws(
    summary: Summary, series: str, domain: str | None, tasks: Tasks, threshold: Fraction
) -> tuple[JudgedLaw, ...]:
    """Return the laws of a series that a model's outcomes enter, as the labels show it, by either weighting.

    Args:
        summary: whose labels count.
        series: a name of `LABELLED_SERIES`.
        domain: the only domain that counts, or None.
        tasks: the series, with values in 0…1.
        threshold: on the same scale; it decides on priors.
    """
    weighing, passed = weigh(summary, series, domain, tasks), int(threshold >= bounds.HALF)
    if series in SHARES:
        return tuple(map(JudgedLaw, _laws(weighing, passed)))
    sides = ((weighing.tasks.alike, weighing.alike), (weighing.tasks.by_runs, weighing.by_runs))
    return tuple(JudgedLaw(law(sums, passed=passed), _wrongly_passed(labels)) for sums, labels in sides)


def lower(laws: Iterable[JudgedLaw], confidence: Fraction) -> float:
    """Return the lower limit of a series, the worse of both weightings; `laws` are those of `judged_laws`."""
    half = float((1 + confidence) / 2)
    return min(
        item.rate.quantile(float(1 - confidence))
        if item.wrong is None
        else max(0.0, item.rate.quantile(1 - half) - item.wrong.quantile(half))
        for item in laws
    )


def _wrongly_passed(labelled: Sequence[LabelledSums]) -> Law:
    mean, variance, _ = _share(labelled, (1,), (0, 2, 3))
    return Law(mean, variance)


def correction(summary: Summary) -> Correction | None:
    """Return r_op freed of the judge's error; None where no run is labelled or no fault run is there."""
    tasks = bounds.tasks(summary, "r_op")
    if tasks is None or summary.labels.state != "labelled":
        return None
    both = _laws(weigh(summary, "r_op", None, tasks))
    return Correction(
        value=min(item.mean for item in both),
        low=min(item.quantile((1 - LEVEL) / 2) for item in both),
        high=max(item.quantile((1 + LEVEL) / 2) for item in both),
    )


def judge_report(summary: Summary, facts: Facts) -> JudgeReport:
    """Return what people's labels show of the judge, and r_op freed of its error."""
    labels, judge = summary.labels, facts.protocol.judge
    report = JudgeReport(
        state=labels.state,
        judge=None if judge is None else judge.name,
        referenced=labels.referenced,
        drawn=labels.drawn,
        contradicted=labels.contradicted,
        counts=labels.counts,
    )
    if labels.state != "labelled":
        return report
    passed_rightly, passed_wrongly, failed_wrongly, failed_rightly = labels.counts
    table = [[failed_rightly, failed_wrongly], [passed_wrongly, passed_rightly]]
    agreement = kappa(table, [0, 1])
    report = structs.replace(
        report,
        sensitivity=_labelled_share(passed_rightly, passed_rightly + failed_wrongly),
        specificity=_labelled_share(failed_rightly, failed_rightly + passed_wrongly),
        kappa=None if agreement is None else float(agreement),
    )
    freed, tasks = correction(summary) if gives_outcomes(facts, summary) else None, summary.share("r_op")
    if freed is None:
        return report
    raw = tasks.successes / tasks.runs
    return structs.replace(report, raw=raw, corrected=freed.value, low=freed.low, high=freed.high)


def _labelled_share(successes: int, n: int) -> LabelledShare:
    if n == 0:
        return LabelledShare(successes=0, n=0)
    low, high = (beta.quantile(tail, 1 + successes, 1 + n - successes) for tail in (0.025, 0.975))
    return LabelledShare(successes=successes, n=n, value=successes / n, low=low, high=high)
