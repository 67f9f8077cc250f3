"""Two bundles of two agents compared: who succeeds more often under faults, by how much, how surely.

What it knows: what two summaries share, what pairs, and which tests respect that runs of one cluster stand or
fall together. What it does not do: judge tiers, read files, ask the clock, print. Every difference is A - B.

    comparison = compare((summary_a, facts_a), (summary_b, facts_b))
    comparison.answer, comparison.main.better, comparison.to_dict()["metrics"]["r_op"]["matched"]

The road inside: `sample` (two bundles side by side) → `matched` (the difference, its robust interval,
`permutation` test and bootstrap by `resampling`) → `comparison` (the value), put together by `assemble` and
said by `words`. `paper` holds the tests that papers print, made on demand.
"""

from certkit.assessment.compare.assemble import METRICS, compare
from certkit.assessment.compare.comparison import ALPHA, Compared, Comparison, Manner
from certkit.assessment.compare.document import Domain, Side
from certkit.assessment.compare.matched import Matched
from certkit.assessment.statistics.resampling import DRAWS, SEED, Bootstrap, bootstrap

__all__ = [
    "ALPHA",
    "DRAWS",
    "METRICS",
    "SEED",
    "Bootstrap",
    "Compared",
    "Comparison",
    "Domain",
    "Manner",
    "Matched",
    "Side",
    "bootstrap",
    "compare",
]
