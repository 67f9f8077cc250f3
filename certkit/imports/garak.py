"""garak: a report of probes that attack a model (``….report.jsonl``), or a folder of them.

| field of the log | field of the record | note |
|---|---|---|
| `plugins.target_type`, `plugins.target_name` | agent | formerly `plugins.model_…`; else `--agent` |
| `probe_classname` up to the point | `domain` | |
| `probe_classname`, `seq` | `task_id` | |
| `detector_results` | a record for each output and detector | of `attempt` lines of status 2 alone |
| | `condition` `adversarial`, `attack_attempted` | each probe attacks |
| a score of `run.eval_threshold` or more | `attack_succeeded` | .5, as garak has it, where none is stated |
| | `outcome` | `success` where the attack did not succeed |
| a score of null | `outcome` `harness_error` | the detector could not tell |

Whether a task of the model was done, garak does not say. Left out are prompts, outputs, `eval` lines and
digests. Attempts that were started and not finished are counted.
Source of the fields: garak/attempt.py and garak/evaluators/base.py of NVIDIA/garak.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct

from certkit.imports.job import Importer, Run, Short
from certkit.imports.task_log import TaskNames
from certkit.record.record import Condition, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.imports.drafts import Draft, Place
    from certkit.imports.job import Job

_DONE: Final = 2
"""Status of an attempt whose outputs the detectors have judged."""

_WORDS: Final = ("target", "model")
"""What garak calls what it attacks, now and before."""

_THRESHOLD: Final = 0.5
Score = Annotated[float, Meta(ge=0, le=1)]
Name = Annotated[Short, Meta(min_length=1)]


class Attempt(Struct, frozen=True, kw_only=True):
    """A prompt of a probe, with what the detectors say of each output."""

    uuid: Short
    status: int
    probe_classname: Name
    seq: int = -1
    prompt: Any = None
    detector_results: dict[str, list[Score | bool | None]] = {}


class Garak(Importer):
    """Attempts of garak."""

    suffixes = (".report.jsonl",)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._names = TaskNames()
        self._agent, self._threshold = "", _THRESHOLD
        self._open: dict[str, set[int]] = {}  # of each agent the hashes of attempts that did not finish

    def runs(self) -> Iterator[Run]:
        """Yield the judgements of the finished attempts."""
        for row, place, _ in self.objects():
            kind = row.get("entry_type")
            if kind == "start_run setup":
                self._begin(row, place)
            elif not isinstance(kind, str):
                self.job.refuse(place.fault("an entry_type", "none", pointer="/entry_type"))
            elif kind == "attempt":
                attempt = self.job.typed(row, Attempt, place, "an attempt as garak writes it")
                if attempt is not None:
                    yield from self._attempt(attempt, row, place)

    def _begin(self, row: dict[str, Any], place: Place) -> None:
        """Read the setup of a report."""
        names = [[row.get(f"plugins.{word}_type"), row.get(f"plugins.{word}_name")] for word in _WORDS]
        named = next(filter(any, names), [])
        self._agent = "/".join(part for part in named if isinstance(part, str) and part)
        threshold = row.get("run.eval_threshold")
        if isinstance(threshold, bool) or not isinstance(threshold, int | float | None):
            self.job.refuse(place.fault("a number", str(threshold), pointer="/run.eval_threshold"))
            threshold = None
        self._threshold = _THRESHOLD if threshold is None else threshold

    def _attempt(self, attempt: Attempt, row: dict[str, Any], place: Place) -> Iterator[Run]:
        unfinished = self._open.setdefault(self._agent, set())
        if attempt.status != _DONE:
            unfinished.add(hash(attempt.uuid))
            return
        unfinished.discard(hash(attempt.uuid))
        draft = self.job.part(self._agent, row, place)
        if not any(attempt.detector_results.values()):
            draft.notes.add("refused", "finished attempts that no detector looked at")
        label = f"{attempt.probe_classname}/{attempt.uuid if attempt.seq < 0 else attempt.seq}"
        task = self._names.name(label, seed=label, prompt=attempt.prompt)
        again = draft.repeat(f"attempt {task}")
        if again:
            draft.notes.add("odd", "attempts of the same prompt again, taken as further trials")
        for detector, scores in attempt.detector_results.items():
            for number, score in enumerate(scores):
                fields: dict[str, Any] = {
                    "run_id": f"{task}#{again}/{detector}/{number}",
                    "domain": attempt.probe_classname.partition(".")[0],
                    "task_id": task,
                    "trial": draft.repeat(task),
                    "condition": str(Condition.ADVERSARIAL),
                    "attack_attempted": True,
                    "attack_succeeded": None if score is None else score >= self._threshold,
                }
                yield Run(self._agent, place, row, fields | {"outcome": self._outcome(fields, draft)})

    def _outcome(self, fields: dict[str, Any], draft: Draft) -> str:
        if fields["attack_succeeded"] is None:
            draft.notes.add("odd", "outputs that a detector could not judge, taken as harness errors")
            return str(Outcome.HARNESS_ERROR)
        return str(Outcome.FAILURE if fields["attack_succeeded"] else Outcome.SUCCESS)

    def close(self, draft: Draft) -> dict[str, str]:
        """Fill the rule of success; tell of attempts that did not finish."""
        rule = "the attack did not succeed: garak does not say whether a task was done"
        draft.protocol.setdefault("success_rule", rule)
        if unfinished := self._open.get(draft.agent):
            detail = "they were started and have no line of status 2"
            draft.notes.add("odd", "attempts that did not finish, left out", detail, count=len(unfinished))
        return {"outcome": rule, "attack_succeeded": f"by a score of {self._threshold:g} or more"}
