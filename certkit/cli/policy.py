"""Where the trust policy is, how it is read and written, and the options that say what it holds."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from certkit.cli import output
from certkit.errors import CertkitError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.passport.trust import Requirement, Trust

MAX_POLICY: Final = 4 * 1024 * 1024


class Require(StrEnum):
    """What a policy can require to be checked."""

    REGISTRY = "registry"
    STATUS = "status"
    TIMESTAMP = "timestamp"
    EVIDENCE = "evidence"
    REPLAY = "replay"
    NOTHING = "nothing"


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
Logs = Annotated[
    list[str] | None, typer.Option("--log", metavar="VKEY", help="A registry's verifier key; repeatable.")
]
WitnessKeys = Annotated[
    list[str] | None, typer.Option("--witness", metavar="VKEY", help="A witness's verifier key; repeatable.")
]
Profiles = Annotated[
    list[str] | None,
    typer.Option(
        "--profile", help="A profile to accept: a packaged name, a TOML file or a digest; repeatable."
    ),
]
Domains = Annotated[
    list[str] | None, typer.Option("--domain", help="A domain that must have been evaluated; repeatable.")
]


def vkeys(texts: Sequence[str] | None, option: str) -> tuple[str, ...]:
    """Return verifier keys as they were given; raise `UsageError` for what is none."""
    from certkit.tlog.note import VerifierKey  # noqa: PLC0415 - keeps the help fast

    for text in texts or ():
        try:
            VerifierKey.parse(text)
        except CertkitError as error:
            raise UsageError("usage.option", f"{option}: {error.message}", hint=error.hint) from None
    return tuple(texts or ())


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


def checked(policy: Trust, path: Path) -> bytes:
    """Return the bytes of a policy that `load` will accept."""
    from certkit.passport.trust import parse  # noqa: PLC0415 - keeps the help fast

    data = policy.to_json()
    parse(data, str(path))
    return data


def save(
    policy: Trust, given: Path | None, *, json: bool = False, quiet: bool = False, new: bool = False
) -> None:
    """Write a policy that `load` will accept, and say so; a `new` one overwrites none."""
    from certkit import files  # noqa: PLC0415 - keeps the help fast

    path = path_of(given)
    files.write(path, checked(policy, path), overwrite=not new)
    if json:
        output.document(policy.to_dict())
    elif not quiet:
        _report(policy, path)


def _report(policy: Trust, path: Path) -> None:
    count, people = len(policy.candidates()), sum(len(issuer.identities) for issuer in policy.issuers)
    held = [output.counted(count, "trusted key")]
    if people:
        held.append("1 identity" if people == 1 else f"{people} identities")
    held.append(output.counted(len(policy.logs), "log key"))
    if policy.witnesses.keys:
        held.append(f"{policy.witnesses.k} of {len(policy.witnesses.keys)} witnesses")
    output.wrapped(f"{path} written: {', '.join(held)}")
    if people and policy.trusted_root is None:
        output.hint("no identity counts without a root: certkit trust add --trusted-root FILE")
    if not count and not people:
        output.hint("certkit trust add --issuer NAME --key PUBLIC.pem")


def required(items: Sequence[Require]) -> tuple[Requirement, ...]:
    """Return what must be checked; raise `UsageError` where something stands beside ``nothing``."""
    if Require.NOTHING in items and len(set(items)) > 1:
        raise UsageError("usage.option", "--require nothing stands alone")
    wanted = [item.value for item in dict.fromkeys(items) if item is not Require.NOTHING]
    return cast("tuple[Requirement, ...]", tuple(wanted))
