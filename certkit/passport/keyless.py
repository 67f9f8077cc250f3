"""Keyless signatures: a certificate for one signing, from somebody who signed in. The door to `sigstore`.

Verifying, against a trusted root of the verifier's own:

    signer = read(certificate)                      # who it names; nothing is verified yet
    signed = Certified(bundle, material, signature, root, verify_dsse)
    signed.verify()                                 # chain, SCT, log entry, verified time, signature
    signed.time, signed.in_office()                 # when, and whether that lies in the root's windows

Signing, which uses the network and puts the identity into a public log for ever:

    issue(..., key=Keyless.sign_in(token, config))

`sigstore` takes a second to import, so nothing here is imported before a certificate is met. It looks neither
at the payload type and the subject nor at the ends of the windows of the root's authorities and logs, which
`checks` and this module do: it is asked about the whole root, and about what was valid at the signing time.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat import asn1
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec import Struct

from certkit.ground import canonical
from certkit.ground.errors import InputError, NegativeError, UnavailableError, UsageError
from certkit.ground.text import quoted
from certkit.passport import keys, timestamp, trusted_root
from certkit.passport.keys import PublicKey

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sigstore.models import Bundle
    from sigstore.oidc import IdentityToken
    from sigstore.sign import Signer, SigningContext
    from sigstore.verify import Verifier
    from sigstore.verify.policy import VerificationPolicy

    from certkit.ground.canonical import Digest
    from certkit.passport.envelope import VerificationMaterial

    Check = Callable[[Verifier, Bundle, VerificationPolicy], object]

CODE: Final = "passport.certificate"

_PUBLIC: Final = "https://tuf-repo-cdn.sigstore.dev"

_Result = TypeVar("_Result")

# https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md
_ISSUER: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_ISSUER_V2: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
_CURVES: Final = {"secp256r1", "secp384r1"}
_MAX_REASON: Final = 300
# `sigstore` gives a root out of JSON only as a part of this, the rest of which is not looked at.
_CONFIG: Final = {
    "mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json",
    "signingConfig": {"mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json"},
}


def public_root() -> dict[str, Any]:
    """Return the trusted root of Sigstore's public instance, as the installed `sigstore` brought it along.

    It is read where it lies: `ClientTrustConfig.production(offline=True)` would first write a copy.
    """
    path = resources.files("sigstore") / "_store" / quote(_PUBLIC, safe="") / "trusted_root.json"
    root: dict[str, Any] = canonical.loads(path.read_bytes())
    return root


class CertificateName(Struct, frozen=True, kw_only=True):
    """Whom a certificate names: its e-mail addresses and URIs, where they signed in, and the key.

    Nothing of it is verified.
    """

    identities: frozenset[str]
    issuer: str
    key: PublicKey

    def matches(self, identity: str, issuer: str) -> bool:
        """Tell whether the certificate names this identity at this OIDC issuer, letter by letter."""
        return identity in self.identities and issuer == self.issuer

    def __str__(self) -> str:
        return f"{quoted(', '.join(sorted(self.identities)))} at {quoted(self.issuer)}"


def read(certificate: bytes) -> CertificateName:
    """Return whom a certificate in DER names.

    Raises:
        NegativeError: ``passport.certificate``.
    """
    try:
        parsed = x509.load_der_x509_certificate(certificate)
        names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        identities = [
            *names.get_values_for_type(x509.RFC822Name),
            *names.get_values_for_type(x509.UniformResourceIdentifier),
        ]
        issuers = {
            _text(extension) for extension in parsed.extensions if extension.oid in (_ISSUER, _ISSUER_V2)
        }
        key = parsed.public_key()
    except Exception as error:  # noqa: BLE001 - what hostile input makes of a library is not foreseen
        raise NegativeError(CODE, f"the certificate cannot be read: {str(error)[:_MAX_REASON]}") from None
    if len(issuers) != 1:
        raise NegativeError(CODE, "the certificate does not name one OIDC issuer")
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name not in _CURVES:
        raise NegativeError(CODE, "the certificate's key is neither ECDSA P-256 nor P-384")
    return CertificateName(identities=frozenset(identities), issuer=issuers.pop(), key=key)


def _text(extension: x509.Extension[Any]) -> str:
    value: bytes = extension.value.value
    return value.decode() if extension.oid == _ISSUER else str(asn1.decode_der(str, value))


class Certified:
    """A bundle signed with a certificate, to be verified against a trusted root.

    `document` is the bundle's JSON and `material` what is attached in it, with the certificate whose names
    the caller accepted; `signature` is the one in it, `root` the JSON of a checked trusted root. `check` asks
    `sigstore` about the content, with one of the methods of its `Verifier`.
    """

    def __init__(
        self,
        document: dict[str, Any],
        material: VerificationMaterial,
        signature: bytes,
        root: dict[str, Any],
        check: Check,
    ) -> None:
        self._document = canonical.line(document)
        self._check = check
        self._root = root
        seen = timestamp.seen(material.timestamps, signature, root)
        self._times = sorted({*seen, *_integrated(material.tlog_entries)})

    @property
    def time(self) -> datetime:
        """When it was signed: the earliest time that a trusted authority or log proves, after `verify`."""
        return self._times[0]

    def verify(self) -> None:
        """Raise `NegativeError` ``passport.certificate`` unless the signature and all behind it hold.

        The windows of the root's authorities and logs are left to `in_office`.
        """
        if not self._times:
            raise NegativeError(CODE, "no trusted timestamp tells when the certificate was used")
        self._ask(self._root)

    def in_office(self) -> bool:
        """Tell whether it verifies by those members of the root that were in office when it was signed."""
        try:
            self._ask(trusted_root.within(self._root, self._times))
        except NegativeError:
            return False
        return True

    def _ask(self, root: dict[str, Any]) -> None:
        from sigstore.models import Bundle, ClientTrustConfig  # noqa: PLC0415 - a second of import
        from sigstore.verify import Verifier  # noqa: PLC0415 - the same

        config = canonical.line({**_CONFIG, "trustedRoot": trusted_root.timeless(root)}).decode()
        try:
            verifier = Verifier(trusted_root=ClientTrustConfig.from_json(config).trusted_root)
            self._check(verifier, Bundle.from_json(self._document), _Accepted())
        except Exception as error:  # noqa: BLE001 - what hostile input makes of a library is not foreseen
            why = " ".join(str(error).split())[:_MAX_REASON]
            raise NegativeError(CODE, f"the certificate's signature does not verify: {why}") from None


class _Accepted:
    """The policy of `sigstore` about names: the caller has read and accepted those of the certificate."""

    def verify(self, cert: x509.Certificate) -> None:
        pass


def _integrated(entries: Sequence[dict[str, Any]]) -> list[datetime]:
    """Return the times at which logs promised to take an entry in; `sigstore` verifies the promise."""
    try:
        return [
            datetime.fromtimestamp(int(entry["integratedTime"]), UTC)
            for entry in entries
            if entry.get("inclusionPromise") and entry.get("integratedTime")
        ]
    except (ValueError, TypeError, OverflowError, OSError):
        raise NegativeError(CODE, "the time of the log's entry is not one") from None


class Keyless:
    """Signs one payload with a certificate that is asked for when it is first needed."""

    def __init__(self, context: SigningContext, token: IdentityToken) -> None:
        self._context = context
        self._token = token

    @classmethod
    def sign_in(cls, token: str | None, config: bytes | None) -> Keyless:
        """Return a signer for an OIDC identity token, or (None) for the identity of the surroundings.

        `config` is the JSON of a ClientTrustConfig that names the instance; None: Sigstore's public one,
        whose root is then brought up to date over the network.

        Raises:
            UsageError: ``keyless.token`` or ``trust.root``.
            UnavailableError: ``keyless.failed``.
        """
        from sigstore.errors import Error  # noqa: PLC0415 - a second of import
        from sigstore.models import ClientTrustConfig  # noqa: PLC0415 - the same
        from sigstore.oidc import IdentityError, IdentityToken, detect_credential  # noqa: PLC0415 - the same
        from sigstore.sign import SigningContext  # noqa: PLC0415 - the same

        try:
            raw = detect_credential() if token is None else token
            if raw is None:
                raise UsageError(
                    "keyless.token",
                    "nobody is signed in here",
                    hint="give --identity-token-file, or run where an identity is offered, such as a GitHub "
                    "workflow with the permission id-token: write",
                )
            identity = IdentityToken(raw)
        except IdentityError as error:
            raise UsageError("keyless.token", f"the identity token cannot be used: {error}") from None
        try:
            if config is None:  # an empty file must not lead into the public log
                trust = ClientTrustConfig.production()
            else:
                trust = ClientTrustConfig.from_json(config.decode())
            return cls(SigningContext.from_trust_config(trust), identity)
        except (Error, ValueError) as error:
            if config is not None:
                raise InputError("trust.root", f"not a Sigstore ClientTrustConfig: {error}") from None
            raise UnavailableError("keyless.failed", f"Sigstore cannot be reached: {error}") from None

    @cached_property
    def _signer(self) -> Signer:
        from sigstore.sign import Signer  # noqa: PLC0415 - a second of import

        return _reached(lambda: Signer(self._token, self._context))

    @cached_property
    def named(self) -> CertificateName:
        """Whom the certificate names."""
        certificate = _reached(self._signer._signing_cert)  # noqa: SLF001 - see the head of this file
        return read(certificate.public_bytes(Encoding.DER))

    @property
    def key_id(self) -> Digest:
        """The id of the key that the certificate is for."""
        return keys.key_id(self.named.key)

    def seal(self, payload: bytes) -> dict[str, Any]:
        """Return the bundle of a signed payload, which is an in-toto statement, as JSON values."""
        from sigstore.dsse import Statement  # noqa: PLC0415 - a second of import

        bundle = _reached(lambda: self._signer.sign_dsse(Statement(payload)))
        document: dict[str, Any] = canonical.loads(bundle.to_json().encode())
        return document


def _reached(call: Callable[[], _Result]) -> _Result:
    """Call something that talks to Sigstore, whose clients raise what they and their libraries like."""
    try:
        return call()
    except Exception as error:
        raise UnavailableError(
            "keyless.failed",
            f"Sigstore did not sign: {error!r:.300}",
            hint="an identity token lives for minutes only, and all of Fulcio, Rekor and a timestamp "
            "authority must answer",
        ) from error
