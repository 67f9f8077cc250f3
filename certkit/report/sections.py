"""The tables of sections 3, 4 and 8 to 14: use, evidence, the argument and what follows it.

Who was evaluated and how, what the records cover, what is attached; what people said of the use; nodes,
challenges, assumptions, and the arithmetic of SIL guidance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from certkit import canonical, wording
from certkit.evidence.context import Assumption
from certkit.evidence.records.record import Condition, Split
from certkit.report import words
from certkit.report.argument.build import ASSUMPTIONS
from certkit.report.argument.graph import Kind
from certkit.report.svg import Bar, bars, judged
from certkit.wording import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.evidence.context import Context
    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import Case, Measured
    from certkit.report.results import Document

Value = str | tuple[str, str]
"""The text of a cell, or its text and its style."""

MOST_CONDITIONS: Final = 8
"""Columns of the coverage map that fit a page."""
_PLACES: Final[dict[str, int]] = {condition: place for place, condition in enumerate(Condition)}
_SHADES: Final = (0.4, 0.6, 0.8, 0.95)
_SMALL: Final = 10


def coverage(
    document: Document, split: str = Split.STANDARD
) -> tuple[dict[str, int], list[tuple[Value, ...]], int]:
    """Return successes of runs for each domain and condition, shaded by rate; blanks are gaps.

    They come as the widths of columns, the rows, and how many conditions have no room.
    """
    cells = [cell for cell in document["breakdown"] if cell["split"] == split]
    every = sorted({cell["condition"] for cell in cells}, key=lambda name: (_PLACES.get(name, 99), name))
    by_domain: dict[str, dict[str, dict[str, Any]]] = {}
    for cell in cells:
        by_domain.setdefault(cell["domain"], {})[cell["condition"]] = cell
    shown = every[:MOST_CONDITIONS]
    rows = [
        (domain, *(_covered(by_condition.get(condition)) for condition in shown))
        for domain, by_condition in sorted(by_domain.items())
    ]
    width = min(15, 80 // max(1, len(shown)))
    heads = [name.replace("_", " ") for name in shown]
    widths = {"domain": 100 - width * len(heads)} | dict.fromkeys(heads, width)
    return widths, rows, len(every) - len(shown)


def _covered(cell: dict[str, Any] | None) -> Value:
    if cell is None or not cell["runs"]:
        return "none", "gap"
    rate = cell["success"] / cell["runs"]
    shade = sum(rate >= at for at in _SHADES)
    small = " small" if cell["runs"] < _SMALL else ""
    return f"{cell['success']:,}/{cell['runs']:,}", f"shade{shade}{small}"


def gaps(case: Case) -> Iterator[str]:
    """Yield which conditions of the record format no run covers, and which domains miss some."""
    seen, domains = ({cell[name] for cell in case.cells} for name in ("condition", "domain"))
    absent = [condition.value.replace("_", " ") for condition in Condition if condition not in seen]
    if absent:
        yield f"No run in any domain: {', '.join(absent)}."
    if holes := len(domains) * len(seen) - len(case.cells):
        yield f"{many(holes, 'cell')} of the map without a run; a rate there is unknown, not 0."
    if small := sum(cell["runs"] < _SMALL for cell in case.cells):
        yield f"{many(small, 'cell')} with fewer than {_SMALL} runs (dotted underline)."


def register(case: Case) -> Iterator[tuple[str, ...]]:
    """Yield what the report rests on, each with its digest."""
    document, signed = case.document, case.signed
    bundle, profile = document["bundle"], document["profile"]
    sealed = "sealed" if bundle["sealed"] else "NOT sealed"
    yield "E-1", f"evidence bundle, {sealed}, {bundle['origin']}", bundle["digest"]
    yield "E-2", "identity of the agent", document["agent"]["digest"]
    yield "E-3", f"profile {profile['id']}", profile["digest"]
    yield "E-4", "assessment (the bytes of assessment.json)", canonical.digest(case.data)
    if signed is None:
        yield "E-5", "no passport: nothing has been signed", "–"
    else:
        issuer = signed.predicate.issuer.name
        yield (
            "E-5",
            f"signed passport that names {issuer} as its issuer (digest of its payload)",
            signed.id,
        )
    yield from _bundles(document)


def _bundles(document: Document) -> Iterator[tuple[str, ...]]:
    """Yield the bundles of an accumulation with their periods, their rate and the tier of each alone."""
    for number, bundle in enumerate(document.get("bundles", ()), 1):
        start, end = bundle["first_run"], bundle["last_run"]
        if bundle["declared_from"] or bundle["declared_to"] or start is None:
            start, end = bundle["declared_from"], bundle["declared_to"]
        table_tier, bounded = (wording.tier(bundle[reading]["tier"]) for reading in ("table", "bounded"))
        what = (
            f"bundle {number}, {start or 'beginning not stated'} to {end or 'end not stated'}:"
            f" {many(bundle['records'], 'record')},"
            f" {bundle['successes']:,} of {bundle['fault_runs']:,} runs under faults succeeded;"
            f" alone {table_tier} by the table, {bounded} by bounds"
        )
        yield (f"E-1.{number}", what, bundle["digest"])


def domains(case: Case) -> Iterator[tuple[str, ...]]:
    """Yield each domain of the use with whether it was tested, and the tested ones that no use names."""
    for name in sorted(case.wanted | case.tested):
        tested = "tested" if name in case.tested else "not tested"
        yield name, "yes" if name in case.wanted else "not stated", f"{tested} under faults"


def hazards(case: Case, argument: Argument) -> Iterator[tuple[str | None, ...]]:
    """Yield every hazard with what was measured in its conditions and domains, and its state."""
    mitigations = {item.id: item for item in case.context.mitigations or ()}
    for hazard in case.context.hazards or ():
        yield (
            f"{hazard.id}: {hazard.title or 'not named'}",
            hazard.harm,
            hazard.severity,
            words.plain(words.listed(hazard.criteria)) if hazard.criteria else "no criterion",
            _failures(case.measured[hazard.id]),
            f"{100 * hazard.tolerable.at_most:g}\u00a0%" if hazard.tolerable else None,
            "; ".join(mitigations[name].what or name for name in hazard.mitigations or ()),
            judged(argument.states[f"G2.{hazard.id}"]),
        )


def _failures(measured: Measured) -> str:
    bound = "no bound" if measured.bound is None else f"≤\u00a0{100 * measured.bound:.2g}\u00a0%"
    return f"{measured.failures:,} of {measured.runs:,}; {bound}"


MOST_BARS: Final = 12
"""Hazards that the figure shows."""


def hazard_bars(case: Case, argument: Argument) -> Markup | None:
    """Return each hazard's failures with their bound against what is tolerable; None without a hazard."""
    drawn = [
        Bar(
            label=hazard.id[:24],
            share=measured.failures / measured.runs if measured.runs else None,
            bound=measured.bound,
            tolerable=hazard.tolerable.at_most if hazard.tolerable else None,
            state=argument.states[f"G2.{hazard.id}"],
        )
        for hazard in (case.context.hazards or ())[:MOST_BARS]
        for measured in (case.measured[hazard.id],)
    ]
    said = (f"{hazard.id}: {_failures(case.measured[hazard.id])}" for hazard in case.context.hazards or ())
    return bars(drawn, title=f"Failures of each hazard: {'; '.join(said)}") if drawn else None


