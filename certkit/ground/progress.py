"""Progress of long work: rooms report to a `Progress` that is passed to them, and draw nothing.

The command line passes an object that draws a bar on a terminal; the default is `SILENT`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

MANY: Final = 20_000
"""Entries of a log from which reading takes some tenths of a second, so that a bar is shown."""


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
    """Give progress over `total` entries of a log; silent where there are fewer than `MANY`."""
    bar = progress if total >= MANY else SILENT
    bar.start(label, total, "entries")
    try:
        yield bar
    finally:
        bar.finish()
