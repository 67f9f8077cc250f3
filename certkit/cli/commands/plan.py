"""``certkit plan``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from certkit import files, workflow
from certkit.assessment import plan as room
from certkit.assessment.plan.design import design, expectations
from certkit.cli import options as opt
from certkit.cli.emit import emit, note
from certkit.cli.views.plan import show_plan
from certkit.report.svg import power as drawn

if TYPE_CHECKING:
    from certkit.assessment.plan import Plan


def plan(
    tier: Annotated[int, opt.TIER(help="The tier that shall be shown.", min=1)],
    expect: Annotated[
        list[str],
        typer.Option(
            "--expect",
            metavar="METRIC=VALUE",
            help="What is expected of a metric; as often as wanted, or several with commas between."
            " VALUE:SD states the standard deviation of one run of a mean.",
        ),
    ],
    profile: opt.ProfileName = "hb-eval-2026",
    reading: Annotated[
        Literal["table", "bounded"] | None,
        opt.READING(help="Default: the reading that the profile has."),
    ] = None,
    icc: opt.Icc = 0.3,
    power: Annotated[
        float,
        typer.Option("--power", min=0.01, max=0.999, help="Probability with which every row shall be met."),
    ] = 0.8,
    joint: Annotated[
        bool, typer.Option("--joint", help="The probability is wanted of all rows together.")
    ] = False,
    domains: opt.DomainCount = 5,
    runs_per_task: Annotated[
        int, typer.Option("--runs-per-task", min=1, max=1000, help="Runs under faults of one task.")
    ] = 5,
    like: Annotated[
        Path | None,
        opt.LIKE(help="Measure how runs of one task correlate in this bundle, instead of --icc."),
    ] = None,
    fault_mix: opt.FaultMix = None,
    attempt: Annotated[int, opt.ATTEMPT(help="Which attempt of the lineage at this profile it is.")] = 1,
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Also write the curve of power and tasks to this file.")
    ] = None,
    force: opt.Force = False,
) -> None:
    """Tell how many tasks and runs a tier takes, per domain and condition, and which row asks for most.

    Every row shall be met with the wanted probability if the agent is as good as expected. The rule is run on
    2,000 bundles that are drawn from the expectation. Exit code 0: planned; 1: no number of tasks shows the
    tier at these expectations; 2: an expectation that cannot be.

    Example: certkit plan --tier 2 --expect r_op=.88 --domains 5
    """
    opt.check_outputs(svg, force=force)
    judged = workflow.load_profile(profile)
    wanted = design(
        reading or judged.reading,
        domains=domains,
        icc=icc if like is None else workflow.measured_icc(like),
        power=power,
        joint=joint,
        attempt=attempt,
        runs_per_task=runs_per_task,
        fault_mix=fault_mix,
    )
    made = room.plan(judged, tier, expectations(expect), wanted)
    if svg is not None:
        figure = drawn(
            [(point.tasks, point.driver, point.together) for point in made.curve],
            planned=made.tasks,
            wanted=power,
            driver=made.driver.criterion.id,
            title=f"Power by number of tasks, Tier {tier} of {judged.id}",
        )
        files.write(svg, figure.encode(), overwrite=force)
    emit(made.to_dict, _screen(made, svg))


def _screen(made: Plan, svg: Path | None) -> Iterator[str]:
    yield from show_plan(made)
    if svg is not None:
        note(f"written to {svg}")
