"""Any Sigstore bundle about a file: a plain signature of it, or an in-toto attestation that names its digest.

    found = verify(data, artifact, key=key)                                # by a key that the caller trusts
    found = verify(data, artifact, identity=(who, where), root=root)       # or by somebody who signed in
    found.signer, found.time

Passports have steps and a policy of their own (`certkit.passport.verify`); this is for the public
conformance suite, and shows what the parts under both make of what it holds. The form is read as strictly as
Sigstore's clients read it: a known version, nothing unknown, either a signature or an envelope, either a key
or a certificate. Beside a key, log entries have their form in any case, and with timestamps are verified
where a root is given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from msgspec import Struct

from certkit.ground import canonical
from certkit.ground.errors import InputError, NegativeError, UsageError
from certkit.passport import envelope as sealed
from certkit.passport import keys, trusted_root
from certkit.passport.envelope import VerificationMaterial
from tests.interop import entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.passport.keyless import Check
    from certkit.passport.keys import PublicKey

_VERSIONS: Final = {
    "application/vnd.dev.sigstore.bundle+json;version=0.1": 1,
    "application/vnd.dev.sigstore.bundle+json;version=0.2": 2,
    "application/vnd.dev.sigstore.bundle+json;version=0.3": 3,
    sealed.MEDIA_TYPE: 3,
}
_HASHES: Final = {"SHA2_256": hashlib.sha256, "SHA2_384": hashlib.sha384, "SHA2_512": hashlib.sha512}
MAX_VALUES: Final = 10_000
"""Values in a bundle; thirty log entries with their proofs have a third of it."""
_FORM: Final = "passport.form"
_OTHER: Final = "passport.other-evidence"


class Artifact(Struct, frozen=True, kw_only=True):
    """The file that a bundle must be about: its SHA-256 in hexadecimal, and its bytes where there are any."""

    sha256: str
    read: Callable[[], bytes] | None = None


class Found(Struct, frozen=True, kw_only=True):
    """Who signed, and when, where that is proven."""

    signer: str
    time: datetime | None = None


class _Parsed(Struct, frozen=True, kw_only=True):
    document: dict[str, Any]
    material: VerificationMaterial
    signature: bytes
    envelope: sealed.Envelope | None


def verify(
    data: bytes,
    artifact: Artifact,
    *,
    key: PublicKey | None = None,
    identity: tuple[str, str] | None = None,
    root: dict[str, Any] | None = None,
) -> Found:
    """Verify that a bundle is about `artifact` and signed by `key`, or by `identity` under `root`.

    `identity` is the name in the certificate and the OIDC issuer; `root` is a checked trusted root, by which
    what is attached to a key's signature is verified too. Raises `CertkitError` where it is not:
    ``dsse.*``, ``json.*``, ``passport.*`` or ``tlog.*`` codes.
    """
    parsed = _parse(data)
    if parsed.envelope is not None:
        _names(parsed.envelope.payload, artifact)
    if key is not None:
        if parsed.material.keyless:
            raise NegativeError("passport.certificate", "signed with a certificate, and a key was given")
        _by_key(parsed, artifact, key)
        times = () if root is None else entries.witnessed(parsed.material, parsed.signature, root)
        return Found(signer=keys.key_id(key), time=times[0] if times else None)
    if identity is None or root is None:
        raise UsageError("usage.option", "neither a key nor an identity was given")
    if not parsed.material.keyless:
        raise NegativeError("passport.certificate", "signed with a key, and an identity was given")
    return _by_certificate(parsed, artifact, identity, root)


def _parse(data: bytes) -> _Parsed:
    document = canonical.loads(data)
    if not isinstance(document, dict) or "verificationMaterial" not in document:
        raise InputError(_FORM, "expected an object with verificationMaterial")
    _check_form(document)
    material = _material(document["verificationMaterial"])
    if "dsseEnvelope" in document:
        envelope = sealed.parse_envelope(document["dsseEnvelope"], payload_type=sealed.PAYLOAD_TYPE)
        return _Parsed(document=document, material=material, signature=envelope.signature, envelope=envelope)
    signature = sealed.decode(document["messageSignature"]["signature"], "signature")
    return _Parsed(document=document, material=material, signature=signature, envelope=None)


def _check_form(document: dict[str, Any]) -> None:
    """Raise `InputError` unless a bundle has the form of its version, with nothing unknown in it.

    The models are those that sigstore-python reads bundles with. A list that is empty may be left out, as
    protobuf leaves it out.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - passports are read without it
    from sigstore_models.bundle.v1 import Bundle  # noqa: PLC0415 - the same

    version = _VERSIONS.get(str(document.get("mediaType")))
    if version is None:
        found = str(document.get("mediaType"))[:80]
        raise InputError(_FORM, f"expected the mediaType of a bundle v0.1 to v0.3, found {found!r}")
    if sum(1 for _ in islice(_values(document), MAX_VALUES + 1)) > MAX_VALUES:
        raise InputError(_FORM, f"more than {MAX_VALUES:,} values")  # each can become an error of the models
    if odd := next((key for value in _values(document) for key in _keys(value) if "_" in key), None):
        raise InputError(_FORM, f"unknown key {odd[:80]!r}")  # the models know it as another spelling
    if ("messageSignature" in document) == ("dsseEnvelope" in document):
        raise InputError(_FORM, "expected either messageSignature or dsseEnvelope")
    material = document["verificationMaterial"]
    if isinstance(material, dict):
        material = {"tlogEntries": [], **material}
    try:
        found_in = Bundle.from_json(canonical.line({**document, "verificationMaterial": material}))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(_FORM, f"{where[:200] or 'the bundle'}: {first['msg'][:200]}") from None
    for entry in found_in.verification_material.tlog_entries:
        if entry.inclusion_proof.checkpoint is None:
            raise InputError(_FORM, "a log entry has no checkpoint")
        if version == 1 and entry.inclusion_promise is None:
            raise InputError(_FORM, "a log entry of a bundle v0.1 has no inclusionPromise")


