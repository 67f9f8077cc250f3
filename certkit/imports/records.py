"""Rows of any kind, one per run: Parquet and, plain or gzipped, CSV, TSV, JSON lines, a JSON array.

A column that has the name of a record field fills it; a mapping gives the other names. In CSV all values are
texts without the blanks around them, an empty cell means "not measured", and the separator is the one of
comma, semicolon, tab and bar that the header line has most of, or that a line ``sep=;`` before it states.
UTF-16 is known by its byte order mark. A row whose cells are all blank is left out and counted. A column or
nested value called agent, bot, model, llm, system or assistant, in any case, names the agent.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from itertools import chain, islice
from math import inf
from typing import TYPE_CHECKING, Any, Final

from certkit.ground.errors import InputError
from certkit.ground.progress import SILENT
from certkit.ground.text import visible
from certkit.imports.drafts import Place
from certkit.imports.job import Importer, Job, Run
from certkit.imports.names import (
    LISTS,
    MAX_COLUMNS,
    MAX_NAME,
    agent_rank,
    paths,
    preferred,
    sums_up,
    versions,
)
from certkit.imports.source import MAX_ROW, opening
from certkit.imports.suggest import stated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.imports.drafts import Draft
    from certkit.imports.source import Source
    from certkit.record.faults import Fault

MAX_CELLS: Final = 1_000_000
"""Most cells of a line."""

PARQUET: Final = b"PAR1"
ARROW: Final = (b"ARROW1", b"\xff\xff\xff\xff")
"""How Arrow files, of Feather too, and streams begin."""

MAX_AGENT_NAME: Final = 200
"""Characters of an agent's name; a longer text, such as a system prompt, names none."""

_LISTS: Final = LISTS["rows"]["names"].split()
_SEPARATORS: Final = ",;\t|"
_STATED = re.compile(rf"sep=([{_SEPARATORS}])\s*\Z", re.IGNORECASE)
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_OLE: Final = b"\xd0\xcf\x11\xe0"  # .xls, .doc
_PDF: Final = b"%PDF-"


