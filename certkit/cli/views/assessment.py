"""An evaluation as people read it on a terminal: good at 80 columns, without colour, and piped.

The answer comes first; then the table, which leaves out rows without evidence, and what to know about the
evidence. What fills few rows takes at most `MOST_LINES`. Colour only repeats what a mark and a word say.
"""

from __future__ import annotations

import shlex
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.text import Text

from certkit.assessment.answer import (
    NextStep,
    advice,
    agent_called,
    cannot_judge,
    core_texts,
    fragility_texts,
    how_often,
    is_unfinished,
    judge_texts,
    next_command,
    no_faults_text,
    open_findings,
    open_rows,
    open_text,
    plan_text,
    readings,
    row_advice,
    row_title,
    rows_by_id,
    serious_texts,
    traces_text,
    verdict_text,
    without_evidence,
)
from certkit.assessment.assessment import Severity, TierStatus
from certkit.assessment.catalogue import CATALOGUE
from certkit.assessment.words import finding_text, rounded, threshold_text
from certkit.cli.emit import command_lines, fold, width
from certkit.cli.views.table import Asked, Cells, digits, table
from certkit.ground.document import State
from certkit.ground.errors import Exit
from certkit.ground.text import visible
from certkit.ground.wording import listed, many, tier_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from certkit.assessment.assessment import Row
    from certkit.assessment.evaluation import Evaluation
    from certkit.assessment.metric import Metric
    from certkit.assessment.profile import Criterion, Profile
    from certkit.bundle.manifest import Imported
    from certkit.cli.emit import Line

MOST_LINES: Final = 25
"""Lines of a screen whose table has few rows."""
FEW_ROWS: Final = 5
_TWO: Final = 2
"""Lines of the sentences about the verdict and about the biggest gap."""
REFUSED: Final = {"DRIFTED": Exit.DRIFT, "IDENTITY_CHANGED": Exit.DRIFT, "NOT_COMPARABLE": Exit.INSUFFICIENT}
"""Comparisons with a baseline that fail what meets its tier: one that did not take place shows no drift."""
_TIER_STYLE: Final = {TierStatus.MET: "bold green", TierStatus.NOT_MET: "bold red"}
_SEVERITY_STYLE: Final = {Severity.WARNING: "yellow", Severity.INFO: "dim"}
_OPEN_HINT: Final = "; -v lists all"


class JudgedSource(NamedTuple):
    """What was judged, as commands name it.

    Attributes:
        bundles: the folders of the bundles; of a log, that of the bundle that `keep` makes.
        judge: the command that judges it again, without the options of a profile.
        keep: the command that imports a log; None for bundles.
        columns: the command that writes a mapping of the log to fill in.
    """

    bundles: str
    judge: str
    keep: str | None = None
    columns: str = "certkit import LOG --columns -o MAP.toml"


def show_evaluation(
    evaluation: Evaluation,
    *,
    verbose: bool,
    place: JudgedSource | None = None,
    options: Mapping[str, str] = MappingProxyType({}),
    parts: Sequence[Evaluation] = (),
    notes: Sequence[str] = (),
    imported: Imported | None = None,
) -> Iterator[Line]:
    """Print an evaluation: the answer, the table, and what to know about the evidence.

    Args:
        evaluation: what was judged.
        verbose: print rows without evidence, what would change the answer, digests, and all findings.
        place: what was judged, as a command names it: the screen then says which command to run next.
        options: the options under which it was judged (``{"-p": "-p other "}``).
        parts: each of several bundles that were pooled, alone.
        notes: sentences that stand right below the answer.
        imported: the account of the import, where a log was judged.
    """
    without_faults = cannot_judge(evaluation)
    rows = rows_by_id(evaluation, every=verbose)
    lines = [*_answer(evaluation, place, options, without_faults=without_faults)]
    for text in notes:
        lines += ["", *fold(text)]
    lines += _table(evaluation, rows, without_faults=without_faults)
    lines += _wrapped(plan_text(evaluation), style="dim") if plan_text(evaluation) else []
    if verbose:
        lines += ["", *_basis(evaluation)]
        lines += _section("On core evidence:", core_texts(evaluation))
        lines += _section("What would change it:", fragility_texts(evaluation))
        lines += _section("The judge:", judge_texts(evaluation))
        lines += _section(f"For Tier {evaluation.assessment.verdict.goal}:", advice(evaluation))
    if parts:
        lines += _parts(parts)
    keep = [*_keep(evaluation, place, options)]
    room = MOST_LINES - len(lines) - len(keep) if len(rows) <= FEW_ROWS and not verbose else None
    account = [*_account(imported, room, verbose=verbose)]
    room = None if room is None else room - len(account)
    yield from [*lines, *_findings(evaluation, room, verbose=verbose), *account, *keep]


