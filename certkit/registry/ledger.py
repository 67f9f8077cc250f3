"""What a writer has to know of the entries so far, and a snapshot of it that spares the next one the reading.

    known = Ledger(log, where=str(folder))
    known.follow(head, trust)                 # all entries up to a head that the log's key signed
    known.first(passport_id), known.latest("lab/agent"), known.ended(lineage, passport_id)

Of every entry it keeps where to look (`certkit.registry.columns`). What an entry says is read from its bytes
when it is asked for, and those must be the ones that the signed root covers.

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
from typing import TYPE_CHECKING, Final

from certkit.errors import MismatchError, UsageError
from certkit.progress import SILENT, Progress, shown
from certkit.registry.columns import Columns, Snapshot, place_of, readable
from certkit.registry.entry import Claims, KeyChange, Logged, Previous, Revocation, read, timestamp
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

_IDENT: Final = re.compile(r"(?:sha256:)?([0-9a-f]{8,64})")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,15}")
_FOLD: Final = b"psr"
"""The types, by their first letter, that a lineage's fold reads: passport, supersede, revoke."""
SHORTEST: Final = 8
"""How many digits of a digest are enough to ask for it."""


class Ledger:
    """The entries of the log in an open database, by lineage and by passport; `where` names it in errors.

    `kept` returns a snapshot that may be believed, and `warn` receives the complaint about a false one;
    `load` returns a passport's file, None where it is not here.
    """

    def __init__(
        self,
        log: Log,
        *,
        where: str,
        now: datetime | None = None,
        progress: Progress = SILENT,
        kept: Callable[[], bytes | None] = lambda: None,
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
        self._columns = Columns(kept)
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
            spellings=bytes(columns.spellings),
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
            self._keys = (
                None if trust is None else {candidate.id: candidate.key for candidate in trust.candidates()}
            )
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
        if (data := self._kept()) is None:
            return
        kept = Snapshot.parse(data)
        if kept is not None and kept.origin == head.origin and kept.size <= head.size:
            with suppress(MismatchError):  # tiles that are damaged cannot show it
                frontier = self._log.frontier_at(kept.size)
                if frontier.root == kept.root:
                    self._forget(kept, frontier)
                    return
        self._warn("the snapshot beside the remembered head is of another log or form; all entries are read")

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
        index, leaf, place = self.size, leaf_hash(data), place_of(data)
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
        entry = readable(data)
        if entry and isinstance(entry.claims, KeyChange) and not self._log_keys.follow(entry, entry.claims):
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
            entry = readable(self._bytes(index))
            if entry and entry.passport and entry.passport.passport_id == passport_id:
                yield index

    def newest(self, since: str) -> str:
        """Return the latest date of an entry that counts, where that is later than `since`; or nothing.

        Raises `MismatchError` ``registry.inconsistent``.
        """
        if self._newest > since:
            for index in self._columns.later(since):
                entry = None if index in self._undated else readable(self._bytes(index))
                if entry is not None and self._binds(index, entry.entry.issued_at):
                    self._newest = entry.entry.issued_at
                    return self._newest
                self._undated.add(index)
            self._newest = since
        return ""

    def _binds(self, index: int, date: str) -> bool:
        """Tell whether the date of an entry holds for those after it.

        A date that has passed does, whoever signed the entry: under a wider policy it may count.
        """
        return (self._now is not None and date <= self._now) or self._counted(index)

    def log_keys(self) -> set[bytes]:
        """Return the public keys that the log had so far, once one was changed."""
        return self._log_keys.had

    def _counted(self, index: int) -> bool:
        entry = readable(self._bytes(index))
        if entry is None or isinstance(entry.claims, KeyChange):
            return index in self._changes
        return entry.entry.is_for(self.origin) and (self._keys is None or is_signed(entry, self._keys))

    def find(self, ident: str) -> int:
        """Return an entry by its index, or that of a passport by its id or the beginning of it.

        Raises `UsageError` ``registry.unknown``.
        """
        return chosen(ident, self.size, self._beginning, where=self._where)

    def last(self, lineage: str) -> Previous | None:
        """Return the last entry of a lineage, None where it has none."""
        for index in self._columns.last_of_lineage(lineage):
            data = self._bytes(index)
            entry = readable(data)
            if entry is not None and entry.entry.subject == lineage:
                return Previous(index=index, leaf=leaf_hash(data).hex())
        return None

    def latest(self, lineage: str) -> str | None:
        """Return the id of the latest passport of a lineage, None where it has none."""
        return self._of(lineage).latest(lineage)

    def alike(self, lineage: str) -> str | None:
        """Return a lineage with a passport that counts and whose name differs from this in spelling alone."""
        for index in self._columns.of_lineage(lineage):
            entry = readable(self._bytes(index))
            if entry and entry.passport and entry.entry.subject != lineage and self._counted(index):
                return entry.entry.subject
        return None

    def passports(self, lineage: str) -> Iterator[tuple[int, Stored]]:
        """Yield the entries of a lineage's passports, with the files that they name, in their order."""
        for index, _, entry in self._about(lineage):
            if entry.passport is not None and entry.entry.passport is not None:
                yield index, entry.entry.passport

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
        for index, data, entry in self._about(lineage):
            claims = entry.claims
            named = {entry.passport_id, claims.supersedes if isinstance(claims, Claims) else None}
            if named & passport_ids and entry.entry.is_for(self.origin):
                folded.follow(Logged(index, leaf_hash(data), entry))
        return folded

    def _about(self, lineage: str) -> Iterator[tuple[int, bytes, UnverifiedEntry]]:
        """Yield the passports of a lineage and the entries that end some, in their order."""
        for index in self._columns.of_lineage(lineage):
            if self._columns.types[index] in _FOLD:
                data = self._bytes(index)
                entry = readable(data)
                if entry is not None and entry.entry.subject == lineage:
                    yield index, data, entry

    def _of(self, lineage: str) -> Lineages:
        if lineage not in self._followed:
            self._followed.add(lineage)
            for index, data, entry in self._about(lineage):
                self._take(index, data, entry)
        return self._lineages

    def _follow(self, lineage: str, index: int, data: bytes) -> None:
        entry = readable(data)
        if entry is not None and entry.entry.subject == lineage:
            self._take(index, data, entry)

    def _take(self, index: int, data: bytes, entry: UnverifiedEntry) -> None:
        self._lineages.follow(index, leaf_hash(data), entry)
        claims = entry.claims
        if isinstance(claims, Revocation) and claims.reason == "evidence-false":
            self._false.setdefault(entry.entry.subject, set()).add(claims.passport_id)

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
        entries = ((index, readable(self._bytes(index))) for index in self._columns.of_passport(digits))
        ids = dict.fromkeys(
            entry.passport.passport_id
            for _, entry in entries
            if entry and entry.passport and entry.passport.passport_id.startswith(start)
        )
        counted = [index for entry in ids if (index := self.first(entry)) is not None]
        return counted or [index for entry in ids if (index := self.own(entry)) is not None]


def begins(digest: str, digits: str) -> bool:
    """Tell whether a digest begins with some digits, at least `SHORTEST`; ``sha256:`` may stand before."""
    start = digits.removeprefix("sha256:")
    return len(start) >= SHORTEST and digest.removeprefix("sha256:").startswith(start)


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
        first = beginning(f"sha256:{match[1]}")
        if len(first) == 1:
            return first[0]
        if first:
            raise UsageError("registry.unknown", f"several passports begin with {ident}", where=where)
    raise UsageError(
        "registry.unknown",
        f"no entry {ident[:80]!r}",
        where=where,
        hint="give an index, a passport id, or at least the first 8 digits of one",
    )
