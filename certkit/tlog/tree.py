"""Merkle trees (RFC 6962 section 2.1): hashes, and proofs that need nothing but roots to be verified.

A proof is a list of hashes of subtrees. Index and size alone determine which subtrees, by a walk from the
root down: each step splits the tree at the largest power of two below its width, enters one half and notes
the other. `inclusion_path` and `consistency_path` do this walk. Makers of proofs look the subtrees up;
verifiers climb the same path with the given hashes.

    proof = inclusion_proof(5, 8, node)
    verify_inclusion(leaf_hash(entry), 5, 8, proof, root)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, NewType, cast

from certkit.ground.errors import MismatchError
from certkit.ground.wording import many

Hash = NewType("Hash", bytes)
"""The 32 bytes of a SHA-256."""

HASH_SIZE: Final = 32
_PAIR: Final = 2 * HASH_SIZE
EMPTY_ROOT: Final = Hash(hashlib.sha256().digest())
"""The root of a tree without leaves."""

# Copying a hash that has read its first byte is faster than making a new one.
_LEAF: Final = hashlib.sha256(b"\x00")
_NODE: Final = hashlib.sha256(b"\x01")
MAX_SIZE: Final = 2**63 - 1

Node = Callable[[int, int], Hash]
"""Returns the hash of the complete subtree over leaves ``[index << level, (index + 1) << level)``."""


def leaf_hash(entry: bytes) -> Hash:
    """Return the hash of a leaf: SHA-256 of a zero byte and the entry."""
    state = _LEAF.copy()
    state.update(entry)
    return Hash(state.digest())


def leaf_hashes(entries: Iterable[bytes]) -> list[Hash]:
    """Return `leaf_hash` of each entry, without what a call for each would cost."""
    hashes, copy = [], _LEAF.copy
    for entry in entries:
        leaf = copy()
        leaf.update(entry)
        hashes.append(leaf.digest())
    return cast("list[Hash]", hashes)


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
    above, copy = [], _NODE.copy
    for at in range(0, len(row), _PAIR):  # as in `root_over`
        node = copy()
        node.update(row[at : at + _PAIR])
        above.append(node.digest())
    return b"".join(above)


class Sibling(NamedTuple):
    """A subtree beside the path: its leaves ``[start, stop)``, and whether it lies left of the path."""

    start: int
    stop: int
    left: bool


def _split(width: int) -> int:
    """Return the largest power of two smaller than `width`, which is at least 2."""
    return 1 << ((width - 1).bit_length() - 1)


def inclusion_path(index: int, size: int) -> list[Sibling]:
    """Return the subtrees of an inclusion proof, from the leaf's sibling up to the root's child."""
    if not 0 <= index < size:
        raise ValueError(f"no leaf {index} in a tree of {size}")
    start, stop = 0, size
    path: list[Sibling] = []
    while stop - start > 1:
        middle = start + _split(stop - start)
        if index < middle:
            path.append(Sibling(middle, stop, left=False))
            stop = middle
        else:
            path.append(Sibling(start, middle, left=True))
            start = middle
    return path[::-1]


def consistency_path(old: int, new: int) -> tuple[tuple[int, int], list[Sibling]]:
    """Return the subtree where the walk to the old tree's right edge ends, and the subtrees beside it.

    The subtree is ``(start, stop)``; where it starts at 0 it is the old tree itself, whose root the
    verifier has. The siblings run from there up to the root's child. ``0 < old <= new``.
    """
    if not 0 < old <= new:
        raise ValueError(f"a tree of {old} is no beginning of one of {new}")
    start, stop = 0, new
    path: list[Sibling] = []
    while stop != old:
        middle = start + _split(stop - start)
        if old <= middle:
            path.append(Sibling(middle, stop, left=False))
            stop = middle
        else:
            path.append(Sibling(start, middle, left=True))
            start = middle
    return (start, stop), path[::-1]


def range_hash(start: int, stop: int, node: Node) -> Hash:
    """Return the Merkle tree hash of leaves ``[start, stop)``, a range that a walk from a root meets."""
    if start == stop:
        return EMPTY_ROOT
    complete: list[Hash] = []
    while start < stop:
        level = (stop - start).bit_length() - 1
        complete.append(node(level, start >> level))
        start += 1 << level
    return root_over(complete)


def root(size: int, node: Node) -> Hash:
    """Return the root of the tree over the first `size` leaves."""
    return range_hash(0, size, node)


def inclusion_proof(index: int, size: int, node: Node) -> list[Hash]:
    """Return the proof that leaf `index` is in the tree of `size` (RFC 6962 section 2.1.1)."""
    return [range_hash(start, stop, node) for start, stop, _ in inclusion_path(index, size)]


def consistency_proof(old: int, new: int, node: Node) -> list[Hash]:
    """Return the proof that the tree of `old` is the beginning of that of `new` (section 2.1.2).

    It is empty where there is nothing to show: from the empty tree, or between equal sizes.
    """
    if old in {0, new}:
        return []
    (start, stop), path = consistency_path(old, new)
    seed = [range_hash(start, stop, node)] if start else []
    return seed + [range_hash(sibling.start, sibling.stop, node) for sibling in path]


def verify_inclusion(leaf: Hash, index: int, size: int, proof: Sequence[Hash], expected: Hash) -> None:
    """Raise `MismatchError` ``tlog.inclusion`` unless `proof` leads from `leaf` to the root `expected`."""
    if not 0 <= index < size <= MAX_SIZE:
        raise MismatchError("tlog.inclusion", f"a tree of {many(size, 'entry')} has no entry {index}")
    _refuse_short("tlog.inclusion", (leaf, expected, *proof))
    path = inclusion_path(index, size)
    if len(proof) != len(path):
        raise MismatchError("tlog.inclusion", f"expected a proof of {len(path)} hashes, found {len(proof)}")
    node = leaf
    for given, sibling in zip(proof, path, strict=True):
        node = node_hash(given, node) if sibling.left else node_hash(node, given)
    if node != expected:
        raise MismatchError("tlog.inclusion", "the proof does not lead to the root of the checkpoint")


def verify_consistency(old: int, old_root: Hash, new: int, new_root: Hash, proof: Sequence[Hash]) -> None:
    """Raise `MismatchError` ``tlog.consistency`` unless the old tree is the beginning of the new one."""
    code = "tlog.consistency"
    if not 0 <= old <= new <= MAX_SIZE:
        raise MismatchError(code, f"a log of {many(old, 'entry')} cannot have shrunk to {new}")
    _refuse_short(code, (old_root, new_root, *proof))
    _refuse_empty(code, (old, old_root), (new, new_root))
    if old in {0, new}:
        if proof:
            raise MismatchError(code, f"expected an empty proof, found {len(proof)} hashes")
        if old == new and old_root != new_root:
            raise MismatchError(code, f"two different roots for a log of {many(old, 'entry')}")
        return
    (start, _), path = consistency_path(old, new)
    expected = len(path) + bool(start)
    if len(proof) != expected:
        raise MismatchError(code, f"expected a proof of {expected} hashes, found {len(proof)}")
    rest = list(proof)
    earlier = later = rest.pop(0) if start else old_root
    for given, sibling in zip(rest, path, strict=True):
        if sibling.left:
            earlier, later = node_hash(given, earlier), node_hash(given, later)
        else:
            later = node_hash(later, given)
    if earlier != old_root or later != new_root:
        raise MismatchError(code, "the old log is not the beginning of the new one")


def _refuse_short(code: str, hashes: Sequence[Hash]) -> None:
    """Raise `MismatchError` unless all are 32 bytes: two shorter ones could be split elsewhere."""
    for given in hashes:
        if len(given) != HASH_SIZE:
            raise MismatchError(code, f"expected hashes of {HASH_SIZE} bytes, found one of {len(given)}")


def _refuse_empty(code: str, *heads: tuple[int, Hash]) -> None:
    """Raise `MismatchError` unless a log without entries, and no other, has the root of the empty tree."""
    for size, root in heads:
        if (size == 0) != (root == EMPTY_ROOT):
            raise MismatchError(code, f"a root that no log of {many(size, 'entry')} has")


class Frontier:
    """The right edge of a growing tree: enough to add leaves and to compute the root.

    `hashes` are the roots of the complete subtrees that the size is made of, from the left: one for each
    bit that is set in the size.
    """

    def __init__(self, size: int = 0, hashes: Sequence[Hash] = ()) -> None:
        self.size = size
        self._hashes = list(hashes)

    @classmethod
    def of(cls, size: int, node: Node) -> Frontier:
        """Return the right edge of a stored tree."""
        levels = [level for level in reversed(range(size.bit_length())) if size >> level & 1]
        return cls(size, [node(level, (size >> level) - 1) for level in levels])

    def add(self, subtree: Hash, level: int = 0) -> None:
        """Add a leaf, or a complete subtree of ``1 << level`` leaves to a size that is a multiple of that."""
        carry = self.size >> level
        while carry & 1:
            subtree = node_hash(self._hashes.pop(), subtree)
            carry >>= 1
        self._hashes.append(subtree)
        self.size += 1 << level

    @property
    def root(self) -> Hash:
        """The root of the tree."""
        return root_over(self._hashes) if self._hashes else EMPTY_ROOT
