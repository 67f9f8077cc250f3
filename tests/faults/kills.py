"""A writer that is killed again and again, and must lose nothing that it acknowledged.

    python -m tests.faults.kills --count 200

Prints how many appends were acknowledged, how many were lost (0, or this fails), and what the audit says.
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

from certkit.registry.writer import Registry
from tests.support.registries import audited, digest, held, new

ROOT = Path(__file__).parents[2]


class Survived(NamedTuple):
    """What was found after all the kills."""

    killed: int
    acknowledged: int
    logged: int
    lost: int
    findings: int


def start(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """Start a process that appends; see `tests.support.appender`."""
    command = [sys.executable, "-m", "tests.support.appender", str(folder), *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )


def ids(folder: Path) -> dict[str, int]:
    """Return the passports in a log with their indices."""
    with Registry.open(folder) as registry:
        return {one.entry.passport_id: one.index for one in held(registry) if one.entry.passport_id}


def kill(folder: Path, count: int) -> Survived:
    """Make a registry, and kill `count` writers of it, each at another point of an append."""
    vkey = new(folder)
    acknowledged: dict[str, int] = {}
    killed = lost = 0
    for attempt in range(count):
        with start(folder, 1000 * attempt, 1000) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(1 + attempt % 3)]
            time.sleep(attempt % 20 / 4000)
            process.send_signal(signal.SIGKILL)
            for line in (*lines, *process.stdout):
                number, index = line.split()
                acknowledged[digest(f"passport {number}")] = int(index)
        killed += process.returncode == -signal.SIGKILL
        lost += len(acknowledged.items() - ids(folder).items())
    report = audited(folder, vkey)
    return Survived(killed, len(acknowledged), report.size, lost, report.total)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=200)
    with tempfile.TemporaryDirectory() as folder:
        found = kill(Path(folder) / "r", parser.parse_args().count)
    print(
        f"{found.killed} kills, {found.acknowledged:,} appends acknowledged, {found.logged:,} entries logged,"
        f" {found.lost} lost, {found.findings} findings"
    )
    return 1 if found.lost or found.findings else 0


if __name__ == "__main__":
    sys.exit(main())
