"""Witnesses of a log: who must have cosigned its checkpoints, and since when they vouch for one.

    quorum = Quorum.of(2, ["witness.example+1f2e3d4c+BC…", …])     # from a trust policy
    head = open_checkpoint(note, log, quorum.keys)
    quorum.is_met(head.cosigned)                                   # whether two of them vouch for it
    quorum.since(head.cosigned)                                    # the time that two of them reached

A cosignature says: at this time, this was the largest tree of the log that I had seen, and it goes on from
all that I had seen before (C2SP tlog-cosignature). A log that shows two people two different trees must find
k witnesses for either, so that with k above half of all no honest one has signed both.
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
    """How many of which witnesses must have cosigned; none where `k` is 0.

    Made by `of`: no two keys are of one name or have the same bytes, so that nobody counts twice.
    """

    k: int
    keys: tuple[VerifierKey, ...]

    @classmethod
    def of(cls, k: int, vkeys: Iterable[str]) -> Quorum:
        """Read the verifier keys of witnesses; raise `InputError` ``tlog.key``.

        A key of another type than a cosignature's is refused, for it could never be counted.
        """
        keys = tuple(VerifierKey.parse(text) for text in vkeys)
        for key in keys:
            if key.type is not KeyType.COSIGNATURE:
                raise InputError(
                    "tlog.key",
                    f"{key.name!r} is the key of a log, not of a witness",
                    hint="a witness's verifier key holds type 4: its base64 begins with B",
                )
        # The message that is cosigned does not name the witness: one key under two names would be one voice.
        for what, seen in (("name", [key.name for key in keys]), ("key", [key.public for key in keys])):
            if len(set(seen)) < len(seen):
                raise InputError("tlog.key", f"two witnesses have the same {what}")
        return cls(k, keys)

    def is_met(self, cosigned: Sequence[Signed]) -> bool:
        """Tell whether enough have cosigned; `cosigned` is as `open_checkpoint` returns it for `keys`."""
        return len(cosigned) >= self.k

    def since(self, cosigned: Sequence[Signed]) -> int | None:
        """Return the latest time (seconds since 1970) that `k` witnesses reached; None without a quorum."""
        times = sorted((one.time for one in cosigned if one.time is not None), reverse=True)
        return times[self.k - 1] if 0 < self.k <= len(times) else None


def counted(cosigned: Iterable[Signed], latest: float) -> list[Signed]:
    """Return the cosignatures that have a time, and none later than `latest` (seconds since 1970)."""
    return [one for one in cosigned if 0 < (one.time or 0) <= latest]


NOBODY: Final = Quorum(0, ())
"""No witness is asked for."""


def with_signatures(note: bytes, lines: Iterable[Signature]) -> bytes:
    """Return a note with further signature lines after its own, each once.

    Raises `InputError` ``tlog.note``.
    """
    found = parse_note(note)
    return write_note(found.text, dict.fromkeys((*found.signatures, *lines)))
