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
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

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

Result = TypeVar("Result")


class CallError(Exception):
    """A call gave no reply."""


class Asked(NamedTuple):
    """One question as it is asked; agents but those of reference see nothing but the prompt."""

    prompt: str
    key: Key
    task: Task
    question: Question
    mode: Mode


class Agent(Protocol):
    """Who answers."""

    def ask(self, asked: Asked) -> str:
        """Return the reply; raise `CallError` where there is none."""

    def close(self) -> None:
        """End what was started."""


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
        return lambda: _Reference(Reference(rest))
    if kind == "python" and rest.count(":") == 1:
        function = _function(*rest.split(":"))
        return lambda: _Function(function, timeout)
    if kind == "command" and (words := _words(rest)):
        return lambda: _Program(words, timeout, isolate=isolate)
    if kind == "http" and rest.startswith(("http://", "https://")) and model:
        return lambda: _Endpoint(rest, model, key, timeout)
    raise UsageError(
        "usage.option",
        f"--agent: {spec!r} names no agent",
        hint="python:MODULE:FUNCTION, command:LINE of a program that exists, http:URL with --model,"
        f" or reference: and one of {', '.join(Reference)}",
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
        reason = f"{type(error).__name__}: {error}"
        raise UsageError("usage.option", f"--agent: {module}:{name} cannot be loaded: {reason}") from error
    if not callable(function):
        raise UsageError("usage.option", f"--agent: {module}:{name} is no function")
    return function  # type: ignore[no-any-return]


def _within(seconds: float, call: Callable[[], Result]) -> Result:
    """Return what a call returns, or raise `CallError`; a call that takes longer is left behind."""
    done: queue.SimpleQueue[tuple[Result | None, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            done.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - also SystemExit, which would end this thread unseen
            done.put((None, error))

    Thread(target=work, daemon=True).start()
    try:
        result, error = done.get(timeout=seconds)
    except queue.Empty:
        raise CallError(f"no reply within {seconds:g} s") from None
    if isinstance(error, CallError):
        raise error
    if error is not None:
        raise CallError(f"{type(error).__name__}: {error}") from error
    return result  # type: ignore[return-value]


class _Reference:
    def __init__(self, agent: Reference) -> None:
        self._agent = agent

    def ask(self, asked: Asked) -> str:
        return reply(self._agent, asked.key, asked.task, asked.question, mode=asked.mode)

    def close(self) -> None:
        pass


class _Function:
    def __init__(self, function: Callable[[str], Any], timeout: float) -> None:
        self._function = function
        self._timeout = timeout

    def ask(self, asked: Asked) -> str:
        text = _within(self._timeout, lambda: self._function(asked.prompt))
        if not isinstance(text, str):
            raise CallError(f"returned {type(text).__name__}, not str")
        return text

    def close(self) -> None:
        pass


class _Program:
    """JSON lines: ``{"id": 1, "prompt": …}`` in, ``{"id": 1, "text": …}`` out."""

    def __init__(self, words: list[str], timeout: float, *, isolate: bool) -> None:
        self._words = words
        self._timeout = timeout
        self._isolate = isolate
        self._process: subprocess.Popen[bytes] | None = None
        self._calls = 0

    def ask(self, asked: Asked) -> str:
        self._calls += 1
        kept = False
        try:
            text = _within(self._timeout, lambda: self._exchange(self._calls, asked.prompt))
            kept = not self._isolate
        finally:
            if not kept:
                self.close()
        return text

    def _exchange(self, number: int, prompt: str) -> str:
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603 - the program that the user named, without a shell
                self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        process = self._process
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        process.stdin.write(canonical.line({"id": number, "prompt": prompt}))
        process.stdin.flush()
        line = process.stdout.readline(MAX_OUTPUT + 1)
        if not line.endswith(b"\n"):
            raise CallError("wrote too much in one line" if len(line) > MAX_OUTPUT else "the program ended")
        reply = _object(line)
        if reply.get("id") != number or not isinstance(reply.get("text"), str):
            raise CallError(f'wrote something else than {{"id": {number}, "text": …}}')
        return str(reply["text"])

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


class _Endpoint:
    """An endpoint that speaks OpenAI's chat completions."""

    def __init__(self, url: str, model: str, key: str | None, timeout: float) -> None:
        self._url = url.rstrip("/") + "/chat/completions"
        self._model = model
        self._headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {key}"} if key else {}
        )
        self._timeout = timeout
        self._opener = urllib.request.build_opener(_NoRedirect)

    def ask(self, asked: Asked) -> str:
        messages = [{"role": "user", "content": asked.prompt}]
        body = canonical.line({"model": self._model, "temperature": 0, "messages": messages})
        request = urllib.request.Request(self._url, body, self._headers)  # noqa: S310 - http or https
        reply = _object(_within(self._timeout, lambda: self._read(request)))
        try:
            text = reply["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            text = None
        if not isinstance(text, str):
            raise CallError("the reply holds no choices[0].message.content")
        return text

    def _read(self, request: urllib.request.Request) -> bytes:
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                data: bytes = response.read(MAX_OUTPUT + 1)
        except urllib.error.HTTPError as error:
            error.close()
            raise CallError(f"HTTP {error.code}") from None
        if len(data) > MAX_OUTPUT:
            raise CallError(f"sent more than {MAX_OUTPUT:,} bytes")
        return data

    def close(self) -> None:
        pass


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = canonical.loads(data)
    except InputError as error:
        raise CallError(f"sent no strict JSON: {error.message}") from None
    if not isinstance(value, dict):
        raise CallError("sent no JSON object")
    return value
