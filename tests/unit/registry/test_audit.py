"""The audit finds every changed byte, and says what each kind of tampering is."""

from __future__ import annotations

import base64
import hashlib
import sqlite3
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from certkit.ground import canonical
from certkit.ground.errors import Exit, InputError
from certkit.passport import envelope as dsse
from certkit.registry import audit as module
from certkit.registry.audit import audit
from certkit.registry.entry import LIMIT, PAYLOAD_TYPE, Entry, Previous, read, write
from certkit.registry.log import EntryLog
from certkit.registry.writer import Registry
from certkit.tlog.checkpoint import Quorum
from certkit.tlog.note import Signer
from tests.support import merkle
from tests.support.registries import (
    AT,
    LOG_KEY,
    ORIGIN,
    STRANGER,
    SUBMITTER,
    append,
    audited,
    candidate,
    check,
    contents,
    digest,
    filled,
    flips,
    new,
    opened,
    passport,
    submitters,
)
from tests.support.witnesses import KEYS

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from certkit.registry.audit import RegistryAudit
    from certkit.registry.entry import PassportFacts


PLAN = partial(
    Entry,
    type="plan",
    subject="x",
    passport=None,
    issued_at="2026-01-01T00:00:00Z",
    submitter=next(iter(submitters())),
    log=ORIGIN,
)


def plan(number: int) -> dict[str, str]:
    return {"plan": digest(f"{number}"), "lineage": "x"}


def change(folder: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(folder / "registry.db")) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(statement, values)
        connection.commit()


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "registry.db")) as connection:
        return connection.execute(query).fetchall()


def codes(report: RegistryAudit) -> set[str]:
    assert report.total == len(report.findings)
    assert report.exit_code is not Exit.OK or not report.findings
    return {one.code for one in report.findings}


def test_a_sound_registry(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 4)
    append(folder, passport(4, lineage="other/agent"))
    before = contents(folder)
    report = audited(folder, vkey)
    entries = [row[0] for row in rows(folder, "SELECT entry FROM leaf ORDER BY idx")]
    assert (report.size, report.passports, report.findings, report.notes) == (5, 5, (), ())
    assert report.root == merkle.mth(entries).hex()
    assert report.exit_code is Exit.OK
    assert len(report.not_shown) == 5
    assert contents(folder) == before


def test_an_empty_registry_is_sound(tmp_path: Path) -> None:
    vkey = new(tmp_path / "r")
    report = audited(tmp_path / "r", vkey)
    assert (report.size, report.total) == (0, 0)
    assert report.root == hashlib.sha256().hexdigest()


def test_full_tiles_are_made_again_too(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    data: list[bytes] = []
    last = None
    for number in range(600):
        data.append(write(PLAN(claims=plan(number), prev=last), SUBMITTER))
        last = Previous(index=number, leaf=hashlib.sha256(b"\0" + data[-1]).hexdigest())
    signer = Signer(vkey.name, LOG_KEY)
    with opened(folder) as registry:
        connection = registry._connection
        connection.execute("BEGIN IMMEDIATE")
        EntryLog(connection).extend(data[:300], signer)
        EntryLog(connection).extend(data[300:], signer)
        registry._index.rebuild()
        connection.execute("COMMIT")
    assert codes(audited(folder, vkey)) == set()
    assert audited(folder, vkey).root == merkle.mth(data).hex()
    for level, n, hashes in rows(folder, "SELECT level, n, hashes FROM tile"):
        change(folder, "UPDATE tile SET hashes = ? WHERE level = ? AND n = ?", hashes[::-1], level, n)
        report = audited(folder, vkey)
        assert [(one.code, one.where) for one in report.findings] == [
            ("registry.tile-differs", f"tile {level}/{n}")
        ]
        change(folder, "UPDATE tile SET hashes = ? WHERE level = ? AND n = ?", hashes, level, n)


def test_changed_bytes_of_an_entry(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 2)
    ((entry,),) = rows(folder, "SELECT entry FROM leaf WHERE idx = 1")
    for flipped in flips(entry):
        change(folder, "UPDATE leaf SET entry = ? WHERE idx = 1", flipped)
        assert {"registry.tile-differs", "registry.checkpoint"} <= codes(audited(folder, vkey))
    change(folder, "UPDATE leaf SET entry = ? WHERE idx = 1", entry)
    assert audited(folder, vkey).total == 0


def test_changed_bytes_of_tiles_and_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 3)
    (hashes,), (note,) = rows(folder, "SELECT hashes FROM tile") + rows(folder, "SELECT note FROM checkpoint")
    for flipped in flips(hashes):
        change(folder, "UPDATE tile SET hashes = ?", flipped)
        assert codes(audited(folder, vkey)) == {"registry.tile-differs"}
    change(folder, "UPDATE tile SET hashes = ?", hashes)
    for flipped in flips(note):
        change(folder, "UPDATE checkpoint SET note = ?", flipped)
        assert codes(audited(folder, vkey)) == {"registry.checkpoint"}


