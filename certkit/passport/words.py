"""What screens and views say of a passport, in one place.

headline(verification)     "VERIFIED, signed by "Example Lab""
tiers_text(evaluation)     "Tier 2 of hb-eval-2026 by averages; Tier 1 with confidence limits"
questions_text(questions)  "Open questions: 2, 1 serious. Serious: core-evidence; warning: one-domain"
not_checked_text(verification)
"""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Final

from certkit.assessment.answer import left_out_text, provisional_text, questions_counted
from certkit.ground.text import quoted, visible
from certkit.ground.wording import tier_name
from certkit.passport.trusted_root import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from certkit.assessment.evaluation import Evaluation
    from certkit.bundle.facts import IntegrityFacts
    from certkit.passport.trust import Trust
    from certkit.passport.verify import OpenQuestion, Verification

SPECIMEN: Final = "specimen, simulated evidence"
NOTICE: Final = (
    "A copy of what an agent passport says, and no evidence. To know whether the passport is genuine and"
    " still valid, verify the passport itself by its id."
)
IS_NOT: Final = (
    "It does not say that the agent is safe, or fit for another use, domain or version than those named.",
    "It is no evidence; the bundle is, and 'certkit verify --bundle DIR --replay' computes everything again.",
    "It does not prove that it is still valid: a registry knows whether it was revoked or superseded.",
)
_BY: Final = {"table": "by averages", "bounded": "with confidence limits"}
POLICY_LABEL: Final = 9
"""Columns of the labels of `policy_rows`: beside them a digest ends in column 80."""


def headline(verification: Verification, *, dated: bool = False) -> str:
    """Return the verdict, who signed, and the reason of a verdict that is no yes.

    Args:
        verification: what came of it.
        dated: whether to name the time of verification.
    """
    time = f" as of {utc(verification.at)}" if dated else ""
    claim, signature = verification.claim, verification.step("signature")
    by = f", signed by {quoted(claim.issuer.name)}" if claim else ""
    if not by and signature.status == "passed":
        by = f", signed {signature.detail}"
    if (step := verification.deciding) is not None:
        return f"REJECTED{time} at step {step.number} ({step.id}): {one_line(step.detail)} [{step.code}]"
    if (step := verification.undecided) is not None:
        return f"UNVERIFIABLE{time}{by}: {_undecided(step.code or '', one_line(step.detail))}"
    if claim is None or claim.profile.known:
        return f"VERIFIED{time}{by}"
    profile = f"{quoted(claim.profile.id)} ({short(claim.profile.digest)})"
    return (
        f"VERIFIED{time}{by}, judged by profile {profile}, which certkit did not publish and no policy of"
        " yours lists"
    )


def _undecided(code: str, detail: str) -> str:
    if code == "passport.contested":
        return f"{detail}; only a policy that says so accepts that"
    if code == "passport.other-rules":
        return detail
    return f"something that is required could not be checked: {detail}"


def tiers_text(evaluation: Evaluation) -> str:
    """Return the tier that stands by each reading, what contests another, and what provisional rows do."""
    verdict, assessment = evaluation.assessment.verdict, evaluation.assessment
    attained = {"table": verdict.table.tier, "bounded": verdict.bounded.tier}
    contesting = [item for item in assessment.serious if item.is_open]
    limit = min((item.tier or 1 for item in contesting), default=10) - 1
    other = "bounded" if verdict.decides == "table" else "table"
    first = tier_name(verdict.tier)
    text = f"{first[:1].upper()}{first[1:]} of {evaluation.profile.name} {_BY[verdict.decides]}"
    text += f"; {tier_name(min(attained[other], limit))} {_BY[other]}"
    if evaluation.facts.protocol.origin == "simulated":
        text += f" ({SPECIMEN})"
    if attained[verdict.decides] > verdict.tier:
        codes = ", ".join(item.code for item in contesting)
        text += f". Tier {attained[verdict.decides]} is contested by {codes}"
    more = " ".join(filter(None, (left_out_text(evaluation), provisional_text(evaluation))))
    return f"{text}. {more}" if more else text


