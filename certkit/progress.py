"""Progress of long work, as a value that is passed down; a room reports and never draws.

`Progress` is what a room calls; the command line passes one that draws a bar on a terminal, everyone
else gets `SILENT`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

MANY: Final = 20_000
"""How many entries of a log take long enough to read, some tenths of a second, to show how far that is."""


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


@contextmanager
def shown(progress: Progress, label: str, total: int) -> Iterator[Progress]:
    """Give progress over `total` entries of a log, silent where they are read before a bar could be seen."""
    bar = progress if total >= MANY else SILENT
    bar.start(label, total, "entries")
    try:
        yield bar
    finally:
        bar.finish()
