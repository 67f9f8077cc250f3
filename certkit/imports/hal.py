"""HAL: the ``…_UPLOAD.json`` of a run of the Holistic Agent Leaderboard's harness, or a folder of them.

| field of the log | field of the record | note |
|---|---|---|
| `config.agent_name` | agent | `--agent` where there is none |
| `config.agent_version` | version of the agent | |
| `config.benchmark_name` | `domain` | else `hal`, unless `--domain` says another |
| a key of `raw_eval_results`, an id in a list below | `task_id` | |
| `results.successful_tasks` | `outcome` `success` | |
| `results.failed_tasks` | `outcome` `failure` | |
| a list in `raw_eval_results` | a record for each item | variations of the prompt |

The condition must come from you, and so must the outcome where a task is in neither list: `--success`, such
as "reward >= 1", looks at `raw_eval_results`. Where no key of these is in the lists, they are no tasks
(SWE-bench, USACO and AppWorld write a report there), and the lists alone are read. Left out are costs,
latencies, prompts and `raw_logging_results`.
Source of the fields: hal/benchmarks/base_benchmark.py of princeton-pli/hal-harness.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct

from certkit.imports.drafts import Place
from certkit.imports.job import Importer, Run, Short
from certkit.imports.task_log import task_fields
from certkit.record.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.imports.job import Job
    from certkit.imports.splitter import Piece

_SCORES: Final = ("reward", "score")
"""What benchmarks call the score of a task, as the harness itself looks for it."""

Name = Annotated[Short, Meta(min_length=1)]


class HalConfig(Struct, frozen=True, kw_only=True):
    """What ran; what is not read is not listed."""

    agent_name: Short | None = None
    agent_version: Short | None = None
    benchmark_name: Short | None = None


class HalResults(Struct, frozen=True, kw_only=True):
    """Which tasks succeeded and which failed, where the benchmark says so."""

    successful_tasks: list[Name | int] = []
    failed_tasks: list[Name | int] = []


class Hal(Importer):
    """Results of the HAL harness."""

    suffixes = (".json",)
    versioned = (("config", "agent_version"),)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._config = HalConfig()
        self._outcomes: dict[str, Outcome] = {}  # of the tasks of a file, as its lists tell them

    def runs(self) -> Iterator[Run]:
        """Yield the runs of each file."""
        for path, name in self.job.files(self.suffixes):
            self._config, self._outcomes = HalConfig(), {}
            met: set[str] = set()
            unlisted: dict[str, Place] = {}
            with self.job.opening(path, name) as source:
                for piece in source.pieces(within="raw_eval_results"):
                    place = Place(name, piece.line)
                    if piece.inside:
                        listed = piece.key in self._outcomes
                        if listed or not self._outcomes or self.job.options.success:
                            met.add(piece.key)
                            yield self._raw(piece, place)
                        else:
                            unlisted.setdefault(piece.key, place)
                    else:
                        self._header(piece, place)
            # Where no key of the raw results is a task, they are a report of another form.
            for key, place in (unlisted if met else {}).items():
                yield self._run(key, None, {}, place)
            for key, outcome in self._outcomes.items():
                if key not in met:
                    yield self._run(key, outcome, {}, Place(name, 1))

    def _header(self, piece: Piece, place: Place) -> None:
        """Read what a file says of all its runs."""
        if piece.key == "config":
            self._config = self.job.typed(piece.data, HalConfig, place, "config of HAL") or self._config
        elif piece.key == "results":
            results = self.job.typed(piece.data, HalResults, place, "results of HAL") or HalResults()
            self._outcomes = {str(name): Outcome.SUCCESS for name in results.successful_tasks}
            for name in map(str, results.failed_tasks):
                if self._outcomes.setdefault(name, Outcome.FAILURE) == Outcome.SUCCESS:
                    expected, pointer = "no task that succeeded", "/results/failed_tasks"
                    self.job.refuse(place.fault_of(expected, name, pointer=pointer))
        elif piece.key == "raw_eval_results":
            self.job.refuse(
                place.fault("an object with the tasks", "something else", pointer=f"/{piece.key}")
            )

    def _raw(self, piece: Piece, place: Place) -> Run:
        if piece.data.startswith(b"{"):
            row = self.job.load(piece.data, place) or {}
        else:
            row = {"value": self.job.typed(piece.data, Any, place, "JSON")}
        return self._run(piece.key, None if piece.item else self._outcomes.get(piece.key), row, place)

    def _run(self, name: str, outcome: Outcome | None, row: dict[str, Any], place: Place) -> Run:
        agent, domain = self._config.agent_name or "", self._config.benchmark_name or None
        row = row | {"config": {"agent_version": self._config.agent_version}}
        draft = self.job.part(agent, row, place)
        fields = task_fields(self.job, draft, f"{domain or 'hal'}/{name}", domain=domain, default="hal")
        if outcome is None:
            score = next((key for key in (*_SCORES, "value") if key in row), None)
            self.hints["outcome"] = f"{score} >= THRESHOLD" if score else "EXPRESSION"
            return Run(agent, place, row, fields)
        draft.protocol.setdefault("success_rule", "the task is among results.successful_tasks")
        return Run(agent, place, row, fields | {"outcome": str(outcome)})
