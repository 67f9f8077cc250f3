"""Exports are verified by the libraries of those who read them: securesystemslib, and the A2A SDK."""

from __future__ import annotations

import json  # noqa: TID251 - the reader's own
from typing import Any

import pytest

from certkit.passport import exports, keys
from tests.support.signers import ALGORITHMS
from tests.support.sources import CARD, source


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_securesystemslib_verifies_a_verification_result(algorithm: keys.Algorithm) -> None:
    dsse = pytest.importorskip("securesystemslib.dsse", reason="securesystemslib is not installed")
    from securesystemslib.exceptions import VerificationError  # noqa: PLC0415 - where it is installed
    from securesystemslib.signer._key import SSlibKey  # noqa: PLC0415 - the same

    private = keys.generate(algorithm)
    key = SSlibKey.from_crypto(private.public_key())

    def read(text: str) -> Any:
        document = json.loads(text)
        document["signatures"] = [{"keyid": key.keyid, **one} for one in document["signatures"]]
        return dsse.Envelope.from_dict(document)

    text = exports.export("in-toto-svr", source(), key=private).content
    envelope = read(text)
    assert envelope.verify([key], 1).keys() == {key.keyid}
    assert json.loads(envelope.payload)["predicate"]["properties"][1] == "CERTKIT_TIER_3"
    tampered = read(text)
    tampered.payload = envelope.payload.replace(b"TIER_3", b"TIER_4")
    with pytest.raises(VerificationError):
        tampered.verify([key], 1)


@pytest.mark.parametrize(("algorithm", "alg"), [("ed25519", "EdDSA"), ("p256", "ES256")])
def test_the_a2a_sdk_verifies_a_signed_agent_card(algorithm: keys.Algorithm, alg: str) -> None:
    signing = pytest.importorskip(
        "a2a.utils.signing", reason="a2a-sdk is not installed; 'make interop' does it"
    )
    from a2a.types import AgentCard  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - as above
    from google.protobuf.json_format import (  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 - as above
        ParseDict,
    )

    private = keys.generate(algorithm)
    text = exports.export("a2a", source(), key=private, card=CARD).content
    card = ParseDict(json.loads(text), AgentCard())
    pem = keys.public_pem(private.public_key())
    verify = signing.create_signature_verifier(lambda _kid, _jku: pem, [alg])
    verify(card)  # does not raise
    card.name = "another"
    with pytest.raises(signing.InvalidSignaturesError):
        verify(card)
