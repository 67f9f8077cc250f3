"""Results as tables and figures: the tiers that matter, what is missing, the forest plot, the posterior."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from certkit.assessment import CATALOGUE, State, Status, Unit
from certkit.assessment.statistics.estimators import runs_needed
from certkit.report import words
from certkit.report.formulas import FORMULAS
from certkit.report.svg import Track, forest, judged, mark
from certkit.report.table import Column, Table, table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from certkit.report.table import Value

_ORDER: Final = (
    Status.NOT_MET,
    Status.INSUFFICIENT,
    Status.NOT_TESTED,
    Status.MET,
    Status.NOT_APPLICABLE,
)
_OPEN: Final = (Status.NOT_MET, Status.INSUFFICIENT, Status.NOT_TESTED)
_DAGGER: Final = "\u00a0†"

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


def tier_table(document: Document, tier: int) -> Table:
    """Return every row of a tier in both readings."""
    reading = document["profile"]["reading"]
    columns = (
        Column("criterion", 21),
        Column("asked", 9, "number"),
        Column("found", 11, "number"),
        Column("95\u00a0% interval", 12, "number"),
        Column("n", 7, "number"),
        Column("margin", 9, "number"),
        Column("table reading", 11),
        Column("bounded reading", 20),
    )
    body = (_row(row, document["metrics"][row["metric"]]) for row in rows(document, tier))
    info = document["tiers"][str(tier)]
    word = "table" if reading == "table" else "bounded"
    return table(
        f"Tier {tier} ({info['name']}): {info['status'].replace('_', ' ')} under the {word} reading, "
        "which decides",
        columns,
        body,
        style="results",
    )


def _row(row: Row, metric: dict[str, Any]) -> tuple[Value, ...]:
    row_unit, status = unit(row), Status(row["status"])
    measured = _found(row, metric)
    return (
        name(row),
        words.threshold(row["operator"], row["threshold"], row_unit),
        Markup('<a href="#m-{}">{}</a>').format(row["metric"], measured),
        words.interval(metric.get("interval"), row_unit),
        words.count(metric["n"]) if row["value"] is not None else "0",
        words.margin(row["margin"], row_unit),
        judged(status),
        "–" if row["bounded"] is None else _bounded(row),
    )


def _bounded(row: Row) -> Markup:
    """Return the bounded reading's status with its bound."""
    bounded = row["bounded"]
    status = judged(Status(bounded["status"]))
    if bounded["bound"] is None:
        return status
    bound = words.value(bounded["bound"], unit(row), beside=row["threshold"])
    if unit(row) is Unit.PROBABILITY:
        return Markup("{} ({})").format(status, bound)
    side = "≥" if row["operator"] in {">", ">="} else "≤"
    return Markup("{} ({}\u00a0{})").format(status, side, bound)


def _found(row: Row, metric: dict[str, Any]) -> str:
    """Return the value of a row; the mean of some runs would read as if it were the mean of all."""
    if metric["state"] == State.PARTIAL:
        return "partial"
    measured = words.value(row["value"], unit(row), beside=row["threshold"])
    return f"({measured})" if row["status"] == Status.INSUFFICIENT else measured


def title(row: Row) -> str:
    """Return a criterion's full name, with a dagger where its source calls it provisional."""
    return f"{CATALOGUE[row['metric']].title}{_DAGGER if row['provisional'] else ''}"


def name(row: Row) -> Markup:
    """Return a criterion's full name as a table's head shows it, its id small behind it."""
    full = title(row)
    return Markup('{}{} <span class="id">{}</span>').format(full[:1].upper(), full[1:], row["id"])


def binding(document: Document) -> list[Row]:
    """Return the open rows of the next tier in the verdict's order, worst first."""
    places = {name: place for place, name in enumerate(document["verdict"]["binding"])}
    tier = document["verdict"]["tier"] + 1
    binding_rows = [row for row in document["criteria"] if row["tier"] == tier and row["id"] in places]
    return sorted(binding_rows, key=lambda row: places[row["id"]])


def gaps(document: Document) -> Table:
    """Return what stands between the evidence and the next tier, with one of four verdicts a criterion."""
    tier = document["verdict"]["tier"] + 1
    body = ((name(row), *gap(row, document)) for row in binding(document))
    columns = (
        Column("criterion", 26),
        Column("gap", 12),
        Column("what was found", 28),
        Column("what would settle it", 34),
    )
    return table(f"What stands between this evidence and Tier {tier}", columns, body, style="gaps")


