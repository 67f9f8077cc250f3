"""Transparency logs under Hypothesis: every proof verifies, every change to one is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import assume, given
from hypothesis import strategies as st

from certkit.ground.errors import CertkitError, InputError, MismatchError
from certkit.tlog import checkpoint, tiles, tree
from certkit.tlog.checkpoint import Checkpoint, open_checkpoint, parse_checkpoint, sign_checkpoint
from certkit.tlog.note import KeyType, Signature, VerifierKey, parse_note, write_note
from certkit.tlog.tree import Hash
from tests.support import merkle
from tests.support.signers import Signer

ENTRIES = st.lists(st.binary(max_size=6), min_size=1, max_size=70)
HASHES = st.binary(min_size=32, max_size=32).map(Hash)
LINE = st.text(st.characters(blacklist_categories=["Cs"], min_codepoint=0x20), max_size=20)
NAME = LINE.filter(lambda text: text and "+" not in text and not any(one.isspace() for one in text))
KEY = st.binary(min_size=32, max_size=32).map(Ed25519PrivateKey.from_private_bytes)


def stored(entries: list[bytes]) -> dict[tuple[int, int], bytes]:
    return tiles.grow(0, [tree.leaf_hash(entry) for entry in entries], lambda _level, _n: b"")


def node(entries: list[bytes]) -> tree.Node:
    kept = stored(entries)
    return tiles.node_reader(lambda level, n: kept[level, n])


@given(ENTRIES, st.data())
def test_inclusion(entries: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(entries) - 1))
    root, leaf = Hash(merkle.mth(entries)), tree.leaf_hash(entries[index])
    given_ = tree.inclusion_proof(index, len(entries), node(entries))
    assert given_ == merkle.path(index, entries)
    tree.verify_inclusion(leaf, index, len(entries), given_, root)

    hashes, kind = list(given_), data.draw(st.sampled_from(["change", "drop", "add", "leaf", "swap"]))
    if kind == "leaf":
        leaf = data.draw(HASHES.filter(lambda other: other != leaf))
    elif kind == "add":
        hashes.insert(data.draw(st.integers(0, len(hashes))), data.draw(HASHES))
    else:
        assume(hashes)
        place = data.draw(st.integers(0, len(hashes) - 1))
        if kind == "drop":
            del hashes[place]
        elif kind == "change":
            hashes[place] = data.draw(HASHES.filter(lambda other: other != given_[place]))
        else:
            hashes.reverse()
            assume(hashes != given_)
    assert not merkle.included(leaf, index, len(entries), list(hashes), root)
    with pytest.raises(MismatchError):
        tree.verify_inclusion(leaf, index, len(entries), hashes, root)


@given(ENTRIES, st.data())
def test_consistency(entries: list[bytes], data: st.DataObject) -> None:
    new = len(entries)
    old = data.draw(st.integers(1, new))
    roots = [Hash(merkle.mth(entries[:old])), Hash(merkle.mth(entries))]
    hashes = tree.consistency_proof(old, new, node(entries))
    assert hashes == merkle.proof(old, entries)
    tree.verify_consistency(old, roots[0], new, roots[1], hashes)

    change = data.draw(st.sampled_from(["old root", "new root", "hash", "drop", "add"]))
    if change.endswith("root"):
        which = 0 if change == "old root" else 1
        roots[which] = data.draw(HASHES.filter(lambda other: other != roots[which]))
    elif change == "add":
        hashes.append(data.draw(HASHES))
    else:
        assume(hashes)
        place = data.draw(st.integers(0, len(hashes) - 1))
        kept = hashes[place]
        if change == "drop":
            del hashes[place]
        else:
            hashes[place] = data.draw(HASHES.filter(lambda other: other != kept))
    with pytest.raises(MismatchError):
        tree.verify_consistency(old, roots[0], new, roots[1], hashes)


@given(st.tuples(*[st.integers(0, 60)] * 3), st.lists(HASHES, max_size=8), HASHES, HASHES)
def test_both_ways_to_verify_agree_on_nonsense(
    numbers: tuple[int, int, int], given_: list[Hash], one: Hash, two: Hash
) -> None:
    old, new, index = numbers
    accepted = False
    with suppress(MismatchError):
        tree.verify_inclusion(one, index, new, given_, two)
        accepted = True
    assert accepted == merkle.included(one, index, new, list(given_), two)
    if 0 < old < new:
        accepted = False
        with suppress(MismatchError):
            tree.verify_consistency(old, one, new, two, given_)
            accepted = True
        assert accepted == merkle.consistent(old, one, new, two, list(given_))


@given(st.lists(st.integers(0, 300), min_size=1, max_size=8))
def test_growth_in_steps_is_growth_at_once(steps: list[int]) -> None:
    leaves = [tree.leaf_hash(number.to_bytes(3)) for number in range(sum(steps))]
    kept: dict[tuple[int, int], bytes] = {}
    size = 0
    for step in steps:
        kept.update(tiles.grow(size, leaves[size : size + step], lambda level, n: kept.get((level, n), b"")))
        size += step
    assert kept == tiles.grow(0, leaves, lambda _level, _n: b"")
    assert {tile[:2]: tile.width for tile in tiles.tiles(size)} == {
        place: len(hashes) // 32 for place, hashes in kept.items()
    }


@given(st.lists(LINE, max_size=4), NAME, KEY, st.integers(0, 2**63 - 1))
def test_notes_come_back(lines: list[str], name: str, key: Ed25519PrivateKey, time: int) -> None:
    text = "".join(f"{line}\n" for line in lines) or "\n"
    signer = Signer(name, key)
    written = [signer.sign(text), signer.cosign(text, time)]
    note = parse_note(write_note(text, written))
    assert note.text == text
    assert list(note.signatures) == written
    for vkey in (signer.vkey, signer.witness_vkey):
        assert VerifierKey.parse(str(vkey)) == vkey


@given(NAME, KEY, st.integers(1, 2**63 - 1), HASHES, st.lists(LINE.filter(bool), max_size=3))
def test_checkpoints_come_back(
    origin: str, key: Ed25519PrivateKey, size: int, root: Hash, extensions: list[str]
) -> None:
    signer = Signer(origin, key)
    checkpoint = Checkpoint(origin, size, root, tuple(extensions))
    assert open_checkpoint(sign_checkpoint(checkpoint, signer), signer.vkey).checkpoint == checkpoint


@given(st.binary(max_size=300) | st.text(max_size=200).map(lambda text: text.encode(errors="replace")))
def test_readers_never_fail_otherwise_than_by_refusing(data: bytes) -> None:
    for head in (b"", b"c2sp.org/tlog-proof@v1\n", b"a\n1\n", b"text\n\n\xe2\x80\x94 a "):
        with suppress(InputError):
            checkpoint.parse_proof(head + data)
        with suppress(InputError):
            parse_note(head + data)
        text = (head + data).decode(errors="replace")
        with suppress(InputError):
            parse_checkpoint(text)


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=70))
def test_no_public_key_or_signature_is_more_than_refused(public: bytes, value: bytes) -> None:
    text = "origin\n1\n" + "A" * 43 + "=\n"
    key = VerifierKey("origin", KeyType.ED25519, public)
    note = write_note(text, [Signature("origin", key.key_id, value or b"\0")])
    with pytest.raises(CertkitError):
        open_checkpoint(note, key)
