"""Whoever waits for a long log to be read is told how far that is; a short one is not worth a bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from certkit.ground import progress as progresses
from certkit.registry.reader import reading
from certkit.registry.status import FolderStatus
from certkit.registry.writer import Registry
from tests.support.lineages import NOW, hand, heads, issue, log, new, policy
from tests.support.standings import announce

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FEW = 5


class Told:
    """Progress as it was reported."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def start(self, label: str, total: int | None, unit: str) -> None:
        self.events.append((label, total, unit))

    def advance(self, amount: int) -> None:
        self.events.append(amount)

    def finish(self) -> None:
        self.events.append("done")


def read(folder: Path, told: Told) -> None:
    with reading(folder, progress=told) as its:
        list(its.entries())


def asked(folder: Path, told: Told) -> None:
    with Registry.open(folder) as registry:
        trust = policy(registry.vkey)
    source = FolderStatus(folder, trust=trust, at=NOW, seen=lambda _: None, progress=told)
    assert source.status(issue(1).passport_id, {}).standing == "current"


@pytest.mark.parametrize("work", [read, asked])
def test_a_long_log_is_read_with_progress_and_a_short_one_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Callable[[Path, Told], None]
) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1))
    with Registry.open(folder, heads=heads(folder)) as registry:
        for number in range(FEW - 2):
            announce(registry, None, str(number), hand=hand())
    monkeypatch.setattr(progresses, "MANY", FEW)
    work(folder, short := Told())
    assert short.events == []
    with Registry.open(folder, heads=heads(folder)) as registry:
        announce(registry, None, "last", hand=hand())
        size = registry.head().size
    work(folder, told := Told())
    assert told.events == [("reading the log", size, "entries"), size, "done"]
