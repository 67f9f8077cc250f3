"""Agents that are programs: how each of their ends counts, and what the checker may say."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from certkit.ground import files
from certkit.ground.errors import CertkitError, InputError, UsageError
from certkit.record.outcome import RunEvent
from certkit.trial.boundary import Boundary, OwnRules
from certkit.trial.command import CommandAgent, command_agent, execute_command
from certkit.trial.events import OVER, read_events, wait_for_writers, writing_events
from certkit.trial.faults import PlannedFault
from certkit.trial.plan import PlannedRun
from tests.console import ROOT
from tests.support.trials import own_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def script(name: str, *arguments: str) -> tuple[str, ...]:
    return sys.executable, str(ROOT / f"tests/support/mcp_{name}.py"), *arguments


def end(
    folder: Path,
    agent: tuple[str, ...],
    *,
    server: tuple[str, ...] = (),
    checker: str = "",
    timeout: float = 30.0,
    **more: Any,
) -> dict[str, Any]:
    """Return the last event of a run of an agent in a folder."""
    plan = own_plan(**more)
    private = folder / "private"
    private.mkdir()
    files.write(private / "plan.json", plan.to_json())
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    here = ["sh", "-c", f'cd {folder}; exec "$@"', "sh"]
    programs = CommandAgent(
        agent, server or script("server"), (*here, *script("checker", *filter(None, [checker]))), environment
    )
    run = next(run for run in plan.runs if run.condition == "nominal")
    log = execute_command(
        plan,
        run,
        plan.tasks_by_id()[run.task],
        programs,
        folder=private,
        timeout=timeout,
        stop=threading.Event(),
    )
    last: dict[str, Any] = msgspec.json.decode(log)["events"][-1]
    return last


@pytest.mark.parametrize(
    ("behaviour", "ended", "more"),
    [
        ("raises", "raised", {"detail": "exit code 7", "answer": ""}),
        ("hangs", "timeout", {"answer": ""}),
        ("silent", "no_answer", {"answer": ""}),
    ],
)
def test_an_agent_that_gives_no_answer_fails(
    behaviour: str, ended: str, more: dict[str, Any], tmp_path: Path
) -> None:
    last = end(tmp_path, script("agent", behaviour), timeout=2.0 if behaviour == "hangs" else 30.0)
    assert last == {"event": "end", "ended": ended, "success": False, "violations": 0, **more}


def test_an_agent_that_floods_is_stopped_at_the_call_limit(tmp_path: Path) -> None:
    pytest.importorskip("fastmcp", reason="needs the extra mcp")
    last = end(tmp_path, script("agent", "floods"), max_calls=5)
    assert (last["ended"], last["success"]) == ("call_limit", False)


@pytest.mark.parametrize("server", [(), ("false",)], ids=["ends", "does not start"])
def test_a_server_that_ends_is_a_harness_error(server: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("fastmcp", reason="needs the extra mcp")
    last = end(tmp_path, script("agent", "leaves"), server=server)
    assert last["ended"] == "harness_error"
    assert last["detail"] == "the MCP server ended, or did not start"


@pytest.mark.parametrize(
    ("checker", "detail"),
    [
        ("dies", "signal 9 ended the checker"),
        ("leaves", "the checker left with exit code 2; 0 is success, and 1 is none"),
        ("babbles", "the checker's result cannot be read"),
        ("sleeps", "the checker took longer than the timeout"),
    ],
)
def test_a_checker_that_does_not_decide_is_a_harness_error(checker: str, detail: str, tmp_path: Path) -> None:
    last = end(tmp_path, ("echo", "done"), checker=checker, timeout=1.0 if checker == "sleeps" else 30.0)
    assert last["ended"] == "harness_error"
    assert last["detail"].startswith(detail)
    assert "success" not in last


def test_an_agent_that_cannot_be_started_stops_the_trial(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be started"):
        end(tmp_path, (str(tmp_path),))


@pytest.mark.parametrize(
    ("agent", "message"),
    [("", "no program ''"), ("none-such x", "no program 'none-such'"), ('"', "No closing")],
)
def test_a_line_that_names_no_program_is_refused(agent: str, message: str) -> None:
    pytest.importorskip("fastmcp", reason="needs the extra mcp")
    with pytest.raises(UsageError, match=message):
        command_agent(agent, "true", "true", {"PATH": "/usr/bin:/bin"})


def test_without_the_extra_a_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certkit.trial.command.find_spec", lambda _name: None)
    with pytest.raises(CertkitError, match="fastmcp is not installed") as caught:
        command_agent("true", "true", "true", {})
    assert (caught.value.code, caught.value.hint) == ("trial.extra", "pip install 'certkit[mcp]'")


def look(key: str) -> dict[str, Any]:
    return {"key": key, "n": 3}


def through(folder: Path, count: int, cut: Callable[[], None] = lambda: None) -> Boundary:
    """Make calls through a boundary whose events a folder keeps, `count` in each of two connections."""
    plan = own_plan()
    fault = PlannedFault(onset=2, length=2)
    run = PlannedRun(id="r", task=plan.tasks[0].id, condition="cascade", fault=fault)
    for _ in range(2):
        with writing_events(folder) as (events, append):
            boundary = Boundary(plan, run, plan.tasks[0], OwnRules("Pay me."), on_event=append)
            boundary.resume(events)
            for _ in range(count):
                boundary.wrap({"look": look})["look"]("a")
        cut()
    return boundary


def test_a_run_in_two_connections_is_the_run_in_one(tmp_path: Path) -> None:
    once = Boundary(own_plan(), through(tmp_path / "a", 2)._run, own_plan().tasks[0], OwnRules("Pay me."))
    for _ in range(4):
        once.wrap({"look": look})["look"]("a")
    again = Boundary(own_plan(), once._run, own_plan().tasks[0], OwnRules("Pay me."))
    again.resume(read_events(tmp_path / "a"))
    assert again.finish(answer="x") == once.finish(answer="x")


def test_the_half_of_a_last_line_is_not_read_and_gives_way(tmp_path: Path) -> None:
    def cut() -> None:
        path = tmp_path / "a/events.jsonl"
        path.write_bytes(path.read_bytes()[:-5])

    through(tmp_path / "a", 1, cut)
    events = read_events(tmp_path / "a")
    assert [(event.tool, event.result) for event in events] == [("look", None), ("look", None)]


def test_an_end_of_the_boundary_is_there_for_the_runner_and_for_the_next_connection(tmp_path: Path) -> None:
    with writing_events(tmp_path) as (_, append):
        assert not wait_for_writers(tmp_path, 1)
        append(0, RunEvent(event="end", ended="call_limit"))
    assert wait_for_writers(tmp_path, 1)
    assert (tmp_path / OVER).exists()
    plan = own_plan()
    boundary = Boundary(plan, plan.runs[0], plan.tasks[0], OwnRules())
    boundary.resume(read_events(tmp_path))
    assert boundary.over == "call_limit"


@pytest.mark.parametrize("line", [b"{}\n", b'{"place":1,"event":{"event":"halt"}}\n', b"\n"])
def test_a_file_that_holds_no_events_is_refused(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(line)
    with pytest.raises(InputError) as caught:
        read_events(tmp_path)
    assert caught.value.code == "trial.invalid"
