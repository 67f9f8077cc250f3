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
from typing import TYPE_CHECKING, Final, Literal, get_args

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from certkit import canonical, files
from certkit.errors import InputError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.canonical import Digest

PrivateKey = Ed25519PrivateKey | ec.EllipticCurvePrivateKey
PublicKey = Ed25519PublicKey | ec.EllipticCurvePublicKey
Algorithm = Literal["ed25519", "p256"]

ALGORITHMS: Final[tuple[Algorithm, ...]] = get_args(Algorithm)
MAX_PEM: Final = 16 * 1024

_CURVES: Final = {"secp256r1": "ECDSA P-256", "secp384r1": "ECDSA P-384"}
_PEM: Final = b"-----BEGIN "


def generate(algorithm: Algorithm) -> PrivateKey:
    """Return a new private key, from the operating system's randomness."""
    return ec.generate_private_key(ec.SECP256R1()) if algorithm == "p256" else Ed25519PrivateKey.generate()


def key_id(key: PublicKey) -> Digest:
    """Return ``sha256:<hex>`` of the key's SubjectPublicKeyInfo in DER."""
    return canonical.digest(_spki(key))


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

    Raises `UsageError` ``file.exists`` rather than overwrite, and ``key.passphrase`` for an empty one.
    """
    if passphrase is not None and not passphrase:
        raise UsageError("key.passphrase", "the passphrase is empty")
    protection: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase is not None:
        protection = serialization.BestAvailableEncryption(passphrase)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)
    files.write(path, pem, mode=0o600, overwrite=False)


def is_encrypted(path: Path) -> bool:
    """Tell whether a private key file asks for a passphrase."""
    return b"-----BEGIN ENCRYPTED PRIVATE KEY-----" in _read(path)


def is_private(path: Path) -> bool:
    """Tell whether a key file says that it holds a private key."""
    return b"PRIVATE KEY-----" in _read(path)


def load_private(path: Path, *, passphrase: bytes | None = None) -> PrivateKey:
    """Return the private key in a PEM file.

    Raises `InputError` ``file.missing`` or ``key.unreadable``, `UsageError` ``key.passphrase`` or
    ``key.unsupported``.
    """
    data, where = _read(path), str(path)
    if b"PUBLIC KEY-----" in data:
        raise UsageError(
            "key.unsupported",
            "holds a public key",
            where=where,
            hint="signing takes the private key that 'certkit keys generate' wrote",
        )
    try:
        key = serialization.load_pem_private_key(data, passphrase)
    except TypeError:
        message = "encrypted, and no passphrase was given" if passphrase is None else "not encrypted"
        advice = "give --passphrase-file FILE" if passphrase is None else "leave the passphrase out"
        raise UsageError("key.passphrase", message, where=where, hint=advice) from None
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _unreadable(error, where, encrypted=passphrase is not None) from None
    if isinstance(key, Ed25519PrivateKey):
        return key
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == "secp256r1":
        return key
    raise _unsupported(type(key).__name__.removesuffix("PrivateKey"), where, "Ed25519 and ECDSA P-256 sign")


def load_public(path: Path) -> PublicKey:
    """Return the public key in a PEM file; see `parse_public`."""
    return parse_public(_read(path), where=str(path))


def parse_public(pem: bytes, *, where: str) -> PublicKey:
    """Return the public key in PEM; `where` names the source in errors.

    Raises `InputError` ``key.unreadable``, `UsageError` ``key.unsupported``.
    """
    if b"PRIVATE KEY-----" in pem:
        raise UsageError(
            "key.unsupported",
            "holds a private key",
            where=where,
            hint="'certkit keys public KEY' prints the public one; a private key is given to nobody",
        )
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _unreadable(error, where, encrypted=False) from None
    if isinstance(key, Ed25519PublicKey):
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
        return key
    raise _unsupported(
        type(key).__name__.removesuffix("PublicKey"), where, "Ed25519, ECDSA P-256 and P-384 verify"
    )


def _spki(key: PublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _read(path: Path) -> bytes:
    return files.read(path, limit=MAX_PEM)


def _unreadable(error: Exception, where: str, *, encrypted: bool) -> InputError | UsageError:
    if encrypted and "password" in str(error).lower():
        return UsageError(
            "key.passphrase", "the passphrase is wrong", where=where, hint="it is taken up to the line's end"
        )
    return InputError(
        "key.unreadable",
        "not a key in PEM",
        where=where,
        hint=f"expected a file that begins with {_PEM.decode()}… ; 'certkit keys generate' writes one",
    )


def _unsupported(found: str, where: str, supported: str) -> UsageError:
    name = "another elliptic curve" if found in {"EC", "EllipticCurve"} else found
    return UsageError(
        "key.unsupported",
        f"a key of an unsupported type ({name})",
        where=where,
        hint=f"{supported}; 'certkit keys generate' makes an Ed25519 key",
    )
