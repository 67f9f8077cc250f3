"""Reading record lines strictly: every line is one valid record, or every fault of it is named.

`read_block` is the door that evidence passes: it tries the fast `Layout` and, wherever that is not sure,
looks at the lines one by one with `check_line`, whose word is final. A line is refused for JSON that
is not strict, for fields that the published schema does not allow (all of them are listed), and for
breaking one of the closed list of contradictions.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from certkit import canonical
from certkit.document import Time
from certkit.errors import InputError
from certkit.evidence.reading.columns import FIELDS, KINDS, Columns
from certkit.evidence.reading.layout import Layout
from certkit.evidence.records import schema
from certkit.evidence.records.faults import LIMIT, Fault, Faults
from certkit.evidence.records.record import MAX_LINE, USER_FIELD, Record
from certkit.evidence.records.rules import contradictions, suspicious

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import jsonschema

_MISSING = re.compile(r"'(.+)' is a required property\Z")
PART: Final = 1 << 20
"""Bytes that are decoded at once: as many records as a processor's cache holds."""

_SHOWN: Final = 60


def check_line(line: bytes, number: int = 1) -> tuple[Record, frozenset[str]] | list[Fault]:
    """Return the record on one line with its user fields, or all faults of the line."""
    if not line.strip():
        return [_fault(number, "", "record.blank-line", "one JSON object", "an empty line")]
    if len(line) > MAX_LINE:
        found = f"{len(line):,} bytes"
        return [_fault(number, "", "record.too-long", f"at most {MAX_LINE:,} bytes", found)]
    try:
        value = canonical.loads(line)
    except InputError as error:
        return [
            _fault(number, "", "record.json", "one strict JSON object", f"{error.message} ({error.code})")
        ]
    if not isinstance(value, dict):
        return [_fault(number, "", "record.json", "one JSON object", shown(value))]
    user = frozenset(name for name in value if USER_FIELD.match(name))
    known = {name: _as_integer(name, item) for name, item in value.items() if name not in user}
    try:
        record = msgspec.convert(known, Record, strict=True)
    except msgspec.ValidationError as error:
        faults = _all_faults(known, number)
        return faults or [_fault(number, "", "record.value", "a record", str(error))]
    broken = contradictions(record)
    if broken:
        faults = [_fault(number, item.pointer, item.code, item.expected, item.found) for item in broken]
        return sorted(faults, key=lambda fault: (fault.pointer, fault.code))
    return record, user


def _as_integer(name: str, value: Any) -> Any:
    """Take 8.0 for 8, as JSON Schema does: JSON knows one kind of number."""
    if isinstance(value, float) and KINDS.get(name) == "integer" and value.is_integer():
        return int(value)
    return value


def check_lines(lines: bytes, *, limit: int = LIMIT) -> list[Fault]:
    """Return the faults of a block of lines, each looked at one by one, and of the lines together.

    At most `limit` faults are returned, in order of line and pointer.
    """
    faults: list[Fault] = []
    records: list[tuple[int, Record]] = []
    for number, line in enumerate(split_lines(lines), 1):
        result = check_line(line, number)
        if isinstance(result, list):
            faults += result
        else:
            records.append((number, result[0]))
    faults += _repetitions(records)
    return sorted(faults, key=lambda fault: (fault.line, fault.pointer))[:limit]


def _repetitions(records: Iterable[tuple[int, Record]]) -> list[Fault]:
    runs: dict[str, int] = {}
    sequences: dict[int, int] = {}
    domains: dict[str, tuple[str, int]] = {}
    faults = []
    for number, record in records:
        if (first := runs.setdefault(record.run_id, number)) != number:
            faults.append(repeated(number, "run_id", record.run_id, f"line {first}"))
        if record.sequence is not None and (first := sequences.setdefault(record.sequence, number)) != number:
            faults.append(repeated(number, "sequence", record.sequence, f"line {first}"))
        domain, first = domains.setdefault(record.task_id, (record.domain, number))
        if domain != record.domain:
            faults.append(two_domains(number, record.task_id, domain, record.domain, f"line {first}"))
    return faults


def repeated(number: int, field: str, value: str | int, first: str) -> Fault:
    """Return the fault of a `field` that was used before, at place `first`."""
    code = "record.duplicate-run-id" if field == "run_id" else "record.duplicate-sequence"
    return _fault(number, f"/{field}", code, f"a {field} of its own", f"{shown(value)}, as at {first}")


def two_domains(number: int, task: str, domain: str, other: str, first: str) -> Fault:
    """Return the fault of a `task` of `domain` that occurs in an `other` one."""
    return _fault(
        number,
        "/task_id",
        "record.task-in-two-domains",
        f"domain {shown(domain)} for task {shown(task)}, as at {first}",
        f"domain {shown(other)}",
    )


