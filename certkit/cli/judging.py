"""Bundles on disk, judged with the answers of a context: what every command that judges does first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.assessment.assessment import Question
from certkit.assessment.bundles import evaluate_parts, reduce_bundles
from certkit.assessment.evaluation import Evaluation, evaluate
from certkit.cli.emit import progress, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.assessment.profile import Profile
    from certkit.probes.scores_document import IntegrityDocument
    from certkit.record.record import Record
    from certkit.report.context import Given

MOST_NAMED: Final = 10
"""Failed runs that a report names."""
MOST_RECORDS: Final = 200_000
"""Records up to which a report names them: it takes another look at all of them."""


class Judged(NamedTuple):
    """An evaluation, and what reports show beside it.

    Attributes:
        evaluation: of all bundles.
        parts: each of several bundles judged alone.
        integrity: the scores of commitment integrity, where a lone bundle holds them.
        bundle: the folder of a lone bundle.
    """

    evaluation: Evaluation
    parts: tuple[Evaluation, ...] = ()
    integrity: IntegrityDocument | None = None
    bundle: Path | None = None

    def failed_runs(self) -> tuple[Record, ...] | None:
        """Return the worst runs that failed; None without a lone bundle, and of very many records."""
        if self.bundle is None or self.evaluation.summary.records > MOST_RECORDS:
            return None
        from certkit.bundle.folder import open_bundle  # noqa: PLC0415 - for reports alone
        from certkit.summary.runs import worst_runs  # noqa: PLC0415 - the same

        listed = worst_runs(open_bundle(self.bundle, defer_records=True), failed=True)
        return tuple(run.record for run in listed.runs[:MOST_NAMED])


def judge(
    bundles: Sequence[Path], profile: Profile, question: Question | None = None, given: Given | None = None
) -> Judged:
    """Judge a bundle, or several that are pooled; warn of a context about other evidence.

    Args:
        bundles: their folders.
        profile: the tier table.
        question: the tier asked for, and whether provisional rows decide.
        given: the context whose answers to serious findings count.

    Raises:
        CertkitError: a bundle is refused, or the context accepts a serious finding.
    """
    reduced = reduce_bundles(bundles, core_conditions=profile.core_conditions, progress=progress())
    evaluation = evaluate(reduced.summary, reduced.facts, profile, question)
    scores = None
    if reduced.facts.integrity is not None and len(bundles) == 1:
        from certkit.probes.score import score_integrity  # noqa: PLC0415 - few bundles hold any

        scores = score_integrity(bundles[0])
    return Judged(
        answered(evaluation, given),
        evaluate_parts(reduced, profile),
        scores,
        bundles[0] if len(bundles) == 1 else None,
    )


def answered(evaluation: Evaluation, given: Given | None) -> Evaluation:
    """Return an evaluation with the answers of a context that count; warn of one about other evidence."""
    if given is None:
        return evaluation
    from certkit.report.argument import challenges  # noqa: PLC0415 - few give a context
    from certkit.report.argument.case import stale  # noqa: PLC0415 - the same

    if differ := stale(given, evaluation):
        warn(f"the context is about other evidence ({', '.join(differ)}): what it says does not count")
    return challenges.answered(evaluation, given)
