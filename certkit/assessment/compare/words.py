"""The comparison in words: the answer, why something was not compared, and what a reader should know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.assessment.compare.comparison import ALPHA, MOST_DOMAINS
from certkit.assessment.compare.document import Unlike
from certkit.assessment.metrics.catalogue import Unit
from certkit.assessment.metrics.metric import HARNESS_LIMIT, State, shown

if TYPE_CHECKING:
    from certkit.assessment.compare.comparison import Comparison
    from certkit.assessment.compare.document import Side
    from certkit.assessment.compare.matched import Matched
    from certkit.assessment.metrics.metric import Metric
    from certkit.evidence.bundle.manifest import Judge, Protocol

FEW_CLUSTERS: Final = 10
"""Clusters below which a variance between them is hardly known."""


def chance(p: float) -> str:
    """Return a p-value as people read it: ``p = 0.021``, ``p < 0.0001``."""
    return f"p {figure(p, equals=True)}"


def figure(p: float, *, equals: bool = False) -> str:
    """Return the number of a p-value: ``0.021``, ``<0.0001``."""
    if p < 0.0001:  # noqa: PLR2004 - the last digit that is shown
        return "< 0.0001" if equals else "<0.0001"
    text = f"{p:.4f}" if p < 0.01 else f"{p:.3f}"  # noqa: PLR2004 - two figures that count
    return f"= {text}" if equals else text


def change(value: float, unit: Unit) -> str:
    """Return a difference with its sign and unit: ``+6.1 pp``, ``-0.12``."""
    if unit is Unit.FRACTION:
        return f"{signed(100 * value, 1)} pp"
    return signed(value, 2 if unit in {Unit.POINTS, Unit.PER_RUN} else 3)


def signed(value: float, digits: int) -> str:
    """Return a number with its sign; what rounds to 0 is +0."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def answer(found: Comparison) -> str:
    """Return who is better, by how much, how sure that is, and what it rests on."""
    main = found.main
    what = "under held-out faults" if main.metric == "novel_fault" else "under faults"
    if main.matched is None:
        others = [row.metric for row in found.metrics if row.matched]
        rest = f" Compared are: {', '.join(others)}." if others else " Nothing can be compared."
        return f"Success {what} cannot be compared: {main.reason}.{rest}"
    of = main.matched
    unit = Unit.FRACTION
    size = f"{shown(of.a, unit)} against {shown(of.b, unit)}, {change(of.difference, unit)}"
    grounds = f"{_interval(of)}{chance(of.permutation.p)}; {_design(of)}"
    if main.better is not None:
        better, worse = ("A", "B") if main.better == "a" else ("B", "A")
        return f"{better} succeeds {what} more often than {worse}: {size} ({grounds}). {_names(found)}"
    return f"No difference {what} is shown between A and B: {size} ({grounds}).{_limits(of)} {_names(found)}"


def _interval(of: Matched) -> str:
    if of.robust.interval is None:
        return "no interval: " + str(of.robust.reason) + "; "
    low, high = of.robust.interval.low, of.robust.interval.high
    return f"95 % CI {signed(100 * low, 1)} to {signed(100 * high, 1)}, "


def _design(of: Matched) -> str:
    runs = f"{of.runs[0]:,} and {of.runs[1]:,} runs"
    if of.paired:
        return f"{runs}, paired on {_counted(of.tasks, 'task')} in {_counted(of.clusters[0], 'cluster')}"
    return f"{runs}, not paired, in {of.clusters[0]:,} and {_counted(of.clusters[1], 'cluster')}"


def _limits(of: Matched) -> str:
    """Tell why a difference could not be shown at all, or where the two ways of asking disagree."""
    if of.difference == 0:
        return ""
    if of.permutation.least >= ALPHA:
        return f" The clusters are too few to show any: p cannot be below {figure(of.permutation.least)}."
    interval = of.robust.interval
    if of.permutation.p < ALPHA and interval is not None:
        return " The interval holds 0, though p is below 0.05: this is at the edge of what the data show."
    if interval is not None and not interval.low <= 0 <= interval.high:
        return " The interval leaves out 0, though p is not below 0.05: this is at the edge."
    return ""


def _names(found: Comparison) -> str:
    a, b = (f"{facts.manifest.agent.name} {facts.manifest.agent.version}" for facts in found.facts)
    return f"A is {a}, B is {b}."


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


_STATES: Final = {
    State.UNMEASURED: "not measured",
    State.PARTIAL: "only partly measured",
    State.MEASURED: "not fit to be judged",
}


