"""From columns of records to integer sums; `terms` computes what each run adds.

A `Reducer` adds up blocks of records and hands over a `Partial`. Partials merge to the same summary in any
order and with any number of processes, because every sum is an integer.
"""

from __future__ import annotations

import hashlib
import hmac
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xxhash
from msgspec import Struct

from certkit.evidence.reading.columns import ABSENT, Index
from certkit.evidence.records.record import Split
from certkit.evidence.summary.likeness import (
    digits,
    name_hash,
    prints,
    sampled,
    spelled,
    stems,
)
from certkit.evidence.summary.summary import CLUSTER_FIELDS, TALLY_FIELDS
from certkit.evidence.summary.terms import Terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certkit.evidence.reading.columns import Columns

    Integers = NDArray[np.int64]
    Booleans = NDArray[np.bool_]

EXACT_DOUBLE: Final = 2**53
CellKey = tuple[str, str, str]
"""(split, domain, condition)"""


class Partial(Struct, kw_only=True):
    """The sums of some records. Arrays travel between processes as the bytes of their elements."""

    cells: list[CellKey]
    tallies: list[list[int]]  # per cell, in the order of TALLY_FIELDS
    pei_terms: list[dict[int, int]]  # per cell
    pei25_terms: list[dict[int, int]]
    groups: bytes  # structured array GROUP
    runs: bytes  # structured array RUN, in the order of the lines
    unclustered: int  # records without a cluster_id
    user_fields: list[str]
    values: dict[str, list[int]]  # of scores, see `likeness.sampled`


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

LEAST: Final = ("oracle_low",)
MOST: Final = ("oracle_high", "trial")
"""Columns of `GROUP` that are merged as the least or the largest; `CLUSTER_FIELDS` are added."""

RUN: Final = np.dtype(
    [
        ("run_id", "<u8"),  # hash
        ("spelling", "<u8"),  # hash of the skeleton of run_id
        ("task", "<u8"),  # hash
        ("print", "<u8"),  # see `likeness`
        ("digits", "<u4"),
        ("sequence", "<i8"),
        ("started", "<i8"),  # microseconds
        ("cell", "<i4"),
        ("numerator", "<i4"),  # of PEI; −1 not measured
        ("steps", "<i4"),  # steps_actual
        ("irs", "<i1"),
        ("success", "?"),
        ("harness", "?"),
    ]
)
"""A row per record: the names that must not repeat, and the fields that CSI needs in order."""

_STANDARD: Final = Split.STANDARD.value
_NO_LEAST: Final = -ABSENT


def tag(salt: bytes, name: str) -> bytes:
    """Return what a passport calls a task or cluster: only who has the salt can tell its name."""
    return hmac.digest(salt, name.encode(), hashlib.sha256)[:TAG_BYTES]


class Reducer:
    """Adds up the columns of any number of blocks; `take` returns the sums and starts again from zero.

    Without a `salt` every tag is zeros.
    """

    def __init__(self, salt: bytes | None = None) -> None:
        self.salt = salt
        self._begin()

    def _begin(self) -> None:
        self._cells, self._groups = Index(), Index()
        self._cell_of: list[int] = []  # group → cell
        self._tallies = np.zeros((0, len(TALLY_FIELDS)), np.int64)
        self._sums = np.zeros((0, len(CLUSTER_FIELDS)), np.int64)
        self._terms: dict[tuple[int, int], int] = {}
        self._terms25: dict[tuple[int, int], int] = {}
        self._extremes = {name: np.zeros(0, np.int64) for name in (*LEAST, *MOST)}
        self._group_of: list[Integers] = []  # of the records of each block
        self._runs: list[NDArray[np.void]] = []
        self._values: dict[str, set[int]] = {}
        self._user_fields: set[str] = set()

    @property
    def groups(self) -> int:
        """How many groups the sums have."""
        return len(self._groups)

    @property
    def records(self) -> int:
        """How many records were added since the last `take`."""
        return sum(len(runs) for runs in self._runs)

    def add(self, columns: Columns) -> None:
        """Add the records of one block."""
        cell, group = self._indices(columns)
        terms = Terms(columns)
        sums = terms.sums()
        self._tallies = _grown(self._tallies, len(self._cells))
        self._sums = _grown(self._sums, len(self._groups))
        _add_rows(self._tallies, cell, [sums[name] for name in TALLY_FIELDS])
        _add_rows(self._sums, group, [sums[name] for name in CLUSTER_FIELDS])
        _add_by_steps(self._terms, cell, terms.steps, terms.numerator, terms.pei_known)
        _add_by_steps(self._terms25, cell, terms.steps, terms.numerator25, terms.pei25_known)
        self._extend(columns, group)
        self._group_of.append(group)
        self._runs.append(_runs(columns, cell, terms))
        sampled(columns, self._values)
        self._user_fields |= columns.user_fields

    def _extend(self, columns: Columns, group: Integers) -> None:
        """Extend the extremes of the groups to the records of a block."""
        for name, column in self._extremes.items():
            start = _NO_LEAST if name in LEAST else ABSENT
            self._extremes[name] = np.append(column, np.full(len(self._groups) - len(column), start))
        for fields, extend in ((LEAST, np.minimum), (MOST, np.maximum)):
            for name in fields:
                field = "trial" if name == "trial" else "steps_oracle"
                if columns.has(field):
                    values = columns.integer(field)
                    known = values != ABSENT
                    extend.at(self._extremes[name], group[known], values[known])

    def _indices(self, columns: Columns) -> tuple[Integers, Integers]:
        """Return for each record the number of its cell and of its group."""
        split = columns.text("split")
        splits = [value or _STANDARD for value in split] if any(split) else (_STANDARD,) * columns.size
        keys = zip(
            splits,
            columns.text("domain"),
            columns.text("condition"),
            columns.text("cluster_id"),
            columns.text("task_id"),
            strict=True,
        )
        group = np.fromiter(map(self._groups.__getitem__, keys), np.int64, columns.size)
        for key in islice(self._groups, len(self._cell_of), None):
            self._cell_of.append(self._cells[key[:3]])
        return np.array(self._cell_of, np.int64)[group], group

    def take(self) -> Partial:
        """Return the sums so far, and start again from zero."""
        table = np.zeros(len(self._groups), GROUP)
        table["cell"] = self._cell_of
        tasks = [task for *_, task in self._groups]
        table["task"] = [name_hash(task) for task in tasks]
        table["spelling"] = table["task"]
        if (skeletons := spelled(tasks)) is not tasks:
            table["spelling"] = [name_hash(name) for name in skeletons]
        known: dict[str, int] = {}
        table["stem"] = [
            known[stem] if stem in known else known.setdefault(stem, name_hash(stem)) for stem in stems(tasks)
        ]
        for name, extremes in self._extremes.items():
            table[name] = extremes
        table["cluster"] = [name_hash(cluster or task) for *_, cluster, task in self._groups]
        if self.salt is not None:
            names = {cluster or task for *_, cluster, task in self._groups}
            tags = {name: tag(self.salt, name) for name in names}
            table["tag"] = [tags[cluster or task] for *_, cluster, task in self._groups]
        for column, name in enumerate(CLUSTER_FIELDS):
            table[name] = self._sums[: len(self._groups), column]
        runs = np.concatenate(self._runs) if self._runs else np.zeros(0, RUN)
        if self._group_of:
            runs["task"] = table["task"][np.concatenate(self._group_of)]
        partial = Partial(
            cells=list(self._cells),
            tallies=self._tallies[: len(self._cells)].tolist(),
            pei_terms=_of_cells(self._terms, len(self._cells)),
            pei25_terms=_of_cells(self._terms25, len(self._cells)),
            groups=table.tobytes(),
            runs=runs.tobytes(),
            unclustered=self._unclustered(),
            user_fields=sorted(self._user_fields),
            values={name: sorted(taken) for name, taken in self._values.items()},
        )
        self._begin()
        return partial

    def _unclustered(self) -> int:
        runs = self._sums[: len(self._groups), CLUSTER_FIELDS.index("runs")].tolist()
        return sum(n for (*_, cluster, _task), n in zip(self._groups, runs, strict=True) if not cluster)


