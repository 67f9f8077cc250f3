"""``certkit compare`` and ``certkit drift``: two agents, and two moments of one agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from certkit import workflow
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import emit, progress
from certkit.cli.views.comparison import show_comparison, show_drift


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="The bundle of one agent.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The bundle of the other.")],
    novel: Annotated[
        bool, typer.Option("--novel", help="Compare the held-out faults (split novel_fault) instead.")
    ] = False,
    paper_tests: Annotated[
        bool,
        typer.Option(
            "--paper-tests",
            help="Show z, t, effect sizes, ANOVA and rank orders too, which take runs for independent.",
        ),
    ] = False,
    jobs: opt.Jobs = None,
    verbose: opt.Verbose = False,
) -> None:
    """Compare two agents on their evidence: who succeeds more often under faults, by how much, how surely.

    Compares what both bundles cover, task by task: those that both have are pairs, and runs of one task count
    once. Tests that ignore this are shown on demand. Exit code 0: compared,
    whoever is better; 4: the bundles share nothing that could be compared; 3: a bundle is malformed.

    Example: certkit compare bundle-a bundle-b --json
    """
    compared = workflow.compare(
        a,
        b,
        novel=novel,
        paper_tests=paper_tests,
        jobs=jobs,
        progress=progress(),
    )
    emit(compared.to_dict, show_comparison(compared, verbose=verbose), code=compared.exit_code)


def drift(
    sides: Annotated[
        list[Path],
        typer.Argument(
            metavar="[EARLIER]... OLD NEW",
            help="Passports, PDFs with one attached, or folders of bundles, oldest first. The last two are"
            " compared; with any before them the trend is told too.",
        ),
    ],
    trust: Annotated[
        Path | None,
        opt.TRUST(help="The trust policy by which signatures are checked. Default: they are not checked."),
    ] = None,
    profile: Annotated[
        str | None,
        opt.PROFILE(
            help="The profile that a bundle is judged under. Default: that of the passport, or hb-eval-2026.",
        ),
    ] = None,
    jobs: opt.Jobs = None,
    verbose: opt.Verbose = False,
) -> None:
    """Compare an agent with itself at a later time: whether it is the same, and behaves as well.

    Every row is tested for a loss of at least the profile's margin over tasks; tasks that both sides ran are
    paired, and the old mix of domains and faults counts. From three on, a slow decline is looked for over
    the last eight. No raw evidence of a passport is needed. Exit code 0: STABLE; 5: DRIFTED or
    IDENTITY_CHANGED; 4: UNDERPOWERED or NOT_COMPARABLE.

    Example: certkit drift january/passport.json april/passport.json --trust trust.json
    """
    if len(sides) < 2:  # noqa: PLR2004 - a comparison takes two
        raise typer.BadParameter("an older and a newer one", param_hint="OLD NEW")
    *before, old, new = sides
    compared = workflow.drift(
        old,
        new,
        before=before,
        profile=profile,
        trust=context.load_policy(trust) if trust else None,
        at=context.now(),
        jobs=jobs,
        progress=progress(),
    )
    emit(compared.to_dict, show_drift(compared, verbose=verbose), code=compared.drift.exit_code)
