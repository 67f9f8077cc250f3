"""What the import tests share: run an import, and read what it wrote."""

from __future__ import annotations

import atexit
import functools
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from certkit.bundle.folder import open_bundle
from certkit.ground import canonical
from certkit.ground.progress import SILENT
from certkit.imports import ImportAccount, ImportOptions, run

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared" / "evidence"


def imported(
    format_: str | None, source: Path, out: Path, **options: Any
) -> tuple[ImportAccount, list[dict[str, Any]]]:
    """Import what makes one bundle; return its account and its records."""
    (account,) = run(source, out, ImportOptions(format=format_, **options), SILENT)
    return account, written(account)


def conversation(folder: Path, messages: list[dict[str, Any]]) -> Path:
    """Import a failure and a success with the same conversation, and return the bundle.

    Without a message of the assistant the import encloses no trace.
    """
    info = {"agent_info": {"llm": "m"}, "environment_info": {"domain_name": "shop"}}
    runs = [{"id": f"{i}", "task_id": i, "reward_info": {"reward": i}, "messages": messages} for i in (0, 1)]
    (folder / "log.json").write_bytes(canonical.line({"info": info, "simulations": runs}))
    imported(None, folder / "log.json", folder / "b")
    return folder / "b"


def written(account: ImportAccount) -> list[dict[str, Any]]:
    """Return the records of an imported bundle, whose seal holds."""
    opened = open_bundle(account.out)
    assert opened.facts.sealed == (account.digest is not None)
    assert account.digest in {None, opened.facts.digest}
    assert opened.manifest.imported == account.imported
    lines = (account.out / "records" / "runs.jsonl").read_bytes().splitlines()
    assert account.imported.records == len(lines)
    return [canonical.loads(line) for line in lines]


def counts(account: ImportAccount, kind: str) -> dict[str, int]:
    """Return what the account says of one kind."""
    return {note.what: note.count for note in account.imported.notes if note.kind == kind}


TELLS_PEAK = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="only Linux tells a process' own peak"
)

MEASURE = """
import sys
from pathlib import Path
from certkit.ground.errors import CertkitError
from certkit.imports import ImportOptions, run
from certkit.ground.progress import SILENT
try:
    run(Path(sys.argv[1]), Path(sys.argv[1] + ".out"), ImportOptions(condition="nominal"), SILENT)
    print("imported")
except CertkitError as error:
    print(error.code)
"""


READ = """
import sys
from pathlib import Path
from certkit.record import trace as traces
with open(sys.argv[1], "rb") as file:
    print(sum(1 for _ in traces.read(file, "a")))
"""

FORKS = """
import os, sys
from json import loads
from pathlib import Path
import certkit.imports.inspect_log
def told(name):  # by the kernel; ru_maxrss would count what began this process
    return int(Path("/proc/self/status").read_text().partition(f"{name}:")[2].split()[0]) * 1024
for line in sys.stdin:
    script, *sys.argv[1:] = loads(line)
    loaded = told("VmRSS")
    if not (child := os.fork()):
        loaded -= told("VmRSS")  # code that a fork does not count until it is used again
        exec(script, {})
        print(loaded + told("VmHWM"))
        sys.exit()
    os.waitpid(child, 0)
    print(".", flush=True)
"""


@functools.cache
def _forking() -> subprocess.Popen[bytes]:
    """Start what forks a process for each script: to load an import takes longer than most of them do."""
    forking = subprocess.Popen([sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(forking.communicate)
    return forking


def peak_of(script: str, path: Path) -> tuple[str, int]:
    """Run a script in a process of its own; return the word that it prints and the peak of memory, bytes."""
    scripts, printed = _forking().stdin, _forking().stdout
    assert scripts
    assert printed
    scripts.write(canonical.line([script, str(path)]))
    scripts.flush()
    word, peak = takewhile(b".\n".__ne__, printed)  # less where the process broke or was ended
    return word.decode().rstrip(), int(peak)


def peak_of_import(path: Path) -> tuple[str, int]:
    """Import a log in a process of its own; return the code of a refusal and the peak of memory, bytes."""
    return peak_of(MEASURE, path)
