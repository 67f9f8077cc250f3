"""The file ``passport.json``: a Sigstore Bundle v0.3 around one DSSE envelope.

Only the shape is known here. Nothing in the file is trusted for being in it: the hint or the certificate
selects among those that the verifier already trusts, log entries and timestamps are carried, and unknown
keys are refused, as other readers of the format refuse them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from certkit import canonical
from certkit.errors import InputError
from certkit.passport import dsse, keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.canonical import Digest
    from certkit.passport.keys import PrivateKey

MEDIA_TYPE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"

_CERTIFICATES: Final = {"certificate", "x509CertificateChain"}
_MATERIAL: Final = {"publicKey", *_CERTIFICATES, "tlogEntries", "timestampVerificationData"}


class Signer(Protocol):
    """Something that signs a payload, other than a key: see `certkit.passport.keyless`."""

    @property
    def key_id(self) -> Digest:
        """The id of the public key that the signature is verified with."""

    def seal(self, payload: bytes) -> dict[str, Any]:
        """Return the bundle of a signed payload as JSON values."""


class Material(Struct, frozen=True, kw_only=True):
    """What is attached to a signature. Nothing in it is verified, and nothing is trusted for being here.

    `hint` is what the file says about its key, None where it says nothing; `certificate` stands in the
    key's place, in DER. `keyless` tells that there is no key: with no `certificate` either, there is a
    chain, which bundles v0.3 do without. `document` is the JSON of all of it.
    """

    document: dict[str, Any]
    hint: str | None
    keyless: bool
    certificate: bytes | None
    timestamps: tuple[bytes, ...]
    log_entries: tuple[dict[str, Any], ...]


class Sealed(Struct, frozen=True, kw_only=True):
    """A passport file taken apart. Nothing in it is verified; `envelope` is the envelope's JSON."""

    envelope: Any
    material: Material


def seal(
    payload: bytes, key: PrivateKey, *, timestamp: Callable[[bytes], bytes] | None = None
) -> dict[str, Any]:
    """Return the bundle of a signed payload as JSON values.

    `timestamp` makes an RFC 3161 token of the signature, which is then attached.
    """
    envelope = dsse.sign(PAYLOAD_TYPE, payload, key)
    material: dict[str, Any] = {"publicKey": {"hint": keys.hint(key.public_key())}, "tlogEntries": []}
    if timestamp is not None:
        token = timestamp(dsse.parse(envelope).signature)
        material["timestampVerificationData"] = {
            "rfc3161Timestamps": [{"signedTimestamp": dsse.encode(token)}]
        }
    return bundle(material, envelope)


def bundle(material: dict[str, Any], envelope: dict[str, Any]) -> dict[str, Any]:
    """Return the bundle of an envelope and what is attached to it, as JSON values."""
    return {"mediaType": MEDIA_TYPE, "verificationMaterial": material, "dsseEnvelope": envelope}


def parse(data: bytes) -> Sealed:
    """Return a passport file taken apart.

    Raises `InputError` with a ``json.*`` code, ``passport.form`` or ``dsse.base64``.
    """
    document = canonical.loads(data)
    if not isinstance(document, dict):
        raise _form("expected an object")
    if document.keys() != {"mediaType", "verificationMaterial", "dsseEnvelope"}:
        raise _form("expected mediaType, verificationMaterial and dsseEnvelope, and nothing else")
    if document["mediaType"] != MEDIA_TYPE:
        raise _form(f"mediaType is not {MEDIA_TYPE}")
    return Sealed(
        envelope=document["dsseEnvelope"], material=parse_material(document["verificationMaterial"])
    )


def parse_material(document: Any) -> Material:
    """Return the material of a bundle taken apart; raises as `parse` does."""
    if not isinstance(document, dict) or document.keys() - _MATERIAL:
        raise _form("verificationMaterial is not that of a Sigstore bundle v0.3")
    if len(document.keys() & {"publicKey", *_CERTIFICATES}) != 1:
        raise _form("verificationMaterial has not exactly one of publicKey and certificate")
    entries = _list(document.get("tlogEntries", []), "tlogEntries")
    if not all(isinstance(entry, dict) for entry in entries):
        raise _form("an entry of tlogEntries is not an object")
    return Material(
        document=document,
        hint=_hint(document),
        keyless="publicKey" not in document,
        certificate=_certificate(document["certificate"]) if "certificate" in document else None,
        timestamps=_timestamps(document),
        log_entries=tuple(entries),
    )


def _certificate(document: Any) -> bytes:
    if not isinstance(document, dict) or document.keys() != {"rawBytes"}:
        raise _form("certificate holds something else than rawBytes")
    return dsse.decode(document["rawBytes"], "rawBytes")


def _hint(material: dict[str, Any]) -> str | None:
    key = material.get("publicKey", {})
    if not isinstance(key, dict) or key.keys() - {"hint"}:
        raise _form("publicKey holds more than a hint", hint="a key inside a passport is never trusted")
    hint = key.get("hint", "")
    if not isinstance(hint, str):
        raise _form("the hint is not text")
    return hint or None


def _timestamps(material: dict[str, Any]) -> tuple[bytes, ...]:
    data = material.get("timestampVerificationData", {})
    if not isinstance(data, dict) or data.keys() - {"rfc3161Timestamps"}:
        raise _form("timestampVerificationData holds more than rfc3161Timestamps")
    tokens = _list(data.get("rfc3161Timestamps", []), "rfc3161Timestamps")
    if not all(isinstance(token, dict) and token.keys() == {"signedTimestamp"} for token in tokens):
        raise _form("a timestamp holds something else than signedTimestamp")
    return tuple(dsse.decode(token["signedTimestamp"], "signedTimestamp") for token in tokens)


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise _form(f"{name} is not a list")
    return value


def _form(message: str, hint: str | None = None) -> InputError:
    return InputError("passport.form", message, hint=hint)
