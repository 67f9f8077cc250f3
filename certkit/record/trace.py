"""Traces: what the transcript of a run shows, for an import to fill in and for an assessment to compare.

A trace is a run as its log holds it. A trace file holds those of runs that follow one another, each as a line
``{"run_id": …, "form": …, "log": …}``, packed with zstd: ``traces/<SHA-256>.jsonl.zst``. `FORMS` says
which members of a log are read. What the mapping says of traces lies beside them, in ``traces/rules.json``.
From both follow the `FIELDS` of a record:

- ``steps_actual``: the model calls before scoring; without events, the messages of the assistant.
- ``fault_step``: of a run under ``tool_failure``, the model call whose tool call first ended in an error.
- ``recovered``: whether that run succeeded; ``recovery_steps``: model calls from there to the next one that
  makes a tool call without an error.
- ``memory_query_offset``: model calls from there to the first call of one of `Rules.memory_tools`.
- ``violations``, ``layer2_score``: how many of `Rules.checks` the JSON of the agent's last message breaks,
  and the share that it keeps ([26] §4.3.3); all are broken where it holds no JSON ([26] §4.3.2).

Condition and outcome are the record's. Whether an error of a tool was injected, this module cannot see. The
log of a run of a trial (form ``trial``) says it, and shows more: `certkit.record.outcome`.
"""

from __future__ import annotations

import re
from collections import deque
from io import BufferedReader
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from pydantic import Field, StrictStr, field_validator

from certkit.ground import base, canonical
from certkit.ground.base import Authored
from certkit.ground.errors import InputError
from certkit.record.expressions import Expression, ExpressionError
from certkit.record.outcome import RunLog, TrialShown, derive
from certkit.record.record import Condition, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FIELDS: Final = (
    "steps_actual",
    "fault_step",
    "recovered",
    "recovery_steps",
    "memory_query_offset",
    "violations",
    "layer2_score",
)
"""Record fields that a trace can show."""

SUFFIX: Final = ".jsonl.zst"
RULES: Final = "traces/rules.json"
FULL: Final = 4 * 1024 * 1024
"""Unpacked bytes from which on a trace file takes no further run: a file for each run would take an import
longer than the run, and one file for all would have to be unpacked to see the last."""

MAX_TRACE: Final = 64 * 1024 * 1024
"""Longest trace, unpacked bytes."""

MAX_FILE: Final = MAX_TRACE + 2 * FULL
WINDOW: Final = 1 << 23
"""Bytes of a trace file that zstd may look back; RFC 8878 asks readers for as many."""

MAX_RULES: Final = 1024 * 1024
Decoded = TypeVar("Decoded")
# First texts and whatever cannot begin a NaN or an infinity, then a piece that does, up to the next text.
# A piece ends between two values, so that no constant is cut.
_UP_TO_CONSTANTS: Final = re.compile(
    rb'((?:[^"NI-]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?|-(?!I))*+)'
    rb'((?:[^"]{0,65535}[\s,:\[\]{}]|[^"]{1,65536})?)',
    re.DOTALL,
)
_SCORING: Final = frozenset({"scorer", "scorers"})
_NUMBER: Final = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?\Z")
_CUTS: Final = 20
"""Places, from the end, at which a truncated object is tried to be ended."""


def _number(text: str) -> float:
    if not _NUMBER.match(text):
        raise ExpressionError(f"{text!r} is no number")
    return float(text)


class Rules(Authored):
    """What a mapping says of traces.

    `memory_tools` are the names of tools that ask the agent's memory; `checks` are constraints, each with an
    expression over the JSON of the answer; `answer` is the column of a table that holds the answer.
    """

    memory_tools: tuple[StrictStr, ...] = ()
    checks: dict[str, StrictStr] = Field(default_factory=dict)
    answer: str | None = None

    @field_validator("checks")
    @classmethod
    def _readable(cls, checks: dict[str, str]) -> dict[str, str]:
        for name, text in checks.items():
            try:
                Expression(text, number=_number, fold=False)
            except ExpressionError as error:
                raise ValueError(f"{name}: {error}") from None
        return checks


