"""The bundles that are imported from the shared evidence, which lies beside the checkout and never in it.

    LOGS["log-tau-airline"].source.is_file()

Each is a command line of ``certkit import``, always with the name of the format.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.corpus.bundles import BOUNDED, TABLE

SHARED: Final = Path(__file__).resolve().parents[3] / "shared" / "evidence"


@dataclass(frozen=True)
class Log:
    """A log, the arguments that import it, and which bundle of several is meant."""

    format: str
    path: str
    options: tuple[str, ...] = ()
    folder: str = ""
    profiles: tuple[str, ...] = (TABLE,)

    @property
    def source(self) -> Path:
        """Where the log lies."""
        return SHARED / self.path

    def arguments(self, out: Path) -> tuple[str, ...]:
        """Return the command line that imports it."""
        return ("import", self.format, str(self.source), "-o", str(out), *self.options)


_DOJO: Final = "agentdojo/agentdojo-{}.jsonl.gz"

LOGS: Final = {
    "log-agentdojo-sonnet": Log(
        "agentdojo", _DOJO.format("claude-3-5-sonnet-20240620"), profiles=(TABLE, BOUNDED)
    ),
    "log-agentdojo-sonnet-utility": Log(
        "agentdojo",
        _DOJO.format("claude-3-5-sonnet-20240620"),
        ("--success", "utility", "--independent-tasks"),
    ),
    "log-agentdojo-command-r": Log("agentdojo", _DOJO.format("command-r"), ("--independent-tasks",)),
    "log-agentdojo-filter": Log(
        "agentdojo", _DOJO.format("gpt-4o-2024-05-13-tool_filter"), ("--attempt", "2")
    ),
    "log-tau-airline": Log("tau", "tau/tau1-gpt-4o-airline.json.gz", ("--agent", "a", "--independent-tasks")),
    "log-tau2-solo": Log("tau", "tau/tau2-gpt41-solo-4x5.json.gz", ("--agent", "a")),
    "log-inspect-popularity": Log(
        "inspect",
        "inspect/scorer_logs_2025-02-11T15-18-04-05-00_popularity_mj7khqpMM4GBCfVQozKgzB.eval",
        ("--condition", "nominal"),
    ),
    "log-inspect-under-fault": Log(
        "inspect",
        "inspect/log_test_eval_log_log_streaming.eval",
        ("--condition", "tool_failure", "--independent-tasks"),
    ),
    "log-hb-eval-b": Log(
        "hb-eval", "hb-eval/methodology_b_sample.json", ("--split-by", "agent"), "openai-gpt-oss-120b"
    ),
    "log-hb-eval-c": Log(
        "hb-eval",
        "hb-eval/methodology_c_sample.json",
        ("--split-by", "agent", "--independent-tasks"),
        "claude-3.5-sonnet",
        (TABLE, BOUNDED),
    ),
}
