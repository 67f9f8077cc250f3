"""Who must have cosigned, who counts once, and since when a quorum vouches."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit.ground.errors import InputError
from certkit.tlog.checkpoint import Checkpoint, Quorum, open_checkpoint, sign_checkpoint, with_signatures
from certkit.tlog.tree import leaf_hash
from tests.support.signers import Signer


def signer(name: str, seed: int) -> Signer:
    return Signer(name, Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32))


LOG = signer("example.com/log", 1)
A, B, C = (signer(f"{name}.example", seed) for name, seed in (("a", 2), ("b", 3), ("c", 4)))
HEAD = Checkpoint(LOG.name, 7, leaf_hash(b"root"))


def quorum(k: int, *signers: Signer) -> Quorum:
    return Quorum.of(k, [str(one.witness_vkey) for one in signers])


def cosigned(*times: tuple[Signer, int]) -> bytes:
    lines = [one.cosign(HEAD.text, time) for one, time in times]
    return with_signatures(sign_checkpoint(HEAD, LOG), lines)


@pytest.mark.parametrize(
    ("k", "times", "met", "since"),
    [
        (0, [], True, None),
        (0, [(A, 5)], True, None),
        (1, [], False, None),
        (1, [(A, 5)], True, 5),
        (2, [(A, 5)], False, None),
        (2, [(A, 5), (B, 9)], True, 5),
        (2, [(B, 9), (A, 5), (C, 7)], True, 7),
        (3, [(A, 5), (A, 6), (A, 7)], False, None),
    ],
)
def test_a_quorum_and_its_time(
    k: int, times: list[tuple[Signer, int]], *, met: bool, since: int | None
) -> None:
    asked = quorum(k, A, B, C)
    head = open_checkpoint(cosigned(*times), LOG.vkey, asked.keys)
    assert (asked.is_met(head.cosigned), asked.since(head.cosigned)) == (met, since)


def test_witnesses_of_nobodys_choice_do_not_count() -> None:
    asked = quorum(1, A)
    head = open_checkpoint(cosigned((B, 5), (C, 6)), LOG.vkey, asked.keys)
    assert not asked.is_met(head.cosigned)


def test_a_log_is_no_witness_of_itself() -> None:
    itself = Signer("w.example", LOG.key)
    asked = quorum(1, itself)
    head = open_checkpoint(cosigned((itself, 5)), LOG.vkey, asked.keys)
    assert not asked.is_met(head.cosigned)


@pytest.mark.parametrize(
    ("vkeys", "words"),
    [
        ([str(A.vkey)], "not of a witness"),
        ([str(A.witness_vkey), str(Signer("other.example", A.key).witness_vkey)], "the same key"),
        ([str(A.witness_vkey), str(Signer(A.name, B.key).witness_vkey)], "the same name"),
        (["nonsense"], "not a verifier key"),
    ],
)
def test_what_could_count_twice_or_never_is_refused(vkeys: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        Quorum.of(1, vkeys)
    assert caught.value.code == "tlog.key"


def test_a_line_is_added_once_and_the_logs_own_stays_first() -> None:
    once, twice = cosigned((A, 5)), cosigned((A, 5), (A, 5))
    assert once == twice
    assert once.startswith(sign_checkpoint(HEAD, LOG))
    with pytest.raises(InputError):
        with_signatures(b"no note", [])
