"""``certkit trust``: whose passports are accepted, and what must be checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certkit.cli import clock, output
from certkit.cli.commands import trust_terms
from certkit.cli.commands.keys import odd_rotation
from certkit.cli.options import Json, Quiet, profile_digest
from certkit.cli.policy import (
    MAX_POLICY,
    Domains,
    Logs,
    Profiles,
    Require,
    TrustFile,
    WitnessKeys,
    load,
    path_of,
    required,
    save,
    vkeys,
)
from certkit.cli.views.trust import entry, show_policy
from certkit.errors import Exit, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from certkit.passport.trust import Trust

app = typer.Typer(
    help="Say whose passports are accepted, and what must be checked.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

IssuerName = Annotated[str | None, typer.Option("--issuer", help="Your name for whoever holds the key.")]
KeyFile = Annotated[Path | None, typer.Option("--key", help="The issuer's public key (PEM).")]
Who = Annotated[
    str | None,
    typer.Option("--identity", help="A keyless signer: the e-mail address or URI in their certificates."),
]
Where = Annotated[
    str | None, typer.Option("--oidc-issuer", metavar="URL", help="Where that signer has signed in.")
]
Root = Annotated[
    str | None,
    typer.Option(
        "--trusted-root",
        metavar="FILE",
        help="A Sigstore TrustedRoot, put into the policy; 'public': that of Sigstore's public instance, "
        "as installed.",
    ),
]


@app.command("init")
def init(
    trust: TrustFile = None,
    issuer: IssuerName = None,
    key: KeyFile = None,
    log: Logs = None,
    require: Annotated[
        list[Require] | None, typer.Option("--require", help="What must be checked; repeatable.")
    ] = None,
    min_tier: Annotated[
        int | None, typer.Option("--min-tier", min=0, max=9, help="The least tier to accept.")
    ] = None,
    accept_specimens: Annotated[
        bool, typer.Option("--accept-specimens", help="Accept passports from simulated evidence.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a new trust policy; an existing one is never overwritten.

    Example: certkit trust init --trust trust.json --issuer "Example Lab" --key public-key.pem
    """
    from certkit.passport.trust import Trust  # noqa: PLC0415 - keeps the help fast

    policy = Trust(
        logs=vkeys(log, "--log"),
        require=required(require or ()),
        min_tier=min_tier,
        accept_specimens=accept_specimens,
    )
    save(_with_key(policy, issuer, key, None, None), trust, json=json, quiet=quiet, new=True)


