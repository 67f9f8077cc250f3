"""A proxy between an agent, in any language, and its MCP server (extra ``mcp``).

    serve(plan, "support-1-07", Path("events"), ["python", "server.py"], environment=os.environ)

The proxy starts the server, and speaks MCP over standard input and output as the server would. A tool call
passes the tool boundary of the run; everything else passes unchanged. An error is a result with ``isError``.
An altered result is altered in its text and in its structured content alike; where it would not fit the
tool's output schema, it is left as it is, and the event says so.

An agent may connect more than once, and each connection starts the server anew, as it would without the
proxy; a second connection waits for the end of the first. A server that ends while it is connected is a
harness error: the proxy does not start it again, since its state is lost.

What is added to a result is a text of `certkit.trial.faults`, the plan's attack, or `CLOSED`; nothing else
shows that the proxy is there but its own name in error results.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError as ServerToolError
from fastmcp.server import create_proxy
from fastmcp.server.middleware import Middleware
from fastmcp.tools.base import ToolResult
from jsonschema.validators import validator_for
from mcp import MCPError
from mcp_types import TextContent
from referencing import Registry

from certkit.ground.errors import UsageError
from certkit.record.outcome import RunEvent
from certkit.trial.boundary import Boundary, OwnRules, RunOver
from certkit.trial.events import writing_events
from certkit.trial.worlds.world import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from certkit.record.outcome import Ending
    from certkit.trial.plan import TrialPlan

CLOSED: Final = "Connection closed"
"""The error of every call after the end of the run; MCP's own words for it."""

_ENCODER: Final = msgspec.json.Encoder()


def serve(
    plan: TrialPlan, run_id: str, folder: Path, server: Sequence[str], *, environment: Mapping[str, str]
) -> None:
    """Serve the tools of an MCP server to the agent of a run, until the agent disconnects.

    Args:
        plan: the plan.
        run_id: which of its runs; its task is one of the user's own.
        folder: keeps the events of the run; see `certkit.trial.events`.
        server: the command of the MCP server.
        environment: of the server; the run is added as ``CERTKIT_RUN`` and ``CERTKIT_TASK``.

    Raises:
        UsageError: ``usage.option`` where the plan has no such run, or its task is of a world of certkit.
    """
    run = next((run for run in plan.runs if run.id == run_id), None)
    if run is None:
        hint = f"{plan.runs[0].id}, for example" if plan.runs else None
        raise UsageError("usage.option", f"--run: the plan has no run {run_id!r}", hint=hint)
    task = plan.tasks_by_id()[run.task]
    if task.world is not None:
        raise UsageError("usage.option", f"task {task.id!r} is of the world {task.world}, not of a server")
    variables = {**environment, "CERTKIT_RUN": run.id, "CERTKIT_TASK": task.id}
    with writing_events(folder) as (events, append):
        rules = FittingRules(OwnRules(task.attack))
        boundary = Boundary(plan, run, task, rules, kind="transport", on_event=append)
        boundary.resume(events)
        transport = _OneStart(server[0], [*server[1:]], env=variables)
        passage = TrialMiddleware(boundary, rules, lambda: transport.ended, append)
        asyncio.run(_serve(transport, passage))


async def _serve(transport: _OneStart, middleware: TrialMiddleware) -> None:
    proxy = create_proxy(transport, name="server", identity="upstream", provider_error_strategy="raise")
    proxy.add_middleware(middleware)
    try:
        await proxy.run_stdio_async(show_banner=False, log_level="CRITICAL")
    finally:
        await transport.close()


class _OneStart(StdioTransport):  # type: ignore[misc]
    """A server that is started once: after its end, a connection to it is refused."""

    @property
    def ended(self) -> bool:
        """Whether the server was started and has ended."""
        return self._connect_task is not None and (self._connect_task.done() or self._is_session_dead())

    async def connect(self, **options: Any) -> Any:
        """Connect, if the server has not ended."""
        if self.ended:
            raise ConnectionError(CLOSED)
        return await super().connect(**options)


class _ResultForm(NamedTuple):
    """How a value is written in a result.

    Attributes:
        schema: the tool's output schema, None if it has none.
        structured: whether the value is the structured content.
        wrapped: whether it is the member ``result`` of it, as SDKs write what is no object.
    """

    schema: Any = None
    structured: bool = False
    wrapped: bool = False

    def content(self, value: Any) -> Any:
        """Return the structured content of a value."""
        return {"result": value} if self.wrapped else value

    def holds(self, value: Any) -> bool:
        """Tell whether the tool may return a value."""
        if not self.structured or self.schema is None:
            return True
        try:
            # The empty registry keeps references from being fetched.
            validator = validator_for(self.schema)(self.schema, registry=Registry())
            return bool(validator.is_valid(self.content(value)))
        except Exception:  # noqa: BLE001 - a schema of the server's that cannot be read
            return False


