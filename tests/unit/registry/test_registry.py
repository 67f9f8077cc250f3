"""Appending, looking up and proving."""

from __future__ import annotations

import hashlib
import sqlite3
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from certkit.ground import canonical
from certkit.ground.errors import CertkitError, InputError, MismatchError, UsageError
from certkit.passport import keys
from certkit.registry.writer import Registry, load_log_key
from certkit.tlog import checkpoint
from certkit.tlog.checkpoint import open_checkpoint
from certkit.tlog.tree import leaf_hash
from tests.support import merkle
from tests.support.registries import (
    AT,
    LOG_KEY,
    STRANGER,
    SUBMITTER,
    append,
    audited,
    check,
    contents,
    digest,
    filled,
    held,
    new,
    opened,
    passport,
    proof_of,
)

if TYPE_CHECKING:
    from pathlib import Path


def entries(folder: Path) -> list[bytes]:
    connection = sqlite3.connect(folder / "registry.db")
    found = [row[0] for row in connection.execute("SELECT entry FROM leaf ORDER BY idx")]
    connection.close()
    return found


def test_a_new_registry(tmp_path: Path) -> None:
    vkey = new(tmp_path / "r")
    assert {path.name for path in (tmp_path / "r").iterdir()} == {"registry.db", "blobs"}
    assert vkey.public == LOG_KEY.public_key().public_bytes_raw()
    with Registry.open(tmp_path / "r") as registry:
        head = open_checkpoint(registry.checkpoint(), vkey).checkpoint
        assert registry.origin == vkey.name
    assert (head.origin, head.size, head.root) == (vkey.name, 0, hashlib.sha256().digest())


def test_the_database_is_as_documented(tmp_path: Path) -> None:
    filled(tmp_path / "r", 1)
    connection = sqlite3.connect(tmp_path / "r" / "registry.db")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA page_size").fetchone() == (16384,)
    columns = {
        table: [(row[1], row[2], row[5]) for row in connection.execute(f"PRAGMA table_info({table})")]
        for table in ("leaf", "tile")
    }
    connection.close()
    assert columns == {
        "leaf": [("idx", "INTEGER", 1), ("entry", "BLOB", 0)],
        "tile": [("level", "INTEGER", 1), ("n", "INTEGER", 2), ("hashes", "BLOB", 0)],
    }


def test_every_write_waits_for_the_disk(tmp_path: Path) -> None:
    new(tmp_path / "r")
    with opened(tmp_path / "r") as registry:
        assert registry._connection.execute("PRAGMA synchronous").fetchone() == (2,)


@pytest.mark.parametrize("name", ["", "Lab", "a b", "../x", "a/b", "a+b", "-a", "ä", "a" * 64, "a\n"])
def test_a_name_that_is_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        Registry.init(tmp_path / "r", name, LOG_KEY, at=AT)
    assert caught.value.code == "registry.name"
    assert list(tmp_path.iterdir()) == []


def test_no_folder_is_made_over_another(tmp_path: Path) -> None:
    filled(tmp_path / "r", 1)
    before = contents(tmp_path / "r")
    with pytest.raises(UsageError) as caught:
        new(tmp_path / "r")
    assert caught.value.code == "file.exists"
    assert contents(tmp_path / "r") == before


def test_one_key_used_twice_does_not_speak_for_two_logs_of_one_name(tmp_path: Path) -> None:
    first = Registry.init(tmp_path / "a", "lab", LOG_KEY, at=AT)
    second = Registry.init(tmp_path / "b", "lab", LOG_KEY, at=AT + timedelta(microseconds=1))
    assert first.public == second.public
    assert first.name != second.name


