"""every_eval_ever: a sample per line; HELM, lm-eval and others are converted to it.

| field of the log | field of the record | note |
|---|---|---|
| `model_id` | agent | |
| `evaluation_name` | `domain` | |
| `evaluation_name`, `sample_id` | `task_id` | a sample again is a further trial |
| `evaluation.is_correct` | `outcome` | beside a score of 0 it is refused |
| `error` | `outcome` `harness_error` | |
| `messages`, else `evaluation.num_turns` | `steps_actual` | messages of the assistant |

The condition must come from you.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from certkit.imports.job import Importer, Run
from certkit.record.record import Outcome
from certkit.record.trace import Message, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.imports.drafts import Draft

Name = Annotated[str, Meta(min_length=1, max_length=512)]


class Scoring(Struct, frozen=True):
    """How a sample was scored."""

    is_correct: bool
    score: Any = None
    num_turns: Annotated[int, Meta(ge=1)] | None = None


class EveryEvalSample(Struct, frozen=True, kw_only=True):
    """A sample. What is not read is not listed."""

    model_id: Name
    evaluation_name: Name
    sample_id: Name
    evaluation: Scoring
    messages: list[Message] | None = None
    error: str | None = None


class EveryEval(Importer):
    """Samples of every_eval_ever."""

    suffixes = (".jsonl",)

    def runs(self) -> Iterator[Run]:
        """Yield the samples."""
        for row, place, data in self.objects():
            sample = self.job.typed(row, EveryEvalSample, place, "a sample of every_eval_ever")
            if sample is None:
                continue
            draft = self.job.draft(sample.model_id)
            if sample.evaluation.is_correct and sample.evaluation.score == 0:
                self.job.refuse(
                    place.fault("no score of 0 where is_correct is true", "0", pointer="/evaluation")
                )
            if equal := draft.repeat(str(hash(repr(row)))):
                draft.notes.add("odd", "lines equal to an earlier line", "they count, as further trials")
            fields = self._fields(sample, draft, row.get("evaluation_id"), told=bool(equal))
            yield Run(sample.model_id, place, row, fields, shown(sample), data if sample.messages else None)

    def _fields(
        self, sample: EveryEvalSample, draft: Draft, evaluation: object, *, told: bool
    ) -> dict[str, Any]:
        task = f"{sample.evaluation_name}/{sample.sample_id}"
        trial = draft.repeat(task)
        same = draft.repeat(f"{evaluation} {task}")
        if trial and not told:
            where = "the same evaluation" if same else "another evaluation"
            draft.notes.add("odd", f"samples again in {where}, taken as further trials")
        if sample.error:
            draft.notes.add("odd", "samples with an error, taken as harness errors")
            outcome = Outcome.HARNESS_ERROR
        else:
            outcome = Outcome.SUCCESS if sample.evaluation.is_correct else Outcome.FAILURE
        return {
            "run_id": f"{task}#{trial}",
            "domain": sample.evaluation_name,
            "task_id": task,
            "trial": trial,
            "outcome": str(outcome),
            "steps_actual": None if sample.messages else sample.evaluation.num_turns,
        }

    def close(self, draft: Draft) -> dict[str, str]:
        """Fill what the samples say of the agent."""
        draft.components(model=draft.agent)
        draft.protocol.setdefault("success_rule", "the sample's own is_correct")
        return {"domain": "evaluation_name"}
