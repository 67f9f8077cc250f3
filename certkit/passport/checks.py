"""The checks of a verification after its judgement: each returns its result in words, or raises.

A check that fails raises a `CertkitError`; a check that cannot be made raises `UnavailableError`, with code
``passport.not-asked`` where nobody asked for it. `verify` orders the checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, Protocol

from msgspec import Struct, structs

from certkit.assessment.assess import assess
from certkit.assessment.assessment import Answer, Assessment, Finding, FindingState
from certkit.bundle.facts import Facts
from certkit.ground.canonical import Digest
from certkit.ground.errors import CertkitError, MismatchError, NegativeError, UnavailableError
from certkit.ground.text import quoted
from certkit.passport.differences import difference
from certkit.passport.passport import (
    CLOCK_SKEW,
    EPOCH,
    Predicate,
    is_published,
    last_run,
    late_run,
    signed_summary,
)
from certkit.passport.steps import SignedPassport, certified
from certkit.passport.trust import Trust

if TYPE_CHECKING:
    from certkit.passport.keys import PublicKey
    from certkit.summary.summary import Summary

HowEnded = Literal["superseded", "revoked"]
LoggedStanding = Literal["current", HowEnded, "unknown"]
NOT_ASKED: Final = "passport.not-asked"
RESTS: Final = "passport.rests-on-failed"
OTHER_AGENT: Final = "passport.other-agent"
OTHER_EVIDENCE: Final = "passport.other-evidence"


class LoggedStatus(Struct, frozen=True, kw_only=True):
    """Whether a passport still stands in a registry.

    Attributes:
        standing: what the registry holds of it.
        detail: the same in words.
        time: of the checkpoint.
        lineages: under which the passport is logged, None where the source does not say.
    """

    standing: LoggedStanding
    detail: str
    time: datetime | None = None
    lineages: tuple[str, ...] | None = None


class StatusSource(Protocol):
    """A source that knows whether a passport was revoked or superseded, such as a registry."""

    def status(
        self, passport_id: Digest, revokers: Mapping[Digest, PublicKey], facts: Facts | None = None
    ) -> LoggedStatus:
        """Return the standing of the passport; raise `UnavailableError` where nobody can say.

        Args:
            passport_id: of the passport.
            revokers: the keys, by id, that the policy lists under the issuer's name: only these revoke it.
            facts: of the passport; where they name a plan, a log says whether it announced that.
        """


class EvidenceSource(Protocol):
    """The bundle of a passport, or several that are pooled, such as `evidence.BundleEvidence`."""

    def facts(self, core_conditions: tuple[str, ...]) -> Facts:
        """Return what the manifest states, once every file has its digest."""

    def summary(self, core_conditions: tuple[str, ...]) -> Summary:
        """Return the records, reduced."""


class Signing(Struct, frozen=True, kw_only=True):
    """When a passport was signed.

    Attributes:
        time: proven by a trusted party.
        reason: why there is no proven time.
        fault: an error in the proof of the time.
    """

    time: datetime | None = None
    reason: str = "no timestamp proves it"
    fault: CertkitError | None = None


class AnswersGiven(Struct, frozen=True, kw_only=True):
    """The answers that count in a ``context.json`` that the verifier holds, and its digest."""

    digest: Digest
    answers: tuple[Answer, ...]


class Case(Struct, frozen=True, kw_only=True, eq=False):
    """A signed passport and the verifier's questions, for the checks after the judgement.

    Attributes:
        passport: the passport.
        signing: when it was signed.
        trust: the verifier's policy.
        at: the time of verification.
        agent: digest of the agent that it must be about.
        domain: a domain that must be covered.
        issuer: what the policy must call the signer.
        stated: what the passport must call its issuer.
        require_tier: the lowest tier that is accepted.
        facts: of the bundle that the verifier holds, or why it could not be opened.
        evidence: the bundle, where it was given.
        replay: whether the records are summarised again.
        answers: of the context that the verifier holds.
        proof: text of the offline log proof, or why it could not be read.
        status: the registry that was asked.
        beside: the status file that came with the passport.
    """

    passport: SignedPassport
    signing: Signing
    trust: Trust
    at: datetime
    agent: str | None = None
    domain: str | None = None
    issuer: str | None = None
    stated: str | None = None
    require_tier: int | None = None
    facts: Facts | CertkitError | None = None
    evidence: EvidenceSource | None = None
    replay: bool = False
    answers: Callable[[Predicate], AnswersGiven] | None = None
    proof: bytes | CertkitError | None = None
    status: StatusSource | None = None
    beside: StatusSource | None = None

    @property
    def predicate(self) -> Predicate:
        """What the signed statement says."""
        return self.passport.predicate


def signing(passport: SignedPassport, trust: Trust) -> Signing:
    """Return when a passport was signed, as far as a trusted party proves it.

    A signature by a certificate always has a proven time. A signature by a key has it where an RFC 3161
    timestamp by an authority of the policy's trusted root is attached.
    """
    material, envelope = passport.file.verification_material, passport.envelope
    try:
        if material.keyless:
            proof = certified(passport.file, envelope, trust)
            message = f"signed at {shown(proof.time)}, when a part of the trusted root was not in office"
            fault = None if proof.in_office() else NegativeError("passport.root-window", message)
            return Signing(time=proof.time, fault=fault)
        if not material.timestamps:
            return Signing()
        if trust.trusted_root is None:
            return Signing(reason="you trust no root for the attached timestamp")
        from certkit.passport import timestamp  # noqa: PLC0415 - only where a timestamp is met

        times = timestamp.seen(material.timestamps, envelope.signature, trust.trusted_root)
    except CertkitError as error:
        return Signing(fault=error)
    if not times:
        return Signing(reason="no authority of the trusted root made the attached timestamp over it")
    return Signing(time=times[0])


def subject(case: Case) -> str:
    """Compare the statement's agent and bundle with those that the verifier has in hand."""
    facts = case.predicate.facts
    compared = []
    if case.agent is not None:
        _same(OTHER_AGENT, facts.agent.digest, case.agent)
        compared.append("the agent is the one asked for")
    if isinstance(case.facts, Facts):
        _same(OTHER_AGENT, facts.agent.digest, case.facts.agent.digest)
        _same(OTHER_EVIDENCE, facts.digest, case.facts.digest, pooled=len(facts.bundles))
        compared.append("agent and bundle are those of the bundle given")
    if not compared:
        stated = f"it is about agent {facts.agent.digest} and bundle {facts.digest}"
        if case.facts is not None:
            raise UnavailableError(RESTS, f"the bundle could not be opened (step 10); {stated}")
        hint = "--agent DIGEST or --bundle DIR"
        raise UnavailableError(NOT_ASKED, f"compared with nothing; {stated}", hint=hint)
    return "; ".join(compared)


