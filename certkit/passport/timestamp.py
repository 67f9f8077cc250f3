"""RFC 3161 timestamps: asked for when a passport is signed, and read when it is verified.

    token = ask("https://tsa.example.com", signature)       # the one function here that uses the network
    seen([token], signature, trusted_root)                  # when trusted authorities saw the signature

What a token shows is that the signature existed at its time: it was not made later. An authority counts
where the verifier's trusted root has it, and inside its window there. A certificate inside a token only has
to be the one that the root names.
"""

from __future__ import annotations

import hashlib
import warnings
from typing import TYPE_CHECKING, Any, Final

from certkit.errors import CertkitError, InputError, NegativeError, UnavailableError, UsageError
from certkit.passport import trusted_root

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rfc3161_client import TimeStampResponse

    from certkit.passport.trusted_root import Authority

MAX_TOKENS: Final = 32
MAX_TOKEN: Final = 64 * 1024
TIMEOUT: Final = 30
"""Seconds to wait for an authority."""

_HASHES: Final = {
    "2.16.840.1.101.3.4.2.1": hashlib.sha256,
    "2.16.840.1.101.3.4.2.2": hashlib.sha384,
    "2.16.840.1.101.3.4.2.3": hashlib.sha512,
}


def seen(tokens: Sequence[bytes], signature: bytes, root: dict[str, Any]) -> tuple[datetime, ...]:
    """Return when authorities of the root, each in its window, saw `signature`, earliest first.

    Raises `NegativeError` ``passport.timestamp`` where no token counts and one is not a token, or is over
    something else than `signature`; returns nothing where they are merely by authorities unknown here.
    """
    if len(tokens) > MAX_TOKENS:
        raise NegativeError("passport.timestamp", f"{len(tokens)} timestamps, limit {MAX_TOKENS}")
    authorities = trusted_root.timestamp_authorities(root)
    times: set[datetime] = set()
    wrong: CertkitError | None = None
    for token in tokens:
        try:
            response = _read(token, signature)
        except NegativeError as error:
            wrong = wrong or error
            continue
        if any(_made_by(authority, response, signature) for authority in authorities):
            times.add(response.tst_info.gen_time)
    if wrong is not None and not times:
        raise wrong
    return tuple(sorted(times))


def ask(url: str, signature: bytes) -> bytes:
    """Return the token that the authority at `url` makes of `signature`.

    The answer must be a token over this signature; verifiers judge who made it. Raises
    `UsageError` ``usage.option`` for a URL that is not http, and `UnavailableError` ``timestamp.failed``.
    """
    from rfc3161_client import TimestampRequestBuilder  # noqa: PLC0415 - only where a timestamp is made
    from rfc3161_client.base import HashAlgorithm  # noqa: PLC0415 - the same

    builder = TimestampRequestBuilder().data(signature).hash_algorithm(HashAlgorithm.SHA256)
    request = builder.nonce(nonce=True).build()
    token = _post(url, request.as_bytes())
    try:
        response = _read(token, signature)
    except NegativeError as error:
        raise UnavailableError("timestamp.failed", f"answered with what does not count: {error}") from None
    if response.tst_info.nonce != request.nonce:
        raise UnavailableError("timestamp.failed", "answered another request", where=url)
    return token


def _post(url: str, body: bytes) -> bytes:
    from urllib import request  # noqa: PLC0415 - only where a timestamp is made
    from urllib.error import HTTPError  # noqa: PLC0415 - the same

    if not url.startswith(("http://", "https://")):
        raise UsageError("usage.option", f"{url!r} is not the URL of a timestamp authority", hint="https://…")
    asked = request.Request(url, body, {"Content-Type": "application/timestamp-query"})  # noqa: S310 - above
    try:
        with request.urlopen(asked, timeout=TIMEOUT) as answer:  # noqa: S310 - http, as checked above
            data: bytes = answer.read(MAX_TOKEN + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, HTTPError):
            error.close()
        raise UnavailableError("timestamp.failed", f"no answer: {error}", where=url) from None
    if len(data) > MAX_TOKEN:
        raise UnavailableError("timestamp.failed", f"an answer beyond {MAX_TOKEN:,} bytes", where=url)
    return data


def _read(token: bytes, signature: bytes) -> TimeStampResponse:
    """Return a token that was granted over `signature`; who made it is not looked at."""
    from rfc3161_client import decode_timestamp_response  # noqa: PLC0415 - only where a timestamp is met

    try:
        response = decode_timestamp_response(token)
        imprint, granted = response.tst_info.message_imprint, response.status == 0
    except ValueError as error:
        raise NegativeError("passport.timestamp", f"the timestamp cannot be read: {error}") from None
    if not granted:
        raise NegativeError("passport.timestamp", "the timestamp was not granted")
    algorithm = _HASHES.get(imprint.hash_algorithm.dotted_string)
    if algorithm is None or imprint.message != algorithm(signature).digest():
        raise NegativeError("passport.timestamp", "the timestamp is over something else than this signature")
    return response


def _made_by(authority: Authority, response: TimeStampResponse, signature: bytes) -> bool:
    """Tell whether `authority` made a token, inside its window and while its certificates were valid."""
    from cryptography.utils import CryptographyDeprecationWarning  # noqa: PLC0415 - only where met
    from cryptography.x509 import InvalidVersion, load_der_x509_certificate  # noqa: PLC0415 - only where met
    from rfc3161_client import VerificationError, VerifierBuilder  # noqa: PLC0415 - the same

    try:
        chain = [load_der_x509_certificate(certificate) for certificate in authority.chain]
    except (ValueError, InvalidVersion) as error:
        raise InputError("trust.root", f"a timestamp authority cannot be used: {error}") from None
    builder = VerifierBuilder(tsa_certificate=chain[0], intermediates=chain[1:-1], roots=chain[-1:])
    try:
        with warnings.catch_warnings():
            # A certificate inside the token that RFC 5280 forbids, of serial number 0 say.
            warnings.simplefilter("error", CryptographyDeprecationWarning)
            builder.build().verify_message(response, signature)
    except (VerificationError, ValueError, InvalidVersion, CryptographyDeprecationWarning):
        return False  # all but the first are of certificates inside the token
    return authority.valid_for.holds(response.tst_info.gen_time)
