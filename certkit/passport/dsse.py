"""DSSE: one signature over typed bytes, in the protocol of secure-systems-lab/dsse, version 1.

What is signed is the pre-authentication encoding of the payload type and the exact payload bytes; no
byte is normalised on either side. An envelope here has exactly one signature. It is written without a
``keyid``, which is unauthenticated, and one that is met is ignored.

    envelope = sign("application/example", b"bytes", private_key)
    parsed = parse(envelope)
    check(parsed, private_key.public_key())               # or an error
    parsed.payload                                        # b"bytes"

The algorithm follows from the type of the key that the caller trusts, never from the envelope: Ed25519;
ECDSA P-256 with SHA-256; ECDSA P-384 with SHA-384 (verified, never made). Which key to trust, and what a
payload type means, is the caller's to know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Struct

from certkit.ground.errors import InputError, NegativeError, UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes

_HASHES: Final = {"secp256r1": hashes.SHA256, "secp384r1": hashes.SHA384}
_SIGNING_CURVE: Final = "secp256r1"
_STANDARD: Final = str.maketrans("-_+/", "+/  ")
"""From the URL-safe alphabet; what belongs to the other one becomes what belongs to none."""


class Envelope(Struct, frozen=True, kw_only=True):
    """An envelope taken apart. Nothing in it is verified."""

    payload_type: str
    payload: bytes
    signature: bytes


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the pre-authentication encoding (PAE) of a payload: the bytes that are signed."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(payload_type: str, payload: bytes, private_key: PrivateKeyTypes) -> dict[str, Any]:
    """Return the envelope of `payload` as JSON values, signed with an Ed25519 or P-256 key.

    Raises `UsageError` ``key.unsupported`` for any other key.
    """
    signature = sign_bytes(pae(payload_type, payload), private_key)
    return {
        "payload": encode(payload),
        "payloadType": payload_type,
        "signatures": [{"sig": encode(signature)}],
    }


def sign_bytes(message: bytes, private_key: PrivateKeyTypes) -> bytes:
    """Return the signature of `message`: 64 bytes for Ed25519, DER for ECDSA."""
    if isinstance(private_key, Ed25519PrivateKey):
        return private_key.sign(message)
    if isinstance(private_key, ec.EllipticCurvePrivateKey) and private_key.curve.name == _SIGNING_CURVE:
        return private_key.sign(message, ec.ECDSA(_HASHES[_SIGNING_CURVE]()))
    raise UsageError("key.unsupported", "only Ed25519 and ECDSA P-256 keys sign")


def check(envelope: Envelope, public_key: PublicKeyTypes) -> None:
    """Raise `NegativeError` ``dsse.signature`` unless the signature is `public_key`'s."""
    if not is_signature(envelope.signature, pae(envelope.payload_type, envelope.payload), public_key):
        raise NegativeError("dsse.signature", "the signature does not verify")


def is_signature(signature: bytes, message: bytes, public_key: PublicKeyTypes) -> bool:
    """Tell whether `signature` is `public_key`'s over `message`, by the algorithm of the key's type."""
    try:
        if isinstance(public_key, Ed25519PublicKey):
            public_key.verify(signature, message)
        elif isinstance(public_key, ec.EllipticCurvePublicKey) and public_key.curve.name in _HASHES:
            public_key.verify(signature, message, ec.ECDSA(_HASHES[public_key.curve.name]()))
        else:
            raise UsageError("key.unsupported", "only Ed25519, ECDSA P-256 and ECDSA P-384 keys verify")
    except InvalidSignature:
        return False
    return True


def parse(envelope: Any, *, payload_type: str | None = None) -> Envelope:
    """Return an envelope taken apart, its form checked and nothing else.

    Raises `InputError` ``dsse.form``, ``dsse.signatures``, ``dsse.payload-type`` or ``dsse.base64``.
    """
    if not isinstance(envelope, dict) or envelope.keys() != {"payload", "payloadType", "signatures"}:
        raise InputError("dsse.form", "expected an object with payload, payloadType and signatures")
    kind, signatures = envelope["payloadType"], envelope["signatures"]
    if not isinstance(kind, str):
        raise InputError("dsse.form", "payloadType is not text")
    if payload_type is not None and kind != payload_type:
        raise InputError("dsse.payload-type", f"expected payloadType {payload_type!r}, found {kind[:80]!r}")
    if not isinstance(signatures, list) or len(signatures) != 1:
        count = len(signatures) if isinstance(signatures, list) else "no list"
        raise InputError("dsse.signatures", f"expected exactly one signature, found {count}")
    signature = signatures[0]
    if not isinstance(signature, dict) or "sig" not in signature or signature.keys() - {"sig", "keyid"}:
        raise InputError("dsse.form", "expected a signature with sig and nothing but an optional keyid")
    return Envelope(
        payload_type=kind,
        payload=decode(envelope["payload"], "payload"),
        signature=decode(signature["sig"], "sig"),
    )


def encode(data: bytes) -> str:
    """Return `data` in standard base64 with padding."""
    text: str = msgspec.to_builtins(data)  # as fast as no other: it must not cost more than the signature
    return text


def decode(text: Any, what: str) -> bytes:
    """Return the bytes of canonical base64, in the standard or the URL-safe alphabet, with padding.

    The one text that encodes the bytes is accepted and no other: no blank, no missing or surplus
    padding, no stray bits, no mixture of alphabets. Raises `InputError` ``dsse.base64`` naming `what`.
    """
    if isinstance(text, str) and text.isascii():
        urlsafe = "-" in text or "_" in text
        standard = text.translate(_STANDARD) if urlsafe else text
        try:
            # Several times as fast as the standard library, which would take longer than the signature.
            data = msgspec.convert(standard, bytes)
        except msgspec.ValidationError:
            pass
        else:
            if encode(data) == standard:  # stray bits in the last letter are passed over above
                return data
    raise InputError("dsse.base64", f"{what} is not canonical base64")
