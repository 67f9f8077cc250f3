"""Links in an exported tree are never followed, neither to write nor to read."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from certkit.errors import CertkitError, InputError, MismatchError
from certkit.progress import SILENT
from certkit.registry.export import export
from certkit.registry.reader import opened
from tests.support.notes import extend, following, noted
from tests.support.registries import audited, contents, filled, passport

if TYPE_CHECKING:
    from pathlib import Path

SHA256 = hashlib.sha256(passport(0)).hexdigest()
BLOB = f"blobs/{SHA256[:2]}"


def refused(folder: Path, out: Path) -> MismatchError:
    with pytest.raises(MismatchError) as caught:
        export(folder, out, passports=True, progress=SILENT)
    assert caught.value.code == "registry.export"
    return caught.value


@pytest.mark.parametrize(
    "name",
    ["tile", "blobs", "tile/0", "tile/0/000.p", "tile/entries/000.p", "tile/9/x/y", BLOB, "index.html"],
)
def test_nothing_is_written_into_a_tree_of_which_a_part_is_a_link(tmp_path: Path, name: str) -> None:
    folder, out, elsewhere = tmp_path / "r", tmp_path / "out", tmp_path / "elsewhere"
    filled(folder, 2)
    elsewhere.mkdir()
    (out / name).parent.mkdir(parents=True)
    (out / name).symlink_to(elsewhere)
    assert f"{name} is a link" in str(refused(folder, out))
    assert (contents(elsewhere), [path for path in out.rglob("*") if path.is_file()]) == ({}, [])


@pytest.mark.parametrize("name", ["checkpoint", "tile/0/000.p/2", "tile/entries/000.p/2", f"{BLOB}/{SHA256}"])
@pytest.mark.parametrize("same", [True, False])
def test_a_file_that_is_a_link_is_none_of_the_tree(tmp_path: Path, name: str, *, same: bool) -> None:
    folder, out, elsewhere = tmp_path / "r", tmp_path / "out", tmp_path / "elsewhere"
    filled(folder, 2)
    export(folder, out, passports=True, progress=SILENT)
    (out / name).rename(elsewhere)
    (out / name).symlink_to(elsewhere if same else tmp_path / "nowhere")
    before = elsewhere.read_bytes()
    assert f"{name} is a link" in str(refused(folder, out))
    assert (elsewhere.read_bytes(), (tmp_path / "nowhere").exists()) == (before, False)


def test_a_folder_that_cannot_be_looked_into_is_not_written_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    filled(folder, 2)
    (out / "tile" / "0").mkdir(parents=True)
    scan = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("/tile/0"):
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(CertkitError) as caught:
        export(folder, out, passports=False, progress=SILENT)
    assert caught.value.code == "file.unreadable"
    monkeypatch.undo()
    assert contents(out) == {}


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("tile", {"registry.leaf", "registry.checkpoint"}),
        ("tile/entries", {"registry.leaf", "registry.checkpoint"}),
        ("tile/entries/000.p/2", {"registry.leaf", "registry.checkpoint"}),
        ("tile/0/000.p", {"registry.tile-differs"}),
        (BLOB, {"registry.blob-missing"}),
        (f"{BLOB}/{SHA256}", {"registry.blob-missing"}),
        ("blobs", set()),
    ],
)
def test_an_audit_reads_nothing_through_a_link(tmp_path: Path, name: str, codes: set[str]) -> None:
    folder, out, elsewhere = tmp_path / "r", tmp_path / "out", tmp_path / "elsewhere"
    vkey = filled(folder, 2)
    export(folder, out, passports=True, progress=SILENT)
    assert audited(out, vkey).findings == ()
    (out / name).rename(elsewhere)
    (out / name).symlink_to(elsewhere)
    report = audited(out, vkey)
    assert codes <= {one.code for one in report.findings}
    assert bool(codes) == bool(report.total)
    assert f"{name} is a link, and not followed" in report.notes
    if name == "blobs":
        assert any("passports" in one for one in report.not_shown)


def test_a_checkpoint_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey = filled(folder, 1)
    export(folder, out, passports=False, progress=SILENT)
    (out / "checkpoint").rename(tmp_path / "elsewhere")
    (out / "checkpoint").symlink_to(tmp_path / "elsewhere")
    (found,) = [one for one in audited(out, vkey).findings if one.code == "registry.checkpoint"]
    assert "is a link, not a file" in found.message
    with pytest.raises(InputError, match="is a link, not a file"), opened(out) as source:
        source.note()


def test_a_tree_that_is_named_by_a_link_is_one(tmp_path: Path) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey, entries = noted(folder, 2)
    (tmp_path / "real").mkdir()
    out.symlink_to(tmp_path / "real")
    export(folder, out, passports=False, progress=SILENT)
    extend(folder, vkey.name, following(entries, 1))
    assert export(folder, out, passports=False, progress=SILENT).size == 3
    assert audited(out, vkey).findings == ()
