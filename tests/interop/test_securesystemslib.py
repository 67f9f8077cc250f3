"""securesystemslib, the signing library of TUF and in-toto: it verifies our envelopes, and we verify its."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from certkit.ground import canonical
from certkit.passport import dsse, keys, sealed
from certkit.passport.issuing import VALIDITY, issue
from certkit.passport.verification import verify
from tests.support import build
from tests.support.making import ISSUER, NOW, issued, trust
from tests.support.signers import ALGORITHMS

pytest.importorskip("securesystemslib.dsse", reason="securesystemslib is not installed")

from securesystemslib.dsse import Envelope  # type: ignore[import-untyped,unused-ignore]
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer._crypto_signer import CryptoSigner
from securesystemslib.signer._key import SSlibKey


def read(data: bytes, keyid: str) -> Any:
    """Return the envelope as the library takes it, which wants the key's id in the signature."""
    document = canonical.loads(data)["dsseEnvelope"]
    document["signatures"] = [{"keyid": keyid, **one} for one in document["signatures"]]
    return Envelope.from_dict(document)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_good_passport_is_verified_and_its_twins_are_not(algorithm: keys.Algorithm) -> None:
    private = keys.generate(algorithm)
    found = issued(key=private)
    key = SSlibKey.from_crypto(private.public_key())
    envelope = read(found.to_json(), key.keyid)
    assert envelope.payload_type == "application/vnd.in-toto+json"
    assert envelope.payload == found.payload
    assert envelope.verify([key], 1).keys() == {key.keyid}
    stranger = SSlibKey.from_crypto(keys.generate(algorithm).public_key(), keyid=key.keyid)
    tampered = read(found.to_json(), key.keyid)
    tampered.payload = found.payload.replace(b"courier", b"Courier", 1)
    relabelled = read(found.to_json(), key.keyid)
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
        message = dsse.pae(sealed.PAYLOAD_TYPE, payload)
        signature = bytes.fromhex(CryptoSigner(self._key).sign(message).signature)
        envelope = {
            "payload": dsse.encode(payload),
            "payloadType": sealed.PAYLOAD_TYPE,
            "signatures": [{"sig": dsse.encode(signature)}],
        }
        material = {"publicKey": {"hint": keys.hint(self._key.public_key())}, "tlogEntries": []}
        return sealed.bundle(material, envelope)


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1()], ids=["p256", "p384"])
def test_its_signatures_are_verified_with_the_hash_that_goes_with_the_curve(curve: ec.EllipticCurve) -> None:
    key, summary = ec.generate_private_key(curve), build.strong()
    found = issue(
        build.judged(summary),
        summary,
        issuer=ISSUER,
        key=cast("Any", TheirSigner(key)),
        not_before=NOW,
        not_after=NOW + VALIDITY,
    )
    at = NOW + timedelta(days=1)
    assert verify(found.to_json(), trust=trust(key), at=at).verdict == "verified"
    stranger = trust(ec.generate_private_key(curve))
    assert verify(found.to_json(), trust=stranger, at=at).exit_code == 8
