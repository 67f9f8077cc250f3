"""What a status believes: a keeper who logs what nobody signed, forks, replays, or uses a key given up."""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import structs

from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from certkit.passport.verify import verify
from certkit.registry import log as store
from certkit.registry.audit import inspect
from certkit.registry.entry import read, timestamp
from certkit.registry.heads import remembered
from certkit.registry.reader import reading, show
from certkit.registry.status import write
from certkit.registry.writer import Registry, revoke
from certkit.tlog.checkpoint import Checkpoint
from certkit.tlog.tree import leaf_hash
from tests.support.lineages import KEY, NOW, hand, heads, issue, log, new, policy
from tests.support.registries import LOG_KEY, STRANGER, notice
from tests.support.standings import (
    DAY,
    announce,
    copied,
    drafted,
    ended,
    file,
    head_of,
    offline,
    slip,
    standing,
    stored,
    unseen,
)

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.passport.keys import PrivateKey
    from certkit.passport.passport import Passport
    from certkit.passport.trust import Trust
    from certkit.registry.entry import Reason
    from certkit.tlog.note import VerifierKey

NEW_LOG_KEY = Ed25519PrivateKey.from_private_bytes(b"\x0a" * 32)


def status_at(folder: Path, index: int) -> bytes:
    return write(folder, index, key=LOG_KEY, heads=heads(folder), at=NOW + DAY)


def revoked(tmp_path: Path) -> tuple[Path, VerifierKey, Passport]:
    folder = tmp_path / "r"
    vkey = new(folder)
    log(folder, one := issue(1))
    assert ended(folder, 0) == 1
    return folder, vkey, one


@pytest.mark.parametrize("subject", ["evil/decoy", "-/courier"])
def test_a_status_is_that_of_the_passport_whichever_entry_is_named(tmp_path: Path, subject: str) -> None:
    folder, vkey, one = revoked(tmp_path)
    slip(folder, copied(folder, 0, STRANGER, subject=subject))
    trust = policy(vkey, require=("status",))
    for index in (0, 2):
        found = offline(status_at(folder, index), one, trust)
        assert found.code == "passport.revoked"
        assert "does not count: entry 2" in found.detail
    with pytest.raises(CertkitError) as caught:
        status_at(folder, 1)
    assert caught.value.code == "registry.unknown"


def test_the_file_says_what_no_proof_shows(tmp_path: Path) -> None:
    folder, _, _ = revoked(tmp_path)
    assert "the word of the log's key" in canonical.loads(status_at(folder, 0))["says"]


@pytest.mark.parametrize(
    ("key", "subject", "status", "words"),
    [
        (STRANGER, "-/courier", "skipped", "does not count: entry 0"),
        (KEY, "lab/decoy", "failed", "logged under 'lab/decoy', and it is of '-/courier'"),
    ],
)
def test_a_passport_is_logged_by_a_trusted_key_under_its_own_lineage(
    tmp_path: Path, key: PrivateKey, subject: str, status: str, words: str
) -> None:
    genuine = tmp_path / "genuine"
    new(genuine)
    log(genuine, one := issue(1))
    folder = tmp_path / "r"
    trust = policy(new(folder), require=("status",))
    slip(folder, copied(genuine, 0, key, subject=subject))
    with Registry.open(folder, heads=heads(folder)) as registry:
        announce(registry, None, "a trusted key", hand=hand(days=1))
    for found in (standing(folder, one, trust), offline(status_at(folder, 0), one, trust)):
        assert (found.status, words in found.detail) == (status, True), found.detail
    # beside the genuine entry a stranger's one takes nothing away
    slip(genuine, copied(genuine, 0, STRANGER))
    with Registry.open(genuine) as registry:
        origin = str(registry.vkey)
    assert standing(genuine, one, structs.replace(trust, logs=(origin,))).status == "passed"


