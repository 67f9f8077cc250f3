"""Rows of a table, one per run: Parquet and, plain or gzipped, CSV, TSV, JSON lines, a JSON array.

Where a JSON document holds its runs deeper, ``rows`` of the mapping names the list. In CSV all values are
texts without the blanks around them, an empty cell means "not measured", and the separator is the one of
comma, semicolon, tab and bar that the header line has most of, or that a line ``sep=;`` before it states.
UTF-16 is known by its byte order mark. A row whose cells are all blank is left out and counted.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from itertools import chain, islice
from math import inf
from typing import TYPE_CHECKING, Any, Final

from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.ground.progress import SILENT
from certkit.ground.text import visible
from certkit.ground.wording import many
from certkit.imports.drafts import Place
from certkit.imports.job import Importer, Job, Run
from certkit.imports.mapping import near
from certkit.imports.names import MAX_COLUMNS, MAX_NAME, SINGLE, SYNONYMS, agent_columns, paths
from certkit.imports.source import MAX_LOG_ROW, MAX_ROW, opening
from certkit.imports.splitter import split
from certkit.record.record import FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from certkit.imports.drafts import Draft
    from certkit.imports.source import Source
    from certkit.imports.splitter import Piece
    from certkit.record.faults import Fault

MAX_CELLS: Final = 1_000_000
"""Most cells of a line."""

PARQUET: Final = b"PAR1"
ARROW: Final = (b"ARROW1", b"\xff\xff\xff\xff")
"""How Arrow files, of Feather too, and streams begin."""

NO_TABLES: Final = {
    b"\xd0\xcf\x11\xe0": ("a workbook or document of Office", "save the sheet as CSV, and import that"),
    b"%PDF-": ("a PDF document", "export the table that it shows as CSV, and import that"),
} | dict.fromkeys(ARROW, ("an Arrow file", "write it as Parquet; pandas: read_feather(FILE).to_parquet(…)"))
"""How a file begins that is no table → what it is, and what to do."""

MAX_AGENT_NAME: Final = 200
"""Characters of an agent's name; a longer text, such as a system prompt, names none."""

MAX_LISTS: Final = 12
"""Lists of a JSON document that a refusal names."""

MAX_PARENT: Final = 100
"""Values of an object that the rows in it have."""

_DEEP: Final = 3
"""Levels of a JSON document in which lists of rows are looked for."""

_OUTCOMES: Final = {"outcome", *SYNONYMS["outcome"]}
"""Columns that state an outcome."""

_SEPARATORS: Final = ",;\t|"
_STATED = re.compile(rf"sep=([{_SEPARATORS}])\s*\Z", re.IGNORECASE)
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")


