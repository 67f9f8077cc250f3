"""Signed notes: keys, forms, and who may speak for whom."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certkit.ground import canonical
from certkit.ground.errors import CertkitError, InputError, MismatchError
from certkit.tlog.checkpoint import Checkpoint, open_checkpoint, parse_checkpoint, sign_checkpoint
from certkit.tlog.note import (
    MAX_NOTE,
    MAX_SIGNATURES,
    KeyType,
    Signature,
    UnverifiedNote,
    VerifierKey,
    open_note,
    parse_note,
    write_note,
)
from certkit.tlog.tree import EMPTY_ROOT, Hash, leaf_hash
from tests.support.signers import LOG, OTHER, WITNESS, signer

if TYPE_CHECKING:
    from pathlib import Path


TEXT = Checkpoint("example.com/log", 7, leaf_hash(b"root")).text


def code(data: bytes, *keys: VerifierKey) -> str:
    with pytest.raises(CertkitError) as caught:
        open_note(data, keys)
    return caught.value.code


def test_the_example_of_the_specification(shared: Path) -> None:
    known = canonical.loads((shared / "vectors" / "known-answers.json").read_bytes())["signed_note"]
    key = VerifierKey.parse(known["vkey"])
    assert str(key) == known["vkey"]
    opened = open_note(known["note"].encode(), [key])
    assert opened.text == "This is an example message.\n"
    assert [one.key for one in opened.signed] == [key]
    assert code(known["note"].replace("message", "massage").encode(), key) == "tlog.signature"


def test_the_key_id_is_the_hash_of_name_type_and_key() -> None:
    public = LOG.key.public_key().public_bytes_raw()
    digest = hashlib.sha256(b"example.com/log\n\x01" + public).digest()
    assert LOG.vkey.key_id == digest[:4]
    assert LOG.witness_vkey.key_id == hashlib.sha256(b"example.com/log\n\x04" + public).digest()[:4]


@pytest.mark.parametrize("key", [LOG.vkey, LOG.witness_vkey], ids=["log", "witness"])
def test_a_key_is_read_as_it_is_written(key: VerifierKey) -> None:
    assert VerifierKey.parse(str(key)) == key


def test_text_and_keys_come_back() -> None:
    note = write_note("two\n\nparagraphs\n", [LOG.sign("two\n\nparagraphs\n")])
    opened = open_note(note, [LOG.vkey])
    assert opened.text == "two\n\nparagraphs\n"
    assert opened.signed[0].time is None


def test_signatures_by_others_are_ignored_and_are_not_enough() -> None:
    both = write_note(TEXT, [OTHER.sign(TEXT), LOG.sign(TEXT), LOG.sign(TEXT)])
    assert [one.key for one in open_note(both, [LOG.vkey]).signed] == [LOG.vkey]
    assert {one.key for one in open_note(both, [LOG.vkey, OTHER.vkey]).signed} == {LOG.vkey, OTHER.vkey}
    assert code(write_note(TEXT, [OTHER.sign(TEXT)]), LOG.vkey) == "tlog.unsigned"
    assert code(both) == "tlog.unsigned"


def test_one_bad_signature_by_a_known_key_refuses_the_note() -> None:
    bad = Signature(LOG.name, LOG.vkey.key_id, bytes(64))
    for lines in ([LOG.sign(TEXT), bad], [bad, LOG.sign(TEXT)], [OTHER.sign(TEXT), bad]):
        assert code(write_note(TEXT, lines), LOG.vkey, OTHER.vkey) == "tlog.signature"


def test_a_signature_of_another_length_is_none() -> None:
    whole = LOG.sign(TEXT).value
    for value in (whole[:-1], whole + b"\0", b"\0"):
        note = write_note(TEXT, [Signature(LOG.name, LOG.vkey.key_id, value)])
        assert code(note, LOG.vkey) == "tlog.signature"


def test_a_cosignature_covers_its_time() -> None:
    cosigned = WITNESS.cosign(TEXT, 1679315147)
    note = write_note(TEXT, [cosigned])
    (signed,) = open_note(note, [WITNESS.witness_vkey]).signed
    assert signed.time == 1679315147
    assert cosigned.value[:8] == struct.pack(">Q", 1679315147)
    later = Signature(cosigned.name, cosigned.key_id, struct.pack(">Q", 1679315148) + cosigned.value[8:])
    assert code(write_note(TEXT, [later]), WITNESS.witness_vkey) == "tlog.signature"


def test_of_two_cosignatures_by_one_key_the_first_counts_once_and_both_must_verify() -> None:
    early, late = (WITNESS.cosign(TEXT, time) for time in (5, 9))
    for lines, time in (((early, late), 5), ((late, early), 9)):
        opened = open_checkpoint(write_note(TEXT, [LOG.sign(TEXT), *lines]), LOG.vkey, [WITNESS.witness_vkey])
        assert [(one.key, one.time) for one in opened.cosigned] == [(WITNESS.witness_vkey, time)]
    false = Signature(late.name, late.key_id, late.value[:-1] + b"\0")
    assert code(write_note(TEXT, [early, false]), WITNESS.witness_vkey) == "tlog.signature"


def test_a_cosignature_later_than_the_format_allows_is_refused_though_it_verifies() -> None:
    note = write_note(TEXT, [WITNESS.cosign(TEXT, 2**63)])
    assert code(note, WITNESS.witness_vkey) == "tlog.signature"


def test_no_kind_of_signature_passes_for_the_other() -> None:
    plain, timed = WITNESS.sign(TEXT), WITNESS.cosign(TEXT, 5)
    for value, key in ((timed.value, WITNESS.vkey), (plain.value, WITNESS.witness_vkey)):
        note = write_note(TEXT, [Signature(WITNESS.name, key.key_id, value)])
        assert code(note, key) == "tlog.signature"


def test_size_limits() -> None:
    many = [Signature("a", b"1234", bytes([number])) for number in range(MAX_SIGNATURES)]
    assert len(parse_note(write_note("x\n", many)).signatures) == MAX_SIGNATURES
    with pytest.raises(InputError, match="65 signatures"):
        write_note("x\n", [*many, many[0]])
    with pytest.raises(InputError, match="bytes, limit"):
        write_note("x" * MAX_NOTE + "\n", many)


def test_a_text_that_is_no_note_text_is_not_written() -> None:
    for text in ("no newline", "tab\t\n", "bell\a\n", "return\r\n"):
        with pytest.raises(InputError):
            write_note(text, [LOG.sign(text)])


def test_a_checkpoint_comes_back_with_its_extension_lines() -> None:
    plain = Checkpoint("example.com/log", 7, leaf_hash(b"root"))
    extended = Checkpoint("example.com/log", 7, leaf_hash(b"root"), ("one", "two three"))
    for checkpoint in (plain, extended, Checkpoint("example.com/log", 0, EMPTY_ROOT)):
        opened = open_checkpoint(sign_checkpoint(checkpoint, LOG), LOG.vkey)
        assert opened.checkpoint == checkpoint
        assert opened.cosigned == ()


def test_witnesses_are_counted_and_cannot_stand_for_the_log() -> None:
    note = write_note(TEXT, [LOG.sign(TEXT), WITNESS.cosign(TEXT, 9)])
    opened = open_checkpoint(note, LOG.vkey, [WITNESS.witness_vkey, OTHER.witness_vkey])
    assert [(one.key, one.time) for one in opened.cosigned] == [(WITNESS.witness_vkey, 9)]
    with pytest.raises(MismatchError) as caught:
        open_checkpoint(write_note(TEXT, [WITNESS.cosign(TEXT, 9)]), LOG.vkey, [WITNESS.witness_vkey])
    assert caught.value.code == "tlog.unsigned"
    # A plain signature is no cosignature: it says nothing of when.
    plain = write_note(TEXT, [LOG.sign(TEXT), WITNESS.sign(TEXT)])
    assert open_checkpoint(plain, LOG.vkey, [WITNESS.vkey]).cosigned == ()


def test_a_log_cannot_speak_for_another() -> None:
    foreign = Checkpoint("example.com/other", 7, leaf_hash(b"root"))
    with pytest.raises(MismatchError) as caught:
        open_checkpoint(sign_checkpoint(foreign, LOG), LOG.vkey)
    assert caught.value.code == "tlog.origin"


def test_the_empty_log_has_the_root_of_nothing() -> None:
    with pytest.raises(InputError) as caught:
        parse_checkpoint(Checkpoint("a", 0, Hash(bytes(32))).text)
    assert caught.value.code == "tlog.checkpoint"


def test_the_key_types_that_are_read() -> None:
    assert {int(one) for one in KeyType} == {1, 4}


@given(
    st.text(st.sampled_from("a \n\t\N{EM DASH}\x7f"), max_size=8),
    st.lists(
        st.builds(
            Signature,
            st.sampled_from(["a", "", "a b", "a+b", "b\n"]),
            st.just(b"1234"),
            st.binary(max_size=2),
        ),
        max_size=3,
    ),
)
def test_what_is_written_can_be_read(text: str, signatures: list[Signature]) -> None:
    try:
        data = write_note(text, signatures)
    except InputError:
        data = (text + "\n" + "".join(one.line for one in signatures)).encode()
        assert not text.endswith("\n") or code(data) == "tlog.note"
    else:
        assert parse_note(data) == UnverifiedNote(text, tuple(signatures))


@pytest.mark.parametrize("name", ["", "two words", "a+b", "line\n"])
def test_what_cannot_name_a_key_signs_nothing(name: str) -> None:
    with pytest.raises(InputError) as caught:
        signer(name)
    assert caught.value.code == "tlog.key"
