"""The evidence: who was evaluated, how, what the records cover, and what is attached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from certkit import canonical
from certkit.evidence.records.record import Condition, Split
from certkit.report import words
from certkit.report.table import Cell, Column, Entry, Table, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from certkit.report.issued import Issued
    from certkit.report.material import Material
    from certkit.report.table import Value

MOST_CONDITIONS: Final = 8
"""Columns of the coverage map that fit a page; the rest is named below it."""

_PLACES: Final[dict[str, int]] = {condition: place for place, condition in enumerate(Condition)}
_SHADES: Final = (0.4, 0.6, 0.8, 0.95)
_SMALL: Final = 10


def scope(material: Material) -> tuple[Entry, ...]:
    """Return who was evaluated, how and by whom, as the manifest states it."""
    agent, stated = material.document["agent"], material.manifest
    protocol = stated.get("protocol", {})
    evaluator, judge = protocol.get("evaluator") or {}, protocol.get("judge") or {}
    period = protocol.get("period") or {}
    observable = {True: "yes", False: "no"}.get(protocol.get("memory_observable"))
    temperature = protocol.get("temperature")
    return (
        Entry("Agent", agent["name"]),
        Entry("Version", agent["version"]),
        Entry("Provider", stated.get("agent", {}).get("provider")),
        Entry("Intended use", None),
        Entry("Operating domain", None),
        Entry("Exclusions", None),
        Entry("Methodology", _plain(protocol.get("methodology"))),
        Entry("Temperature", None if temperature is None else f"{temperature:g}"),
        Entry("Judge", _judge(judge)),
        Entry("Memory queries observable", observable),
        Entry("Cascade definition", protocol.get("cascade_definition")),
        Entry("Success was read as", protocol.get("success_rule")),
        Entry("Declared runs", _count(protocol.get("declared_runs"))),
        Entry("Attempt", _count(protocol.get("attempt"))),
        Entry("Evaluator", evaluator.get("name")),
        Entry("Evaluator's relation to the developer", evaluator.get("relation")),
        Entry("Evidence window", _period(period)),
    )


def _plain(text: str | None) -> str | None:
    return text.replace("_", " ") if text else None


def _count(n: int | None) -> str | None:
    return None if n is None else f"{n:,}"


def _judge(judge: dict[str, Any]) -> str | None:
    if not judge:
        return None
    family = f", family {judge['family']}" if judge.get("family") else ""
    return f"{judge['name']}{family}, {'independent' if judge['independent'] else 'NOT independent'}"


def _period(period: dict[str, Any]) -> str | None:
    if not period:
        return None
    return f"{period.get('from') or 'not provided'} to {period.get('to') or 'not provided'}"


def components(material: Material) -> Table:
    """Return the exact configuration, part by part."""
    parts = (material.manifest.get("agent") or {}).get("components") or ()
    body = (
        (
            part["role"].replace("_", " "),
            part["name"],
            part.get("version"),
            part.get("digest") or "not pinned",
        )
        for part in parts
    )
    columns = (Column("role", 14), Column("name", 28), Column("version", 18), Column("digest", 40))
    return table("Components of the agent", columns, body)


def imports(material: Material) -> Table:
    """Return the account of the import, where the bundle was made by one."""
    notes = (material.manifest.get("imported") or {}).get("notes") or ()
    body = (
        (note["kind"], words.count(note["count"]), note["what"], note.get("detail") or "–") for note in notes
    )
    columns = (Column("kind", 12), Column("count", 10, "number"), Column("what", 39), Column("detail", 39))
    return table("What the import filled, left out or found odd", columns, body)


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
    columns = (
        Column("domain", 100 - width * len(conditions)),
        *(Column(name.replace("_", " "), width, "number") for name in conditions),
    )
    left = (
        f"; {len(every) - len(conditions)} more conditions are in the assessment"
        if len(every) > len(conditions)
        else ""
    )
    caption = "successes of runs by domain and condition" if split == Split.STANDARD else "held-out faults"
    return table(f"Coverage: {caption}{left}", columns, body, style="map")


def _covered(cell: dict[str, Any] | None) -> Value:
    if cell is None or not cell["runs"]:
        return Cell("none", "gap")
    rate = cell["success"] / cell["runs"]
    shade = sum(rate >= at for at in _SHADES)
    small = " small" if cell["runs"] < _SMALL else ""
    return Cell(f"{cell['success']:,}/{cell['runs']:,}", f"shade{shade}{small}")


def gaps(document: dict[str, Any]) -> tuple[str, ...]:
    """Return which conditions of the record format no run covers, and which domains miss some."""
    cells = [cell for cell in document["breakdown"] if cell["split"] == Split.STANDARD and cell["runs"]]
    seen = {cell["condition"] for cell in cells}
    absent = [condition.value.replace("_", " ") for condition in Condition if condition not in seen]
    lines = [f"No run in any domain: {', '.join(absent)}."] if absent else []
    domains = {cell["domain"] for cell in cells}
    holes = len(domains) * len(seen) - len({(cell["domain"], cell["condition"]) for cell in cells})
    if holes:
        lines.append(
            f"{words.plural(holes, 'cell')} of the map without a run; a rate there is unknown, not 0."
        )
    small = sum(cell["runs"] < _SMALL for cell in cells)
    if small:
        lines.append(f"{words.plural(small, 'cell')} with fewer than {_SMALL} runs (dotted underline).")
    return tuple(lines)


def register(material: Material, issued: Issued | None) -> Table:
    """Return what the report rests on, each with its digest."""
    document = material.document
    bundle, profile = document["bundle"], document["profile"]
    body: list[tuple[Value, ...]] = [
        (
            "E-1",
            f"evidence bundle, {'sealed' if bundle['sealed'] else 'NOT sealed'}, {bundle['origin']}",
            bundle["digest"],
        ),
        ("E-2", "identity of the agent", document["agent"]["digest"]),
        ("E-3", f"profile {profile['id']}", profile["digest"]),
        ("E-4", "assessment (the bytes of assessment.json)", canonical.digest(material.data)),
    ]
    if issued is None:
        body.append(("E-5", "no passport: nothing has been signed", "–"))
    else:
        name = issued.predicate.issuer.name
        body.append(
            ("E-5", f"signed passport that names {name} as its issuer (digest of its payload)", issued.id)
        )
    body += _bundles(document.get("bundles", ()))
    columns = (Column("id", 6), Column("what", 30), Column("digest", 64))
    return table("Evidence register", columns, body)


def _bundles(bundles: Iterable[dict[str, Any]]) -> Iterator[tuple[Value, ...]]:
    """Yield the bundles of an accumulation with their periods, their rate and the tier of each alone."""
    for number, bundle in enumerate(bundles, 1):
        start, end = (bundle["first_run"], bundle["last_run"])
        if bundle["declared_from"] or bundle["declared_to"] or start is None:
            start, end = bundle["declared_from"], bundle["declared_to"]
        what = (
            f"bundle {number}, {start or 'beginning not stated'} to {end or 'end not stated'}:"
            f" {words.plural(bundle['records'], 'record')},"
            f" {bundle['successes']:,} of {bundle['fault_runs']:,} runs under faults succeeded;"
            f" alone {_tier(bundle['table'])} by the table, {_tier(bundle['bounded'])} by bounds"
        )
        yield (f"E-1.{number}", what, bundle["digest"])


def _tier(reading: dict[str, Any]) -> str:
    return f"Tier {reading['tier']}" if reading["tier"] else "no tier"
