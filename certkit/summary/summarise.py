"""From the record files of a bundle to its `Summary`.

    summary = summarise(open_bundle(Path("bundle")))

Every record is validated before anything is counted: a bad record refuses the whole bundle, and its faults
are listed up to a limit. Records are reduced block by block to partial sums, which add up in any order.
"""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from certkit.ground.progress import SILENT, Progress
from certkit.record import trace as enclosed
from certkit.record.columns import Columns, Index
from certkit.record.faults import Fault, Faults, RecordFaultsError
from certkit.record.reader import RecordReader, blocks, split_lines
from certkit.record.record import Measured, Outcome
from certkit.summary.finish import finish
from certkit.summary.lines import (
    record_blocks,
    record_lines,
    refuse_repetitions,
    repetitions,
    task_domains,
)
from certkit.summary.ratings import read_ratings
from certkit.summary.reduce import Partial, merge, reduce
from certkit.summary.summary import MOST_TASKS, PlannedRuns, Summary, Traces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from certkit.bundle.facts import Facts
    from certkit.bundle.folder import Bundle

CHECKED: Final = 1024 * 1024
"""Bytes of records that an import checks at once: its memory counts more than its speed."""
COMPACT: Final = 1_000_000
"""Rows of groups that are collected before they are merged."""


def summarise(
    bundle: Bundle,
    *,
    core_conditions: Iterable[str] = (),
    most_tasks: int | None = MOST_TASKS,
    salt: bytes | None = None,
    progress: Progress = SILENT,
) -> Summary:
    """Return the summary of the records, ratings and traces of a bundle.

    Args:
        bundle: an opened bundle.
        core_conditions: `x_` conditions that count as core evidence.
        most_tasks: how many tasks get rows, those with the smallest tags; None for all.
        salt: of the tags, in place of the one in the manifest.
        progress: told the bytes that were read.

    Raises:
        RecordFaultsError: records are refused.
        CalibrationFaultsError: ratings are refused.
        InputError: traces are refused.
    """
    salt = bundle.manifest.protocol.salt if salt is None else salt
    with uncollected():
        partial = summarise_part(bundle, salt=salt, progress=progress)
        return finish_bundle(bundle, partial, core_conditions, most_tasks, salt)


def finish_bundle(
    bundle: Bundle,
    partial: Partial,
    core_conditions: Iterable[str],
    most_tasks: int | None,
    salt: bytes | None,
) -> Summary:
    """Return the summary of a bundle from the sums of its records; arguments and errors as of `summarise`."""
    return finish(
        partial,
        memory_observable=bundle.manifest.protocol.memory_observable is True,
        core_conditions=core_conditions,
        most_tasks=most_tasks,
        salt=salt,
        traces=read_traces(bundle, partial),
        plan=compare_plan(bundle),
        ratings=read_ratings(bundle),
    )


def summarise_part(bundle: Bundle, *, salt: bytes | None = None, progress: Progress = SILENT) -> Partial:
    """Return the sums of the records of a bundle, all valid, none repeated; tasks are tagged with `salt`.

    Raises:
        RecordFaultsError: records are refused.
    """
    parts, faults = list[Partial](), Faults()

    def add(part: Partial) -> None:
        parts.append(part)
        if sum(len(part.groups) for part in parts[1:]) >= COMPACT:
            parts[:] = [merge(*parts)]

    progress.start("reading records", bundle.records_size, "bytes")
    with uncollected():
        for path in bundle.record_files:
            for size in _read(record_blocks(bundle, path), add, faults, path, salt):
                progress.advance(size)
            if faults.cut:
                break
    progress.finish()
    if faults:
        raise RecordFaultsError(faults)
    partial = merge(*parts) if parts else reduce(Columns.of_records(()), salt)
    refuse_repetitions(record_lines(bundle), partial, partial.column("sequence"))
    return partial


def all_faults(path: Path, place: Callable[[int], tuple[str, int]]) -> Faults:
    """Return what is wrong with a record file; `place` gives the file and line that faults of a record name.

    Of the sums nothing but the names is kept: a million tasks would take a gigabyte.
    """
    faults, moved, domains = Faults(), Faults(), Index()
    names: list[tuple[NDArray[Any], ...]] = []

    def add(part: Partial) -> None:
        names.append((part.column("run_id"), part.column("sequence"), task_domains(part, domains)))

    with uncollected():
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
        columns = (np.concatenate(parts, axis=-1) for parts in zip(*names, strict=True))
        return Faults(repetitions(lines, *columns))


def _read(
    parts: Iterable[bytes],
    add: Callable[[Partial], None],
    faults: Faults,
    path: str = "",
    salt: bytes | None = None,
) -> Iterator[int]:
    """Hand over the sums of the blocks of a file, and note their faults; yield the size of each."""
    reader, before = RecordReader(), 0

    def move(fault: Fault) -> Fault:
        return replace(fault, file=path, line=fault.line + before)

    for block in parts:
        result = reader.read(block)
        if isinstance(result, Faults):
            faults.add(result, move)
        elif not faults:
            add(reduce(result, salt))
        if faults.enough():
            return
        before += sum(1 for _ in split_lines(block)) if isinstance(result, Faults) else result.size
        yield len(block)


