"""``certkit trust``: whose passports are accepted, and what must be checked."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from certkit.cli import clock, output
from certkit.cli.options import Json, Quiet
from certkit.errors import Exit, UsageError

if TYPE_CHECKING:
    from certkit.passport.trust import Trust

app = typer.Typer(
    help="Say whose passports are accepted, and what must be checked.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

MAX_POLICY: Final = 4 * 1024 * 1024


class Require(StrEnum):
    """What a policy can require to be checked."""

    REGISTRY = "registry"
    STATUS = "status"
    TIMESTAMP = "timestamp"
    EVIDENCE = "evidence"
    REPLAY = "replay"


TrustFile = Annotated[
    Path | None,
    typer.Option(
        "-t",
        "--trust",
        metavar="FILE",
        envvar="CERTKIT_TRUST",
        help="The trust policy. Default: trust.json in your configuration folder.",
    ),
]
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
Logs = Annotated[
    list[str] | None, typer.Option("--log", metavar="VKEY", help="A registry's verifier key; repeatable.")
]


def path_of(given: Path | None) -> Path:
    """Return the policy file that was named, or the user's own."""
    return given or Path(typer.get_app_dir("certkit")) / "trust.json"


def load(given: Path | None) -> Trust:
    """Return the policy in a file; raise `UsageError` where there is none."""
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.passport.trust import parse  # noqa: PLC0415 - the same

    path = path_of(given)
    if not path.exists():
        raise UsageError(
            "file.missing",
            "there is no trust policy",
            where=str(path),
            hint="certkit trust init --issuer NAME --key PUBLIC.pem\nor name a policy with --trust FILE",
        )
    return parse(files.read(path, limit=MAX_POLICY), str(path))


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
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.passport.trust import Trust  # noqa: PLC0415 - the same

    policy = Trust(
        logs=tuple(log or ()),
        require=tuple(item.value for item in require or ()),
        min_tier=min_tier,
        accept_specimens=accept_specimens,
    )
    path = path_of(trust)
    policy = _with_key(policy, issuer, key, None, None)
    files.write(path, checked(policy, path), overwrite=False)
    _report(policy, path, json=json, quiet=quiet)


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
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add to a trust policy: an issuer's key or identity, a Sigstore trusted root, a registry's log key.

    Certificates and timestamps count under the policy's trusted root alone. A root that is older than the
    policy's own is refused.

    Example: certkit trust add --trust trust.json --issuer "Example Lab" --key next-key.pem
    """
    from msgspec import structs  # noqa: PLC0415 - keeps the help fast

    from certkit import files  # noqa: PLC0415 - the same

    path = path_of(trust)
    policy = load(trust)
    if identity is None and oidc_issuer is None:
        policy = _with_key(policy, issuer, key, not_before, not_after)
    else:
        if key or not_before or not_after:
            raise UsageError("usage.option", "a key and an identity are added one after the other")
        policy = _with_identity(policy, issuer, identity, oidc_issuer)
    if trusted_root is not None:
        policy = policy.with_root(_root(trusted_root))
    policy = structs.replace(policy, logs=(*policy.logs, *(item for item in log or ())))
    files.write(path, checked(policy, path))
    _report(policy, path, json=json, quiet=quiet)


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
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.passport import keys  # noqa: PLC0415 - the same
    from certkit.passport.rotation import rotated  # noqa: PLC0415 - the same

    path = path_of(trust)
    moment = clock.moment(at, "--at") if at else clock.now().replace(microsecond=0)
    come = keys.load_public(new)
    policy = rotated(load(trust), keys.load_public(old), come, at=moment)
    files.write(path, checked(policy, path))
    if not json and not quiet:
        output.say(f"from {moment:%Y-%m-%dT%H:%M:%SZ} on counts {keys.key_id(come)}")
    _report(policy, path, json=json, quiet=quiet)


@app.command("show")
def show(trust: TrustFile = None, json: Json = False) -> None:
    """Show a trust policy: issuers with the ids of their keys, logs, and what is required.

    Example: certkit trust show --trust trust.json
    """
    policy = load(trust)
    if json:
        output.document(policy.to_dict())
    else:
        _show(policy, path_of(trust))


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
        _show(policy, path)
        for item in found:
            output.wrapped(f"odd       {item}", rest=" " * 10)
        output.say(f"{len(found)} odd" if found else "nothing odd")
    raise typer.Exit(Exit.NEGATIVE if found else Exit.OK)


def _show(policy: Trust, path: Path) -> None:
    output.say(str(path))
    for item in policy.candidates():
        output.say(f"issuer    {item.issuer}")
        output.say(f"          {item.id}")
        if item.not_before or item.not_after:
            output.say(f"          from {_day(item.not_before)} to {_day(item.not_after)}")
    identities = [(issuer.name, one) for issuer in policy.issuers for one in issuer.identities]
    for name, one in identities:
        output.say(f"issuer    {name}")
        output.say(f"          signed in as {one.identity}")
        output.say(f"          at {one.issuer}")
    if not policy.candidates() and not identities:
        output.say("issuer    none: every passport will be refused")
    if policy.trusted_root is not None:
        output.wrapped(f"root      {_members(policy.trusted_root)}", rest=" " * 10)
    elif identities:
        output.wrapped("root      none: no identity counts without --trusted-root", rest=" " * 10)
    for name in policy.logs:
        output.say(f"log       {name}")
    output.say(f"witnesses {policy.witnesses.k} of {len(policy.witnesses.keys)}")
    output.say(f"requires  {', '.join(policy.require) or 'signature and validity only'}")
    output.wrapped(f"accepts   {_accepts(policy)}", rest=" " * 10)


def _members(root: dict[str, Any]) -> str:
    from certkit.passport.trusted_root import KINDS  # noqa: PLC0415 - keeps the help fast

    return "Sigstore: " + ", ".join(f"{name} ({len(root.get(kind, []))})" for kind, name in KINDS.items())


def _accepts(policy: Trust) -> str:
    parts = [f"Tier {policy.min_tier} and above" if policy.min_tier else "any tier, none included"]
    parts.append(f"{policy.reading} reading" if policy.reading else "the reading that the profile decides by")
    parts.append(f"{len(policy.profiles)} profiles" if policy.profiles else "any profile")
    if policy.domains:
        parts.append(f"covering {', '.join(policy.domains)}")
    parts.append("specimens too" if policy.accept_specimens else "no specimens")
    return ", ".join(parts)


def _day(time: object) -> str:
    return "…" if time is None else f"{time:%Y-%m-%d}"


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


def checked(policy: Trust, path: Path) -> bytes:
    """Return the bytes of a policy that `load` will accept."""
    from certkit.passport.trust import parse  # noqa: PLC0415 - keeps the help fast

    data = policy.to_json()
    parse(data, str(path))
    return data


def _report(policy: Trust, path: Path, *, json: bool, quiet: bool) -> None:
    if json:
        output.document(policy.to_dict())
    elif not quiet:
        count, people = len(policy.candidates()), sum(len(issuer.identities) for issuer in policy.issuers)
        named = f"{people} identit{'y' if people == 1 else 'ies'}, " if people else ""
        keys = f"{count} trusted key{'' if count == 1 else 's'}"
        output.say(f"{path} written: {keys}, {named}{len(policy.logs)} logs")
        if people and policy.trusted_root is None:
            output.note("hint: no identity counts without a root: certkit trust add --trusted-root FILE")
        if not count and not people:
            output.note("hint: certkit trust add --issuer NAME --key PUBLIC.pem")
