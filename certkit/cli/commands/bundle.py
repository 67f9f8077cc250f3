"""``certkit bundle`` and ``certkit import``: how evidence becomes a bundle, and what a bundle holds."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer
from msgspec import Meta

from certkit import evidence
from certkit.cli.documents import BundleInit, BundleSeal
from certkit.cli.emit import counted, emit, fold, hint, note, progress
from certkit.cli.options import (
    AGENT,
    ATTEMPT,
    LIKE,
    BundleFolder,
    Jobs,
    NoSeal,
    Out,
    about,
)
from certkit.cli.views.bundle import checked, show_bundle
from certkit.document import Digest, Document, GivenPath, Part, fill
from certkit.evidence.bundle.manifest import Agent, Imported
from certkit.evidence.importers import ImportOptions, run

if TYPE_CHECKING:
    from certkit.evidence.importers import ImportAccount


class ImportedBundle(Part, frozen=True, kw_only=True):
    """A bundle that an import wrote."""

    bundle: GivenPath
    digest: Annotated[Digest | None, Meta(description="null where it was not sealed")]
    agent: Agent
    imported: Imported


class Import(Document, frozen=True, kw_only=True, tag="urn:certkit:import:v1"):
    """The bundles that an import wrote."""

    bundles: Sequence[ImportedBundle]


Like = Annotated[Path | None, LIKE]


def _salt_of(old: Path) -> str | None:
    """Return the task salt of an earlier bundle; hint where it has none."""
    salt = evidence.open_bundle(old).manifest.protocol.task_salt
    if salt is None:
        hint(f"{old} has no task salt to keep: drift will not pair tasks")
    return salt


def init(
    folder: Annotated[Path, typer.Argument(metavar="BUNDLE", help="The folder to make the bundle in.")],
    agent: Annotated[str, about(AGENT, "The name of the agent that was evaluated.")],
    version: Annotated[
        str, typer.Option("--version", "--agent-version", help="Its version; 'unversioned' if it has none.")
    ],
    simulated: Annotated[
        bool, typer.Option("--simulated", help="The records will come from a simulation, not a measurement.")
    ] = False,
    like: Like = None,
) -> None:
    """Write the manifest of a new bundle; put record files into its records/ folder afterwards.

    The manifest gets a random salt, by which passports name tasks without telling their names.

    Example: certkit bundle init bundle --agent triage --version 1.4.0
    """
    origin = "simulated" if simulated else "measured"
    salt = secrets.token_hex(32) if like is None else _salt_of(like)
    evidence.init(folder, agent=agent, version=version, origin=origin, task_salt=salt)
    emit(BundleInit(bundle=folder), _made(folder))


def _made(folder: Path) -> Iterator[str]:
    yield f"{folder}/bundle.json written"
    hint(f"add {folder}/records/*.jsonl, then 'certkit bundle seal {folder}'")


def seal(
    folder: BundleFolder,
    attempt: Annotated[
        int | None,
        about(ATTEMPT, "Declare in the manifest that this evidence is the agent's n-th attempt."),
    ] = None,
) -> None:
    """List every file with its digest in the manifest, so that any later change is noticed.

    A bundle that is sealed already is sealed anew.

    Example: certkit bundle seal bundle
    """
    sealed = evidence.seal(folder, attempt=attempt, progress=progress())
    digest, number = sealed.facts.digest, len(sealed.files)
    emit(
        BundleSeal(digest=digest, files=number),
        fold(f"sealed {counted(number, 'file')} as {digest}"),
    )


def check(folder: BundleFolder, jobs: Jobs = None) -> None:
    """Check structure, digests and every record of a bundle, and show what it covers; or list all faults.

    Shows who was evaluated, how, and what the records cover, domain by condition. Exit code 0: nothing is
    wrong; 3: the bundle is refused.

    Example: certkit bundle check bundle
    """
    bundle = evidence.open_bundle(folder, progress=progress())
    summary = evidence.summarise(bundle, jobs=jobs, progress=progress())
    emit(checked(bundle, summary), show_bundle(bundle, summary))


def import_(
    format: Annotated[  # noqa: A002 - its name on the command line
        str, typer.Argument(metavar="FORMAT", help="agentdojo, records or hb-eval.")
    ],
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="The log: a file or a folder.")],
    out: Out,
    agent: Annotated[
        str | None, about(AGENT, "Name the agent, or choose one of several in the source.")
    ] = None,
    agent_version: Annotated[
        str | None, typer.Option("--agent-version", help="Its version, where the log does not tell.")
    ] = None,
    mapping: Annotated[
        Path | None, typer.Option("--map", help="records: a TOML file that maps columns and values.")
    ] = None,
    success: Annotated[
        str,
        typer.Option(
            "--success",
            help="agentdojo: 'strict' (task done and attack failed) or 'utility' (task done) under attack.",
        ),
    ] = "strict",
    model: Annotated[
        list[str] | None, typer.Option("--model", help="hb-eval: import only this model; may be repeated.")
    ] = None,
    like: Like = None,
    no_seal: NoSeal = False,
) -> None:
    """Turn the log of another program into an evidence bundle.

    What the log holds is filled, what it does not hold stays unmeasured, and everything that was left
    out, odd or refused is counted, printed, and kept in the manifest. One unreadable row refuses the import.
    Importing again gives the same bytes, so no task salt is drawn: --like takes that of another bundle.

    Example: certkit import agentdojo runs.jsonl.gz -o bundle
    """
    if success not in {"strict", "utility"}:
        raise typer.BadParameter("'strict' or 'utility'", param_hint="--success")
    options = ImportOptions(
        agent=agent,
        agent_version=agent_version,
        mapping=mapping,
        success=cast("Literal['strict', 'utility']", success),
        seal=not no_seal,
        models=tuple(model or ()),
        task_salt=None if like is None else _salt_of(like),
    )
    accounts = run(format, source, out, options, progress())
    emit(
        Import(bundles=[fill(ImportedBundle, account, bundle=account.out) for account in accounts]),
        (line for account in accounts for line in _imported(account)),
    )


def _imported(account: ImportAccount) -> Iterator[str]:
    imported = account.imported
    sealed = "sealed as" if account.digest else "not sealed"
    yield f"{account.out}: {imported.records:,} records of {account.agent.name}, {sealed}"
    if account.digest:
        yield account.digest
    width = max((len(f"{item.count:,}") for item in imported.notes), default=1)
    for item in imported.notes:
        detail = f": {item.detail}" if item.detail else ""
        text = f"{item.kind:<10} {item.count:>{width},}  {item.what}{detail}"
        yield from fold(text, first="  ", rest=" " * (15 + width))
    note(f"hint: certkit assess {account.out}")
