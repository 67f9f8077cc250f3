"""Running the command line inside the test's process for its one JSON document."""

from __future__ import annotations

from typing import Any

from tests.support import running


def certkit(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Run ``certkit`` with `arguments`; return its exit code and the one document on its stdout."""
    done = running.certkit(*arguments)
    assert "Traceback" not in done.err
    return done.code, done.document
