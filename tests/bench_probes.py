"""How long commitment integrity takes on 4,800 tasks: `python -m tests.bench_probes`.

Prints processor and wall seconds of generating with linting, of reading with scoring, and per call of a run
with an agent that answers at once. A loaded machine stretches the wall time; the processor time tells.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from certkit.assessment.integrity.scores import score_integrity
from certkit.evidence.integrity.running import generate_probes, run_probes
from certkit.probes.agents import Asking
from certkit.probes.generate import generate
from certkit.probes.lint import lint


class Clock:
    """Prints what a block took."""

    def __init__(self, what: str, limit: str, calls: int = 1) -> None:
        self.what, self.limit, self.calls = what, limit, calls

    def __enter__(self) -> None:
        self.began = time.process_time(), time.perf_counter()

    def __exit__(self, *_: object) -> None:
        cpu, wall = time.process_time() - self.began[0], time.perf_counter() - self.began[1]
        unit, factor = ("ms a call", 1000 / self.calls) if self.calls > 1 else ("s", 1)
        print(
            f"{self.what:<44} {cpu * factor:7.2f} {unit} processor {wall * factor:7.2f} wall ({self.limit})"
        )


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        with Clock("4,800 tasks generated and linted", "≤ 10 s"):
            assert lint(generate(seed="bench", instances=100)) == []
        generate_probes(root / "tasks", seed="bench", instances=100)
        asking = Asking("reference:recency")
        with Clock("15,000 questions asked and kept", "≤ 2 ms a call", 15_000):
            run_probes(root / "tasks", root / "b", asking, sealing=False)
        with Clock("4,800 tasks read and scored", "≤ 5 s"):
            score_integrity(root / "b")


if __name__ == "__main__":
    main()
