"""``certkit bundle``: making, sealing and checking bundles of evidence."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Meta

from certkit.bundle import folder as bundles
from certkit.bundle.folder import open_bundle
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import cut, emit, entry, fold, progress
from certkit.ground.document import Count, Digest, Document, GivenPath, Part, Text, fill
from certkit.ground.text import visible
from certkit.ground.wording import many
from certkit.record.record import Condition, Split
from certkit.summary.summarise import summarise

if TYPE_CHECKING:
    from certkit.bundle.folder import Bundle
    from certkit.summary.summary import Summary


class BundleInit(Document, frozen=True, kw_only=True, tag="urn:certkit:bundle-init:v1"):
    """What certkit bundle init prints."""

    bundle: GivenPath


class BundleSeal(Document, frozen=True, kw_only=True, tag="urn:certkit:bundle-seal:v1"):
    """What certkit bundle seal prints."""

    digest: Digest
    files: Count


def init(
    folder: Annotated[Path, typer.Argument(metavar="BUNDLE", help="The folder to make the bundle in.")],
    agent: Annotated[str, opt.AGENT(help="The name of the agent that was evaluated.")],
    version: Annotated[
        str, opt.AGENT_VERSION("--version", help="Its version; 'unversioned' if it has none.")
    ],
    like: opt.Like = None,
) -> None:
    """Write the manifest of a new bundle; put record files into its records/ folder afterwards.

    The manifest gets a random salt, by which passports name tasks without telling their names.

    Example: certkit bundle init bundle --agent triage --version 1.4.0
    """
    salt = secrets.token_hex(32) if like is None else context.salt_of(like)
    bundles.init(folder, agent=agent, version=version, origin="measured", task_salt=salt)
    advice = f"add {folder}/records/*.jsonl, then 'certkit bundle seal {folder}'"
    emit(BundleInit(bundle=folder), [f"{folder}/bundle.json written"], hints=[advice])


def seal(
    folder: opt.BundleFolder,
    attempt: Annotated[
        int | None,
        opt.ATTEMPT(help="Declare in the manifest that this evidence is the agent's n-th attempt."),
    ] = None,
) -> None:
    """List every file with its digest in the manifest, so that any later change is noticed.

    A bundle that is sealed already is sealed anew.

    Example: certkit bundle seal bundle
    """
    sealed = bundles.seal(folder, attempt=attempt, progress=progress())
    digest, number = sealed.facts.digest, len(sealed.files)
    emit(BundleSeal(digest=digest, files=number), fold(f"sealed {many(number, 'file')} as {digest}"))


def check(folder: opt.BundleFolder) -> None:
    """Check structure, digests and every record of a bundle, and show what it covers; or list all faults.

    Shows who was evaluated, how, and what the records cover, domain by condition. Exit code 0: nothing is
    wrong; 3: the bundle is refused.

    Example: certkit bundle check bundle
    """
    bundle = open_bundle(folder, progress=progress())
    summary = summarise(bundle, progress=progress())
    document = BundleCheck(
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
    emit(document, _checked(bundle, summary))


_entry = partial(entry, width=21)


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


def _checked(bundle: Bundle, summary: Summary) -> Iterator[str]:
    """Print that a bundle holds, who was evaluated and what the records cover."""
    records, listed = many(summary.records, "record"), many(len(bundle.record_files), "file")
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
            yield from _entry("", f"{note.heading} {note.count:,}: {note.what}")
    yield ""
    yield f"{'domain':<40}{'condition':<20}{'successes/runs':>20}"
    for cell in summary.cells:
        domain = visible(cell.domain) + (" (novel faults)" if cell.split == Split.NOVEL_FAULT else "")
        counts = f"{cell.tally.success:,}/{cell.tally.runs:,}"
        yield f"{cut(domain, 39):<40}{cut(cell.condition, 19):<20}{counts:>20}"
