"""``certkit compare``: two bundles of two agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from certkit.cli import output
from certkit.cli.options import Jobs, Json, Quiet, Verbose
from certkit.cli.views.bar import progress


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="The bundle of one agent.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The bundle of the other.")],
    novel: Annotated[
        bool, typer.Option("--novel", help="Compare the held-out faults (split novel_fault) instead.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, max=2**63 - 1, help="Seed of every resampling. Default: 26."),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option("--draws", min=100, max=100_000, help="Bootstrap draws. Default: 2000."),
    ] = None,
    paper_tests: Annotated[
        bool,
        typer.Option(
            "--paper-tests",
            help="Show z, t, effect sizes, ANOVA and rank orders too, which take runs for independent.",
        ),
    ] = False,
    jobs: Jobs = None,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Compare two agents on their evidence: who succeeds more often under faults, by how much, how surely.

    Compares what both bundles cover, paired by task where both have the tasks. Runs of one cluster stand or
    fall together in the answer; tests that ignore this are shown on demand. Exit code 0: compared,
    whoever is better; 4: the bundles share nothing that could be compared; 3: a bundle is malformed.

    Example: certkit compare bundle-a bundle-b --seed 7
    """
    from certkit import workflow  # noqa: PLC0415 - keeps the help fast

    found = workflow.compare(
        a, b, novel=novel, seed=seed, draws=draws, jobs=jobs, progress=progress(hidden=quiet or json)
    )
    if json:
        output.document(found.to_dict())
    elif not quiet:
        from certkit.cli.views.comparison import show  # noqa: PLC0415 - only where it is shown

        show(found, verbose=verbose, paper_tests=paper_tests)
    raise typer.Exit(found.exit_code)