class Event(Struct, frozen=True):
    """An event of Inspect's transcript; subtasks and tools of old logs hold events of their own."""

    event: str | None = None
    type: str | None = None
    timestamp: str | None = None
    function: Any = None
    error: Any = None
    events: list[Event] | None = None


class Message(Struct, frozen=True):
    """A message of a conversation; logs differ in how they write tool calls."""

    role: str | None = None
    content: Any = None
    tool_calls: Any = None
    id: Any = None
    tool_call_id: Any = None
    error: Any = None


class Transcript(Struct, frozen=True):
    """Where logs of Inspect of 2024 have their events."""

    events: list[Event] | None = None


class Inspected(Struct, frozen=True, kw_only=True):
    """The parts of a log of Inspect that hold its transcript."""

    events: list[Event] | None = None
    transcript: Transcript | None = None
    messages: list[Message] | None = None


class Conversation(Struct, frozen=True):
    """Where most logs have their messages."""

    messages: list[Message] | None = None


class Trajectory(Struct, frozen=True):
    """Where τ-bench has its messages."""

    traj: list[Message] | None = None


FORMS: Final[dict[str, type[Struct]]] = {
    "events": Inspected,
    "messages": Conversation,
    "traj": Trajectory,
    "trial": RunLog,
}

# How a line begins that `Writer` writes; the log and a brace follow.
_LEAD: Final = re.compile(rb'\{"run_id":("(?:[^"\\]|\\.)*+"),"form":"([a-z]+)","log":')


class Call(NamedTuple):
    """A tool call: after which model call it came, and whether it ended in an error."""

    tool: str
    step: int
    failed: bool


class Shown(Struct, frozen=True):
    """What a transcript shows: the number of model calls, the tool calls, the agent's last text.

    `form` is that of the log, a key of `FORMS`; `shows` are the record fields that such a log can show;
    `identity` is empty, since such a log does not say whose run it is.
    """

    steps: int = 0
    calls: tuple[Call, ...] = ()
    answer: str | None = None
    form: str = "messages"
    shows: tuple[str, ...] = FIELDS
    identity: dict[str, str] = {}

    @property
    def empty(self) -> bool:
        """Whether the transcript shows nothing."""
        return not self.steps and not self.calls and self.answer is None

    def fields(self, rules: Rules, condition: str | None, outcome: str | None) -> dict[str, Any]:
        """Return the record fields that follow for a run of this condition and outcome."""
        fields: dict[str, Any] = {"steps_actual": self.steps} if self.steps else {}
        if outcome in {None, Outcome.HARNESS_ERROR}:
            return fields
        if condition == Condition.TOOL_FAILURE:
            fields |= self._fault(rules, recovered=outcome == Outcome.SUCCESS)
        if rules.checks and self.answer is not None:
            value = extract(self.answer)
            kept = sum(value is not None and _holds(text, value) for text in rules.checks.values())
            fields |= {"violations": len(rules.checks) - kept, "layer2_score": kept / len(rules.checks)}
        return fields

    def _fault(self, rules: Rules, *, recovered: bool) -> dict[str, Any]:
        first = next((i for i, call in enumerate(self.calls) if call.failed and call.step), None)
        if first is None:
            return {}
        onset = self.calls[first].step
        later = [call for call in self.calls if call.step > onset]  # made when the fault was known
        steps = next((call.step - onset for call in later if not call.failed), None) if recovered else None
        asked = next((call.step - onset for call in later if call.tool in rules.memory_tools), None)
        fields = {"fault_step": onset, "recovered": recovered, "recovery_steps": steps}
        return {
            name: value
            for name, value in (fields | {"memory_query_offset": asked}).items()
            if value is not None
        }


def shown(log: Any) -> Shown:
    """Return what a log of another program shows, by its members; events count before messages."""
    form = next(form for form in FORMS if hasattr(log, form))
    events = form == "events" and (log.events or (log.transcript and log.transcript.events))
    messages = getattr(log, "traj" if form == "traj" else "messages") or ()
    steps, calls = _of_events(events) if events else _of_messages(messages)
    texts = (_text(message.content) for message in reversed(messages) if message.role == "assistant")
    return Shown(steps, tuple(calls), next(filter(None, texts), None), form)


