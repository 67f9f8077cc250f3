"""What all importers share: options, the runs of a source, the bundles being written, the account of it.

An importer yields the `Run`s of a source. Each goes into the `Draft` of its agent, which becomes a bundle.
What was written is read once more, as evidence is read, so that an import cannot make what an assessment
would refuse. Faults are collected over the whole source; any fault refuses it.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, Self, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from certkit.bundle.manifest import Agent, Imported, ImportSource, unsafe_path
from certkit.bundle.writer import BundleWriter
from certkit.ground import canonical, files
from certkit.ground.canonical import Digest
from certkit.ground.errors import InputError, UsageError
from certkit.ground.text import visible
from certkit.imports.drafts import Draft, Place
from certkit.imports.inspect_trial import InspectTrial  # noqa: TC001 - a NamedTuple's annotation
from certkit.imports.mapping import NO_TIME_ZONE, read_time, zone
from certkit.imports.source import MAX_ROW, opening
from certkit.record import trace as traces
from certkit.record.expressions import MISSING, look_up, shell
from certkit.record.faults import Fault, Faults, FaultsError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from types import TracebackType
    from zoneinfo import ZoneInfo

    from certkit.ground.progress import Progress
    from certkit.imports.drafts import Notes
    from certkit.imports.source import Source

MAX_AGENTS: Final = 64  # agents in one source

MAX_FILES: Final = 1_000_000
CHOICES: Final = ("split_by", "domain", "condition", "success", "timezone", "encoding")
"""Options that decide what the records are; the manifest names them."""

ASSESS: Final = (
    "agent",
    "mapping",
    "domain",
    "condition",
    "success",
    "timezone",
    "encoding",
    "tasks_independent",
    "attempt",
)
"""Options of an import that ``certkit assess LOG`` takes."""


class ImportOptions(Struct, frozen=True, kw_only=True):
    """What the user chose.

    `agent` renames the agent, or picks one where the source holds several; `split_by` makes a bundle of each
    agent (``agent``) or of each value of a column. `domain` and `condition` fill these fields where the
    source has none. `success` is an expression over the row, or, for AgentDojo, ``strict`` (an attacked run
    succeeds if the task was done and the attack failed) or ``utility`` (the task was done).
    `traces` encloses the transcripts of the formats that have them.
    `tasks_independent`, `attempt` and `task_salt` go into the manifest: no salt is drawn here, so that
    importing again gives the same bytes. `format` is the one that the user named, None where it is found by
    content; `like` is the bundle whose salt `task_salt` is. Printed commands repeat both.
    `assess` holds the further options of ``certkit assess LOG`` where that is the user's command, None where
    it is ``certkit import``: a printed command is the user's own wherever it has the options.
    """

    format: str | None = None
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
    traces: bool = True
    task_salt: str | None = None
    like: Path | None = None
    assess: str | None = None

    @property
    def assessable(self) -> bool:
        """Whether the user's command is ``certkit assess LOG``, and it has the options that are chosen."""
        plain = ImportOptions(**{name: getattr(self, name) for name in (*ASSESS, "assess")})
        return self.assess is not None and self == plain

    def command(self, source: Path, *, verb: str = "import", **changed: Any) -> str:
        """Return the beginning of the command that imports `source` so, for a shell, with options changed."""
        chosen = replace(self, **changed)
        names = ("agent", "agent_version", *CHOICES, "attempt")
        given = [(f"--{name.replace('_', '-')}", getattr(chosen, name)) for name in names]
        given += [("--map", chosen.mapping), ("--like", chosen.like)]
        words = [str(word) for pair in given if pair[1] is not None for word in pair]
        flags = {"--independent-tasks": chosen.tasks_independent, "--no-traces": not chosen.traces}
        flags |= {"--dependent-tasks": chosen.tasks_independent is False, "--no-seal": not chosen.seal}
        words += [flag for flag, wanted in flags.items() if wanted]
        log = [chosen.format, str(source)] if chosen.format else [str(source)]
        return visible(" ".join(map(shell, ["certkit", verb, *log, *words])))


class ImportAccount(Struct, frozen=True, kw_only=True):
    """The bundle that an import made of an agent, at `out`, and the account that its manifest holds.

    `digest` is the bundle's digest; None where the bundle is not sealed. `without` names the agents of the
    same source that have no run to import, and so no bundle.
    """

    out: Path
    agent: Agent
    digest: Digest | None
    imported: Imported
    without: tuple[str, ...] = ()


