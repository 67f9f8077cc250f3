"""What the entries of a log say so far, read from their bytes: what a writer goes by.

    known = Ledger(log, where=str(folder))
    known.follow(head, trust)                 # all entries up to a head that the log's key signed
    known.first(passport_id), known.latest("lab/agent"), known.endings(passport_id)

The derived tables would be faster and are not asked: whoever can write the file can write them, and no proof
shows what they leave out. So the first to write after a registry was opened reads its entries once, as a
verification of a passport's status does; after that only those that were added.

What somebody else signed, or what was signed for another log, binds nobody who writes under a trust policy:
it logs no passport, and bars nobody by a date ahead of the clock. Signatures are verified of those entries
alone that would bind.
The chain of a lineage goes on from every entry, as an audit has it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.errors import CertkitError, MismatchError
from certkit.progress import SILENT, Progress, shown
from certkit.registry.entry import Claims, KeyChange, Revocation, read, skim, timestamp
from certkit.registry.index import chosen
from certkit.registry.lineage import Lineages, LogKeys
from certkit.registry.rules import is_signed
from certkit.registry.search import ending
from certkit.tlog.hashing import HASH_SIZE, leaf_hash
from certkit.tlog.tiles import WIDTH
from certkit.tlog.tree import Frontier

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from certkit.passport.keys import PublicKey
    from certkit.passport.trust import Trust
    from certkit.registry.entry import Previous, Stored, UnverifiedEntry
    from certkit.registry.log import Log
    from certkit.tlog.checkpoint import Checkpoint

_UNDATED: Final = bytes(20)
_PASSPORT: Final = re.compile(rb'"passport_id":"(sha256:[0-9a-f]{64})"')


class Ledger:
    """The entries of the log in an open database, by lineage and by passport; `where` names it in errors."""

    def __init__(
        self, log: Log, *, where: str, now: datetime | None = None, progress: Progress = SILENT
    ) -> None:
        self._log, self._where, self._progress = log, where, progress
        self._now = None if now is None else timestamp(now)
        self.origin = ""
        """The name of the log, once it was followed."""
        self.trust: Trust | None = None
        """Whose entries count; None where everybody's do."""
        self._keys: dict[str, PublicKey] | None = None
        self._forget()

    def _forget(self) -> None:
        self._frontier = Frontier()
        self._leaves = bytearray()
        self._about: dict[bytes, list[int]] = {}
        self._first: dict[str, int] = {}
        self._again: dict[str, list[int]] = {}
        self._dates = bytearray()
        self._newest = ""
        self._changes: set[int] = set()
        self._log_keys = LogKeys(self.origin)
        self._lineages = Lineages()
        self._followed: set[bytes] = set()
        self._endings: dict[str, list[tuple[int, UnverifiedEntry]]] = {}
        self._false: dict[str, list[tuple[int, UnverifiedEntry]]] = {}

    def follow(self, head: Checkpoint, trust: Trust | None = None) -> None:
        """Read on, up to a head that was verified; what keys of a policy signed for this log counts.

        Raises `MismatchError` ``registry.inconsistent`` where the entries are not the head's.
        """
        if (self.origin, self.trust) != (head.origin, trust):
            self.origin, self.trust = head.origin, trust
            self._keys = None if trust is None else {one.id: one.key for one in trust.candidates()}
            self._forget()
        if self._reaches(head):
            return
        # It may have read what was never committed, and then begins anew.
        self._forget()
        if not self._reaches(head):
            raise MismatchError(
                "registry.inconsistent",
                f"the stored entries are not those of the checkpoint over {head.size:,}",
                hint="'certkit registry audit' tells what is wrong",
            )

    def _reaches(self, head: Checkpoint) -> bool:
        with shown(self._progress, "reading the log", head.size - self._frontier.size) as bar:
            while (start := self._frontier.size) < head.size:
                entries = self._log.entries(start, min(start + WIDTH, head.size))
                if not entries:
                    return False
                for data in entries:
                    self.add(data)
                bar.advance(len(entries))
        return (self._frontier.size, self._frontier.root) == (head.size, head.root)

    def add(self, data: bytes) -> None:
        """Take the next entry."""
        index, leaf = self._frontier.size, leaf_hash(data)
        self._frontier.add(leaf)
        self._leaves += leaf
        place = _place(data)
        self._dates += _UNDATED if place is None else place.issued_at.encode()
        if place is None:
            return  # no entry, as an audit tells
        self._newest = max(self._newest, place.issued_at)
        if place.is_change:
            self._change_keys(index, data)
        self._about.setdefault(place.subject, []).append(index)
        passport_id = place.passport_id
        if passport_id is not None and self._first.setdefault(passport_id, index) != index:
            self._again.setdefault(passport_id, []).append(index)
        if place.subject in self._followed:
            self._follow(index, data)

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
        if (first := self._first.get(passport_id)) is None:
            return
        for index in (first, *self._again.get(passport_id, ())):
            found = _read(self._bytes(index))
            if found and found.passport and found.passport.passport_id == passport_id:
                yield index

    def newest(self, since: str) -> str:
        """Return the latest date of an entry that counts, where that is later than `since`; or nothing.

        Raises `MismatchError` ``registry.inconsistent``.
        """
        if self._newest <= since:
            return ""
        size, after = len(_UNDATED), since.encode()
        dates = (bytes(self._dates[at : at + size]) for at in range(0, len(self._dates), size))
        later = sorted(((date, index) for index, date in enumerate(dates) if date > after), reverse=True)
        for date, index in later:
            if self._binds(index, date.decode()):
                self._newest = date.decode()
                return self._newest
            self._dates[index * size : (index + 1) * size] = _UNDATED
        self._newest = since
        return ""

    def _binds(self, index: int, date: str) -> bool:
        """Tell whether the date of an entry holds for those after it.

        One that has passed does, whoever signed it: for whoever goes by a wider policy it may count.
        """
        passed = self._now is not None and date <= self._now and _read(self._bytes(index)) is not None
        return passed or self._counted(index)

    def log_keys(self) -> set[bytes]:
        """Return the public keys that the log had so far, once one was changed."""
        return self._log_keys.had

    def _counted(self, index: int) -> bool:
        found = _read(self._bytes(index))
        if found is None or isinstance(found.claims, KeyChange):
            return index in self._changes
        return found.entry.is_for(self.origin) and (self._keys is None or is_signed(found, self._keys))

    def find(self, ident: str) -> int:
        """Return an entry by what people call it; raise as `chosen` does."""
        return chosen(ident, self._frontier.size, self._beginning, where=self._where)

    def last(self, lineage: str) -> Previous | None:
        """Return the last entry of a lineage, None where it has none."""
        return self._of(lineage).last(lineage)

    def latest(self, lineage: str) -> str | None:
        """Return the id of the latest passport of a lineage, None where it has none."""
        return self._of(lineage).latest(lineage)

    def passports(self, lineage: str) -> Iterator[tuple[int, Stored]]:
        """Yield the entries of a lineage's passports, with the files that they name, in their order."""
        for index in self._about.get(lineage.encode(), ()):
            found = _read(self._bytes(index))
            if found is not None and found.passport is not None and found.entry.passport is not None:
                yield index, found.entry.passport

    def attempt(self, lineage: str, profile: str, evidence: str) -> int:
        """Return which attempt of a lineage under a profile a passport on this evidence is."""
        return self._of(lineage).attempt(lineage, profile, evidence)

    def endings(self, lineage: str, passport_id: str) -> list[tuple[int, UnverifiedEntry]]:
        """Return the entries of a lineage and log that end a passport, by whomever, with their places."""
        self._of(lineage)
        return self._endings.get(passport_id, [])

    def refuted(self, lineage: str) -> list[tuple[int, UnverifiedEntry]]:
        """Return the entries of a lineage and log that revoke evidence as false, by whomever."""
        self._of(lineage)
        return self._false.get(lineage, [])

    def _of(self, lineage: str) -> Lineages:
        subject = lineage.encode()
        if subject not in self._followed:
            self._followed.add(subject)
            for index in self._about.get(subject, ()):
                self._follow(index, self._bytes(index))
        return self._lineages

    def _follow(self, index: int, data: bytes) -> None:
        if (found := _read(data)) is None:
            return
        self._lineages.follow(index, leaf_hash(data), found)
        if (ended := ending(found)) and found.entry.is_for(self.origin):
            self._endings.setdefault(ended[0], []).append((index, found))
            if isinstance(found.claims, Revocation) and found.claims.reason == "evidence-false":
                self._false.setdefault(found.entry.subject, []).append((index, found))

    def _bytes(self, index: int) -> bytes:
        data = self._log.entry(index)
        at = index * HASH_SIZE
        if data is None or leaf_hash(data) != bytes(self._leaves[at : at + HASH_SIZE]):
            raise MismatchError("registry.inconsistent", f"entry {index} is not the one that was signed")
        return data

    def _beginning(self, start: str) -> list[int]:
        ids = [one for one in self._first if one.startswith(start)]
        counted = [index for one in ids if (index := self.first(one)) is not None]
        return counted or [index for one in ids if (index := self.own(one)) is not None]


class _Place(NamedTuple):
    """Where an entry belongs: its lineage, its date, and the passport that it logs."""

    subject: bytes
    issued_at: str
    passport_id: str | None
    is_change: bool
    """Whether it is about the log's key, whose submitter is the log itself."""


def _place(data: bytes) -> _Place | None:
    """Return where an entry belongs, None for no entry; what is none may still be given a place."""
    if (skimmed := skim(data)) is not None:
        found = _PASSPORT.search(skimmed.payload) if skimmed.type == b"passport" else None
        passport_id = found[1].decode() if found else None
        return _Place(skimmed.subject, skimmed.issued_at, passport_id, skimmed.type == b"key")
    if (entry := _read(data)) is None:
        return None
    claims, subject = entry.claims, entry.entry.subject.encode()
    passport_id = claims.passport_id if isinstance(claims, Claims) else None
    return _Place(subject, entry.entry.issued_at, passport_id, isinstance(claims, KeyChange))


def _read(data: bytes) -> UnverifiedEntry | None:
    try:
        return read(data)
    except CertkitError:
        return None
