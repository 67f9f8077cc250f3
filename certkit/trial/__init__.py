"""Trials: an agent runs tasks under planned faults, and its runs become evidence.

The plan is fixed before the first run (`plan`). `decide` says what is done to a tool call (`faults`); the
tool boundary does it and writes an event (`boundary`). `certkit.record.outcome` derives the record from the
events. `run` makes a bundle of a plan and an agent; `recorder` does so for a loop of one's own; `worlds`
holds tasks whose end can be checked; `agents` holds reference policies, which use no language model.

    with Recorder(Path("bundle"), plan, agent="triage", version="1.4.0") as recorder:
        for run in recorder.runs():
            tools = run.wrap({"lookup": lookup})
            answer = my_agent(run.task.prompt, tools)
            run.finish(success=check(answer), answer=answer)

`mcp` stands between an agent that is a program and its MCP server (`command`, `events`).

A Python agent runs in this process: it can do whatever Python can, and nothing here guards against that.
"""

from __future__ import annotations

from certkit.record.outcome import RunVerdict
from certkit.trial.boundary import Halt, RunOver
from certkit.trial.episode import RigError
from certkit.trial.plan import make_plan, read_plan, read_trial
from certkit.trial.recorder import Recorder
from certkit.trial.run import run_trial

__all__ = [
    "Halt",
    "Recorder",
    "RigError",
    "RunOver",
    "RunVerdict",
    "make_plan",
    "read_plan",
    "read_trial",
    "run_trial",
]
