"""From columns of records to partial sums, which add up in any order.

`reduce` gives the `Partial` of a block of records, `merge` adds any number of them. Every sum is an integer,
so that blocks, processes and their order change nothing. What is no sum is kept for each run (`RUN`): names
that must not repeat, times, and what the runs in order of time are needed for.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from certkit.record.columns import ABSENT, Index, name_hashes
from certkit.record.record import Split
from certkit.summary.summary import COUNTS
from certkit.summary.terms import EFFECTS, RunTerms, run_hashes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.record.columns import Columns

    Integers = NDArray[np.int64]
    Booleans = NDArray[np.bool_]

TAG_BYTES: Final = 9
"""Of the tag by which a passport names a task."""
CellKey = tuple[str, str, str, str]
"""Split, domain, condition, effect."""
BY_TASK: Final = (
    "runs",
    "success",
    "safe_halt",
    "harness_error",
    "frr_n",
    "frr_tenths",
    "pei_n",
    "pei_fixed",
    "irs_yes",
    "irs_no",
    "irs_silent",
    "ti_n",
    "ti_thousandths",
    "violations_n",
    "violations",
    "violations_capped",
    "landed",
    "landed_success",
    "landed_unsaid",
    "landed_known",
    "landed_won",
    "landed_unknown_harness",
    "attack_known",
    "attack_succeeded",
    "success_with_attack",
    "frr25_n",
    "frr25_halves",
    "pei25_n",
    "pei25_fixed",
    "halt_due",
    "halt_missed",
)
"""The `COUNTS` that are summed by task, since series are made of them."""
GROUP: Final = np.dtype(
    [
        ("cell", "<i4"),
        ("cluster", "<u8"),  # hash of the cluster_id, of the task_id where there is none
        ("task", "<u8"),  # hash of the task_id
        ("tag", f"V{TAG_BYTES}"),  # of the cluster
        ("oracle_low", "<i8"),  # least steps_oracle
        ("oracle_high", "<i8"),  # largest steps_oracle
        *((name, "<i8") for name in BY_TASK),
    ]
)
"""A row for each cell, cluster and task."""
KEY: Final = ("task", "cluster", "cell")
"""Columns of `GROUP` in which no two rows are equal."""
EXTREMES: Final = (("oracle_low", np.minimum, -ABSENT), ("oracle_high", np.maximum, ABSENT))
"""Columns of `GROUP` that are no sums: how they merge, and their value without any `steps_oracle`."""
RUN: Final = {
    "run_id": np.uint64,  # hash
    "task": np.uint64,  # hash
    "print": np.uint64,  # see `terms.run_hashes`
    "sequence": np.int64,
    "started": np.int64,  # microseconds since 1970
    "cell": np.int32,
    "numerator": np.int32,  # of PEI, −1 not measured
    "steps": np.int32,  # steps_actual
    "irs": np.int8,  # see `RunTerms.irs`
    "success": np.bool_,
}
"""What is kept of each run."""
EXACT_DOUBLE: Final = 2**53
_WIDE: Final = 2**62


class Partial(Struct, frozen=True, kw_only=True, eq=False):
    """The sums of some records.

    Attributes:
        cells: what the numbers of cells mean.
        counts: a row for each cell and a column for each of `COUNTS`, as Python's integers.
        terms: by number of a cell and steps_actual, the numerators of PEI and of [25] eq. 3.
        groups: rows of `GROUP`.
        runs: by name of `RUN`, arrays that make up a column one after another.
        unclustered: records without a `cluster_id`.
    """

    cells: tuple[CellKey, ...]
    counts: NDArray[np.object_]
    terms: dict[tuple[int, int], tuple[int, int]]
    groups: NDArray[np.void]
    runs: dict[str, tuple[NDArray[Any], ...]]
    unclustered: int

    def column(self, name: str) -> NDArray[Any]:
        """Return a column of `RUN` over all runs, in no particular order but the same for every column."""
        parts = self.runs[name]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, RUN[name]), *parts])

    def count(self, name: str) -> int:
        """Return one of `COUNTS` over all runs."""
        return int(self.counts[:, list(COUNTS).index(name)].sum())

    @property
    def records(self) -> int:
        """The number of records."""
        return sum(len(part) for part in self.runs["cell"])


def tag(salt: bytes, name: str) -> bytes:
    """Return what a passport calls a task or cluster: only who has the salt can tell its name."""
    return hmac.digest(salt, name.encode(), hashlib.sha256)[:TAG_BYTES]


def reduce(columns: Columns, salt: bytes | None = None) -> Partial:
    """Return the sums of a block of records. Without a `salt` every tag is zeros."""
    novel = columns.equals("split", Split.NOVEL_FAULT)
    terms = RunTerms(columns)
    kinds = novel * len(EFFECTS) + terms.effect
    cell, first_of_cell = _grouped(columns, kinds, 2 * len(EFFECTS), ("domain", "condition"))
    group, first = _grouped(columns, cell, len(first_of_cell), ("cluster_id", "task_id"))
    domain, condition = (_values(columns, name, first_of_cell) for name in ("domain", "condition"))
    split = [str(Split.NOVEL_FAULT if value else Split.STANDARD) for value in novel[first_of_cell].tolist()]
    effect = [str(EFFECTS[value]) for value in terms.effect[first_of_cell].tolist()]
    table, alone = _table(columns, first, salt)
    table["cell"] = cell[first]
    counts = np.zeros((len(first_of_cell), len(COUNTS)), object)
    arrays = terms.counts()
    for place, name in enumerate(COUNTS):
        if name in BY_TASK:
            table[name] = total(group, arrays[name], len(first))
            counts[:, place] = total(table["cell"], table[name], len(first_of_cell))
        else:
            counts[:, place] = total(cell, arrays[name], len(first_of_cell))
    oracle, stated = columns.number("steps_oracle"), columns.present("steps_oracle")
    for name, extend, start in EXTREMES:
        extreme = np.full(len(first), start)
        extend.at(extreme, group[stated], oracle[stated])
        table[name] = extreme
    return Partial(
        cells=tuple(zip(split, domain, condition, effect, strict=True)),
        counts=counts,
        terms=_by_steps(cell, terms),
        groups=table,
        runs=_runs(columns, cell, table["task"][group], terms),
        unclustered=int(table["runs"][alone].sum()),
    )


def _values(columns: Columns, name: str, rows: NDArray[np.intp]) -> list[str]:
    codes, index = columns.coded(name)
    names = list(index)
    return [names[code] for code in codes[rows].tolist()]


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
    table["task"] = name_hashes(tasks)[task]
    table["cluster"] = np.where(alone, table["task"], name_hashes(clusters)[cluster])
    if salt is not None:
        for rows, place, names in ((alone, task, tasks), (~alone, cluster, clusters)):
            if rows.any():
                tags = np.array([tag(salt, name) for name in names], f"V{TAG_BYTES}")
                table["tag"][rows] = tags[place[rows]]
    return table, alone


def total(index: Integers, values: NDArray[Any], size: int) -> Integers:
    """Return at each place below `size` the sum of the non-negative values whose index it is."""
    if not values.any():
        return np.zeros(size, np.int64)  # most producers never write most fields
    if values.dtype != np.bool_ and int(values.max()) * len(values) >= EXACT_DOUBLE:
        sums = np.zeros(size, np.int64)
        np.add.at(sums, index, values)
        return sums
    # bincount is much faster and adds in doubles, which is exact below 2^53.
    return np.bincount(index, weights=values, minlength=size).astype(np.int64)


def _runs(
    columns: Columns, cell: Integers, task: NDArray[np.uint64], terms: RunTerms
) -> dict[str, tuple[NDArray[Any], ...]]:
    runs = {
        "run_id": columns.run_ids,
        "task": task,
        "print": run_hashes(columns, task),
        "sequence": columns.number("sequence"),
        "started": columns.microseconds(),
        "cell": cell,
        "numerator": np.where(terms.pei_known, terms.numerator, -1),
        "steps": np.where(terms.pei_known, terms.steps, 1),
        "irs": terms.irs,
        "success": columns.success,
    }
    return {name: (runs[name].astype(kind, copy=False),) for name, kind in RUN.items()}


def _by_steps(cell: Integers, terms: RunTerms) -> dict[tuple[int, int], tuple[int, int]]:
    """Return for (cell, steps_actual) the sums of both numerators over the cell's runs of that length."""
    known = terms.pei_known | terms.pei25_known
    if not known.any():
        return {}
    cell, steps = cell[known], terms.steps[known]
    width = int(steps.max()) + 1
    places, index = np.unique(cell * width + steps, return_inverse=True)
    pei, pei25 = (total(index, n[known], len(places)) for n in (terms.numerator, terms.numerator25))
    return {
        divmod(place, width): (first, second)
        for place, first, second in zip(places.tolist(), pei.tolist(), pei25.tolist(), strict=True)
    }


