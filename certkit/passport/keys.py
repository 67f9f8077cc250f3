"""Signing keys: made, kept in PEM files, read back, and named by their id.

Ed25519 and ECDSA P-256 sign; P-384 is verified only. A private key is PKCS#8, encrypted where a
passphrase is given, in a file of mode 0600 that is never overwritten. A key's id is the SHA-256 of its
public key's SubjectPublicKeyInfo in DER.

    key = generate("ed25519")
    write_private(Path("issuer-key.pem"), key, passphrase=None)
    key_id(key.public_key())              # "sha256:…"

A key found in a passport or a registry is never read here: nothing can become trusted by being sent along.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Final, Literal

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from certkit.ground import canonical, files
from certkit.ground.errors import InputError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.ground.canonical import Digest

PrivateKey = Ed25519PrivateKey | ec.EllipticCurvePrivateKey
PublicKey = Ed25519PublicKey | ec.EllipticCurvePublicKey
Algorithm = Literal["ed25519", "p256"]

MAX_PEM: Final = 16 * 1024
MAX_PASSPHRASE: Final = 1023
"""Bytes that OpenSSL encrypts a private key with, at the most."""

_SIGNING_CURVE: Final = "secp256r1"
_CURVES: Final = {_SIGNING_CURVE: "ECDSA P-256", "secp384r1": "ECDSA P-384"}
_BEGIN: Final = b"-----BEGIN "  # OpenSSL would take the first block of several
_ENCRYPTED: Final = rb"(?m)^(-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED)"
_FIELD: Final = 2**255 - 19
_ORDER_8: Final = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER: Final = {0, 1, _FIELD - 1, _ORDER_8, _FIELD - _ORDER_8, _FIELD, _FIELD + 1}
"""The y of every Ed25519 point whose order divides 8, the two that are not reduced included."""

_FIRST_LINE: Final = "it is the first line of its file, to the line's end"


def generate(algorithm: Algorithm) -> PrivateKey:
    """Return a new private key, from the operating system's randomness."""
    return ec.generate_private_key(ec.SECP256R1()) if algorithm == "p256" else Ed25519PrivateKey.generate()


def key_id(key: PublicKey) -> Digest:
    """Return ``sha256:<hex>`` of the key's SubjectPublicKeyInfo in DER."""
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    return canonical.digest(key.public_bytes(serialization.Encoding.DER, spki))


def hint(key: PublicKey) -> str:
    """Return the key's id as a Sigstore bundle hints at it: base64 of the bare SHA-256."""
    return base64.b64encode(bytes.fromhex(key_id(key).removeprefix("sha256:"))).decode()


def algorithm_name(key: PublicKey) -> str:
    """Return the name of a key's signature algorithm for people."""
    return "Ed25519" if isinstance(key, Ed25519PublicKey) else _CURVES[key.curve.name]


def public_pem(key: PublicKey) -> str:
    """Return the public key in PEM."""
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()


def write_private(path: Path, key: PrivateKey, *, passphrase: bytes | None) -> None:
    """Write a private key as PKCS#8 with mode 0600, encrypted where a passphrase is given.

    Raises:
        UsageError: ``file.exists`` rather than overwrite, and ``key.passphrase`` for one that is empty or
            too long.
    """
    if passphrase is not None and not 0 < len(passphrase) <= MAX_PASSPHRASE:
        message = f"the passphrase is of {len(passphrase):,} bytes, expected 1 to {MAX_PASSPHRASE:,}"
        raise UsageError("key.passphrase", message, hint=_FIRST_LINE)
    protection: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase is not None:
        protection = serialization.BestAvailableEncryption(passphrase)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)
    files.write(path, pem, mode=0o600, overwrite=False)


def is_encrypted(path: Path) -> bool:
    """Tell whether a private key file asks for a passphrase."""
    return re.search(_ENCRYPTED, files.read(path, limit=MAX_PEM)) is not None


def load_private(path: Path, *, passphrase: bytes | None = None) -> PrivateKey:
    """Return the private key in a PEM file.

    Raises:
        InputError: ``file.missing`` or ``key.unreadable``.
        UsageError: ``key.passphrase`` or ``key.unsupported``.
    """
    data, where = files.read(path, limit=MAX_PEM), str(path)
    if data.count(_BEGIN) != 1:
        raise _unreadable(where, "private")
    try:
        key = serialization.load_pem_private_key(data, passphrase)
    except TypeError:
        message = "encrypted, and no passphrase was given" if passphrase is None else "not encrypted"
        advice = "give --passphrase-file FILE" if passphrase is None else "leave the passphrase out"
        raise UsageError("key.passphrase", message, where=where, hint=advice) from None
    except (ValueError, UnsupportedAlgorithm):
        if re.search(_ENCRYPTED, data) is None:
            raise _unreadable(where, "private") from None
        message = "the passphrase is wrong, or the file is damaged"
        raise UsageError("key.passphrase", message, where=where, hint=_FIRST_LINE) from None
    if isinstance(key, Ed25519PrivateKey):
        return key
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == _SIGNING_CURVE:
        return key
    raise _unsupported(where, "Ed25519 and ECDSA P-256 sign")


def load_public(path: Path) -> PublicKey:
    """Return the public key in a PEM file; see `parse_public`."""
    return parse_public(files.read(path, limit=MAX_PEM), where=str(path))


def parse_public(pem: bytes, *, where: str) -> PublicKey:
    """Return the public key in PEM; `where` names the source in errors.

    Raises:
        InputError: ``key.unreadable``.
        UsageError: ``key.unsupported``.
    """
    if pem.count(_BEGIN) != 1:
        raise _unreadable(where, "public")
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise _unreadable(where, "public") from None
    if isinstance(key, Ed25519PublicKey):
        if int.from_bytes(key.public_bytes_raw(), "little") % 2**255 in _SMALL_ORDER:
            message = "a key of small order, for which anybody can sign"
            raise UsageError("key.unsupported", message, where=where)
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
        return key
    raise _unsupported(where, "Ed25519, ECDSA P-256 and P-384 verify")


def _unreadable(where: str, kind: str) -> InputError:
    hints = {
        "private": "'certkit keys generate' writes one",
        "public": "'openssl pkey -in FILE -pubout' prints it, 'openssl x509 -in FILE -noout -pubkey' that of"
        " a certificate; a private key is given to nobody",
    }
    return InputError("key.unreadable", f"not a single {kind} key in PEM", where=where, hint=hints[kind])


def _unsupported(where: str, supported: str) -> UsageError:
    hint = f"{supported}; 'certkit keys generate' makes an Ed25519 key"
    return UsageError("key.unsupported", "a key of an unsupported type", where=where, hint=hint)