def gap(row: Row, document: Document) -> tuple[str, str, str]:
    """Return the verdict on an open row, what was found, and what would settle it.

    *undecided*: the threshold lies inside the 95 % interval; *short*: the interval excludes it; *too few
    runs*; *not recorded*.
    """
    spec, metric = CATALOGUE[row["metric"]], document["metrics"][row["metric"]]
    status, bounded = Status(row["status"]), row["bounded"]
    if status is Status.NOT_TESTED or metric["state"] == State.PARTIAL:
        return "not recorded", row["reason"] or "no evidence", spec.evidence
    if status is Status.INSUFFICIENT or (status is Status.MET and bounded["bound"] is None):
        found = row["reason"] or bounded["reason"] or "it cannot be judged"
        return "too few runs", found, "more independent tasks"
    asked = words.threshold(row["operator"], row["threshold"], unit(row))
    found = f"{words.value(row['value'], unit(row), beside=row['threshold'])} where {asked} is asked"
    if spec.tau_of:
        return _posterior_gap(row, document, found)
    if status is Status.MET:
        found += f"; bound {words.value(bounded['bound'], unit(row), beside=row['threshold'])}"
    more = _more_runs(row, metric)
    if more is not None:
        return "undecided", found, f"{more} would decide"
    return "short", found, f"a better agent: {asked} has to be reached{_weakest(row, document)}"


def _more_runs(row: Row, metric: dict[str, Any]) -> str | None:
    """Return about how many more runs would put the threshold outside the interval; None where it is outside.

    An interval narrows with the root of n: half its width has to become the distance of the threshold.
    """
    interval = metric.get("interval")
    if interval is None or not interval["low"] <= row["threshold"] <= interval["high"]:
        return None
    half, distance = (interval["high"] - interval["low"]) / 2, abs(row["value"] - row["threshold"])
    if distance * _MOST_TIMES < half:
        return f"more runs than {_MOST_TIMES**2} times those recorded"
    return f"about {max(1, round(metric['n'] * ((half / distance) ** 2 - 1))):,} more runs"


_MOST_TIMES: Final = 100


def _weakest(row: Row, document: Document) -> str:
    weakest = document["metrics"][row["metric"]].get("domain")
    return f" in {weakest}, the weakest domain" if weakest else ""


def _posterior_gap(row: Row, document: Document, found: str) -> tuple[str, str, str]:
    metric = document["metrics"]["posterior"]
    tau = metric.get("tau", {}).get(str(row["tier"]))
    if tau is None or not metric["n"]:
        return "too few runs", found, "more runs under faults"
    rate = Fraction(metric["s"], metric["n"])
    needed = runs_needed(rate, Fraction(repr(tau)), Fraction(repr(row["threshold"])))
    if needed is None:
        success = words.value(float(rate), Unit.FRACTION)
        return "short", found, f"a better agent: success of {success} is too close to τ, or below"
    return "undecided", found, f"about {max(1, needed - metric['n']):,} more runs under faults would decide"


def figure(document: Document, tier: int) -> Markup:
    """Return the forest plot of every criterion but the posterior, marked by its status at `tier`."""
    reading = document["profile"]["reading"]
    tracks = []
    for row in rows(document, tier):
        if unit(row) in {Unit.BOOLEAN, Unit.PROBABILITY}:
            continue
        same = [criterion for criterion in document["criteria"] if criterion["id"] == row["id"]]
        thresholds = tuple(
            (criterion["tier"], float(criterion["threshold"]))
            for criterion in same
            if criterion["threshold"] is not None
        )
        tracks.append(_track(row, deciding(row, reading), thresholds, document))
    title = f"Forest plot of {len(tracks)} criteria at Tier {tier}: " + "; ".join(
        f"{track.label} {track.shown}" for track in tracks
    )
    return forest(tracks, title=title)


def _track(row: Row, status: Status, thresholds: tuple[tuple[int, float], ...], document: Document) -> Track:
    spec, metric = CATALOGUE[row["metric"]], document["metrics"][row["metric"]]
    measured = row["value"]
    low, high = float(spec.low or 0), float(spec.high) if spec.high is not None else 0.0
    if spec.unit in {Unit.PP, Unit.PER_RUN}:
        # Their whole range would push every threshold into a corner.
        reach = [at for _, at in thresholds] + ([float(measured)] if measured is not None else [])
        low, high = min([0.0, *reach]), 1.1 * max([*reach, 0.001])
    seen = "no evidence" if measured is None else _found(row, metric)
    if measured is not None and status is Status.INSUFFICIENT:
        seen += ", cannot be judged"
    partial = metric["state"] == State.PARTIAL
    interval = None if partial else metric.get("interval")
    return Track(
        label=spec.short + (_DAGGER if row["provisional"] else ""),
        status=status,
        value=None if measured is None or partial else float(measured),
        interval=(interval["low"], interval["high"]) if interval else None,
        thresholds=thresholds,
        low=low,
        high=high,
        higher=spec.higher,
        shown=seen,
    )


