"""Checkpoints: the signed size and root of a log (C2SP tlog-checkpoint), and the witnesses that cosigned it.

    quorum = Quorum.of(2, ["witness.example+1f2e3d4c+BC…", …])     # from a trust policy
    head = open_checkpoint(data, log, quorum.keys)
    head.checkpoint.size, head.checkpoint.root
    quorum.is_met(head.cosigned)                                   # whether two of them cosigned
    quorum.since(head.cosigned)                                    # the latest time by which two of them had

The text of an offline proof that an entry is in a log (C2SP tlog-proof) holds the entry's index, the hashes
of its inclusion proof and a signed checkpoint. `extra` is not covered by any signature; certkit puts the
entry itself there, so that the leaf hash can be made again from this one file.

    proof = parse_proof(data)
    head = verify_proof(proof, leaf_hash(proof.extra or b""), trusted_logs)

With a cosignature a witness states: at this time, this was the largest tree of the log that I had seen, and
it extends all that I had seen before (C2SP tlog-cosignature).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.ground.errors import InputError, MismatchError
from certkit.tlog.note import (
    MAX_NOTE,
    KeyType,
    Signature,
    Signed,
    Signer,
    VerifierKey,
    decode64,
    decode_hash,
    decode_number,
    encode64,
    open_note,
    own_note,
    parse_note,
    write_note,
)
from certkit.tlog.tree import EMPTY_ROOT, Hash, verify_inclusion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from certkit.tlog.tree import Hash


_LINES: Final = 3


class Checkpoint(NamedTuple):
    """The state of a log: its name, the number of entries, and the root over them.

    `extensions` are further lines that a log may add; they are covered by its signature and ignored
    here; certkit writes none.
    """

    origin: str
    size: int
    root: Hash
    extensions: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text that is signed."""
        return "\n".join((self.origin, str(self.size), encode64(self.root), *self.extensions, ""))


class SignedCheckpoint(NamedTuple):
    """A checkpoint that its log signed, with the trusted witnesses that cosigned it."""

    checkpoint: Checkpoint
    cosigned: tuple[Signed, ...]


def parse_checkpoint(text: str) -> Checkpoint:
    """Read the text of a note as a checkpoint.

    Raises:
        InputError: ``tlog.checkpoint``.
    """
    lines = text.split("\n")
    if lines.pop() or len(lines) < _LINES or not all(lines):
        raise InputError("tlog.checkpoint", "expected origin, size and root, each on a line of its own")
    origin, size_text, root_text, *extensions = lines
    size, root = decode_number(size_text), decode_hash(root_text)
    if size is None:
        raise InputError("tlog.checkpoint", f"{size_text[:40]!r} is not the size of a log")
    if root is None:
        raise InputError("tlog.checkpoint", f"{root_text[:60]!r} is not a root hash")
    if size == 0 and root != EMPTY_ROOT:
        raise InputError("tlog.checkpoint", "the root of an empty log is wrong")
    return Checkpoint(origin, size, root, tuple(extensions))


def sign_checkpoint(checkpoint: Checkpoint, *signers: Signer) -> bytes:
    """Return the signed note of a checkpoint."""
    return own_note(checkpoint.text, [signer.sign(checkpoint.text) for signer in signers])


def open_checkpoint(data: bytes, log: VerifierKey, witnesses: Iterable[VerifierKey] = ()) -> SignedCheckpoint:
    """Return the checkpoint that `log` signed, and which of `witnesses` cosigned it.

    The origin must be the name of the log's key, so that no log can sign for another. The log's key does not
    count as a witness.

    Raises:
        InputError: ``tlog.note`` or ``tlog.checkpoint`` for the form.
        MismatchError: ``tlog.unsigned``, ``tlog.signature`` or ``tlog.origin``.
    """
    cosigners = [key for key in witnesses if key.type is KeyType.COSIGNATURE and key.public != log.public]
    opened = open_note(data, [log, *cosigners])
    if all(signed.key != log for signed in opened.signed):
        raise MismatchError("tlog.unsigned", f"not signed by the log {log.name}")
    checkpoint = parse_checkpoint(opened.text)
    if checkpoint.origin != log.name:
        raise MismatchError("tlog.origin", f"expected origin {log.name!r}, found {checkpoint.origin!r}")
    return SignedCheckpoint(checkpoint, tuple(signed for signed in opened.signed if signed.key != log))


# Witnesses


class Quorum(NamedTuple):
    """`k` of the witnesses `keys` must have cosigned; none where `k` is 0.

    Made by `of`: no two keys have the same name or the same bytes, so that no witness counts twice.
    """

    k: int
    keys: tuple[VerifierKey, ...]

    @classmethod
    def of(cls, k: int, vkeys: Iterable[str]) -> Quorum:
        """Read the verifier keys of witnesses; raise `InputError` ``tlog.key``.

        Keys of other types cannot make cosignatures and are refused.
        """
        keys = tuple(VerifierKey.parse(text) for text in vkeys)
        for key in keys:
            if key.type is not KeyType.COSIGNATURE:
                raise InputError(
                    "tlog.key",
                    f"{key.name!r} is the key of a log, not of a witness",
                    hint="a witness's verifier key holds type 4: its base64 begins with B",
                )
        # A cosignature does not name its witness: a key under two names would count twice.
        for part, seen in (("name", [key.name for key in keys]), ("key", [key.public for key in keys])):
            if len(set(seen)) < len(seen):
                raise InputError("tlog.key", f"two witnesses have the same {part}")
        return cls(k, keys)

    def is_met(self, cosigned: Sequence[Signed]) -> bool:
        """Tell whether enough have cosigned; `cosigned` is as `open_checkpoint` returns it for `keys`."""
        return len(cosigned) >= self.k

    def since(self, cosigned: Sequence[Signed]) -> int | None:
        """Return the latest time (seconds since 1970) not before which `k` witnesses cosigned, else None."""
        times = sorted((signed.time for signed in cosigned if signed.time is not None), reverse=True)
        return times[self.k - 1] if 0 < self.k <= len(times) else None


