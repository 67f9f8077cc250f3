"""Rows of any kind, as JSON lines or CSV (plain or gzipped), with a mapping file for other names.

The mapping (TOML) says which column fills which record field; columns that have the name of a field need no
entry:

    [columns]                     # our field = their column
    task_id = "scenario"
    [values.outcome]              # their value, as text = our value
    "pass" = "success"
    [constants]                   # our field = the same value on every record
    domain = "healthcare"
    [agent]                       # as in bundle.json
    name = "triage-agent"
    [protocol]
    temperature = 0.0

In CSV an empty cell means "not measured", and text becomes a number or a truth value only in the form that
JSON has for it. Columns that fill no field are left out; the account names and counts them.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from certkit import base, canonical, files, toml
from certkit.base import Authored
from certkit.errors import InputError
from certkit.evidence.bundle.manifest import UNVERSIONED, Agent, Protocol
from certkit.evidence.importers.base import Draft, Job, Place, printable
from certkit.evidence.importers.source import MAX_ROW, opening
from certkit.evidence.reading.columns import KINDS
from certkit.evidence.records.record import FIELDS, USER_FIELD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.evidence.importers.source import Source
    from certkit.evidence.records.faults import Fault

MAX_MAPPING: Final = 1024 * 1024
MAX_COLUMNS: Final = 10_000
"""Distinct columns that fill no field, at most."""

Scalar = StrictStr | StrictBool | StrictInt | StrictFloat
Column = Annotated[str, Field(min_length=1, max_length=1024)]

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,15})\Z")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,15})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?\Z")
_EXPECTED: Final = {"integer": "an integer", "floating": "a number", "ternary": "true or false"}
_TRUTH: Final = {"true": True, "false": False}


class Mapping(Authored):
    """How the columns of a source become record fields."""

    columns: dict[str, Column] = Field(default_factory=dict)
    values: dict[str, dict[str, Scalar]] = Field(default_factory=dict)
    constants: dict[str, Scalar] = Field(default_factory=dict)
    agent: Agent | None = None
    protocol: Protocol = Protocol(origin="measured")
    run_id_from_line: bool = Field(default=False, description="make run_id from the row's line")
    domain_before_task: bool = Field(default=False, description="write task_id as domain/task_id")

    @model_validator(mode="after")
    def _fields_exist(self) -> Mapping:
        for table in ("columns", "values", "constants"):
            for name in getattr(self, table):
                if name not in FIELDS and not USER_FIELD.match(name):
                    raise ValueError(f"{table}: {name!r} is neither a record field nor an x_ field")
        if both := sorted(self.columns.keys() & self.constants.keys()):
            raise ValueError(f"{both[0]!r} has both a column and a constant")
        if self.run_id_from_line and "run_id" in self.columns.keys() | self.constants.keys():
            raise ValueError("run_id_from_line is set, and run_id has a column or a constant too")
        return self


def read_mapping(path: Path) -> Mapping:
    """Read a mapping file. Raises `InputError` ``import.mapping`` naming every fault."""
    data = files.read(path, limit=MAX_MAPPING)
    name = printable(path.name)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InputError("import.mapping", "not UTF-8", where=name) from None
    document = toml.loads(text, code="import.mapping", where=name)
    # Entries that bundle.json requires have a default here.
    for table, key, default in (("agent", "version", UNVERSIONED), ("protocol", "origin", "measured")):
        if isinstance(document.get(table), dict):
            document[table].setdefault(key, default)
    return base.validate(Mapping, document, code="import.mapping", where=name)


def read(job: Job) -> list[Draft]:
    """Read the rows of one file into one draft."""
    name = printable(job.source.name)
    if job.source.is_dir():
        raise InputError("import.source", "expected one file, found a folder", where=name)
    mapping = read_mapping(job.options.mapping) if job.options.mapping else Mapping()
    if mapping.agent is None and not job.options.agent:
        raise InputError(
            "import.mapping",
            "the agent has no name",
            where=name,
            hint="give --agent NAME, or `name` under `[agent]` in the mapping",
        )
    draft = job.draft(job.options.agent or "")
    if mapping.agent is not None:
        draft.agent_document = mapping.agent.model_dump(mode="json", exclude_none=True)
    if job.options.mapping is not None:
        draft.options["mapping"] = printable(job.options.mapping.name)
    draft.protocol = mapping.protocol.model_dump(mode="json", by_alias=True, exclude_none=True)
    job.progress.start("importing", job.source.stat().st_size, "bytes")
    with opening(job.source, name, job.progress) as source:
        in_csv = source.first_byte() not in {b"{", b"["}
        rows = _Rows(mapping, in_csv=in_csv)
        for place, row in (_csv_rows if in_csv else _json_rows)(source, job):
            fields, faults = rows.convert(row, place)
            for fault in faults:
                job.faults.add(fault)
            if not faults:
                job.write(draft, fields, place)
        job.sources.append(source.facts())
    job.progress.finish()
    rows.account(draft, name)
    return [draft]


def _json_rows(source: Source, job: Job) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield the rows that can be read; add the others to the faults."""
    for number, line in source.items() if source.first_byte() == b"[" else source.lines():
        place = Place(source.name, number)
        try:
            row = canonical.loads(line, max_bytes=MAX_ROW)
        except InputError as error:
            job.faults.add(place.fault("one JSON object", error.message, code=error.code))
            continue
        if isinstance(row, dict):
            yield place, row
        else:
            job.faults.add(place.fault("one JSON object", type(row).__name__))


