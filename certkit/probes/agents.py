"""Agents, and asking them: a Python function, a program, an HTTP endpoint, or a reference agent.

    asking = Asking("command:./my-agent")
    for answer in ask_all(list(asked(tasks)), agents_of(asking), asking):
        ...                              # every answer as soon as it is there; nothing is kept here

A call that gives no reply is made again, `retries` times at most, and then the question counts as an error,
which is told as the exception that the call ended with. A reply is final. Only the endpoint that the caller
names is spoken to, without following redirects.

Reference agents know the tasks and answer without a model; a run of one is simulated, never evidence.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import urllib.request
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import suppress
from enum import StrEnum
from functools import partial
from importlib import import_module
from itertools import count
from threading import Thread, local
from traceback import format_exception_only
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from certkit import canonical
from certkit.errors import UsageError
from certkit.probes import records
from certkit.probes.generate import Draw
from certkit.probes.lint import mentioned_last, mentions
from certkit.probes.matching import MAX_WORDS
from certkit.probes.records import Asked, Key, Mode, Question
from certkit.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_CONTRACT: Final = {
    Mode.JSON: (
        'Reply with one JSON object and nothing else: {"answer": …, "confidence": …}. The answer is a text,'
        ' an integer, a list of texts, or {"source": …, "value": …}, in the words used above and without'
        " further words; the confidence is a number from 0 to 1."
    ),
    Mode.TEXT: (
        f"Reply with the answer alone, in one line of at most {MAX_WORDS} words, in the words used above and"
        " without further words."
    ),
}
MAX_OUTPUT: Final = 1_000_000
"""Bytes that an agent may send for one reply."""
_MAX_ERROR: Final = 300  # characters that are kept


class Asking(NamedTuple):
    """Who is asked, and how; without a name the agent has that of its spec.

    `model` and `key` are for an HTTP endpoint; `isolation` starts a program anew for every call. `timeout` is
    in seconds for a call, `retries` are the further calls for a question without a reply, and `max_calls`
    those for all questions.
    """

    spec: str
    name: str | None = None
    agent_version: str = "unversioned"
    model: str | None = None
    key: str | None = None
    mode: Mode = Mode.JSON
    isolation: bool = False
    timeout: float = 60
    retries: int = 2
    max_calls: int | None = None
    jobs: int = 1


def prompt(key: Key, task: records.Task, question: Question, mode: Mode) -> str:
    """Return the whole text that an agent gets for one question."""
    side = () if key.probe is None else (f"Do not answer that now. Answer this instead: {question.prompt}",)
    return "\n".join((told(task), *side, _CONTRACT[mode]))


def told(task: records.Task) -> str:
    """Return a task as it is told: scenario, instruction, numbered turns, and the final question."""
    turns = (f"{number}. {turn}" for number, turn in enumerate(task.turns, 1))
    return "\n".join((task.scenario, task.instruction, *turns, task.final.prompt))


class Agent:
    """One agent, by the function that replies to a prompt, or raises any exception."""

    def __init__(self, reply: Callable[[str], Any]) -> None:
        self._reply = reply

    def started(self) -> Callable[[str], Any]:
        """Return the function that replies, once what it needs has been started."""
        return self._reply

    def close(self) -> None:
        """End what the agent started."""


def agents_of(asking: Asking, tasks: Sequence[records.Task] = ()) -> Callable[[], Agent]:
    """Return what makes agents of a spec; raise `UsageError` where it names none.

    Agents of reference know the `tasks`; any other sees prompts alone.
    """
    kind, _, rest = asking.spec.partition(":")
    try:
        if kind == "reference":
            known = {prompt(*question, asking.mode): question for question in records.asked(tasks)}
            agent = Reference(rest)
            return lambda: Agent(lambda text: reply(agent, *known[text], asking.mode))
        if kind == "python":
            module, name = rest.split(":")
            if callable(function := getattr(import_module(module), name)):
                return lambda: Agent(function)
        # The address is kept in the bundle, and must hold no secret.
        is_address = rest.startswith(("http://", "https://")) and {"@", "?", "#"}.isdisjoint(rest)
        if kind == "http" and is_address and asking.model:
            return lambda: Agent(partial(_post, rest, asking))
        if kind == "command" and shutil.which((words := shlex.split(rest))[0]):
            return lambda: _Program(words)
        reason = ""
    except Exception as error:  # noqa: BLE001 - also what a module of the user's raises when it is loaded
        reason = f" ({format_exception_only(error)[-1].strip()})"
    raise UsageError(
        "usage.option",
        f"--agent: this names no agent{reason}",
        hint="python:MODULE:FUNCTION, command:LINE of a program that exists, http:URL with --model, its key"
        f" in CERTKIT_AGENT_KEY and not in the URL, or reference: and one of {', '.join(Reference)}",
    )


class _Program(Agent):
    """JSON lines: ``{"id": 1, "prompt": …}`` in, ``{"id": 1, "text": …}`` out."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)

    def started(self) -> Callable[[str], Any]:
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603 - the program that the user named, without a shell
                self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        return partial(self._ask, self._process)

    def _ask(self, process: subprocess.Popen[bytes], text: str) -> Any:
        number = next(self._numbers)
        assert process.stdin and process.stdout  # noqa: S101, PT018 - both are pipes
        process.stdin.write(canonical.line({"id": number, "prompt": text}))
        process.stdin.flush()
        if not (line := process.stdout.readline(MAX_OUTPUT + 1)):
            raise EOFError("the program ended")
        said = canonical.loads(line, max_bytes=MAX_OUTPUT)
        if said["id"] != number:
            raise ValueError(f"the reply is to call {said['id']}, not to {number}")
        return said["text"]

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # A child in a session of its own may hold the pipes, and the thread that reads them holds their lock.
        Thread(target=_close, args=(process,), daemon=True).start()


