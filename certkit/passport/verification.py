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
nothing of the payload is read before its signature held. What needs a bundle or a log comes as a callable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from certkit.ground.document import fill
from certkit.ground.errors import CertkitError, UnavailableError, UsageError
from certkit.ground.text import quoted
from certkit.passport import bounds, checks, logs, payload
from certkit.passport import opening as out
from certkit.passport.opening import RefusedPassportError, open_signed
from certkit.passport.replay import Opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from certkit.passport.checks import Case, Known, StatusSource
    from certkit.passport.opening import Signed
    from certkit.passport.statement import Predicate, Statement
    from certkit.passport.trust import Trust


def _validity(case: Case) -> str:
    """Check the validity; a key that is retired by now needs a proof of when it signed.

    Nothing else keeps its holder from signing today and stating an earlier time: a trusted timestamp does,
    and so does a log that took the passport in while the key was trusted.
    """
    detail, until = checks.validity(case), case.passport.signer.not_after
    if until is None or case.at <= until or case.signing.time is not None:
        return detail
    try:
        return f"{detail}; signed before its key was retired: {logs.registry(case)}"
    except CertkitError as error:
        raise UnavailableError(
            "passport.unavailable",
            f"its key is retired since {checks.shown(until)}, and nothing proves that it signed before:"
            f" {case.signing.reason}, and {error}",
        ) from None


