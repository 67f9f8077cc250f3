"""Runs of a trial in logs of Inspect AI, as `certkit.trial.inspect` lets Inspect write them.

| in the log | in the run's log (`certkit.record.outcome`) |
|---|---|
| metadata ``certkit`` of the evaluation: the plan | task, condition, attack, oracle of its runs |
| metadata ``certkit`` of the sample | the plan's digest, and which of its runs it is |
| a tool event, or a model's call that was answered | a call; those of one message in its order |
| an info event ``certkit.fault`` | what was injected into the call of its id |
| the tool's message in the input of the next model call | what the agent was given |
| an info event ``certkit.memory``, ``certkit.halt`` | a search of memory, a halt |
| an info event ``certkit.end`` | how the run ended |
| `limit` | the run ended by a timeout or a limit, and failed; by an operator, it is a harness error |
| metadata ``certkit`` of a score | `violations`, `attack_succeeded`; a rater's `traceability` |

Calls of the tools that end a run, such as ``submit``, are its end and no calls. Whether the run succeeded is
what the import reads from the scores, or from the user's rule.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from certkit.record.outcome import (
    FIELDS,
    Boundary,
    Effect,
    Ending,
    InjectionEvent,
    RunEvent,
    RunLog,
    derive,
)
from certkit.record.record import Outcome
from certkit.record.trace import MAX_TRACE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from certkit.record.planned import EnclosedPlan

NAME: Final = "certkit"
"""Of the member of metadata, of tasks, samples and scores, and of the entry of a sample's store."""

FAULT_SOURCE: Final = "certkit.fault"
MEMORY_SOURCE: Final = "certkit.memory"
HALT_SOURCE: Final = "certkit.halt"
END_SOURCE: Final = "certkit.end"
APPROVER: Final = "planned_calls"

_ATTACHMENT: Final = "attachment://"
_REFERENCES: Final = 10_000_000
"""Messages of the inputs of a sample that are looked at."""

_ENDINGS: Final[Mapping[str, Ending]] = {
    "time": "timeout",
    "working": "timeout",
    "operator": "harness_error",
}
"""What kinds of limit say; of the others the agent made too many calls, or took too much."""

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_Name = Annotated[str, Meta(min_length=1, max_length=4096)]


class PlannedSample(Struct, frozen=True, kw_only=True):
    """Which run of the plan a sample is.

    Attributes:
        plan: digest of the plan.
        run: id of the run.
        answer_tools: tools by which the agent ends its run.
    """

    plan: _Name
    run: _Name
    answer_tools: tuple[str, ...] = ()


