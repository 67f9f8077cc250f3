"""Parquet record files: columns where every value is certainly right, else the same rows as JSON lines.

`blocks` checks whole columns and tells no fault: where a value may be wrong, or the type of a column is rare,
its rows are written as JSON objects and read line by line (`lines`), which decides. The user's own columns
are not read. `rows` serves imports. `columned`, `lined` and `fetched` read what DuckDB has of another file.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from certkit.ground.errors import InputError
from certkit.ground.text import visible
from certkit.record.columns import (
    ABSENT,
    DEFAULTS,
    DTYPES,
    FIELDS,
    KINDS,
    UNCODED,
    Coded,
    Columns,
    Index,
    coded,
    hashed,
)
from certkit.record.layout import NotUnderstoodError, times_of
from certkit.record.reader import BLOCK
from certkit.record.record import REQUIRED, USER_FIELD
from certkit.record.times import YEARS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb
    from numpy.typing import NDArray

UNREADABLE: Final = "bundle.parquet-unreadable"

ROWS: Final = 2048
"""Rows fetched at once as objects."""

BATCH: Final = 122_880
"""Rows fetched at once as columns: the usual row group of DuckDB, which reads a group from its beginning."""

MEMORY: Final = "400MB"

FEW: Final = 10_000
"""Most distinct values of a text column that DuckDB numbers, estimated."""

CUT: Final = 513
"""Characters of a text that are read: one more than a record may have, so that what was cut is refused."""

_SMALL_INTEGERS: Final = {"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"}
_NUMBERS: Final = {*_SMALL_INTEGERS, "BIGINT", "DOUBLE"}
_INSTANT: Final = "TIMESTAMP WITH TIME ZONE"
_INSTANTS: Final = re.compile(f"{_INSTANT}|TIMESTAMPTZ_NS")
_NEVER: Final = -(2**61)
"""Stands for a time that no calendar has."""


def blocks(path: Path, *, shown: str) -> Iterator[Columns | bytes]:
    """Yield the rows of a Parquet file in their order, as columns or as JSON lines.

    `shown` names the file in errors. Raises `InputError` `UNREADABLE`.
    """
    with opened(path, UNREADABLE, shown) as (connection, source):
        yield from columned(connection, source, _part(source), shown=shown)


def lines(path: Path, *, shown: str) -> Iterator[bytes]:
    """Yield the rows as blocks of JSON lines; as `blocks` otherwise."""
    with opened(path, UNREADABLE, shown) as (connection, source):
        yield from lined(connection, source, shown=shown)


def columned(
    connection: duckdb.DuckDBPyConnection, source: str, part: str, *, shown: str
) -> Iterator[Columns | bytes]:
    """Yield the rows of `source` as `blocks` does; `part` is SQL for {1} rows from row {0}."""
    kinds = _kinds(connection, source, shown)
    (count,) = connection.execute(f"SELECT count(*) FROM {source}").fetchall()[0]  # noqa: S608 - a number
    indices = _numbered(connection, source, kinds)
    selected = ", ".join(_selected(name, kind, indices) for name, kind in kinds.items()) or "1"
    for start in range(0, count, BATCH):
        rows = part.format(start, BATCH)
        values = connection.execute(f"SELECT {selected} FROM {rows}").fetchnumpy()  # noqa: S608 - quoted
        try:
            yield _columns(min(BATCH, count - start), values, indices)
        except (NotUnderstoodError, msgspec.ValidationError):
            yield from _lines(connection, rows, kinds)


def lined(connection: duckdb.DuckDBPyConnection, source: str, *, shown: str) -> Iterator[bytes]:
    """Yield the rows of `source` as `lines` does."""
    yield from _lines(connection, source, _kinds(connection, source, shown))


def rows(path: Path, *, shown: str, limit: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of any Parquet file, with JSON's values: times and other types become text.

    Raises `InputError` ``import.source``, and ``json.too-large`` where the texts and lists of a row have more
    than `limit` bytes.
    """
    with opened(path, "import.source", shown) as (connection, source):
        elements = source.replace("read_parquet", "parquet_schema")
        schema = connection.sql(f"SELECT name, num_children FROM {elements}").fetchall()  # noqa: S608 - a number
        names, inside = [], 0  # elements that are still due within a column: each is followed by its members
        for name, members in schema[1:]:
            if not inside:
                names.append(name)
            inside += (members or 0) - bool(inside)
        yield from fetched(connection, source, _part(source), names, shown=shown, limit=limit)


