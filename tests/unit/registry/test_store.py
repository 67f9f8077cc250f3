"""The format of the database, and how it is opened, read and written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from certkit.ground.errors import InputError
from certkit.registry import log
from certkit.registry import log as store
from certkit.registry.entry import Revocation
from certkit.registry.heads import remembered
from certkit.registry.writer import Registry
from certkit.tlog.note import Signer
from tests.support import merkle
from tests.support.registries import (
    AT,
    LOG_KEY,
    SUBMITTER,
    audited,
    check,
    contents,
    digest,
    filled,
    heads,
    held,
    new,
    notice,
    opened,
    passport,
)

if TYPE_CHECKING:
    from pathlib import Path


def rows(path: Path) -> list[tuple[object, ...]]:
    """Return what a database holds."""
    tables = ("leaf", "tile", "checkpoint", "cosignature", "meta", "lineage", "ending")
    with closing(sqlite3.connect(path)) as connection:
        return [row for table in tables for row in connection.execute(f"SELECT * FROM {table}")]  # noqa: S608 - ours


def test_another_version_of_the_format_is_refused_whoever_opens_it(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    filled(folder, 1)
    with closing(sqlite3.connect(folder / "registry.db")) as connection:
        connection.execute("UPDATE meta SET value = '2' WHERE key = 'format'")
        connection.commit()
    before = contents(folder)
    for opening in (Registry.open, opened):
        with pytest.raises(InputError, match="found 2") as caught:
            opening(folder)
        assert caught.value.code == "registry.format"
    assert contents(folder) == before


@pytest.mark.parametrize("version", ["0", "-1", "x", "", "1 ", "1e3", "٣"])
def test_a_format_that_is_none_is_refused(tmp_path: Path, version: str) -> None:
    folder = tmp_path / "r"
    filled(folder, 1)
    with closing(sqlite3.connect(folder / "registry.db")) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'format'", (version,))
        connection.commit()
    for where in (None, heads(folder)):
        with pytest.raises(InputError) as caught:
            Registry.open(folder, heads=where)
        assert caught.value.code == "registry.format"


def test_cosignatures_have_a_place(tmp_path: Path) -> None:
    filled(tmp_path / "r", 1)
    with closing(sqlite3.connect(tmp_path / "r" / "registry.db")) as connection:
        columns = [(row[1], row[5]) for row in connection.execute("PRAGMA table_info(cosignature)")]
    assert columns == [("size", 1), ("vkey", 2), ("line", 0)]


def test_reading_leaves_nothing_behind_and_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 2)
    before = contents(tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert remembered(heads(folder), vkey) is not None
    with Registry.open(folder) as registry:
        assert len(list(held(registry))) == 2
    audited(folder, vkey)
    assert contents(tmp_path) == before
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == stamps
    # what a killed reader leaves is empty and goes with the next one
    for path in (folder / "registry.db-wal", heads(folder).with_name(f"{heads(folder).name}-wal")):
        path.touch()
    assert remembered(heads(folder), vkey) is not None
    Registry.open(folder).__exit__(None, None, None)
    assert contents(tmp_path) == before


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    filled(tmp_path / "r", 1)
    with closing(store.connect(tmp_path / "r", writable=False)) as connection:
        for statement in ("DELETE FROM leaf", "PRAGMA user_version = 1", "CREATE TABLE x (y)"):
            with pytest.raises(sqlite3.OperationalError):
                connection.execute(statement)


def test_a_reader_does_not_play_the_journal_that_it_finds(tmp_path: Path) -> None:
    """SQLite would put the pages in it back, and then remove the file that it names as its superior."""
    folder = tmp_path / "r"
    vkey = filled(folder, 2)
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    connection = sqlite3.connect(tmp_path / "other.db", isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("CREATE TABLE t (x)")
    connection.execute("BEGIN")
    connection.execute("INSERT INTO t VALUES (zeroblob(500000))")
    name = str(victim).encode()
    journal = (tmp_path / "other.db-journal").read_bytes()
    ending = b"\xff\xff\xff\xff" + name + len(name).to_bytes(4) + (sum(name) & 0xFFFFFFFF).to_bytes(4)
    connection.close()
    hot = folder / "registry.db-journal"
    hot.write_bytes(journal + ending + bytes.fromhex("d9d505f920a163d7"))
    before = contents(tmp_path)
    assert audited(folder, vkey).findings == ()
    assert contents(tmp_path) == before


def test_two_writers_that_stay_open_see_each_other(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)
    with opened(folder) as one, opened(folder) as other:
        for number, registry in enumerate((one, one, other, one, other, other, one), start=1):
            registry.append(passport(number), check=check, submitter=SUBMITTER, log_key=LOG_KEY, at=AT)
        # what somebody else changed meanwhile is not believed: who writes next goes on from the tree it knows
        with closing(sqlite3.connect(folder / "registry.db", isolation_level=None)) as third:
            third.execute("UPDATE tile SET hashes = zeroblob(length(hashes))")
        assert {finding.code for finding in audited(folder, vkey).findings} == {"registry.tile-differs"}
        one.append(passport(20), check=check, submitter=SUBMITTER, log_key=LOG_KEY, at=AT)
    assert audited(folder, vkey).findings == ()


def test_what_was_rolled_back_is_forgotten_by_a_writer_that_stays_open(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)

    def add(registry: Registry, number: int) -> int:
        return registry.append(
            passport(number), check=check, submitter=SUBMITTER, log_key=LOG_KEY, at=AT
        ).index

    def refused(registry: Registry) -> None:
        revocation = Revocation(passport_id=digest("x"), reason="issued-in-error", detail="€" * 2048)
        with registry.turn(LOG_KEY) as turn:
            for claims in (notice(), revocation):
                turn.log("x", claims, submitter=SUBMITTER, at=AT)

    with opened(folder) as registry:
        assert add(registry, 1) == 1
        with pytest.raises(InputError, match="limit 4,096"):
            refused(registry)
        assert [add(registry, number) for number in (3, 2)] == [2, 3]
    report = audited(folder, vkey)
    assert (report.size, report.findings, report.notes) == (4, (), ())


def test_what_failed_half_way_is_forgotten_by_a_writer_that_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)

    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    with opened(folder) as registry:
        registry.append(passport(1), check=check, submitter=SUBMITTER, log_key=LOG_KEY, at=AT)
        before = rows(folder / "registry.db")
        with monkeypatch.context() as patch:
            patch.setattr(log, "sign_checkpoint", interrupted)
            with pytest.raises(KeyboardInterrupt):
                registry.append(passport(2), check=check, submitter=SUBMITTER, log_key=LOG_KEY, at=AT)
        assert rows(folder / "registry.db") == before
        done = registry.append(passport(3), check=check, submitter=SUBMITTER, log_key=LOG_KEY, at=AT)
        assert done.index == 2
    report = audited(folder, vkey)
    assert (report.size, report.findings, report.notes) == (3, (), ())


def linked() -> sqlite3.Connection:
    """A database whose references are looked at when a transaction is committed."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("CREATE TABLE a (x INTEGER PRIMARY KEY)")
    connection.execute("CREATE TABLE b (y REFERENCES a DEFERRABLE INITIALLY DEFERRED)")
    return connection


