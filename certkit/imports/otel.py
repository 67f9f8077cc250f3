"""OpenTelemetry spans of generative AI agents, as OTLP writes them in JSON: one document, or one a line.

| field of the log | field of the record | note |
|---|---|---|
| `traceId` | `run_id` | a trace is a run |
| `gen_ai.agent.name` | the agent | else the only agent that traces of the service name, else `service.name` |
| `gen_ai.agent.version`, `gen_ai.request.model` | its version, its model | of the root span, else the first |
| `test.case.name` of the root span | `task_id` | |
| spans of `gen_ai.operation.name` chat, generate_content, text_completion | `steps_actual` | |
| `gen_ai.evaluation.score.label` of a result | `outcome` | `pass` is `success`, `fail` is `failure` |
| start of the first span | `started_at` | |

Other labels, scores, and evaluations of several names need `--success`; domain and condition are not in the
format. Spans may come in any order, so that of every trace a summary is kept until the end. A span that the
log repeats counts once. Traces that show no agent, model, tool, test case or error are left out and counted.
A trace with several root spans, several test cases or two results of one evaluation is refused.

The rows that paths of a mapping lead into hold ``version``, ``model``, ``name``, ``evaluations``,
``tool_calls``, ``tool_errors``, and ``attributes`` of the root span, whose dotted names stand in backticks.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct

from certkit.ground.errors import InputError
from certkit.ground.text import visible
from certkit.imports.drafts import Place
from certkit.imports.job import Importer, Run
from certkit.record.expressions import spelled, success_test
from certkit.record.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.imports.job import Job

MAX_TRACES: Final = 1_000_000
_CALLS: Final = frozenset({"chat", "generate_content", "text_completion"})
_LABELS: Final = {"pass": Outcome.SUCCESS, "fail": Outcome.FAILURE}
_PATHS: Final = ("name", "attributes", "evaluations", "tool_calls", "tool_errors")
_NAMED: Final = {"agent": "agent.name", "version": "agent.version", "model": "request.model"}
_ERROR: Final = (2, "STATUS_CODE_ERROR")


# What of OTLP's JSON is read; integers are written as text there.
_Integer = int | Annotated[str, Meta(pattern="^-?[0-9]{1,20}$")]
_Nanoseconds = Annotated[int, Meta(ge=0, le=2**63 - 1)] | Annotated[str, Meta(pattern="^[0-9]{1,19}$")]


class _Values(Struct, frozen=True):
    values: list[_Value] = []


class _Value(Struct, frozen=True, rename="camel"):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: _Integer | None = None
    double_value: float | None = None
    array_value: _Values | None = None


class _Attribute(Struct, frozen=True):
    key: str
    value: _Value = _Value()


class _Event(Struct, frozen=True):
    name: str = ""
    attributes: list[_Attribute] = []


class _Status(Struct, frozen=True):
    code: int | str | None = None


class _Span(Struct, frozen=True, kw_only=True, rename="camel"):
    trace_id: str
    span_id: str | None = None
    parent_span_id: str | None = None
    name: str = ""
    start_time_unix_nano: _Nanoseconds | None = None
    attributes: list[_Attribute] = []
    events: list[_Event] = []
    status: _Status = _Status()


class _Part(Struct, frozen=True):  # a resource or a scope
    attributes: list[_Attribute] = []
    spans: list[_Span] = []


class _ResourceSpans(Struct, frozen=True, rename="camel"):
    resource: _Part = _Part()
    scope_spans: list[_Part] = []


class _Export(Struct, frozen=True, rename="camel"):
    resource_spans: list[_ResourceSpans]


class Trace(Struct):
    """The summary of a trace."""

    place: Place
    service: str
    named: dict[str, str] = {}
    begun: bool = False
    start: int | None = None
    steps: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    name: str = ""
    case: Any = None
    failed: bool | None = None  # whether the root span did, once it was met
    attributes: dict[str, Any] = {}
    evaluations: dict[str, Any] = {}


class OTel(Importer):
    """Traces of OpenTelemetry."""

    versioned = (("version",), ("model",))

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._traces: dict[str, Trace] = {}
        self._spans: set[int] = set()  # hashes of those met
        self._left: Counter[str] = Counter()
        self._agents: dict[str, dict[str, None]] = {}  # that the traces of a service name
        self._names: dict[str, None] = {}  # of the evaluations

    def runs(self) -> Iterator[Run]:
        """Yield the traces in the order of their first spans."""
        for row, place in self.rows():
            export = self.job.typed(row, _Export, place, "spans as OTLP writes them")
            for item in export.resource_spans if export else ():
                self._read(item, place)
        self._names = {name: None for trace in self._traces.values() for name in trace.evaluations}
        for trace in self._traces.values():
            if "agent" in trace.named:
                self._agents.setdefault(trace.service, {})[trace.named["agent"]] = None
        for key, trace in self._traces.items():
            shown = trace.begun or trace.failed or trace.steps or trace.tool_calls or trace.evaluations
            if shown or trace.case is not None:
                yield self._run(key, trace)
            else:
                told = "traces without a span of an agent, a model or a tool, a test case and an error"
                self._left[told] += 1
        for draft, (what, count) in product(self.job.drafts.values(), self._left.items()):
            draft.notes.add("refused", what, count=count)

    def _read(self, item: _ResourceSpans, place: Place) -> None:
        resource = _plain(item.resource.attributes)
        for span in (span for scope in item.scope_spans for span in scope.spans):
            key = span.trace_id.lower()  # hexadecimal digits, in any case
            trace = self._traces.get(key)
            if trace is None:
                if len(self._traces) == MAX_TRACES:
                    raise InputError("import.source", f"more than {MAX_TRACES:,} traces", where=place.file)
                trace = self._traces[key] = Trace(place, str(resource.get("service.name") or ""))
            self._judge(span, trace, place)
            if span.span_id and (met := hash((key, span.span_id.lower()))) in self._spans:
                self._left["spans that the log repeats"] += 1
                continue
            self._spans |= {met} if span.span_id else set()
            attributes = _plain(span.attributes)
            case = attributes.get("test.case.name", trace.case)
            root = not (span.parent_span_id or "").strip("0")
            if (trace.failed is not None and root) or trace.case not in {None, case}:
                what, hint = f"more than one in {span.trace_id}", "export each case as a trace of its own"
                self.job.refuse(place.fault("one root span and test.case.name in a trace", what, hint=hint))
            trace.case = case
            operation = attributes.get("gen_ai.operation.name")
            trace.steps += operation in _CALLS
            if operation == "execute_tool":
                trace.tool_calls += 1
                trace.tool_errors += span.status.code in _ERROR or "error.type" in attributes
            named = {part: str(it) for part, key in _NAMED.items() if (it := attributes.get("gen_ai." + key))}
            if operation != "embeddings":  # its model is not the agent's
                trace.named = trace.named | named if root else named | trace.named
            if span.start_time_unix_nano is not None:
                start = int(span.start_time_unix_nano)
                trace.start = start if trace.start is None else min(start, trace.start)
            trace.begun |= operation == "invoke_agent"
            if root:
                trace.failed = span.status.code in _ERROR
                trace.name, trace.attributes = span.name, attributes

    def _judge(self, span: _Span, trace: Trace, place: Place) -> None:
        for event in span.events:
            if event.name == "gen_ai.evaluation.result":
                result = _plain(event.attributes)
                score = {key: result.get(f"gen_ai.evaluation.score.{key}") for key in ("value", "label")}
                name = str(result.get("gen_ai.evaluation.name"))
                if trace.evaluations.get(name, score) != score:
                    again = f"{visible(name)!r} again, with another, in trace {span.trace_id}"
                    self.job.refuse(place.fault("one result of an evaluation", again))
                trace.evaluations = trace.evaluations | {name: score}

    def _run(self, key: str, trace: Trace) -> Run:
        # A trace that crashed before an agent was called names none.
        known = [*self._agents.get(trace.service, ())]
        agent = trace.named.get("agent") or (known[0] if len(known) == 1 else trace.service)
        fields: dict[str, Any] = {"run_id": key, "steps_actual": trace.steps or None}
        if (task := trace.attributes.get("test.case.name")) is not None:
            fields["task_id"] = str(task)
        if trace.start is not None:
            fields["started_at"] = datetime.fromtimestamp(trace.start // 1000 / 1e6, UTC).isoformat()
        labels = {str(score["label"]).lower() for score in trace.evaluations.values()}
        if len(self._names) == 1 and labels and labels <= _LABELS.keys():
            fields["outcome"] = str(_LABELS[min(labels)])
        else:
            self._ask(trace)
        notes, passed = self.job.draft(agent).notes, "pass" in labels
        if trace.failed and passed:
            notes.add("odd", "traces that ended in an error and passed", "they count")
        if passed and any(score["value"] == 0 for score in trace.evaluations.values()):
            notes.add("odd", "traces that passed with a score of 0", "the label counts")
        row = trace.named | {name: getattr(trace, name) for name in _PATHS}
        return Run(agent, trace.place, row, fields)

    def _ask(self, trace: Trace) -> None:
        """Hint what a rule of success may look at."""
        scores = [(name, score["value"]) for name, score in trace.evaluations.items()]
        if len(self._names) == 1 and scores and isinstance(scores[0][1], int | float):
            path = spelled(("evaluations", scores[0][0], "value"))
            self.hints["outcome"] = success_test(path, ">= THRESHOLD")
        elif self._names:
            names = ", ".join(spelled(("evaluations", name)) for name in self._names)
            self.hints["several"] = visible(f" (the log has {names})")


def _plain(attributes: list[_Attribute]) -> dict[str, Any]:
    return {item.key: _value(item.value) for item in attributes}


def _value(value: _Value) -> Any:
    """Return the value of an attribute; of maps nothing is kept."""
    if value.array_value is not None:
        return [_value(item) for item in value.array_value.values]
    if value.int_value is not None:
        return int(value.int_value)
    values = (value.string_value, value.bool_value, value.double_value)
    return next((item for item in values if item is not None), None)
