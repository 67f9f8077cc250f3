"""The evidence: who was evaluated, how, what the records cover, and what is attached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from certkit import canonical, wording
from certkit.evidence.bundle.manifest import Period
from certkit.evidence.records.record import Condition, Split
from certkit.report.table import Cell, Table, table
from certkit.wording import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.report.argument.case import Case
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
