"""Results as people read them on a terminal: good at 80 columns, without colour, and piped.

Colour only repeats what a mark and a word already say. Where the terminal cannot show the marks, letters
take their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from certkit.assessment import (
    CATALOGUE,
    Severity,
    State,
    Status,
    TierStatus,
    Unit,
    above,
    asked,
    fragile,
    measure_next,
    of_judge,
    sentence,
    shown,
)
from certkit.assessment.metrics.metric import percent
from certkit.cli.emit import WIDTH, counted, cut, dash, fold, hint, note, unicode
from certkit.cli.views.bundle import show_cells
from certkit.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from certkit.assessment import Assessment, Finding, Metric, Profile, Row
    from certkit.assessment.metrics.metric import Value
    from certkit.assessment.profile import Criterion
    from certkit.assessment.result import BundleResult
    from certkit.cli.documents import Report
    from certkit.cli.emit import Line
    from certkit.workflow import IssuedFiles

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
_TIER_STYLE: Final = {TierStatus.MET: "bold green", TierStatus.NOT_MET: "bold red"}
_SEVERITY_STYLE: Final = {Severity.WARNING: "yellow", Severity.INFO: "dim"}
_VALUE, _BOUND, _COUNT, _TIER, _MARGIN = 7, 7, 8, 9, 8


def show_assessment(assessment: Assessment, *, verbose: bool, place: str | None = None) -> Iterator[Line]:
    """Print an assessment: the answer in a few lines, the table, what would change it, the findings.

    `place` is what was judged, as a command names it: the answer then ends with the command to run next.
    """
    yield from _answer(assessment, place)
    yield from _table(assessment)
    yield from _basis(assessment)
    yield from _section("What would change it:", fragile(assessment.fragility))
    yield from _section("The judge:", of_judge(assessment.judge))
    yield from _section(f"For Tier {assessment.verdict.tier + 1}:", measure_next(assessment))
    if assessment.bundles:
        yield from show_bundles(assessment.bundles)
    yield from _findings(assessment.findings, verbose=verbose)
    if verbose:
        yield from _bounds(assessment)
        yield from _breakdown(assessment)
        yield from _beside(assessment)


def _line(text: str, style: str = "") -> Iterator[Line]:
    yield Text(visible(text), style=style) if style else text


def _wrapped(text: str, *, first: str = "", rest: str = "", style: str = "") -> Iterator[Line]:
    for line in fold(text, first=first, rest=rest):
        yield from _line(line, style)


def _mark(status: Status) -> str:
    return _MARKS[status][0 if unicode() else 1]


def _answer(assessment: Assessment, place: str | None) -> Iterator[Line]:
    """Print who succeeds how often, the tiers, what challenges them, the decisive row, and what to do."""
    manifest = assessment.facts.manifest
    specimen = ""
    if manifest.protocol.origin == "simulated":
        specimen = " (SIMULATED: it says nothing about a real agent)"
    agent = f"{manifest.agent.name} {manifest.agent.version}{specimen}"
    yield from _wrapped(f"{agent} {_how_often(assessment.metrics)}.", style="bold")
    for text in above(assessment):
        yield from _wrapped(text)
    reached = assessment.tiers[str(max(assessment.verdict.tier, 1))].status
    yield from _wrapped(sentence(assessment), style=_TIER_STYLE.get(reached, "bold yellow"))
    if decisive := measure_next(assessment)[:1]:
        yield from _wrapped(f"Furthest from Tier {assessment.verdict.tier + 1} is {decisive[0]}")
    if place is not None:
        command, options = _next_command(assessment, place)
        line = f"Next: {command} {options}".rstrip()
        broken = [f"Next: {command} \\", f"  {options}"]
        yield from broken if options and len(line) > WIDTH else [line]
    yield from _line("")


def _how_often(metrics: Mapping[str, Metric]) -> str:
    """Return how often the agent succeeds: ``succeeds in 90.6 % under faults (725 of 800), …``."""
    told, missing = [], []
    for name, where, runs in (
        ("c_nom", "of normal runs", "no normal run counts"),
        ("r_op", "under faults", "no run under faults counts"),
    ):
        metric = metrics[name]
        if metric.value is None or not metric.n:
            missing.append(runs)
        else:
            rate, successes = shown(metric.value, metric.unit), round(metric.value * metric.n)
            told.append(f"in {rate} {where} ({successes:,} of {metric.n:,})")
    if not told:
        return "has no run that counts"
    return "; ".join([f"succeeds {' and '.join(told)}", *missing])


def _next_command(assessment: Assessment, place: str) -> tuple[str, str]:
    """Return the command that brings most, and its options: what is challenged comes first."""
    verdict = assessment.verdict
    if not assessment.counts.records:
        return "certkit import LOG -o BUNDLE", ""
    if any(item.contests for item in assessment.serious):
        return f"certkit context init {place}", "-o context.json"
    if not assessment.facts.sealed:
        return f"certkit bundle seal {place}", ""
    if verdict.tier:
        return f"certkit issue {place}", "--key KEY.pem --issuer NAME -o issued"
    lacking = {row.deciding(assessment.profile.reading) for row in assessment.criteria if row.tier == 1}
    rate = assessment.metrics["r_op"].value
    if rate and lacking & {Status.INSUFFICIENT, Status.NOT_TESTED} and Status.NOT_MET not in lacking:
        return "certkit plan --tier 1", f"--expect r_op={min(float(rate), 0.99):.2f}"
    return f"certkit report {place}", "-o safety-case.html"


def _basis(assessment: Assessment) -> Iterator[Line]:
    """Print what the answer rests on: the records, the bundle and the profile, with their digests."""
    facts, counts = assessment.facts, assessment.counts
    errors = f", {counted(counts.harness_errors, 'harness error')}" if counts.harness_errors else ""
    runs = f"{counts.nominal_runs:,} nominal, {counts.fault_runs:,} under faults"
    domains = counted(len(counts.domains), "domain")
    yield from _wrapped(f"{counted(counts.records, 'record')}: {runs}, {domains}{errors}")
    sealed = "sealed" if facts.sealed else "NOT SEALED"
    yield from _wrapped(f"evidence {facts.manifest.protocol.origin}, {sealed}:")
    yield from _wrapped(facts.digest)
    yield from _wrapped(f"profile {assessment.profile.id}, {assessment.profile.reading} reading:")
    yield from _wrapped(assessment.profile.digest)


def _table(assessment: Assessment) -> Iterator[Line]:
    numbers = assessment.profile.tier_numbers
    groups = _by_criterion(assessment)
    used = _VALUE + _BOUND + _COUNT + _TIER * len(numbers) + _MARGIN
    name = min(max(len(rows[0].id) for rows in groups) + 1, max(WIDTH - used, 12))
    heads = "".join(f"{f'Tier {number}':>{_TIER}}" for number in numbers)
    head = f"{'criterion':<{name}}{'value':>{_VALUE}}{'bound':>{_BOUND}}{'n':>{_COUNT}}"
    yield Text(f"{head}{heads}{'margin':>{_MARGIN}}", style="dim")
    for rows in groups:
        deciding = _deciding(rows, assessment)
        metric = rows[0].metric
        line = Text(f"{cut(rows[0].id, name - 1):<{name}}")
        line.append(f"{_value(metric, deciding):>{_VALUE}}")
        line.append(f"{_bound(deciding):>{_BOUND}}")
        line.append(f"{_count(metric.n):>{_COUNT}}", style="dim")
        for row in rows:
            status = row.deciding(assessment.profile.reading)
            line.append(f"{_threshold(row):>{_TIER}}", style=_MARKS[status][2])
        line.append(f"{_margin(deciding):>{_MARGIN}}")
        line.rstrip()
        yield line
    next_tier = min(assessment.verdict.tier + 1, numbers[-1])
    legend = ", ".join(f"{_mark(status)} {word}" for status, word in _WORDS.items())
    yield from _wrapped(
        f"{legend}: first by the table reading (point estimates), then by the bounded reading (bounds,"
        f" clusters respected); bound and margin are those to Tier {next_tier}",
        style="dim",
    )
    for row in (_deciding(rows, assessment) for rows in groups):
        if row.bounded is not None and row.bounded.rests_on and row.metric.id in {"csi", "csi_windowed"}:
            yield from _wrapped(f"{row.id} by bounds: {row.bounded.rests_on}", style="dim")
    provisional = [rows[0].id for rows in groups if rows[0].criterion.provisional]
    if provisional:
        yield from _wrapped(f"provisional in the source: {', '.join(provisional)}", style="dim")
    yield from _line("")


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
        return dash()
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
    if unicode():
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


def _section(title: str, items: Sequence[str]) -> Iterator[Line]:
    """Print sentences under a title, and nothing where there are none."""
    if items:
        yield from _line("")
        yield from _line(title, "bold")
    for item in items:
        yield from _wrapped(item, first="  ", rest="    ")


def _findings(findings: tuple[Finding, ...], *, verbose: bool) -> Iterator[Line]:
    """Print the findings below the serious ones, which stand above the verdict."""
    below = [item for item in findings if item.severity is not Severity.SERIOUS]
    shown = [item for item in below if verbose or item.severity is not Severity.INFO]
    if not below:
        return
    yield from _line("")
    yield from _line("Findings:", "bold")
    for item in shown:
        yield from _wrapped(
            f"{item.severity.value}: {item.message} [{item.code}]",
            first="  ",
            rest="    ",
            style=_SEVERITY_STYLE[item.severity],
        )
    hidden = len(below) - len(shown)
    if hidden:
        yield from _line(f"  and {hidden} for information; -v shows them", "dim")


def _bounds(assessment: Assessment) -> Iterator[Line]:
    """Print how every bound of the next tier was got, and the intervals of every value."""
    yield from _line("")
    yield from _line("Bounds:", "bold")
    for rows in _by_criterion(assessment):
        row = _deciding(rows, assessment)
        bounded = row.bounded
        if bounded is None:
            continue
        rests = [f"{percent(bounded.confidence)} confidence", bounded.reason or bounded.rests_on]
        text = ", ".join(part for part in rests if part)
        yield from _wrapped(f"{row.id:<24}{_bound(row):>8}  {text}", first="  ", rest=" " * 36)
    yield from _line("")
    yield from _line("95 % intervals:", "bold")
    for name, metric in assessment.metrics.items():
        shown = [f"{item.method} {item.low:.4f}–{item.high:.4f}" for item in metric.all_intervals]
        if shown:
            yield from _wrapped(f"{name:<24} {'; '.join(shown)}", first="  ", rest=" " * 27)


def _breakdown(assessment: Assessment) -> Iterator[Line]:
    yield from _line("")
    yield from _line("Success by domain and condition:", "bold")
    yield from show_cells(assessment.cells)


def _beside(assessment: Assessment) -> Iterator[Line]:
    """Print the metrics that no row of the profile uses."""
    used = {row.metric.id for row in assessment.criteria}
    yield from _line("")
    yield from _line("Beside the table:", "bold")
    for name, metric in assessment.metrics.items():
        if name in used:
            continue
        value = "not measured" if metric.value is None else f"{float(metric.value):.4f}"
        if metric.state is State.PARTIAL:
            value = "partial"
        n = "" if metric.n is None else f"  n {metric.n:,}"
        reason = f"  ({metric.reason})" if metric.reason else ""
        yield from _wrapped(f"{name:<28} {value} {metric.unit.value}{n}{reason}", first="  ", rest="    ")


def show_profile(profile: Profile) -> Iterator[Line]:
    """Print a profile's table."""
    numbers = profile.tier_numbers
    yield from _line(f"{profile.id}: {profile.title or ''}".rstrip(": "), "bold")
    yield from _wrapped(f"{profile.reading} reading, {profile.digest}")
    for source in profile.sources:
        yield from _wrapped(f"source: {source}")
    yield from _line("")
    yield from _line(f"{'criterion':<30}" + "".join(f"{f'Tier {number}':>16}" for number in numbers), "dim")
    for row in profile.criteria:
        mark = " †" if row.provisional else ""
        cells = "".join(f"{_asked(row, number):>16}" for number in numbers)
        yield from _line(f"{row.id + mark:<30}{cells}")
    if any(row.provisional for row in profile.criteria):
        yield from _line("† provisional in the source", "dim")
    yield from _line("")
    for number in numbers:
        info = profile.tiers[str(number)]
        guide = "; ".join(text for text in (info.sil, info.asil) if text)
        yield from _wrapped(
            f"Tier {number}: {info.name}" + (f" (source's guidance: {guide})" if guide else "")
        )


