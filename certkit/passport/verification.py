"""Verification of a passport, in eleven numbered steps.

     1. parse      strict JSON, the form of a Sigstore bundle v0.3
     2. envelope   exactly one signature, the payload type, canonical base64
     3. signature  by a trusted key, with the algorithm of that key's type; the hint only selects; or with a
                   certificate that names a trusted identity, verified against the policy's trusted root
     4. types      statement and predicate types; the signed statement's form and inner agreement
     5. subject    the agent and the bundle that the verifier has in hand are those of the statement
     6. validity   at the time asked for, and the signing time, proven where that can be, inside the
                   windows of the key, or of the certificate's authorities and logs
     7. registry   the offline proof shows the passport in a trusted log
     8. status     not revoked, not superseded, as of a checkpoint that is not too old
     9. evidence   every file of the bundle has its digest
    10. replay     the claim, computed again from the bundle
    11. policy     tier, reading, profile, domains, specimen

    verification = verify(data, trust=trust, at=now)
    verification.verdict, verification.exit_code

Each step passes, fails or is skipped with a reason. What rests on a failed step is skipped, never passed:
nothing of the payload is read before its signature held. Bytes in, a value out: this module reads no file,
no clock and no network, and never writes. What needs a bundle or a registry comes as a callable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from certkit.errors import CertkitError, UnavailableError, UsageError
from certkit.passport import checks, logs, tables
from certkit.passport.opening import RefusedPassportError, open_signed
from certkit.passport.outcome import (
    STEPS,
    Agent,
    Claim,
    Profile,
    SignedBy,
    Step,
    StepId,
    Verification,
    failed,
    passed,
    skipped,
)
from certkit.passport.payload import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from certkit.passport.checks import Case, StatusSource
    from certkit.passport.opening import Signed
    from certkit.passport.replay import Opened
    from certkit.passport.statement import Statement
    from certkit.passport.trust import Trust

_ON_STATEMENT: Final[dict[StepId, Callable[[Case], str]]] = {
    "subject": checks.subject,
    "validity": checks.validity,
    "registry": logs.registry,
    "status": logs.status,
    "evidence": checks.evidence,
    "replay": checks.replay,
    "policy": checks.policy,
}
RESTS: Final = "passport.rests-on-failed"


def verify(
    data: bytes,
    *,
    trust: Trust,
    at: datetime,
    agent: str | None = None,
    domain: str | None = None,
    require_tier: int | None = None,
    evidence: Callable[[], Opened] | None = None,
    replay: Callable[[Statement], Mapping[str, Any]] | None = None,
    proof: bytes | CertkitError | None = None,
    status: StatusSource | None = None,
    beside: StatusSource | None = None,
) -> Verification:
    """Verify the bytes of a passport against a trust policy, at an aware time.

    `agent` is the digest of the agent that the passport must be about; `domain` and `require_tier` are
    the intended deployment. `evidence` opens the bundle, `replay` computes the claim from it again (see
    `certkit.passport.replay.from_bundle`); `proof` is the text of the offline log proof, or why it could not
    be read; `status` tells whether the passport still stands, and so does `beside`, which came along with it:
    of both the worse answer counts, and `beside` is needed only where the policy requires a status. Nothing
    about the passport raises: it is told in the result.
    """
    if at.tzinfo is None:
        raise UsageError("usage.option", "the time of verification has no offset")
    case = None
    try:
        passport = open_signed(data, trust)
    except RefusedPassportError as refused:
        passport_id = refused.passport_id
        resting = STEPS[len(refused.steps) :]
        steps = refused.steps + tuple(skipped(name, RESTS, "rests on a step that failed") for name in resting)
    else:
        passport_id = passport.passport_id
        case = checks.Case(
            passport=passport,
            signing=checks.signing(passport, trust),
            trust=trust,
            at=at,
            agent=agent,
            domain=domain,
            require_tier=require_tier,
            opened=None if evidence is None else _opened(evidence),
            replay=replay,
            proof=proof,
            status=status,
            beside=beside,
        )
        steps = passport.steps + tuple(_step(name, check, case) for name, check in _ON_STATEMENT.items())
    asked = {"evidence": evidence, "replay": replay, "status": status}
    # A timestamp is required of the sixth step, which is among those that are always needed.
    needed = {*trust.require, *STEPS[:6], *(name for name, given in asked.items() if given is not None)}
    return Verification(
        at=at,
        passport_id=passport_id,
        verdict=_verdict(steps, needed),
        steps=steps,
        not_checked=tuple(_left_open(steps, case)),
        claim=_claim(case.passport) if case else None,
        statement=case.passport.statement if case else None,
    )


def _opened(evidence: Callable[[], Opened]) -> Opened | CertkitError:
    try:
        return evidence()
    except CertkitError as error:
        return error


def _step(name: StepId, check: Callable[[Case], str], case: Case) -> Step:
    try:
        return passed(name, check(case))
    except UnavailableError as error:
        return skipped(name, error.code, str(error))
    except CertkitError as error:
        return failed(name, error)


def _verdict(steps: tuple[Step, ...], needed: set[str]) -> Literal["verified", "rejected", "unverifiable"]:
    """Return the verdict; what the policy requires or the caller asked for is `needed`."""
    if any(step.status == "failed" for step in steps):
        return "rejected"
    if any(step.status == "skipped" and step.id in needed for step in steps):
        return "unverifiable"
    return "verified"


def _left_open(steps: tuple[Step, ...], case: Case | None) -> Iterator[str]:
    """Yield in words what this verification says nothing about."""
    resting = [step.id for step in steps if step.code == RESTS]
    if resting:
        yield f"{', '.join(resting)}: they rest on a step that failed"
    for step in steps:
        if step.status == "skipped" and step.code != RESTS:
            yield f"{step.id}: {step.detail}"
    if case is None:
        return
    profile = case.predicate.assessment.profile
    replayed = any(step.id == "replay" and step.status == "passed" for step in steps)
    if tables.packaged(profile) is None and not replayed:
        yield (
            f"criteria: whether they are those of {profile.digest}, which it calls {profile.id}; no profile"
            " of that digest comes with certkit"
        )
    if case.agent is None and case.opened is None:
        yield "subject: whether the agent in use is this one; no agent digest and no bundle was given"
    if case.signing.time is None and case.signing.fault is None:
        yield f"signing time: it is the issuer's word, {case.signing.reason}"
    material = case.passport.file.material
    if material.log_entries and not material.keyless:
        yield "log entries inside the file: beside a key they are not read"
    yield "the records themselves: that they tell what happened is the evaluator's word"


def _claim(passport: Signed) -> Claim:
    predicate, signer = passport.statement.predicate, passport.signer
    judged = predicate.assessment
    validity = plain(predicate.validity)
    return Claim(
        claim=predicate.claim,
        agent=Agent(
            name=predicate.agent.name, version=predicate.agent.version, digest=predicate.agent.digest
        ),
        tier=judged.tier,
        profile=Profile(id=judged.profile.id, digest=judged.profile.digest, reading=judged.profile.reading),
        domains=predicate.scope.domains,
        origin=predicate.origin,
        issuer=SignedBy(name=signer.issuer, stated_name=predicate.issuer.name, key_id=signer.id),
        not_before=validity["not_before"],
        not_after=validity["not_after"],
    )
