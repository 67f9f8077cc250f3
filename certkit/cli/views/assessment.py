"""Results as people read them on a terminal: good at 80 columns, without colour, and piped.

Colour only repeats what a mark and a word already say. Where the terminal cannot show the marks, letters
take their place.
"""

from __future__ import annotations

import re
from pathlib import Path
from shlex import quote, split
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rich.text import Text

from certkit.assessment.criteria import TierStatus
from certkit.assessment.findings.findings import Severity
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit, named
from certkit.assessment.metrics.metric import State, asked, rounded, shown
from certkit.assessment.words import (
    fragile,
    levels,
    measure_next,
    next_command,
    of_judge,
    open_rows,
    sentence,
    serious,
)
from certkit.cli.emit import WIDTH, fold
from certkit.cli.views import WORDS
from certkit.cli.views.table import Asked, Cells, digits, table
from certkit.ground.errors import Exit
from certkit.ground.text import quoted, visible
from certkit.ground.wording import many, readings, tier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from certkit.assessment.criteria import Row
    from certkit.assessment.metrics.metric import Metric, Value
    from certkit.assessment.profile import Criterion, Profile
    from certkit.assessment.result import Assessment, Baseline, BundleResult
    from certkit.cli.emit import Line

_ANSWER: Final = 8
_SENTENCE: Final = 2  # lines of the answer for who succeeds how often, and for the verdict
_NAME: Final = 24  # characters of an agent's name that stay where the line is too long for it
REFUSED: Final = {"DRIFTED": Exit.DRIFT, "IDENTITY_CHANGED": Exit.DRIFT, "NOT_COMPARABLE": Exit.INSUFFICIENT}
"""Comparisons with a baseline that fail what meets its tier: one that did not take place shows no drift."""

_TIER_STYLE: Final = {TierStatus.MET: "bold green", TierStatus.NOT_MET: "bold red"}
_SEVERITY_STYLE: Final = {Severity.WARNING: "yellow", Severity.INFO: "dim"}


def show_assessment(
    assessment: Assessment,
    *,
    verbose: bool,
    place: str | None = None,
    options: Mapping[str, str] = MappingProxyType({}),
    baseline: Baseline | None = None,
) -> Iterator[Line]:
    """Print an assessment: the answer in a few lines, the table, what would change it, the findings.

    `place` is what was judged, as a command names it: the answer then ends with the command to run next,
    which is given the `options` under which it was judged (``{"-p": "-p other "}``).
    """
    yield from _answer(assessment, place, options, baseline)
    if baseline is not None:
        yield from [*fold(compared(baseline)), ""]
    yield from _table(assessment)
    yield from _basis(assessment)
    if probes := assessment.integrity:
        tasks, held = probes.success, probes.accuracy
        core = "unmeasured" if probes.core.value is None else f"{float(probes.core.value):.3f}"
        text = f"success {tasks.successes:,}/{tasks.n:,}, held {held.matched:,}/{held.n:,}, core {core}"
        yield from _wrapped(f"probes, beside the tier: {text}; certkit probes score tells more")
    yield from _section("What would change it:", fragile(assessment.fragility))
    yield from _section("The judge:", of_judge(assessment.judge))
    yield from _section(f"For Tier {assessment.verdict.goal}:", measure_next(assessment))
    if assessment.bundles:
        yield from show_bundles(assessment.bundles)
    yield from _findings(assessment, verbose=verbose)


def _line(text: str, style: str = "") -> Iterator[Line]:
    yield Text(visible(text), style=style) if style else text


def _wrapped(text: str, *, first: str = "", rest: str = "", style: str = "") -> Iterator[Line]:
    for line in fold(text, first=first, rest=rest):
        yield from _line(line, style)


