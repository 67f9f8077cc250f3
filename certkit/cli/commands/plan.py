"""``certkit plan``."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from certkit import workflow
from certkit.assessment import plan as room
from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.metrics.metric import asked, percent, shown
from certkit.assessment.plan.design import design, expectations
from certkit.cli import options as opt
from certkit.cli.emit import emit, fold, refuse
from certkit.ground.wording import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.plan.document import Plan, Planned
    from certkit.assessment.profile import Profile


def plan(
    tier: Annotated[int, opt.TIER(help="The tier that shall be shown.", min=1)],
    expect: Annotated[
        list[str],
        typer.Option(
            "--expect",
            metavar="METRIC=VALUE",
            help="What is expected of a metric; as often as wanted, or several with commas between.",
        ),
    ],
    profile: opt.ProfileName = "hb-eval-2026",
    reading: Annotated[
        Literal["table", "bounded"] | None, opt.READING(help="Default: the reading that the profile has.")
    ] = None,
    icc: opt.Icc = 0.3,
    power: Annotated[
        float,
        typer.Option("--power", min=0.01, max=0.999, help="Probability with which every row shall be met."),
    ] = 0.8,
    domains: opt.DomainCount = 5,
    runs_per_task: Annotated[
        int, typer.Option("--runs-per-task", min=1, max=1000, help="Runs under faults of one task.")
    ] = 5,
    like: Annotated[
        Path | None, opt.LIKE(help="Measure how runs of one task correlate in this bundle, instead of --icc.")
    ] = None,
    fault_mix: opt.FaultMix = None,
    attempt: Annotated[int, opt.ATTEMPT(help="Which attempt of the lineage at this profile it is.")] = 1,
) -> None:
    """Tell how many tasks and runs a tier takes, per domain and condition, and which row asks for most.

    Every row shall be met with the wanted probability if the agent is as good as expected. The rule is run on
    2,000 bundles that are drawn from the expectation. Exit code 0: planned; 1: no number of tasks shows the
    tier at these expectations; 2: an expectation that cannot be.

    Example: certkit plan --tier 2 --expect r_op=.88 --domains 5
    """
    if like is not None:
        refuse("stands in place of --like, which measures it", "icc")
    judged = workflow.load_profile(profile)
    measured, pilot = (icc, 0) if like is None else workflow.measured_icc(like)
    wanted = design(
        reading or judged.reading,
        domains=domains,
        icc=measured,
        power=power,
        attempt=attempt,
        runs_per_task=runs_per_task,
        fault_mix=fault_mix,
    )
    made = room.plan(judged, tier, expectations(expect), wanted)
    emit(made, _shown(made, judged, pilot))


_BAR: Final = 48
_NAME: Final = 23


def _shown(plan: Plan, profile: Profile, pilot: int) -> Iterator[str]:
    """Print a plan: the answer, the rows, the schedule, what it leaves open, the curve.

    The correlation was measured in `pilot` tasks, 0 where it was stated.
    """
    yield from _answer(plan, profile, pilot)
    yield from _rows(plan)
    yield from _schedule(plan)
    yield from _open(plan)
    yield from _curve(plan)


def _answer(plan: Plan, profile: Profile, pilot: int) -> Iterator[str]:
    design = plan.design
    attempt = f", attempt {design.attempt}" if design.attempt > 1 else ""
    yield from fold(
        f"Tier {plan.tier} ({profile.tiers[str(plan.tier)].name}) of {profile.id}, {design.reading}"
        f" reading{attempt}: {many(plan.schedule.tasks, 'task')}, {many(plan.schedule.runs, 'run')}."
    )
    driver = next(CATALOGUE[row.metric].title for row in plan.criteria if row.id == plan.driver)
    yield from fold(
        f"So many meet each row that has an expectation with probability {percent(design.power)}; {driver}"
        f" ({plan.driver}) needs most. The probability of meeting all is {_percent(plan.power_of_all)}."
    )
    source = (
        f", measured in {many(pilot, 'task')}; how far that is off is not in the plan."
        if pilot
        else " (--icc, or --like BUNDLE to measure it)."
    )
    yield from fold(f"Runs of one task are taken to correlate by {design.icc:.2f}{source}")
    yield ""


def _rows(plan: Plan) -> Iterator[str]:
    """Print every row with an expectation or a least number of tasks, the one that asks for most first."""
    yield f"{'criterion':<{_NAME}}{'asked':>9}{'expected':>10}{'least tasks':>13}{'power':>8}"
    told = [row for row in plan.criteria if row.power is not None or row.least_tasks]
    for row in sorted(told, key=lambda row: (row.power is None, row.power or 0.0)):
        yield from _row(row)
    yield ""


def _row(row: Planned) -> Iterator[str]:
    spec = CATALOGUE[row.metric]
    rate = CATALOGUE[spec.tau_of or spec.id]
    name = row.id
    if len(name) >= _NAME:
        yield name
        name = ""
    expected = "" if row.expected is None else shown(row.expected, rate.unit)
    power = "" if row.power is None else _percent(row.power)
    least = "" if row.least_tasks is None else f"{row.least_tasks:,}"
    wanted = asked(row.operator, Fraction(row.threshold), spec.unit)
    yield f"{name:<{_NAME}}{wanted:>9}{expected:>10}{least:>13}{power:>8}".rstrip()


def _percent(share: float) -> str:
    """Return a probability in whole per cent, rounded down: what is stated is reached."""
    return f"{int(100 * share + 1e-9)} %"


def _schedule(plan: Plan) -> Iterator[str]:
    domains = plan.design.domains
    yield from fold(
        f"In each of {many(domains, 'domain')}: {many(plan.schedule.tasks_per_domain, 'task')},"
        f" {many(plan.schedule.runs_per_domain, 'run')}"
    )
    yield f"  {'condition':<20}{'per domain':>12}{'in all':>12}"
    for condition, runs in plan.schedule.per_domain.items():
        yield f"  {condition:<20}{runs:>12,}{domains * runs:>12,}"


def _open(plan: Plan) -> Iterator[str]:
    """Print what the plan takes for granted, and the rows that it does not plan."""
    notes = {"outcomes": "taken as free of error; a judge's need more tasks, and labels"}
    if any(row.metric == "adversarial_resistance" and row.power is not None for row in plan.criteria):
        notes["adversarial_resistance"] = "every attack is taken to land"
    for reason in dict.fromkeys(row.reason for row in plan.criteria if row.reason):
        ids = dict.fromkeys(row.id for row in plan.criteria if row.reason == reason)
        notes[", ".join(ids)] = reason
    yield ""
    yield "Taken for granted, or not planned:"
    for names, text in notes.items():
        yield from fold(f"{names}: {text}", first="  ", rest="    ")


def _curve(plan: Plan) -> Iterator[str]:
    """Print the curve as bars: solid for all rows together, light for the row that drives."""
    yield ""
    powers = [(row.power, -row.tier, row.id) for row in plan.criteria if row.power is not None]
    yield from fold(f"Power by tasks: █ all rows together; ░ {min(powers)[-1]}")
    for point in plan.curve:
        both, alone = (round(_BAR * share) for share in (point.power_of_all, point.power))
        bar = "█" * both + "░" * max(0, alone - both)
        numbers = f"{point.tasks:>8,}{_percent(point.power_of_all):>7}{_percent(point.power):>7}"
        yield f"{numbers}  {bar}".rstrip()
