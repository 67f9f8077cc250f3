"""The checks behind the steps of a verification: each returns its result in words, or raises.

A check that fails raises a `CertkitError`; a check that cannot be made raises `UnavailableError`, with code
``passport.not-asked`` where nobody asked for it. `verification` orders the checks.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, Protocol

from msgspec import Struct

from certkit.ground.errors import CertkitError, MismatchError, NegativeError, UnavailableError
from certkit.ground.text import quoted
from certkit.passport import opening, payload, statement
from certkit.passport.derived import last_run
from certkit.passport.replay import Opened, manifest_difference, replay_difference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from certkit.ground.canonical import Digest
    from certkit.passport.keys import PublicKey
    from certkit.passport.opening import Signed
    from certkit.passport.statement import BundleClaim, Judgement, Predicate, Statement
    from certkit.passport.trust import Trust


CLOCK_SKEW: Final = statement.CLOCK_SKEW

Known = Literal["certkit", "policy"]
HowEnded = Literal["superseded", "revoked"]
LoggedStanding = Literal["current", HowEnded, "unknown"]
NOT_ASKED: Final = "passport.not-asked"
OTHER_AGENT: Final = "passport.other-agent"
OTHER_EVIDENCE: Final = "passport.other-evidence"


class Status(Struct, frozen=True, kw_only=True):
    """The standing of a passport in a registry, as of a checkpoint at `time`.

    `lineages` are the lineages that the passport is logged under, None where the source does not say.
    """

    standing: LoggedStanding
    detail: str
    time: datetime | None = None
    lineages: tuple[str, ...] | None = None


class StatusSource(Protocol):
    """A source that knows whether a passport was revoked or superseded, such as a registry."""

    def status(self, passport_id: Digest, revokers: Mapping[Digest, PublicKey]) -> Status:
        """Return the standing of the passport; raise `UnavailableError` where it cannot be told.

        `revokers` are the keys, by id, that the policy lists under the issuer's name: only these revoke it.
        """


class Signing(Struct, frozen=True, kw_only=True):
    """When a passport was signed: a `time` proven by a trusted party, or the `reason` why there is none.

    `fault` is an error in the proof of the time.
    """

    time: datetime | None = None
    reason: str = "no timestamp proves it"
    fault: CertkitError | None = None


class Case(Struct, frozen=True, kw_only=True, eq=False):
    """A signed passport and the verifier's questions, for the checks after the signature.

    `opened` is the bundle that the verifier gave, or why it could not be opened.
    """

    passport: Signed
    signing: Signing
    trust: Trust
    at: datetime
    agent: str | None = None
    domain: str | None = None
    issuer: str | None = None
    stated: str | None = None
    require_tier: int | None = None
    opened: Opened | CertkitError | None = None
    replay: Callable[[Statement], Statement] | None = None
    proof: bytes | CertkitError | None = None
    status: StatusSource | None = None
    beside: StatusSource | None = None

    @property
    def predicate(self) -> Predicate:
        """What the signed statement claims."""
        return self.passport.statement.predicate


def signing(passport: Signed, trust: Trust) -> Signing:
    """Return when a passport was signed, as far as a trusted party proves it.

    A signature by a certificate always has a proven time. A signature by a key has it where an RFC 3161
    timestamp by an authority of the policy's trusted root is attached.
    """
    material, envelope = passport.file.verification_material, passport.envelope
    try:
        if material.keyless:
            certified = opening.certified(passport.file, envelope, trust)
            message = f"signed at {shown(certified.time)}, when a part of the trusted root was not in office"
            fault = None if certified.in_office() else NegativeError("passport.root-window", message)
            return Signing(time=certified.time, fault=fault)
        if not material.timestamps:
            return Signing()
        if trust.trusted_root is None:
            return Signing(reason="the policy has no trusted root for the attached timestamp")
        from certkit.passport import timestamp  # noqa: PLC0415 - only where a timestamp is met

        times = timestamp.seen(material.timestamps, envelope.signature, trust.trusted_root)
    except CertkitError as error:
        return Signing(fault=error)
    if not times:
        return Signing(reason="no authority of the trusted root made the attached timestamp over it")
    return Signing(time=times[0])


def subject(case: Case) -> str:
    """Compare the statement's agent and bundle with those that the verifier has in hand."""
    predicate = case.predicate
    agent, evidence = predicate.agent.digest, predicate.evidence.digest
    compared = []
    if case.agent is not None:
        _same(OTHER_AGENT, agent, case.agent)
        compared.append("the agent is the one asked for")
    if isinstance(case.opened, Opened):
        _same(OTHER_AGENT, agent, case.opened.facts.agent_digest)
        _same(OTHER_EVIDENCE, evidence, case.opened.facts.digest, parts=predicate.evidence.bundles)
        compared.append("agent and bundle are those of the bundle given")
    return "; ".join(compared) or f"agent {agent}, evidence {evidence}"


def _same(code: str, stated: str, actual: str, *, parts: tuple[BundleClaim, ...] | None = None) -> None:
    if stated != actual:
        what = "agent" if code == OTHER_AGENT else "evidence"
        pooled = f"; it pools {len(parts)} bundles, give --bundle once for each" if parts else ""
        raise NegativeError(code, f"the passport is about {what} {stated}, not {actual}{pooled}")


