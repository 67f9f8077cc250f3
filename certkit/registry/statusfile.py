"""The status of a passport as a file, for those who verify offline: ``passport.json.status``.

    data = write(folder, index, key=log_key, heads=heads, at=now)
    FileStatus(data, trust=trust, at=now, seen=remembered)          # a `StatusSource`

It holds the signed checkpoint, every entry of the lineage from the passport's own to the last one, each with
its proof, and the log's word that this is the last one: a signed note of the log's key over

    certkit.status/v1
    origin of the log, its size and its root, each on a line
    SHA-256 of the lineage
    index of the lineage's last entry
    time

What it shows: these entries are in the log, they follow one another without a gap (`prev`), and none but the
last can be missing. What it does not show: that there is no later one. No proof of a Merkle log can show
that; it is the word of the log's key, which a single entry with a proof below that size refutes for good.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from certkit import canonical
from certkit.errors import CertkitError, InputError, MismatchError, UnavailableError, UsageError
from certkit.passport.checks import CLOCK_SKEW, Status
from certkit.passport.statement import Count  # noqa: TC001 - msgspec resolves annotations at run time
from certkit.registry.auditing import opened
from certkit.registry.entry import read, timestamp
from certkit.registry.heads import read as read_head
from certkit.registry.heads import refuse_fork, remembered
from certkit.registry.history import Log, moment
from certkit.registry.registry import Logged
from certkit.registry.status import Events, log_key, vouched
from certkit.tlog import tiles, tree
from certkit.tlog.checkpoint import open_checkpoint
from certkit.tlog.hashing import leaf_hash
from certkit.tlog.note import Signer, open_note, write_note
from certkit.tlog.text import decode64, decode_hash, decode_number, encode64
from certkit.tlog.witness import Quorum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.canonical import Digest
    from certkit.passport.keys import PublicKey
    from certkit.passport.trust import Trust
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.hashing import Hash
    from certkit.tlog.note import VerifierKey

SUFFIX: Final = ".status"
"""What is appended to a passport's file name to name the status beside it."""

SCHEMA: Final = "urn:certkit:status:v1"
MAX_SIZE: Final = canonical.MAX_BYTES

_FIRST: Final = "certkit.status/v1"
_LINES: Final = 7
_Text = Annotated[str, Meta(max_length=512 * 1024)]


