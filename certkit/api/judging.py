"""Bundles and logs on disk, judged with the answers of a context.

judged = judge([Path("bundle")], load_profile("hb-eval-2026"))
judged.tier, judged.rows[0].exact, judged.to_frame()
"""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from certkit.api import notebook
from certkit.assessment.assessment import Row
from certkit.assessment.bundles import evaluate_parts, reduce_bundles
from certkit.assessment.evaluation import Evaluation, cell_dict, evaluate
from certkit.bundle.manifest import MANIFEST_NAME, Imported
from certkit.ground import files
from certkit.ground.errors import CertkitError, InputError
from certkit.ground.progress import SILENT, Progress
from certkit.probes.scores_document import IntegrityDocument  # noqa: TC001 - help() evaluates it
from certkit.record.expressions import shell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.assessment.assessment import Question
    from certkit.assessment.profile import Profile
    from certkit.imports.job import ImportOptions
    from certkit.record.record import Record
    from certkit.report.context import Given

MOST_NAMED: Final = 7
"""Failed runs that a report names."""
MOST_RECORDS: Final = 200_000
"""Records up to which a report names them: it takes another look at all of them."""


class ExactRow(Row, frozen=True, kw_only=True):
    """A criterion at a tier with its value before it was rounded.

    Attributes:
        exact: the value as a fraction; None where it was not measured or has no exact form.
    """

    exact: Fraction | None = None


class Judged(Evaluation, frozen=True, kw_only=True, eq=False, dict=True):
    """An evaluation, and what notebooks and reports show of it.

    Attributes:
        parts: each of several bundles judged alone.
        integrity: the scores of commitment integrity, where a lone bundle holds them.
        bundle: the folder of a lone bundle.
        imported: the account of the import, where a log was judged.
        stale: members of a context that name other evidence; what the context says does not count then.
    """

    parts: tuple[Evaluation, ...] = ()
    integrity: IntegrityDocument | None = None
    bundle: Path | None = None
    imported: Imported | None = None
    stale: tuple[str, ...] = ()

    @property
    def tier(self) -> int:
        """The highest tier that is met and not contested, 0 for none."""
        return self.assessment.verdict.tier

    @property
    def rows(self) -> tuple[ExactRow, ...]:
        """Every criterion at every tier, in the order of the profile."""
        return tuple(map(self._exact, self.assessment.criteria))

    def _exact(self, row: Row) -> ExactRow:
        value = self.metrics[row.metric].at(row.tier)
        exact = value if isinstance(value, Fraction) else None
        return ExactRow(**structs.asdict(row), exact=exact)

    def to_frame(self) -> Any:
        """Return `rows` as a `pandas.DataFrame`; raises `UsageError` where pandas is not installed."""
        return notebook.frame([*notebook.row_dicts(self.assessment.criteria)])

    def cells_frame(self) -> Any:
        """Return runs and outcomes by split, domain, condition and effect as a `pandas.DataFrame`.

        Raises:
            UsageError: where pandas is not installed.
        """
        return notebook.frame([cell_dict(cell) for cell in self.summary.cells])

    def __repr__(self) -> str:
        return "\n".join(notebook.three_lines(self))

    def _repr_html_(self) -> str:
        return notebook.html_of(self)

    def failed_runs(self) -> tuple[Record, ...] | None:
        """Return the worst failed runs of the kinds that the profile judges.

        Returns:
            The records, the worst first; None without a lone bundle, and of very many records.
        """
        if self.bundle is None or self.summary.records > MOST_RECORDS:
            return None
        from certkit.bundle.folder import open_bundle  # noqa: PLC0415 - for reports alone
        from certkit.summary.runs import RunFilter, list_tasks  # noqa: PLC0415 - the same

        wanted = RunFilter(failed=True, kinds=self.profile.judged_kinds)
        listed = list_tasks(open_bundle(self.bundle, defer_records=True), wanted)
        return tuple([run.record for task in listed.tasks for run in task.runs][:MOST_NAMED])