def _close(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError), process:
        pass


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow none, since the key would go with it."""


def _post(url: str, asking: Asking, text: str) -> Any:
    """Ask an endpoint that speaks OpenAI's chat completions."""
    messages = [{"role": "user", "content": text}]
    body = canonical.line({"model": asking.model, "temperature": 0, "messages": messages})
    headers = {"Content-Type": "application/json"}
    if asking.key:
        headers["Authorization"] = f"Bearer {asking.key}"
    request = urllib.request.Request(f"{url.rstrip('/')}/chat/completions", body, headers)  # noqa: S310
    with urllib.request.build_opener(_NoRedirect).open(request, timeout=asking.timeout) as response:
        sent = canonical.loads(response.read(MAX_OUTPUT + 1), max_bytes=MAX_OUTPUT)
    return sent["choices"][0]["message"]["content"]


class Reference(StrEnum):
    """How well doing one simple thing scores, on every seed alike.

    *oracle* is always right, *prose* the same without JSON, *distractor* follows whoever misleads, *recency*
    repeats the option mentioned last, *no-memory* has seen the question alone, *random* draws an option.
    """

    ORACLE = "oracle"
    PROSE = "prose"
    DISTRACTOR = "distractor"
    RECENCY = "recency"
    NO_MEMORY = "no-memory"
    RANDOM = "random"


def reply(agent: Reference, key: Key, task: records.Task, question: Question, mode: Mode) -> str:
    """Return what a reference agent says to one question."""
    chosen: records.Value = question.gold
    if agent is Reference.DISTRACTOR and task.variant is records.Variant.DISTRACTOR:
        chosen = question.lure
    elif agent is Reference.RECENCY:
        chosen = mentioned_last(question, mentions(task))
    elif agent is Reference.NO_MEMORY:
        chosen = "unknown"
    elif agent is Reference.RANDOM:
        draw = Draw("reference:random", task.id)
        chosen = question.options[draw.below(key.probe or "attempt", len(question.options))]
    if agent is Reference.PROSE:
        return f"I have thought about it. Answer: {records.surface(chosen)}."
    if mode is Mode.TEXT:
        return records.surface(chosen)
    return canonical.line({"answer": msgspec.to_builtins(chosen)}).decode().rstrip("\n")


def ask_all(
    questions: Sequence[Asked],
    agents: Callable[[], Agent],
    asking: Asking,
) -> Iterator[records.Answer]:
    """Yield answers as they come, those to attempts first; fewer than questions if calls run out."""
    made = count()  # calls, over all threads
    all_agents: list[Agent] = []
    here = local()  # the agent of each thread

    def start() -> None:
        here.agent = agents()
        all_agents.append(here.agent)

    def ask(question: Asked) -> records.Answer | None:
        return _ask(here.agent, question[0], prompt(*question, asking.mode), asking, made)

    pool = ThreadPoolExecutor(asking.jobs, initializer=start)
    try:
        for attempts in (True, False):
            now = [question for question in questions if (question[0].probe is None) is attempts]
            for future in as_completed([pool.submit(ask, question) for question in now]):
                if (answer := future.result()) is not None:
                    yield answer
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for agent in all_agents:
            agent.close()


def _ask(agent: Agent, key: Key, text: str, asking: Asking, made: Iterator[int]) -> records.Answer | None:
    """Return the answer to one question, None where the calls ran out before there was one."""
    probe = UNSET if key.probe is None else key.probe
    answer = partial(records.Answer, task_id=key.task, probe_id=probe)
    error = ""
    for calls in range(1, asking.retries + 2):
        if asking.max_calls is not None and next(made) >= asking.max_calls:
            return None
        try:
            said = _replied(agent, text, asking.timeout)
        except BaseException as failure:  # noqa: BLE001 - whatever an agent raises, SystemExit too
            error = visible(format_exception_only(failure)[-1].strip())[:_MAX_ERROR]
            agent.close()
            continue
        if asking.isolation:
            agent.close()
        cut = len(said) > records.MAX_REPLY or UNSET
        return answer(status="answered", calls=calls, text=said[: records.MAX_REPLY], cut=cut)
    return answer(status="error", calls=asking.retries + 1, error=error)


def _replied(agent: Agent, text: str, timeout: float) -> str:
    """Return what an agent replies within so many seconds; raise what it raises, or why there is no reply."""
    reply, done = agent.started(), Future[Any]()

    def work() -> None:
        try:
            done.set_result(reply(text))
        except BaseException as error:  # noqa: BLE001 - also SystemExit, which would end this thread unseen
            done.set_exception(error)

    Thread(target=work, daemon=True).start()
    if not wait([done], timeout).done:
        raise TimeoutError(f"no reply within {timeout:g} s")
    if type(result := done.result()) is not str:
        raise TypeError(f"returned {type(result).__name__}, not str")
    # What is no text in UTF-8 could not be kept, so that it is replaced where it stands.
    return result.encode("utf-8", errors="replace").decode()
