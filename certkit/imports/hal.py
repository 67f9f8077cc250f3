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

The condition must come from you, and the outcome of a task that is in neither list: `--success`, such as
"reward >= 1", looks at the values of `raw_eval_results`. Where no key of these is in the lists, they are no tasks (SWE-bench,
USACO and AppWorld write a report there), and the lists alone are read. Left out are costs, latencies, prompts
and `raw_logging_results`.
Source of the fields: hal/benchmarks/base_benchmark.py of princeton-pli/hal-harness.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct

from certkit.imports.drafts import Place
from certkit.imports.job import Importer, Run, Short
from certkit.imports.source import MAX_LOG_ROW
from certkit.imports.task_log import task_fields
from certkit.record.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

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

    def runs(self) -> Iterator[Run]:
        """Yield the runs of each file."""
        for path, name in self.job.files(self.suffixes):
            config, results, raw = HalConfig(), HalResults(), {}
            place = Place(name, 1)
            with self.job.opening(path, name) as source:
                for piece in source.pieces(MAX_LOG_ROW):
                    at = Place(name, piece.line)
                    wanted = f"{piece.key} as HAL writes it"
                    if piece.key == "config":
                        config = self.job.typed(piece.data, HalConfig, at, wanted) or config
                    elif piece.key == "results":
                        results = self.job.typed(piece.data, HalResults, at, wanted) or results
                    elif piece.key == "raw_eval_results":
                        raw, place = self.job.load(piece.data, at) or {}, at
            yield from self._file(config, results, raw, place)

    def _file(
        self, config: HalConfig, results: HalResults, raw: dict[str, Any], place: Place
    ) -> Iterator[Run]:
        outcomes = {str(name): Outcome.FAILURE for name in results.failed_tasks}
        for name in map(str, results.successful_tasks):
            if name in outcomes:
                self.job.refuse(place.fault_of("no failed task that succeeded", name, pointer="/results"))
            outcomes[name] = Outcome.SUCCESS
        values = raw if not outcomes or outcomes.keys() & raw.keys() else {}
        for name in dict.fromkeys((*values, *outcomes)):
            value = values.get(name)
            for item in value if isinstance(value, list) else [value]:
                row = item if isinstance(item, dict) else {"value": item}
                row = row | {"config": {"agent_version": config.agent_version or None}}
                outcome = None if isinstance(value, list) else outcomes.get(name)
                yield self._run(name, outcome, row, config, place)

    def _run(
        self, name: str, outcome: Outcome | None, row: dict[str, Any], config: HalConfig, place: Place
    ) -> Run:
        agent = config.agent_name or ""
        draft = self.job.part(agent, row, place)
        domain = config.benchmark_name or None
        fields = task_fields(self.job, draft, f"{domain or 'hal'}/{name}", domain=domain, default="hal")
        if outcome is None:
            score = next((key for key in _SCORES if key in row), "value" if "value" in row else None)
            self.hints["outcome"] = f"{score} >= THRESHOLD" if score else "EXPRESSION"
            return Run(agent, place, row, fields)
        draft.protocol.setdefault("success_rule", "the task is among results.successful_tasks")
        return Run(agent, place, row, fields | {"outcome": str(outcome)})