def counted(cosigned: Iterable[Signed], latest: float) -> list[Signed]:
    """Return the cosignatures that have a time, and none later than `latest` (seconds since 1970)."""
    return [signed for signed in cosigned if 0 < (signed.time or 0) <= latest]


NOBODY: Final = Quorum(0, ())
"""No witness is required."""


def with_signatures(note: bytes, lines: Iterable[Signature]) -> bytes:
    """Return a note with further signature lines after its own, each once.

    Raises:
        InputError: ``tlog.note``.
    """
    parsed = parse_note(note)
    return write_note(parsed.text, dict.fromkeys((*parsed.signatures, *lines)))


MAX_PROOF: Final = 2 * MAX_NOTE
MAX_HASHES: Final = 63
"""The longest inclusion proof in a tree of less than 2^63 entries."""

_HEADER: Final = "c2sp.org/tlog-proof@v1"


@dataclass(frozen=True, slots=True)
class LogProof:
    """A proof as read, not verified.

    `checkpoint` is the signed note, byte for byte; `extra` is None where the text has no such line.
    """

    index: int
    hashes: tuple[Hash, ...]
    checkpoint: bytes
    extra: bytes | None = None

    def to_bytes(self) -> bytes:
        """Return the text."""
        extra = [] if self.extra is None else [f"extra {encode64(self.extra)}"]
        lines = [_HEADER, *extra, f"index {self.index}", *(encode64(item) for item in self.hashes)]
        return "".join(f"{line}\n" for line in lines).encode() + b"\n" + self.checkpoint


def parse_proof(data: bytes) -> LogProof:
    """Read the text of a proof.

    Raises:
        InputError: ``tlog.proof``, or ``tlog.note`` for its checkpoint.
    """
    if len(data) > MAX_PROOF:
        raise InputError("tlog.proof", f"a proof of {len(data):,} bytes, limit {MAX_PROOF:,}")
    head, blank, checkpoint = data.partition(b"\n\n")
    try:
        lines = head.decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise InputError("tlog.proof", "the lines of a proof are not ASCII") from None
    if not blank or lines.pop(0) != _HEADER:
        raise InputError("tlog.proof", f"expected {_HEADER!r}, lines, a blank line and a checkpoint")
    extra = _extra(lines)
    index = decode_number(lines.pop(0)[len("index ") :]) if lines and lines[0].startswith("index ") else None
    if index is None:
        raise InputError("tlog.proof", "expected a line 'index NUMBER'")
    if len(lines) > MAX_HASHES:
        raise InputError("tlog.proof", f"a proof of {len(lines)} hashes, limit {MAX_HASHES}")
    hashes = []
    for line in lines:
        if (node := decode_hash(line)) is None:
            raise InputError("tlog.proof", f"{line[:60]!r} is not a hash")
        hashes.append(node)
    parse_note(checkpoint)
    return LogProof(index, tuple(hashes), checkpoint, extra)


def _extra(lines: list[str]) -> bytes | None:
    """Take the line of extra data from the front of `lines`, where there is one."""
    if not lines or not lines[0].startswith("extra "):
        return None
    extra = decode64(lines.pop(0)[len("extra ") :])
    if extra is None:
        raise InputError("tlog.proof", "the extra data is not base64")
    return extra


def verify_proof(
    proof: LogProof, leaf: Hash, logs: Iterable[VerifierKey], witnesses: Iterable[VerifierKey] = ()
) -> SignedCheckpoint:
    """Return the checkpoint of one of `logs` that holds `leaf` at ``proof.index``.

    The checkpoint must be signed by a key of `logs` with the name in its text; where several such keys have
    a signature line, the last of them in `logs` is used. Raises `MismatchError`: ``tlog.unsigned`` where none
    signed, ``tlog.signature`` or ``tlog.inclusion``. The caller decides how many `witnesses` must have
    cosigned.
    """
    note = parse_note(proof.checkpoint)
    signers = {(signature.name, signature.key_id) for signature in note.signatures}
    origin = note.text.partition("\n")[0]
    trusted = [key for key in logs if key.name == origin and (key.name, key.key_id) in signers]
    if not trusted:
        names = ", ".join(sorted({signature.name for signature in note.signatures}))
        raise MismatchError(
            "tlog.unsigned",
            f"the checkpoint of {origin} is not signed by a trusted log of that name; signed as {names}",
            hint="add the log's verifier key, as its operator published it, to the trust policy",
        )
    head = open_checkpoint(proof.checkpoint, trusted[-1], witnesses)
    verify_inclusion(leaf, proof.index, head.checkpoint.size, proof.hashes, head.checkpoint.root)
    return head
