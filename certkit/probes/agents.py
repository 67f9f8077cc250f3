"""Agents, and asking them: a Python function, a program, an HTTP endpoint, or a reference agent.

    asking = Asking("command:./my-agent")
    for answer in ask_all(list(asked(tasks)), agents_of(asking), asking):
        ...                              # every answer as soon as it is there; nothing is kept here

Every question is asked with the whole prompt of its task, and nothing of an earlier reply. First come all
attempts, then all probes. A call that gives no reply is made again, `retries` times at most, and then the
question counts as an error, whatever the reason: the agent raised, died, kept silent for longer than the
timeout, wrote too much, or spoke another protocol. A program that failed is ended and started again. A reply
is final. Only the endpoint that the caller names is spoken to, without following redirects.

Reference agents know the tasks and answer without a model; a run of one is simulated, never evidence.
"""

from __future__ import annotations

import os
import queue
import shlex
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from enum import StrEnum
from functools import partial
from importlib import import_module
from itertools import count
from threading import Thread, local
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from certkit import canonical
from certkit.errors import InputError, UsageError
from certkit.probes import records
from certkit.probes.generate import Draw
from certkit.probes.lint import mentioned_last, mentions
from certkit.probes.matching import MAX_WORDS
from certkit.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_CONTRACT: Final = {
    records.Mode.JSON: (
        'Reply with one JSON object and nothing else: {"answer": …, "confidence": …}. The answer is a text,'
        ' an integer, a list of texts, or {"source": …, "value": …}, in the words used above and without'
        " further words; the confidence is a number from 0 to 1."
    ),
    records.Mode.TEXT: (
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
    mode: records.Mode = records.Mode.JSON
    isolation: bool = False
    timeout: float = 60
    retries: int = 2
    max_calls: int | None = None
    jobs: int = 1


def prompt(key: records.Key, task: records.Task, question: records.Question, mode: records.Mode) -> str:
    """Return the whole text that an agent gets for one question."""
    side = () if key.probe is None else (f"Do not answer that now. Answer this instead: {question.prompt}",)
    return "\n".join((told(task), *side, _CONTRACT[mode]))


def told(task: records.Task) -> str:
    """Return a task as it is told: scenario, instruction, numbered turns, and the final question."""
    turns = (f"{number}. {turn}" for number, turn in enumerate(task.turns, 1))
    return "\n".join((task.scenario, task.instruction, *turns, task.final.prompt))


class CallError(Exception):
    """A call gave no reply."""


class Call(NamedTuple):
    """One question as it is asked; agents but those of reference see nothing but the prompt."""

    prompt: str
    key: records.Key
    task: records.Task
    question: records.Question
    mode: records.Mode


class Agent:
    """One agent, by the function that replies to a call."""

    def __init__(self, reply: Callable[[Call], Any]) -> None:
        self.reply = reply

    def close(self) -> None:
        """End what the agent started."""


def agents_of(asking: Asking) -> Callable[[], Agent]:
    """Return what makes agents of a spec; raise `UsageError` where it names none."""
    kind, _, rest = asking.spec.partition(":")
    if kind == "reference" and rest in set(Reference):
        return lambda: Agent(partial(reply, Reference(rest)))
    if kind == "python" and rest.count(":") == 1:
        function = _function(*rest.split(":"))
        return lambda: Agent(lambda call: function(call.prompt))
    if kind == "command" and (words := _words(rest)):
        return lambda: _Program(words)
    # The address is kept in the bundle, and must hold no secret.
    is_address = rest.startswith(("http://", "https://")) and {"@", "?", "#"}.isdisjoint(rest)
    if kind == "http" and is_address and asking.model:
        return lambda: Agent(partial(_post, rest, asking))
    raise UsageError(
        "usage.option",
        "--agent: this names no agent",
        hint="python:MODULE:FUNCTION, command:LINE of a program that exists, http:URL with --model, its key"
        f" in CERTKIT_AGENT_KEY and not in the URL, or reference: and one of {', '.join(Reference)}",
    )


def _words(line: str) -> list[str]:
    with suppress(ValueError):
        words = shlex.split(line)
        if words and shutil.which(words[0]):
            return words
    return []


def _function(module: str, name: str) -> Callable[[str], Any]:
    try:
        function = getattr(import_module(module), name)
    except Exception as error:  # what a module of the user's raises when it is loaded
        reason = _shown(error)
        raise UsageError("usage.option", f"--agent: {module}:{name} cannot be loaded: {reason}") from error
    if not callable(function):
        raise UsageError("usage.option", f"--agent: {module}:{name} is no function")
    return function  # type: ignore[no-any-return]


def _shown(error: BaseException) -> str:
    """Return an error of the user's code in words, its name alone where it cannot be printed."""
    name = type(error).__name__
    with suppress(BaseException):
        return f"{name}: {error}"
    return name


class _Program(Agent):
    """JSON lines: ``{"id": 1, "prompt": …}`` in, ``{"id": 1, "text": …}`` out."""

    def __init__(self, words: list[str]) -> None:
        super().__init__(self._ask)
        self._words = words
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)

    def _ask(self, call: Call) -> str:
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603 - the program that the user named, without a shell
                self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        process, number = self._process, next(self._numbers)
        assert process.stdin and process.stdout  # noqa: S101, PT018 - both are pipes
        process.stdin.write(canonical.line({"id": number, "prompt": call.prompt}))
        process.stdin.flush()
        line = process.stdout.readline(MAX_OUTPUT + 1)
        if not line.endswith(b"\n"):
            raise CallError("wrote too much in one line" if len(line) > MAX_OUTPUT else "the program ended")
        said = _object(line)
        if said.get("id") != number or not isinstance(said.get("text"), str):
            raise CallError(f'wrote something else than {{"id": {number}, "text": …}}')
        return str(said["text"])

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


def _post(url: str, asking: Asking, call: Call) -> str:
    """Ask an endpoint that speaks OpenAI's chat completions."""
    messages = [{"role": "user", "content": call.prompt}]
    body = canonical.line({"model": asking.model, "temperature": 0, "messages": messages})
    headers = {"Content-Type": "application/json"}
    if asking.key:
        headers["Authorization"] = f"Bearer {asking.key}"
    request = urllib.request.Request(f"{url.rstrip('/')}/chat/completions", body, headers)  # noqa: S310
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=asking.timeout) as response:
            data: bytes = response.read(MAX_OUTPUT + 1)
    except urllib.error.HTTPError as error:
        error.close()
        raise CallError(f"HTTP {error.code}") from None
    if len(data) > MAX_OUTPUT:
        raise CallError(f"sent more than {MAX_OUTPUT:,} bytes")
    try:
        text = _object(data)["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        text = None
    if not isinstance(text, str):
        raise CallError("the reply holds no choices[0].message.content")
    return text


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = canonical.loads(data)
    except InputError as error:
        raise CallError(f"sent no strict JSON: {error.message}") from None
    if not isinstance(value, dict):
        raise CallError("sent no JSON object")
    return value


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


def reply(agent: Reference, call: Call) -> str:
    """Return what a reference agent says to one question."""
    chosen: records.Value = call.question.gold
    if agent is Reference.DISTRACTOR and call.task.variant is records.Variant.DISTRACTOR:
        chosen = call.question.lure
    elif agent is Reference.RECENCY:
        chosen = mentioned_last(call.question, mentions(call.task))
    elif agent is Reference.NO_MEMORY:
        chosen = "unknown"
    elif agent is Reference.RANDOM:
        draw = Draw("reference:random", call.task.id)
        chosen = call.question.options[draw.below(call.key.probe or "attempt", len(call.question.options))]
    if agent is Reference.PROSE:
        return f"I have thought about it. Answer: {records.surface(chosen)}."
    if call.mode is records.Mode.TEXT:
        return records.surface(chosen)
    return canonical.line({"answer": msgspec.to_builtins(chosen)}).decode().rstrip("\n")


def ask_all(
    questions: Sequence[tuple[records.Key, records.Task, records.Question]],
    agents: Callable[[], Agent],
    asking: Asking,
) -> Iterator[records.Answer]:
    """Yield answers as they come, those to attempts first; fewer than questions if calls run out."""
    waiting = [Call(prompt(*question, asking.mode), *question, asking.mode) for question in questions]
    made = count()  # calls, over all threads
    all_agents: list[Agent] = []
    here = local()  # the agent of each thread

    def start() -> None:
        here.agent = agents()
        all_agents.append(here.agent)

    pool = ThreadPoolExecutor(asking.jobs, initializer=start)
    try:
        for attempts in (True, False):
            calls = [call for call in waiting if (call.key.probe is None) is attempts]
            asked = [pool.submit(lambda call: _ask(here.agent, call, asking, made), call) for call in calls]
            for future in as_completed(asked):
                if (answer := future.result()) is not None:
                    yield answer
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for agent in all_agents:
            agent.close()


def _ask(agent: Agent, call: Call, asking: Asking, made: Iterator[int]) -> records.Answer | None:
    """Return the answer to one question, None where the calls ran out before there was one."""
    probe = UNSET if call.key.probe is None else call.key.probe
    answer = partial(records.Answer, task_id=call.key.task, probe_id=probe)
    error = ""
    for calls in range(1, asking.retries + 2):
        if asking.max_calls is not None and next(made) >= asking.max_calls:
            return None
        result = _called(agent, call, asking.timeout)
        if asking.isolation or not isinstance(result, str):
            agent.close()
        if isinstance(result, str):
            # What is no text in UTF-8 could not be kept, so that it is replaced where it stands.
            text = result.encode("utf-8", errors="replace").decode()
            cut = len(text) > records.MAX_REPLY or UNSET
            return answer(status="answered", calls=calls, text=text[: records.MAX_REPLY], cut=cut)
        error = visible(str(result))[:_MAX_ERROR]
    return answer(status="error", calls=asking.retries + 1, error=error)


def _called(agent: Agent, call: Call, timeout: float) -> str | CallError:
    """Return what an agent replies within so many seconds, or why there is no reply."""
    done: queue.SimpleQueue[object] = queue.SimpleQueue()

    def work() -> None:
        try:
            done.put(agent.reply(call))
        except CallError as error:
            done.put(error)
        except BaseException as error:  # noqa: BLE001 - also SystemExit, which would end this thread unseen
            done.put(CallError(_shown(error)))

    Thread(target=work, daemon=True).start()
    try:
        result = done.get(timeout=timeout)
    except queue.Empty:
        return CallError(f"no reply within {timeout:g} s")
    if type(result) is str or isinstance(result, CallError):
        return result
    return CallError(f"returned {type(result).__name__}, not str")