class TracePacker:
    """Collects the traces of a trace file; `size` is that of their lines, unpacked bytes."""

    def __init__(self) -> None:
        import zstandard  # noqa: PLC0415 - most imports have no trace

        self._packer = zstandard.ZstdCompressor(level=-3).compressobj()  # an import waits for it
        self._packed: list[bytes] = []
        self.size = 0

    def add(self, run_id: str, form: str, log: bytes) -> None:
        """Add a run, whose log is JSON of a form: a line end in it stands between values."""
        named = b'{"run_id":%b,"form":"%b","log":' % (msgspec.json.encode(run_id), form.encode())
        for part in (named, log.replace(b"\n", b" "), b"}\n"):
            self._packed.append(self._packer.compress(part))
            self.size += len(part)

    def packed(self) -> bytes:
        """Return the bytes of the file; nothing can be added afterwards."""
        return b"".join((*self._packed, self._packer.flush()))


_BROKEN: Final = (msgspec.MsgspecError, InputError, RecursionError, ValueError)


def read(file: BinaryIO, where: str) -> Iterator[tuple[str, Shown | TrialShown]]:
    """Yield the id of each run in an open trace file, and what its transcript shows.

    Raises:
        InputError: ``bundle.trace``, at `where`, for a line that cannot be read.
    """
    for run_id, form, log in logs(file, where):
        try:
            content = decoded(log, FORMS[form])
            transcript = _of_trial(content) if isinstance(content, RunLog) else shown(content)
        except _BROKEN as error:
            raise InputError("bundle.trace", f"no trace: {error}", where=where) from None
        yield run_id, transcript


def _of_trial(log: RunLog) -> TrialShown:
    return TrialShown(derive(log), {"plan": log.plan, "run_id": log.run, "task_id": log.task})


def logs(file: BinaryIO, where: str) -> Iterator[tuple[str, str, bytes]]:
    """Yield the id of each run in an open trace file, the form of its log, and the log, which is JSON.

    Raises:
        InputError: ``bundle.trace``, at `where`, for a line that cannot be read.
    """
    import zstandard  # noqa: PLC0415 - most bundles hold no trace

    unpacker = zstandard.ZstdDecompressor(max_window_size=WINDOW)
    try:
        with unpacker.stream_reader(file, read_across_frames=True, closefd=False) as stream:
            yield from _runs(BufferedReader(stream, WINDOW))
    except (zstandard.ZstdError, *_BROKEN) as error:
        raise InputError("bundle.trace", f"no trace: {error}", where=where) from None


def _runs(stream: BufferedReader) -> Iterator[tuple[str, str, bytes]]:
    met, left = set[int](), MAX_FILE  # hashes; bytes
    while line := stream.readline(left + 1):
        left -= len(line)
        if left < 0:
            raise ValueError(f"unpacks to more than {MAX_FILE:,} bytes")
        run_id, form, log = _parts(line)
        line = b""  # of a long run one copy is enough
        if hash(run_id) in met:
            raise ValueError(f"two lines are of the run {run_id!r}")
        met.add(hash(run_id))
        yield run_id, form, log


def _parts(line: bytes) -> tuple[str, str, bytes]:
    end = len(line) - line.endswith(b"\n") - 1
    lead = _LEAD.match(line)
    form = lead[2].decode() if lead else ""
    if lead is None or form not in FORMS or line[end : end + 1] != b"}":
        raise ValueError('a line is not of the form {"run_id": …, "form": …, "log": …}')
    return msgspec.json.decode(lead[1], type=str), form, line[lead.end() : end]


def decoded(data: bytes, type_: type[Decoded]) -> Decoded:
    """Return JSON as a struct, of whose members alone it is read; of a repeated key the last value counts.

    NaN and infinities, which logs of other programs hold, are read as null. Raises `msgspec.MsgspecError` or
    `InputError`.
    """
    canonical.check_memory(data)
    try:
        return msgspec.json.decode(data, type=type_)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if b"NaN" not in data and b"Infinity" not in data:
            raise
        canonical.check_memory(data, copies=3)
        plain = _without_constants(data)
        if plain == data:
            raise
        return msgspec.json.decode(plain, type=type_)


