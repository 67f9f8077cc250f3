"""Arrow files and streams, batch by batch: DuckDB gives the values, as it does for Parquet.

A packed buffer begins with the number of bytes that it unpacks to, and pyarrow refuses one that holds more or
fewer: the sums are checked before anything is unpacked. Offsets that lead out of a buffer are found by full
validation. Not read are extension types, of which DuckDB believes the metadata, and types in which few bytes
stand for lists without end.
"""

from __future__ import annotations

import mmap
import re
import struct
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from certkit.ground.errors import InputError
from certkit.ground.text import visible
from certkit.record import parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import duckdb

    from certkit.record.columns import Columns

Read = TypeVar("Read")
FILE, STREAM = b"ARROW1", b"\xff\xff\xff\xff"
MAX_UNPACKED: Final = 64 * 1024 * 1024
"""Bytes that a batch and all dictionaries may unpack to together; each row counts as one more."""

PART: Final = "batches LIMIT {1} OFFSET {0}"
_EXTENSION: Final = b"ARROW:extension:name"
_UNREAD: Final = re.compile(
    r"(?:list_view|union|run_end_encoded|values=\w+)<|\b(?:halffloat|decimal256)\b|\ufffd"
)


def blocks(path: Path, *, shown: str) -> Iterator[Columns | bytes]:
    """Yield the rows of a record file; values and errors are those of `parquet.blocks`."""
    columned = partial(parquet.columned, source="batches", part=PART, shown=shown)
    return _read(path, parquet.UNREADABLE, shown, lambda connection, *_: columned(connection))


def lines(path: Path, *, shown: str) -> Iterator[bytes]:
    """Yield the rows as blocks of JSON lines; as `blocks` otherwise."""
    lined = partial(parquet.lined, source="batches", shown=shown)
    return _read(path, parquet.UNREADABLE, shown, lambda connection, *_: lined(connection))


def rows(path: Path, *, shown: str, limit: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of any Arrow file or stream; values and errors are those of `parquet.rows`."""
    fetched = partial(parquet.fetched, source="batches", part=PART, shown=shown, limit=limit)
    return _read(
        path,
        "import.source",
        shown,
        lambda connection, names, at: fetched(connection, names=names, before=at),
    )


def _read(
    path: Path,
    code: str,
    shown: str,
    read: Callable[[duckdb.DuckDBPyConnection, list[str], int], Iterator[Read]],
) -> Iterator[Read]:
    """Yield what `read` gives of `batches`, with the names of their columns and how many rows came before."""
    try:
        import flatbuffers  # noqa: F401, PLC0415 - need not be there, nor pyarrow
        import pyarrow as pa  # noqa: PLC0415
    except ImportError as error:
        message, hint = f"an Arrow file, and {error.name} is not installed", "pip install pyarrow flatbuffers"
        raise InputError(code, message, where=shown, hint=hint) from None
    no_table = (struct.error, IndexError, TypeError, EOFError)  # what flatbuffers says of other bytes
    errors = (pa.ArrowException, OSError, ValueError, *no_table)  # ValueError: an empty file
    with parquet.opened(path, code, shown, "Arrow", errors) as (connection, _), path.open("rb") as file:
        data = pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        aligned = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.DataTypeSpecific, use_threads=False)
        if data[: len(FILE)] == FILE:
            reader = pa.ipc.open_file(pa.PythonFile(file), options=aligned)
            batches = map(reader.get_batch, range(reader.num_record_batches))
        else:
            batches = reader = pa.ipc.open_stream(pa.PythonFile(file), options=aligned)
        _check(pa, data, reader.schema, code, shown)
        before = 0
        for part in _together(batches):
            table = pa.Table.from_batches(part, schema=reader.schema)
            connection.register("batches", table)
            yield from read(connection, reader.schema.names, before)
            before += table.num_rows


def _together(batches: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield batches, small ones together and large ones in parts, since DuckDB reads each from its beginning.

    Where there is none, that is yielded, once, since the columns may be wrong without a row.
    """
    held, rows, size = list[Any](), 0, 0
    for batch in _parts(batches):
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if held and (rows > parquet.BATCH or size > MAX_UNPACKED):
            yield held
            held, rows, size = [], batch.num_rows, batch.nbytes
        held.append(batch)
    yield held


def _parts(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        batch.validate(full=True)
        yield from (batch.slice(at, parquet.BATCH) for at in range(0, batch.num_rows or 1, parquet.BATCH))


def _check(pa: Any, data: Any, schema: Any, code: str, shown: str) -> None:
    """Refuse types that are not read, and what unpacks to more than `MAX_UNPACKED`."""
    odd = [text for text in map(str, schema) if _UNREAD.search(text) or "\0" in text]
    if odd or _EXTENSION in schema.serialize().to_pybytes():
        reason = f"holds what is not read: {visible((*odd, 'an extension type')[0])}"
        raise InputError(code, reason, where=shown, hint="write it as Parquet")
    dictionaries = declared = 0
    for message in _messages(pa, data):
        if message.type == "dictionary":
            dictionaries += _declared(message, 2, 1)
        elif message.type == "record batch":
            declared = _declared(message, 2)
        if dictionaries + declared > MAX_UNPACKED:
            reason = f"a batch with the dictionaries unpacks to more than {MAX_UNPACKED:,} bytes"
            hint = "write smaller batches, or without compression"
            raise InputError(code, reason, where=shown, hint=hint)


def _messages(pa: Any, data: Any) -> Iterator[Any]:
    """Yield the messages of a stream, which must end with its mark, or those that a file's footer names."""
    from flatbuffers.table import Table  # noqa: PLC0415 - need not be there

    if data[: len(FILE)] != FILE:
        stream = pa.BufferReader(data)
        yield from pa.ipc.MessageReader.open_stream(stream)
        if stream.tell() != data.size or data[data.size - 8 :] != STREAM + bytes(4):
            raise pa.ArrowInvalid("it does not end where its batches do")
        return
    end = data.size - len(FILE) - 4
    footer = data[end - int.from_bytes(data[end : end + 4].to_pybytes(), "little") : end].to_pybytes()
    table = Table(footer, int.from_bytes(footer[:4], "little"))
    for vector in filter(None, (table.Offset(8), table.Offset(10))):  # of dictionaries, of batches
        first = table.Vector(vector)
        for (at,) in struct.iter_unpack("<q16x", footer[first : first + 24 * table.VectorLen(vector)]):
            yield pa.ipc.read_message(data[at:])


def _declared(message: Any, *members: int) -> int:
    """Return how many rows a message has, and bytes that its packed buffers declare, together.

    `members` lead to its batch, by their numbers in Message.fbs.
    """
    from flatbuffers.table import Table  # noqa: PLC0415 - need not be there

    data = message.metadata.to_pybytes()
    table = Table(data, int.from_bytes(data[:4], "little"))
    for number in members:
        table = Table(data, table.Indirect(table.Pos + table.Offset(4 + 2 * number)))
    length, buffers, packed = (table.Offset(4 + 2 * number) for number in (0, 2, 3))
    declared: int = struct.unpack_from("<q", data, table.Pos + length)[0] if length else 0
    if packed and buffers:
        first = table.Vector(buffers)
        for at, size in struct.iter_unpack("<qq", data[first : first + 16 * table.VectorLen(buffers)]):
            lead = message.body[at : at + 8].to_pybytes() if size else b""
            declared += max(0, int.from_bytes(lead, "little", signed=True))
    return declared
