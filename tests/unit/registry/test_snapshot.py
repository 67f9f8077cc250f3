"""The snapshot of the entries beside the remembered head: it spares reading, and never changes an answer."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import structs

from certkit.registry import registry as module
from certkit.registry.heads import Head
from certkit.registry.ledger import Columns, Ledger
from certkit.registry.registry import Registry
from tests.support import registries as build
from tests.support.notes import following
from tests.support.registries import LOG_KEY, SUBMITTER, check, passport

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 12


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPARED", 4)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The places of the entries that a writer reads on opening, and of those that it adds."""
    added: list[int] = []
    add = Ledger.add

    def counted(self: Ledger, data: bytes) -> None:
        added.append(self.size)
        add(self, data)

    monkeypatch.setattr(Ledger, "add", counted)
    return added


def stored(folder: Path, statement: str = "SELECT data FROM snapshot", *values: object) -> list[Any]:
    """What the file of heads holds, or what came of changing it behind its back."""
    with closing(sqlite3.connect(build.heads(folder), isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


def snapshot_of(folder: Path) -> Columns:
    ((data,),) = stored(folder)
    return msgspec.msgpack.decode(data, type=Columns)


def appended(folder: Path, number: int) -> tuple[int, list[str]]:
    """Append a passport with a registry that was just opened; return its entry and the warnings."""
    told: list[str] = []
    with Registry.open(folder, heads=build.heads(folder), warn=told.append) as registry:
        done = registry.append(
            passport(number), check=check, submitter=SUBMITTER, log_key=LOG_KEY, at=build.AT
        )
    return done.index, told


def test_who_writes_next_reads_what_came_after_it(tmp_path: Path, read: list[int]) -> None:
    folder = tmp_path / "r"
    vkey = build.filled(folder, COUNT)
    size = len(snapshot_of(folder).types)
    assert 0 < size <= COUNT
    read.clear()
    assert appended(folder, COUNT) == (COUNT, [])
    assert read == list(range(size, COUNT + 1))
    assert appended(folder, 0) == (0, []), "one that the snapshot covers is found in it"
    assert appended(folder, COUNT - 1) == (COUNT - 1, []), "and one after it"
    assert build.audited(folder, vkey).findings == ()


def test_without_it_all_are_read(tmp_path: Path, read: list[int]) -> None:
    folder = tmp_path / "r"
    build.filled(folder, COUNT)
    stored(folder, "DELETE FROM snapshot")
    read.clear()
    assert appended(folder, COUNT) == (COUNT, [])
    assert read == list(range(COUNT + 1))
    assert stored(folder), "and it is kept again"


@pytest.mark.parametrize(
    "kind", ["altered", "text", "integer", "real", "empty", "leaves a passport out", "foreign", "older"]
)
def test_one_that_was_not_kept_for_this_log_is_ignored_with_a_warning(
    tmp_path: Path, read: list[int], kind: str
) -> None:
    folder, other = tmp_path / "r", tmp_path / "other"
    vkey = build.filled(folder, COUNT)
    ((data,),) = stored(folder)
    kept, count = snapshot_of(folder), COUNT
    if kind == "altered":
        data = data[:-1] + bytes([data[-1] ^ 1])
    elif kind in (others := {"text": "abc", "integer": 5, "real": 0.5, "empty": b""}):
        data = others[kind]
    elif kind == "leaves a passport out":
        data = msgspec.msgpack.encode(structs.replace(kept, passports=bytearray(len(kept.passports))))
    elif kind == "older":
        count = 3 * COUNT
        for number in range(COUNT, count):
            appended(folder, number)
        assert stored(folder) != [(data,)]
    else:
        Registry.init(other, "other", LOG_KEY, at=build.AT)
        for number in range(COUNT):
            build.append(other, passport(number))
        ((data,),) = stored(other)
    stored(folder, "UPDATE snapshot SET data = ?", data)
    read.clear()
    index, told = appended(folder, 0)
    assert index == 0
    assert len(told) == 1
    assert "Reading all entries instead" in told[0]
    assert read == list(range(count))
    assert build.audited(folder, vkey).findings == ()


def test_one_of_another_log_under_the_same_key_is_ignored_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where its digest is remembered: the root that it says is not one of this log."""
    folder = tmp_path / "r"
    build.filled(folder, COUNT)
    kept = snapshot_of(folder)
    for wrong in ({"root": b"\1" * 32}, {"origin": "certkit.other/x"}, {"types": kept.types[1:]}):
        other = msgspec.msgpack.encode(structs.replace(kept, **wrong))
        monkeypatch.setattr(Head, "kept", lambda _self, other=other: other)
        index, told = appended(folder, 0)
        assert (index, len(told)) == (0, 1), wrong


def test_what_it_spares_is_still_held_against_the_signed_root(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    build.filled(folder, COUNT)
    with closing(sqlite3.connect(folder / "registry.db", isolation_level=None)) as connection:
        connection.execute("UPDATE leaf SET entry = (SELECT entry FROM leaf WHERE idx = 1) WHERE idx = 2")
    with pytest.raises(Exception, match="entry 2 is not the one that was signed"):
        appended(folder, 2)


def test_a_log_of_several_tiles_is_gone_on_with(tmp_path: Path, read: list[int]) -> None:
    folder = tmp_path / "r"
    build.filled(folder, COUNT)
    with build.opened(folder) as registry, registry.turn(LOG_KEY) as turn:
        held = registry._log.entries(0, COUNT)
        for data in following(held, 700):
            turn.add(data)
    read.clear()
    assert appended(folder, 5) == (5, [])
    assert read == []
    assert appended(folder, COUNT)[0] == COUNT + 700
