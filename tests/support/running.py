"""Running the command line: inside the test's process for speed, or as the installed program."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certkit.cli.main import run as run_program
from certkit.ground import canonical

PROGRAM = Path(sys.executable).with_name("certkit")


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on standard output."""
        value = canonical.loads(self.out.encode())
        assert isinstance(value, dict)
        return value


def certkit(*arguments: object) -> Done:
    """Run ``certkit`` with `arguments` in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    code: object = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            run_program([str(argument) for argument in arguments])
        except SystemExit as leaving:
            code = leaving.code or 0
    assert isinstance(code, int)
    out.seek(0)
    err.seek(0)
    return Done(code, out.read(), err.read())


def edit(path: Path, **members: Any) -> None:
    """Change members of a JSON file, as an editor does."""
    document = canonical.loads(path.read_bytes())
    path.write_text(canonical.pretty(document | members), encoding="utf-8")


def program(*arguments: object, **environment: str) -> Done:
    """Run the installed ``certkit`` with `arguments` in a process of its own, without a terminal."""
    done = subprocess.run(
        [PROGRAM, *map(str, arguments)], capture_output=True, check=False, env=os.environ | environment
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


HEAVY = (
    "pyarrow",
    "numpy",
    "scipy",
    "pydantic",
    "weasyprint",
    "sigstore",
    "rich",
    "msgspec",
    "cryptography",
)


def loaded(*arguments: str) -> set[str]:
    """Run a command line in a fresh interpreter and return the packages that it loaded."""
    code = (
        "import sys\n"
        "from certkit.cli.main import main\n"
        f"main({[*arguments]!r})\n"
        "sys.stderr.write(' '.join({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout
    return set(done.stderr.split())
