"""The status of a passport as a file, for those who verify offline: ``passport.json.status``.

    data = write(folder, index, key=log_key, heads=heads, at=now)
    FileStatus(data, trust=trust, at=now, seen=remembered)          # a `StatusSource`

It holds the signed checkpoint, every entry of the lineage from the passport's own to the last one, each with
its proof, and the log's word that this is the last one: a signed note of the log's key over

    certkit.status/v1
    origin of the log, its size and its root, each on a line
    SHA-256 of the lineage
    index of the first entry of the lineage that logs the passport
    index of the lineage's last entry
    time

What it shows: these entries are in the log, they follow one another without a gap (`prev`), none but the
last can be missing, and a trusted key logged the passport. What it does not show: that none logged it before,
and that there is no later one. No proof of a Merkle log can show that; it is the word of the log's key, which
a single entry with a proof below that size refutes for good.

Whoever remembers an older checkpoint of the log is shown that it goes on from there by a proof in the file
that begins at that checkpoint (`since`), or not at all: then the file still ends a passport, and says of none
that it stands.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from certkit import canonical
from certkit.errors import CertkitError, InputError, MismatchError, UnavailableError, UsageError
from certkit.passport.checks import CLOCK_SKEW, Status
from certkit.passport.terms import Count  # noqa: TC001 - msgspec resolves annotations at run time
from certkit.registry import blobs
from certkit.registry.auditing import opened
from certkit.registry.entry import naming, read, timestamp
from certkit.registry.heads import read as read_head
from certkit.registry.heads import refuse_fork, remembered
from certkit.registry.history import Log, moment
from certkit.registry.registry import Logged
from certkit.registry.rules import is_of
from certkit.registry.status import Events, log_key, vouched
from certkit.tlog import tiles, tree
from certkit.tlog.checkpoint import open_checkpoint
from certkit.tlog.hashing import leaf_hash
from certkit.tlog.note import Signer, open_note, write_note
from certkit.tlog.text import decode64, decode_hash, encode64
from certkit.tlog.witness import Quorum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.canonical import Digest
    from certkit.passport.keys import PublicKey
    from certkit.passport.trust import Trust
    from certkit.registry.entry import UnverifiedEntry
    from certkit.registry.source import Source
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.hashing import Hash
    from certkit.tlog.note import VerifierKey

SCHEMA: Final = "urn:certkit:status:v1"
MAX_SIZE: Final = canonical.MAX_BYTES

_FIRST: Final = "certkit.status/v1"
_SAYS: Final = (
    *("the form", "the origin", "the size", "the root", "the lineage"),
    *("the passport's entry", "the last entry", "the time"),
)
_LINES: Final = len(_SAYS)
_Text = Annotated[str, Meta(max_length=512 * 1024)]
_Hashes = Annotated[tuple[Annotated[str, Meta(max_length=64)], ...], Meta(max_length=64)]


class _Proven(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of the lineage with its proof; base64 throughout."""

    index: Count
    entry: _Text
    hashes: _Hashes


