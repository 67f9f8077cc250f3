"""JSON Web Signatures (RFC 7515): Ed25519 as ``EdDSA`` (RFC 8037), ECDSA P-256 as ``ES256`` (RFC 7518).

    jws = sign({"typ": "JOSE", "kid": "…"}, b"payload", key)
    jws.compact, jws.protected, jws.signature

The algorithm follows from the key's type. Nothing is verified here, and no key is written into a header.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from msgspec import Struct

from certkit import canonical
from certkit.errors import UsageError
from certkit.passport import dsse

if TYPE_CHECKING:
    from certkit.passport.keys import PrivateKey, PublicKey


class Signed(Struct, frozen=True, kw_only=True):
    """The three parts of a signature, each in base64url without padding."""

    protected: str
    payload: str
    signature: str

    @property
    def compact(self) -> str:
        """The compact serialization."""
        return f"{self.protected}.{self.payload}.{self.signature}"


def sign(header: dict[str, Any], payload: bytes, key: PrivateKey) -> Signed:
    """Return the signature of `payload`; ``alg`` is added to the header, which is written canonically."""
    public = key.public_key()
    edwards = isinstance(public, Ed25519PublicKey)
    protected = _encode(canonical.canonical({"alg": "EdDSA" if edwards else "ES256", **header}))
    body = _encode(payload)
    signature = dsse.sign_bytes(f"{protected}.{body}".encode("ascii"), key)
    if not edwards:
        r, s = decode_dss_signature(signature)  # JWS wants the two numbers, 32 bytes each (RFC 7518, 3.4)
        signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    return Signed(protected=protected, payload=body, signature=_encode(signature))


def thumbprint(key: PublicKey) -> str:
    """Return the URI of a key's JWK thumbprint (RFC 7638, RFC 9278), which names it without holding it."""
    raw = canonical.canonical(jwk(key))
    return f"urn:ietf:params:oauth:jwk-thumbprint:sha-256:{_encode(hashlib.sha256(raw).digest())}"


def jwk(key: PublicKey) -> dict[str, str]:
    """Return the members of a public key's JWK that its thumbprint is taken over.

    Raises `UsageError` ``key.unsupported`` for a key that signs nothing here.
    """
    if isinstance(key, Ed25519PublicKey):
        raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return {"crv": "Ed25519", "kty": "OKP", "x": _encode(raw)}
    if key.curve.name != "secp256r1":
        raise UsageError("key.unsupported", "only Ed25519 and ECDSA P-256 keys sign")
    point = key.public_numbers()
    x, y = (_encode(number.to_bytes(32, "big")) for number in (point.x, point.y))
    return {"crv": "P-256", "kty": "EC", "x": x, "y": y}


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
