"""A passport is on the disk before what names it: its entry in the log, and the checkpoint of a tree."""

from __future__ import annotations

import hashlib
import shutil
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from certkit.ground.progress import SILENT
from certkit.registry import log as store
from certkit.registry.publish import export
from tests.support.powercut import Disk, Flush, Killed, Operation, Recorder, after, states
from tests.support.registries import append, contents, filled, new, opened, passport

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DATA = passport(1)
SHA256 = hashlib.sha256(DATA).hexdigest()
NAME = f"blobs/{SHA256[:2]}/{SHA256}"


HELD = 2


class Run:
    """A registry that gets a passport; another one lies `beside` it, or elsewhere and its folder is new."""

    def __init__(self, place: Path, *, beside: bool) -> None:
        self.folder = place / "r"
        new(self.folder)
        with opened(self.folder):
            pass  # the heads, which lie elsewhere, are there
        other = SHA256[:2] + SHA256[::-1] if beside else SHA256[::-1]
        target = store.blob_path(self.folder, other[:64])
        target.parent.mkdir()
        target.write_bytes(b"another")
        there = contents(self.folder).items()
        self.before = {name: data for name, data in there if name.startswith("blobs/")}

    def recorded(self, **how: Any) -> list[Operation | Flush]:
        """What was done to files when the entry came to be committed."""
        recorder = Recorder(self.folder, **how)
        with pytest.MonkeyPatch.context() as patch:
            recorder.install(patch)
            patch.setattr(store, "store_blob", partial(_stop, store.store_blob))
            patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # a killed program clears nothing up
            with suppress(Killed):
                append(self.folder, DATA)
        return recorder.events

    def left(self, events: list[Operation | Flush]) -> list[Disk]:
        return list(after(self.before, events))


def _stop(keep: Callable[..., None], *arguments: Any) -> None:
    """Keep a passport, and die before its entry is committed."""
    keep(*arguments)
    raise Killed


def is_there(disk: Disk) -> bool:
    return disk.get(NAME) == DATA


@pytest.mark.parametrize("beside", [False, True])
def test_a_passport_is_there_before_its_entry(tmp_path: Path, *, beside: bool) -> None:
    run = Run(tmp_path, beside=beside)
    left = run.left(run.recorded())
    assert left
    assert all(map(is_there, left))


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("how", [{"flush_files": False}, {"flush_folders": False}], ids=["files", "folders"])
def test_a_writer_that_does_not_wait_is_caught(tmp_path: Path, how: dict[str, bool], *, beside: bool) -> None:
    run = Run(tmp_path, beside=beside)
    assert not all(map(is_there, run.left(run.recorded(**how))))


@pytest.mark.parametrize("beside", [False, True])
def test_what_a_killed_writer_did_not_flush_the_next_one_does(tmp_path: Path, *, beside: bool) -> None:
    whole = len(Run(tmp_path / "count", beside=beside).recorded())
    assert whole
    for limit in range(whole):
        run = Run(tmp_path / str(limit), beside=beside)
        events = run.recorded(limit=limit) + run.recorded()
        assert all(map(is_there, run.left(events))), limit


def exported(place: Path, **how: Any) -> list[Operation | Flush]:
    """What was done to files while a tree with passports was exported."""
    (place / "out").mkdir(exist_ok=True)
    recorder = Recorder(place / "out", **how)
    with pytest.MonkeyPatch.context() as patch:
        recorder.install(patch)
        with suppress(Killed):
            export(place / "r", place / "out", passports=True, progress=SILENT)
    return recorder.events


def published(place: Path, **how: Any) -> list[Disk]:
    """What a power cut may leave of it, at every instant."""
    filled(place / "r", HELD)
    return list(states({}, exported(place, **how)))


def test_passports_that_a_killed_exporter_did_not_flush_the_next_one_does(tmp_path: Path) -> None:
    filled(tmp_path / "r", HELD)
    whole = len(exported(tmp_path))
    for limit in range(whole):
        shutil.rmtree(tmp_path / "out")
        events = exported(tmp_path, limit=limit) + exported(tmp_path)
        assert all(map(is_whole, states({}, events))), limit


def is_whole(disk: Disk) -> bool:
    """Tell whether a tree has every passport, or does not claim to be one yet."""
    held = {data for name, data in disk.items() if name.startswith("blobs/")}
    return "checkpoint" not in disk or held == {passport(number) for number in range(HELD)}


def test_passports_are_published_before_the_checkpoint(tmp_path: Path) -> None:
    left = published(tmp_path)
    assert any("checkpoint" in disk for disk in left)
    assert all(map(is_whole, left))


@pytest.mark.parametrize("how", [{"flush_files": False}, {"flush_folders": False}], ids=["files", "folders"])
def test_an_exporter_of_passports_that_does_not_wait_is_caught(tmp_path: Path, how: dict[str, bool]) -> None:
    assert not all(map(is_whole, published(tmp_path, **how)))
