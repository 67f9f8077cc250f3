"""Faults of records: each with its place, what was expected and what was found."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from certkit.errors import CODES, InputError

LIMIT: Final = 50
"""Faults that are listed in full; beyond it only their number is known."""


class Fault(Struct, frozen=True, kw_only=True, order=True):
    """One thing that is wrong with one record. `line` counts from 1; in Parquet it is the row."""

    file: str = ""
    line: int
    pointer: str
    code: str
    expected: str
    found: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file else f"line {self.line}"
        pointer = f" {self.pointer}" if self.pointer else ""
        return f"{place}{pointer}: expected {self.expected}, found {self.found} [{self.code}]"


class Faults(list[Fault]):
    """The first `LIMIT` faults of some lines; `total` counts all."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def note(self, faults: list[Fault]) -> None:
        """Add the faults of a line."""
        self.total += len(faults)
        self += faults[: max(0, LIMIT - len(self))]


class RecordFaultsError(InputError):
    """Records were refused, and the bundle with them.

    `faults` lists the first ones in order of file and line; `total` counts all.
    """

    def __init__(self, faults: list[Fault], total: int) -> None:
        unknown = {fault.code for fault in faults} - CODES.keys()
        if unknown:
            raise AssertionError(f"fault codes {sorted(unknown)} are not documented")
        shown = f", the first {len(faults)} are" if total > len(faults) else ""
        noun = "fault" if total == 1 else "faults"
        super().__init__(
            "bundle.records-invalid",
            f"{total:,} {noun} in the records{shown}\n  " + "\n  ".join(str(fault) for fault in faults),
            hint="nothing is skipped or repaired in silence; mend the records or leave them out by name",
        )
        self.faults = faults
        self.total = total

    def to_dict(self) -> dict[str, object]:
        """Return the error with its faults as the JSON document that ``--json`` prints."""
        document = super().to_dict()
        noun = "fault" if self.total == 1 else "faults"
        document["message"] = f"{self.total:,} {noun} in the records"
        document["total"] = self.total
        document["faults"] = [
            {
                "file": fault.file,
                "line": fault.line,
                "pointer": fault.pointer,
                "code": fault.code,
                "expected": fault.expected,
                "found": fault.found,
            }
            for fault in self.faults
        ]
        return document