class _Proven(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of the lineage with its proof; base64 throughout."""

    index: Count
    entry: _Text
    hashes: Annotated[tuple[Annotated[str, Meta(max_length=64)], ...], Meta(max_length=63)]


class _File(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"schema_": "schema"}):
    """The file: notes as text, entries oldest first."""

    schema_: Literal["urn:certkit:status:v1"] = SCHEMA
    checkpoint: _Text
    word: _Text
    entries: tuple[_Proven, ...]


def write(folder: Path, index: int, *, key: Ed25519PrivateKey, heads: Path, at: datetime) -> bytes:
    """Return the status file of the passport that entry `index` is about; the log's key signs its word.

    Every entry is read first, since the word must be true. Raises `UsageError` ``registry.log-key`` or
    ``registry.unknown``, `MismatchError` ``registry.inconsistent``, and ``registry.rollback`` where the log
    is older than what was signed for it before.
    """
    with opened(folder) as source:
        origin = read_head(source.note()).origin
        signer = Signer(origin, key)
        try:
            log = Log(folder, source, signer.vkey, ())
        except MismatchError as error:
            raise UsageError("registry.log-key", error.message, where=str(folder)) from None
        note, head = source.note(), log.head.checkpoint
        found = list(_lineage(log.entries(remembered(heads, origin)), index))
        node = tiles.node_reader(tiles.verified(head.size, head.root, source.tile))
        entries = tuple(
            _Proven(
                index=place,
                entry=encode64(data),
                hashes=tuple(encode64(one) for one in tree.inclusion_proof(place, head.size, node)),
            )
            for place, data in found
        )
    if not found or read(found[0][1]).passport is None:
        raise UsageError("registry.unknown", f"entry {index} is no passport", where=str(folder))
    text = _word(head, read(found[0][1]).entry.subject, found[-1][0], timestamp(at))
    word = write_note(text, [signer.sign(text)])
    document = _File(checkpoint=note.decode(), word=word.decode(), entries=entries)
    return canonical.pretty(msgspec.to_builtins(document)).encode()


def _lineage(entries: Iterable[tuple[int, bytes, Hash]], index: int) -> Iterator[tuple[int, bytes]]:
    """Yield the entries of a lineage from `index` on."""
    lineage = None
    for place, data, _ in entries:
        if place >= index:
            subject = read(data).entry.subject
            lineage = lineage or subject
            if subject == lineage:
                yield place, data


def _word(head: Checkpoint, lineage: str, last: int, time: str) -> str:
    hashed = hashlib.sha256(lineage.encode()).hexdigest()
    lines = (_FIRST, head.origin, str(head.size), encode64(head.root), hashed, str(last), time)
    return "".join(f"{line}\n" for line in lines)


class FileStatus:
    """The status that a file tells, as of its checkpoint; `seen` is as for `FolderStatus`."""

    def __init__(
        self, data: bytes, *, trust: Trust, at: datetime, seen: Callable[[str], Checkpoint | None]
    ) -> None:
        self._data, self._trust, self._at, self._seen = data, trust, at, seen

    def status(self, passport_id: Digest, revokers: Mapping[Digest, PublicKey]) -> Status:
        """Return the standing of the passport, as `FolderStatus.status` does.

        Raises `InputError` for the form of the file, `MismatchError` where it does not hold together, and
        `UnavailableError` where it is older than what is remembered.
        """
        file = _parse(self._data)
        key = log_key(file.checkpoint.encode(), self._trust)
        quorum = Quorum.of(self._trust.witnesses.k, self._trust.witnesses.keys)
        signed = open_checkpoint(file.checkpoint.encode(), key, quorum.keys)
        head = signed.checkpoint
        self._refuse_older(head)
        entries = [_entry(one, head) for one in file.entries]
        time = _check_word(file.word.encode(), key, head, entries)
        _check_chain(entries)
        if entries[0].found.passport is None or entries[0].found.passport_id != passport_id:
            raise MismatchError("registry.status", "the status is that of another passport")
        trusted = {one.id: one.key for one in self._trust.candidates()}
        events = Events(passport_id, revokers, trusted)
        for one in entries:
            events.take(one)
        known = time if time <= self._at + CLOCK_SKEW else None
        return events.status(head, vouched(signed, quorum, self._at) if quorum.k else known, self._at)

    def _refuse_older(self, head: Checkpoint) -> None:
        seen = self._seen(head.origin)
        if seen is None:
            return
        if head.size < seen.size:
            raise UnavailableError(
                "registry.rollback",
                f"the status is as of {head.size:,} entries, and {seen.size:,} are known to be in the log",
                hint="ask whoever keeps the log for a newer one",
            )
        if head.size == seen.size:
            refuse_fork(seen, head, lambda _: head.root)


def _parse(data: bytes) -> _File:
    try:
        file = msgspec.convert(canonical.loads(data), _File)
    except (CertkitError, msgspec.ValidationError) as error:
        raise InputError("registry.status", f"not a status file: {error}") from None
    if not file.entries:
        raise InputError("registry.status", "not a status file: it holds no entry")
    return file


def _entry(one: _Proven, head: Checkpoint) -> Logged:
    """Return an entry once it is shown to be in the log."""
    data, hashes = decode64(one.entry), [decode_hash(text) for text in one.hashes]
    if data is None or None in hashes:
        raise InputError("registry.status", f"not a status file: entry {one.index} is not base64")
    leaf = leaf_hash(data)
    proof = [each for each in hashes if each is not None]
    tree.verify_inclusion(leaf, one.index, head.size, proof, head.root)
    return Logged(one.index, leaf, read(data))


def _check_word(word: bytes, key: VerifierKey, head: Checkpoint, entries: list[Logged]) -> datetime:
    """Return the time of the log's word, which must be about this checkpoint and these entries."""
    text = open_note(word, [key]).text
    lines = text.split("\n")
    lineage, last = entries[0].found.entry.subject, entries[-1].index
    if len(lines) != _LINES + 1 or text != _word(head, lineage, last, lines[_LINES - 1]):
        size = decode_number(lines[2]) if len(lines) > _LINES else None
        of = "something else" if size is None else f"checkpoint {size:,} and another entry or lineage"
        raise MismatchError("registry.status", f"the log's word is about {of}")
    try:
        return moment(lines[_LINES - 1])
    except ValueError:
        raise InputError("registry.status", "not a status file: its word has no time") from None


def _check_chain(entries: list[Logged]) -> None:
    """Raise `MismatchError` unless the entries are of one lineage and follow one another without a gap."""
    for one, following in pairwise(entries):
        previous = following.found.entry.prev
        same = one.found.entry.subject == following.found.entry.subject
        if not same or previous is None or (previous.index, previous.leaf) != (one.index, one.leaf.hex()):
            raise MismatchError("registry.status", f"entry {following.index} does not follow {one.index}")
