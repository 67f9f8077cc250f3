"""Results as people read them on a terminal: good at 80 columns, without colour, and piped.

Colour only repeats what a mark and a word already say. Where the terminal cannot show the marks, letters
take their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.assessment import (
    CATALOGUE,
    Severity,
    State,
    Status,
    Unit,
    asked,
    fragile,
    measure_next,
    of_judge,
    readings,
    sentence,
)
from certkit.assessment.metrics.metric import percent
from certkit.cli import output
from certkit.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.assessment import Assessment, Finding, Metric, Profile, Row
    from certkit.assessment.metrics.metric import Value
    from certkit.assessment.profile import Criterion

_MARKS: Final = {
    Status.MET: ("✓", "+", "green"),
    Status.NOT_MET: ("✗", "x", "bold red"),
    Status.INSUFFICIENT: ("?", "?", "yellow"),
    Status.NOT_TESTED: ("–", "-", "yellow"),
    Status.NOT_APPLICABLE: (" ", " ", ""),
}
_WORDS: Final = {
    Status.MET: "met",
    Status.NOT_MET: "not met",
    Status.INSUFFICIENT: "insufficient evidence",
    Status.NOT_TESTED: "not tested",
}
_SEVERITY_STYLE: Final = {Severity.SERIOUS: "bold red", Severity.WARNING: "yellow", Severity.INFO: "dim"}
_VALUE, _BOUND, _COUNT, _TIER, _MARGIN = 7, 7, 8, 9, 8


def show_assessment(assessment: Assessment, *, verbose: bool) -> None:
    """Print an assessment: what was judged, the table, the verdict in words, what to measure next."""
    _head(assessment)
    _table(assessment)
    _verdict(assessment)
    if assessment.bundles:
        from certkit.cli.views.pooled import show_bundles  # noqa: PLC0415 - where there are several

        show_bundles(assessment.bundles)
    _findings(assessment.findings, verbose=verbose)
    if verbose:
        _bounds(assessment)
        _breakdown(assessment)
        _beside(assessment)


def _line(text: str, style: str = "") -> None:
    output.console().print(visible(text), style=style or None)


def _wrapped(text: str, *, first: str = "", rest: str = "", style: str = "") -> None:
    for line in output.fold(text, first=first, rest=rest):
        _line(line, style)


def _mark(status: Status) -> str:
    return _MARKS[status][0 if output.unicode() else 1]


def _head(assessment: Assessment) -> None:
    facts, counts = assessment.facts, assessment.counts
    agent = facts.manifest.agent
    _line(f"{agent.name} {agent.version}", "bold")
    domains = output.counted(len(counts.domains), "domain")
    errors = ""
    if counts.harness_errors:
        errors = f", {output.counted(counts.harness_errors, 'harness error')}"
    records = output.counted(counts.records, "record")
    _wrapped(
        f"{records}: {counts.nominal_runs:,} nominal, {counts.fault_runs:,} under faults, {domains}{errors}"
    )
    sealed = "sealed" if facts.sealed else "NOT SEALED"
    _wrapped(f"evidence {facts.manifest.protocol.origin}, {sealed}:")
    _wrapped(facts.digest)
    _wrapped(f"profile {assessment.profile.id}, {assessment.profile.reading} reading:")
    _wrapped(assessment.profile.digest)
    _line("")


def _table(assessment: Assessment) -> None:
    from rich.text import Text  # noqa: PLC0415 - drawing only

    console = output.console()
    numbers = assessment.profile.tier_numbers
    groups = _by_criterion(assessment)
    used = _VALUE + _BOUND + _COUNT + _TIER * len(numbers) + _MARGIN
    name = min(max(len(rows[0].id) for rows in groups) + 1, max(output.WIDTH - used, 12))
    heads = "".join(f"{f'Tier {number}':>{_TIER}}" for number in numbers)
    head = f"{'criterion':<{name}}{'value':>{_VALUE}}{'bound':>{_BOUND}}{'n':>{_COUNT}}"
    console.print(Text(f"{head}{heads}{'margin':>{_MARGIN}}", style="dim"))
    for rows in groups:
        deciding = _deciding(rows, assessment)
        metric = rows[0].metric
        line = Text(f"{output.cut(rows[0].id, name - 1):<{name}}")
        line.append(f"{_value(metric, deciding):>{_VALUE}}")
        line.append(f"{_bound(deciding):>{_BOUND}}")
        line.append(f"{_count(metric.n):>{_COUNT}}", style="dim")
        for row in rows:
            status = row.deciding(assessment.profile.reading)
            line.append(f"{_threshold(row):>{_TIER}}", style=_MARKS[status][2])
        line.append(f"{_margin(deciding):>{_MARGIN}}")
        line.rstrip()
        console.print(line)
    next_tier = min(assessment.verdict.tier + 1, numbers[-1])
    legend = ", ".join(f"{_mark(status)} {word}" for status, word in _WORDS.items())
    _wrapped(
        f"{legend}: first by the table reading (point estimates), then by the bounded reading (bounds,"
        f" clusters respected); bound and margin are those to Tier {next_tier}",
        style="dim",
    )
    for row in (_deciding(rows, assessment) for rows in groups):
        if row.bounded is not None and row.bounded.rests_on and row.metric.id in {"csi", "csi_windowed"}:
            _wrapped(f"{row.id} by bounds: {row.bounded.rests_on}", style="dim")
    provisional = [rows[0].id for rows in groups if rows[0].criterion.provisional]
    if provisional:
        _wrapped(f"provisional in the source: {', '.join(provisional)}", style="dim")
    _line("")


def _by_criterion(assessment: Assessment) -> list[list[Row]]:
    """Return the rows of each criterion, the ones that bind the next tier first."""
    groups: dict[str, list[Row]] = {}
    for row in assessment.criteria:
        groups.setdefault(row.id, []).append(row)
    order = {name: place for place, name in enumerate(assessment.verdict.binding)}
    return sorted(groups.values(), key=lambda rows: (order.get(rows[0].id, len(order)), _worst(rows)))


def _worst(rows: list[Row]) -> float:
    # Among rows that do not bind: those that stop at a lower tier, then the slimmer relative margin.
    met = sum(row.status in {Status.MET, Status.NOT_APPLICABLE} for row in rows)
    margins = [
        float(row.margin) / (abs(float(row.threshold or 1)) or 1.0) for row in rows if row.margin is not None
    ]
    return met * 1000 + min(margins, default=0.0)


def _deciding(rows: list[Row], assessment: Assessment) -> Row:
    wanted = min(assessment.verdict.tier + 1, rows[-1].tier)
    return next((row for row in rows if row.tier == wanted), rows[-1])


def _value(metric: Metric, row: Row) -> str:
    value = metric.value if metric.by_tier is None else metric.at(row.tier)
    if metric.state is State.PARTIAL:
        # The mean of some eligible runs would read as if it were the mean of all.
        return "partial"
    return _number(value, metric)


def _bound(row: Row) -> str:
    """Return the bound; one that the row's evidence cannot give, or that none has, is a dash."""
    if row.bounded is None:
        return ""
    return _number(row.bounded.bound, row.metric)


