"""The file ``passport.json``: a Sigstore Bundle v0.3 around one DSSE envelope, signed with a plain key.

Only the shape is known here. Nothing in the file is trusted for being in it: the hint selects among keys
that the verifier already trusts, log entries and timestamps are carried, and unknown keys are refused, as
other readers of the format refuse them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit import canonical
from certkit.errors import InputError
from certkit.passport import dsse, keys

if TYPE_CHECKING:
    from certkit.passport.keys import PrivateKey

MEDIA_TYPE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"

_CERTIFICATES: Final = {"certificate", "x509CertificateChain"}
_MATERIAL: Final = {"publicKey", *_CERTIFICATES, "tlogEntries", "timestampVerificationData"}


class Sealed(Struct, frozen=True, kw_only=True):
    """A passport file taken apart. Nothing in it is verified.

    `hint` is what the file says about its key, None where it says nothing. `keyless` tells that a
    certificate stands in the key's place; `timestamps` and `log_entries` count what else is attached.
    `envelope` is the JSON of the envelope.
    """

    envelope: Any
    hint: str | None
    keyless: bool
    timestamps: int
    log_entries: int


def seal(payload: bytes, key: PrivateKey) -> dict[str, Any]:
    """Return the bundle of a signed payload as JSON values."""
    return {
        "mediaType": MEDIA_TYPE,
        "verificationMaterial": {"publicKey": {"hint": keys.hint(key.public_key())}, "tlogEntries": []},
        "dsseEnvelope": dsse.sign(PAYLOAD_TYPE, payload, key),
    }


def parse(data: bytes) -> Sealed:
    """Return a passport file taken apart.

    Raises `InputError` with a ``json.*`` code or ``passport.form``.
    """
    document = canonical.loads(data)
    if not isinstance(document, dict):
        raise _form("expected an object")
    if document.keys() != {"mediaType", "verificationMaterial", "dsseEnvelope"}:
        raise _form("expected mediaType, verificationMaterial and dsseEnvelope, and nothing else")
    if document["mediaType"] != MEDIA_TYPE:
        raise _form(f"mediaType is not {MEDIA_TYPE}")
    material = document["verificationMaterial"]
    if not isinstance(material, dict) or material.keys() - _MATERIAL:
        raise _form("verificationMaterial is not that of a Sigstore bundle v0.3")
    if len(material.keys() & {"publicKey", *_CERTIFICATES}) != 1:
        raise _form("verificationMaterial has not exactly one of publicKey and certificate")
    return Sealed(
        envelope=document["dsseEnvelope"],
        hint=_hint(material),
        keyless="publicKey" not in material,
        timestamps=_timestamps(material),
        log_entries=len(_list(material.get("tlogEntries", []), "tlogEntries")),
    )


def _hint(material: dict[str, Any]) -> str | None:
    key = material.get("publicKey", {})
    if not isinstance(key, dict) or key.keys() - {"hint"}:
        raise _form("publicKey holds more than a hint", hint="a key inside a passport is never trusted")
    hint = key.get("hint", "")
    if not isinstance(hint, str):
        raise _form("the hint is not text")
    return hint or None


def _timestamps(material: dict[str, Any]) -> int:
    data = material.get("timestampVerificationData", {})
    if not isinstance(data, dict) or data.keys() - {"rfc3161Timestamps"}:
        raise _form("timestampVerificationData holds more than rfc3161Timestamps")
    return len(_list(data.get("rfc3161Timestamps", []), "rfc3161Timestamps"))


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise _form(f"{name} is not a list")
    return value


def _form(message: str, hint: str | None = None) -> InputError:
    return InputError("passport.form", message, hint=hint)
