"""Witnesses of a log: how many must have cosigned a checkpoint, and at what time they did.

    quorum = Quorum.of(2, ["witness.example+1f2e3d4c+BC…", …])     # from a trust policy
    head = open_checkpoint(note, log, quorum.keys)
    quorum.is_met(head.cosigned)                                   # whether two of them cosigned
    quorum.since(head.cosigned)                                    # the latest time by which two of them had

With a cosignature a witness states: at this time, this was the largest tree of the log that I had seen, and
it extends all that I had seen before (C2SP tlog-cosignature). A log that shows two people different trees
needs k cosignatures for each; where k is more than half, some witness has signed both and is not honest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from certkit.errors import InputError
from certkit.tlog.note import KeyType, VerifierKey, parse_note, write_note

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from certkit.tlog.note import Signature, Signed


@dataclass(frozen=True, slots=True)
class Quorum:
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