@app.command("add")
def add(
    trust: TrustFile = None,
    issuer: IssuerName = None,
    key: KeyFile = None,
    not_before: Annotated[
        str | None, typer.Option("--not-before", metavar="TIME", help="Signatures from here on count.")
    ] = None,
    not_after: Annotated[
        str | None, typer.Option("--not-after", metavar="TIME", help="Signatures up to here count.")
    ] = None,
    identity: Who = None,
    oidc_issuer: Where = None,
    trusted_root: Root = None,
    log: Logs = None,
    witness: WitnessKeys = None,
    profile: Profiles = None,
    domain: Domains = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add to a trust policy: an issuer's key or identity, a Sigstore trusted root, a log, a witness.

    Without a profile any is accepted, and without a domain none is asked for; how many witnesses must have
    cosigned is for 'certkit trust set --quorum' to say. Certificates and timestamps count under the policy's
    trusted root alone. A root that is older than the policy's own is refused.

    Example: certkit trust add --trust trust.json --issuer "Example Lab" --key next-key.pem
    """
    from msgspec import structs  # noqa: PLC0415 - keeps the help fast

    policy = load(trust)
    if identity is None and oidc_issuer is None:
        policy = _with_key(policy, issuer, key, not_before, not_after)
    else:
        if key or not_before or not_after:
            raise UsageError("usage.option", "a key and an identity are added one after the other")
        policy = _with_identity(policy, issuer, identity, oidc_issuer)
    if trusted_root is not None:
        policy = policy.with_root(_root(trusted_root))
    quorum = policy.witnesses
    policy = structs.replace(
        policy,
        logs=_and(policy.logs, vkeys(log, "--log")),
        witnesses=structs.replace(quorum, keys=_and(quorum.keys, vkeys(witness, "--witness"))),
        profiles=_and(policy.profiles, [profile_digest(name) for name in profile or ()]),
        domains=_and(policy.domains, domain),
    )
    save(policy, trust, json=json, quiet=quiet)


app.command("set")(trust_terms.set_)
app.command("remove")(trust_terms.remove)


@app.command("rotate")
def rotate(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The public key that the policy holds (PEM).")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The public key that takes over from it (PEM).")],
    trust: TrustFile = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="When the new key takes over. Default: now.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Follow an issuer who changes keys: the old key's window ends at a time, and the new key's begins there.

    The new key counts for the issuer who holds the old one. Passports that the old key signed before that
    time stay valid; a window that ends sooner already is not made longer. Compare the new key's id with the
    issuer by another way than the one by which you got the file.

    Example: certkit trust rotate public-key.pem next-public.pem --trust trust.json --at 2026-06-01
    """
    from certkit.passport import keys  # noqa: PLC0415 - keeps the help fast
    from certkit.passport.rotation import rotated  # noqa: PLC0415 - the same

    moment = clock.moment(at, "--at") if at else clock.now().replace(microsecond=0)
    held, gone, come = load(trust), keys.load_public(old), keys.load_public(new)
    odd = odd_rotation(held, gone, moment)
    policy = rotated(held, gone, come, at=moment)
    save(policy, trust, json=json, quiet=quiet)
    if not json and not quiet:
        output.wrapped(f"from {moment:%Y-%m-%dT%H:%M:%SZ} on counts {keys.key_id(come)}")
        for item in odd:
            output.hint(item)


@app.command("show")
def show(trust: TrustFile = None, json: Json = False) -> None:
    """Show a trust policy: issuers with the ids of their keys, logs, and what is required.

    Example: certkit trust show --trust trust.json
    """
    policy = load(trust)
    if json:
        output.document(policy.to_dict())
    else:
        show_policy(policy, path_of(trust))


@app.command("check")
def check(
    trust: TrustFile = None,
    profile: Annotated[
        list[str] | None,
        typer.Option("--profile", help="A profile of your own that the policy may name; repeatable."),
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="Check it as of this time. Default: now.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check a trust policy: show what it accepts, and say what in it is odd.

    Odd are keys that no longer count, issuers of one name, demands that nothing in the policy can meet, and
    profiles that are not known here.

    Exit code 0: nothing is odd; 1: something is; 3: it is no policy, as with a quorum that cannot be had.

    Example: certkit trust check --trust trust.json
    """
    from certkit import workflow  # noqa: PLC0415 - keeps the help fast
    from certkit.passport.oddities import oddities  # noqa: PLC0415 - the same

    policy, path = load(trust), path_of(trust)
    moment = clock.moment(at, "--at") if at else clock.now()
    named = (*workflow.packaged_profiles(), *(profile or ())) if policy.profiles or profile else ()
    known = {workflow.load_profile(name).digest for name in named}
    found = oddities(policy, at=moment, profiles=known)
    if json:
        output.document({"schema": "urn:certkit:trust-check:v1", "policy": str(path), "odd": list(found)})
    elif not quiet:
        show_policy(policy, path)
        for item in found:
            entry("odd", item)
        output.say(f"{len(found)} odd" if found else "nothing odd")
    raise typer.Exit(Exit.NEGATIVE if found else Exit.OK)


def _and(held: tuple[str, ...], more: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*held, *(more or ())]))


def _with_key(
    policy: Trust, issuer: str | None, key: Path | None, not_before: str | None, not_after: str | None
) -> Trust:
    from certkit.passport import keys  # noqa: PLC0415 - keeps the help fast
    from certkit.passport.trust import TrustedKey  # noqa: PLC0415 - the same

    if (issuer is None) != (key is None):
        raise UsageError("usage.option", "--issuer and --key go together")
    if issuer is None or key is None:
        return policy
    trusted = TrustedKey(
        pem=keys.public_pem(keys.load_public(key)),
        not_before=clock.moment(not_before, "--not-before") if not_before else None,
        not_after=clock.moment(not_after, "--not-after") if not_after else None,
    )
    return policy.with_issuer(issuer, trusted)


def _with_identity(policy: Trust, issuer: str | None, identity: str | None, oidc_issuer: str | None) -> Trust:
    from certkit.passport.trust import Identity  # noqa: PLC0415 - keeps the help fast

    if issuer is None or identity is None or oidc_issuer is None:
        raise UsageError(
            "usage.option",
            "--issuer, --identity and --oidc-issuer go together",
            hint="--issuer is your own name for them, --oidc-issuer the URL where they sign in",
        )
    return policy.with_identity(issuer, Identity(identity=identity, issuer=oidc_issuer))


def _root(name: str) -> dict[str, Any]:
    from certkit import canonical, files  # noqa: PLC0415 - keeps the help fast
    from certkit.passport import keyless, trusted_root  # noqa: PLC0415 - the same

    if name == "public":
        return keyless.public_root()
    document: Any = canonical.loads(files.read(Path(name), limit=MAX_POLICY), where=name)
    trusted_root.check(document, name)
    return dict(document)