def _asked(row: Criterion, tier: int) -> str:
    threshold = row.threshold(tier)
    return "–" if threshold is None else asked(row.operator_at(tier), threshold, CATALOGUE[row.metric].unit)


def show_bundles(bundles: Sequence[BundleResult]) -> Iterator[Line]:
    """Print each bundle alone: period, records, successes under faults, and the tier of each reading."""
    yield ""
    yield f"Pooled from {len(bundles)} bundles, each alone:"
    yield f"  {'':>3} {'period':<24}{'records':>9}{'under faults':>17}{'rate':>7}  {'table':<7}bounded"
    for number, bundle in enumerate(bundles, 1):
        rate = f"{bundle.successes / bundle.fault_runs:.3f}" if bundle.fault_runs else "-"
        counts = f"{bundle.successes:,} of {bundle.fault_runs:,}"
        yield (
            f"  {number:>3} {_period(bundle):<24}{bundle.records:>9,}{counts:>17}{rate:>7}"
            f"  {_tier_met(bundle.table.tier):<7}{_tier_met(bundle.bounded.tier)}"
        )
        yield f"      {bundle.digest}"


def _period(bundle: BundleResult) -> str:
    """Return the declared period of a bundle, else that of its start times, by days."""
    start, end = bundle.declared_from, bundle.declared_to
    if start is None and end is None:
        times = (bundle.first_run, bundle.last_run)
        start, end = (None if time is None else time.isoformat() for time in times)
    if start is None and end is None:
        return "not stated"
    return f"{(start or '…')[:10]} to {(end or '…')[:10]}"


