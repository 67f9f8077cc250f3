"""Sigstore bundles over plain bytes, as other tools make them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.virtual_sigstore import Sigstore, b64

if TYPE_CHECKING:
    from tests.support import passport_parts as maker
    from tests.support.virtual_sigstore import Json


AT = datetime(2026, 2, 1, 0, 0, 30, tzinfo=UTC)
WHO, WHERE = "a@example.com", "https://accounts.example.com"
INSTANCE = Sigstore.new(AT)
SIGNER = INSTANCE.signer(WHO, WHERE)
DATA = b"What was signed.\n"


def plain(key: maker.Key, *, data: bytes = DATA, **digest: str) -> Json:
    """Return a bundle of a plain signature by a key."""
    signature = (
        key.sign(data)
        if not isinstance(key, ec.EllipticCurvePrivateKey)
        else key.sign(data, ec.ECDSA(hashes.SHA384() if key.curve.name == "secp384r1" else hashes.SHA256()))
    )
    return {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {"publicKey": {"hint": "anything"}, "tlogEntries": []},
        "messageSignature": {"signature": b64(signature), **({"messageDigest": digest} if digest else {})},
    }
