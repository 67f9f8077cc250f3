"""Findings that set runs against each other: those that no row counts, and those that repeat a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.assessment.criteria import Status
from certkit.assessment.findings.findings import finding, runs
from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.statistics.posterior import differences

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.bounded import Judged
    from certkit.assessment.findings.findings import Finding

ALPHA: Final = 0.05
"""One-sided level at which nominal runs are said to succeed less often than those under faults."""
LEAST: Final = 5
"""Tasks below which one rate is not tested against another."""


def contrasts(judged: Judged) -> Iterator[Finding]:
    """Yield what the runs of a judged summary show when some of them are set against the others."""
    yield from _held_out(judged)
    yield from _nominal(judged)
    yield from _repeats(judged)
    yield from _undeclared(judged)


def _held_out(judged: Judged) -> Iterator[Finding]:
    view = judged.view
    records, held_out = view.summary.records, view.summary.records - view.total.runs
    if not held_out:
        return
    told = f"{held_out:,} of {records:,} runs are held-out faults (split novel_fault), which no row counts"
    novel = view.novel
    if not novel.runs:
        told += "; none of them is under a fault"
    else:
        rate = novel.success / novel.runs
        told += f"; under faults {novel.success:,} of {novel.runs:,} succeed ({rate:.1%})"
    if novel.runs and view.fault.runs:
        told += f", where {view.fault.success / view.fault.runs:.1%} of the fault runs that count do"
        p = _worse(judged, "r_op", "novel_fault")
        told += " (too few tasks for a test)" if p is None else f" ({_chance(p)})"
    yield finding("held-out-runs", told)


def _nominal(judged: Judged) -> Iterator[Finding]:
    nominal, fault = judged.view.nominal, judged.view.fault
    if not (nominal.runs and fault.runs) or nominal.success * fault.runs >= fault.success * nominal.runs:
        return
    p = _worse(judged, "r_op", "c_nom")
    if p is not None and p < ALPHA:
        yield finding(
            "nominal-below-faults",
            f"nominal runs succeed in {nominal.success / nominal.runs:.1%}, runs under faults in"
            f" {fault.success / fault.runs:.1%} ({_chance(p)}): runs that failed"
            " under a fault may be labelled nominal, where r_op does not count them",
        )


def _worse(judged: Judged, whole: str, part: str) -> float | None:
    """Return the one-sided p against no loss from a rate to another, by tasks; None below `LEAST` tasks.

    It is what the posterior of part − whole leaves above 0, whose prior tasks speak against a loss.
    """
    sample = judged.view
    sums = [sample.sums(name) for name in (part, whole)]
    part_sums, whole_sums = sums
    if part_sums is None or whole_sums is None or min(part_sums.k, whole_sums.k) < LEAST:
        return None
    sides = differences(part_sums, whole_sums, sample.shared(part, whole))
    return 1 - min(float(side.below(0)) for side in sides)


def _chance(p: float) -> str:
    from certkit.assessment.compare.words import chance  # noqa: PLC0415 - heavy, seldom needed

    return f"one-sided {chance(p)}, tasks respected"


def _repeats(judged: Judged) -> Iterator[Finding]:
    """Tell where runs that repeat tasks carry a posterior by the table, and their tasks contradict it.

    Only declared independence can be contradicted: a bound that is insufficient contradicts nothing.
    """
    table, bounded = judged.tier("table"), judged.tier("bounded")
    sums = judged.view.sums("r_op")
    if judged.profile.reading != "table" or not judged.independent or sums is None:
        return
    lost = [
        row.tier
        for row in judged.rows
        if CATALOGUE[row.metric.id].tau_of and row.tier <= table and row.status is Status.MET
        if row.bounded is not None and row.bounded.status is Status.NOT_MET
    ]
    if lost:
        attained = f"Tier {bounded}" if bounded else "no tier"
        yield finding(
            "repeats-as-independent",
            f"the table reading takes {runs(sums.n)} under faults as independent, and attains Tier {table};"
            f" they are runs of {runs(sums.k, 'task')}, which do not show the success"
            f" that Tier {min(lost)} asks for: the bounded reading attains {attained}",
        )


def _undeclared(judged: Judged) -> Iterator[Finding]:
    """Say why the bounded reading judges no row, where nothing but a declaration is missing."""
    if not judged.independent and judged.view.summary.records:
        yield finding(
            "undeclared-independence",
            "the bounded reading judges no row, since nothing says that the tasks are independent: where they"
            " share no template, site or document, state protocol.tasks_independent: true in bundle.json;"
            " else give every record the cluster_id of its family",
        )
