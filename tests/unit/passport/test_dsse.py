"""The envelope: published known answers, and every way in which a form can be wrong."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa, utils
from hypothesis import given
from hypothesis import strategies as any_of

from certkit.ground import canonical
from certkit.ground.errors import CertkitError, NegativeError
from certkit.passport import envelope as sealed
from certkit.passport import keys
from tests.support.signers import ALGORITHMS, signed_payload

if TYPE_CHECKING:
    from pathlib import Path

KIND = "application/example"
PAYLOAD = b'{"a": 1}'


@pytest.fixture
def answers(shared: Path) -> dict[str, Any]:
    document = canonical.loads((shared / "vectors" / "known-answers.json").read_bytes())
    found: dict[str, Any] = document["dsse"]
    return found


def test_pae_of_the_published_example(answers: dict[str, Any]) -> None:
    assert sealed.pae(answers["payload_type"], answers["payload"].encode()) == answers["pae"].encode()


def test_signature_of_the_published_example(answers: dict[str, Any]) -> None:
    public = ec.EllipticCurvePublicNumbers(
        int(answers["p256_x"]), int(answers["p256_y"]), ec.SECP256R1()
    ).public_key()
    raw = base64.b64decode(answers["signature_raw_r_s_base64"])
    der = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    envelope = {
        "payload": base64.b64encode(answers["payload"].encode()).decode(),
        "payloadType": answers["payload_type"],
        "signatures": [{"sig": base64.b64encode(der).decode()}],
    }
    assert signed_payload(envelope, public) == b"hello world"
    with pytest.raises(NegativeError) as caught:
        signed_payload(envelope | {"payload": base64.b64encode(b"hello World").decode()}, public)
    assert caught.value.code == "dsse.signature"


def test_pae_counts_bytes_and_not_letters() -> None:
    assert sealed.pae("ä", b"") == b"DSSEv1 2 \xc3\xa4 0 "


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_signed_verifies_and_nothing_else(algorithm: keys.Algorithm) -> None:
    key = keys.generate(algorithm)
    envelope = sealed.sign(KIND, PAYLOAD, key)
    assert envelope.keys() == {"payload", "payloadType", "signatures"}
    assert [one.keys() for one in envelope["signatures"]] == [{"sig"}]
    assert signed_payload(envelope, key.public_key(), payload_type=KIND) == PAYLOAD
    for changed, public in (
        (envelope | {"payloadType": KIND + "x"}, key.public_key()),
        (envelope | {"payload": sealed.encode(PAYLOAD + b" ")}, key.public_key()),
        (envelope, keys.generate(algorithm).public_key()),
        (envelope, keys.generate("p256" if algorithm == "ed25519" else "ed25519").public_key()),
    ):
        with pytest.raises(NegativeError) as caught:
            signed_payload(changed, public)
        assert caught.value.code == "dsse.signature"


def test_p384_verifies_with_sha384_and_does_not_sign() -> None:
    key = ec.generate_private_key(ec.SECP384R1())
    message = sealed.pae(KIND, PAYLOAD)
    good = key.sign(message, ec.ECDSA(hashes.SHA384()))
    assert sealed.is_signature(good, message, key.public_key())
    assert not sealed.is_signature(key.sign(message, ec.ECDSA(hashes.SHA256())), message, key.public_key())
    with pytest.raises(CertkitError) as caught:
        sealed.sign(KIND, PAYLOAD, key)
    assert caught.value.code == "key.unsupported"


def test_a_key_of_another_type_neither_signs_nor_verifies() -> None:
    key = rsa.generate_private_key(65537, 2048)
    envelope = sealed.sign(KIND, PAYLOAD, keys.generate("ed25519"))
    for attempt in (
        lambda: sealed.sign(KIND, PAYLOAD, key),
        lambda: signed_payload(envelope, key.public_key()),
    ):
        with pytest.raises(CertkitError) as caught:
            attempt()
        assert caught.value.code == "key.unsupported"


GOOD = {"payload": "YQ==", "payloadType": KIND, "signatures": [{"sig": "YQ=="}]}


@pytest.mark.parametrize(
    ("envelope", "code"),
    [
        (None, "dsse.form"),
        ([], "dsse.form"),
        ({}, "dsse.form"),
        (GOOD | {"extra": 1}, "dsse.form"),
        (GOOD | {"payloadType": 1}, "dsse.form"),
        (GOOD | {"payloadType": "text/plain"}, "dsse.payload-type"),
        (GOOD | {"signatures": {}}, "dsse.signatures"),
        (GOOD | {"signatures": []}, "dsse.signatures"),
        (GOOD | {"signatures": [{"sig": "YQ=="}] * 2}, "dsse.signatures"),
        (GOOD | {"signatures": ["YQ=="]}, "dsse.form"),
        (GOOD | {"signatures": [{"keyid": "x"}]}, "dsse.form"),
        (GOOD | {"signatures": [{"sig": 1}]}, "dsse.base64"),
        (GOOD | {"payload": "YQ"}, "dsse.base64"),
        (GOOD | {"payload": "YR=="}, "dsse.base64"),
    ],
)
def test_a_wrong_form_is_refused(envelope: Any, code: str) -> None:
    with pytest.raises(CertkitError) as caught:
        sealed.parse_envelope(envelope, payload_type=KIND)
    assert (caught.value.code, caught.value.exit_code) == (code, 3)


def test_a_keyid_is_ignored() -> None:
    assert (
        sealed.parse_envelope(GOOD | {"signatures": [{"sig": "YQ==", "keyid": "anyone"}]}).signature == b"a"
    )


def decoded(text: str) -> bytes | None:
    """Return what `envelope.decode` makes of a text, None where it refuses."""
    try:
        return sealed.decode(text, "text")
    except CertkitError:
        return None


def canonical_base64(text: str) -> bytes | None:
    """Return the same by the standard library alone: the bytes whose one encoding the text is, or None."""
    for encode, decode in (
        (base64.b64encode, base64.b64decode),
        (base64.urlsafe_b64encode, base64.urlsafe_b64decode),
    ):
        try:
            data = decode(text.encode("ascii"))
        except ValueError:
            continue
        if encode(data) == text.encode():
            return data
    return None


@pytest.mark.parametrize("good", ["", "QQ==", "QUI=", "QUJD", "QUJDQQ==", "-_8=", "+/8=", "QUJDQUI=QUJD"])
def test_one_changed_letter_of_base64_is_refused_or_is_canonical(good: str) -> None:
    letters = [chr(code) for code in (*range(256), 0x100, 0xFF21)]
    for place in range(len(good) + 1):
        for letter in letters:
            for text in (good[:place] + letter + good[place + 1 :], good[:place] + letter + good[place:]):
                assert decoded(text) == canonical_base64(text), repr(text)


@given(any_of.text(alphabet="AQgw+/-_= \n", max_size=9))
def test_base64_is_accepted_where_it_is_the_one_encoding_of_its_bytes(text: str) -> None:
    assert decoded(text) == canonical_base64(text)
