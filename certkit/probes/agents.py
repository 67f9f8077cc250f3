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
import urllib.error
import urllib.request
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from importlib import import_module
from itertools import count
from threading import Thread
from traceback import format_exception_only
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from certkit.ground import canonical
from certkit.ground.errors import UsageError
from certkit.ground.text import visible
from certkit.probes import records
from certkit.probes.generate import SeededDraw
from certkit.probes.lint import mentioned_last, mentions
from certkit.probes.matching import MAX_WORDS
from certkit.probes.records import Asked, Mode, ProbeQuestion, QuestionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    Reply = Callable[[str], Any]
    Agents = Callable[[], AbstractContextManager[Reply]]

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


def prompt(key: QuestionKey, task: records.ProbeTask, question: ProbeQuestion, mode: Mode) -> str:
    """Return the whole text that an agent gets for one question."""
    side = () if key.probe is None else (f"Do not answer that now. Answer this instead: {question.prompt}",)
    return "\n".join((told(task), *side, _CONTRACT[mode]))


def told(task: records.ProbeTask) -> str:
    """Return a task as it is told: scenario, instruction, numbered turns, and the final question."""
    turns = (f"{number}. {turn}" for number, turn in enumerate(task.turns, 1))
    return "\n".join((task.scenario, task.instruction, *turns, task.final.prompt))


