"""``certkit export``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from certkit.cli import clock, output, standing
from certkit.cli.commands.verify import evidence_of, taken
from certkit.cli.options import AsOf, Evidence, Force, Json, PassportFile, Quiet, ReplayProfile, check_outputs
from certkit.cli.passphrase import PassphraseFile, signing_key
from certkit.cli.policy import TrustFile, load
from certkit.errors import UsageError

if TYPE_CHECKING:
    from certkit.passport.exports import Source

MAX_CARD: Final = 1024 * 1024


class Format(StrEnum):
    """The formats of others."""

    SVR = "in-toto-svr"
    VC = "vc+jwt"
    A2A = "a2a"
    MARKDOWN = "markdown"
    BADGE = "badge"


def export(
    passport: PassportFile,
    to: Annotated[Format, typer.Option("-f", "--format", help="The format to write.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The file to write. Default: standard output.")
    ] = None,
    force: Force = False,
    trust: TrustFile = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Do not verify; markdown and badge only, and they say so.")
    ] = False,
    key: Annotated[
        Path | None, typer.Option("-k", "--key", help="The private key that signs the export (PEM).")
    ] = None,
    passphrase_file: PassphraseFile = None,
    card: Annotated[Path | None, typer.Option("--card", help="The agent card that a2a signs (JSON).")] = None,
    verifier: Annotated[
        str | None,
        typer.Option("--verifier", metavar="URI", help="Who verified, in in-toto-svr. Default: certkit."),
    ] = None,
    bundle: Evidence = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Compute the claim again from --bundle first.")
    ] = False,
    profile: ReplayProfile = None,
    registry: standing.RegistryAsked = None,
    at: AsOf = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write what a passport says in a format of others: a copy of the claim, and no evidence.

    The passport is verified first, as 'certkit verify' does; one that is not verified leaves with the exit
    code of its verification. in-toto-svr is signed by a verifier, vc+jwt by the passport's issuer, a2a by
    whoever publishes the agent card; markdown and badge are not signed. What is dated bears the present
    time; another --at is stated apart.

    Example: certkit export passport.json --format markdown --trust trust.json -o passport.md
    """
    from certkit import canonical, files  # noqa: PLC0415 - keeps the help fast
    from certkit.passport import exports  # noqa: PLC0415 - the same

    _refuse_overwriting(out, passport, trust, key, card)
    check_outputs(out, force=force)
    source = _source(
        passport,
        trust,
        at,
        unverified=unverified,
        registry=registry,
        checks={"bundle": bundle, "profile": profile, "replay": replay, "hidden": quiet or json},
    )
    made = exports.export(
        to.value,
        source,
        key=signing_key(key, passphrase_file) if key else None,
        card=canonical.loads(files.read(card, limit=MAX_CARD), where=str(card)) if card else None,
        verifier=verifier,
    )
    if out is not None:
        files.write(out, made.content.encode(), overwrite=force)
    if json:
        output.document(made.to_dict())
    elif out is None:
        output.raw(made.content)
    elif not quiet:
        output.say(f"written: {out}")
        output.wrapped(f"{made.media_type}, of passport {made.passport_id}")


def _refuse_overwriting(out: Path | None, *inputs: Path | None) -> None:
    if (
        out is not None
        and out.exists()
        and any(item and item.exists() and item.samefile(out) for item in inputs)
    ):
        raise UsageError("file.exists", "is what the export is made from", where=str(out), hint="-o OTHER")


def _source(
    passport: Path,
    trust: Path | None,
    at: str | None,
    *,
    unverified: bool,
    registry: Path | None,
    checks: dict[str, Any],
) -> Source:
    from certkit.passport import exports  # noqa: PLC0415 - keeps the help fast

    given, made = taken(passport), clock.now()
    moment = clock.moment(at, "--at") if at else made
    if unverified:
        if checks["bundle"] or checks["replay"] or registry is not None:
            raise UsageError(
                "usage.option",
                "--unverified checks nothing; leave --bundle, --replay and --registry out",
            )
        return exports.unverified(given.passport, at=moment, made=made)
    if checks["replay"] and not checks["bundle"]:
        raise UsageError("usage.option", "--replay needs the evidence", hint="--bundle DIR")
    policy = load(trust)
    beside = standing.asked(passport, registry, trust=policy, at=moment, hidden=checks["hidden"])
    asked = beside | evidence_of(**checks, jobs=None)
    return exports.verified(given.passport, trust=policy, at=moment, made=made, proof=given.proof, **asked)
