"""A Sigstore of our own: certificate authority, CT log, Rekor v2, timestamp authority, trusted root.

    instance = Sigstore.new(NOW)
    signer = instance.signer("a@example.com", "https://accounts.example.com")
    bundle = signer.attest(payload)                   # JSON values, a bundle v0.3
    instance.trusted_root()                           # what a verifier is given

Every knob makes one negative twin: a certificate that is over, a timestamp that is missing, a key that ended,
a proof that is broken. All is local, and nothing of certkit is used. Keys are drawn anew; times are those
that are given. `Sigstore.fixed` draws nothing, and gives the same bytes for ever.

Sources: RFC 6962 (SCT, Merkle tree), RFC 3161 and RFC 5652 (timestamps in CMS), RFC 5816 and RFC 5035
(ESSCertIDv2), C2SP signed-note and tlog-checkpoint, Fulcio's oid-info.md, Rekor v2's specification.
"""

from __future__ import annotations

import base64
import hashlib
import json  # noqa: TID251 - nothing of certkit is used here
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.support import merkle

Json = dict[str, Any]
Curve = ec.EllipticCurvePrivateKey

DAY: Final = timedelta(days=1)
LIFETIME: Final = timedelta(minutes=10)
IN_TOTO: Final = "application/vnd.in-toto+json"
ORIGIN: Final = "log.example.com"
ISSUER_V1: Final = "1.3.6.1.4.1.57264.1.1"
ISSUER_V2: Final = "1.3.6.1.4.1.57264.1.8"
SCT_LIST: Final = "1.3.6.1.4.1.11129.2.4.2"
SHA256: Final = "2.16.840.1.101.3.4.2.1"
FIXED: Final = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)
ECDSA_SHA256: Final = "1.2.840.10045.4.3.2"


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def compact(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def spki(key: Curve | Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def der_of(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)


def serial(key: ec.EllipticCurvePublicKey) -> int:
    """Return the serial number that a certificate for this key always has."""
    point = key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    return int.from_bytes(hashlib.sha256(point).digest()[:19]) | 1


def certificate_of(builder: x509.CertificateBuilder, key: Curve) -> x509.Certificate:
    return builder.sign(key, hashes.SHA256(), ecdsa_deterministic=True)


def fixed_key(number: int) -> Curve:
    """Return the key of a number, for files that are the same on every machine."""
    return ec.derive_private_key(number, ec.SECP256R1())


def pae(payload: bytes) -> bytes:
    return b"DSSEv1 %d %b %d %b" % (len(IN_TOTO), IN_TOTO.encode(), len(payload), payload)


# ASN.1 in DER, as far as a timestamp needs it.


def tlv(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    if len(body) < 128:
        return bytes([tag, len(body)]) + body
    size = len(body).to_bytes((len(body).bit_length() + 7) // 8)
    return bytes([tag, 128 + len(size)]) + size + body


def sequence(*parts: bytes) -> bytes:
    return tlv(0x30, *parts)


def set_of(*parts: bytes, tag: int = 0x31) -> bytes:
    return tlv(tag, *sorted(parts))


def integer(value: int) -> bytes:
    return tlv(0x02, value.to_bytes(value.bit_length() // 8 + 1, signed=True))


def octets(data: bytes) -> bytes:
    return tlv(0x04, data)


def oid(dotted: str) -> bytes:
    first, second, *rest = (int(part) for part in dotted.split("."))
    data = b""
    for number in (40 * first + second, *rest):
        digits = [number & 127]
        while number := number >> 7:
            digits.insert(0, 128 | number & 127)
        data += bytes(digits)
    return tlv(0x06, data)


def utf8(text: str) -> bytes:
    return tlv(0x0C, text.encode())


def time_of(time: datetime) -> bytes:
    return tlv(0x18, time.strftime("%Y%m%d%H%M%SZ").encode())


@dataclass
class Authority:
    """A certificate authority with a root and one certificate that signs below it."""

    name: str
    start: datetime
    end: datetime
    usage: x509.ObjectIdentifier
    is_ca: bool
    root_key: Curve = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    key: Curve = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def __post_init__(self) -> None:
        self.root = self._certificate("root", self.root_key, is_ca=True, path_length=1)
        self.signing = self._certificate("signing", self.key, is_ca=self.is_ca, path_length=0)

    @property
    def chain(self) -> list[bytes]:
        return [der_of(self.signing), der_of(self.root)]

    def _certificate(self, role: str, key: Curve, *, is_ca: bool, path_length: int) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(self._named(role))
            .issuer_name(self._named("root"))
            .public_key(key.public_key())
            .serial_number(serial(key.public_key()))
            .not_valid_before(self.start)
            .not_valid_after(self.end)
            .add_extension(
                x509.BasicConstraints(ca=is_ca, path_length=path_length if is_ca else None), critical=True
            )
            .add_extension(key_usage(certificates=is_ca), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.root_key.public_key()), critical=False
            )
        )
        if role == "signing":
            builder = builder.add_extension(x509.ExtendedKeyUsage([self.usage]), critical=not is_ca)
        return certificate_of(builder, self.root_key)

    def _named(self, role: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{self.name} {role}")])


def key_usage(*, certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificates,
        key_cert_sign=certificates,
        crl_sign=certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


@dataclass(frozen=True)
class Sigstore:
    """One instance, whose services are in office from `start` on, a year before `at`."""

    at: datetime
    start: datetime
    fulcio: Authority
    tsa: Authority
    ct: Curve
    log: Ed25519PrivateKey
    ecdsa: ec.ECDSA = field(default_factory=lambda: ec.ECDSA(hashes.SHA256()))
    """How signers sign: each time anew, unless told otherwise."""

    @classmethod
    def new(cls, at: datetime) -> Sigstore:
        start, end = at - 365 * DAY, at + 3650 * DAY
        return cls(
            at=at,
            start=start,
            fulcio=Authority("Example CA", start, end, ExtendedKeyUsageOID.CODE_SIGNING, is_ca=True),
            tsa=Authority("Example TSA", start, end, ExtendedKeyUsageOID.TIME_STAMPING, is_ca=False),
            ct=ec.generate_private_key(ec.SECP256R1()),
            log=Ed25519PrivateKey.generate(),
        )

    @classmethod
    def fixed(cls, at: datetime, number: int) -> Sigstore:
        """Return the instance of a number, with the same keys for ever."""
        start, end = at - 365 * DAY, at + 3650 * DAY
        first = 1000 * number
        ca, stamp = ExtendedKeyUsageOID.CODE_SIGNING, ExtendedKeyUsageOID.TIME_STAMPING
        keys = [fixed_key(first + offset) for offset in range(1, 6)]
        return cls(
            at=at,
            start=start,
            fulcio=Authority("Example CA", start, end, ca, is_ca=True, root_key=keys[0], key=keys[1]),
            tsa=Authority("Example TSA", start, end, stamp, is_ca=False, root_key=keys[2], key=keys[3]),
            ct=keys[4],
            log=Ed25519PrivateKey.from_private_bytes(number.to_bytes(32)),
            ecdsa=FIXED,
        )

    def trusted_root(self, **ends: datetime) -> Json:
        """Return the trusted root; `ends` tells when ``ca``, ``ct``, ``log`` or ``tsa`` left office."""
        ct_id = hashlib.sha256(spki(self.ct)).digest()
        return {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [self._log("PKIX_ED25519", spki(self.log), self.log_id, ends.get("log"))],
            "certificateAuthorities": [self._authority(self.fulcio, ends.get("ca"))],
            "ctlogs": [self._log("PKIX_ECDSA_P256_SHA_256", spki(self.ct), ct_id, ends.get("ct"))],
            "timestampAuthorities": [self._authority(self.tsa, ends.get("tsa"))],
        }

    def _window(self, end: datetime | None) -> Json:
        window = {"start": self.start.isoformat()}
        return window if end is None else {**window, "end": end.isoformat()}

    def _log(self, details: str, key: bytes, log_id: bytes, end: datetime | None) -> Json:
        return {
            "baseUrl": f"https://{ORIGIN}",
            "hashAlgorithm": "SHA2_256",
            "publicKey": {"rawBytes": b64(key), "keyDetails": details, "validFor": self._window(end)},
            "logId": {"keyId": b64(log_id)},
        }

    def _authority(self, authority: Authority, end: datetime | None) -> Json:
        return {
            "subject": {"organization": "example.com", "commonName": authority.name},
            "uri": "https://ca.example.com",
            "certChain": {"certificates": [{"rawBytes": b64(one)} for one in authority.chain]},
            "validFor": self._window(end),
        }

    @property
    def log_id(self) -> bytes:
        """The SHA-256 that begins with the key id of C2SP signed-note, type 0x01."""
        public = self.log.public_key().public_bytes_raw()
        return hashlib.sha256(ORIGIN.encode() + b"\n\x01" + public).digest()

    def certify(
        self,
        public_key: ec.EllipticCurvePublicKey,
        identity: str,
        issuer: str,
        *,
        since: datetime | None = None,
        lifetime: timedelta = LIFETIME,
        second_issuer: str | None = None,
        logged: bool = True,
    ) -> x509.Certificate:
        """Return a certificate as Fulcio issues it, with the CT log's promise in it where it is `logged`.

        It names the OIDC issuer twice, and `second_issuer` in the newer extension where that is given.
        """
        since = since or self.at
        name: x509.GeneralName = (
            x509.UniformResourceIdentifier(identity) if "://" in identity else x509.RFC822Name(identity)
        )
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self.fulcio.signing.subject)
            .public_key(public_key)
            .serial_number(serial(public_key))
            .not_valid_before(since)
            .not_valid_after(since + lifetime)
            .add_extension(key_usage(certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.fulcio.key.public_key()),
                critical=False,
            )
            .add_extension(x509.SubjectAlternativeName([name]), critical=True)
            .add_extension(_extension(ISSUER_V1, issuer.encode()), critical=False)
            .add_extension(_extension(ISSUER_V2, utf8(second_issuer or issuer)), critical=False)
        )
        before = certificate_of(builder, self.fulcio.key)
        if not logged:
            return before
        promise = _extension(SCT_LIST, octets(self._sct(before.tbs_certificate_bytes, since)))
        return certificate_of(builder.add_extension(promise, critical=False), self.fulcio.key)

    def _sct(self, tbs: bytes, time: datetime) -> bytes:
        """Return a list of one SCT over a precertificate (RFC 6962, sections 3.2 and 3.3)."""
        stamp = int(time.timestamp() * 1000).to_bytes(8)
        entry = hashlib.sha256(spki(self.fulcio.key)).digest() + len(tbs).to_bytes(3) + tbs
        signed = b"\x00\x00" + stamp + b"\x00\x01" + entry + b"\x00\x00"
        signature = self.ct.sign(signed, FIXED)
        sct = b"\x00" + hashlib.sha256(spki(self.ct)).digest() + stamp + b"\x00\x00"
        sct += b"\x04\x03" + len(signature).to_bytes(2) + signature
        listed = len(sct).to_bytes(2) + sct
        return len(listed).to_bytes(2) + listed

    def entry(self, digest: bytes, signature: bytes, certificate: x509.Certificate) -> Json:
        """Return the entry that Rekor v2 answers with: the third of five, with proof and checkpoint."""
        body = compact(
            {
                "apiVersion": "0.0.2",
                "kind": "hashedrekord",
                "spec": {
                    "hashedRekordV002": {
                        "data": {"algorithm": "SHA2_256", "digest": b64(digest)},
                        "signature": {
                            "content": b64(signature),
                            "verifier": {
                                "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                                "x509Certificate": {"rawBytes": b64(der_of(certificate))},
                            },
                        },
                    }
                },
            }
        )
        return self._logged(body, {"kind": "hashedrekord", "version": "0.0.2"})

    def promised(self, payload: bytes, signature: bytes, certificate: x509.Certificate, at: datetime) -> Json:
        """Return the entry that Rekor v1 answers with: with a promise that tells the time."""
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        spec = {
            "envelopeHash": {"algorithm": "sha256", "value": "0" * 64},
            "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
            "signatures": [{"signature": b64(signature), "verifier": b64(pem)}],
        }
        kind = {"kind": "dsse", "version": "0.0.1"}
        body = compact({"apiVersion": "0.0.1", "kind": "dsse", "spec": spec})
        time = int(at.timestamp())
        said = {"body": b64(body), "integratedTime": time, "logID": self.log_id.hex(), "logIndex": 2}
        return {
            **self._logged(body, kind),
            "integratedTime": str(time),
            "inclusionPromise": {"signedEntryTimestamp": b64(self.log.sign(compact(said)))},
        }

    def _logged(self, body: bytes, kind: Json) -> Json:
        entries = [b"first", b"second", body, b"fourth", b"fifth"]
        root = merkle.mth(entries)
        text = f"{ORIGIN}\n{len(entries)}\n{b64(root)}\n"
        line = b64(self.log_id[:4] + self.log.sign(text.encode()))
        return {
            "logIndex": "2",
            "logId": {"keyId": b64(self.log_id)},
            "kindVersion": kind,
            "inclusionProof": {
                "logIndex": "2",
                "rootHash": b64(root),
                "treeSize": str(len(entries)),
                "hashes": [b64(one) for one in merkle.path(2, entries)],
                "checkpoint": {"envelope": f"{text}\n\N{EM DASH} {ORIGIN} {line}\n"},
            },
            "canonicalizedBody": b64(body),
        }

    def timestamp(
        self, digest: bytes, time: datetime | None = None, *, nonce: int | None = None, status: int = 0
    ) -> bytes:
        """Return an RFC 3161 response over what has this SHA-256, with the signing certificate in it."""
        imprint = sequence(sequence(oid(SHA256)), octets(digest))
        info = sequence(
            integer(1),
            oid("1.3.6.1.4.1.57264.2"),
            imprint,
            integer(7),
            time_of(time or self.at),
            *([integer(nonce)] if nonce is not None else []),
        )
        return sequence(sequence(integer(status)), self._token(info))

    def _token(self, info: bytes) -> bytes:
        """Return the CMS SignedData around a TSTInfo (RFC 5652, section 5)."""
        content, certificate = "1.2.840.113549.1.9.16.1.4", der_of(self.tsa.signing)
        attributes = (
            sequence(oid("1.2.840.113549.1.9.3"), set_of(oid(content))),
            sequence(oid("1.2.840.113549.1.9.4"), set_of(octets(hashlib.sha256(info).digest()))),
            sequence(
                oid("1.2.840.113549.1.9.16.2.47"),
                set_of(sequence(sequence(sequence(octets(hashlib.sha256(certificate).digest()))))),
            ),
        )
        signer = sequence(
            integer(1),
            sequence(self.tsa.signing.issuer.public_bytes(), integer(self.tsa.signing.serial_number)),
            sequence(oid(SHA256)),
            set_of(*attributes, tag=0xA0),
            sequence(oid(ECDSA_SHA256)),
            octets(self.tsa.key.sign(set_of(*attributes), FIXED)),
        )
        data = sequence(
            integer(3),
            set_of(sequence(oid(SHA256))),
            sequence(oid(content), tlv(0xA0, octets(info))),
            tlv(0xA0, certificate),
            set_of(signer),
        )
        return sequence(oid("1.2.840.113549.1.7.2"), tlv(0xA0, data))

    def signer(self, identity: str, issuer: str, *, key: Curve | None = None, **knobs: Any) -> Signer:
        key = key or ec.generate_private_key(ec.SECP256R1())
        certificate = self.certify(key.public_key(), identity, issuer, **knobs)
        return Signer(self, key, certificate)


def _extension(dotted: str, value: bytes) -> x509.UnrecognizedExtension:
    return x509.UnrecognizedExtension(x509.ObjectIdentifier(dotted), value)


@dataclass(frozen=True)
class Signer:
    """Somebody who signed in: a key, its certificate, and when the timestamp is made (None: never)."""

    instance: Sigstore
    key: Curve
    certificate: x509.Certificate
    late: timedelta | None = timedelta(minutes=1)

    @property
    def key_id(self) -> str:
        return "sha256:" + hashlib.sha256(spki(self.key)).hexdigest()

    def at(self, late: timedelta | None) -> Signer:
        """Return the same with the timestamp so much after the certificate's beginning."""
        return replace(self, late=late)

    def attest(self, payload: bytes) -> Json:
        """Return a bundle around a DSSE envelope."""
        message = pae(payload)
        signature = self.key.sign(message, self.instance.ecdsa)
        return self._bundle(
            message,
            signature,
            dsseEnvelope={
                "payload": b64(payload),
                "payloadType": IN_TOTO,
                "signatures": [{"sig": b64(signature)}],
            },
        )

    def attest_in_v1(self, payload: bytes, at: datetime) -> Json:
        """Return the same with an entry of Rekor v1 in the place of entry and timestamp."""
        bundle = self.at(None).attest(payload)
        signature = base64.b64decode(bundle["dsseEnvelope"]["signatures"][0]["sig"])
        entry = self.instance.promised(payload, signature, self.certificate, at)
        bundle["verificationMaterial"]["tlogEntries"] = [entry]
        return bundle

    def sign(self, message: bytes) -> Json:
        """Return a bundle around a plain signature of a file."""
        signature = self.key.sign(message, self.instance.ecdsa)
        digest = {"algorithm": "SHA2_256", "digest": b64(hashlib.sha256(message).digest())}
        return self._bundle(
            message, signature, messageSignature={"messageDigest": digest, "signature": b64(signature)}
        )

    def _bundle(self, message: bytes, signature: bytes, **content: Json) -> Json:
        entry = self.instance.entry(hashlib.sha256(message).digest(), signature, self.certificate)
        material: Json = {
            "certificate": {"rawBytes": b64(der_of(self.certificate))},
            "tlogEntries": [entry],
        }
        if self.late is not None:
            time = self.certificate.not_valid_before_utc + self.late
            token = self.instance.timestamp(hashlib.sha256(signature).digest(), time)
            material["timestampVerificationData"] = {"rfc3161Timestamps": [{"signedTimestamp": b64(token)}]}
        return {
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": material,
            **content,
        }
