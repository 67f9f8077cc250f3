"""Reading a block of lines one by one, the plain way, to compare the fast reader with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.record.faults import LIMIT
from certkit.record.reader import check_line, repeated, split_lines, two_domains

if TYPE_CHECKING:
    from collections.abc import Iterable

    from certkit.record.faults import Fault
    from certkit.record.record import Record


def check_lines(lines: bytes, *, limit: int = LIMIT) -> list[Fault]:
    """Return the faults of a block of lines, each looked at one by one, and of the lines together.

    At most `limit` faults are returned, in order of line and pointer.
    """
    faults: list[Fault] = []
    records: list[tuple[int, Record]] = []
    for number, line in enumerate(split_lines(lines), 1):
        result = check_line(line, number)
        if isinstance(result, list):
            faults += result
        else:
            records.append((number, result))
    faults += _repetitions(records)
    return sorted(faults, key=lambda fault: (fault.line, fault.pointer))[:limit]


def _repetitions(records: Iterable[tuple[int, Record]]) -> list[Fault]:
    runs: dict[str, int] = {}
    sequences: dict[int, int] = {}
    domains: dict[str, tuple[str, int]] = {}
    faults = []
    for number, record in records:
        if (first := runs.setdefault(record.run_id, number)) != number:
            faults.append(repeated(number, "run_id", record.run_id, f"line {first}"))
        if record.sequence is not None and (first := sequences.setdefault(record.sequence, number)) != number:
            faults.append(repeated(number, "sequence", record.sequence, f"line {first}"))
        domain, first = domains.setdefault(record.task_id, (record.domain, number))
        if domain != record.domain:
            faults.append(two_domains(number, record.task_id, domain, record.domain, f"line {first}"))
    return faults
