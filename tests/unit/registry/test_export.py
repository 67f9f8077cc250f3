"""The exported tree: what is written, when, and over what; and its audit from nothing but files."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from typing import TYPE_CHECKING

import pytest

from certkit.ground import files
from certkit.ground.errors import CertkitError, InputError, MismatchError, UsageError
from certkit.ground.progress import SILENT
from certkit.registry.publish import Exported
from certkit.registry.publish import export as write
from certkit.registry.writer import Registry
from certkit.tlog.checkpoint import open_checkpoint
from tests.support import merkle
from tests.support.notes import extend, following, noted
from tests.support.registries import AT, LOG_KEY, append, audited, contents, filled, flips, new, passport
from tests.support.tile_tree import definition

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.registry.audit import RegistryAudit
    from certkit.tlog.note import VerifierKey


def export(folder: Path, out: Path, *, passports: bool = False) -> Exported:
    return write(folder, out, passports=passports, progress=SILENT)


def codes(report: RegistryAudit) -> set[str]:
    return {one.code for one in report.findings}


def without_checkpoint(out: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(out).items() if name != "checkpoint"}


def is_whole(out: Path, vkey: VerifierKey, entries: list[bytes]) -> bool:
    head = open_checkpoint((out / "checkpoint").read_bytes(), vkey).checkpoint
    return (head.size, head.root) == (len(entries), merkle.mth(entries))


@pytest.mark.parametrize("count", [1, 255, 256, 257, 600])
def test_the_files_are_those_of_the_specification(tmp_path: Path, count: int) -> None:
    vkey, entries = noted(tmp_path / "r", count)
    out = tmp_path / "out"
    done = export(tmp_path / "r", out)
    assert without_checkpoint(out) == definition(entries)
    assert is_whole(out, vkey, entries)
    assert done == Exported(vkey.name, count, None, len(definition(entries)) + 1)
    assert (audited(out, vkey).total, audited(out, vkey).notes) == (0, ())


def test_an_empty_log_has_a_checkpoint_alone(tmp_path: Path) -> None:
    vkey = new(tmp_path / "r")
    export(tmp_path / "r", tmp_path / "out")
    assert list(contents(tmp_path / "out")) == ["checkpoint"]
    assert (audited(tmp_path / "out", vkey).total, audited(tmp_path / "out", vkey).size) == (0, 0)


def test_an_export_again_writes_only_what_changed(tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey, entries = noted(folder, 300)
    export(folder, out)
    before = {path: path.stat().st_ino for path in out.rglob("*") if path.is_file()}
    assert export(folder, out).written == 0
    assert all(path.stat().st_ino == kept for path, kept in before.items())
    more = following(entries, 400)
    extend(folder, vkey.name, more)
    done = export(folder, out)
    assert (done.size, done.before) == (700, 300)
    assert done.written == 2 * 2 + 1 + 1, "two tiles with bundles, one above, the checkpoint"
    full = out / "tile" / "0" / "000"
    assert full.stat().st_ino == before[full], "a full tile is never touched again"
    assert without_checkpoint(out) == definition(entries) | definition(entries + more), "narrower forms stay"
    assert is_whole(out, vkey, entries + more)
    assert (audited(out, vkey).total, audited(out, vkey).notes) == (0, ())


def test_a_tile_that_is_not_full_keeps_its_narrower_forms(tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey, entries = noted(folder, 3)
    export(folder, out)
    more = following(entries, 4)
    extend(folder, vkey.name, more)
    export(folder, out)
    assert set(contents(out)) == {
        "checkpoint", "tile/0/000.p/3", "tile/0/000.p/7", "tile/entries/000.p/3", "tile/entries/000.p/7",
    }  # fmt: skip
    assert (audited(out, vkey).total, audited(out, vkey).notes) == (0, ())


def test_what_is_missing_is_written_again(tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey, _ = noted(folder, 300)
    export(folder, out)
    (out / "tile" / "entries" / "000").unlink()
    assert codes(audited(out, vkey)) >= {"registry.leaf"}
    assert export(folder, out).written == 1
    assert audited(out, vkey).total == 0


def test_what_is_there_is_compared_before_an_export_says_it_is_up_to_date(tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey, entries = noted(folder, 2)
    export(folder, out)
    extend(folder, vkey.name, following(entries, 1))
    export(folder, out)
    for name in ("tile/0/000.p/3", "tile/entries/000.p/3"):
        data = (out / name).read_bytes()
        for changed in (*flips(data), b"", data[:-1], data + b"\0"):
            (out / name).write_bytes(changed)
            error = refusal(folder, out)
            assert error.code == "registry.export"
            assert f"{name} is there" in str(error)
        (out / name).unlink()
        assert export(folder, out).written == 1
        (out / name).write_bytes(data)
    assert export(folder, out).written == 0
    assert audited(out, vkey).total == 0


@pytest.mark.parametrize("name", ["tile/0/000", "tile/entries/001", "tile/1/000.p/2"])
def test_a_changed_tile_stops_an_export_that_would_add_others(tmp_path: Path, name: str) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey, entries = noted(folder, 512)
    export(folder, out)
    data = (out / name).read_bytes()
    (out / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    extend(folder, vkey.name, following(entries, 1))
    checkpoint = (out / "checkpoint").read_bytes()
    with pytest.raises(MismatchError, match=f"{name} is there and is not this log's"):
        export(folder, out)
    assert (out / "checkpoint").read_bytes() == checkpoint
    (out / name).unlink()
    export(folder, out)
    assert audited(out, vkey).total == 0


def test_a_changed_passport_stops_an_export(tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey = filled(folder, 2)
    export(folder, out, passports=True)
    (blob,) = (out / "blobs").rglob(hashlib.sha256(passport(1)).hexdigest())
    blob.write_bytes(passport(0))
    with pytest.raises(MismatchError, match="is there and is not this log's"):
        export(folder, out, passports=True)
    blob.unlink()
    export(folder, out, passports=True)
    assert audited(out, vkey).total == 0


def test_passports_are_written_when_asked(tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey = filled(folder, 2)
    export(folder, out)
    assert not (out / "blobs").exists()
    report = audited(out, vkey)
    assert (report.total, report.passports, len(report.not_shown)) == (0, 2, 6)
    assert export(folder, out, passports=True).written == 2
    assert contents(out / "blobs") == contents(folder / "blobs")
    report = audited(out, vkey)
    assert (report.total, report.notes, len(report.not_shown)) == (0, (), 5)
    append(folder, passport(2))
    # an entry, a tile and a checkpoint, and the passport without which the tree would not be whole
    assert export(folder, out).written == 4
    assert audited(out, vkey).total == 0
    (blob,) = (out / "blobs").rglob(hashlib.sha256(passport(1)).hexdigest())
    blob.write_bytes(passport(0))
    assert codes(audited(out, vkey)) == {"registry.blob-changed"}


def refusal(folder: Path, out: Path) -> CertkitError:
    before = contents(out)
    with pytest.raises(CertkitError) as caught:
        export(folder, out)
    assert contents(out) == before
    return caught.value


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    noted(folder, 2)
    out.mkdir()
    (out / "thesis.doc").write_bytes(b"x")
    assert refusal(folder, out).code == "registry.export"
    (out / "checkpoint").write_bytes(b"x")
    assert refusal(folder, out).code == "registry.export"
    assert refusal(folder, folder).code == "usage.option"


def test_a_tree_of_another_log_is_left_alone(tmp_path: Path) -> None:
    noted(tmp_path / "r", 2)
    export(tmp_path / "r", tmp_path / "out")
    filled(tmp_path / "fork", 5)  # the same origin and key, and other entries
    assert refusal(tmp_path / "fork", tmp_path / "out").code == "registry.export"
    Registry.init(tmp_path / "other", "other", LOG_KEY, at=AT)
    error = refusal(tmp_path / "other", tmp_path / "out")
    assert error.code == "registry.export"
    assert "certkit.test/" in str(error)


def test_a_tree_that_is_ahead_is_left_alone(tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey, entries = noted(folder, 2)
    shutil.copytree(folder, tmp_path / "old")
    extend(folder, vkey.name, following(entries, 1))
    export(folder, out)
    error = refusal(tmp_path / "old", out)
    assert (error.code, error.exit_code) == ("registry.export", 7)


def test_tiles_without_a_checkpoint_are_taken_up_if_they_are_this_logs(tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey, _ = noted(folder, 300)
    export(folder, out)
    (out / "checkpoint").unlink()
    export(folder, out)
    assert audited(out, vkey).total == 0
    (out / "checkpoint").unlink()
    (out / "tile" / "0" / "000").write_bytes(b"x")
    error = refusal(folder, out)
    assert error.code == "registry.export"
    assert "tile/0/000" in str(error)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE leaf SET entry = x'00' WHERE idx = 7",
        "DELETE FROM leaf WHERE idx = 299",
        "UPDATE tile SET hashes = zeroblob(8192) WHERE level = 0 AND n = 0",
        "UPDATE tile SET hashes = zeroblob(32) WHERE level = 1",
        "DELETE FROM tile WHERE level = 0 AND n = 1",
        "UPDATE checkpoint SET note = replace(note, '300', '299')",
    ],
)
def test_nothing_is_exported_that_does_not_lead_to_the_signed_root(tmp_path: Path, statement: str) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    noted(folder, 300)
    connection = sqlite3.connect(folder / "registry.db")
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(MismatchError) as caught:
        export(folder, out)
    assert caught.value.code in {"registry.inconsistent", "tlog.tile"}
    assert not (out / "checkpoint").exists()


def test_two_exports_do_not_meet(tmp_path: Path) -> None:
    noted(tmp_path / "r", 2)
    out = tmp_path / "out"
    out.mkdir()
    with files.locked(out), pytest.raises(UsageError) as caught:
        export(tmp_path / "r", out)
    assert caught.value.code == "registry.busy"
    export(tmp_path / "r", out)


def test_changed_bytes_of_every_file(tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey, entries = noted(folder, 1)
    export(folder, out)
    extend(folder, vkey.name, following(entries, 1))
    export(folder, out)
    assert audited(out, vkey).total == 0
    # The narrower form of a tile is nothing that the present checkpoint needs.
    for path in [path for path in out.rglob("*") if path.is_file() and path.name != "1"]:
        data = path.read_bytes()
        for changed in (*flips(data), b"", data[:-1], data + b"\0"):
            path.write_bytes(changed)
            assert audited(out, vkey).total, path
        path.unlink()
        name = path.relative_to(out).as_posix()
        if name == "checkpoint":
            with pytest.raises(InputError):
                audited(out, vkey)
        else:
            assert audited(out, vkey).total, name
        path.write_bytes(data)
    assert audited(out, vkey).total == 0


def test_a_file_in_a_wrong_place(tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey, _ = noted(folder, 600)
    export(folder, out)
    first, second = out / "tile" / "entries" / "000", out / "tile" / "entries" / "001"
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)
    assert {"registry.tile-differs", "registry.checkpoint"} <= codes(audited(out, vkey))


def test_what_lies_beside_hurts_nobody(tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey, _ = noted(folder, 3)
    export(folder, out)
    (out / "index.html").write_bytes(b"x")
    (out / "tile" / "0" / ".000.p.tmp").write_bytes(b"x")
    (out / "tile" / "0" / "007").write_bytes(b"x")
    assert audited(out, vkey).total == 0


def test_a_reader_takes_a_narrow_tile_from_the_full_one(tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey, entries = noted(folder, 250)
    export(folder, out)
    old = (out / "checkpoint").read_bytes()
    extend(folder, vkey.name, following(entries, 10))
    export(folder, out)
    (out / "checkpoint").write_bytes(old)  # as read just before the newer one was written
    report = audited(out, vkey)
    assert (report.total, report.size) == (0, 250)


def test_a_size_that_nobody_could_hold_is_no_trouble(tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey, _ = noted(folder, 3)
    export(folder, out)
    note = (out / "checkpoint").read_bytes()
    (out / "checkpoint").write_bytes(note.replace(b"\n3\n", b"\n9223372036854775807\n"))
    assert {"registry.leaf", "registry.checkpoint"} <= codes(audited(out, vkey))


def test_no_name_becomes_a_path(tmp_path: Path) -> None:
    folder, out = tmp_path / "a" / "r", tmp_path / "b" / "out"
    vkey = new(folder)
    for number, lineage in enumerate(["../../escaped", "/etc/passwd", "a\0b", "tile/0/000"]):
        append(folder, passport(number, lineage=lineage))
    export(folder, out, passports=True)
    assert audited(out, vkey).total == 0
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}
    names = {"checkpoint", "tile/0/000.p/4", "tile/entries/000.p/4"}
    assert {name for name in contents(out) if not name.startswith("blobs/")} == names
