"""The runner: it makes the missing runs of a plan with a Python agent, in one process or in several.

    made = run_trial(plan, "reference:ap-edm", Path("bundle"))
    made.digest

An agent is named ``MODULE:FUNCTION``, or ``reference:NAME``. With several workers each is a process of its
own that loads the agent anew; an agent that learns from run to run then learns less, and its runs depend on
how they are dealt out. An agent that is a program is a `CommandAgent`, and is started once per run.
The bundle is in the plan's order whatever the number of workers.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from certkit._version import __version__
from certkit.ground import files
from certkit.ground.errors import UsageError
from certkit.ground.progress import SILENT, Progress
from certkit.trial.agents import LABEL, REFERENCES
from certkit.trial.boundary import said
from certkit.trial.command import CommandAgent, execute_command
from certkit.trial.episode import execute
from certkit.trial.plan import PlannedRun, TrialPlan, read_plan
from certkit.trial.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from certkit.record.outcome import RunVerdict
    from certkit.trial.episode import Agent
    from certkit.trial.plan import PlannedTask
    from certkit.trial.recorder import TrialMade

TIMEOUT: Final = 300.0
"""Seconds that a run may take, unless the caller says otherwise."""

_REFERENCE: Final = "reference:"
_CHUNKS: Final = 8
"""Pieces that the runs are dealt out in for each worker."""


def load_agent(spec: str) -> Agent:
    """Return the agent of a name.

    Raises:
        UsageError: ``usage.option`` where the name leads to no function.
    """
    reason = ""
    try:
        if spec.startswith(_REFERENCE) and spec.removeprefix(_REFERENCE) in REFERENCES:
            return REFERENCES[spec.removeprefix(_REFERENCE)].agent
        module, _, name = spec.partition(":")
        if module and name and callable(function := getattr(import_module(module), name)):
            return function  # type: ignore[no-any-return]
    except Exception as error:  # noqa: BLE001 - also what a module of the user's raises when it is loaded
        reason = f" ({said(error)})"
    hint = f"MODULE:FUNCTION, command:LINE, or reference: and one of {', '.join(REFERENCES)}"
    raise UsageError("usage.option", f"--agent: this names no agent{reason}", hint=hint)


def run_trial(
    plan: TrialPlan,
    spec: str | CommandAgent,
    out: Path,
    *,
    name: str | None = None,
    version: str | None = None,
    protocol: Mapping[str, Any] | None = None,
    workers: int = 1,
    timeout: float = TIMEOUT,
    close: bool = False,
    on_unsafe: Callable[[str, RunVerdict], object] | None = None,
    progress: Progress = SILENT,
) -> TrialMade:
    """Make the runs of a plan that a folder does not hold yet, and the bundle when all are there.

    Args:
        plan: the plan; its tasks are of worlds of certkit, and the user's own where the agent is a program.
        spec: names the agent, or is a program.
        out: the bundle's folder; one that was begun goes on.
        name: the agent's name; by default its spec.
        version: its version; by default certkit's for a reference agent, else ``unversioned``.
        protocol: further members of the manifest's ``protocol``.
        workers: processes; 1 stays in this one. Of a program: how many of it run at once.
        timeout: seconds that a run may take.
        close: make no further run, and the bundle of those that are there.
        on_unsafe: called with the id and the verdict of every run that is not safe.
        progress: told of every run.

    Raises:
        UsageError: ``usage.option`` where the spec names no agent, or the agent cannot run a task.
        InputError: ``trial.other-run``, ``trial.world``; ``trial.no-calls`` where no run did anything.
    """
    if not isinstance(spec, CommandAgent):
        load_agent(spec)
    _check_tasks(plan, program=isinstance(spec, CommandAgent))
    label = str(spec)
    kind = label.removeprefix(_REFERENCE) if label.startswith(_REFERENCE) else None
    known = REFERENCES[kind].worlds if kind else None
    strange = [world.name for world in plan.worlds if known is not None and world.name not in known]
    if strange:
        hint = "--agent reference:gold, or an agent of your own: MODULE:FUNCTION"
        raise UsageError("usage.option", f"the reference agent {kind} does not know {strange[0]}", hint=hint)
    components = [{"role": "code", "name": LABEL, "version": __version__}] if kind else []
    recorder = Recorder(
        out,
        plan,
        agent=name or kind or label,
        version=version or (__version__ if kind else "unversioned"),
        components=components,
        protocol={**(REFERENCES[kind].protocol if kind else {}), **(protocol or {})},
        on_unsafe=on_unsafe,
        progress=progress,
    )
    limit = None if kind else timeout
    with recorder:
        missing = [] if close else recorder.missing
        if close:
            recorder.close()
        progress.start("running", len(missing), "runs")
        by_id = {run.id: run for run in missing}
        if isinstance(spec, CommandAgent):
            logs = _programs(plan, spec, missing, workers, timeout)
        elif workers == 1 or not missing:
            agent, tasks = load_agent(spec), plan.tasks_by_id()
            logs = ((run.id, execute(plan, run, tasks[run.task], agent, timeout=limit)) for run in missing)
        else:
            logs = _dealt_out(plan, spec, [*by_id], workers, limit)
        with closing(logs):
            for run_id, log in logs:
                recorder.keep(by_id[run_id], log)
    return recorder.made


def _check_tasks(plan: TrialPlan, *, program: bool) -> None:
    """Refuse tasks of the user's own for a function, and tasks of worlds for a program."""
    task = next((task for task in plan.tasks if (task.world is None) != program), None)
    if task is None:
        return
    if program:
        message = f"task {task.id!r} is of the world {task.world}, whose tools are on no MCP server"
        hint = "plan tasks of your own, under [[domains]]; a function runs worlds: --agent MODULE:FUNCTION"
    else:
        message = f"task {task.id!r} is of no world of certkit"
        hint = (
            "run your own tasks with a program, --agent command:LINE, or in your own loop, with"
            " certkit.trial.recorder.Recorder"
        )
    raise UsageError("usage.option", message, hint=hint)


