"""A log goes on from what was signed last, or not at all, whatever was put back into its folder."""

from __future__ import annotations

import os
import pathlib
import shlex
import shutil
import sqlite3
import threading
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pytest

from certkit.ground.errors import CertkitError, InputError, MismatchError, UsageError
from certkit.registry import log as store
from certkit.registry.heads import Heads, remembered
from certkit.registry.writer import Registry
from certkit.tlog.checkpoint import Checkpoint, sign_checkpoint
from certkit.tlog.note import Signer, parse_note, write_note
from certkit.tlog.tree import Hash
from tests.support.registries import (
    AT,
    LOG_KEY,
    STRANGER,
    SUBMITTER,
    append,
    audited,
    check,
    contents,
    filled,
    heads,
    new,
    passport,
)

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.tlog.note import VerifierKey

SIGNER = Signer("log.example", LOG_KEY)
SAME_NAME = Signer("log.example", STRANGER)


def note(size: int, fill: int = 1, *signers: Signer) -> bytes:
    return sign_checkpoint(Checkpoint(SIGNER.name, size, Hash(bytes([fill]) * 32)), *signers or (SIGNER,))


def never(size: int) -> Hash:
    raise AssertionError(size)


def test_what_was_signed_is_remembered_outside_the_registry(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    assert remembered(heads(folder), vkey) is None
    for number in range(3):
        append(folder, passport(number))
        with Registry.open(folder) as registry:
            assert remembered(heads(folder), vkey) == registry.head()
    assert remembered(heads(folder), Signer("another.log", LOG_KEY).vkey) is None


def test_a_file_of_another_version_says_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "my heads.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE head (vkey TEXT PRIMARY KEY, note BLOB)")
    with pytest.raises(InputError) as caught:
        remembered(path)
    away, why = (caught.value.hint or "").splitlines()
    assert shlex.split(away) == ["mv", str(path), f"{path}.old"]
    assert "registry audit DIR --since FILE" in why


def test_a_backup_that_was_put_back_is_not_signed_on(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    filled(folder, 2)
    shutil.copytree(folder, tmp_path / "backup")
    append(folder, passport(2))
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "backup", folder)
    before = contents(folder)
    for number in (2, 3, 0):  # the same passport, another one, one that is there: no proof of any
        with pytest.raises(MismatchError) as caught:
            append(folder, passport(number))
        assert caught.value.code == "registry.rollback"
    assert contents(folder) == before
    with Registry.open(folder) as registry:
        assert registry.head().size == 2, "it can be read"


def test_another_log_of_the_same_name_is_not_signed_on(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)
    shutil.rmtree(folder)
    assert new(folder) == vkey, "the same key at the same instant"
    with pytest.raises(MismatchError) as caught:
        append(folder, passport(7))
    assert caught.value.code == "registry.rollback"
    heads(folder).unlink()
    for number in (7, 8):
        append(folder, passport(number))
    shutil.copytree(folder, tmp_path / "fork")
    shutil.rmtree(folder)
    heads(folder).rename(tmp_path / "kept")
    filled(folder, 3)
    heads(folder).unlink()
    (tmp_path / "kept").rename(heads(folder))
    with pytest.raises(MismatchError) as caught:
        append(folder, passport(9))
    assert caught.value.code == "registry.rollback"
    assert "first 2 entries are others" in str(caught.value)


def test_a_log_that_is_ahead_of_what_is_remembered_is_caught_up_with(tmp_path: Path) -> None:
    # That is what a crash leaves between the registry's commit and that of the heads.
    folder = tmp_path / "r"
    vkey = filled(folder, 2)
    kept = heads(folder).read_bytes()
    append(folder, passport(2))
    heads(folder).write_bytes(kept)
    assert append(folder, passport(2)).new is False
    found = remembered(heads(folder), vkey)
    assert found is not None
    assert found.size == 3
    heads(folder).write_bytes(kept)
    append(folder, passport(3))
    assert audited(folder, vkey).total == 0


def test_a_refused_append_is_not_remembered(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)
    before = remembered(heads(folder), vkey)
    with pytest.raises(InputError):
        append(folder, b"{}")
    assert remembered(heads(folder), vkey) == before


def test_a_registry_that_is_opened_for_reading_signs_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    filled(folder, 1)
    with Registry.open(folder) as registry, pytest.raises(ValueError, match="reading"):
        registry.append(passport(1), check=check, submitter=SUBMITTER, log_key=LOG_KEY, at=AT)


