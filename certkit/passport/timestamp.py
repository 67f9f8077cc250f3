"""RFC 3161 timestamps: asked for when a passport is signed, and read when it is verified.

    token = ask("https://tsa.example.com", signature)       # the one function here that uses the network
    seen([token], signature, trusted_root)                  # when trusted authorities saw the signature

A token shows that the signature existed at its time: it was not made later. One that no authority of the
verifier's trusted root made over this signature, inside the authority's window, is passed over as if it were
not there. A certificate inside a token only has to be the one that the root names.
"""

from __future__ import annotations

import hashlib
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from certkit.ground.errors import InputError, UnavailableError, UsageError
from certkit.passport import trusted_root

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rfc3161_client import TimeStampResponse

    from certkit.passport.trusted_root import Authority

MAX_TOKENS: Final = 32
"""Tokens of a file that are looked at, the first ones."""
MAX_TOKEN: Final = 64 * 1024
TIMEOUT: Final = 30
"""Seconds to wait for an authority."""


def seen(tokens: Sequence[bytes], signature: bytes, root: dict[str, Any]) -> tuple[datetime, ...]:
    """Return when authorities of the root, each in its window, saw `signature`, earliest first.

    Raises:
        InputError: ``trust.root`` where an authority of the root is no certificate.
    """
    from rfc3161_client import decode_timestamp_response  # noqa: PLC0415 - only where a timestamp is met

    authorities = trusted_root.timestamp_authorities(root)
    times: set[datetime] = set()
    for token in tokens[:MAX_TOKENS]:
        with suppress(ValueError):
            response = decode_timestamp_response(token)
            if any(_made_by(authority, response, signature) for authority in authorities):
                times.add(response.tst_info.gen_time)
    return tuple(sorted(times))


def ask(url: str, signature: bytes) -> bytes:
    """Return the token that the authority at `url` makes of `signature`.

    The answer must be a token over this signature; verifiers judge who made it. Raises
    `UsageError` ``usage.option`` for a URL that is not http, and `UnavailableError` ``timestamp.failed``.
    """
    from rfc3161_client import (  # noqa: PLC0415 - only where a timestamp is made
        TimestampRequestBuilder,
        decode_timestamp_response,
    )
    from rfc3161_client.base import HashAlgorithm  # noqa: PLC0415 - the same

    builder = TimestampRequestBuilder().data(signature).hash_algorithm(HashAlgorithm.SHA256)
    token = _post(url, builder.build().as_bytes())
    try:
        imprint = decode_timestamp_response(token).tst_info.message_imprint.message
    except ValueError:  # refused, or no token at all
        imprint = b""
    if imprint != hashlib.sha256(signature).digest():
        raise UnavailableError("timestamp.failed", "answered without a token of this signature", where=url)
    return token


def _post(url: str, body: bytes) -> bytes:
    from urllib import request  # noqa: PLC0415 - only where a timestamp is made
    from urllib.error import HTTPError  # noqa: PLC0415 - the same

    if not url.startswith(("http://", "https://")):
        raise UsageError("usage.option", f"{url!r} is not the URL of a timestamp authority", hint="https://…")
    asked = request.Request(url, body, {"Content-Type": "application/timestamp-query"})  # noqa: S310 - above
    try:
        with request.urlopen(asked, timeout=TIMEOUT) as answer:  # noqa: S310 - http, as checked above
            return bytes(answer.read(MAX_TOKEN))
    except (OSError, ValueError) as error:
        if isinstance(error, HTTPError):
            error.close()
        raise UnavailableError("timestamp.failed", f"no answer: {error}", where=url) from None


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
