"""Cosignatures: what witnesses signed under a log's checkpoint, taken in by whoever keeps the log.

    with Registry.open(folder, heads=heads) as registry:
        found = gather(registry, [path.read_bytes()], witnesses=quorum.keys, at=now)
        [(one.key.name, one.time) for one in found.added]

A witness returns the checkpoint with its line below, or (C2SP tlog-witness) its lines alone. A line is taken
in where a known key made it, for the checkpoint as it stands, at a time that has been; lines of other keys
are passed over, as the specification demands. Of one key the latest is kept. Whoever reads the checkpoint
decides by a policy of their own which of the lines count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from certkit.errors import MismatchError
from certkit.passport.checks import CLOCK_SKEW
from certkit.tlog.checkpoint import open_checkpoint, parse_checkpoint
from certkit.tlog.note import open_note, parse_lines, parse_note, write_note

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from certkit.registry.registry import Registry
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.note import Signature, Signed, VerifierKey

_LINE = "\N{EM DASH} ".encode()


class Gathered(Struct, frozen=True, kw_only=True):
    """What was taken in, what known witnesses say of the checkpoint by now, and whom nobody knew."""

    head: Checkpoint
    added: tuple[Signed, ...]
    cosigned: tuple[Signed, ...]
    ignored: tuple[str, ...]


def gather(
    registry: Registry, returned: Iterable[bytes], *, witnesses: Sequence[VerifierKey], at: datetime
) -> Gathered:
    """Store the cosignatures in what witnesses returned, all of them or none.

    Raises `InputError` ``tlog.note`` or ``tlog.checkpoint`` for their form; `MismatchError` ``tlog.origin``
    or ``registry.cosignature`` where one is about another log or state, or of no possible time,
    ``tlog.unsigned`` where nobody known made one, ``tlog.signature`` where one is false; and as
    `Registry.gathering` does.
    """
    with registry.gathering() as log:
        head = log.unverified_head()
        own = registry.vkey
        known = {(key.name, key.key_id): key for key in witnesses if key.public != own.public}
        before = {one.key: one.time or 0 for one in _cosigned(log.cosigned(), own, witnesses)}
        newest: dict[VerifierKey, tuple[int, Signature]] = {}
        ignored: dict[str, None] = {}
        for data in returned:
            made, others = _verified(data, head, known)
            if not made:
                raise _unknown(others)
            for time, key, line in made:
                _refuse_time(key, time, at)
                newest[key] = max(newest.get(key, (0, line)), (time, line), key=lambda one: one[0])
            ignored |= dict.fromkeys(name for name in others if name != own.name)
        for key, (time, line) in newest.items():
            if time > before.get(key, 0):
                log.cosign(head.size, key, line.line)
        after = _cosigned(log.cosigned(), own, witnesses)
    added = tuple(one for one in after if one.time != before.get(one.key))
    return Gathered(head=head, added=added, cosigned=after, ignored=tuple(ignored))


def _cosigned(note: bytes, own: VerifierKey, witnesses: Sequence[VerifierKey]) -> tuple[Signed, ...]:
    return open_checkpoint(note, own, witnesses).cosigned


def _verified(
    data: bytes, head: Checkpoint, known: dict[tuple[str, bytes], VerifierKey]
) -> tuple[list[tuple[int, VerifierKey, Signature]], list[str]]:
    """Return the time, key and line of each cosignature of a known key, and the names of the others."""
    if data.startswith(_LINE):
        lines = parse_lines(data)
    else:
        found = parse_note(data)
        _refuse_other(parse_checkpoint(found.text), head)
        lines = found.signatures
    made, others = [], []
    for line in lines:
        if key := known.get((line.name, line.key_id)):
            (signed,) = open_note(write_note(head.text, [line]), [key]).signed
            made.append((signed.time or 0, key, line))
        else:
            others.append(line.name)
    return made, others


def _refuse_other(found: Checkpoint, head: Checkpoint) -> None:
    """Raise `MismatchError` unless a checkpoint is the log's own, to the letter."""
    if found.origin != head.origin:
        raise MismatchError("tlog.origin", f"expected origin {head.origin!r}, found {found.origin!r}")
    if found.size != head.size:
        raise MismatchError(
            "registry.cosignature",
            f"cosigned over {found.size:,} entries, and the log has {head.size:,}",
            hint="hand the witness the checkpoint as it stands: certkit registry checkpoint",
        )
    if found != head:
        raise MismatchError(
            "registry.cosignature",
            f"cosigned another log of {head.size:,} entries",
            hint="keep this file: under the signature of the log's key it proves that there are two logs",
        )


def _refuse_time(key: VerifierKey, time: int, at: datetime) -> None:
    if not 0 < time <= (at + CLOCK_SKEW).timestamp():
        what = "says no time" if time == 0 else "is of a time to come"
        raise MismatchError("registry.cosignature", f"the cosignature of {key.name} {what}")


def _unknown(names: Iterable[str]) -> MismatchError:
    return MismatchError(
        "tlog.unsigned",
        f"no cosignature by a known witness; signed as {', '.join(sorted(set(names)))}",
        hint="name the witness's key: --witness VKEY, or 'witnesses' in the trust policy",
    )
