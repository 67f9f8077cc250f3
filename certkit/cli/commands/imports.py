"""``certkit import``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from certkit.cli import output
from certkit.cli.options import Json, Out, Quiet
from certkit.cli.views.bar import progress

if TYPE_CHECKING:
    from certkit.evidence.importers import ImportAccount


def import_(
    format: Annotated[  # noqa: A002 - its name on the command line
        str, typer.Argument(metavar="FORMAT", help="agentdojo, records or hb-eval.")
    ],
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="The log: a file or a folder.")],
    out: Out,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Name the agent, or choose one of several in the source.")
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
    no_seal: Annotated[bool, typer.Option("--no-seal", help="Leave the bundle open for additions.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Turn the log of another program into an evidence bundle.

    What the log holds is filled, what it does not hold stays unmeasured, and everything that was left
    out, odd or refused is counted, printed, and kept in the manifest. One unreadable row refuses the import.

    Example: certkit import agentdojo runs.jsonl.gz -o bundle
    """
    from certkit.evidence.importers import ImportOptions, run  # noqa: PLC0415 - keeps the help fast

    if success not in {"strict", "utility"}:
        raise typer.BadParameter("'strict' or 'utility'", param_hint="--success")
    options = ImportOptions(
        agent=agent,
        agent_version=agent_version,
        mapping=mapping,
        success=cast("Literal['strict', 'utility']", success),
        seal=not no_seal,
        models=tuple(model or ()),
    )
    accounts = run(format, source, out, options, progress(hidden=quiet or json))
    if json:
        output.document(
            {"schema": "urn:certkit:import:v1", "bundles": [_document(account) for account in accounts]}
        )
    elif not quiet:
        for account in accounts:
            _show(account)


def _document(account: ImportAccount) -> dict[str, Any]:
    return {
        "bundle": str(account.out),
        "digest": account.digest,
        "agent": account.agent.model_dump(mode="json", exclude_defaults=True),
        "imported": account.imported.model_dump(mode="json"),
    }


def _show(account: ImportAccount) -> None:
    imported = account.imported
    sealed = "sealed as" if account.digest else "not sealed"
    output.say(f"{account.out}: {imported.records:,} records of {account.agent.name}, {sealed}")
    if account.digest:
        output.say(account.digest)
    width = max((len(f"{item.count:,}") for item in imported.notes), default=1)
    for item in imported.notes:
        detail = f": {item.detail}" if item.detail else ""
        output.wrapped(
            f"{item.kind:<10} {item.count:>{width},}  {item.what}{detail}",
            first="  ",
            rest=" " * (15 + width),
        )
    output.note(f"hint: certkit assess {account.out}")
