"""``certkit trust``: whose passports are accepted, and what must be checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import typer
from msgspec import Meta, structs

from certkit import canonical, files
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import emit, entry, fold, hint
from certkit.document import Document, GivenPath, Text
from certkit.errors import Exit, UsageError
from certkit.passport import keyless, keys, trusted_root
from certkit.passport.editing import cautions, ended, oddities, removed, rotated
from certkit.passport.statement import Reading
from certkit.passport.trust import Identity, Trust, TrustedKey, parse
from certkit.passport.trusted_root import KINDS
from certkit.passport.words import day, utc
from certkit.wording import many


class TrustShow(Document, frozen=True, kw_only=True, tag="urn:certkit:trust-show:v1"):
    """A trust policy, and what is odd about it; an empty list where nothing is."""

    path: GivenPath
    policy: Annotated[Mapping[str, Any], Meta(description="as urn:certkit:trust:v1")]
    odd: Sequence[Text]
    cautions: Annotated[
        Sequence[Text], Meta(description="what the policy lets pass that a careful verifier would not")
    ]


_LABEL: Final = 9  # beside it a digest ends in column 80


class Require(StrEnum):
    """What a policy can require to be checked."""

    REGISTRY = "registry"
    STATUS = "status"
    TIMESTAMP = "timestamp"
    EVIDENCE = "evidence"
    REPLAY = "replay"
    NOTHING = "nothing"


def add(
    trust: opt.TrustFile = None,
    issuer: Annotated[str | None, opt.ISSUER(help="Your name for whoever holds the key.")] = None,
    key: Annotated[Path | None, opt.KEY(help="The issuer's public key (PEM).")] = None,
    not_before: Annotated[
        datetime | None,
        opt.MOMENT("--not-before", help="Signatures from here on count."),
    ] = None,
    not_after: Annotated[
        datetime | None,
        opt.MOMENT("--not-after", help="Signatures up to here count."),
    ] = None,
    identity: Annotated[str | None, opt.IDENTITY()] = None,
    oidc_issuer: Annotated[
        str | None, typer.Option("--oidc-issuer", metavar="URL", help="Where that signer has signed in.")
    ] = None,
    root: Annotated[
        str | None,
        typer.Option(
            "--trusted-root",
            metavar="FILE",
            help="A Sigstore TrustedRoot, put into the policy; 'public': that of Sigstore's public instance, "
            "as installed.",
        ),
    ] = None,
    log: opt.LogKeys = None,
    witness: opt.WitnessKeys = None,
    profile: opt.Profiles = None,
    domain: opt.Domains = None,
) -> None:
    """Add to a trust policy: an issuer's key or identity, a Sigstore trusted root, a log, a witness.

    Where there is no policy yet, one is written. Without a profile any is accepted, and without a domain none
    is asked for; how many witnesses must have cosigned is for 'certkit trust set --quorum' to say.
    Certificates and timestamps count under the policy's trusted root alone. A root that is older than the
    policy's own is refused.

    Example: certkit trust add --issuer "Example Lab" --key public-key.pem
    """
    policy = context.load_policy(trust) if context.policy_path(trust).exists() else Trust()
    if issuer is not None and key is not None and identity is None and oidc_issuer is None:
        pem = keys.public_pem(keys.load_public(key))
        policy = policy.with_issuer(issuer, TrustedKey(pem=pem, not_before=not_before, not_after=not_after))
    elif issuer and identity and oidc_issuer and not (key or not_before or not_after):
        policy = policy.with_issuer(issuer, Identity(identity=identity, issuer=oidc_issuer))
    elif issuer or key or identity or oidc_issuer or not_before or not_after:
        raise UsageError(
            "usage.option",
            "--issuer goes with --key, which alone may have a window, or with --identity and --oidc-issuer",
            hint="--issuer is your own name for them, --oidc-issuer the URL where they sign in",
        )
    if root is not None:
        policy = policy.with_root(_root(root))
    quorum = policy.witnesses
    policy = structs.replace(
        policy,
        logs=_and(policy.logs, context.vkeys(log, "--log")),
        witnesses=structs.replace(quorum, keys=_and(quorum.keys, context.vkeys(witness, "--witness"))),
        profiles=_and(policy.profiles, [context.profile_digest(name) for name in profile or ()]),
        domains=_and(policy.domains, domain),
    )
    _save(policy, trust)


def set_(
    trust: opt.TrustFile = None,
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
        Literal[Reading, "any"] | None,
        opt.READING(help="By which reading the tier counts; any: by its profile's."),
    ] = None,
    max_status_age: Annotated[
        str | None,
        typer.Option("--max-status-age", metavar="PERIOD", help="How old a status may be: P7D, PT12H."),
    ] = None,
    specimens: Annotated[
        bool | None,
        typer.Option("--accept-specimens/--refuse-specimens", help="Passports from simulated evidence."),
    ] = None,
    contested: Annotated[
        bool | None,
        typer.Option("--accept-contested/--refuse-contested", help="Tiers with an open serious challenge."),
    ] = None,
    answered: Annotated[
        bool | None,
        typer.Option("--accept-answered/--refuse-answered", help="Tiers with an answered serious challenge."),
    ] = None,
) -> None:
    """Set what a trust policy demands; what is not named stays as it is.

    Example: certkit trust set --require registry --max-status-age P1D
    """
    policy = context.load_policy(trust)
    changes: dict[str, Any] = {}
    if require is not None:
        wanted = tuple(str(item) for item in dict.fromkeys(require))
        if "nothing" in wanted and len(wanted) > 1:
            raise UsageError("usage.option", "--require nothing stands alone")
        changes["require"] = () if "nothing" in wanted else wanted
    if quorum is not None:
        changes["witnesses"] = structs.replace(policy.witnesses, k=quorum)
    if min_tier is not None:
        changes["min_tier"] = min_tier or None
    if reading is not None:
        changes["reading"] = None if reading == "any" else reading
    if max_status_age is not None:
        changes["max_status_age"] = _period(max_status_age)
    accepted = {"specimens": specimens, "contested": contested, "answered": answered}
    changes |= {f"accept_{name}": value for name, value in accepted.items() if value is not None}
    if not changes:
        raise UsageError("usage.option", "there is nothing to set", hint="certkit trust set --help")
    _save(structs.replace(policy, **changes), trust)


def remove(
    trust: opt.TrustFile = None,
    issuer: Annotated[
        list[str] | None, opt.ISSUER(help="An issuer, with all that it has; repeatable.")
    ] = None,
    key: Annotated[list[Path] | None, opt.KEY(help="An issuer's public key (PEM); repeatable.")] = None,
    identity: Annotated[list[str] | None, opt.IDENTITY(help="A keyless signer; repeatable.")] = None,
    log: opt.LogKeys = None,
    witness: opt.WitnessKeys = None,
    profile: opt.Profiles = None,
    domain: opt.Domains = None,
) -> None:
    """Take out of a trust policy what it holds: an issuer, a key, a log, a witness, a profile, a domain.

    What the policy does not hold is refused, and nothing is changed then. A key that was in use is better
    ended than taken out, with 'certkit trust rotate': its older signatures stay good.

    Example: certkit trust remove --trust trust.json --issuer "Example Lab"
    """
    lighter = removed(
        context.load_policy(trust),
        issuer=issuer or (),
        key=[keys.key_id(keys.load_public(path)) for path in key or ()],
        identity=identity or (),
        log=log or (),
        witness=witness or (),
        profile=[context.profile_digest(name) for name in profile or ()],
        domain=domain or (),
    )
    _save(lighter, trust)


def rotate(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The public key that the policy holds (PEM).")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The public key that takes over from it (PEM).")],
    trust: opt.TrustFile = None,
    at: opt.ChangeTime = None,
) -> None:
    """Follow an issuer who changes keys: the old key's window ends at a time, and the new key's begins there.

    The new key counts for the issuer who holds the old one. From then on, a passport by the old key counts
    only with a timestamp or a proof of registration that shows it is older; a window that ends sooner already
    is not made longer. Compare the new key's id with the issuer by another way than the one by which you got
    the file.

    Example: certkit trust rotate public-key.pem next-public.pem --at 2026-06-01
    """
    moment = at or context.now().replace(microsecond=0)
    held, gone, come = context.load_policy(trust), keys.load_public(old), keys.load_public(new)
    before = ended(held, gone, at=moment)
    _save(rotated(held, gone, come, at=moment), trust, _taken_over(keys.key_id(come), moment, before))


def _taken_over(key_id: str, moment: datetime, before: datetime | None) -> Iterator[str]:
    yield from fold(f"from {utc(moment)} on counts {key_id}")
    if before is not None:
        hint(f"the old key counts no longer than to {utc(before)}; this adds one more key of its issuer")


def show(
    trust: opt.TrustFile = None,
    at: opt.AsOf = None,
) -> None:
    """Show a trust policy: issuers with the ids of their keys, logs, what is required, and what is odd.

    Odd are keys that do not count now, and demands that nothing in the policy can meet. Cautions name
    what the policy lets pass and a careful verifier would not; they change no exit code.

    Exit code 0: nothing is odd; 1: something is; 3: it is no policy, as with a quorum that cannot be had.

    Example: certkit trust show --trust trust.json
    """
    policy, path = context.load_policy(trust), context.policy_path(trust)
    odd = tuple(oddities(policy, at=at or context.now()))
    emit(
        TrustShow(path=path, policy=policy.to_dict(), odd=odd, cautions=tuple(cautions(policy))),
        _shown(policy, path, odd),
        code=Exit.NEGATIVE if odd else Exit.OK,
    )


def _save(policy: Trust, given: Path | None, more: Iterable[str] = ()) -> None:
    """Write a policy that can be read again, and say so, and `more`."""
    path = context.policy_path(given)
    data = policy.to_json()
    parse(data, str(path))  # as whoever loads it will
    files.write(path, data)
    emit(policy.to_dict, _written(policy, path, more))


def _and(held: tuple[str, ...], more: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*held, *(more or ())]))


def _root(name: str) -> dict[str, Any]:
    if name == "public":
        return keyless.public_root()
    document: Any = canonical.loads(files.read(Path(name), limit=context.MAX_POLICY), where=name)
    trusted_root.check(document, name)
    return dict(document)


def _period(text: str) -> timedelta:
    """Return a period as ISO 8601 writes it; raise `UsageError`."""
    try:
        return msgspec.convert(text, timedelta)
    except msgspec.ValidationError:
        raise UsageError(
            "usage.option",
            f"--max-status-age: {text!r} is not a period",
            hint="P7D is seven days, PT12H is twelve hours",
        ) from None


def _shown(policy: Trust, path: Path, odd: Sequence[str]) -> Iterator[str]:
    """Print whose passports a policy accepts, what it knows, what it demands, and what in it is odd."""
    yield str(path)
    for label, text in [*_issuers(policy), *_demands(policy)]:
        yield from entry(label, text, _LABEL)
    for label, items in (("odd", odd), ("caution", cautions(policy))):
        for item in items:
            yield from entry(label, item, _LABEL)
    yield f"{len(odd)} odd" if odd else "nothing odd"


def _demands(policy: Trust) -> Iterator[tuple[str, str]]:
    for log in policy.logs:
        yield "log", log
    quorum = policy.witnesses
    yield "witness", f"{quorum.k} of {len(quorum.keys)} must have cosigned" if quorum.keys else "none"
    yield from (("", key) for key in quorum.keys)
    yield "requires", ", ".join(policy.require) or "signature and validity only"
    yield "status", f"no older than {_age(policy.max_status_age)}, where it is asked for"
    yield "profile", "one of these" if policy.profiles else "any"
    yield from (("", digest) for digest in policy.profiles)
    yield "accepts", _accepts(policy)


def _written(policy: Trust, path: Path, more: Iterable[str]) -> Iterator[str]:
    """Print that a policy was written, what it holds, `more`, and what it lacks."""
    count, people = len(policy.candidates()), sum(len(issuer.identities) for issuer in policy.issuers)
    held = [many(count, "trusted key"), *([f"keyless signers: {people}"] if people else [])]
    held.append(many(len(policy.logs), "log key"))
    if policy.witnesses.keys:
        held.append(f"{policy.witnesses.k} of {len(policy.witnesses.keys)} witnesses")
    yield from fold(f"{path} written: {', '.join(held)}")
    yield from more
    if people and policy.trusted_root is None:
        hint("no identity counts without a root: certkit trust add --trusted-root FILE")
    if not count and not people:
        hint("certkit trust add --issuer NAME --key PUBLIC.pem")


def _age(limit: timedelta) -> str:
    """Return a period in whole days where it has such, else in hours."""
    days = limit / timedelta(days=1)
    return many(int(days), "day") if days == int(days) else f"{24 * days:,g} hours"


def _issuers(policy: Trust) -> Iterator[tuple[str, str]]:
    for item in policy.candidates():
        yield "issuer", item.issuer
        yield "", item.id
        if item.not_before or item.not_after:
            yield "", f"from {_day(item.not_before)} to {_day(item.not_after)}"
    identities = [(issuer.name, identity) for issuer in policy.issuers for identity in issuer.identities]
    for name, identity in identities:
        yield "issuer", name
        yield "", f"signed in as {identity.identity}"
        yield "", f"at {identity.issuer}"
    if not policy.candidates() and not identities:
        yield "issuer", "none: every passport will be refused"
    if (root := policy.trusted_root) is not None:
        members = ", ".join(f"{name} ({len(root.get(kind, []))})" for kind, name in KINDS.items())
        yield "root", f"Sigstore: {members}"
    elif identities:
        yield "root", "none: no identity counts without --trusted-root"


def _accepts(policy: Trust) -> str:
    parts = [f"Tier {policy.min_tier} and above" if policy.min_tier else "any tier, none included"]
    parts.append(f"{policy.reading} reading" if policy.reading else "the reading that the profile decides by")
    if policy.domains:
        parts.append(f"covering {', '.join(policy.domains)}")
    parts.append("specimens too" if policy.accept_specimens else "no specimens")
    if policy.accept_contested:
        parts.append("contested tiers too")
    if not policy.accept_answered:
        parts.append("no tier with an answered challenge")
    return ", ".join(parts)


def _day(time: datetime | None) -> str:
    return "…" if time is None else day(time)
