"""Inspect AI: ``.eval`` archives and ``.json`` logs of several generations, single or in a folder.

| field of the log | field of the record | note |
|---|---|---|
| `eval.model` | the agent | its model; `eval.solver` is its scaffold |
| `eval.task` | `domain` | |
| `eval.task` and `id` | `task_id` | `TASK/ID` |
| `epoch` | `trial` | from 0 |
| `scores.NAME.value` | `outcome` | 1 is `success`, 0 is `failure`; see below |
| `error`, `invalidation`, or no score | `outcome` | `harness_error`, also with a score beside the error |
| `started_at`, or the time of the first event | `started_at` | without an offset it needs `--timezone` |
| `events`, or `messages` | `steps_actual` and what else a transcript shows | enclosed as the trace |

Scores are read as ``inspect_ai.scorer.value_to_float`` (0.3.285) reads them: ``C`` is 1, ``I`` and ``N`` are
0; ``yes``, ``true``, ``no`` and ``false`` are 1 and 0 in any case of letters; numbers are read also as texts.
``P``, which is 0.5, is no success, and counted. What Inspect cannot read it takes as 0, with a warning; here
`--success` decides it, as it decides other numbers, scores of a sample that disagree, and logs whose samples
have different scorers.

A log replaces the samples, by id and epoch, of earlier logs of its `eval.task_id` (`inspect eval-retry`).
Copies of a log count once; copies whose scores differ are refused.

A sample of a task of `certkit.trial.inspect` is a run of its plan: `certkit.imports.inspect_trial`. Of others
the format does not say which runs were under a fault: `--condition`, or `[when.condition]` in a mapping. The
rows of a mapping are samples without messages, events and attachments, with `eval` of the log's header.
"""

from __future__ import annotations

import math
import re
from contextlib import closing
from datetime import UTC, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.ground.progress import SILENT
from certkit.ground.text import moment, visible
from certkit.imports.archive import ANEW, Archive
from certkit.imports.drafts import Place
from certkit.imports.inspect_trial import (
    NAME,
    AnnouncedTask,
    InspectTrial,
    PlannedSample,
    PlannedTranscript,
    ScoredRun,
    trial_of,
)
from certkit.imports.job import Importer, Run, Short
from certkit.imports.names import MAX_NAME, paths
from certkit.imports.source import MAX_LOG_ROW, opening
from certkit.record import trace as traces
from certkit.record.expressions import MISSING, look_up, shell, spelled, success_test
from certkit.record.planned import PLAN_FILE, enclosed_plan
from certkit.record.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.imports.drafts import Draft
    from certkit.imports.job import Job
    from certkit.imports.source import Source
    from certkit.record.planned import EnclosedPlan

ZIP: Final = b"PK\x03\x04"  # only Inspect writes archives: `importers` takes every ZIP file for its log
_STARTS: Final = ("header.json", "_journal/start.json")  # an interrupted evaluation has no header
# The id of a sample may hold slashes; a large sample is a folder with sample.json.
_SAMPLE = re.compile(r"samples/.+_epoch_[0-9]+(/sample)?\.json\Z", re.DOTALL)
_CREATED = re.compile(rb'"created"\s*:\s*"([^"\\]{1,40})"')  # the first is that of `eval`
_MARKS: Final = {"C": 1, "I": 0, "P": 0, "N": 0}
_WORDS: Final = {"yes": 1, "true": 1, "no": 0, "false": 0}
_OUTCOMES: Final[dict[float | None, Outcome]] = {1: Outcome.SUCCESS, 0: Outcome.FAILURE}
_ROW: Final = ("id", "epoch", "target", "metadata", "error", "limit", "started_at", "total_time")
_OF_AGENT: Final = [
    *("eval.solver", "eval.solver_args", "eval.model_args", "eval.model_roles", "eval.model_base_url"),
    "eval.model_generate_config",
]
"""Settings that tell agents apart which have the same model."""

_OF_TASK: Final = ["eval.task_args", "eval.task_version", "eval.revision", "plan"]
"""Settings that may differ between tasks, and not between logs of one."""

_LISTED, _CUT = 3, 40  # values that a hint lists, and characters of each


class InspectSample(Struct, frozen=True, kw_only=True):
    """A sample in an epoch. What is not read is not listed."""

    id: int | Short
    epoch: int
    target: Any = None
    scores: dict[Short, dict[str, Any]] | None = None
    score: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    error: Any = None
    invalidation: Any = None
    limit: Any = None
    started_at: Short | None = None
    total_time: float | None = None
    error_retries: list[Any] | None = None
    events: list[traces.Event] | None = None
    transcript: traces.Transcript | None = None
    messages: list[traces.Message] | None = None


