"""``certkit show``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certkit.cli import clock, output, standing
from certkit.cli.commands.verify import taken, verdict_of
from certkit.cli.options import Json, PassportFile, Verbose
from certkit.cli.policy import load
from certkit.errors import Exit, UsageError

if TYPE_CHECKING:
    from certkit.passport.outcome import Verification


def show(
    passport: PassportFile,
    trust: Annotated[
        Path | None,
        typer.Option("-t", "--trust", metavar="FILE", help="Verify it under this trust policy as well."),
    ] = None,
    registry: standing.RegistryAsked = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="Look at it as of this time. Default: now.")
    ] = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what a passport says, on one screen. Without --trust its signature is not checked.

    With --trust, whether it still stands is asked of --registry or PASSPORT.status, as 'certkit verify' does.

    Exit code: that of the verification with --trust, otherwise 0 for every passport that can be read.

    Example: certkit show passport.json --trust trust.json
    """
    from certkit.cli.views.passport import show_passport  # noqa: PLC0415 - keeps the help fast
    from certkit.passport import verification  # noqa: PLC0415 - the same
    from certkit.passport.exports import source  # noqa: PLC0415 - the same

    if registry is not None and trust is None:
        raise UsageError("usage.option", "--registry is asked under a trust policy", hint="--trust FILE")
    made = clock.now()
    moment = clock.moment(at, "--at") if at else made
    given = taken(passport)
    data, found = given.passport, None
    if trust is not None:
        policy = load(trust)
        asked = standing.asked(passport, registry, trust=policy, at=moment, hidden=json)
        found = verification.verify(data, trust=policy, at=moment, proof=given.proof, **asked)
    # What fails before its fourth step is not known to be anybody's words, and is not repeated here.
    readable = found is None or found.statement is not None
    shown = source.unverified(data, at=moment, made=made) if readable else None
    if json:
        output.document(_document(data if readable else None, found))
    else:
        if found is None:
            output.say("SIGNATURE NOT CHECKED: anyone can write this. Check it: --trust FILE")
        else:
            output.wrapped(verdict_of(found, told=at is not None))
            skipped = [step.id for step in found.steps if step.status == "skipped"]
            output.wrapped(f"Not checked: {', '.join(skipped) or 'no step'}; 'certkit verify' tells why")
        if given.in_pdf:
            output.wrapped("Taken out of a PDF, whose pages are not signed: compare the id that they print")
        if shown is not None:
            show_passport(shown, verbose=verbose)
    raise typer.Exit(found.exit_code if found else Exit.OK)


def _document(data: bytes | None, found: Verification | None) -> dict[str, Any]:
    from certkit import canonical  # noqa: PLC0415 - keeps the help fast
    from certkit.passport.exports.words import utc  # noqa: PLC0415 - the same
    from certkit.passport.opening import parse  # noqa: PLC0415 - the same

    passport = parse(data) if data is not None else None
    return {
        "schema": "urn:certkit:show:v1",
        "at": utc(found.at) if found else None,
        "passport_id": passport.passport_id if passport else None,
        "signature_checked": found is not None,
        "verdict": found.verdict if found else None,
        "statement": canonical.loads(passport.payload) if passport else None,
    }
