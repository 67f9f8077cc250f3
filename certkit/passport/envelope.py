"""The file ``passport.json``: a Sigstore Bundle v0.3 around one DSSE envelope.

    file = parse_file(data)                                # the form holds; nothing is verified
    envelope = parse_envelope(file.dsse_envelope, payload_type=PAYLOAD_TYPE)
    is_signature(envelope.signature, pae(envelope.payload_type, envelope.payload), public_key)

An issuer signs the pre-authentication encoding (PAE) of the payload type and the exact payload bytes, in the
protocol of secure-systems-lab/dsse, version 1; nobody normalises a byte. certkit writes one signature without
a ``keyid``, which is unauthenticated, and ignores one that it reads.

The algorithm follows from the type of the key that the verifier trusts, never from the envelope: Ed25519;
ECDSA P-256 with SHA-256; ECDSA P-384 with SHA-384 (verified, never made). The hint or the certificate in the
file selects among the keys and identities that the verifier already trusts. Unknown members are refused, as
other readers of the format refuse them. Log entries and timestamps are passed on unread.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import UNSET, Meta, Struct, UnsetType

from certkit.ground import canonical
from certkit.ground.errors import InputError, NegativeError, UsageError
from certkit.passport import keys
from certkit.passport.keys import PrivateKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes

MEDIA_TYPE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"

_HASHES: Final = {"secp256r1": hashes.SHA256, "secp384r1": hashes.SHA384}
_SIGNING_CURVE: Final = "secp256r1"
_STANDARD: Final = str.maketrans("-_+/", "+/  ")
"""From the URL-safe alphabet; what belongs to the other one becomes what belongs to none."""


class Envelope(Struct, frozen=True, kw_only=True):
    """An envelope taken apart. Nothing in it is verified."""

    payload_type: str
    payload: bytes
    signature: bytes


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the pre-authentication encoding (PAE) of a payload: the bytes that are signed."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(payload_type: str, payload: bytes, private_key: "PrivateKeyTypes") -> dict[str, Any]:
    """Return the envelope of `payload` as JSON values, signed with an Ed25519 or P-256 key.

    Raises:
        UsageError: ``key.unsupported`` for any other key.
    """
    signature = sign_bytes(pae(payload_type, payload), private_key)
    return {
        "payload": encode(payload),
        "payloadType": payload_type,
        "signatures": [{"sig": encode(signature)}],
    }


def sign_bytes(message: bytes, private_key: "PrivateKeyTypes") -> bytes:
    """Return the signature of `message`: 64 bytes for Ed25519, DER for ECDSA."""
    if isinstance(private_key, Ed25519PrivateKey):
        return private_key.sign(message)
    if isinstance(private_key, ec.EllipticCurvePrivateKey) and private_key.curve.name == _SIGNING_CURVE:
        return private_key.sign(message, ec.ECDSA(_HASHES[_SIGNING_CURVE]()))
    raise UsageError("key.unsupported", "only Ed25519 and ECDSA P-256 keys sign")


def check(envelope: Envelope, public_key: "PublicKeyTypes") -> None:
    """Raise `NegativeError` ``dsse.signature`` unless the signature is `public_key`'s."""
    if not is_signature(envelope.signature, pae(envelope.payload_type, envelope.payload), public_key):
        raise NegativeError("dsse.signature", "the signature does not verify")


def is_signature(signature: bytes, message: bytes, public_key: "PublicKeyTypes") -> bool:
    """Tell whether `signature` is `public_key`'s over `message`, by the algorithm of the key's type."""
    try:
        if isinstance(public_key, Ed25519PublicKey):
            public_key.verify(signature, message)
        elif isinstance(public_key, ec.EllipticCurvePublicKey) and public_key.curve.name in _HASHES:
            public_key.verify(signature, message, ec.ECDSA(_HASHES[public_key.curve.name]()))
        else:
            raise UsageError("key.unsupported", "only Ed25519, ECDSA P-256 and ECDSA P-384 keys verify")
    except InvalidSignature:
        return False
    return True


