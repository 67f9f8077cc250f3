"""Real passports: who may be logged, and what an audit asks of what was."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from certkit.ground import canonical
from certkit.ground.errors import CertkitError, Exit, UntrustedError
from certkit.passport import keys
from certkit.passport.verify import verify
from certkit.registry.audit import inspect
from certkit.registry.writer import Registry, admit, checker
from tests.support.passports import KEY, NOW, issued, trust
from tests.support.registries import LOG_KEY, STRANGER, heads, held

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.passport.passport import Passport
    from certkit.passport.trust import Trust
    from certkit.registry.writer import Admitted

OTHER = keys.generate("p256")


def made(folder: Path) -> str:
    return str(Registry.init(folder, "lab", LOG_KEY, at=NOW))


def logged(folder: Path, data: bytes, *, policy: Trust | None = None, **more: Any) -> Admitted:
    arguments = {"submitter": KEY, "log_key": LOG_KEY, "heads": heads(folder), "at": NOW} | more
    return admit(folder, data, trust=policy or trust(), **arguments)


def refusal(folder: Path, data: bytes, **more: Any) -> CertkitError:
    with pytest.raises(CertkitError) as caught:
        logged(folder, data, **more)
    with Registry.open(folder) as registry:
        assert registry.head().size == 0
    assert not [path for path in (folder / "blobs").rglob("*") if path.is_file()]
    return caught.value


def renewed(old: Passport) -> Passport:
    days = timedelta(days=1)
    return issued(not_before=NOW + days, not_after=NOW + 80 * days, supersedes=old.passport_id)


def test_a_real_passport_is_logged_proven_and_verified(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = made(folder)
    one = issued()
    appended = logged(folder, one.to_json())
    policy = trust(logs=(vkey,), require=("registry",))
    verification = verify(one.to_json(), trust=policy, at=NOW, proof=appended.proof.to_bytes())
    assert [step.status for step in verification.steps if step.id == "registry"] == ["passed"]
    assert verification.verdict == "verified"
    statement = canonical.loads(one.payload)
    predicate, facts = statement["predicate"], statement["predicate"]["facts"]
    with Registry.open(folder) as registry:
        found = registry.logged(0).entry
    assert found.body.subject == "-/courier"
    assert found.body.passport is not None
    assert found.body.passport.sha256 == hashlib.sha256(one.to_json()).hexdigest()
    assert canonical.loads(found.envelope.payload)["claims"] == {
        "passport_id": one.passport_id,
        "agent": facts["agent"]["digest"],
        "tier": predicate["assessment"]["verdict"]["tier"],
        "profile": canonical.digest(canonical.canonical(predicate["profile"])),
        "not_before": predicate["validity"]["not_before"],
        "not_after": predicate["validity"]["not_after"],
        "supersedes": None,
        "evidence": facts["digest"],
        "attempt": 1,
    }


def test_a_proof_of_one_passport_does_not_show_another(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    policy = trust(logs=(made(folder),), require=("registry",))
    one = issued()
    proof = logged(folder, one.to_json()).proof.to_bytes()
    other = renewed(one).to_json()
    verification = verify(other, trust=policy, at=NOW + timedelta(days=2), proof=proof)
    assert (verification.verdict, verification.exit_code) == ("rejected", Exit.MISMATCH)


def test_a_renewal_supersedes_and_chains(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    policy = trust(logs=(made(folder),))
    first = issued()
    second = renewed(first)
    later = NOW + timedelta(days=1)
    logged(folder, first.to_json())
    assert logged(folder, second.to_json(), at=later).index == 1
    with Registry.open(folder) as registry:
        entries = list(held(registry))
    assert entries[1].entry.body.prev is not None
    assert entries[1].entry.body.prev.index == 0
    assert inspect(folder, trust=policy).findings == ()


@pytest.mark.parametrize(
    ("data", "code", "exit_code"),
    [
        (b"", "json.syntax", Exit.MALFORMED),
        (b"{}", "passport.form", Exit.MALFORMED),
        (issued(key=OTHER).to_json(), "passport.untrusted-issuer", Exit.UNTRUSTED),
    ],
    ids=["nothing", "no passport", "a stranger's"],
)
def test_what_does_not_verify_is_not_logged(tmp_path: Path, data: bytes, code: str, exit_code: Exit) -> None:
    made(tmp_path / "r")
    error = refusal(tmp_path / "r", data)
    assert (error.code, error.exit_code) == (code, exit_code)


def test_a_changed_passport_is_not_logged(tmp_path: Path) -> None:
    made(tmp_path / "r")
    document = canonical.loads(issued().to_json())
    document["dsseEnvelope"]["signatures"][0]["sig"] = "A" * 86 + "=="
    error = refusal(tmp_path / "r", canonical.canonical(document))
    assert (error.code, error.exit_code) == ("dsse.signature", Exit.NEGATIVE)


@pytest.mark.parametrize(
    ("days", "code"), [(-1, "passport.not-yet-valid"), (91, "passport.expired")], ids=["early", "late"]
)
def test_outside_its_validity_a_passport_is_not_logged(tmp_path: Path, days: int, code: str) -> None:
    made(tmp_path / "r")
    error = refusal(tmp_path / "r", issued().to_json(), at=NOW + timedelta(days=days))
    assert (error.code, error.exit_code) == (code, Exit.ENDED)


def test_a_submitter_whom_no_auditor_would_know_is_refused(tmp_path: Path) -> None:
    made(tmp_path / "r")
    error = refusal(tmp_path / "r", issued().to_json(), submitter=STRANGER)
    assert (error.code, error.exit_code) == ("registry.submitter", Exit.UNTRUSTED)


def test_the_policys_taste_keeps_nothing_out_of_the_log(tmp_path: Path) -> None:
    made(tmp_path / "r")
    policy = trust(
        min_tier=3, require=("timestamp", "replay", "evidence", "status"), profiles=("sha256:" + "0" * 64,)
    )
    assert logged(tmp_path / "r", issued().to_json(), policy=policy).new


def test_an_audit_long_after_is_still_sound(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = made(folder)
    logged(folder, issued().to_json())
    assert inspect(folder, trust=trust(logs=(vkey,))).findings == ()
    with pytest.raises(CertkitError):
        checker(trust())(issued().to_json(), datetime(2099, 1, 1, tzinfo=UTC))


def test_an_audit_by_who_does_not_trust_the_issuer(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = made(folder)
    logged(folder, issued().to_json())
    report = inspect(folder, trust=trust(OTHER, logs=(vkey,)))
    assert {one.code for one in report.findings} == {"registry.entry-untrusted"}
    assert report.exit_code is Exit.UNTRUSTED


def test_the_log_key_comes_from_the_policy(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = made(folder)
    foreign = [str(Registry.init(tmp_path / name, name, LOG_KEY, at=NOW)) for name in ("a", "b")]
    for logs in ((), (foreign[0],), tuple(foreign)):
        with pytest.raises(UntrustedError) as caught:
            inspect(folder, trust=trust(logs=logs))
        assert caught.value.code == "registry.untrusted-log"
    assert inspect(folder, trust=trust(logs=(*foreign, vkey))).total == 0
