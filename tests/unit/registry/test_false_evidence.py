"""Evidence that was revoked as false, by the issuer of a passport on it, carries no other of the lineage."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from certkit.ground import canonical
from certkit.ground.errors import MismatchError
from certkit.passport import keys
from certkit.passport.trust import TrustedKey
from certkit.registry import log as store
from certkit.registry.audit import audit, inspect
from certkit.registry.entry import Claims, Revocation, Stored, read
from certkit.registry.fold import submitters
from certkit.registry.writer import Registry, checker, revoke
from tests.support import registries as build
from tests.support.lineages import KEY, NOW, hand, heads, issue, log, new, policy
from tests.support.registries import LOG_KEY, STRANGER, digest, log_entry
from tests.support.standings import DAY, drafted, slip, standing, stored

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from certkit.passport.trust import Trust
    from certkit.registry.entry import PassportFacts, Reason
    from certkit.tlog.note import VerifierKey

DELEGATE = TrustedKey(pem=keys.public_pem(STRANGER.public_key()))


def revoked(folder: Path, reason: Reason = "evidence-false", **more: Any) -> None:
    with Registry.open(folder, heads=heads(folder)) as registry:
        revoke(registry, "0", reason=reason, detail=None, hand=hand(**more))


def begun(tmp_path: Path) -> tuple[Path, VerifierKey]:
    folder = tmp_path / "r"
    vkey = new(folder)
    log(folder, issue(1))
    return folder, vkey


def again(folder: Path, rules: Trust) -> list[str]:
    """Log another passport on the first one's evidence, past all rules; return what an audit finds then."""
    data, at = issue(1, days=1).to_json(), NOW + DAY
    facts = checker(policy())(data, at)
    store.store_blob(folder, data)
    file = Stored(sha256=hashlib.sha256(data).hexdigest(), size=len(data))
    with Registry.open(folder, heads=heads(folder)) as registry, registry.turn(LOG_KEY) as turn:
        claims = Claims.of(facts, 1)
        turn.add(turn.draft(facts.lineage, claims, submitter=KEY, at=at, passport=file))
    return [one.code for one in inspect(folder, trust=rules).findings]


def test_it_is_not_admitted_again_and_found_where_somebody_did(tmp_path: Path) -> None:
    folder, vkey = begun(tmp_path)
    revoked(folder)
    renewed = issue(1, days=1)
    with pytest.raises(MismatchError, match="rests on evidence that its issuer revoked as false") as caught:
        log(folder, renewed, days=1)
    assert (caught.value.code, "new evidence" in str(caught.value.hint)) == ("registry.evidence-false", True)
    assert log(folder, issue(2)).index == 2, "other evidence is another matter"
    assert not log(folder, issue(1)).new, "what is logged already stays so"
    assert inspect(folder, trust=policy(vkey)).findings == ()
    assert again(folder, policy(vkey)) == ["registry.evidence-false"]


@pytest.mark.parametrize("issuer", ["Operator", "Example Lab"])
def test_whichever_key_submitted_its_issuer_says_so(tmp_path: Path, issuer: str) -> None:
    """One who submits alone, and a further key of the issuer: the one that was rotated out, or in."""
    folder = tmp_path / "r"
    rules = policy(new(folder)).with_issuer(issuer, DELEGATE)
    log(folder, issue(1), submitter=STRANGER, trust=rules)
    revoked(folder, rules=rules)
    with pytest.raises(MismatchError) as caught:
        log(folder, issue(1, days=1), days=1, submitter=STRANGER, trust=rules)
    assert caught.value.code == "registry.evidence-false"
    assert again(folder, rules) == ["registry.evidence-false"]


