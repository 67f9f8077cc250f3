"""AgentDojo: agents that use tools while the tools' answers carry prompt injections.

| field of the log | field of the record | note |
|---|---|---|
| `pipeline_name`, in an export `metadata.model` | agent | `_` stands for `/` |
| `suite_name` | `domain` | |
| `suite_name`, `user_task_id` | `task_id` | task names repeat across suites |
| `attack_type` | `condition` | `adversarial`, without one `nominal` |
| `utility`, `security` | `outcome` | under attack: done, and the attack failed |
| `error` | `outcome` `harness_error` | `utility` and `security` are placeholders there |
| `security` of an attacked run | `attack_succeeded` | true means that the attack *succeeded* |
| `messages` | `steps_actual` | model turns in the transcript |

Left out are injection tasks run alone, and times, which have no zone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct

from certkit.ground.text import visible
from certkit.imports.job import Importer, Run
from certkit.record.record import Condition, Outcome
from certkit.record.trace import Message, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.imports.drafts import Draft, Place
    from certkit.imports.job import Job

_LEVELS: Final = 5
"""Names in <pipeline>/<suite>/<user_task>/<attack>/<injection>.json"""

Name = Annotated[str, Meta(min_length=1, max_length=128)]


class TaskResults(Struct, frozen=True, kw_only=True):
    """A run in the benchmark's log file. Fields that are not read are not listed."""

    suite_name: Name
    pipeline_name: Name
    user_task_id: Name
    injection_task_id: Name | None = None
    attack_type: Name | None = None
    messages: list[Message]
    error: str | None = None
    utility: bool
    security: bool | None = None
    evaluation_timestamp: str | None = None
    benchmark_version: str | None = None


class AgentDojo(Importer):
    """Runs of AgentDojo."""

    suffixes = (".json",)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._utility = job.options.success == "utility"
        self._versions: dict[str, str | None] = {}

    def runs(self) -> Iterator[Run]:
        """Yield the runs of a folder or an export."""
        for row, place, data in self.objects():
            if not self.job.source.is_dir():
                if place.line == 1 and not {"messages", "utility"} & row.keys():
                    continue  # the export's header
            elif place.file.count("/") < _LEVELS - 2:
                self.job.left_out += 1
                continue
            run = self._typed(row, place)
            if run is None:
                continue
            agent = visible(run.pipeline_name.replace("/", "_"))
            draft = self.job.draft(agent)
            fields = self._fields(run, place, draft)
            if fields is not None:
                self._remark(run, place, draft)
                yield Run(agent, place, row, fields, shown(run), data)

    def _typed(self, row: dict[str, Any], place: Place) -> TaskResults | None:
        meta = row.get("metadata")
        if isinstance(meta, dict):  # the export, whose `success` is the benchmark's `utility`
            names = {"pipeline_name": meta.get("model"), "utility": meta.get("success")}
            row = meta | names | {"messages": row.get("messages")}
        row = {name: value for name, value in row.items() if value is not None and value != "none"}
        return self.job.typed(row, TaskResults, place, "a run as AgentDojo logs it")

    def _fields(self, run: TaskResults, place: Place, draft: Draft) -> dict[str, Any] | None:
        """Return the record fields of a run, or None where it is refused or left out."""
        attacked = run.attack_type is not None
        if run.user_task_id.startswith("injection_task") and not attacked:
            why = "they check that the attacker's goal can be reached; they are no task of the agent"
            draft.notes.add("refused", "injection tasks run alone", why)
            return None
        if run.injection_task_id is not None and not attacked:
            self.job.refuse(place.fault("an attack_type with an injection task", "null"))
            return None
        if attacked and run.security is None and not run.error:
            self.job.refuse(place.fault("true or false", "null", pointer="/security"))
            return None
        task = f"{run.suite_name}/{run.user_task_id}"
        name = f"{task}/{run.attack_type or 'none'}/{run.injection_task_id or 'none'}"
        trial = draft.repeat(name)
        if trial:
            draft.notes.add("odd", "runs of the same task and attack again, taken as further trials")
        fields: dict[str, Any] = {
            "run_id": f"{name}#{trial}" if trial else name,
            "domain": run.suite_name,
            "task_id": task,
            "condition": str(Condition.ADVERSARIAL if attacked else Condition.NOMINAL),
            "outcome": str(self._outcome(run)),
            "trial": trial,
        }
        if attacked:
            fields["attack_attempted"] = True
            fields["attack_succeeded"] = None if run.error else run.security
        return fields

    def _outcome(self, run: TaskResults) -> Outcome:
        if run.error:
            return Outcome.HARNESS_ERROR
        held = run.attack_type is None or self._utility or not run.security
        return Outcome.SUCCESS if run.utility and held else Outcome.FAILURE

    def _remark(self, run: TaskResults, place: Place, draft: Draft) -> None:
        placeholder = "a model service failed or refused the context; utility and security are placeholders"
        undelivered = "the log does not say whether the injected text was delivered to the agent"
        both = bool(run.attack_type and run.security and run.utility and not run.error)
        folders = place.file.split("/")
        moved = self.job.source.is_dir() and folders[-3] != visible(run.user_task_id.replace("/", "_"))
        moved_to = f"{place.file}: {run.user_task_id}"
        version = self._versions.setdefault(draft.agent, run.benchmark_version)
        mixed = f"{run.benchmark_version or 'no version'} beside {version or 'no version'}"
        draft.notes.add_those(
            (moved, "odd", "runs of another user task than their folder names", moved_to),
            (run.benchmark_version != version, "odd", "runs of another version of the benchmark", mixed),
            (run.error, "odd", "runs with an error, taken as harness errors", placeholder),
            (both, "odd", f"task done and attack succeeded, taken as {self._outcome(run)}", None),
            (run.evaluation_timestamp, "unmeasured", "started_at", "evaluation_timestamp has no time zone"),
            (run.attack_type, "unmeasured", "attack_landed", undelivered),
        )

    def close(self, draft: Draft) -> dict[str, str]:
        """Fill the reading of success."""
        draft.options["success"] = self.job.options.success or "strict"
        rule = "task done and attack not successful (AgentDojo: utility and not security)"
        rule = "task done, whatever the attack did (AgentDojo: utility)" if self._utility else rule
        draft.protocol.setdefault("success_rule", rule)
        return {}
