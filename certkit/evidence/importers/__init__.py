"""Importers: from the logs that other programs write to evidence bundles.

An importer fills the fields that its source really has and leaves the others unmeasured. What it filled,
left out, found odd or refused is counted and written into the manifest. An import is all or nothing: a row
that cannot be read refuses the source, and nothing is written.

    >>> list(FORMATS)
    ['agentdojo', 'records', 'hb-eval']

    accounts = run("agentdojo", Path("runs"), Path("bundle"), ImportOptions(agent="pipeline"), SILENT)

Whether a rate is good enough is not decided here; the assessment does that.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from msgspec import structs

from certkit import files
from certkit.errors import InputError, UsageError
from certkit.evidence.importers import agentdojo, hb_eval, records
from certkit.evidence.importers.base import (
    ImportAccount,
    Importer,
    ImportFaultsError,
    ImportOptions,
    Job,
    finish,
)
from certkit.evidence.records.faults import Faults

if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO

    from certkit.progress import Progress

__all__ = ["FORMATS", "ImportAccount", "ImportFaultsError", "ImportOptions", "Importer", "run"]

FORMATS: Final[dict[str, Importer]] = {
    "agentdojo": Importer(
        description="AgentDojo runs: the runs/ folder or the one-file export (JSON lines)",
        options=frozenset({"success"}),
        read=agentdojo.read,
    ),
    "records": Importer(
        description="rows of any kind, as JSON lines or CSV, with a mapping file for other names",
        options=frozenset({"mapping"}),
        read=records.read,
    ),
    "hb-eval": Importer(
        description="the records that HB-Eval published, methodologies B and C; one bundle per model",
        options=frozenset({"models"}),
        read=hb_eval.read,
    ),
}


def run(
    format: str,  # noqa: A002 - the name that the command line and the manifest use
    source: Path,
    out: Path,
    options: ImportOptions,
    progress: Progress,
) -> list[ImportAccount]:
    """Import `source` into a bundle at `out` (``hb-eval``: one bundle per model under `out`).

    Raises `UsageError` where the format or an option cannot be used or `out` is taken, `ImportFaultsError`
    with the list of faults where rows are refused, and `InputError` where the source is wrong otherwise.
    """
    importer = FORMATS.get(format)
    if importer is None:
        known = ", ".join(FORMATS)
        raise UsageError("usage.option", f"format {format!r} is not known", hint=f"choose one of {known}")
    defaults = ImportOptions()
    for name in ("mapping", "models", "success"):
        if name not in importer.options and getattr(options, name) != getattr(defaults, name):
            raise UsageError("usage.option", f"format {format!r} has no option {name!r}")
    if not source.exists():
        raise InputError("file.missing", "not found", where=str(source))
    with files.building(out) as folder:
        with ExitStack() as stack:

            def open_file(path: Path) -> IO[bytes]:
                return stack.enter_context(files.writing(path))

            job = Job(
                source=source,
                folder=folder,
                options=options,
                progress=progress,
                open_file=open_file,
                faults=Faults(),
                sources=[],
                drafts=[],
            )
            drafts = importer.read(job)
            job.refuse_faults()
        for draft in job.drafts:
            if draft not in drafts:
                shutil.rmtree(draft.folder)
        for draft in drafts:
            for fault in draft.repetitions():
                job.faults.add(structs.replace(fault, file=job.sources[0].name))
        job.refuse_faults()
        return [finish(draft, job, format, out) for draft in drafts]