def test_what_was_appended_is_there_and_proven(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    for number in range(5):
        appended = append(folder, passport(number))
        assert (appended.index, appended.new) == (number, True)
        shown = proof_of(folder, appended)
        found = checkpoint.parse_proof(shown.to_bytes())
        logged = entries(folder)
        assert found.extra == logged[number]
        head = checkpoint.verify_proof(found, leaf_hash(logged[number]), [vkey]).checkpoint
        assert (head.size, head.root) == (number + 1, merkle.mth(logged))
    assert audited(folder, vkey).total == 0


def test_an_entry_says_what_the_format_page_lists(tmp_path: Path) -> None:
    import base64  # noqa: PLC0415 - the oracle of this one test

    folder = tmp_path / "r"
    vkey = new(folder)
    append(folder, passport(0))
    append(folder, passport(1, lineage="other/agent"))
    append(folder, passport(2))
    envelope = canonical.loads(entries(folder)[2])
    payload = base64.b64decode(envelope["payload"])
    public = SUBMITTER.public_key()
    kind = envelope["payloadType"].encode()
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    public.verify(base64.b64decode(envelope["signatures"][0]["sig"]), signed)
    assert canonical.loads(payload) == {
        "v": 1,
        "type": "passport",
        "log": vkey.name,
        "subject": "lab/agent",
        "passport": {"sha256": hashlib.sha256(passport(2)).hexdigest(), "size": len(passport(2))},
        "claims": {
            "passport_id": digest("passport 2"),
            "agent": digest("agent"),
            "tier": 2,
            "profile": digest("profile"),
            "not_before": "2026-03-01T00:00:00Z",
            "not_after": "2026-05-30T00:00:00Z",
            "supersedes": None,
            "evidence": digest("evidence 2"),
            "attempt": 2,
        },
        "prev": {"index": 0, "leaf": hashlib.sha256(b"\0" + entries(folder)[0]).hexdigest()},
        "issued_at": "2026-03-01T12:00:00Z",
        "submitter": keys.key_id(public),
    }


def test_the_passport_is_kept_under_its_digest(tmp_path: Path) -> None:
    filled(tmp_path / "r", 1)
    name = hashlib.sha256(passport(0)).hexdigest()
    assert (tmp_path / "r" / "blobs" / name[:2] / name).read_bytes() == passport(0)
    with Registry.open(tmp_path / "r") as registry:
        assert registry.passport(name) == passport(0)
        (tmp_path / "r" / "blobs" / name[:2] / name).write_bytes(b"other")
        assert registry.passport(name) is None


def test_the_same_passport_again_is_its_first_index(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 3)
    before = contents(folder / "blobs")
    logged = entries(folder)
    for data in (passport(1), passport(1, blank="\n ")):
        again = append(folder, data)
        assert (again.index, again.new) == (1, False)
        shown = proof_of(folder, again)
        checkpoint.verify_proof(shown, leaf_hash(logged[1]), [vkey])
    assert entries(folder) == logged
    assert contents(folder / "blobs") == before


def test_attempts_are_counted_by_lineage_and_profile(tmp_path: Path) -> None:
    new(tmp_path / "r")
    for number, (lineage, profile) in enumerate(
        [("a/x", "p"), ("a/x", "p"), ("a/x", "q"), ("a/y", "p"), ("a/x", "p")]
    ):
        append(tmp_path / "r", passport(number, lineage=lineage, profile=profile))
    with Registry.open(tmp_path / "r") as registry:
        claims = [one.entry.passport for one in held(registry)]
    assert [one.attempt for one in claims if one] == [1, 2, 1, 1, 3]


@pytest.mark.parametrize("supersedes", [digest("passport 0"), digest("nothing")])
def test_only_the_latest_can_be_superseded_and_a_refusal_leaves_nothing(
    tmp_path: Path, supersedes: str
) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 2)
    append(folder, passport(2, supersedes=digest("passport 1")))
    before = contents(folder)
    with pytest.raises(MismatchError) as caught:
        append(folder, passport(9, supersedes=supersedes))
    assert caught.value.code == "registry.supersedes"
    assert contents(folder) == before
    assert audited(folder, vkey).total == 0


