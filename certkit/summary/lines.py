"""The lines of a bundle's record files, and names that repeat in them.

Names that must not repeat across the records of a bundle (a run id or sequence used twice, a task in two
domains) are found by sorted 64-bit hashes and then confirmed by comparing the names themselves, so that a
collision of hashes cannot refuse good evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from certkit.record.columns import ABSENT, Index, name_hash
from certkit.record.faults import Faults, RecordFaultsError
from certkit.record.reader import repeated, split_lines, two_domains

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from certkit.bundle.folder import Bundle
    from certkit.record.columns import Hashes
    from certkit.record.faults import Fault
    from certkit.summary.reduce import Partial

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


def record_blocks(bundle: Bundle, path: str) -> Iterator[bytes]:
    """Yield a record file of a bundle in blocks of whole lines, and refuse one that changed meanwhile."""
    return bundle.blocks(path)


def record_lines(bundle: Bundle) -> Iterator[tuple[str, int, bytes]]:
    """Yield every line of every record file, with the path of the file and the number of the line from 1."""
    for path in bundle.record_files:
        number = 0
        for block in record_blocks(bundle, path):
            for line in split_lines(block):
                number += 1
                yield path, number, line


def task_domains(partial: Partial, domains: Index) -> Hashes:
    """Return the hashes of tasks and the numbers of their domains, 2 x n, each pair once."""
    domain_of = np.array([domains[domain] for _, domain, *_ in partial.cells], np.uint64)
    pairs = np.stack([partial.groups["task"], domain_of[partial.groups["cell"]]])
    return np.unique(pairs, axis=1)


def refuse_repetitions(
    lines: Iterable[tuple[str, int, bytes]], partial: Partial, sequences: NDArray[Any]
) -> None:
    """Refuse records whose names repeat; `sequences` are the numbers that must not.

    Raises:
        RecordFaultsError: names repeat.
    """
    if faults := Faults(
        repetitions(lines, partial.column("run_id"), sequences, task_domains(partial, Index()))
    ):
        raise RecordFaultsError(faults)


def repetitions(
    lines: Iterable[tuple[str, int, bytes]], run_ids: Hashes, sequences: NDArray[Any], placed: Hashes
) -> Iterator[Fault]:
    """Yield a fault for every run id and every one of `sequences` used again, and every task in two domains.

    Args:
        lines: the records with file and number; they are read only where hashes repeat.
        run_ids: hashes of their ids.
        sequences: the numbers in order, `ABSENT` where a record has none.
        placed: as `task_domains` gives it.
    """
    numbers = repeated_values(sequences[sequences != ABSENT])
    hashes = (repeated_values(run_ids), numbers, repeated_values(np.unique(placed, axis=1)[0]))
    runs, ordered, tasks = (set(values[:CONFIRM].tolist()) for values in hashes)
    if not (runs or ordered or tasks):
        return
    decoder = msgspec.json.Decoder(Named)
    places: dict[tuple[str, str | int], str] = {}
    domains: dict[str, tuple[str, str]] = {}
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
            domain, first = domains.setdefault(record.task_id, (record.domain, place))
            if domain != record.domain:
                fault = two_domains(number, record.task_id, domain, record.domain, first)
                yield replace(fault, file=path)


def repeated_values(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the values that occur more than once, sorted."""
    ordered = np.sort(values)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