class AgentSession:
    """What is asked one call at a time: started for its first call, and for the first after it was ended."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents
        self._started = ExitStack()
        self._reply: Reply | None = None

    def ask(self, text: str, timeout: float) -> str:
        """Return the reply within so many seconds; raise what the agent raises, or why there is none."""
        if self._reply is None:
            self._reply = self._started.enter_context(self._agents())
        reply, done = self._reply, Future[Any]()

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
        if len(data := result.encode("utf-8", errors="replace")) > MAX_OUTPUT:
            raise ValueError(f"a reply of {len(data):,} bytes, more than {MAX_OUTPUT:,}")
        return data.decode()

    def close(self) -> None:
        """End what the agent started."""
        self._reply = None
        self._started.close()


def agents_of(asking: Asking, tasks: Sequence[records.ProbeTask] = ()) -> Agents:
    """Return what starts agents of a spec; raise `UsageError` where it names none.

    Agents of reference know the `tasks`; any other sees prompts alone.
    """
    kind, _, rest = asking.spec.partition(":")
    try:
        if kind == "reference" and rest in REFERENCES:
            known = {prompt(*question, asking.mode): question for question in records.asked(tasks)}
            return lambda: nullcontext(lambda text: reply(rest, *known[text], asking.mode))
        if kind == "python":
            module, _, name = rest.partition(":")
            if callable(function := getattr(import_module(module), name)):
                return lambda: nullcontext(function)
        # The address is kept in the bundle, and must hold no secret.
        is_address = rest.startswith(("http://", "https://")) and {"@", "?", "#"}.isdisjoint(rest)
        if kind == "http" and is_address and asking.model:
            return lambda: nullcontext(partial(_post, rest, asking))
        if kind == "command" and (words := shlex.split(rest)) and shutil.which(words[0]):
            return lambda: _program(words)
        reason = ""
    except Exception as error:  # noqa: BLE001 - also what a module of the user's raises when it is loaded
        reason = f" ({format_exception_only(error)[-1].strip()})"
    raise UsageError(
        "usage.option",
        f"--agent: this names no agent{reason}",
        hint="python:MODULE:FUNCTION, command:LINE of a program that exists, http:URL with --model, its key"
        f" in CERTKIT_AGENT_KEY and not in the URL, or reference: and one of {', '.join(REFERENCES)}",
    )


@contextmanager
def _program(words: list[str]) -> Iterator[Reply]:
    """JSON lines: ``{"id": 1, "prompt": …}`` in, ``{"id": 1, "text": …}`` out."""
    process = subprocess.Popen(  # noqa: S603 - the program that the user named, without a shell
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    numbers = count(1)

    def ask(text: str) -> Any:
        number = next(numbers)
        assert process.stdin and process.stdout  # noqa: S101, PT018 - both are pipes
        process.stdin.write(canonical.line({"id": number, "prompt": text}))
        process.stdin.flush()
        if not (line := process.stdout.readline(MAX_OUTPUT + 1)):
            raise EOFError("the program ended")
        said = canonical.loads(line, max_bytes=MAX_OUTPUT)
        if said["id"] != number:
            raise ValueError(f"the reply is to call {said['id']}, not to {number}")
        return said["text"]

    try:
        yield ask
    finally:
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
    key = {"Authorization": f"Bearer {asking.key}"} if asking.key else {}
    headers = {"Content-Type": "application/json", **key}
    request = urllib.request.Request(f"{url.rstrip('/')}/chat/completions", body, headers)  # noqa: S310
    try:
        opened = urllib.request.build_opener(_NoRedirect).open(request, timeout=asking.timeout)
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise
    with opened as response:
        sent = canonical.loads(response.read(MAX_OUTPUT + 1), max_bytes=MAX_OUTPUT)
    return sent["choices"][0]["message"]["content"]


REFERENCES: Final[dict[str, Callable[[QuestionKey, records.ProbeTask, ProbeQuestion], records.Value]]] = {
    "oracle": lambda _key, _task, question: question.gold,
    "prose": lambda _key, _task, question: question.gold,
    "distractor": lambda _, task, question: question.lure if task.variant == "distractor" else question.gold,
    "recency": lambda _, task, question: mentioned_last(question, mentions(task)),
    "no-memory": lambda *_: "unknown",
    "random": lambda key, task, question: question.options[
        SeededDraw("reference:random", task.id).below(key.probe or "attempt", len(question.options))
    ],
}
"""What each reference agent answers; how well that scores is alike on every seed."""


def reply(agent: str, key: QuestionKey, task: records.ProbeTask, question: ProbeQuestion, mode: Mode) -> str:
    """Return what a reference agent says to one question; *prose* breaks the contract."""
    chosen = REFERENCES[agent](key, task, question)
    if agent == "prose":
        return f"I have thought about it. Answer: {records.surface(chosen)}."
    if mode is Mode.TEXT:
        return records.surface(chosen)
    return canonical.line({"answer": msgspec.to_builtins(chosen)}).decode().rstrip("\n")


def ask_all(questions: Sequence[Asked], agents: Agents, asking: Asking) -> Iterator[records.ProbeAnswer]:
    """Yield answers as they come, those to attempts first; fewer than questions if calls run out."""
    made = count()  # calls, over all threads
    with ExitStack() as ending:
        idle = [AgentSession(agents) for _ in range(asking.jobs)]  # as many as threads
        for agent in idle:
            ending.callback(agent.close)
        pool = ThreadPoolExecutor(asking.jobs)
        ending.callback(pool.shutdown, wait=False, cancel_futures=True)

        def ask(question: Asked) -> records.ProbeAnswer | None:
            agent = idle.pop()
            try:
                return _ask(agent, question[0], prompt(*question, asking.mode), asking, made)
            finally:
                idle.append(agent)

        for attempts in (True, False):
            now = [question for question in questions if (question[0].probe is None) is attempts]
            for future in as_completed([pool.submit(ask, question) for question in now]):
                if (answer := future.result()) is not None:
                    yield answer


def _ask(
    agent: AgentSession, key: QuestionKey, text: str, asking: Asking, made: Iterator[int]
) -> records.ProbeAnswer | None:
    """Return the answer to one question, None where the calls ran out before there was one."""
    probe = UNSET if key.probe is None else key.probe
    answer = partial(records.ProbeAnswer, task_id=key.task, probe_id=probe)
    error = ""
    for calls in range(1, asking.retries + 2):
        if asking.max_calls is not None and next(made) >= asking.max_calls:
            return None
        try:
            said = agent.ask(text, asking.timeout)
        except BaseException as failure:  # noqa: BLE001 - whatever an agent raises, SystemExit too
            error = visible(format_exception_only(failure)[-1].strip())[:_MAX_ERROR]
            agent.close()
            continue
        if asking.isolation:
            agent.close()
        cut = len(said) > records.MAX_REPLY or UNSET
        return answer(status="answered", calls=calls, text=said[: records.MAX_REPLY], cut=cut)
    return answer(status="error", calls=asking.retries + 1, error=error)
