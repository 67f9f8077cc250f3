"""promptfoo: the file of ``promptfoo eval -o results.json``, or a folder of such files.

| field of the log | field of the record | note |
|---|---|---|
| `provider.label`, else `provider.id` | agent | |
| `promptId` | version of the agent | several prompts need `--split-by promptId` |
| `testCase.description`, else `testIdx` | `task_id` | equal `vars` and `testCase` are one task |
| | `domain` | `promptfoo`, unless `--domain` says another |
| `success` | `outcome` | `success` or `failure` |
| `failureReason` 2 | `outcome` `harness_error` | the provider or a script failed, no assertion did |
| `metadata.pluginId` | `condition` `adversarial`, `attack_attempted` | a red-team test |
| `success` of a red-team test | `attack_succeeded` | its opposite |

The condition of other tests must come from you. Older files have no `failureReason`: there an error is a
failure, and the account counts it. Left out are outputs, scores, costs, latencies and the comparison table.
Source of the fields: `EvaluateResult` in src/types/index.ts of promptfoo/promptfoo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct

from certkit.imports.job import Importer, Run, Short
from certkit.imports.task_log import TaskNames, members, task_fields
from certkit.record.record import Condition, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.imports.drafts import Draft, Place
    from certkit.imports.job import Job

_ERROR: Final = 2
"""`failureReason` of a test that failed without an assertion."""


MAX_LABEL: Final = 200
"""Characters of a description that names a task."""


class Provider(Struct, frozen=True):
    """What was tested."""

    id: Short | None = None
    label: Short | None = None


class EvaluateResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """A test of a prompt with a provider. What is not read is not listed."""

    success: bool
    provider: Provider | Short
    test_idx: Annotated[int, Meta(ge=0)] | None = None
    failure_reason: Annotated[int, Meta(ge=0, le=_ERROR)] | None = None
    error: Any = None
    metadata: dict[str, Any] | None = None
    test_case: dict[str, Any] | None = None
    vars: dict[str, Any] | None = None


class Promptfoo(Importer):
    """Tests of promptfoo."""

    suffixes = (".json",)
    versioned = (("promptId",),)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._names = TaskNames()

    def runs(self) -> Iterator[Run]:
        """Yield the tests."""
        rows = 0
        for piece, place in members(self.job, within="results"):
            if piece.key == "results" and (row := self.job.load(piece.data, place)) is not None:
                rows += 1
                result = self.job.typed(row, EvaluateResult, place, "a result as promptfoo writes it")
                if result is not None and self._sound(result, place):
                    yield self._run(result, row, place, rows)

    def _sound(self, result: EvaluateResult, place: Place) -> bool:
        if result.success and result.failure_reason:
            expected, actual = "failureReason 0 where success is true", str(result.failure_reason)
            self.job.refuse(place.fault(expected, actual, pointer="/failureReason"))
            return False
        return True

    def _run(self, result: EvaluateResult, row: dict[str, Any], place: Place, number: int) -> Run:
        provider = result.provider
        agent = provider if isinstance(provider, str) else provider.label or provider.id or ""
        draft = self.job.part(agent, row, place)
        index = number if result.test_idx is None else result.test_idx
        content: dict[str, Any] = {"vars": result.vars, "test": result.test_case}
        if not result.vars and not result.test_case:
            content = {"file": place.file, "index": index}
        text = (result.test_case or {}).get("description")
        described = isinstance(text, str) and 0 < len(text) <= MAX_LABEL
        task = self._names.name(str(text) if described else f"test-{index}", **content)
        fields = task_fields(self.job, draft, task, domain=None, default="promptfoo")
        failed = result.failure_reason == _ERROR
        fields["outcome"] = str(Outcome.SUCCESS if result.success else Outcome.FAILURE)
        if failed:
            draft.notes.add("odd", "tests that ended in an error, taken as harness errors", "failureReason 2")
            fields["outcome"] = str(Outcome.HARNESS_ERROR)
        elif result.failure_reason is None and result.error and not result.success:
            told = "the log has no failureReason, which would tell an error from a failed assertion"
            draft.notes.add("odd", "failed tests with an error, taken as failures", told)
        test = (result.test_case or {}).get("metadata") or {}
        if "pluginId" in (result.metadata or {}) or (isinstance(test, dict) and "pluginId" in test):
            fields["condition"] = str(Condition.ADVERSARIAL)
            fields["attack_attempted"] = True
            fields["attack_succeeded"] = None if failed else not result.success
        return Run(agent, place, row, fields)

    def close(self, draft: Draft) -> dict[str, str]:
        """Fill the rule of success."""
        draft.protocol.setdefault("success_rule", "the test's own success: every assertion held")
        draft.notes.add(
            "unmeasured", "started_at", "the log times the evaluation, no test", count=draft.records
        )
        return {"task_id": "the description, or the first testIdx of equal tests"}
