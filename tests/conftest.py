"""Options and fixtures of the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden", action="store_true", help="write tests/golden from what is printed now"
    )


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of the person who runs the tests must not change what they say."""
    for name in [*os.environ]:
        if name.startswith("CERTKIT_") and name != "CERTKIT_SLOW":
            monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def shared() -> Path:
    """The folder of inputs that are no part of the project, or a skipped test where it is absent."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("../shared is not here: published vectors and real logs are no part of the project")
    return folder
