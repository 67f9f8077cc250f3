"""Those of ``certkit trust`` that change what a policy demands, and take out of it what it holds."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from certkit.cli.options import Json, Quiet, profile_digest
from certkit.cli.policy import (
    Domains,
    Profiles,
    Require,
    TrustFile,
    WitnessKeys,
    load,
    required,
    save,
)
from certkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta

    from certkit.passport.trust import TrustedIssuer

Held = TypeVar("Held")


class Reading(StrEnum):
    """The reading under which a tier counts."""

    TABLE = "table"
    BOUNDED = "bounded"
    ANY = "any"


def set_(
    trust: TrustFile = None,
    require: Annotated[
        list[Require] | None,
        typer.Option("--require", help="All that must be checked, in place of what was; repeatable."),
    ] = None,
    quorum: Annotated[
        int | None,
        typer.Option("--quorum", min=0, max=1000, help="How many of the witnesses must have cosigned."),
    ] = None,
    min_tier: Annotated[
        int | None, typer.Option("--min-tier", min=0, max=9, help="The least tier to accept; 0: any.")
    ] = None,
    reading: Annotated[
        Reading | None,
        typer.Option("--reading", help="By which reading the tier counts; any: by its profile's."),
    ] = None,
    max_status_age: Annotated[
        str | None,
        typer.Option("--max-status-age", metavar="PERIOD", help="How old a status may be: P7D, PT12H."),
    ] = None,
    specimens: Annotated[
        bool | None,
        typer.Option("--accept-specimens/--refuse-specimens", help="Passports from simulated evidence."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Set what a trust policy demands; what is not named stays as it is.

    Example: certkit trust set --trust trust.json --require registry --require status --max-status-age P1D
    """
    from msgspec import structs  # noqa: PLC0415 - keeps the help fast

    policy = load(trust)
    changes: dict[str, Any] = {}
    if require is not None:
        changes["require"] = required(require)
    if quorum is not None:
        changes["witnesses"] = structs.replace(policy.witnesses, k=quorum)
    if min_tier is not None:
        changes["min_tier"] = min_tier or None
    if reading is not None:
        changes["reading"] = None if reading is Reading.ANY else reading.value
    if max_status_age is not None:
        changes["max_status_age"] = _period(max_status_age)
    if specimens is not None:
        changes["accept_specimens"] = specimens
    if not changes:
        raise UsageError("usage.option", "there is nothing to set", hint="certkit trust set --help")
    save(structs.replace(policy, **changes), trust, json=json, quiet=quiet)


def remove(
    trust: TrustFile = None,
    issuer: Annotated[
        list[str] | None, typer.Option("--issuer", help="An issuer, with all that it has; repeatable.")
    ] = None,
    key: Annotated[
        list[Path] | None, typer.Option("--key", help="An issuer's public key (PEM); repeatable.")
    ] = None,
    identity: Annotated[
        list[str] | None, typer.Option("--identity", help="A keyless signer; repeatable.")
    ] = None,
    log: Annotated[
        list[str] | None, typer.Option("--log", metavar="VKEY", help="A registry's verifier key; repeatable.")
    ] = None,
    witness: WitnessKeys = None,
    profile: Profiles = None,
    domain: Domains = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take out of a trust policy what it holds: an issuer, a key, a log, a witness, a profile, a domain.

    What the policy does not hold is refused, and nothing is changed then. A key that was in use is better
    ended than taken out, with 'certkit trust rotate': its older signatures stay good.

    Example: certkit trust remove --trust trust.json --issuer "Example Lab"
    """
    from msgspec import structs  # noqa: PLC0415 - keeps the help fast

    from certkit.passport import keys  # noqa: PLC0415 - the same

    policy = load(trust)
    ids = [keys.key_id(keys.load_public(path)) for path in key or ()]
    quorum, profiles = policy.witnesses, [profile_digest(name) for name in profile or ()]
    changed = structs.replace(
        policy,
        issuers=_issuers(policy.issuers, issuer or (), ids, identity or ()),
        logs=_without(policy.logs, log, "log"),
        witnesses=structs.replace(quorum, keys=_without(quorum.keys, witness, "witness")),
        profiles=_without(policy.profiles, profiles, "profile"),
        domains=_without(policy.domains, domain, "domain"),
    )
    if changed == policy:
        raise UsageError("usage.option", "there is nothing to remove", hint="certkit trust remove --help")
    save(changed, trust, json=json, quiet=quiet)


def _issuers(
    issuers: tuple[TrustedIssuer, ...], names: Iterable[str], ids: Iterable[str], identities: Iterable[str]
) -> tuple[TrustedIssuer, ...]:
    """Return the issuers without some, and without some of their keys and identities; none is left empty."""
    from msgspec import structs  # noqa: PLC0415 - keeps the help fast

    from certkit.passport import keys  # noqa: PLC0415 - the same

    left = _without(issuers, names, "issuer", lambda one: one.name)
    key_of = {
        one.pem: keys.key_id(keys.parse_public(one.pem.encode(), where=issuer.name))
        for issuer in left
        for one in issuer.keys
    }
    held = _without(tuple(key_of), ids, "key", lambda pem: key_of[pem])
    signers = tuple(one for issuer in left for one in issuer.identities)
    signing = _without(signers, identities, "identity", lambda one: one.identity)
    lighter = (
        structs.replace(
            issuer,
            keys=tuple(one for one in issuer.keys if one.pem in held),
            identities=tuple(one for one in issuer.identities if one in signing),
        )
        for issuer in left
    )
    return tuple(
        one for one, was in zip(lighter, left, strict=True) if one.keys or one.identities or one == was
    )


def _without(
    held: tuple[Held, ...], gone: Iterable[str] | None, what: str, name: Callable[[Held], str] = str
) -> tuple[Held, ...]:
    """Return what is held without what is named; raise `UsageError` for a name of nothing."""
    names = [name(item) for item in held]
    for one in gone or ():
        if one not in names:
            raise UsageError(
                "usage.option",
                f"the policy holds no {what} {one}",
                hint="'certkit trust show' lists what it holds",
            )
    return tuple(item for item in held if name(item) not in set(gone or ()))


def _period(text: str) -> timedelta:
    """Return a period as ISO 8601 writes it; raise `UsageError`."""
    from datetime import timedelta  # noqa: PLC0415 - keeps the help fast

    import msgspec  # noqa: PLC0415 - the same

    try:
        return msgspec.convert(text, timedelta)
    except msgspec.ValidationError:
        raise UsageError(
            "usage.option",
            f"--max-status-age: {text!r} is not a period",
            hint="P7D is seven days, PT12H is twelve hours",
        ) from None
