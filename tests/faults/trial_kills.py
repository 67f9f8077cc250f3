"""A trial that is killed again and again, and must make every planned run once.

    python -m tests.faults.trial_kills --count 50

Each trial is killed once, at a moment spread over the time that a whole one takes, and then run to its end.
Prints how many were killed, and how many bundles are not the bytes of one that was never killed (0, or this
fails).
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from certkit.trial.recorder import JOURNAL
from tests.support.trials import content, small_plan

ROOT = Path(__file__).parents[2]
TASKS = 6
RUNS = 2 * 5 * TASKS
PROGRAM = """
import sys
from pathlib import Path
from certkit.trial import read_plan, run_trial
plan, out = map(Path, sys.argv[1:])
run_trial(read_plan(plan.read_bytes(), where="plan"), "reference:reflexion", out)
"""


class SurvivedTrials(NamedTuple):
    """What was found after all the kills: trials that were killed at work, and bundles that differ."""

    killed: int
    differ: int


def start(plan: Path, out: Path) -> subprocess.Popen[bytes]:
    """Start a process that runs the trial."""
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(plan), str(out)], cwd=ROOT)


def finish(plan: Path, out: Path) -> None:
    """Run the trial to its end."""
    with start(plan, out) as process:
        assert process.wait() == 0


def lines(out: Path) -> int:
    """Return how many runs the journal holds, -1 before there is one."""
    try:
        return (out / JOURNAL).read_bytes().count(b"\n")
    except FileNotFoundError:
        return -1


def kill(folder: Path, count: int) -> SurvivedTrials:
    """Kill `count` trials, each after another number of runs, and compare what they are in the end."""
    plan = folder / "plan.json"
    plan.write_bytes(small_plan(tasks=TASKS).to_json())
    finish(plan, folder / "whole")
    whole, killed, differ = content(folder / "whole"), 0, 0
    for number in range(count):
        out, after = folder / f"b{number}", number * (RUNS + 2) // count - 1
        with start(plan, out) as process:
            while process.poll() is None and lines(out) < after and not (out / "records").exists():
                time.sleep(0)
            time.sleep(number % 5 / 2000)
            process.send_signal(signal.SIGKILL)
        killed += process.returncode == -signal.SIGKILL
        finish(plan, out)
        differ += content(out) != whole
    return SurvivedTrials(killed, differ)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=50)
    with tempfile.TemporaryDirectory() as folder:
        survived = kill(Path(folder), parser.parse_args().count)
    print(f"{survived.killed} trials killed, {survived.differ} bundles differ")
    return 1 if survived.differ else 0


if __name__ == "__main__":
    sys.exit(main())
