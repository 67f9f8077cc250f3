"""From partial sums to the `Summary`: cells, series, the runs in order of time, the task table."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import UNSET, Struct

from certkit.record.columns import ABSENT
from certkit.record.record import Split
from certkit.summary.ratings import Ratings, labels
from certkit.summary.reduce import TAG_BYTES, changes, join
from certkit.summary.series import (
    Sources,
    Units,
    mean_series,
    pair_series,
    rows_by_domain,
    share_series,
    with_faults,
)
from certkit.summary.summary import (
    CORE_MEANS,
    CORE_SHARES,
    COUNTS,
    MEANS,
    MOST_TASKS,
    PAIRS,
    SCALE,
    SHARES,
    SUCCESS_COLUMN,
    TASK_COLUMNS,
    THOUSANDTHS,
    WINDOW,
    Cell,
    Core,
    Effect,
    LatestRun,
    Order,
    PlannedRuns,
    Summary,
    TaskColumn,
    TaskRow,
    TaskTable,
    Terms,
    Times,
    Traces,
)
from certkit.summary.terms import GAMMA_FIFTHS, NOT_A_RECOVERY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from certkit.summary.reduce import Partial
    from certkit.summary.series import Pair
    from certkit.summary.summary import Row3

    Integers = NDArray[np.int64]

SALT_NAME: Final = 8
"""Bytes of the SHA-256 of the salt that name it."""
_PAIRED: Final = ("pei", "ti", "violations")


class Unordered(Struct, frozen=True):
    """Why runs have no order.

    Attributes:
        reason: a code, see `Order`.
        counts: numbers that belong to it.
    """

    reason: str
    counts: Mapping[str, int] = {}


def finish(
    partial: Partial,
    *,
    memory_observable: bool = False,
    core_conditions: Iterable[str] = (),
    most_tasks: int | None = MOST_TASKS,
    salt: bytes | None = None,
    traces: Traces | None = None,
    plan: PlannedRuns | None = None,
    ratings: Ratings | None = None,
    unordered: Unordered | None = None,
    backwards: int | None = None,
) -> Summary:
    """Return the summary of records whose sums are complete.

    Args:
        partial: the sums of all records.
        memory_observable: whether a recovery without any memory field counts as not intentional.
        core_conditions: `x_` conditions that count as core evidence.
        most_tasks: how many tasks get rows, those with the smallest tags; None for all.
        salt: what `partial` was tagged with, None where its tasks are numbered.
        traces: what the enclosed traces of the runs show, None where none is enclosed.
        plan: the records beside the enclosed plan, None where none is enclosed.
        ratings: what people's labels show.
        unordered: why the runs have no order, whatever their times say.
        backwards: start times that go backwards, where `sequence` does not tell it.
    """
    core_conditions = tuple(sorted(set(core_conditions)))
    order = sorted(range(len(partial.cells)), key=partial.cells.__getitem__)
    place = np.empty(len(order), np.int32)  # of each cell of `partial` among the sorted ones
    place[order] = np.arange(len(order), dtype=np.int32)
    cells = tuple(_cell(partial, number) for number in order)
    sources = Sources(cells, core_conditions, memory_observable=memory_observable)
    groups = join(partial.groups)
    units = Units(groups, place[groups["cell"]], cells, "cluster")
    sums = {name: units.sums(sources.standard_series[name]) for name in {*MEANS, *sum(PAIRS.values(), ())}}
    shares = {name: share_series(name, units, sources.standard_series[name]) for name in SHARES}
    return Summary(
        records=partial.records,
        core_conditions=core_conditions,
        memory_observable=memory_observable,
        cells=cells,
        shares=_filled(shares),
        means=_filled({name: mean_series(*sums[name]) for name in MEANS}),
        pairs=_filled({name: pair_series(sums[a], sums[b]) for name, (a, b) in PAIRS.items()}),
        core=_core(Units(groups, units.cell, cells, "task"), sources),
        pei_terms=_terms(partial, place, sources),
        order=_order(partial, place, units, sources, unordered),
        times=_times(partial, backwards),
        clustered=partial.records > 0 and partial.unclustered == 0,
        equal_runs=_equal_runs(partial.column("print")),
        repeated=_repeated(units),
        varying_oracles=_varying_oracles(units),
        traces=traces or Traces(named=partial.count("traced"), bare=partial.count("derived")),
        labels=labels(ratings or Ratings(), units, sources),
        tasks=_task_table(units, sources, salt, most_tasks),
        plan=UNSET if plan is None else plan,
    )


def _cell(partial: Partial, number: int) -> Cell:
    split, domain, condition, effect = partial.cells[number]
    return Cell(
        split=Split(split),
        domain=domain,
        condition=condition,
        effect=Effect(effect),
        counts={
            name: value for name, value in zip(COUNTS, partial.counts[number].tolist(), strict=True) if value
        },
    )


def _filled(series: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in series.items() if item.rows}


def _core(tasks: Units, sources: Sources) -> Core:
    made = sources.core_series
    sums: dict[str, Pair] = {name: tasks.sums(made[name]) for name in CORE_MEANS}
    for name in _PAIRED:
        sums[f"{name}_normal"] = with_faults(sums[f"{name}_normal"], sums[f"{name}_fault"])
    return Core(
        shares=_filled({name: share_series(name, tasks, made[name]) for name in CORE_SHARES}),
        means=_filled({name: mean_series(*sums[name]) for name in CORE_MEANS}),
    )


def _terms(partial: Partial, place: NDArray[np.int32], sources: Sources) -> dict[str, Terms]:
    """Return the exact terms of normal, core fault and other fault runs of the standard split."""
    group = np.select([~sources.standard, ~sources.fault, sources.is_core], [-1, 0, 1], 2)[place].tolist()
    sums: tuple[tuple[dict[int, int], dict[int, int]], ...] = (({}, {}), ({}, {}), ({}, {}))
    for (cell, steps), numerators in partial.terms.items():
        if group[cell] >= 0:
            for into, numerator in zip(sums[group[cell]], numerators, strict=True):
                if numerator:
                    into[steps] = into.get(steps, 0) + numerator
    return {
        name: Terms(pei=tuple(sorted(pei.items())), pei_2025=tuple(sorted(pei25.items())))
        for name, (pei, pei25) in zip(("normal", "core", "other"), sums, strict=True)
        if pei or pei25
    }


def _order(
    partial: Partial,
    place: NDArray[np.int32],
    units: Units,
    sources: Sources,
    unordered: Unordered | None,
) -> Order:
    """Return the runs of the standard split in order of time."""
    cell = place[partial.column("cell")]
    standard = sources.standard[cell]
    chosen: NDArray[np.bool_] | slice = slice(None) if standard.all() else standard
    cell = cell[chosen]
    by, key = _key(partial.column("sequence")[chosen], partial.column("started")[chosen])
    key = unordered or key
    if isinstance(key, Unordered):
        return Order(reason=key.reason, counts=key.counts, runs=len(cell))
    index = _order_of(key)
    names = ("numerator", "steps", "irs", "success", "task")
    columns = {name: partial.column(name)[chosen][index] for name in names}
    return Order(
        by=by,
        runs=len(cell),
        latest=_latest(columns),
        thirds=_thirds(cell[index], columns["task"], columns["success"], units, sources),
    )


def _key(sequence: Integers, started: Integers) -> tuple[str, Integers | Unordered]:
    """Return the field that orders runs and its values, or why there is none."""
    runs = len(sequence)
    if not runs:
        return "", Unordered("no-runs")
    if (sequence != ABSENT).all():
        return "sequence", sequence
    if (started == ABSENT).any():
        missing = int(((sequence == ABSENT) & (started == ABSENT)).sum())
        if missing:
            return "", Unordered("unordered", {"missing": missing, "runs": runs})
        return "", Unordered("mixed", {"sequence": int((sequence != ABSENT).sum()), "runs": runs})
    shared = runs - 1 - int(changes(started[_order_of(started)])[1:].sum())
    if shared:
        return "", Unordered("shared-times", {"shared": shared, "runs": runs})
    return "started_at", started


def _order_of(values: Integers) -> NDArray[np.intp] | slice:
    """Return the index that sorts `values`; most logs are in order, and checking is faster than sorting."""
    return slice(None) if (values[1:] >= values[:-1]).all() else np.argsort(values, kind="stable")


def _latest(columns: Mapping[str, NDArray[Any]]) -> tuple[LatestRun, ...]:
    """Return the last `WINDOW` runs, oldest first."""
    tail = (columns[name][-WINDOW:].tolist() for name in ("numerator", "steps", "irs", "success"))
    return tuple(
        LatestRun(
            numerator=None if numerator < 0 else numerator,
            denominator=1 if numerator < 0 else GAMMA_FIFTHS * steps,
            irs=None if irs == NOT_A_RECOVERY else irs,
            success=success,
        )
        for numerator, steps, irs, success in zip(*tail, strict=True)
    )


def _thirds(
    cell: NDArray[np.int32],
    task: NDArray[np.uint64],
    success: NDArray[np.bool_],
    units: Units,
    sources: Sources,
) -> dict[str, tuple[Row3, ...]]:
    """Return the last third of each domain's fault runs, which are given in order of time."""
    fault = sources.fault[cell]
    domain = units.domain_of_cell[cell[fault]]
    order = np.argsort(domain, kind="stable")
    runs = np.bincount(domain, minlength=len(units.domains))
    domain = domain[order]
    rank = np.arange(len(order)) - (np.cumsum(runs) - runs)[domain]
    late = rank >= 2 * runs[domain] // 3
    domain = domain[late]
    chosen = np.flatnonzero(fault)[order[late]]
    tasks, first = np.unique(units.groups["task"], return_index=True)
    unit = units.of_row[first][np.searchsorted(tasks, task[chosen])]
    pairs, at = np.unique(domain * max(1, len(units.names)) + unit, return_inverse=True)
    n = np.bincount(at, minlength=len(pairs))
    y = np.bincount(at[success[chosen]], minlength=len(pairs))
    return rows_by_domain(pairs // max(1, len(units.names)), n, y, units.domains)


def _times(partial: Partial, backwards: int | None) -> Times:
    started, sequence = partial.column("started"), partial.column("sequence")
    timed = started[started != ABSENT]
    if not len(timed):
        return Times()
    if backwards is None:
        both = (sequence != ABSENT) & (started != ABSENT)
        ordered = started[both][_order_of(sequence[both])]
        backwards = int((ordered[1:] < ordered[:-1]).sum())
    return Times(timed=len(timed), first=int(timed.min()), last=int(timed.max()), backwards=backwards)


def _equal_runs(hashes: NDArray[np.uint64]) -> int:
    """Return how many runs have the print of another."""
    ordered = np.sort(hashes)
    same = ordered[1:] == ordered[:-1]
    return int((np.append(same, False) | np.append(False, same)).sum()) if len(ordered) else 0


def _repeated(units: Units) -> tuple[int, int]:
    """Return how many tasks were repeated under one condition with one outcome only, and their runs."""
    rows, starts = units.by_condition()
    if not len(rows):
        return 0, 0
    names = ("runs", "success", "safe_halt", "harness_error")
    n, *outcomes = (np.add.reduceat(units.groups[name][rows], starts) for name in names)
    outcomes.append(n - sum(outcomes))  # failures
    same = (n > 1) & np.any([count == n for count in outcomes], axis=0)
    return int(np.count_nonzero(same)), int(n[same].sum())


def _varying_oracles(units: Units) -> int:
    """Return how many tasks have several values of `steps_oracle` under one condition."""
    rows, starts = units.by_condition()
    if not len(rows):
        return 0
    low = np.minimum.reduceat(units.groups["oracle_low"][rows], starts)
    high = np.maximum.reduceat(units.groups["oracle_high"][rows], starts)
    return len(np.unique(units.groups["task"][rows[starts]][low < high]))


def _task_table(units: Units, sources: Sources, salt: bytes | None, most: int | None) -> TaskTable:
    """Return the task table; of more than `most` tasks the rows are those with the smallest tags."""
    columns: list[TaskColumn] = []
    sums: list[Integers] = []
    for metric, condition, (n, y) in _columns(units, sources):
        full = SCALE.get(metric, 1)
        scale = min(full, THOUSANDTHS)
        # Thousandths say enough of one task, and a passport has room for many.
        cut = y if scale == full else (y + full // scale // 2) // (full // scale)
        if n.any():
            totals = {"y": int(cut.sum()), "n": int(n.sum())}
            columns.append(TaskColumn(metric=metric, condition=condition, scale=scale, **totals))
            sums += [cut, n]
    if not columns:
        return TaskTable()
    table = np.stack(sums, axis=1)
    pairs = np.flatnonzero(table[:, 1::2].any(axis=1))
    tags = _tags(units, salt)[units.pair_unit[pairs]]
    every = np.unique(tags)
    if most is not None and len(every) > most:
        inside = tags <= every[most - 1] if most else np.zeros(len(tags), np.bool_)
        pairs, tags = pairs[inside], tags[inside]
    names, numbers = np.unique(units.pair_domain[pairs], return_inverse=True)
    order = np.lexsort((numbers, tags))
    rows = zip(tags[order].tolist(), numbers[order].tolist(), table[pairs[order]].tolist(), strict=True)
    return TaskTable(
        salt=None if salt is None else hashlib.sha256(salt).digest()[:SALT_NAME].hex(),
        tasks=len(every),
        domains=tuple(units.domains[place] for place in names.tolist()),
        columns=tuple(columns),
        rows=tuple(TaskRow(tag.decode(), domain, tuple(values)) for tag, domain, values in rows),
    )


def _columns(units: Units, sources: Sources) -> Iterator[tuple[str, str | None, Pair]]:
    """Yield metric, condition, and runs and values by unit and domain, of all that the table may hold."""
    for condition, source in sources.by_condition():
        yield SUCCESS_COLUMN, condition, units.sums(source, by_domain=True)
    for metric in TASK_COLUMNS:
        yield metric, None, units.sums(sources.standard_series[metric], by_domain=True)


def _tags(units: Units, salt: bytes | None) -> NDArray[np.bytes_]:
    """Return the tag of every unit as text; units are numbered where there is no salt."""
    if salt is None:
        data = b"".join(number.to_bytes(TAG_BYTES) for number in range(len(units.names)))
    else:
        first = np.unique(units.of_row, return_index=True)[1]
        data = units.groups["tag"][first].tobytes()
    return np.frombuffer(urlsafe_b64encode(data), "S12")
