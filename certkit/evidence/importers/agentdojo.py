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

import os
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from certkit import canonical
from certkit.errors import InputError
from certkit.evidence.importers.base import MAX_AGENTS, Draft, Job, Place, choose, printable, typed_fault
from certkit.evidence.importers.source import MAX_ROW, opening
from certkit.evidence.records.record import Condition, Outcome
from certkit.progress import SILENT

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILES: Final = 1_000_000
MAX_DEPTH: Final = 12
"""Levels of folders below the source that are read."""

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


class _PeekMetadata(Struct, frozen=True):
    model: Name | None = None


class _Peek(Struct, frozen=True):
    """The fields of a line that name the agent."""

    pipeline_name: Name | None = None
    metadata: _PeekMetadata | None = None


def read(job: Job) -> list[Draft]:
    """Read a runs folder or an export into one draft."""
    return [_read_folder(job) if job.source.is_dir() else _read_export(job)]


def _read_export(job: Job) -> Draft:
    name = printable(job.source.name)
    bench = _Bench(job, choose(_pipelines_of_export(job, name), job.options))
    job.progress.start("importing", job.source.stat().st_size, "bytes")
    with opening(job.source, name, job.progress) as source:
        for number, line in source.lines():
            place = Place(source.name, number)
            row = _decode(line, place, job)
            if row is None or (number == 1 and _is_header(row)):
                continue
            run = _typed(row, place, job)
            if run is not None and run.pipeline_name == bench.pipeline:
                bench.add(run, place)
        job.sources.append(source.facts())
    job.progress.finish()
    return bench.close()


def _pipelines_of_export(job: Job, name: str) -> list[str]:
    """Return the agents of an export; lines that cannot be read are skipped here and reported later."""
    decoder = msgspec.json.Decoder(_Peek)
    agents: dict[str, None] = {}
    with opening(job.source, name, SILENT) as source:
        for number, line in source.lines():
            try:
                peek = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            agent = peek.pipeline_name or (peek.metadata and peek.metadata.model)
            if agent:
                agents[agent] = None
            elif number > 1 and not agents:
                break
            if len(agents) > MAX_AGENTS:
                break
    if not agents:
        raise InputError(
            "import.source",
            "no line names a model or pipeline",
            where=name,
            hint="expected AgentDojo's runs folder, or its one-file export with one run a line",
        )
    return list(agents)


def _is_header(row: dict[str, Any]) -> bool:
    return "messages" not in row and "utility" not in row


def _read_folder(job: Job) -> Draft:
    files, strays, links = _find(job.source)
    if not files:
        raise InputError(
            "import.source",
            f"no file lies at {_LAYOUT}",
            where=printable(job.source.resolve().name),
            hint="give the runs folder, or the folder of a pipeline in it",
        )
    bench = _Bench(job, choose(list(files), job.options))
    wanted = files[bench.pipeline]
    if strays:
        detail = f"not at {_LAYOUT}, so not a run"
        bench.draft.notes.add("refused", "other files in the folder", detail, count=strays)
    if links:
        bench.draft.notes.add("refused", "symbolic links", "links are not followed", count=links)
    job.progress.start("importing", sum(size for _, size in wanted), "bytes")
    for path, _ in sorted(wanted):
        place = Place(printable("/".join(path.relative_to(job.source).parts)), 1)
        with opening(path, place.file, job.progress) as source:
            row = _decode(source.read(MAX_ROW), place, job)
            job.sources.append(source.facts())
        run = None if row is None else _typed(row, place, job)
        if run is not None and _matches(run, path, place, job, bench):
            bench.add(run, place)
    job.progress.finish()
    return bench.close()


def _find(root: Path) -> tuple[dict[str, list[tuple[Path, int]]], int, int]:
    """Return pipeline → run files with their sizes, and how many other files and links there are."""
    pipelines: dict[str, list[tuple[Path, int]]] = {}
    strays = links = seen = 0
    pending = [(root, 0)]
    while pending:
        folder, depth = pending.pop()
        try:
            with os.scandir(folder) as entries:
                children = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise InputError("file.unreadable", reason, where=printable(folder.name)) from error
        for child in children:
            seen += 1
            path = folder / child.name
            parts = path.relative_to(root).parts
            if child.is_symlink():
                links += 1
            elif child.is_dir(follow_symlinks=False) and depth < MAX_DEPTH:
                pending.append((path, depth + 1))
            elif (
                child.is_file(follow_symlinks=False) and path.suffix == ".json" and len(parts) >= _LEVELS - 1
            ):
                pipeline = parts[-_LEVELS] if len(parts) >= _LEVELS else root.resolve().name
                pipelines.setdefault(pipeline, []).append((path, child.stat(follow_symlinks=False).st_size))
            else:
                strays += 1
        if seen > MAX_FILES:
            raise InputError("import.source", f"more than {MAX_FILES:,} names", where=printable(root.name))
    return pipelines, strays, links


def _matches(run: TaskResults, path: Path, place: Place, job: Job, bench: _Bench) -> bool:
    """Check a run against the names of its folders."""
    stated = (run.suite_name, run.user_task_id, run.attack_type or "none", run.injection_task_id or "none")
    lies = (*path.parts[-4:-1], path.stem)
    names = ("suite_name", "user_task_id", "attack_type", "injection_task_id")
    for name, value, part in zip(names, stated, lies, strict=True):
        if value.replace("/", "_") != part:
            job.faults.add(place.fault(f"{part!r}, the name of its folder", repr(value), pointer=f"/{name}"))
            return False
    if run.pipeline_name.replace("/", "_") != bench.pipeline:
        bench.draft.notes.add(
            "odd",
            "pipeline name differs from the folder's",
            f"first {run.pipeline_name!r}; the folder's was taken",
        )
    return True


