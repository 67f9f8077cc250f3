"""What several tests read is made once for the whole run: by the worker that needs it first."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import json

from tests.support.running import Done

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder of this name that `make` filled; all workers share it, so that it is only read."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / name
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            made = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=shared))
            make(made)
            made.rename(folder)
    return folder


def write(path: Path, ran: list[tuple[str, Done]]) -> None:
    """Write lines that were run, each with what it left."""
    path.write_bytes(json.encode(ran))


def read(path: Path) -> list[tuple[str, Done]]:
    """Return the lines that `write` wrote."""
    return json.decode(path.read_bytes(), type=list[tuple[str, Done]])
