"""From the record files of a bundle to its `Summary`.

Every record is validated before anything is counted: a bad record refuses the whole bundle, and its faults
are listed up to a limit. Partials are merged in the order of the files. Contradictions between records (an
id used twice, a task in two domains) are found by sorted 64-bit hashes and then confirmed by comparing the
names, so that a collision of hashes cannot refuse good evidence.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from certkit.evidence.bundle.calibration import drawn_runs, read_calibration
from certkit.evidence.reading import parquet, work
from certkit.evidence.reading.columns import ABSENT, Index
from certkit.evidence.reading.lines import repeated, split_lines, two_domains
from certkit.evidence.records.faults import Fault, Faults, RecordFaultsError
from certkit.evidence.records.record import Split
from certkit.evidence.summary.likeness import VALUES, likeness, name_hash
from certkit.evidence.summary.ordering import order
from certkit.evidence.summary.reduce import GROUP, LEAST, MOST, RUN, CellKey, Partial
from certkit.evidence.summary.summary import CLUSTER_FIELDS, Cell, Clusters, Summary, Tally
from certkit.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from certkit.evidence.bundle.calibration import Calibration
    from certkit.evidence.bundle.folder import Bundle
    from certkit.evidence.integrity.reading import Kept


COMPACT: Final = 1_000_000
"""Rows of groups that are collected before they are merged."""

LIKENESS: Final = ("print", "digits", "task")
"""Columns of `RUN` that only `likeness` reads."""

CONFIRM: Final = 100_000
"""Repeated hashes that are confirmed by name; where there are more, the first ones are."""


def summarise(bundle: Bundle, *, jobs: int | None = None, progress: Progress = SILENT) -> Summary:
    """Read and validate every record of `bundle` and reduce them to integer sums; read its ratings.

    `jobs` is the number of processes for large bundles (None: one per core); the result does not depend on
    it. Raises `RecordFaultsError` where any record is refused, and what `certkit.evidence.integrity.reading`
    raises.
    """
    merge = gathered(bundle, jobs=jobs, progress=progress)
    merge.forget_names()
    return msgspec.structs.replace(
        merge.summary(), calibration=calibration(bundle), integrity=_commitments(bundle)
    )


def _commitments(bundle: Bundle) -> Kept | None:
    """Return what lies under ``integrity/``, None where nothing does."""
    if not any(file["path"].startswith("integrity/") for file in bundle.files):
        return None
    from certkit.evidence.integrity.reading import read  # noqa: PLC0415 - few bundles hold any

    return read(bundle.root)


def gathered(bundle: Bundle, *, jobs: int | None = None, progress: Progress = SILENT) -> Merge:
    """Return the sums of the records of `bundle`, all valid, none repeated; raises as `summarise` does."""
    processes = (jobs or _cores()) if bundle.records_size >= work.WORTH_A_PROCESS else 1
    merge = Merge()
    faults = Faults()
    progress.start("reading records", bundle.records_size, "bytes")
    for path in bundle.record_files:
        line = 0
        for outcome in _outcomes(bundle, path, processes):
            for fault in outcome.faults:
                faults.add(msgspec.structs.replace(fault, file=path, line=fault.line + line))
            faults.total += outcome.total_faults - len(outcome.faults)
            line += outcome.lines
            if outcome.partial is not None and not faults:
                merge.add(outcome.partial)
            progress.advance(outcome.size)
    progress.finish()
    if faults:
        raise RecordFaultsError(faults, faults.total)
    sequence = merge.run("sequence")
    refuse_repetitions(record_lines(bundle), merge, repeated_values(sequence[sequence != ABSENT]))
    return merge


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _outcomes(bundle: Bundle, path: str, processes: int) -> Iterator[work.Outcome]:
    salt = bundle.manifest.protocol.salt
    if path.endswith(".parquet"):
        station = work.Station(salt)
        for block in parquet.lines(bundle.root / path, shown=path):
            yield station.read_data(block)
        yield station.finish()
    else:
        yield from work.run(work.pieces(bundle.root / path, salt=salt), processes=processes)


class Merge:
    """Adds up partials; every sum is an integer, so their order does not matter."""

    def __init__(self) -> None:
        self.cells: dict[CellKey, int] = {}
        self._tallies: list[list[int]] = []
        self._pei: list[dict[int, int]] = []
        self._pei25: list[dict[int, int]] = []
        self._groups: list[NDArray[np.void]] = []
        self._pending = 0
        self._runs: dict[str, list[NDArray[Any]]] = {name: [] for name in RUN.names or ()}
        self._unclustered = 0
        self._user_fields: set[str] = set()
        self._values: dict[str, set[int]] = {}
        self._spelled_alike = 0

    def add(self, partial: Partial) -> None:
        """Add the sums of some pieces."""
        keys = [(key[0], key[1], key[2]) for key in partial.cells]
        numbers = self._numbers(keys, partial.tallies, partial.pei_terms, partial.pei25_terms)
        runs = np.frombuffer(partial.runs, RUN)
        self._take(
            numbers,
            np.frombuffer(partial.groups, GROUP).copy(),
            {name: runs[name].copy() for name in self._runs},
            partial.user_fields,
            partial.values,
        )
        self._unclustered += partial.unclustered

    def absorb(self, source: Merge) -> None:
        """Add all sums of `source`, which must not be used afterwards."""
        numbers = self._numbers([*source.cells], source._tallies, source._pei, source._pei25)
        runs = {name: source.run(name) for name in self._runs}
        self._take(numbers, source.groups(), runs, source._user_fields, source._values)
        self._unclustered += source._unclustered

    def _numbers(
        self,
        keys: list[CellKey],
        tallies: list[list[int]],
        pei: list[dict[int, int]],
        pei25: list[dict[int, int]],
    ) -> NDArray[np.int32]:
        """Add the sums of cells; return the numbers that the cells have in this merge."""
        numbers = [self._number(key) for key in keys]
        for number, tally, terms, terms25 in zip(numbers, tallies, pei, pei25, strict=True):
            self._tallies[number] = [a + b for a, b in zip(self._tallies[number], tally, strict=True)]
            _add_terms(self._pei[number], terms)
            _add_terms(self._pei25[number], terms25)
        return np.array(numbers, np.int32)

    def _take(
        self,
        numbers: NDArray[np.int32],
        groups: NDArray[np.void],
        runs: dict[str, NDArray[Any]],
        user_fields: Iterable[str],
        values: Mapping[str, Iterable[int]],
    ) -> None:
        """Take over arrays; `numbers` maps their cells to those of this merge."""
        if len(numbers):
            groups["cell"] = numbers[groups["cell"]]
            runs["cell"] = numbers[runs["cell"]]
        self._groups.append(groups)
        for name, parts in self._runs.items():
            parts.append(runs[name])
        self._pending += len(groups)
        self._user_fields.update(user_fields)
        for name, taken in values.items():
            if len(self._values.setdefault(name, set())) <= VALUES:
                self._values[name].update(taken)
        if self._pending >= COMPACT:
            self._compact()

    def _number(self, key: CellKey) -> int:
        if key not in self.cells:
            self.cells[key] = len(self.cells)
            self._tallies.append([0] * len(Tally.__struct_fields__))
            self._pei.append({})
            self._pei25.append({})
        return self.cells[key]

    def _compact(self) -> None:
        self._groups = [merge_groups(np.concatenate(self._groups))] if self._groups else []
        self._pending = 0

    def run(self, name: str) -> NDArray[Any]:
        """Return one column of `RUN` over all runs, in no particular order but the same for every column."""
        parts = self._runs[name]
        # Joined column by column, so that the whole table is never in memory twice.
        if len(parts) != 1:
            self._runs[name] = parts = [np.concatenate(parts) if parts else np.empty(0, RUN[name])]
        return parts[0]

    def put(self, name: str, column: NDArray[Any]) -> None:
        """Replace a column over all runs."""
        self._runs[name] = [column]

    def forget_names(self) -> None:
        """Free the hashes of run ids, which only the search for repetitions and alike names needs."""
        names, spellings = self.run("run_id"), self.run("spelling")
        if not np.array_equal(names, spellings):
            self._spelled_alike = len(names) - len(np.unique(spellings))
        del self._runs["run_id"], self._runs["spelling"]

    def groups(self) -> NDArray[np.void]:
        """Return the merged groups; ``cell`` holds the numbers of `cells`."""
        self._compact()
        return self._groups[0] if self._groups else np.empty(0, GROUP)

    def summary(self, *, unordered: str | None = None) -> Summary:
        """Return the summary with sorted cells; `unordered` is a reason why the runs have no order."""
        keys = sorted(self.cells)
        cells = []
        for key in keys:
            number = self.cells[key]
            cells.append(
                Cell(
                    split=Split(key[0]),
                    domain=key[1],
                    condition=key[2],
                    tally=Tally(**dict(zip(Tally.__struct_fields__, self._tallies[number], strict=True))),
                    pei_terms=dict(sorted(self._pei[number].items())),
                    pei25_terms=dict(sorted(self._pei25[number].items())),
                )
            )
        place = np.empty(len(keys), np.int32)
        place[[self.cells[key] for key in keys]] = np.arange(len(keys))
        alike = likeness({name: self.run(name) for name in LIKENESS}, self.groups(), self._values)
        groups, joined = join(self.groups())
        by_place = np.lexsort((groups["task"], groups["cluster"], place[groups["cell"]]))
        groups = groups[by_place]
        groups["cell"] = place[groups["cell"]]
        runs = {name: self.run(name) for name in self._runs if name not in LIKENESS}
        runs["cell"] = place[runs["cell"]]
        records = len(runs["cell"])
        window, times = order(runs, cells, unordered=unordered)
        return Summary(
            records=records,
            cells=tuple(cells),
            clusters=Clusters(
                cell=groups["cell"].astype(np.int32),
                cluster=groups["cluster"].astype(np.uint64),
                task=groups["task"].astype(np.uint64),
                tag=groups["tag"],
                sums={name: groups[name].astype(np.int64) for name in CLUSTER_FIELDS},
            ),
            window=window,
            times=times,
            joined=joined,
            unclustered=self._unclustered,
            user_fields=tuple(sorted(self._user_fields)),
            likeness=msgspec.structs.replace(alike, runs_spelled_alike=self._spelled_alike),
        )


def _add_terms(into: dict[int, int], terms: dict[int, int]) -> None:
    for steps, numerator in terms.items():
        into[steps] = into.get(steps, 0) + numerator


def merge_groups(rows: NDArray[np.void]) -> NDArray[np.void]:
    """Add up rows of the same cell, cluster and task."""
    if not len(rows):
        return rows
    by = np.lexsort((rows["task"], rows["cluster"], rows["cell"]))
    rows = rows[by]
    new = np.ones(len(rows), np.bool_)
    new[1:] = (
        (rows["cell"][1:] != rows["cell"][:-1])
        | (rows["cluster"][1:] != rows["cluster"][:-1])
        | (rows["task"][1:] != rows["task"][:-1])
    )
    starts = np.flatnonzero(new)
    merged = rows[starts].copy()
    for name in CLUSTER_FIELDS:
        merged[name] = np.add.reduceat(rows[name], starts)
    for names, extend in ((LEAST, np.minimum), (MOST, np.maximum)):
        for name in names:
            merged[name] = extend.reduceat(rows[name], starts)
    return merged


def join(rows: NDArray[np.void]) -> tuple[NDArray[np.void], int]:
    """Return the rows with clusters that share a task merged, and how many clusters were merged.

    Runs of a task are correlated, so that different values of `cluster_id` must not count as independent.
    """
    tasks, task = np.unique(rows["task"], return_inverse=True)
    names, cluster = np.unique(rows["cluster"], return_inverse=True)
    pairs = np.unique(np.stack([task, cluster]), axis=1)
    if pairs.shape[1] == len(tasks):
        return rows, 0
    from scipy.sparse import coo_array  # noqa: PLC0415 - heavy, and rarely needed
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 - the same

    size = len(names) + len(tasks)
    links = coo_array((np.ones(pairs.shape[1]), (pairs[1], len(names) + pairs[0])), shape=(size, size))
    count, part = connected_components(links, directed=False)
    least = np.full(count, np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(least, part[: len(names)], names)
    whole = rows.copy()
    whole["cluster"] = least[part[cluster]]
    first = np.unique(rows["cluster"], return_index=True)[1]
    whole["tag"] = rows["tag"][first[np.searchsorted(names, whole["cluster"])]]
    return merge_groups(whole), len(names) - len(np.unique(whole["cluster"]))


def repeated_values(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the values that occur more than once, sorted."""
    ordered = np.sort(values)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def refuse_repetitions(
    lines: Iterable[tuple[str, int, bytes]], merge: Merge, sequences: NDArray[np.generic]
) -> None:
    """Raise `RecordFaultsError` where a run id or one of `sequences` occurs twice, or a task in two domains.

    `lines` are the lines of the merged records with file and number; they are read only where hashes repeat.
    """
    groups = merge.groups()
    run_hashes = repeated_values(merge.run("run_id"))
    domain_of_cell = {number: domain for (_, domain, _condition), number in merge.cells.items()}
    number_of = Index()
    numbers = np.array([number_of[domain_of_cell[i]] for i in range(len(domain_of_cell))], np.int32)
    pairs = np.unique(np.stack([groups["task"], numbers[groups["cell"]].astype(np.uint64)]), axis=1)
    faults = Faults()
    for fault in repetitions(lines, run_hashes, sequences, repeated_values(pairs[0])):
        faults.add(fault)
    if faults:
        raise RecordFaultsError(faults, faults.total)


