"""Importers: from the logs that other programs write to evidence bundles.

An importer fills the fields that its source really has and leaves the others unmeasured. What it filled,
left out, found odd or refused is counted and written into the manifest. An import is all or nothing: a row
that cannot be read refuses the source, and nothing is written.

    accounts = run(Path("runs"), Path("bundle"), ImportOptions(agent="pipeline"), SILENT)
    contents = columns_of(Path("runs.csv"), ImportOptions())    # with an empty mapping

The format is found by the content. Whether a rate is good enough is decided by the assessment, not here.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from itertools import islice
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from certkit.bundle.facts import UNVERSIONED
from certkit.bundle.manifest import MAX_TEXT, Imported
from certkit.ground import canonical, files
from certkit.ground.canonical import Digest
from certkit.ground.errors import InputError, UsageError
from certkit.ground.progress import SILENT
from certkit.ground.text import visible
from certkit.imports.agentdojo import AgentDojo
from certkit.imports.columns import Contents, contents_of
from certkit.imports.deepeval import DeepEval
from certkit.imports.drafts import MAX_GROWTH
from certkit.imports.every_eval import EveryEval
from certkit.imports.garak import Garak
from certkit.imports.hal import Hal
from certkit.imports.hb_eval import HbEval
from certkit.imports.inspect_log import ZIP, InspectLog
from certkit.imports.job import ImportAccount, Importer, ImportFaultsError, ImportOptions, Job
from certkit.imports.lm_eval import LmEval
from certkit.imports.mapper import Mapper, check_mapping, check_options
from certkit.imports.mapping import Mapping, read_mapping
from certkit.imports.names import is_model
from certkit.imports.openai_evals import OpenAIEvals
from certkit.imports.otel import OTel
from certkit.imports.promptfoo import Promptfoo
from certkit.imports.records import ARROW, PARQUET, Records
from certkit.imports.source import FREE, opening
from certkit.imports.swe_bench import SweBench
from certkit.imports.tau import Tau
from certkit.record.record import Measured
from certkit.record.trace import RULES, Rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.ground.progress import Progress
    from certkit.imports.drafts import Draft
    from certkit.record.faults import Faults

__all__ = [
    "FORMATS",
    "Contents",
    "ImportAccount",
    "ImportFaultsError",
    "ImportOptions",
    "columns_of",
    "preview",
    "run",
]

PREVIEWED: Final = 10
MAX_SOURCES_NAMED: Final = 1000
"""Source files that the manifest names; of further ones it keeps the number."""

LOOKED_AT: Final = 200
"""Files of a folder that are looked at to find its format."""


class Format(Struct, frozen=True, kw_only=True):
    """A format that can be imported.

    `marks`: the beginning of a file of this format has all keys of one of these groups, and not the key
    `without`.
    """

    description: str
    importer: type[Importer]
    marks: tuple[tuple[str, ...], ...] = ()
    without: str | None = None

    def fits(self, head: bytes) -> bool:
        """Tell whether the beginning of a file is of this format."""
        if head.startswith(ZIP):
            return self.importer is InspectLog
        if head.startswith((PARQUET, *ARROW)) or (self.without and _has(head, self.without)):
            return False
        return any(all(_has(head, key) for key in keys) for keys in self.marks)


def _has(head: bytes, key: str) -> bool:
    return re.search(rb'"%s"\s*:' % re.escape(key.encode()), head) is not None


FORMATS: Final[dict[str, Format]] = {
    "agentdojo": Format(
        description="AgentDojo: the runs/ folder or the one-file export",
        importer=AgentDojo,
        marks=(("suite_name", "user_task_id"), ("messages", "suite_name"), ("benchmark", "metadata")),
    ),
    "tau": Format(
        description="τ-bench and τ²-bench: a results file, or the folder with results.json and simulations/",
        importer=Tau,
        marks=(("agent_info", "num_trials"), ("task_id", "reward", "info"), ("simulation_index", "info")),
    ),
    "inspect": Format(
        description="Inspect AI: an .eval or .json log, or a folder of them",
        importer=InspectLog,
        marks=(("version", "status", "eval"), ("eval", "task_id", "run_id")),
    ),
    "every-eval": Format(
        description="every_eval_ever: a _samples.jsonl file, or a folder of them",
        importer=EveryEval,
        marks=(("evaluation_id", "model_id", "sample_id"),),
    ),
    "otel": Format(
        description="OpenTelemetry: spans of generative AI as OTLP JSON",
        importer=OTel,
        marks=(("resourceSpans",),),
    ),
    "hb-eval": Format(
        description="HB-Eval: published records of methodologies A, B, C, and sessions of hb-eval-sdk",
        importer=HbEval,
        marks=(
            ("fault_type", "composite_score"),
            ("fault_injected", "model", "success"),
            ("fault_type", "binary_success"),
            ("session_id", "live_metrics"),
            ("fault_event_id",),
        ),
    ),
    "promptfoo": Format(
        description="promptfoo: the JSON of an evaluation, or a folder of them",
        importer=Promptfoo,
        marks=(("evalId", "results", "timestamp"), ("results", "testIdx", "promptIdx")),
    ),
    "deepeval": Format(
        description="deepeval: the JSON of a test run, or a folder of them",
        importer=DeepEval,
        marks=(("testCases", "metricsData"), ("testCases", "conversationalTestCases")),
    ),
    "garak": Format(
        description="garak: a .report.jsonl, or a folder of them",
        importer=Garak,
        marks=(("entry_type", "garak_version"), ("entry_type", "probe_classname")),
    ),
    "openai-evals": Format(
        description="OpenAI evals: the events of a run, or a folder of them",
        importer=OpenAIEvals,
        marks=(("spec", "completion_fns", "eval_name"), ("event_id", "sample_id", "type")),
    ),
    "lm-eval": Format(
        description="lm-evaluation-harness: a samples_….jsonl, or a folder of them",
        importer=LmEval,
        marks=(("doc_id", "filtered_resps"), ("doc_id", "resps", "arguments")),
    ),
    "swe-bench": Format(
        description="SWE-bench: a report of resolved instances, or a folder of one agent's",
        importer=SweBench,
        marks=(
            ("total_instances", "resolved_instances"),
            ("resolved_ids", "submitted_ids"),
            ("resolved_ids", "total"),
            ("resolved", "no_generation"),
        ),
        without="raw_eval_results",  # HAL encloses such a report
    ),
    "hal": Format(
        description="HAL: the _UPLOAD.json of a run, or a folder of them",
        importer=Hal,
        marks=(("raw_eval_results",), ("config", "agent_name", "benchmark_name", "run_command")),
    ),
    "records": Format(
        description="rows of any kind: CSV, TSV, JSON lines, a JSON array or Parquet", importer=Records
    ),
}


def find_format(source: Path) -> str:
    """Return the name of the format of a file or folder, by its content.

    A file that has no format's marks is a table: ``records``.

    Raises:
        InputError: where a folder holds nothing known, or where two formats fit.
    """
    fitting: dict[str, None] = {}
    inside = (path for path, link in files.inside(source) if not link and not path.name.startswith("."))
    paths = sorted(islice(filter(Path.is_file, inside), LOOKED_AT)) if source.is_dir() else [source]
    for path in paths:
        with opening(path, path.name, SILENT) as opened:
            head = opened.head()
        fitting |= dict.fromkeys(name for name, format_ in FORMATS.items() if format_.fits(head))
        if fitting:
            break
    if len(fitting) > 1:
        names = " and ".join(fitting)
        hint = f"name it: certkit import {next(iter(fitting))} {source.name} -o BUNDLE"
        raise InputError("import.choice-needed", f"looks like {names}", where=source.name, hint=hint)
    if not fitting and source.is_dir():
        known = ", ".join(name for name in FORMATS if name != "records")
        message = f"no file in this folder begins like a log of {known}"
        if not paths:
            hint = "choose the folder or file that holds the log"
            raise InputError("import.source", "this folder is empty", where=source.name, hint=hint)
        hint = "give the file itself, or name the format: certkit import FORMAT LOG -o BUNDLE"
        raise InputError("import.source", message, where=source.name, hint=hint)
    return next(iter(fitting), "records")


def run(source: Path, out: Path, options: ImportOptions, progress: Progress) -> list[ImportAccount]:
    """Import `source` into a bundle at `out`, or, with `split_by`, into bundles below it.

    The format is found by content where the options name none.

    Raises:
        UsageError: where the format or an option cannot be used or `out` is taken.
        ImportFaultsError: with the faults where rows are refused.
        InputError: where the source is wrong otherwise.
    """
    format_ = checked_format(source, options)
    mapping, options = _mapping(options)
    with files.building(out) as folder, Job(source, folder, options, progress, out) as job:
        return _run(job, out, format_, mapping)


def _run(job: Job, out: Path, format_: str, mapping: Mapping) -> list[ImportAccount]:
    source, options, progress = job.source, job.options, job.progress
    importer = FORMATS[format_].importer(job)
    mapper = Mapper(mapping, options, importer)
    progress.start("importing", None if source.is_dir() else source.stat().st_size, "bytes")
    for _ in _records(importer, mapper, job):
        pass
    progress.finish()
    job.close_files()
    mapper.check(job)
    drafts = _checked_drafts(job, format_, mapper)
    empty = [draft for draft in drafts if not draft.records]
    if options.split_by is not None and len(empty) < len(drafts):
        for draft in empty:
            draft.writer.discard()
            drafts.remove(draft)
            for item in drafts:
                if item.agent == draft.agent:
                    item.notes.merge(draft.notes)
    kept = {draft.agent for draft in drafts}
    without = tuple(draft.agent or "(unnamed)" for draft in empty if draft.agent not in kept)
    accounts = []
    for draft in drafts:
        mapper.state(draft)
        details = importer.close(draft)
        if mapper.mapping.agent is not None:
            draft.agent_document |= mapper.mapping.agent.model_dump(mode="json", exclude_none=True)
        job.note_files(draft)
        mapper.account(draft, details)
        accounts.append(replace(_finish(draft, job, format_, out, mapping.trace), without=without))
    if options.split_by is None:
        files.lift(drafts[0].writer.folder)
    return accounts


def columns_of(source: Path, options: ImportOptions) -> Contents:
    """Return what the columns of a log hold, and a mapping to fill in. Raises as `run` does."""
    format_ = checked_format(source, options)
    mapping, options = _mapping(options)
    with tempfile.TemporaryDirectory() as folder, Job(source, Path(folder), options, SILENT) as job:
        importer = FORMATS[format_].importer(job)
        job.rows, job.lists_columns = mapping.read.rows, True
        contents = contents_of(importer, mapping, options, job.name)
        job.refuse_faults("these rows cannot be read; correct them first")
    return contents


def preview(
    source: Path, options: ImportOptions
) -> tuple[list[dict[str, Any]], dict[str, Counter[str]], Faults]:
    """Return the first `PREVIEWED` runs as records; of all, conditions, outcomes and faults."""
    format_ = checked_format(source, options)
    mapping, options = _mapping(options)
    with tempfile.TemporaryDirectory() as folder, Job(source, Path(folder), options, SILENT) as job:
        importer = FORMATS[format_].importer(job)
        records = _records(importer, mapper := Mapper(mapping, options, importer), job)
        first = [
            {name: value for name, value in fields.items() if value is not None}
            for fields in islice(records, PREVIEWED)
        ]
        for _ in records:
            pass
        job.close_files()
        for draft in job.drafts.values():
            job.note_faults(draft)
        mapper.check(job)
        job.number_rows()
    words = [draft.words for draft in job.drafts.values()]
    counts = {name: sum((each[name] for each in words), Counter()) for name in ("condition", "outcome")}
    return first, counts, job.faults


def _mapping(options: ImportOptions) -> tuple[Mapping, ImportOptions]:
    """Return the mapping that the user gave, or an empty one, and the options with its encoding."""
    if options.mapping is None:
        return Mapping(), options
    mapping = read_mapping(options.mapping)
    check_mapping(mapping, options, options.mapping.name)
    return mapping, replace(options, encoding=options.encoding or mapping.read.encoding)


def _records(importer: Importer, mapper: Mapper, job: Job) -> Iterator[dict[str, Any]]:
    """Write the runs as records to their drafts and yield their fields; faults are added to the job's."""
    size = inf if job.source.is_dir() else job.source.stat().st_size  # of its files each is limited
    written = 0
    for run in importer.runs():
        if not mapper.chooses(run, job):
            continue
        draft = job.part(run.agent, run.row, run.place)
        fields, faults = mapper.fields(run, draft)
        if fields is None:
            continue
        log = run.log if job.options.traces else None
        if log is not None:
            fields |= {"measured": str(Measured.DERIVED) if mapper.derived else None, "trace": None}
        before = draft.writer.size
        job.refuse(*(faults or draft.write(fields, run.place, log)))
        written += draft.writer.size - before
        if written > max(FREE, MAX_GROWTH * size):
            message = f"its records have more than {MAX_GROWTH:,} times its size"
            raise InputError("import.source", message, where=job.name, hint="leave long texts out")
        yield fields


