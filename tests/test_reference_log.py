"""The reference log: it can be built again byte by byte, it is sound, and what was committed only grows."""

from __future__ import annotations

import shutil
import subprocess
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from certkit.ground import files
from certkit.registry.heads import head_of
from certkit.tlog.note import Signer, write_note
from tests import reference_log
from tests.support.registries import contents

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference") / "tree"
    folder.mkdir()
    assert reference_log.grow(folder) > 0
    return folder


def copied(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "copy")
    return tmp_path / "copy"


def test_it_is_built_the_same_every_time(built: Path, tmp_path: Path) -> None:
    reference_log.grow(tmp_path)
    assert contents(tmp_path) == contents(built)


def test_it_is_sound_and_goes_on_from_every_step(built: Path) -> None:
    sizes = [one.size for one in reference_log.remembered(built)]
    assert sizes == sorted(set(sizes))
    reports = reference_log.audited(built)
    assert [report.total for report in reports] == [0] * len(sizes)
    assert (reports[0].size, reports[0].passports) == (sizes[-1], 3)


def test_what_is_in_it_already_is_not_added_again(built: Path, tmp_path: Path) -> None:
    tree = copied(built, tmp_path)
    assert reference_log.grow(tree) == 0
    assert contents(tree) == contents(built)


def test_it_grows_where_the_program_issues_other_passports(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = copied(built, tmp_path)
    monkeypatch.setattr(reference_log, "VALID", timedelta(days=60))
    assert reference_log.grow(tree) >= reference_log.size(built)
    before, after = contents(built), contents(tree)
    old = before.pop("checkpoint")
    assert before.items() <= after.items(), "whatever was there is there, byte for byte"
    reports = reference_log.audited(tree, reference_log.signed(old))
    assert [report.total for report in reports] == [0] * len(reports)
    assert reports[0].passports == 6
    monkeypatch.undo()
    assert reference_log.grow(tree) > 0, "the way back is a further step too"


def test_a_tree_that_was_changed_is_not_written_on(built: Path, tmp_path: Path) -> None:
    tree = copied(built, tmp_path)
    (bundle,) = (tree / "tile" / "entries").rglob(str(reference_log.size(tree)))
    data = bundle.read_bytes()
    bundle.write_bytes(data.replace(b"e", b"f", 1))
    before = contents(tree)
    with pytest.raises(SystemExit):
        reference_log.grow(tree)
    assert contents(tree) == before


def test_a_log_that_lost_its_past_is_found(built: Path, tmp_path: Path) -> None:
    other = copied(built, tmp_path)
    first = min((other / "checkpoints").iterdir())
    forged = head_of(first.read_bytes())
    changed = Signer(forged.origin, reference_log.LOG)
    text = forged.text.replace(forged.text.split("\n")[2], "A" * 43 + "=")
    files.write(first, write_note(text, [changed.sign(text)]))
    codes = {finding.code for report in reference_log.audited(other) for finding in report.findings}
    assert codes == {"registry.rollback"}


def test_what_is_committed_is_sound_and_goes_on_from_every_checkpoint_beside_it() -> None:
    tree = reference_log.TREE
    reports = reference_log.audited(tree)
    assert [finding for report in reports for finding in report.findings] == []
    newest = files.read(tree / "checkpoint", limit=1 << 18)
    assert reference_log.remembered(tree)[-1] == head_of(newest)
    assert sum(map(len, contents(tree).values())) < 2_000_000


def git(*arguments: str) -> bytes:
    return subprocess.run(
        ["git", "-C", reference_log.ROOT, *arguments], capture_output=True, check=True
    ).stdout


def test_what_is_committed_goes_on_from_every_state_that_git_remembers() -> None:
    """Who rewrites the tree can rewrite the checkpoints beside it, and not what others have cloned.

    Of an earlier edition, which is another log, nothing is asked.
    """
    tree = reference_log.TREE
    if shutil.which("git") is None or not (reference_log.ROOT / ".git").exists():
        pytest.skip("no git history here; the checkpoints in the tree are looked at by the test above")
    # A shallow clone shows the states that it holds.
    commits = git("log", "--format=%H", "--diff-filter=AM", "--", "registry/checkpoint").decode().split()
    assert commits
    notes = [git("show", f"{commit}:registry/checkpoint") for commit in commits]
    origin = head_of(files.read(tree / "checkpoint", limit=1 << 18)).origin
    heads = [reference_log.signed(data) for data in notes if head_of(data).origin == origin]
    assert set(heads) <= set(reference_log.remembered(tree)), "none was dropped from checkpoints/"
    reports = reference_log.audited(tree, *heads)
    assert [finding for report in reports for finding in report.findings] == []
