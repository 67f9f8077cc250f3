"""Merkle trees: exhaustive over small ones, against a recursion, and published answers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from certkit.ground import canonical
from certkit.ground.errors import MismatchError
from certkit.tlog import tree
from certkit.tlog.tree import Hash
from tests.support import merkle

if TYPE_CHECKING:
    from pathlib import Path

ENTRIES = [b"entry %d" % number for number in range(40)]
SIZES = range(len(ENTRIES) + 1)


def node(level: int, index: int) -> Hash:
    return Hash(merkle.mth(ENTRIES[index << level : (index + 1) << level]))


def test_every_root_and_every_proof_up_to_forty_entries() -> None:
    for size in SIZES:
        entries = ENTRIES[:size]
        root = tree.root(size, node)
        assert root == merkle.mth(entries)
        for index in range(size):
            proof = tree.inclusion_proof(index, size, node)
            assert proof == merkle.path(index, entries)
            leaf = tree.leaf_hash(entries[index])
            assert merkle.included(leaf, index, size, list(proof), root)
            tree.verify_inclusion(leaf, index, size, proof, root)
        for old in range(1, size):
            proof = tree.consistency_proof(old, size, node)
            assert proof == merkle.proof(old, entries)
            assert merkle.consistent(old, merkle.mth(entries[:old]), size, root, list(proof))
            tree.verify_consistency(old, Hash(merkle.mth(entries[:old])), size, root, proof)


def test_a_proof_for_one_place_shows_no_other() -> None:
    size = 23
    root = tree.root(size, node)
    for index in range(size):
        proof = tree.inclusion_proof(index, size, node)
        leaf = tree.leaf_hash(ENTRIES[index])
        for other in range(size):
            if other != index:
                with pytest.raises(MismatchError):
                    tree.verify_inclusion(leaf, other, size, proof, root)


def test_an_inner_node_is_no_leaf() -> None:
    # The node over entries 0 and 1 is the first hash of a proof one shorter: only the length tells.
    size = 8
    inner = node(1, 0)
    proof = tree.inclusion_proof(0, size, node)[1:]
    with pytest.raises(MismatchError):
        tree.verify_inclusion(inner, 0, size, proof, tree.root(size, node))


@pytest.mark.parametrize(("index", "size"), [(0, 0), (5, 5), (-1, 5), (0, -1), (0, 2**63), (2**63, 2**64)])
def test_impossible_numbers_are_refused(index: int, size: int) -> None:
    with pytest.raises(MismatchError) as caught:
        tree.verify_inclusion(tree.EMPTY_ROOT, index, size, [], tree.EMPTY_ROOT)
    assert caught.value.code == "tlog.inclusion"
    with pytest.raises(ValueError, match="no leaf"):
        tree.inclusion_path(index, 0)


def test_consistency_from_nothing_and_between_equals() -> None:
    five = tree.root(5, node)
    assert tree.consistency_proof(0, 5, node) == tree.consistency_proof(5, 5, node) == []
    tree.verify_consistency(0, tree.EMPTY_ROOT, 5, five, [])
    tree.verify_consistency(5, five, 5, five, [])
    tree.verify_consistency(0, tree.EMPTY_ROOT, 0, tree.EMPTY_ROOT, [])
    refused = [
        (0, five, 5, five, []),  # a root of nothing that is not that of nothing
        (0, tree.EMPTY_ROOT, 5, five, [five]),
        (5, five, 5, tree.root(6, node), []),  # a fork at one size
        (5, five, 5, five, [five]),
        (6, tree.root(6, node), 5, five, []),  # a log that shrank
        (-1, five, 5, five, []),
        (5, five, 2**63, five, []),
    ]
    for old, old_root, new, new_root, proof in refused:
        with pytest.raises(MismatchError) as caught:
            tree.verify_consistency(old, old_root, new, new_root, proof)
        assert caught.value.code == "tlog.consistency"


def test_no_path_outside_the_tree() -> None:
    for old, new in ((0, 3), (4, 3)):
        with pytest.raises(ValueError, match="no beginning"):
            tree.consistency_path(old, new)


def test_a_proof_in_the_largest_tree_has_sixty_three_hashes() -> None:
    assert len(tree.inclusion_path(0, tree.MAX_SIZE)) == 63


def test_published_roots_of_the_reference_tree(shared: Path) -> None:
    document = canonical.loads((shared / "vectors" / "rfc6962_vectors.json").read_bytes())
    entries = [bytes.fromhex(text) for text in document["leaf_inputs_hex"]]
    hashes = [tree.leaf_hash(entry) for entry in entries]
    assert [one.hex() for one in hashes] == document["leaf_hashes"]
    assert tree.EMPTY_ROOT.hex() == document["empty_root"] == hashlib.sha256().hexdigest()

    def stored(level: int, index: int) -> Hash:
        if level == 0:
            return hashes[index]
        return tree.node_hash(stored(level - 1, 2 * index), stored(level - 1, 2 * index + 1))

    roots = [tree.root(size, stored).hex() for size in range(len(entries) + 1)]
    assert roots == document["roots_by_size"]


@pytest.mark.parametrize("start", range(len(ENTRIES) + 1))
def test_the_right_edge_is_all_that_growth_needs(start: int) -> None:
    frontier = tree.Frontier.of(start, node)
    for size in range(start, len(ENTRIES) + 1):
        assert (frontier.size, frontier.root) == (size, merkle.mth(ENTRIES[:size]))
        if size < len(ENTRIES):
            frontier.add(tree.leaf_hash(ENTRIES[size]))


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_no_hash_of_another_length_is_taken(length: int) -> None:
    size, index, old = 23, 4, 7
    root, leaf = tree.root(size, node), tree.leaf_hash(ENTRIES[index])
    earlier = Hash(merkle.mth(ENTRIES[:old]))
    wrong = Hash(b"\1" * length)
    inclusion = tree.inclusion_proof(index, size, node)
    consistency = tree.consistency_proof(old, size, node)
    for proof in ([wrong, *inclusion[1:]], [*inclusion[:-1], wrong]):
        with pytest.raises(MismatchError, match=f"found one of {length}"):
            tree.verify_inclusion(leaf, index, size, proof, root)
    for proof in ([wrong, *consistency[1:]], [*consistency[:-1], wrong]):
        with pytest.raises(MismatchError, match=f"found one of {length}"):
            tree.verify_consistency(old, earlier, size, root, proof)
    with pytest.raises(MismatchError, match="found one of"):
        tree.verify_inclusion(wrong, 0, 1, [], wrong)
    with pytest.raises(MismatchError, match="found one of"):
        tree.verify_consistency(old, wrong, old, wrong, [])


def test_two_nodes_that_are_split_elsewhere_are_no_proof() -> None:
    left, right = tree.leaf_hash(b"a"), tree.leaf_hash(b"b")
    root = tree.node_hash(left, right)
    shifted = (Hash(left + right[:1]), Hash(right[1:]))
    assert tree.node_hash(*shifted) == root
    with pytest.raises(MismatchError):
        tree.verify_inclusion(shifted[0], 0, 2, [shifted[1]], root)


def test_the_empty_log_has_one_root_and_no_other_log_has_it() -> None:
    root = tree.root(5, node)
    tree.verify_consistency(0, tree.EMPTY_ROOT, 5, root, [])
    tree.verify_consistency(0, tree.EMPTY_ROOT, 0, tree.EMPTY_ROOT, [])
    for old, old_root, new, new_root in (
        (0, root, 0, root),
        (0, root, 5, root),
        (0, tree.EMPTY_ROOT, 5, tree.EMPTY_ROOT),
        (5, tree.EMPTY_ROOT, 5, tree.EMPTY_ROOT),
    ):
        with pytest.raises(MismatchError, match="root that no log of"):
            tree.verify_consistency(old, old_root, new, new_root, [])
