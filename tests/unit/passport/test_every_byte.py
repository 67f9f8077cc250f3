"""One changed byte of a passport: it is refused, or nothing that it says has changed.

    CERTKIT_SLOW=1 python -m pytest tests/unit/passport/test_every_byte.py     # all of every kind, a minute

Without that variable a fixed stride is taken, the longer the more a verification costs, and all of the
signature.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from certkit.ground import canonical
from certkit.passport import envelope as sealed
from certkit.passport.trust import Trust
from certkit.passport.trust import parse as parse_trust
from certkit.passport.verify import verify
from tests.support import passport_parts as maker
from tests.support.virtual_sigstore import Sigstore, fixed_key

if TYPE_CHECKING:
    from collections.abc import Iterator

AT: Final = datetime(2026, 2, 2, tzinfo=UTC)
INSTANCE: Final = Sigstore.fixed(AT - timedelta(days=1), 1)
WHO, WHERE = "a@example.com", "https://accounts.example.com"
KEYLESS: Final = "keyless"


def signed_in() -> tuple[maker.Json, maker.Json]:
    signer = INSTANCE.signer(WHO, WHERE, key=fixed_key(11))
    policy = {
        "schema": "urn:certkit:trust:v1",
        "issuers": [{"name": "Lab", "identities": [{"identity": WHO, "issuer": WHERE}]}],
        "trusted_root": INSTANCE.trusted_root(),
    }
    return signer.attest(maker.compact(maker.statement(signer.key))), policy


MADE: Final[dict[str, tuple[maker.Json, maker.Json]]] = {
    "Ed25519": (maker.good(), maker.trust()),
    "ECDSA P-256": (maker.good(maker.P256), maker.trust(maker.P256)),
    "ECDSA P-384": (maker.good(maker.P384), maker.trust(maker.P384)),
    KEYLESS: signed_in(),
}
FAST: Final = {"Ed25519": 7, "ECDSA P-256": 17, "ECDSA P-384": 29, KEYLESS: 97}
STRIDE: Final = dict.fromkeys(MADE, 1) | ({} if os.environ.get("CERTKIT_SLOW") else FAST)
"""Primes: what stands in a file in groups of two or four is met at every place of its group."""


def changes(byte: int) -> set[int]:
    """Return other bytes: a neighbour, the other case, white space, what begins nothing in UTF-8, none."""
    return {byte ^ 1, byte ^ 0x20, 0x20, 0xFF, 0x00} - {byte}


def places(data: bytes, signature: range, stride: int) -> Iterator[tuple[int, int]]:
    """Yield places and what to put there: at every stride, and everywhere in the signature."""
    for place in sorted({*range(0, len(data), stride), *signature}):
        yield from ((place, byte) for byte in sorted(changes(data[place])))


def place_of(data: bytes, document: maker.Json) -> range:
    text = document["dsseEnvelope"]["signatures"][0]["sig"].encode()
    at = data.index(b'"sig":"' + text) + len(b'"sig":"')
    return range(at, at + len(text))


def told(data: bytes, policy: Trust) -> tuple[Any, ...]:
    found = verify(data, trust=policy, at=AT)
    claim = found.to_dict().get("claim")
    return found.verdict, found.passport_id, claim


def signature_of(data: bytes) -> bytes:
    return sealed.decode(canonical.loads(data)["dsseEnvelope"]["signatures"][0]["sig"], "sig")


@pytest.mark.parametrize("kind", MADE)
def test_a_changed_byte_is_refused_or_changes_nothing_that_is_said(kind: str) -> None:
    document, trust = MADE[kind]
    policy = parse_trust(canonical.line(trust), "trust.json")
    data = maker.compact(document)
    good, signature = told(data, policy), place_of(data, document)
    assert good[0] == "verified"
    tried = refused = 0
    for place, byte in places(data, signature, STRIDE[kind]):
        changed = data[:place] + bytes([byte]) + data[place + 1 :]
        found = told(changed, policy)
        tried += 1
        refused += found[0] == "rejected"
        if found[0] != "rejected":
            assert found == good, (place, byte)
            if place in signature:
                assert signature_of(changed) == signature_of(data), (place, byte)
    assert tried > len(signature)
    # what may change is a hint, which the file can do without, and white space that becomes other white space
    assert refused > 0.95 * tried


@pytest.mark.parametrize("kind", MADE)
def test_no_byte_of_the_payload_can_change(kind: str) -> None:
    document, trust = MADE[kind]
    policy = parse_trust(canonical.line(trust), "trust.json")
    payload = sealed.decode(document["dsseEnvelope"]["payload"], "payload")
    for place in range(0, len(payload), STRIDE[kind]):
        changed = payload[:place] + bytes([payload[place] ^ 1]) + payload[place + 1 :]
        envelope = {**document["dsseEnvelope"], "payload": sealed.encode(changed)}
        found = told(canonical.line({**document, "dsseEnvelope": envelope}), policy)
        assert (found[0], found[2]) == ("rejected", None), place
