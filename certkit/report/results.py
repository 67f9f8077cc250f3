"""Results as tables and figures: the tiers that matter, what is missing, the forest plot, the metrics."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from certkit.assessment.bounded import TASK_INTERVAL, size_needed
from certkit.assessment.criteria import Status
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.metrics.metric import State
from certkit.assessment.statistics.estimators import LEVEL, Interval, Z
from certkit.assessment.words import open_rows
from certkit.report import words
from certkit.report.svg import BLUE, Line, Track, curves, forest, judged

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from certkit.assessment.result import Assessment

_OPEN: Final = (Status.NOT_MET, Status.INSUFFICIENT, Status.NOT_TESTED)
_ORDER: Final = (*_OPEN, Status.MET, Status.NOT_APPLICABLE)
_DAGGER: Final = "\u00a0†"
_LIMITS: Final = {">": "more than", "≥": "at least", "<": "less than", "≤": "at most"}

Document = dict[str, Any]
Row = dict[str, Any]


def unit(row: Row) -> Unit:
    """Return the unit of a row's metric."""
    return CATALOGUE[row["metric"]].unit


def deciding(row: Row, reading: str) -> Status:
    """Return the status of a row under a reading; what a tier does not specify has no bounded one."""
    bounded = row["bounded"]
    return Status(row["status"] if reading == "table" or bounded is None else bounded["status"])


def rows(document: Document, tier: int) -> list[Row]:
    """Return the rows of one tier, worst first, then as the profile orders them."""
    reading = document["profile"]["reading"]
    tier_rows = [row for row in document["criteria"] if row["tier"] == tier]
    return sorted(tier_rows, key=lambda row: _ORDER.index(deciding(row, reading)))


def asked(row: Row) -> str:
    """Return what a row asks: ``> 80 %``."""
    return words.threshold(row["operator"], row["threshold"], unit(row))


def in_words(row: Row, document: Document) -> str:
    """Return what a row asks, in words: ``more than 80 % of runs under faults succeed``."""
    sign, _, limit = asked(row).partition("\u00a0")
    limit = f"{_LIMITS[sign]} {limit}" if sign in _LIMITS else asked(row)
    tau = document["metrics"]["posterior"].get("tau", {}).get(str(row["tier"]))
    return CATALOGUE[row["metric"]].asked.format(limit=limit).replace("τ", words.rate(tau) if tau else "τ")


def measured(row: Row) -> str:
    """Return the value of a row, told apart from its threshold."""
    return words.value(row["value"], unit(row), beside=row["threshold"])


def bound(row: Row) -> str | None:
    """Return the bound of a row, None where it has none."""
    bounded = row["bounded"]
    if bounded is None or bounded["bound"] is None:
        return None
    return words.value(bounded["bound"], unit(row), beside=row["threshold"])


def title(row: Row) -> str:
    """Return a criterion's full name, with a dagger where its source calls it provisional."""
    return f"{CATALOGUE[row['metric']].title}{_DAGGER if row['provisional'] else ''}"


def name(row: Row) -> Markup:
    """Return a criterion's full name as a table's head shows it, its id small behind it."""
    return Markup('{} <span class="id">{}</span>').format(words.capital(title(row)), row["id"])


def by_status(document: Document, tier: int, wanted: Iterable[Status] = _OPEN) -> dict[Status, list[str]]:
    """Return the names of a tier's rows grouped by status, empty groups left out."""
    every = judged_rows(document, tier)
    groups = {status: [title(row) for row, has in every if has is status] for status in wanted}
    return {status: names for status, names in groups.items() if names}


def judged_rows(document: Document, tier: int) -> list[tuple[Row, Status]]:
    """Return the rows that a tier specifies, each with the status that decides."""
    reading = document["profile"]["reading"]
    every = ((row, deciding(row, reading)) for row in rows(document, tier))
    return [(row, status) for row, status in every if status is not Status.NOT_APPLICABLE]


