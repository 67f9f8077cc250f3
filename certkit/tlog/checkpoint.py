"""Checkpoints: a log's size and root, signed (C2SP tlog-checkpoint), and who cosigned them.

head = open_checkpoint(data, log, witnesses)
head.checkpoint.size, head.checkpoint.root
[(one.key.name, one.time) for one in head.cosigned]
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
    """The state of a log: who it is, how many entries it has, and the root over them.

    `extensions` are further lines that a log may add; they are covered by its signature, mean nothing
    here, and certkit writes none.
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
        raise InputError("tlog.checkpoint", "the root of an empty log is not that of no entries")
    return Checkpoint(origin, size, root, tuple(extensions))


def sign_checkpoint(checkpoint: Checkpoint, *signers: Signer) -> bytes:
    """Return the signed note of a checkpoint."""
    text = checkpoint.text
    signatures = [signer.sign(text) for signer in signers]
    is_own = checkpoint.origin == signers[0].name and not checkpoint.extensions
    return own_note(text, signatures) if is_own else write_note(text, signatures)


def open_checkpoint(data: bytes, log: VerifierKey, witnesses: Iterable[VerifierKey] = ()) -> SignedCheckpoint:
    """Return the checkpoint that `log` signed, and which of `witnesses` cosigned it.

    The origin must be the log key's name, so that no log can speak for another; nor is it a witness of
    itself, whatever the policy says. Raises `InputError` ``tlog.note`` or ``tlog.checkpoint`` for the form,
    `MismatchError` ``tlog.unsigned``, ``tlog.signature`` or ``tlog.origin``.
    """
    cosigners = [key for key in witnesses if key.type is KeyType.COSIGNATURE and key.public != log.public]
    opened = open_note(data, [log, *cosigners])
    if all(one.key != log for one in opened.signed):
        raise MismatchError("tlog.unsigned", f"not signed by the log {log.name}")
    checkpoint = parse_checkpoint(opened.text)
    if checkpoint.origin != log.name:
        raise MismatchError("tlog.origin", f"expected origin {log.name!r}, found {checkpoint.origin!r}")
    return SignedCheckpoint(checkpoint, tuple(one for one in opened.signed if one.key != log))
