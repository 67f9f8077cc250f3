"""The status of a passport as a file, for those who verify offline: ``passport.json.status``.

    data = write(folder, index, key=log_key, heads=heads, at=now)
    FileStatus(data, trust=trust, at=now, seen=remembered)          # a `StatusSource`

It holds the signed checkpoint, every entry of the log that names the passport, and the log's word that there
is no other: a signed note of the log's key over

    certkit.status/v1
    origin of the log, its size and its root, each on a line
    the passport's id
    SHA-256 of the entries: the place and leaf hash of each on a line
    time

That there is no other entry is the word of the log's key: no proof of a Merkle log could show it, and a
single entry with a proof below that size refutes it for good. Who signed the entries is checked as in a log.

Whoever remembers an older checkpoint of the log is shown that it goes on from there by a proof in the file
that begins at that checkpoint (`since`), or not at all: then the file still ends a passport, and says of none
that it stands.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from certkit import canonical
from certkit.document import Document, Part
from certkit.errors import CertkitError, InputError, MismatchError, UnavailableError, UsageError
from certkit.passport.checks import CLOCK_SKEW, Status
from certkit.passport.terms import Count
from certkit.registry.entry import Logged, moment, naming, read, timestamp
from certkit.registry.heads import read as read_head
from certkit.registry.heads import refuse_fork, remembered
from certkit.registry.reader import Reader, log_key, opened
from certkit.registry.state import Policy
from certkit.registry.status import Events, vouched
from certkit.tlog import tiles, tree
from certkit.tlog.checkpoint import open_checkpoint
from certkit.tlog.hashing import leaf_hash
from certkit.tlog.note import Signer, open_note, write_note
from certkit.tlog.text import decode64, decode_hash, encode64
from certkit.tlog.witness import Quorum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.canonical import Digest
    from certkit.passport.keys import PublicKey
    from certkit.passport.trust import Trust
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.hashing import Hash
    from certkit.tlog.note import VerifierKey

MAX_SIZE: Final = canonical.MAX_BYTES
SAYS: Final = (
    "that no other entry of the log names the passport is the word of the log's key; no proof shows it"
)

_FIRST: Final = "certkit.status/v1"
_SAYS: Final = ("the form", "the origin", "the size", "the root", "the passport", "the entries", "the time")
_LINES: Final = len(_SAYS)
_Text = Annotated[str, Meta(max_length=512 * 1024)]
_Hashes = Annotated[tuple[Annotated[str, Meta(max_length=64)], ...], Meta(max_length=64)]


class Held(Part, frozen=True, kw_only=True):
    """An entry that names the passport, in base64."""

    index: Count
    entry: _Text


class Since(Part, frozen=True, kw_only=True):
    """The proof that the checkpoint goes on from an earlier one of `size` entries."""

    size: Count
    hashes: _Hashes


class StatusDocument(Document, frozen=True, kw_only=True, tag="urn:certkit:status:v1"):
    """A passport's status for offline use, with the log's signed word on it.

    Checkpoint and word are notes as text, entries stand oldest first; `says` is a sentence for people.
    """

    says: _Text = SAYS
    checkpoint: _Text
    word: _Text
    entries: tuple[Held, ...]
    since: Since | UnsetType = UNSET


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
    Raises `UsageError` ``registry.log-key``, or ``registry.unknown`` where the entry is no passport;
    `MismatchError` ``registry.inconsistent``, and ``registry.rollback`` where the log is older than what was
    signed for it before, or does not go on from `since`.
    """
    with opened(folder) as source:
        origin = read_head(source.note()).origin
        signer = Signer(origin, key)
        try:
            log = Reader(folder, source, signer.vkey, seen=lambda _: remembered(heads, signer.vkey))
        except MismatchError as error:
            raise UsageError("registry.log-key", error.message, where=str(folder)) from None
        note, head = source.note(), log.head.checkpoint
        data = next((data for place, data in source.entries(index, index + 1) if place == index), None)
        passport = None if data is None else read(data).passport
        if passport is None:
            raise UsageError("registry.unknown", f"entry {index} is no passport", where=str(folder))
        names_it = naming(passport.passport_id)
        naming_it = [(place, data, leaf) for place, data, leaf in log.entries() if names_it(data)]
        node = tiles.node_reader(tiles.verified(head.size, head.root, source.tile))
        going_on = UNSET if since is None else _going_on(since, head, node)
    places = [(place, leaf) for place, _, leaf in naming_it]
    text = _word(head, passport.passport_id, places, timestamp(at))
    document = StatusDocument(
        checkpoint=note.decode(),
        word=write_note(text, [signer.sign(text)]).decode(),
        entries=tuple(Held(index=place, entry=encode64(data)) for place, data, _ in naming_it),
        since=going_on,
    )
    return _bytes(document, folder)