def narrowest(document: Document, tier: int, most: int = 3) -> list[str]:
    """Return the met rows of a tier with the smallest relative margins, in words."""
    met = [
        row
        for row, status in judged_rows(document, tier)
        if status is Status.MET and row["margin"] is not None and unit(row) is not Unit.BOOLEAN
        # The posterior's room is that of the success rate, which stands there itself.
        if not CATALOGUE[row["metric"]].tau_of
    ]
    met.sort(key=lambda row: row["margin"] / (abs(row["threshold"]) or 1.0))
    return [f"{title(row)} (margin {words.margin(row['margin'], unit(row))})" for row in met[:most]]


def _opened(assessment: Assessment, document: Document) -> list[Row]:
    """Return the open rows of the tier that advice is about, worst first."""
    stated = {(row["id"], row["tier"]): row for row in document["criteria"]}
    return [stated[row.id, row.tier] for row in open_rows(assessment)]


def finding(document: Document, tier: int) -> str:
    """Return what the figure of a tier's criteria shows, in one sentence."""
    every = judged_rows(document, tier)
    met = sum(status is Status.MET for _, status in every)
    if met < len(every):
        return f"{met} of {len(every)} criteria of Tier {tier} are met"
    slim = narrowest(document, tier, most=1)
    room = f"; {slim[0].partition(' (margin')[0]} has the least room" if slim else ""
    return f"All {len(every)} criteria of Tier {tier} are met{room}"


def tier_rows(document: Document, tier: int) -> Iterator[tuple[str, ...]]:
    """Yield every row of a tier in both readings."""
    for row in rows(document, tier):
        metric = document["metrics"][row["metric"]]
        anchored = Markup('<span id="c-{}"></span>{}').format(row["id"], name(row))
        yield (
            anchored if tier == document["verdict"]["required_tier"] else name(row),
            asked(row),
            Markup('<a href="#m-{}">{}</a>').format(row["metric"], _found(row, metric)),
            words.interval(metric.get("interval"), unit(row)),
            "0" if metric["state"] == State.UNMEASURED else words.count(metric["n"]),
            words.margin(row["margin"], unit(row)),
            judged(row["status"]),
            "–" if row["bounded"] is None else _bounded(row),
        )


def _bounded(row: Row) -> Markup:
    """Return the bounded reading's status with its bound."""
    status, shown = judged(row["bounded"]["status"]), bound(row)
    if shown is None:
        return status
    side = "≥\u00a0" if row["operator"] in {">", ">="} else "≤\u00a0"
    return Markup("{} ({}{})").format(status, "" if unit(row) is Unit.PROBABILITY else side, shown)


def _found(row: Row, metric: dict[str, Any]) -> str:
    """Return the value of a row; the mean of some runs would read as if it were the mean of all."""
    if metric["state"] == State.PARTIAL:
        return "partial"
    return f"({measured(row)})" if row["status"] == Status.INSUFFICIENT else measured(row)


def gaps(assessment: Assessment, document: Document) -> Iterator[tuple[str, ...]]:
    """Yield what stands between the evidence and its goal, with one of four verdicts a criterion."""
    yield from ((name(row), *gap(row, document)) for row in _opened(assessment, document))


def gap(row: Row, document: Document) -> tuple[str, str, str]:
    """Return the verdict on an open row, what was found, and what would settle it.

    *undecided*: the value passes and its bound does not, or the threshold lies inside the 95 % interval (of
    tasks under the bounded reading); *short*: the interval excludes it; *too few runs*; *not recorded*.
    """
    spec, metric = CATALOGUE[row["metric"]], document["metrics"][row["metric"]]
    status, bounded = Status(row["status"]), row["bounded"]
    if status is Status.NOT_TESTED or metric["state"] == State.PARTIAL:
        return "not recorded", row["reason"] or "no evidence", spec.evidence
    if status is Status.INSUFFICIENT or (status is Status.MET and bounded["bound"] is None):
        reason = row["reason"] or bounded["reason"] or "it cannot be judged"
        return "too few runs", reason, "more independent tasks"
    seen = f"{measured(row)} where {asked(row)} is asked"
    if status is Status.MET:
        seen += f"; bound {bound(row)}"
    domain = metric.get("domain")
    noun, value, limit, interval, size, needed = _compared(row, document)
    passes = status is Status.MET or (spec.tau_of and value > limit)
    if interval:
        ends = {"low": interval.low, "high": interval.high}
        rate = "success under faults, " if spec.tau_of else ""
        said = words.interval(ends, Unit.FRACTION if spec.tau_of else unit(row))
        seen += f"; {rate}95 % interval by {noun}: {said}"
    if interval is None and not passes:
        return "too few runs", seen, "more independent tasks: no interval tells how sure the value is"
    if passes or (interval and interval.low <= limit <= interval.high):
        more = f"about {needed:,} {noun} in {domain or 'all'} ({size:,} now) would decide in 4 of 5 cases"
        if needed <= size:
            more = f"many more independent {noun} would decide"
            if spec.tau_of and not passes:
                rate = words.value(value, Unit.FRACTION, beside=limit)
                more = f"no number of {noun} shows it at a success of {rate}"
        return "undecided", seen, more
    if spec.tau_of:
        rate, tau = words.value(value, Unit.FRACTION), words.value(limit, Unit.FRACTION)
        return "short", seen, f"a better agent: success under faults, {rate}, has to exceed {tau}"
    where = f" in {domain}, the weakest domain" if domain else ""
    return "short", seen, f"a better agent: {asked(row)} has to be reached{where}"