def _part(source: str) -> str:
    numbered = source.replace(")", ", file_row_number = true)")
    return f"{numbered} WHERE file_row_number >= {{0}} AND file_row_number < {{0}} + {{1}}"


def fetched(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    part: str,
    names: Sequence[str],
    *,
    shown: str,
    limit: int,
    before: int = 0,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of `source` as `rows` does; `before` of the file's rows came earlier.

    Where a column has another name than in `names`, those of the file, DuckDB gave it one, since two are
    equal but for case: that is refused.

    A text that stands in a file once may be that of a million rows, and is copied for each that is fetched.
    So at most twice `limit` is fetched at once: `part` is SQL for {1} rows from row {0}.
    """
    described = connection.sql(f"SELECT * FROM {source}")  # noqa: S608 - a number, a name of ours
    if twice := [name for name, read in zip(names, described.columns, strict=True) if name not in {read, ""}]:
        message = f"two columns have names that are equal but for case: {visible(twice[0])!r}"
        raise InputError("import.source", message, where=shown, hint="give each column a name of its own")
    kinds = {_quoted(name): kind for name, kind in zip(described.columns, described.types, strict=True)}
    # DuckDB fetches instants, nested ones too, through a package that need not be there.
    texts = {name: _INSTANTS.subn("VARCHAR", str(kind)) for name, kind in kinds.items()}
    values = ", ".join(f"{name}::{text}" if count else name for name, (text, count) in texts.items())
    size = " + ".join(_size(name, kind) for name, kind in kinds.items())
    sized = f"SELECT row_number() OVER () - 1 AS row, {size} AS size FROM {source}"  # noqa: S608 - quoted
    total = f"SELECT *, sum(size) OVER (ROWS UNBOUNDED PRECEDING) - size AS total FROM ({sized})"  # noqa: S608
    told = "min(row), count(*), max(size), arg_max(row, size)"
    parts = f"SELECT {told} FROM ({total}) GROUP BY total // {limit} ORDER BY 1"  # noqa: S608 - as above
    listed = connection.execute(parts).fetchall()
    for first, count, largest, row in listed:
        if largest > limit:
            where = f"{shown}:{before + row + 1}"
            raise InputError("json.too-large", f"row longer than {limit:,} bytes", where=where)
        piece = part.format(first, count) if len(listed) > 1 else source
        cursor = connection.execute(f"SELECT {values} FROM {piece}")  # noqa: S608 - quoted
        while batch := cursor.fetchmany(ROWS):
            for items in batch:
                yield dict(zip(described.columns, map(_plain, items), strict=True))


def _size(value: str, kind: Any) -> str:
    """Return SQL for the bytes of the texts in a value, and 32 for each item of a list."""
    if kind.id in {"varchar", "blob"}:
        return f"coalesce({'strlen' if kind.id == 'varchar' else 'octet_length'}({value}), 0)"
    if kind.id not in {"list", "array", "map", "struct"}:
        return "0"
    item = f"({value})" if kind.id == "struct" else f"item_{len(value)}"
    members = [(f"{item}.{_quoted(name)}", child) for name, child in kind.children]
    if kind.id in {"list", "array"}:
        members = [(item, kind.children[0][1])]
    size = " + ".join(_size(*member) for member in members) or "0"
    if kind.id == "struct":
        return size
    items = f"map_entries({value})" if kind.id == "map" else value
    return f"coalesce(list_sum(list_transform({items}, lambda {item}: 32 + {size})), 0)"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def opened(
    path: Path, code: str, shown: str, form: str = "Parquet", errors: tuple[type[Exception], ...] = ()
) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
    """Open a file; yields a connection and what stands for the rows of Parquet in SQL.

    DuckDB's errors and `errors` become an `InputError` with `code`.
    """
    import duckdb  # noqa: PLC0415 - 0.3 s, for columns only

    caught: tuple[type[Exception], ...] = (duckdb.Error, *errors)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with duckdb.connect(":memory:") as connection:
            connection.execute(f"SET memory_limit = '{MEMORY}'; SET threads = 1; SET TimeZone = 'UTC'")
            # Named by descriptor: in a path, DuckDB would read *, ? and [ as a pattern.
            yield connection, f"read_parquet('/dev/fd/{descriptor}')"
    except caught as error:
        reason = str(error).partition("\n")[0].replace(f"'/dev/fd/{descriptor}'", "the file")
        hint = f"it is damaged, was cut off, or is no {form}: copy it again, or write it anew"
        raise InputError(code, f"cannot be read as {form}: {reason}", where=shown, hint=hint) from None
    except RuntimeError as error:
        if "interrupted" in str(error).lower():  # so DuckDB tells of Ctrl-C within a query
            raise KeyboardInterrupt from None
        raise
    finally:
        os.close(descriptor)


def _kinds(connection: duckdb.DuckDBPyConnection, source: str, shown: str) -> dict[str, str]:
    """Return the type of every column that is a field; refuses one that is neither this nor the user's."""
    kinds = {
        name: kind
        for name, kind, *_ in connection.sql(f"DESCRIBE SELECT * FROM {source}").fetchall()  # noqa: S608 - a number
    }
    for name in kinds:
        if name not in FIELDS and not USER_FIELD.match(name):
            message = f"column {name!r} is not a field of the record format and has no x_ prefix"
            raise InputError(UNREADABLE, message, where=shown)
    return {name: kind for name, kind in kinds.items() if name in FIELDS}


def _numbered(
    connection: duckdb.DuckDBPyConnection, source: str, kinds: Mapping[str, str]
) -> dict[str, Index]:
    """Return the numbers that DuckDB gives the values of text columns with few of them, all allowed."""
    names = [name for name, kind in kinds.items() if kind == "VARCHAR" and name not in UNCODED]
    if not names:
        return {}
    asked = ", ".join(f'approx_count_distinct("{name}")' for name in names)
    counts = connection.execute(f"SELECT {asked} FROM {source}").fetchall()[0]  # noqa: S608 - names of fields
    indices = {}
    for name in (name for name, count in zip(names, counts, strict=False) if 0 < count <= FEW):
        distinct = f'SELECT DISTINCT "{name}" FROM {source} WHERE "{name}" IS NOT NULL'  # noqa: S608 - as above
        connection.execute(f'DROP TYPE IF EXISTS "{name}"')  # of rows before these
        connection.execute(f'CREATE TYPE "{name}" AS ENUM ({distinct})')
        values = connection.execute(f'SELECT unnest(enum_range(NULL::"{name}"))').fetchall()
        with suppress(msgspec.ValidationError):
            _refuse(name, [value for (value,) in values])
            indices[name] = Index((value, number) for number, (value,) in enumerate([*values, ("",)]))
    return indices


def _selected(name: str, kind: str, indices: Mapping[str, Index]) -> str:
    """Return SQL that gives what is checked of a column: values, their numbers, or whether they are null."""
    value = f'"{name}"'
    if name in indices:
        wanted: str | None = f"enum_code({value}::{value})"
    elif KINDS[name] == "ternary":
        wanted = f"{value}::TINYINT" if kind == "BOOLEAN" else None
    elif KINDS[name] in {"integer", "floating"}:
        wanted = value if kind in _NUMBERS else None
    elif _INSTANTS.fullmatch(kind) and name == "started_at":
        value = f"{value}::{_INSTANT}"  # of nanoseconds too, which no record keeps
        wanted = (
            f"CASE WHEN isfinite({value}) THEN epoch_us({value}) WHEN {value} IS NOT NULL THEN {_NEVER} END"
        )
    else:
        wanted = f"left({value}, {CUT})" if kind == "VARCHAR" else None
    return f'{wanted or f"{value} IS NULL"} AS "{name}"'


def _columns(size: int, values: Mapping[str, NDArray[Any]], indices: Mapping[str, Index]) -> Columns:
    """Return the columns of rows that are certainly right; raises for all others."""
    if any(name not in values or np.ma.getmaskarray(values[name]).any() for name in REQUIRED):
        raise NotUnderstoodError
    numbers: dict[str, NDArray[Any]] = {}
    texts: dict[str, Coded] = {}
    run_ids, times = hashed(()), None
    for name, column in values.items():
        absent, data = np.ma.getmaskarray(column), np.ma.getdata(column)
        if absent.all():
            continue
        if data.dtype == np.bool_:  # of an uncommon type, and right only if nothing stands there
            if name in REQUIRED or not data.all():
                raise NotUnderstoodError
        elif name == "run_id":
            run_ids = hashed(_text(name, column, absent))
        elif name == "started_at":
            times = _times(column, absent)
        elif KINDS[name] == "string":
            texts[name] = _coded(name, column, absent, indices)
        else:
            numbers[name] = _numbers(name, data, absent)
    return Columns(size, numbers=numbers, texts=texts, run_ids=run_ids, times=times)


def _times(column: NDArray[Any], absent: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return times, texts or microseconds, as microseconds."""
    if column.dtype == object:
        return times_of(_text("started_at", column, absent))
    if not (YEARS[0] <= column.min() <= column.max() <= YEARS[1]):
        raise NotUnderstoodError
    return np.ma.filled(column, ABSENT)


def _coded(name: str, column: NDArray[Any], absent: NDArray[np.bool_], indices: Mapping[str, Index]) -> Coded:
    """Return a text column as numbers, which `indices` explain where DuckDB gave them."""
    if name not in indices:
        return coded(_text(name, column, absent), Index())
    codes = np.ma.getdata(column).astype(np.int32)
    codes[absent] = indices[name][""]
    return codes, indices[name]


def _text(name: str, column: NDArray[Any], absent: NDArray[np.bool_]) -> list[str]:
    """Return a text column, all of its values allowed in the field; "" is absent, and stands nowhere else."""
    text: list[str] = np.ma.filled(column, "").tolist()
    if text.count("") != np.count_nonzero(absent):
        raise NotUnderstoodError
    if name != "started_at":
        _refuse(name, [*({*text} - {""})])
    return text


def _refuse(name: str, values: list[Any]) -> None:
    """Raise `msgspec.ValidationError` where a field may not hold one of the values."""
    kind: Any = list[FIELDS[name].type]  # type: ignore[misc]  # a type made at run time
    msgspec.convert(values, kind, strict=True)


def _numbers(name: str, data: NDArray[Any], absent: NDArray[np.bool_]) -> NDArray[Any]:
    """Return a number column whose least and largest value the field may hold, so that all between may."""
    kind, present = KINDS[name], data[~absent]
    if kind != "ternary":
        ends = [present.min().item(), present.max().item()]
        if kind == "integer" and data.dtype == np.float64:
            if not (np.isfinite(ends).all() and (present == np.rint(present)).all()):
                raise NotUnderstoodError
            ends = [int(end) for end in ends]
        _refuse(name, ends)
        if not np.isfinite(ends).all() or (present == DEFAULTS[kind]).any():
            raise NotUnderstoodError
    column = np.full(len(data), DEFAULTS[kind], DTYPES[kind])
    column[~absent] = present
    return column


def _plain(value: Any) -> Any:
    """Return a value of DuckDB as JSON has it; NaN is pandas' blank."""
    if value is None or isinstance(value, str | bool | int | float):
        return value if value == value else None  # noqa: PLR0124 - NaN alone differs from itself
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):  # as older writers write texts
        return value.decode(errors="backslashreplace")
    return value.isoformat() if isinstance(value, date) else str(value)


def _lines(connection: duckdb.DuckDBPyConnection, source: str, kinds: Mapping[str, str]) -> Iterator[bytes]:
    """Yield rows as blocks of JSON lines, about `BLOCK` bytes each."""
    values = {name: f'"{name}"' for name in kinds}
    for name, kind in kinds.items():
        if _INSTANTS.fullmatch(kind):
            values[name] = f"strftime({values[name]}::{_INSTANT}, '%Y-%m-%dT%H:%M:%S.%fZ')"
        elif kind == "VARCHAR":
            values[name] = f"left({values[name]}, {CUT})"
    pairs = ", ".join(f"'{name}', {value}" for name, value in values.items())
    cursor = connection.execute(f"SELECT json_object({pairs}) FROM {source}")  # noqa: S608 - quoted
    block: list[bytes] = []
    size = 0
    while batch := cursor.fetchmany(ROWS):
        block += (row.encode() + b"\n" for (row,) in batch)
        size += sum(map(len, block[-len(batch) :]))
        if size >= BLOCK:
            yield b"".join(block)
            block, size = [], 0
    if block:
        yield b"".join(block)
