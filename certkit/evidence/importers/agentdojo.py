"""AgentDojo: agents that use tools while the tools' answers carry prompt injections.

Two forms are read: the ``runs/<pipeline>/<suite>/<user_task>/<attack>/<injection>.json`` folder that the
benchmark writes, and the one-file export (JSON lines, gzipped or not, its first line a header).

How the fields of the log are read:

- ``security`` is true where the *attack succeeded*; on a run without attack it is always true and means
  nothing. So an attacked run succeeds if ``utility and not security`` (the strict reading, default), or
  if ``utility`` (``success="utility"``); the manifest names the reading.
- ``user_task_id = injection_task_N`` without an attack checks that the attacker's goal can be reached. It is
  not a task of the agent; such runs are left out and counted.
- ``error`` is set where a model service failed or refused the context; utility and security are then
  placeholders, and the run is a harness error.
- A model turn is a decision step. Task ids repeat across suites, so they get the suite as a prefix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from certkit.evidence.importers.base import Importer, Run
from certkit.evidence.records.record import Condition, Outcome
from certkit.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.evidence.importers.base import Job
    from certkit.evidence.importers.drafts import Draft, Place

_LEVELS: Final = 5
"""Names in <pipeline>/<suite>/<user_task>/<attack>/<injection>.json"""

Name = Annotated[str, Meta(min_length=1, max_length=128)]


class Message(Struct, frozen=True):
    """A message of the transcript; only its role is read."""

    role: str


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


class ExportMetadata(Struct, frozen=True, kw_only=True):
    """A run in the one-file export; ``success`` is the benchmark's ``utility``."""

    suite_name: Name
    model: Name
    user_task_id: Name
    injection_task_id: Name | None = None
    attack_type: Name | None = None
    error: str | None = None
    success: bool
    security: bool | None = None


class ExportRow(Struct, frozen=True, kw_only=True):
    """One line of the one-file export."""

    messages: list[Message]
    metadata: ExportMetadata


class AgentDojo(Importer):
    """Runs of AgentDojo."""

    suffixes = (".json",)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._utility = job.options.success == "utility"
        self._versions: dict[str, set[str]] = {}

    def runs(self) -> Iterator[Run]:
        """Yield the runs of a folder or an export."""
        for row, place in self.rows():
            if not self.job.source.is_dir():
                if place.line == 1 and not {"messages", "utility"} & row.keys():
                    continue  # the export's header
            elif place.file.count("/") < _LEVELS - 2:
                self.job.left_out += 1
                continue
            run = self._typed(row, place)
            if run is None or not self._matches(run, place):
                continue
            agent = self._agent(run, place)
            draft = self.job.draft(agent)
            fields = self._fields(run, place, draft)
            if fields is not None:
                self._remark(run, draft)
                yield Run(agent, place, row, fields)

    def _pipeline(self, place: Place) -> str:
        """Return the pipeline that a run's folders name; empty for an export."""
        parts = place.file.split("/")
        if not self.job.source.is_dir():
            return ""
        return parts[-_LEVELS] if len(parts) >= _LEVELS else self.job.name

    def _agent(self, run: TaskResults, place: Place) -> str:
        """Return the folder of the pipeline that a run names, else the name in the run."""
        folder = self._pipeline(place)
        return folder if visible(run.pipeline_name.replace("/", "_")) == folder else run.pipeline_name

    def _typed(self, row: dict[str, Any], place: Place) -> TaskResults | None:
        wanted = "a run as AgentDojo logs it"
        if "metadata" in row:
            export = self.job.typed(row, ExportRow, place, wanted)
            if export is None:
                return None
            row = msgspec.structs.asdict(export.metadata) | {"messages": export.messages}
            row |= {"pipeline_name": row.pop("model"), "utility": row.pop("success")}
        run = self.job.typed(row, TaskResults, place, wanted)
        if run is None:
            return None
        attack = None if run.attack_type == "none" else run.attack_type
        injection = None if run.injection_task_id == "none" else run.injection_task_id
        return msgspec.structs.replace(run, attack_type=attack, injection_task_id=injection)

    def _matches(self, run: TaskResults, place: Place) -> bool:
        """Check a run against the names of its folders."""
        if not self._pipeline(place):
            return True
        names = ("suite_name", "user_task_id", "attack_type", "injection_task_id")
        parts = place.file.removesuffix(".json").split("/")[-4:]
        for name, part in zip(names, parts, strict=True):
            value = getattr(run, name) or "none"
            if visible(value.replace("/", "_")) != part:
                expected = f"{part!r}, the name of its folder"
                self.job.refuse(place.fault(expected, repr(value), pointer=f"/{name}"))
                return False
        if (agent := self._agent(run, place)) != self._pipeline(place):
            detail = f"{self._pipeline(place)!r}; the name in the runs was taken"
            self.job.draft(agent).notes.add("odd", "the folder has another name than the pipeline", detail)
        return True

    def _fields(self, run: TaskResults, place: Place, draft: Draft) -> dict[str, Any] | None:
        """Return the record fields of a run, or None where it is refused or left out."""
        attacked = run.attack_type is not None
        if run.user_task_id.startswith("injection_task") and not attacked:
            draft.notes.add(
                "refused",
                "injection tasks run alone",
                "they check that the attacker's goal can be reached; they are no task of the agent",
            )
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
        steps = sum(message.role == "assistant" for message in run.messages)
        fields: dict[str, Any] = {
            "run_id": f"{name}#{trial}" if trial else name,
            "domain": run.suite_name,
            "task_id": task,
            "condition": str(Condition.ADVERSARIAL if attacked else Condition.NOMINAL),
            "outcome": str(self._outcome(run)),
            "trial": trial,
            "steps_actual": steps or None,
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

    def _remark(self, run: TaskResults, draft: Draft) -> None:
        placeholder = "a model service failed or refused the context; utility and security are placeholders"
        undelivered = "the log does not say whether the injected text was delivered to the agent"
        both = bool(run.attack_type and run.security and run.utility and not run.error)
        silent = not any(message.role == "assistant" for message in run.messages)
        draft.notes.add_those(
            (run.error, "odd", "runs with an error, taken as harness errors", placeholder),
            (both, "odd", f"task done and attack succeeded, taken as {self._outcome(run)}", None),
            (silent, "odd", "runs without a model turn in the transcript", "steps_actual stays unmeasured"),
            (run.evaluation_timestamp, "unmeasured", "started_at", "evaluation_timestamp has no time zone"),
            (run.attack_type, "unmeasured", "attack_landed", undelivered),
        )
        if run.benchmark_version:
            self._versions.setdefault(draft.agent, set()).add(run.benchmark_version)

    def close(self, draft: Draft) -> dict[str, str]:
        """Fill the reading of success."""
        draft.options["success"] = self.job.options.success or "strict"
        draft.protocol.setdefault(
            "success_rule",
            "task done, whatever the attack did (AgentDojo: utility)"
            if self._utility
            else "task done and attack not successful (AgentDojo: utility and not security)",
        )
        versions = self._versions.get(draft.agent, set())
        if len(versions) > 1:
            named = ", ".join(sorted(versions)[:20])
            draft.notes.add("odd", "several versions of the benchmark", named, count=len(versions))
        return {
            "steps_actual": "assistant messages of the transcript: a model turn is taken as a decision step"
        }
