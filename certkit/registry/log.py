"""The tree over the entries: read, proven from, and extended by signed checkpoints; the key that signs them.

`Log` speaks of one open database inside one transaction. It believes nothing that it reads back: before
it signs, the stored tiles must give the root of the last checkpoint, which its own key must have signed;
before a proof is handed out, it must lead to that root. What it has checked once is not looked at again as
long as the checkpoint is the one that it left.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from certkit.ground.errors import CertkitError, InputError, MismatchError, UsageError
from certkit.passport import keys
from certkit.registry import store
from certkit.tlog import tiles, tree
from certkit.tlog.checkpoint import (
    Checkpoint,
    LogProof,
    open_checkpoint,
    parse_checkpoint,
    sign_checkpoint,
    with_signatures,
)
from certkit.tlog.note import KeyType, VerifierKey, open_note, parse_lines, parse_note, write_note
from certkit.tlog.tree import EMPTY_ROOT, HASH_SIZE, Frontier, Hash, leaf_hash, leaf_hashes

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from pathlib import Path

    from certkit.registry.entry import KeyChange, UnverifiedEntry
    from certkit.tlog.note import Signer

KEY_FILE: Final = "log-key.pem"
NEXT_KEY: Final = "next-log-key.pem"
"""The key that takes over, while it does."""
_TELLS: Final = "'certkit registry audit' tells what is wrong"


@dataclass(slots=True)
class _State:
    """A head that was verified, with the right edge of its tree, which grows with it."""

    key: VerifierKey
    note: bytes
    head: Checkpoint
    frontier: Frontier
    edge: dict[tuple[int, int], bytes]


class Log:
    """The log in an open database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._state: _State | None = None
        self._checked: tuple[bytes, tiles.Read] | None = None

    def begin(self, signer: Signer) -> None:
        """Sign the checkpoint of a log without entries."""
        note = sign_checkpoint(Checkpoint(signer.name, 0, EMPTY_ROOT), signer)
        self._connection.execute("INSERT INTO checkpoint VALUES (0, ?)", (note,))

    def note(self) -> bytes:
        """Return the signed checkpoint as it is stored."""
        rows = self._connection.execute("SELECT note FROM checkpoint").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], bytes):
            raise MismatchError("registry.inconsistent", "the log has not exactly one checkpoint")
        return rows[0][0]

    def cosigned(self) -> bytes:
        """Return the signed checkpoint with the lines of the witnesses that have cosigned it.

        Whatever else the table holds is passed over.
        """
        note, head = self.note(), self.unverified_head()
        rows = self._connection.execute(
            "SELECT CAST(vkey AS BLOB), CAST(line AS BLOB) FROM cosignature WHERE size = ? ORDER BY vkey",
            (head.size,),
        )
        for vkey, line in rows:
            with suppress(CertkitError, UnicodeDecodeError):
                key, lines = VerifierKey.parse(vkey.decode()), parse_lines(line)
                open_note(write_note(head.text, lines), [key])
                if key.type is KeyType.COSIGNATURE:
                    note = with_signatures(note, lines[:1])
        return note

    def cosign(self, size: int, key: VerifierKey, line: str) -> None:
        """Store a cosignature of the checkpoint over `size` entries, the only one of its key."""
        # What is about an older checkpoint is of no use without it; another name makes no other witness.
        _, _, material = str(key).split("+", 2)
        self._connection.execute(
            "DELETE FROM cosignature WHERE size <> ? OR substr(vkey, ?) = ?", (size, -len(material), material)
        )
        self._connection.execute("INSERT INTO cosignature VALUES (?, ?, ?)", (size, str(key), line.encode()))

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

    def entries(self, start: int, stop: int) -> list[bytes]:
        """Return the bytes of entries ``[start, stop)``, as far as the log has them."""
        rows = self._connection.execute(
            "SELECT entry FROM leaf WHERE idx >= ? AND idx < ? ORDER BY idx", (start, stop)
        )
        return [entry for (entry,) in rows if isinstance(entry, bytes)]

    def verified_head(self, vkey: VerifierKey) -> Checkpoint:
        """Return the head, once it is shown to be signed by a key and to be that of the stored tiles.

        Raises `MismatchError` ``registry.inconsistent``.
        """
        try:
            head = open_checkpoint(self.note(), vkey).checkpoint
            tiles.verified(head.size, head.root, self.tile)
        except CertkitError as error:
            raise MismatchError("registry.inconsistent", error.message) from None
        return head

    def prove(self, index: int) -> LogProof:
        """Return the proof that an entry is in the log, the entry itself in its extra data.

        Raises `UsageError` ``registry.unknown``, `MismatchError` where the log contradicts itself.
        """
        note = self.cosigned()
        head = self.unverified_head()
        entry = self.entry(index)
        if entry is None or not 0 <= index < head.size:
            raise UsageError("registry.unknown", f"no entry {index} in a log of {head.size:,}")
        hashes = tree.inclusion_proof(index, head.size, tiles.node_reader(self.tile))
        tree.verify_inclusion(leaf_hash(entry), index, head.size, hashes, head.root)
        return LogProof(index, tuple(hashes), note, entry)

    def leaf(self, index: int) -> Hash:
        """Return the hash of an entry, proven by the checkpoint; raise `MismatchError` ``tlog.tile``."""
        n, place = divmod(index, tiles.WIDTH)
        hashes = self._proven()(0, n)
        return Hash(hashes[place * HASH_SIZE : (place + 1) * HASH_SIZE])

    def frontier_at(self, size: int) -> Frontier:
        """Return the right edge that the tree had at a size up to its own; raise as `leaf` does."""
        return Frontier.of(size, tiles.node_reader(self._proven()))

    def _proven(self) -> tiles.Read:
        """Return what reads tiles, every hash proven by the checkpoint as it stands."""
        note = self.note()
        if self._checked is None or self._checked[0] != note:
            head = self.unverified_head()
            self._checked = note, tiles.verified(head.size, head.root, self.tile)
        return self._checked[1]

    def repair(self) -> list[str]:
        """Make the tiles again from the entries; return which were wrong.

        Raises `MismatchError` ``registry.inconsistent`` where the entries are not the checkpoint's: what was
        signed cannot be made again.
        """
        head, right = self.unverified_head(), list[tuple[int, int, bytes]]()
        made = tiles.Rebuild(self.tile, lambda level, n, row: right.append((level, n, row)))
        stored = self._connection.execute("SELECT entry FROM leaf ORDER BY idx")
        while batch := stored.fetchmany(tiles.WIDTH):
            made.add(leaf_hashes(entry for (entry,) in batch if isinstance(entry, bytes)))
        made.finish()
        if (made.size, made.root) != (head.size, head.root):
            message = f"the entries are not those of the checkpoint over {head.size:,}, nothing was repaired"
            raise MismatchError("registry.inconsistent", message)
        self._connection.executemany("REPLACE INTO tile VALUES (?, ?, ?)", right)
        self._state = self._checked = None
        return [f"tile {level}/{n}" for level, n, _ in sorted(right)]

    def root_at(self, size: int) -> Hash:
        """Return the root that the tree had at a size up to its own, every hash proven by the checkpoint.

        Raises `MismatchError` ``tlog.tile``.
        """
        return tree.root(size, tiles.node_reader(self._proven()))

    def trust(self, signer: Signer) -> Checkpoint:
        """Return the head, once it is shown to be `signer`'s and about what is stored.

        Raises `UsageError` ``registry.log-key``, `MismatchError` ``registry.inconsistent``.
        """
        return self._trusted(signer).head

    def extend(self, entries: Sequence[bytes], signer: Signer, *others: Signer) -> Checkpoint:
        """Add entries, whose bytes are new to the log, and sign the checkpoint over all; `others` sign too.

        Raises as `trust` does.
        """
        # The edge grows in its place: what fails half-way is forgotten.
        state, self._state = self._trusted(signer), None
        size = state.head.size
        hashes = leaf_hashes(entries)
        changed = tiles.grow(size, hashes, lambda level, n: state.edge.get((level, n), b""))
        for place, row in changed.items():
            if len(row) < tiles.FULL:
                state.edge[place] = row
            else:
                state.edge.pop(place, None)
        if len(entries) < tiles.WIDTH:
            for leaf in hashes:
                state.frontier.add(leaf)
        else:
            _extended(state.frontier, size + len(entries), changed)
        state.head = Checkpoint(signer.name, state.frontier.size, state.frontier.root)
        state.note = sign_checkpoint(state.head, signer, *others)
        many = self._connection.executemany
        many("INSERT INTO leaf VALUES (?, ?)", enumerate(entries, size))
        many("REPLACE INTO tile VALUES (?, ?, ?)", [(*place, row) for place, row in changed.items()])
        self._connection.execute("UPDATE checkpoint SET size = ?, note = ?", (state.head.size, state.note))
        self._state = state
        return state.head

    def _trusted(self, signer: Signer) -> _State:
        # A transaction that was rolled back leaves another checkpoint than the one in memory.
        note, state = self.note(), self._state
        if state is None or state.note != note or state.key != signer.vkey:
            state = self._state = self._verified(signer.vkey, note)
        return state

    def _verified(self, key: VerifierKey, note: bytes) -> _State:
        try:
            size = parse_checkpoint(parse_note(note).text).size
        except CertkitError as error:
            raise MismatchError("registry.inconsistent", error.message) from None
        (last,) = self._connection.execute("SELECT max(idx) FROM leaf").fetchone()
        if (-1 if last is None else last) != size - 1:
            message = f"the checkpoint speaks of {size:,} entries, the last one stored is {last}"
            raise MismatchError("registry.inconsistent", message, hint=_TELLS)
        try:
            head = open_checkpoint(note, key).checkpoint
        except MismatchError:
            raise UsageError(
                "registry.log-key",
                "the registry's checkpoint was not signed with this log key",
                hint="give the registry's own key with --log-key",
            ) from None
        edge = {place: self.tile(*place) for place in _edge(size)}
        try:
            frontier = _frontier(size, edge)
        except CertkitError as error:
            raise MismatchError("registry.inconsistent", error.message) from None
        if frontier.root != head.root:
            message = "the stored tree does not have the root that was signed"
            raise MismatchError("registry.inconsistent", message, hint=_TELLS)
        return _State(key, note, head, frontier, edge)


