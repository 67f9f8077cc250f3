"""The text of a proof: what is read back, and which proofs show nothing."""

from __future__ import annotations

from contextlib import suppress

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit.ground.errors import InputError, MismatchError
from certkit.tlog import checkpoint, tree
from certkit.tlog.checkpoint import Checkpoint, LogProof, sign_checkpoint
from certkit.tlog.note import Signature, write_note
from certkit.tlog.tree import Hash
from tests.support import merkle
from tests.support.signers import Signer

LOG = Signer("certkit.test/log", Ed25519PrivateKey.from_private_bytes(b"\1" * 32))
OTHER = Signer("certkit.test/log", Ed25519PrivateKey.from_private_bytes(b"\2" * 32))
WITNESS = Signer("witness.example", Ed25519PrivateKey.from_private_bytes(b"\3" * 32))
ENTRIES = [b"entry %d" % number for number in range(11)]
HEAD = Checkpoint("certkit.test/log", len(ENTRIES), Hash(merkle.mth(ENTRIES)))


def made(index: int, extra: bytes | None = None, head: Checkpoint = HEAD, signer: Signer = LOG) -> LogProof:
    hashes = tuple(Hash(one) for one in merkle.path(index, ENTRIES))
    return LogProof(index, hashes, sign_checkpoint(head, signer), extra)


def test_the_text_is_that_of_the_specification() -> None:
    found = LogProof(5, (Hash(b"\0" * 32),), b"CHECKPOINT", b"extra information")
    assert found.to_bytes() == (
        b"c2sp.org/tlog-proof@v1\nextra ZXh0cmEgaW5mb3JtYXRpb24=\nindex 5\n"
        b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\nCHECKPOINT"
    )
    bare = LogProof(0, (), b"CHECKPOINT")
    assert bare.to_bytes() == b"c2sp.org/tlog-proof@v1\nindex 0\n\nCHECKPOINT"


@pytest.mark.parametrize("extra", [None, b"", b"\x00\n\n\xff"])
def test_a_proof_is_read_as_it_is_written(extra: bytes | None) -> None:
    for index in range(len(ENTRIES)):
        assert checkpoint.parse_proof(made(index, extra).to_bytes()) == made(index, extra)


def test_it_shows_the_entry_and_nothing_else() -> None:
    for index, entry in enumerate(ENTRIES):
        head = checkpoint.verify_proof(made(index), tree.leaf_hash(entry), [OTHER.vkey, LOG.vkey])
        assert head.checkpoint == HEAD
        with pytest.raises(MismatchError) as caught:
            checkpoint.verify_proof(made(index), tree.leaf_hash(entry + b"!"), [LOG.vkey])
        assert caught.value.code == "tlog.inclusion"


def test_only_a_trusted_log_counts() -> None:
    leaf = tree.leaf_hash(ENTRIES[0])
    refused = {
        "tlog.unsigned": [
            (made(0, signer=OTHER), [LOG.vkey]),
            (made(0), []),
            (made(0, head=Checkpoint("certkit.test/other", 11, HEAD.root)), [LOG.vkey]),
        ],
        "tlog.inclusion": [(made(0, head=Checkpoint(HEAD.origin, 99, HEAD.root)), [LOG.vkey])],
    }
    for code, cases in refused.items():
        for found, logs in cases:
            with pytest.raises(MismatchError) as caught:
                checkpoint.verify_proof(found, leaf, logs)
            assert caught.value.code == code


def test_witnesses_come_out_beside_the_log() -> None:
    note = write_note(HEAD.text, [LOG.sign(HEAD.text), WITNESS.cosign(HEAD.text, 12)])
    found = LogProof(3, made(3).hashes, note)
    head = checkpoint.verify_proof(found, tree.leaf_hash(ENTRIES[3]), [LOG.vkey], [WITNESS.witness_vkey])
    assert [one.time for one in head.cosigned] == [12]


def test_the_key_is_that_of_the_log_in_the_text_whatever_other_lines_say() -> None:
    own, leaf = LOG.sign(HEAD.text), tree.leaf_hash(ENTRIES[3])
    stranger = Signer("certkit.other/log", OTHER.key).sign(HEAD.text)
    junk = Signature(stranger.name, stranger.key_id, bytes(64))
    other = Signer("certkit.other/log", OTHER.key).vkey
    for lines in ([own, junk], [junk, own], [stranger, own], [own]):
        found = LogProof(3, made(3).hashes, write_note(HEAD.text, lines))
        for logs in ([other, LOG.vkey], [LOG.vkey, other]):
            assert checkpoint.verify_proof(found, leaf, logs).checkpoint == HEAD
        with pytest.raises(MismatchError) as caught:
            checkpoint.verify_proof(found, leaf, [other])
        assert caught.value.code == "tlog.unsigned"


def test_of_several_keys_of_a_log_the_later_one_that_signed_counts() -> None:
    leaf, old, new = tree.leaf_hash(ENTRIES[3]), LOG.sign(HEAD.text), OTHER.sign(HEAD.text)
    false = Signature(new.name, new.key_id, bytes(64))
    for lines, keys, code in (
        ([old], [LOG, OTHER], None),
        ([new], [LOG, OTHER], None),
        ([old, new], [LOG, OTHER], None),
        ([old, false], [LOG], None),
        ([old, false], [OTHER, LOG], None),
        ([old, false], [LOG, OTHER], "tlog.signature"),
    ):
        found = LogProof(3, made(3).hashes, write_note(HEAD.text, lines))
        refused = None
        try:
            assert checkpoint.verify_proof(found, leaf, [key.vkey for key in keys]).checkpoint == HEAD
        except MismatchError as error:
            refused = error.code
        assert refused == code


def test_every_changed_byte_is_refused_or_means_the_same() -> None:
    whole = made(6, b"extra").to_bytes()
    leaf = tree.leaf_hash(ENTRIES[6])
    survivors = set()
    for place in range(len(whole)):
        for mask in (1, 2, 4, 8, 16, 32, 64, 128):
            changed = bytearray(whole)
            changed[place] ^= mask
            with suppress(InputError, MismatchError):
                checkpoint.verify_proof(checkpoint.parse_proof(bytes(changed)), leaf, [LOG.vkey])
                survivors.add(place)
    start = whole.index(b"extra ") + len(b"extra ")
    assert survivors <= set(range(start, whole.index(b"\n", start))), "only `extra` is not covered"
    assert survivors


def test_size_limits() -> None:
    longest = LogProof(0, (tree.EMPTY_ROOT,) * checkpoint.MAX_HASHES, made(0).checkpoint)
    assert checkpoint.parse_proof(longest.to_bytes()) == longest
    assert len(tree.inclusion_path(0, tree.MAX_SIZE)) == checkpoint.MAX_HASHES
    for found in (
        LogProof(0, (tree.EMPTY_ROOT,) * (checkpoint.MAX_HASHES + 1), made(0).checkpoint),
        LogProof(0, (), made(0).checkpoint, bytes(checkpoint.MAX_PROOF)),
    ):
        with pytest.raises(InputError) as caught:
            checkpoint.parse_proof(found.to_bytes())
        assert caught.value.code == "tlog.proof"
