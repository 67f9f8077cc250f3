"""Other programs read what we write: securesystemslib the envelope, in-toto-attestation the statements."""

from __future__ import annotations

import json  # noqa: TID251 - the reader's own
from typing import TYPE_CHECKING, Any, cast

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from certkit.ground import canonical
from certkit.passport import envelope as sealed
from certkit.passport import exports, keys
from tests.support import passports
from tests.support.passports import viewed
from tests.support.signers import ALGORITHMS

if TYPE_CHECKING:
    from collections.abc import Callable

pytest.importorskip("securesystemslib.dsse", reason="securesystemslib is not installed")
pytest.importorskip("in_toto_attestation", reason="in-toto-attestation is not installed")

from google.protobuf import json_format  # type: ignore[import-untyped,unused-ignore]
from in_toto_attestation.v1.resource_descriptor import (  # type: ignore[import-untyped,unused-ignore]
    ResourceDescriptor,
)
from in_toto_attestation.v1.statement import Statement  # type: ignore[import-untyped,unused-ignore]
from in_toto_attestation.v1.statement_pb2 import (  # type: ignore[import-untyped,unused-ignore]
    Statement as Message,
)
from securesystemslib.dsse import Envelope  # type: ignore[import-untyped,unused-ignore]
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer._crypto_signer import CryptoSigner
from securesystemslib.signer._key import SSlibKey


def envelope_of(data: bytes, keyid: str) -> Any:
    """Return the envelope as the library takes it, which wants the key's id in the signature."""
    document = canonical.loads(data)["dsseEnvelope"]
    document["signatures"] = [{"keyid": keyid, **item} for item in document["signatures"]]
    return Envelope.from_dict(document)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_good_passport_is_verified_and_its_twins_are_not(algorithm: keys.Algorithm) -> None:
    private = keys.generate(algorithm)
    found = passports.specimen_passport(key=private)
    key = SSlibKey.from_crypto(private.public_key())
    envelope = envelope_of(found.to_json(), key.keyid)
    assert (envelope.payload_type, envelope.payload) == ("application/vnd.in-toto+json", found.payload)
    assert envelope.verify([key], 1).keys() == {key.keyid}
    stranger = SSlibKey.from_crypto(keys.generate(algorithm).public_key(), keyid=key.keyid)
    tampered = envelope_of(found.to_json(), key.keyid)
    tampered.payload = found.payload.replace(b"simulated", b"Simulated", 1)
    relabelled = envelope_of(found.to_json(), key.keyid)
    relabelled.payload_type = "application/json"
    for twin, with_key in ((envelope, stranger), (tampered, key), (relabelled, key)):
        with pytest.raises(VerificationError):
            twin.verify([with_key], 1)


class TheirSigner:
    """Signs a passport with securesystemslib."""

    def __init__(self, key: Any) -> None:
        self._key = key

    @property
    def key_id(self) -> canonical.Digest:
        return keys.key_id(self._key.public_key())

    def seal(self, payload: bytes) -> dict[str, Any]:
        message = sealed.pae(sealed.PAYLOAD_TYPE, payload)
        signature = bytes.fromhex(CryptoSigner(self._key).sign(message).signature)
        envelope = {
            "payload": sealed.encode(payload),
            "payloadType": sealed.PAYLOAD_TYPE,
            "signatures": [{"sig": sealed.encode(signature)}],
        }
        material = {"publicKey": {"hint": keys.hint(self._key.public_key())}, "tlogEntries": []}
        return sealed.bundle(material, envelope)


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1()], ids=["p256", "p384"])
def test_its_signatures_are_verified_with_the_hash_that_goes_with_the_curve(curve: ec.EllipticCurve) -> None:
    key = ec.generate_private_key(curve)
    data = passports.specimen_passport(key=cast("Any", TheirSigner(key))).to_json()
    assert passports.verified(data, trust=passports.lenient(key)).verdict == "verified"
    assert passports.verified(data, trust=passports.lenient(ec.generate_private_key(curve))).exit_code == 8


def read(payload: bytes) -> Any:
    """Return the statement as in-toto has it; raise what it raises where it is none."""
    statement = Statement.copy_from_pb(json_format.Parse(payload, Message()))
    statement.validate()
    for subject in statement.pb.subject:
        ResourceDescriptor.copy_from_pb(subject).validate()
    return statement


def test_every_statement_is_valid_and_nothing_of_it_is_lost() -> None:
    view = viewed()
    payloads = {
        "urn:certkit:agent-passport:v1": passports.specimen_passport().payload,
        exports.SVR_TYPE: exports.export("svr", view).content.encode(),
        exports.TEST_RESULT_TYPE: exports.export("test-result", view).content.encode(),
    }
    for kind, payload in payloads.items():
        statement, ours = read(payload), json.loads(payload)
        assert statement.pb.predicate_type == kind
        # Its numbers are doubles: every one of ours is the same number there.
        assert json.loads(json_format.MessageToJson(statement.pb)) == ours


WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    "another type": lambda s: s.update(_type="https://in-toto.io/Statement/v0.1"),
    "no subject": lambda s: s.update(subject=[]),
    "a subject without a digest": lambda s: s["subject"][1].pop("digest"),
    "a subject whose digest is empty": lambda s: s["subject"][0].update(digest={}),
    "a digest that is a number": lambda s: s["subject"][0]["digest"].update(sha256=7),
    "no predicate type": lambda s: s.pop("predicateType"),
    "an empty predicate": lambda s: s.update(predicate={}),
    "a predicate that is a list": lambda s: s.update(predicate=[]),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_statement_is_refused_by_the_library_and_by_us(name: str) -> None:
    statement = passports.document()
    WRONG[name](statement)
    with pytest.raises((ValueError, json_format.ParseError)):
        read(canonical.line(statement))
    assert passports.verified(passports.signed(statement)).verdict == "rejected"
