"""What the importers of logs by test case share: members of a document, names of tasks, further trials."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from certkit.imports.drafts import Place, row_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.imports.drafts import Draft
    from certkit.imports.job import Job
    from certkit.imports.splitter import Piece


def members(job: Job, within: str | None = None) -> Iterator[tuple[Piece, Place]]:
    """Yield the pieces of each JSON document of the source with their places, as `splitter.split` does."""
    for path, name in job.files((".json",)):
        with job.opening(path, name) as source:
            for piece in source.pieces(within=within):
                yield piece, Place(name, piece.line)


class TaskNames:
    """Names tasks by what a log calls them; rows of one name with different content are different tasks."""

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}
        self._taken: Counter[str] = Counter()

    def name(self, label: str, **content: Any) -> str:
        """Return the name of the task with this content, made of the label of the first row that has it."""
        digest = row_digest(content)
        if digest not in self._names:
            number = self._taken[label]
            self._taken[label] += 1
            self._names[digest] = f"{label}.{number}" if number else label
        return self._names[digest]


def task_fields(
    job: Job, draft: Draft, task: str, *, domain: str | None, default: str = ""
) -> dict[str, Any]:
    """Return the record fields that say which run it is; a task again is a further trial.

    Args:
        job: The import.
        draft: The bundle of the run.
        task: The name of the task.
        domain: What the log states, None where it states none.
        default: The domain where neither the log nor the user states one; empty to ask the user.

    Returns:
        ``run_id``, ``task_id``, ``trial`` and, where it is known, ``domain``.
    """
    trial = draft.repeat(task)
    if trial:
        draft.notes.add("odd", "runs of the same task again, taken as further trials")
    fields: dict[str, Any] = {"run_id": f"{task}#{trial}", "task_id": task, "trial": trial}
    if domain is None and job.options.domain is None:
        domain = default or None
    return fields if domain is None else fields | {"domain": domain}
