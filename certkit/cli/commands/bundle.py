"""``certkit bundle``: making, sealing and checking bundles of evidence."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certkit.bundle import writer
from certkit.bundle.folder import open_bundle
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import answer, coloured, cut, emit, entry, fold, progress
from certkit.ground.text import visible
from certkit.ground.wording import many
from certkit.record.record import Split
from certkit.summary.summarise import summarise
from certkit.summary.summary import Tally

if TYPE_CHECKING:
    from certkit.bundle.folder import Bundle
    from certkit.cli.emit import Line
    from certkit.summary.summary import Summary


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
    writer.init_bundle(folder, agent=agent, version=version, task_salt=salt)
    advice = f"add {folder}/records/*.jsonl, then 'certkit bundle seal {folder}'"
    emit(answer("bundle-init", bundle=folder), [f"{folder}/bundle.json written"], hints=[advice])


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
    sealed = writer.seal(folder, attempt=attempt, progress=progress())
    digest, number = sealed.facts.digest, len(sealed.files)
    document = answer("bundle-seal", digest=digest, files=number)
    emit(document, coloured(fold(f"sealed {many(number, 'file')} as {digest}"), "bold green"))


def check(folder: opt.BundleFolder) -> None:
    """Check structure, digests and every record of a bundle, and show what it covers; or list all faults.

    Shows who was evaluated, how, and what the records cover, domain by condition. Exit code 0: nothing is
    wrong; 3: the bundle is refused.

    Example: certkit bundle check bundle
    """
    bundle = open_bundle(folder, progress=progress())
    summary = summarise(bundle, progress=progress())
    document = answer(
        "bundle-check",
        digest=bundle.facts.digest,
        sealed=bundle.facts.sealed,
        manifest={name: value for name, value in bundle.document.items() if name != "files"},
        files=len(bundle.files),
        records=summary.records,
        coverage=[
            {"split": split, "domain": domain, "condition": condition}
            | {name: tally[name] for name in ("runs", "success", "harness_error")}
            for (split, domain, condition), tally in _coverage(summary)
        ],
    )
    emit(document, _checked(bundle, summary))


_entry = partial(entry, column=21)


def _checked(bundle: Bundle, summary: Summary) -> Iterator[Line]:
    """Print that a bundle holds, who was evaluated and what the records cover."""
    records, listed = many(summary.records, "record"), many(len(bundle.record_files), "file")
    sealed = "sealed" if bundle.facts.sealed else "not sealed"
    yield from coloured(fold(f"valid: {records} in {listed}, {sealed}"), "bold green")
    yield ""
    agent, protocol = bundle.manifest.agent, bundle.manifest.protocol
    provider = f"{agent.provider}/" if agent.provider else ""
    yield from _entry("agent", f"{provider}{agent.name} {agent.version}")
    yield from _entry("identity", bundle.facts.agent.digest)
    yield from _entry("bundle", bundle.facts.digest)
    yield from _entry("origin", protocol.origin)
    for name, value in protocol.model_dump(mode="json", exclude_defaults=True).items():
        if name not in {"origin", "judge", "evaluator", "period", "declared_mix"}:
            yield from _entry(name.replace("_", " "), value)
    yield from _entry("files", f"{len(bundle.files):,}")
    if imported := bundle.manifest.imported:
        yield from _entry("imported", f"{imported.format}: {many(imported.records, 'record')}")
        for note in imported.notes:
            yield from _entry("", f"{note.heading} {note.count:,}: {note.what}")
    yield ""
    yield f"{'domain':<40}{'condition':<20}{'successes/runs':>20}"
    for (split, name, condition), tally in _coverage(summary):
        domain = visible(name) + (" (novel faults)" if split == Split.NOVEL_FAULT else "")
        counts = f"{tally['success']:,}/{tally['runs']:,}"
        yield f"{cut(domain, 39):<40}{cut(condition, 19):<20}{counts:>20}"


def _coverage(summary: Summary) -> Iterator[tuple[tuple[Split, str, str], Tally]]:
    """Yield the counts by split, domain and condition, whatever the faults did."""
    for key, cells in groupby(summary.cells, key=lambda cell: (cell.split, cell.domain, cell.condition)):
        yield key, Tally.total(cells)