def calibration(bundle: Bundle) -> Calibration | None:
    """Return the ratings of `bundle`, with domain and condition of the runs among its items.

    Whether a person labelled the runs that the hash draws is found on the way.
    """
    found = read_calibration(bundle)
    if found is None:
        return None
    decoder, wanted = msgspec.json.Decoder(_Named), set(found.items)
    ids, runs = [], {}
    for *_, line in record_lines(bundle):
        record = decoder.decode(line)
        ids.append(record.run_id)
        if record.run_id in wanted:
            runs[record.run_id] = record
    labelled = found.labelled
    return msgspec.structs.replace(
        found,
        domains=tuple(
            runs[item].domain if item in runs else domain
            for item, domain in zip(found.items, found.domains, strict=True)
        ),
        conditions=tuple(runs[item].condition if item in runs else None for item in found.items),
        drawn=set(labelled) == set(drawn_runs(ids, len(labelled))),
    )


def to_label(bundle: Bundle, m: int) -> tuple[str, ...]:
    """Return the ids of the `m` runs of `bundle` that a person labels to calibrate a judge."""
    decoder = msgspec.json.Decoder(_Named)
    return drawn_runs((decoder.decode(line).run_id for *_, line in record_lines(bundle)), m)


class _Named(msgspec.Struct):
    run_id: str
    domain: str
    task_id: str
    condition: str
    sequence: int | float | None = None


