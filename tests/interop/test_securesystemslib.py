"""securesystemslib, the signing library of TUF and in-toto, verifies the envelope of a passport."""

from __future__ import annotations

from typing import Any

import pytest

from certkit import canonical
from certkit.passport import keys
from tests.unit.passport.making import issued

pytest.importorskip("securesystemslib.dsse", reason="securesystemslib is not installed")

from securesystemslib.dsse import Envelope  # type: ignore[import-untyped,unused-ignore]
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer._key import SSlibKey


def read(data: bytes, keyid: str) -> Any:
    """Return the envelope as the library takes it, which wants the key's id in the signature."""
    document = canonical.loads(data)["dsseEnvelope"]
    document["signatures"] = [{"keyid": keyid, **one} for one in document["signatures"]]
    return Envelope.from_dict(document)


@pytest.mark.parametrize("algorithm", keys.ALGORITHMS)
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
