"""The fast reader: a block of JSON lines becomes columns, or is handed back as not understood.

A `Layout` is a struct type made for the fields that a producer really writes, so that decoding a line
and taking it apart costs little more than parsing it. It is an accelerator and never a judge: `decode`
returns columns only where every line is proved to be one well-typed record with no key twice, and
returns None in every other case, upon which `reading` looks at the lines one by one.

How a repeated key is noticed without decoding twice: in valid JSON without escaped quotes every key and
every string value carries exactly two quotation marks. A decoded record tells how many distinct keys
and string values it has; if the block holds more marks than that, something was said twice.
"""

from __future__ import annotations

import re
import struct
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec
import numpy as np
from msgspec import UNSET

from certkit.canonical import MAX_INTEGER
from certkit.evidence import timestamps
from certkit.evidence.record import (
    CONDITION_PATTERN,
    MAX_LINE,
    REQUIRED,
    USER_FIELD,
    Approach,
    Condition,
    Outcome,
    Record,
    may_be_attacked,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Booleans = NDArray[np.bool_]
    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]

ABSENT: Final = -(2**60)
"""What an integer column holds where the record holds nothing."""

MAX_USER_FIELDS: Final = 64

_NEWLINE, _OPEN, _CLOSE, _RETURN, _QUOTE = (ord(mark) for mark in '\n{}\r"')
# Escaped quotes and backslashes would upset the count of quotation marks; surrogates need a closer look.
_NEEDS_A_CLOSER_LOOK = re.compile(rb'\\["\\]|\\u[dD][89a-fA-F]')
_CONDITION = re.compile(CONDITION_PATTERN)


def _kind(annotation: Any) -> str:
    """Return ``string``, ``integer``, ``floating``, ``ternary`` or ``time`` for a field's type."""
    if annotation is bool:
        return "ternary"
    if annotation is int:
        return "integer"
    if annotation is float:
        return "floating"
    if annotation is datetime:
        return "time"
    if isinstance(annotation, type) and issubclass(annotation, str):
        return "string"
    return next(_kind(argument) for argument in get_args(annotation) if argument is not type(None))


FIELDS: Final = {field.name: field for field in msgspec.structs.fields(Record)}
KINDS: Final = {name: _kind(field.type) for name, field in FIELDS.items()}
FEW_VALUES: Final = ("condition", "outcome", "split", "recovery_approach", "measured")
"""String fields of few distinct values, which are looked at by number."""
# Outside what the field can hold, and of the column's own type, so that columns convert at once.
_DEFAULTS: Final = {"string": "", "integer": ABSENT, "floating": -9.0, "ternary": -1, "time": ""}
# Whole columns are checked much faster than one value: few conditions differ, and times are all alike.
_CHECKED_LATER: Final[dict[str, Any]] = {"condition": str, "started_at": str | None}
_FORMATS: Final[dict[type[np.generic], str]] = {np.int64: "q", np.float64: "d", np.int8: "b"}
_USER_TYPE: Final = str | int | float | bool | None


def _pack(column: Sequence[Any], dtype: type[np.generic]) -> NDArray[Any]:
    """Return numbers as a read-only array; three times as fast as asking NumPy what they are."""
    return np.frombuffer(struct.pack(f"{len(column)}{_FORMATS[dtype]}", *column), dtype)


class Index(dict[Any, int]):
    """Numbers things in the order in which they are first met."""

    def __missing__(self, key: Any) -> int:
        value = self[key] = len(self)
        return value


class Layout:
    """A decoder for records that use only the fields `names` (the required ones always included)."""

    def __init__(self, names: frozenset[str] = frozenset()) -> None:
        self.known = tuple(name for name in FIELDS if name in names or name in REQUIRED)
        self.user = tuple(sorted(name for name in names if USER_FIELD.match(name)))[:MAX_USER_FIELDS]
        fields: list[tuple[str, Any, Any]] = []
        for name in self.known:
            default = msgspec.NODEFAULT if name in REQUIRED else _DEFAULTS[KINDS[name]]
            fields.append((name, _CHECKED_LATER.get(name, FIELDS[name].type), default))
        fields += [(name, _USER_TYPE, UNSET) for name in self.user]
        struct = msgspec.defstruct("Line", fields, forbid_unknown_fields=True, gc=False)
        self._decoder = msgspec.json.Decoder(struct)

    def covers(self, names: frozenset[str]) -> bool:
        """Tell whether every field in `names` is in the layout already."""
        return names <= frozenset(self.known + self.user)

    def decode(self, block: bytes) -> Columns | None:
        """Return the columns of a block of whole lines, or None where the lines need a closer look."""
        lines = _count_lines(block)
        if lines is None or (b"\\" in block and _NEEDS_A_CLOSER_LOOK.search(block)):
            return None
        try:
            records = self._decoder.decode_lines(block)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        if len(records) != lines:
            return None
        values = list(zip(*map(msgspec.structs.astuple, records), strict=True))
        columns = Columns(len(records), dict(zip(self.known + self.user, values, strict=True)))
        marks = int(np.count_nonzero(np.frombuffer(block, np.uint8) == _QUOTE))
        if marks != 2 * columns.count_marked(self.user):
            return None
        return columns if columns.plausible and columns.read_times() else None


