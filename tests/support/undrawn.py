"""Reports without the drawing, for tests that are about something else: a PDF takes seconds to draw.

What stands for a PDF holds the attachments of the drawn one and no page. That certkit draws is shown by
tests/unit/report/test_pdf.py, in the program itself, and by the demo of the built wheel.

    python -m tests.support.undrawn ARGUMENTS...    # certkit, which draws no PDF
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unittest import mock

from certkit.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from certkit import report

PROGRAM: Final = Path(__file__).with_name("bin") / "certkit"
"""A `certkit` for the search path of a shell."""
DRAWING: Final = frozenset({"report", "issue", "demo"})
"""Commands that draw."""


def pdf(view: report.ReportView, _markup: str | None = None) -> bytes:
    """Return a PDF of no page with the attachments of `view`."""
    from tests.support.pdfs import attaching  # noqa: PLC0415 - seldom needed

    return attaching(*((item.name, item.data) for item in view.attachments))


@contextlib.contextmanager
def pdfs(words: Iterable[str] = DRAWING) -> Iterator[None]:
    """Stand in for `report.pdf` in a command of these words; why it cannot draw is said as ever."""
    if DRAWING.isdisjoint(words):  # what draws takes longer to load than most commands to run
        yield
        return
    with mock.patch("certkit.report.pdf", pdf):
        yield


if __name__ == "__main__":
    with pdfs(sys.argv):
        run(sys.argv[1:])