def judge(
    bundles: Sequence[Path],
    profile: Profile,
    question: Question | None = None,
    given: Given | None = None,
    *,
    progress: Progress = SILENT,
) -> Judged:
    """Judge a bundle, or several that are pooled.

    Args:
        bundles: their folders.
        profile: the tier table.
        question: the tier asked for, and whether provisional rows decide.
        given: the context whose answers to serious findings count.
        progress: told what is being read.

    Raises:
        CertkitError: a bundle is refused, or the context accepts a serious finding.
    """
    reduced = reduce_bundles(bundles, core_conditions=profile.core_conditions, progress=progress)
    evaluation = evaluate(reduced.summary, reduced.facts, profile, question)
    scores = None
    if reduced.facts.integrity is not None and len(bundles) == 1:
        from certkit.probes.score import score_integrity  # noqa: PLC0415 - few bundles hold any

        scores = score_integrity(bundles[0])
    return structs.replace(
        answered(evaluation, given),
        parts=evaluate_parts(reduced, profile),
        integrity=scores,
        bundle=bundles[0] if len(bundles) == 1 else None,
    )


def log_of(sources: Sequence[Path]) -> Path | None:
    """Return the only source where it is a log: a file, or a folder without a manifest."""
    source = sources[0]
    is_log = source.is_file() or (source.is_dir() and not (source / MANIFEST_NAME).exists())
    return source if is_log and len(sources) == 1 else None


def judge_log(
    log: Path,
    options: ImportOptions,
    profile: Profile,
    question: Question | None = None,
    given: Given | None = None,
    *,
    progress: Progress = SILENT,
) -> Judged:
    """Judge a log: import it into a temporary bundle, judge that, and remove it.

    Args:
        log: the file or folder that another program wrote.
        options: how it is imported.
        profile: the tier table.
        question: the tier asked for, and whether provisional rows decide.
        given: the context whose answers to serious findings count.
        progress: told what is being read.

    Raises:
        CertkitError: the log cannot be imported, or the context accepts a serious finding.
    """
    from certkit.imports import run  # noqa: PLC0415 - most judgements are of bundles

    with tempfile.TemporaryDirectory(prefix="certkit-") as folder:
        bundle = Path(folder) / "bundle"
        try:
            [account] = run(log, bundle, options, progress)
        except InputError as error:
            if log.is_dir():
                init = f"certkit bundle init {shell(str(log))} --agent NAME --version VERSION"
                hint = f"for a bundle that has no {MANIFEST_NAME} yet: {init}"
                error.hint = "\n".join(filter(None, [error.hint, hint]))
            elif _is_passport(log):
                hint = f"certkit verify {shell(str(log))}\ncertkit show {shell(str(log))}"
                message = "this is a passport, which is judged already"
                raise InputError(error.code, message, where=log.name, hint=hint) from None
            raise
        judged = judge([bundle], profile, question, given, progress=progress)
        return structs.replace(judged, imported=account.imported, bundle=None)


def _is_passport(path: Path) -> bool:
    """Tell whether a file is a passport, or a PDF with one attached."""
    from certkit.passport.passport import read_passport  # noqa: PLC0415 - only where an import failed
    from certkit.passport.pdf import MAX_PDF, take  # noqa: PLC0415 - the same

    try:
        read_passport(take(files.read(path, limit=MAX_PDF)).passport)
    except CertkitError:
        return False
    return True


def answered(evaluation: Evaluation, given: Given | None) -> Judged:
    """Return an evaluation with the answers of a context that count."""
    stale: tuple[str, ...] = ()
    if given is not None:
        from certkit.report.argument import case, challenges  # noqa: PLC0415 - few give a context

        stale, evaluation = case.stale(given, evaluation), challenges.answered(evaluation, given)
    names = Evaluation.__struct_fields__
    return Judged(**{name: getattr(evaluation, name) for name in names}, stale=stale)
