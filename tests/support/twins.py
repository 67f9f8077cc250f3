"""Passports for foreign clients: good ones, and twins of each that must be refused in the same run."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from certkit.ground import canonical
from certkit.passport import envelope as sealed
from certkit.passport import keys
from tests.support import keyless
from tests.support.passports import issued
from tests.support.virtual_sigstore import b64, compact

if TYPE_CHECKING:
    from collections.abc import Callable

GOOD: Final = "good"
ANOTHER_HINT: Final = "hint at another key"


class ByKey(NamedTuple):
    """A public key, a passport and its twins by what is wrong with them, and the digest of the agent."""

    pem: str
    files: dict[str, bytes]
    agent: str


def by_key(algorithm: keys.Algorithm) -> ByKey:
    key, stranger = keys.generate(algorithm), keys.generate(algorithm)
    found = issued(key=key)
    data, foreign = found.to_json(), sealed.seal(found.payload, stranger)
    signatures = foreign["dsseEnvelope"]["signatures"]
    better = found.payload.replace(b'"tier":2', b'"tier":3')
    assert better != found.payload
    files = {
        GOOD: data,
        "payload": _enveloped(data, lambda e: e.update(payload=b64(better))),
        "payloadType": _enveloped(data, lambda e: e.update(payloadType="application/json")),
        "signed by another key": _enveloped(data, lambda e: e.update(signatures=signatures)),
        "no signature": _enveloped(data, lambda e: e.update(signatures=[])),
        "a second signature": _enveloped(data, lambda e: e["signatures"].extend(signatures)),
        ANOTHER_HINT: _edited(data, lambda d: d.update(verificationMaterial=foreign["verificationMaterial"])),
    }
    return ByKey(keys.public_pem(key.public_key()), files, agent_of(data))


def by_certificate(*, but: set[str]) -> dict[str, bytes]:
    """Return a keyless passport and its twins, but for those that a client does not tell from it."""
    bundles = {
        GOOD: keyless.GOOD,
        **{name: keyless.signed(signer) for name, signer in keyless.CERTIFICATES.items()},
        **keyless.ENTRIES,
    }
    assert but <= bundles.keys()
    return {name: compact(document) for name, document in bundles.items() if name not in but}


def agent_of(passport: bytes) -> str:
    """Return the SHA-256 in hexadecimal that the passport's first subject has."""
    statement = canonical.loads(base64.b64decode(canonical.loads(passport)["dsseEnvelope"]["payload"]))
    digest = statement["subject"][0]["digest"]["sha256"]
    assert isinstance(digest, str)
    return digest


def _edited(data: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    document = canonical.loads(data)
    change(document)
    return canonical.line(document)


def _enveloped(data: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    return _edited(data, lambda document: change(document["dsseEnvelope"]))