def checked_format(source: Path, options: ImportOptions) -> str:
    """Return the format, found by content where none is named.

    Raises:
        UsageError: where it cannot be used.
    """
    format_ = options.format
    if format_ is not None and format_ not in FORMATS:
        known = ", ".join(FORMATS)
        raise UsageError("usage.option", f"format {format_!r} is not known", hint=f"choose one of {known}")
    if not source.exists():
        raise InputError("file.missing", "not found", where=str(source))
    if format_ not in {None, "records"} and source.is_file():
        with opening(source, source.name, SILENT) as opened:
            head = opened.head()
        if not head.startswith(ZIP) and head.lstrip()[:1] not in {b"{", b"[", b""}:
            message = f"this is no log of {format_}, which the first word names: it does not begin like JSON"
            hint = replace(options, format=None).command(source)
            raise InputError("import.source", message, where=source.name, hint=hint)
    format_ = format_ or find_format(source)
    check_options(options, format_)
    return format_


def _checked_drafts(job: Job, format_: str, mapper: Mapper) -> list[Draft]:
    """Return the bundles that are wanted, remove the others, and refuse records that are wrong."""
    drafts = list(job.drafts.values()) if job.faults else _chosen(job, FORMATS[format_].description)
    for draft in job.drafts.values():
        if draft not in drafts:
            draft.writer.discard()
    for draft in drafts:
        job.note_faults(draft)
    job.refuse_faults(mapper.advice(job))
    return drafts


