"""Checkpoints: the signed size and root of a log (C2SP tlog-checkpoint), with witnesses' cosignatures.

head = open_checkpoint(data, log, witnesses)
head.checkpoint.size, head.checkpoint.root
[(signed.key.name, signed.time) for signed in head.cosigned]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.errors import InputError, MismatchError
from certkit.tlog.hashing import EMPTY_ROOT, Hash
from certkit.tlog.note import KeyType, Signed, Signer, VerifierKey, open_note, own_note, write_note
from certkit.tlog.text import decode_hash, decode_number, encode64

if TYPE_CHECKING:
    from collections.abc import Iterable

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


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint that its log signed, with the trusted witnesses that cosigned it."""

    checkpoint: Checkpoint
    cosigned: tuple[Signed, ...]


def parse_checkpoint(text: str) -> Checkpoint:
    """Read the text of a note as a checkpoint; raise `InputError` ``tlog.checkpoint``."""
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
    text = checkpoint.text
    signatures = [signer.sign(text) for signer in signers]
    is_own = checkpoint.origin == signers[0].name and not checkpoint.extensions
    return own_note(text, signatures) if is_own else write_note(text, signatures)


def open_checkpoint(data: bytes, log: VerifierKey, witnesses: Iterable[VerifierKey] = ()) -> SignedCheckpoint:
    """Return the checkpoint that `log` signed, and which of `witnesses` cosigned it.

    The origin must be the name of the log's key, so that no log can sign for another. The log's key does not
    count as a witness. Raises `InputError` ``tlog.note`` or ``tlog.checkpoint`` for the form,
    `MismatchError` ``tlog.unsigned``, ``tlog.signature`` or ``tlog.origin``.
    """
    cosigners = [key for key in witnesses if key.type is KeyType.COSIGNATURE and key.public != log.public]
    opened = open_note(data, [log, *cosigners])
    if all(signed.key != log for signed in opened.signed):
        raise MismatchError("tlog.unsigned", f"not signed by the log {log.name}")
    checkpoint = parse_checkpoint(opened.text)
    if checkpoint.origin != log.name:
        raise MismatchError("tlog.origin", f"expected origin {log.name!r}, found {checkpoint.origin!r}")
    return SignedCheckpoint(checkpoint, tuple(signed for signed in opened.signed if signed.key != log))
