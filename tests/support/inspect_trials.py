"""Makes Inspect AI run trials, for the tests of its adapter; run as a program, in a process of its own.

    python tests/support/inspect_trials.py FOLDER

writes a plan, ``plan.json``, and a folder of logs for each way in which a solver may call tools:

- ``react``: `react(tools=…)`, several samples at once;
- ``generate``: `use_tools` and `generate`, with calls that the model makes two at a time;
- ``bridge``: an agent that runs its own tools behind `agent_bridge` (if openai is installed);
- ``bypassed``: `react` with approval of its own;
- ``memory``, ``halts``: an agent that searches its memory, or hands over to people, after a failure;
- ``calls``, ``limit``: an agent that never ends, and is stopped by the plan or by Inspect;
- ``plain``: the task without faults;
- ``page``: what ``docs/how-to/trial.md`` shows;
- ``refused.json``: what is said of tasks that do not fit the plan;
- ``killed``: `eval_set` in a process that is killed, and then again.

No model is called: the answers are a script over the messages.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from functools import partial
from importlib.util import find_spec
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import inspect_ai
import msgspec
from inspect_ai.agent import Agent, AgentState, agent, agent_bridge, react
from inspect_ai.approval import ApprovalPolicy, auto_approver
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Target, accuracy, scorer
from inspect_ai.solver import TaskState, generate, solver, use_tools
from inspect_ai.tool import Tool, ToolCall, ToolError, tool

from certkit.ground.errors import CertkitError
from certkit.trial import make_plan, read_trial
from certkit.trial.inspect import fault_filter, hand_over, search, traceability, under_faults
from tests import console
from tests.support.trials import own_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWER = "42"
ALL = (
    *("tool_failure", "context_corruption", "stochastic", "combined", "adversarial", "cascade"),
    "x_lost_response",
)


def spelled(value: Any) -> str:
    return msgspec.json.encode(value).decode()


@tool(parallel=True)
def lookup() -> Tool:
    """Give a record of a key."""

    async def execute(key: str) -> str:
        """Look a record up.

        Args:
            key: of the record
        """
        if key == "none":
            raise ToolError("no such key")
        return spelled({"key": key, "total": 41, "note": "as of today"})

    return execute


@tool
def count() -> Tool:
    """Give a number."""

    async def execute(key: str) -> int:
        """Count the records of a key.

        Args:
            key: of the records
        """
        return len(key)

    return execute


@tool
def recall() -> Tool:
    """Search the agent's memory."""

    async def execute(question: str) -> str:
        """Ask your notes.

        Args:
            question: what you want to know
        """
        search(similarity=0.91, item={"key": "k9"})
        return f"{question}: use k9"

    return execute


def said(messages: list[ChatMessage]) -> str:
    return "".join(message.text for message in messages if message.role == "tool")


def calls(*named: tuple[str, dict[str, Any]], number: int) -> ModelOutput:
    """Return an output that calls tools, with ids that are the same in every run."""
    output = ModelOutput.from_content("mockllm/model", "")
    output.choices[0].stop_reason = "tool_calls"
    output.choices[0].message.tool_calls = [
        ToolCall(id=f"call-{number + place}", function=name, arguments=arguments)
        for place, (name, arguments) in enumerate(named)
    ]
    return output


def answering(messages: list[ChatMessage], tools: list[Any], *_: Any) -> ModelOutput:
    """Answer as a model that makes four calls, repeats one that failed, and then answers."""
    asked = "".join(message.text for message in messages if message.role == "user")
    done = [message for message in messages if message.role == "tool"]
    failed = bool(done) and (done[-1].error is not None or "timed out" in done[-1].text)
    names, number = {item.name for item in tools}, len(done)
    good = sum(not (it.error or "timed out" in it.text) for it in done)
    if "hand_over" in names and failed and "give up" in asked:
        output = calls(("hand_over", {"reason": "it fails"}), number=number)
    elif "recall" in names and failed and not any(it.function == "recall" for it in done):
        output = calls(("recall", {"question": "what now"}), number=number)
    elif "recall" in names and any(it.function == "recall" for it in done[-1:]):
        output = calls(("lookup", {"key": "k9"}), number=number)
    elif good < 4 and "order 17" in asked:
        output = calls(("lookup", {"order": 17}), number=number)
    elif good < 4 or "for ever" in asked:
        named = ("lookup", {"key": f"k{good}"}), ("count", {"key": f"k{good}"})
        output = calls(*named, number=number) if "two at a time" in asked else calls(named[0], number=number)
    elif "submit" in names:
        output = calls(("submit", {"answer": ANSWER}), number=number)
    else:
        output = ModelOutput.from_content("mockllm/model", ANSWER)
    output.usage = ModelUsage(input_tokens=1)  # counting them would fetch a table
    return output


