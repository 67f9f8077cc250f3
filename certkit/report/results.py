"""Results as tables and figures: rows of a tier, what is missing, the forest plot, the metrics.

Rows, tiers and metrics are those of the evaluation. A provisional row is shown, and decides no tier unless it
was asked to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from certkit.assessment.answer import open_rows, row_advice
from certkit.assessment.assessment import Status
from certkit.assessment.catalogue import CATALOGUE, Unit
from certkit.assessment.words import reason_text
from certkit.ground.document import State
from certkit.report import words
from certkit.report.figures import Track, forest, judged

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from certkit.assessment.assessment import CoreRow, Row
    from certkit.assessment.evaluation import Evaluation
    from certkit.assessment.metric import Metric, Value

_OPEN: Final = (Status.NOT_MET, Status.INSUFFICIENT, Status.NOT_TESTED)
_ORDER: Final = (*_OPEN, Status.MET, Status.NOT_APPLICABLE)
_DAGGER: Final = "\u00a0†"
_LIMITS: Final = {">": "more than", "≥": "at least", "<": "less than", "≤": "at most"}


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
            head += Markup(' <span class="note">{}</span>').format("provisional, does not decide")
        if tier == evaluation.question.required_tier:
            head = Markup('<span id="c-{}"></span>{}').format(row.id, head)
        yield (
            head,
            asked(row),
            Markup('<a href="#m-{}">{}</a>').format(row.metric, found(row, metric)),
            words.interval(evaluation.evidence.interval(metric), metric.unit),
            "0" if metric.state is State.UNMEASURED else words.count(metric.n),
            words.margin(row.margin, unit(row)),
            judged(row.status),
            _with_limit(row),
        )


def by_runs(evaluation: Evaluation, tier: int) -> str:
    """Return the 95 % intervals of a tier's rates by runs, in words; nothing without a rate."""
    metrics = {row.metric: evaluation.metrics[row.metric] for row in rows(evaluation, tier)}
    return ", ".join(
        f"{CATALOGUE[name].title} {words.interval(metric.interval_by_runs, metric.unit)}"
        for name, metric in metrics.items()
        if metric.interval_by_runs is not None
    )


def _with_limit(row: Row) -> Markup:
    """Return the status with confidence limits, and the limit."""
    if row.bounded is None:
        return Markup("–")
    status, limit = judged(row.bounded.status), bound(row)
    if limit is None:
        return status
    side = "≥\u00a0" if row.operator in {">", ">="} else "≤\u00a0"
    return Markup("{} ({}{})").format(status, side, limit)


def found(row: Row, metric: Metric) -> str:
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


def gaps(evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    """Yield what stands between the evidence and its goal, and what would settle it."""
    for row in open_rows(evaluation):
        text = words.capital(words.plain(row_advice(evaluation, row)))
        yield name(row), text.replace(">=", "≥").replace("<=", "≤")


def figure(evaluation: Evaluation, tier: int) -> Markup:
    """Return the forest plot of every criterion but the posterior, marked by its status at `tier`."""
    tracks = [
        _track(row, evaluation)
        for row in rows(evaluation, tier)
        if unit(row) not in {Unit.BOOLEAN, Unit.PROBABILITY}
    ]
    values = "; ".join(f"{track.label} {track.text}" for track in tracks)
    return forest(tracks, title=f"Forest plot at Tier {tier}, the posterior left out: {values}")


def figure_rows(evaluation: Evaluation, tier: int) -> Iterator[tuple[str, ...]]:
    """Yield what the forest plot shows of each criterion, for a screen that is too narrow for it."""
    for row in rows(evaluation, tier):
        status = status_of(row, evaluation)
        yield (
            words.capital(title(row)),
            found(row, evaluation.metrics[row.metric]),
            asked(row),
            judged(status),
        )


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
    text = "no evidence" if row.value is None and not partial else found(row, metric)
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