def profile_table(document: Document) -> Table:
    """Return the profile's thresholds as the assessment compared them."""
    numbers = sorted(map(int, document["tiers"]))
    grouped: dict[str, dict[int, Row]] = {}
    for row in document["criteria"]:
        grouped.setdefault(row["id"], {})[row["tier"]] = row
    body = [
        (
            name(next(iter(by_tier.values()))),
            *(
                words.threshold(
                    by_tier[tier]["operator"], by_tier[tier]["threshold"], unit(by_tier[tier])
                ).replace("not specified", "–")
                for tier in numbers
            ),
            CATALOGUE[next(iter(by_tier.values()))["metric"]].source,
        )
        for by_tier in grouped.values()
    ]
    width = min(14, 54 // len(numbers))
    columns = (
        Column("criterion", 26),
        *(Column(f"Tier {tier}", width, "number") for tier in numbers),
        Column("metric's source", 74 - width * len(numbers)),
    )
    return table("Thresholds of the profile", columns, body)


def formulas(metrics: Collection[str]) -> Table:
    """Return the formulas of some metrics with their sources."""
    body = (
        (spec.id, FORMULAS[spec.id], spec.unit.value, spec.source)
        for spec in CATALOGUE.values()
        if spec.id in metrics
    )
    columns = (Column("metric", 27), Column("formula", 47), Column("unit", 11), Column("source", 15))
    return table("Formulas", columns, body)


_NOT_COUNTS: Final = {
    "state",
    "value",
    "unit",
    "n",
    "by_tier",
    "interval",
    "intervals",
    "coverage",
    "reason",
    "source",
}


def data_sheets(document: Document, metrics: Collection[str]) -> Table:
    """Return some metrics with state, denominator, interval, and the counts each came from."""
    columns = (
        Column("metric", 26),
        Column("state", 11),
        Column("value", 14, "number"),
        Column("n", 8, "number"),
        Column("from", 41),
    )
    body = (_sheet(name, metric) for name, metric in document["metrics"].items() if name in metrics)
    return table("Data sheets", columns, body)


def _sheet(name: str, metric: dict[str, Any]) -> tuple[Value, ...]:
    anchor = Markup('<span id="m-{0}">{0}</span>').format(name)
    if "by_tier" in metric:
        measured = ", ".join(
            f"{tier}: {words.probability(p)}" for tier, p in sorted(metric["by_tier"].items())
        )
    else:
        measured = words.value(metric["value"], Unit(metric["unit"]))
    counts = [
        f"{key.replace('_', ' ')} {_figure(value)}"
        for key, value in metric.items()
        if key not in _NOT_COUNTS and isinstance(value, int | float | str)
    ]
    said = "; ".join([*([metric["reason"]] if "reason" in metric else []), ", ".join(counts)]).strip("; ")
    return anchor, metric["state"], measured, words.count(metric["n"]), said or "–"


def _figure(value: float | str) -> str:
    if isinstance(value, bool | str):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def narrowest(document: Document, most: int = 3) -> list[str]:
    """Return the met rows of the attained tier with the smallest relative margins, in words."""
    tier = document["verdict"]["tier"]
    met = [
        row
        for row in document["criteria"]
        if row["tier"] == tier
        and row["status"] == Status.MET
        and row["margin"] is not None
        and unit(row) is not Unit.BOOLEAN
    ]
    met.sort(key=lambda row: row["margin"] / (abs(row["threshold"]) or 1.0))
    return [f"{title(row)} (margin {words.margin(row['margin'], unit(row))})" for row in met[:most]]


def legend() -> tuple[tuple[Markup, str], ...]:
    """Return every status mark with what it says."""
    said = {
        Status.MET: "met: measured, and on the right side of the threshold",
        Status.NOT_MET: "not met: measured, and on the wrong side",
        Status.INSUFFICIENT: "insufficient evidence: something was measured, but it cannot be judged",
        Status.NOT_TESTED: "not tested: there is no evidence; it is never counted as 0 and never as passed",
        Status.NOT_APPLICABLE: "not specified: the tier does not ask for it",
    }
    return tuple((mark(status), text) for status, text in said.items())


def by_status(document: Document, tier: int, wanted: Iterable[Status] = _OPEN) -> dict[Status, list[str]]:
    """Return the names of a tier's rows grouped by status, empty groups left out."""
    reading = document["profile"]["reading"]
    tier_rows = rows(document, tier)
    groups = {
        status: [title(row) for row in tier_rows if deciding(row, reading) is status] for status in wanted
    }
    return {status: names for status, names in groups.items() if names}