def merge(*parts: Partial) -> Partial:
    """Return the sum of partial sums; their order does not matter, and no part is changed."""
    if len(parts) == 1:
        return parts[0]
    cells = Index()
    numbers = [np.array([cells[key] for key in part.cells], np.int32) for part in parts]
    counts = np.zeros((len(cells), len(COUNTS)), object)
    terms: dict[tuple[int, int], tuple[int, int]] = {}
    for part, number in zip(parts, numbers, strict=True):
        counts[number] += part.counts
        for (cell, steps), (pei, pei25) in part.terms.items():
            key = (int(number[cell]), steps)
            before = terms.get(key, (0, 0))
            terms[key] = (before[0] + pei, before[1] + pei25)
    groups = np.concatenate([np.empty(0, GROUP), *(part.groups for part in parts)])
    at = 0
    for part, number in zip(parts, numbers, strict=True):
        groups["cell"][at : at + len(part.groups)] = number[part.groups["cell"]]
        at += len(part.groups)
    runs = {name: tuple(array for part in parts for array in part.runs[name]) for name in RUN}
    runs["cell"] = tuple(
        number[array] for part, number in zip(parts, numbers, strict=True) for array in part.runs["cell"]
    )
    return Partial(
        cells=tuple(cells),
        counts=counts,
        terms=terms,
        groups=merge_groups(groups),
        runs=runs,
        unclustered=sum(part.unclustered for part in parts),
    )


