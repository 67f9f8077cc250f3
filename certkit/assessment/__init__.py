"""The assessment room: a summary of evidence is judged against a profile.

The same summary, facts, profile and question give the same assessment. Values are exact until they are
written, so that equality with a threshold is seen. What was not measured is not 0 and is never passed. A
serious finding contests the tiers that would be met while it is open; no finding changes a value or a row.

    table = load_profile("hb-eval-2026")
    evaluation = evaluate(summary, facts, table, Question(required_tier=2))
    evaluation.assessment.verdict.tier, evaluation.exit_code

| module | what it holds |
|---|---|
| `profile`, `profile_file`, `catalogue` | the table, how people write it, and the metrics that it may name |
| `metric`, `metrics`, `csi` | results of metrics, from the summary |
| `bounds`, `beta`, `raters` | the task posterior, the Beta law, and what a judge's error does to them |
| `row`, `core` | a criterion at a tier, on all runs and on core evidence |
| `findings`, `verdict` | what a reader should know, tiers and verdict |
| `assess`, `assessment` | the judgement and its document |
| `evaluation`, `bundles` | the judgement with what was judged, and that of folders |
| `words`, `answer` | sentences |
| `fragility`, `variation`, `plan` | what would change a tier, how runs vary, how many tasks a tier takes |
"""
