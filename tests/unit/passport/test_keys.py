"""Keys in files: modes, passphrases, and what is said of files that hold something else."""

from __future__ import annotations

import hashlib
import stat
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa, x25519

from certkit.ground.errors import CertkitError
from certkit.passport import keys
from tests.support.signers import ALGORITHMS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PKCS8 = serialization.PrivateFormat.PKCS8
SPKI = serialization.PublicFormat.SubjectPublicKeyInfo
PEM = serialization.Encoding.PEM


def refused(attempt: object) -> CertkitError:
    with pytest.raises(CertkitError) as caught:
        attempt()  # type: ignore[operator]
    return caught.value


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("passphrase", [None, b"correct horse"])
def test_a_written_key_is_read_back(
    tmp_path: Path, algorithm: keys.Algorithm, passphrase: bytes | None
) -> None:
    path, key = tmp_path / "key.pem", keys.generate(algorithm)
    keys.write_private(path, key, passphrase=passphrase)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert keys.is_encrypted(path) == (passphrase is not None)
    again = keys.load_private(path, passphrase=passphrase)
    assert keys.key_id(again.public_key()) == keys.key_id(key.public_key())


def test_the_id_is_the_sha256_of_the_spki_as_openssl_writes_it(tmp_path: Path) -> None:
    path, key = tmp_path / "public.pem", keys.generate("p256")
    path.write_text(keys.public_pem(key.public_key()))
    try:
        done = subprocess.run(
            ["openssl", "pkey", "-pubin", "-in", str(path), "-outform", "DER"],
            capture_output=True,
            check=True,
        )
    except FileNotFoundError:
        pytest.skip("openssl is not on this machine")
    assert keys.key_id(keys.load_public(path)) == "sha256:" + hashlib.sha256(done.stdout).hexdigest()


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    path, key = tmp_path / "key.pem", keys.generate("ed25519")
    path.write_bytes(b"precious")
    assert refused(lambda: keys.write_private(path, key, passphrase=None)).code == "file.exists"
    assert path.read_bytes() == b"precious"
    assert list(tmp_path.iterdir()) == [path]


def test_wrong_missing_and_needless_passphrases(tmp_path: Path) -> None:
    locked, plain = tmp_path / "locked.pem", tmp_path / "plain.pem"
    keys.write_private(locked, keys.generate("ed25519"), passphrase=b"right")
    keys.write_private(plain, keys.generate("ed25519"), passphrase=None)
    for path, passphrase, words in (
        (locked, b"wrong", "wrong"),
        (locked, None, "no passphrase was given"),
        (plain, b"right", "not encrypted"),
    ):
        error = refused(lambda path=path, word=passphrase: keys.load_private(path, passphrase=word))
        assert (error.code, error.exit_code) == ("key.passphrase", 2)
        assert words in error.message
        assert error.where == str(path)
        assert error.hint
    error = refused(lambda: keys.write_private(tmp_path / "new.pem", keys.generate("p256"), passphrase=b""))
    assert error.code == "key.passphrase"
    assert not (tmp_path / "new.pem").exists()


