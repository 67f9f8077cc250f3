"""The tables of sections 3, 4 and 8 to 14: use, evidence, the argument and what follows it.

Who was evaluated and how, what the records cover, what is attached; what people said of the use; nodes,
challenges, assumptions, and the arithmetic of SIL guidance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from certkit import canonical, wording
from certkit.evidence.bundle.manifest import Period
from certkit.evidence.records.record import Condition, Split
from certkit.report import words
from certkit.report.argument.build import ASSUMPTIONS
from certkit.report.argument.graph import Kind
from certkit.report.svg import Bar, bars, judged
from certkit.report.table import Cell, Table, table
from certkit.wording import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.evidence.context import Context
    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import Case, Measured
    from certkit.report.table import Entries, Value

MOST_CONDITIONS: Final = 8
"""Columns of the coverage map that fit a page; the rest is named below it."""

_PLACES: Final[dict[str, int]] = {condition: place for place, condition in enumerate(Condition)}
_SHADES: Final = (0.4, 0.6, 0.8, 0.95)
_SMALL: Final = 10


def scope(case: Case) -> Entries:
    """Return who was evaluated, how and by whom, as the manifest states it."""
    agent, protocol = case.manifest.agent, case.manifest.protocol
    evaluator, judge, period = protocol.evaluator, protocol.judge, protocol.period or Period()
    judged, observable = None, protocol.memory_observable
    if judge:
        family = f", family {judge.family}" if judge.family else ""
        judged = f"{judge.name}{family}, {'independent' if judge.independent else 'NOT independent'}"
    window = f"{period.from_ or 'not provided'} to {period.to or 'not provided'}"
    return {
        "Agent": agent.name,
        "Version": agent.version,
        "Provider": agent.provider,
        "Methodology": protocol.methodology and protocol.methodology.replace("_", " "),
        "Temperature": _number(protocol.temperature),
        "Judge": judged,
        "Memory queries observable": None if observable is None else "yes" if observable else "no",
        "Cascade definition": protocol.cascade_definition,
        "Success was read as": protocol.success_rule,
        "Declared runs": _number(protocol.declared_runs),
        "Attempt": _number(protocol.attempt),
        "Evaluator": evaluator.name if evaluator else None,
        "Evaluator's relation to the developer": evaluator.relation if evaluator else None,
        "Evidence window": window if protocol.period else None,
    }


def _number(number: float | None) -> str | None:
    return None if number is None else f"{number:,}"


def coverage(document: dict[str, Any], *, split: str = Split.STANDARD) -> Table:
    """Return successes of runs for each domain and condition, shaded by rate; blanks are gaps."""
    cells = [cell for cell in document["breakdown"] if cell["split"] == split]
    every = sorted({cell["condition"] for cell in cells}, key=lambda name: (_PLACES.get(name, 99), name))
    conditions = every[:MOST_CONDITIONS]
    by_domain: dict[str, dict[str, dict[str, Any]]] = {}
    for cell in cells:
        by_domain.setdefault(cell["domain"], {})[cell["condition"]] = cell
    body = (
        (domain, *(_covered(by_condition.get(condition)) for condition in conditions))
        for domain, by_condition in sorted(by_domain.items())
    )
    width = min(15, 80 // max(1, len(conditions)))
    heads = [name.replace("_", " ") for name in conditions]
    caption = "successes of runs by domain and condition" if split == Split.STANDARD else "held-out faults"
    if more := len(every) - len(conditions):
        caption += f"; {more} more conditions are in the assessment"
    widths = {"domain": 100 - width * len(heads)} | dict.fromkeys(heads, width)
    return table(f"Coverage: {caption}", widths, body, numbers=heads, style="map")


def _covered(cell: dict[str, Any] | None) -> Value:
    if cell is None or not cell["runs"]:
        return Cell("none", "gap")
    rate = cell["success"] / cell["runs"]
    shade = sum(rate >= at for at in _SHADES)
    small = " small" if cell["runs"] < _SMALL else ""
    return Cell(f"{cell['success']:,}/{cell['runs']:,}", f"shade{shade}{small}")


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


def register(case: Case) -> Table:
    """Return what the report rests on, each with its digest."""
    document, signed = case.document, case.signed
    bundle, profile = document["bundle"], document["profile"]
    sealed = "sealed" if bundle["sealed"] else "NOT sealed"
    passport: tuple[Value, ...] = ("E-5", "no passport: nothing has been signed", "–")
    if signed is not None:
        issuer = signed.predicate.issuer.name
        named = f"signed passport that names {issuer} as its issuer (digest of its payload)"
        passport = ("E-5", named, signed.id)
    body: list[tuple[Value, ...]] = [
        ("E-1", f"evidence bundle, {sealed}, {bundle['origin']}", bundle["digest"]),
        ("E-2", "identity of the agent", document["agent"]["digest"]),
        ("E-3", f"profile {profile['id']}", profile["digest"]),
        ("E-4", "assessment (the bytes of assessment.json)", canonical.digest(case.data)),
        passport,
        *_bundles(document),
    ]
    return table("Evidence register", {"id": 6, "what": 30, "digest": 64}, body)


def _bundles(document: dict[str, Any]) -> Iterator[tuple[Value, ...]]:
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


def domains(case: Case) -> Table:
    """Return each domain of the use with whether it was tested, and the tested ones that no use names."""
    body = (
        (
            name,
            "yes" if name in case.wanted else "not stated",
            "tested under faults" if name in case.tested else "not tested under faults",
        )
        for name in sorted(case.wanted | case.tested)
    )
    widths = {"domain": 50, "of this use": 20, "evidence": 30}
    return table("Domains of the use against domains with evidence", widths, body)


def hazards(case: Case, argument: Argument) -> Table:
    """Return every hazard with what was measured in its conditions and domains, and its state."""
    mitigations = {item.id: item for item in case.context.mitigations or ()}
    body = (
        (
            f"{hazard.id}: {hazard.title or 'not named'}",
            hazard.harm,
            hazard.severity,
            words.plain(words.listed(hazard.criteria)) if hazard.criteria else "no criterion",
            _failures(case.measured[hazard.id]),
            f"{100 * hazard.tolerable.at_most:g}\u00a0%" if hazard.tolerable else None,
            "; ".join(mitigations[name].what or name for name in hazard.mitigations or ()) or None,
            judged(argument.states[f"G2.{hazard.id}"]),
        )
        for hazard in case.context.hazards or ()
    )
    widths = {
        "hazard": 17,
        "harm": 16,
        "severity": 10,
        "rests on": 14,
        "failed runs": 13,
        "at most": 8,
        "mitigations": 12,
        "state": 10,
    }
    return table("Hazards of this use", widths, body, numbers=("at most",))


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


def review(case: Case) -> Table:
    """Return who looked at the argument, at what, and what they said."""
    body = (
        (
            item.person,
            case.context.by_id[item.person].relation,
            item.scope,
            item.date,
            "; ".join(
                f"{comment.node}: {comment.text or 'no text'}"
                f" ({'resolved' if comment.resolved else 'NOT resolved'})"
                for comment in item.comments or ()
            )
            or "none",
        )
        for item in case.context.reviewers or ()
    )
    widths = {"reviewer": 14, "relation": 14, "scope": 24, "date": 12, "comments": 36}
    return table("Reviewers", widths, body)


def assumptions(context: Context) -> Table:
    """Return the assumptions with who owns each and why; those of the use stand behind the report's own."""
    given = {item.id: item for item in context.assumptions or ()}
    texts: dict[str, tuple[str | None, str | None]] = {
        f"A-{number}": pair for number, pair in enumerate(ASSUMPTIONS, start=1)
    }
    texts |= {name: (item.text, item.falsified_by) for name, item in given.items() if item.text}
    body = (
        (
            name,
            text,
            (given[name].falsified_by if name in given else None) or usual,
            given[name].owner if name in given else None,
            given[name].rationale if name in given else None,
        )
        for name, (text, usual) in texts.items()
    )
    widths = {"id": 7, "assumption": 28, "how it could be false": 31, "owner": 11, "rationale": 23}
    return table("Assumptions", widths, body)


