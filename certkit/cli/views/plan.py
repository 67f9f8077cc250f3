"""A plan as people read it on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.metrics.metric import asked, percent, shown
from certkit.cli.emit import counted, fold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.plan import Plan, Planned

_BAR: Final = 48
_NAME: Final = 23


def show_plan(plan: Plan) -> Iterator[str]:
    """Print a plan: the answer, the rows, the schedule, what it leaves open, the curve."""
    yield from _answer(plan)
    yield from _rows(plan)
    yield from _schedule(plan)
    yield from _open(plan)
    yield from _curve(plan)


def _answer(plan: Plan) -> Iterator[str]:
    design, profile = plan.design, plan.profile
    attempt = f", attempt {design.attempt}" if design.attempt > 1 else ""
    yield from fold(
        f"Tier {plan.tier} ({profile.tiers[str(plan.tier)].name}) of {profile.id}, {design.reading}"
        f" reading{attempt}: {counted(plan.tasks, 'task')}, {counted(plan.runs, 'run')}."
    )
    wanted = "all rows together" if design.joint else "every row"
    driver = f"{plan.driver.criterion.id} asks for most"
    if plan.runner_up is not None:
        driver += f", then {plan.runner_up.criterion.id}"
    more = "" if design.joint else "; --joint plans for that"
    yield from fold(
        f"So many show {wanted} with a probability of {percent(design.power)}; {driver}. All rows with an"
        f" expectation are met together with {_percent(plan.together)}{more}."
    )
    yield from fold(
        f"Runs of one task are taken to correlate by {design.icc:g} (--icc, or --like BUNDLE to measure it)."
    )
    yield ""


def _rows(plan: Plan) -> Iterator[str]:
    """Print every row with an expectation or a least number of tasks, the one that asks for most first."""
    yield f"{'criterion':<{_NAME}}{'asked':>9}{'expected':>10}{'least tasks':>13}{'power':>8}"
    told = [row for row in plan.rows if row.power is not None or row.least]
    for row in sorted(told, key=lambda row: (row.power is None, row.power or 0.0)):
        yield from _row(row)
    yield ""


def _row(row: Planned) -> Iterator[str]:
    criterion = row.criterion
    spec = CATALOGUE[criterion.metric]
    rate = CATALOGUE[spec.tau_of or spec.id]
    threshold = criterion.threshold(row.tier)
    assert threshold is not None  # noqa: S101 - a row that is planned is specified
    name = criterion.id
    if len(name) >= _NAME:
        yield name
        name = ""
    expected = "" if row.expected is None else shown(row.expected, rate.unit)
    power = "" if row.power is None else _percent(row.power)
    least = "" if row.least is None else f"{row.least:,}"
    wanted = asked(criterion.operator_at(row.tier), threshold, spec.unit)
    yield f"{name:<{_NAME}}{wanted:>9}{expected:>10}{least:>13}{power:>8}".rstrip()


def _percent(share: float) -> str:
    """Return a probability in whole per cent, rounded down: what is stated is reached."""
    return f"{int(100 * share + 1e-9)} %"


def _schedule(plan: Plan) -> Iterator[str]:
    domains = plan.design.domains
    each = sum(plan.per_domain.values())
    yield from fold(
        f"In each of {counted(domains, 'domain')}: {counted(plan.tasks_per_domain, 'task')},"
        f" {counted(each, 'run')}"
    )
    yield f"  {'condition':<20}{'per domain':>12}{'in all':>12}"
    for condition, runs in plan.per_domain.items():
        yield f"  {condition:<20}{runs:>12,}{domains * runs:>12,}"


def _open(plan: Plan) -> Iterator[str]:
    """Print what the plan takes for granted, and the rows that it does not plan."""
    notes = {}
    if any(row.criterion.metric == "adversarial_resistance" and row.power is not None for row in plan.rows):
        notes["adversarial_resistance"] = "every attack is taken to land"
    for reason in dict.fromkeys(row.reason for row in plan.rows if row.reason):
        ids = dict.fromkeys(row.criterion.id for row in plan.rows if row.reason == reason)
        notes[", ".join(ids)] = reason
    if notes:
        yield ""
        yield "Taken for granted, or not planned:"
    for names, text in notes.items():
        yield from fold(f"{names}: {text}", first="  ", rest="    ")


def _curve(plan: Plan) -> Iterator[str]:
    """Print the curve as bars: solid for all rows together, light for the row that drives."""
    solid, light = ("█", "░") if _blocks() else ("#", ".")
    yield ""
    yield from fold(f"Power by tasks: {solid} all rows together; {light} {plan.driver.criterion.id}")
    for point in plan.curve:
        both, alone = (round(_BAR * share) for share in (point.together, point.driver))
        bar = solid * both + light * max(0, alone - both)
        numbers = f"{point.tasks:>8,}{_percent(point.together):>7}{_percent(point.driver):>7}"
        yield f"{numbers}  {bar}".rstrip()


def _blocks() -> bool:
    """Tell whether the terminal can show block characters."""
    try:
        "█░".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