def _line(text: str, style: str = "") -> Iterator[Line]:
    yield Text(visible(text), style=style) if style else text


def _wrapped(text: str, *, first: str = "", rest: str = "", style: str = "") -> Iterator[Line]:
    for line in fold(text, first=first, rest=rest):
        yield from _line(line, style)


def _answer(
    evaluation: Evaluation, place: JudgedSource | None, options: Mapping[str, str], *, without_faults: bool
) -> Iterator[Line]:
    """Print how often the agent succeeds, the tiers, open questions, the biggest gap and the next command."""
    yield from _wrapped(f"{agent_called(evaluation)}: {how_often(evaluation)}.", style="bold")
    if evaluation.facts.protocol.origin == "simulated":
        yield from _line("SIMULATED: this evidence says nothing about a real agent.", "bold yellow")
    if without_faults:
        yield from _ways(evaluation, place)
        return
    verdict = evaluation.assessment.verdict
    if verdict.table.tier or verdict.bounded.tier or len(evaluation.profile.tiers) == 1:
        yield from _wrapped(readings(evaluation))
    text = verdict_text(evaluation)
    if len(fold(text)) > _TWO:
        text = verdict_text(evaluation, brief=True)
    status = evaluation.assessment.tiers[str(max(verdict.tier, 1))].status
    yield from _wrapped(text, style=_TIER_STYLE.get(status, "bold yellow"))
    yield from _wrapped(f"{open_text(evaluation)}{_OPEN_HINT if open_findings(evaluation) else ''}.")
    yield from _gap(evaluation)
    if place is not None and place.keep is None:
        yield from _next(evaluation, place, options)


def _ways(evaluation: Evaluation, place: JudgedSource | None) -> Iterator[Line]:
    """Say that runs under faults are missing, what judges without them, and how to get them."""
    source = "log" if place is not None and place.keep is not None else "evidence"
    yield from _wrapped(no_faults_text(evaluation, source), style="bold yellow")
    if place is not None:
        ways = [("What would judge it: ", f"{place.judge} -p pass-rate", "normal runs only")]
        ways += [("How to get such runs: ", "certkit trial plan -o plan.json", "tests under faults")]
        for lead, command, note in ways:
            line = f"  {f'{lead}{command}':<57} ({note})"
            if len(line) <= width():
                yield line
            else:
                yield f"  {lead.rstrip(' :')} ({note}):"
                yield from command_lines("    ", command)


def _gap(evaluation: Evaluation) -> Sequence[Line]:
    """Return the row that is farthest from the wanted tier, and what would settle it."""
    for row in () if is_unfinished(evaluation) else open_rows(evaluation)[:1]:
        text = row_advice(evaluation, row)
        full, short = (fold(f"Biggest gap: {name}: {text}") for name in (row_title(row), row.id))
        return [*(full if len(full) <= _TWO else short)]
    return []


def _next_step(evaluation: Evaluation, place: JudgedSource, options: Mapping[str, str]) -> NextStep:
    page = shlex.quote(f"{Path(shlex.split(place.bundles)[0]).resolve().name}.html")
    log = place.judge if place.keep is not None else None
    return next_command(evaluation, place.bundles, page, options, log, columns=place.columns)


def _next(
    evaluation: Evaluation, place: JudgedSource, options: Mapping[str, str], lead: str = "Next"
) -> Iterator[Line]:
    """Print the command that brings most, what must hold for it, and what to do where that does not."""
    step = _next_step(evaluation, place, options)
    command = f"{step.command} {step.options}".rstrip()
    if not step.when:
        yield from command_lines(f"{lead}: ", command)
        return
    yield from _wrapped(f"{lead}, {step.when}:")
    yield from command_lines("  ", command)
    if step.otherwise:
        yield from command_lines(step.otherwise, place.columns)


def _table(
    evaluation: Evaluation, rows: Mapping[str, Sequence[Row]], *, without_faults: bool
) -> Iterator[Line]:
    """Print the rows in the order of the profile; limits are those of the tier that is wanted."""
    profile = evaluation.profile
    goal = min(evaluation.assessment.verdict.goal, len(profile.tiers))
    hidden = without_evidence(evaluation, rows)
    if rows or not without_faults:
        yield ""
    if rows:
        yield from table(
            [_cells(evaluation, name, at_tiers, goal) for name, at_tiers in rows.items()],
            profile.tier_numbers,
            reading=profile.reading,
            limit_tier=goal,
            confidence=float(evaluation.evidence.confidence(goal)),
        )
    for metric in dict.fromkeys(at_tiers[0].metric for at_tiers in rows.values()):
        values = _by_tier(evaluation.metrics[metric])
        if len(values) > 1:
            each = (
                f"{value} for {listed([tier_name(tier) for tier in tiers])}"
                for value, tiers in values.items()
            )
            yield from _wrapped(f"{CATALOGUE[metric].short}: {', '.join(each)}", style="dim")
    if any(
        at_tiers[0].metric == "violations" and _limit(at_tiers[0]) is not None for at_tiers in rows.values()
    ):
        yield from _wrapped("violations: the limit counts at most 5 a run", style="dim")
    if hidden and (rows or not without_faults):
        yield from _wrapped(hidden, style="dim")
    provisional = [name for name, at_tiers in rows.items() if at_tiers[0].provisional]
    if provisional:
        decides = "decides, by --strict" if evaluation.question.strict else "does not decide"
        yield from _wrapped(f"provisional in the paper, {decides}: {', '.join(provisional)}", style="dim")


