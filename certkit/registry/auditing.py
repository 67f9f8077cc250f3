"""The audit: everything in a registry's folder, made again from the bytes of its entries.

    report = audit(folder, log=trusted_vkey, submitters=trusted_keys, check=check)
    report.findings                       # what does not hold, each with a code and a place
    report.not_shown                      # what no look at these files can show

Two things come from outside and are never read from the registry: the log's verifier key and the keys of
those who may submit. `check` verifies a passport's signature; that one has expired since is no finding.

What is done, in this order, for every entry: (1) its index follows the one before; (2) its bytes are
hashed into the tree; (3) its form is read and its submitter's signature verified; (4) `prev`, the number
of the attempt and what is superseded follow from the entries before it in its lineage; (5) the passport
that it names is there, has the digest and size, verifies, and claims what the entry repeats; (6) the
derived tables say the same. Then every tile is compared with the one made again, and the checkpoint with
the root and with the trusted key. No byte of the registry is changed; SQLite may leave its empty ``-wal``
and ``-shm`` files beside a database that it has read.
"""

from __future__ import annotations

import hashlib
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit.errors import CertkitError, Exit, MismatchError
from certkit.progress import SILENT, Progress
from certkit.registry import blobs, store
from certkit.registry.entry import HARD_LIMIT, Claims, Previous, UnverifiedEntry, read
from certkit.registry.log import Log
from certkit.registry.registry import index_row
from certkit.tlog import tiles, tree
from certkit.tlog.checkpoint import open_checkpoint
from certkit.tlog.hashing import HASH_SIZE, Hash, leaf_hash

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from pathlib import Path

    from certkit.passport.keys import PublicKey
    from certkit.registry.entry import Check
    from certkit.tlog.note import VerifierKey

LISTED: Final = 1000
"""How many findings are listed; all are counted."""

NOT_SHOWN: Final = (
    (
        "whether a later state was undone by putting older files back: that takes a checkpoint remembered"
        " elsewhere, or a witness"
    ),
    "whether the log's key was used to sign a shorter or different log after this one: likewise",
    "whether others are shown a different log under the same key: likewise",
    "whether a passport was issued and never submitted",
)


class Finding(Struct, frozen=True):
    """Something that does not hold: what, where, and in words. `exit_code` is what it amounts to."""

    code: str
    where: str
    message: str
    exit_code: Exit = Exit.MISMATCH


class Audit(Struct, frozen=True, kw_only=True):
    """What an audit found. `root` is made from the entries, whatever the checkpoint says.

    `total` counts findings, of which `findings` lists the first ones; `notes` tells what is unusual and
    harmless.
    """

    origin: str
    size: int
    root: str
    passports: int
    total: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    exit_code: Exit
    not_shown: tuple[str, ...] = NOT_SHOWN

    def to_dict(self) -> dict[str, Any]:
        """Return what ``certkit registry audit --json`` prints."""
        return {
            "schema": "urn:certkit:registry-audit:v1",
            "result": "sound" if not self.total else "unsound",
            "origin": self.origin,
            "size": self.size,
            "root": self.root,
            "passports": self.passports,
            "total": self.total,
            "findings": [
                {"code": one.code, "where": one.where, "message": one.message} for one in self.findings
            ],
            "notes": list(self.notes),
            "not_shown": list(self.not_shown),
        }


def audit(
    folder: Path,
    *,
    log: VerifierKey,
    submitters: Mapping[str, PublicKey],
    check: Check,
    progress: Progress = SILENT,
) -> Audit:
    """Audit the registry in `folder`.

    `log` is the trusted verifier key; `submitters` are the trusted keys by id; `check` returns the facts
    of a passport whose signature holds. Raises `InputError` ``registry.missing`` or ``registry.format``,
    and `UsageError` where the system refuses to read; whatever else is wrong is a finding.
    """
    work = _Work(folder, log, submitters, check)
    try:
        with (
            closing(store.connect(folder, writable=False)) as connection,
            store.translated(folder / store.FILE),
            store.reading(connection),
        ):
            work.run(connection, progress)
    except MismatchError as error:
        work.found("registry.damaged", store.FILE, error.message)
    finally:
        progress.finish()
    return work.report()


