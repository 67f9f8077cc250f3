"""Running the command line inside the test's process, which makes hundreds of cases affordable."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from certkit import canonical
from certkit.cli.main import run


def certkit(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Run ``certkit`` with `arguments`; return its exit code and the one document on its stdout."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    code = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            run(list(arguments))
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    out.seek(0)
    err.seek(0)
    assert "Traceback" not in err.read()
    document = canonical.loads(out.read().encode())
    assert isinstance(document, dict)
    return code, document
