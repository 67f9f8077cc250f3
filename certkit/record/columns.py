"""Records as columns: an array per field.

Numbers stand as they are, texts as the numbers of their distinct values. An absent number is stored as a
value outside the field's range, an absent text as the empty string. A field that no record has is not stored.
"""

from __future__ import annotations

import struct
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from certkit.record.record import REQUIRED, Approach, Condition, Outcome, Record, may_be_attacked
from certkit.record.times import microseconds

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    Booleans = NDArray[np.bool_]
    Integers = NDArray[np.int64]

UNCODED: Final = {"run_id", "started_at"}
"""Text fields without `Coded` columns: ids of runs are hashed, times are read."""

ABSENT: Final = -(2**60)
"""Stands in an integer column for an absent value."""


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
# Outside the range of the field, but of the column's type, so that a column converts in a single call.
DEFAULTS: Final[dict[str, Any]] = {
    "string": "",
    "integer": ABSENT,
    "floating": -9.0,
    "ternary": -1,
    "time": "",
}
DTYPES: Final[dict[str, type[np.generic]]] = {"integer": np.int64, "floating": np.float64, "ternary": np.int8}
_FORMATS: Final = {"integer": "q", "floating": "d", "ternary": "b"}


def pack(name: str, column: Sequence[Any]) -> NDArray[Any]:
    """Return the numbers of field `name` as a read-only array, three times as fast as `numpy.array`.

    Raises `struct.error` where an element is not a number.
    """
    kind = KINDS[name]
    return np.frombuffer(struct.pack(f"{len(column)}{_FORMATS[kind]}", *column), DTYPES[kind])


class Index(dict[Any, int]):
    """Numbers keys in the order of their first lookup; None has no number, and raises `TypeError`."""

    def __missing__(self, key: Any) -> int:
        if key is None:
            raise TypeError
        value = self[key] = len(self)
        return value


def name_hash(name: str) -> int:
    """Return the 64-bit hash of the name of a run, task or cluster."""
    return xxhash.xxh3_64_intdigest(name.encode())


def name_hashes(names: Collection[str]) -> Hashes:
    """Return the hash of every name."""
    return np.fromiter(map(xxhash.xxh3_64_intdigest, map(str.encode, names)), np.uint64, len(names))


Coded = tuple[NDArray[np.int32], Index]
"""A text column as numbers, and the number of each value."""

Hashes = NDArray[np.uint64]


def coded(column: Sequence[str], index: Index) -> Coded:
    """Return texts as the numbers that `index` gives them."""
    return np.fromiter(map(index.__getitem__, column), np.int32, len(column)), index


