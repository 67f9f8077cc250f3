"""One planned run in a world of certkit: the agent acts, the world checks, the log says what happened.

An agent is a function ``agent(task, tools, halt) -> answer``, synchronous or not. These rules hold:

| the agent | the run |
|---|---|
| returns an answer | the world's checker decides |
| returns None or an empty text | failure: `no_answer` |
| returns `Halt`, or calls ``halt(reason)`` | safe halt |
| raises an exception | failure: `raised` |
| raises `RigError` | harness error: not the agent failed, but what it runs on |
| takes longer than the timeout | failure: `timeout` |
| makes more tool calls than the plan allows | failure: `call_limit` |
| calls a tool that is not there, or with wrong arguments | the call ends in an error, and the run goes on |
| changes the state of the world behind the tools | failure: `world_changed` |

The end state that is checked is made again from the recorded calls, so that nothing else counts.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from certkit.trial.boundary import Boundary, Halt, RunOver, WorldRules, said
from certkit.trial.worlds import instance_of
from certkit.trial.worlds.world import Task, replayed

if TYPE_CHECKING:
    from certkit.record.outcome import Ending
    from certkit.trial.plan import PlannedRun, PlannedTask, TrialPlan

Agent = Callable[[Task, Mapping[str, Any], Callable[[str], Halt]], Any]
"""What is under evaluation."""


class RigError(Exception):
    """What the agent runs on failed, such as its model's provider; the run counts as a harness error."""


class _Acted(NamedTuple):
    """How an agent ended: `answer` is what it returned, `detail` the text of an exception."""

    ended: Ending
    answer: Any = None
    detail: str | None = None


def execute(
    plan: TrialPlan, run: PlannedRun, task: PlannedTask, agent: Agent, *, timeout: float | None = None
) -> bytes:
    """Run an agent once, and return the log of the run.

    Args:
        plan: the plan.
        run: the run of it.
        task: the run's task, of a world of certkit.
        agent: the agent.
        timeout: seconds after which the run is a failure; None calls the agent in this thread, without limit.

    Returns:
        The JSON of a `certkit.record.outcome.RunLog`.
    """
    instance = instance_of(task.id)
    state, tools = instance.start()
    boundary = Boundary(plan, run, task, WorldRules(instance))
    arguments = (instance.task, boundary.wrap(tools), boundary.halt)
    acted = _act(agent, arguments) if timeout is None else _limited(agent, arguments, timeout)
    if isinstance(acted.answer, Halt):
        boundary.halt(acted.answer.reason)
        acted = _Acted("halted")
    if boundary.over is None:
        boundary.over = acted.ended
    end = replayed(instance, boundary.performed)
    variant = 0 if run.fault is None else run.fault.variant
    ended: Ending = boundary.over
    if ended == "answered" and end != state:
        ended = boundary.over = "world_changed"
    return boundary.finish(
        ended=ended,
        answer=acted.answer,
        success=instance.success(end, acted.answer),
        violations=instance.violations(end),
        attack_succeeded=instance.attacked(end, acted.answer, variant) if plan.attacks(run) else None,
        detail=acted.detail,
    )


def _act(agent: Agent, arguments: tuple[Any, ...]) -> _Acted:
    """Call an agent, and return how it ended."""
    try:
        answer = agent(*arguments)
        if inspect.iscoroutine(answer):
            answer = asyncio.run(answer)
    except RunOver:
        return _Acted("halted")  # or the call limit: the boundary knows
    except RigError as error:
        return _Acted("harness_error", detail=said(error))
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - also SystemExit: an agent that leaves has failed
        return _Acted("raised", detail=said(error))
    return _Acted("no_answer" if answer is None or answer == "" else "answered", answer)


def _limited(agent: Agent, arguments: tuple[Any, ...], timeout: float) -> _Acted:
    """Call an agent in a thread of its own, which is left behind when the time is over."""
    done = Future[_Acted]()

    def work() -> None:
        try:
            done.set_result(_act(agent, arguments))
        except BaseException as error:  # noqa: BLE001 - what the caller's thread is to raise
            done.set_exception(error)

    Thread(target=work, daemon=True).start()
    if not wait([done], timeout).done:
        return _Acted("timeout")
    return done.result()
