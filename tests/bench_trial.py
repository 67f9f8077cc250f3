"""How long a trial takes: `python -m tests.bench_trial`.

Prints what the boundary adds to a tool call, in microseconds, and what a trial of 1,000 runs on both worlds
takes with each of three reference agents, in seconds of the processor and of the wall, beside its limit;
then what a plan adds to a task of Inspect, where that is installed. Leaves with 1 where a limit is passed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from certkit.record.outcome import decode_log, derive
from certkit.trial.boundary import Boundary, OwnRules
from certkit.trial.plan import PlannedRun
from certkit.trial.run import run_trial
from tests.support.trials import own_plan, small_plan

CALLS = 20_000
ADDED = 20.0
"""Microseconds that the boundary may add to a call."""

WHOLE = 30.0
"""Seconds that 1,000 runs may take."""

INSPECT = 10.0
"""Per cent that a plan may add to the time of a task of Inspect."""


def lookup(key: str, limit: int = 5) -> dict[str, object]:
    return {"key": key, "rows": [{"id": limit, "text": "a result of some length, as tools return them"}] * 5}


def per_call() -> float:
    """Return the microseconds of the processor that the boundary adds to a call."""
    plan = own_plan(max_calls=CALLS + 1)
    boundary = Boundary(plan, PlannedRun(id="r", task="t0", condition="nominal"), plan.tasks[0], OwnRules())
    wrapped = boundary.wrap({"lookup": lookup})["lookup"]
    times = []
    for tool in (lookup, wrapped):
        began = time.process_time()
        for number in range(CALLS):
            tool(f"key {number}", limit=3)
        times.append(time.process_time() - began)
    derive(decode_log(boundary.finish(success=True)))
    return (times[1] - times[0]) / CALLS * 1e6


def main() -> int:
    added = per_call()
    print(f"the boundary adds {added:.1f} µs to a tool call (limit {ADDED:g})")
    broken = added > ADDED
    plan = small_plan(tasks=100)
    for agent in ("gold", "react", "ap-edm"):
        for workers in (1, 2):
            with tempfile.TemporaryDirectory() as folder:
                cpu, wall = time.process_time(), time.perf_counter()
                run_trial(plan, f"reference:{agent}", Path(folder) / "b", workers=workers)
                cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            broken |= workers == 1 and cpu > WHOLE
            print(
                f"1,000 runs of {agent}, {workers} workers: {wall:.1f} s (limit {WHOLE:g}), CPU {cpu:.1f} s"
            )
    if find_spec("inspect_ai") is not None:
        program = [sys.executable, "-W", "ignore", "-m", "tests.support.inspect_bench"]
        printed = subprocess.run(program, capture_output=True, check=True, text=True).stdout.split()
        plain, plain_cpu, wall, cpu = map(float, printed[-4:])
        share = (wall / plain - 1) * 100
        broken |= share > INSPECT
        print(
            f"a plan adds {share:.1f} % to a task of Inspect whose tools take 20 ms (limit {INSPECT:g} %),"
            f" and {(cpu / plain_cpu - 1) * 100:.0f} % to its CPU, {cpu:.2f} s"
        )
    return broken


if __name__ == "__main__":
    sys.exit(main())