class Records(Importer):
    """Rows of a table."""

    tabular = True
    remarks = ((),)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        if job.source.is_dir():
            raise InputError("import.source", "expected one file, found a folder", where=job.name)
        with opening(job.source, job.name, SILENT) as source:
            head = source.head()
        self._beside: list[str] = []  # what a JSON object holds beside its list of rows
        self._named: dict[str, str] = {}  # agent → the column that first named it
        self._parquet = head.startswith(PARQUET)
        if head.startswith(_OLE):
            hint = "save the sheet as CSV, and import that"
            raise InputError("import.source", "a workbook or document of Office", where=job.name, hint=hint)
        if head.startswith(_PDF):
            hint = "export the table that it shows as CSV, and import that"
            raise InputError("import.source", "a PDF document", where=job.name, hint=hint)
        if head.startswith(ARROW):
            hint = "write it as Parquet; pandas: read_feather(FILE).to_parquet(…)"
            raise InputError("import.source", "an Arrow file", where=job.name, hint=hint)
        self._encoding = job.options.encoding or ("utf-16" if head.startswith(_UTF16) else "utf-8")
        if b"\0" in head and not self._parquet and self._encoding == "utf-8":
            hint = "save it as CSV; if it is text, give --encoding, for instance utf-16"
            raise InputError("import.source", "is no text", where=job.name, hint=hint)
        self.cells = not self._parquet and head.lstrip()[:1] not in {b"{", b"["}

    def runs(self) -> Iterator[Run]:
        """Yield the rows."""
        chosen = {self.job.named, self.job.options.split_by} - {None}
        for row, place in self.rows():
            lengths = (len(name) for path, _ in paths(row, lists=True) for name in path)
            if not self.cells and max(lengths, default=0) > MAX_NAME:
                expected = f"names of at most {MAX_NAME:,} characters"
                self.job.refuse(place.fault(expected, "a longer one", code="json.too-large"))
                continue
            names = [
                (rank, len(path), not {value, ".".join(path)} & chosen, not preferred(path), path, value)
                for path, value in paths(row)
                if (rank := agent_rank(path)) is not None
                and isinstance(value, str | int)
                and len(str(value)) <= MAX_AGENT_NAME
            ]
            names.sort()
            if self.job.named is None:
                self._refuse_rivals(names[:2])
            *_, path, agent = names[0] if names else ((), "")
            self._named.setdefault(str(agent), ".".join(path))
            yield Run(str(agent), place, row, {})

    def _refuse_rivals(self, names: list[Any]) -> None:
        """Refuse two values that are nested alike under a name of agents, and differ."""
        if len(names) > 1 and names[0][:4] == names[1][:4] and names[0][-1] != names[1][-1]:
            told = " and ".join(f"{visible('.'.join(path))} = {visible(str(it))!r}" for *_, path, it in names)
            message = f"a row names two agents: {told}"
            columns = ".".join(names[0][-2]), ".".join(names[1][-2])
            hint = f"say which was evaluated: {self.job.command(agent='NAME')}\n"
            hint += f"or a bundle of each: {self.job.command(split_by=columns[0])}, or by {columns[1]}"
            raise InputError("import.choice-needed", message, where=self.job.name, hint=hint)

    def close(self, draft: Draft) -> dict[str, str]:
        """Say which column names the agent."""
        if (column := self._named.get(draft.agent)) and self.job.options.agent in {None, draft.agent}:
            draft.notes.add("filled", "agent", f"from {column!r}", count=draft.records)
        if self._beside:
            names = ", ".join(map(repr, self._beside))
            detail = "of it only the agent, its version and faults are read"
            draft.notes.add("refused", f"what stands beside the list of rows: {names}", detail)
        return {}

    def rows(self) -> Iterator[tuple[dict[str, Any], Place]]:
        """Yield the rows of a file of any kind."""
        if not self.cells and not self._parquet:
            yield from self._items(super().rows())
            return
        with self.job.opening(self.job.source) as source:
            if self._parquet:
                for number, values in enumerate(_parquet_rows(self.job.source, source.name), 1):
                    place = Place(source.name, number)
                    if infinite := [path for path, held in paths(values) if held in (inf, -inf)]:
                        self.job.refuse(
                            place.fault("a finite number", "inf", pointer=f"/{'.'.join(infinite[0])}")
                        )
                    else:
                        yield values, place
            else:
                yield from _csv_rows(source, self.job, self._encoding)

    def _items(self, rows: Iterator[tuple[dict[str, Any], Place]]) -> Iterator[tuple[dict[str, Any], Place]]:
        """Yield rows; of a file that is one object with a single list, called as a list of rows, its items.

        Of what stands beside the list an item takes only what names the agent, its version or a fault, where
        it does not state it itself: a status or a total there is of all items together.
        """
        first = list(islice(rows, 2))
        row, place = first[0] if len(first) == 1 else ({}, Place("", 0))
        lists = [name for name, held in row.items() if isinstance(held, list)]  # a second may hold failures
        items = row[lists[0]] if len(lists) == 1 and lists[0].casefold() in _LISTS else []
        if not items or not all(isinstance(item, dict) for item in items):
            while first:  # a row may be large: none is kept
                yield first.pop(0)
            yield from rows
            return
        del row[lists[0]]
        self._beside = list(row)
        beside = dict(paths(row))
        named = [path for path in beside if agent_rank(path) is not None] + versions(tuple(beside))
        told = {path: beside[path] for path in named}
        told |= {path: held for path, held, kind, _ in stated(row) if kind in {"fault", "none"}}
        for number, item in enumerate(items, 1):
            for path, held in told.items():
                _fill(item, path, held)
            yield item, Place(place.file, number)


def _parquet_rows(path: Path, name: str) -> Iterator[dict[str, Any]]:
    try:
        from certkit.imports import parquet  # noqa: PLC0415 - pyarrow need not be there
    except ImportError:
        hint = "pip install 'certkit[parquet]'"
        raise InputError(
            "import.source", "a Parquet file, and pyarrow is not installed", where=name, hint=hint
        ) from None
    return parquet.rows(path, shown=name, limit=MAX_ROW)


csv.field_size_limit(MAX_ROW)  # a cell may hold a conversation


