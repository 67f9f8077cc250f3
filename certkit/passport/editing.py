"""Changes of a trust policy, and warnings about one that is well formed.

    removed(policy, issuer=["Example Lab"], key=[public_key_id], ...)
    rotated(policy, old.public_key(), new.public_key(), at=moment)
    cautions(policy)

Whatever is removed must be there; an issuer who is left with no key and no identity goes too. In a rotation
the old key's window ends where the new key's begins; one that already ends sooner is left as it is. Windows
hold the times of signing: what the old key signed before stays valid where a timestamp or a log shows when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import structs

from certkit.ground.errors import UntrustedError, UsageError
from certkit.passport import keys as key_files
from certkit.passport.statement import MAX_VALIDITY
from certkit.passport.trust import TrustedKey
from certkit.passport.trusted_root import KINDS, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from certkit.passport.keys import PublicKey
    from certkit.passport.trust import Trust

_LOGS: Final[tuple[Kind, ...]] = ("tlogs", "ctlogs")
_Held = TypeVar("_Held")


def removed(policy: Trust, **gone: Iterable[str]) -> Trust:
    """Return the policy without what is named; `gone` is one of those below.

    Issuers by their name, keys and profiles by their digest; identities, logs, witnesses and domains as they
    are written. Raises `UsageError` ``usage.option`` for what the policy does not hold, and where nothing is
    named.
    """
    wanted = {(what, name) for what, names in gone.items() for name in names}
    if not wanted:
        raise UsageError("usage.option", "there is nothing to remove", hint="certkit trust remove --help")
    held = set[tuple[str, str]]()

    def kept(items: Iterable[_Held], what: str, name: Callable[[_Held], str] = str) -> tuple[_Held, ...]:
        named = [(item, (what, name(item))) for item in items]
        held.update(key for _, key in named)
        return tuple(item for item, key in named if key not in wanted)

    issuers = (
        structs.replace(
            issuer,
            keys=kept(issuer.keys, "key", _id),
            identities=kept(issuer.identities, "identity", lambda item: item.identity),
        )
        for issuer in kept(policy.issuers, "issuer", lambda issuer: issuer.name)
    )
    lighter = structs.replace(
        policy,
        issuers=tuple(issuer for issuer in issuers if issuer.keys or issuer.identities),
        logs=kept(policy.logs, "log"),
        witnesses=structs.replace(policy.witnesses, keys=kept(policy.witnesses.keys, "witness")),
        profiles=kept(policy.profiles, "profile"),
        domains=kept(policy.domains, "domain"),
    )
    for what, missing in sorted(wanted - held):
        hint = "'certkit trust show' lists what it holds"
        raise UsageError("usage.option", f"the policy holds no {what} {missing}", hint=hint)
    return lighter


def rotated(trust: Trust, old: PublicKey, new: PublicKey, *, at: datetime) -> Trust:
    """Return the policy in which `new` takes over from `old` at an aware time.

    Raises `UntrustedError` ``trust.unknown-key`` where no issuer of the policy holds `old`, and
    `UsageError` ``usage.option`` where `new` is `old`.
    """
    old_id, new_id = key_files.key_id(old), key_files.key_id(new)
    if old_id == new_id:
        raise UsageError("usage.option", f"the new key is the old one, {old_id}")
    issuers = list(trust.issuers)
    for place, issuer in enumerate(issuers):
        if any(_id(item) == old_id for item in issuer.keys):
            held = (
                structs.replace(item, not_after=min(item.not_after or at, at))
                if _id(item) == old_id
                else item
                for item in issuer.keys
            )
            come = TrustedKey(pem=key_files.public_pem(new), not_before=at)
            issuers[place] = structs.replace(issuer, keys=(*held, come))
            return structs.replace(trust, issuers=tuple(issuers))
    raise UntrustedError(
        "trust.unknown-key",
        f"no issuer in the policy holds the key {old_id}",
        hint="'certkit trust show' lists the keys that it trusts",
    )


def _id(item: TrustedKey) -> str:
    return key_files.key_id(key_files.parse_public(item.pem.encode(), where="trust policy"))


def cautions(policy: Trust) -> Iterator[str]:
    """Yield what a policy lets pass that a careful verifier would not."""
    if not policy.profiles:
        yield "any profile is accepted: a passport may be judged by a table that asks for little"
    if policy.reading != "bounded":
        yield "the table reading may decide: a tier then rests on point estimates, however few the tasks"
    if "replay" not in policy.require:
        yield "no replay is required: a challenge that only the records show may be left out"
    if policy.max_status_age > MAX_VALIDITY:
        yield "a status of any age counts: it may be older than a revocation"
    if policy.trusted_root is not None:
        lacking = [KINDS[kind] for kind in _LOGS if not policy.trusted_root.get(kind)]
        if lacking:
            yield f"the trusted root names no {' and no '.join(lacking)}: it verifies no certificate"
