"""Faults of records: each has a place, what was expected and what was found."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from certkit.ground.errors import CODES, InputError
from certkit.ground.wording import many

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

LIMIT: Final = 50
"""Faults that are listed; of further ones only the number is known."""

MOST: Final = 10_000
"""Faults after which nothing more is read."""

SHOWN: Final = 10
"""Faults of one code at one field that a screen shows, like ones together; the rest are counted."""

FOUND: Final = 5
"""Values at fault that a screen shows of like faults."""


class Fault(Struct, frozen=True, kw_only=True, order=True):
    """A fault of a record. `line` counts from 1; in Parquet it is the row. `hint` says how to correct it.

    `row` is the row of a sheet, where it is not the line: cells of CSV may hold line ends.
    """

    file: str = ""
    line: int
    pointer: str
    code: str
    expected: str
    found: str
    hint: str = ""
    row: int = 0

    def __str__(self) -> str:
        return f"{self.where()}{self.what()}"

    def where(self) -> str:
        """Return the place of the fault."""
        return f"{self.file}:{self.at()}" if self.file else f"line {self.at()}"

    def at(self) -> str:
        """Return the line, with the row where that is another."""
        return f"{self.line} (row {self.row})" if self.row else str(self.line)

    def like(self) -> Fault:
        """Return what faults have in common that differ in their place and in what was found."""
        return replace(self, file="", line=0, found="", row=0)

    def what(self) -> str:
        """Return the fault without its place."""
        pointer = f" {self.pointer}" if self.pointer else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{pointer}: expected {self.expected}, found {self.found} [{self.code}]{hint}"


class Faults(list[Fault]):
    """The first `LIMIT` faults, and the first of every further kind; `total` counts all, `alike` like ones.

    Faults are of a kind where they differ in their place alone; of more than `LIMIT` kinds no first is kept.
    """

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        super().__init__()
        self.total = 0
        self.cut = False
        self.kinds: set[tuple[Fault, str]] = set()
        self.alike: Counter[Fault] = Counter()
        self.note(faults)

    def note(self, faults: Iterable[Fault]) -> None:
        """Add faults."""
        for fault in faults:
            self.total += 1
            like = fault.like()
            new = (like, fault.found) not in self.kinds and len(self.kinds) < LIMIT
            if new:
                self.kinds.add((like, fault.found))
            if new or like in self.alike:
                self.alike[like] += 1
            if new or len(self) < LIMIT:
                self.append(fault)

    def enough(self) -> bool:
        """Tell whether there are more than `MOST`, so that reading ends here; `cut` keeps the answer."""
        self.cut = self.cut or self.total > MOST
        return self.cut

    def add(self, part: Faults, move: Callable[[Fault], Fault]) -> None:
        """Add the faults of a part; `move` gives each its place in the whole."""
        self.note(map(move, part))
        self.cut = self.cut or part.cut
        self.total += part.total - len(part)
        for like, more in (part.alike - Counter(fault.like() for fault in part)).items():
            if like in self.alike:  # beyond the limit none is kept to be shown
                self.alike[like] += more

    def grouped(self) -> Iterator[str]:
        """Yield a line for faults that differ in their place and in what was found: the first of both."""
        kept: dict[Fault, list[Fault]] = {}
        for fault in self:
            kept.setdefault(fault.like(), []).append(fault)
        shown: Counter[tuple[str, str]] = Counter()
        more = self.total
        for like, faults in kept.items():
            shown[like.code, like.pointer] += 1
            if shown[like.code, like.pointer] > SHOWN:
                continue
            more -= (count := self.alike[like])
            values = list(dict.fromkeys(fault.found for fault in faults))
            others = " and others" * (len(values) > FOUND)
            what = replace(like, found=", ".join(values[:FOUND]) + others).what()
            first = faults[0]
            places = (it.at() if it.file == first.file else it.where() for it in faults[:3])
            where = first.where().removesuffix(first.at()) + ", ".join(dict.fromkeys(places))
            yield f"{where}{what}" if count == 1 else f"{many(count, 'row')} (first {where}){what}"
        if more:
            yield f"and {more:,} more"


class FaultsError(InputError):
    """Lines of evidence were refused, and the bundle with them.

    `faults` lists the first ones in order of file and line; `total` counts all.
    """

    refusal = "bundle.records-invalid"
    lines = "records"
    advice = "correct these {lines} where they were made, and make the bundle again"

    def __init__(self, faults: Faults) -> None:
        unknown = {fault.code for fault in faults} - CODES.keys()
        if unknown:
            raise AssertionError(f"fault codes {sorted(unknown)} are not documented")
        self.faults = faults
        self.total = faults.total
        shown = [self._counted(), *faults.grouped()]
        super().__init__(self.refusal, "\n  ".join(shown), hint=self.advice.format(lines=self.lines))

    def _counted(self) -> str:
        if self.faults.cut:
            return f"more than {MOST:,} problems in the {self.lines}; the rest was not read"
        return f"{self.total:,} {'problem' if self.total == 1 else 'problems'} in the {self.lines}"

    def to_dict(self) -> dict[str, object]:
        """Return the error with its faults as the JSON document that ``--json`` prints."""
        document = super().to_dict()
        document["message"] = self._counted()
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
            | ({"row": fault.row} if fault.row else {})
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
