"""The private key that a log is signed with: where a registry keeps it, and how it is made and read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit.errors import UsageError
from certkit.passport import keys

if TYPE_CHECKING:
    from pathlib import Path

KEY_FILE: Final = "log-key.pem"
NEXT_KEY: Final = "next-log-key.pem"
"""The key that takes over, while it does."""


def load_log_key(path: Path) -> Ed25519PrivateKey:
    """Return the log's private key from a PEM file; raise `UsageError` ``registry.log-key``."""
    key = keys.load_private(path)
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(
            "registry.log-key",
            "not an Ed25519 key",
            where=str(path),
            hint="logs are signed with Ed25519; 'certkit keys generate' makes such a key",
        )
    return key


def make_log_key() -> Ed25519PrivateKey:
    """Return a new key to sign a log with, from the operating system's randomness."""
    return Ed25519PrivateKey.generate()
