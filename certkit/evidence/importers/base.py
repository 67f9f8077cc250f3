"""What all importers share: options, the account of the import, writing checked records.

An importer reads a source into one or more `Draft`s; each becomes a bundle. A draft checks every row as
records are checked when evidence is read, so that an import cannot write what an assessment would refuse.
Faults are collected over the whole source; any fault refuses it.
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
from certkit.evidence.records.faults import Fault, Faults, FaultsError
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
"""Source files that the manifest names; of further ones it keeps the number."""

RECORD_FILE: Final = "records/runs.jsonl"

MAX_AGENTS: Final = 64
"""Agents in one source."""

_KINDS: Final = ("filled", "unmeasured", "odd", "refused")
# Control characters and marks that change the direction of text: they change what a terminal shows.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NAMES: Final = ("run_id", "domain", "task_id", "condition", "cluster_id")

Kind = Literal["filled", "unmeasured", "odd", "refused"]


class ImportOptions(Struct, frozen=True, kw_only=True):
    """What the user chose.

    `agent` renames the agent, or picks one where the source holds several; `models` keeps only these
    agents of the source. `task_salt` goes into the manifest: no salt is drawn here, so that importing again
    gives the same bytes. `success` is ``strict`` (an attacked run succeeds if the task was done and the
    attack failed) or ``utility`` (the task was done); only formats that log both use it.
    """

    agent: str | None = None
    agent_version: str | None = None
    mapping: Path | None = None
    success: Literal["strict", "utility"] = "strict"
    seal: bool = True
    models: tuple[str, ...] = ()
    task_salt: str | None = None


class ImportAccount(Struct, frozen=True, kw_only=True):
    """The bundle that an import made of an agent, at `out`, and the account that its manifest holds.

    `digest` is the bundle's digest; None where the bundle is not sealed.
    """

    out: Path
    agent: Agent
    digest: Digest | None
    imported: Imported


class Importer(Struct, frozen=True, kw_only=True):
    """A format that can be imported: a description, the function that reads it, and its options.

    `options` names the fields of `ImportOptions` that this format uses and others do not.
    """

    description: str
    options: frozenset[str]
    read: Callable[[Job], Sequence[Draft]]


class ImportFaultsError(FaultsError):
    """Rows of a source were refused, and the import with them."""

    refusal = "import.row"
    lines = "source"
    advice = (
        "nothing was imported; correct these rows in the {lines},"
        " or add their values to the mapping, such as to `[values.outcome]`"
    )


class Place(Struct, frozen=True):
    """A row of a source."""

    file: str
    line: int

    def fault(self, expected: str, actual: str, *, pointer: str = "", code: str = "import.row") -> Fault:
        """Return a fault of this row."""
        return Fault(
            file=self.file,
            line=self.line,
            pointer=pointer,
            code=code,
            expected=expected,
            found=printable(actual),
        )


def typed_fault(place: Place, expected: str, error: msgspec.ValidationError) -> Fault:
    """Return the fault of a row that msgspec refused."""
    reason, _, path = str(error).partition(" - at `$")
    pointer = path.rstrip("`").replace("[...]", "").replace(".", "/").replace("[", "/").replace("]", "")
    return place.fault(expected, reason[:1].lower() + reason[1:], pointer=pointer)


class Notes:
    """Counts what happened during an import."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[Kind, str]] = Counter()
        self._details: dict[tuple[Kind, str], str] = {}

    def add(self, kind: Kind, what: str, detail: str | None = None, *, count: int = 1) -> None:
        """Count `what`; the first `detail` is kept."""
        key = (kind, printable(what)[:500])
        self._counts[key] += count
        if detail:
            self._details.setdefault(key, printable(detail)[:2000])

    def counted(self) -> set[tuple[Kind, str]]:
        """Return what was counted so far, as pairs (kind, what)."""
        return set(self._counts)

    def to_notes(self) -> tuple[ImportNote, ...]:
        """Return all that was counted, by kind, then in the order of the first occurrence."""
        return tuple(
            ImportNote(kind=kind, what=what, count=count, detail=self._details.get((kind, what)))
            for wanted in _KINDS
            for (kind, what), count in self._counts.items()
            if kind == wanted and count
        )


