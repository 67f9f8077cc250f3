"""Contradictions between the rows of one import: names used twice, a task in two domains.

While rows are written only 64-bit hashes are kept; where hashes meet, the written records are read
again and the names themselves compared, so that memory stays bounded and no collision refuses a source.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from certkit import canonical
from certkit.evidence.reading.lines import repeated, two_domains

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from certkit.evidence.records.faults import Fault


class Repeats:
    """Hashes of the names of the rows written so far, and the source line of each row."""

    def __init__(self) -> None:
        self._lines = array("q")
        self._runs = array("Q")
        self._sequences = array("q")
        self._tasks = array("Q")
        self._domains = array("Q")

    def add(self, row: Mapping[str, Any], line: int) -> None:
        """Note the names of one row, which stood on `line` of its source."""
        self._lines.append(line)
        self._runs.append(_hash(row["run_id"]))
        self._tasks.append(_hash(row["task_id"]))
        self._domains.append(_hash(row["domain"]))
        if row.get("sequence") is not None:
            self._sequences.append(int(row["sequence"]))

    def faults(self, written: Iterable[bytes]) -> Iterator[Fault]:
        """Yield every repetition; `written` are the lines of the record file, read only if needed."""
        runs, sequences = (
            _twice(np.frombuffer(self._runs, np.uint64)),
            _twice(np.frombuffer(self._sequences, np.int64)),
        )
        pairs = np.unique(
            np.stack([np.frombuffer(self._tasks, np.uint64), np.frombuffer(self._domains, np.uint64)]), axis=1
        )
        tasks = _twice(pairs[0])
        if not (runs or sequences or tasks):
            return
        first_run: dict[str, int] = {}
        first_sequence: dict[int, int] = {}
        first_task: dict[str, tuple[str, int]] = {}
        for line, text in zip(self._lines, written, strict=True):
            row = canonical.loads(text)
            run, sequence, task, domain = row["run_id"], row.get("sequence"), row["task_id"], row["domain"]
            if _hash(run) in runs and (at := first_run.setdefault(run, line)) != line:
                yield repeated(line, "run_id", run, f"line {at}")
            if sequence in sequences and (at := first_sequence.setdefault(sequence, line)) != line:
                yield repeated(line, "sequence", sequence, f"line {at}")
            if _hash(task) in tasks:
                other, at = first_task.setdefault(task, (domain, line))
                if other != domain:
                    yield two_domains(line, task, other, domain, f"line {at}")


def _hash(name: str) -> int:
    return int(xxhash.xxh3_64_intdigest(name.encode()))


def _twice(values: np.ndarray[Any, Any]) -> set[int]:
    ordered = np.sort(values)
    return {int(value) for value in ordered[1:][ordered[1:] == ordered[:-1]]}
