"""Rotation of a signing key in a trust policy: the old key's window ends where the new key's begins.

    policy = rotated(policy, old.public_key(), new.public_key(), at=moment)

A window that already ends sooner is left as it is: a rotation never extends the time of an old key. Windows
hold the times of signing: what the old key signed before stays valid where a timestamp or a log shows when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from certkit.errors import UntrustedError, UsageError
from certkit.passport import keys
from certkit.passport.trust import TrustedKey

if TYPE_CHECKING:
    from datetime import datetime

    from certkit.canonical import Digest
    from certkit.passport.keys import PublicKey
    from certkit.passport.trust import Trust, TrustedIssuer


def rotated(trust: Trust, old: PublicKey, new: PublicKey, *, at: datetime) -> Trust:
    """Return the policy in which the issuer that holds `old` signs with `new` from an aware time on.

    Raises `UntrustedError` ``trust.unknown-key`` where no issuer of the policy holds `old`, and
    `UsageError` ``usage.option`` where `new` is `old`.
    """
    old_id, new_id = keys.key_id(old), keys.key_id(new)
    if old_id == new_id:
        raise UsageError("usage.option", f"the new key is the old one, {old_id}")
    for issuer in trust.issuers:
        if any(_id(item) == old_id for item in issuer.keys):
            return _replaced(trust, issuer, old_id, TrustedKey(pem=keys.public_pem(new), not_before=at))
    raise UntrustedError(
        "trust.unknown-key",
        f"no issuer in the policy holds the key {old_id}",
        hint="'certkit trust show' lists the keys that it trusts",
    )


def ended(trust: Trust, old: PublicKey, *, at: datetime) -> datetime | None:
    """Return when the window of a key of the policy ended, None where it is open at the aware time `at`."""
    key = keys.key_id(old)
    ends = [item.not_after for item in trust.candidates() if item.id == key]
    return next((end for end in ends if end is not None and end <= at), None)


def _replaced(trust: Trust, issuer: TrustedIssuer, old_id: Digest, new: TrustedKey) -> Trust:
    end = new.not_before
    held = tuple(
        structs.replace(item, not_after=end)
        if _id(item) == old_id and (item.not_after is None or (end and item.not_after > end))
        else item
        for item in issuer.keys
    )
    changed = structs.replace(issuer, keys=(*held, new))
    return structs.replace(
        trust, issuers=tuple(changed if item is issuer else item for item in trust.issuers)
    )


def _id(item: TrustedKey) -> Digest:
    return keys.key_id(keys.parse_public(item.pem.encode(), where="trust policy"))
