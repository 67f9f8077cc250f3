"""Any Sigstore bundle by a key: its form, as strict as Sigstore's clients are, and what others saw of it."""

from __future__ import annotations

import base64
import copy
import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from certkit.ground import canonical
from certkit.ground.errors import CertkitError, UsageError
from certkit.passport import trusted_root
from tests.interop import anybundle
from tests.support import passport_parts as maker
from tests.support.passports import KEY
from tests.support.virtual_sigstore import Sigstore, b64, compact, pae, spki

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.virtual_sigstore import Json

AT = datetime(2026, 2, 1, 0, 0, 30, tzinfo=UTC)
SEEN, PROMISED = AT + timedelta(minutes=1), AT + timedelta(minutes=2)
SECOND = timedelta(seconds=1)
INSTANCE, OTHER = Sigstore.new(AT), Sigstore.new(AT)
ROOT = INSTANCE.trusted_root()
CERTIFICATE = INSTANCE.signer("a@example.com", "https://accounts.example.com").certificate
ABOUT_ELSE = "passport.other-evidence"
DATA = b"What was signed.\n"
SHA256 = hashlib.sha256(DATA)
STATEMENT = compact({"subject": [{"name": "notes", "digest": {"sha256": SHA256.hexdigest()}}]})
ARTIFACT = anybundle.Artifact(sha256=SHA256.hexdigest(), read=lambda: DATA)


def stamped(signature: bytes, by: Sigstore = INSTANCE) -> Json:
    token = by.timestamp(hashlib.sha256(signature).digest(), SEEN)
    return {"rfc3161Timestamps": [{"signedTimestamp": b64(token)}]}


def plain(by: Sigstore = INSTANCE) -> Json:
    """Return a file's signature with an entry of Rekor v2 and a timestamp."""
    signature = maker.LAB.sign(DATA)
    return {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {
            "publicKey": {"hint": "anything"},
            "tlogEntries": [by.entry(SHA256.digest(), signature, CERTIFICATE)],
            "timestampVerificationData": stamped(signature, by),
        },
        "messageSignature": {
            "messageDigest": {"algorithm": "SHA2_256", "digest": b64(SHA256.digest())},
            "signature": b64(signature),
        },
    }


def attested(promised: datetime = PROMISED) -> Json:
    """Return an attestation with an entry of Rekor v1, whose log promises the time."""
    bundle = maker.passport(STATEMENT, signature=maker.signed(maker.IN_TOTO, STATEMENT, maker.LAB))
    signature = maker.signed(maker.IN_TOTO, STATEMENT, maker.LAB)
    assert pae(STATEMENT)
    bundle["verificationMaterial"]["tlogEntries"] = [
        INSTANCE.promised(STATEMENT, signature, CERTIFICATE, promised)
    ]
    return bundle


def edited(change: Callable[[Json], object], base: Json | None = None) -> Json:
    document = copy.deepcopy(base or plain())
    change(document)
    return document


def entry(document: Json) -> Json:
    found: Json = document["verificationMaterial"]["tlogEntries"][0]
    return found


def verify(bundle: Json, root: Json | None = ROOT, **more: Any) -> anybundle.Found:
    artifact = more.pop("artifact", ARTIFACT)
    return anybundle.verify(compact(bundle), artifact, key=maker.LAB.public_key(), root=root, **more)


def refused(bundle: Json, root: Json | None = ROOT, **more: Any) -> str:
    with pytest.raises(CertkitError) as caught:
        verify(bundle, root, **more)
    return caught.value.code


def test_what_is_attached_to_a_keys_signature_tells_its_time_under_a_root_alone() -> None:
    assert verify(plain()).time == SEEN
    assert verify(attested()).time == PROMISED
    for bundle in (plain(), attested(), plain(OTHER)):
        assert verify(bundle, None).time is None
    bare = edited(lambda d: d.update(verificationMaterial={"publicKey": {"hint": "x"}}))
    assert verify(bare).time is None  # protobuf leaves an empty list out