def _tier_met(number: int) -> str:
    """Return a tier as a cell shows it."""
    return f"Tier {number}" if number else "none"


def show_issued(issued: IssuedFiles, out: Path, logged: Iterable[str], hints: Iterable[str]) -> Iterator[str]:
    """Print what was issued."""
    for text in above(issued.assessment):
        yield from fold(text)
    yield from fold(sentence(issued.assessment))
    yield f"passport {out}/passport.json"
    yield f"id       {issued.passport.passport_id}"
    if issued.logged is not None:
        yield f"logged   entry {issued.logged.index}; proof in {out}/passport.json.tlog-proof"
        yield from logged
    yield f"report   {out}/safety-case.html" + ("" if issued.pdf_missing else ", safety-case.pdf")
    if issued.pdf_missing:
        _say_missing(issued.pdf_missing, hints)


def show_report(written: Report, hints: Iterable[str]) -> Iterator[str]:
    """Print which files a report was written to, and why there is no PDF where there is none."""
    for path in (written.html, written.pdf, written.export):
        if path:
            yield f"written: {path}"
    if written.pdf_missing:
        _say_missing(written.pdf_missing, hints)


def _say_missing(reason: str, hints: Iterable[str]) -> None:
    note(f"PDF not made: {reason}")
    for line in hints:
        hint(line)