@contextmanager
def uncollected() -> Iterator[None]:
    """Stop the search for cycles of objects: what is made here in great numbers holds none."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def read_traces(bundle: Bundle, partial: Partial) -> Traces:
    """Count the traces that runs name, and compare records with those of them that are enclosed.

    Raises:
        InputError: a trace is refused.
    """
    named = partial.count("traced")
    counts = Counter(named=named, bare=partial.count("derived"))
    files = [file for file in bundle.files if file["path"].startswith("traces/")]
    # Of equal files, one that is read.
    files.sort(key=lambda file: str(file["path"]).endswith(enclosed.SUFFIX))
    paths = {f"sha256:{file['sha256']}": str(file["path"]) for file in files}
    if not (named and paths):
        return Traces(**counts)
    rules, naming = bundle.trace_rules(), defaultdict[str, dict[str, Stated]](dict)
    for record in _naming(bundle):
        if record.trace in paths:
            naming[record.trace][record.run_id] = record
    for digest, records in naming.items():
        if not paths[digest].endswith(enclosed.SUFFIX):  # of one run: which of several, nobody could tell
            counts.update(enclosed=len(records) == 1)
            continue
        for run_id, content in bundle.transcripts(paths[digest]):
            if (stated := records.pop(run_id, None)) is None or content.empty:
                continue
            derived = stated.measured == Measured.DERIVED
            fields = content.fields(rules, stated.condition, stated.outcome)
            # A record that is not marked as derived may leave out what its trace shows.
            names = [name for name in fields if derived or getattr(stated, name) is not None]
            agrees = all(getattr(stated, name) == fields[name] for name in names)
            expected = {"plan": bundle.manifest.protocol.plan, "run_id": run_id, "task_id": stated.task_id}
            agrees &= all(expected[name] == value for name, value in content.identity.items())
            others = (getattr(stated, name) for name in content.shows if name not in fields)
            complete = bool(fields) and not any(value is not None for value in others)
            counts.update(enclosed=1, differ=not agrees, bare=-(derived and complete))
            counts.update(derived=derived and complete and agrees)
    return Traces(**counts)


class Stated(msgspec.Struct, gc=False):
    """What a record states that its trace may show."""

    run_id: str
    task_id: str
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
    steps_oracle: float | None = None
    fault_took_hold: bool | None = None
    recovery_approach: str | None = None
    memory_similarity: float | None = None
    memory_modified: bool | None = None
    attack_attempted: bool | None = None
    attack_landed: bool | None = None
    attack_succeeded: bool | None = None


def _naming(bundle: Bundle) -> Iterator[Stated]:
    """Yield the records that may name a trace: without a backslash, text is written as it reads."""
    decoder = msgspec.json.Decoder(Stated)
    for *_, line in record_lines(bundle):
        if b"sha256:" in line or b"\\" in line:
            yield decoder.decode(line)


class _Planned(msgspec.Struct, gc=False):
    """What a record states that a plan says of its run."""

    run_id: str
    domain: str
    task_id: str
    condition: str
    outcome: Outcome
    trial: float | None = None
    measured: Measured | None = None
    steps_actual: float | None = None
    steps_oracle: float | None = None


def compare_plan(bundle: Bundle) -> PlannedRuns | None:
    """Compare the records with the plan that the bundle encloses; None where it encloses none."""
    if (plan := bundle.plan) is None:
        return None
    counts, decoder = Counter[str](), msgspec.json.Decoder(_Planned)
    for *_, line in record_lines(bundle):
        record = decoder.decode(line)
        run = plan.runs.get(record.run_id)
        counts.update(("outside",) if run is None else ("present",))
        if run is not None:
            task = plan.tasks[run.task]
            expected = run.task, task.domain, run.condition, run.trial
            stated = record.task_id, record.domain, record.condition, record.trial or 0
            counts.update(differ=stated != expected or not _oracle_agrees(record, task.steps))
    return PlannedRuns(planned=len(plan.runs), **counts)


def joined_facts(facts: Facts, summary: Summary | None) -> Facts:
    """Return facts that name a plan only where every record is of one of its runs; else it is stated."""
    protocol, plan = facts.protocol, msgspec.UNSET if summary is None else summary.plan
    if protocol.plan is None or (plan is not msgspec.UNSET and not plan.astray):
        return facts
    return replace(facts, protocol=replace(protocol, plan=None, plan_stated=protocol.plan))


def _oracle_agrees(record: _Planned, steps: int | None) -> bool:
    """Tell whether a record has the planned oracle; a derived one leaves it out as `derive` does."""
    if record.steps_oracle is not None or steps is None or record.measured != Measured.DERIVED:
        return record.steps_oracle in {None, steps}
    shorter = record.outcome == Outcome.SUCCESS and (record.steps_actual or 0) < steps
    return record.outcome == Outcome.HARNESS_ERROR or shorter
