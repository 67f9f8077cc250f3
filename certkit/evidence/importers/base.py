"""What all importers share: options, the account of the import, writing checked records.

An importer yields the `Run`s of a source. Each goes into the `Draft` of its agent, which becomes a bundle. A
draft checks every row as records are checked when evidence is read, so that an import cannot write what an
assessment would refuse. Faults are collected over the whole source; any fault refuses it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path  # noqa: TC003 - msgspec resolves the annotation at run time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, TypeVar

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
    unsafe_path,
)
from certkit.evidence.importers.mapping import zone
from certkit.evidence.importers.repeats import Repeats
from certkit.evidence.importers.source import MAX_LOG_ROW, MAX_ROW, opening
from certkit.evidence.reading.lines import check_line
from certkit.evidence.records.faults import LIMIT, Fault, FaultsError
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
from certkit.progress import SILENT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import IO
    from zoneinfo import ZoneInfo

    from certkit.evidence.importers.source import Source
    from certkit.progress import Progress

MAX_SOURCES_NAMED: Final = 1000
"""Source files that the manifest names; of further ones it keeps the number."""

RECORD_FILE: Final = "records/runs.jsonl"

MAX_AGENTS: Final = 64
"""Agents in one source."""

MAX_FILES: Final = 1_000_000
MAX_SHOWN: Final = 200
"""Characters of a found value that a fault shows."""

_KINDS: Final = ("filled", "unmeasured", "odd", "refused")
# Control characters and marks that change the direction of text: they change what a terminal shows.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NAMES: Final = ("run_id", "domain", "task_id", "condition", "cluster_id")

Kind = Literal["filled", "unmeasured", "odd", "refused"]


class ImportOptions(Struct, frozen=True, kw_only=True):
    """What the user chose.

    `agent` renames the agent, or picks one where the source holds several; `split_by` makes a bundle of each
    agent (``agent``) or of each value of a column. `domain` and `condition` fill these fields where the
    source has none. `success` is an expression over the row, or, for AgentDojo, ``strict`` (an attacked run
    succeeds if the task was done and the attack failed) or ``utility`` (the task was done).
    `tasks_independent`, `attempt` and `task_salt` go into the manifest: no salt is drawn here, so that
    importing again gives the same bytes.
    """

    agent: str | None = None
    agent_version: str | None = None
    mapping: Path | None = None
    split_by: str | None = None
    domain: str | None = None
    condition: str | None = None
    success: str | None = None
    timezone: str | None = None
    encoding: str | None = None
    tasks_independent: bool | None = None
    attempt: int | None = None
    seal: bool = True
    task_salt: str | None = None


class ImportAccount(Struct, frozen=True, kw_only=True):
    """The bundle that an import made of an agent, at `out`, and the account that its manifest holds.

    `digest` is the bundle's digest; None where the bundle is not sealed.
    """

    out: Path
    agent: Agent
    digest: Digest | None
    imported: Imported


class Run(NamedTuple):
    """A run as an importer found it.

    `agent` is its name in the source, empty where the source has none. `row` is what the paths of a mapping
    lead into; `fields` are the record fields that the importer fills from it.
    """

    agent: str
    place: Place
    row: dict[str, Any]
    fields: dict[str, Any]


class Importer:
    """Reads the runs of a source; subclasses know one format.

    `cells`: the values of rows are texts, as in CSV. `tabular`: rows are flat, a column that has the name of
    a record field fills it, and columns that fill nothing are reported.
    """

    cells = tabular = False

    def __init__(self, job: Job) -> None:
        self.job = job
        self.hints: dict[str, str] = {}
        """How the user can state a required field that a run does not have."""

    def runs(self) -> Iterator[Run]:
        """Yield the runs; faults of rows that cannot be read are added to the job's."""
        raise NotImplementedError

    def close(self, draft: Draft) -> dict[str, str]:
        """Fill the protocol of a bundle; return of record fields what they were made of."""
        del draft
        return {}


class ImportFaultsError(FaultsError):
    """Rows of a source were refused, and the import with them; like faults are shown together."""

    refusal = "import.row"
    lines = "source"
    advice = "nothing was imported; correct these rows, or mend the mapping: certkit import LOG --suggest"

    def __init__(self, faults: GroupedFaults) -> None:
        super().__init__(faults.listed(), faults.total)
        shown = [_group(fault, rows) for fault, rows in faults.groups()]
        self.message = f"{self._counted(self.total)}\n  " + "\n  ".join(shown)


SHOWN: Final = 20
"""Groups of like faults that are shown."""


