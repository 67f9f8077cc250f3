"""Checkpoints: the signed size and root of a log (C2SP tlog-checkpoint), and the witnesses that cosigned it.

    quorum = Quorum.of(2, ["witness.example+1f2e3d4c+BC…", …])     # from a trust policy
    head = open_checkpoint(data, log, quorum.keys)
    head.checkpoint.size, head.checkpoint.root
    quorum.is_met(head.cosigned)                                   # whether two of them cosigned
    quorum.since(head.cosigned)                                    # the latest time by which two of them had

With a cosignature a witness states: at this time, this was the largest tree of the log that I had seen, and
it extends all that I had seen before (C2SP tlog-cosignature). A log that shows two people different trees
needs k cosignatures for each; where k is more than half, some witness has signed both and is not honest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.errors import InputError, MismatchError
from certkit.tlog.note import (
    KeyType,
    Signature,
    Signed,
    Signer,
    VerifierKey,
    decode_hash,
    decode_number,
    encode64,
    open_note,
    own_note,
    parse_note,
    write_note,
)
from certkit.tlog.tree import EMPTY_ROOT, Hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    return own_note(checkpoint.text, [signer.sign(checkpoint.text) for signer in signers])


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

    Raises `InputError` ``tlog.note``.
    """
    parsed = parse_note(note)
    return write_note(parsed.text, dict.fromkeys((*parsed.signatures, *lines)))
