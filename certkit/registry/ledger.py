"""What a writer knows about the log's entries, and a snapshot so that the next need not read them all.

    known = Ledger(log, where=str(folder))
    known.follow(head, trust)                 # all entries up to a head that the log's key signed
    known.first(passport_id), known.latest("lab/agent"), known.ended(lineage, passport_id)

Of every entry it keeps where to look (`Columns`). What an entry says is read from its bytes when it is asked
for, and those must be the ones that the signed root covers.

Whoever can write the registry's file can write anything there, and no proof shows what a list leaves out.
So the first to write reads all entries once. The snapshot is kept beside the remembered head, and believed as
that is (`certkit.registry.heads`). Entries signed by unknown keys, or for another log, are ignored under a
trust policy: they register nothing and block nothing. The chain of a lineage goes on from every entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, get_args

import msgspec
from msgspec import Struct, field

from certkit.ground.errors import MismatchError
from certkit.ground.progress import SILENT, Progress, shown
from certkit.registry.entry import (
    Claims,
    KeyChange,
    Logged,
    Previous,
    Revocation,
    Type,
    begins,
    chosen,
    is_index,
    read,
    readable,
)
from certkit.registry.log import LogKeys
from certkit.registry.state import Lineages, Passports, Policy, spelling
from certkit.tlog.tiles import WIDTH
from certkit.tlog.tree import HASH_SIZE, Frontier, leaf_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.passport.trust import Trust
    from certkit.registry.entry import UnverifiedEntry
    from certkit.registry.log import Log
    from certkit.tlog.checkpoint import Checkpoint

Warn = Callable[[str], None]
"""Is told in words what is wrong and was passed over."""

_IDENT: Final = re.compile(r"(?:sha256:)?[0-9a-f]{8,64}")
_LETTERS: Final[dict[str, int]] = dict(zip(get_args(Type), b"psrdkn", strict=True))
"""The letter of each type of entry in the column of types: a new type needs a letter of its own."""
_FOLLOWED: Final = {_LETTERS[name] for name in ("passport", "supersede", "revoke")}
"""The types of entry by which the state of a lineage changes."""
_KEY: Final = 8
"""The bytes of a value in a column."""
_NOTHING: Final = bytes(_KEY)


class Columns(Struct, kw_only=True):
    """Where to look for each entry of a log, in columns of fixed width; small, and loaded in one piece.

    They hold 8 bytes an entry: a short hash of how its lineage is spelt, and the beginning of the id of the
    passport that it logs; and a letter for its type. So they may name an entry too many, and whoever asks
    reads the entry. `newest` is the latest date that each submitter wrote, with its entry.
    """

    origin: str = ""
    root: bytes = b""
    newest: dict[str, tuple[str, int]] = field(default_factory=dict)
    spellings: bytearray = field(default_factory=bytearray)
    passports: bytearray = field(default_factory=bytearray)
    types: bytearray = field(default_factory=bytearray)

    @property
    def is_whole(self) -> bool:
        """Whether every column is about as many entries."""
        return len(self.spellings) == len(self.passports) == len(self.types) * _KEY

    def add(self, entry: UnverifiedEntry | None) -> None:
        """Take the next entry; None stands for what is no entry, as an audit tells."""
        said, claims = (entry.entry, entry.passport) if entry else (None, None)
        self.spellings += _short(said.subject) if said else _NOTHING
        self.passports += bytes.fromhex(claims.passport_id[7 : 7 + 2 * _KEY]) if claims else _NOTHING
        if said and said.issued_at > self.newest.get(said.submitter, ("", 0))[0]:
            self.newest[said.submitter] = said.issued_at, len(self.types)
        self.types.append(_LETTERS[said.type] if said else ord("-"))

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

    def of_passport(self, ident: str) -> Iterator[int]:
        """Yield the places of entries that may log a passport whose id begins with some digits."""
        digits = ident.removeprefix("sha256:")
        start = bytes.fromhex(digits[: min(len(digits), 2 * _KEY) // 2 * 2])
        return (
            index for index in _places(self.passports, start) if self.types[index] == _LETTERS["passport"]
        )


def _places(column: bytearray, value: bytes, *, width: int = _KEY) -> Iterator[int]:
    at = column.find(value)
    while at >= 0:
        if at % width == 0:
            yield at // width
        at = column.find(value, at + 1)


def _short(lineage: str) -> bytes:
    return blake2b(spelling(lineage).encode(), digest_size=_KEY).digest()


class Ledger:
    """The entries of the log in an open database, by lineage and by passport; `where` names it in errors.

    `load` returns a passport's file; `warn` reports a false snapshot.
    """

    def __init__(
        self,
        log: Log,
        *,
        where: str,
        progress: Progress = SILENT,
        warn: Warn = lambda _: None,
        load: Callable[[str], bytes | None] = lambda _: None,
    ) -> None:
        self._log, self._where, self._progress = log, where, progress
        self._load, self._warn = load, warn
        self.trust: Trust | None = None
        """Whose entries count; None where everybody's do."""
        self._policy = Policy("")
        self._forget(Columns(), Frontier())

    def _forget(self, columns: Columns, frontier: Frontier) -> None:
        self._columns, self._frontier = columns, frontier
        self.began = frontier.size
        """How many entries a snapshot spared."""
        self._leaves = bytearray()
        self._changes: set[int] = set()
        self.log_keys = LogKeys(self.origin)
        self._lineages = Lineages()
        self._followed: set[str] = set()
        for index in _places(columns.types, bytes([_LETTERS["key"]]), width=1):
            if logged := self._logged(index):
                self._change_keys(index, logged.found)

    @property
    def origin(self) -> str:
        """The name of the log, once it was followed."""
        return self._policy.origin

    @property
    def size(self) -> int:
        """How many entries were followed."""
        return self._frontier.size

    def snapshot(self) -> bytes:
        """Return what is known, for the next one who writes."""
        self._columns.origin, self._columns.root = self.origin, self._frontier.root
        return msgspec.msgpack.encode(self._columns)

    def follow(
        self,
        head: Checkpoint,
        trust: Trust | None = None,
        kept: Callable[[], bytes | None] = lambda: None,
    ) -> None:
        """Read on, up to a head that was verified; entries that keys of a policy signed for this log count.

        `kept` returns a snapshot to begin with. Raises `MismatchError` ``registry.inconsistent`` where the
        entries are not the head's.
        """
        if (self.origin, self.trust) != (head.origin, trust):
            self.trust, self._policy = trust, Policy(head.origin, trust, self._load)
            self._begin(head, kept())
        if self._reaches(head):
            return
        # Entries read in an aborted transaction may be gone; then start again from the snapshot.
        self._begin(head, kept())
        if not self._reaches(head):
            raise MismatchError(
                "registry.inconsistent",
                f"the stored entries are not those of the checkpoint over {head.size:,}",
                hint="'certkit registry audit' tells what is wrong",
            )

    def _begin(self, head: Checkpoint, data: bytes | None) -> None:
        """Begin with the snapshot, where it is about the beginning of this log, or else with nothing."""
        self._forget(Columns(), Frontier())
        if data is None:
            return
        # What is no snapshot, or tiles that are damaged and cannot show that it is this log's.
        with suppress(msgspec.DecodeError, UnicodeDecodeError, MismatchError):
            columns = msgspec.msgpack.decode(data, type=Columns)
            size = len(columns.types)
            if columns.is_whole and columns.origin == head.origin and size <= head.size:
                frontier = self._log.frontier_at(size)
                if frontier.root == columns.root:
                    self._forget(columns, frontier)
                    return
        self._warn(
            "ignored the stored snapshot: it was altered, is an older one, or belongs to another log. Reading"
            " all entries instead; this takes longer."
        )

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
        index, leaf, entry = self.size, leaf_hash(data), readable(data)
        self._frontier.add(leaf)
        self._leaves += leaf
        self._columns.add(entry)
        if entry is None:
            return
        self._change_keys(index, entry)
        if entry.entry.subject in self._followed:
            self._lineages.follow(Logged(index, leaf, entry))

    def _change_keys(self, index: int, entry: UnverifiedEntry) -> None:
        """Apply a key change; it counts only if the previous log key signed it."""
        if isinstance(entry.claims, KeyChange) and not self.log_keys.follow(entry, entry.claims):
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
        return next((index for index, _ in self._logging(passport_id) if self._counts(index)), None)

    def _logging(self, start: str) -> Iterator[tuple[int, str]]:
        """Yield the entries of passports whose ids begin so, with these ids."""
        for index in self._columns.of_passport(start):
            claims = logged.found.passport if (logged := self._logged(index)) else None
            if claims and begins(claims.passport_id, start):
                yield index, claims.passport_id

    def newest(self, since: str) -> str:
        """Return the latest date of an entry that counts, where that is later than `since`; or nothing.

        Of each submitter the latest entry alone is asked. Raises `MismatchError` ``registry.inconsistent``.
        """
        later = (newest for newest in self._columns.newest.values() if newest[0] > since)
        return max((date for date, index in later if self._counts(index)), default="")

    def _counts(self, index: int) -> bool:
        logged = self._logged(index)
        if logged is None or isinstance(logged.found.claims, KeyChange):
            return index in self._changes
        return logged.found.entry.log == self.origin and self._policy.signed(logged)

    def find(self, ident: str) -> int:
        """Return an entry by its index, or that of a passport by its id or the beginning of it.

        One that counts comes before one that does not. Raises `UsageError` ``registry.unknown``.
        """
        if is_index(ident, self.size):
            return int(ident)
        logging = list(self._logging(ident)) if _IDENT.fullmatch(ident) else []
        counting = [(index, passport_id) for index, passport_id in logging if self._counts(index)]
        firsts = {passport_id: index for index, passport_id in reversed(counting or logging)}
        return chosen(ident, firsts, where=self._where)

    def last(self, lineage: str) -> Previous | None:
        """Return the last entry of a lineage, None where it has none."""
        for index in self._columns.last_of_lineage(lineage):
            if (logged := self._logged(index)) and logged.found.entry.subject == lineage:
                return Previous(index=index, leaf=logged.leaf.hex())
        return None

    def latest(self, lineage: str) -> str | None:
        """Return the id of the latest passport of a lineage, None where it has none."""
        return self._of(lineage).latest(lineage)

    def alike(self, lineage: str) -> str | None:
        """Return a lineage with a passport that counts and whose name differs from this in spelling alone."""
        logging = filter(None, map(self._logged, self._columns.of_lineage(lineage)))
        counting = (logged for logged in logging if logged.found.passport and self._counts(logged.index))
        names = (logged.found.entry.subject for logged in counting)
        return next((name for name in names if name != lineage), None)

    def refuted(self, lineage: str) -> set[str]:
        """See `Passports`."""
        revoking = self._about(lineage, {_LETTERS["revoke"]})
        false = (
            logged.found.passport_id
            for logged in revoking
            if isinstance(logged.found.claims, Revocation) and logged.found.claims.reason == "evidence-false"
        )
        return self.ended(lineage, *filter(None, false)).refuted(lineage)

    def passports(self, lineage: str) -> Iterator[Logged]:
        """Return the entries of a lineage's passports, in their order."""
        return (logged for logged in self._about(lineage) if logged.found.passport)

    def attempt(self, lineage: str, profile: str, evidence: str) -> int:
        """See `Lineages`."""
        return self._of(lineage).attempt(lineage, profile, evidence)

    def ended(self, lineage: str, *passport_ids: str) -> Passports:
        """Return what the entries of a lineage say of some passports and of those that take their place."""
        passports = Passports(self._policy)
        for logged in self._about(lineage) if passport_ids else ():
            claims = logged.found.claims
            named = {logged.found.passport_id, claims.supersedes if isinstance(claims, Claims) else None}
            if not named.isdisjoint(passport_ids) and logged.found.entry.log == self.origin:
                passports.follow(logged)
        return passports

    def _about(self, lineage: str, types: set[int] = _FOLLOWED) -> Iterator[Logged]:
        """Return the passports of a lineage and the entries that end some, in their order."""
        places = (index for index in self._columns.of_lineage(lineage) if self._columns.types[index] in types)
        about = filter(None, map(self._logged, places))
        return (logged for logged in about if logged.found.entry.subject == lineage)

    def _of(self, lineage: str) -> Lineages:
        if lineage not in self._followed:
            self._followed.add(lineage)
            for logged in self._about(lineage):
                self._lineages.follow(logged)
        return self._lineages

    def _logged(self, index: int) -> Logged | None:
        data = self._bytes(index)
        entry = readable(data)
        return Logged(index, leaf_hash(data), entry) if entry else None

    def _bytes(self, index: int) -> bytes:
        data = self._log.entry(index)
        at = (index - self.began) * HASH_SIZE
        leaf: bytes | None = bytes(self._leaves[at : at + HASH_SIZE])
        if at < 0:
            with suppress(MismatchError):
                leaf = self._log.leaf(index)
        if data is None or leaf_hash(data) != leaf:
            raise MismatchError("registry.inconsistent", f"entry {index} is not the one that was signed")
        return data