def parse_envelope(envelope: Any, *, payload_type: str | None = None) -> Envelope:
    """Return an envelope taken apart, its form checked and nothing else.

    Raises:
        InputError: ``dsse.form``, ``dsse.signatures``, ``dsse.payload-type`` or ``dsse.base64``.
    """
    if not isinstance(envelope, dict) or envelope.keys() != {"payload", "payloadType", "signatures"}:
        raise InputError("dsse.form", "expected an object with payload, payloadType and signatures")
    kind, signatures = envelope["payloadType"], envelope["signatures"]
    if not isinstance(kind, str):
        raise InputError("dsse.form", "payloadType is not text")
    if payload_type is not None and kind != payload_type:
        raise InputError("dsse.payload-type", f"expected payloadType {payload_type!r}, found {kind[:80]!r}")
    if not isinstance(signatures, list) or len(signatures) != 1:
        count = len(signatures) if isinstance(signatures, list) else "no list"
        raise InputError("dsse.signatures", f"expected exactly one signature, found {count}")
    signature = signatures[0]
    if not isinstance(signature, dict) or "sig" not in signature or signature.keys() - {"sig", "keyid"}:
        raise InputError("dsse.form", "expected a signature with sig and nothing but an optional keyid")
    return Envelope(
        payload_type=kind,
        payload=decode(envelope["payload"], "payload"),
        signature=decode(signature["sig"], "sig"),
    )


def encode(data: bytes) -> str:
    """Return `data` in standard base64 with padding."""
    text: str = msgspec.to_builtins(data)  # as fast as no other: it must not cost more than the signature
    return text


def decode(text: Any, what: str) -> bytes:
    """Return the bytes of canonical base64, in the standard or the URL-safe alphabet, with padding.

    The one text that encodes the bytes is accepted and no other: no blank, no missing or surplus
    padding, no stray bits, no mixture of alphabets.

    Raises:
        InputError: ``dsse.base64`` naming `what`.
    """
    if isinstance(text, str) and text.isascii():
        urlsafe = "-" in text or "_" in text
        standard = text.translate(_STANDARD) if urlsafe else text
        try:
            # Several times as fast as the standard library, which would take longer than the signature.
            data = msgspec.convert(standard, bytes)
        except msgspec.ValidationError:
            pass
        else:
            if encode(data) == standard:  # stray bits in the last letter are passed over above
                return data
    raise InputError("dsse.base64", f"{what} is not canonical base64")


# The file around the envelope


class _Form(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the file."""


class PublicKeyHint(_Form, frozen=True, kw_only=True):
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

    public_key: PublicKeyHint | UnsetType = UNSET
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
    """The file; its envelope is read by `parse_envelope`."""

    media_type: Literal["application/vnd.dev.sigstore.bundle.v0.3+json"]
    verification_material: VerificationMaterial
    dsse_envelope: Any


def seal(
    payload: bytes, key: PrivateKey, *, timestamp: Callable[[bytes], bytes] | None = None
) -> dict[str, Any]:
    """Return the bundle of a signed payload as JSON values.

    `timestamp` makes an RFC 3161 token of the signature, which is then attached.
    """
    envelope = sign(PAYLOAD_TYPE, payload, key)
    material: dict[str, Any] = {"publicKey": {"hint": keys.hint(key.public_key())}, "tlogEntries": []}
    if timestamp is not None:
        token = timestamp(parse_envelope(envelope).signature)
        material["timestampVerificationData"] = {"rfc3161Timestamps": [{"signedTimestamp": encode(token)}]}
    return bundle(material, envelope)


def bundle(material: dict[str, Any], envelope: dict[str, Any]) -> dict[str, Any]:
    """Return the bundle of an envelope and what is attached to it, as JSON values."""
    return {"mediaType": MEDIA_TYPE, "verificationMaterial": material, "dsseEnvelope": envelope}


def parse_file(data: bytes) -> PassportFile:
    """Return a passport file taken apart; nothing in it is verified.

    Raises:
        InputError: with a ``json.*`` code or ``passport.form``.
    """
    document = canonical.loads(data)
    if not isinstance(document, dict) or document.get("mediaType") != MEDIA_TYPE:
        told = "give the file that 'certkit issue' wrote; what 'certkit assess' writes is no passport"
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
