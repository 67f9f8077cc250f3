"""Times Inspect AI over a task under a plan against the same task without; run by `tests.bench_trial`.

    python -m tests.support.inspect_bench

prints for both the seconds of the wall and of the processor, the least of several turns each. Every run makes
the same number of calls, one after the other. No model is called; a tool takes 20 ms, as a fast service does.
"""

from __future__ import annotations

import tempfile
import time
from typing import Any

import anyio
import inspect_ai
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.tool import Tool, tool

from certkit.trial.inspect import under_faults
from tests.support.trials import own_plan

CALLS, TURNS = 8, 3


@tool
def lookup() -> Tool:
    """Give a record of a key."""

    async def execute(key: str) -> str:
        """Look a record up.

        Args:
            key: of the record
        """
        await anyio.sleep(0.02)
        return f'{{"key": "{key}", "total": 41, "text": "{"a result of some length " * 20}"}}'

    return execute


def answering(messages: list[Any], *_: Any) -> ModelOutput:
    """Answer as a model that makes a number of calls, and then answers."""
    made = sum(message.role == "tool" for message in messages)
    named = ("lookup", {"key": f"k{made}"}) if made < CALLS else ("submit", {"answer": "42"})
    output = ModelOutput.for_tool_call("mockllm/model", *named)
    output.usage = ModelUsage(input_tokens=1)  # counting them would fetch a table
    return output


def seconds(folder: str, *, planned: bool) -> tuple[float, float]:
    """Return the seconds of the wall and of the processor that the task takes."""
    plan = own_plan(conditions=["tool_failure", "context_corruption", "adversarial"])
    names = [f"t{number}" for number in range(2)] if planned else [run.id for run in plan.runs]
    samples = [Sample(id=name, input="Find it.", target="42") for name in names]
    task = inspect_ai.Task(name="bench", dataset=samples, solver=react(tools=[lookup()]), scorer=includes())
    task = under_faults(task, plan) if planned else task
    model = get_model("mockllm/model", custom_outputs=answering)
    wall, cpu = time.perf_counter(), time.process_time()
    inspect_ai.eval(task, model=model, log_dir=folder, display="none", max_samples=1)
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        seconds(folder, planned=True)  # what is loaded late
        turns = [(seconds(folder, planned=False), seconds(folder, planned=True)) for _ in range(TURNS)]
    for which in range(2):
        print(*(min(turn[which][kind] for turn in turns) for kind in range(2)))


if __name__ == "__main__":
    main()
