"""Progress bars: on standard error, on a terminal only, and gone when the work is done."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from certkit.progress import SILENT, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class Bar:
    """Draws what a room reports; see `certkit.progress.Progress`."""

    def __init__(self) -> None:
        self._drawn: RichProgress | None = None
        self._task: TaskID | None = None

    def start(self, label: str, total: int | None, unit: str) -> None:
        """Draw a new bar."""
        from rich.progress import (  # noqa: PLC0415 - only on a terminal
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as RichProgress  # noqa: PLC0415 - only on a terminal

        from certkit.cli.output import console  # noqa: PLC0415 - only on a terminal

        self.finish()
        amount = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
        self._drawn = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            amount,
            TimeRemainingColumn(),
            console=console(error=True),
            transient=True,
        )
        self._drawn.start()
        self._task = self._drawn.add_task(label, total=total)

    def advance(self, amount: int) -> None:
        """Move the bar on."""
        if self._drawn is not None and self._task is not None:
            self._drawn.advance(self._task, amount)

    def finish(self) -> None:
        """Take the bar away."""
        if self._drawn is not None:
            self._drawn.stop()
            self._drawn = None


def progress(*, hidden: bool) -> Progress:
    """Return a bar where standard error is a terminal and the user wants one, else silence."""
    return SILENT if hidden or not sys.stderr.isatty() else Bar()
