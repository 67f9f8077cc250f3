"""What the entries of a log say so far, read from their bytes: what a writer goes by.

    known = Ledger(log, where=str(folder))
    known.follow(head)                        # all entries up to a head that the log's key signed
    known.first(passport_id), known.latest("lab/agent"), known.endings(passport_id)

The derived tables would be faster and are not asked: whoever can write the file can write them, and no proof
shows what they leave out. So the first to write after a registry was opened reads its entries once, as a
verification of a passport's status does; after that only those that were added.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from certkit.errors import CertkitError, MismatchError
from certkit.registry.entry import Claims, read, skim
from certkit.registry.index import chosen
from certkit.registry.lineage import Lineages
from certkit.registry.search import ending
from certkit.tlog.hashing import HASH_SIZE, leaf_hash
from certkit.tlog.tiles import WIDTH
from certkit.tlog.tree import Frontier

if TYPE_CHECKING:
    from certkit.registry.entry import Previous, UnverifiedEntry
    from certkit.registry.log import Log
    from certkit.tlog.checkpoint import Checkpoint

_PASSPORT: Final = re.compile(rb'"passport_id":"(sha256:[0-9a-f]{64})"')


class Ledger:
    """The entries of the log in an open database, by lineage and by passport; `where` names it in errors."""

    def __init__(self, log: Log, *, where: str) -> None:
        self._log, self._where = log, where
        self.origin = ""
        """The name of the log, once it was followed."""
        self._forget()

    def _forget(self) -> None:
        self._frontier = Frontier()
        self._leaves = bytearray()
        self._about: dict[bytes, list[int]] = {}
        self._first: dict[str, int] = {}
        self._lineages = Lineages()
        self._followed: set[bytes] = set()
        self._endings: dict[str, list[tuple[int, UnverifiedEntry]]] = {}
        self.newest = ""
        """The latest time that an entry is dated."""

    def follow(self, head: Checkpoint) -> None:
        """Read on, up to a head that was verified.

        Raises `MismatchError` ``registry.inconsistent`` where the entries are not the head's.
        """
        self.origin = head.origin
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
        while (start := self._frontier.size) < head.size:
            entries = self._log.entries(start, min(start + WIDTH, head.size))
            if not entries:
                return False
            for data in entries:
                self.add(data)
        return (self._frontier.size, self._frontier.root) == (head.size, head.root)

    def add(self, data: bytes) -> None:
        """Take the next entry."""
        index, leaf = self._frontier.size, leaf_hash(data)
        self._frontier.add(leaf)
        self._leaves += leaf
        place = _place(data)
        if place is None:
            return  # no entry, as an audit tells
        subject, passport_id, issued_at = place
        self.newest = max(self.newest, issued_at)
        self._about.setdefault(subject, []).append(index)
        if passport_id is not None:
            self._first.setdefault(passport_id, index)
        if subject in self._followed:
            self._follow(index, data)

    def entry(self, index: int) -> UnverifiedEntry:
        """Return an entry, as its bytes were when they gave the signed root.

        Raises `MismatchError` ``registry.inconsistent``, `InputError` ``registry.entry``.
        """
        return read(self._bytes(index))

    def first(self, passport_id: str) -> int | None:
        """Return the first entry of a passport, None where it has none.

        Raises `MismatchError` ``registry.inconsistent`` where what may be it cannot be read.
        """
        index = self._first.get(passport_id)
        if index is not None and _place(self._bytes(index), whole=True) is None:
            raise MismatchError(
                "registry.inconsistent", f"entry {index} cannot be read, and may be about {passport_id}"
            )
        return index

    def find(self, ident: str) -> int:
        """Return an entry by what people call it; raise as `chosen` does."""
        return chosen(ident, self._frontier.size, self._beginning, where=self._where)

    def last(self, lineage: str) -> Previous | None:
        """Return the last entry of a lineage, None where it has none."""
        return self._of(lineage).last(lineage)

    def latest(self, lineage: str) -> str | None:
        """Return the id of the latest passport of a lineage, None where it has none."""
        return self._of(lineage).latest(lineage)

    def attempt(self, lineage: str, profile: str, evidence: str) -> int:
        """Return which attempt of a lineage under a profile a passport on this evidence is."""
        return self._of(lineage).attempt(lineage, profile, evidence)

    def endings(self, lineage: str, passport_id: str) -> list[tuple[int, UnverifiedEntry]]:
        """Return the entries of a lineage and log that end a passport, by whomever, with their places."""
        self._of(lineage)
        return self._endings.get(passport_id, [])

    def _of(self, lineage: str) -> Lineages:
        subject = lineage.encode()
        if subject not in self._followed:
            self._followed.add(subject)
            for index in self._about.get(subject, ()):
                self._follow(index, self._bytes(index))
        return self._lineages

    def _follow(self, index: int, data: bytes) -> None:
        try:
            found = read(data)
        except CertkitError:
            return
        self._lineages.follow(index, leaf_hash(data), found)
        if (ended := ending(found)) and found.entry.is_for(self.origin):
            self._endings.setdefault(ended[0], []).append((index, found))

    def _bytes(self, index: int) -> bytes:
        data = self._log.entry(index)
        at = index * HASH_SIZE
        if data is None or leaf_hash(data) != bytes(self._leaves[at : at + HASH_SIZE]):
            raise MismatchError("registry.inconsistent", f"entry {index} is not the one that was signed")
        return data

    def _beginning(self, start: str) -> list[int]:
        return [index for passport_id, index in self._first.items() if passport_id.startswith(start)]


def _place(data: bytes, *, whole: bool = False) -> tuple[bytes, str | None, str] | None:
    """Return which lineage an entry is about, the passport that it logs, and its date; None for no entry.

    Unless it is read as a whole, what is no entry may still be given a place.
    """
    skimmed = None if whole else skim(data)
    if skimmed is not None:
        found = _PASSPORT.search(skimmed.payload) if skimmed.type == b"passport" else None
        return skimmed.subject, found[1].decode() if found else None, skimmed.issued_at
    try:
        entry = read(data)
    except CertkitError:
        return None
    claims, subject = entry.claims, entry.entry.subject.encode()
    return subject, claims.passport_id if isinstance(claims, Claims) else None, entry.entry.issued_at
