"""A virtual Sigstore behind HTTP on 127.0.0.1: what a signing client talks to, in three routes.

    with Service(instance) as service:
        service.config()        # a ClientTrustConfig that leads here
        service.tsa             # the URL of the timestamp authority

Clients look at the machine's clock; so certificates from here last a century.
"""

from __future__ import annotations

import base64
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any, Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from certkit.ground import canonical
from tests.support.virtual_sigstore import compact, der_of

if TYPE_CHECKING:
    from datetime import datetime
    from types import TracebackType

    from tests.support.virtual_sigstore import Json, Sigstore

CENTURY: Final = timedelta(days=36_525)
_OCTETS: Final = b"\x04\x20"


def token(**claims: Any) -> str:
    """Return an OIDC token that nobody signed; clients leave its verification to the instance."""
    times = {"iat": 1_577_836_800, "exp": 4_102_444_800}  # 2020 and 2100
    parts = {"alg": "none"}, {"aud": "sigstore", "sub": "subject", **times, **claims}
    return ".".join([base64.urlsafe_b64encode(compact(part)).decode().rstrip("=") for part in parts] + [""])


class Service:
    """Answers as the instance does; `spoilt` names what goes wrong, `at` is the authority's time."""

    def __init__(self, instance: Sigstore, *, at: datetime | None = None) -> None:
        self.instance = instance
        self.at = at or instance.at
        self.spoilt = ""
        self.asked: list[str] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.asked.append(self.path)
                if service.spoilt == "broken":
                    self.send_error(500)
                    return
                answer = service.answer(self.path, body, self.headers.get("Authorization", ""))
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def tsa(self) -> str:
        return f"{self.url}/tsa"

    def config(self) -> bytes:
        def offered(url: str, version: int) -> list[Json]:
            window = {"start": self.instance.start.isoformat()}
            return [{"url": url, "majorApiVersion": version, "validFor": window, "operator": "example.com"}]

        return compact(
            {
                "mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json",
                "trustedRoot": self.instance.trusted_root(),
                "signingConfig": {
                    "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
                    "caUrls": offered(self.url, 1),
                    "rekorTlogUrls": offered(self.url, 2),
                    "rekorTlogConfig": {"selector": "ANY"},
                    "tsaUrls": offered(self.tsa, 1),
                    "tsaConfig": {"selector": "ANY"},
                },
            }
        )

    def answer(self, path: str, body: bytes, authorization: str) -> bytes:
        if path == "/tsa":
            return self._timestamp(body)
        asked = canonical.loads(body)
        if path == "/api/v2/log/entries":
            return self._entry(asked["hashedRekordRequestV002"])
        return self._certificate(asked["certificateSigningRequest"], authorization.removeprefix("Bearer "))

    def _certificate(self, request: str, bearer: str) -> bytes:
        claims = canonical.loads(base64.urlsafe_b64decode(bearer.split(".")[1] + "=="))
        key = x509.load_pem_x509_csr(base64.b64decode(request)).public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        leaf = self.instance.certify(key, claims.get("email", claims["sub"]), claims["iss"], lifetime=CENTURY)
        chain = [leaf, self.instance.fulcio.signing, self.instance.fulcio.root]
        pem = [one.public_bytes(serialization.Encoding.PEM).decode() for one in chain]
        return compact({"signedCertificateEmbeddedSct": {"chain": {"certificates": pem}}})

    def _entry(self, request: Json) -> bytes:
        signature = request["signature"]
        certificate = x509.load_der_x509_certificate(
            base64.b64decode(signature["verifier"]["x509Certificate"]["rawBytes"])
        )
        assert der_of(certificate)
        digest, content = (base64.b64decode(text) for text in (request["digest"], signature["content"]))
        return compact(self.instance.entry(digest, content, certificate))

    def _timestamp(self, request: bytes) -> bytes:
        """Answer a TimeStampReq: version, imprint (an OCTET STRING of 32 bytes), nonce."""
        start = request.index(_OCTETS) + len(_OCTETS)
        digest, rest = request[start : start + 32], request[start + 32 :]
        nonce = int.from_bytes(rest[2 : 2 + rest[1]])
        if self.spoilt == "digest":
            digest = bytes(32)
        if self.spoilt == "large":
            return bytes(100_000)
        return self.instance.timestamp(digest, self.at, nonce=nonce)
