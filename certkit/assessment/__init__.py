"""The assessment room: a summary of evidence is judged against a profile, and the judgement is a value.

The same summary, facts and profile give the same assessment. Values are exact until they are written, so that
equality with a threshold is seen. What was not measured is not 0 and is never passed. Every value carries its
denominator and its source. While a serious finding is open, a verdict that would be met is contested; no
finding changes a value or a row.

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
