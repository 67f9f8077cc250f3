"""Verification of a passport, in twelve numbered steps.

     1. parse      strict JSON, the form of a Sigstore bundle v0.3
     2. envelope   exactly one signature, the payload type, canonical base64
     3. signature  by a trusted key, with the algorithm of that key's type; the hint only selects; or with a
                   certificate that names a trusted identity, verified against the policy's trusted root
     4. types      statement and predicate types, the rules, the form, nothing unknown; its parts agree
     5. judgement  the signed summary, judged again, gives the signed assessment
     6. subject    the agent and the bundle that the verifier has in hand are those of the statement
     7. validity   the passport is valid at the time asked for, and was signed while the key was trusted, or
                   the certificate's authorities and logs; a timestamp proves when, where there is one
     8. registry   the offline proof shows the passport in a trusted log
     9. status     not revoked, not superseded, as of a checkpoint that is not too old
    10. evidence   every file of the bundle has its digest; the facts are those of its manifest
    11. replay     the records, summarised again, give the signed summary
    12. policy     tier, reading, profile, domains, specimen, contested tiers

    verification = verify(data, trust=trust, at=now)
    verification.verdict, verification.exit_code

Each step passes, fails or is skipped with a reason. What rests on a failed step is skipped, never passed. A
passport of other rules is `unverifiable`: its signature is checked, and nothing else is read. Text, JSON and
exit code are all taken from `Verification`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from certkit.assessment.assessment import Severity
from certkit.ground.document import Document, Part, Time, fill
from certkit.ground.errors import CertkitError, Exit, UnavailableError, UsageError
from certkit.ground.text import quoted
from certkit.passport import checks, logs
from certkit.passport.checks import AnswersGiven, Case, EvidenceSource, StatusSource
from certkit.passport.passport import Predicate, Statement
from certkit.passport.steps import (
    STEPS,
    RefusedPassportError,
    SignedPassport,
    Step,
    StepId,
    failed,
    open_signed,
    passed,
    skipped,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from certkit.assessment.assessment import Assessment
    from certkit.bundle.facts import Facts
    from certkit.passport.trust import Trust

_LEFT_OPEN: Final[dict[StepId, str]] = {
    "evidence": "evidence",
    "replay": "replay",
    "registry": "registry proof",
    "status": "revocation",
    "subject": "subject",
}
"""What a skipped step leaves unchecked, in order of weight."""


class Unchecked(Struct, frozen=True, kw_only=True):
    """Something that this verification did not check.

    Attributes:
        what: in a word or two.
        why: why not, or what it leaves open.
        option: what checks it, or is in the way; None where no option does.
    """

    what: str
    why: str
    option: str | None = None

    def __str__(self) -> str:
        return f"{self.what}: {self.why}" + (f" ({self.option})" if self.option else "")


_PAGES: Final = Unchecked(
    what="the pages of the PDF",
    why="nobody signed them, only the passport attached to them; compare the id that they print",
)


class ClaimedAgent(Part, frozen=True, kw_only=True):
    """The agent that a passport is about.

    Attributes:
        name: its name.
        version: its version.
        provider: who provides it.
        lineage: the name under which its versions follow each other.
        digest: of its full description.
    """

    name: str
    version: str
    provider: str | None
    lineage: str
    digest: str


class ClaimedProfile(Part, frozen=True, kw_only=True):
    """The tier table of a passport.

    Attributes:
        id: its name.
        digest: of the table.
        reading: which reading decides.
        known: who knows the table by its digest, null for nobody.
    """

    id: str
    digest: str
    reading: str
    known: Literal["certkit", "policy"] | None


class SignedBy(Part, frozen=True, kw_only=True):
    """The issuer who signed.

    Attributes:
        name: in the verifier's policy.
        stated_name: in the passport.
        key_id: of the key.
    """

    name: str
    stated_name: str
    key_id: str


class OpenQuestion(Part, frozen=True, kw_only=True):
    """A serious finding, open or answered, or a warning.

    Attributes:
        code: of the finding.
        severity: how grave it is.
        state: whether somebody answered it.
    """

    code: str
    severity: Severity
    state: Literal["open", "answered"]


class Claim(Part, frozen=True, kw_only=True):
    """What a passport says whose judgement holds; the verdict says whether it is accepted.

    Attributes:
        agent: whom it is about.
        tier: the highest tier that stands.
        tier_strict: the same with provisional rows counted.
        readings: the tier by averages (`table`) and with confidence limits (`bounded`), findings aside.
        decides: the reading that decides.
        profile: the tier table.
        domains: where the agent was evaluated.
        origin: `simulated` evidence makes a specimen.
        issuer: who signed.
        not_before: begin of validity.
        not_after: end of validity.
        challenges: open and answered questions, the gravest first.
    """

    agent: ClaimedAgent
    tier: int
    tier_strict: int
    readings: dict[str, int]
    decides: str
    profile: ClaimedProfile
    domains: tuple[str, ...]
    origin: str
    issuer: SignedBy
    not_before: Time
    not_after: Time
    challenges: tuple[OpenQuestion, ...]


class Verification(Struct, frozen=True, kw_only=True):
    """The result of `verify`.

    Attributes:
        at: the time of verification.
        passport_id: SHA-256 of the payload, None where the envelope is malformed.
        verdict: what follows from the steps.
        steps: all twelve.
        undecided: the first step that was required and skipped, where that leaves the verdict open.
        unchecked: what nobody verified, the weightiest first.
        claim: None unless the first five steps passed.
        statement: the same.
    """

    at: datetime
    passport_id: str | None
    verdict: Literal["verified", "rejected", "unverifiable"]
    steps: tuple[Step, ...]
    undecided: Step | None
    unchecked: tuple[Unchecked, ...]
    claim: Claim | None
    statement: Statement | None

    def __repr__(self) -> str:
        return f"<Verification of {self.passport_id}: {self.verdict}, exit code {self.exit_code:d}>"

    @property
    def deciding(self) -> Step | None:
        """The first step that failed, None where none did."""
        return next((step for step in self.steps if step.status == "failed"), None)

    @property
    def not_checked(self) -> tuple[str, ...]:
        """What nobody verified, in words."""
        return tuple(map(str, self.unchecked))

    @property
    def exit_code(self) -> Exit:
        """0 verified; that of the first failed step where rejected; 4 unverifiable."""
        if self.deciding is not None:
            return self.deciding.exit_code
        return Exit.OK if self.verdict == "verified" else Exit.INSUFFICIENT

    def step(self, name: StepId) -> Step:
        """Return a step by its name."""
        return self.steps[STEPS.index(name)]

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``certkit verify --json`` prints."""
        at, claim = self.at.replace(microsecond=0), self.claim or UNSET
        return fill(VerificationDocument, self, at=at, claim=claim).to_dict()


