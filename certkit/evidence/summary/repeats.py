"""Names that repeat across the records of a bundle: a run id or sequence used twice, a task in two domains.

They are found by sorted 64-bit hashes, and then confirmed by comparing the names themselves, so that a
collision of hashes cannot refuse good evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from certkit.evidence.reading import parquet
from certkit.evidence.reading.columns import Index
from certkit.evidence.reading.lines import blocks, repeated, split_lines, two_domains
from certkit.evidence.records.faults import Fault, Faults, RecordFaultsError
from certkit.evidence.summary.likeness import name_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from certkit.evidence.bundle.folder import Bundle
    from certkit.evidence.summary.gather import Merge

CONFIRM: Final = 100_000
"""Repeated hashes that are confirmed by name; where there are more, the first ones are."""


class Named(msgspec.Struct):
    """What of a record names it."""

    run_id: str
    domain: str
    task_id: str
    condition: str
    outcome: str
    sequence: int | float | None = None


def repetitions(
    lines: Iterable[tuple[str, int, bytes]], merge: Merge, sequences: NDArray[Any]
) -> Iterator[Fault]:
    """Yield a fault for every run id and every one of `sequences` used again, and every task in two domains.

    `lines` are the merged records with file and number. They are read only where hashes repeat, and the
    names themselves compared, so that a collision of hashes refuses nothing.
    """
    groups = merge.groups()
    domains = Index()
    domain_of = np.array([domains[domain] for _, domain, _condition in merge.cells], np.uint64)
    pairs = np.unique(np.stack([groups["task"], domain_of[groups["cell"]]]), axis=1)
    hashes = (repeated_values(merge.run("run_id")), sequences, repeated_values(pairs[0]))
    runs, ordered, tasks = (set(values[:CONFIRM].tolist()) for values in hashes)
    if not (runs or ordered or tasks):
        return
    decoder = msgspec.json.Decoder(Named)
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
                yield replace(repeated(number, *key, places[key]), file=path)
            places.setdefault(key, place)
        if name_hash(record.task_id) in tasks:
            domain, first = homes.setdefault(record.task_id, (record.domain, place))
            if domain != record.domain:
                fault = two_domains(number, record.task_id, domain, record.domain, first)
                yield replace(fault, file=path)


def refuse_repetitions(
    lines: Iterable[tuple[str, int, bytes]], merge: Merge, sequences: NDArray[Any]
) -> None:
    """Raise `RecordFaultsError` where names repeat; see `repetitions`."""
    if faults := Faults(repetitions(lines, merge, sequences)):
        raise RecordFaultsError(faults)


def repeated_values(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the values that occur more than once, sorted."""
    ordered = np.sort(values)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def record_lines(bundle: Bundle) -> Iterator[tuple[str, int, bytes]]:
    """Yield every line of every record file, with the path of the file and the number of the line from 1."""
    for path in bundle.record_files:
        number = 0
        file = bundle.root / path
        for block in parquet.lines(file, shown=path) if path.endswith(".parquet") else blocks(file):
            for line in split_lines(block):
                number += 1
                yield path, number, line