def test_changed_bytes_of_the_passports(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 2)
    for path in [path for path in (folder / "blobs").rglob("*") if path.is_file()]:
        data = path.read_bytes()
        for flipped in flips(data):
            path.write_bytes(flipped)
            assert codes(audited(folder, vkey)) == {"registry.blob-changed"}
        for other in (b"", data[:-1], data + b" "):
            path.write_bytes(other)
            assert codes(audited(folder, vkey)) == {"registry.blob-changed"}
        path.unlink()
        assert codes(audited(folder, vkey)) == {"registry.blob-missing"}
        path.write_bytes(data)
    assert audited(folder, vkey).total == 0


def test_a_byte_of_the_database_file_is_found_or_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 3)
    path = folder / "registry.db"
    whole = path.read_bytes()

    def dump() -> list[object]:
        tables = ("leaf", "tile", "checkpoint", "cosignature", "meta", "lineage", "ending")
        return [rows(folder, f"SELECT * FROM {table}") for table in tables]  # noqa: S608 - named above

    before = dump()
    found = 0
    for place in range(0, len(whole), 1_103):  # `tests.faults.flips` takes every bit
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        try:
            report = audited(folder, vkey)
        except InputError as error:
            found += error.code == "registry.format"
            continue
        if report.total:
            found += 1
            continue
        assert dump() == before, f"byte {place} changed what is stored, and the audit saw nothing"
        path.write_bytes(whole)
    assert found > 3


TAMPERED = {
    "an entry gone from the middle": ("DELETE FROM leaf WHERE idx = 1", "registry.leaf"),
    "the last entry gone": ("DELETE FROM leaf WHERE idx = 2", "registry.checkpoint"),
    "an entry that is text": ("UPDATE leaf SET entry = 'x' WHERE idx = 1", "registry.leaf"),
    "an entry that is too long": ("UPDATE leaf SET entry = zeroblob(65536) WHERE idx = 1", "registry.leaf"),
    "an entry that is nothing": ("UPDATE leaf SET entry = x'' WHERE idx = 1", "registry.entry"),
    "a foreign entry at the end": ("INSERT INTO leaf VALUES (3, x'00')", "registry.entry"),
    "two entries changed over": (
        "UPDATE leaf SET entry = (SELECT entry FROM leaf AS o WHERE o.idx = 1 - leaf.idx) WHERE idx < 2",
        "registry.chain",
    ),
    "no tile": ("DELETE FROM tile", "registry.tile-differs"),
    "no checkpoint": ("DELETE FROM checkpoint", "registry.checkpoint"),
    "a second checkpoint": ("INSERT INTO checkpoint SELECT 9, note FROM checkpoint", "registry.checkpoint"),
    "a checkpoint that is text": ("UPDATE checkpoint SET note = 'x'", "registry.checkpoint"),
    "another key named": ("UPDATE meta SET value = 'x' WHERE key = 'vkey'", "registry.checkpoint"),
    "no row of a passport": ("DELETE FROM lineage WHERE idx = 1", "registry.index"),
    "no row of the last passport": ("DELETE FROM lineage WHERE idx = 2", "registry.index"),
    "a row for no entry": (
        "INSERT INTO lineage SELECT 3, name, '', NULL, NULL, NULL, NULL, submitter, '' FROM lineage LIMIT 1",
        "registry.index",
    ),
    "another attempt in the index": ("UPDATE lineage SET attempt = 1 WHERE idx = 2", "registry.index"),
    "another name in the index": ("UPDATE lineage SET name = 'x' WHERE idx = 2", "registry.index"),
    "an earlier date in the index": ("UPDATE lineage SET newest = '' WHERE idx = 2", "registry.index"),
    "an ending of nothing": (
        "INSERT INTO ending SELECT 0, passport_id, name, 'revoked', NULL, submitter FROM lineage LIMIT 1",
        "registry.index",
    ),
    "an ending by no entry": (
        "INSERT INTO ending SELECT 9, passport_id, name, 'revoked', NULL, submitter FROM lineage LIMIT 1",
        "registry.index",
    ),
    "a setting more": ("INSERT INTO meta VALUES ('x', 'y')", "registry.checkpoint"),
    "another origin": ("UPDATE meta SET value = 'x' WHERE key = 'origin'", "registry.checkpoint"),
}