class VerificationDocument(Document, frozen=True, kw_only=True, tag="urn:certkit:verification:v1"):
    """The verification of a passport, as certkit verify prints it."""

    at: Annotated[Time, Meta(description="the time of verification")]
    passport_id: Annotated[str, Meta(description="SHA-256 of the payload")] | None
    verdict: Literal["verified", "rejected", "unverifiable"]
    exit_code: int
    steps: Annotated[tuple[Step, ...], Meta(min_length=len(STEPS), max_length=len(STEPS))]
    not_checked: tuple[str, ...]
    claim: Annotated[Claim, Meta(description="present only where steps 1 to 5 passed")] | UnsetType = UNSET


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
    evidence: EvidenceSource | None = None,
    replay: bool = False,
    answers: Callable[[Predicate], AnswersGiven] | None = None,
    proof: bytes | CertkitError | None = None,
    status: StatusSource | None = None,
    beside: StatusSource | None = None,
    in_pdf: bool = False,
) -> Verification:
    """Verify the bytes of a passport; nothing about the passport raises, the result says it.

    Args:
        data: the file.
        trust: the verifier's policy.
        at: the time of verification, aware.
        agent: digest of the agent that the passport must be about.
        domain: a domain that it must cover.
        issuer: what the policy must call the signer.
        stated: what the passport must call its issuer; any signer may write any name.
        require_tier: the lowest tier that is accepted.
        evidence: the bundle.
        replay: summarise the records of the bundle again.
        answers: returns what a context that the verifier holds answers; looked at with the replay.
        proof: text of the offline log proof, or why it could not be read.
        status: says whether the passport still stands.
        beside: the same, of a file that came with the passport; the worse answer counts.
        in_pdf: whether the passport was taken out of a PDF, whose pages nobody signs.

    Raises:
        UsageError: ``usage.option`` where `at` has no offset.
    """
    if at.tzinfo is None:
        raise UsageError("usage.option", "the time of verification has no offset")
    case = None
    try:
        passport = open_signed(data, trust)
    except RefusedPassportError as refused:
        passport_id = refused.passport_id
        reason = UnavailableError(checks.RESTS, f"rests on step {refused.steps[-1].number}")
        steps = refused.steps + tuple(skipped(name, reason) for name in STEPS[len(refused.steps) :])
    else:
        passport_id = passport.passport_id
        facts = None if evidence is None else _facts(evidence, passport)
        case = Case(
            passport=passport,
            signing=checks.signing(passport, trust),
            trust=trust,
            at=at,
            agent=agent,
            domain=domain,
            issuer=issuer,
            stated=stated,
            require_tier=require_tier,
            facts=facts,
            evidence=evidence,
            replay=replay,
            answers=answers,
            proof=proof,
            status=status,
            beside=beside,
        )
        steps = passport.steps + tuple(_step(name, check, case) for name, check in _CHECKS.items())
    asked: dict[StepId, bool] = {
        "evidence": evidence is not None,
        "replay": replay,
        "status": status is not None,
    }
    # `timestamp` in `require` is no step: the validity step checks it, and that step is always needed.
    always = (*STEPS[: STEPS.index("subject")], "validity", "policy")
    needed = {*trust.require, *always, *(name for name, given in asked.items() if given)}
    rejected = any(step.status == "failed" for step in steps)
    skipped_steps = (step for step in steps if step.status == "skipped" and step.id in needed)
    undecided = None if rejected else next(skipped_steps, None)
    return Verification(
        at=at,
        passport_id=passport_id,
        verdict="rejected" if rejected else "unverifiable" if undecided else "verified",
        steps=steps,
        undecided=undecided,
        unchecked=(*([_PAGES] if in_pdf else []), *_unchecked(steps, case)),
        claim=_claim(case) if case else None,
        statement=case.passport.statement if case else None,
    )


