"""Contradictions between the rows of an import: names used twice, a task in two domains.

While rows are written only 64-bit hashes are kept. Where hashes are equal, the written records are read
again and the names compared, so that memory stays bounded and a collision of hashes refuses no source.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from certkit.evidence.summary.gather import repeated_values, repetitions
from certkit.evidence.summary.likeness import name_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from certkit.evidence.records.faults import Fault


class Repeats:
    """Hashes of the names in the rows written so far, and the source line of each row."""

    def __init__(self) -> None:
        self._lines = array("q")
        self._runs = array("Q")
        self._sequences = array("q")
        self._tasks = array("Q")
        self._domains = array("Q")

    def add(self, row: Mapping[str, Any], line: int) -> None:
        """Note the names of a row from `line` of its source."""
        self._lines.append(line)
        self._runs.append(name_hash(row["run_id"]))
        self._tasks.append(name_hash(row["task_id"]))
        self._domains.append(name_hash(row["domain"]))
        if row.get("sequence") is not None:
            self._sequences.append(int(row["sequence"]))

    def faults(self, written: Iterable[bytes]) -> Iterator[Fault]:
        """Yield every repetition; `written` are the lines of the record file, read only if needed."""
        pairs = np.unique(
            np.stack([np.frombuffer(self._tasks, np.uint64), np.frombuffer(self._domains, np.uint64)]), axis=1
        )
        yield from repetitions(
            (("", line, text) for line, text in zip(self._lines, written, strict=True)),
            repeated_values(np.frombuffer(self._runs, np.uint64)),
            repeated_values(np.frombuffer(self._sequences, np.int64)),
            repeated_values(pairs[0]),
        )