def _number(value: Value | None, metric: Metric) -> str:
    if value is None:
        return output.dash()
    if metric.unit is Unit.BOOLEAN:
        return "yes" if value else "no"
    if metric.unit is Unit.PP:
        return f"{float(value):.1f}"
    if metric.by_tier is None:
        return f"{float(value):.3f}"
    shown = f"{float(value):.4f}"
    # A probability is neither 0 nor 1, whatever its fourth digit says.
    return {"0.0000": "<.0001", "1.0000": ">.9999"}.get(shown, shown) if 0 < value < 1 else shown


def _count(n: int | None) -> str:
    if n is None:
        return ""
    return f"{n:,}" if n < 10**6 else str(n)  # eight figures fit the column


def _threshold(row: Row) -> str:
    """Return what a tier asks, and the marks of both readings."""
    if row.threshold is None or row.operator is None or row.bounded is None:
        return ""
    operator = row.operator
    if output.unicode():
        operator = {">=": "≥", "<=": "≤", "is": ""}.get(row.operator, row.operator)  # type: ignore[assignment]
    number = "yes" if row.metric.unit is Unit.BOOLEAN else f"{float(row.threshold):g}"
    number = number.replace("0.", ".", 1) if number.startswith("0.") else number
    return f"{operator}{number} {_mark(row.status)}{_mark(row.bounded.status)}"


def _margin(row: Row) -> str:
    if row.margin is None:
        return ""
    digits = 1 if row.metric.unit is Unit.PP else 3
    text = f"{float(row.margin):+.{digits}f}"
    # A row that fails by less than its rounding does not fail by nothing.
    return f"{float(row.margin):+.0e}" if row.margin and float(text) == 0 else text


