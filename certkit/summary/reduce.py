"""From columns of records to integer sums; `terms` computes what each run adds.

`reduce` gives the `Sums` of a block of records. They add up to the same summary in any order and with any
number of processes, because every sum is an integer.

`order` puts the runs in time, and takes from that the facts that CSI and the plausibility checks rest on: by
``sequence`` where all have it, else by ``started_at`` where all have it and all differ. Otherwise there is no
order, and the reason is returned. Only the standard split is ordered.
"""

from __future__ import annotations

import hashlib
import hmac
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from certkit.record.columns import ABSENT, Index, name_hashes, spellings
from certkit.record.record import Split
from certkit.summary.likeness import SCORES, prints, scaled, stems
from certkit.summary.summary import (
    CLUSTER_FIELDS,
    PEI_SCALE,
    STRETCHES,
    TALLY_FIELDS,
    WINDOW,
    Cell,
    Stretch,
    Times,
    Window,
    WindowRun,
)
from certkit.summary.tasks import TAG_BYTES
from certkit.summary.terms import GAMMA_FIFTHS, NOT_A_RECOVERY, Terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from certkit.record.columns import Columns

    Integers = NDArray[np.int64]
    Booleans = NDArray[np.bool_]


EXACT_DOUBLE: Final = 2**53
_WIDE: Final = 2**62
CellKey = tuple[str, str, str]
"""(split, domain, condition)"""


class Sums(Struct, kw_only=True, eq=False):
    """The sums of some records.

    `tallies` has a row per cell and a column per tally field. `terms` maps (number of a cell, steps_actual)
    to the numerators of PEI and of PEI 2025. `groups` is of dtype `GROUP`. `runs` holds the columns of
    `RUN`, in the order of the lines. `unclustered` counts records without a cluster_id.
    """

    cells: list[CellKey]
    tallies: NDArray[Any]
    terms: dict[tuple[int, int], tuple[int, int]]
    groups: NDArray[np.void]
    runs: dict[str, NDArray[Any]]
    unclustered: int


GROUP: Final = np.dtype(
    [
        ("cell", "<i4"),
        ("cluster", "<u8"),
        ("task", "<u8"),
        ("tag", f"V{TAG_BYTES}"),
        ("spelling", "<u8"),  # hash of the skeleton of the task's name
        ("stem", "<u8"),  # hash of the task's name without digits
        ("oracle_low", "<i8"),  # least and largest steps_oracle
        ("oracle_high", "<i8"),
        ("trial", "<i8"),  # largest
        *((name, "<i8") for name in CLUSTER_FIELDS),
    ]
)
"""One row per cell × cluster × task; `tag` is that of the cluster."""

EXTREMES: Final = (
    ("oracle_low", "steps_oracle", np.minimum, -ABSENT),
    ("oracle_high", "steps_oracle", np.maximum, ABSENT),
    ("trial", "trial", np.maximum, ABSENT),
)
"""Columns of `GROUP` that are least or largest values: of which field, and their start.

`CLUSTER_FIELDS` are added.
"""

RUN: Final[dict[str, type[np.generic]]] = {
    "run_id": np.uint64,  # hash
    "spelling": np.uint64,  # hash of the skeleton of run_id
    "task": np.uint64,  # hash
    "print": np.uint64,  # see `likeness`
    **dict.fromkeys(SCORES, np.int32),
    "sequence": np.int64,
    "started": np.int64,  # microseconds
    "cell": np.int32,
    "numerator": np.int32,  # of PEI; −1 not measured
    "steps": np.int32,  # steps_actual
    "irs": np.int8,
    "success": np.bool_,
    "harness": np.bool_,
}
"""An element per record: the names that must not repeat, and the fields that CSI needs in order."""


def tag(salt: bytes, name: str) -> bytes:
    """Return what a passport calls a task or cluster: only who has the salt can tell its name."""
    return hmac.digest(salt, name.encode(), hashlib.sha256)[:TAG_BYTES]


def reduce(columns: Columns, salt: bytes | None = None) -> Sums:
    """Return the sums of a block of records. Without a `salt` every tag is zeros."""
    novel = columns.equals("split", Split.NOVEL_FAULT)
    cell, first_of_cell = _grouped(columns, novel.astype(np.int64), 2, ("domain", "condition"))
    group, first = _grouped(columns, cell, len(first_of_cell), ("cluster_id", "task_id"))
    domain, condition = columns.text("domain"), columns.text("condition")
    cells = [
        (str(Split.NOVEL_FAULT if novel[row] else Split.STANDARD), domain[row], condition[row])
        for row in first_of_cell.tolist()
    ]
    terms = Terms(columns)
    sums = terms.sums()
    tallies = np.stack([_sum(cell, sums[name], len(cells)) for name in TALLY_FIELDS], axis=1)
    table, alone = _table(columns, first, salt)
    table["cell"] = cell[first]
    for name in CLUSTER_FIELDS:
        table[name] = _sum(group, sums[name], len(first))
    for name, field, extend, start in EXTREMES:
        extreme = np.full(len(first), start)
        if columns.has(field):
            values = columns.number(field)
            known = values != ABSENT
            extend.at(extreme, group[known], values[known])
        table[name] = extreme
    return Sums(
        cells=cells,
        tallies=tallies,
        terms=_by_steps(cell, terms),
        groups=table,
        runs=_runs(columns, cell, table["task"][group], terms),
        unclustered=int(table["runs"][alone].sum()),
    )