def _without_constants(data: bytes) -> bytearray:
    """Return JSON with null for NaN and infinities outside of texts."""
    plain, view = bytearray(), memoryview(data)
    for match in _UP_TO_CONSTANTS.finditer(data):
        plain += view[match.start() : match.end(1)]
        part = match[2].replace(b"-Infinity", b"null")
        plain += part.replace(b"Infinity", b"null").replace(b"NaN", b"null")
    return plain


def rules_of(data: bytes) -> Rules:
    """Return the rules in a file of a bundle."""
    document = canonical.loads(data, where=RULES)
    return base.validate(Rules, document, code="bundle.trace", where=RULES)


def _of_events(events: Iterable[Event]) -> tuple[int, list[Call]]:
    steps, calls = 0, []
    for event in _flat(events):
        if event.event == "model":
            steps += 1
        elif event.event == "tool":
            calls.append(Call(str(event.function), steps, bool(event.error)))
        elif event.type in _SCORING and event.event in {"step", "span_begin"}:
            break
    return steps, calls


def _flat(events: Iterable[Event]) -> Iterator[Event]:
    """Yield events, each before those in it; a generator for each level would take time quadratic in them."""
    stack = [iter(events)]
    while stack:
        for event in stack[-1]:
            yield event
            if event.events:
                stack.append(iter(event.events))
                break
        else:
            stack.pop()


def _of_messages(messages: Iterable[Message]) -> tuple[int, list[Call]]:
    """Return model calls and tool calls; answers to calls that the assistant did not make are left out."""
    steps, calls, tools = 0, [], {}
    for message in messages:
        if message.role == "assistant":
            steps += 1
            for call in message.tool_calls if isinstance(message.tool_calls, list) else ():
                if isinstance(call, dict):
                    name = call.get("name") or call.get("function")
                    tools[str(call.get("id"))] = str(name.get("name") if isinstance(name, dict) else name)
        elif message.role == "tool":
            tool = tools.get(str(message.tool_call_id or message.id))
            if tool is not None:
                calls.append(Call(tool, steps, bool(message.error)))
    return steps, calls


def _text(content: Any) -> str:
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def _holds(text: str, value: dict[str, Any]) -> bool:
    try:
        return bool(Expression(text, number=_number, fold=False)(value))
    except ExpressionError:
        return False


def extract(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a text by the five strategies of [26] §4.3.2, None where all fail.

    In turn: the text itself; the text in a Markdown fence; the first block in braces; the largest; and the
    beginning of an object that was cut off, ended after its last whole member.
    """
    for candidate in _candidates(text):
        try:
            value = canonical.loads(candidate.encode(errors="surrogatepass"))
        except InputError:
            continue
        if isinstance(value, dict):
            return value
    return None


def _candidates(text: str) -> Iterator[str]:
    yield text.strip()
    inside, closed, _ = text.partition("```")[2].partition("```")
    if closed:
        yield re.sub(r"\A\w*+\s*+", "", inside)
    blocks, cuts = _braces(text)
    yield from blocks
    yield from cuts


def _braces(text: str) -> tuple[list[str], list[str]]:
    """Return the first and the largest block in balanced braces, and ends for one that stays open."""
    blocks: list[str] = []
    commas: deque[tuple[int, str]] = deque(maxlen=_CUTS)  # of the open block: where, and what ends it there
    start, stack, quoted = 0, "", False
    for match in re.finditer(r'\\.|["{}\[\],]', text, re.DOTALL):
        mark, at = match[0], match.start()
        if mark == '"' and stack:
            quoted = not quoted
        elif quoted or (not stack and mark != "{"):
            continue
        elif mark in "{[":
            start = start if stack else at
            stack = ("}" if mark == "{" else "]") + stack
            if len(stack) > canonical.MAX_DEPTH:
                break
        elif mark == ",":
            commas.append((at, stack))
        elif stack[0] == mark:
            stack = stack[1:]
            if not stack:
                block = text[start : at + 1]
                blocks = (
                    [*blocks[:1], block if len(block) > len(blocks[-1]) else blocks[-1]]
                    if blocks
                    else [block]
                )
                commas.clear()
    ends = [(len(text), '"' * quoted + stack), *reversed(commas)] if stack else []
    return blocks, [text[start:at] + end for at, end in ends]
