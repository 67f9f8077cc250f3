"""RFC 6962 section 2.1: the hash of a leaf, of a node, and of nothing."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NewType

if TYPE_CHECKING:
    from collections.abc import Sequence

Hash = NewType("Hash", bytes)
"""The 32 bytes of a SHA-256."""

HASH_SIZE: Final = 32
_PAIR: Final = 2 * HASH_SIZE
EMPTY_ROOT: Final = Hash(hashlib.sha256().digest())
"""The root of a tree without leaves."""

# Copying a hash that has read its first byte is faster than making a new one.
_LEAF: Final = hashlib.sha256(b"\x00")
_NODE: Final = hashlib.sha256(b"\x01")


def leaf_hash(entry: bytes) -> Hash:
    """Return the hash of a leaf: SHA-256 of a zero byte and the entry."""
    state = _LEAF.copy()
    state.update(entry)
    return Hash(state.digest())


def node_hash(left: Hash, right: Hash) -> Hash:
    """Return the hash of a node: SHA-256 of a one byte and both children."""
    state = _NODE.copy()
    state.update(left + right)
    return Hash(state.digest())


def root_over(hashes: Sequence[Hash]) -> Hash:
    """Return the root over complete subtrees, the largest first, as the bits of a size are (at least one)."""
    root: bytes = hashes[-1]
    for left in hashes[-2::-1]:  # `node_hash`, without what a call costs for every entry of a log
        node = _NODE.copy()
        node.update(left + root)
        root = node.digest()
    return Hash(root)


def row_above(row: bytes) -> bytes:
    """Return the nodes above an even number of concatenated hashes, concatenated."""
    above = []
    for at in range(0, len(row), _PAIR):  # as in `root_over`
        node = _NODE.copy()
        node.update(row[at : at + _PAIR])
        above.append(node.digest())
    return b"".join(above)
