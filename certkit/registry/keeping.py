"""What only the keeper of a log does: take in cosignatures of witnesses, and hand the log to another key.

    with Registry.open(folder, heads=heads) as registry:
        gathered = gather(registry, [path.read_bytes()], witnesses=quorum.keys, at=now)
        hand_over(registry, folder, new=None, old=load, at=now, trust=None)

A witness returns the checkpoint with its line below, or (C2SP tlog-witness) its lines alone. A line is taken
in where a known key made it, for the checkpoint as it stands, at a time that has been; lines of other keys
are passed over, as the specification demands. Of each key the latest is kept. Whoever reads the checkpoint
decides by a policy of their own which of the lines count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Struct

from certkit import files
from certkit.errors import MismatchError
from certkit.passport import keys
from certkit.passport.checks import CLOCK_SKEW
from certkit.registry.log import KEY_FILE, NEXT_KEY, load_log_key
from certkit.tlog.checkpoint import open_checkpoint, parse_checkpoint
from certkit.tlog.note import open_note, parse_lines, parse_note, write_note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime
    from pathlib import Path

    from certkit.passport.trust import Trust
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
        head, vkey = log.unverified_head(), registry.vkey
        known = {(key.name, key.key_id): key for key in witnesses if key.public != vkey.public}
        before = open_checkpoint(log.cosigned(), vkey, witnesses).cosigned
        newest = {signed.key: signed.time or 0 for signed in before}
        ignored: dict[str, None] = {}
        for data in returned:
            lines = _lines(data, head)
            others = [line.name for line in lines if (line.name, line.key_id) not in known]
            if len(others) == len(lines):
                raise _unknown(others)
            for line in lines:
                if key := known.get((line.name, line.key_id)):
                    (signed,) = open_note(write_note(head.text, [line]), [key]).signed
                    time = _possible(signed, at)
                    if time > newest.get(key, 0):
                        newest[key] = time
                        log.cosign(head.size, key, line.line)
            ignored |= dict.fromkeys(name for name in others if name != vkey.name)
        after = open_checkpoint(log.cosigned(), vkey, witnesses).cosigned
    added = tuple(signed for signed in after if signed not in before)
    return Gathered(head=head, added=added, cosigned=after, ignored=tuple(ignored))


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


def _unknown(names: Iterable[str]) -> MismatchError:
    return MismatchError(
        "tlog.unsigned",
        f"no cosignature by a known witness; signed as {', '.join(sorted(set(names)))}",
        hint="name the witness's key: --witness VKEY, or 'witnesses' in the trust policy",
    )


def hand_over(
    registry: Registry,
    folder: Path,
    *,
    new: Ed25519PrivateKey | None,
    old: Callable[[], Ed25519PrivateKey],
    at: datetime,
    trust: Trust | None,
) -> VerifierKey:
    """Hand the log over to another key, or finish what was interrupted; return the new verifier key.

    Without a `new` key one is made, on the disk before it signs anything, and then takes the place of the
    key in the registry's folder. `old` is asked only where the old key still has to sign. Raises as
    `Registry.rotate` does; a key that was made stays then for the next time.
    """
    kept = folder / NEXT_KEY
    if new is None and not kept.exists():
        keys.write_private(kept, Ed25519PrivateKey.generate(), passphrase=None)
    coming = new or load_log_key(kept)
    if registry.vkey.public != coming.public_key().public_bytes_raw():
        registry.rotate(old=old(), new=coming, at=at, trust=trust)
    if new is None:
        files.move(kept, folder / KEY_FILE)
    return registry.vkey