def test_nor_does_evidence_that_pools_it(tmp_path: Path) -> None:
    folder, vkey = begun(tmp_path)
    revoked(folder)
    rules = policy(vkey)
    verified = checker(rules)
    false = verified(issue(1).to_json(), NOW).evidence

    def pooled(data: bytes, at: datetime) -> PassportFacts:
        facts = verified(data, at)
        return facts if facts.evidence == false else structs.replace(facts, bundles=(digest("b"), false))

    with Registry.open(folder, heads=heads(folder)) as registry:
        append = partial(registry.append, issue(2).to_json(), submitter=KEY, log_key=LOG_KEY, at=NOW)
        with pytest.raises(MismatchError, match="rests on evidence that its issuer revoked as false"):
            append(check=pooled, trust=rules)
        append(check=verified, trust=rules)
    report = audit(folder, log=vkey, submitters=submitters(rules), check=pooled)
    assert [(item.where, item.code) for item in report.findings] == [("entry 2", "registry.evidence-false")]


@pytest.mark.parametrize("reason", ["issued-in-error", "key-compromise"])
def test_for_another_reason_it_may_be_issued_anew(tmp_path: Path, reason: Reason) -> None:
    folder, vkey = begun(tmp_path)
    revoked(folder, reason)
    assert log(folder, issue(1, identity=5)).new
    assert inspect(folder, trust=policy(vkey)).findings == ()


def test_another_log_does_not_say_it(tmp_path: Path) -> None:
    folder, vkey = begun(tmp_path)
    claims = Revocation(passport_id=issue(1).passport_id, reason="evidence-false")
    slip(folder, drafted("revoke", "-/courier", claims, KEY, log="certkit.x/y"))
    assert log(folder, issue(1, identity=5, days=1), days=1).new
    assert "as false" not in str(inspect(folder, trust=policy(vkey)).findings)


@pytest.mark.parametrize("how", ["unknown", "another issuer"])
def test_an_audit_hears_its_issuer_alone(tmp_path: Path, how: str) -> None:
    folder, vkey = begun(tmp_path)
    rules = policy(vkey)
    if how == "another issuer":
        rules = rules.with_issuer("Other Lab", DELEGATE)
    claims = Revocation(passport_id=issue(1).passport_id, reason="evidence-false")
    slip(folder, drafted("revoke", "-/courier", claims, STRANGER, log=vkey.name))
    assert "registry.evidence-false" not in again(folder, rules)


def test_another_lineage_is_another_matter(tmp_path: Path) -> None:
    """Stand-in passports, which alone choose their lineage here."""
    folder = tmp_path / "r"
    vkey = build.new(folder)
    build.append(folder, build.passport(1))
    claims = Revocation(passport_id=digest("passport 1"), reason="evidence-false")
    with build.opened(folder) as registry:
        log_entry(registry, "lab/agent", claims, submitter=build.SUBMITTER, log_key=LOG_KEY, at=build.AT)
    other = build.check(build.passport(2, lineage="lab/other"))
    put(folder, structs.replace(other, evidence=digest("evidence 1")))
    assert build.audited(folder, vkey).findings == ()


def put(folder: Path, facts: PassportFacts) -> None:
    build.append(folder, canonical.canonical(structs.asdict(facts)))


def test_with_its_evidence_all_passports_of_the_issuer_on_it_fall(tmp_path: Path) -> None:
    folder, vkey = begun(tmp_path)
    again, other = issue(1, identity=5), issue(2)
    for one in (again, other):
        log(folder, one)
    with Registry.open(folder, heads=heads(folder)) as registry:
        assert revoke(registry, "0", reason="issued-in-error", detail=None, hand=hand()).also == {}
        done = revoke(registry, "0", reason="evidence-false", detail="forged", hand=hand())
        last = done.entry.index + 1
        assert (done.passport_id, done.also) == (issue(1).passport_id, {again.passport_id: last})
        claims = read(stored(folder, last)).claims
        assert claims == Revocation(passport_id=again.passport_id, reason="evidence-false", detail="forged")
        assert registry.head().size == last + 1
        assert revoke(registry, "0", reason="evidence-false", detail=None, hand=hand()).also == {}
    for gone in (issue(1), again):
        assert standing(folder, gone, policy(vkey)).code == "passport.revoked"
    assert standing(folder, other, policy(vkey)).status == "passed"
