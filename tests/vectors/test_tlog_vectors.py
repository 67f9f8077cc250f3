"""The language-neutral cases of tests/vectors/tlog: what others signed, and what no reader may accept."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from certkit.ground import canonical
from certkit.ground.errors import InputError, MismatchError
from certkit.tlog import checkpoint
from certkit.tlog.checkpoint import parse_checkpoint
from certkit.tlog.note import VerifierKey, open_note, parse_note

FOLDER: Final = Path(__file__).parent / "tlog"
PUBLISHED: Final = canonical.loads((FOLDER / "published.json").read_bytes())["cases"]
REFUSED: Final = canonical.loads((FOLDER / "refused.json").read_bytes())
ROOT: Final = "A" * 43 + "="
SIG: Final = "— a AAAAAAA=\n"


@pytest.mark.parametrize("case", PUBLISHED, ids=lambda case: case["name"][:30])
def test_what_others_signed_verifies(case: dict[str, Any]) -> None:
    keys = [VerifierKey.parse(text) for text in case["keys"]]
    assert [str(key) for key in keys] == case["keys"]
    opened = open_note(case["input"].encode(), keys)
    assert [[one.key.name, one.time] for one in opened.signed] == case["signed"]
    if "size" in case:
        checkpoint = parse_checkpoint(opened.text)
        assert checkpoint.size == case["size"]
        assert checkpoint.text == opened.text
    for key in keys:
        with pytest.raises(MismatchError) as caught:
            open_note(("X" + case["input"]).encode(), [key])
        assert caught.value.code == "tlog.signature"


def _cases(kind: str) -> list[Any]:
    return [pytest.param(case["input"], id=case["name"]) for case in REFUSED[kind]]


def _filled(text: str) -> str:
    return text.replace("ROOT", ROOT).replace("SIG", SIG)


@pytest.mark.parametrize("text", _cases("key"))
def test_keys(text: str) -> None:
    with pytest.raises(InputError) as caught:
        VerifierKey.parse(text)
    assert caught.value.code == "tlog.key"


@pytest.mark.parametrize("text", _cases("note_form"))
def test_notes(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_note(_filled(text).encode())
    assert caught.value.code == "tlog.note"


@pytest.mark.parametrize("text", _cases("checkpoint"))
def test_checkpoints(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_checkpoint(_filled(text))
    assert caught.value.code == "tlog.checkpoint"


@pytest.mark.parametrize("text", _cases("proof"))
def test_proofs(text: str) -> None:
    with pytest.raises(InputError) as caught:
        checkpoint.parse_proof(_filled(text).encode())
    assert caught.value.code == "tlog.proof"


def test_the_stand_ins_are_themselves_accepted() -> None:
    # Else a case could be refused for its stand-in and not for what its name says.
    assert parse_note(_filled("text\n\nSIG").encode()).text == "text\n"
    assert parse_checkpoint(_filled("origin\n7\nROOT\n")).size == 7
    text = "c2sp.org/tlog-proof@v1\nextra AAAA\nindex 5\nROOT\n\ntext\n\nSIG"
    assert checkpoint.parse_proof(_filled(text).encode()).index == 5


def test_a_note_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        parse_note(b"\xff\n\n" + SIG.encode())
    assert caught.value.code == "tlog.note"
