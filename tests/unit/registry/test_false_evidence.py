"""Evidence that the issuer of a passport revoked as false carries no other passport of the lineage."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from certkit import canonical
from certkit.errors import MismatchError
from certkit.passport import keys
from certkit.passport.trust import Trust, TrustedKey
from certkit.registry.admission import checker, inspect
from certkit.registry.auditing import audit
from certkit.registry.entry import Revocation, read
from certkit.registry.registry import Registry
from certkit.registry.state import submitters
from certkit.registry.writing import revoke
from certkit.tlog import proof
from certkit.tlog.tree import leaf_hash
from tests.support import registries as build
from tests.support.lineages import KEY, NOW, hand, heads, issue, log, new, policy
from tests.support.registries import LOG_KEY, STRANGER, digest, log_entry
from tests.support.standings import DAY, drafted, slip, standing, stored

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

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


def again(folder: Path, vkey: VerifierKey, rules: Trust | None = None, attempt: int = 1) -> set[str]:
    """Log another passport on the first one's evidence, by no policy; return what an audit finds then."""
    at = NOW + DAY
    with Registry.open(folder, heads=heads(folder)) as registry:
        check = checker(rules or policy())
        one = issue(1, days=1, attempt=attempt)
        registry.append(one.to_json(), check=check, submitter=KEY, log_key=LOG_KEY, at=at)
    return {one.code for one in inspect(folder, trust=rules or policy(vkey)).findings}


def test_it_is_not_admitted_again_and_found_where_somebody_did(tmp_path: Path) -> None:
    folder, vkey = begun(tmp_path)
    revoked(folder)
    renewed = issue(1, days=1)
    with pytest.raises(MismatchError, match="rests on evidence that entry 1 revoked as false") as caught:
        log(folder, renewed, days=1)
    assert (caught.value.code, "new evidence" in str(caught.value.hint)) == ("registry.evidence-false", True)
    assert log(folder, issue(2)).index == 2, "other evidence is another matter"
    assert not log(folder, issue(1)).new, "what is logged already stays so"
    assert inspect(folder, trust=policy(vkey)).findings == ()
    assert again(folder, vkey) == {"registry.evidence-false"}


def test_nor_is_evidence_that_pools_it(tmp_path: Path) -> None:
    folder, vkey = begun(tmp_path)
    revoked(folder)
    trust, verified = policy(vkey), checker(policy())
    false = verified(issue(1).to_json(), NOW).evidence

    def pooled(data: bytes, at: datetime) -> PassportFacts:
        facts = verified(data, at)
        return facts if facts.evidence == false else structs.replace(facts, bundles=(digest("b"), false))

    with Registry.open(folder, heads=heads(folder)) as registry:
        append = partial(registry.append, issue(2).to_json(), submitter=KEY, log_key=LOG_KEY, at=NOW)
        with pytest.raises(MismatchError, match="rests on evidence that entry 1 revoked as false"):
            append(check=pooled, trust=trust)
        append(check=verified, trust=trust)
    report = audit(folder, log=vkey, submitters=submitters(trust), check=pooled)
    assert [(one.where, one.code) for one in report.findings] == [("entry 2", "registry.evidence-false")]


@pytest.mark.parametrize("reason", ["issued-in-error", "key-compromise"])
def test_for_another_reason_it_may_be_issued_anew(tmp_path: Path, reason: Reason) -> None:
    folder, vkey = begun(tmp_path)
    revoked(folder, reason)
    assert log(folder, issue(1, identity=5)).new
    assert inspect(folder, trust=policy(vkey)).findings == ()


def test_a_key_of_the_issuers_name_says_so_too(tmp_path: Path) -> None:
    folder, vkey = begun(tmp_path)
    rules = policy(vkey).with_issuer("Example Lab", DELEGATE)
    revoked(folder, submitter=STRANGER, rules=rules)
    with pytest.raises(MismatchError, match="entry 1 revoked"):
        log(folder, issue(1, identity=5), trust=rules)
    assert again(folder, vkey, rules) == {"registry.evidence-false"}


@pytest.mark.parametrize("how", ["unknown", "another issuer", "names the issuer", "another log"])
def test_it_is_for_its_issuer_alone_to_say(tmp_path: Path, how: str) -> None:
    folder, vkey = begun(tmp_path)
    rules = policy(vkey)
    if how == "another issuer":
        rules = rules.with_issuer("Other Lab", DELEGATE)
    claims = Revocation(passport_id=issue(1).passport_id, reason="evidence-false")
    key = KEY if how == "another log" else STRANGER
    origin = "certkit.x/y" if how == "another log" else vkey.name
    entry = drafted("revoke", "-/courier", claims, key, log=origin)
    if how == "names the issuer":
        wrong = drafted("revoke", "-/courier", claims, KEY, log=vkey.name)
        signature = canonical.loads(entry)["signatures"]
        entry = canonical.canonical(canonical.loads(wrong) | {"signatures": signature})
    slip(folder, entry)
    assert log(folder, issue(1, identity=5, days=1), days=1, trust=rules).new
    codes = {one.code for one in inspect(folder, trust=rules).findings}
    assert "registry.evidence-false" not in codes


def test_where_no_file_tells_who_issued_it_the_submitter_says_so(tmp_path: Path) -> None:
    folder, vkey = begun(tmp_path)
    revoked(folder)
    shutil.rmtree(folder / "blobs")
    with pytest.raises(MismatchError, match="entry 1 revoked"):
        log(folder, issue(1, identity=5))
    assert again(folder, vkey) == {"registry.evidence-false", "registry.blob-missing"}


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
        assert revoke(registry, "0", reason="issued-in-error", detail=None, hand=hand()).also == ()
        done = revoke(registry, "0", reason="evidence-false", detail="forged", hand=hand())
        last = done.entry.index + 1
        assert (done.passport_id, done.also) == (issue(1).passport_id, ((again.passport_id, last),))
        claims = read(stored(folder, last)).claims
        assert claims == Revocation(passport_id=again.passport_id, reason="evidence-false", detail="forged")
        assert done.entry.proof.extra is not None
        head = proof.verify(done.entry.proof, leaf_hash(done.entry.proof.extra), [vkey]).checkpoint
        assert head.size == last + 1
        assert revoke(registry, "0", reason="evidence-false", detail=None, hand=hand()).also == ()
    for gone in (issue(1), again):
        assert standing(folder, gone, policy(vkey)).code == "passport.revoked"
    assert standing(folder, other, policy(vkey)).status == "passed"


def test_an_audit_names_what_stands_on_it(tmp_path: Path) -> None:
    folder, vkey = begun(tmp_path)
    log(folder, other := issue(1, identity=5))
    log(folder, issue(2))
    for index, passport_id in ((5, issue(1).passport_id), (6, other.passport_id)):
        with Registry.open(folder, heads=heads(folder)) as registry, registry.turn(LOG_KEY) as turn:
            claims = Revocation(passport_id=passport_id, reason="evidence-false")
            turn.log("-/courier", claims, submitter=KEY, at=NOW)
        found = inspect(folder, trust=policy(vkey))
        assert found.findings == ()
        words = "entry 1 logs a passport on evidence that entry 5 revoked as false; it stands"
        assert (words in found.notes) is (index == 5)