def _count_lines(block: bytes) -> int | None:
    """Return the number of lines if each begins with ``{`` and ends with ``}``, else None.

    In flat records a brace outside a string is the record's own, so no record can then span two lines,
    and as many records as lines means one on each.
    """
    marks = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(marks == _NEWLINE)
    if len(ends) == 0 or ends[-1] != len(marks) - 1:
        ends = np.append(ends, len(marks))
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts
    if (lengths < 2).any() or (lengths > MAX_LINE).any():  # noqa: PLR2004 - the shortest record is {}
        return None
    last = marks[ends - 1]
    last = np.where(last == _RETURN, marks[ends - 2], last)
    if (marks[starts] != _OPEN).any() or (last != _CLOSE).any():
        return None
    return len(ends)


class Columns:
    """`size` records as one column per field. A field that no record has costs nothing."""

    def __init__(self, size: int, values: dict[str, Sequence[Any]]) -> None:
        self.size = size
        self._values = values
        self._microseconds: Integers | None = None
        self._numeric: dict[str, tuple[NDArray[Any], int]] = {}
        self._strings: dict[str, Sequence[str]] = {}
        self._codes: dict[str, tuple[NDArray[np.int32], dict[str | None, int]]] = {}

    @classmethod
    def of_records(cls, records: Sequence[Record]) -> Columns:
        """Return the columns of records that were read one by one."""
        values: dict[str, Sequence[Any]] = {}
        for name, kind in KINDS.items():
            if kind == "time":
                continue
            column = [getattr(record, name) for record in records]
            if name in REQUIRED or any(value is not None for value in column):
                default = _DEFAULTS[kind]
                values[name] = [default if value is None else value for value in column]
        columns = cls(len(records), values)
        columns._microseconds = np.array(
            [ABSENT if record.started_at is None else timestamps.of(record.started_at) for record in records],
            np.int64,
        )
        return columns

    def strings(self, name: str) -> Sequence[str]:
        """Return a string column; absent values are the empty string."""
        if name not in self._strings:
            column = self._values.get(name)
            if column is None:
                column = ("",) * self.size
            elif name not in REQUIRED and None in column:
                column = tuple(value or "" for value in column)
            self._strings[name] = column
        return self._strings[name]

    def integer(self, name: str) -> Integers:
        """Return an integer column (int64); absent values are `ABSENT`."""
        return self._column(name, np.int64)

    def floating(self, name: str) -> Floats:
        """Return a float column (float64); absent values are −9."""
        return self._column(name, np.float64)

    def ternary(self, name: str) -> NDArray[np.int8]:
        """Return a truth column (int8): 1 true, 0 false, −1 absent."""
        return self._column(name, np.int8)

    def microseconds(self) -> Integers:
        """Return ``started_at`` in microseconds since 1970-01-01 UTC (int64); absent is `ABSENT`."""
        if self._microseconds is None:
            raise AssertionError("the times were not read")
        return self._microseconds

    def read_times(self) -> bool:
        """Turn ``started_at`` into microseconds; tell whether every one was understood."""
        column = self.strings("started_at")
        self._microseconds = np.full(self.size, ABSENT)
        lengths = np.fromiter(map(len, column), np.int64, self.size)
        for length in np.unique(lengths[lengths > 0]).tolist():
            where = np.flatnonzero(lengths == length)
            same = column if len(where) == self.size else [column[i] for i in where.tolist()]
            times = timestamps.parse("".join(same), len(where))
            if times is None:
                return False
            self._microseconds[where] = times
        return True

    def _column(self, name: str, dtype: type[np.generic]) -> NDArray[Any]:
        return self._convert(name, dtype)[0]

    def _convert(self, name: str, dtype: type[np.generic]) -> tuple[NDArray[Any], int]:
        """Return the column as an array, and how many of its values were an explicit null."""
        if name not in self._numeric:
            default = _DEFAULTS[KINDS[name]]
            column = self._values.get(name)
            nulls = 0
            if column is None:
                array = np.full(self.size, default, dtype)
            else:
                try:
                    array = _pack(column, dtype)
                except struct.error:
                    nulls = sum(value is None for value in column)
                    array = _pack([default if value is None else value for value in column], dtype)
            self._numeric[name] = (array, nulls)
        return self._numeric[name]

    def present(self, name: str) -> Booleans:
        """Tell for each record whether the field is there."""
        kind = KINDS[name]
        if kind == "string":
            return ~(self.equals(name, "") | self.equals(name, None))
        if kind == "time":
            return np.asarray(self.microseconds() != ABSENT)
        array = self._column(name, _DTYPES[kind])
        return np.asarray(array != _DEFAULTS[kind])

    def any_present(self, names: Sequence[str]) -> Booleans:
        """Tell for each record whether at least one of the fields is there."""
        result = np.zeros(self.size, np.bool_)
        for name in names:
            if name in self._values:
                result |= self.present(name)
        return result

    def count_marked(self, user: Sequence[str]) -> int:
        """Return the number of keys plus the number of string values, over all records."""
        total = 0
        for name, column in self._values.items():
            if name in user:
                total += sum(2 if isinstance(value, str) else 1 for value in column if value is not UNSET)
                continue
            kind = KINDS[name]
            if name in REQUIRED:
                total += 2 * self.size
            elif name in FEW_VALUES:
                index, found = self._coded(name)
                absent = int(np.count_nonzero(index == found.get("", -1)))
                total += 2 * (self.size - absent) - int(np.count_nonzero(index == found.get(None, -1)))
            elif kind in {"string", "time"}:
                total += 2 * (self.size - column.count("")) - column.count(None)
            else:
                array, nulls = self._convert(name, _DTYPES[kind])
                total += int(np.count_nonzero(array != _DEFAULTS[kind])) + nulls
        return total

    @property
    def plausible(self) -> bool:
        """Whether the values hold what the decoder could not check.

        The condition has its pattern, and no number of the user's own is beyond the integers that a
        double holds (the decoder may have turned such an integer into a float).
        """
        own = (value for name in self.user_fields for value in self._values[name])
        if any(isinstance(value, int | float) and abs(value) > MAX_INTEGER for value in own):
            return False
        return all(_CONDITION.match(condition or "") for condition in self._coded("condition")[1])

    @cached_property
    def user_fields(self) -> frozenset[str]:
        """The user's own fields that at least one record has."""
        return frozenset(name for name in self._values if name not in KINDS)

    def equals(self, name: str, value: str | None) -> Booleans:
        """Tell for each record whether the field `name`, one of `FEW_VALUES`, holds `value`."""
        index, found = self._coded(name)
        return np.asarray(index == found.get(value, -1))

    def _coded(self, name: str) -> tuple[NDArray[np.int32], dict[str | None, int]]:
        """Return a string column of few distinct values as numbers, and what they stand for."""
        if name not in self._codes:
            found = Index()
            column = self._values.get(name, ("",) * self.size)
            index = np.fromiter(map(found.__getitem__, column), np.int32, self.size)
            self._codes[name] = (index, found)
        return self._codes[name]

    def outcome(self, outcome: Outcome) -> Booleans:
        """Tell for each record whether it ended so."""
        return self.equals("outcome", outcome)

    @cached_property
    def nominal(self) -> Booleans:
        """Nominal runs."""
        return self.equals("condition", Condition.NOMINAL)

    @cached_property
    def attackable(self) -> Booleans:
        """Runs on which attack fields may stand."""
        index, found = self._coded("condition")
        return np.array([may_be_attacked(name or "") for name in found] or [False], np.bool_)[index]

    @cached_property
    def success(self) -> Booleans:
        """Runs with outcome success."""
        return self.outcome(Outcome.SUCCESS)

    @cached_property
    def harness_error(self) -> Booleans:
        """Runs with outcome harness_error."""
        return self.outcome(Outcome.HARNESS_ERROR)

    @cached_property
    def derived_grade(self) -> NDArray[np.int8]:
        """`record.grade_tenths` of each run; −1 where the recovery fields do not give one."""
        recovered, steps = self.ternary("recovered"), self.integer("recovery_steps")
        repeated = self.equals("recovery_approach", Approach.REPEATED_ATTEMPTS)
        correct = self.equals("recovery_approach", Approach.CORRECT)
        minor = self.equals("recovery_approach", Approach.MINOR_DEVIATION)
        timed = (correct | minor) & (steps != ABSENT)
        grade = np.full(self.size, -1, np.int8)
        grade[timed] = 7
        grade[timed & (steps > 5)] = 4  # noqa: PLR2004 - [26] eq. 4
        grade[timed & correct & (steps <= 2)] = 10  # noqa: PLR2004 - [26] eq. 4
        grade[repeated] = 4
        grade[recovered == 0] = 0
        grade[recovered == -1] = -1
        grade[~self.success] = 0
        return grade


_DTYPES: Final[dict[str, type[np.generic]]] = {
    "integer": np.int64,
    "floating": np.float64,
    "ternary": np.int8,
}