def _fill(row: dict[str, Any], path: tuple[str, ...], held: Any) -> None:
    """Put a value into a row at a path where nothing stands."""
    for name in path[:-1]:
        row = inner if isinstance(inner := row.setdefault(name, {}), dict) else {}
    row.setdefault(path[-1], held)


def _csv_rows(source: Source, job: Job, encoding: str) -> Iterator[tuple[dict[str, Any], Place]]:
    """Yield the rows of a CSV file, each with the line at which it begins."""
    size = 0

    def lines() -> Iterator[str]:
        nonlocal size
        for number, line in source.text(encoding):
            size += len(line)
            if size > MAX_ROW:
                where = f"{source.name}:{number}"
                raise InputError("json.too-large", f"row longer than {MAX_ROW:,} characters", where=where)
            yield line

    following = lines()
    if (first := next(following, None)) is None:
        raise InputError("import.source", "is empty", where=source.name)
    stated = _STATED.match(first)  # Excel writes it, and reads it
    begins = before = 2 if stated else 1
    mark = stated[1] if stated else separator(first)
    lead = [] if stated else [first]
    reader = csv.reader(chain(lead, following), delimiter=mark, strict=True)
    header: list[str] = []
    try:
        for written in reader:
            place, cells = Place(source.name, begins), _cells(written, f"{source.name}:{begins}")
            job.begins.append(begins)
            begins, size = reader.line_num + before, 0
            if not header:
                header, width = _header(cells, place), len(cells)
            elif not "".join(cells):
                job.blank += bool(cells)  # as spreadsheets leave at the end
            elif fault := _no_run(cells, header, width, place, job.begins[0]):
                job.refuse(fault)
            else:
                yield dict(zip(header, cells, strict=False)), place
    except csv.Error as error:
        where = f"{source.name}:{begins}"
        raise InputError("import.source", f"not CSV: {error}", where=where) from None


def _cells(written: list[str], where: str) -> list[str]:
    if len(written) > MAX_CELLS:
        raise InputError("json.too-large", f"holds more than {MAX_CELLS:,} cells", where=where)
    return [cell.strip() for cell in written]


def separator(header: str) -> str:
    """Return the separator of a CSV file by its header line."""
    outside = "".join(header.split('"')[::2])
    return max(_SEPARATORS, key=outside.count)


def _no_run(cells: list[str], header: list[str], width: int, place: Place, top: int) -> Fault | None:
    """Return why a row is no run: its number of cells, or it begins like a total and has blank cells.

    Raises `InputError` where the line of the header, `top`, does not name the columns of the row.
    """
    if any(cells[len(header) : width]) or width == 1 < len(cells):
        raise _nameless(len(header), len(cells), Place(place.file, top))
    if len(cells) != width:
        return place.fault(f"{width} cells, as the header has", str(len(cells)))
    filled = [cell for cell in cells if cell]
    if not sums_up(filled[0]) or len(filled) == len(header):
        return None
    row = f"what looks like a total: {', '.join(filled)}"
    return place.fault("a run", row, hint="remove the row from the file")


def _nameless(named: int, cells: int, place: Place) -> InputError:
    hint = "give each column a name, and remove a title or other lines above the names"
    return _not_named(place, f"{cells - named} of {cells} have no name here", hint)


def _not_named(place: Place, told: str, hint: str) -> InputError:
    message = f"the first line of a CSV file names its columns, and {told}"
    return InputError("import.source", message, where=f"{place.file}:{place.line}", hint=hint)


def _header(cells: list[str], place: Place) -> list[str]:
    """Return the names of the columns; cells without one at the end are left out."""
    names = cells[: max((at for at, name in enumerate(cells, 1) if name), default=0)]
    if len(names) > MAX_COLUMNS:
        raise InputError("import.source", f"more than {MAX_COLUMNS:,} columns", where=place.file)
    if not names:
        raise _not_named(place, "is blank here", "remove the blank lines above the names")
    if "" in names:
        raise _nameless(len(names) - names.count(""), len(names), place)
    if twice := next((name for name, count in Counter(names).items() if count > 1), None):
        raise _not_named(place, f"{visible(twice)!r} stands twice", "give each column a name of its own")
    return names
