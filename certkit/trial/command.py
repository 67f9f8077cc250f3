"""One planned run of an agent that is a program, which finds its tools on an MCP server.

The program is started once per run, with these variables in its environment:

| variable | holds |
|---|---|
| ``CERTKIT_PROMPT`` | the task in words |
| ``CERTKIT_TASK``, ``CERTKIT_RUN`` | ids of the task and of the run |
| ``CERTKIT_MCP_COMMAND`` | a JSON list: the command of the MCP server that the agent starts over stdio |

What it writes to standard output is its answer. These rules hold:

| the program | the run |
|---|---|
| writes an answer and leaves with 0 | the checker decides |
| writes nothing but white space | failure: `no_answer` |
| leaves with another code | failure: `raised` |
| takes longer than the timeout | failure: `timeout`; it is killed |
| makes more tool calls than the plan allows | failure: `call_limit`; it is killed |

The checker is a program too. It is started when agent and server have ended, with the answer on standard
input and the same variables in its environment, but the command of the server. Exit code 0 is success, 1 is
none. Into the file ``CERTKIT_RESULT`` it may write ``{"violations": 0, "attack_succeeded": false}``; what it
does not say is not measured.

The run is a harness error where the MCP server does not start, or ends while the agent is connected; where
it does not end within 20 s after the agent; where the checker leaves with another code, is ended by a signal,
takes longer than the timeout, or writes something else into the file.
"""

from __future__ import annotations

import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import IO, TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Struct

from certkit.ground import canonical, files
from certkit.ground.document import Count
from certkit.ground.errors import InputError, UnavailableError, UsageError
from certkit.trial.boundary import MAX_VALUE, Boundary, OwnRules
from certkit.trial.events import OVER, read_events, wait_for_writers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from certkit.record.outcome import Ending
    from certkit.trial.plan import PlannedRun, PlannedTask, TrialPlan

_PAUSE: Final = 0.1
"""Seconds between two looks at a program."""

_STANDARD_ERROR: Final = 2
"""Where a checker prints to."""

_ENDING: Final = 400
"""Looks for the end of the server, 20 s."""


class CommandAgent(NamedTuple):
    """The programs of a trial.

    Attributes:
        agent: the command of the agent.
        server: the command of its MCP server.
        checker: the command of the checker.
        environment: of all three.
    """

    agent: tuple[str, ...]
    server: tuple[str, ...]
    checker: tuple[str, ...]
    environment: Mapping[str, str]

    def __str__(self) -> str:
        """Return the spec that names the agent."""
        return f"command:{shlex.join(self.agent)}"


def command_agent(agent: str, server: str, checker: str, environment: Mapping[str, str]) -> CommandAgent:
    """Return the programs of three lines, as a shell splits them.

    Raises:
        UsageError: ``usage.option`` where a program does not exist.
        UnavailableError: ``trial.extra`` where the extra ``mcp`` is not installed.
    """
    if find_spec("fastmcp") is None:
        raise UnavailableError("trial.extra", "fastmcp is not installed", hint="pip install 'certkit[mcp]'")
    path = environment.get("PATH")
    return CommandAgent(
        _words("--agent", agent, path),
        _words("--server", server, path),
        _words("--checker", checker, path),
        environment,
    )


def _words(option: str, line: str, path: str | None) -> tuple[str, ...]:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError("usage.option", f"{option}: {error}") from None
    if not words or shutil.which(words[0], path=path) is None:
        raise UsageError("usage.option", f"{option}: there is no program {words[0] if words else ''!r}")
    return tuple(words)


class CheckerResult(Struct, forbid_unknown_fields=True):
    """What a checker may write.

    Attributes:
        violations: violated hard constraints, null if it does not check them.
        attack_succeeded: whether the attacker's goal was reached, null if it does not check it.
    """

    violations: Count | None = None
    attack_succeeded: bool | None = None


class _Ended(NamedTuple):
    """How a program ended: `answer` is what it wrote."""

    ended: Ending
    answer: str | None = None
    detail: str | None = None


class _CheckerError(Exception):
    """The checker did not decide."""