def split_lines(block: bytes) -> list[bytes]:
    """Split at newlines; a final newline ends the last line and does not begin another."""
    lines = block.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return lines


class Reader:
    """Reads blocks of lines into columns, learning from each which fields the producer writes."""

    def __init__(self) -> None:
        self._layout = Layout()
        self._seen: frozenset[str] = frozenset()

    def read(self, block: bytes) -> Columns | Faults:
        """Return the columns of a block of whole lines, or its faults (lines counted from 1)."""
        parts = []
        for part in _parts(block):
            columns = self._layout.decode(part)
            if columns is None and self._learn(part):
                columns = self._layout.decode(part)
            if columns is None:
                return self._read_slowly(block)
            parts.append(columns)
        joined = Columns.join(parts)
        return self._read_slowly(block) if suspicious(joined) else joined

    def _learn(self, block: bytes) -> bool:
        """Widen the layout by the fields of three lines; tell whether it grew."""
        lines = split_lines(block)
        names: set[str] = set()
        for line in (lines[0], lines[len(lines) // 2], lines[-1]):
            result = check_line(line)
            if not isinstance(result, list):
                names |= result[1] | {name for name in FIELDS if getattr(result[0], name) is not None}
        return self._widen(frozenset(names))

    def _widen(self, names: frozenset[str]) -> bool:
        if self._layout.covers(names):
            return False
        self._seen |= names
        self._layout = Layout(self._seen)
        return True

    def _read_slowly(self, block: bytes) -> Columns | Faults:
        faults = Faults()
        records: list[Record] = []
        user: set[str] = set()
        used: set[str] = set()
        for number, line in enumerate(split_lines(block), 1):
            result = check_line(line, number)
            if isinstance(result, list):
                faults.note(result)
                records.clear()
            elif not faults:
                records.append(result[0])
                user |= result[1]
                used.update(name for name in FIELDS if getattr(result[0], name) is not None)
        if faults:
            return faults
        self._widen(frozenset(user | used))
        return Columns.of_records(records, frozenset(user))


def _parts(block: bytes) -> Iterator[bytes]:
    """Cut a block at newlines into parts of about `PART` bytes."""
    start = 0
    while start < len(block):
        stop = start + PART
        newline = block.find(b"\n", stop) if stop + PART // 2 < len(block) else -1
        end = newline + 1 if newline >= 0 else len(block)
        yield block[start:end]
        start = end


@cache
def _validator() -> jsonschema.Draft202012Validator:
    from jsonschema import Draft202012Validator, FormatChecker  # noqa: PLC0415 - 0.3 s, for bad lines only

    return Draft202012Validator(schema.record_schema(), format_checker=FormatChecker(()))


def _all_faults(value: dict[str, Any], number: int) -> list[Fault]:
    faults = [
        fault for error in _validator().iter_errors(value) for fault in _from_schema(error, value, number)
    ]
    if not any(fault.pointer == "/started_at" for fault in faults) and value.get("started_at") is not None:
        try:
            msgspec.convert(value["started_at"], Time, strict=True)
        except msgspec.ValidationError:
            found = shown(value["started_at"])
            faults.append(_fault(number, "/started_at", "record.value", "a real time with offset", found))
    return sorted(set(faults), key=lambda fault: (fault.pointer, fault.code))


def _from_schema(error: jsonschema.ValidationError, value: dict[str, Any], number: int) -> list[Fault]:
    kind = str(error.validator)
    if kind == "additionalProperties":
        return [
            _fault(
                number,
                pointer(name),
                "record.unknown-field",
                "a field of the record format, or an x_ prefix",
                shown(value[name]),
            )
            for name in value
            if name not in FIELDS and not USER_FIELD.match(name)
        ]
    if kind == "required" and (match := _MISSING.match(error.message)):
        name = match.group(1)
        return [_fault(number, pointer(name), "record.missing-field", schema.expected(name), "nothing")]
    name = str(error.absolute_path[0])
    if value[name] is None:
        return [_fault(number, pointer(name), "record.missing-field", schema.expected(name), "null")]
    right_type = schema.has_type(name, value[name])
    code = "record.value" if right_type else "record.type"
    return [_fault(number, pointer(name), code, schema.expected(name), shown(value[name]))]


def pointer(name: str) -> str:
    """Return the JSON pointer of a field."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def shown(value: Any) -> str:
    """Return a JSON value as it is shown in a fault, shortened."""
    text = canonical.line(value).decode().rstrip("\n")
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _fault(number: int, pointer: str, code: str, expected: str, found: str) -> Fault:
    return Fault(line=number, pointer=pointer, code=code, expected=expected, found=found)
