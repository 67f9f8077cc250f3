"""The files of a tiled log, written from their definition and not by the code under test."""

from __future__ import annotations

import hashlib

from tests.support import merkle


def definition(entries: list[bytes]) -> dict[str, bytes]:
    """Every file but the checkpoint, by the definitions of the tlog-tiles page and RFC 6962."""
    made: dict[str, bytes] = {}
    for start in range(0, len(entries), 256):
        part = entries[start : start + 256]
        tail = f"{start // 256:03d}" + ("" if len(part) == 256 else f".p/{len(part)}")
        made[f"tile/entries/{tail}"] = b"".join(len(one).to_bytes(2, "big") + one for one in part)
        made[f"tile/0/{tail}"] = b"".join(hashlib.sha256(b"\0" + one).digest() for one in part)
    if full := len(entries) // 256:
        tail = "000" if full == 256 else f"000.p/{full}"
        made[f"tile/1/{tail}"] = b"".join(merkle.mth(entries[256 * i : 256 * i + 256]) for i in range(full))
    return made
