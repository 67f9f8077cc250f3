"""The file ``passport.json``: a Sigstore Bundle v0.3 around one DSSE envelope.

    sealed = parse(data)                  # the form holds; `dsse` reads the envelope, `payload` what it holds
    sealed.material.hint

`PassportFile` is the form, and the published schema is made from it. Nothing in the file is trusted for
being in it: the hint or the certificate selects among the keys and identities that the verifier already
trusts, log entries and timestamps are passed on, and unknown keys are refused, as other readers of the format
refuse them.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from certkit import canonical
from certkit.canonical import Digest
from certkit.errors import InputError
from certkit.passport import dsse, keys
from certkit.passport.keys import PrivateKey

MEDIA_TYPE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"

AnyForm = TypeVar("AnyForm", bound="_Form")
_Base64 = Annotated[str, Meta(extra_json_schema={"contentEncoding": "base64"})]


class _Form(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the file."""


class PublicKey(_Form, frozen=True, kw_only=True):
    """Which key signed; the key itself is never in the file."""

    hint: Annotated[str, Meta(description="base64 of the SHA-256 of the signer's public key (SPKI DER)")] = ""


class Certificate(_Form, frozen=True, kw_only=True):
    """The certificate of a keyless signer, in DER."""

    raw_bytes: _Base64


class Timestamp(_Form, frozen=True, kw_only=True):
    """An RFC 3161 timestamp of the signature, in DER."""

    signed_timestamp: _Base64


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


SIGNERS: Final = ("publicKey", "certificate", "x509CertificateChain")
"""The keys of the material, one of which tells who signed."""


class PassportFile(_Form, frozen=True, kw_only=True):
    """The file; what its envelope must be, `certkit.passport.dsse` tells."""

    media_type: Literal["application/vnd.dev.sigstore.bundle.v0.3+json"]
    verification_material: VerificationMaterial
    dsse_envelope: Any


class Signer(Protocol):
    """A signer of payloads that is not a key: see `certkit.passport.keyless`."""

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
    file = _typed(document, PassportFile)
    return Sealed(
        envelope=file.dsse_envelope,
        material=_material(file.verification_material, document["verificationMaterial"]),
    )


def parse_material(document: Any) -> Material:
    """Return the material of a bundle taken apart; raises as `parse` does."""
    return _material(_typed(document, VerificationMaterial), document)


def _typed(document: Any, kind: type[AnyForm]) -> AnyForm:
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        text = str(error)
        hint = "a key inside a passport is never trusted" if "publicKey" in text else None
        raise _form(f"{text[:1].lower()}{text[1:]}", hint) from None


def _material(typed: VerificationMaterial, document: dict[str, Any]) -> Material:
    if len(document.keys() & set(SIGNERS)) != 1:
        raise _form("verificationMaterial has not exactly one of publicKey and certificate")
    timestamps = typed.timestamp_verification_data.rfc3161_timestamps
    key, certificate = typed.public_key, typed.certificate
    return Material(
        document=document,
        hint=(key.hint or None) if isinstance(key, PublicKey) else None,
        keyless=key is UNSET,
        certificate=dsse.decode(certificate.raw_bytes, "rawBytes")
        if isinstance(certificate, Certificate)
        else None,
        timestamps=tuple(dsse.decode(item.signed_timestamp, "signedTimestamp") for item in timestamps),
        log_entries=typed.tlog_entries,
    )


def _form(message: str, hint: str | None = None) -> InputError:
    return InputError("passport.form", message, hint=hint)