def _same(code: str, stated: str, actual: str, *, pooled: int = 0) -> None:
    if stated != actual:
        what = "another agent" if code == OTHER_AGENT else "other evidence"
        hint = f"; it pools {pooled} bundles, give --bundle once for each" if pooled else ""
        raise NegativeError(code, f"the passport is about {what}: {stated}, not {actual}{hint}")


def validity(case: Case) -> str:
    """Check the period of validity, and that the signing time lies in the window of the key or certificate.

    Without a proven time the signing time is the issuer's word: the beginning of the validity.
    """
    predicate, signer, proven = case.predicate, case.passport.signer, case.signing.time
    start, end = predicate.validity.not_before, predicate.validity.not_after
    for what, time in (("valid from", start), ("signed at", proven)):
        if time is not None and time - case.at > CLOCK_SKEW:
            raise NegativeError("passport.not-yet-valid", f"{what} {shown(time)}, asked at {shown(case.at)}")
    if case.at > end:
        raise NegativeError("passport.expired", f"expired at {shown(end)}, asked at {shown(case.at)}")
    if case.signing.fault is not None:
        raise case.signing.fault
    if late := late_run(predicate.facts, predicate.summary, proven or start):
        raise NegativeError("passport.period-in-future", late)
    if signer.not_before is not None and (proven or start) < signer.not_before:
        when = f"valid from {shown(start)}" if proven is None else f"signed at {shown(proven)} or before"
        message = f"{when}; the key is trusted only from {shown(signer.not_before)}"
        raise NegativeError("passport.key-window", message)
    times = (
        start - EPOCH,
        None if proven is None else proven - EPOCH,
        last_run(predicate.facts, predicate.summary),
    )
    signed = max(time for time in times if time is not None)
    if signer.not_after is not None and signed > signer.not_after - EPOCH:
        until = f"the key is trusted only until {shown(signer.not_after)}"
        message = f"the signing time that counts is {shown(EPOCH + signed)}; {until}"
        raise NegativeError("passport.key-window", message)
    if proven is not None:
        return f"valid until {shown(end)}; signed at {shown(proven)} or before, which a trusted time proves"
    if "timestamp" in case.trust.require:
        raise UnavailableError("passport.unavailable", f"the signing time is a claim: {case.signing.reason}")
    return f"valid until {shown(end)}"