class _Work:
    """One audit under way."""

    def __init__(
        self, folder: Path, log: VerifierKey, submitters: Mapping[str, PublicKey], check: Check
    ) -> None:
        self._folder, self._key, self._submitters, self._check = folder, log, submitters, check
        self._findings: list[Finding] = []
        self._total = 0
        self._untrusted = 0
        self._notes: list[str] = []
        self._size = 0
        self._lineages = _Lineages()
        self._blobs: set[str] = set()
        self._rows: list[bytes] = []  # the rightmost tile of each level, as made so far
        self._counts: list[int] = []  # how many full tiles each level has

    def found(self, code: str, where: str, message: str, exit_code: Exit = Exit.MISMATCH) -> None:
        """Note down what does not hold."""
        self._total += 1
        self._untrusted += exit_code is Exit.UNTRUSTED
        if len(self._findings) < LISTED:
            self._findings.append(Finding(code, where, message, exit_code))

    def run(self, connection: sqlite3.Connection, progress: Progress) -> None:
        """Go through everything, on one state of the database."""
        self._connection = connection
        progress.start("auditing", self._count("leaf"), "entries")
        for index, data in connection.execute("SELECT idx, entry FROM leaf ORDER BY idx"):
            if index != self._size or not isinstance(data, bytes) or len(data) > HARD_LIMIT:
                self.found("registry.leaf", f"entry {self._size}", f"expected an entry, found index {index}")
                self._size = index
            leaf = leaf_hash(data if isinstance(data, bytes) else str(data).encode())
            self._add(leaf)
            self._entry(index, data, leaf)
            self._size += 1
            progress.advance(1)
        self._finish_tiles()
        self._checkpoint()
        self._tables()
        self._beside()

    def report(self) -> Audit:
        """Return what was found."""
        exit_code = Exit.MISMATCH if self._total > self._untrusted else Exit.UNTRUSTED
        return Audit(
            origin=self._key.name,
            size=self._size,
            root=self._root().hex(),
            passports=len(self._lineages.passports),
            total=self._total,
            findings=tuple(self._findings),
            notes=tuple(self._notes),
            exit_code=exit_code if self._total else Exit.OK,
        )

    def _count(self, table: str) -> int:
        (count,) = self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - ours
        return int(count)

    # The tree

    def _add(self, leaf: Hash) -> None:
        level, new = 0, leaf
        while True:
            if level == len(self._rows):
                self._rows.append(b"")
                self._counts.append(0)
            self._rows[level] += new
            if len(self._rows[level]) < tiles.WIDTH * HASH_SIZE:
                return
            self._compare(level)
            new = tiles.subtree(self._rows[level])
            self._rows[level] = b""
            self._counts[level] += 1
            level += 1

    def _compare(self, level: int) -> None:
        n = self._counts[level]
        if Log(self._connection).tile(level, n) != self._rows[level]:
            self.found("registry.tile-differs", f"tile {level}/{n}", "not what the entries give")

    def _finish_tiles(self) -> None:
        for level, row in enumerate(self._rows):
            if row:
                self._compare(level)
        expected = {level: count + bool(row) for level, (count, row) in enumerate(self._shape())}
        for level, n in self._connection.execute("SELECT level, n FROM tile ORDER BY level, n"):
            if not isinstance(n, int) or not 0 <= n < expected.get(level, 0):
                self.found("registry.tile-differs", f"tile {level}/{n}", "no entries give such a tile")

    def _shape(self) -> list[tuple[int, bytes]]:
        return list(zip(self._counts, self._rows, strict=True))

    def _root(self) -> Hash:
        size = self._counts[0] * tiles.WIDTH + len(self._rows[0]) // HASH_SIZE if self._rows else 0
        # The root of a tree rests on the rightmost tile of each level alone.
        return tree.root(size, tiles.node_reader(lambda level, _n: self._rows[level]))

    def _checkpoint(self) -> None:
        try:
            head = open_checkpoint(Log(self._connection).note(), self._key).checkpoint
        except CertkitError as error:
            self.found("registry.checkpoint", "checkpoint", error.message)
            return
        if head.size != self._size:
            message = f"signed for {head.size:,} entries, found {self._size:,}"
            self.found("registry.checkpoint", "checkpoint", message)
        elif head.root != self._root():
            self.found("registry.checkpoint", "checkpoint", "the signed root is not that of the entries")

    # One entry

    def _entry(self, index: int, data: Any, leaf: Hash) -> None:
        where = f"entry {index}"
        try:
            found = read(data) if isinstance(data, bytes) else None
        except CertkitError as error:
            self.found("registry.entry", where, error.message)
            return
        if found is None:
            return
        self._signature(where, found)
        for message in self._lineages.follow(index, leaf, found):
            self.found("registry.chain", where, message)
        if found.entry.passport is not None:
            self._blobs.add(found.entry.passport.sha256)
            if found.claims is not None:
                self._passport(where, found, found.claims)
        self._derived(index, leaf, found)

    def _signature(self, where: str, found: UnverifiedEntry) -> None:
        key = self._submitters.get(found.entry.submitter)
        if key is None:
            message = f"submitted by an untrusted key, {found.entry.submitter}"
            self.found("registry.entry-untrusted", where, message, Exit.UNTRUSTED)
            return
        try:
            found.verify(key)
        except CertkitError as error:
            self.found("registry.entry-signature", where, error.message)

    def _passport(self, where: str, found: UnverifiedEntry, claims: Claims) -> None:
        stored = found.entry.passport
        data = blobs.load(self._folder, stored.sha256) if stored else None
        if stored is None or data is None:
            self.found("registry.blob-missing", where, "the passport's file is not in blobs/")
            return
        if hashlib.sha256(data).hexdigest() != stored.sha256 or len(data) != stored.size:
            self.found("registry.blob-changed", where, f"blobs/{stored.sha256[:2]}/{stored.sha256} differs")
            return
        try:
            facts = self._check(data)
        except CertkitError as error:
            exit_code = Exit.UNTRUSTED if error.exit_code is Exit.UNTRUSTED else Exit.MISMATCH
            self.found("registry.passport", where, f"{error.message} [{error.code}]", exit_code)
            return
        if facts.lineage != found.entry.subject or Claims.of(facts, claims.attempt) != claims:
            self.found("registry.claims", where, "the entry claims something else than the passport")

    # What is derived or lies beside

    def _derived(self, index: int, leaf: Hash, found: UnverifiedEntry) -> None:
        execute = self._connection.execute
        seen = execute("SELECT idx FROM seen WHERE leaf = ?", (leaf,)).fetchone()
        if seen != (index,):
            self.found("registry.index-differs", f"entry {index}", "table seen does not know it")
        row = execute("SELECT * FROM entry_index WHERE idx = ?", (index,)).fetchone()
        if row != index_row(index, found):
            self.found("registry.index-differs", f"entry {index}", "table entry_index says otherwise")

    def _tables(self) -> None:
        for table in ("seen", "entry_index"):
            if (count := self._count(table)) != self._count("leaf"):
                self.found("registry.index-differs", f"table {table}", f"has {count:,} rows")
        stated = store.meta(self._connection)
        expected = {"format": store.FORMAT, "origin": self._key.name, "vkey": str(self._key)}
        for name in sorted(stated.keys() | expected.keys()):
            if stated.get(name) != expected.get(name):
                message = f"expected {name} {expected.get(name)}, found {stated.get(name)}"
                self.found("registry.checkpoint", "meta", message)

    def _beside(self) -> None:
        expected = {f"{sha256[:2]}/{sha256}" for sha256 in self._blobs}
        for name in blobs.names(self._folder):
            if name not in expected:
                self._notes.append(f"blobs/{name} belongs to no entry")