def _compared(row: Row, document: Document) -> tuple[str, float, float, Interval | None, int, int]:
    """Return a row's value, threshold, 95 % interval, and how many runs it has and needs (0: not known).

    A posterior stands for the success rate under faults beside τ. The first says what is counted: runs, or
    tasks where bounds decide and where a mean has no interval by runs.
    """
    metric, bounded = document["metrics"][row["metric"]], row["bounded"]
    value, limit = row["value"], row["threshold"]
    tables, tau_of = document["profile"]["reading"] == "table", CATALOGUE[row["metric"]].tau_of
    confidence = (1 + LEVEL) / 2 if tables else bounded["confidence"]
    if tau_of:
        confidence = limit if tables else max(limit, confidence)
        limit, metric = metric["tau"][str(row["tier"])], document["metrics"]["r_op"]
        value = metric["value"]
    every = (item for item in metric.get("intervals", ()) if item["method"] == TASK_INTERVAL)
    by_runs = metric.get("interval") if tables else None
    stated = by_runs or next(every, None)
    interval = None if stated is None else Interval(**stated)
    if interval is None and not tau_of and bounded["bound"] is not None and bounded["confidence"] > 1 / 2:
        half = abs(value - bounded["bound"]) * Z / NormalDist().inv_cdf(bounded["confidence"])
        interval = Interval(low=value - half, high=value + half)
    noun, size = ("runs", metric["n"] or 0) if by_runs else ("tasks", bounded["k"] or 0)
    if interval is None or not size:
        return noun, value, limit, interval, size, 0
    name = "r_op" if tau_of else row["metric"]
    needed = size_needed(name, value, limit, interval, size=size, confidence=confidence)
    return noun, value, limit, interval, size, needed or 0


def sample_size(assessment: Assessment, document: Document) -> tuple[Markup, str] | None:
    """Return how the interval of a criterion narrows as runs are added, and what that shows.

    It is drawn for the undecided row of its goal that takes the fewest runs; None where there is none,
    and where bounds decide, which more runs of the same tasks do not settle.
    """
    if document["profile"]["reading"] == "bounded":
        return None
    undecided = [
        (needed, row)
        for row in _opened(assessment, document)
        if not CATALOGUE[row["metric"]].tau_of and gap(row, document)[0] == "undecided"
        for noun, *_, size, needed in [_compared(row, document)]
        if noun == "runs" and needed > size
    ]
    if not undecided:
        return None
    needed, row = min(undecided, key=lambda pair: pair[0])
    metric, value, limit = document["metrics"][row["metric"]], float(row["value"]), float(row["threshold"])
    n, low, high = metric["n"], metric["interval"]["low"], metric["interval"]["high"]
    last = n + (needed - n) * 5 / 4
    counts = [n + (last - n) * step / 40 for step in range(41)]
    upper, lower = ([(at, value + (end - value) * sqrt(n / at)) for at in counts] for end in (high, low))
    ends = sorted((low, high, limit))
    lines = [
        Line(label="95 % interval", points=[*reversed(lower), *upper], stroke=BLUE),
        Line(label=f"asked: {asked(row)}", points=[(n, limit), (last, limit)], dash="4 3"),
    ]
    where = f" in {metric['domain']}" if metric.get("domain") else ""
    said = (
        f"{words.capital(title(row))}{where}: {measured(row)} of {n:,} runs leaves open whether {asked(row)}"
        f" holds; if the value stays, about {needed:,} runs decide in 4 of 5 cases"
    )
    across = [(at, f"{at:,.0f}") for at in (n, needed, last)]
    up = [(at, words.value(at, unit(row))) for at in (ends[0], value, ends[-1])]
    return curves("sizes", lines, across, up, caption=f"runs{where}", title=said), said


