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
MAX_PASSPHRASE: Final = 1023
"""Bytes that OpenSSL encrypts a private key with, at the most."""


_SIGNING_CURVE: Final = "secp256r1"
_CURVES: Final = {_SIGNING_CURVE: "ECDSA P-256", "secp384r1": "ECDSA P-384"}
_NIST: Final = {"secp521r1": "P-521", "secp224r1": "P-224"}
_PEM: Final = "-----BEGIN "
_BLOCK: Final = rb"(?m)^-----BEGIN ([A-Z0-9 ]{1,40})-----"
_ENCRYPTED: Final = rb"(?m)^(-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED)"
_FIELD: Final = 2**255 - 19
_ORDER_8: Final = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER: Final = {0, 1, _FIELD - 1, _ORDER_8, _FIELD - _ORDER_8, _FIELD, _FIELD + 1}
"""The y of every Ed25519 point whose order divides 8, the two that are not reduced included."""

_SSH: Final = (b"ssh-", b"ecdsa-sha2-", b"sk-")


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

    Raises `UsageError` ``file.exists`` rather than overwrite, and ``key.passphrase`` for one that
    is empty or too long.
    """
    if passphrase is not None and not passphrase:
        raise UsageError("key.passphrase", "the passphrase is empty")
    if passphrase is not None and len(passphrase) > MAX_PASSPHRASE:
        raise UsageError(
            "key.passphrase",
            f"the passphrase is of {len(passphrase):,} bytes, expected {MAX_PASSPHRASE:,} at most",
            hint="it is the first line of its file, to the line's end",
        )
    protection: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase is not None:
        protection = serialization.BestAvailableEncryption(passphrase)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)
    files.write(path, pem, mode=0o600, overwrite=False)


def is_encrypted(path: Path) -> bool:
    """Tell whether a private key file asks for a passphrase."""
    return re.search(_ENCRYPTED, _read(path)) is not None


def is_private(path: Path) -> bool:
    """Tell whether a key file says that it holds a private key."""
    return b"PRIVATE KEY-----" in _read(path)


def load_private(path: Path, *, passphrase: bytes | None = None) -> PrivateKey:
    """Return the private key in a PEM file.

    Raises `InputError` ``file.missing`` or ``key.unreadable``, `UsageError` ``key.passphrase`` or
    ``key.unsupported``.
    """
    data, where = _read(path), str(path)
    _check_block(data, where, private=True)
    try:
        key = serialization.load_pem_private_key(data, passphrase)
    except TypeError:
        message = "encrypted, and no passphrase was given" if passphrase is None else "not encrypted"
        advice = "give --passphrase-file FILE" if passphrase is None else "leave the passphrase out"
        raise UsageError("key.passphrase", message, where=where, hint=advice) from None
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _unreadable(error, where, encrypted=re.search(_ENCRYPTED, data) is not None) from None
    if isinstance(key, Ed25519PrivateKey):
        return key
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == _SIGNING_CURVE:
        return key
    raise _unsupported(key, where, "Ed25519 and ECDSA P-256 sign")


def load_public(path: Path) -> PublicKey:
    """Return the public key in a PEM file; see `parse_public`."""
    return parse_public(_read(path), where=str(path))


def parse_public(pem: bytes, *, where: str) -> PublicKey:
    """Return the public key in PEM; `where` names the source in errors.

    Raises `InputError` ``key.unreadable``, `UsageError` ``key.unsupported``.
    """
    _check_block(pem, where, private=False)
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _unreadable(error, where, encrypted=False) from None
    if isinstance(key, Ed25519PublicKey):
        if int.from_bytes(key.public_bytes_raw(), "little") % 2**255 in _SMALL_ORDER:
            raise _other(
                "a key of small order, for which anybody can sign", where, "ask its owner for another"
            )
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
        return key
    raise _unsupported(key, where, "Ed25519, ECDSA P-256 and P-384 verify")


def _spki(key: PublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _read(path: Path) -> bytes:
    return files.read(path, limit=MAX_PEM)


def _check_block(data: bytes, where: str, *, private: bool) -> None:
    """Refuse data that is not a single PEM block whose label names the kind that is wanted."""
    labels = [label.decode() for label in re.findall(_BLOCK, data)]
    if data.startswith(_SSH) or "OPENSSH PRIVATE KEY" in labels:
        raise _other("a key in OpenSSH's format", where, "'certkit keys generate' makes one in PEM")
    if len(labels) > 1:
        raise InputError(
            "key.unreadable",
            f"holds {len(labels)} PEM blocks: {', '.join(labels[:4])}",
            where=where,
            hint="expected one key in a file of its own; 'openssl pkey -in FILE' prints a private key alone",
        )
    label = labels[0] if labels else ""
    if label.endswith("CERTIFICATE"):
        raise _other("a certificate", where, "'openssl x509 -in FILE -noout -pubkey' prints its public key")
    if private and label.endswith("PUBLIC KEY"):
        advice = "signing takes the private key that 'certkit keys generate' wrote"
        raise _other("a public key", where, advice)
    if not private and label.endswith("PRIVATE KEY"):
        advice = "'certkit keys show KEY --pem' prints the public one; a private key is given to nobody"
        raise _other("a private key", where, advice)


def _other(what: str, where: str, hint: str) -> UsageError:
    return UsageError("key.unsupported", f"holds {what}", where=where, hint=hint)


def _unreadable(error: Exception, where: str, *, encrypted: bool) -> InputError | UsageError:
    if encrypted:
        # What a wrong passphrase decrypts to is now and then well padded, and then fails as a bad key.
        certain = "password" in str(error).lower()
        message = "the passphrase is wrong" if certain else "the passphrase is wrong, or the file is damaged"
        return UsageError(
            "key.passphrase", message, where=where, hint="it is the first line of its file, to the line's end"
        )
    return InputError(
        "key.unreadable",
        "not a key in PEM",
        where=where,
        hint=f"expected a file that begins with {_PEM}… ; 'certkit keys generate' writes one",
    )


def _unsupported(key: object, where: str, supported: str) -> UsageError:
    if isinstance(key, ec.EllipticCurvePrivateKey | ec.EllipticCurvePublicKey):
        name = _CURVES.get(key.curve.name, f"ECDSA {_NIST.get(key.curve.name, key.curve.name)}")
    else:
        name = type(key).__name__.removesuffix("PrivateKey").removesuffix("PublicKey")
    return UsageError(
        "key.unsupported",
        f"a key of an unsupported type ({name})",
        where=where,
        hint=f"{supported}; 'certkit keys generate' makes an Ed25519 key",
    )
