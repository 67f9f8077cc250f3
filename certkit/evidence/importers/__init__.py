"""Importers: from the logs that other programs write to evidence bundles.

Each importer fills what its source really has and leaves the rest unmeasured; what it filled, left
out, found odd or refused is counted, returned, and kept in the manifest. An import is all or nothing:
one row that cannot be read refuses the source, and then nothing is left behind.

    >>> list(FORMATS)
    ['agentdojo', 'records', 'hb-eval']

    accounts = run("agentdojo", Path("runs"), Path("bundle"), ImportOptions(agent="pipeline"), SILENT)

Nothing here judges: whether a rate is good enough is for the assessment.
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
    Faults,
    ImportAccount,
    Importer,
    ImportFaultsError,
    ImportOptions,
    Job,
    finish,
)

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
    with the list of faults where rows are refused, and `InputError` for whatever else is wrong with
    the source.
    """
    importer = FORMATS.get(format)
    if importer is None:
        known = ", ".join(FORMATS)
        raise UsageError("usage.option", f"format {format!r} is not known", hint=f"known formats: {known}")
    defaults = ImportOptions()
    for name in ("mapping", "models", "success"):
        if name not in importer.options and getattr(options, name) != getattr(defaults, name):
            raise UsageError("usage.option", f"option {name!r} means nothing to format {format!r}")
    if not source.exists():
        raise InputError("file.missing", "not found", where=str(source))
    with files.building(out) as folder:
        faults = Faults()
        with ExitStack() as stack:

            def open_file(path: Path) -> IO[bytes]:
                return stack.enter_context(files.writing(path))

            job = Job(
                source=source,
                folder=folder,
                options=options,
                progress=progress,
                open_file=open_file,
                faults=faults,
                sources=[],
                drafts=[],
            )
            drafts = importer.read(job)
            faults.raise_if_any()
        for draft in job.drafts:
            if draft not in drafts:
                shutil.rmtree(draft.folder)
        for draft in drafts:
            for fault in draft.repetitions():
                faults.add(structs.replace(fault, file=job.sources[0].name))
        faults.raise_if_any()
        return [finish(draft, job, format, out) for draft in drafts]
