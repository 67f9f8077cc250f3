"""The text of an offline proof that an entry is in a log (C2SP tlog-proof).

It holds the entry's index, the hashes of its inclusion proof and a signed checkpoint. `extra` is not
covered by any signature; certkit puts the entry itself there, so that the leaf hash can be made again
from this one file.

    proof = parse(data)
    head = verify(proof, leaf_hash(proof.extra or b""), trusted_logs)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from certkit.errors import InputError, MismatchError
from certkit.tlog.checkpoint import SignedCheckpoint, open_checkpoint
from certkit.tlog.note import (
    MAX_NOTE,
    VerifierKey,
    decode64,
    decode_hash,
    decode_number,
    encode64,
    parse_note,
)
from certkit.tlog.tree import verify_inclusion

if TYPE_CHECKING:
    from collections.abc import Iterable

    from certkit.tlog.tree import Hash

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


def parse(data: bytes) -> LogProof:
    """Read the text of a proof; raise `InputError` ``tlog.proof``, or ``tlog.note`` for its checkpoint."""
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


def verify(
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
