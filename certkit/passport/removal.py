"""A trust policy without what is taken out of it.

    removed(policy, issuers=["Example Lab"], keys=[public_key_id], ...)

Whatever is named must be there; an issuer who is left with no key and no identity goes too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec import structs

from certkit.errors import UsageError
from certkit.passport import keys as key_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from certkit.passport.trust import Trust, TrustedIssuer

Held = TypeVar("Held")


def removed(
    policy: Trust,
    *,
    issuers: Iterable[str] = (),
    keys: Iterable[str] = (),
    identities: Iterable[str] = (),
    logs: Iterable[str] = (),
    witnesses: Iterable[str] = (),
    profiles: Iterable[str] = (),
    domains: Iterable[str] = (),
) -> Trust:
    """Return the policy without issuers by name, keys and profiles by digest, and the rest as it is written.

    Raises `UsageError` ``usage.option`` for what the policy does not hold, and where nothing is named.
    """
    quorum = policy.witnesses
    lighter = structs.replace(
        policy,
        issuers=_issuers(policy.issuers, issuers, keys, identities),
        logs=_without(policy.logs, logs, "log"),
        witnesses=structs.replace(quorum, keys=_without(quorum.keys, witnesses, "witness")),
        profiles=_without(policy.profiles, profiles, "profile"),
        domains=_without(policy.domains, domains, "domain"),
    )
    if lighter == policy:
        raise UsageError("usage.option", "there is nothing to remove", hint="certkit trust remove --help")
    return lighter


def _issuers(
    issuers: tuple[TrustedIssuer, ...], names: Iterable[str], ids: Iterable[str], identities: Iterable[str]
) -> tuple[TrustedIssuer, ...]:
    left = _without(issuers, names, "issuer", lambda issuer: issuer.name)
    key_of = {
        key.pem: key_files.key_id(key_files.parse_public(key.pem.encode(), where=issuer.name))
        for issuer in left
        for key in issuer.keys
    }
    held = _without(tuple(key_of), ids, "key", lambda pem: key_of[pem])
    signers = tuple(identity for issuer in left for identity in issuer.identities)
    signing = _without(signers, identities, "identity", lambda identity: identity.identity)
    lighter = (
        structs.replace(
            issuer,
            keys=tuple(key for key in issuer.keys if key.pem in held),
            identities=tuple(identity for identity in issuer.identities if identity in signing),
        )
        for issuer in left
    )
    return tuple(
        issuer
        for issuer, before in zip(lighter, left, strict=True)
        if issuer.keys or issuer.identities or issuer == before
    )


def _without(
    held: tuple[Held, ...], gone: Iterable[str], what: str, name: Callable[[Held], str] = str
) -> tuple[Held, ...]:
    names, leaving = [name(item) for item in held], set(gone)
    for missing in sorted(leaving - set(names)):
        raise UsageError(
            "usage.option",
            f"the policy holds no {what} {missing}",
            hint="'certkit trust show' lists what it holds",
        )
    return tuple(item for item in held if name(item) not in leaving)