class Draft:
    """A bundle being written: its records so far, its account, its protocol.

    `agent` is the name in the source; `agent_document` and `protocol` are the parts of the manifest that the
    importer fills; `options` are the user's choices as the account states them.
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
        # Most rows are right, and this check takes a fifth of the time of the full one.
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
        """Yield contradictions between records; the record file must be closed."""
        with (self.folder / RECORD_FILE).open("rb") as written:
            yield from self._repeats.faults(written)

    def describe_fields(self, details: Mapping[str, str] = MappingProxyType({})) -> None:
        """Note which record fields were filled, on how many records, and which never were.

        `details` says of a filled field what it was made of. A field that has an "unmeasured" note
        already is not named again.
        """
        noted = {what for kind, what in self.notes.counted() if kind == "unmeasured"}
        for name in [*FIELDS, *sorted(self._filled.keys() - set(FIELDS))]:
            count, eligible = self._filled[name], self._eligible(name)
            if count:
                self.notes.add("filled", name, details.get(name), count=count)
            if 0 < count < eligible and name not in noted:
                detail = "the source leaves it empty on these records"
                self.notes.add("unmeasured", name, detail, count=eligible - count)
        never = [name for name in FIELDS if not self._filled[name] and name not in noted]
        if never and self.records:
            detail = "the source has nothing that fills: " + ", ".join(never)
            self.notes.add("unmeasured", f"{len(never)} other record fields", detail, count=self.records)

    def _eligible(self, name: str) -> int:
        """Return how many of the records may have field `name`."""
        if name in ATTACK_FIELDS:
            return sum(count for condition, count in self._conditions.items() if may_be_attacked(condition))
        if name in FAULT_FIELDS:
            return self.records - self._conditions[Condition.NOMINAL]
        return self.records


class Job(Struct, frozen=True, kw_only=True):
    """An import in progress, from `source` into the bundle folder(s) under `folder`."""

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

    def refuse_faults(self) -> None:
        """Raise `ImportFaultsError` where a fault was added."""
        if self.faults:
            raise ImportFaultsError(self.faults, self.faults.total)

    def write(self, draft: Draft, fields: Mapping[str, Any], place: Place) -> None:
        """Write a record, or add its faults to those of the import."""
        self.faults.note(draft.write(fields, place))


def _plainly_right(row: dict[str, Any], line: bytes) -> bool:
    """Tell whether a row is certainly a valid record; False means that the full check decides."""
    if len(line) > MAX_LINE or any(name not in FIELDS for name in row):
        return False
    try:
        return not contradictions(msgspec.convert(row, Record, strict=True))
    except msgspec.ValidationError:
        return False


def printable(text: str) -> str:
    """Return `text` with control characters written as escapes."""
    return _UNPRINTABLE.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


def choose(agents: Sequence[str], options: ImportOptions) -> str:
    """Return the only agent of a source, or the agent that `options` names.

    Raises `InputError` ``import.choice-needed`` where there are several and `options` names none of them.
    """
    if len(agents) == 1:
        return agents[0]
    if options.agent in agents:
        return str(options.agent)
    names = ", ".join(printable(name) for name in sorted(agents)[:MAX_AGENTS])
    asked = f", none called {printable(options.agent)!r}" if options.agent else ""
    raise InputError(
        "import.choice-needed",
        f"the source holds {len(agents)} agents{asked}: {names}",
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
            hint="give another name with --agent NAME",
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
        "protocol": draft.protocol | ({} if options.task_salt is None else {"task_salt": options.task_salt}),
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