def _answer(
    assessment: Assessment, place: str | None, options: Mapping[str, str], baseline: Baseline | None
) -> Iterator[Line]:
    """Print who succeeds how often, the tiers, what challenges them, the decisive row, and what to do.

    At most `_ANSWER` lines, a command that takes two counted as one: what is longer stands below the table.
    """
    manifest = assessment.facts.manifest
    specimen = ""
    if manifest.protocol.origin == "simulated":
        specimen = " (SIMULATED: it says nothing about a real agent)"
    agent, often = f"{manifest.agent.name} {manifest.agent.version}", f"{specimen} {_how_often(assessment)}."
    shorter = (f"{quoted(agent, most)}{often}" for most in range(80, _NAME, -4))
    who = next((line for line in shorter if len(fold(line)) <= _SENTENCE), f"{quoted(agent, _NAME)}{often}")
    verdict = assessment.verdict
    if len(fold(told := sentence(assessment))) > _SENTENCE:
        told = sentence(assessment, brief=True)
    reached = _TIER_STYLE.get(assessment.tiers[str(max(verdict.tier, 1))].status, "bold yellow")
    lines = [
        *_short(who, _SENTENCE, "bold"),
        *_short(readings(verdict.table.tier, verdict.bounded.tier, decides=verdict.decides)),
        *_short(_open(assessment)),
        *_short(told, _SENTENCE, reached),
    ]
    room, todo = _ANSWER - len(lines), []
    if place is not None:
        page = quote(f"{Path(split(place)[0]).resolve().name}.html")
        command, rest = next_command(assessment, place, page, options)
        if baseline is not None and baseline.result in REFUSED:
            command, rest = f"certkit drift {quote(baseline.passport)}", place
        line = f"Next: {command} {rest}".rstrip()
        todo = [f"Next: {command} \\", f"  {rest}"] if rest and len(line) > WIDTH else [line]
        room -= 1
    if room > 0:
        for row, told in zip(open_rows(assessment)[:1], measure_next(assessment), strict=False):
            advice, lead = told.partition(": ")[2], f"Furthest: {row.id}: "
            texts = (
                f"Furthest: {named(row.metric.id)}: {advice}",
                f"{lead}{advice}",
                f"{lead}{advice.rpartition('; ')[2]}",
                f"{lead}{advice.partition('; ')[0]}",
                f"{lead}see below the table",
            )
            lines += next((folded for folded in map(fold, texts) if len(folded) <= room), [])
    yield from [*lines, *todo, ""]


def compared(baseline: Baseline) -> str:
    """Return what the comparison with an earlier passport or bundle gave, and why it gave none."""
    another = (
        "The baseline is of another agent: {}, this is {}. ".format(*baseline.agents)
        if baseline.agents
        else ""
    )
    told = f"{baseline.result}: {WORDS[baseline.result]}"
    told += f": {_first(baseline.worse)}" if baseline.worse else ""
    if reasons := baseline.not_comparable:
        told += f": {_first(reasons, 1)}"
    unchecked = " (signature not checked)" if baseline.signature == "not_checked" else ""
    return f"{another}Baseline {baseline.passport}{unchecked}: {told}"


def _short(text: str, lines: int = 1, style: str = "") -> Iterator[Line]:
    """Print a text in at most so many lines, its end left out where it is longer."""
    folded = fold(text)
    for line in [*folded[: lines - 1], *filter(None, [" ".join(folded[lines - 1 :])])]:
        yield from _line(_clipped(line, WIDTH), style)


def _clipped(text: str, width: int) -> str:
    """Return text that fits a column, cut after a word where it is too long, or within its only word."""
    whole = text[:width].rpartition(" ")[0].rstrip(",;:") or text[: width - 1]
    return text if len(text) <= width else whole + "…"


def _open(assessment: Assessment) -> str:
    """Return how many challenges are open, one for each code, and the gravest."""
    challenges = [item for item in assessment.challenges if item.state == "open"]
    contesting = sum(item.contests for item in challenges)
    told = f"Open: {many(len(challenges), 'challenge')}"
    if not challenges:
        return told
    told += f", {f'{contesting} serious' if contesting else 'first'}: "
    code, message = f" [{challenges[0].code}]", visible(challenges[0].message)
    room = WIDTH - len(told + code)
    text = message if len(message) <= room else re.split("[:;,] ", message)[0]
    return f"{told}{_clipped(text, room)}{code}"


