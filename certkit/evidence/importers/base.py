"""What all importers share: options, the account, the writing of checked records.

An importer reads one source and makes one or more `Draft`s, each of which becomes a bundle. A draft
passes every row through the same door as evidence that is read later, so that an import cannot write
what an assessment would refuse. Faults are collected over the whole source; one fault refuses it.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path  # noqa: TC003 - msgspec resolves the annotation at run time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import Struct

from certkit import base, canonical, files
from certkit.canonical import Digest  # noqa: TC001 - msgspec resolves the annotation at run time
from certkit.errors import InputError, UsageError
from certkit.evidence.bundle import folder as bundle
from certkit.evidence.bundle.manifest import (
    MANIFEST_NAME,
    MANIFEST_SCHEMA,
    UNVERSIONED,
    Agent,
    Imported,
    ImportNote,
    ImportSource,
    Manifest,
)
from certkit.evidence.importers.repeats import Repeats
from certkit.evidence.reading.lines import check_line
from certkit.evidence.records.faults import LIMIT, Fault
from certkit.evidence.records.record import (
    ATTACK_FIELDS,
    FAULT_FIELDS,
    FIELDS,
    MAX_LINE,
    Condition,
    Record,
    may_be_attacked,
)
from certkit.evidence.records.rules import contradictions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import IO

    from certkit.progress import Progress

MAX_SOURCES_NAMED: Final = 1000
"""Source files that the manifest names; beyond it only their number is kept."""

RECORD_FILE: Final = "records/runs.jsonl"

MAX_AGENTS: Final = 64
"""Agents in one source."""

_KINDS: Final = ("filled", "unmeasured", "odd", "refused")
# Control characters and those that turn the direction of text: they change what a terminal shows.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NAMES: Final = ("run_id", "domain", "task_id", "condition", "cluster_id")

Kind = Literal["filled", "unmeasured", "odd", "refused"]


class ImportOptions(Struct, frozen=True, kw_only=True):
    """What the user chose.

    `agent` renames the agent, or picks one where the source holds several; `models` keeps only these
    agents of the source. `success` is ``strict`` (an attacked run succeeds if the task was done and the
    attack failed) or ``utility`` (the task was done); only sources that tell both apart look at it.
    """

    agent: str | None = None
    agent_version: str | None = None
    mapping: Path | None = None
    success: Literal["strict", "utility"] = "strict"
    seal: bool = True
    models: tuple[str, ...] = ()


class ImportAccount(Struct, frozen=True, kw_only=True):
    """What an import made of one agent: the bundle at `out`, and the account that its manifest holds.

    `digest` is the bundle's digest where it was sealed, else None.
    """

    out: Path
    agent: Agent
    digest: Digest | None
    imported: Imported


class Importer(Struct, frozen=True, kw_only=True):
    """A format that can be imported: one line about it, what reads it into drafts, and its own options.

    `options` names the fields of `ImportOptions` that only some formats look at and this one does.
    """

    description: str
    options: frozenset[str]
    read: Callable[[Job], Sequence[Draft]]


class ImportFaultsError(InputError):
    """Rows of a source were refused, and the import with them. `total` counts all faults."""

    def __init__(self, faults: list[Fault], total: int) -> None:
        noun = "fault" if total == 1 else "faults"
        shown = f", the first {len(faults)} are" if total > len(faults) else ""
        super().__init__(
            "import.row",
            f"{total:,} {noun} in the source{shown}\n  " + "\n  ".join(str(fault) for fault in faults),
            hint="nothing is skipped or repaired in silence; mend the source, or map it otherwise",
        )
        self.faults = faults
        self.total = total

    def to_dict(self) -> dict[str, object]:
        """Return the error with its faults as the JSON document that ``--json`` prints."""
        noun = "fault" if self.total == 1 else "faults"
        shown = [{name: getattr(fault, name) for name in Fault.__struct_fields__} for fault in self.faults]
        return super().to_dict() | {
            "message": f"{self.total:,} {noun} in the source",
            "total": self.total,
            "faults": shown,
        }


class Faults:
    """The faults met so far: the first `LIMIT` in full, and the number of all."""

    def __init__(self) -> None:
        self._first: list[Fault] = []
        self.total = 0

    def add(self, fault: Fault) -> None:
        """Note one fault."""
        self.total += 1
        if len(self._first) < LIMIT:
            self._first.append(fault)

    def raise_if_any(self) -> None:
        """Raise `ImportFaultsError` where a fault was noted."""
        if self.total:
            raise ImportFaultsError(self._first, self.total)


class Place(Struct, frozen=True):
    """A row of a source."""

    file: str
    line: int

    def fault(self, expected: str, found: str, *, pointer: str = "", code: str = "import.row") -> Fault:
        """Return a fault of this row."""
        return Fault(
            file=self.file,
            line=self.line,
            pointer=pointer,
            code=code,
            expected=expected,
            found=printable(found),
        )


def typed_fault(place: Place, expected: str, error: msgspec.ValidationError) -> Fault:
    """Return the fault of a row whose type msgspec refused."""
    reason, _, path = str(error).partition(" - at `$")
    pointer = path.rstrip("`").replace("[...]", "").replace(".", "/").replace("[", "/").replace("]", "")
    return place.fault(expected, reason[:1].lower() + reason[1:], pointer=pointer)


class Notes:
    """The account under way: how often each thing happened."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[Kind, str]] = Counter()
        self._details: dict[tuple[Kind, str], str] = {}

    def add(self, kind: Kind, what: str, detail: str | None = None, *, count: int = 1) -> None:
        """Count `what`; the first `detail` given stays."""
        key = (kind, printable(what)[:500])
        self._counts[key] += count
        if detail:
            self._details.setdefault(key, printable(detail)[:2000])

    def counted(self) -> set[tuple[Kind, str]]:
        """Return what was counted so far, as (kind, what)."""
        return set(self._counts)

    def to_notes(self) -> tuple[ImportNote, ...]:
        """Return all that was counted, by kind, else in the order in which it was first met."""
        return tuple(
            ImportNote(kind=kind, what=what, count=count, detail=self._details.get((kind, what)))
            for wanted in _KINDS
            for (kind, what), count in self._counts.items()
            if kind == wanted and count
        )


