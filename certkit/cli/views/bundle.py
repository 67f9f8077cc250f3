"""What a bundle covers: domain by condition, and the account of its import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta
from rich import text as rich
from rich.table import Table

from certkit.cli.emit import counted, fold
from certkit.document import Count, Digest, Document, Part, Text, fill
from certkit.evidence.records.record import Condition, Split
from certkit.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.cli.emit import Line
    from certkit.evidence import Bundle, Summary
    from certkit.evidence.summary.summary import Cell

_ORDER: Final[dict[str, int]] = {condition: place for place, condition in enumerate(Condition)}
_LABEL: Final = 21
_SHORT = {
    "nominal": "nominal",
    "adversarial": "advers.",
    "context_corruption": "context",
    "tool_failure": "tool",
    "stochastic": "stoch.",
    "combined": "combined",
    "cascade": "cascade",
}


class Covered(Part, frozen=True, kw_only=True):
    """The runs of a domain under a condition."""

    split: Split
    domain: Text
    condition: Annotated[
        Text, Meta(extra_json_schema={"anyOf": [{"enum": list(Condition)}, {"pattern": "^x_"}]})
    ]
    runs: Count
    success: Count
    harness_error: Count


class BundleCheck(Document, frozen=True, kw_only=True, tag="urn:certkit:bundle-check:v1"):
    """What certkit bundle check prints of a bundle that it does not refuse."""

    digest: Digest
    sealed: bool
    manifest: Annotated[Mapping[str, Any], Meta(description="as urn:certkit:bundle:v1, without its files")]
    files: Count
    records: Count
    coverage: Sequence[Covered]


def checked(bundle: Bundle, summary: Summary) -> BundleCheck:
    """Return what `certkit bundle check --json` prints."""
    return BundleCheck(
        digest=bundle.facts.digest,
        sealed=bundle.facts.sealed,
        manifest={name: value for name, value in bundle.document.items() if name != "files"},
        files=len(bundle.files),
        records=summary.records,
        coverage=[
            fill(Covered, cell.tally, split=cell.split, domain=cell.domain, condition=cell.condition)
            for cell in summary.cells
        ],
    )


def show_bundle(bundle: Bundle, summary: Summary) -> Iterator[Line]:
    """Print that a bundle holds, who was evaluated and what the records cover."""
    records, listed = counted(summary.records, "record"), counted(len(bundle.record_files), "file")
    yield from fold(f"valid: {records} in {listed}, {'sealed' if bundle.facts.sealed else 'not sealed'}")
    yield ""
    agent, protocol = bundle.manifest.agent, bundle.manifest.protocol
    provider = f"{agent.provider}/" if agent.provider else ""
    yield from _entry("agent", f"{provider}{agent.name} {agent.version}")
    yield from _entry("identity", bundle.facts.agent_digest)
    yield from _entry("bundle", bundle.facts.digest)
    yield from _entry("origin", protocol.origin)
    for name, value in protocol.model_dump(mode="json", exclude_defaults=True).items():
        if name not in {"origin", "judge", "evaluator", "period", "declared_mix"}:
            yield from _entry(name.replace("_", " "), value)
    yield from _entry("files", f"{len(bundle.files):,}")
    if imported := bundle.manifest.imported:
        yield from _entry("imported", f"{imported.format}: {imported.records:,} records")
        for note in imported.notes:
            yield from _entry("", f"{note.kind} {note.count:,}: {note.what}")
    yield ""
    yield from show_cells(summary.cells)


def _entry(label: str, value: object) -> Iterator[str]:
    yield from fold(str(value), first=f"{label:<{_LABEL}}", rest=" " * _LABEL)


def show_cells(cells: Sequence[Cell]) -> Iterator[Line]:
    """Print successes / runs for each domain and condition."""
    for split in Split:
        chosen = [cell for cell in cells if cell.split == split]
        if not chosen:
            continue
        conditions = sorted(
            {cell.condition for cell in chosen}, key=lambda name: (_ORDER.get(name, 99), name)
        )
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(
            rich.Text("domain" if split == Split.STANDARD else "domain (novel faults)"), overflow="fold"
        )
        for condition in conditions:
            table.add_column(rich.Text(visible(_SHORT.get(condition, condition))), justify="right")
        for domain in sorted({cell.domain for cell in chosen}):
            by_condition = {cell.condition: cell.tally for cell in chosen if cell.domain == domain}
            row = [rich.Text(visible(domain))]
            for condition in conditions:
                tally = by_condition.get(condition)
                row.append(rich.Text("·" if tally is None else f"{tally.success:,}/{tally.runs:,}"))
            table.add_row(*row)
        yield table
    yield "successes/runs; · none"