def _first(names: Sequence[str], most: int = 3) -> str:
    """Return the first names, and how many there are beside them."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f"; {more} more ('certkit drift' lists them)" if more > 0 else "")


def _how_often(assessment: Assessment) -> str:
    """Return how often the agent succeeds: ``succeeds in 90.6 % under faults (725 of 800), …``."""
    told, missing = [], []
    for name, where, runs in (
        ("c_nom", "of normal runs", "no normal run counts"),
        ("r_op", "under faults", "no run under faults counts"),
    ):
        metric = assessment.metrics[name]
        if metric.value is None or not metric.n:
            missing.append(runs)
        else:
            rate, successes = shown(metric.value, metric.unit), round(metric.value * metric.n)
            told.append(f"in {rate} {where} ({successes:,} of {metric.n:,})")
    if not told:
        return "has no run that counts"
    if broken := assessment.counts.harness_errors:
        missing.append(f"{many(broken, 'harness error')} among the failures")
    return "; ".join([f"succeeds {' and '.join(told)}", *missing])


def _basis(assessment: Assessment) -> Iterator[Line]:
    """Print what the answer rests on: the records, the bundle and the profile, with their digests."""
    facts, counts = assessment.facts, assessment.counts
    errors = f", {many(counts.harness_errors, 'harness error')}" if counts.harness_errors else ""
    runs = f"{counts.nominal_runs:,} nominal, {counts.fault_runs:,} under faults"
    domains = many(len(counts.domains), "domain")
    yield from _wrapped(f"{many(counts.records, 'record')}: {runs}, {domains}{errors}")
    sealed = "sealed" if facts.sealed else "NOT SEALED"
    yield from _wrapped(f"evidence {facts.manifest.protocol.origin}, {sealed}:")
    yield from _wrapped(facts.digest)
    yield from _wrapped(levels(assessment))
    yield from _wrapped(f"profile {assessment.profile.id}, {assessment.profile.reading} reading:")
    yield from _wrapped(assessment.profile.digest)


def _table(assessment: Assessment) -> Iterator[Line]:
    """Print the table in the order of the profile; the bound is that of the tier that is wanted."""
    profile = assessment.profile
    next_tier = min(assessment.verdict.goal, profile.tier_numbers[-1])
    groups: dict[str, list[Row]] = {}
    for row in assessment.criteria:
        groups.setdefault(row.id, []).append(row)
    rows = []
    for name, at_tiers in groups.items():
        row = next((row for row in at_tiers if row.tier == next_tier), at_tiers[-1])
        asked = [
            Asked(item.operator, _threshold(item), item.status, item.bounded.status if item.bounded else None)
            for item in at_tiers
        ]
        bound = "" if row.bounded is None else _digits(row.bounded.bound, row.metric)
        by_tier = (
            [] if row.metric.by_tier is None else [_digits(item.value, item.metric) for item in at_tiers]
        )
        rows.append(Cells(name, row.metric.id, _value(row, at_tiers), bound, row.metric.n, asked, by_tier))
    yield from table(rows, profile.tier_numbers, reading=profile.reading, bound_tier=next_tier)
    for at_tiers in groups.values():
        bounded = at_tiers[0].bounded
        if bounded is not None and bounded.rests_on and at_tiers[0].metric.id in {"csi", "csi_windowed"}:
            yield from _wrapped(f"{at_tiers[0].id} by bounds: {bounded.rests_on}", style="dim")
    provisional = [name for name, at_tiers in groups.items() if at_tiers[0].criterion.provisional]
    if provisional:
        yield from _wrapped(f"provisional in the source: {', '.join(provisional)}", style="dim")
    yield from _line("")


def _threshold(row: Row) -> float | bool | None:
    if row.threshold is None or row.bounded is None:
        return None
    return True if row.metric.unit is Unit.BOOLEAN else float(row.threshold)


def _value(row: Row, at_tiers: Sequence[Row]) -> str:
    # The mean of some eligible runs would read as if it were the mean of all.
    thresholds = [item.threshold for item in at_tiers if item.threshold is not None]
    return "partial" if row.metric.state is State.PARTIAL else _digits(row.value, row.metric, thresholds)


def _digits(value: Value | None, metric: Metric, beside: Sequence[Value] = ()) -> str:
    told = bool(value) if value is not None and metric.unit is Unit.BOOLEAN else value
    return digits(told, probability=metric.by_tier is not None, beside=beside)


def _section(title: str, items: Sequence[str]) -> Iterator[Line]:
    """Print sentences under a title, and nothing where there are none."""
    if items:
        yield from _line("")
        yield from _line(title, "bold")
    for item in items:
        yield from _wrapped(item, first="  ", rest="    ")


def _findings(assessment: Assessment, *, verbose: bool) -> Iterator[Line]:
    """Print the challenges that are serious, then the other findings."""
    if not assessment.findings:
        return
    yield ""
    yield from _line("Findings (all of one code are one challenge):", "bold")
    below = [item for item in assessment.findings if item.severity is not Severity.SERIOUS]
    shown = [item for item in below if verbose or item.severity is not Severity.INFO]
    texts = [(text, "") for text in serious(assessment)]
    texts += [
        (f"{item.severity.value}: {item.message} [{item.code}]", _SEVERITY_STYLE[item.severity])
        for item in shown
    ]
    for text, style in texts:
        yield from _wrapped(text, first="  ", rest="    ", style=style)
    if hidden := len(below) - len(shown):
        yield from _line(f"  and {hidden} for information; -v shows them", "dim")


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
    yield f"  {'':>3} {'period':<24}{'records':>9}{'under faults':>17}{'rate':>7}  {'table':<8}bounded"
    for number, bundle in enumerate(bundles, 1):
        rate = rounded(bundle.successes / bundle.fault_runs, 3) if bundle.fault_runs else "-"
        counts = f"{bundle.successes:,} of {bundle.fault_runs:,}"
        yield (
            f"  {number:>3} {_period(bundle):<24}{bundle.records:>9,}{counts:>17}{rate:>7}"
            f"  {tier(bundle.table.tier):<8}{tier(bundle.bounded.tier)}"
        )
        yield f"      {bundle.digest}"


def _period(bundle: BundleResult) -> str:
    """Return the declared period of a bundle, else that of its start times, by days."""
    times = ((bundle.declared_from, bundle.first_run), (bundle.declared_to, bundle.last_run))
    days = [(declared or (run.isoformat() if run else "…"))[:10] for declared, run in times]
    return " to ".join(days)
