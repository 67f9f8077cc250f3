"""What holds of every passport and every base64 text, not only of those that someone thought of."""

from __future__ import annotations

import base64
import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certkit.ground import canonical
from certkit.ground.errors import InputError, NegativeError
from certkit.passport import dsse, keys
from certkit.passport.verification import verify
from tests.support.making import KEY, NOW, issued, trust
from tests.support.signers import ALGORITHMS, signed_payload

if TYPE_CHECKING:
    from certkit.passport.opening import Verification

GOOD = issued()
DATA = canonical.line(canonical.loads(GOOD.to_json()))
POLICY = trust()
LATER = NOW + timedelta(days=1)
SIGNATURE = canonical.loads(DATA)["dsseEnvelope"]["signatures"][0]["sig"].encode()


def verified(data: bytes) -> Verification:
    return verify(data, trust=POLICY, at=LATER)


def test_the_good_twin_is_verified() -> None:
    assert verified(DATA).verdict == "verified"


@settings(max_examples=150, deadline=None)
@given(at=st.integers(0, len(DATA) - 1), flip=st.integers(1, 255))
def test_any_single_changed_byte_is_refused_or_changes_neither_id_nor_claim(at: int, flip: int) -> None:
    found = verified(DATA[:at] + bytes([DATA[at] ^ flip]) + DATA[at + 1 :])
    if found.verdict == "verified":
        assert found.passport_id == GOOD.passport_id
        assert found.claim == verified(DATA).claim
    else:
        assert found.verdict == "rejected"


@settings(max_examples=100, deadline=None)
@given(at=st.integers(0, len(SIGNATURE) - 1), flip=st.integers(1, 255))
def test_any_changed_byte_of_the_signature_is_refused(at: int, flip: int) -> None:
    changed = SIGNATURE[:at] + bytes([SIGNATURE[at] ^ flip]) + SIGNATURE[at + 1 :]
    data = DATA.replace(SIGNATURE, changed)
    assert data != DATA
    assert verified(data).verdict == "rejected"


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_no_bytes_make_verification_raise(data: bytes) -> None:
    assert verified(data).verdict == "rejected"


@settings(deadline=None)
@given(payload=st.binary(max_size=200))
def test_no_signed_payload_makes_verification_raise(payload: bytes) -> None:
    from certkit.passport import sealed  # noqa: PLC0415 - only here

    found = verified(canonical.line(sealed.seal(payload, KEY)))
    assert [step.id for step in found.steps if step.status == "failed"] == ["types"]


@given(first=st.tuples(st.text(), st.binary()), second=st.tuples(st.text(), st.binary()))
def test_the_encoding_that_is_signed_is_injective(
    first: tuple[str, bytes], second: tuple[str, bytes]
) -> None:
    with contextlib.suppress(UnicodeEncodeError):
        assert (dsse.pae(*first) == dsse.pae(*second)) == (first == second)


@given(st.binary())
def test_base64_is_read_in_both_alphabets(data: bytes) -> None:
    assert dsse.decode(base64.b64encode(data).decode(), "x") == data
    assert dsse.decode(base64.urlsafe_b64encode(data).decode(), "x") == data


@given(st.text(alphabet="ABw/+-_=é \n", max_size=12))
def test_base64_that_is_read_is_the_one_text_of_its_bytes(text: str) -> None:
    with contextlib.suppress(InputError):
        data = dsse.decode(text, "x")
        assert text.encode() in {base64.b64encode(data), base64.urlsafe_b64encode(data)}


@settings(max_examples=50, deadline=None)
@given(
    payload=st.binary(),
    kind=st.text(st.characters(codec="utf-8")),
    algorithm=st.sampled_from(ALGORITHMS),
)
def test_what_is_signed_verifies_with_its_key_alone(
    payload: bytes, kind: str, algorithm: keys.Algorithm
) -> None:
    key, other = keys.generate(algorithm), keys.generate(algorithm)
    envelope = dsse.sign(kind, payload, key)
    assert signed_payload(envelope, key.public_key(), payload_type=kind) == payload
    with pytest.raises(NegativeError):
        signed_payload(envelope, other.public_key())