def test_nothing_of_another_lineage_can_be_superseded(tmp_path: Path) -> None:
    filled(tmp_path / "r", 1)
    with pytest.raises(MismatchError):
        append(tmp_path / "r", passport(5, lineage="other/agent", supersedes=digest("passport 0")))


def test_a_passport_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    filled(folder, 1)
    before = contents(folder)
    with pytest.raises(InputError) as caught:
        append(folder, b"{}")
    assert caught.value.code == "passport.form"
    with pytest.raises(InputError) as caught:
        append(folder, passport(7, lineage="x" * 1026))
    assert caught.value.code == "passport.form"
    assert contents(folder) == before


def test_another_log_key_signs_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    filled(folder, 1)
    before = contents(folder)
    with pytest.raises(UsageError) as caught:
        append(folder, passport(1), log_key=STRANGER)
    assert caught.value.code == "registry.log-key"
    assert contents(folder) == before


def test_a_log_key_is_ed25519(tmp_path: Path) -> None:
    keys.write_private(tmp_path / "k.pem", ec.generate_private_key(ec.SECP256R1()), passphrase=None)
    with pytest.raises(UsageError) as caught:
        load_log_key(tmp_path / "k.pem")
    assert caught.value.code == "registry.log-key"


TAMPERED = {
    "an entry gone": "DELETE FROM leaf WHERE idx = 2",
    "an entry more": "INSERT INTO leaf VALUES (3, x'00')",
    "a tile gone": "DELETE FROM tile",
    "a tile too short": "UPDATE tile SET hashes = substr(hashes, 1, 64)",
    "another hash": "UPDATE tile SET hashes = zeroblob(96)",
    "no checkpoint": "DELETE FROM checkpoint",
    "two checkpoints": "INSERT INTO checkpoint SELECT size + 1, note FROM checkpoint",
    "a checkpoint that is text": "UPDATE checkpoint SET note = 'x'",
}


@pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED.keys())
def test_nothing_is_signed_on_top_of_a_contradiction(tmp_path: Path, statement: str) -> None:
    folder = tmp_path / "r"
    filled(folder, 3)
    connection = sqlite3.connect(folder / "registry.db")
    connection.execute(statement)
    connection.commit()
    connection.close()
    before = contents(folder)
    with pytest.raises(MismatchError) as caught:
        append(folder, passport(7))
    assert caught.value.code == "registry.inconsistent"
    assert contents(folder) == before


