"""Signers of log notes with fixed keys."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit.tlog.note import Signer


def signer(name: str, seed: int = 1) -> Signer:
    return Signer(name, Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32))


LOG, OTHER, WITNESS = signer("example.com/log"), signer("example.com/log", 2), signer("witness.example", 3)
