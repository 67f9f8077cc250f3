"""``certkit export``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from certkit import canonical, files
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import emit, fold, progress
from certkit.errors import UsageError
from certkit.passport import exports
from certkit.workflow.verifying import evidence_of, standing_of, taken

if TYPE_CHECKING:
    from datetime import datetime

    from certkit.passport.exports import Export, Source

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
    _refuse_overwriting(out, passport, trust, key, card)
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


def _refuse_overwriting(out: Path | None, *inputs: Path | None) -> None:
    if (
        out is not None
        and out.exists()
        and any(item and item.exists() and item.samefile(out) for item in inputs)
    ):
        raise UsageError("file.exists", "is what the export is made from", where=str(out), hint="-o OTHER")


def _unverified(passport: Path, at: datetime | None, *, asked: bool) -> Source:
    if asked:
        raise UsageError(
            "usage.option",
            "--unverified checks nothing; leave --bundle, --replay and --registry out",
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
    evidence = evidence_of(bundles, profile, replay=replay, jobs=None, progress=progress())
    given, policy, made = taken(passport), context.load_policy(trust), context.now()
    standing = standing_of(
        passport,
        registry,
        trust=policy,
        at=at or made,
        heads=context.own_heads(),
        progress=progress(),
    )
    return exports.verified(
        given.passport, trust=policy, at=at or made, made=made, proof=given.proof, **standing, **evidence
    )
