"""Verification beyond the vectors: evidence, replay, status, and what is loaded."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jsonschema import Draft202012Validator
from msgspec import structs

from certkit import workflow
from certkit.bundle.folder import seal
from certkit.ground import canonical
from certkit.ground.errors import CertkitError, InputError, MismatchError, UnavailableError, UsageError
from certkit.ground.progress import SILENT
from certkit.passport import dsse, keys
from certkit.passport import trust as trust_policy
from certkit.passport.checks import Status
from certkit.passport.claim import from_bundle
from certkit.passport.issuing import VALIDITY
from certkit.passport.opening import Step, Verification, VerificationDocument
from certkit.passport.trust import Trust, Witnesses
from certkit.passport.verification import verify
from certkit.tlog import checkpoint, note, tree
from tests.support import bundles, running, signers
from tests.support.documents import certkit
from tests.support.making import KEY, NOW, issued, of_bundle, runs, sealed_bundle, trust
from tests.support.schemas import schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from certkit.ground.canonical import Digest
    from certkit.passport.keys import PublicKey

LATER = NOW + timedelta(days=1)


def step(found: Verification, name: str) -> Step:
    return next(item for item in found.steps if item.id == name)


def with_bundle(data: bytes, root: Path, *, replay: bool = True, policy: Trust | None = None) -> Verification:
    opened, replayed = from_bundle(root, workflow.load_profile, progress=SILENT)
    return verify(
        data,
        trust=policy or trust(),
        at=LATER,
        evidence=opened,
        replay=replayed if replay else None,
    )


def test_a_passport_with_its_bundle_is_verified_to_the_end(tmp_path: Path) -> None:
    root = sealed_bundle(tmp_path / "bundle")
    found = with_bundle(of_bundle(root).to_json(), root, policy=trust(require=("evidence", "replay")))
    assert (found.verdict, found.exit_code) == ("verified", 0)
    assert {item.id for item in found.steps if item.status == "skipped"} == {"registry", "status"}
    assert found.claim is not None
    assert found.claim.tier == 0  # a passport that says "no tier" is a passport


def test_swapped_evidence_is_refused_at_the_subject(tmp_path: Path) -> None:
    root = sealed_bundle(tmp_path / "bundle")
    other = sealed_bundle(tmp_path / "other", runs(successes=13))
    found = with_bundle(of_bundle(root).to_json(), other, replay=False)
    assert (found.verdict, found.exit_code) == ("rejected", 1)
    assert step(found, "subject").code == "passport.other-evidence"
    assert step(found, "evidence").code == "passport.other-evidence"


def test_a_changed_file_is_named_at_the_evidence_step(tmp_path: Path) -> None:
    root = sealed_bundle(tmp_path / "bundle")
    data = of_bundle(root).to_json()
    path = root / "records" / "a.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"failure"', b'"success"', 1))
    found = with_bundle(data, root)
    assert (found.verdict, found.exit_code) == ("rejected", 7)
    assert step(found, "evidence").code == "bundle.file-changed"
    assert "records/a.jsonl" in step(found, "evidence").detail
    assert step(found, "replay").status == "skipped"


def test_replay_names_the_first_row_that_differs_when_a_record_is_changed_and_sealed_again(
    tmp_path: Path,
) -> None:
    root = sealed_bundle(tmp_path / "bundle")
    data = of_bundle(root).to_json()
    path = root / "records" / "a.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"failure"', b'"success"', 1))
    seal(root)
    found = with_bundle(data, root)
    assert found.exit_code == 1  # the subject is another bundle, and the first failure decides
    assert step(found, "replay").code == "passport.replay-differs"
    assert step(found, "replay").detail == (
        "criteria r_op value: claimed 0.750000, the evidence gives 0.812500"
    )


def test_replay_finds_a_claim_that_its_issuer_made_up(tmp_path: Path) -> None:
    root = sealed_bundle(tmp_path / "bundle")
    document = canonical.loads(of_bundle(root).payload)
    document["predicate"]["evidence"]["harness_errors"] = 1
    found = with_bundle(signed(document), root)
    assert (found.verdict, found.exit_code) == ("rejected", 7)
    assert step(found, "evidence").status == "passed"
    assert step(found, "replay").detail == "evidence harness_errors: claimed 1, the evidence gives 0"


def test_replay_finds_a_row_that_the_evidence_does_not_give(tmp_path: Path) -> None:
    root = sealed_bundle(tmp_path / "bundle")
    document = canonical.loads(of_bundle(root).payload)
    document["predicate"]["challenges"].append({"code": "x", "severity": "warning", "message": "x"})
    assert "challenges" in step(with_bundle(signed(document), root), "replay").detail


def signed(document: dict[str, Any]) -> bytes:
    from certkit.passport import sealed  # noqa: PLC0415 - only here

    return canonical.line(sealed.seal(canonical.canonical(document), KEY))


def test_a_bundle_that_is_not_there_makes_the_passport_unverifiable(tmp_path: Path) -> None:
    root = sealed_bundle(tmp_path / "bundle")
    data = of_bundle(root).to_json()
    shutil.rmtree(root)
    found = with_bundle(data, root)
    assert (found.verdict, found.exit_code) == ("unverifiable", 4)
    assert step(found, "evidence").code == "passport.unavailable"


def test_a_profile_that_changed_cannot_be_replayed(tmp_path: Path) -> None:
    root = sealed_bundle(tmp_path / "bundle")
    data = of_bundle(root).to_json()
    opened, replayed = from_bundle(root, lambda _: workflow.load_profile("hb-eval-2025"), progress=SILENT)
    found = verify(data, trust=trust(), at=LATER, evidence=opened, replay=replayed)
    assert (found.verdict, found.exit_code) == ("unverifiable", 4)
    assert "hb-eval-2026" in step(found, "replay").detail


class Source:
    """A status source that says what it was made to say."""

    def __init__(self, said: Status | CertkitError) -> None:
        self.said = said
        self.asked: list[str] = []

    def status(self, passport_id: Digest, revokers: Mapping[Digest, PublicKey]) -> Status:
        assert revokers == {keys.key_id(KEY.public_key()): KEY.public_key()}
        self.asked.append(passport_id)
        if isinstance(self.said, CertkitError):
            raise self.said
        return self.said


def said(standing: Any, time: datetime | None = NOW) -> Status:
    return Status(standing=standing, detail=f"{standing} as of checkpoint 5", time=time)


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
    said: Status | CertkitError, verdict: str, code: str | None, exit_code: int
) -> None:
    source, data = Source(said), issued()
    found = verify(data.to_json(), trust=trust(), at=LATER, status=source)
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
    named: Status | CertkitError,
    beside: Status | CertkitError,
    verdict: str,
    code: str | None,
) -> None:
    found = verify(issued().to_json(), trust=trust(), at=LATER, status=Source(named), beside=Source(beside))
    assert (found.verdict, step(found, "status").code) == (verdict, code)


def test_what_lies_beside_is_needed_only_where_the_policy_requires_a_status() -> None:
    data = issued().to_json()
    for require, verdict in (((), "verified"), (("status",), "unverifiable")):
        found = verify(data, trust=trust(require=require), at=LATER, beside=Source(said("unknown")))
        assert (found.verdict, step(found, "status").status) == (verdict, "skipped")


@pytest.mark.parametrize(
    ("domains", "asked"), [(("moon", "bank"), None), (("bank", "moon"), None), (("moon",), "bank")]
)
def test_every_domain_that_is_asked_for_must_have_been_evaluated(
    domains: tuple[str, ...], asked: str | None
) -> None:
    found = verify(issued().to_json(), trust=trust(domains=domains), at=LATER, domain=asked)
    assert step(found, "policy").detail == "not evaluated in moon; evaluated in bank, shop"


def test_a_revoked_passport_that_is_also_refused_by_policy_is_revoked_first() -> None:
    found = verify(
        issued(origin="simulated").to_json(), trust=trust(), at=LATER, status=Source(said("revoked"))
    )
    assert found.exit_code == 6


def test_what_was_not_checked_is_said() -> None:
    found = verify(issued().to_json(), trust=trust(), at=LATER)
    assert found.verdict == "verified"
    text = "\n".join(found.not_checked)
    for words in ("registry:", "status:", "evidence:", "replay:", "subject:", "signing time", "records"):
        assert words in text
    compared = verify(issued().to_json(), trust=trust(), at=LATER, agent="sha256:" + "0" * 64).not_checked
    assert not any(item.startswith("subject:") for item in compared)
    assert not any(item.startswith("log entries") for item in compared)
    document = canonical.loads(issued().to_json())
    document["verificationMaterial"]["tlogEntries"] = [{"logIndex": "1"}]
    beside = verify(canonical.line(document), trust=trust(), at=LATER)
    assert beside.verdict == "verified"
    assert "log entries inside the file: beside a key they are not read" in beside.not_checked


def test_nothing_is_read_of_a_payload_whose_signature_fails() -> None:
    found = verify(issued(key=keys.generate("ed25519")).to_json(), trust=trust(), at=LATER)
    assert found.claim is None
    assert found.statement is None
    assert {item.status for item in found.steps[3:]} == {"skipped"}


def test_the_callables_are_not_called_where_the_signature_fails() -> None:
    def never(*_: object) -> Any:
        raise AssertionError

    data = issued(key=keys.generate("ed25519")).to_json()
    found = verify(data, trust=trust(), at=LATER, evidence=never, replay=never)
    assert found.exit_code == 8


def test_a_time_without_offset_is_the_callers_mistake() -> None:
    with pytest.raises(CertkitError) as caught:
        verify(issued().to_json(), trust=trust(), at=datetime(2026, 3, 2))  # noqa: DTZ001 - the point
    assert caught.value.code == "usage.option"


def test_the_document_has_its_published_form() -> None:
    schema = schema_of(VerificationDocument)
    Draft202012Validator.check_schema(schema)
    for data, policy in (
        (issued().to_json(), trust()),
        (b"", trust()),
        (issued().to_json(), trust(key=keys.generate("p256"))),
    ):
        document = verify(data, trust=policy, at=LATER).to_dict()
        Draft202012Validator(schema).validate(document)


def test_the_name_shown_is_the_verifiers_own() -> None:
    policy = structs.replace(trust(), issuers=(structs.replace(trust().issuers[0], name="Known as"),))
    found = verify(issued().to_json(), trust=policy, at=LATER)
    assert found.claim is not None
    assert (found.claim.issuer.name, found.claim.issuer.stated_name) == ("Known as", "Example Lab")


HEAVY = ("duckdb", "scipy", "numpy", "pydantic", "jsonschema", "rich", "weasyprint", "sigstore")


def test_verifying_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "passport.json").write_bytes(issued().to_json())
    (tmp_path / "trust.json").write_bytes(trust().to_json())
    program = f"""
