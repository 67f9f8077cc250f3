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

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from certkit.evidence.importers.base import Importer, Place, Run
from certkit.evidence.importers.source import MAX_ROW
from certkit.evidence.records.record import Condition, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.evidence.importers.base import Draft, Job

_LAYOUT: Final = "<pipeline>/<suite>/<user_task>/<attack>/<injection>.json"
_LEVELS: Final = 5

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

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._utility = job.options.success == "utility"
        self._versions: dict[str, set[str]] = {}

    def runs(self) -> Iterator[Run]:
        """Yield the runs of a folder or an export."""
        for place, row, path in self._folder() if self.job.source.is_dir() else self._export():
            found = self._typed(row, place)
            if found is None or not (path is None or self._matches(found, path, place)):
                continue
            agent = found.pipeline_name if path is None else _pipeline(path, self.job.source)
            draft = self.job.draft(agent)
            fields = self._fields(found, place, draft)
            if fields is not None:
                self._remark(found, draft)
                yield Run(agent, place, row, fields)

    def _export(self) -> Iterator[tuple[Place, dict[str, Any], None]]:
        with self.job.opening(self.job.source) as source:
            for number, line in source.lines():
                place = Place(source.name, number)
                row = self.job.load(line, place)
                header = number == 1 and row is not None and not {"messages", "utility"} & row.keys()
                if row is not None and not header:
                    yield place, row, None

    def _folder(self) -> Iterator[tuple[Place, dict[str, Any], Path]]:
        paths = self.job.files((".json",))
        runs = [item for item in paths if len(Path(item[1]).parts) >= _LEVELS - 1]
        self.job.left_out += len(paths) - len(runs)
        agents = {_pipeline(path, self.job.source) for path, _ in runs}
        for path, name in runs:
            if self.job.options.agent in agents - {_pipeline(path, self.job.source)}:
                continue  # another agent's
            place = Place(name, 1)
            with self.job.opening(path, name) as source:
                row = self.job.load(source.read(MAX_ROW), place)
            if row is not None:
                yield place, row, path

    def _typed(self, row: dict[str, Any], place: Place) -> TaskResults | None:
        wanted = "a run as AgentDojo logs it"
        export = self.job.typed(row, ExportRow, place, wanted) if "metadata" in row else None
        if export is not None:
            fields = msgspec.structs.asdict(export.metadata)
            names = {"pipeline_name": fields.pop("model"), "utility": fields.pop("success")}
            row = fields | names | {"messages": export.messages}
        elif "metadata" in row:
            return None
        found = self.job.typed(row, TaskResults, place, wanted)
        if found is None:
            return None
        attack = None if found.attack_type == "none" else found.attack_type
        injection = None if found.injection_task_id == "none" else found.injection_task_id
        return msgspec.structs.replace(found, attack_type=attack, injection_task_id=injection)

    def _matches(self, run: TaskResults, path: Path, place: Place) -> bool:
        """Check a run against the names of its folders."""
        stated = (
            run.suite_name,
            run.user_task_id,
            run.attack_type or "none",
            run.injection_task_id or "none",
        )
        lies = (*path.parts[-4:-1], path.stem)
        names = ("suite_name", "user_task_id", "attack_type", "injection_task_id")
        for name, value, part in zip(names, stated, lies, strict=True):
            if value.replace("/", "_") != part:
                expected = f"{part!r}, the name of its folder"
                self.job.refuse(place.fault(expected, repr(value), pointer=f"/{name}"))
                return False
        folder = _pipeline(path, self.job.source)
        if run.pipeline_name.replace("/", "_") != folder:
            self.job.draft(folder).notes.add(
                "odd",
                "pipeline name differs from the folder's",
                f"first {run.pipeline_name!r}; the folder's was taken",
            )
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
        notes = draft.notes
        if run.error:
            detail = "a model service failed or refused the context; utility and security are placeholders"
            notes.add("odd", "runs with an error, taken as harness errors", detail)
        elif run.attack_type and run.security and run.utility:
            taken = "success" if self._utility else "failure"
            notes.add("odd", f"task done and attack succeeded, taken as {taken}")
        if not any(message.role == "assistant" for message in run.messages):
            notes.add("odd", "runs without a model turn in the transcript", "steps_actual stays unmeasured")
        if run.evaluation_timestamp:
            notes.add("unmeasured", "started_at", "evaluation_timestamp has no time zone")
        if run.attack_type:
            detail = "the log does not say whether the injected text was delivered to the agent"
            notes.add("unmeasured", "attack_landed", detail)
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


def _pipeline(path: Path, root: Path) -> str:
    """Return the pipeline that a run's folders name."""
    parts = path.relative_to(root).parts
    return parts[-_LEVELS] if len(parts) >= _LEVELS else root.resolve().name
