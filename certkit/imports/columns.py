"""What the columns of a log hold, and an empty mapping for the user to fill in.

Every required field stands once in the mapping: with the column that an import takes without a mapping, or
empty, with a comment that says what is needed. Nothing is concluded from the values.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit.ground import canonical
from certkit.ground.text import visible
from certkit.ground.wording import many
from certkit.imports.names import SINGLE, SYNONYMS, paths
from certkit.record.expressions import spelled
from certkit.record.record import REQUIRED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.imports.job import Importer, ImportOptions

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


def contents_of(importer: Importer, options: ImportOptions, log: str) -> Contents:
    """Read all rows of a log.

    Args:
        importer: Its runs are read.
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
    lines = _mapping(rows, names, by_format or set(), options, log)
    comments = (f"#   {visible(line)}" for column in columns for line in described(column))
    mapping = "\n".join([*lines, "", "# What the columns hold:", *comments]) + "\n"
    return Contents(rows, columns, mapping)


def _text(value: Any) -> str:
    return (value if isinstance(value, str) else canonical.line(value).decode().strip())[:_CUT]


def name_of(path: tuple[str, ...]) -> str:
    """Return a path as `[columns]` names it: as it stands, or spelled where that names something else."""
    plain = ".".join(path)
    unclear = any(mark in plain for mark in "([`") or (len(path) > 1 and plain.count(".") >= len(path))
    return spelled(path) if unclear else plain


def described(column: Column) -> Iterator[str]:
    """Yield a line that says what a column holds."""
    shown = [f"{text[:40]!r} ({count:,})" for text, count in [*column.values.items()][:_SHOWN]]
    rest = ", …" if column.more or len(column.values) > _SHOWN else ""
    blank = f"; blank in {column.blank:,}" if column.blank else ""
    number = f"{'more than ' * column.more}{len(column.values):,}"
    yield (
        f"{column.name}: {number} distinct: {', '.join(shown)}{rest}{blank}"
        if shown
        else f"{column.name}: always blank"
    )


def _mapping(
    rows: int, names: set[str], by_format: set[str], options: ImportOptions, log: str
) -> Iterator[str]:
    yield f"#:schema {SCHEMA}"
    yield f"# A mapping for {visible(log)}, {many(rows, 'row')}."
    yield "# Fill in what is empty, then: certkit import LOG --map THIS_FILE -o BUNDLE"
    yield "\n[columns]"
    for field in REQUIRED:
        given = getattr(options, "success" if field == "outcome" else field, None)
        known = [
            name for name in (field, *SYNONYMS.get(field, ()), *[SINGLE.get(field, field)]) if name in names
        ]
        if field in by_format:
            yield f"# {field}: by the format"
        elif given is not None:
            yield f"# {field}: by --{'success' if field == 'outcome' else field}"
        elif known:
            yield f"{field} = {_quoted(known[0])}"
        elif field == "run_id":
            yield "# run_id: without a column, each run is named by its line"
        else:
            yield f'{field} = ""  # needed: the column that {_NEEDED[field]}'


def _quoted(text: str) -> str:
    return canonical.line(text).decode().strip()
