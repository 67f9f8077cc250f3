"""What the writer refuses, an audit finds where somebody else wrote it; and what an audit is held against."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from contextlib import closing, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import structs

from certkit.ground import canonical
from certkit.ground.errors import Exit, MismatchError
from certkit.ground.progress import SILENT
from certkit.passport import envelope as dsse
from certkit.passport import keys
from certkit.passport.steps import RefusedPassportError
from certkit.passport.trust import Trust, TrustedKey
from certkit.registry import log as store
from certkit.registry.audit import inspect
from certkit.registry.entry import (
    CLAIMS,
    PAYLOAD_TYPE,
    Claims,
    Entry,
    PlanNotice,
    Previous,
    Revocation,
    Stored,
    Supersession,
    read,
    timestamp,
    write,
)
from certkit.registry.heads import remembered
from certkit.registry.publish import export
from certkit.registry.reader import checkpoint_in
from certkit.registry.writer import Registry, checker
from certkit.tlog.checkpoint import Checkpoint, sign_checkpoint
from certkit.tlog.note import Signer, write_note
from certkit.tlog.tree import EMPTY_ROOT
from tests.support import stamping as stamps
from tests.support.lineages import KEY, NOW, ORIGIN, begun, clustered, heads, issue, log, new, policy
from tests.support.registries import LOG_KEY, STRANGER, held, log_entry, notice

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from certkit.registry.entry import AnyClaims

OTHER = keys.generate("ed25519")
DAY = timedelta(days=1)


def says(folder: Path, claims: AnyClaims, submitter: keys.PrivateKey = KEY, *, days: int = 0) -> None:
    """Log an entry as whoever keeps the log can, whatever it says."""
    with Registry.open(folder, heads=heads(folder)) as registry:
        subject = registry.logged(0).entry.body.subject
        log_entry(registry, subject, claims, submitter=submitter, log_key=LOG_KEY, at=NOW + days * DAY)


def found(folder: Path, trust: Trust) -> list[tuple[str, str]]:
    return [(one.where, one.code) for one in inspect(folder, trust=trust).findings]


def two_issuers(trust: Trust) -> Trust:
    return trust.with_issuer("Other Lab", TrustedKey(pem=keys.public_pem(OTHER.public_key())))


@pytest.mark.parametrize("how", ["revoked", "superseded"])
def test_another_issuer_ends_no_passport(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "r"
    trust = two_issuers(policy(new(folder)))
    log(folder, first := issue(1))
    log(folder, second := issue(2))
    revoked = Revocation(passport_id=first.passport_id, reason="issued-in-error")
    superseded = Supersession(passport_id=first.passport_id, by=second.passport_id)
    says(folder, revoked if how == "revoked" else superseded, OTHER)
    assert found(folder, trust) == [("entry 2", "registry.not-issuer")]


def test_a_checkpoint_of_another_log_accuses_nobody(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    vkeys = [new(one), Registry.init(other, "other", LOG_KEY, at=NOW)]
    log(one, issue(1))
    trust = structs.replace(policy(), logs=tuple(map(str, vkeys)))
    for count in (0, 1):
        path = tmp_path / f"{count}.checkpoint"
        with Registry.open(other) as registry:
            path.write_bytes(registry.checkpoint())
        with pytest.raises(MismatchError, match=r"expected a checkpoint of certkit\.lab/") as caught:
            inspect(one, trust=trust, since=checkpoint_in(path, trust))
        assert caught.value.code == "tlog.origin"
        log(other, issue(1))


def extended(folder: Path, data: bytes) -> None:
    """Log bytes as whoever keeps the log can."""
    with Registry.open(folder, heads=heads(folder)) as registry, registry.turn(LOG_KEY) as turn:
        turn.add(data)


def dated(folder: Path, claims: AnyClaims, moved: timedelta, **more: Any) -> bytes:
    """The next entry of the first one's lineage, dated at `NOW` and what it is moved by."""
    with Registry.open(folder) as registry:
        entries = list(held(registry))
    subject = entries[0].entry.body.subject
    if isinstance(claims, PlanNotice):
        claims = structs.replace(claims, lineage=subject)
    last = Previous(index=len(entries) - 1, leaf=entries[-1].leaf.hex())
    entry = Entry(
        type=next(name for name, kind in CLAIMS.items() if isinstance(claims, kind)),
        subject=subject,
        claims=msgspec.to_builtins(claims),
        prev=last,
        issued_at=timestamp(NOW + moved),
        submitter=keys.key_id(KEY.public_key()),
        **{"passport": None} | more,
        log=ORIGIN,
    )
    return write(entry, KEY)


