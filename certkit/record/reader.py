"""Reading record lines strictly: a line is a valid record, or all its faults are reported.

All evidence passes `RecordReader`. It decodes blocks with the fast `Layout`; where that is not sure,
`check_line` reads line by line and decides. A line is refused for JSON that is not strict, for fields that
the published schema does not allow (all are listed), and for a contradiction of the closed list
(`record.rules`).
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import msgspec

from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.record import schema
from certkit.record.columns import FIELDS, KINDS, Columns, Index
from certkit.record.faults import MOST, Fault, Faults
from certkit.record.layout import MAX_USER_FIELDS, Layout
from certkit.record.record import MAX_LINE, USER_FIELD, Record
from certkit.record.rules import contradictions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PART: Final = 1 << 20
"""Bytes decoded at once, chosen to fit a processor's cache."""

BLOCK: Final = 16 * 1024 * 1024
"""Bytes read and reduced at once."""

_SHOWN: Final = 60
_KEYS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_fields = cache(msgspec.structs.fields)  # it resolves every annotation anew, a millisecond a line


def check_line(line: bytes, number: int = 1) -> Record | list[Fault]:
    """Return the record on a line, or all its faults."""
    result = typed_line(line, number)
    if isinstance(result, list):
        return result
    return contradictions(Columns.of_records([result]), [number]) or result


def typed_line(line: bytes, number: int) -> Record | list[Fault]:
    """Return the record on a line, which may still contradict itself, or the faults of its fields."""
    value = object_on(line, number, most=MAX_LINE, code="record.json")
    if isinstance(value, list):
        return value
    known = {name: _as_integer(name, item) for name, item in value.items() if not USER_FIELD.match(name)}
    try:
        return msgspec.convert(known, Record, strict=True)
    except msgspec.ValidationError:
        faults = [_wrong_field(name, known, number) for name in wrong_fields(Record, known)]
        return sorted(faults, key=lambda fault: (fault.pointer, fault.code))


def object_on(line: bytes, number: int, *, most: int, code: str) -> dict[str, Any] | list[Fault]:
    """Return the JSON object on a line of at most `most` bytes, or the fault of the line."""
    actual = "an empty line"
    if len(line) > most:
        actual = f"{len(line):,} bytes, limit {most:,}"
    elif line.strip():
        try:
            value = canonical.loads(line)
        except InputError as error:
            actual = f"{error.message} ({error.code})"
        else:
            if isinstance(value, dict):
                return value
            actual = shown(value)
    return [_fault(number, "", code, "one strict JSON object", actual)]


def _as_integer(name: str, value: Any) -> Any:
    """Return 8 for 8.0, as JSON Schema does: JSON has only one kind of number."""
    if isinstance(value, float) and KINDS.get(name) == "integer" and value.is_integer():
        return int(value)
    return value


def repeated(number: int, field: str, value: str | int, first: str) -> Fault:
    """Return the fault of a `field` whose `value` was already used at place `first`."""
    code = "record.duplicate-run-id" if field == "run_id" else "record.duplicate-sequence"
    return _fault(number, f"/{field}", code, f"a {field} of its own", f"{shown(value)}, as at {first}")


def two_domains(number: int, task: str, expected: str, actual: str, first: str) -> Fault:
    """Return the fault of a `task` of domain `expected` (at place `first`) that occurs in `actual`."""
    return _fault(
        number,
        "/task_id",
        "record.task-in-two-domains",
        f"domain {shown(expected)} for task {shown(task)}, as at {first}",
        f"domain {shown(actual)}",
    )


def blocks(path: Path, size: int | None = None) -> Iterator[bytes]:
    """Yield a file in blocks of whole lines, each of about `size` bytes (None: `BLOCK`).

    A line beyond `MAX_LINE` is cut just beyond it, to be refused.

    Raises:
        InputError: ``file.unreadable``.
    """
    try:
        with path.open("rb") as stream:
            yield from blocks_of(stream, size)
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise InputError("file.unreadable", reason, where=str(path)) from error