def _chosen(job: Job, wanted: str) -> list[Draft]:
    """Return the bundles that the user wants of those that the source holds; `wanted` describes the format.

    Raises `InputError` ``import.choice-needed`` where there are several agents and the user chose none.
    """
    options, agents = job.options, list(dict.fromkeys(agent for agent, _ in job.drafts))
    if not agents:
        single = "; give one of its files itself" if job.left_out else ""
        raise InputError("import.source", "holds no runs", where=job.name, hint=f"expected {wanted}{single}")
    drafts = list(job.drafts.values())
    if len(agents) > 1 and options.agent in agents and "" not in agents:
        others = [draft for draft in drafts if draft.agent != options.agent]
        drafts, agents = [draft for draft in drafts if draft not in others], [options.agent]
        told = ", ".join(draft.agent for draft in others)
        for draft in drafts:
            draft.notes.add("refused", "runs of other agents", told, count=sum(it.records for it in others))
    named = options.agent is not None or options.agent_version is not None
    if len(agents) > 1 and (options.split_by is None or named):
        names = ", ".join(visible(name) or "(unnamed)" for name in sorted(agents))
        unknown = options.agent not in {None, *agents}
        asked = f", none called {visible(str(options.agent))!r}" if unknown else ""
        hint = f"a bundle of each: {job.command(split_by='agent', agent=None, agent_version=None)}\n"
        hint += f"or one of them, for instance: {job.command(agent=visible(next(filter(None, agents))))}"
        hint = "write the agent's name also in the rows that have none" if "" in agents else hint
        message = f"the source holds {len(agents)} agents{asked}: {names}"
        raise InputError("import.choice-needed", message, where=job.name, hint=hint)
    return drafts