def merge_groups(rows: NDArray[np.void]) -> NDArray[np.void]:
    """Add up rows of the same cell, cluster and task."""
    if not len(rows):
        return rows
    rows = rows[np.lexsort([rows[name] for name in KEY])]
    starts = np.flatnonzero(np.any([changes(rows[name]) for name in KEY], axis=0))
    merged = rows[starts].copy()
    for name in BY_TASK:
        merged[name] = np.add.reduceat(rows[name], starts)
    for name, extend, _ in EXTREMES:
        merged[name] = extend.reduceat(rows[name], starts)
    return merged


def changes(values: NDArray[Any]) -> Booleans:
    """Tell at each place whether the value differs from the one before; the first does."""
    new = np.ones(len(values), np.bool_)
    new[1:] = values[1:] != values[:-1]
    return new


def join(rows: NDArray[np.void]) -> NDArray[np.void]:
    """Return the rows with clusters that share a task joined, under the least of their hashes.

    Runs of a task are correlated, so that different values of `cluster_id` must not count as independent.
    """
    tasks, task = np.unique(rows["task"], return_inverse=True)
    names, cluster = np.unique(rows["cluster"], return_inverse=True)
    pairs = np.unique(task * len(names) + cluster)
    if len(pairs) == len(tasks):
        return rows
    from scipy.sparse import coo_array  # noqa: PLC0415 - heavy, and rarely needed
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 - the same

    size = len(names) + len(tasks)
    task_of, cluster_of = np.divmod(pairs, len(names))
    links = coo_array((np.ones(len(pairs)), (cluster_of, len(names) + task_of)), shape=(size, size))
    count, part = connected_components(links, directed=False)
    least = np.full(count, np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(least, part[: len(names)], names)
    joined = rows.copy()
    joined["cluster"] = least[part[cluster]]
    first = np.unique(rows["cluster"], return_index=True)[1]
    joined["tag"] = rows["tag"][first[np.searchsorted(names, joined["cluster"])]]
    return merge_groups(joined)
