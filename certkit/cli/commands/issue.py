"""``certkit issue``."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec import Meta

from certkit.api.issuing import NOT_ASKED, Logging, own_trust, write_issued
from certkit.api.judging import judge
from certkit.assessment.answer import serious_texts
from certkit.assessment.assessment import Question
from certkit.assessment.bundles import refuse_inside
from certkit.assessment.profile_file import load_profile
from certkit.bundle.facts import Relation
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.commands.registry import log_key_of, logged_id
from certkit.cli.emit import coloured, emit, fold, progress, refuse
from certkit.ground import files
from certkit.ground.canonical import is_digest
from certkit.ground.document import Count, Digest, Document, GivenPath, Text, Tier
from certkit.ground.errors import UsageError
from certkit.passport import timestamp as authority
from certkit.passport import words
from certkit.passport.issue import issue as sign
from certkit.passport.keyless import Keyless
from certkit.report import HINTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.api.issuing import IssuedFiles
    from certkit.cli.emit import Line
    from certkit.passport.keys import PrivateKey

MAX_TOKEN: Final = 64 * 1024
MAX_CONFIG: Final = 4 * 1024 * 1024


class Issued(Document, frozen=True, kw_only=True, tag="urn:certkit:issued:v1"):
    """What certkit issue and certkit demo print."""

    passport: GivenPath
    passport_id: Digest
    tier: Tier
    index: Annotated[Count | None, Meta(description="the entry in the registry, null where not logged")]
    pdf_missing: Annotated[Text | None, Meta(description="why there is no PDF")]


def issue(
    bundles: opt.BundleFolders,
    out: opt.Out,
    issuer: Annotated[str, opt.ISSUER(envvar="CERTKIT_ISSUER")],
    key: Annotated[Path | None, opt.KEY(help="The issuer's private key.")] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(
            "--timestamp",
            metavar="URL",
            help="Have this RFC 3161 authority prove when the key signed. Uses the network.",
        ),
    ] = None,
    keyless: Annotated[
        bool,
        typer.Option(
            "--keyless",
            help="Sign with a Sigstore certificate instead of a key. Uses the network, and puts your "
            "identity into a public log for ever.",
        ),
    ] = False,
    identity_token_file: Annotated[
        Path | None,
        typer.Option(
            "--identity-token-file",
            metavar="FILE",
            help="With --keyless: the OIDC token. Default: that of the CI system around.",
        ),
    ] = None,
    trust_config: Annotated[
        Path | None,
        typer.Option(
            "--trust-config",
            metavar="FILE",
            help="With --keyless: the ClientTrustConfig of another Sigstore instance than the public one.",
        ),
    ] = None,
    evaluator: Annotated[
        Relation | None,
        typer.Option("--relation-to-evaluator", help="The issuer's relation to who ran the evaluation."),
    ] = None,
    developer: Annotated[
        Relation | None,
        typer.Option("--relation-to-developer", help="The issuer's relation to the agent's developer."),
    ] = None,
    profile: opt.ProfileName = "hb-eval-2026",
    changes: opt.Changes = None,
    require_tier: Annotated[int, opt.REQUIRE_TIER(help="The tier that the claim speaks of.")] = 1,
    strict: opt.Strict = False,
    answers: opt.ContextFile = None,
    registry: Annotated[Path | None, opt.REGISTRY(help="Also log it here.")] = None,
    log_key: opt.LogKey = None,
    trust: opt.TrustFile = None,
    valid_from: Annotated[datetime | None, opt.MOMENT("--valid-from", help="Start of validity.")] = None,
    days: Annotated[int, typer.Option("--days", min=1, max=366, help="How long it is valid.")] = 90,
    supersedes: Annotated[
        str | None, typer.Option("--supersedes", metavar="ID", help="The id of the passport it replaces.")
    ] = None,
    passphrase_file: opt.PassphraseFile = None,
    no_pdf: Annotated[bool, typer.Option("--no-pdf", help="Draw the safety case as HTML alone.")] = False,
) -> None:
    """Judge a sealed bundle again, sign the judgement as a passport, and draw its safety case.

    Several bundles of one agent are pooled, and the passport lists them with their periods.
    A passport that says "no tier", with its reasons, is a valid passport. With --registry it is logged
    and the proof is put beside it; only an issuer whom --trust knows (by default: this key) is admitted.
    Nothing reaches the network but with --timestamp or --keyless.
    Exit code 0: issued, whatever the tier; 2, 3 and above: nothing was issued.

    Example: certkit issue bundle -k issuer-key.pem --issuer "Example Lab" -o out
    """
    if supersedes is not None and registry is not None:
        supersedes = logged_id(registry, supersedes)
    if supersedes is not None and not is_digest(supersedes):
        raise UsageError(
            "usage.option",
            "--supersedes: expected sha256: and 64 hexadecimal digits",
            hint="with --registry the first digits are enough",
        )
    if issuer == "NAME":
        hint = "write your own in its place"
        raise UsageError("usage.option", "--issuer: NAME is a placeholder", hint=hint)
    if (key is not None) == keyless:
        raise UsageError("usage.option", "expected either --key (see 'certkit keys generate') or --keyless")
    astray = ("timestamp", "registry") if keyless else ("identity_token_file", "trust_config")
    refuse(f"is for {'--key' if keyless else '--keyless'}", *astray)
    if registry is None:
        refuse("is for --registry, which also logs it", "trust", "log_key")
    refuse_inside(bundles, out)
    now = context.now()
    start = valid_from or now
    signer, logging = _signer(key, passphrase_file, identity_token_file, trust_config), None
    if registry and not isinstance(signer, Keyless):
        logging = Logging(
            registry=registry,
            log_key=log_key_of(log_key, registry),
            heads=context.heads_path(),
            trust=context.load_policy(trust) if trust else own_trust(issuer, signer),
            at=start,
        )
    given = context.load_context(answers)
    question = Question(required_tier=require_tier, strict=strict)
    judged = judge(bundles, load_profile(profile, changes or ()), question, given, progress=progress())
    context.check_context(judged)
    passport = sign(
        judged,
        issuer=issuer,
        key=signer,
        not_before=start,
        not_after=start + timedelta(days=days),
        relation_to_evaluator=evaluator,
        relation_to_developer=developer,
        supersedes=supersedes,
        context=given.digest if given else None,
        timestamp=partial(authority.ask, timestamp) if timestamp else None,
        now=now,
    )
    issued = write_issued(
        out,
        judged,
        passport,
        key=None if isinstance(signer, Keyless) else signer,
        today=min(start, now).date(),
        given=given,
        pdf=not no_pdf,
        logging=logging,
    )
    missing = issued.pdf_missing
    hints = [f"PDF not made: {missing}", *HINTS] if missing not in {None, NOT_ASKED} else ()
    emit(document(issued, out), screen(issued, out), serious=serious_texts(judged), hints=hints)


def _signer(
    key: Path | None, passphrase_file: Path | None, token_file: Path | None, config: Path | None
) -> PrivateKey | Keyless:
    """Return the private key in a file, or who signed in, where no file is named."""
    if key is not None:
        return context.signing_key(key, passphrase_file)
    token = files.read(token_file, limit=MAX_TOKEN).decode(errors="replace").strip() if token_file else None
    return Keyless.sign_in(token, files.read(config, limit=MAX_CONFIG) if config else None)


def document(issued: IssuedFiles, out: Path) -> Issued:
    """Return what ``certkit issue --json`` prints."""
    return Issued(
        passport=out / "passport.json",
        passport_id=issued.passport.passport_id,
        tier=issued.judged.assessment.verdict.tier,
        index=issued.index,
        pdf_missing=issued.pdf_missing,
    )


def screen(issued: IssuedFiles, out: Path) -> Iterator[Line]:
    """Print what was issued, and how it was logged."""
    yield from coloured(fold(words.tiers_text(issued.judged)), "bold")
    for text in serious_texts(issued.judged):
        yield from coloured(fold(text), "bold red")
    yield f"passport {out}/passport.json"
    yield f"id       {issued.passport.passport_id}"
    if issued.index is not None:
        yield f"logged   entry {issued.index}; proof in {out}/passport.json.tlog-proof"
    yield f"report   {out}/safety-case.html" + ("" if issued.pdf_missing else ", safety-case.pdf")
