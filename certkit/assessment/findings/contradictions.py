"""Findings about evidence that no reader would believe.

One measurement entered many times, faults without effect, attacks that succeeded and count as successes, runs
faster than they can be. Each is a rule on the sums of the records with a limit that honest evidence keeps.
The page `docs/reference/findings.md` says how each is cleared.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from msgspec import structs

from certkit.assessment.bounded import row_passes
from certkit.assessment.bounded.fragility import met_rows
from certkit.assessment.criteria import Status
from certkit.assessment.findings.findings import (
    HALF,
    KIND_SHARE,
    KINDS,
    RUNS_PER_SECOND,
    TENTH,
    finding,
    graded,
)
from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.metrics.metric import names, shown
from certkit.assessment.metrics.series import View
from certkit.assessment.statistics.estimators import variation
from certkit.ground.text import quoted, skeleton, spelled_alike
from certkit.ground.wording import many
from certkit.record.record import Condition, Split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from certkit.assessment.bounded import Judged
    from certkit.assessment.findings.findings import Finding

ALIKE: Final = Fraction(1, 100)
ALIKE_RUNS: Final = 5
"""Runs that are alike from which on they count as many, where they are also more than `ALIKE` of all."""

COUNTING: Final = 10
"""Tasks that occur once and carry a trial of 2 or more."""

FEW: Final = 10
"""Successes below which it says nothing how long they are, or where the fault struck."""
NEARLY_ALL: Final = Fraction(95, 100)

_WITHOUT_FAULT: Final = "x_without_fault"
"""What nominal runs are called where they count as runs under faults."""

UNEVEN: Final = 44.81
"""The χ² of ten stretches that chance exceeds once in a million times."""

UNEVEN_RUNS: Final = 20
"""Runs of either kind below which χ² is too rough."""

LAUNCHED: Final = 500
"""Runs that start within one second from which on they must have been launched together."""

BURST: Final = 10 * 10**6
"""Microseconds within which runs are launched together."""

STEPS_PER_SECOND: Final = 1000
"""What a large evaluation with many workers does at most."""


def contradictions(judged: Judged) -> Iterator[Finding]:
    """Yield the findings that speak against the records as a whole."""
    view = judged.view
    if view.summary.records == 0:
        return
    yield from _mix(view)
    yield from _left_out(view)
    yield from _attacks(view)
    yield from _alike(view)
    yield from _names(view)
    yield from _oracles(view)
    yield from _pace(view)
    yield from _held_out(view)
    yield from _elsewhere(judged)
    yield from _sorted(judged)
    yield from _repeats(judged)
    yield from _few_tasks(judged)
    yield from _undeclared(judged)


def _mix(view: View) -> Iterator[Finding]:
    counts: dict[str, int] = {}
    for cell in view.cells:
        if cell.is_fault:
            counts[str(cell.condition)] = counts.get(str(cell.condition), 0) + cell.tally.runs
    total = sum(counts.values())
    if not total:
        return
    extra = {name: count for name, count in counts.items() if name.startswith("x_")}
    if (share := Fraction(sum(extra.values()), total)) > TENTH:
        yield finding(
            "own-conditions-dominate",
            f"{sum(extra.values()):,} of {many(total, 'fault run')} are under conditions of the"
            f" evaluator's own ({names(sorted(extra))}): the tier table says nothing about them",
            graded(share),
        )
    kinds = [name for name, count in counts.items() if name not in extra and count >= KIND_SHARE * total]
    if len(kinds) < KINDS:
        told = [
            f"{condition} {counts.get(condition, 0):,}" for condition in Condition if condition != "nominal"
        ]
        yield finding(
            "narrow-fault-mix",
            f"{len(kinds)} of the standard kinds of fault have 5 % of {many(total, 'fault run')} or more,"
            f" where {KINDS} should: {', '.join(told)}",
        )


def _left_out(view: View) -> Iterator[Finding]:
    fault = view.fault
    left_out, total = fault.frr_left_out, fault.runs - fault.harness_error
    if fault.effect_unknown:
        yield finding(
            "fault-effect-unknown",
            f"{fault.effect_unknown:,} of {many(total, 'fault run')} do not say whether the fault took hold:"
            " they count as if it did",
        )
    if fault.onset_success >= FEW and fault.onset_last > HALF * fault.onset_success:
        yield finding(
            "faults-at-the-end",
            f"in {fault.onset_last:,} of {fault.onset_success:,} successes under faults the fault struck in"
            " the last tenth of the steps: little was left that it could disturb",
        )
    if not left_out:
        return
    share = Fraction(left_out, total)
    yield finding(
        "faults-left-out",
        f"in {left_out:,} of {many(total, 'fault run')} ({float(share):.1%}) the fault never took hold: they"
        " count as runs under faults and are left out of the failure resilience rate (frr)",
        graded(share),
    )


def _attacks(view: View) -> Iterator[Finding]:
    if count := sum(cell.tally.success_with_attack for cell in view.summary.cells):
        held_out = count - view.total.success_with_attack
        yield finding(
            "success-with-attack",
            f"{many(count)} count as successes although the attack succeeded;"
            " adversarial resistance counts them as failures, operational reliability (r_op) as successes"
            + (f" (but for {held_out:,} that are held out)" if held_out else ""),
        )
    tally = view.condition(Condition.ADVERSARIAL)
    if tally.landed and tally.not_landed:
        yield finding(
            "attacks-left-out",
            f"{tally.not_landed:,} of {many(tally.runs, 'adversarial run')} are declared as attacks that"
            f" never reached the agent: its resistance rests on the other {tally.landed:,}",
            graded(Fraction(tally.not_landed, tally.runs)),
        )


def _alike(view: View) -> Iterator[Finding]:
    """Tell of runs that are equal in every measured field; repeats at temperature 0 may be."""
    alike, records = view.summary.likeness, view.summary.records
    repeats = 0 if view.manifest.protocol.temperature == 0 else alike.within
    if _many(alike.renamed, records):
        yield finding(
            "tasks-not-distinct",
            f"{many(alike.renamed)} of tasks whose names differ by a counter alone are equal to a run of"
            " another such task in every measured field: one task seems to stand under many names",
        )
    elif alike.tasks_counting >= COUNTING and 2 * alike.tasks_counting > alike.tasks_once:
        yield finding(
            "tasks-not-distinct",
            f"{alike.tasks_counting:,} of {many(alike.tasks_once, 'task')} that occur once carry a trial of 2"
            " or more: repeats of one task seem to stand under many names",
        )
    if _many(alike.across - alike.renamed + repeats, records):
        yield finding(
            "runs-alike",
            f"{alike.across - alike.renamed + repeats:,} of {many(records)} are equal to another run in every"
            " measured field, to the last digit of their scores: they seem to be copies",
        )


def _many(count: int, records: int) -> bool:
    return count >= ALIKE_RUNS and Fraction(count, records) > ALIKE


def _names(view: View) -> Iterator[Finding]:
    alike = view.summary.likeness
    domains = {cell.domain for cell in view.summary.cells}
    told = [
        many(count, f"{kind} name")
        for kind, count in (
            ("domain", len(domains) - len({skeleton(name) for name in domains})),
            ("task", alike.tasks_spelled_alike),
            ("run", alike.runs_spelled_alike),
        )
        if count
    ]
    if told:
        pair = spelled_alike(sorted(domains), alike.seen or ())
        mild = pair and len({skeleton(name, accents=True) for name in pair}) > 1
        shown = f", such as {' and '.join(map(quoted, pair))}" if pair else ""
        yield finding(
            "names-accents" if mild else "names-alike",
            f"{', '.join(told)} differ from another in spelling only{shown}"
            + (" (by accents alone)" if mild else ": one thing seems to stand under several names"),
        )


def _oracles(view: View) -> Iterator[Finding]:
    if count := view.summary.likeness.oracles:
        yield finding(
            "oracle-varies",
            f"{many(count, 'task')} {'has' if count == 1 else 'have'} several values of steps_oracle, and the"
            " fewest steps that a task takes are one number",
        )
    total = view.total
    if total.oracle_success >= FEW and total.oracle_equal >= NEARLY_ALL * total.oracle_success:
        yield finding(
            "oracle-equals-actual",
            f"{total.oracle_equal:,} of {total.oracle_success:,} successes with an oracle took exactly as"
            " many steps as it: was the oracle taken from the runs?",
        )


def _pace(view: View) -> Iterator[Finding]:
    """Compare runs and steps with the seconds that the declared period, and the start times, can hold."""
    period, times = view.manifest.protocol.period, view.summary.times
    start, end = period.span if period else (None, None)
    spans = []
    if start is not None and end is not None and end >= start:
        spans.append(("the declared period", end - start, view.summary.records))
    # Runs may be launched together, and last long after the last start.
    if times.first is not None and times.last is not None and times.last - times.first > BURST:
        spans.append(("the time from the first start to the last", times.last - times.first, times.timed))
    if times.flash > LAUNCHED:
        yield finding(
            "implausible-pace",
            f"{times.flash:,} runs started within one second, each at a time of its own:"
            " were they launched together?",
        )
    steps = sum(cell.tally.steps for cell in view.summary.cells)
    for what, microseconds, count in spans:
        seconds = Fraction(microseconds, 10**6)
        held = max(seconds, Fraction(1))
        if count > RUNS_PER_SECOND * held or steps > STEPS_PER_SECOND * held:
            yield finding(
                "implausible-pace",
                f"{what} is {float(seconds):,.6g} s, and {many(count)} with {many(steps, 'step')} were made"
                f" in it: no more than {RUNS_PER_SECOND} runs or {STEPS_PER_SECOND:,} steps a second are"
                " believable",
            )
            return


def _held_out(view: View) -> Iterator[Finding]:
    records, novel, fault = view.summary.records, view.novel, view.fault
    if held_out := records - view.total.runs:
        yield finding(
            "held-out-runs",
            f"{held_out:,} of {records:,} runs are held-out faults (split novel_fault), which no row counts;"
            f" under faults {novel.success:,} of {novel.runs:,} succeed, of those that count"
            f" {fault.success:,} of {fault.runs:,}",
        )


def _elsewhere(judged: Judged) -> Iterator[Finding]:
    """Tell where rows of the attained tier fail if the held-out runs, the nominal ones, or both count too.

    Failures can be moved to either. An agent does no worse without faults. Only values are compared: that of
    `r_op` stands for its posterior.
    """
    cells = judged.view.summary.cells
    there = {
        "held-out": any(cell.split != Split.STANDARD for cell in cells),
        "nominal": any(not cell.is_fault for cell in cells),  # held-out ones too
    }
    for sides in (("held-out",), ("nominal",), ("held-out", "nominal")):
        if all(there[side] for side in sides) and (lost := _lost(judged, sides)):
            yield finding(
                "failures-elsewhere",
                f"if the {' and '.join(sides)} runs count too, rows of the attained tier fail: {names(lost)};"
                " failures seem to stand among runs that the rows do not count",
            )
            return


def _sorted(judged: Judged) -> Iterator[Finding]:
    """Tell where CSI is met at the attained tier, and its latest runs fail less than those before.

    Whoever writes records puts them in an order. The stretches of the ordered runs are compared by χ²,
    divided by the design effect (Kish 1965), since runs of a task often follow each other.
    """
    reading = judged.profile.reading
    met = met_rows(judged, judged.tier(reading), reading)
    shape = variation(judged.view.tasks("r_op"))
    parts = [(item.failures, item.runs) for item in judged.view.summary.window.stretches if item.runs]
    if shape is None or not parts or all(row.metric.id != "csi" for row, _ in met):
        return
    bad, n = (sum(numbers) for numbers in zip(*parts, strict=True))
    if min(bad, n - bad) < UNEVEN_RUNS:
        return
    squares = sum(Fraction((part * n - bad * size) ** 2, size * bad * (n - bad)) for part, size in parts)
    effect = 1 + (shape.runs / shape.tasks - 1) * (shape.icc or 0)
    latest, size = parts[-1]
    if squares > UNEVEN * effect and latest * n < bad * size:
        yield finding(
            "failures-elsewhere",
            f"csi rests on the latest runs: of those that did not succeed, {latest:,} of {bad:,} stand in"
            " the last tenth; chance spreads them so about once in a million times",
        )


def _lost(judged: Judged, sides: Sequence[str]) -> list[str]:
    """Return the rows of the attained tier whose value fails if the runs of `sides` count under faults."""
    cells = tuple(
        structs.replace(
            cell,
            split=Split.STANDARD if "held-out" in sides else cell.split,
            condition=cell.condition if cell.is_fault or "nominal" not in sides else _WITHOUT_FAULT,
        )
        for cell in judged.view.summary.cells
    )
    moved = View(structs.replace(judged.view.summary, cells=cells), judged.view.manifest, judged.profile.tau)
    reading = judged.profile.reading
    lost: dict[str, str] = {}
    for row, kind in met_rows(judged, judged.tier(reading), reading):
        if kind is None or CATALOGUE[row.metric.id].tau_of:
            continue
        if any(moved.sums(part.series, part.domain) is None for part in kind.parts(moved)):
            continue
        if not row_passes(row, value := kind.value(moved)):
            unit, least = row.metric.unit, row.threshold
            told = f"{row.id} {shown(value, unit, beside=least)} instead of {shown(row.value, unit)}"
            lost.setdefault(row.id, f"{told} (Tier {row.tier})")
    return list(lost.values())


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
            f"the table reading takes {many(sums.n)} under faults as independent, and attains Tier {table};"
            f" they are runs of {many(sums.k, 'task')}, which do not show the success"
            f" that Tier {min(lost)} asks for: the bounded reading attains {attained}",
        )


def _few_tasks(judged: Judged) -> Iterator[Finding]:
    """Name the rows that the table meets on so few tasks that flawless ones would not show it."""
    attained = judged.tier("table") if judged.profile.reading == "table" else 0
    highest = {row.id: row for row, _ in met_rows(judged, attained, "table")}
    few = [f"{row.id} ({reason})" for row in highest.values() if (reason := judged.few(row))]
    if few:
        yield finding(
            "few-fault-runs",
            f"the table reading meets {many(len(few), 'row')} on so few tasks that even flawless ones would"
            f" not show it with the tier's confidence: {names(few)}",
        )


def _undeclared(judged: Judged) -> Iterator[Finding]:
    """Say why the bounded reading judges no row, where nothing but a declaration is missing."""
    if not judged.independent:
        yield finding(
            "undeclared-independence",
            "the bounded reading judges no row, since nothing says that the tasks are independent: where they"
            " share no template, site or document, import the log again with --independent-tasks;"
            " else give every record the cluster_id of its family",
        )