class Columns:
    """`size` records as a column per field.

    `numbers` holds arrays by field name, `texts` what `coded` gives, `run_ids` hashes. `times` is
    ``started_at`` in microseconds since 1970-01-01 UTC, None where no record has it.
    """

    def __init__(
        self,
        size: int,
        *,
        numbers: dict[str, NDArray[Any]],
        texts: dict[str, Coded],
        run_ids: Hashes,
        times: Integers | None,
    ) -> None:
        self.size = size
        self.numbers = numbers
        self.texts = texts
        self.run_ids = run_ids
        self.times = times

    @classmethod
    def of_records(cls, records: Sequence[Record]) -> Columns:
        """Return the columns of records that were read one by one."""
        numbers: dict[str, NDArray[Any]] = {}
        texts: dict[str, Coded] = {}
        for name, kind in KINDS.items():
            column = [getattr(record, name) for record in records]
            if name in UNCODED or (name not in REQUIRED and all(value is None for value in column)):
                continue
            filled = [DEFAULTS[kind] if value is None else value for value in column]
            if kind == "string":
                texts[name] = coded(filled, Index())
            else:
                numbers[name] = pack(name, filled)
        times = [
            ABSENT if record.started_at is None else microseconds(record.started_at) for record in records
        ]
        return cls(
            len(records),
            numbers=numbers,
            texts=texts,
            run_ids=name_hashes([record.run_id for record in records]),
            times=np.array(times, np.int64),
        )

    @classmethod
    def join(cls, parts: Sequence[Columns]) -> Columns:
        """Return the records of several parts, one after another, whose texts are numbered alike."""
        if len(parts) == 1:
            return parts[0]
        numbers = {
            name: np.concatenate([part.number(name) for part in parts])
            for name in dict.fromkeys(chain.from_iterable(part.numbers for part in parts))
        }
        texts = {
            name: (np.concatenate([part.coded(name, index)[0] for part in parts]), index)
            for name, (_, index) in dict(chain.from_iterable(part.texts.items() for part in parts)).items()
        }
        timed = any(part.times is not None for part in parts)
        return cls(
            sum(part.size for part in parts),
            numbers=numbers,
            texts=texts,
            run_ids=np.concatenate([part.run_ids for part in parts]),
            times=np.concatenate([part.microseconds() for part in parts]) if timed else None,
        )

    def text(self, name: str) -> NDArray[np.object_]:
        """Return a text column; absent values are the empty string."""
        codes, index = self.coded(name)
        return np.array([*index], np.object_)[codes]

    def number(self, name: str) -> NDArray[Any]:
        """Return an integer (int64), float (float64) or truth (int8) column; absent values are `DEFAULTS`."""
        column, kind = self.numbers.get(name), KINDS[name]
        return np.broadcast_to(DTYPES[kind](DEFAULTS[kind]), self.size) if column is None else column

    def microseconds(self) -> Integers:
        """Return ``started_at`` in microseconds since 1970-01-01 UTC (int64); absent is `ABSENT`."""
        return np.full(self.size, ABSENT) if self.times is None else self.times

    def present(self, name: str) -> Booleans:
        """Tell for each record whether it has the field."""
        kind = KINDS[name]
        if kind == "string":
            return ~self.equals(name, "")
        if kind == "time":
            return np.asarray(self.microseconds() != ABSENT)
        return np.asarray(self.number(name) != DEFAULTS[kind])

    def has(self, *names: str) -> bool:
        """Tell whether any record may have one of the fields."""
        return any(name in self.numbers or name in self.texts for name in names)

    def equals(self, name: str, value: str) -> Booleans:
        """Tell for each record whether a text field holds `value`."""
        codes, index = self.coded(name)
        return np.asarray(codes == index.get(value, -1))

    def coded(self, name: str, index: Index | None = None) -> Coded:
        """Return a text field as numbers, and the number of each value; `index` is for an absent field."""
        if name in self.texts:
            return self.texts[name]
        index = Index() if index is None else index
        return np.full(self.size, index[""], np.int32), index

    @cached_property
    def nominal(self) -> Booleans:
        """Nominal runs."""
        return self.equals("condition", Condition.NOMINAL)

    @cached_property
    def attackable(self) -> Booleans:
        """Runs that may have attack fields."""
        codes, index = self.coded("condition")
        return np.array([may_be_attacked(name) for name in index] or [False], np.bool_)[codes]

    @cached_property
    def success(self) -> Booleans:
        """Runs with outcome success."""
        return self.equals("outcome", Outcome.SUCCESS)

    @cached_property
    def harness_error(self) -> Booleans:
        """Runs with outcome harness_error."""
        return self.equals("outcome", Outcome.HARNESS_ERROR)

    @cached_property
    def derived_grade(self) -> NDArray[np.int8]:
        """The recovery grade of [26] eq. 4 in tenths; −1 where the recovery fields do not determine it.

        Our decisions where the equation is silent: at most 2 steps with minor deviations is 7; repeated
        attempts are 4 after any number of steps; later than 5 steps is 4; a run that did not succeed is 0.
        """
        recovered = self.number("recovered")
        timed = self.present("recovery_approach") & self.present("recovery_steps")
        repeated = self.equals("recovery_approach", Approach.REPEATED_ATTEMPTS)
        grade = np.where(timed | repeated, self.highest_grade, -1).astype(np.int8)
        grade[recovered == 0] = 0
        grade[recovered == -1] = -1
        grade[~self.success] = 0
        return grade

    @cached_property
    def highest_grade(self) -> NDArray[np.int8]:
        """The highest grade in tenths that the recovery fields leave possible, where some are absent too."""
        steps = self.number("recovery_steps")
        minor = self.equals("recovery_approach", Approach.MINOR_DEVIATION)
        repeated = self.equals("recovery_approach", Approach.REPEATED_ATTEMPTS)
        late, slow = steps > 5, steps > 2  # noqa: PLR2004 - [26] eq. 4
        return np.select([repeated | late, minor | slow], [np.int8(4), np.int8(7)], np.int8(10))
