"""Inspect AI: ``.eval`` archives and ``.json`` logs of several generations, single or in a folder.

How the fields are read, and the traps, stand in docs/reference/importers.md.

The rows that paths of a mapping lead into are samples without messages, events and attachments, with ``eval``
of the log's header added.
"""

from __future__ import annotations

import re
from contextlib import closing
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, json, to_builtins
from msgspec.structs import replace

from certkit.ground.errors import InputError
from certkit.ground.text import visible
from certkit.imports.archive import ANEW, Archive
from certkit.imports.drafts import Place
from certkit.imports.job import MAX_SHORT, Importer, Run, Short
from certkit.imports.source import MAX_LOG_ROW
from certkit.record import trace as traces
from certkit.record.expressions import MISSING, look_up, shell, spelled, success_test
from certkit.record.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.imports.drafts import Draft
    from certkit.imports.job import Job
    from certkit.imports.source import Source

ZIP: Final = b"PK\x03\x04"  # only Inspect writes archives: `importers` takes every ZIP file for its log
# The id of a sample may hold slashes; a large sample is a folder with sample.json.
_SAMPLE = re.compile(r"samples/.+_epoch_[0-9]+(/sample)?\.json\Z", re.DOTALL)
_GOOD: Final = frozenset({"c", "yes", "true", "1", "1.0"})
_BAD: Final = frozenset({"i", "p", "n", "no", "false", "0", "0.0"})
_SETTINGS: Final = (
    "solver",
    "solver_args",
    "model_args",
    "model_roles",
    "model_base_url",
    "model_generate_config",
)
"""What tells agents apart that have the same model."""

_OF_TASK: Final = ("task_args", "task_version", "revision")
"""What differs between tasks; within one, the agent or the task changed. So does ``plan`` of the header."""

_LISTED, _NAMED = 12, 40
"""Scorers, or values of one, that a hint lists, and characters of each."""

_PATHS: Final = ("id", "epoch", "target", "metadata", "error", "limit", "started_at", "total_time")


_PARTS: Final = attrgetter(*_PATHS)


class InspectSample(Struct, frozen=True, kw_only=True):
    """A sample in an epoch. What is not read is not listed."""

    id: int | Short
    epoch: int
    target: Any = None
    scores: dict[Short, Any] | None = None
    score: Any = None
    metadata: dict[str, Any] | None = None
    error: Any = None
    invalidation: Any = None
    limit: Any = None
    started_at: Short | None = None
    total_time: float | None = None
    uuid: Short | None = None
    error_retries: list[Any] | None = None
    events: list[traces.Event] | None = None
    transcript: traces.Transcript | None = None
    messages: list[traces.Message] | None = None


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
    invalidated: Any = None