def _grouped(
    columns: Columns, within: Integers, size: int, names: Sequence[str]
) -> tuple[Integers, NDArray[np.intp]]:
    """Return each record's group, by `within` (numbers below `size`) and texts, and each group's first."""
    key = within
    for name in names:
        index, numbers = columns.coded(name)
        if size * len(numbers) > _WIDE:
            key = np.unique(key, return_inverse=True)[1]
            size = len(key)
        key, size = key * len(numbers) + index, size * len(numbers)
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    return place, first


def _table(
    columns: Columns, first: NDArray[np.intp], salt: bytes | None
) -> tuple[NDArray[np.void], Booleans]:
    """Return rows of `GROUP` with the hashes of the names of clusters and tasks, of the records `first`.

    Also returns which of them have no cluster_id, so that the task stands for its cluster.
    """
    table = np.zeros(len(first), GROUP)
    (task, tasks), (cluster, clusters) = (columns.coded(name) for name in ("task_id", "cluster_id"))
    task, cluster = task[first], cluster[first]
    alone = cluster == clusters.get("", -1)
    hashes = name_hashes(tasks)
    table["task"] = hashes[task]
    table["cluster"] = np.where(alone, table["task"], name_hashes(clusters)[cluster])
    table["spelling"] = spellings(list(tasks), hashes)[task]
    table["stem"] = stems(tasks)[task]
    if salt is not None:
        for rows, place, names in ((alone, task, tasks), (~alone, cluster, clusters)):
            if rows.any():
                tags = np.array([tag(salt, name) for name in names], f"V{TAG_BYTES}")
                table["tag"][rows] = tags[place[rows]]
    return table, alone


def _sum(index: Integers, values: NDArray[Any], size: int) -> Integers:
    """Return at each place below `size` the sum of the values whose index it is."""
    if not values.any():
        return np.zeros(size, np.int64)  # most producers never write most fields
    if values.dtype != np.bool_ and int(values.max()) * len(values) >= EXACT_DOUBLE:
        total = np.zeros(size, np.int64)
        np.add.at(total, index, values)
        return total
    # bincount is much faster and adds in doubles, which is exact below 2^53.
    return np.bincount(index, weights=values, minlength=size).astype(np.int64)


def _runs(columns: Columns, cell: Integers, task: NDArray[Any], terms: Terms) -> dict[str, NDArray[Any]]:
    runs = {
        "run_id": columns.run_ids[0],
        "spelling": columns.run_ids[1],
        "task": task,
        "print": prints(columns),
        **{name: scaled(columns, name) for name in SCORES},
        "sequence": columns.number("sequence"),
        "started": columns.microseconds(),
        "cell": cell,
        "numerator": np.where(terms.pei_known, terms.numerator, -1),
        "steps": np.where(terms.pei_known, terms.steps, 1),
        "irs": terms.irs,
        "success": columns.success,
        "harness": columns.harness_error,
    }
    return {name: runs[name].astype(kind, copy=False) for name, kind in RUN.items()}


def _by_steps(cell: Integers, terms: Terms) -> dict[tuple[int, int], tuple[int, int]]:
    """Return for (cell, steps_actual) the sums of both numerators over the cell's runs of that length."""
    known = terms.pei_known | terms.pei25_known
    if not known.any():
        return {}
    cell, steps = cell[known], terms.steps[known]
    width = int(steps.max()) + 1
    places, index = np.unique(cell * width + steps, return_inverse=True)
    pei, pei25 = (_sum(index, n[known], len(places)) for n in (terms.numerator, terms.numerator25))
    return {
        divmod(place, width): (first, second)
        for place, first, second in zip(places.tolist(), pei.tolist(), pei25.tolist(), strict=True)
    }


FLASH = 10**6
"""Microseconds within which distinct start times are counted."""

_COUNTED: Final = ("cell", "numerator", "steps", "irs", "success", "harness")
"""Columns that are put in order; no other is copied."""

if TYPE_CHECKING:
    from numpy.typing import NDArray


def order(
    runs: dict[str, NDArray[Any]], cells: list[Cell], *, unordered: str | None = None
) -> tuple[Window, Times]:
    """Return the ordered window, and the facts about the start times of all `runs`.

    `runs` holds the columns of `reduce.RUN`; ``cell`` is an index into `cells`. `unordered` is a reason why
    the runs have no order even if their columns would give one.
    """
    times = _times(runs)
    standard = np.array([cell.split == Split.STANDARD for cell in cells], np.bool_)
    if not standard.all():
        chosen = standard[runs["cell"]]
        runs = {name: runs[name][chosen] for name in (*_COUNTED, "sequence", "started")}
    by, name, reason = (None, "", unordered) if unordered else _key(runs)
    if by is None:
        return Window(order=None, reason=reason, runs=len(runs["cell"])), times
    index = _order_of(by)
    runs = {name: runs[name][index] for name in _COUNTED}
    failed = np.flatnonzero(~runs["success"])
    window = Window(
        order=name,
        reason=None,
        runs=len(by),
        latest=_latest(runs),
        stretches=_stretches(runs, cells),
        failures=len(failed),
        failure_moment=int(failed.sum()),
    )
    return window, times