def _values(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _values(one)


def _keys(value: Any) -> Iterator[str]:
    return iter(value if isinstance(value, dict) else ())


def _names(payload: bytes, artifact: Artifact) -> None:
    """Raise `NegativeError` unless an in-toto statement has the artifact among its subjects."""
    statement = canonical.loads(payload)
    subjects = statement.get("subject") if isinstance(statement, dict) else None
    digests = [
        one["digest"].get("sha256")
        for one in (subjects if isinstance(subjects, list) else [])
        if isinstance(one, dict) and isinstance(one.get("digest"), dict)
    ]
    if artifact.sha256 not in digests:
        raise NegativeError(_OTHER, f"no subject of the statement has the digest sha256:{artifact.sha256}")


def _by_key(parsed: _Parsed, artifact: Artifact, key: PublicKey) -> None:
    if parsed.envelope is not None:
        sealed.check(parsed.envelope, key)
        return
    _check_digest(parsed.document["messageSignature"].get("messageDigest"), artifact)
    digest = bytes.fromhex(artifact.sha256)
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name == "secp256r1":
        try:
            key.verify(parsed.signature, digest, ec.ECDSA(utils.Prehashed(hashes.SHA256())))
        except InvalidSignature:
            raise NegativeError("dsse.signature", "the signature is not the key's over this file") from None
        return
    if artifact.read is None:
        raise UsageError("usage.option", "this key signs files and not their SHA-256", hint="name the file")
    if not sealed.is_signature(parsed.signature, artifact.read(), key):
        raise NegativeError("dsse.signature", "the signature is not the key's over this file")


def _check_digest(stated: dict[str, str] | None, artifact: Artifact) -> None:
    """Raise `NegativeError` where the bundle states another digest than the artifact's."""
    if stated is None:
        return
    name, digest = stated["algorithm"], bytes.fromhex(artifact.sha256)
    if name not in _HASHES:
        raise InputError(_FORM, f"messageDigest is {name}, expected one of {', '.join(_HASHES)}")
    if name != "SHA2_256":
        if artifact.read is None:
            raise UsageError("usage.option", f"the bundle states the file's {name}", hint="name the file")
        digest = _HASHES[name](artifact.read()).digest()
    if sealed.decode(stated["digest"], "digest") != digest:
        raise NegativeError(_OTHER, "the bundle states another digest than the file's")


def _by_certificate(
    parsed: _Parsed, artifact: Artifact, identity: tuple[str, str], root: dict[str, Any]
) -> Found:
    from certkit.passport import keyless  # noqa: PLC0415 - only where a certificate is met

    trusted_root.check(root, "trusted root")
    named = keyless.read(_leaf(parsed.material))
    if not named.matches(*identity):
        raise NegativeError("passport.untrusted-issuer", f"signed in as {named}, not {' at '.join(identity)}")
    certified = keyless.Certified(
        parsed.document, parsed.material, parsed.signature, root, _content(parsed, artifact)
    )
    certified.verify()
    if not certified.in_office():
        raise NegativeError(
            "passport.root-window", "signed when a part of the trusted root was not in office"
        )
    return Found(signer=str(named), time=certified.time)


def _material(document: Any) -> VerificationMaterial:
    try:
        material = msgspec.convert(document, sealed.VerificationMaterial)
    except msgspec.ValidationError as error:
        raise InputError(_FORM, str(error)) from None
    if material.signers != 1:
        raise InputError(_FORM, "not exactly one of key, certificate and chain")
    return material


def _leaf(material: VerificationMaterial) -> bytes:
    """Return the certificate that signed; bundles before v0.3 have it first in a chain."""
    if material.certificate:
        return material.certificate.raw_bytes
    chain = material.x509_certificate_chain
    certificates = chain.get("certificates") if isinstance(chain, dict) else None
    if not isinstance(certificates, list) or not certificates or not isinstance(certificates[0], dict):
        raise InputError(_FORM, "the chain of certificates is empty")
    return sealed.decode(certificates[0].get("rawBytes"), "rawBytes")


def _content(parsed: _Parsed, artifact: Artifact) -> Check:
    if parsed.envelope is not None:
        return lambda verifier, bundle, policy: verifier.verify_dsse(bundle, policy)
    from sigstore.hashes import Hashed  # noqa: PLC0415 - only where a certificate is met
    from sigstore_models.common.v1 import HashAlgorithm  # noqa: PLC0415 - the same

    hashed = Hashed(algorithm=HashAlgorithm.SHA2_256, digest=bytes.fromhex(artifact.sha256))
    return lambda verifier, bundle, policy: verifier.verify_artifact(hashed, bundle, policy)