def validity(case: Case) -> str:
    """Check the period of validity, and that the signing time lies in the window of the key or certificate.

    Without a proven time the signing time is the issuer's word: the beginning of the validity.
    """
    start, end = case.predicate.validity.not_before, case.predicate.validity.not_after
    proven = case.signing.time
    for what, time in (("valid from", start), ("signed at", proven)):
        if time is not None and time - case.at > CLOCK_SKEW:
            raise NegativeError("passport.not-yet-valid", f"{what} {shown(time)}, asked at {shown(case.at)}")
    if case.at > end:
        raise NegativeError("passport.expired", f"expired at {shown(end)}, asked at {shown(case.at)}")
    if case.signing.fault is not None:
        raise case.signing.fault
    last, signer = last_run(case.predicate), case.passport.signer
    if last is not None and proven is not None and last - proven > CLOCK_SKEW:
        message = f"signed at {shown(proven)} or before, and rests on runs until {shown(last)}"
        raise NegativeError("passport.period-in-future", message)
    signed = max(time for time in (start, last, proven) if time is not None)
    if signer.not_before is not None and (proven or start) < signer.not_before:
        when = f"valid from {shown(start)}" if proven is None else f"signed at {shown(proven)} or before"
        message = f"{when}; the key is trusted only from {shown(signer.not_before)}"
        raise NegativeError("passport.key-window", message)
    if signer.not_after is not None and signed > signer.not_after:
        until = f"the key is trusted only until {shown(signer.not_after)}"
        message = f"the signing time that counts is {shown(signed)}; {until}"
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
    """Check that every file of the bundle has its digest, and that the passport rests on this bundle."""
    if case.opened is None:
        raise UnavailableError(NOT_ASKED, "no bundle was given")
    if isinstance(case.opened, CertkitError):
        raise case.opened
    _same(OTHER_EVIDENCE, case.predicate.evidence.digest, case.opened.facts.digest)
    if mismatch := manifest_difference(case.passport.statement, case.opened):
        raise MismatchError("passport.manifest-differs", mismatch)
    return "every file has its digest, and the claim repeats what the manifest declares"


def replay(case: Case) -> str:
    """Check that the claim, computed again from the bundle, is the same."""
    if case.replay is None:
        raise UnavailableError(NOT_ASKED, "the claim was not computed again from the evidence")
    if isinstance(case.opened, CertkitError):
        raise UnavailableError("passport.rests-on-failed", "the bundle could not be opened")
    if mismatch := replay_difference(case.passport.statement, case.replay(case.passport.statement)):
        raise MismatchError("passport.replay-differs", mismatch)
    return "every row of the claim is what the evidence gives"


def policy(case: Case) -> str:
    """Check what the trust policy and the caller demand of the claim."""
    if refused := list(_refusals(case)):
        raise NegativeError("passport.policy", "; ".join(refused))
    if contested := _contested(case):
        raise UnavailableError("passport.contested", f"the tier is contested by {', '.join(contested)}")
    profile = case.predicate.assessment.profile
    if _wanted(case) and known(case) is None:
        raise UnavailableError(
            "passport.unavailable",
            f"what a tier of profile {quoted(profile.id)} says is not known: it does not come with certkit,"
            " and the policy does not list it",
            hint=f"certkit trust add --profile FILE lists the profile with the digest {profile.digest}",
        )
    return "the claim is what the policy asks for"


def _contested(case: Case) -> list[str]:
    """Return the codes of the serious challenges for which the policy does not take an attained tier."""
    if not _tier(case.predicate.assessment, case.trust.reading):
        return []
    taken = {"open": case.trust.accept_contested, "answered": case.trust.accept_answered}
    return [
        item.code
        for item in case.predicate.challenges
        if item.severity == "serious" and not taken[item.state]
    ]


def known(case: Case) -> Known | None:
    """Tell who knows the profile of a claim by its digest, None where nobody does."""
    profile = case.predicate.assessment.profile
    if payload.packaged(profile) is not None:  # a statement under its name has its digest
        return "certkit"
    return "policy" if profile.digest in case.trust.profiles else None


def _wanted(case: Case) -> int:
    return max(case.trust.min_tier or 0, case.require_tier or 0)


def _refusals(case: Case) -> Iterator[str]:
    predicate, judged = case.predicate, case.predicate.assessment
    signer, stated = case.passport.signer.issuer, predicate.issuer.name
    for called, named in ((case.issuer, signer), (case.stated, stated)):
        if called not in {None, named}:
            yield f"its issuer is called {quoted(named)}, and {quoted(called or '')} is asked for"
    if predicate.origin == "simulated" and not case.trust.accept_specimens:
        yield "it is a specimen from simulated evidence, and the policy accepts none"
    if case.trust.profiles and judged.profile.digest not in case.trust.profiles:
        yield f"profile {quoted(judged.profile.id)} ({judged.profile.digest}) is not accepted"
    wanted, tier = _wanted(case), _tier(judged, case.trust.reading)
    if tier < wanted:
        yield f"Tier {wanted} is asked for, the evidence meets {f'Tier {tier}' if tier else 'no tier'}"
    domains = predicate.scope.domains
    asked = {*case.trust.domains, *([case.domain] if case.domain is not None else [])}
    if missing := sorted(asked - {*domains}):
        evaluated = ", ".join(domains) or "no domain"
        yield f"not evaluated in {', '.join(missing)}; evaluated in {evaluated}"


def _tier(judged: Judgement, reading: str | None) -> int:
    attained = {"table": judged.table.tier, "bounded": judged.bounded.tier}
    return judged.tier if reading is None else attained[reading]
