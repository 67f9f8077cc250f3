"""OpenAI evals: the log of a run of ``oaieval``, one event a line, or a folder of them.

| field of the log | field of the record | note |
|---|---|---|
| `spec.completion_fns` | agent | |
| `spec.eval_name` | `domain` | |
| `spec.eval_name`, `sample_id` | `task_id` | |
| `data.correct` of a `match` event | `outcome` | `success` or `failure` |
| an `error` event, or no `match` event | `outcome` `harness_error` | of a sample that has no `match` event |

The condition must come from you. A log without a `match` event is refused: its evaluation scores otherwise.
Times are those of events, not of the beginning of a run, so `started_at` stays unmeasured. Left out are
samplings, metrics, other events and the final report.
Source of the fields: evals/record.py of openai/evals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from certkit.ground.errors import InputError
from certkit.imports.drafts import Place
from certkit.imports.job import Importer, Run, Short
from certkit.imports.task_log import task_fields
from certkit.record.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.imports.drafts import Draft

Name = Annotated[Short, Meta(min_length=1)]


class EvalSpec(Struct, frozen=True, kw_only=True):
    """What was evaluated: `completion_fns` are what answered."""

    eval_name: Name
    completion_fns: Annotated[list[Name], Meta(min_length=1, max_length=16)]


class EvalEvent(Struct, frozen=True, kw_only=True):
    """Something that happened with a sample."""

    sample_id: Name
    type: Short
    data: dict[str, Any]


class OpenAIEvals(Importer):
    """Samples of OpenAI evals."""

    suffixes = (".jsonl",)

    def runs(self) -> Iterator[Run]:
        """Yield a run for each match event, then those of samples that have none."""
        spec: EvalSpec | None = None
        samples: dict[str, int] = {}  # of a file: the line of the first event; 0 where one is a match
        file = ""
        for row, place, _ in self.objects():
            if place.file != file:
                yield from self._unmatched(samples, spec, file)
                file, samples, spec = place.file, {}, None
            if "spec" in row:
                spec = self.job.typed(
                    row["spec"], EvalSpec, place, "the spec of an evaluation of OpenAI evals"
                )
            elif "final_report" not in row:
                event = self.job.typed(row, EvalEvent, place, "an event as OpenAI evals writes it")
                if event is None:
                    continue
                if spec is None and self.job.faults:
                    continue  # the spec was refused
                if spec is None:
                    where = f"{place.file}:{place.line}"
                    raise InputError("import.source", "the events stand before their spec", where=where)
                if event.type == "match":
                    samples[event.sample_id] = 0
                    yield from self._match(event, spec, row, place)
                else:
                    samples.setdefault(event.sample_id, place.line)
        yield from self._unmatched(samples, spec, file)

    def _match(self, event: EvalEvent, spec: EvalSpec, row: dict[str, Any], place: Place) -> Iterator[Run]:
        correct = event.data.get("correct")
        if not isinstance(correct, bool):
            self.job.refuse(place.fault_of("true or false", correct, pointer="/data/correct"))
            return
        agent = ", ".join(spec.completion_fns)
        draft = self.job.part(agent, row, place)
        task = f"{spec.eval_name}/{event.sample_id}"
        fields = task_fields(self.job, draft, task, domain=spec.eval_name)
        outcome = Outcome.SUCCESS if correct else Outcome.FAILURE
        yield Run(agent, place, row, fields | {"outcome": str(outcome)})

    def _unmatched(self, samples: dict[str, int], spec: EvalSpec | None, file: str) -> Iterator[Run]:
        """Yield the samples of a file that have no match event, unless none has."""
        if spec is None:
            return
        if samples and all(samples.values()):
            hint = "read the events that score it as a table: certkit import records LOG --map MAP.toml"
            message = "no sample has a match event: the evaluation scores otherwise"
            raise InputError("import.source", message, where=file, hint=hint)
        for name, line in samples.items():
            if line:
                agent, row, place = ", ".join(spec.completion_fns), {"sample_id": name}, Place(file, line)
                draft = self.job.part(agent, row, place)
                draft.notes.add("odd", "samples without a match event, taken as harness errors")
                task = f"{spec.eval_name}/{name}"
                fields = task_fields(self.job, draft, task, domain=spec.eval_name)
                yield Run(agent, place, row, fields | {"outcome": str(Outcome.HARNESS_ERROR)})

    def close(self, draft: Draft) -> dict[str, str]:
        """Fill what the spec says of the agent."""
        draft.protocol.setdefault("success_rule", "the match event's own correct")
        told = "created_at says when an event was written, not when the run began"
        draft.notes.add("unmeasured", "started_at", told, count=draft.records)
        return {"domain": "the name of the evaluation"}
