"""The reference log: it can be built again byte by byte, it is sound, and what was committed only grows."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from certkit import files
from certkit.registry.heads import read
from certkit.tlog.note import Signer, write_note
from tests import reference_log
from tests.unit.registry.build import contents

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference") / "tree"
    reference_log.build(folder)
    return folder


def test_it_is_built_the_same_every_time(built: Path, tmp_path: Path) -> None:
    reference_log.build(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(built)


def test_it_is_sound_and_goes_on_from_every_step(built: Path) -> None:
    sizes = [one.size for one in reference_log.remembered(built)]
    assert sizes == sorted(set(sizes))
    reports = reference_log.audited(built)
    assert [report.total for report in reports] == [0] * len(sizes)
    assert (reports[0].size, reports[0].passports) == (sizes[-1], 3)


def test_a_log_that_lost_its_past_is_found(built: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(built, other)
    first = min((other / "checkpoints").iterdir())
    forged = read(first.read_bytes())
    changed = Signer(forged.origin, reference_log.LOG)
    text = forged.text.replace(forged.text.split("\n")[2], "A" * 43 + "=")
    files.write(first, write_note(text, [changed.sign(text)]))
    codes = {finding.code for report in reference_log.audited(other) for finding in report.findings}
    assert codes == {"registry.rollback"}


def test_what_is_committed_is_sound_and_only_grows() -> None:
    if not (reference_log.TREE / "checkpoint").exists():
        pytest.skip("not generated yet: python -m tests.reference_log --write")
    reports = reference_log.audited(reference_log.TREE)
    assert [finding for report in reports for finding in report.findings] == []
    newest = files.read(reference_log.TREE / "checkpoint", limit=1 << 18)
    assert reference_log.remembered(reference_log.TREE)[-1] == read(newest)