def test_what_cannot_be_committed_is_rolled_back() -> None:
    with closing(linked()) as connection:
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"), store.Writing(connection):
            connection.execute("INSERT INTO b VALUES (1)")
        assert not connection.in_transaction
        assert connection.execute("SELECT count(*) FROM b").fetchone() == (0,)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_block_that_raises_is_rolled_back(error: type[BaseException]) -> None:
    def fail() -> None:
        with store.Writing(connection):
            connection.execute("INSERT INTO a VALUES (1)")
            raise error

    with closing(linked()) as connection:
        with pytest.raises(error):
            fail()
        assert not connection.in_transaction
        assert connection.execute("SELECT count(*) FROM a").fetchone() == (0,)
        with store.Writing(connection):
            connection.execute("INSERT INTO a VALUES (1)")
        assert not connection.in_transaction
        assert connection.execute("SELECT count(*) FROM a").fetchone() == (1,)


def test_the_cause_is_told_where_sqlite_has_rolled_back_by_itself() -> None:
    with closing(linked()) as connection:
        connection.execute("INSERT INTO a VALUES (1)")
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"), store.Writing(connection):
            connection.execute("INSERT OR ROLLBACK INTO a VALUES (1)")
        assert not connection.in_transaction


def test_batches_of_every_size_give_the_tree_of_their_entries(tmp_path: Path) -> None:
    folder, entries = tmp_path / "r", list[bytes]()
    signer = Signer(new(folder).name, LOG_KEY)
    with closing(store.connect(folder, writable=True)) as connection:
        appended = log.EntryLog(connection)
        for count in (
            256,
            1,
            255,
            300,
            256,
            700,
            2,
            257,
            63_700,
            1000,
        ):  # beyond 65,536 a second tile is full
            added = [b"%d" % number for number in range(len(entries), len(entries) + count)]
            entries += added
            with store.Writing(connection):
                head = appended.extend(added, signer)
            assert (head.size, head.root) == (len(entries), merkle.mth(entries)), count
        assert appended.verified_head(signer.vkey) == head