def test_an_entry_that_was_signed_for_another_log_logs_nothing_here(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    one = issue(1)
    here = new(first)
    log(first, one)
    there = Registry.init(second, "other", NEW_LOG_KEY, at=NOW)
    store.store_blob(second, one.to_json())
    replayed = stored(first, 0)
    assert read(replayed).body.log == here.name
    with Registry.open(first, heads=heads(first)) as registry:
        announce(registry, None, "young", hand=hand(days=2))
    slip(second, replayed, stored(first, 1), log_key=NEW_LOG_KEY)
    ended(first, 0, days=2)
    trust = structs.replace(policy(here, require=("status",)), logs=(str(here), str(there)))
    assert standing(first, one, trust, days=2).code == "passport.revoked"
    found = standing(second, one, trust, days=2)
    assert found.status == "skipped"
    assert "does not count: entry 0" in found.detail
    assert "of unknown age" in found.detail, "nor does a note for another log say that this one is young"
    with Registry.open(second) as registry:
        proof = registry.prove(0).to_bytes()
    verified = verify(one.to_json(), trust=trust, at=NOW + DAY, proof=proof)
    (step,) = (step for step in verified.steps if step.id == "registry")
    assert (step.status, step.code) == ("failed", "passport.registry")
    assert f"signed for another log, {here.name}" in step.detail
    with reading(second) as whole, pytest.raises(CertkitError) as caught:
        show(whole, "-/courier", at=NOW)
    assert caught.value.code == "registry.unknown"
    report = inspect(second, trust=trust)
    assert [one.code for one in report.findings] == ["registry.entry-signature"] * 2
    assert f"signed for another log, {here.name}" in report.findings[0].message


def test_a_file_that_is_older_than_what_is_remembered_lets_no_passport_stand(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder), require=("status",))
    log(folder, one := issue(1))
    data, seen = status_at(folder, 0), head_of(folder)
    for memory, code in (
        (None, None),
        (seen, None),
        (seen._replace(size=2), "registry.rollback"),
        (seen._replace(root=leaf_hash(b"x")), "registry.rollback"),
    ):
        told = offline(data, one, trust, seen=lambda _, memory=memory: memory)
        assert (told.status == "passed", told.code) == (code is None, code), memory


def test_a_revocation_counts_whatever_is_remembered_of_the_log(tmp_path: Path) -> None:
    folder, vkey, one = revoked(tmp_path)
    data = status_at(folder, 0)
    for size in (1, 2, 3):
        other = Checkpoint(vkey.name, size, leaf_hash(b"another"))
        assert offline(data, one, policy(vkey), seen=lambda _, seen=other: seen).code == "passport.revoked"


def test_a_status_is_not_written_on_a_log_older_than_what_was_signed(tmp_path: Path) -> None:
    folder, before = tmp_path / "r", tmp_path / "before"
    vkey = new(folder)
    log(folder, issue(1))
    shutil.copytree(folder, before)
    log(folder, issue(2))
    assert remembered(heads(folder), vkey) == head_of(folder)
    with pytest.raises(CertkitError) as caught:
        write(before, 0, key=LOG_KEY, heads=heads(folder), at=NOW)
    assert caught.value.code == "registry.rollback"


def rotated(tmp_path: Path) -> tuple[Path, Path, Trust, Passport]:
    """A log whose key changed before it was revoked in it, and a copy from before all that."""
    folder, copy = tmp_path / "r", tmp_path / "copy"
    old = new(folder)
    log(folder, one := issue(1))
    shutil.copytree(folder, copy)
    with Registry.open(folder, heads=heads(folder)) as registry:
        _, present = registry.rotate(old=LOG_KEY, new=NEW_LOG_KEY, at=NOW)
    both = structs.replace(policy(require=("status",)), logs=(str(old), str(present)))
    assert standing(folder, one, both).status == "passed", (
        "the head that covers the change has both signatures"
    )
    with Registry.open(folder, heads=heads(folder)) as registry:
        revoke(
            registry,
            "0",
            reason="key-compromise",
            detail=None,
            hand=structs.replace(hand(), log_key=NEW_LOG_KEY),
        )
    return folder, copy, both, one


