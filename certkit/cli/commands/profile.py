"""``certkit profile``: the tier tables that evidence is judged against."""

from __future__ import annotations

from typing import Annotated

import typer

from certkit.cli import output
from certkit.cli.options import Json, Quiet
from certkit.errors import Exit

app = typer.Typer(
    help="The tier tables that evidence is judged against.", no_args_is_help=True, rich_markup_mode=None
)
Name = Annotated[str, typer.Argument(metavar="PROFILE", help="A packaged name, or the path of a TOML file.")]


@app.command("list")
def list_(json: Json = False) -> None:
    """List the packaged profiles with their digests.

    Example: certkit profile list
    """
    from certkit import workflow  # noqa: PLC0415 - keeps the help fast

    profiles = [workflow.load_profile(name) for name in workflow.packaged_profiles()]
    if json:
        output.document(
            {
                "schema": "urn:certkit:profiles:v1",
                "profiles": [
                    {"id": item.id, "title": item.title, "reading": item.reading, "digest": item.digest}
                    for item in profiles
                ],
            }
        )
        return
    width = max(len(item.id) for item in profiles) + 2
    for item in profiles:
        output.wrapped(
            f"{item.title or ''} ({item.reading} reading) {item.digest}".strip(),
            first=f"{item.id:<{width}}",
            rest=" " * width,
        )


@app.command("show")
def show(
    name: Name,
    toml: Annotated[bool, typer.Option("--toml", help="Print the file itself, to copy and edit.")] = False,
    json: Json = False,
) -> None:
    """Show a profile's table: every criterion, its operator, and its threshold at each tier.

    Example: certkit profile show hb-eval-2026 --toml > mine.toml
    """
    from certkit import workflow  # noqa: PLC0415 - keeps the help fast
    from certkit.cli.views.render import show_profile  # noqa: PLC0415 - the same

    profile = workflow.load_profile(name)
    if toml:
        output.raw(workflow.profile_text(name)[0])
    elif json:
        document = {"schema": "urn:certkit:profile-show:v1", "digest": profile.digest}
        output.document(document | profile.model_dump(mode="json", by_alias=True, exclude={"schema_"}))
    else:
        show_profile(profile)


@app.command("lint")
def lint(
    name: Name,
    runs: Annotated[
        int | None,
        typer.Option("--runs", min=0, help="Runs that are planned: tells which rows they can never show."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check that a profile makes sense: thresholds that rise with the tiers, rows that can be met.

    Exit code 0: nothing is wrong; 1: a fault was found; 3: it is not a profile at all.

    Example: certkit profile lint ./mine.toml --runs 1000
    """
    from certkit import assessment, workflow  # noqa: PLC0415 - keeps the help fast

    profile = workflow.load_profile(name, linted=False)
    faults = assessment.lint(profile, runs)
    if json:
        output.document(
            {
                "schema": "urn:certkit:profile-lint:v1",
                "profile": profile.id,
                "faults": [str(f) for f in faults],
            }
        )
    elif not quiet:
        for fault in faults:
            output.wrapped(str(fault), rest="  ")
        if not faults:
            output.say(f"{profile.id}: nothing found")
    raise typer.Exit(Exit.NEGATIVE if faults else Exit.OK)
