"""RFC 6962 said a second time, by recursion over the entries, and RFC 9162's way to verify.

The tests compare `certkit.tlog` with these. Nothing here shares a line or a way of thinking with it: the
recursion follows the definitions of RFC 6962 sections 2.1 to 2.1.2 word by word, and verification follows
the bit arithmetic of RFC 9162 sections 2.1.3.2 and 2.1.4.2.
"""

from __future__ import annotations

import hashlib


def _sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _k(n: int) -> int:
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def mth(entries: list[bytes]) -> bytes:
    """The Merkle tree hash of a list of entries."""
    if not entries:
        return _sha(b"")
    if len(entries) == 1:
        return _sha(b"\x00" + entries[0])
    k = _k(len(entries))
    return _sha(b"\x01" + mth(entries[:k]) + mth(entries[k:]))


def path(m: int, entries: list[bytes]) -> list[bytes]:
    """The audit path of entry m."""
    if len(entries) == 1:
        return []
    k = _k(len(entries))
    if m < k:
        return [*path(m, entries[:k]), mth(entries[k:])]
    return [*path(m - k, entries[k:]), mth(entries[:k])]


def proof(m: int, entries: list[bytes]) -> list[bytes]:
    """The consistency proof between the first m entries and all."""
    return _subproof(m, entries, complete=True)


def _subproof(m: int, entries: list[bytes], *, complete: bool) -> list[bytes]:
    n = len(entries)
    if m == n:
        return [] if complete else [mth(entries)]
    k = _k(n)
    if m <= k:
        return [*_subproof(m, entries[:k], complete=complete), mth(entries[k:])]
    return [*_subproof(m - k, entries[k:], complete=False), mth(entries[:k])]


def included(leaf: bytes, index: int, size: int, given: list[bytes], root: bytes) -> bool:
    """RFC 9162 section 2.1.3.2."""
    if index >= size:
        return False
    fn, sn, r = index, size - 1, leaf
    for p in given:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            r = _sha(b"\x01" + p + r)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = _sha(b"\x01" + r + p)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and r == root


def consistent(old: int, old_root: bytes, new: int, new_root: bytes, given: list[bytes]) -> bool:
    """RFC 9162 section 2.1.4.2, for 0 < old < new."""
    if not given:
        return False
    if old & (old - 1) == 0:
        given = [old_root, *given]
    fn, sn = old - 1, new - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = given[0]
    for c in given[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            fr, sr = _sha(b"\x01" + c + fr), _sha(b"\x01" + c + sr)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = _sha(b"\x01" + sr + c)
        fn, sn = fn >> 1, sn >> 1
    return fr == old_root and sr == new_root and sn == 0
