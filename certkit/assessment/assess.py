"""What decides a tier: from a summary to its assessment, by rows, core evidence, findings and verdict.

    assessment = assess(summary, facts, profile, question)

The same function judges a bundle, what an issuer signs, what a verifier checks and both sides of a drift. It
is pure, and plain Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from certkit.assessment.assessment import (
    Assessment,
    Bounded,
    CoreRow,
    Finding,
    Question,
    Row,
    Status,
    Tier,
)
from certkit.assessment.core import core_rows
from certkit.assessment.findings import Judging, findings
from certkit.assessment.metric import Reason
from certkit.assessment.row import Evidence, rows
from certkit.assessment.verdict import attained, contested, tiers, verdict
from certkit.ground.errors import InputError, UsageError

if TYPE_CHECKING:
    from certkit.assessment.profile import Profile
    from certkit.bundle.facts import Facts
    from certkit.summary.summary import Summary

RULES = "certkit.rules/1"
"""The version of the judging rules and of the summary's schema; a passport names it."""


def assess(summary: Summary, facts: Facts, profile: Profile, question: Question | None = None) -> Assessment:
    """Return the judgement of a bundle's summary under a profile.

    Args:
        summary: the records, reduced.
        facts: what the manifest states.
        profile: the tier table.
        question: the tier asked for, whether provisional rows decide, and answered findings; by default Tier
            1.

    Raises:
        UsageError: ``usage.option`` for a tier that the profile does not have.
        InputError: ``summary.invalid`` where the summary counts other conditions as core than the profile.
    """
    question = question or Question()
    if question.required_tier not in profile.tier_numbers:
        raise UsageError(
            "usage.option",
            f"tier {question.required_tier} is not in {profile.id}, which has 1 to {len(profile.tiers)}",
        )
    if sorted(profile.core_conditions) != sorted(summary.core_conditions):
        raise InputError(
            "summary.invalid",
            f"core_conditions: the summary counts {sorted(summary.core_conditions)} as core evidence,"
            f" and profile {profile.id} {sorted(profile.core_conditions)}",
        )
    evidence = Evidence(summary, facts, profile)
    judged = rows(evidence)
    core = core_rows(evidence, judged)
    judged = tuple(_without_core(row, core) for row in judged)

    def opposed(question: Question) -> tuple[dict[str, Tier], tuple[Finding, ...]]:
        """Return the tiers with those contested, and the findings that contest them."""
        unopposed = tiers(profile, judged, profile.reading, records=summary.records, strict=question.strict)
        case = Judging(evidence=evidence, rows=judged, core=core, tiers=unopposed, question=question)
        raised = findings(case)
        return contested(unopposed, raised), raised

    final, raised = opposed(question)
    strictly = final if question.strict else opposed(structs.replace(question, strict=True))[0]
    return Assessment(
        criteria=judged,
        core=core,
        tiers=final,
        verdict=verdict(
            profile,
            judged,
            final,
            tier_strict=attained(strictly),
            records=summary.records,
            question=question,
        ),
        findings=raised,
    )


def _without_core(row: Row, core: tuple[CoreRow, ...]) -> Row:
    """Return a row that would be met; insufficient where it has no core run."""
    empty = any((item.id, item.tier, item.state) == (row.id, row.tier, "insufficient") for item in core)
    if not empty or row.status is not Status.MET:
        return row
    reason = Reason("no-core-run")
    bounded = row.bounded and Bounded(
        status=Status.INSUFFICIENT, confidence=row.bounded.confidence, reason=reason
    )
    return structs.replace(row, status=Status.INSUFFICIENT, margin=None, reason=reason, bounded=bounded)