def _finish(draft: Draft, job: Job, name: str, out: Path, rules: Rules) -> ImportAccount:
    """Write the manifest of a draft whose records are closed, seal it, and return its account."""
    options = job.options
    agent = draft.agent_document | {"name": options.agent or draft.agent_document.get("name") or draft.agent}
    column, versions = max(draft.versions.items(), key=lambda told: len(told[1]), default=("", {}))
    if len(versions) > 1 and not options.agent_version:
        message = f"agent {visible(draft.agent)!r} has several versions: {', '.join(map(visible, versions))}"
        hint = f"a bundle of each: {job.command(split_by=column)}"
        raise InputError("import.choice-needed", message, where=job.name, hint=hint)
    told = [(is_model(name), word) for name, words in sorted(draft.versions.items()) for word in words]
    version = ", ".join(dict.fromkeys(word for model, word in told if not model))[:MAX_TEXT]
    agent["version"] = options.agent_version or agent.get("version") or version or UNVERSIONED
    models = dict.fromkeys(word[:MAX_TEXT] for model, word in told if model)
    if models and not agent.get("components"):
        agent["components"] = [{"role": "model", "name": word, "pinned": False} for word in models]
    if not agent["name"]:
        hint = f"name it: {job.command(agent='NAME')}"
        raise InputError("import.choice-needed", "the log does not name the agent", where=job.name, hint=hint)
    if not draft.records:
        message = f"nothing was imported of agent {visible(draft.agent)!r}"
        hint = "leave its logs out, or choose another agent with --agent NAME"
        raise InputError("import.source", message, where=job.name, hint=hint)
    imported = Imported(
        format=name,
        sources=tuple(sorted(job.sources, key=lambda item: item.name)[:MAX_SOURCES_NAMED]),
        sources_total=len(job.sources),
        records=draft.records,
        options=draft.options,
        notes=draft.notes.to_notes(),
    )
    declared = {name: getattr(options, name) for name in ("tasks_independent", "attempt", "task_salt")}
    document = {
        "agent": agent,
        "protocol": draft.protocol | {name: value for name, value in declared.items() if value is not None},
        "imported": imported.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
    if (draft.writer.folder / RULES).parent.exists() and rules != Rules():
        draft.writer.write(RULES, canonical.line(rules.model_dump(mode="json")))
    manifest = draft.writer.describe(document, code="import.source")
    digest = Digest(draft.writer.seal().facts.digest) if options.seal else None
    return ImportAccount(
        out=out / draft.subfolder if job.options.split_by else out,
        agent=manifest.agent,
        digest=digest,
        imported=imported,
    )
