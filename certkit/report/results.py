"""Results as tables and figures: rows of a tier, what is missing, the forest plot, the metrics.

Rows, tiers and metrics are those of the evaluation. A provisional row is shown, and decides no tier unless it
was asked to.
"""

from __future__ import annotations

from math import ceil, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, NamedTuple

from markupsafe import Markup

from certkit.assessment.answer import open_rows
from certkit.assessment.assessment import Status
from certkit.assessment.catalogue import CATALOGUE, Unit
from certkit.assessment.metric import Interval, Z
from certkit.assessment.words import reason_text
from certkit.ground.document import State
from certkit.report import words
from certkit.report.figures import BLUE, Polyline, Track, curves, forest, judged

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from certkit.assessment.assessment import CoreRow, Row
    from certkit.assessment.evaluation import Evaluation
    from certkit.assessment.metric import Metric, Value

_OPEN: Final = (Status.NOT_MET, Status.INSUFFICIENT, Status.NOT_TESTED)
_ORDER: Final = (*_OPEN, Status.MET, Status.NOT_APPLICABLE)
_DAGGER: Final = "\u00a0†"
_LIMITS: Final = {">": "more than", "≥": "at least", "<": "less than", "≤": "at most"}
_POWER: Final = 0.8


def unit(row: Row) -> Unit:
    """Return the unit of a row's metric."""
    return CATALOGUE[row.metric].unit


def status_of(row: Row, evaluation: Evaluation) -> Status:
    """Return the status that decides, that by averages where the deciding reading has none."""
    return row.deciding(evaluation.profile.reading) or row.status


def decides(row: Row, evaluation: Evaluation) -> bool:
    """Tell whether a row decides its tier."""
    status = row.deciding(evaluation.profile.reading)
    left_out = evaluation.assessment.tiers[str(row.tier)].left_out
    if status in {None, Status.NOT_APPLICABLE} or row.id in left_out:
        return False
    return evaluation.question.strict or not row.provisional


def rows(evaluation: Evaluation, tier: int) -> list[Row]:
    """Return the rows of one tier, worst first, then as the profile orders them."""
    tier_rows = [row for row in evaluation.assessment.criteria if row.tier == tier]
    return sorted(tier_rows, key=lambda row: _ORDER.index(status_of(row, evaluation)))


def judged_rows(evaluation: Evaluation, tier: int) -> list[tuple[Row, Status]]:
    """Return the rows that decide a tier, each with the status that decides."""
    deciding = (row for row in rows(evaluation, tier) if decides(row, evaluation))
    return [(row, status_of(row, evaluation)) for row in deciding]


def asked(row: Row) -> str:
    """Return what a row asks: ``> 80 %``."""
    return words.threshold(row.operator, row.threshold, unit(row))


def asked_in_words(row: Row, evaluation: Evaluation) -> str:
    """Return what a row asks, in words: ``more than 80 % of runs under faults succeed``."""
    sign, _, limit = asked(row).partition("\u00a0")
    limit = f"{_LIMITS[sign]} {limit}" if sign in _LIMITS else asked(row)
    tau = evaluation.profile.tau.get(row.tier)
    text = CATALOGUE[row.metric].asked.format(limit=limit)
    return text.replace("τ", words.rate(float(tau)) if tau else "τ")


def measured(row: Row) -> str:
    """Return the value of a row, told apart from its threshold."""
    return words.value(row.value, unit(row), apart_from=row.threshold)


def bound(row: Row) -> str | None:
    """Return the confidence limit of a row, None where it has none."""
    if row.bounded is None or row.bounded.bound is None:
        return None
    return words.value(row.bounded.bound, unit(row), apart_from=row.threshold)


def title(row: Row) -> str:
    """Return a criterion's full name, with a dagger where its source calls it provisional."""
    return f"{CATALOGUE[row.metric].title}{_DAGGER if row.provisional else ''}"


def name(row: Row) -> Markup:
    """Return a criterion's full name as a table's head shows it, its id small behind it."""
    return Markup('{} <span class="id">{}</span>').format(words.capital(title(row)), row.id)


def by_status(evaluation: Evaluation, tier: int) -> dict[Status, list[str]]:
    """Return the names of a tier's deciding rows that are not met, by status."""
    groups: dict[Status, list[str]] = {}
    for row, status in judged_rows(evaluation, tier):
        if status is not Status.MET:
            groups.setdefault(status, []).append(title(row))
    return groups