@pytest.mark.parametrize(("statement", "code"), TAMPERED.values(), ids=TAMPERED.keys())
def test_what_kind_of_tampering_it_is(tmp_path: Path, statement: str, code: str) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 3)
    change(folder, statement)
    report = audited(folder, vkey)
    assert code in codes(report)
    assert report.exit_code is Exit.MISMATCH


def test_a_log_that_another_key_signed(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 2)
    stranger = Signer(vkey.name, STRANGER)
    change(folder, "UPDATE meta SET value = ? WHERE key = 'vkey'", str(stranger.vkey))
    with Registry.open(folder) as registry:
        text = registry.checkpoint().decode().split("\n\n")[0] + "\n"
    change(folder, "UPDATE checkpoint SET note = ?", f"{text}\n{stranger.sign(text).line}".encode())
    assert codes(audited(folder, vkey)) == {"registry.checkpoint"}
    with_strangers_key = audit(folder, log=stranger.vkey, submitters=submitters(), check=check)
    assert with_strangers_key.total == 0, "the trusted key decides, and nothing inside the registry"


def forge(folder: Path, origin: str, change_: dict[str, Any], key: Any = SUBMITTER) -> None:
    """Append what an operator who breaks the rules could: an entry of any content, rightly signed."""
    last = canonical.loads(read_entry(folder, -1).payload)
    entry = last | change_
    data = canonical.canonical(dsse.sign(PAYLOAD_TYPE, canonical.canonical(entry), key))
    with opened(folder) as registry:
        connection = registry._connection
        connection.execute("BEGIN IMMEDIATE")
        EntryLog(connection).extend([data], Signer(origin, LOG_KEY))
        registry._index.rebuild()
        connection.execute("COMMIT")


def read_entry(folder: Path, place: int) -> dsse.Envelope:
    return read(rows(folder, "SELECT entry FROM leaf ORDER BY idx")[place][0]).envelope


def following(folder: Path) -> dict[str, Any]:
    """What the next entry of the lineage has to say."""
    entries = [row[0] for row in rows(folder, "SELECT entry FROM leaf ORDER BY idx")]
    claims = canonical.loads(read_entry(folder, -1).payload)["claims"]
    return {
        "prev": {"index": len(entries) - 1, "leaf": hashlib.sha256(b"\0" + entries[-1]).hexdigest()},
        "claims": claims
        | {
            "attempt": claims["attempt"] + 1,
            "passport_id": digest("passport 7"),
            "evidence": digest("evidence 7"),
        },
    }