def review(case: Case) -> Iterator[tuple[str | None, ...]]:
    """Yield who looked at the argument, at what, and what they said."""
    for item in case.context.reviewers or ():
        comments = "; ".join(
            f"{comment.node}: {comment.text or 'no text'}"
            f" ({'resolved' if comment.resolved else 'NOT resolved'})"
            for comment in item.comments or ()
        )
        relation = case.context.by_id[item.person].relation
        yield item.person, relation, item.scope, item.date, comments or "none"


def assumptions(context: Context) -> Iterator[tuple[str | None, ...]]:
    """Yield the assumptions with who owns each and why; those of the use stand behind the report's own."""
    given = {item.id: item for item in context.assumptions or ()}
    texts: dict[str, tuple[str | None, str | None]] = {
        f"A-{number}": pair for number, pair in enumerate(ASSUMPTIONS, start=1)
    }
    texts |= {name: (item.text, item.falsified_by) for name, item in given.items() if item.text}
    for name, (text, usual) in texts.items():
        item = given.get(name, Assumption(id=name))
        yield name, text, item.falsified_by or usual, item.owner, item.rationale


def challenges(argument: Argument, *, stale: bool = False) -> Iterator[tuple[str, ...]]:
    """Yield every challenge with its answer, sustained and open ones first."""
    for item in argument.challenges:
        if item.stale is stale:
            anchor = Markup('<span id="ch-{0}">{0}</span>').format(item.code)
            yield anchor, item.text, item.target, f"{item.state} ({item.kind})", item.said or "–"


def nodes(argument: Argument) -> Iterator[tuple[str, ...]]:
    """Yield the goals and strategies with what each rests on; the attached argument has every node."""
    graph = argument.graph
    for node in graph.nodes:
        if node.state and node.kind in {Kind.GOAL, Kind.STRATEGY}:
            below = (*graph.below(node.id), *graph.beside(node.id))
            yield (
                Markup('<span id="g-{0}">{0}</span>').format(node.id),
                node.state,
                node.text,
                ", ".join(name for name in below if "Sn-" not in name) or ("evidence" if below else "–"),
                ", ".join(name.removeprefix("ch-") for name in graph.against(node.id)) or "–",
            )


def levels(document: Document) -> Iterator[tuple[str | None, ...]]:
    """Yield the source's SIL and ASIL guidance with the arithmetic beside it; nothing without guidance."""
    missing = "hazard and risk analysis, target failure measure, systematic capability, architecture"
    for number, tier in sorted(document["tiers"].items()):
        if given := tier["guidance"]:
            texts = (given.get(name) for name in ("sil", "asil", "arithmetic"))
            yield f"Tier\u00a0{number}", *texts, missing