class Draft:
    """A bundle being written: its records so far, its account, its protocol.

    `agent` is the name in the source; `agent_document` and `protocol` are what the importer knows of these
    parts of the manifest; `options` is what the account says of the user's choices.
    """

    def __init__(self, folder: Path, stream: IO[bytes], agent: str, subfolder: str = "") -> None:
        self.folder, self.agent, self.subfolder = folder, agent, subfolder
        self.notes = Notes()
        self.protocol: dict[str, Any] = {"origin": "measured"}
        self.agent_document: dict[str, Any] = {}
        self.options: dict[str, str] = {}
        self.records = 0
        self._stream = stream
        self._filled: Counter[str] = Counter()
        self._conditions: Counter[str] = Counter()
        self._repeats = Repeats()

    def write(self, fields: Mapping[str, Any], place: Place) -> list[Fault]:
        """Write one record, or return what is wrong with it. Fields that are None are left out."""
        row = {name: value for name, value in fields.items() if value is not None}
        for name in _NAMES:
            if isinstance(value := row.get(name), str) and _UNPRINTABLE.search(value):
                return [place.fault("text without control characters", value, pointer=f"/{name}")]
        try:
            line = canonical.line(row)
        except ValueError as error:
            return [place.fault("values that JSON has", str(error))]
        # Rows that are plainly right are the rule, and cost a fifth of a full look.
        if not _plainly_right(row, line):
            checked = check_line(line.rstrip(b"\n"), place.line)
            if isinstance(checked, list):
                return [
                    place.fault(item.expected, item.found, pointer=item.pointer, code=item.code)
                    for item in checked
                ]
        self._stream.write(line)
        self.records += 1
        self._filled.update(row.keys())
        self._conditions[row["condition"]] += 1
        self._repeats.add(row, place.line)
        return []

    def repetitions(self) -> Iterator[Fault]:
        """Yield what contradicts between records; the record file must be closed."""
        with (self.folder / RECORD_FILE).open("rb") as written:
            yield from self._repeats.faults(written)

    def describe_fields(self, details: Mapping[str, str] = MappingProxyType({})) -> None:
        """Note which record fields were filled, on how many records, and which never were.

        `details` says of a filled field what it was made of. A field that has an "unmeasured" note
        already is not named again.
        """
        said = {what for kind, what in self.notes.counted() if kind == "unmeasured"}
        for name in [*FIELDS, *sorted(self._filled.keys() - set(FIELDS))]:
            count, eligible = self._filled[name], self._eligible(name)
            if count:
                self.notes.add("filled", name, details.get(name), count=count)
            if 0 < count < eligible and name not in said:
                detail = "the source leaves it empty on these records"
                self.notes.add("unmeasured", name, detail, count=eligible - count)
        never = [name for name in FIELDS if not self._filled[name] and name not in said]
        if never and self.records:
            detail = "the source has nothing that fills: " + ", ".join(never)
            self.notes.add("unmeasured", f"{len(never)} other record fields", detail, count=self.records)

    def _eligible(self, name: str) -> int:
        """Return how many of the records may carry field `name` at all."""
        if name in ATTACK_FIELDS:
            return sum(count for condition, count in self._conditions.items() if may_be_attacked(condition))
        if name in FAULT_FIELDS:
            return self.records - self._conditions[Condition.NOMINAL]
        return self.records


