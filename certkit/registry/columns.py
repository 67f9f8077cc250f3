"""Where to look for the entries of a log, by lineage, passport, date and type, in columns of fixed width.

    columns = Columns()
    columns.add(place_of(data))                      # for every entry, in order
    columns.of_lineage("lab/agent")                  # where entries about it may be

A column holds 8 bytes an entry: a short hash of how its lineage is spelt, the beginning of the id of the
passport that it logs, its date; and a letter for its type. So it may name an entry too many, and whoever asks
reads the entry. A `Snapshot` of the columns is small and loads in one piece.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Struct

from certkit.errors import CertkitError
from certkit.registry.entry import Claims, read, skim
from certkit.registry.rules import spelling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.registry.entry import UnverifiedEntry

_KEY: Final = 8
"""The bytes of a value in a column."""
_NOTHING: Final = bytes(_KEY)
_PASSPORT: Final = re.compile(rb'"passport_id":"sha256:([0-9a-f]{64})"')
_NO_MARKS: Final = str.maketrans("", "", "-:TZ")


class Snapshot(Struct, frozen=True, kw_only=True):
    """The columns over the first `size` entries of a log, and the root that those had."""

    origin: str
    size: int
    root: bytes
    newest: str
    spellings: bytes
    passports: bytes
    dates: bytes
    types: bytes

    @classmethod
    def parse(cls, data: bytes) -> Snapshot | None:
        """Return the snapshot in a file, None where it is none."""
        try:
            kept = msgspec.msgpack.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        columns = (kept.spellings, kept.passports, kept.dates)
        widths = {len(column) for column in columns} | {len(kept.types) * _KEY}
        return kept if widths == {kept.size * _KEY} else None


class Columns:
    """Where to look for an entry, for every entry so far."""

    def __init__(self, kept: Snapshot | None = None) -> None:
        self.newest = kept.newest if kept else ""
        self.spellings = bytearray(kept.spellings if kept else b"")
        self.passports = bytearray(kept.passports if kept else b"")
        self.dates = bytearray(kept.dates if kept else b"")
        self.types = bytearray(kept.types if kept else b"")

    def add(self, place: Place | None) -> None:
        """Take the next entry; None stands for what is no entry, as an audit tells."""
        self.spellings += _NOTHING if place is None else _short(place.subject.decode(errors="replace"))
        self.passports += _NOTHING if place is None else place.passport
        self.dates += _NOTHING if place is None else _number(place.issued_at)
        self.types += b"-" if place is None else place.type[:1]
        if place is not None:
            self.newest = max(self.newest, place.issued_at)

    def of_lineage(self, lineage: str) -> Iterator[int]:
        """Yield the places of entries that may be about a lineage, however it is spelt, in order."""
        return _places(self.spellings, _short(lineage))

    def last_of_lineage(self, lineage: str) -> Iterator[int]:
        """Yield the same from the last one back."""
        short, end = _short(lineage), len(self.spellings)
        while (at := self.spellings.rfind(short, 0, end)) >= 0:
            if at % _KEY == 0:
                yield at // _KEY
            end = at + _KEY - 1

    def of_passport(self, digits: str) -> Iterator[int]:
        """Yield the places of entries that may log a passport whose id begins with some digits."""
        start = bytes.fromhex(digits[: min(len(digits), 2 * _KEY) // 2 * 2])
        return (index for index in _places(self.passports, start) if self.types[index] == ord("p"))

    def of_type(self, letter: bytes) -> Iterator[int]:
        """Yield the places of entries whose type begins with a letter."""
        return _places(self.types, letter, width=1)

    def later(self, date: str) -> list[int]:
        """Return the places of entries that are dated later, the latest date first."""
        after = _number(date)
        dated = (
            (bytes(self.dates[at : at + _KEY]), at // _KEY)
            for at in range(0, len(self.dates), _KEY)
            if self.dates[at : at + _KEY] > after
        )
        return [index for _, index in sorted(dated, reverse=True)]


def _places(column: bytearray, value: bytes, *, width: int = _KEY) -> Iterator[int]:
    at = column.find(value)
    while at >= 0:
        if at % width == 0:
            yield at // width
        at = column.find(value, at + 1)


def _short(lineage: str) -> bytes:
    return blake2b(spelling(lineage).encode(), digest_size=_KEY).digest()


def _number(date: str) -> bytes:
    """Return a date as a number whose bytes have its order; nothing for what is no date."""
    digits = date.translate(_NO_MARKS)
    return int(digits).to_bytes(_KEY) if digits.isdecimal() and digits.isascii() else _NOTHING


class Place(NamedTuple):
    """Where an entry belongs: its lineage, its date, its type, and the passport that it logs."""

    subject: bytes
    issued_at: str
    type: bytes
    passport: bytes


def place_of(data: bytes) -> Place | None:
    """Return where an entry belongs, None for no entry; what is none may still be given a place."""
    if (skimmed := skim(data)) is not None:
        match = _PASSPORT.search(skimmed.payload) if skimmed.type == b"passport" else None
        passport = bytes.fromhex(match[1][: 2 * _KEY].decode()) if match else _NOTHING
        return Place(skimmed.subject, skimmed.issued_at, skimmed.type, passport)
    if (entry := readable(data)) is None:
        return None
    claims, said = entry.claims, entry.entry
    named = claims.passport_id[7 : 7 + 2 * _KEY] if isinstance(claims, Claims) else ""
    passport = bytes.fromhex(named) or _NOTHING
    return Place(said.subject.encode(), said.issued_at, said.type.encode(), passport)


def readable(data: bytes) -> UnverifiedEntry | None:
    """Return an entry, None for what is none."""
    try:
        return read(data)
    except CertkitError:
        return None