class GroupedFaults:
    """The faults of an import; of like ones the number and the first three are kept."""

    def __init__(self) -> None:
        self.total = 0
        self._groups: dict[tuple[str, str, str, str], tuple[list[Fault], list[int]]] = {}

    def note(self, faults: Iterable[Fault]) -> None:
        """Add faults; of more than `LIMIT` different ones only the number is kept."""
        for fault in faults:
            self.total += 1
            key = (fault.pointer, fault.code, fault.expected, fault.found)
            if key in self._groups or len(self._groups) < LIMIT:
                first, count = self._groups.setdefault(key, ([], [0]))
                count[0] += 1
                if len(first) < 3:  # noqa: PLR2004 - enough to find the rows
                    first.append(fault)

    def groups(self) -> list[tuple[list[Fault], int]]:
        """Return the first faults of each group with their number, in the order in which they were met."""
        return [(first, count[0]) for first, count in self._groups.values()]

    def listed(self) -> list[Fault]:
        """Return the faults that were kept, in the order of the rows where they are of one file."""
        return sorted((fault for first, _ in self.groups() for fault in first), key=lambda fault: fault.line)[
            :LIMIT
        ]


def _group(faults: list[Fault], count: int) -> str:
    if count == 1:
        return str(faults[0])
    same = [fault for fault in faults if fault.file == faults[0].file and fault.line != faults[0].line]
    lines = ", ".join([f"{faults[0].file}:{faults[0].line}", *(str(fault.line) for fault in same)])
    return f"{count:,} rows (first {lines}){faults[0].what()}"


class Place(Struct, frozen=True):
    """A row of a source."""

    file: str
    line: int

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
            found=printable(actual if len(actual) <= MAX_SHOWN else actual[: MAX_SHOWN - 1] + "…"),
            hint=hint,
        )


Typed = TypeVar("Typed")


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

    def __init__(self, folder: Path, stream: IO[bytes], agent: str, subfolder: str) -> None:
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
        self._numbers: Counter[str] = Counter()
        self._rows: set[bytes] = set()
        self.left: Counter[str] = Counter()
        """Columns that filled no field, with the rows that had them."""

    def seen(self, row: Mapping[str, Any]) -> bool:
        """Tell whether an equal row was seen before."""
        digest = hashlib.blake2b(repr(row).encode(errors="surrogatepass"), digest_size=16).digest()
        again = digest in self._rows
        self._rows.add(digest)
        return again

    def repeat(self, name: str) -> int:
        """Return how often `repeat` was called with this name before."""
        self._numbers[name] += 1
        return self._numbers[name] - 1

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


class Job:
    """An import in progress, from `source` into the bundle folder(s) under `folder`."""

    def __init__(
        self,
        source: Path,
        folder: Path,
        options: ImportOptions,
        progress: Progress,
    ) -> None:
        self.source, self.folder, self.options, self.progress = source, folder, options, progress
        self.name = printable(source.resolve().name)
        self.faults = GroupedFaults()
        self.sources: list[ImportSource] = []
        self.drafts: dict[tuple[str, str], Draft] = {}
        self._stack = ExitStack()
        self._slugs: set[str] = set()
        self.left_out = self._links = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def close_files(self) -> None:
        """Close the record files; nothing can be written afterwards."""
        self._stack.close()

    @cached_property
    def zone(self) -> ZoneInfo | None:
        """The time zone that the user gave."""
        try:
            return zone(self.options.timezone)
        except ValueError as error:
            raise UsageError("usage.option", f"--timezone: {error}") from None

    def draft(self, agent: str, part: str = "") -> Draft:
        """Return the bundle of `agent` and, where the user splits by a column, of its value `part`."""
        draft = self.drafts.get((agent, part))
        if draft is None:
            if len(self.drafts) == MAX_AGENTS:
                raise InputError("import.source", f"more than {MAX_AGENTS} agents or parts", where=self.name)
            slug = (
                portable(part or agent, self._slugs) if self.options.split_by else f"part-{len(self.drafts)}"
            )
            self._slugs.add(slug)
            stream = self._stack.enter_context(files.writing(self.folder / slug / RECORD_FILE))
            draft = Draft(self.folder / slug, stream, agent, slug)
            self.drafts[agent, part] = draft
        return draft

    @contextmanager
    def peeking(self) -> Iterator[Source]:
        """Open the source to look at its beginning."""
        with opening(self.source, self.name, SILENT) as source:
            yield source

    @contextmanager
    def opening(self, path: Path, name: str | None = None) -> Iterator[Source]:
        """Open a file of the source, and note its digest when the block ends."""
        with opening(path, self.name if name is None else name, self.progress) as source:
            yield source
            self.sources.append(source.facts())

    def files(self, suffixes: tuple[str, ...]) -> list[tuple[Path, str]]:
        """Return the source, or the files below it that end so, with the names that places show.

        Links are not followed; they and the other files are counted.
        """
        if not self.source.is_dir():
            return [(self.source, self.name)]
        chosen_files = []
        for path, link in files.inside(self.source):
            if link:
                self._links += 1
            elif path.name.endswith(suffixes):
                chosen_files.append((path, printable("/".join(path.relative_to(self.source).parts))))
            else:
                self.left_out += 1
            if len(chosen_files) > MAX_FILES:
                raise InputError("import.source", f"more than {MAX_FILES:,} files", where=self.name)
        return sorted(chosen_files, key=lambda item: item[1])

    def note_files(self, draft: Draft) -> None:
        """Note which files of a folder were not read."""
        for what, count in (("other files in the folder", self.left_out), ("symbolic links", self._links)):
            if count:
                draft.notes.add("refused", what, "not read", count=count)

    def load(self, data: bytes, place: Place) -> dict[str, Any] | None:
        """Return the JSON object that a row is, read strictly; add a fault where it is none."""
        try:
            row = canonical.loads(data, max_bytes=MAX_ROW)
        except InputError as error:
            self.refuse(place.fault("one JSON object", error.message, code=error.code))
            return None
        if not isinstance(row, dict):
            self.refuse(place.fault("one JSON object", type(row).__name__))
            return None
        return row

    def typed(self, row: Any, type_: type[Typed], place: Place, expected: str) -> Typed | None:
        """Return a row, or its JSON bytes, as a struct; add a fault where it does not have that form."""
        try:
            if not isinstance(row, bytes):
                return msgspec.convert(row, type_)
            if b"NaN" in row or b"Infinity" in row:
                row = canonical.loads(row, max_bytes=MAX_LOG_ROW, constants=True)
                return msgspec.convert(row, type_)
            return msgspec.json.decode(row, type=type_)
        except msgspec.ValidationError as error:
            self.refuse(typed_fault(place, expected, error))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InputError) as error:
            self.refuse(place.fault(expected, str(error), code=getattr(error, "code", "json.syntax")))
        return None

    def refuse(self, *faults: Fault) -> None:
        """Add faults."""
        self.faults.note(faults)

    def refuse_faults(self) -> None:
        """Raise `ImportFaultsError` where a fault was added."""
        if self.faults.total:
            raise ImportFaultsError(self.faults)

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