def _csv_rows(source: Source, job: Job) -> Iterator[tuple[Place, dict[str, Any]]]:
    text = _Text(source)
    reader = csv.reader(text, strict=True)
    header: list[str] = []
    try:
        for cells in reader:
            place = Place(source.name, text.row_line)
            text.next_row()
            if not header:
                header = _header(cells, place)
            elif len(cells) != len(header):
                job.faults.add(place.fault(f"{len(header)} cells, as the header has", str(len(cells))))
            else:
                yield place, {name: cell or None for name, cell in zip(header, cells, strict=True)}
    except csv.Error as error:
        where = f"{source.name}:{text.row_line}"
        raise InputError("import.source", f"not CSV: {error}", where=where) from None
    if not header:
        raise InputError("import.source", "is empty", where=source.name)


def _header(cells: list[str], place: Place) -> list[str]:
    if not any(cells) or len(set(cells)) != len(cells) or "" in cells:
        raise InputError(
            "import.source",
            "the first line of a CSV file names its columns, each once and none empty",
            where=f"{place.file}:{place.line}",
        )
    return cells


class _Text:
    """The lines of a CSV file as text; `row_line` is the line at which the current row begins."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lines = source.lines()
        self._here = self._size = 0
        self.row_line = 1

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self._here, line = next(self._lines)
        self._size += len(line)
        where = f"{self._source.name}:{self._here}"
        if self._size > MAX_ROW:
            raise InputError("json.too-large", f"row longer than {MAX_ROW:,} bytes", where=where)
        try:
            # Spreadsheets begin their CSV files with a byte order mark.
            return line.decode("utf-8-sig" if self._here == 1 else "utf-8") + "\n"
        except UnicodeDecodeError as error:
            raise InputError("json.encoding", f"not UTF-8 at byte {error.start}", where=where) from None

    def next_row(self) -> None:
        self.row_line, self._size = self._here + 1, 0


class _Rows:
    """Turns rows into record fields, and remembers which columns were used."""

    def __init__(self, mapping: Mapping, *, in_csv: bool) -> None:
        self._mapping = mapping
        self._in_csv = in_csv
        self._claimed = frozenset(mapping.columns.values())
        self._taken = mapping.columns.keys() | mapping.constants.keys()
        if mapping.run_id_from_line:
            self._taken |= {"run_id"}
        self._met: set[str] = set()
        self._left: Counter[str] = Counter()

    def convert(self, row: dict[str, Any], place: Place) -> tuple[dict[str, Any], list[Fault]]:
        """Return the record fields of a row, and its faults."""
        mapping = self._mapping
        fields: dict[str, Any] = dict(mapping.constants)
        faults = []
        for field, column in self._pairs(row):
            if row[column] is None:
                continue
            try:
                fields[field] = self._value(field, row[column])
            except _CellError as error:
                faults.append(place.fault(str(error), repr(row[column]), pointer=f"/{printable(column)}"))
        if mapping.run_id_from_line:
            fields["run_id"] = f"line-{place.line}"
        if mapping.domain_before_task and fields.get("task_id") is not None:
            fields["task_id"] = f"{fields.get('domain')}/{fields['task_id']}"
        return fields, faults

    def _pairs(self, row: dict[str, Any]) -> list[tuple[str, str]]:
        """Return pairs (field, column) for this row, and count the columns that fill no field."""
        pairs = [(field, column) for field, column in self._mapping.columns.items() if column in row]
        self._met.update(column for _, column in pairs)
        for column in row:
            if column in self._claimed:
                continue
            if (column in FIELDS or USER_FIELD.match(column)) and column not in self._taken:
                pairs.append((column, column))
            elif column in self._left or len(self._left) < MAX_COLUMNS:
                self._left[column] += 1
            else:
                raise InputError("import.source", f"more than {MAX_COLUMNS:,} columns that fill no field")
        return pairs

    def _value(self, field: str, value: Any) -> Any:
        if isinstance(value, dict | list):
            raise _CellError("a text, number or truth value")
        table = self._mapping.values.get(field)
        if table is None and not self._in_csv:
            return value
        text = value if isinstance(value, str) else canonical.line(value).decode().strip()
        if table is not None and text in table:
            return table[text]
        kind = KINDS.get(field, "string")
        if not self._in_csv or kind in {"string", "time"}:
            return value
        if kind == "ternary" and text in _TRUTH:
            return _TRUTH[text]
        if kind == "integer" and _INTEGER.match(text):
            return int(text)
        if kind == "floating" and _NUMBER.match(text):
            return float(text)
        raise _CellError(_EXPECTED[kind])

    def account(self, draft: Draft, name: str) -> None:
        """Note which columns filled which fields or were left out; refuse a mapping of absent columns."""
        if missing := sorted(self._claimed - self._met):
            raise InputError(
                "import.mapping",
                "the mapping names columns that no row has: "
                + ", ".join(repr(printable(c)) for c in missing),
                where=name,
            )
        for column, count in sorted(self._left.items()):
            draft.notes.add(
                "refused", f"column {column!r}", "left out: it fills no record field", count=count
            )
        named = {field: f"from column {column!r}" for field, column in self._mapping.columns.items()}
        draft.describe_fields(named | dict.fromkeys(self._mapping.constants, "the mapping's constant"))


class _CellError(ValueError):
    """A cell that cannot be read; the message is the expected content."""