def narrowest(evaluation: Evaluation, tier: int, most: int = 3) -> list[str]:
    """Return the met rows of a tier with the smallest relative margins, in words."""
    met = [
        (row.margin / (abs(row.threshold or 0) or 1.0), row)
        for row, status in judged_rows(evaluation, tier)
        if status is Status.MET and row.margin is not None and unit(row) is not Unit.BOOLEAN
        # The posterior's room is that of the success rate, which stands there itself.
        if not CATALOGUE[row.metric].tau_of
    ]
    met.sort(key=lambda pair: pair[0])
    return [f"{title(row)} (margin {words.margin(row.margin, unit(row))})" for _, row in met[:most]]


def finding(evaluation: Evaluation, tier: int) -> str:
    """Return what the figure of a tier's criteria shows, in one sentence."""
    statuses = [status for _, status in judged_rows(evaluation, tier)]
    met = statuses.count(Status.MET)
    if met < len(statuses):
        return f"{met} of {len(statuses)} criteria of Tier {tier} are met"
    slim = narrowest(evaluation, tier, most=1)
    room = f"; {slim[0].partition(' (margin')[0]} has the least room" if slim else ""
    return f"All {len(statuses)} criteria of Tier {tier} are met{room}"


def tier_rows(evaluation: Evaluation, tier: int) -> Iterator[tuple[str, ...]]:
    """Yield every row of a tier, on averages and with confidence limits."""
    for row in rows(evaluation, tier):
        metric = evaluation.metrics[row.metric]
        head = name(row)
        if row.provisional and not evaluation.question.strict:
            head += Markup(' <br><span class="note">{}</span>').format("provisional, does not decide")
        if tier == evaluation.question.required_tier:
            head = Markup('<span id="c-{}"></span>{}').format(row.id, head)
        yield (
            head,
            asked(row),
            Markup('<a href="#m-{}">{}</a>').format(row.metric, _found(row, metric)),
            _interval(metric, evaluation),
            "0" if metric.state is State.UNMEASURED else words.count(metric.n),
            words.margin(row.margin, unit(row)),
            judged(row.status),
            _with_limit(row),
        )


def _interval(metric: Metric, evaluation: Evaluation) -> Markup:
    """Return the 95 % interval over tasks, and below it that of a rate by runs."""
    over_tasks = words.interval(evaluation.evidence.interval(metric), metric.unit)
    if metric.interval_by_runs is None:
        return Markup("{}").format(over_tasks)
    by_runs = words.interval(metric.interval_by_runs, metric.unit)
    return Markup('{} <br><span class="note">by runs, Wilson: {}</span>').format(over_tasks, by_runs)


def _with_limit(row: Row) -> Markup:
    """Return the status with confidence limits, and the limit."""
    if row.bounded is None:
        return Markup("–")
    status, limit = judged(row.bounded.status), bound(row)
    if limit is None:
        return status
    side = "≥\u00a0" if row.operator in {">", ">="} else "≤\u00a0"
    return Markup("{} ({}{})").format(status, side, limit)


def _found(row: Row, metric: Metric) -> str:
    """Return the value of a row; the mean of some runs would read as if it were the mean of all."""
    if metric.state is State.PARTIAL:
        return "partial"
    return f"({measured(row)})" if row.status is Status.INSUFFICIENT else measured(row)


def core_rows(evaluation: Evaluation) -> Iterator[tuple[str, ...]]:
    """Yield the rows that are lost on core evidence, and those that have none, with both values."""
    criteria = {(row.id, row.tier): row for row in evaluation.assessment.criteria}
    for item in evaluation.assessment.core:
        if item.state != "differs":
            row = criteria[item.id, item.tier]
            yield (name(row), f"Tier\u00a0{row.tier}", asked(row), measured(row), *_core(item, row))


def _core(item: CoreRow, row: Row) -> tuple[str, str]:
    if item.value is None:
        return "no core run", "0"
    of_error = Unit.FRACTION if CATALOGUE[row.metric].tau_of else unit(row)
    error = words.value(item.error, of_error, apart_from=0)
    return f"{words.value(item.value, unit(row), apart_from=row.threshold)} ± {error}", f"{item.n:,}"


def gaps(evaluation: Evaluation) -> Iterator[tuple[str, ...]]:
    """Yield what stands between the evidence and its goal, with one of four verdicts a criterion."""
    yield from ((name(row), *gap(row, evaluation)) for row in open_rows(evaluation))


class _Comparison(NamedTuple):
    """A value beside its threshold.

    Attributes:
        value: what was found.
        limit: the threshold.
        interval: the 95 % interval of the value, over tasks.
        size: how many tasks there are.
        needed: about how many tasks tell value and threshold apart four times out of five.
    """

    value: float
    limit: float
    interval: Interval | None
    size: int
    needed: int


