"""A bundle that an import writes: its records so far, their places in the source, and the account of them."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, get_args

from msgspec import Struct

from certkit.bundle.manifest import MAX_TEXT, ImportNote, NoteKind
from certkit.bundle.writer import RECORD_FILE
from certkit.ground.text import visible
from certkit.record.columns import Index
from certkit.record.faults import Fault, Faults
from certkit.record.record import FIELDS, Condition, Outcome
from certkit.summary.summarise import all_faults

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from certkit.bundle.writer import BundleWriter

OTHERS: Final = "other record fields"  # what the account calls fields that no source fills

MAX_GROWTH: Final = 1000
"""Bytes of records per byte of a log above `source.FREE`; short rows beside constants reach about 100."""

MAX_SHOWN: Final = 200  # characters of a found value that a fault shows


def counted(words: Counter[str]) -> str:
    """Return how often each condition or outcome was written, in the order of the record's own."""
    order = [*Condition, *Outcome]
    known = sorted(words, key=lambda word: (order.index(word) if word in order else len(order), word))
    return ", ".join(f"{words[word]:,} {word}" for word in known)


class Place(Struct, frozen=True):
    """A row of a source."""

    file: str
    line: int

    def fault_of(self, expected: str, value: Any, **more: str) -> Fault:
        """Return a fault of a value; of a long text it shows the beginning."""
        cut = value[:MAX_SHOWN] if isinstance(value, str) else value
        return self.fault(expected, repr(cut), **more)

    def fault(
        self, expected: str, actual: str, *, pointer: str = "", code: str = "import.row", hint: str = ""
    ) -> Fault:
        """Return a fault of this row."""
        return Fault(
            file=self.file,
            line=self.line,
            pointer=pointer,
            code=code,
            expected=expected,
            found=visible(actual if len(actual) <= MAX_SHOWN else actual[: MAX_SHOWN - 1] + "…"),
            hint=hint,
        )


