"""The file ``passport.json``: a Sigstore Bundle v0.3 around one DSSE envelope.

    file = parse(data)                    # the form holds; `dsse` reads the envelope, `payload` what it holds
    file.verification_material.hint

`PassportFile` is the form, and the published schema is made from it. Nothing in the file is trusted for
being in it: the hint or the certificate selects among the keys and identities that the verifier already
trusts, log entries and timestamps are passed on, and unknown keys are refused, as other readers of the format
refuse them.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.passport import dsse, keys
from certkit.passport.keys import PrivateKey

MEDIA_TYPE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"


class _Form(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the file."""


class PublicKey(_Form, frozen=True, kw_only=True):
    """Which key signed; the key itself is never in the file."""

    hint: Annotated[str, Meta(description="base64 of the SHA-256 of the signer's public key (SPKI DER)")] = ""


class Certificate(_Form, frozen=True, kw_only=True):
    """The certificate of a keyless signer, in DER."""

    raw_bytes: bytes


class Timestamp(_Form, frozen=True, kw_only=True):
    """An RFC 3161 timestamp of the signature, in DER."""

    signed_timestamp: bytes


class Timestamps(_Form, frozen=True, kw_only=True):
    """The timestamps of the signature."""

    rfc3161_timestamps: tuple[Timestamp, ...] = ()


class VerificationMaterial(_Form, frozen=True, kw_only=True):
    """What a reader may use to choose a key: a hint, a certificate or a chain; none of it is trusted."""

    public_key: PublicKey | UnsetType = UNSET
    certificate: Certificate | UnsetType = UNSET
    x509_certificate_chain: dict[str, Any] | UnsetType = UNSET
    tlog_entries: tuple[dict[str, Any], ...] = ()
    timestamp_verification_data: Timestamps = Timestamps()

    @property
    def hint(self) -> str | None:
        """The hint at the key, None where there is none."""
        return (self.public_key.hint or None) if self.public_key else None

    @property
    def keyless(self) -> bool:
        """Whether there is no key; with no certificate either, there is a chain, which v0.3 does without."""
        return self.public_key is UNSET

    @property
    def timestamps(self) -> tuple[bytes, ...]:
        """The RFC 3161 tokens."""
        return tuple(item.signed_timestamp for item in self.timestamp_verification_data.rfc3161_timestamps)

    @property
    def signers(self) -> int:
        """How many of the three members are there that tell who signed."""
        named = (self.public_key, self.certificate, self.x509_certificate_chain)
        return sum(member is not UNSET for member in named)


class PassportFile(_Form, frozen=True, kw_only=True):
    """The file; what its envelope must be, `certkit.passport.dsse` tells."""

    media_type: Literal["application/vnd.dev.sigstore.bundle.v0.3+json"]
    verification_material: VerificationMaterial
    dsse_envelope: Any


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


def parse(data: bytes) -> PassportFile:
    """Return a passport file taken apart; nothing in it is verified.

    Raises `InputError` with a ``json.*`` code or ``passport.form``.
    """
    document = canonical.loads(data)
    if not isinstance(document, dict) or document.get("mediaType") != MEDIA_TYPE:
        told = "give the file that 'certkit issue' wrote; the answer of 'certkit assess' is none"
        raise InputError("passport.form", f"not a passport: its mediaType is not {MEDIA_TYPE}", hint=told)
    try:
        file = msgspec.convert(document, PassportFile)
    except msgspec.ValidationError as error:
        text = str(error)
        hint = "a key inside a passport is never trusted" if "publicKey" in text else None
        raise InputError("passport.form", f"{text[:1].lower()}{text[1:]}", hint=hint) from None
    if file.verification_material.signers != 1:
        message = "verificationMaterial has not exactly one of publicKey and certificate"
        raise InputError("passport.form", message)
    return file
