"""Signers of log notes with fixed keys, and the payload of an envelope that a key signed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit.passport import dsse
from certkit.tlog.note import Signer

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes


def signer(name: str, seed: int = 1) -> Signer:
    return Signer(name, Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32))


LOG, OTHER, WITNESS = signer("example.com/log"), signer("example.com/log", 2), signer("witness.example", 3)


def signed_payload(envelope: Any, key: PublicKeyTypes, *, payload_type: str | None = None) -> bytes:
    """Return the payload of a DSSE envelope that `key` signed; raise as `dsse.parse` and `dsse.check` do."""
    parsed = dsse.parse(envelope, payload_type=payload_type)
    dsse.check(parsed, key)
    return parsed.payload
