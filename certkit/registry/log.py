"""The tree over the entries: read, proven from, and extended by signed checkpoints.

`Log` speaks of one open database inside one transaction. It believes nothing that it reads back: before
it signs, the stored tiles must give the root of the last checkpoint, which its own key must have signed;
before a proof is handed out, it must lead to that root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.errors import CertkitError, MismatchError, UsageError
from certkit.tlog import tiles, tree
from certkit.tlog.checkpoint import Checkpoint, open_checkpoint, parse_checkpoint, sign_checkpoint
from certkit.tlog.hashing import EMPTY_ROOT, Hash, leaf_hash
from certkit.tlog.note import parse_note
from certkit.tlog.proof import LogProof

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from certkit.tlog.note import Signer


class Log:
    """The log in an open database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def begin(self, signer: Signer) -> None:
        """Sign the checkpoint of a log without entries."""
        self._put_checkpoint(Checkpoint(signer.name, 0, EMPTY_ROOT), signer)

    def note(self) -> bytes:
        """Return the signed checkpoint as it is stored."""
        rows = self._connection.execute("SELECT note FROM checkpoint").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], bytes):
            raise MismatchError("registry.inconsistent", "the log has not exactly one checkpoint")
        return rows[0][0]

    def unverified_head(self) -> Checkpoint:
        """Return what the stored checkpoint says, whoever signed it."""
        return parse_checkpoint(parse_note(self.note()).text)

    def tile(self, level: int, n: int) -> bytes:
        """Return the stored hashes of a tile, nothing where there is none."""
        row = self._connection.execute(
            "SELECT hashes FROM tile WHERE level = ? AND n = ?", (level, n)
        ).fetchone()
        return row[0] if row is not None and isinstance(row[0], bytes) else b""

    def entry(self, index: int) -> bytes | None:
        """Return the bytes of an entry, None where the log has no such entry."""
        row = self._connection.execute("SELECT entry FROM leaf WHERE idx = ?", (index,)).fetchone()
        return row[0] if row is not None and isinstance(row[0], bytes) else None

    def prove(self, index: int) -> LogProof:
        """Return the proof that an entry is in the log, the entry itself in its extra data.

        Raises `UsageError` ``registry.unknown``, `MismatchError` where the log contradicts itself.
        """
        note = self.note()
        head = self.unverified_head()
        entry = self.entry(index)
        if entry is None or not 0 <= index < head.size:
            raise UsageError("registry.unknown", f"no entry {index} in a log of {head.size:,}")
        hashes = tree.inclusion_proof(index, head.size, tiles.node_reader(self.tile))
        tree.verify_inclusion(leaf_hash(entry), index, head.size, hashes, head.root)
        return LogProof(index, tuple(hashes), note, entry)

    def extend(self, entries: Sequence[bytes], signer: Signer) -> Checkpoint:
        """Add entries, whose bytes are new to the log, and sign the checkpoint over all.

        Raises `UsageError` ``registry.log-key`` where the last checkpoint is not `signer`'s,
        `MismatchError` ``registry.inconsistent`` where it is not about the stored tiles and entries.
        """
        head = self._trusted_head(signer)
        hashes = [leaf_hash(entry) for entry in entries]
        rows = list(enumerate(zip(entries, hashes, strict=True), head.size))
        changed = tiles.grow(head.size, hashes, self.tile)
        execute = self._connection.executemany
        execute("INSERT INTO leaf VALUES (?, ?)", [(index, entry) for index, (entry, _) in rows])
        execute("INSERT INTO seen VALUES (?, ?)", [(hashed, index) for index, (_, hashed) in rows])
        execute("REPLACE INTO tile VALUES (?, ?, ?)", [(*place, row) for place, row in changed.items()])
        grown = Checkpoint(signer.name, head.size + len(entries), self._root(head.size + len(entries)))
        self._put_checkpoint(grown, signer)
        return grown

    def _trusted_head(self, signer: Signer) -> Checkpoint:
        try:
            head = open_checkpoint(self.note(), signer.vkey).checkpoint
        except MismatchError as error:
            if error.code == "registry.inconsistent":
                raise
            raise UsageError(
                "registry.log-key",
                "the registry's checkpoint was not signed with this log key",
                hint="give the registry's own key with --log-key",
            ) from None
        (last,) = self._connection.execute("SELECT max(idx) FROM leaf").fetchone()
        if (-1 if last is None else last) != head.size - 1:
            raise MismatchError(
                "registry.inconsistent",
                f"the checkpoint speaks of {head.size:,} entries, the last one stored is {last}",
                hint="'certkit registry audit' tells what is wrong",
            )
        try:
            root = self._root(head.size)
        except CertkitError as error:
            raise MismatchError("registry.inconsistent", error.message) from None
        if root != head.root:
            raise MismatchError(
                "registry.inconsistent",
                "the stored tree does not have the root that was signed",
                hint="'certkit registry audit' tells what is wrong",
            )
        return head

    def _root(self, size: int) -> Hash:
        return tree.root(size, tiles.node_reader(self.tile))

    def _put_checkpoint(self, checkpoint: Checkpoint, signer: Signer) -> None:
        self._connection.execute("DELETE FROM checkpoint")
        self._connection.execute(
            "INSERT INTO checkpoint VALUES (?, ?)", (checkpoint.size, sign_checkpoint(checkpoint, signer))
        )