class Records(Importer):
    """Rows of a table."""

    tabular = True

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        if job.source.is_dir():
            raise InputError("import.source", "expected one file, found a folder", where=job.name)
        with opening(job.source, job.name, SILENT) as source:
            head = source.head()
        for begin, (what, hint) in NO_TABLES.items():
            if head.startswith(begin):
                raise InputError("import.source", what, where=job.name, hint=hint)
        self._parquet = head.startswith(PARQUET)
        self._encoding = job.options.encoding or ("utf-16" if head.startswith(_UTF16) else "utf-8")
        if b"\0" in head and not self._parquet and self._encoding == "utf-8":
            hint = "save it as CSV; if it is text, give --encoding, for instance utf-16"
            raise InputError("import.source", "is no text", where=job.name, hint=hint)
        self.cells = not self._parquet and head.lstrip()[:1] not in {b"{", b"["}
        self._agents: dict[str, str] = {}  # agent → the column that first named it
        self._lists: dict[
            tuple[str, str], list[int]
        ] = {}  # agent, list of runs → rows with it, objects in it

    def runs(self) -> Iterator[Run]:
        """Yield the rows."""
        for row, place in self.rows():
            if not self.cells and any(
                len(name) > MAX_NAME for path, _ in paths(row, lists=True) for name in path
            ):
                expected = f"names of at most {MAX_NAME:,} characters"
                self.job.refuse(place.fault(expected, "a longer one", code="json.too-large"))
                continue
            agents = ((str(row[name]), name) for name in agent_columns(row) if _names_an_agent(row[name]))
            agent, column = next(agents, ("", ""))
            self._agents.setdefault(agent, column)
            for name, value in row.items():
                if isinstance(value, list) and len(value) > 1 and all(map(_is_run, value)):
                    counts = self._lists.setdefault((agent, name), [0, 0])
                    counts[:] = counts[0] + 1, counts[1] + len(value)
            yield Run(agent, place, row, {})

    def close(self, draft: Draft) -> dict[str, str]:
        """Say which column names the agent."""
        if (column := self._agents.get(draft.agent)) and self.job.options.agent in {None, draft.agent}:
            draft.notes.add("filled", "agent", f"from {column!r}", count=draft.records)
        for (agent, name), (rows, objects) in self._lists.items():
            if agent == draft.agent:
                place = f"`rows = {canonical.line(self._inside(name)).decode().strip()}` under `[read]`"
                way = place if self.job.rows else "one row per run"
                detail = f"{objects:,} objects with an outcome, read as {many(rows, 'run')}; {way} reads each"
                draft.notes.add("odd", f"rows that hold a list `{visible(name)}` of runs", detail, count=rows)
        return {}

    def _inside(self, name: str) -> str:
        """Return what `rows` of a mapping says to read a list in each row."""
        return f"{str(self.job.rows).removesuffix('.*')}.*.{name}"

    def rows(self) -> Iterator[tuple[dict[str, Any], Place]]:
        """Yield the rows of a file of any kind."""
        with self.job.opening(self.job.source) as source:
            if self.job.rows is not None and (self.cells or self._parquet or source.array):
                message = "read.rows: names a list in a JSON object, and this file is none"
                raise InputError("import.mapping", message, where=self.job.name)
            if self._parquet:
                yield from self._parquet_rows(source.name)
            elif self.cells:
                yield from _csv_rows(source, self.job, self._encoding)
            elif self.job.rows is not None:
                yield from self._listed(source, self.job.rows)
            else:
                yield from self._json_rows(source)

    def _parquet_rows(self, name: str) -> Iterator[tuple[dict[str, Any], Place]]:
        try:
            from certkit.imports import parquet  # noqa: PLC0415 - pyarrow need not be there
        except ImportError:
            message, hint = "a Parquet file, and pyarrow is not installed", "pip install 'certkit[parquet]'"
            raise InputError("import.source", message, where=name, hint=hint) from None
        for number, row in enumerate(parquet.rows(self.job.source, shown=name, limit=MAX_ROW), 1):
            place = Place(name, number)
            if infinite := [path for path, value in paths(row) if value in (inf, -inf)]:
                self.job.refuse(place.fault("a finite number", "inf", pointer=f"/{'.'.join(infinite[0])}"))
            else:
                yield row, place

    def _json_rows(self, source: Source) -> Iterator[tuple[dict[str, Any], Place]]:
        """Yield the items of an array, or the objects of lines; refuse a file that is one with lists."""
        lines = source.rows()
        array = source.array
        first = [*islice(lines, 2)]  # unread: rows may be large
        alone = len(first) == 1 and not array
        while first:
            line, data = first.pop(0)
            row = self.job.load(data, place := Place(source.name, line))
            if row is not None:
                if alone and (rows := self._only_list(row)):
                    with opening(self.job.source, source.name, SILENT) as again:
                        yield from self._listed(again, rows)
                    return
                yield row, place
        for line, data in lines:
            row = self.job.load(data, place := Place(source.name, line))
            if row is not None:
                yield row, place

    def _only_list(self, document: dict[str, Any]) -> str | None:
        """Return the only list in the only object of a file where columns are listed, None of a row.

        Raises `InputError` where the object is no row, as lists in it may hold the rows.
        """
        lists = _lists_of(document)
        known = {*FIELDS, *SINGLE.values(), *chain.from_iterable(SYNONYMS.values())}
        outermost = [name for name, _ in _lists(document)]
        if all(name.endswith("*") for name in outermost) and (not lists or known & document.keys()):
            return None
        if len(lists) == 1 and self.job.lists_columns:
            [self.job.rows] = lists
            return self.job.rows
        message = f"this file is one object, not one row per run. {_listed_names(lists)}"
        command = self.job.options.command(self.job.source)
        hint = f"write a mapping that reads this list: {command} --columns -o MAP.toml"
        if len(lists) > 1:
            hint = (
                f'write a mapping with `rows = "{next(iter(lists))}"` under `[read]`, and list its columns: '
            )
            hint += f"{self.job.options.command(self.job.source, mapping='MAP.toml')} --columns"
        hint += "\nif the object is one run, put it between [ and ]"
        raise InputError("import.source", message, where=self.job.name, hint=hint)

    def _listed(self, source: Source, rows: str) -> Iterator[tuple[dict[str, Any], Place]]:
        """Yield the objects that a path leads to: the items of a list, or with ``*`` the values of an object.

        A list that is named by up to two words is read item by item; what holds a deeper one, at once, up to
        `MAX_LOG_ROW` bytes. What ``*`` leads through is the `parent` of a row.
        """
        first, *deeper = rows.split(".")
        number = 0
        for piece in source.pieces(MAX_LOG_ROW, within=first if deeper else None):
            for item, parent in _items_at(piece, deeper if piece.inside else [first, *deeper], source.name):
                number += 1
                row = self.job.load(item.data, place := Place(source.name, item.line))
                if row is not None:
                    yield {"parent": parent} | row if parent else row, place
        if not number:
            with opening(self.job.source, source.name, SILENT) as again:
                lists = _lists_in(again)
            close = near(rows, lists) or "."
            message = f"read.rows: {rows!r} names no list of objects{close} {_listed_names(lists)}"
            raise InputError("import.mapping", message, where=self.job.name)