def test_an_entry_that_is_dated_back_is_refused_and_found(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, issue(1), days=2)
    with pytest.raises(
        MismatchError, match=r"dated 2026-03-02T.*the log holds an entry of 2026-03-03T"
    ) as caught:
        log(folder, issue(2), days=1)
    assert (caught.value.code, caught.value.exit_code) == ("registry.time", 7)
    assert "dated back" in str(caught.value.hint)
    assert found(folder, trust) == []
    for seconds in (-300, -301):
        extended(folder, dated(folder, notice("x"), 2 * DAY + timedelta(seconds=seconds)))
    report = inspect(folder, trust=trust)
    assert [(one.where, one.code) for one in report.findings] == [("entry 2", "registry.time")]
    assert "entry 0 above it 2026-03-03T" in report.findings[0].message


def test_clocks_may_differ_by_minutes_when_one_writes(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1, days=-2))
    for seconds, refused in ((-300, False), (-301, True)):
        at = NOW + timedelta(seconds=seconds)
        with (
            Registry.open(folder, heads=heads(folder)) as registry,
            pytest.raises(MismatchError) if refused else nullcontext(),
        ):
            log_entry(registry, "x", notice("x"), submitter=KEY, log_key=LOG_KEY, at=at)
    assert log(folder, issue(1, days=-2), days=-1).index == 0, "the same passport again is no new entry"


def test_what_an_untrusted_key_dates_binds_nobody_in_an_audit(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, issue(1))
    says(folder, notice("x"), OTHER, days=30)
    extended(folder, dated(folder, notice("y"), DAY))
    assert found(folder, trust) == [("entry 1", "registry.entry-untrusted")]


def test_an_entry_of_a_time_to_come(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, issue(1))
    says(folder, notice("x"), days=1)
    extended(folder, dated(folder, notice("y"), timedelta(0)))
    for at, expected in (
        (NOW + DAY - timedelta(minutes=6), [("entry 1", "registry.time")]),
        (NOW + DAY - timedelta(minutes=5), [("entry 2", "registry.time")]),
    ):
        report = inspect(folder, trust=trust, at=at)
        assert [(one.where, one.code) for one in report.findings] == expected


@pytest.mark.parametrize("days", [-400, -91, -90, 0, 400])
def test_a_passport_is_logged_while_it_is_valid(tmp_path: Path, days: int) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, issue(1))
    data = issue(2, summary=begun(clustered(900), days), days=days).to_json()
    facts = checker(trust)(data, NOW + days * DAY)
    stored = Stored(sha256=hashlib.sha256(data).hexdigest(), size=len(data))
    store.store_blob(folder, data)
    extended(folder, dated(folder, Claims.of(facts, 2), timedelta(0), passport=stored))
    codes = [one for one in found(folder, trust) if one[1] == "registry.time"]
    assert codes == ([] if days in {-90, 0} else [("entry 1", "registry.time")])


def retiring(trust: Trust, when: datetime) -> Trust:
    (issuer,) = trust.issuers
    return structs.replace(
        trust, issuers=(structs.replace(issuer, keys=(structs.replace(issuer.keys[0], not_after=when),)),)
    )