class _Since(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The proof that the checkpoint goes on from an earlier one of `size` entries."""

    size: Count
    hashes: _Hashes


class _File(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"schema_": "schema"}):
    """The file: notes as text, entries oldest first."""

    schema_: Literal["urn:certkit:status:v1"] = SCHEMA
    checkpoint: _Text
    word: _Text
    entries: tuple[_Proven, ...]
    since: _Since | UnsetType = UNSET


def write(
    folder: Path,
    index: int,
    *,
    key: Ed25519PrivateKey,
    heads: Path,
    at: datetime,
    since: Checkpoint | None = None,
) -> bytes:
    """Return the status file of the passport that entry `index` logs; the log's key signs its word.

    It is shown to go on from the checkpoint `since`. Every entry is read first, since the word must be true.
    Raises `UsageError` ``registry.log-key``, or ``registry.unknown`` where the entry is not the first of
    the passport's lineage that logs it; `MismatchError` ``registry.inconsistent``, and ``registry.rollback``
    where the log is older than what was signed for it before, or does not go on from `since`.
    """
    with opened(folder) as source:
        origin = read_head(source.note()).origin
        signer = Signer(origin, key)
        try:
            log = Log(folder, source, signer.vkey, seen=lambda _: remembered(heads, signer.vkey))
        except MismatchError as error:
            raise UsageError("registry.log-key", error.message, where=str(folder)) from None
        note, head = source.note(), log.head.checkpoint
        found = list(_lineage(log.entries(), index))
        passport = read(found[0][1]).passport if found else None
        if passport is None:
            raise UsageError("registry.unknown", f"entry {index} is no passport", where=str(folder))
        if (first := _first(folder, source, passport.passport_id)) != index:
            again = "again what" if index > first else "what, in its own lineage,"
            message = f"entry {index} logs {again} entry {first} logs"
            raise UsageError("registry.unknown", message, where=str(folder), hint=f"ask for entry {first}")
        node = tiles.node_reader(tiles.verified(head.size, head.root, source.tile))
        entries = tuple(
            _Proven(
                index=place,
                entry=encode64(data),
                hashes=_encoded(tree.inclusion_proof(place, head.size, node)),
            )
            for place, data in found
        )
        going_on = UNSET if since is None else _going_on(since, head, node)
    text = _word(head, read(found[0][1]).entry.subject, index, found[-1][0], timestamp(at))
    word = write_note(text, [signer.sign(text)])
    document = _File(checkpoint=note.decode(), word=word.decode(), entries=entries, since=going_on)
    return _bytes(document, folder)


def _bytes(document: _File, folder: Path) -> bytes:
    """Return a file that its readers will take."""
    data = canonical.pretty(msgspec.to_builtins(document)).encode()
    if len(data) > MAX_SIZE:
        many = f"{len(document.entries):,} entries of the lineage"
        raise UsageError(
            "registry.status",
            f"{many} make a file of {len(data):,} bytes, limit {MAX_SIZE:,}",
            where=str(folder),
            hint="give the exported tree instead, for: certkit verify --registry DIR",
        )
    return data


def _lineage(entries: Iterable[tuple[int, bytes, Hash]], index: int) -> Iterator[tuple[int, bytes]]:
    """Yield the entries of a lineage from `index` on."""
    lineage, names_it = "", naming("")
    for place, data, _ in entries:
        if place == index:
            lineage = read(data).entry.subject
            names_it = naming(lineage)
        if place >= index and names_it(data) and read(data).entry.subject == lineage:
            yield place, data


def _first(folder: Path, source: Source, passport_id: str) -> int:
    """Return the first entry that logs a passport, of a log that holds one and was read before.

    Of several lineages it is in that which its file states, where that is here.
    """
    names_it = naming(passport_id)
    entries = (one for batch in source.batches() for one in batch)
    may_be = [(place, read(data)) for place, data in entries if names_it(data)]
    logged = [(place, one) for place, one in may_be if one.passport and one.passport_id == passport_id]
    own = {one.entry.subject for _, one in logged if _is_its_own(folder, one)}
    return next((place for place, one in logged if one.entry.subject in own), logged[0][0])


def _is_its_own(folder: Path, found: UnverifiedEntry) -> bool:
    stored = found.entry.passport
    data = None if stored is None else blobs.intact(folder, stored.sha256)
    return data is not None and is_of(data, found)


def _going_on(since: Checkpoint, head: Checkpoint, node: tree.Node) -> _Since:
    if since.origin != head.origin:
        raise MismatchError("tlog.origin", f"expected origin {head.origin!r}, found {since.origin!r}")
    try:
        refuse_fork(since, head, lambda size: tree.root(size, node))
    except MismatchError as error:
        hint = "nobody has checked who signed the one that is given: certkit registry audit --since FILE"
        raise MismatchError(error.code, error.message, hint=hint) from None
    return _Since(size=since.size, hashes=_encoded(tree.consistency_proof(since.size, head.size, node)))


def _encoded(hashes: Iterable[Hash]) -> tuple[str, ...]:
    return tuple(encode64(one) for one in hashes)


def _word(head: Checkpoint, lineage: str, first: int, last: int, time: str) -> str:
    hashed = hashlib.sha256(lineage.encode()).hexdigest()
    root, *indices = encode64(head.root), str(first), str(last)
    lines = (_FIRST, head.origin, str(head.size), root, hashed, *indices, time)
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
        entries = [_entry(one, head) for one in file.entries]
        time = _check_word(file.word.encode(), key, head, entries)
        _check_chain(entries)
        if entries[0].found.passport is None or entries[0].found.passport_id != passport_id:
            about = entries[0].found.passport_id or "something that is no passport"
            raise MismatchError("registry.status", f"the status is that of {about}, not of {passport_id}")
        trusted = {one.id: one.key for one in self._trust.candidates()}
        events = Events(head.origin, passport_id, revokers, trusted)
        for one in entries:
            events.take(one)
        if not events.ended:
            self._refuse_other(head, file.since)
        known = time if time <= self._at + CLOCK_SKEW else None
        return events.status(head, vouched(signed, quorum, self._at) if quorum.k else known, self._at)

    def _refuse_other(self, head: Checkpoint, since: _Since | UnsetType) -> None:
        """Refuse a log that is not shown to go on from what is remembered of it."""
        seen = self._seen(head.origin)
        if seen is None or not seen.size:
            return
        if head.size < seen.size:
            raise UnavailableError(
                "registry.rollback",
                f"the status is as of {head.size:,} entries, and {seen.size:,} are known to be in the log",
                hint="ask whoever keeps the log for a newer one",
            )
        if head.size == seen.size:
            refuse_fork(seen, head, lambda _: head.root)
        elif isinstance(since, UnsetType) or since.size != seen.size:
            raise UnavailableError(
                "registry.rollback",
                f"nothing in the file shows that the log goes on from the {seen.size:,} entries known of it",
                hint="have it written with '--since CHECKPOINT', the one that you know, or use --registry",
            )
        else:
            proof = _hashes(since.hashes)
            tree.verify_consistency(seen.size, seen.root, head.size, head.root, proof)


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
    data = decode64(one.entry)
    if data is None:
        raise InputError("registry.status", f"not a status file: entry {one.index} is not base64")
    leaf = leaf_hash(data)
    tree.verify_inclusion(leaf, one.index, head.size, _hashes(one.hashes), head.root)
    return Logged(one.index, leaf, read(data))


def _hashes(texts: Iterable[str]) -> list[Hash]:
    hashes = [decode_hash(text) for text in texts]
    found = [one for one in hashes if one is not None]
    if len(found) < len(hashes):
        raise InputError("registry.status", "not a status file: a hash in it is none")
    return found


def _check_word(word: bytes, key: VerifierKey, head: Checkpoint, entries: list[Logged]) -> datetime:
    """Return the time of the log's word, which must be about this checkpoint and these entries."""
    text = open_note(word, [key]).text
    lines = text.split("\n")
    lineage, last = entries[0].found.entry.subject, entries[-1].index
    if len(lines) != _LINES + 1:
        raise MismatchError("registry.status", f"the log's word has {len(lines) - 1} lines, not {_LINES}")
    expected = _word(head, lineage, entries[0].index, last, lines[_LINES - 1]).split("\n")
    for name, stated, found in zip(_SAYS, lines, expected, strict=False):
        if stated != found:
            message = f"the log's word is about {name} {stated[:80]!r}, the file holds {found!r}"
            raise MismatchError("registry.status", message)
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
            says = "no entry before it" if previous is None else f"entry {previous.index} before it"
            message = f"entry {following.index} names {says}, and the file holds entry {one.index} there"
            raise MismatchError("registry.status", message)