def _verdict(assessment: Assessment) -> None:
    styles = {Status.MET: "bold green", Status.NOT_MET: "bold red"}
    style = "bold green" if assessment.verdict.tier else styles.get(assessment.tiers[0].status, "bold yellow")
    _wrapped(sentence(assessment), style=style)
    _wrapped(readings(assessment))
    _section("What would change it:", fragile(assessment.fragility))
    _section("The judge:", of_judge(assessment.judge))
    _section(f"For Tier {assessment.verdict.tier + 1}:", measure_next(assessment))


def _section(title: str, items: Sequence[str]) -> None:
    """Print sentences under a title, and nothing where there are none."""
    if items:
        _line("")
        _line(title, "bold")
    for item in items:
        _wrapped(item, first="  ", rest="    ")


def _findings(findings: tuple[Finding, ...], *, verbose: bool) -> None:
    shown = [item for item in findings if verbose or item.severity is not Severity.INFO]
    if not findings:
        return
    _line("")
    _line("Findings:", "bold")
    for item in shown:
        _wrapped(
            f"{item.severity.value}: {item.message} [{item.code}]",
            first="  ",
            rest="    ",
            style=_SEVERITY_STYLE[item.severity],
        )
    hidden = len(findings) - len(shown)
    if hidden:
        _line(f"  and {hidden} for information; -v shows them", "dim")


def _bounds(assessment: Assessment) -> None:
    """Print how every bound of the next tier was got, and the intervals of every value."""
    _line("")
    _line("Bounds:", "bold")
    for rows in _by_criterion(assessment):
        row = _deciding(rows, assessment)
        found = row.bounded
        if found is None:
            continue
        rests = [f"{percent(found.confidence)} confidence", found.reason or found.rests_on]
        text = ", ".join(part for part in rests if part)
        _wrapped(f"{row.id:<24}{_bound(row):>8}  {text}", first="  ", rest=" " * 36)
    _line("")
    _line("95 % intervals:", "bold")
    for name, metric in assessment.metrics.items():
        shown = [f"{item.method} {item.low:.4f}–{item.high:.4f}" for item in metric.all_intervals]
        if shown:
            _wrapped(f"{name:<24} {'; '.join(shown)}", first="  ", rest=" " * 27)


def _breakdown(assessment: Assessment) -> None:
    from certkit.cli.views.coverage import show_cells  # noqa: PLC0415 - shown on request

    _line("")
    _line("Success by domain and condition:", "bold")
    show_cells(assessment.cells)


def _beside(assessment: Assessment) -> None:
    """Print the metrics that no row of the profile uses."""
    used = {row.metric.id for row in assessment.criteria}
    _line("")
    _line("Beside the table:", "bold")
    for name, metric in assessment.metrics.items():
        if name in used:
            continue
        value = "not measured" if metric.value is None else f"{float(metric.value):.4f}"
        if metric.state is State.PARTIAL:
            value = "partial"
        n = "" if metric.n is None else f"  n {metric.n:,}"
        reason = f"  ({metric.reason})" if metric.reason else ""
        _wrapped(f"{name:<28} {value} {metric.unit.value}{n}{reason}", first="  ", rest="    ")


def show_profile(profile: Profile) -> None:
    """Print a profile's table."""
    numbers = profile.tier_numbers
    _line(f"{profile.id}: {profile.title or ''}".rstrip(": "), "bold")
    _wrapped(f"{profile.reading} reading, {profile.digest}")
    for source in profile.sources:
        _wrapped(f"source: {source}")
    _line("")
    _line(f"{'criterion':<30}" + "".join(f"{f'Tier {number}':>16}" for number in numbers), "dim")
    for row in profile.criteria:
        mark = " †" if row.provisional else ""
        cells = "".join(f"{_asked(row, number):>16}" for number in numbers)
        _line(f"{row.id + mark:<30}{cells}")
    if any(row.provisional for row in profile.criteria):
        _line("† provisional in the source", "dim")
    _line("")
    for number in numbers:
        info = profile.tiers[str(number)]
        guide = "; ".join(text for text in (info.sil, info.asil) if text)
        _wrapped(f"Tier {number}: {info.name}" + (f" (source's guidance: {guide})" if guide else ""))


def _asked(row: Criterion, tier: int) -> str:
    threshold = row.threshold(tier)
    return "–" if threshold is None else asked(row.operator_at(tier), threshold, CATALOGUE[row.metric].unit)
