"""Cosignatures: which are taken in, where they stand then, and that nobody is heard twice."""

from __future__ import annotations

import base64
import hashlib
import shutil
import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from certkit.ground.errors import CertkitError
from certkit.ground.progress import SILENT
from certkit.registry.audit import audit
from certkit.registry.publish import export
from certkit.registry.status import write as status_file
from certkit.registry.writer import Registry, gather
from certkit.tlog.checkpoint import Checkpoint, Quorum, parse_proof, sign_checkpoint
from certkit.tlog.note import Signer, VerifierKey
from tests.support.registries import (
    AT,
    LOG_KEY,
    SUBMITTER,
    append,
    check,
    contents,
    filled,
    heads,
    opened,
    passport,
    proof_of,
    submitters,
)
from tests.support.witnesses import KEYS, TIME, A, B, line, note, stored, taken, text, witness

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    filled(tmp_path / "r", 3)
    return tmp_path / "r"


def test_they_stand_below_the_checkpoint_wherever_it_is_handed_out(folder: Path, tmp_path: Path) -> None:
    plain = note(folder)
    whole = plain + line(text(folder), "a.example/w", A, TIME - 5)
    found = taken(folder, whole, line(text(folder), "b.example/w", B, TIME))
    assert [(one.key, one.time) for one in found.cosigned] == [(KEYS[0], TIME - 5), (KEYS[1], TIME)]
    expected = whole + line(text(folder), "b.example/w", B, TIME)
    assert note(folder) == expected
    with Registry.open(folder) as registry:
        proof = registry.prove(1).to_bytes()
    assert proof.endswith(expected)
    out = tmp_path / "out"
    export(folder, out, passports=True, progress=SILENT)
    assert (out / "checkpoint").read_bytes() == expected
    data = status_file(folder, 0, key=LOG_KEY, heads=heads(folder), at=AT)
    assert b"b.example/w" in data
    quorum = Quorum.of(2, map(str, KEYS))
    log = Signer(found.checkpoint.origin, LOG_KEY).vkey
    assert parse_proof(proof).checkpoint == expected
    for place in (folder, out):
        report = audit(place, log=log, submitters=submitters(), check=check, quorum=quorum)
        assert report.findings == ()
        assert "2026-03-01T11:59:55Z" in report.not_shown[0], "two vouch since the earlier of both"


