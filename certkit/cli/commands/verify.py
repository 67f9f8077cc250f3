"""``certkit verify``: whether a passport holds. Of the assessment only findings' codes are loaded for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import emit, fold, progress, warn
from certkit.ground import canonical, wording
from certkit.ground.errors import UsageError
from certkit.ground.text import quoted
from certkit.passport import keys, words
from certkit.passport.checks import NOT_ASKED
from certkit.passport.opening import STEPS
from certkit.passport.trust import Trust, TrustedIssuer, TrustedKey
from certkit.passport.verification import verify as check
from certkit.workflow.verifying import evidence_of, remembered, standing_of, taken

if TYPE_CHECKING:
    from datetime import datetime

    from certkit.passport.opening import Claim, Verification
    from certkit.passport.pdf import Taken


_STEPS: Final = {"passed": "+", "failed": "x", "skipped": "-"}


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
    evidence = evidence_of(bundle, profile, answers, replay=replay, progress=progress())
    given, policy = taken(passport), _policy(trust, key, issuer)
    named = {"issuer" if key is None else "stated": issuer}  # no policy tells the name of a lone key
    asked = {"agent": agent, "domain": domain, "require_tier": require_tier, **named}
    result = given.told(checked(passport, given, policy, registry, at, **asked, **evidence))
    if registry is not None and remember:
        for problem in remembered(registry, result, policy, context.heads_path()):
            warn(problem)
    emit(result, show_verification(result, verbose=verbose, dated=at is not None))


def checked(
    passport: Path, given: Taken, policy: Trust, registry: Path | None, at: datetime | None, **asked: Any
) -> Verification:
    """Verify a passport, with the files beside it and what the registry says of it."""
    now, heads = at or context.now(), context.heads_path()
    standing = standing_of(passport, registry, trust=policy, at=now, heads=heads, progress=progress())
    return check(given.passport, trust=policy, at=now, proof=given.proof, **standing, **asked)


def _policy(trust: Path | None, key: Path | None, issuer: str | None) -> Trust:
    """Return the policy of a file, or for a single key the default one."""
    if key is None:
        return context.load_policy(trust)
    if trust is not None or issuer is None:
        raise UsageError("usage.option", "--key stands in place of --trust, and takes --issuer NAME")
    pem = keys.public_pem(keys.load_public(key))
    return Trust(issuers=(TrustedIssuer(name=f"the key in {key.name}", keys=(TrustedKey(pem=pem),)),))


def show_verification(result: Verification, *, verbose: bool, dated: bool) -> Iterator[str]:
    """Print a verification: the verdict, the claim, the steps that were made, and what was not checked."""
    yield from show_verdict(result, dated=dated)
    yield ""
    if result.claim is not None:
        yield from _claim(result.claim)
    if result.statement is not None and (stated := result.statement.predicate.integrity):
        yield from fold(f"probes, beside the tier: {words.commitments(stated)}")
        yield ""
    for step in result.steps:
        if verbose or step.status != "skipped":
            text = f"{_STEPS[step.status]} {step.number:>2} {step.id:<10} {_one_line(step.detail)}"
            yield from fold(text, rest=" " * 16)
    yield ""
    yield "Not checked:"
    for item in result.not_checked:
        yield from fold(item, first="  ", rest="    ")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _claim(claim: Claim) -> Iterator[str]:
    agent, issuer = claim.agent, claim.issuer
    yield from fold(
        f"{quoted(f'{agent.name} {agent.version}')}, it is claimed: {words.one_line(claim.claim)}"
    )
    yield from fold(f"domains: {', '.join(map(quoted, claim.domains)) or 'none'}")
    known_as = f" (calls itself {quoted(issuer.stated_name)})"
    same = issuer.stated_name == issuer.name
    yield from fold(f"issued by {quoted(issuer.name)}{'' if same else known_as}")
    yield f"valid {words.utc(claim.not_before)} to {words.utc(claim.not_after)}"
    tiers = claim.readings
    yield from fold(wording.readings(tiers["table"], tiers["bounded"], decides=claim.decides))
    for item in claim.challenges:
        if item.severity == "serious":
            code, message = words.one_line(item.code), words.one_line(item.message)
            authors = [quoted(name) for name in item.answered_by or ()]
            told = wording.challenge(code, item.state, message, authors)
            yield from fold(told, rest="    ")
    yield ""


def show_verdict(result: Verification, *, dated: bool) -> Iterator[str]:
    """Print the verdict, and below it that revocation or a replay was not asked for, where it is so."""
    yield from fold(verdict_of(result, dated=dated))
    steps = dict(zip(STEPS, result.steps, strict=True))
    status, evidence, replay = steps["status"], steps["evidence"], steps["replay"]
    if result.deciding is None and status.status == "skipped":
        reason = "no registry or status file given" if status.code == NOT_ASKED else _one_line(status.detail)
        yield from fold(f"not checked: revocation ({reason})")
    if result.deciding is None and (evidence.status, replay.status) == ("passed", "skipped"):
        yield from fold(
            "not checked: verdict and challenges were not computed again from the bundle (--replay)"
        )


def verdict_of(result: Verification, *, dated: bool) -> str:
    """Return the verdict in words, with the step that decides it, and (`dated`) the time it speaks of."""
    time = f", as of {words.utc(result.at)}" if dated else ""
    if result.deciding is not None:
        step = result.deciding
        return f"REJECTED at step {step.number} ({step.id}){time}: {_one_line(step.detail)} [{step.code}]"
    if result.contested is not None:
        return f"CONTESTED{time}: {_one_line(result.contested.detail)}; your policy does not accept that"
    if result.verdict == "unverifiable":
        return f"UNVERIFIABLE{time}: nothing is wrong, but something that is required could not be checked"
    profile = result.claim.profile if result.claim else None
    if profile is None or profile.known:
        return f"VERIFIED{time}: what was checked holds, under your trust policy"
    return (
        f"VERIFIED{time}, by profile {quoted(profile.id)} ({words.short(profile.digest)}…), which does not"
        " come with certkit and is not listed in your policy: what was checked holds"
    )
