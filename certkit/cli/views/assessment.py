"""An evaluation as people read it on a terminal: good at 80 columns, without colour, and piped.

The answer comes first, in at most eight lines; then the table, what would change it, and the findings. Colour
only repeats what a mark and a word already say.
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote, split
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rich.text import Text

from certkit.assessment.answer import (
    advice,
    core_texts,
    fragility_texts,
    how_often,
    judge_texts,
    next_command,
    open_rows,
    open_text,
    readings,
    row_advice,
    row_title,
    serious_texts,
    traces_text,
    verdict_text,
)
from certkit.assessment.assessment import Severity, TierStatus
from certkit.assessment.catalogue import CATALOGUE
from certkit.assessment.words import finding_text, rounded, threshold_text
from certkit.cli.emit import WIDTH, fold
from certkit.cli.views.table import Asked, Cells, digits, table
from certkit.ground.document import State
from certkit.ground.errors import Exit
from certkit.ground.text import quoted, visible
from certkit.ground.wording import many, tier_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from certkit.assessment.assessment import Row
    from certkit.assessment.evaluation import Evaluation
    from certkit.assessment.profile import Criterion, Profile
    from certkit.cli.emit import Line

MOST_LINES: Final = 8
"""Lines of the answer."""
_TWO: Final = 2
"""Lines of the sentences about successes and about the verdict."""
_NAME: Final = 24
"""Characters of an agent's name that stay where the line is too long for it."""
REFUSED: Final = {"DRIFTED": Exit.DRIFT, "IDENTITY_CHANGED": Exit.DRIFT, "NOT_COMPARABLE": Exit.INSUFFICIENT}
"""Comparisons with a baseline that fail what meets its tier: one that did not take place shows no drift."""
_TIER_STYLE: Final = {TierStatus.MET: "bold green", TierStatus.NOT_MET: "bold red"}
_SEVERITY_STYLE: Final = {Severity.WARNING: "yellow", Severity.INFO: "dim"}


def show_evaluation(
    evaluation: Evaluation,
    *,
    verbose: bool,
    place: str | None = None,
    options: Mapping[str, str] = MappingProxyType({}),
    parts: Sequence[Evaluation] = (),
    notes: Sequence[str] = (),
) -> Iterator[Line]:
    """Print an evaluation: the answer in a few lines, the table, what would change it, the findings.

    Args:
        evaluation: what was judged.
        verbose: print findings for information too.
        place: what was judged, as a command names it: the answer then ends with the command to run next.
        options: the options under which it was judged (``{"-p": "-p other "}``).
        parts: each of several bundles that were pooled, alone.
        notes: sentences that stand right below the answer.
    """
    yield from _answer(evaluation, place, options)
    for text in notes:
        yield from [*fold(text), ""]
    yield from _table(evaluation)
    yield from _basis(evaluation)
    yield from _section("On core evidence:", core_texts(evaluation))
    yield from _section("What would change it:", fragility_texts(evaluation))
    yield from _section("The judge:", judge_texts(evaluation))
    yield from _section(f"For Tier {evaluation.assessment.verdict.goal}:", advice(evaluation))
    if parts:
        yield from _parts(parts)
    yield from _findings(evaluation, verbose=verbose)


def _line(text: str, style: str = "") -> Iterator[Line]:
    yield Text(visible(text), style=style) if style else text


def _wrapped(text: str, *, first: str = "", rest: str = "", style: str = "") -> Iterator[Line]:
    for line in fold(text, first=first, rest=rest):
        yield from _line(line, style)


def _answer(evaluation: Evaluation, place: str | None, options: Mapping[str, str]) -> Iterator[Line]:
    """Print how often the agent succeeds, the tiers, open questions, the biggest gap and the next command."""
    facts, verdict = evaluation.facts, evaluation.assessment.verdict
    specimen = ""
    if facts.protocol.origin == "simulated":
        specimen = " (SIMULATED: it says nothing about a real agent)"
    agent, often = f"{facts.agent.name} {facts.agent.version}", f"{specimen} {how_often(evaluation)}."
    shorter = (f"{quoted(agent, most)}{often}" for most in range(80, _NAME, -4))
    who = next((line for line in shorter if len(fold(line)) <= _TWO), f"{quoted(agent, _NAME)}{often}")
    said = verdict_text(evaluation)
    if len(fold(said)) > _TWO:
        said = verdict_text(evaluation, brief=True)
    status = evaluation.assessment.tiers[str(max(verdict.tier, 1))].status
    lines: list[Line] = [
        *_short(who, _TWO, "bold"),
        *_short(readings(evaluation)),
        *_short(said, _TWO, _TIER_STYLE.get(status, "bold yellow")),
        *_short(open_text(evaluation)),
    ]
    room, todo = MOST_LINES - len(lines), list[str]()
    if place is not None:
        page = quote(f"{Path(split(place)[0]).resolve().name}.html")
        command, rest = next_command(evaluation, place, page, options)
        line = f"Next: {command} {rest}".rstrip()
        todo = [f"Next: {command} \\", f"  {rest}"] if rest and len(line) > WIDTH else [line]
        room -= 1
    if room > 0:
        lines += _gap(evaluation, room)
    yield from [*lines, *todo, ""]


