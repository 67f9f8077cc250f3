"""``certkit verify``: whether a passport holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from certkit.api.passport_files import evidence_of, remembered, taken, trust_key, verify_taken
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import coloured, emit, entry, fold, progress, warn
from certkit.ground import canonical
from certkit.ground.errors import UsageError
from certkit.ground.text import quoted
from certkit.passport import words
from certkit.passport.checks import NOT_ASKED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from certkit.cli.emit import Line
    from certkit.passport.pdf import Taken
    from certkit.passport.steps import Step
    from certkit.passport.trust import Trust
    from certkit.passport.verify import Verification

_MARKS: Final = {"passed": "✓", "failed": "✗", "skipped": "–"}
_STYLES: Final = {"passed": "", "failed": "bold red", "skipped": "dim"}
_VERDICTS: Final = {
    "verified": ("✓", "bold green"),
    "rejected": ("✗", "bold red"),
    "unverifiable": ("–", "bold yellow"),
}


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
    answers: opt.ContextFile = None,
    agent: Annotated[str | None, opt.AGENT(help="The agent it must be about.", metavar="DIGEST")] = None,
    domain: Annotated[str | None, opt.DOMAIN()] = None,
    require_tier: Annotated[int | None, opt.REQUIRE_TIER()] = None,
    registry: opt.Registry = None,
    remember: opt.Remember = True,
    at: opt.AsOf = None,
    verbose: opt.Verbose = False,
) -> None:
    """Verify a passport against your trust policy: signature, judgement, validity, evidence, tier.

    certkit judges the signed summary again, so no figure of the passport has to be believed. With --bundle
    and --replay it also summarises the records again.

    Works offline. It writes one thing, the newest head of the registry that it asked: an older copy is then
    refused the next time. It takes a proof of registration from PASSPORT.tlog-proof, and a status from
    PASSPORT.status, where these files are there. In a PDF it verifies the attached passport and ignores the
    pages. With --key and --issuer no policy is needed.

    Exit code 0: verified; 1: signature, form, judgement or subject is wrong; 3: malformed; 4: something
    required could not be checked; 6: ended; 7: evidence, replay or registry differ; 8: not trusted.

    Example: certkit verify passport.json --bundle bundle --replay
    """
    if agent is not None and not canonical.is_digest(agent):
        raise UsageError("usage.option", f"--agent: {agent!r} is not sha256: and 64 hexadecimal digits")
    evidence = evidence_of(bundle, answers, replay=replay, progress=progress())
    given, policy = taken(passport), policy_of(trust, key, issuer)
    named = {"issuer" if key is None else "stated": issuer}  # no policy names a lone key
    asked = {"agent": agent, "domain": domain, "require_tier": require_tier, **named}
    result = checked(passport, given, policy, registry, at, **asked, **evidence)
    if registry is not None and remember:
        for problem in remembered(registry, result, policy, context.heads_path()):
            warn(problem)
    step = result.deciding or result.undecided
    hints = [step.hint] if step and step.hint else []
    emit(result, show_verification(result, policy, verbose=verbose, dated=at is not None), hints=hints)


def checked(
    passport: Path, given: Taken, policy: Trust, registry: Path | None, at: datetime | None, **asked: Any
) -> Verification:
    """Verify a passport, with the files beside it and what the registry says of it."""
    now, heads = at or context.now(), context.heads_path()
    return verify_taken(passport, given, policy, registry, now, heads=heads, progress=progress(), **asked)


def policy_of(trust: Path | None, key: Path | None, issuer: str | None) -> Trust:
    """Return the policy of a file, or one that trusts a lone key."""
    if key is None:
        return context.load_policy(trust)
    if trust is not None or issuer is None:
        raise UsageError("usage.option", "--key stands in place of --trust, and takes --issuer NAME")
    return trust_key(key)


def show_verification(result: Verification, policy: Trust, *, verbose: bool, dated: bool) -> Iterator[Line]:
    """Print a verification: verdict, claim, open questions, what was not checked; then the details."""
    yield from show_verdict(result, dated=dated)
    if verbose:
        yield from ("", "Policy:")
        for label, text in words.policy_rows(policy):
            yield from entry(label, text, words.POLICY_LABEL)
    yield ""
    for step in result.steps:
        asked = step.code != NOT_ASKED and result.statement is not None
        if verbose or step.status != "skipped" or asked:
            yield from _step(step)
    yield ""
    yield from _details(result)
    if verbose:
        yield from ("", "Not checked:")
        for item in result.not_checked:
            yield from fold(item, first="  ", rest="    ")


def show_verdict(result: Verification, *, dated: bool) -> Iterator[Line]:
    """Print the verdict, the claim, open questions and what was not checked: four lines."""
    mark, style = _VERDICTS[result.verdict]
    yield from coloured(fold(f"{mark} {words.headline(result, dated=dated)}"), style)
    if result.claim is not None and result.statement is not None:
        agent, evaluation = result.claim.agent, result.statement.predicate.evaluation
        yield from fold(f"{quoted(f'{agent.name} {agent.version}')}: {words.tiers_text(evaluation)}")
        explained = " ('certkit explain CODE' says what a code means)" if result.claim.challenges else ""
        yield from fold(f"{words.questions_text(result.claim.challenges)}{explained}")
    yield from fold(words.not_checked_text(result))


def _step(step: Step) -> Iterator[Line]:
    text = f"{_MARKS[step.status]} {step.number:>2} {step.id:<10} {words.one_line(step.detail)}"
    yield from coloured(fold(text, rest=" " * 16), _STYLES[step.status])


def _details(result: Verification) -> Iterator[str]:
    if result.passport_id is not None:
        yield f"passport {result.passport_id}"
    if result.claim is None or result.statement is None:
        return
    claim, predicate = result.claim, result.statement.predicate
    known_as = f" (calls itself {quoted(claim.issuer.stated_name)})"
    same = claim.issuer.stated_name == claim.issuer.name
    yield from fold(f"issued by {quoted(claim.issuer.name)}{'' if same else known_as}")
    yield f"valid {words.utc(claim.not_before)} to {words.utc(claim.not_after)}"
    yield from fold(f"domains: {', '.join(map(quoted, claim.domains)) or 'none'}")
    if predicate.facts.integrity is not None:
        yield from fold(f"probes, which move no tier: {words.commitments_text(predicate.facts.integrity)}")
