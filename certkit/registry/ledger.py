"""What a writer has to know of the entries so far, and a snapshot of it that spares the next one the reading.

    known = Ledger(log, where=str(folder))
    known.follow(head, trust)                 # all entries up to a head that the log's key signed
    known.first(passport_id), known.latest("lab/agent"), known.ended(lineage, passport_id)

Of every entry it keeps where to look, in columns of fixed width: a short hash of its lineage, the beginning
of the id of the passport that it logs, its date and its type. What an entry says is read from its bytes when
it is asked for, and those must be the ones that the signed root covers. So the columns may name an entry too
many, and a `Snapshot` of them is small and loads in one piece.

Whoever can write the registry's file can write anything there, and no proof shows what a list leaves out.
So the first to write reads all entries once. The snapshot is kept beside the remembered head, outside the
registry, and is believed as that head is believed (`certkit.registry.heads`).

Entries signed by unknown keys, or for another log, are ignored under a trust policy: they register nothing
and block nothing. Signatures are verified of those entries alone that would count.
The chain of a lineage goes on from every entry, as an audit has it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Struct

from certkit.errors import CertkitError, MismatchError, UsageError
from certkit.progress import SILENT, Progress, shown
from certkit.registry.entry import Claims, KeyChange, Logged, Previous, Revocation, read, skim, timestamp
from certkit.registry.rules import Lineages, LogKeys, Rest, is_signed
from certkit.registry.state import Passports, Policy
from certkit.tlog.hashing import HASH_SIZE, leaf_hash
from certkit.tlog.tiles import WIDTH
from certkit.tlog.tree import Frontier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from certkit.passport.keys import PublicKey
    from certkit.passport.trust import Trust
    from certkit.registry.entry import Stored, UnverifiedEntry
    from certkit.registry.log import Log
    from certkit.tlog.checkpoint import Checkpoint

_KEY: Final = 8
"""The bytes of a value in a column."""
_NOTHING: Final = bytes(_KEY)
_PASSPORT: Final = re.compile(rb'"passport_id":"sha256:([0-9a-f]{64})"')
_NO_MARKS: Final = str.maketrans("", "", "-:TZ")
_IDENT: Final = re.compile(r"(?:sha256:)?([0-9a-f]{8,64})")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,15}")
_FOLD: Final = b"psr"
"""The types, by their first letter, that a lineage's fold reads: passport, supersede, revoke."""


class Snapshot(Struct, frozen=True, kw_only=True):
    """The columns over the first `size` entries of a log, and the root that those had."""

    origin: str
    size: int
    root: bytes
    newest: str
    lineages: bytes
    passports: bytes
    dates: bytes
    types: bytes

    @classmethod
    def parse(cls, data: bytes) -> Snapshot | None:
        """Return the snapshot in a file, None where it is none."""
        try:
            found = msgspec.msgpack.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        columns = (found.lineages, found.passports, found.dates)
        widths = {len(column) for column in columns} | {len(found.types) * _KEY}
        return found if widths == {found.size * _KEY} else None


