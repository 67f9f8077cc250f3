"""From columns of records to integer sums; `terms` computes what each run adds.

`reduce` gives the `Sums` of a block of records. They add up to the same summary in any order and with any
number of processes, because every sum is an integer.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from certkit.evidence.reading.columns import ABSENT, Index
from certkit.evidence.records.record import Split
from certkit.evidence.summary.likeness import digits, name_hash, prints, sampled, spelled, stems
from certkit.evidence.summary.summary import CLUSTER_FIELDS, TALLY_FIELDS
from certkit.evidence.summary.terms import Terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from certkit.evidence.reading.columns import Columns

    Integers = NDArray[np.int64]
    Booleans = NDArray[np.bool_]

EXACT_DOUBLE: Final = 2**53
CellKey = tuple[str, str, str]
"""(split, domain, condition)"""


class Sums(Struct, kw_only=True, eq=False):
    """The sums of some records.

    `tallies` has a row per cell and a column per tally field. `terms` maps (number of a cell, steps_actual)
    to the numerators of PEI and of PEI 2025. `groups` is of dtype `GROUP`. `runs` holds the columns of
    `RUN`, in the order of the lines. `unclustered` counts records without a cluster_id. `values` is what
    `likeness.sampled` collects.
    """

    cells: list[CellKey]
    tallies: NDArray[Any]
    terms: dict[tuple[int, int], tuple[int, int]]
    groups: NDArray[np.void]
    runs: dict[str, NDArray[Any]]
    unclustered: int
    user_fields: frozenset[str]
    values: dict[str, set[int]]


TAG_BYTES: Final = 9
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
    "digits": np.uint32,
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
    cells, groups = Index(), Index()
    split = columns.text("split")
    keys = zip(
        [value or Split.STANDARD.value for value in split],
        columns.text("domain"),
        columns.text("condition"),
        columns.text("cluster_id"),
        columns.text("task_id"),
        strict=True,
    )
    group = np.fromiter(map(groups.__getitem__, keys), np.int64, columns.size)
    cell_of = np.array([cells[key[:3]] for key in groups], np.int64)
    cell = cell_of[group]
    terms = Terms(columns)
    sums = terms.sums()
    tallies = np.stack([_sum(cell, sums[name], len(cells)) for name in TALLY_FIELDS], axis=1)
    table = _table([(cluster or task, task) for *_, cluster, task in groups], salt)
    table["cell"] = cell_of
    for name in CLUSTER_FIELDS:
        table[name] = _sum(group, sums[name], len(groups))
    for name, field, extend, start in EXTREMES:
        table[name] = start
        if columns.has(field):
            values = columns.integer(field)
            known = values != ABSENT
            extend.at(table[name], group[known], values[known])
    alone = np.array([not cluster for *_, cluster, _task in groups], np.bool_)
    return Sums(
        cells=list(cells),
        tallies=tallies,
        terms=_by_steps(cell, terms),
        groups=table,
        runs=_runs(columns, cell, table["task"][group], terms),
        unclustered=int(table["runs"][alone].sum()),
        user_fields=columns.user_fields,
        values=sampled(columns),
    )


def _table(names: Sequence[tuple[str, str]], salt: bytes | None) -> NDArray[np.void]:
    """Return rows of `GROUP` with the hashes of the names of clusters and tasks."""
    table = np.zeros(len(names), GROUP)
    clusters, tasks = [cluster for cluster, _ in names], [task for _, task in names]
    table["cluster"], table["task"] = _hashes(clusters), _hashes(tasks)
    table["spelling"] = table["task"]
    if (skeletons := spelled(tasks)) is not tasks:
        table["spelling"] = _hashes(skeletons)
    parts = stems(tasks)
    known = {stem: name_hash(stem) for stem in set(parts)}
    table["stem"] = [known[stem] for stem in parts]
    if salt is not None:
        tags = {cluster: tag(salt, cluster) for cluster in set(clusters)}
        table["tag"] = [tags[cluster] for cluster in clusters]
    return table


def _hashes(names: Sequence[str]) -> NDArray[np.uint64]:
    return np.array([name_hash(name) for name in names], np.uint64)


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
    names = columns.text("run_id")
    hashes, skeletons = _hashes(names), spelled(names)
    runs = {
        "run_id": hashes,
        "spelling": hashes if skeletons is names else _hashes(skeletons),
        "task": task,
        "print": prints(columns),
        "digits": digits(columns),
        "sequence": columns.integer("sequence"),
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