class _Interrupted(Struct, frozen=True):
    """Whether a sample ended in an error."""

    error: Any = None


class Eval(Struct, frozen=True, kw_only=True):
    """What the header says of the evaluation."""

    task: str
    model: str
    solver: Any = None
    solver_args: Any = None
    model_args: Any = None
    created: str | None = None
    tags: list[str] | None = None
    run_id: str | None = None
    task_id: str | None = None
    metadata: dict[str, Any] | None = None
    task_args: dict[str, Any] | None = None
    task_version: Any = None
    model_roles: Any = None
    model_base_url: str | None = None
    model_generate_config: dict[str, Any] = {}
    revision: Any = None


class Header(Struct, frozen=True, kw_only=True):
    """The header, or the beginning of the journal."""

    eval: Eval
    status: str | None = None
    plan: Any = None  # the solvers, with what they were given
    results: Any = None


class InspectLog(Importer):
    """Logs of Inspect AI."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._headers: dict[tuple[Draft, str], Header] = {}  # the first of a bundle, and of each of its tasks
        self._met: dict[int, tuple[int, int]] = {}  # hashes: of a sample → of its evaluation, of its scores
        self._finished: set[str | None] = set()  # the ids of tasks of which a log says success
        self._scorers: dict[Draft, dict[str, None]] = {}  # that decided outcomes
        self._planned: set[Draft] = set()  # that hold runs of a trial
        self._outside: dict[str, None] = {}  # numbers outside 0 to 1
        self._begin(None)

    def _begin(self, header: Header | None) -> None:
        """Begin to read a log."""
        self._header = header
        self._eval: dict[str, Any] = {} if header is None else to_builtins(header.eval)
        # The plan is no part of a row: every row holds what is said of the evaluation.
        metadata = dict(self._eval.get("metadata") or {})
        self._about_trial: Any = metadata.pop(NAME, {})
        self._eval |= {"metadata": metadata} if metadata else {}
        self._trial: tuple[EnclosedPlan, AnnouncedTask] | None = None
        self._held: set[int] = set()  # hashes of the log's samples
        self._drafts: dict[Draft, None] = {}  # the bundles that they are in
        self._judged = False  # one has a score or an error, or is in a log that was read before
        self._names: set[str] = set()  # the scorers of the first sample with a score

    def runs(self) -> Iterator[Run]:
        """Yield the samples, those of logs that were begun later first."""
        logs, empty = self.job.files((".eval", ".json")), True
        if len(logs) > 1:
            logs.sort(key=lambda log: (_created(*log), log[1]), reverse=True)
        for path, name in logs:
            self._begin(None)
            with self.job.opening(path, name) as source:
                zipped = source.head().startswith(ZIP)
                yield from self._archive(path, name) if zipped else self._json(source, name)
            self._note_log()
            if self._held and not self._judged and not self.job.faults.total:
                log, out = shell(str(path)), shell(f"{path.with_suffix('')}-scored{path.suffix}")
                hint = f"import it scored: inspect score {log} --scorer NAME --output-file {out}"
                raise InputError("import.source", "no sample has a score", where=name, hint=hint)
            empty &= not self._held
        if empty and not self.job.faults.total:
            message = "the samples are not in this file"
            hint = "Inspect wrote none (--no-log-samples), or ended before it did: run the evaluation again"
            raise InputError("import.source", message, where=self.job.name, hint=hint)

    def _archive(self, path: Path, name: str) -> Iterator[Run]:
        with closing(Archive(path, name, MAX_LOG_ROW)) as archive:
            start = next((item for item in _STARTS if item in archive.names), None)
            if start is None:
                hint = (
                    "save the sheet as CSV, and import that; or unpack it, and give the file or folder in it"
                )
                raise InputError("import.source", "a zip without an Inspect log", where=name, hint=hint)
            place = Place(f"{name}/{start}", 1)
            header = self.job.typed(archive.read(start), Header, place, "a header as Inspect writes it")
            if header is None:
                return
            self._begin(header)
            for (
                item,
                data,
            ) in archive.earlier():  # of a sample that went down with its process, and was run again
                ended = _SAMPLE.match(item) and self.job.typed(
                    data, _Interrupted, place, "a sample as Inspect writes it"
                )
                if not ended or ended.error is None:
                    raise InputError("import.source", "holds two members of one name", where=name, hint=ANEW)
            # Samples are written in the order in which they end; their names give an order that is the log's.
            for item in sorted(archive.names):
                if _SAMPLE.match(item):
                    place = Place(visible(f"{name}/{item}"), 1)
                    yield from self._sample(archive.read(item), header.eval, place)

    def _json(self, source: Source, name: str) -> Iterator[Run]:
        rest: dict[str, Any] = {"status": "started"}
        for piece in source.pieces(MAX_LOG_ROW):
            place = Place(name, piece.line)
            if piece.key in {"status", "plan", "results"}:
                rest[piece.key] = self.job.typed(piece.data, Any, place, "a header as Inspect writes it")
            elif piece.key == "eval":
                eval_ = self.job.typed(piece.data, Eval, place, "`eval` as Inspect writes it")
                if eval_ is not None:
                    self._begin(Header(eval=eval_))
            elif piece.key == "samples" and self._header is not None:
                yield from self._sample(piece.data, self._header.eval, place)
            elif piece.key == "samples" and not self.job.faults:
                message = "the samples stand before `eval`, which names the agent"
                raise InputError("import.source", message, where=name, hint=ANEW)
        if self._header is not None:
            self._header = replace(self._header, **rest)

    def _note_log(self) -> None:
        """Note where a log did not finish, is of another agent than the first, or holds other samples."""
        if (header := self._header) is None:
            return
        task, task_id, held = header.eval.task, header.eval.task_id, len(self._held)
        total = look_up({"": header.results}, ("", "total_samples"))
        finished, status = header.status == "success", header.status or "interrupted"
        continued = task_id is not None and task_id in self._finished
        self._finished |= {task_id} if finished else set()
        for draft in self._drafts or (self.job.draft(header.eval.model),):
            for where, names in (("", _OF_AGENT), (task, _OF_TASK)):
                first = self._headers.setdefault((draft, where), header)
                for name in names:
                    before, now = (attrgetter(name)(each) or None for each in (first, header))
                    if before != now:
                        what = f"logs with another {name.removeprefix('eval.')} than the first"
                        detail = "they count as runs of one agent; import them apart if they are of two"
                        draft.notes.add("odd", what, detail)
            if not finished and not continued:
                detail = f"first of task {task}, status {status}: only the samples that ended are in it"
                draft.notes.add("odd", "logs of evaluations that did not finish", detail)
            if finished and total not in (None, MISSING, held):
                what = "logs that hold another number of samples than they declare"
                draft.notes.add("odd", what, f"first of task {task}: {held} of {total}")

    def _sample(self, data: bytes, eval_: Eval, place: Place) -> Iterator[Run]:
        sample = self.job.typed(data, InspectSample, place, "a sample as Inspect writes it")
        if sample is None:
            return
        scores = sample.scores or ({} if sample.score is None else {"score": sample.score})
        row = {name: getattr(sample, name) for name in _ROW} | {"scores": scores, "eval": self._eval}
        draft = self.job.part(eval_.model, row, place)
        self._drafts[draft] = None
        self._held.add(hash((sample.id, sample.epoch)))
        values = {
            name: value
            for name, score in scores.items()
            if (value := score.get("value")) is not None and not _rated(score)
        }
        again = bool(eval_.task_id) and self._met_before(sample, values, eval_, draft, place)
        self._judged |= again or bool(values) or sample.error is not None
        if not again:
            planned = (sample.metadata or {}).get(NAME) is not None
            counts = "failures, unless the agent handed over" if planned else "their scores count"
            changed = any(score.get("history") for score in scores.values())
            draft.notes.add_those(
                (sample.limit is not None, "odd", "samples that hit a limit", counts),
                (sample.error_retries, "odd", "samples that were run again after an error", None),
                (changed, "odd", "samples whose score a person changed", "the changed score counts"),
            )
            fields = self._fields(sample, values, eval_, draft)
            transcript: traces.Shown | InspectTrial | None = traces.shown(sample)
            if planned:
                transcript = self._run_of_trial(sample, data, fields, draft, place)
            if transcript is not None:
                yield Run(eval_.model, place, row, fields, transcript, data)

    def _run_of_trial(
        self, sample: InspectSample, data: bytes, fields: dict[str, Any], draft: Draft, place: Place
    ) -> InspectTrial | None:
        """Return a run of a trial, and fill the fields that its plan says; None where it is refused."""
        expected = "a sample as certkit.trial.inspect plans it"
        planned = self.job.typed((sample.metadata or {})[NAME], PlannedSample, place, expected)
        transcript = self.job.typed(data, PlannedTranscript, place, expected)
        about = [_about(score) for score in (sample.scores or {}).values()]
        scores = [self.job.typed(it, ScoredRun, place, "a score of a run of a trial") for it in about]
        for rater in (it.rater for it in scores if it is not None and it.rater is not None):
            related = {*rater.split("/")} & {*draft.agent.split("/")}  # its maker, or the model itself
            draft.protocol["judge"] = {"name": rater, "independent": not related}
        if planned is None or transcript is None or (plan := self._announced(draft, planned, place)) is None:
            return None
        if draft.repeat(f"run {planned.run}"):
            hint = "give one log of the plan; inspect eval-retry and eval_set go on with one"
            self.job.refuse(place.fault("each run of the plan once", planned.run, hint=hint))
            return None
        fields |= plan.named(plan.runs[planned.run])
        try:
            answer = traces.shown(sample).answer
            trial = trial_of(transcript, planned, plan, [it for it in scores if it is not None], answer)
        except (ValueError, RecursionError) as error:
            self.job.refuse(place.fault("events as certkit.trial.inspect writes them", str(error)))
            return None
        answered = fields.get("outcome") != Outcome.HARNESS_ERROR
        by = "approval of the solver or of eval took the place of the task's; their faults did not come"
        draft.notes.add_those(
            (trial.bypassed, "odd", "runs with tool calls that the plan's approver was not asked for", by),
            (
                trial.missed and answered,
                "odd",
                "runs whose planned fault hit no call",
                "they count without it",
            ),
        )
        return trial

    def _announced(self, draft: Draft, planned: PlannedSample, place: Place) -> EnclosedPlan | None:
        """Return the plan of the log, and enclose it; None where it is refused, or the run is none of it."""
        if self._about_trial is not None:
            metadata, self._about_trial = self._about_trial, None
            self._trial = self._read_plan(metadata, place)
        if self._trial is None:
            return None
        plan, announced = self._trial
        before = draft.protocol.get("plan", plan.digest)
        if not before == plan.digest == planned.plan:
            hint = "import the logs of each plan apart"
            self.job.refuse(place.fault(f"a run of the plan {before}", planned.plan, hint=hint))
            return None
        if planned.run not in plan.runs:
            self.job.refuse(place.fault(f"a run of the plan {before}", planned.run))
            return None
        if draft not in self._planned:
            self._planned.add(draft)
            draft.writer.write(PLAN_FILE, canonical.pretty(announced.plan).encode())
            stated = to_builtins(announced)
            draft.protocol |= plan.announced() | {name: stated[name] for name in stated if name != "plan"}
        return plan

    def _read_plan(self, metadata: Any, place: Place) -> tuple[EnclosedPlan, AnnouncedTask] | None:
        """Return the plan that the metadata of an evaluation hold, None where it is refused."""
        announced = self.job.typed(metadata, AnnouncedTask, place, "a task of certkit.trial.inspect")
        if announced is None:
            return None
        try:
            return enclosed_plan(announced.plan, where=place.file), announced
        except InputError as error:
            self.job.refuse(place.fault("the plan of a trial", error.message, code=error.code))
            return None

    def _met_before(
        self, sample: InspectSample, values: dict[str, Any], eval_: Eval, draft: Draft, place: Place
    ) -> bool:
        """Tell whether a log that was read before holds a sample, and note it."""
        told = hash((eval_.run_id, eval_.created)), hash(repr((values, sample.error is None)))
        key = hash((eval_.task_id, eval_.task, eval_.model, sample.id, sample.epoch))
        if (met := self._met.setdefault(key, told)) is told:
            return False
        if met[0] == told[0]:
            draft.notes.add("refused", "samples that a copied log repeats", "each counts once")
            if met[1] != told[1]:
                hint = "give one of the logs, or a folder without the copies that do not count"
                self.job.refuse(place.fault("the scores of its copy", "other scores", hint=hint))
            return True
        changed = met[1] != told[1] and sample.error is None and bool(values)
        what = "samples that a later log of the same task replaces"
        draft.notes.add("refused", what, "the log that was begun last counts, as after inspect eval-retry")
        draft.notes.add_those((changed, "odd", "samples to which a later log gives another score", None))
        return True

    def _fields(
        self, sample: InspectSample, values: dict[str, Any], eval_: Eval, draft: Draft
    ) -> dict[str, Any]:
        name, notes = f"{eval_.task}/{sample.id}", draft.notes
        repeat = draft.repeat(f"{name}#{sample.epoch}")
        if repeat:
            notes.add("odd", "samples again in another log, taken as further trials")
        fields: dict[str, Any] = {"run_id": f"{name}#{sample.epoch}" + (f".{repeat}" if repeat else "")}
        fields |= {"domain": eval_.task, "task_id": name, "trial": sample.epoch - 1 if not repeat else None}
        events = sample.events or (sample.transcript.events if sample.transcript else None)
        fields |= self.started(sample.started_at or (events[0].timestamp if events else None), notes)
        reasons = {
            "with an error": sample.error is not None,
            "that a person declared invalid": sample.invalidation is not None,
            "without a score": not values,
        }
        if why := next((why for why, holds in reasons.items() if holds), None):
            notes.add("odd", f"samples {why}, taken as harness errors")
            return fields | {"outcome": str(Outcome.HARNESS_ERROR)}
        scorers = {name for name, score in (sample.scores or {}).items() if not _rated(score)} or {*values}
        self._names = self._names or scorers
        outcomes = {*map(_outcome, values.values())}
        if None in outcomes or len(outcomes) > 1 or self._names != scorers:
            self._ask(values, alone=len(self._names | scorers) == 1)
            return fields
        self._scorers.setdefault(draft, {}).update(dict.fromkeys(values))
        partly = "partly correct answers, taken as failures"
        notes.add_those(("P" in values.values(), "odd", partly, None))
        return fields | {"outcome": str(outcomes.pop())}

    def _ask(self, values: dict[str, Any], *, alone: bool) -> None:
        """Hint what a rule of success may look at; `alone` if the samples of the log have one scorer."""
        scores = {name: {"value": value} for name, value in values.items()}
        leaves = [(spelled(path), value) for path, value in paths(scores, ("scores",), lists=True)]
        number = _number(leaves[0][1]) if alone and len(leaves) == 1 else None
        if number is None:
            held = ", ".join(f"{path:.{MAX_NAME}} is {value!r:.{_CUT}}" for path, value in leaves[:_LISTED])
            more = ", …" * (len(leaves) > _LISTED)
            self.hints.setdefault("several", visible(f" (a sample says that {held}{more})"))
            return
        self.hints["outcome"] = success_test(leaves[0][0], ">= THRESHOLD")
        if not 0 <= number <= 1 and len(self._outside) < _LISTED:
            self._outside[str(leaves[0][1])] = None
            lie = "lies" if len(self._outside) == 1 else "lie"
            self.hints["several"] = f" ({' and '.join(self._outside)} {lie} outside 0 to 1)"

    def close(self, draft: Draft) -> dict[str, str]:
        """Fill what the header says of the agent."""
        eval_ = self._headers[draft, ""].eval
        draft.components(model=draft.agent, scaffold=eval_.solver if isinstance(eval_.solver, str) else None)
        draft.temperature(eval_.model_generate_config.get("temperature"))
        told = {"domain": "the name of the task", "trial": "the epoch, from 0"}
        if draft in self._planned:
            told = dict.fromkeys(("domain", "trial", "sequence"), "as planned")
        scorers = ", ".join(self._scorers.get(draft, {}))
        scored = f"by the score of {scorers} (C, true, yes, 1: success)"
        return told | ({"outcome": scored} if scorers else {})


def _about(score: dict[str, Any]) -> Any:
    """Return what the metadata of a score say to certkit."""
    about = look_up(score, ("metadata", NAME))
    return {} if about is MISSING else about


def _rated(score: dict[str, Any]) -> bool:
    """Tell whether a score is a rater's, and says nothing of success."""
    return isinstance(look_up(score, ("metadata", NAME, "rater")), str)


def _created(path: Path, name: str) -> datetime:
    """Return when the evaluation of a log was begun; the first of all times where it does not say it."""
    with opening(path, name, SILENT) as source:
        head = source.head()
    if head.startswith(ZIP):
        with closing(Archive(path, name, MAX_LOG_ROW)) as archive:
            head = b"".join(archive.read(item) for item in _STARTS if item in archive.names)
    stated = _CREATED.search(head)
    try:
        return moment(stated[1].decode() if stated else "")
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def _number(value: Any) -> float | None:
    """Return the finite number that a value or its text is; None where it is none."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _outcome(value: Any) -> Outcome | None:
    """Return the outcome that the value of a score states; None where Inspect reads neither 1 nor 0."""
    if isinstance(value, str):
        value = _MARKS.get(value, _WORDS.get(value.lower(), value))
    return _OUTCOMES.get(_number(value))
