"""What the columns of a log hold, and a mapping for the user to fill in.

Every required field stands once in the mapping: with the column that an import takes without a mapping, or
empty, with a comment that says what is needed. What a mapping said that was given already, and how the log
is read, it says too. Nothing is concluded from the values.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit.ground import canonical
from certkit.ground.text import visible
from certkit.ground.wording import many
from certkit.imports.names import SINGLE, SYNONYMS, folds, paths
from certkit.record.expressions import spelled
from certkit.record.record import REQUIRED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from certkit.imports.job import Importer, ImportOptions
    from certkit.imports.mapping import Mapping

MAX_PATHS: Final = 1000
MAX_DISTINCT: Final = 100
_SHOWN: Final = 8
_CUT: Final = 200  # characters of a value that are kept

SCHEMA: Final = "urn:certkit:mapping:v1"
"""The published schema of mappings, as editors read it in the first line."""

_NEEDED: Final = {
    "domain": "names the area of the task, or remove this line and give --domain NAME",
    "task_id": "names the task, or several columns",
    "condition": "names the fault, or remove this line and give --condition nominal if there was none",
    "outcome": "says success or failure, or remove this line and give --success EXPRESSION",
}
"""What the column does that a field needs."""


class Column(Struct, frozen=True, kw_only=True):
    """What stands at a path of the rows.

    Attributes:
        name: The path, as a mapping names it.
        rows: Rows that have a value there.
        blank: Rows that have none.
        values: Distinct values with their counts, the most frequent first.
        more: There are more distinct values than are listed.
    """

    name: str
    rows: int
    blank: int
    values: dict[str, int]
    more: bool


class Contents(Struct, frozen=True):
    """The columns of a log, and a mapping that leaves to the user what no column fills."""

    rows: int
    columns: list[Column]
    mapping: str


def contents_of(importer: Importer, given: Mapping, options: ImportOptions, log: str) -> Contents:
    """Read all rows of a log.

    Args:
        importer: Its runs are read.
        given: The mapping that the user gave, or an empty one.
        options: What the user gave besides; a field that an option fills is left out of the mapping.
        log: The name of the log.
    """
    values: dict[tuple[str, ...], Counter[str]] = {}
    filled: dict[tuple[str, ...], int] = {}
    more: set[tuple[str, ...]] = set()
    by_format: set[str] | None = None
    rows = 0
    for run in importer.runs():
        rows += 1
        fields = {field for field, value in run.fields.items() if value is not None}
        by_format = fields if by_format is None else by_format & fields
        for path, value in paths(run.row, lists=True):
            if path not in values and len(values) == MAX_PATHS:
                continue
            counts = values.setdefault(path, Counter())
            if value in (None, "", [], {}):
                continue
            filled[path] = filled.get(path, 0) + 1
            text = _text(value)
            if text in counts or len(counts) < MAX_DISTINCT:
                counts[text] += 1
            else:
                more.add(path)
    columns = [
        Column(
            name=name_of(path),
            rows=filled.get(path, 0),
            blank=rows - filled.get(path, 0),
            values=dict(counts.most_common()),
            more=path in more,
        )
        for path, counts in values.items()
    ]
    names = {".".join(path) for path in values}
    lead = [
        f"#:schema {SCHEMA}",
        f"# A mapping for {visible(log)}, {many(rows, 'row')}.",
        "# Fill in what is empty, then: certkit import LOG --map THIS_FILE -o BUNDLE",
    ]
    stated = given.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)
    reading = stated.pop("read", {}) | _reading(importer, options)
    stated = {"read": reading, "columns": stated.pop("columns", {})} | stated
    unfilled = _fields(names, by_format or set(), given, options)
    comments = [f"#   {visible(line)}" for line in described(columns, rows)]
    lines = [*lead, *_tables(stated, unfilled), "", "# What the columns hold:", *comments]
    mapping = "\n".join(lines) + "\n"
    return Contents(rows, columns, mapping)


def _text(value: Any) -> str:
    return (value if isinstance(value, str) else canonical.line(value).decode().strip())[:_CUT]


def name_of(path: tuple[str, ...]) -> str:
    """Return a path as `[columns]` names it: as it stands, or spelled where that names something else."""
    plain = ".".join(path)
    unclear = any(mark in plain for mark in "([`") or (len(path) > 1 and plain.count(".") >= len(path))
    return spelled(path) if unclear else plain


def described(columns: Sequence[Column], rows: int, *, verbose: bool = False) -> Iterable[str]:
    """Return a line for each column; those of an object that are blank in most rows have one together."""
    together = {} if verbose else folds({column.name: column.rows for column in columns}, rows)
    more = " (--columns -v lists them)"
    lines = (together[it.name] + more if it.name in together else _described(it) for it in columns)
    return dict.fromkeys(lines)


def _described(column: Column) -> str:
    shown = [f"{text[:40]!r} ({count:,})" for text, count in [*column.values.items()][:_SHOWN]]
    rest = ", …" if column.more or len(column.values) > _SHOWN else ""
    blank = f"; blank in {column.blank:,}" if column.blank else ""
    number = f"{'more than ' * column.more}{len(column.values):,}"
    return (
        f"{column.name}: {number} distinct: {', '.join(shown)}{rest}{blank}"
        if shown
        else f"{column.name}: always blank"
    )


def _reading(importer: Importer, options: ImportOptions) -> dict[str, str]:
    """Return how the log is read, as `[read]` of a mapping states it."""
    stated = {"rows": importer.job.rows, "encoding": options.encoding, "timezone": options.timezone}
    return {name: value for name, value in stated.items() if value is not None}


def _fields(names: set[str], by_format: set[str], given: Mapping, options: ImportOptions) -> Iterator[str]:
    """Yield the lines of `[columns]` for the required fields that the given mapping names no column of."""
    for field in REQUIRED:
        option = "success" if field == "outcome" else field
        known = [
            name for name in (field, *SYNONYMS.get(field, ()), *[SINGLE.get(field, field)]) if name in names
        ]
        if field in given.columns:
            continue
        if field in given.when or field in given.constants:
            yield f"# {field}: by {'[when]' if field in given.when else '[constants]'}"
        elif field in by_format:
            yield f"# {field}: by the format"
        elif getattr(options, option, None) is not None:
            yield f"# {field}: by --{option}"
        elif known:
            yield f"{field} = {_toml(known[0])}"
        elif field == "run_id":
            yield "# run_id: without a column, each run is named by its file and line"
        else:
            yield f'{field} = ""  # needed: the column that {_NEEDED[field]}'


def _tables(table: dict[str, Any], fields: Iterable[str], lead: str = "") -> Iterator[str]:
    """Yield the lines of a table of a mapping and of the tables in it; under `[columns]` also `fields`."""
    yield from (
        f"{_key(key)} = {_toml(value)}" for key, value in table.items() if not isinstance(value, dict)
    )
    if lead == "columns":
        yield from fields
    for key, value in table.items():
        if isinstance(value, dict) and (value or key == "columns"):
            name = f"{lead}.{_key(key)}" if lead else key
            yield f"\n[{name}]"
            yield from _tables(value, fields, name)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)


def _toml(value: Any) -> str:
    """Return a value as TOML writes it in one line; objects become inline tables."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_toml(item)}' for key, item in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return canonical.line(value).decode().strip()
