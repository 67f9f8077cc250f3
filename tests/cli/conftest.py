"""Bundles that the tests of the command line share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import bundles, kept
from tests.support.bundles import run
from tests.support.script import through

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.demonstration import Demonstration
    from tests.support.running import Done

RUNS = [
    run(0),
    run(1, outcome="failure"),
    run(2, domain="e", task_id="e/1", condition="adversarial", attack_landed=True),
]


@pytest.fixture(scope="session")
def script(
    demonstration: Demonstration, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[tuple[str, Done]]]:
    """A folder in which commands ran once with ``--json``, for reading, and what every command left."""

    def make(folder: Path) -> None:
        (folder / "script").mkdir()
        kept.write(folder / "printed.json", through(folder / "script", "--json"))

    made = kept.once(tmp_path_factory, "every-command", make)
    return made / "script", [("demo -o demo", demonstration.document), *kept.read(made / "printed.json")]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """An unsealed bundle of three runs, which are too few to judge any row."""
    return bundles.of(tmp_path / "bundle", RUNS)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """A bundle with two bad records."""
    return bundles.of(tmp_path / "bad", [run(0), run(1, trial=-1), run(2, surprise=1)])
