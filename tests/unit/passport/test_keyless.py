"""Keyless passports: a good one is accepted in the same run in which each of its twins is refused."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from sigstore.models import Bundle, ClientTrustConfig
from sigstore.verify import Verifier
from sigstore.verify.policy import Identity

from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from certkit.passport import keyless
from certkit.passport.trust import Trust
from certkit.passport.trust import parse as parse_trust
from certkit.passport.verify import verify
from tests.support import passport_parts as maker
from tests.support.certificates import GOOD, edited, material, signed, statement
from tests.support.keyless import (
    CERTIFICATES,
    ENTRIES,
    INSTANCE,
    OTHER,
    SECOND,
    SIGNED,
    SIGNER,
    SWAPPED,
    WHERE,
    WHO,
)
from tests.support.virtual_sigstore import b64, compact, der_of

if TYPE_CHECKING:
    from tests.support.virtual_sigstore import Json

LATER = datetime(2026, 3, 1, 12, tzinfo=UTC)


def policy(identity: str = WHO, issuer: str = WHERE, root: Json | None = None, **more: Any) -> Trust:
    document = {
        "schema": "urn:certkit:trust:v1",
        "issuers": [{"name": "Lab", "identities": [{"identity": identity, "issuer": issuer}]}],
        "trusted_root": root or INSTANCE.trusted_root(),
        "accept_specimens": True,
        **more,
    }
    return parse_trust(canonical.line(document), "trust.json")


def ends(bundle: Json, trust: Trust | None = None, at: datetime = LATER) -> tuple[Any, ...]:
    """Return the exit code, and the step and code of the first failure."""
    found = verify(canonical.line(bundle), trust=trust or policy(), at=at)
    failed = found.deciding
    return (int(found.exit_code), failed.id if failed else None, failed.code if failed else None)


ACCEPTED = (0, None, None)
REFUSED = (1, "signature", "passport.certificate")
UNTRUSTED = (8, "signature", "passport.untrusted-issuer")
WINDOW = (6, "validity", "passport.root-window")


def test_a_good_passport_is_verified_with_its_time_and_its_signer() -> None:
    found = verify(canonical.line(GOOD), trust=policy(require=["timestamp"]), at=LATER)
    assert found.verdict == "verified"
    assert found.claim is not None
    assert (found.claim.issuer.name, found.claim.issuer.key_id) == ("Lab", SIGNER.key_id)
    assert found.steps[2].detail == f'by "Lab", signed in as {WHO} at {WHERE}'
    assert "signed at 2026-02-01T00:01:30Z" in found.step("validity").detail
    assert not any(item.startswith(("signing time", "log entries")) for item in found.not_checked)


@pytest.mark.parametrize(
    "identity", [WHO, "https://example.com/lab/.github/workflows/issue.yml@refs/heads/main"]
)
def test_a_mail_address_and_a_workflow_sign(identity: str) -> None:
    assert ends(signed(INSTANCE.signer(identity, WHERE)), policy(identity)) == ACCEPTED


def test_sigstore_python_itself_accepts_it() -> None:
    config = {
        "mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json",
        "signingConfig": {"mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json"},
        "trustedRoot": INSTANCE.trusted_root(),
    }
    verifier = Verifier(trusted_root=ClientTrustConfig.from_json(compact(config).decode()).trusted_root)
    kind, payload = verifier.verify_dsse(
        Bundle.from_json(compact(GOOD)), Identity(identity=WHO, issuer=WHERE)
    )
    assert (kind, b64(payload)) == ("application/vnd.in-toto+json", GOOD["dsseEnvelope"]["payload"])


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_certificate_that_does_not_hold_is_refused(name: str) -> None:
    assert ends(GOOD) == ACCEPTED
    assert ends(signed(CERTIFICATES[name])) == REFUSED


@pytest.mark.parametrize(
    ("identity", "issuer"),
    [
        ("b@example.com", WHERE),
        ("A@example.com", WHERE),
        ("a@example.co", WHERE),
        (".*", WHERE),
        (WHO, "https://evil.example.com"),
        (WHO, WHERE + "/"),
        (WHERE, WHO),
    ],
)
def test_another_identity_or_another_issuer_is_not_trusted(identity: str, issuer: str) -> None:
    assert ends(GOOD, policy()) == ACCEPTED
    assert ends(GOOD, policy(identity, issuer)) == UNTRUSTED


def test_a_certificate_counts_under_a_trusted_root_alone() -> None:
    assert ends(GOOD, policy()) == ACCEPTED
    without = parse_trust(canonical.line({**policy().to_dict(), "trusted_root": None}), "trust.json")
    assert ends(GOOD, without) == UNTRUSTED
    assert ends(GOOD, policy(root=OTHER.trusted_root())) == REFUSED
    chain = edited(lambda d: d["verificationMaterial"].pop("certificate"))
    chain["verificationMaterial"]["x509CertificateChain"] = {
        "certificates": [GOOD["verificationMaterial"]["certificate"]]
    }
    assert ends(chain) == UNTRUSTED


@pytest.mark.parametrize(
    ("who", "expected"), [("ca", WINDOW), ("ct", WINDOW), ("log", WINDOW), ("tsa", REFUSED)]
)
def test_whoever_had_left_office_before_the_signing_no_longer_counts(
    who: str, expected: tuple[Any, ...]
) -> None:
    # Windows are closed: the last moment is inside. `sigstore` itself looks at the authority's end alone.
    assert ends(GOOD, policy(root=INSTANCE.trusted_root(**{who: SIGNED}))) == ACCEPTED
    assert ends(GOOD, policy(root=INSTANCE.trusted_root(**{who: SIGNED - SECOND}))) == expected


def test_whoever_took_office_after_the_signing_did_not_yet_count() -> None:
    assert ends(GOOD, policy(root=replace(INSTANCE, start=SIGNED).trusted_root())) == ACCEPTED
    late = replace(INSTANCE, start=SIGNED + SECOND).trusted_root()
    assert ends(GOOD, policy(root=late)) == REFUSED  # no authority proves a time
    for name in ("certificateAuthorities", "tlogs", "ctlogs"):
        root = {**INSTANCE.trusted_root(), name: late[name]}
        assert ends(GOOD, policy(root=root)) == WINDOW


@pytest.mark.parametrize("name", ENTRIES)
def test_what_is_attached_is_bound_to_the_signature(name: str) -> None:
    assert ends(GOOD) == ACCEPTED
    assert ENTRIES[name] != GOOD
    assert ends(ENTRIES[name]) == REFUSED


def test_every_changed_byte_of_a_certificate_ends_in_a_refusal() -> None:
    good = base64.b64decode(GOOD["verificationMaterial"]["certificate"]["rawBytes"])
    told = set()
    for place in range(len(good)):
        changed = bytearray(good)
        changed[place] ^= 1
        told.add(ends(material(certificate={"rawBytes": b64(bytes(changed))})))
    assert told == {REFUSED, UNTRUSTED}


def test_the_timestamp_of_another_signature_is_refused() -> None:
    swapped = material(timestampVerificationData=SWAPPED["timestampVerificationData"])
    assert ends(swapped) == REFUSED


def test_the_promise_of_a_log_proves_the_time_and_a_changed_one_does_not() -> None:
    payload = compact(statement(SIGNER.key))
    good = SIGNER.attest_in_v1(payload, SIGNED)
    assert ends(good, policy(require=["timestamp"])) == ACCEPTED
    assert ends(good, policy(root=INSTANCE.trusted_root(log=SIGNED))) == ACCEPTED
    assert ends(good, policy(root=INSTANCE.trusted_root(log=SIGNED - SECOND))) == WINDOW
    assert ends(SIGNER.attest_in_v1(payload, SIGNED + timedelta(minutes=20))) == REFUSED
    for time in (SIGNED - SECOND, SIGNED + SECOND):
        moved = edited(
            lambda d, time=time: d["verificationMaterial"]["tlogEntries"][0].update(  # type: ignore[misc]
                integratedTime=str(int(time.timestamp()))
            ),
            good,
        )
        assert ends(moved) == REFUSED
    silent = edited(lambda d: d["verificationMaterial"]["tlogEntries"][0].pop("inclusionPromise"), good)
    assert ends(silent) == REFUSED


def test_an_authority_may_name_the_oidc_issuer_at_any_length() -> None:
    where = "https://accounts.example.com/" + "long/" * 60
    assert ends(signed(INSTANCE.signer(WHO, where)), policy(WHO, where)) == ACCEPTED


def test_payload_type_and_statement_are_looked_at_as_sigstore_does_not() -> None:
    relabelled = edited(lambda d: d["dsseEnvelope"].update(payloadType="application/json"))
    assert ends(relabelled) == (3, "envelope", "dsse.payload-type")
    foreign = SIGNER.attest(compact(statement(maker.LAB)))
    assert ends(foreign) == (1, "types", "passport.statement")
    found = verify(canonical.line(GOOD), trust=policy(), at=LATER, agent="sha256:" + "0" * 64)
    assert (found.exit_code, found.deciding and found.deciding.id) == (1, "subject")


def test_base64_of_either_alphabet_is_the_same_passport() -> None:
    name = {"name": "\N{LATIN SMALL LETTER Y WITH DIAERESIS}" * 3, "key_id": SIGNER.key_id}
    document = SIGNER.attest(maker.compact(statement(SIGNER.key, issuer=name)))
    assert ends(document) == ACCEPTED
    envelope = document["dsseEnvelope"]
    assert "/" in envelope["payload"]
    for holder, key in ((envelope, "payload"), (envelope["signatures"][0], "sig")):
        holder[key] = holder[key].replace("+", "-").replace("/", "_")
    assert ends(document) == ACCEPTED


def test_clock_skew_is_borne_for_five_minutes_and_no_longer() -> None:
    skew = timedelta(minutes=5)
    early = (6, "validity", "passport.not-yet-valid")
    assert ends(GOOD, at=SIGNED - skew) == ACCEPTED
    assert ends(GOOD, at=SIGNED - skew - SECOND) == early  # at that time it was not yet signed
    expired = datetime(2026, 5, 2, 0, 0, 1, tzinfo=UTC)
    assert ends(GOOD, at=expired) == (6, "validity", "passport.expired")


def test_a_key_that_is_trusted_does_not_make_a_certificate_trusted() -> None:
    keys = {"name": "Lab", "keys": [{"pem": maker.pem(SIGNER.key)}]}
    trust = parse_trust(canonical.line({"schema": "urn:certkit:trust:v1", "issuers": [keys]}), "trust.json")
    assert ends(GOOD, trust) == UNTRUSTED


@pytest.mark.parametrize(
    ("curve", "read"), [(ec.SECP256R1(), True), (ec.SECP384R1(), True), (ec.SECP521R1(), False)]
)
def test_a_certificate_is_for_a_key_that_is_verified_here(curve: ec.EllipticCurve, read: bool) -> None:  # noqa: FBT001
    key = ec.generate_private_key(curve)
    certificate = der_of(INSTANCE.certify(key.public_key(), WHO, WHERE))
    if read:
        assert keyless.read(certificate).key == key.public_key()
        return
    with pytest.raises(CertkitError, match="neither ECDSA P-256 nor P-384") as caught:
        keyless.read(certificate)
    assert (caught.value.code, caught.value.exit_code) == ("passport.certificate", 1)


def test_every_time_that_is_proven_lies_in_the_windows_of_the_root() -> None:
    promised = SIGNED + timedelta(seconds=30)
    bundle = SIGNER.attest_in_v1(compact(statement(SIGNER.key)), promised)
    signature = base64.b64decode(bundle["dsseEnvelope"]["signatures"][0]["sig"])
    token = INSTANCE.timestamp(hashlib.sha256(signature).digest(), SIGNED)
    bundle["verificationMaterial"]["timestampVerificationData"] = {
        "rfc3161Timestamps": [{"signedTimestamp": b64(token)}]
    }
    found = verify(canonical.line(bundle), trust=policy(), at=LATER)
    assert found.verdict == "verified"
    assert "signed at 2026-02-01T00:01:30Z" in found.step("validity").detail  # the earlier of the two
    began = {
        name: replace(INSTANCE, start=start).trusted_root()
        for name, start in (("at", SIGNED), ("late", SIGNED + SECOND))
    }
    for who, kind in (("ca", "certificateAuthorities"), ("log", "tlogs"), ("ct", "ctlogs")):
        assert ends(bundle, policy(root=INSTANCE.trusted_root(**{who: promised}))) == ACCEPTED
        assert ends(bundle, policy(root=INSTANCE.trusted_root(**{who: promised - SECOND}))) == WINDOW
        for name, expected in (("at", ACCEPTED), ("late", WINDOW)):
            root = {**INSTANCE.trusted_root(), kind: began[name][kind]}
            assert ends(bundle, policy(root=root)) == expected


@pytest.mark.parametrize("certificate", [{}, [], "", {"rawBytes": b64(b""), "more": 1}, {"pem": "x"}])
def test_a_certificate_is_its_bytes_and_nothing_beside_them(certificate: object) -> None:
    assert ends(GOOD) == ACCEPTED
    assert ends(material(certificate=certificate)) == (3, "parse", "passport.form")
