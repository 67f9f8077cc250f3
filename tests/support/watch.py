"""What a command of certkit uses while it runs; nothing of certkit is loaded before, what others wrote is.

    python -m tests.support.watch COMMAND...

Runs the command and prints, last, three numbers: the files of certkit in which the body of a function ran,
the JSON documents that were parsed, and the openings of a registry's database. Bodies of modules and classes
do not count; functions that ran while modules were loaded do.
"""

from __future__ import annotations

import contextlib
import enum
import importlib
import json  # noqa: TID251 - the calls of this module are counted
import os
import subprocess
import sys
import tempfile
from collections import Counter
from inspect import CO_OPTIMIZED
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "certkit"

# Commands in a folder of their own, each of which finds what those before it left.
KEY: Final = "--key key.pem --trust trust.json --at 2026-03-03T00:00:00Z"
ISSUE: Final = "--key key.pem --issuer Lab --valid-from 2026-03-0"
PREPARED: Final = f"""
simulate -o a --seed 3 --runs 300 --domains 2 --tier-target 1
bundle seal a
keys generate -o key.pem --public public.pem
registry init registry --name lab
trust add --trust trust.json --issuer Lab --key public.pem --log {{log}}
trust set --trust trust.json --accept specimens
issue a -o first {ISSUE}1
issue a -o second {ISSUE}2
registry append registry first/passport.json {KEY}
"""
TRACED: Final = {
    "append": f"registry append registry second/passport.json {KEY}",
    "audit": "registry audit registry --trust trust.json",
    "replay": "verify first/passport.json --trust trust.json --bundle a --replay --at 2026-03-03",
}


class Watched(NamedTuple):
    """Files of certkit that ran, types that their functions took or returned, and counted events."""

    files: set[str]
    types: set[type]
    counts: Counter[str]


@contextlib.contextmanager
def watching(*, types: bool = True) -> Iterator[Watched]:
    """Note what runs inside the block; enumerations are no types here, and types are dear to note."""
    seen = Watched(set(), set(), Counter())
    known: dict[int, tuple[CodeType, bool]] = {}  # the code is held, so that its id stays its own

    def note(frame: FrameType, event: str, result: Any) -> None:
        code = frame.f_code
        if event == "call" and code is json.JSONDecoder.decode.__code__:
            seen.counts["parses"] += 1
        if id(code) not in known:
            ours = code.co_filename.startswith(str(PACKAGE)) and bool(code.co_flags & CO_OPTIMIZED)
            known[id(code)] = code, ours
            if ours:
                seen.files.add(Path(code.co_filename).relative_to(PACKAGE).as_posix())
        if types and known[id(code)][1]:
            values = frame.f_locals.values() if event == "call" else (result,) if event == "return" else ()
            seen.types.update(type(value) for value in values if _is_ours(type(value)))

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        seen.counts["openings"] += event == "sqlite3.connect" and "registry.db" in str(arguments[0])

    sys.addaudithook(hear)
    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("certkit.") and not issubclass(kind, enum.Enum)


def traced() -> dict[str, tuple[int, int, int]]:
    """The three numbers for each command of `TRACED`, run after the commands of `PREPARED`."""
    with tempfile.TemporaryDirectory() as place:
        where = os.environ | {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": place}

        def printed(module: str, command: str) -> str:
            program = [sys.executable, "-m", module, *command.split()]
            return subprocess.run(
                program, cwd=place, env=where, capture_output=True, text=True, check=True
            ).stdout

        _prepare(Path(place))
        found = {}
        for name, command in TRACED.items():
            files, parses, openings = map(int, printed("tests.support.watch", command).split()[-3:])
            assert files and parses, f"the watch saw nothing of {name}"  # noqa: PT018 - a dead probe
            found[name] = files, parses, openings
        return found


def _prepare(place: Path) -> None:
    """Run the commands of `PREPARED` in `place`, inside of this process."""
    from tests.support import undrawn  # noqa: PLC0415 - the processes that are watched load nothing of it first
    from tests.support.running import certkit  # noqa: PLC0415

    log = ""
    with (
        contextlib.chdir(place),
        mock.patch.dict(os.environ, XDG_STATE_HOME=str(place)),
        undrawn.pdfs(),
    ):
        for line in PREPARED.strip().splitlines():
            done = certkit(*line.format(log=log).split())
            assert done.code == 0, (line, done)
            log = done.out.strip() if line.startswith("registry init") else log


def main(arguments: list[str]) -> int:
    for other in ("scipy.stats", "cryptography.x509", "pydantic", "typer"):
        importlib.import_module(other)  # not ours: thrice as slow to load while it is watched
    code: object = 0
    with watching(types=False) as seen:
        try:
            from certkit.cli.main import run  # noqa: PLC0415 - what it loads is watched

            run(arguments)
        except SystemExit as leaving:
            code = leaving.code or 0
    print(len(seen.files), seen.counts["parses"], seen.counts["openings"])
    return code if isinstance(code, int) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
