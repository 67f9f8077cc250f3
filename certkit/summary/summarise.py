"""From the record files of a bundle to its `Summary`.

Every record is validated before anything is counted: a bad record refuses the whole bundle, and its faults
are listed up to a limit. Partials are merged in the order of the files. Contradictions between records (an
id used twice, a task in two domains) are found by sorted 64-bit hashes and then confirmed by comparing the
names, so that a collision of hashes cannot refuse good evidence.
"""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from certkit.bundle.labels import label_order, read_calibration
from certkit.bundle.manifest import MANIFEST_NAME
from certkit.ground.errors import InputError
from certkit.ground.progress import SILENT, Progress
from certkit.record import trace as enclosed
from certkit.record.columns import ABSENT, Index, name_hash
from certkit.record.faults import Fault, Faults, RecordFaultsError
from certkit.record.reader import RecordReader, blocks, checked, split_lines
from certkit.record.record import Measured, Outcome, Split
from certkit.summary.likeness import (
    COLUMNAR,
    SCORES,
    Named,
    homes,
    likeness,
    named_alike,
    record_lines,
    refuse_repetitions,
    repeated_values,
    repetitions,
)
from certkit.summary.reduce import EXTREMES, GROUP, RUN, Sums, order, reduce
from certkit.summary.summary import (
    CLUSTER_FIELDS,
    TALLY_FIELDS,
    Cell,
    Clusters,
    Summary,
    Tally,
    Traces,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from certkit.bundle.folder import Bundle
    from certkit.bundle.labels import Calibration
    from certkit.probes.reading import Kept
    from certkit.record.columns import Columns


CHECKED: Final = 1024 * 1024
"""Bytes of records that an import checks at once: its memory counts more than its speed."""

COMPACT: Final = 1_000_000
"""Rows of groups that are collected before they are merged."""

KEY: Final = ("task", "cluster", "cell")
"""Columns of `GROUP` in which no two groups are the same."""

LIKENESS: Final = ("print", *SCORES, "task")
"""Columns of `RUN` that only `likeness` reads."""


def summarise(bundle: Bundle, *, progress: Progress = SILENT) -> Summary:
    """Read and validate every record of `bundle` and reduce them to integer sums; read its ratings.

    Raises `RecordFaultsError` where any record is refused, and what `certkit.probes.reading`
    raises.
    """
    merge = gathered(bundle, progress=progress)
    merge.forget_names()
    summary = merge.summary()
    return replace(
        summary,
        likeness=named_alike(summary.likeness, record_lines(bundle)),
        traces=traces(bundle, summary),
        calibration=calibration(summary, bundle),
        integrity=_commitments(bundle),
    )


def _commitments(bundle: Bundle) -> Kept | None:
    """Return what lies under ``integrity/``, None where nothing does; its run is of the bundle's agent."""
    if not any(file["path"].startswith("integrity/") for file in bundle.files):
        return None
    from certkit.probes.reading import read  # noqa: PLC0415 - few bundles hold any

    kept, agent, origin = read(bundle.root), bundle.manifest.agent, bundle.manifest.protocol.origin
    if (run := kept.run) is not None:
        asked = run.name, run.agent_version, "simulated" if run.agent.startswith("reference:") else origin
        stated = agent.name, agent.version, origin
        if asked != stated:
            message = f"run.json is of {', '.join(asked)}, and {MANIFEST_NAME} of {', '.join(stated)}"
            raise InputError("integrity.inventory", message, where=str(bundle.root))
    return kept


def gathered(bundle: Bundle, *, progress: Progress = SILENT) -> Merge:
    """Return the sums of the records of `bundle`, all valid, none repeated; raises as `summarise` does."""
    merge, faults = Merge(), Faults()
    progress.start("reading records", bundle.records_size, "bytes")
    for path in bundle.record_files:
        file = bundle.root / path
        reader = COLUMNAR.get(file.suffix)
        parts = reader.blocks(file, shown=path) if reader else blocks(file)
        for size in _read(parts, merge.add, faults, path, bundle.manifest.protocol.salt):
            progress.advance(size)
        if faults.cut:
            break
    progress.finish()
    if faults:
        raise RecordFaultsError(faults)
    refuse_repetitions(record_lines(bundle), merge, _repeated_sequences(merge.run("sequence")))
    return merge


def all_faults(path: Path, place: Callable[[int], tuple[str, int]]) -> Faults:
    """Return what is wrong with a record file; `place` gives the file and line that faults of a record name.

    Of the sums nothing but the names is kept: a million tasks would take a gigabyte.
    """
    faults, moved, domains = Faults(), Faults(), Index()
    names: list[tuple[NDArray[Any], ...]] = []

    def add(sums: Sums) -> None:
        runs = sums.runs
        names.append((runs["run_id"], runs["sequence"], homes(sums.groups, sums.cells, domains)))

    for _ in _read(blocks(path, CHECKED), add, faults):
        pass

    def move(fault: Fault) -> Fault:
        file, line = place(fault.line - 1)
        return replace(fault, file=file, line=line)

    if faults or not names:
        moved.add(faults, move)
        return moved
    with path.open("rb") as stream:
        lines = ((*place(index), line) for index, line in enumerate(stream))
        run_ids, sequences, placed = (np.concatenate(parts, axis=-1) for parts in zip(*names, strict=True))
        return Faults(repetitions(lines, run_ids, _repeated_sequences(sequences), placed))


def _read(
    parts: Iterable[Columns | bytes],
    add: Callable[[Sums], None],
    faults: Faults,
    path: str = "",
    salt: bytes | None = None,
) -> Iterator[int]:
    """Hand over the sums of the blocks of a file, and note their faults; yield the size of each."""
    reader, before = RecordReader(), 0

    def move(fault: Fault) -> Fault:
        return replace(fault, file=path, line=fault.line + before)

    collecting = gc.isenabled()
    gc.disable()  # records are freed as fast as they are made and hold no cycles
    try:
        for block in parts:
            if isinstance(block, bytes):
                result, size = reader.read(block), len(block)
            else:
                result, size = checked(block), 0
            if isinstance(result, Faults):
                faults.add(result, move)
            elif not faults:
                add(reduce(result, salt))
            if faults.enough():
                return
            rows = block if isinstance(result, Faults) else result
            before += sum(1 for _ in split_lines(rows)) if isinstance(rows, bytes) else rows.size
            yield size
    finally:
        if collecting:
            gc.enable()


def _repeated_sequences(sequence: NDArray[Any]) -> NDArray[Any]:
    return repeated_values(sequence[sequence != ABSENT])


class Merge:
    """Adds up sums; every sum is an integer, so their order does not matter."""

    def __init__(self) -> None:
        self.cells = Index()  # CellKey → number
        self._tallies: NDArray[Any] = np.zeros((0, len(TALLY_FIELDS)), object)
        self._terms: dict[tuple[int, int], tuple[int, int]] = {}
        self._groups = [np.empty(0, GROUP)]
        self._runs: dict[str, list[NDArray[Any]]] = {name: [np.empty(0, kind)] for name, kind in RUN.items()}
        self._unclustered = 0
        self._spelled_alike = 0

    def add(self, sums: Sums) -> None:
        """Add sums, whose arrays are taken over and must not be used afterwards."""
        numbers = np.array([self.cells[key] for key in sums.cells], np.int32)
        new = np.zeros((len(self.cells) - len(self._tallies), len(TALLY_FIELDS)), object)
        self._tallies = np.concatenate([self._tallies, new])
        # As Python's integers, which do not overflow.
        self._tallies[numbers] += sums.tallies.astype(object)
        for (cell, steps), (pei, pei25) in sums.terms.items():
            key = (int(numbers[cell]), steps)
            before = self._terms.get(key, (0, 0))
            self._terms[key] = (before[0] + pei, before[1] + pei25)
        for cells in (sums.groups["cell"], sums.runs["cell"]):
            cells[:] = numbers[cells]
        self._groups.append(sums.groups)
        if sum(map(len, self._groups[1:])) >= COMPACT:
            self.groups()
        for name, parts in self._runs.items():
            parts.append(sums.runs[name])
        self._unclustered += sums.unclustered

    def sums(self) -> Sums:
        """Return all that was added, in a form that another merge can add."""
        return Sums(
            cells=list(self.cells),
            tallies=self._tallies,
            terms=self._terms,
            groups=self.groups(),
            runs={name: self.run(name) for name in self._runs},
            unclustered=self._unclustered,
        )

    def run(self, name: str) -> NDArray[Any]:
        """Return one column of `RUN` over all runs, in no particular order but the same for every column."""
        # Joined column by column, so that the whole table is never in memory twice.
        self._runs[name] = [np.concatenate(self._runs[name])]
        return self._runs[name][0]

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
        if len(self._groups) > 1:
            self._groups = [merge_groups(np.concatenate(self._groups))]
        return self._groups[0]

    def summary(self, *, unordered: str | None = None, parts: Sequence[int] = ()) -> Summary:
        """Return the summary with sorted cells; `unordered` is a reason why the runs have no order.

        `parts` are the numbers of runs of pooled bundles, as they were added.
        """
        keys = sorted(self.cells)
        terms: list[tuple[dict[int, int], dict[int, int]]] = [({}, {}) for _ in keys]
        for (number, steps), numerators in sorted(self._terms.items()):
            for into, numerator in zip(terms[number], numerators, strict=True):
                into[steps] = numerator
        cells = [
            Cell(
                split=Split(key[0]),
                domain=key[1],
                condition=key[2],
                tally=Tally(**dict(zip(TALLY_FIELDS, self._tallies[self.cells[key]].tolist(), strict=True))),
                pei_terms=terms[self.cells[key]][0],
                pei25_terms=terms[self.cells[key]][1],
            )
            for key in keys
        ]
        place = np.empty(len(keys), np.int32)
        place[[self.cells[key] for key in keys]] = np.arange(len(keys))
        part = np.repeat(np.arange(len(parts)), parts) if parts else None
        alike = likeness({name: self.run(name) for name in LIKENESS}, self.groups(), part)
        groups, joined = join(self.groups())
        groups = groups[np.lexsort((groups["task"], groups["cluster"], place[groups["cell"]]))]
        runs = {name: self.run(name) for name in self._runs if name not in LIKENESS}
        runs["cell"] = place[runs["cell"]]
        window, times = order(runs, cells, unordered=unordered)
        return Summary(
            records=len(runs["cell"]),
            cells=tuple(cells),
            clusters=Clusters(
                cell=place[groups["cell"]],
                cluster=groups["cluster"].copy(),
                task=groups["task"].copy(),
                tag=groups["tag"],
                sums={name: groups[name].copy() for name in CLUSTER_FIELDS},
            ),
            window=window,
            times=times,
            joined=joined,
            unclustered=self._unclustered,
            likeness=replace(alike, runs_spelled_alike=self._spelled_alike),
        )


def merge_groups(rows: NDArray[np.void]) -> NDArray[np.void]:
    """Add up rows of the same cell, cluster and task."""
    if not len(rows):
        return rows
    rows = rows[np.lexsort([rows[name] for name in KEY])]
    new = np.append(True, np.any([rows[name][1:] != rows[name][:-1] for name in KEY], axis=0))
    starts = np.flatnonzero(new)
    merged = rows[starts].copy()
    for name in CLUSTER_FIELDS:
        merged[name] = np.add.reduceat(rows[name], starts)
    for name, _, extend, _ in EXTREMES:
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


def calibration(summary: Summary, *bundles: Bundle) -> Calibration | None:
    """Return the ratings of bundles that are judged together, with what `summary` tells of the runs rated.

    Whether a person labelled the runs that the hash draws from all of them is found on the way.
    """
    ratings = read_calibration(*bundles)
    if ratings is None:
        return None
    decoder, wanted, labelled = msgspec.json.Decoder(Named), set(ratings.items), set(ratings.labelled)
    runs = {}
    for bundle in bundles:
        for *_, line in record_lines(bundle):
            record = decoder.decode(line)
            if record.run_id in wanted:
                runs[record.run_id] = record
    tasks = dict(zip(summary.clusters.task.tolist(), summary.clusters.cluster.tolist(), strict=True))
    records = [runs.get(item) for item in ratings.items]
    return replace(
        ratings,
        domains=tuple(
            record.domain if record else domain
            for record, domain in zip(records, ratings.domains, strict=True)
        ),
        conditions=tuple(record and record.condition for record in records),
        passed=tuple(record and record.outcome == Outcome.SUCCESS for record in records),
        tasks=tuple(record and tasks.get(name_hash(record.task_id)) for record in records),
        drawn=labelled == set(to_label(len(labelled), *bundles) if labelled else ()),
    )


def traces(bundle: Bundle, summary: Summary) -> Traces:
    """Count the traces that runs name, and compare records with those of them that are enclosed."""
    named = sum(cell.tally.traced for cell in summary.cells)
    counts = Counter(named=named, bare=sum(cell.tally.derived for cell in summary.cells))
    files = [file for file in bundle.files if file["path"].startswith("traces/")]
    files.sort(
        key=lambda file: str(file["path"]).endswith(enclosed.SUFFIX)
    )  # of equal files, one that is read
    paths = {f"sha256:{file['sha256']}": str(file["path"]) for file in files}
    if not (named and paths):
        return Traces(**counts)
    rules, told = enclosed.rules_of(bundle.root), defaultdict[str, dict[str, Stated]](dict)
    for record in _naming(bundle):
        if record.trace in paths:
            told[record.trace][record.run_id] = record
    for digest, records in told.items():
        if not paths[digest].endswith(enclosed.SUFFIX):  # of one run: which of several, nobody could tell
            counts.update(enclosed=len(records) == 1)
            continue
        for run_id, shown in enclosed.read(bundle.root / paths[digest]):
            if (stated := records.pop(run_id, None)) is None or shown.empty:
                continue
            derived = stated.measured == Measured.DERIVED
            fields = shown.fields(rules, stated.condition, stated.outcome)
            # A record that is not marked as derived may leave out what its trace shows.
            names = [name for name in fields if derived or getattr(stated, name) is not None]
            agrees = all(getattr(stated, name) == fields[name] for name in names)
            others = (getattr(stated, name) for name in enclosed.FIELDS if name not in fields)
            whole = bool(fields) and not any(value is not None for value in others)
            counts.update(enclosed=1, differ=not agrees, bare=-(derived and whole))
            counts.update(derived=derived and whole and agrees)
    return Traces(**counts)


class Stated(msgspec.Struct, gc=False):
    """What a record states that its trace may show."""

    run_id: str
    condition: str
    outcome: Outcome
    trace: str | None = None
    measured: Measured | None = None
    steps_actual: float | None = None
    fault_step: float | None = None
    recovered: bool | None = None
    recovery_steps: float | None = None
    memory_query_offset: float | None = None
    violations: float | None = None
    layer2_score: float | None = None


def _naming(bundle: Bundle) -> Iterator[Stated]:
    """Yield the records that may name a trace: without a backslash, text is written as it reads."""
    decoder = msgspec.json.Decoder(Stated)
    for *_, line in record_lines(bundle):
        if b"sha256:" in line or b"\\" in line:
            yield decoder.decode(line)


def to_label(m: int, *bundles: Bundle) -> tuple[str, ...]:
    """Return the ids of the `m` runs that a person labels to calibrate a judge.

    `bundles` are all that are judged together: they are one draw.
    """
    return tuple(label_order(*((line for *_, line in record_lines(bundle)) for bundle in bundles))[:m])