def questions_text(questions: Sequence[OpenQuestion]) -> str:
    """Return how many questions are open, as `assess` counts them, and all by severity and code."""
    severities = [item.severity for item in questions if item.state == "open"]
    groups: dict[str, list[str]] = {}
    for item in questions:
        groups.setdefault(f"{item.severity}{', answered' * (item.state == 'answered')}", []).append(item.code)
    listed = "; ".join(f"{severity}: {', '.join(codes)}" for severity, codes in groups.items())
    text = questions_counted(severities, len(questions) - len(severities))
    return f"{text}. {listed[:1].upper()}{listed[1:]}" if listed else text


def not_checked_text(verification: Verification) -> str:
    """Return everything that was not checked, the weightiest first, each with the option that checks it."""
    items = [f"{item.what} ({item.option})" if item.option else item.what for item in verification.unchecked]
    return f"Not checked: {', '.join(items)}"


def policy_rows(trust: Trust) -> Iterator[tuple[str, str]]:
    """Yield whom a trust policy trusts and what it asks for, each with its label; an empty label goes on."""
    yield from _issuers(trust)
    for log in trust.logs:
        yield "log", log
    quorum = trust.witnesses
    yield "witness", f"{quorum.k} of {len(quorum.keys)} must have cosigned" if quorum.keys else "none"
    yield from (("", key) for key in quorum.keys)
    days = trust.max_status_age / timedelta(days=1)
    yield "requires", ", ".join(trust.require) or "nothing beyond signature, judgement and validity"
    yield "status", f"no older than {days:g} {'day' if days == 1 else 'days'}, where asked for"
    yield "profile", "one of these" if trust.profiles else "any"
    yield from (("", digest) for digest in trust.profiles)
    yield "tier", f"{trust.min_tier} and above" if trust.min_tier else "any, none included"
    yield "reading", _BY[trust.reading] if trust.reading else "the one that the profile decides by"
    yield "rows", f"provisional ones {'count' if trust.count_provisional else 'do not count'}"
    yield "domains", ", ".join(map(quoted, trust.domains)) or "any"
    accepted = {
        "specimens": trust.accept_specimens,
        "contested tiers": trust.accept_contested,
        "answered findings": trust.accept_answered,
    }
    yield "accepts", ", ".join(name for name, yes in accepted.items() if yes) or "no exception"


def _issuers(trust: Trust) -> Iterator[tuple[str, str]]:
    for item in trust.candidates():
        yield "issuer", item.issuer
        yield "", item.id
        if item.not_before or item.not_after:
            start, end = (day(time) if time else "…" for time in (item.not_before, item.not_after))
            yield "", f"from {start} to {end}"
    identities = [(issuer.name, identity) for issuer in trust.issuers for identity in issuer.identities]
    for name, identity in identities:
        yield "issuer", name
        yield "", f"signed in as {identity.identity}"
        yield "", f"at {identity.issuer}"
    if not trust.candidates() and not identities:
        yield "issuer", "none: every passport will be refused"
    if (root := trust.trusted_root) is not None:
        members = ", ".join(f"{name} ({len(root.get(kind, []))})" for kind, name in KINDS.items())
        yield "root", f"Sigstore: {members}"
    elif identities:
        yield "root", "none: no identity counts without --trusted-root"


def commitments_text(integrity: IntegrityFacts) -> str:
    """Return success and commitment integrity in one line; they move no tier."""
    tasks, successes, matched, probes = (
        sum(getattr(cell, name) for cell in integrity.cells)
        for name in ("tasks", "successes", "matched", "probes")
    )
    core = "not measured" if integrity.core is None else f"{integrity.core:.6g}"
    rated = f", rated by {integrity.raters} people" if integrity.raters else ""
    return (
        f"success {successes:,} of {tasks:,}, commitments held {matched:,} of {probes:,}, core {core}{rated};"
        f" {integrity.seed} tasks"
    )


def utc(moment: datetime) -> str:
    """Return an aware time as RFC 3339 in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def day(moment: datetime) -> str:
    """Return an aware time as its date in UTC where a day begins with it, else as `utc` does."""
    return utc(moment).removesuffix("T00:00:00Z")


def one_line(text: str) -> str:
    """Return foreign text on one line, with nothing in it that a reader cannot see."""
    return visible(" ".join(text.split()))


def short(digest: str) -> str:
    """Return the beginning of a digest, for where all of it does not fit."""
    return digest[: len("sha256:") + 12]
