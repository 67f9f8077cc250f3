"""The recorder: it runs through a plan, keeps every finished run, and makes the bundle when all are there.

    with Recorder(Path("bundle"), plan, agent="triage", version="1.4.0") as recorder:
        for run in recorder.runs():
            tools = run.wrap({"lookup": lookup})
            answer = my_agent(run.task.prompt, tools)
            verdict = run.finish(success=check(answer), answer=answer)

The folder is a bundle from the first moment. The log of a finished run is appended to ``trial/runs.jsonl`` at
once, so that after a kill the same program goes on with the runs that are missing, each of which is made
once. When the last one is there, records and traces are written in the order of the plan, and the bundle is
sealed: the same plan and the same runs give the same bytes. A run is kept only if its log and its record can
be read again. A trial is not sealed if no run did anything at its tool boundary.

`close` makes the bundle of the runs that are there, and no further one can be added; the manifest still says
how many were planned. What happened while a run was not finished is lost, and the run is made again. Nobody
else may write to the folder meanwhile.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec
from msgspec import Struct

from certkit.bundle.folder import read_manifest
from certkit.bundle.manifest import MANIFEST_SCHEMA, Manifest
from certkit.bundle.writer import RECORD_FILE, BundleWriter, new_bundle, record_line
from certkit.ground import base, files
from certkit.ground.errors import CertkitError, InputError, UsageError
from certkit.ground.progress import SILENT, Progress
from certkit.record import trace
from certkit.record.outcome import RunLog, RunVerdict, decode_log, derive, run_verdict
from certkit.record.planned import PLAN_FILE
from certkit.record.reader import check_line
from certkit.trial.boundary import Boundary, Halt, OwnRules, Tools, WorldRules
from certkit.trial.plan import announced
from certkit.trial.worlds import instance_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from certkit.bundle.folder import Bundle
    from certkit.record.outcome import Ending
    from certkit.trial.plan import PlannedRun, PlannedTask, TrialPlan

JOURNAL: Final = "trial/runs.jsonl"


class RecordedRun:
    """A run of the plan, while it is made.

    Attributes:
        id: its id.
        task: what the agent is told.
        condition: what it is exposed to.
        boundary: its tool boundary, for adapters of frameworks; `wrap` is enough for functions.
    """

    def __init__(self, recorder: Recorder, run: PlannedRun, task: PlannedTask) -> None:
        self.id, self.condition, self.task = run.id, run.condition, task.told
        rules = OwnRules(task.attack) if task.world is None else WorldRules(instance_of(task.id))
        self._recorder, self._run = recorder, run
        self.boundary = Boundary(recorder.plan, run, task, rules)

    def wrap(self, tools: Mapping[str, Callable[..., Any]]) -> Tools:
        """Return the tools behind the boundary; give the agent these."""
        return self.boundary.wrap(tools)

    def search(self, *, similarity: float | None = None, item: Any = None) -> None:
        """Record that the agent searched its memory, with the similarity and the item that it got."""
        self.boundary.search(similarity=similarity, item=item)

    def halt(self, reason: str = "") -> Halt:
        """Record that the agent hands over to people."""
        return self.boundary.halt(reason)

    def finish(
        self,
        *,
        success: bool | None = None,
        answer: Any = None,
        violations: int | None = None,
        attack_succeeded: bool | None = None,
        ended: Ending = "answered",
        detail: str | None = None,
    ) -> RunVerdict:
        """End the run, keep its log, and return its verdict.

        Args:
            success: what your checker says of the result.
            answer: the final answer, or a `Halt`.
            violations: violated hard constraints, None if nothing checks them.
            attack_succeeded: whether the attacker's goal was reached, None if nothing checks it.
            ended: how it ended; ``harness_error`` where not the agent failed.
            detail: of an ending that is no answer: what people want to know.

        Raises:
            UsageError: ``usage.option`` where an argument is not of its type; the run is then still open.
        """
        log = self.boundary.finish(
            ended=ended,
            answer=answer,
            success=success,
            violations=violations,
            attack_succeeded=attack_succeeded,
            detail=detail,
        )
        return self._recorder.keep(self._run, log)


class _Line(Struct):
    """A line of the journal."""

    run_id: str
    log: msgspec.Raw


class TrialMade(Struct, frozen=True, kw_only=True):
    """What a recorder has when it ends.

    Attributes:
        folder: the bundle's folder.
        planned: runs of the plan.
        made: runs that are there.
        new: those of them that this recorder has made.
        details: of runs that raised or were harness errors: how they ended and why, most frequent first; a
            recorder that found the bundle sealed does not know.
        outcomes: runs by their outcome.
        unsafe: runs that are not safe, by the reason.
        digest: of the sealed bundle, None while runs are missing.
    """

    folder: Path
    planned: int
    made: int
    new: int
    details: dict[str, int]
    outcomes: dict[str, int]
    unsafe: dict[str, int]
    digest: str | None


class Recorder:
    """Makes the bundle of a trial; used as a context manager.

    Args:
        folder: where the bundle is or becomes; an unfinished one of the same plan and agent goes on.
        plan: the plan.
        agent: the agent's name.
        version: its version.
        provider: who provides it.
        components: what it is made of, as in the manifest.
        protocol: further members of the manifest's ``protocol``: `memory_observable` where a search of the
            agent's memory would show, `embedding` of that memory, `evaluator`, `temperature`.
        on_unsafe: called with the id and the verdict of every run that is not safe.
        progress: told of every run.
    """

    def __init__(
        self,
        folder: Path | str,
        plan: TrialPlan,
        *,
        agent: str,
        version: str = "unversioned",
        provider: str | None = None,
        components: Sequence[Mapping[str, Any]] = (),
        protocol: Mapping[str, Any] | None = None,
        on_unsafe: Callable[[str, RunVerdict], object] | None = None,
        progress: Progress = SILENT,
    ) -> None:
        self.folder, self.plan = Path(folder), plan
        about = {"name": agent, "version": version, "provider": provider, "components": [*components]}
        planned, more = announced(plan), dict(protocol or {})
        if differing := [name for name, value in planned.items() if more.get(name, value) != value]:
            raise UsageError("usage.option", f"protocol: the plan says {', '.join(differing)}, and otherwise")
        fixed = {"origin": "measured", "methodology": "constraint_verification", **planned}
        document = {
            "schema": MANIFEST_SCHEMA,
            "agent": {name: value for name, value in about.items() if value},
            "protocol": fixed | more,
        }
        manifest = base.validate(Manifest, document, code="usage.option", where="manifest")
        self._manifest = manifest.to_dict()
        self._on_unsafe, self._progress = on_unsafe, progress
        self._tasks = plan.tasks_by_id()
        self._stack = ExitStack()
        self._places: dict[str, tuple[int, int]] = {}
        self._order = {run.id: place for place, run in enumerate(plan.runs)}
        self._verdicts: dict[str, RunVerdict] = {}
        self._details = Counter[str]()
        self._idle = self._new = 0
        self._append: Callable[[bytes], None] | None = None
        self._size = 0
        self._closing = False
        self.bundle: Bundle | None = None

    def __enter__(self) -> Self:
        """Begin the bundle, or take up what is there.

        Raises:
            InputError: ``trial.other-run`` where the folder holds another trial.
            UsageError: ``file.exists`` where it holds something else, ``registry.busy`` where another program
                writes there.
        """
        if not (self.folder / PLAN_FILE).is_file():
            self._begin()
        self._stack.enter_context(files.locked(self.folder))
        try:
            self._check()
            writer = BundleWriter(self.folder)
            if (self.folder / JOURNAL).is_file():
                writer.resume(JOURNAL)
                self._read_journal()
            elif (self.folder / RECORD_FILE).is_file():  # the journal was removed when all was written
                self.bundle = writer.seal()
                self._read_records()
                return self
            self._append = self._stack.enter_context(writer.appending(JOURNAL))
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None and self._append is not None and (self._closing or not self.missing):
                self._complete()
        finally:
            self._progress.finish()
            self._stack.close()

    @property
    def missing(self) -> list[PlannedRun]:
        """The runs of the plan that are still to be made, in its order; none once the bundle is sealed."""
        if self.bundle is not None:
            return []
        return [run for run in self.plan.runs if run.id not in self._verdicts]

    @property
    def made(self) -> TrialMade:
        """What is there so far."""
        verdicts = self._verdicts.values()
        outcomes = Counter(verdict.outcome for verdict in verdicts)
        unsafe = Counter(verdict.reason for verdict in verdicts if verdict.reason is not None)
        return TrialMade(
            folder=self.folder,
            planned=len(self.plan.runs),
            made=len(self._verdicts),
            new=self._new,
            details=dict(self._details.most_common()),
            outcomes=dict(sorted(outcomes.items())),
            unsafe=dict(sorted(unsafe.items())),
            digest=None if self.bundle is None else self.bundle.facts.digest,
        )

    def runs(self) -> Iterator[RecordedRun]:
        """Yield the missing runs; one that is not finished when the next begins is a harness error."""
        missing = self.missing
        self._progress.start("running", len(missing), "runs")
        for planned in missing:
            run = RecordedRun(self, planned, self._tasks[planned.task])
            yield run
            if planned.id not in self._verdicts:
                run.finish(ended="harness_error", detail="the loop went on without finishing the run")

    def close(self) -> None:
        """Let the end of the block make the bundle of the runs that are there."""
        self._closing = True

    def keep(self, run: PlannedRun, log: bytes) -> RunVerdict:
        """Append the log of a finished run, and return its verdict.

        Raises:
            UsageError: ``usage.option`` where the run is there already, the recorder is not open, or nobody
                could read the log or the record again; nothing is then appended.
        """
        if self._append is None or run.id in self._verdicts:
            raise UsageError("usage.option", f"run {run.id} was finished before, or its recorder is closed")
        try:
            read = trace.decoded(log, RunLog)
        except (msgspec.MsgspecError, CertkitError, RecursionError) as error:
            raise UsageError("usage.option", f"run {run.id}: its log cannot be read: {error}") from None
        record = self._record(run, read)
        if isinstance(faults := check_line(record_line(record)), list):
            raise UsageError("usage.option", f"run {run.id}: {faults[0]}")
        line = b'{"run_id":%b,"log":%b}\n' % (msgspec.json.encode(run.id), log)
        self._append(line)
        self._new += 1
        verdict = self._count(run.id, read, len(line))
        self._progress.advance(1)
        if not verdict.safe and self._on_unsafe is not None:
            self._on_unsafe(run.id, verdict)
        return verdict

    def _count(self, run_id: str, log: RunLog, length: int) -> RunVerdict:
        """Note a line of the journal, and return the verdict of its run."""
        self._places[run_id] = self._size, length
        self._size += length
        self._verdicts[run_id] = verdict = run_verdict(derive(log))
        for event in log.events:
            if event.ended in {"raised", "harness_error"}:
                self._details[f"{event.ended.replace('_', ' ')}: {event.detail or 'no reason given'}"] += 1
        self._idle += all(event.event == "end" for event in log.events)
        return verdict

    def _begin(self) -> None:
        with new_bundle(self.folder) as writer:
            writer.describe(self._manifest)
            writer.write(PLAN_FILE, self.plan.to_json())
            writer.write(JOURNAL, b"")

    def _check(self) -> None:
        """Refuse a folder of another plan or agent."""
        hint = "name a folder that does not exist, or give the plan and the agent that it was begun with"
        refuse = partial(InputError, "trial.other-run", where=str(self.folder), hint=hint)
        if files.read(self.folder / PLAN_FILE, limit=1 << 27) != self.plan.to_json():
            raise refuse(f"holds the runs of another plan than {self.plan.digest}")
        document, _ = read_manifest(self.folder)
        for name in ("agent", "protocol"):
            held, given = document[name], self._manifest[name]
            if held != given:
                differing = sorted(key for key in {*held, *given} if held.get(key) != given.get(key))
                raise refuse(f"was begun with another {name}: {', '.join(differing)}")

    def _read_journal(self) -> None:
        decoder = msgspec.json.Decoder(_Line)
        with files.reading(self.folder / JOURNAL) as stream:
            for number, line in enumerate(stream, 1):
                try:
                    kept = decoder.decode(line)
                    self._count(kept.run_id, decode_log(bytes(kept.log)), len(line))
                except msgspec.MsgspecError as error:
                    place = f"{self.folder / JOURNAL}:{number}"
                    raise InputError("trial.other-run", f"no log of a run: {error}", where=place) from None

    def _read_records(self) -> None:
        with files.reading(self.folder / RECORD_FILE) as stream:
            for line in stream:
                fields = msgspec.json.decode(line)
                self._verdicts[fields["run_id"]] = run_verdict(fields)

    def _complete(self) -> None:
        """Write records and traces in the order of the plan, remove the journal, and seal."""
        if not self._places:
            raise UsageError("usage.option", "no run was made, and so there is nothing to close")
        if self._idle == len(self._verdicts):
            self._refuse()
        with BundleWriter(self.folder) as writer:
            with files.reading(self.folder / JOURNAL) as stream:
                for run in self.plan.runs:
                    if run.id not in self._places:
                        continue
                    start, length = self._places[run.id]
                    stream.seek(start)
                    log = bytes(msgspec.json.decode(stream.read(length), type=_Line).log)
                    writer.add(self._record(run, decode_log(log)), ("trial", log))
            writer.close()
            writer.remove(JOURNAL)
            self.bundle = writer.seal()
        self._append = None

    def _refuse(self) -> NoReturn:
        """Refuse to seal runs of which none did anything at its tool boundary."""
        reason = ""
        if self._details:
            [(detail, count)] = self._details.most_common(1)
            reason = f": {count:,} of {len(self._verdicts):,} {detail}"
        hint = (
            "mend the program; in a loop of your own, give the agent the tools that run.wrap returns; then"
            f" remove {self.folder}, and begin anew"
        )
        raise InputError("trial.no-calls", f"no run made a tool call{reason}", hint=hint)

    def _record(self, run: PlannedRun, log: RunLog) -> dict[str, Any]:
        named = {
            "run_id": run.id,
            "domain": self._tasks[run.task].domain,
            "task_id": run.task,
            "sequence": self._order[run.id],
            "trial": run.trial,
        }
        return named | derive(log) | {"measured": "derived"}
