"""The comparison in words: the answer, why something was not compared, and what a reader should know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.assessment.compare.document import Unlike
from certkit.assessment.drift.rows import LEAST
from certkit.assessment.metrics.catalogue import Unit
from certkit.assessment.metrics.metric import HARNESS_LIMIT, State, shown
from certkit.ground.text import quoted
from certkit.ground.wording import many

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from certkit.assessment.compare.document import BundlePart, Compared, Comparison, Difference, Side
    from certkit.assessment.metrics.metric import Metric
    from certkit.bundle.manifest import Judge, Protocol

ALPHA: Final = 0.05
"""Two-sided level at which a difference is called shown."""
MOST_DOMAINS: Final = 100
"""Domains of both bundles up to which each is tested on its own."""
_SMALLEST: Final = 0.0001
"""The least p-value that is printed as a number."""


def chance(p: float) -> str:
    """Return a p-value as people read it: ``p = 0.021``, ``p < 0.0001``."""
    return f"p < {_SMALLEST}" if p < _SMALLEST else f"p = {figure(p)}"


def figure(p: float) -> str:
    """Return the number of a p-value with two figures that count: ``0.021``, ``<0.0001``."""
    if p < _SMALLEST:
        return f"<{_SMALLEST}"
    return f"{p:.4f}" if p < 0.01 else f"{p:.3f}"  # noqa: PLR2004 - two figures that count


def change(value: float, unit: Unit) -> str:
    """Return a difference with its sign and unit: ``+6.1 pp``, ``-0.12``."""
    if unit is Unit.FRACTION:
        return f"{signed(100 * value, 1)} pp"
    return signed(value, 2 if unit in {Unit.POINTS, Unit.PER_RUN} else 3)


def signed(value: float, digits: int) -> str:
    """Return a number with its sign; what rounds to 0 is +0."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def answer(main: str, rows: Mapping[str, Compared], sides: Sequence[BundlePart]) -> str:
    """Return who is better, by how much, how sure that is, and what it rests on."""
    where = "under held-out faults" if main == "novel_fault" else "under faults"
    row = rows[main]
    if row.matched is None:
        beside = [name for name, row_beside in rows.items() if row_beside.matched]
        rest = f" Compared are: {', '.join(beside)}." if beside else " Nothing can be compared."
        return f"Success {where} cannot be compared: {row.reason}.{rest}"
    matched = row.matched
    values = f"{shown(matched.a, row.unit)} against {shown(matched.b, row.unit)}"
    size = f"{values}, {change(matched.difference, row.unit)} ({_grounds(matched)})"
    agents = ", ".join(
        f"{label} is {quoted(f'{side.agent.name} {side.agent.version}')}"
        for label, side in zip("AB", sides, strict=True)
    )
    if row.better is not None:
        better, worse = ("A", "B") if row.better == "a" else ("B", "A")
        return f"{better} succeeds {where} more often than {worse}: {size}. {agents}."
    few = f" A difference is called shown from {LEAST} tasks a side on." if min(matched.tasks) < LEAST else ""
    return f"No difference {where} is shown between A and B: {size}.{few} {agents}."


def _grounds(matched: Difference) -> str:
    interval = "all tasks differ alike, "
    if matched.interval is not None:
        low, high = (signed(100 * end, 1) for end in (matched.interval.low, matched.interval.high))
        interval = f"95 % CI {low} to {high}, "
    a, b = matched.tasks
    if matched.shared == a == b:
        tasks = f"the same {a:,} tasks"
    else:
        tasks = f"{a:,} and {b:,} tasks, {matched.shared:,} of them on both sides"
    return f"{interval}{chance(matched.p)}; {matched.runs[0]:,} and {matched.runs[1]:,} runs on {tasks}"


_STATES: Final = {
    State.UNMEASURED: "not measured",
    State.PARTIAL: "only partly measured",
    State.MEASURED: "not fit to be judged",
}


def not_compared(a: Side, b: Side) -> str:
    """Return why a metric has no comparison."""
    if a.reason and (a.state, a.reason) == (b.state, b.reason):
        return f"{_STATES[a.state]} in either ({a.reason})"
    missing = [
        f"{_STATES[side.state]} in {label} ({side.reason})"
        for label, side in (("A", a), ("B", b))
        if side.reason
    ]
    return "; ".join(missing) or "no domain and condition in which each side has two tasks that carry it"


def notes(name: str, a: Metric, b: Metric) -> tuple[str, ...]:
    """Return what limits a metric that was compared."""
    told = []
    for label, metric in (("A", a), ("B", b)):
        errors, n = metric.counts.get("harness_errors", 0), metric.n or 0
        if metric.interval is not None and errors > HARNESS_LIMIT * n:
            told.append(f"{label}: {errors:,} of {n:,} runs are harness errors and count as failures")
    if name == "adversarial_resistance":
        known = [bool(metric.counts["landed"] + metric.counts["not_landed"]) for metric in (a, b)]
        if known[0] != known[1]:
            told.append("only one bundle says which attacks landed; the other counts all attacked runs")
    return tuple(told)


def not_alike(a: Protocol, b: Protocol) -> tuple[Unlike, ...]:
    """Return the parts of the protocol that can make a difference by themselves and are not the same."""
    items = ("origin", "methodology", "success_rule", "judge", "cascade_definition", "temperature")
    pairs = [
        Unlike(item=item, a=_text(getattr(a, item)), b=_text(getattr(b, item)))
        for item in (*items, "memory_observable")
    ]
    return tuple(pair for pair in pairs if pair.a != pair.b)


def _text(value: Judge | float | str | None) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    family = f" ({value.family})" if value.family else ""
    return f"{value.name}{family}, {'independent' if value.independent else 'not independent'}"


def caveats(comparison: Comparison, *, tested: bool) -> tuple[str, ...]:
    """Return what a reader should know before believing the answer; `tested`: each domain was."""
    said = [
        *_of_bundles(comparison),
        *([] if comparison.main.matched is None else _of_tasks(comparison, comparison.main.matched)),
    ]
    if not tested:
        said.append(f"more than {MOST_DOMAINS} domains: none is tested on its own")
    rows = comparison.metrics.items()
    if missing := [
        f"{name} ({row.reason})" for name, row in rows if not (row.matched or row is comparison.main)
    ]:
        said.append(f"not compared: {'; '.join(missing)}")
    return tuple(said + [f"{name}: {note}" for name, row in rows for note in row.notes])


def _of_bundles(comparison: Comparison) -> Iterator[str]:
    if comparison.a.bundle == comparison.b.bundle:
        yield "A and B are the same bundle"
    elif comparison.a.agent.digest == comparison.b.agent.digest:
        yield "A and B are the same agent: the difference is between two evaluations of it"
    if "simulated" in {comparison.a.origin, comparison.b.origin}:
        yield "simulated evidence says nothing about any agent"


def _of_tasks(comparison: Comparison, matched: Difference) -> Iterator[str]:
    if matched.shared:
        yield "a task is known by its name: the same name stands for the same task in both bundles"
    else:
        yield "the bundles share no task: the agents are compared on different tasks"
    for label, side, compared in zip("AB", (comparison.main.a, comparison.main.b), matched.runs, strict=True):
        if left := side.n - compared:
            yield f"{left:,} of {many(side.n)} of {label} are left out: the other side has none like them"
