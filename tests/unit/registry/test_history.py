"""Reading a log whole: every entry must give the root, and go on from what is remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from certkit.errors import MismatchError
from certkit.registry.history import reading
from certkit.tlog.checkpoint import Checkpoint
from certkit.tlog.hashing import Hash
from tests.support import merkle
from tests.support.notes import noted

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 600


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 512, 599, 600])
def test_it_goes_on_from_every_earlier_state_and_from_no_other(tmp_path: Path, size: int) -> None:
    vkey, entries = noted(tmp_path / "r", COUNT)
    then = Checkpoint(vkey.name, size, Hash(merkle.mth(entries[:size])))
    with reading(tmp_path / "r", key=vkey, seen={vkey.name: then}.get) as log:
        assert [data for _, data, _ in log.entries()] == entries
    other = Checkpoint(vkey.name, size, Hash(b"\1" * 32))
    again = reading(tmp_path / "r", key=vkey, seen={vkey.name: other}.get)
    with again as log, pytest.raises(MismatchError) as caught:
        list(log.entries())
    assert (caught.value.code, caught.value.where) == ("registry.rollback", str(tmp_path / "r"))


def test_it_goes_on_from_no_longer_one(tmp_path: Path) -> None:
    vkey, entries = noted(tmp_path / "r", 3)
    longer = Checkpoint(vkey.name, 4, Hash(merkle.mth([*entries, b"x"])))
    opened = reading(tmp_path / "r", key=vkey, seen={vkey.name: longer}.get)
    with opened as log, pytest.raises(MismatchError) as caught:
        list(log.entries())
    assert caught.value.code == "registry.rollback"
