"""The assessment room: a summary of evidence is judged against a profile, and the judgement is a value.

What it knows: every metric of HB-Eval 2026 and 2025, the tier tables as profiles, statuses, tiers,
margins, findings. What it does not do: read files, ask the clock, print, sign. The same summary, facts
and profile give the same assessment to the last bit.

Rules. Values are exact until they are written, so that equality with a threshold is seen. What was not
measured is not 0 and is never passed. Every value carries its denominator and its source. A finding never
changes a verdict.

    profile = parse(text, "hb-eval-2026.toml")
    assessment = assess(summary, facts, profile, required_tier=2)
    assessment.verdict.tier, assessment.exit_code
    assessment.to_dict()["criteria"]
    sentence(assessment), measure_next(assessment)

The road inside: `view` (nominal and fault runs apart) → `metrics_2026`, `metrics_2025`, `csi` (results)
→ `criteria` (a row at a tier) → `verdict` (tiers) → `result` (the document); `provenance` and
`plausibility` add the findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.assessment import criteria, metrics_2025, metrics_2026, verdict
from certkit.assessment.catalogue import CATALOGUE, Spec, Unit
from certkit.assessment.criteria import Row, Status
from certkit.assessment.findings import SEVERITY, Finding, Severity, finding, ordered
from certkit.assessment.lint import lint
from certkit.assessment.metric import Metric, State
from certkit.assessment.plausibility import plausibility
from certkit.assessment.profile import Profile, parse
from certkit.assessment.provenance import provenance
from certkit.assessment.result import Assessment, Counts
from certkit.assessment.schema import assessment_schema, profile_schema
from certkit.assessment.verdict import Tier, Verdict
from certkit.assessment.view import look
from certkit.assessment.words import asked, measure_next, sentence, shown
from certkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.evidence.manifest import Facts
    from certkit.evidence.summary import Summary

__all__ = [
    "CATALOGUE",
    "SEVERITY",
    "Assessment",
    "Finding",
    "Metric",
    "Profile",
    "Row",
    "Severity",
    "Spec",
    "State",
    "Status",
    "Tier",
    "Unit",
    "Verdict",
    "asked",
    "assess",
    "assessment_schema",
    "lint",
    "measure_next",
    "parse",
    "profile_schema",
    "sentence",
    "shown",
]


def assess(summary: Summary, facts: Facts, profile: Profile, *, required_tier: int = 1) -> Assessment:
    """Return the judgement of a bundle's summary under a profile.

    `required_tier` is the tier whose status decides the exit code; a tier that the profile does not have
    raises `UsageError`.
    """
    if required_tier not in profile.tier_numbers:
        raise UsageError(
            "usage.option",
            f"tier {required_tier} is not in profile {profile.id}, which has 1 to {len(profile.tiers)}",
        )
    view = look(summary, facts.manifest, profile.tau)
    found = (*metrics_2026.metrics(view), *metrics_2025.metrics(view))
    metrics = {metric.id: metric for metric in found}
    rows = criteria.table(profile, metrics)
    tiers = verdict.tiers(profile, rows, profile.reading, records=summary.records)
    findings = (
        *provenance(view, facts, profile),
        *plausibility(view, metrics),
        *_guidance(profile),
    )
    return Assessment(
        facts=facts,
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
        verdict=verdict.verdict(profile, rows, tiers, records=summary.records, required_tier=required_tier),
        findings=ordered(findings),
        cells=summary.cells,
        fragility={},
    )


def _guidance(profile: Profile) -> Iterator[Finding]:
    """Warn that SIL and ASIL texts go beyond what the thresholds show, with the arithmetic."""
    texts = [(tier, verdict.guidance(profile, tier)) for tier in profile.tier_numbers]
    parts = [f"Tier {tier}: {text['arithmetic']}" for tier, text in texts if text and "arithmetic" in text]
    if parts:
        yield finding(
            "sil-guidance",
            "the source's SIL and ASIL columns claim more than its thresholds show. " + ". ".join(parts),
        )