def _gap(evaluation: Evaluation, room: int) -> Sequence[Line]:
    """Return the row that is farthest from the wanted tier, in at most so many lines."""
    for row in open_rows(evaluation)[:1]:
        text = row_advice(evaluation, row)
        for told in (f"Biggest gap: {row_title(row)}: {text}", f"Biggest gap: {row.id}: {text}"):
            if len(folded := fold(told)) <= room:
                return [*folded]
        return [*fold(f"Biggest gap: {row_title(row)}")][:room]
    return []


def _short(text: str, lines: int = 1, style: str = "") -> Iterator[Line]:
    """Print a text in at most so many lines, its end left out where it is longer."""
    folded = fold(text)
    for line in [*folded[: lines - 1], *filter(None, [" ".join(folded[lines - 1 :])])]:
        yield from _line(_clipped(line, WIDTH), style)


def _clipped(text: str, width: int) -> str:
    """Return text that fits a column, cut after a word where it is too long, or within its only word."""
    cut = text[:width].rpartition(" ")[0].rstrip(",;:") or text[: width - 1]
    return text if len(text) <= width else cut + "…"


def _basis(evaluation: Evaluation) -> Iterator[Line]:
    """Print what the answer rests on: the records, the bundle and the profile, with their digests."""
    facts, groups, domains = evaluation.facts, evaluation.groups, evaluation.summary.domains
    runs = f"{groups.nominal['runs']:,} normal, {groups.fault['runs']:,} under faults"
    held_out = f", {groups.novel['runs']:,} held out" if groups.novel["runs"] else ""
    total = many(evaluation.summary.records)
    yield from _wrapped(f"{total}: {runs}{held_out}, {many(len(domains), 'domain')}")
    attacks = evaluation.metrics["attack_success_rate"]
    if attacks.value is not None:
        won = f"{attacks.counts['attack_succeeded']:,} of {many(attacks.n or 0, 'attack')} succeeded"
        yield from _wrapped(f"{won} ({rounded(attacks.value, 1, scale=100)} %)")
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


def _table(evaluation: Evaluation) -> Iterator[Line]:
    """Print the table in the order of the profile; the limit is that of the tier that is wanted."""
    profile = evaluation.profile
    shown_tier = min(evaluation.assessment.verdict.goal, len(profile.tiers))
    groups: dict[str, list[Row]] = {}
    for row in evaluation.assessment.criteria:
        groups.setdefault(row.id, []).append(row)
    rows = []
    for name, at_tiers in groups.items():
        row = next((row for row in at_tiers if row.tier == shown_tier), at_tiers[-1])
        asked = [
            Asked(item.operator, item.threshold, item.status, item.bounded.status if item.bounded else None)
            for item in at_tiers
        ]
        metric = evaluation.metrics[row.metric]
        differs = metric.by_tier is not None
        limit = "" if row.bounded is None else digits(row.bounded.bound, probability=differs)
        by_tier = [digits(item.value, probability=True) for item in at_tiers] if differs else []
        thresholds = [float(item.threshold) for item in at_tiers if item.threshold is not None]
        value = digits(row.value, probability=differs, beside=thresholds)
        if metric.state is State.PARTIAL:
            value = "partial"  # the mean of some eligible runs would read as if it were that of all
        rows.append(Cells(name, row.metric, value, limit, metric.n, asked, by_tier))
    yield from table(rows, profile.tier_numbers, reading=profile.reading, bound_tier=shown_tier)
    provisional = [name for name, at_tiers in groups.items() if at_tiers[0].provisional]
    if provisional:
        decides = "decides, by --strict" if evaluation.question.strict else "does not decide"
        yield from _wrapped(f"provisional in the paper, {decides}: {', '.join(provisional)}", style="dim")
    yield from _line("")


def _section(title: str, items: Sequence[str]) -> Iterator[Line]:
    """Print sentences under a title, and nothing where there are none."""
    if items:
        yield from _line("")
        yield from _line(title, "bold")
    for item in items:
        yield from _wrapped(item, first="  ", rest="    ")


def _findings(evaluation: Evaluation, *, verbose: bool) -> Iterator[Line]:
    """Print the serious findings, then the others."""
    findings = evaluation.assessment.findings
    if not findings:
        return
    yield ""
    yield from _line("Findings:", "bold")
    below = [item for item in findings if item.severity is not Severity.SERIOUS]
    printed = [item for item in below if verbose or item.severity is not Severity.INFO]
    texts = [(text, "") for text in serious_texts(evaluation)]
    texts += [
        (f"{item.severity.value}: {finding_text(item)} [{item.code}]", _SEVERITY_STYLE[item.severity])
        for item in printed
    ]
    for text, style in texts:
        yield from _wrapped(text, first="  ", rest="    ", style=style)
    if hidden := len(below) - len(printed):
        yield from _line(f"  and {hidden} for information; -v shows them", "dim")


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
        told = f" (guidance in the paper: {guide})" if guide else ""
        yield from _wrapped(f"Tier {number}: {info.name}{told}")


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
