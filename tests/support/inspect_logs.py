"""Makes Inspect AI write logs, for the tests of their import; run as a program, in a process of its own.

    python tests/support/inspect_logs.py FOLDER

writes a folder for each kind of log:

- ``eval``, ``deflate``, ``json``: the same evaluation as an archive (zstd), as the archives before 0.3.206
  (deflate), and as JSON: two epochs, and a sample whose solver raises;
- ``two``: with two scorers; ``tools``: with calls of a tool that fails at first, and a limit of messages;
- ``edited``: with a score that a person changed, and a sample that a person declared invalid;
- ``cut``: of a process that was killed during its third sample.

No model is called: the tasks answer themselves.
"""

from __future__ import annotations

import os
import signal
import sys
import zipfile
from typing import Any

import inspect_ai
from inspect_ai._util.zipfile import zipfile_compress_kwargs
from inspect_ai.dataset import Sample
from inspect_ai.log import (
    ProvenanceData,
    edit_score,
    invalidate_samples,
    list_eval_logs,
    read_eval_log,
    write_eval_log,
)
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, ScoreEdit, Target, accuracy, match, scorer
from inspect_ai.solver import Generate, TaskState, generate, solver, use_tools
from inspect_ai.tool import Tool, ToolError, tool


@solver
def answering() -> Any:
    """Answer 2, fail on the sample called ``bad``, and kill the process at the one called ``kill``."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001 - Inspect's signature
        if state.sample_id == "bad":
            raise ValueError("the tool broke")
        if state.sample_id == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        state.output = ModelOutput.from_content("mockllm/model", "2")
        return state

    return solve


@scorer(metrics=[accuracy()])
def closeness() -> Any:
    """Score everything with NaN beside a number."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - Inspect's signature
        return Score(value=0.75, metadata={"spread": float("nan")})

    return score


@tool
def lookup() -> Tool:
    """Fail until it is asked again."""

    async def execute(again: bool) -> str:  # noqa: FBT001 - Inspect asks by name
        """Look a number up.

        Args:
            again: whether it was asked before
        """
        if not again:
            raise ToolError("no connection")
        return "2"

    return execute


def calling(messages: list[Any], *_: Any) -> ModelOutput:
    """Answer as a model that calls the tool twice and then answers, or never ends."""
    asked = sum(message.role == "tool" for message in messages)
    output = ModelOutput.from_content("mockllm/model", "2")
    if asked < 2 or "endless" in str(messages[0].content):
        output = ModelOutput.for_tool_call("mockllm/model", "lookup", {"again": asked > 0})
    output.usage = ModelUsage(input_tokens=1)  # counting them would fetch a table
    return output


def evaluate(folder: str, name: str, task: inspect_ai.Task, form: str = "eval", **options: Any) -> None:
    """Write the log of a task; its samples run one after the other and are written at once."""
    given = {"model": "mockllm/model", "max_samples": 1, "log_buffer": 1, "log_realtime": False} | options
    inspect_ai.eval(task, log_format=form, log_dir=f"{folder}/{name}", display="none", **given)


def interrupted(folder: str) -> None:
    """Write the log of a process that is killed during its third sample."""
    if child := os.fork():
        os.waitpid(child, 0)
        return
    data = [Sample(id=name, input="1+1", target="2") for name in ("a/b", "c", "kill", "d")]
    evaluate(folder, "cut", inspect_ai.Task(name="sums", dataset=data, solver=answering(), scorer=match()))


def main(folder: str) -> None:
    """Write the logs."""
    sys.modules |= dict.fromkeys(("anthropic", "openai"))  # type: ignore[arg-type]  # Inspect would load them
    data = [
        Sample(id="one/plus", input="1+1", target="2", metadata={"attack": "none"}),
        Sample(id="two", input="2+2", target="4", metadata={"attack": "inject"}),
        Sample(id="bad", input="x", target="2", metadata={"attack": "none"}),
    ]
    for name, form, scorers in (
        ("eval", "eval", [match(location="any")]),
        ("json", "json", [match(location="any")]),
        ("two", "eval", [match(location="any"), closeness()]),
        ("edited", "eval", [match(location="any")]),
        ("deflate", "eval", [match(location="any")]),
    ):
        if name == "deflate":
            zipfile_compress_kwargs["compression"] = zipfile.ZIP_DEFLATED
        task = inspect_ai.Task(
            name="sums", dataset=data, solver=answering(), scorer=scorers, epochs=2, fail_on_error=False
        )
        evaluate(folder, name, task, form)
    asking = [Sample(id=name, input=name, target="2") for name in ("plain", "endless")]
    task = inspect_ai.Task(
        name="tools",
        dataset=asking,
        solver=[use_tools(lookup()), generate()],
        scorer=match(location="any"),
        message_limit=8,
    )
    evaluate(folder, "tools", task, model=get_model("mockllm/model", custom_outputs=calling))
    [path] = list_eval_logs(f"{folder}/edited")
    log = read_eval_log(path)
    person = ProvenanceData(author="somebody", reason="the target was wrong")
    edit_score(log, "two", "match", ScoreEdit(value="C", provenance=person), epoch=1)
    uuids = [item.uuid for item in log.samples or () if (item.id, item.epoch) == ("one/plus", 2)]
    write_eval_log(invalidate_samples(log, uuids, person), path)
    interrupted(folder)


if __name__ == "__main__":
    main(sys.argv[1])
