"""Bundles of entries (C2SP tlog-tiles): the entries of a tile of level 0, each after its length.

Bundle `n` holds entries ``[256n, 256n + 256)``. Its path is ``tile/entries/<n>``, or ``….p/<width>`` for a
last bundle that is not full. A length is two bytes, big-endian. A narrower bundle is a prefix
of a wider one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.errors import InputError
from certkit.tlog.tiles import WIDTH

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_ENTRY: Final = 65_535
MAX_BUNDLE: Final = WIDTH * (MAX_ENTRY + 2)


def encode(entries: Iterable[bytes]) -> bytes:
    """Return the bundle of at most 256 entries of at most 65,535 bytes."""
    return b"".join(part for entry in entries for part in (len(entry).to_bytes(2), entry))


def decode(data: bytes, count: int) -> list[bytes]:
    """Return the `count` entries of a bundle; raise `InputError` ``tlog.tile`` unless it holds just those."""
    entries: list[bytes] = []
    at = 0
    while at + 2 <= len(data):
        stop = at + 2 + int.from_bytes(data[at : at + 2])
        entries.append(data[at + 2 : stop])
        at = stop
    if at != len(data) or len(entries) != count:
        raise InputError("tlog.tile", f"not a bundle of {count} entries")
    return entries
