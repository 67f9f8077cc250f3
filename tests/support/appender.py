"""A process that appends stand-in passports to a registry, and is killed, starved or run beside others.

    python -m tests.support.appender FOLDER FIRST COUNT [FILE-SIZE-LIMIT]

Prints the number and the index of each passport once its append has returned; that is what a registry
owes to whoever read the line.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from certkit.ground.errors import CertkitError
from tests.support.registries import append, passport


def main(folder: str, first: str, count: str, limit: str | None = None) -> int:
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    for number in range(int(first), int(first) + int(count)):
        try:
            appended = append(Path(folder), passport(number, lineage=f"lab/agent-{number % 3}"))
        except CertkitError as error:
            sys.stderr.write(f"{error.code} {error}\n")
            return error.exit_code
        sys.stdout.write(f"{number} {appended.index}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