def shown(time: datetime | None) -> str:
    """Return a time in words, an ellipsis where a window is open."""
    return "…" if time is None else time.isoformat(timespec="seconds").replace("+00:00", "Z")


def period(time: timedelta) -> str:
    """Return a duration in words, rounded up: in hours below two days, else in days."""
    hours = max(1, -(-time // timedelta(hours=1)))
    count, what = (hours, "hour") if hours < 2 * 24 else (-(-time // timedelta(days=1)), "day")
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def evidence(case: Case) -> str:
    """Check that every file of the bundle has its digest, and that the passport repeats its manifest."""
    if case.facts is None:
        raise UnavailableError(NOT_ASKED, "no bundle was given", hint="--bundle DIR")
    if isinstance(case.facts, CertkitError):
        raise case.facts
    stated = case.predicate.facts
    _same(OTHER_EVIDENCE, stated.digest, case.facts.digest, pooled=len(stated.bundles))
    if mismatch := difference(stated, case.facts, "the bundle gives"):
        raise MismatchError("passport.manifest-differs", f"facts.{mismatch}")
    return "every file has its digest, and the passport repeats what the manifest states"


def replay(case: Case) -> str:
    """Check that the records, summarised again, give the signed summary."""
    if case.evidence is None or not case.replay:
        hint = "--bundle DIR --replay"
        raise UnavailableError(NOT_ASKED, "nobody summarised the records again", hint=hint)
    if isinstance(case.facts, CertkitError):
        raise UnavailableError(RESTS, "the bundle could not be opened (step 10)")
    predicate = case.predicate
    read = case.evidence.summary(predicate.summary.core_conditions)
    again = signed_summary(read, predicate.profile)
    if mismatch := difference(predicate.summary, again, "the records give"):
        raise MismatchError("passport.replay-differs", f"summary.{mismatch}")
    if case.answers is not None:
        given = case.answers(predicate)
        signed = {"context": predicate.context, "answers": predicate.question.answers}
        held = {"context": given.digest, "answers": given.answers}
        if mismatch := difference(signed, held, "the context gives"):
            raise MismatchError("passport.replay-differs", mismatch)
    return "the signed summary is what the records give"


def policy(case: Case) -> str:
    """Check what the trust policy and the caller demand of the passport."""
    profile = case.predicate.profile
    attained, standing = _tiers(case)
    if refused := dict(_refusals(case, attained)):
        hints = "\n".join(filter(None, refused.values()))
        raise NegativeError("passport.policy", "; ".join(refused), hint=hints or None)
    wanted = _wanted(case)
    if standing < (wanted or min(attained, case.predicate.question.required_tier)):
        codes = ", ".join(item.code for item in _contesting(case))
        taken = "contested" if any(item.is_open for item in _contesting(case)) else "answered"
        hint = f'"accept_{taken}": true in the policy takes it all the same'
        raise UnavailableError("passport.contested", f"the tier is contested by {codes}", hint=hint)
    if wanted and known(case) is None:
        raise UnavailableError(
            "passport.unavailable",
            f"what a tier of profile {quoted(profile.id)} means is not known: certkit did not publish it,"
            " and no policy of yours lists it",
            hint=f"certkit trust add --profile FILE lists the profile with the digest {profile.digest}",
        )
    return "the passport is what the policy asks for"


def known(case: Case) -> Literal["certkit", "policy"] | None:
    """Tell who knows the profile of a passport by its digest, None where nobody does."""
    if is_published(case.predicate.profile):
        return "certkit"
    return "policy" if case.predicate.profile.digest in case.trust.profiles else None


def _wanted(case: Case) -> int:
    return max(case.trust.min_tier or 0, case.require_tier or 0)


def _tiers(case: Case) -> tuple[int, int]:
    """Return the tier that the rows attain as the policy reads them, and the tier that stands.

    A serious finding contests its tier and those above it; the policy says whether an open or an answered one
    counts.
    """
    verdict = _assessment(case).verdict
    by_reading = {"table": verdict.table.tier, "bounded": verdict.bounded.tier}
    attained = by_reading[case.trust.reading or verdict.decides]
    return attained, min((attained, *((item.tier or 1) - 1 for item in _contesting(case))))


def _contesting(case: Case) -> tuple[Finding, ...]:
    """Return the serious findings for which the policy does not take a tier."""
    taken = {
        FindingState.OPEN: case.trust.accept_contested,
        FindingState.ANSWERED: case.trust.accept_answered,
    }
    return tuple(
        item
        for item in _assessment(case).serious
        if isinstance(item.state, FindingState) and not taken[item.state]
    )


def _assessment(case: Case) -> Assessment:
    """Return the assessment, with provisional rows counted where the policy says so."""
    predicate = case.predicate
    if not case.trust.count_provisional or predicate.question.strict:
        return predicate.assessment
    question = structs.replace(predicate.question, strict=True)
    return assess(predicate.summary, predicate.facts, predicate.profile, question)


def _refusals(case: Case, attained: int) -> Iterator[tuple[str, str | None]]:
    """Yield why the policy refuses a passport, each reason with what would change that."""
    predicate = case.predicate
    signer, stated = case.passport.signer.issuer, predicate.issuer.name
    for called, name in ((case.issuer, signer), (case.stated, stated)):
        if called not in {None, name}:
            yield f"its issuer is called {quoted(name)}, and {quoted(called or '')} is asked for", None
    if predicate.facts.protocol.origin == "simulated" and not case.trust.accept_specimens:
        yield (
            "it is a specimen: its evidence is simulated, and only a policy that says so accepts that",
            '"accept_specimens": true in the policy',
        )
    profile = predicate.profile
    if case.trust.profiles and profile.digest not in case.trust.profiles:
        yield f"your policy does not accept profile {quoted(profile.id)} ({profile.digest})", None
    if attained < (wanted := _wanted(case)):
        counted = ", provisional rows counted" if case.trust.count_provisional else ""
        met = f"Tier {attained}" if attained else "no tier"
        yield f"Tier {wanted} is asked for, and the evidence meets {met}{counted}", None
    yield from _uncovered(case, predicate.summary.domains)


def _uncovered(case: Case, domains: Iterable[str]) -> Iterator[tuple[str, None]]:
    asked = {*case.trust.domains, *([case.domain] if case.domain is not None else [])}
    if missing := sorted(asked - {*domains}):
        evaluated = ", ".join(domains) or "no domain"
        yield f"not evaluated in {', '.join(missing)}; evaluated in {evaluated}", None
