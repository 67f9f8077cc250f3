"""The assessment room: a summary of evidence is judged against a profile, and the judgement is a value.

What it knows: every metric of HB-Eval 2026 and 2025, the tier tables as profiles, statuses, tiers,
margins, findings. What it does not do: read files, ask the clock, print, sign. The same summary, facts
and profile give the same assessment to the last bit.

Rules. Values are exact until they are written, so that equality with a threshold is seen. What was not
measured is not 0 and is never passed. Every value carries its denominator and its source. While a serious
finding is open, a verdict that would be met is contested; no finding changes a value or a row.

    profile = parse(text, "hb-eval-2026.toml")
    assessment = assess(summary, facts, profile, required_tier=2)
    assessment.verdict.tier, assessment.exit_code
    assessment.to_dict()["criteria"]
    sentence(assessment), measure_next(assessment)

The road inside: `view` (nominal and fault runs apart, tasks) → `metrics_2026`, `metrics_2025`, `csi`
(results) → `criteria` (a row at a tier, tiers) → `kinds`, `bounded` (the same row by the task posterior) →
`result` (the document). `findings` holds what a reader should know and what contests the verdict,
`rater_error` what the judge's error does. Beside the road: `plan` (before an evaluation), `compare` (two
agents), `drift` (two moments of one agent), `recheck` (other people's arithmetic).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.lazy import lazy

if TYPE_CHECKING:
    from certkit.assessment.assessing import assess, assess_accumulation, contested
    from certkit.assessment.bounded.fragility import Fragility
    from certkit.assessment.criteria import Row, Status, Tier, TierStatus, Verdict
    from certkit.assessment.findings.findings import SEVERITY, Challenge, Finding, Severity
    from certkit.assessment.lint import lint as profile_faults
    from certkit.assessment.metrics.catalogue import CATALOGUE, Spec, Unit
    from certkit.assessment.metrics.metric import Metric, State, asked, shown
    from certkit.assessment.profile import Profile, parse, profile_schema
    from certkit.assessment.rater_error import JudgeReport
    from certkit.assessment.result import Assessment, AssessmentDocument
    from certkit.assessment.words import (
        fragile,
        levels,
        measure_next,
        of_judge,
        sentence,
        serious,
    )

__all__ = [
    "CATALOGUE",
    "SEVERITY",
    "Assessment",
    "AssessmentDocument",
    "Challenge",
    "Finding",
    "Fragility",
    "JudgeReport",
    "Metric",
    "Profile",
    "Row",
    "Severity",
    "Spec",
    "State",
    "Status",
    "Tier",
    "TierStatus",
    "Unit",
    "Verdict",
    "asked",
    "assess",
    "assess_accumulation",
    "contested",
    "fragile",
    "levels",
    "measure_next",
    "of_judge",
    "parse",
    "profile_faults",
    "profile_schema",
    "sentence",
    "serious",
    "shown",
]

__getattr__ = lazy(
    __name__,
    {
        "assessing": ("assess", "assess_accumulation", "contested"),
        "bounded.fragility": ("Fragility",),
        "criteria": ("Row", "Status", "Tier", "TierStatus", "Verdict"),
        "findings.findings": ("SEVERITY", "Challenge", "Finding", "Severity"),
        "lint": ("lint as profile_faults",),
        "metrics.catalogue": ("CATALOGUE", "Spec", "Unit"),
        "metrics.metric": ("Metric", "State", "asked", "shown"),
        "profile": ("Profile", "parse", "profile_schema"),
        "rater_error": ("JudgeReport",),
        "result": ("Assessment", "AssessmentDocument"),
        "words": (
            "fragile",
            "levels",
            "measure_next",
            "of_judge",
            "sentence",
            "serious",
        ),
    },
)