def _cells(evaluation: Evaluation, name: str, at_tiers: Sequence[Row], goal: int) -> Cells:
    """Return a row of the table; of what the wanted tier does not ask, the limit is that of the next one."""
    asking = [row for row in at_tiers if row.threshold is not None]
    row = min(asking or at_tiers, key=lambda item: (item.tier < goal, abs(item.tier - goal)))
    metric = evaluation.metrics[row.metric]
    differs = metric.by_tier is not None
    limit = _limit(row)
    value = digits(row.value, probability=differs, beside=[float(item.threshold or 0) for item in asking])
    if len(_by_tier(metric)) > 1:
        value = "by tier"
    if metric.state is State.PARTIAL:
        value = "partial"  # the mean of some eligible runs would read as if it were that of all
    asked = [
        Asked(item.operator, item.threshold, item.status, item.bounded.status if item.bounded else None)
        for item in at_tiers
    ]
    shown_limit = "" if limit is None else digits(limit, probability=differs)
    return Cells(name, row.metric, value, shown_limit, metric.n, asked)


def _limit(row: Row) -> float | None:
    """Return the confidence limit of a row, None where it lies on the better side of the row's value.

    Prior tasks can lift the limit of 0 in 26 runs to 0.002, which says nothing about the value.
    """
    limit = None if row.bounded is None else row.bounded.bound
    if limit is None or row.value is None:
        return limit
    higher = row.operator in {">", ">="}
    return None if (limit > float(row.value) if higher else limit < float(row.value)) else limit


def _by_tier(metric: Metric) -> dict[str, list[int]]:
    """Return the values that a metric has at the tiers, as a cell shows them, each with its tiers."""
    values: dict[str, list[int]] = {}
    for tier, value in sorted((metric.by_tier or {}).items()):
        values.setdefault(digits(value, probability=True), []).append(tier)
    return values


def _basis(evaluation: Evaluation) -> Iterator[Line]:
    """Print what the answer rests on: the records, the bundle and the profile, with their digests."""
    facts, groups, domains = evaluation.facts, evaluation.groups, evaluation.summary.domains
    runs = f"{groups.nominal['runs']:,} normal, {groups.fault['runs']:,} under faults"
    held_out = f", {groups.novel['runs']:,} held out" if groups.novel["runs"] else ""
    total = many(evaluation.summary.records)
    yield from _wrapped(f"{total}: {runs}{held_out}, {many(len(domains), 'domain')}")
    yield from _wrapped(f"evidence {facts.protocol.origin}, {'sealed' if facts.sealed else 'NOT SEALED'}:")
    yield from _wrapped(facts.digest)
    yield from _wrapped(traces_text(evaluation))
    if facts.integrity is not None:
        probes = facts.integrity
        core = "unmeasured" if probes.core is None else f"{probes.core:.3f}"
        held = f"{sum(cell.matched for cell in probes.cells):,} of {sum(c.probes for c in probes.cells):,}"
        yield from _wrapped(f"commitment probes (no part of the tier): held {held}, core {core}")
    decides = "averages decide" if evaluation.profile.reading == "table" else "confidence limits decide"
    yield from _wrapped(f"profile {evaluation.profile.name}, {decides}:")
    yield from _wrapped(evaluation.profile.digest)


def _section(title: str, items: Sequence[str]) -> Iterator[Line]:
    """Print sentences under a title, and nothing where there are none."""
    if items:
        yield from _line("")
        yield from _line(title, "bold")
    for item in items:
        yield from _wrapped(item, first="  ", rest="    ")