def _items_at(
    piece: Piece, path: Sequence[str], name: str, parent: dict[str, Any] | None = None
) -> Iterator[tuple[Piece, dict[str, Any]]]:
    """Yield a piece of a document, or the pieces in it, where the path leads to it, each with its parent.

    Where ``*`` leads through an object, the parent has its plain values, its name as ``key``, and its own
    parent. Of what ``*`` ends at, the parent has the name alone.
    """
    key, *deeper = path
    if key not in {"*", piece.key}:
        return
    through = key == "*"
    if piece.item and deeper[:1] == ["*"]:
        through, deeper = True, deeper[1:]
    elif piece.item and deeper:
        return
    around = {"parent": parent} if parent else {}
    if key == "*":
        parent = {"key": piece.key} | around
    if not deeper and (piece.item or through):
        yield piece, parent or {}
    elif deeper and piece.data[:1] == b"{":
        if through:
            parent = (parent or {}) | _plain_values(piece, name) | around
        for inner in split([piece.data], name, MAX_LOG_ROW):
            yield from _items_at(inner._replace(line=piece.line + inner.line - 1), deeper, name, parent)


def _plain_values(piece: Piece, name: str) -> dict[str, Any]:
    """Return the short plain values of an object; they stand in each of its rows."""
    members = canonical.loads(piece.data, max_bytes=MAX_LOG_ROW, where=f"{name}:{piece.line}").items()
    plain = (it for it in members if not isinstance(it[1], list | dict) and len(str(it[1])) <= MAX_NAME)
    return dict(islice(plain, MAX_PARENT))


def _is_run(value: Any) -> bool:
    return isinstance(value, dict) and not _OUTCOMES.isdisjoint(value)


def _lists_in(source: Source) -> dict[str, int]:
    """Return the lists of objects in a JSON document with their lengths."""
    lists: Counter[str] = Counter()
    for piece in source.pieces(MAX_LOG_ROW):
        if piece.data[:1] != b"{" or (len(lists) >= MAX_LISTS and piece.key not in lists):
            continue
        value = canonical.loads(piece.data, max_bytes=MAX_LOG_ROW)
        lists.update(_lists_of({piece.key: [value] if piece.item else value}))
    return lists


def _lists_of(document: dict[str, Any]) -> Counter[str]:
    """Return the lists of objects in an object, and those in their items, with their lengths."""
    lists: Counter[str] = Counter()
    for path, items in _lists(document):
        lists[path] = len(items)
        for item in items:
            for name, value in item.items():
                if isinstance(value, list) and value and all(isinstance(it, dict) for it in value):
                    lists[f"{path.removesuffix('.*')}.*.{name}"] += len(value)
    return lists


def _lists(document: dict[str, Any], lead: str = "") -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the outermost lists of objects in an object with their paths, also of objects of objects."""
    for name, value in document.items():
        items = [*value.values()] if isinstance(value, dict) and len(value) > 1 else value
        if isinstance(items, list) and items and all(isinstance(item, dict) for item in items):
            yield lead + name + ".*" * isinstance(value, dict), items
        elif isinstance(value, dict) and lead.count(".") < _DEEP - 1:
            yield from _lists(value, f"{lead}{name}.")


def _listed_names(lists: dict[str, int]) -> str:
    if not lists:
        return "It holds no list of objects."
    names = [f"`{visible(name)}` ({count:,})" for name, count in lists.items()][:MAX_LISTS]
    return f"Lists in it: {', '.join(names)}. Say which in `[read] rows`."


def _names_an_agent(value: Any) -> bool:
    return isinstance(value, str | int) and 0 < len(str(value)) <= MAX_AGENT_NAME


csv.field_size_limit(MAX_ROW)  # a cell may hold a conversation


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
    """Return why a row has not the cells that the header names, None where it has.

    Raises `InputError` where the line of the header, `top`, does not name the columns of the row.
    """
    if any(cells[len(header) : width]) or width == 1 < len(cells):
        raise _nameless(len(header), len(cells), Place(place.file, top))
    return None if len(cells) == width else place.fault(f"{width} cells, as the header has", str(len(cells)))


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