def test_an_operator_who_breaks_the_rules_is_found_out(tmp_path: Path) -> None:
    other = {"sha256": hashlib.sha256(passport(7)).hexdigest(), "size": len(passport(7))}
    cases: dict[str, tuple[dict[str, Any], str]] = {
        "prev left out": ({"prev": None}, "registry.chain"),
        "prev of another place": ({"prev": {"index": 0, "leaf": "0" * 64}}, "registry.chain"),
        "the attempt counted down": ({"claims": {"attempt": 1}}, "registry.chain"),
        "a passport logged twice": ({"claims": {"passport_id": digest("passport 1")}}, "registry.chain"),
        "a tier made better": ({"claims": {"tier": 2}}, "registry.claims"),
        "another lineage": ({"subject": "other/agent"}, "registry.claims"),
        "a passport that is nowhere": (
            {"passport": {"sha256": "0" * 64, "size": 1}},
            "registry.blob-missing",
        ),
        "another size": ({"passport": other | {"size": 1}}, "registry.blob-changed"),
        "no passport": ({"passport": None}, "registry.entry"),
        "another version": ({"v": 2}, "registry.entry"),
        "a key nobody knows": ({"extra": 1}, "registry.entry"),
        "a superseded stranger": ({"claims": {"supersedes": digest("x")}}, "registry.chain"),
    }
    for number, (name, (changed, code)) in enumerate(cases.items()):
        folder = tmp_path / str(number)
        vkey = filled(folder, 2)
        honest = following(folder) | {"passport": other}
        claims = (
            honest["claims"] | changed.get("claims", {}) | {"tier": changed.get("claims", {}).get("tier", 3)}
        )
        sha256 = other["sha256"]
        (folder / "blobs" / str(sha256)[:2]).mkdir(exist_ok=True)
        (folder / "blobs" / str(sha256)[:2] / str(sha256)).write_bytes(passport(7))
        forge(folder, vkey.name, honest | changed | {"claims": claims})
        assert code in codes(audited(folder, vkey)), name


def test_an_honest_entry_made_by_hand_is_accepted(tmp_path: Path) -> None:
    # Else the cases above could be refused for how they are made.
    folder = tmp_path / "r"
    vkey = filled(folder, 2)
    sha256 = hashlib.sha256(passport(7)).hexdigest()
    (folder / "blobs" / sha256[:2]).mkdir(exist_ok=True)
    (folder / "blobs" / sha256[:2] / sha256).write_bytes(passport(7))
    honest = following(folder)
    stored = {"passport": {"sha256": sha256, "size": len(passport(7))}}
    forge(folder, vkey.name, honest | stored | {"claims": honest["claims"] | {"tier": 3}})
    assert codes(audited(folder, vkey)) == set()


def test_who_submitted(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)
    none = audit(folder, log=vkey, submitters={}, check=check)
    assert codes(none) == {"registry.entry-untrusted"}
    assert none.exit_code is Exit.UNTRUSTED
    (name,) = submitters()
    wrong = audit(folder, log=vkey, submitters={name: candidate(name, STRANGER.public_key())}, check=check)
    assert codes(wrong) == {"registry.entry-signature"}
    assert wrong.exit_code is Exit.MISMATCH


def test_many_findings_of_one_code_hide_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LISTED", 1)
    vkey = filled(tmp_path / "r", 3)
    report = audit(tmp_path / "r", log=vkey, submitters={}, check=check, quorum=Quorum.of(1, map(str, KEYS)))
    assert [finding.code for finding in report.findings] == ["registry.entry-untrusted", "registry.witnesses"]
    assert (report.total, report.exit_code) == (4, Exit.MISMATCH)