def test_files_that_hold_something_else(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    assert refused(lambda: keys.load_private(path)).code == "file.missing"
    path.write_bytes(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    assert refused(lambda: keys.load_private(path)).code == "key.unreadable"
    path.write_bytes(b"no key at all")
    assert refused(lambda: keys.load_private(path)).code == "key.unreadable"
    assert refused(lambda: keys.load_public(path)).code == "key.unreadable"


# openssl dsaparam -genkey 2048 | openssl pkcs8 -topk8 -nocrypt
DSA = """\
-----BEGIN PRIVATE KEY-----
MIICXQIBADCCAjUGByqGSM44BAEwggIoAoIBAQDGgx9GVRohbPUAuLjKbQ4qhLQA
xFYAVV7Aog3vqiLVv/OWKkSlFwMImJqUVQuUuRvFhEUShwvmgshpO1mtDWWMWxCu
kPQbxR5L+xN/GNVGAKYcAdN/MeCyku2u8MvEmUWqpJHMgKl8rHdbfvdbCy6wCq13
zpySgVNKuIvDrzbXpP+XyeY69eJQ196fDbwHmrJ71f+w+dmB+YqoY8qhN4h2X8Dw
nuzmmjct/Z3tsuz070ybcbTPqmRLwlh8VzJ7j94teY58i+u6Hx/jiD2Da7oMW1I/
jOkraeEuvKHpw4sUoNYnpptI5WZNy9AcZCTN0s/rp3uEq5FmvhPhPm8FkBNFAh0A
2tYMSajcpoifqzSKyzQOcdHHBLJb2k0tMtRYywKCAQBkNMSu89aR+6tu+KulIHz0
2k1eaTH3mRInKzQiqW3dysXmrmMqHhdlA2Fb5YhhU64UwzTWHkTkbt8vbmnWu3Bx
jcQtANA8q7Tud/3VyfQLAKdsbu4AxTSVkBZXew/sZdQuf6+xrzbRSnkkHg9HNI5q
D3qhnnXXQYZNrXTIH+hLFd6W8wTlE96eCTLUxcgJt29XJD0owQ2x4IjbX69NNfC4
ziGHSbPH8Gc82lhcJgUPcjvaNJSdZOq/HJUnYXV0NPzAoBLOq/FbhnwIbf86b4fG
vlKDmbaQvh9tXTwbm9WgJBQHioldOhO5KsxjiclQ1F9L2WBK9XkH0yPuzw1nXssh
BB8CHQCOg3GVrvh6SsB2sSpwnKIZzgJbT3YyiRpBNjkI
-----END PRIVATE KEY-----
"""
MADE: dict[str, Callable[[], Any]] = {
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
    "X25519": x25519.X25519PrivateKey.generate,
    "Ed448": ed448.Ed448PrivateKey.generate,
    "ECDSA P-521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "ECDSA secp256k1": lambda: ec.generate_private_key(ec.SECP256K1()),
    "DSA": lambda: serialization.load_pem_private_key(DSA.encode(), None),
}


@pytest.mark.parametrize("name", MADE)
def test_a_key_of_another_type_is_refused_whether_private_or_public(tmp_path: Path, name: str) -> None:
    path, key = tmp_path / "key.pem", MADE[name]()
    path.write_bytes(key.private_bytes(PEM, PKCS8, serialization.NoEncryption()))
    signing = refused(lambda: keys.load_private(path))
    path.write_bytes(key.public_key().public_bytes(PEM, SPKI))
    verifying = refused(lambda: keys.load_public(path))
    for error, supported in ((signing, "Ed25519 and ECDSA P-256 sign"), (verifying, "P-384 verify")):
        assert (error.code, error.exit_code, error.where) == ("key.unsupported", 2, str(path))
        assert supported in (error.hint or "")


def test_p384_verifies_and_does_not_sign(tmp_path: Path) -> None:
    path, key = tmp_path / "key.pem", ec.generate_private_key(ec.SECP384R1())
    path.write_bytes(key.private_bytes(PEM, PKCS8, serialization.NoEncryption()))
    assert refused(lambda: keys.load_private(path)).code == "key.unsupported"
    path.write_text(keys.public_pem(key.public_key()))
    assert keys.algorithm_name(keys.load_public(path)) == "ECDSA P-384"


def _self_signed(key: Any) -> bytes:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "lab")])
    start = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, start, start + timedelta(days=1))
    return builder.sign(key, None).public_bytes(PEM)


def test_files_of_another_kind_are_told_from_keys(tmp_path: Path) -> None:
    key = keys.generate("ed25519")
    private = key.private_bytes(PEM, PKCS8, serialization.NoEncryption())
    public = keys.public_pem(key.public_key()).encode()
    ssh = key.private_bytes(PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    ssh_public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    certificate, der = _self_signed(key), key.public_key().public_bytes(serialization.Encoding.DER, SPKI)
    path = tmp_path / "key.pem"
    load_private, load_public = lambda: keys.load_private(path), lambda: keys.load_public(path)
    for data, load in (
        (ssh, load_private),
        (ssh, load_public),
        (ssh_public, load_private),
        (ssh_public, load_public),
        (certificate, load_private),
        (certificate, load_public),
        (public, load_private),
        (private, load_public),
        (private + private, load_private),
        (private + certificate, load_private),
        (public + public, load_public),
        (der, load_public),
        (b"", load_public),
    ):
        path.write_bytes(data)
        error = refused(load)
        kind = "private" if load is load_private else "public"
        told = ("key.unreadable", f"not a single {kind} key in PEM", str(path))
        assert (error.code, error.message, error.where) == told
        assert error.hint


def test_a_key_that_openssl_encrypted_is_read(tmp_path: Path) -> None:
    plain, locked = tmp_path / "plain.pem", tmp_path / "locked.pem"
    key = keys.generate("p256")
    keys.write_private(plain, key, passphrase=None)
    base = ["openssl", "pkcs8", "-topk8", "-in", str(plain), "-out", str(locked), "-passout", "pass:right"]
    for more in (["-scrypt"], ["-v2", "aes-256-cbc", "-iter", "100000"]):
        try:
            subprocess.run([*base, *more], capture_output=True, check=True)
        except FileNotFoundError:
            pytest.skip("openssl is not on this machine")
        assert keys.is_encrypted(locked)
        again = keys.load_private(locked, passphrase=b"right")
        assert keys.key_id(again.public_key()) == keys.key_id(key.public_key())
        for passphrase in (b"wrong", None):
            error = refused(lambda word=passphrase: keys.load_private(locked, passphrase=word))
            assert error.code == "key.passphrase"
