"""What a reader of a log opens: a registry's database, or the tree exported from it (C2SP tlog-tiles).

A tree is a folder of files: `checkpoint`, ``tile/<level>/<n>[.p/<width>]``,
``tile/entries/<n>[.p/<width>]``, and ``blobs/`` where the passports were exported too. The size that its
checkpoint states is where to look. Nothing that is read here is believed: whether the checkpoint was signed,
and is about these bytes, is the reader's to find out.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from certkit.ground import files
from certkit.ground.errors import CertkitError, InputError, UnavailableError
from certkit.ground.progress import Progress, shown
from certkit.registry import store
from certkit.registry.heads import read
from certkit.registry.log import Log
from certkit.tlog import tiles
from certkit.tlog.note import MAX_NOTE, VerifierKey, parse_note
from certkit.tlog.tiles import WIDTH, Tile
from certkit.tlog.tree import HASH_SIZE, Hash, leaf_hash

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.passport.trust import Trust


CHECKPOINT: Final = "checkpoint"


class Database:
    """The database of a registry, on one state of it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection, log = connection, Log(connection)
        self.entry, self.tile, self.note = log.entry, log.tile, log.cosigned
        self.passports = True

    def vkey(self) -> VerifierKey | None:
        """Return the verifier key that the log says is its own, None where it says none."""
        return VerifierKey.parse(store.meta(self._connection).get("vkey", ""))

    def count(self) -> int:
        """Return how many entries there seem to be."""
        (count,) = self._connection.execute("SELECT count(*) FROM leaf").fetchone()
        return int(count)

    def batches(self) -> Iterator[list[tuple[int, Any]]]:
        """Yield the entries in order with their indices, at most 256 together; raise `CertkitError`."""
        cursor = self._connection.execute("SELECT idx, entry FROM leaf ORDER BY idx")
        while rows := cursor.fetchmany(WIDTH):
            yield rows

    def faults(self, log: VerifierKey) -> Iterator[tuple[str, str, str]]:
        """Yield what else does not hold of a log with this key: a code, where, in words."""
        stated = store.meta(self._connection)
        right = {"format": store.FORMAT, "origin": log.name, "vkey": str(log)}
        for name in sorted(stated.keys() | right.keys()):
            if stated.get(name) != right.get(name):
                message = f"expected {name} {right.get(name)}, found {stated.get(name)}"
                yield "registry.checkpoint", "meta", message


