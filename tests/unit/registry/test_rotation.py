"""Another key takes a log over: what the old one signs, what the new one signs, and who has to know."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit.ground import canonical
from certkit.ground.errors import MismatchError, UsageError
from certkit.passport import envelope as dsse
from certkit.passport import keys
from certkit.registry.entry import PAYLOAD_TYPE, KeyChange, Previous, read
from certkit.registry.heads import remembered
from certkit.registry.writer import Registry
from certkit.tlog import checkpoint
from certkit.tlog.checkpoint import open_checkpoint
from certkit.tlog.note import Signer, VerifierKey
from certkit.tlog.tree import leaf_hash
from tests.support.registries import (
    AT,
    LOG_KEY,
    STRANGER,
    SUBMITTER,
    append,
    audited,
    contents,
    digest,
    filled,
    heads,
    log_entry,
    notice,
    opened,
    passport,
    proof_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.registry.audit import RegistryAudit
    from certkit.registry.writer import Appended

NEW = Ed25519PrivateKey.from_private_bytes(b"\7" * 32)
NEWER = Ed25519PrivateKey.from_private_bytes(b"\x08" * 32)


def rotate(
    folder: Path, old: Ed25519PrivateKey = LOG_KEY, new: Ed25519PrivateKey = NEW
) -> tuple[Appended, VerifierKey]:
    with opened(folder) as registry:
        return registry.rotate(old=old, new=new, at=AT)


def codes(report: RegistryAudit) -> set[str]:
    return {one.code for one in report.findings}


def signs(folder: Path, vkey: VerifierKey) -> bool:
    with Registry.open(folder) as registry:
        note = registry.checkpoint()
    try:
        return open_checkpoint(note, vkey).checkpoint.origin == vkey.name
    except MismatchError:
        return False


def test_the_new_key_takes_over(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    old = filled(folder, 2)
    appended, new = rotate(folder)
    assert (appended.index, new.name) == (2, old.name)
    assert new.public == NEW.public_key().public_bytes_raw()
    assert signs(folder, old)
    assert signs(folder, new), "both sign the checkpoint that first covers the change"
    assert append(folder, passport(2), log_key=NEW).index == 3
    assert not signs(folder, old)
    assert signs(folder, new)
    report = audited(folder, new)
    assert (report.size, report.findings, report.notes) == (4, (), ())


def test_what_the_entry_says(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    old = filled(folder, 1)
    appended, new = rotate(folder)
    shown = proof_of(folder, appended)
    assert shown.extra is not None
    found = read(shown.extra)
    assert (found.body.type, found.body.subject, found.body.passport) == ("key", old.name, None)
    assert found.claims == KeyChange(old=str(old), new=str(new))
    assert found.body.submitter == keys.key_id(LOG_KEY.public_key())
    found.verify(LOG_KEY.public_key())
    for vkey in (old, new):
        checkpoint.verify_proof(shown, leaf_hash(shown.extra), [vkey])


def test_the_old_key_signs_nothing_any_more(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    filled(folder, 1)
    rotate(folder)
    before = contents(folder)
    with pytest.raises(UsageError) as caught:
        append(folder, passport(1))
    assert caught.value.code == "registry.log-key"
    for keys_ in ((LOG_KEY, NEWER), (STRANGER, NEWER), (NEW, NEW)):
        with pytest.raises(UsageError) as caught:
            rotate(folder, *keys_)
        assert caught.value.code == "registry.log-key"
    assert contents(folder) == before


def test_who_trusts_the_old_key_alone_is_told_of_the_new_one(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    old = filled(folder, 1)
    _, new = rotate(folder)
    report = audited(folder, old)
    assert "registry.log-keys" in codes(report)
    assert any(str(new) in one.message for one in report.findings)
    append(folder, passport(1), log_key=NEW)
    assert {"registry.log-keys", "registry.checkpoint"} <= codes(audited(folder, old))


def test_an_older_proof_is_verified_with_the_older_key(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    old = filled(folder, 1)
    with Registry.open(folder) as registry:
        earlier = registry.prove(0)
    _, new = rotate(folder)
    assert earlier.extra is not None
    assert checkpoint.verify_proof(earlier, leaf_hash(earlier.extra), [new, old]).checkpoint.size == 1
    with pytest.raises(MismatchError):
        checkpoint.verify_proof(earlier, leaf_hash(earlier.extra), [new])


def test_keys_change_more_than_once(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    filled(folder, 1)
    rotate(folder)
    appended, newest = rotate(folder, NEW, NEWER)
    shown = proof_of(folder, appended)
    assert shown.extra is not None
    previous = read(shown.extra).body.prev
    assert previous is not None
    assert previous.index == 1, "the changes of keys are a lineage of their own"
    append(folder, passport(1), log_key=NEWER)
    assert audited(folder, newest).total == 0


def forge(folder: Path, change: dict[str, object], key: Ed25519PrivateKey) -> None:
    """Append a change of keys that breaks a rule; whoever holds the present log key could."""
    with opened(folder) as registry, registry.turn(NEW) as turn:
        last = registry._log.entry(1)
        assert last is not None
        entry = canonical.loads(read(last).envelope.payload)
        entry |= {"prev": {"index": 1, "leaf": leaf_hash(last).hex()}} | change
        data = canonical.canonical(dsse.sign(PAYLOAD_TYPE, canonical.canonical(entry), key))
        turn.add(data)


def test_a_chain_of_keys_that_does_not_hold_is_found(tmp_path: Path) -> None:
    origin = filled(tmp_path / "x", 1).name
    old, new, newer = (str(Signer(origin, key).vkey) for key in (LOG_KEY, NEW, NEWER))
    other = str(Signer("certkit.other/x", NEWER).vkey)
    stranger: dict[str, object] = {"submitter": keys.key_id(STRANGER.public_key())}
    own: dict[str, object] = {"submitter": keys.key_id(NEW.public_key())}
    on: dict[str, object] = {"claims": {"old": new, "new": newer}}
    cases: list[tuple[str, dict[str, object], Ed25519PrivateKey]] = [
        ("not submitted by the key that it hands over from", stranger | on, STRANGER),
        ("the signature does not verify", own | on, STRANGER),
        ("it hands over from", {"claims": {"old": old, "new": newer}}, LOG_KEY),
        ("not a verifier key", own | {"claims": {"old": new, "new": "x"}}, NEW),
        ("its keys are another log's", own | {"claims": {"old": new, "new": other}}, NEW),
        ("its keys are another log's", own | on | {"subject": "certkit.other/x", "prev": None}, NEW),
        ("which is not the trusted key", own | on, NEW),
        ("to a key that the log had before", own | {"claims": {"old": new, "new": old}}, NEW),
        ("to a key that the log had before", own | {"claims": {"old": new, "new": new}}, NEW),
    ]
    for number, (words, change, key) in enumerate(cases):
        folder = tmp_path / str(number)
        filled(folder, 1)
        _, vkey = rotate(folder)
        forge(folder, change, key)
        found = audited(folder, vkey)
        assert codes(found) == {"registry.log-keys"}, change
        assert any(words in one.message for one in found.findings), found.findings


def test_a_key_that_takes_over_from_itself_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)
    change = KeyChange(old=str(vkey), new=str(vkey))
    with opened(folder) as registry, registry.turn(LOG_KEY) as turn:
        turn.add(turn.draft(vkey.name, change, submitter=LOG_KEY, at=AT))
    assert codes(audited(folder, vkey)) == {"registry.log-keys"}


def test_a_key_that_was_given_up_does_not_come_back(tmp_path: Path) -> None:
    """A copy of the log from the time of that key would be by the present one, without what came since."""
    folder = tmp_path / "r"
    filled(folder, 1)
    with pytest.raises(UsageError, match="the log has, or had, this key"):
        rotate(folder, LOG_KEY, LOG_KEY)
    rotate(folder)
    _, vkey = rotate(folder, NEW, NEWER)
    for back in (LOG_KEY, NEW, NEWER):
        with pytest.raises(UsageError, match="the log has, or had, this key") as caught:
            rotate(folder, NEWER, back)
        assert caught.value.code == "registry.log-key"
    assert (audited(folder, vkey).size, audited(folder, vkey).total) == (3, 0)


def test_entries_of_other_types_are_appended_by_their_claims(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = filled(folder, 1)
    with opened(folder) as registry:
        appended = log_entry(
            registry, "lab/agent", notice("moved"), submitter=SUBMITTER, log_key=LOG_KEY, at=AT
        )
        first = registry.logged(0)
    shown = proof_of(folder, appended)
    assert shown.extra is not None
    found = read(shown.extra).body
    assert (found.type, found.claims) == ("plan", {"plan": digest("moved"), "lineage": "lab/agent"})
    assert found.prev == Previous(index=0, leaf=first.leaf.hex())
    assert checkpoint.verify_proof(shown, leaf_hash(shown.extra), [vkey]).checkpoint.size == 2
    assert audited(folder, vkey).total == 0


def test_the_new_keys_memory_begins_with_the_checkpoint_that_hands_over(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    old = filled(folder, 2)
    _, new = rotate(folder)
    with Registry.open(folder) as registry:
        assert remembered(heads(folder), old) == remembered(heads(folder), new) == registry.head()
    shutil.copytree(folder, tmp_path / "backup")
    append(folder, passport(2), log_key=NEW)
    shutil.rmtree(folder)
    (tmp_path / "backup").rename(folder)
    with pytest.raises(MismatchError) as caught:
        append(folder, passport(3), log_key=NEW)
    assert caught.value.code == "registry.rollback"