class FittingRules:
    """Rules whose altered results fit the output schema of the tool; `form` is that of the latest result."""

    def __init__(self, rules: OwnRules) -> None:
        self._rules = rules
        self.form = _ResultForm()

    def contradict(self, tool: str, result: Any, variant: int) -> Any:
        """Return a contradicting result, None where there is none that fits."""
        return self._fitting(self._rules.contradict(tool, result, variant))

    def attack(self, tool: str, result: Any, variant: int) -> Any:
        """Return a result with the attack, None where there is none that fits."""
        return self._fitting(self._rules.attack(tool, result, variant))

    def _fitting(self, value: Any) -> Any:
        return value if self.form.holds(value) else None


class _ServersError(Exception):
    """An error result of the server's own, which passes as it is."""


class TrialMiddleware(Middleware):  # type: ignore[misc]
    """Sends tool calls through the boundary, and notices when the server ends.

    Args:
        boundary: of the run.
        rules: the boundary's.
        has_ended: tells whether the server has ended.
        append: adds an event to those of the run.
    """

    def __init__(
        self,
        boundary: Boundary,
        rules: FittingRules,
        has_ended: Callable[[], bool],
        append: Callable[[int, RunEvent], None],
    ) -> None:
        self._boundary, self._rules, self._has_ended, self._append = boundary, rules, has_ended, append
        self._ended = boundary.over is not None

    async def on_message(self, context: Any, call_next: Any) -> Any:
        """Pass a message on; end the run where the server has ended."""
        try:
            return await call_next(context)
        except Exception:
            if self._has_ended():
                self._end("harness_error", "the MCP server ended, or did not start")
            raise

    async def on_call_tool(self, context: Any, call_next: Any) -> ToolResult:
        """Send a call through the boundary."""
        name = context.message.name
        results: list[ToolResult] = []
        values: list[Any] = []

        async def tool(**_arguments: Any) -> Any:
            result = await call_next(context)
            results.append(result)
            if result.is_error:
                raise _ServersError("\n".join(_texts(result)))
            schema = None
            if result.structured_content is not None:
                described = await context.fastmcp_context.fastmcp.get_tool(name)
                schema = None if described is None else described.output_schema
            value, self._rules.form = _read(result, schema)
            values.append(value)
            return value

        try:
            seen = await self._boundary.wrap({name: tool})[name](**(context.message.arguments or {}))
        except RunOver:
            self._end("call_limit")
            return _error(CLOSED)
        except _ServersError:
            return results[0]
        except (ToolError, TimeoutError) as error:
            return _error(str(error))
        except ServerToolError as error:  # what was no result but an error of the protocol stays one
            if isinstance(error.__cause__, MCPError):
                raise error.__cause__ from None
            raise
        return results[0] if seen is values[0] else _altered(results[0], seen)

    def _end(self, ended: Ending, detail: str | None = None) -> None:
        if not self._ended:
            self._ended = True
            self._boundary.over = ended
            self._append(self._boundary.count, RunEvent(event="end", ended=ended, detail=detail))


def _error(text: str) -> ToolResult:
    return ToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def _texts(result: ToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, TextContent)]


def _read(result: ToolResult, schema: Any) -> tuple[Any, _ResultForm]:
    """Return what a tool returned, and how it is written.

    It is the structured content, or else its texts; a text that is a JSON object or list counts as that.
    """
    structured = result.structured_content
    if structured is not None:
        wrapped = isinstance(structured, dict) and set(structured) == {"result"}
        return structured["result"] if wrapped else structured, _ResultForm(schema, True, wrapped)
    values = [_parsed(text) for text in _texts(result)]
    return values[0] if len(values) == 1 else values, _ResultForm()


def _parsed(text: str) -> Any:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return text
    return value if isinstance(value, dict | list) else text


def _written(value: Any) -> str:
    return value if isinstance(value, str) else _ENCODER.encode(value).decode()


def _altered(result: ToolResult, value: Any) -> ToolResult:
    """Return a result with another value, in its texts and in its structured content."""
    before, form = _read(result, None)
    texts = _texts(result)
    if not form.structured:
        new = [_written(value)] if len(texts) == 1 else [_written(item) for item in value]
    else:
        bare = form.wrapped and texts == [_written(before)]
        new = [_written(value if bare else form.content(value))]
    content = []
    for block in result.content:
        if not isinstance(block, TextContent):
            content.append(block)
        elif new:
            content.append(block.model_copy(update={"text": new.pop(0)}))
    content += [TextContent(type="text", text=text) for text in new if texts]
    structured = form.content(value) if form.structured else None
    return result.model_copy(update={"content": content, "structured_content": structured})
