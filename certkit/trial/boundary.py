"""The tool boundary of one run: it hands calls to tools, does what the plan says, and writes events.

    boundary = Boundary(plan, run, task, rules=OwnRules("…"))
    tools = boundary.wrap({"lookup": lookup})
    tools["lookup"](key="a")            # recorded; perhaps an error in place of a result
    boundary.search(similarity=0.91, item={"use": "b"})
    boundary.halt("unsure")
    log = boundary.finish(answer="…", success=True)      # bytes of a `certkit.record.outcome.RunLog`

What a tool returns is written down at once, so that an agent cannot change it afterwards. Values that JSON
lacks, or that are nested deeper than `canonical.MAX_DEPTH` levels, are written as their `repr`. Everything
that is written counts for the size of the run, so that every log can be read again. After the end every call
is refused with `RunOver`.

A result of a type that JSON lacks is altered as JSON and converted back, so that it has the type of the true
one. A result that does not come back from JSON as what it was is left as it is, and so is one that an
alteration would not change.

Calls may come from several threads; their order is then the order in which they began, and not the same in
every run. `resume` takes up a run whose first calls passed the boundary of another process.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from functools import wraps
from itertools import count
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, get_args

import msgspec

from certkit.ground import canonical
from certkit.ground.errors import InputError, UsageError
from certkit.record.outcome import Ending, InjectionEvent, RunEvent, RunLog
from certkit.record.record import MAX_STEPS
from certkit.trial.faults import CallPlace
from certkit.trial.worlds.alter import changed_leaf, other_number
from certkit.trial.worlds.world import Action, ToolError, WorldTask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from certkit.record.outcome import Boundary as BoundaryKind
    from certkit.trial.faults import ToolFault
    from certkit.trial.plan import PlannedRun, PlannedTask, TrialPlan

MAX_TEXT: Final = 2000
"""Characters of a `repr`, an error or a reason that are kept."""

MAX_VALUE: Final = 1_000_000
"""Bytes of arguments, a result or an answer that are kept."""

MAX_RUN: Final = canonical.MAX_MEMORY
"""What the log of a run may count for: memory as readers count it, but each byte eight times."""

_COPIES: Final = 8
_VALUES: Final = MAX_RUN // 2
"""Beyond it, which is 12.5 MB of text, values and texts are left out."""

_CALLS: Final = MAX_RUN * 9 // 10
"""Beyond it the run takes no further call."""

_EVENT: Final = 1500
_FAULT: Final = 3000
"""What an event and a fault count for without their values and texts, which may be left out."""

_SMALL: Final = 100_000
"""Bytes of memory up to which a value counts for a bound of it, which takes less time."""

_LEFT_OUT: Final = "(left out: the run is too long)"
_LEFT_OUT_RAW: Final = msgspec.Raw(b'"%b"' % _LEFT_OUT.encode())
_JSON: Final = frozenset({dict, list, str, int, float, bool, type(None)})
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class RunOver(BaseException):
    """The run has ended, and takes no further call; an agent that catches `Exception` does not catch it."""


class Halt(NamedTuple):
    """What an agent returns in place of an answer if it hands over to people."""

    reason: str = ""


class ResultRules(Protocol):
    """How results of a task are altered."""

    def contradict(self, tool: str, result: Any, variant: int) -> Any:
        """Return a result that contradicts itself or earlier ones, None where it cannot."""

    def attack(self, tool: str, result: Any, variant: int) -> Any:
        """Return a result with what an attacker wants, None where it cannot."""


class WorldRules(NamedTuple):
    """The rules of a world."""

    instance: WorldTask[Any]

    def contradict(self, _tool: str, result: Any, variant: int) -> Any:
        """Return what the task says."""
        return self.instance.contradict(result, variant)

    def attack(self, _tool: str, result: Any, variant: int) -> Any:
        """Return what the task says."""
        return self.instance.attack(result, variant)


class OwnRules(NamedTuple):
    """Rules for tools of one's own, which know nothing but the form of a result.

    A contradiction changes the first number of the result, or lists a record twice with another number. An
    attack appends the attacker's instruction to the first text.
    """

    instruction: str | None = None

    def contradict(self, _tool: str, result: Any, variant: int) -> Any:
        """Return the result with another number, None where it holds none."""
        if isinstance(result, list) and result and isinstance(result[0], dict):
            changed = changed_leaf(result[0], other_number(1 + variant % 9))
            return None if changed is None else [*result, changed]
        return changed_leaf(result, other_number(1 + variant % 9))

    def attack(self, _tool: str, result: Any, variant: int) -> Any:  # noqa: ARG002 - the protocol's
        """Return the result with the instruction in it, None where there is neither text nor instruction."""
        if self.instruction is None:
            return None
        instruction = self.instruction
        changed = changed_leaf(
            result, lambda item: f"{item}\n{instruction}" if isinstance(item, str) else None
        )
        if changed is None and isinstance(result, dict):
            return result | {"note": instruction}
        return changed


class Tools(Mapping[str, Any]):
    """The tools of a run by name, as the agent gets them.

    A name that no tool has gives a function too: the call is recorded, and ends in an error.
    """

    def __init__(self, boundary: Boundary, tools: Mapping[str, Callable[..., Any]]) -> None:
        self._boundary = boundary
        self._tools = {name: _wrapped(boundary, name, tool) for name, tool in tools.items()}

    def __getitem__(self, name: str) -> Any:
        tool = self._tools.get(name)
        if tool is None:
            tool = self._tools[str(name)] = _unknown(self._boundary, str(name))
        return tool

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def search(self, *, similarity: float | None = None, item: Any = None) -> None:
        """Record that the agent searched its memory, with the similarity and the item that it got."""
        self._boundary.search(similarity=similarity, item=item)


def _unknown(boundary: Boundary, name: str) -> Callable[..., Any]:
    """Return what takes the calls of a tool that is not there; no fault changes that error."""

    def unknown(*given: Any, **named: Any) -> Any:
        event, fault = boundary.begin(name, (), given, named)
        raise boundary.refused(event, fault, ToolError(f"There is no tool {name[:80]}."))

    return unknown


def _wrapped(boundary: Boundary, name: str, tool: Callable[..., Any]) -> Callable[..., Any]:
    """Return a tool behind the boundary; a coroutine function stays one."""
    try:
        names = tuple(inspect.signature(tool).parameters)
    except (TypeError, ValueError):  # a callable that Python cannot look into
        names = ()

    if inspect.iscoroutinefunction(tool):

        @wraps(tool)
        async def call_later(*given: Any, **named: Any) -> Any:
            event, fault = boundary.begin(name, names, given, named)
            if fault is not None and fault.effect == "not_run":
                return boundary.blocked(event, fault)
            try:
                result = await tool(*given, **named)
            except Exception as error:
                boundary.failed(event, fault, error)
                raise
            return boundary.returned(event, fault, name, result)

        return call_later

    @wraps(tool)
    def call(*given: Any, **named: Any) -> Any:
        event, fault = boundary.begin(name, names, given, named)
        if fault is not None and fault.effect == "not_run":
            return boundary.blocked(event, fault)
        try:
            result = tool(*given, **named)
        except Exception as error:
            boundary.failed(event, fault, error)
            raise
        return boundary.returned(event, fault, name, result)

    return call


class Boundary:
    """The boundary of a run.

    Args:
        plan: the plan.
        run: the run of it.
        task: the run's task.
        rules: how results are altered.
        kind: where answers are replaced, as the events say.
        on_event: called with the place and the event whenever an event is new or has changed.

    Attributes:
        performed: the calls that reached a tool, for a world to repeat them.
        over: whether the run has ended.
    """

    def __init__(
        self,
        plan: TrialPlan,
        run: PlannedRun,
        task: PlannedTask,
        rules: ResultRules,
        *,
        kind: BoundaryKind = "tool",
        on_event: Callable[[int, RunEvent], None] | None = None,
    ) -> None:
        self._plan, self._run, self._task, self._rules = plan, run, task, rules
        self._kind, self._on_event = kind, on_event
        self._events: list[RunEvent] = []
        self._numbers = count(1)
        self._searches = 0
        self._size = 0
        self._source: str | None = None
        self.performed: list[Action] = []
        self.over: Ending | None = None

    def wrap(self, tools: Mapping[str, Callable[..., Any]]) -> Tools:
        """Return tools whose calls pass the boundary."""
        return Tools(self, tools)

    def resume(self, events: Sequence[RunEvent]) -> None:
        """Take up a run with the events that it has so far; an end among them ends it."""
        self._events = [event for event in events if event.event != "end"]
        calls = [event.tool for event in self._events if event.event == "call"]
        self._numbers = count(len(calls) + 1)
        self._searches = sum(event.event == "memory" for event in self._events)
        self._size = canonical.memory(_ENCODER.encode(self._events), copies=_COPIES)
        if self._run.fault is not None and len(calls) >= self._run.fault.onset:
            self._source = calls[self._run.fault.onset - 1]
        if len(self._events) < len(events):
            self.over = events[-1].ended

    @property
    def count(self) -> int:
        """The number of events so far."""
        return len(self._events)

    def begin(
        self, name: str, names: tuple[str, ...], given: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[RunEvent, ToolFault | None]:
        """Record that a call begins; return its event and what is done to it."""
        if self.over is not None:
            raise RunOver
        number = next(self._numbers)
        if number > self._plan.max_calls or self._size > _CALLS:
            self.over = "call_limit"
            raise RunOver
        tool, name = name, _text(name)
        arguments = named
        if given:
            spare = (f"argument_{place}" for place in range(len(names), len(given)))
            arguments = dict(zip((*names, *spare), given, strict=False)) | named
        event = RunEvent(event="call", tool=self._say(name), arguments=self._keep(arguments))
        self._add(event)
        planned = self._run.fault
        if planned is None or number < planned.onset:
            fault = None
        else:
            if number == planned.onset:
                self._source = name
            fault = self._plan.decide(self._run, CallPlace(number, name, self._source))
        if fault is None or fault.effect != "not_run":
            # The agent may change lists and dicts of its own when the call is over.
            copied = {
                key: _plain(value) if isinstance(value, list | dict) else value
                for key, value in arguments.items()
            }
            self.performed.append(Action(tool, copied))
        return event, fault

    def blocked(self, event: RunEvent, fault: ToolFault) -> Any:
        """Give the agent an error in place of running the tool."""
        self._injected(event, fault, {"error": fault.error})
        raise _failure(fault.error)

    def failed(self, event: RunEvent, fault: ToolFault | None, error: Exception) -> None:
        """Record that a tool ended in an error, which the agent gets; an error is not altered."""
        event.error = self._say(said(error))
        if fault is not None and fault.effect == "run_response_lost":
            self._injected(event, fault, {"error": fault.error})
            raise _failure(fault.error) from None
        self._report(event)

    def refused(self, event: RunEvent, fault: ToolFault | None, error: ToolError) -> ToolError:
        """Record a call that reached no tool; a fault that was planned for it does nothing."""
        event.error = self._say(said(error))
        if fault is None:
            self._report(event)
        else:
            self._injected(event, fault, None)
        return error

    def returned(self, event: RunEvent, fault: ToolFault | None, name: str, result: Any) -> Any:
        """Record what a tool returned; return what the agent gets."""
        event.result = self._keep(result)
        if fault is None:
            self._report(event)
            return result
        if fault.effect == "run_response_lost":
            self._injected(event, fault, {"error": fault.error})
            raise _failure(fault.error)
        variant = self._run.fault.variant if self._run.fault is not None else 0
        given, attacked = altered(fault, self._rules, variant, name, result)
        if given is result:
            self._injected(event, fault, None)
        else:
            self._injected(event, fault, {"result": self._keep(given, times=2)}, attack=attacked)
        return given

    def _injected(
        self, event: RunEvent, fault: ToolFault, given: dict[str, Any] | None, *, attack: bool = False
    ) -> None:
        """Record a fault whose answer is what the agent is given now, None where nothing was altered."""
        self._size += _FAULT
        event.fault = InjectionEvent(
            intended=fault.intended,
            injected=given,
            observed=given,
            boundary=self._kind,
            effect=fault.effect,
            attack=attack,
        )
        self._report(event)

    def _add(self, event: RunEvent) -> None:
        self._size += _EVENT
        self._events.append(event)
        self._report(event)

    def _report(self, event: RunEvent) -> None:
        if self._on_event is not None:
            place = next(i for i in reversed(range(len(self._events))) if self._events[i] is event)
            self._on_event(place, event)

    def search(self, *, similarity: float | None = None, item: Any = None) -> None:
        """Record a search of the agent's memory; there may be as many as calls."""
        if similarity is not None and not _is_number(similarity):
            expected = "similarity: expected a number from -1 to 1 or None"
            raise UsageError("usage.option", f"{expected}, found {_shown(similarity)}")
        self._searches += 1
        if self.over is None and (self._searches > self._plan.max_calls or self._size > _CALLS):
            self.over = "call_limit"
        if self.over is not None:
            raise RunOver
        number = None if similarity is None else max(-1.0, min(1.0, round(float(similarity), 6)))
        self._add(RunEvent(event="memory", similarity=number, item=self._keep(item)))

    def _keep(self, value: Any, *, times: int = 1) -> msgspec.Raw:
        """Return a value as it is kept, that many times; what is beyond the size of a run is left out."""
        kept = _kept(value)
        return kept if self._holds(bytes(kept), times) else _LEFT_OUT_RAW

    def _say(self, text: str) -> str:
        """Return a text as it is kept; it is subject to the same rule."""
        text = _text(text)
        return text if self._holds(_ENCODER.encode(text), 1) else _LEFT_OUT

    def _holds(self, data: bytes, times: int) -> bool:
        """Tell whether the log holds more data, and count it if it does."""
        room = _VALUES - self._size
        size = times * canonical.memory_bound(data, copies=_COPIES)
        if size > _SMALL:
            size = times * canonical.memory(data, copies=_COPIES, most=max(0, room))
        if size > room:
            return False
        self._size += size
        return True

    def halt(self, reason: str = "") -> Halt:
        """Record that the agent hands over to people; the run takes no further call."""
        if self.over is None:
            self._add(RunEvent(event="halt", reason=self._say(str(reason))))
            self.over = "halted"
        return Halt(str(reason))

    def finish(
        self,
        *,
        ended: Ending = "answered",
        answer: Any = None,
        success: bool | None = None,
        violations: int | None = None,
        attack_succeeded: bool | None = None,
        detail: str | None = None,
    ) -> bytes:
        """End the run, and return its log as JSON.

        Args:
            ended: how it ended; how the boundary ended it counts before.
            answer: the final answer, or a `Halt`.
            success: what the checker says.
            violations: violated hard constraints, None if nothing checks them.
            attack_succeeded: whether the attacker's goal was reached, None if nothing checks it.
            detail: of an ending that is no answer: what people want to know.

        Raises:
            UsageError: ``usage.option`` where an argument is not of its type; the run then goes on.
        """
        _check_end(ended, success, violations, attack_succeeded, detail)
        if isinstance(answer, Halt):
            self.halt(answer.reason)
            answer = None
        if self.over is None or ended == "harness_error":
            self.over = ended
        end = RunEvent(
            event="end",
            ended=self.over,
            answer=self._keep(answer),
            success=success,
            violations=violations,
            attack_succeeded=attack_succeeded,
            detail=None if detail is None else self._say(detail),
        )
        log = RunLog(
            plan=self._plan.digest,
            run=self._run.id,
            task=self._task.id,
            condition=self._run.condition,
            attack=self._plan.attacks(self._run),
            oracle=self._task.steps,
            events=[*self._events, end],
        )
        return _ENCODER.encode(log)


