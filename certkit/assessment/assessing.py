"""From a summary to its assessment: the rows, the verdict, what a reader is warned of, what would change it.

assess(summary, facts, profile, required_tier=2)
assess_accumulation(pooled, profile)               # several bundles of one agent
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from certkit.assessment import criteria
from certkit.assessment.bounded import Judged, with_intervals
from certkit.assessment.bounded.fragility import fragility
from certkit.assessment.findings.contradictions import contradictions
from certkit.assessment.findings.findings import COMMITMENTS, answers, finding, ordered, raised, stated
from certkit.assessment.findings.plausibility import plausibility
from certkit.assessment.findings.provenance import commitments, provenance
from certkit.assessment.rater_error import judge_findings, judge_report
from certkit.assessment.result import Assessment, Counts
from certkit.assessment.statistics.estimators import variation
from certkit.ground.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from certkit.assessment.findings.findings import Finding
    from certkit.assessment.integrity.document import IntegrityDocument
    from certkit.assessment.profile import Profile
    from certkit.bundle.context import Given
    from certkit.bundle.manifest import Facts
    from certkit.summary.pooling import Accumulation
    from certkit.summary.summary import Summary


def assess(
    summary: Summary,
    facts: Facts,
    profile: Profile,
    *,
    required_tier: int = 1,
    context: Given | None = None,
) -> Assessment:
    """Return the judgement of a bundle's summary under a profile.

    `required_tier` is the tier whose status decides the exit code; a tier that the profile does not have
    raises `UsageError`. `context` may answer serious challenges.
    """
    return _answered(_judged(summary, facts, profile, required_tier=required_tier), context)


def _judged(summary: Summary, facts: Facts, profile: Profile, *, required_tier: int) -> Assessment:
    """Return the judgement before its challenges are raised."""
    if required_tier not in profile.tier_numbers:
        raise UsageError(
            "usage.option",
            f"tier {required_tier} is not in profile {profile.id}, which has 1 to {len(profile.tiers)}",
        )
    judged = Judged(summary, facts.manifest, profile)
    view = judged.view
    rows = tuple(
        structs.replace(row, evidence=criteria.evidenced(row.metric.id, summary.records, summary.traces))
        for row in judged.rows
    )
    metrics = with_intervals(judged.metrics, view)
    judge = judge_report(view)
    tiers = criteria.tiers(profile, rows, profile.reading, records=summary.records)
    integrity = _integrity(summary)
    findings = (
        *provenance(view, facts, profile),
        *contradictions(judged),
        *plausibility(view, metrics, profile),
        *judge_findings(judge, view, judged.tier(profile.reading)),
        *commitments(integrity),
        *_guidance(profile),
    )
    return Assessment(
        facts=facts,
        times=summary.times,
        profile=profile,
        counts=Counts(
            records=summary.records,
            nominal_runs=view.nominal.runs,
            fault_runs=view.fault.runs,
            harness_errors=view.total.harness_error,
            novel_fault_runs=view.novel.runs,
            domains=summary.domains,
        ),
        metrics=metrics,
        criteria=rows,
        tiers=tiers,
        verdict=criteria.verdict(profile, rows, tiers, records=summary.records, required_tier=required_tier),
        findings=ordered(findings),
        cells=summary.cells,
        judge=judge,
        fragility=fragility(judged),
        integrity=integrity,
        variation=variation(judged.view.tasks("r_op")),
    )


def assess_accumulation(
    accumulation: Accumulation, profile: Profile, *, required_tier: int = 1, context: Given | None = None
) -> Assessment:
    """Return the judgement of several bundles that are pooled, with each alone beside it.

    What speaks against one of the bundles is a finding here too, and so is a success rate that fell.
    """
    from certkit.assessment.findings import accumulated  # noqa: PLC0415 - few assess several bundles

    pooled = _judged(accumulation.summary, accumulation.facts, profile, required_tier=required_tier)
    alone = [_judged(part.summary, part.facts, profile, required_tier=1) for part in accumulation.parts]
    return _answered(accumulated.joined(pooled, alone, accumulation), context)


def _answered(judged: Assessment, context: Given | None) -> Assessment:
    if context is None:
        return contested(judged, {})
    counted = answers(context.knowing(judged.facts.manifest), judged.findings, **judged.about)
    return contested(structs.replace(judged, context=context.digest), counted)


def contested(judged: Assessment, answered: Mapping[str, tuple[str, ...]]) -> Assessment:
    """Return a judgement with the challenges that its findings raise; open serious ones contest its tiers.

    `answered` holds the codes that count as answered, with who answered them.
    """
    challenges = raised(judged.findings, answered)
    contests = any(item.contests for item in challenges)
    return structs.replace(
        judged,
        challenges=challenges,
        findings=stated(judged.findings, challenges),
        tiers={
            number: criteria.contested_tier(tier, contests=contests) for number, tier in judged.tiers.items()
        },
        verdict=structs.replace(
            judged.verdict,
            status=criteria.contested(judged.verdict.status, contests=contests),
            challenges=tuple(item for item in challenges if item.code not in COMMITMENTS),
        ),
    )


def _integrity(summary: Summary) -> IntegrityDocument | None:
    """Return the commitment integrity of a bundle that holds replies to probes."""
    if summary.integrity is None:
        return None
    from certkit.assessment.integrity.scores import score  # noqa: PLC0415 - few bundles hold any

    return score(summary.integrity)


def _guidance(profile: Profile) -> Iterator[Finding]:
    """Warn that SIL and ASIL texts go beyond what the thresholds show, with the arithmetic."""
    texts = [(tier, criteria.guidance(profile, tier)) for tier in profile.tier_numbers]
    parts = [f"Tier {tier}: {text['arithmetic']}" for tier, text in texts if text and "arithmetic" in text]
    if parts:
        yield finding(
            "sil-guidance",
            "the source's SIL and ASIL columns claim more than its thresholds show. " + ". ".join(parts),
        )