class InspectLog(Importer):
    """Logs of Inspect AI."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._headers: dict[
            tuple[Draft, str], Header
        ] = {}  # the first of each bundle, and of each of its tasks
        self._met: dict[int, int] = {}  # hashes: of what copies of a sample share → of their scores
        self._header: Header | None = None  # of the log being read, as its samples and its scorer
        self._told: dict[str, Any] = {}  # what rows say of it
        self._held: set[int] = set()  # hashes of its samples
        self._drafts: dict[Draft, None] = {}  # the bundles that they are in
        self._invalid = False  # a person declared one of them invalid
        self._scorer = ""
        self._scorers: dict[Draft, dict[str, None]] = {}
        self._samples = 0
        self._judged_samples = 0  # of the log being read: with a score or an error

    def runs(self) -> Iterator[Run]:
        """Yield the samples, of logs in the order of their names."""
        for path, name in self.job.files((".eval", ".json")):
            self._header, self._held, self._drafts, self._invalid = None, set(), {}, False
            self._scorer, self._judged_samples = "", 0
            with self.job.opening(path, name) as source:
                zipped = source.head().startswith(ZIP)
                yield from self._archive(path, name) if zipped else self._json(source, name)
            self._compare()
            if self._held and not self._judged_samples and not self.job.faults.total:
                log, out = shell(str(path)), shell(f"{path.with_suffix('')}-scored{path.suffix}")
                hint = f"import it scored: inspect score {log} --scorer NAME --output-file {out}"
                raise InputError("import.source", "no sample has a score", where=name, hint=hint)
        if not self._samples and not self.job.faults.total:
            hint = "the evaluation ended before one was written"
            raise InputError("import.source", "holds no samples", where=self.job.name, hint=hint)

    def _archive(self, path: Path, name: str) -> Iterator[Run]:
        with closing(Archive(path, name, MAX_LOG_ROW)) as archive:
            names = archive.names
            start = next((item for item in ("header.json", "_journal/start.json") if item in names), None)
            if not {"[Content_Types].xml", "META-INF/manifest.xml"}.isdisjoint(names):  # .xlsx, .ods
                hint = "save the sheet as CSV, and import that"
                raise InputError("import.source", "a workbook or document of Office", where=name, hint=hint)
            if start is None:
                hint = "unpack it, and give the file or folder in it"
                raise InputError("import.source", "a zip without an Inspect log", where=name, hint=hint)
            place = Place(f"{name}/{start}", 1)
            header = self.job.typed(archive.read(start), Header, place, "a header as Inspect writes it")
            if header is None:
                return
            self._begin(header)
            # Samples are written in the order in which they end; their names give an order that is the log's.
            for item in sorted(names):
                if _SAMPLE.match(item):
                    place = Place(visible(f"{name}/{item}"), 1)
                    yield from self._sample(archive.read(item), header.eval, place)

    def _json(self, source: Source, name: str) -> Iterator[Run]:
        rest: dict[str, Any] = {"status": "started"}
        for piece in source.pieces(MAX_LOG_ROW):
            place = Place(name, piece.line)
            if piece.key in {"status", "plan", "results", "invalidated"}:
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

    def _begin(self, header: Header) -> None:
        self._header, self._told = header, to_builtins(header.eval)

    def _compare(self) -> None:
        """Compare a log with the others of its bundles."""
        if (header := self._header) is not None:
            for draft in self._drafts or (self.job.draft(header.eval.model),):
                self._note(draft, header)

    def _note(self, draft: Draft, header: Header) -> None:
        """Note where a log did not finish, is of another agent than the first, or holds other samples."""
        eval_, status = header.eval, visible(str(header.status or "interrupted"))
        notes = draft.notes
        if status != "success":
            detail = f"first of task {eval_.task}, status {status}: only the samples that ended are in it"
            notes.add("odd", "logs of evaluations that did not finish", detail)
        first = self._headers.setdefault((draft, ""), header)
        same = self._headers.setdefault((draft, eval_.task), header)
        pairs = [(name, getattr(first.eval, name), getattr(eval_, name)) for name in _SETTINGS]
        pairs += [(name, getattr(same.eval, name), getattr(eval_, name)) for name in _OF_TASK]
        for name, earlier, later in [*pairs, ("plan", same.plan, header.plan)]:
            if (earlier or None) != (later or None):
                detail = "they count as runs of one agent; import them apart if they are of two"
                notes.add("odd", f"logs with another {name} than the first", detail)
        held, total = len(self._held), look_up({"": header.results}, ("", "total_samples"))
        if status == "success" and total not in (None, MISSING, held):
            detail = f"first of task {eval_.task}: {held} of {total}"
            notes.add("odd", "logs that hold another number of samples than they declare", detail)
        if header.invalidated and not self._invalid:
            notes.add("odd", "logs declared invalid of which no sample is", "their samples count")

    def _sample(self, data: bytes, eval_: Eval, place: Place) -> Iterator[Run]:
        sample = self.job.typed(data, InspectSample, place, "a sample as Inspect writes it")
        self._samples += 1
        if sample is None:
            return
        scores = sample.scores or ({"score": sample.score} if sample.score is not None else {})
        values = [score.get("value") if isinstance(score, dict) else score for score in scores.values()]
        values = [value[:MAX_SHORT] if isinstance(value, str) else value for value in values]
        name = f"{sample.id!r} {sample.epoch}"
        self._held.add(hash(name))
        self._invalid |= sample.invalidation is not None
        row = dict(zip(_PATHS, _PARTS(sample), strict=True)) | {"scores": scores, "eval": self._told}
        draft = self.job.part(eval_.model, row, place)
        self._drafts[draft], notes = None, draft.notes
        header = (eval_.run_id, eval_.task_id, eval_.created, eval_.task, eval_.model)
        same = [hash(sample.uuid)] * bool(sample.uuid) + [hash((*header, name))] * bool(eval_.run_id)
        scored = any(value is not None and value == value for value in values)  # noqa: PLR0124 - NaN is none
        self._judged_samples += scored or sample.error is not None
        told = hash(json.encode((values, [*scores], sample.error is None)))
        if earlier := [self._met[key] for key in same if key in self._met]:
            detail = "the same uuid, or the same evaluation, sample and epoch, counts once"
            notes.add("refused", "samples that a retried or copied log repeats", detail)
            if earlier != [told] * len(earlier):
                hint = "give one of the logs, or a folder without the copies that do not count"
                self.job.refuse(place.fault("the scores of its copy", "other scores", hint=hint))
            return
        self._met |= dict.fromkeys(same, told)
        if sample.limit is not None:
            notes.add("odd", "samples that hit a limit", "their scores count as they stand")
        if sample.error_retries:
            notes.add("odd", "samples that were run again after an error", "the last try counts")
        if any(isinstance(score, dict) and score.get("history") for score in scores.values()):
            notes.add("odd", "samples whose score a person changed", "the changed score counts")
        fields = self._fields(sample, scores if scored else {}, eval_, draft)
        yield Run(eval_.model, place, row, fields, traces.shown(sample), data)

    def _fields(
        self, sample: InspectSample, scores: dict[str, Any], eval_: Eval, draft: Draft
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
            "without a score": not scores,
        }
        if why := next((why for why, holds in reasons.items() if holds), None):
            notes.add("odd", f"samples {why}, taken as harness errors")
            return fields | {"outcome": str(Outcome.HARNESS_ERROR)}
        outcome = self._judged(scores, draft)
        return fields if outcome is None else fields | {"outcome": str(outcome)}

    def _judged(self, scores: dict[str, Any], draft: Draft) -> Outcome | None:
        """Return the outcome that the log's single plain score states; otherwise hint how to state it."""
        name, score = next(iter(scores.items()))
        self._scorer = self._scorer or name
        value = score.get("value") if isinstance(score, dict) else score
        text = str(value)[:MAX_SHORT].lower()
        names = dict.fromkeys((self._scorer, *scores))
        plain = len(names) == 1 and isinstance(value, str | int | float)
        if plain and text in _GOOD | _BAD:
            if text == "p":
                draft.notes.add("odd", "partly correct answers, taken as failures")
            self._scorers.setdefault(draft, {})[name] = None
            return Outcome.SUCCESS if text in _GOOD else Outcome.FAILURE
        path, keys = ("scores", name, "value"), value if isinstance(value, dict) else {}
        if len(keys) <= 1:
            test = ">= THRESHOLD" if isinstance(value, int | float) else "== VALUE"
            self.hints.setdefault("outcome", success_test(spelled((*path, *keys)), test))
        if several := names if len(names) > 1 else keys if len(keys) > 1 else {}:
            what = "scorers" if len(names) > 1 else f"values of {visible(name)}"
            named = ", ".join(visible(each[:_NAMED]) for each in islice(several, _LISTED))
            self.hints["several"] = f" (the {what} are {named})"
        return None

    def close(self, draft: Draft) -> dict[str, str]:
        """Fill what the header says of the agent."""
        eval_ = self._headers[draft, ""].eval
        draft.components(model=draft.agent, scaffold=eval_.solver if isinstance(eval_.solver, str) else None)
        draft.temperature(eval_.model_generate_config.get("temperature"))
        told = {"domain": "the name of the task", "trial": "the epoch, from 0"}
        scorers = ", ".join(self._scorers.get(draft, {}))
        scored = f"by the score of {scorers} (C, true, yes, 1: success)"
        return told | ({"outcome": scored} if scorers else {})
