"""The events of a run in a folder: the process at the tool boundary writes them, the runner reads them.

    with writing_events(folder) as (events, append):     # waits while another process writes there
        boundary.resume(events)
        append(0, RunEvent(event="call", tool="lookup"))
        append(0, RunEvent(event="call", tool="lookup", result=3))     # the same call, when it is over
    read_events(folder)                                  # the second one alone

Every event is a line of its own, appended at once, so that a process that is killed loses nothing before it.
The half of a last line is not read. An end is written only where the boundary ended the run; the file `OVER`
is there from then on. Trusted is whoever can write to the folder, the agent included.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from certkit.ground import files
from certkit.ground.errors import InputError, UsageError
from certkit.record.outcome import RunEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OVER: Final = "over"
MAX_EVENTS: Final = 64 * 1024 * 1024
"""Bytes of the events of a run; the boundary keeps a quarter of it, and writes each event twice."""

_FILE: Final = "events.jsonl"
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_PAUSE: Final = 0.05
"""Seconds between two attempts to get the lock."""


class _EventLine(Struct):
    """A line: an event and its place in the run; a later line replaces an earlier one of the same place."""

    place: int
    event: RunEvent


@contextmanager
def writing_events(folder: Path) -> Iterator[tuple[list[RunEvent], Callable[[int, RunEvent], None]]]:
    """Give the events that a folder holds, and a function that adds one; the folder is made.

    Raises:
        UsageError: ``file.unwritable``.
        InputError: ``trial.invalid`` where the file is none of events.
    """
    if not folder.is_dir():
        files.make_folder(folder)
    with ExitStack() as stack:
        while not _locked(folder, stack):
            time.sleep(_PAUSE)
        path = folder / _FILE
        if path.is_file():
            files.cut_last_line(path)
        events = read_events(folder)
        append = stack.enter_context(files.appending(path))

        def add(place: int, event: RunEvent) -> None:
            append(_ENCODER.encode(_EventLine(place, event)) + b"\n")
            if event.event == "end":
                files.write(folder / OVER, b"")

        yield events, add


def _locked(folder: Path, stack: ExitStack) -> bool:
    """Lock a folder until a stack closes; return False where another process holds it."""
    try:
        stack.enter_context(files.locked(folder))
    except UsageError as error:
        if error.code != "registry.busy":
            raise
        return False
    return True


def wait_for_writers(folder: Path, attempts: int) -> bool:
    """Return whether nobody writes to a folder any more; ask that often, 20 times a second."""
    for _ in range(attempts):
        with ExitStack() as stack:
            if _locked(folder, stack):
                return True
        time.sleep(_PAUSE)
    return False


def read_events(folder: Path) -> list[RunEvent]:
    """Return the events in a folder, in order; none where none was written.

    Raises:
        InputError: ``trial.invalid``, ``json.too-large``.
    """
    path = folder / _FILE
    if not path.is_file():
        return []
    lines = files.read(path, limit=MAX_EVENTS).split(b"\n")[:-1]
    decoder = msgspec.json.Decoder(_EventLine)
    events: list[RunEvent] = []
    for number, text in enumerate(lines, 1):
        try:
            line = decoder.decode(text)
        except msgspec.MsgspecError as error:
            where = f"{path}:{number}"
            raise InputError("trial.invalid", f"no event of a run: {error}", where=where) from None
        if not 0 <= line.place <= len(events):
            message = f"event {line.place} follows {len(events)} events"
            raise InputError("trial.invalid", message, where=f"{path}:{number}")
        events[line.place : line.place + 1] = [line.event]
    return events