def figure(document: Document, tier: int) -> Markup:
    """Return the forest plot of every criterion but the posterior, marked by its status at `tier`."""
    reading = document["profile"]["reading"]
    tracks = [
        _track(row, deciding(row, reading), document)
        for row in rows(document, tier)
        if unit(row) not in {Unit.BOOLEAN, Unit.PROBABILITY}
    ]
    shown = "; ".join(f"{track.label} {track.shown}" for track in tracks)
    return forest(tracks, title=f"Forest plot at Tier {tier}, the posterior left out: {shown}")


def _track(row: Row, status: Status, document: Document) -> Track:
    spec, metric = CATALOGUE[row["metric"]], document["metrics"][row["metric"]]
    value, partial = row["value"], metric["state"] == State.PARTIAL
    thresholds = tuple(
        (criterion["tier"], float(criterion["threshold"]))
        for criterion in document["criteria"]
        if criterion["id"] == row["id"] and criterion["threshold"] is not None
    )
    low, high = float(spec.low), float(spec.high) if spec.high is not None else 0.0
    if spec.unit in {Unit.PP, Unit.PER_RUN}:
        # Their whole range would push every threshold into a corner.
        reach = [at for _, at in thresholds] + ([float(value)] if value is not None else [])
        low, high = min([0.0, *reach]), 1.1 * max([*reach, 0.001])
    shown = "no evidence" if value is None and not partial else _found(row, metric)
    if value is not None and status is Status.INSUFFICIENT:
        shown += ", cannot be judged"
    interval = None if partial else metric.get("interval")
    return Track(
        label=spec.short + (_DAGGER if row["provisional"] else ""),
        status=status,
        value=None if value is None or partial else float(value),
        interval=(interval["low"], interval["high"]) if interval else None,
        thresholds=thresholds,
        low=low,
        high=high,
        higher=spec.higher,
        shown=shown,
    )


def thresholds(document: Document) -> tuple[dict[str, int], list[tuple[str, ...]]]:
    """Return what each tier of the profile asks of a criterion, as the widths of columns and the rows."""
    tiers, grouped = sorted(document["tiers"]), dict[str, dict[str, Row]]()
    for row in document["criteria"]:
        grouped.setdefault(row["id"], {})[str(row["tier"])] = row
    body = []
    for rows_of in grouped.values():
        first = next(iter(rows_of.values()))
        limits = (asked(rows_of[tier]).replace("not specified", "–") for tier in tiers)
        body.append((name(first), *limits, CATALOGUE[first["metric"]].source))
    width = min(14, 54 // len(tiers))
    heads = dict.fromkeys((f"Tier {tier}" for tier in tiers), width)
    return {"criterion": 26} | heads | {"metric's source": 74 - width * len(tiers)}, body


def formulas(metrics: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Yield the formulas of some metrics with their sources."""
    for spec in CATALOGUE.values():
        if spec.id in metrics:
            yield spec.id, spec.formula, spec.unit.value, spec.source


def data_sheets(document: Document, metrics: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Yield some metrics: state, value, denominator, and what it lacks."""
    for key, metric in document["metrics"].items():
        if key in metrics:
            tiers = metric.get("by_tier", {}).items()
            value = ", ".join(f"Tier {tier}: {words.probability(p)}" for tier, p in sorted(tiers))
            value = value or words.value(metric.get("value"), Unit(metric["unit"]))
            value = "–" if metric["state"] == State.PARTIAL else value
            anchor = Markup('<span id="m-{0}">{0}</span>').format(key)
            yield anchor, metric["state"], value, words.count(metric["n"]), metric.get("reason", "–")