def test_a_passport_by_a_key_that_was_retired_before_is_not_logged(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    open_ended = policy(new(folder))
    trust = retiring(open_ended, NOW + 10 * DAY)
    log(folder, issue(1), days=10, trust=trust)
    late = issue(2, days=5)
    trust = two_issuers(trust)
    with pytest.raises(RefusedPassportError, match=r"dated 2026-03-12.* trusted … to 2026-03-11") as caught:
        log(folder, late, days=11, trust=trust, submitter=OTHER)
    assert (caught.value.code, caught.value.exit_code) == ("passport.key-window", Exit.ENDED)
    assert found(folder, trust) == []
    log(folder, late, days=11)
    assert found(folder, open_ended) == []
    assert found(folder, trust) == [("entry 1", "registry.entry-untrusted"), ("entry 1", "registry.time")]


def test_a_timestamp_shows_that_a_retired_key_signed_in_time() -> None:
    # The key's window ends four minutes after the validity begins, and the timestamp lies before that.
    trust = stamps.policy(stamps.ROOT, required=False, not_after="2026-02-01T00:04:00Z")
    plain, stamped = canonical.line(stamps.GOOD), canonical.line(stamps.stamped(stamps.TOKEN))
    with pytest.raises(RefusedPassportError, match="to 2026-02-01T00:04:00Z"):
        checker(trust)(plain, stamps.LATER)
    assert checker(trust)(stamped, stamps.LATER).issuer is not None


def test_what_a_stranger_says_keeps_no_issuer_from_revoking(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = two_issuers(policy(new(folder)))
    log(folder, first := issue(1))
    for submitter in (keys.generate("ed25519"), OTHER, KEY):
        says(folder, Revocation(passport_id=first.passport_id, reason="evidence-false"), submitter)
    assert found(folder, trust) == [
        ("entry 1", "registry.entry-untrusted"),
        ("entry 2", "registry.not-issuer"),
    ]


def test_a_revoked_passport_may_be_superseded_by_one_that_names_it(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, first := issue(1))
    says(folder, Revocation(passport_id=first.passport_id, reason="evidence-false"))
    log(folder, issue(2, summary=clustered(900), supersedes=first.passport_id))
    assert found(folder, trust) == []


@pytest.mark.parametrize("submitter", [KEY, OTHER], ids=["its submitter", "another"])
def test_without_passports_it_stays_open_whether_the_issuer_revoked(
    tmp_path: Path, submitter: keys.PrivateKey
) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    trust = two_issuers(policy(new(folder)))
    log(folder, first := issue(1))
    says(folder, Revocation(passport_id=first.passport_id, reason="evidence-false"), submitter)
    export(folder, out, passports=False, progress=SILENT)
    report = inspect(out, trust=trust)
    assert report.findings == ()


def test_what_is_signed_has_one_form_too(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, issue(1))
    payload = read(dated(folder, notice("x"), timedelta(0))).envelope.payload
    padded = payload.replace(b"{", b"{ ", 1)
    extended(folder, canonical.canonical(dsse.sign(PAYLOAD_TYPE, padded, KEY)))
    assert found(folder, trust) == [("entry 1", "registry.entry")]


def test_too_few_attempts_are_found_where_the_writer_did_not_ask(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, issue(1))
    data = issue(2, attempt=1).to_json()
    facts = checker(trust)(data, NOW)
    stored = Stored(sha256=hashlib.sha256(data).hexdigest(), size=len(data))
    store.store_blob(folder, data)
    extended(folder, dated(folder, Claims.of(facts, 2), timedelta(0), passport=stored))
    assert found(folder, trust) == [("entry 1", "registry.attempt")]


def test_a_hostile_log_of_the_same_name_leaves_no_trace_in_what_is_remembered(tmp_path: Path) -> None:
    folder, evil, memory = tmp_path / "r", tmp_path / "evil", tmp_path / "auditor.db"
    vkey = new(folder)
    log(folder, issue(1))
    stranger = Signer(vkey.name, STRANGER)
    Registry.init(evil, "lab", STRANGER, at=NOW)
    with closing(sqlite3.connect(evil / "registry.db")) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'origin'", (vkey.name,))
        connection.execute("UPDATE meta SET value = ? WHERE key = 'vkey'", (str(stranger.vkey),))
        empty = sign_checkpoint(Checkpoint(vkey.name, 0, EMPTY_ROOT), stranger)
        connection.execute("UPDATE checkpoint SET note = ?", (empty,))
        connection.commit()
    log(evil, issue(2), log_key=STRANGER)
    for _ in range(2):
        assert inspect(evil, trust=policy(stranger.vkey), heads=memory).total == 0
        assert inspect(folder, trust=policy(vkey), heads=memory).total == 0
    assert remembered(memory, vkey) != remembered(memory, stranger.vkey)


def test_memory_outlives_a_change_of_keys(tmp_path: Path) -> None:
    folder, fork, memory = tmp_path / "r", tmp_path / "fork", tmp_path / "auditor.db"
    old = new(folder)
    shutil.copytree(folder, fork)
    log(folder, issue(1))
    assert inspect(folder, trust=policy(old), heads=memory).total == 0
    log(fork, issue(2))
    for place in (folder, fork):
        with Registry.open(place, heads=heads(place)) as registry:
            _, vkey = registry.rotate(old=LOG_KEY, new=STRANGER, at=NOW)
    both = structs.replace(policy(), logs=(str(old), str(vkey)))
    report = inspect(fork, trust=both, heads=memory)
    assert [one.code for one in report.findings] == ["registry.rollback"]
    assert inspect(folder, trust=both, heads=memory).total == 0


def test_what_is_unsound_is_not_remembered(tmp_path: Path) -> None:
    folder, memory = tmp_path / "r", tmp_path / "auditor.db"
    vkey = new(folder)
    log(folder, first := issue(1))
    assert inspect(folder, trust=policy(vkey), heads=memory).total == 0
    says(folder, Revocation(passport_id=first.passport_id, reason="evidence-false"), OTHER)
    assert inspect(folder, trust=policy(vkey), heads=memory).total == 1
    head = remembered(memory, vkey)
    assert head is not None
    assert head.size == 1


def test_a_checkpoint_that_nobody_trusted_signed_is_not_gone_by(tmp_path: Path) -> None:
    folder, path = tmp_path / "r", tmp_path / "since"
    vkey = new(folder)
    text = Checkpoint(vkey.name, 9, EMPTY_ROOT).text
    own, stranger = Signer(vkey.name, LOG_KEY).sign(text), Signer(vkey.name, STRANGER).sign(text)
    for signature, code in (
        (stranger, "tlog.unsigned"),
        (stranger._replace(key_id=own.key_id), "tlog.signature"),
    ):
        path.write_bytes(write_note(text, [signature]))
        with pytest.raises(MismatchError) as caught:
            checkpoint_in(path, policy(vkey))
        assert (caught.value.code, caught.value.where) == (code, str(path))
    path.write_bytes(write_note(text, [own]))
    assert checkpoint_in(path, policy(vkey)).size == 9
