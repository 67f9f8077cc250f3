"""``certkit bundle``: make, seal, check and look at bundles."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer

from certkit.cli import output
from certkit.cli.options import BundleFolder, Jobs, Json, Quiet
from certkit.cli.views.bar import progress

app = typer.Typer(
    help="Make, seal, check and look at evidence bundles.", no_args_is_help=True, rich_markup_mode=None
)


def new_salt() -> str:
    """Return 32 random bytes in hexadecimal: the salt of a new lineage's tasks."""
    return secrets.token_hex(32)


@app.command("init")
def init(
    folder: Annotated[Path, typer.Argument(metavar="BUNDLE", help="The folder to make the bundle in.")],
    agent: Annotated[str, typer.Option("--agent", help="The name of the agent that was evaluated.")],
    version: Annotated[
        str, typer.Option("--version", "--agent-version", help="Its version; 'unversioned' if it has none.")
    ],
    simulated: Annotated[
        bool, typer.Option("--simulated", help="The records will come from a simulation, not a measurement.")
    ] = False,
    like: Annotated[
        Path | None,
        typer.Option(
            "--like",
            metavar="OLD",
            help="An earlier bundle of the agent: keep its task salt, so that drift can pair the tasks.",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the manifest of a new bundle; put record files into its records/ folder afterwards.

    The manifest gets a random salt, by which passports name tasks without telling their names.

    Example: certkit bundle init bundle --agent triage --version 1.4.0
    """
    from certkit import evidence  # noqa: PLC0415 - keeps the help fast

    origin = "simulated" if simulated else "measured"
    salt = new_salt() if like is None else evidence.open_bundle(like).manifest.protocol.task_salt
    evidence.init(folder, agent=agent, version=version, origin=origin, task_salt=salt)
    if json:
        output.document({"schema": "urn:certkit:bundle-init:v1", "bundle": str(folder)})
    elif not quiet:
        output.say(f"{folder}/bundle.json written")
        if salt is None:
            output.hint(f"{like} has no task salt to keep: drift will not pair tasks")
        output.hint(f"add {folder}/records/*.jsonl, then 'certkit bundle seal {folder}'")


@app.command("seal")
def seal(
    folder: BundleFolder,
    attempt: Annotated[
        int | None,
        typer.Option(
            "--attempt",
            min=1,
            max=1_000_000,
            help="Declare in the manifest that this evidence is the agent's n-th attempt.",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List every file with its digest in the manifest, so that any later change is noticed.

    A bundle that is sealed already is sealed anew.

    Example: certkit bundle seal bundle
    """
    from certkit import evidence  # noqa: PLC0415 - keeps the help fast

    sealed = evidence.seal(folder, attempt=attempt, progress=progress(hidden=quiet or json))
    if json:
        output.document(
            {
                "schema": "urn:certkit:bundle-seal:v1",
                "digest": sealed.facts.digest,
                "files": len(sealed.files),
            }
        )
    elif not quiet:
        output.wrapped(f"sealed {output.counted(len(sealed.files), 'file')} as {sealed.facts.digest}")


@app.command("validate")
def validate(folder: BundleFolder, jobs: Jobs = None, json: Json = False, quiet: Quiet = False) -> None:
    """Check structure, digests and every record of a bundle; list all faults.

    Exit code 0: nothing is wrong; 3: the bundle is refused.

    Example: certkit bundle validate bundle
    """
    from certkit import evidence  # noqa: PLC0415 - keeps the help fast

    drawn = progress(hidden=quiet or json)
    bundle = evidence.open_bundle(folder, progress=drawn)
    summary = evidence.summarise(bundle, jobs=jobs, progress=drawn)
    if json:
        output.document(
            {
                "schema": "urn:certkit:bundle-validation:v1",
                "digest": bundle.facts.digest,
                "sealed": bundle.facts.sealed,
                "files": len(bundle.files),
                "records": summary.records,
            }
        )
    elif not quiet:
        sealed = "sealed" if bundle.facts.sealed else "not sealed"
        output.wrapped(
            f"valid: {output.counted(summary.records, 'record')} in "
            f"{output.counted(len(bundle.record_files), 'file')}, {sealed}, {bundle.facts.digest}"
        )


@app.command("show")
def show(folder: BundleFolder, jobs: Jobs = None, json: Json = False) -> None:
    """Show who was evaluated, how, and what the records cover, domain by condition.

    Example: certkit bundle show bundle
    """
    from certkit import evidence  # noqa: PLC0415 - keeps the help fast
    from certkit.cli.views.coverage import coverage, show_bundle  # noqa: PLC0415 - the same

    drawn = progress(hidden=json)
    bundle = evidence.open_bundle(folder, progress=drawn)
    summary = evidence.summarise(bundle, jobs=jobs, progress=drawn)
    if json:
        output.document(coverage(bundle, summary))
    else:
        show_bundle(bundle, summary)