def _findings(evaluation: Evaluation, room: int | None, *, verbose: bool) -> Iterator[Line]:
    """Print the open questions, the gravest first, and the serious ones that were answered.

    Args:
        evaluation: what was judged.
        room: lines for what is not serious; None for as many as it takes.
        verbose: print findings for information too.
    """
    findings = evaluation.assessment.findings
    serious = [f"{text[:1].upper()}{text[1:]}." for text in serious_texts(evaluation)]
    warnings = [item for item in findings if item.severity is Severity.WARNING]
    info = [item for item in findings if item.severity is Severity.INFO]
    printed = [[*_wrapped(text, first="  ", rest="    ", style="bold red")] for text in serious]
    for item in [*warnings, *(info if verbose else ())]:
        text = f"{finding_text(item)} ({item.code})."
        style = _SEVERITY_STYLE[item.severity]
        printed.append([*_wrapped(f"{text[:1].upper()}{text[1:]}", first="  ", rest="    ", style=style)])
    if not printed:
        return
    title = open_text(evaluation)
    title += f"; {len(info)} for information" if verbose and info else ""
    fitting, taken = len(printed), [*accumulate(map(len, printed))]
    if room is not None and taken[-1] > room - 2:
        fitting = max(len(serious), sum(lines < room - 2 for lines in taken))
    if not fitting:  # the answer says how many there are
        return
    more = len(printed) - fitting
    yield ""
    yield from _line(title, "bold")
    for lines in printed[:fitting]:
        yield from lines
    if more:
        yield from _line(f"  and {more} more: -v lists them", "dim")
    if info and not verbose and room is None:
        yield from _line(f"  and {len(info)} for information; -v shows them", "dim")


def _account(imported: Imported | None, room: int | None, *, verbose: bool) -> Iterator[Line]:
    """Print what the import found odd or left out, in `room` lines; with `verbose` its whole account."""
    if imported is None:
        return
    from certkit.cli.views.account import all_notes, brief_notes  # noqa: PLC0415 - bundles take no importer

    inner = None if room is None else room - 2  # without the title and the line above it
    if notes := [*all_notes(imported, verbose=True)] if verbose else brief_notes(imported, inner):
        yield ""
        yield from _line("The import", "bold")
        yield from notes


def _keep(evaluation: Evaluation, place: JudgedSource | None, options: Mapping[str, str]) -> Iterator[Line]:
    """Print the command that keeps the bundle of a log, and the one to run then."""
    if place is not None and place.keep is not None:
        yield ""
        step = _next_step(evaluation, place, options)
        of_log = step.command.startswith((place.judge, place.columns))
        if of_log and not cannot_judge(evaluation):
            yield from _next(evaluation, place, options)
        yield from command_lines("keep it: ", place.keep)
        if not of_log:
            yield from _next(evaluation, place, options, "then")


def show_profile(profile: Profile) -> Iterator[Line]:
    """Print a profile's table."""
    numbers = profile.tier_numbers
    yield from _line(f"{profile.name}: {profile.title or ''}".rstrip(": "), "bold")
    decides = "averages decide" if profile.reading == "table" else "confidence limits decide"
    yield from _wrapped(f"{decides}, {profile.digest}")
    for source in profile.sources:
        yield from _wrapped(f"source: {source}")
    yield from _line("")
    yield from _line(f"{'criterion':<30}" + "".join(f"{f'Tier {number}':>16}" for number in numbers), "dim")
    for row in profile.criteria:
        mark = " †" if row.provisional else " *" if row.optional else ""
        cells = "".join(f"{_asked(row, number):>16}" for number in numbers)
        yield from _line(f"{row.id + mark:<30}{cells}")
    if any(row.provisional for row in profile.criteria):
        yield from _line("† provisional in the paper: it decides only with --strict", "dim")
    if any(row.optional for row in profile.criteria):
        yield from _line("* left out where there is no run for it; one row at least must have runs", "dim")
    yield from _line("")
    for number in numbers:
        info = profile.tiers[str(number)]
        guide = "; ".join(text for text in (info.sil, info.asil) if text)
        guidance = f" (guidance in the paper: {guide})" if guide else ""
        yield from _wrapped(f"Tier {number}: {info.name}{guidance}")


def _asked(row: Criterion, tier: int) -> str:
    threshold = row.threshold(tier)
    if threshold is None:
        return "–"
    return threshold_text(row.operator_at(tier), threshold, CATALOGUE[row.metric].unit)


def _parts(parts: Sequence[Evaluation]) -> Iterator[Line]:
    """Print each pooled bundle alone: records, successes under faults, and its tiers."""
    yield ""
    yield f"Pooled from {len(parts)} bundles, each alone:"
    yield f"  {'':>3} {'records':>9}{'under faults':>17}{'rate':>7}  {'averages':<10}with confidence"
    for number, part in enumerate(parts, 1):
        fault, verdict = part.groups.fault, part.assessment.verdict
        rate = rounded(fault["success"] / fault["runs"], 3) if fault["runs"] else "-"
        counts = f"{fault['success']:,} of {fault['runs']:,}"
        tiers = f"{tier_name(verdict.table.tier):<10}{tier_name(verdict.bounded.tier)}"
        yield f"  {number:>3} {part.summary.records:>9,}{counts:>17}{rate:>7}  {tiers}"
        yield f"      {part.facts.digest}"
