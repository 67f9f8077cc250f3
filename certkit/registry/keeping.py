"""What the keeper of a log takes in from witnesses: their cosignatures.

    with Registry.open(folder, heads=heads) as registry:
        head = gather(registry, [path.read_bytes()], witnesses=quorum.keys, at=now)

A witness returns the checkpoint with its line below, or (C2SP tlog-witness) its lines alone. A line is
stored if a known key made it for the current checkpoint at a time not in the future; lines of other keys
are ignored, as the specification demands. Of each key the latest is kept. Whoever reads the checkpoint
decides by a policy of their own which of the lines count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.ground.errors import MismatchError
from certkit.passport.checks import CLOCK_SKEW
from certkit.tlog.checkpoint import open_checkpoint, parse_checkpoint
from certkit.tlog.note import open_note, parse_lines, parse_note, write_note

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from certkit.registry.registry import Registry
    from certkit.tlog.checkpoint import Checkpoint, SignedCheckpoint
    from certkit.tlog.note import Signature, Signed, VerifierKey

_LINE = "\N{EM DASH} ".encode()


def gather(
    registry: Registry, returned: Iterable[bytes], *, witnesses: Sequence[VerifierKey], at: datetime
) -> SignedCheckpoint:
    """Store the cosignatures in what witnesses returned, all of them or none; return the checkpoint with all.

    Raises `InputError` ``tlog.note`` or ``tlog.checkpoint`` for their form; `MismatchError` ``tlog.origin``
    or ``registry.cosignature`` where one is about another log or state, or of no possible time,
    ``tlog.unsigned`` where nobody known made one, ``tlog.signature`` where one is false; and as
    `Registry.gathering` does.
    """
    with registry.gathering() as log:
        head, vkey = log.unverified_head(), registry.vkey
        known = {(key.name, key.key_id): key for key in witnesses if key.public != vkey.public}
        before = open_checkpoint(log.cosigned(), vkey, witnesses).cosigned
        newest = {signed.key: signed.time or 0 for signed in before}
        for data in returned:
            lines = _lines(data, head)
            of_known = [(known[line[:2]], line) for line in lines if line[:2] in known]
            if not of_known:
                names = ", ".join(sorted({line.name for line in lines}))
                raise MismatchError(
                    "tlog.unsigned",
                    f"no cosignature by a known witness; signed as {names}",
                    hint="name the witness's key in the trust policy: certkit trust add --witness VKEY",
                )
            for key, line in of_known:
                (signed,) = open_note(write_note(head.text, [line]), [key]).signed
                time = _possible(signed, at)
                if time > newest.get(key, 0):
                    newest[key] = time
                    log.cosign(head.size, key, line.line)
        return open_checkpoint(log.cosigned(), vkey, witnesses)


def _lines(data: bytes, head: Checkpoint) -> tuple[Signature, ...]:
    """Return the lines that a witness made; raise `MismatchError` unless they are under the log's head."""
    if data.startswith(_LINE):
        return parse_lines(data)
    note = parse_note(data)
    cosigned = parse_checkpoint(note.text)
    if cosigned.origin != head.origin:
        raise MismatchError("tlog.origin", f"expected origin {head.origin!r}, found {cosigned.origin!r}")
    if cosigned != head:
        raise MismatchError(
            "registry.cosignature",
            f"cosigned over {cosigned.size:,} entries, which is not the log's checkpoint over {head.size:,}",
            hint="hand the witness the checkpoint as it stands: certkit registry checkpoint. Two checkpoints"
            " of one size under the log's key prove that there are two logs: keep this file",
        )
    return note.signatures


def _possible(signed: Signed, at: datetime) -> int:
    """Return the time of a cosignature; raise `MismatchError` for none, or one that is to come."""
    time = signed.time or 0
    if not 0 < time <= (at + CLOCK_SKEW).timestamp():
        why = "says no time" if time == 0 else "is of a time to come"
        raise MismatchError("registry.cosignature", f"the cosignature of {signed.key.name} {why}")
    return time