def _frontier(size: int, edge: dict[tuple[int, int], bytes]) -> Frontier:
    return Frontier.of(size, tiles.node_reader(lambda level, n: edge.get((level, n), b"")))


def _extended(frontier: Frontier, size: int, changed: dict[tuple[int, int], bytes]) -> None:
    """Extend a frontier by the tiles that changed, which have summed up nearly all of it already."""
    node = tiles.node_reader(lambda level, n: changed[level, n])
    first = frontier.size >> tiles.HEIGHT
    frontier.cut(tiles.HEIGHT)
    for n in range(first, size >> tiles.HEIGHT):
        frontier.add(node(tiles.HEIGHT, n), tiles.HEIGHT)
    for level in reversed(range(tiles.HEIGHT)):
        if size >> level & 1:
            frontier.add(node(level, (size >> level) - 1), level)


def _edge(size: int) -> list[tuple[int, int]]:
    """Return the places of the tiles that are not full, on which alone the root of a tree rests."""
    edge, level = [], 0
    while count := size >> (tiles.HEIGHT * level):
        if count % tiles.WIDTH:
            edge.append((level, count // tiles.WIDTH))
        level += 1
    return edge


class LogKeys:
    """The keys of a log, each handed over to the next by an entry that the one before signed."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self.had: set[bytes] = set()
        """Every key so far, once one was changed."""
        self.last: str | None = None
        """The newest key as the entries name it, None where none was ever changed."""

    def follow(self, entry: UnverifiedEntry, change: KeyChange) -> str | None:
        """Take the next change of keys; return what does not hold of it."""
        before, self.last = self.last, change.new
        if before not in {None, change.old}:
            return f"it hands over from {change.old}, and the key before it is {before}"
        try:
            old, new = VerifierKey.parse(change.old), VerifierKey.parse(change.new)
            public = Ed25519PublicKey.from_public_bytes(old.public)
            if {old.name, new.name, entry.entry.subject} != {self._origin}:
                return "its keys are another log's"
            if entry.entry.submitter != keys.key_id(public):
                return "not submitted by the key that it hands over from"
            entry.verify(public)
        except (CertkitError, ValueError) as error:
            return str(error)
        # What was given up may be in other hands, and a copy of the log from then would be the present one.
        again = new.public in {old.public, *self.had}
        self.had |= {old.public, new.public}
        return "it hands over to a key that the log had before" if again else None


def log_key_file(named: Path | None, registry: Path) -> Path:
    """Return the file of a log's private key: the named one, or that in the registry's folder.

    Raises `InputError` ``file.missing``.
    """
    path = named or registry / KEY_FILE
    if named is None and not path.exists():
        store.located(registry)
        raise InputError(
            "file.missing", "not found", where=str(path), hint="name the log's private key: --log-key FILE"
        )
    return path


def load_log_key(path: Path) -> Ed25519PrivateKey:
    """Return the log's private key from a PEM file; raise `UsageError` ``registry.log-key``."""
    key = keys.load_private(path)
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(
            "registry.log-key",
            "not an Ed25519 key",
            where=str(path),
            hint="logs are signed with Ed25519; 'certkit keys generate' makes such a key",
        )
    return key
