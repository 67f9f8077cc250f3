"""``certkit trust``: whose passports are accepted, and what must be checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
import typer
from msgspec import Meta, structs

from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import emit, entry, fold
from certkit.ground import canonical, files
from certkit.ground.document import Document, GivenPath, Text
from certkit.ground.errors import UsageError
from certkit.ground.wording import many
from certkit.passport import keyless, keys, trusted_root
from certkit.passport.editing import cautions, removed, rotated
from certkit.passport.statement import Reading
from certkit.passport.trust import Identity, Requirement, Trust, TrustedKey, parse
from certkit.passport.trusted_root import KINDS
from certkit.passport.words import day, utc


class TrustShow(Document, frozen=True, kw_only=True, tag="urn:certkit:trust-show:v1"):
    """A trust policy."""

    path: GivenPath
    policy: Annotated[Mapping[str, Any], Meta(description="as urn:certkit:trust:v1")]
    cautions: Annotated[
        Sequence[Text], Meta(description="what the policy lets pass that a careful verifier would not")
    ]


_LABEL: Final = 9  # beside it a digest ends in column 80
_ACCEPTED: Final = ("specimens", "contested", "answered")
_REQUIRED: Final = get_args(Requirement)


def period(text: str) -> timedelta:
    """Read a period as ISO 8601 writes it; raise `UsageError` ``usage.option``."""
    try:
        return msgspec.convert(text, timedelta)
    except msgspec.ValidationError:
        hint = "P7D is seven days, PT12H is twelve hours"
        raise UsageError("usage.option", f"--max-status-age: {text!r} is not a period", hint=hint) from None


def add(
    trust: opt.TrustFile = None,
    issuer: Annotated[str | None, opt.ISSUER(help="Your name for whoever holds the key.")] = None,
    key: Annotated[Path | None, opt.KEY(help="The issuer's public key (PEM).")] = None,
    not_before: Annotated[datetime | None, opt.MOMENT("--not-before", help="Signatures from here.")] = None,
    not_after: Annotated[datetime | None, opt.MOMENT("--not-after", help="Signatures up to here.")] = None,
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
        logs=_and(policy.logs, log),
        witnesses=structs.replace(quorum, keys=_and(quorum.keys, witness)),
        profiles=_and(policy.profiles, [context.profile_digest(name) for name in profile or ()]),
        domains=_and(policy.domains, domain),
    )
    _save(policy, trust)


def set_(
    trust: opt.TrustFile = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            help=f"All that must be checked: {', '.join(_REQUIRED)}; or nothing. Repeatable.",
        ),
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
        timedelta | None,
        typer.Option(
            "--max-status-age", metavar="PERIOD", parser=period, help="How old a status may be: P7D, PT12H."
        ),
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept",
            help="All that may pass, in place of what did: specimens, answered (challenges), contested "
            "(answered ones too); or nothing. Repeatable.",
        ),
    ] = None,
) -> None:
    """Set what a trust policy demands; what is not named stays as it is.

    Example: certkit trust set --require registry --max-status-age P1D
    """
    policy = context.load_policy(trust)
    if (quorum or 0) > (count := len(policy.witnesses.keys)):
        told = f"--quorum {quorum}: the policy names {many(count, 'witness key')}"
        raise UsageError("usage.option", told, hint="certkit trust add --witness VKEY")
    given: dict[str, Any] = {
        "require": () if require == ["nothing"] else require,
        "witnesses": None if quorum is None else structs.replace(policy.witnesses, k=quorum),
        "min_tier": min_tier,
        "reading": reading,
        "max_status_age": max_status_age,
    }
    for option, words, known in (("--require", require, _REQUIRED), ("--accept", accept, _ACCEPTED)):
        if strange := sorted({*(words or ())} - {*known, "nothing"}):
            raise UsageError("usage.option", f"{option}: {', '.join(strange)} is none of {', '.join(known)}")
        if words and "nothing" in words and {*words} != {"nothing"}:
            raise UsageError("usage.option", f"{option}: nothing goes alone")
    if accept is not None:
        taken = {*accept, "answered"} if "contested" in accept else {*accept}
        given |= {f"accept_{name}": name in taken for name in _ACCEPTED}
    named = {name: value for name, value in given.items() if value is not None}
    if not named:
        raise UsageError("usage.option", "there is nothing to set", hint="certkit trust set --help")
    whatever = {"min_tier": 0, "reading": "any"}
    changes = {name: None if value == whatever.get(name) else value for name, value in named.items()}
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
    come = keys.load_public(new)
    policy = rotated(context.load_policy(trust), keys.load_public(old), come, at=moment)
    _save(policy, trust, *fold(f"from {utc(moment)} on counts {keys.key_id(come)}"))


def show(trust: opt.TrustFile = None) -> None:
    """Show a trust policy: issuers with the ids of their keys, logs, and what is required.

    Cautions name what the policy lets pass and a careful verifier would not; they change no exit code.

    Example: certkit trust show --trust trust.json
    """
    policy, path = context.load_policy(trust), context.policy_path(trust)
    warned = tuple(cautions(policy))
    shown = [*_issuers(policy), *_demands(policy), *(("caution", text) for text in warned)]
    lines = [line for label, text in shown for line in entry(label, text, _LABEL)]
    emit(TrustShow(path=path, policy=policy.to_dict(), cautions=warned), [str(path), *lines])


def _save(policy: Trust, given: Path | None, *more: str) -> None:
    """Write a policy that can be read again, and say so, and `more`."""
    path = context.policy_path(given)
    policy = parse(policy.to_json(), str(path))  # as whoever loads it will
    files.write(path, policy.to_json())
    count, people = len(policy.candidates()), sum(len(issuer.identities) for issuer in policy.issuers)
    held = [many(count, "trusted key"), *([f"keyless signers: {people}"] if people else [])]
    lines = fold(f"{path} written: {', '.join([*held, many(len(policy.logs), 'log key')])}")
    rootless = people and policy.trusted_root is None
    hints = ["no identity counts without a root: certkit trust add --trusted-root FILE"] if rootless else []
    emit(policy, [*lines, *more], hints=hints)


def _and(held: tuple[str, ...], more: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*held, *(more or ())]))


def _root(name: str) -> dict[str, Any]:
    if name == "public":
        return keyless.public_root()
    document: Any = canonical.loads(files.read(Path(name), limit=context.MAX_POLICY), where=name)
    trusted_root.check(document, name)
    return dict(document)


def _demands(policy: Trust) -> Iterator[tuple[str, str]]:
    for log in policy.logs:
        yield "log", log
    quorum = policy.witnesses
    yield "witness", f"{quorum.k} of {len(quorum.keys)} must have cosigned" if quorum.keys else "none"
    yield from (("", key) for key in quorum.keys)
    yield "requires", ", ".join(policy.require) or "signature and validity only"
    yield "status", f"no older than {policy.max_status_age / timedelta(days=1):g} days, where asked for"
    yield "profile", "one of these" if policy.profiles else "any"
    yield from (("", digest) for digest in policy.profiles)
    yield "tier", f"{policy.min_tier} and above" if policy.min_tier else "any, none included"
    yield "reading", policy.reading or "the one that the profile decides by"
    yield "domains", ", ".join(policy.domains) or "any"
    accepted = [name for name in _ACCEPTED if getattr(policy, f"accept_{name}")]
    yield "accepts", ", ".join(accepted) or "neither specimens nor challenged tiers"


def _issuers(policy: Trust) -> Iterator[tuple[str, str]]:
    for item in policy.candidates():
        yield "issuer", item.issuer
        yield "", item.id
        if item.not_before or item.not_after:
            start, end = (day(time) if time else "…" for time in (item.not_before, item.not_after))
            yield "", f"from {start} to {end}"
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
