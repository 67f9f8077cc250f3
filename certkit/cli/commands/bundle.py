"""``certkit bundle``: making, sealing and checking bundles of evidence."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from certkit import evidence
from certkit.cli import options as opt
from certkit.cli.documents import BundleInit, BundleSeal
from certkit.cli.emit import counted, emit, fold, hint, progress
from certkit.cli.views.bundle import checked, show_bundle


def init(
    folder: Annotated[Path, typer.Argument(metavar="BUNDLE", help="The folder to make the bundle in.")],
    agent: Annotated[str, opt.AGENT(help="The name of the agent that was evaluated.")],
    version: Annotated[
        str, opt.AGENT_VERSION("--version", help="Its version; 'unversioned' if it has none.")
    ],
    simulated: Annotated[
        bool, typer.Option("--simulated", help="The records will come from a simulation, not a measurement.")
    ] = False,
    like: opt.Like = None,
) -> None:
    """Write the manifest of a new bundle; put record files into its records/ folder afterwards.

    The manifest gets a random salt, by which passports name tasks without telling their names.

    Example: certkit bundle init bundle --agent triage --version 1.4.0
    """
    origin = "simulated" if simulated else "measured"
    salt = secrets.token_hex(32) if like is None else opt.salt_of(like)
    evidence.init(folder, agent=agent, version=version, origin=origin, task_salt=salt)
    emit(BundleInit(bundle=folder), _made(folder))


def _made(folder: Path) -> Iterator[str]:
    yield f"{folder}/bundle.json written"
    hint(f"add {folder}/records/*.jsonl, then 'certkit bundle seal {folder}'")


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
    sealed = evidence.seal(folder, attempt=attempt, progress=progress())
    digest, number = sealed.facts.digest, len(sealed.files)
    emit(
        BundleSeal(digest=digest, files=number),
        fold(f"sealed {counted(number, 'file')} as {digest}"),
    )


def check(folder: opt.BundleFolder, jobs: opt.Jobs = None) -> None:
    """Check structure, digests and every record of a bundle, and show what it covers; or list all faults.

    Shows who was evaluated, how, and what the records cover, domain by condition. Exit code 0: nothing is
    wrong; 3: the bundle is refused.

    Example: certkit bundle check bundle
    """
    bundle = evidence.open_bundle(folder, progress=progress())
    summary = evidence.summarise(bundle, jobs=jobs, progress=progress())
    emit(checked(bundle, summary), show_bundle(bundle, summary))