def challenges(argument: Argument, *, stale: bool = False) -> Table:
    """Return every challenge with its answer, sustained and open ones first."""
    body = (
        (
            Markup('<span id="ch-{0}">{0}</span>').format(item.code),
            item.text,
            item.target,
            f"{item.state.value} ({item.kind.value})",
            item.said or "–",
        )
        for item in argument.challenges
        if item.stale is stale
    )
    widths = {
        "challenge": 20,
        "what it says": 41,
        "goal": 8,
        "state": 13,
        "answer": 18,
    }
    return table("Stale answers: given for other evidence" if stale else "Challenges", widths, body)


def nodes(argument: Argument) -> Table:
    """Return the goals and strategies with what each rests on; the attached argument has every node."""
    graph = argument.graph
    body = (
        (
            Markup('<span id="g-{0}">{0}</span>').format(node.id),
            node.state.value,
            node.text,
            ", ".join(name for name in (*graph.below(node.id), *graph.beside(node.id)) if "Sn-" not in name)
            or ("evidence" if graph.below(node.id) else "–"),
            ", ".join(name.removeprefix("ch-") for name in graph.against(node.id)) or "–",
        )
        for node in graph.nodes
        if node.state and node.kind in {Kind.GOAL, Kind.STRATEGY}
    )
    widths = {"node": 20, "state": 12, "text": 32, "rests on": 20, "challenged by": 16}
    return table("Register of nodes", widths, body)


def levels(document: dict[str, Any]) -> Table:
    """Return the source's SIL and ASIL guidance with the arithmetic beside it, empty without guidance."""
    missing = "hazard and risk analysis, target failure measure, systematic capability, architecture"
    body = (
        (f"Tier\u00a0{number}", given.get("sil"), given.get("asil"), given.get("arithmetic"), missing)
        for number, tier in sorted(document["tiers"].items())
        if (given := tier["guidance"])
    )
    widths = {
        "tier": 7,
        "source's SIL text": 13,
        "source's ASIL text": 13,
        "arithmetic": 36,
        "not determined here": 31,
    }
    return table("Guidance of the source against its own thresholds", widths, body)
