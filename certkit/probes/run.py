"""The runner: asks an agent what is not answered yet, all attempts before all probes.

A call that gives no reply is made again, `retries` times at most, and then the question counts as an error;
a reply is final, whatever it says. It keeps nothing and writes nothing: whoever iterates gets every answer as
soon as it is there.
"""

from __future__ import annotations

import queue
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET

from certkit.probes.answer import MAX_REPLY, Answer, Key, Status, asked, prompt
from certkit.probes.callers import Agent, Asked, CallError
from certkit.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from certkit.probes.matching import Mode
    from certkit.probes.task import Task

_MAX_ERROR = 300
"""Characters of an error that are kept."""


class Limits(NamedTuple):
    """How much is asked: at once, of one question again, and calls in all (None: no limit)."""

    jobs: int = 1
    retries: int = 2
    max_calls: int | None = None


def ask_all(
    tasks: Sequence[Task],
    agents: Callable[[], Agent],
    *,
    mode: Mode,
    done: Collection[Key],
    limits: Limits,
) -> Iterator[Answer]:
    """Yield an answer to every question but those `done`, as they come; fewer where calls run out."""
    waiting = [
        Asked(prompt(task, key, question, mode), key, task, question, mode)
        for key, task, question in asked(tasks)
        if key not in done
    ]
    made = count()

    def allowed() -> bool:
        """Count a call, over all threads."""
        return limits.max_calls is None or next(made) < limits.max_calls

    idle: queue.SimpleQueue[Agent] = queue.SimpleQueue()
    all_agents = [agents() for _ in range(limits.jobs)]
    for agent in all_agents:
        idle.put(agent)

    def work(item: Asked) -> Answer | None:
        agent = idle.get()
        try:
            return _ask(agent, item, allowed, limits.retries)
        finally:
            idle.put(agent)

    pool = ThreadPoolExecutor(limits.jobs)
    try:
        for attempts in (True, False):
            items = [item for item in waiting if (item.key.probe is None) is attempts]
            for future in as_completed([pool.submit(work, item) for item in items]):
                if (answer := future.result()) is not None:
                    yield answer
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for agent in all_agents:
            agent.close()


def _ask(agent: Agent, item: Asked, allowed: Callable[[], bool], retries: int) -> Answer | None:
    """Return the answer to one question, None where the calls ran out before there was one."""
    probe = UNSET if item.key.probe is None else item.key.probe
    answer = partial(Answer, task_id=item.key.task, probe_id=probe)
    error = ""
    for calls in range(1, retries + 2):
        if not allowed():
            return None
        try:
            text = agent.ask(item)
        except CallError as failure:
            error = visible(str(failure))[:_MAX_ERROR]
            continue
        # What is no text in UTF-8 could not be kept, so that it is replaced where it stands.
        text = text.encode("utf-8", errors="replace").decode()
        cut = len(text) > MAX_REPLY or UNSET
        return answer(status=Status.ANSWERED, calls=calls, text=text[:MAX_REPLY], cut=cut)
    return answer(status=Status.ERROR, calls=retries + 1, error=error)
