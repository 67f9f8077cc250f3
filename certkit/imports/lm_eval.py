"""lm-evaluation-harness: samples of ``--log_samples``, a ``samples_TASK_DATE.jsonl`` or a folder of them.

| field of the log | field of the record | note |
|---|---|---|
| the folder of the file | agent | named after the model; `--agent` where the file is given itself |
| TASK in the name of the file | `domain` | `--domain` where the file has another name |
| TASK, `doc_id` | `task_id` | |
| `acc`, `acc_norm` or `exact_match` | `outcome` | of 1 or 0, where it is the only metric |
| another metric, or several | `outcome` | `--success`, such as "f1 >= 0.5", says which decides |

The condition must come from you. A sample stands in the file once for each `filter`; these are readings of
one answer, so where there are several, `--split-by filter` makes a bundle of each. Left out are documents,
prompts and responses.
Source of the fields: lm_eval/loggers/evaluation_tracker.py of EleutherAI/lm-evaluation-harness.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct

from certkit.ground.errors import InputError
from certkit.ground.text import visible
from certkit.imports.job import Importer, Run, Short
from certkit.imports.task_log import task_fields
from certkit.record.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.imports.job import Job

_FILE: Final = re.compile(r"samples_(.+)_\d{4}-\d{2}-\d{2}T[\d.-]+\.jsonl(?:\.gz)?")
_PLAIN: Final = frozenset({"acc", "acc_norm", "exact_match"})
"""Metrics of which 1 is right and 0 is wrong."""

_OTHER: Final = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
    )
)
"""Members of a sample that are no metric; samples of 2024 do not list their `metrics`."""


class LmEvalSample(Struct, frozen=True, kw_only=True):
    """A sample. What is not read is not listed."""

    doc_id: int | Annotated[Short, Meta(min_length=1)]
    filter: Short = "none"
    metrics: list[Short] | None = None


class LmEval(Importer):
    """Samples of lm-evaluation-harness."""

    suffixes = (".jsonl",)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._filters: dict[str, str] = {}  # of each file, the first that was met

    def runs(self) -> Iterator[Run]:
        """Yield the samples."""
        for row, place, _ in self.objects():
            sample = self.job.typed(row, LmEvalSample, place, "a sample of lm-evaluation-harness")
            if sample is None:
                continue
            *folders, file = place.file.split("/")
            name = _FILE.fullmatch(file)
            agent = folders[-1] if folders else self.job.options.agent or ""
            self._check_filter(sample.filter, place.file, agent or "NAME")
            draft = self.job.part(agent, row, place)
            task = f"{name[1] if name else place.file}/{sample.doc_id}"
            fields = task_fields(self.job, draft, task, domain=name[1] if name else None)
            outcome = self._outcome(sample, row)
            if outcome is not None:
                fields["outcome"] = str(outcome)
            yield Run(agent, place, row, fields)

    def _check_filter(self, name: str, file: str, agent: str) -> None:
        """Raise `InputError` where a file holds several readings of the same answers."""
        first = self._filters.setdefault(file, name)
        if name != first and self.job.options.split_by != "filter":
            message = f"the log reads each answer by several filters: {visible(first)}, {visible(name)}"
            hint = f"a bundle of each: {self.job.command(split_by='filter', agent=agent)}"
            raise InputError("import.choice-needed", message, where=file, hint=hint)

    def _outcome(self, sample: LmEvalSample, row: dict[str, Any]) -> Outcome | None:
        """Return the outcome that the only metric states; otherwise hint how to state it."""
        metrics = [name for name in row if name not in _OTHER] if sample.metrics is None else sample.metrics
        if len(metrics) == 1 and metrics[0] in _PLAIN and row.get(metrics[0]) in {0, 1}:
            return Outcome.SUCCESS if row[metrics[0]] else Outcome.FAILURE
        self.hints["outcome"] = f"{metrics[0]} >= THRESHOLD" if metrics else "EXPRESSION"
        if len(metrics) > 1:
            self.hints["several"] = f" (the metrics are {visible(', '.join(metrics[:12]))})"
        return None
