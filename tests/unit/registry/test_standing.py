"""What becomes of logged passports: attempts, what follows from them, endings, and what is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import structs

from certkit.ground import canonical
from certkit.ground.errors import CertkitError, InputError
from certkit.passport import envelope as dsse
from certkit.passport import keys
from certkit.passport.trust import Trust, TrustedKey, Witnesses
from certkit.passport.verify import verify
from certkit.registry.audit import inspect
from certkit.registry.entry import PAYLOAD_TYPE, Revocation, read
from certkit.registry.heads import head_of as read_head
from certkit.registry.heads import remembered
from certkit.registry.status import FileStatus
from certkit.registry.writer import Registry, supersede
from certkit.tlog.checkpoint import Checkpoint, with_signatures
from certkit.tlog.tree import leaf_hash
from tests.support.lineages import KEY, NOW, hand, heads, issue, log, new, policy
from tests.support.registries import LOG_KEY, contents, held
from tests.support.signers import Signer
from tests.support.standings import DAY, announce, ended, file, head_of, offline, rows, standing, unseen

if TYPE_CHECKING:
    from pathlib import Path


OTHER = keys.generate("ed25519")
WITNESS = Signer("w.example", Ed25519PrivateKey.from_private_bytes(b"\7" * 32))


def two_issuers(**more: Any) -> Trust:
    key = TrustedKey(pem=keys.public_pem(OTHER.public_key()))
    return policy(**more).with_issuer("Other Lab", key)


def types(folder: Path) -> list[str]:
    with Registry.open(folder) as registry:
        return [one.entry.body.type for one in held(registry)]


def test_a_further_attempt_must_say_so_and_a_second_passport_on_the_same_evidence_is_none(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1))
    before = contents(folder)
    for attempt in (1, None):
        with pytest.raises(CertkitError) as caught:
            log(folder, issue(2, attempt=attempt))
        assert (caught.value.code, caught.value.exit_code) == ("registry.attempt", 7)
        assert "attempt 2" in str(caught.value.hint)
    assert contents(folder) == before
    log(folder, issue(1, days=1), days=1)
    log(folder, issue(2), days=1)
    log(folder, issue(5), days=1)  # whoever counts tries that were never logged may say so
    with Registry.open(folder) as registry:
        attempts = [one.entry.passport.attempt for one in held(registry) if one.entry.passport]
    assert attempts == [1, 1, 2, 3]


def test_the_status_as_of_a_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    trust = policy(vkey)
    first = issue(1)
    assert standing(folder, first, trust).detail.startswith("no entry is about it, as of checkpoint 0")
    log(folder, first)
    found = standing(folder, first, trust)
    assert found.status == "passed"
    assert found.detail.startswith("no entry in [0, 1) ends it, as of checkpoint 1 of certkit.lab/")
    assert found.detail.endswith("at most 24 hours old")
    # nothing was logged for longer than the policy allows
    assert (standing(folder, first, trust, days=8).status, standing(folder, first, trust, days=7).status) == (
        "skipped",
        "passed",
    )
    with Registry.open(folder, heads=heads(folder)) as registry:
        announce(registry, None, "nothing happened", hand=hand(days=8))
    assert standing(folder, first, trust, days=9).status == "passed"
    second = issue(2, supersedes=first.passport_id, days=9)
    log(folder, second, days=9)
    assert standing(folder, first, trust, days=9).code == "passport.superseded"
    assert standing(folder, second, trust, days=9).status == "passed"
    assert ended(folder, second.passport_id, days=10) == 3
    assert ended(folder, 0, days=10) == 4
    for one in (first, second):
        found = standing(folder, one, trust, days=10)
        assert (found.code, found.exit_code) == ("passport.revoked", 6)
        assert "key-compromise" in found.detail
    assert ended(folder, 0, days=11) == 4, "the same revocation again is the first one"
    assert inspect(folder, trust=trust).findings == ()


def test_only_its_issuer_ends_a_passport(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    one = issue(1)
    log(folder, one)
    rules = two_issuers()
    with pytest.raises(CertkitError) as caught:
        ended(folder, 0, submitter=OTHER, rules=rules)
    assert (caught.value.code, caught.value.exit_code) == ("registry.not-issuer", 8)
    # under the issuer's own name the same key is a delegate
    delegated = policy().with_issuer("Example Lab", TrustedKey(pem=keys.public_pem(OTHER.public_key())))
    assert ended(folder, 0, submitter=OTHER, rules=delegated) == 1
    # whoever does not delegate to it sees no revocation, and is told of the entry
    strict = structs.replace(two_issuers(), logs=(str(vkey),))
    found = standing(folder, one, strict)
    assert found.status == "passed"
    assert "does not count: entry 1" in found.detail
    report = inspect(folder, trust=strict)
    assert [finding.code for finding in report.findings] == ["registry.not-issuer"]
    assert standing(folder, one, structs.replace(delegated, logs=(str(vkey),))).code == "passport.revoked"


def test_bytes_that_may_be_a_revocation_make_the_status_unknown(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, one := issue(1))
    log(folder, issue(2))
    with Registry.open(folder, heads=heads(folder)) as registry, registry.turn(LOG_KEY) as turn:
        claims = Revocation(passport_id=one.passport_id, reason="agent-withdrawn")
        plain = turn.draft("-/courier", claims, submitter=KEY, at=NOW)
        payload = read(plain).envelope.payload.replace(b'"passport_id":"s', b'"passport_id":"\\u0073')
        turn.add(canonical.canonical(dsse.sign(PAYLOAD_TYPE, payload, KEY)))
    assert standing(folder, one, trust).code == "passport.unavailable"
    with pytest.raises(InputError, match="canonical"):
        file(folder, 0)


def test_an_earlier_passport_is_superseded_by_the_latest_alone(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    log(folder, first := issue(1))
    log(folder, issue(2))
    with Registry.open(folder, heads=heads(folder)) as registry:
        for ident, by in (("1", "0"), ("1", "1"), ("0", "0")):
            with pytest.raises(CertkitError) as caught:
                supersede(registry, ident, by=by, hand=hand())
            assert caught.value.code == "registry.supersedes"
        assert supersede(registry, "0", by="1", hand=hand()).entry.index == 2
        assert not supersede(registry, "0", by="1", hand=hand()).entry.new
    assert standing(folder, first, policy(vkey)).code == "passport.superseded"


def test_a_log_that_does_not_hold_has_no_status(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    trust = policy(vkey)
    log(folder, one := issue(1))
    stranger = structs.replace(trust, logs=())
    found = standing(folder, one, stranger)
    assert (found.status, found.code) == ("skipped", "registry.untrusted-log")
    later = head_of(folder)
    longer = Checkpoint(later.origin, 9, later.root)
    found = standing(folder, one, trust, seen=lambda _: longer)
    assert (found.status, found.code) == ("failed", "registry.rollback")
    other = Checkpoint(later.origin, 1, leaf_hash(b"another"))
    assert standing(folder, one, trust, seen=lambda _: other).code == "registry.rollback"
    assert standing(folder, one, trust, seen=lambda _: later).status == "passed"
    with Registry.open(folder, heads=heads(folder)) as registry:
        announce(registry, None, "one more", hand=hand())
    rows(folder, "DELETE FROM leaf WHERE idx = 1")
    assert standing(folder, one, trust).code == "registry.inconsistent"


def test_a_quorum_of_witnesses_says_how_old_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    witnesses = Witnesses(k=1, keys=(str(WITNESS.witness_vkey),))
    trust = policy(vkey, witnesses=witnesses)
    log(folder, one := issue(1))
    assert standing(folder, one, trust).code == "passport.witnesses"
    assert [found.code for found in inspect(folder, trust=trust).findings] == ["registry.witnesses"]
    cosign(folder, days=20)
    assert standing(folder, one, trust, days=21).detail.endswith("at most 24 hours old")
    assert standing(folder, one, trust, days=28).status == "skipped"
    assert "of unknown age" in standing(folder, one, trust, days=19).detail, "a time to come says nothing"
    report = inspect(folder, trust=trust)
    assert report.findings == ()
    assert "2026-03-21T12:00:00Z" in report.not_shown[0]
    assert "no witness" in inspect(folder, trust=policy(vkey)).not_shown[0]


def cosign(folder: Path, *, days: int) -> None:
    with Registry.open(folder) as registry:
        data = registry.checkpoint()
    text = read_head(data).text
    line = WITNESS.cosign(text, int((NOW + days * DAY).timestamp()))
    rows(folder, "UPDATE checkpoint SET note = ?", with_signatures(data, [line]))


def test_a_status_file_says_offline_what_the_log_says(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    trust = policy(vkey)
    log(folder, first := issue(1))
    with Registry.open(folder, heads=heads(folder)) as registry:
        announce(registry, None, "about the log, and no part of the lineage", hand=hand())
    fresh = file(folder, 0)
    assert offline(fresh, first, trust).detail.startswith("no entry in [0, 2) ends it")
    assert offline(fresh, first, trust, days=8).status == "skipped"
    log(folder, second := issue(2, supersedes=first.passport_id), days=1)
    ended(folder, 2, days=1)
    assert offline(file(folder, 0, days=1), first, trust).code == "passport.superseded"
    assert offline(file(folder, 2, days=1), second, trust).code == "passport.revoked"
    assert offline(file(folder, 2, days=1), first, trust).code == "registry.status"
    with pytest.raises(CertkitError) as caught:
        file(folder, 1)
    assert caught.value.code == "registry.unknown"
    # what one remembers is newer than the file
    head = remembered(heads(folder), vkey)
    found = offline(fresh, first, trust, seen=lambda _: head)
    assert (found.status, found.code) == ("skipped", "registry.rollback")
    # a status that came along decides nothing that the policy does not ask for
    verified = verify(
        first.to_json(),
        trust=trust,
        at=NOW + 8 * DAY,
        beside=FileStatus(fresh, trust=trust, at=NOW + 8 * DAY, seen=unseen),
    )
    assert verified.verdict == "verified"
    required = structs.replace(trust, require=("status",))
    assert (
        verify(
            first.to_json(),
            trust=required,
            at=NOW + 8 * DAY,
            beside=FileStatus(fresh, trust=required, at=NOW + 8 * DAY, seen=unseen),
        ).verdict
        == "unverifiable"
    )


def test_a_status_file_cannot_leave_out_what_ended_it(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    trust = policy(vkey)
    log(folder, one := issue(1))
    early = canonical.loads(file(folder, 0))
    ended(folder, 0)
    with Registry.open(folder, heads=heads(folder)) as registry:
        announce(registry, "-/courier", "a later entry of the lineage", hand=hand())
    whole = canonical.loads(file(folder, 0))
    entries = whole["entries"]
    assert len(entries) == 2
    cases: dict[str, tuple[dict[str, Any], str]] = {
        "the last left out": ({"entries": entries[:1]}, "registry.status"),
        "the first left out": ({"entries": entries[1:]}, "registry.status"),
        "an earlier word": ({"word": early["word"]}, "registry.status"),
        "an earlier word and its entries": (
            {"word": early["word"], "entries": early["entries"]},
            "registry.status",
        ),
        "no word": ({"word": whole["checkpoint"]}, "registry.status"),
        "no entry": ({"entries": []}, "registry.status"),
        "more": ({"more": 1}, "registry.status"),
        "an entry elsewhere": (
            {"entries": [entries[0], entries[1] | {"index": 2}]},
            "registry.status",
        ),
        "no base64": ({"entries": [entries[0] | {"entry": "!"}]}, "registry.status"),
    }
    for name, (changed, code) in cases.items():
        found = offline(canonical.canonical(whole | changed), one, trust)
        unreadable = name in {"more", "no base64"}  # which says nothing of the passport
        assert (found.status, found.code) == ("skipped" if unreadable else "failed", code), name
    assert offline(canonical.canonical(whole), one, trust).code == "passport.revoked"
    # The earlier file is whole: an older state, which only its age or a memory tells.
    assert offline(canonical.canonical(early), one, trust).status == "passed"


def test_a_sound_audit_remembers_and_a_rolled_back_log_is_found(tmp_path: Path) -> None:
    folder, memory = tmp_path / "r", tmp_path / "auditor.db"
    vkey = new(folder)
    trust = policy(vkey)
    log(folder, issue(1))
    older = {name: data for name, data in contents(folder).items() if name.endswith(".db")}
    log(folder, issue(2))
    assert inspect(folder, trust=trust, heads=memory).total == 0
    assert remembered(memory, vkey) == head_of(folder)
    for item in folder.glob("registry.db*"):
        item.unlink()
    for name, data in older.items():
        (folder / name).write_bytes(data)
    report = inspect(folder, trust=trust, heads=memory)
    assert "registry.rollback" in {finding.code for finding in report.findings}
