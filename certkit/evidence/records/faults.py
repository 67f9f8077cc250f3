"""Faults of records: each has a place, what was expected and what was found."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from certkit.errors import CODES, InputError

LIMIT: Final = 50
"""Faults that are listed; of further ones only the number is known."""


class Fault(Struct, frozen=True, kw_only=True, order=True):
    """A fault of a record. `line` counts from 1; in Parquet it is the row. `hint` says how to mend it."""

    file: str = ""
    line: int
    pointer: str
    code: str
    expected: str
    found: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{f'{self.file}:{self.line}' if self.file else f'line {self.line}'}{self.what()}"

    def what(self) -> str:
        """Return the fault without its place."""
        pointer = f" {self.pointer}" if self.pointer else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{pointer}: expected {self.expected}, found {self.found} [{self.code}]{hint}"


class Faults(list[Fault]):
    """The first `LIMIT` faults; `total` counts all."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def add(self, fault: Fault) -> None:
        """Add a fault."""
        self.note([fault])

    def note(self, faults: list[Fault]) -> None:
        """Add the faults of a line."""
        self.total += len(faults)
        self += faults[: max(0, LIMIT - len(self))]


class FaultsError(InputError):
    """Lines of evidence were refused, and the bundle with them.

    `faults` lists the first ones in order of file and line; `total` counts all.
    """

    refusal = "bundle.records-invalid"
    lines = "records"
    advice = "correct these {lines}, or move their files out of the bundle"

    def __init__(self, faults: list[Fault], total: int) -> None:
        unknown = {fault.code for fault in faults} - CODES.keys()
        if unknown:
            raise AssertionError(f"fault codes {sorted(unknown)} are not documented")
        shown = f", the first {len(faults)} are" if total > len(faults) else ""
        super().__init__(
            self.refusal,
            f"{self._counted(total)}{shown}\n  " + "\n  ".join(str(fault) for fault in faults),
            hint=self.advice.format(lines=self.lines),
        )
        self.faults = faults
        self.total = total

    def _counted(self, total: int) -> str:
        return f"{total:,} {'fault' if total == 1 else 'faults'} in the {self.lines}"

    def to_dict(self) -> dict[str, object]:
        """Return the error with its faults as the JSON document that ``--json`` prints."""
        document = super().to_dict()
        document["message"] = self._counted(self.total)
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
            | ({"hint": fault.hint} if fault.hint else {})
            for fault in self.faults
        ]
        return document


class RecordFaultsError(FaultsError):
    """Records were refused."""


class CalibrationFaultsError(FaultsError):
    """Ratings of the calibration files were refused."""

    refusal = "calibration.invalid"
    lines = "ratings"