_ON_STATEMENT: Final[dict[out.StepId, Callable[[Case], str]]] = {
    "subject": checks.subject,
    "validity": _validity,
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
    issuer: str | None = None,
    stated: str | None = None,
    require_tier: int | None = None,
    evidence: Callable[[], Opened] | None = None,
    replay: Callable[[Statement], Statement] | None = None,
    proof: bytes | CertkitError | None = None,
    status: StatusSource | None = None,
    beside: StatusSource | None = None,
) -> out.Verification:
    """Verify the bytes of a passport against a trust policy, at an aware time.

    `agent` is the digest of the agent that the passport must be about, `issuer` what the policy must call
    its signer, `stated` what the passport must call it, which any signer may write; `domain` and
    `require_tier` are the intended deployment. `evidence` opens the bundle, `replay` computes the claim from
    it again (`certkit.passport.claim`); `proof` is the text of the offline log proof, or why it could not be
    read. `status` tells whether the passport still stands, and so does `beside`, which came along with it;
    the worse answer counts. Nothing about the passport raises: it is told in the result.
    """
    if at.tzinfo is None:
        raise UsageError("usage.option", "the time of verification has no offset")
    case = None
    try:
        passport = open_signed(data, trust)
    except RefusedPassportError as refused:
        passport_id = refused.passport_id
        resting = out.STEPS[len(refused.steps) :]
        steps = refused.steps + tuple(
            out.skipped(name, RESTS, "rests on a step that failed") for name in resting
        )
    else:
        passport_id = passport.passport_id
        case = checks.Case(
            passport=passport,
            signing=checks.signing(passport, trust),
            trust=trust,
            at=at,
            agent=agent,
            domain=domain,
            issuer=issuer,
            stated=stated,
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
    # What the policy cannot tell of a profile that nobody knows leaves the last step open.
    needed = {
        *trust.require,
        *out.STEPS[:6],
        out.STEPS[-1],
        *(name for name, given in asked.items() if given is not None),
    }
    return out.Verification(
        at=at,
        passport_id=passport_id,
        verdict=_verdict(steps, needed),
        steps=steps,
        not_checked=tuple(_left_open(steps, case)),
        claim=_claim(case.passport, checks.known(case)) if case else None,
        statement=case.passport.statement if case else None,
    )


def _opened(evidence: Callable[[], Opened]) -> Opened | CertkitError:
    try:
        return evidence()
    except CertkitError as error:
        return error


def _step(name: out.StepId, check: Callable[[Case], str], case: Case) -> out.Step:
    try:
        return out.passed(name, check(case))
    except UnavailableError as error:
        return out.skipped(name, error.code, str(error))
    except CertkitError as error:
        return out.failed(name, error)


def _verdict(
    steps: tuple[out.Step, ...], needed: set[str]
) -> Literal["verified", "rejected", "unverifiable"]:
    """Return the verdict; what the policy requires or the caller asked for is `needed`."""
    if any(step.status == "failed" for step in steps):
        return "rejected"
    if any(step.status == "skipped" and step.id in needed for step in steps):
        return "unverifiable"
    return "verified"


def _left_open(steps: tuple[out.Step, ...], case: Case | None) -> Iterator[str]:
    """Yield in words what this verification says nothing about."""
    resting = [step.id for step in steps if step.code == RESTS]
    if resting:
        yield f"{', '.join(resting)}: they rest on a step that failed"
    for step in steps:
        if step.status == "skipped" and step.code != RESTS:
            yield f"{step.id}: {step.detail}"
    if case is None:
        return
    done = {step.id for step in steps if step.status == "passed"}
    yield from _not_recomputed(case.predicate, done)
    answered = [item.code for item in case.predicate.challenges if item.state == "answered"]
    held = "replay" in done and isinstance(case.opened, Opened) and case.opened.context is not None
    if answered and not held:
        named = ", ".join(map(quoted, answered))
        yield f"answers to {named}, and who agreed: the issuer's word; --replay --context FILE looks at them"
    if case.agent is None and case.opened is None:
        yield "subject: whether the agent in use is this one; no agent digest and no bundle was given"
    if case.signing.time is None and case.signing.fault is None:
        yield f"signing time: it is the issuer's word, {case.signing.reason}"
    material = case.passport.file.verification_material
    if material.tlog_entries and not material.keyless:
        yield "log entries inside the file: beside a key they are not read"
    if done & {"registry", "status"}:
        yield (
            "the log: whether others see another or an older version; a remembered head or a witness that"
            " the policy requires makes it less likely"
        )
    yield f"the evaluator: {_evaluated(case.predicate)}"
    yield "other runs: whether any were made and left out is the evaluator's word"
    yield "the records themselves: that they tell what happened is the evaluator's word"


def _not_recomputed(predicate: Predicate, done: set[out.StepId]) -> Iterator[str]:
    """Yield what of the rows was not computed again: everything is where a replay was made."""
    if "replay" in done:
        return
    profile = predicate.assessment.profile
    if payload.packaged(profile) is None:
        yield (
            f"criteria: whether they are those of {profile.digest}, which it calls {quoted(profile.id)};"
            " no profile of that digest comes with certkit"
        )
    for reason, names in bounds.unchecked(predicate).items():
        yield f"bounds of {', '.join(map(quoted, names))}: {reason}"


def _evaluated(predicate: Predicate) -> str:
    """Say who evaluated and how they stand to developer and issuer, all of it as the issuer states it."""
    evaluator, issuer = predicate.protocol.evaluator, predicate.issuer
    if evaluator is None:
        return "who ran the evaluation is not stated"
    developer, to_issuer = evaluator.relation or "not stated", issuer.relation_to_evaluator or "not stated"
    return (
        f"{quoted(evaluator.name)}, whose relation to the developer is: {developer}, to the issuer:"
        f" {to_issuer}; all of it is the issuer's word"
    )


def _claim(passport: Signed, known: Known | None) -> out.Claim:
    predicate, signer = passport.statement.predicate, passport.signer
    judged = predicate.assessment
    return fill(
        out.Claim,
        predicate,
        tier=judged.tier,
        readings={"table": judged.table.tier, "bounded": judged.bounded.tier},
        decides=judged.profile.reading,
        profile=fill(out.Profile, judged.profile, known=known),
        domains=predicate.scope.domains,
        issuer=out.SignedBy(name=signer.issuer, stated_name=predicate.issuer.name, key_id=signer.id),
        not_before=predicate.validity.not_before,
        not_after=predicate.validity.not_after,
    )