def repetitions(
    lines: Iterable[tuple[str, int, bytes]],
    run_hashes: NDArray[np.generic],
    sequences: NDArray[np.generic],
    task_hashes: NDArray[np.generic],
) -> Iterator[Fault]:
    """Yield a fault for every name that repeats among the suspects, comparing the names themselves.

    `lines` are (file, number, record); they are read only if there is a suspect.
    """
    suspects = [set(values[:CONFIRM].tolist()) for values in (run_hashes, sequences, task_hashes)]
    if not any(suspects):
        return
    runs, ordered, tasks = suspects
    decoder = msgspec.json.Decoder(_Named)
    places: dict[tuple[str, str | int], str] = {}
    homes: dict[str, tuple[str, str]] = {}
    for path, number, line in lines:
        record = decoder.decode(line)
        place = f"{path}:{number}" if path else f"line {number}"
        names: list[tuple[str, str | int]] = []
        if name_hash(record.run_id) in runs:
            names.append(("run_id", record.run_id))
        if record.sequence is not None and record.sequence in ordered:
            names.append(("sequence", int(record.sequence)))
        for key in names:
            if key in places:
                yield msgspec.structs.replace(repeated(number, *key, places[key]), file=path)
            places.setdefault(key, place)
        if name_hash(record.task_id) in tasks:
            domain, first = homes.setdefault(record.task_id, (record.domain, place))
            if domain != record.domain:
                fault = two_domains(number, record.task_id, domain, record.domain, first)
                yield msgspec.structs.replace(fault, file=path)


def record_lines(bundle: Bundle) -> Iterator[tuple[str, int, bytes]]:
    """Yield every line of every record file, with the path of the file and the number of the line from 1."""
    for path in bundle.record_files:
        number = 0
        for block in _blocks(bundle, path):
            for line in split_lines(block):
                number += 1
                yield path, number, line


def _blocks(bundle: Bundle, path: str) -> Iterator[bytes]:
    if path.endswith(".parquet"):
        yield from parquet.lines(bundle.root / path, shown=path)
        return
    for piece in work.pieces(bundle.root / path):
        with (bundle.root / path).open("rb") as stream:
            stream.seek(piece.offset)
            yield stream.read(piece.size)
