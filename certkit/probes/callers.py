"""How an agent is called: a Python function, a program, an HTTP endpoint, or a reference agent.

    agents = agents_of("command:./my-agent", timeout=60)
    agent = agents()                     # of its own for every thread
    agent.ask(question)                  # the reply, or CallError
    agent.close()

A call that gives no reply raises `CallError`, whatever the reason: the agent raised, died, kept silent for
longer than the timeout, wrote too much, or spoke another protocol. A program that failed is ended and started
again. Only the endpoint that the caller names is spoken to, without following redirects.
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
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import count
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from certkit import canonical
from certkit.errors import InputError, UsageError
from certkit.probes.reference import Reference, reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.probes.answer import Key
    from certkit.probes.matching import Mode
    from certkit.probes.task import Question, Task

MAX_OUTPUT: Final = 1_000_000
"""Bytes that an agent may send for one reply."""


class CallError(Exception):
    """A call gave no reply."""


class Asked(NamedTuple):
    """One question as it is asked; agents but those of reference see nothing but the prompt."""

    prompt: str
    key: Key
    task: Task
    question: Question
    mode: Mode


class Agent:
    """One agent: how it is called, within which time, and what ends a program that it started."""

    def __init__(
        self,
        call: Callable[[Asked], Any],
        timeout: float,
        close: Callable[[], None] = lambda: None,
        *,
        isolate: bool = False,
    ) -> None:
        self._call = call
        self._timeout = timeout
        self._isolate = isolate
        self.close = close

    def ask(self, asked: Asked) -> str:
        """Return the reply; raise `CallError` where there is none within the time."""
        done: queue.SimpleQueue[object] = queue.SimpleQueue()

        def work() -> None:
            try:
                done.put(self._call(asked))
            except BaseException as error:  # noqa: BLE001 - also SystemExit, which would end this thread unseen
                done.put(error)

        Thread(target=work, daemon=True).start()
        try:
            result = done.get(timeout=self._timeout)
        except queue.Empty:
            result = CallError(f"no reply within {self._timeout:g} s")
        if self._isolate or not isinstance(result, str):
            self.close()
        if isinstance(result, str):
            return result
        if isinstance(result, CallError):
            raise result
        if isinstance(result, BaseException):
            raise CallError(f"{type(result).__name__}: {result}") from result
        raise CallError(f"returned {type(result).__name__}, not str")


def agents_of(
    spec: str,
    *,
    timeout: float,
    isolate: bool = False,
    model: str | None = None,
    key: str | None = None,
) -> Callable[[], Agent]:
    """Return what makes agents of a spec; raise `UsageError` where it names none.

    `timeout` is in seconds, `model` and `key` are for an HTTP endpoint.
    """
    kind, _, rest = spec.partition(":")
    if kind == "reference" and rest in set(Reference):
        return lambda: Agent(partial(_reference, Reference(rest)), timeout)
    if kind == "python" and rest.count(":") == 1:
        function = _function(*rest.split(":"))
        return lambda: Agent(lambda asked: function(asked.prompt), timeout)
    if kind == "command" and (words := _words(rest)):

        def started() -> Agent:
            program = _Program(words)
            return Agent(program.ask, timeout, program.close, isolate=isolate)

        return started
    if kind == "http" and rest.startswith(("http://", "https://")) and model:
        return lambda: Agent(partial(_post, rest, model, key, timeout), timeout)
    raise UsageError(
        "usage.option",
        f"--agent: {spec!r} names no agent",
        hint="python:MODULE:FUNCTION, command:LINE of a program that exists, http:URL with --model,"
        f" or reference: and one of {', '.join(Reference)}",
    )


def _reference(agent: Reference, asked: Asked) -> str:
    return reply(agent, asked.key, asked.task, asked.question, mode=asked.mode)


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
        reason = f"{type(error).__name__}: {error}"
        raise UsageError("usage.option", f"--agent: {module}:{name} cannot be loaded: {reason}") from error
    if not callable(function):
        raise UsageError("usage.option", f"--agent: {module}:{name} is no function")
    return function  # type: ignore[no-any-return]


class _Program:
    """JSON lines: ``{"id": 1, "prompt": …}`` in, ``{"id": 1, "text": …}`` out."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)

    def ask(self, asked: Asked) -> str:
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603 - the program that the user named, without a shell
                self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        process, number = self._process, next(self._numbers)
        assert process.stdin and process.stdout  # noqa: S101, PT018 - both are pipes
        process.stdin.write(canonical.line({"id": number, "prompt": asked.prompt}))
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
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError, ValueError):
                pipe.close()  # type: ignore[union-attr]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow none, since the key would go with it."""


def _post(url: str, model: str, key: str | None, timeout: float, asked: Asked) -> str:
    """Ask an endpoint that speaks OpenAI's chat completions."""
    messages = [{"role": "user", "content": asked.prompt}]
    body = canonical.line({"model": model, "temperature": 0, "messages": messages})
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(f"{url.rstrip('/')}/chat/completions", body, headers)  # noqa: S310
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=timeout) as response:
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
