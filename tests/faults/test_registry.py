"""A registry whose writer is killed, starved of disk, or not alone."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from certkit.ground.errors import MismatchError, UsageError
from certkit.registry import log as store
from certkit.registry.writer import Registry
from tests.faults.kills import ids, kill, start
from tests.support.registries import (
    AT,
    LOG_KEY,
    SUBMITTER,
    append,
    audited,
    check,
    contents,
    digest,
    filled,
    new,
    opened,
    passport,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
KILLS = 4  # `python -m tests.faults.kills` does 200


def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    found = kill(folder, KILLS)
    assert (found.killed, found.lost, found.findings) == (KILLS, 0, 0)
    assert found.logged >= found.acknowledged >= KILLS
    # What the dead left behind does not stop the living.
    assert append(folder, passport(10**6)).index == found.logged


def test_writers_side_by_side(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    # Every passport is submitted by two of the four, in the same order and at the same time.
    processes = [start(folder, first, 20) for first in (0, 0, 20, 20)]
    told: list[tuple[int, int]] = []
    for process in processes:
        out, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")
        for line in out.splitlines():
            number, index = line.split()
            told.append((int(number), int(index)))
    assert len(told) == 80
    assert len(set(told)) == 40, "both were told the same index"
    assert sorted({index for _, index in told}) == list(range(40))
    report = audited(folder, vkey)
    assert (report.size, report.findings, report.notes) == (40, (), ())


def test_a_writer_gives_up_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    folder = tmp_path / "r"
    filled(folder, 1)
    holder = sqlite3.connect(folder / "registry.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with (
        opened(folder) as registry,
        pytest.raises(UsageError) as caught,
    ):
        registry.append(passport(1), check=check, submitter=SUBMITTER, log_key=LOG_KEY, at=AT)
    assert caught.value.code == "registry.busy"
    with Registry.open(folder) as registry:
        assert registry.head().size == 1, "readers do not wait for a writer"
    holder.execute("ROLLBACK")
    holder.close()
    assert append(folder, passport(1)).index == 1


def test_a_full_disk_loses_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 2)
    before = contents(folder / "blobs")
    refused = 0
    with opened(folder) as registry:
        (pages,) = registry._connection.execute("PRAGMA page_count").fetchone()
        registry._connection.execute(f"PRAGMA max_page_count = {pages}")
        for number in range(2, 40):
            data = passport(number)
            before = contents(folder / "blobs")
            try:
                registry.append(data, check=check, submitter=SUBMITTER, log_key=LOG_KEY, at=AT)
            except UsageError as error:
                refused += error.code == "file.unwritable" and "no space" in str(error)
                assert not registry._connection.in_transaction
                assert contents(folder / "blobs") == before
                break
    assert refused == 1
    report = audited(folder, vkey)
    assert (report.findings, report.notes) == ((), ())
    assert append(folder, passport(99)).index == report.size


@pytest.mark.parametrize("extra", [1, 5_000, 20_000, 40_000, 70_000])
def test_a_file_that_may_not_grow(tmp_path: Path, extra: int) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)
    with start(folder, 1, 60, extra) as process:
        out, errors = process.communicate(timeout=120)
    assert process.returncode == 2
    assert errors.split()[0] in {"file.unwritable", "registry.busy"}
    assert "Traceback" not in errors
    found = ids(folder)
    for line in out.splitlines():
        number, index = line.split()
        assert found[digest(f"passport {number}")] == int(index)
    report = audited(folder, vkey)
    assert report.findings == ()
    assert append(folder, passport(99)).index == report.size


def test_a_failure_after_the_commit_keeps_the_passport(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)
    with opened(folder) as registry:
        connection = registry._connection

        class Interrupting:
            """Commits, and is interrupted before it can tell."""

            def execute(self, statement: str, *values: object) -> sqlite3.Cursor:
                cursor = connection.execute(statement, *values)  # type: ignore[arg-type]
                if statement == "COMMIT":
                    raise KeyboardInterrupt
                return cursor

            def __getattr__(self, name: str) -> object:
                return getattr(connection, name)

        monkeypatch.setattr(registry, "_connection", Interrupting())
        with pytest.raises(KeyboardInterrupt):
            registry.append(passport(1), check=check, submitter=SUBMITTER, log_key=LOG_KEY, at=AT)
        monkeypatch.undo()
        connection.close()
    report = audited(folder, vkey)
    assert (report.size, report.findings) == (2, ())


WITHOUT_RIGHTS = """
import os, sys
from pathlib import Path
from certkit.ground.errors import CertkitError
from certkit.tlog.note import VerifierKey
from tests.faults.kills import ids, kill, start
from tests.support.registries import append, audited, filled, passport
warm = Path(sys.argv[3])  # so that everything is loaded while the program can still read it
audited(warm, filled(warm, 2))
if os.geteuid() == 0:
    os.setuid(65534)  # root may write anywhere
folder = Path(sys.argv[1])
report = audited(folder, VerifierKey.parse(sys.argv[2]))
print(report.total)
print(*report.findings, file=sys.stderr)
try:
    append(folder, passport(2))
except CertkitError as error:
    print(error.code, error.exit_code.value)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user may reach, which those of pytest are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(folder)


def test_a_folder_that_cannot_be_written_is_read_and_not_appended_to(
    open_folder: Path, tmp_path: Path
) -> None:
    folder = open_folder / "r"
    vkey = filled(folder, 2)
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RIGHTS, str(folder), str(vkey), str(tmp_path / "warm")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.split() == ["0", "file.unwritable", "2"], done.stderr
    assert {path.name for path in folder.iterdir()} == {"registry.db", "blobs"}


def test_a_torn_log_is_not_built_upon(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    filled(folder, 2)
    path = folder / "registry.db"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 20_000])
    with pytest.raises(MismatchError) as caught:
        append(folder, passport(2))
    assert caught.value.code in {"registry.damaged", "registry.inconsistent"}