def gap(row: Row, evaluation: Evaluation) -> tuple[str, str, str]:
    """Return the verdict on an open row, what was found, and what would settle it.

    *undecided*: the value passes and its limit does not, or the threshold lies inside the 95 % interval;
    *short*: the interval excludes it; *too few runs*; *not recorded*.
    """
    spec, metric = CATALOGUE[row.metric], evaluation.metrics[row.metric]
    bounded = row.bounded
    if row.status is Status.NOT_TESTED or metric.state is State.PARTIAL:
        return "not recorded", reason_text(row.reason) or "no evidence", spec.evidence
    if row.status is Status.INSUFFICIENT or (row.status is Status.MET and bounded and bounded.bound is None):
        reason = row.reason or (bounded and bounded.reason)
        return "too few runs", reason_text(reason or None) or "it cannot be judged", "more independent tasks"
    found = f"{measured(row)} where {asked(row)} is asked"
    if row.status is Status.MET:
        found += f"; confidence limit {bound(row)}"
    compared = _compared(row, metric, evaluation)
    passes = row.status is Status.MET or (spec.tau_of is not None and compared.value > compared.limit)
    interval = compared.interval
    if interval is not None:
        rate = "success under faults, " if spec.tau_of else ""
        ends = words.interval(interval, Unit.FRACTION if spec.tau_of else unit(row))
        found += f"; {rate}95 % interval over tasks: {ends}"
    elif not passes:
        return "too few runs", found, "more independent tasks: no interval tells how sure the value is"
    domain = metric.detail.get("domain")
    if passes or (interval and interval.low <= compared.limit <= interval.high):
        more = "many more independent tasks would decide"
        if compared.needed > compared.size:
            now = f"tasks in {domain or 'all'} ({compared.size:,} now)"
            more = f"about {compared.needed:,} {now} would decide in 4 of 5 cases"
        return "undecided", found, more
    if spec.tau_of:
        rate, tau = (words.value(at, Unit.FRACTION) for at in (compared.value, compared.limit))
        return "short", found, f"a better agent: success under faults, {rate}, has to exceed {tau}"
    where = f" in {domain}, the weakest domain" if domain else ""
    return "short", found, f"a better agent: {asked(row)} has to be reached{where}"


def _compared(row: Row, metric: Metric, evaluation: Evaluation) -> _Comparison:
    """Return a row's value beside its threshold; a posterior stands for the success rate beside τ."""
    value, limit = float(row.value or 0), float(row.threshold or 0)
    if CATALOGUE[row.metric].tau_of:
        metric = evaluation.metrics["r_op"]
        value, limit = float(metric.value or 0), float(evaluation.profile.tau[row.tier])
    interval, size = evaluation.evidence.interval(metric), row.k or 0
    if interval is None and row.bounded is not None and row.bounded.bound is not None:
        half = abs(value - row.bounded.bound) * Z / NormalDist().inv_cdf(row.bounded.confidence)
        interval = Interval(low=value - half, high=value + half, method="limit")
    return _Comparison(value, limit, interval, size, _needed(value, limit, interval, size))


