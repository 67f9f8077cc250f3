"""The base64 and decimal numbers of C2SP texts: each value has exactly one form."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from certkit.tlog.hashing import HASH_SIZE, Hash
from certkit.tlog.tree import MAX_SIZE

_DECIMAL: Final = re.compile(r"0|[1-9][0-9]{0,18}")


def encode64(data: bytes) -> str:
    """Return standard base64 with padding (RFC 4648 section 4)."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def decode64(text: str) -> bytes | None:
    """Return the bytes of standard base64, None for text that `encode64` does not write."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
    return data if encode64(data) == text else None


def decode_hash(text: str) -> Hash | None:
    """Return the hash in a line of base64, None for any other text."""
    data = decode64(text)
    return Hash(data) if data is not None and len(data) == HASH_SIZE else None


def decode_number(text: str) -> int | None:
    """Return a decimal number up to 2^63 − 1 without leading zeros, None for any other text."""
    if _DECIMAL.fullmatch(text) is None:
        return None
    number = int(text)
    return number if number <= MAX_SIZE else None
