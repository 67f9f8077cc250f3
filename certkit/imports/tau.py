"""τ-bench and τ²-bench: conversations of an agent with a simulated user about a shop, an airline, a telecom.

τ-bench writes one array of runs; τ²-bench writes one object with ``info`` and ``simulations``, or a folder
with ``results.json`` and a file per run in ``simulations/``.

How the fields are read, and the traps, stand in docs/reference/importers.md. ``info`` of τ²-bench may hold
keys of model services: of it only names, temperature and trials are used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct, to_builtins
from msgspec.structs import replace

from certkit.ground.errors import InputError
from certkit.imports.drafts import Place
from certkit.imports.job import Importer, Run, Short
from certkit.imports.source import MAX_LOG_ROW
from certkit.record import trace as traces
from certkit.record.record import Condition, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.imports.drafts import Draft
    from certkit.imports.job import Job

_POLICY = re.compile(r"^(?:<main_policy>\s*)?#\s*(\w+)\s+agent\s+policy", re.IGNORECASE)
_INFRASTRUCTURE: Final = frozenset({"infrastructure_error", "unexpected_error", "user_error"})
"""Ends of a τ²-bench run that are no act of the agent."""

_DONE: Final = 1 - 1e-6

Name = Annotated[Short, Meta(min_length=1)]


class OldRun(Struct, frozen=True, kw_only=True):
    """A run of τ-bench."""

    task_id: int | Name
    reward: Annotated[float, Meta(ge=0, le=1)]
    trial: Annotated[int, Meta(ge=0)] = 0
    info: dict[str, Any] = {}
    traj: list[traces.Message]


class Simulation(Struct, frozen=True, kw_only=True):
    """A run of τ²-bench."""

    id: Name
    task_id: int | Name
    trial: Annotated[int, Meta(ge=0)] | None = None
    seed: int | None = None
    start_time: Short | None = None
    termination_reason: Short | None = None
    reward_info: dict[str, Any] | None = None
    messages: list[traces.Message] | None = None


class AgentInfo(Struct, frozen=True):
    """The agent of τ²-bench; `llm_args` may hold keys, and only its temperature is used."""

    implementation: str | None = None
    llm: str | None = None
    llm_args: dict[str, Any] | None = None


class Environment(Struct, frozen=True):
    """The domain of τ²-bench."""

    domain_name: str | None = None


class Info(Struct, frozen=True):
    """What a results file of τ²-bench says of all its runs."""

    agent_info: AgentInfo
    environment_info: Environment
    num_trials: int | None = None


class Tau(Importer):
    """Runs of τ-bench and τ²-bench."""

    versioned = (("info", "model"),)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._info: Info | None = None
        self._domain: str | None = None
        self._met: dict[str, int] = {}  # the ids → the hash of what the run is
        self._tasks = 0

    def runs(self) -> Iterator[Run]:
        """Yield the runs of one results file, or of a folder of τ²-bench."""
        root = self.job.source
        if not root.is_dir():
            yield from self._file(root, self.job.name)
            return
        if not (root / "results.json").is_file():
            hint = "give the folder that holds results.json and simulations/, or one results file"
            raise InputError("import.source", "no results.json in the folder", where=self.job.name, hint=hint)
        yield from self._file(root / "results.json", "results.json")
        for path, name in self.job.files((".json",)):
            if name.startswith("simulations/"):
                with self.job.opening(path, name) as source:
                    yield from self._simulation(source.read(MAX_LOG_ROW).strip(), Place(name, 1))

    def _file(self, path: Path, name: str) -> Iterator[Run]:
        with self.job.opening(path, name) as source:
            for piece in source.pieces(MAX_LOG_ROW):
                place = Place(name, piece.line)
                if piece.key == "info":
                    self._info = self.job.typed(piece.data, Info, place, "info as τ²-bench writes it")
                elif piece.key == "tasks":
                    self._tasks += 1
                elif piece.key == "simulations":
                    yield from self._simulation(piece.data, place)
                elif not piece.key:
                    yield from self._old_run(piece.data, place)

    def _old_run(self, data: bytes, place: Place) -> Iterator[Run]:
        run = self.job.typed(data, OldRun, place, "a run as τ-bench writes it")
        if run is None:
            return
        text = run.traj[0].content if run.traj else None
        policy = _POLICY.match(text) if isinstance(text, str) else None
        if policy is not None:
            self._domain = policy[1].lower()
        # A run that raised an exception is written with no conversation and a reward of 0.
        failed = not run.traj and "error" in run.info
        fields = self._fields("", self._domain, run.task_id, run.trial)
        fields["outcome"] = _outcome(run.reward, failed=failed)
        if failed:
            self.job.draft("").notes.add("odd", "runs that ended in an exception, taken as harness errors")
        row = {"task_id": run.task_id, "trial": run.trial, "reward": run.reward, "info": run.info}
        yield Run("", place, row, fields, traces.shown(run), data)

    def _simulation(self, data: bytes, place: Place) -> Iterator[Run]:
        run = self.job.typed(data, Simulation, place, "a run as τ²-bench writes it")
        if run is None:
            return
        if self._info is None:
            message = "the runs stand before `info`, which names the agent"
            raise InputError("import.source", message, where=place.file)
        agent = self._info.agent_info.llm or self._info.agent_info.implementation or ""
        draft = self.job.draft(agent)
        reward = (run.reward_info or {}).get("reward")
        told = hash(repr((run.task_id, run.trial, reward, run.termination_reason)))
        if run.id in self._met:
            draft.notes.add("refused", "simulations that the log repeats", "the same id counts once")
            if self._met[run.id] != told:
                self.job.refuse(place.fault("the result of the earlier run of this id", "another result"))
            return
        self._met[run.id] = told
        if reward is not None and not (isinstance(reward, int | float) and 0 <= reward <= 1):
            self.job.refuse(place.fault("a reward from 0 to 1", str(reward), pointer="/reward_info/reward"))
            return
        failed = run.termination_reason in _INFRASTRUCTURE or reward is None
        if failed:
            detail = f"first ended by {run.termination_reason}"
            draft.notes.add("odd", "runs without a usable reward, taken as harness errors", detail)
        domain = self._info.environment_info.domain_name
        fields = self._fields(agent, domain, run.task_id, run.trial)
        fields["outcome"] = _outcome(reward, failed=failed)
        row = to_builtins(replace(run, messages=None))
        fields |= self.started(run.start_time, draft.notes)
        yield Run(agent, place, row, fields, traces.shown(run), data)

    def _fields(
        self, agent: str, domain: str | None, task_id: int | str, trial: int | None
    ) -> dict[str, Any]:
        task = str(task_id) if domain is None else f"{domain}/{task_id}"
        repeat = self.job.draft(agent).repeat(f"{task}#{trial}")
        if repeat:
            self.job.draft(agent).notes.add("odd", "runs of the same task and trial, taken as further trials")
        name = f"{task}#{trial or 0}" + (f".{repeat}" if repeat else "")
        fields: dict[str, Any] = {"run_id": name, "task_id": task, "trial": trial}
        fields["condition"] = str(Condition.NOMINAL)
        return fields if domain is None else fields | {"domain": domain}

    def close(self, draft: Draft) -> dict[str, str]:
        """Fill what `info` says of the agent."""
        info = self._info
        if info is not None:
            agent = info.agent_info
            draft.components(model=draft.agent, scaffold=agent.implementation or "unknown")
            draft.temperature((agent.llm_args or {}).get("temperature"))
            if (planned := self._tasks * (info.num_trials or 0)) not in {0, len(self._met)}:
                detail = f"{len(self._met):,} of {planned:,}"
                draft.notes.add("odd", "simulations are not as many as tasks times trials", detail)
        draft.protocol.setdefault("success_rule", "a reward of 1")
        detail = "gold actions are one way to do the task, no proven minimum; a mapping may take them for it"
        draft.notes.add("unmeasured", "steps_oracle", detail, count=draft.records)
        return {"condition": "since the benchmark injects no faults"}


def _outcome(reward: Any, *, failed: bool) -> str:
    if failed:
        return str(Outcome.HARNESS_ERROR)
    return str(Outcome.SUCCESS if reward >= _DONE else Outcome.FAILURE)