def not_compared(a: Side, b: Side, *, what: str = "domain and condition") -> str:
    """Return why a metric has no comparison."""
    one, other = (f"({side.reason})" if side.reason else "" for side in (a, b))
    if one and (a.state, one) == (b.state, other):
        return f"{_STATES[State(a.state)]} in either {one}"
    missing = [
        f"{_STATES[State(side.state)]} in {label} {reason}"
        for label, side, reason in (("A", a, one), ("B", b, other))
        if reason
    ]
    return "; ".join(missing) or f"the bundles share no {what} with runs that carry it"


def notes(name: str, a: Metric, b: Metric) -> tuple[str, ...]:
    """Return what limits a metric that was compared."""
    found = []
    for label, metric in (("A", a), ("B", b)):
        errors, n = metric.counts.get("harness_errors", 0), metric.n or 0
        if metric.interval is not None and errors > HARNESS_LIMIT * n:
            found.append(f"{label}: {errors:,} of {n:,} runs are harness errors and count as failures")
    if name == "adversarial_resistance":
        known = [bool(metric.counts["landed"] + metric.counts["not_landed"]) for metric in (a, b)]
        if known[0] != known[1]:
            found.append("only one bundle says which attacks landed; the other counts all attacked runs")
    return tuple(found)


def not_alike(a: Protocol, b: Protocol) -> tuple[Unlike, ...]:
    """Return the parts of the protocol that can make a difference by themselves and are not the same."""
    pairs = {
        "origin": (a.origin, b.origin),
        "methodology": (a.methodology, b.methodology),
        "success_rule": (a.success_rule, b.success_rule),
        "judge": (_judge(a.judge), _judge(b.judge)),
        "cascade_definition": (a.cascade_definition, b.cascade_definition),
        "temperature": (_number(a.temperature), _number(b.temperature)),
        "memory_observable": (_truth(a.memory_observable), _truth(b.memory_observable)),
    }
    return tuple(Unlike(item=item, a=one, b=other) for item, (one, other) in pairs.items() if one != other)


def _judge(judge: Judge | None) -> str | None:
    if judge is None:
        return None
    family = f" ({judge.family})" if judge.family else ""
    return f"{judge.name}{family}, {'independent' if judge.independent else 'not independent'}"


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


def _truth(value: bool | None) -> str | None:  # noqa: FBT001 - the manifest's own value
    return None if value is None else ("yes" if value else "no")


def caveats(found: Comparison) -> tuple[str, ...]:
    """Return what a reader should know before believing the answer."""
    said = list(_identity(found))
    of = found.main.matched
    if of is not None:
        said += _grounds(found, of)
    missing = [f"{row.metric} ({row.reason})" for row in found.metrics[1:] if row.matched is None]
    if missing:
        said.append(f"not compared: {'; '.join(missing)}")
    said += [f"{row.metric}: {note}" for row in found.metrics for note in row.notes]
    return tuple(said)


def _identity(found: Comparison) -> list[str]:
    a, b = found.facts
    said = []
    if a.digest == b.digest:
        said.append("A and B are the same bundle")
    elif a.agent_digest == b.agent_digest:
        said.append("A and B are the same agent: the difference is one between two evaluations of it")
    simulated = [
        label for label, facts in (("A", a), ("B", b)) if facts.manifest.protocol.origin == "simulated"
    ]
    if simulated:
        verb = "is" if len(simulated) == 1 else "are"
        said.append(
            f"{' and '.join(simulated)} {verb} simulated evidence, which says nothing about any agent"
        )
    return said


def _grounds(found: Comparison, of: Matched) -> list[str]:
    said = []
    if of.paired:
        said.append("tasks are paired by name: a name stands for the same task in both bundles")
    else:
        said.append("too few runs are on tasks that both have; the agents are compared on different tasks")
    for label, side, runs in (("A", found.main.a, of.runs[0]), ("B", found.main.b, of.runs[1])):
        if left := side.n - runs:
            shared = "task, domain and condition" if of.paired else "domain and condition"
            said.append(
                f"{left:,} of {side.n:,} runs of {label} are left out, whose {shared} B and A do not share"
            )
    if min(of.clusters) < FEW_CLUSTERS:
        said.append(f"fewer than {FEW_CLUSTERS} clusters: the interval is rough")
    if of.blocked:
        said.append("clusters were put together into blocks to bound the time; the tests respect blocks")
    if not found.domains:
        said.append(
            f"more than {MOST_DOMAINS} domains: corrected for so many tests none would show anything, so none"
            " is tested on its own; the answer is over all of them"
        )
    return said
