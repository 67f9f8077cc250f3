"""RFC 6962 section 2.1: the hash of a leaf, of a node, and of nothing."""

from __future__ import annotations

import hashlib
from typing import Final, NewType

Hash = NewType("Hash", bytes)
"""The 32 bytes of a SHA-256."""

HASH_SIZE: Final = 32
_PAIR: Final = 2 * HASH_SIZE
EMPTY_ROOT: Final = Hash(hashlib.sha256().digest())
"""The root of a tree without leaves."""


def leaf_hash(entry: bytes) -> Hash:
    """Return the hash of a leaf: SHA-256 of a zero byte and the entry."""
    return Hash(hashlib.sha256(b"\x00" + entry).digest())


def node_hash(left: Hash, right: Hash) -> Hash:
    """Return the hash of a node: SHA-256 of a one byte and both children."""
    return Hash(hashlib.sha256(b"\x01" + left + right).digest())


def row_above(row: bytes) -> bytes:
    """Return the nodes above an even number of concatenated hashes, concatenated."""
    sha256 = hashlib.sha256  # called for every node of a log, so its look-up counts
    return b"".join([sha256(b"\x01" + row[at : at + _PAIR]).digest() for at in range(0, len(row), _PAIR)])