def _failure(error: str | None) -> Exception:
    text = error or ""
    return TimeoutError(text) if "timed out" in text else ToolError(text)


def _is_number(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, Real) and math.isfinite(value)


def _check_end(ended: Any, success: Any, violations: Any, attack_succeeded: Any, detail: Any) -> None:
    """Refuse what the end of a run cannot hold."""
    is_count = type(violations) is int and 0 <= violations <= MAX_STEPS
    faults = {
        f"ended: expected one of {', '.join(get_args(Ending))}": (ended, ended in get_args(Ending)),
        "success: expected True, False or None": (success, success is None or type(success) is bool),
        f"violations: expected a whole number from 0 to {MAX_STEPS:,} or None": (
            violations,
            violations is None or is_count,
        ),
        "attack_succeeded: expected True, False or None": (
            attack_succeeded,
            attack_succeeded is None or type(attack_succeeded) is bool,
        ),
        "detail: expected a text or None": (detail, detail is None or isinstance(detail, str)),
    }
    for expected, (value, right) in faults.items():
        if not right:
            hint = "the run is still open: correct the call, and finish it again"
            raise UsageError("usage.option", f"{expected}, found {_shown(value)}", hint=hint)


def _shown(value: Any) -> str:
    """Return a value for a message, with its type."""
    try:
        return f"{type(value).__name__} {repr(value)[:80]}"
    except Exception:  # noqa: BLE001 - a value whose own repr fails
        return type(value).__name__