class _Columns:
    """Where to look for an entry, for every entry so far."""

    def __init__(self, kept: Snapshot | None = None) -> None:
        self.newest = kept.newest if kept else ""
        self.lineages = bytearray(kept.lineages if kept else b"")
        self.passports = bytearray(kept.passports if kept else b"")
        self.dates = bytearray(kept.dates if kept else b"")
        self.types = bytearray(kept.types if kept else b"")

    def add(self, place: _Place | None) -> None:
        """Take the next entry; None stands for what is no entry, as an audit tells."""
        self.lineages += _NOTHING if place is None else _short(place.subject)
        self.passports += _NOTHING if place is None else place.passport
        self.dates += _NOTHING if place is None else _number(place.issued_at)
        self.types += b"-" if place is None else place.type[:1]
        if place is not None:
            self.newest = max(self.newest, place.issued_at)

    def of_lineage(self, lineage: str) -> Iterator[int]:
        """Yield the places of entries that may be about a lineage, in order."""
        return _places(self.lineages, _short(lineage.encode()))

    def last_of_lineage(self, lineage: str) -> Iterator[int]:
        """Yield the same from the last one back."""
        short, end = _short(lineage.encode()), len(self.lineages)
        while (at := self.lineages.rfind(short, 0, end)) >= 0:
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
        found = (
            (bytes(self.dates[at : at + _KEY]), at // _KEY)
            for at in range(0, len(self.dates), _KEY)
            if self.dates[at : at + _KEY] > after
        )
        return [index for _, index in sorted(found, reverse=True)]


def _places(column: bytearray, value: bytes, *, width: int = _KEY) -> Iterator[int]:
    at = column.find(value)
    while at >= 0:
        if at % width == 0:
            yield at // width
        at = column.find(value, at + 1)


def _short(text: bytes) -> bytes:
    return blake2b(text, digest_size=_KEY).digest()


def _number(date: str) -> bytes:
    """Return a date as a number whose bytes have its order; nothing for what is no date."""
    digits = date.translate(_NO_MARKS)
    return int(digits).to_bytes(_KEY) if digits.isdecimal() and digits.isascii() else _NOTHING


class Ledger:
    """The entries of the log in an open database, by lineage and by passport; `where` names it in errors.

    `kept` returns a snapshot that may be believed, and `warn` is told of one that is not; `load` returns a
    passport's file, None where it is not here.
    """

    def __init__(
        self,
        log: Log,
        *,
        where: str,
        now: datetime | None = None,
        progress: Progress = SILENT,
        kept: Callable[[], Snapshot | None] = lambda: None,
        warn: Callable[[str], None] = lambda _: None,
        load: Callable[[Stored], bytes | None] = lambda _: None,
    ) -> None:
        self._log, self._where, self._progress = log, where, progress
        self._load = load
        self._now = None if now is None else timestamp(now)
        self._kept, self._warn = kept, warn
        self.origin = ""
        """The name of the log, once it was followed."""
        self.trust: Trust | None = None
        """Whose entries count; None where everybody's do."""
        self._keys: dict[str, PublicKey] | None = None
        self._forget()

    def _forget(self, kept: Snapshot | None = None, frontier: Frontier | None = None) -> None:
        self._columns = _Columns(kept)
        self._newest = self._columns.newest
        self._undated: set[int] = set()
        self._start = kept.size if kept else 0
        self._frontier = frontier or Frontier()
        self._leaves = bytearray()
        self._changes: set[int] = set()
        self._log_keys = LogKeys(self.origin)
        self._lineages = Lineages()
        self._followed: set[str] = set()
        self._false: dict[str, set[str]] = {}
        for index in self._columns.of_type(b"k"):
            self._change_keys(index, self._bytes(index))

    @property
    def began(self) -> int:
        """How many entries a snapshot spared."""
        return self._start

    @property
    def size(self) -> int:
        """How many entries were followed."""
        return self._frontier.size

    def snapshot(self) -> Snapshot:
        """Return what is known, for the next one who writes."""
        columns = self._columns
        return Snapshot(
            origin=self.origin,
            size=self.size,
            root=self._frontier.root,
            newest=columns.newest,
            lineages=bytes(columns.lineages),
            passports=bytes(columns.passports),
            dates=bytes(columns.dates),
            types=bytes(columns.types),
        )

    def follow(self, head: Checkpoint, trust: Trust | None = None) -> None:
        """Read on, up to a head that was verified; entries that keys of a policy signed for this log count.

        Raises `MismatchError` ``registry.inconsistent`` where the entries are not the head's.
        """
        if (self.origin, self.trust) != (head.origin, trust):
            self.origin, self.trust = head.origin, trust
            self._keys = None if trust is None else {one.id: one.key for one in trust.candidates()}
            self._begin(head)
        if self._reaches(head):
            return
        # It may have read what was never committed, and then begins anew.
        self._begin(head)
        if not self._reaches(head):
            raise MismatchError(
                "registry.inconsistent",
                f"the stored entries are not those of the checkpoint over {head.size:,}",
                hint="'certkit registry audit' tells what is wrong",
            )

    def _begin(self, head: Checkpoint) -> None:
        """Begin with the snapshot, where it is about the beginning of this log, or else with nothing."""
        self._forget()
        if (kept := self._kept()) is None:
            return
        if kept.origin == head.origin and kept.size <= head.size:
            with suppress(MismatchError):  # tiles that are damaged cannot show it
                frontier = self._log.frontier_at(kept.size)
                if frontier.root == kept.root:
                    self._forget(kept, frontier)
                    return
        self._warn("the snapshot beside the remembered head is not of this log; all entries are read instead")

    def _reaches(self, head: Checkpoint) -> bool:
        with shown(self._progress, "reading the log", head.size - self.size) as bar:
            while (start := self.size) < head.size:
                entries = self._log.entries(start, min(start + WIDTH, head.size))
                if not entries:
                    return False
                for data in entries:
                    self.add(data)
                bar.advance(len(entries))
        return (self.size, self._frontier.root) == (head.size, head.root)

    def add(self, data: bytes) -> None:
        """Take the next entry."""
        index, leaf, place = self.size, leaf_hash(data), _place(data)
        self._frontier.add(leaf)
        self._leaves += leaf
        self._columns.add(place)
        if place is None:
            return
        if place.type == b"key":
            self._change_keys(index, data)
        self._newest = max(self._newest, place.issued_at)
        if (lineage := place.subject.decode(errors="replace")) in self._followed:
            self._follow(lineage, index, data)

    def _change_keys(self, index: int, data: bytes) -> None:
        """Take an entry by which the log changes its key, and which counts where the key before signed it."""
        found = _read(data)
        if found and isinstance(found.claims, KeyChange) and not self._log_keys.follow(found, found.claims):
            self._changes.add(index)

    def entry(self, index: int) -> UnverifiedEntry:
        """Return an entry, as its bytes were when they gave the signed root.

        Raises `MismatchError` ``registry.inconsistent``, `InputError` ``registry.entry``.
        """
        return read(self._bytes(index))

    def first(self, passport_id: str) -> int | None:
        """Return the first entry that logs a passport and counts, None where none does.

        Raises `MismatchError` ``registry.inconsistent``.
        """
        return next((index for index in self._logging(passport_id) if self._counted(index)), None)

    def own(self, passport_id: str) -> int | None:
        """Return the first entry that logs a passport and counts, or where none does, the first at all."""
        counted = self.first(passport_id)
        return next(self._logging(passport_id), None) if counted is None else counted

    def _logging(self, passport_id: str) -> Iterator[int]:
        for index in self._columns.of_passport(passport_id.removeprefix("sha256:")):
            found = _read(self._bytes(index))
            if found and found.passport and found.passport.passport_id == passport_id:
                yield index

    def newest(self, since: str) -> str:
        """Return the latest date of an entry that counts, where that is later than `since`; or nothing.

        Raises `MismatchError` ``registry.inconsistent``.
        """
        if self._newest > since:
            for index in self._columns.later(since):
                found = None if index in self._undated else _read(self._bytes(index))
                if found is not None and self._binds(index, found.entry.issued_at):
                    self._newest = found.entry.issued_at
                    return self._newest
                self._undated.add(index)
            self._newest = since
        return ""

    def _binds(self, index: int, date: str) -> bool:
        """Tell whether the date of an entry holds for those after it.

        One that has passed does, whoever signed it: for whoever goes by a wider policy it may count.
        """
        return (self._now is not None and date <= self._now) or self._counted(index)

    def log_keys(self) -> set[bytes]:
        """Return the public keys that the log had so far, once one was changed."""
        return self._log_keys.had

    def _counted(self, index: int) -> bool:
        found = _read(self._bytes(index))
        if found is None or isinstance(found.claims, KeyChange):
            return index in self._changes
        return found.entry.is_for(self.origin) and (self._keys is None or is_signed(found, self._keys))

    def find(self, ident: str) -> int:
        """Return an entry by its index, or that of a passport by its id or the beginning of it.

        Raises `UsageError` ``registry.unknown``.
        """
        return chosen(ident, self.size, self._beginning, where=self._where)

    def last(self, lineage: str) -> Previous | None:
        """Return the last entry of a lineage, None where it has none."""
        for index in self._columns.last_of_lineage(lineage):
            data = self._bytes(index)
            found = _read(data)
            if found is not None and found.entry.subject == lineage:
                return Previous(index=index, leaf=leaf_hash(data).hex())
        return None

    def latest(self, lineage: str) -> str | None:
        """Return the id of the latest passport of a lineage, None where it has none."""
        return self._of(lineage).latest(lineage)

    def passports(self, lineage: str) -> Iterator[tuple[int, Stored]]:
        """Yield the entries of a lineage's passports, with the files that they name, in their order."""
        for index, _, found in self._about(lineage):
            if found.passport is not None and found.entry.passport is not None:
                yield index, found.entry.passport

    def attempt(self, lineage: str, profile: str, evidence: str) -> int:
        """Return which attempt of a lineage under a profile a passport on this evidence is."""
        return self._of(lineage).attempt(lineage, profile, evidence)

    def ended(self, lineage: str, passport_id: str) -> Passports:
        """Return what the entries of a lineage say of a passport and of those that take its place."""
        return self._folded(lineage, {passport_id})

    def refuted(self, lineage: str) -> Iterator[tuple[int, Rest]]:
        """Yield the entries by which issuers revoked evidence of a lineage as false, with that evidence."""
        self._of(lineage)
        if (false := self._false.get(lineage)) and self.trust is not None:
            yield from self._folded(lineage, false).refuted(lineage)

    def _folded(self, lineage: str, passport_ids: set[str]) -> Passports:
        """Return what the entries of a lineage and log say of some passports."""
        folded = Passports(Policy(self.origin, self.trust, self._load, strict=False))
        for index, data, found in self._about(lineage):
            claims = found.claims
            named = {found.passport_id, claims.supersedes if isinstance(claims, Claims) else None}
            if named & passport_ids and found.entry.is_for(self.origin):
                folded.follow(Logged(index, leaf_hash(data), found))
        return folded

    def _about(self, lineage: str) -> Iterator[tuple[int, bytes, UnverifiedEntry]]:
        """Yield the passports of a lineage and the entries that end some, in their order."""
        for index in self._columns.of_lineage(lineage):
            if self._columns.types[index] in _FOLD:
                data = self._bytes(index)
                found = _read(data)
                if found is not None and found.entry.subject == lineage:
                    yield index, data, found

    def _of(self, lineage: str) -> Lineages:
        if lineage not in self._followed:
            self._followed.add(lineage)
            for index, data, found in self._about(lineage):
                self._take(index, data, found)
        return self._lineages

    def _follow(self, lineage: str, index: int, data: bytes) -> None:
        found = _read(data)
        if found is not None and found.entry.subject == lineage:
            self._take(index, data, found)

    def _take(self, index: int, data: bytes, found: UnverifiedEntry) -> None:
        self._lineages.follow(index, leaf_hash(data), found)
        claims = found.claims
        if isinstance(claims, Revocation) and claims.reason == "evidence-false":
            self._false.setdefault(found.entry.subject, set()).add(claims.passport_id)

    def _bytes(self, index: int) -> bytes:
        data = self._log.entry(index)
        at = (index - self._start) * HASH_SIZE
        leaf: bytes | None = bytes(self._leaves[at : at + HASH_SIZE])
        if at < 0:
            with suppress(MismatchError):
                leaf = self._log.leaf(index)
        if data is None or leaf_hash(data) != leaf:
            raise MismatchError("registry.inconsistent", f"entry {index} is not the one that was signed")
        return data

    def _beginning(self, start: str) -> list[int]:
        digits = start.removeprefix("sha256:")
        found = ((index, _read(self._bytes(index))) for index in self._columns.of_passport(digits))
        ids = dict.fromkeys(
            one.passport.passport_id
            for _, one in found
            if one and one.passport and one.passport.passport_id.startswith(start)
        )
        counted = [index for one in ids if (index := self.first(one)) is not None]
        return counted or [index for one in ids if (index := self.own(one)) is not None]


def is_index(ident: str, size: int) -> bool:
    """Tell whether a word is the index of an entry of a log of this size."""
    return _INDEX.fullmatch(ident) is not None and int(ident) < size


def chosen(ident: str, size: int, beginning: Callable[[str], Sequence[int]], *, where: str) -> int:
    """Return the entry with an index, or that of a passport by its id or the beginning of it.

    `beginning` returns the first entry of each passport whose id begins so. Raises `UsageError`
    ``registry.unknown``.
    """
    if is_index(ident, size):
        return int(ident)
    if match := _IDENT.fullmatch(ident):
        found = beginning(f"sha256:{match[1]}")
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError("registry.unknown", f"several passports begin with {ident}", where=where)
    raise UsageError(
        "registry.unknown",
        f"no entry {ident[:80]!r}",
        where=where,
        hint="give an index, a passport id, or at least the first 8 digits of one",
    )


class _Place(NamedTuple):
    """Where an entry belongs: its lineage, its date, its type, and the passport that it logs."""

    subject: bytes
    issued_at: str
    type: bytes
    passport: bytes


def _place(data: bytes) -> _Place | None:
    """Return where an entry belongs, None for no entry; what is none may still be given a place."""
    if (skimmed := skim(data)) is not None:
        found = _PASSPORT.search(skimmed.payload) if skimmed.type == b"passport" else None
        passport = bytes.fromhex(found[1][: 2 * _KEY].decode()) if found else _NOTHING
        return _Place(skimmed.subject, skimmed.issued_at, skimmed.type, passport)
    if (entry := _read(data)) is None:
        return None
    claims, said = entry.claims, entry.entry
    named = claims.passport_id[7 : 7 + 2 * _KEY] if isinstance(claims, Claims) else ""
    passport = bytes.fromhex(named) or _NOTHING
    return _Place(said.subject.encode(), said.issued_at, said.type.encode(), passport)


def _read(data: bytes) -> UnverifiedEntry | None:
    try:
        return read(data)
    except CertkitError:
        return None
