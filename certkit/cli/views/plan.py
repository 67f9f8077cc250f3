"""A plan as people read it on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from certkit.assessment.bounded import MEANS
from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.metrics.metric import percent
from certkit.assessment.plan.demand import Of
from certkit.assessment.words import asked, shown
from certkit.cli.emit import counted, fold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.plan import Plan, Planned
    from certkit.assessment.plan.schedule import Schedule

_BAR: Final = 54
_NAME: Final = 22
_OF: Final = {
    Of.FAULT: "fault",
    Of.ALL: "all",
    Of.NOMINAL: "nominal",
    Of.RECOVERIES: "recoveries",
    Of.ADVERSARIAL: "adversarial",
    Of.CASCADE: "cascade",
    Of.DOMAIN: "per domain",
}


def show_plan(plan: Plan) -> Iterator[str]:
    """Print a plan: what it is for, the rows, the schedule, what it gives, what it leaves open, the curve."""
    yield from _head(plan)
    yield from _rows(plan)
    yield from _schedule(plan)
    yield from _meaning(plan)
    yield from _open(plan)
    yield from _curve(plan)


def _head(plan: Plan) -> Iterator[str]:
    design, profile = plan.design, plan.profile
    yield from fold(
        f"Tier {plan.tier} ({profile.tiers[str(plan.tier)].name}) of {profile.id}, {design.reading} reading"
    )
    if design.clusters is None:
        size = f"clusters of {counted(design.cluster_size or 0, 'run')} under faults"
    else:
        size = f"{counted(design.clusters, 'cluster')} in all"
    attempt = f", attempt {design.attempt}" if design.attempt > 1 else ""
    wanted = "for all rows together" if design.joint else "for every row"
    yield from fold(
        f"power {percent(design.power)} {wanted}, ICC {design.icc:g}, "
        f"{counted(design.domains, 'domain')}, {size}{attempt}"
    )
    yield ""


def _rows(plan: Plan) -> Iterator[str]:
    """Print every row with the least it takes: in its own denominator, and in runs of the whole schedule."""
    yield f"{'criterion':<23}{'asked':>9}{'expected':>10}{'n':>9} {'of':<11}{'runs':>10}{'power':>7}"
    for row in sorted(plan.rows, key=lambda row: -row.runs):
        if row.least is not None:
            yield from _row(row, row.least)
    yield ""


def _row(row: Planned, least: Schedule) -> Iterator[str]:
    demand, spec = row.demand, CATALOGUE[row.demand.metric]
    rate = CATALOGUE["r_op" if demand.metric == "posterior" else demand.metric]
    expected = "" if demand.expected is None else shown(demand.expected.value, rate.unit)
    number = of = ""
    if demand.of is not None and (runs := least.counted(demand.of)) is not None:
        number, of = f"{runs.n:,}", _OF[demand.of]
    name = demand.criterion.id
    if len(name) > _NAME:
        yield name
        name = ""
    power = "" if row.power is None else _percent(row.power)
    yield (
        f"{name:<{_NAME + 1}}{asked(demand.operator, demand.threshold, spec.unit):>9}{expected:>10}"
        f"{number:>9} {of:<11}{row.runs:>10,}{power:>7}".rstrip()
    )


def _percent(share: float) -> str:
    """Return a probability in whole per cent, rounded down: what is stated is reached."""
    return f"{int(100 * share + 1e-9)} %"


def _schedule(plan: Plan) -> Iterator[str]:
    schedule = plan.schedule
    each = sum(schedule.per_domain.values())
    yield from fold(
        f"{counted(schedule.runs, 'run')}: {each:,} in each of "
        f"{counted(schedule.domains, 'domain')}, over {counted(schedule.clusters, 'cluster')} "
        f"of tasks, {schedule.clusters_per_domain:,} in each domain"
    )
    yield f"  {'condition':<20}{'per domain':>12}{'in all':>12}"
    for condition, runs in schedule.per_domain.items():
        yield f"  {condition:<20}{runs:>12,}{schedule.domains * runs:>12,}"
    yield ""


def _meaning(plan: Plan) -> Iterator[str]:
    driver = plan.driver
    text = f"{driver.demand.criterion.id} drives the cost: {driver.runs:,} runs"
    if plan.runner_up is not None:
        text += f"; next is {plan.runner_up.demand.criterion.id} with {plan.runner_up.runs:,}"
    yield from fold(f"{text}.")
    together = _percent(plan.together)
    more = "" if plan.design.joint else "; --joint plans for all rows together"
    yield from fold(
        f"The rows with an expectation are met together with at least {together} (Bonferroni){more}."
    )
    for item in plan.failure_free:
        text = f"Without one failure Tier {item.tier} takes {counted(item.least, 'run')} under faults"
        if item.bounded is not None and item.bounded > item.least:
            text += f"; bounds, which allow for the uncertainty of the variance, take {item.bounded:,}"
        yield from fold(f"{text}.")


def _open(plan: Plan) -> Iterator[str]:
    """Print what the plan takes for granted, and the rows that it does not plan."""
    unstated = {row.demand.metric for row in plan.rows if row.demand.arms} - {
        metric for metric, expected in plan.expect.items() if expected.sd is not None
    }
    notes = {}
    if means := sorted(unstated & MEANS):
        notes[", ".join(means)] = (
            "no standard deviation of a run is stated, so it is taken as the largest that fits;"
            f" {means[0]}=VALUE:SD states one"
        )
    if "violations" in unstated:
        notes["violations"] = "no standard deviation of a run is stated, so counts are taken as Poisson's"
    if "adversarial_resistance" in unstated:
        notes["adversarial_resistance"] = "every attack is taken to land"
    for reason in dict.fromkeys(row.demand.reason for row in plan.rows if row.demand.reason):
        notes[", ".join(row.demand.criterion.id for row in plan.rows if row.demand.reason == reason)] = reason
    if notes:
        yield ""
        yield "Taken for granted, or not planned:"
    for names, text in notes.items():
        yield from fold(f"{names}: {text}", first="  ", rest="    ")


def _curve(plan: Plan) -> Iterator[str]:
    """Print the curve as bars: solid for all rows together, light for the row that drives."""
    solid, light = ("█", "░") if _blocks() else ("#", ".")
    name = plan.curve_of.demand.criterion.id
    yield ""
    yield from fold(f"Power by runs: {solid} all expected rows, at least; {light} {name}")
    for point in plan.curve[1::2]:
        both, alone = (round(_BAR * share) for share in (point.together, point.driver))
        bar = solid * both + light * max(0, alone - both)
        numbers = f"{point.runs:>10,}{_percent(point.together):>6}{_percent(point.driver):>6}"
        yield f"{numbers}  {bar}".rstrip()


def _blocks() -> bool:
    """Tell whether the terminal can show block characters."""
    try:
        "█░".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