def _bytes(document: StatusDocument, folder: Path) -> bytes:
    """Return a file that its readers will take."""
    data = canonical.pretty(document.to_dict()).encode()
    if len(data) > MAX_SIZE:
        many = f"{len(document.entries):,} entries that name the passport"
        raise UsageError(
            "registry.status",
            f"{many} make a file of {len(data):,} bytes, limit {MAX_SIZE:,}",
            where=str(folder),
            hint="give the exported tree instead, for: certkit verify --registry DIR",
        )
    return data


def _going_on(since: Checkpoint, head: Checkpoint, node: tree.Node) -> Since:
    if since.origin != head.origin:
        raise MismatchError("tlog.origin", f"expected origin {head.origin!r}, found {since.origin!r}")
    try:
        refuse_fork(since, head, lambda size: tree.root(size, node))
    except MismatchError as error:
        hint = "nobody has checked who signed the one that is given: certkit registry audit --since FILE"
        raise MismatchError(error.code, error.message, hint=hint) from None
    hashes = tree.consistency_proof(since.size, head.size, node)
    return Since(size=since.size, hashes=tuple(map(encode64, hashes)))


def _word(head: Checkpoint, passport_id: str, places: Iterable[tuple[int, Hash]], time: str) -> str:
    listed = "".join(f"{index} {leaf.hex()}\n" for index, leaf in places)
    entries = hashlib.sha256(listed.encode()).hexdigest()
    root = encode64(head.root)
    lines = (_FIRST, head.origin, str(head.size), root, passport_id, entries, time)
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
        entries = [_entry(logged) for logged in file.entries]
        time = _check_word(file.word.encode(), key, head, passport_id, entries)
        events = Events(Policy(head.origin, self._trust), passport_id, revokers)
        for logged in entries:
            events.take(logged)
        if not events.ended:
            self._refuse_other(head, file.since)
        known = time if time <= self._at + CLOCK_SKEW else None
        return events.status(head, vouched(signed, quorum, self._at) if quorum.k else known, self._at)

    def _refuse_other(self, head: Checkpoint, since: Since | UnsetType) -> None:
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


def _parse(data: bytes) -> StatusDocument:
    try:
        return msgspec.convert(canonical.loads(data), StatusDocument)
    except (CertkitError, msgspec.ValidationError) as error:
        raise InputError("registry.status", f"not a status file: {error}") from None


def _entry(held: Held) -> Logged:
    data = decode64(held.entry)
    if data is None:
        raise InputError("registry.status", f"not a status file: entry {held.index} is not base64")
    return Logged(held.index, leaf_hash(data), read(data))


def _hashes(texts: Iterable[str]) -> list[Hash]:
    hashes = [decode_hash(text) for text in texts]
    decoded = [value for value in hashes if value is not None]
    if len(decoded) < len(hashes):
        raise InputError("registry.status", "not a status file: a hash in it is none")
    return decoded


def _check_word(
    word: bytes, key: VerifierKey, head: Checkpoint, passport_id: str, entries: list[Logged]
) -> datetime:
    """Return the time of the log's word, which must be about this checkpoint, passport and entries."""
    text = open_note(word, [key]).text
    lines = text.split("\n")
    if len(lines) != _LINES + 1:
        raise MismatchError("registry.status", f"the log's word has {len(lines) - 1} lines, not {_LINES}")
    places = [(logged.index, logged.leaf) for logged in entries]
    expected = _word(head, passport_id, places, lines[_LINES - 1]).split("\n")
    for name, stated, wanted in zip(_SAYS, lines, expected, strict=False):
        if stated != wanted:
            message = f"the log's word is about {name} {stated[:80]!r}, expected {wanted!r}"
            raise MismatchError("registry.status", message)
    try:
        return moment(lines[_LINES - 1])
    except ValueError:
        raise InputError("registry.status", "not a status file: its word has no time") from None