def _grown(table: Integers, rows: int) -> Integers:
    """Return `table` with room for `rows` rows; grows by half, so that growing stays cheap."""
    if rows <= len(table):
        return table
    return np.concatenate([table, np.zeros((rows + rows // 2 - len(table), table.shape[1]), np.int64)])


def _add_rows(table: Integers, index: Integers, columns: list[NDArray[Any]]) -> None:
    """Add to row index[i] of `table` the i-th value of each column."""
    rows, place = np.unique(index, return_inverse=True)
    for column, values in enumerate(columns):
        # Most producers never write most fields, and adding zeros takes time too.
        if values.any():
            table[rows, column] += _sum(place, values, len(rows))


def _sum(index: Integers, values: NDArray[Any], size: int) -> Integers:
    if values.dtype != np.bool_ and len(values) and int(values.max()) * len(values) >= EXACT_DOUBLE:
        total = np.zeros(size, np.int64)
        np.add.at(total, index, values)
        return total
    # bincount is much faster and adds in doubles, which is exact below 2^53.
    return np.bincount(index, weights=values, minlength=size).astype(np.int64)


def _runs(columns: Columns, cell: Integers, terms: Terms) -> NDArray[Any]:
    table = np.zeros(columns.size, RUN)
    digest = xxhash.xxh3_64_intdigest
    names = columns.text("run_id")
    table["run_id"] = [digest(name.encode()) for name in names]
    table["spelling"] = table["run_id"]
    if (skeletons := spelled(names)) is not names:
        table["spelling"] = [digest(name.encode()) for name in skeletons]
    table["print"] = prints(columns)
    table["digits"] = digits(columns)
    table["sequence"] = columns.integer("sequence")
    table["started"] = columns.microseconds()
    table["cell"] = cell
    table["numerator"] = np.where(terms.pei_known, terms.numerator, -1)
    table["steps"] = np.where(terms.pei_known, terms.steps, 1)
    table["irs"] = terms.irs
    table["success"] = columns.success
    table["harness"] = columns.harness_error
    return table


def _add_by_steps(
    into: dict[tuple[int, int], int], cell: Integers, steps: Integers, numerator: Integers, known: Booleans
) -> None:
    """Add to (cell, steps_actual) the numerators of the cell's runs of that length."""
    if not known.any():
        return
    width = int(steps[known].max()) + 1
    places, index = np.unique(cell[known] * width + steps[known], return_inverse=True)
    totals = _sum(index, numerator[known], len(places))
    for place, total in zip(places.tolist(), totals.tolist(), strict=True):
        key = divmod(place, width)
        into[key] = into.get(key, 0) + total


def _of_cells(terms: dict[tuple[int, int], int], size: int) -> list[dict[int, int]]:
    result: list[dict[int, int]] = [{} for _ in range(size)]
    for (cell, steps), total in terms.items():
        result[cell][steps] = total
    return result