class Published:
    """The files of an exported tree; of a tile, narrower forms are not looked at."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        kept = folder / store.BLOBS
        self.passports = kept.is_dir() and not kept.is_symlink()

    def note(self) -> bytes:
        """Return the signed checkpoint; raise `CertkitError`."""
        path = self._folder / CHECKPOINT
        if path.is_symlink():
            raise InputError("file.not-regular", "is a link, not a file", where=str(path))
        return files.read(path, limit=MAX_NOTE)

    def vkey(self) -> VerifierKey | None:
        """Return None: a tree does not say whose it is."""
        return None

    def count(self) -> int:
        """Return how many entries there are by the checkpoint."""
        return self._size

    @cached_property
    def _size(self) -> int:
        try:
            return read(self.note()).size
        except CertkitError:
            return 0  # the audit reads the checkpoint itself, and says what is wrong

    def batches(self) -> Iterator[list[tuple[int, Any]]]:
        """See `Database.batches`."""
        for n in range(-(-self._size // WIDTH)):
            yield list(enumerate(self._entries(n), n * WIDTH))

    def entry(self, index: int) -> bytes | None:
        """Return an entry, None where there is none."""
        n, place = divmod(index, WIDTH)
        return self._entries(n)[place] if 0 <= index < self._size else None

    def _entries(self, n: int) -> list[bytes]:
        width, data = self._tile(tiles.BUNDLES, n)
        if data is None:
            raise InputError("tlog.tile", f"bundle {n} is missing, too long or a link")
        return tiles.decode_bundle(data, width)[: tiles.width(tiles.BUNDLES, n, self._size)]

    def tile(self, level: int, n: int) -> bytes:
        """Return the stored hashes of a tile, nothing where there is none."""
        width, data = self._tile(level, n)
        if data is None or len(data) != width * HASH_SIZE:
            return b""
        return data[: tiles.width(level, n, self._size) * HASH_SIZE]

    def _tile(self, level: int, n: int) -> tuple[int, bytes | None]:
        """Return a tile or bundle, and its width: that of the log's size, or full.

        Once a tile is full, its narrower forms may go, and a reader takes them from it.
        """
        width = tiles.width(level, n, self._size)
        for at_hand in (width, WIDTH) if width else ():
            data = self._read(Tile(level, n, at_hand))
            if data is not None:
                return at_hand, data
        return width, None

    def faults(self, _log: VerifierKey) -> Iterator[tuple[str, str, str]]:
        """Yield nothing: whatever a tree is, its tiles and entries show."""
        return iter(())

    def _read(self, tile: Tile) -> bytes | None:
        limit = tiles.MAX_BUNDLE if tile.level == tiles.BUNDLES else tiles.FULL
        path = self._folder
        for part in tile.path.split("/"):
            path /= part
            if path.is_symlink():  # what lies behind it is no part of the tree
                return None
        try:
            return files.read(path, limit=limit)
        except CertkitError:
            return None


Source = Database | Published
"""Bytes to read, none of them believed; `passports` tells whether the passports are part of it."""


@contextmanager
def opened(folder: Path) -> Iterator[Source]:
    """Open what an audit reads: a registry's database, or else an exported tree.

    Raises `InputError` ``registry.missing`` or ``registry.format``, `MismatchError` ``registry.damaged``,
    and `UsageError` where the system refuses to read.
    """
    if (folder / store.FILE).exists() or not (folder / CHECKPOINT).exists():
        with (
            closing(store.connect(folder, writable=False)) as connection,
            store.translated(folder / store.FILE),
            store.reading(connection),
        ):
            yield Database(connection)
    else:
        yield Published(folder)


def walk(source: Source, progress: Progress, label: str, size: int) -> Iterator[list[tuple[int, Any, Hash]]]:
    """Yield the entries of a source in order, in batches, with indices and leaf hashes; nothing is believed.

    What is no bytes, as a database may hold, has the leaf of an empty entry. Raises `CertkitError` where the
    source cannot be read.
    """
    with shown(progress, label, size) as bar:
        for batch in source.batches():
            yield [(n, data, leaf_hash(data if isinstance(data, bytes) else b"")) for n, data in batch]
            bar.advance(len(batch))


def keys_of_log(trust: Trust, origin: str) -> list[VerifierKey]:
    """Return the policy's keys of a log, the present one last."""
    return [key for key in map(VerifierKey.parse, trust.logs) if key.name == origin]


def log_key(note: bytes, trust: Trust, refusal: type[CertkitError] = UnavailableError) -> VerifierKey:
    """Return the policy's present key of the log that a checkpoint names, which must have signed it.

    Of several keys of one log the last one in the policy is the present one: whoever came by an older key
    could go on from the day on which it was given up. Raises `refusal` ``registry.untrusted-log``.
    """
    origin = read(note).origin
    keys = keys_of_log(trust, origin)
    if keys and (origin, keys[-1].key_id) in {line[:2] for line in parse_note(note).signatures}:
        return keys[-1]
    why, hint = (
        (
            "the checkpoint is not signed with the key that the policy lists last for",
            "ask for the log as it is now; in the policy, its present key has to stand after older ones",
        )
        if keys
        else (
            "no trusted verifier key signed the checkpoint of",
            "certkit trust add --log VKEY, with the key that 'certkit registry init' printed",
        )
    )
    raise refusal("registry.untrusted-log", f"{why} {origin}", hint=hint)
