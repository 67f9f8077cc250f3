"""``certkit verify`` and ``certkit show``: whether a passport holds, and what it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from certkit import canonical
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.documents import Show
from certkit.cli.emit import emit, fold, progress, warn
from certkit.cli.views.passport import show_passport, show_verdict, show_verification
from certkit.errors import Exit, UsageError
from certkit.passport import keys
from certkit.passport.exports import source
from certkit.passport.opening import parse
from certkit.passport.trust import Trust, TrustedIssuer, TrustedKey
from certkit.passport.verification import verify as check
from certkit.workflow.verifying import evidence_of, remembered, standing_of, taken

if TYPE_CHECKING:
    from certkit.cli.emit import Line
    from certkit.passport.outcome import Verification


def verify(
    passport: opt.PassportFile,
    trust: opt.TrustFile = None,
    key: Annotated[
        Path | None,
        opt.KEY(help="Trust this public key (PEM) alone, in place of a policy.", metavar="PUBLIC"),
    ] = None,
    issuer: Annotated[
        str | None, opt.ISSUER(help="What the signer must be called; needed with --key.")
    ] = None,
    bundle: opt.Evidence = None,
    replay: opt.Replay = False,
    profile: opt.ReplayProfile = None,
    answers: opt.ContextFile = None,
    agent: Annotated[str | None, opt.AGENT(help="The agent it must be about.", metavar="DIGEST")] = None,
    domain: Annotated[str | None, opt.DOMAIN()] = None,
    require_tier: Annotated[int | None, opt.REQUIRE_TIER()] = None,
    registry: opt.Registry = None,
    remember: opt.Remember = True,
    at: opt.AsOf = None,
    jobs: opt.Jobs = None,
    verbose: opt.Verbose = False,
) -> None:
    """Verify a passport against your trust policy: signature, validity, evidence, and what it claims.

    Works offline, and writes nothing but the head of a registry that it asked, so that an older copy is
    refused the next time. A proof of registration is taken from PASSPORT.tlog-proof, and a status from
    PASSPORT.status, where these files are there. Of a PDF the attached passport is verified, and nothing
    that its pages say. With --key and --issuer no policy is needed.

    Exit code 0: verified; 1: the signature or the subject is wrong; 3: malformed; 4: something required
    could not be checked; 6: ended; 7: evidence or replay differ; 8: not trusted.

    Example: certkit verify passport.json --bundle bundle --replay
    """
    if agent is not None and not canonical.is_digest(agent):
        raise UsageError("usage.option", f"--agent: {agent!r} is not sha256: and 64 hexadecimal digits")
    evidence = evidence_of(bundle, profile, answers, replay=replay, jobs=jobs, progress=progress())
    given, policy = taken(passport), _policy(trust, key, issuer)
    moment = at or context.now()
    heads = context.own_heads()
    standing = standing_of(passport, registry, trust=policy, at=moment, heads=heads, progress=progress())
    result = given.told(
        check(
            given.passport,
            trust=policy,
            at=moment,
            agent=agent,
            domain=domain,
            issuer=issuer,
            require_tier=require_tier,
            proof=given.proof,
            **standing,
            **evidence,
        )
    )
    if registry is not None and remember:
        for problem in remembered(registry, result, policy, heads):
            warn(problem)
    screen = show_verification(result, verbose=verbose, dated=at is not None)
    emit(result.to_dict, screen, code=result.exit_code)


def _policy(trust: Path | None, key: Path | None, issuer: str | None) -> Trust:
    """Return the policy of a file, or the strictest there is for a single key."""
    if key is None:
        return context.load_policy(trust)
    if trust is not None or issuer is None:
        raise UsageError("usage.option", "--key stands in place of --trust, and takes --issuer NAME")
    pem = keys.public_pem(keys.load_public(key))
    return Trust(issuers=(TrustedIssuer(name=f"the key in {key.name}", keys=(TrustedKey(pem=pem),)),))


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
    shown = source.unverified(data, at=moment, made=made) if readable else None
    emit(
        _document(data if readable else None, verified),
        _screen(verified, shown, in_pdf=given.in_pdf, dated=at is not None),
        code=verified.exit_code if verified else Exit.OK,
    )


def _screen(
    verified: Verification | None, shown: source.Source | None, *, in_pdf: bool, dated: bool
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


def _standing(verified: Verification) -> Literal["current", "revoked", "superseded"] | None:
    """Return how a passport stands by the log that was asked, None where it was not told."""
    told = next((step for step in verified.steps if step.id == "status"), None)
    if told is not None and told.status == "passed":
        return "current"
    if told is not None and told.code == "passport.revoked":
        return "revoked"
    return "superseded" if told is not None and told.code == "passport.superseded" else None


def _document(data: bytes | None, verified: Verification | None) -> Show:
    passport = parse(data) if data is not None else None
    return Show(
        at=verified.at if verified else None,
        passport_id=passport.passport_id if passport else None,
        signature_checked=verified is not None,
        verdict=verified.verdict if verified else None,
        standing=_standing(verified) if verified else None,
        statement=canonical.loads(passport.payload) if passport else None,
    )