@scorer(metrics=[accuracy()])
def answered() -> Any:
    """Score the answer, and say what the end state says."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - Inspect's signature
        metadata = {"certkit": {"violations": 0, "attack_succeeded": False}}
        return Score(value="C" if ANSWER in state.output.completion else "I", metadata=metadata)

    return score


@agent
def bridged(plan: str) -> Agent:
    """Run the tools in the agent's own loop: Inspect sees the model's calls alone."""

    from openai import AsyncOpenAI  # noqa: PLC0415 - may be absent

    client = AsyncOpenAI(base_url="http://localhost", api_key="none")

    async def execute(state: AgentState) -> AgentState:
        async with agent_bridge(state, filter=fault_filter(plan)) as bridge:
            messages: list[Any] = [{"role": "user", "content": state.messages[-1].text}]
            described = {"name": "lookup", "description": "Look a record up.", "parameters": {}}
            described["parameters"] = {"type": "object", "properties": {"key": {"type": "string"}}}
            while True:
                answer = await client.chat.completions.create(
                    model="inspect", messages=messages, tools=[{"type": "function", "function": described}]
                )
                message = answer.choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                if not message.tool_calls:
                    return bridge.state
                for call in message.tool_calls:
                    record = {"key": msgspec.json.decode(call.function.arguments)["key"], "total": 41}
                    content = spelled(record)
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

    return execute


@solver
def dying() -> Any:
    """Kill the process in the run that the environment names."""

    async def solve(state: TaskState, generate: Any) -> TaskState:  # noqa: ARG001 - Inspect's signature
        if state.sample_id == os.environ.get("DIES_IN"):
            os.kill(os.getpid(), signal.SIGKILL)
        return state

    return solve


def rating(messages: list[ChatMessage], *_: Any) -> ModelOutput:
    """Answer as a rater: with the number of answers in the trace, which is no rating above 5."""
    output = ModelOutput.from_content("mockllm/model", str(messages[0].text.count("answer: ")))
    output.usage = ModelUsage(input_tokens=1)
    if "Find it" in messages[0].text:
        raise ValueError("the rater sees the task")
    return output


def task(name: str, solvers: Any, prompt: str = "Find it.", **more: Any) -> inspect_ai.Task:
    """Return the task of the tests."""
    data = [Sample(id=f"t{number}", input=prompt, target=ANSWER) for number in range(2)]
    scorers = [answered()]
    if name == "memory":
        scorers.append(traceability(get_model("mockllm/model", custom_outputs=rating)))
    return inspect_ai.Task(name=name, dataset=data, solver=solvers, scorer=scorers, **more)


def model() -> Any:
    return get_model("mockllm/model", custom_outputs=answering)


def main(folder: str) -> None:
    """Write the logs."""
    sys.modules["anthropic"] = None  # type: ignore[assignment]  # Inspect would load it for every run to come
    path = f"{folder}/plan.json"
    plan = own_plan(conditions=list(ALL), max_calls=8)
    Path(path).write_bytes(plan.to_json())
    tools = [lookup(), count()]
    made = {
        "react": task("react", react(tools=tools)),
        "generate": task("generate", [use_tools(tools), generate()], "Find it, two at a time."),
        **({"bridge": task("bridge", bridged(path))} if find_spec("openai") else {}),
        "bypassed": task("bypassed", react(tools=tools, approval=[ApprovalPolicy(auto_approver(), "*")])),
        "memory": task("memory", react(tools=[*tools, recall()])),
        "halts": task("halts", react(tools=[*tools, hand_over()]), "Find it, or give up."),
        "calls": task("calls", react(tools=tools), "Search for ever."),
        "limit": task("limit", react(tools=tools), "Search for ever.", message_limit=12),
    }
    tasks = [
        under_faults(item, path, protocol={"memory_observable": name == "memory"})
        for name, item in made.items()
    ]
    evaluate = partial(inspect_ai.eval, model=model(), display="none", log_realtime=False)
    for (name, _), item in zip(made.items(), tasks, strict=True):
        form = "json" if name == "halts" else "eval"
        evaluate(item, log_dir=f"{folder}/{name}", log_format=form, max_samples=4)
    evaluate(task("plain", react(tools=tools)), log_dir=f"{folder}/plain")
    evaluate(shown(folder), log_dir=f"{folder}/page")
    Path(f"{folder}/refused.json").write_bytes(msgspec.json.encode([*refused(path)]))
    if child := os.fork():
        os.waitpid(child, 0)
    else:
        os.environ["DIES_IN"] = plan.runs[5].id
        killed(folder, path)
    killed(folder, path)


def shown(folder: str) -> inspect_ai.Task:
    """Return the task that the page shows, with the plan of the page's own trial."""
    page = (console.ROOT / "docs" / "how-to" / "trial.md").read_text(encoding="utf-8")
    block = {block.info.split()[0]: block.text for block in console.blocks(page) if block.info}
    trial = read_trial(block["file=own_trial.toml"].encode(), where="own_trial.toml")
    path = Path(f"{folder}/page.json")
    path.write_bytes(make_plan(trial).to_json())
    names: dict[str, Any] = {"__name__": "support"}
    exec(compile(block["file=support.py"], "support.py", "exec"), names)  # noqa: S102 - our page
    task: inspect_ai.Task = names["support"](plan=str(path))
    return task


def refused(path: str) -> Iterator[str]:
    """Yield what is said of tasks that do not fit the plan, and of samples that are left over."""
    solvers = react(tools=[lookup()])
    for item in (
        inspect_ai.Task(dataset=[Sample(id="t0", input="Find it.")], solver=solvers),
        task("epochs", solvers, epochs=3),
    ):
        try:
            under_faults(item, path)
        except CertkitError as error:
            yield f"{error.code}: {error.message}"
    samples = [Sample(id=f"t{number}", input="Find it.") for number in range(3)]
    said = logging.getLogger("certkit.trial.inspect")
    said.addHandler(handler := BufferingHandler(10))
    under_faults(inspect_ai.Task(dataset=samples, solver=solvers), path)
    yield from (record.getMessage() for record in handler.buffer)


def killed(folder: str, path: str) -> None:
    """Run the trial as a set of evaluations, which goes on where it was killed."""
    approval = [ApprovalPolicy(auto_approver(), "*")]  # the plan's comes first, and leaves it the rest
    item = under_faults(task("killed", [dying(), react(tools=[lookup()])], approval=approval), path)
    inspect_ai.eval_set(
        [item],
        model=model(),
        log_dir=f"{folder}/killed",
        max_samples=1,
        log_buffer=1,
        display="none",
        retry_attempts=1,
        retry_wait=0.1,
    )


if __name__ == "__main__":
    main(sys.argv[1])