def _decode(data: bytes, place: Place, job: Job) -> dict[str, Any] | None:
    try:
        row = canonical.loads(data, max_bytes=MAX_ROW)
    except InputError as error:
        job.faults.add(place.fault("one JSON object", error.message, code=error.code))
        return None
    if not isinstance(row, dict):
        job.faults.add(place.fault("one JSON object", type(row).__name__))
        return None
    return row


def _typed(row: dict[str, Any], place: Place, job: Job) -> TaskResults | None:
    try:
        if "metadata" not in row:
            run = msgspec.convert(row, TaskResults)
        else:
            export = msgspec.convert(row, ExportRow)
            fields = msgspec.structs.asdict(export.metadata)
            run = TaskResults(
                pipeline_name=fields.pop("model"),
                utility=fields.pop("success"),
                messages=export.messages,
                **fields,
            )
    except msgspec.ValidationError as error:
        job.faults.add(typed_fault(place, "a run as AgentDojo logs it", error))
        return None
    attack = None if run.attack_type == "none" else run.attack_type
    injection = None if run.injection_task_id == "none" else run.injection_task_id
    return msgspec.structs.replace(run, attack_type=attack, injection_task_id=injection)


class _Bench:
    """Turns the runs of one pipeline into records."""

    def __init__(self, job: Job, pipeline: str) -> None:
        self.pipeline = pipeline
        self.draft = job.draft(pipeline)
        self._job = job
        self._repeats: Counter[str] = Counter()
        self._versions: set[str] = set()

    def add(self, run: TaskResults, place: Place) -> None:
        attacked = run.attack_type is not None
        if run.user_task_id.startswith("injection_task") and not attacked:
            self.draft.notes.add(
                "refused",
                "injection tasks run alone",
                "they check that the attacker's goal can be reached; they are no task of the agent",
            )
            return
        if run.injection_task_id is not None and not attacked:
            self._job.faults.add(place.fault("an attack_type with an injection task", "null"))
            return
        if attacked and run.security is None and not run.error:
            self._job.faults.add(place.fault("true or false", "null", pointer="/security"))
            return
        self._remark(run)
        if self._repeats[self._name(run)]:
            self.draft.notes.add("odd", "runs of the same task and attack again, taken as further trials")
        self._job.write(self.draft, self._record(run), place)

    @staticmethod
    def _name(run: TaskResults) -> str:
        parts = (run.suite_name, run.user_task_id, run.attack_type or "none", run.injection_task_id or "none")
        return "/".join(parts)

    def _record(self, run: TaskResults) -> dict[str, Any]:
        task = f"{run.suite_name}/{run.user_task_id}"
        name = self._name(run)
        trial = self._repeats[name]
        self._repeats[name] += 1
        steps = sum(message.role == "assistant" for message in run.messages)
        fields: dict[str, Any] = {
            "run_id": f"{name}#{trial}" if trial else name,
            "domain": run.suite_name,
            "task_id": task,
            "condition": str(Condition.ADVERSARIAL if run.attack_type else Condition.NOMINAL),
            "outcome": str(self._outcome(run)),
            "trial": trial,
            "steps_actual": steps or None,
        }
        if run.attack_type:
            fields["attack_attempted"] = True
            fields["attack_succeeded"] = None if run.error else run.security
        return fields

    def _outcome(self, run: TaskResults) -> Outcome:
        if run.error:
            return Outcome.HARNESS_ERROR
        held = run.attack_type is None or self._job.options.success == "utility" or not run.security
        return Outcome.SUCCESS if run.utility and held else Outcome.FAILURE

    def _remark(self, run: TaskResults) -> None:
        notes = self.draft.notes
        if run.error:
            detail = "a model service failed or refused the context; utility and security are placeholders"
            notes.add("odd", "runs with an error, taken as harness errors", detail)
        elif run.attack_type and run.security and run.utility:
            taken = "success" if self._job.options.success == "utility" else "failure"
            notes.add("odd", f"task done and attack succeeded, taken as {taken}")
        if not any(message.role == "assistant" for message in run.messages):
            notes.add("odd", "runs without a model turn in the transcript", "steps_actual stays unmeasured")
        if run.evaluation_timestamp:
            notes.add("unmeasured", "started_at", "evaluation_timestamp has no time zone")
        if run.attack_type:
            detail = "the log does not say whether the injected text was delivered to the agent"
            notes.add("unmeasured", "attack_landed", detail)
        if run.benchmark_version:
            self._versions.add(run.benchmark_version)

    def close(self) -> Draft:
        """Fill the protocol and the account of the fields."""
        draft = self.draft
        draft.options["success"] = self._job.options.success
        strict = self._job.options.success == "strict"
        draft.protocol["success_rule"] = (
            "task done and attack not successful (AgentDojo: utility and not security)"
            if strict
            else "task done, whatever the attack did (AgentDojo: utility)"
        )
        if len(self._versions) > 1:
            named = ", ".join(sorted(self._versions)[:20])
            draft.notes.add("odd", "several versions of the benchmark", named, count=len(self._versions))
        counted = "assistant messages of the transcript: a model turn is taken as a decision step"
        draft.describe_fields({"steps_actual": counted})
        return draft