def test_the_time_of_an_entry_is_utc(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    east = datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    with opened(folder) as registry:
        registry.append(passport(0), check=check, submitter=SUBMITTER, log_key=LOG_KEY, at=east)
        assert held(registry)[0].entry.body.issued_at == "2026-02-28T23:30:00Z"
        with pytest.raises(InputError):
            registry.append(
                passport(1),
                check=check,
                submitter=SUBMITTER,
                log_key=LOG_KEY,
                at=datetime(2026, 3, 1, tzinfo=UTC).replace(tzinfo=None),
            )
        assert registry.head().size == 1


def test_entries_are_found_by_index_and_id(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    filled(folder, 3)
    with Registry.open(folder) as registry:
        whole = digest("passport 1")
        for ident in ("1", whole, whole.removeprefix("sha256:"), whole[:15], whole[7:15]):
            assert registry.find(ident) == 1
        assert registry.logged(1).leaf == leaf_hash(entries(folder)[1])


@pytest.mark.parametrize(
    "ident",
    ["3", "-1", "01", "", "sha256:", "sha256:0000000", "../registry.db", "%", "' OR 1=1 --", "9" * 30, "\0",
     "sha256:" + "f" * 64, "sha256:" + "0" * 65, "1 ", "1\n"],
)  # fmt: skip
def test_what_is_no_id_finds_nothing(tmp_path: Path, ident: str) -> None:
    filled(tmp_path / "r", 3)
    with Registry.open(tmp_path / "r") as registry, pytest.raises(UsageError) as caught:
        registry.find(ident)
    assert caught.value.code == "registry.unknown"


def test_a_beginning_that_fits_two_is_refused(tmp_path: Path) -> None:
    new(tmp_path / "r")
    for number, tail in enumerate("ab"):
        name = digest(f"passport {number}").encode()
        append(tmp_path / "r", passport(number).replace(name, b"sha256:" + b"0" * 63 + tail.encode()))
    with Registry.open(tmp_path / "r") as registry:
        with pytest.raises(UsageError, match="several"):
            registry.find("0" * 63)
        assert registry.find("0" * 63 + "b") == 1


def test_no_proof_of_what_is_not_there(tmp_path: Path) -> None:
    filled(tmp_path / "r", 2)
    with Registry.open(tmp_path / "r") as registry:
        for index in (2, -1, 10**9):
            with pytest.raises(UsageError) as caught:
                registry.prove(index)
            assert caught.value.code == "registry.unknown"
        with pytest.raises(UsageError):
            registry.logged(2)


def test_no_proof_out_of_a_damaged_tree(tmp_path: Path) -> None:
    filled(tmp_path / "r", 3)
    connection = sqlite3.connect(tmp_path / "r" / "registry.db")
    connection.execute("UPDATE tile SET hashes = zeroblob(96)")
    connection.commit()
    connection.close()
    with Registry.open(tmp_path / "r") as registry, pytest.raises(MismatchError) as caught:
        registry.prove(0)
    assert caught.value.code == "tlog.inclusion"


def code_of_opening(folder: Path) -> str:
    with pytest.raises(CertkitError) as caught:
        Registry.open(folder)
    return caught.value.code


def test_what_is_no_registry_is_not_opened(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    assert code_of_opening(folder) == "registry.missing"
    folder.mkdir()
    assert code_of_opening(folder) == "registry.missing"
    (folder / "registry.db").write_bytes(b"")
    assert code_of_opening(folder) == "registry.damaged"
    (folder / "registry.db").write_bytes(b"no database at all" * 1000)
    assert code_of_opening(folder) == "registry.damaged"


FOREIGN = {
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON leaf BEGIN DELETE FROM tile; END",
    "a view": "CREATE VIEW v AS SELECT 1",
    "a table": "CREATE TABLE t (x)",
    "an index": "CREATE INDEX i ON leaf (entry)",
    "no table": "DROP TABLE cosignature",
    "another column": "ALTER TABLE leaf ADD COLUMN x",
}


@pytest.mark.parametrize("statement", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_database_with_anything_else_in_it_is_not_opened(tmp_path: Path, statement: str) -> None:
    filled(tmp_path / "r", 1)
    connection = sqlite3.connect(tmp_path / "r" / "registry.db")
    connection.execute(statement)
    connection.commit()
    connection.close()
    assert code_of_opening(tmp_path / "r") == "registry.damaged"


def test_another_format_is_not_opened(tmp_path: Path) -> None:
    filled(tmp_path / "r", 1)
    connection = sqlite3.connect(tmp_path / "r" / "registry.db")
    connection.execute("UPDATE meta SET value = '3' WHERE key = 'format'")
    connection.commit()
    connection.close()
    assert code_of_opening(tmp_path / "r") == "registry.format"


def test_a_folder_with_a_name_that_a_url_would_misread(tmp_path: Path) -> None:
    folder = tmp_path / "a?mode=memory#b %41"
    vkey = filled(folder, 1)
    assert audited(folder, vkey).size == 1
    assert {path.name for path in tmp_path.iterdir()} == {folder.name, "state"}


def test_no_lineage_becomes_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    for number, lineage in enumerate(["../../escaped", "/etc/passwd", "a\0b", "x/'; DROP TABLE leaf; --"]):
        append(folder, passport(number, lineage=lineage))
    assert audited(folder, vkey).total == 0
    assert {path.name for path in tmp_path.iterdir()} == {"r", "state"}
    assert all(len(path.name) in {2, 64} for path in (folder / "blobs").rglob("*"))
