"""The exporter under power cuts, kills, full disks and folders that cannot be written."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from certkit.ground import files
from certkit.ground.errors import UsageError
from certkit.ground.progress import SILENT
from certkit.registry.publish import export
from certkit.registry.writer import Registry
from tests.support.notes import extend, following, noted
from tests.support.powercut import Disk, Killed, Recorder, states
from tests.support.registries import audited, contents
from tests.support.tile_tree import definition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.powercut import Flush, Operation

CASES = [(0, 3), (3, 7), (250, 260), (254, 520)]


class Run:
    """A log that was exported at one size, has grown, and is to be exported again."""

    def __init__(self, place: Path, old: int, new: int) -> None:
        self.folder, self.out = place / "r", place / "out"
        self.vkey, self.entries = noted(self.folder, old or new)
        self.before: Disk = {}
        if old:
            self.write()
            self.before = contents(self.out)
            more = following(self.entries, new - old)
            extend(self.folder, self.vkey.name, more)
            self.entries += more
        else:
            self.out.mkdir()  # that it is there is no matter of the tree
        with Registry.open(self.folder) as registry:
            self.note = registry.checkpoint()
        self.notes = {self.note: new} | ({self.before["checkpoint"]: old} if old else {})

    def write(self) -> None:
        export(self.folder, self.out, passports=False, progress=SILENT)

    def is_valid(self, disk: Disk) -> bool:
        """Tell whether a tree is that of one of the two checkpoints, or nothing that claims to be one."""
        if "checkpoint" not in disk:
            return not self.before
        size = self.notes.get(disk["checkpoint"])
        return size is not None and all(
            disk.get(name, _full(name, disk)[: len(data)]) == data for name, data in self.needed(size).items()
        )

    @cache  # noqa: B019 - a run lives as long as its test
    def needed(self, size: int) -> Disk:
        return definition(self.entries[:size])


def _full(name: str, disk: Disk) -> bytes:
    """What a reader falls back to where the narrower form of a tile is gone."""
    return disk.get(name.partition(".p/")[0], b"")


def recorded(run: Run, **how: Any) -> list[Operation | Flush]:
    recorder = Recorder(run.out, **how)
    with pytest.MonkeyPatch.context() as patch:
        recorder.install(patch)
        with suppress(Killed):
            run.write()
    return recorder.events


@pytest.mark.parametrize(("old", "new"), CASES)
def test_a_power_cut_at_any_instant_leaves_an_earlier_or_the_new_tree(
    tmp_path: Path, old: int, new: int
) -> None:
    run = Run(tmp_path, old, new)
    found = list(states(run.before, recorded(run)))
    assert all(run.is_valid(disk) for disk in found)
    assert {disk.get("checkpoint") for disk in found} >= {run.note, run.before.get("checkpoint")}
    assert len(found) >= 5
    assert contents(run.out).items() >= (definition(run.entries) | {"checkpoint": run.note}).items()


@pytest.mark.parametrize(("old", "new"), CASES)
def test_an_exporter_that_does_not_wait_is_caught(tmp_path: Path, old: int, new: int) -> None:
    # Else the test above could not fail. One exporter leaves out flushing files, one folders, and one
    # writes the checkpoint before the tiles.
    for number, how in enumerate(({"flush_files": False}, {"flush_folders": False})):
        run = Run(tmp_path / str(number), old, new)
        assert not all(run.is_valid(disk) for disk in states(run.before, recorded(run, **how))), how
    run = Run(tmp_path / "2", old, new)
    write_all = files.write_all

    def checkpoint_first(top: Path, items: Iterable[tuple[str, bytes]]) -> None:
        files.write(top / "checkpoint", run.note)
        write_all(top, items)

    recorder = Recorder(run.out)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "write_all", checkpoint_first)
        recorder.install(patch)
        run.write()
    assert not all(run.is_valid(disk) for disk in states(run.before, recorder.events))


def test_what_a_killed_exporter_did_not_flush_the_next_one_does(tmp_path: Path) -> None:
    whole = len(recorded(Run(tmp_path / "count", 3, 7)))
    for limit in range(whole):
        run = Run(tmp_path / str(limit), 3, 7)
        first = recorded(run, limit=limit)
        assert run.is_valid(contents(run.out))
        events = first + recorded(run)
        assert all(run.is_valid(disk) for disk in states(run.before, events)), limit
        assert audited(run.out, run.vkey).total == 0


@pytest.mark.parametrize("name", ["open", "fsync", "replace", "fchmod"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_whatever_the_system_refuses_leaves_a_tree_and_a_clean_error(
    tmp_path: Path, name: str, code: int
) -> None:
    run = Run(tmp_path, 3, 7)
    refused = [_refused(run, name, code, allowed) for allowed in range(40)]
    done = refused.index(None)
    assert done > 1
    assert set(refused[:done]) == {"file.unwritable"}
    assert audited(run.out, run.vkey).total == 0
    assert (run.out / "checkpoint").read_bytes() == run.note


def _refused(run: Run, name: str, code: int, allowed: int) -> str | None:
    """Export while the system refuses an operation after `allowed` times; return the error's code."""
    real, calls, found = getattr(os, name), 0, None

    def refuse(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        if name == "open" and Path(arguments[0]).is_file() and not arguments[1] & os.O_ACCMODE:
            return real(*arguments, **named)  # what is there can be read
        calls += 1
        if calls > allowed:
            raise OSError(code, os.strerror(code))
        return real(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, name, refuse)
        try:
            run.write()
        except UsageError as error:
            found = error.code
    disk = contents(run.out)
    assert run.is_valid(disk)
    assert not [one for one in disk if "/." in one or one.startswith(".")], "a temporary file is left"
    return found