class Notes:
    """Counts what happened during an import."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[NoteKind, str]] = Counter()
        self._details: dict[tuple[NoteKind, str], str] = {}

    def add(self, kind: NoteKind, what: str, detail: str | None = None, *, count: int = 1) -> None:
        """Count `what`; the first `detail` is kept."""
        key = (kind, visible(what)[:500])
        self._counts[key] += count
        if detail:
            self._details.setdefault(key, visible(detail)[:2000])

    def add_those(self, *items: tuple[Any, NoteKind, str, str | None]) -> None:
        """Count each of `items`, (holds, kind, what, detail), that holds."""
        for holds, kind, what, detail in items:
            if holds:
                self.add(kind, what, detail)

    def merge(self, notes: Notes) -> None:
        """Count what others counted too."""
        self._counts.update(notes._counts)
        self._details = notes._details | self._details

    def counted(self, kind: NoteKind) -> set[str]:
        """Return what of a kind was counted so far."""
        return {what for counted, what in self._counts if counted == kind}

    def to_notes(self) -> tuple[ImportNote, ...]:
        """Return all that was counted, by kind, then in the order of the first occurrence."""
        kinds = get_args(NoteKind)
        counts = sorted(self._counts.items(), key=lambda item: kinds.index(item[0][0]))
        return tuple(
            ImportNote(kind=key[0], what=key[1], count=count, detail=self._details.get(key))
            for key, count in counts
            if count
        )


def row_digest(row: Mapping[str, Any]) -> bytes:
    """Return what equal rows have alike."""
    return hashlib.blake2b(repr(row).encode(errors="surrogatepass"), digest_size=16).digest()


class SeenHashes:
    """Which values were seen before, by 64-bit hashes that Python draws anew in each process.

    A hash takes 12 to 24 bytes, where a set takes up to 130. Of ten million values two are taken for equal in
    one of 300,000 imports.
    """

    def __init__(self) -> None:
        self._count, self._slots = 0, array("q", [0]) * 1024  # 0 is an empty slot

    def seen_before(self, *values: Hashable) -> bool:
        """Tell whether these values were given before, and remember them."""
        if not self._put(hash(values) or 1):
            return True
        self._count += 1
        if 3 * self._count > 2 * len(self._slots):
            before, self._slots = self._slots, array("q", [0]) * (2 * len(self._slots))
            for number in filter(None, before):
                self._put(number)
        return False

    def _put(self, number: int) -> bool:
        """Put a number into the first slot that is empty, from its own on; tell whether it was new."""
        slots, last = self._slots, len(self._slots) - 1
        at = number & last
        while held := slots[at]:
            if held == number:
                return False
            at = at + 1 & last
        slots[at] = number
        return True


class Draft:
    """A bundle that `writer` writes: its account, its protocol, and where its records come from.

    `agent` is the name in the source; `agent_document` and `protocol` are the parts of the manifest that the
    importer fills; `options` are the user's choices as the account states them; `left` counts the rows that
    have a column which fills no field; `rows`, `trials` and `single` remember the rows, the trials of tasks
    and the names that may stand only once.
    """

    def __init__(self, writer: BundleWriter, agent: str, subfolder: str) -> None:
        self.writer, self.agent, self.subfolder = writer, agent, subfolder
        self.notes = Notes()
        self.protocol: dict[str, Any] = {"origin": "measured"}
        self.agent_document: dict[str, Any] = {}
        self.options: dict[str, str] = {}
        self.records = 0
        self.versions: dict[str, dict[str, None]] = {}  # of the agent, by the column that tells them
        self.left: Counter[str] = Counter()
        self.given: Counter[str] = Counter()  # runs of which an option says the field
        self.differs: set[str] = set()  # fields of which some run says something else than the option
        self._shapes: Counter[tuple[str, ...]] = Counter()  # the fields of a record
        self._numbers: Counter[str] = Counter()
        self.words: dict[str, Counter[str]] = {"condition": Counter(), "outcome": Counter()}
        self.rows, self.trials, self.single = SeenHashes(), SeenHashes(), SeenHashes()
        self._files = Index()
        self._places = array("q")  # of each record the number of its file and its line there

    def components(self, **names: str | None) -> None:
        """State the agent's name, and of what it is made: the name of each role, pinned by nothing."""
        parts = [
            {"role": role, "name": name[:MAX_TEXT], "pinned": False} for role, name in names.items() if name
        ]
        self.agent_document = {"name": self.agent, "components": parts}

    def temperature(self, value: Any) -> None:
        """State the temperature, where the source has one that the manifest can hold."""
        if isinstance(value, int | float) and 0 <= value <= 10:  # noqa: PLR2004 - as in the manifest
            self.protocol.setdefault("temperature", float(value))

    def repeat(self, name: str) -> int:
        """Return how often `repeat` was called with this name before."""
        self._numbers[name] += 1
        return self._numbers[name] - 1

    def write(
        self, fields: Mapping[str, Any], place: Place, log: tuple[str, bytes] | None = None
    ) -> list[Fault]:
        """Write one record, or return why it cannot be written. Fields that are None are left out.

        `log` is the run's, with its form, to be enclosed.
        """
        row = {name: value for name, value in fields.items() if value is not None}
        try:
            self.writer.add(row, log)
        except ValueError as error:
            return [place.fault("values that JSON has", str(error))]
        self.records += 1
        self._shapes[(*row, *(["trace"] * (log is not None)))] += 1
        for name, counts in self.words.items():
            counts[str(row.get(name))] += 1
        self._places.extend((self._files[place.file], place.line))
        return []

    def faults(self) -> Faults:
        """Return what is wrong with the records, at their places in the source; their file must be closed."""
        self.rows, self.trials, self.single = (
            SeenHashes(),
            SeenHashes(),
            SeenHashes(),
        )  # their memory is needed now
        if not self.records:
            return Faults()
        names, places = list(self._files), self._places
        return all_faults(
            self.writer.folder / RECORD_FILE, lambda index: (names[places[2 * index]], places[2 * index + 1])
        )

    def describe_fields(self, details: Mapping[str, str] = MappingProxyType({})) -> None:
        """Note which record fields were filled, on how many records, and which never were.

        `details` says of a filled field what it was made of. A field that has an "unmeasured" note
        already is not named again.
        """
        by = {name: filter(None, (counted(words), details.get(name))) for name, words in self.words.items()}
        details = {**details, **{name: ", ".join(parts) for name, parts in by.items()}}
        noted = self.notes.counted("unmeasured")
        filled = Counter[str]()
        for fields, count in self._shapes.items():
            filled.update(dict.fromkeys(fields, count))
        for name in [*FIELDS, *sorted(filled.keys() - set(FIELDS))]:
            if count := filled[name]:
                self.notes.add("filled", name, details.get(name), count=count)
        never = [name for name in FIELDS if not filled[name] and name not in noted]
        if never and self.records:
            detail = "the source has nothing that fills: " + ", ".join(never)
            self.notes.add("unmeasured", f"{len(never)} {OTHERS}", detail, count=self.records)
