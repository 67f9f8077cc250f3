"""Reports without the drawing, for tests that are about something else: a PDF takes seconds to draw.

What stands for a PDF holds the attachments of the drawn one and no page. That certkit draws is shown by
tests/unit/report/test_pdf.py, in the program itself, and by the demo of the built wheel.

    python -m tests.support.undrawn ARGUMENTS...    # certkit, which draws no PDF
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unittest import mock

from certkit import report
from certkit.cli.main import run

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

PROGRAM: Final = Path(__file__).with_name("bin") / "certkit"
"""A `certkit` for the search path of a shell."""


def pdf(view: report.View, _markup: str | None = None) -> bytes:
    """Return a PDF of no page with the attachments of `view`."""
    from tests.support.pdfs import attaching  # noqa: PLC0415 - seldom needed

    return attaching(*((item.name, item.data) for item in view.attachments))


def pdfs() -> AbstractContextManager[object]:
    """Stand in for `report.pdf` where it can draw; why it cannot is said as ever."""
    return mock.patch.object(report, "pdf", pdf)


if __name__ == "__main__":
    with pdfs():
        run(sys.argv[1:])