def _programs(
    plan: TrialPlan, agent: CommandAgent, runs: list[PlannedRun], workers: int, timeout: float
) -> Generator[tuple[str, bytes]]:
    """Yield the id and the log of every run of a program, in the order in which they end."""
    tasks, stop = plan.tasks_by_id(), Event()
    with tempfile.TemporaryDirectory(prefix="certkit-") as private, ThreadPoolExecutor(workers) as pool:
        folder = Path(private)
        files.write(folder / "plan.json", plan.to_json())

        def make(run: PlannedRun) -> tuple[str, bytes]:
            task = tasks[run.task]
            return run.id, execute_command(plan, run, task, agent, folder=folder, timeout=timeout, stop=stop)

        try:
            for done in as_completed([pool.submit(make, run) for run in runs]):
                yield done.result()
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _dealt_out(
    plan: TrialPlan, spec: str, ids: list[str], workers: int, timeout: float | None
) -> Generator[tuple[str, bytes]]:
    """Yield the id and the log of every run, in the order in which the workers end them."""
    size = max(1, len(ids) // (_CHUNKS * workers))
    chunks = [ids[start : start + size] for start in range(0, len(ids), size)]
    context = get_context("spawn")
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_prepare, initargs=(plan.to_json(), spec, timeout)
    ) as pool:
        try:
            for done in as_completed([pool.submit(_work, chunk) for chunk in chunks]):
                yield from done.result()
        except BrokenProcessPool:
            hint = "run the same command again: finished runs are kept"
            raise UsageError(
                "usage.option", "a worker ended; the agent may have ended its process", hint=hint
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


class _Worker:
    """What a worker process was prepared with."""

    plan: TrialPlan
    agent: Agent
    timeout: float | None
    runs: dict[str, PlannedRun]
    tasks: dict[str, PlannedTask]


def _prepare(plan: bytes, spec: str, timeout: float | None) -> None:
    sys.stdout = sys.stderr  # what an agent prints is no result
    _Worker.plan = read_plan(plan, where="plan")
    _Worker.agent = staticmethod(load_agent(spec))
    _Worker.timeout = timeout
    _Worker.runs = {run.id: run for run in _Worker.plan.runs}
    _Worker.tasks = _Worker.plan.tasks_by_id()


def _work(ids: list[str]) -> list[tuple[str, bytes]]:
    made = []
    for run_id in ids:
        run = _Worker.runs[run_id]
        task = _Worker.tasks[run.task]
        made.append((run_id, execute(_Worker.plan, run, task, _Worker.agent, timeout=_Worker.timeout)))
    return made
