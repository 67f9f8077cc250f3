"""The index in the database: who writes asks it, and it follows from the entries."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from certkit.ground import canonical
from certkit.ground.errors import MismatchError
from certkit.passport import envelope as dsse
from certkit.registry.entry import PAYLOAD_TYPE, Claims, Revocation, Stored, read
from certkit.registry.heads import Head
from certkit.registry.log import EntryLog
from certkit.registry.writer import LineageIndex, Registry
from tests.support import merkle
from tests.support.lineages import NOW
from tests.support.notes import noted
from tests.support.registries import (
    AT,
    LOG_KEY,
    SUBMITTER,
    append,
    audited,
    check,
    digest,
    filled,
    log_entry,
    notice,
    opened,
    passport,
    poison,
)

if TYPE_CHECKING:
    from pathlib import Path


def again(registry: Registry, number: int) -> int:
    return registry.append(passport(number), check=check, submitter=SUBMITTER, log_key=LOG_KEY, at=NOW).index


def made(folder: Path) -> bytes:
    """Return the entry of a second passport as the registry would write it."""
    with opened(folder) as registry, registry.turn(LOG_KEY) as turn:
        facts = check(passport(1))
        file = Stored(sha256="0" * 64, size=1)
        return turn.draft(facts.lineage, Claims.of(facts, 2), submitter=SUBMITTER, at=AT, passport=file)


def test_an_append_reads_no_entry_but_the_last_of_its_lineage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, indices = tmp_path / "r", list[int]()
    filled(folder, 20)
    append(folder, passport(20, lineage="lab/other"))
    entry = EntryLog.entry

    def counting(log: EntryLog, index: int) -> bytes | None:
        indices.append(index)
        return entry(log, index)

    monkeypatch.setattr(EntryLog, "entry", counting)
    monkeypatch.setattr(EntryLog, "entries", None)
    assert append(folder, passport(21)).index == 21
    assert indices == [19]


def test_of_a_passport_that_was_logged_twice_the_first_entry_is_given(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    filled(folder, 1)
    for _ in range(2):
        entry = made(folder)
        with opened(folder) as registry, registry.turn(LOG_KEY) as turn:
            turn.add(entry)
    done = append(folder, passport(1))
    assert (done.index, done.new) == (1, False)


def test_the_index_made_again_is_the_one_that_was_written(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 3)
    append(folder, passport(3, supersedes=digest("passport 2")))
    with opened(folder) as registry:
        write = partial(log_entry, registry, submitter=SUBMITTER, log_key=LOG_KEY, at=AT)
        write("lab/agent", Revocation(passport_id=digest("passport 0"), reason="evidence-false"))
        write("lab/agent", notice())

        def dump() -> list[object]:
            query = registry._connection.execute
            return [list(query("SELECT * FROM lineage")), list(query("SELECT * FROM ending"))]

        before = dump()
        assert [len(rows) for rows in before] == [6, 2]  # type: ignore[arg-type]
        poison(folder, "DELETE FROM lineage")
        poison(folder, "DELETE FROM ending")
        assert audited(folder, vkey).total > 0
        assert registry.repair() == []
        assert dump() == before
    assert audited(folder, vkey).findings == ()


def test_an_id_leads_to_its_passport(tmp_path: Path) -> None:
    filled(tmp_path / "r", 3)
    with Registry.open(tmp_path / "r") as registry:
        for length in (15, 30, 31, 71):
            idents = [digest(f"passport {number}")[:length] for number in range(3)]
            assert [registry.find(ident) for ident in idents] == [0, 1, 2]


@pytest.mark.parametrize("committed", [False, True])
def test_the_file_of_a_failed_append_is_stored_where_an_entry_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, committed: bool
) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)
    calls: list[object] = []

    def fails(*arguments: object) -> None:
        calls.append(arguments)
        if len(calls) > committed:
            raise RuntimeError

    with opened(folder) as registry:
        again(registry, 0)
        if committed:
            monkeypatch.setattr(Head, "advance", fails)
        else:
            monkeypatch.setattr(LineageIndex, "add", fails)
        with pytest.raises(RuntimeError):
            again(registry, 1)
        monkeypatch.undo()
    report = audited(folder, vkey)
    assert (report.size, report.findings, report.notes) == (1 + committed, (), ())


@pytest.mark.parametrize("others", [0, 1, 2])
def test_an_entry_that_was_never_committed_is_forgotten(tmp_path: Path, others: int) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)

    def aborted(registry: Registry) -> None:
        with registry.turn(LOG_KEY) as turn:
            claims = Revocation(passport_id=digest("passport 0"), reason="evidence-false")
            assert turn.log("lab/agent", claims, submitter=SUBMITTER, at=NOW).index == 1
            assert turn.index.refuted("lab/agent", None)
            raise ValueError("never")

    with opened(folder) as registry:
        with pytest.raises(ValueError, match="never"):
            aborted(registry)
        for number in range(others):
            append(folder, passport(10 + number))
        again(registry, 1)
    report = audited(folder, vkey)
    assert (report.size, report.findings) == (2 + others, ())


def test_bytes_that_are_no_entry_have_no_place_in_a_lineage(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    filled(folder, 1)
    payload = read(made(folder)).envelope.payload
    broken = canonical.canonical(
        dsse.sign(PAYLOAD_TYPE, payload.replace(b'"attempt":2', b'"attempt":0'), SUBMITTER)
    )
    spaced = canonical.canonical(
        dsse.sign(PAYLOAD_TYPE, payload.replace(b'"tier":1', b'"tier": 1'), SUBMITTER)
    )
    with opened(folder) as registry, registry.turn(LOG_KEY) as turn:
        for data in (b"", b"{}", broken, spaced):
            turn.add(data)
    with opened(folder) as registry:
        index = again(registry, 1)
        previous = registry.logged(index).entry.body.prev
        assert (index, previous and previous.index) == (5, 0)


def test_a_root_that_the_tree_had_is_proven_by_the_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    _, data = noted(folder, 300)
    with Registry.open(folder) as registry, registry.reading() as log:
        for size in (1, 100, 256, 300):
            assert log.root_at(size) == merkle.mth(data[:size])
    poison(folder, "UPDATE tile SET hashes = zeroblob(length(hashes)) WHERE level = 0 AND n = 0")
    with Registry.open(folder) as registry, registry.reading() as log:
        with pytest.raises(MismatchError) as caught:
            log.root_at(100)
        assert caught.value.code == "tlog.tile"
