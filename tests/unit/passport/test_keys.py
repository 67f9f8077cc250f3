"""Keys in files: modes, passphrases, and what is said of files that hold something else."""

from __future__ import annotations

import hashlib
import stat
import subprocess
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from certkit.errors import CertkitError
from certkit.passport import keys

if TYPE_CHECKING:
    from pathlib import Path

PKCS8 = serialization.PrivateFormat.PKCS8
PEM = serialization.Encoding.PEM


def refused(attempt: object) -> CertkitError:
    with pytest.raises(CertkitError) as caught:
        attempt()  # type: ignore[operator]
    return caught.value


@pytest.mark.parametrize("algorithm", keys.ALGORITHMS)
@pytest.mark.parametrize("passphrase", [None, b"correct horse"])
def test_a_written_key_is_read_back(
    tmp_path: Path, algorithm: keys.Algorithm, passphrase: bytes | None
) -> None:
    path, key = tmp_path / "key.pem", keys.generate(algorithm)
    keys.write_private(path, key, passphrase=passphrase)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert keys.is_private(path)
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


def test_a_public_key_does_not_sign_and_a_private_one_is_given_to_nobody(tmp_path: Path) -> None:
    path, key = tmp_path / "key.pem", keys.generate("ed25519")
    path.write_text(keys.public_pem(key.public_key()))
    error = refused(lambda: keys.load_private(path))
    assert (error.code, error.message) == ("key.unsupported", "holds a public key")
    path.unlink()
    keys.write_private(path, key, passphrase=None)
    error = refused(lambda: keys.load_public(path))
    assert (error.code, error.message) == ("key.unsupported", "holds a private key")


def test_unsupported_types_are_named(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    for key, name in (
        (rsa.generate_private_key(65537, 2048), "RSA"),
        (ec.generate_private_key(ec.SECP384R1()), "elliptic curve"),
    ):
        path.write_bytes(key.private_bytes(PEM, PKCS8, serialization.NoEncryption()))
        error = refused(lambda: keys.load_private(path))
        assert error.code == "key.unsupported"
        assert name in error.message
        assert "Ed25519" in (error.hint or "")
    rsa_public = rsa.generate_private_key(65537, 2048).public_key()
    path.write_bytes(rsa_public.public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    assert refused(lambda: keys.load_public(path)).code == "key.unsupported"


def test_p384_is_read_to_verify(tmp_path: Path) -> None:
    path = tmp_path / "public.pem"
    path.write_text(keys.public_pem(ec.generate_private_key(ec.SECP384R1()).public_key()))
    assert keys.algorithm_name(keys.load_public(path)) == "ECDSA P-384"
