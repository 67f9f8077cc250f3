"""Makes Inspect AI write logs, for the tests of their import; run as a program, in a process of its own.

    python tests/support/inspect_logs.py FOLDER

writes FOLDER/eval/*.eval, FOLDER/json/*.json and FOLDER/two/*.eval, the last with two scorers. The tasks
call no model: their solver answers, and raises for one sample.
"""

from __future__ import annotations

import sys
from typing import Any

import inspect_ai
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, Target, accuracy, match, scorer
from inspect_ai.solver import Generate, TaskState, solver


@solver
def answering() -> Any:
    """Answer 2, and fail on the sample called ``bad``."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001 - Inspect's signature
        if state.sample_id == "bad":
            raise ValueError("the tool broke")
        state.output = ModelOutput.from_content("mockllm/model", "2")
        return state

    return solve


@scorer(metrics=[accuracy()])
def closeness() -> Any:
    """Score everything with NaN beside a number."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - Inspect's signature
        return Score(value=0.75, metadata={"spread": float("nan")})

    return score


def main(folder: str) -> None:
    """Write the logs."""
    data = [
        Sample(id="one/plus", input="1+1", target="2", metadata={"attack": "none"}),
        Sample(id="two", input="2+2", target="4", metadata={"attack": "inject"}),
        Sample(id="bad", input="x", target="2", metadata={"attack": "none"}),
    ]
    for name, format_, scorers in (
        ("eval", "eval", [match(location="any")]),
        ("json", "json", [match(location="any")]),
        ("two", "eval", [match(location="any"), closeness()]),
    ):
        task = inspect_ai.Task(
            name="sums", dataset=data, solver=answering(), scorer=scorers, epochs=2, fail_on_error=False
        )
        inspect_ai.eval(
            task, model="mockllm/model", log_format=format_, log_dir=f"{folder}/{name}", display="none"
        )


if __name__ == "__main__":
    main(sys.argv[1])