def test_a_head_advances_and_never_goes_back(tmp_path: Path) -> None:
    path = tmp_path / "state" / "heads.db"
    file = Heads.open(path)
    with file.held(SIGNER.vkey) as head:
        head.advance(note(5), never)
        head.advance(note(7), lambda size: Hash(b"\1" * 32) if size == 5 else never(size))
    cases = {"shorter": (note(6), b"\1"), "forked": (note(8, 2), b"\2"), "same size": (note(7, 2), b"\2")}
    for name, (newer, fill) in cases.items():
        root = Hash(fill * 32)
        with pytest.raises(MismatchError) as caught, file.held(SIGNER.vkey) as head:
            head.advance(newer, lambda _: root)  # noqa: B023 - called at once
        assert caught.value.code == "registry.rollback", name
    with suppress(KeyError), file.held(SIGNER.vkey) as head:
        head.advance(note(9), lambda _: Hash(b"\1" * 32))
        raise KeyError
    file.close()
    found = remembered(path, SIGNER.vkey)
    assert found is not None
    assert found.size == 7


def sizes(path: Path, *keys: Signer) -> int | None:
    found = remembered(path, *(key.vkey for key in keys))
    return None if found is None else found.size


def advance(path: Path, note: bytes, *keys: Signer) -> None:
    with closing(Heads.open(path)) as file, file.held(*(key.vkey for key in keys)) as head:
        head.advance(note, lambda _: Hash(b"\1" * 32))


def test_a_log_of_the_same_name_under_another_key_is_another_log(tmp_path: Path) -> None:
    path = tmp_path / "heads.db"
    advance(path, note(9, 7, SAME_NAME), SAME_NAME)
    assert (sizes(path, SIGNER), sizes(path, SAME_NAME)) == (None, 9)
    advance(path, note(5), SIGNER)
    assert (sizes(path, SIGNER), sizes(path, SAME_NAME)) == (5, 9)
    with pytest.raises(MismatchError) as caught:
        advance(path, note(4), SIGNER)
    assert caught.value.code == "registry.rollback"


def test_a_line_that_only_names_a_key_is_not_remembered_of_it(tmp_path: Path) -> None:
    path = tmp_path / "heads.db"
    own, text = parse_note(note(9, 7, SAME_NAME)).signatures[0], parse_note(note(9, 7)).text
    false = own._replace(key_id=SIGNER.vkey.key_id)
    junk = write_note(text, [own, false])
    advance(path, junk, SAME_NAME, SIGNER)
    assert (sizes(path, SIGNER), sizes(path, SAME_NAME), sizes(path, SIGNER, SAME_NAME)) == (None, 9, 9)
    with pytest.raises(ValueError, match="none of the log's keys"):
        advance(tmp_path / "other.db", note(5), SAME_NAME)


def test_what_several_keys_of_a_log_signed_is_remembered_of_each(tmp_path: Path) -> None:
    path = tmp_path / "heads.db"
    advance(path, note(5), SIGNER, SAME_NAME)
    assert (sizes(path, SIGNER), sizes(path, SAME_NAME)) == (5, None)
    advance(path, note(6, 1, SIGNER, SAME_NAME), SIGNER, SAME_NAME)
    assert (sizes(path, SIGNER), sizes(path, SAME_NAME)) == (6, 6)
    advance(path, note(7, 1, SAME_NAME), SIGNER, SAME_NAME)
    assert (sizes(path, SIGNER), sizes(path, SAME_NAME), sizes(path, SAME_NAME, SIGNER)) == (6, 7, 7)
    with pytest.raises(MismatchError):
        advance(path, note(6, 1, SAME_NAME), SIGNER, SAME_NAME)


def test_two_who_sign_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    path = tmp_path / "heads.db"
    first, second = Heads.open(path), Heads.open(path)
    with first.held(SIGNER.vkey), pytest.raises(UsageError) as caught, second.held(SIGNER.vkey):
        pass
    assert caught.value.code == "registry.busy"
    first.close()
    second.close()


