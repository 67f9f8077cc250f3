"""Bundles and logs on disk, judged with the answers of a context: what commands that judge do first."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.assessment.assessment import Question
from certkit.assessment.bundles import evaluate_parts, reduce_bundles
from certkit.assessment.evaluation import Evaluation, evaluate
from certkit.bundle.manifest import MANIFEST_NAME
from certkit.cli.emit import progress, warn
from certkit.ground.errors import InputError
from certkit.record.expressions import shell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.assessment.profile import Profile
    from certkit.bundle.manifest import Imported
    from certkit.imports.job import ImportOptions
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
        imported: the account of the import, where a log was judged.
    """

    evaluation: Evaluation
    parts: tuple[Evaluation, ...] = ()
    integrity: IntegrityDocument | None = None
    bundle: Path | None = None
    imported: Imported | None = None

    def failed_runs(self) -> tuple[Record, ...] | None:
        """Return the worst runs that failed; None without a lone bundle, and of very many records."""
        if self.bundle is None or self.evaluation.summary.records > MOST_RECORDS:
            return None
        from certkit.bundle.folder import open_bundle  # noqa: PLC0415 - for reports alone
        from certkit.summary.runs import RunFilter, list_tasks  # noqa: PLC0415 - the same

        listed = list_tasks(open_bundle(self.bundle, defer_records=True), RunFilter(failed=True))
        return tuple([run.record for task in listed.tasks for run in task.runs][:MOST_NAMED])


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


def log_of(sources: Sequence[Path]) -> Path | None:
    """Return the log where the only source is one: a file, or a folder without a manifest."""
    source = sources[0]
    is_log = source.is_file() or (source.is_dir() and not (source / MANIFEST_NAME).exists())
    return source if is_log and len(sources) == 1 else None


def judge_log(
    log: Path, options: ImportOptions, profile: Profile, question: Question, given: Given | None = None
) -> Judged:
    """Judge a log: import it into a temporary bundle, which is gone afterwards.

    Args:
        log: the file or folder that another program wrote.
        options: how it is imported.
        profile: the tier table.
        question: the tier asked for, and whether provisional rows decide.
        given: the context whose answers to serious findings count.

    Raises:
        CertkitError: the log cannot be imported, or the context accepts a serious finding.
    """
    from certkit.imports import run  # noqa: PLC0415 - most commands read bundles alone

    with tempfile.TemporaryDirectory(prefix="certkit-") as folder:
        bundle = Path(folder) / "bundle"
        try:
            [account] = run(log, bundle, options, progress())
        except InputError as error:
            if log.is_dir():
                init = f"certkit bundle init {shell(str(log))} --agent NAME --version VERSION"
                hint = f"for a bundle that has no {MANIFEST_NAME} yet: {init}"
                error.hint = "\n".join(filter(None, [error.hint, hint]))
            raise
        return judge([bundle], profile, question, given)._replace(imported=account.imported, bundle=None)


def answered(evaluation: Evaluation, given: Given | None) -> Evaluation:
    """Return an evaluation with the answers of a context that count; warn of one about other evidence."""
    if given is None:
        return evaluation
    from certkit.report.argument import challenges  # noqa: PLC0415 - few give a context
    from certkit.report.argument.case import stale  # noqa: PLC0415 - the same

    if differ := stale(given, evaluation):
        warn(f"the context is about other evidence ({', '.join(differ)}): what it says does not count")
    return challenges.answered(evaluation, given)
