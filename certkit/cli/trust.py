"""``certkit trust``: whose passports are accepted, and what must be checked."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from certkit.cli import clock, output
from certkit.cli.options import Json, Quiet
from certkit.errors import UsageError

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
    files.write(path, _checked(policy, path), overwrite=False)
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
    log: Logs = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add an issuer's key or a registry's log key to a trust policy.

    Example: certkit trust add --trust trust.json --issuer "Example Lab" --key next-key.pem
    """
    from msgspec import structs  # noqa: PLC0415 - keeps the help fast

    from certkit import files  # noqa: PLC0415 - the same

    path = path_of(trust)
    policy = _with_key(load(trust), issuer, key, not_before, not_after)
    policy = structs.replace(policy, logs=(*policy.logs, *(item for item in log or ())))
    files.write(path, _checked(policy, path))
    _report(policy, path, json=json, quiet=quiet)


@app.command("show")
def show(trust: TrustFile = None, json: Json = False) -> None:
    """Show a trust policy: issuers with the ids of their keys, logs, and what is required.

    Example: certkit trust show --trust trust.json
    """
    policy = load(trust)
    if json:
        output.document(policy.to_dict())
        return
    output.say(str(path_of(trust)))
    for item in policy.candidates():
        output.say(f"issuer    {item.issuer}")
        output.say(f"          {item.id}")
        if item.not_before or item.not_after:
            output.say(f"          from {_day(item.not_before)} to {_day(item.not_after)}")
    if not policy.candidates():
        output.say("issuer    none: every passport will be refused")
    for name in policy.logs:
        output.say(f"log       {name}")
    output.say(f"witnesses {policy.witnesses.k} of {len(policy.witnesses.keys)}")
    output.say(f"requires  {', '.join(policy.require) or 'signature and validity only'}")
    output.wrapped(f"accepts   {_accepts(policy)}", rest=" " * 10)


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


def _checked(policy: Trust, path: Path) -> bytes:
    """Return the bytes of a policy that `load` will accept."""
    from certkit.passport.trust import parse  # noqa: PLC0415 - keeps the help fast

    data = policy.to_json()
    parse(data, str(path))
    return data


def _report(policy: Trust, path: Path, *, json: bool, quiet: bool) -> None:
    if json:
        output.document(policy.to_dict())
    elif not quiet:
        count = len(policy.candidates())
        output.say(f"{path} written: {count} trusted key{'' if count == 1 else 's'}, {len(policy.logs)} logs")
        if not count:
            output.note("hint: certkit trust add --issuer NAME --key PUBLIC.pem")
