"""``certkit verify`` and ``certkit show``: whether a passport holds, and what it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from certkit import canonical
from certkit.cli import context
from certkit.cli.documents import Show
from certkit.cli.emit import emit, fold, progress
from certkit.cli.options import (
    AGENT,
    DOMAIN,
    REQUIRE_TIER,
    TRUST,
    AsOf,
    Evidence,
    Jobs,
    PassportFile,
    Registry,
    Replay,
    ReplayProfile,
    TrustFile,
    Verbose,
    about,
)
from certkit.cli.views.passport import show_passport, show_verification, verdict_of
from certkit.errors import Exit, UsageError
from certkit.passport.exports import source
from certkit.passport.opening import parse
from certkit.passport.verification import verify as check
from certkit.workflow.verifying import evidence_of, standing_of, taken

if TYPE_CHECKING:
    from certkit.passport.outcome import Verification


def verify(
    passport: PassportFile,
    trust: TrustFile = None,
    bundle: Evidence = None,
    replay: Replay = False,
    profile: ReplayProfile = None,
    agent: Annotated[str | None, about(AGENT, "The agent it must be about.", metavar="DIGEST")] = None,
    domain: Annotated[str | None, DOMAIN] = None,
    require_tier: Annotated[int | None, REQUIRE_TIER] = None,
    registry: Registry = None,
    at: AsOf = None,
    jobs: Jobs = None,
    verbose: Verbose = False,
) -> None:
    """Verify a passport against your trust policy: signature, validity, evidence, and what it claims.

    Works offline and writes nothing. A proof of registration is taken from PASSPORT.tlog-proof, and a
    status from PASSPORT.status, where these files are there. Of a PDF the attached passport is verified,
    and nothing that its pages say.

    Exit code 0: verified; 1: the signature or the subject is wrong; 3: malformed; 4: something required
    could not be checked; 6: ended; 7: evidence or replay differ; 8: not trusted.

    Example: certkit verify passport.json --trust trust.json --bundle bundle --replay
    """
    if agent is not None and not canonical.is_digest(agent):
        raise UsageError("usage.option", f"--agent: {agent!r} is not sha256: and 64 hexadecimal digits")
    evidence = evidence_of(bundle, profile, replay=replay, jobs=jobs, progress=progress())
    given, policy = taken(passport), context.load_policy(trust)
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
            require_tier=require_tier,
            proof=given.proof,
            **standing,
            **evidence,
        )
    )
    screen = show_verification(result, verbose=verbose, dated=at is not None)
    emit(result.to_dict, screen, code=result.exit_code)


def show(
    passport: PassportFile,
    trust: Annotated[
        Path | None, about(TRUST, "Verify it under this trust policy as well.", envvar=None)
    ] = None,
    registry: Registry = None,
    at: AsOf = None,
    verbose: Verbose = False,
) -> None:
    """Show what a passport says, on one screen. Without --trust its signature is not checked.

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
        _screen(verified, shown, in_pdf=given.in_pdf, dated=at is not None, verbose=verbose),
        code=verified.exit_code if verified else Exit.OK,
    )


def _screen(
    verified: Verification | None, shown: source.Source | None, *, in_pdf: bool, dated: bool, verbose: bool
) -> Iterator[str]:
    if verified is None:
        yield "SIGNATURE NOT CHECKED: anyone can write this. Check it: --trust FILE"
    else:
        yield from fold(verdict_of(verified, dated=dated))
        skipped = [step.id for step in verified.steps if step.status == "skipped"]
        yield from fold(f"Not checked: {', '.join(skipped) or 'no step'}; 'certkit verify' tells why")
    if in_pdf:
        yield from fold("Taken out of a PDF, whose pages are not signed: compare the id that they print")
    if shown is not None:
        yield from show_passport(shown, verbose=verbose)


def _document(data: bytes | None, verified: Verification | None) -> Show:
    passport = parse(data) if data is not None else None
    return Show(
        at=verified.at if verified else None,
        passport_id=passport.passport_id if passport else None,
        signature_checked=verified is not None,
        verdict=verified.verdict if verified else None,
        statement=canonical.loads(passport.payload) if passport else None,
    )
