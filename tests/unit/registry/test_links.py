"""Links in an exported tree are never followed, neither to write nor to read."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from certkit.ground.errors import InputError
from certkit.ground.progress import SILENT
from certkit.registry.publish import export
from certkit.registry.reader import opened
from tests.support.notes import extend, following, noted
from tests.support.registries import audited, filled, passport

if TYPE_CHECKING:
    from pathlib import Path

SHA256 = hashlib.sha256(passport(0)).hexdigest()
BLOB = f"blobs/{SHA256[:2]}"


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
