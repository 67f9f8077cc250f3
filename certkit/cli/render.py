"""Results as people read them on a terminal: good at 80 columns, without colour, and piped.

Colour only repeats what a mark and a word already say. Where the terminal cannot show the marks, letters
take their place.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from certkit.assessment import CATALOGUE, Severity, State, Status, Unit, asked, measure_next, sentence
from certkit.cli import output
from certkit.cli.output import printable

if TYPE_CHECKING:
    from certkit.assessment import Assessment, Finding, Metric, Profile, Row
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
_VALUE, _INTERVAL, _TIER, _MARGIN = 7, 9, 8, 7


def show_assessment(assessment: Assessment, *, verbose: bool) -> None:
    """Print an assessment: what was judged, the table, the verdict in words, what to measure next."""
    _head(assessment)
    _table(assessment)
    _verdict(assessment)
    _findings(assessment.findings, verbose=verbose)
    if verbose:
        _breakdown(assessment)
        _beside(assessment)


def _line(text: str, style: str = "") -> None:
    output.console().print(printable(text), style=style or None)


def _wrapped(text: str, *, first: str = "", rest: str = "", style: str = "") -> None:
    for line in output.fold(text, first=first, rest=rest):
        _line(line, style)


def _unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


def _mark(status: Status) -> str:
    return _MARKS[status][0 if _unicode() else 1]


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
    spread = _INTERVAL if any(rows[0].metric.interval for rows in groups) else 0
    used = _VALUE + spread + 8 + _TIER * len(numbers) + _MARGIN
    name = min(max(len(rows[0].id) for rows in groups) + 1, max(output.WIDTH - used, 12))
    heads = "".join(f"{f'Tier {number}':>{_TIER}}" for number in numbers)
    head = f"{'criterion':<{name}}{'value':>{_VALUE}}{'95 % CI' if spread else '':>{spread}}{'n':>8}"
    head += f"{heads}{'margin':>{_MARGIN}}"
    console.print(Text(head, style="dim"))
    for rows in groups:
        deciding = _deciding(rows, assessment)
        metric = rows[0].metric
        line = Text(f"{_cut(rows[0].id, name - 1):<{name}}")
        line.append(f"{_value(metric, deciding):>{_VALUE}}")
        line.append(f"{_interval(metric) if spread else '':>{spread}}", style="dim")
        line.append(f"{_count(metric.n):>8}", style="dim")
        for row in rows:
            status = row.deciding(assessment.profile.reading)
            line.append(f"{_threshold(row, status):>{_TIER}}", style=_MARKS[status][2])
        line.append(f"{_margin(deciding):>{_MARGIN}}")
        line.rstrip()
        console.print(line)
    next_tier = min(assessment.verdict.tier + 1, numbers[-1])
    legend = ", ".join(f"{_mark(status)} {word}" for status, word in _WORDS.items())
    _wrapped(f"{legend}; margin to Tier {next_tier}", style="dim")
    provisional = [rows[0].id for rows in groups if rows[0].criterion.provisional]
    if provisional:
        _wrapped(f"provisional in the source: {', '.join(provisional)}", style="dim")
    _line("")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + ("…" if _unicode() else "~")


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
    if value is None:
        return "–" if _unicode() else "-"
    if metric.unit is Unit.BOOLEAN:
        return "yes" if value else "no"
    if metric.unit is Unit.PP:
        return f"{float(value):.1f}"
    number = float(value)
    return f"{number:.4f}" if metric.by_tier is not None else f"{number:.3f}"


def _interval(metric: Metric) -> str:
    if metric.interval is None:
        return ""
    low, high = float(metric.interval.low), float(metric.interval.high)
    return (
        f"{low:.2f}–{high:.2f}".replace("0.", ".")
        if _unicode()
        else f"{low:.2f}-{high:.2f}".replace("0.", ".")
    )


def _count(n: int | None) -> str:
    if n is None:
        return ""
    return f"{n:,}" if n < 10**6 else str(n)  # eight figures fit the column


def _threshold(row: Row, status: Status) -> str:
    if row.threshold is None or row.operator is None:
        return ""
    operator = row.operator
    if _unicode():
        operator = {">=": "≥", "<=": "≤", "is": ""}.get(row.operator, row.operator)  # type: ignore[assignment]
    number = "yes" if row.metric.unit is Unit.BOOLEAN else f"{float(row.threshold):g}"
    return f"{operator}{number.replace('0.', '.', 1) if number.startswith('0.') else number} {_mark(status)}"


def _margin(row: Row) -> str:
    if row.margin is None:
        return ""
    digits = 1 if row.metric.unit is Unit.PP else 3
    return f"{float(row.margin):+.{digits}f}"


def _verdict(assessment: Assessment) -> None:
    styles = {Status.MET: "bold green", Status.NOT_MET: "bold red"}
    style = "bold green" if assessment.verdict.tier else styles.get(assessment.tiers[0].status, "bold yellow")
    _wrapped(sentence(assessment), style=style)
    advice = measure_next(assessment)
    if advice:
        _line("")
        _line(f"For Tier {assessment.verdict.tier + 1}:", "bold")
        for item in advice:
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


def _breakdown(assessment: Assessment) -> None:
    from certkit.cli.coverage import show_cells  # noqa: PLC0415 - shown on request

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
