"""Reading a log whole: every entry must give the root, and go on from what is remembered."""

from __future__ import annotations

import base64
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from certkit.ground.errors import CertkitError, MismatchError
from certkit.registry.entry import timestamp
from certkit.registry.reader import LogReader, opened, reading, show
from certkit.registry.writer import Registry, revoke
from certkit.tlog.checkpoint import Checkpoint
from certkit.tlog.tree import Hash
from tests.support import merkle
from tests.support.lineages import LINEAGE, NOW, hand, heads, issue, log, new
from tests.support.notes import noted
from tests.support.standings import DAY, issued_in, rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.registry.entry import Reason
    from certkit.registry.fold import PassportStanding
    from certkit.tlog.note import VerifierKey

COUNT = 600


@contextmanager
def remembering(folder: Path, vkey: VerifierKey, then: Checkpoint) -> Iterator[LogReader]:
    """A log as whoever remembers a checkpoint of it reads it."""
    with opened(folder) as source:
        yield LogReader(folder, source, vkey, seen={vkey.name: then}.get)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 512, 599, 600])
def test_it_goes_on_from_every_earlier_state_and_from_no_other(tmp_path: Path, size: int) -> None:
    vkey, entries = noted(tmp_path / "r", COUNT)
    then = Checkpoint(vkey.name, size, Hash(merkle.mth(entries[:size])))
    with remembering(tmp_path / "r", vkey, then) as log:
        assert [data for _, data, _ in log.entries()] == entries
    other = Checkpoint(vkey.name, size, Hash(b"\1" * 32))
    again = remembering(tmp_path / "r", vkey, other)
    with again as log, pytest.raises(MismatchError) as caught:
        list(log.entries())
    assert (caught.value.code, caught.value.where) == ("registry.rollback", str(tmp_path / "r"))


def test_it_goes_on_from_no_longer_one(tmp_path: Path) -> None:
    vkey, entries = noted(tmp_path / "r", 3)
    longer = Checkpoint(vkey.name, 4, Hash(merkle.mth([*entries, b"x"])))
    again = remembering(tmp_path / "r", vkey, longer)
    with again as log, pytest.raises(MismatchError) as caught:
        list(log.entries())
    assert caught.value.code == "registry.rollback"


@pytest.mark.parametrize(
    "reasons",
    [("evidence-false",), ("agent-withdrawn", "evidence-false"), ("evidence-false", "agent-withdrawn")],
)
def test_the_gravest_reason_of_a_revocation_counts_whenever_it_was_given(
    tmp_path: Path, reasons: tuple[Reason, ...]
) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1))
    for reason in reasons:
        with Registry.open(folder, heads=heads(folder)) as registry:
            revoke(registry, "0", reason=reason, detail=None, hand=hand())
    (one,) = issued_in(folder)
    assert one.ending is not None
    assert one.ending.reason == "evidence-false"


def test_a_history_of_other_entries_under_the_same_size_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1))
    log(folder, issue(2))
    with Registry.open(folder) as registry:
        entry = registry.logged(1).entry
    payload = base64.b64encode(entry.envelope.payload.replace(b'"tier":2', b'"tier":1'))
    with Registry.open(folder) as registry, registry.reading() as its:
        data = its.entry(1)
    assert data is not None
    changed = data.replace(base64.b64encode(entry.envelope.payload), payload)
    assert changed != data
    rows(folder, "UPDATE leaf SET entry = ? WHERE idx = 1", changed)
    with reading(folder) as whole, pytest.raises(CertkitError) as caught:
        show(whole, LINEAGE, at=NOW)
    assert caught.value.code == "registry.inconsistent"


def test_a_passport_of_a_time_to_come_is_not_current(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1))
    seconds = timedelta(seconds=1)
    ends = NOW + 90 * DAY
    cases: list[tuple[datetime, PassportStanding]] = [
        (datetime.fromisoformat("2020-01-01T00:00:00+00:00"), "upcoming"),
        (NOW - seconds, "upcoming"),
        (NOW, "current"),
        (ends, "current"),
        (ends + seconds, "expired"),
    ]
    (one,) = issued_in(folder)
    assert [one.standing(timestamp(at)) for at, _ in cases] == [status for _, status in cases]
