"""What the recipe for the OpenAI Agents SDK rests on: schemas of wrapped tools, and their exceptions."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from certkit.trial import RunOver
from certkit.trial.faults import ERRORS, PlannedFault
from tests.support.trials import CALLS, FUNCTIONS, own_boundary

pytest.importorskip("agents", reason="openai-agents is not installed")

from agents import Agent, Model, ModelResponse, RunConfig, Runner, ToolExecutionConfig, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

FAILED = PlannedFault(onset=1)
each = pytest.mark.parametrize("name", FUNCTIONS)


class Scripted(Model):  # type: ignore[misc]
    """A model that says what it was told to say."""

    def __init__(self, *said: list[tuple[str, str]] | str) -> None:
        self.said, self.got = iter(said), list[Any]()

    async def get_response(self, _system: Any = None, input: Any = (), *_more: Any, **_named: Any) -> Any:  # noqa: A002
        self.got = [item["output"] for item in input if item.get("type") == "function_call_output"]
        step = next(self.said)
        output: list[Any]
        if isinstance(step, str):
            text = ResponseOutputText(type="output_text", text=step, annotations=[])
            output = [
                ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[text]
                )
            ]
        else:
            output = [
                ResponseFunctionToolCall(
                    type="function_call", call_id=f"c{len(input) + at}", name=name, arguments=arguments
                )
                for at, (name, arguments) in enumerate(step)
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *_more: Any, **_named: Any) -> Any:
        raise NotImplementedError


def outputs(tools: list[Any], *said: list[tuple[str, str]] | str) -> list[Any]:
    """Run an agent, and return what its model got of its tools."""
    model = Scripted(*said)
    agent = Agent(name="a", model=model, tools=tools)
    one_by_one = ToolExecutionConfig(max_function_tool_concurrency=1)
    config = RunConfig(tool_execution=one_by_one, tracing_disabled=True)
    asyncio.run(Runner.run(agent, "Do it.", run_config=config))
    return model.got


def error_text(_context: Any, error: Exception) -> str:
    return str(error)


@each
def test_a_wrapped_function_has_the_schema_of_the_function(name: str) -> None:
    bare, behind = function_tool(FUNCTIONS[name]), function_tool(own_boundary().wrap(FUNCTIONS)[name])
    assert (behind.name, behind.description) == (name, bare.description)
    assert behind.params_json_schema == bare.params_json_schema
    assert "key" in behind.params_json_schema["properties"]


@each
def test_an_exception_is_hidden_from_the_model(name: str) -> None:
    tools = own_boundary("tool_failure", FAILED).wrap(FUNCTIONS)
    (output,) = outputs([function_tool(tools[name])], [CALLS[name]], "done")
    assert output
    assert ERRORS[0] not in output


@each
def test_with_a_function_of_its_own_the_model_gets_the_error(name: str) -> None:
    tools = own_boundary("tool_failure", FAILED).wrap(FUNCTIONS)
    tool = function_tool(tools[name], failure_error_function=error_text)
    assert outputs([tool], [CALLS[name]], "done") == [ERRORS[0]]


@each
def test_the_call_limit_ends_the_agent(name: str) -> None:
    boundary = own_boundary(max_calls=1)
    tool = function_tool(boundary.wrap(FUNCTIONS)[name], failure_error_function=error_text)
    with pytest.raises(RunOver):
        outputs([tool], [CALLS[name]], [CALLS[name]], "done")
    assert boundary.over == "call_limit"


def test_calls_of_one_message_are_counted_in_its_order() -> None:
    boundary = own_boundary()
    names = ["wait", "look", "look", "wait", "look"]
    outputs(
        [function_tool(tool) for tool in boundary.wrap(FUNCTIONS).values()],
        [CALLS[name] for name in names],
        "done",
    )
    log = msgspec.json.decode(boundary.finish(success=True))
    assert [event["tool"] for event in log["events"] if event["event"] == "call"] == names