class _Lineages:
    """What the entries so far say of each lineage, to hold the next one against."""

    def __init__(self) -> None:
        self.passports: set[str] = set()
        self._last: dict[str, Previous] = {}
        self._latest: dict[str, str] = {}
        self._attempts: dict[tuple[str, str], int] = {}

    def follow(self, index: int, leaf: Hash, found: UnverifiedEntry) -> list[str]:
        """Take the next entry; return what in it does not follow from those before."""
        entry, claims, wrong = found.entry, found.claims, []
        if entry.prev != self._last.get(entry.subject):
            wrong.append("prev is not the entry before it in its lineage")
        self._last[entry.subject] = Previous(index=index, leaf=leaf.hex())
        if claims is None:
            return wrong
        if claims.passport_id in self.passports:
            wrong.append("the passport is logged a second time")
        self.passports.add(claims.passport_id)
        if claims.supersedes not in {None, self._latest.get(entry.subject)}:
            wrong.append("it supersedes another passport than the latest of its lineage")
        self._latest[entry.subject] = claims.passport_id
        attempt = self._attempts.get((entry.subject, claims.profile), 0) + 1
        self._attempts[entry.subject, claims.profile] = attempt
        if claims.attempt != attempt:
            wrong.append(f"it says attempt {claims.attempt}, this is attempt {attempt}")
        return wrong