def _facts(evidence: EvidenceSource, passport: SignedPassport) -> Facts | CertkitError:
    try:
        return evidence.facts(passport.predicate.summary.core_conditions)
    except CertkitError as error:
        return error


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


_CHECKS: Final[dict[StepId, Callable[[Case], str]]] = {
    "subject": checks.subject,
    "validity": _validity,
    "registry": logs.registry,
    "status": logs.status,
    "evidence": checks.evidence,
    "replay": checks.replay,
    "policy": checks.policy,
}


def _step(name: StepId, check: Callable[[Case], str], case: Case) -> Step:
    try:
        return passed(name, check(case))
    except UnavailableError as error:
        return skipped(name, error)
    except CertkitError as error:
        return failed(name, error)


def _unchecked(steps: tuple[Step, ...], case: Case | None) -> Iterator[Unchecked]:
    """Yield what nobody verified, the weightiest first."""
    by_id = {step.id: step for step in steps}
    if case is None:
        resting = [step for step in steps if step.code == checks.RESTS]
        last = steps[-len(resting) - 1]
        what = f"every step that rests on step {last.number} ({last.id})"
        yield Unchecked(what=what, why=", ".join(step.id for step in resting))
        return
    for name, what in _LEFT_OPEN.items():
        if (step := by_id[name]).status == "skipped":
            yield Unchecked(what=what, why=step.detail, option=step.hint)
    if case.signing.time is None and case.signing.fault is None:
        yield Unchecked(what="signing time", why=f"it is the issuer's word, {case.signing.reason}")
    answers = case.predicate.question.answers
    if answers and not (by_id["replay"].status == "passed" and case.answers is not None):
        codes = ", ".join(item.code for item in answers)
        why = "that they were given, and who agreed, is the issuer's word"
        yield Unchecked(what=f"answers to {codes}", why=why, option="--replay --context FILE")
    material = case.passport.file.verification_material
    if material.tlog_entries and not material.keyless:
        yield Unchecked(what="log entries inside the file", why="beside a key nobody reads them")
    if "passed" in {by_id["registry"].status, by_id["status"].status}:
        why = "others may see another or an older one; a remembered head or a witness makes it unlikely"
        yield Unchecked(what="other copies of the log", why=why)
    yield Unchecked(what="who evaluated", why=_evaluated(case.predicate))
    yield Unchecked(what="runs left out", why="the evaluator says whether any were made and left out")
    yield Unchecked(
        what="whether the records are true", why="the evaluator says that they tell what happened"
    )


def _evaluated(predicate: Predicate) -> str:
    """Say who evaluated and how they stand to developer and issuer, all of it as the issuer states it."""
    evaluator, issuer = predicate.facts.protocol.evaluator, predicate.issuer
    if evaluator is None:
        return "the passport does not say who ran the evaluation"
    developer, to_issuer = evaluator.relation or "not stated", issuer.relation_to_evaluator or "not stated"
    return (
        f"{quoted(evaluator.name)}, relation to the developer: {developer}, to the issuer: {to_issuer}; this"
        " is the issuer's word"
    )


def _claim(case: Case) -> Claim:
    predicate, signer = case.predicate, case.passport.signer
    verdict, agent = predicate.assessment.verdict, predicate.facts.agent
    return Claim(
        agent=fill(ClaimedAgent, agent),
        tier=verdict.tier,
        tier_strict=verdict.tier_strict,
        readings={"table": verdict.table.tier, "bounded": verdict.bounded.tier},
        decides=verdict.decides,
        profile=fill(ClaimedProfile, predicate.profile, known=checks.known(case)),
        domains=predicate.summary.domains,
        origin=predicate.facts.protocol.origin,
        issuer=SignedBy(name=signer.issuer, stated_name=predicate.issuer.name, key_id=signer.id),
        not_before=predicate.validity.not_before,
        not_after=predicate.validity.not_after,
        challenges=open_questions(predicate.assessment),
    )


def open_questions(assessment: Assessment) -> tuple[OpenQuestion, ...]:
    """Return serious findings, open or answered, and warnings, the gravest first."""
    return tuple(
        OpenQuestion(
            code=item.code,
            severity=item.severity,
            state="open" if item.state is UNSET else item.state.value,
        )
        for item in assessment.findings
        if item.severity is not Severity.INFO
    )
