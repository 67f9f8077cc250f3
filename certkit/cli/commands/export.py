"""``certkit show`` and ``certkit export``: what a passport says, on a screen and in formats of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from certkit import canonical, files
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.commands.verify import show_verdict
from certkit.cli.documents import Show
from certkit.cli.emit import emit, fold, progress
from certkit.cli.views.passport import show_passport
from certkit.errors import Exit, UsageError
from certkit.passport import exports
from certkit.passport.opening import parse
from certkit.passport.verification import verify as check
from certkit.workflow.verifying import evidence_of, standing_of, taken

if TYPE_CHECKING:
    from datetime import datetime

    from certkit.cli.emit import Line
    from certkit.passport.exports import Export, Source
    from certkit.passport.outcome import Verification

MAX_CARD: Final = 1024 * 1024


def export(
    passport: opt.PassportFile,
    to: Annotated[exports.Format, opt.FORMAT()],
    out: Annotated[Path | None, opt.OUT()] = None,
    force: opt.Force = False,
    trust: opt.TrustFile = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Do not verify; markdown and badge only, and they say so.")
    ] = False,
    key: Annotated[Path | None, opt.KEY(help="The private key that signs the export (PEM).")] = None,
    passphrase_file: opt.PassphraseFile = None,
    card: Annotated[Path | None, typer.Option("--card", help="The agent card that a2a signs (JSON).")] = None,
    verifier: Annotated[
        str | None,
        typer.Option("--verifier", metavar="URI", help="Who verified, in in-toto-svr. Default: certkit."),
    ] = None,
    bundle: opt.Evidence = None,
    replay: opt.Replay = False,
    profile: opt.ReplayProfile = None,
    registry: opt.Registry = None,
    at: opt.AsOf = None,
) -> None:
    """Write what a passport says in a format of others: a copy of the claim, and no evidence.

    The passport is verified first, as 'certkit verify' does; one that is not verified gives the exit
    code of its verification. in-toto-svr is signed by a verifier, vc+jwt by the passport's issuer, a2a by
    whoever publishes the agent card; markdown and badge are not signed. What is dated bears the present
    time; another --at is stated apart.

    Example: certkit export passport.json -f markdown -o passport.md
    """
    opt.check_outputs(out, force=force)
    made = exports.export(
        to,
        _unverified(passport, at, asked=bool(bundle or replay or registry))
        if unverified
        else _verified(passport, trust, at, registry, bundle, profile, replay=replay),
        key=context.signing_key(key, passphrase_file) if key else None,
        card=canonical.loads(files.read(card, limit=MAX_CARD), where=str(card)) if card else None,
        verifier=verifier,
    )
    content = made.content.encode()
    if out is not None:
        files.write(out, content, overwrite=force)
    emit(made.to_dict, content if out is None else _screen(made, out))


def _screen(made: Export, out: Path) -> Iterator[str]:
    yield f"written: {out}"
    yield from fold(f"{made.media_type}, of passport {made.passport_id}")


def _unverified(passport: Path, at: datetime | None, *, asked: bool) -> Source:
    if asked:
        raise UsageError(
            "usage.option", "--unverified checks nothing; leave --bundle, --replay and --registry out"
        )
    made = context.now()
    return exports.unverified(taken(passport).passport, at=at or made, made=made)


def _verified(
    passport: Path,
    trust: Path | None,
    at: datetime | None,
    registry: Path | None,
    bundles: Sequence[Path] | None,
    profile: str | None,
    *,
    replay: bool,
) -> Source:
    evidence = evidence_of(bundles, profile, replay=replay, progress=progress())
    given, policy, made = taken(passport), context.load_policy(trust), context.now()
    standing = standing_of(
        passport, registry, trust=policy, at=at or made, heads=context.own_heads(), progress=progress()
    )
    return exports.verified(
        given.passport, trust=policy, at=at or made, made=made, proof=given.proof, **standing, **evidence
    )


def show(
    passport: opt.PassportFile,
    trust: Annotated[
        Path | None, opt.TRUST(help="Verify it under this trust policy as well.", envvar=None)
    ] = None,
    registry: opt.Registry = None,
    at: opt.AsOf = None,
) -> None:
    """Show what a passport says, on one screen. Without --trust its signature is not checked.

    What is too long for the screen, such as how every bound was got, is in the document of --json.

    With --trust, --registry or PASSPORT.status says whether it still stands, as in 'certkit verify'.

    Exit code: that of the verification with --trust, otherwise 0 for every passport that can be read.

    Example: certkit show passport.json --trust trust.json
    """
    if registry is not None and trust is None:
        raise UsageError("usage.option", "--registry is asked under a trust policy", hint="--trust FILE")
    made = context.now()
    moment = at or made
    given = taken(passport)
    data, verified = given.passport, None
    if trust is not None:
        policy, heads = context.load_policy(trust), context.own_heads()
        standing = standing_of(passport, registry, trust=policy, at=moment, heads=heads, progress=progress())
        verified = check(data, trust=policy, at=moment, proof=given.proof, **standing)
    # What fails before its fourth step is not known to be anybody's words, and is not repeated here.
    readable = verified is None or verified.statement is not None
    shown = exports.unverified(data, at=moment, made=made) if readable else None
    emit(
        _document(data if readable else None, verified),
        _shown(verified, shown, in_pdf=given.in_pdf, dated=at is not None),
        code=verified.exit_code if verified else Exit.OK,
    )


def _shown(
    verified: Verification | None, shown: Source | None, *, in_pdf: bool, dated: bool
) -> Iterator[Line]:
    if verified is None:
        yield "SIGNATURE NOT CHECKED: anyone can write this. Check it: --trust FILE"
    else:
        yield from show_verdict(verified, dated=dated)
        skipped = [step.id for step in verified.steps if step.status == "skipped"]
        yield from fold(f"Not checked: {', '.join(skipped) or 'no step'}; 'certkit verify' tells why")
    if in_pdf:
        yield from fold("Taken out of a PDF, whose pages are not signed: compare the id that they print")
    if shown is not None:
        yield from show_passport(shown)


def _document(data: bytes | None, verified: Verification | None) -> Show:
    passport = parse(data) if data is not None else None
    return Show(
        passport_id=passport.passport_id if passport else None,
        verification=verified.to_dict() if verified else None,
        statement=canonical.loads(passport.payload) if passport else None,
    )
