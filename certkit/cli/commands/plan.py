"""``certkit plan``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from certkit.assessment.catalogue import CATALOGUE, named
from certkit.assessment.plan import DRAWS, Design, Plan, PlannedRow
from certkit.assessment.plan import plan as plan_tier
from certkit.assessment.profile_file import load_profile
from certkit.assessment.words import percent, threshold_text, value_text
from certkit.cli import options as opt
from certkit.cli.emit import coloured, cut, emit, fold, refuse
from certkit.ground.errors import InputError, UsageError
from certkit.ground.wording import many

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from certkit.assessment.profile import Profile
    from certkit.cli.emit import Line

MOST_ICC: Final = 0.99
_EXPECTATION: Final = re.compile(r"([a-z0-9_]{1,40})=([+-]?(?:\d{1,12}\.?\d{0,12}|\.\d{1,12}))")
_REASONS: Final = {
    "attested": "attested: state it in the manifest, with the number that it rests on",
    "ordered-runs": "takes 100 runs in order of time; how often it is met is not known",
    "provisional": "provisional in the paper: it decides no tier (--strict counts it)",
    "every-run": "every run must meet it",
    "not-drawn": "certkit cannot draw it",
}
_BAR: Final = 40
_NAME: Final = 35
"""Columns for the name of a row."""


def plan(
    tier: Annotated[int, opt.TIER(help="The tier that is to be met.", min=1)],
    profile: opt.ProfileName = "hb-eval-2026",
    changes: opt.Changes = None,
    margin: Annotated[
        float,
        typer.Option(
            "--margin", min=0.1, max=50, help="By how many points the agent is better than every row asks."
        ),
    ] = 5.0,
    expect: Annotated[
        list[str] | None,
        typer.Option(
            "--expect",
            metavar="METRIC=VALUE",
            help="What is expected of a metric, in its unit; several with commas between.",
        ),
    ] = None,
    power: Annotated[
        float, typer.Option("--power", min=0.01, max=0.99, help="Probability with which the tier is met.")
    ] = 0.8,
    domains: Annotated[int, typer.Option("--domains", min=1, max=100, help="Application domains.")] = 5,
    runs_per_task: Annotated[
        int, typer.Option("--runs-per-task", min=1, max=1000, help="Runs under faults of one task.")
    ] = 5,
    icc: opt.Icc = 0.3,
    bundle: Annotated[
        Path | None,
        opt.BUNDLE(help="Measure in this bundle how runs of one task correlate, instead of --icc."),
    ] = None,
    reading: Annotated[
        Literal["table", "bounded"] | None,
        opt.READING(help="Averages or confidence limits. Default: what decides in the profile."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Count provisional rows.")] = False,
    seed: Annotated[int, opt.SEED(help="Seed of every draw.")] = 26,
) -> None:
    """Say how many tasks and runs a tier takes, and which row asks for most.

    The whole tier is met with the wanted probability if the agent is 5 points better than every row asks.
    The rows are tested on 2,000 bundles that are drawn from this. Exit code 0: planned; 1: no number of tasks
    is enough; 2: an expectation that cannot be.

    Example: certkit plan --tier 2 --reading bounded --expect r_op=.9
    """
    if bundle is not None:
        refuse("cannot be used together with --bundle, which measures it", "icc")
    table = load_profile(profile, changes or ())
    measured, tasks = (icc, 0) if bundle is None else _measured_icc(bundle)
    design = Design(
        reading=reading or table.reading,
        strict=strict,
        domains=domains,
        runs_per_task=runs_per_task,
        icc=measured,
        icc_tasks=tasks,
        power=power,
        margin=round(margin / 100, 6),
        seed=seed,
    )
    result = plan_tier(table, tier, design, expected_values(expect or ()))
    emit(result, _screen(result, table))


def _measured_icc(path: Path) -> tuple[float, int]:
    """Return how runs of one task correlate in a bundle, below 1, and in how many tasks.

    Raises:
        InputError: ``plan.unmeasured`` where tasks have one run each, or there is one task.
    """
    from certkit.assessment.variation import variation  # noqa: PLC0415 - the same
    from certkit.bundle.folder import open_bundle  # noqa: PLC0415 - heavy
    from certkit.summary.summarise import summarise  # noqa: PLC0415 - the same

    result = variation(summarise(open_bundle(path)))
    if result is None or result.icc is None:
        raise InputError(
            "plan.unmeasured",
            "no task has two runs under faults, or there is one task: nothing shows how runs correlate",
            where=str(path),
            hint="state it with --icc; .3 is taken by default",
        )
    return min(result.icc, MOST_ICC), result.tasks


def expected_values(texts: Iterable[str]) -> dict[str, float]:
    """Return what is expected of each metric, in its unit, from texts such as ``r_op=.88,frr=.9``.

    Raises:
        UsageError: ``usage.option`` for anything else, and for a metric that is named twice.
    """
    expected: dict[str, float] = {}
    for text in filter(None, ",".join(texts).split(",")):
        match = _EXPECTATION.fullmatch(text.strip())
        if match is None:
            message = f"expectation {text.strip()[:40]!r} is not METRIC=VALUE"
            raise UsageError("usage.option", message, hint="r_op=.88")
        metric, value = match.groups()
        if metric in expected:
            raise UsageError("usage.option", f"two expectations of {metric}")
        expected[metric] = float(value)
    return expected


def _screen(result: Plan, profile: Profile) -> Iterator[Line]:
    yield from _answer(result, profile)
    yield ""
    yield f"{'criterion':<36}{'asked':>11}{'expected':>12}{'least tasks':>13}{'power':>8}"
    drawn = [row for row in result.criteria if row.power is not None]
    for row in sorted(drawn, key=lambda row: row.power or 0.0):
        yield _row(row)
    yield ""
    yield from _schedule(result)
    yield ""
    yield from _assumptions(result)
    yield ""
    yield "Probability of the tier by tasks:"
    for point in result.curve:
        yield f"{point.tasks:>8,}{_percent(point.power):>7}  {'█' * round(_BAR * point.power)}".rstrip()


def _answer(result: Plan, profile: Profile) -> Iterator[Line]:
    design, schedule = result.design, result.schedule
    others = f"the agent is {100 * design.margin:g} points above every"
    if result.stated:
        units = ((name, result.expect[name], CATALOGUE[name].unit) for name in result.stated)
        stated = ", ".join(f"{name} is {value_text(value, unit)}" for name, value, unit in units)
        others = f"{stated}, and {others} other"
    text = (
        f"With {many(schedule.tasks, 'task')} ({many(schedule.domains, 'domain')} x"
        f" {schedule.tasks_per_domain}) and {many(schedule.runs)}, Tier {result.tier}"
        f" ({profile.tiers[str(result.tier)].name}) of {profile.name} is met with {_percent(result.power)}"
        f" probability if {others} row."
    )
    yield from coloured(fold(text), "bold")
    driver = next(row.metric for row in result.criteria if row.id == result.driver)
    yield from fold(f"{named(driver)[0].upper()}{named(driver)[1:]} asks for most.")
    if design.reading == "table":
        yield from fold("This is by averages; with confidence limits (--reading bounded) it takes more.")
    measured = f", measured in {many(design.icc_tasks, 'task')}" if design.icc_tasks else ""
    how = "" if measured else " (--icc states it, --bundle BUNDLE measures it)"
    yield from fold(f"Runs of one task are taken to correlate by {design.icc:.2f}{measured}{how}.")


def _row(row: PlannedRow) -> str:
    spec = CATALOGUE[row.metric]
    expected = value_text(row.expected, CATALOGUE[spec.tau_of or row.metric].unit)
    asked = threshold_text(row.operator, row.threshold, spec.unit)
    full, short = (f"{title} ({row.id})" for title in (spec.title, spec.short))
    name = full if len(full) <= _NAME else cut(short, _NAME)
    least = "" if not row.least_tasks else f"{row.least_tasks:,}"
    return f"{name:<{_NAME + 1}}{asked:>11}{expected:>12}{least:>13}{_percent(row.power or 0.0):>8}"


def _percent(share: float) -> str:
    """Return a probability in whole per cent, rounded down: what is stated is reached."""
    return f"{int(100 * share + 1e-9)} %"


def _schedule(result: Plan) -> Iterator[str]:
    schedule = result.schedule
    yield from fold(
        f"In each of {many(schedule.domains, 'domain')}: {many(schedule.tasks_per_domain, 'task')},"
        f" {many(schedule.runs_per_domain)}"
    )
    yield f"  {'condition':<20}{'per domain':>12}{'in all':>12}"
    for condition, runs in schedule.per_domain.items():
        yield f"  {condition:<20}{runs:>12,}{schedule.domains * runs:>12,}"


def _assumptions(result: Plan) -> Iterator[str]:
    """Print what the plan assumes, and the rows that it does not plan."""
    notes = ["every attack lands, no run is lost, and no outcome is judged wrongly"]
    if not {"adversarial_resistance", "cascade_penalty", "domain_min"} & set(result.stated):
        faults = "cascade" in result.schedule.per_domain
        rate, where = result.expect["r_op" if faults else "c_nom"], "under every fault and " * faults
        notes.insert(0, f"success is {percent(rate)} {where}in every domain, unless --expect differs")
    for reason, text in _REASONS.items():
        if names := [row.id for row in result.criteria if row.reason == reason]:
            notes.append(f"{', '.join(names)}: {text}")
    yield f"Assumed in {DRAWS:,} drawn bundles, or not planned:"
    for note in notes:
        yield from fold(note, first="  ", rest="    ")
