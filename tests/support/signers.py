"""Signers of log notes with fixed keys, and the payload of an envelope that a key signed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit.passport import envelope as dsse
from certkit.passport import keys
from certkit.tlog import note
from certkit.tlog.note import KeyType, Signature, VerifierKey, cosigned_message

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes


ALGORITHMS: Final[tuple[keys.Algorithm, ...]] = get_args(keys.Algorithm)
"""Every kind of key that certkit makes."""


class Signer(note.Signer):
    """A signer who can be a witness too (C2SP tlog-cosignature)."""

    @property
    def witness_vkey(self) -> VerifierKey:
        return VerifierKey(self.name, KeyType.COSIGNATURE, self.key.public_key().public_bytes_raw())

    def cosign(self, text: str, time: int) -> Signature:
        """The cosignature/v1 of a checkpoint's text at `time` (seconds since 1970)."""
        value = time.to_bytes(8) + self.key.sign(cosigned_message(text, time))
        return Signature(self.name, self.witness_vkey.key_id, value)


def signer(name: str, seed: int = 1) -> Signer:
    return Signer(name, Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32))


LOG, OTHER, WITNESS = signer("example.com/log"), signer("example.com/log", 2), signer("witness.example", 3)


def signed_payload(envelope: Any, key: PublicKeyTypes, *, payload_type: str | None = None) -> bytes:
    """Return the payload of a DSSE envelope that `key` signed; raise as `dsse.parse` and `dsse.check` do."""
    parsed = dsse.parse_envelope(envelope, payload_type=payload_type)
    dsse.check(parsed, key)
    return parsed.payload