def test_many_make_the_file_at_once(tmp_path: Path) -> None:
    faults: list[BaseException] = []

    def make(number: int) -> None:
        try:
            file = Heads.open(tmp_path / "heads.db")
            signer = Signer(f"log{number}", LOG_KEY)
            with file.held(signer.vkey) as head:
                head.advance(sign_checkpoint(Checkpoint(signer.name, 1, Hash(b"\1" * 32)), signer), never)
            file.close()
        except BaseException as error:  # noqa: BLE001 - told to the test
            faults.append(error)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert faults == []
    assert all(remembered(tmp_path / "heads.db", Signer(f"log{number}", LOG_KEY).vkey) for number in range(8))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE head SET note = 'x'",
        "UPDATE head SET note = x'00'",
        f"UPDATE head SET vkey = '{SAME_NAME.vkey}'",  # noqa: S608 - ours
        "DROP TABLE head",
    ],
)
def test_a_file_of_heads_that_cannot_be_read_stops_signing(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "heads.db"
    file = Heads.open(path)
    with file.held(SIGNER.vkey) as head:
        head.advance(note(5), never)
    file.close()
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()

    def use(key: VerifierKey) -> None:
        held = Heads.open(path)
        try:
            with held.held(key):
                pass
        finally:
            held.close()

    key = Signer("log.other", LOG_KEY).vkey if "log.other" in statement else SIGNER.vkey
    key = SAME_NAME.vkey if str(SAME_NAME.vkey) in statement else key
    for read in (use, lambda key: remembered(path, key)):
        with pytest.raises(InputError) as caught:
            read(key)
        assert caught.value.code == "registry.heads"


@pytest.mark.parametrize(
    "table", ["snapshot (vkey TEXT PRIMARY KEY, data BLOB NOT NULL)", "diary (words TEXT)"]
)
def test_a_file_with_other_tables_is_named_and_not_written_into(tmp_path: Path, table: str) -> None:
    """That of an older version is one of them."""
    folder = tmp_path / "r"
    vkey = new(folder)
    heads(folder).parent.mkdir()
    with closing(sqlite3.connect(heads(folder))) as connection:
        connection.execute(f"CREATE TABLE {table}")
    kept = heads(folder).read_bytes()
    for use in (lambda: append(folder, passport(0)), lambda: remembered(heads(folder), vkey)):
        with pytest.raises(InputError) as caught:
            use()
        assert (caught.value.code, caught.value.where) == ("registry.heads", str(heads(folder)))
    assert heads(folder).read_bytes() == kept


def test_what_is_no_database_stops_signing_and_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    filled(folder, 1)
    heads(folder).write_bytes(b"no database at all" * 1000)
    kept = heads(folder).read_bytes()
    with pytest.raises(InputError) as caught:
        append(folder, passport(1))
    assert caught.value.code == "registry.heads"
    assert heads(folder).read_bytes() == kept


def test_only_where_there_is_no_file_is_nothing_remembered(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("gone", "folder", "pipe"):
        for use in (Heads.open, lambda path: remembered(path, SIGNER.vkey)):
            with pytest.raises(InputError) as caught:
                use(tmp_path / name)
            assert (caught.value.code, caught.value.exit_code) == ("registry.heads", 3), name
    assert not (tmp_path / "nowhere").exists()
    for name in ("new.db", "state/new.db"):
        assert remembered(tmp_path / name, SIGNER.vkey) is None
    advance(tmp_path / "real.db", note(5), SIGNER)
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    assert sizes(tmp_path / "link.db", SIGNER) == 5


def test_a_place_that_cannot_be_looked_at_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lstat(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pathlib.Path, "lstat", lstat)
    with pytest.raises(InputError, match="permission denied"):
        remembered(tmp_path / "heads.db", SIGNER.vkey)


def test_a_place_that_cannot_be_written_is_a_clean_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CertkitError) as caught:
        Heads.open(tmp_path / "file" / "heads.db")
    assert caught.value.code == "file.unwritable"


def test_when_remembering_fails_the_entry_is_there_and_nothing_was_handed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)
    file = Heads.open(heads(folder))
    monkeypatch.setattr(Heads, "open", lambda *_, **__: file)
    connection = file._connection

    class Full:
        """Has no room left when it comes to the commit."""

        def execute(self, statement: str, *values: object) -> sqlite3.Cursor:
            if statement == "COMMIT":
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise error
            return connection.execute(statement, *values)  # type: ignore[arg-type]

        def __getattr__(self, name: str) -> object:
            return getattr(connection, name)

    monkeypatch.setattr(file, "_connection", Full())
    with pytest.raises(UsageError) as caught:
        append(folder, passport(1))
    assert caught.value.code == "file.unwritable"
    monkeypatch.undo()
    report = audited(folder, vkey)
    assert (report.size, report.findings, report.notes) == (2, (), ())
    again = append(folder, passport(1))
    assert (again.index, again.new) == (1, False)