def test_a_key_that_was_given_up_tells_no_status(tmp_path: Path) -> None:
    folder, copy, both, one = rotated(tmp_path)
    assert standing(folder, one, both).code == "passport.revoked"
    forked = status_at(copy, 0)
    slip(copy, *(drafted("plan", "x/y", notice(str(number))) for number in range(9)))
    for found in (
        standing(copy, one, both),
        offline(forked, one, both),
        offline(status_at(copy, 0), one, both),
    ):
        assert (found.status, found.code) == ("skipped", "registry.untrusted-log")
        assert "the key that the policy lists last for certkit.lab/" in found.detail
    swapped = structs.replace(both, logs=both.logs[::-1])
    found = standing(folder, one, swapped)
    assert (found.status, found.code) == ("skipped", "registry.untrusted-log")
    # an audit under the policy with both keys is told, too
    report = inspect(copy, trust=both)
    assert "registry.checkpoint" in {finding.code for finding in report.findings}
    assert inspect(folder, trust=both).findings == ()
    # proofs from before stay good
    with Registry.open(copy) as registry:
        proof = registry.prove(0)
    proven = verify(
        one.to_json(), trust=structs.replace(both, require=()), at=NOW + DAY, proof=proof.to_bytes()
    )
    assert next(step for step in proven.steps if step.id == "registry").status == "passed"


def test_each_log_of_a_policy_has_a_present_key_of_its_own(tmp_path: Path) -> None:
    folder, other = tmp_path / "r", tmp_path / "other"
    vkey, second = new(folder), Registry.init(other, "other", NEW_LOG_KEY, at=NOW)
    log(folder, one := issue(1))
    for logs in ((str(vkey), str(second)), (str(second), str(vkey))):
        trust = structs.replace(policy(require=("status",)), logs=logs)
        assert standing(folder, one, trust).status == "passed"


def test_the_gravest_revocation_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, one := issue(1))
    reasons: tuple[Reason, ...] = ("agent-withdrawn", "evidence-false", "key-compromise")
    for number, reason in enumerate(reasons, 1):
        with Registry.open(folder, heads=heads(folder)) as registry:
            assert revoke(registry, "0", reason=reason, detail=None, hand=hand()).entry.index == number
    for found in (standing(folder, one, trust), offline(file(folder, 0), one, trust)):
        assert (found.code, "revoked by entry 2 at" in found.detail) == ("passport.revoked", True)
        assert "evidence-false" in found.detail


def test_a_time_that_nobody_trusted_signed_makes_no_status_young(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, one := issue(1))
    at = timestamp(NOW + 20 * DAY)
    slip(folder, drafted("plan", "x/y", notice("young"), STRANGER, issued_at=at))
    assert standing(folder, one, trust, days=20).status == "skipped"
    # under the id of a trusted key, and not by it
    forged = drafted("plan", "x/y", notice("young"), issued_at=at)
    document = canonical.loads(forged)
    document["signatures"] = canonical.loads(stored(folder, 1))["signatures"]
    slip(folder, canonical.canonical(document))
    assert standing(folder, one, trust, days=20).status == "skipped"


def test_a_time_to_come_makes_no_status_young(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, one := issue(1))
    for time, number in ((NOW + 30 * DAY, 1), (NOW + 9 * DAY + timedelta(minutes=4), 2)):
        slip(folder, drafted("plan", "x/y", notice(str(number)), issued_at=timestamp(time)))
        expected = {1: "skipped", 2: "passed"}[number]
        assert standing(folder, one, trust, days=9).status == expected, "clocks may differ by five minutes"


def test_a_key_that_retired_makes_no_status_young(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, one := issue(1))
    slip(folder, drafted("plan", "x/y", notice("late"), issued_at=timestamp(NOW + 20 * DAY)))
    slip(folder, drafted("plan", "x/y", notice("early"), issued_at=timestamp(NOW + 4 * DAY)))
    (issuer,) = trust.issuers
    for start, end, words in (
        (None, None, "at most 1 hour old"),
        (None, NOW + 20 * DAY, "at most 1 hour old"),
        (None, NOW + 19 * DAY, "at most 16 days old"),
        (NOW + 20 * DAY, None, "at most 1 hour old"),
        (NOW + 21 * DAY, None, "of unknown age"),
    ):
        key = structs.replace(issuer.keys[0], not_before=start, not_after=end)
        ruled = structs.replace(trust, issuers=(structs.replace(issuer, keys=(key,)),))
        source = standing_of(folder, one, ruled)
        assert words in source, (start, end)


def standing_of(folder: Path, one: Passport, trust: Trust) -> str:
    from certkit.registry.status import FolderStatus  # noqa: PLC0415 - asked without the steps before it

    found = FolderStatus(folder, trust=trust, at=NOW + 20 * DAY, seen=unseen)
    return found.status(one.passport_id, {}).detail