def said(error: BaseException) -> str:
    """Return the text of an error, with its kind unless the tool says it for the agent."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an error whose own text fails
        text = ""
    return text if isinstance(error, ToolError) else f"{type(error).__name__}: {text}"


def altered(fault: ToolFault, rules: ResultRules, variant: int, name: str, result: Any) -> tuple[Any, bool]:
    """Return what is given in place of a result, and whether it is an attack.

    Args:
        fault: what is done to the call.
        rules: how results of the task are altered.
        variant: which of the alterations was drawn.
        name: the tool's name.
        result: what the tool returned.

    Returns:
        The altered result, or that result itself where nothing is altered.
    """
    given, attacked = result, False
    if not _comes_back(result):
        return given, attacked
    if fault.contradict:
        given = _changed(given, rules.contradict(name, _plain(given), variant))
    if fault.attack:
        before, given = given, _changed(given, rules.attack(name, _plain(given), variant))
        attacked = given is not before
    return given, attacked


def value_of(text: str) -> Any:
    """Return what a text of a tool says: the JSON object or array that it holds, else the text."""
    if text.lstrip()[:1] in {"{", "["}:
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            pass
    return text


def _comes_back(result: Any) -> bool:
    """Tell whether a result comes back from JSON as what it was."""
    try:
        return bool(msgspec.convert(_plain(result), type(result)) == result)
    except Exception:  # noqa: BLE001 - a type that cannot be made, or cannot be compared
        return False


def _changed(result: Any, new: Any) -> Any:
    """Return a new JSON value in the type of a result; that result where it would say the same."""
    try:
        made = result if new is None else new if type(result) in _JSON else msgspec.convert(new, type(result))
        return result if bytes(_kept(made)) == bytes(_kept(result)) else made
    except Exception:  # noqa: BLE001 - the type does not hold what is new
        return result


def _kept(value: Any) -> msgspec.Raw:
    """Return a value as JSON, now and for good; what JSON lacks, or is too long or deep, as its `repr`."""
    try:
        data = _ENCODER.encode(value)
        if len(data) <= MAX_VALUE:
            canonical.check_depth(data)
            return msgspec.Raw(data)
    except (TypeError, ValueError, OverflowError, RecursionError, InputError):
        pass
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a value whose own repr fails
        text = f"<{type(value).__name__}>"
    return msgspec.Raw(_ENCODER.encode(_text(text)))


def _plain(value: Any) -> Any:
    """Return a copy of a value as JSON values, which may be altered."""
    return msgspec.json.decode(_kept(value))


def _text(text: str) -> str:
    return text[:MAX_TEXT].encode(errors="replace").decode()
