"""deepeval: a test run as JSON (``test_run_….json``, ``.latest_test_run.json``), or a folder of such files.

| field of the log | field of the record | note |
|---|---|---|
| | agent | `--agent`: the log names the judges, not what was tested |
| `name` | `task_id` | equal names with another `input` or `scenario` are other tasks |
| | `domain` | `deepeval`, unless `--domain` says another |
| `success` | `outcome` | `success` or `failure`: every metric that is not flaky passed |
| `metricsData[].error` | `outcome` `harness_error` | where each metric that failed ended in an error |
| no `success` | `outcome` `harness_error` | the test case was not judged |

`testCases` and `conversationalTestCases` are read. The condition must come from you. Left out are scores,
reasons, costs, traces and hyperparameters.
Source of the fields: `LLMApiTestCase` in deepeval/test_run/api.py of confident-ai/deepeval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct

from certkit.imports.job import Importer, Run, Short
from certkit.imports.task_log import TaskNames, members, task_fields
from certkit.record.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.imports.drafts import Draft, Place
    from certkit.imports.job import Job

_LISTS: Final = ("testCases", "conversationalTestCases")


class MetricData(Struct, frozen=True, kw_only=True):
    """How a metric judged a test case; a flaky one decides nothing."""

    success: bool | None = None
    error: str | None = None
    flaky: bool = False


class DeepEvalCase(Struct, frozen=True, kw_only=True, rename="camel"):
    """A test case. What is not read is not listed."""

    name: Annotated[Short, Meta(min_length=1)]
    success: bool | None = None
    metrics_data: list[MetricData] | None = None


class DeepEval(Importer):
    """Test cases of deepeval."""

    suffixes = (".json",)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._names = TaskNames()

    def runs(self) -> Iterator[Run]:
        """Yield the test cases."""
        for piece, place in members(self.job, within="testRunData"):
            if piece.key in _LISTS and (row := self.job.load(piece.data, place)) is not None:
                case = self.job.typed(row, DeepEvalCase, place, "a test case as deepeval writes it")
                if case is not None:
                    draft = self.job.part("", row, place)
                    task = self._names.name(
                        case.name, name=case.name, input=row.get("input"), scenario=row.get("scenario")
                    )
                    fields = task_fields(self.job, draft, task, domain=None, default="deepeval")
                    outcome = self._outcome(case, draft, place)
                    yield Run("", place, row, fields | {"outcome": str(outcome)})

    def _outcome(self, case: DeepEvalCase, draft: Draft, place: Place) -> Outcome:
        failed = [it for it in case.metrics_data or () if it.success is False and not it.flaky]
        if case.success and failed:
            expected = "no failed metric in a test case that succeeded"
            self.job.refuse(place.fault(expected, "false", pointer="/metricsData"))
        if case.success is None:
            draft.notes.add("odd", "test cases that were not judged, taken as harness errors")
            return Outcome.HARNESS_ERROR
        if failed and all(it.error for it in failed):
            why = "a metric ended in an error, and no other failed"
            draft.notes.add("odd", "test cases whose judge failed, taken as harness errors", why)
            return Outcome.HARNESS_ERROR
        return Outcome.SUCCESS if case.success else Outcome.FAILURE

    def close(self, draft: Draft) -> dict[str, str]:
        """Fill the rule of success."""
        draft.protocol.setdefault("success_rule", "the test case's own success: its metrics passed")
        return {"task_id": "the name of the test case"}