class AnnouncedTask(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the metadata of an evaluation say of its trial.

    Attributes:
        plan: the document of the plan.
        memory_observable: whether a search of the agent's memory would show.
        embedding: of that memory.
    """

    plan: dict[str, Any]
    memory_observable: bool | None = None
    embedding: dict[str, Any] | None = None


class ScoredRun(Struct, frozen=True):
    """What the metadata of a score may say of the run.

    Attributes:
        violations: violated hard constraints.
        attack_succeeded: whether the attacker's goal was reached.
        rater: the model that rated the run; such a score says nothing of success.
        traceability: its rating, null if it gave none.
    """

    violations: Annotated[int, Meta(ge=0)] | None = None
    attack_succeeded: bool | None = None
    rater: _Name | None = None
    traceability: Annotated[int, Meta(ge=1, le=5)] | None = None


class _Failed(Struct, frozen=True):
    message: str = ""


class _Function(Struct, frozen=True):
    """A tool call in a message of the model."""

    id: str
    function: str
    arguments: Any = None


class _Said(Struct, frozen=True):
    """A message: of a model with calls, or of a tool with an answer."""

    role: str | None = None
    content: Any = None
    tool_calls: list[_Function] | None = None
    tool_call_id: str | None = None
    error: _Failed | None = None


class _Choice(Struct, frozen=True):
    message: _Said


class _Output(Struct, frozen=True):
    choices: list[_Choice] = []


class _Pool(Struct, frozen=True):
    """Messages that inputs of model calls refer to by their places."""

    messages: list[_Said] = []


class _InspectEvent(Struct, frozen=True):
    """An event of the transcript; `call` is that of an approval, and something else of a model's."""

    event: str | None = None
    type: str | None = None
    source: str | None = None
    data: Any = None
    id: str | None = None
    function: str | None = None
    arguments: Any = None
    result: Any = None
    error: Any = None
    input: list[_Said] = []
    input_refs: list[tuple[int, int]] | None = None
    output: _Output | None = None
    approver: str | None = None
    decision: str | None = None
    call: msgspec.Raw = msgspec.Raw(b"null")


class _Limit(Struct, frozen=True):
    type: str = ""


class PlannedTranscript(Struct, frozen=True):
    """The parts of a sample that hold what happened in its run."""

    events: list[_InspectEvent] = []
    attachments: dict[str, str] = {}
    events_data: _Pool | None = None
    limit: _Limit | None = None


class _Injected(Struct, frozen=True, kw_only=True):
    """What an info event says was done to a call."""

    intended: str
    call: str
    effect: Effect
    injected: Any = None
    boundary: Boundary = "tool"
    attack: bool = False


class _Searched(Struct, frozen=True):
    similarity: float | None = None
    item: Any = None


class _Halted(Struct, frozen=True):
    reason: str = ""


class _RunEnded(Struct, frozen=True):
    ended: Ending


class _Asked(Struct, frozen=True):
    """The call that an approver was asked for."""

    id: str | None = None


class InspectTrial:
    """The log of one run, which knows of success when the import has decided it.

    Attributes:
        form: of the trace.
        shows: the record fields that it can show.
        empty: whether it shows nothing.
        bypassed: tool calls that Inspect did not ask certkit's approver for.
        missed: whether a fault was planned and hit no call.
    """

    form: Final = "trial"
    shows: Final = FIELDS
    empty: Final = False

    def __init__(self, log: RunLog, *, bypassed: int, traceability: int | None) -> None:
        self._log, self._traceability, self.bypassed = log, traceability, bypassed
        self.missed = log.condition != "nominal" and not any(event.fault for event in log.events)

    def fields(self, _rules: object, _condition: str | None, outcome: str | None) -> dict[str, Any]:
        """Return the record fields of a run whose scores, or the user's rule, say this outcome."""
        if outcome is None:
            return {}
        end = self._log.events[-1]
        end.success = outcome == Outcome.SUCCESS
        if outcome == Outcome.HARNESS_ERROR:
            end.ended = "harness_error"
        fields = derive(self._log)
        if self._traceability is not None and fields["outcome"] != Outcome.HARNESS_ERROR:
            fields["traceability"] = self._traceability
        return fields

    def data(self) -> bytes:
        """Return the log as JSON, after `fields`."""
        return _ENCODER.encode(self._log)


def trial_of(
    sample: PlannedTranscript,
    planned: PlannedSample,
    plan: EnclosedPlan,
    scores: Sequence[ScoredRun],
    answer: str | None,
) -> InspectTrial:
    """Return the run of a sample.

    Args:
        sample: the sample.
        planned: which run of the plan it is.
        plan: the plan.
        scores: what scorers say.
        answer: the agent's last text.

    Raises:
        ValueError: where an event of certkit's has another form, or the log is too long; also
            `msgspec.ValidationError`, which is one.
    """
    reader = _TranscriptReader(sample, planned)
    events = [*reader.events()]
    events.append(
        RunEvent(
            event="end",
            ended=reader.ended,
            answer=answer,
            violations=next((it.violations for it in scores if it.violations is not None), None),
            attack_succeeded=next(
                (it.attack_succeeded for it in scores if it.attack_succeeded is not None), None
            ),
        )
    )
    run = plan.runs[planned.run]
    log = RunLog(
        plan=plan.digest,
        run=run.id,
        task=run.task,
        condition=run.condition,
        attack=plan.attacks(run),
        oracle=plan.tasks[run.task].steps,
        events=events,
    )
    rating = next((it.traceability for it in scores if it.traceability is not None), None)
    return InspectTrial(log, bypassed=reader.bypassed, traceability=rating)


class _TranscriptReader:
    """Reads the events of one sample."""

    def __init__(self, sample: PlannedTranscript, planned: PlannedSample) -> None:
        self._attachments, self._ends = sample.attachments, planned.answer_tools
        self._length = 0  # of the attachments that were put in their places
        self._events = [*_before_scoring(sample.events)]
        self._pool = sample.events_data.messages if sample.events_data else []
        self._made: defaultdict[str, list[_InspectEvent]] = defaultdict(
            list
        )  # tool events by the ids of their calls
        self._injected: dict[str, _Injected] = {}
        self._answers: dict[str, _Said] = {}  # what a model was given first for a call
        asked, over = set[str | None](), set[str | None]()
        for event in self._events:
            if event.event == "tool":
                self._made[str(event.id)].append(event)
            elif event.event == "info" and event.source == FAULT_SOURCE:
                injected = msgspec.convert(self._whole(event.data), _Injected)
                self._injected.setdefault(injected.call, injected)
            elif event.event == "approval" and str(event.approver).rpartition("/")[2] == APPROVER:
                call_id = msgspec.json.decode(event.call, type=_Asked).id
                asked.add(call_id)
                over |= {call_id} if event.decision == "terminate" else set()
        self._over = over  # calls that were not made, since the run was over
        self._look_at_inputs()
        rejected = ("parsing", "cancelled")
        self.bypassed = sum(
            it.id not in asked
            and it.function not in self._ends
            and not (isinstance(it.error, dict) and it.error.get("type") in rejected)
            for events in self._made.values()
            for it in events
        )
        limit = sample.limit
        self.ended: Ending = "answered" if limit is None else _ENDINGS.get(limit.type, "call_limit")

    def _look_at_inputs(self) -> None:
        """Find the tools' messages that the inputs of model calls hold."""
        left, reached = _REFERENCES, 0  # all messages of the pool before `reached` were looked at
        for event in self._events:
            for said in event.input:
                self._note_answer(said)
            for first, last in event.input_refs or ():
                begin, end = max(first, reached, 0), min(last, len(self._pool))
                left -= max(0, end - begin)
                if left < 0:
                    raise ValueError(f"inputs of more than {_REFERENCES:,} messages")
                for place in range(begin, end):
                    self._note_answer(self._pool[place])
                reached = max(reached, end) if first <= reached else reached

    def _note_answer(self, said: _Said) -> None:
        if said.role == "tool" and said.tool_call_id is not None:
            self._answers.setdefault(said.tool_call_id, said)

    def events(self) -> Iterator[RunEvent]:
        """Yield the events of the run, without its end."""
        placed = set[str]()
        for event in self._events:
            if event.event == "model" and event.output and event.output.choices:
                for call in event.output.choices[0].message.tool_calls or ():
                    if call.id not in placed and (call.id in self._made or call.id in self._answers):
                        placed.add(call.id)
                        yield from self._call(call.id, call.function, call.arguments)
            elif event.event == "tool" and self._made[str(event.id)][:1] == [event]:
                if event.id not in placed:
                    placed.add(str(event.id))
                    yield from self._call(str(event.id), str(event.function), event.arguments)
            elif event.event == "tool":  # a later call with the id of an earlier one
                yield from self._call(str(event.id), str(event.function), event.arguments, event)
            elif event.event == "info":
                yield from self._noted(event)

    def _noted(self, event: _InspectEvent) -> Iterator[RunEvent]:
        """Yield the search or the halt that an info event tells of; take up how the run ended."""
        if event.source == MEMORY_SOURCE:
            searched = msgspec.convert(self._whole(event.data), _Searched)
            number = searched.similarity
            number = None if number is None else max(-1.0, min(1.0, round(number, 6)))
            yield RunEvent(event="memory", similarity=number, item=searched.item)
        elif event.source == HALT_SOURCE:
            halted = msgspec.convert(self._whole(event.data), _Halted)
            self.ended = "halted"
            yield RunEvent(event="halt", reason=halted.reason)
        elif event.source == END_SOURCE:
            self.ended = msgspec.convert(event.data, _RunEnded).ended

    def _call(
        self, call_id: str, name: str, arguments: Any, again: _InspectEvent | None = None
    ) -> Iterator[RunEvent]:
        """Yield a call with what its tool returned, what was done to it, and what the agent was given."""
        if name in self._ends or call_id in self._over:
            return
        made = again or next(iter(self._made.get(call_id, ())), None)
        injected = None if again else self._injected.get(call_id)
        answer = None if again else self._answers.get(call_id)
        given = None if answer is None else self._given(answer)
        event = RunEvent(
            event="call", tool=name, arguments=self._whole(made.arguments if made else arguments)
        )
        if injected is not None:
            event.fault = InjectionEvent(
                intended=injected.intended,
                injected=injected.injected,
                observed=None if injected.injected is None else given,
                boundary=injected.boundary,
                effect=injected.effect,
                attack=injected.attack,
            )
        if injected is None or injected.effect != "not_run":
            if made is not None and isinstance(made.error, dict):
                event.error = str(self._whole(made.error.get("message")))
            elif made is not None:
                event.result = self._whole(made.result)
            elif given is not None and (injected is None or injected.injected is None):
                event.error, event.result = given.get("error"), given.get("result")
        yield event

    def _given(self, answer: _Said) -> dict[str, Any]:
        if answer.error is not None:
            return {"error": self._whole(answer.error.message)}
        content = self._whole(answer.content)
        if isinstance(content, list):
            parts = (part.get("text") for part in content if isinstance(part, dict))
            content = "".join(part for part in parts if isinstance(part, str))
        return {"result": content}

    def _whole(self, value: Any) -> Any:
        """Return a value with the attachments in it in their places."""
        if isinstance(value, dict):
            return {key: self._whole(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._whole(item) for item in value]
        if isinstance(value, str) and value.startswith(_ATTACHMENT):
            text = self._attachments.get(value.removeprefix(_ATTACHMENT), value)
            self._length += len(text)
            if self._length > MAX_TRACE:
                raise ValueError(f"attachments of more than {MAX_TRACE:,} characters")
            return text
        return value


def _before_scoring(events: Sequence[_InspectEvent]) -> Iterator[_InspectEvent]:
    for event in events:
        if event.event in {"step", "span_begin"} and event.type in {"scorer", "scorers"}:
            return
        yield event
