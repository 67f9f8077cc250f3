"""Evidence that the issuer of a passport revoked as false carries no other passport of the lineage."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from certkit import assessment, canonical, evidence, passport, workflow
from certkit.errors import MismatchError
from certkit.passport import keys
from certkit.registry.admission import checker, inspect
from certkit.registry.entry import Rest, Revocation, read
from certkit.registry.registry import Registry
from certkit.registry.writing import revoke
from certkit.tlog import proof
from certkit.tlog.hashing import leaf_hash
from tests.support import registries as build
from tests.support.campaigns import campaign, made
from tests.support.lineages import KEY, NOW, clustered, hand, heads, issue, log, new, policy
from tests.support.making import ISSUER
from tests.support.registries import LOG_KEY, STRANGER, digest, log_entry
from tests.support.standings import DAY, drafted, slip, standing, stored
from tests.support.standings import begun as with_times

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.registry.entry import PassportFacts, Reason
    from certkit.tlog.note import VerifierKey

A, B, C = (digest(f"bundle {letter}") for letter in "abc")
DELEGATE = passport.TrustedKey(pem=keys.public_pem(STRANGER.public_key()))


def revoked(folder: Path, reason: Reason = "evidence-false", **more: Any) -> None:
    with Registry.open(folder, heads=heads(folder)) as registry:
        revoke(registry, "0", reason=reason, detail=None, hand=hand(**more))


def begun(tmp_path: Path) -> tuple[Path, VerifierKey]:
    folder = tmp_path / "r"
    vkey = new(folder)
    log(folder, issue(1))
    return folder, vkey


def again(folder: Path, vkey: VerifierKey, rules: passport.Trust | None = None, attempt: int = 1) -> set[str]:
    """Log another passport on the first one's evidence, by no policy; return what an audit finds then."""
    at = NOW + DAY
    with Registry.open(folder, heads=heads(folder)) as registry:
        check = checker(rules or policy(), at)
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
    with pytest.raises(MismatchError, match="rests on evidence that entry 1 revoked as false"):
        log(folder, issue(2, days=1), days=1)  # the same runs, sealed again
    assert log(folder, issue(2, summary=clustered(900))).index == 2, "other evidence is another matter"
    assert not log(folder, issue(1)).new, "what is logged already stays so"
    assert inspect(folder, trust=policy(vkey)).findings == ()
    assert again(folder, vkey) == {"registry.evidence-false"}


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
    changed = structs.replace(other, evidence=digest("evidence 1"))
    put(folder, changed)
    assert build.audited(folder, vkey).findings == ()
    pooled = structs.replace(changed, passport_id=digest("pool"), lineage="lab/agent", evidence=digest("p"))
    put(folder, pooled)
    assert build.audited(folder, vkey).findings == ()
    put(folder, structs.replace(pooled, passport_id=digest("pool 2"), bundles=(digest("evidence 1"),)))
    assert [(one.where, one.code) for one in build.audited(folder, vkey).findings] == [
        ("entry 4", "registry.evidence-false")
    ]


def put(folder: Path, facts: PassportFacts) -> None:
    data = canonical.canonical(structs.asdict(facts) | {"bundles": list(facts.bundles)})
    build.append(folder, data)


def test_a_pool_that_holds_it_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    roots = [made(tmp_path / str(month), campaign(f"m{month}", month)) for month in (1, 2)]
    profile = workflow.load_profile("hb-eval-2026")
    opened = [evidence.open_bundle(root) for root in roots]
    pooled = evidence.accumulate(opened)
    log(folder, issued(workflow.assess(roots[0]), evidence.summarise(opened[0])))
    revoked(folder)
    with pytest.raises(MismatchError, match="rests on evidence that entry 1 revoked as false"):
        log(folder, issued(assessment.assess_accumulation(pooled, profile), pooled.summary))


def issued(judged: assessment.Assessment, summary: evidence.Summary) -> passport.Passport:
    end = NOW + passport.VALIDITY
    return passport.issue(judged, summary, issuer=ISSUER, key=KEY, not_before=NOW, not_after=end)


def test_with_its_evidence_all_passports_of_the_issuer_on_it_fall(tmp_path: Path) -> None:
    folder, vkey = begun(tmp_path)
    again, other, alike = issue(1, identity=5), issue(2, summary=clustered(900)), issue(5)
    dated = with_times(clustered(950), -3)
    sealed, resealed = issue(3, summary=dated), issue(4, summary=dated)
    for one in (again, other, sealed, resealed, alike):
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
        sealed_again = revoke(registry, sealed.passport_id, reason="evidence-false", detail=None, hand=hand())
        assert [passport_id for passport_id, _ in sealed_again.also] == [resealed.passport_id]
    for gone in (issue(1), again, sealed, resealed):
        assert standing(folder, gone, policy(vkey)).code == "passport.revoked"
    assert standing(folder, other, policy(vkey)).status == "passed"
    assert standing(folder, alike, policy(vkey)).status == "passed", "without times they may be other runs"
    (note,) = (one for one in inspect(folder, trust=policy(vkey)).notes if "stands" in one)
    assert note.endswith(f"on evidence that entry {done.entry.index} revoked as false; it stands")


def test_an_audit_names_what_stands_on_it(tmp_path: Path) -> None:
    folder, vkey = begun(tmp_path)
    log(folder, other := issue(1, identity=5))
    log(folder, issue(2, summary=clustered(900)))
    for index, passport_id in ((4, issue(1).passport_id), (5, other.passport_id)):
        with Registry.open(folder, heads=heads(folder)) as registry, registry.turn(LOG_KEY) as turn:
            claims = Revocation(passport_id=passport_id, reason="evidence-false")
            turn.log("-/courier", claims, submitter=KEY, at=NOW)
        found = inspect(folder, trust=policy(vkey))
        assert found.findings == ()
        words = "entry 1 logs a passport on evidence that entry 4 revoked as false; it stands"
        assert (words in found.notes) is (index == 4)


@pytest.mark.parametrize(
    ("false", "own", "repeats"),
    [
        (Rest(frozenset({A})), Rest(frozenset({A})), True),
        (Rest(frozenset({A})), Rest(frozenset({A, B})), True),
        (Rest(frozenset({A, B})), Rest(frozenset({A, B, C})), True),
        (Rest(frozenset({A, B})), Rest(frozenset({A})), False),
        (Rest(frozenset({A, B})), Rest(frozenset({B, C})), False),
        (Rest(frozenset({A})), Rest(frozenset({B})), False),
        (Rest(frozenset({A}), "runs"), Rest(frozenset({B}), "runs"), True),
        (Rest(frozenset({A}), "runs"), Rest(frozenset({B}), "others"), False),
        (Rest(frozenset({A}), None), Rest(frozenset({B}), None), False),
    ],
)
def test_all_the_evidence_of_a_pool_or_the_same_runs_are_a_repetition(
    false: Rest, own: Rest, *, repeats: bool
) -> None:
    assert own.repeats(false) is repeats