def execute_command(
    plan: TrialPlan,
    run: PlannedRun,
    task: PlannedTask,
    agent: CommandAgent,
    *,
    folder: Path,
    timeout: float,
    stop: Event,
) -> bytes:
    """Run the program of an agent once, and return the log of the run.

    Args:
        plan: the plan.
        run: the run of it.
        task: the run's task, one of the user's own.
        agent: the programs.
        folder: a private one, in which ``plan.json`` is the plan.
        timeout: seconds that the agent may take, and then the checker.
        stop: ends the program when it is set.

    Returns:
        The JSON of a `certkit.record.outcome.RunLog`.
    """
    place = Path(tempfile.mkdtemp(dir=folder))
    proxy = [sys.executable, "-P", "-m", "certkit", "trial", "mcp", str(folder / "plan.json")]
    proxy += ["--run", run.id, "--events", str(place), "--", *agent.server]
    about = {"CERTKIT_TASK": task.id, "CERTKIT_RUN": run.id, "CERTKIT_PROMPT": task.prompt or ""}
    command = canonical.canonical(proxy).decode()
    variables = {**agent.environment, **about, "CERTKIT_MCP_COMMAND": command}
    boundary = Boundary(plan, run, task, OwnRules(task.attack), kind="transport")
    acted = _act(agent.agent, variables, place, timeout, stop)
    result, success = CheckerResult(), None
    try:
        events = read_events(place)
        boundary.resume(events)
        if boundary.over == "harness_error":
            acted = _Ended("harness_error", detail=events[-1].detail)
        if acted.ended != "harness_error" and not stop.is_set():
            files.write(place / "answer", (acted.answer or "").encode())
            success, result = _check(agent.checker, {**agent.environment, **about}, place, timeout, stop)
    except InputError as error:
        acted = _Ended("harness_error", acted.answer, f"the events cannot be read: {error.code}")
    except _CheckerError as error:
        acted = _Ended("harness_error", acted.answer, str(error))
    return boundary.finish(
        ended=acted.ended,
        answer=acted.answer,
        success=success,
        violations=result.violations,
        attack_succeeded=result.attack_succeeded if plan.attacks(run) else None,
        detail=acted.detail,
    )


def _act(
    command: Sequence[str], environment: Mapping[str, str], place: Path, timeout: float, stop: Event
) -> _Ended:
    """Start a program, wait for its end or end it, and return how it ended; its server has ended too."""
    process = _started("--agent", command, environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    tail = bytearray()
    reader = Thread(target=_read, args=(process.stdout, tail), daemon=True)
    reader.start()
    try:
        code = _wait(process, timeout, lambda: stop.is_set() or (place / OVER).exists())
        if code is None:
            _kill(process)
        if not wait_for_writers(place, _ENDING):
            return _Ended("harness_error", detail="the MCP server did not end")
    finally:
        _kill(process)
        process.wait()
    reader.join(1)  # a child in a session of its own may hold the pipe
    answer = tail.decode(errors="replace").strip()
    if code is None:
        return _Ended("timeout", answer)
    if code:
        return _Ended("raised", answer, f"exit code {code}" if code > 0 else f"signal {-code}")
    return _Ended("answered" if answer else "no_answer", answer)


def _wait(process: subprocess.Popen[bytes], timeout: float, is_over: Callable[[], bool]) -> int | None:
    """Return the exit code of a program, None where the time is over, or something else says so."""
    for _ in range(math.ceil(timeout / _PAUSE)):
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_PAUSE)
        if is_over():
            break
    return None


def _started(
    option: str, command: Sequence[str], environment: Mapping[str, str], **streams: int
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, without a shell."""
    try:
        return subprocess.Popen(command, env=dict(environment), start_new_session=True, **streams)  # type: ignore[call-overload, no-any-return]  # noqa: S603
    except (OSError, ValueError) as error:
        raise UsageError("usage.option", f"{option}: {command[0]} cannot be started: {error}") from None


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


def _read(stream: IO[bytes], tail: bytearray) -> None:
    """Keep the last bytes that a program writes."""
    with suppress(OSError, ValueError), stream:
        while data := stream.read1(1 << 16):  # type: ignore[attr-defined]
            tail += data
            if len(tail) > 2 * MAX_VALUE:
                del tail[:-MAX_VALUE]


def _check(
    command: Sequence[str], environment: Mapping[str, str], place: Path, timeout: float, stop: Event
) -> tuple[bool, CheckerResult]:
    """Return what a checker says of a run."""
    result = place / "result"
    variables = {**environment, "CERTKIT_RESULT": str(result)}
    with files.reading(place / "answer") as answer:
        process = _started("--checker", command, variables, stdin=answer.fileno(), stdout=_STANDARD_ERROR)
    try:
        code = _wait(process, timeout, stop.is_set)
    finally:
        _kill(process)
        process.wait()
    if code is None:
        raise _CheckerError("the checker took longer than the timeout")
    if code < 0:
        raise _CheckerError(f"signal {-code} ended the checker")
    if code > 1:
        raise _CheckerError(f"the checker left with exit code {code}; 0 is success, and 1 is none")
    said = CheckerResult()
    if result.is_file():
        try:
            document = canonical.loads(files.read(result, limit=1000), where="CERTKIT_RESULT")
            said = msgspec.convert(document, CheckerResult, strict=True)
        except (InputError, msgspec.ValidationError) as error:
            raise _CheckerError(f"the checker's result cannot be read: {error}") from None
    return code == 0, said