def blocks_of(stream: BinaryIO, size: int | None = None) -> Iterator[bytes]:
    """Yield what an open file holds as `blocks` does; it is read once, from its beginning to its end."""
    size = size or BLOCK
    while block := stream.read(size - 1) + stream.readline(MAX_LINE + 3):
        yield block
        while block and not block.endswith(b"\n"):
            block = stream.readline(size)


def split_lines(block: bytes) -> Iterator[bytes]:
    """Split at newlines; a final newline ends the last line and does not begin another."""
    return (line.removesuffix(b"\n") for line in BytesIO(block))


class RecordReader:
    """Reads blocks of lines into columns, and learns which fields the producer writes."""

    def __init__(self) -> None:
        self._names: frozenset[str] = frozenset()
        self._layout = Layout()

    def read(self, block: bytes) -> Columns | Faults:
        """Return the columns of a block of whole lines, or its faults (lines counted from 1)."""
        parts, indices = [], defaultdict[str, Index](Index)
        for part in _parts(block):
            columns = self._layout.decode(part, indices)
            if columns is None and self._learn(part):
                columns = self._layout.decode(part, indices)
            if columns is None:
                return _read_slowly(block)
            parts.append(columns)
        columns = Columns.join(parts)
        return Faults(contradictions(columns, range(1, columns.size + 1))) or columns

    def _learn(self, block: bytes) -> bool:
        """Add the fields of all lines to the layout; tell whether it grew."""
        try:
            names = frozenset[str]().union(*_KEYS.decode_lines(block))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        if names <= self._names or len(self._layout.user) == MAX_USER_FIELDS:
            return False
        self._names |= names
        self._layout = Layout(self._names)
        return True


def _read_slowly(block: bytes) -> Columns | Faults:
    records: list[Record] = []
    numbers: list[int] = []
    faults: list[Fault] = []
    for number, line in enumerate(split_lines(block), 1):
        result = typed_line(line, number)
        if isinstance(result, list):
            faults += result
        else:
            records.append(result)
            numbers.append(number)
        if len(faults) > MOST:
            break
    columns = Columns.of_records(records)
    faults += contradictions(columns, numbers)
    return Faults(sorted(faults, key=lambda fault: fault.line)) if faults else columns


def _parts(block: bytes) -> Iterator[bytes]:
    """Cut a block at newlines into parts of about `PART` bytes."""
    start = 0
    while start < len(block):
        stop = start + PART
        newline = block.find(b"\n", stop) if stop + PART // 2 < len(block) else -1
        end = newline + 1 if newline >= 0 else len(block)
        yield block[start:end]
        start = end


def wrong_fields(kind: type[msgspec.Struct], value: dict[str, Any]) -> Iterator[str]:
    """Yield the names in a JSON object that are no fields of a struct, or not what the field may hold."""
    fields = _fields(kind)
    yield from value.keys() - {field.name for field in fields}
    for field in fields:
        if field.required or field.name in value:
            try:
                msgspec.convert(value.get(field.name), field.type, strict=True)
            except msgspec.ValidationError:
                yield field.name


def _wrong_field(name: str, value: dict[str, Any], number: int) -> Fault:
    written = shown(value[name]) if name in value else "nothing"
    if name not in FIELDS:
        code, expected = "record.unknown-field", "a field of the record format, or an x_ prefix"
    elif value.get(name) is None:
        code, expected = "record.missing-field", schema.expected(name)
    else:
        code = "record.value" if schema.has_type(name, value[name]) else "record.type"
        expected = schema.expected(name)
    return _fault(number, pointer(name), code, expected, written)


def pointer(name: str) -> str:
    """Return the JSON pointer of a field."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def shown(value: Any) -> str:
    """Return a JSON value, shortened, as a fault shows it."""
    text = canonical.line(value).decode().rstrip("\n")
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _fault(number: int, pointer: str, code: str, expected: str, actual: str) -> Fault:
    return Fault(line=number, pointer=pointer, code=code, expected=expected, found=actual)
