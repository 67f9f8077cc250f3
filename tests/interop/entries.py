"""What others saw of a key's signature: log entries and timestamps beside it, under a trusted root.

    witnessed(material, signature, root)        # when trusted authorities and logs saw it, earliest first

Beside a certificate all of this is `sigstore`'s to verify, which does nothing without one. An entry counts
where it is about this very signature and a log of the root, in office at the time, signed the checkpoint that
its proof leads to. One attached thing that does not hold refuses the whole: nobody attaches it by mistake.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives.serialization import load_der_public_key

from certkit.ground import canonical
from certkit.ground.errors import InputError, MismatchError, NegativeError, UsageError
from certkit.passport import envelope as sealed
from certkit.passport import timestamp, trusted_root
from certkit.tlog.checkpoint import parse_checkpoint
from certkit.tlog.note import decode_number, parse_note
from certkit.tlog.tree import Hash, leaf_hash, verify_inclusion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

    from certkit.passport.envelope import VerificationMaterial
    from certkit.tlog.note import UnverifiedNote

_FORM: Final = "passport.form"
_KINDS: Final = ("hashedrekord", "dsse", "intoto")
_LATEST: Final = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp())


def witnessed(material: VerificationMaterial, signature: bytes, root: dict[str, Any]) -> tuple[datetime, ...]:
    """Return when authorities and logs of a checked root saw `signature`, earliest first.

    Raises `NegativeError` ``passport.certificate``, ``passport.other-evidence``, ``tlog.*``, `MismatchError`
    and `InputError` where something that is attached does not hold or has not its form.
    """
    seen = timestamp.seen(material.timestamps, signature, root)
    if material.timestamps and not seen:
        raise NegativeError("passport.certificate", "no authority of the trusted root made the timestamp")
    promised = [_logged(entry, signature, seen, root) for entry in material.tlog_entries]
    return tuple(sorted({*seen, *(time for time in promised if time is not None)}))


def _logged(
    entry: dict[str, Any], signature: bytes, seen: tuple[datetime, ...], root: dict[str, Any]
) -> datetime | None:
    """Return when a log promised to take the entry in, None where it promised nothing."""
    body = sealed.decode(entry["canonicalizedBody"], "canonicalizedBody")
    written = sealed.encode(signature)
    if not {written, sealed.encode(written.encode())} & {*_texts(_read(body, entry["kindVersion"]))}:
        raise NegativeError("passport.other-evidence", "a log entry is about another signature")
    proof = entry["inclusionProof"]
    note = parse_note(proof["checkpoint"]["envelope"].encode())
    head = parse_checkpoint(note.text)
    stated = (_number(proof["treeSize"]), sealed.decode(proof["rootHash"], "rootHash"))
    if stated != (head.size, head.root):
        raise MismatchError("tlog.inclusion", "the proof is for another tree than the checkpoint's")
    hashes = [Hash(sealed.decode(one, "a hash")) for one in proof["hashes"]]
    verify_inclusion(leaf_hash(body), _number(proof["logIndex"]), head.size, hashes, head.root)
    promise, taken, time = entry.get("inclusionPromise"), entry.get("integratedTime"), None
    if promise is not None and taken is not None:
        time = datetime.fromtimestamp(_number(taken, _LATEST), UTC)
    for key in _in_office(root, (*seen, *([] if time is None else [time]))):
        if _signed(note, key):
            if time is not None and promise is not None:
                _check_promise(entry, promise, key)
            return time
    raise NegativeError("tlog.unsigned", "no log of the trusted root, in office then, signed the checkpoint")


def _read(body: bytes, kind: dict[str, str]) -> Any:
    """Return what a log took in, which must be of the kind that the entry states."""
    found = canonical.loads(body)
    stated = {"kind": kind["kind"], "apiVersion": kind["version"]}
    if kind["kind"] not in _KINDS or not isinstance(found, dict) or not stated.items() <= found.items():
        raise InputError(_FORM, f"a log entry that is no {', '.join(_KINDS)} of the version that it states")
    return found.get("spec")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _number(text: str, most: int = canonical.MAX_INTEGER) -> int:
    found = decode_number(text)
    if found is None or found > most:
        raise InputError(_FORM, f"{text[:40]!r} is not a number up to {most:,}")
    return found


def _in_office(root: dict[str, Any], times: tuple[datetime, ...]) -> Iterator[PublicKeyTypes]:
    """Yield the keys of the logs that were in office at all times, or still are where no time is known."""
    for key, window in map(trusted_root.member, root["tlogs"]):
        if all(window.holds(time) for time in times) if times else window.end is None:
            try:
                yield load_der_public_key(key)
            except ValueError as error:
                raise InputError("trust.root", f"a log's key cannot be used: {error}") from None


def _signed(note: UnverifiedNote, key: PublicKeyTypes) -> bool:
    try:
        return any(sealed.is_signature(one.value, note.text.encode(), key) for one in note.signatures)
    except UsageError:  # a key of another type, which may be that of another log
        return False


def _check_promise(entry: dict[str, Any], promise: dict[str, Any], key: PublicKeyTypes) -> None:
    """Raise `NegativeError` unless the log signed that it takes the entry in at that time."""
    said = {
        "body": sealed.encode(sealed.decode(entry["canonicalizedBody"], "canonicalizedBody")),
        "integratedTime": _number(entry["integratedTime"]),
        "logID": sealed.decode(entry["logId"]["keyId"], "keyId").hex(),
        "logIndex": _number(entry["logIndex"]),
    }
    signature = sealed.decode(promise["signedEntryTimestamp"], "signedEntryTimestamp")
    if not sealed.is_signature(signature, canonical.canonical(said), key):
        raise NegativeError("tlog.signature", "the log did not promise to take the entry in at that time")