class Run(NamedTuple):
    """A run as an importer found it.

    `agent` is its name in the source, empty where the source has none. `row` is what the paths of a mapping
    lead into; `fields` are the record fields that the importer fills from it. `shown` is what its transcript
    shows, and `data` its log, where this is enclosed as a trace; a run of a trial makes its own.
    """

    agent: str
    place: Place
    row: dict[str, Any]
    fields: dict[str, Any]
    shown: traces.Shown | InspectTrial = traces.Shown()
    data: bytes | None = None

    @property
    def log(self) -> tuple[str, bytes] | None:
        """The form and the bytes of the log, once its outcome is decided; None where none is enclosed."""
        if self.shown.empty or self.data is None:
            return None
        return self.shown.form, self.data if isinstance(self.shown, traces.Shown) else self.shown.data()


class Importer:
    """Reads the runs of a source; subclasses know one format.

    `cells`: the values of rows are texts, as in CSV. `tabular`: rows are flat, a column that has the name of
    a record field fills it, and columns that fill nothing are reported. `suffixes`: how the names of those
    files of a folder end that are read. `versioned`: what tells versions of an agent, in rows that are no
    table's.
    """

    cells = tabular = False
    versioned: tuple[tuple[str, ...], ...] = ()
    suffixes: tuple[str, ...] = (".json", ".jsonl")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.hints: dict[str, str] = {}
        """What a refusal says where the log states no outcome.

        ``outcome``: an expression for the user to complete, such as ``scores.a.value >= THRESHOLD``.
        ``several``: in brackets, between what the user has to choose.
        """

    def runs(self) -> Iterator[Run]:
        """Yield the runs; faults of rows that cannot be read are added to the job's."""
        raise NotImplementedError

    def rows(self) -> Iterator[tuple[dict[str, Any], Place]]:
        """Yield the rows of the source."""
        return ((row, place) for row, place, _ in self.objects())

    def objects(self) -> Iterator[tuple[dict[str, Any], Place, bytes]]:
        """Yield the JSON objects of the source with their bytes, of files in the order of their names."""
        for path, name in self.job.files(self.suffixes):
            with self.job.opening(path, name) as source:
                for line, data in source.rows():
                    row = self.job.load(data, place := Place(name, line))
                    if row is not None:
                        yield row, place, data

    def started(self, text: str | None, notes: Notes) -> dict[str, str]:
        """Return ``started_at`` for a time as a log writes it; a time without an offset is counted."""
        if text is None:
            return {}
        if (time := read_time(text, None)) is None or time.tzinfo is not None:
            return {"started_at": text}  # what is no time refuses the record
        if self.job.zone is None:
            notes.add("unmeasured", "started_at", NO_TIME_ZONE)
            return {}
        return {"started_at": time.replace(tzinfo=self.job.zone).isoformat()}

    def close(self, draft: Draft) -> dict[str, str]:
        """Fill the protocol of a bundle; return of record fields what they were made of."""
        del draft
        return {}


class ImportFaultsError(FaultsError):
    """Rows of a source were refused, and the import with them."""

    refusal = "import.row"
    lines = "source"

    def __init__(self, faults: Faults, advice: str) -> None:
        super().__init__(faults)
        self.hint = advice


Typed = TypeVar("Typed")
MAX_SHORT: Final = 4096
Short = Annotated[str, Meta(max_length=MAX_SHORT)]
"""A name or a word in a log, which is copied and printed."""


