"""``certkit assess``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from certkit.cli import output
from certkit.cli.options import BundleFolders, Force, Jobs, Json, ProfileName, Quiet, Verbose, check_outputs
from certkit.cli.views.bar import progress


def assess(
    bundles: BundleFolders,
    profile: ProfileName = "hb-eval-2026",
    require_tier: Annotated[
        int,
        typer.Option(
            "--require-tier",
            min=1,
            max=9,
            envvar="CERTKIT_REQUIRE_TIER",
            help="The tier that the exit code speaks of.",
        ),
    ] = 1,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Also write the assessment (JSON) to this file.")
    ] = None,
    force: Force = False,
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="Leave with 0 whatever the verdict; errors still count.")
    ] = False,
    jobs: Jobs = None,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Judge a bundle of evaluation records against a tier table, or several bundles of one agent together.

    Reads every record, recomputes every metric, and tells which tier the evidence shows, what fails, what
    has no evidence, and what to measure next. Of several bundles all runs are pooled, and each is also shown
    alone. Exit code 0: the required tier is met; 1: a measured
    criterion fails; 4: evidence is missing; 3: the bundle is malformed.

    Example: certkit assess bundle/ --require-tier 2 -o assessment.json
    """
    from certkit import canonical, files, workflow  # noqa: PLC0415 - keeps the help fast

    workflow.refuse_inside(bundles, out)
    check_outputs(out, force=force)
    result = workflow.assess(
        bundles,
        profile,
        required_tier=require_tier,
        jobs=jobs,
        progress=progress(hidden=quiet or json),
    )
    text = canonical.pretty(result.to_dict()) if json or out else ""
    if out:
        files.write(out, text.encode(), overwrite=force)
    if json:
        output.raw(text)
    elif not quiet:
        from certkit.cli.views.render import show_assessment  # noqa: PLC0415 - only where a table is drawn

        show_assessment(result, verbose=verbose)
        if out:
            output.note(f"written to {out}")
    raise typer.Exit(0 if exit_zero else result.exit_code)