def _needed(value: float, limit: float, interval: Interval | None, size: int) -> int:
    """Return about how many tasks tell a value from a threshold four times out of five.

    The value stays, and the interval narrows with the root of their number. 0 beyond 100,000, and where
    nothing is known.
    """
    if interval is None or value == limit or not size:
        return 0
    half = (interval.high - interval.low) / 2
    factor = half * (1 + NormalDist().inv_cdf(_POWER) / Z) / abs(value - limit)
    number = ceil(size * factor * factor)
    step = int(10 ** max(0, len(str(number)) - 2))  # an estimate, which shall look like one
    return -(-number // step) * step if number <= 100_000 else 0  # noqa: PLR2004 - as the docstring says


def sample_size(evaluation: Evaluation) -> tuple[Markup, str] | None:
    """Return how the interval of a criterion narrows as tasks are added, and what that shows.

    It is drawn for the undecided row of its goal that takes the fewest tasks; None where there is none.
    """
    undecided = [
        (compared.needed, row)
        for row in open_rows(evaluation)
        if not CATALOGUE[row.metric].tau_of and gap(row, evaluation)[0] == "undecided"
        for compared in [_compared(row, evaluation.metrics[row.metric], evaluation)]
        if compared.needed > compared.size
    ]
    if not undecided:
        return None
    _, row = min(undecided, key=lambda pair: pair[0])
    metric = evaluation.metrics[row.metric]
    value, limit, interval, n, needed = _compared(row, metric, evaluation)
    assert interval is not None  # noqa: S101 - without one nothing is needed
    last = n + (needed - n) * 5 / 4
    counts = [n + (last - n) * step / 40 for step in range(41)]
    upper, lower = (
        [(at, value + (end - value) * sqrt(n / at)) for at in counts] for end in (interval.high, interval.low)
    )
    ends = sorted((interval.low, interval.high, limit))
    lines = [
        Polyline(label="95 % interval", points=[*reversed(lower), *upper], stroke=BLUE),
        Polyline(label=f"asked: {asked(row)}", points=[(n, limit), (last, limit)], dash="4 3"),
    ]
    where = f" in {metric.detail['domain']}" if "domain" in metric.detail else ""
    text = (
        f"{words.capital(title(row))}{where}: {measured(row)} over {n:,} tasks leaves open whether"
        f" {asked(row)} holds; if the value stays, about {needed:,} tasks decide in 4 of 5 cases"
    )
    across = [(at, f"{at:,.0f}") for at in (n, needed, last)]
    up = [(at, words.value(at, unit(row))) for at in (ends[0], value, ends[-1])]
    return curves("sizes", lines, across, up, caption=f"tasks{where}", title=text), text


def figure(evaluation: Evaluation, tier: int) -> Markup:
    """Return the forest plot of every criterion but the posterior, marked by its status at `tier`."""
    tracks = [
        _track(row, evaluation)
        for row in rows(evaluation, tier)
        if unit(row) not in {Unit.BOOLEAN, Unit.PROBABILITY}
    ]
    values = "; ".join(f"{track.label} {track.text}" for track in tracks)
    return forest(tracks, title=f"Forest plot at Tier {tier}, the posterior left out: {values}")


def _track(row: Row, evaluation: Evaluation) -> Track:
    spec, metric = CATALOGUE[row.metric], evaluation.metrics[row.metric]
    status, partial = status_of(row, evaluation), metric.state is State.PARTIAL
    thresholds = tuple(
        (item.tier, float(item.threshold))
        for item in evaluation.assessment.criteria
        if item.id == row.id and item.threshold is not None
    )
    low, high = float(spec.low), float(spec.high) if spec.high is not None else 0.0
    if spec.unit in {Unit.PP, Unit.PER_RUN}:
        # Their whole range would push every threshold into a corner.
        reach = [at for _, at in thresholds] + ([float(row.value)] if row.value is not None else [])
        low, high = min([0.0, *reach]), 1.1 * max([*reach, 0.001])
    text = "no evidence" if row.value is None and not partial else _found(row, metric)
    if row.value is not None and status is Status.INSUFFICIENT:
        text += ", not judged"
    interval = None if partial else evaluation.evidence.interval(metric)
    return Track(
        label=spec.short + (_DAGGER if row.provisional else ""),
        status=status,
        value=None if row.value is None or partial else float(row.value),
        interval=(interval.low, interval.high) if interval else None,
        thresholds=thresholds,
        low=low,
        high=high,
        higher=spec.higher,
        text=text,
    )


def thresholds(evaluation: Evaluation) -> tuple[dict[str, int], list[tuple[str, ...]]]:
    """Return what each tier of the profile asks of a criterion, as the widths of columns and the rows."""
    tiers = evaluation.profile.tier_numbers
    grouped: dict[str, list[Row]] = {}
    for row in evaluation.assessment.criteria:
        grouped.setdefault(row.id, []).append(row)
    body = [
        (name(group[0]), *(asked(row).replace("not specified", "–") for row in group), source)
        for group in grouped.values()
        for source in [CATALOGUE[group[0].metric].source]
    ]
    width = min(14, 54 // len(tiers))
    heads = dict.fromkeys((f"Tier {tier}" for tier in tiers), width)
    return {"criterion": 26} | heads | {"metric's source": 74 - width * len(tiers)}, body


def formulas(metrics: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Yield the formulas of some metrics with their sources."""
    for spec in CATALOGUE.values():
        if spec.id in metrics:
            yield spec.id, spec.formula, spec.unit.value, spec.source


def data_sheets(evaluation: Evaluation, metrics: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Yield some metrics: state, value, denominator, and what it lacks."""
    for key, metric in evaluation.metrics.items():
        if key in metrics:
            anchor = Markup('<span id="m-{0}">{0}</span>').format(key)
            reason = reason_text(metric.reason or metric.blocked) or "–"
            yield anchor, metric.state.value, _metric_value(metric), words.count(metric.n), reason


def _metric_value(metric: Metric) -> str:
    if metric.by_tier is not None:
        by_tier = sorted(metric.by_tier.items())
        return ", ".join(f"Tier {tier}: {words.value(at, metric.unit)}" for tier, at in by_tier)
    value: Value | None = metric.value
    return "–" if metric.state is State.PARTIAL else words.value(value, metric.unit)