class Job:
    """An import in progress, from `source` into the bundle folder(s) under `folder`."""

    def __init__(
        self, source: Path, folder: Path, options: ImportOptions, progress: Progress, out: Path | None = None
    ) -> None:
        self.source, self.folder, self.options, self.progress = source, folder, options, progress
        self.rows: str | None = None  # the list that holds the runs, where a mapping names it
        self.lists_columns = False  # nothing is imported
        self._out = "bundle" if options.assess is not None else shell(str(out)) if out else "BUNDLE"
        self.name = visible(source.resolve().name)
        self.faults = Faults()
        self.sources: list[ImportSource] = []
        self.drafts: dict[tuple[str, str], Draft] = {}
        self._stack = ExitStack()
        self.left_out = self.blank = self._links = 0
        self.begins = array("q")  # the line at which each row of a CSV file begins, the header's first

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def close_files(self) -> None:
        """Close the record files; nothing can be written afterwards."""
        self._stack.close()

    @cached_property
    def zone(self) -> ZoneInfo | None:
        """The time zone that the user gave."""
        return zone(self.options.timezone)

    def draft(self, agent: str, part: str = "") -> Draft:
        """Return the bundle of `agent` and, where the user splits by a column, of its value `part`."""
        draft = self.drafts.get((agent, part))
        if draft is None:
            if len(self.drafts) == MAX_AGENTS:
                raise InputError("import.source", f"more than {MAX_AGENTS} agents or parts", where=self.name)
            taken = {draft.subfolder for draft in self.drafts.values()}
            slug = portable(part or agent, taken) if self.options.split_by else f"part-{len(taken)}"
            draft = Draft(self._stack.enter_context(BundleWriter(self.folder / slug)), agent, slug)
            self.drafts[agent, part] = draft
        return draft

    def part(self, agent: str, row: dict[str, Any], place: Place) -> Draft:
        """Return the bundle of a run: of its agent, or, where the user splits by a column, of its value."""
        if self.options.split_by in {None, "agent"}:
            return self.draft(agent)
        value = look_up(row, tuple(str(self.options.split_by).split(".")))
        if value is MISSING or isinstance(value, dict | list):
            message = f"--split-by: {place.file}:{place.line} has no value at {self.options.split_by!r}"
            raise UsageError("usage.option", message)
        return self.draft(agent or str(value), str(value))

    def command(self, **changed: Any) -> str:
        """Return the command that imports, or assesses, the source with options changed."""
        if replace(self.options, **changed).assessable:
            command = self.options.command(self.source, verb="assess", **changed)
            return f"{command} {self.options.assess}".rstrip()
        return f"{self.options.command(self.source, **changed)} -o {self._out}"

    @contextmanager
    def opening(self, path: Path, name: str | None = None) -> Iterator[Source]:
        """Open a file of the source, and note its digest when the block ends."""
        with opening(path, self.name if name is None else name, self.progress) as source:
            try:
                yield source
            except InputError as error:
                if error.code == "json.encoding":
                    error.hint = f"if Excel wrote it in western Europe: {self.command(encoding='cp1252')}"
                raise
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
                chosen_files.append((path, visible("/".join(path.relative_to(self.source).parts))))
            else:
                self.left_out += 1
            if len(chosen_files) > MAX_FILES:
                raise InputError("import.source", f"more than {MAX_FILES:,} files", where=self.name)
        return sorted(chosen_files, key=lambda item: item[1])

    def note_files(self, draft: Draft) -> None:
        """Note which files of a folder were not read, and the rows of a table that have only blank cells."""
        for what, detail, count in (
            ("other files in the folder", "not read", self.left_out),
            ("symbolic links", "not read", self._links),
            ("blank rows", "every cell is blank", self.blank),
        ):
            if count:
                draft.notes.add("refused", what, detail, count=count)

    def load(self, data: bytes, place: Place) -> dict[str, Any] | None:
        """Return the JSON object that a row is, read strictly; add a fault where it is none."""
        try:
            row = canonical.loads(data, max_bytes=MAX_ROW)
        except InputError as error:
            broken = "broken JSON: " * (error.code == "json.syntax")
            self.refuse(place.fault("one JSON object", broken + error.message, code=error.code))
            return None
        if not isinstance(row, dict):
            self.refuse(place.fault("one JSON object", type(row).__name__))
            return None
        return row

    def typed(self, row: Any, type_: type[Typed], place: Place, expected: str) -> Typed | None:
        """Return a row, or its JSON bytes, as a struct; add a fault where it does not have that form."""
        try:
            return _decoded(row, type_)
        except msgspec.ValidationError as error:
            reason, _, path = str(error).partition(" - at `$")
            pointer = (
                path.rstrip("`").replace("[...]", "").replace(".", "/").replace("[", "/").replace("]", "")
            )
            reason = re.sub("^Expected (.+), got (.+)", r"\2 where \1 belongs", reason).replace("`", "")
            self.refuse(place.fault(expected, reason[:1].lower() + reason[1:], pointer=pointer))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InputError) as error:
            words = {UnicodeDecodeError: "bytes that are not UTF-8", RecursionError: "JSON nested too deeply"}
            actual = words.get(type(error), str(error))
            self.refuse(place.fault(expected, actual, code=getattr(error, "code", "json.syntax")))
        return None

    def refuse(self, *faults: Fault) -> None:
        """Add faults."""
        self.faults.note(list(faults))

    def note_faults(self, draft: Draft) -> None:
        """Add what is wrong with the records of a bundle; their file must be closed."""
        self.faults.add(draft.faults(), lambda fault: replace(fault, file=fault.file or self.name))

    def number_rows(self) -> None:
        """Give the faults their rows in the sheet, where cells with line ends make them differ from lines."""
        for at, fault in enumerate(self.faults):
            row = bisect_right(self.begins, fault.line)
            if row and fault.line - row >= self.begins[0]:
                self.faults[at] = replace(fault, row=row)

    def refuse_faults(self, advice: str) -> None:
        """Raise `ImportFaultsError` with the advice where a fault was added."""
        self.number_rows()
        if self.faults:
            self.faults.sort(key=lambda fault: fault.line)
            raise ImportFaultsError(self.faults, advice)


def _decoded(row: Any, type_: type[Typed]) -> Typed:
    """Return a row, or its JSON bytes, as a struct."""
    if not isinstance(row, bytes):
        return msgspec.convert(row, type_)
    return traces.decoded(row, type_)


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
