"""What the recipe for Pydantic AI rests on: schemas of wrapped tools, and their exceptions."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec
import pytest

from certkit.trial import RunOver
from certkit.trial.faults import ERRORS, PlannedFault
from tests.support.trials import CALLS, FUNCTIONS, own_boundary

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")

from pydantic_ai import Agent, Tool
from pydantic_ai.capabilities import Hooks
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

FAILED = PlannedFault(onset=1)
each = pytest.mark.parametrize("name", FUNCTIONS)


def outputs(tools: list[Any], *said: list[tuple[str, str]] | str, **more: Any) -> list[Any]:
    """Run an agent, and return what its model got of its tools."""
    got: list[Any] = []

    def model(messages: Any, _info: Any) -> Any:
        got[:] = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        step = said[sum(isinstance(message, ModelResponse) for message in messages)]
        said_now = [TextPart(step)] if isinstance(step, str) else [ToolCallPart(*call) for call in step]
        return ModelResponse(parts=said_now)

    agent = Agent(FunctionModel(model), tools=tools, **more)
    with agent.parallel_tool_call_execution_mode("sequential"):
        asyncio.run(agent.run("Do it."))
    return [part.content for part in got]


@each
def test_a_wrapped_function_has_the_schema_of_the_function(name: str) -> None:
    bare, behind = Tool(FUNCTIONS[name]), Tool(own_boundary().wrap(FUNCTIONS)[name])
    assert behind.tool_def == bare.tool_def
    assert "key" in behind.tool_def.parameters_json_schema["properties"]


@each
def test_an_exception_ends_the_agent(name: str) -> None:
    tools = own_boundary("tool_failure", FAILED).wrap(FUNCTIONS)
    with pytest.raises(Exception, match=re.escape(ERRORS[0])):
        outputs([tools[name]], [CALLS[name]], "done")


@each
def test_with_a_hook_that_translates_it_the_model_gets_the_error(name: str) -> None:
    async def to_the_model(_context: Any, *, error: Exception, **_named: Any) -> None:
        raise ToolFailed(str(error))

    tools = own_boundary("tool_failure", FAILED).wrap(FUNCTIONS)
    hooks = [Hooks(tool_execute_error=to_the_model)]
    assert outputs([tools[name]], [CALLS[name]], "done", capabilities=hooks) == [ERRORS[0]]


@each
def test_the_call_limit_ends_the_agent(name: str) -> None:
    boundary = own_boundary(max_calls=1)
    with pytest.raises(RunOver):
        outputs([boundary.wrap(FUNCTIONS)[name]], [CALLS[name]], [CALLS[name]], "done")
    assert boundary.over == "call_limit"


def test_calls_of_one_message_are_counted_in_its_order() -> None:
    boundary = own_boundary()
    names = ["wait", "look", "look", "wait", "look"]
    outputs([*boundary.wrap(FUNCTIONS).values()], [CALLS[name] for name in names], "done")
    log = msgspec.json.decode(boundary.finish(success=True))
    assert [event["tool"] for event in log["events"] if event["event"] == "call"] == names
