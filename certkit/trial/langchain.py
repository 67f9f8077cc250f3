"""Middleware for LangChain: an agent of `langchain.agents.create_agent` makes the planned runs of a trial.

    with Recorder(Path("bundle"), plan, agent="triage", version="1.4.0") as recorder:
        for run in recorder.runs():
            agent = create_agent(model, tools=[lookup], middleware=[..., PlannedFaults(run)])
            state = agent.invoke({"messages": [("user", run.task.prompt)]})
            run.finish(success=check(state), answer=state["messages"][-1].text)

Put it last in the list, next to the tools: then middleware that retries, limits or redacts sees what a tool
would do. The tool calls of one message of the model are counted in the order in which the message lists them,
although LangChain runs them at the same time. A call that other middleware answers before it gets here counts
all the same if the message holds another call that gets here.

A result is the text of the tool's message; where the text is a JSON object or array, it is that. An artifact
of the message, which no model sees, is left as it is. `RunOver` leaves the agent, since it is no `Exception`.

Needs the extra ``certkit[langchain]``.
"""

from __future__ import annotations

from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from certkit.trial.boundary import RunOver, value_of
from certkit.trial.worlds.world import ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from langchain.agents.middleware import ToolCallRequest

    from certkit.record.outcome import RunEvent
    from certkit.trial.faults import ToolFault
    from certkit.trial.recorder import RecordedRun

OnFailure = Literal["continue", "error"]
_Key = tuple[str | None, str | None]
"""The id of a message of the model, and of a call in it."""


class _Begun(NamedTuple):
    """A call that was counted and is not made yet, its event, and what is done to it."""

    key: _Key
    event: RunEvent
    fault: ToolFault | None


class PlannedFaults(AgentMiddleware):  # type: ignore[misc]  # LangChain is untyped for the type checker
    """Does to the tool calls of one run what the plan says, and records them.

    Args:
        run: the run; each run has its own middleware.
        on_failure: what becomes of a planned error, as in LangChain's `ToolRetryMiddleware`. With
            ``continue`` the model gets a tool message with ``status="error"``. With ``error`` it is raised
            as an exception, for other middleware to retry or handle; LangChain ends the agent if none does.
    """

    tools = ()

    def __init__(self, run: RecordedRun, *, on_failure: OnFailure = "continue") -> None:
        super().__init__()
        self._boundary, self._on_failure = run.boundary, on_failure
        self._lock = Lock()
        self._seen = set[_Key]()
        self._begun: dict[_Key, _Begun | RunOver] = {}

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Let a tool call pass the boundary of the run."""
        begun = self._begin(request)
        if begun.fault is not None and begun.fault.effect == "not_run":
            return self._blocked(request, begun.event, begun.fault)
        try:
            answer = handler(request)
        except Exception as error:  # noqa: BLE001 - raised again there
            return self._raised(request, begun, error)
        return self._returned(request, begun, answer)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Let a tool call pass the boundary of the run."""
        begun = self._begin(request)
        if begun.fault is not None and begun.fault.effect == "not_run":
            return self._blocked(request, begun.event, begun.fault)
        try:
            answer = await handler(request)
        except Exception as error:  # noqa: BLE001 - raised again there
            return self._raised(request, begun, error)
        return self._returned(request, begun, answer)

    def _begin(self, request: ToolCallRequest) -> _Begun:
        """Count a call, and with it all calls of its message; count a retry as a call of its own."""
        call = request.tool_call
        with self._lock:
            message_id, waiting = _waiting(request)
            key = message_id, call["id"]
            if key not in self._seen:
                for listed in waiting:
                    self._count((message_id, listed["id"]), listed)
            if key not in self._begun:
                self._count(key, call)
            begun = self._begun.pop(key)
        if isinstance(begun, RunOver):
            raise begun
        return begun

    def _count(self, key: _Key, call: Any) -> None:
        self._seen.add(key)
        try:
            self._begun[key] = _Begun(key, *self._boundary.begin(call["name"], (), (), call["args"]))
        except RunOver as over:
            self._begun[key] = over  # raised when that very call is made

    def _blocked(self, request: ToolCallRequest, event: RunEvent, fault: ToolFault) -> Any:
        try:
            return self._boundary.blocked(event, fault)
        except Exception as error:  # noqa: BLE001 - the planned one
            return self._failure(request, error)

    def _raised(self, request: ToolCallRequest, begun: _Begun, error: Exception) -> Any:
        if isinstance(error, GraphBubbleUp):  # LangGraph interrupts the tool, and makes the same call later
            self._begun[begun.key] = begun
            raise error
        try:
            self._boundary.failed(begun.event, begun.fault, error)
        except Exception as planned:  # noqa: BLE001 - the planned one
            return self._failure(request, planned)
        raise error

    def _returned(self, request: ToolCallRequest, begun: _Begun, answer: Any) -> Any:
        """Return what the agent gets for what a tool returned: a message, or a command that holds it."""
        message = _message(answer, request.tool_call["id"])
        try:
            if message is not None and message.status == "error":
                self._boundary.failed(begun.event, begun.fault, ToolError(str(message.text)))
                return answer
            result = None if message is None else value_of(str(message.text))
            given = self._boundary.returned(begun.event, begun.fault, request.tool_call["name"], result)
        except Exception as error:  # noqa: BLE001 - the planned one
            return self._failure(request, error)
        if message is None or given is result:
            return answer
        altered = message.model_copy(update={"content": _content(message, given)})
        if answer is message:
            return altered
        messages = [altered if item is message else item for item in answer.update["messages"]]
        return replace(answer, update=answer.update | {"messages": messages})

    def _failure(self, request: ToolCallRequest, error: Exception) -> ToolMessage:
        if self._on_failure == "error":
            raise error
        call = request.tool_call
        return ToolMessage(str(error), name=call["name"], tool_call_id=call["id"], status="error")


def _waiting(request: ToolCallRequest) -> tuple[str | None, list[Any]]:
    """Return the id of the message that makes a call, and its calls that have no answer yet, in its order."""
    messages = request.state.get("messages", ()) if isinstance(request.state, dict) else ()
    answered = set[str]()
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, AIMessage):
            return message.id, [call for call in message.tool_calls if call["id"] not in answered]
    return None, []


def _message(answer: Any, call_id: str | None) -> ToolMessage | None:
    """Return the tool's message in an answer, None where there is none."""
    if isinstance(answer, ToolMessage):
        return answer
    update = answer.update if isinstance(answer, Command) else None
    messages = update.get("messages", ()) if isinstance(update, dict) else ()
    held = (item for item in messages if isinstance(item, ToolMessage) and item.tool_call_id == call_id)
    return next(held, None)


def _content(message: ToolMessage, result: Any) -> Any:
    """Return the content of a message that says something else, in the form that its content has."""
    if not isinstance(result, str):
        spaced = '": ' in message.text
        result = msgspec.json.format(msgspec.json.encode(result), indent=0 if spaced else -1).decode()
    if isinstance(message.content, str):
        return result
    blocks = [item for item in message.content if isinstance(item, dict) and item.get("type") != "text"]
    return [{"type": "text", "text": result}, *blocks]
