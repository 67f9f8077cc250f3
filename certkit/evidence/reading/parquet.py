"""Parquet record files: DuckDB writes every row as a JSON object, which is then read like a line of JSON.

So a single validator (`lines`) serves both forms.
"""

from __future__ import annotations

import os
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from certkit.errors import InputError
from certkit.evidence.reading.lines import BLOCK
from certkit.evidence.records.record import FIELDS, USER_FIELD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

ROWS: Final = 2048
"""Rows fetched at once."""

MEMORY: Final = "400MB"


def lines(path: Path, *, shown: str) -> Iterator[bytes]:
    """Yield the rows of a Parquet file as blocks of JSON lines, in the order of the file.

    `shown` names the file in errors. Raises `InputError` ``bundle.parquet-unreadable``.
    """
    import duckdb  # noqa: PLC0415 - 0.3 s, for Parquet only

    descriptor = os.open(path, os.O_RDONLY)
    try:
        with duckdb.connect(":memory:") as connection:
            connection.execute(f"SET memory_limit = '{MEMORY}'; SET threads = 1; SET TimeZone = 'UTC'")
            # Named by descriptor: in a path, DuckDB would read *, ? and [ as a pattern.
            source = f"read_parquet('/dev/fd/{descriptor}')"
            relation = connection.sql(f"DESCRIBE SELECT * FROM {source}")  # noqa: S608 - a number
            selected = [_column(name, kind, shown) for name, kind, *_ in relation.fetchall()]
            pairs = ", ".join(selected)
            cursor = connection.execute(f"SELECT json_object({pairs}) FROM {source}")  # noqa: S608 - quoted
            yield from _blocks(cursor)
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].replace(f"'/dev/fd/{descriptor}'", "the file")
        raise InputError("bundle.parquet-unreadable", reason, where=shown) from None
    finally:
        os.close(descriptor)


def rows(path: Path, *, shown: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of any Parquet file, with JSON's values: times and other types become text.

    Raises `InputError` ``import.source``.
    """
    import duckdb  # noqa: PLC0415 - 0.3 s, for Parquet only

    descriptor = os.open(path, os.O_RDONLY)
    try:
        with duckdb.connect(":memory:") as connection:
            connection.execute(f"SET memory_limit = '{MEMORY}'; SET threads = 1; SET TimeZone = 'UTC'")
            source = f"read_parquet('/dev/fd/{descriptor}')"
            cursor = connection.execute(f"SELECT * FROM {source}")  # noqa: S608 - a number
            names = [name for name, *_ in cursor.description or ()]
            while batch := cursor.fetchmany(ROWS):
                for values in batch:
                    yield dict(zip(names, map(_plain, values), strict=True))
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].replace(f"'/dev/fd/{descriptor}'", "the file")
        raise InputError("import.source", reason, where=shown) from None
    finally:
        os.close(descriptor)


def _plain(value: Any) -> Any:
    """Return a value of DuckDB as JSON has it."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, date) else str(value)


def _column(name: str, kind: str, shown: str) -> str:
    if name not in FIELDS and not USER_FIELD.match(name):
        raise InputError(
            "bundle.parquet-unreadable",
            f"column {name!r} is not a field of the record format and has no x_ prefix",
            where=shown,
        )
    value = f'"{name}"'
    if kind == "TIMESTAMP WITH TIME ZONE":
        value = f"strftime({value}, '%Y-%m-%dT%H:%M:%S.%fZ')"
    return f"'{name}', {value}"


def _blocks(cursor: duckdb.DuckDBPyConnection) -> Iterator[bytes]:
    block: list[bytes] = []
    size = 0
    while rows := cursor.fetchmany(ROWS):
        for (row,) in rows:
            line = row.encode() + b"\n"
            block.append(line)
            size += len(line)
        if size >= BLOCK:
            yield b"".join(block)
            block, size = [], 0
    if block:
        yield b"".join(block)
