"""Findings about commitment integrity: all are warnings, so that none contests a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.assessment.findings.findings import finding
from certkit.assessment.integrity.document import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.findings.findings import Finding
    from certkit.assessment.integrity.document import IntegrityDocument

MOST_HOLLOW: Final = 10
"""Percent of successes that may be hollow before it is a finding."""
TASKS: Final = {
    "public": "the tasks are of a public seed, which an agent may have been trained on",
    "withheld": "the seed of the tasks is withheld: nobody can check yet that they are generated",
    "own": "the tasks are of the evaluator's own, and no generator gives them",
}
"""What is to be said of tasks, by the class of their seed; nothing of a stated one."""


def commitments(scored: IntegrityDocument | None) -> Iterator[Finding]:
    """Yield the findings that commitment integrity gives rise to; none where a bundle holds no replies."""
    if scored is None:
        return
    hollow, successes = len(scored.hollow.tasks), scored.success.successes
    if hollow * 100 > MOST_HOLLOW * successes:
        yield finding(
            "integrity-hollow",
            f"the agent succeeds without holding its commitments: {hollow:,} of {successes:,} successes"
            " hold fewer than half of the probes",
        )
    if scored.state is not State.MEASURED:
        missing = scored.success.unanswered + scored.accuracy.unanswered
        asked = scored.success.n + scored.accuracy.n
        yield finding(
            "integrity-partial", f"{missing:,} of {asked:,} questions about commitments have no reply"
        )
    if reason := TASKS.get(scored.origin.seed):
        yield finding("integrity-tasks", reason)
