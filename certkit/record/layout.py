"""The fast reader: decodes a block of JSON lines into columns, or returns None where it is not sure.

A `Layout` is a struct type with the fields that a producer really writes, so that decoding costs little more
than parsing. It refuses no record: `decode` returns columns only where every line is certainly a well-typed
record without a repeated key. Otherwise it returns None, and `lines` checks line by line.

A repeated key is noticed without decoding twice: in JSON without escaped quotes, each key and each string
value has two quotation marks. If the block has more quotation marks than the keys and strings of the decoded
records account for, a key was repeated.
"""

from __future__ import annotations

import re
import struct
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from msgspec import UNSET

from certkit.ground.canonical import MAX_INTEGER
from certkit.record.columns import (
    ABSENT,
    DEFAULTS,
    FIELDS,
    KINDS,
    Coded,
    Columns,
    Index,
    coded,
    name_hashes,
    pack,
)
from certkit.record.record import CONDITION_PATTERN, MAX_LINE, REQUIRED, USER_FIELD
from certkit.record.times import parse_times

if TYPE_CHECKING:
    from collections import defaultdict
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

MAX_USER_FIELDS: Final = 64

_NEWLINE, _OPEN, _CLOSE, _RETURN, _QUOTE = (ord(mark) for mark in '\n{}\r"')
# Escaped quotes and backslashes would upset the count of quotation marks; surrogates need a closer look.
_NEEDS_A_CLOSER_LOOK = re.compile(rb'\\["\\]|\\u[dD][89a-fA-F]')
_CONDITION = re.compile(CONDITION_PATTERN)
# A number that underflows has an exponent of three digits, or very many zeros after the point. Two searches
# with a literal beginning cost a tenth of one for [eE].
_SMALL, _SMALL_CAPITAL, _MANY_ZEROS = re.compile(rb"e-\d{3}"), re.compile(rb"E-\d{3}"), b"0" * 64
# Checked faster as whole columns: few conditions are distinct, and times have the same form.
_CHECKED_LATER: Final[dict[str, Any]] = {"condition": str, "started_at": str | None}
_USER_TYPE: Final = str | int | float | bool | None


class NotUnderstoodError(Exception):
    """The block needs a closer look."""


class Layout:
    """A decoder for records that use only the fields `names` (the required ones always included)."""

    def __init__(self, names: frozenset[str] = frozenset()) -> None:
        self.known = tuple(name for name in FIELDS if name in names or name in REQUIRED)
        self.user = tuple(sorted(name for name in names if USER_FIELD.match(name)))[:MAX_USER_FIELDS]
        fields: list[tuple[str, Any, Any]] = []
        for name in self.known:
            default = msgspec.NODEFAULT if name in REQUIRED else DEFAULTS[KINDS[name]]
            fields.append((name, _CHECKED_LATER.get(name, FIELDS[name].type), default))
        fields += [(name, _USER_TYPE, UNSET) for name in self.user]
        line = msgspec.defstruct("Line", fields, forbid_unknown_fields=True, gc=False)
        self._decoder = msgspec.json.Decoder(line)

    def decode(self, block: bytes, indices: defaultdict[str, Index]) -> Columns | None:
        """Return the columns of a block of whole lines, or None where the lines need a closer look.

        `indices` number the texts of a field.
        """
        lines = _count_lines(block)
        if lines is None or (b"\\" in block and _NEEDS_A_CLOSER_LOOK.search(block)):
            return None
        try:
            records = self._decoder.decode_lines(block)
            if len(records) != lines:
                return None
            values = zip(*map(msgspec.structs.astuple, records), strict=True)
            columns, marked, zeros = self._columns(lines, values, indices)
        except (msgspec.DecodeError, UnicodeDecodeError, NotUnderstoodError):
            return None
        if zeros and (_SMALL.search(block) or _SMALL_CAPITAL.search(block) or _MANY_ZEROS in block):
            return None  # a zero may be a number that is too small for a double, such as 1e-400
        marks = int(np.count_nonzero(np.frombuffer(block, np.uint8) == _QUOTE))
        return columns if marks == 2 * marked else None

    def _columns(
        self, size: int, columns: zip[tuple[Any, ...]], indices: defaultdict[str, Index]
    ) -> tuple[Columns, int, bool]:
        """Return the columns, how many keys and strings they hold, and whether any float in them is zero."""
        numbers: dict[str, NDArray[Any]] = {}
        texts: dict[str, Coded] = {}
        run_ids = name_hashes(())
        times = None
        marked, zeros = 0, False
        for name, column in zip((*self.known, *self.user), columns, strict=True):
            kind = KINDS.get(name)
            if kind is None:
                marked += _count_user(column)
                zeros = zeros or 0 in column
            elif name == "run_id":
                run_ids = name_hashes(column)
                marked += 2 * size
            elif kind in {"string", "time"}:
                read = times_of if kind == "time" else partial(coded, index=indices[name])
                values, nulls = _text(read, column)
                if kind == "time":
                    times, present = values, values != ABSENT
                else:
                    texts[name], present = values, values[0] != values[1].get("", -1)
                marked += 2 * int(np.count_nonzero(present)) + nulls
            else:
                numbers[name], count = _numbers(name, column)
                marked += count
                zeros = zeros or (kind == "floating" and not numbers[name].all())
        if not all(map(_CONDITION.match, texts["condition"][1])):
            raise NotUnderstoodError
        return Columns(size, numbers=numbers, texts=texts, run_ids=run_ids, times=times), marked, zeros


def _text(read: Callable[[Sequence[str]], Any], column: tuple[Any, ...]) -> tuple[Any, int]:
    """Return what `read` makes of a text column whose nulls stand for absent values, and their number."""
    try:
        return read(column), 0
    except TypeError:
        return read([value or "" for value in column]), column.count(None)


def _numbers(name: str, column: tuple[Any, ...]) -> tuple[NDArray[Any], int]:
    """Return a number column, and how many keys it holds."""
    default = DEFAULTS[KINDS[name]]
    nulls = 0
    try:
        array = pack(name, column)
    except struct.error:
        nulls = column.count(None)
        array = pack(name, [default if value is None else value for value in column])
    return array, int(np.count_nonzero(array != default)) + nulls


def _count_user(column: tuple[Any, ...]) -> int:
    """Return how many keys and string values the column of an ``x_`` field holds together."""
    types = set(map(type, column))
    if types == {str}:
        return 2 * len(column)
    if types & {int, float} and any(
        isinstance(value, int | float) and abs(value) > MAX_INTEGER for value in column
    ):
        # The decoder may have turned an integer that no double holds into a float.
        raise NotUnderstoodError
    return sum(2 if isinstance(value, str) else 1 for value in column if value is not UNSET)


def times_of(column: Sequence[str]) -> NDArray[np.int64]:
    """Return times in microseconds.

    Raises:
        NotUnderstoodError: for an uncommon form.
    """
    result = np.full(len(column), ABSENT)
    lengths = {*map(len, column)}
    for length in lengths - {0}:
        where = [i for i, text in enumerate(column) if len(text) == length] if len(lengths) > 1 else ...
        times = parse_times(column if where is ... else [column[i] for i in where])
        if times is None:
            raise NotUnderstoodError
        result[where] = times
    return result


def _count_lines(block: bytes) -> int | None:
    """Return the number of lines if each begins with ``{`` and ends with ``}``, else None.

    A flat record has no braces outside strings but its first and last character. So no record can span two
    lines, and if there are as many records as lines, each line holds exactly one.
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
