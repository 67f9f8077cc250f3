"""Progress of long work, as a value that is passed down; a room reports and never draws.

`Progress` is what a room calls; the command line passes one that draws a bar on a terminal, everyone
else gets `SILENT`.
"""

from __future__ import annotations

from typing import Final, Protocol


class Progress(Protocol):
    """Receives how much of a piece of work is done."""

    def start(self, label: str, total: int | None, unit: str) -> None:
        """Begin a piece of work of `total` units (None: not known), ``bytes`` or ``records``."""

    def advance(self, amount: int) -> None:
        """Report that `amount` more units are done."""

    def finish(self) -> None:
        """End the piece of work."""


class _Silent:
    def start(self, label: str, total: int | None, unit: str) -> None:
        pass

    def advance(self, amount: int) -> None:
        pass

    def finish(self) -> None:
        pass


SILENT: Final[Progress] = _Silent()