class Job(Struct, frozen=True, kw_only=True):
    """One import under way: from `source` into the bundle folder(s) under `folder`."""

    source: Path
    folder: Path
    options: ImportOptions
    progress: Progress
    open_file: Callable[[Path], IO[bytes]]
    faults: Faults
    sources: list[ImportSource]
    drafts: list[Draft]

    def draft(self, agent: str, subfolder: str = "") -> Draft:
        """Begin the bundle of `agent`, at `subfolder` of the output."""
        folder = self.folder / subfolder if subfolder else self.folder
        draft = Draft(folder, self.open_file(folder / RECORD_FILE), agent, subfolder)
        self.drafts.append(draft)
        return draft

    def write(self, draft: Draft, fields: Mapping[str, Any], place: Place) -> None:
        """Write one record; what is wrong with it goes to the faults of the import."""
        for fault in draft.write(fields, place):
            self.faults.add(fault)


def _plainly_right(row: dict[str, Any], line: bytes) -> bool:
    """Tell whether a row is certainly a valid record; False means that it needs a closer look."""
    if len(line) > MAX_LINE or any(name not in FIELDS for name in row):
        return False
    try:
        return not contradictions(msgspec.convert(row, Record, strict=True))
    except msgspec.ValidationError:
        return False


def printable(text: str) -> str:
    """Return `text` with control characters written as escapes."""
    return _UNPRINTABLE.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


def choose(found: Sequence[str], options: ImportOptions) -> str:
    """Return which one of the agents in a source is meant.

    Raises `InputError` ``import.choice-needed`` where there are several and `options` names none of them.
    """
    if len(found) == 1:
        return found[0]
    if options.agent in found:
        return str(options.agent)
    names = ", ".join(printable(name) for name in sorted(found)[:MAX_AGENTS])
    asked = f", none called {printable(options.agent)!r}" if options.agent else ""
    raise InputError(
        "import.choice-needed",
        f"the source holds {len(found)} agents{asked}: {names}",
        hint="choose one with --agent NAME",
    )


def finish(draft: Draft, job: Job, name: str, out: Path) -> ImportAccount:
    """Write the manifest of a draft whose records are closed, seal it, and return its account."""
    options = job.options
    agent = draft.agent_document | {"name": options.agent or draft.agent_document.get("name") or draft.agent}
    agent["version"] = options.agent_version or agent.get("version") or UNVERSIONED
    if _UNPRINTABLE.search(agent["name"]) or not agent["name"]:
        raise UsageError(
            "usage.option",
            f"agent name {printable(agent['name'])!r} cannot be printed",
            hint="give another one with --agent NAME",
        )
    imported = Imported(
        format=name,
        sources=tuple(sorted(job.sources, key=lambda item: item.name)[:MAX_SOURCES_NAMED]),
        sources_total=len(job.sources),
        records=draft.records,
        options=draft.options,
        notes=draft.notes.to_notes(),
    )
    document = {
        "schema": MANIFEST_SCHEMA,
        "agent": agent,
        "protocol": draft.protocol,
        "imported": imported.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
    manifest = base.validate(Manifest, document, code="import.source", where=MANIFEST_NAME)
    files.write(draft.folder / MANIFEST_NAME, canonical.pretty(manifest.to_dict()).encode())
    digest = bundle.seal(draft.folder).facts.digest if options.seal else None
    return ImportAccount(
        out=out / draft.subfolder if draft.subfolder else out,
        agent=manifest.agent,
        digest=digest,
        imported=imported,
    )