def portable(name: str, taken: Collection[str]) -> str:
    """Return a folder name for an agent that every file system can store and that is not taken."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._") or "agent"
    plain = plain[:80].rstrip("-._")
    if unsafe_path(plain):
        plain = f"agent-{plain}"
    slug, number = plain, 1
    while slug in taken:
        number += 1
        slug = f"{plain}-{number}"
    return slug


def chosen(job: Job, wanted: str) -> list[Draft]:
    """Return the bundles that the user wants of those that the source holds; `wanted` describes the format.

    Raises `InputError` ``import.choice-needed`` where there are several agents and the user chose none.
    """
    options, agents = job.options, list(dict.fromkeys(agent for agent, _ in job.drafts))
    if not agents:
        raise InputError("import.source", "holds no runs", where=job.name, hint=f"expected {wanted}")
    drafts = list(job.drafts.values())
    if len(agents) > 1 and options.agent in agents:
        drafts, agents = [draft for draft in drafts if draft.agent == options.agent], [options.agent]
    named = options.agent is not None or options.agent_version is not None
    if len(agents) > 1 and (options.split_by is None or named):
        names = ", ".join(map(printable, sorted(agents)))
        asked = f", none called {printable(options.agent)!r}" if options.agent else ""
        raise InputError(
            "import.choice-needed",
            f"the source holds {len(agents)} agents{asked}: {names}",
            where=job.name,
            hint="choose one with --agent NAME, or make a bundle of each with --split-by agent",
        )
    return drafts


def finish(draft: Draft, job: Job, name: str, out: Path) -> ImportAccount:
    """Write the manifest of a draft whose records are closed, seal it, and return its account."""
    options = job.options
    agent = draft.agent_document | {"name": options.agent or draft.agent_document.get("name") or draft.agent}
    agent["version"] = options.agent_version or agent.get("version") or UNVERSIONED
    if not agent["name"]:
        hint = "give --agent NAME, or `name` under `[agent]` in the mapping"
        raise InputError("import.choice-needed", "the log does not name the agent", where=job.name, hint=hint)
    if _UNPRINTABLE.search(agent["name"]):
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
    declared = {name: getattr(options, name) for name in ("tasks_independent", "attempt", "task_salt")}
    document = {
        "schema": MANIFEST_SCHEMA,
        "agent": agent,
        "protocol": draft.protocol | {name: value for name, value in declared.items() if value is not None},
        "imported": imported.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
    manifest = base.validate(Manifest, document, code="import.source", where=MANIFEST_NAME)
    files.write(draft.folder / MANIFEST_NAME, canonical.pretty(manifest.to_dict()).encode())
    digest = bundle.seal(draft.folder).facts.digest if options.seal else None
    return ImportAccount(
        out=out / draft.subfolder if job.options.split_by else out,
        agent=manifest.agent,
        digest=digest,
        imported=imported,
    )