def test_a_tree_that_was_exported_before_is_brought_up_to_date(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(folder, out, passports=False, progress=SILENT)
    before = contents(out)
    taken(folder, line(text(folder), "a.example/w", A, TIME))
    assert export(folder, out, passports=False, progress=SILENT).written == 1
    assert contents(out) == before | {"checkpoint": note(folder)}


def test_an_export_gives_the_cosignatures_that_the_registry_keeps(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    taken(folder, line(text(folder), "a.example/w", A, TIME))
    export(folder, out, passports=False, progress=SILENT)
    by_host = line(text(folder), "a.example/w", A, TIME - 9) + line(text(folder), "c.example", B, TIME)
    (out / "checkpoint").write_bytes(note(folder) + by_host)
    assert export(folder, out, passports=False, progress=SILENT).written == 1
    assert (out / "checkpoint").read_bytes() == note(folder)
    append(folder, passport(9))
    export(folder, out, passports=False, progress=SILENT)
    assert (out / "checkpoint").read_bytes() == note(folder)


def refused(folder: Path, data: bytes, **more: tuple[VerifierKey, ...]) -> str:
    before = contents(folder)
    with pytest.raises(CertkitError) as caught:
        taken(folder, line(text(folder), "b.example/w", B, TIME), data, **more)
    assert stored(folder) == [], "one that is refused keeps all others out"
    assert contents(folder) == before
    return caught.value.code


def test_one_about_another_log_or_state_is_refused(folder: Path) -> None:
    own = text(folder)
    origin, size, root = own.splitlines()
    for lines, code in (
        (("example.com/other", size, root), "tlog.origin"),
        ((origin, "2", root), "registry.cosignature"),
        ((origin, "4", root), "registry.cosignature"),
        ((origin, size, base64.b64encode(b"\1" * 32).decode()), "registry.cosignature"),
        ((origin, size, root, "an extension"), "registry.cosignature"),
    ):
        other = "".join(f"{one}\n" for one in lines)
        data = other.encode() + b"\n" + line(other, "a.example/w", A, TIME)
        assert refused(folder, data) == code
        if lines[1] != size:
            with pytest.raises(CertkitError, match=f"cosigned over {lines[1]} entries"):
                taken(folder, data)
        # Nor does it pass for one of ours where it comes without the text that it is about.
        assert refused(folder, line(other, "a.example/w", A, TIME)) == "tlog.signature"


def test_one_that_is_false_is_refused(folder: Path) -> None:
    own = text(folder)
    good = line(own, "a.example/w", A, TIME)
    raw = bytearray(base64.b64decode(good.split()[2]))
    raw[11] ^= 1  # the last byte of the time
    later = b" ".join([*good.split()[:2], base64.b64encode(raw)]) + b"\n"
    assert refused(folder, later) == "tlog.signature"
    assert refused(folder, line(own, "a.example/w", A, 0)) == "registry.cosignature"
    ahead = int((AT + timedelta(hours=1)).timestamp())
    assert refused(folder, line(own, "a.example/w", A, ahead)) == "registry.cosignature"
    assert refused(folder, line(own, "a.example/w", A, 2**63)) == "tlog.signature"


def test_one_by_nobody_known_is_refused_and_passed_over_beside_a_known_one(folder: Path) -> None:
    own = text(folder)
    stranger = line(own, "c.example/w", A, TIME)
    assert refused(folder, stranger) == "tlog.unsigned"
    assert refused(folder, line(own, "a.example/w", B, TIME)) == "tlog.unsigned", "the name is no key"
    assert refused(folder, line(own, "a.example/w", A, TIME, kind=b"\1")) == "tlog.unsigned"
    assert refused(folder, note(folder)) == "tlog.unsigned", "nobody but the log itself"
    taken(folder, note(folder) + stranger + line(own, "a.example/w", A, TIME))
    assert b"c.example" not in note(folder)


def test_a_log_is_no_witness_of_itself(folder: Path) -> None:
    own = line(text(folder), "w.example", LOG_KEY, TIME)
    assert refused(folder, own, witnesses=(*KEYS, witness("w.example", LOG_KEY))) == "tlog.unsigned"


def test_what_is_no_note_is_refused(folder: Path) -> None:
    for data in (
        b"",
        b"words\n",
        "\N{EM DASH} a.example/w\n".encode(),
        "\N{EM DASH} a b".encode(),
        b"\xff\n",
    ):
        assert refused(folder, data) == "tlog.note"
    many = b"".join(line(text(folder), f"{number}.example", A, TIME) for number in range(65))
    assert refused(folder, many) == "tlog.note"


def test_of_one_key_the_latest_stands_and_no_other(folder: Path) -> None:
    own = text(folder)
    both = line(own, "a.example/w", A, TIME - 2) + line(own, "a.example/w", A, TIME - 9)
    assert [one.time for one in taken(folder, both).cosigned] == [TIME - 2]
    for time, stands in ((TIME - 3, TIME - 2), (TIME - 1, TIME - 1)):
        found = taken(folder, line(own, "a.example/w", A, time))
        assert [one.time for one in found.cosigned] == [stands]
    assert note(folder).count(b"a.example/w") == 1
    # Another policy may know the key by another name; it stays one voice.
    renamed = line(own, "z.example", A, TIME)
    taken(folder, renamed, witnesses=(witness("z.example", A),))
    assert stored(folder) == [(3, str(witness("z.example", A)))]
    assert note(folder).count("\N{EM DASH}".encode()) == 2


def test_a_new_entry_makes_a_checkpoint_that_nobody_has_cosigned(folder: Path) -> None:
    taken(folder, line(text(folder), "a.example/w", A, TIME))
    proof = proof_of(folder, append(folder, passport(9)))
    assert b"a.example" not in note(folder) + proof.to_bytes()
    taken(folder, line(text(folder), "b.example/w", B, TIME))
    assert stored(folder) == [(4, str(KEYS[1]))]


def test_an_older_copy_of_the_log_gathers_none(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    append(folder, passport(9))
    with (
        pytest.raises(CertkitError) as caught,
        Registry.open(copy, heads=heads(folder)) as registry,
    ):
        gather(registry, [line(text(copy), "a.example/w", A, TIME)], witnesses=KEYS, at=AT)
    assert caught.value.code == "registry.rollback"
    assert stored(copy) == []


def test_the_empty_log_can_be_cosigned(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    filled(folder, 0)
    empty = Checkpoint(text(folder).splitlines()[0], 0, hashlib.sha256().digest())  # type: ignore[arg-type]
    assert note(folder) == sign_checkpoint(empty, Signer(empty.origin, LOG_KEY))
    assert len(taken(folder, line(empty.text, "a.example/w", A, TIME)).cosigned) == 1


def test_appending_goes_on_over_a_cosigned_checkpoint(folder: Path) -> None:
    with opened(folder) as registry:
        for number in range(20, 23):
            gather(registry, [line(text(folder), "a.example/w", A, TIME)], witnesses=KEYS, at=AT)
            registry.append(passport(number), check=check, submitter=SUBMITTER, log_key=LOG_KEY, at=AT)
    assert len(stored(folder)) == 1


def test_a_log_that_contradicts_itself_gathers_none(folder: Path) -> None:
    data = line(text(folder), "a.example/w", A, TIME)
    with closing(sqlite3.connect(folder / "registry.db", isolation_level=None)) as connection:
        connection.execute("UPDATE tile SET hashes = zeroblob(length(hashes))")
    assert refused(folder, data) == "registry.inconsistent"


def test_a_time_to_come_or_none_vouches_for_nothing(folder: Path) -> None:
    log = Signer(text(folder).splitlines()[0], LOG_KEY).vkey
    plain = note(folder)
    for time, codes in (
        (TIME, []),
        (0, ["registry.witnesses"]),
        (TIME + 10**8, ["registry.witnesses"]),
        (2**62, ["registry.witnesses"]),
    ):
        with closing(sqlite3.connect(folder / "registry.db", isolation_level=None)) as connection:
            data = plain + line(text(folder), "a.example/w", A, time)
            connection.execute("UPDATE checkpoint SET note = ?", (data,))
        report = audit(
            folder,
            log=log,
            submitters=submitters(),
            check=check,
            quorum=Quorum.of(1, [str(KEYS[0])]),
            at=AT,
        )
        assert [one.code for one in report.findings] == codes
        audit(folder, log=log, submitters=submitters(), check=check, quorum=Quorum.of(1, [str(KEYS[0])]))
