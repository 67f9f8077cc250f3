"""Verification beyond single leaves: evidence, replay, status, registry, windows, policy, what is said."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import structs

from certkit.assessment.assessment import Answer, Question
from certkit.assessment.evaluation import evaluate
from certkit.assessment.profile_file import load_profile
from certkit.bundle.facts import ImportFacts
from certkit.bundle.writer import seal
from certkit.ground import canonical
from certkit.ground.errors import CertkitError, InputError, MismatchError, UnavailableError, UsageError
from certkit.passport import envelope, keys
from certkit.passport import trust as trust_policy
from certkit.passport.checks import AnswersGiven, LoggedStatus
from certkit.passport.evidence import BundleEvidence
from certkit.passport.issue import VALIDITY
from certkit.passport.trust import Trust, Witnesses
from certkit.passport.words import headline, not_checked_text, tiers_text
from certkit.simulation.simulate import simulate
from certkit.tlog import checkpoint, note, tree
from tests.support import build, passports, signers
from tests.support.passports import (
    KEY,
    LATER,
    NOW,
    document,
    edited,
    lenient,
    signed,
    specimen_passport,
    verified,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from certkit.assessment.profile import Profile
    from certkit.bundle.facts import Facts
    from certkit.ground.canonical import Digest
    from certkit.passport.keys import PublicKey
    from certkit.passport.steps import Step
    from certkit.passport.verify import Verification


def step(found: Verification, name: Any) -> Step:
    return found.step(name)


def with_bundle(data: bytes, root: Path, *, replay: bool = True, policy: Trust | None = None) -> Verification:
    return verified(data, trust=policy or lenient(), evidence=BundleEvidence([root]), replay=replay)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return shutil.copytree(passports.bundle(), tmp_path / "bundle")


def change_a_record(root: Path) -> None:
    path = root / "records" / "runs.jsonl"
    lines = path.read_bytes().split(b"\n")
    place = next(n for n, line in enumerate(lines) if b'"outcome":"success"' in line and b'"nominal"' in line)
    lines[place] = lines[place].replace(b'"outcome":"success"', b'"outcome":"safe_halt"')
    path.write_bytes(b"\n".join(lines))


# Evidence and replay


def test_a_passport_with_its_bundle_is_verified_to_the_end(root: Path) -> None:
    found = with_bundle(specimen_passport().to_json(), root, policy=lenient(require=("evidence", "replay")))
    assert (found.verdict, found.exit_code) == ("verified", 0)
    assert [item.id for item in found.steps if item.status == "skipped"] == ["registry", "status"]


def test_swapped_evidence_is_refused_at_the_subject(root: Path) -> None:
    change_a_record(root)
    seal(root)
    found = with_bundle(specimen_passport().to_json(), root, replay=False)
    assert (found.verdict, found.exit_code) == ("rejected", 1)
    assert step(found, "subject").code == "passport.other-evidence"
    assert step(found, "evidence").code == "passport.other-evidence"


def test_a_changed_file_is_named_at_the_evidence_step(root: Path) -> None:
    change_a_record(root)
    found = with_bundle(specimen_passport().to_json(), root)
    assert (found.verdict, found.exit_code) == ("rejected", 7)
    assert step(found, "evidence").code == "bundle.file-changed"
    assert step(found, "evidence").detail.startswith("records/runs.jsonl: changed after sealing; expected")
    assert {item.id for item in found.steps if item.code == "passport.rests-on-failed"} == {
        "subject",
        "replay",
    }
    assert {"subject", "replay"} <= {item.what for item in found.unchecked}


def test_a_replay_names_the_first_figure_that_the_records_do_not_give(root: Path) -> None:
    change_a_record(root)
    seal(root)
    found = with_bundle(specimen_passport().to_json(), root)
    assert step(found, "replay").code == "passport.replay-differs"
    assert step(found, "replay").detail.startswith("summary.cells[")
    assert ": the passport says " in step(found, "replay").detail
    assert ", the records give " in step(found, "replay").detail


def test_the_evidence_step_names_the_fact_that_the_manifest_does_not_state() -> None:
    judged = passports.specimen()
    facts = structs.replace(judged.facts, protocol=structs.replace(judged.facts.protocol, declared_runs=7))
    found = verified(evidence=passports.Held(facts, judged.summary))
    assert (found.exit_code, step(found, "evidence").code) == (7, "passport.manifest-differs")
    told = "facts.protocol.declared_runs: the passport says 100, the bundle gives 7"
    assert step(found, "evidence").detail == told


def test_a_bundle_that_is_not_there_makes_the_passport_unverifiable(tmp_path: Path) -> None:
    found = with_bundle(specimen_passport().to_json(), tmp_path / "none")
    assert (found.verdict, found.exit_code) == ("unverifiable", 4)
    assert step(found, "evidence").code == "passport.unavailable"


def test_two_bundles_are_pooled_and_replayed(tmp_path: Path) -> None:
    simulate(tmp_path / "b", seed=4, runs=100, domains=2, tier_target=1)
    roots = [passports.bundle(), tmp_path / "b"]
    evidence = BundleEvidence(roots)
    judged = evaluate(evidence.summary(), evidence.facts(), load_profile("hb-eval-2026"))
    data = specimen_passport(
        judged, not_before=LATER + timedelta(days=90), not_after=LATER + timedelta(days=91)
    ).to_json()
    at = LATER + timedelta(days=90)
    found = verified(data, at=at, evidence=BundleEvidence(roots[::-1]), replay=True)
    assert found.verdict == "verified"
    assert len(judged.facts.bundles) == 2
    alone = verified(data, at=at, evidence=BundleEvidence(roots[:1]))
    assert "it pools 2 bundles, give --bundle once for each" in step(alone, "subject").detail


# Judgement


def test_the_judgement_step_names_the_first_difference() -> None:
    def better(predicate: Any) -> None:
        row = next(item for item in predicate["assessment"]["criteria"] if item["status"] == "not_met")
        row["status"] = "met"

    found = verified(edited(better))
    assert (found.exit_code, step(found, "judgement").code) == (1, "passport.judgement-differs")
    detail = step(found, "judgement").detail
    assert detail.endswith("].status: the passport says met, the summary gives not_met")
    assert {item.status for item in found.steps[5:]} == {"skipped"}
    assert found.claim is None


def test_the_triggers_of_a_new_test_are_those_of_the_tier() -> None:
    found = verified(edited(lambda predicate: predicate["validity"]["retest_triggers"].pop()))
    assert step(found, "judgement").detail.startswith(
        "validity.retest_triggers[3]: the passport says nothing"
    )


def test_bounds_may_differ_in_the_last_digit_and_exact_values_may_not() -> None:
    def nudge(name: str, by: float) -> Any:
        def change(predicate: Any) -> None:
            rows = predicate["assessment"]["criteria"]
            row = next(item for item in rows if item["bounded"] and item["bounded"]["bound"])
            place = row["bounded"] if name == "bound" else row
            place[name] += by

        return change

    assert verified(edited(nudge("bound", 5e-9))).verdict == "verified"
    assert step(verified(edited(nudge("bound", 2e-8))), "judgement").status == "failed"
    assert step(verified(edited(nudge("value", 1e-9))), "judgement").status == "failed"


def test_a_passport_of_other_rules_is_unverifiable_and_nothing_of_it_is_read() -> None:
    found = verified(edited(lambda predicate: predicate.update(rules="certkit.rules/9", facts="no facts")))
    assert (found.verdict, found.exit_code) == ("unverifiable", 4)
    assert found.undecided == step(found, "types")
    assert step(found, "types").code == "passport.other-rules"
    assert "made by another certkit: rules certkit.rules/9" in step(found, "types").detail
    assert step(found, "signature").status == "passed"
    assert {item.status for item in found.steps[3:]} == {"skipped"}
    assert (found.claim, found.statement) == (None, None)


def test_a_bad_signature_rejects_a_passport_of_other_rules() -> None:
    data = signed(document() | {"predicate": {"rules": "certkit.rules/9"}}, key=keys.generate("ed25519"))
    assert verified(data).exit_code == 8


# The parts agree


def refused(change: Any) -> str:
    found = verified(edited(change))
    assert (found.verdict, found.exit_code, step(found, "types").status) == ("rejected", 1, "failed")
    return step(found, "types").detail


def test_the_subject_is_that_of_the_facts() -> None:
    statement = document()
    statement["subject"].reverse()
    assert "subject" in step(verified(signed(statement)), "types").detail
    statement = document()
    statement["subject"][0]["digest"] = {"sha512": "0" * 128}
    assert step(verified(signed(statement)), "types").code == "passport.statement"


def test_a_statement_of_another_kind_is_refused() -> None:
    for key in ("_type", "predicateType"):
        found = verified(signed(document() | {key: "https://example.com"}))
        assert step(found, "types").code == "passport.types"
    assert step(verified(signed([])), "types").code == "passport.types"


def test_the_issuer_names_the_key_that_signed() -> None:
    other = keys.generate("p256")
    policy = lenient().with_issuer("Other", trust_policy.TrustedKey(pem=keys.public_pem(other.public_key())))
    found = verified(signed(document(), key=other), trust=policy)
    assert "names key" in step(found, "types").detail


def test_the_published_id_of_a_profile_goes_with_a_published_table() -> None:
    def easier(predicate: Any) -> None:
        predicate["profile"]["criteria"][0]["tiers"]["1"] = 0.1

    assert "is no table that certkit published as 'hb-eval-2026'" in refused(easier)

    def alike(predicate: Any) -> None:
        easier(predicate)
        predicate["profile"]["id"] = "hb-eval.2026"

    named = step(verified(edited(alike)), "types")
    assert named.status == "passed", "under another id it is a table of its own"


def test_a_changed_table_is_that_of_a_published_one_but_for_what_it_names() -> None:
    table = load_profile("pass-rate", ["c_nom=0.5", "domain_min_nominal=0.4"])
    judged = passports.specimen(table)
    found = verified(specimen_passport(judged).to_json())
    assert (found.verdict, found.claim and found.claim.profile.known) == ("verified", None)
    assert "of pass-rate with c_nom ≥ 0.5 and domain_min_nominal ≥ 0.4 with" in tiers_text(judged)
    assert (
        verified(specimen_passport(judged).to_json(), trust=lenient(profiles=(table.digest,))).claim
        is not None
    )

    def refused_as(change: Callable[[Any], object]) -> str:
        return step(verified(edited(change, judged)), "types").detail

    def unsaid(predicate: Any) -> None:
        predicate["profile"]["changed"].pop("domain_min_nominal")

    def renamed(predicate: Any) -> None:
        predicate["profile"]["id"] = "pass-rate"

    assert "'pass-rate+set' is no table that certkit published as 'pass-rate'" in refused_as(unsaid)
    assert "changed goes with an id that ends with +set" in refused_as(renamed)


def test_the_claim_names_the_rows_that_no_run_is_there_for() -> None:
    of_normal = build.judged(build.runs(80, 78, "nominal", tasks=80), "under-attack")
    lead = "Tier 1 of under-attack with confidence limits; Tier 1 by averages. Left out, since there are no"
    assert tiers_text(of_normal) == f"{lead} such runs: adversarial_resistance and attack_success_rate."
    assert verified(specimen_passport(of_normal).to_json()).verdict == "verified"


def test_a_passport_rests_on_a_sealed_bundle() -> None:
    assert "facts.sealed" in refused(lambda predicate: predicate["facts"].update(sealed=False))


def test_pooled_bundles_have_the_digest_of_their_digests() -> None:
    def pooled(predicate: Any) -> None:
        predicate["facts"]["bundles"] = ["sha256:" + digit * 64 for digit in "12"]

    assert "pooled" in refused(pooled)


def test_a_run_is_never_later_than_the_beginning_of_the_validity() -> None:
    def late(predicate: Any) -> None:
        predicate["summary"]["times"]["last"] += 10**6 * 86_400 * 365

    found = verified(edited(late))
    assert (step(found, "types").code, found.exit_code) == ("passport.period-in-future", 1)


def test_a_validity_out_of_any_calendar_is_no_bug() -> None:
    def early(predicate: Any) -> None:
        predicate["validity"] |= {"not_before": "0001-01-01T00:00:00Z", "not_after": "0001-02-01T00:00:00Z"}

    assert "calendar" in refused(early)


@pytest.mark.parametrize("days", [-1, 367])
def test_a_validity_is_neither_empty_nor_endless(days: int) -> None:
    def change(predicate: Any) -> None:
        end = NOW + timedelta(days=days)
        predicate["validity"]["not_after"] = end.isoformat().replace("+00:00", "Z")

    assert "validity" in refused(change)


def test_an_answer_needs_a_context_and_a_finding() -> None:
    answer = {"code": "core-evidence", "by": "A", "agreed_by": "B"}
    told = refused(lambda predicate: predicate["question"].update(answers=[answer]))
    assert told.endswith("a finding is answered, and no context holds the answer")


# Status


class Source:
    """A status source that says what it was made to say."""

    def __init__(self, said: LoggedStatus | CertkitError) -> None:
        self.said = said
        self.asked: list[str] = []

    def status(
        self, passport_id: Digest, revokers: Mapping[Digest, PublicKey], facts: Facts | None = None
    ) -> LoggedStatus:
        assert revokers == {keys.key_id(KEY.public_key()): KEY.public_key()}
        assert facts is not None
        self.asked.append(passport_id)
        if isinstance(self.said, CertkitError):
            raise self.said
        return self.said


def said(standing: Any, time: datetime | None = NOW) -> LoggedStatus:
    return LoggedStatus(standing=standing, detail=f"{standing} as of checkpoint 5", time=time)


@pytest.mark.parametrize(
    ("said", "verdict", "code", "exit_code"),
    [
        (said("current"), "verified", None, 0),
        (said("revoked"), "rejected", "passport.revoked", 6),
        (said("superseded"), "rejected", "passport.superseded", 6),
        (said("unknown"), "unverifiable", "passport.unavailable", 4),
        (said("current", NOW - timedelta(days=7)), "unverifiable", "passport.unavailable", 4),
        (said("current", None), "unverifiable", "passport.unavailable", 4),
        (
            UnavailableError("passport.unavailable", "nobody answers"),
            "unverifiable",
            "passport.unavailable",
            4,
        ),
    ],
)
def test_revoked_superseded_and_unknown_are_three_answers(
    said: LoggedStatus | CertkitError, verdict: str, code: str | None, exit_code: int
) -> None:
    source, data = Source(said), specimen_passport()
    found = verified(data.to_json(), status=source)
    assert (found.verdict, step(found, "status").code, found.exit_code) == (verdict, code, exit_code)
    assert source.asked == [data.passport_id]


UNKNOWN = UnavailableError("passport.unavailable", "nobody answers")
FORKED = MismatchError("registry.status", "entry 2 names entry 1")


@pytest.mark.parametrize(
    ("named", "beside", "verdict", "code"),
    [
        (said("current"), said("revoked"), "rejected", "passport.revoked"),
        (said("revoked"), said("current"), "rejected", "passport.revoked"),
        (said("current"), said("superseded"), "rejected", "passport.superseded"),
        (UNKNOWN, said("revoked"), "rejected", "passport.revoked"),
        (said("current", NOW - timedelta(days=7)), said("revoked"), "rejected", "passport.revoked"),
        (said("current"), FORKED, "rejected", "registry.status"),
        (said("current"), said("current"), "verified", None),
        (said("current"), said("unknown"), "verified", None),
        (said("current"), said("current", NOW - timedelta(days=7)), "verified", None),
        (said("current"), InputError("registry.status", "no status file"), "verified", None),
        (said("unknown"), said("current"), "unverifiable", "passport.unavailable"),
        (UNKNOWN, said("current"), "unverifiable", "passport.unavailable"),
    ],
)
def test_of_a_named_registry_and_the_status_beside_the_worse_counts(
    named: LoggedStatus | CertkitError,
    beside: LoggedStatus | CertkitError,
    verdict: str,
    code: str | None,
) -> None:
    found = verified(status=Source(named), beside=Source(beside))
    assert (found.verdict, step(found, "status").code) == (verdict, code)


def test_what_lies_beside_is_needed_only_where_the_policy_requires_a_status() -> None:
    data = specimen_passport().to_json()
    for require, verdict in (((), "verified"), (("status",), "unverifiable")):
        found = verified(data, trust=lenient(require=require), beside=Source(said("unknown")))
        assert (found.verdict, step(found, "status").status) == (verdict, "skipped")


@pytest.mark.parametrize(
    ("domains", "asked"), [(("moon", "banking"), None), (("banking", "moon"), None), (("moon",), "banking")]
)
def test_every_domain_that_is_asked_for_must_have_been_evaluated(
    domains: tuple[str, ...], asked: str | None
) -> None:
    found = verified(trust=lenient(domains=domains), domain=asked)
    assert step(found, "policy").detail == "not evaluated in moon; evaluated in banking, healthcare"


def test_a_revoked_passport_that_is_also_refused_by_policy_is_revoked_first() -> None:
    found = verified(trust=lenient(accept_specimens=False), status=Source(said("revoked")))
    assert found.exit_code == 6


def test_nothing_is_read_of_a_payload_whose_signature_fails() -> None:
    found = verified(specimen_passport(key=keys.generate("ed25519")).to_json())
    assert found.claim is None
    assert found.statement is None
    assert {item.status for item in found.steps[3:]} == {"skipped"}


def test_a_time_without_offset_is_the_callers_mistake() -> None:
    with pytest.raises(CertkitError) as caught:
        verified(trust=lenient(), at=datetime(2026, 3, 2))  # noqa: DTZ001 - the point
    assert caught.value.code == "usage.option"


def test_the_name_shown_is_the_verifiers_own() -> None:
    policy = structs.replace(lenient(), issuers=(structs.replace(lenient().issuers[0], name="Known as"),))
    found = verified(trust=policy)
    assert found.claim is not None
    assert (found.claim.issuer.name, found.claim.issuer.stated_name) == ("Known as", "Example Lab")


# The offline proof


def logged(passport_id: str, signer: note.Signer, **changes: Any) -> bytes:
    """Return the proof of a log with one entry, about a passport."""
    entry = {
        "v": 1,
        "type": "passport",
        "claims": {"passport_id": passport_id},
        "issued_at": NOW.isoformat(),
    } | changes
    kind = "application/vnd.certkit.registry-entry.v1+json"
    data = canonical.canonical(envelope.sign(kind, canonical.canonical(entry), KEY))
    head = checkpoint.Checkpoint(signer.name, 1, tree.leaf_hash(data))
    return checkpoint.LogProof(0, (), checkpoint.sign_checkpoint(head, signer), data).to_bytes()


LOG = note.Signer("example.com/log", Ed25519PrivateKey.generate())
OTHER_LOG = note.Signer("example.com/log", Ed25519PrivateKey.generate())


def registered(text: bytes, **policy: Any) -> Step:
    trusted = lenient(logs=(str(LOG.vkey),), **policy)
    return step(verified(trust=trusted, proof=text), "registry")


def test_a_proof_of_a_trusted_log_is_verified() -> None:
    good = logged(specimen_passport().passport_id, LOG)
    assert registered(good).status == "passed"
    assert registered(good).detail == "entry 0 of 1 in example.com/log"
    required = lenient(logs=(str(LOG.vkey),), require=("registry",))
    assert verified(trust=required, proof=good).verdict == "verified"


def test_an_entry_that_was_made_when_the_key_had_ended_is_refused() -> None:
    late = logged(specimen_passport().passport_id, LOG, issued_at=(NOW + timedelta(hours=2)).isoformat())
    window = trust_policy.TrustedKey(
        pem=keys.public_pem(KEY.public_key()), not_after=NOW + timedelta(hours=1)
    )
    policy = Trust(issuers=(trust_policy.TrustedIssuer(name="Lab", keys=(window,)),), logs=(str(LOG.vkey),))
    found = step(verified(trust=policy, proof=late), "registry")
    assert (found.status, found.code) == ("failed", "passport.key-window")


def test_an_entry_that_is_no_object_or_that_nobody_trusted_signed_is_refused() -> None:
    identity = specimen_passport().passport_id
    kind = "application/vnd.certkit.registry-entry.v1+json"
    for payload in (b"[]", b'"x"', b"null"):
        data = canonical.canonical(envelope.sign(kind, payload, KEY))
        head = checkpoint.Checkpoint(LOG.name, 1, tree.leaf_hash(data))
        text = checkpoint.LogProof(0, (), checkpoint.sign_checkpoint(head, LOG), data).to_bytes()
        assert registered(text).code == "passport.registry"
    entry = {"v": 1, "type": "passport", "claims": {"passport_id": identity}, "issued_at": NOW.isoformat()}
    data = canonical.canonical(envelope.sign(kind, canonical.canonical(entry), Ed25519PrivateKey.generate()))
    head = checkpoint.Checkpoint(LOG.name, 1, tree.leaf_hash(data))
    text = checkpoint.LogProof(0, (), checkpoint.sign_checkpoint(head, LOG), data).to_bytes()
    assert registered(text).detail == "no trusted key signed the logged entry"


def test_a_proof_of_something_else_is_refused() -> None:
    identity = specimen_passport().passport_id
    for text, code in (
        (logged(canonical.digest(b"other"), LOG), "passport.registry"),
        (logged(identity, LOG, type="revoke"), "passport.registry"),
        (logged(identity, LOG, claims=None), "passport.registry"),
        (logged(identity, OTHER_LOG), "tlog.unsigned"),
        (b"nonsense", "tlog.proof"),
    ):
        found = registered(text)
        assert (found.status, found.code, found.exit_code) == ("failed", code, 7)


def test_a_proof_without_enough_witnesses_is_refused() -> None:
    witness = signers.Signer("example.com/witness", Ed25519PrivateKey.generate())
    policy = Witnesses(k=1, keys=(str(witness.witness_vkey),))
    found = registered(logged(specimen_passport().passport_id, LOG), witnesses=policy)
    assert (found.status, found.code) == ("failed", "passport.witnesses")


def test_a_proof_without_a_trusted_log_is_not_counted() -> None:
    found = verified(proof=logged(specimen_passport().passport_id, LOG))
    assert (found.verdict, step(found, "registry").status) == ("verified", "skipped")


WEEK = timedelta(days=7)
SKEW = timedelta(minutes=5)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("time", "status"),
    [
        (LATER - WEEK, "passed"),
        (LATER - WEEK - SECOND, "skipped"),
        (LATER + SKEW, "passed"),
        (LATER + SKEW + SECOND, "skipped"),
    ],
)
def test_a_status_is_of_the_last_seven_days_and_not_of_a_time_to_come(time: datetime, status: str) -> None:
    found = verified(status=Source(said("current", time)))
    assert step(found, "status").status == status
    assert found.verdict == ("verified" if status == "passed" else "unverifiable")


def test_an_ending_counts_whatever_its_age() -> None:
    for time in (LATER - 100 * WEEK, LATER + WEEK, None):
        found = verified(status=Source(said("revoked", time)))
        assert step(found, "status").code == "passport.revoked"


def test_a_standing_that_nobody_defined_is_unknown() -> None:
    found = verified(status=Source(said("suspended")))
    assert (found.verdict, step(found, "status").code) == ("unverifiable", "passport.unavailable")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (MismatchError("registry.status", "entry 2 names entry 1"), "failed"),
        (MismatchError("tlog.inclusion", "the proof leads elsewhere"), "failed"),
        (MismatchError("registry.damaged", "no database"), "skipped"),
        (InputError("registry.status", "no status file"), "skipped"),
        (UsageError("registry.format", "of another version"), "skipped"),
    ],
)
def test_a_status_that_contradicts_itself_is_refused_and_one_that_cannot_be_read_is_unknown(
    error: CertkitError, status: str
) -> None:
    for name in ("status", "beside"):
        asked: dict[str, Any] = {name: Source(error)}
        found = verified(trust=lenient(require=("status",)), **asked)
        assert (step(found, "status").status, step(found, "status").code) == (status, error.code)
        assert error.message in step(found, "status").detail
        assert found.verdict == ("rejected" if status == "failed" else "unverifiable")
        if status == "failed":
            assert step(found, "status").detail.startswith("its status does not hold together: ")


def windowed(**window: datetime) -> Trust:
    key = trust_policy.TrustedKey(pem=keys.public_pem(KEY.public_key()), **window)
    issuer = trust_policy.TrustedIssuer(name="Lab", keys=(key,))
    return Trust(issuers=(issuer,), logs=(str(LOG.vkey),))


@pytest.mark.parametrize(
    ("late", "status"), [(timedelta(0), "passed"), (SECOND, "failed"), (timedelta(microseconds=1), "failed")]
)
def test_the_end_of_a_keys_window_is_inside_for_what_is_logged(late: timedelta, status: str) -> None:
    end = NOW + timedelta(hours=1)
    text = logged(specimen_passport().passport_id, LOG, issued_at=(end + late).isoformat())
    found = verified(trust=windowed(not_after=end), proof=text)
    assert step(found, "registry").status == status
    assert step(found, "registry").code == (None if status == "passed" else "passport.key-window")
    open_ended = verified(trust=windowed(not_before=NOW), proof=text)
    assert step(open_ended, "registry").status == "passed"


def test_what_was_logged_before_the_keys_window_is_for_the_validity_to_judge() -> None:
    early = logged(specimen_passport().passport_id, LOG, issued_at=(NOW - timedelta(days=1)).isoformat())
    found = verified(trust=windowed(not_before=NOW), proof=early)
    assert (step(found, "registry").status, step(found, "validity").status) == ("passed", "passed")


@pytest.mark.parametrize(
    ("window", "code"),
    [
        ({"not_before": NOW}, None),
        ({"not_before": NOW + SECOND}, "passport.key-window"),
        ({"not_after": LATER}, None),
        ({"not_after": NOW}, "passport.unavailable"),  # retired: what proves that it signed before?
        ({"not_after": NOW - SECOND}, "passport.key-window"),
        ({"not_before": NOW, "not_after": LATER}, None),
    ],
)
def test_a_keys_window_holds_both_its_ends(window: dict[str, datetime], code: str | None) -> None:
    found = step(verified(trust=windowed(**window)), "validity")
    assert found.code == code
    if code == "passport.key-window":
        asked, end = ("only from", "not_before") if "not_before" in window else ("only until", "not_after")
        assert f"{asked} {window[end].isoformat().replace('+00:00', 'Z')}" in found.detail


@pytest.mark.parametrize(
    ("at", "code"),
    [
        (NOW - SKEW, None),
        (NOW - SKEW - SECOND, "passport.not-yet-valid"),
        (NOW + VALIDITY, None),
        (NOW + VALIDITY + SECOND, "passport.expired"),
    ],
)
def test_a_validity_holds_both_its_ends_and_the_clocks_may_differ_at_its_beginning(
    at: datetime, code: str | None
) -> None:
    found = verified(trust=lenient(), at=at)
    assert step(found, "validity").code == code


def test_only_the_keys_under_its_issuers_name_may_end_a_passport() -> None:
    delegate, stranger = keys.generate("p256").public_key(), keys.generate("ed25519").public_key()
    policy = lenient()
    for name, key in (("Example Lab", delegate), ("Other Lab", stranger)):
        policy = policy.with_issuer(name, trust_policy.TrustedKey(pem=keys.public_pem(key)))
    told: list[set[str]] = []

    class Asked:
        def status(
            self, passport_id: Digest, revokers: Mapping[Digest, PublicKey], facts: Facts | None = None
        ) -> LoggedStatus:
            assert passport_id == specimen_passport().passport_id
            assert facts is not None
            told.append(set(revokers))
            return said("current")

    found = verified(trust=policy, status=Asked())
    assert found.verdict == "verified"
    assert told == [{keys.key_id(KEY.public_key()), keys.key_id(delegate)}]


# Policy


def contested() -> Any:
    """Return an evaluation that a serious finding contests."""
    judged = passports.specimen()
    facts = structs.replace(judged.facts, imported=ImportFacts(format="x", notes={"inverted": 1}))
    return evaluate(judged.summary, facts, judged.profile)


def answered() -> Any:
    judged = contested()
    question = Question(answers=(Answer(code="outcome-inverted", by="A", agreed_by="B"),))
    return evaluate(judged.summary, judged.facts, judged.profile, question)


def strict() -> Profile:
    """Return a table of which a provisional row is not met."""
    table = passports.specimen().profile
    rows = tuple(
        structs.replace(row, tiers={"1": 0.99, "2": 0.99, "3": 0.99}) if row.provisional else row
        for row in table.criteria
    )
    return structs.replace(table, id="house-rule", criteria=rows)


@pytest.mark.parametrize(
    ("policy", "asked", "code"),
    [
        ({}, {"require_tier": 1}, None),
        ({"min_tier": 1}, {}, None),
        ({"min_tier": 2}, {}, "passport.policy"),
        ({"min_tier": 1}, {"require_tier": 2}, "passport.policy"),
        ({"min_tier": 1, "reading": "bounded"}, {}, "passport.policy"),
        ({"accept_specimens": False}, {}, "passport.policy"),
        ({"profiles": ("sha256:" + "0" * 64,)}, {}, "passport.policy"),
        ({}, {"issuer": "Example Lab"}, None),
        ({}, {"issuer": "Other Lab"}, "passport.policy"),
        ({}, {"stated": "Other Lab"}, "passport.policy"),
        ({}, {"domain": "banking"}, None),
    ],
)
def test_the_policy_and_the_caller_refuse_what_they_do_not_take(
    policy: dict[str, Any], asked: dict[str, Any], code: str | None
) -> None:
    found = verified(trust=lenient(**policy), **asked)
    assert step(found, "policy").code == code
    assert found.exit_code == (8 if code else 0)


@pytest.mark.parametrize(
    ("judged", "policy", "verdict"),
    [
        (contested, {}, "unverifiable"),
        (contested, {"accept_contested": True}, "verified"),
        (contested, {"min_tier": 1}, "unverifiable"),
        (contested, {"min_tier": 2}, "rejected"),
        (answered, {}, "verified"),
        (answered, {"accept_answered": False}, "unverifiable"),
    ],
)
def test_a_contested_tier_is_taken_only_where_the_policy_says_so(
    judged: Any, policy: dict[str, Any], verdict: str
) -> None:
    more: dict[str, Any] = {"context": "sha256:" + "0" * 64} if judged is answered else {}
    found = verified(specimen_passport(judged(), **more).to_json(), trust=lenient(**policy))
    assert found.verdict == verdict
    if verdict == "unverifiable":
        assert (found.exit_code, step(found, "policy").code) == (4, "passport.contested")
        assert step(found, "policy").detail == "the tier is contested by outcome-inverted"


def test_provisional_rows_count_where_the_policy_says_so() -> None:
    judged = passports.specimen(strict())
    assert (judged.assessment.verdict.tier, judged.assessment.verdict.tier_strict) == (1, 0)
    data, known = specimen_passport(judged).to_json(), (judged.profile.digest,)
    assert verified(data, trust=lenient(min_tier=1, profiles=known)).verdict == "verified"
    found = verified(data, trust=lenient(min_tier=1, profiles=known, count_provisional=True))
    assert "the evidence meets no tier, provisional rows counted" in step(found, "policy").detail


def test_a_policy_that_counts_provisional_rows_is_told_what_contests_them() -> None:
    times = ("2026-01-02T00:00:01Z", "2026-01-02T00:00:00Z")
    swapped = [run | {"started_at": time} for run, time in zip(build.GOOD, times, strict=False)]
    judged = build.judged([*swapped, *build.GOOD[2:]])
    data = specimen_passport(judged).to_json()
    assert verified(data, trust=lenient(min_tier=1)).verdict == "verified"
    found = verified(data, trust=lenient(min_tier=1, count_provisional=True))
    assert (found.verdict, step(found, "policy").code) == ("unverifiable", "passport.contested")
    assert step(found, "policy").detail == "the tier is contested by order-contradicts-times"


def test_an_attested_value_that_its_measurement_cannot_have_is_refused() -> None:
    attested = {"id": "transparency_index", "value": 0.93, "n": 120}

    def stating(value: object) -> Callable[[Any], object]:
        return lambda predicate: predicate["facts"].update(attested=[attested | {"value": value}])

    for value in (1.03, -5.0, 1e308, True):
        assert "transparency_index is a number from 0 to 1" in refused(stating(value))
    assert step(verified(edited(stating(0.5))), "types").status == "passed"


def test_a_tier_of_a_profile_that_nobody_knows_is_unverifiable() -> None:
    data = specimen_passport(passports.specimen(strict())).to_json()
    found = verified(data)
    assert (found.verdict, found.claim and found.claim.profile.known) == ("verified", None)
    assert "which certkit did not publish and no policy of yours lists" in headline(found)
    assert verified(data, require_tier=1).verdict == "unverifiable"


# What is said


def test_the_claim_has_its_published_keys() -> None:
    claim = verified().to_dict()["claim"]
    assert (claim["tier"], claim["readings"], claim["decides"]) == (1, {"table": 1, "bounded": 0}, "table")
    assert claim["domains"] == ["banking", "healthcare"]
    assert claim["origin"] == "simulated"
    assert claim["profile"] == {
        "id": "hb-eval-2026",
        "digest": passports.specimen().profile.digest,
        "reading": "table",
        "known": "certkit",
    }
    assert {"code": "evaluator-not-independent", "severity": "warning", "state": "open"} in claim[
        "challenges"
    ]
    assert all(item["severity"] in {"serious", "warning"} for item in claim["challenges"])


def test_what_was_not_checked_is_said_in_order_of_weight_with_the_option_that_checks_it() -> None:
    found = verified()
    assert [(item.what, item.option) for item in found.unchecked][:6] == [
        ("evidence", "--bundle DIR"),
        ("replay", "--bundle DIR --replay"),
        ("registry proof", "a file PASSPORT.tlog-proof"),
        ("revocation", "--registry DIR"),
        ("subject", "--agent DIGEST or --bundle DIR"),
        ("signing time", None),
    ]
    compared = verified(agent="sha256:" + "0" * 64)
    assert "subject" not in {item.what for item in compared.unchecked}
    assert verified(in_pdf=True).unchecked[0].what == "the pages of the PDF"
    opened = verified(evidence=passports.held(), replay=True)
    assert {"evidence", "replay", "subject"}.isdisjoint(item.what for item in opened.unchecked)


def test_what_is_in_the_way_of_a_log_that_was_given_is_said_in_place_of_the_option() -> None:
    found = verified(proof=b"anything")
    assert "registry proof (you trust no log: certkit trust add --log VKEY)" in not_checked_text(found)
    assert "PASSPORT.tlog-proof" not in not_checked_text(found)


def test_answers_are_the_issuers_word_unless_the_context_is_given() -> None:
    context = "sha256:" + "0" * 64
    data = specimen_passport(answered(), context=context).to_json()
    assert "answers to outcome-inverted" in {item.what for item in verified(data).unchecked}
    more: dict[str, Any] = {"evidence": passports.held(answered()), "replay": True}
    given = AnswersGiven(digest=canonical.digest(b"x"), answers=answered().question.answers)
    assert verified(data, answers=lambda _: given, **more).exit_code == 7
    given = structs.replace(given, digest=context)
    found = verified(data, answers=lambda _: given, **more)
    assert found.verdict == "verified"
    assert "answers to outcome-inverted" not in {item.what for item in found.unchecked}


def test_the_reason_comes_first_in_a_refused_passport() -> None:
    data = canonical.loads(specimen_passport().to_json())
    payload = canonical.line(document() | {"more": 1})
    data["dsseEnvelope"]["payload"] = envelope.encode(payload)
    told = (
        "REJECTED at step 3 (signature): The signature does not match: the file was changed, or another key"
    )
    assert headline(verified(canonical.line(data))).startswith(told)
    assert headline(verified()) == 'VERIFIED, signed by "Example Lab"'
    assert headline(verified(specimen_passport(contested()).to_json())) == (
        'UNVERIFIABLE, signed by "Example Lab": the tier is contested by outcome-inverted; only a policy'
        " that says so accepts that"
    )


def test_the_claim_is_one_sentence() -> None:
    assert tiers_text(passports.specimen()) == (
        "Tier 1 of hb-eval-2026 by averages; no tier with confidence limits (specimen, simulated evidence)"
    )
    assert tiers_text(contested()).endswith(". Tier 1 is contested by outcome-inverted")
    assert tiers_text(passports.specimen(strict())).endswith(
        ". The row csi, provisional in the paper, is not met; counted, there would be no tier."
    )


HEAVY = ("scipy", "numpy", "pydantic", "jsonschema", "rich", "sigstore", "pyarrow")


def test_verifying_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "passport.json").write_bytes(specimen_passport().to_json())
    (tmp_path / "trust.json").write_bytes(lenient().to_json())
    program = f"""
import sys
from datetime import datetime
from pathlib import Path
from certkit.passport.trust import parse
from certkit.passport.verify import verify
from certkit.passport.words import headline, tiers_text
policy = parse(Path("trust.json").read_bytes(), "trust.json")
found = verify(Path("passport.json").read_bytes(), trust=policy, at=datetime.fromisoformat("{LATER}"))
assert found.verdict == "verified", found
headline(found), tiers_text(found.statement.predicate.evaluation)
print(*[name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.split() == []