FORMS: dict[str, Callable[[Json], object]] = {
    "no version": lambda d: d.pop("mediaType"),
    "a later version": lambda d: d.update(mediaType="application/vnd.dev.sigstore.bundle.v0.4+json"),
    "a version that is no text": lambda d: d.update(
        mediaType=["application/vnd.dev.sigstore.bundle.v0.3+json"]
    ),
    "an unknown key": lambda d: d.update(more=1),
    "material that is a list": lambda d: d.update(verificationMaterial=[]),
    "an unknown key in the signature": lambda d: d["messageSignature"].update(more=1),
    "an unknown key in an entry": lambda d: entry(d).update(more=1),
    "another spelling of a key": lambda d: d.update(media_type=d.pop("mediaType")),
    "another spelling in an entry": lambda d: entry(d).update(
        canonicalized_body=entry(d).pop("canonicalizedBody")
    ),
    "signature and envelope": lambda d: d.update(dsseEnvelope=maker.good()["dsseEnvelope"]),
    "neither signature nor envelope": lambda d: d.pop("messageSignature"),
    "a signature that is null": lambda d: d.update(messageSignature=None),
    "an entry with nothing in it": lambda d: d["verificationMaterial"].update(
        tlogEntries=[{"logIndex": "1"}]
    ),
    "a negative index": lambda d: entry(d).update(logIndex="-1"),
    "an index that is a number": lambda d: entry(d).update(logIndex=1),
    "no proof": lambda d: entry(d).pop("inclusionProof"),
    "no checkpoint": lambda d: entry(d)["inclusionProof"].pop("checkpoint"),
    "no body": lambda d: entry(d).pop("canonicalizedBody"),
    "no promise in a bundle v0.1": lambda d: d.update(
        mediaType="application/vnd.dev.sigstore.bundle+json;version=0.1"
    ),
    "a hash that nobody knows": lambda d: d["messageSignature"]["messageDigest"].update(algorithm="MD5"),
    "a hash that is not read here": lambda d: d["messageSignature"]["messageDigest"].update(
        algorithm="SHA3_256"
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_bundle_of_another_form_is_refused_with_a_root_and_without(name: str) -> None:
    for root in (ROOT, None):
        verify(plain(), root)
        assert refused(edited(FORMS[name]), root) == "passport.form"


def test_every_version_up_to_03_is_read() -> None:
    for version in ("0.1", "0.2", "0.3"):
        kind = f"application/vnd.dev.sigstore.bundle+json;version={version}"
        assert verify(edited(lambda d, kind=kind: d.update(mediaType=kind), attested())).time == PROMISED  # type: ignore[misc]


def flipped(text: str) -> str:
    data = bytearray(base64.b64decode(text))
    data[len(data) // 2] ^= 1
    return b64(bytes(data))


def proof(document: Json) -> Json:
    found: Json = entry(document)["inclusionProof"]
    return found


TOLD = proof(plain())["checkpoint"]["envelope"]
ATTACHED: dict[str, tuple[Callable[[Json], object], str]] = {
    "a hash of the proof is changed": (
        lambda d: proof(d)["hashes"].__setitem__(0, flipped(proof(d)["hashes"][0])),
        "tlog.inclusion",
    ),
    "a hash of the proof is missing": (lambda d: proof(d)["hashes"].pop(), "tlog.inclusion"),
    "a proof for another place": (lambda d: proof(d).update(logIndex="1"), "tlog.inclusion"),
    "a proof for another tree": (lambda d: proof(d).update(treeSize="6"), "tlog.inclusion"),
    "another root": (lambda d: proof(d).update(rootHash=b64(bytes(32))), "tlog.inclusion"),
    "a size that is written otherwise": (lambda d: proof(d).update(treeSize="05"), "passport.form"),
    "a checkpoint of another size": (
        lambda d: (
            proof(d)["checkpoint"].update(envelope=TOLD.replace("\n5\n", "\n6\n")),
            proof(d).update(treeSize="6"),
        ),
        "tlog.unsigned",
    ),
    "a checkpoint of another origin": (
        lambda d: proof(d)["checkpoint"].update(envelope=TOLD.replace("log.", "gol.", 1)),
        "tlog.unsigned",
    ),
    "a checkpoint that is no note": (
        lambda d: proof(d)["checkpoint"].update(envelope="checkpoint"),
        "tlog.note",
    ),
    "the entry of another signature": (
        lambda d: d["verificationMaterial"].update(
            tlogEntries=[INSTANCE.entry(SHA256.digest(), maker.SECOND.sign(DATA), CERTIFICATE)]
        ),
        ABOUT_ELSE,
    ),
    "an entry by another log": (
        lambda d: d["verificationMaterial"].update(
            tlogEntries=plain(OTHER)["verificationMaterial"]["tlogEntries"]
        ),
        "tlog.unsigned",
    ),
    "a good entry and a bad one": (
        lambda d: d["verificationMaterial"]["tlogEntries"].append(
            entry(edited(lambda e: proof(e).update(rootHash=b64(bytes(32)))))
        ),
        "tlog.inclusion",
    ),
    "a timestamp by another authority": (
        lambda d: d["verificationMaterial"].update(
            timestampVerificationData=stamped(maker.LAB.sign(DATA), OTHER)
        ),
        "passport.certificate",
    ),
    "a timestamp of another signature": (
        lambda d: d["verificationMaterial"].update(
            timestampVerificationData=stamped(maker.SECOND.sign(DATA))
        ),
        "passport.certificate",
    ),
}


@pytest.mark.parametrize("name", ATTACHED)
def test_what_is_attached_and_does_not_hold_refuses_the_bundle_under_a_root(name: str) -> None:
    change, code = ATTACHED[name]
    verify(plain())
    assert refused(edited(change)) == code


def logged(body: object, kind: str = "dsse", version: str = "0.0.1") -> Json:
    """Return the bundle with an entry of any body that the log took in."""
    found = INSTANCE._logged(compact(body), {"kind": kind, "version": version})
    return edited(lambda d: d["verificationMaterial"].update(tlogEntries=[found]))


def test_an_entry_is_of_the_kind_that_it_states_and_holds_the_signature() -> None:
    signature = b64(maker.LAB.sign(DATA))
    good = {"kind": "dsse", "apiVersion": "0.0.1", "spec": {"n": 1, "signatures": [{"signature": signature}]}}
    assert verify(logged(good)).time == SEEN
    twice = {**good, "spec": {"sig": b64(signature.encode())}}  # as entries of kind intoto hold it
    assert verify(logged(twice)).time == SEEN
    for body, kind, version in (
        (good, "intoto", "0.0.1"),
        (good, "dsse", "0.0.2"),
        ({**good, "kind": "rpm"}, "rpm", "0.0.1"),
        ([good], "dsse", "0.0.1"),
    ):
        assert refused(logged(body, kind, version)) == "passport.form"
    assert refused(logged({**good, "spec": {"signature": signature[:-4]}})) == ABOUT_ELSE
    assert refused(logged({**good, "spec": {}, "signature": signature})) == ABOUT_ELSE


def test_the_time_that_a_log_promised_is_signed() -> None:
    moved = str(int((PROMISED - SECOND).timestamp()))
    assert refused(edited(lambda d: entry(d).update(integratedTime=moved), attested())) == "tlog.signature"
    endless = edited(lambda d: entry(d).update(integratedTime="9" * 18), attested())
    assert refused(endless) == "passport.form"
    silent = edited(lambda d: entry(d).pop("inclusionPromise"), attested())
    assert verify(silent).time is None  # a time that nobody signed
    for name in ("inclusionPromise", "integratedTime"):
        nothing = edited(lambda d, name=name: entry(d).update({name: None}), attested())  # type: ignore[misc]
        assert verify(nothing).time is None


def test_a_log_counts_while_it_is_in_office() -> None:
    assert verify(plain(), INSTANCE.trusted_root(log=SEEN)).time == SEEN
    assert refused(plain(), INSTANCE.trusted_root(log=SEEN - SECOND)) == "tlog.unsigned"
    assert verify(attested(), INSTANCE.trusted_root(log=PROMISED)).time == PROMISED
    assert refused(attested(), INSTANCE.trusted_root(log=PROMISED - SECOND)) == "tlog.unsigned"
    timeless = edited(lambda d: d["verificationMaterial"].pop("timestampVerificationData"))
    assert verify(timeless).time is None
    assert refused(timeless, INSTANCE.trusted_root(log=SEEN)) == "tlog.unsigned"  # nobody knows when


def test_logs_with_keys_of_other_types_stand_beside_it() -> None:
    root = copy.deepcopy(ROOT)
    foreign = [rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP521R1())]
    for key in foreign:
        other = copy.deepcopy(root["tlogs"][0])
        other["publicKey"]["rawBytes"] = b64(spki(key))  # type: ignore[arg-type]
        root["tlogs"].insert(0, other)
    assert verify(plain(), root).time == SEEN
    root["tlogs"][0]["publicKey"]["rawBytes"] = b64(b"no key")
    trusted_root.check(root, "root.json")
    assert refused(plain(), root) == "trust.root"


@pytest.mark.parametrize(("name", "hashed"), [("SHA2_384", hashlib.sha384), ("SHA2_512", hashlib.sha512)])
def test_a_digest_of_another_length_is_compared_with_the_file(name: str, hashed: Any) -> None:
    good = {"algorithm": name, "digest": b64(hashed(DATA).digest())}
    bundle = edited(lambda d: d["messageSignature"].update(messageDigest=good))
    assert verify(bundle).time == SEEN
    wrong = {"algorithm": name, "digest": b64(hashed(DATA + b"x").digest())}
    assert refused(edited(lambda d: d["messageSignature"].update(messageDigest=wrong))) == ABOUT_ELSE
    alone = anybundle.Artifact(sha256=SHA256.hexdigest())
    assert refused(bundle, artifact=alone) == "usage.option"


def test_somebody_must_be_named() -> None:
    with pytest.raises(UsageError):
        anybundle.verify(compact(plain()), ARTIFACT)
    with pytest.raises(UsageError):
        anybundle.verify(compact(plain()), ARTIFACT, identity=("a@example.com", "https://b.example"))


def test_a_passport_is_a_bundle_too() -> None:
    data = canonical.line(maker.good())
    [agent, _] = maker.statement()["subject"]
    agent = anybundle.Artifact(sha256=agent["digest"]["sha256"])
    assert anybundle.verify(data, agent, key=maker.LAB.public_key()).signer == maker.key_id(maker.LAB)
    with pytest.raises(CertkitError) as caught:
        anybundle.verify(data, agent, key=KEY.public_key())
    assert caught.value.code == "dsse.signature"


@pytest.mark.parametrize(
    "crowd",
    [
        {"tlogEntries": [{}] * anybundle.MAX_VALUES},
        {"timestampVerificationData": {"rfc3161Timestamps": [{"signedTimestamp": "AA=="}] * 9_999}},
        {f"a{place}": 0 for place in range(anybundle.MAX_VALUES)},
    ],
)
def test_a_bundle_of_a_crowd_is_refused_before_its_form_is_looked_at(
    crowd: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sigstore_models.bundle.v1 import Bundle  # noqa: PLC0415 - what must not be asked

    asked: list[object] = []
    monkeypatch.setattr(Bundle, "from_json", asked.append)
    bundle = plain()
    bundle["verificationMaterial"] |= crowd
    with pytest.raises(CertkitError) as caught:
        anybundle.verify(compact(bundle), ARTIFACT, key=maker.LAB.public_key())
    assert caught.value.code == "passport.form"
    assert "values" in caught.value.message
    assert asked == []