@pytest.mark.parametrize(
    ("window", "found"),
    [
        ({"not_before": AT, "not_after": AT}, set()),
        ({"not_after": AT - timedelta(minutes=4)}, set()),  # as far as clocks may differ
        ({"not_after": AT - timedelta(minutes=6)}, {"registry.entry-untrusted"}),
        ({"not_before": AT + timedelta(minutes=6)}, {"registry.entry-untrusted"}),
    ],
)
def test_a_key_submits_while_it_is_trusted(
    tmp_path: Path, window: dict[str, datetime], found: set[str]
) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)
    report = audit(folder, log=vkey, submitters=submitters(**window), check=check)
    assert codes(report) == found
    assert report.exit_code is (Exit.UNTRUSTED if found else Exit.OK)


def test_a_passport_that_no_longer_verifies(tmp_path: Path) -> None:
    def refuse(_: bytes, _at: datetime) -> PassportFacts:
        raise InputError("passport.form", "not good")

    folder = tmp_path / "r"
    vkey = filled(folder, 1)
    report = audit(folder, log=vkey, submitters=submitters(), check=refuse)
    assert codes(report) == {"registry.passport"}
    assert "passport.form" in report.findings[0].message


def test_a_passport_kept_as_a_link_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)
    (path,) = (path for path in (folder / "blobs").rglob("*") if path.is_file())
    moved = path.rename(tmp_path / "elsewhere")
    path.symlink_to(moved)
    assert codes(audited(folder, vkey)) == {"registry.blob-missing"}


def test_a_broken_file_is_a_finding_and_a_missing_one_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)
    path = folder / "registry.db"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert codes(audited(folder, vkey)) == {"registry.damaged"}
    path.write_bytes(b"\0" * 100)
    assert codes(audited(folder, vkey)) == {"registry.damaged"}
    path.unlink()
    with pytest.raises(InputError) as caught:
        audited(folder, vkey)
    assert caught.value.code == "registry.missing"


def test_the_document(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)
    sound = audited(folder, vkey).to_dict()
    assert (sound["schema"], sound["result"], sound["total"]) == ("urn:certkit:registry-audit:v1", "sound", 0)
    change(folder, "DELETE FROM tile")
    document = audited(folder, vkey).to_dict()
    assert document["result"] == "unsound"
    assert document["findings"] == [
        {"code": "registry.tile-differs", "where": "tile 0/0", "message": "not what the entries give"}
    ]
    canonical.canonical(document)


def test_an_entry_beyond_the_limit_is_not_written() -> None:
    entry = PLAN(claims=plan(1) | {"more": "x" * LIMIT}, prev=None)
    with pytest.raises(InputError) as caught:
        write(entry, SUBMITTER)
    assert caught.value.code == "registry.entry"


def test_an_entry_is_read_strictly() -> None:
    entry = PLAN(claims=plan(1), prev=None)
    good = canonical.loads(base64.b64decode(canonical.loads(write(entry, SUBMITTER))["payload"]))
    bad: list[Any] = [
        [], None, "x", {},
        {key: value for key, value in good.items() if key != "prev"},
        good | {"type": "else"},
        good | {"subject": ""},
        good | {"issued_at": "2026-01-01T00:00:00+00:00"},
        good | {"issued_at": "2026-01-01T00:00:00Z\n"},
        good | {"submitter": "sha256:x"},
        good | {"claims": []},
        good | {"prev": {"index": -1, "leaf": "0" * 64}},
        good | {"prev": {"index": 0, "leaf": "0" * 63}},
        good | {"passport": {"sha256": "A" * 64, "size": 0}},
        good | {"type": "passport", "passport": {"sha256": "a" * 64, "size": 0}},
    ]  # fmt: skip
    for document in [good, *bad]:
        data = canonical.canonical(dsse.sign(PAYLOAD_TYPE, canonical.canonical(document), SUBMITTER))
        if document is good:
            assert read(data).body == entry
            continue
        with pytest.raises(InputError) as caught:
            read(data)
        assert caught.value.code == "registry.entry"
    other = canonical.canonical(dsse.sign("text/plain", canonical.canonical(good), SUBMITTER))
    for data in (b"", b"{}", b"\xff", other, b"[" * 100_000):
        with pytest.raises(InputError) as caught:
            read(data)
        assert caught.value.code == "registry.entry"
