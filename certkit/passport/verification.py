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

from msgspec import Struct

from certkit import canonical
from certkit.errors import CertkitError, UnavailableError, UsageError
from certkit.passport import checks, dsse, logs, sealed, tables
from certkit.passport import statement as st
from certkit.passport.outcome import STEPS, Agent, Claim, Profile, SignedBy, Step, Verification

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from certkit.passport.checks import Case, StatusSource
    from certkit.passport.replay import Opened
    from certkit.passport.sealed import Sealed
    from certkit.passport.trust import Candidate, Trust

_ON_STATEMENT: Final[dict[str, Callable[[Case], str]]] = {
    "subject": checks.subject,
    "validity": checks.validity,
    "registry": logs.registry,
    "status": logs.status,
    "evidence": checks.evidence,
    "replay": checks.replay,
    "policy": checks.policy,
}
RESTS: Final = "passport.rests-on-failed"


class _Read(Struct, frozen=True, kw_only=True, eq=False):
    """What the first four steps came to: the steps made, and as much of the passport as they reached."""

    steps: tuple[Step, ...]
    file: Sealed | None
    envelope: dsse.Envelope | None
    signer: Candidate | None
    statement: st.Statement | None
    signing: checks.Signing


def verify(
    data: bytes,
    *,
    trust: Trust,
    at: datetime,
    agent: str | None = None,
    domain: str | None = None,
    require_tier: int | None = None,
    evidence: Callable[[], Opened] | None = None,
    replay: Callable[[st.Statement], Mapping[str, Any]] | None = None,
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
    read = _read(data, trust)
    steps = read.steps
    if read.envelope and read.signer and read.statement:
        case = checks.Case(
            passport_id=canonical.digest(read.envelope.payload),
            statement=read.statement,
            signer=read.signer,
            signing=read.signing,
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
        steps += tuple(_step(name, check, case) for name, check in _ON_STATEMENT.items())
    steps += tuple(_resting(name) for name in STEPS[len(steps) :])
    asked = {"evidence": evidence, "replay": replay, "status": status}
    # A timestamp is required of the sixth step, which is among those that are always needed.
    needed = {*trust.require, *STEPS[:6], *(name for name, given in asked.items() if given is not None)}
    return Verification(
        at=at,
        passport_id=canonical.digest(read.envelope.payload) if read.envelope else None,
        verdict=_verdict(steps, needed),
        steps=steps,
        not_checked=tuple(_left_open(steps, read, compared=agent is not None or evidence is not None)),
        claim=_claim(read.statement, read.signer) if read.statement and read.signer else None,
        statement=read.statement,
    )


def _read(data: bytes, trust: Trust) -> _Read:
    """Take steps 1 to 4, each only where the one before passed."""
    steps: list[Step] = []
    file = envelope = signer = statement = None
    signing = checks.Signing()
    try:
        file = sealed.parse(data)
        steps.append(_passed("parse", "strict JSON in the form of a Sigstore bundle"))
        envelope = dsse.parse(file.envelope, payload_type=sealed.PAYLOAD_TYPE)
        steps.append(_passed("envelope", "one signature over an in-toto statement"))
        signer = checks.signature(file, envelope, trust)
        steps.append(_passed("signature", _signed_by(signer)))
        statement = checks.statement(envelope.payload, signer)
        steps.append(_passed("types", "an agent passport that agrees with itself"))
        signing = checks.signing(file, envelope, trust)
    except CertkitError as error:
        steps.append(_failed(STEPS[len(steps)], error))
    return _Read(
        steps=tuple(steps),
        file=file,
        envelope=envelope,
        signer=signer,
        statement=statement,
        signing=signing,
    )


def _signed_by(signer: Candidate) -> str:
    if signer.identity is None:
        return f"by {signer.issuer}, key {signer.id}"
    return f"by {signer.issuer}, signed in as {signer.identity.identity} at {signer.identity.issuer}"


def _opened(evidence: Callable[[], Opened]) -> Opened | CertkitError:
    try:
        return evidence()
    except CertkitError as error:
        return error


def _step(name: str, check: Callable[[Case], str], case: Case) -> Step:
    try:
        return _passed(name, check(case))
    except UnavailableError as error:
        return _made(name, "skipped", str(error), error.code)
    except CertkitError as error:
        return _failed(name, error)


def _passed(name: str, detail: str) -> Step:
    return _made(name, "passed", detail)


def _failed(name: str, error: CertkitError) -> Step:
    return _made(name, "failed", str(error), error.code)


def _resting(name: str) -> Step:
    return _made(name, "skipped", "rests on a step that failed", RESTS)


def _made(
    name: str, status: Literal["passed", "failed", "skipped"], detail: str, code: str | None = None
) -> Step:
    return Step(number=STEPS.index(name) + 1, id=name, status=status, code=code, detail=detail)


def _verdict(steps: tuple[Step, ...], needed: set[str]) -> Literal["verified", "rejected", "unverifiable"]:
    """Return the verdict; what the policy requires or the caller asked for is `needed`."""
    if any(step.status == "failed" for step in steps):
        return "rejected"
    if any(step.status == "skipped" and step.id in needed for step in steps):
        return "unverifiable"
    return "verified"


def _left_open(steps: tuple[Step, ...], read: _Read, *, compared: bool) -> Iterator[str]:
    """Yield in words what this verification says nothing about."""
    resting = [step.id for step in steps if step.code == RESTS]
    if resting:
        yield f"{', '.join(resting)}: they rest on a step that failed"
    for step in steps:
        if step.status == "skipped" and step.code != RESTS:
            yield f"{step.id}: {step.detail}"
    if read.statement is None:
        return
    judged = read.statement.predicate.assessment.profile
    replayed = any(step.id == "replay" and step.status == "passed" for step in steps)
    if judged.digest not in tables.packaged() and not replayed:
        yield (
            f"criteria: whether they are those of {judged.digest}, which it calls {judged.id}; no profile of"
            " that digest comes with certkit"
        )
    if not compared:
        yield "subject: whether the agent in use is this one; no agent digest and no bundle was given"
    if read.signing.time is None and read.signing.fault is None:
        yield f"signing time: it is the issuer's word, {read.signing.reason}"
    if read.file and read.file.material.log_entries and not read.file.material.keyless:
        yield "log entries inside the file: beside a key they are not read"
    yield "the records themselves: that they tell what happened is the evaluator's word"


def _claim(statement: st.Statement, signer: Candidate) -> Claim:
    predicate = statement.predicate
    judged = predicate.assessment
    validity = st.plain(predicate.validity)
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