def _latest(runs: dict[str, NDArray[Any]]) -> tuple[WindowRun, ...]:
    """Return the last `WINDOW` runs, oldest first."""
    tail = (runs[name][-WINDOW:].tolist() for name in ("numerator", "steps", "irs", "success"))
    return tuple(
        WindowRun(
            pei=None if numerator < 0 else (numerator, GAMMA_FIFTHS * steps),
            irs=None if irs == NOT_A_RECOVERY else irs,
            success=success,
        )
        for numerator, steps, irs, success in zip(*tail, strict=True)
    )


def _sorted(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return values[_order_of(values)]


def _order_of(values: NDArray[np.int64]) -> NDArray[np.intp] | slice:
    """Return the index that sorts `values`; most logs are in order, and checking is faster than sorting."""
    return slice(None) if (values[1:] >= values[:-1]).all() else np.argsort(values, kind="stable")


def _key(runs: dict[str, NDArray[Any]]) -> tuple[NDArray[np.int64] | None, str, str | None]:
    sequence, started = runs["sequence"], runs["started"]
    if not len(sequence):
        return None, "", "there are no runs"
    if (sequence != ABSENT).all():
        return sequence, "sequence", None
    if (started == ABSENT).any():
        unordered = int(((sequence == ABSENT) & (started == ABSENT)).sum())
        if unordered:
            return None, "", f"{unordered:,} of {len(sequence):,} runs have neither sequence nor started_at"
        return None, "", "some runs have only a sequence and others only a started_at"
    if not np.diff(_sorted(started)).all():
        return None, "", "some runs share their started_at, and no sequence orders all of them"
    return started, "started_at", None


def _stretches(runs: dict[str, NDArray[Any]], cells: list[Cell]) -> tuple[Stretch, ...]:
    if (size := len(runs["cell"])) < STRETCHES:
        return ()
    number_of = Index()
    domain = np.array([number_of[cell.domain] if cell.split == Split.STANDARD else -1 for cell in cells])
    bounds = [size * i // STRETCHES for i in range(STRETCHES + 1)]
    return tuple(
        _stretch({name: column[start:stop] for name, column in runs.items()}, domain)
        for start, stop in pairwise(bounds)
    )


def _stretch(runs: dict[str, NDArray[Any]], domain: NDArray[np.int64]) -> Stretch:
    """Return the sums of runs; `domain` numbers the domain of each cell."""
    numerator = runs["numerator"].astype(np.int64)
    known = numerator >= 0
    numerator, steps = numerator[known], runs["steps"][known].astype(np.int64)
    fixed = (2 * numerator * PEI_SCALE + GAMMA_FIFTHS * steps) // (2 * GAMMA_FIFTHS * steps)
    irs = runs["irs"]
    met = np.unique(domain[runs["cell"]])
    return Stretch(
        runs=len(irs),
        failures=int((~runs["success"]).sum()),
        harness_errors=int(runs["harness"].sum()),
        pei_n=len(numerator),
        pei_fixed=int(fixed.sum()),
        pei_squares=_squares(fixed),
        irs_yes=int((irs == 1).sum()),
        irs_no=int((irs == 0).sum()),
        irs_silent=int((irs == -1).sum()),
        irs_incomplete=int((irs == -2).sum()),  # noqa: PLR2004 - see reduce
        domains_missing=int(domain.max()) + 1 - len(met),
    )


def _squares(values: NDArray[np.int64]) -> int:
    """Return Σx² of values up to 2^30 exactly, by halves of 15 bits: sums of squares would exceed 64 bits."""
    high, low = np.divmod(values, 2**15)
    return (int((high * high).sum()) << 30) + (int((high * low).sum()) << 16) + int((low * low).sum())


def _times(runs: dict[str, NDArray[Any]]) -> Times:
    started = runs["started"]
    timed = _sorted(started[started != ABSENT])
    if not len(timed):
        return Times()
    gaps = np.diff(timed)
    constant = int(gaps[0]) if len(gaps) > 1 and (gaps == gaps[0]).all() else None
    both = (runs["sequence"] != ABSENT) & (started != ABSENT)
    in_sequence = started[both][_order_of(runs["sequence"][both])]
    starts = timed[np.append(True, gaps != 0)]
    return Times(
        flash=int((np.searchsorted(starts, starts + FLASH) - np.arange(len(starts))).max()),
        timed=len(timed),
        first=int(timed[0]),
        last=int(timed[-1]),
        distinct=1 + int((gaps != 0).sum()),
        constant_interval=constant,
        backwards=int((np.diff(in_sequence) < 0).sum()),
    )