import sys
from datetime import datetime
from pathlib import Path
from certkit.passport.trust import parse
from certkit.passport.verification import verify
policy = parse(Path("trust.json").read_bytes(), "trust.json")
found = verify(Path("passport.json").read_bytes(), trust=policy, at=datetime.fromisoformat("{LATER}"))
assert found.verdict == "verified", found
print(*[name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.split() == []


def test_the_command_loads_nothing_of_the_assessment(tmp_path: Path) -> None:
    (tmp_path / "passport.json").write_bytes(issued().to_json())
    (tmp_path / "trust.json").write_bytes(trust().to_json())
    arguments = ["verify", "passport.json", "-t", "trust.json", "--at", LATER.isoformat()]
    program = f"""
import sys
from certkit.cli.main import main
assert main({arguments}) == 0
rooms = ("certkit.assessment.", "certkit.evidence.")
light = {{f"certkit.assessment.{{name}}" for name in ("task_table", "findings", "findings.findings")}}
heavy = {{name for name in sys.modules if name in {HEAVY} or name.startswith(rooms)}}
print("loaded:", *sorted(heavy - light))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.decode().splitlines()[-1].split() == ["loaded:"]


def test_the_command_opens_the_bundle_and_replays(tmp_path: Path) -> None:
    root = sealed_bundle(tmp_path / "bundle")
    file, policy = tmp_path / "passport.json", tmp_path / "trust.json"
    file.write_bytes(of_bundle(root).to_json())
    policy.write_bytes(trust().to_json())
    base = ("verify", str(file), "--trust", str(policy), "--at", LATER.isoformat(), "--json", "--bundle")
    code, document = certkit(*base, str(root), "--replay")
    assert (code, document["verdict"]) == (0, "verified")
    assert [item["status"] for item in document["steps"]].count("passed") == 9
    said = {extra: running.certkit(*base[:-2], "--bundle", root, *extra).out for extra in ((), ("--replay",))}
    told = "not checked: verdict and challenges were not computed again from the bundle"
    assert [told in " ".join(text.split()) for text in said.values()] == [True, False]
    other = bundles.of(tmp_path / "other", runs(successes=13))
    code, document = certkit(*base, str(other), "--replay")
    assert (code, document["verdict"]) == (1, "rejected")


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (("--replay",), 2, "--replay needs the evidence"),
        (("--agent", "sha256:0"), 2, "--agent"),
        (("--at", "yesterday"), 2, "'yesterday' is not a time"),
        (("--at", "2026-03-02T00:00:00"), 2, "is not a time"),
        (("--trust", "nowhere.json"), 3, "no trust policy"),
    ],
)
def test_wrong_options_are_told(
    tmp_path: Path, arguments: tuple[str, ...], exit_code: int, words: str
) -> None:
    file, policy = tmp_path / "passport.json", tmp_path / "trust.json"
    file.write_bytes(issued().to_json())
    policy.write_bytes(trust().to_json())
    code, document = certkit("verify", str(file), "--trust", str(policy), "--json", *arguments)
    assert code == exit_code
    assert words in document["error"]["message"]


def test_a_missing_passport_is_told(tmp_path: Path) -> None:
    code, document = certkit("verify", str(tmp_path / "none.json"), "--json")
    assert (code, document["error"]["code"]) == (3, "file.missing")


def logged(passport_id: str, signer: note.Signer, **changes: Any) -> bytes:
    """Return the proof of a log with one entry, about a passport."""
    entry = {
        "v": 1,
        "type": "passport",
        "claims": {"passport_id": passport_id},
        "issued_at": NOW.isoformat(),
    } | changes
    kind = "application/vnd.certkit.registry-entry.v1+json"
    data = canonical.canonical(dsse.sign(kind, canonical.canonical(entry), KEY))
    head = checkpoint.Checkpoint(signer.name, 1, tree.leaf_hash(data))
    return checkpoint.LogProof(0, (), checkpoint.sign_checkpoint(head, signer), data).to_bytes()


LOG = note.Signer("example.com/log", Ed25519PrivateKey.generate())
OTHER_LOG = note.Signer("example.com/log", Ed25519PrivateKey.generate())


def registered(text: bytes, **policy: Any) -> Step:
    trusted = trust(logs=(str(LOG.vkey),), **policy)
    return step(verify(issued().to_json(), trust=trusted, at=LATER, proof=text), "registry")


def test_a_proof_of_a_trusted_log_is_verified() -> None:
    good = logged(issued().passport_id, LOG)
    assert registered(good).status == "passed"
    assert registered(good).detail == "entry 0 of 1 in example.com/log"
    required = trust(logs=(str(LOG.vkey),), require=("registry",))
    assert verify(issued().to_json(), trust=required, at=LATER, proof=good).verdict == "verified"


def test_an_entry_that_was_made_when_the_key_had_ended_is_refused() -> None:
    late = logged(issued().passport_id, LOG, issued_at=(NOW + timedelta(hours=2)).isoformat())
    window = trust_policy.TrustedKey(
        pem=keys.public_pem(KEY.public_key()), not_after=NOW + timedelta(hours=1)
    )
    policy = Trust(issuers=(trust_policy.TrustedIssuer(name="Lab", keys=(window,)),), logs=(str(LOG.vkey),))
    found = step(verify(issued().to_json(), trust=policy, at=LATER, proof=late), "registry")
    assert (found.status, found.code) == ("failed", "passport.key-window")


def test_an_entry_that_is_no_object_or_that_nobody_trusted_signed_is_refused() -> None:
    identity = issued().passport_id
    kind = "application/vnd.certkit.registry-entry.v1+json"
    for payload in (b"[]", b'"x"', b"null"):
        data = canonical.canonical(dsse.sign(kind, payload, KEY))
        head = checkpoint.Checkpoint(LOG.name, 1, tree.leaf_hash(data))
        text = checkpoint.LogProof(0, (), checkpoint.sign_checkpoint(head, LOG), data).to_bytes()
        assert registered(text).code == "passport.registry"
    entry = {"v": 1, "type": "passport", "claims": {"passport_id": identity}, "issued_at": NOW.isoformat()}
    data = canonical.canonical(dsse.sign(kind, canonical.canonical(entry), Ed25519PrivateKey.generate()))
    head = checkpoint.Checkpoint(LOG.name, 1, tree.leaf_hash(data))
    text = checkpoint.LogProof(0, (), checkpoint.sign_checkpoint(head, LOG), data).to_bytes()
    assert registered(text).detail == "no trusted key signed the logged entry"


def test_a_validity_at_the_end_of_the_calendar_is_no_bug() -> None:
    document = canonical.loads(issued().payload)
    document["predicate"]["validity"] |= {
        "not_before": "0001-01-01T00:00:00Z",
        "not_after": "0001-02-01T00:00:00Z",
    }
    found = verify(signed(document), trust=trust(), at=LATER)
    assert step(found, "types").code == "passport.statement"


def test_replay_finds_rows_that_were_emptied(tmp_path: Path) -> None:
    root = sealed_bundle(tmp_path / "bundle")
    document = canonical.loads(of_bundle(root).payload)
    for row in document["predicate"]["criteria"]:
        if row["metric"] not in {
            "r_op",
            "domain_min",
            "frr",
            "adversarial_resistance",
        }:  # whose counts the statement itself must give
            row["counts"] = {}
    assert "claimed nothing" in step(with_bundle(signed(document), root), "replay").detail


def test_a_proof_of_something_else_is_refused() -> None:
    identity = issued().passport_id
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
    found = registered(logged(issued().passport_id, LOG), witnesses=policy)
    assert (found.status, found.code) == ("failed", "passport.witnesses")


def test_a_proof_without_a_trusted_log_is_not_counted() -> None:
    found = verify(issued().to_json(), trust=trust(), at=LATER, proof=logged(issued().passport_id, LOG))
    assert (found.verdict, step(found, "registry").status) == ("verified", "skipped")


def test_replay_finds_a_claim_of_what_the_evidence_does_not_state(tmp_path: Path) -> None:
    root = sealed_bundle(tmp_path / "bundle")
    document = canonical.loads(of_bundle(root).payload)
    assert "temperature" not in document["predicate"]["protocol"]
    document["predicate"]["protocol"]["temperature"] = "0.000000"
    found = with_bundle(signed(document), root)
    assert (
        step(found, "replay").detail == "protocol temperature: claimed 0.000000, the evidence gives nothing"
    )


def test_a_profile_that_is_not_known_cannot_be_replayed(tmp_path: Path) -> None:
    root = sealed_bundle(tmp_path / "bundle")
    data = of_bundle(root).to_json()
    opened, replayed = from_bundle(root, lambda _: workflow.load_profile("no-such"), progress=SILENT)
    found = verify(data, trust=trust(), at=LATER, evidence=opened, replay=replayed)
    assert (found.verdict, found.exit_code) == ("unverifiable", 4)
    assert step(found, "replay").code == "passport.unavailable"
    assert "no-such" in step(found, "replay").detail


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
    found = verify(issued().to_json(), trust=trust(), at=LATER, status=Source(said("current", time)))
    assert step(found, "status").status == status
    assert found.verdict == ("verified" if status == "passed" else "unverifiable")


def test_an_ending_counts_whatever_its_age() -> None:
    for time in (LATER - 100 * WEEK, LATER + WEEK, None):
        found = verify(issued().to_json(), trust=trust(), at=LATER, status=Source(said("revoked", time)))
        assert step(found, "status").code == "passport.revoked"


def test_a_standing_that_nobody_defined_is_unknown() -> None:
    found = verify(issued().to_json(), trust=trust(), at=LATER, status=Source(said("suspended")))
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
        found = verify(issued().to_json(), trust=trust(require=("status",)), at=LATER, **asked)
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
    text = logged(issued().passport_id, LOG, issued_at=(end + late).isoformat())
    found = verify(issued().to_json(), trust=windowed(not_after=end), at=LATER, proof=text)
    assert step(found, "registry").status == status
    assert step(found, "registry").code == (None if status == "passed" else "passport.key-window")
    open_ended = verify(issued().to_json(), trust=windowed(not_before=NOW), at=LATER, proof=text)
    assert step(open_ended, "registry").status == "passed"


def test_what_was_logged_before_the_keys_window_is_for_the_validity_to_judge() -> None:
    early = logged(issued().passport_id, LOG, issued_at=(NOW - timedelta(days=1)).isoformat())
    found = verify(issued().to_json(), trust=windowed(not_before=NOW), at=LATER, proof=early)
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
    found = step(verify(issued().to_json(), trust=windowed(**window), at=LATER), "validity")
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
    found = verify(issued().to_json(), trust=trust(), at=at)
    assert step(found, "validity").code == code


@pytest.mark.parametrize(
    ("policy", "asked", "code"),
    [
        (None, 3, None),
        (3, None, None),
        (3, 1, None),
        (None, 4, "passport.policy"),
        (4, None, "passport.policy"),
        (4, 1, "passport.policy"),
        (1, 4, "passport.policy"),
        (None, 0, None),
    ],
)
def test_the_higher_of_two_demands_counts(policy: int | None, asked: int | None, code: str | None) -> None:
    found = verify(issued().to_json(), trust=trust(min_tier=policy), at=LATER, require_tier=asked)
    assert found.claim is not None
    assert (found.claim.tier, step(found, "policy").code) == (3, code)


def test_only_the_keys_under_its_issuers_name_may_end_a_passport() -> None:
    delegate, stranger = keys.generate("p256").public_key(), keys.generate("ed25519").public_key()
    policy = trust()
    for name, key in (("Example Lab", delegate), ("Other Lab", stranger)):
        policy = policy.with_issuer(name, trust_policy.TrustedKey(pem=keys.public_pem(key)))
    told: list[set[str]] = []

    class Asked:
        def status(self, passport_id: Digest, revokers: Mapping[Digest, PublicKey]) -> Status:
            assert passport_id == issued().passport_id
            told.append(set(revokers))
            return said("current")

    found = verify(issued().to_json(), trust=policy, at=LATER, status=Asked())
    assert found.verdict == "verified"
    assert told == [{keys.key_id(KEY.public_key()), keys.key_id(delegate)}]
