"""How long commitment integrity takes on 4,800 tasks: `python -m tests.bench_probes`.

Prints processor and wall seconds of generating with linting, of reading with scoring, and per call of a run
with an agent that answers at once, each beside its limit; leaves with 1 where the processor time is over it.
A loaded machine stretches the wall time; the processor time tells.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from certkit.probes.agents import Asking
from certkit.probes.generate import generate
from certkit.probes.lint import lint
from certkit.probes.running import generate_probes, run_probes
from certkit.probes.score import score_integrity

BROKEN: list[str] = []
"""What took longer than its limit."""


class Clock:
    """Prints what a block took, in seconds or in milliseconds a call, beside its limit."""

    def __init__(self, what: str, limit: float, calls: int = 0) -> None:
        self.what, self.limit = what, limit
        self.unit, self.factor = ("ms a call", 1000 / calls) if calls else ("s", 1.0)

    def __enter__(self) -> None:
        self.began = time.process_time(), time.perf_counter()

    def __exit__(self, *_: object) -> None:
        cpu = (time.process_time() - self.began[0]) * self.factor
        wall = (time.perf_counter() - self.began[1]) * self.factor
        if cpu > self.limit:
            BROKEN.append(self.what)
        kept = "" if cpu <= self.limit else ", NOT KEPT"
        print(f"{self.what}: {cpu:.2f} (limit {self.limit:g}{kept}) CPU {self.unit}; wall {wall:.2f}")


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        with Clock("4,800 tasks generated and linted", 10):
            assert lint(generate(seed="bench", instances=100)) == []
        generate_probes(root / "tasks", seed="bench", instances=100)
        asking = Asking("reference:recency")
        with Clock("15,000 questions asked and kept", 2, calls=15_000):
            run_probes(root / "tasks", root / "b", asking, sealing=False)
        with Clock("4,800 tasks read and scored", 5):
            score_integrity(root / "b")
    return bool(BROKEN)


if __name__ == "__main__":
    sys.exit(main())
